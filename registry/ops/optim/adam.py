"""Adam and AdamW: steps along a moving average, scaled entry by entry by another."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, positive
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast
from registry.ops.elementwise.powers import power, sqrt
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

# The direction that Adam, AdamW and LAMB share ---------------------------------------------------


def adam_direction(
    g: Any,
    m: Any,
    v: Any,
    step: Any,
    *,
    b1: float,
    b2: float,
    eps: float,
    eps_root: float,
    nesterov: bool,
) -> tuple[Any, Any, Any]:
    """Returns the direction of a step and the new moments, for arrays of one dtype."""
    m = b1 * m + (1 - b1) * g
    v = b2 * v + (1 - b2) * g * g
    t = step + 1
    ahead = m / (1 - b1**t)
    if nesterov:
        ahead = b1 * m / (1 - b1 ** (t + 1)) + (1 - b1) * g / (1 - b1**t)
    return ahead / (jnp.sqrt(v / (1 - b2**t) + eps_root) + eps), m, v


def adam_direction_reference(
    grad: np.ndarray,
    moment1: np.ndarray,
    moment2: np.ndarray,
    step: np.ndarray,
    *,
    b1: float,
    b2: float,
    eps: float,
    eps_root: float,
    nesterov: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the same in NumPy, in double precision."""
    grad, moment1, moment2 = (np.asarray(one, float) for one in (grad, moment1, moment2))
    t = float(step) + 1
    moment1 = moment1 + (1 - b1) * (grad - moment1)
    moment2 = moment2 + (1 - b2) * (grad**2 - moment2)
    ahead = moment1 / (1 - b1**t)
    if nesterov:
        ahead = b1 * moment1 / (1 - b1 ** (t + 1)) + (1 - b1) * grad / (1 - b1**t)
    return ahead / (np.sqrt(moment2 / (1 - b2**t) + eps_root) + eps), moment1, moment2


def adam_direction_gradient(
    g: Any,
    m: Any,
    v: Any,
    step: Var,
    *,
    b1: float,
    b2: float,
    eps: float,
    eps_root: float,
    nesterov: bool,
) -> tuple[Any, Any]:
    """Returns the direction, from the gradient and the new moments, and its pullback.

    The pullback maps cotangents of the direction and of the new moments to those of the gradient
    and of the old moments. With the corrected averages ``a`` and ``w`` and the root ``r = sqrt(w +
    eps_root)``, the direction is ``a / (r + eps)``, and ``dr/dw = 1 / (2 r)``.
    """
    t = cast(step, dtype=m.dtype) + 1.0
    c1, c2 = 1.0 - power(b1, t), 1.0 - power(b2, t)
    scale = b1 / (1.0 - power(b1, t + 1.0)) if nesterov else 1.0 / c1
    ahead = m * scale
    if nesterov:
        ahead = ahead + (1 - b1) * g / c1
    root = sqrt(v / c2 + eps_root)
    direction = ahead / (root + eps)

    def pull(d: Any, d_m: Any, d_v: Any) -> tuple[Any, Any, Any]:
        d_ahead = d / (root + eps)
        d_m = d_m + d_ahead * scale
        d_v = d_v - d_ahead * direction / (2.0 * c2 * root)
        d_g = (1 - b1) * d_m + (2.0 * (1 - b2)) * (g * d_v)
        if nesterov:
            d_g = d_g + (1 - b1) * d_ahead / c1
        return d_g, b1 * d_m, b2 * d_v

    return direction, pull


# Adam and AdamW ----------------------------------------------------------------------------------


def _adamw_reference(
    *arrays: np.ndarray, weight_decay: float = 0.0, lazy: bool, **moving: Any
) -> tuple[np.ndarray, ...]:
    del lazy
    param, grad, moment1, moment2, step, rate = arrays
    direction, m, v = adam_direction_reference(grad, moment1, moment2, step, **moving)
    return param - rate * (direction + weight_decay * param), m, v


def _adam_gradient(
    param: Var,
    grad: Var,
    moment1: Var,
    moment2: Var,
    step: Var,
    learning_rate: Var,
    new_moment1: Var,
    new_moment2: Var,
    d_new_param: Var,
    d_new_moment1: Var,
    d_new_moment2: Var,
    *,
    lazy: bool,
    **attributes: Any,
) -> Grads:
    """The gradients of both operators, which differ in the decay."""
    weight_decay = attributes.pop("weight_decay", 0.0)
    require_defined(grad, lazy=lazy)
    p, g, m, v, rate = widely(param, param, grad, new_moment1, new_moment2, learning_rate)
    d, d_m, d_v = widely(param, d_new_param, d_new_moment1, d_new_moment2)
    direction, pull = adam_direction_gradient(g, m, v, step, **attributes)
    d_g, d_m, d_v = pull(-(rate * d), d_m, d_v)
    taken = direction + weight_decay * p if weight_decay else direction
    return {
        "param": returned(d - weight_decay * (rate * d) if weight_decay else d, param),
        "grad": returned(d_g, grad),
        "moment1": returned(d_m, moment1),
        "moment2": returned(d_v, moment2),
        "step": None,
        "learning_rate": returned(-inner(d, taken), learning_rate),
    }


_SOME: dict[str, Any] = {"param": (3,), "grad": (3,), "moment1": (3,), "moment2": positive(3)}
_ROWS: dict[str, Any] = {
    "param": (3, 2),
    "grad": SOME_ROWS,
    "moment1": (3, 2),
    "moment2": positive(3, 2),
}
_STEP = integers(high=5)
_OTHERS: dict[str, Any] = {"b1": 0.5, "b2": 0.75, "eps": 1e-3, "eps_root": 1e-3, "lazy": True}


@update(
    _adamw_reference,
    lazy=True,
    cases=[
        case(**_SOME, step=0, learning_rate=0.1, order=2),
        case(
            **_SOME, step=_STEP, learning_rate=(), b1=0.5, b2=0.75, eps=1e-3, eps_root=1e-3, order=2
        ),
        case(**_SOME, step=3, learning_rate=(), nesterov=True, lazy=True, order=2),
        case(
            param=(), grad=(), moment1=(), moment2=positive(), step=_STEP, learning_rate=(), order=1
        ),
        case(param=(0,), grad=(0,), moment1=(0,), moment2=(0,), step=0, learning_rate=0.1, order=1),
        case(**_ROWS, step=_STEP, learning_rate=(), order=1),
        misuse("one shape", **{**_SOME, "grad": (2,)}, step=0, learning_rate=0.1),
        misuse("step must be an integer", **_SOME, step=0.5, learning_rate=0.1),
        misuse("must be single numbers", **_SOME, step=integers(2, high=3), learning_rate=0.1),
        misuse("be in [0, 1)", **_SOME, step=0, learning_rate=0.1, b1=1.0),
    ],
)
def adam(
    param: Array,
    grad: Array,
    moment1: Array,
    moment2: Array,
    step: Array,
    learning_rate: Array,
    *,
    b1: Decay = 0.9,
    b2: Decay = 0.999,
    eps: NotNegative = 1e-8,
    eps_root: NotNegative = 0.0,
    nesterov: bool = False,
) -> tuple[Array, Array, Array]:
    """A step of Adam; ``step`` is the number of previous steps, zero at the first one.

    ``new_moment1 = b1 * moment1 + (1 - b1) * grad``, ``new_moment2 = b2 * moment2 + (1 - b2) *
    grad^2``, and with ``t = step + 1`` and the averages ``a = new_moment1 / (1 - b1^t)`` and ``w =
    new_moment2 / (1 - b2^t)``: ``new_param = param - learning_rate * a / (sqrt(w + eps_root) +
    eps)`` (Kingma and Ba, "Adam: a method for stochastic optimization", 2015). With ``nesterov``
    ``a`` is ``b1 * new_moment1 / (1 - b1^(t+1)) + (1 - b1) * grad / (1 - b1^t)`` (Dozat,
    "Incorporating Nesterov momentum into Adam", 2016).

    If ``grad`` is ``SelectedRows``, ``lazy`` updates parameter and moments only in the rows that it
    names, with the bias correction of ``step``, and leaves the other rows unchanged. By default the
    step equals that of the dense gradient, in which every moment decays and every row moves: its
    cost is that of the whole table.

    Example:
        >>> import jax.numpy as jnp
        >>> zero = jnp.asarray(0.0)
        >>> round(float(adam(jnp.asarray(1.0), jnp.asarray(5.0), zero, zero, 0, 0.25)[0]), 3)
        0.75
    """
    moving: dict[str, Any] = {"b1": b1, "b2": b2, "eps": eps, "eps_root": eps_root}
    direction, m, v = adam_direction(grad, moment1, moment2, step, nesterov=nesterov, **moving)
    return param - learning_rate * direction, m, v


adam.gradient(_adam_gradient)


@update(
    _adamw_reference,
    lazy=True,
    cases=[
        case(**_SOME, step=0, learning_rate=0.1, weight_decay=0.1, order=2),
        case(**_SOME, step=3, learning_rate=(), weight_decay=0.5, nesterov=True, order=2),
        case(**_SOME, step=3, learning_rate=(), weight_decay=0.0, **_OTHERS, order=1),
        case(**_ROWS, step=_STEP, learning_rate=(), weight_decay=0.1, order=1),
        misuse("one shape", **{**_SOME, "grad": (2,)}, step=0, learning_rate=0.1),
        misuse("not be negative", **_SOME, step=0, learning_rate=0.1, weight_decay=-1.0),
    ],
)
def adamw(
    param: Array,
    grad: Array,
    moment1: Array,
    moment2: Array,
    step: Array,
    learning_rate: Array,
    *,
    weight_decay: NotNegative = 1e-4,
    b1: Decay = 0.9,
    b2: Decay = 0.999,
    eps: NotNegative = 1e-8,
    eps_root: NotNegative = 0.0,
    nesterov: bool = False,
) -> tuple[Array, Array, Array]:
    """A step of Adam with decoupled decay of the parameter by ``learning_rate * weight_decay``.

    ``new_param`` is that of ``adam`` minus ``learning_rate * weight_decay * param``; the decay is
    not scaled as a gradient would be (Loshchilov and Hutter, "Decoupled weight decay
    regularization", 2019). With ``lazy`` only the rows that ``grad`` names decay. Everything else
    is as in ``adam``.

    Example:
        >>> import jax.numpy as jnp
        >>> one, zero = jnp.asarray(1.0), jnp.asarray(0.0)
        >>> round(float(adamw(one, 5 * one, zero, zero, 0, 0.25, weight_decay=1.0)[0]), 3)
        0.5
    """
    moving: dict[str, Any] = {"b1": b1, "b2": b2, "eps": eps, "eps_root": eps_root}
    direction, m, v = adam_direction(grad, moment1, moment2, step, nesterov=nesterov, **moving)
    taken = direction + weight_decay * param if weight_decay else direction
    return param - learning_rate * taken, m, v


adamw.gradient(_adam_gradient)
