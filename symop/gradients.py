"""Gradients of nodes: what a missing gradient means, and derivatives that wait for shapes."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from registry.errors import (
    DisconnectedError,
    DTypeError,
    GradientError,
    NotDifferentiableError,
    ShapeError,
)
from registry.operator import Operator, get
from symop.differentiate import carries_cotangent, ones, pullback, pushforward, zeros
from symop.emission import Image, expanded
from symop.graph import KEY, Node, as_node, built_at, constant, reaching, select, topological

Unreachable = Literal["error", "zero", "none"]
"""What to do where no path leads: raise, return zeros, or return None."""


class GradExpansion(NamedTuple):
    """``grad`` of a graph whose types are not all known yet."""

    n_ys: int
    n_xs: int
    has_heads: tuple[bool, ...]
    unreachable: str
    name: str = "grad"

    def expand(self, inputs: Sequence[Node]) -> list[Node]:
        """The gradients with respect to the xs among ``inputs``."""
        ys, xs = inputs[: self.n_ys], inputs[self.n_ys : self.n_ys + self.n_xs]
        rest = iter(inputs[self.n_ys + self.n_xs :])
        heads = [next(rest) if has else None for has in self.has_heads]
        return [_required(one) for one in typed_grad(ys, xs, heads, self.unreachable)]

    def to_attrs(self) -> dict[str, Any]:
        """The fields as plain data."""
        return self._asdict()


class JvpExpansion(NamedTuple):
    """``jvp`` of a graph whose types are not all known yet."""

    n_ys: int
    n_xs: int
    name: str = "jvp"

    def expand(self, inputs: Sequence[Node]) -> list[Node]:
        """The tangents of the ys among ``inputs``."""
        ys, rest = inputs[: self.n_ys], inputs[self.n_ys :]
        return typed_jvp(ys, rest[: self.n_xs], rest[self.n_xs :])

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
) -> list[Node | None]:
    """Gradients as nodes; deferred ones where types are not known yet."""
    inputs = [*ys, *xs, *[head for head in heads if head is not None]]
    if all(node.types is not None for node in topological(inputs)):
        return typed_grad(ys, xs, heads, unreachable)
    if unreachable == "none":
        raise GradientError(
            "grad: unreachable='none' needs the shapes of all variables; give them, or use 'zero'"
        )
    expansion = GradExpansion(
        len(ys), len(xs), tuple(head is not None for head in heads), unreachable
    )
    return list(_parts(expanded(expansion, inputs), len(xs)))


def jvp_nodes(ys: Sequence[Node], xs: Sequence[Node], tangents: Sequence[Node]) -> list[Node]:
    """Tangents as nodes; deferred ones where types are not known yet."""
    inputs = [*ys, *xs, *tangents]
    return _parts(expanded(JvpExpansion(len(ys), len(xs)), inputs), len(ys))


def _parts(image: Image, count: int) -> list[Node]:
    return image if isinstance(image, list) else [select(image, i) for i in range(count)]


def typed_grad(
    ys: Sequence[Node], xs: Sequence[Node], heads: Sequence[Node | None], unreachable: str
) -> list[Node | None]:
    """Gradients of ``sum(ys * heads)`` when all types are known; ones stand in for no head."""
    given = [_head(y, head) for y, head in zip(ys, heads, strict=True)]
    found = pullback(ys, xs, given)
    order = topological(ys)
    gradients = [
        _missing(order, ys, x, unreachable) if one is None else one
        for x, one in zip(xs, found, strict=True)
    ]
    return _with_all_keys(order, gradients)


def typed_jvp(ys: Sequence[Node], xs: Sequence[Node], tangents: Sequence[Node]) -> list[Node]:
    """Tangents of ``ys`` when all types are known; zeros where nothing moves."""
    given = [_head(x, tangent, "tangent") for x, tangent in zip(xs, tangents, strict=True)]
    for y in ys:
        _require_differentiable(y, "jvp: a value")
    moved = pushforward(ys, xs, given)
    tangents_out = [
        zeros(y.type.strong()) if one is None else one for y, one in zip(ys, moved, strict=True)
    ]
    return [_required(one) for one in _with_all_keys(topological(ys), tangents_out)]


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


def _missing(order: Sequence[Node], ys: Sequence[Node], x: Node, unreachable: str) -> Node | None:
    """The gradient where none arrived: zero by a rule, disconnected, or undefined."""
    name = x.name or x.op.name
    connected = reaching(order, [x])
    if connected.isdisjoint(ys) or x not in set(order):
        return _absent(
            x,
            unreachable,
            DisconnectedError(
                f"grad: the value must depend on {name!r}, but no path connects them; "
                f"pass unreachable='zero' for zeros{built_at(x.origin)}"
            ),
        )
    flowing = reaching([node for node in order if carries_cotangent(node)], [x])
    if carries_cotangent(x) and not flowing.isdisjoint(ys):
        return zeros(x.type.strong())
    return _absent(x, unreachable, _undefined(order, connected, x, name))


def _absent(x: Node, unreachable: str, error: GradientError) -> Node | None:
    if unreachable == "error":
        raise error
    return zeros(x.type.strong()) if unreachable == "zero" else None


def _undefined(
    order: Sequence[Node], connected: set[Node], x: Node, name: str
) -> NotDifferentiableError:
    """The error that names the first operator on the way whose derivative is undefined."""
    blocking = next(node for node in order if node in connected and not carries_cotangent(node))
    if blocking is x:
        reason = f"it is of type {x.type}"
    else:
        reason = f"every path runs through {blocking.op.name}"
        if isinstance(blocking.op, Operator):
            reason += f", whose derivative is {blocking.op.derivative.value} ({blocking.op.reason})"
    return NotDifferentiableError(
        f"grad: the gradient with respect to {name!r} is undefined: {reason}"
        f"{built_at(blocking.origin)}"
    )


def _with_all_keys(order: Sequence[Node], results: Sequence[Node | None]) -> list[Node | None]:
    """``results``, the first of which reaches every random key that ``order`` reaches.

    A graph numbers its keys in the order in which they were made. A gradient that has lost one of
    the keys of its forward graph would number the others differently and draw other numbers.
    """
    keys = [node for node in order if node.op is KEY]
    present = [node for node in results if node is not None]
    lost = [key for key in keys if key not in set(topological(present))] if keys else []
    if not lost or not present:
        return list(results)
    first = present[0]
    kept = keeping(first, lost)
    return [kept if node is first else node for node in results]


def keeping(node: Node, others: Sequence[Node]) -> Node:
    """``node`` unchanged, in a graph that reaches ``others`` too."""
    kept: Node = get("keep")(node, *others)
    return as_node(kept)
