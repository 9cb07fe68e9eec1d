"""What MXNet's operators share: dtypes of results, numbers as it has them, values of no input."""

import contextlib
import contextvars
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

import symop as so
from registry.operator import Operator
from registry.var import Var, emitter_of
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.partial_shapes import require_size

Floating = Literal["float32", "float64", "float16", "bfloat16"]
Dtype = Literal[
    "float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool"
]
IndexDtype = Literal["uint8", "int32", "int64", "float16", "float32", "float64"]
Draws = Literal["float32", "float64", "float16"]

SINGLE_PI = np.float32(np.pi)
"""The number that MXNet takes for pi, in float64 too."""


def single(number: float) -> float:
    """``number`` as an attribute of MXNet's that is stored in float32, whatever the data are."""
    return float(np.float32(number))


def is_whole(value: Any) -> bool:
    """Whether ``value`` holds integers; a Python number is none."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and dtype.kind in "iu"


def kept(data: Any, found: Any) -> Any:
    """``found`` in the dtype of ``data``; to an integer it is rounded toward zero."""
    return found if found.dtype == data.dtype else so.cast(found, dtype=data.dtype)


def floating(data: Any) -> Any:
    """``data`` for a function of real numbers: MXNet computes that of integers in float32."""
    return so.cast(data, dtype="float32") if is_whole(data) else data


def number_for(data: Any, scalar: float) -> float | int:
    """``scalar`` in the dtype of ``data``, as a Python number."""
    if is_whole(data):
        return int(np.int64(scalar).astype(data.dtype))
    return scalar


def fixed(found: Any, *inputs: Any) -> Any:
    """``found``, of which the derivative with respect to ``inputs`` is zero, not undefined."""
    return so.keep(found, *inputs)


def at_least_1d(found: Any) -> Any:
    """``found``, which has one axis if it had none: there are no arrays without axes."""
    return found if found.shape else so.reshape(found, shape=(1,))


def axis_of(name: str, axis: int, count: int) -> int:
    """``axis`` counted from the front.

    Raises:
        MXNetError: it is none of ``count`` axes.
    """
    if not -count <= axis < count:
        raise MXNetError(f"{name}: axis must be in [{-count}, {count}), got {axis}")
    return axis % count


def registered(function: Any) -> Operator | None:
    """``function`` itself if it is an operator of the catalogue."""
    return function if isinstance(function, Operator) else None


def require_fits(name: str, shape: Sequence[int]) -> None:
    """Refuse a result of so many entries that no memory holds them.

    Raises:
        MXNetError: it is so large.
    """
    try:
        require_size(tuple(shape))
    except MXNetError as error:
        raise MXNetError(f"{name}: {error}") from None


# Values of no input ----------------------------------------------------------------------------

_kind: contextvars.ContextVar[Any] = contextvars.ContextVar("kind", default=so.Symbol)


@contextlib.contextmanager
def sources_are(kind: type) -> Iterator[None]:
    """While it lasts, an operator without inputs makes values of ``kind``, not symbols."""
    token = _kind.set(kind)
    try:
        yield
    finally:
        _kind.reset(token)


def made(operator: Operator, *args: Any, like: Any = None, **attributes: Any) -> Any:
    """What ``operator`` of the catalogue makes of numbers alone: a value of the kind of ``like``.

    Args:
        operator: one without inputs, or whose inputs are numbers here.
        *args: the numbers.
        like: a value; without one, the kind is that which ``sources_are`` says.
        **attributes: the operator's attributes.
    """
    inputs, values, name = operator.bind(args, attributes)
    emitter = _kind.get().emitter if like is None else emitter_of((like,))
    return emitter.emit(operator.resolved(inputs, values), inputs, values, name)


def constant(array: np.ndarray, like: Any) -> Any:
    """A small array that does not change, as a value of the kind of ``like``."""
    if not isinstance(like, Var):
        return jnp.asarray(array)
    ones = made(so.ones, like=like, shape=array.shape, dtype=array.dtype)
    return so.multiply(ones, array)
