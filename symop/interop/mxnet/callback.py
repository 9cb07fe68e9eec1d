"""``mx.callback``: callbacks of training loops."""

import logging
import math
import time
from collections.abc import Callable
from typing import Any

from symop.interop.mxnet.model_files import BatchEndParam, save_checkpoint

AfterEpoch = Callable[..., None]


def do_checkpoint(prefix: str, period: int = 1) -> AfterEpoch:
    """Writes a checkpoint after every ``period`` epochs; see ``mx.model.save_checkpoint``."""
    return every(period, lambda epoch, sym, arg, aux: save_checkpoint(prefix, epoch, sym, arg, aux))


def module_checkpoint(
    mod: Any, prefix: str, period: int = 1, save_optimizer_states: bool = False
) -> AfterEpoch:
    """Writes the module ``mod`` after every ``period`` epochs; see ``Module.save_checkpoint``."""
    return every(
        period, lambda epoch, *_: mod.save_checkpoint(prefix, epoch, save_optimizer_states)
    )


def every(period: int, save: Callable[[int, Any, Any, Any], None]) -> AfterEpoch:
    """A callback that calls ``save`` with the epoch count after every ``period`` epochs."""

    def call(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % max(1, int(period)) == 0:
            save(iter_no + 1, sym, arg, aux)

    return call


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[BatchEndParam], None]:
    """Logs the metric after every ``period`` batches; ``auto_reset`` then resets it."""

    def call(param: BatchEndParam) -> None:
        if param.nbatch % period or param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
        if auto_reset:
            param.eval_metric.reset_local()

    return call


class Speedometer:
    """Logs examples per second and the metric after every ``frequent`` batches.

    Args:
        batch_size: the number of examples in a batch.
        frequent: the number of batches between logs.
        auto_reset: whether the metric is reset after each log.
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True) -> None:
        """See the class."""
        self.batch_size, self.frequent, self.auto_reset = batch_size, frequent, auto_reset
        self.init, self.tic, self.last_count = False, 0.0, 0

    def __call__(self, param: BatchEndParam) -> None:
        """Logs if ``frequent`` batches have passed."""
        count = param.nbatch
        self.init = self.init and self.last_count <= count
        self.last_count = count
        if not self.init:
            self.init, self.tic = True, time.time()
        elif count % self.frequent == 0:
            self._log(param, count)
            self.tic = time.time()

    def _log(self, param: BatchEndParam, count: int) -> None:
        passed = time.time() - self.tic
        speed = self.frequent * self.batch_size / passed if passed else math.inf
        if param.eval_metric is None:
            text = "Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec"
            logging.info(text, param.epoch, count, speed)
            return
        pairs = param.eval_metric.get_name_value()
        first = 0
        if self.auto_reset:
            first = count - self.frequent
            param.eval_metric.reset_local()
        text = "Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(pairs)
        flat = [part for pair in pairs for part in pair]
        logging.info(text, param.epoch, first, count, speed, *flat)


class ProgressBar:
    """Logs a bar of ``length`` characters, full after ``total`` batches."""

    def __init__(self, total: int, length: int = 80) -> None:
        """See the class."""
        self.total, self.bar_len = total, length

    def __call__(self, param: BatchEndParam) -> None:
        """Logs the bar."""
        part = param.nbatch / self.total
        bar = ("=" * round(self.bar_len * part)).ljust(self.bar_len, "-")
        logging.info("[%s] %s%%\r", bar, math.ceil(100 * part))


class LogValidationMetricsCallback:
    """Logs the metric of a validation."""

    def __call__(self, param: BatchEndParam) -> None:
        """Logs the metric."""
        if param.eval_metric:
            for name, value in param.eval_metric.get_name_value():
                logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)
