"""The values of a graph on the devices of a mesh."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax import sharding

from registry.errors import ArgumentError, FeedError, nearest
from registry.shardings import (
    Sharding,
    constrained,
    mesh_axes,
    on_mesh,
    require_divisible,
)
from registry.values import SelectedRows
from symop.graph.naming import variables_of
from symop.graph.nodes import Node
from symop.graph.shardings import Rules, ndim_of, resolve, sharding_of

# Any: JAX declares no types for the following names.
_Mesh: Any = sharding.Mesh
_Spec: Any = sharding.PartitionSpec
_named: Any = sharding.NamedSharding
_set_mesh: Any = jax.set_mesh
_wait: Any = jax.block_until_ready
_from_parts: Any = jax.make_array_from_process_local_data

R = TypeVar("R")
Name = str | tuple[str, ...]
"""The name of a value, or of a stack of several values along a new first axis."""
BATCH_AXIS = "data"
"""The mesh axis that the first axis of an input is split over if nothing else is declared."""


class Placement:
    """A mesh, and how values are split over it, by name.

    Attributes:
        mesh: the mesh.
        shardings: the shardings by name; a value without one is whole on each device.
    """

    def __init__(self, mesh: Any, shardings: Mapping[str, Sharding]) -> None:
        """Creates a placement; axes that the mesh lacks split nothing."""
        self.mesh = mesh
        self.shardings = {name: on_mesh(one, mesh) for name, one in shardings.items()}

    def include(self, stacks: Mapping[str, Sequence[str]]) -> None:
        """Adds stacks of values along a new first axis, by the names of stacks and values."""
        self.shardings.update({name: self.sharding(tuple(each)) for name, each in stacks.items()})

    def current(self) -> AbstractContextManager[None]:
        """Returns a context in which the mesh is the current one."""
        context: AbstractContextManager[None] = _set_mesh(self.mesh)
        return context

    def sharding(self, name: Name) -> Sharding:
        """Returns the sharding of a value, or of a stack of values, by axes of the mesh."""
        if isinstance(name, str):
            return self.shardings.get(name, ())
        inner = self.shardings.get(name[0], ())
        return (None, *inner) if inner else ()

    def named(self, what: str, name: Name, shape: Sequence[int]) -> Any:
        """Returns the ``NamedSharding`` of a value of ``shape``.

        Raises:
            ArgumentError: the value cannot be split evenly.
        """
        known = self.sharding(name)
        require_divisible(what, tuple(shape), known, self.mesh)
        return _named(self.mesh, _Spec(*known))

    @property
    def whole(self) -> Any:
        """The ``NamedSharding`` of a value that is whole on each device."""
        return _named(self.mesh, _Spec())

    def finished(self, values: R) -> R:
        """Returns ``values``, on the CPU after they are computed.

        The devices that a CPU plays share a pool of threads. If one step starts before the last has
        ended, threads that wait for a collective of one may take those that the other needs, and
        XLA ends the process after some time.
        """
        if self.mesh.devices.flat[0].platform == "cpu":
            _wait(values)
        return values

    def put(self, what: str, name: str, value: Any) -> Any:
        """Returns ``value`` on the devices of the mesh.

        Of several processes, each gives the same whole value.
        """
        if isinstance(value, SelectedRows):
            return jax.device_put(value, self.whole)
        if isinstance(value, jax.core.Tracer):
            return constrained(value, self.sharding(name), what)
        where = self.named(what, name, np.shape(value))
        before = getattr(value, "sharding", None)
        if before is not None and before.is_equivalent_to(where, np.ndim(value)):
            return value
        return jax.device_put(value, where)

    def put_feed(self, what: str, feed: Mapping[str, Any]) -> dict[str, Any]:
        """Returns fed values on the mesh; of several processes, each gives the part it holds."""
        return {name: self._put_part(f"{what}: {name!r}", name, one) for name, one in feed.items()}

    def _put_part(self, what: str, name: str, value: Any) -> Any:
        """Returns an array of which each process gives the part that its devices hold.

        An array that spans several processes already is moved as it is.
        """
        if jax.process_count() == 1 or isinstance(value, jax.core.Tracer):
            return self.put(what, name, value)
        if isinstance(value, jax.Array) and not value.is_fully_addressable:
            return self.put(what, name, value)
        part, known = np.asarray(value), self.sharding(name)
        try:
            return _from_parts(_named(self.mesh, _Spec(*known)), part)
        except ValueError as error:
            raise FeedError(
                f"{what}: each process must give the part of its devices, got {part.shape} for "
                f"{known}: {error}"
            ) from None

    def constrained(self, name: Name, value: Any) -> Any:
        """Returns a traced value, split as declared; rows are where XLA puts them."""
        if isinstance(value, SelectedRows):
            return value
        return constrained(value, self.sharding(name), str(name))


class Declared(NamedTuple):
    """What is known of a variable.

    Attributes:
        sharding: the sharding that it declares, or None.
        ndim: the number of its axes, or None.
    """

    sharding: Sharding | None
    ndim: int | None


def placement_of(
    owner: str,
    outputs: Sequence[Node],
    mesh: Any,
    rules: Rules | None,
    inputs: Collection[str] = (),
) -> Placement | None:
    """Returns the placement of the variables of a graph; None without a mesh. See ``placed_by``."""
    return placed_by(owner, declarations(outputs), mesh, rules, inputs)


def declarations(outputs: Sequence[Node]) -> dict[str, Declared]:
    """Returns what is known of the variables of a graph."""
    return {
        name: Declared(sharding_of(node), ndim_of(node))
        for name, node in variables_of(outputs).items()
    }


def placed_by(
    owner: str,
    variables: Mapping[str, Declared],
    mesh: Any,
    rules: Rules | None,
    inputs: Collection[str] = (),
) -> Placement | None:
    """Returns the placement of variables; None without a mesh.

    The arguments are those of ``shardings_by``.

    Raises:
        ArgumentError: ``mesh`` is not a ``jax.sharding.Mesh``, or a rule is invalid.
    """
    if mesh is None:
        if rules is not None:
            raise ArgumentError(f"{owner}: rules must come with a mesh, got none")
        return None
    if not isinstance(mesh, _Mesh):
        raise ArgumentError(
            f"{owner}: mesh must be a jax.sharding.Mesh, as jax.make_mesh returns, got {mesh!r}"
        )
    return Placement(mesh, shardings_by(owner, variables, mesh, rules or {}, inputs))


def shardings_by(
    owner: str,
    variables: Mapping[str, Declared],
    mesh: Any,
    rules: Rules,
    inputs: Collection[str] = (),
) -> dict[str, Sharding]:
    """Returns the shardings of variables on a mesh.

    Args:
        owner: the caller, for messages.
        variables: the variables by name.
        mesh: the mesh.
        rules: the rules of the caller.
        inputs: the names of the variables that are split by examples if nothing else is said.

    Raises:
        ArgumentError: a rule matches no variable, names another axis than those of the mesh, or
            differs from a declared sharding; or no rule says how an input is split.
    """
    ruled = resolve(owner, rules, {name: one.ndim for name, one in variables.items()})
    _require_axes(owner, ruled, mesh)
    found: dict[str, Sharding] = {}
    for name, (declared, ndim) in variables.items():
        rule = ruled.get(name)
        if declared is not None and rule is not None and declared != rule:
            raise ArgumentError(
                f"{owner}: {name!r} must have one sharding, got {declared} where it is declared "
                f"and {rule} by a rule"
            )
        known = declared if rule is None else rule
        if known is not None:
            found[name] = known
        elif name in inputs and ndim != 0:
            found[name] = _batch_sharding(owner, name, mesh)
    return found


def current(placement: Placement | None) -> AbstractContextManager[None]:
    """Returns a context in which the mesh of ``placement``, if there is one, is the current one."""
    return nullcontext() if placement is None else placement.current()


def constrained_by(
    placement: Placement | None, names: Sequence[Name], values: Sequence[Any]
) -> list[Any]:
    """Returns traced values, split as their names say."""
    if placement is None:
        return list(values)
    return [placement.constrained(*pair) for pair in zip(names, values, strict=True)]


def _batch_sharding(owner: str, name: str, mesh: Any) -> Sharding:
    """Returns the sharding of an input for which none is declared: by examples.

    Raises:
        ArgumentError: the mesh has several axes, and none of them is ``BATCH_AXIS``.
    """
    if BATCH_AXIS in mesh.axis_names:
        return (BATCH_AXIS,)
    if len(mesh.axis_names) == 1:
        return (mesh.axis_names[0],)
    raise ArgumentError(
        f"{owner}: a rule must say how the input {name!r} is split, since no axis of the mesh is "
        f"called {BATCH_AXIS!r}, got the axes {', '.join(mesh.axis_names)}"
    )


def _require_axes(owner: str, rules: Mapping[str, Sharding], mesh: Any) -> None:
    """Checks that rules name axes of ``mesh``.

    Raises:
        ArgumentError: one names another axis.
    """
    for name, one in rules.items():
        for axis in mesh_axes(one):
            if axis not in mesh.axis_names:
                raise ArgumentError(
                    f"{owner}: the rule for {name!r} must name axes of the mesh, "
                    f"{', '.join(mesh.axis_names)}, got {axis!r}{nearest(axis, mesh.axis_names)}"
                )
