"""Optimizers that sample from a posterior, or compensate for delayed gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import symop as so
from symop import random
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.base_optimizer import Formula, Found, How, Index, Numbers, register
from symop.interop.mxnet.ops.optimizers import scaled

_HALF_WORD = 2**16


@register
class SGLD(Formula):
    """Stochastic gradient Langevin dynamics: half a step, and noise whose variance is the rate."""

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """Creates no state."""

    def numbers(self, index: Index, rate: float) -> tuple[float, ...]:
        """The rate, and a random key split into parts that are exact in any floating dtype."""
        words = np.asarray(jax.random.key_data(random.next_key("SGLD"))).ravel()
        return rate, *[float(one) for word in words for one in divmod(int(word), _HALF_WORD)]

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """Half a step of gradient descent, and normal noise; MXNet has no such operator."""
        rate, slope = how["lr"], scaled(grad, how["rescale_grad"], how["clip_gradient"])
        noise = so.random_normal(
            so.zeros_like(rate),
            so.sqrt(rate),
            shape=weight.shape,
            dtype=weight.dtype,
            key=_key(more),
        )
        return weight - rate * 0.5 * (slope + how["wd"] * weight) + noise, None


def _key(pieces: Numbers) -> Any:
    """The random key that ``numbers`` split."""
    halves = [one.astype(jnp.uint32) for one in pieces]
    words = [high * _HALF_WORD + low for high, low in zip(halves[::2], halves[1::2], strict=True)]
    return jax.random.wrap_key_data(jnp.stack(words))


@register
class DCASGD(Formula):
    """Gradient descent that compensates for gradients computed at an earlier parameter.

    Args:
        momentum: the decay factor of the velocity; MXNet supports momentum for single entries only.
        lamda: the strength of the compensation.
        **kwargs: see ``Optimizer``.
    """

    settings = ("momentum", "lamda")

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any) -> None:
        """See the class."""
        super().__init__(**kwargs)
        self.momentum, self.lamda = momentum, lamda

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """Creates the velocity, if momentum is used, and a copy of the parameter."""
        velocity = super().create_state(index, weight) if self.momentum else None
        return velocity, array_of(jnp.copy(weight.value))

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """A step along the compensated gradient; MXNet has no such operator."""
        velocity, before = state
        slope = scaled(grad, how["rescale_grad"], how["clip_gradient"])
        delayed = self.lamda * slope * slope * (weight - before)
        moved = -how["lr"] * (slope + how["wd"] * weight + delayed)
        if velocity is None:
            return weight + moved, (None, weight)
        moved = moved + self.momentum * velocity
        return weight + moved, (moved, weight)
