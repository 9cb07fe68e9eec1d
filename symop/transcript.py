"""Writing nodes of a graph into a block of a program, as records of calls."""

from collections.abc import Mapping, Sequence

from registry.desc import OpDesc
from registry.errors import ProgramError
from registry.operator import Operator
from symop.graph import SELECT, VARIABLE, Node, built_at, select
from symop.program_block import Block, Variable, place_of
from symop.records import Writer


def write(
    block: Block, wanted: Mapping[str, Node], labels: dict[Node, dict[int, str]]
) -> dict[str, Variable]:
    """Record in ``block`` what computes ``wanted``, from nodes that have names already.

    Args:
        block: grows by the calls.
        wanted: nodes by the names that their values shall have; a taken name gets a number.
        labels: names of the outputs of nodes; extended by those of the new nodes.

    Returns:
        The variables by the names that were asked for.
    """
    names = {asked: block.free(asked) for asked in wanted}
    with block.atomically():
        _Transcript(block, labels).write(wanted, names)
    return {asked: block.variable(name) for asked, name in names.items()}


def labels_of(block: Block) -> dict[Node, dict[int, str]]:
    """The first name of each value of ``block``, by node and output."""
    labels: dict[Node, dict[int, str]] = {}
    for name, node in block.values.items():
        source, index = place_of(node)
        labels.setdefault(source, {}).setdefault(index, name)
    return labels


def enter(
    block: Block, nodes: Sequence[Node], labels: dict[Node, dict[int, str]]
) -> list[Variable]:
    """Record in ``block`` what computes ``nodes``, from the values that have ``labels``."""
    with block.atomically():
        transcript = _Transcript(block, labels)
        transcript.write({}, {}, also=nodes)
        return [Variable(block, transcript.writer.label(node)) for node in nodes]


class _Transcript:
    """Writes nodes of a graph into a block, each just before its first use."""

    def __init__(self, block: Block, labels: dict[Node, dict[int, str]]) -> None:
        self.block, self.labels = block, labels
        self.writer = Writer(labels, {}, block.sub_blocks)

    def write(
        self, wanted: Mapping[str, Node], names: Mapping[str, str], also: Sequence[Node] = ()
    ) -> None:
        """Write what computes ``wanted``, whose values get ``names``, and ``also``."""
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
        """What has no name yet, in the order in which it was made."""
        found: dict[Node, None] = {}
        waiting = list(ends)
        while waiting:
            node = waiting.pop()
            source = node.operands[0] if node.op is SELECT else node
            if source not in found and not self._is_named(node, source):
                found[source] = None
                waiting += source.operands
        return sorted(found, key=lambda node: node.serial)

    def _is_named(self, node: Node, source: Node) -> bool:
        index = node.attributes[0] if node.op is SELECT else 0
        return index in self.labels.get(source, {})

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
