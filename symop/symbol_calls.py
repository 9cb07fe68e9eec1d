"""Symbols from calls of operators, and from the records of a program."""

import copyreg
from collections.abc import Sequence
from typing import Any

from registry.binding import LEFT_OUT
from registry.desc import ProgramDesc
from registry.errors import SymopError
from registry.operator import Operator
from registry.types import VarType
from registry.var import Attributes, Inputs
from symop import graph
from symop.graph import CONSTANT, Node, as_node, built_at, user_origin
from symop.naming import layer_name, scoped
from symop.rebuilding import graph_of
from symop.serialize import decode
from symop.symbol import Symbol


class SymbolEmitter:
    """Calling an operator on symbols makes a symbol; layers make the variables they lack."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Symbol:
        """The symbol of the operator's visible outputs."""
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
        also = united(extended) if extended else ()
        if name is not None:
            name = scoped(name, operator.name)
        if operator.creates and any(one is LEFT_OUT for one in nodes):
            name = name or layer_name(operator.name)
            nodes = _with_parameters(operator, nodes, attributes, name)
        result = Node.emitter.emit(operator, tuple(nodes), attributes, name)
        values = result if type(result) is tuple else (result,)
        if values[0].op is CONSTANT:
            also = (*also, *[v.node for v in inputs if type(v) is Symbol and v.constant is None])
        return Symbol(values, also)

    def filled(self, value: bool | int | float | complex, type: VarType) -> Symbol:
        """A constant of ``type``."""
        return Symbol([graph.constant(value, type)])


Symbol.emitter = SymbolEmitter()


def united(symbols: Sequence[Symbol]) -> tuple[Node, ...]:
    """The arguments that ``symbols`` list although they do not need them."""
    return tuple(dict.fromkeys(node for symbol in symbols for node in symbol.also))


def _with_parameters(
    operator: Operator, nodes: Sequence[Any], attributes: Attributes, name: str
) -> list[Any]:
    """``nodes`` with a new variable in each parameter slot that the call left out.

    Their shapes are declared at once where they follow from typed inputs; where nothing is typed
    yet, shape and dtype both wait for what will be fed.
    """
    present = [None if v is None or v is LEFT_OUT else as_node(v) for v in nodes]
    types = tuple(None if n is None or n.types is None else n.types[0] for n in present)
    unknown = (None,) * len(operator.outputs)
    dtype = next((t.dtype for t in types if t is not None and t.differentiable), None)
    known = dtype is not None
    try:
        shapes = operator.inference.complete(types, attributes, unknown) if known else {}
    except SymopError as error:
        raise type(error)(f"{error}{built_at(user_origin())}") from error.__cause__
    made: list[Any] = list(nodes)
    for i, slot in enumerate(operator.slots[: operator.n_fixed]):
        if made[i] is LEFT_OUT and slot.created:
            role = "state" if slot.role == "state" else "argument"
            extra = () if slot.initial is None else (("initial", repr(slot.initial)),)
            made[i] = graph.variable(f"{name}_{slot.name}", shapes.get(i), dtype, role, extra)
    return made


def from_desc(desc: ProgramDesc) -> Symbol:
    """The symbol that ``desc`` records.

    Raises:
        FormatError: something in the records is wrong; the message tells where.
    """
    nodes, variables = graph_of(desc)
    return Symbol(nodes, tuple(variables))


def load_json(text: str | bytes) -> Symbol:
    """The symbol that ``Symbol.tojson`` wrote.

    Raises:
        FormatError: the text is damaged, too large or of a newer version; the message tells where.
    """
    return from_desc(decode(text))


def _pickled(symbol: Symbol) -> tuple[Any, ...]:
    """A symbol is pickled as JSON."""
    return load_json, (symbol.tojson(),)


copyreg.pickle(Symbol, _pickled)
