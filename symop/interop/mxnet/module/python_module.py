"""Modules computed in Python: without parameters, and losses with gradient functions."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.module.base_module import BaseModule
from symop.interop.mxnet.module.module_interface import (
    INITIALIZER,
    RATE,
    Descs,
    Held,
    ModuleInterface,
    Params,
    described,
)
from symop.interop.mxnet.monitor import Monitor

Slope = Callable[[NDArray, NDArray], Any]


class PythonModule(BaseModule):
    """A module without parameters; subclasses define its shapes and passes.

    Args:
        data_names: names of its data.
        label_names: names of its labels, or None.
        output_names: names of its outputs.
        logger: the logger of loops.
    """

    def __init__(
        self,
        data_names: Sequence[str],
        label_names: Sequence[str] | None,
        output_names: Sequence[str],
        logger: Any = logging,
    ) -> None:
        """See the class."""
        super().__init__(logger)
        self.data_names, self.output_names = list(data_names), list(output_names)
        self.label_names = None if label_names is None else list(label_names)
        self.data_shapes = self.label_shapes = self.output_shapes = None

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
        """Binds the module to shapes of data and labels.

        Raises:
            MXNetError: names differ from those of the module, or ``grad_req`` is not "write".
        """
        del shared_module
        if self.binded and not force_rebind:
            self.logger.warning("bind: it is bound already")
            return
        if grad_req != "write":
            raise MXNetError(f"PythonModule: grad_req must be 'write', got {grad_req!r}")
        pairs = ((data_shapes, self.data_names), (label_shapes or (), self.label_names or []))
        for shapes, names in pairs:
            given = [one.name for one in described(shapes)]
            if given and given != names:
                raise MXNetError(f"bind: names must be {names}, got {given}")
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self.data_shapes, self.label_shapes = data_shapes, label_shapes
        self.output_shapes = self._compute_output_shapes()
        self.binded = True

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes of the outputs, given those of data and labels."""
        # Abstract, as in MXNet: defined by subclasses.
        raise self._unsaid("compute its output shapes")

    def init_params(
        self,
        initializer: Any = INITIALIZER,
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Marks the parameters as initialized; subclasses may have some."""
        self.params_initialized = True

    def get_params(self) -> Held:
        """Returns empty dicts."""
        return {}, {}

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = RATE,
        force_init: bool = False,
    ) -> None:
        """Marks the optimizer as initialized; nothing is updated."""
        self.optimizer_initialized = True

    def update(self) -> None:
        """Updates nothing."""

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Updates a metric with labels and outputs, if the module has labels.

        Raises:
            MXNetError: labels are sliced.
        """
        if self.label_shapes is None:
            return
        if pre_sliced:
            raise MXNetError("PythonModule: labels must not be sliced")
        eval_metric.update(labels, self.get_outputs())


class PythonLossModule(PythonModule):
    """A loss whose outputs are its data, with a gradient computed by a function.

    Args:
        name: the name of the module; that of its output has the suffix ``_output``.
        data_names: the name of the scores.
        label_names: the name of the labels.
        logger: the logger of loops.
        grad_func: returns the gradient for scores and labels, as an array; a subclass may define
            ``_backward_impl`` instead.
    """

    def __init__(
        self,
        name: str = "pyloss",
        data_names: Sequence[str] = ("data",),
        label_names: Sequence[str] = ("softmax_label",),
        logger: Any = logging,
        grad_func: Slope | None = None,
    ) -> None:
        """See the class."""
        super().__init__(data_names, label_names, [f"{name}_output"], logger)
        if len(data_names) != 1 or len(label_names) != 1:
            raise MXNetError("PythonLossModule: there must be one name of data and one of labels")
        self._name, self._grad_func = name, grad_func
        self._scores: Any = None
        self._labels: Any = None
        self._scores_grad: Any = None

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        (scores,) = described(self.data_shapes)
        return [(f"{self._name}_output", tuple(scores.shape))]

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Keeps the scores, and for training the labels."""
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            self._labels = data_batch.label[0]

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The scores."""
        return [self._scores]

    def backward(self, out_grads: Any = None) -> None:
        """Computes the gradient of the scores.

        Raises:
            MXNetError: head gradients are given, or it is not bound for training.
        """
        if out_grads is not None or not self.for_training:
            raise MXNetError("PythonLossModule: a loss that is trained takes no head gradients")
        self._backward_impl()

    def _backward_impl(self) -> None:
        if self._grad_func is None:
            raise self._unsaid("compute its gradient")
        found = self._grad_func(self._scores, self._labels)
        is_array = isinstance(found, NDArray)
        self._scores_grad = found if is_array else array_of(np.asarray(found, np.float32))

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradient of the scores."""
        return [self._scores_grad]

    def install_monitor(self, mon: Monitor) -> None:
        """Raises an error: there are no arrays to monitor.

        Raises:
            NotImplementedError: always.
        """
        # As in MXNet; defined by subclasses with executors.
        raise self._unsaid("install_monitor")
