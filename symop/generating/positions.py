"""Whether a graph computes each position of a sequence by itself.

If the axis of positions were split over devices, a call that combines positions would be one for
which the devices exchange data. So the shardings of the graph tell.
"""

from collections.abc import Callable, Mapping

from registry.errors import ArgumentError
from registry.jax_derivatives.calculus import program_of
from registry.operator.operator import Operator
from registry.shardings import Sharding
from registry.types import TRAINING_TYPE
from symop.graph.nodes import VARIABLE, Node, built_at, by_age, topological
from symop.planning.propagation import Collective, Walk

_AXIS = "positions"


def require_separate_positions(
    root: Node, tokens: str, may_combine: Callable[[Node], bool]
) -> None:
    """Checks that only calls that ``may_combine`` positions do.

    Args:
        root: a value of shape ``(batch, positions, ...)``, whose types are known.
        tokens: the name of the variable of shape ``(batch, positions)``.
        may_combine: whether a call may combine positions.

    Raises:
        ArgumentError: another call combines them, or may do so; the message names it.
    """
    splits: dict[Node, list[Sharding]] = {}
    for node in by_age(topological([root])):
        if node.is_selection:
            splits[node] = [splits[node.source][node.index]]
        elif node.op is VARIABLE and node.name == tokens:
            splits[node] = [(None, _AXIS)]
            sizes = {_AXIS: node.type.shape[1]}
        elif isinstance(node.op, Operator) and any(map(_is_split(splits), node.operands)):
            splits[node] = _followed(node, splits, sizes, may_combine=may_combine(node))
        else:
            splits[node] = [()] * len(node.types or ())
    if splits[root][0] != (None, _AXIS):
        raise ArgumentError(
            "Generator: the result must have the positions of the tokens along axis 1, got shape "
            f"{root.type.shape}, whose positions do not follow from them{built_at(root.origin)}"
        )


def _is_split(splits: Mapping[Node, list[Sharding]]) -> Callable[[Node], bool]:
    return lambda node: any(splits[node])


def _followed(
    node: Node,
    splits: Mapping[Node, list[Sharding]],
    sizes: Mapping[str, int],
    *,
    may_combine: bool,
) -> list[Sharding]:
    assert isinstance(node.op, Operator)
    flag = node.op.training_index
    types = tuple(
        None if one is None else TRAINING_TYPE if i == flag else one.type
        for i, one in enumerate(node.inputs)
    )
    program = program_of(node.op, types, node.attributes)
    others = [splits[one][0] for i, one in enumerate(node.inputs) if one is not None and i != flag]

    combined: list[Collective] = []
    walk = Walk(program.jaxpr, others, sizes)
    for equation in program.jaxpr.eqns:
        walk.follow(equation, combined.append)
    if (combined or walk.mixed) and not may_combine:
        raise ArgumentError(
            "Generator: each position must depend on earlier ones through causal attention alone, "
            f"got {node.op}, which combines positions{built_at(node.origin)}"
        )
    return [walk.of(one) for one in program.jaxpr.outvars]
