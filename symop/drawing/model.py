"""The model of a drawing: all that the interactive page shows, as plain data.

A model is a dict of

- ``title``, ``summary``: the heading, and a line below it;
- ``blocks``: a dict for each block, of which the first is the whole graph, each after its parent:
  ``parent``, its number; ``kind``, as in ``Block``; ``title``; ``lines``, the text of its card with
  the kind of each line; ``chips``, the labels in its card, with their paint and hover text;
  ``paint``, its kind of color; ``back``, whether it belongs to a gradient; ``twin``, the number of
  the block whose gradient it is, or -1; ``stacked``, whether it represents several operators;
  ``round``, whether it computes nothing; ``about``, its hover text by line; ``facts``, names and
  values for the panel and for searches; ``op``, its operator; ``cost``, the ``flops``, ``bytes``
  and ``seconds`` of an operator, each of which may be None. Those equal to ``DEFAULTS`` are left
  out;
- ``edges``: the number of the block that a value comes from, its output, the block that reads it,
  and the repeat from one of whose steps to the next it is carried, or -1;
- ``open``: the blocks that are open at first;
- ``color``: what colors show at first; ``legend``: the paints that occur, with their meaning;
- ``operators``: by name ``signature``, ``page`` and ``gradient`` of each operator that occurs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from registry.operator.operator import Operator
from symop.drawing.blocks import Block
from symop.drawing.boxes import boxes_of, is_operator
from symop.drawing.cards import Labels, all_types, call_facts, kind_name
from symop.drawing.draw import summary
from symop.drawing.outline import Outline, outline_of
from symop.drawing.subject import Subject
from symop.drawing.svg import INK, PAINTS, Card
from symop.drawing.view import open_blocks
from symop.graph.nodes import Node
from symop.passes.remat.runs import bytes_of
from symop.regions.bodies import steps_of

_FIRST_OPENED = 24
"""The number of boxes up to which blocks are open at first."""
_MOST_NAMES = 300
"""The number of names of equal operators that are listed."""

DEFAULTS: dict[str, Any] = {
    **{"parent": -1, "chips": [], "back": False, "twin": -1, "stacked": False, "round": False},
    **{"op": "", "cost": None},
}
"""The values of fields that a block lacks; ``viewer/model.js`` has the same."""

Page = dict[str, str]
"""The ``signature``, ``page`` and ``gradient`` of an operator, as text."""


class Spent(NamedTuple):
    """The cost of an operator each time that it runs.

    Attributes:
        flops: the floating-point operations; None if they are not known.
        seconds: the time; None if it was not measured.
    """

    flops: float | None
    seconds: float | None


def model_of(
    subject: Subject,
    *,
    rolled: bool = True,
    costs: Mapping[Node, Spent] | None = None,
    page_of: Callable[[Node], Page] | None = None,
) -> dict[str, Any]:
    """Returns the model of a graph.

    Args:
        subject: the graph.
        rolled: whether equal blocks are drawn once.
        costs: what the operators cost; the sizes of results are always part of the model.
        page_of: returns the page of an operator, given a call of it.
    """
    boxes, _ = boxes_of(subject.outputs)
    outline = outline_of(subject.outputs, rolled=rolled, updates=subject.updates)
    heading = summary(box.node for box in boxes)
    return {
        "title": subject.title or heading,
        "summary": heading if subject.title else "",
        "color": "kind",
        **_Numbered(subject, outline, costs or {}).data(),
        "operators": _pages(outline, page_of) if page_of else {},
    }


def _pages(outline: Outline, page_of: Callable[[Node], Page]) -> dict[str, Page]:
    calls: dict[str, Node] = {}
    for box in outline.root.boxes():
        if isinstance(box.node.op, Operator):
            calls.setdefault(box.node.op.name, box.node)
    return {name: page_of(node) for name, node in calls.items()}


class _Numbered:
    """The blocks of an outline with their numbers."""

    def __init__(self, subject: Subject, outline: Outline, costs: Mapping[Node, Spent]) -> None:
        self.outline, self.costs = outline, costs
        self.labels = Labels(subject, outline.inside)
        self.cards = self.labels.all_cards(outline.root)
        self.number = {block: i for i, block in enumerate(outline.root.walk())}
        self.steps = _steps(outline.root)

    def data(self) -> dict[str, Any]:
        """Returns the parts of the model that are about blocks."""
        number = self.number
        opened = [
            block for block in open_blocks(self.outline, _FIRST_OPENED) if block.kind != "graph"
        ]
        paints = {self.cards[one].paint for one in number if one.kind != "graph"}
        paints |= {c.paint for one in self.cards.values() for row in one.chips for c in row}
        return {
            "blocks": [self._block(block) for block in number],
            "edges": [
                [
                    number[edge.source],
                    edge.output,
                    number[edge.target],
                    -1 if edge.over is None else number[edge.over],
                ]
                for edge in self.outline.edges
            ],
            "open": sorted(number[block] for block in opened),
            "legend": [[name, paint.legend] for name, paint in PAINTS.items() if name in paints],
        }

    def _block(self, block: Block) -> dict[str, Any]:
        card = self.cards[block]
        around = self.outline.parents.get(block)
        record = {
            "parent": -1 if around is None else self.number[around],
            "kind": block.kind,
            "title": self.labels.title(block),
            "lines": _lines(card),
            "chips": [[chip.text, chip.paint, chip.hover] for row in card.chips for chip in row],
            "paint": card.paint,
            "back": block.backward,
            "twin": -1 if block.twin is None else self.number[block.twin],
            "stacked": card.stacked,
            "round": block.box is not None and not is_operator(block.box.node),
            "about": card.hover.split("\n"),
            "facts": self._facts(block),
            "op": self._operator(block),
            "cost": self._cost(block),
        }
        return {
            key: one for key, one in record.items() if key not in DEFAULTS or one != DEFAULTS[key]
        }

    def _operator(self, block: Block) -> str:
        box = block.box
        return box.node.op.name if box is not None and isinstance(box.node.op, Operator) else ""

    def _facts(self, block: Block) -> list[list[str]]:
        if block.box is None:
            operators = sum(is_operator(box.node) * box.times for box in block.boxes())
            facts = [["operators", f"{operators:,}"]]
        else:
            node = block.box.node
            facts = [["kind", kind_name(node)], ["type", all_types(node)], *call_facts(node)]
            if block.box.times > 1:
                facts.append(["times", f"{block.box.times:,}"])
                names = [self.labels.names[one] for one in block.box.nodes[:_MOST_NAMES]]
                facts.append(["names", ", ".join(dict.fromkeys(names))])
            else:
                facts.insert(0, ["name", self.labels.names[node]])
        if block.times > 1:
            facts.append(["steps", f"{block.times:,}"])
        if len(block.names) > 1 and block.kind != "body":
            facts.append(["names", ", ".join(block.names[:_MOST_NAMES])])
        return facts

    def _cost(self, block: Block) -> dict[str, float | None] | None:
        if block.box is None or not is_operator(block.box.node):
            return None
        nodes, times = block.box.nodes, self.steps[block]
        spent = [self.costs.get(node, Spent(None, None)) for node in nodes]
        # A call with bodies has the results of its operators inside counted there.
        return {
            "flops": _total([one.flops for one in spent], times),
            "bytes": sum(map(bytes_of, nodes)) * times,
            "seconds": _total([one.seconds for one in spent], times),
        }


def _total(values: Sequence[float | None], times: int) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) * times if known else None


def _steps(root: Block) -> dict[Block, int]:
    """Returns how often each block runs, as far as its loops tell."""
    result = {root: 1}
    for block in root.walk():
        inside = result[block]
        if block.kind == "call" and block.box is not None:
            inside *= steps_of(block.box.node)
        result.update(dict.fromkeys(block.children, inside))
    return result


def _lines(card: Card) -> list[list[str]]:
    """Returns the lines of a card, each with its kind: ``name``, ``detail`` or ``small``."""
    return [
        [line.text, "name" if line.bold else "detail" if line.color == INK else "small"]
        for line in card.lines
    ]
