"""SequentialModule: a chain of modules, each applied to the outputs of the previous one."""

import logging
from typing import Any

from symop.interop.mxnet.batches import DataBatch
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.module.base_module import BaseModule
from symop.interop.mxnet.module.module_interface import (
    INITIALIZER,
    RATE,
    Descs,
    Held,
    ModuleInterface,
    Params,
)
from symop.interop.mxnet.monitor import Monitor


class SequentialModule(BaseModule):
    """A chain of modules.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> first = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="first")
        >>> second = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="second")
        >>> chain = mx.mod.SequentialModule()
        >>> _ = chain.add(mx.mod.Module(first, label_names=None))
        >>> _ = chain.add(
        ...     mx.mod.Module(mx.sym.SoftmaxOutput(second, name="softmax")),
        ...     take_labels=True,
        ...     auto_wiring=True,
        ... )
        >>> chain.bind([("data", (3, 5))], [("softmax_label", (3,))])
        >>> chain.output_shapes
        [('softmax_output', (3, 2))]
    """

    META_TAKE_LABELS = "take_labels"
    META_AUTO_WIRING = "auto_wiring"

    def __init__(self, logger: Any = logging) -> None:
        """Creates an empty chain."""
        super().__init__(logger)
        self._modules: list[BaseModule] = []
        self._metas: list[dict[str, Any]] = []
        self._labels: Descs | None = None

    def add(self, module: BaseModule, **kwargs: Any) -> "SequentialModule":
        """Appends a module.

        Args:
            module: the module.
            **kwargs: ``take_labels``, whether it receives the labels; ``auto_wiring``, whether its
                data are the previous outputs, whatever their names.

        Raises:
            MXNetError: an option is unknown.
        """
        for key in kwargs:
            if key not in (self.META_TAKE_LABELS, self.META_AUTO_WIRING):
                raise MXNetError(f"add: options are take_labels and auto_wiring, got {key!r}")
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False
        return self

    # Properties of the first and the last module

    @property
    def data_names(self) -> Any:
        """Names of the data."""
        return self._modules[0].data_names if self._modules else []

    @property
    def output_names(self) -> Any:
        """Names of the outputs."""
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> Any:
        """Descriptions of the data."""
        return self._modules[0].data_shapes

    @property
    def label_shapes(self) -> Any:
        """Descriptions of the labels."""
        return self._labels

    @property
    def output_shapes(self) -> Any:
        """Names and shapes of the outputs."""
        return self._modules[-1].output_shapes

    # Setup

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
        """Binds the modules to shapes of data and labels; see ``Module.bind``."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if shared_module is not None or not self._modules:
            raise MXNetError("bind: a SequentialModule must have modules, and shares no other")
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        shapes: Descs = data_shapes
        for i, (module, meta) in enumerate(zip(self._modules, self._metas, strict=True)):
            if meta.get(self.META_AUTO_WIRING):
                pairs = zip(module.data_names, shapes, strict=True)
                shapes = [(name, shape) for name, (_, shape) in pairs]
            module.bind(
                shapes,
                label_shapes if meta.get(self.META_TAKE_LABELS) else None,
                for_training,
                inputs_need_grad or (for_training and i > 0),
                force_rebind,
                None,
                grad_req,
            )
            shapes = module.output_shapes
        takes = any(meta.get(self.META_TAKE_LABELS) for meta in self._metas)
        self._labels, self.binded = label_shapes if takes else None, True

    def init_params(
        self,
        initializer: Any = INITIALIZER,
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Initializes the parameters of all modules; see ``Module.init_params``.

        Raises:
            MXNetError: two modules have parameters of the same name.
        """
        self.require("init_params", params=False)
        seen: set[str] = set()
        for module in self._modules:
            module.init_params(
                initializer, arg_params, aux_params, allow_missing, force_init, allow_extra
            )
            names = {name for part in module.get_params() for name in part}
            if seen & names:
                raise MXNetError(
                    f"init_params: names of modules must differ, got {min(seen & names)!r} twice"
                )
            seen |= names
        self.params_initialized = True

    def set_params(
        self,
        arg_params: Params,
        aux_params: Params,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Writes parameters and auxiliary states of all modules."""
        for module in self._modules:
            module.set_params(arg_params, aux_params, allow_missing, force_init, allow_extra=True)
        self.params_initialized = True

    def get_params(self) -> Held:
        """Copies of parameters and auxiliary states of all modules, by name."""
        arg_params, aux_params = {}, {}
        for module in self._modules:
            own = module.get_params()
            arg_params.update(own[0])
            aux_params.update(own[1])
        return arg_params, aux_params

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = RATE,
        force_init: bool = False,
    ) -> None:
        """Sets the optimizer of each module; see ``Module.init_optimizer``."""
        self.require("init_optimizer")
        for module in self._modules:
            module.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        self.optimizer_initialized = True

    def install_monitor(self, mon: Monitor) -> None:
        """Makes ``mon`` monitor all arrays of all modules."""
        for module in self._modules:
            module.install_monitor(mon)

    # Passes

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Computes the outputs of the modules in order."""
        self.require("forward")
        labels = getattr(data_batch, "label", None), getattr(data_batch, "provide_label", None)
        batch = data_batch
        for module in self._modules:
            module.forward(batch, is_train)
            outputs = module.get_outputs()
            pairs = zip(module.output_names, outputs, strict=True)
            shapes = [(name, one.shape) for name, one in pairs]
            batch = DataBatch(outputs, labels[0], provide_data=shapes, provide_label=labels[1])

    def backward(self, out_grads: Any = None) -> None:
        """Computes the gradients, from the last module to the first."""
        for i in reversed(range(len(self._modules))):
            self._modules[i].backward(out_grads)
            if i:
                out_grads = self._modules[i].get_input_grads()

    def update(self) -> None:
        """Updates the parameters of all modules."""
        for module in self._modules:
            module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last module."""
        return self._modules[-1].get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the data."""
        return self._modules[0].get_input_grads(merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Updates a metric with labels, and the outputs of the modules that take labels."""
        for module, meta in zip(self._modules, self._metas, strict=True):
            if meta.get(self.META_TAKE_LABELS):
                module.update_metric(eval_metric, labels, pre_sliced)
