"""The text in the boxes of a drawing, and their hover text."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from registry.errors import NameConflictError
from registry.operator.attributes import REQUIRED, identity_key
from registry.operator.bodies import Body
from registry.operator.operator import Operator
from symop.drawing.blocks import Block
from symop.drawing.boxes import Box, is_backward, is_operator
from symop.drawing.outline import bodies_in
from symop.drawing.scopes import local_name
from symop.drawing.subject import Subject
from symop.drawing.svg import CHIP_ROW, INK, MUTED, Card, Chip, Line
from symop.graph.naming import names_of
from symop.graph.nodes import ARRAY, CONSTANT, DEFERRED, VARIABLE, Node, topological

LONGEST_TEXT = 44
LONGEST_LIST = 24
HEADING_WIDTH = 160.0


class Labels:
    """Turns boxes and blocks into cards."""

    def __init__(self, subject: Subject, inside: frozenset[Node]) -> None:
        """Names the nodes; ``inside`` are the leaves without a box of their own."""
        self.subject, self.inside = subject, inside
        self.names = _all_names(subject.outputs)
        self.outputs: Sequence[str] = subject.names

    def card(self, box: Box, *, times: bool = True, outputs: Sequence[str] | None = None) -> Card:
        """Returns the text and hover text of a box.

        Args:
            box: the box.
            times: whether to say how many nodes it represents.
            outputs: the names of the outputs that it may contain; those of the graph by default.
        """
        lines = self._single(box)
        if box.times > 1 and times:
            lines[0] = lines[0]._replace(text=f"{lines[0].text} × {box.times:,}")
        chips = [*self._input_chips(box), *self._output_chips(box.outputs, outputs)]
        paint = self.paint(box.node)
        return Card(paint, lines, _in_rows(chips), self.hover(box), box.times > 1)

    def block_card(self, block: Block, outputs: Sequence[str] | None = None) -> Card:
        """Returns the card of a folded block; ``outputs`` are as for ``card``."""
        boxes = block.boxes()
        operators = [box.node for box in boxes if is_operator(box.node)]
        lines = [_bold(_clipped(self.title(block)))]
        if not operators:
            lines.append(_small(shortened_list([self.names[box.node] for box in boxes], 3)))
        else:
            lines.append(_small(_tally(operators, 3)))
            names = block.names
            if len(names) > 1:
                lines.append(_small(_clipped(f"{names[0]} … {names[-1]}")))
            elif block.kind == "part":
                lines += self._lines_of_code(boxes)
            if not block.backward and len(block.children) > 1:
                lines += self._type_line(boxes[-1].node)
        chips = [] if block.kind == "body" else self._output_chips(block.outputs(), outputs)
        listed = [f"{self.names[box.node]}  {type_text(box.node)}" for box in boxes[:LONGEST_LIST]]
        more = len(boxes) - len(listed)
        hover = [self.about(block), *listed, *([f"and {more} more"] if more else [])]
        return Card(self.block_paint(block), lines, _in_rows(chips), "\n".join(hover), True)

    def title(self, block: Block) -> str:
        """Returns the name of a block."""
        if block.box is not None:
            return " ".join(line.text for line in self._single(block.box)[:1])
        text = self._core(block)
        if block.backward and block.twin is not None:
            text = f"gradient of {text}"
        return f"{text} × {block.times:,}" if block.times > 1 else text

    def _core(self, block: Block) -> str:
        if block.kind == "gradient" and block.twin is not None and block.twin.box is not None:
            name = self._short_name(block.twin.box)
            return kind_name(block.twin.box.node) if name.endswith(block.name or "\n") else name
        if block.kind == "variables":
            return counted(len(block.children), "variable")
        if block.kind in ("updates", "body"):
            return block.name.replace("_", " ")
        return block.name or counted(
            sum(is_operator(box.node) for box in (block.twin or block).boxes()), "operator"
        )

    def _lines_of_code(self, boxes: Sequence[Box]) -> list[Line]:
        """Returns the lines of the user's file that built ``boxes``, if there are several."""
        places = {box.node.origin[:2] for box in boxes if box.node.origin is not None}
        files, numbers = {file for file, _ in places}, [line for _, line in places]
        if len(files) != 1 or len(numbers) < 2:
            return []
        return [_small(f"{base_name(files.pop())}:{min(numbers)}–{max(numbers)}")]

    def about(self, block: Block) -> str:
        """Returns what a block is, in words."""
        operators = sum(is_operator(box.node) * box.times for box in block.boxes())
        repeats = f", in {block.times:,} equal steps" if block.times > 1 else ""
        return f"{self.title(block)}: {counted(operators, 'operator')}{repeats}"

    def block_paint(self, block: Block) -> str:
        """Returns the kind of color of a folded block, or of the frame of an open one."""
        if block.kind == "updates":
            return "update"
        if block.backward:
            return "gradient"
        return self.paint(block.boxes()[0].node) if block.kind == "variables" else "forward"

    def paint(self, node: Node) -> str:
        """Returns the kind of color of a box."""
        if node.op is VARIABLE:
            return self.subject.roles.get(node.name or "", node.attributes[2])
        if node in self.subject.updates:
            return "update"
        if is_operator(node):
            return "gradient" if is_backward(node) else "forward"
        return "constant"

    def _short_name(self, box: Box) -> str:
        """Returns the name of an operator, or that of its kind; of equal ones the name in scope."""
        node = box.node
        if node.name is None:
            return kind_name(node)
        names = {local_name(one.name, one) for one in box.nodes if one.name is not None}
        return node.name if box.times == 1 else _in_common(sorted(names))

    def _single(self, box: Box) -> list[Line]:
        node = box.node
        kind = kind_name(node)
        if not is_operator(node):
            name = (
                _in_common([self.names[one] for one in box.nodes]) if node.op is VARIABLE else kind
            )
            return [_bold(_clipped(name)), *self._type_line(node)]
        head, name = _clipped(kind), self._short_name(box)
        if node.name is not None and name.startswith(node.op.name):
            head = _clipped(name)
        elif node.name is not None:
            head = f"{_clipped(name, 30)}: {head}"
        details = [*self._numbers(node), *_attributes(node)]
        lines = [_bold(" ".join([head, ", ".join(details)]).strip())]
        if lines[0].width > HEADING_WIDTH and details:
            lines = [_bold(head), *(_small(text, INK) for text in _wrapped(details))]
        return lines + self._type_line(node)

    def _type_line(self, node: Node) -> list[Line]:
        text = type_text(node)
        return [_small(_clipped(text))] if text else []

    def _numbers(self, node: Node) -> list[str]:
        """Returns the constants among the inputs, by slot where the order matters."""
        operator = node.op
        texts = []
        for i, child in enumerate(node.inputs):
            if child is not None and child.op is CONSTANT and child in self.inside:
                if isinstance(operator, Operator) and operator.slot_of(i).role != "input":
                    continue
                number = _value_text(child.constant)
                free = not isinstance(operator, Operator) or operator.commutative
                if free or operator.slot_of(i).variadic:  # type: ignore[union-attr]
                    texts.append(number)
                else:
                    texts.append(f"{operator.slot_of(i).name}={number}")  # type: ignore[union-attr]
        return texts

    def _input_chips(self, box: Box) -> list[Chip]:
        node, chips = box.node, []
        for i, child in enumerate(node.inputs):
            if child is not None and child in self.inside and child.op is not CONSTANT:
                name = self.names[child] if child.op is VARIABLE else kind_name(child)
                slot = node.op.slot_of(i).name if isinstance(node.op, Operator) else ""
                # The name of a variable created by a layer ends with its slot; the slot suffices.
                short = slot if slot and name == f"{self.names[node]}_{slot}" else name
                if short == name and box.times > 1 and child.op is VARIABLE:
                    same = [one.inputs[i] for one in box.nodes if len(one.inputs) > i]
                    short = _in_common([self.names[one] for one in same if one in self.inside])
                shape = _shape_text(child) if child.op in (VARIABLE, ARRAY) else ""
                text = f"{_clipped(short, 20)} {shape}".strip()
                chips.append(Chip(text, self.paint(child), f"{name}\n{type_text(child)}"))
        return chips

    def _output_chips(
        self, outputs: Sequence[int], names: Sequence[str] | None = None
    ) -> list[Chip]:
        names = self.outputs if names is None else names
        if len(outputs) > 3:  # more would hide the operator
            listed = "\n".join(names[i] for i in outputs[:LONGEST_LIST])
            common = shared_meaning([names[i] for i in outputs])
            return [Chip(f"→ {len(outputs)} {common}", "output", listed)]
        return [Chip(f"→ {_clipped(names[i], 28)}", "output") for i in outputs]

    def hover(self, box: Box) -> str:
        """Returns all that is known about a box, in lines."""
        lines = self._about(box.node)
        if box.times > 1:
            lines.insert(0, f"{box.times} times; one of them:")
        return "\n".join(lines)

    def all_cards(self, root: Block, opened: Collection[Block] | None = None) -> dict[Block, Card]:
        """Returns the card of each block, or of those that are seen if only ``opened`` are open."""
        cards: dict[Block, Card] = {}
        waiting: list[tuple[Block, int, Sequence[str] | None]] = [(root, 1, None)]
        while waiting:
            block, times, outputs = waiting.pop()
            is_open = opened is None or block in opened
            if opened is None or not is_open:
                if block.box is not None:
                    many = block.box.times != times
                    cards[block] = self.card(block.box, times=many, outputs=outputs)
                else:
                    cards[block] = self.block_card(block, outputs)
            if is_open:
                times = times * block.times if block.kind == "repeat" else times
                outputs = block.names if block.kind == "body" else outputs
                inside = 1 if block.kind == "body" else times
                waiting += [(child, inside, outputs) for child in reversed(block.children)]
        return cards

    def _about(self, node: Node) -> list[str]:
        lines = [f"{self.names[node]}: {kind_name(node)}"]
        operator = node.op
        for i, child in enumerate(node.inputs):
            if child is not None:
                slot = f"{operator.slot_of(i).name}: " if isinstance(operator, Operator) else ""
                lines.append(f"reads {slot}{self.names[child]}  {type_text(child)}".rstrip())
        lines.append(f"gives {all_types(node)}")
        return lines + [_said(name, value) for name, value in call_facts(node)]


def _said(name: str, value: str) -> str:
    return f"{name} {value}" if name in ("built at", "in the gradient of") else f"{name} = {value}"


def call_facts(node: Node) -> list[list[str]]:
    """Returns names and values of what is known of a call: attributes, line, forward operator."""
    facts = []
    if isinstance(node.op, Operator):
        values = node.op.attribute_dict(node.attributes)
        facts += [
            [name, _value_text(value)]
            for name, value in values.items()
            if not isinstance(value, Body)
        ]
    if node.origin is not None and node.origin.file:
        facts.append(["built at", f"{base_name(node.origin.file)}:{node.origin.line}"])
    if is_backward(node) and node.origin is not None:
        facts.append(["in the gradient of", str(node.origin.forward)])
    return facts


def _all_names(outputs: Sequence[Node]) -> dict[Node, str]:
    """Returns the names of the nodes of a graph, and of those of the bodies inside."""
    order = topological(outputs)
    try:
        names = names_of(order)
    except NameConflictError:
        # A graph with conflicting names cannot be bound, but can be drawn.
        names = {node: node.name or node.op.name for node in order}
    for node in order:
        for _, body in bodies_in(node):
            names = {**_all_names(body.results), **names}
            values = zip(body.parameters[::-1], node.inputs[::-1], strict=False)
            names.update({one: names[value] for one, value in values if value is not None})
    return names


def _in_common(names: Sequence[str]) -> str:
    """Returns a name of equal nodes, with an asterisk in place of numbers that differ."""
    return names[0] if len(set(names)) == 1 else re.sub(r"[0-9]+", "*", names[0])


def base_name(file: str) -> str:
    """Returns the name of a file alone: a shared drawing must not reveal its author's folders."""
    return re.split(r"[\\/]", file)[-1]


def shared_meaning(names: Sequence[str]) -> str:
    """Returns what several outputs are: ``gradients`` if all of them are, else ``outputs``."""
    return "gradients" if all(one.startswith("gradient of ") for one in names) else "outputs"


def kind_name(node: Node) -> str:
    """Returns the kind of a node: its operator, or the value of a constant."""
    if node.op is DEFERRED:
        return str(node.attributes[0].name)
    if node.op is CONSTANT:
        return _value_text(node.constant)
    return node.op.name.replace("random_", "")


def _attributes(node: Node) -> list[str]:
    """Returns the attributes that differ from their default."""
    if not isinstance(node.op, Operator):
        return []
    return [
        f"{attribute.name}={_value_text(value)}"
        for attribute, value in zip(node.op.attributes, node.attributes, strict=True)
        if not isinstance(value, Body)
        and (
            attribute.default is REQUIRED or identity_key(value) != identity_key(attribute.default)
        )
    ]


def _value_text(value: Any) -> str:
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) and len(repr(value)) < 8 else f"{value:.4g}"
    if isinstance(value, tuple):
        inner = ",".join(_value_text(entry) for entry in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, np.dtype):
        return str(value.name)
    return str(value)


def type_text(node: Node) -> str:
    """Returns the type of the first visible output, and the number of further outputs."""
    if node.types is None:
        if node.op is VARIABLE and node.attributes[1] is not None:
            return f"{node.attributes[1].name}[?]"
        return ""
    seen = node.op.visible if isinstance(node.op, Operator) else range(len(node.types))
    more = len(seen) - 1
    first = str(node.types[next(iter(seen), 0)])
    return f"{first} and {more} more" if more > 0 else first


def all_types(node: Node) -> str:
    """Returns the types of all outputs."""
    if node.types is None:
        return "a type that is not known yet"
    if isinstance(node.op, Operator) and not node.op.single:
        pairs = zip(node.op.outputs, node.types, strict=True)
        return ", ".join(f"{name}: {one}" for name, one in pairs)
    return str(node.types[0])


def _shape_text(node: Node) -> str:
    if node.types is None:
        return ""
    return "(" + ",".join(map(str, node.types[0].shape)) + ")"


def _tally(nodes: Iterable[Node], longest: int = 4) -> str:
    """Returns operator names with their counts, most frequent first."""
    counts = Counter(kind_name(node) for node in nodes).most_common()
    texts = [f"{name} ×{count}" if count > 1 else name for name, count in counts]
    return shortened_list(texts, longest)


def shortened_list(texts: Sequence[str], longest: int = LONGEST_LIST) -> str:
    """Returns the first ``longest`` of ``texts``, with an ellipsis for the others."""
    shown = [_clipped(text) for text in texts[:longest]]
    return ", ".join([*shown, "…"] if len(texts) > longest else shown)


def _clipped(text: str, longest: int = LONGEST_TEXT) -> str:
    """Returns ``text`` with its middle omitted if it is long."""
    if len(text) <= longest:
        return text
    half = longest // 2 - 1
    return f"{text[:half]}…{text[-half:]}"


def _wrapped(parts: Sequence[str]) -> list[str]:
    """Returns ``parts`` joined by commas, wrapped into lines."""
    lines = [""]
    for part in parts:
        text = _clipped(part)
        if lines[-1] and len(lines[-1]) + len(text) > LONGEST_TEXT - 10:
            lines[-1] += ","
            lines.append("")
        lines[-1] += f", {text}" if lines[-1] else text
    return lines


def _bold(text: str) -> Line:
    return Line(text, bold=True)


def _small(text: str, color: str = MUTED) -> Line:
    return Line(text, 10.5, color)


def _in_rows(chips: Sequence[Chip]) -> list[list[Chip]]:
    rows: list[list[Chip]] = []
    width = CHIP_ROW
    for chip in chips:
        if width + chip.width > CHIP_ROW:
            rows.append([])
            width = 0.0
        rows[-1].append(chip)
        width += chip.width + 5
    return rows


def counted(number: int, noun: str, plural: str = "") -> str:
    """Returns a number with its noun: ``1 box``, ``12 boxes``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
