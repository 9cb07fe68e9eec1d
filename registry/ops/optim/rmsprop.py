"""RMSProp: steps scaled by the root of a moving average of squares, and code of its variants."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, positive
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.elementwise.powers import sqrt
from registry.ops.optim.first_order import SOME_ROWS
from registry.ops.optim.updates import (
    Decay,
    NotNegative,
    inner,
    require_defined,
    returned,
    update,
    widely,
)
from registry.var import Var

# RMSProp ---------------------------------------------------------------------------------------


def scaled_step(
    g: Any, square: Any, mean: Any, *, decay: float, eps: float, eps_in_sqrt: bool
) -> tuple[Any, Any, Any]:
    """Returns the scaled gradient, and the new means of squares and of gradients."""
    square = decay * square + (1 - decay) * g * g
    variance = square
    if mean is not None:
        mean = decay * mean + (1 - decay) * g
        variance = square - mean * mean
    root = jnp.sqrt(variance + eps) if eps_in_sqrt else jnp.sqrt(variance) + eps
    return g / root, square, mean


def scaled_reference(
    grad: np.ndarray,
    square: np.ndarray,
    mean: np.ndarray | None,
    *,
    decay: float,
    eps: float,
    eps_in_sqrt: bool,
    **_: bool,
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Computes ``scaled_step`` in NumPy."""
    square = square + (1 - decay) * (grad**2 - square)
    mean = None if mean is None else mean + (1 - decay) * (grad - mean)
    variance = square if mean is None else square - mean**2
    root = np.sqrt(variance + eps) if eps_in_sqrt else np.sqrt(variance) + eps
    return grad / root, square, mean


def _rmsprop_reference(*arrays: np.ndarray, **scaling: Any) -> tuple[np.ndarray, ...]:
    param, grad, square, rate = arrays
    step, square, _ = scaled_reference(grad, square, None, **scaling)
    return param - rate * step, square


def scaling_gradient(
    g: Any,
    square: Any,
    mean: Any,
    d_scaled: Any,
    d_square: Any,
    d_mean: Any,
    *,
    decay: float,
    eps: float,
    eps_in_sqrt: bool,
) -> tuple[Any, Any, Any, Any]:
    """Returns gradients of the gradient and of the old means, and the scaled gradient itself.

    ``square`` and ``mean`` are the values after the step. With the variance ``v`` and the root
    ``r``, the scaled gradient is ``g / r``, and ``dr/dv`` is one half over the square root in
    ``r``.
    """
    variance = square if mean is None else square - mean * mean
    inner_root = sqrt(variance + eps) if eps_in_sqrt else sqrt(variance)
    root = inner_root if eps_in_sqrt else inner_root + eps
    scaled = g / root
    d_variance = -(d_scaled * scaled) / (2.0 * (root * inner_root))
    d_square = d_square + d_variance
    d_g = d_scaled / root + (2.0 * (1 - decay)) * (g * d_square)
    if mean is not None:
        d_mean = d_mean - 2.0 * (mean * d_variance)
        d_g, d_mean = d_g + (1 - decay) * d_mean, decay * d_mean
    return d_g, decay * d_square, d_mean, scaled


SCALED: dict[str, Any] = {"param": (3,), "grad": (3,), "mean_square": positive(3), "order": 2}
"""Common arguments of cases."""


@update(
    _rmsprop_reference,
    lazy=True,
    cases=[
        case(**SCALED, learning_rate=0.1),
        case(**SCALED, learning_rate=(), decay=0.5, eps=1e-2, eps_in_sqrt=False),
        case(param=(), grad=(), mean_square=positive(), learning_rate=(), lazy=True, order=2),
        case(param=(0,), grad=(0,), mean_square=(0,), learning_rate=0.1, order=1),
        case(param=(3, 2), grad=SOME_ROWS, mean_square=positive(3, 2), learning_rate=(), order=2),
        misuse("one shape", param=(3,), grad=(3,), mean_square=(2,), learning_rate=0.1),
        misuse("in [0, 1)", param=(3,), grad=(3,), mean_square=(3,), learning_rate=0.1, decay=2.0),
    ],
)
def rmsprop(
    param: Array,
    grad: Array,
    mean_square: Array,
    learning_rate: Array,
    *,
    decay: Decay = 0.9,
    eps: NotNegative = 1e-8,
    eps_in_sqrt: bool = True,
) -> tuple[Array, Array]:
    """A step of RMSProp: each entry is scaled by the root of the moving average of its squares.

    ``new_mean_square = decay * mean_square + (1 - decay) * grad^2`` and ``new_param = param -
    learning_rate * grad / sqrt(new_mean_square + eps)``, or, without ``eps_in_sqrt``, with ``eps``
    added to the root (Hinton, "Neural networks for machine learning", lecture 6e, 2012).

    If ``grad`` is ``SelectedRows``, ``lazy`` updates only the rows that it names; by default the
    step equals that of the dense gradient, in which every average decays.

    Example:
        >>> import jax.numpy as jnp
        >>> rmsprop(jnp.asarray(1.0), jnp.asarray(2.0), jnp.asarray(4.0), 0.5, eps=0.0)
        (Array(0.5, dtype=float32), Array(4., dtype=float32))
    """
    scaling: dict[str, Any] = {"decay": decay, "eps": eps, "eps_in_sqrt": eps_in_sqrt}
    step, square, _ = scaled_step(grad, mean_square, None, **scaling)
    return param - learning_rate * step, square


@rmsprop.gradient
def _rmsprop_gradient(
    param: Var,
    grad: Var,
    mean_square: Var,
    learning_rate: Var,
    new_mean_square: Var,
    d_new_param: Var,
    d_new_mean_square: Var,
    *,
    lazy: bool,
    **scaling: Any,
) -> Grads:
    require_defined(grad, lazy=lazy)
    d, d_square, g, square, rate = widely(
        param, d_new_param, d_new_mean_square, grad, new_mean_square, learning_rate
    )
    d_g, d_square, _, scaled = scaling_gradient(
        g, square, None, -(rate * d), d_square, None, **scaling
    )
    return {
        "param": d_new_param,
        "grad": returned(d_g, grad),
        "mean_square": returned(d_square, mean_square),
        "learning_rate": returned(-inner(d, scaled), learning_rate),
    }
