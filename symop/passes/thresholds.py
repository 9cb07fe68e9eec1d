"""Comparisons of a rectified value with zero, made with the value before.

``relu(x) > 0`` is ``x > 0``, also for NaN. The gradient of ``relu`` compares its result, which the
next operator keeps anyway. XLA's CPU backend fuses the comparison and computes the result for it
once more, by a maximum, which LLVM takes for so expensive that it vectorizes the kernel across
rows: the kernel is compiled from five times as many instructions, and reads single numbers.
"""

from collections.abc import Sequence

import jax

from symop.graph.emission import named
from symop.graph.nodes import Node, by_age, copied_origin, topological
from symop.graph.policies import scope_of
from symop.graph.rewriting import Images
from symop.passes.replacements import call, name_of_operator


def compared_before(roots: Sequence[Node]) -> Sequence[Node]:
    """Returns ``roots``, whose types are known, without comparisons of rectified values.

    It rewrites graphs for the CPU only, and leaves the bodies of loops as they are.
    """
    if jax.default_backend() != "cpu":
        return roots
    order = topological(roots)
    before = {node: one for node in order if (one := _rectified(node)) is not None}
    if not before:
        return roots
    image = Images()
    for node in by_age(order):
        if node not in before:
            image.rebuild(node)
            continue
        with copied_origin(node.origin):
            new = call("greater", image.value(before[node]), image.value(node.operands[1]))
            image[node] = named(new, node.name)
    return [image.value(one) for one in roots]


def _rectified(node: Node) -> Node | None:
    """Returns ``x`` if ``node`` is ``relu(x) > 0``, else None."""
    if name_of_operator(node) != "greater":
        return None
    value, bound = node.operands
    if name_of_operator(value) != "relu" or bound.constant is None or bound.constant != 0:
        return None
    (x,) = value.operands
    # In a scope of rematerialization, its policy says which values are kept.
    return None if any(map(scope_of, (node, value, x))) else x
