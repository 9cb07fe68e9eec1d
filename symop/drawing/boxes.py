"""The boxes of a drawing: one for each operator and variable of a graph.

Numbers, parameters and similar leaves have no box: they are drawn inside the boxes that read them.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence

from registry.operator.operator import Operator
from symop.graph.nodes import ARRAY, CONSTANT, KEY, TRAINING, VARIABLE, Node, topological


@dataclasses.dataclass(slots=True)
class Box:
    """The nodes drawn as one box: several if they are equal steps of a repeat.

    Attributes:
        nodes: all nodes that the box represents.
        sources: (box number, output index) of each value that it reads.
        outputs: indices of the graph outputs that it contains.
        node: the one that is shown: a middle one, as the first step of a repeat reads initial
            values.
        backward: whether the box belongs to a gradient.
    """

    nodes: list[Node]
    sources: list[tuple[int, int]]
    outputs: list[int] = dataclasses.field(default_factory=list)
    node: Node = dataclasses.field(init=False)
    backward: bool = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        """Caches derived fields that many passes read."""
        self.node = self.nodes[len(self.nodes) // 2]
        self.backward = is_backward(self.node)

    @property
    def times(self) -> int:
        """The number of equal nodes that the box represents."""
        return len(self.nodes)


def is_backward(node: Node) -> bool:
    """Whether a node belongs to a gradient."""
    return node.origin is not None and node.origin.forward is not None and node.op is not VARIABLE


def is_operator(node: Node) -> bool:
    """Whether a node computes something."""
    return isinstance(node.op, Operator) or (bool(node.operands) and not node.is_selection)


# Boxes of a graph ------------------------------------------------------------------------------


def boxes_of(outputs: Sequence[Node]) -> tuple[list[Box], frozenset[Node]]:
    """Returns a box for each drawn node, inputs first, and the leaves drawn inside their users."""
    order = topological(outputs)
    inside = _drawn_inside(order, {output.source for output in outputs})
    boxes: list[Box] = []
    number: dict[Node, int] = {}
    for node in _deepest_first(order, outputs):
        if node.is_selection or node in inside:
            continue
        read = [(child.source, child.index) for child in node.operands]
        sources = dict.fromkeys((number[n], i) for n, i in read if n in number)
        number[node] = len(boxes)
        boxes.append(Box([node], list(sources)))
    for i, output in enumerate(outputs):
        boxes[number[output.source]].outputs.append(i)
    return boxes, inside


def _deepest_first(order: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """Returns a topological order that visits the longest path to an input first.

    The layers of a network thus follow one another, each next to the values that only it reads.
    """
    depth: dict[Node, int] = {}
    for node in order:
        depth[node] = 1 + max([depth[child] for child in node.operands], default=0)
    result: list[Node] = []
    seen: set[Node] = set()
    for output in outputs:
        stack = [(output, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                result.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                inputs = sorted(node.operands, key=lambda child: -depth[child])
                stack += [(child, False) for child in reversed(inputs) if child not in seen]
    return result


def _drawn_inside(order: Sequence[Node], pinned: set[Node]) -> frozenset[Node]:
    """Returns the leaves drawn inside their users: numbers, parameters, and values read once."""
    inside: set[Node] = set()
    forward: Counter[Node] = Counter()
    every: Counter[Node] = Counter()
    beside: set[Node] = set()
    for node in order:
        computed = any(child.inputs for child in node.operands)
        for i, child in enumerate(node.inputs):
            if child is None or child.inputs:
                continue
            every[child] += 1
            forward[child] += not is_backward(node)
            if computed and (child.op is not VARIABLE or not is_backward(node)):
                beside.add(child)
            if isinstance(node.op, Operator) and node.op.slot_of(i).created:
                inside.add(child)
    for leaf in every:
        uses = (forward if leaf.op is VARIABLE else every)[leaf]
        alone = leaf.op in (VARIABLE, ARRAY) and uses == 1 and leaf in beside
        if alone or leaf.op in (CONSTANT, KEY, TRAINING):
            inside.add(leaf)
    return frozenset(inside - pinned)
