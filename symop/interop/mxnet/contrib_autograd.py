"""``mx.contrib.autograd``: the older names of ``mx.autograd``.

Training and recording are one state here.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from symop.interop.mxnet import autograd
from symop.interop.mxnet.arrays import NDArray, zeros_of
from symop.interop.mxnet.autograd import mark_variables
from symop.interop.mxnet.errors import MXNetError

__all__ = [
    "NDArray",
    "TrainingStateScope",
    "backward",
    "compute_gradient",
    "grad",
    "grad_and_loss",
    "mark_variables",
    "set_is_training",
    "test_section",
    "train_section",
]


def set_is_training(is_train: bool) -> bool:
    """Starts or stops training and recording; returns whether they were on."""
    before = autograd.set_training(bool(is_train))
    autograd.set_recording(bool(is_train))
    return before


class TrainingStateScope:
    """A context that trains and records, or does neither."""

    def __init__(self, enter_state: bool) -> None:
        """``enter_state`` tells whether calls inside train and record."""
        self._enter_state, self._before = enter_state, False

    def __enter__(self) -> None:
        self._before = set_is_training(self._enter_state)

    def __exit__(self, *error: object) -> None:
        set_is_training(self._before)


def train_section() -> TrainingStateScope:
    """A context in which calls train and are recorded."""
    return TrainingStateScope(True)


def test_section() -> TrainingStateScope:
    """A context in which calls predict and are not recorded."""
    return TrainingStateScope(False)


def backward(
    outputs: Sequence[NDArray], out_grads: Sequence[Any] | None = None, retain_graph: bool = False
) -> None:
    """Calls ``mx.autograd.backward`` on a list of arrays.

    Raises:
        MXNetError: ``outputs`` is not a list.
    """
    if not isinstance(outputs, (list, tuple)):
        raise MXNetError(f"backward: outputs must be a list of arrays, got {type(outputs)}")
    autograd.backward(outputs, out_grads, retain_graph)


def compute_gradient(outputs: Sequence[NDArray]) -> None:
    """Calls ``backward`` with head gradients of ones."""
    backward(outputs)


def grad_and_loss(
    func: Callable[..., Any], argnum: int | list[int] | None = None
) -> Callable[..., tuple[list[NDArray], Any]]:
    """A function that returns the gradients of ``func``, and its result.

    Args:
        func: a function of arrays.
        argnum: the arguments to differentiate by; defaults to all.
    """

    @functools.wraps(func)
    def wrapped(*args: Any) -> tuple[list[NDArray], Any]:
        chosen = range(len(args)) if argnum is None else argnum
        variables = [args[i] for i in ([chosen] if isinstance(chosen, int) else chosen)]
        gradients = [_zeros(one) for one in variables]
        mark_variables(variables, gradients)
        with train_section():
            outputs = func(*args)
        compute_gradient([outputs] if isinstance(outputs, NDArray) else outputs)
        return gradients, outputs

    return wrapped


def _zeros(variable: Any) -> NDArray:
    if not isinstance(variable, NDArray):
        raise MXNetError(f"grad_and_loss: arguments must be arrays, got {type(variable).__name__}")
    return zeros_of(variable.shape, variable.dtype)


def grad(
    func: Callable[..., Any], argnum: int | list[int] | None = None
) -> Callable[..., list[NDArray]]:
    """A function that returns the gradients of ``func``; see ``grad_and_loss``.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> slope = grad(lambda x: x * x)
        >>> slope(mx.nd.array([3]))[0].asscalar()
        np.float32(6.0)
    """
    both = grad_and_loss(func, argnum)

    @functools.wraps(func)
    def wrapped(*args: Any) -> list[NDArray]:
        return both(*args)[0]

    return wrapped
