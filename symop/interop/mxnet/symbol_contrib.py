"""Control flow of ``mx.sym.contrib``: the body's computation becomes a subgraph of a node.

Nodes created by a body are marked with the name of its graph. Where they read other nodes, the
graph gets a variable, and the control-flow node an additional input.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from symop.interop.mxnet.attributes import written
from symop.interop.mxnet.errors import MXNetAssertionError, MXNetError, MXNetValueError
from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.nesting import leaves, like
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.scopes import AttrScope, current_attributes, current_names
from symop.interop.mxnet.symbol_making import var
from symop.interop.mxnet.symbol_operators import called
from symop.interop.mxnet.symbols import Symbol

Function = Callable[..., Any]
_MARK = "__subgraph_name__"
_numbers = itertools.count()


class _Graph(NamedTuple):
    """The computation of a body.

    Attributes:
        heads: its outputs.
        reads: what each of its variables stands for, in order: an entry of the enclosing graph,
            or a variable of the body.
        found: the results of the body, in nested lists.
    """

    heads: list[Entry]
    reads: list[Entry]
    found: Any

    def places(self, own: Sequence[Symbol]) -> list[int | None]:
        """The indices of the body's own variables among its variables."""
        at = {id(node): i for i, (node, _) in enumerate(self.reads)}
        return [at.get(id(one.heads[0][0])) for one in own]


def _singles(nested: Any) -> Any:
    """Nested lists in which symbols with several outputs are split.

    Raises:
        MXNetError: an item is not a symbol.
    """
    if isinstance(nested, (list, tuple)):
        return [_singles(one) for one in nested]
    if not isinstance(nested, Symbol):
        raise MXNetError(f"contrib: symbols must be given, got {nested!r}")
    return nested if len(nested) == 1 else list(nested)


def _graph(name: str, body: Function, *given: Any) -> _Graph:
    """The graph of the results of ``body`` on its arguments."""
    outer = current_attributes().get(None).get(_MARK)
    name = f"{outer}${name}" if outer else name
    name = f"{name}{next(_numbers)}"
    with AttrScope(**{_MARK: name}):
        found = body(*given)
        listed = [_singles(one) for one in found] if isinstance(found, tuple) else _singles(found)
        heads = _own_heads(leaves(listed), name)
    return _Graph(*_cut(heads, name), listed)


def _is_inside(node: Node, name: str) -> bool:
    return node.operator is not None and node.attributes.get(_MARK) == name


def _own_heads(symbols: Sequence[Symbol], name: str) -> list[Entry]:
    """The outputs, each computed by a distinct node created by the body."""
    heads: list[Entry] = []
    for one in symbols:
        node, index = one.heads[0]
        again = any(node is other and index == i for other, i in heads)
        needed = again or not _is_inside(node, name)
        heads.append(called("identity")(one).heads[0] if needed else (node, index))
    return heads


def _cut(heads: Sequence[Entry], name: str) -> tuple[list[Entry], list[Entry]]:
    """A copy of the nodes created by the body, and what its variables stand for."""
    made: dict[int, Node] = {}
    variables: dict[tuple[int, int], tuple[Node, Entry]] = {}

    def entry(node: Node, index: int) -> Entry:
        if _is_inside(node, name):
            return made[id(node)], index
        if (id(node), index) not in variables:
            attributes = node.attributes if node.is_variable else {}
            stand_in = Node(None, node.output_name(index), attributes)
            variables[id(node), index] = stand_in, (node, index)
        return variables[id(node), index][0], 0

    for node in topological(heads):
        if _is_inside(node, name):
            copy = made[id(node)] = Node(None, node.name, node.attributes)
            copy.operator, copy.subgraphs = node.operator, node.subgraphs
            copy.inputs = [entry(*one) for one in node.inputs]
    cut = [entry(*one) for one in heads]
    stands_for = {id(stand_in): read for stand_in, read in variables.values()}
    return cut, [stands_for[id(node)] for node in topological(cut) if node.is_variable]


def _own_variables(prefix: str, nested: Any) -> list[Symbol]:
    number = next(_numbers)
    return [var(f"{prefix}{number}_{i}") for i in range(len(leaves(nested)))]


def _outputs(
    operator: str, inputs: Sequence[Entry], graphs: Sequence[_Graph], **attributes: Any
) -> list[Symbol]:
    """The outputs of a control-flow node."""
    attributes["num_args"] = len(inputs) + len(graphs)
    own = current_attributes().get({key: written(one) for key, one in attributes.items()})
    name = current_names().get(None, operator)
    node = Node(find(operator), name, own, inputs, [one.heads for one in graphs])
    return [Symbol([(node, i)]) for i in range(node.visible)]


def foreach(body: Function, data: Any, init_states: Any, name: str = "foreach") -> tuple[Any, Any]:
    """Calls ``body(slice, states)`` for each slice of ``data`` along the first axis.

    Args:
        body: returns one or several outputs, and the next states.
        data: one or several symbols.
        init_states: the initial states.
        name: the name of the graph.

    Returns:
        The stacked outputs, and the last states.

    Raises:
        MXNetError: the body does not use all its arguments, or the number of states changes.
    """
    data, init_states = _singles(data), _singles(init_states)
    slices, states = _own_variables("slice", data), _own_variables("state", init_states)
    graph = _graph(name, body, like(data, [*slices]), like(init_states, [*states]))
    outputs, following = graph.found
    if len(leaves(following)) != len(states):
        raise MXNetAssertionError(f"foreach: there must be {len(states)} states, got {following}")
    data_at, state_at = graph.places(slices), graph.places(states)
    if None in (*data_at, *state_at):
        raise MXNetAssertionError("foreach: the body must use all data and all states that it gets")
    rest = [i for i in range(len(graph.reads)) if i not in (*data_at, *state_at)]
    given = [one.heads[0] for one in leaves([data, init_states])]
    made = _outputs(
        "_foreach",
        [*given, *[graph.reads[i] for i in rest]],
        [graph],
        num_outputs=len(graph.heads),
        num_out_data=len(leaves(outputs)),
        in_state_locs=state_at,
        in_data_locs=data_at,
        remain_locs=rest,
    )
    return like(outputs, made), like(following, made)


class _Inputs:
    """The inputs of a node, shared by its graphs."""

    def __init__(self, own: Sequence[Symbol] = (), first: Sequence[Symbol] = ()) -> None:
        """The ``own`` variables of the bodies stand for the inputs ``first``."""
        self.entries = [one.heads[0] for one in first]
        self._at = {(id(one.heads[0][0]), 0): i for i, one in enumerate(own)}

    def places(self, graph: _Graph) -> list[int]:
        """The indices of the inputs that the graph reads."""
        for node, index in graph.reads:
            if (id(node), index) not in self._at:
                self._at[id(node), index] = len(self.entries)
                self.entries.append((node, index))
        return [self._at[id(node), index] for node, index in graph.reads]


def while_loop(
    cond: Function,
    func: Function,
    loop_vars: Any,
    max_iterations: int | None = None,
    name: str = "while_loop",
) -> tuple[Any, Any]:
    """Calls ``func(*loop_vars)`` while ``cond(*loop_vars)`` holds.

    Args:
        cond: returns a symbol with one entry.
        func: returns one or several outputs, and the next variables.
        loop_vars: the initial variables.
        max_iterations: the maximal number of iterations.
        name: the name of the graphs.

    Returns:
        The stacked outputs, padded with zeros, and the last variables.

    Raises:
        MXNetError: ``max_iterations`` is missing, a variable is unused, or their number changes.
    """
    if max_iterations is None:
        raise MXNetValueError("while_loop: max_iterations must be given, got none")
    first = _singles(loop_vars)
    own = _own_variables("variable", first)
    given = like(first, [*own])
    variables = given if isinstance(given, list) else [given]
    holds = _graph(f"{name}_cond", cond, *variables)

    def filled(*some: Any) -> tuple[Any, ...]:
        return tuple([] if one is None else one for one in func(*some))

    body = _graph(f"{name}_func", filled, *variables)
    outputs, following = body.found
    at = body.places(own)
    if len(leaves(following)) != len(own) or None in at:
        raise MXNetValueError(f"while_loop: func must use and return {len(own)} variables")
    inputs = _Inputs(own, leaves(first))
    made = _outputs(
        "_while_loop",
        inputs.entries,
        [holds, body],
        cond_input_locs=inputs.places(holds),
        func_input_locs=inputs.places(body),
        func_var_locs=at,
        max_iterations=int(max_iterations),
        num_out_data=len(leaves(outputs)),
        num_outputs=len(body.heads),
    )
    return like(outputs, made), like(first, made)


def cond(pred: Symbol, then_func: Function, else_func: Function, name: str = "cond") -> Any:
    """The result of ``then_func()`` if ``pred`` holds, otherwise of ``else_func()``.

    Raises:
        MXNetError: they return different numbers of outputs.
    """
    question = _graph(f"{name}_pred", lambda: pred)
    then, otherwise = _graph(f"{name}_then", then_func), _graph(f"{name}_else", else_func)
    if len(then.heads) != len(otherwise.heads):
        raise MXNetValueError(
            f"cond: both functions must give as many outputs, got {len(then.heads)} and "
            f"{len(otherwise.heads)}"
        )
    inputs = _Inputs()
    made = _outputs(
        "_cond",
        inputs.entries,
        [question, then, otherwise],
        cond_input_locs=inputs.places(question),
        then_input_locs=inputs.places(then),
        else_input_locs=inputs.places(otherwise),
        num_outputs=len(then.heads),
    )
    return like(then.found, made)
