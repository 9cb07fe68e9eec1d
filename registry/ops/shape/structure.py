"""Operators that change the structure of a graph without changing a value."""

from registry.cases import case, workload
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.shapes import HAS_NO_AXIS
from registry.table import op
from registry.types import Shape, VarKind, VarType
from registry.var import Var


def _shape_of_x(x: Shape) -> Shape:
    return x


def _dtype_of_x(x: VarType) -> object:
    return x.dtype, x.weak


@op(
    shape=_shape_of_x,
    dtype=_dtype_of_x,
    reference=lambda x, *others: x,
    cases=[
        case(x=(3, 4), others=[(2,), ()]),
        workload(x=(1024, 1024), others=[(2,), ()]),
        HAS_NO_AXIS,
    ],
)
def keep(x: Array, *others: Array) -> Array:
    """Returns ``x`` and keeps ``others`` reachable in the graph.

    A gradient that no longer needs one of the random keys of its forward graph keeps it this way,
    so that both graphs number their keys alike. ``others`` may be of any kind and cost nothing.

    Example:
        >>> import jax.numpy as jnp
        >>> keep(jnp.asarray([1.0, 2.0]), jnp.zeros(3))
        Array([1., 2.], dtype=float32)
    """
    del others
    return x


@keep.kind
def keep_kind(x: VarKind) -> VarKind:
    """The kind of ``x``."""
    return x


@keep.gradient
def keep_gradient(others: tuple[Var, ...], d_out: Var) -> Grads:
    """Only ``x`` reaches the output."""
    return {"x": d_out, "others": [None] * len(others)}
