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

import string
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from registry.operator.operator import Operator
from registry.table import get
from registry.types import VarType
from symop.graph.algebra import is_product, summands
from symop.graph.nodes import (
    CONSTANT,
    TRAINING,
    VARIABLE,
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
from symop.passes.spans import Span, linear_values, products_of
from symop.regions.bodies import GraphBody, body_of


def sum_over_directions(
    results: Sequence[Node],
    series: Mapping[Node, Node],
    weights: Node | None = None,
    totals: Mapping[Node, Node] | None = None,
    *,
    standard: bool = False,
    mixed: "Mixed | None" = None,
    span: Span | None = None,
) -> list[Node]:
    """Returns the sums of ``results`` over directions, weighted if there are ``weights``.

    Args:
        results: values that depend on placeholders.
        series: for each placeholder the values that it takes, stacked along a first axis.
        weights: one number for each of these, by default ones.
        totals: for further placeholders, in which ``results`` are linear, the sum of the values
            that they take; see ``reads_totals_alone``.
        standard: whether ``series`` is the standard basis of one placeholder, without weights.
        mixed: further placeholders, whose directions are combinations of those in ``series``.
        span: fewer directions, of which those in ``series`` are combinations.
    """
    sums = _Sums(series, weights, totals or {}, standard=standard, mixed=mixed, span=span)
    return sums.of(results)


class Mixed(NamedTuple):
    """Placeholders that stand for combinations of the directions of other placeholders.

    Attributes:
        like: for each the other one. ``results`` must be linear in the placeholders.
        matrix: a row of coefficients for each direction.
    """

    like: Mapping[Node, Node]
    matrix: Node


class _Sums:
    """Sums over directions.

    Attributes:
        known: the sums that were computed, by value.
    """

    def __init__(
        self,
        series: Mapping[Node, Node],
        weights: Node | None,
        totals: Mapping[Node, Node],
        *,
        standard: bool = False,
        mixed: Mixed | None = None,
        span: Span | None = None,
        count: int | None = None,
    ) -> None:
        self._series, self._weights, self._mixed = series, weights, mixed
        self._standard, self._span = standard, span
        self._count = _count(series) if count is None else count
        self.known: dict[Node, Node] = dict(totals)

    def of(self, results: Sequence[Node]) -> list[Node]:
        """Returns the sums of ``results``."""
        results = _without_calls(results)
        further = () if self._mixed is None else self._mixed.like
        moving = [*self._series, *further]
        products = {} if self._span is None else products_of(results, self._span)
        plan = _Plan(results, moving, list(self.known), products, enters=self._count > 1)
        stacked = self._compute_each(plan)
        if plan.products:
            self._sum_products(plan.products)
        for node in plan.order:
            if node in plan.constant:
                self.known[node] = self._times(node)
            elif node in plan.scaled:
                core, factor = plan.scaled[node]
                self.known[node] = get("multiply")(self.known[core], factor)
            elif node in plan.linear:
                self.known[node] = _of_sums(node, plan.linear[node], self.known)
            elif node in plan.inside:
                self._enter(plan.inside[node], stacked)
        return [self.known[one] for one in results]

    def _compute_each(self, plan: "_Plan") -> dict[Node, Node]:
        """Computes the sums of values for each direction, and returns those that stay stacked."""
        each, whole = list(dict.fromkeys(plan.each)), list(dict.fromkeys(plan.whole))
        if self._standard:
            sums, stacked = _of_basis(each, whole, self._series)
        else:
            series = self._series
            if self._mixed is not None and self._count > 1:
                series = _mixed_series([*each, *whole], series, self._mixed)
            if self._span is not None:
                series = _spanned_series([*each, *whole], series, self._span)
            sums, stacked = _of_series(each, whole, series, self._weights)
        self.known.update(zip(each, sums, strict=True))
        return dict(zip(whole, stacked, strict=True))

    def _sum_products(self, products: Mapping[Node, int]) -> None:
        """Computes the sums of products with the input at a place: see ``Span``."""
        assert self._span is not None
        span = self._span
        others = list(dict.fromkeys(_input(node, i) for node, i in products.items()))
        column = placeholder("column", VarType((self._count,), span.matrix.type.dtype))
        inner = _Sums(self._series, column, {}, span=span._replace(degree=None))
        sums = dict(zip(others, inner.of(others), strict=True))
        summed = [_of_sums(node, (i,), sums) for node, i in products.items()]
        columns = get("permute_dims")(span.matrix, axes=(1, 0))
        if self._weights is not None:
            columns = get("multiply")(columns, _cast(self._weights, columns))
        totals = sum_over_directions(summed, {**span.series, column: columns})
        self.known.update(zip(products, totals, strict=True))

    def _times(self, node: Node) -> Node:
        """Returns the sum of a value that is the same for each direction."""
        if self._weights is None:
            scaled: Node = get("scale")(node, scale=float(self._count))
            return scaled
        total = get("sum")(_cast(self._weights, node))
        product: Node = get("multiply")(node, total)
        return product

    def _enter(self, inside: "_Inside", stacked: Mapping[Node, Node]) -> None:
        """Computes the sums of the results of a ``vmap`` inside of its body.

        A sum over directions of an array of slices is the array of sums over directions.
        """
        if inside.selected[0] in self.known:
            return
        slices, known = dict[Node, Node](), dict[Node, Node]()
        for parameter, operand, mapped in inside.operands():
            value = operand
            if operand in inside.moving:
                value = stacked[operand] if operand in inside.whole else self.known[operand]
            if mapped:
                if operand in inside.whole:  # slices come first, and directions after them
                    axes = (1, 0, *range(2, value.ndim))
                    value = get("permute_dims")(value, axes=axes)
                type = VarType(value.type.shape[1:], value.type.dtype)
                slices[stand_in := placeholder("slice", type)] = value
                value = stand_in
            known[parameter] = value
        series = {one: known.pop(one) for one in inside.parameters(inside.whole)}
        totals = {one: known.pop(one) for one in inside.parameters(inside.summed)}
        results = [inside.body.results[one.index] for one in inside.selected]
        sums = _Sums(series, self._weights, totals, count=self._count)
        sums_of_slices = over_directions(sums.of(substitute(results, known)), slices)
        self.known.update(zip(inside.selected, sums_of_slices, strict=True))


def reads_totals_alone(
    results: Sequence[Node], series: Collection[Node], totals: Collection[Node]
) -> bool:
    """Whether the sums of ``totals`` suffice for the sums of ``results``.

    They do not if a value that depends on them is computed for each direction.
    """
    plan = _Plan(_without_calls(results), series, totals)
    return set(totals).isdisjoint(topological(plan.each))


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
        whole: those whose values for each direction are needed, and not their sum.
        products: those that are products, and the place of the input of highest degree.
        inside: results of ``vmap`` whose sums are taken in its body.
    """

    def __init__(
        self,
        results: Sequence[Node],
        series: Collection[Node],
        totals: Collection[Node],
        products: Mapping[Node, int] | None = None,
        *,
        enters: bool = True,
    ) -> None:
        nodes = topological(results)
        self._totals, self._enters, self._products = totals, enters, products or {}
        self._moving = reaching(nodes, [*series, *totals])
        self.order: list[Node] = []
        self.constant: set[Node] = set()
        self.linear: dict[Node, Places] = {}
        self.scaled: dict[Node, tuple[Node, Node]] = {}
        self.each: list[Node] = []
        self.whole: list[Node] = []
        self.products: dict[Node, int] = {}
        self.inside: dict[Node, _Inside] = {}
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
        if self._enters and _is_plain_vmap(node.source):
            return self._enter(node)
        if node in self._products:
            self.products[node] = self._products[node]
            return []
        places = linear_places(node, self._moving)
        if places is None:
            self._compute_each(node)
            return []
        self.linear[node] = places
        return [_input(node, i) for i in places]

    def _enter(self, node: Node) -> list[Node]:
        """Plans a result of a ``vmap``; returns the operands whose sums suffice."""
        source = node.source
        inside = next((one for one in self.inside.values() if one.source is source), None)
        if inside is None:
            inside = _Inside(source, self._moving)
        inside.selected.append(node)
        self.inside[node] = inside
        self.whole += inside.whole
        return inside.summed

    def _compute_each(self, node: Node) -> None:
        """Plans ``node`` for each direction, without factors that are the same for all of them."""
        factor: Node | None = None
        core = node
        if is_product(node):
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
        if node.types != like.types:
            return None
        parts = summands(node) or []
        if len({one for _, one in parts}) == 1 and parts[0][1].types == like.types:
            return parts[0][1], constant(float(sum(number for number, _ in parts)), like.type)
        if is_product(node):
            for i, j in ((0, 1), (1, 0)):
                moving, fixed = _input(node, i), _input(node, j)
                if fixed not in self._moving and moving.types == like.types:
                    return moving, fixed
        return None


class _Inside:
    """A ``vmap`` that depends on the direction, whose results are summed in its body.

    Attributes:
        source: its node.
        body: its body.
        selected: its results that are summed.
        moving: its operands that depend on the direction.
        whole: those of which the values for each direction are needed.
        summed: the others, whose sums suffice.
    """

    def __init__(self, source: Node, moving: set[Node]) -> None:
        self.source = source
        self.body = _vmap_body(source)
        self.selected: list[Node] = []
        self.moving = dict.fromkeys(one for _, one, _ in self.operands() if one in moving)
        self.summed = [one for one in self.moving if self._is_linear_in(one)]
        self.whole = [one for one in self.moving if one not in self.summed]

    def operands(self) -> list[tuple[Node, Node, bool]]:
        """Returns each parameter with its operand, and whether it is mapped."""
        assert isinstance(self.source.op, Operator)
        n_mapped = self.source.op.attribute_dict(self.source.attributes)["n_mapped"]
        operands = [one for one in self.source.inputs[2:] if one is not None]
        pairs = zip(self.body.parameters, operands, strict=True)
        return [(one, operand, i < n_mapped) for i, (one, operand) in enumerate(pairs)]

    def parameters(self, operands: Collection[Node]) -> list[Node]:
        """Returns the parameters that stand for ``operands``."""
        return [one for one, operand, _ in self.operands() if operand in operands]

    def _is_linear_in(self, operand: Node) -> bool:
        others = [one for one in self.moving if one is not operand]
        return reads_totals_alone(
            self.body.results, self.parameters(others), self.parameters([operand])
        )


def _is_plain_vmap(node: Node) -> bool:
    """Whether ``node`` is a ``vmap`` whose body draws no numbers and updates no state."""
    if not isinstance(node.op, Operator) or node.op.family is not get("vmap"):
        return False
    body = node.op.attribute_dict(node.attributes)["body"]
    return isinstance(body, GraphBody) and not body.keys and not body.updating


def _vmap_body(node: Node) -> GraphBody:
    assert isinstance(node.op, Operator)
    body: GraphBody = node.op.attribute_dict(node.attributes)["body"]
    return body


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
    result: Node = Node.emitter.emit(node.op, inputs, node.attributes, None)
    return with_left(result, places[0]) if len(places) == 1 else result


def _of_series(
    values: Sequence[Node],
    whole: Sequence[Node],
    series: Mapping[Node, Node],
    weights: Node | None,
) -> tuple[list[Node], list[Node]]:
    """Returns the sums of ``values``, and the values of ``whole`` for each direction."""
    if not values and not whole:
        return [], []
    if _count(series) > 1:
        stacked = over_directions([*values, *whole], series)
        sums = [_summed(one, weights) for one in stacked[: len(values)]]
        return sums, stacked[len(values) :]
    only = {one: get("reshape")(ways, shape=one.type.shape) for one, ways in series.items()}
    values_at = substitute(values, only)
    if weights is None:
        return values_at, []
    factor = get("reshape")(weights, shape=())
    return [get("multiply")(one, _cast(factor, one)) for one in values_at], []


def _summed(stacked: Node, weights: Node | None) -> Node:
    """Returns the weighted sum along the first axis."""
    count, *shape = stacked.type.shape
    if weights is not None and weights.op is VARIABLE:
        return _contracted(weights, stacked)  # with several vectors of weights: a matrix product
    if weights is not None:
        aligned = get("reshape")(_cast(weights, stacked), shape=(count, *(1,) * len(shape)))
        stacked = get("multiply")(stacked, aligned)
    total: Node = get("sum")(stacked, axis=0)
    return total


def _contracted(weights: Node, stacked: Node) -> Node:
    axes = string.ascii_lowercase[: stacked.ndim - 1]
    cast = _cast(weights, stacked)
    total: Node = get("einsum")(cast, stacked, equation=f"Z,Z{axes}->{axes}")
    return total


def _mixed_series(
    values: Sequence[Node], series: Mapping[Node, Node], mixed: Mixed
) -> Mapping[Node, Node]:
    """Returns what ``values`` read of each kind of placeholder alone, for each direction.

    A value that depends on placeholders of ``mixed`` is linear in them: it is a combination of the
    values along the directions of ``series``, which are computed once.
    """
    order = topological(values)
    own, others = reaching(order, series), reaching(order, mixed.like)
    read = residuals(values, lambda one: (one in own) != (one in others))
    border = [one for one in read if one in own or one in others]
    twins = substitute([one for one in border if one in others], mixed.like)
    each = list(dict.fromkeys([*(one for one in border if one in own), *twins]))
    stacked = dict(zip(each, over_directions(each, series), strict=True))
    twin = dict(zip([one for one in border if one in others], twins, strict=True))
    return {
        one: stacked[one] if one in own else _combined(mixed.matrix, stacked[twin[one]])
        for one in border
    }


def _spanned_series(
    values: Sequence[Node], series: Mapping[Node, Node], span: Span
) -> Mapping[Node, Node]:
    """Returns the linear values that ``values`` read, for each direction."""
    border = linear_values(values, series)
    computed = [one for one in border if one not in series]
    stacked = dict(zip(computed, over_directions(computed, span.series), strict=True))
    return {
        one: series[one] if one in series else _combined(span.matrix, stacked[one])
        for one in border
    }


def _combined(matrix: Node, stacked: Node) -> Node:
    axes = string.ascii_lowercase[: stacked.ndim - 1]
    cast = _cast(matrix, stacked)
    combined: Node = get("einsum")(cast, stacked, equation=f"YZ,Z{axes}->Y{axes}")
    return combined


def _of_basis(
    values: Sequence[Node], whole: Sequence[Node], series: Mapping[Node, Node]
) -> tuple[list[Node], list[Node]]:
    """Computes ``_of_series`` over the standard basis, with tangents held as rows."""
    ((direction, directions),) = series.items()
    along = placeholder("along", direction.type)
    order = topological([*values, *whole])
    blocks = Blocks(order, reaching(order, [direction]), direction, along)
    by_terms = {one: terms for one in values if (terms := blocks.terms_of(one)) is not None}
    rest = [one for one in values if one not in by_terms]
    border = _border([*rest, *whole], blocks)
    parts = [part for one in border for part in blocks.needed(one)]
    products = [term.product for terms in by_terms.values() for term in terms]
    each = list(dict.fromkeys([*parts, *products]))
    computed_parts = over_directions(each, {along: array(blocks.basis())})
    stacked = dict(zip(each, computed_parts, strict=True))
    spread = {one: blocks.spread(one, stacked) for one in border}
    computed, kept = _of_series(rest, whole, {direction: directions, **spread}, None)
    sums = dict(zip(rest, computed, strict=True))
    for one, terms in by_terms.items():
        sums[one] = _sum_of_terms(terms, stacked, one)
    return [sums[one] for one in values], kept


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
    stacked = get("vmap")(
        *series.values(), *outside, training=flag, body=body, n_mapped=len(series)
    )
    return list(stacked) if isinstance(stacked, tuple) else [stacked]


def _is_outside(node: Node, moving: set[Node]) -> bool:
    """Whether ``node`` is an operand of the body: it is the same for each direction."""
    if node.op is CONSTANT or node.op is TRAINING:
        return False
    return node.source not in moving and node not in moving
