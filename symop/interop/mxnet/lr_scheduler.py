"""``mx.lr_scheduler``: learning rates that depend on the number of updates."""

import logging
import math
from collections.abc import Sequence
from typing import Any, Literal

from symop.interop.mxnet.errors import MXNetError


class LRScheduler:
    """A function from the number of updates to the learning rate; subclasses define it.

    They pass on the warmup arguments ``warmup_steps``, ``warmup_begin_lr`` and ``warmup_mode``.

    Attributes:
        base_lr: the base rate; an optimizer may replace it.
    """

    def __init__(
        self,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: Literal["linear", "constant"] = "linear",
    ) -> None:
        """Configures the warmup.

        Args:
            base_lr: the rate after the warmup.
            warmup_steps: the number of updates of the warmup.
            warmup_begin_lr: the initial rate.
            warmup_mode: whether the rate grows linearly, or is constant during the warmup.

        Raises:
            MXNetError: the rate would decrease during the warmup, or an argument is invalid.
        """
        if warmup_begin_lr > base_lr or warmup_steps < 0:
            raise MXNetError(
                "LRScheduler: warmup_begin_lr must be at most base_lr and warmup_steps not "
                f"negative, got {warmup_begin_lr}, {base_lr} and {warmup_steps}"
            )
        if warmup_mode not in ("linear", "constant"):
            raise MXNetError(
                f"LRScheduler: warmup_mode must be 'linear' or 'constant', got {warmup_mode!r}"
            )
        self.base_lr = base_lr
        self.warmup_steps, self.warmup_begin_lr = warmup_steps, warmup_begin_lr
        self.warmup_final_lr, self.warmup_mode = base_lr, warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """The rate during the warmup."""
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        rise = self.warmup_final_lr - self.warmup_begin_lr
        return self.warmup_begin_lr + rise * num_update / self.warmup_steps

    def __call__(self, num_update: int) -> float:
        """The rate of the update ``num_update``, counted from 1."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        return self._rate(num_update)

    def _rate(self, num_update: int) -> float:
        # Abstract: every schedule defines it, or overrides the call.
        raise NotImplementedError(f"{type(self).__name__} must say what its rate is")


def _require(what: str, fits: bool, got: object) -> None:
    if not fits:
        raise MXNetError(f"{what}, got {got!r}")


class FactorScheduler(LRScheduler):
    """Multiplies the rate by ``factor`` every ``step`` updates.

    Example:
        >>> rate = FactorScheduler(step=2, factor=0.5, base_lr=1.0)
        >>> [rate(update) for update in range(1, 7)]
        [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    """

    def __init__(
        self,
        step: int,
        factor: float = 1,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        *warmup: Any,
        **more: Any,
    ) -> None:
        """See the class; ``stop_factor_lr`` is the minimal rate."""
        super().__init__(base_lr, *warmup, **more)
        _require("FactorScheduler: step must be at least 1", step >= 1, step)
        _require("FactorScheduler: factor must be at most 1", factor <= 1, factor)
        self.step, self.factor, self.stop_factor_lr, self.count = step, factor, stop_factor_lr, 0

    def _rate(self, num_update: int) -> float:
        # An optimizer may set base_lr later, so it is multiplied step by step.
        while num_update > self.count + self.step:
            self.count += self.step
            self.base_lr = max(self.base_lr * self.factor, self.stop_factor_lr)
            _log(num_update, self.base_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """Multiplies the rate by ``factor`` after each of the updates in ``step``.

    Example:
        >>> rate = MultiFactorScheduler(step=[2, 3], factor=0.5, base_lr=1.0)
        >>> [rate(update) for update in range(1, 6)]
        [1.0, 1.0, 0.5, 0.25, 0.25]
    """

    def __init__(
        self,
        step: Sequence[int],
        factor: float = 1,
        base_lr: float = 0.01,
        *warmup: Any,
        **more: Any,
    ) -> None:
        """See the class."""
        super().__init__(base_lr, *warmup, **more)
        steps = list(step)
        rising = bool(steps) and steps[0] >= 1 and steps == sorted(set(steps))
        _require("MultiFactorScheduler: step must hold rising positive numbers", rising, step)
        _require("MultiFactorScheduler: factor must be at most 1", factor <= 1, factor)
        self.step, self.factor, self.cur_step_ind, self.count = steps, factor, 0, 0

    def _rate(self, num_update: int) -> float:
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            _log(num_update, self.base_lr)
        return self.base_lr


def _log(num_update: int, rate: float) -> None:
    logging.info("Update[%d]: Change learning rate to %0.5e", num_update, rate)


class _Falling(LRScheduler):
    """Lowers the rate from ``base_lr`` to ``final_lr`` until the update ``max_update``."""

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        final_lr: float = 0,
        *warmup: Any,
        **more: Any,
    ) -> None:
        super().__init__(base_lr, *warmup, **more)
        _require(
            f"{type(self).__name__}: max_update must be at least 1", max_update >= 1, max_update
        )
        self.base_lr_orig, self.final_lr = base_lr, final_lr
        self.max_update, self.max_steps = max_update, max_update - self.warmup_steps

    def _rate(self, num_update: int) -> float:
        if num_update <= self.max_update:
            left = self._left((num_update - self.warmup_steps) / self.max_steps)
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * left
        return self.base_lr

    def _left(self, passed: float) -> float:
        # Abstract: defined by the two schedules below.
        raise NotImplementedError


class PolyScheduler(_Falling):
    """Lowers the rate as a power of the remaining updates.

    Example:
        >>> rate = PolyScheduler(max_update=4, base_lr=1.0, pwr=2)
        >>> [rate(update) for update in (0, 2, 4, 9)]
        [1.0, 0.25, 0.0, 0.0]
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        pwr: float = 2,
        final_lr: float = 0,
        *warmup: Any,
        **more: Any,
    ) -> None:
        """See the class; ``pwr`` is the exponent."""
        super().__init__(max_update, base_lr, final_lr, *warmup, **more)
        self.power = pwr

    def _left(self, passed: float) -> float:
        return float((1 - passed) ** self.power)


class CosineScheduler(_Falling):
    """Lowers the rate along half a period of the cosine.

    Example:
        >>> rate = CosineScheduler(max_update=4, base_lr=1.0)
        >>> [round(rate(update), 3) for update in (0, 2, 4, 9)]
        [1.0, 0.5, 0.0, 0.0]
    """

    def _left(self, passed: float) -> float:
        return (1 + math.cos(math.pi * passed)) / 2
