"""ModuleInterface: the common methods of modules."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.batches import DataDesc
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.initializer import Uniform
from symop.interop.mxnet.monitor import Monitor

Params = Mapping[str, Any]
Held = tuple[dict[str, NDArray], dict[str, NDArray]]
Descs = Sequence[Any]
RATE = (("learning_rate", 0.01),)
INITIALIZER = Uniform(0.01)


class ModuleInterface:
    """An object that can be bound, initialized, run forward and backward, and updated.

    Attributes:
        logger: the logger of loops.
        binded: whether shapes are bound.
        for_training: whether it is bound for training.
        inputs_need_grad: whether it computes gradients of its data.
        params_initialized: whether it has parameters.
        optimizer_initialized: whether it has an optimizer.
    """

    data_names: Any
    label_names: Any
    output_names: Any
    data_shapes: Any
    label_shapes: Any
    output_shapes: Any

    def __init__(self, logger: Any = logging) -> None:
        """Creates an unbound module."""
        self.logger = logger
        self.binded = self.for_training = self.inputs_need_grad = False
        self.params_initialized = self.optimizer_initialized = False
        self._symbol: Any = None

    @property
    def symbol(self) -> Any:
        """The symbol."""
        return self._symbol

    def require(self, what: str, *, params: bool = True, optimizer: bool = False) -> None:
        """Raises if a method is called too early.

        Raises:
            MXNetError: the module is not bound, or lacks parameters or an optimizer.
        """
        if not self.binded:
            step = "bind"
        elif params and not self.params_initialized:
            step = "init_params"
        elif optimizer and not self.optimizer_initialized:
            step = "init_optimizer"
        else:
            return
        raise MXNetError(f"{what}: {step} must come first")

    # Methods for subclasses

    def bind(
        self,
        data_shapes: Descs,
        label_shapes: Descs | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: "ModuleInterface | None" = None,
        grad_req: Any = "write",
    ) -> None:
        """Binds the module to shapes of data and labels."""
        raise self._unsaid("bind")

    def init_params(
        self,
        initializer: Any = INITIALIZER,
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Initializes the parameters."""
        raise self._unsaid("init_params")

    def set_params(
        self,
        arg_params: Params,
        aux_params: Params,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Writes parameters and auxiliary states."""
        self.init_params(None, arg_params, aux_params, allow_missing, force_init, allow_extra)

    def get_params(self) -> Held:
        """Copies of parameters and auxiliary states, by name."""
        raise self._unsaid("get_params")

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = RATE,
        force_init: bool = False,
    ) -> None:
        """Sets the optimizer."""
        raise self._unsaid("init_optimizer")

    def install_monitor(self, mon: Monitor) -> None:
        """Makes ``mon`` monitor all arrays."""
        raise self._unsaid("install_monitor")

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Prepares for a batch."""

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Computes the outputs."""
        raise self._unsaid("forward")

    def backward(self, out_grads: Any = None) -> None:
        """Computes the gradients."""
        raise self._unsaid("backward")

    def update(self) -> None:
        """Updates the parameters by their gradients."""
        raise self._unsaid("update")

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last forward pass."""
        raise self._unsaid("get_outputs")

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the data."""
        raise self._unsaid("get_input_grads")

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Updates a metric with labels and outputs."""
        raise self._unsaid("update_metric")

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Arrays kept between passes."""
        return []

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Writes arrays kept between passes."""

    def _unsaid(self, what: str) -> NotImplementedError:
        # For methods that subclasses define; this class only declares them.
        return NotImplementedError(f"{type(self).__name__} must say how to {what}")


def described(descs: Descs | None) -> list[DataDesc]:
    """Descriptions of arrays, from pairs of name and shape."""
    return [one if isinstance(one, DataDesc) else DataDesc(*one) for one in descs or ()]
