"""Operators that make values from attributes alone."""

import jax.numpy as jnp
import numpy as np

from registry.attributes import Scalar
from registry.cases import case, misuse
from registry.shapes import default_float, default_int
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape


def _full_shape(*, shape: Shape) -> Shape:
    return shape


def _full_reference(
    *, shape: Shape, fill_value: bool | int | float | complex, dtype: DType | None
) -> np.ndarray:
    usual = {bool: np.dtype(np.bool_), int: default_int(), float: default_float()}
    return np.full(shape, fill_value, dtype or usual.get(type(fill_value)))


@op(
    shape=_full_shape,
    reference=_full_reference,
    cases=[
        case(shape=(2, 3), fill_value=1.5),
        case(shape=(), fill_value=2),
        case(shape=(0,), fill_value=True),
        case(shape=(2,), fill_value=-1, dtype="float32"),
        misuse("attribute 'fill_value' must be", shape=(2,), fill_value="one"),
    ],
)
def full(
    *, shape: tuple[int, ...] = (), fill_value: Scalar, dtype: np.dtype | None = None
) -> Array:
    """An array of one number: ``out[...] = fill_value``.

    Without ``dtype`` it is of the dtype that JAX has for such a number, and as weak as the number
    itself: it never widens the dtype of an array beside it.

    Example:
        >>> full(shape=(2,), fill_value=1, dtype="float32")
        Array([1., 1.], dtype=float32)
    """
    if dtype is None and shape == ():
        return jnp.asarray(fill_value)
    return jnp.full(shape, fill_value, dtype)


full.zero_gradient("it has no inputs")
