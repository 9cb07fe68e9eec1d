"""``so.autograd``: recording of eager code, and its gradients of every order.

Example:
    >>> from symop import autograd, nd
    >>> x = nd.array([1.0, 2.0])
    >>> x.attach_grad()
    >>> with autograd.record():
    ...     y = x * x * x
    >>> y.backward()
    >>> x.grad
    NDArray([ 3., 12.], dtype=float32)
"""

from collections.abc import Callable, Sequence
from typing import Any

from registry.errors import ArgumentError, DTypeError, GradientError, ShapeError
from registry.types import OpReqType
from symop.custom import Function
from symop.entries import Gradient, Link
from symop.modes import (
    is_recording,
    is_training,
    mode,
    pause,
    predict_mode,
    record,
    set_recording,
    set_training,
    train_mode,
)
from symop.ndarray import NDArray
from symop.pending import gradients
from symop.recorded_symbol import symbol_of
from symop.recording import settle
from symop.symbol import Symbol
from symop.tangents import moved
from symop.tape import ONES, Cotangent, disconnected, pull

__all__ = [
    "Function",
    "backward",
    "get_symbol",
    "grad",
    "is_recording",
    "is_training",
    "jvp",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "set_recording",
    "set_training",
    "train_mode",
]

# Gradients ---------------------------------------------------------------------------------------


def mark_variables(
    variables: NDArray | Sequence[NDArray],
    gradients: NDArray | Sequence[NDArray],
    grad_reqs: str | OpReqType | Sequence[str | OpReqType] = "write",
) -> None:
    """Give arrays gradients of their own, as ``attach_grad`` does, in the arrays that are given.

    With the request ``null`` there is no room for a gradient, so the one that is given is not used.

    Raises:
        ArgumentError: there must be one gradient for each variable.
    """
    marked, given = _listed(variables), _listed(gradients)
    reqs = [grad_reqs] * len(marked) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(marked) == len(given) == len(reqs):
        raise ArgumentError(
            "mark_variables: there must be as many gradients and requests as variables, "
            f"{len(marked)}, got {len(given)} and {len(reqs)}"
        )
    for one, gradient, req in zip(marked, given, reqs, strict=True):
        one.attach_grad(req)
        if one.grad_req is not OpReqType.NULL:
            one.grad = gradient


def backward(
    heads: NDArray | Sequence[NDArray],
    head_grads: Any = None,
    retain_graph: bool = False,
    train_mode: bool = True,
) -> None:
    """Put the gradients of ``heads`` into the ``grad`` of every array that has one.

    Args:
        heads: one array or several, recorded inside ``record()``.
        head_grads: a cotangent for each; ones where there is none.
        retain_graph: keep the record for another backward pass.
        train_mode: whether makers that tell training from prediction train; kept for other
            systems' calls: what was recorded tells the mode.

    Raises:
        GradientError: nothing was recorded, or the record was freed; or JAX traces the gradient of
            an array that was marked outside of the trace.
        ShapeError, DTypeError: a cotangent is not of its head's type.
        KindError: a row-sparse gradient, as some makers return it, meets another one or flows on.
    """
    del train_mode
    given = _heads("backward", _listed(heads), head_grads)
    found = gradients(given, None, create_graph=False, retain_graph=retain_graph)
    if found is not None:
        with mode(False):
            for array, gradient in found:
                if array._grad is not None:
                    _store(array._grad, gradient)
        return
    sources = _sources("backward", given)
    with mode(False):
        walk = pull(sources, None, create_graph=False)
        pairs = [(one._grad, walk.gradient(one)) for one in walk.arrays]
        arrived = [(kept, one) for kept, one in pairs if kept is not None and one is not None]
        for kept, gradient in arrived:
            kept.require_lasting(gradient.value)
        for kept, gradient in arrived:
            _store(kept, gradient)
    if not retain_graph:
        walk.free()


def _store(kept: Gradient, gradient: NDArray) -> None:
    if kept.req is OpReqType.ADD and kept.value is not None:
        gradient = kept.value.to_dense() + gradient.to_dense()
    if kept.value is None:
        kept.value = gradient
    else:  # who holds x.grad sees the new gradient
        kept.value._take_value_of(gradient)


def grad(
    heads: NDArray | Sequence[NDArray],
    variables: NDArray | Sequence[NDArray],
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> list[NDArray]:
    """The gradients of ``heads`` with respect to ``variables``, as new arrays.

    Args:
        heads: one array or several, recorded inside ``record()``.
        variables: arrays on which they depend, with a gradient of their own or recorded ones.
        head_grads: a cotangent for each head; ones where there is none. Gradients with respect to
            them are right, too.
        retain_graph: keep the record; by default just where ``create_graph`` is set.
        create_graph: record the gradients, so that they can be differentiated again.
        train_mode: as in ``backward``.

    Raises:
        DisconnectedError: a head does not depend on a variable.
        GradientError: nothing was recorded, or the record was freed.

    Example:
        >>> from symop import autograd, nd
        >>> x = nd.array(2.0)
        >>> x.attach_grad()
        >>> with autograd.record():
        ...     y = x * x * x
        ...     (slope,) = autograd.grad(y, x, create_graph=True)
        >>> slope.backward()
        >>> x.grad
        NDArray(12., dtype=float32)
    """
    del train_mode
    asked = _listed(variables)
    given = _heads("grad", _listed(heads), head_grads)
    keep = create_graph if retain_graph is None else retain_graph
    recorded = gradients(given, asked, create_graph=create_graph, retain_graph=keep)
    if recorded is not None:
        return [gradient for _, gradient in recorded]
    sources = _sources("grad", given)
    targets = [_target(one) for one in asked]
    with mode(create_graph):
        walk = pull(sources, targets, create_graph=create_graph)
        found = [_arrived(walk.gradient(one)) for one in targets]
    if not keep:
        walk.free()
    return found


def _arrived(gradient: NDArray | None) -> NDArray:
    if gradient is None:
        raise disconnected("grad")
    return gradient


def _target(variable: NDArray) -> Link | NDArray:
    source = variable.source
    if source is None:
        raise GradientError(
            "grad: a variable must have a gradient of its own (attach_grad) or be recorded, got "
            f"neither for {variable.type}"
        )
    return source


def _listed(given: Any) -> list[NDArray]:
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    for one in listed:
        if not isinstance(one, NDArray):
            raise ArgumentError(f"autograd: it takes eager arrays, got {type(one).__name__}")
    return listed


def _heads(
    what: str, heads: list[NDArray], head_grads: Any
) -> list[tuple[NDArray, NDArray | None]]:
    """The heads, each with its cotangent; None for ones."""
    single = head_grads is None or isinstance(head_grads, NDArray) or len(heads) == 1
    given = [head_grads] * len(heads) if head_grads is None else head_grads
    given = [given] if single and not isinstance(given, (list, tuple)) else list(given)
    if len(given) != len(heads):
        raise ArgumentError(
            f"{what}: there must be one head gradient for each of {len(heads)} heads, "
            f"got {len(given)}"
        )
    return [(one, _cotangent(one, g)) for one, g in zip(heads, given, strict=True)]


def _sources(
    what: str, heads: list[tuple[NDArray, NDArray | None]]
) -> list[tuple[Link | NDArray, Cotangent]]:
    """Where the heads come from, each with its cotangent."""
    settle()
    return [(_source(what, one), ONES if along is None else along) for one, along in heads]


def _source(what: str, head: NDArray) -> Link | NDArray:
    source, segment = head.source, head._segment
    if source is None and segment is not None:
        if segment.error is not None:
            raise segment.error
        raise GradientError(
            f"{what}: a head must be recorded by the thread that asks, got one that another thread "
            "recorded and did not compute yet; ask for its value there, with wait_to_read()"
        )
    if source is None:
        raise GradientError(
            f"{what}: a head must be computed from arrays with attach_grad() inside "
            f"autograd.record(), got an array of type {head.type} that was not"
        )
    return source


def _cotangent(head: NDArray, given: Any) -> NDArray | None:
    if given is None:
        return None
    one = given if isinstance(given, NDArray) else NDArray(given)
    if one.shape != head.shape:
        raise ShapeError(
            f"head gradient: the shape must be {head.shape}, that of the head, got {one.shape}"
        )
    if one.dtype != head.dtype:
        raise DTypeError(f"head gradient: the dtype must be {head.dtype}, got {one.dtype}")
    return one


def get_symbol(x: NDArray | Sequence[NDArray]) -> Symbol:
    """The recorded computation of ``x`` as a symbol, gradients that were recorded included.

    Its variables ``var0``, ``var1``, ... stand for the arrays that it was computed from; those that
    an operator updates, as ``batch_norm`` its moving statistics, are auxiliary states. An array
    with a gradient of its own is a variable. Of several arrays it is a group.

    Raises:
        GradientError: nothing was recorded, or a ``Function`` lies on the way.

    Example:
        >>> from symop import autograd, nd
        >>> x = nd.array([1.0, 2.0])
        >>> x.attach_grad()
        >>> with autograd.record():
        ...     y = nd.sin(x) * x
        >>> autograd.get_symbol(y).list_arguments()
        ['var0']
    """
    arrays = _listed(x)
    if not arrays:
        raise ArgumentError("get_symbol: at least one array must be given, got none")
    settle()
    sources = [one.source for one in arrays]
    found = [one for one in sources if one is not None]
    if len(found) < len(sources):
        raise GradientError("get_symbol: the array must be recorded, got one that was not")
    return symbol_of(found)


# Forward mode ------------------------------------------------------------------------------------


def jvp(
    function: Callable[..., Any],
    primals: NDArray | Sequence[NDArray],
    tangents: NDArray | Sequence[NDArray],
) -> tuple[Any, Any]:
    """The result of a function of arrays, and how it moves with them; nothing is recorded.

    Args:
        function: takes arrays, and returns one or several.
        primals: its arguments.
        tangents: in which direction each moves; of the same shapes and dtypes.

    Returns:
        What the function returns, and the tangents in the same form.

    Raises:
        ArgumentError, ShapeError, DTypeError, GradientError: as ``so.jvp`` of a function does.

    Example:
        >>> from symop import autograd, nd
        >>> autograd.jvp(lambda x: x * x, nd.array(3.0), nd.array(1.0))
        (NDArray(9., dtype=float32), NDArray(6., dtype=float32))
    """
    return moved(function, primals, tangents)


NDArray.pass_back = staticmethod(backward)
