"""Module: a symbol with its parameters, bound to the shapes of its data, and its optimizer."""

import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from symop.files import write_atomically
from symop.interop.mxnet import base_optimizer as optimizers
from symop.interop.mxnet.batches import DataDesc
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.initializer import InitDesc
from symop.interop.mxnet.kvstore import KVStore
from symop.interop.mxnet.kvstore import create as create_kvstore
from symop.interop.mxnet.model import load_checkpoint, save_checkpoint
from symop.interop.mxnet.module.base_module import (
    INITIALIZER,
    RATE,
    BaseModule,
    Descs,
    Held,
    Params,
    described,
)
from symop.interop.mxnet.module.bound_arrays import BoundArrays, ExecutorGroup
from symop.interop.mxnet.module.training_step import TrainingStep
from symop.interop.mxnet.monitor import Monitor
from symop.interop.mxnet.ndarray import NDArray, array_of
from symop.interop.mxnet.symbol import Symbol
from symop.interop.mxnet.updater import Updater, get_updater, is_formula

_PARAMETERS = ("_weight", "_bias", "_gamma", "_beta")


class Module(BaseModule):
    """A symbol that is trained and evaluated.

    Where ``forward_backward`` and ``update`` follow each other, as in ``fit``, a step is one
    compiled function: forward, backward, the optimizer and auxiliary states, in place. What looks
    in between (outputs, gradients, a monitor) is computed apart, with the same result.

    Args:
        symbol: the graph.
        data_names: names of its data.
        label_names: names of its labels.
        logger: where loops report.
        context: has no effect: arrays lie on JAX's default device; several devices are one.
        work_load_list: has no effect.
        fixed_param_names: names of parameters that are not updated.
        state_names: names of arguments that are kept from pass to pass.
        group2ctxs: has no effect.
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
            MXNetError: the symbol has no argument of a name.
        """
        super().__init__(logger)
        self._symbol = symbol
        self.data_names, self.label_names = list(data_names or ()), list(label_names or ())
        self._state_names = list(state_names or ())
        self._fixed_param_names = list(fixed_param_names or ())
        self.output_names = symbol.list_outputs()
        arguments = symbol.list_arguments()
        _require_names("data", self.data_names, arguments)
        _require_names("state", self._state_names, arguments)
        _require_names("fixed_param", self._fixed_param_names, arguments)
        _require_names("label", self.label_names, arguments, warn=True)
        inputs = {*self.data_names, *self.label_names, *self._state_names}
        self._param_names = [name for name in arguments if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._loaded: Held = ({}, {})
        self._preload_opt_states: str | None = None
        self._kvstore: KVStore | None = None
        self._updater: Updater | None = None
        self._optimizer: Any = None
        self._monitors: list[Monitor] = []
        self._observed = False
        self._reset_bind()

    def _reset_bind(self) -> None:
        self.binded = False
        self._bound: BoundArrays | None = None
        self._executor: Executor | None = None
        self._steps: dict[int, TrainingStep] = {}
        self._data_shapes: list[DataDesc] = []
        self._label_shapes: list[DataDesc] = []
        self._pending: tuple[dict[str, Any], TrainingStep] | None = None
        self._passed = False

    # Files

    @staticmethod
    def load(
        prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any
    ) -> "Module":
        """The module of a checkpoint; ``bind`` it to the shapes of the data.

        Args:
            prefix: see ``mx.model.load_checkpoint``.
            epoch: likewise.
            load_optimizer_states: whether the optimizer goes on from where it was.
            **kwargs: see the class.
        """
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        made = Module(symbol, **kwargs)
        made._loaded, made.params_initialized = (arg_params, aux_params), True
        if load_optimizer_states:
            made._preload_opt_states = f"{prefix}-{epoch:04d}.states"
        return made

    def save_checkpoint(
        self,
        prefix: str,
        epoch: int,
        save_optimizer_states: bool = False,
        remove_amp_cast: bool = True,
    ) -> None:
        """Write symbol and parameters, which MXNet reads, and what the optimizer keeps."""
        save_checkpoint(prefix, epoch, self._symbol, *self.get_params(), remove_amp_cast)
        if save_optimizer_states:
            self.save_optimizer_states(f"{prefix}-{epoch:04d}.states")

    def save_optimizer_states(self, fname: str) -> None:
        """Write what the optimizer keeps into a file; it is not MXNet's, which is a pickle."""
        self.require("save_optimizer_states", optimizer=True)
        if self._kvstore is not None:
            self._kvstore.save_optimizer_states(fname)
        elif self._updater is not None:
            write_atomically(fname, self._updater.get_states())

    def load_optimizer_states(self, fname: str) -> None:
        """Read it again."""
        self.require("load_optimizer_states", optimizer=True)
        if self._kvstore is not None:
            self._kvstore.load_optimizer_states(fname)
        elif self._updater is not None:
            self._updater.set_states(Path(fname).read_bytes())

    # Shapes

    @property
    def data_shapes(self) -> list[DataDesc]:  # type: ignore[override]  # known once it is bound
        """Descriptions of the data."""
        self.require("data_shapes", params=False)
        return self._data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:  # type: ignore[override]
        """Descriptions of the labels."""
        self.require("label_shapes", params=False)
        return self._label_shapes or None

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:  # type: ignore[override]
        """Names and shapes of the outputs."""
        nodes = self._own_executor("output_shapes").graph.nodes
        return [(n, node.type.shape) for n, node in zip(self.output_names, nodes, strict=True)]

    def bind(
        self,
        data_shapes: Descs,
        label_shapes: Descs | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: BaseModule | None = None,
        grad_req: Any = "write",
    ) -> None:
        """Tell the shapes of data and labels.

        Args:
            data_shapes: pairs of name and shape, or ``DataDesc``.
            label_shapes: likewise.
            for_training: whether gradients are computed.
            inputs_need_grad: whether those of the data are, too.
            force_rebind: whether what was bound before is forgotten.
            shared_module: whose parameters this one shares.
            grad_req: ``"write"``, ``"add"`` or ``"null"``, for all, in order or by name.

        Raises:
            MXNetError: a shape does not follow, or names are not those of the module.
        """
        if force_rebind and self.binded:
            self._loaded = self.get_params() if self.params_initialized else self._loaded
            self._reset_bind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        shared = None
        if shared_module is not None:
            if not isinstance(shared_module, Module) or shared_module._bound is None:
                raise MXNetError("bind: shared_module must be a Module that is bound")
            shared = shared_module._bound
        data, labels = described(data_shapes), described(label_shapes)
        requests = self._requests(grad_req, [one.name for one in data])
        self._bound = BoundArrays(self._symbol, self._param_names, requests, shared)
        self._shape(data, labels)
        self.binded = True
        if shared_module is not None:
            self.params_initialized = shared_module.params_initialized
            if shared_module.optimizer_initialized:
                self.borrow_optimizer(shared_module)
        elif self.params_initialized:
            self._write(*self._loaded)

    def _requests(self, given: Any, data: Sequence[str]) -> dict[str, str]:
        names = self._symbol.list_arguments()
        if not self.for_training:
            return dict.fromkeys(names, "null")
        if isinstance(given, (list, tuple)):
            return dict(zip(names, given, strict=True))
        usual = given if isinstance(given, str) else "write"
        wanted = set(self._param_names) - set(self._fixed_param_names)
        wanted |= set(data) if self.inputs_need_grad else set()
        found = {name: usual if name in wanted else "null" for name in names}
        return found if isinstance(given, str) else {**found, **given}

    def _shape(self, data: list[DataDesc], labels: list[DataDesc]) -> None:
        """Take the executor for these shapes."""
        assert self._bound is not None
        if sorted(one.name for one in data) != sorted(self.data_names):
            raise MXNetError(f"bind: data must be called {self.data_names}, got {data}")
        names = set(self._symbol.list_arguments())
        known = [one for one in labels if one.name in names]
        self._executor = self._bound.executor([*data, *known])
        self._data_shapes, self._label_shapes = data, known

    def reshape(self, data_shapes: Descs, label_shapes: Descs | None = None) -> None:
        """Go on with other shapes of data and labels."""
        self.require("reshape", params=False)
        self._settle()
        self._shape(described(data_shapes), described(label_shapes))

    def _own_executor(self, what: str) -> Executor:
        self.require(what, params=False)
        assert self._executor is not None
        return self._executor

    @property
    def _batch_size(self) -> int:
        found = [(DataDesc.get_batch_axis(one.layout), one) for one in self._data_shapes]
        return next((one.shape[axis] for axis, one in found if axis >= 0), 1)

    @property
    def _exec_group(self) -> ExecutorGroup:
        """What lies behind; who has it may look at gradients, so steps are taken apart then."""
        executor = self._own_executor("_exec_group")
        self._settle()
        self._observed = True
        inputs = [one.name for one in (*self._data_shapes, *self._label_shapes)]
        return ExecutorGroup(executor, self._param_names, inputs, self._batch_size)

    # Parameters

    def init_params(
        self,
        initializer: Any = INITIALIZER,
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Fill the parameters, unless they are filled.

        Args:
            initializer: fills what is not given.
            arg_params: parameters by name; None fills all by ``initializer``.
            aux_params: likewise, auxiliary states.
            allow_missing: whether some may be missing, to be filled by ``initializer``.
            force_init: whether they are filled anew.
            allow_extra: has no effect: names that the symbol lacks are left out.

        Raises:
            MXNetError: it is not bound, or a parameter is missing or of another shape.
        """
        self.require("init_params", params=False)
        if self.params_initialized and not force_init:
            if arg_params or aux_params:
                warnings.warn("init_params: parameters stay, without force_init", stacklevel=2)
            return
        self._settle()
        executor, attributes = self._own_executor("init_params"), self._symbol.attr_dict()
        own = {name: executor.arg_dict[name] for name in self._param_names}
        for arrays, given in ((own, arg_params), (executor.aux_dict, aux_params)):
            for name, array in sorted(arrays.items()):
                if given is not None and name in given:
                    _copy(name, given[name], array)
                elif given is not None and not allow_missing:
                    raise MXNetError(f"init_params: {name!r} must be among the parameters")
                elif initializer is not None:
                    initializer(InitDesc(name, attributes.get(name)), array)
        self.params_initialized = True

    def set_params(
        self,
        arg_params: Params,
        aux_params: Params,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Write parameters and auxiliary states.

        Raises:
            MXNetError: one is missing or superfluous, unless that is allowed, or of another shape.
        """
        known = {*self._param_names, *self._aux_names}
        extra = [name for name in {**arg_params, **aux_params} if name not in known]
        if extra and not allow_extra:
            raise MXNetError(f"set_params: names must be among the parameters, got {extra[0]!r}")
        super().set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)

    def _write(self, arg_params: Params, aux_params: Params) -> None:
        executor = self._own_executor("bind")
        for own, given in ((executor.arg_dict, arg_params), (executor.aux_dict, aux_params)):
            for name, value in given.items():
                if name in own:
                    _copy(name, value, own[name])

    def get_params(self) -> Held:
        """Copies of parameters and auxiliary states, by name."""
        if not self.params_initialized:
            raise MXNetError("get_params: init_params must come first")
        if not self.binded:
            return self._loaded
        self._settle()
        executor = self._own_executor("get_params")
        own = {name: executor.arg_dict[name] for name in self._param_names}
        return _copied(own), _copied(executor.aux_dict)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Arrays of the arguments that are kept from pass to pass, each in a list of one device."""
        del merge_multi_context
        held = self._own_executor("get_states").arg_dict
        return [[held[name]] for name in self._state_names]

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Write them: arrays, or one number into all."""
        self._settle()
        for i, (own,) in enumerate(self.get_states()):
            given = value if states is None else states[i]
            given = given[0] if isinstance(given, (list, tuple)) else given
            plain = given.value if isinstance(given, NDArray) else given
            own.hold(jnp.broadcast_to(jnp.asarray(plain, own.dtype), own.shape))

    # Optimizer

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = RATE,
        force_init: bool = False,
    ) -> None:
        """Take an optimizer.

        Args:
            kvstore: ``"local"``, ``"device"`` or None, without effect; or a store that updates.
            optimizer: its name, or itself.
            optimizer_params: what makes it, a dict or pairs; gradients are divided by the number of
                examples unless ``rescale_grad`` is among them.
            force_init: whether one that was there before is replaced.

        Raises:
            MXNetError: there is no such optimizer, or the store is for several machines.
        """
        self.require("init_optimizer")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        self._settle()
        scale, names = 1.0 / self._batch_size, dict(enumerate(self._param_names))
        if isinstance(optimizer, str):
            given = {"rescale_grad": scale, **dict(optimizer_params)}
            optimizer = optimizers.create(
                optimizer, sym=self._symbol, param_idx2name=names, **given
            )
        elif optimizer.rescale_grad != scale:
            self.logger.warning(
                "Optimizer created manually: rescale_grad is %s, not 1.0/batch_size = %s",
                optimizer.rescale_grad,
                scale,
            )
        if not optimizer.idx2name:
            optimizer.idx2name = names
        self._optimizer, self._updater, self._kvstore = optimizer, None, None
        self._steps = {}
        if isinstance(kvstore, KVStore):
            self._kvstore = kvstore
            kvstore.set_optimizer(optimizer)
            for name in self._param_names:
                kvstore.init(name, self._own_executor("init_optimizer").arg_dict[name])
        else:
            if kvstore is not None:
                create_kvstore(kvstore)
            self._updater = get_updater(optimizer)
        self.optimizer_initialized = True
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def borrow_optimizer(self, shared_module: "BaseModule") -> None:
        """Take the optimizer of another module, with what it keeps."""
        if not isinstance(shared_module, Module) or not shared_module.optimizer_initialized:
            raise MXNetError("borrow_optimizer: a Module with an optimizer must be given")
        self._optimizer, self._kvstore = shared_module._optimizer, shared_module._kvstore
        self._updater, self._steps = shared_module._updater, {}
        self.optimizer_initialized = True

    # Passes

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs; in training also new auxiliary states.

        Args:
            data_batch: has ``data`` and ``label``; other shapes than those that are bound are bound
                now.
            is_train: whether operators behave as in training; as it was bound unless given.
        """
        feed = self._fed(data_batch)
        self._pass(feed, self.for_training if is_train is None else is_train)

    def forward_backward(self, data_batch: Any) -> None:
        """``forward`` for training, and ``backward``; both wait for what needs them."""
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
        if isinstance(batch, (list, tuple)):
            raise MXNetError("forward: one batch must be given for all devices, got a list")
        data, labels = _values(batch.data), _values(batch.label)
        shapes = [one.shape for one in data]
        if shapes != [shape for _, shape in self._data_shapes]:
            self._reshape_for(batch, shapes)
        held, feed = self._own_executor("forward").arg_dict, dict[str, Any]()
        for descs, arrays in ((self._data_shapes, data), (self._label_shapes, labels)):
            for (name, _), value in zip(descs, arrays, strict=False):
                feed[name] = _cast(name, value, held[name])
        return feed

    def _reshape_for(self, batch: Any, shapes: Sequence[tuple[int, ...]]) -> None:
        data, labels = getattr(batch, "provide_data", None), getattr(batch, "provide_label", None)
        if not data:
            data = [_like(one, shape) for one, shape in zip(self._data_shapes, shapes, strict=True)]
        if not labels and batch.label:
            pairs = zip(self._label_shapes, batch.label, strict=False)
            labels = [_like(one, tuple(array.shape)) for one, array in pairs]
        self.reshape(data, labels)

    def _pass(self, feed: Mapping[str, Any], is_train: bool) -> None:
        executor = self._own_executor("forward")
        for name, value in feed.items():
            executor.arg_dict[name].hold(value)
        executor.forward(is_train)
        self._passed = is_train

    def _step(self) -> TrainingStep | None:
        """The compiled step for the present shapes, if nothing looks into its middle."""
        apart = self._monitors or self._observed or self.inputs_need_grad or self._state_names
        if apart or self._updater is None or not is_formula(self._updater.optimizer):
            return None
        executor, bound = self._own_executor("update"), self._bound
        assert bound is not None
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
        """Compute what waits."""
        if self._pending is not None:
            (feed, _), self._pending = self._pending, None
            self._pass(feed, True)
            self.backward()

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients.

        Args:
            out_grads: those of the outputs; ones unless given, which loss layers ignore.

        Raises:
            MXNetError: no forward pass for training came before, or it is not bound for training.
        """
        self._settle()
        executor = self._own_executor("backward")
        if not (self.for_training and self._passed):
            raise MXNetError(
                "backward: bind for training and forward(is_train=True) must come first"
            )
        executor.backward(out_grads)

    def update(self) -> None:
        """Update the parameters by their gradients."""
        self.require("update", optimizer=True)
        executor = self._own_executor("update")
        if self._pending is not None:
            (feed, step), self._pending = self._pending, None
            executor.outputs, self._passed = step.run(feed), False
            return
        grads = {
            i: executor.grad_dict[name]
            for i, name in enumerate(self._param_names)
            if executor.grad_dict[name] is not None
        }
        weights = [executor.arg_dict[self._param_names[i]] for i in grads]
        if self._kvstore is not None:
            names = [self._param_names[i] for i in grads]
            self._kvstore.pushpull(names, list(grads.values()), weights)
        elif self._updater is not None:
            self._updater(list(grads), list(grads.values()), weights)

    # What was computed

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last forward pass; each in a list of one device unless merged."""
        self._settle()
        found = self._own_executor("get_outputs").outputs
        return list(found) if merge_multi_context else [[one] for one in found]

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the data."""
        self._settle()
        grads = self._own_executor("get_input_grads").grad_dict
        if not self.inputs_need_grad:
            raise MXNetError("get_input_grads: bind with inputs_need_grad=True must come first")
        found = [grads[one.name] for one in self._data_shapes]
        return found if merge_multi_context else [[one] for one in found]

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Let a metric see labels and outputs."""
        if pre_sliced:
            (labels,) = labels
        names = [one.name for one in self._label_shapes] or self.label_names
        outputs = dict(zip(self.output_names, self.get_outputs(), strict=True))
        eval_metric.update_dict(dict(zip(names, labels or (), strict=False)), outputs)

    def install_monitor(self, mon: Monitor) -> None:
        """Let ``mon`` look at all arrays; steps are taken apart then."""
        self._settle()
        mon.install(self._own_executor("install_monitor"))
        self._monitors.append(mon)


def _require_names(
    what: str, names: Sequence[str], arguments: Sequence[str], *, warn: bool = False
) -> None:
    missing = [name for name in names if name not in arguments]
    if not missing:
        return
    likely = [name for name in arguments if not name.endswith(_PARAMETERS)]
    text = f"{what}_names: must be among {', '.join(likely)}, got {missing[0]!r}"
    if not warn:
        raise MXNetError(f"Module: {text}")
    warnings.warn(f"Module: {text}", stacklevel=3)


def _like(desc: DataDesc, shape: tuple[int, ...]) -> DataDesc:
    return DataDesc(desc.name, shape, desc.dtype, desc.layout)


def _values(arrays: Sequence[Any] | None) -> list[Any]:
    """Arrays of JAX."""
    return [one.value if isinstance(one, NDArray) else jnp.asarray(one) for one in arrays or ()]


def _cast(name: str, value: Any, own: NDArray) -> Any:
    """``value`` in the dtype of ``own``.

    Raises:
        MXNetError: it is of another shape.
    """
    like = own.inner
    if value.shape != like.shape:
        raise MXNetError(f"{name}: the shape must be {own.shape}, got {value.shape}")
    return value if value.dtype == like.dtype else value.astype(like.dtype)


def _copy(name: str, value: Any, own: NDArray) -> None:
    if value is not own:
        own.hold(_cast(name, *_values([value]), own))


def _copied(arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
    return {name: array_of(one.value) for name, one in arrays.items()}
