"""BaseModule: loops for training, scoring and prediction, over passes defined by subclasses."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax.numpy as jnp

from symop.interop.mxnet import metric as metrics
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.batches import DataBatch, DataIter
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.model_files import BatchEndParam, load_arrays, save_arrays
from symop.interop.mxnet.module.module_interface import INITIALIZER, RATE, ModuleInterface, Params
from symop.interop.mxnet.monitor import Monitor

Callbacks = Any
"""A function or a list of functions."""


def listed(callbacks: Callbacks) -> Iterable[Callable[..., Any]]:
    """Callbacks as a list."""
    if callbacks is None:
        return []
    return callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]


class BaseModule(ModuleInterface):
    """The training, scoring and prediction loops of a module."""

    def forward_backward(self, data_batch: Any) -> None:
        """Runs ``forward`` for training, and ``backward``."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def fit(
        self,
        train_data: DataIter,
        eval_data: DataIter | None = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Callbacks = None,
        batch_end_callback: Callbacks = None,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = RATE,
        eval_end_callback: Callbacks = None,
        eval_batch_end_callback: Callbacks = None,
        initializer: Any = INITIALIZER,
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_rebind: bool = False,
        force_init: bool = False,
        begin_epoch: int = 0,
        num_epoch: int | None = None,
        validation_metric: Any = None,
        monitor: Monitor | None = None,
        sparse_row_id_fn: Any = None,
    ) -> None:
        """Trains the module.

        Args:
            train_data: batches; reset after each epoch.
            eval_data: batches to score after each epoch.
            eval_metric: the reported metric, or an argument of ``mx.metric.create``.
            epoch_end_callback: called with epoch, symbol, parameters and auxiliary states.
            batch_end_callback: called with a ``BatchEndParam``.
            kvstore: see ``init_optimizer``.
            optimizer: see ``init_optimizer``.
            optimizer_params: see ``init_optimizer``.
            eval_end_callback: called after scoring.
            eval_batch_end_callback: called after each scored batch.
            initializer: see ``init_params``.
            arg_params: see ``init_params``.
            aux_params: see ``init_params``.
            allow_missing: see ``init_params``.
            force_rebind: see ``bind``.
            force_init: see ``init_params``.
            begin_epoch: the number of the first epoch.
            num_epoch: the number of the epoch after the last one.
            validation_metric: the metric of scoring; defaults to ``eval_metric``.
            monitor: a monitor of all arrays.
            sparse_row_id_fn: see ``prepare``.

        Raises:
            MXNetError: ``num_epoch`` is missing.
        """
        if num_epoch is None:
            raise MXNetError("fit: num_epoch must be given, got none")
        self.bind(
            data_shapes=train_data.provide_data,
            label_shapes=train_data.provide_label,
            for_training=True,
            force_rebind=force_rebind,
        )
        if monitor is not None:
            self.install_monitor(monitor)
        self.init_params(initializer, arg_params, aux_params, allow_missing, force_init)
        self.init_optimizer(kvstore, optimizer, optimizer_params)
        validation_metric = eval_metric if validation_metric is None else validation_metric
        eval_metric = metrics.create(eval_metric)
        for epoch in range(begin_epoch, num_epoch):
            self._train(
                epoch, train_data, eval_metric, batch_end_callback, monitor, sparse_row_id_fn
            )
            for call in listed(epoch_end_callback):
                call(epoch, self.symbol, *self.get_params())
            if eval_data is not None:
                calls = eval_batch_end_callback, eval_end_callback
                how: Any = {"epoch": epoch, "sparse_row_id_fn": sparse_row_id_fn}
                found = self.score(eval_data, validation_metric, None, *calls, **how)
                self._log(epoch, "Validation", found)
            train_data.reset()

    def _log(self, epoch: int, what: str, found: Iterable[tuple[str, float]]) -> None:
        for name, value in found:
            self.logger.info("Epoch[%d] %s-%s=%f", epoch, what, name, value)

    def _train(
        self,
        epoch: int,
        data: Any,
        metric: Any,
        callbacks: Callbacks,
        monitor: Monitor | None,
        sparse_row_id_fn: Any = None,
    ) -> None:
        """Runs one epoch."""
        start = time.time()
        metric.reset()
        for nbatch, batch in enumerate(data):
            if monitor is not None:
                monitor.tic()
            self.prepare(batch, sparse_row_id_fn)
            self.forward_backward(batch)
            self.update()
            self.update_metric(metric, batch.label)
            if monitor is not None:
                monitor.toc_print()
            for call in listed(callbacks):
                call(BatchEndParam(epoch, nbatch, metric, locals()))
        self._log(epoch, "Train", metric.get_global_name_value())
        self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - start)

    def _passes(
        self, data: Any, num_batch: int | None, reset: bool, sparse_row_id_fn: Any = None
    ) -> Iterator[Any]:
        """Yields each batch after a forward pass in evaluation mode."""
        self.require("score")
        if reset:
            data.reset()
        for nbatch, batch in enumerate(data):
            if nbatch == num_batch:
                return
            self.prepare(batch, sparse_row_id_fn)
            self.forward(batch, is_train=False)
            yield nbatch, batch

    def score(
        self,
        eval_data: DataIter,
        eval_metric: Any,
        num_batch: int | None = None,
        batch_end_callback: Callbacks = None,
        score_end_callback: Callbacks = None,
        reset: bool = True,
        epoch: int = 0,
        sparse_row_id_fn: Any = None,
    ) -> list[tuple[str, Any]]:
        """Metrics over batches, as pairs of name and value.

        Args:
            eval_data: the batches.
            eval_metric: a metric, or an argument of ``mx.metric.create``.
            num_batch: the number of batches; defaults to all.
            batch_end_callback: called with a ``BatchEndParam``.
            score_end_callback: called with a ``BatchEndParam`` at the end.
            reset: whether to reset the batches first.
            epoch: the epoch number passed to callbacks.
            sparse_row_id_fn: see ``prepare``.
        """
        metric = metrics.create(eval_metric)
        metric.reset()
        count = 0
        for nbatch, batch in self._passes(eval_data, num_batch, reset, sparse_row_id_fn):
            self.update_metric(metric, batch.label)
            for call in listed(batch_end_callback):
                call(BatchEndParam(epoch, nbatch, metric, locals()))
            count += 1
        for call in listed(score_end_callback):
            call(BatchEndParam(epoch, count, metric, locals()))
        return metric.get_name_value()

    def iter_predict(
        self,
        eval_data: DataIter,
        num_batch: int | None = None,
        reset: bool = True,
        sparse_row_id_fn: Any = None,
    ) -> Iterator[tuple[list[NDArray], int, Any]]:
        """Yields outputs without padding, number and batch for each batch."""
        for nbatch, batch in self._passes(eval_data, num_batch, reset, sparse_row_id_fn):
            pad = batch.pad or 0
            outputs = [one.value for one in self.get_outputs()]
            yield [array_of(one[: one.shape[0] - pad]) for one in outputs], nbatch, batch

    def predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        merge_batches: bool = True,
        reset: bool = True,
        always_output_list: bool = False,
        sparse_row_id_fn: Any = None,
    ) -> Any:
        """Outputs for batches.

        Args:
            eval_data: the batches, or one array.
            num_batch: the number of batches; defaults to all.
            merge_batches: whether to concatenate the outputs of all batches; otherwise there is a
                list for each batch.
            reset: whether to reset the batches first.
            always_output_list: whether to return a single output in a list, too.
            sparse_row_id_fn: see ``prepare``.

        Raises:
            MXNetError: ``eval_data`` is neither, or the number of outputs differs between batches.
        """
        self.require("predict")
        if hasattr(eval_data, "shape"):
            self.forward(DataBatch([array_of(eval_data)]), is_train=False)
            return self.get_outputs()[0]
        if not isinstance(eval_data, DataIter):
            raise MXNetError(f"predict: an array or a DataIter must be given, got {eval_data!r}")
        passes = self.iter_predict(eval_data, num_batch, reset, sparse_row_id_fn)
        result = [outputs for outputs, _, _ in passes]
        if not result or not merge_batches:
            return result
        if len({len(outputs) for outputs in result}) > 1:
            raise MXNetError("predict: batches must have one number of outputs to be merged")
        merged = [
            array_of(jnp.concatenate([one.value for one in same]))
            for same in zip(*result, strict=True)
        ]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    # Files

    def save_params(self, fname: str) -> None:
        """Writes parameters and auxiliary states to a file that MXNet reads."""
        save_arrays(fname, *self.get_params())

    def load_params(self, fname: str) -> None:
        """Reads parameters and auxiliary states from a file."""
        self.set_params(*load_arrays(fname))
