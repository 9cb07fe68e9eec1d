"""``symop diff``: compares the structure of two graphs."""

import argparse

from registry.desc import ProgramDesc
from registry.errors import ArgumentError
from registry.types import VarType
from symop.commands.files import STREAM, read
from symop.io.comparing import compare
from symop.io.records import describe
from symop.program.program import Program
from symop.symbol.symbol import Symbol

FAILURE = 2
"""The exit status of a failure, as that of ``diff``."""


def run(options: argparse.Namespace) -> int:
    """Print the differences; returns 1 if there are any."""
    if options.old == options.new == STREAM:
        raise ArgumentError("diff: one graph at most may be read from standard input, got two")
    old, new = _description(read(options.old)), _description(read(options.new))
    differences = compare(old[0], new[0], old[1], new[1])
    if differences and not options.quiet:
        print(f"--- {options.old}\n+++ {options.new}")
        print("\n".join(map(str, differences)))
    return 1 if differences else 0


def _description(graph: Symbol | Program) -> tuple[ProgramDesc, dict[str, VarType]]:
    """Returns the records of a graph, and the known types of its values by name."""
    if isinstance(graph, Symbol):
        return describe(graph.nodes, graph.also)
    desc = graph.desc()
    outputs = [names for op in desc.blocks[0].ops for names in op.outputs.values()]
    return desc, {name: graph.var(name).type for names in outputs for name in names}
