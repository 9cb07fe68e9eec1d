"""Blocks: runs of a graph as single calls, whose gradients compute their values again."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from registry.attributes import identity_key
from registry.errors import SymopError
from registry.operator import Operator
from registry.table import get
from registry.types import VarKind, VarType
from registry.var import Attributes
from symop.bodies import body_of
from symop.differentiate import cotangent_types, input_gradients, output_values
from symop.emission import apply, images
from symop.graph import (
    ARRAY,
    CONSTANT,
    TRAINING,
    VARIABLE,
    Node,
    copied_origin,
    placeholder,
)
from symop.policies import Policy, scope_of
from symop.recomputing.images import Images, node_of
from symop.recomputing.runs import Run, calls_of, source_of

_INSIDE = (CONSTANT, TRAINING)
"""What a body has itself."""


class Contracted(NamedTuple):
    """A graph with blocks in place of runs.

    Attributes:
        outputs: its values.
        stands_for: for each output of a block the value of the graph of before, and for each call
            that follows from one the call of before.
        image: what the values of that graph became.
    """

    outputs: list[Node]
    stands_for: dict[Node, Node]
    image: "Images"


class Plan(NamedTuple):
    """One run and what becomes of it.

    Attributes:
        run: calls that stand together.
        policy: what is kept of them; None where they stay as they are.
    """

    run: Run
    policy: Policy | None


def contracted(outputs: Sequence[Node], plans: Sequence[Plan]) -> Contracted:
    """``outputs`` with a block in place of each run that has a policy."""
    read = _read(outputs, plans)
    image, found = Images(), dict[Node, Node]()
    for plan, values in zip(plans, read, strict=True):
        made = _block(plan, values, image) if plan.policy is not None and values else None
        if made is None:
            found.update(_unchanged(plan.run, image))
            continue
        found.update(made)
        image.update({one: part for part, one in made.items() if one in values})
    return Contracted([image.value(one) for one in outputs], found, image)


def _unchanged(run: Run, image: Images) -> dict[Node, Node]:
    """What the calls of a run become that are no block, and what they were."""
    for node in run:
        image.rebuild(node)
    return {image.value(node): node for node in run if image[node] is not node}


def _read(outputs: Sequence[Node], plans: Sequence[Plan]) -> list[dict[Node, None]]:
    """The values of each run that are read outside of it."""
    run_of = {node: i for i, plan in enumerate(plans) for node in plan.run}
    found: list[dict[Node, None]] = [{} for _ in plans]
    for i, plan in enumerate(plans):
        for node in plan.run:
            for one in node.operands:
                home = run_of.get(source_of(one))
                if home is not None and home != i:
                    found[home][one] = None
    for one in outputs:
        if source_of(one) in run_of:
            found[run_of[source_of(one)]][one] = None
    return found


def _block(plan: Plan, read: dict[Node, None], image: Images) -> dict[Node, Node] | None:
    """The calls of a run as one call: its outputs, and the values that they are.

    None where they cannot be one, because something that enters or leaves is no dense array.
    """
    assert plan.policy is not None
    kept = [one for one in _kept(plan.run, plan.policy) if one not in read]
    values, inputs = [*read, *kept], _inputs(plan.run)
    if not all(map(_may_enter, inputs)) or not all(map(_may_leave, values)):
        return None
    stand_ins = {one: placeholder(f"x{i}", one.type.strong()) for i, one in enumerate(inputs)}
    inner = images(values, stand_ins, unscoped=True)
    with copied_origin(_outside(plan.run[0])):
        parts = get("recompute")(
            *[image.value(one) for one in inputs],
            training=_training(plan.run),
            body=body_of(list(stand_ins.values()), [node_of(inner[one]) for one in values], ()),
            saved=tuple(range(len(values))),
            lasting=tuple(i for i, one in enumerate(inputs) if one.op in (VARIABLE, ARRAY)),
        )
    return dict(zip(parts, values, strict=True))


def _outside(node: Node) -> Any:
    """The origin of a block: in the scope around it."""
    scope, origin = scope_of(node), node.origin
    if scope is None or origin is None:
        return origin
    return origin._replace(scope=scope.outer)


def _inputs(run: Run) -> list[Node]:
    """What the calls of a run read from outside, each once."""
    own = set(run)
    read = (one for node in run for one in node.operands)
    return list(dict.fromkeys(n for n in read if n.op not in _INSIDE and source_of(n) not in own))


def _kept(run: Run, policy: Policy) -> list[Node]:
    """The values of a run that ``policy`` keeps."""
    values = [one for node in run for one in output_values(node)]
    return [one for one in values if _may_leave(one) and policy.keeps(one)]


def _may_enter(node: Node) -> bool:
    return _may_leave(node) or node.type.kind is VarKind.RANDOM_KEY


def _may_leave(node: Node) -> bool:
    """Whether ``node`` is a dense array; a weak type would be lost on the way."""
    return node.type.kind is VarKind.LOD_TENSOR and not node.type.weak


def _training(run: Run) -> Any:
    flags = (one for node in run for one in node.operands if one.op is TRAINING)
    return next(flags, False)


# Which calls may be in a block -------------------------------------------------------------------


def apart(order: Sequence[Node], xs: Iterable[Node]) -> set[Node]:
    """The calls that no block may hold.

    By a value inside of a block nobody could differentiate. A state that two calls update is read
    by the second as the first left it. Rows must not leave a body.
    """
    calls = calls_of(order)
    shared = _shared_states(calls)
    found = {source_of(x) for x in xs}
    for node in calls:
        if not shared.isdisjoint(node.operands) or gives_rows(node):
            found.add(node)
    return found


def _shared_states(calls: Sequence[Node]) -> set[Node]:
    once, twice = set[Node](), set[Node]()
    for node in calls:
        assert isinstance(node.op, Operator)
        for i in node.op.update_indices:
            state = node.inputs[i]
            if state is not None:
                (twice if state in once else once).add(state)
    return twice


def gives_rows(node: Node) -> bool:
    """Whether a gradient of ``node`` is rows."""
    assert isinstance(node.op, Operator)
    types = tuple(None if one is None else one.type for one in node.inputs)
    return _gives_rows(node.op, identity_key(node.attributes), node.attributes, types)


@functools.lru_cache(maxsize=4096)
def _gives_rows(
    operator: Operator, _key: Any, attributes: Attributes, types: tuple[VarType | None, ...]
) -> bool:
    integers = any(one is not None and one.dtype.kind in "iu" for one in types)
    if not integers:
        return False  # rows are numbered by an input
    inputs = tuple(None if one is None else placeholder("x", one) for one in types)
    active = {one for one in inputs if one is not None and one.type.differentiable}
    try:
        node = apply(operator, inputs, attributes, name=operator.name)
        heads = tuple(
            None if one is None else placeholder("d", one) for one in cotangent_types(node)
        )
        found = input_gradients(node, heads, active)
    except SymopError:
        return False  # whoever differentiates it is told
    return any(gradient.type.kind is VarKind.SELECTED_ROWS for _, gradient in found)
