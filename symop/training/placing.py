"""The state of training on a mesh: moments are split like their parameters."""

from collections.abc import Callable, Collection, Mapping
from operator import is_
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import sharding

from registry.shardings import as_sharding, only_over
from symop.runtime.placement import Placement

_auto_axes: Any = sharding.auto_axes  # JAX declares no types for it
_constraint: Any = jax.lax.with_sharding_constraint
_named: Any = sharding.NamedSharding
_Spec: Any = sharding.PartitionSpec

P = TypeVar("P")


def parameter_in(path: Any, leaf: Any, shapes: Mapping[str, Any]) -> str | None:
    """Returns the last name in the path of a leaf whose shape is that of the leaf, or None."""
    names = [key.key for key in path if isinstance(key, jax.tree_util.DictKey)]
    return next((name for name in reversed(names) if shapes.get(name) == jnp.shape(leaf)), None)


def shardings_of_state(placement: Placement, parts: Any) -> Any:
    """Returns the sharding of each leaf of a training state, a pytree with names in its paths.

    A leaf of the optimizer's state is split like the parameter in its path that has its shape.

    Raises:
        ArgumentError: a parameter or state cannot be split evenly.
    """
    shapes = {
        name: one.shape for part in (parts.params, parts.states) for name, one in part.items()
    }

    def placed(path: Any, leaf: Any) -> Any:
        owner = parameter_in(path, leaf, shapes)
        if owner is None:
            return placement.whole
        return placement.named(f"Trainer: {owner!r}", owner, jnp.shape(leaf))

    return jax.tree_util.tree_map_with_path(placed, parts)


class StatePlacement:
    """Puts parts of training states that were set by hand on the devices of a mesh."""

    def __init__(self, placement: Placement) -> None:
        """Creates the placement of states on the mesh of ``placement``."""
        self._placement = placement
        self._before: list[Any] = []

    def put(self, parts: P) -> P:
        """Returns a training state whose leaves are on the mesh; unchanged while JAX traces.

        The results of a compiled step share the shardings of those before, so that most calls
        compare identities alone.

        Raises:
            ArgumentError: a parameter or state cannot be split evenly.
        """
        leaves = jax.tree.leaves(parts)
        if any(isinstance(one, jax.core.Tracer) for one in leaves):
            return parts
        shardings = [getattr(one, "sharding", None) for one in leaves]
        if len(shardings) == len(self._before) and all(map(is_, shardings, self._before)):
            return parts
        where = shardings_of_state(self._placement, parts)
        result: P = jax.tree.map(self._placement.moved, parts, where)
        self._before = [one.sharding for one in jax.tree.leaves(result)]
        return result


def on_automatic_axes(placement: Placement, function: Callable[..., Any], results: Any) -> Any:
    """Returns ``function``, in which XLA chooses the shardings that none declares.

    Args:
        placement: the mesh, whose explicit axes are automatic inside of the function.
        function: a function of arrays.
        results: the shardings of its results, a pytree.
    """

    def constrained(*args: Any) -> Any:
        return _constraint(function(*args), results)

    axes = placement.mesh.abstract_mesh.explicit_axes
    if not axes:
        return constrained
    specs = jax.tree.map(lambda one: _only(one.spec, axes), results)
    automatic = set(placement.mesh.axis_names) - set(axes)
    if not automatic:
        return _auto_axes(function, axes=axes, out_sharding=specs)
    rest = jax.tree.map(
        lambda one: _named(one.mesh.abstract_mesh, _only(one.spec, automatic)), results
    )

    def mixed(*args: Any) -> Any:
        return _constraint(_auto_axes(function, axes=axes, out_sharding=specs)(*args), rest)

    return mixed


def _only(spec: Any, axes: Collection[str]) -> Any:
    """Returns a ``PartitionSpec`` without other mesh axes than ``axes``."""
    return _Spec(*only_over(as_sharding(spec), axes))
