"""``Executor.get_optimized_symbol``: the graph of an executor in which equal calls are one call."""

from collections.abc import Sequence

from registry.hooks import define
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.symbols import Symbol

_DRAWS = ("Dropout", "RNN", "_random_", "_sample_", "_shuffle", "sample_")
"""The beginnings of the names of operators that draw random numbers."""


def get_optimized_symbol(self: Executor) -> Symbol:
    """The graph that runs: each call once, unless ``MXNET_ELIMINATE_COMMON_EXPR`` was 0.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> a, b = mx.sym.var("a"), mx.sym.var("b")
        >>> executor = ((a + b) * (a + b)).simple_bind(mx.cpu(), a=(2,), b=(2,))
        >>> len(executor.get_optimized_symbol().get_internals())
        4
    """
    heads = self.heads
    return Symbol(_outputs_apart(merged_calls(heads)) if self.merges_calls else list(heads))


def merged_calls(heads: Sequence[Entry]) -> list[Entry]:
    """Copies a graph; calls of one operator on equal inputs and attributes become one call."""
    made: dict[int, Node] = {}
    known: dict[object, Node] = {}
    for node in topological(heads):
        inputs = [(made[id(below)], index) for below, index in node.inputs]
        if node.operator is None or not _may_be_shared(node):
            made[id(node)] = _with_inputs(node, inputs)
            continue
        own = frozenset((name, one) for name, one in node.attributes.items() if name[:2] != "__")
        key = node.operator.name, own, tuple((id(below), index) for below, index in inputs)
        if key not in known:
            known[key] = _with_inputs(node, inputs)
        made[id(node)] = known[key]
    return [(made[id(node)], index) for node, index in heads]


def _may_be_shared(node: Node) -> bool:
    """Whether two such calls always give the same result."""
    own = node.operator
    assert own is not None
    fixed = not (own.calls_back or own.states or node.subgraphs)
    return fixed and not own.name.startswith(_DRAWS)


def _with_inputs(node: Node, inputs: Sequence[Entry]) -> Node:
    if node.operator is None:
        return node
    return Node(node.operator, node.name, node.attributes, inputs, node.subgraphs)


def _outputs_apart(heads: Sequence[Entry]) -> list[Entry]:
    """``heads``; an output that occurs again is a copy, since outputs do not share memory."""
    found: list[Entry] = []
    for node, index in heads:
        again = any(node is one and index == place for one, place in found)
        copy = Node(find("_copy"), f"{node.name}_copy{len(found)}", {}, [(node, index)])
        found.append((copy, 0) if again else (node, index))
    return found


define(Executor, get_optimized_symbol=get_optimized_symbol)
