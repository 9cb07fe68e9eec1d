"""Storage types of a graph: of all values, and of the gradients of its variables."""

from collections.abc import Mapping, Sequence

from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.storage import (
    DEFAULT,
    chosen,
    output_stype,
    require_stype,
    stype_of_number,
)


class StorageTypes:
    """The storage types of a graph's values, inferred from those of its variables.

    Attributes:
        nodes: the nodes of the graph, inputs first.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> net = mx.sym.dot(mx.sym.var("x", stype="csr"), mx.sym.var("w"), name="y")
        >>> types = StorageTypes(net.heads, {})
        >>> types.of(net.heads[0]), types.gradients()["w"]
        ('default', 'row_sparse')
    """

    def __init__(self, heads: Sequence[Entry], given: Mapping[str, str]) -> None:
        """Infers the types; ``given`` are those of variables that do not say them themselves.

        Raises:
            MXNetError: a storage type is unknown.
        """
        self._heads, self.nodes = list(heads), topological(heads)
        self._of: dict[int, str] = {}
        for node in self.nodes:
            self._of[id(node)] = _declared(node, given) if node.is_variable else self._called(node)

    def _inputs(self, node: Node) -> list[str]:
        return [self._of[id(below)] for below, _ in node.inputs]

    def _called(self, node: Node) -> str:
        assert node.operator is not None
        return output_stype(node.operator.name, self._inputs(node), node.values)

    def of(self, entry: Entry) -> str:
        """The storage type of a value."""
        return self._of[id(entry[0])]

    @property
    def is_dense(self) -> bool:
        """Whether all values are dense."""
        return all(one == DEFAULT for one in self._of.values())

    def gradients(self) -> dict[str, str]:
        """The storage types of the gradients of variables; the heads' are those of the heads."""
        arrived: dict[int, list[str]] = {}
        for node, _ in self._heads:
            arrived.setdefault(id(node), []).append(self._of[id(node)])
        for node in reversed(self.nodes):
            if node.is_variable or id(node) not in arrived:
                continue
            for (below, _), stype in zip(node.inputs, self._pulled(node, arrived), strict=True):
                arrived.setdefault(id(below), []).append(stype)
        variables = [node for node in self.nodes if node.is_variable]
        return {node.name: _total(arrived.get(id(node), [])) for node in variables}

    def _pulled(self, node: Node, arrived: Mapping[int, list[str]]) -> list[str]:
        """The storage types of the gradients of a call's inputs."""
        assert node.operator is not None
        inputs = self._inputs(node)
        rule = chosen(node.operator.name, inputs, node.values)
        along = _total(arrived[id(node)])
        found = [DEFAULT if rule is None else rule.gradient(i) for i in range(len(inputs))]
        return [along if one == "same" else one for one in found]


def _declared(node: Node, given: Mapping[str, str]) -> str:
    if node.name in given:
        return require_stype(node.name, given[node.name])
    own = node.attributes.get("__storage_type__")
    return DEFAULT if own is None else stype_of_number(node.name, own)


def _total(stypes: Sequence[str]) -> str:
    """The storage type of the sum of gradients."""
    return stypes[0] if len(set(stypes)) == 1 else DEFAULT
