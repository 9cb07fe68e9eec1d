"""Names of graph nodes: given by users, or generated in the order of the graph.

Generated names depend only on the graph, so the same graph has the same names in every process.
Calls that create parameters are named when they are made, by the counters of the current scope.
"""

import contextlib
import itertools
import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from registry.errors import ArgumentError, FeedError, NameConflictError, nearest
from registry.operator.operator import Operator
from registry.table import get
from registry.table import names as operator_names
from symop.graph.nodes import VARIABLE, Node, built_at, topological
from symop.graph.origins import name_prefix
from symop.graph.scoping import Scopes


def names_of(order: Sequence[Node]) -> dict[Node, str]:
    """Returns a name for each node of ``order`` (topological): the given one, or a generated one.

    A generated name is the operator's name and a number.

    Raises:
        NameConflictError: Two nodes were given the same name.
    """
    taken = _names_of_users(order)
    counters: dict[str, itertools.count[int]] = defaultdict(itertools.count)
    names: dict[Node, str] = {}
    for node in order:
        if node.name is not None:
            names[node] = node.name
        elif node.is_selection:
            names[node] = _selected(node, names)
        else:
            names[node] = _automatic(node.op.name, counters, taken, node)
    return names


def _names_of_users(order: Sequence[Node]) -> dict[str, Node]:
    """Returns the nodes of ``order`` that users named, by name."""
    taken: dict[str, Node] = {}
    for node in order:
        if node.name is not None:
            _claim(taken, node.name, node)
    return taken


def _claim(taken: dict[str, Node], name: str, node: Node) -> None:
    other = taken.setdefault(name, node)
    if other is not node:
        layers = all(isinstance(one.op, Operator) and one.op.creates for one in (other, node))
        hint = "; so.name_scope(..., reuse=True) shares parameters" if layers else ""
        raise NameConflictError(
            f"{name}: two nodes of one graph must not have the same name{hint}"
            f"{built_at(other.origin)}{built_at(node.origin)}"
        )


def _selected(node: Node, names: dict[Node, str]) -> str:
    outputs = node.source.op.outputs if isinstance(node.source.op, Operator) else ()
    return f"{names[node.source]}.{outputs[node.index] if outputs else node.index}"


def _automatic(
    stem: str, counters: dict[str, "itertools.count[int]"], taken: dict[str, Node], node: Node
) -> str:
    while True:
        name = f"{stem}{next(counters[stem])}"
        if taken.setdefault(name, node) is node:
            return name


def output_name(node: Node, names: dict[Node, str]) -> str:
    """Returns the name of a node in ``list_outputs``: a variable's name, else ``<name>_<output>``.
    The output ``out`` is spelled ``output``.
    A sole output that is called ``out`` makes that ``<name>_output``.
    """
    name = names[node]
    if node.op is VARIABLE:
        return name
    if node.is_selection:
        return name.replace(".", "_")
    outputs = node.op.outputs if isinstance(node.op, Operator) else ()
    return f"{name}_{outputs[0]}" if outputs and outputs[0] != "out" else f"{name}_output"


_gradients: "WeakKeyDictionary[Node, tuple[str, ...]]" = WeakKeyDictionary()
"""The names of the values whose gradient a node is; only drawings and reports read them."""


def note_gradients(xs: Sequence[Node], gradients: Sequence[Node | None]) -> None:
    """Notes for each of ``gradients`` that it is the gradient of one of ``xs``."""
    for x, gradient in zip(xs, gradients, strict=True):
        if gradient is not None and gradient.inputs and x.name is not None:
            known = _gradients.get(gradient, ())
            if x.name not in known:
                _gradients[gradient] = (*known, x.name)


def gradient_name(node: Node) -> str | None:
    """Returns ``gradient of x``, if a node is the gradient of a value called ``x``; else None."""
    names = _gradients.get(node)
    return None if names is None else f"gradient of {', '.join(names)}"


def variables_of(outputs: Sequence[Node]) -> dict[str, Node]:
    """Returns the variables that ``outputs`` need, by name, in depth-first order.

    Variables of the same name and type are one variable, so two layers of the same name would
    share their parameters by accident. The names of calls are therefore checked here as well.

    Raises:
        NameConflictError: Two nodes were given the same name.
    """
    return variables_among(topological(outputs))


def variables_among(order: Sequence[Node]) -> dict[str, Node]:
    """Returns the variables among nodes in topological order; see ``variables_of``."""
    return {name: node for name, node in _names_of_users(order).items() if node.op is VARIABLE}


def require_known(owner: str, names: Iterable[str], legal: Collection[str]) -> None:
    """Raises an error for a name that no variable has.

    Raises:
        FeedError: A name in ``names`` is not in ``legal``; the message suggests the nearest ones.
    """
    for name in names:
        if name not in legal:
            raise FeedError(
                f"{owner}: names must be among {', '.join(legal) or 'none'}, got {name!r}"
                f"{nearest(name, legal)}"
            )


_Counters = dict[str, int]
"""For each operator name, the number of its next layer."""
_outside: _Counters = {}
"""The counters outside all scopes, shared by all threads."""
_lock = threading.Lock()


class _NameScope(NamedTuple):
    """A name scope: a prefix, a counter for each operator name, and whether parameters are shared.

    The calls in a scope that shares parameters have no names of their own.
    """

    prefix: str
    counters: _Counters
    reuse: bool = False


_scopes = Scopes("name_scope", _NameScope("", _outside))


@contextlib.contextmanager
def name_scope(prefix: str = "", *, reuse: bool = False) -> Iterator[None]:
    """Prefixes names made inside with ``prefix``, and counts layers from zero.

    Names given by users and names generated for layers are both prefixed; an underscore follows a
    prefix that ends in a letter or a digit. Scopes nest. Entering a scope again gives the same
    names again, and one graph cannot hold two layers of the same name: with ``reuse``, the layers
    inside, and in scopes inside, share the parameters of the layers of the same names, and their
    calls have generated names.

    Example:
        >>> import symop as so
        >>> x, y = so.var("x", shape=(2, 3)), so.var("y", shape=(2, 3))
        >>> with so.name_scope("encoder"):
        ...     a = so.fully_connected(x, units=4)
        >>> with so.name_scope("encoder", reuse=True):
        ...     b = so.fully_connected(y, units=4)
        >>> (a + b).list_arguments()[1:3]
        ['encoder_fully_connected0_weight', 'encoder_fully_connected0_bias']

        >>> import symop as so
        >>> with so.name_scope("encoder_"):
        ...     so.var("x").list_arguments()
        ['encoder_x']
    """
    if prefix and prefix[-1].isalnum():
        prefix += "_"
    outer = _scopes.current()
    scope = _NameScope(outer.prefix + prefix, {}, reuse or outer.reuse)
    with _scopes.entered(scope), name_prefix.entered(scope.prefix):
        yield


def current_prefix() -> str:
    """Returns the prefix of the current scope."""
    return _scopes.current().prefix


def shares_parameters() -> bool:
    """Whether the current scope shares the parameters of layers of the same names."""
    return _scopes.current().reuse


def scoped_name(name: str, owner: str) -> str:
    """Returns ``name``, which a user gave, with the prefix of the current scope.

    Raises:
        ArgumentError: The name is not a non-empty string that UTF-8 can encode.
    """
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"{owner}: the name must be a non-empty str, got {name!r}")
    if not name.isascii() and _SURROGATE.search(name):
        raise ArgumentError(f"{owner}: the name must be text that UTF-8 can hold, got {name!r}")
    return _scopes.current().prefix + name


_SURROGATE = re.compile("[\ud800-\udfff]")
"""A lone surrogate: a Python string may contain it, but no encoding can represent it."""


def layer_name(stem: str) -> str:
    """Returns the next generated name of the current scope for a call that creates parameters.

    Outside all scopes, no name is given twice in a process, nor is one that a loaded graph uses.
    """
    return _scopes.current().prefix + next_name(stem)


def next_name(stem: str) -> str:
    """Returns the next generated name of the current scope, without the prefix of the scope."""
    counters = _scopes.current().counters
    with _lock:
        number = counters.get(stem, 0)
        counters[stem] = number + 1
    return f"{stem}{number}"


composed: set[str] = set()
"""The stems of the generated names of layers that are compositions of operators."""


_AUTOMATIC = re.compile(r"(.*?[^0-9])([0-9]{1,9})(_.*)?", re.DOTALL)
"""Matches the results of ``layer_name`` and the names of a layer's parameters."""


def reserve(names: Iterable[str]) -> None:
    """Prevents ``layer_name`` from returning one of ``names``, or a layer whose parameters do."""
    layers: Collection[str] | None = None
    for name in names:
        match = _AUTOMATIC.fullmatch(name)
        if match is None:
            continue
        if layers is None:
            layers = composed | {one for one in operator_names() if get(one).creates}
        stem = match[1]
        if stem in layers:
            with _lock:
                _outside[stem] = max(_outside.get(stem, 0), int(match[2]) + 1)
