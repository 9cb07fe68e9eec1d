"""``so.sym``: the operators of ``so.*`` in the namespace that MXNet users know."""

import functools
from collections.abc import Callable
from typing import Any

from registry.foreign_names import foreign
from registry.operator.binding import is_new
from registry.operator.operator import Operator
from registry.table import names, require
from symop.control_flow import in_order_of_mxnet
from symop.symbol import control_flow as symbol_flow
from symop.symbol.building import Group, var
from symop.symbol.symbol import Symbol

__all__ = ["Group", "Symbol", "Variable", "cond", "foreach", "scan", "var", "while_loop"]

Variable = var
_Function = Callable[..., Any]
_NUMBERS = (bool, int, float, complex, type(None))


def cond(pred: Any, true_fn: _Function, false_fn: _Function, *operands: Any) -> Any:
    """Builds ``so.cond`` on symbols, even if only the functions capture symbols."""
    return symbol_flow.cond(pred, true_fn, false_fn, operands)


def while_loop(
    cond_fn: _Function, body_fn: _Function, init: Any, max_steps: int | None = None
) -> Any:
    """Builds ``so.while_loop`` on symbols, even if only the functions capture symbols."""
    return symbol_flow.while_loop(cond_fn, body_fn, init, max_steps)


def scan(
    f: _Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> Any:
    """Builds ``so.scan`` on symbols, even if only the function captures symbols."""
    return symbol_flow.scan(f, init, xs, length, reverse)


def foreach(body: _Function, data: Any, init_states: Any) -> tuple[Any, Any]:
    """Builds ``so.foreach`` on symbols, even if only the body captures symbols."""
    states, outputs = scan(in_order_of_mxnet(body), init_states, data)
    return outputs, states


def __getattr__(name: str) -> Callable[..., Any]:
    """Returns an operator by name; one without required inputs returns a symbol by default."""
    if name.startswith("_") and not foreign(name):
        raise AttributeError(name)
    try:
        operator = require(name)
    except LookupError as error:
        raise AttributeError(f"sym: {error}", name=name) from None
    if all(slot.optional for slot in operator.positional):
        return functools.partial(_source, operator)
    return operator


def _source(operator: Operator, *args: Any, **kwargs: Any) -> Any:
    """Calls ``operator``; if its inputs are numbers or left out, the result is a symbol."""
    inputs, attributes, name = operator.bind(args, kwargs)
    if not all(is_new(value) or isinstance(value, _NUMBERS) for value in inputs):
        return operator(*args, **kwargs)
    member = operator.resolved(inputs, attributes)
    result: Symbol = Symbol.emitter.emit(member, inputs, attributes, name)
    return result


def __dir__() -> list[str]:
    """Returns the names of this module, including operators."""
    return sorted([*globals(), *names(aliases=True)])
