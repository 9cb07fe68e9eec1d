"""``symop cost``: reports where a graph spends time and memory."""

import argparse

from registry.errors import UnknownTypeError
from symop.commands.files import as_json, read, types_of
from symop.program.program import Program
from symop.symbol.explaining import explain
from symop.symbol.symbol import Symbol


def run(options: argparse.Namespace) -> None:
    """Print the report of ``so.explain``."""
    types = types_of("cost", options.shape)
    try:
        report = explain(_whole(read(options.file)), is_train=options.training, **types)
    except UnknownTypeError as error:
        raise UnknownTypeError(f"{error}; pass for example --shape x=8,3") from error
    print(as_json(_record(report)) if options.json else report)


def _whole(graph: Symbol | Program) -> Symbol:
    """Returns a graph, or all values that a run of a program computes."""
    if isinstance(graph, Symbol):
        return graph
    block = graph.desc().blocks[0]
    read = {name for op in block.ops for names in op.inputs.values() for name in names}
    computed = [name for op in block.ops for names in op.outputs.values() for name in names]
    return graph.to_symbol([name for name in computed if name not in read])


def _record(value: object) -> object:
    """Returns named tuples as dicts, so that JSON shows the names of their fields."""
    if isinstance(value, tuple):
        fields: dict[str, object] | None = getattr(value, "_asdict", dict)()
        if fields:
            return {name: _record(one) for name, one in fields.items()}
        return [_record(one) for one in value]
    return value
