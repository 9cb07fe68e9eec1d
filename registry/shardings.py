"""Shardings as data: for each axis of an array, the mesh axes that it is split over.

A sharding names mesh axes only, so that it fits every mesh: axes that a mesh lacks split nothing.
"""

import math
import re
from collections.abc import Container, Iterable, Sequence
from typing import Any

import jax
from jax import lax, sharding

from registry.errors import ArgumentError, AttributeValueError
from registry.types import Shape

MeshAxes = str | tuple[str, ...] | None
"""The mesh axes that an axis of an array is split over: one, several (the first varies slowest), or
none."""
Sharding = tuple[MeshAxes, ...]

# Any: JAX declares no types for the following names.
_Spec: Any = sharding.PartitionSpec
_Types: Any = sharding.AxisType
_Mesh: Any = sharding.Mesh
_named: Any = sharding.NamedSharding
_reshard: Any = sharding.reshard
_place: Any = jax.device_put
_constraint: Any = lax.with_sharding_constraint

_NAME = re.compile(r"[^\W\d]\w*")
_LEGAL = "must hold a mesh axis, a tuple of mesh axes or None for each axis, each mesh axis once"


def as_sharding(value: Any) -> Sharding:
    """Returns the canonical form of a sharding, such as ``("data", None)`` or a ``PartitionSpec``.

    Axes at the end that are not split are left out.

    Raises:
        AttributeValueError: ``value`` is not a sharding.
    """
    if not isinstance(value, (tuple, list, _Spec)):
        raise AttributeValueError(f"{_LEGAL}, got {value!r}")
    entries = [_names(one, value) for one in value]
    names = [name for entry in entries for name in entry]
    if len(set(names)) < len(names):
        raise AttributeValueError(f"{_LEGAL}, got {value!r}")
    return split_over(entries)


def _names(entry: Any, sharding: Any) -> Sequence[str]:
    names = entry if isinstance(entry, (tuple, list)) else () if entry is None else (entry,)
    if not all(isinstance(one, str) and _NAME.fullmatch(one) for one in names):
        raise AttributeValueError(f"{_LEGAL}, got {sharding!r}")
    return names


def split_over(entries: Iterable[Sequence[str]]) -> Sharding:
    """Returns the sharding over ``entries``, the mesh axes of each axis, which are not checked."""
    result = [
        None if not names else names[0] if len(names) == 1 else tuple(names) for names in entries
    ]
    while result and result[-1] is None:
        result.pop()
    return tuple(result)


def stacked(placement: Sharding) -> Sharding:
    """Returns the sharding of a stack, along a new first axis, of arrays that are split so."""
    return (None, *placement) if placement else ()


def axes_of(entry: MeshAxes) -> tuple[str, ...]:
    """Returns the mesh axes of one entry of a sharding."""
    return () if entry is None else (entry,) if isinstance(entry, str) else entry


def axes_at(placement: Sharding, i: int) -> tuple[str, ...]:
    """Returns the mesh axes that axis ``i`` is split over."""
    return axes_of(placement[i]) if i < len(placement) else ()


def mesh_axes(placement: Sharding) -> tuple[str, ...]:
    """Returns all mesh axes of a sharding."""
    return tuple(axis for entry in placement for axis in axes_of(entry))


# As text -----------------------------------------------------------------------------------------


def sharding_text(placement: Sharding) -> str:
    """Returns a sharding as text, such as ``data, None`` or ``data+model``."""
    return ", ".join("+".join(axes_of(one)) or "None" for one in placement)


def parse_sharding(text: str) -> Sharding:
    """Returns the sharding that ``sharding_text`` wrote.

    Raises:
        AttributeValueError: the text is not that of a sharding.
    """
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    return as_sharding([None if part == "None" else tuple(part.split("+")) for part in parts])


# On a mesh ---------------------------------------------------------------------------------------


def on_mesh(placement: Sharding, mesh: Any) -> Sharding:
    """Returns the sharding without the axes that ``mesh`` lacks."""
    return only_over(placement, mesh.axis_names)


def only_over(placement: Sharding, names: Container[str]) -> Sharding:
    """Returns the sharding without other mesh axes than ``names``."""
    return split_over([one for one in axes_of(entry) if one in names] for entry in placement)


def require_divisible(what: str, shape: Shape, placement: Sharding, mesh: Any) -> None:
    """Checks that an array of ``shape`` can be split evenly over ``mesh``.

    Raises:
        ArgumentError: the array has too few axes, or the length of one is not divisible.
    """
    if len(placement) > len(shape):
        raise ArgumentError(
            f"{what}: the sharding must have at most {len(shape)} entries, the number of axes, "
            f"got {placement}"
        )
    for i, entry in enumerate(placement):
        parts = math.prod(mesh.shape[axis] for axis in axes_of(entry))
        if shape[i] % parts:
            raise ArgumentError(
                f"{what}: the length of axis {i} must be divisible by {parts}, the size of mesh "
                f"axis {sharding_text((entry,))!r}, got {shape[i]}"
            )


def constrained(value: Any, placement: Sharding, what: str = "shard") -> Any:
    """Returns ``value``, split over the current mesh as ``placement`` says.

    The mesh is the context's (``jax.set_mesh``), or else the one that ``value`` is on. Without a
    mesh, and inside of ``jax.shard_map``, where an array is the part of one device, the result is
    ``value``.

    Raises:
        ArgumentError: the array cannot be split evenly.
    """
    mesh = _mesh_of(value)
    if mesh is None or mesh.empty:
        return value
    free = {
        name
        for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True)
        if kind is not _Types.Manual
    }
    if not free:
        return value
    wanted = only_over(placement, free)
    require_divisible(what, value.shape, wanted, mesh)
    if isinstance(mesh, _Mesh) and not isinstance(value, jax.core.Tracer):
        return _place(value, _named(mesh, _Spec(*wanted)))
    return _traced(value, wanted, mesh)


def _mesh_of(value: Any) -> Any:
    """Returns the mesh of the context or of ``value``: an abstract one while JAX traces."""
    mesh: Any = sharding.get_abstract_mesh()
    if isinstance(value, jax.core.Tracer):
        return jax.typeof(value).sharding.mesh if mesh.empty else mesh
    own = getattr(getattr(value, "sharding", None), "mesh", None)
    if mesh.empty:
        return own
    try:
        return sharding.get_mesh()
    except ValueError:  # JAX traces, and the value is a constant
        return mesh


def _traced(value: Any, placement: Sharding, mesh: Any) -> Any:
    """Returns a traced value with its sharding: a constraint, and on explicit axes a type."""
    explicit, auto = set(mesh.explicit_axes), set(mesh.auto_axes)
    if explicit:
        value = _reshard(value, _named(mesh, _spec(only_over(placement, explicit), value.ndim)))
    if auto:
        value = _constraint(value, _named(mesh, _spec(only_over(placement, auto), value.ndim)))
    return value


def _spec(placement: Sharding, ndim: int) -> Any:
    return _Spec(*placement, *[None] * (ndim - len(placement)))
