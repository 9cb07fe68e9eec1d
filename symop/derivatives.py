"""``so.grad`` and ``so.jvp`` for symbols, variables of programs, and functions of arrays."""

from typing import Any, Literal

from registry.errors import ArgumentError
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.eager.ndarray import NDArray
from symop.eager.tangents import with_tangents
from symop.program.control_flow import also_on_variables
from symop.symbol import building
from symop.symbol.symbol import Symbol

grad = also_on_variables(building.grad)
_jvp = also_on_variables(building.jvp)


def jvp(ys: Any, xs: Any, tangents: Any, *, unreachable: Literal["error", "zero"] = "error") -> Any:
    """Returns the Jacobian-vector product of ``ys`` with respect to ``xs`` along ``tangents``.

    For symbols, the tangents are symbols, built from the transposes of the gradient makers, which
    are linear in their cotangents. For a function, the tangents are computed immediately, together
    with its value and without a tape; for a function that returns a gradient, they are
    Hessian-vector products.

    Args:
        ys: a symbol or a list of symbols; or a function of arrays that returns an array or nested
            arrays.
        xs: a symbol (not necessarily a variable), the name of an argument, or a list of these; for
            a function, its arguments.
        tangents: the tangent of each of ``xs``.
        unreachable: what to do when a symbol among ``ys`` does not depend on any of ``xs``, or only
            through operators without a derivative: raise an error, or return zeros. For a function,
            the tangent is then always zero.

    Returns:
        For symbols, the tangents, in the form of ``ys``. For a function, its result and the
        tangents with the same nesting, as eager arrays whatever the kind of ``xs``.

    Raises:
        ArgumentError: ``xs`` and ``tangents`` differ in number or are not arrays; or ``ys`` is an
            eager array, which is computed already.
        ShapeError, DTypeError: a tangent does not have the shape and dtype of its ``x``, or that
            dtype is not floating.
        GradientError: an array is being recorded; its tangents would be constants.
        DisconnectedError: a symbol among ``ys`` does not depend on any of ``xs``.
        NotLinearError: the gradient of an operator on the path is not linear in its cotangent, so
            forward mode is undefined.
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
        return with_tangents(ys, xs, tangents)
    return _jvp(ys, xs, tangents, unreachable=unreachable)
