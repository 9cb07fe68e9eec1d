"""Adam and its kin: optimizers that keep averages of gradients and of their squares."""

from typing import Any, ClassVar

import jax.numpy as jnp

import symop as so
from symop.interop.mxnet.base_optimizer import Formula, Found, Index, Numbers, decayed, register

_LATE = 2**30
"""After so many steps no moment needs a correction: MXNet has the corrections in the rate."""
_TINY = 1e-30


class _Moments(Formula):
    """What keeps averages of gradients and of their squares."""

    settings: ClassVar[tuple[str, ...]] = ("beta1", "beta2", "epsilon")
    slots = 2

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def corrections(self, index: Index) -> tuple[float, float]:
        """How much of the weights the averages have."""
        count = self._index_update_count[index]
        return 1 - self.beta1**count, 1 - self.beta2**count


@register
class Adam(_Moments):
    """Adam; ``epsilon`` is added before the correction of the second moment, not after."""

    def __init__(self, *args: Any, lazy_update: bool = True, **kwargs: Any) -> None:
        """See ``Optimizer``; ``learning_rate``, ``beta1``, ``beta2`` and ``epsilon`` come first.

        ``lazy_update`` has no effect: gradients are dense.
        """
        super().__init__(*args, **kwargs)
        self.lazy_update = lazy_update

    def numbers(self, index: Index, rate: float) -> tuple[float, ...]:
        """The corrected rate."""
        first, second = self.corrections(index)
        return (rate * second**0.5 / first,)

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """``adam``."""
        weight, *state = so.adam(
            weight,
            grad,
            *state,
            _LATE,
            numbers[0],
            b1=self.beta1,
            b2=self.beta2,
            eps=self.epsilon,
        )
        return weight, tuple(state)


@register
class Adamax(_Moments):
    """Adamax; a parameter that has seen no gradient stays, where MXNet makes it a NaN."""

    settings = ("beta1", "beta2")

    def __init__(
        self,
        learning_rate: float = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        **kwargs: Any,
    ) -> None:
        """See ``Optimizer``."""
        super().__init__(learning_rate, beta1, beta2, **kwargs)

    def numbers(self, index: Index, rate: float) -> tuple[float, ...]:
        """The corrected rate."""
        return (rate / self.corrections(index)[0],)

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """``adamax``."""
        weight, *state = so.adamax(
            weight, grad, *state, _LATE, numbers[0], b1=self.beta1, b2=self.beta2, eps=_TINY
        )
        return weight, tuple(state)


@register
class Nadam(_Moments):
    """Adam with Nesterov's momentum, which grows (Dozat, 2015).

    As in MXNet the product of the momenta goes on with each parameter, not with each step.
    """

    def __init__(self, *args: Any, schedule_decay: float = 0.004, **kwargs: Any) -> None:
        """See ``Optimizer``; ``schedule_decay`` says how fast the momentum grows."""
        if len(args) > 4:
            *args, schedule_decay = args  # type: ignore[assignment]
        super().__init__(*args, **kwargs)
        self.schedule_decay, self.m_schedule = schedule_decay, 1.0

    def numbers(self, index: Index, rate: float) -> tuple[float, ...]:
        """The rate, and weights of the gradient, of its average and of its squares."""
        count = self._index_update_count[index]
        now, then = [
            self.beta1 * (1 - 0.5 * 0.96 ** (t * self.schedule_decay)) for t in (count, count + 1)
        ]
        self.m_schedule *= now
        ahead = then / (1 - self.m_schedule * then)
        return rate, (1 - now) / (1 - self.m_schedule), ahead, 1 / self.corrections(index)[1]

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """A step along both."""
        rate, by_grad, by_mean, correction = numbers
        mean = self.beta1 * state[0] + (1 - self.beta1) * grad
        square = self.beta2 * state[1] + (1 - self.beta2) * so.square(grad)
        direction = by_grad * grad + by_mean * mean
        direction = direction / (so.sqrt(correction * square) + self.epsilon)
        return so.sgd(weight, direction, rate), (mean, square)


@register
class LAMB(_Moments):
    """LAMB: Adam's step, made as long as the parameter is.

    Args:
        learning_rate: multiplies that length.
        beta1: how much of the average of gradients stays.
        beta2: how much of the average of squares stays.
        epsilon: is added to the root.
        lower_bound: of the length of the parameter that counts.
        upper_bound: likewise.
        bias_correction: whether averages are corrected.
        **kwargs: see ``Optimizer``.
    """

    settings = ("beta1", "beta2", "epsilon", "lower_bound", "upper_bound", "bias_correction")
    decay = "apart"

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        bias_correction: bool = True,
        **kwargs: Any,
    ) -> None:
        """See the class."""
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        self.bias_correction = bias_correction

    def numbers(self, index: Index, rate: float) -> tuple[float, ...]:
        """The rate, and the number of steps before."""
        return rate, self._index_update_count[index] - 1

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """``lamb``; where lengths are bounded, ``adam`` for the direction alone."""
        rate, count = numbers
        step = count.astype(jnp.int32) if self.bias_correction else _LATE
        averaging = {"b1": self.beta1, "b2": self.beta2, "eps": self.epsilon}
        if not (self.lower_bound or self.upper_bound):
            weight, *state = so.lamb(
                weight, grad, *state, step, rate, weight_decay=decay, **averaging
            )
            return weight, tuple(state)
        upwards, *state = so.adam(so.zeros_like(weight), grad, *state, step, -1.0, **averaging)
        upwards = decayed(upwards, weight, decay)
        length, reach = so.global_norm(weight), so.global_norm(upwards)
        length = so.maximum(length, self.lower_bound) if self.lower_bound else length
        length = so.minimum(length, self.upper_bound) if self.upper_bound else length
        known = so.logical_and(length > 0, reach > 0)
        trust = so.where(known, length / so.where(known, reach, 1.0), 1.0)
        return so.sgd(weight, upwards, rate * trust), tuple(state)


@register
class FTML(Formula):
    """Follow the moving leader (Zheng and Kwok, 2017)."""

    settings: ClassVar[tuple[str, ...]] = ("beta1", "beta2", "epsilon")
    slots = 3

    def __init__(
        self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any
    ) -> None:
        """See ``Optimizer``."""
        super().__init__(**kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def numbers(self, index: Index, rate: float) -> tuple[float, ...]:
        """The corrected inverse of the rate, and the correction of the squares."""
        count = self._index_update_count[index]
        return (1 - self.beta1**count) / rate, 1 / (1 - self.beta2**count)

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """The minimum of the sum of all linear and quadratic terms so far."""
        before, square, linear = state
        stiffness, correction = numbers
        square = self.beta2 * square + (1 - self.beta2) * so.square(grad)
        curvature = stiffness * (so.sqrt(correction * square) + self.epsilon)
        change = curvature - self.beta1 * before
        linear = self.beta1 * linear + (1 - self.beta1) * grad - change * weight
        return -linear / curvature, (curvature, square, linear)
