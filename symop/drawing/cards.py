"""The text in the boxes of a drawing, and their hover text."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from registry.errors import NameConflictError
from registry.operator.attributes import REQUIRED, identity_key
from registry.operator.operator import Operator
from symop.drawing.boxes import Box, is_backward, is_operator
from symop.drawing.svg import CHIP_ROW, INK, MUTED, Card, Chip, Line
from symop.graph.naming import names_of
from symop.graph.nodes import ARRAY, CONSTANT, DEFERRED, VARIABLE, Node, topological

LONGEST_TEXT = 44
LONGEST_LIST = 24
HEADING_WIDTH = 160.0


class Labels:
    """Turns boxes into cards."""

    def __init__(
        self, outputs: Sequence[Node], inside: frozenset[Node], names: Sequence[str] | None
    ) -> None:
        """Names the nodes; ``inside`` are the leaves without a box of their own."""
        order = topological(outputs)
        try:
            self.names = names_of(order)
        except NameConflictError:
            # A graph with conflicting names cannot be bound, but can be drawn.
            self.names = {node: node.name or node.op.name for node in order}
        self.inside = inside
        many = len(outputs) > 1
        self.outputs = names or [f"output {i}" if many else "output" for i in range(len(outputs))]

    def card(self, box: Box) -> Card:
        """Returns the text and hover text of a box."""
        lines = self._lines(box)
        if box.times > 1:
            lines[0] = lines[0]._replace(text=f"{lines[0].text} × {box.times:,}")
        chips = self._input_chips(box.node) if len(box.shown) == 1 else []
        rows = _in_rows([*chips, *self._output_chips(box)])
        return Card(_paint(box.node), lines, rows, self._hover(box), len(box.nodes) > 1)

    def _lines(self, box: Box) -> list[Line]:
        node, count = box.node, len(box.shown)
        if count == 1:
            return self._single(node)
        operators = [one for one in box.shown if is_operator(one)]
        if not operators:
            texts = [self.names[one] for one in box.shown]
            return [_bold(counted(count, node.op.name)), _small(shortened_list(texts, 3))]
        total = counted(len(operators), "operator")
        inner = _small(_tally(operators))
        if box.fold == "gradient" and node.origin is not None:
            return [_bold(f"gradient of {node.origin.forward}"), _small(total), inner]
        lead = "gradient: " if box.backward else ""
        return [_bold(lead + total), inner, *self._type_line(box.shown[-1])]

    def _single(self, node: Node) -> list[Line]:
        kind = _kind_name(node)
        if not is_operator(node):
            name = self.names[node] if node.op is VARIABLE else kind
            return [_bold(_clipped(name)), *self._type_line(node)]
        head = _clipped(kind)
        if node.name is not None and node.name.startswith(node.op.name):
            head = _clipped(node.name)
        elif node.name is not None:
            head = f"{_clipped(node.name, 30)}: {head}"
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
                number = _value_text(child.constant)
                free = not isinstance(operator, Operator) or operator.commutative
                if free or operator.slot_of(i).variadic:  # type: ignore[union-attr]
                    texts.append(number)
                else:
                    texts.append(f"{operator.slot_of(i).name}={number}")  # type: ignore[union-attr]
        return texts

    def _input_chips(self, node: Node) -> list[Chip]:
        chips = []
        for i, child in enumerate(node.inputs):
            if child is not None and child in self.inside and child.op is not CONSTANT:
                name = self.names[child] if child.op is VARIABLE else _kind_name(child)
                slot = node.op.slot_of(i).name if isinstance(node.op, Operator) else ""
                # The name of a variable created by a layer ends with its slot; the slot suffices.
                short = slot if slot and name == f"{self.names[node]}_{slot}" else name
                shape = _shape_text(child) if child.op in (VARIABLE, ARRAY) else ""
                text = f"{_clipped(short, 20)} {shape}".strip()
                chips.append(Chip(text, _paint(child), f"{name}\n{type_text(child)}"))
        return chips

    def _output_chips(self, box: Box) -> list[Chip]:
        if len(box.outputs) > 3:  # more would hide the operator
            listed = "\n".join(self.outputs[i] for i in box.outputs[:LONGEST_LIST])
            return [Chip(f"→ {len(box.outputs)} outputs", "output", listed)]
        return [Chip(f"→ {_clipped(self.outputs[i], 24)}", "output") for i in box.outputs]

    def _hover(self, box: Box) -> str:
        if len(box.shown) == 1:
            lines = self._about(box.node)
            if box.times > 1:
                lines.insert(0, f"{box.times} times; one of them:")
            return "\n".join(lines)
        operators = [node for node in box.shown if is_operator(node)]
        listed = [f"{self.names[node]}  {type_text(node)}" for node in box.shown[:LONGEST_LIST]]
        more = len(box.shown) - len(listed)
        rest = [f"and {more} more"] if more else []
        repeated = [f"{box.times} times; one of them:"] if box.times > 1 else []
        return "\n".join([*repeated, _tally(operators, LONGEST_LIST), *listed, *rest])

    def _about(self, node: Node) -> list[str]:
        lines = [f"{self.names[node]}: {_kind_name(node)}"]
        operator = node.op
        if isinstance(operator, Operator):
            values = operator.attribute_dict(node.attributes)
            lines += [f"{name} = {_value_text(value)}" for name, value in values.items()]
        for i, child in enumerate(node.inputs):
            if child is not None:
                slot = f"{operator.slot_of(i).name}: " if isinstance(operator, Operator) else ""
                lines.append(f"reads {slot}{self.names[child]}  {type_text(child)}".rstrip())
        lines.append(f"gives {_all_types(node)}")
        if node.origin is not None and node.origin.file:
            # Only the file name: a shared drawing must not reveal its author's folders.
            file = re.split(r"[\\/]", node.origin.file)[-1]
            lines.append(f"built at {file}:{node.origin.line}")
        if is_backward(node) and node.origin is not None:
            lines.append(f"in the gradient of {node.origin.forward}")
        return lines


def _paint(node: Node) -> str:
    if node.op is VARIABLE:
        return "argument" if node.attributes[2] == "argument" else "state"
    if is_operator(node):
        return "gradient" if is_backward(node) else "forward"
    return "constant"


def _kind_name(node: Node) -> str:
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
        if attribute.default is REQUIRED or identity_key(value) != identity_key(attribute.default)
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


def _all_types(node: Node) -> str:
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
    counts = Counter(_kind_name(node) for node in nodes).most_common()
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
