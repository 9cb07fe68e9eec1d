"""Rematerialization policies: which values are kept for a gradient, and scopes with a policy."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple

from registry.errors import ArgumentError
from registry.operator.bodies import bodies_of
from registry.operator.operator import Operator
from registry.types import VarType
from symop.graph.nodes import Node
from symop.graph.origins import scopes


class Value(NamedTuple):
    """The information about a value that a predicate receives.

    Attributes:
        name: The name given by the user, or None.
        operator: The name of the operator that computes the value.
        type: The shape and dtype.
        costly: Whether the operator is declared costly.
    """

    name: str | None
    operator: str
    type: VarType
    costly: bool


Predicate = Callable[[Value], bool]


@dataclasses.dataclass(frozen=True)
class Policy:
    """A choice of the values of a graph to keep for its gradient; ``so.remat`` makes policies.

    Attributes:
        name: The name shown in messages and reports.
        again: Whether anything is recomputed at all.
        costly: Whether the results of costly operators are kept.
        names: The names of values that are kept.
        predicate: Returns whether any other value is kept.
        nodes: The values that ``names`` refer to where names are not node names.
        cuts: The number of segments that the graph is cut into, each recomputed on its own; None
            for the number that takes the least memory, or for one if ``names`` is not empty.
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
        """Whether the kept values follow only from where the graph is cut."""
        return self.again and self.cuts != 1 and not self.costly

    @property
    def chosen(self) -> bool:
        """Whether the user chooses which values are kept."""
        return bool(self.names or self.nodes) or self.predicate is not None

    @property
    def rolls(self) -> bool:
        """Whether repeated blocks may become a loop: not if single values of them are kept."""
        return not self.chosen

    def keeps(self, node: Node) -> bool:
        """Whether the value of ``node`` is kept when a block computes it."""
        if not self.again:
            return True
        if self.costly and is_costly(node.source):
            return True
        if not self.names.isdisjoint((node.name, node.source.name)) or node in self.nodes:
            return True
        return self.predicate is not None and bool(self.predicate(value_of(node)))

    def drops(self, node: Node) -> bool:
        """Whether a loop step recomputes ``node``; a scope inside the step takes precedence."""
        if not isinstance(node.source.op, Operator):
            return False
        scope = scope_of(node)
        return not (self if scope is None else scope.policy).keeps(node)


KEEP_ALL = Policy("keep_all", again=False)
KEEP_NONE = Policy("keep_none")
KEEP_COSTLY = Policy("keep_costly", costly=True, cuts=None)


def value_of(node: Node) -> Value:
    """Returns the description of ``node`` that predicates receive."""
    source = node.source
    return Value(node.name or source.name, source.op.name, node.type, is_costly(source))


def is_costly(node: Node) -> bool:
    """Whether the operator of ``node`` is declared costly, or runs a body that contains one."""
    if not isinstance(node.op, Operator):
        return False
    if node.op.costly or not node.attributes:
        return node.op.costly
    return any(body.costly for body in bodies_of(node.attributes))


def require_policy(owner: str, policy: object) -> Policy | None:
    """Returns ``policy`` if it is a policy or None.

    Raises:
        ArgumentError: ``policy`` is anything else.
    """
    if policy is None or isinstance(policy, Policy):
        return policy
    raise ArgumentError(
        f"{owner}: remat must be a policy, such as so.remat.segments(), or None, got {policy!r}"
    )


# Scopes ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class RematScope:
    """An entered scope: nodes built inside it are recomputed as one block.

    Attributes:
        policy: Which values of the block are kept.
        outer: The scope in which it was entered.
        depth: The number of nested scopes, itself included.
    """

    policy: Policy
    outer: "RematScope | None"

    @property
    def depth(self) -> int:
        """The number of nested scopes, itself included."""
        return 1 + (self.outer.depth if self.outer is not None else 0)


def scope_of(node: Node) -> RematScope | None:
    """Returns the innermost scope in which ``node`` was built."""
    origin = node.source.origin
    scope = None if origin is None else origin.scope
    return scope if isinstance(scope, RematScope) else None


def around_both(first: RematScope | None, second: RematScope | None) -> RematScope | None:
    """Returns the innermost scope that contains both."""
    holding = set(_chain(first))
    return next((one for one in _chain(second) if one in holding), None)


def within(inner: RematScope | None, outer: RematScope | None) -> RematScope | None:
    """Returns ``inner`` if it was entered inside ``outer``, else None."""
    return None if inner in set(_chain(outer)) else inner


def _chain(scope: RematScope | None) -> Iterator[RematScope]:
    while scope is not None:
        yield scope
        scope = scope.outer


@contextlib.contextmanager
def scope(policy: Policy | None = None) -> Iterator[None]:
    """Marks nodes built inside as one block, whose inputs a gradient keeps to recompute the rest.

    A scope applies wherever the graph is differentiated, regardless of ``remat=`` there. Scopes
    nest. Each entry makes a separate block, so enter one scope for each layer.

    Args:
        policy: Which values of the block are kept; by default none.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(8, 8))
        >>> with so.remat.scope():
        ...     y = so.tanh(so.matmul(x, x))
        >>> gradient = so.grad(so.sum(y * y), x)  # keeps x alone
    """
    chosen = require_policy("scope", policy)
    present = scopes.current()
    outer = present if isinstance(present, RematScope) else None
    with scopes.entered(RematScope(KEEP_NONE if chosen is None else chosen, outer)):
        yield
