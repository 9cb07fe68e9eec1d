"""Adam with other norms: Adamax scales by a running maximum, LAMB by the norm of a whole layer."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, positive, uniform
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast
from registry.ops.core.comparison import equal, greater_equal, logical_or
from registry.ops.core.elementwise import where
from registry.ops.elementwise.extrema import abs, sign
from registry.ops.elementwise.powers import power, sqrt
from registry.ops.optim.adam import (
    adam_direction,
    adam_direction_gradient,
    adam_direction_reference,
)
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

# Adamax ------------------------------------------------------------------------------------------


def _adamax_reference(
    *arrays: np.ndarray, b1: float, b2: float, eps: float, **_: bool
) -> tuple[np.ndarray, ...]:
    param, grad, moment, norm, step, rate = arrays
    moment = moment + (1 - b1) * (grad - moment)
    norm = np.maximum(b2 * norm, np.abs(grad) + eps)
    return param - rate / (1 - b1 ** (float(step) + 1)) * moment / norm, moment, norm


_STEP = integers(high=5)
_SOME: dict[str, Any] = {"param": (3,), "grad": uniform(3, low=0.2, high=0.8), "moment": (3,)}
_NORM = uniform(3, low=1.5, high=2.0)
_SMALL = uniform(3, low=0.0, high=0.1)


@update(
    _adamax_reference,
    lazy=True,
    cases=[
        case(**_SOME, norm=_NORM, step=0, learning_rate=0.1, order=2),
        case(**_SOME, norm=_SMALL, step=2, learning_rate=(), lazy=True, order=2),
        case(**_SOME, norm=_NORM, step=_STEP, learning_rate=(), b1=0.5, b2=0.75, eps=0.1, order=2),
        case(param=(0,), grad=(0,), moment=(0,), norm=(0,), step=0, learning_rate=0.1, order=1),
        case(
            param=(3, 2),
            grad=SOME_ROWS,
            moment=(3, 2),
            norm=uniform(3, 2, low=9.0, high=9.9),
            step=_STEP,
            learning_rate=(),
            order=1,
        ),
        misuse("one shape", **{**_SOME, "grad": (2,)}, norm=_NORM, step=0, learning_rate=0.1),
        misuse("step must be an integer", **_SOME, norm=_NORM, step=0.5, learning_rate=0.1),
    ],
)
def adamax(
    param: Array,
    grad: Array,
    moment: Array,
    norm: Array,
    step: Array,
    learning_rate: Array,
    *,
    b1: Decay = 0.9,
    b2: Decay = 0.999,
    eps: NotNegative = 1e-8,
) -> tuple[Array, Array, Array]:
    """A step of Adamax; ``step`` is the number of previous steps.

    ``new_moment = b1 * moment + (1 - b1) * grad``, ``new_norm = max(b2 * norm, |grad| + eps)`` and
    ``new_param = param - learning_rate / (1 - b1^(step+1)) * new_moment / new_norm`` (Kingma and
    Ba, "Adam: a method for stochastic optimization", 2015, section 7.1).

    If ``grad`` is ``SelectedRows``, ``lazy`` updates only the rows that it names; by default the
    step equals that of the dense gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> zero = jnp.asarray(0.0)
        >>> round(float(adamax(jnp.asarray(1.0), jnp.asarray(5.0), zero, zero, 0, 0.25)[0]), 3)
        0.75
    """
    m = b1 * moment + (1 - b1) * grad
    u = jnp.maximum(jnp.abs(grad) + eps, b2 * norm)
    return param - learning_rate * (m / (1 - b1 ** (step + 1))) / u, m, u


@adamax.gradient
def _adamax_gradient(
    param: Var,
    grad: Var,
    moment: Var,
    norm: Var,
    step: Var,
    learning_rate: Var,
    new_moment: Var,
    new_norm: Var,
    d_new_param: Var,
    d_new_moment: Var,
    d_new_norm: Var,
    *,
    b1: float,
    b2: float,
    eps: float,
    lazy: bool,
) -> Grads:
    require_defined(grad, lazy=lazy)
    d, d_m, d_u = widely(param, d_new_param, d_new_moment, d_new_norm)
    g, m, u, before, rate = widely(param, grad, new_moment, new_norm, norm, learning_rate)
    correction = 1.0 - power(b1, cast(step, dtype=m.dtype) + 1.0)
    direction = m / (correction * u)
    d_direction = -(rate * d)
    d_m = d_m + d_direction / (correction * u)
    d_u = d_u - d_direction * direction / u
    by_grad = cast(greater_equal(abs(g) + eps, b2 * before), dtype=g.dtype)
    return {
        "param": d_new_param,
        "grad": returned((1 - b1) * d_m + sign(g) * (by_grad * d_u), grad),
        "moment": returned(b1 * d_m, moment),
        "norm": returned(b2 * ((1.0 - by_grad) * d_u), norm),
        "step": None,
        "learning_rate": returned(-inner(d, direction), learning_rate),
    }


# LAMB --------------------------------------------------------------------------------------------


def _norm(x: Any) -> Any:
    square = jnp.sum(x * x)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def _lamb_reference(
    *arrays: np.ndarray, weight_decay: float, lazy: bool, **moving: Any
) -> tuple[np.ndarray, ...]:
    del lazy
    param, grad, moment1, moment2, step, rate = arrays
    direction, m, v = adam_direction_reference(grad, moment1, moment2, step, **moving)
    direction = direction + weight_decay * param
    length, reach = np.linalg.norm(param), np.linalg.norm(direction)
    trust = length / reach if length > 0 and reach > 0 else 1.0
    return param - rate * trust * direction, m, v


_LAMB: dict[str, Any] = {
    "param": (2, 2),
    "grad": (2, 2),
    "moment1": (2, 2),
    "moment2": positive(2, 2),
}


@update(
    _lamb_reference,
    lazy=True,
    cases=[
        case(**_LAMB, step=0, learning_rate=0.1, weight_decay=0.1, order=2),
        case(**_LAMB, step=_STEP, learning_rate=(), b1=0.5, eps=1e-3, eps_root=1e-3, order=2),
        case(**_LAMB, step=2, learning_rate=(), b2=0.75, lazy=True, order=1),
        case(param=(0,), grad=(0,), moment1=(0,), moment2=(0,), step=0, learning_rate=0.1, order=1),
        case(
            param=(3, 2),
            grad=SOME_ROWS,
            moment1=(3, 2),
            moment2=positive(3, 2),
            step=_STEP,
            learning_rate=(),
            order=1,
        ),
        misuse("one shape", **{**_LAMB, "grad": (2,)}, step=0, learning_rate=0.1),
        misuse("be in [0, 1)", **_LAMB, step=0, learning_rate=0.1, b2=1.5),
    ],
)
def lamb(
    param: Array,
    grad: Array,
    moment1: Array,
    moment2: Array,
    step: Array,
    learning_rate: Array,
    *,
    weight_decay: NotNegative = 0.0,
    b1: Decay = 0.9,
    b2: Decay = 0.999,
    eps: NotNegative = 1e-6,
    eps_root: NotNegative = 0.0,
) -> tuple[Array, Array, Array]:
    """A step of LAMB: an AdamW step scaled by the norm of the parameter.

    With the direction ``r`` of ``adam`` and ``q = r + weight_decay * param``: ``new_param = param -
    learning_rate * |param| / |q| * q``, where the ratio is 1 if a norm is zero (You et al., "Large
    batch optimization for deep learning: training BERT in 76 minutes", 2020). ``step`` is the
    number of previous steps.

    If ``grad`` is ``SelectedRows``, ``lazy`` treats the rows that it names as the layer: only they
    are updated, and both norms are theirs. By default the step equals that of the dense gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> zero = jnp.zeros(1)
        >>> lamb(jnp.asarray([2.0]), jnp.asarray([5.0]), zero, zero, 0, 0.25)[0]
        Array([1.5], dtype=float32)
    """
    moving: dict[str, Any] = {"b1": b1, "b2": b2, "eps": eps, "eps_root": eps_root}
    direction, m, v = adam_direction(grad, moment1, moment2, step, nesterov=False, **moving)
    direction = direction + weight_decay * param
    length, reach = _norm(param), _norm(direction)
    known = (length > 0) & (reach > 0)
    trust = jnp.where(known, length / jnp.where(known, reach, 1.0), 1.0)
    return param - learning_rate * trust * direction, m, v


@lamb.gradient
def _lamb_gradient(
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
    weight_decay: float,
    lazy: bool,
    **moving: Any,
) -> Grads:
    require_defined(grad, lazy=lazy)
    d, d_m, d_v = widely(param, d_new_param, d_new_moment1, d_new_moment2)
    p, g, m, v, rate = widely(param, param, grad, new_moment1, new_moment2, learning_rate)
    direction, pull = adam_direction_gradient(g, m, v, step, nesterov=False, **moving)
    q = direction + weight_decay * p
    # The ratio is |p| / |q|: its gradient by p is ratio p / |p|^2, by q -ratio q / |q|^2.
    p_square, q_square = inner(p, p), inner(q, q)
    unknown = logical_or(equal(p_square, 0.0), equal(q_square, 0.0))
    p_square, q_square = where(unknown, 1.0, p_square), where(unknown, 1.0, q_square)
    trust = sqrt(p_square / q_square)
    along = where(unknown, 0.0, -(rate * trust) * inner(d, q))
    d_q = -(rate * trust) * d - (along / q_square) * q
    d_g, d_m, d_v = pull(d_q, d_m, d_v)
    return {
        "param": returned(d + weight_decay * d_q + (along / p_square) * p, param),
        "grad": returned(d_g, grad),
        "moment1": returned(d_m, moment1),
        "moment2": returned(d_v, moment2),
        "step": None,
        "learning_rate": returned(-trust * inner(d, q), learning_rate),
    }
