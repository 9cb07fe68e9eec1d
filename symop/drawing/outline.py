"""The outline of a graph: its boxes as a hierarchy of blocks, and the edges between them.

Forward operators are grouped by scope and layer, then by what repeats, then into parts. The
gradient has the same blocks as the forward part: each block of it is the counterpart of one.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from registry.operator.operator import Operator
from symop.drawing.blocks import Block, leaf, ordered
from symop.drawing.boxes import Box, boxes_of, is_operator
from symop.drawing.owners import owners_of
from symop.drawing.parts import divide
from symop.drawing.repeats import kind_of, roll
from symop.drawing.scopes import scoped
from symop.graph.nodes import Node, by_age
from symop.regions.bodies import GraphBody

ROOM = 30
"""The maximal number of forward blocks in a block."""
_MOST_VARIABLES = 12
_FEWEST_ALIKE = 3


class Edge(NamedTuple):
    """A value that one box reads from another.

    Attributes:
        source: the block of the box that computes the value.
        output: which of its outputs.
        target: the block of the box that reads it.
        over: the repeat from one of whose steps to the next the value is carried, or None.
    """

    source: Block
    output: int
    target: Block
    over: Block | None


class Outline(NamedTuple):
    """A graph as blocks.

    Attributes:
        root: the block of the whole graph.
        edges: the values that boxes read from each other.
        parents: the block that contains each block.
        inside: the leaves that are drawn inside the boxes that read them.
        operators: the number of operators in the graph.
    """

    root: Block
    edges: list[Edge]
    parents: dict[Block, Block]
    inside: frozenset[Node]

    def ancestors(self, block: Block) -> list[Block]:
        """Returns the blocks that contain ``block``, from the root, and the block itself."""
        line = [block]
        while line[-1] in self.parents:
            line.append(self.parents[line[-1]])
        return line[::-1]


def outline_of(
    outputs: Sequence[Node],
    *,
    room: int = ROOM,
    rolled: bool = True,
    updates: Collection[Node] = (),
    variables: int = _MOST_VARIABLES,
) -> Outline:
    """Returns the outline of the graph of ``outputs``.

    Args:
        outputs: the outputs of the graph.
        room: the maximal number of forward blocks in a block.
        rolled: whether equal blocks are drawn once.
        updates: operators that update states of a program.
        variables: the maximal number of variables in a block that have boxes of their own.
    """
    boxes, inside = boxes_of(outputs)
    root = Block("graph")
    builder = _Builder(boxes, rolled)
    root.children = builder.forward(room, frozenset(updates))
    root.children += builder.gradients(root.children)
    builder.place_leaves(root, variables)
    edges = builder.edges(root)
    for call in [block for block in root.walk() if block.kind == "box"]:
        edges += _open_bodies(call, room=room, rolled=rolled, variables=variables)
    parents = {child: block for block in root.walk() for child in block.children}
    _sort(root, edges, parents)
    return Outline(root, edges, parents, inside)


def _open_bodies(block: Block, *, room: int, rolled: bool, variables: int) -> list[Edge]:
    """Gives the block of a call with bodies a block for each body; returns their edges."""
    assert block.box is not None
    edges: list[Edge] = []
    for name, body in bodies_in(block.box.node):
        part = outline_of(body.results, room=room, rolled=rolled, variables=variables)
        block.kind = "call"
        inner = Block("body", name, part.root.children, backward=block.backward)
        inner.names = _result_names(block.box.node, name, len(body.results))
        block.children.append(inner)
        edges += part.edges
    return edges


def _result_names(node: Node, body: str, count: int) -> list[str]:
    """Returns names for the results of a body: values that the next step reads, and others."""
    assert isinstance(node.op, Operator)
    if body == "condition":
        return ["condition"]
    carried = node.op.attribute_dict(node.attributes).get("n_carry", 0)
    names = [f"to the next step {i}" if carried > 1 else "to the next step" for i in range(carried)]
    rest = count - carried
    return names + [f"result {i}" if rest > 1 else "result" for i in range(rest)]


def bodies_in(node: Node) -> list[tuple[str, GraphBody]]:
    """Returns the bodies of a call, each with the name of its attribute."""
    if not isinstance(node.op, Operator):
        return []
    attributes = node.op.attribute_dict(node.attributes)
    return [(name, one) for name, one in attributes.items() if isinstance(one, GraphBody)]


class _Builder:
    """Builds the blocks of one graph.

    Attributes:
        boxes: the boxes of single nodes.
        owners: the forward operator of each gradient node.
        home: the block whose box represents each node.
        turn: the position of each node among the nodes that its box represents.
    """

    def __init__(self, boxes: Sequence[Box], rolled: bool) -> None:
        self.boxes, self.rolled = boxes, rolled
        age = {node: i for i, node in enumerate(by_age([box.node for box in boxes]))}
        self.by_age = sorted(boxes, key=lambda box: age[box.node])
        self.owners = owners_of(self.by_age_numbered())
        self.home: dict[Node, Block] = {}
        self.turn: dict[Node, int] = {}

    def by_age_numbered(self) -> list[Box]:
        """Returns the boxes in order of age, which refer to each other in that order."""
        place = {box.node: i for i, box in enumerate(self.by_age)}
        number = [place[box.node] for box in self.boxes]
        return [
            Box(box.nodes, [(number[source], output) for source, output in box.sources])
            for box in self.by_age
        ]

    def forward(self, room: int, updates: frozenset[Node]) -> list[Block]:
        """Returns the blocks of the forward operators, and of the updates of a program."""
        plain = [
            box for box in self.by_age if box.node not in self.owners and is_operator(box.node)
        ]
        blocks = scoped([box for box in plain if box.node not in updates])
        if self.rolled:
            blocks = roll(blocks, self.boxes)
        blocks = divide(blocks, room)
        self._settle(blocks)
        changes = [leaf(box) for box in plain if box.node in updates]
        if changes:
            self._settle(changes)
            blocks.append(Block("updates", "updates", divide(changes, room)))
        return blocks

    def _settle(self, blocks: Iterable[Block]) -> None:
        """Notes which block represents each node."""
        for block in (one for top in blocks for one in top.walk() if one.box is not None):
            assert block.box is not None
            self.home.update(dict.fromkeys(block.box.nodes, block))
            self.turn.update({node: i for i, node in enumerate(block.box.nodes)})

    # The gradient

    def gradients(self, forward: Sequence[Block]) -> list[Block]:
        """Returns the counterparts of the blocks ``forward``, the last one first."""
        owned: dict[Block, dict[object, list[Box]]] = defaultdict(lambda: defaultdict(list))
        times: dict[tuple[Node, object], int] = defaultdict(int)
        for box in self.by_age:
            owner = self.owners.get(box.node)
            if owner is None:
                continue
            kind = kind_of(box.node)
            alike = owner, kind
            times[alike] += 1
            key = (kind, times[alike]) if self.rolled else box.node
            owned[self.home[owner]][key].append(box)
        counterparts = [self._counterpart(block, owned) for block in reversed(forward)]
        return [block for block in counterparts if block is not None]

    def _counterpart(
        self, block: Block, owned: dict[Block, dict[object, list[Box]]], within: str = ""
    ) -> Block | None:
        """Returns the gradient of a block; ``within`` is the name of the layer that contains it."""
        if block.kind == "box":
            children = [self._gradient_leaf(same) for same in owned.get(block, {}).values()]
        else:
            layer = block.name if block.kind == "layer" else ""
            inner = [self._counterpart(child, owned, layer) for child in reversed(block.children)]
            children = [child for child in inner if child is not None]
        if not children:
            return None
        if len(children) == 1 and block.kind == "box":
            children[0].twin = block
            return children[0]
        kind = "gradient" if block.kind == "box" else block.kind
        return Block(
            kind,
            block.name or within,
            children,
            times=block.times if kind != "gradient" else 1,
            backward=True,
            twin=block,
            names=block.names,
        )

    def _gradient_leaf(self, boxes: Sequence[Box]) -> Block:
        nodes = [node for box in boxes for node in box.nodes]
        sources = [source for box in boxes for source in box.sources]
        outputs = [i for box in boxes for i in box.outputs]
        block = leaf(Box(nodes, list(dict.fromkeys(sources)), outputs))
        self.home.update(dict.fromkeys(nodes, block))
        self.turn.update({node: self.turn[self.owners[node]] for node in nodes})
        return block

    # Variables and other leaves

    def place_leaves(self, root: Block, room: int) -> None:
        """Adds the boxes that compute nothing, each to the repeat whose steps read it."""
        parents = {child: block for block in root.walk() for child in block.children}
        readers: dict[Node, list[Node]] = defaultdict(list)
        for box in self.boxes:
            for source, _ in box.sources:
                readers[self.boxes[source].node].append(box.node)
        groups: dict[object, list[Box]] = defaultdict(list)
        for box in self.by_age:
            if box.node not in self.home:
                read = [one for one in readers[box.node] if one not in self.owners]
                alone = self.rolled and len(read) == 1 and not box.outputs
                groups[self._alike(box.node, read[0]) if alone else box.node].append(box)
        tops: list[Block] = []
        for key, group in groups.items():
            self._place_group(key, group, parents, tops)
        root.children = [*_few(tops, room), *root.children]

    def _alike(self, leaf: Node, reader: Node) -> object:
        """Returns a key that leaves share if the steps of a repeat read them in one place."""
        home = self.home[reader]
        assert home.box is not None
        place = next(
            i for i, one in enumerate(reader.inputs) if one is not None and one.source is leaf
        )
        return (home, leaf.types, place) if len(home.box.nodes) > 1 else leaf

    def _place_group(
        self, key: object, group: list[Box], parents: dict[Block, Block], tops: list[Block]
    ) -> None:
        if not isinstance(key, tuple) or len(group) < _FEWEST_ALIKE:
            leaves = [leaf(box) for box in group]
            self._settle(leaves)
            tops += leaves
            return
        nodes = [node for box in group for node in box.nodes]
        block = leaf(Box(nodes, []))
        self._settle([block])
        at = parents[key[0]]
        while at.kind != "repeat" and at in parents:
            at = parents[at]
        at.children.insert(0, block)

    # Edges

    def edges(self, root: Block) -> list[Edge]:
        """Returns the edges between the blocks of boxes."""
        repeats = _repeats_around(root)
        result: dict[Edge, None] = {}
        for box in self.boxes:
            target = self.home[box.node]
            for number, output in box.sources:
                node = self.boxes[number].node
                source = self.home[node]
                over = self._carried(node, box.node, repeats)
                if source is not target or over is not None:
                    result[Edge(source, output, target, over)] = None
        return list(result)

    def _carried(
        self, node: Node, reader: Node, repeats: dict[Block, list[tuple[Block, int]]]
    ) -> Block | None:
        """Returns the outermost repeat in which a value goes from one step to another."""
        if not node.inputs:
            return None
        pairs = zip(repeats[self.home[node]], repeats[self.home[reader]], strict=False)
        for (one, steps), (other, _) in pairs:
            if one is not other:
                break
            if self._step(node, steps) != self._step(reader, steps):
                return one
        return None

    def _step(self, node: Node, steps: int) -> int:
        """Returns the step that contains a node, of ``steps`` that a repeat has in all."""
        owner = self.owners.get(node, node)
        box = self.home[owner].box
        assert box is not None
        return self.turn[node] * steps // len(box.nodes)


def _repeats_around(root: Block) -> dict[Block, list[tuple[Block, int]]]:
    """Returns for each block the repeats around it, and the number of steps of each in all."""
    result: dict[Block, list[tuple[Block, int]]] = {root: []}
    for block in root.walk():
        around = result[block]
        if block.kind == "repeat":
            before = around[-1][1] if around else 1
            around = [*around, (block, before * block.times)]
        result.update(dict.fromkeys(block.children, around))
    return result


def _few(blocks: list[Block], room: int) -> list[Block]:
    """Returns variables as they are, or as one block if they are many."""
    if len(blocks) <= room:
        return blocks
    return [Block("variables", "variables", blocks)]


def _sort(root: Block, edges: Sequence[Edge], parents: dict[Block, Block]) -> None:
    """Sorts the children of each block so that they follow those that they read, if possible."""
    reads: dict[Block, dict[Block, None]] = defaultdict(dict)
    for edge in edges:
        if edge.over is None:
            one, other = _apart(edge.source, edge.target, parents)
            if one is not other:
                reads[other][one] = None
    for block in root.walk():
        block.children = ordered(block.children, reads)


def _apart(source: Block, target: Block, parents: dict[Block, Block]) -> tuple[Block, Block]:
    """Returns the blocks around ``source`` and ``target`` that are in the same block."""
    up = {}
    one = source
    while one in parents:
        up[parents[one]] = one
        one = parents[one]
    other = target
    while parents[other] not in up:
        other = parents[other]
    return up[parents[other]], other
