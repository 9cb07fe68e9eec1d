"""``so.sym``: the operators under the name that MXNet users know; the functions of ``so.*``."""

import functools
from collections.abc import Callable
from typing import Any

from registry.binding import LEFT_OUT
from registry.foreign_names import foreign
from registry.operator import Operator
from registry.table import get, names
from symop.building import Group, var
from symop.symbol import Symbol

__all__ = ["Group", "Symbol", "Variable", "var"]

Variable = var
_NUMBERS = (bool, int, float, complex, type(None))


def __getattr__(name: str) -> Callable[..., Any]:
    """The operator called ``name``; one without inputs, which could not tell, makes a symbol."""
    if name.startswith("_") and not foreign(name):
        raise AttributeError(name)
    try:
        operator = get(name)
    except LookupError as error:
        raise AttributeError(f"sym: {error}", name=name) from None
    if all(slot.optional for slot in operator.positional):
        return functools.partial(_source, operator)
    return operator


def _source(operator: Operator, *args: Any, **kwargs: Any) -> Any:
    """The symbol that ``operator`` makes of attributes and numbers alone."""
    inputs, attributes, name = operator.bind(args, kwargs)
    if not all(value is LEFT_OUT or isinstance(value, _NUMBERS) for value in inputs):
        return operator(*args, **kwargs)
    member = operator.resolved(inputs, attributes)
    made: Symbol = Symbol.emitter.emit(member, inputs, attributes, name)
    return made


def __dir__() -> list[str]:
    """Names of this module, operators included."""
    return sorted([*globals(), *names(aliases=True)])
