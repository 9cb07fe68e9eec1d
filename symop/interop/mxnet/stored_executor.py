"""An executor of graphs with sparse arrays, which runs node by node as array code does."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

import symop as so
from registry.types import is_inexact
from registry.values import SelectedRows
from symop.eager.ndarray import array_of as eager
from symop.graph.nodes import VARIABLE
from symop.graph.nodes import topological as below
from symop.interop.mxnet.arrays import NDArray, array_named
from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.call_types import bodies_of
from symop.interop.mxnet.context import Context, context_of, current_context
from symop.interop.mxnet.dense_part import Arrays, DensePart, nodes_of_sparse
from symop.interop.mxnet.describing import described
from symop.interop.mxnet.errors import MXNetError, require_known
from symop.interop.mxnet.executor import (
    Executor,
    merges_calls,
    places,
    write_named,
)
from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.inferring import Inference
from symop.interop.mxnet.integer_gradients import CastingExecutor, casts_integers
from symop.interop.mxnet.partial_shapes import is_known
from symop.interop.mxnet.sparse_arrays import (
    CSRNDArray,
    RowSparseNDArray,
    assign,
    wrapped,
    zeros_stored,
)
from symop.interop.mxnet.sparse_calls import computed, sources
from symop.interop.mxnet.storage import DEFAULT, ROW_SPARSE
from symop.interop.mxnet.storage_inference import StorageTypes
from symop.interop.mxnet.translating import translated
from symop.interop.mxnet.watching import Values, tell_inputs, watch_gradients
from symop.symbol.symbol import Symbol as Graph

_struct: Any = jax.ShapeDtypeStruct  # which has no types


def executor_of(
    heads: Sequence[Entry],
    arguments: Mapping[str, NDArray],
    gradients: Mapping[str, NDArray | None],
    requests: Mapping[str, str],
    states: Mapping[str, NDArray],
    ctx: Context | None = None,
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
    if not sparse and casts_integers(heads, arguments, requests):
        kind = CastingExecutor
    return kind(heads, arguments, gradients, requests, states, ctx)


class StoredExecutor(Executor):
    """A symbol bound to arrays of any storage type.

    Nodes of sparse arrays run one after the other, by the rules for their storage types; gradients
    that MXNet stores sparsely are row-sparse. What follows them is one compiled program.
    """

    def __init__(
        self,
        heads: Sequence[Entry],
        arguments: Mapping[str, NDArray],
        gradients: Mapping[str, NDArray | None],
        requests: Mapping[str, str],
        states: Mapping[str, NDArray],
        ctx: Context | None = None,
    ) -> None:
        """Binds the outputs ``heads``; see ``executor_of``."""
        self.arg_dict, self.aux_dict = dict(arguments), dict(states)
        self.grad_dict, self._outputs = dict(gradients), None
        self._heads, self._requests = list(heads), dict(requests)
        self.merges_calls = merges_calls()
        self._ctx = current_context() if ctx is None else ctx
        self._places = places([*arguments.values(), *states.values()], ctx)
        self._names = [node.output_name(index) for node, index in heads]
        self._nodes, self.calls_back = topological(heads), False
        self._monitor, self._watched = None, None
        self._monitors_inputs = self._passed = False
        self._moving = [
            name
            for name, request in requests.items()
            if request != "null" and is_inexact(np.dtype(arguments[name].dtype))
        ]
        self._marked: dict[str, NDArray] = {}
        self._values_of: dict[int, list[NDArray]] = {}
        self._pass: tuple[DensePart | None, bool] = None, False
        self._freed = False
        self._types = Inference(
            heads,
            {name: one.shape for name, one in {**arguments, **states}.items()},
            {name: one.dtype for name, one in {**arguments, **states}.items()},
        )

    @functools.cached_property
    def graph(self) -> Graph:  # type: ignore[override]  # only some methods need it
        """The symbol of the catalogue that computes the same from dense arrays."""
        every = {**self.arg_dict, **self.aux_dict}
        shapes = {name: one.shape for name, one in every.items()}
        return translated(self._heads, shapes, {name: one.dtype for name, one in every.items()})

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

    def _shape(self, entry: Entry) -> Shape:
        shape = self._types.shape(entry)
        assert shape is not None
        return tuple(shape)

    @property
    def output_shapes(self) -> list[Shape]:
        """The shapes of the outputs."""
        return [self._shape(entry) for entry in self._heads]

    def _output_types(self) -> list[tuple[Shape, Any]]:
        return [(self._shape(entry), self._types.dtype(entry)) for entry in self._heads]

    @property
    def is_drafted(self) -> bool:
        """False: nodes run one after the other."""
        return False

    # Running

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Computes the outputs, after writing the named arrays to the arguments.

        Raises:
            MXNetError: an argument does not exist, or a shape does not fit.
        """
        require_known("forward: names", kwargs, self.arg_dict)
        for name, one in kwargs.items():
            write_named(name, self.arg_dict[name], one)
        self._run(is_train)
        return list(self._hold_recorded())

    @functools.cached_property
    def _sparse(self) -> list[Node]:
        """The nodes that run one after the other."""
        stypes = {name: one.stype for name, one in self._held().items()}
        return nodes_of_sparse(self._heads, stypes, self.grad_dict)

    @functools.cached_property
    def _part(self) -> DensePart | None:
        """The other nodes, if there are any."""
        sparse = self._sparse
        if len(sparse) == len(self._nodes):
            return None
        place = self._ctx if self._places is None else context_of(self._places)
        return DensePart(self._heads, sparse, self._arrays(), self._type, place)

    def _arrays(self) -> Arrays:
        return Arrays(self.arg_dict, self.grad_dict, self._requests, self.aux_dict)

    def _type(self, entry: Entry) -> tuple[Shape, Any]:
        return self._shape(entry), self._types.dtype(entry)

    def _run(self, is_train: bool) -> None:
        """Computes the outputs, recorded for ``backward``."""
        # A monitor sees the values of all nodes.
        part = None if self._monitor is not None else self._part
        local = self._record(part, is_train)
        for name, one in local.items():
            own = self._held()[name]
            if one is not own and name not in self._marked:
                assign(own, one)  # operators change states in place
        values = self._values_of
        if part is not None:
            read = {name: values[id(node)][i] for name, (node, i) in part.read.items()}
            part.forward(self._arrays(), read, self.outputs, is_train=is_train)
        if self._monitor is not None:
            self._watched = _dense_values(values), is_train

    def _record(self, part: DensePart | None, is_train: bool) -> dict[str, NDArray]:
        """Runs and records the nodes that are not in ``part``; returns the arrays of variables."""
        nodes = self._nodes if part is None else self._sparse
        local = {one.name: self._local(self._held()[one.name]) for one in nodes if one.is_variable}
        self._marked = {name: _alias(local[name]) for name in self._moving if name in local}
        with so.autograd.record(train_mode=bool(is_train)):
            for name, one in self._marked.items():
                rows = self._gradient(name).stype == ROW_SPARSE
                one.attach_grad(stype=ROW_SPARSE if rows else DEFAULT)
            self._values_of = self._computed(nodes, {**local, **self._marked})
        self._passed, self._pass, self._freed = True, (part, is_train), False
        return local

    def _held(self) -> dict[str, NDArray]:
        return {**self.arg_dict, **self.aux_dict}

    def _local(self, array: NDArray) -> NDArray:
        """``array`` on the device that computes, where arrays are on several devices."""
        return array if self._places is None else array.as_in_context(context_of(self._places))

    def _recorded(self) -> dict[int, NDArray]:
        """The outputs that nodes computed one after the other, by their indices."""
        values = self._values_of
        return {i: values[id(n)][k] for i, (n, k) in enumerate(self._heads) if id(n) in values}

    def _hold_recorded(self) -> list[NDArray]:
        """Writes the results to the outputs, and returns these."""
        for i, one in self._recorded().items():
            own = self.outputs[i]
            if own.stype == one.stype:
                with so.autograd.pause():
                    assign(own, _alias(one))
            else:
                self.outputs[i] = _alias(one)
        return self.outputs

    def _computed(
        self, nodes: Sequence[Node], held: Mapping[str, NDArray]
    ) -> dict[int, list[NDArray]]:
        """The values of nodes, by their ids."""
        values: dict[int, list[NDArray]] = {}
        for node in nodes:
            if node.is_variable:
                values[id(node)] = [held[node.name]]
                continue
            inputs = [values[id(source)][index] for source, index in node.inputs]
            if self._monitor is not None and self._monitors_inputs:
                tell_inputs(node, inputs, self._monitor)
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
            MXNetError: a cotangent is missing or does not fit.
        """
        del is_train
        if not self._passed:
            self._run(is_train=False)
        part, mode = self._pass
        if self._freed:
            self._record(part, mode)
        along = self._completed(self._given(out_grads))
        outputs = [self._at_output(i, one) for i, one in enumerate(along)]
        pairs = [(one.stored, outputs[i]) for i, one in self._recorded().items()]
        if part is not None:
            for name, cotangent in part.backward([wrapped(one) for one in outputs]):
                node, index = part.read[name]
                pairs.append((self._values_of[id(node)][index].stored, cotangent.stored))
        pairs = [(head, one) for head, one in pairs if head.is_recorded]
        if pairs:
            heads, cotangents = map(list, zip(*pairs, strict=True))
            so.autograd.backward(heads, cotangents)
        written = set() if part is None else part.names
        for name, request in self._requests.items():
            if name in self._marked:
                _store(self._gradient(name), self._marked[name], request)
            elif request.startswith("write") and name not in written:
                self._gradient(name)[:] = 0
        # An update in place copies arrays whose values are still held.
        self._marked, self._values_of, self._freed = {}, {}, True
        if self._monitor is not None and self._watched is not None:
            values, mode = self._watched
            slopes = [one.to_dense().value if _holds_rows(one) else one.value for one in outputs]
            watch_gradients(self._heads, slopes, values, self._monitor, is_train=mode)

    def _given(self, given: Any) -> list[NDArray | None]:
        """The given cotangents, one for each output; None where there is none."""
        if isinstance(given, Mapping):
            given = [given.get(name) for name in self._names]
        listed = list(given) if isinstance(given, (list, tuple)) else [given]
        found = [
            None if one is None else array_named(f"backward: cotangent {i}", one)
            for i, one in enumerate(listed[: len(self._names)])
        ]
        return [*found, *[None] * (len(self._names) - len(found))]

    def _at_output(self, index: int, given: Any) -> so.NDArray:
        """A cotangent as an eager array of the output's dtype."""
        array = self._local(array_named(f"backward: cotangent {index}", given))
        shape, dtype = self._output_types()[index]
        if array.shape != shape:
            raise MXNetError(
                f"backward: cotangent {index} must be of shape {shape}, got {array.shape}"
            )
        kept = array.stored if isinstance(array, RowSparseNDArray) else array.dense()
        result: so.NDArray = kept.astype(dtype, copy=False)
        return result

    def _read_cotangents(self) -> list[bool]:
        return self._read

    @functools.cached_property
    def _read(self) -> list[bool]:
        """Whether a gradient depends on the cotangent of each output."""
        nodes = self.graph.nodes
        ys = [Graph([one], self.graph.also) for one in nodes if one.type.differentiable]
        known = set(so.Group(ys).list_arguments()) if ys else set()
        moving = [name for name in self._moving if name in known]
        found = iter(_depends(ys, moving))
        return [next(found) if one.type.differentiable else False for one in nodes]

    # Shapes

    def _shapes_with(self, given: Mapping[str, Shape]) -> dict[str, Shape]:
        """The shapes of all arrays; those that do not follow from given ones stay."""
        types = Inference(self._heads, given, {n: a.dtype for n, a in self.arg_dict.items()})
        shapes = {node.name: types.shape((node, 0)) for node in types.variables()}
        held = self._held()
        return {
            name: tuple(one) if one is not None and is_known(one) else held[name].shape
            for name, one in shapes.items()
        }

    def debug_str(self) -> str:
        """The graph as text, and the memory of dense outputs."""
        total = sum(math.prod(s) * np.dtype(dtype).itemsize for s, dtype in self._output_types())
        return f"{described(self._heads)}Total {total >> 20} MB allocated\n"


def _depends(ys: Sequence[Graph], names: Sequence[str]) -> list[bool]:
    """Whether gradients with respect to ``names`` depend on the cotangent of each of ``ys``."""
    if not names:
        return [False] * len(ys)
    heads = [so.var(f"head{i}", one.shape, one.dtype) for i, one in enumerate(ys)]
    slopes = so.Group(so.grad(ys, names, heads, unreachable="zero"))
    reached = set(below(slopes.nodes))
    if not any(one.nodes[0] in reached for one in heads):
        return [False] * len(ys)
    # A kernel may ignore a cotangent that it is given.
    inputs = [one for one in below([*slopes.nodes, *slopes.also]) if one.op is VARIABLE]
    types = {str(one.name): _struct(one.type.shape, one.type.dtype) for one in inputs}
    run = slopes.to_jax(is_train=True)
    traced = jax.make_jaxpr(lambda given: run(**given, key=jax.random.key(0)))(types).jaxpr
    used = {id(one) for call in traced.eqns for one in call.invars}
    used |= {id(one) for one in traced.outvars}
    placed = dict(zip(sorted(types), traced.invars, strict=True))
    return [one.name in placed and id(placed[one.name]) in used for one in heads]


def _dense_values(values: Mapping[int, Sequence[NDArray]]) -> Values:
    return {
        (key, i): one.dense().value for key, each in values.items() for i, one in enumerate(each)
    }


def _holds_rows(one: so.NDArray) -> bool:
    return isinstance(one.value, SelectedRows)


def _alias(array: NDArray) -> NDArray:
    """An array with the same value and no history, to mark."""
    if isinstance(array, CSRNDArray):
        return CSRNDArray(array.csr)
    if isinstance(array, RowSparseNDArray):
        return RowSparseNDArray(eager(array.rows))
    return NDArray(eager(array.inner.value))


def _store(place: NDArray, marked: NDArray, request: str) -> None:
    """Writes the gradient of a marked array to its place, or adds it."""
    gradient = marked.grad
    assert gradient is not None
    if request == "add":
        with so.autograd.pause():
            gradient = place + gradient
    assign(place, gradient)
