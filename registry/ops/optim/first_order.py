"""Steps along the gradient (SGD, momentum), and weight decay as part of a gradient."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse
from registry.operator import row_kernels
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.optim.updates import (
    Decay,
    NotNegative,
    by_rows,
    inner,
    kept,
    require_defined,
    returned,
    update,
    update_dtype,
    update_shape,
    widely,
    widened,
)
from registry.row_samples import selected_rows
from registry.shapes import same
from registry.table import op
from registry.types import DType, VarKind, VarType, promoted
from registry.values import SelectedRows
from registry.var import Var

SOME_ROWS = selected_rows(5, 2, height=3)
"""A gradient in cases, for a parameter of shape (3, 2): rows may repeat or lie outside."""


# SGD -------------------------------------------------------------------------------------------


def _sgd(param: Any, grad: Any, learning_rate: Any) -> Any:
    p, g, rate = widened(param, grad, learning_rate)
    (new,) = kept([param], p - rate * g)
    return new


def _sgd_reference(param: np.ndarray, grad: np.ndarray, learning_rate: np.ndarray) -> np.ndarray:
    return np.asarray(param - learning_rate * grad, param.dtype)


@op(
    outputs=["new_param"],
    shape=update_shape(states=0),
    dtype=update_dtype(states=0),
    reference=_sgd_reference,
    cases=[
        case(param=(3, 2), grad=(3, 2), learning_rate=0.1),
        case(param=(3, 2), grad=SOME_ROWS, learning_rate=()),
        case(param=(), grad=(), learning_rate=()),
        case(param=(0, 2), grad=(0, 2), learning_rate=0.1),
        misuse(
            "parameter, gradient and states must have one shape, got (3,), (4,)",
            param=(3,),
            grad=(4,),
            learning_rate=0.1,
        ),
        misuse("must be single numbers", param=(3,), grad=(3,), learning_rate=(2,)),
        misuse("must be real floating", param=np.zeros(3, int), grad=(3,), learning_rate=0.1),
    ],
)
def sgd(param: Array, grad: Array, learning_rate: Array) -> Array:
    """A step of gradient descent: ``new_param = param - learning_rate * grad``.

    ``grad`` may be ``SelectedRows``; the step is exact, and its cost is that of the rows alone if
    ``param`` is donated. The computation is in single precision at least; the parameter keeps its
    dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> sgd(jnp.asarray([1.0, 2.0]), jnp.asarray([2.0, 0.0]), 0.25)
        Array([0.5, 2. ], dtype=float32)
    """
    new_param: Array = _sgd(param, grad, learning_rate)
    return new_param


@sgd.on_rows("grad")
def _sgd_rows(param: Array, grad: SelectedRows, learning_rate: Array) -> Any:
    param = jnp.asarray(param)
    if param.dtype.itemsize < 4:  # so that it is rounded once
        return by_rows(_sgd, states=0)(param, grad, learning_rate)
    # The step is linear in the rows: rows that are named twice need no merging.
    rate = jnp.asarray(learning_rate, param.dtype)
    return grad.mapped(lambda values: -rate * values.astype(param.dtype)).added_to(param)


@sgd.gradient
def _sgd_gradient(param: Var, grad: Var, learning_rate: Var, d_new_param: Var) -> Grads:
    d, g, rate = widely(param, d_new_param, grad, learning_rate)
    return {
        "param": d_new_param,
        "grad": returned(-(rate * d), grad),
        "learning_rate": returned(-inner(d, g), learning_rate),
    }


sgd.declare_inplace({"param": "new_param"}, update=True)


# Momentum --------------------------------------------------------------------------------------


def _momentum_reference(
    *arrays: np.ndarray, mu: float, nesterov: bool, **_: bool
) -> tuple[np.ndarray, ...]:
    param, grad, velocity, rate = arrays
    velocity = mu * velocity + grad
    return param - rate * (grad + mu * velocity if nesterov else velocity), velocity


@update(
    _momentum_reference,
    lazy=True,
    cases=[
        case(param=(3, 2), grad=(3, 2), velocity=(3, 2), learning_rate=0.1),
        case(param=(4,), grad=(4,), velocity=(4,), learning_rate=(), mu=0.5, nesterov=True),
        case(param=(), grad=(), velocity=(), learning_rate=(), lazy=True),
        case(param=(0,), grad=(0,), velocity=(0,), learning_rate=0.1),
        case(param=(3, 2), grad=SOME_ROWS, velocity=(3, 2), learning_rate=0.1, nesterov=True),
        misuse("one shape", param=(3,), grad=(3,), velocity=(2,), learning_rate=0.1),
        misuse("be in [0, 1)", param=(3,), grad=(3,), velocity=(3,), learning_rate=0.1, mu=1.0),
    ],
)
def momentum(
    param: Array,
    grad: Array,
    velocity: Array,
    learning_rate: Array,
    *,
    mu: Decay = 0.9,
    nesterov: bool = False,
) -> tuple[Array, Array]:
    """A step of gradient descent with momentum (Polyak 1964) or Nesterov momentum.

    ``new_velocity = mu * velocity + grad`` and ``new_param = param - learning_rate *
    new_velocity``; with ``nesterov`` the step is ``grad + mu * new_velocity`` instead (Sutskever
    et al., "On the importance of initialization and momentum in deep learning", 2013).

    If ``grad`` is ``SelectedRows``, ``lazy`` updates parameter and velocity only in the rows that
    it names, and leaves the other rows unchanged. By default the step equals that of the dense
    gradient, in which every velocity decays and every row moves: its cost is that of the whole
    table.

    Example:
        >>> import jax.numpy as jnp
        >>> momentum(jnp.asarray(1.0), jnp.asarray(1.0), jnp.asarray(2.0), 0.5, mu=0.5)
        (Array(0., dtype=float32), Array(2., dtype=float32))
    """
    new_velocity = mu * velocity + grad
    ahead = grad + mu * new_velocity if nesterov else new_velocity
    return param - learning_rate * ahead, new_velocity


@momentum.gradient
def _momentum_gradient(
    param: Var,
    grad: Var,
    velocity: Var,
    learning_rate: Var,
    new_velocity: Var,
    d_new_param: Var,
    d_new_velocity: Var,
    *,
    mu: float,
    nesterov: bool,
    lazy: bool,
) -> Grads:
    require_defined(grad, lazy=lazy)
    d, d_v, g, v, rate = widely(
        param, d_new_param, d_new_velocity, grad, new_velocity, learning_rate
    )
    d_step = -(rate * d)
    d_v = d_v + (mu * d_step if nesterov else d_step)
    return {
        "param": d_new_param,
        "grad": returned(d_v + d_step if nesterov else d_v, grad),
        "velocity": returned(mu * d_v, velocity),
        "learning_rate": returned(-inner(d, mu * v + g if nesterov else v), learning_rate),
    }


# Weight decay ----------------------------------------------------------------------------------


def _decayed_dtype(grad: VarType, param: VarType) -> tuple[DType, bool]:
    update_dtype(states=0)(param, grad)
    return promoted(grad, param)


@op(
    shape=same,
    dtype=_decayed_dtype,
    reference=lambda grad, param, *, weight_decay, lazy: np.asarray(
        grad + weight_decay * param, grad.dtype
    ),
    cases=[
        case(grad=(3, 2), param=(3, 2), weight_decay=0.1),
        case(grad=(), param=(), weight_decay=0.0),
        case(grad=(0,), param=(0,), weight_decay=0.5, lazy=True),
        case(grad=SOME_ROWS, param=(3, 2), weight_decay=0.1),
        misuse("the same shape, got (3,) and (4,)", grad=(3,), param=(4,), weight_decay=0.1),
        misuse("must not be negative", grad=(3,), param=(3,), weight_decay=-0.1),
    ],
)
def add_decayed_weights(
    grad: Array, param: Array, *, weight_decay: NotNegative, lazy: bool = False
) -> Array:
    """``grad + weight_decay * param``: the gradient with that of an L2 penalty added.

    The penalty is ``weight_decay / 2 * |param|^2``. Applied before an optimizer, this is coupled
    weight decay; ``adamw`` and ``lamb`` have decoupled decay. If ``grad`` is ``SelectedRows``,
    ``lazy`` decays only the rows that it names, once each, and the result is row-sparse; by default
    all rows decay, and the result is dense.

    Example:
        >>> import jax.numpy as jnp
        >>> add_decayed_weights(jnp.asarray([1.0]), jnp.asarray([2.0]), weight_decay=0.5)
        Array([2.], dtype=float32)
    """
    del lazy
    return grad + weight_decay * jnp.asarray(param)


@add_decayed_weights.kind
def _decayed_kind(grad: VarKind, *, lazy: bool) -> VarKind:
    return grad if lazy else VarKind.LOD_TENSOR


@add_decayed_weights.on_rows("grad")
def _decay_rows(grad: SelectedRows, param: Array, *, weight_decay: float, lazy: bool) -> Any:
    if not lazy:
        return row_kernels.total(grad, weight_decay * jnp.asarray(param))
    merged = grad.merged()
    return merged.mapped(lambda values: values + weight_decay * merged.of(param))


@add_decayed_weights.gradient
def _add_decayed_weights_gradient(
    grad: Var, param: Var, d_out: Var, *, weight_decay: float, lazy: bool
) -> Grads:
    require_defined(grad, lazy=lazy)
    return {"grad": returned(d_out, grad), "param": returned(weight_decay * d_out, param)}
