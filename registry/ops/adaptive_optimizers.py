"""Steps scaled by past gradients, entry by entry: Adagrad and Adadelta."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, positive
from registry.operator import Grads
from registry.ops.broadcasting import cast
from registry.ops.comparison import greater
from registry.ops.first_order_optimizers import SOME_ROWS
from registry.ops.powers import sqrt
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

# Adagrad ---------------------------------------------------------------------------------------


def _adagrad(param: Any, grad: Any, moment: Any, learning_rate: Any, *, eps: float) -> Any:
    p, g, total, rate = widened(param, grad, moment, learning_rate)
    total = total + g * g
    seen = total > 0
    root = jnp.sqrt(jnp.where(seen, total, 1.0) + eps)
    return kept([param, moment], p - rate * jnp.where(seen, g / root, 0.0), total)


def _adagrad_reference(
    param: np.ndarray,
    grad: np.ndarray,
    moment: np.ndarray,
    learning_rate: np.ndarray,
    *,
    eps: float = 1e-7,
) -> tuple[np.ndarray, np.ndarray]:
    moment = moment + grad**2
    step = learning_rate * grad / np.sqrt(moment + eps)
    return (param - step).astype(param.dtype), moment.astype(param.dtype)


@op(
    outputs=["new_param", "new_moment"],
    shape=update_shape(states=1),
    dtype=update_dtype(states=1),
    reference=_adagrad_reference,
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
    """A step of Adagrad: each entry is scaled by the root of its squares summed so far.

    ``new_moment = moment + grad^2`` and ``new_param = param - learning_rate * grad /
    sqrt(new_moment + eps)``; an entry that has seen no gradient stays (Duchi et al., "Adaptive
    subgradient methods for online learning and stochastic optimization", 2011).

    ``grad`` may be ``SelectedRows``; the step is exact, and touches the rows alone.

    Example:
        >>> import jax.numpy as jnp
        >>> adagrad(jnp.asarray(1.0), jnp.asarray(3.0), jnp.asarray(16.0), 0.5)
        (Array(0.7, dtype=float32), Array(25., dtype=float32))
    """
    new_param, new_moment = _adagrad(param, grad, moment, learning_rate, eps=eps)
    return new_param, new_moment


adagrad.on_rows("grad")(by_rows(_adagrad, states=1))


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
    # Products rather than ``where``, through which no rows go when this is differentiated again.
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


adagrad.declare_inplace({"param": "new_param", "moment": "new_moment"}, update=True)


# Adadelta --------------------------------------------------------------------------------------


def _adadelta(
    param: Any,
    grad: Any,
    mean_square: Any,
    mean_square_step: Any,
    learning_rate: Any,
    *,
    rho: float,
    eps: float,
) -> Any:
    p, g, square, steps, rate = widened(param, grad, mean_square, mean_square_step, learning_rate)
    square = rho * square + (1 - rho) * g * g
    step = jnp.sqrt(steps + eps) / jnp.sqrt(square + eps) * g
    steps = rho * steps + (1 - rho) * step * step
    return kept([param, mean_square, mean_square_step], p - rate * step, square, steps)


def _adadelta_reference(
    param: np.ndarray,
    grad: np.ndarray,
    mean_square: np.ndarray,
    mean_square_step: np.ndarray,
    learning_rate: np.ndarray,
    *,
    rho: float = 0.9,
    eps: float = 1e-6,
    lazy: bool = False,
) -> tuple[np.ndarray, ...]:
    del lazy
    mean_square = mean_square + (1 - rho) * (grad**2 - mean_square)
    step = np.sqrt((mean_square_step + eps) / (mean_square + eps)) * grad
    found = (
        param - learning_rate * step,
        mean_square,
        mean_square_step + (1 - rho) * (step**2 - mean_square_step),
    )
    return tuple(one.astype(param.dtype) for one in found)


_SOME: dict[str, Any] = {
    "param": (3,),
    "grad": (3,),
    "mean_square": positive(3),
    "mean_square_step": positive(3),
}


@op(
    outputs=["new_param", "new_mean_square", "new_mean_square_step"],
    shape=update_shape(states=2),
    dtype=update_dtype(states=2),
    reference=_adadelta_reference,
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
    lazy: bool = False,
) -> tuple[Array, Array, Array]:
    """A step of Adadelta, whose length is the root of the mean square of the steps before.

    ``new_mean_square = rho * mean_square + (1 - rho) * grad^2``, ``step = sqrt(mean_square_step +
    eps) / sqrt(new_mean_square + eps) * grad``, ``new_mean_square_step`` the like average of
    ``step^2``, and ``new_param = param - learning_rate * step`` (Zeiler, "ADADELTA: an adaptive
    learning rate method", 2012, where ``learning_rate`` is 1).

    Where ``grad`` is ``SelectedRows``, ``lazy`` updates the rows that it names alone; by default
    the step is that of the dense gradient, in which every average decays.

    Example:
        >>> import jax.numpy as jnp
        >>> one, four = jnp.asarray(1.0), jnp.asarray(4.0)
        >>> adadelta(one, 2 * one, four, one, 1.0, eps=0.0)[:2]
        (Array(0., dtype=float32), Array(4., dtype=float32))
    """
    del lazy
    new_param, square, steps = _adadelta(
        param, grad, mean_square, mean_square_step, learning_rate, rho=rho, eps=eps
    )
    return new_param, square, steps


adadelta.on_rows("grad")(by_rows(_adadelta, states=2))


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


adadelta.declare_inplace(
    {
        "param": "new_param",
        "mean_square": "new_mean_square",
        "mean_square_step": "new_mean_square_step",
    },
    update=True,
)
