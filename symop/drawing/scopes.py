"""Scopes: forward operators grouped by their names, as name scopes and layers give them.

``block0_norm`` and ``block0_up_weight`` belong to the scope ``block0``. An operator without a name
follows what it reads: it belongs to the layer of its operands if they agree, and otherwise to the
scope of the operand that was built last. ``so.name_scope`` around its call comes first.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from registry.operator.operator import Operator
from symop.drawing.blocks import Block, leaf
from symop.drawing.boxes import Box
from symop.graph.nodes import CONSTANT, VARIABLE, Node

_SEPARATORS = re.compile(r"[._/:]+")


class Place(NamedTuple):
    """The place of an operator among scopes.

    Attributes:
        scope: the parts of the name of its scope.
        layer: the name of its layer within the scope, or an empty string.
    """

    scope: tuple[str, ...]
    layer: str = ""


def scoped(boxes: Sequence[Box]) -> list[Block]:
    """Returns blocks of forward operators by scope and layer; ``boxes`` are in order of age."""
    places: dict[Node, Place] = {}
    age = {box.node: i for i, box in enumerate(boxes)}
    uses = Counter(child for box in boxes for child in set(box.node.operands) if not child.inputs)
    for box in boxes:
        alone = all(uses[child] < 2 or child.op is CONSTANT for child in box.node.operands)
        places[box.node] = _named_place(box.node) or _followed(box.node, places, age, alone=alone)
    return _grouped([(places[box.node], box) for box in boxes], 0)


def _named_place(node: Node) -> Place | None:
    """Returns the place that the name of an operator tells, or those of its parameters."""
    if node.name is not None:
        return _place_of(node.name, node)
    names = [one.name for one in node.operands if one.op is VARIABLE and one.name is not None]
    known = {_place_of(name, node) for name in names}
    return known.pop() if len(known) == 1 and next(iter(known)).scope else None


def _place_of(name: str, node: Node) -> Place:
    """Splits a name; one that was generated for a layer, such as ``max_pool0``, stays whole."""
    own = node.op.name if isinstance(node.op, Operator) else ""
    generated = re.fullmatch(rf"(.*?)({re.escape(own)}\d*)", name, re.DOTALL) if own else None
    head, tail = generated.groups() if generated else ("", "")
    parts = [one for one in _SEPARATORS.split(head or ("" if tail else name)) if one]
    parts += [tail] if tail else []
    return Place(tuple(parts[:-1]), parts[-1]) if parts else Place((), name)


def local_name(name: str, node: Node) -> str:
    """Returns the last part of a name, which follows that of its scope."""
    return _place_of(name, node).layer


def _followed(node: Node, places: dict[Node, Place], age: dict[Node, int], *, alone: bool) -> Place:
    """Returns the place of an operator without a name; ``alone`` if no other reads its leaves."""
    prefix = node.origin.prefix if node.origin is not None else ""
    around = tuple(one for one in _SEPARATORS.split(prefix) if one)
    read = [one.source for one in node.operands if one.source in places]
    if not read:
        return Place(around)
    last = places[max(read, key=age.__getitem__)]
    place = last if alone and all(places[one] == last for one in read) else Place(last.scope)
    return place if not around or place.scope == around else Place(around)


# The tree of scopes ----------------------------------------------------------------------------

_Placed = tuple[Place, Box]


def _grouped(placed: Sequence[_Placed], depth: int) -> list[Block]:
    """Returns blocks of operators whose places agree up to ``depth``, in order of age.

    A scope or a layer is one stretch of the order: where another interrupts it, it would only hide
    how the two depend on each other.
    """
    blocks: list[Block] = []
    whole = _unbroken(placed, depth)
    for key, stretch in groupby(placed, key=lambda one: _key(one[0], depth, whole)):
        group = list(stretch)
        if key is None or len(group) == 1:
            blocks += [leaf(box) for _, box in group]
        elif key[0] == "layer":
            blocks.append(Block("layer", key[1], [leaf(box) for _, box in group]))
        else:
            blocks.append(_scope(key[1], _grouped(group, depth + 1)))
    return blocks


def _scope(name: str, children: list[Block]) -> Block:
    """Returns a scope; one that contains a single scope or layer is that, by its whole name."""
    if len(children) > 1:
        return Block("scope", name, children)
    (child,) = children
    child.name = f"{name}_{child.name}"
    return child


_Key = tuple[str, str]


def _key(place: Place, depth: int, whole: set[_Key]) -> _Key | None:
    """Returns the kind and name of the block at ``depth`` that contains a place.

    That is its scope, or else its layer; both must be in ``whole``.
    """
    keys = []
    if len(place.scope) > depth:
        keys.append(("scope", place.scope[depth]))
    if place.layer:
        keys.append(("layer", "_".join([*place.scope[depth:], place.layer])))
    return next((key for key in keys if key in whole), None)


def _unbroken(placed: Sequence[_Placed], depth: int) -> set[_Key]:
    """Returns the scopes and layers at ``depth`` that are one stretch of the order."""
    scopes = Counter(
        key for key, _ in groupby(place.scope[depth : depth + 1] for place, _ in placed)
    )
    layers = Counter(key for key, _ in groupby(place for place, _ in placed))
    whole = {("scope", key[0]) for key, count in scopes.items() if key and count == 1}
    for place, count in layers.items():
        if place.layer and count == 1:
            whole.add(("layer", "_".join([*place.scope[depth:], place.layer])))
    return whole
