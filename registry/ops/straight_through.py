"""Operators whose gradient is chosen rather than derived: scaled, reversed, or straight through."""

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, nonzero
from registry.operator import Grads
from registry.shapes import REFUSES_INTEGERS, inexact, real_inexact, same
from registry.signature import Array
from registry.table import op
from registry.var import Var


@op(
    shape=same,
    dtype=inexact,
    native=False,
    reference=lambda x, *, factor: x,
    gradient_reference=lambda x, *, d_out, factor: {"x": np.multiply(factor, d_out)},
    rows="linear",
    cases=[
        case(x=(3, 4), factor=0.5),
        case(x=(), factor=-2.0),
        case(x=(0, 2), factor=0.0),
        misuse("the inputs must be floating, got int32", x=integers(3, high=4), factor=2.0),
        misuse("attribute 'factor' must be a float, got 'a'", x=(3,), factor="a"),
    ],
)
def gradient_multiplier(x: Array, *, factor: float) -> Array:
    """``x`` itself, whose gradient is multiplied by ``factor`` on its way back.

    It is not the derivative of the identity: each derivative that passes here is scaled once, so
    that a second derivative which passes twice is scaled by ``factor^2``.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.grad(lambda x: gradient_multiplier(x, factor=0.5) ** 2)(jnp.asarray(3.0))
        Array(3., dtype=float32, weak_type=True)
    """
    del factor
    return jnp.asarray(x)


@gradient_multiplier.gradient
def _gradient_multiplier_gradient(d_out: Var, *, factor: float) -> Grads:
    return {"x": d_out * factor}


@op(
    shape=same,
    dtype=inexact,
    native=False,
    reference=lambda x, *, scale: x,
    gradient_reference=lambda x, *, d_out, scale: {"x": np.multiply(-scale, d_out)},
    rows="linear",
    cases=[case(x=(3, 4)), case(x=(), scale=0.25), case(x=(0, 2)), REFUSES_INTEGERS],
)
def gradient_reversal(x: Array, *, scale: float = 1.0) -> Array:
    """``x`` itself, whose gradient is multiplied by ``-scale`` on its way back.

    What lies before it learns to increase the loss that what lies behind it learns to decrease.

    Source: Ganin and Lempitsky, "Unsupervised domain adaptation by backpropagation" (2015).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.grad(gradient_reversal)(jnp.asarray(3.0))
        Array(-1., dtype=float32, weak_type=True)
    """
    del scale
    return jnp.asarray(x)


@gradient_reversal.gradient
def _gradient_reversal_gradient(d_out: Var, *, scale: float) -> Grads:
    return {"x": d_out * -scale}


@op(
    shape=same,
    dtype=real_inexact,
    native=False,
    reference=np.rint,
    gradient_reference=lambda x, *, d_out: {"x": d_out},
    aliases=["round_ste"],
    rows="entrywise",
    cases=[case(x=nonzero(3, 4)), case(x=nonzero()), case(x=(0, 2)), REFUSES_INTEGERS],
)
def round_straight_through(x: Array) -> Array:
    """Nearest whole number, halves to the even one; the gradient passes as if nothing happened.

    Source: Bengio, Leonard and Courville, "Estimating or propagating gradients through stochastic
    neurons for conditional computation" (2013).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.value_and_grad(round_straight_through)(jnp.float32(2.5))
        (Array(2., dtype=float32), Array(1., dtype=float32))
    """
    return jnp.rint(x)


@round_straight_through.gradient
def _round_straight_through_gradient(d_out: Var) -> Grads:
    return {"x": d_out}


@op(
    shape=same,
    dtype=real_inexact,
    native=False,
    aliases=["sign_ste"],
    reference=np.sign,
    gradient_reference=lambda x, *, d_out: {"x": d_out},
    rows="entrywise",
    cases=[case(x=nonzero(3, 4)), case(x=nonzero()), case(x=(0, 2)), REFUSES_INTEGERS],
)
def sign_straight_through(x: Array) -> Array:
    """-1, 0 or 1: the sign of each entry; the gradient passes as if nothing happened.

    Source: Bengio, Leonard and Courville, "Estimating or propagating gradients through stochastic
    neurons for conditional computation" (2013).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.value_and_grad(sign_straight_through)(jnp.float32(-2.5))
        (Array(-1., dtype=float32), Array(1., dtype=float32))
    """
    return jnp.sign(x)


@sign_straight_through.gradient
def _sign_straight_through_gradient(d_out: Var) -> Grads:
    return {"x": d_out}
