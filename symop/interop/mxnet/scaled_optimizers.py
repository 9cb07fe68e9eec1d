"""Optimizers that scale each entry by its squares so far: Adagrad, RMSProp, Adadelta, FTRL."""

from typing import Any

import symop as so
from symop.interop.mxnet.base_optimizer import Formula, Found, Index, Numbers, register
from symop.interop.mxnet.ndarray import NDArray


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
