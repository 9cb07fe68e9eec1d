"""Gradients of nodes: the meaning of missing gradients, and derivatives deferred until typed."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from registry.errors import (
    DisconnectedError,
    DTypeError,
    GradientError,
    NotDifferentiableError,
    ShapeError,
)
from registry.operator.operator import Derivative, Operator
from registry.table import get
from registry.types import is_complex
from symop.autodiff.accumulation import CANONICAL, IN_ORDER, Accumulation
from symop.autodiff.derivations import entering_derivative, leaving_derivative
from symop.autodiff.differentiate import carries_cotangent, ones, pullback, pushforward, zeros
from symop.graph.naming import note_gradients
from symop.graph.nodes import (
    KEY,
    VARIABLE,
    Node,
    as_node,
    built_at,
    constant,
    reaching,
    select,
    topological,
)
from symop.graph.policies import Policy
from symop.graph.rewriting import Image, Images, expand

Unreachable = Literal["error", "zero", "none"]
"""The result where no derivative arrives: an error, zeros, or None.

A derivative that is zero by a rule is always zeros. An undefined derivative is an error, unless the
caller is ``lenient``.
"""


Pull = Callable[
    [Sequence[Node], Sequence[Node], Sequence[Node], Policy | None, Accumulation], list[Node | None]
]
"""The signature of ``pullback`` with a rematerialization policy and the form of sums."""


def _keeping_all(
    ys: Sequence[Node],
    xs: Sequence[Node],
    heads: Sequence[Node],
    policy: Policy | None,
    summing: Accumulation,
) -> list[Node | None]:
    assert policy is None
    return pullback(ys, xs, heads, summing)


Prepare = Callable[[Sequence[Node], Collection[Node]], Images]
"""The images of a graph to differentiate in its place, in which some values must remain."""


def _as_it_is(_ys: Sequence[Node], _keep: Collection[Node]) -> Images:
    return Images()


class Gradients:
    """Computes gradients; defined by the passes over graphs, which import this one."""

    HOOKS: ClassVar[frozenset[str]] = frozenset({"pull", "prepare"})
    pull: ClassVar[Pull] = _keeping_all
    prepare: ClassVar[Prepare] = _as_it_is


class GradExpansion(NamedTuple):
    """A ``grad`` of a graph whose types are not all known yet."""

    n_ys: int
    n_xs: int
    has_heads: tuple[bool, ...]
    unreachable: Unreachable
    name: str = "grad"
    lenient: bool = False

    def expand(self, inputs: Sequence[Node], originals: Sequence[Node]) -> list[Node]:
        """Returns the gradients with respect to the xs among ``inputs``.

        ``originals`` are the ``inputs`` before their types were known. A value that depended on x
        then still counts as a function of x, although it may have become a constant.
        """
        end = self.n_ys + self.n_xs
        ys, xs = inputs[: self.n_ys], inputs[self.n_ys : end]
        rest = iter(inputs[end:])
        heads = [next(rest) if has else None for has in self.has_heads]
        before = set(topological(originals[: self.n_ys]))
        pairs = zip(xs, originals[self.n_ys : end], strict=True)
        arguments = [x for x, original in pairs if original in before]
        gradients = typed_grad(ys, xs, heads, self.unreachable, arguments, lenient=self.lenient)
        return [_required(one) for one in gradients]

    def to_attrs(self) -> dict[str, Any]:
        """Returns the fields as plain data."""
        return _plain(self)


class JvpExpansion(NamedTuple):
    """A ``jvp`` of a graph whose types are not all known yet."""

    n_ys: int
    n_xs: int
    unreachable: Unreachable
    name: str = "jvp"
    lenient: bool = False

    def expand(self, inputs: Sequence[Node], originals: Sequence[Node]) -> list[Node]:
        """Returns the tangents of the ys in ``inputs``; ``originals`` as in ``GradExpansion``."""
        ys, rest = inputs[: self.n_ys], inputs[self.n_ys :]
        before = set(topological(originals[: self.n_ys]))
        pairs = zip(rest[: self.n_xs], originals[self.n_ys :], strict=False)
        arguments = [x for x, original in pairs if original in before]
        xs, tangents = rest[: self.n_xs], rest[self.n_xs :]
        return typed_jvp(ys, xs, tangents, self.unreachable, arguments, lenient=self.lenient)

    def to_attrs(self) -> dict[str, Any]:
        """Returns the fields as plain data."""
        return _plain(self)


def _plain(expansion: GradExpansion | JvpExpansion) -> dict[str, Any]:
    """Returns the fields; ``lenient`` is omitted when false, as in older files."""
    fields: dict[str, Any] = expansion._asdict()
    if not expansion.lenient:
        del fields["lenient"]
    return fields


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
    *,
    lenient: bool = False,
) -> list[Node | None]:
    """Returns gradients as nodes, deferred where types are not known yet.

    ``arguments`` are values that the ys are formally functions of, even if they do not use them;
    their gradients are zero rather than missing. For a graph whose types are known, ``remat`` says
    which of its values the gradients keep. If ``lenient``, an undefined gradient is treated as
    ``unreachable`` says.
    """
    inputs = [*ys, *xs, *[head for head in heads if head is not None]]
    if all(node.types is not None for node in topological(inputs)):
        return typed_grad(ys, xs, heads, unreachable, arguments, remat, lenient=lenient)
    if remat is not None:
        raise GradientError(
            "grad: remat= needs the shapes of all variables, because what is kept follows from them"
        )
    if unreachable == "none":
        raise GradientError(
            "grad: unreachable='none' needs the shapes of all variables; give them, or use 'zero'"
        )
    has_heads = tuple(head is not None for head in heads)
    expansion = GradExpansion(len(ys), len(xs), has_heads, unreachable, lenient=lenient)
    return list(_parts(expand(expansion, inputs), len(xs)))


def jvp_nodes(
    ys: Sequence[Node],
    xs: Sequence[Node],
    tangents: Sequence[Node],
    unreachable: Unreachable = "error",
    arguments: Sequence[Node] = (),
    *,
    lenient: bool = False,
) -> list[Node]:
    """Returns tangents as nodes, deferred where types are not known yet."""
    inputs = [*ys, *xs, *tangents]
    if all(node.types is not None for node in topological(inputs)):
        return typed_jvp(ys, xs, tangents, unreachable, arguments, lenient=lenient)
    expansion = JvpExpansion(len(ys), len(xs), unreachable, lenient=lenient)
    return _parts(expand(expansion, inputs), len(ys))


def _parts(image: Image, count: int) -> list[Node]:
    return image if isinstance(image, list) else [select(image, i) for i in range(count)]


def typed_grad(
    ys: Sequence[Node],
    xs: Sequence[Node],
    heads: Sequence[Node | None],
    unreachable: Unreachable,
    arguments: Sequence[Node] = (),
    remat: Policy | None = None,
    *,
    lenient: bool = False,
    last: bool = False,
) -> list[Node | None]:
    """Returns the gradients of ``sum(ys * heads)`` when all types are known.

    A head of None stands for ones. Each gradient's graph contains all random keys of ``ys``, since
    a graph numbers its keys. ``remat`` says which values of the graph the gradients keep.
    If ``last``, the gradients are not differentiated, and may read what any call itself computes.
    """
    lean = Gradients.prepare(ys, xs)
    ys, own, arguments = (list(map(lean.value, part)) for part in (ys, xs, arguments))
    image = Images() if last else entering_derivative(ys, own)
    entered, by, formal = (list(map(image.value, part)) for part in (ys, own, arguments))
    gradients = known_gradients(
        entered, by, heads, unreachable, formal, remat, CANONICAL, lenient=lenient
    )
    result = _with_all_keys(topological(ys), _after(image, gradients))
    note_gradients(xs, result)
    return result


def known_gradients(
    ys: Sequence[Node],
    xs: Sequence[Node],
    heads: Sequence[Node | None],
    unreachable: Unreachable,
    arguments: Sequence[Node] = (),
    remat: Policy | None = None,
    summing: Accumulation = IN_ORDER,
    *,
    lenient: bool = False,
) -> list[Node | None]:
    """Computes ``typed_grad`` for programs, which number their random keys themselves.

    Sums are plain by default: they look through no value, since a program may name each of them.
    """
    cotangents = [_head(y, head) for y, head in zip(ys, heads, strict=True)]
    order, absent = topological(ys), set[Node]()
    try:
        gradients = Gradients.pull(ys, xs, cotangents, remat, summing)
    except NotDifferentiableError:
        absent = _unreached(order, ys, xs) if lenient and unreachable != "error" else absent
        if not absent:
            raise
        # Pull back to those with a defined path; an undefined one next to it raises again.
        supply = iter(
            Gradients.pull(ys, [x for x in xs if x not in absent], cotangents, remat, summing)
        )
        gradients = [None if x in absent else next(supply) for x in xs]
    missing = _Missing(order, ys, arguments, unreachable, lenient)
    return [
        zeros(x.type.strong()) if one is None and missing.is_zero([x], x) else one
        for x, one in zip(xs, gradients, strict=True)
    ]


def _unreached(order: Sequence[Node], ys: Sequence[Node], xs: Sequence[Node]) -> set[Node]:
    """Returns those of ``xs`` from which no path of defined derivatives leads to ``ys``."""
    defined = [node for node in order if _is_defined(node) and not _is_undeclared(node)]
    return {x for x in xs if reaching(defined, [x]).isdisjoint(ys)}


def typed_jvp(
    ys: Sequence[Node],
    xs: Sequence[Node],
    tangents: Sequence[Node],
    unreachable: Unreachable,
    arguments: Sequence[Node] = (),
    *,
    lenient: bool = False,
) -> list[Node]:
    """Returns the tangents of ``ys`` when all types are known; zeros where zero by a rule."""
    image = entering_derivative(ys, xs)
    ys, xs, arguments = (list(map(image.value, one)) for one in (ys, xs, arguments))
    directions = [_head(x, tangent, "tangent") for x, tangent in zip(xs, tangents, strict=True)]
    for y in ys:
        _require_differentiable(y, "jvp: a value")
    order, absent = topological(ys), set[Node]()
    try:
        moved = pushforward(ys, xs, directions, CANONICAL)
    except NotDifferentiableError:
        if lenient and unreachable == "zero":
            absent = {y for y in ys if len(_unreached(order, [y], xs)) == len(set(xs))}
        if not absent:
            raise
        supply = iter(pushforward([y for y in ys if y not in absent], xs, directions, CANONICAL))
        moved = [None if y in absent else next(supply) for y in ys]
    for y, one in zip(ys, moved, strict=True):
        if one is None:
            _Missing(order, [y], arguments, unreachable, lenient).is_zero(xs, y)
    tangents_out = [
        zeros(y.type.strong()) if one is None else one for y, one in zip(ys, moved, strict=True)
    ]
    return [_required(one) for one in _with_all_keys(order, _after(image, tangents_out))]


def _after(image: Images, gradients: Sequence[Node | None]) -> list[Node | None]:
    """Returns derivatives of the graph in ``image`` after they have been taken."""
    if not image:
        return list(gradients)
    supply = iter(leaving_derivative([one for one in gradients if one is not None]))
    return [None if one is None else next(supply) for one in gradients]


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
    """Returns the number ``head`` as a constant of the type of ``y``."""
    value = head.constant
    assert value is not None
    return constant(complex(value) if is_complex(y.type.dtype) else float(value.real), y.type)


def _require_differentiable(node: Node, what: str) -> None:
    if not node.type.differentiable:
        raise NotDifferentiableError(
            f"{what} that is differentiated must be of a floating or complex dtype, got "
            f"{node.type}{built_at(node.origin)}"
        )


class _Missing(NamedTuple):
    """The meaning of a derivative that did not arrive.

    Attributes:
        order: The graph of the values.
        ys: The differentiated values.
        arguments: Their formal arguments, whether or not they depend on them.
        unreachable: The action where no path exists.
        lenient: Whether an undefined derivative is treated like one without a path.
    """

    order: Sequence[Node]
    ys: Sequence[Node]
    arguments: Sequence[Node]
    unreachable: Unreachable
    lenient: bool

    def is_zero(self, xs: Sequence[Node], asked: Node) -> bool:
        """Whether the missing derivative by ``xs`` is returned as zero rather than None.

        A derivative may be missing because it is zero by a rule, because no path exists, or because
        it is undefined. ``asked`` is the value that an error message names.

        Raises:
            NotDifferentiableError: The derivative is undefined.
            DisconnectedError: No path exists, and ``unreachable`` is ``"error"``.
        """
        if not all(x.type.differentiable for x in xs):
            return self._is_undefined_zero(set(xs), xs[0])
        order, ys = self.order, self.ys
        flowing = reaching([node for node in order if _is_defined(node)], xs)
        if not flowing.isdisjoint(ys) and not set(order).isdisjoint(xs):
            undefined = self.lenient and len(_unreached(order, ys, xs)) == len(set(xs))
            moving = self._moving(xs) if undefined else set[Node]()
            return moving.isdisjoint(ys) or self._is_undefined_zero(moving, xs[0])
        connected = reaching(order, xs)
        if not connected.isdisjoint(ys) and not set(order).isdisjoint(xs):
            # A zero derivative on the path makes every later one zero.
            moving = self._moving(xs)
            return moving.isdisjoint(ys) or self._is_undefined_zero(moving, xs[0])
        if self.unreachable == "error" and set(self.arguments).isdisjoint(xs):
            raise DisconnectedError(
                f"{_asked(asked, xs)}, but no path connects them; pass unreachable='zero' for zeros"
                f"{_namesake(order, asked)}{built_at(asked.origin)}"
            )
        return self.unreachable != "none" or not set(self.arguments).isdisjoint(xs)

    def _moving(self, xs: Sequence[Node]) -> set[Node]:
        """Returns the values that ``xs`` reach through operators without a zero derivative."""
        return reaching([node for node in self.order if not _is_zero(node)], xs)

    def _is_undefined_zero(self, moving: set[Node], x: Node) -> bool:
        if self.lenient and self.unreachable != "error":
            return self.unreachable == "zero"
        raise _undefined(self.order, moving, x)


def _is_defined(node: Node) -> bool:
    """Whether a derivative can flow through ``node``, or is zero there, as for a comparison.

    An integer output next to differentiable ones, such as the index of a maximum, has the
    derivative zero: a gradient that uses it is differentiated with the index held fixed. The same
    holds for an integer computed only from integers.
    """
    if carries_cotangent(node):
        return True
    if node.is_selection:
        return not _is_undeclared(node.source) and _is_defined(node.source)
    if not isinstance(node.op, Operator):
        return False
    whole = node.op.derivative in _DECLARED and not any(map(carries_cotangent, node.operands))
    return whole or _is_zero(node)


def _is_undeclared(node: Node) -> bool:
    """Whether ``node`` applies an operator without a declared derivative."""
    return isinstance(node.op, Operator) and node.op.derivative not in _DECLARED


def _is_zero(node: Node) -> bool:
    return isinstance(node.op, Operator) and node.op.derivative is Derivative.ZERO


_DECLARED = (Derivative.MAKER, Derivative.KERNEL, Derivative.ZERO)


def _asked(asked: Node, xs: Sequence[Node]) -> str:
    name = asked.name or asked.op.name
    if asked in xs:
        return f"grad: the value must depend on {name!r}"
    return f"jvp: {name!r} must depend on what moves"


def _namesake(order: Sequence[Node], x: Node) -> str:
    """Returns a hint for a user who made a second variable instead of reusing the first."""
    others = [n for n in order if n.op is VARIABLE and n.name == x.name and n is not x]
    return f"; the graph has another variable of this name, {others[0].types}" if others else ""


def _undefined(order: Sequence[Node], connected: set[Node], x: Node) -> NotDifferentiableError:
    """Returns the error that names the first operator on the path with an undefined derivative."""
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
    """Returns ``results`` such that each reaches every random key that ``order`` reaches.

    A graph numbers its keys in the order in which they were made. A gradient without one of the
    keys of its forward graph would number the others differently and draw other numbers.
    """
    keys = [node for node in order if node.op is KEY]
    if not keys:
        return list(results)
    return [None if node is None else _keeping(node, keys) for node in results]


def _keeping(node: Node, keys: Sequence[Node]) -> Node:
    """Returns ``node`` unchanged, in a graph that reaches all of ``keys``."""
    reached = set(topological([node]))
    lost = [key for key in keys if key not in reached]
    return as_node(get("keep")(node, *lost)) if lost else node
