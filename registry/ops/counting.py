"""Any, all, how many are nonzero, and where the smallest entry stands."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import booleans, case, distinct, integers, misuse, nonzero
from registry.errors import ShapeError
from registry.shapes import boolean, default_int, real, reduced
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape, VarType

_STEPS = "it is piecewise constant"

_QUESTION: dict[str, Any] = {
    "shape": reduced,
    "dtype": boolean,
    "cases": [
        case(x=booleans(3, 4)),
        case(x=booleans(3, 4), axis=0),
        case(x=integers(2, 3, 4, high=2), axis=(0, -1), keepdims=True),
        case(x=nonzero(2, 3), axis=1),
        case(x=booleans()),
        case(x=(0, 2), axis=0),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
        misuse("axes must be distinct, got (0, -2)", x=(3, 4), axis=(0, -2)),
    ],
}


@op(**_QUESTION, reference=np.any)
def any(x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Whether any entry over ``axis`` is true; of none, false. Numbers are true unless zero.

    Example:
        >>> import jax.numpy as jnp
        >>> any(jnp.asarray([[True, False], [False, False]]), axis=1)
        Array([ True, False], dtype=bool)
    """
    return jnp.any(x, axis=axis, keepdims=keepdims)


@op(**_QUESTION, reference=np.all)
def all(x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Whether all entries over ``axis`` are true; of none, true. Numbers are true unless zero.

    Example:
        >>> import jax.numpy as jnp
        >>> all(jnp.asarray([[True, False], [True, True]]), axis=1)
        Array([False,  True], dtype=bool)
    """
    return jnp.all(x, axis=axis, keepdims=keepdims)


def _count_dtype() -> DType:
    return default_int()


@op(
    shape=reduced,
    dtype=_count_dtype,
    reference=np.count_nonzero,
    cases=[
        case(x=integers(3, 4, high=2)),
        case(x=booleans(3, 4), axis=0),
        case(x=integers(2, 3, 4, high=3), axis=(0, -1), keepdims=True),
        case(x=nonzero()),
        case(x=(0, 2), axis=0),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
    ],
)
def count_nonzero(
    x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Array:
    """How many entries over ``axis`` are not zero, in the default integer dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> count_nonzero(jnp.asarray([[1, 0], [2, 3]]), axis=1)
        Array([1, 2], dtype=int32)
    """
    return jnp.count_nonzero(x, axis=axis, keepdims=keepdims)


for question in (any, all, count_nonzero):
    question.zero_gradient(_STEPS)


def _argmin_dtype(x: VarType) -> DType:
    real(x)
    return default_int()


def _argmin_shape(x: Shape, *, axis: int | None, keepdims: bool) -> Shape:
    out = reduced(x, axis=axis, keepdims=keepdims)
    if 0 in (x if axis is None else (x[axis],)):
        raise ShapeError(f"the reduced axes must not be empty, got shape {x}")
    return out


@op(
    shape=_argmin_shape,
    dtype=_argmin_dtype,
    reference=np.argmin,
    cases=[
        case(x=distinct(3, 4)),
        case(x=distinct(3, 4), axis=-1),
        case(x=distinct(3, 4), axis=0, keepdims=True),
        case(x=(0, 3), axis=1),
        case(x=integers(6, high=3)),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
        misuse("the reduced axes must not be empty, got shape (0, 3)", x=(0, 3), axis=0),
        misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64)),
    ],
)
def argmin(x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Position of the smallest entry along ``axis``; the first of several. A NaN counts as least.

    Without an axis, the position among all entries in row-major order.

    Example:
        >>> import jax.numpy as jnp
        >>> argmin(jnp.asarray([[1.0, 3.0], [4.0, 2.0]]), axis=1)
        Array([0, 1], dtype=int32)
    """
    return jnp.argmin(x, axis=axis, keepdims=keepdims)


argmin.no_gradient("its result is an integer")
