"""``symop grad``: builds the gradient of a graph."""

import argparse

from registry.errors import ArgumentError
from symop.commands.files import read_symbol, types_of, write
from symop.graph.naming import variables_of
from symop.symbol.building import Group, grad, may_move
from symop.symbol.symbol import Symbol


def run(options: argparse.Namespace) -> None:
    """Write the gradient of the sum of the outputs."""
    symbol = read_symbol(options.file, "grad")
    if options.shape:
        symbol = symbol.with_types(**types_of("grad", options.shape))
    outputs = [Symbol([node], symbol.also) for node in symbol.nodes]
    names = options.wrt or _differentiable(symbol)
    slopes = grad(outputs, names, unreachable=options.unreachable)
    write(options.output, Group([*outputs, *slopes] if options.value else slopes).tojson())


def _differentiable(symbol: Symbol) -> list[str]:
    """Returns the names of the arguments whose dtype is real, complex or not declared."""
    variables = variables_of(symbol.roots)
    names = [name for name in symbol.list_arguments() if may_move(variables[name])]
    if not names:
        raise ArgumentError("grad: the graph must have a real or complex variable, got none")
    return names
