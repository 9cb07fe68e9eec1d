"""``so.pipeline``: layers that run on stages of devices, one microbatch behind the other."""

from collections.abc import Callable
from typing import Any

import jax
from jax import sharding

from registry.errors import ArgumentError
from registry.shardings import MeshAxes, on_mesh
from registry.table import get
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.control_flow import scan
from symop.lowering.explicit_axes import on_explicit_axes
from symop.vectorizing import vmap

# Any: JAX declares no types for the following names.
_Spec: Any = sharding.PartitionSpec
_auto_axes: Any = sharding.auto_axes


def pipeline(
    f: Callable[[Any, Any], Any],
    x: Any,
    layers: Any,
    *,
    stages: int,
    microbatches: int,
    axis: str = "stage",
    batch: MeshAxes = "data",
) -> Any:
    """Computes ``x = f(x, layers[i])`` for each layer in turn, stage by stage on a mesh.

    The layers form ``stages`` groups, each on the devices of one index of the mesh axis ``axis``.
    The examples form ``microbatches``, which pass from stage to stage: while a stage computes one,
    the stage before it computes the next. Of ``microbatches + stages - 1`` steps, each stage is
    idle in ``stages - 1``.

    The composition is that of Xu et al., "GSPMD: General and Scalable Parallelization for ML
    Computation Graphs", 2021, section 3.3: a loop over the state of all stages, which moves by one
    stage in each step. So its gradient is a pipeline in the other direction.

    Args:
        f: takes some examples and the parameters of a layer, and returns as many examples of the
            same type. It treats each example alone: with statistics over a batch, the result
            would depend on ``microbatches``.
        x: the examples, along the first axis.
        layers: the parameters of all layers, stacked along their first axes: a value, or nested
            tuples, lists and dictionaries of values.
        stages: the number of stages, which divides the number of layers.
        microbatches: the number of microbatches, which divides the number of examples.
        axis: the mesh axis of the stages.
        batch: the mesh axes that the examples are split over.

    Raises:
        ArgumentError: a number does not divide what it must.

    Example:
        >>> import jax.numpy as jnp, symop as so
        >>> x, layers = jnp.ones((4, 2)), jnp.full((6, 2, 2), 0.5)
        >>> so.pipeline(lambda x, w: x @ w, x, layers, stages=3, microbatches=2)[0].tolist()
        [1.0, 1.0]
    """
    leaves = jax.tree.leaves(layers)
    if not leaves:
        raise ArgumentError("pipeline: layers must hold parameters, got none")
    _require_divides("stages", stages, "layers", min(one.shape[0] for one in leaves))
    _require_divides("microbatches", microbatches, "examples", x.shape[0])

    def run(examples: Any, parameters: Any) -> Any:
        return _run(f, examples, parameters, (stages, microbatches), (axis, batch))

    if not isinstance(x, jax.Array) or not on_explicit_axes([x, *leaves]):
        return run(x, layers)
    # JAX does not slice or shift along an explicit axis.
    mesh = jax.sharding.get_abstract_mesh()
    where = _Spec(*on_mesh((batch,), mesh))
    return _auto_axes(run, axes=mesh.explicit_axes, out_sharding=where)(x, layers)


def _run(
    f: Callable[[Any, Any], Any],
    x: Any,
    layers: Any,
    counts: tuple[int, int],
    where: tuple[str, MeshAxes],
) -> Any:
    (stages, microbatches), (axis, batch) = counts, where
    shard, concat = get("shard"), get("concat")

    def stage(examples: Any, parameters: Any) -> Any:
        return scan(lambda carry, one: (f(carry, one), ()), examples, parameters)[0]

    def step(held: Any, entering: Any) -> tuple[Any, Any]:
        moved = concat(_with_axis(entering), held[:-1], axis=0) if stages > 1 else entering[None]
        found = shard(vmap(stage)(shard(moved, sharding=where), parts), sharding=where)
        return found, found[-1]

    parts = jax.tree.map(lambda one: shard(_grouped(one, stages), sharding=(axis,)), layers)
    entering = shard(_grouped(x, microbatches), sharding=(None, batch))
    # Idle stages compute a microbatch, whose result nobody reads: of zeros, the derivative of a
    # function could be infinite, and its product with a cotangent of zero not a number.
    any_one = entering[:1]
    first = get("broadcast_to")(any_one, shape=(stages, *any_one.shape[1:]))
    if stages > 1:
        after = get("broadcast_to")(any_one, shape=(stages - 1, *any_one.shape[1:]))
        entering = concat(entering, after, axis=0)
    _, results = scan(step, shard(first, sharding=where), entering)
    return get("reshape")(results[stages - 1 :], shape=x.shape)


def _with_axis(value: Any) -> Any:
    return get("reshape")(value, shape=(1, *value.shape))


def _grouped(value: Any, count: int) -> Any:
    """Returns ``value`` with its first axis as two, the first of length ``count``."""
    length, *rest = value.shape
    return get("reshape")(value, shape=(count, length // count, *rest))


def _require_divides(what: str, count: int, of: str, length: int) -> None:
    if count < 1 or length % count:
        raise ArgumentError(
            f"pipeline: {what} must divide the number of {of}, {length}, got {count}"
        )
