"""Loops: what each of their steps keeps for a gradient."""

from collections.abc import Sequence

from registry.bodies import bodies_of
from registry.operator import Operator
from registry.table import get
from symop.bodies import GraphBody
from symop.graph import SELECT, Node, copied_origin, topological
from symop.policies import Policy, scope_of
from symop.recomputing.images import Images
from symop.recomputing.loop_calls import loop_of, saving
from symop.recomputing.nesting import in_segments

_LOOPS = ("scan", "while_loop")


def is_loop(node: Node) -> bool:
    """Whether ``node`` runs a body step by step, and may keep something of each."""
    return isinstance(node.op, Operator) and node.op.name in _LOOPS


def holds_scopes(node: Node) -> bool:
    """Whether ``node`` is a loop of whose steps a scope keeps less."""
    if not is_loop(node):
        return False
    bodies = [one for one in bodies_of(node.attributes) if isinstance(one, GraphBody)]
    return any(scope_of(one) is not None for body in bodies for one in topological(body.results))


def chosen(roots: Sequence[Node], policy: Policy | None) -> list[Node]:
    """``roots`` whose loops keep of each step what ``policy`` says.

    Where it cuts graphs into segments, a scan of n steps becomes one over about sqrt(n) scans of
    about sqrt(n) steps, and only the carries between those are kept.
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
                image.update(_again(node, sorted(read[node], key=place_of), policy, image))
        elif isinstance(node.op, Operator):
            image.rebuild(node)
    return [image.value(one) for one in roots]


def _read(order: Sequence[Node], roots: Sequence[Node]) -> dict[Node, list[Node]]:
    """The values of each loop that are read."""
    values = dict.fromkeys([*roots, *(one for node in order for one in node.operands)])
    found: dict[Node, list[Node]] = {node: [] for node in order if is_loop(node)}
    for one in values:
        source = one.operands[0] if one.op is SELECT else one
        if source in found and (one.op is SELECT or _is_single(source)):
            found[source].append(one)
    return found


def _is_single(node: Node) -> bool:
    return isinstance(node.op, Operator) and node.op.single


def place_of(value: Node) -> int:
    """Which output of its call ``value`` is."""
    return value.attributes[0] if value.op is SELECT else 0


def _again(node: Node, read: Sequence[Node], policy: Policy, image: Images) -> dict[Node, Node]:
    """What becomes of the values of a loop that are read."""
    loop = loop_of(node, image)
    hidden = len(node.types or ()) - len(loop.layout.body.outputs)
    places = sorted(place_of(one) - hidden for one in read)
    if not isinstance(loop.layout.body, GraphBody) or (places and places[0] < 0):
        return {node: image.rebuild(node)}
    told = loop.told(places)
    if policy.segments and loop.operator is get("scan"):
        found = in_segments(told, policy.cuts)
    else:
        found = told.results(saving(told.layout, policy).body)
    fixed = loop.layout.n_carry + loop.layout.n_sums
    series = {j: fixed + k for k, j in enumerate(j for j in places if j >= fixed)}
    return {one: found[series.get(j, j)] for one in read for j in [place_of(one) - hidden]}
