"""Operators with a prescribed gradient: scaled, reversed or straight-through."""

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, nonzero
from registry.operator.signature import Array
from registry.ops.core.entrywise import entrywise
from registry.shapes import inexact, real_inexact


@entrywise(
    lambda x, *, factor: x,
    dtype=inexact,
    native=False,
    gradient_reference=lambda x, *, d_out, factor: {"x": np.multiply(factor, d_out)},
    rows="linear",
    samples={"x": None, "factor": 0.5},
    cases=[
        case(x=(), factor=-2.0),
        case(x=(0, 2), factor=0.0),
        misuse("attribute 'factor' must be a float, got 'a'", x=(3,), factor="a"),
    ],
    d_x=lambda d_out, *, factor: d_out * factor,
)
def gradient_multiplier(x: Array, *, factor: float) -> Array:
    """Returns ``x`` and multiplies its gradient by ``factor``.

    This is not the derivative of the identity. Each differentiation through it scales once, so a
    second derivative that passes it twice is scaled by ``factor^2``.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.grad(lambda x: gradient_multiplier(x, factor=0.5) ** 2)(jnp.asarray(3.0))
        Array(3., dtype=float32, weak_type=True)
    """
    del factor
    return jnp.asarray(x)


@entrywise(
    lambda x, *, scale: x,
    dtype=inexact,
    native=False,
    gradient_reference=lambda x, *, d_out, scale: {"x": np.multiply(-scale, d_out)},
    rows="linear",
    cases=[case(x=(), scale=0.25)],
    d_x=lambda d_out, *, scale: d_out * -scale,
)
def gradient_reversal(x: Array, *, scale: float = 1.0) -> Array:
    """Returns ``x`` and multiplies its gradient by ``-scale``.

    Layers before it learn to increase the loss that layers after it learn to decrease.

    Source: Ganin and Lempitsky, "Unsupervised domain adaptation by backpropagation" (2015).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.grad(gradient_reversal)(jnp.asarray(3.0))
        Array(-1., dtype=float32, weak_type=True)
    """
    del scale
    return jnp.asarray(x)


@entrywise(
    np.rint,
    samples=nonzero,
    dtype=real_inexact,
    native=False,
    gradient_reference=lambda x, *, d_out: {"x": d_out},
    aliases=["round_ste"],
    rows="entrywise",
    d_x=lambda d_out: d_out,
)
def round_straight_through(x: Array) -> Array:
    """Rounds to the nearest integer, halves to even, with the gradient of the identity.

    Source: Bengio, Leonard and Courville, "Estimating or propagating gradients through stochastic
    neurons for conditional computation" (2013).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.value_and_grad(round_straight_through)(jnp.float32(2.5))
        (Array(2., dtype=float32), Array(1., dtype=float32))
    """
    return jnp.rint(x)


@entrywise(
    np.sign,
    samples=nonzero,
    dtype=real_inexact,
    native=False,
    aliases=["sign_ste"],
    gradient_reference=lambda x, *, d_out: {"x": d_out},
    rows="entrywise",
    d_x=lambda d_out: d_out,
)
def sign_straight_through(x: Array) -> Array:
    """Sign of each entry, -1, 0 or 1, with the gradient of the identity.

    Source: Bengio, Leonard and Courville, "Estimating or propagating gradients through stochastic
    neurons for conditional computation" (2013).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.value_and_grad(sign_straight_through)(jnp.float32(-2.5))
        (Array(-1., dtype=float32), Array(1., dtype=float32))
    """
    return jnp.sign(x)
