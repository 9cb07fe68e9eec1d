"""Compiled programs shared by graphs that differ only in numbers, which become operands.

The numbers are the attributes that an operator declares as ``float`` and the constants of a graph.
The first few distinct numbers get programs of their own, in which XLA sees them as constants. After
that, the numbers that vary become operands of one shared program.

An attribute may become an operand if the kernel computes with it. This is determined by tracing
the kernel with a ``Number`` in its place (see ``recorded_numbers``). What Python computes from it,
such as ``1 - mu``, becomes an operand, and a comparison divides the numbers into those for which
the kernel takes one path and those for which it takes another. JAX's functions accept no
``Number``; where a kernel passes an attribute to one of them, a tracer takes its place. JAX does
not compute in double precision, so such an attribute must keep its digits before it meets an array:
``mu * lr`` does, ``1 - mu`` does not. Otherwise it stays part of the program, as does a number
whose value the kernel needs. Gradient makers see the attribute itself; what they compute from it
are attributes and constants of another graph.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend import core

from registry.caches import Jitted, Memo
from registry.operator.attributes import identity_key
from registry.operator.infer import abstract
from registry.operator.operator import Operator
from registry.primitives import called_by, inner_jaxprs, primitives_named
from registry.types import TRAINING_TYPE, VarType
from registry.var import Attributes
from symop.graph.nodes import CONSTANT, Node
from symop.lowering.recorded_numbers import Record, attribute_at, is_exactly, value_of

VARIETY = 4
"""The number of distinct numbers after which further ones become operands."""
_EXACT = primitives_named(
    *("abs", "broadcast_in_dim", "convert_element_type", "copy", "div", "max", "min", "mul"),
    *("neg", "reshape", "sign", "sqrt", "squeeze", "stop_gradient"),
)
"""JAX's primitives that lose no digits for any numbers."""
_LEAST, _MOST = 1e-18, 1e18
"""The bounds between which the product of two numbers is representable in single precision."""
Numbers = tuple[float, ...]
Places = tuple[int, ...]


# Selecting numbers ------------------------------------------------------------------------------


class _Number:
    """A placeholder for a number in a key."""

    def __repr__(self) -> str:
        return "NUMBER"


NUMBER = _Number()


def number_places(operator: Operator, attributes: Attributes) -> Places:
    """Returns the attributes of a call that are declared as numbers."""
    return tuple([i for i in operator.number_indices if type(attributes[i]) is float])


def without_numbers(attributes: Attributes, places: Places) -> Any:
    """Returns a key of ``attributes`` that is independent of the numbers at ``places``."""
    if not places:
        return identity_key(attributes)
    left = tuple([NUMBER if i in places else one for i, one in enumerate(attributes)])
    return identity_key(left)


def with_numbers(attributes: Attributes, places: Sequence[int], numbers: Sequence[Any]) -> Any:
    """Returns ``attributes`` with other values at ``places``."""
    changed = list(attributes)
    for i, one in zip(places, numbers, strict=True):
        changed[i] = one
    return tuple(changed)


class Reading:
    """The use that a kernel makes of the numbers among its attributes.

    Attributes:
        places: The attributes that are not constants of the program.
    """

    def __init__(
        self,
        operator: Operator,
        traced: Places = (),
        recorded: Places = (),
        records: Sequence[Record] = (),
    ) -> None:
        """Creates the reading of a kernel.

        The attributes at ``traced`` are operands. From those at ``recorded``, the kernel computes
        operands as ``records`` say.
        """
        self._operator, self._traced, self._recorded = operator, traced, recorded
        needed = set[int]().union(*[record.needed for record in records])
        self.places = tuple(sorted({*traced, *recorded} - needed))
        self._tests = [test for record in records for test in record.tests.values()]
        read = {key: one for record in records for key, one in record.read.items()}
        self._index = {key: i for i, key in enumerate(read, len(traced))}
        self._operands = [*map(attribute_at, traced), *read.values()]

    def __len__(self) -> int:
        """Returns the number of operands."""
        return len(self._operands)

    def fixed(self, places: Places, attributes: Attributes) -> "Reading":
        """Returns this reading, for the present values of the attributes at ``places``."""
        self._tests += [(is_exactly(i, attributes[i]), True) for i in places]
        return self

    def values(self, attributes: Attributes) -> Numbers | None:
        """Returns the operands for ``attributes``; None if the kernel takes another path."""
        try:
            for test, expected in self._tests:
                if value_of(test, attributes) is not expected:
                    return None
            values = tuple([value_of(one, attributes) for one in self._operands])
        except (ArithmeticError, TypeError):  # TypeError: a root of a negative number is compared
            return None
        return values if all(type(one) is float for one in values) else None

    def arguments(self, attributes: Attributes, operands: Sequence[Any]) -> dict[str, Any]:
        """Returns arguments of the kernel, by name, that hold ``operands``."""
        names = [one.name for one in self._operator.attributes]
        record = Record(lambda one: operands[self._index[identity_key(one)]])
        result = {names[i]: one for i, one in zip(self._traced, operands, strict=False)}
        result |= {names[i]: record.number(i, attributes[i]) for i in self._recorded}
        return result


_PATHS = 8
"""The number of paths through a kernel after which no further ones are distinguished."""
_known: Memo[Any, list[Reading]] = Memo()


def reading_of(
    operator: Operator,
    places: Places,
    attributes: Attributes,
    types: tuple[VarType | None, ...],
) -> tuple[Reading, Numbers]:
    """Returns what the kernel reads of the numbers at ``places``, and the operands.

    A program with these operands computes what the kernel does for ``attributes``. A number whose
    value the kernel needs, such as one that determines a shape, is not among the reading's places.
    """
    x64 = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]  # set at run time
    key = operator, places, without_numbers(attributes, places), types, x64
    known = _known.get(key)
    if known is None:
        known = _known.put(key, [])
    for one in known:
        values = one.values(attributes)
        if values is not None:
            return one, values
    if len(known) >= _PATHS:
        always = set(places).intersection(*[one.places for one in known])
        return reading_of(operator, tuple(sorted(always)), attributes, types)
    reading = _find(operator, places, attributes, types)
    constants = tuple([i for i in places if i not in reading.places])
    known.append(reading.fixed(constants, attributes))
    return reading, reading.values(attributes) or ()


def _find(
    operator: Operator,
    places: Places,
    attributes: Attributes,
    types: tuple[VarType | None, ...],
) -> Reading:
    """Returns the reading with all ``places``, or with those that work together."""
    call = operator, attributes, types
    result = _read(*call, (), places)
    if result is not None and result.places == places:
        return result
    result = _read(*call, places, ()) or result
    if result is not None:
        return result
    traced: Places = ()
    recorded: Places = ()
    result = Reading(operator)
    for place in places if len(places) > 1 else ():
        more = _read(*call, traced, (*recorded, place))
        if more is None:
            more = _read(*call, (*traced, place), recorded)
            traced = traced if more is None else (*traced, place)
        else:
            recorded = (*recorded, place)
        result = more or result
    return result


def _read(
    operator: Operator,
    attributes: Attributes,
    types: tuple[VarType | None, ...],
    traced: Places,
    recorded: Places,
) -> Reading | None:
    """Returns the reading with these places; None if they cannot all be other than constants."""
    if not traced and not recorded:
        return None
    flags = (False,) if operator.training_index is None else (False, True)
    try:
        outputs = operator.infer(types, attributes)
        programs = [_traced(operator, attributes, types, traced, recorded, one) for one in flags]
    except Exception:  # it needs the value: Python branches on it or uses it in a shape
        return None
    expected = [(one.shape, one.dtype) for one in outputs]
    for program, _ in programs:
        if [(tuple(one.shape), one.dtype) for one in program.out_avals] != expected:
            return None
        given = [i <= len(traced) for i in range(len(program.jaxpr.invars))]
        if traced and _followed(program.jaxpr, given) is None:
            return None
    return Reading(operator, traced, recorded, [record for _, record in programs])


def _traced(
    operator: Operator,
    attributes: Attributes,
    types: tuple[VarType | None, ...],
    traced: Places,
    recorded: Places,
    training: bool,
) -> tuple[Any, Record]:
    """Returns the kernel's closed jaxpr, and what it does with the attributes at ``recorded``.

    The first inputs are the attributes at ``traced`` and one number in place of all operands.
    """
    records = []

    def run(numbers: Sequence[Any], stand_in: Any, *arrays: Any) -> Any:
        supply = iter(arrays)
        inputs = [
            None if one is None else training if one is TRAINING_TYPE else next(supply)
            for one in types
        ]
        record = Record(lambda _: stand_in)
        records.append(record)
        arguments = [*numbers, *[record.number(i, attributes[i]) for i in recorded]]
        places = (*traced, *recorded)
        return operator.run(tuple(inputs), with_numbers(attributes, places, arguments))

    present = [abstract(one) for one in types if one is not None and one is not TRAINING_TYPE]
    jaxpr = jax.make_jaxpr(run)([attributes[i] for i in traced], 1.0, *present)
    return jaxpr, records[-1]


def _followed(jaxpr: Any, given: Sequence[bool]) -> list[bool] | None:
    """Returns which results depend only on numbers, given which inputs are numbers.

    The result is None if digits may be lost before numbers meet an array.
    """
    numbers = {var for var, one in zip(jaxpr.invars, given, strict=True) if one}
    arrays = {var for var, one in zip(jaxpr.invars, given, strict=True) if not one}
    for equation in jaxpr.eqns:
        read = [one for one in equation.invars if not isinstance(one, core.Literal)]
        if numbers.isdisjoint(read):
            if not arrays.isdisjoint(read):
                arrays.update(equation.outvars)
            continue
        inner = called_by(equation)
        if inner is not None:
            found = _followed(inner, [_is_of(one, numbers) for one in equation.invars])
            if found is None:
                return None
            pairs = zip(equation.outvars, found, strict=True)
            for var, one in pairs:
                (numbers if one else arrays).add(var)
        elif not arrays.isdisjoint(read):
            if any(True for _ in inner_jaxprs(equation)):
                return None  # such as a loop, in whose body they may meet in other ways
            arrays.update(equation.outvars)
        elif equation.primitive in _EXACT:
            # An operand whose type is not weak was made by JAX, in its own precision.
            for var in equation.outvars:
                (numbers if var.aval.weak_type else arrays).add(var)
        else:
            return None
    return [_is_of(one, numbers) for one in jaxpr.outvars]


def _is_of(one: Any, numbers: set[Any]) -> bool:
    return not isinstance(one, core.Literal) and one in numbers


# Forms of programs -------------------------------------------------------------------------------


class Form(NamedTuple):
    """The structure of a program, separate from its numbers.

    Attributes:
        structure: A key that is equal for programs that differ only in numbers.
        skeleton: A key that is equal for programs of the same calls, regardless of their types and
            attributes.
        numbers: The numbers of the program.
        places: The location of each number: a node and the index of its attribute.
    """

    structure: Any
    skeleton: Any
    numbers: Numbers
    places: list[tuple[Node, int]]


def form_of(order: Sequence[Node], inputs: Sequence[Node], outputs: Sequence[Node]) -> Form:
    """Returns the form of a graph over ``inputs`` whose other nodes are ``order``."""
    index = {node: i for i, node in enumerate([*inputs, *order])}
    wiring = [tuple([None if x is None else index[x] for x in node.inputs]) for node in order]
    places = [(node, i) for node in order for i in _places(node)]
    ends = tuple([index[node] for node in outputs])
    types = tuple([node.type for node in inputs])
    steps = tuple([(one.op, _key_of(one), at) for one, at in zip(order, wiring, strict=True)])
    skeleton = tuple([(one.op, at) for one, at in zip(order, wiring, strict=True)])
    numbers = tuple([node.attributes[i] for node, i in places])
    return Form((steps, types, ends), (skeleton, ends), numbers, places)


def _places(node: Node) -> Places:
    if isinstance(node.op, Operator):
        return number_places(node.op, node.attributes) if node.attributes else ()
    return (0,) if node.op is CONSTANT and type(node.attributes[0]) is float else ()


def _key_of(node: Node) -> Any:
    """Returns a key of a node without its inputs and its numbers."""
    key = without_numbers(node.attributes, _places(node)) if node.attributes else ()
    return (key, node.types) if node.op is CONSTANT else key


# Shared programs --------------------------------------------------------------------------------


class Choice(NamedTuple):
    """The numbers of a program that are not its constants.

    Attributes:
        places: The indices of these numbers.
        readings: What is read of them, which identifies the program in caches.
        operands: The numbers that the program takes after its values.
    """

    places: Places = ()
    readings: tuple[Any, ...] = ()
    operands: Numbers = ()


ALL_CONSTANT = Choice()
Make = Callable[[Choice], Jitted]
"""Makes the program of the present numbers."""
Choose = Callable[[Places], Choice]
"""Makes a choice among the present numbers at the given places."""


def choosing(
    operator: Operator,
    attributes: Attributes,
    places: Places,
    types: Callable[[], tuple[VarType | None, ...]],
) -> Choose:
    """Returns how a call of ``operator`` chooses among its numbers, which are at ``places``.

    The choice contains one reading, or none.
    """

    def choose(among: Places) -> Choice:
        chosen = tuple([places[i] for i in among])
        reading, operands = reading_of(operator, chosen, attributes, types())
        indices = tuple([places.index(i) for i in reading.places])
        return Choice(indices, (reading,), operands) if indices else ALL_CONSTANT

    return choose


class Family:
    """The compiled programs that differ only in numbers."""

    def __init__(self) -> None:
        """Creates a family without programs."""
        self._own: dict[Any, tuple[Numbers, Jitted]] = {}
        self._places: Places = ()
        self._shared: Memo[Any, Jitted] = Memo(64)

    def chosen(self, numbers: Numbers, make: Make, choose: Choose) -> tuple[Jitted, Numbers]:
        """Returns the program of ``numbers``, and the numbers that it takes after its values."""
        key = identity_key(numbers)
        own = self._own.get(key)
        if own is not None:
            return own[1], ()
        if len(self._own) < VARIETY:
            return self._own.setdefault(key, (numbers, make(ALL_CONSTANT)))[1], ()
        self._widen(numbers)
        choice = choose(tuple([i for i in self._places if _is_ordinary(numbers[i])]))
        rest = with_numbers(numbers, choice.places, [0.0] * len(choice.places))
        known = choice.places, choice.readings, identity_key(rest)
        shared = self._shared.get(known)
        if shared is None:
            shared = self._shared.put(known, make(choice))
        return shared, choice.operands

    def _widen(self, numbers: Numbers) -> None:
        """Makes the numbers operands that are new at their positions."""
        if len(self._places) == len(numbers):
            return
        fixed = [i for i in range(len(numbers)) if i not in self._places]
        others = [one for one, _ in self._own.values()]
        new = [i for i in fixed if all(_differ(one[i], numbers[i]) for one in others)]
        self._places = tuple(sorted([*self._places, *new]))


def _differ(one: float, other: float) -> bool:
    return bool(identity_key(one) != identity_key(other))


def _is_ordinary(number: float) -> bool:
    """Whether single precision can represent a number and its products with other such numbers."""
    return number == 0 or not math.isfinite(number) or _LEAST < abs(number) < _MOST
