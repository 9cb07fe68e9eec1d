"""The state of training on a mesh: moments are split like their parameters."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import sharding

from registry.errors import ArgumentError
from registry.shardings import Sharding
from symop.graph.nodes import Node
from symop.graph.shardings import Rules, resolve, sharding_of
from symop.runtime.placement import Placement, batch_sharding, require_axes

_auto_axes: Any = sharding.auto_axes  # JAX declares no types for it
_named: Any = sharding.NamedSharding
_Spec: Any = sharding.PartitionSpec


def shardings_on(
    owner: str, variables: Mapping[str, Node], inputs: Collection[str], mesh: Any, rules: Rules
) -> dict[str, Sharding]:
    """Returns the sharding of each variable: of a rule, as declared, or of a batch.

    Args:
        owner: the caller, for messages.
        variables: the variables by name.
        inputs: the names of the inputs.
        mesh: the mesh.
        rules: the rules of the caller.

    Raises:
        ArgumentError: a rule matches no variable, names another axis than those of the mesh, or
            differs from a declared sharding; or no rule says how an input is split.
    """
    ndims = {
        name: None if n.types is None else len(n.types[0].shape) for name, n in variables.items()
    }
    ruled = resolve(owner, rules, ndims)
    require_axes(owner, ruled, mesh)
    found: dict[str, Sharding] = {}
    for name, node in variables.items():
        declared, rule = sharding_of(node), ruled.get(name)
        if declared is not None and rule is not None and declared != rule:
            raise ArgumentError(
                f"{owner}: {name!r} must have one sharding, got {declared} where it is declared and "
                f"{rule} by a rule; symbol.with_sharding(rules) replaces what is declared"
            )
        if rule is not None or declared is not None:
            found[name] = declared if rule is None else rule
        elif name in inputs and ndims[name] != 0:
            found[name] = batch_sharding(owner, name, mesh)
    return found


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
        names = [key.key for key in path if isinstance(key, jax.tree_util.DictKey)]
        owner = next((n for n in reversed(names) if shapes.get(n) == jnp.shape(leaf)), None)
        if owner is None:
            return _named(placement.mesh, _Spec())
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
        return jax.lax.with_sharding_constraint(function(*given), results)

    axes = placement.mesh.abstract_mesh.explicit_axes
    if not axes:
        return constrained
    specs = jax.tree.map(lambda one: one.spec, results)
    return _auto_axes(function, axes=axes, out_sharding=specs)
