"""Control flow on variables of a program: built as a graph, then recorded in the program."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax

from registry.errors import ArgumentError, ProgramError
from registry.hooks import define
from registry.operator.operator import Operator
from registry.var import Attributes, Inputs, Var
from symop.graph.nodes import Node, placeholder
from symop.graph.origins import ambient
from symop.program.block import Block, Variable, VariableEmitter
from symop.program.transcript import enter, labels_of
from symop.symbol.control_flow import flat
from symop.symbol.symbol import Symbol, to_node


def on_variables(flow: Callable[..., Any], *values: Any, apart: bool = True) -> Any:
    """Returns the result of ``flow`` on ``values``, which contain variables, as variables.

    The functions that ``flow`` calls may use variables of the program, which they see as symbols.
    If ``apart``, two variables that share one node of the graph are two symbols.

    Raises:
        ProgramError: the variables belong to several programs.
    """
    leaves, tree = flat(values)
    if ambient.node_of is not None:
        return flow(*jax.tree_util.tree_unflatten(tree, [_symbol(one) for one in leaves]))
    blocks = list(dict.fromkeys(one.block for one in leaves if isinstance(one, Variable)))
    if len(blocks) != 1:
        raise ProgramError("variables: those of one call must be of one program, got several")
    named = _Named(blocks[0], apart=apart)
    with _as_symbols(named):
        entering = _symbol if apart else _function
        arguments = jax.tree_util.tree_unflatten(tree, [entering(one) for one in leaves])
        symbols, nested = flat(flow(*arguments))
        nodes = [named(one) for one in symbols]
    variables = enter(blocks[0], nodes, named.labels)
    return jax.tree_util.tree_unflatten(nested, variables)


def also_on_variables(flow: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function of symbols also accept variables of a program, and then return variables.

    The function does not distinguish two variables that share one node of the graph.
    """

    @functools.wraps(flow)
    def run(*args: Any, **options: Any) -> Any:
        leaves, _ = flat((args, options))
        if not any(isinstance(one, Variable) for one in leaves):
            return flow(*args, **options)
        return on_variables(
            lambda positional, more: flow(*positional, **more), args, options, apart=False
        )

    return run


def _symbol(value: Any) -> Any:
    """Returns a variable as a symbol of the graph that is being built."""
    assert ambient.node_of is not None
    return Symbol([ambient.node_of(value)]) if isinstance(value, Variable) else value


def _function(value: Any) -> Any:
    """Returns a variable as a symbol; a value derived from gradients depends on its whole program.

    It may be constant in a variable with respect to which it is differentiated, and no longer
    read it.
    """
    symbol = _symbol(value)
    if isinstance(value, Variable) and value.block.derived_by([value.name]) is not None:
        return Symbol(symbol.nodes, tuple(value.block.values.values()))
    return symbol


class _Named:
    """The nodes of variables; if two variables share a node, the second gets a placeholder.

    Attributes:
        labels: the names of all these nodes, by output.
    """

    def __init__(self, block: Block, *, apart: bool) -> None:
        self._block, self._apart, self.labels = block, apart, labels_of(block)
        self._stand_ins: dict[str, Node] = {}

    def __call__(self, value: Any) -> Node:
        """Returns the node of a variable, a symbol, an array or a number."""
        if not isinstance(value, Variable):
            return _node(value)
        if value.block is not self._block:
            raise ProgramError(
                f"variables: {value.name!r} must be of the same program as the others, and is not"
            )
        source, index = value.node.source, value.node.index
        if not self._apart or self.labels[source][index] == value.name:
            return value.node
        if value.name not in self._stand_ins:
            stand_in = self._stand_ins[value.name] = placeholder(value.name, value.type)
            self.labels[stand_in] = {0: value.name}
        return self._stand_ins[value.name]


def _node(value: Any) -> Node:
    if isinstance(value, Var) and not isinstance(value, (Symbol, Node)):
        raise ArgumentError(
            "variables: those of a program and other values must not be mixed, got a "
            f"{type(value).__name__}; feed it, or make it a parameter"
        )
    return to_node(value)


@contextlib.contextmanager
def _as_symbols(named: _Named) -> Iterator[None]:
    """Makes calls on variables inside the context build symbols and append nothing."""
    before = ambient.node_of
    ambient.node_of = named
    try:
        yield
    finally:
        ambient.node_of = before


class _Emitter(VariableEmitter):
    """Emits calls on variables, which are calls on symbols inside bodies."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        if ambient.node_of is None:
            return super().emit(operator, inputs, attributes, name)
        return Symbol.emitter.emit(operator, tuple(map(_symbol, inputs)), attributes, name)


define(Variable, emitter=_Emitter())
