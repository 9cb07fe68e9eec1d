"""``so.grad`` and ``so.jvp`` for symbols, variables of programs, and functions of arrays."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import jax
import numpy as np
from jax.typing import ArrayLike

from registry.errors import ArgumentError
from registry.tracebacks import api_boundary
from registry.var import Value
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.autodiff.gradients import Unreachable
from symop.eager.ndarray import NDArray
from symop.eager.tangents import gradients_at, with_tangents
from symop.graph.policies import Policy
from symop.program.control_flow import also_on_variables
from symop.symbol import building
from symop.symbol.symbol import Symbol

_grad = also_on_variables(building.grad)
_jvp = also_on_variables(building.jvp)


@overload
def grad(  # type: ignore[overload-overlap]  # a name is a sequence of strings, too
    ys: Value | Sequence[Value],
    xs: Value | str,
    head_grads: Any = None,
    *,
    unreachable: Literal["error", "zero"] = "error",
    remat: Policy | None = None,
) -> Value: ...


@overload
def grad(
    ys: Value | Sequence[Value],
    xs: Sequence[Value | str],
    head_grads: Any = None,
    *,
    unreachable: Literal["error", "zero"] = "error",
    remat: Policy | None = None,
) -> list[Value]: ...


@overload
def grad(
    ys: Value | Sequence[Value],
    xs: Value | str | Sequence[Value | str],
    head_grads: Any = None,
    *,
    unreachable: Literal["none"],
    remat: Policy | None = None,
) -> Any: ...


@overload
def grad(  # of functions of arrays
    ys: Callable[..., Any], xs: None = None, *, unreachable: Unreachable = "error"
) -> Callable[..., NDArray]: ...


@overload
def grad(
    ys: Callable[..., Any],
    xs: list[Any] | tuple[Any, ...],
    head_grads: Any = None,
    *,
    unreachable: Unreachable = "error",
) -> list[NDArray]: ...


@overload
def grad(
    ys: Callable[..., Any],
    xs: NDArray | ArrayLike,
    head_grads: Any = None,
    *,
    unreachable: Unreachable = "error",
) -> NDArray: ...


@api_boundary
def grad(
    ys: Any,
    xs: Any = None,
    head_grads: Any = None,
    *,
    unreachable: Unreachable = "error",
    remat: Policy | None = None,
) -> Any:
    """Returns gradients of ``sum(ys * head_grads)`` with respect to ``xs``.

    For symbols, the gradients are symbols: an ordinary graph that can be differentiated again, to
    any order. For a function of arrays, they are computed immediately, without a tape.
    ``so.grad(function)`` without ``xs`` is a function, as that of ``jax.grad``: it returns the
    gradient with respect to its first argument, and takes all arguments of ``function``.

    Args:
        ys: a symbol or a list of symbols; or a function of arrays that returns an array or nested
            arrays.
        xs: a symbol, variable or not, or the name of an argument; or a list of these. For a
            function, its arguments, an array or a list of arrays.
        head_grads: the cotangent of each of ``ys``, or None for ones; for a function, of its
            result, with the same nesting.
        unreachable: the action if no path leads from ``ys`` to one of ``xs``, or all paths run
            through operators without a derivative: raise an error, return zeros, or return None.
            A derivative that is zero by definition is always zeros. For a function, the gradient is
            then always zero.
        remat: the rematerialization policy of the gradients (``so.remat``), which requires known
            types; it does not change loops, and is not for functions.

    Returns:
        One gradient for one ``x``, a list for a list or a symbol of several values. Those of a
        function are eager arrays, whatever the kind of ``xs``.

    Raises:
        ArgumentError: ``ys`` is an eager array, which is computed already, or arguments do not fit.
        DisconnectedError: ``ys`` do not depend on one of ``xs``.
        NotDifferentiableError: the derivative is undefined; the message names the operator. This
            is an error for every ``unreachable`` if other paths are defined.
        DTypeError: an argument or a result of a function is not floating.
        GradientError: an argument of a function is being recorded.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> y = so.grad(so.grad(so.sin(x), x), x)
        >>> print(y)
        (x: float[]) {
          # gradient of cos
          sin0: float32[] = sin(x)
          negative0: float32[] = negative(sin0)
        } -> negative0
        >>> so.grad(lambda x: x * x, so.nd.array(3.0))
        NDArray(6., dtype=float32)
        >>> so.grad(so.grad(lambda x: x * x * x))(2.0)
        NDArray(12., dtype=float32)
    """
    _refuse_arrays("grad", ys, "call backward() on it, or so.autograd.grad")
    if callable(ys) and not isinstance(ys, Symbol):
        if remat is not None:
            raise ArgumentError("grad: remat is for symbols, got it for a function")
        return _gradient_of(ys) if xs is None else gradients_at(ys, xs, head_grads)
    if isinstance(ys, (np.ndarray, jax.Array)):
        raise ArgumentError(
            "grad: ys must be a symbol or a function of xs, got an array, which depends on nothing"
        )
    if xs is None:
        raise ArgumentError("grad: xs must be given, got none: what to differentiate by")
    return _grad(ys, xs, head_grads, unreachable=unreachable, remat=remat)


def _gradient_of(function: Callable[..., Any]) -> Callable[..., NDArray]:
    """Returns the function that computes the gradient by the first argument."""

    @functools.wraps(function)
    @api_boundary
    def gradient(x: Any, *others: Any, **options: Any) -> Any:
        return gradients_at(lambda one: function(one, *others, **options), [x])[0]

    return gradient


def _refuse_arrays(owner: str, ys: Any, advice: str) -> None:
    if any(isinstance(one, NDArray) for one in (ys if isinstance(ys, (list, tuple)) else [ys])):
        raise ArgumentError(
            f"{owner}: ys must be a symbol or a function of xs, got an eager array, which is "
            f"computed already; {advice}"
        )


@overload
def jvp(
    ys: Value, xs: Any, tangents: Any, *, unreachable: Literal["error", "zero"] = "error"
) -> Value: ...


@overload
def jvp(
    ys: Sequence[Value], xs: Any, tangents: Any, *, unreachable: Literal["error", "zero"] = "error"
) -> list[Value]: ...


@overload
def jvp(
    ys: Callable[..., Any],
    xs: Any,
    tangents: Any,
    *,
    unreachable: Literal["error", "zero"] = "error",
) -> tuple[Any, Any]: ...


@api_boundary
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
    _refuse_arrays("jvp", ys, "pass the function that computes it")
    if callable(ys) and not isinstance(ys, Symbol):
        return with_tangents(ys, xs, tangents)
    return _jvp(ys, xs, tangents, unreachable=unreachable)
