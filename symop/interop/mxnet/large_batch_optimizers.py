"""Optimizers for large batches, with layerwise rates that depend on norms of parameters."""

import logging
import math
from typing import Any

import symop as so
from symop.interop.mxnet.array_methods import called
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.base_optimizer import (
    Formula,
    Found,
    How,
    Index,
    Numbers,
    Optimizer,
    register,
)
from symop.interop.mxnet.ops.optimizers import sgd_mom_update, sgd_update
from symop.interop.mxnet.ops.several_weights import multi_lars, multi_sum_sq

_UNSCALED = ("gamma", "beta", "bias")
_LEAST, _MOST = 0.01, 100.0


@register
class LARS(Formula):
    """Gradient descent with rates scaled by norms of parameters and gradients (You, 2017).

    Parameters whose names end in gamma, beta or bias use the plain rate; the decay of parameters
    other than ``_weight`` is zero by default. With a scheduler, the velocity is scaled as the rate
    changes, for all parameters, while MXNet skips all but the first few.

    Args:
        momentum: the decay factor of the velocity.
        lazy_update: has no effect: row-sparse gradients are made dense.
        eta: a factor of the scaled rates.
        eps: a constant added to the norm of the gradient.
        momentum_correction: whether the velocity is scaled.
        **kwargs: see ``Optimizer``.
    """

    settings = ("momentum", "eta", "eps")
    master_last = True
    decaying = ("_weight",)

    def __init__(
        self,
        momentum: float = 0.0,
        lazy_update: bool = True,
        eta: float = 0.001,
        eps: float = 0,
        momentum_correction: bool = True,
        **kwargs: Any,
    ) -> None:
        """See the class."""
        super().__init__(**kwargs)
        self.momentum, self.lazy_update, self.eta, self.eps = momentum, lazy_update, eta, eps
        self.momentum_correction = momentum_correction
        self._last_rates: dict[Index, float] = {}

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """Creates the velocity if momentum is used."""
        return super().create_state(index, weight) if self.momentum else None

    def numbers(self, index: Index, rate: float) -> tuple[float, ...]:
        """The rate, whether it is scaled by norms, and the factor of the velocity."""
        name, now = self.idx2name.get(index, str(index)), self.learning_rate
        last = self._last_rates.get(index, now)
        self._last_rates[index] = now
        kept = now / last if self.momentum_correction and last else 1.0
        return rate, float(not name.endswith(_UNSCALED)), self.momentum * kept

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``multi_lars``, followed by a step of gradient descent."""
        follows, momentum = more
        rate = so.reshape(how["lr"], shape=(1,))
        squares = [
            so.cast(multi_sum_sq(one, num_arrays=1), dtype=weight.dtype) for one in (weight, grad)
        ]
        decay = so.full_like(rate, fill_value=how["wd"])
        scale = how["rescale_grad"]
        own = multi_lars(rate, *squares, decay, eta=self.eta, eps=self.eps, rescale_grad=scale)
        rate = so.reshape(so.where(follows > 0, own, rate), shape=())
        if state is None:
            return sgd_update(weight, grad, **{**how, "lr": rate}), None
        moved: Found = sgd_mom_update(weight, grad, state, momentum=momentum, **{**how, "lr": rate})
        return moved


@register
class LBSGD(Optimizer):
    """Gradient descent on the accumulated gradients of several batches, with warmup.

    Args:
        momentum: the decay factor of the velocity.
        multi_precision: whether half-precision parameters are also kept in single precision.
        warmup_strategy: ``"linear"``, ``"power2"`` or ``"sqrt"``, the growth of the rate's factor
            to ``batch_scale``; or ``"lars"``, which scales rates by norms.
        warmup_epochs: the number of epochs of growth.
        batch_scale: the number of gradients to accumulate.
        updates_per_epoch: the number of updates in an epoch.
        begin_epoch: the number of the first epoch.
        num_epochs: has no effect.
        **kwargs: see ``Optimizer``.
    """

    def __init__(
        self,
        momentum: float = 0.0,
        multi_precision: bool = False,
        warmup_strategy: str = "linear",
        warmup_epochs: int = 5,
        batch_scale: int = 1,
        updates_per_epoch: int = 32,
        begin_epoch: int = 0,
        num_epochs: int = 60,
        **kwargs: Any,
    ) -> None:
        """See the class."""
        super().__init__(multi_precision=multi_precision, **kwargs)
        logging.info("LBSGD: %d gradients are added up, the rate warms up", batch_scale)
        self.momentum, self.warmup_strategy = momentum, warmup_strategy
        self.warmup_epochs, self.batch_scale = warmup_epochs, batch_scale
        self.updates_per_epoch, self.num_epochs = updates_per_epoch, num_epochs
        self.init_updates = begin_epoch * updates_per_epoch
        self._sums: dict[Index, tuple[Any, int]] = {}

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """Creates the velocity if momentum is used."""
        made: NDArray = called("zeros_like")(weight)
        return made if self.momentum else None

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Accumulates a gradient; steps by the mean once ``batch_scale`` are accumulated."""
        rate, decay = self._get_lr(index), self._get_wd(index)
        self._update_count(index)
        total, count = self._sums.get(index, (0.0, self.init_updates))
        total, count = total + grad.value, count + 1
        if count % self.batch_scale:
            self._sums[index] = total, count
            return
        self._sums[index] = 0.0, count
        mean = total / self.batch_scale
        lars = self.warmup_strategy == "lars"
        rate *= self._by_length(weight.value, mean, decay) if lars else self._warmth(count)
        how = {"lr": rate, "wd": decay, "rescale_grad": self.rescale_grad}
        how["clip_gradient"] = self.clip_gradient or -1.0
        arrays = [weight, array_of(mean.astype(weight.dtype))]
        if state is None:
            called("sgd_update")(*arrays, out=weight, **how)
        else:
            called("sgd_mom_update")(*arrays, state, out=weight, momentum=self.momentum, **how)

    def _warmth(self, count: int) -> float:
        """The warmup factor of the rate after ``count`` gradients."""
        last, most = self.warmup_epochs * self.updates_per_epoch, float(self.batch_scale)
        if count >= last:
            return most
        part = count / last
        grown = {"linear": part, "power2": part * part, "sqrt": math.sqrt(part)}
        return 1.0 + (most - 1.0) * grown.get(self.warmup_strategy, 0.0)

    def _by_length(self, weight: Any, grad: Any, decay: float) -> float:
        """The layerwise factor of the rate, computed from norms."""
        length, slope = (float(so.sum(so.square(one))) for one in (weight, grad))
        return min(max(math.sqrt(length / (slope + decay * length + 1e-18)), _LEAST), _MOST)
