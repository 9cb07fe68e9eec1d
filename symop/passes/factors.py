"""Products whose left factor is the one that depends on a direction.

A product of a batch of vectors and a matrix is one matrix product. ``jax.vmap`` makes the batch the
rows of the result if the vectors are the left factor, and its columns otherwise, which costs
transposes between layers: ``W @ x`` becomes ``x @ W.T``.
"""

from collections.abc import Collection, Sequence

from registry.table import get
from symop.graph.nodes import Node, by_age, reaching, topological
from symop.graph.rewriting import Images


def moving_left(results: Sequence[Node], until: Collection[Node]) -> list[Node]:
    """Returns ``results`` with products whose left factor is the one that depends on ``until``."""
    order = topological(results, until=until)
    moving = reaching(order, until)
    image = Images()
    for node in by_age(order):
        image.rebuild(node)
        places = [i for i, one in enumerate(node.inputs) if one in moving]
        if node in moving and node.op is get("einsum") and len(places) == 1:
            image[node] = with_left(image.value(node), places[0])
    return [image.value(one) for one in results]


def with_left(node: Node, place: int) -> Node:
    """Returns the product ``node`` of two factors with the one at ``place`` on the left."""
    if node.op is not get("einsum") or len(node.inputs) != 2:
        return node
    labels = labels_of_product(node)
    if labels is None:
        return node
    terms, out = labels
    left, right = terms[place], terms[1 - place]
    shared = [a for a in out if a in left and a in right]
    wanted = "".join([*shared, *(a for a in out if a not in right)])
    wanted += "".join(a for a in out if a not in left)
    if place == 0 and wanted == out:
        return node
    factors = node.inputs[place], node.inputs[1 - place]
    product: Node = get("einsum")(*factors, equation=f"{left},{right}->{wanted}")
    if wanted == out:
        return product
    permuted: Node = get("permute_dims")(product, axes=tuple(wanted.index(a) for a in out))
    return permuted


def labels_of_product(node: Node) -> tuple[list[str], str] | None:
    """Returns the labels of the axes of an ``einsum``: of its factors and of the result.

    None if it takes a diagonal, or has no explicit result.
    """
    (equation,) = node.attributes
    terms, arrow, out = str(equation).replace(" ", "").partition("->")
    split = terms.split(",")
    plain = bool(arrow) and terms.replace(",", "").isalpha()
    return (split, out) if plain and all(len(set(one)) == len(one) for one in split) else None
