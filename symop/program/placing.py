"""A program's values on a mesh: its feeds are split by examples, its states like parameters."""

from collections.abc import Mapping
from typing import Any

import jax

from registry.desc import VarDesc
from registry.naming import grad_name
from registry.shardings import Sharding
from symop.graph.shardings import Rules, declared_sharding
from symop.program.block import Block
from symop.runtime.placement import Declared, Placement, placed_by


def placement_of_block(block: Block, mesh: Any, rules: Rules | None) -> Placement | None:
    """Returns the placement of the fed and the kept values of a program; None without a mesh.

    Raises:
        ArgumentError: the mesh or a rule is invalid.
    """
    variables = {
        name: Declared(declared_sharding(var.attrs), len(var.shape or ()))
        for name, var in block.variables.items()
        if var.role != "intermediate"
    }
    inputs = [name for name in variables if block.variables[name].role == "argument"]
    placement = placed_by("place", variables, mesh, rules, inputs)
    if placement is not None:
        placement.shardings.update(_of_states(block.variables, placement.shardings))
    return placement


def _of_states(
    variables: Mapping[str, VarDesc], shardings: Mapping[str, Sharding]
) -> dict[str, Sharding]:
    """Returns the shardings of optimizers' states, which are those of their parameters."""
    result = {}
    parameters = {name: var for name, var in variables.items() if var.role == "parameter"}
    for name, var in variables.items():
        if var.role != "state" or name in shardings:
            continue
        owner = _owner(name, parameters)
        if owner in shardings and parameters[owner].shape == var.shape:
            result[name] = shardings[owner]
    return result


def _owner(name: str, parameters: Mapping[str, VarDesc]) -> str:
    """Returns the parameter after which an optimizer named a state, or an empty string."""
    starts = {f"{start}.": one for one in parameters for start in (one, grad_name(one))}
    matches = [start for start in starts if name.startswith(start)]
    return starts[max(matches, key=len)] if matches else ""


def make_on(placement: Placement | None, name: str, make: Any, key: Any) -> Any:
    """Returns ``make(key)``, no part of which is made on another device than its own."""
    if placement is None:
        return make(key)
    shape = jax.eval_shape(make, key)
    where = jax.tree.map(lambda one: placement.named(repr(name), name, one.shape), shape)
    return jax.jit(make, out_shardings=where)(key)
