"""What operators on stacks of matrices share: rules for shapes and dtypes, and wider arithmetic."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.errors import ShapeError
from registry.ops.shape import swapped
from registry.shapes import at_least_single
from registry.signature import Array
from registry.types import Shape
from registry.var import Var


def refuse_flat(**shapes: Shape) -> None:
    """Refuse inputs that have no two axes for rows and columns."""
    for slot, shape in shapes.items():
        if len(shape) < 2:
            raise ShapeError(f"{slot} must be a matrix or a stack of them, got shape {shape}")


def refuse_oblong(**shapes: Shape) -> None:
    """Refuse inputs that are no square matrices."""
    refuse_flat(**shapes)
    for slot, shape in shapes.items():
        if shape[-1] != shape[-2]:
            raise ShapeError(f"{slot} must have as many rows as columns, got shape {shape}")


def square_matrix(a: Shape) -> Shape:
    """``a``, which must be square."""
    refuse_oblong(a=a)
    return a


def common_batch(a: Shape, b: Shape) -> Shape:
    """The batch axes of two stacks of matrices, broadcast together."""
    try:
        return np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise ShapeError(
            f"the batch axes of a and b must broadcast together, got {a} and {b}"
        ) from None


def widened(*arrays: Array) -> list[Array]:
    """The arrays in one dtype that is wide enough to factor matrices in, and not weak."""
    dtype = at_least_single(jnp.result_type(*arrays))
    return [lax.convert_element_type(one, dtype) for one in arrays]


def cast_back(result: Array, *arrays: Array) -> Array:
    """What was computed of ``widened`` arrays, in the dtype of the arrays."""
    return lax.convert_element_type(result, jnp.result_type(*arrays))


def symmetric(x: Var) -> Var:
    """The symmetric part ``(x + x^T) / 2`` of square matrices."""
    part: Var = (x + swapped(x)) * 0.5
    return part
