"""The state of training on a mesh: moments are split like their parameters."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import sharding

from symop.runtime.placement import Placement

_auto_axes: Any = sharding.auto_axes  # JAX declares no types for it
_constraint: Any = jax.lax.with_sharding_constraint
_named: Any = sharding.NamedSharding
_Spec: Any = sharding.PartitionSpec


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


def on_automatic_axes(placement: Placement, function: Callable[..., Any], results: Any) -> Any:
    """Returns ``function``, in which XLA chooses the shardings that none declares.

    Args:
        placement: the mesh, whose explicit axes are automatic inside of the function.
        function: a function of arrays.
        results: the shardings of its results, a pytree.
    """

    def constrained(*given: Any) -> Any:
        return _constraint(function(*given), results)

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

    def mixed(*given: Any) -> Any:
        found = _auto_axes(function, axes=axes, out_sharding=specs)(*given)
        return _constraint(found, rest)

    return mixed


def _only(spec: Any, axes: Collection[str]) -> Any:
    """Returns a ``PartitionSpec`` without other mesh axes than ``axes``."""
    entries = [() if one is None else (one,) if isinstance(one, str) else one for one in spec]
    chosen = [tuple(axis for axis in one if axis in axes) for one in entries]
    return _Spec(*[one or None for one in chosen])
