"""Adam and related optimizers, which keep averages of gradients and of their squares."""

from typing import Any, ClassVar

import symop as so
from symop.interop.mxnet.base_optimizer import Formula, Found, How, Index, Numbers, register
from symop.interop.mxnet.ops.adaptive_optimizers import adam_update, ftml_update
from symop.interop.mxnet.ops.lamb import lamb_update
from symop.interop.mxnet.ops.optimizers import decayed, with_decay

_LATE = 2**30
"""A step count after which moments need no correction: MXNet includes corrections in the rate."""
_TINY = 1e-30


def _slope(weight: Any, grad: Any, how: How) -> Any:
    """The rescaled and clipped gradient, including the decay."""
    return with_decay(weight, grad, how["rescale_grad"], how["clip_gradient"], how["wd"])


class _Moments(Formula):
    """Base class of optimizers that keep averages of gradients and of their squares."""

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
        """The total weight of each average, by which it is divided."""
        count = self._index_update_count[index]
        return 1 - self.beta1**count, 1 - self.beta2**count


@register
class Adam(_Moments):
    """Adam; ``epsilon`` is added before the correction of the second moment, not after."""

    on_rows = "lazy"

    def __init__(self, *args: Any, lazy_update: bool = True, **kwargs: Any) -> None:
        """See ``Optimizer``; ``learning_rate``, ``beta1``, ``beta2`` and ``epsilon`` come first.

        ``lazy_update``: whether a row-sparse gradient updates its rows alone.
        """
        super().__init__(*args, **kwargs)
        self.lazy_update = lazy_update

    def numbers(self, index: Index, rate: float) -> tuple[float, ...]:
        """The corrected rate."""
        first, second = self.corrections(index)
        return (rate * second**0.5 / first,)

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``adam_update``."""
        own = {"beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon}
        weight, *state = adam_update(weight, grad, *state, **own, **how)
        return weight, tuple(state)


@register
class Adamax(_Moments):
    """Adamax; a parameter without gradients so far is unchanged, while MXNet makes it NaN."""

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

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``adamax`` of the catalogue; MXNet has no such operator."""
        (moment, norm), slope = state, _slope(weight, grad, how)
        weight, *state = so.adamax(
            weight, slope, moment, norm, _LATE, how["lr"], self.beta1, self.beta2, _TINY
        )
        return weight, tuple(state)


@register
class Nadam(_Moments):
    """Adam with Nesterov's momentum and a momentum schedule (Dozat, 2015).

    As in MXNet, the product of momenta advances with each parameter, not with each step.
    """

    def __init__(self, *args: Any, schedule_decay: float = 0.004, **kwargs: Any) -> None:
        """See ``Optimizer``; ``schedule_decay`` controls the growth of the momentum."""
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

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """A step along the gradient and its average; MXNet has no such operator."""
        by_grad, by_mean, correction = more
        slope = _slope(weight, grad, how)
        mean = decayed(state[0], slope, self.beta1)
        square = decayed(state[1], so.square(slope), self.beta2)
        direction = by_grad * slope + by_mean * mean
        direction = direction / (so.sqrt(correction * square) + self.epsilon)
        return weight - how["lr"] * direction, (mean, square)


@register
class LAMB(_Moments):
    """LAMB: Adam's step, scaled to the norm of the parameter.

    Args:
        learning_rate: a factor of that norm.
        beta1: the decay factor of the average of gradients.
        beta2: the decay factor of the average of squares.
        epsilon: a constant added to the root.
        lower_bound: the lower bound on the norm of the parameter.
        upper_bound: the upper bound on the norm of the parameter.
        bias_correction: whether averages are corrected.
        **kwargs: see ``Optimizer``.
    """

    settings = ("beta1", "beta2", "epsilon", "lower_bound", "upper_bound", "bias_correction")

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
        """The rate, and the number of this step."""
        return rate, self._index_update_count[index]

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``lamb_update_phase1`` and ``lamb_update_phase2``."""
        own = {"beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon, "t": more[0]}
        own |= {"lower_bound": self.lower_bound or -1.0, "upper_bound": self.upper_bound or -1.0}
        own["bias_correction"] = self.bias_correction
        mean, var = state
        weight, *moved = lamb_update(weight, grad, mean, var, **own, **how)
        return weight, tuple(moved)


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
        """The rate, and the number of this step."""
        return rate, self._index_update_count[index]

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``ftml_update``."""
        own = {"beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon, "t": more[0]}
        own["clip_grad"] = how.pop("clip_gradient")
        weight, *state = ftml_update(weight, grad, *state, **own, **how)
        return weight, tuple(state)
