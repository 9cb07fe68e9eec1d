"""``so.grad`` and ``so.jvp`` of every kind of value: as graphs, in programs, and at once."""

from typing import Any, Literal

from registry.errors import ArgumentError
from symop import building
from symop.ndarray import NDArray
from symop.symbol import Symbol
from symop.tangents import moved
from symop.variable_flow import also_on_variables

grad = also_on_variables(building.grad)
_jvp = also_on_variables(building.jvp)


def jvp(ys: Any, xs: Any, tangents: Any, *, unreachable: Literal["error", "zero"] = "error") -> Any:
    """Tangents of ``ys`` when ``xs`` move along ``tangents``: forward mode.

    Of symbols they are symbols. Every gradient maker is linear in its cotangent, and its
    transpose is used here. Of a function they are computed at once, beside its value, and no
    tape is kept; with a function that returns a gradient they are Hessian-vector products.

    Args:
        ys: a symbol or a list of them; or a function of arrays that returns one or several.
        xs: a symbol, variable or not, or the name of an argument; or a list of them; the
            arguments of a function.
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
        GradientError: one of the arrays is being recorded; what comes out would be a constant.
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
        return moved(ys, xs, tangents)
    return _jvp(ys, xs, tangents, unreachable=unreachable)
