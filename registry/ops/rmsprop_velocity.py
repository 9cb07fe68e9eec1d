"""RMSProp with a velocity: with momentum, and centered by the moving average of gradients."""

from typing import Any

import numpy as np

from registry.cases import case, misuse, positive, uniform
from registry.operator import Grads
from registry.ops.first_order_optimizers import SOME_ROWS
from registry.ops.rmsprop_optimizers import SCALED, scaled_reference, scaled_step, scaling_gradient
from registry.ops.updates import (
    Decay,
    NotNegative,
    by_rows,
    inner,
    kept,
    require_defined,
    returned,
    update_dtype,
    update_shape,
    widely,
    widened,
)
from registry.signature import Array
from registry.table import op
from registry.var import Var


def _rmsprop_momentum(
    param: Any,
    grad: Any,
    mean_square: Any,
    velocity: Any,
    learning_rate: Any,
    *,
    mu: float,
    nesterov: bool,
    **scaling: Any,
) -> Any:
    p, g, square, v, rate = widened(param, grad, mean_square, velocity, learning_rate)
    step, square, _ = scaled_step(g, square, None, **scaling)
    v = mu * v + rate * step
    ahead = rate * step + mu * v if nesterov else v
    return kept([param, mean_square, velocity], p - ahead, square, v)


def _rmsprop_centered(
    param: Any,
    grad: Any,
    mean_square: Any,
    mean_grad: Any,
    velocity: Any,
    learning_rate: Any,
    *,
    mu: float,
    nesterov: bool,
    **scaling: Any,
) -> Any:
    p, g, square, mean, v, rate = widened(
        param, grad, mean_square, mean_grad, velocity, learning_rate
    )
    step, square, mean = scaled_step(g, square, mean, **scaling)
    v = mu * v + rate * step
    ahead = rate * step + mu * v if nesterov else v
    return kept([param, mean_square, mean_grad, velocity], p - ahead, square, mean, v)


def _rmsprop_momentum_reference(
    param: np.ndarray,
    grad: np.ndarray,
    mean_square: np.ndarray,
    velocity: np.ndarray,
    learning_rate: np.ndarray,
    *,
    mu: float = 0.9,
    nesterov: bool = False,
    decay: float = 0.9,
    eps: float = 1e-8,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
) -> tuple[np.ndarray, ...]:
    del lazy
    step, square, _ = scaled_reference(grad, mean_square, None, decay, eps, eps_in_sqrt)
    velocity = mu * velocity + learning_rate * step
    ahead = learning_rate * step + mu * velocity if nesterov else velocity
    found = param - ahead, square, velocity
    return tuple(one.astype(param.dtype) for one in found)


def _rmsprop_centered_reference(
    param: np.ndarray,
    grad: np.ndarray,
    mean_square: np.ndarray,
    mean_grad: np.ndarray,
    velocity: np.ndarray,
    learning_rate: np.ndarray,
    *,
    mu: float = 0.0,
    nesterov: bool = False,
    decay: float = 0.9,
    eps: float = 1e-8,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
) -> tuple[np.ndarray, ...]:
    del lazy
    step, square, mean = scaled_reference(grad, mean_square, mean_grad, decay, eps, eps_in_sqrt)
    velocity = mu * velocity + learning_rate * step
    ahead = learning_rate * step + mu * velocity if nesterov else velocity
    found = param - ahead, square, mean, velocity
    return tuple(one.astype(param.dtype) for one in found)


def _through_velocity(d: Any, d_v: Any, mu: float, nesterov: bool) -> tuple[Any, Any]:
    """Cotangents of ``rate * step`` and of the velocity before, from those after the update."""
    d_v = d_v - (mu * d if nesterov else d)
    return (d_v - d if nesterov else d_v), mu * d_v


@op(
    outputs=["new_param", "new_mean_square", "new_velocity"],
    shape=update_shape(states=2),
    dtype=update_dtype(states=2),
    reference=_rmsprop_momentum_reference,
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
    lazy: bool = False,
) -> tuple[Array, Array, Array]:
    """A step of RMSProp with momentum: what ``rmsprop`` subtracts drives a velocity.

    ``new_velocity = mu * velocity + learning_rate * scaled`` and ``new_param = param -
    new_velocity``; with ``nesterov`` the step is ``learning_rate * scaled + mu * new_velocity``.
    ``lazy`` as in ``rmsprop``.

    Example:
        >>> import jax.numpy as jnp
        >>> one, four = jnp.asarray(1.0), jnp.asarray(4.0)
        >>> rmsprop_momentum(one, 2 * one, four, one, 0.5, mu=0.5, eps=0.0)[2]
        Array(1., dtype=float32)
    """
    del lazy
    scaling = {"decay": decay, "eps": eps, "eps_in_sqrt": eps_in_sqrt}
    new_param, square, v = _rmsprop_momentum(
        param, grad, mean_square, velocity, learning_rate, mu=mu, nesterov=nesterov, **scaling
    )
    return new_param, square, v


rmsprop_momentum.on_rows("grad")(by_rows(_rmsprop_momentum, states=2))


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


rmsprop_momentum.declare_inplace(
    {"param": "new_param", "mean_square": "new_mean_square", "velocity": "new_velocity"},
    update=True,
)


# The gradient of ``mean_grad`` has no bounds where the variance vanishes: cases keep them apart.
_CENTERED: dict[str, Any] = {
    "param": (3,),
    "grad": (3,),
    "mean_square": uniform(3, low=4.0, high=6.0),
    "order": 2,
}


@op(
    outputs=["new_param", "new_mean_square", "new_mean_grad", "new_velocity"],
    shape=update_shape(states=3),
    dtype=update_dtype(states=3),
    reference=_rmsprop_centered_reference,
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
    lazy: bool = False,
) -> tuple[Array, Array, Array, Array]:
    """A step of RMSProp that scales by the standard deviation (Graves 2013), with momentum.

    ``new_mean_grad = decay * mean_grad + (1 - decay) * grad``, and ``new_mean_square -
    new_mean_grad^2`` takes the place of ``new_mean_square`` in the root. The rest is that of
    ``rmsprop_momentum``.

    Example:
        >>> import jax.numpy as jnp
        >>> one, four = jnp.asarray(1.0), jnp.asarray(4.0)
        >>> rmsprop_centered(one, 0 * one, 5 * one, one, one, 0.5, decay=0.8, eps=0.0)[:2]
        (Array(1., dtype=float32), Array(4., dtype=float32))
    """
    del lazy
    scaling = {"decay": decay, "eps": eps, "eps_in_sqrt": eps_in_sqrt}
    new_param, square, mean, v = _rmsprop_centered(
        param,
        grad,
        mean_square,
        mean_grad,
        velocity,
        learning_rate,
        mu=mu,
        nesterov=nesterov,
        **scaling,
    )
    return new_param, square, mean, v


rmsprop_centered.on_rows("grad")(by_rows(_rmsprop_centered, states=3))


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


rmsprop_centered.declare_inplace(
    {
        "param": "new_param",
        "mean_square": "new_mean_square",
        "mean_grad": "new_mean_grad",
        "velocity": "new_velocity",
    },
    update=True,
)
