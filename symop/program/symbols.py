"""Conversion between symbols and programs: state updates are implicit in symbols only."""

from collections.abc import Collection, Mapping, Sequence

from registry.desc import BlockDesc, OpDesc, ProgramDesc
from registry.errors import FormatError
from registry.operator.operator import Operator
from registry.table import get
from symop.graph.naming import require_known
from symop.io.records import LEAVES


def from_symbol_desc(desc: ProgramDesc, parameters: Collection[str]) -> ProgramDesc:
    """Converts the records of a symbol to those of a program with ``parameters``.

    Operators that share a state update it in turn, as when the symbol runs: each reads the value
    that the previous one left.

    Raises:
        FeedError: no argument has one of the names.
    """
    block = desc.blocks[0]
    arguments = {var.name: var for var in block.vars if var.role == "argument"}
    require_known("to_program", parameters, list(arguments))
    for name in parameters:
        arguments[name].role = "parameter"
    states = {var.name for var in block.vars if var.role == "state"}
    for op in block.ops:
        for slot, output in _updates(op).items():
            (state,) = op.inputs.get(slot) or [""]
            if state in states:
                op.inputs[slot] = [block.updates.get(state, state)]
                (block.updates[state],) = op.outputs[output]
    return desc


def to_symbol_desc(desc: ProgramDesc, fetch: Sequence[str]) -> ProgramDesc:
    """Converts the records of a program to those of a symbol of the values ``fetch``."""
    block = desc.blocks[0]
    block.updates = {}
    origins: dict[str, str] = {}
    for op in block.ops:
        for slot, output in _updates(op).items():
            (name,) = op.inputs.get(slot) or [""]
            state = origins.get(name, name)
            op.inputs[slot] = [state]
            origins[op.outputs[output][0]] = state
    fetch = _with_stops(block, fetch)
    needed = _needed(block, fetch)
    block.ops = [op for op in block.ops if not needed.isdisjoint(_names(op.outputs))]
    block.vars = [
        var
        for var in block.vars
        if var.role in ("argument", "parameter") or (var.role == "state" and var.name in needed)
    ]
    for var in block.vars:
        var.role = "argument" if var.role == "parameter" else var.role
        var.stop_gradient = False
    desc.fetch = list(fetch)
    return desc


def _with_stops(block: BlockDesc, fetch: Sequence[str]) -> list[str]:
    """Inserts ``stop_gradient`` calls at stopped computed values; returns ``fetch``, renamed."""
    stopped = {v.name for v in block.vars if v.role == "intermediate" and v.stop_gradient}
    renamed: dict[str, str] = {}
    ops = []
    for op in block.ops:
        op.inputs = {key: [renamed.get(n, n) for n in names] for key, names in op.inputs.items()}
        ops.append(op)
        for name in _names(op.outputs):
            if name in stopped:
                renamed[name] = f"{name}@STOP"
                ops.append(OpDesc("stop_gradient", {"x": [name]}, {"out": [renamed[name]]}))
    block.ops = ops
    return [renamed.get(name, name) for name in fetch]


def _needed(block: BlockDesc, fetch: Sequence[str]) -> set[str]:
    """Returns the names of all values that ``fetch`` is computed from."""
    needed = set(fetch)
    for op in reversed(block.ops):
        if not needed.isdisjoint(_names(op.outputs)):
            needed.update(_names(op.inputs))
    return needed


def _names(groups: Mapping[str, Sequence[str]]) -> list[str]:
    return [name for names in groups.values() for name in names]


def _updates(op: OpDesc) -> Mapping[str, str]:
    """Maps each state slot to the output that holds its new value."""
    if op.type in LEAVES:
        return {}
    operator: Operator = get(op.type)
    for output in operator.updates.values():
        if len(op.outputs.get(output, ())) != 1:
            raise FormatError(f"{op.type}: output {output!r} must be named, got none")
    return operator.updates
