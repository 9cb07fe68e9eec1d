"""``so.pipeline``: layers that run on stages of devices, one microbatch behind the other."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import sharding

from registry.errors import ArgumentError
from registry.shardings import MeshAxes, Sharding, as_sharding, axes_of, on_mesh
from registry.table import get
from registry.tracebacks import api_boundary
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.control_flow import scan
from symop.vectorizing import vmap

# Any: JAX declares no types for the following names.
_Spec: Any = sharding.PartitionSpec
_auto_axes: Any = sharding.auto_axes
_abstract_mesh: Any = sharding.get_abstract_mesh


@api_boundary
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
            would depend on ``microbatches``. On explicit axes it runs on these, as JAX's
            functions do.
        x: the examples, along the first axis.
        layers: the parameters of all layers, stacked along their first axes: a value, or nested
            tuples, lists and dictionaries of values.
        stages: the number of stages, which divides the number of layers, and which the size of
            the mesh axis divides.
        microbatches: the number of microbatches, which divides the number of examples.
        axis: the mesh axis of the stages.
        batch: the mesh axes that the examples are split over.

    Raises:
        ArgumentError: a number does not divide what it must, the layers differ in number, or ``f``
            returns examples of another type.

    Example:
        >>> import jax.numpy as jnp, symop as so
        >>> x, layers = jnp.ones((4, 2)), jnp.full((6, 2, 2), 0.5)
        >>> so.pipeline(lambda x, w: x @ w, x, layers, stages=3, microbatches=2)[0].tolist()
        [1.0, 1.0]
    """
    names = as_sharding((axis, batch))
    lengths = _lengths(layers)
    _require_divides("stages", stages, "layers", lengths[0])
    shape = tuple(x.shape) if hasattr(x, "shape") else jnp.shape(x)
    if not shape:
        raise ArgumentError("pipeline: x must hold examples along its first axis, got a number")
    _require_divides("microbatches", microbatches, "examples", shape[0])
    if isinstance(x, jax.Array):
        _require_fits("stages", stages, names[:1])
        _require_fits("the examples of a microbatch", shape[0] // microbatches, names[1:])
    return _Pipeline(f, stages, microbatches, names).run(x, layers)


class _Pipeline:
    """A function of layers in stages, on a mesh.

    On explicit axes JAX neither slices nor shifts along an axis that is split, so that these steps
    run on automatic ones; ``f`` runs on those of the caller.
    """

    def __init__(
        self, f: Callable[[Any, Any], Any], stages: int, microbatches: int, names: Sharding
    ) -> None:
        self._f, self._stages, self._microbatches = f, stages, microbatches
        self._where, self._stage, self._batch = names, names[:1], names[1:]

    def run(self, x: Any, layers: Any) -> Any:
        """Returns the examples after all layers."""
        shard, stages = get("shard"), self._stages

        def step(held: Any, entering: Any) -> tuple[Any, Any]:
            moved = shard(_freely(self._shifted, self._where, entering, held), sharding=self._where)
            results = shard(vmap(self._layers)(moved, parts), sharding=self._where)
            return results, _freely(self._leaving, self._batch, results)

        parts = jax.tree.map(lambda one: _freely(self._parts, self._stage, one), layers)
        entering = _freely(self._entering, (None, *self._batch), x)
        # Idle stages compute a microbatch, whose result nobody reads: of zeros, the derivative of a
        # function could be infinite, and its product with a cotangent of zero not a number.
        first = _freely(lambda some: _repeated(some[:1], stages), self._where, entering)
        _, results = scan(step, shard(first, sharding=self._where), entering)

        def examples(results: Any) -> Any:
            return get("reshape")(results[stages - 1 :], shape=x.shape)

        return _freely(examples, self._batch, results)

    def _layers(self, examples: Any, parameters: Any) -> Any:
        """Returns examples after the layers of one stage."""

        def layer(carry: Any, one: Any) -> tuple[Any, tuple[()]]:
            result = self._f(carry, one)
            _require_alike(result, carry)
            return result, ()

        return scan(layer, examples, parameters)[0]

    def _parts(self, parameter: Any) -> Any:
        return get("shard")(_grouped(parameter, self._stages), sharding=self._stage)

    def _entering(self, x: Any) -> Any:
        """Returns what enters the first stage in each step: microbatches, then any examples."""
        groups = get("shard")(_grouped(x, self._microbatches), sharding=(None, *self._batch))
        if self._stages == 1:
            return groups
        return get("concat")(groups, _repeated(groups[:1], self._stages - 1), axis=0)

    # XLA compiles a slice that is padded, and its transpose, to one collective permutation each.
    # For concatenations and lookups along an axis that is split, it exchanges more.

    def _shifted(self, entering: Any, held: Any) -> Any:
        """Returns what each stage computes next: the first what enters, others the stage before."""
        first = get("reshape")(entering, shape=(1, *entering.shape))
        if self._stages == 1:
            return first
        widths = ((1, 0), *[(0, 0)] * len(entering.shape))
        return get("where")(self._is(0, held), first, get("pad")(held[:-1], pad_width=widths))

    def _leaving(self, held: Any) -> Any:
        """Returns what the last stage holds."""
        if self._stages == 1:
            return held[0]
        mine = get("where")(self._is(self._stages - 1, held), held, 0)
        return get("cast")(get("sum")(mine, axis=0), dtype=held.dtype)

    def _is(self, stage: int, held: Any) -> Any:
        """Returns a mask of the values of one stage, which broadcasts to those of all."""
        return (np.arange(self._stages) == stage).reshape(-1, *[1] * (len(held.shape) - 1))


def _freely(function: Callable[..., Any], where: Sharding, *values: Any) -> Any:
    """Returns ``function(*values)``, computed on automatic axes and then split so."""
    mesh = _abstract_mesh()
    if not mesh.explicit_axes or not all(isinstance(one, jax.Array) for one in values):
        return function(*values)
    spec = _Spec(*on_mesh(where, mesh))
    return _auto_axes(function, axes=mesh.explicit_axes, out_sharding=spec)(*values)


def _repeated(value: Any, count: int) -> Any:
    """Returns copies of a value of length 1 along its first axis."""
    return get("broadcast_to")(value, shape=(count, *value.shape[1:]))


def _grouped(value: Any, count: int) -> Any:
    """Returns ``value`` with its first axis as two, the first of length ``count``."""
    length, *rest = value.shape
    return get("reshape")(value, shape=(count, length // count, *rest))


# Errors ------------------------------------------------------------------------------------------


def _lengths(layers: Any) -> list[int]:
    """Returns the number of layers, as each parameter tells it.

    Raises:
        ArgumentError: they differ, or there is no parameter.
    """
    shapes = [jnp.shape(one) if not hasattr(one, "shape") else one.shape
              for one in jax.tree.leaves(layers)]  # fmt: skip
    if not shapes or not all(shapes):
        got = "a number" if shapes else "none"
        raise ArgumentError(
            f"pipeline: layers must hold parameters, stacked along their first axes, got {got}"
        )
    lengths = [shape[0] for shape in shapes]
    if len(set(lengths)) > 1:
        raise ArgumentError(
            "pipeline: all parameters must be stacks of as many layers, got "
            f"{', '.join(map(str, dict.fromkeys(lengths)))}"
        )
    return lengths


def _require_divides(what: str, count: Any, of: str, length: int) -> None:
    if not isinstance(count, int) or count < 1 or length % count:
        raise ArgumentError(
            f"pipeline: {what} must divide the number of {of}, {length}, got {count!r}"
        )


def _require_fits(what: str, count: int, axis: Sharding) -> None:
    """Checks that the mesh of the context can split ``count`` things over ``axis``."""
    mesh = _abstract_mesh()
    for entry in on_mesh(axis, mesh):
        size = math.prod(mesh.shape[name] for name in axes_of(entry))
        if count % size:
            names = "+".join(axes_of(entry))
            raise ArgumentError(
                f"pipeline: {what} must be divisible by {size}, the size of mesh axis {names!r}, "
                f"got {count}"
            )


def _require_alike(result: Any, examples: Any) -> None:
    types = [(getattr(one, "shape", None), getattr(one, "dtype", None))
             for one in (result, examples)]  # fmt: skip
    if types[0] != types[1]:
        got, wanted = (f"{dtype}{list(shape or ())}" for shape, dtype in types)
        raise ArgumentError(
            f"pipeline: f must return examples of the type that it takes, {wanted}, got {got}"
        )
