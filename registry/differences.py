"""Gradients of NumPy functions by finite differences, to compare declared gradients with."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from registry.types import Shape

STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
"""Central differences of fourth order: multiples of the step, and their weights."""
_STEP = 1e-3

Entrywise = Callable[..., np.ndarray]
Gradients = Callable[..., dict[str, Any]]


def slope(function: Callable[[Any], Any], at: Any) -> np.ndarray:
    """Returns the derivative of an entrywise function, in float64.

    Example:
        >>> float(slope(np.sin, 0.0).round(9))
        1.0
    """
    x = np.asarray(at, np.float64)
    moved = [weight * np.asarray(function(x + k * _STEP)) for k, weight in STENCIL]
    return np.asarray(sum(moved) / _STEP)


def pulled_back(function: Callable[[np.ndarray], Any], at: Any, d_out: Any) -> np.ndarray:
    """Returns the gradient of a NumPy function of one array, weighted by ``d_out``, in float64.

    Each entry is perturbed separately.

    Example:
        >>> pulled_back(np.sum, np.ones(2), 3.0).round(9)
        array([3., 3.])
    """
    x = np.asarray(at, np.float64)

    def along(place: tuple[int, ...]) -> np.ndarray:
        def weighed(step: float) -> np.ndarray:
            moved = x.copy()
            moved[place] += step
            return np.asarray(np.sum(d_out * np.asarray(function(moved))))

        return slope(weighed, 0.0)

    return np.reshape([along(place) for place in np.ndindex(x.shape)], x.shape)


def summed_to(x: np.ndarray, shape: Shape) -> np.ndarray:
    """Returns ``x`` summed over the axes along which ``shape`` was broadcast to it."""
    lead = x.ndim - len(shape)
    over = [lead + i for i, n in enumerate(shape) if n == 1 and x.shape[lead + i] != 1]
    return np.asarray(x.sum((*range(lead), *over)).reshape(shape))


def by_differences(reference: Entrywise) -> Gradients:
    """Returns the gradient of an entrywise NumPy function of arrays that broadcast together.

    Example:
        >>> grads = by_differences(lambda x, y: x * y)(np.array([2.0]), np.array([3.0]), d_out=1.0)
        >>> [float(one.round(9)[0]) for one in grads.values()]
        [3.0, 2.0]
    """
    kinds = inspect.signature(reference).parameters.values()
    names = [one.name for one in kinds if one.kind is one.POSITIONAL_OR_KEYWORD]

    def gradients(*inputs: np.ndarray, d_out: np.ndarray, **attributes: Any) -> dict[str, Any]:
        grads = {}
        for i, name in enumerate(names):

            def moved(x: np.ndarray, i: int = i) -> np.ndarray:
                return reference(*inputs[:i], x, *inputs[i + 1 :], **attributes)

            grads[name] = summed_to(d_out * slope(moved, inputs[i]), np.shape(inputs[i]))
        return grads

    return gradients
