"""Signature: the slots and attributes of an operator, and the binding of a call's arguments."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from registry.errors import ArgumentError, DeclarationError, nearest
from registry.foreign_names import keyword_elsewhere
from registry.operator.attributes import REQUIRED, Attribute
from registry.operator.signature import Slot
from registry.var import Attributes, Inputs


class _Left:
    """The placeholder in an input slot that a call left out, until the emitter fills it."""

    def __repr__(self) -> str:
        return "LEFT_OUT"


LEFT_OUT = _Left()


class NewVariable(NamedTuple):
    """The placeholder in an input slot that a call leaves to a new variable with an initializer."""

    initial: Any


def is_new(value: Any) -> bool:
    """Whether a call leaves a slot to a new variable, if the slot is one of a parameter."""
    return value is LEFT_OUT or type(value) is NewVariable


INITIAL = "_initial"
"""The end of keywords that give the initializer of a new variable."""


class Signature:
    """The inputs and attributes that calls of an operator take.

    Attributes:
        name: the operator's name, for messages.
        slots: its input slots; a variadic one is the last.
        attributes: its attributes, in declared order.
        leading: attributes that precede the inputs in a positional call.
        positional: the slots that a call fills by position, in that order.
        number_indices: the attributes that may hold a number, by their declaration.
    """

    def __init__(
        self,
        name: str,
        slots: tuple[Slot, ...],
        attributes: tuple[Attribute, ...],
        leading: Sequence[str] = (),
        order: Sequence[str] | None = None,
    ) -> None:
        """Precomputes data for all calls; ``order`` lists the slots by position in a call."""
        self.name, self.slots, self.attributes = name, slots, attributes
        self.slot_names = tuple(slot.name for slot in slots)
        self.slot_index = {name: i for i, name in enumerate(self.slot_names)}
        self.attribute_index = {a.name: i for i, a in enumerate(attributes)}
        self.number_indices = tuple(i for i, a in enumerate(attributes) if a.is_number)
        self.leading = tuple(leading)
        self._check()
        self.variadic = bool(slots) and slots[-1].variadic
        self.n_fixed = len(slots) - self.variadic
        explicit = [slot.name for slot in slots if not slot.implicit]
        self.positional = tuple(slots[self.slot_index[name]] for name in order or explicit)
        self.spreads = self.variadic and self.positional[-1].variadic
        self.use_flags = {
            self.slot_index[slot.name]: self.attribute_index[f"use_{slot.name}"]
            for slot in slots
            if f"use_{slot.name}" in self.attribute_index
        }
        self._required = tuple(
            one for one in self.positional if not (one.optional or one.created or one.variadic)
        )
        roles = [slot.role for slot in slots]
        self.training_index = roles.index("training") if "training" in roles else None
        self.creates = any(slot.created for slot in slots)
        self.fillable = self.creates or any(slot.implicit for slot in slots)
        plain = all(s.role == "input" and not (s.optional or s.variadic) for s in slots)
        self.defaults = tuple(attribute.default for attribute in attributes)
        in_order = self.positional == slots and not self.leading
        direct = plain and in_order and REQUIRED not in self.defaults
        self.direct_count = len(slots) if direct else -1

    def _check(self) -> None:
        for i, slot in enumerate(self.slots):
            if slot.variadic and i + 1 < len(self.slots):
                raise DeclarationError(f"{self.name}: the variadic slot must be the last one")
        for name in self.leading:
            if name not in self.attribute_index:
                raise DeclarationError(
                    f"{self.name}: a leading attribute must be declared, got {name!r}"
                )
        twice = [name for name in self.slot_names if name in self.attribute_index]
        if twice or len(self.slot_index) < len(self.slots):
            names = sorted(twice or self.slot_names)
            raise DeclarationError(f"{self.name}: slots and attributes must differ, got {names}")

    # Calls

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Inputs, Attributes, str | None]:
        """Sorts arguments into inputs (flat, ``LEFT_OUT`` where absent), attributes and name."""
        filled: dict[str, Any] = {}
        rest: tuple[Any, ...] = ()
        attrs, args = self._led(args, kwargs)
        fixed = self.positional[: len(self.positional) - self.spreads]
        if len(args) == len(self._required) < len(fixed) and not kwargs.keys() & self.slot_index:
            fixed = self._required  # the others are left to new variables
        for slot, value in zip(fixed, args, strict=False):
            if slot.variadic:
                rest = self._listed(slot, value)
            else:
                filled[slot.name] = value
        beyond = args[len(fixed) :]
        if self.spreads:
            rest, beyond = _spread(beyond)
        following = [a for a in self.attributes if a.name not in self.leading]
        for attribute, value in zip(following, beyond, strict=False):
            attrs[attribute.name] = value
        if len(beyond) > len(following):
            raise ArgumentError(self._count_message(len(args)))
        own_name = "name" in self.attribute_index or "name" in self.slot_index
        name = None if own_name else kwargs.pop("name", None)
        for key, value in kwargs.items():
            rest = self._keyword(key, value, filled, attrs, rest)
        attributes = self._canonical(attrs, filled)
        fixed_values = self._fixed(filled, attributes)
        if self.variadic and not rest and not self.slots[-1].optional:
            if not self.slots[-1].created:
                raise ArgumentError(f"{self.name}: at least one input must be given, got none")
            rest = (filled.get(self.slots[-1].name, LEFT_OUT),)
        if any(value is None for value in rest):
            raise ArgumentError(f"{self.name}: every input must be filled, got None")
        return (*fixed_values, *rest), attributes, name

    def _led(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """Splits off the attributes that precede the inputs in ``args``."""
        names = [name for name in self.leading if name not in kwargs]
        return dict(zip(names, args, strict=False)), args[len(names) :]

    def _keyword(
        self,
        key: str,
        value: Any,
        filled: dict[str, Any],
        attrs: dict[str, Any],
        rest: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        """Assigns one keyword argument; returns the variadic inputs."""
        if key in self.slot_index:
            if key in filled or (rest and self.slots[self.slot_index[key]].variadic):
                raise ArgumentError(f"{self.name}: slot {key!r} must be filled once, got it twice")
            if self.slots[self.slot_index[key]].variadic:
                return self._listed(self.slots[self.slot_index[key]], value)
            filled[key] = value
        elif key in self.attribute_index:
            if key in attrs:
                raise ArgumentError(f"{self.name}: attribute {key!r} must be given once")
            attrs[key] = value
        elif self._initializes(key):
            slot = key.removesuffix(INITIAL)
            if slot in filled or (rest and self.slots[self.slot_index[slot]].variadic):
                raise ArgumentError(
                    f"{self.name}: {key} must come without {slot!r}, whose new variable it is for"
                )
            filled[slot] = NewVariable(value)
        else:
            initials = [slot.name + INITIAL for slot in self.slots if slot.created]
            legal = [*self.slot_names, *self.attribute_index, *initials]
            raise ArgumentError(
                f"{self.name}: slots must be among {', '.join(self._listed_slots()) or 'none'}, "
                f"attributes among {', '.join(self.attribute_index) or 'none'}, got {key!r}"
                f"{_nearest_keyword(key, legal)}"
            )
        return rest

    def _initializes(self, key: str) -> bool:
        """Whether a keyword gives the initializer of a parameter."""
        index = self.slot_index.get(key.removesuffix(INITIAL))
        return key.endswith(INITIAL) and index is not None and self.slots[index].created

    def _listed_slots(self) -> list[str]:
        """Returns the slots as a call fills them: by position, then the implicit ones."""
        supplied = [slot.name for slot in self.slots if slot.implicit]
        return [*(slot.name for slot in self.positional), *supplied]

    def _listed(self, slot: Slot, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple, Iterator)):
            raise ArgumentError(
                f"{self.name}: slot {slot.name!r} must be filled with a list, got "
                f"{type(value).__name__}"
            )
        return tuple(value)

    def _canonical(self, attrs: Mapping[str, Any], filled: Mapping[str, Any]) -> Attributes:
        values = []
        for attribute in self.attributes:
            if attribute.name in attrs:
                values.append(attribute.canonical(attrs[attribute.name], self.name))
            elif attribute.default is REQUIRED:
                raise ArgumentError(
                    f"{self.name}: attribute {attribute.name!r} must be given, got none"
                    f"{self._misplaced(attribute.name, filled)}"
                )
            else:
                values.append(attribute.default)
        return tuple(values)

    def _misplaced(self, name: str, filled: Mapping[str, Any]) -> str:
        """Returns a hint if a call passes attributes by position, where parameters belong."""
        for slot in self.slots:
            value = filled.get(slot.name)
            if slot.created and isinstance(value, (int, tuple, list)):
                call = f"{self.name}({self.positional[0].name}, {name}={value!r})"
                return f", and {value!r} in the slot {slot.name!r}; write {call}"
        return ""

    def _fixed(self, filled: Mapping[str, Any], attributes: Attributes) -> list[Any]:
        """Returns the values of the slots before the variadic one; ``LEFT_OUT`` where absent."""
        values: list[Any] = []
        for i, slot in enumerate(self.slots[: self.n_fixed]):
            value = filled.get(slot.name, LEFT_OUT)
            flag = self.use_flags.get(i)
            if flag is not None and not attributes[flag]:
                if value is not LEFT_OUT and value is not None:
                    raise ArgumentError(
                        f"{self.name}: slot {slot.name!r} must be left out when "
                        f"use_{slot.name}=False, got it"
                    )
                value = None
            elif flag is None and slot.optional and value is LEFT_OUT:
                value = None
            elif value is LEFT_OUT and not (slot.created or slot.implicit):
                raise ArgumentError(self._count_message(len(filled)))
            elif value is None and (flag is not None or not slot.optional):
                hint = f"; pass use_{slot.name}=False to do without" if flag is not None else ""
                raise ArgumentError(
                    f"{self.name}: slot {slot.name!r} must be filled, got None{hint}"
                )
            values.append(value)
        return values

    def _count_message(self, count: int) -> str:
        names = ", ".join(
            f"*{s.name}" if s.variadic else f"{s.name}?" if s.optional or s.created else s.name
            for s in self.positional
        )
        return f"{self.name}: the inputs must be ({names}), got {count}"

    # Display

    def attribute_dict(self, attributes: Attributes) -> dict[str, Any]:
        """Returns the attributes by name."""
        return {a.name: value for a, value in zip(self.attributes, attributes, strict=True)}

    def slot_of(self, index: int) -> Slot:
        """Returns the slot that the input at ``index`` of the flat inputs fills."""
        return self.slots[min(index, len(self.slots) - 1)]

    def input_groups(self, inputs: Sequence[Any]) -> list[tuple[Slot, list[Any]]]:
        """Groups the inputs by slot: one each, the rest for a variadic slot, none if absent."""
        groups = [(s, [v]) for s, v in zip(self.slots, inputs[: self.n_fixed], strict=False)]
        if self.variadic:
            groups.append((self.slots[-1], list(inputs[self.n_fixed :])))
        return [(slot, [v for v in values if v is not None]) for slot, values in groups]

    def signature(self) -> str:
        """Returns the signature as text: ``softmax(x, *, axis=-1)``."""
        slots = [f"*{s.name}" if s.variadic and self.spreads else s.name for s in self.positional]
        leading = [self.attributes[self.attribute_index[name]] for name in self.leading]
        others = [_shown(a) for a in self.attributes if a.name not in self.leading]
        star = ["*"] if others and not self.spreads else []
        return f"{self.name}({', '.join([*map(_shown, leading), *slots, *star, *others])})"


def _shown(attribute: Attribute) -> str:
    default = "" if attribute.default is REQUIRED else f"={attribute.default!r}"
    return attribute.name + default


def _nearest_keyword(key: str, legal: Sequence[str]) -> str:
    """Returns the suggestion for an unknown keyword, which other systems may use."""
    return keyword_elsewhere(key, legal) or nearest(key, legal)


def _spread(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Splits positional values into those of a variadic slot and those after them."""
    if values and isinstance(values[0], (list, tuple)):
        return tuple(values[0]), values[1:]
    return values, ()
