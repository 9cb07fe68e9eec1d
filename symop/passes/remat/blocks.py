"""Blocks: runs of a graph as single calls, whose gradients recompute their values."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from registry.caches import memoized
from registry.errors import SymopError
from registry.operator.attributes import identity_key
from registry.operator.operator import Operator
from registry.table import get
from registry.types import VarKind, VarType, is_integer
from registry.var import Attributes
from symop.autodiff.differentiate import cotangent_types, input_gradients, output_values
from symop.graph.emission import apply
from symop.graph.nodes import (
    ARRAY,
    CONSTANT,
    TRAINING,
    VARIABLE,
    Node,
    copied_origin,
    placeholder,
)
from symop.graph.policies import Policy, scope_of
from symop.graph.rewriting import Images, images, node_of
from symop.passes.remat.runs import Run, calls_of
from symop.regions.bodies import body_of

_INSIDE = (CONSTANT, TRAINING)
"""The structures that a body contains itself."""


class Contracted(NamedTuple):
    """A graph with blocks in place of runs.

    Attributes:
        outputs: The values of the graph.
        stands_for: Maps each output of a block to the original value, and each call that depends
            on one to the original call.
        image: Maps the values of the original graph to those of this graph.
    """

    outputs: list[Node]
    stands_for: dict[Node, Node]
    image: "Images"


class Plan(NamedTuple):
    """A run and its treatment.

    Attributes:
        run: Adjacent calls.
        policy: Which of their values are kept; None if the calls are unchanged.
    """

    run: Run
    policy: Policy | None


def contract(outputs: Sequence[Node], plans: Sequence[Plan]) -> Contracted:
    """Returns ``outputs`` with a block in place of each run that has a policy."""
    read = _read(outputs, plans)
    image, blocks = Images(), dict[Node, Node]()
    for plan, values in zip(plans, read, strict=True):
        block = _block(plan, values, image) if plan.policy is not None and values else None
        if block is None:
            blocks.update(_unchanged(plan.run, image))
            continue
        blocks.update(block)
        image.update({one: part for part, one in block.items() if one in values})
    return Contracted([image.value(one) for one in outputs], blocks, image)


def _unchanged(run: Run, image: Images) -> dict[Node, Node]:
    """Rebuilds the calls of a run without a block; returns the original of each changed call."""
    for node in run:
        image.rebuild(node)
    return {image.value(node): node for node in run if image[node] is not node}


def _read(outputs: Sequence[Node], plans: Sequence[Plan]) -> list[dict[Node, None]]:
    """Returns the values of each run that are read outside it."""
    run_of = {node: i for i, plan in enumerate(plans) for node in plan.run}
    result: list[dict[Node, None]] = [{} for _ in plans]
    for i, plan in enumerate(plans):
        for node in plan.run:
            for one in node.operands:
                home = run_of.get(one.source)
                if home is not None and home != i:
                    result[home][one] = None
    for one in outputs:
        if one.source in run_of:
            result[run_of[one.source]][one] = None
    return result


def _block(plan: Plan, read: dict[Node, None], image: Images) -> dict[Node, Node] | None:
    """Makes one call of a run's calls; maps its outputs to the values they represent.

    Returns None if that is impossible, because an input or output is not a dense array.
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
    """Returns the origin of a block, which is in the scope around it."""
    scope, origin = scope_of(node), node.origin
    if scope is None or origin is None:
        return origin
    return origin._replace(scope=scope.outer)


def _inputs(run: Run) -> list[Node]:
    """Returns the distinct values that the calls of a run read from outside."""
    own = set(run)
    read = (one for node in run for one in node.operands)
    return list(dict.fromkeys(n for n in read if n.op not in _INSIDE and n.source not in own))


def _kept(run: Run, policy: Policy) -> list[Node]:
    """Returns the values of a run that ``policy`` keeps."""
    values = [one for node in run for one in output_values(node)]
    return [one for one in values if _may_leave(one) and policy.keeps(one)]


def _may_enter(node: Node) -> bool:
    return _may_leave(node) or node.type.kind is VarKind.RANDOM_KEY


def _may_leave(node: Node) -> bool:
    """Whether ``node`` is a dense array; a body would not preserve that it is weakly typed."""
    return node.type.kind is VarKind.LOD_TENSOR and not node.type.weak


def _training(run: Run) -> Any:
    flags = (one for node in run for one in node.operands if one.op is TRAINING)
    return next(flags, False)


# Calls that may be in a block --------------------------------------------------------------------


def apart(order: Sequence[Node], xs: Iterable[Node]) -> set[Node]:
    """Returns the calls that no block may contain.

    These are calls that compute one of ``xs``, since a value inside a block cannot be
    differentiated by; calls that update the same state, since the second reads what the first
    wrote; and calls with row-sparse gradients, since rows must not leave a body.
    """
    calls = calls_of(order)
    shared = _shared_states(calls)
    result = {x.source for x in xs}
    for node in calls:
        if not shared.isdisjoint(node.operands) or gives_rows(node):
            result.add(node)
    return result


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
    """Whether a gradient of ``node`` is row-sparse."""
    assert isinstance(node.op, Operator)
    types = tuple(None if one is None else one.type for one in node.inputs)
    return _gives_rows(node.op, node.attributes, types)


@memoized(4096, key=identity_key)
def _gives_rows(
    operator: Operator, attributes: Attributes, types: tuple[VarType | None, ...]
) -> bool:
    integers = any(one is not None and is_integer(one.dtype) for one in types)
    if not integers:
        return False  # an input holds the numbers of the rows
    inputs = tuple(None if one is None else placeholder("x", one) for one in types)
    active = {one for one in inputs if one is not None and one.type.differentiable}
    try:
        node = apply(operator, inputs, attributes, name=operator.name)
        heads = tuple(
            None if one is None else placeholder("d", one) for one in cotangent_types(node)
        )
        gradients = input_gradients(node, heads, active)
    except SymopError:
        return False  # differentiating it reports the error
    return any(gradient.type.kind is VarKind.SELECTED_ROWS for _, gradient in gradients)
