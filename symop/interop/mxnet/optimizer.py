"""``mx.optimizer``: optimizers. Steps are MXNet's update operators where those exist."""

from collections.abc import Callable
from typing import Any, ClassVar

from symop.interop.mxnet import optimizer_contrib as contrib
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.base_optimizer import (
    Formula,
    Found,
    How,
    Index,
    Numbers,
    Optimizer,
    create,
    register,
)
from symop.interop.mxnet.large_batch_optimizers import LARS, LBSGD
from symop.interop.mxnet.moment_optimizers import FTML, LAMB, Adam, Adamax, Nadam
from symop.interop.mxnet.noisy_optimizers import DCASGD, SGLD
from symop.interop.mxnet.ops.optimizers import (
    nag_mom_update,
    scaled,
    sgd_mom_update,
    sgd_update,
    signsgd_update,
    signum_update,
)
from symop.interop.mxnet.scaled_optimizers import AdaDelta, AdaGrad, Ftrl, RMSProp
from symop.interop.mxnet.updater import Updater, get_updater

__all__ = [
    "DCASGD",
    "FTML",
    "LAMB",
    "LARS",
    "LBSGD",
    "NAG",
    "SGD",
    "SGLD",
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
    "contrib",
    "create",
    "get_updater",
    "register",
]


@register
class SGD(Formula):
    """Gradient descent, with optional momentum.

    Args:
        momentum: the decay factor of the velocity; no velocity is kept if it is zero.
        lazy_update: whether a row-sparse gradient updates its rows alone, without the decay and
            the momentum of the others.
        **kwargs: see ``Optimizer``.
    """

    settings = ("momentum",)
    master_last = True
    on_rows = "lazy"
    moving: ClassVar[Callable[..., Found]] = staticmethod(sgd_mom_update)

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any) -> None:
        """See the class."""
        super().__init__(**kwargs)
        self.momentum, self.lazy_update = momentum, lazy_update

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """Creates the velocity if momentum is used."""
        return super().create_state(index, weight) if self.momentum else None

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``sgd_update``, or the operator with momentum."""
        if state is None:
            return sgd_update(weight, grad, **how), None
        return self.moving(weight, grad, state, momentum=self.momentum, **how)


@register
class NAG(SGD):
    """Gradient descent with Nesterov's momentum."""

    on_rows = ""
    moving = staticmethod(nag_mom_update)


@register
class ccSGD(SGD):  # noqa: N801  # MXNet's name
    """An old alias of ``SGD``."""


@register
class Signum(Formula):
    """Steps of a fixed size along the sign of the averaged gradient.

    Args:
        learning_rate: the size of a step.
        momentum: the decay factor of the average; zero gives signSGD.
        wd_lh: a weight decay applied separately from the gradient.
        **kwargs: see ``Optimizer``.
    """

    settings = ("momentum", "wd_lh")

    def __init__(
        self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any
    ) -> None:
        """See the class."""
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum, self.wd_lh = momentum, wd_lh

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """Creates the average if momentum is used."""
        return super().create_state(index, weight) if self.momentum else None

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``signsgd_update`` or ``signum_update``."""
        if state is None:
            return signsgd_update(weight, grad, **how), None
        own = {"momentum": self.momentum, "wd_lh": self.wd_lh}
        moved: Found = signum_update(weight, grad, state, **own, **how)
        return moved


@register
class Test(Formula):
    """Adds the gradient; its state is the parameter."""

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``weight + rescale_grad * grad``."""
        moved = weight + scaled(grad, how["rescale_grad"])
        return moved, moved
