"""Names of the nodes of a graph: those that users gave, and automatic ones that follow its order.

Automatic names depend on the graph alone: the same graph has the same names in every process.
Calls that create parameters are named when they are made, by the counters of the current scope.
"""

import contextlib
import itertools
import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from registry.errors import ArgumentError, FeedError, NameConflictError, nearest
from registry.operator import Operator
from registry.table import get
from registry.table import names as operator_names
from symop.graph import SELECT, VARIABLE, Node, built_at, topological


def names_of(order: Sequence[Node]) -> dict[Node, str]:
    """A name for each node of ``order`` (topological): given, or the operator's and a number.

    Raises:
        NameConflictError: two nodes were given one name.
    """
    taken = _given(order)
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


def _given(order: Sequence[Node]) -> dict[str, Node]:
    """The nodes of ``order`` that users named, by name."""
    taken: dict[str, Node] = {}
    for node in order:
        if node.name is not None:
            _claim(taken, node.name, node)
    return taken


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

    Variables of one name and type are one variable, so two layers of one name would share their
    parameters unasked: the names of calls are checked here too.

    Raises:
        NameConflictError: two nodes were given one name.
    """
    return variables_among(topological(outputs))


def variables_among(order: Sequence[Node]) -> dict[str, Node]:
    """The same of nodes in topological order."""
    return {name: node for name, node in _given(order).items() if node.op is VARIABLE}


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


_Counters = dict[str, int]
"""By the operator's name, the number of its next layer."""
_outside: _Counters = {}
"""The counters outside all scopes, which all threads share."""
_lock = threading.Lock()


class _Scope(threading.local):
    """The current scope of this thread: a prefix, and a counter for each operator's name."""

    def __init__(self) -> None:
        self.prefix = ""
        self.counters = _outside


_scope = _Scope()


@contextlib.contextmanager
def name_scope(prefix: str = "") -> Iterator[None]:
    """Names made inside start with ``prefix`` and count from zero.

    Names that users give and names that layers get are both prefixed. Scopes nest. Entering a scope
    again gives the same names again, on purpose; one graph cannot hold both layers of one name.

    Example:
        >>> import symop as so
        >>> with so.name_scope("encoder_"):
        ...     so.var("x").list_arguments()
        ['encoder_x']
    """
    before = _scope.prefix, _scope.counters
    _scope.prefix, _scope.counters = before[0] + prefix, {}
    try:
        yield
    finally:
        _scope.prefix, _scope.counters = before


def scoped(name: str, owner: str) -> str:
    """``name``, which a user gives, with the prefix of the current scope.

    Raises:
        ArgumentError: it is no text that can be written to a file.
    """
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"{owner}: the name must be a non-empty str, got {name!r}")
    if not name.isascii() and _SURROGATE.search(name):
        raise ArgumentError(f"{owner}: the name must be text that UTF-8 can hold, got {name!r}")
    return _scope.prefix + name


_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character: Python holds it, no encoding does."""


def layer_name(stem: str) -> str:
    """The next automatic name of the current scope for a call that creates parameters.

    Outside all scopes no name is given twice in a process, nor one that a loaded graph holds.
    """
    counters = _scope.counters
    with _lock:
        number = counters.get(stem, 0)
        counters[stem] = number + 1
    return f"{_scope.prefix}{stem}{number}"


_AUTOMATIC = re.compile(r"(.*?[^0-9])([0-9]{1,9})(_.*)?", re.DOTALL)
"""What ``layer_name`` makes, and the names of a layer's parameters."""


def reserve(names: Iterable[str]) -> None:
    """Keep ``layer_name`` from giving one of ``names``, or one whose parameters have them."""
    layers: Collection[str] | None = None
    for name in names:
        found = _AUTOMATIC.fullmatch(name)
        if found is None:
            continue
        if layers is None:
            layers = {one for one in operator_names() if get(one).creates}
        stem = found[1]
        if stem in layers:
            with _lock:
                _outside[stem] = max(_outside.get(stem, 0), int(found[2]) + 1)
