"""The signature of an operator's calls, for ``inspect``, ``help`` and editors.

A signature of Python cannot say all that a call accepts: an attribute that must be given is a
keyword here if it follows a parameter with a default, although it may also be given by position.
"""

import inspect
from collections.abc import Iterable
from typing import Any

from registry.operator.attributes import Attribute
from registry.operator.binding import INITIAL, LEFT_OUT, Signature
from registry.operator.signature import Slot

_Kind = inspect.Parameter


class CallSignature:
    """The attribute ``__signature__`` of operators; None of their class, whose own counts."""

    def __get__(self, operator: Signature | None, owner: type) -> inspect.Signature | None:
        return None if operator is None else call_signature(operator)


def call_signature(operator: Signature, *, eager: bool = False) -> inspect.Signature:
    """Returns the signature of calls: inputs, attributes, then what is supplied otherwise.

    The default of a slot is ``None`` if the slot may be absent, and ``LEFT_OUT`` if something else
    fills it.

    Args:
        operator: the slots and attributes.
        eager: whether inputs are arrays. Such a call must fill the slots of parameters, and its
            result has no name.
    """
    before = [_of_attribute(operator, name) for name in operator.leading]
    slots = [_of_slot(operator, slot, eager) for slot in operator.positional]
    names = [one.name for one in operator.attributes if one.name not in operator.leading]
    attributes = [_of_attribute(operator, name) for name in names]
    supplied = [_keyword(slot.name, LEFT_OUT) for slot in operator.slots if slot.implicit]
    created = [] if eager else [slot for slot in operator.slots if slot.created]
    initials = [_keyword(slot.name + INITIAL, None, Any) for slot in created]
    own = {*operator.slot_index, *operator.attribute_index}
    named = [] if eager or "name" in own else [_keyword("name", None, str | None)]
    ordered = with_keywords([*before, *slots, *attributes])
    return inspect.Signature([*ordered, *supplied, *initials, *named])


def _of_slot(operator: Signature, slot: Slot, eager: bool) -> inspect.Parameter:
    if slot.variadic and operator.spreads:
        return _Kind(slot.name, _Kind.VAR_POSITIONAL)
    left = slot.created and not eager and not leads(operator, slot)
    filled = left or operator.slot_index[slot.name] in operator.use_flags
    default = LEFT_OUT if filled else None if slot.optional else _Kind.empty
    return _Kind(slot.name, _Kind.POSITIONAL_OR_KEYWORD, default=default)


def leads(operator: Signature, slot: Slot) -> bool:
    """Whether a slot precedes one that each call must fill."""
    place = operator.positional.index(slot)
    return any(not (one.optional or one.created or one.variadic)
               for one in operator.positional[place + 1 :])  # fmt: skip


def _of_attribute(operator: Signature, name: str) -> inspect.Parameter:
    attribute: Attribute = operator.attributes[operator.attribute_index[name]]
    default = _Kind.empty if attribute.required else attribute.default
    how = _Kind.POSITIONAL_OR_KEYWORD
    return _Kind(name, how, default=default, annotation=attribute.declared_type)


def _keyword(name: str, default: Any, annotation: Any = _Kind.empty) -> inspect.Parameter:
    return _Kind(name, _Kind.KEYWORD_ONLY, default=default, annotation=annotation)


def with_keywords(parameters: Iterable[inspect.Parameter]) -> list[inspect.Parameter]:
    """Makes keywords of those after a variadic slot, and from a lone required one on."""
    result: list[inspect.Parameter] = []
    by_keyword = defaulted = False
    for one in parameters:
        spread = one.kind is _Kind.VAR_POSITIONAL
        by_keyword |= defaulted and one.default is _Kind.empty and not spread
        result.append(one.replace(kind=_Kind.KEYWORD_ONLY) if by_keyword else one)
        by_keyword |= spread
        defaulted |= one.default is not _Kind.empty
    return result
