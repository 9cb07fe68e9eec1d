"""Drawings of graphs as self-contained SVG text, for notebooks and files.

Forward operators and their gradients have different colors and columns. Numbers and parameters are
drawn inside the operators that read them. A large graph is folded until it is readable.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from registry.operator.operator import Operator
from symop.drawing.boxes import Box, boxes_of, is_backward, is_operator
from symop.drawing.cards import Labels, counted, shortened_list, type_text
from symop.drawing.folding import folded
from symop.drawing.layout import Layout, arrange
from symop.drawing.svg import Wire, one_line, picture
from symop.graph.nodes import VARIABLE, Node, topological

MAX_NODES = 60


def draw(
    outputs: Sequence[Node],
    *,
    max_nodes: int = MAX_NODES,
    title: str | None = None,
    names: Sequence[str] | None = None,
) -> str:
    """Returns the graph of ``outputs`` as the text of an SVG picture; equal graphs give equal text.

    Args:
        outputs: the outputs of the graph.
        max_nodes: the maximal number of boxes (at least 4); a larger graph is folded.
        title: the heading; defaults to the number of operators.
        names: a name for each output.
    """
    given, inside = boxes_of(outputs)
    boxes = folded(given, max_nodes)
    labels = Labels(outputs, inside, names)
    cards = [labels.card(box) for box in boxes]
    edges = list(dict.fromkeys((s, i) for i, box in enumerate(boxes) for s, _ in box.sources))
    layout = arrange([card.size for card in cards], edges, [int(box.backward) for box in boxes])
    notes = [text for text in (summary(box.node for box in given), _folding(boxes)) if text]
    head, notes = (title, notes) if title else (notes[0], notes[1:])
    return picture(head, notes, cards, _wires(boxes, edges, layout), layout)


def html(
    outputs: Sequence[Node], names: Sequence[str] | None = None, *, max_nodes: int = MAX_NODES
) -> str:
    """Returns the drawing for a notebook: scrollable if large, with a list of arguments."""
    shown = draw(outputs, max_nodes=max_nodes, names=names)
    order = topological(outputs)
    arguments = [f"{node.name} {type_text(node)}".strip() for node in order if node.op is VARIABLE]
    text = one_line(f"{summary(order)}; arguments: {shortened_list(arguments) or 'none'}")
    return (
        f'<div><div style="overflow:auto;max-height:900px">{shown}</div>'
        f'<div style="font-size:90%">{text}</div></div>'
    )


def summary(nodes: Iterable[Node]) -> str:
    """Counts the operators among ``nodes``: ``12 operators and 30 more in gradients``."""
    count = Counter(is_backward(node) for node in nodes if is_operator(node))
    forward = counted(count[False], "operator")
    return f"{forward} and {count[True]:,} more in gradients" if count[True] else forward


def _folding(boxes: Sequence[Box]) -> str:
    """Returns the number of folded operators and boxes, as text."""
    several = [box.operators for box in boxes if box.operators > 1]
    if not several:
        return ""
    total, count = counted(sum(several), "operator"), counted(len(several), "box", "boxes")
    return f"{total} folded into {count}"


def _wires(boxes: Sequence[Box], edges: Sequence[tuple[int, int]], layout: Layout) -> list[Wire]:
    wires = []
    for (source, target), points in zip(edges, layout.paths, strict=True):
        start, end = boxes[source], boxes[target]
        kind = "gradient" if start.backward else "residual" if end.backward else "forward"
        read = sorted({output for box, output in end.sources if box == source})
        label = _output_names(start, read)
        wires.append(Wire(points, kind, label, start.times > 1 < end.times and source > target))
    return wires


def _output_names(box: Box, read: Sequence[int]) -> str:
    """Returns the operator outputs that an edge carries; empty if it carries only the first."""
    operator = box.node.op
    if len(box.shown) > 1 or not isinstance(operator, Operator):
        return ""
    return (
        "" if list(read) == [operator.visible[0]] else ", ".join(operator.outputs[i] for i in read)
    )
