"""Steps scaled by past gradients, entry by entry: Adagrad and Adadelta."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, positive
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast
from registry.ops.core.comparison import greater
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

# Adagrad ---------------------------------------------------------------------------------------


def _adagrad_reference(*arrays: np.ndarray, eps: float) -> tuple[np.ndarray, ...]:
    param, grad, moment, rate = arrays
    moment = moment + grad**2
    return param - rate * grad / np.sqrt(moment + eps), moment


@update(
    _adagrad_reference,
    cases=[
        case(param=(3, 2), grad=(3, 2), moment=positive(3, 2), learning_rate=0.1, order=2),
        case(param=(3,), grad=(3,), moment=positive(3), learning_rate=(), eps=1e-2, order=2),
        case(param=(), grad=(), moment=positive(), learning_rate=(), order=2, seed=1),
        case(param=(0,), grad=(0,), moment=(0,), learning_rate=0.1, order=1),
        case(param=(3, 2), grad=SOME_ROWS, moment=positive(3, 2), learning_rate=(), order=2),
        misuse("one shape", param=(3,), grad=(3,), moment=(2,), learning_rate=0.1),
        misuse("not be negative", param=(3,), grad=(3,), moment=(3,), learning_rate=0.1, eps=-1),
    ],
)
def adagrad(
    param: Array, grad: Array, moment: Array, learning_rate: Array, *, eps: NotNegative = 1e-7
) -> tuple[Array, Array]:
    """A step of Adagrad: each entry is scaled by the root of the sum of its past squares.

    ``new_moment = moment + grad^2`` and ``new_param = param - learning_rate * grad /
    sqrt(new_moment + eps)``; an entry without any gradient so far is unchanged (Duchi et al.,
    "Adaptive subgradient methods for online learning and stochastic optimization", 2011).

    ``grad`` may be ``SelectedRows``; the step is exact, and only updates the named rows.

    Example:
        >>> import jax.numpy as jnp
        >>> adagrad(jnp.asarray(1.0), jnp.asarray(3.0), jnp.asarray(16.0), 0.5)
        (Array(0.7, dtype=float32), Array(25., dtype=float32))
    """
    total = moment + grad * grad
    seen = total > 0
    root = jnp.sqrt(jnp.where(seen, total, 1.0) + eps)
    return param - learning_rate * jnp.where(seen, grad / root, 0.0), total


@adagrad.gradient
def _adagrad_gradient(
    param: Var,
    grad: Var,
    moment: Var,
    learning_rate: Var,
    new_moment: Var,
    d_new_param: Var,
    d_new_moment: Var,
    *,
    eps: float,
) -> Grads:
    d, d_total, g, total, rate = widely(
        param, d_new_param, d_new_moment, grad, new_moment, learning_rate
    )
    # The step is -rate s g with s = (total + eps)^(-1/2), and s' = -s^3 / 2.
    # Products rather than ``where``, which has no row-sparse form in the second derivative.
    seen = cast(greater(total, 0.0), dtype=total.dtype)
    s = seen / sqrt(total + (1.0 - seen) + eps)
    d_step = -(rate * d)
    d_total = d_total - 0.5 * (d_step * g) * (s * s * s)
    return {
        "param": d_new_param,
        "grad": returned(s * d_step + 2.0 * (d_total * g), grad),
        "moment": returned(d_total, moment),
        "learning_rate": returned(-inner(d * s, g), learning_rate),
    }


# Adadelta --------------------------------------------------------------------------------------


def _adadelta_reference(
    *arrays: np.ndarray, rho: float, eps: float, **_: bool
) -> tuple[np.ndarray, ...]:
    param, grad, square, mean, rate = arrays
    square = square + (1 - rho) * (grad**2 - square)
    step = np.sqrt((mean + eps) / (square + eps)) * grad
    return param - rate * step, square, mean + (1 - rho) * (step**2 - mean)


_SOME: dict[str, Any] = {
    "param": (3,),
    "grad": (3,),
    "mean_square": positive(3),
    "mean_square_step": positive(3),
}


@update(
    _adadelta_reference,
    lazy=True,
    cases=[
        case(**_SOME, learning_rate=1.0, order=2),
        case(**_SOME, learning_rate=(), rho=0.5, eps=1e-2, lazy=True, order=2),
        case(
            param=(3, 2),
            grad=SOME_ROWS,
            mean_square=positive(3, 2),
            mean_square_step=positive(3, 2),
            learning_rate=(),
            order=1,
        ),
        misuse("one shape", **{**_SOME, "grad": (2,)}, learning_rate=1.0),
        misuse("in [0, 1)", **_SOME, learning_rate=1.0, rho=1.0),
    ],
)
def adadelta(
    param: Array,
    grad: Array,
    mean_square: Array,
    mean_square_step: Array,
    learning_rate: Array,
    *,
    rho: Decay = 0.9,
    eps: NotNegative = 1e-6,
) -> tuple[Array, Array, Array]:
    """A step of Adadelta, whose length is the root of the mean square of previous steps.

    ``new_mean_square = rho * mean_square + (1 - rho) * grad^2``, ``step = sqrt(mean_square_step +
    eps) / sqrt(new_mean_square + eps) * grad``, ``new_mean_square_step`` the corresponding average
    of ``step^2``, and ``new_param = param - learning_rate * step`` (Zeiler, "ADADELTA: an adaptive
    learning rate method", 2012, where ``learning_rate`` is 1).

    If ``grad`` is ``SelectedRows``, ``lazy`` updates only the rows that it names; by default the
    step equals that of the dense gradient, in which every average decays.

    Example:
        >>> import jax.numpy as jnp
        >>> one, four = jnp.asarray(1.0), jnp.asarray(4.0)
        >>> adadelta(one, 2 * one, four, one, 1.0, eps=0.0)[:2]
        (Array(0., dtype=float32), Array(4., dtype=float32))
    """
    square = rho * mean_square + (1 - rho) * grad * grad
    step = jnp.sqrt(mean_square_step + eps) / jnp.sqrt(square + eps) * grad
    mean = rho * mean_square_step + (1 - rho) * step * step
    return param - learning_rate * step, square, mean


@adadelta.gradient
def _adadelta_gradient(
    param: Var,
    grad: Var,
    mean_square: Var,
    mean_square_step: Var,
    learning_rate: Var,
    new_mean_square: Var,
    d_new_param: Var,
    d_new_mean_square: Var,
    d_new_mean_square_step: Var,
    *,
    rho: float,
    eps: float,
    lazy: bool,
) -> Grads:
    require_defined(grad, lazy=lazy)
    d, d_square, d_steps = widely(param, d_new_param, d_new_mean_square, d_new_mean_square_step)
    g, square, steps, rate = widely(param, grad, new_mean_square, mean_square_step, learning_rate)
    ratio = sqrt(steps + eps) / sqrt(square + eps)
    step = ratio * g
    d_step = (2.0 * (1 - rho)) * (d_steps * step) - rate * d
    # With r the ratio, dr/dsteps = r / (2 (steps + eps)), dr/dsquare = -r / (2 (square + eps)).
    half = 0.5 * (d_step * step)
    d_square = d_square - half / (square + eps)
    return {
        "param": d_new_param,
        "grad": returned(ratio * d_step + (2.0 * (1 - rho)) * (g * d_square), grad),
        "mean_square": returned(rho * d_square, mean_square),
        "mean_square_step": returned(rho * d_steps + half / (steps + eps), mean_square_step),
        "learning_rate": returned(-inner(d, step), learning_rate),
    }
