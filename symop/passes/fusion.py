"""Fusion of loops: a loop that reads, step by step, what another one writes joins it.

The tangent of a loop is a loop over the series of residuals that the first one writes, and the
second tangent is a third loop. In a graph they stay apart, so that each derivative shares the loops
of lower orders. When the graph is lowered, one loop takes their place: it needs no series between
them, computes what their bodies have in common once, and is compiled in less time than several.

Loops of equal length and direction are fused as long as the graph has no cycles with the fused loop
as one node. A loop that also reads the final carry of another, its whole series, or what the graph
computes from these, stays apart from it. So do loops with costly steps that read nothing in common.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from registry.operator.bodies import bodies_of
from registry.operator.operator import Operator
from registry.ops.control_flow.loop_gradients import Layout
from registry.types import VarKind, VarType
from registry.var import Attributes
from symop.graph.emission import apply, deriving
from symop.graph.nodes import CONSTANT, Node, copied_origin, placeholder, topological
from symop.graph.policies import scope_of
from symop.graph.rewriting import Images, substitute
from symop.regions.bodies import GraphBody, body_of

_FIXED = {"scan": 2, "scan_prefix": 3}
"""The loops that are fused, and the number of their inputs before the operands."""


def fuse_loops(roots: Sequence[Node]) -> list[Node]:
    """Returns ``roots`` with fused loops, also in the bodies of control flow."""
    order = topological(roots)
    if not any(bodies_of(node.attributes) for node in order if isinstance(node.op, Operator)):
        return list(roots)
    loops = [loop for node in order if (loop := _loop_of(node)) is not None]
    groups = [one for one in _Grouping(order, loops).groups() if len(one) > 1]
    return _fused_inside(_rebuilt(roots, order, groups) if groups else roots)


class _Loop(NamedTuple):
    """A call of a loop that may be fused.

    Attributes:
        node: the call.
        fixed: the inputs before the operands: random key, training flag and, for a prefix, the
            number of steps.
        operands: the carries, series and constants.
        layout: the roles of the operands and results.
        options: the attributes that are not part of the layout.
        setting: what fused loops have in common.
    """

    node: Node
    fixed: tuple[Node | None, ...]
    operands: tuple[Node, ...]
    layout: Layout
    options: dict[str, Any]
    setting: tuple[Any, ...]

    @property
    def body(self) -> GraphBody:
        """The step."""
        assert isinstance(self.layout.body, GraphBody)
        return self.layout.body

    @property
    def carries(self) -> tuple[Node, ...]:
        """The operands that are carries."""
        return self.operands[: self.layout.n_carry]

    @property
    def series(self) -> tuple[Node, ...]:
        """The operands that are series."""
        return self.operands[self.layout.n_carry :][: self.layout.n_xs]

    @property
    def consts(self) -> tuple[Node, ...]:
        """The operands that are constants."""
        return self.operands[self.layout.n_carry + self.layout.n_xs :]

    def writes(self, index: int) -> bool:
        """Whether the result at ``index`` is a series, whose slices have the type of the step's."""
        type = self.body.results[index].type
        return index in self.layout.results and type.kind is VarKind.LOD_TENSOR and not type.weak


def _loop_of(node: Node) -> _Loop | None:
    """Returns the loop that ``node`` runs, unless it is none or draws random numbers."""
    family = _family(node)
    if family is None:
        return None
    options = dict(family.attribute_dict(node.attributes))
    layout = Layout(*(options.pop(name) for name in ("body", "n_carry", "n_xs", "n_sums")))
    body = layout.body
    if not isinstance(body, GraphBody) or body.draws or body.updating:
        return None
    del options["use_key"]
    count = _FIXED[family.name]
    fixed = node.inputs[:count]
    operands = tuple(one for one in node.inputs[count:] if one is not None)
    setting = (family, fixed[1:], tuple(options.items()), scope_of(node))
    return _Loop(node, fixed, operands, layout, options, setting)


def _family(node: Node) -> Operator | None:
    if not isinstance(node.op, Operator) or node.op.family is None:
        return None
    return node.op.family if node.op.family.name in _FIXED else None


# Groups of loops ---------------------------------------------------------------------------------


class _Group(NamedTuple):
    """Loops that are fused. A set of loops is an integer with the bits of their numbers.

    Attributes:
        members: the loops of the group.
        needs: the loops on which these depend, except for series of the group.
    """

    members: int
    needs: int


class _Grouping:
    """The groups of the loops of a graph, each joined as early as the graph allows."""

    def __init__(self, order: Sequence[Node], loops: Sequence[_Loop]) -> None:
        self._loops = loops
        self._groups: list[_Group] = []
        self._number = {loop.node: i for i, loop in enumerate(loops)}
        self._needs: dict[Node, int] = {}
        for node in order if loops else ():
            number = self._number.get(node)
            if number is None:
                self._needs[node] = self._needed(node.operands)
            else:
                self._needs[node] = 1 << number
                self._join(number)

    def groups(self) -> list[list[_Loop]]:
        """Returns the loops of each group, in the order of the graph."""
        distinct = dict.fromkeys(group.members for group in self._groups)
        return [[one for i, one in enumerate(self._loops) if bits >> i & 1] for bits in distinct]

    def _needed(self, nodes: Collection[Node | None]) -> int:
        """Returns the loops on which ``nodes`` depend through no other loop."""
        result = 0
        for node in nodes:
            result |= 0 if node is None else self._needs[node]
        return result

    def _join(self, number: int) -> None:
        """Makes a group of a loop and of those groups that write what it reads."""
        loop = self._loops[number]
        writers = [self._writer(loop, one) for one in loop.series]
        rest = [one for one, at in zip(loop.series, writers, strict=True) if at is None]
        needs = self._needed([*loop.fixed, *loop.carries, *loop.consts, *rest])
        links = {at for at in writers if at is not None}
        group = _Group(1 << number, needs)
        self._groups.append(group)
        for at in sorted(links):
            group = self._joined(group, self._groups[at], links)
        apart = _bits(links) & ~group.members
        group = group._replace(needs=group.needs | apart)
        for i in range(len(self._groups)):
            if group.members >> i & 1:
                self._groups[i] = group

    def _writer(self, loop: _Loop, value: Node) -> int | None:
        """Returns the number of a similar loop that writes the series ``value``, or None."""
        at = self._number.get(value.source)
        if at is None:
            return None
        other = self._loops[at]
        alike = other.setting == loop.setting and _pays(other, loop)
        return at if alike and other.writes(value.index) else None

    def _joined(self, one: _Group, other: _Group, links: Collection[int]) -> _Group:
        """Returns the union of two groups, or the first one if the union were on a cycle."""
        members, needs = one.members | other.members, one.needs | other.needs
        outside = needs | _bits(links) & ~members
        return one if self._closed(outside) & members else _Group(members, needs)

    def _closed(self, loops: int) -> int:
        """Returns ``loops``, and the loops on which their groups depend."""
        seen, waiting = 0, loops
        while waiting:
            group = self._groups[waiting.bit_length() - 1]
            seen |= group.members
            waiting = (waiting | group.needs) & ~seen
        return seen


def _pays(one: _Loop, other: _Loop) -> bool:
    """Whether two loops are faster as one: they are cheap, or read the same values.

    The tangent of a matrix product reads the same matrix. The layers of a network that read
    matrices of their own have nothing in common; in one loop, XLA runs their products no faster.
    """
    if not (one.body.costly or other.body.costly):
        return True
    read = {*other.series, *other.consts}
    return any(value in read for value in (*one.series, *one.consts) if value.op is not CONSTANT)


def _bits(numbers: Collection[int]) -> int:
    return sum(1 << one for one in numbers)


# Fused loops -------------------------------------------------------------------------------------


def _rebuilt(
    roots: Sequence[Node], order: Sequence[Node], groups: Sequence[Sequence[_Loop]]
) -> list[Node]:
    """Returns ``roots`` with one loop for each group."""
    group_of = {loop.node: group for group in groups for loop in group}
    read = _read(roots, order, group_of)
    image = Images()
    for node in _arranged(roots, group_of):
        group = group_of.get(node)
        if group is None:
            image.rebuild(node)
            continue
        with copied_origin(node.origin):
            image.update(_Fused(group).results(read, image))
    return [image.value(one) for one in roots]


def _read(
    roots: Sequence[Node], order: Sequence[Node], group_of: Mapping[Node, Sequence[_Loop]]
) -> list[Node]:
    """Returns the values of loops in groups that something outside the group reads."""
    read = dict.fromkeys(one for one in roots if one.source in group_of)
    for node in order:
        own = group_of.get(node)
        for one in node.operands:
            theirs = group_of.get(one.source)
            if theirs is not None and theirs is not own and one.source is not node:
                read[one] = None
    return list(read)


def _arranged(roots: Sequence[Node], group_of: Mapping[Node, Sequence[_Loop]]) -> list[Node]:
    """Returns the nodes in topological order, the last loop of each group in place of the group."""
    order: list[Node] = []
    seen: set[Node] = set()
    for root in roots:
        stack: list[tuple[Node, bool]] = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
                continue
            group = group_of.get(node)
            node = node if group is None else group[-1].node
            if node not in seen:
                seen.add(node)
                ahead = node.operands if group is None else _inputs(group)
                stack.append((node, True))
                stack += [(one, False) for one in reversed(ahead) if one not in seen]
    return order


def _inputs(group: Sequence[_Loop]) -> list[Node]:
    """Returns the inputs of a group that are not its own series."""
    own = {loop.node for loop in group}
    return [one for loop in group for one in loop.node.operands if one.source not in own]


class _Fused:
    """The loop of a group.

    Its carries and sums are those of the group; equal series and equal constants are one.
    """

    def __init__(self, group: Sequence[_Loop]) -> None:
        """Builds the results of all steps, as functions of new parameters."""
        self._group = group
        self._carries: list[Node] = []
        self._series: dict[tuple[Node, VarType], Node] = {}
        self._consts: dict[tuple[Node, VarType], Node] = {}
        self._values: dict[Node, list[Node]] = {}
        with deriving():
            for loop in group:
                self._values[loop.node] = substitute(loop.body.results, self._taken(loop))

    def results(self, read: Sequence[Node], image: Images) -> dict[Node, Node]:
        """Returns the images of the values of the group among ``read``."""
        own = [one for one in read if one.source in self._values]
        series = {
            (one.source, one.index) for one in own if one.index in self._layout(one.source).results
        }
        carried = [(loop.node, j) for loop in self._group for j in loop.layout.carried]
        summed = [(loop.node, j) for loop in self._group for j in loop.layout.summed]
        outputs = [*carried, *summed, *sorted(series, key=lambda one: (one[0].serial, one[1]))]
        parameters = [*self._carries, *self._series.values(), *self._consts.values()]
        body = body_of(parameters, [self._values[node][j] for node, j in outputs], ())
        layout = Layout(body, len(carried), len(self._series), len(summed))
        values = dict(zip(outputs, self._run(layout, image), strict=True))
        return {one: values[one.source, one.index] for one in own}

    def _layout(self, node: Node) -> Layout:
        return next(loop.layout for loop in self._group if loop.node is node)

    def _run(self, layout: Layout, image: Images) -> Sequence[Node]:
        last = self._group[-1]
        operands = [one for loop in self._group for one in loop.carries]
        operands += [one for one, _ in (*self._series, *self._consts)]
        _, training, *steps = (None if one is None else image.value(one) for one in last.fixed)
        results: Sequence[Node] = last.setting[0](
            *steps,
            *map(image.value, operands),
            training=training,
            **layout._asdict(),
            **last.options,
        )
        return results

    def _taken(self, loop: _Loop) -> dict[Node, Node]:
        """Returns what the fused loop has for the parameters of the body of ``loop``."""
        layout = loop.layout
        taken: dict[Node, Node] = {}
        for i, parameter in enumerate(loop.body.parameters):
            operand, type = loop.operands[i], loop.body.inputs[i]
            if i in layout.carried:
                self._carries.append(placeholder("c", type))
                taken[parameter] = self._carries[-1]
            elif i in layout.series and operand.source in self._values:
                taken[parameter] = self._values[operand.source][operand.index]
            else:
                known = self._series if i in layout.series else self._consts
                taken[parameter] = known.setdefault((operand, type), placeholder("x", type))
        return taken


# Bodies ------------------------------------------------------------------------------------------


def _fused_inside(roots: Sequence[Node]) -> list[Node]:
    """Returns ``roots`` with fused loops in the bodies of their calls."""
    order = topological(roots)
    fused = {node: own for node in order if (own := _with_bodies_fused(node)) is not None}
    if not fused:
        return list(roots)
    image = Images()
    for node in order:
        if node not in fused:
            image.rebuild(node)
            continue
        assert isinstance(node.op, Operator)
        with copied_origin(node.origin):
            image[node] = apply(node.op, image.inputs(node), fused[node], node.name)
    return [image.value(one) for one in roots]


def _with_bodies_fused(node: Node) -> Attributes | None:
    """Returns the attributes of a call with fused loops in its bodies; None if there are none."""
    if not isinstance(node.op, Operator):
        return None
    deep = [one for one in bodies_of(node.attributes) if one.depth > 1]
    bodies = {one: one.rewritten(fuse_loops) for one in deep if isinstance(one, GraphBody)}
    if all(one is new for one, new in bodies.items()):
        return None
    return tuple(
        bodies.get(one, one) if isinstance(one, GraphBody) else one for one in node.attributes
    )
