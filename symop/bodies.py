"""Bodies of control flow: graphs over placeholders, which run, differentiate and are compared.

What a body draws is numbered when it is traced; its gradients keep the numbers, so that they draw
the same. Everything that is derived from a body is made once and kept by it.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from registry import bodies
from registry.attributes import identity_key
from registry.bodies import Body, Places, Pulled, Source, Types, settled
from registry.errors import ArgumentError, KindError, UnknownTypeError
from registry.operator import Operator
from registry.shapes import default_float
from registry.types import VarKind, VarType
from symop.barriers import leading
from symop.differentiate import carries_cotangent, loses, pullback, pushforward, zeros
from symop.emission import substitute
from symop.graph import (
    ARRAY,
    CONSTANT,
    DEFERRED,
    KEY,
    SELECT,
    TRAINING,
    VARIABLE,
    Node,
    Structure,
    as_node,
    built_at,
    placeholder,
    reaching,
    topological,
)
from symop.ignoring import adds_constants
from symop.lowering import Call, Schedule, bare, is_native, random_keys
from symop.policies import KEEP_ALL, is_costly
from symop.rules import with_rule

Again = Callable[[Node], bool]
"""Whether a gradient computes a value again in place of keeping it."""
_SMALL = 1024
"""Arrays of so many entries compare by what they hold, larger ones by identity."""
_FREE = (CONSTANT, ARRAY, TRAINING, KEY)
"""What costs nothing to have once more."""
_lock = threading.RLock()
_table: "WeakValueDictionary[Any, GraphBody]" = WeakValueDictionary()


class GraphBody(Body):
    """A body that is a graph from ``parameters`` to ``results``.

    Attributes:
        parameters: placeholders, one for each input.
        results: the outputs.
        keys: the random keys that it draws, in the order of their numbers; some may be unused.
        updating: whether it may hold operators that update a state, whose new value is a result.
    """

    def __init__(
        self,
        parameters: Sequence[Node],
        results: Sequence[Node],
        keys: Sequence[Node],
        order: Sequence[Node],
        *,
        updating: bool,
    ) -> None:
        """``body_of`` makes bodies, so that equal ones are one."""
        self.updating = updating
        self.parameters, self.results = tuple(parameters), tuple(results)
        self.keys = tuple(keys)
        self.inputs = tuple(one.type.strong() for one in self.parameters)
        self.outputs = tuple(map(_output_type, self.results))
        self.draws = any(node.op is KEY for node in order)
        applied = [node for node in order if isinstance(node.op, Operator)]
        self.native = all(map(is_native, applied))
        self.costly = any(map(is_costly, applied))
        self._memo: dict[Any, Any] = {}

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, types)) for types in (self.inputs, self.outputs))
        return f"<body ({inputs}) -> ({outputs})>"

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        # JAX's default float tells its x64 flag, on which types inside may depend.
        found = self._memo.get((key, default_float()))
        return self._memo.setdefault((key, default_float()), make()) if found is None else found

    def _derived(self, parameters: Sequence[Node], results: Sequence[Node]) -> "GraphBody":
        """A body of nodes of this one and of what was made of them."""
        return body_of(parameters, results, self.keys, updating=self.updating)

    # Running

    def run(self, values: Sequence[Any], *, key: Any = None, training: bool = False) -> list[Any]:
        """The outputs, each of its exact type."""
        schedule = self._once(("run", training), lambda: self._schedule(training))
        results = schedule(values, key)[0]
        return [settled(one, type) for one, type in zip(results, self.outputs, strict=True)]

    def _schedule(self, training: bool) -> Schedule:
        return Schedule(
            self.results,
            self.parameters,
            _native_bare,
            training=training,
            order=topological(self.results, until=self.parameters),
            keys=self.keys,
        )

    # Derivatives

    def moved(self, active: Places) -> Places:
        """The outputs on a way of differentiable values from the inputs in ``active``."""
        found: Places = self._once(("moved", active), lambda: self._moved(active))
        return found

    def _moved(self, active: Places) -> Places:
        flowing = [node for node in topological(self.results) if carries_cotangent(node)]
        starts = [self.parameters[i] for i in active if self.inputs[i].differentiable]
        moving = reaching(flowing, starts)
        return tuple(j for j, one in enumerate(self.results) if one in moving)

    def apart(self, active: Places) -> Places:
        """All outputs, if a body inside ignores what it is given."""
        # Loops ask it of their bodies, which may hold loops: without memory, time would double
        # with each level, and with each step of a search through the outer one.
        found: Places = self._once(("apart", active), lambda: self._apart(active))
        return found

    def _apart(self, active: Places) -> Places:
        order = topological(self.results)
        starts = [self.parameters[i] for i in active if self.inputs[i].differentiable]
        dependent = reaching([node for node in order if carries_cotangent(node)], starts)
        if adds_constants(order, dependent):
            return tuple(range(len(self.outputs)))
        pairs = enumerate(self.results)
        return tuple(j for j, one in pairs if one not in dependent and one.constant != 0)

    def loses(self, active: Places) -> bool:
        """Whether a gradient on the ways from the inputs in ``active`` ignores its cotangent."""
        found: bool = self._once(("loses", active), lambda: self._loses(active))
        return found

    def _loses(self, active: Places) -> bool:
        flowing = [node for node in topological(self.results) if carries_cotangent(node)]
        starts = [self.parameters[i] for i in active if self.inputs[i].differentiable]
        moving = reaching(flowing, starts)
        return any(one in moving and loses(one, moving) for one in flowing)

    def reached(self, heads: Places, wanted: Places) -> Places:
        """Where ``pullback`` finds a gradient."""
        found = self._pulled(heads, wanted)[1]
        return tuple(i for i, one in zip(wanted, found, strict=True) if one is not None)

    def _pulled(self, heads: Places, wanted: Places) -> tuple[list[Node], list[Node | None]]:
        """Placeholders of the cotangents, and the gradients."""

        def make() -> tuple[list[Node], list[Node | None]]:
            given = [placeholder(f"d{j}", self.outputs[j]) for j in heads]
            xs = [self.parameters[i] for i in wanted]
            return given, pullback([self.results[j] for j in heads], xs, given)

        made: tuple[list[Node], list[Node | None]] = self._once(("pulled", heads, wanted), make)
        return made

    def pullback(
        self, heads: Places, wanted: Places, *, saved: Places = (), lost: Places = ()
    ) -> Pulled:
        """Gradients over placeholders for what they read; zeros where none arrives."""

        def make() -> Pulled:
            given, found = self._pulled(heads, wanted)
            _require_dense(found)
            gradients = [
                zeros(self.inputs[i]) if one is None else one
                for i, one in zip(wanted, found, strict=True)
            ]
            return _Cut(self, dict(zip(given, heads, strict=True)), saved, lost).pulled(gradients)

        made: Pulled = self._once(("pullback", heads, wanted, saved, lost), make)
        return made

    def saving(self, lost: Places, varying: Places, again: Again = KEEP_ALL.drops) -> Body:
        """Further outputs are the values that gradient makers name.

        Those of which ``again`` holds are computed once more, from others that are kept instead.
        """

        def make() -> Body:
            heads = tuple(j for j, one in enumerate(self.outputs) if one.differentiable)
            wanted = tuple(i for i, one in enumerate(self.inputs) if one.differentiable)
            gradients = [one for one in self._pulled(heads, wanted)[1] if one is not None]
            kept = _named_by_makers(self, gradients, lost, varying, again)
            return self._derived(self.parameters, [*self.results, *kept])

        made: Body = self._once(("saving", lost, varying, again), make)
        return made

    def pushforward(self, moving: Places, chosen: Places) -> Body:
        """Tangents follow the inputs and the outputs; zeros where an output does not move."""

        def make() -> Body:
            ways = [placeholder(f"t{i}", self.inputs[i]) for i in moving]
            ys = [self.results[j] for j in chosen]
            found = pushforward(ys, [self.parameters[i] for i in moving], ways)
            tangents = [
                zeros(self.outputs[j]) if one is None else one
                for j, one in zip(chosen, found, strict=True)
            ]
            return self._derived([*self.parameters, *ways], [*self.results, *tangents])

        made: Body = self._once(("pushforward", moving, chosen), make)
        return made

    def pushed(self, moving: Places, chosen: Places, saved: Places) -> Pulled:
        """Tangents over placeholders for what they read; zeros where an output does not move."""

        def make() -> Pulled:
            ways = [placeholder(f"t{i}", self.inputs[i]) for i in moving]
            ys = [self.results[j] for j in chosen]
            found = pushforward(ys, [self.parameters[i] for i in moving], ways)
            tangents = [
                zeros(self.outputs[j]) if one is None else one
                for j, one in zip(chosen, found, strict=True)
            ]
            heads = {way: k for k, way in enumerate(ways)}
            return _Cut(self, heads, saved, ()).pulled(tangents)

        made: Pulled = self._once(("pushed", moving, chosen, saved), make)
        return made

    def leading(self, late: Places, lasting: Places) -> Places:
        """The inputs that hold back what does not follow from those at ``late``."""
        found: Places = self._once(
            ("leading", late, lasting), lambda: leading(self, set(late), set(lasting))
        )
        return found

    # Other forms

    def keeping(self, places: Places) -> Body:
        """The inputs at ``places`` are further outputs."""
        kept = [self.parameters[i] for i in places]
        return self._derived(self.parameters, [*self.results, *kept]) if kept else self

    def taking(self, inputs: Types, places: Places) -> Body:
        """Inputs that it does not read get placeholders of their own."""
        taken = dict(zip(places, self.parameters, strict=True))
        parameters = [
            taken[i] if i in taken else placeholder("unused", type) for i, type in enumerate(inputs)
        ]
        return self._derived(parameters, self.results)


def _native_bare(node: Node) -> Call:
    if is_native(node):
        return bare(node)
    assert isinstance(node.op, Operator)
    return with_rule(node.op, node.attributes)


def _require_dense(gradients: Sequence[Node | None]) -> None:
    """Refuse row-sparse gradients: outside of the body they would have to be dense.

    Raises:
        KindError: there is one.
    """
    for node in gradients:
        if node is not None and node.type.kind is VarKind.SELECTED_ROWS:
            raise KindError(
                "control flow: rows must not leave the body of a loop or a branch, but a gradient "
                f"is {node.type}; look the rows up before, or let the lookup say sparse=False"
                f"{built_at(node.origin)}"
            )


def _output_type(node: Node) -> VarType:
    """The type of a result; what is row-sparse leaves a body as a dense array."""
    type = node.type
    if type.kind is VarKind.SELECTED_ROWS or type.weak:
        return VarType(type.shape, type.dtype)
    return type


# Making ----------------------------------------------------------------------------------------


def body_of(
    parameters: Sequence[Node],
    results: Sequence[Node],
    keys: Sequence[Node],
    *,
    updating: bool = False,
) -> GraphBody:
    """The body of a graph; ``keys`` are the random keys among its nodes, by their numbers.

    If ``updating``, who makes it sees to it that new states go where they belong.

    Raises:
        ArgumentError: it has no output, depends on something else, or updates a state.
        KindError: an output is a random key or a flag.
        UnknownTypeError: a shape is not known.
    """
    if not results:
        raise ArgumentError("body: at least one value must be returned, got none")
    order = topological(results, until=parameters)
    for node in order:
        _require_closed(node, updating=updating)
    for node in results:
        if node.type.kind in (VarKind.RANDOM_KEY, VarKind.TRAINING):
            raise KindError(f"body: what is returned must be an array, got {node.type}")
    key = _content(parameters, results, keys, order)
    found = _table.get(key)
    if found is None:
        made = GraphBody(parameters, results, keys, order, updating=updating)
        with _lock:
            found = _table.setdefault(key, made)
    return found


def _require_closed(node: Node, *, updating: bool) -> None:
    if node.op is VARIABLE:
        raise ArgumentError(f"body: {node.name} must be one of its inputs{built_at(node.origin)}")
    if node.op is DEFERRED or node.types is None:
        raise UnknownTypeError(
            f"{node.name or node.op.name}: its shape must be known inside of control flow; give "
            f"so.var(..., shape=...) one{built_at(node.origin)}"
        )
    if isinstance(node.op, Operator) and node.op.stateful and not updating:
        states = ", ".join(node.op.updates)
        raise ArgumentError(
            f"{node.op.name}: inside of control flow it cannot update its state ({states}); apply "
            f"it outside, or pass statistics on as values{built_at(node.origin)}"
        )


def _content(
    parameters: Sequence[Node],
    results: Sequence[Node],
    keys: Sequence[Node],
    order: Iterable[Node],
) -> Any:
    """What tells bodies apart: operators, attributes and types in the order of the graph."""
    places: dict[Node | None, int] = {None: -1}
    for node in parameters:
        places[node] = len(places)
    lines = []
    for node in order:
        inputs = tuple([places[one] for one in node.inputs])
        scope = None if node.origin is None else node.origin.scope
        policy = None if scope is None else scope.policy
        lines.append((node.op, inputs, _attributes(node, keys), node.types, policy))
        places[node] = len(places)
    types = tuple([one.type.strong() for one in parameters])
    return types, tuple(lines), tuple([places[one] for one in results])


def _attributes(node: Node, keys: Sequence[Node]) -> Any:
    if node.op is KEY:
        return keys.index(node)
    if node.op is ARRAY:
        array = node.attributes[0].value
        if array.size <= _SMALL:
            return np.asarray(array).tobytes()
    return identity_key(node.attributes)


def traced(function: Callable[..., Any], inputs: Types) -> GraphBody:
    """The body of a function from nodes to a node or several."""
    parameters = [placeholder(f"x{i}", type) for i, type in enumerate(inputs)]
    found = function(*parameters)
    several = found if isinstance(found, (tuple, list)) else (found,)
    results = [as_node(one) for one in several]
    return body_of(parameters, results, random_keys(topological(results)))


bodies.install(traced)


# Gradients -------------------------------------------------------------------------------------


class _Cut:
    """Cuts gradients off the body they belong to: what they read there becomes their inputs."""

    def __init__(
        self, body: GraphBody, heads: dict[Node, int], saved: Places, lost: Places
    ) -> None:
        self.body = body
        self.heads = heads
        self.parameters = {node: i for i, node in enumerate(body.parameters)}
        self.lost = frozenset(lost)
        self.own = set(topological(body.results))
        self.outputs = {body.results[j]: j for j in reversed(saved)}
        self.further: list[Node] = []
        self.stand_ins: dict[Node, Node] = {}
        self.sources: list[Source] = []

    def pulled(self, gradients: Sequence[Node]) -> Pulled:
        """``gradients`` over placeholders for what they read."""
        self._read(gradients)
        made = substitute(gradients, self.stand_ins)
        body = self.body
        whole: GraphBody = body
        if self.further:
            whole = body_of(
                body.parameters,
                [*body.results, *self.further],
                body.keys,
                updating=body.updating,
            )
        derived = body_of(list(self.stand_ins.values()), made, body.keys, updating=body.updating)
        return Pulled(derived, tuple(self.sources), whole)

    def _read(self, gradients: Sequence[Node]) -> None:
        seen: set[Node] = set()
        waiting = list(reversed(gradients))
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            source = self._source(node)
            if source is None:
                waiting += reversed(node.operands)
            else:
                self.sources.append(source)
                self.stand_ins[node] = placeholder(f"{source.of}{source.place}", node.type.strong())

    def _source(self, node: Node) -> Source | None:
        """Where ``node`` comes from; None if it is computed again."""
        if node in self.heads:
            return Source("head", self.heads[node])
        place = self.parameters.get(node)
        if place is not None and place not in self.lost:
            return Source("input", place)
        if node in self.outputs:
            return Source("output", self.outputs[node])
        if place is None and not self._is_found_in_array(node):
            return None
        if node.type.kind is not VarKind.LOD_TENSOR:
            raise KindError(
                "body: a gradient must not need each value of a carry that is no dense array, got "
                f"{node.type}"
            )
        self.further.append(node)
        self.outputs[node] = len(self.body.results) + len(self.further) - 1
        return Source("output", self.outputs[node])

    def _is_found_in_array(self, node: Node) -> bool:
        """Whether ``node`` is a dense value that the body takes from a tensor array.

        The arrays of all steps would be too much to store, what is read there is not.
        """
        if node not in self.own or not self.lost or isinstance(node.op, Structure):
            return False
        dense = node.type.kind is VarKind.LOD_TENSOR and node.type.differentiable
        return dense and any(one.type.kind is VarKind.LOD_TENSOR_ARRAY for one in node.operands)


def _named_by_makers(
    body: GraphBody,
    gradients: Sequence[Node],
    lost: Places,
    varying: Places,
    again: Again,
) -> list[Node]:
    """The values of ``body`` that what makers have made reads.

    Rearranged and repeated entries are arranged again, from values that are no larger.
    """
    own = set(topological(body.results)) | set(body.parameters)
    order = topological(gradients)
    changing = reaching(order, [body.parameters[i] for i in varying])
    given = set(body.parameters) - {body.parameters[i] for i in lost}
    kept: dict[Node, None] = {}
    waiting = [one for node in order if not _is_own(node, own) for one in node.operands]
    waiting += gradients
    while waiting:
        node = waiting.pop()
        if not _is_own(node, own) or node not in changing or node in kept or node in given:
            continue
        if node.op in _FREE or node.type.kind is not VarKind.LOD_TENSOR:
            continue
        if _is_rearranged(node) or again(node):
            waiting += node.operands
        elif not (isinstance(node.op, Operator) and not node.op.single):
            kept[node] = None
    return [node for node in order if node in kept]


def _is_own(node: Node, own: set[Node]) -> bool:
    return node in own or (node.op is SELECT and node.operands[0] in own)


def _is_rearranged(node: Node) -> bool:
    if not isinstance(node.op, Operator) or not node.op.rearranges:
        return False
    return sum(one.type.size for one in node.operands) <= node.type.size
