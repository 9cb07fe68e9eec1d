"""``symop cost``: reports where a graph spends time and memory."""

import argparse
from pathlib import Path

from registry.errors import UnknownTypeError
from symop.commands.files import as_json, read, types_of, write
from symop.symbol.drawings import draw
from symop.symbol.explaining import explain


def run(options: argparse.Namespace) -> None:
    """Print the report of ``so.explain``, or write it as an interactive drawing."""
    graph = read(options.file)
    types = types_of("cost", options.shape)
    try:
        report = explain(
            graph,
            is_train=options.training,
            compiled=options.compiled,
            profile=options.profile,
            **types,
        )
    except UnknownTypeError as error:
        raise UnknownTypeError(f"{error}; pass for example --shape x=8,3") from error
    if options.output is not None:
        write(options.output, draw(report).in_format(Path(options.output).suffix))
    else:
        print(as_json(_record(report)) if options.json else report)


def _record(value: object) -> object:
    """Returns named tuples as dicts, so that JSON shows the names of their fields."""
    if isinstance(value, tuple):
        fields: dict[str, object] | None = getattr(value, "_asdict", dict)()
        if fields:
            return {name: _record(one) for name, one in fields.items() if name != "drawing"}
        return [_record(one) for one in value]
    return value
