"""Labels: the name that each operator of a graph has in XLA's programs, and so in profiles.

A label is the operator and the line that called it, such as ``softmax[model.py:51]``; in a gradient
also the forward operator, as in ``multiply[model.py:51;softmax]``. XLA keeps it in the metadata of
the instructions that the operator is compiled to.
"""

import re

from registry.caches import memoized
from symop.graph.nodes import Node
from symop.graph.origins import Origin

_UNSAFE = re.compile(r"[^\w.<>+-]")
"""What XLA or JAX gives a meaning in names, such as slashes and at signs."""
_LABEL = re.compile(r"[\w.]+\[[^][/]*\]")


def label_of(node: Node) -> str:
    """Returns the label of a node that applies an operator."""
    return f"{node.op.name}[{_place(node.origin)}]"


@memoized(4096)
def _place(origin: Origin | None) -> str:
    if origin is None:
        return "?"
    file = re.split(r"[/\\]", origin.file)[-1] or "?"
    place = f"{_UNSAFE.sub('_', file)}:{origin.line}"
    return f"{place};{_UNSAFE.sub('_', origin.forward)}" if origin.forward else place


def label_in(name: str) -> str | None:
    """Returns the label of the innermost operator in an instruction's ``op_name``; None without."""
    labels: list[str] = _LABEL.findall(name)
    return labels[-1] if labels else None


def kinds_of(label: str) -> tuple[str, str, str]:
    """Returns descriptions of a label, each of more operators than the one before.

    The first is the label. The second omits the forward operator of a gradient: in the body of a
    loop operators have no names, so that it is a kind there. The third omits the line, too, since a
    program from JAX's persistent cache has the lines of when it was compiled.
    """
    head, semicolon, _ = label.partition(";")
    return label, f"{head}{semicolon}", f"{head.partition('[')[0]}{semicolon}"
