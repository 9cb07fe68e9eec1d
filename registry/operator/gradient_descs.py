"""The gradient of an operator as OpDescs: its maker, run on variables that have only names."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from registry.desc import BlockDesc, OpDesc, VarDesc
from registry.errors import ArgumentError, SymopError, UnknownTypeError
from registry.naming import EMPTY, VJP, excluded, grad_name
from registry.operator import promotion
from registry.operator.attributes import dtype_named, to_plain
from registry.operator.binding import LEFT_OUT
from registry.operator.leaf_descs import leaf_named, leaf_names, number_of_leaf, type_of_leaf
from registry.operator.recorder import (
    Called,
    Recorded,
    Recording,
    arguments_of,
    attributes_of,
    checked_call,
    gradient_value,
    inferred,
    outputs_of,
    recording_into,
    slots_of,
)
from registry.operator.rule import Rule
from registry.types import KEY_TYPE, TRAINING_TYPE, VarKind, VarType
from registry.var import Attributes, Inputs


def recorded_gradient(
    operator: Called, desc: OpDesc, no_grad_set: frozenset[str], block: BlockDesc | None
) -> list[OpDesc]:
    """Returns the composition of ``operator``'s gradient maker for the call ``desc``.

    Raises:
        ArgumentError: ``desc`` does not fit the operator.
        UnknownTypeError: the maker reads a type that ``block`` does not contain.
    """
    checked_call(operator, desc)
    no_grad_set |= leaf_names(desc, block)
    if operator.gradient_rule is None:
        return []
    require_output(operator, desc)
    try:
        return _recorded(operator, desc, no_grad_set, block)
    except UnknownTypeError as error:
        composition = _same_for_all_types(operator, desc, no_grad_set)
        if composition is not None:
            return composition
        if operator.derives_by_kernel and _is_dense(desc, block):
            return _derived_by_kernel(operator, desc, no_grad_set, block)
        reason = f"{operator.name}: its gradient depends on shapes and dtypes"
        if block is None:
            raise UnknownTypeError(f"{reason} ({error})") from None
        names = _names_of(desc)
        untold = [name for name in names if _declared(name, "input", block) is None]
        raise UnknownTypeError(
            f"{reason}; the block must tell those of {', '.join(names)}, got none of "
            f"{', '.join(untold)}"
        ) from None


def _is_dense(desc: OpDesc, block: BlockDesc | None) -> bool:
    """Whether no row-sparse gradient is requested, and no input is known to be row-sparse."""
    known = [_declared(name, "input", block) for name in _names_of(desc)]
    dense = all(one is None or one.kind is VarKind.LOD_TENSOR for one in known)
    return dense and not desc.attrs.get("sparse", False)


def _derived_by_kernel(
    operator: Called, desc: OpDesc, no_grad_set: frozenset[str], block: BlockDesc | None
) -> list[OpDesc]:
    """Returns a call of the kernel's derived operator, which determines types at run time."""
    rule = operator.gradient_rule
    assert rule is not None
    slots, outputs = slots_of(operator, desc), _output_names(operator, desc)
    names = {name: name for filled in slots.values() for name in filled}
    inputs, attributes, _ = operator.bind(
        (), {**arguments_of(operator, slots, names), **attributes_of(desc)}
    )
    _require_named(operator, rule, inputs)
    variables = {i: name for i, name in enumerate(inputs) if isinstance(name, str)}
    wrt = [
        i
        for i, name in variables.items()
        if not (operator.slot_of(i).implicit or excluded(name, no_grad_set))
        and _takes_gradient(Recorded(name, _declared(name, "input", block)))
    ]
    visible = operator.sized(len(outputs)).visible
    heads = {
        len(inputs) + i: grad_name(name)
        for i, name in enumerate(outputs)
        if i in visible and name != EMPTY and rule.reads_cotangent(i)
    }
    if not wrt:
        return []
    attrs = {
        "of": attributes,
        "arity": len(inputs),
        "given": (*variables, *heads),
        "wrt": tuple(wrt),
    }
    results, sums = _summed([grad_name(variables[i]) for i in wrt])
    return [
        OpDesc(
            VJP + operator.name,
            {"values": [*variables.values(), *heads.values()]},
            {f"grads{i}": [name] for i, name in enumerate(results)},
            {key: to_plain(value) for key, value in attrs.items()},
        ),
        *sums,
    ]


def _summed(targets: Sequence[str]) -> tuple[list[str], list[OpDesc]]:
    """Returns distinct names for ``targets``, and calls that sum the parts of one gradient."""
    names, parts = list(targets), dict[str, list[str]]()
    for i, target in enumerate(targets):
        if targets.count(target) > 1:
            names[i] = f"{target}@RENAME_{i}"
            parts.setdefault(target, []).append(names[i])
    return names, [OpDesc("add_n", {"xs": xs}, {"out": [one]}) for one, xs in parts.items()]


_STAND_INS = (
    (([2, 3], "float32"), ([2, 3], "float32")),
    (([5], "bfloat16"), ([5], "bfloat16")),
    (([2, 3], "float32"), ([3], "float32")),
    (([3], "bfloat16"), ([2, 3], "float32")),
)
"""Types of the variables at even and at odd positions, tried in turn."""


def _same_for_all_types(
    operator: Called, desc: OpDesc, no_grad_set: frozenset[str]
) -> list[OpDesc] | None:
    """Returns the composition if it is independent of types, determined by trying several types.

    Types that the operator does not accept are skipped; at least two trials must succeed.
    """
    names = _names_of(desc)
    trials: list[list[OpDesc]] = []
    for stand_ins in _STAND_INS:
        types = [stand_ins[i % 2] for i in range(len(names))]
        block = BlockDesc([VarDesc(n, *one) for n, one in zip(names, types, strict=True)])
        with contextlib.suppress(SymopError):
            trials.append(_recorded(operator, desc, no_grad_set, block))
    return trials[0] if len(trials) > 1 and all(one == trials[0] for one in trials) else None


def _names_of(desc: OpDesc) -> list[str]:
    """Returns the variables that a call reads."""
    read = [name for filled in desc.inputs.values() for name in filled]
    return [name for name in dict.fromkeys(read) if name != EMPTY]


def _recorded(
    operator: Called, desc: OpDesc, no_grad_set: frozenset[str], block: BlockDesc | None
) -> list[OpDesc]:
    rule = operator.gradient_rule
    assert rule is not None
    slots = slots_of(operator, desc)
    recording = Recording(grad_name(first_output(desc)))
    with recording_into(recording):
        inputs, attributes, _ = operator.bind(
            (), {**_variables(operator, slots, block), **attributes_of(desc)}
        )
        _require_named(operator, rule, inputs)
        outputs = _outputs(operator, desc, inputs, attributes, block)
        cotangents = _cotangents(operator, rule, outputs)
        grads = promotion.gradients(operator, inputs, attributes, outputs, cotangents)
        results = _results(operator, inputs, grads, no_grad_set)
        return _pruned(_named(recording, results), {target for target, _ in results})


def _require_named(operator: Called, rule: Rule, inputs: Inputs) -> None:
    """Requires names for implicit inputs that the maker reads: the gradient needs them again."""
    for i in sorted(rule.input_indices):
        slot = operator.slot_of(i)
        if slot.implicit and inputs[i] is LEFT_OUT:
            why = "draws the same numbers" if slot.role == "key" else "runs the same way"
            raise ArgumentError(
                f"{operator.name}: {slot.name} must be named, so that the gradient {why}, got none"
            )


def first_output(desc: OpDesc) -> str:
    """Returns the first variable that ``desc`` computes, whose name is unique to the call."""
    named = (name for names in desc.outputs.values() for name in names if name != EMPTY)
    return next(named, desc.type)


def require_output(operator: Called, desc: OpDesc) -> None:
    """Rejects a call whose outputs cannot receive a gradient.

    The name of a gradient derives from that of its variable; unnamed outputs have none.

    Raises:
        ArgumentError: ``desc`` names no visible output.
    """
    named = outputs_of(operator, desc)
    filled = [key for key, names in named.items() if any(name != EMPTY for name in names)]
    if not set(filled) - operator.hidden:
        raise unnamed(operator.name, operator.outputs[operator.visible[0]])


def unnamed(owner: str, output: str) -> ArgumentError:
    """Returns the error for an output that a gradient needs and that an OpDesc does not name."""
    return ArgumentError(
        f"{owner}: output {output!r} must be named, because the gradient reads it or its gradient, "
        "got no name"
    )


def _variables(
    operator: Called, slots: Mapping[str, list[str]], block: BlockDesc | None
) -> dict[str, Any]:
    roles = {slot.name: slot.role for slot in operator.slots}
    values = {
        name: Recorded(name, _declared(name, roles[slot], block), _number(name, block))
        for slot, names in slots.items()
        for name in names
    }
    return arguments_of(operator, slots, values)


def _declared(name: str, role: str, block: BlockDesc | None) -> VarType | None:
    """Returns the type of a variable in ``block``."""
    if role in ("key", "training"):
        return KEY_TYPE if role == "key" else TRAINING_TYPE
    if block is None:
        return None
    var = block.find_var(name)
    if var is None or var.shape is None or var.dtype is None:
        leaf = leaf_named(name, block)
        return None if leaf is None else type_of_leaf(leaf)
    return VarType(tuple(var.shape), dtype_named(var.dtype), VarKind(var.kind))


def _number(name: str, block: BlockDesc | None) -> bool | int | float | complex | None:
    """Returns the number that a variable equals, if ``block`` records one."""
    leaf = None if block is None else leaf_named(name, block)
    return None if leaf is None else number_of_leaf(leaf)


def _outputs(
    operator: Called,
    desc: OpDesc,
    inputs: Inputs,
    attributes: Attributes,
    block: BlockDesc | None,
) -> tuple[Recorded, ...]:
    names = _output_names(operator, desc)
    operator = operator.sized(len(names))
    outputs = []
    types = inferred(operator, inputs, attributes)
    for key, name, type in zip(operator.outputs, names, types, strict=True):
        known = type or _declared(name, "input", block)
        missing = name == EMPTY
        outputs.append(_Unnamed(operator.name, key, known) if missing else Recorded(name, known))
    return tuple(outputs)


def _output_names(operator: Called, desc: OpDesc) -> list[str]:
    """Returns the variable of each output, including hidden ones; ``EMPTY`` if it has none."""
    named = outputs_of(operator, desc)
    if operator.variadic_output:
        stem = operator.outputs[-1]
        named |= {f"{stem}{i}": [one] for i, one in enumerate(named.pop(stem, []))}
        operator = operator.sized(len(named))
    return [(named.get(key) or [EMPTY])[0] for key in operator.outputs]


class _Unnamed(Recorded):
    """An output that the OpDesc does not name: a maker may not use it."""

    __slots__ = ("_output", "_owner")

    def __init__(self, owner: str, output: str, type: VarType | None) -> None:
        super().__init__(None, type)
        self._owner, self._output = owner, output

    def require_name(self) -> str:
        raise unnamed(self._owner, self._output)


def _cotangents(
    operator: Called, rule: Rule, outputs: Sequence[Recorded]
) -> tuple[Recorded | None, ...]:
    """Returns a gradient for each visible output; zeros or None for the hidden ones.

    An unnamed output also represents its gradient: a maker that uses it raises an error.
    """
    needed = rule.zero_filled(len(outputs))
    hidden = {i for i, name in enumerate(operator.outputs) if name in operator.hidden}
    cotangents: list[Recorded | None] = []
    for i, one in enumerate(outputs):
        type = one.known_type
        carries = type is None or type.differentiable
        if i not in hidden and carries and one.name is not None:
            strong = None if type is None else type.strong()
            cotangents.append(Recorded(grad_name(one.name), strong))
        elif i in needed and carries:
            missing = Recorded(None, one.type.strong(), 0.0) if i in hidden else one
            cotangents.append(missing)
        else:
            cotangents.append(None)
    return tuple(cotangents)


def _results(
    operator: Called, inputs: Inputs, grads: Mapping[str, Any], no_grad_set: frozenset[str]
) -> list[tuple[str, Any]]:
    """Returns pairs of the name of an input's gradient and its value."""
    results: dict[str, Any] = {}
    for slot, values in operator.input_groups(inputs):
        slot_grad = gradient_value(grads.get(slot.name)) if slot.variadic else grads.get(slot.name)
        each = list(slot_grad or [None] * len(values)) if slot.variadic else [slot_grad]
        for one, gradient in zip(values, each, strict=False):
            if not isinstance(one, Recorded) or one.name is None:
                continue
            if excluded(one.name, no_grad_set):
                continue
            value = gradient_value(gradient) if _takes_gradient(one) else None
            if value is not None:
                target = grad_name(one.name)
                # A variable that fills two slots receives the sum of their gradients.
                results[target] = results[target] + value if target in results else value
    return list(results.items())


def _takes_gradient(one: Recorded) -> bool:
    return one.known_type is None or one.known_type.differentiable


def _named(recording: Recording, results: Sequence[tuple[str, Any]]) -> list[OpDesc]:
    """Returns the recorded OpDescs with their results renamed to the names of gradients.

    A result that occurs twice, or that no operator computes, is copied.
    """
    names: dict[str, str] = {}
    computed = {name for op in recording.ops for names in op.outputs.values() for name in names}
    for target, value in results:
        source = recording.variable(value)
        if source in computed and source not in names:
            names[source] = target
            continue
        copy = OpDesc("identity", {"x": [source]}, {"out": [target]})
        recording.ops.append(copy)
    return [renamed(op, names) for op in recording.ops]


def renamed(op: OpDesc, names: Mapping[str, str]) -> OpDesc:
    """Returns ``op`` with its variables renamed by ``names``."""
    return OpDesc(
        op.type,
        {slot: [names.get(n, n) for n in variables] for slot, variables in op.inputs.items()},
        {key: [names.get(n, n) for n in variables] for key, variables in op.outputs.items()},
        op.attrs,
        op.name,
    )


def _pruned(ops: Sequence[OpDesc], wanted: set[str]) -> list[OpDesc]:
    """Returns the OpDescs on which the ``wanted`` variables depend."""
    kept = []
    for op in reversed(ops):
        if any(name in wanted for names in op.outputs.values() for name in names):
            wanted |= {name for names in op.inputs.values() for name in names}
            kept.append(op)
    return kept[::-1]
