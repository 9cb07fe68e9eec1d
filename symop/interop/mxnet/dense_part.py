"""The part of a graph with sparse arrays that only computes with dense ones: one compiled program.

Nodes on which a sparse computation depends run one after the other, as array code does. All others
form a graph of dense arrays, whose inputs are variables and results of the former.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from registry.types import is_inexact
from symop.interop.mxnet.arrays import NDArray, zeros_of
from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.context import Context
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.sparse_calls import LOOKUPS
from symop.interop.mxnet.storage import DEFAULT, chosen
from symop.interop.mxnet.storage_inference import StorageTypes


class Arrays(NamedTuple):
    """Arrays that a graph is bound to, by name.

    Attributes:
        arguments: the arguments.
        gradients: the gradients of arguments.
        requests: what a backward pass does with gradients.
        states: the auxiliary states.
    """

    arguments: Mapping[str, NDArray]
    gradients: Mapping[str, NDArray | None]
    requests: Mapping[str, str]
    states: Mapping[str, NDArray]

    @property
    def names(self) -> set[str]:
        """The names of all variables."""
        return {*self.arguments, *self.states}


def nodes_of_sparse(
    heads: Sequence[Entry], stypes: Mapping[str, str], gradients: Mapping[str, NDArray | None]
) -> list[Node]:
    """The nodes that compute with sparse arrays, and those on which they depend, inputs first.

    They include variables whose gradients are sparse.

    Args:
        heads: outputs of the graph.
        stypes: the storage types of variables by name.
        gradients: the arrays of gradients by name.
    """
    types = StorageTypes(heads, stypes)
    marked = {name for name, one in gradients.items() if one is not None and one.is_sparse}
    roots = [(node, 0) for node in types.nodes if _is_sparse(node, types, marked)]
    return topological(roots)


def _is_sparse(node: Node, types: StorageTypes, marked: Collection[str]) -> bool:
    if node.operator is None:
        return node.name in marked or types.of((node, 0)) != DEFAULT
    inputs = [types.of(one) for one in node.inputs]
    if any(one != DEFAULT for one in (*inputs, types.of((node, 0)))):
        return True
    looks_up = node.operator.name in LOOKUPS
    if looks_up and any(below.is_variable and below.name in marked for below, _ in node.inputs):
        return True
    return chosen(node.operator.name, inputs, node.values) is not None


class DensePart:
    """The nodes of a graph that remain without those of sparse arrays, as an executor.

    Attributes:
        executor: the executor; its arguments are variables of the graph, and values of other nodes.
        read: the values of other nodes, by the names of these arguments.
        names: the variables of the graph whose gradients it writes.
        outputs: which outputs of the graph it computes, in order.
    """

    def __init__(
        self,
        heads: Sequence[Entry],
        others: Sequence[Node],
        arrays: Arrays,
        type_of: Callable[[Entry], tuple[Shape, Any]],
        ctx: Context,
    ) -> None:
        """Binds the nodes that are not among ``others``.

        Args:
            heads: outputs of the graph, at least one of which ``others`` do not compute.
            others: nodes that run before, with the nodes on which they depend, inputs first.
            arrays: the arrays of the graph.
            type_of: the shape and dtype of a value.
            ctx: the device that computes.
        """
        known = {id(one) for one in others}
        self.outputs = [i for i, (node, _) in enumerate(heads) if id(node) not in known]
        own, self.read = cut([heads[i] for i in self.outputs], known, arrays.names)
        names = [one.name for one in topological(own) if one.is_variable]
        arguments = {name: arrays.arguments[name] for name in names if name in arrays.arguments}
        gradients = {name: arrays.gradients.get(name) for name in arguments}
        requests = {name: arrays.requests.get(name, "null") for name in arguments}
        moving = _depending({n for n, one in arrays.requests.items() if one != "null"}, others)
        for name, entry in self.read.items():
            shape, dtype = type_of(entry)
            moves = id(entry[0]) in moving and is_inexact(np.dtype(dtype))
            arguments[name] = zeros_of(shape, dtype, name, ctx)
            gradients[name] = zeros_of(shape, dtype, name, ctx) if moves else None
            requests[name] = "write" if moves else "null"
        states = {name: arrays.states[name] for name in names if name in arrays.states}
        self.names = {name for name in arguments if name not in self.read}
        self.executor = Executor(own, arguments, gradients, requests, states, ctx)

    def forward(
        self,
        arrays: Arrays,
        values: Mapping[str, NDArray],
        outputs: list[NDArray],
        *,
        is_train: bool,
    ) -> None:
        """Computes outputs, in place, from the arrays of the graph and values by ``read``."""
        inner = self.executor
        inner.arg_dict.update({n: arrays.arguments[n] for n in self.names})
        inner.grad_dict.update({n: arrays.gradients.get(n) for n in self.names})
        inner.aux_dict.update({n: arrays.states[n] for n in inner.aux_dict})
        for name, one in values.items():
            inner.arg_dict[name].hold(one.dense().value)
        inner.share_outputs([outputs[i] for i in self.outputs])
        inner.forward(is_train)

    def backward(self, cotangents: Sequence[NDArray]) -> list[tuple[str, NDArray]]:
        """Writes gradients of variables; returns those of values that other nodes computed."""
        self.executor.backward([cotangents[i] for i in self.outputs])
        found = [(name, self.executor.grad_dict[name]) for name in self.read]
        return [(name, one) for name, one in found if one is not None]


def cut(
    heads: Sequence[Entry], known: Collection[int], taken: Collection[str]
) -> tuple[list[Entry], dict[str, Entry]]:
    """The graph below ``heads`` with variables in place of values of other nodes.

    Args:
        heads: outputs of the graph.
        known: the ids of the nodes that remain outside.
        taken: names that the variables must not have.

    Returns:
        The outputs, and the values that the variables stand for, by name.
    """
    made: dict[int, Node] = {}
    variables: dict[tuple[int, int], Node] = {}
    read: dict[str, Entry] = {}

    def copied(entry: Entry) -> Entry:
        node, index = entry
        if id(node) not in known:
            return made[id(node)], index
        key = id(node), index
        if key not in variables:
            name = next(one for i in count() if (one := f"value{len(read) + i}") not in taken)
            variables[key], read[name] = Node(None, name), entry
        return variables[key], 0

    for node in topological(heads):
        if id(node) not in known:
            inputs = [copied(one) for one in node.inputs]
            made[id(node)] = (
                node
                if node.is_variable
                else Node(node.operator, node.name, node.attributes, inputs, node.subgraphs)
            )
    return [copied(one) for one in heads], read


def _depending(names: Collection[str], nodes: Sequence[Node]) -> set[int]:
    """The ids of the nodes that depend on variables of these names; inputs come first."""
    found: set[int] = set()
    for node in nodes:
        if node.is_variable:
            reached = node.name in names
        else:
            reached = any(id(below) in found for below, _ in node.inputs)
        if reached:
            found.add(id(node))
    return found
