"""The gradient of an operator as OpDescs: its maker, run on variables that have names only."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from registry.attributes import dtype_named
from registry.binding import LEFT_OUT
from registry.desc import BlockDesc, OpDesc, VarDesc
from registry.errors import ArgumentError, SymopError, UnknownTypeError
from registry.naming import excluded, grad_name
from registry.recorder import (
    Called,
    Recorded,
    Recording,
    arguments_of,
    attributes_of,
    checked_call,
    inferred,
    made_gradient,
    outputs_of,
    recording_into,
    slots_of,
)
from registry.rule import Rule
from registry.types import KEY_TYPE, TRAINING_TYPE, VarKind, VarType
from registry.var import Attributes, Inputs


def recorded_gradient(
    operator: Called, desc: OpDesc, no_grad_set: frozenset[str], block: BlockDesc | None
) -> list[OpDesc]:
    """The composition of ``operator``'s gradient maker for the call that ``desc`` describes.

    Raises:
        ArgumentError: ``desc`` does not fit the operator.
        UnknownTypeError: the maker looks at a type that ``block`` does not tell.
    """
    checked_call(operator, desc)
    try:
        return _recorded(operator, desc, no_grad_set, block)
    except UnknownTypeError as error:
        if block is not None:
            raise
        found = _same_for_all_types(operator, desc, no_grad_set)
        if found is None:
            raise UnknownTypeError(
                f"{operator.name}: its gradient depends on shapes and dtypes ({error})"
            ) from None
        return found


_STAND_INS = (
    (([2, 3], "float32"), ([2, 3], "float32")),
    (([5], "bfloat16"), ([5], "bfloat16")),
    (([2, 3], "float32"), ([3], "float32")),
    (([3], "bfloat16"), ([2, 3], "float32")),
)
"""Types of the first, third, ... and of the second, fourth, ... variable, tried in turn."""


def _same_for_all_types(
    operator: Called, desc: OpDesc, no_grad_set: frozenset[str]
) -> list[OpDesc] | None:
    """The composition if it does not depend on types, which is found out by trying several.

    Types that the operator does not take tell nothing; one trial alone tells nothing either.
    """
    names = list(dict.fromkeys(n for filled in desc.inputs.values() for n in filled))
    found: list[list[OpDesc]] = []
    for stand_ins in _STAND_INS:
        types = [stand_ins[i % 2] for i in range(len(names))]
        block = BlockDesc([VarDesc(n, *one) for n, one in zip(names, types, strict=True)])
        with contextlib.suppress(SymopError):
            found.append(_recorded(operator, desc, no_grad_set, block))
    return found[0] if len(found) > 1 and all(one == found[0] for one in found) else None


def _recorded(
    operator: Called, desc: OpDesc, no_grad_set: frozenset[str], block: BlockDesc | None
) -> list[OpDesc]:
    rule = operator.gradient_rule
    slots = slots_of(operator, desc)
    recording = Recording(grad_name(_first_output(desc)))
    with recording_into(recording):
        inputs, attributes, _ = operator.bind(
            (), {**_variables(operator, slots, block), **attributes_of(desc)}
        )
        if rule is None:
            return []
        _require_named(operator, rule, inputs)
        outputs = _outputs(operator, desc, inputs, attributes, block)
        cotangents = _cotangents(operator, rule, outputs)
        grads = rule(inputs, attributes, outputs, cotangents)
        results = _results(operator, inputs, grads, no_grad_set)
        return _pruned(_named(recording, results), {target for target, _ in results})


def _require_named(operator: Called, rule: Rule, inputs: Inputs) -> None:
    """What the surroundings fill in a call has no name here; the gradient may need it again."""
    for i in sorted(rule.input_indices):
        slot = operator.slot_of(i)
        if slot.implicit and inputs[i] is LEFT_OUT:
            why = "draws the same numbers" if slot.role == "key" else "runs the same way"
            raise ArgumentError(
                f"{operator.name}: {slot.name} must be named, so that the gradient {why}, got none"
            )


def _first_output(desc: OpDesc) -> str:
    return next((names[0] for names in desc.outputs.values() if names), desc.type)


def _variables(
    operator: Called, slots: Mapping[str, list[str]], block: BlockDesc | None
) -> dict[str, Any]:
    roles = {slot.name: slot.role for slot in operator.slots}
    values = {
        name: Recorded(name, _declared(name, roles[slot], block))
        for slot, names in slots.items()
        for name in names
    }
    return arguments_of(operator, slots, values)


def _declared(name: str, role: str, block: BlockDesc | None) -> VarType | None:
    """What ``block`` says of a variable."""
    if role in ("key", "training"):
        return KEY_TYPE if role == "key" else TRAINING_TYPE
    var = None if block is None else block.find_var(name)
    if var is None or var.shape is None or var.dtype is None:
        return None
    return VarType(tuple(var.shape), dtype_named(var.dtype), VarKind(var.kind))


def _outputs(
    operator: Called,
    desc: OpDesc,
    inputs: Inputs,
    attributes: Attributes,
    block: BlockDesc | None,
) -> tuple[Recorded, ...]:
    named = outputs_of(operator, desc)
    if operator.variadic_output:
        stem = operator.outputs[-1]
        named |= {f"{stem}{i}": [one] for i, one in enumerate(named.pop(stem, []))}
        operator = operator.sized(len(named))
    outputs = []
    for key, type in zip(operator.outputs, inferred(operator, inputs, attributes), strict=True):
        names = named.get(key) or [f"{_first_output(desc)}.{key}"]
        outputs.append(Recorded(names[0], type or _declared(names[0], "input", block)))
    return tuple(outputs)


def _cotangents(
    operator: Called, rule: Rule, outputs: Sequence[Recorded]
) -> tuple[Recorded | None, ...]:
    """A gradient for each visible output; zeros or None for the hidden ones."""
    needed = rule.zero_filled(len(outputs))
    hidden = {i for i, name in enumerate(operator.outputs) if name in operator.hidden}
    cotangents: list[Recorded | None] = []
    for i, one in enumerate(outputs):
        type = one.known_type
        if i not in hidden and (type is None or type.differentiable):
            strong = None if type is None else type.strong()
            cotangents.append(Recorded(grad_name(one.name), strong))
        elif i in needed and (type is None or type.differentiable):
            cotangents.append(Recorded("a number", one.type.strong(), 0.0))
        else:
            cotangents.append(None)
    return tuple(cotangents)


def _results(
    operator: Called, inputs: Inputs, grads: Mapping[str, Any], no_grad_set: frozenset[str]
) -> list[tuple[str, Any]]:
    """Pairs of the name of an input's gradient and its value."""
    results: dict[str, Any] = {}
    for slot, values in operator.input_groups(inputs):
        given = made_gradient(grads.get(slot.name)) if slot.variadic else grads.get(slot.name)
        each = list(given or [None] * len(values)) if slot.variadic else [given]
        for one, gradient in zip(values, each, strict=False):
            if not isinstance(one, Recorded) or excluded(one.name, no_grad_set):
                continue
            made = made_gradient(gradient) if _takes_gradient(one) else None
            if made is not None:
                target = grad_name(one.name)
                # A variable that fills two slots gets the sum of their gradients.
                results[target] = results[target] + made if target in results else made
    return list(results.items())


def _takes_gradient(one: Recorded) -> bool:
    return one.known_type is None or one.known_type.differentiable


def _named(recording: Recording, results: Sequence[tuple[str, Any]]) -> list[OpDesc]:
    """The recorded OpDescs with results called by the names of gradients.

    A result that another result is too, or that no operator computes, is copied.
    """
    renamed: dict[str, str] = {}
    computed = {name for op in recording.ops for names in op.outputs.values() for name in names}
    for target, value in results:
        source = recording.variable(value)
        if source in computed and source not in renamed:
            renamed[source] = target
            continue
        copy = OpDesc("identity", {"x": [source]}, {"out": [target]})
        recording.ops.append(copy)
    return [
        OpDesc(
            op.type,
            {slot: [renamed.get(n, n) for n in names] for slot, names in op.inputs.items()},
            {key: [renamed.get(n, n) for n in names] for key, names in op.outputs.items()},
            op.attrs,
            op.name,
        )
        for op in recording.ops
    ]


def _pruned(ops: Sequence[OpDesc], wanted: set[str]) -> list[OpDesc]:
    """The OpDescs that ``wanted`` variables need."""
    kept = []
    for op in reversed(ops):
        if any(name in wanted for names in op.outputs.values() for name in names):
            wanted |= {name for names in op.inputs.values() for name in names}
            kept.append(op)
    return kept[::-1]
