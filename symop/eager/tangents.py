"""Forward-mode differentiation of functions of eager arrays, without a tape."""

from collections.abc import Callable
from typing import Any

import jax

from registry.errors import ArgumentError, DTypeError, GradientError, ShapeError
from registry.types import VarType
from registry.var import Var
from symop.eager.modes import mode
from symop.eager.ndarray import NDArray
from symop.eager.segments import local


def with_tangents(function: Callable[..., Any], xs: Any, tangents: Any) -> tuple[Any, Any]:
    """Returns the result of ``function`` for the arrays ``xs``, and its tangents.

    Raises:
        ArgumentError: ``xs`` and ``tangents`` differ in number or are not arrays.
        ShapeError, DTypeError: a tangent does not have the shape and dtype of its ``x``, or that
            dtype is not floating.
        GradientError: an array is being recorded; its tangents would be constants.
    """
    given, moving = _listed(xs), _listed(tangents)
    if len(given) != len(moving):
        raise ArgumentError(
            f"jvp: tangents must be one for each x ({len(given)}), got {len(moving)}"
        )
    primals = tuple(_array("x", i, one) for i, one in enumerate(given))
    directions = tuple(
        _tangent(i, one, x.type) for i, (one, x) in enumerate(zip(moving, primals, strict=True))
    )
    if local.state.taped and any(one.is_recorded for one in (*primals, *directions)):
        raise GradientError(
            "jvp: the arrays must not be recorded, for tangents are not; record inside of the "
            "function for a gradient that moves, or call it outside of record()"
        )

    def run(*values: NDArray) -> Any:
        return jax.tree_util.tree_map(_value, function(*values), is_leaf=_is_array)

    with mode(False):
        found = jax.jvp(run, primals, directions)
    return tuple(jax.tree_util.tree_map(NDArray, one) for one in found)


def _is_array(one: Any) -> bool:
    return isinstance(one, NDArray)


def _value(one: Any) -> Any:
    return one.value if isinstance(one, NDArray) else one


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _array(what: str, place: int, given: Any) -> NDArray:
    if isinstance(given, NDArray):
        return given
    if isinstance(given, Var):
        raise ArgumentError(
            f"jvp: {what} {place} of a function must be an array, got a {type(given).__name__}; "
            "call the function on symbols, and pass its result"
        )
    try:
        return NDArray(given)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"jvp: {what} {place} of a function must be an array, got {type(given).__name__}"
        ) from None


def _tangent(place: int, given: Any, type: VarType) -> NDArray:
    """Returns the tangent of an argument of ``type`` as an array; casts a number to its dtype."""
    if not type.differentiable:
        raise DTypeError(
            f"jvp: x {place} must be floating to move, got {type.dtype.name}; let the function "
            "close over what does not move"
        )
    result = _array("tangent", place, given)
    if isinstance(given, (int, float)):
        result = result.astype(type.dtype)
    if result.shape != type.shape:
        raise ShapeError(
            f"jvp: tangent {place} must have the shape of x {place}, {type.shape}, "
            f"got {result.shape}"
        )
    if result.dtype != type.dtype:
        raise DTypeError(
            f"jvp: tangent {place} must have the dtype of x {place}, {type.dtype.name}, got "
            f"{result.dtype.name}"
        )
    return result
