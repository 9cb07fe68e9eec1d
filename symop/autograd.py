"""``so.autograd``: recording of eager code, and gradients of any order.

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
from registry.hooks import define
from registry.table import get
from registry.tracebacks import api_boundary
from registry.types import OpReqType
from registry.values import SelectedRows
from symop.eager.custom import Function
from symop.eager.lazy_backward import gradients
from symop.eager.modes import (
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
from symop.eager.ndarray import NDArray
from symop.eager.recorded_symbol import symbol_of
from symop.eager.recording import flush
from symop.eager.tangents import with_tangents
from symop.eager.tape import ONES, Cotangent, disconnected_error, pull
from symop.eager.tape_nodes import Gradient, Link
from symop.symbol.symbol import Symbol

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


@api_boundary
def mark_variables(
    variables: NDArray | Sequence[NDArray],
    gradients: NDArray | Sequence[NDArray],
    grad_reqs: str | OpReqType | Sequence[str | OpReqType] = "write",
) -> None:
    """Attaches given gradient arrays to variables, as ``attach_grad`` attaches new ones.

    With the request ``null``, a variable has no gradient, and the given array is ignored.

    Raises:
        ArgumentError: the numbers of variables, gradients and requests differ.
    """
    marked, buffers = _listed(variables), _listed(gradients)
    reqs = [grad_reqs] * len(marked) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(marked) == len(buffers) == len(reqs):
        raise ArgumentError(
            "mark_variables: gradients and requests must match the variables in number, "
            f"{len(marked)}, got {len(buffers)} and {len(reqs)}"
        )
    for one, gradient, req in zip(marked, buffers, reqs, strict=True):
        one.attach_grad(req)
        if one.grad_req is not OpReqType.NULL:
            one.grad = gradient


@api_boundary
def backward(
    heads: NDArray | Sequence[NDArray],
    head_grads: Any = None,
    retain_graph: bool = False,
    train_mode: bool = True,
) -> None:
    """Computes the gradients of ``heads`` and stores them in the ``grad`` of every marked array.

    Args:
        heads: an array or a list of arrays, recorded inside ``record()``.
        head_grads: the cotangent of each head; None stands for ones.
        retain_graph: whether to keep the record for another backward pass.
        train_mode: ignored; accepted for compatibility with MXNet. The recorded mode applies.

    Raises:
        GradientError: nothing was recorded, or the record was freed; or JAX traces the gradient of
            an array that was marked outside the trace.
        ShapeError, DTypeError: a cotangent does not have its head's shape or dtype.
        KindError: a row-sparse gradient, which some makers return, must be added to another
            gradient or propagated further.
    """
    del train_mode
    cotangents = _heads("backward", _listed(heads), head_grads)
    computed = gradients(cotangents, None, create_graph=False, retain_graph=retain_graph)
    if computed is not None:
        with mode(False):
            for array, gradient in computed:
                if array._grad is not None:
                    _store(array._grad, gradient)
        return
    sources = _sources("backward", cotangents)
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
        gradient = _added(kept.value, gradient)
    if kept.value is None:
        kept.value = gradient
    else:  # in place, so that references to x.grad see the new gradient
        kept.value._take_value_of(gradient)


def _added(kept: NDArray, gradient: NDArray) -> NDArray:
    """Returns the sum; row-sparse if both are, with at most as many rows as there are."""
    total: NDArray = get("add_n")(kept, gradient)
    value = total.value
    if not isinstance(value, SelectedRows) or value.rows.shape[0] <= value.height:
        return total
    once, height = value.merged(), value.height
    return NDArray(SelectedRows(once.rows[:height], once.values[:height], height))


@api_boundary
def grad(
    heads: NDArray | Sequence[NDArray],
    variables: NDArray | Sequence[NDArray],
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> list[NDArray]:
    """Returns the gradients of ``heads`` with respect to ``variables``, as new arrays.

    Args:
        heads: an array or a list of arrays, recorded inside ``record()``.
        variables: arrays on which the heads depend, either marked or recorded.
        head_grads: the cotangent of each head; None stands for ones. With ``create_graph``, the
            gradients can be differentiated with respect to the cotangents, too.
        retain_graph: whether to keep the record; defaults to ``create_graph``.
        create_graph: whether to record the gradients, so that they can be differentiated again.
        train_mode: ignored, as in ``backward``.

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
    cotangents = _heads("grad", _listed(heads), head_grads)
    keep = create_graph if retain_graph is None else retain_graph
    recorded = gradients(cotangents, asked, create_graph=create_graph, retain_graph=keep)
    if recorded is not None:
        return [gradient for _, gradient in recorded]
    sources = _sources("grad", cotangents)
    targets = [_target(one) for one in asked]
    with mode(create_graph):
        walk = pull(sources, targets, create_graph=create_graph)
        result = [_arrived(walk.gradient(one)) for one in targets]
    if not keep:
        walk.free()
    return result


def _arrived(gradient: NDArray | None) -> NDArray:
    if gradient is None:
        raise disconnected_error("grad")
    return gradient


def _target(variable: NDArray) -> Link | NDArray:
    source = variable.source
    if source is None:
        raise GradientError(
            "grad: a variable must have a gradient of its own (attach_grad) or be recorded, got "
            f"neither for {variable.type}"
        )
    return source


def _listed(arrays: Any) -> list[NDArray]:
    listed = list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
    for one in listed:
        if not isinstance(one, NDArray):
            raise ArgumentError(f"autograd: it takes eager arrays, got {type(one).__name__}")
    return listed


def _heads(
    what: str, heads: list[NDArray], head_grads: Any
) -> list[tuple[NDArray, NDArray | None]]:
    """Returns the heads, each with its cotangent; None stands for ones."""
    single = head_grads is None or isinstance(head_grads, NDArray) or len(heads) == 1
    cotangents = [head_grads] * len(heads) if head_grads is None else head_grads
    cotangents = (
        [cotangents] if single and not isinstance(cotangents, (list, tuple)) else list(cotangents)
    )
    if len(cotangents) != len(heads):
        raise ArgumentError(
            f"{what}: there must be one head gradient for each of {len(heads)} heads, "
            f"got {len(cotangents)}"
        )
    return [(one, _cotangent(one, g)) for one, g in zip(heads, cotangents, strict=True)]


def _sources(
    what: str, heads: list[tuple[NDArray, NDArray | None]]
) -> list[tuple[Link | NDArray, Cotangent]]:
    """Returns the sources of the heads, each with its cotangent."""
    flush()
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


def _cotangent(head: NDArray, cotangent: Any) -> NDArray | None:
    if cotangent is None:
        return None
    one = cotangent if isinstance(cotangent, NDArray) else NDArray(cotangent)
    if one.shape != head.shape:
        raise ShapeError(
            f"head gradient: the shape must be {head.shape}, that of the head, got {one.shape}"
        )
    if one.dtype != head.dtype:
        raise DTypeError(f"head gradient: the dtype must be {head.dtype}, got {one.dtype}")
    return one


@api_boundary
def get_symbol(x: NDArray | Sequence[NDArray]) -> Symbol:
    """Returns the recorded computation of ``x`` as a symbol, including recorded gradients.

    The variables ``var0``, ``var1``, ... of the symbol stand for the arrays that ``x`` was computed
    from. Those that an operator updates, such as the moving statistics of ``batch_norm``, are
    auxiliary states. A marked array is a variable. For several arrays, the symbol is a group.

    Raises:
        GradientError: nothing was recorded, or the computation contains a ``Function``.

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
    flush()
    sources = [one.source for one in arrays]
    known = [one for one in sources if one is not None]
    if len(known) < len(sources):
        raise GradientError("get_symbol: the array must be recorded, got one that was not")
    return symbol_of(known)


# Forward mode ------------------------------------------------------------------------------------


@api_boundary
def jvp(
    function: Callable[..., Any],
    primals: NDArray | Sequence[NDArray],
    tangents: NDArray | Sequence[NDArray],
) -> tuple[Any, Any]:
    """Returns the result of a function of arrays and its tangents, without recording.

    Args:
        function: takes arrays and returns an array or nested arrays.
        primals: the arguments of the function.
        tangents: the tangent of each argument, of the same shape and dtype.

    Returns:
        The function's result, and its tangents with the same nesting.

    Raises:
        ArgumentError, ShapeError, DTypeError, GradientError: see ``so.jvp`` of a function.

    Example:
        >>> from symop import autograd, nd
        >>> autograd.jvp(lambda x: x * x, nd.array(3.0), nd.array(1.0))
        (NDArray(9., dtype=float32), NDArray(6., dtype=float32))
    """
    return with_tangents(function, primals, tangents)


define(NDArray, pass_back=staticmethod(backward))
