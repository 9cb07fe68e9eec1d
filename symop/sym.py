"""``so.sym``: the operators under the name that MXNet users know; the functions of ``so.*``."""

import functools
from collections.abc import Callable
from typing import Any

from registry.binding import LEFT_OUT
from registry.foreign_names import foreign
from registry.operator import Operator
from registry.table import get, names
from symop import symbol_flow
from symop.building import Group, var
from symop.control_flow import in_order_of_mxnet
from symop.symbol import Symbol

__all__ = ["Group", "Symbol", "Variable", "cond", "foreach", "scan", "var", "while_loop"]

Variable = var
_Function = Callable[..., Any]
_NUMBERS = (bool, int, float, complex, type(None))


def cond(pred: Any, true_fn: _Function, false_fn: _Function, *operands: Any) -> Any:
    """``so.cond`` on symbols, also where only the functions use some."""
    return symbol_flow.cond(pred, true_fn, false_fn, operands)


def while_loop(
    cond_fn: _Function, body_fn: _Function, init: Any, max_steps: int | None = None
) -> Any:
    """``so.while_loop`` on symbols, also where only the functions use some."""
    return symbol_flow.while_loop(cond_fn, body_fn, init, max_steps)


def scan(
    f: _Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> Any:
    """``so.scan`` on symbols, also where only the function uses some."""
    return symbol_flow.scan(f, init, xs, length, reverse)


def foreach(body: _Function, data: Any, init_states: Any) -> tuple[Any, Any]:
    """``so.foreach`` on symbols, also where only the body uses some."""
    states, outputs = scan(in_order_of_mxnet(body), init_states, data)
    return outputs, states


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
