"""The placement of a value on the devices of a mesh."""

from typing import Annotated, Any

from registry.cases import case, integers, misuse
from registry.errors import AttributeValueError
from registry.operator.attributes import ConvertedBy
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.shapes import promote
from registry.shardings import MeshAxes, as_sharding, constrained
from registry.table import op
from registry.types import Shape, VarKind
from registry.values import SelectedRows
from registry.var import Var


def _shard_shape(x: Shape, *, sharding: tuple[MeshAxes, ...]) -> Shape:
    if len(sharding) > len(x):
        raise AttributeValueError(f"sharding must have at most {len(x)} entries, got {sharding}")
    return x


@op(
    rearranges=True,
    shape=_shard_shape,
    dtype=promote,
    reference=lambda x, *, sharding: x,
    cases=[
        case(x=(4, 3), sharding=("data", None)),
        case(x=(4, 3), sharding=(None, ("data", "model"))),
        case(x=(), sharding=()),
        case(x=(0, 2), sharding=("data",)),
        case(x=integers(4, high=9), sharding=("data",)),
        misuse("sharding must have at most 1 entries", x=(3,), sharding=("data", "model")),
        misuse("each mesh axis once, got ('data', 'data')", x=(3, 4), sharding=("data", "data")),
        misuse("must hold a mesh axis", x=(3, 4), sharding=(0,)),
    ],
)
def shard(
    x: Array,
    *,
    sharding: Annotated[tuple[MeshAxes, ...], ConvertedBy(as_sharding)],
) -> Array:
    """Returns ``x``, split over the devices of the current mesh.

    Args:
        x: an array.
        sharding: for each axis of ``x``, the mesh axis that it is split over, a tuple of mesh axes
            (the first varies slowest), or None, which means that each device has all of it. Axes
            at the end may be left out, and axes that the mesh lacks split nothing.

    The values are those of ``x``; a row-sparse value stays as it is. The mesh is that of the
    context (``jax.set_mesh``), or else the one that ``x`` is on. Without a mesh, and inside of
    ``jax.shard_map``, nothing is split. On a mesh of automatic axes it is a constraint for XLA
    (``jax.lax.with_sharding_constraint``), on explicit axes it changes the type
    (``jax.sharding.reshard``).

    Raises:
        ArgumentError: an axis of the mesh does not divide the length that it splits.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> mesh = jax.make_mesh((1,), ("data",))
        >>> with jax.set_mesh(mesh):
        ...     print(shard(jnp.zeros((4, 2)), sharding=("data", None)).sharding.spec[0])
        data
    """
    if isinstance(x, SelectedRows):
        return x
    result: Array = constrained(x, sharding)
    return result


@shard.kind
def _shard_kind(x: VarKind) -> VarKind:
    """The kind of ``x``."""
    return x


@shard.gradient
def _shard_gradient(d_out: Var, *, sharding: tuple[MeshAxes, ...]) -> Grads:
    return {"x": shard(d_out, sharding=sharding)}


@shard.simplify
def _shard_simplify(x: Var, *, sharding: tuple[MeshAxes, ...]) -> Any:
    inner = x.applied(shard)
    return x if inner and inner[1] == (sharding,) else None
