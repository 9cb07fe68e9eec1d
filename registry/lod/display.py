"""Formats of a LoDTensor: text, and a table for notebooks."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from registry import var
from registry.errors import UnknownTypeError
from registry.lod.offsets import Lod, all_known, known, listed, one_line

_SHOWN = 8
"""Maximum number of sequences displayed."""


def text(data: Any, lod: Lod) -> str:
    """Formats the type and the offsets, and a line for each of the first innermost sequences."""
    bounds = ", ".join(map(_bounds, lod))
    lines = [f"LoDTensor({_typed(data)}, lod=[{bounds}])"]
    return "\n".join(lines + [f"  {number}: {steps}" for number, _, steps in _rows(data, lod)])


def table(data: Any, lod: Lod) -> str:
    """Formats the same as HTML: number, length and values of each sequence."""
    rows = "".join(
        f"<tr><th>{number}</th><td>{length}</td><td><code>{escape(steps)}</code></td></tr>"
        for number, length, steps in _rows(data, lod)
    )
    columns = "<tr><th>sequence</th><th>steps</th><th>values</th></tr>" if rows else ""
    bounds = ", ".join(map(_bounds, lod))
    caption = escape(f"LoDTensor {_typed(data)}, lod [{bounds}]")
    return f"<table><caption>{caption}</caption>{columns}{rows}</table>"


def _rows(data: Any, lod: Lod) -> Iterator[tuple[str, str, str]]:
    """Yields number, length and text of the first innermost sequences; none if unknown."""
    seen = all_known(data, *lod)
    if seen is None:
        return
    entries, *outer, bounds = seen
    count = len(bounds) - 1
    for s in range(min(count, _SHOWN)):
        steps = entries[bounds[s] : bounds[s + 1]]
        shown = np.array2string(steps, threshold=12, edgeitems=3, precision=4)
        yield ".".join(map(str, _numbers(outer, s))), str(len(steps)), one_line(shown)
    if count > _SHOWN:
        yield "...", "", f"{count - _SHOWN} more"


def _numbers(outer: Sequence[np.ndarray], sequence: int) -> list[int]:
    """Returns the index of a sequence within its parent, preceded by those of its ancestors."""
    numbers: list[int] = []
    for offsets in reversed(outer):
        parent = int(np.searchsorted(offsets, sequence, side="right")) - 1
        numbers.insert(0, sequence - int(offsets[parent]))
        sequence = parent
    return [sequence, *numbers]


def _bounds(offsets: Any) -> str:
    seen = known(offsets)
    if seen is not None:
        return listed(seen)
    return repr(offsets) if isinstance(offsets, var.Var) else _typed(offsets)


def _typed(array: Any) -> str:
    try:
        return f"{np.dtype(array.dtype).name}[{','.join(map(str, array.shape))}]"
    except UnknownTypeError:
        return repr(array)
