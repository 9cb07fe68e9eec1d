"""The values of a graph on the devices of a mesh."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

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

# Any: JAX declares no types for the following names.
_Mesh: Any = sharding.Mesh
_Spec: Any = sharding.PartitionSpec
_named: Any = sharding.NamedSharding
_set_mesh: Any = jax.set_mesh
_from_parts: Any = jax.make_array_from_process_local_data

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

    def __init__(self, owner: str, mesh: Any, shardings: Mapping[str, Sharding]) -> None:
        """Checks ``mesh`` and the axes that ``shardings`` name.

        Raises:
            ArgumentError: ``mesh`` is not a ``jax.sharding.Mesh``.
        """
        if not isinstance(mesh, _Mesh):
            raise ArgumentError(
                f"{owner}: mesh must be a jax.sharding.Mesh, as jax.make_mesh returns, got {mesh!r}"
            )
        self.mesh = mesh
        self.shardings = {name: on_mesh(one, mesh) for name, one in shardings.items()}

    @contextmanager
    def current(self) -> Iterator[None]:
        """Makes the mesh that of the context."""
        with _set_mesh(self.mesh):
            yield

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

    def put(self, what: str, name: str, value: Any) -> Any:
        """Returns ``value`` on the devices of the mesh.

        Of several processes, each gives the same whole value.
        """
        if isinstance(value, jax.core.Tracer):
            return constrained(value, self.sharding(name), what)
        where = self.named(what, name, np.shape(value))
        if getattr(value, "sharding", None) == where:
            return value
        return jax.device_put(value, where)

    def put_part(self, what: str, name: str, value: Any) -> Any:
        """Returns an array of which each process gives the part that its devices hold.

        An array that spans several processes already is moved as it is.
        """
        if jax.process_count() == 1 or isinstance(value, jax.core.Tracer):
            return self.put(what, name, value)
        if isinstance(value, jax.Array) and not value.is_fully_addressable:
            return self.put(what, name, value)
        part = np.asarray(value)
        known = self.sharding(name)
        where = _named(self.mesh, _Spec(*known))
        try:
            return _from_parts(where, part)
        except ValueError as error:
            raise FeedError(
                f"{what}: each process must give the part of its devices, got {part.shape} for "
                f"{known}: {error}"
            ) from None

    def constrained(self, name: Name, value: Any) -> Any:
        """Returns a traced value, split as declared."""
        return jax.tree.map(lambda one: constrained(one, self.sharding(name), str(name)), value)


def batch_sharding(owner: str, name: str, mesh: Any) -> Sharding:
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


def require_axes(owner: str, rules: Mapping[str, Sharding], mesh: Any) -> None:
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
