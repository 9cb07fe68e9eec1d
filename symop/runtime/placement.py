"""The values of a graph on the devices of a mesh."""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax import sharding

from registry.errors import ArgumentError, FeedError, nearest
from registry.shardings import (
    Sharding,
    axes_at,
    constrained,
    mesh_axes,
    on_mesh,
    require_divisible,
    stacked,
)
from registry.values import SelectedRows
from symop.graph.naming import variables_of
from symop.graph.nodes import Node
from symop.graph.shardings import Rules, ndim_of, resolve, sharding_of
from symop.runtime.packing import is_traced
from symop.runtime.processes import Agreement, Rows, Share, processes_of

# Any: JAX declares no types for the following names.
_Mesh: Any = sharding.Mesh
_AbstractMesh: Any = sharding.AbstractMesh
_Spec: Any = sharding.PartitionSpec
_named: Any = sharding.NamedSharding
_set_mesh: Any = jax.set_mesh
_use_abstract_mesh: Any = sharding.use_abstract_mesh
_get_abstract_mesh: Any = sharding.get_abstract_mesh
_wait: Any = jax.block_until_ready
_from_parts: Any = jax.make_array_from_process_local_data
_from_callback: Any = jax.make_array_from_callback

R = TypeVar("R")
N = TypeVar("N", bound="Name")
Name = str | tuple[str, ...]
"""The name of a value, or of a stack of several values along a new first axis."""
BATCH_AXIS = "data"
"""The mesh axis that the first axis of an input is split over if nothing else is declared."""


class Placement:
    """A mesh, and how values are split over it, by name.

    Attributes:
        mesh: the mesh.
        shardings: the shardings by name; a value without one is whole on each device.
        spans: whether the devices belong to several processes.
    """

    def __init__(
        self,
        mesh: Any,
        shardings: Mapping[str, Sharding],
        batches: Mapping[str, Sharding] | None = None,
    ) -> None:
        """Creates a placement; axes that the mesh lacks split nothing.

        Args:
            mesh: the mesh.
            shardings: the shardings by name.
            batches: the shardings of values that may turn out to be numbers, which stay whole.
        """
        self.mesh = mesh
        self.spans = len(processes_of(mesh)) > 1
        self._is_of_cpu = mesh.devices.flat[0].platform == "cpu"
        self._agreement = Agreement(mesh)
        self._places: dict[tuple[str, int], tuple[tuple[int, ...], ...] | None] = {}
        self._there: dict[Name, Any] = {}
        self.shardings = {name: on_mesh(one, mesh) for name, one in shardings.items()}
        self._batches = dict(batches or {})

    def include(self, stacks: Mapping[str, Sequence[str]]) -> None:
        """Adds stacks of values along a new first axis, by the names of stacks and values."""
        self.shardings.update({name: self.sharding(tuple(each)) for name, each in stacks.items()})

    def current(self) -> AbstractContextManager[None]:
        """Returns a context in which the mesh is the current one."""
        try:
            context: AbstractContextManager[None] = _set_mesh(self.mesh)
        except ValueError:  # JAX traces
            context = _use_abstract_mesh(self.mesh.abstract_mesh)
        return context

    def around_call(self) -> AbstractContextManager[None]:
        """Returns a context for calls of a function that enters the mesh where JAX traces it.

        If another mesh is the current one, JAX enters this mesh outside of a trace only.
        """
        return nullcontext() if _get_abstract_mesh().empty else self.current()

    def sharding(self, name: Name, ndim: int | None = None) -> Sharding:
        """Returns the sharding of a value, or of a stack of values, by axes of the mesh.

        Args:
            name: the name of the value.
            ndim: the number of its axes, if it is known.
        """
        if not isinstance(name, str):
            return stacked(self.sharding(name[0]))
        if name in self._batches:
            return () if ndim == 0 else self._batches[name]
        return self.shardings.get(name, ())

    def named(self, what: str, name: Name, shape: Sequence[int]) -> Any:
        """Returns the ``NamedSharding`` of a value of ``shape``.

        Raises:
            ArgumentError: the value cannot be split evenly.
        """
        sharding = self.sharding(name, len(shape))
        require_divisible(what, tuple(shape), sharding, self.mesh)
        return _named(self.mesh, _Spec(*sharding))

    @property
    def whole(self) -> Any:
        """The ``NamedSharding`` of a value that is whole on each device."""
        return _named(self.mesh, _Spec())

    def finished(self, values: R) -> R:
        """Returns ``values``, on the CPU after they are computed.

        The devices that a CPU plays share a pool of threads. If one step starts before the last has
        ended, threads that wait for a collective of one may take those that the other needs, and
        XLA ends the process after some time.

        Raises:
            FeedError: the step failed because another process has given another part of a batch.
        """
        if self._is_of_cpu and not is_traced(values):
            try:
                _wait(values)
            except jax.errors.JaxRuntimeError as error:
                self._agreement.explain(error)
                raise
        return values

    def put_all(self, values: Mapping[N, Any]) -> dict[N, Any]:
        """Returns values on the devices of the mesh, as ``put`` does."""
        return {
            name: one if self.has(name, one) else self.put(repr(name), name, one)
            for name, one in values.items()
        }

    def has(self, name: Name, value: Any) -> bool:
        """Whether ``value`` has the same sharding as a value of this name that was there before.

        It compares the identity of shardings: the results of a compiled function share them.
        """
        before = self._there.get(name)
        return before is not None and getattr(value, "sharding", None) is before

    def put(self, what: str, name: Name, value: Any) -> Any:
        """Returns ``value`` on the devices of the mesh.

        Of several processes, each gives the same whole value.

        Raises:
            ArgumentError: the value cannot be split evenly.
        """
        if isinstance(value, SelectedRows):
            there = [_is_on(self.mesh, one) for one in jax.tree.leaves(value)]
            return value if all(there) else jax.device_put(value, self.whole)
        if isinstance(value, jax.core.Tracer):
            return constrained(value, self.sharding(name, value.ndim), what)
        value = self.moved(value, self.named(what, name, np.shape(value)))
        self._there[name] = value.sharding
        return value

    def moved(self, value: Any, where: Any) -> Any:
        """Returns ``value`` where a ``NamedSharding`` of the mesh says."""
        before = getattr(value, "sharding", None)
        # Explicit axes are part of the type of an array.
        same = getattr(before, "mesh", None) == self.mesh or not _has_explicit(before, self.mesh)
        if before is not None and same and before.is_equivalent_to(where, np.ndim(value)):
            return value
        return jax.device_put(value if hasattr(value, "dtype") else np.asarray(value), where)

    def put_feed(
        self, what: str, feed: Mapping[str, Any], *, agreed: bool = False
    ) -> dict[str, Any]:
        """Returns fed values on the mesh.

        Of several processes, each gives the part that its devices hold, or, by ``Share``, the same
        whole values. An array that spans the processes already is moved as it is.

        Args:
            what: the caller, for messages.
            feed: the values by name.
            agreed: whether the processes are known to give parts of one batch.

        Raises:
            ArgumentError: a value cannot be split evenly.
            FeedError: the processes do not give parts of one batch.
        """
        parts = {n: one for n, one in feed.items() if self.spans and not _is_spread(one)}
        rest = {
            n: one if self.has(n, one) else self.put(f"{what}: {n!r}", n, one)
            for n, one in feed.items()
            if n not in parts
        }
        return (
            rest | self._put_parts(what, parts, isinstance(feed, Share), agreed) if parts else rest
        )

    def _put_parts(
        self, what: str, parts: Mapping[str, Any], whole: bool, agreed: bool
    ) -> dict[str, Any]:
        """Returns arrays of which each process gives its part, or of a ``Share``, all."""
        values = {n: one if isinstance(one, Rows) else np.asarray(one) for n, one in parts.items()}
        arrays = {}
        for name, one in values.items():
            own = f"{what}: {name!r}"
            shape = one.shape if whole else self.whole_shape(own, name, one.shape)
            put = _from_share if whole else _from_parts
            arrays[name] = put(self.named(own, name, shape), one, shape)
        if not agreed:
            places = {n: None if whole else self._place(n, one.ndim) for n, one in arrays.items()}
            self._agreement.expect(what, arrays, values, places)
        return arrays

    def whole_shape(self, what: str, name: str, shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of the array of which this process gives a part of ``shape``.

        Raises:
            FeedError: the devices of this process cannot hold equal pieces of the part.
        """
        counts = self._counts(name, len(shape))
        for i, (held, _) in enumerate(counts):
            if shape[i] % held:
                raise FeedError(
                    f"{what}: the length of axis {i} must be divisible by {held}, the number of "
                    f"pieces that the devices of this process hold, got {shape[i]}"
                )
        return tuple(n // held * all for n, (held, all) in zip(shape, counts, strict=True))

    def pieces(self, name: str) -> int:
        """Returns the number of pieces that the first axis of a value is split into."""
        return math.prod(self.mesh.shape[axis] for axis in axes_at(self.sharding(name), 0))

    def part_length(self, what: str, name: str, shape: Sequence[int]) -> int:
        """Returns the length of the first axis of this process's part of an array of ``shape``.

        Raises:
            ArgumentError: the array cannot be split evenly.
        """
        self.named(what, name, shape)
        held, all = self._counts(name, len(shape))[0]
        return shape[0] // all * held

    def _counts(self, name: str, ndim: int) -> list[tuple[int, int]]:
        """Returns the number of pieces of each axis: those of this process, and all of them."""
        sharding = self.sharding(name, ndim)
        if len(sharding) > ndim:
            require_divisible(repr(name), (1,) * ndim, sharding, self.mesh)
        sizes = self._sizes(sharding, ndim)
        place = self._place(name, ndim)
        if place is None:
            return [(size, size) for size in sizes]
        return [(len({piece[i] for piece in place}), sizes[i]) for i in range(ndim)]

    def _place(self, name: str, ndim: int) -> tuple[tuple[int, ...], ...] | None:
        """Returns which pieces of a value this process holds; None if each process holds all."""
        if (name, ndim) not in self._places:
            sharding = self.sharding(name, ndim)
            shape = self._sizes(sharding, ndim)
            pieces: dict[int, set[tuple[int, ...]]] = {}
            for device, index in (
                _named(self.mesh, _Spec(*sharding)).devices_indices_map(tuple(shape)).items()
            ):
                own = pieces.setdefault(device.process_index, set())
                own.add(tuple(one.start or 0 for one in index))
            everywhere = all(len(own) == math.prod(shape) for own in pieces.values())
            here = tuple(sorted(pieces.get(jax.process_index(), ())))
            self._places[name, ndim] = None if everywhere else here
        return self._places[name, ndim]

    def _sizes(self, sharding: Sharding, ndim: int) -> list[int]:
        """Returns the number of parts of each axis."""
        axes = [axes_at(sharding, i) for i in range(ndim)]
        return [math.prod(self.mesh.shape[axis] for axis in each) for each in axes]

    def constrained(self, name: Name, value: Any) -> Any:
        """Returns a traced value, split as declared; rows are where XLA puts them."""
        if isinstance(value, SelectedRows):
            return value
        return constrained(value, self.sharding(name, value.ndim), str(name))


def _has_explicit(before: Any, mesh: Any) -> bool:
    """Whether a mesh, or that of the sharding ``before``, has explicit axes."""
    meshes = [mesh, *([before.mesh] if hasattr(before, "mesh") else [])]
    return any(one.abstract_mesh.explicit_axes for one in meshes)


def _is_on(mesh: Any, value: Any) -> bool:
    """Whether an array is on the devices of ``mesh``, whatever each of them holds."""
    own = getattr(getattr(value, "sharding", None), "mesh", None)
    return own is not None and own == mesh


def _is_spread(value: Any) -> bool:
    """Whether ``value`` spans several processes already, or is traced."""
    return isinstance(value, jax.Array) and (
        isinstance(value, jax.core.Tracer) or not value.is_fully_addressable
    )


def _from_share(where: Any, value: Any, shape: tuple[int, ...]) -> Any:
    """Returns an array of which each process reads the pieces that its devices hold."""
    pieces: dict[str, Any] = {}

    def piece(index: Any) -> Any:
        key = repr(index)
        if key not in pieces:
            pieces[key] = np.asarray(value[index])
        return pieces[key]

    return _from_callback(shape, where, piece)


class MeshRecord(NamedTuple):
    """A mesh as a pickle holds it.

    Attributes:
        shape: the sizes of the axes by name.
        kinds: the types of the axes.
        devices: the numbers of the devices.
    """

    shape: tuple[tuple[str, int], ...]
    kinds: tuple[Any, ...]
    devices: tuple[int, ...]

    @classmethod
    def of(cls, placement: Placement | None) -> "MeshRecord | None":
        """Returns the record of the mesh of ``placement``; None without one."""
        if placement is None:
            return None
        mesh = placement.mesh
        numbers = tuple(device.id for device in mesh.devices.flat)
        return cls(tuple(mesh.shape.items()), tuple(mesh.axis_types), numbers)

    def mesh(self) -> Any:
        """Returns the mesh.

        Raises:
            ArgumentError: the process lacks a device.
        """
        there = {device.id: device for device in jax.devices()}
        if not there.keys() >= set(self.devices):
            raise ArgumentError(
                f"pickle: the mesh must be of devices of this process, got {len(self.devices)} "
                f"devices where there are {len(there)}"
            )
        names, sizes = zip(*self.shape, strict=True)
        devices = np.array([there[one] for one in self.devices]).reshape(sizes)
        return _Mesh(devices, names, axis_types=self.kinds)


class Declared(NamedTuple):
    """The known properties of a variable.

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


def _require_mesh(owner: str, mesh: Any) -> None:
    """Checks that ``mesh`` has devices.

    Raises:
        ArgumentError: it is not a mesh, or an abstract one.
    """
    if isinstance(mesh, _Mesh):
        return
    there = ""
    if isinstance(mesh, _AbstractMesh):
        there = f", which has no devices; there are {jax.device_count()}, and it needs {mesh.size}"
    raise ArgumentError(
        f"{owner}: mesh must be a jax.sharding.Mesh, as jax.make_mesh returns, got {mesh!r}{there}"
    )


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

    Args:
        owner: the caller, for messages.
        variables: the variables by name.
        mesh: the mesh.
        rules: the rules of the caller.
        inputs: the names of the variables that are split by examples if nothing else is said.

    Raises:
        ArgumentError: ``mesh`` is not a ``jax.sharding.Mesh``, or a rule is invalid.
    """
    if mesh is None:
        if rules is not None:
            raise ArgumentError(f"{owner}: rules must come with a mesh, got none")
        return None
    _require_mesh(owner, mesh)
    stated = stated_shardings(owner, variables, mesh, rules or {})
    batches = batch_shardings(owner, variables, mesh, [n for n in inputs if n not in stated])
    open = {name: one for name, one in batches.items() if variables[name].ndim is None}
    return Placement(mesh, stated | {n: batches[n] for n in batches if n not in open}, open)


def stated_shardings(
    owner: str, variables: Mapping[str, Declared], mesh: Any, rules: Rules
) -> dict[str, Sharding]:
    """Returns the shardings of variables by declarations and rules.

    The arguments are those of ``placed_by``.

    Raises:
        ArgumentError: a rule matches no variable, names another axis than those of the mesh, or
            differs from a declared sharding.
    """
    ruled = resolve(owner, rules, {name: one.ndim for name, one in variables.items()})
    _require_axes(owner, ruled, mesh)
    result = {n: one.sharding for n, one in variables.items() if one.sharding is not None}
    for name, rule in ruled.items():
        if result.setdefault(name, rule) != rule:
            raise ArgumentError(
                f"{owner}: {name!r} must have one sharding, got {result[name]} where it is "
                f"declared and {rule} by a rule"
            )
    return result


def batch_shardings(
    owner: str, variables: Mapping[str, Declared], mesh: Any, inputs: Collection[str]
) -> dict[str, Sharding]:
    """Returns the shardings of inputs by examples: over ``BATCH_AXIS`` or the only axis.

    The arguments are those of ``placed_by``. A number is not split.

    Raises:
        ArgumentError: the mesh has several axes, and none of them is ``BATCH_AXIS``.
    """
    names = [name for name in inputs if name in variables and variables[name].ndim != 0]
    axes = mesh.axis_names
    axis = BATCH_AXIS if BATCH_AXIS in axes else axes[0]
    if names and axis != BATCH_AXIS and len(axes) > 1:
        raise ArgumentError(
            f"{owner}: a rule must say how the input {names[0]!r} is split, since no axis of the "
            f"mesh is called {BATCH_AXIS!r}, got the axes {', '.join(axes)}"
        )
    return dict.fromkeys(names, (axis,))


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
