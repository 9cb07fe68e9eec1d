"""Graphs as text, in the form of MXNet's ``debug_str``."""

from collections.abc import Iterator, Sequence

from symop.interop.mxnet.graph import Entry, Node, topological

_RULE = "-" * 20


def described(heads: Sequence[Entry]) -> str:
    """The graph as text: outputs, then variables and calls, inputs before their readers."""
    lines = ["Symbol Outputs:"]
    lines += [f"\toutput[{i}]={node.name}({at})" for i, (node, at) in enumerate(heads)]
    for node in topological(heads):
        lines += [f"Variable:{node.name}"] if node.is_variable else _call_lines(node)
    return "\n".join(lines) + "\n"


def _call_lines(node: Node) -> Iterator[str]:
    assert node.operator is not None
    yield from (_RULE, f"Op:{node.operator.name}, Name={node.name}", "Inputs:")
    states = {id(one) for one in node.states()}
    for i, (below, at) in enumerate(node.inputs):
        version = f" version={int(id(below) in states)}" if below.is_variable else ""
        yield f"\targ[{i}]={below.name}({at}){version}"
    if node.attributes:
        yield "Attrs:"
        yield from (f"\t{key}={one}" for key, one in sorted(node.attributes.items()))
