"""Directions that are combinations of fewer ones, along which values of low degree are computed."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from symop.graph.algebra import is_product, summands
from symop.graph.nodes import Node, residuals, topological
from symop.passes.linearity import degrees


class Span(NamedTuple):
    """Directions ``w_k = sum_i m[k, i] e_i`` as combinations of fewer directions ``e_i``.

    A value that is linear in the direction is computed for each ``e_i`` alone. So is the sum of a
    product of such a value ``a`` and another one ``b``:
    ``sum_k c_k a(w_k) b(w_k) = sum_i a(e_i) sum_k c_k m[k, i] b(w_k)``. Of ``b``, only sums are
    needed here, one for each ``e_i``.

    Attributes:
        series: for each placeholder of a direction the ``e_i``, stacked along a first axis.
        matrix: ``m``.
        degree: products of this degree in the direction are summed in this way; none if it is None.
    """

    series: Mapping[Node, Node]
    matrix: Node
    degree: int | None


def products_of(results: Sequence[Node], span: Span) -> dict[Node, int]:
    """Returns the products of the degree of ``span`` of a linear value and another one.

    With each comes the place of the other one among its inputs.
    """
    order = topological(results)
    degree = {} if span.degree is None else degrees(order, span.series)
    products: dict[Node, int] = {}
    for node in order:
        places = {degree[one]: i for i, one in enumerate(node.inputs) if one in degree}
        if degree.get(node) == span.degree == max(places, default=0) + 1 and len(places) == 2:
            products[node] = places[max(places)]
    return products


def linear_values(values: Sequence[Node], directions: Collection[Node]) -> list[Node]:
    """Returns the values linear in the direction that ``values`` read, without their factors."""
    degree = degrees(topological(values), directions)
    return residuals(values, lambda one: degree.get(one) == 1 and not _is_scaled(one, degree))


def _is_scaled(node: Node, degree: Mapping[Node, int]) -> bool:
    """Whether a linear value is another one of its type, times a factor."""
    own = {one for one in node.inputs if one is not None and one in degree}
    scales = is_product(node) or summands(node) is not None
    return scales and len(own) == 1 and own.pop().types == node.types
