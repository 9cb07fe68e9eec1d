"""Translation of blocks: calls of Paddle's operators become a graph of the catalogue.

A block is interpreted over an environment, from names to the symbols that they hold at that moment.
A name that is written twice thereby becomes two values, as in single assignment form.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import symop as so
from registry.errors import SymopError
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.facts import Facts
from symop.interop.paddle.framework import OpDesc, ProgramDesc
from symop.interop.paddle.gradients import (
    Place,
    Placeholders,
    Slots,
    by_outputs,
    canonical,
    cotangents,
    forward_type,
    is_head,
    order_of,
    redrawn,
    suffix_of,
)
from symop.interop.paddle.operators import (
    EMPTY,
    GRAD,
    Definition,
    find,
    keywords_of,
    parameter_of,
    reason_without,
)
from symop.interop.paddle.values import data_of, is_array, is_constant, is_floating
from symop.symbol.symbol import Symbol

Environment = MutableMapping[str, Any]

_READ_BEFORE_WRITTEN = frozenset(
    {
        "conditional_block",
        "conditional_block_infer",
        "conditional_block_grad",
        "while",
        "while_grad",
        "select_input",
        "merge_lod_tensor",
        "merge_lod_tensor_infer",
    }
)
"""Operators whose inputs may be variables that only a sub-block writes, which may not have run."""


@dataclass
class Call:
    """One call in a block, with the values of its slots.

    Attributes:
        op: the record of the call.
        inputs: the values of its input slots.
        outputs: the values of its output slots, after it was translated.
        translation: the translation that it belongs to.
        environment: the values that its block can read; bodies of control flow read them.
        entries: for an operator that runs a sub-block, the values that the sub-block reads.
        updates: for a branch that calls an optimizer, the new values of what this updates.
    """

    op: OpDesc
    inputs: Slots
    outputs: Slots
    translation: "Translation"
    environment: Environment
    entries: dict[Place, Any] = field(default_factory=dict)
    updates: dict[str, Any] = field(default_factory=dict)


class Translation:
    """A program under translation.

    Attributes:
        program: the records.
        max_steps: the largest number of steps of loops whose number of steps is not known.
        facts: what is known of fed values besides their types.
    """

    def __init__(
        self, program: ProgramDesc, max_steps: int | None = None, facts: Facts | None = None
    ) -> None:
        """Starts a translation of ``program``."""
        self.program = program
        self.max_steps = max_steps
        self.facts = facts or Facts()
        self._calls: dict[tuple[str, str, int], list[Call]] = defaultdict(list)
        self._by_type: dict[str, list[Call]] = defaultdict(list)
        self._count = 0

    def run(self, block: int, environment: Environment) -> None:
        """Interprets a block; the environment then holds the values of what it writes.

        Raises:
            PaddleError: a call cannot be translated; the message names it and its block.
        """
        for i, op in enumerate(self.program.blocks[block].ops):
            try:
                self._step(op, environment)
            except PaddleError as error:
                raise error.located(f"(operator {i} of block {block})") from None
            except SymopError as error:
                raise PaddleError(f"{op.type}: {error} (operator {i} of block {block})") from error

    def _step(self, op: OpDesc, environment: Environment) -> None:
        if op.type in ("feed", "fetch"):
            return
        inputs = {
            slot: [self._read(op, name, environment) for name in names]
            for slot, names in op.inputs.items()
            if names
        }
        call = Call(op, inputs, {}, self, environment)
        call.outputs = self.composed(call)
        self._note(call)
        for slot, names in op.outputs.items():
            for name, value in zip(names, call.outputs.get(slot, ()), strict=False):
                if name != EMPTY and value is not None:
                    environment[name] = value

    def _read(self, op: OpDesc, name: str, environment: Environment) -> Any:
        if name == EMPTY:
            return None
        value = environment.get(name)
        if value is None and GRAD not in name and op.type not in _READ_BEFORE_WRITTEN:
            raise PaddleError(f"{op.type}: inputs must have values, got none for {name!r}")
        return value

    def next_number(self) -> int:
        """Returns a number that was not returned before; it makes names of placeholders unique."""
        self._count += 1
        return self._count

    # Calls ---------------------------------------------------------------------------------------

    def composed(self, call: Call) -> Slots:
        """Returns the outputs of a call.

        Raises:
            PaddleError: no operator has this type, or the call does not fit it.
        """
        definition = find(call.op.type)
        if definition is not None:
            return _called(definition, call)
        forward = forward_type(call.op.type)
        if not forward:
            raise PaddleError(f"{call.op.type}: {reason_without(call.op.type)}")
        return _Derivation(self, forward, call).outputs()

    def _note(self, call: Call) -> None:
        """Keeps a call for the gradient calls that follow."""
        self._by_type[call.op.type].append(call)
        for slots in (call.inputs, call.outputs):
            for slot, values in slots.items():
                if values and values[0] is not None:
                    self._calls[call.op.type, slot, _identity(values[0])].append(call)

    def forward_call(self, forward: str, slots: Slots, op: OpDesc | None = None) -> Call | None:
        """Returns the latest call of ``forward`` that a gradient call belongs to.

        Both have the same values in the slots that both have, and the same attributes if the
        gradient call ``op`` is given.
        """
        for slot, values in slots.items():
            if not values or values[0] is None:
                continue
            for one in reversed(self._calls.get((forward, slot, _identity(values[0])), ())):
                same = _agree({**one.inputs, **one.outputs}, slots)
                if same and (op is None or _have_equal_attributes(one.op, op)):
                    return one
        return None

    def _by_names(self, forward: str, op: OpDesc) -> Call | None:
        """Returns the latest call of ``forward`` whose gradients a call computes by their names.

        A gradient call that reads neither inputs nor outputs of the forward call, such as that of
        ``pad``, can be told by nothing else.
        """
        wanted = {
            (slot.removesuffix(GRAD), i): name.partition(GRAD)[0]
            for slot, names in op.outputs.items()
            for i, name in enumerate(names)
            if GRAD in name
        }
        for one in reversed(self._by_type.get(forward, ())):
            fits = all(
                one.op.input(slot)[i : i + 1] == [name] for (slot, i), name in wanted.items()
            )
            if wanted and fits and _have_equal_attributes(one.op, op):
                return one
        return None

    def forward_of(self, forward: str, slots: Slots, op: OpDesc) -> Call | None:
        """Returns the latest call of ``forward`` to which a gradient call belongs."""
        return self.forward_call(forward, slots, op) or self._by_names(forward, op)


class _Derivation:
    """A gradient call, derived from the forward composition on placeholders."""

    def __init__(self, translation: Translation, forward: str, call: Call) -> None:
        """Composes the forward call.

        Raises:
            PaddleError: the operator is not defined, or the program lacks the forward call.
        """
        base = find(_base(forward))
        if base is None:
            raise PaddleError(f"{call.op.type}: {reason_without(_base(forward))}")
        self._base = base
        self._op = call.op
        self._known = {*base.slots, *base.outputs}
        self._order = order_of(call.op.type)
        self._slots = {canonical(slot, self._known): one for slot, one in call.inputs.items()}
        if self._order == 1:
            _require_known_heads(call.op, base)
        before = translation.forward_of(forward, self._slots, call.op)
        self._inner = self._forward_inputs(forward, before)
        # A gradient of this call needs inputs of the forward call that this one does not declare.
        call.inputs = {**self._inner, **self._slots}
        self._places = Placeholders(f"{forward}{translation.next_number()}.")
        self._inputs = {
            slot: self._places.stand_for({slot: values})[slot] if self._varies(slot) else values
            for slot, values in self._inner.items()
        }
        op = before.op if before is not None else _as_forward(forward, call.op, self._known)
        environment = before.environment if before is not None else call.environment
        self._computed = translation.composed(Call(op, self._inputs, {}, translation, environment))
        if before is not None:
            self._computed = redrawn(self._computed, before.outputs)

    def _forward_inputs(self, forward: str, before: Call | None) -> Slots:
        """Returns the inputs of the forward call: as the gradient call declares, or as it had."""
        if before is not None:
            return {slot: self._slots.get(slot, one) for slot, one in before.inputs.items()}
        if forward == self._base.type:
            lacking = self._base.required - self._slots.keys()
            if lacking:
                raise PaddleError(
                    f"{forward}_grad: the program must contain the call of {forward} whose "
                    f"{', '.join(sorted(lacking))} it reads, got none"
                )
            return {slot: one for slot, one in self._slots.items() if slot in self._base.slots}
        order = order_of(forward) + 1
        return {slot: one for slot, one in self._slots.items() if not is_head(slot, order)}

    def _varies(self, slot: str) -> bool:
        """Whether a gradient with respect to an input may be requested."""
        return slot not in self._base.slots or slot in self._base.differentiable

    def outputs(self) -> Slots:
        """Returns the outputs of the gradient call."""
        wanted = self._wanted()
        heads = self._heads()
        # Beyond the second order, a call reads inputs and gradients alone.
        declared = self._places.stand_for(
            {s: v for s, v in self._slots.items() if s in self._computed and self._order < 3}
        )
        slopes = cotangents(self._computed, self._inputs, heads, list(wanted.values()))
        results = by_outputs([slopes[one] for one in wanted.values()], self._computed, declared)
        outputs: Slots = {slot: [None] * len(names) for slot, names in self._op.outputs.items()}
        for (at, place), result in zip(wanted.items(), results, strict=True):
            like, value = self._inner[place.slot][place.at], self._places.filled(result)
            outputs[at.slot][at.at] = (
                so.LoDTensor(value, like.lod) if isinstance(like, so.LoDTensor) else value
            )
        return outputs

    def _wanted(self) -> dict[Place, Place]:
        """Returns the requested outputs, each with the input whose gradient it is."""
        found: dict[Place, Place] = {}
        for slot, names in self._op.outputs.items():
            target = _given_by(slot, self._order, self._known)
            if target not in self._inputs or not self._varies(target):
                continue
            found |= {
                Place(slot, i): Place(target, i)
                for i, name in enumerate(names)
                if name != EMPTY and is_floating(self._inputs[target][i])
            }
        return found

    def _heads(self) -> dict[Place, Any]:
        """Returns the gradients of outputs that are given, as placeholders."""
        suffix = suffix_of(self._order)
        given = {
            slot: values
            for slot, values in self._slots.items()
            if slot.endswith(suffix)
            and slot.removesuffix(suffix) in self._computed
            and slot not in self._inner
        }
        return {
            Place(slot.removesuffix(suffix), i): value
            for slot, values in self._places.stand_for(given).items()
            for i, value in enumerate(values)
            if value is not None
        }


def _require_known_heads(op: OpDesc, base: Definition) -> None:
    """Raises an error if all given gradients belong to no output: they would count as zero."""
    known = {*base.slots, *base.outputs}
    given = {canonical(slot, known) for slot, names in op.inputs.items() if names}
    heads = sorted(one for one in given - base.slots.keys() if one.endswith(GRAD))
    if heads and not any(one.removesuffix(GRAD) in base.outputs for one in heads):
        wanted = ", ".join(f"{one}{GRAD}" for one in base.outputs)
        raise PaddleError(f"{op.type}: gradients must be among {wanted}, got {heads[0]!r}")


def _given_by(slot: str, order: int, known: Collection[str]) -> str:
    """Returns the input whose gradient an output slot holds."""
    suffix = suffix_of(order)
    if order < 3:
        return canonical(slot, known).removesuffix(suffix)
    return canonical(slot.removesuffix(suffix), known)


def _as_forward(forward: str, op: OpDesc, known: Collection[str]) -> OpDesc:
    """Returns the record of a forward call that a gradient call stands for."""
    order = order_of(op.type)
    slots = {canonical(slot, known): list(names) for slot, names in op.inputs.items()}
    outputs = {
        slot.removesuffix(suffix_of(order)): names
        for slot, names in slots.items()
        if is_head(slot, order)
    }
    return OpDesc(forward, slots, outputs, dict(op.attrs), dict(op.attr_types))


def _base(name: str) -> str:
    """Returns the operator that a gradient of any order belongs to."""
    while find(name) is None and forward_type(name):
        name = forward_type(name)
    return name


def _identity(value: Any) -> int:
    data = data_of(value)
    return id(data.node) if isinstance(data, Symbol) else id(data)


def _have_equal_attributes(one: OpDesc, other: OpDesc) -> bool:
    """Returns whether two calls have equal attributes, of those that both have."""
    definition = find(one.type)
    names = definition.attributes if definition is not None else ()
    return all(
        one.attrs[name] == other.attrs[name]
        for name in names
        if name in one.attrs and name in other.attrs
    )


def _agree(slots: Slots, others: Slots) -> bool:
    return all(
        len(values) == len(slots[slot])
        and all(
            one is None or other is None or _identity(one) == _identity(other)
            for one, other in zip(values, slots[slot], strict=True)
        )
        for slot, values in others.items()
        if slot in slots
    )


def _called(definition: Definition, call: Call) -> Slots:
    """Returns the outputs of a call by its definition."""
    attributes = definition.values_of(call.op.attrs)
    unknown = sorted(call.inputs.keys() - definition.slots.keys())
    if unknown:
        raise PaddleError(
            f"{definition.type}: slots must be among {', '.join(definition.slots)}, "
            f"got {unknown[0]!r}"
        )
    lacking = sorted(one for one in definition.required if not call.inputs.get(one))
    if lacking:
        raise PaddleError(f"{definition.type}: the slot {lacking[0]} must be filled, got nothing")
    arguments = {
        parameter_of(slot): _argument(definition, slot, values)
        for slot, values in call.inputs.items()
        if values
    }
    if definition.needs_call:
        arguments["call"] = call
    results = _by_slot(definition, definition.function(**arguments, **keywords_of(attributes)))
    return results if definition.ragged else _with_offsets(call.inputs, results)


def _argument(definition: Definition, slot: str, values: Sequence[Any]) -> Any:
    passed = [one if definition.ragged else data_of(one) for one in values]
    if definition.slots[slot]:
        return passed
    if len(passed) != 1:
        raise PaddleError(f"{definition.type}: {slot} must be one variable, got {len(passed)}")
    return passed[0]


def _by_slot(definition: Definition, results: Any) -> Slots:
    if isinstance(results, Mapping):
        named = dict(results)
    else:
        several = isinstance(results, Symbol) and len(results.nodes) > 1
        together = tuple(results) if several or isinstance(results, tuple) else (results,)
        named = dict(zip(definition.outputs, together, strict=False))
    return {
        slot: list(value) if slot in definition.several else [value]
        for slot, value in named.items()
        if value is not None
    }


def _with_offsets(inputs: Slots, outputs: Slots) -> Slots:
    """Returns outputs with the offsets of the first ragged input, where they have as many rows."""
    ragged = next(_ragged(inputs), None)
    if ragged is None:
        return outputs
    rows = ragged.data.shape[0]
    return {
        slot: [
            so.LoDTensor(one, ragged.lod)
            if _is_row_by_row(one, ragged) and one.shape[0] == rows
            else one
            for one in values
        ]
        for slot, values in outputs.items()
    }


def _is_row_by_row(value: Any, ragged: Any) -> bool:
    """Returns whether a value can have the rows of a ragged one: constants come from constants."""
    return is_array(value) and value.ndim > 0 and (not is_constant(value) or is_constant(ragged))


def _ragged(inputs: Slots) -> Iterator[Any]:
    for values in inputs.values():
        yield from (one for one in values if isinstance(one, so.LoDTensor))
