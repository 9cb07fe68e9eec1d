"""Gradients of what was recorded and did not run yet: they are recorded, too, and run with it.

That is the usual case: a record, a backward pass, and all of it one compiled program. Where a
gradient leads to other parts of the tape, or somewhere into Python, ``tape`` walks there instead.
"""

from collections.abc import Sequence

import jax

from registry.errors import SymopError
from registry.types import VarKind
from symop.alone import ApartError, TracedError
from symop.differentiate import ones, pullback
from symop.entries import NEVER
from symop.graph import topological
from symop.ndarray import NDArray
from symop.segments import Segment, local, still
from symop.steps import Step, tree

Pairs = Sequence[tuple[NDArray, NDArray | None]]
Found = list[tuple[NDArray, NDArray]]


def gradients(
    heads: Pairs, targets: Sequence[NDArray] | None, *, create_graph: bool, retain_graph: bool
) -> Found | None:
    """Arrays and their gradients, which did not run yet; None where they must be had otherwise.

    Args:
        heads: arrays, each with its cotangent; None for ones.
        targets: arrays whose gradients are wanted; None for all that have one of their own.
        create_graph: whether the gradients can be differentiated.
        retain_graph: whether there may be another backward pass.
    """
    segment = _segment_of(heads)
    if segment is None:
        return None
    own = {id(one): one for one in segment.sources if isinstance(one, NDArray)}
    arrays = list(own.values()) if targets is None else list(targets)
    by = tuple([place for one in arrays if (place := _place(one, segment, own)) is not None])
    if len(by) < len(arrays):
        return None
    try:
        along = tuple([None if one is None else _leaf(one, segment) for _, one in heads])
    except (TracedError, ApartError):
        return None
    places = tuple([head._index for head, _ in heads])
    how = places, along, by, create_graph, targets is None
    key = "gradient", *how
    step = segment.step.children.get(key)
    if step is None:
        with jax.enable_x64(segment.x64):
            step = segment.step.children[key] = _step(segment, *how)
        tree.count += 1
    if not step.by or not segment.closed:
        return None
    of_place = dict(zip(by, arrays, strict=True))
    made = segment.take(step, NDArray)
    if not create_graph:
        for one in made:
            one._link = NEVER
    if not retain_graph:
        segment.spent.append(places)
    return [(of_place[i], one) for i, one in zip(step.by, made, strict=True)]


def _segment_of(heads: Pairs) -> Segment | None:
    """The segment of all heads, if it is one of this thread's and no other part is behind it."""
    segment = heads[0][0]._segment if heads else None
    if segment is None or not segment.taped or not segment.closed or segment.spent:
        return None
    if segment is not local.state.segment and segment is not local.state.parked:
        return None
    here = all(one._segment is segment and one._link is None for one, _ in heads)
    return segment if here else None


def _place(array: NDArray, segment: Segment, own: dict[int, NDArray]) -> int | None:
    """Where an array stands in the segment through which a gradient by it flows."""
    if array._segment is segment:
        return array._index if array._link is None else None
    return segment.places.get(id(array)) if id(array) in own else None


def _leaf(array: NDArray, segment: Segment) -> int:
    return array._index if array._segment is segment else segment.leaf(array)


def _step(
    segment: Segment,
    heads: tuple[int, ...],
    along: tuple[int | None, ...],
    by: tuple[int, ...],
    create_graph: bool,
    every: bool,
) -> Step:
    """The step that takes the gradients; it leads nowhere where they must be had otherwise."""
    nodes = segment.nodes()
    ends = [nodes[i] for i in heads]
    seeds = [
        ones(end.type.strong()) if i is None else nodes[i]
        for end, i in zip(ends, along, strict=True)
    ]
    order = set(topological(ends))
    reached = tuple([i for i in by if nodes[i] in order])
    nowhere = Step(segment.step, ())
    if not every and reached != by:
        return nowhere  # and the tape says which is not connected
    try:
        found = pullback(ends, [nodes[i] for i in reached], seeds)
    except SymopError:
        return nowhere  # and the tape says where it happened
    arrived = [one for one in found if one is not None]
    if not all(one.type.kind is VarKind.LOD_TENSOR for one in arrived):
        return nowhere
    if len(arrived) < len(found) or (
        create_graph and not segment.moving(arrived).issuperset(arrived)
    ):
        return nowhere  # the tape keeps what a gradient is formally a function of
    added = tuple(arrived if create_graph else map(still, arrived))
    step = Step(segment.step, added, cut=() if create_graph else added)
    step.by = reached
    return step
