"""FTRL-Proximal: follow the regularized leader, with an L1 and an L2 penalty."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, positive
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast
from registry.ops.core.comparison import greater
from registry.ops.elementwise.extrema import abs
from registry.ops.elementwise.powers import sqrt
from registry.ops.optim.first_order import SOME_ROWS
from registry.ops.optim.updates import (
    NotNegative,
    require_defined,
    returned,
    update,
    widely,
)
from registry.var import Var


def _ftrl_reference(
    *arrays: np.ndarray, l1: float, l2: float, beta: float, **_: bool
) -> tuple[np.ndarray, ...]:
    """Algorithm 1 of McMahan et al., one coordinate at a time."""
    param, grad, squared, linear, learning_rate = arrays
    results = [np.array(one, np.float64) for one in (param, squared, linear)]
    for i in np.ndindex(*param.shape):
        w, g, n, z = float(param[i]), float(grad[i]), float(squared[i]), float(linear[i])
        sigma = (np.sqrt(n + g * g) - np.sqrt(n)) / learning_rate
        z, n = z + g - sigma * w, n + g * g
        curvature = (beta + np.sqrt(n)) / learning_rate + l2
        w = 0.0 if np.abs(z) <= l1 else -(z - np.sign(z) * l1) / curvature
        for array, number in zip(results, (w, n, z), strict=True):
            array[i] = number
    return tuple(results)


_SOME: dict[str, Any] = {"param": (3,), "grad": (3,), "squared": positive(3), "linear": (3,)}


@update(
    _ftrl_reference,
    lazy=True,
    cases=[
        case(**_SOME, learning_rate=0.5, order=2),
        case(**_SOME, learning_rate=positive(), l1=0.3, l2=0.5, beta=1.0, lazy=True, order=2),
        case(param=(), grad=(), squared=positive(), linear=(), learning_rate=positive(), order=2),
        case(param=(0,), grad=(0,), squared=(0,), linear=(0,), learning_rate=0.1, order=1),
        case(
            param=(3, 2),
            grad=SOME_ROWS,
            squared=positive(3, 2),
            linear=(3, 2),
            learning_rate=positive(),
            l1=0.1,
            order=1,
        ),
        misuse("one shape", **{**_SOME, "grad": (2,)}, learning_rate=0.1),
        misuse("must not be negative", **_SOME, learning_rate=0.1, l1=-0.5),
    ],
)
def ftrl(
    param: Array,
    grad: Array,
    squared: Array,
    linear: Array,
    learning_rate: Array,
    *,
    l1: NotNegative = 0.0,
    l2: NotNegative = 0.0,
    beta: NotNegative = 0.0,
) -> tuple[Array, Array, Array]:
    """A step of FTRL-Proximal, whose L1 penalty makes parameters exactly zero.

    With ``new_squared = squared + grad^2`` and ``sigma = (sqrt(new_squared) - sqrt(squared)) /
    learning_rate``: ``new_linear = linear + grad - sigma * param``, and ``new_param`` is zero where
    ``|new_linear| <= l1``, else ``(sign(new_linear) * l1 - new_linear) / ((beta +
    sqrt(new_squared)) / learning_rate + l2)`` (McMahan et al., "Ad click prediction: a view from
    the trenches", 2013, algorithm 1; ``learning_rate`` is its alpha).

    The parameter is a function of the states, so it should start at zero like them. If ``grad`` is
    ``SelectedRows``, ``lazy`` updates only the rows that it names, which is exact for parameters
    that FTRL computed; by default all rows are recomputed.

    Example:
        >>> import jax.numpy as jnp
        >>> zero = jnp.asarray(0.0)
        >>> ftrl(zero, jnp.asarray(2.0), zero, zero, 0.5, l1=1.0)
        (Array(-0.25, dtype=float32), Array(4., dtype=float32), Array(2., dtype=float32))
    """
    total = squared + grad * grad
    z = linear + grad - (jnp.sqrt(total) - jnp.sqrt(squared)) / learning_rate * param
    far = jnp.abs(z) > l1
    curvature = (beta + jnp.sqrt(total)) / learning_rate + l2
    new = (jnp.sign(z) * l1 - z) / jnp.where(far, curvature, 1.0)
    return jnp.where(far, new, 0.0), total, z


@ftrl.gradient
def _ftrl_gradient(
    param: Var,
    grad: Var,
    squared: Var,
    linear: Var,
    learning_rate: Var,
    new_param: Var,
    new_squared: Var,
    new_linear: Var,
    d_new_param: Var,
    d_new_squared: Var,
    d_new_linear: Var,
    *,
    l1: float,
    l2: float,
    beta: float,
    lazy: bool,
) -> Grads:
    require_defined(grad, lazy=lazy)
    d, d_total, d_z = widely(param, d_new_param, d_new_squared, d_new_linear)
    p, g, new, rate = widely(param, param, grad, new_param, learning_rate)
    n, total, z = widely(param, squared, new_squared, new_linear)
    root, before = sqrt(total), sqrt(n)
    sigma, curvature = (root - before) / rate, (beta + root) / rate + l2
    far = cast(greater(abs(z), l1), dtype=z.dtype)
    d_z = d_z - far * d / curvature
    # Where far, new_param is (sign(z) l1 - z) / curvature, so its gradient is -new_param /
    # curvature.
    d_curvature = -(d * new) / curvature
    d_sigma = -(d_z * p)
    d_total = d_total + (d_curvature + d_sigma) / rate / (2.0 * root)
    d_rate = -(d_curvature * (beta + root) / rate + d_sigma * sigma) / rate
    return {
        "param": returned(-(d_z * sigma), param),
        "grad": returned(d_z + 2.0 * (g * d_total), grad),
        "squared": returned(d_total - d_sigma / rate / (2.0 * before), squared),
        "linear": returned(d_z, linear),
        "learning_rate": returned(d_rate, learning_rate),
    }
