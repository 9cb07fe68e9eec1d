"""Cards, and their rendering as self-contained SVG without scripts, web fonts or links."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from symop.drawing.layout import Layout
from symop.drawing.rows import Point

MARGIN = 18.0
PADDING = 10.0
CHIP_ROW = 250.0
CHIP_HEIGHT = 16.0
HEAD_LINE = 17.0
STRAIGHT = 0.5

FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
INK, MUTED, PAPER, FRAME = "#1f2933", "#5b6773", "#ffffff", "#d5dae0"


class Paint(NamedTuple):
    """The style of one kind of box."""

    fill: str
    stroke: str
    legend: str
    dash: str = ""


PAINTS = {
    "forward": Paint("#e7effc", "#4c78c4", "operator"),
    "gradient": Paint("#fdeedd", "#d07c24", "operator of a gradient"),
    "update": Paint("#fbe6ef", "#c2477f", "update of parameters and states"),
    "argument": Paint("#e3f5e8", "#3d9158", "argument"),
    "parameter": Paint("#e0f3f5", "#2b8a94", "parameter"),
    "state": Paint("#f1e8fb", "#8757bd", "state", "4 2"),
    "constant": Paint("#eeeff1", "#8a9199", "constant"),
    "output": Paint("#1f2933", "#1f2933", "output of the graph"),
}


class Line(NamedTuple):
    """One line of text."""

    text: str
    size: float = 12.0
    color: str = INK
    bold: bool = False

    @property
    def width(self) -> float:
        """The width of the text."""
        return text_width(self.text, self.size, self.bold)


class Chip(NamedTuple):
    """A small label inside a box: a parameter that the box reads, or a graph output."""

    text: str
    paint: str
    hover: str = ""

    @property
    def width(self) -> float:
        """The width of the chip."""
        return text_width(self.text, 10.0) + 12.0


class Card(NamedTuple):
    """The contents of a box, laid out."""

    paint: str
    lines: list[Line]
    chips: list[list[Chip]]
    hover: str
    stacked: bool

    @property
    def size(self) -> Point:
        """Width and height."""
        rows = [sum(chip.width + 5 for chip in row) - 5 for row in self.chips]
        width = max([line.width for line in self.lines] + rows, default=0.0) + 2 * PADDING
        text = sum(line.size + 4 for line in self.lines)
        return max(width, 56.0), text + len(rows) * (CHIP_HEIGHT + 3) + 12.0


class Wire(NamedTuple):
    """One edge.

    Attributes:
        points: the points on its path; its direction at each is vertical.
        kind: ``forward``, ``gradient`` or ``residual``, from the forward part to the gradient.
        label: text next to its start.
        across: whether it leads from a box to its gradient on the right, and is horizontal.
    """

    points: list[Point]
    kind: str
    label: str = ""
    across: bool = False


class Frame(NamedTuple):
    """A rectangle around the contents of an open block.

    Attributes:
        x: its left border.
        y: its upper border.
        width: its width.
        height: its height.
        paint: ``forward``, ``gradient`` or ``update``.
        title: the text in its upper left corner.
    """

    x: float
    y: float
    width: float
    height: float
    paint: str
    title: str


WIRES = {"forward": "#6f86a6", "gradient": "#d9944c", "residual": "#b4aba0"}


# Text ------------------------------------------------------------------------------------------

_NARROW = frozenset("iljtfrI.,:;|!'()[]{}/\\ `-")
_WIDE = frozenset("mwMW@%…→×")
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Returns the width of ``text`` in the widest of the fonts that may be used."""
    return sum(map(_letter, text)) * size * (1.08 if bold else 1.0)


def _letter(letter: str) -> float:
    if letter in _NARROW:
        return 0.40
    if letter in _WIDE:
        return 0.98
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    return 0.74 if letter.isupper() else 0.635


def safe(text: str) -> str:
    """Returns ``text`` escaped for XML and HTML; line breaks are kept."""
    return escape(_NOT_XML.sub("\ufffd", text))


def one_line(text: str) -> str:
    """Returns ``text`` escaped, without line breaks."""
    return safe(" ".join(text.split("\n")))


# The picture -----------------------------------------------------------------------------------


def picture(
    title: str,
    notes: Sequence[str],
    cards: Sequence[Card],
    wires: Sequence[Wire],
    layout: Layout,
    frames: Sequence[Frame] = (),
) -> str:
    """Returns the complete picture, with title, notes and legend above the boxes.

    ``frames`` are behind the boxes, outer ones first.
    """
    head = _head(title, notes, cards)
    width = max(layout.width, head.width) + 2 * MARGIN
    top = head.height + MARGIN
    height = top + layout.height + 2 * MARGIN
    left = (width - layout.width) / 2
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{FONT}" '
            'style="max-width:none">',
            f"<title>{safe(title)}</title>",
            f'<path d="M0.5 0.5h{width - 1:.0f}v{height - 1:.0f}h{1 - width:.0f}z" '
            f'fill="{PAPER}" stroke="{FRAME}"/>',
            *head.parts,
            f'<g transform="translate({left:.1f},{top:.1f})">',
            *(_frame(frame) for frame in frames),
            *(_line(wire) for wire in wires),
            *(_title(frame) for frame in frames),
            *(_card(card, *at) for card, at in zip(cards, layout.centers, strict=True)),
            # After the cards, so that tips touch their boxes and labels stay readable.
            *(_tip(wire) for wire in wires),
            *dict.fromkeys(_label(wire) for wire in wires if wire.label),
            "</g>",
            "</svg>",
            "",
        ]
    )


class _Head(NamedTuple):
    parts: list[str]
    width: float
    height: float


def _head(title: str, notes: Sequence[str], cards: Sequence[Card]) -> _Head:
    y = MARGIN + 12.0
    parts = [_written(Line(title, 14.0, bold=True), MARGIN, y, "start")]
    widths = [text_width(title, 14.0, bold=True)]
    for note in notes:
        y += HEAD_LINE
        parts.append(_written(Line(note, 11.0, MUTED), MARGIN, y, "start"))
        widths.append(text_width(note, 11.0))
    used = {card.paint for card in cards} | {c.paint for d in cards for r in d.chips for c in r}
    x = MARGIN
    y += HEAD_LINE
    for name, paint in PAINTS.items():
        if name in used:
            parts.append(_outline(paint, (x, y - 9), (14, 10), 2 if name in _OPERATORS else 5))
            line = Line(paint.legend, 11.0, MUTED)
            parts.append(_written(line, x + 19, y, "start"))
            x += 19 + line.width + 14
    return _Head(parts, max([*widths, x - MARGIN]), y)


_OPERATORS = ("forward", "gradient", "update")


def _frame(frame: Frame) -> str:
    paint = PAINTS[frame.paint]
    return (
        f'<rect class="symop-frame" x="{_n(frame.x)}" y="{_n(frame.y)}" '
        f'width="{_n(frame.width)}" height="{_n(frame.height)}" rx="8" fill="{paint.fill}" '
        f'fill-opacity="0.35" stroke="{paint.stroke}" stroke-opacity="0.55"/>'
    )


def _title(frame: Frame) -> str:
    """Returns the title, on a ground that hides the wires that enter there."""
    line = Line(frame.title, 11.0, PAINTS[frame.paint].stroke, bold=True)
    ground = (
        f'<rect x="{_n(frame.x + 6)}" y="{_n(frame.y + 4)}" width="{_n(line.width + 8)}" '
        f'height="16" rx="3" fill="{PAINTS[frame.paint].fill}"/>'
    )
    return ground + _written(line, frame.x + 10, frame.y + 16, "start")


def _line(wire: Wire) -> str:
    x, y = wire.points[-1]
    color = WIRES[wire.kind]
    style = f'fill="none" stroke="{color}" stroke-width="1.3"'
    if wire.across:
        return f'<path d="M{_n(wire.points[0][0])} {_n(y)}H{_n(x - 5)}" {style}/>'
    return f'<path d="{_curve([*wire.points[:-1], (x, y + 0.8 * _back(wire))])}" {style}/>'


def _tip(wire: Wire) -> str:
    """Returns the arrowhead at the end, which is vertical except across."""
    x, y = wire.points[-1]
    if wire.across:
        return f'<path d="M{_n(x)} {_n(y)}l-6 -3.5v7z" fill="{WIRES[wire.kind]}"/>'
    return f'<path d="M{_n(x)} {_n(y)}l-3.5 {_n(_back(wire))}h7z" fill="{WIRES[wire.kind]}"/>'


def _back(wire: Wire) -> float:
    """Returns the length of the arrowhead, signed towards the start of the edge."""
    return 6.0 if wire.points[-1][1] < wire.points[0][1] else -6.0


def _curve(points: Sequence[Point]) -> str:
    """Returns a straight line if it is vertical, otherwise a curve with vertical ends."""
    (x, y), *rest = points
    parts = [f"M{_n(x)} {_n(y)}"]
    for to_x, to_y in rest:
        if abs(to_x - x) < STRAIGHT:
            parts.append(f"L{_n(to_x)} {_n(to_y)}")
        else:
            middle = (y + to_y) / 2
            parts.append(f"C{_n(x)} {_n(middle)} {_n(to_x)} {_n(middle)} {_n(to_x)} {_n(to_y)}")
        x, y = to_x, to_y
    return "".join(parts)


def _n(value: float) -> str:
    """Returns a coordinate, formatted briefly."""
    return f"{value:.1f}".removesuffix(".0")


def _label(wire: Wire) -> str:
    (x, y), (_, after) = wire.points[0], wire.points[-1]
    line = Line(wire.label, 9.5, MUTED)
    return _written(line, x + 4, y + 11 if after > y else y - 5, "start")


def _card(card: Card, x: float, y: float) -> str:
    width, height = card.size
    left, top = x - width / 2, y - height / 2
    paint = PAINTS[card.paint]
    parts = [f"<g><title>{safe(card.hover)}</title>"]
    corner = 5.0 if card.paint in _OPERATORS else height / 2 if not card.chips else 14.0
    if card.stacked:
        parts.append(_outline(paint, (left + 5, top + 4), card.size, corner))
    parts.append(_outline(paint, (left, top), card.size, corner, "symop-box"))
    baseline = top + 5.0
    for line in card.lines:
        baseline += line.size + 1.5
        parts.append(_written(line, x, baseline))
        baseline += 2.5
    baseline += 3.0
    for row in card.chips:
        parts += _chips(row, x, baseline)
        baseline += CHIP_HEIGHT + 3
    return "".join([*parts, "</g>"])


def _outline(paint: Paint, at: Point, size: Point, corner: float, name: str = "") -> str:
    dash = f' stroke-dasharray="{paint.dash}"' if paint.dash else ""
    named = f' class="{name}"' if name else ""
    (x, y), (width, height) = at, size
    return (
        f'<rect{named} x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" '
        f'rx="{_n(corner)}" fill="{paint.fill}" stroke="{paint.stroke}"{dash}/>'
    )


def _chips(row: Sequence[Chip], x: float, top: float) -> Iterable[str]:
    left = x - (sum(chip.width + 5 for chip in row) - 5) / 2
    for chip in row:
        paint = PAINTS[chip.paint]
        color = PAPER if chip.paint == "output" else INK
        yield f"<g><title>{safe(chip.hover)}</title>" if chip.hover else "<g>"
        yield _outline(paint, (left, top), (chip.width, CHIP_HEIGHT), CHIP_HEIGHT / 2)
        line = Line(chip.text, 10.0, color)
        yield _written(line, left + chip.width / 2, top + 11.5)
        yield "</g>"
        left += chip.width + 5


def _written(line: Line, x: float, y: float, anchor: str = "middle") -> str:
    bold = ' font-weight="bold"' if line.bold else ""
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(line.size)}" fill="{line.color}"{bold} '
        f'text-anchor="{anchor}">{one_line(line.text)}</text>'
    )
