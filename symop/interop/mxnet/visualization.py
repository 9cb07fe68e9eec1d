"""``mx.viz``: graphs as tables and as pictures."""

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from symop.drawing.cards import counted
from symop.drawing.layout import arrange
from symop.drawing.svg import MUTED, Card, Chip, Line, Wire, picture
from symop.interop.mxnet.attributes import is_hidden
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.graph import Entry, Node, state_ids, topological
from symop.interop.mxnet.inferring import Inference
from symop.interop.mxnet.partial_shapes import is_known
from symop.interop.mxnet.symbols import Symbol
from symop.io.files import PathLike, write_atomically

Shapes = Mapping[str, Sequence[int]]
_WEIGHTS = (
    *("_weight", "_bias", "_beta", "_gamma", "_parameters"),
    *("_moving_var", "_moving_mean", "_running_var", "_running_mean"),
)
_TUNING = ("workspace", "cudnn_tune", "cudnn_off", "num_args")
_LONGEST = 48


def _inferred(symbol: Symbol, shape: Shapes | None) -> Inference:
    if not isinstance(symbol, Symbol):
        raise TypeError(f"viz: a Symbol must be given, got {type(symbol).__name__}")
    given = {name: tuple(map(int, one)) for name, one in (shape or {}).items()}
    known = symbol.list_inputs()
    for name in given:
        if name not in known:
            raise MXNetError(f"viz: shapes must be those of {', '.join(known)}, got {name!r}")
    return Inference(symbol.heads, given)


# Tables ----------------------------------------------------------------------------------------


def print_summary(
    symbol: Symbol,
    shape: Shapes | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Prints a line for each layer: its output shape without the batch, and parameter count.

    Args:
        symbol: the graph.
        shape: shapes of its inputs; shapes that cannot be inferred are left out.
        line_length: the number of characters in a line.
        positions: the ends of the columns, as fractions of a line or in characters.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
        >>> mx.viz.print_summary(net, {"data": (1, 3)}, line_length=60)
        ____________________________________________________________
        Layer (type)              Output ShapeParam Previous Layer
        ============================================================
        data(null)                3           0
        ____________________________________________________________
        fc(FullyConnected)        4           16    data
        ============================================================
        Total params: 16
        ____________________________________________________________
    """
    types = _inferred(symbol, shape)
    ends = [int(line_length * one) if positions[-1] <= 1 else int(one) for one in positions]
    print("_" * line_length)
    print(_row(["Layer (type)", "Output Shape", "Param #", "Previous Layer"], ends))
    print("=" * line_length)
    counts = _counts(types, set(shape or ()))
    shown = [node for i, node in enumerate(types.nodes) if i == 0 or not node.is_variable]
    for node in shown:
        before = [one.name for one, _ in node.inputs if not one.is_variable or one is shown[0]]
        kind = "null" if node.operator is None else node.operator.name
        lengths = "x".join(map(str, (types.shape((node, 0)) or ())[1:]))
        texts = [f"{node.name}({kind})", lengths, _text(counts[id(node)])]
        print(_row([*texts, *before[:1]], ends))
        for name in before[1:]:
            print(_row(["", "", "", name], ends))
        print(("=" if node is shown[-1] else "_") * line_length)
    total = None if None in counts.values() else sum(one or 0 for one in counts.values())
    print(f"Total params: {_text(total)}")
    print("_" * line_length)


def _row(texts: Sequence[str], ends: Sequence[int]) -> str:
    line = ""
    for text, end in zip(texts, ends, strict=False):
        line = (line + text)[:end].ljust(end)
    return line.rstrip()


def _text(count: int | None) -> str:
    return "?" if count is None else str(count)


def _counts(types: Inference, inputs: set[str]) -> dict[int, int | None]:
    """The parameter count of each node; shared parameters count once, at their first node.

    None if a shape is not known.
    """
    states, seen = state_ids(types.nodes), set[int]()
    result: dict[int, int | None] = {}
    for node in types.nodes:
        own = [one for one, _ in node.inputs if one.is_variable and id(one) not in states | seen]
        own = [one for one in own if one.name not in inputs and not one.name.endswith("label")]
        if not inputs:
            own = [one for one in own if one.name.endswith(_WEIGHTS)]
        seen |= {id(one) for one in own}
        shapes = [types.shape((one, 0)) for one in own]
        known = [one for one in shapes if one is not None and is_known(one)]
        result[id(node)] = sum(map(math.prod, known)) if len(known) == len(shapes) else None
    return result


# Pictures --------------------------------------------------------------------------------------


class Drawing:
    """A picture of a graph as self-contained SVG.

    Attributes:
        name: its name.
        source: the SVG text.
    """

    def __init__(self, name: str, source: str) -> None:
        """Users call ``plot_network``."""
        self.name, self.source = name, source

    def render(self, filename: PathLike | None = None, *args: Any, **kwargs: Any) -> str:
        """Writes the picture to a ``.svg`` file.

        Args:
            filename: the name of the file; defaults to that of the picture.
            *args: arguments of graphviz; they have no effect.
            **kwargs: arguments of graphviz; they have no effect.

        Returns:
            The name of the file.
        """
        del args, kwargs
        path = Path(self.name if filename is None else filename)
        path = path if path.suffix == ".svg" else path.with_name(f"{path.name}.svg")
        write_atomically(path, self.source.encode())
        return str(path)

    save = render

    def view(self, *args: Any, **kwargs: Any) -> str:
        """Calls ``render``; no viewer is opened."""
        return self.render(*args, **kwargs)

    def _repr_svg_(self) -> str:
        return self.source

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto;max-height:900px">{self.source}</div>'


def plot_network(
    symbol: Symbol,
    title: str = "plot",
    save_format: str = "svg",
    shape: Shapes | None = None,
    dtype: Mapping[str, Any] | None = None,
    node_attrs: Mapping[str, str] | None = None,
    hide_weights: bool = True,
) -> Drawing:
    """Draws a graph with a box for each operator, from top to bottom.

    Args:
        symbol: the graph.
        title: the heading, and the name of the file.
        save_format: has no effect: the format is always SVG.
        shape: shapes of its inputs, for shapes on edges.
        dtype: dtypes of its inputs, for dtypes on edges.
        node_attrs: has no effect.
        hide_weights: whether parameters have no boxes.

    Raises:
        MXNetError: a shape cannot be inferred.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
        >>> mx.viz.plot_network(net, shape={"data": (1, 3)}).source[:4]
        '<svg'
    """
    del save_format, node_attrs
    types = _inferred(symbol, shape)
    _warn_of_equal_names(symbol)
    if dtype is not None:
        types = Inference(symbol.heads, {k: tuple(v) for k, v in (shape or {}).items()}, dtype)
    nodes = [node for node in topological(symbol.heads) if not (hide_weights and _is_weight(node))]
    number = {id(node): i for i, node in enumerate(nodes)}
    heads = {id(node) for node, _ in symbol.heads}
    states = state_ids(types.nodes)
    cards = [_card(node, id(node) in heads, id(node) in states) for node in nodes]
    labels: dict[tuple[int, int], str] = {}
    for node in nodes:
        for entry in node.inputs:
            if id(entry[0]) in number:
                edge = number[id(entry[0])], number[id(node)]
                labels.setdefault(edge, _label(types, entry, shape is not None, dtype is not None))
    layout = arrange([card.size for card in cards], list(labels), [0] * len(cards))
    wires = [
        Wire(points, "forward", label)
        for points, label in zip(layout.paths, labels.values(), strict=True)
    ]
    notes = [counted(sum(not node.is_variable for node in nodes), "operator")]
    return Drawing(title, picture(title, notes, cards, wires, layout))


def _warn_of_equal_names(symbol: Symbol) -> None:
    names = symbol.list_inputs()
    repeated = ",".join(name for name in dict.fromkeys(names) if names.count(name) > 1)
    if repeated:
        warnings.warn(
            "plot_network: There are multiple variables with the same name in your graph, each of "
            f"which is drawn. Repeated names: {repeated}",
            RuntimeWarning,
            stacklevel=3,
        )


def _is_weight(node: Node) -> bool:
    return node.is_variable and node.name.endswith(_WEIGHTS)


def _card(node: Node, is_head: bool, is_state: bool) -> Card:
    """The text in a node's box."""
    chips = [[Chip("→ output", "output")]] if is_head else []
    hover = "\n".join([node.name, *[f"{key} = {one}" for key, one in node.attributes.items()]])
    lines = [Line(node.name, bold=True)]
    if node.operator is None:
        return Card("state" if is_state else "argument", lines, chips, hover, False)
    own = [
        f"{key}={one}"
        for key, one in node.attributes.items()
        if not is_hidden(key) and key not in _TUNING
    ]
    text = f"{node.operator.name} {', '.join(own)}".strip()
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return Card("forward", [*lines, Line(text, 10.5, MUTED)], chips, hover, False)


def _label(types: Inference, entry: Entry, with_shape: bool, with_dtype: bool) -> str:
    shape, dtype = types.shape(entry), types.dtype(entry)
    lengths = "x".join(map(str, (shape or ())[1:])) if with_shape else ""
    return lengths + (f"({np.dtype(dtype).name})" if with_dtype and dtype is not None else "")
