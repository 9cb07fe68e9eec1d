"""Control flow on variables of a program: built as a graph, then written into the program."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax

from registry.errors import ProgramError
from registry.operator import Operator
from registry.var import Attributes, Inputs
from symop.graph import Node
from symop.origins import ambient
from symop.program_block import Block, Variable, VariableEmitter
from symop.symbol import Symbol, to_node
from symop.symbol_flow import flat
from symop.transcript import enter


def on_variables(flow: Callable[..., Any], *values: Any) -> Any:
    """What ``flow`` gives for ``values``, nested variables among them, as variables.

    The functions that it calls may use variables of the program: to them these are symbols.

    Raises:
        ProgramError: the variables are of several programs.
    """
    leaves, tree = flat(values)
    blocks = list(dict.fromkeys(one.block for one in leaves if isinstance(one, Variable)))
    if len(blocks) != 1:
        raise ProgramError("control flow: the variables must be of one program, got several")
    with _as_symbols(blocks[0]):
        given = [Symbol([one.node]) if isinstance(one, Variable) else one for one in leaves]
        found, nested = flat(flow(*jax.tree_util.tree_unflatten(tree, given)))
        nodes = [_node(blocks[0], one) for one in found]
    made = enter(blocks[0], nodes)
    return jax.tree_util.tree_unflatten(nested, made)


def also_on_variables(flow: Callable[..., Any]) -> Callable[..., Any]:
    """A function of symbols that takes variables of a program, too, and then gives variables."""

    @functools.wraps(flow)
    def run(*args: Any, **options: Any) -> Any:
        leaves, _ = flat((args, options))
        if not any(isinstance(one, Variable) for one in leaves):
            return flow(*args, **options)
        return on_variables(lambda given, more: flow(*given, **more), args, options)

    return run


def _node(block: Block, value: Any) -> Node:
    if not isinstance(value, Variable):
        return to_node(value)
    if value.block is not block:
        raise ProgramError(f"control flow: {value.name!r} must be of the same program, and is not")
    return value.node


@contextlib.contextmanager
def _as_symbols(block: Block) -> Iterator[None]:
    """A scope in which calls on variables of ``block`` make symbols, and append nothing."""
    before = ambient.node_of
    ambient.node_of = lambda value: _node(block, value)
    try:
        yield
    finally:
        ambient.node_of = before


class _Emitter(VariableEmitter):
    """Calls on variables, which inside of bodies are calls on symbols."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        if ambient.node_of is None:
            return super().emit(operator, inputs, attributes, name)
        values = tuple(
            [Symbol([ambient.node_of(v)]) if isinstance(v, Variable) else v for v in inputs]
        )
        return Symbol.emitter.emit(operator, values, attributes, name)


Variable.emitter = _Emitter()
