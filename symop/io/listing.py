"""Excerpts of programs for messages; the records need not be valid."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from registry.desc import BlockDesc, OpDesc

_AROUND = 2
_LONGEST = 100


def excerpt(block: BlockDesc, index: int) -> str:
    """Returns the call at ``index``, marked, and the calls around it."""
    first, last = max(0, index - _AROUND), min(len(block.ops), index + _AROUND + 1)
    lines = [
        f"{'>' if i == index else ' '} {i:4d}  {_line(block.ops[i])}" for i in range(first, last)
    ]
    return f"ops[{index}]:\n" + "\n".join(lines) + "\n "


def _line(op: OpDesc) -> str:
    inputs = [_names(names) for names in op.inputs.values()]
    attrs = [f"{key}={value!r}" for key, value in _shown(op.attrs).items()]
    line = f"{_names(_flat(op.outputs.values()))} = {op.type}({', '.join([*inputs, *attrs])})"
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names)


def _flat(groups: Iterable[Sequence[str]]) -> list[str]:
    return [name for group in groups for name in group]


def _shown(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attrs.items() if not isinstance(value, bytes)}
