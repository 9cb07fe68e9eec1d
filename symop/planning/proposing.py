"""``so.propose_rules``: shardings of parameters for a mesh and a limit of memory."""

import fnmatch
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from registry.errors import ArgumentError
from registry.shardings import MeshAxes, Sharding, as_sharding, axes_of, mesh_axes
from registry.tracebacks import api_boundary
from symop.planning.plan import Plan, TracedStep
from symop.symbol.symbol import Symbol

_ROUNDS = 3
"""The number of times that each group of parameters is looked at."""


@api_boundary
def propose_rules(
    loss: Symbol,
    mesh: Any,
    *,
    inputs: Sequence[str],
    optimizer: Any = None,
    memory: int | None = None,
    **shapes: Sequence[int],
) -> dict[str, Sharding]:
    """Returns rules with which a step fits into memory and exchanges little, by ``so.plan``.

    The search starts with plain data parallelism. It changes the sharding of one group of
    parameters at a time, the largest first, as long as a step then exceeds the memory by less, or
    sends fewer bytes. So the result is never worse than data parallelism. Parameters whose names
    differ by numbers alone form a group, such as the weights of equal layers.

    Args:
        loss: a symbol of shape ``()``.
        mesh: a ``jax.sharding.Mesh`` or ``AbstractMesh``.
        inputs: the names of the arguments that a batch feeds.
        optimizer: an optax gradient transformation.
        memory: the bytes that each device may hold; by default there is no limit.
        **shapes: the shapes of inputs that the graph does not declare.

    Returns:
        Rules for ``train.Trainer`` and ``so.plan``; no rules where nothing is better than data
        parallelism.

    Raises:
        ArgumentError: an argument is invalid, or no rules are found with which a step fits into
            the memory; the message tells the least that was found.
        UnknownTypeError: a shape is not known.

    Example:
        >>> import jax, symop as so
        >>> x = so.var("x", (8, 256))
        >>> loss = so.mean(so.square(so.fully_connected(x, units=256, name="layer")))
        >>> mesh = jax.sharding.AbstractMesh((8,), ("data",))
        >>> so.propose_rules(loss, mesh, inputs=["x"])
        {}
        >>> so.propose_rules(loss, mesh, inputs=["x"], memory=600_000)
        {'layer_weight': (None, 'data')}
    """
    if memory is not None and (not isinstance(memory, int) or memory < 1):
        raise ArgumentError(
            f"propose_rules: memory must be a positive number of bytes, got {memory!r}"
        )
    step = TracedStep("propose_rules", loss, inputs, optimizer, shapes)
    fixed = loss.shardings()
    groups = _groups([name for name in step.parameters if name not in fixed], list(step.types))
    chosen: dict[str, Sharding] = {}
    best = _cost(step.plan(mesh, {}), memory)
    for _ in range(_ROUNDS):
        before = best
        for pattern, names in sorted(groups.items(), key=lambda one: -_bytes(step, one[1])):
            for sharding in _candidates(step, names, mesh):
                rules = {**chosen, pattern: sharding}
                cost = _cost(step.plan(mesh, _of_names(rules, groups)), memory)
                if cost < best:
                    best, chosen = cost, rules
        if best == before:
            break
    if memory is not None and best[0]:
        raise ArgumentError(
            "propose_rules: memory must suffice for a step, of which the smallest plan found takes "
            f"{memory + best[0]} bytes of each device, got {memory}"
        )
    return {name: one for name, one in chosen.items() if one}


def _groups(names: Sequence[str], variables: Sequence[str]) -> dict[str, list[str]]:
    """Returns the names that differ by numbers alone, by a pattern that matches them.

    Where the pattern matches other ``variables`` as well, each name is a group.
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(re.sub(r"\d+", "*", name), []).append(name)
    groups = {}
    for pattern, members in alike.items():
        if len(members) > 1 and sorted(fnmatch.filter(variables, pattern)) == sorted(members):
            groups[pattern] = members
        else:
            groups.update({name: [name] for name in members})
    return groups


def _of_names(rules: dict[str, Sharding], groups: dict[str, list[str]]) -> dict[str, Sharding]:
    """Returns rules for each name: a pattern may match names of other groups, too."""
    return {name: one for pattern, one in rules.items() for name in groups[pattern]}


def _candidates(step: TracedStep, names: Sequence[str], mesh: Any) -> Iterator[Sharding]:
    """Yields the shardings of one or two axes that fit all parameters of a group."""
    shapes = [step.types[name].shape for name in names]
    ndim = len(shapes[0])
    if any(len(one) != ndim for one in shapes):
        return
    axes = tuple(mesh.axis_names)
    single: list[MeshAxes] = [*axes, *([axes] if len(axes) > 1 else [])]
    choices = [None, *single]
    for sharding in itertools.product(choices, repeat=min(ndim, 2)):
        used = mesh_axes(sharding)
        if len(set(used)) == len(used) and all(_fits(one, sharding, mesh) for one in shapes):
            yield as_sharding(sharding)


def _fits(shape: Sequence[int], sharding: Sharding, mesh: Any) -> bool:
    return all(
        length % math.prod(mesh.shape[axis] for axis in axes_of(entry)) == 0
        for length, entry in zip(shape, sharding, strict=False)
    )


def _bytes(step: TracedStep, names: Sequence[str]) -> int:
    types = [step.types[name] for name in names]
    return sum(math.prod(one.shape) * one.dtype.itemsize for one in types)


def _cost(plan: Plan, memory: int | None) -> tuple[int, int, int]:
    """Returns what is minimized: the bytes beyond the limit, those sent, and those held."""
    return max(0, plan.memory - memory) if memory is not None else 0, plan.moved, plan.memory
