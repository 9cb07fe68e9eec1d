"""``so.jvp``: forward mode, of symbols as graphs and of functions of eager arrays at once."""

from collections.abc import Callable
from typing import Any, Literal

from registry.errors import ArgumentError, DTypeError, ShapeError
from registry.types import VarType
from registry.var import Var
from symop import autograd, building
from symop.ndarray import NDArray
from symop.symbol import Symbol


def jvp(ys: Any, xs: Any, tangents: Any, *, unreachable: Literal["error", "zero"] = "error") -> Any:
    """Tangents of ``ys`` when ``xs`` move along ``tangents``: forward mode.

    Of symbols they are symbols. Every gradient maker is linear in its cotangent, and its
    transpose is used here. Of a function they are computed at once, beside its value, and no
    tape is kept; with a function that returns a gradient they are Hessian-vector products.

    Args:
        ys: a symbol or a list of them; or a function of arrays that returns one or several.
        xs: a symbol, variable or not, or a list of them; the arguments of a function.
        tangents: for each of ``xs`` the direction in which it moves.
        unreachable: what to do when a symbol among ``ys`` depends on none of ``xs``: raise an
            error, or return zeros. What a function returns moves by zero then.

    Returns:
        For symbols the tangents, in the form of ``ys``. For a function what it returns, and the
        tangents in the same form: eager arrays, whatever kind of arrays ``xs`` are.

    Raises:
        ArgumentError: ``xs`` and ``tangents`` differ in number or are no arrays, or ``ys`` is an
            eager array, of which it is too late to ask how it moves.
        ShapeError, DTypeError: a tangent is not of the type of its ``x``, or that is not floating.
        DisconnectedError: a symbol among ``ys`` depends on none of ``xs``.
        NotLinearError: an operator on the way has a gradient that no forward mode belongs to.
        NotDifferentiableError: the derivative is undefined.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> float(so.jvp(x * x, x, so.var("v", shape=())).eval(x=3.0, v=1.0))
        6.0
        >>> so.jvp(lambda x: x * x, so.nd.array(3.0), so.nd.array(1.0))
        (NDArray(9., dtype=float32), NDArray(6., dtype=float32))
    """
    if any(isinstance(one, NDArray) for one in (ys if isinstance(ys, (list, tuple)) else [ys])):
        raise ArgumentError(
            "jvp: ys must be a symbol or a function of xs, got an eager array, which is computed "
            "already; pass the function that computes it"
        )
    if callable(ys) and not isinstance(ys, Symbol):
        return _of_function(ys, xs, tangents)
    return building.jvp(ys, xs, tangents, unreachable=unreachable)


def _of_function(function: Callable[..., Any], xs: Any, tangents: Any) -> tuple[Any, Any]:
    given, moving = _listed(xs), _listed(tangents)
    if len(given) != len(moving):
        raise ArgumentError(
            f"jvp: tangents must be one for each x ({len(given)}), got {len(moving)}"
        )
    primals = [_array("x", i, one) for i, one in enumerate(given)]
    directions = [
        _tangent(i, one, x.type) for i, (one, x) in enumerate(zip(moving, primals, strict=True))
    ]
    return autograd.jvp(function, primals, directions)


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
    """The direction in which an argument of ``type`` moves; a number is of its dtype."""
    if not type.differentiable:
        raise DTypeError(
            f"jvp: x {place} must be floating to move, got {type.dtype.name}; let the function "
            "close over what does not move"
        )
    made = _array("tangent", place, given)
    if isinstance(given, (int, float)):
        made = made.astype(type.dtype)
    if made.shape != type.shape:
        raise ShapeError(
            f"jvp: tangent {place} must have the shape of x {place}, {type.shape}, got {made.shape}"
        )
    if made.dtype != type.dtype:
        raise DTypeError(
            f"jvp: tangent {place} must have the dtype of x {place}, {type.dtype.name}, got "
            f"{made.dtype.name}"
        )
    return made
