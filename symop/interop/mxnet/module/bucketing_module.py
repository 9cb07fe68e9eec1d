"""BucketingModule: modules for several sequence lengths, with shared parameters."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.model_files import load_params
from symop.interop.mxnet.module.base_module import BaseModule
from symop.interop.mxnet.module.module import Module
from symop.interop.mxnet.module.module_interface import (
    INITIALIZER,
    RATE,
    Descs,
    Held,
    ModuleInterface,
    Params,
)
from symop.interop.mxnet.monitor import Monitor
from symop.interop.mxnet.parameters import load_params as read_params
from symop.interop.mxnet.parameters import save_params as write_params
from symop.interop.mxnet.scopes import NameManager
from symop.interop.mxnet.symbols import Symbol, load

Generated = tuple[Symbol, Sequence[str] | None, Sequence[str] | None]


class BucketingModule(BaseModule):
    """Modules of several symbols with shared parameters, selected by the bucket key of a batch.

    Args:
        sym_gen: returns the symbol, data names and label names for a key.
        default_bucket_key: the key of the symbol with all parameters, the longest bucket.
        logger: the logger of loops.
        context: see ``Module``.
        work_load_list: has no effect.
        fixed_param_names: names of parameters that are not updated.
        state_names: names of arguments kept between passes.
        group2ctxs: see ``Module``.
        compression_params: has no effect.
    """

    def __init__(
        self,
        sym_gen: Callable[[Any], Generated],
        default_bucket_key: Any = None,
        logger: Any = logging,
        context: Any = None,
        work_load_list: Any = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
    ) -> None:
        """See the class."""
        super().__init__(logger)
        if default_bucket_key is None:
            raise MXNetError("BucketingModule: default_bucket_key must be given, got none")
        self._sym_gen, self._default_bucket_key = sym_gen, default_bucket_key
        self._options = {
            "logger": logger,
            "fixed_param_names": fixed_param_names,
            "state_names": state_names,
            "context": context,
            "group2ctxs": group2ctxs,
        }
        self._buckets: dict[Any, Module] = {}
        self._current = self._module(default_bucket_key)
        self._curr_bucket_key = default_bucket_key
        self._monitor: Monitor | None = None
        self._request: Any = "write"

    def _module(self, key: Any) -> Module:
        """The module of a key, possibly unbound."""
        if key not in self._buckets:
            with NameManager():
                symbol, data_names, label_names = self._sym_gen(key)
            self._buckets[key] = Module(symbol, data_names, label_names, **self._options)
        return self._buckets[key]

    @property
    def _curr_module(self) -> Module:
        return self._current

    # Properties of the current module

    @property
    def symbol(self) -> Symbol:
        """The symbol of the current bucket."""
        result: Symbol = self._current.symbol
        return result

    @property
    def data_names(self) -> Any:
        """Names of the data."""
        return self._current.data_names

    @property
    def label_names(self) -> Any:
        """Names of the labels."""
        return self._current.label_names

    @property
    def output_names(self) -> Any:
        """Names of the outputs."""
        return self._current.output_names

    @property
    def data_shapes(self) -> Any:
        """Descriptions of the data."""
        return self._current.data_shapes

    @property
    def label_shapes(self) -> Any:
        """Descriptions of the labels."""
        return self._current.label_shapes

    @property
    def output_shapes(self) -> Any:
        """Names and shapes of the outputs."""
        return self._current.output_shapes

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
        """Binds the default bucket to shapes; see ``Module.bind``."""
        if shared_module is not None:
            raise MXNetError("bind: a BucketingModule shares no other module")
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        default = self._module(self._default_bucket_key)
        if self.binded:
            self.switch_bucket(self._default_bucket_key, None)
            self._buckets = {self._default_bucket_key: default}
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._request, self.binded = grad_req, True
        default.bind(
            data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, None, grad_req
        )
        self._current, self._curr_bucket_key = default, self._default_bucket_key

    def switch_bucket(
        self, bucket_key: Any, data_shapes: Descs | None, label_shapes: Descs | None = None
    ) -> None:
        """Switches to the module of a key, which is created if needed."""
        self.require("switch_bucket", params=False)
        chosen = self._module(bucket_key)
        if chosen is not self._current:
            self._current._settle()
        if not chosen.binded:
            default = self._buckets[self._default_bucket_key]
            chosen.bind(
                data_shapes or (),
                label_shapes,
                self.for_training,
                self.inputs_need_grad,
                shared_module=default,
                grad_req=self._request,
            )
            if self._monitor is not None:
                chosen.install_monitor(self._monitor)
        self._current, self._curr_bucket_key = chosen, bucket_key

    def init_params(
        self,
        initializer: Any = INITIALIZER,
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Initializes the parameters; see ``Module.init_params``."""
        self._current.init_params(
            initializer, arg_params, aux_params, allow_missing, force_init, allow_extra
        )
        for module in self._buckets.values():
            module.params_initialized = True
        self.params_initialized = True

    def set_params(
        self,
        arg_params: Params,
        aux_params: Params,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Writes parameters and auxiliary states; see ``Module.set_params``."""
        self._current.set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)
        self.params_initialized = True

    def get_params(self) -> Held:
        """Copies of parameters and auxiliary states, by name."""
        return self._current.get_params()

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Arrays of the arguments kept between passes."""
        return self._current.get_states(merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Writes the arguments kept between passes."""
        self._current.set_states(states, value)

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = RATE,
        force_init: bool = False,
    ) -> None:
        """Sets the optimizer of all buckets; see ``Module.init_optimizer``."""
        self.require("init_optimizer")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        self._current.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        for module in self._buckets.values():
            if module is not self._current:
                module.borrow_optimizer(self._current)
        self.optimizer_initialized = True

    def install_monitor(self, mon: Monitor) -> None:
        """Makes ``mon`` monitor all arrays of all buckets."""
        self._monitor = mon
        for module in self._buckets.values():
            if module.binded:
                module.install_monitor(mon)

    # Passes

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Switches to the module of a batch, and prepares that; see ``Module.prepare``."""
        self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)
        self._current.prepare(data_batch, sparse_row_id_fn)

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Computes the outputs with the module of the batch's key."""
        self.prepare(data_batch)
        self._current.forward(data_batch, is_train)

    def forward_backward(self, data_batch: Any) -> None:
        """Runs ``forward`` for training, and ``backward``."""
        self.prepare(data_batch)
        self._current.forward_backward(data_batch)

    def backward(self, out_grads: Any = None) -> None:
        """Computes the gradients."""
        self._current.backward(out_grads)

    def update(self) -> None:
        """Updates the parameters by their gradients."""
        self._current.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last forward pass."""
        return self._current.get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the data."""
        return self._current.get_input_grads(merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Updates a metric with labels and outputs."""
        self._current.update_metric(eval_metric, labels, pre_sliced)

    # Files

    def save_checkpoint(self, prefix: str, epoch: int, remove_amp_cast: bool = False) -> None:
        """Writes the parameters, a symbol for each bucket, and the keys, which must be numbers."""
        self.save_params(f"{prefix}-{epoch:04d}.params")
        for key, module in self._buckets.items():
            module.symbol.save(f"{prefix}-{key}-symbol.json", remove_amp_cast)
        write_params(f"{prefix}.buckets", [np.asarray(list(self._buckets), np.int32)])

    @staticmethod
    def load(
        prefix: str,
        epoch: int,
        sym_gen: Callable[[Any], Generated],
        default_bucket_key: Any,
        **kwargs: Any,
    ) -> "BucketingModule":
        """Loads a module written by ``save_checkpoint``; ``bind`` must follow."""
        (keys,) = read_params(f"{prefix}.buckets")
        symbols = {int(key): load(f"{prefix}-{key}-symbol.json") for key in np.asarray(keys)}
        params = load_params(prefix, epoch)
        return BucketingModule.load_dict(symbols, sym_gen, default_bucket_key, *params, **kwargs)

    @staticmethod
    def load_dict(
        sym_dict: Mapping[Any, Symbol],
        sym_gen: Callable[[Any], Generated],
        default_bucket_key: Any,
        arg_params: Params,
        aux_params: Params,
        **kwargs: Any,
    ) -> "BucketingModule":
        """Creates a module from symbols by key, and parameters."""

        def known(key: Any) -> Generated:
            symbol, data_names, label_names = sym_gen(key)
            return sym_dict.get(key, symbol), data_names, label_names

        result = BucketingModule(known, default_bucket_key, **kwargs)
        for key in sym_dict:
            result._module(key)
        default = result._buckets[default_bucket_key]
        default._loaded = dict(arg_params), dict(aux_params)
        default.params_initialized = result.params_initialized = True
        return result
