"""``mx.autograd``: recording of array code, and its gradients of every order.

Example:
    >>> import symop.interop.mxnet as mx
    >>> x = mx.nd.array([1, 2])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = x * x * x
    >>> y.backward()
    >>> x.grad.asnumpy().tolist()
    [3.0, 12.0]
"""

from collections.abc import Sequence
from typing import Any

import symop as so
from symop.autograd import (
    is_recording,
    is_training,
    pause,
    predict_mode,
    record,
    set_recording,
    set_training,
    train_mode,
)
from symop.interop.mxnet.arrays import NDArray, raising
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.origins import Variable, entry_of
from symop.interop.mxnet.sparse_arrays import wrapped
from symop.interop.mxnet.symbols import Symbol
from symop.interop.mxnet.whole_gradients import attach, differentiable, is_whole, write_given

__all__ = [
    "Function",
    "NDArray",
    "backward",
    "get_symbol",
    "grad",
    "is_recording",
    "is_training",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "set_recording",
    "set_training",
    "train_mode",
]
Arrays = NDArray | Sequence[NDArray]


def _listed(given: Any) -> list[NDArray]:
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    for one in listed:
        if not isinstance(one, NDArray):
            raise MXNetError(f"autograd: it takes arrays, got {type(one).__name__}")
    return listed


def _inner(arrays: Arrays) -> list[so.NDArray]:
    return [one.stored for one in _listed(arrays)]


def _cotangents(heads: Sequence[so.NDArray], given: Any) -> list[so.NDArray | None] | None:
    """The gradients of heads, each in its head's dtype; None if all are ones."""
    if given is None:
        return None
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(listed) != len(heads):
        raise MXNetError(
            f"autograd: there must be a head gradient for each of {len(heads)} heads, "
            f"got {len(listed)}"
        )
    return [
        None if one is None else one.content().astype(head.dtype, copy=False)
        for one, head in zip(listed, heads, strict=True)
    ]


@raising
def mark_variables(
    variables: Arrays, gradients: Arrays, grad_reqs: str | Sequence[str] = "write"
) -> None:
    """Attaches gradients to arrays: a backward pass writes into the given arrays.

    Args:
        variables: the arrays.
        gradients: for each, an array of its shape and dtype.
        grad_reqs: ``"write"``, ``"add"`` or ``"null"``, for all or one by one.

    Raises:
        MXNetError: the numbers of arrays or their types differ.
    """
    given, slopes = _listed(variables), _listed(gradients)
    requests = [grad_reqs] * len(given) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not any(map(is_whole, given)):
        so.autograd.mark_variables(_inner(given), _inner(slopes), grad_reqs)
    else:
        for one, slope, request in zip(given, slopes, requests, strict=True):
            if is_whole(one):
                attach(one, request, slope)
            else:
                so.autograd.mark_variables([one.stored], [slope.stored], request)
    for one, slope in zip(given, slopes, strict=True):
        one.keep_gradient(slope if slope.is_sparse else None)
        one.forget()


@raising
def backward(
    heads: Arrays,
    head_grads: Any = None,
    retain_graph: bool = False,
    train_mode: bool = True,
) -> None:
    """Writes the gradients of ``heads`` to the ``grad`` of every array that has one.

    Args:
        heads: one array or several, recorded inside ``record()``.
        head_grads: for each head an array, or None for ones; defaults to ones.
        retain_graph: whether to keep the recording for another backward pass.
        train_mode: has no effect: the recording determines the mode.

    Raises:
        MXNetError: nothing was recorded, or the recording was freed.
    """
    inner = [differentiable(one) for one in _listed(heads)]
    so.autograd.backward(inner, _cotangents(inner, head_grads), retain_graph, train_mode)
    write_given()


@raising
def grad(
    heads: Arrays,
    variables: Arrays,
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> list[NDArray]:
    """The gradients of ``heads`` with respect to ``variables``, as a list of new arrays.

    Args:
        heads: one array or several, recorded inside ``record()``.
        variables: arrays on which they depend; unlike in MXNet, results of recorded calls, too.
        head_grads: for each head an array, or None for ones.
        retain_graph: whether to keep the recording; defaults to ``create_graph``.
        create_graph: whether to record the gradients, so that they can be differentiated again.
        train_mode: has no effect: the recording determines the mode.

    Raises:
        MXNetError: a head does not depend on a variable, or nothing was recorded.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> x = mx.nd.array([2])
        >>> x.attach_grad()
        >>> with mx.autograd.record():
        ...     (slope,) = mx.autograd.grad(x * x * x, x, create_graph=True)
        >>> slope.backward()
        >>> x.grad.asscalar()
        np.float32(12.0)
    """
    inner, targets = _inner(heads), _inner(variables)
    if not targets:
        raise MXNetError("grad: at least one variable must be given, got none")
    along = _cotangents(inner, head_grads)
    found = so.autograd.grad(inner, targets, along, retain_graph, create_graph, train_mode)
    return [wrapped(one) for one in found]


@raising
def get_symbol(x: NDArray) -> Symbol:
    """The recorded computation of ``x``, as a symbol of MXNet's operators.

    Its variables are called ``var0``, ``var1``, ... Results of indexing and of a ``Function`` are
    variables, too.

    Raises:
        MXNetError: no operator computed ``x`` while calls were recorded.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> x = mx.nd.array([2])
        >>> x.attach_grad()
        >>> with mx.autograd.record():
        ...     y = mx.nd.tanh(x) * x
        >>> mx.autograd.get_symbol(y).get_internals().list_outputs()
        ['var0', 'tanh0_output', 'broadcast_mul0_output']
    """
    (one,) = _listed(x)
    if not one.stored.is_recorded or isinstance(one.origin, Variable):
        raise MXNetError("get_symbol: a recorded call must have computed the array, got none")
    return Symbol([entry_of(one.origin)])


# Custom functions ------------------------------------------------------------------------------


class Function:
    """A function with a custom gradient; both are code on arrays.

    A subclass defines ``forward(*inputs)`` and ``backward(*output_grads)``, which returns a
    gradient for each input. An object is called once. If ``backward`` consists of operators and
    reads its residuals through ``save_for_backward``, the gradient can be differentiated again.

    Attributes:
        saved_tensors: the arrays kept by ``forward``.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> class Sigmoid(mx.autograd.Function):
        ...     def forward(self, x):
        ...         y = 1 / (1 + mx.nd.exp(-x))
        ...         self.save_for_backward(y)
        ...         return y
        ...     def backward(self, dy):
        ...         (y,) = self.saved_tensors
        ...         return dy * y * (1 - y)
        >>> x = mx.nd.zeros(1)
        >>> x.attach_grad()
        >>> with mx.autograd.record():
        ...     y = Sigmoid()(x)
        >>> y.backward()
        >>> x.grad.asscalar()
        np.float32(0.25)
    """

    saved_tensors: tuple[Any, ...] = ()
    _used = False

    def save_for_backward(self, *args: Any) -> None:
        """Keeps arrays for ``backward``: inputs and results of ``forward``, uncopied."""
        self.saved_tensors = args

    def forward(self, *inputs: Any) -> Any:
        """The results for ``inputs``."""
        # Abstract, as in MXNet: defined by the user's subclass.
        raise NotImplementedError(f"{type(self).__name__}: forward must be defined")

    def backward(self, *output_grads: Any) -> Any:
        """A gradient for each input of ``forward``."""
        # Abstract, as in MXNet: only needed if the function is differentiated.
        raise NotImplementedError(f"{type(self).__name__}: backward must be defined")

    @raising
    def __call__(self, *inputs: Any) -> Any:
        """Runs ``forward``, and records ``backward``.

        Raises:
            MXNetError: the object was called before.
        """
        if self._used:
            raise MXNetError(f"{type(self).__name__}: an object must be called once, make another")
        self._used = True
        return _wrapped(_Bridge(self)(*map(_inner_of, inputs)))


class _Bridge(so.autograd.Function):
    """A function of symop that delegates to one of MXNet's form."""

    def __init__(self, asked: Function) -> None:
        super().__init__()
        self._asked = asked
        self._types: list[Any] = []

    def forward(self, *inputs: Any) -> Any:
        self._types = [one.type if isinstance(one, so.NDArray) else None for one in inputs]
        found = self._asked.forward(*map(_wrapped, inputs))
        self.save_for_backward(*map(_inner_of, self._asked.saved_tensors))
        return (
            tuple(map(_inner_of, found)) if isinstance(found, (list, tuple)) else _inner_of(found)
        )

    def backward(self, *cotangents: Any) -> Any:
        self._asked.saved_tensors = tuple(map(_wrapped, self.saved_tensors))
        found = self._asked.backward(*map(_wrapped, cotangents))
        listed = found if isinstance(found, (list, tuple)) else [found]
        if len(listed) != len(self._types):
            return tuple(
                map(_inner_of, listed)
            )  # this raises an error that names the expected number
        return tuple(map(_fitting, map(_inner_of, listed), self._types))


def _fitting(gradient: Any, of: Any) -> Any:
    """A gradient cast to its input's dtype."""
    if of is None or not isinstance(gradient, so.NDArray):
        return gradient
    return gradient.astype(of.dtype, copy=False)


def _inner_of(one: Any) -> Any:
    return one.inner if isinstance(one, NDArray) else one


def _wrapped(one: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(map(_wrapped, one))
    return NDArray(one) if isinstance(one, so.NDArray) else one
