"""Values that depend on a batch stay split by examples where parameters are split alike.

If a parameter is split over the mesh axes that the batch is split over (fully sharded data
parallelism, Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
Models", 2020), XLA must gather either the parameter or the values. It sees one operation at a time,
and where it gathers the values, those that follow are no longer split by examples. The graph knows
which values depend on the batch: they are constrained to stay split, so that the parameter is
gathered.
"""

from collections.abc import Collection, Mapping, Sequence

from registry.jax_derivatives.calculus import program_of
from registry.operator.bodies import bodies_of
from registry.operator.operator import Operator
from registry.shardings import as_sharding
from registry.table import get
from registry.types import TRAINING_TYPE, VarKind
from symop.graph.emission import apply
from symop.graph.nodes import VARIABLE, Node, by_age, copied_origin, topological
from symop.graph.rewriting import Images
from symop.graph.shardings import ndim_of
from symop.planning.propagation import Sizes, Split, Walk, as_split, silent
from symop.runtime.function import GraphFunction
from symop.runtime.placement import Placement


class BatchFunction(GraphFunction):
    """A graph as a function, in which values of a batch stay split by examples."""

    _splits: tuple[Mapping[str, Split], Collection[str], Sizes] | None = None

    def split(self, splits: Mapping[str, Split], inputs: Collection[str], sizes: Sizes) -> None:
        """Tells how the variables are split; the arguments are those of ``keep_batches``."""
        axes = {axis for name in inputs for each in splits[name] for axis in each}
        others = [split for name, split in splits.items() if name not in inputs]
        if any(axis in axes for split in others for each in split for axis in each):
            self._splits = splits, inputs, sizes

    def prepare(self, nodes: list[Node]) -> list[Node]:
        """Returns the graph with its constraints."""
        return nodes if self._splits is None else keep_batches(nodes, *self._splits)


def keep_batches(
    outputs: Sequence[Node],
    splits: Mapping[str, Split],
    inputs: Collection[str],
    sizes: Sizes,
) -> list[Node]:
    """Returns ``outputs``, in which calls that read differently split operands keep the batch.

    Args:
        outputs: a graph whose types are known.
        splits: the shardings of variables by name.
        inputs: the names of the variables that hold a batch.
        sizes: the sizes of the mesh axes.
    """
    shardings = _Shardings(splits, inputs, sizes)
    image = Images()
    for node in by_age(topological(outputs)):
        image.rebuild(node)
        if shardings.disagree(node):
            kept = shardings.of(node)
            with copied_origin(node.origin):
                image[node] = apply(get("shard"), (image.value(node),), (as_sharding(kept),))
    return [image.value(one) for one in outputs]


class _Shardings:
    """The shardings of the values of a graph, where those that depend on a batch come first."""

    def __init__(self, splits: Mapping[str, Split], inputs: Collection[str], sizes: Sizes) -> None:
        self._variables, self._inputs, self._sizes = splits, inputs, sizes
        self._known: dict[Node, list[Split]] = {}
        self._moving: set[Node] = set()

    def of(self, node: Node) -> Split:
        """Returns the sharding of a value."""
        if node.is_selection:
            return self._known[node.source][node.index]
        return self._known[node][0]

    def disagree(self, node: Node) -> bool:
        """Whether a call has one result, of a batch, and reads a value that is split otherwise."""
        if node.op is VARIABLE:
            ndim = len(node.type.shape)
            split = self._variables.get(str(node.name), ())
            # The types of variables may have been unknown where their shardings were declared.
            self._known[node] = [(*split, *[()] * (ndim - len(split)))]
            if node.name in self._inputs:
                self._moving.add(node)
            return False
        if any(child in self._moving for child in node.operands):
            self._moving.add(node)
        if node.is_selection:
            return False
        types = node.types or ()
        self._known[node] = [((),) * len(one.shape) for one in types]
        if not isinstance(node.op, Operator) or node not in self._moving or not _is_plain(node):
            return False
        return self._followed(node)

    def _followed(self, node: Node) -> bool:
        assert isinstance(node.op, Operator)
        flag = node.op.training_index  # whose value does not matter for shardings
        types = tuple(
            None if one is None else TRAINING_TYPE if i == flag else one.type
            for i, one in enumerate(node.inputs)
        )
        closed = program_of(node.op, types, node.attributes)
        given = [one for i, one in enumerate(node.inputs) if one is not None and i != flag]
        splits = [self.of(one) for one in given]
        flags = [one in self._moving for one in given]
        walk = Walk(closed.jaxpr, splits, self._sizes, flags)
        for equation in closed.jaxpr.eqns:
            walk.follow(equation, silent)
        found = [walk.of(one) for one in closed.jaxpr.outvars]
        self._known[node] = found
        return walk.gathered and len(found) == 1 and any(found[0])


def _is_plain(node: Node) -> bool:
    """Whether a call computes dense arrays without bodies."""
    values = [*(one.type for one in node.inputs if one is not None), *(node.types or ())]
    return not bodies_of(node.attributes) and all(one.kind is VarKind.LOD_TENSOR for one in values)


def batch_splits(
    placement: Placement, variables: Mapping[str, Node], inputs: Collection[str]
) -> tuple[dict[str, Split], Collection[str], Sizes]:
    """Returns the arguments of ``BatchFunction.split`` for a placement."""
    splits = {
        name: as_split(placement.sharding(name), ndim_of(node) or 0)
        for name, node in variables.items()
    }
    return splits, inputs, dict(placement.mesh.shape)
