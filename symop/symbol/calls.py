"""Construction of symbols from operator calls, and from the records of a program."""

import copyreg
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import msgspec

from registry.desc import ProgramDesc
from registry.errors import SymopError
from registry.hooks import define
from registry.operator.binding import is_new
from registry.operator.operator import Operator
from registry.tracebacks import api_boundary
from registry.types import VarType
from registry.var import Attributes, Inputs
from symop.graph import nodes as graph
from symop.graph.naming import layer_name, scoped_name, shares_parameters
from symop.graph.nodes import CONSTANT, Node, as_node, built_at, user_origin
from symop.io.parsing import parse_graph
from symop.io.rebuilding import graph_of
from symop.io.serialize import decode
from symop.runtime.creation import new_variables
from symop.runtime.executor import Executor
from symop.runtime.placement import MeshRecord
from symop.symbol.symbol import Symbol


class SymbolEmitter:
    """Makes symbols from operator calls on symbols; layers create their missing variables."""

    creates = True

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Symbol:
        """Returns the symbol of the operator's visible outputs."""
        nodes: list[Any] = []
        extended: list[Symbol] = []
        for value in inputs:
            if type(value) is not Symbol:
                nodes.append(value)
                continue
            own = value.nodes
            nodes.append(own[0] if len(own) == 1 else value.node)
            if value.also:
                extended.append(value)
        also = union(extended) if extended else ()
        if name is not None:
            name = scoped_name(name, operator.name)
        if operator.creates and any(map(is_new, nodes)):
            name = name or layer_name(operator.name)
            nodes = _with_parameters(operator, nodes, attributes, name)
        if name is not None and shares_parameters():
            name = None
        result = Node.emitter.emit(operator, tuple(nodes), attributes, name)
        values = result if type(result) is tuple else (result,)
        if values[0].op is CONSTANT:
            also = (*also, *[v.node for v in inputs if type(v) is Symbol and v.constant is None])
        return Symbol(values, also)

    def filled(self, value: bool | int | float | complex, type: VarType) -> Symbol:
        """Returns a constant of ``type``."""
        return Symbol([graph.constant(value, type)])


define(Symbol, emitter=SymbolEmitter())


def union(symbols: Sequence[Symbol]) -> tuple[Node, ...]:
    """Returns the ``also`` nodes of all ``symbols``: arguments listed without being needed."""
    return tuple(dict.fromkeys(node for symbol in symbols for node in symbol.also))


def _with_parameters(
    operator: Operator, nodes: Sequence[Any], attributes: Attributes, name: str
) -> list[Any]:
    """Returns ``nodes`` with new variables in each omitted parameter slot."""
    present = [None if v is None or is_new(v) else as_node(v) for v in nodes]
    types = tuple(None if n is None or n.types is None else n.types[0] for n in present)
    try:
        declared = new_variables(operator, nodes, types, attributes)
    except SymopError as error:
        raise type(error)(f"{error}{built_at(user_origin())}") from error.__cause__
    result: list[Any] = []
    for i, value in enumerate(nodes):
        new = [
            graph.variable(f"{name}_{one.name}", one.shape, one.dtype, one.role, one.extra)
            for one in declared.get(i, ())
        ]
        result += new or [value]
    return result


@api_boundary
def from_desc(desc: ProgramDesc) -> Symbol:
    """Returns the symbol that ``desc`` records; slots may be spelled as in other systems.

    Raises:
        FormatError: the records are invalid; the message shows where.
    """
    # Reading replaces records, and these belong to the caller.
    own = [msgspec.structs.replace(one, ops=list(one.ops)) for one in desc.blocks]
    nodes, variables = graph_of(msgspec.structs.replace(desc, blocks=own))
    return Symbol(nodes, tuple(variables))


@api_boundary
def load_json(text: str | bytes) -> Symbol:
    """Loads a symbol from the JSON written by ``Symbol.tojson``.

    Raises:
        FormatError: the text is damaged, too large or of a newer version; the message shows where.
    """
    return from_desc(decode(text))


def parse(text: str) -> Symbol:
    """Parses the text printed by ``str(symbol)``.

    Raises:
        FormatError: the text is not a valid program; the message gives the line and the column.
    """
    nodes, variables = parse_graph(text)
    return Symbol(nodes, tuple(variables))


def _pickled(symbol: Symbol) -> tuple[Any, ...]:
    """Pickles a symbol as JSON."""
    return load_json, (symbol.tojson(),)


copyreg.pickle(Symbol, _pickled)


def _pickled_executor(executor: Executor) -> tuple[Any, ...]:
    bound = executor.bound
    how = bound.requests, bound.remat, bound.stacked
    arrays = [dict(one) for one in (executor.arg_dict, executor.aux_dict, executor.grad_dict)]
    return _rebound, (
        Symbol(tuple(bound.outputs), tuple(bound.also)),
        *arrays,
        executor.outputs,
        *how,
        MeshRecord.of(bound.placement),
    )


def _rebound(
    symbol: Symbol, args: Any, aux: Any, grads: Any, outputs: Any, requests: Any, *how: Any
) -> Executor:
    """Restores the executor from a pickle or a copy; copies its gradients, which may be donated."""
    remat, stacked, where = how
    mesh = None if where is None else where.mesh()
    own = {name: jnp.copy(one) for name, one in grads.items()}
    result = symbol.bind(args, own, requests, aux, remat, stacked=stacked, mesh=mesh)
    result.outputs = list(outputs)
    return result


copyreg.pickle(Executor, _pickled_executor)
