"""The operations that XLA's CPU backend makes of a jaxpr that is split over devices.

Equal equations are one operation. A convolution reads arrays whose axes are in one order: examples,
places and features, and of weights places, inputs and outputs (conv_canonicalization.cc); arrays
in another order are copied. The gradient of the largest entries of windows first finds where they
are, among arrays that number the entries along each axis (select_and_scatter_expander.cc). Large
sums are computed by a library or in windows (tree_reduction_rewriter.cc), and read arrays whose
axes are in their own order. Each device holds a sum over devices besides its own part.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jax.extend.core import Jaxpr, JaxprEqn, Literal

from registry.primitives import ENTRYWISE, called_by, inner_jaxprs, scan_parts
from symop.planning import liveness
from symop.planning.liveness import TRANSPOSED_COPY, Operation
from symop.planning.propagation import Walk

_INDEX_BYTES = 4
_LIBRARY_ENTRIES = 4096
"""The least number of entries that a library sums; found among compiled steps."""
_WINDOW = 32
"""The length of an axis above which it is summed in windows."""
_ALL_REDUCE = "all-reduce"
_FACTORS = frozenset({"integer_pow", "mul", "square"})
_REDUCTIONS = ("reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum")

Order = tuple[int, ...]
"""The axes of an array, the slowest first."""


class Operand(NamedTuple):
    """What an equation reads.

    Attributes:
        value: the value.
        aval: its shape and dtype on all devices.
        bytes: its size on a device.
    """

    value: Hashable
    aval: Any
    bytes: int

    @property
    def entries(self) -> int:
        """The number of entries on a device."""
        return self.bytes // getattr(self.aval.dtype, "itemsize", _INDEX_BYTES)

    @property
    def in_order(self) -> Order:
        """The order of the axes of an array that was not transposed."""
        return tuple(range(self.aval.ndim))


def most_held(walk: Walk, jaxpr: Jaxpr, sliced: Sequence[Any] = ()) -> int:
    """Returns the most bytes that each device holds of results of ``jaxpr`` at once.

    Args:
        walk: a walk through ``jaxpr``.
        jaxpr: what is computed.
        sliced: inputs that are parts of other arrays, as those of a step of a loop.
    """
    names: dict[Any, Hashable] = {one: object() for one in sliced}
    operations = [Operation("dynamic_slice", (), {names[o]: walk.bytes_of(o)}) for o in sliced]
    operations += _Operations().of(walk, jaxpr, names)
    outputs = {names[one] for one in _variables(jaxpr.outvars) if one in names}
    return liveness.most_held(_combined(operations), outputs)


def _combined(operations: Sequence[Operation]) -> list[Operation]:
    """Returns the operations, where one sums all that is read at the end over devices."""
    read = {value for one in operations for value in one.reads}
    result: list[Operation] = []
    last: list[Operation] = []
    for one in operations:
        ends = one.name == _ALL_REDUCE and read.isdisjoint(one.results)
        (last if ends else result).append(one)
    reads = [value for one in last for value in one.reads]
    sums = {value: size for one in last for value, size in one.results.items()}
    return [*result, Operation(_ALL_REDUCE, reads, sums)]


class _Operations:
    """The operations of a step, whose equations share results and copies."""

    def __init__(self) -> None:
        self._known: dict[Hashable, list[Hashable]] = {}
        self._copies: dict[tuple[Hashable, Order], Hashable] = {}
        self._convolved: dict[Hashable, Order] = {}
        self._orders: dict[Hashable, Order] = {}
        self._factors: dict[Hashable, Sequence[Operand]] = {}

    def of(self, walk: Walk, jaxpr: Jaxpr, names: dict[Any, Hashable]) -> Iterator[Operation]:
        """Iterates over the operations of ``jaxpr``, those of calls in their place.

        Args:
            walk: a walk through ``jaxpr``.
            jaxpr: what is computed.
            names: the values of its variables, which stand for themselves otherwise; those of
                results are added.
        """
        for equation in jaxpr.eqns:
            called = called_by(equation)
            inner = None if called is None else walk.inner(equation, called)
            if called is not None and inner is not None:
                yield from self._call(inner, called, equation, names)
                continue
            key = _computation(equation, names)
            results = None if key is None else self._known.get(key)
            if results is None:
                results = [object() for _ in equation.outvars]
                yield from self._equation(walk, equation, names, results)
                if key is not None:
                    self._known[key] = results
            names.update(zip(equation.outvars, results, strict=True))

    def _call(
        self, inner: Walk, called: Jaxpr, equation: JaxprEqn, names: dict[Any, Hashable]
    ) -> Iterator[Operation]:
        pairs = zip(called.invars, equation.invars, strict=True)
        inside = {one: names.get(o, o) for one, o in pairs if not isinstance(o, Literal)}
        yield from self.of(inner, called, inside)
        for out, one in zip(equation.outvars, called.outvars, strict=True):
            if not isinstance(one, Literal) and one in inside:
                names[out] = inside[one]

    def _equation(
        self,
        walk: Walk,
        equation: JaxprEqn,
        names: Mapping[Any, Hashable],
        results: Sequence[Hashable],
    ) -> Iterator[Operation]:
        operands = [
            Operand(names.get(one, one), one.aval, walk.bytes_of(one))
            for one in _variables(equation.invars)
        ]
        sums = {
            result: object()
            for result, one in zip(results, equation.outvars, strict=True)
            if walk.is_sum(one)
        }
        sizes = dict(zip(results, map(walk.bytes_of, equation.outvars), strict=True))
        bodies = [
            most_held(inner, one, _steps(equation, one))
            for one in inner_jaxprs(equation)
            if (inner := walk.inner(equation, one)) is not None
        ]
        besides = walk.received(equation) + max(bodies, default=0)
        own = {sums.get(one, one): size for one, size in sizes.items()}
        name, reads = equation.primitive.name, [one.value for one in operands]
        operation = Operation(name, reads, own, besides)
        expand = _EXPANDED.get(name)
        if expand is None:
            self._follow(equation, operands, operation)
            yield operation
        else:
            yield from expand(self, equation, operands, operation)
        for whole, part in sums.items():
            yield Operation(_ALL_REDUCE, [part], {whole: sizes[whole]})

    def _follow(
        self, equation: JaxprEqn, operands: Sequence[Operand], operation: Operation
    ) -> None:
        """Notes the factors of a product entry by entry, and the order of axes of its result."""
        if equation.primitive not in ENTRYWISE or len(operation.results) != 1:
            return
        (result,) = operation.results
        if operation.name in _FACTORS:
            self._factors[result] = operands
        out: Any = equation.outvars[0]
        for one in operands:
            if one.value in self._orders and one.aval.shape == out.aval.shape:
                self._orders[result] = self._orders[one.value]
                return

    def _in_order(
        self, operand: Operand, order: Order, reads: list[Hashable]
    ) -> Iterator[Operation]:
        """Iterates over the copy of an operand, if none is there; adds what to read."""
        key = operand.value, order
        if self._convolved.get(operand.value) == order:
            self._copies[key] = operand.value
        elif key not in self._copies:
            self._copies[key] = object()
            yield Operation(TRANSPOSED_COPY, [operand.value], {self._copies[key]: operand.bytes})
        reads.append(self._copies[key])

    def convolution(
        self, equation: JaxprEqn, operands: Sequence[Operand], operation: Operation
    ) -> Iterator[Operation]:
        """Iterates over the copies of operands, and the convolution of them."""
        numbers = equation.params["dimension_numbers"]
        outputs, inputs, *places = numbers.rhs_spec
        orders = _features_last(numbers.lhs_spec), (*places, inputs, outputs)
        reads: list[Hashable] = []
        for one, order in zip(operands, orders, strict=True):
            yield from self._in_order(one, order, reads)
        (result,) = operation.results
        self._convolved[result] = self._orders[result] = _features_last(numbers.out_spec)
        yield operation._replace(reads=reads)

    def window_gradient(
        self, equation: JaxprEqn, operands: Sequence[Operand], operation: Operation
    ) -> Iterator[Operation]:
        """Iterates over the operations that add a gradient where windows have their maxima."""
        del equation
        gradient, value = operands
        ((result, size),) = operation.results.items()
        axes, indices = value.aval.ndim, gradient.entries * _INDEX_BYTES
        filled, found, joined, *numbers = [object() for _ in range(3 + axes)]
        yield Operation("fill", [], {filled: size})
        for one in numbers:
            yield Operation("numbering", [], {one: value.entries * _INDEX_BYTES})
        places = {found: gradient.bytes + axes * indices}
        yield Operation("reduce_window", [value.value, *numbers], places)
        yield Operation("joined_indices", [found], {joined: axes * indices})
        yield Operation("scatter", [filled, joined, gradient.value], {result: size})

    def reduction(
        self, equation: JaxprEqn, operands: Sequence[Operand], operation: Operation
    ) -> Iterator[Operation]:
        """Iterates over the copies that a large reduction reads, and the reduction of them.

        A library multiplies what it sums.
        """
        (value,) = operands
        if not _is_large(value, equation.params["axes"]):
            yield operation
            return
        reads: list[Hashable] = []
        for one in self._factors.get(value.value, operands):
            if one.value in self._orders:
                yield from self._in_order(one, one.in_order, reads)
            else:
                reads.append(one.value)
        yield operation._replace(name="large_reduction", reads=reads)

    def complement(
        self, equation: JaxprEqn, operands: Sequence[Operand], operation: Operation
    ) -> Iterator[Operation]:
        """Iterates over ``erfc``, and the parts of its series that are read several times.

        These are ``exp(-x**2)`` and ``x**-2``.
        """
        del equation, operands
        (size,) = operation.results.values()
        parts = [object(), object()]
        for one in parts:
            yield Operation("part_of_series", operation.reads, {one: size})
        yield operation._replace(reads=[*operation.reads, *parts])


def _features_last(spec: Sequence[int]) -> Order:
    examples, features, *places = spec
    return (examples, *places, features)


def _is_large(value: Operand, axes: Sequence[int]) -> bool:
    """Whether an array is not reduced in a fusion."""
    devices = math.prod(value.aval.shape) / max(value.entries, 1)
    longest = max((value.aval.shape[axis] for axis in axes), default=1)
    return value.entries >= _LIBRARY_ENTRIES or longest / devices > _WINDOW


def _computation(equation: JaxprEqn, names: Mapping[Any, Hashable]) -> Hashable:
    """Returns what two equal equations have in common, or None."""
    if equation.effects or equation.primitive.name == "optimization_barrier":
        return None  # barriers keep equal computations apart
    reads = tuple(
        repr(one) if isinstance(one, Literal) else names.get(one, one) for one in equation.invars
    )
    kinds = tuple(one.aval for one in (*equation.invars, *equation.outvars))
    key = equation.primitive, tuple(equation.params.items()), reads, kinds
    try:
        hash(key)
    except TypeError:  # a parameter is an array
        return None
    return key


def _steps(equation: JaxprEqn, body: Jaxpr) -> Sequence[Any]:
    """Returns the inputs of a loop's body that are parts of arrays, one for each step."""
    if equation.primitive.name != "scan":
        return ()
    return body.invars[sum(scan_parts(equation.params)) :]


def _variables(values: Sequence[Any]) -> list[Any]:
    return [one for one in values if not isinstance(one, Literal)]


_EXPANDED: dict[str, Callable[..., Iterator[Operation]]] = {
    "conv_general_dilated": _Operations.convolution,
    "erfc": _Operations.complement,
    "select_and_scatter_add": _Operations.window_gradient,
    **dict.fromkeys(_REDUCTIONS, _Operations.reduction),
}
