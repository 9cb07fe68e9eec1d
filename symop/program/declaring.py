"""Checks of a new variable's declaration: shape, dtype and initial value."""

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from registry.desc import VarDesc
from registry.errors import ArgumentError
from registry.shapes import canonical, default_float
from registry.shardings import MeshAxes
from registry.types import DType, VarKind, as_dtype
from symop.graph.shardings import sharding_attribute
from symop.runtime.initial import initial_attribute


def variable_record(
    role: str,
    name: str,
    shape: Sequence[int] | int,
    dtype: Any = None,
    *,
    initial: Any = None,
    stops: bool = False,
    kind: str = VarKind.LOD_TENSOR.value,
    sharding: Sequence[MeshAxes] | None = None,
) -> VarDesc:
    """Returns the record of a variable that is fed or persists between runs.

    Raises:
        ArgumentError: the shape, the dtype, the initial value or the sharding is invalid.
    """
    known = default_float() if dtype is None else canonical(_dtype(name, dtype))
    lengths = _lengths(name, shape)
    attrs = initial_attribute(f"program: {name!r}", initial, tuple(lengths), known)
    attrs |= sharding_attribute(f"program: {name!r}", sharding, len(lengths))
    return VarDesc(name, lengths, known.name, str(kind), role, stops, attrs)


def _lengths(name: str, shape: Sequence[int] | int) -> list[int]:
    lengths = [shape] if isinstance(shape, SupportsIndex) else list(shape)
    if not all(_is_length(one) for one in lengths):
        raise ArgumentError(
            f"program: the shape of {name!r} must hold lengths of axes, all known when a program "
            f"is built, got {shape!r}"
        )
    return [one.__index__() for one in lengths]


def _is_length(one: Any) -> bool:
    whole = isinstance(one, SupportsIndex) and not isinstance(one, (bool, np.bool_))
    return whole and one.__index__() >= 0


def _dtype(name: str, dtype: Any) -> DType:
    try:
        return as_dtype(dtype)
    except TypeError:
        raise ArgumentError(f"program: {name!r} must have a dtype, got {dtype!r}") from None
