"""Policies: which values of a graph are kept for its gradient; scopes of a graph that have one."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple

from registry.bodies import bodies_of
from registry.errors import ArgumentError
from registry.operator import Operator
from registry.types import VarType
from symop.graph import SELECT, Node
from symop.origins import ambient


class Value(NamedTuple):
    """What a predicate is told of a value.

    Attributes:
        name: the name that the user gave, or None.
        operator: the name of the operator that computes it.
        type: shape and dtype.
        costly: whether the operator says that it costs much.
    """

    name: str | None
    operator: str
    type: VarType
    costly: bool


Predicate = Callable[[Value], bool]


@dataclasses.dataclass(frozen=True)
class Policy:
    """What is kept of a graph for its gradient; ``so.remat`` makes policies.

    Attributes:
        name: how it is called in messages and reports.
        again: whether anything is computed again at all.
        costly: whether the results of costly operators are kept.
        names: values that are kept by name.
        predicate: tells which others are.
        nodes: the values that ``names`` mean where names are no names of nodes.
        cuts: into how many segments the graph is cut, each of which is computed again by itself;
            None for as many as take the least memory, and one where there are ``names``.
    """

    name: str
    again: bool = True
    costly: bool = False
    names: frozenset[str] = frozenset()
    predicate: Predicate | None = None
    nodes: frozenset[Node] = frozenset()
    cuts: int | None = 1

    def __repr__(self) -> str:
        return f"<policy {self.name}>"

    @property
    def segments(self) -> bool:
        """Whether what is kept follows from where a graph is cut, alone."""
        return self.again and self.cuts != 1 and not self.costly

    @property
    def chosen(self) -> bool:
        """Whether the user says which values are kept."""
        return bool(self.names or self.nodes) or self.predicate is not None

    @property
    def rolls(self) -> bool:
        """Whether repeated blocks may become a loop: not where single values of them are kept."""
        return not self.chosen

    def keeps(self, node: Node) -> bool:
        """Whether the value of ``node`` is kept where it is computed in a block."""
        if not self.again:
            return True
        source = node.operands[0] if node.op is SELECT else node
        if self.costly and is_costly(source):
            return True
        if not self.names.isdisjoint((node.name, source.name)) or node in self.nodes:
            return True
        return self.predicate is not None and bool(self.predicate(value_of(node)))

    def drops(self, node: Node) -> bool:
        """Whether a step of a loop computes ``node`` again; a scope inside of it decides first."""
        if node.op is not SELECT and not isinstance(node.op, Operator):
            return False
        scope = scope_of(node)
        return not (self if scope is None else scope.policy).keeps(node)


KEEP_ALL = Policy("keep_all", again=False)
KEEP_NONE = Policy("keep_none")
KEEP_COSTLY = Policy("keep_costly", costly=True, cuts=None)


def value_of(node: Node) -> Value:
    """``node`` as a predicate sees it."""
    source = node.operands[0] if node.op is SELECT else node
    return Value(node.name or source.name, source.op.name, node.type, is_costly(source))


def is_costly(node: Node) -> bool:
    """Whether an operator declares that it costs much, or a body that it runs holds such a one."""
    if not isinstance(node.op, Operator):
        return False
    if node.op.costly or not node.attributes:
        return node.op.costly
    return any(body.costly for body in bodies_of(node.attributes))


def require_policy(owner: str, given: object) -> Policy | None:
    """``given`` as a policy, or None.

    Raises:
        ArgumentError: it is something else.
    """
    if given is None or isinstance(given, Policy):
        return given
    raise ArgumentError(
        f"{owner}: remat must be a policy, such as so.remat.segments(), or None, got {given!r}"
    )


# Scopes ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Scope:
    """One entered scope: what is built inside of it is computed again as one block.

    Attributes:
        policy: what is kept of it.
        outer: the scope that it was entered in.
        depth: how many scopes that makes.
    """

    policy: Policy
    outer: "Scope | None"

    @property
    def depth(self) -> int:
        """How many scopes are around it, itself included."""
        return 1 + (self.outer.depth if self.outer is not None else 0)


def scope_of(node: Node) -> Scope | None:
    """The innermost scope that ``node`` was built in."""
    origin = (node.operands[0] if node.op is SELECT else node).origin
    found = None if origin is None else origin.scope
    return found if isinstance(found, Scope) else None


def around_both(first: Scope | None, second: Scope | None) -> Scope | None:
    """The innermost scope that holds both."""
    holding = set(_chain(first))
    return next((one for one in _chain(second) if one in holding), None)


def within(inner: Scope | None, outer: Scope | None) -> Scope | None:
    """``inner``, if it was entered inside of ``outer``."""
    return None if inner in set(_chain(outer)) else inner


def _chain(scope: Scope | None) -> Iterator[Scope]:
    while scope is not None:
        yield scope
        scope = scope.outer


@contextlib.contextmanager
def scope(policy: Policy | None = None) -> Iterator[None]:
    """What is built inside is one block: a gradient keeps what enters it, and computes it again.

    A scope holds wherever the graph is differentiated, whatever ``remat=`` says there. Scopes nest.
    Each time that one is entered it is a block of its own: enter it once for each layer.

    Args:
        policy: what is kept of it; nothing without one.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(8, 8))
        >>> with so.remat.scope():
        ...     y = so.tanh(so.matmul(x, x))
        >>> gradient = so.grad(so.sum(y * y), x)  # keeps x alone
    """
    chosen = require_policy("scope", policy)
    before = ambient.scope
    outer = before if isinstance(before, Scope) else None
    ambient.scope = Scope(KEEP_NONE if chosen is None else chosen, outer)
    try:
        yield
    finally:
        ambient.scope = before
