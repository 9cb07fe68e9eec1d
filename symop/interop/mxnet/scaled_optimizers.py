"""Optimizers that scale each entry by accumulated squares: Adagrad, RMSProp, Adadelta, FTRL."""

from typing import Any

import symop as so
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.base_optimizer import Formula, Found, How, Index, Numbers, register
from symop.interop.mxnet.ops.adaptive_optimizers import (
    adagrad_update,
    ftrl_update,
    rmsprop_update,
    rmspropalex_update,
)
from symop.interop.mxnet.ops.optimizers import scaled


@register
class Ftrl(Formula):
    """FTRL-Proximal; the weight decay is its L2 penalty.

    Args:
        lamda1: the L1 penalty.
        learning_rate: the parameter alpha.
        beta: a constant added to the root of the squares.
        **kwargs: see ``Optimizer``.
    """

    settings = ("lamda1", "beta")
    slots = 2
    on_rows = "stored"

    def __init__(
        self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any
    ) -> None:
        """See the class."""
        super().__init__(**kwargs)
        self.lamda1, self.beta, self.lr = lamda1, beta, learning_rate

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``ftrl_update``."""
        own = {"lamda1": self.lamda1, "beta": float(self.beta)}
        weight, *state = ftrl_update(weight, grad, *state, **own, **how)
        return weight, tuple(state)


@register
class AdaGrad(Formula):
    """Adagrad with decoupled weight decay."""

    settings = ("float_stable_eps",)
    on_rows = "rows"

    def __init__(self, eps: float = 1e-7, **kwargs: Any) -> None:
        """See ``Optimizer``; ``eps`` is added to the squares."""
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``_sparse_adagrad_update``, plus weight decay, which that operator lacks."""
        plain, eps = {**how, "wd": 0.0}, self.float_stable_eps
        new, state = adagrad_update(weight, grad, state, epsilon=eps, **plain)
        return new - how["lr"] * how["wd"] * weight, state


@register
class RMSProp(Formula):
    """RMSProp, or if ``centered`` Graves' variant with a velocity.

    Args:
        learning_rate: the rate.
        gamma1: the decay factor of the averages.
        gamma2: the decay factor of the velocity.
        epsilon: a constant added to the squares.
        centered: whether to scale by the standard deviation instead of the root mean square.
        clip_weights: the bound on each entry of a parameter, or None.
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
        """Creates the mean square; if ``centered``, also the mean and the velocity."""
        return tuple(
            Formula.create_state(self, index, weight) for _ in "123"[: 1 + 2 * self.centered]
        )

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``rmsprop_update`` or ``rmspropalex_update``."""
        own = {"gamma1": self.gamma1, "epsilon": self.epsilon}
        own["clip_weights"] = self.clip_weights or -1.0
        if self.centered:
            own["gamma2"] = self.gamma2
        update = rmspropalex_update if self.centered else rmsprop_update
        weight, *state = update(weight, grad, *state, **own, **how)
        return weight, tuple(state)


@register
class AdaDelta(Formula):
    """Adadelta, which has no learning rate, with decoupled weight decay."""

    settings = ("rho", "epsilon")
    slots = 2

    def __init__(self, rho: float = 0.9, epsilon: float = 1e-5, **kwargs: Any) -> None:
        """See ``Optimizer``."""
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``adadelta`` of the catalogue; MXNet has no such operator."""
        slope = scaled(grad, how["rescale_grad"], how["clip_gradient"])
        square, step = state
        new, *state = so.adadelta(weight, slope, square, step, 1.0, rho=self.rho, eps=self.epsilon)
        return new - how["wd"] * weight, tuple(state)
