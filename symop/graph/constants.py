"""Constants of a graph: numbers and arrays, their dtypes, and the range checks of integers."""

from typing import Any

import jax
import numpy as np

from registry.errors import ArgumentError
from registry.shapes import canonical, default_float, default_int
from registry.types import VarType, integer_limits, is_integer
from symop.graph.origins import built_at, user_origin


class HeldArray:
    """A constant array that compares by identity."""

    __slots__ = ("value",)

    def __init__(self, value: np.ndarray | jax.Array) -> None:
        self.value = value


def scalar_type(value: bool | int | float | complex) -> VarType:
    """Returns the type of a Python scalar."""
    if isinstance(value, bool):
        return VarType((), np.dtype(np.bool_))
    if isinstance(value, int):
        return VarType((), default_int(), weak=True)
    if isinstance(value, float):
        return VarType((), default_float(), weak=True)
    return VarType((), canonical(np.dtype(np.complex128)), weak=True)


def lasting(value: Any) -> np.ndarray | jax.Array:
    """Returns ``value`` as an array that no later write can change, in the dtype that JAX gives it.

    Raises:
        ArgumentError: The entries are not numbers, or are integers that the dtype cannot hold.
    """
    held = value if isinstance(value, jax.Array) else np.asarray(value)
    if held.dtype == object:
        raise ArgumentError(f"array: the entries must be numbers, got {value!r}")
    dtype = canonical(held.dtype)
    if held.dtype != dtype:
        held = _narrowed(np.asarray(held), dtype)
    elif held is value and isinstance(held, np.ndarray) and not _is_frozen(held):
        held = held.copy()
    return held


def _is_frozen(array: np.ndarray) -> bool:
    """Whether neither ``array`` nor the array it is a view of can be written to."""
    while not array.flags.writeable:
        if array.base is None or isinstance(array.base, bytes):
            return True
        if not isinstance(array.base, np.ndarray):
            return False
        array = array.base
    return False


def _narrowed(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if is_integer(dtype) and array.size:
        require_fits(int(array.min()), dtype)
        require_fits(int(array.max()), dtype)
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def require_fits(value: int, dtype: np.dtype) -> None:
    """Raises an error that names the user's line if ``value`` does not fit an integer ``dtype``."""
    least, most = integer_limits(dtype)
    if not least <= value <= most:
        raise ArgumentError(
            f"constant: an integer must fit {dtype.name} ({least} to {most}), "
            f"got {value}{built_at(user_origin())}"
        )
