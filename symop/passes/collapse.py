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

from collections.abc import Sequence

from registry.caches import memoized
from registry.jax_derivatives.calculus import is_linear
from registry.operator.attributes import typed_key
from registry.operator.operator import Operator
from registry.table import get
from registry.types import VarType
from registry.var import Attributes
from symop.graph.nodes import (
    CONSTANT,
    TRAINING,
    Node,
    constant,
    placeholder,
    reaching,
    residuals,
    topological,
    training_flag,
)
from symop.graph.rewriting import substitute
from symop.lowering.steps import random_keys
from symop.regions.bodies import body_of

Places = tuple[int, ...]


def sum_over_directions(results: Sequence[Node], direction: Node, directions: Node) -> list[Node]:
    """Returns the sums of ``results`` over the slices of ``directions`` as ``direction``.

    Args:
        results: values that may depend on ``direction``.
        direction: a placeholder.
        directions: the values that it takes, stacked along a first axis.
    """
    plan = _Plan(results, direction)
    each = list(dict.fromkeys(plan.each))
    sums = dict(zip(each, _sums_of(each, direction, directions), strict=True))
    count = float(directions.type.shape[0])
    for node in plan.order:
        if node in plan.constant:
            sums[node] = get("scale")(node, scale=count)
        elif node in plan.scaled:
            core, factor = plan.scaled[node]
            sums[node] = get("multiply")(sums[core], factor)
        elif node in plan.linear:
            sums[node] = _of_sums(node, plan.linear[node], sums)
    return [sums[one] for one in results]


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

    def __init__(self, results: Sequence[Node], direction: Node) -> None:
        nodes = topological(results)
        self._moving = reaching(nodes, [direction])
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
        if node not in self._moving:
            self.constant.add(node)
            return []
        places = self._linear_places(node)
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

    def _linear_places(self, node: Node) -> Places | None:
        """Returns the inputs in which ``node`` is jointly linear, all moving ones among them."""
        if not isinstance(node.op, Operator) or not node.op.single or node.op.stateful:
            return None
        moving = tuple(i for i, one in enumerate(node.inputs) if one in self._moving)
        floating = tuple(
            i for i, one in enumerate(node.inputs) if one is not None and one.type.differentiable
        )
        types = tuple(None if one is None else one.type for one in node.inputs)
        for places in dict.fromkeys((moving, floating)):
            if set(moving) <= set(places) and _is_linear(node.op, types, node.attributes, places):
                return places
        return None


@memoized(4096, key=typed_key)
def _is_linear(
    operator: Operator, types: tuple[VarType | None, ...], attributes: Attributes, places: Places
) -> bool:
    return is_linear(operator, types, attributes, places)


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
    return made


def _sums_of(values: Sequence[Node], direction: Node, directions: Node) -> list[Node]:
    """Returns the sums of ``values``, computed for each direction."""
    if not values:
        return []
    moving = reaching(topological(values), [direction])
    read = residuals(values, lambda one: one is direction or _is_outside(one, moving))
    outside = [one for one in read if one is not direction]
    inside = [placeholder(f"x{i}", one.type.strong()) for i, one in enumerate(outside)]
    results = substitute(values, dict(zip(outside, inside, strict=True)))
    body = body_of([direction, *inside], results, random_keys(topological(results)))
    reads_flag = any(one.op is TRAINING for one in topological(results))
    flag = training_flag() if reads_flag else False
    stacked = get("vmap")(directions, *outside, training=flag, body=body, n_mapped=1)
    return [get("sum")(one, axis=0) for one in stacked]


def _is_outside(node: Node, moving: set[Node]) -> bool:
    """Whether ``node`` is an operand of the body: it is the same for each direction."""
    if node.op is CONSTANT or node.op is TRAINING:
        return False
    return node.source not in moving and node not in moving
