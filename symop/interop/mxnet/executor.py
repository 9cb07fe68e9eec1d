"""MXNet's Executor, over arrays that it reads and writes in place."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symop.interop.mxnet.calling_back import awaited, calls_back
from symop.interop.mxnet.calls import as_shape
from symop.interop.mxnet.errors import MXNetError, require_known
from symop.interop.mxnet.graph import Entry, topological
from symop.interop.mxnet.inferring import Inference
from symop.interop.mxnet.ndarray import (
    NDArray,
    array_named,
    array_of,
    hold_together,
    raising,
    zeros_of,
)
from symop.interop.mxnet.translating import translated
from symop.interop.mxnet.writing import written
from symop.symbol.symbol import Symbol as Graph

Monitor = Callable[[str, NDArray], None]


class Executor:
    """A symbol bound to arrays.

    Attributes:
        arg_dict: arrays of the arguments by name; assign with ``array[:] = value``.
        grad_dict: arrays to which ``backward`` writes gradients, None for those not requested.
        aux_dict: arrays of the auxiliary states, which a forward pass for training updates.
            Arrays that operators such as ``sgd_mom_update`` change in place are updated by every
            forward pass.
        graph: the symbol of the catalogue that it runs.
        calls_back: whether the graph calls user code, in which case passes are synchronous.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> x = mx.sym.var("x")
        >>> executor = mx.sym.square(x).simple_bind(mx.cpu(), x=(2,))
        >>> executor.arg_dict["x"][:] = 3.0
        >>> executor.forward(is_train=True)[0].asnumpy().tolist()
        [9.0, 9.0]
        >>> executor.backward(mx.nd.ones((2,)))
        >>> executor.grad_dict["x"].asnumpy().tolist()
        [6.0, 6.0]
    """

    def __init__(
        self,
        heads: Sequence[Entry],
        arguments: Mapping[str, NDArray],
        gradients: Mapping[str, NDArray | None],
        requests: Mapping[str, str],
        states: Mapping[str, NDArray],
    ) -> None:
        """Binds the outputs ``heads``; users call ``Symbol.bind`` or ``Symbol.simple_bind``."""
        self.arg_dict, self.aux_dict = dict(arguments), dict(states)
        self.grad_dict = dict(gradients)
        self._outputs: list[NDArray] | None = None
        self._heads, self._requests = list(heads), dict(requests)
        self.graph, self.calls_back = self._translated(heads), calls_back(heads)
        self._written = written(self.graph)
        self._inner = raising(self.graph.bind)(
            {name: one.value for name, one in self.arg_dict.items()},
            {name: self._gradient(name).value for name, one in requests.items() if one != "null"},
            self._requests,
            {name: one.value for name, one in self.aux_dict.items()},
        )
        passes = self._inner.forward, self._gradients
        if self.calls_back:
            passes = awaited(passes[0]), awaited(passes[1])
        self._forward, self._backward = raising(passes[0]), raising(passes[1])
        self._names = [node.output_name(index) for node, index in heads]
        self._monitor: Monitor | None = None

    def _translated(self, heads: Sequence[Entry]) -> Graph:
        every = {**self.arg_dict, **self.aux_dict}
        return translated(
            heads,
            {name: one.shape for name, one in every.items()},
            {name: one.dtype for name, one in every.items()},
        )

    def _gradient(self, name: str) -> NDArray:
        result = self.grad_dict[name]
        assert result is not None
        return result

    # Parts as lists

    @property
    def arg_arrays(self) -> list[NDArray]:
        """Arrays of the arguments, in order."""
        return list(self.arg_dict.values())

    @property
    def grad_arrays(self) -> list[NDArray | None]:
        """Arrays of the gradients, in the order of the arguments."""
        return [self.grad_dict.get(name) for name in self.arg_dict]

    @property
    def outputs(self) -> list[NDArray]:
        """The results of the last ``forward``; zeros before the first."""
        if self._outputs is None:
            self._outputs = [zeros_of(one.type.shape, one.type.dtype) for one in self.graph.nodes]
        return self._outputs

    @outputs.setter
    def outputs(self, computed: list[NDArray]) -> None:
        self._outputs = computed

    @property
    def aux_arrays(self) -> list[NDArray]:
        """Arrays of the auxiliary states."""
        return list(self.aux_dict.values())

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the outputs."""
        return [node.type.shape for node in self.graph.nodes]

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """The results of the last ``forward``, by name."""
        return dict(zip(self._names, self.outputs, strict=False))

    # Running

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Computes the outputs, after writing the named arrays to the arguments.

        Raises:
            MXNetError: an argument does not exist, or a shape does not fit.
        """
        require_known("forward: names", kwargs, self.arg_dict)
        for name, one in kwargs.items():
            _write(name, self.arg_dict[name], one)
        inner = self._inner
        inner.arg_dict.update({name: one.value for name, one in self.arg_dict.items()})
        inner.aux_dict.update({name: one.value for name, one in self.aux_dict.items()})
        found = self._forward(is_train)
        outputs = self._outputs = [array_of(one) for one in found]
        written = list(self.aux_dict if is_train else self._written)
        hold_together(
            [self.aux_dict[name] for name in written], [inner.aux_dict[name] for name in written]
        )
        if self._monitor is not None:
            self._watch(is_train)
        return outputs

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Writes the gradients of the last forward pass for training.

        Args:
            out_grads: cotangents of the outputs: one, a list, or a dict by the names of outputs;
                defaults to ones, which loss layers ignore.
            is_train: has no effect: the forward pass determines the mode.

        Raises:
            MXNetError: there was no forward pass for training, or a cotangent does not fit.
        """
        del is_train
        given = out_grads
        if isinstance(given, Mapping):
            given = [given.get(name) for name in self._names]
        if given is not None:
            listed = given if isinstance(given, (list, tuple)) else [given]
            given = [
                None if one is None else array_named(f"backward: cotangent {i}", one).value
                for i, one in enumerate(listed)
            ]
        wanted = [name for name, request in self._requests.items() if request != "null"]
        for name in wanted:
            self._inner.grad_dict[name] = self._gradient(name).value
        found = self._backward(given)
        hold_together([self._gradient(name) for name in wanted], [found[name] for name in wanted])

    def _gradients(self, heads: Any) -> Mapping[str, Any]:
        self._inner.backward(heads)
        return self._inner.grad_dict

    # Parameters and shapes

    def copy_params_from(
        self,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Writes parameters and auxiliary states by name.

        Raises:
            MXNetError: a name is unknown, unless ``allow_extra_params``, or a shape does not fit.
        """
        for own, given in ((self.arg_dict, arg_params), (self.aux_dict, aux_params or {})):
            if not allow_extra_params:
                require_known("copy_params_from: names", given, own)
            for name, one in given.items():
                if name in own:
                    _write(name, own[name], one)

    def reshape(
        self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any
    ) -> "Executor":
        """Creates an executor for inputs of other shapes, over the same parameters.

        Args:
            partial_shaping: whether unnamed arrays may be replaced by zeros of another shape.
            allow_up_sizing: whether an array may become larger.
            **kwargs: shapes by name.

        Raises:
            MXNetError: an array would change without permission.
        """
        require_known("reshape: names", kwargs, [*self.arg_dict, *self.aux_dict])
        kept = {name: as_shape(name, shape) for name, shape in kwargs.items()}
        types = Inference(self._heads, kept, {n: a.dtype for n, a in self.arg_dict.items()})
        shapes = {node.name: types.type(node)[0] for node in types.variables()}

        def like(name: str, old: NDArray) -> NDArray:
            new = shapes[name]
            if old.shape == new:
                return old
            if name not in kwargs and not partial_shaping:
                raise MXNetError(
                    f"reshape: {name} must keep its shape {old.shape} without partial_shaping, got "
                    f"{new}"
                )
            if math.prod(new) > math.prod(old.shape) and not allow_up_sizing:
                raise MXNetError(
                    f"reshape: {name} must not grow from {old.shape} without allow_up_sizing, got "
                    f"{new}"
                )
            return zeros_of(new, old.dtype, name)

        return Executor(
            self._heads,
            {name: like(name, one) for name, one in self.arg_dict.items()},
            {n: None if one is None else like(n, one) for n, one in self.grad_dict.items()},
            self._requests,
            {name: like(name, one) for name, one in self.aux_dict.items()},
        )

    def set_monitor_callback(self, callback: Monitor | None, monitor_all: bool = False) -> None:
        """Sets a function called after each pass with the name and value of every node's outputs.

        Random operators draw new numbers for it. None removes the function.
        """
        del monitor_all
        self._monitor = callback

    @functools.cached_property
    def _internals(self) -> tuple[list[str], Graph]:
        """Names and values of all outputs of all nodes."""
        nodes = [node for node in topological(self._heads) if not node.is_variable]
        entries = [(node, index) for node in nodes for index in range(node.visible)]
        return [node.output_name(index) for node, index in entries], self._translated(entries)

    def _watch(self, is_train: bool) -> None:
        names, graph = self._internals
        held = {**self._inner.arg_dict, **self._inner.aux_dict}
        found = graph.eval(is_train=is_train, **{name: held[name] for name in graph.list_inputs()})
        values = found[0] if is_train and self.aux_dict else found
        assert self._monitor is not None
        for name, one in zip(names, values if len(names) > 1 else [values], strict=True):
            self._monitor(name, array_of(one))


def _write(name: str, own: NDArray, value: Any) -> None:
    """Writes ``value`` to ``own``, cast to its dtype.

    Raises:
        MXNetError: ``value`` is not an array, or has another shape.
    """
    given = array_named(name, value).value
    if given.shape != own.shape:
        raise MXNetError(f"{name}: the shape must be {own.shape}, got {given.shape}")
    own.hold(given.astype(own.dtype))
