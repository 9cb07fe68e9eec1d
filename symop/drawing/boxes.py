"""The boxes of a drawing: one for each operator and variable of a graph.

Numbers, parameters and the like have no box: they are drawn inside the boxes that read them.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence

from registry.operator import Operator
from symop.graph import ARRAY, CONSTANT, KEY, SELECT, TRAINING, VARIABLE, Node, topological


@dataclasses.dataclass(slots=True)
class Box:
    """What is drawn as one box.

    Attributes:
        nodes: every node that it stands for.
        sources: (number of the box, index of its output) of what it reads.
        outputs: which outputs of the graph it holds.
        fold: how several nodes came to be one box: ``run``, ``gradient``, ``stretch`` or nothing.
        times: how many equal blocks it stands for.
        shown: the nodes of one block.
        node: the first of them that computes something, if there is one.
        backward: whether the box belongs to a gradient.
    """

    nodes: list[Node]
    sources: list[tuple[int, int]]
    outputs: list[int] = dataclasses.field(default_factory=list)
    fold: str = ""
    times: int = 1
    shown: list[Node] = dataclasses.field(default_factory=list)
    node: Node = dataclasses.field(init=False)
    backward: bool = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        """Derive what many passes ask for."""
        self.shown = self.shown or self.nodes
        self.node = next(filter(is_operator, self.shown), self.shown[0])
        self.backward = is_backward(self.node)

    @property
    def operators(self) -> int:
        """How many operators the box stands for."""
        return sum(is_operator(node) for node in self.nodes)


def is_backward(node: Node) -> bool:
    """Whether a node belongs to a gradient."""
    return node.origin is not None and node.origin.forward is not None and node.op is not VARIABLE


def is_operator(node: Node) -> bool:
    """Whether a node computes something."""
    if isinstance(node.op, Operator):
        return True
    return bool(node.operands) and node.op is not SELECT


def value_of(node: Node) -> tuple[Node, int]:
    """The node that computes a value, and which of its outputs the value is."""
    if node.op is SELECT:
        return node.operands[0], node.attributes[0]
    return node, 0


# Boxes of a graph ------------------------------------------------------------------------------


def boxes_of(outputs: Sequence[Node]) -> tuple[list[Box], frozenset[Node]]:
    """A box for each node that is drawn, inputs first; and the leaves drawn inside their users."""
    order = topological(outputs)
    inside = _drawn_inside(order, {value_of(output)[0] for output in outputs})
    boxes: list[Box] = []
    number: dict[Node, int] = {}
    for node in _deepest_first(order, outputs):
        if node.op is SELECT or node in inside:
            continue
        read = [value_of(child) for child in node.operands]
        sources = dict.fromkeys((number[n], i) for n, i in read if n in number)
        number[node] = len(boxes)
        boxes.append(Box([node], list(sources)))
    for i, output in enumerate(outputs):
        boxes[number[value_of(output)[0]]].outputs.append(i)
    return boxes, inside


def _deepest_first(order: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """Topological order in which the longest way to an input comes first.

    So the layers of a network follow one another, each beside what only it reads.
    """
    depth: dict[Node, int] = {}
    for node in order:
        depth[node] = 1 + max([depth[child] for child in node.operands], default=0)
    found: list[Node] = []
    seen: set[Node] = set()
    for output in outputs:
        stack = [(output, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                found.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                inputs = sorted(node.operands, key=lambda child: -depth[child])
                stack += [(child, False) for child in reversed(inputs) if child not in seen]
    return found


def _drawn_inside(order: Sequence[Node], pinned: set[Node]) -> frozenset[Node]:
    """Leaves shown in the boxes of their users: numbers, parameters, what one operator reads."""
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
