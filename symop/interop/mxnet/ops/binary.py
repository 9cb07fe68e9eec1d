"""Entrywise binary functions, of equal or broadcast shapes, and sums of many arrays."""

from collections.abc import Callable, Mapping
from typing import Any

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import floating, is_whole, registered
from symop.interop.mxnet.partial_shapes import same

Function = Callable[[Any, Any], Any]


def of_dtype(lhs: Any, rhs: Any, found: Any) -> Any:
    """``found`` cast to the dtype of the operands, one of which may be a Python number."""
    dtype = rhs.dtype if isinstance(lhs, (int, float)) else lhs.dtype
    return found if found.dtype == dtype else so.cast(found, dtype=dtype)


def quotient(lhs: Any, rhs: Any) -> Any:
    """``lhs / rhs``; integer quotients are rounded toward zero."""
    if not (is_whole(lhs) or is_whole(rhs)):
        return so.divide(lhs, rhs)
    size = so.floor_divide(so.abs(lhs), so.abs(rhs))
    return of_dtype(lhs, rhs, so.multiply(so.multiply(so.sign(lhs), so.sign(rhs)), size))


def remainder(lhs: Any, rhs: Any) -> Any:
    """The remainder of floor division; zero for a division by zero."""
    if isinstance(rhs, (int, float)):
        return so.remainder(lhs, rhs) if rhs else so.zeros_like(lhs)
    by_zero = so.equal(rhs, 0)
    found = so.remainder(lhs, so.where(by_zero, 1, rhs))
    return of_dtype(lhs, rhs, so.where(by_zero, 0, found))


def maximum(lhs: Any, rhs: Any) -> Any:
    """The larger operand; ``lhs`` if they are equal."""
    return so.maximum(lhs, rhs, ties="first")


def minimum(lhs: Any, rhs: Any) -> Any:
    """The smaller operand; ``lhs`` if they are equal."""
    return so.minimum(lhs, rhs, ties="first")


def _of_real(function: Function) -> Function:
    """``function`` computed on floating numbers, and rounded toward zero for integers."""

    def call(lhs: Any, rhs: Any) -> Any:
        return of_dtype(lhs, rhs, function(floating(lhs), floating(rhs)))

    return call


def _of_dtype(function: Function) -> Function:
    """A predicate with its result in the dtype of the operands."""
    return lambda lhs, rhs: of_dtype(lhs, rhs, function(lhs, rhs))


power, hypot = _of_real(so.power), _of_real(so.hypot)

ARITHMETIC: Mapping[str, Function] = {
    "power": power,
    "maximum": maximum,
    "minimum": minimum,
    "hypot": hypot,
    "mod": remainder,
}
"""Functions by their name in all of MXNet's families."""
LOGIC: Mapping[str, Function] = {
    name: _of_dtype(function)
    for name, function in {
        "equal": so.equal,
        "not_equal": so.not_equal,
        "greater": so.greater,
        "greater_equal": so.greater_equal,
        "lesser": so.less,
        "lesser_equal": so.less_equal,
        "logical_and": so.logical_and,
        "logical_or": so.logical_or,
        "logical_xor": so.logical_xor,
    }.items()
}
"""Predicates, whose results are zero or one."""

_ELEMWISE: Mapping[tuple[str, ...], Function] = {
    ("elemwise_add", "_add", "_plus", "_Plus", "_sparse_elemwise_add"): so.add,
    ("elemwise_sub", "_sub", "_minus", "_Minus", "_sparse_elemwise_sub"): so.subtract,
    ("elemwise_mul", "_mul", "_Mul", "_sparse_elemwise_mul"): so.multiply,
    ("elemwise_div", "_div", "_Div", "_sparse_elemwise_div"): quotient,
    ("_grad_add",): so.add,
    ("_scatter_elemwise_div",): quotient,
    **{
        (f"_{name}", f"_{name.title()}"): function
        for name, function in {**ARITHMETIC, **LOGIC}.items()
    },
}
_BROADCAST: Mapping[tuple[str, ...], Function] = {
    ("broadcast_add", "broadcast_plus", "_sparse_broadcast_add", "_sparse_broadcast_plus"): so.add,
    ("broadcast_sub", "broadcast_minus", "_sparse_broadcast_sub", "_sparse_broadcast_minus"): (
        so.subtract
    ),
    ("broadcast_mul", "_sparse_broadcast_mul"): so.multiply,
    ("broadcast_div", "_sparse_broadcast_div"): quotient,
    **{(f"broadcast_{name}",): function for name, function in {**ARITHMETIC, **LOGIC}.items()},
}


def _declare(names: tuple[str, ...], function: Function, broadcasts: bool) -> None:
    direct = registered(so.divide if function is quotient else function)

    @operator(*names, shapes=None if broadcasts else same, direct=direct)
    def call(lhs: Any, rhs: Any) -> Any:
        # A loop over a vector passes numbers of rank 0, which MXNet's arrays do not have.
        scalar = () in (lhs.shape, rhs.shape)
        if not broadcasts and lhs.shape != rhs.shape and not scalar:
            raise MXNetError(
                f"{names[0]}: lhs and rhs must be of one shape, got {lhs.shape} and {rhs.shape}"
            )
        return function(lhs, rhs)


for _names, _function in _ELEMWISE.items():
    _declare(_names, _function, broadcasts=False)
for _names, _function in _BROADCAST.items():
    _declare(_names, _function, broadcasts=True)


@operator("add_n", "ElementWiseSum", "_sparse_add_n", "_sparse_ElementWiseSum", shapes=same)
def add_n(*args: Any, num_args: int) -> Any:
    """The sum of all arrays."""
    del num_args
    return so.add_n(*args)
