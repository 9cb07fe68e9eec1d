"""Values that depend on a batch stay split by examples where parameters are split alike.

If a parameter is split over the mesh axes that the batch is split over (fully sharded data
parallelism, Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
Models", 2020), XLA must gather either the parameter or the values. It sees one operation at a time,
and where it gathers the values, those that follow are no longer split by examples. The graph knows
which values depend on the batch: they are constrained to stay split, so that the parameter is
gathered.

Likewise, XLA splits a gradient as its parameter is split, also where the gradient could be computed
on the devices that have its operands and be exchanged then: it exchanges the operands, which are
larger. Gradients are constrained to the sharding in which they are computed.
"""

from collections.abc import Collection, Mapping, Sequence

import jax

from registry.jax_derivatives.calculus import program_of
from registry.operator.bodies import bodies_of
from registry.operator.operator import Operator
from registry.shardings import Sharding, axes_at, axes_of, mesh_axes
from registry.table import get
from registry.types import VarKind
from symop.graph.emission import apply
from symop.graph.nodes import VARIABLE, Node, by_age, copied_origin, topological
from symop.graph.rewriting import Images
from symop.graph.shardings import ndim_of
from symop.lowering.steps import Call
from symop.passes.linearity import types_of
from symop.planning.propagation import Sizes, Walk, received, silent
from symop.runtime.function import GraphFunction, Specialized
from symop.runtime.placement import Placement
from symop.xla.shared_operands import behind_barrier, shared_operands


class BatchFunction(GraphFunction):
    """A graph as a function, in which values of a batch stay split by examples."""

    _batches: tuple[Mapping[str, Sharding], Collection[str], Sizes] | None = None
    _shared: Collection[Node] = ()

    def split(
        self, shardings: Mapping[str, Sharding], inputs: Collection[str], sizes: Sizes
    ) -> None:
        """Tells how the variables are split; the arguments are those of ``keep_batches``."""
        axes = {axis for name in inputs for axis in mesh_axes(shardings[name])}
        others = [one for name, one in shardings.items() if name not in inputs]
        if any(axis in axes for one in others for axis in mesh_axes(one)):
            self._batches = shardings, inputs, sizes

    def prepare(self, nodes: list[Node]) -> list[Node]:
        """Returns the graph with its constraints."""
        return nodes if self._batches is None else keep_batches(nodes, *self._batches)

    def _gradients(self, graph: Specialized) -> Sequence[Node]:
        gradients = super()._gradients(graph)
        if self._batches is not None:
            gradients = where_computed(gradients, self.wrt, *self._batches)
        if jax.default_backend() == "cpu":
            self._shared = shared_operands(topological([*graph.outputs, *gradients]))
        return gradients

    def call_of(self, node: Node) -> Call:
        """Returns the function that computes ``node``."""
        call = super().call_of(node)
        return behind_barrier(call) if node in self._shared else call


def keep_batches(
    outputs: Sequence[Node],
    shardings: Mapping[str, Sharding],
    inputs: Collection[str],
    sizes: Sizes,
) -> list[Node]:
    """Returns ``outputs``, in which calls that read differently split operands keep the batch.

    Args:
        outputs: a graph whose types are known.
        shardings: the shardings of variables by name.
        inputs: the names of the variables that hold a batch.
        sizes: the sizes of the mesh axes.
    """
    values = _Shardings(shardings, inputs, sizes)
    image = Images()
    for node in by_age(topological(outputs)):
        image.rebuild(node)
        if values.disagree(node):
            with copied_origin(node.origin):
                image[node] = apply(get("shard"), (image.value(node),), (values.of(node),))
    return [image.value(one) for one in outputs]


def where_computed(
    gradients: Sequence[Node],
    names: Sequence[str],
    shardings: Mapping[str, Sharding],
    inputs: Collection[str],
    sizes: Sizes,
) -> list[Node]:
    """Returns ``gradients``, of which those split unlike their parameters stay so at first.

    Args:
        gradients: the gradients, whose types are known.
        names: the names of their parameters.
        shardings: the shardings of variables by name.
        inputs: the names of the variables that hold a batch.
        sizes: the sizes of the mesh axes.
    """
    values = _Shardings(shardings, inputs, sizes)
    for node in by_age(topological(gradients)):
        values.disagree(node)  # finds the shardings of its results
    results = []
    for gradient, name in zip(gradients, names, strict=True):
        own, wanted = values.of(gradient), shardings.get(name, ())
        result = gradient
        if values.knows(gradient) and not _is_refined(own, wanted):
            # XLA warns of what it does where it does both at once: gathers, and takes a part.
            for one in dict.fromkeys((own, received(own, wanted))):
                result = apply(get("shard"), (result,), (one,))
        results.append(result)
    return results


def _is_refined(before: Sharding, after: Sharding) -> bool:
    """Whether each device that has a part by ``before`` has its part by ``after``."""
    return all(
        axes_at(after, i)[: len(axes)] == axes for i, axes in enumerate(map(axes_of, before))
    )


class _Shardings:
    """The shardings of the values of a graph, where those that depend on a batch come first."""

    def __init__(
        self, variables: Mapping[str, Sharding], inputs: Collection[str], sizes: Sizes
    ) -> None:
        self._variables, self._inputs, self._sizes = variables, inputs, sizes
        self._results: dict[Node, list[Sharding]] = {}
        self._moving: set[Node] = set()
        self._unknown: set[Node] = set()

    def knows(self, node: Node) -> bool:
        """Whether all calls that a value depends on compute dense arrays without bodies."""
        return node not in self._unknown

    def of(self, node: Node) -> Sharding:
        """Returns the sharding of a value."""
        if node.is_selection:
            return self._results[node.source][node.index]
        return self._results[node][0]

    def disagree(self, node: Node) -> bool:
        """Whether a call has one result, of a batch, and reads a value that is split otherwise."""
        if node.op is VARIABLE:
            self._results[node] = [self._variables.get(str(node.name), ())]
            if node.name in self._inputs:
                self._moving.add(node)
            return False
        if any(child in self._moving for child in node.operands):
            self._moving.add(node)
        plain = isinstance(node.op, Operator) and _is_plain(node)
        if (node.operands and not (plain or node.is_selection)) or any(
            child in self._unknown for child in node.operands
        ):
            self._unknown.add(node)
        if node.is_selection:
            return False
        self._results[node] = [() for _ in node.types or ()]
        if node not in self._moving or not plain:
            if any(map(self.of, node.operands)):  # what follows from it is not looked for
                self._unknown.add(node)
            return False
        return self._followed(node)

    def _followed(self, node: Node) -> bool:
        assert isinstance(node.op, Operator)
        flag = node.op.training_index
        closed = program_of(node.op, types_of(node), node.attributes)
        operands = [one for i, one in enumerate(node.inputs) if one is not None and i != flag]
        flags = [one in self._moving for one in operands]
        walk = Walk(closed.jaxpr, list(map(self.of, operands)), self._sizes, flags)
        for equation in closed.jaxpr.eqns:
            walk.follow(equation, silent)
        results = [walk.of(one) for one in closed.jaxpr.outvars]
        self._results[node] = results
        return walk.gathered and len(results) == 1 and bool(results[0])


def _is_plain(node: Node) -> bool:
    """Whether a call computes dense arrays without bodies."""
    values = [*(one.type for one in node.inputs if one is not None), *(node.types or ())]
    return not bodies_of(node.attributes) and all(one.kind is VarKind.LOD_TENSOR for one in values)


def shardings_on(
    placement: Placement, variables: Mapping[str, Node], inputs: Collection[str]
) -> tuple[dict[str, Sharding], Collection[str], Sizes]:
    """Returns the arguments of ``BatchFunction.split`` for a placement."""
    shardings = {n: placement.sharding(n, ndim_of(node)) for n, node in variables.items()}
    return shardings, inputs, dict(placement.mesh.shape)
