"""Sums over directions, taken before linear operators instead of after them.

A derivative along each of many directions is one graph, applied to each direction by ``vmap``. Its
highest coefficient is linear in what it came from, so where only the sum over the directions is
wanted, the sum moves back through every operator that is linear in what depends on the direction:
``sum_d A(t_d) = A(sum_d t_d)``. Operators that are not linear are applied for each direction, and
their results are summed. The second derivatives of a layer are thus one array, not one for each
direction, as in the forward Laplacian.

Source: Dangel, Siebert, Zeinhofer, Walther, Collapsing Taylor mode automatic differentiation,
NeurIPS 2025; Li, Ye, Li, et al., A computational framework for neural network-based variational
Monte Carlo with Forward Laplacian, Nature Machine Intelligence, 2024.
"""

from collections.abc import Collection, Mapping, Sequence

from registry.operator.operator import Operator
from registry.table import get
from symop.graph.nodes import (
    CONSTANT,
    TRAINING,
    Node,
    array,
    by_age,
    constant,
    placeholder,
    reaching,
    residuals,
    topological,
    training_flag,
)
from symop.graph.rewriting import Image, Images, substitute
from symop.lowering.steps import random_keys
from symop.passes.blocks import Blocks, Term
from symop.passes.factors import moving_left, with_left
from symop.passes.linearity import Places, linear_places
from symop.regions.bodies import GraphBody, body_of


def sum_over_directions(
    results: Sequence[Node],
    series: Mapping[Node, Node],
    weights: Node | None = None,
    totals: Mapping[Node, Node] | None = None,
    *,
    standard: bool = False,
) -> list[Node]:
    """Returns the sums of ``results`` over directions, weighted if there are ``weights``.

    Args:
        results: values that depend on placeholders.
        series: for each placeholder the values that it takes, stacked along a first axis.
        weights: one number for each of these, by default ones.
        totals: for further placeholders, in which ``results`` are linear, the sum of the values
            that they take; see ``reads_totals_alone``.
        standard: whether ``series`` is the standard basis of one placeholder, without weights.
    """
    totals = totals or {}
    results = _without_calls(results)
    plan = _Plan(results, series, totals)
    each = list(dict.fromkeys(plan.each))
    made = _of_basis(each, series) if standard else _sums_of(each, series, weights)
    sums = {**totals, **dict(zip(each, made, strict=True))}
    for node in plan.order:
        if node in plan.constant:
            sums[node] = _times(node, series, weights)
        elif node in plan.scaled:
            core, factor = plan.scaled[node]
            sums[node] = get("multiply")(sums[core], factor)
        elif node in plan.linear:
            sums[node] = _of_sums(node, plan.linear[node], sums)
    return [sums[one] for one in results]


def reads_totals_alone(
    results: Sequence[Node], series: Collection[Node], totals: Collection[Node]
) -> bool:
    """Whether the sums of ``totals`` suffice for the sums of ``results``.

    They do not if a value that depends on them is computed for each direction.
    """
    plan = _Plan(_without_calls(results), series, totals)
    return set(totals).isdisjoint(topological(plan.each))


def _times(node: Node, series: Mapping[Node, Node], weights: Node | None) -> Node:
    """Returns the sum of a value that is the same for each direction."""
    if weights is None:
        scaled: Node = get("scale")(node, scale=float(_count(series)))
        return scaled
    total = get("sum")(_cast(weights, node))
    product: Node = get("multiply")(node, total)
    return product


def _count(series: Mapping[Node, Node]) -> int:
    return next(iter(series.values())).type.shape[0]


def _cast(weights: Node, like: Node) -> Node:
    if weights.type.dtype == like.type.dtype:
        return weights
    cast: Node = get("cast")(weights, dtype=like.type.dtype.name)
    return cast


def _without_calls(results: Sequence[Node]) -> list[Node]:
    """Returns ``results`` with calls whose derivative is that of their body replaced by the body.

    The tangents of a call are such calls, inside which sums over directions cannot be moved.
    """
    values = list(results)
    while any(_body_of(node) for node in topological(values)):
        image = Images()
        for node in by_age(topological(values)):
            body = _body_of(node)
            if body is None:
                image.rebuild(node)
            else:
                image[node] = _outputs_of(body, image, node)
        values = [image.value(one) for one in values]
    return values


def _body_of(node: Node) -> GraphBody | None:
    """Returns the body of a call without a rule; None for other nodes."""
    if not isinstance(node.op, Operator) or node.op.family is not get("call"):
        return None
    body, *rules = node.attributes
    plain = isinstance(body, GraphBody) and not body.keys and not body.updating
    return body if plain and not any(rules) else None


def _outputs_of(body: GraphBody, image: Images, node: Node) -> Image:
    operands = [image.value(one) for one in node.inputs[1:] if one is not None]
    results = substitute(body.results, dict(zip(body.parameters, operands, strict=True)))
    return results[0] if len(results) == 1 else results


class _Plan:
    """How the sum of each value is computed.

    Attributes:
        order: the values whose sums are needed, inputs before users.
        constant: those that do not depend on the direction.
        linear: those that are linear in the inputs at some places, whose sums are needed.
        scaled: those that are the product of a value and a factor that is the same for each
            direction.
        each: those that are computed for each direction.
    """

    def __init__(
        self, results: Sequence[Node], series: Collection[Node], totals: Collection[Node]
    ) -> None:
        nodes = topological(results)
        self._totals = totals
        self._moving = reaching(nodes, [*series, *totals])
        self.order: list[Node] = []
        self.constant: set[Node] = set()
        self.linear: dict[Node, Places] = {}
        self.scaled: dict[Node, tuple[Node, Node]] = {}
        self.each: list[Node] = []
        wanted = set(results)
        for node in reversed(nodes):
            if node in wanted:
                self.order.append(node)
                wanted.update(self._required(node))
        self.order.reverse()

    def _required(self, node: Node) -> list[Node]:
        """Returns the inputs of ``node`` whose sums are needed for its sum."""
        if node in self._totals:
            return []
        if node not in self._moving:
            self.constant.add(node)
            return []
        places = linear_places(node, self._moving)
        if places is None:
            self._compute_each(node)
            return []
        self.linear[node] = places
        return [_input(node, i) for i in places]

    def _compute_each(self, node: Node) -> None:
        """Plans ``node`` for each direction, without factors that are the same for all of them."""
        factor: Node | None = None
        core = node
        if node.op is get("multiply"):
            pairs = [self._factored(_input(node, i), node) for i in (0, 1)]
            if any(one is not None for _, one in pairs):
                core = get("multiply")(*[one for one, _ in pairs])
                factors = [one for _, one in pairs if one is not None]
                factor = factors[0] if len(factors) == 1 else get("multiply")(*factors)
        self.each.append(core)
        if factor is not None:
            self.scaled[node] = core, factor

    def _factored(self, node: Node, like: Node) -> tuple[Node, Node | None]:
        """Returns a moving value and a factor that does not move, whose product is ``node``."""
        factor: Node | None = None
        while (step := self._factor_step(node, like)) is not None:
            node, further = step
            factor = further if factor is None else get("multiply")(factor, further)
        return node, factor

    def _factor_step(self, node: Node, like: Node) -> tuple[Node, Node] | None:
        """Splits one factor off ``node``, if it has the shape of ``like``."""
        if node.types != like.types or not isinstance(node.op, Operator):
            return None
        if node.op is get("negative"):
            return _input(node, 0), constant(-1.0, like.type)
        if node.op is get("add") and node.inputs[0] is node.inputs[1]:
            return _input(node, 0), constant(2.0, like.type)
        if node.op is get("multiply"):
            for i, j in ((0, 1), (1, 0)):
                moving, fixed = _input(node, i), _input(node, j)
                if fixed not in self._moving and moving.types == like.types:
                    return moving, fixed
        return None


def _input(node: Node, index: int) -> Node:
    one = node.inputs[index]
    assert one is not None
    return one


def _of_sums(node: Node, places: Places, sums: dict[Node, Node]) -> Node:
    """Returns ``node`` with its inputs at ``places`` replaced by their sums."""
    assert isinstance(node.op, Operator)
    inputs = tuple(
        sums[_input(node, i)] if i in places else one for i, one in enumerate(node.inputs)
    )
    made: Node = Node.emitter.emit(node.op, inputs, node.attributes, None)
    return with_left(made, places[0]) if len(places) == 1 else made


def _sums_of(
    values: Sequence[Node], series: Mapping[Node, Node], weights: Node | None
) -> list[Node]:
    """Returns the sums of ``values``, computed for each direction."""
    if _count(series) > 1:
        return [_summed(one, weights) for one in over_directions(values, series)]
    only = {one: get("reshape")(ways, shape=one.type.shape) for one, ways in series.items()}
    made = substitute(values, only)
    if weights is None:
        return made
    factor = get("reshape")(weights, shape=())
    return [get("multiply")(one, _cast(factor, one)) for one in made]


def _summed(stacked: Node, weights: Node | None) -> Node:
    """Returns the weighted sum along the first axis."""
    count, *shape = stacked.type.shape
    if weights is not None:
        aligned = get("reshape")(_cast(weights, stacked), shape=(count, *(1,) * len(shape)))
        stacked = get("multiply")(stacked, aligned)
    total: Node = get("sum")(stacked, axis=0)
    return total


def _of_basis(values: Sequence[Node], series: Mapping[Node, Node]) -> list[Node]:
    """Returns the sums of ``values`` over the standard basis, with tangents held as rows."""
    ((direction, directions),) = series.items()
    along = placeholder("along", direction.type)
    order = topological(values)
    blocks = Blocks(order, reaching(order, [direction]), direction, along)
    found = {one: terms for one in values if (terms := blocks.terms_of(one)) is not None}
    rest = [one for one in values if one not in found]
    border = _border(rest, blocks)
    parts = [part for one in border for part in blocks.needed(one)]
    products = [term.product for terms in found.values() for term in terms]
    each = list(dict.fromkeys([*parts, *products]))
    made = over_directions(each, {along: array(blocks.basis())})
    stacked = dict(zip(each, made, strict=True))
    spread = {one: blocks.spread(one, stacked) for one in border}
    sums = dict(zip(rest, _sums_of(rest, {direction: directions, **spread}, None), strict=True))
    for one, terms in found.items():
        sums[one] = _sum_of_terms(terms, stacked, one)
    return [sums[one] for one in values]


def _sum_of_terms(terms: Sequence[Term], stacked: Mapping[Node, Node], like: Node) -> Node:
    """Returns the sum over rows of products of parts."""
    total: Node | None = None
    for term in terms:
        one = get("sum")(stacked[term.product], axis=0)
        if term.mask is not None:
            one = get("multiply")(one, array(term.mask.astype(like.type.dtype)))
        if term.times > 1:
            one = get("scale")(one, scale=float(term.times))
        total = one if total is None else get("add")(total, one)
    return constant(0.0, like.type) if total is None else total


def _border(values: Sequence[Node], blocks: Blocks) -> list[Node]:
    """Returns the values with parts that the others read, except the direction itself."""
    known = {one for one in blocks.parts if not blocks.is_source(one)} | set(blocks.contractions)
    return [one for one in residuals(values, lambda one: one in known) if one in known]


def over_directions(values: Sequence[Node], series: Mapping[Node, Node]) -> list[Node]:
    """Returns ``values`` for each entry along the first axis of the arrays in ``series``.

    The keys of ``series`` are the values for which the entries stand.
    """
    if not values:
        return []
    values = moving_left(values, series)
    moving = reaching(topological(values, until=series), series)
    read = residuals(values, lambda one: one in series or _is_outside(one, moving))
    outside = [one for one in read if one not in series]
    slices = {one: placeholder(f"s{i}", one.type.strong()) for i, one in enumerate(series)}
    inside = {one: placeholder(f"x{i}", one.type.strong()) for i, one in enumerate(outside)}
    results = substitute(values, {**slices, **inside})
    nodes = topological(results)
    body = body_of([*slices.values(), *inside.values()], results, random_keys(nodes))
    reads_flag = any(one.op is TRAINING for one in nodes)
    flag = training_flag() if reads_flag else False
    made = get("vmap")(*series.values(), *outside, training=flag, body=body, n_mapped=len(series))
    return list(made) if isinstance(made, tuple) else [made]


def _is_outside(node: Node, moving: set[Node]) -> bool:
    """Whether ``node`` is an operand of the body: it is the same for each direction."""
    if node.op is CONSTANT or node.op is TRAINING:
        return False
    return node.source not in moving and node not in moving
