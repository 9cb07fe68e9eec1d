"""Logical reductions, and the count of nonzero entries."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import booleans, case, integers, misuse, nonzero
from registry.operator.signature import Array
from registry.shapes import boolean, default_int, reduced
from registry.table import op
from registry.types import DType

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


@op(**_QUESTION, reference=np.any, aliases=["reduce_any"])
def any(x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Whether any entry over ``axis`` is true (nonzero); false if there are none.

    Example:
        >>> import jax.numpy as jnp
        >>> any(jnp.asarray([[True, False], [False, False]]), axis=1)
        Array([ True, False], dtype=bool)
    """
    return jnp.any(x, axis=axis, keepdims=keepdims)


@op(**_QUESTION, reference=np.all, aliases=["reduce_all"])
def all(x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Whether all entries over ``axis`` are true (nonzero); true if there are none.

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
    """Number of nonzero entries over ``axis``, in the default integer dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> count_nonzero(jnp.asarray([[1, 0], [2, 3]]), axis=1)
        Array([1, 2], dtype=int32)
    """
    return jnp.count_nonzero(x, axis=axis, keepdims=keepdims)


for question in (any, all, count_nonzero):
    question.zero_gradient(_STEPS)
