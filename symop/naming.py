"""Names of the nodes of a graph: those that users gave, and automatic ones that follow its order.

Automatic names depend on the graph alone: the same graph has the same names in every process.
Calls that create parameters are named when they are made, by the counters of the current scope.
"""

import contextlib
import itertools
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from registry.errors import FeedError, NameConflictError, nearest
from registry.operator import Operator
from symop.graph import SELECT, VARIABLE, Node, built_at, leaves, topological


def names_of(order: Sequence[Node]) -> dict[Node, str]:
    """A name for each node of ``order`` (topological): given, or the operator's and a number.

    Raises:
        NameConflictError: two nodes were given one name.
    """
    taken: dict[str, Node] = {}
    for node in order:
        if node.name is not None:
            _claim(taken, node.name, node)
    counters: dict[str, itertools.count[int]] = defaultdict(itertools.count)
    names: dict[Node, str] = {}
    for node in order:
        if node.name is not None:
            names[node] = node.name
        elif node.op is SELECT:
            names[node] = _selected(node, names)
        else:
            names[node] = _automatic(node.op.name, counters, taken, node)
    return names


def _claim(taken: dict[str, Node], name: str, node: Node) -> None:
    other = taken.setdefault(name, node)
    if other is not node:
        raise NameConflictError(
            f"{name}: two nodes of one graph must not have the same name"
            f"{built_at(other.origin)}{built_at(node.origin)}"
        )


def _selected(node: Node, names: dict[Node, str]) -> str:
    (source,) = node.operands
    index: int = node.attributes[0]
    outputs = source.op.outputs if isinstance(source.op, Operator) else ()
    return f"{names[source]}.{outputs[index] if outputs else index}"


def _automatic(
    stem: str, counters: dict[str, "itertools.count[int]"], taken: dict[str, Node], node: Node
) -> str:
    while True:
        name = f"{stem}{next(counters[stem])}"
        if taken.setdefault(name, node) is node:
            return name


def output_name(node: Node, names: dict[Node, str]) -> str:
    """What ``list_outputs`` calls a node: a variable by its name, else ``<name>_<output>``."""
    name = names[node]
    if node.op is VARIABLE:
        return name
    if node.op is SELECT:
        return name.replace(".", "_")
    outputs = node.op.outputs if isinstance(node.op, Operator) else ()
    return f"{name}_{outputs[0]}" if outputs and outputs[0] != "out" else f"{name}_output"


def variables_of(outputs: Sequence[Node]) -> dict[str, Node]:
    """The variables that ``outputs`` need, by name, depth first.

    Raises:
        NameConflictError: two variables have the same name.
    """
    found = leaves(topological(outputs), VARIABLE)
    return {name: node for node, name in names_of(found).items()}


def require_known(owner: str, given: Iterable[str], legal: Collection[str]) -> None:
    """Refuse names that no variable has.

    Raises:
        FeedError: ``given`` has a name that ``legal`` has not; the nearest are suggested.
    """
    for name in given:
        if name not in legal:
            raise FeedError(
                f"{owner}: names must be among {', '.join(legal) or 'none'}, got {name!r}"
                f"{nearest(name, legal)}"
            )


class _Scope(threading.local):
    """The current scope of this thread: a prefix, and a counter for each operator's name."""

    def __init__(self) -> None:
        self.prefix = ""
        self.counters: dict[str, itertools.count[int]] = defaultdict(itertools.count)


_scope = _Scope()


@contextlib.contextmanager
def name_scope(prefix: str = "") -> Iterator[None]:
    """Names made inside start with ``prefix`` and count from zero.

    Names that users give and names that layers get are both prefixed. Scopes nest.

    Example:
        >>> import symop as so
        >>> with so.name_scope("encoder_"):
        ...     so.var("x").list_arguments()
        ['encoder_x']
    """
    before = _scope.prefix, _scope.counters
    _scope.prefix, _scope.counters = before[0] + prefix, defaultdict(itertools.count)
    try:
        yield
    finally:
        _scope.prefix, _scope.counters = before


def scoped(name: str) -> str:
    """``name`` with the prefix of the current scope."""
    return _scope.prefix + name


def layer_name(stem: str) -> str:
    """The next automatic name of the current scope for a call that creates parameters."""
    return scoped(f"{stem}{next(_scope.counters[stem])}")
