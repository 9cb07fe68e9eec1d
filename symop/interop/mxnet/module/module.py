"""Module: a symbol with its parameters and optimizer, for training and evaluation."""

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from symop.interop.mxnet import base_optimizer as optimizers
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.batches import DataDesc
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.integer_gradients import CastingExecutor
from symop.interop.mxnet.kvstore import KVStore
from symop.interop.mxnet.kvstore import create as create_kvstore
from symop.interop.mxnet.kvstore_base import KVStoreBase
from symop.interop.mxnet.model_files import load_checkpoint, save_checkpoint
from symop.interop.mxnet.module.bound_arrays import ExecutorGroup
from symop.interop.mxnet.module.bound_module import BoundModule, arrays_of, fitting, write_into
from symop.interop.mxnet.module.module_interface import RATE, Descs, Held, ModuleInterface
from symop.interop.mxnet.module.training_step import TrainingStep
from symop.interop.mxnet.monitor import Monitor
from symop.interop.mxnet.sparse_arrays import RowSparseNDArray
from symop.interop.mxnet.stored_executor import StoredExecutor
from symop.interop.mxnet.symbols import Symbol
from symop.interop.mxnet.updater import Updater, get_updater, is_formula
from symop.io.files import write_atomically


class Module(BoundModule):
    """A symbol that is trained and evaluated.

    If ``update`` directly follows ``forward_backward``, as in ``fit``, a step is one compiled
    function: forward, backward, the optimizer and auxiliary states, in place. If outputs, gradients
    or a monitor are read in between, its parts run separately, with the same result.

    Args:
        symbol: the graph.
        data_names: names of its data.
        label_names: names of its labels.
        logger: the logger of loops.
        context: the device of its arrays, JAX's default device if it does not exist. All of a
            batch is computed on the first of several devices; only results that are not merged
            are in parts.
        work_load_list: has no effect.
        fixed_param_names: names of parameters that are not updated.
        state_names: names of arguments kept between passes.
        group2ctxs: devices of arrays by the value of their attribute ``ctx_group``; values are
            copied to the device of ``context`` to compute.
        compression_params: has no effect.

    Example:
        >>> import numpy as np, symop.interop.mxnet as mx
        >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
        >>> module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
        >>> x = np.random.default_rng(0).normal(size=(64, 2))
        >>> batches = mx.io.NDArrayIter(x, x[:, 0] > 0, batch_size=16)
        >>> module.fit(batches, num_epoch=20, optimizer_params={"learning_rate": 1.0})
        >>> ((name, accuracy),) = module.score(batches, "acc")
        >>> accuracy > 0.95
        True
    """

    def __init__(
        self,
        symbol: Symbol,
        data_names: Sequence[str] | None = ("data",),
        label_names: Sequence[str] | None = ("softmax_label",),
        logger: Any = logging,
        context: Any = None,
        work_load_list: Any = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
    ) -> None:
        """See the class.

        Raises:
                MXNetError: a name is not that of an argument.
        """
        names = data_names, label_names, fixed_param_names, state_names
        super().__init__(symbol, *names, logger, context, group2ctxs)
        self._preload_opt_states: str | None = None
        self._kvstore: KVStore | None = None
        self._summing: KVStoreBase | None = None
        self._by_store = False
        self._updater: Updater | None = None
        self._optimizer: Any = None
        self._monitors: list[Monitor] = []
        self._observed = self._prepared = False

    def _reset_bind(self) -> None:
        super()._reset_bind()
        self._steps: dict[int, TrainingStep] = {}
        self._pending: tuple[dict[str, Any], TrainingStep] | None = None
        self._passed = False

    def bind(
        self,
        data_shapes: Descs,
        label_shapes: Descs | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: ModuleInterface | None = None,
        grad_req: Any = "write",
    ) -> None:
        """Binds the module to shapes of data and labels; see ``BoundModule.bind``."""
        super().bind(
            data_shapes,
            label_shapes,
            for_training,
            inputs_need_grad,
            force_rebind,
            shared_module,
            grad_req,
        )
        if shared_module is not None and shared_module.optimizer_initialized:
            self.borrow_optimizer(shared_module)

    # Files

    @staticmethod
    def load(
        prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any
    ) -> "Module":
        """Loads the module of a checkpoint; ``bind`` must follow.

        Args:
            prefix: see ``mx.model.load_checkpoint``.
            epoch: see ``mx.model.load_checkpoint``.
            load_optimizer_states: whether to restore the optimizer's states.
            **kwargs: see the class.
        """
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        result = Module(symbol, **kwargs)
        result._loaded, result.params_initialized = (arg_params, aux_params), True
        if load_optimizer_states:
            result._preload_opt_states = f"{prefix}-{epoch:04d}.states"
        return result

    def save_checkpoint(
        self,
        prefix: str,
        epoch: int,
        save_optimizer_states: bool = False,
        remove_amp_cast: bool = True,
    ) -> None:
        """Writes symbol and parameters, which MXNet reads, and optionally optimizer states."""
        save_checkpoint(prefix, epoch, self._symbol, *self.get_params(), remove_amp_cast)
        if save_optimizer_states:
            self.save_optimizer_states(f"{prefix}-{epoch:04d}.states")

    def save_optimizer_states(self, fname: str) -> None:
        """Writes the optimizer's states to a file, not in MXNet's format, which is a pickle."""
        self.require("save_optimizer_states", optimizer=True)
        store = self._updating_store()
        if store is not None:
            store.save_optimizer_states(fname)
        elif self._updater is not None:
            write_atomically(fname, self._updater.get_states())

    def load_optimizer_states(self, fname: str) -> None:
        """Reads the optimizer's states from a file."""
        self.require("load_optimizer_states", optimizer=True)
        store = self._updating_store()
        if store is not None:
            store.load_optimizer_states(fname)
        elif self._updater is not None:
            self._updater.load_states(fname)

    def _updating_store(self) -> Any:
        """The store that has the optimizer's states, if they are not the module's."""
        return self._summing if self._is_updated_apart else self._kvstore

    @property
    def _is_updated_apart(self) -> bool:
        """Whether a store of the user's updates the parameters."""
        return self._summing is not None and self._summing.is_capable(KVStoreBase.OPTIMIZER)

    @property
    def _exec_group(self) -> ExecutorGroup:
        """The executor group; it exposes gradients, so parts of a step run separately then."""
        executor = self._own_executor("_exec_group")
        self._settle()
        self._observed = True
        inputs = [one.name for one in (*self._data_shapes, *self._label_shapes)]
        return ExecutorGroup(executor, self._param_names, inputs, self._batch_size)

    # Optimizer

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = RATE,
        force_init: bool = False,
    ) -> None:
        """Sets the optimizer.

        Args:
            kvstore: ``"local"``, ``"device"`` or None, which have no effect; or a store that
                updates; or one of a registered class, which sums gradients before the update, or
                updates if it is capable of ``"optimizer"``.
            optimizer: an optimizer or its name.
            optimizer_params: its arguments, a dict or pairs; ``rescale_grad`` defaults to one over
                the number of examples in a batch.
            force_init: whether to replace an earlier optimizer.

        Raises:
            MXNetError: there is no such optimizer, or the store is distributed.
        """
        self.require("init_optimizer")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        self._settle()
        self._optimizer = self._made_optimizer(optimizer, optimizer_params)
        self._updater, self._kvstore, self._summing, self._steps = None, None, None, {}
        self._by_store = isinstance(kvstore, KVStore)
        if isinstance(kvstore, str):
            made = create_kvstore(kvstore)
            kvstore = None if isinstance(made, KVStore) else made
            self._kvstore = made if kvstore is None and len(self._contexts) > 1 else None
        if self._by_store:
            self._kvstore = kvstore
            kvstore.set_optimizer(self._optimizer)
            for name in self._param_names:
                kvstore.init(name, self._own_executor("init_optimizer").arg_dict[name])
        else:
            self._summing = self._broadcast_by(kvstore)
            self._updater = get_updater(self._optimizer)
            if self._kvstore is not None:
                self._kvstore._set_updater(self._updater)
        self.optimizer_initialized = True
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _broadcast_by(self, store: Any) -> KVStoreBase | None:
        """A store of the user's, once it has broadcast the parameters."""
        if store is None:
            return None
        if not isinstance(store, KVStoreBase):
            raise MXNetError(f"init_optimizer: kvstore must be a store or its name, got {store!r}")
        if store.is_capable(KVStoreBase.OPTIMIZER):
            store.set_optimizer(self._optimizer)
        for name in self._param_names:
            array = self._own_executor("init_optimizer").arg_dict[name]
            store.broadcast(name, array, array)
        return store

    def _made_optimizer(self, given: Any, params: Any) -> Any:
        """The optimizer, created from its name if needed, with the names of the parameters."""
        scale, names = 1.0 / self._batch_size, dict(enumerate(self._param_names))
        if isinstance(given, str):
            told = {"rescale_grad": scale, **dict(params)}
            return optimizers.create(given, sym=self._symbol, param_idx2name=names, **told)
        if given.rescale_grad != scale:
            self.logger.warning(
                "Optimizer created manually: rescale_grad is %s, not 1.0/batch_size = %s",
                given.rescale_grad,
                scale,
            )
        given.idx2name = given.idx2name or names
        return given

    def borrow_optimizer(self, shared_module: ModuleInterface) -> None:
        """Shares the optimizer of another module, including its states."""
        if not isinstance(shared_module, Module) or not shared_module.optimizer_initialized:
            raise MXNetError("borrow_optimizer: a Module with an optimizer must be given")
        self._optimizer, self._kvstore = shared_module._optimizer, shared_module._kvstore
        self._summing, self._by_store = shared_module._summing, shared_module._by_store
        self._updater, self._steps = shared_module._updater, {}
        self.optimizer_initialized = True

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Pulls the rows of row-sparse parameters that a batch needs from the store.

        If no store updates the parameters, this warns and has no effect.

        Args:
            data_batch: the batch.
            sparse_row_id_fn: returns, for a batch, arrays of rows by the names of parameters.

        Raises:
            MXNetError: a name is not that of a row-sparse parameter.
        """
        if sparse_row_id_fn is None:
            return
        if self._kvstore is None or not self._by_store:
            warnings.warn(
                "prepare: sparse_row_id_fn is not needed, since no store updates the parameters",
                stacklevel=2,
            )
            return
        self._settle()
        self._prepared = True
        held = self._own_executor("prepare").arg_dict
        told = sparse_row_id_fn(data_batch)
        for name in told:
            if not isinstance(held.get(name), RowSparseNDArray):
                raise MXNetError(f"prepare: a row_sparse parameter must be named, got {name!r}")
        rows = [
            one for ids in told.values() for one in ([ids] if isinstance(ids, NDArray) else ids)
        ]
        self._kvstore.row_sparse_pull(list(told), [held[name] for name in told], row_ids=rows)

    def get_params(self) -> Held:
        """Copies of parameters and auxiliary states, by name."""
        if self._prepared and self._kvstore is not None and self._executor is not None:
            self._settle()
            held = self._executor.arg_dict
            for name in self._param_names:
                if isinstance(held[name], RowSparseNDArray):
                    self._kvstore.pull(name, held[name], ignore_sparse=False)
        return super().get_params()

    # Passes

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Computes the outputs; in training also new auxiliary states.

        Args:
            data_batch: an object with ``data`` and ``label``; the module is bound again if their
                shapes changed.
            is_train: whether operators behave as in training; defaults to the mode of ``bind``.
        """
        feed = self._fed(data_batch)
        self._pass(feed, self.for_training if is_train is None else is_train)

    def forward_backward(self, data_batch: Any) -> None:
        """Runs ``forward`` for training, and ``backward``; both are lazy."""
        feed = self._fed(data_batch)
        step = self._step()
        if step is not None:
            self._pending = feed, step
            return
        self._pass(feed, True)
        self.backward()

    def _fed(self, batch: Any) -> dict[str, Any]:
        """The arrays of a batch, by name."""
        self.require("forward")
        self._settle()
        if isinstance(batch, list):
            raise MXNetError("forward: one batch must be given for all devices, got a list")
        labels = getattr(batch, "label", None) or ()
        values = arrays_of([*batch.data, *labels])
        feed = self._as_before(values) or self._fitted(batch, labels)
        if not isinstance(self._executor, StoredExecutor):
            for name, one in feed.items():
                if isinstance(one, NDArray):
                    feed[name] = one.dense().value
        return feed

    def _as_before(self, values: Sequence[Any]) -> dict[str, Any] | None:
        """``values`` by name if they have the bound types, the most frequent case."""
        data, labels = self._types
        feed = {}
        if len(values) == len(data) + len(labels):
            for (name, shape, dtype), value in zip((*data, *labels), values, strict=True):
                if value.shape != shape or value.dtype != dtype:
                    return None
                feed[name] = value
        return feed

    def _fitted(self, batch: Any, labels: Sequence[Any]) -> dict[str, Any]:
        """The arrays of a batch by name, after binding new shapes if needed."""
        data = arrays_of(batch.data)
        if [one.shape for one in data] != self._shapes:
            self._reshape_for(batch, data, labels)
        feed = {}
        for types, arrays in zip(self._types, (data, arrays_of(labels)), strict=True):
            for (name, shape, dtype), array in zip(types, arrays, strict=False):
                feed[name] = fitting(name, array, shape, dtype)
        return feed

    def _reshape_for(self, batch: Any, data: Sequence[Any], labels: Sequence[Any]) -> None:
        told, own = getattr(batch, "provide_data", None), getattr(batch, "provide_label", None)
        self.reshape(
            told or _alike(self._data_shapes, data), own or _alike(self._label_shapes, labels)
        )

    def _pass(self, feed: Mapping[str, Any], is_train: bool) -> None:
        executor = self._own_executor("forward")
        for name, value in feed.items():
            write_into(executor.arg_dict[name], value)
        executor.forward(is_train)
        self._passed = is_train

    def _step(self) -> TrainingStep | None:
        """The compiled step for the current shapes, unless intermediate results are needed."""
        apart: Any = self._monitors or self._observed or self.inputs_need_grad or self._state_names
        apart = apart or self._summing is not None or self._own_executor("update").is_scattered
        if apart or self._updater is None or not is_formula(self._updater.optimizer):
            return None
        executor, bound = self._own_executor("update"), self._bound
        assert bound is not None
        if isinstance(executor, (StoredExecutor, CastingExecutor)):
            return None
        if id(executor) not in self._steps:
            if not self.for_training or "add" in bound.requests.values():
                return None
            trained = {
                i: name
                for i, name in enumerate(self._param_names)
                if executor.grad_dict[name] is not None
            }
            self._steps[id(executor)] = TrainingStep(executor, trained, self._updater)
        return self._steps[id(executor)]

    def _settle(self) -> None:
        """Runs pending computations."""
        if self._pending is not None:
            (feed, _), self._pending = self._pending, None
            self._pass(feed, True)
            self.backward()

    def backward(self, out_grads: Any = None) -> None:
        """Computes the gradients.

        Args:
            out_grads: gradients of the outputs; defaults to ones, which loss layers ignore.

        Raises:
            MXNetError: there was no forward pass for training, or it is not bound for training.
        """
        self._settle()
        executor = self._own_executor("backward")
        if not (self.for_training and self._passed):
            raise MXNetError(
                "backward: bind for training and forward(is_train=True) must come first"
            )
        executor.backward(out_grads)

    def update(self) -> None:
        """Updates the parameters by their gradients."""
        self.require("update", optimizer=True)
        executor = self._own_executor("update")
        if self._pending is not None:
            (feed, step), self._pending = self._pending, None
            executor.hold_outputs(step.run(feed))
            self._passed = False
            return
        grads = {
            i: executor.grad_dict[name]
            for i, name in enumerate(self._param_names)
            if executor.grad_dict[name] is not None
        }
        weights = [executor.arg_dict[self._param_names[i]] for i in grads]
        if self._kvstore is not None and self._by_store:
            names = [self._param_names[i] for i in grads]
            self._kvstore.push(names, list(grads.values()))
            # Without prepare, the rows that a batch needs are not known.
            self._kvstore.pull(names, weights, ignore_sparse=self._prepared)
        elif self._updater is not None:
            store, updates = self._summing, self._is_updated_apart
            if store is not None:
                for (i, grad), weight in zip(grads.items(), weights, strict=True):
                    store.pushpull(self._param_names[i], [grad], [weight] if updates else None)
            if not updates:
                self._updater(list(grads), list(grads.values()), weights)

    # Results

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last forward pass; unless merged, each in parts of the contexts.

        Those of several contexts are copies, while a single context has the arrays that the next
        pass overwrites.
        """
        self._settle()
        found = self._own_executor("get_outputs").outputs
        if merge_multi_context:
            return list(found) if len(self._contexts) == 1 else [one.copy() for one in found]
        layouts = [one.attr("__layout__") for one in self._symbol]
        return [self._parts(*each) for each in zip(found, layouts, strict=True)]

    def _parts(self, array: Any, layout: str | None) -> list[NDArray]:
        """An array's parts, one for each context, along the batch axis of its layout."""
        axis, count = DataDesc.get_batch_axis(layout), len(self._contexts)
        if axis < 0 or count == 1:
            return [array]
        return [array_of(one) for one in jnp.array_split(array.value, count, axis)]

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the data; unless merged, each in parts of the contexts."""
        self._settle()
        grads = self._own_executor("get_input_grads").grad_dict
        if not self.inputs_need_grad:
            raise MXNetError("get_input_grads: bind with inputs_need_grad=True must come first")
        found = [grads[one.name] for one in self._data_shapes]
        if merge_multi_context:
            return found
        pairs = zip(found, self._data_shapes, strict=True)
        return [self._parts(grad, one.layout) for grad, one in pairs]

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Updates a metric with labels and outputs."""
        if pre_sliced:
            (labels,) = labels
        names = [one.name for one in self._label_shapes] or self.label_names
        outputs = dict(zip(self.output_names, self.get_outputs(), strict=True))
        eval_metric.update_dict(dict(zip(names, labels or (), strict=False)), outputs)

    def install_monitor(self, mon: Monitor) -> None:
        """Makes ``mon`` monitor all arrays; parts of a step run separately afterwards."""
        self._settle()
        mon.install(self._own_executor("install_monitor"))
        self._monitors.append(mon)


def _alike(descs: Sequence[DataDesc], arrays: Sequence[Any]) -> list[DataDesc]:
    """Descriptions with the shapes of ``arrays``."""
    return [
        DataDesc(one.name, array.shape, one.dtype, one.layout)
        for one, array in zip(descs, arrays, strict=False)
    ]
