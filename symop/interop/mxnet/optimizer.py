"""Optimizers: ``mx.optimizer``. Each step is the catalogue's, as far as it has MXNet's formula."""

from typing import Any, ClassVar

import symop as so
from symop.interop.mxnet.base_optimizer import (
    Formula,
    Found,
    Index,
    Numbers,
    Optimizer,
    create,
    decayed,
    register,
)
from symop.interop.mxnet.moment_optimizers import FTML, LAMB, Adam, Adamax, Nadam
from symop.interop.mxnet.ndarray import NDArray
from symop.interop.mxnet.scaled_optimizers import AdaDelta, AdaGrad, Ftrl, RMSProp
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
            sign = decayed(so.sign(grad), weight, decay)
            return so.sgd(weight, sign, numbers[0]), None
        state = self.momentum * state - (1 - self.momentum) * decayed(grad, weight, decay)
        return so.sgd(weight, decayed(-so.sign(state), weight, self.wd_lh), numbers[0]), state


@register
class Test(Formula):
    """Adds the gradient; what it keeps is the parameter."""

    decay = "apart"

    def step(self, weight: Any, grad: Any, state: Any, numbers: Numbers, decay: float) -> Found:
        """``weight + grad``."""
        return weight + grad, weight + grad
