"""Loops: which values of each step are kept for a gradient."""

from collections.abc import Sequence

from registry.operator.bodies import bodies_of
from registry.operator.operator import Operator
from registry.table import find, get
from symop.graph.nodes import Node, copied_origin, topological
from symop.graph.policies import Policy, scope_of
from symop.graph.rewriting import Images, node_of
from symop.passes.remat.loop_calls import loop_of, saving
from symop.passes.remat.nesting import in_segments
from symop.regions.bodies import GraphBody

_LOOPS = ("scan", "while_loop")


def is_loop(node: Node) -> bool:
    """Whether ``node`` runs a body step by step, and may keep values of each step."""
    operator = node.op
    if not isinstance(operator, Operator) or not node.attributes:
        return False
    return (operator.family or operator) in map(find, _LOOPS) and bool(bodies_of(node.attributes))


def holds_scopes(node: Node) -> bool:
    """Whether ``node`` is a loop whose steps contain a rematerialization scope."""
    if not is_loop(node):
        return False
    bodies = [one for one in bodies_of(node.attributes) if isinstance(one, GraphBody)]
    return any(scope_of(one) is not None for body in bodies for one in topological(body.results))


def chosen(roots: Sequence[Node], policy: Policy | None) -> list[Node]:
    """Returns ``roots`` with loops that keep the values of each step that ``policy`` chooses.

    If the policy cuts graphs into segments, a scan of n steps becomes a scan over about sqrt(n)
    scans of about sqrt(n) steps, and only the carries between those are kept.
    """
    if policy is None or not policy.again:
        return list(roots)
    order = topological(roots)
    if not any(map(is_loop, order)):
        return list(roots)
    read, image = _read(order, roots), Images()
    for node in order:
        if is_loop(node):
            with copied_origin(node.origin):
                image.update(
                    _again(node, sorted(read[node], key=lambda one: one.index), policy, image)
                )
        elif isinstance(node.op, Operator):
            image.rebuild(node)
    return [image.value(one) for one in roots]


def _read(order: Sequence[Node], roots: Sequence[Node]) -> dict[Node, list[Node]]:
    """Returns the values of each loop that are read."""
    values = dict.fromkeys([*roots, *(one for node in order for one in node.operands)])
    result: dict[Node, list[Node]] = {node: [] for node in order if is_loop(node)}
    for one in values:
        if one.source in result and (one.is_selection or _is_single(one)):
            result[one.source].append(one)
    return result


def _is_single(node: Node) -> bool:
    return isinstance(node.op, Operator) and node.op.single


def _again(node: Node, read: Sequence[Node], policy: Policy, image: Images) -> dict[Node, Node]:
    """Returns the images of the values of a loop that are read."""
    loop = loop_of(node, image)
    hidden = len(node.types or ()) - len(loop.layout.body.outputs)
    places = sorted(one.index - hidden for one in read)
    if not isinstance(loop.layout.body, GraphBody) or (places and places[0] < 0):
        return {node: node_of(image.rebuild(node))}
    told = loop.told(places)
    if policy.segments and loop.operator is get("scan"):
        results = in_segments(told, policy.cuts)
    else:
        results = told.results(saving(told.layout, policy).body)
    fixed = loop.layout.n_carry + loop.layout.n_sums
    series = {j: fixed + k for k, j in enumerate(j for j in places if j >= fixed)}
    return {one: results[series.get(j, j)] for one in read for j in [one.index - hidden]}
