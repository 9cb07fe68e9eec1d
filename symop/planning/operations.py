"""The operations that XLA's CPU backend makes of a jaxpr that is split over devices.

Equal equations are one operation. A convolution reads arrays whose axes are in one order: examples,
places and features, and of weights places, inputs and outputs (conv_canonicalization.cc); arrays
in another order are copied. The gradient of the largest entries of windows first finds where they
are, among arrays that number the entries along each axis (select_and_scatter_expander.cc). Large
sums are computed by a library or in windows (tree_reduction_rewriter.cc), and read arrays whose
axes are in their own order. Each device holds a sum over devices besides its own part.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jax.extend.core import Jaxpr, JaxprEqn, Literal

from registry.primitives import (
    ENTRYWISE,
    REDUCTION_NAMES,
    called_by,
    inner_jaxprs,
    scan_parts,
)
from registry.types import is_floating
from registry.xla.barrier import barrier_p
from symop.planning import liveness
from symop.planning.liveness import SERIES_PART, TRANSPOSED_COPY, Operation
from symop.planning.propagation import Walk, shape_of, variables_among

_INDEX_BYTES = 4
_LIBRARY_ENTRIES = 4096
"""The least number of entries that a library sums; found among compiled steps."""
_WINDOW = 32
"""The length of an axis above which it is summed in windows."""
_ALL_REDUCE = "all-reduce"
_FACTORS = frozenset({"integer_pow", "mul", "square"})

Order = tuple[int, ...]
"""The axes of an array, the slowest first."""


class Operand(NamedTuple):
    """What an equation reads.

    Attributes:
        value: the value.
        dtype: its dtype.
        shape: the shape of the part that each device has.
        bytes: the size of that part.
    """

    value: Hashable
    dtype: Any
    shape: tuple[int, ...]
    bytes: int

    @property
    def index_bytes(self) -> int:
        """The size of an array of as many indices."""
        return math.prod(self.shape) * _INDEX_BYTES


def most_held(walk: Walk, jaxpr: Jaxpr) -> int:
    """Returns the most bytes that each device holds of results of ``jaxpr`` at once.

    Args:
        walk: a walk through ``jaxpr``.
        jaxpr: what is computed.
    """
    names: dict[Any, Hashable] = {}
    return _held(list(_Operations(inside=False).of(walk, jaxpr, names)), names, jaxpr)


def _held_inside(walk: Walk, equation: JaxprEqn, body: Jaxpr) -> int:
    """Returns the most bytes of results of ``body``, which an equation runs."""
    sliced: Sequence[Any] = ()  # the inputs that are parts of arrays, one for each step
    if equation.primitive.name == "scan":
        sliced = body.invars[sum(scan_parts(equation.params)) :]
    names: dict[Any, Hashable] = {one: object() for one in sliced}
    operations = [Operation("dynamic_slice", (), {names[o]: walk.bytes_of(o)}) for o in sliced]
    operations += _Operations(inside=True).of(walk, body, names)
    return _held(operations, names, body)


def _held(operations: Sequence[Operation], names: Mapping[Any, Hashable], jaxpr: Jaxpr) -> int:
    outputs = {names[one] for one in variables_among(jaxpr.outvars) if one in names}
    return liveness.most_held(_combined(operations), outputs)


def _combined(operations: Sequence[Operation]) -> list[Operation]:
    """Returns the operations, of which one sums over devices all that no other reads.

    XLA combines the sums of gradients, which only the caller reads.
    """
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
    """The operations of a step, whose equations share results and copies.

    Convolutions inside of loops and branches read operands in any order: XLA rewrites those of the
    main computation alone.
    """

    def __init__(self, *, inside: bool) -> None:
        self._inside = inside
        self._known: dict[Hashable, list[Hashable]] = {}  # the results of equations
        self._copies: dict[tuple[Hashable, Order], Hashable] = {}
        # The orders in which convolutions write results, and in which fusions compute from those.
        # Another convolution reads a result itself; but a fusion writes copies for its readers.
        self._convolved: dict[Hashable, Order] = {}
        self._orders: dict[Hashable, Order] = {}
        self._factors: dict[Hashable, Sequence[Operand]] = {}  # of products entry by entry

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
            key = _computation(walk, equation, names)
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
        inside = {one: _named(o, names) for one, o in pairs}
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
            Operand(_named(o, names), _dtype(o), walk.shape_of(o), walk.bytes_of(o))
            for o in equation.invars
        ]
        sums = {
            result: object()
            for result, one in zip(results, equation.outvars, strict=True)
            if walk.is_sum(one)
        }
        sizes = dict(zip(results, map(walk.bytes_of, equation.outvars), strict=True))
        bodies = [
            _held_inside(inner, equation, one)
            for one in inner_jaxprs(equation)
            if (inner := walk.inner(equation, one)) is not None
        ]
        besides = walk.bytes_received(equation) + max(bodies, default=0)
        own = {sums.get(one, one): size for one, size in sizes.items()}
        name, reads = equation.primitive.name, [one.value for one in operands]
        operation = Operation(name, reads, own, besides, bool(equation.effects))
        self._follow(equation, operands, operation)
        expand: _Expand = _EXPANDED.get(name, _Operations.itself)
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
        length = len(shape_of(equation.outvars[0]))
        for one in operands:
            if one.value in self._orders and len(one.shape) == length:
                self._orders[result] = self._orders[one.value]
                return

    def _in_order(self, operand: Operand, order: Order) -> tuple[Hashable, list[Operation]]:
        """Returns the array to read for an operand, and the operations that write it first."""
        value = operand.value
        if order == self._convolved.get(value) or order == self._order_of(operand) == _own(operand):
            return value, []
        copy = self._copies.get((value, order))
        if copy is not None:
            return copy, []
        copy = self._copies[value, order] = object()
        return copy, [Operation(TRANSPOSED_COPY, [value], {copy: operand.bytes})]

    def _order_of(self, operand: Operand) -> Order:
        return self._orders.get(operand.value, _own(operand))

    def _read(
        self, operation: Operation, operands: Sequence[Operand], orders: Iterable[Order]
    ) -> Iterator[Operation]:
        """Iterates over what writes operands in these orders, and the operation that reads them."""
        reads, first = list[Hashable](), list[Operation]()
        for one, order in zip(operands, orders, strict=True):
            value, writing = self._in_order(one, order)
            reads.append(value)
            first += writing
        yield from (*first, operation._replace(reads=reads))

    def itself(
        self, equation: JaxprEqn, operands: Sequence[Operand], operation: Operation
    ) -> Iterator[Operation]:
        """Iterates over the operation alone."""
        del equation, operands
        yield operation

    def convolution(
        self, equation: JaxprEqn, operands: Sequence[Operand], operation: Operation
    ) -> Iterator[Operation]:
        """Iterates over the copies of operands, and the convolution of them."""
        if self._inside:
            yield operation
            return
        numbers = equation.params["dimension_numbers"]
        outputs, inputs, *places = numbers.rhs_spec
        orders = _features_last(numbers.lhs_spec), (*places, inputs, outputs)
        (result,) = operation.results
        self._convolved[result] = self._orders[result] = _features_last(numbers.out_spec)
        yield from self._read(operation, operands, orders)

    def window_gradient(
        self, equation: JaxprEqn, operands: Sequence[Operand], operation: Operation
    ) -> Iterator[Operation]:
        """Iterates over the operations that add a gradient where windows have their maxima."""
        del equation
        gradient, value = operands
        ((result, size),) = operation.results.items()
        axes = len(value.shape)
        filled, found, joined, *numbers = [object() for _ in range(3 + axes)]
        yield Operation("fill", [], {filled: size})
        for one in numbers:
            yield Operation("numbering", [], {one: value.index_bytes})
        places = {found: gradient.bytes + axes * gradient.index_bytes}
        reads = [value.value, *numbers]
        yield Operation("reduce_window", reads, places, operation.besides)
        yield Operation("joined_indices", [found], {joined: axes * gradient.index_bytes})
        yield Operation("scatter", [filled, joined, gradient.value], {result: size})

    def reduction(
        self, equation: JaxprEqn, operands: Sequence[Operand], operation: Operation
    ) -> Iterator[Operation]:
        """Iterates over the copies that a large reduction reads, and the reduction of them."""
        (value,) = operands
        by_library = (
            operation.name == "reduce_sum"
            and is_floating(value.dtype)
            and math.prod(value.shape) >= _LIBRARY_ENTRIES
        )
        if by_library:
            operands = self._factors.get(value.value, operands)  # it multiplies what it sums
        elif not any(value.shape[axis] > _WINDOW for axis in equation.params["axes"]):
            yield operation
            return
        large = operation._replace(name="large_reduction")
        yield from self._read(large, operands, map(_own, operands))

    def complementary_error(
        self, equation: JaxprEqn, operands: Sequence[Operand], operation: Operation
    ) -> Iterator[Operation]:
        """Iterates over ``erfc``, and ``exp(-x**2)`` and ``x**-2``, which its series reads."""
        del equation, operands
        (size,) = operation.results.values()
        parts = [object(), object()]
        for one in parts:
            yield Operation(SERIES_PART, operation.reads, {one: size})
        yield operation._replace(reads=[*operation.reads, *parts])


def _own(operand: Operand) -> Order:
    """Returns the order of the axes of an array that was not transposed."""
    return tuple(range(len(operand.shape)))


def _features_last(spec: Sequence[int]) -> Order:
    examples, features, *places = spec
    return (examples, *places, features)


def _dtype(value: Any) -> Any:
    return value.aval.dtype


def _named(value: Any, names: Mapping[Any, Hashable]) -> Hashable:
    """Returns what a value of a jaxpr is called; equal literals are called alike."""
    return (repr(value), value.aval) if isinstance(value, Literal) else names.get(value, value)


def _computation(walk: Walk, equation: JaxprEqn, names: Mapping[Any, Hashable]) -> Hashable:
    """Returns what two equal equations have in common, or None."""
    if equation.effects or equation.primitive is barrier_p:
        return None  # a barrier keeps apart what follows it
    reads = tuple(_named(one, names) for one in equation.invars)
    results = tuple((one.aval, walk.of(one)) for one in equation.outvars)
    key = equation.primitive, tuple(equation.params.items()), reads, results
    try:
        hash(key)
    except TypeError:  # a parameter is an array
        return None
    return key


_Expand = Callable[[_Operations, JaxprEqn, Sequence[Operand], Operation], Iterator[Operation]]
_EXPANDED: dict[str, _Expand] = {
    "conv_general_dilated": _Operations.convolution,
    "erfc": _Operations.complementary_error,
    "select_and_scatter_add": _Operations.window_gradient,
    **dict.fromkeys(REDUCTION_NAMES, _Operations.reduction),
}
