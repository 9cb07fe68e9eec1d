"""Differentiation of graphs: reverse mode runs gradient makers, forward mode transposes them.

``pullback`` is the only traversal. A maker is linear in its cotangents, so the pushforward of an
operator is the transpose of its maker: run the maker on placeholder cotangents, then pull its
result back to the placeholders with the tangents as heads, which eliminates the placeholders.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from registry.caches import memoized
from registry.errors import GradientError, NotDifferentiableError, NotLinearError, SymopError
from registry.jax_derivatives.calculus import is_linear
from registry.naming import COTANGENT
from registry.operator import promotion
from registry.operator.attributes import typed_key
from registry.operator.operator import Derivative, Operator
from registry.operator.recorder import gradient_value
from registry.types import VarType, is_complex
from registry.var import Attributes
from symop.autodiff.accumulation import IN_ORDER, Accumulation, Sum, accumulate
from symop.autodiff.derivations import entering_derivative, leaving_derivative
from symop.autodiff.ignoring import adds_constants, body_loses
from symop.graph.algebra import is_addition
from symop.graph.emission import apply, deriving
from symop.graph.nodes import (
    VARIABLE,
    Node,
    Origin,
    built_at,
    constant,
    origin_of,
    placeholder,
    reaching,
    select,
    topological,
)
from symop.graph.origins import ambient, defined_at
from symop.graph.rewriting import substitute

Contributions = dict[Node, list[Node]]
Cotangents = tuple[Node | None, ...]


def zeros(type: VarType) -> Node:
    """Returns a zero of ``type``."""
    return constant(_number(type, 0), type)


def ones(type: VarType) -> Node:
    """Returns a dense array of ones of ``type``."""
    return constant(_number(type, 1), VarType(type.shape, type.dtype))


def _number(type: VarType, value: int) -> complex | float:
    return complex(value) if is_complex(type.dtype) else float(value)


def output_values(node: Node) -> tuple[Node, ...]:
    """Returns the outputs of the application ``node``, including hidden ones."""
    assert isinstance(node.op, Operator)
    if node.op.single:
        return (node,)
    return tuple(select(node, i) for i in range(len(node.op.outputs)))


def carries_cotangent(node: Node) -> bool:
    """Whether a derivative can flow through ``node``: whether some output has an inexact dtype."""
    return node.types is not None and any(one.differentiable for one in node.types)


# Reverse ---------------------------------------------------------------------------------------


def pullback(
    ys: Sequence[Node],
    xs: Sequence[Node],
    heads: Sequence[Node],
    summing: Accumulation = IN_ORDER,
    within: Sequence[Node] = (),
) -> list[Node | None]:
    """Returns the gradients of ``sum(ys * heads)`` with respect to ``xs``.

    A gradient is None where no cotangent arrives. Cotangents that reach the same value are
    accumulated as ``summing`` prescribes for the graph. ``within`` is an enclosing graph of ``ys``,
    whose calls are reused as well.

    Raises:
        NotDifferentiableError: A path from ``xs`` to ``ys`` goes through an operator without a
            derivative.
    """
    order = topological(ys)
    with deriving([*order, *within], summing.held_by_users(order, ys, xs, heads)):
        return _pulled_back(order, ys, xs, heads, summing.of(order))


def _pulled_back(
    order: Sequence[Node],
    ys: Sequence[Node],
    xs: Sequence[Node],
    heads: Sequence[Node],
    total_of: Sum,
) -> list[Node | None]:
    flowing = [node for node in order if carries_cotangent(node)]
    active = reaching(flowing, [x for x in xs if carries_cotangent(x)])
    arrived: Contributions = defaultdict(list)
    for y, head in zip(ys, heads, strict=True):
        if y in active:
            arrived[y].append(head)
    selected: dict[Node, dict[int, Node]] = defaultdict(dict)
    wanted, gradients = set(xs), dict[Node, Node]()
    for node in reversed(flowing):
        if node not in active or not (arrived[node] or selected[node]):
            continue
        with origin_of(node):
            if arrived[node]:
                total = total_of(arrived.pop(node))
                if node in wanted:
                    gradients[node] = total
                if node.is_selection:
                    selected[node.source][node.index] = total
                    continue
                cotangents: tuple[Node | None, ...] = (total,)
            else:
                chosen = selected.pop(node)
                cotangents = tuple(chosen.get(i) for i in range(len(node.types or ())))
            if isinstance(node.op, Operator) and any(c in active for c in node.operands):
                for child, gradient in input_gradients(node, cotangents, active):
                    arrived[child].append(gradient)
    return [gradients.get(x) for x in xs]


def input_gradients(
    node: Node, cotangents: tuple[Node | None, ...], active: set[Node]
) -> list[tuple[Node, Node]]:
    """Runs the gradient maker of ``node``; returns pairs of active input and gradient."""
    operator = node.op
    assert isinstance(operator, Operator)
    if operator.derivative is Derivative.ZERO:
        return []
    if operator.gradient_rule is None:
        raise NotDifferentiableError(
            f"{operator.name}: a gradient is asked for, but its derivative is "
            f"{operator.derivative.value} ({operator.reason}){_advice(operator)}"
            f"{built_at(node.origin)}"
        )
    wanted = tuple([child is not None and child in active for child in node.inputs])
    _require_read(node, operator, cotangents)
    lacking, types = _lacking(node, cotangents), node.types or ()
    if not lacking or ambient.node_of is not None:  # a program keeps the zeros it has recorded
        heads_or_zeros = [
            zeros(types[i]) if i in lacking else one for i, one in enumerate(cotangents)
        ]
        return _pairs(node, tuple(heads_or_zeros), wanted, active)
    kinds = [type if one is None else one.type for one, type in zip(cotangents, types, strict=True)]
    heads = tuple(
        placeholder("d", kinds[i].strong()) if i in lacking or one is not None else None
        for i, one in enumerate(cotangents)
    )
    pairs = _pairs(node, heads, wanted, active)
    parts = _apart([gradient for _, gradient in pairs], heads, cotangents)
    return [(child, one) for (child, _), one in zip(pairs, parts, strict=True)]


def _advice(operator: Operator) -> str:
    """Returns how to declare a derivative that an operator of a user lacks."""
    if operator.derivative is not Derivative.MISSING or operator.catalogued:
        return ""
    return f"; declare @{operator.name}.gradient, or call registry.differentiate_kernel"


def _lacking(node: Node, cotangents: Cotangents) -> set[int]:
    """Returns the indices of absent cotangents that the maker of ``node`` needs."""
    assert isinstance(node.op, Operator)
    assert node.op.gradient_rule is not None
    needed = node.op.gradient_rule.zero_filled(len(node.types or ()))
    return {i for i, one in enumerate(cotangents) if one is None and i in needed}


def _pairs(
    node: Node, cotangents: Cotangents, wanted: tuple[bool, ...], active: set[Node]
) -> list[tuple[Node, Node]]:
    """Returns pairs of active input and gradient from the maker of ``node``."""
    operator = node.op
    assert isinstance(operator, Operator)
    grads = run_maker(node, cotangents, wanted)
    pairs = []
    for i, child in enumerate(node.inputs):
        if child is None or child not in active:
            continue
        gradient = _gradient_for(operator, grads, i)
        if gradient is not None:
            _check_type(node, i, child.type, gradient)
            pairs.append((child, gradient))
    return pairs


def _apart(gradients: Sequence[Node], heads: Cotangents, cotangents: Cotangents) -> list[Node]:
    """Substitutes ``cotangents`` for ``heads`` in ``gradients``, dropping the terms of absent ones.

    A maker is linear in its cotangents, as is each operator on their path. A node that depends only
    on absent cotangents is therefore zero, even if it multiplies them by infinity.
    """
    present = {head: one for head, one in zip(heads, cotangents, strict=True) if head is not None}
    order = topological(gradients, until=present)
    dependent = reaching(order, present)
    vanishing = {head for head, one in present.items() if one is None}
    if not adds_constants(order, dependent):
        for node in order:
            moving = [child for child in node.operands if child in dependent]
            affine = is_addition(node) and len(moving) < len(node.operands)
            if moving and vanishing.issuperset(moving) and not affine:
                vanishing.add(node)
    known = {head: one for head, one in present.items() if one is not None}
    known |= {node: zeros(node.type) for node in vanishing if len(node.types or ()) == 1}
    return substitute(gradients, known)


def run_maker(node: Node, cotangents: Cotangents, wanted: tuple[bool, ...]) -> dict[str, Any]:
    """Calls the gradient maker."""
    operator = node.op
    assert isinstance(operator, Operator)
    assert operator.gradient_rule is not None
    assert node.types is not None
    try:
        grads = promotion.gradients(
            operator, node.inputs, node.attributes, output_values(node), cotangents, wanted
        )
    except SymopError as error:
        raise type(error)(
            f"{error}\n  in the gradient maker of {operator.name}{_maker_at(operator)}"
            f"{built_at(node.origin)}"
        ).with_traceback(error.__traceback__) from error.__cause__
    except Exception as error:
        error.add_note(
            f"  in the gradient maker of {operator.name}{_maker_at(operator)}"
            f"{built_at(node.origin)}"
        )
        raise
    unknown = set(grads) - set(operator.slot_names)
    if unknown:
        raise GradientError(
            f"{operator.name}: its gradient maker must return gradients by slot "
            f"({', '.join(operator.slot_names)}), got {sorted(unknown)}{_maker_at(operator)}"
        )
    return grads


def _maker_at(operator: Operator) -> str:
    """Returns the suffix of a message that says where the gradient maker is defined."""
    rule = None if operator.catalogued else operator.gradient_rule
    origin = None if rule is None else defined_at(rule.function)
    return "" if origin is None else f"\n  gradient maker at {origin}"


def cotangent_types(node: Node) -> list[VarType | None]:
    """Returns the types of the cotangents of an operator's outputs; None where none can arrive.

    No cotangent arrives at a hidden output that the maker does not read.
    """
    operator = node.op
    assert isinstance(operator, Operator)
    rule = operator.gradient_rule
    return [
        one.strong()
        if one.differentiable
        and (name not in operator.hidden or rule is None or rule.reads_cotangent(i))
        else None
        for i, (name, one) in enumerate(zip(operator.outputs, node.types or (), strict=True))
    ]


def _require_read(node: Node, operator: Operator, cotangents: tuple[Node | None, ...]) -> None:
    """Raises an error if a cotangent arrives at an output whose cotangent the maker does not read.

    An output that the maker itself uses gets a cotangent once the gradient is differentiated.
    """
    rule = operator.gradient_rule
    assert rule is not None
    used = rule.output_indices
    for i, name in enumerate(operator.outputs):
        if rule.reads_cotangent(i) or name in operator.updates.values():
            continue
        differentiable = node.types is not None and node.types[i].differentiable
        if cotangents[i] is not None or (i in used and differentiable):
            why = "it uses" if cotangents[i] is None else "a gradient arrives at"
            raise GradientError(
                f"{operator.name}: its gradient maker must name {COTANGENT}{name}, because {why} "
                f"the output {name!r}{_maker_at(operator)}{built_at(node.origin)}"
            )


def _gradient_for(operator: Operator, grads: Mapping[str, Any], index: int) -> Node | None:
    """Returns the gradient for flat input ``index``; None means zero."""
    slot = operator.slot_of(index)
    if slot.name not in grads:
        if slot.role == "state":
            return None
        raise GradientError(
            f"{operator.name}: its gradient maker must return a gradient (None, or zeros_like in "
            f"OpDescs, for zero) for slot {slot.name!r}, got {sorted(grads)}{_maker_at(operator)}"
        )
    gradient = grads[slot.name]
    if slot.variadic and gradient is not None:
        gradient = gradient[index - operator.n_fixed]
    result: Node | None = gradient_value(gradient)
    return result


def _check_type(node: Node, index: int, expected: VarType, gradient: Node) -> None:
    got = gradient.type
    if got.shape != expected.shape or got.dtype != expected.dtype:
        assert isinstance(node.op, Operator)
        raise GradientError(
            f"{node.op.name}: the gradient of slot {node.op.slot_of(index).name!r} must be of type "
            f"{expected.strong()}, got {got}{_maker_at(node.op)}{built_at(node.origin)}"
        )


# Forward ---------------------------------------------------------------------------------------


class Pushforward(NamedTuple):
    """The tangents of an operator as a graph over placeholders.

    Attributes:
        inputs: Placeholders of the operator's inputs.
        application: The operator applied to them; where it declares a ``derivation``, the values
            that the tangents belong to, which may be differentiated once more.
        tangents: Placeholders of the active inputs' tangents.
        results: The tangents of the outputs; None where zero.
    """

    inputs: tuple[Node | None, ...]
    application: Node
    tangents: tuple[Node, ...]
    results: tuple[Node | None, ...]


def pushforward_of(
    operator: Operator,
    attributes: Attributes,
    types: tuple[VarType | None, ...],
    active: tuple[int, ...],
    training: bool | None = None,
) -> Pushforward:
    """Returns the pushforward of ``operator`` along the inputs at ``active``, built once.

    ``training`` fixes the training flag; None leaves it open.

    Raises:
        NotLinearError: The maker is not linear in its cotangents.
        NotDifferentiableError: The operator has no maker.
    """
    return _pushforward(operator, attributes, types, active, training)


@memoized(4096, key=typed_key)
@deriving()
def _pushforward(
    operator: Operator,
    attributes: Attributes,
    types: tuple[VarType | None, ...],
    active: tuple[int, ...],
    training: bool | None,
) -> Pushforward:
    inputs, application = _template(operator, attributes, types, training)
    image = entering_derivative([application], [_known(inputs[i]) for i in active])
    entered = image.value(application)
    push = _pushed_forward(operator, entered.attributes, types, active, inputs, entered)
    return push if entered is application else _after(push)


def _after(push: Pushforward) -> Pushforward:
    """Returns a pushforward after the derivative has been taken."""
    present = [one for one in push.results if one is not None]
    application, *left = leaving_derivative([push.application, *present])
    supply = iter(left)
    results = tuple(None if one is None else next(supply) for one in push.results)
    return push._replace(application=application, results=results)


def _pushed_forward(
    operator: Operator,
    attributes: Attributes,
    types: tuple[VarType | None, ...],
    active: tuple[int, ...],
    inputs: tuple[Node | None, ...],
    application: Node,
) -> Pushforward:
    """Returns the tangents of ``application``, a call of ``inputs`` of ``types``."""
    assert application.types is not None
    tangents = tuple(placeholder(f"t{i}", _known(inputs[i]).type.strong()) for i in active)
    if operator.derivative is Derivative.ZERO or not active:
        return Pushforward(inputs, application, tangents, (None,) * len(application.types))
    if operator.tangent_rule is not None:
        moving = dict(zip(active, tangents, strict=True))
        along = tuple(moving.get(i) for i in range(len(inputs)))
        with origin_of(application):
            moved = operator.tangent_rule(inputs, attributes, along)
        if moved is not None:
            once = _over(application, list(moved))
            return Pushforward(inputs, application, tangents, tuple(once))
    if body_loses(application, {_known(inputs[i]) for i in active}):
        raise NotLinearError(_not_linear(operator))
    if _is_multilinear(operator, attributes, types, active):
        with origin_of(application):
            terms = [
                _applied(operator, attributes, inputs, {i: t})
                for i, t in zip(active, tangents, strict=True)
            ]
            return Pushforward(inputs, application, tangents, (accumulate(terms),))
    targets = {_known(inputs[i]): t for i, t in zip(active, tangents, strict=True)}
    cotangents = _cotangents(application)
    with origin_of(application):
        pairs = input_gradients(application, cotangents, set(targets))
    sources = [c for c in cotangents if c is not None]
    _require_dependence(operator, [gradient for _, gradient in pairs], sources)
    pulled = iter(pullback([g for _, g in pairs], sources, [targets[child] for child, _ in pairs]))
    results = tuple(None if c is None else next(pulled) for c in cotangents)
    _require_gone(operator, [r for r in results if r is not None], sources)
    if _is_itself(operator, attributes, types, active, results, tangents):
        ways = dict(zip(active, tangents, strict=True))
        itself = _applied(operator, attributes, inputs, ways)
        results = itself if isinstance(itself, tuple) else (itself,)
    return Pushforward(inputs, application, tangents, results)


def _is_multilinear(
    operator: Operator,
    attributes: Attributes,
    types: tuple[VarType | None, ...],
    active: tuple[int, ...],
) -> bool:
    """Whether an operator whose kernel JAX differentiates is linear in each input at ``active``.

    Its tangent is then a sum of calls of itself, as for ``dot_general``, and not a derivative that
    depends on all inputs at once.
    """
    return (
        operator.derivative is Derivative.KERNEL
        and operator.single
        and not operator.stateful
        and all(is_linear(operator, types, attributes, (i,)) for i in active)
    )


def _is_itself(
    operator: Operator,
    attributes: Attributes,
    types: tuple[VarType | None, ...],
    active: tuple[int, ...],
    results: Sequence[Node | None],
    tangents: Sequence[Node],
) -> bool:
    """Whether an operator is linear in its inputs at ``active``, and shorter than its tangent.

    The tangent of a concatenation is one of tangents, not a sum of arrays that are padded, and that
    of a split is a split, not a slice for each part.
    """
    present = [one for one in results if one is not None]
    if len(present) < len(results) or len(active) == len(results) == 1:
        return False
    if operator.stateful or operator.hidden:
        return False
    order = topological(present, until=tangents)
    if not operator.single and any(one.op is VARIABLE for one in order if one not in tangents):
        return False  # it reads an input, so that the operator is not linear
    calls = [one for one in order if isinstance(one.op, Operator)]
    return len(calls) > len(active) and is_linear(operator, types, attributes, active)


def _applied(
    operator: Operator,
    attributes: Attributes,
    inputs: tuple[Node | None, ...],
    tangents: Mapping[int, Node],
) -> Any:
    """Returns ``operator`` applied to ``tangents`` in place of the inputs at their places."""
    values = tuple(tangents.get(i, one) for i, one in enumerate(inputs))
    return Node.emitter.emit(operator, values, attributes, None)


def _cotangents(application: Node) -> tuple[Node | None, ...]:
    return tuple(
        None if one is None else placeholder(f"d{i}", one)
        for i, one in enumerate(cotangent_types(application))
    )


def _over(application: Node, moved: list[Node | None]) -> list[Node | None]:
    """Makes ``moved`` read ``application`` where it repeats the same call."""
    present = [one for one in moved if one is not None]
    assert isinstance(application.op, Operator)
    twin = apply(application.op, application.inputs, application.attributes)
    if twin is application or twin not in set(topological(present)):
        return moved
    supply = iter(substitute(present, {twin: application}))
    return [None if one is None else next(supply) for one in moved]


def _template(
    operator: Operator,
    attributes: Attributes,
    types: tuple[VarType | None, ...],
    training: bool | None,
) -> tuple[tuple[Node | None, ...], Node]:
    """Returns placeholders for the inputs of a call, and the call on them."""
    inputs = tuple(_stand_in(operator, i, one, training) for i, one in enumerate(types))
    return inputs, _unsimplified(operator, inputs, attributes)


def _stand_in(
    operator: Operator,
    index: int,
    type: VarType | None,
    training: bool | None,
) -> Node | None:
    slot = operator.slot_of(index)
    if type is None:
        return None
    if slot.role == "training" and training is not None:
        return constant(training)
    return placeholder(slot.name, type)


def _unsimplified(
    operator: Operator, inputs: tuple[Node | None, ...], attributes: Attributes
) -> Node:
    """Returns the application itself; placeholders are new, so no equal node exists."""
    return apply(operator, inputs, attributes, name=operator.name)


def _known(node: Node | None) -> Node:
    assert node is not None
    return node


def _require_dependence(
    operator: Operator, gradients: Sequence[Node], cotangents: Sequence[Node]
) -> None:
    """Raises an error for a nonzero gradient that ignores the cotangent, which is not linear."""
    order = topological(gradients)
    dependent = reaching(order, cotangents)
    apart = any(g not in dependent and g.constant != 0 for g in gradients)
    if apart or adds_constants(order, dependent):
        raise NotLinearError(_not_linear(operator))


def loses(node: Node, moving: set[Node]) -> bool:
    """Whether some gradient of ``node`` by its inputs in ``moving`` ignores the cotangent."""
    operator = node.op
    if not isinstance(operator, Operator) or operator.gradient_rule is None:
        return False
    active = tuple(i for i, one in enumerate(node.inputs) if one in moving)
    types = tuple(None if one is None else one.type.strong() for one in node.inputs)
    training = None if operator.training_index is None else _flag(node.inputs, operator)
    return _loses(operator, node.attributes, types, active, training)


def _flag(inputs: Sequence[Node | None], operator: Operator) -> Any:
    """Returns the training flag passed to a call; None if it is open."""
    assert operator.training_index is not None
    flag = inputs[operator.training_index]
    return None if flag is None else flag.constant


@memoized(4096, key=typed_key)
@deriving()
def _loses(
    operator: Operator,
    attributes: Attributes,
    types: tuple[VarType | None, ...],
    active: tuple[int, ...],
    training: bool | None,
) -> bool:
    inputs, application = _template(operator, attributes, types, training)
    moving = {_known(inputs[i]) for i in active}
    if body_loses(application, moving):
        return True
    cotangents = _cotangents(application)
    try:
        gradients = [gradient for _, gradient in input_gradients(application, cotangents, moving)]
    except SymopError:
        return False  # differentiating reports the error
    dependent = reaching(topological(gradients), [c for c in cotangents if c is not None])
    return any(one not in dependent and one.constant != 0 for one in gradients)


def _require_gone(operator: Operator, results: Sequence[Node], cotangents: Sequence[Node]) -> None:
    if not set(cotangents).isdisjoint(topological(results)):
        raise NotLinearError(_not_linear(operator))


def _not_linear(operator: Operator) -> str:
    return (
        f"{operator.name}: forward mode needs a gradient maker that is linear in its cotangent, "
        "and this one is not; use reverse mode"
    )


def pushforward(
    ys: Sequence[Node],
    xs: Sequence[Node],
    tangents: Sequence[Node],
    summing: Accumulation = IN_ORDER,
) -> list[Node | None]:
    """Returns the tangents of ``ys`` when ``xs`` move along ``tangents``; None where none arrives.

    A variable that occurs more than once in ``xs`` moves along the sum of its tangents.

    Raises:
        NotDifferentiableError, NotLinearError: An operator on the path has no pushforward.
    """
    order = topological(ys)
    with deriving(order, summing.held_by_users(order, ys, xs, tangents)):
        return _pushed_on(order, ys, xs, tangents)


def _pushed_on(
    order: Sequence[Node], ys: Sequence[Node], xs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node | None]:
    ways: dict[Node, list[Node]] = {}
    for x, tangent in zip(xs, tangents, strict=True):
        ways.setdefault(x, []).append(tangent)
    summed = {x: accumulate(several) for x, several in ways.items()}
    moved: dict[Node, tuple[Node | None, ...]] = {}
    for node in order:
        parts = _propagated(node, moved)
        if node in summed:
            first = summed[node] if parts[0] is None else accumulate([summed[node], parts[0]])
            parts = (first, *parts[1:])
        if any(part is not None for part in parts):
            moved[node] = parts
    return [moved.get(y, (None,))[0] for y in ys]


def _propagated(
    node: Node, moved: Mapping[Node, tuple[Node | None, ...]]
) -> tuple[Node | None, ...]:
    """Returns the tangents of the outputs of ``node`` from those of its inputs."""
    if node.is_selection:
        return (moved[node.source][node.index] if node.source in moved else None,)
    active = tuple(i for i, child in enumerate(node.inputs) if child in moved)
    if not active or not carries_cotangent(node) or not isinstance(node.op, Operator):
        return (None,)
    with origin_of(node):
        return _pushed(node, active, [moved[_known(node.inputs[i])][0] for i in active])


def _pushed(
    node: Node, active: tuple[int, ...], tangents: Sequence[Node | None]
) -> tuple[Node | None, ...]:
    operator = node.op
    assert isinstance(operator, Operator)
    types = tuple(None if child is None else child.type for child in node.inputs)
    template = pushforward_of(operator, node.attributes, types, active)
    replacements: dict[Node, Node] = {template.application: node}
    for stand_in, child in zip(template.inputs, node.inputs, strict=True):
        if stand_in is not None and child is not None:
            replacements[stand_in] = child
    for stand_in, tangent in zip(template.tangents, tangents, strict=True):
        replacements[stand_in] = _known(tangent)
    present = [result for result in template.results if result is not None]
    label = operator.name, node.name or operator.name
    results = iter(substitute(present, replacements, lambda one: _placed(one, node, *label)))
    return tuple(None if result is None else next(results) for result in template.results)


def _placed(origin: Origin, node: Node, before: str, label: str) -> Origin:
    """Returns the origin of a tangent: the line of ``node``, and its name where a template says so.

    The template was built for whatever call came first, on some other line.
    """
    file, line = (node.origin.file, node.origin.line) if node.origin else ("", 0)
    return Origin(file, line, label if origin.forward in (None, before) else origin.forward)
