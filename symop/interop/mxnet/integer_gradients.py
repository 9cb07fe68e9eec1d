"""Executors whose gradients pass through casts from and to integers.

MXNet's gradient of a cast is the head gradient in the other dtype, also where an argument or an
output is of integers. JAX has no such derivatives. So the graph gets further arguments and outputs:

- a *perturbation*, floating zeros that are added to what an integer argument is cast to; its
  gradient is that of the argument;
- an *output*, the array that is cast to an integer output; it takes the head gradient of this.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.types import is_inexact
from symop.interop.mxnet.arrays import NDArray, array_of, zeros_of
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.watching import Monitor


class Perturbed:
    """A graph with floating arguments and outputs beside those of integers.

    Attributes:
        heads: the outputs of the graph, and then those that take head gradients of integers.
        taken: the numbers of the outputs of integers, in the order of the latter.
        perturbations: the name of the perturbation of each argument of integers that is cast.
    """

    def __init__(self, heads: Sequence[Entry], wanted: Mapping[str, Any]) -> None:
        """Extends a graph.

        Args:
            heads: the outputs.
            wanted: the integer dtypes of the arguments that have gradients, by name.
        """
        self.perturbations: dict[str, str] = {}
        self._floats: dict[int, Entry] = {}
        """What takes the gradient of an entry of integers, by the id of its node."""
        self._made: dict[int, Entry | Node] = {}
        names = {one.name for one in topological(heads)}
        for node in topological(heads):
            self._copy(node, wanted, names)
        found = [(i, self._floats.get(id(node))) for i, (node, _) in enumerate(heads)]
        outputs = [(i, entry) for i, entry in found if entry is not None]
        self.taken = [i for i, _ in outputs]
        self.heads = [*(self._entry(*one) for one in heads), *(entry for _, entry in outputs)]
        present = {one.name for one in topological(self.heads)}
        self.perturbations = {n: one for n, one in self.perturbations.items() if one in present}

    def _entry(self, node: Node, index: int) -> Entry:
        made = self._made[id(node)]
        return (made, index) if isinstance(made, Node) else made

    def _copy(self, node: Node, wanted: Mapping[str, Any], names: set[str]) -> None:
        copy = self._made[id(node)] = Node(None, node.name, node.attributes)
        copy.operator, copy.subgraphs = node.operator, node.subgraphs
        copy.inputs = [self._entry(*one) for one in node.inputs]
        if node.is_variable and node.name in wanted:
            name = self.perturbations[node.name] = _free(f"{node.name}_perturbation", names)
            self._floats[id(node)] = Node(None, name), 0
        elif _is_cast(node):
            self._cast(node, copy)

    def _cast(self, node: Node, copy: Node) -> None:
        (source, index), to_floats = node.inputs[0], is_inexact(np.dtype(node.values["dtype"]))
        below = self._floats.get(id(source))
        if not to_floats:
            self._floats[id(node)] = below or self._entry(source, index)
        elif below is not None and below[0].name in self.perturbations.values():
            cast = Node(copy.operator, f"{node.name}_perturbed", node.attributes, [below])
            added = Node(find("elemwise_add"), f"{node.name}_sum", {}, [(copy, 0), (cast, 0)])
            self._made[id(node)] = added, 0


def _free(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    return name


def integers(arguments: Mapping[str, NDArray], requests: Mapping[str, str]) -> dict[str, Any]:
    """The dtypes of the arguments of integers that have gradients, by name."""
    return {
        name: one.dtype
        for name, one in arguments.items()
        if requests.get(name, "null") != "null" and not is_inexact(np.dtype(one.dtype))
    }


def casts_integers(
    heads: Sequence[Entry], arguments: Mapping[str, NDArray], requests: Mapping[str, str]
) -> bool:
    """Whether gradients pass through casts from integer arguments or to integer outputs."""
    wanted = integers(arguments, requests)
    if not wanted and not any(_is_cast(node) for node, _ in heads):
        return False
    found = Perturbed(heads, wanted)
    return bool(found.taken or found.perturbations)


def _is_cast(node: Node) -> bool:
    return node.operator is not None and node.operator.name == "Cast"


class CastingExecutor(Executor):
    """A symbol whose gradients pass through casts from and to integers."""

    @functools.cached_property
    def _perturbed(self) -> Perturbed:
        return Perturbed(self._heads, integers(self.arg_dict, self._requests))

    @functools.cached_property
    def _whole(self) -> Executor:
        """The executor of the extended graph, over the same arrays."""
        names = self._perturbed.perturbations
        zeros, slopes = (
            {
                perturbation: zeros_of(own.shape, np.dtype(jnp.result_type(float)), ctx=own.context)
                for name, perturbation in names.items()
                for own in [self.arg_dict[name]]
            }
            for _ in "12"
        )
        requests = {name: "null" if name in names else one for name, one in self._requests.items()}
        whole = Executor(
            self._perturbed.heads,
            {**self.arg_dict, **zeros},
            {**self.grad_dict, **slopes},
            {**requests, **dict.fromkeys(zeros, "write")},
            self.aux_dict,
            self._ctx,
        )
        whole.share_outputs([*self.outputs, *whole.outputs[len(self._names) :]])
        whole.set_monitor_callback(self._monitor, self._monitors_inputs)
        return whole

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """See ``Executor``."""
        return self._whole.forward(is_train, **kwargs)[: len(self._names)]

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """See ``Executor``."""
        given = self._cotangents(out_grads)
        self._whole.backward([*given, *self._head_gradients(given)], is_train)
        for name, perturbation in self._perturbed.perturbations.items():
            own, found = self._gradient(name), self._whole.grad_dict[perturbation]
            assert found is not None
            made = found.value.astype(own.dtype)
            own.hold(own.value + made if self._requests[name] == "add" else made)

    def _head_gradients(self, given: Sequence[Any]) -> Iterator[Any]:
        count = len(self._names)
        types = self._whole._output_types()[count:]
        read = self._whole._read_cotangents()[count:]
        for place, (shape, dtype), is_read in zip(self._perturbed.taken, types, read, strict=True):
            if given[place] is None and not is_read:
                yield None
                continue
            if given[place] is None:
                raise MXNetError(
                    f"backward: out_grads must be given for {self._names[place]!r}, got none"
                )
            one = array_of(jnp.asarray(given[place]).astype(dtype))
            if one.shape != shape:
                raise MXNetError(
                    f"backward: out_grads of {self._names[place]!r} must have shape {shape}, got "
                    f"{one.shape}"
                )
            yield one

    def set_monitor_callback(self, callback: Monitor | None, monitor_all: bool = False) -> None:
        """See ``Executor``; nodes that the executor adds are seen, too."""
        super().set_monitor_callback(callback, monitor_all)
        if "_whole" in self.__dict__:
            self._whole.set_monitor_callback(callback, monitor_all)
