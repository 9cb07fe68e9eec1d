"""RMSProp with momentum, and optionally centered by the moving average of gradients."""

from typing import Any

import numpy as np

from registry.cases import case, misuse, positive, uniform
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.optim.first_order import SOME_ROWS
from registry.ops.optim.rmsprop import SCALED, scaled_reference, scaled_step, scaling_gradient
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


def _driven(scaled: Any, velocity: Any, rate: Any, *, mu: float, nesterov: bool) -> tuple[Any, Any]:
    """The step and the new velocity, in JAX or NumPy."""
    velocity = mu * velocity + rate * scaled
    return (rate * scaled + mu * velocity if nesterov else velocity), velocity


def _momentum_reference(
    *arrays: Any, mu: float, nesterov: bool, **scaling: Any
) -> tuple[np.ndarray, ...]:
    param, grad, square, *means, velocity, rate = arrays
    scaled, square, mean = scaled_reference(grad, square, *(means or [None]), **scaling)
    step, velocity = _driven(scaled, velocity, rate, mu=mu, nesterov=nesterov)
    return param - step, square, *([mean] if means else []), velocity


def _through_velocity(d: Any, d_v: Any, mu: float, nesterov: bool) -> tuple[Any, Any]:
    """Cotangents of ``rate * step`` and of the old velocity, from those after the update."""
    d_v = d_v - (mu * d if nesterov else d)
    return (d_v - d if nesterov else d_v), mu * d_v


@update(
    _momentum_reference,
    lazy=True,
    cases=[
        case(**SCALED, velocity=(3,), learning_rate=0.1),
        case(**SCALED, velocity=(3,), learning_rate=(), mu=0.5, nesterov=True, eps_in_sqrt=False),
        case(**SCALED, velocity=(3,), learning_rate=(), decay=0.5, eps=1e-3, lazy=True),
        case(
            param=(3, 2),
            grad=SOME_ROWS,
            mean_square=positive(3, 2),
            velocity=(3, 2),
            learning_rate=(),
            order=1,
        ),
        misuse(
            "one shape", param=(3,), grad=(3,), mean_square=(3,), velocity=(2,), learning_rate=0.1
        ),
    ],
)
def rmsprop_momentum(
    param: Array,
    grad: Array,
    mean_square: Array,
    velocity: Array,
    learning_rate: Array,
    *,
    mu: Decay = 0.9,
    nesterov: bool = False,
    decay: Decay = 0.9,
    eps: NotNegative = 1e-8,
    eps_in_sqrt: bool = True,
) -> tuple[Array, Array, Array]:
    """A step of RMSProp with momentum: the scaled gradient of ``rmsprop`` drives a velocity.

    ``new_velocity = mu * velocity + learning_rate * scaled`` and ``new_param = param -
    new_velocity``; with ``nesterov`` the step is ``learning_rate * scaled + mu * new_velocity``.
    ``scaled`` is the scaled gradient, and ``lazy`` is as in ``rmsprop``.

    Example:
        >>> import jax.numpy as jnp
        >>> one, four = jnp.asarray(1.0), jnp.asarray(4.0)
        >>> rmsprop_momentum(one, 2 * one, four, one, 0.5, mu=0.5, eps=0.0)[2]
        Array(1., dtype=float32)
    """
    scaling: dict[str, Any] = {"decay": decay, "eps": eps, "eps_in_sqrt": eps_in_sqrt}
    scaled, square, _ = scaled_step(grad, mean_square, None, **scaling)
    step, new_velocity = _driven(scaled, velocity, learning_rate, mu=mu, nesterov=nesterov)
    return param - step, square, new_velocity


@rmsprop_momentum.gradient
def _rmsprop_momentum_gradient(
    param: Var,
    grad: Var,
    mean_square: Var,
    velocity: Var,
    learning_rate: Var,
    new_mean_square: Var,
    d_new_param: Var,
    d_new_mean_square: Var,
    d_new_velocity: Var,
    *,
    mu: float,
    nesterov: bool,
    lazy: bool,
    **scaling: Any,
) -> Grads:
    require_defined(grad, lazy=lazy)
    d, d_square, d_v, g, square, rate = widely(
        param, d_new_param, d_new_mean_square, d_new_velocity, grad, new_mean_square, learning_rate
    )
    d_step, d_v = _through_velocity(d, d_v, mu, nesterov)
    d_g, d_square, _, scaled = scaling_gradient(
        g, square, None, rate * d_step, d_square, None, **scaling
    )
    return {
        "param": d_new_param,
        "grad": returned(d_g, grad),
        "mean_square": returned(d_square, mean_square),
        "velocity": returned(d_v, velocity),
        "learning_rate": returned(inner(d_step, scaled), learning_rate),
    }


# The gradient of ``mean_grad`` is unbounded where the variance is zero: cases avoid that.
_CENTERED: dict[str, Any] = {
    "param": (3,),
    "grad": (3,),
    "mean_square": uniform(3, low=4.0, high=6.0),
    "order": 2,
}


@update(
    _momentum_reference,
    lazy=True,
    cases=[
        case(**_CENTERED, mean_grad=positive(3), velocity=(3,), learning_rate=0.1),
        case(
            **_CENTERED,
            mean_grad=positive(3),
            velocity=(3,),
            learning_rate=(),
            mu=0.5,
            nesterov=True,
            eps_in_sqrt=False,
        ),
        case(
            **_CENTERED,
            mean_grad=positive(3),
            velocity=(3,),
            learning_rate=(),
            decay=0.5,
            eps=1e-3,
            lazy=True,
        ),
        misuse(
            "one shape",
            param=(3,),
            grad=(3,),
            mean_square=(3,),
            mean_grad=(3,),
            velocity=(2,),
            learning_rate=0.1,
        ),
    ],
)
def rmsprop_centered(
    param: Array,
    grad: Array,
    mean_square: Array,
    mean_grad: Array,
    velocity: Array,
    learning_rate: Array,
    *,
    mu: Decay = 0.0,
    nesterov: bool = False,
    decay: Decay = 0.9,
    eps: NotNegative = 1e-8,
    eps_in_sqrt: bool = True,
) -> tuple[Array, Array, Array, Array]:
    """A step of RMSProp scaled by the standard deviation (Graves 2013), with momentum.

    ``new_mean_grad = decay * mean_grad + (1 - decay) * grad``, and ``new_mean_square -
    new_mean_grad^2`` replaces ``new_mean_square`` in the root. Everything else is as in
    ``rmsprop_momentum``.

    Example:
        >>> import jax.numpy as jnp
        >>> one, four = jnp.asarray(1.0), jnp.asarray(4.0)
        >>> rmsprop_centered(one, 0 * one, 5 * one, one, one, 0.5, decay=0.8, eps=0.0)[:2]
        (Array(1., dtype=float32), Array(4., dtype=float32))
    """
    scaling: dict[str, Any] = {"decay": decay, "eps": eps, "eps_in_sqrt": eps_in_sqrt}
    scaled, square, mean = scaled_step(grad, mean_square, mean_grad, **scaling)
    step, new_velocity = _driven(scaled, velocity, learning_rate, mu=mu, nesterov=nesterov)
    return param - step, square, mean, new_velocity


@rmsprop_centered.gradient
def _rmsprop_centered_gradient(
    param: Var,
    grad: Var,
    mean_square: Var,
    mean_grad: Var,
    velocity: Var,
    learning_rate: Var,
    new_mean_square: Var,
    new_mean_grad: Var,
    d_new_param: Var,
    d_new_mean_square: Var,
    d_new_mean_grad: Var,
    d_new_velocity: Var,
    *,
    mu: float,
    nesterov: bool,
    lazy: bool,
    **scaling: Any,
) -> Grads:
    require_defined(grad, lazy=lazy)
    d, d_square, d_mean, d_v = widely(
        param, d_new_param, d_new_mean_square, d_new_mean_grad, d_new_velocity
    )
    g, square, mean, rate = widely(param, grad, new_mean_square, new_mean_grad, learning_rate)
    d_step, d_v = _through_velocity(d, d_v, mu, nesterov)
    d_g, d_square, d_mean, scaled = scaling_gradient(
        g, square, mean, rate * d_step, d_square, d_mean, **scaling
    )
    return {
        "param": d_new_param,
        "grad": returned(d_g, grad),
        "mean_square": returned(d_square, mean_square),
        "mean_grad": returned(d_mean, mean_grad),
        "velocity": returned(d_v, velocity),
        "learning_rate": returned(inner(d_step, scaled), learning_rate),
    }
