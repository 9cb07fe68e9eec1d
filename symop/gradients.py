"""Gradients of nodes: what a missing gradient means, and derivatives that wait for shapes."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from registry.errors import (
    DisconnectedError,
    DTypeError,
    GradientError,
    NotDifferentiableError,
    ShapeError,
)
from registry.operator import Derivative, Operator
from registry.table import get
from symop.differentiate import carries_cotangent, ones, pullback, pushforward, zeros
from symop.emission import Image, expanded
from symop.graph import (
    KEY,
    SELECT,
    VARIABLE,
    Node,
    as_node,
    built_at,
    constant,
    reaching,
    select,
    topological,
)
from symop.policies import Policy
from symop.sums import Sum, meeting, plain

Unreachable = Literal["error", "zero", "none"]
"""What to do where no path leads: raise, return zeros, or return None.

A derivative that is zero by a rule is zeros, and one that is undefined an error, whatever it says.
"""


Summing = Callable[[Sequence[Node]], Sum]
Pull = Callable[
    [Sequence[Node], Sequence[Node], Sequence[Node], Policy | None, Summing], list[Node | None]
]
"""``pullback``, told what to keep of the graph, and how to write sums."""


def _keeping_all(
    ys: Sequence[Node],
    xs: Sequence[Node],
    heads: Sequence[Node],
    policy: Policy | None,
    summing: Summing,
) -> list[Node | None]:
    assert policy is None
    return pullback(ys, xs, heads, summing)


_pull: list[Pull] = [_keeping_all]


def install(pull: Pull) -> None:
    """Let ``pull`` compute gradients: blocks of a graph need bodies, which need gradients."""
    _pull[:] = [pull]


class GradExpansion(NamedTuple):
    """``grad`` of a graph whose types are not all known yet."""

    n_ys: int
    n_xs: int
    has_heads: tuple[bool, ...]
    unreachable: Unreachable
    name: str = "grad"

    def expand(self, inputs: Sequence[Node], originals: Sequence[Node]) -> list[Node]:
        """The gradients with respect to the xs among ``inputs``.

        ``originals`` is what ``inputs`` were before their types were known: a value that depended
        on x then is a function of x still, although it may have become a constant.
        """
        end = self.n_ys + self.n_xs
        ys, xs = inputs[: self.n_ys], inputs[self.n_ys : end]
        rest = iter(inputs[end:])
        heads = [next(rest) if has else None for has in self.has_heads]
        before = set(topological(originals[: self.n_ys]))
        pairs = zip(xs, originals[self.n_ys : end], strict=True)
        arguments = [x for x, original in pairs if original in before]
        found = typed_grad(ys, xs, heads, self.unreachable, arguments)
        return [_required(one) for one in found]

    def to_attrs(self) -> dict[str, Any]:
        """The fields as plain data."""
        return self._asdict()


class JvpExpansion(NamedTuple):
    """``jvp`` of a graph whose types are not all known yet."""

    n_ys: int
    n_xs: int
    unreachable: Unreachable
    name: str = "jvp"

    def expand(self, inputs: Sequence[Node], originals: Sequence[Node]) -> list[Node]:
        """The tangents of the ys among ``inputs``; ``originals`` as in ``GradExpansion``."""
        ys, rest = inputs[: self.n_ys], inputs[self.n_ys :]
        before = set(topological(originals[: self.n_ys]))
        pairs = zip(rest[: self.n_xs], originals[self.n_ys :], strict=False)
        arguments = [x for x, original in pairs if original in before]
        return typed_jvp(ys, rest[: self.n_xs], rest[self.n_xs :], self.unreachable, arguments)

    def to_attrs(self) -> dict[str, Any]:
        """The fields as plain data."""
        return self._asdict()


def _required(node: Node | None) -> Node:
    assert node is not None
    return node


def grad_nodes(
    ys: Sequence[Node],
    xs: Sequence[Node],
    heads: Sequence[Node | None],
    unreachable: Unreachable = "error",
    arguments: Sequence[Node] = (),
    remat: Policy | None = None,
) -> list[Node | None]:
    """Gradients as nodes; deferred ones where types are not known yet.

    ``arguments`` are values that the ys are functions of, although they may not need them: their
    gradients are zero rather than missing. Of a graph whose types are known they keep what
    ``remat`` tells.
    """
    inputs = [*ys, *xs, *[head for head in heads if head is not None]]
    if all(node.types is not None for node in topological(inputs)):
        return typed_grad(ys, xs, heads, unreachable, arguments, remat)
    if remat is not None:
        raise GradientError(
            "grad: remat= needs the shapes of all variables, because what is kept follows from them"
        )
    if unreachable == "none":
        raise GradientError(
            "grad: unreachable='none' needs the shapes of all variables; give them, or use 'zero'"
        )
    expansion = GradExpansion(
        len(ys), len(xs), tuple(head is not None for head in heads), unreachable
    )
    return list(_parts(expanded(expansion, inputs), len(xs)))


def jvp_nodes(
    ys: Sequence[Node],
    xs: Sequence[Node],
    tangents: Sequence[Node],
    unreachable: Unreachable = "error",
    arguments: Sequence[Node] = (),
) -> list[Node]:
    """Tangents as nodes; deferred ones where types are not known yet."""
    inputs = [*ys, *xs, *tangents]
    if all(node.types is not None for node in topological(inputs)):
        return typed_jvp(ys, xs, tangents, unreachable, arguments)
    return _parts(expanded(JvpExpansion(len(ys), len(xs), unreachable), inputs), len(ys))


def _parts(image: Image, count: int) -> list[Node]:
    return image if isinstance(image, list) else [select(image, i) for i in range(count)]


def typed_grad(
    ys: Sequence[Node],
    xs: Sequence[Node],
    heads: Sequence[Node | None],
    unreachable: Unreachable,
    arguments: Sequence[Node] = (),
    remat: Policy | None = None,
) -> list[Node | None]:
    """Gradients of ``sum(ys * heads)`` when all types are known; ones stand in for no head.

    They reach the random keys that ``ys`` reach, which number their keys in a graph. ``remat``
    tells what of the graph they keep.
    """
    found = known_gradients(ys, xs, heads, unreachable, arguments, remat, meeting)
    return _with_all_keys(topological(ys), found)


def known_gradients(
    ys: Sequence[Node],
    xs: Sequence[Node],
    heads: Sequence[Node | None],
    unreachable: Unreachable,
    arguments: Sequence[Node] = (),
    remat: Policy | None = None,
    summing: Summing = plain,
) -> list[Node | None]:
    """``typed_grad`` for programs, which number their random keys themselves.

    Sums are plain unless told: they look through no value, each of which a program may name.
    """
    given = [_head(y, head) for y, head in zip(ys, heads, strict=True)]
    found = _pull[0](ys, xs, given, remat, summing)
    order = topological(ys)
    gradients: list[Node | None] = []
    for x, one in zip(xs, found, strict=True):
        if one is None and _is_present(order, ys, [x], arguments, x, unreachable):
            gradients.append(zeros(x.type.strong()))
        else:
            gradients.append(one)
    return gradients


def typed_jvp(
    ys: Sequence[Node],
    xs: Sequence[Node],
    tangents: Sequence[Node],
    unreachable: Unreachable,
    arguments: Sequence[Node] = (),
) -> list[Node]:
    """Tangents of ``ys`` when all types are known; zeros where they are zero by a rule."""
    given = [_head(x, tangent, "tangent") for x, tangent in zip(xs, tangents, strict=True)]
    for y in ys:
        _require_differentiable(y, "jvp: a value")
    moved = pushforward(ys, xs, given)
    order = topological(ys)
    for y, one in zip(ys, moved, strict=True):
        if one is None:
            _is_present(order, [y], xs, arguments, y, "zero" if unreachable == "zero" else "error")
    tangents_out = [
        zeros(y.type.strong()) if one is None else one for y, one in zip(ys, moved, strict=True)
    ]
    return [_required(one) for one in _with_all_keys(order, tangents_out)]


def _head(y: Node, head: Node | None, what: str = "head gradient") -> Node:
    _require_differentiable(y, "grad: a value" if what == "head gradient" else "jvp: a variable")
    if head is None:
        return ones(y.type.strong())
    if head.type.shape != y.type.shape:
        raise ShapeError(
            f"{what}: the shape must be {y.type.shape}, that of the value, got {head.type.shape}"
        )
    if head.type.dtype == y.type.dtype:
        return head
    if head.constant is not None and head.type.weak:
        return as_constant(head, y)
    raise DTypeError(f"{what}: the dtype must be {y.type.dtype.name}, got {head.type.dtype.name}")


def as_constant(head: Node, y: Node) -> Node:
    """The number ``head`` in the type of ``y``."""
    value = head.constant
    assert value is not None
    return constant(complex(value) if y.type.dtype.kind == "c" else float(value.real), y.type)


def _require_differentiable(node: Node, what: str) -> None:
    if not node.type.differentiable:
        raise NotDifferentiableError(
            f"{what} that is differentiated must be of a floating or complex dtype, got "
            f"{node.type}{built_at(node.origin)}"
        )


def _is_present(
    order: Sequence[Node],
    ys: Sequence[Node],
    xs: Sequence[Node],
    arguments: Sequence[Node],
    asked: Node,
    unreachable: Unreachable,
) -> bool:
    """Whether a derivative of ``ys`` by ``xs`` that did not arrive is a zero, not just missing.

    Zero by a rule, disconnected and undefined are three things. ``asked`` is the value that a
    message names.

    Raises:
        NotDifferentiableError: it is undefined.
        DisconnectedError: no path leads there, and ``unreachable`` is ``"error"``.
    """
    if not all(x.type.differentiable for x in xs):
        raise _undefined(order, set(xs), xs[0])
    flowing = reaching([node for node in order if _is_defined(node)], xs)
    if not flowing.isdisjoint(ys) and not set(order).isdisjoint(xs):
        return True
    connected = reaching(order, xs)
    if not connected.isdisjoint(ys) and not set(order).isdisjoint(xs):
        # What is zero on the way makes all zero that comes after it.
        moving = reaching([node for node in order if not _is_zero(node)], xs)
        if moving.isdisjoint(ys):
            return True
        raise _undefined(order, moving, xs[0])
    if unreachable == "error" and set(arguments).isdisjoint(xs):
        raise DisconnectedError(
            f"{_asked(asked, xs)}, but no path connects them; pass unreachable='zero' for zeros"
            f"{_namesake(order, asked)}{built_at(asked.origin)}"
        )
    return unreachable != "none" or not set(arguments).isdisjoint(xs)


def _is_defined(node: Node) -> bool:
    """Whether a derivative can flow through ``node``, or is zero there as that of a comparison.

    An integer beside differentiable outputs, such as the place of a maximum, has the derivative
    zero: a gradient that uses it is differentiated with the place held fixed. So does an integer
    that is computed from integers alone.
    """
    if carries_cotangent(node):
        return True
    if node.op is SELECT:
        (source,) = node.operands
        declared = isinstance(source.op, Operator) and source.op.derivative in _DECLARED
        return declared and _is_defined(source)
    if not isinstance(node.op, Operator):
        return False
    whole = node.op.derivative in _DECLARED and not any(map(carries_cotangent, node.operands))
    return whole or _is_zero(node)


def _is_zero(node: Node) -> bool:
    return isinstance(node.op, Operator) and node.op.derivative is Derivative.ZERO


_DECLARED = (Derivative.MAKER, Derivative.KERNEL, Derivative.ZERO)


def _asked(asked: Node, xs: Sequence[Node]) -> str:
    name = asked.name or asked.op.name
    if asked in xs:
        return f"grad: the value must depend on {name!r}"
    return f"jvp: {name!r} must depend on what moves"


def _namesake(order: Sequence[Node], x: Node) -> str:
    """A hint for who made a second variable in place of the first."""
    others = [n for n in order if n.op is VARIABLE and n.name == x.name and n is not x]
    return f"; the graph has another variable of this name, {others[0].types}" if others else ""


def _undefined(order: Sequence[Node], connected: set[Node], x: Node) -> NotDifferentiableError:
    """The error that names the first operator on the way whose derivative is undefined."""
    name = x.name or x.op.name
    blocked = (node for node in order if node in connected and not _is_defined(node))
    blocking = next(blocked, x)
    if blocking is x:
        reason = f"it is of type {x.type}"
    else:
        reason = f"every path runs through {blocking.op.name}"
        if isinstance(blocking.op, Operator) and blocking.op.derivative in _DECLARED:
            types = ", ".join(map(str, blocking.types or ()))
            reason += f", which makes {types} of it"
        elif isinstance(blocking.op, Operator):
            reason += f", whose derivative is {blocking.op.derivative.value} ({blocking.op.reason})"
    return NotDifferentiableError(
        f"grad: the gradient with respect to {name!r} is undefined: {reason}"
        f"{built_at(blocking.origin)}"
    )


def _with_all_keys(order: Sequence[Node], results: Sequence[Node | None]) -> list[Node | None]:
    """``results``, each of which reaches every random key that ``order`` reaches.

    A graph numbers its keys in the order in which they were made. A gradient that has lost one of
    the keys of its forward graph would number the others differently and draw other numbers.
    """
    keys = [node for node in order if node.op is KEY]
    if not keys:
        return list(results)
    return [None if node is None else _keeping(node, keys) for node in results]


def _keeping(node: Node, keys: Sequence[Node]) -> Node:
    """``node`` unchanged, in a graph that reaches all of ``keys``."""
    reached = set(topological([node]))
    lost = [key for key in keys if key not in reached]
    return as_node(get("keep")(node, *lost)) if lost else node
