"""FTRL-Proximal: the parameter that would have been best so far, with an L1 and an L2 penalty."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, positive
from registry.operator import Grads
from registry.ops.broadcasting import cast
from registry.ops.comparison import greater
from registry.ops.extrema import abs
from registry.ops.first_order_optimizers import SOME_ROWS
from registry.ops.powers import sqrt
from registry.ops.updates import (
    NotNegative,
    by_rows,
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


def _ftrl(
    param: Any,
    grad: Any,
    squared: Any,
    linear: Any,
    learning_rate: Any,
    *,
    l1: float,
    l2: float,
    beta: float,
) -> Any:
    p, g, n, z, rate = widened(param, grad, squared, linear, learning_rate)
    total = n + g * g
    z = z + g - (jnp.sqrt(total) - jnp.sqrt(n)) / rate * p
    far = jnp.abs(z) > l1
    curvature = (beta + jnp.sqrt(total)) / rate + l2
    new = (jnp.sign(z) * l1 - z) / jnp.where(far, curvature, 1.0)
    return kept([param, squared, linear], jnp.where(far, new, 0.0), total, z)


def _ftrl_reference(
    param: np.ndarray,
    grad: np.ndarray,
    squared: np.ndarray,
    linear: np.ndarray,
    learning_rate: float,
    *,
    l1: float = 0.0,
    l2: float = 0.0,
    beta: float = 0.0,
    lazy: bool = False,
) -> tuple[np.ndarray, ...]:
    """Algorithm 1 of McMahan et al., one coordinate at a time."""
    del lazy
    found = [np.array(one, np.float64) for one in (param, squared, linear)]
    for i in np.ndindex(*param.shape):
        w, g, n, z = float(param[i]), float(grad[i]), float(squared[i]), float(linear[i])
        sigma = (np.sqrt(n + g * g) - np.sqrt(n)) / learning_rate
        z, n = z + g - sigma * w, n + g * g
        curvature = (beta + np.sqrt(n)) / learning_rate + l2
        w = 0.0 if np.abs(z) <= l1 else -(z - np.sign(z) * l1) / curvature
        for array, number in zip(found, (w, n, z), strict=True):
            array[i] = number
    return tuple(one.astype(param.dtype) for one in found)


_SOME: dict[str, Any] = {"param": (3,), "grad": (3,), "squared": positive(3), "linear": (3,)}


@op(
    outputs=["new_param", "new_squared", "new_linear"],
    shape=update_shape(states=2),
    dtype=update_dtype(states=2),
    reference=_ftrl_reference,
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
    lazy: bool = False,
) -> tuple[Array, Array, Array]:
    """A step of FTRL-Proximal, whose L1 penalty makes parameters exactly zero.

    With ``new_squared = squared + grad^2`` and ``sigma = (sqrt(new_squared) - sqrt(squared)) /
    learning_rate``: ``new_linear = linear + grad - sigma * param``, and ``new_param`` is zero where
    ``|new_linear| <= l1``, else ``(sign(new_linear) * l1 - new_linear) / ((beta +
    sqrt(new_squared)) / learning_rate + l2)`` (McMahan et al., "Ad click prediction: a view from
    the trenches", 2013, algorithm 1; ``learning_rate`` is its alpha).

    The parameter follows from the states, so it should start at zero as they do. Where ``grad`` is
    ``SelectedRows``, ``lazy`` updates the rows that it names alone. For parameters that FTRL made
    that is exact; by default all rows are computed anew.

    Example:
        >>> import jax.numpy as jnp
        >>> zero = jnp.asarray(0.0)
        >>> ftrl(zero, jnp.asarray(2.0), zero, zero, 0.5, l1=1.0)
        (Array(-0.25, dtype=float32), Array(4., dtype=float32), Array(2., dtype=float32))
    """
    del lazy
    new_param, total, z = _ftrl(
        param, grad, squared, linear, learning_rate, l1=l1, l2=l2, beta=beta
    )
    return new_param, total, z


ftrl.on_rows("grad")(by_rows(_ftrl, states=2))


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
    # far, since new_param is (sign(z) l1 - z) / curvature, its gradient is -new_param / curvature.
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


ftrl.declare_inplace(
    {"param": "new_param", "squared": "new_squared", "linear": "new_linear"}, update=True
)
