"""Optimizers: ``mx.optimizer``. Each step is the catalogue's, as far as it has MXNet's formula."""

from collections.abc import Sequence
from typing import Any, ClassVar

import jax.numpy as jnp

import symop as so
from symop.interop.mxnet.base_optimizer import (
    Formula,
    Index,
    Optimizer,
    create,
    register,
)
from symop.interop.mxnet.ndarray import NDArray
from symop.interop.mxnet.updater import Updater, get_updater

__all__ = [
    "FTML",
    "LAMB",
    "NAG",
    "SGD",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "Adamax",
    "Ftrl",
    "Nadam",
    "Optimizer",
    "RMSProp",
    "Signum",
    "Test",
    "Updater",
    "ccSGD",
    "create",
    "get_updater",
    "register",
]

Numbers = Sequence[Any]
Found = tuple[Any, Any]
_LATE = 2**30
"""After so many steps no moment needs a correction: MXNet has the corrections in the rate."""
_TINY = 1e-30


@register
class SGD(Formula):
    """Gradient descent, with momentum where that is not zero.

    Args:
        momentum: how much of a velocity stays.
        lazy_update: has no effect: gradients are dense.
        **kwargs: see ``Optimizer``.
    """

    settings = ("momentum",)
    decay = "after"
    master_last = True
    nesterov: ClassVar[bool] = False

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any) -> None:
        """See the class."""
        super().__init__(**kwargs)
        self.momentum, self.lazy_update = momentum, lazy_update

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """The velocity, if there is one."""
        return super().create_state(index, weight) if self.momentum else None

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """``sgd`` or ``momentum``."""
        (rate,) = numbers
        if state is None:
            return so.sgd(weight, grad, rate), None
        # MXNet's velocity has the rates in it and points downhill: it is that of -weight. Were its
        # sign changed instead, XLA would compute it twice, and copy the old one for that.
        opposite, velocity = so.momentum(
            -weight, -rate * grad, state, 1.0, mu=self.momentum, nesterov=self.nesterov
        )
        return -opposite, velocity


@register
class NAG(SGD):
    """Gradient descent with Nesterov's momentum."""

    nesterov = True


@register
class ccSGD(SGD):  # noqa: N801  # MXNet's name
    """``SGD``, by an older name."""


@register
class Signum(Formula):
    """Steps of one length in each direction: the sign of the averaged gradient.

    Args:
        learning_rate: the length.
        momentum: how much of the average stays; zero is signSGD.
        wd_lh: a decay apart from the gradient.
        **kwargs: see ``Optimizer``.
    """

    settings = ("momentum", "wd_lh")
    decay = "apart"

    def __init__(
        self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any
    ) -> None:
        """See the class."""
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum, self.wd_lh = momentum, wd_lh

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """The average, if there is one."""
        return super().create_state(index, weight) if self.momentum else None

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """``sgd`` along a sign."""
        if state is None:
            sign = _decayed(so.sign(grad), weight, decay)
            return so.sgd(weight, sign, numbers[0]), None
        state = self.momentum * state - (1 - self.momentum) * _decayed(grad, weight, decay)
        return so.sgd(weight, _decayed(-so.sign(state), weight, self.wd_lh), numbers[0]), state


def _decayed(grad: Any, weight: Any, decay: float) -> Any:
    return so.add_decayed_weights(grad, weight, weight_decay=decay) if decay else grad


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
        upwards = _decayed(upwards, weight, decay)
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


@register
class Ftrl(Formula):
    """FTRL-Proximal; the weight decay is its L2 penalty.

    Args:
        lamda1: the L1 penalty.
        learning_rate: its alpha.
        beta: is added to the root of the squares.
        **kwargs: see ``Optimizer``.
    """

    settings = ("lamda1", "beta")
    slots = 2
    decay = "apart"

    def __init__(
        self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any
    ) -> None:
        """See the class."""
        super().__init__(**kwargs)
        self.lamda1, self.beta, self.lr = lamda1, beta, learning_rate

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """``ftrl``."""
        linear, squared = state
        weight, squared, linear = so.ftrl(
            weight,
            grad,
            squared,
            linear,
            numbers[0],
            l1=self.lamda1,
            l2=decay,
            beta=float(self.beta),
        )
        return weight, (linear, squared)


# Scaled by squares -------------------------------------------------------------------------------


@register
class AdaGrad(Formula):
    """Adagrad; parameters decay apart from it."""

    settings = ("float_stable_eps",)
    decay = "apart"

    def __init__(self, eps: float = 1e-7, **kwargs: Any) -> None:
        """See ``Optimizer``; ``eps`` is added to the squares."""
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """``adagrad``."""
        new, state = so.adagrad(weight, grad, state, numbers[0], eps=self.float_stable_eps)
        return new - numbers[0] * decay * weight if decay else new, state


@register
class RMSProp(Formula):
    """RMSProp, or with ``centered`` Graves' variant, which has a velocity.

    Args:
        learning_rate: the rate.
        gamma1: how much of the averages stays.
        gamma2: how much of the velocity stays.
        epsilon: is added to the squares.
        centered: whether the deviation scales, not the mean square.
        clip_weights: the bound of each entry of a parameter, or None.
        **kwargs: see ``Optimizer``.
    """

    settings = ("gamma1", "gamma2", "epsilon", "centered", "clip_weights")

    def __init__(
        self,
        learning_rate: float = 0.001,
        gamma1: float = 0.9,
        gamma2: float = 0.9,
        epsilon: float = 1e-8,
        centered: bool = False,
        clip_weights: float | None = None,
        **kwargs: Any,
    ) -> None:
        """See the class."""
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1, self.gamma2, self.epsilon = gamma1, gamma2, epsilon
        self.centered, self.clip_weights = centered, clip_weights

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """The mean square; centered also the mean, and the velocity."""
        return tuple(
            Formula.create_state(self, index, weight) for _ in "123"[: 1 + 2 * self.centered]
        )

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """``rmsprop`` or ``rmsprop_centered``."""
        (rate,) = numbers
        scaling = {"decay": self.gamma1, "eps": self.epsilon}
        if self.centered:
            square, mean, downwards = state
            weight, square, mean, upwards = so.rmsprop_centered(
                weight, grad, square, mean, -downwards, rate, mu=self.gamma2, **scaling
            )
            state = (square, mean, -upwards)
        else:
            weight, square = so.rmsprop(weight, grad, state[0], rate, **scaling)
            state = (square,)
        if self.clip_weights:
            weight = so.clip(weight, -self.clip_weights, self.clip_weights)
        return weight, state


@register
class AdaDelta(Formula):
    """Adadelta, which has no rate; parameters decay apart from it."""

    settings = ("rho", "epsilon")
    slots = 2
    decay = "apart"

    def __init__(self, rho: float = 0.9, epsilon: float = 1e-5, **kwargs: Any) -> None:
        """See ``Optimizer``."""
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """``adadelta``."""
        new, *state = so.adadelta(weight, grad, *state, 1.0, rho=self.rho, eps=self.epsilon)
        return new - decay * weight if decay else new, tuple(state)


@register
class Test(Formula):
    """Adds the gradient; what it keeps is the parameter."""

    decay = "apart"

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """``weight + grad``."""
        return weight + grad, weight + grad
