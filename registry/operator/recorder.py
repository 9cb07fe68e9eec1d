"""Recording: operators called on named variables become OpDescs."""

import contextlib
import contextvars
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from registry.desc import SUB_BLOCK, OpDesc
from registry.errors import ArgumentError, UnknownTypeError, nearest
from registry.hooks import define
from registry.naming import EMPTY, matching
from registry.operator.attributes import from_plain, to_plain
from registry.operator.infer import Inference
from registry.operator.rule import Rule
from registry.operator.signature import Slot
from registry.shapes import canonical, scalar_dtype
from registry.symbolic import Symbolic
from registry.types import VarType
from registry.values import SelectedRows
from registry.var import Attributes, Inputs, Var

Types = tuple[VarType | None, ...]


class Called(Protocol):
    """The part of an operator's interface that recording uses."""

    name: str
    slots: tuple[Slot, ...]
    slot_names: tuple[str, ...]
    outputs: tuple[str, ...]
    visible: tuple[int, ...]
    hidden: frozenset[str]
    aliases: tuple[str, ...]
    attribute_index: dict[str, int]
    variadic_output: bool
    gradient_rule: Rule | None
    inference: Inference

    @property
    def promotes(self) -> bool:
        """Whether the gradient maker receives promoted inputs."""

    @property
    def derives_by_kernel(self) -> bool:
        """Whether JAX's derivative of the kernel equals the gradient that the maker composes."""

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Inputs, Attributes, str | None]:
        """Sorts a call's arguments."""

    def sized(self, count: int) -> Any:
        """Returns the operator for calls with ``count`` outputs."""

    def infer(self, types: Types, attributes: Attributes) -> tuple[VarType, ...]:
        """Returns the types of the outputs."""

    def slot_of(self, index: int) -> Slot:
        """Returns the slot that a flat input fills."""

    def __hash__(self) -> int:
        """Operators are hashable, to key caches."""

    def input_groups(self, inputs: Sequence[Any]) -> list[tuple[Slot, list[Any]]]:
        """Groups the inputs by slot."""

    def attribute_dict(self, attributes: Attributes) -> dict[str, Any]:
        """Returns the attributes by name."""


class Recorded(Symbolic):
    """A variable of the OpDescs that are being recorded, or a number, which has no name.

    Attributes:
        name: the variable's name; None for a number.
    """

    __slots__ = ("_constant", "_type", "name")

    def __init__(
        self,
        name: str | None,
        type: VarType | None,
        constant: bool | int | float | complex | None = None,
    ) -> None:
        """Creates a variable, possibly of unknown type; ``constant`` is the number filling it."""
        self.name, self._type, self._constant = name, type, constant

    @property
    def type(self) -> VarType:
        """Shape, dtype and kind.

        Raises:
            UnknownTypeError: they are not known.
        """
        if self._type is None:
            raise UnknownTypeError(
                f"{self.name}: its shape and dtype must be known here; pass block=, whose "
                "variables tell them"
            )
        return self._type

    @property
    def known_type(self) -> VarType | None:
        """Its type, or None if unknown."""
        return self._type

    @property
    def constant(self) -> bool | int | float | complex | None:
        """The number that fills it, or None."""
        return self._constant

    def require_name(self) -> str | None:
        """Returns its name in OpDescs; None for a number, which must be recorded first."""
        return self.name

    def __repr__(self) -> str:
        return f"<Recorded {self.name}: {self._type or 'unknown'}>"


class Recording:
    """OpDescs in the order of their calls."""

    def __init__(self, stem: str) -> None:
        """Starts empty; the names of temporaries begin with ``stem``."""
        self.ops: list[OpDesc] = []
        self._stem = stem

    def fresh(self, kind: str) -> str:
        """Returns a name for a temporary computed by an operator of type ``kind``."""
        return f"{self._stem}@{kind}_{len(self.ops)}"

    def variable(self, value: Any) -> str:
        """Returns the name of ``value``; numbers are recorded as ``full``."""
        name = value.require_name() if isinstance(value, Recorded) else None
        if name is not None:
            return name
        number = value.constant if isinstance(value, Recorded) else value
        attrs: dict[str, Any] = {"shape": [], "fill_value": to_plain(_number(number))}
        if isinstance(value, Recorded):
            attrs |= {"shape": list(value.shape), "dtype": to_plain(value.dtype)}
        elif hasattr(value, "dtype"):
            attrs |= {"dtype": to_plain(np.dtype(value.dtype))}
        name = self.fresh("full")
        self.ops.append(OpDesc("full", {}, {"out": [name]}, attrs))
        return name


def _number(value: Any) -> bool | int | float | complex:
    array = np.asarray(value)
    if array.shape != ():
        raise ArgumentError(
            f"record: an array in a gradient maker must be a number, got shape {array.shape}"
        )
    number: bool | int | float | complex = array.item()
    return number


_recording: contextvars.ContextVar[Recording] = contextvars.ContextVar("recording")


@contextlib.contextmanager
def recording_into(recording: Recording) -> Iterator[None]:
    """Appends operators called on recorded variables inside the context to ``recording``."""
    token = _recording.set(recording)
    try:
        yield
    finally:
        _recording.reset(token)


class _RecordingEmitter:
    """Appends an OpDesc for each operator that is called on recorded variables."""

    def emit(
        self, operator: Called, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        recording = _recording.get()
        filled = {
            slot.name: [recording.variable(one) for one in values]
            for slot, values in operator.input_groups(inputs)
            if values
        }
        stem = recording.fresh(operator.name)
        single = len(operator.outputs) == 1
        names = [stem if single else f"{stem}.{one}" for one in operator.outputs]
        attrs = {k: to_plain(v) for k, v in operator.attribute_dict(attributes).items()}
        outputs = {key: [one] for key, one in zip(operator.outputs, names, strict=True)}
        recording.ops.append(OpDesc(operator.name, filled, outputs, attrs, name))
        types = inferred(operator, inputs, attributes)
        results = [Recorded(*one) for one in zip(names, types, strict=True)]
        shown = [results[i] for i in operator.visible]
        return shown[0] if len(shown) == 1 else tuple(shown)

    def filled(self, value: bool | int | float | complex, type: VarType) -> Recorded:
        return Recorded(None, type, value)


define(Recorded, emitter=_RecordingEmitter())


def inferred(operator: Called, inputs: Sequence[Any], attributes: Attributes) -> Types:
    """Returns the types of the outputs; unknown if the type of an input is unknown."""
    unknown = (None,) * len(operator.outputs)
    if any(isinstance(one, Recorded) and one.known_type is None for one in inputs):
        return unknown
    return operator.infer(tuple(map(type_of_value, inputs)), attributes)


def type_of_value(value: Any) -> VarType | None:
    """Returns the type of a variable, number or array; None for an absent input."""
    if value is None or isinstance(value, (Var, SelectedRows)):
        return None if value is None else value.type
    if isinstance(value, (int, float, complex)) and not isinstance(value, (bool, np.generic)):
        return VarType((), scalar_dtype(value), weak=True)
    array = value if hasattr(value, "dtype") else np.asarray(value)
    return VarType(tuple(array.shape), canonical(array.dtype))


# Calls described by OpDescs --------------------------------------------------------------------


def slots_of(operator: Called, desc: OpDesc) -> dict[str, list[str]]:
    """Returns the names in each slot of ``operator`` that ``desc`` fills.

    Raises:
        ArgumentError: the operator has no such slot.
    """
    return _matched(operator.name, "slot", operator.slot_names, desc.inputs)


def outputs_of(operator: Called, desc: OpDesc) -> dict[str, list[str]]:
    """Returns the names in each output of ``operator`` that ``desc`` names.

    Raises:
        ArgumentError: the operator has no such output.
    """
    names = operator.outputs
    if operator.variadic_output and len(desc.outputs) >= len(names):
        names = (*operator.sized(len(desc.outputs)).outputs, *names)
    return _matched(operator.name, "output", names, desc.outputs)


def _matched(
    owner: str, what: str, legal: Sequence[str], variables: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for key, names in variables.items():
        slot = matching(key, list(dict.fromkeys(legal)))
        if slot is None:
            raise ArgumentError(
                f"{owner}: the {what}s must be among {', '.join(dict.fromkeys(legal)) or 'none'}, "
                f"got {key!r}{nearest(key, legal)}"
            )
        if slot in result:
            raise ArgumentError(f"{owner}: {what} {slot!r} must be filled once, got it twice")
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise ArgumentError(
                f"{owner}: {what} {key!r} must hold a list of variable names, got {names!r}"
            )
        result[slot] = list(names)
    return result


def arguments_of(
    operator: Called, slots: Mapping[str, list[str]], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the arguments of a call, by slot, from the values of variables.

    Raises:
        ArgumentError: a slot for one variable has several.
    """
    arguments: dict[str, Any] = {}
    for slot in operator.slots:
        names = [name for name in slots.get(slot.name, []) if name != EMPTY]
        if len(names) > 1 and not slot.variadic:
            raise ArgumentError(
                f"{operator.name}: slot {slot.name!r} must hold one variable, got {len(names)}"
            )
        if names:
            each = [values[name] for name in names]
            arguments[slot.name] = each if slot.variadic else each[0]
    return arguments


def checked_call(operator: Called, desc: OpDesc) -> dict[str, list[str]]:
    """Returns the names in each slot of the call that ``desc`` describes.

    Raises:
        ArgumentError: ``desc`` belongs to another operator, or a slot, an output or an attribute is
            unknown or missing.
        AttributeTypeError, AttributeValueError: an attribute's value is not allowed.
    """
    if desc.type not in (operator.name, *operator.aliases):
        raise ArgumentError(
            f"{operator.name}: an OpDesc of this operator must be given, got one of {desc.type!r}"
        )
    slots = slots_of(operator, desc)
    outputs_of(operator, desc)
    attributes = attributes_of(desc)
    for name in attributes:
        if name not in operator.attribute_index:
            legal = list(operator.attribute_index)
            raise ArgumentError(
                f"{operator.name}: the attributes must be among {', '.join(legal) or 'none'}, got "
                f"{name!r}{nearest(name, legal)}"
            )
    names = {name: name for filled in slots.values() for name in filled}
    operator.bind((), {**arguments_of(operator, slots, names), **attributes})
    return slots


def named_results(
    operator: Called, outputs: Mapping[str, list[str]], result: Any
) -> dict[str, Any]:
    """Maps the names that an OpDesc gives to outputs to the results of a call.

    Raises:
        ArgumentError: an output is not visible, or the number of its names is wrong.
    """
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    called = operator.sized(len(results) + len(operator.hidden))
    by_output = {called.outputs[i]: one for i, one in zip(called.visible, results, strict=True)}
    named: dict[str, Any] = {}
    for key, names in outputs.items():
        values = [by_output[key]] if key in by_output else []
        if operator.variadic_output and key == operator.outputs[-1]:
            values = [one for name, one in by_output.items() if name not in operator.outputs]
        if names and len(names) != len(values):
            raise ArgumentError(
                f"{operator.name}: output {key!r} must name {len(values)} variables, got "
                f"{len(names)}"
            )
        named.update(zip(names, values, strict=False))
    named.pop(EMPTY, None)
    return named


def attributes_of(desc: OpDesc) -> dict[str, Any]:
    """Returns the attributes of ``desc`` as values.

    Raises:
        ArgumentError: one is not a plain value, or is a reference to a block of a program.
    """
    return {key: _attribute(desc, key, value) for key, value in desc.attrs.items()}


def _attribute(desc: OpDesc, key: str, plain: Any) -> Any:
    if isinstance(plain, dict) and set(plain) == {SUB_BLOCK}:
        raise ArgumentError(
            f"{desc.type}: attribute {key!r} must be known without a program, got block "
            f"{plain[SUB_BLOCK]!r} of one; append_backward and so.grad differentiate the call there"
        )
    try:
        return from_plain(plain)
    except ValueError as error:
        raise ArgumentError(f"{desc.type}: attribute {key!r} {error}") from None


def gradient_value(gradient: Any) -> Any:
    """Returns a gradient from a maker's result, calling it if it is a function."""
    is_thunk = callable(gradient) and not isinstance(gradient, Var)
    return gradient() if is_thunk else gradient
