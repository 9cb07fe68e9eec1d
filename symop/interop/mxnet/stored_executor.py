"""An executor of graphs with sparse arrays, which runs node by node as array code does."""

from collections.abc import Mapping, Sequence
from typing import Any

import symop as so
from symop.eager.ndarray import array_of as eager
from symop.interop.mxnet.call_types import bodies_of
from symop.interop.mxnet.calls import as_shape
from symop.interop.mxnet.errors import MXNetError, require_known
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.inferring import Inference
from symop.interop.mxnet.ndarray import NDArray, array_named
from symop.interop.mxnet.partial_shapes import is_known
from symop.interop.mxnet.sparse_arrays import (
    CSRNDArray,
    RowSparseNDArray,
    assign,
    zeros_stored,
)
from symop.interop.mxnet.sparse_calls import computed, sources
from symop.interop.mxnet.storage import DEFAULT, ROW_SPARSE
from symop.interop.mxnet.storage_inference import StorageTypes


def executor_of(
    heads: Sequence[Entry],
    arguments: Mapping[str, NDArray],
    gradients: Mapping[str, NDArray | None],
    requests: Mapping[str, str],
    states: Mapping[str, NDArray],
) -> Executor:
    """The executor over given arrays: a compiled one if all values are dense.

    Raises:
        MXNetError: an array does not fit.
    """
    arrays = {**arguments, **states}
    every = [*arrays.values(), *[one for one in gradients.values() if one is not None]]
    told = {name: one.stype for name, one in arrays.items()}
    sparse = any(one.is_sparse for one in every) or not StorageTypes(heads, told).is_dense
    kind = StoredExecutor if sparse else Executor
    return kind(heads, arguments, gradients, requests, states)


class StoredExecutor(Executor):
    """A symbol bound to arrays of any storage type.

    Its nodes run one after the other, by the rules for their storage types; gradients that MXNet
    stores sparsely are row-sparse.
    """

    def __init__(
        self,
        heads: Sequence[Entry],
        arguments: Mapping[str, NDArray],
        gradients: Mapping[str, NDArray | None],
        requests: Mapping[str, str],
        states: Mapping[str, NDArray],
    ) -> None:
        """Binds the outputs ``heads``; see ``executor_of``."""
        self.arg_dict, self.aux_dict = dict(arguments), dict(states)
        self.grad_dict, self._outputs = dict(gradients), None
        self._heads, self._requests = list(heads), dict(requests)
        self._names = [node.output_name(index) for node, index in heads]
        self._nodes, self.calls_back = topological(heads), False
        self._monitor = None
        self._marked: dict[str, NDArray] = {}
        self._types = Inference(
            heads,
            {name: one.shape for name, one in {**arguments, **states}.items()},
            {name: one.dtype for name, one in {**arguments, **states}.items()},
        )

    @property
    def outputs(self) -> list[NDArray]:
        """The results of the last ``forward``; zeros before the first."""
        if self._outputs is None:
            types = StorageTypes(self._heads, {n: a.stype for n, a in self.arg_dict.items()})
            self._outputs = [
                zeros_stored(types.of(entry), self._shape(entry), self._types.dtype(entry))
                for entry in self._heads
            ]
        return self._outputs

    @outputs.setter
    def outputs(self, computed: list[NDArray]) -> None:
        self._outputs = computed

    def _shape(self, entry: Entry) -> tuple[int, ...]:
        shape = self._types.shape(entry)
        assert shape is not None
        return tuple(shape)

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the outputs."""
        return [self._shape(entry) for entry in self._heads]

    # Running

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Computes the outputs, after writing the named arrays to the arguments.

        Raises:
            MXNetError: an argument does not exist, or a shape does not fit.
        """
        require_known("forward: names", kwargs, self.arg_dict)
        for name, one in kwargs.items():
            _write(name, self.arg_dict[name], one)
        wanted = [name for name, request in self._requests.items() if request != "null"]
        self._marked = {name: _alias(self.arg_dict[name]) for name in wanted}
        with so.autograd.record(train_mode=bool(is_train)):
            for name, one in self._marked.items():
                place = self.grad_dict[name]
                assert place is not None
                rows = place.stype == ROW_SPARSE
                one.attach_grad(stype=ROW_SPARSE if rows else DEFAULT)
            values = self._run()
        self._outputs = [values[id(node)][index] for node, index in self._heads]
        return self._outputs

    def _run(self) -> dict[int, list[NDArray]]:
        held = {**self.arg_dict, **self.aux_dict, **self._marked}
        values: dict[int, list[NDArray]] = {}
        for node in self._nodes:
            if node.is_variable:
                values[id(node)] = [held[node.name]]
                continue
            inputs = [values[id(below)][index] for below, index in node.inputs]
            values[id(node)] = self._called(node, inputs)
            if self._monitor is not None:
                for i, one in enumerate(values[id(node)]):
                    self._monitor(node.output_name(i), one)
        return values

    def _called(self, node: Node, inputs: Sequence[NDArray]) -> list[NDArray]:
        assert node.operator is not None
        try:
            if not inputs:
                shape = self._types.shape((node, 0))
                return sources(node.operator, {**node.values, "shape": shape})
            return computed(node.operator, inputs, node.values, bodies_of(node))
        except MXNetError as error:
            raise MXNetError(f"{error} (node {node.name!r})") from error

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Writes the gradients of the last forward pass; see ``Executor.backward``.

        Raises:
            MXNetError: there was no forward pass, or a cotangent does not fit.
        """
        del is_train
        if self._outputs is None:
            raise MXNetError("backward: forward must come first, got none")
        heads = [(one, along) for one, along in self._pairs(out_grads) if one.stored.is_recorded]
        if heads:
            so.autograd.backward(
                [one.stored for one, _ in heads], [along for _, along in heads], retain_graph=True
            )
        for name, one in self._marked.items():
            place = self.grad_dict[name]
            assert place is not None
            _store(place, one, self._requests[name])

    def _pairs(self, given: Any) -> list[tuple[NDArray, so.NDArray | None]]:
        """The outputs, each with its cotangent."""
        if isinstance(given, Mapping):
            given = [given.get(name) for name in self._names]
        listed = list(given) if isinstance(given, (list, tuple)) else [given]
        outputs = self.outputs
        if given is None:
            listed = [None] * len(outputs)
        if len(listed) != len(outputs):
            raise MXNetError(
                f"backward: out_grads must be one for each output ({len(outputs)}), got "
                f"{len(listed)}"
            )
        return [
            (one, None if along is None else _cotangent(i, one, along))
            for i, (one, along) in enumerate(zip(outputs, listed, strict=True))
        ]

    def reshape(
        self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any
    ) -> "StoredExecutor":
        """Creates an executor for inputs of other shapes, over the same parameters.

        Arrays whose shapes cannot be inferred from the given ones stay as they are.

        Raises:
            MXNetError: shapes contradict each other.
        """
        del partial_shaping, allow_up_sizing
        require_known("reshape: names", kwargs, [*self.arg_dict, *self.aux_dict])
        kept = {name: as_shape(name, shape) for name, shape in kwargs.items()}
        types = Inference(self._heads, kept, {n: a.dtype for n, a in self.arg_dict.items()})
        shapes = {node.name: types.shape((node, 0)) for node in types.variables()}

        def like(name: str, old: NDArray | None) -> Any:
            new = shapes[name]
            if old is None or new is None or not is_known(new) or old.shape == new:
                return old
            return zeros_stored(old.stype, new, old.dtype)

        groups = self.arg_dict, self.grad_dict, self.aux_dict
        arguments, gradients, states = ({n: like(n, a) for n, a in one.items()} for one in groups)
        return StoredExecutor(self._heads, arguments, gradients, self._requests, states)


def _alias(array: NDArray) -> NDArray:
    """An array with the same value and no history, to mark."""
    if isinstance(array, CSRNDArray):
        return CSRNDArray(array.csr)
    if isinstance(array, RowSparseNDArray):
        return RowSparseNDArray(eager(array.rows))
    return NDArray(eager(array.inner.value))


def _write(name: str, own: NDArray, value: Any) -> None:
    """Writes ``value`` to ``own``, cast to its dtype and storage type."""
    given = array_named(name, value)
    if given.shape != own.shape:
        raise MXNetError(f"{name}: the shape must be {own.shape}, got {given.shape}")
    assign(own, given)


def _cotangent(index: int, output: NDArray, given: Any) -> so.NDArray:
    array = array_named(f"backward: cotangent {index}", given)
    if array.shape != output.shape:
        raise MXNetError(
            f"backward: cotangent {index} must be of shape {output.shape}, got {array.shape}"
        )
    kept = array.stored if isinstance(array, RowSparseNDArray) else array.dense()
    result: so.NDArray = kept.astype(output.stored.dtype, copy=False)
    return result


def _store(place: NDArray, marked: NDArray, request: str) -> None:
    """Writes the gradient of a marked array to its place, or adds it."""
    gradient = marked.grad
    assert gradient is not None
    if request == "add":
        with so.autograd.pause():
            gradient = place + gradient
    assign(place, gradient)
