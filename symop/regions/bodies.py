"""Bodies of control flow: graphs over placeholders that are run, differentiated and compared.

The random keys of a body are numbered when it is traced; its gradients keep the numbers, so that
they draw the same values. Everything derived from a body is built once and cached on it.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from registry.errors import ArgumentError, KindError, UnknownTypeError
from registry.hooks import define
from registry.operator import bodies
from registry.operator.attributes import identity_key
from registry.operator.bodies import (
    Body,
    Places,
    Pulled,
    Source,
    Summands,
    Term,
    Types,
    firsts,
    settled,
)
from registry.operator.operator import Operator
from registry.shapes import default_float
from registry.types import VarKind, VarType
from symop.autodiff.derivations import derives, entering_derivative, leaving_derivative
from symop.autodiff.differentiate import carries_cotangent, loses, pullback, pushforward, zeros
from symop.autodiff.ignoring import adds_constants
from symop.graph.emission import deriving
from symop.graph.nodes import (
    ARRAY,
    CONSTANT,
    DEFERRED,
    KEY,
    TRAINING,
    VARIABLE,
    Node,
    Structure,
    as_node,
    built_at,
    placeholder,
    reaching,
    residuals,
    topological,
)
from symop.graph.policies import KEEP_ALL, is_costly
from symop.graph.rewriting import settle, substitute
from symop.lowering.rules import bare_where_native
from symop.lowering.steps import Schedule, is_native, random_keys
from symop.regions.summands import distinct, terms_of
from symop.xla.body_barriers import leading

Again = Callable[[Node], bool]
"""Whether a gradient recomputes a value instead of keeping it."""
_SMALL = 1024
"""The size up to which arrays compare by content; larger ones compare by identity."""
_FREE = (CONSTANT, ARRAY, TRAINING, KEY)
"""The structures that cost nothing to recompute."""
DEPTH_LIMIT = 200
"""The largest nesting depth of control flow."""
_SHALLOW, _FRAMES, _FRAMES_EACH = 20, 1000, 40
"""The depth up to which Python's recursion limit suffices, and the frames needed beyond that."""
_lock = threading.RLock()
_table: "WeakValueDictionary[Any, GraphBody]" = WeakValueDictionary()


def steps_of(node: Node) -> int:
    """Returns how often a call runs its bodies, as far as its types and attributes tell."""
    if not isinstance(node.op, Operator):
        return 1
    attributes = node.op.attribute_dict(node.attributes)
    if attributes.get("n_mapped"):
        first = next(one for one in node.operands if one.type.shape)
        return first.type.shape[0]
    length: int | None = attributes.get("length")
    return 1 if length is None else length


class GraphBody(Body):
    """A body that is a graph from ``parameters`` to ``results``.

    Attributes:
        parameters: Placeholders, one for each input.
        results: The outputs.
        keys: The random keys that it draws, in the order of their numbers; some may be unused.
        updating: Whether it may contain operators that update a state, whose new value is a result.
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
        """Creates a body; call ``body_of`` instead, which makes equal bodies one object."""
        self.updating = updating
        self.parameters, self.results = tuple(parameters), tuple(results)
        self.keys = tuple(keys)
        self.inputs = tuple(one.type.strong() for one in self.parameters)
        self.outputs = tuple(map(_output_type, self.results))
        self.draws = any(node.op is KEY for node in order)
        applied = [node for node in order if isinstance(node.op, Operator)]
        self.native = all(map(is_native, applied))
        self.costly = any(map(is_costly, applied))
        inner = [body for node in applied for body in bodies.bodies_of(node.attributes)]
        own = any(isinstance(node.op, Operator) and node.op.sealed for node in order)
        self.sealed = own or any(one.sealed for one in inner)
        self.derives = any(map(derives, applied))
        self.lazy = any(one.lazy for one in inner)
        self.depth = 1 + max((one.depth for one in inner), default=0)
        _make_room(self.depth)
        self._memo: dict[Any, Any] = {}

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, types)) for types in (self.inputs, self.outputs))
        return f"<body ({inputs}) -> ({outputs})>"

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        # The default float reflects JAX's x64 flag, on which types inside may depend.
        entry = self._memo.get((key, default_float()))
        return self._memo.setdefault((key, default_float()), make()) if entry is None else entry

    def _derived(self, parameters: Sequence[Node], results: Sequence[Node]) -> "GraphBody":
        """Returns a body of nodes of this body and of nodes derived from them."""
        return body_of(parameters, results, self.keys, updating=self.updating)

    @property
    def content(self) -> Body | None:
        """The body with all bodies inside read."""
        if not self.lazy:
            return self
        result: Body = self._once(
            ("content",), lambda: self._derived(self.parameters, settle(self.results))
        )
        return result

    # Execution

    def run(self, values: Sequence[Any], *, key: Any = None, training: bool = False) -> list[Any]:
        """Returns the outputs, each of its exact type."""
        schedule = self._once(("run", training), lambda: self._schedule(training))
        results = schedule(values, key)[0]
        return [settled(one, type) for one, type in zip(results, self.outputs, strict=True)]

    def _schedule(self, training: bool) -> Schedule:
        return Schedule(
            self.results,
            self.parameters,
            bare_where_native,
            training=training,
            order=topological(self.results, until=self.parameters),
            keys=self.keys,
        )

    # Derivatives

    def moved(self, active: Places) -> Places:
        """Returns the outputs that inputs in ``active`` reach through differentiable values."""
        result: Places = self._once(("moved", active), lambda: self._moved(active))
        return result

    def _moved(self, active: Places) -> Places:
        flowing = [node for node in topological(self.results) if carries_cotangent(node)]
        starts = [self.parameters[i] for i in active if self.inputs[i].differentiable]
        moving = reaching(flowing, starts)
        return tuple(j for j, one in enumerate(self.results) if one in moving)

    def apart(self, active: Places) -> Places:
        """Returns the nonzero outputs that ignore ``active``; all, if an inner body ignores it."""
        # Loops query their bodies, which may contain loops. Without a cache, the time would double
        # with each level and with each step of a search through the outer loop.
        result: Places = self._once(("apart", active), lambda: self._apart(active))
        return result

    def _apart(self, active: Places) -> Places:
        order = topological(self.results)
        starts = [self.parameters[i] for i in active if self.inputs[i].differentiable]
        dependent = reaching([node for node in order if carries_cotangent(node)], starts)
        if adds_constants(order, dependent):
            return tuple(range(len(self.outputs)))
        pairs = enumerate(self.results)
        return tuple(j for j, one in pairs if one not in dependent and one.constant != 0)

    def loses(self, active: Places) -> bool:
        """Whether some gradient on the paths from ``active`` ignores its cotangent."""
        result: bool = self._once(("loses", active), lambda: self._loses(active))
        return result

    def _loses(self, active: Places) -> bool:
        flowing = [node for node in topological(self.results) if carries_cotangent(node)]
        starts = [self.parameters[i] for i in active if self.inputs[i].differentiable]
        moving = reaching(flowing, starts)
        return any(one in moving and loses(one, moving) for one in flowing)

    def reached(self, heads: Places, wanted: Places) -> Places:
        """Returns the inputs in ``wanted`` for which ``pullback`` finds a gradient."""
        gradients = self._pulled(heads, wanted)[1]
        return tuple(i for i, one in zip(wanted, gradients, strict=True) if one is not None)

    def _pulled(self, heads: Places, wanted: Places) -> tuple[list[Node], list[Node | None]]:
        """Returns placeholders of the cotangents, and the gradients."""

        def make() -> tuple[list[Node], list[Node | None]]:
            cotangents = [placeholder(f"d{j}", self.outputs[j]) for j in heads]
            xs = [self.parameters[i] for i in wanted]
            return cotangents, pullback([self.results[j] for j in heads], xs, cotangents)

        result: tuple[list[Node], list[Node | None]] = self._once(("pulled", heads, wanted), make)
        return result

    def pullback(
        self, heads: Places, wanted: Places, *, saved: Places = (), lost: Places = ()
    ) -> Pulled:
        """Returns gradients over placeholders for what they read; zeros where none arrives."""

        def make() -> Pulled:
            cotangents, results = self._pulled(heads, wanted)
            _require_dense(results)
            gradients = [
                zeros(self.inputs[i]) if one is None else one
                for i, one in zip(wanted, results, strict=True)
            ]
            return _Separation(self, dict(zip(cotangents, heads, strict=True)), saved, lost).pulled(
                gradients
            )

        result: Pulled = self._once(("pullback", heads, wanted, saved, lost), make)
        return result

    def saving(self, lost: Places, varying: Places, again: Again = KEEP_ALL.drops) -> Body:
        """Returns a body whose further outputs are the values that gradient makers read.

        Values for which ``again`` is true are recomputed from others that are kept instead.
        """

        def make() -> Body:
            heads = tuple(j for j, one in enumerate(self.outputs) if one.differentiable)
            wanted = tuple(i for i, one in enumerate(self.inputs) if one.differentiable)
            gradients = [one for one in self._pulled(heads, wanted)[1] if one is not None]
            kept = _named_by_makers(self, gradients, lost, varying, again)
            return self._derived(self.parameters, [*self.results, *kept])

        result: Body = self._once(("saving", lost, varying, again), make)
        return result

    def pushforward(self, moving: Places, chosen: Places) -> Body:
        """Appends tangents to inputs and outputs; they are zeros where an output does not move."""

        def make() -> Body:
            ways = [placeholder(f"t{i}", self.inputs[i]) for i in moving]
            ys = [self.results[j] for j in chosen]
            results = pushforward(ys, [self.parameters[i] for i in moving], ways)
            tangents = [
                zeros(self.outputs[j]) if one is None else one
                for j, one in zip(chosen, results, strict=True)
            ]
            return self._derived([*self.parameters, *ways], [*self.results, *tangents])

        result: Body = self._once(("pushforward", moving, chosen), make)
        return result

    def pushed(self, moving: Places, chosen: Places, saved: Places) -> Pulled:
        """Returns tangents over placeholders for what they read; zeros where nothing moves."""

        def make() -> Pulled:
            ways = [placeholder(f"t{i}", self.inputs[i]) for i in moving]
            ys = [self.results[j] for j in chosen]
            results = pushforward(ys, [self.parameters[i] for i in moving], ways)
            tangents = [
                zeros(self.outputs[j]) if one is None else one
                for j, one in zip(chosen, results, strict=True)
            ]
            heads = {way: k for k, way in enumerate(ways)}
            return _Separation(self, heads, saved, ()).pulled(tangents)

        result: Pulled = self._once(("pushed", moving, chosen, saved), make)
        return result

    def entering(self, active: Places) -> Body:
        """Returns the body of which a derivative by the inputs in ``active`` is taken."""

        def make() -> Body:
            moving = [self.parameters[i] for i in active]
            image = entering_derivative(self.results, moving)
            return self._derived(self.parameters, [image.value(one) for one in self.results])

        result: Body = self._once(("entering", active), make)
        return result

    def leaving(self) -> Body:
        """Returns the body after a derivative has been taken."""
        result: Body = self._once(
            ("leaving",), lambda: self._derived(self.parameters, leaving_derivative(self.results))
        )
        return result

    def leading(self, late: Places, lasting: Places) -> Places:
        """Returns the inputs whose barriers delay calls that are independent of ``late``."""
        result: Places = self._once(
            ("leading", late, lasting), lambda: leading(self, set(late), set(lasting))
        )
        return result

    # Variants

    def rewritten(self, rewrite: Callable[[Sequence[Node]], list[Node]]) -> "GraphBody":
        """Returns the body with its results as ``rewrite`` returns them, called once."""
        result: GraphBody = self._once(
            ("rewritten", rewrite), lambda: self._derived(self.parameters, rewrite(self.results))
        )
        return result

    def keeping(self, places: Places) -> Body:
        """Returns a body with the inputs at ``places`` as further outputs."""
        kept = [self.parameters[i] for i in places]
        return self._derived(self.parameters, [*self.results, *kept]) if kept else self

    def summands(self, summed: Places, mapped: Places) -> Summands:
        """Returns a body with the factors of the products in the outputs ``summed``."""

        def make() -> Summands:
            moving = reaching(topological(self.results), [self.parameters[i] for i in mapped])
            terms = [terms_of(self.results[j], moving) for j in summed]
            kept = [one for j, one in enumerate(self.results) if j not in summed]
            factors = distinct(terms)
            place = {one: len(kept) + i for i, one in enumerate(factors)}
            sums = tuple(
                tuple(
                    Term(one.scale, tuple(place[f] for f in one.factors), one.equation)
                    for one in each
                )
                for each in terms
            )
            return Summands(self._derived(self.parameters, [*kept, *factors]), sums)

        result: Summands = self._once(("summands", summed, mapped), make)
        return result

    def restricted(self, chosen: Places) -> tuple[Body, Places]:
        """Returns a body with the outputs ``chosen``, and the indices of the inputs it reads."""

        def make() -> tuple[Body, Places]:
            results = [self.results[j] for j in chosen]
            read = set(topological(results))
            places = tuple(i for i, one in enumerate(self.parameters) if one in read)
            return self._derived([self.parameters[i] for i in places], results), places

        result: tuple[Body, Places] = self._once(("restricted", chosen), make)
        return result

    def equal_values(self, same: Places, n_carry: int = 0) -> tuple[Places, Places]:
        """Returns for each input, and for each output, the first one that is always equal to it."""
        result: tuple[Places, Places] = self._once(
            ("equal", same, n_carry), lambda: self._equal_values(same, n_carry)
        )
        return result

    def _equal_values(self, same: Places, n_carry: int) -> tuple[Places, Places]:
        """Splits classes of carries until equal carries have equal values after a step."""
        values = self._over_representatives(same)
        refined = (*firsts(list(zip(same[:n_carry], values, strict=False))), *same[n_carry:])
        if refined != same:
            return self._equal_values(refined, n_carry)
        return same, (*same[:n_carry], *(n_carry + j for j in firsts(values[n_carry:])))

    def _over_representatives(self, same: Places) -> list[Node]:
        """Returns the results with every input ``i`` replaced by the input ``same[i]``."""
        merged = {
            self.parameters[i]: self.parameters[first] for i, first in enumerate(same) if first != i
        }
        with deriving(topological(self.results)):
            return substitute(self.results, merged)

    def identified(self, same: Places, chosen: Places) -> Body:
        """Returns the outputs ``chosen`` as a function of the inputs that are not merged."""

        def make() -> Body:
            values = self._over_representatives(same)
            kept = [one for i, one in enumerate(self.parameters) if same[i] == i]
            return self._derived(kept, [values[j] for j in chosen])

        result: Body = self._once(("identified", same, chosen), make)
        return result

    def taking(self, inputs: Types, places: Places) -> Body:
        """Returns a body with unused inputs added, such that its own inputs are at ``places``."""
        taken = dict(zip(places, self.parameters, strict=True))
        parameters = [
            taken[i] if i in taken else placeholder("unused", type) for i, type in enumerate(inputs)
        ]
        return self._derived(parameters, self.results)


def _require_dense(gradients: Sequence[Node | None]) -> None:
    """Raises an error for row-sparse gradients, which would have to be dense outside the body.

    Raises:
        KindError: A gradient is row-sparse.
    """
    for node in gradients:
        if node is not None and node.type.kind is VarKind.SELECTED_ROWS:
            raise KindError(
                "control flow: rows must not leave the body of a loop or a branch, but a gradient "
                f"is {node.type}; look the rows up before, or let the lookup say sparse=False"
                f"{built_at(node.origin)}"
            )


def _output_type(node: Node) -> VarType:
    """Returns the type of a result; a row-sparse result leaves a body as a dense array."""
    type = node.type
    if type.kind is VarKind.SELECTED_ROWS or type.weak:
        return VarType(type.shape, type.dtype)
    return type


# Construction ----------------------------------------------------------------------------------


def _make_room(depth: int) -> None:
    """Raises Python's recursion limit for functions that walk bodies nested ``depth`` deep.

    Differentiating, lowering or tracing a body does the same to the bodies inside it, here and in
    JAX. The limit is never lowered again, since all threads share it and another may need it.
    """
    frames = _FRAMES + _FRAMES_EACH * depth
    if depth > _SHALLOW and sys.getrecursionlimit() < frames:
        sys.setrecursionlimit(frames)


def require_shallow(bodies: Sequence[GraphBody]) -> None:
    """Checks the nesting depth of bodies.

    Raises:
        ArgumentError: The bodies are nested too deeply.
    """
    depth = max(one.depth for one in bodies)
    if depth > DEPTH_LIMIT:
        raise ArgumentError(
            f"control flow: functions must nest at most {DEPTH_LIMIT} deep, got {depth}; a "
            "while_loop or a scan repeats what is nested in itself"
        )


def body_of(
    parameters: Sequence[Node],
    results: Sequence[Node],
    keys: Sequence[Node],
    *,
    updating: bool = False,
) -> GraphBody:
    """Returns the body of a graph; ``keys`` are its random keys, in the order of their numbers.

    If ``updating``, the caller stores new states where they belong.

    Raises:
        ArgumentError: The graph has no output, has a free variable, or updates a state.
        KindError: An output is a random key or a training flag.
        UnknownTypeError: A shape is unknown.
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
    result = _table.get(key)
    if result is None:
        body = GraphBody(parameters, results, keys, order, updating=updating)
        with _lock:
            result = _table.setdefault(key, body)
    return result


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
    """Returns the key of a body: operators, attributes and types in the order of the graph."""
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


def trace_body(function: Callable[..., Any], inputs: Types) -> GraphBody:
    """Returns the body of a function from nodes to one or several nodes."""
    parameters = [placeholder(f"x{i}", type) for i, type in enumerate(inputs)]
    returned = function(*parameters)
    several = returned if isinstance(returned, (tuple, list)) else (returned,)
    results = [as_node(one) for one in several]
    return body_of(parameters, results, random_keys(topological(results)))


define(bodies.Bodies, trace=trace_body)


# Gradients -------------------------------------------------------------------------------------


class _Separation:
    """Separates gradients from their body: values they read there become their inputs."""

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
        """Returns ``gradients`` over placeholders for what they read."""
        residuals(gradients, self._reads)
        images = substitute(gradients, self.stand_ins)
        body = self.body
        whole: GraphBody = body
        if self.further:
            whole = body_of(
                body.parameters,
                [*body.results, *self.further],
                body.keys,
                updating=body.updating,
            )
        derived = body_of(list(self.stand_ins.values()), images, body.keys, updating=body.updating)
        return Pulled(derived, tuple(self.sources), whole)

    def _reads(self, node: Node) -> bool:
        """Reads ``node`` from where it comes from; returns False if it is recomputed."""
        source = self._source(node)
        if source is None:
            return False
        self.sources.append(source)
        self.stand_ins[node] = placeholder(f"{source.of}{source.place}", node.type.strong())
        return True

    def _source(self, node: Node) -> Source | None:
        """Returns where ``node`` comes from; None if it is recomputed."""
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
                "body: a gradient must not need each value of a carry that is not a dense array, "
                f"got {node.type}"
            )
        self.further.append(node)
        self.outputs[node] = len(self.body.results) + len(self.further) - 1
        return Source("output", self.outputs[node])

    def _is_found_in_array(self, node: Node) -> bool:
        """Whether ``node`` is a dense value that the body reads from a tensor array.

        Storing the tensor arrays of all steps would take too much memory; the values read from
        them do not.
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
    """Returns the values of ``body`` that the results of gradient makers read.

    Values that only rearrange or repeat entries are recomputed from values that are no larger.
    """
    own = set(topological(body.results)) | set(body.parameters)
    order = topological(gradients)
    changing = reaching(order, [body.parameters[i] for i in varying])
    free = set(body.parameters) - {body.parameters[i] for i in lost}

    def is_known(node: Node) -> bool:
        if node not in own and node.source not in own:
            return False
        if node.op in _FREE or node.type.kind is not VarKind.LOD_TENSOR:
            return True
        return not (_is_rearranged(node) or again(node))

    read = changing.intersection(residuals(gradients, is_known)) - free
    return [node for node in order if node in read and _is_stored(node)]


def _is_stored(node: Node) -> bool:
    """Whether ``node`` is one dense value that a body computes from its parameters."""
    if node.op in _FREE or (isinstance(node.op, Operator) and not node.op.single):
        return False
    return node.type.kind is VarKind.LOD_TENSOR


def _is_rearranged(node: Node) -> bool:
    if not isinstance(node.op, Operator) or not node.op.rearranges:
        return False
    return sum(one.type.size for one in node.operands) <= node.type.size
