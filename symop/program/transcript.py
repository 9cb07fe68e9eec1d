"""Writing graph nodes into a block of a program as records of calls."""

from collections.abc import Mapping, Sequence

from registry.desc import OpDesc
from registry.errors import ProgramError
from registry.operator.operator import Operator
from symop.graph.nodes import VARIABLE, Node, built_at, by_age, select
from symop.io.records import Writer
from symop.program.block import Block, Variable


def write(
    block: Block, wanted: Mapping[str, Node], labels: dict[Node, dict[int, str]]
) -> dict[str, Variable]:
    """Records the computation of ``wanted`` in ``block``, starting from named nodes.

    Args:
        block: the block to which calls are appended.
        wanted: nodes by the names requested for their values; a taken name gets a number.
        labels: names of the outputs of nodes; extended with those of the new nodes.

    Returns:
        The variables by the requested names.
    """
    names = {asked: block.free(asked) for asked in wanted}
    with block.atomically():
        _Transcript(block, labels).write(wanted, names)
    return {asked: block.variable(name) for asked, name in names.items()}


def labels_of(block: Block) -> dict[Node, dict[int, str]]:
    """Returns the first name of each value of ``block``, by node and output."""
    labels: dict[Node, dict[int, str]] = {}
    for name, node in block.values.items():
        source, index = node.source, node.index
        labels.setdefault(source, {}).setdefault(index, name)
    return labels


def enter(
    block: Block, nodes: Sequence[Node], labels: dict[Node, dict[int, str]]
) -> list[Variable]:
    """Records the computation of ``nodes`` in ``block``, from the values that have ``labels``."""
    with block.atomically():
        transcript = _Transcript(block, labels)
        transcript.write({}, {}, also=nodes)
        return [Variable(block, transcript.writer.label(node)) for node in nodes]


class _Transcript:
    """Writes graph nodes into a block, each just before its first use."""

    def __init__(self, block: Block, labels: dict[Node, dict[int, str]]) -> None:
        self.block, self.labels = block, labels
        self.writer = Writer(labels, {}, block.sub_blocks)

    def write(
        self, wanted: Mapping[str, Node], names: Mapping[str, str], also: Sequence[Node] = ()
    ) -> None:
        """Writes the computation of ``wanted``, whose values get ``names``, and of ``also``."""
        chosen: dict[Node, str] = {}
        for asked, node in wanted.items():
            chosen.setdefault(node, names[asked])
        for node in self._new([*wanted.values(), *also]):
            self._write(node, chosen)
        for asked, node in wanted.items():
            source = self.writer.label(node)
            if source != names[asked]:
                self.block.append(
                    OpDesc("identity", {"x": [source]}, {"out": [names[asked]]}, gradient_of=asked)
                )

    def _new(self, ends: Sequence[Node]) -> list[Node]:
        """Returns the nodes that have no name yet, in order of creation."""
        new: dict[Node, None] = {}
        waiting = list(ends)
        while waiting:
            node = waiting.pop()
            if node.source not in new and not self._is_named(node):
                new[node.source] = None
                waiting += node.source.operands
        return by_age(new)

    def _is_named(self, node: Node) -> bool:
        return node.index in self.labels.get(node.source, {})

    def _write(self, node: Node, chosen: Mapping[Node, str]) -> None:
        if node.op is VARIABLE:
            raise ProgramError(
                f"{node.name}: what functions of control flow use must be made outside of them, "
                f"parameters of layers too{built_at(node.origin)}"
            )
        if not isinstance(node.op, Operator):
            self.labels[node] = {0: self.block.leaf(node)}
            return
        if node.op.single:
            self.labels[node] = {0: chosen.get(node) or self.block.fresh(node.op.name)}
        else:
            base = self.block.fresh(node.op.name)
            self.labels[node] = {
                i: chosen.get(select(node, i)) or self.block.free(f"{base}.{key}")
                for i, key in enumerate(node.op.outputs)
            }
        desc = self.writer.op_desc(node)
        desc.name = None
        self.block.append(desc)
