"""Folding for inference: scales and shifts of a linear layer's result go into its parameters.

A linear layer multiplies its data by a weight and adds a bias. What follows it, channel by channel,
is absorbed where no other call reads the layer's result: batch normalization with running
statistics, products and quotients with one number for each channel, and sums with such numbers.
``(W x + b) s + t`` becomes ``(s W) x + (b s + t)``, which differs by rounding only.

The new weight and bias are expressions of the parameters, so the graph keeps its variables.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from registry.errors import UnknownTypeError
from registry.operator.operator import Operator
from registry.table import get
from registry.types import DType, Shape, VarType, is_inexact
from symop.graph.inference import Known, infer_types
from symop.graph.naming import variables_among
from symop.graph.nodes import (
    ARRAY,
    CONSTANT,
    TRAINING,
    VARIABLE,
    Node,
    by_age,
    constant,
    copied_origin,
    leaves,
    topological,
)
from symop.graph.rewriting import Images, substitute
from symop.passes.replacements import Replacement, attributes_of

_noted: "WeakKeyDictionary[Node, tuple[Replacement, ...]]" = WeakKeyDictionary()
"""The calls that were folded into each call; only reports read it."""


def noted(order: Iterable[Node]) -> tuple[Replacement, ...]:
    """Returns the calls that were folded into the calls of a graph."""
    return tuple(one for node in order for one in _noted.get(node, ()))


def fold_for_inference(
    roots: Sequence[Node], types: Known, inputs: Collection[str] | None
) -> list[Node]:
    """Returns ``roots`` for prediction, with the calls after linear layers folded into these.

    Args:
        roots: a graph.
        types: the types of its variables.
        inputs: the names of the variables that are fed, on which a folded parameter must not
            depend. By default, those that the data of the layer depend on, except variables in
            parameter slots.
    """
    flags = dict.fromkeys(leaves(topological(roots), TRAINING), constant(False))
    # Calls that only training needs are removed first, so that more results have one reader.
    fixed = substitute(roots, flags)
    order = by_age(topological(fixed))
    declared = {one: types[one][0] for one in order if one.op is VARIABLE and one in types}
    known = infer_types(fixed, {one: type for one, type in declared.items() if type is not None})
    return _Folding(order, fixed, known, inputs).folded()


def require_types(roots: Sequence[Node], known: Known) -> None:
    """Raises an error if the type of a variable is not known.

    Raises:
        UnknownTypeError: it is not.
    """
    variables = variables_among(topological(roots))
    lost = [name for name, node in variables.items() if node not in known]
    if lost:
        raise UnknownTypeError(
            "for_inference: the shapes of all variables must be known, but those of "
            f"{', '.join(lost)} do not follow from the given ones"
        )


# Linear layers -----------------------------------------------------------------------------------


class _Channels(NamedTuple):
    """The channels of a linear layer.

    Attributes:
        axis: their axis in the result.
        spread: the shape in which one number for each channel broadcasts against the weight.
    """

    axis: int
    spread: Shape

    @property
    def length(self) -> int:
        """The number of channels."""
        return math.prod(self.spread)

    def broadcasts(self, shape: Shape, out: Shape) -> bool:
        """Whether a factor of ``shape`` holds one number for each channel of ``out``, or one."""
        lengths = dict(enumerate(shape, len(out) - len(shape)))
        return len(shape) <= len(out) and all(
            n == 1 or (axis == self.axis and n == self.length) for axis, n in lengths.items()
        )


def _channels(name: str, how: dict[str, Any], out: Shape, weight: Shape) -> _Channels | None:
    """Returns the channels of a call of the operator ``name``; None if it is not a linear layer."""
    if name == "fully_connected":
        return _Channels(len(out) - 1, (how["units"], 1))
    if name in ("matmul", "dot"):
        return _Channels(len(out) - 1, weight[1:]) if len(weight) == 2 and out else None
    axis = 1 if how.get("layout") is None else how["layout"].index("C")
    ones = (1,) * (len(weight) - 2)
    if name == "convolution":
        first = (how["weight_layout"] or "O").index("O")
        spread = tuple(how["channels"] if i == first else 1 for i in range(len(weight)))
        return _Channels(axis, spread)
    if name == "transposed_convolution" and how["groups"] == 1:
        return _Channels(axis, (1, how["channels"], *ones))
    return None


class _Layer(NamedTuple):
    """A linear layer.

    Attributes:
        node: the call in the graph as it was.
        data: the value that the layer multiplies.
        weight: the weight, to which factors have been applied.
        bias: the number that it adds for each channel, or None.
        channels: its channels.
        dtypes: the dtypes of weight and bias.
        folded: the calls that have been folded into its parameters.
    """

    node: Node
    data: Node
    weight: Any
    bias: Any
    channels: _Channels
    dtypes: tuple[DType, DType]
    folded: tuple[Replacement, ...] = ()

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self.node.op.name

    def call(self) -> Node:
        """Returns the call, followed by a sum if the operator has no bias."""
        assert isinstance(self.node.op, Operator)
        operator, name = self.node.op, self.node.name
        how = attributes_of(self.node)
        given = [self.data, self.weight]
        if "use_bias" in how:
            how["use_bias"] = self.bias is not None
            given += [self.bias] if self.bias is not None else []
        result: Node = operator(*given, **how, name=name)
        if self.bias is not None and "use_bias" not in how:
            result = get("add")(result, self.bias)
        if self.folded:
            _noted[result] = self.folded
        return result

    def moved(self, affine: "_Affine") -> "_Layer":
        """Returns the layer whose result is that of this one times the factor, plus the shift."""
        of_weight, of_bias = self.dtypes
        weight, bias, wide = self.weight, self.bias, affine.dtype
        if affine.factor is not None:
            factor = affine.factor
            each = affine.each and isinstance(factor, Node)
            spread = _reshaped(factor, self.channels.spread) if each else factor
            weight = _cast(_cast(weight, of_weight, wide) * spread, wide, of_weight)
            bias = None if bias is None else _cast(bias, of_bias, wide) * factor
        elif bias is not None:
            bias = _cast(bias, of_bias, wide)
        if affine.shift is not None:
            whole = (self.channels.length,)
            shift = affine.shift
            bias = get("broadcast_to")(shift, shape=whole) if bias is None else bias + shift
        bias = None if bias is None else _cast(bias, wide, of_bias)
        return self._replace(weight=weight, bias=bias)


class _Affine(NamedTuple):
    """A call that multiplies each channel of a value by a factor and adds a shift.

    Attributes:
        data: the value, a node of the graph as it was.
        factor: a number, an array of one number for each channel, or None for one.
        shift: the same, or None for zero.
        dtype: the dtype in which the call computes.
        each: whether factor and shift hold a number for each channel, rather than one for all.
        parameters: the nodes that factor and shift are computed from.
    """

    data: Node
    factor: Any
    shift: Any
    dtype: DType
    each: bool
    parameters: tuple[Node, ...]


def _cast(value: Any, dtype: DType, wanted: DType) -> Any:
    """Returns a value of ``dtype`` in the dtype ``wanted``."""
    return value if dtype == wanted else get("cast")(value, dtype=wanted)


def _reshaped(value: Node, shape: Shape) -> Node:
    result: Node = get("reshape")(value, shape=shape)
    return result


# The pass ----------------------------------------------------------------------------------------

_UNKNOWN = 1
"""The bit of leaves other than variables and constants, such as random keys."""


class _Folding:
    """Computes the images of the nodes of a graph whose layers absorb the calls after them."""

    def __init__(
        self,
        order: Sequence[Node],
        roots: Sequence[Node],
        known: Known,
        inputs: Collection[str] | None,
    ) -> None:
        self._order, self._roots, self._known = order, roots, known
        self._uses = Counter(one for node in order for one in node.operands)
        self._uses.update(roots)
        self._image = Images()
        self._layers: dict[Node, _Layer] = {}
        self._reads: dict[Node, int] = {}
        self._explicit = inputs is not None
        bits = {node: 2 << i for i, node in enumerate(leaves(order, VARIABLE))}
        for node in order:
            own = bits.get(node, 0 if node.inputs or node.op in (CONSTANT, ARRAY) else _UNKNOWN)
            self._reads[node] = own
            for one in node.operands:
                self._reads[node] |= self._reads[one]
        fed = sum(bit for node, bit in bits.items() if inputs is not None and node.name in inputs)
        self._fed = fed | _UNKNOWN
        self._parameters = sum(bits.get(one, 0) for one in _in_parameter_slots(order))

    def folded(self) -> list[Node]:
        """Returns the images of the roots."""
        for node in self._order:
            if node.is_selection:
                self._follow(node)
                continue
            layer = self._absorbed(node)
            if layer is None:
                self._image.rebuild(node)
                layer = self._layer(node)
            else:
                with copied_origin(layer.node.origin):
                    out = layer.call()
                self._image[node] = out if _is_single(node) else [out]
            if layer is not None:
                self._layers[node] = layer
        return [self._image.value(one) for one in self._roots]

    def _follow(self, node: Node) -> None:
        """Notes the layer of which ``node`` is the first output, if its call has several."""
        layer = self._layers.get(node.source)
        if layer is not None and node.index == 0 and not _is_single(node.source):
            self._layers[node] = layer

    def _layer(self, node: Node) -> _Layer | None:
        """Returns the linear layer that ``node`` calls, or None."""
        if not isinstance(node.op, Operator) or len(node.operands) < 2:
            return None
        out, (data, weight, *rest) = self._type(node), node.operands
        if out is None or not is_inexact(out.dtype):
            return None
        w = self._type(weight)
        if w is None:
            return None
        channels = _channels(node.op.name, attributes_of(node), out.shape, w.shape)
        if channels is None:
            return None
        bias = rest[0] if rest else None
        of_bias = w if bias is None else self._type(bias)
        assert of_bias is not None
        dtypes = w.dtype, of_bias.dtype
        value = self._image.value
        added = None if bias is None else value(bias)
        return _Layer(node, value(data), value(weight), added, channels, dtypes)

    def _absorbed(self, node: Node) -> _Layer | None:
        """Returns the layer that also computes the call ``node`` that reads its result, or None."""
        if not isinstance(node.op, Operator):
            return None
        for affine in self._forms(node):
            layer = self._layers.get(affine.data)
            if layer is not None and self._fits(node, layer, affine):
                was = Replacement(f"{node.op.name} of {layer.name}", layer.name, node.origin)
                with copied_origin(layer.node.origin):
                    return layer.moved(affine)._replace(folded=(*layer.folded, was))
        return None

    def _fits(self, node: Node, layer: _Layer, affine: _Affine) -> bool:
        """Whether the layer may compute the call as well."""
        before, after = self._type(affine.data), self._type(node)
        same = before is not None and before == after
        if not same or before is None or self._uses[affine.data] > 1:
            return False
        return self._is_constant(layer, affine) and self._by_channel(node, layer, affine, before)

    def _by_channel(self, node: Node, layer: _Layer, affine: _Affine, out: VarType) -> bool:
        """Whether factor and shift hold one number for each channel, or a single one."""
        channels = layer.channels
        if node.op is get("batch_norm"):
            fixed = node.operands[-1].constant is False
            return fixed and bool(attributes_of(node)["axis"] % out.ndim == channels.axis)
        for one in affine.parameters:
            type = self._type(one)
            if type is None or not channels.broadcasts(type.shape, out.shape):
                return False
            # With a batch of one example, data have the shape of a parameter.
            whole = type.ndim == out.ndim and out.shape[0] == 1 and channels.axis != 0
            if whole and not self._explicit:
                return False
        return True

    def _is_constant(self, layer: _Layer, affine: _Affine) -> bool:
        """Whether weight, bias, factor and shift do not depend on fed variables."""
        data, *parameters = layer.node.operands
        fed = self._fed if self._explicit else self._reads[data] & ~self._parameters | _UNKNOWN
        return not any(self._reads[one] & fed for one in (*parameters, *affine.parameters))

    def _forms(self, node: Node) -> Iterator[_Affine]:
        """Yields the ways to read ``node`` as a value times a factor plus a shift."""
        assert isinstance(node.op, Operator)
        type, name = self._type(node), node.op.name
        if type is None:
            return
        if name == "batch_norm":
            yield self._of_statistics(node)
        elif name == "negative":
            yield _Affine(node.operands[0], -1.0, None, type.dtype, False, ())
        elif name == "scale":
            yield _Affine(node.operands[0], node.attributes[0], None, type.dtype, False, ())
        elif name in _BINARY:
            for x, other in (node.operands, node.operands[::-1]):
                of = self._type(other)
                factor, shift = _BINARY[name](self._flat(other), x is node.operands[0])
                if of is not None and (factor is not None or shift is not None):
                    yield _Affine(x, factor, shift, type.dtype, of.size != 1, (other,))

    def _of_statistics(self, node: Node) -> _Affine:
        """Returns factor and shift of batch normalization with running statistics."""
        wide = self._known[node][1]
        assert wide is not None
        gamma, beta, mean, variance = (
            self._image.value(one)
            if self._type(one) == wide
            else get("cast")(self._image.value(one), dtype=wide.dtype)
            for one in node.operands[1:5]
        )
        factor = gamma * get("rsqrt")(variance + attributes_of(node)["eps"])
        shift = beta - mean * factor
        return _Affine(node.operands[0], factor, shift, wide.dtype, True, tuple(node.operands[1:5]))

    def _flat(self, node: Node) -> Any:
        """Returns the image of a factor or shift without axes of length one."""
        value, type = self._image.value(node), self._type(node)
        if type is None or type.ndim == (type.size != 1):
            return value
        return _reshaped(value, () if type.size == 1 else (type.size,))

    def _type(self, node: Node) -> VarType | None:
        """Returns the type of the first output, if it is known."""
        return self._known[node][0] if node in self._known else None


_Form = tuple[Any, Any]
_BINARY: dict[str, Callable[[Any, bool], _Form]] = {
    "multiply": lambda other, _first: (other, None),
    "divide": lambda other, first: (get("divide")(1.0, other), None) if first else (None, None),
    "add": lambda other, _first: (None, other),
    "subtract": lambda other, first: (None, -other) if first else (-1.0, other),
}
"""Factor and shift of operators, given the other operand and whether the value comes first."""


def _is_single(node: Node) -> bool:
    assert isinstance(node.op, Operator)
    return node.op.single


def _in_parameter_slots(order: Iterable[Node]) -> set[Node]:
    """Returns the values in slots for which a symbolic call creates parameters."""
    return {
        one
        for node in order
        if isinstance(node.op, Operator)
        for i, one in enumerate(node.inputs)
        if one is not None and node.op.slot_of(i).created
    }
