"""State writes in graphs: the form of operators that change inputs, such as MXNet's updates."""

from collections.abc import Sequence
from typing import Any

from registry.operator.operator import Grads, Operator
from registry.operator.signature import Array, State
from registry.table import find, register
from registry.var import Var
from symop.graph.nodes import VARIABLE, Node, topological
from symop.symbol.symbol import Symbol


def _write(data: Array, state: State, new: Array) -> tuple[Array, Array]:
    """Passes ``data`` through, and sets a state to ``new``, in training or not."""
    return data, new


WRITE = Operator(
    _write, name="mxnet_write", outputs=("out", "new_state"), updates={"state": "new_state"}
)


@WRITE.gradient
def _write_gradient(d_out: Var) -> Grads:
    return {"data": d_out, "new": None}


def writing(values: Sequence[Any], states: Sequence[Any], news: Sequence[Any]) -> tuple[Any, ...]:
    """``values``, each with the effect that ``states`` become ``news``.

    A state that is not a variable is not kept, so it is not written.
    """
    if find(WRITE.name) is None:
        register(WRITE)
    pairs = [pair for pair in zip(states, news, strict=True) if _is_kept(pair[0].node)]
    found = list(values)
    for state, new in pairs:
        found = [WRITE(one, state, new) for one in found]
        found = [one[0] if isinstance(one, tuple) else one for one in found]
    return tuple(found)


def _is_kept(node: Node) -> bool:
    return node.op is VARIABLE and node.attributes[2] == "state"


def written(graph: Symbol) -> list[str]:
    """Names of the states that ``graph`` writes, in training or not."""
    calls = [node for node in topological(graph.nodes) if node.op is WRITE]
    states = [node.inputs[1] for node in calls]
    return list(dict.fromkeys(one.name for one in states if one is not None and one.name))
