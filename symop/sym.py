"""``so.sym``: the operators under the name that MXNet users know; the functions of ``so.*``."""

import functools
from collections.abc import Callable
from typing import Any

from registry.operator import Operator
from registry.table import get, names
from symop.building import Group, var
from symop.symbol import Symbol

__all__ = ["Group", "Symbol", "Variable", "var"]

Variable = var


def __getattr__(name: str) -> Callable[..., Any]:
    """The operator called ``name``; one without inputs, which could not tell, makes a symbol."""
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        operator = get(name)
    except LookupError as error:
        raise AttributeError(f"sym: {error}", name=name) from None
    return operator if operator.positional else functools.partial(_source, operator)


def _source(operator: Operator, *args: Any, **kwargs: Any) -> Symbol:
    """The symbol that ``operator`` makes of attributes alone."""
    inputs, attributes, name = operator.bind(args, kwargs)
    member = operator.resolved(inputs, attributes)
    made: Symbol = Symbol.emitter.emit(member, inputs, attributes, name)
    return made


def __dir__() -> list[str]:
    """Names of this module, operators included."""
    return sorted([*globals(), *names(aliases=True)])
