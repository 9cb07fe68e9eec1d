"""Gradients of arrays of integers, which MXNet computes in their dtype.

JAX has no such derivatives. An array of integers with a gradient has a *twin*, a floating array of
its values: recorded calls on the array are repeated on the twin, whose gradient is rounded.
"""

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import symop as so
from registry.types import is_inexact

_targets: "dict[int, tuple[weakref.ref[Any], Any]]" = {}
"""Arrays by id, with the arrays to which users want their gradients to be written."""


def is_whole(array: Any) -> bool:
    """Whether the entries of an array of ``mx.nd`` are integers."""
    return not is_inexact(array.stored.dtype)


def twin_of(array: Any) -> so.NDArray | None:
    """The floating array that represents ``array`` in recorded calls, if it has a gradient."""
    return getattr(array, "_twin", None)


def attach(array: Any, grad_req: str, gradient: Any = None) -> None:
    """Attaches a gradient to an array of integers; ``gradient`` is the array to write it to."""
    twin = so.nd.cast(array.inner.detach(), dtype=np.dtype(np.float64))
    twin.attach_grad(grad_req)
    array._twin = twin
    _targets.pop(id(array), None)
    if gradient is not None:
        key = id(array)
        _targets[key] = weakref.ref(array, lambda _: _targets.pop(key, None)), gradient


def gradient_of(array: Any) -> Any:
    """The gradient of an array of integers, or None if none is attached."""
    twin = twin_of(array)
    if twin is None or twin.grad is None:
        return None
    if id(array) in _targets:
        return _targets[id(array)][1]
    return type(array)(so.nd.cast(twin.grad, dtype=array.inner.dtype))


def write_given() -> None:
    """Writes new gradients to the arrays that users gave, after a backward pass."""
    for reference, gradient in list(_targets.values()):
        twin = twin_of(reference())
        if twin is not None and twin.grad is not None:
            gradient.become(so.nd.cast(twin.grad, dtype=gradient.stored.dtype))


def differentiable(array: Any) -> so.NDArray:
    """The array that a backward pass starts from, or arrives at."""
    twin = twin_of(array)
    result: so.NDArray = array.stored if twin is None else twin
    return result


def follow(
    results: Iterable[Any],
    inputs: Sequence[Any],
    run: Callable[[Sequence[so.NDArray]], Sequence[Any]],
) -> None:
    """Repeats a recorded call on the twins of its inputs, if there are any."""
    if all(twin_of(one) is None for one in inputs):
        return
    found = run([differentiable(one) for one in inputs])
    for result, twin in zip(results, found, strict=False):
        if isinstance(twin, so.NDArray) and twin.is_recorded:
            if is_whole(result):
                result._twin = twin
            else:
                result.inner = so.nd.cast(twin, dtype=result.inner.dtype)
