"""Common parts of MXNet's operators: result dtypes, rounded numbers, values without inputs."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

import symop as so
from registry.operator.operator import Operator
from registry.table import get
from registry.types import is_integer
from registry.var import Var, emitter_of
from symop.graph.scoping import Scopes
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.partial_shapes import require_size

Floating = Literal["float32", "float64", "float16", "bfloat16"]
Dtype = Literal[
    "float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool"
]
IndexDtype = Literal["uint8", "int32", "int64", "float16", "float32", "float64"]
Draws = Literal["float32", "float64", "float16"]

SINGLE_PI = np.float32(np.pi)
"""MXNet's value of pi, also in float64."""


def single(number: float) -> float:
    """``number`` rounded to float32, in which MXNet stores some attributes."""
    return float(np.float32(number))


def is_whole(value: Any) -> bool:
    """Whether ``value`` contains integers; False for a Python number."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and is_integer(dtype)


def kept(data: Any, found: Any) -> Any:
    """``found`` cast to the dtype of ``data``; rounded toward zero for integers."""
    return found if found.dtype == data.dtype else so.cast(found, dtype=data.dtype)


def floating(data: Any) -> Any:
    """``data`` for a function of real numbers: MXNet computes those of integers in float32."""
    return so.cast(data, dtype="float32") if is_whole(data) else data


def number_for(data: Any, scalar: float) -> float | int:
    """``scalar`` in the dtype of ``data``, as a Python number."""
    if is_whole(data):
        return int(np.int64(scalar).astype(data.dtype))
    return scalar


def fixed(found: Any, *inputs: Any) -> Any:
    """``found`` with zero, not undefined, derivatives with respect to ``inputs``."""
    return so.keep(found, *inputs)


def at_least_1d(found: Any) -> Any:
    """``found`` with at least one axis, since MXNet has no arrays without axes."""
    return found if found.shape else so.reshape(found, shape=(1,))


def axis_of(name: str, axis: int, count: int) -> int:
    """``axis`` as a non-negative number.

    Raises:
        MXNetError: it is out of range.
    """
    if not -count <= axis < count:
        raise MXNetError(f"{name}: axis must be in [{-count}, {count}), got {axis}")
    return axis % count


def registered(function: Any) -> Operator | None:
    """``function`` if it is an operator of the catalogue, otherwise None."""
    return function if isinstance(function, Operator) else None


def require_fits(name: str, shape: Sequence[int]) -> None:
    """Rejects results with too many entries for any memory.

    Raises:
        MXNetError: the result is too large.
    """
    try:
        require_size(tuple(shape))
    except MXNetError as error:
        raise MXNetError(f"{name}: {error}") from None


# Values without inputs -------------------------------------------------------------------------

_kinds: Scopes[Any] = Scopes("mxnet_kind", so.Symbol)


@contextlib.contextmanager
def sources_are(kind: type) -> Iterator[None]:
    """A context in which operators without inputs make values of ``kind``, not symbols."""
    with _kinds.entered(kind):
        yield


def are_arrays() -> bool:
    """Whether operators without inputs make arrays."""
    return _kinds.current() is so.NDArray


def made(of: Operator | str, /, *args: Any, like: Any = None, **attributes: Any) -> Any:
    """The result of an operator of the catalogue on numbers, as a value of the kind of ``like``.

    Args:
        of: an operator without inputs, or one called on numbers; or its name.
        *args: the numbers.
        like: a value; by default, the kind is set by ``sources_are``.
        **attributes: the operator's attributes.
    """
    operator = get(of) if isinstance(of, str) else of
    inputs, values, name = operator.bind(args, attributes)
    emitter = _kinds.current().emitter if like is None else emitter_of((like,))
    return emitter.emit(operator.resolved(inputs, values), inputs, values, name)


def constant(array: np.ndarray, like: Any) -> Any:
    """A small constant array, as a value of the kind of ``like``."""
    if not isinstance(like, Var):
        return jnp.asarray(array)
    ones = made("ones", like=like, shape=array.shape, dtype=array.dtype)
    return so.multiply(ones, array)
