"""FeedForward: a model with its parameters and training, as used by scripts before MXNet 1.0."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from symop.interop.mxnet import metric as metrics
from symop.interop.mxnet.array_batches import NDArrayIter
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.batches import DataDesc, DataIter, ResizeIter
from symop.interop.mxnet.context import Context
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.model_files import (
    BatchEndParam,
    load_checkpoint,
    save_checkpoint,
)
from symop.interop.mxnet.module.base_module import listed
from symop.interop.mxnet.module.bucketing_module import BucketingModule
from symop.interop.mxnet.module.module import Module
from symop.interop.mxnet.module.module_interface import INITIALIZER, described
from symop.interop.mxnet.monitor import Monitor
from symop.interop.mxnet.symbols import Symbol

Callbacks = Any


class FeedForward:
    """A model trained by ``fit``; newer scripts use ``mx.mod.Module``.

    Attributes:
        symbol: the graph; if a function makes graphs, that of the last ``fit``.
        arg_params: parameters by name, or None before training.
        aux_params: auxiliary states by name, or None before training.
        num_epoch: the number of the epoch after the last one.
        begin_epoch: the number of the first epoch.

    Example:
        >>> import numpy as np, symop.interop.mxnet as mx
        >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
        >>> net = mx.sym.SoftmaxOutput(net, name="softmax")
        >>> x = np.array([[0.0, 1.0], [1.0, 0.0]] * 8, "float32")
        >>> model = mx.model.FeedForward(net, num_epoch=20, learning_rate=1.0, numpy_batch_size=8)
        >>> model.fit(x, np.array([0, 1] * 8))
        >>> model.predict(x[:2]).argmax(axis=1).tolist()
        [0, 1]
    """

    def __init__(
        self,
        symbol: Symbol | Callable[[Any], Symbol],
        ctx: Any = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Any = INITIALIZER,
        numpy_batch_size: int = 128,
        arg_params: Mapping[str, Any] | None = None,
        aux_params: Mapping[str, Any] | None = None,
        allow_extra_params: bool = False,
        begin_epoch: int = 0,
        **kwargs: Any,
    ) -> None:
        """Creates an untrained model.

        Args:
            symbol: the graph, or a function that makes it from a bucket key.
            ctx: a context, or a list of contexts, of which the first is used.
            num_epoch: the number of the epoch after the last one.
            epoch_size: the number of batches in an epoch; defaults to all data.
            optimizer: an optimizer or its name.
            initializer: initializes parameters that are not given.
            numpy_batch_size: the batch size for arrays.
            arg_params: parameters by name.
            aux_params: auxiliary states by name.
            allow_extra_params: whether to accept parameters that the graph does not have.
            begin_epoch: the number of the first epoch.
            **kwargs: arguments of an optimizer given by name.
        """
        self.symbol = symbol if isinstance(symbol, Symbol) else None
        self.sym_gen = None if isinstance(symbol, Symbol) else symbol
        self.arg_params = None if arg_params is None else dict(arg_params)
        self.aux_params = None if aux_params is None else dict(aux_params)
        self.allow_extra_params = allow_extra_params
        self.ctx = list(ctx) if isinstance(ctx, (list, tuple)) else [ctx]
        self.num_epoch, self.epoch_size, self.begin_epoch = num_epoch, epoch_size, begin_epoch
        self.optimizer, self.initializer = optimizer, initializer
        self.numpy_batch_size, self.kwargs = numpy_batch_size, dict(kwargs)
        self._executor: Executor | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_executor": None}

    # Training

    def fit(
        self,
        X: Any,
        y: Any = None,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Callbacks = None,
        batch_end_callback: Callbacks = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Any = None,
        monitor: Monitor | None = None,
        eval_end_callback: Callbacks = None,
        eval_batch_end_callback: Callbacks = None,
    ) -> None:
        """Trains the model, starting from its current parameters.

        Args:
            X: batches, or an array.
            y: labels, if ``X`` is an array.
            eval_data: batches, or a pair of arrays, to score after each epoch.
            eval_metric: the reported metric.
            epoch_end_callback: called with epoch, symbol, parameters and auxiliary states.
            batch_end_callback: called with a ``BatchEndParam``.
            kvstore: see ``Module.init_optimizer``.
            logger: the logger of the loop.
            work_load_list: has no effect.
            monitor: a monitor of all arrays.
            eval_end_callback: called after scoring, in addition to logging.
            eval_batch_end_callback: called after each scored batch.

        Raises:
            MXNetError: ``num_epoch`` is missing, or the data are invalid.
        """
        del work_load_list
        data = self._batches(X, y, is_train=True)
        module = self._module(data, logger or logging)
        if self.epoch_size is not None:
            data = ResizeIter(data, self.epoch_size, reset_internal=False)
        module.fit(
            data,
            self._eval_batches(eval_data),
            eval_metric,
            epoch_end_callback,
            batch_end_callback,
            kvstore,
            self.optimizer,
            self.kwargs if isinstance(self.optimizer, str) else {},
            eval_end_callback,
            eval_batch_end_callback,
            self.initializer,
            self.arg_params,
            self.aux_params,
            allow_missing=True,
            begin_epoch=self.begin_epoch,
            num_epoch=self.num_epoch,
            monitor=monitor,
        )
        self.arg_params, self.aux_params = module.get_params()
        self._executor = None

    def _module(self, data: DataIter, logger: Any) -> Module | BucketingModule:
        """The module that trains the graph, or the graphs of all buckets."""
        names = [one.name for one in described(data.provide_data)]
        labels = [one.name for one in described(data.provide_label)]
        if self.sym_gen is None:
            assert self.symbol is not None
            self._choose(self.symbol)
            return Module(self.symbol, names, self._known(labels), logger, self.ctx[0])
        make, key = self.sym_gen, getattr(data, "default_bucket_key", None)
        self.symbol = make(key)
        self._choose(self.symbol)
        known = self._known(labels)
        return BucketingModule(lambda key: (make(key), names, known), key, logger, self.ctx[0])

    def _known(self, names: Sequence[str]) -> list[str]:
        assert self.symbol is not None
        return [name for name in names if name in self.symbol.list_arguments()]

    def _choose(self, symbol: Symbol) -> None:
        """Drops parameters that the graph does not have, if ``allow_extra_params`` is set."""
        if not self.allow_extra_params:
            return
        own, states = symbol.list_arguments(), symbol.list_auxiliary_states()
        if self.arg_params is not None:
            self.arg_params = {k: one for k, one in self.arg_params.items() if k in own}
        if self.aux_params is not None:
            self.aux_params = {k: one for k, one in self.aux_params.items() if k in states}

    # Data

    def _batches(self, X: Any, y: Any, *, is_train: bool) -> DataIter:
        """Batches, made from arrays if those are given."""
        if isinstance(X, DataIter):
            return X
        if not isinstance(X, (np.ndarray, NDArray)):
            raise MXNetError(f"FeedForward: X must be a DataIter or an array, got {X!r:.80}")
        if y is None and is_train:
            raise MXNetError("FeedForward: y must be given with an array, got none")
        labels = np.zeros(X.shape[0]) if y is None else y
        if not isinstance(labels, (np.ndarray, NDArray)) or labels.shape[0] != X.shape[0]:
            raise MXNetError(
                f"FeedForward: y must be an array of length {X.shape[0]}, got "
                f"{getattr(labels, 'shape', labels)!r:.80}"
            )
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels.reshape((labels.shape[0],))
        if labels.ndim != 1:
            raise MXNetError(f"FeedForward: y must be a list of labels, got {labels.shape}")
        size = min(X.shape[0], self.numpy_batch_size)
        rest: Literal["roll_over", "pad"] = "roll_over" if is_train else "pad"
        return NDArrayIter(X, labels, size, shuffle=is_train, last_batch_handle=rest)

    def _eval_batches(self, given: Any) -> DataIter | None:
        if given is None or isinstance(given, DataIter):
            return given
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise MXNetError("FeedForward: eval_data must be a DataIter or a pair of arrays")
        data, labels = (np.array(one) if isinstance(one, list) else one for one in given)
        return self._batches(data, labels, is_train=True)

    # Prediction

    def _forward(self, batch: Any, descs: Sequence[DataDesc]) -> list[NDArray]:
        """The outputs for a batch."""
        executor = self._executor
        shapes = {one.name: tuple(one.shape) for one in descs}
        if executor is None or any(executor.arg_dict[k].shape != s for k, s in shapes.items()):
            executor = self._executor = self._bound(descs)
        given = dict(zip(shapes, batch.data, strict=True))
        return executor.forward(is_train=False, **given)

    def _bound(self, descs: Sequence[DataDesc]) -> Executor:
        if self.symbol is None or self.arg_params is None:
            raise MXNetError("FeedForward: parameters must be given or trained first")
        self._choose(self.symbol)
        read = set(self.symbol.list_arguments())
        params = {name: one for name, one in self.arg_params.items() if name in read}
        own = {name: one.shape for name, one in params.items()}
        types = {name: one.dtype for name, one in params.items()}
        shapes = {**own, **{one.name: tuple(one.shape) for one in descs}}
        types |= {one.name: one.dtype for one in descs}
        ctx: Context | None = self.ctx[0]
        result = self.symbol.simple_bind(ctx, grad_req="null", type_dict=types, **shapes)
        result.copy_params_from(self.arg_params, self.aux_params, self.allow_extra_params)
        return result

    def predict(
        self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True
    ) -> Any:
        """Predicts outputs as NumPy arrays, one or a list.

        Args:
            X: batches, or an array.
            num_batch: the number of batches; defaults to all.
            return_data: whether to return the data and the labels, too.
            reset: whether to reset the batches first.
        """
        data = self._batches(X, None, is_train=False)
        if reset:
            data.reset()
        found: list[list[list[np.ndarray]]] = []
        for number, batch in enumerate(data):
            if number == num_batch:
                break
            outputs = self._forward(batch, described(data.provide_data))
            parts = [outputs, batch.data, batch.label or []]
            rest = -(batch.pad or 0) or None
            found.append([[one.asnumpy()[:rest] for one in part] for part in parts])
        merged = [_merged(part) for part in zip(*found, strict=True)]
        return tuple(merged) if return_data else merged[0]

    def score(
        self,
        X: Any,
        eval_metric: Any = "acc",
        num_batch: int | None = None,
        batch_end_callback: Callbacks = None,
        reset: bool = True,
    ) -> Any:
        """The value of a metric over batches.

        Args:
            X: batches.
            eval_metric: a metric, or an argument of ``mx.metric.create``.
            num_batch: the number of batches; defaults to all.
            batch_end_callback: called with a ``BatchEndParam``.
            reset: whether to reset the batches first.
        """
        metric, data = metrics.create(eval_metric), self._batches(X, None, is_train=False)
        if reset:
            data.reset()
        for number, batch in enumerate(data):
            if number == num_batch:
                break
            metric.update(batch.label, self._forward(batch, described(data.provide_data)))
            for call in listed(batch_end_callback):
                call(BatchEndParam(0, number, metric, locals()))
        return metric.get()[1]

    # Files

    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Writes ``prefix-symbol.json`` and ``prefix-0001.params``, which MXNet reads.

        Raises:
            MXNetError: neither ``epoch`` nor ``num_epoch`` is set, or there are no parameters.
        """
        number = self.num_epoch if epoch is None else epoch
        if number is None or self.arg_params is None:
            raise MXNetError("save: epoch must be given, and the model have parameters")
        save_checkpoint(
            prefix, number, self.symbol, self.arg_params, self.aux_params or {}, remove_amp_cast
        )

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Any = None, **kwargs: Any) -> "FeedForward":
        """Loads the model of a checkpoint; other arguments are those of the class."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        own: Any = {"arg_params": arg_params, "aux_params": aux_params}
        return FeedForward(symbol, ctx, begin_epoch=epoch, **own, **kwargs)

    @staticmethod
    def create(
        symbol: Symbol | Callable[[Any], Symbol],
        X: Any,
        y: Any = None,
        ctx: Any = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Any = INITIALIZER,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Callbacks = None,
        batch_end_callback: Callbacks = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Any = None,
        eval_end_callback: Callbacks = None,
        eval_batch_end_callback: Callbacks = None,
        **kwargs: Any,
    ) -> "FeedForward":
        """Creates and trains a model; the arguments are those of the class and of ``fit``."""
        model = FeedForward(symbol, ctx, num_epoch, epoch_size, optimizer, initializer, **kwargs)
        model.fit(
            X,
            y,
            eval_data,
            eval_metric,
            epoch_end_callback,
            batch_end_callback,
            kvstore,
            logger,
            work_load_list,
            None,
            eval_end_callback,
            eval_batch_end_callback,
        )
        return model


def _merged(batches: Sequence[Sequence[np.ndarray]]) -> Any:
    """Concatenates the arrays of all batches: one, or a list."""
    joined = [np.concatenate(one) for one in zip(*batches, strict=True)]
    return joined[0] if len(joined) == 1 else joined
