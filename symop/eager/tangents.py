"""Derivatives of functions of eager arrays in both modes, without a tape."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from registry.errors import ArgumentError, DTypeError, GradientError, ShapeError
from registry.types import VarType
from registry.var import Var
from symop.eager.modes import mode
from symop.eager.ndarray import NDArray
from symop.eager.segments import local
from symop.lowering.steps import type_of


def with_tangents(function: Callable[..., Any], xs: Any, tangents: Any) -> tuple[Any, Any]:
    """Returns the result of ``function`` for the arrays ``xs``, and its tangents.

    Raises:
        ArgumentError: ``xs`` and ``tangents`` differ in number or are not arrays.
        ShapeError, DTypeError: a tangent does not have the shape and dtype of its ``x``, or that
            dtype is not floating.
        GradientError: an array is being recorded; its tangents would be constants.
    """
    arrays, moving = _listed(xs), _listed(tangents)
    if len(arrays) != len(moving):
        raise ArgumentError(
            f"jvp: tangents must be one for each x ({len(arrays)}), got {len(moving)}"
        )
    primals = _arguments("jvp", arrays)
    directions = tuple(
        _moving("jvp", "tangent", i, one, x.type)
        for i, (one, x) in enumerate(zip(moving, primals, strict=True))
    )
    _refuse_recorded("jvp", "tangents", (*primals, *directions))
    with mode(False):
        results = jax.jvp(_on_values(function), primals, directions)
    return tuple(jax.tree_util.tree_map(NDArray, one) for one in results)


def gradients_at(function: Callable[..., Any], xs: Any, heads: Any = None) -> Any:
    """Returns the gradients of ``sum(function(*xs) * heads)`` at the arrays ``xs``.

    Raises:
        ArgumentError: ``xs`` or ``heads`` are not arrays, or ``heads`` has another nesting.
        ShapeError, DTypeError: a head does not have the shape and dtype of its result, or the dtype
            of an ``x`` or of a result is not floating.
        GradientError: an array is being recorded; its gradient would be a constant.
    """
    arrays = _listed(xs)
    primals = _arguments("grad", arrays)
    _refuse_recorded("grad", "gradients", primals)
    with mode(False):
        result, pull = jax.vjp(_on_values(function), *primals)
        gradients = pull(_heads(result, heads))
    return gradients[0] if not isinstance(xs, (list, tuple)) else list(gradients)


def _on_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns ``function`` with results that are arrays of JAX, which may be traced."""

    def run(*values: NDArray) -> Any:
        return jax.tree_util.tree_map(_value, function(*values), is_leaf=_is_array)

    return run


def _heads(result: Any, heads: Any) -> Any:
    """Returns the cotangents of the values nested in ``result``; ones where ``heads`` is None."""
    values, tree = jax.tree_util.tree_flatten(result)
    for i, one in enumerate(values):
        _require_floating("grad", "result", i, type_of(one))
    if heads is None:
        return jax.tree_util.tree_map(jnp.ones_like, result)
    nested, own = jax.tree_util.tree_flatten(heads, is_leaf=_is_array)
    if str(own) != str(tree):
        raise ArgumentError(
            f"grad: head_grads must be nested as the result of the function, {tree}, got {own}"
        )
    pairs = enumerate(zip(nested, values, strict=True))
    moving = [_moving("grad", "head", i, one, type_of(x)).value for i, (one, x) in pairs]
    return jax.tree_util.tree_unflatten(tree, moving)


def _refuse_recorded(owner: str, what: str, arrays: Sequence[NDArray]) -> None:
    if local.state.taped and any(one.is_recorded for one in arrays):
        raise GradientError(
            f"{owner}: the arrays must not be recorded, for {what} are not; record inside of the "
            "function for a gradient that moves, or call it outside of record()"
        )


def _arguments(owner: str, values: Sequence[Any]) -> tuple[NDArray, ...]:
    """Returns the arguments of a function as arrays that can move."""
    result = tuple(_array(owner, "x", i, one) for i, one in enumerate(values))
    for i, one in enumerate(result):
        _require_floating(owner, "x", i, one.type)
    return result


def _is_array(one: Any) -> bool:
    return isinstance(one, NDArray)


def _value(one: Any) -> Any:
    return one.value if isinstance(one, NDArray) else one


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _array(owner: str, what: str, place: int, value: Any) -> NDArray:
    if isinstance(value, NDArray):
        return value
    if isinstance(value, Var):
        raise ArgumentError(
            f"{owner}: {what} {place} of a function must be an array, got a "
            f"{type(value).__name__}; call the function on symbols, and pass its result"
        )
    try:
        return NDArray(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{owner}: {what} {place} of a function must be an array, got {type(value).__name__}"
        ) from None


def _require_floating(owner: str, what: str, place: int, type: VarType) -> None:
    if not type.differentiable:
        raise DTypeError(
            f"{owner}: {what} {place} must be floating to move, got {type.dtype.name}; let the "
            "function close over what does not move"
        )


def _moving(owner: str, what: str, place: int, direction: Any, type: VarType) -> NDArray:
    """Returns a tangent or cotangent of a value of ``type``; casts a number to its dtype."""
    result = _array(owner, what, place, direction)
    if isinstance(direction, (int, float)):
        result = result.astype(type.dtype)
    value = {"tangent": "x", "head": "result"}[what]
    if result.shape != type.shape:
        raise ShapeError(
            f"{owner}: {what} {place} must have the shape of {value} {place}, {type.shape}, "
            f"got {result.shape}"
        )
    if result.dtype != type.dtype:
        raise DTypeError(
            f"{owner}: {what} {place} must have the dtype of {value} {place}, {type.dtype.name}, "
            f"got {result.dtype.name}"
        )
    return result
