"""Drawings of graphs as self-contained SVG text, for notebooks and files.

Forward operators and their gradients have different colors and columns. Numbers and parameters are
drawn inside the operators that read them. A large graph is folded until it is readable: into its
scopes, its repeated blocks and its layers, each with its gradient next to it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from registry.operator.operator import Operator
from symop.drawing.blocks import Block
from symop.drawing.boxes import Box, boxes_of, is_backward, is_operator
from symop.drawing.cards import Labels, counted, shortened_list, type_text
from symop.drawing.layout import Layout, arrange
from symop.drawing.nested import lay_out
from symop.drawing.outline import Outline, bodies_in, outline_of
from symop.drawing.subject import Subject, subject_of
from symop.drawing.svg import Card, Wire, one_line, picture
from symop.drawing.view import links_of, open_blocks
from symop.graph.nodes import VARIABLE, Node, topological

MAX_NODES = 60
FEWEST_BOXES = 4


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
    return draw_subject(subject_of(outputs, names, title), max_nodes=max_nodes)


def draw_subject(subject: Subject, *, max_nodes: int = MAX_NODES) -> str:
    """Returns the picture of ``subject`` with at most ``max_nodes`` boxes, at least 4."""
    boxes, inside = boxes_of(subject.outputs)
    labels = Labels(subject, inside)
    heading = summary(box.node for box in boxes)
    head, notes = (subject.title, [heading]) if subject.title else (heading, [])
    if len(boxes) <= max(max_nodes, FEWEST_BOXES) and not any(bodies_in(box.node) for box in boxes):
        return _flat(boxes, labels, head, notes)
    return _folded(subject, labels, head, notes, max(max_nodes, FEWEST_BOXES))


def html(
    outputs: Sequence[Node], names: Sequence[str] | None = None, *, max_nodes: int = MAX_NODES
) -> str:
    """Returns the drawing for a notebook: scrollable if large, with a list of arguments."""
    return subject_html(subject_of(outputs, names), max_nodes=max_nodes)


def subject_html(subject: Subject, *, max_nodes: int = MAX_NODES) -> str:
    """Returns the drawing of ``subject`` for a notebook, as ``html`` does."""
    shown = draw_subject(subject, max_nodes=max_nodes)
    order = topological(subject.outputs)
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


# Small graphs: every box is drawn ----------------------------------------------------------------


def _flat(boxes: Sequence[Box], labels: Labels, head: str, notes: Sequence[str]) -> str:
    cards = [labels.card(box) for box in boxes]
    edges = list(dict.fromkeys((s, i) for i, box in enumerate(boxes) for s, _ in box.sources))
    layout = arrange([card.size for card in cards], edges, [int(box.backward) for box in boxes])
    return picture(head, notes, cards, _wires(boxes, edges, layout), layout)


def _wires(boxes: Sequence[Box], edges: Sequence[tuple[int, int]], layout: Layout) -> list[Wire]:
    wires = []
    for (source, target), points in zip(edges, layout.paths, strict=True):
        start, end = boxes[source], boxes[target]
        kind = "gradient" if start.backward else "residual" if end.backward else "forward"
        read = sorted({output for box, output in end.sources if box == source})
        wires.append(Wire(points, kind, _output_names(start, read)))
    return wires


def _output_names(box: Box, read: Sequence[int]) -> str:
    """Returns the operator outputs that an edge carries; empty if it carries only the first."""
    operator = box.node.op
    if not isinstance(operator, Operator) or not read or list(read) == [operator.visible[0]]:
        return ""
    return ", ".join(operator.outputs[i] for i in read)


# Large graphs: blocks in blocks ------------------------------------------------------------------


def _folded(subject: Subject, labels: Labels, head: str, notes: Sequence[str], limit: int) -> str:
    outline = _outline(subject, limit)
    opened = open_blocks(outline, limit)
    links = links_of(outline, opened)
    cards = labels.all_cards(outline.root, opened)
    titles = {block: labels.title(block) for block in opened}
    sizes = {block: card.size for block, card in cards.items()}
    panel = lay_out(outline.root, opened, links, sizes, titles)
    centers = [panel.cards[block] for block in cards]
    layout = Layout(centers, [], panel.width, panel.height)
    notes = [*notes, *_folding(outline, cards)]
    frames = sorted(panel.frames, key=lambda one: -one.width * one.height)
    return picture(head, notes, list(cards.values()), panel.wires, layout, frames)


def _outline(subject: Subject, limit: int) -> Outline:
    """Returns the outline whose outermost blocks are at most ``limit``."""
    variables = max(1, min(12, limit // 5))
    sides = 2 if any(is_backward(node) for node in topological(subject.outputs)) else 1
    room = max(1, min(30, (limit - variables - bool(subject.updates)) // sides))
    return outline_of(subject.outputs, room=room, variables=variables, updates=subject.updates)


def _folding(outline: Outline, cards: dict[Block, Card]) -> list[str]:
    """Returns the number of folded operators and boxes, as text."""
    several = {
        block: sum(box.times for box in block.boxes() if is_operator(box.node)) for block in cards
    }
    folded = [count for count in several.values() if count > 1]
    if not folded:
        return []
    total, count = counted(sum(folded), "operator"), counted(len(folded), "box", "boxes")
    return [f"{total} folded into {count}"]
