"""``so.draw``: drawings of symbols, programs and training steps, as SVG or interactive pages."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from registry.errors import ArgumentError
from registry.tracebacks import api_boundary
from symop.drawing.draw import MAX_NODES, draw_subject, subject_html
from symop.drawing.model import Spent, model_of
from symop.drawing.page import framed, has_viewer, page
from symop.drawing.subject import Subject
from symop.graph.nodes import Node
from symop.io.files import PathLike, write_atomically
from symop.symbol.operator_pages import page_of


class Drawable(Protocol):
    """An object that ``so.draw`` draws."""

    def _subject(self) -> Subject:
        """Returns what drawings show."""


class Drawn(Protocol):
    """An object that has a drawing of its own: a report."""

    def _drawing(self, roll: bool) -> "Drawing":
        """Returns it."""


class Drawing:
    """A drawing of a graph; a notebook displays it as an interactive page.

    Attributes:
        subject: what is drawn.
        roll: whether equal blocks are drawn once.
        costs: what operators cost, from a report of ``so.explain``.
        color: what colors of the page show at first: ``kind``, ``flops``, ``bytes`` or ``seconds``.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        roll: bool = True,
        costs: Mapping[Node, Spent] | None = None,
        color: str = "kind",
    ) -> None:
        """Users call ``so.draw``."""
        self.subject, self.roll, self.costs, self.color = subject, roll, costs or {}, color

    def copy(self, *, roll: bool) -> "Drawing":
        """Returns a drawing of the same graph."""
        return Drawing(self.subject, roll=roll, costs=self.costs, color=self.color)

    def model(self) -> dict[str, Any]:
        """Returns what the interactive page shows, as plain data (``symop/drawing/model.py``)."""
        data = model_of(self.subject, rolled=self.roll, costs=self.costs, page_of=page_of)
        return {**data, "color": self.color}

    def to_html(self) -> str:
        """Returns one page that contains all that it needs, and works without a network.

        Raises:
            MissingViewerError: the layout library is missing, as in a checkout without
                ``make viewer``.
        """
        return page(self.model())

    def to_svg(self, *, max_nodes: int = MAX_NODES) -> str:
        """Returns a picture, in which parts are folded if it exceeds ``max_nodes`` boxes."""
        return draw_subject(self.subject, max_nodes=max_nodes)

    @api_boundary
    def save(self, path: PathLike) -> None:
        """Writes the page or the picture; the file is replaced atomically.

        Args:
            path: the file, whose name ends with ``.html`` or ``.svg``.

        Raises:
            ArgumentError: the name ends otherwise.
            OSError: the file cannot be written.
        """
        write_atomically(path, self.in_format(Path(path).suffix).encode())

    def in_format(self, suffix: str) -> str:
        """Returns the content of a file whose name ends with ``suffix``.

        Raises:
            ArgumentError: no format has this suffix.
        """
        formats = {".html": self.to_html, ".svg": self.to_svg}
        if suffix not in formats:
            raise ArgumentError(f"draw: the file must end with .html or .svg, got {suffix!r}")
        return formats[suffix]()

    def _repr_html_(self) -> str:
        """Returns the interactive page in a frame, or the picture if the viewer is missing."""
        return framed(self.model()) if has_viewer() else subject_html(self.subject)


@api_boundary
def draw(graph: Drawable | Drawn, *, title: str | None = None, roll: bool = True) -> Drawing:
    """Returns a drawing of a graph, to be displayed or saved.

    Args:
        graph: a symbol, a program, a ``Trainer`` or a report of ``so.explain``.
        title: the heading; defaults to the number of operators.
        roll: whether equal blocks, such as the layers of a network, are drawn once.

    Raises:
        ArgumentError: ``graph`` cannot be drawn.

    Example:
        >>> import symop as so
        >>> y = so.fully_connected(so.var("x", shape=(8, 4)), units=2, name="layer")
        >>> picture = so.draw(so.softmax(y), title="a layer").to_svg()
        >>> "layer: fully_connected" in picture
        True
    """
    drawn = getattr(graph, "_drawing", None)
    if drawn is not None:
        drawing: Drawing = drawn(roll)
    else:
        subject = getattr(graph, "_subject", None)
        if subject is None or isinstance(graph, type):
            raise ArgumentError(
                "draw: its argument must be a symbol, a program, a trainer or a report, got "
                f"{type(graph).__name__}"
            )
        drawing = Drawing(subject(), roll=roll)
    if title is not None:
        drawing.subject = drawing.subject._replace(title=title)
    return drawing
