"""Sub-blocks as bodies of loops and branches, and the gradients of the operators that run them.

A sub-block reads variables of the blocks around it by name. An operator that runs it gets them as
inputs, each as a separate value, so that a gradient operator can tell them apart and ask for the
gradient by each of them.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import symop as so
from registry.errors import NotDifferentiableError
from symop.graph.nodes import Node
from symop.graph.rewriting import substitute
from symop.interop.paddle.arrays import (
    Elements,
    fitted,
    is_packed,
    is_tensor_array,
    leaves,
    rebuilt,
    same_form,
    to_capacity,
)
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import OpDesc, ProgramDesc
from symop.interop.paddle.gradients import Place, Slots, redrawn
from symop.interop.paddle.operators import EMPTY, GRAD
from symop.interop.paddle.translating import Call
from symop.interop.paddle.values import data_of, is_constant, is_floating, symbolic
from symop.symbol.symbol import Symbol

BEFORE = "before"
"""The place of values that variables had before an operator wrote them."""


SCOPES = ("Scope", "StepScopes", "step_scopes")
"""Slots of what a sub-block leaves for its gradients; they hold no tensors."""


class Bodies(dict[str, Any]):
    """The environment of a sub-block.

    Attributes:
        stopped: names of variables through which no gradient flows.
    """

    __slots__ = ("stopped",)

    def __init__(self, values: Mapping[str, Any], stopped: frozenset[str] = frozenset()) -> None:
        """Creates an environment of values."""
        super().__init__(values)
        self.stopped = stopped

    def __setitem__(self, name: str, value: Any) -> None:
        """Sets a variable, and stops its gradient if there is none in the program."""
        if name in self.stopped and isinstance(data_of(value), Symbol) and is_floating(value):
            value = rebuilt(value, [so.stop_gradient(data_of(value)), *leaves(value)[1:]])
        super().__setitem__(name, value)

    def child(self, values: Mapping[str, Any]) -> "Bodies":
        """Returns an environment with other values of some variables."""
        return Bodies({**self, **values}, self.stopped)


def bodies(environment: Mapping[str, Any]) -> Bodies:
    """Returns a copy of an environment for sub-blocks."""
    return Bodies(environment, getattr(environment, "stopped", frozenset()))


# Leaves ----------------------------------------------------------------------------------------


def zeros_like(value: Any) -> Any:
    """Returns zeros in the form of a value."""
    return rebuilt(value, [_zeros(one) for one in leaves(value)])


def _zeros(leaf: Any) -> Any:
    if is_packed(leaf):
        return so.sym.array_create(capacity=leaf.shape[0], shape=leaf.shape[1:], dtype=leaf.dtype)
    return so.sym.zeros(shape=leaf.shape, dtype=leaf.dtype)


def scalar(value: Any) -> Any:
    """Returns a condition as a scalar: a bool if it is known."""
    data = data_of(value)
    if is_constant(data):
        return bool(np.asarray(data).ravel()[0])
    return so.reshape(data, shape=())


# Blocks ----------------------------------------------------------------------------------------


def operators_in(program: ProgramDesc, block: int) -> Iterator[OpDesc]:
    """Yields the calls of a block and of the blocks that they run."""
    for op in program.blocks[block].ops:
        yield op
        inner = op.attrs.get("sub_block")
        if inner is not None:
            yield from operators_in(program, inner)


def written_by(program: ProgramDesc, block: int) -> list[str]:
    """Returns the variables around a block that it writes."""
    own = program.blocks[block].vars
    names = [
        name
        for op in program.blocks[block].ops
        for slot, several in op.outputs.items()
        if slot not in SCOPES
        for name in several
    ]
    return [name for name in dict.fromkeys(names) if name not in own and name != EMPTY]


def persistables_written(program: ProgramDesc, block: int) -> list[str]:
    """Returns the variables around a block that it writes and that outlive a run."""
    root = program.blocks[0].vars
    names = dict.fromkeys(n for op in operators_in(program, block) for n in op.output_arg_names)
    return [name for name in names if name in root and root[name].persistable]


def entered(call: Call, *slots: str, results: str = "") -> Bodies:
    """Returns the environment that a sub-block reads; the call keeps it for its gradients.

    Args:
        call: a call that runs a sub-block.
        slots: the input slots whose variables it reads under their names.
        results: an output slot whose variables it may leave as they are.
    """
    call.environment = bodies(call.environment)
    values: dict[str, Any] = {}
    for slot in slots:
        given = separate(call, slot, call.inputs.get(slot, ()))
        values.update(zip(call.op.input(slot), given, strict=True))
    names = [name for name in call.op.output(results) if name not in values]
    before = separate(call, BEFORE, [call.environment.get(name) for name in names])
    values.update(zip(names, before, strict=True))
    return bodies(call.environment).child(values)


def separate(call: Call, slot: str, values: Sequence[Any]) -> list[Any]:
    """Returns values that differ from place to place, even where they are the same symbol."""
    result = []
    for i, value in enumerate(values):
        arrays = leaves(value)
        if isinstance(value, Elements):  # a loop moves them, so that they have gradients
            arrays = [symbolic(one) for one in arrays]
        result.append(rebuilt(value, [_alias(call, one) for one in arrays]))
        call.entries[Place(slot, i)] = result[-1]
    return result


def _alias(call: Call, leaf: Any) -> Any:
    if isinstance(leaf, Symbol) and is_floating(leaf) and not is_packed(leaf):
        return so.alias(leaf, number=call.translation.next_number())
    return leaf


# Counting --------------------------------------------------------------------------------------


class Count(NamedTuple):
    """What is known of the steps of a loop before it runs.

    Attributes:
        steps: the number of steps, or a bound on it.
        is_exact: whether there are as many steps.
        known: the values after the last step that are known, by variable.
        largest: the largest index at which each tensor array is written; -1 if it is not known.
    """

    steps: int
    is_exact: bool
    known: dict[str, Any]
    largest: dict[str, int]


MAX_COUNTED = 1 << 14
"""The largest number of steps that is looked for by running the counter of a loop."""


class Counter:
    """The part of a loop that its condition and the positions in tensor arrays depend on."""

    def __init__(self, call: Call, block: int, condition: str, environment: Bodies) -> None:
        """Selects this part."""
        self._call = call
        self._program = call.translation.program
        self._condition = condition
        self._writes = _writes(self._program, block)
        wanted = {condition, *(index for pairs in self._writes.values() for _, index in pairs)}
        ops = self._program.blocks[block].ops
        needed = _needed(ops, wanted)
        self._counts = {id(op) for op in needed}
        self._ops = [op for op in ops if id(op) in self._counts or id(op) in self._writes]
        self._moved = {name for op in needed for name in op.output_arg_names}
        self._known = {
            name: value
            for name, value in environment.items()
            if is_constant(value) and not isinstance(value, so.LoDTensor)
        }
        self._largest: dict[str, int] = {}

    def run(self, limit: int | None) -> Count | None:
        """Runs it on the values that are known.

        Args:
            limit: a bound on the number of steps, where the condition does not give one.

        Returns:
            What is known of the steps; None if there is no bound.
        """
        is_exact, may_end = True, any(one.type.startswith("logical") for one in self._ops)
        for step in range(MAX_COUNTED):
            holds = self._known.get(self._condition)
            if holds is not None and not scalar(holds):
                known = {one: value for one, value in self._known.items() if one in self._moved}
                return Count(step, is_exact, known if is_exact else {}, self._largest)
            is_exact = is_exact and holds is not None
            if not is_exact and step == limit:
                return Count(step, False, {}, self._largest)
            if not is_exact and not may_end and limit is None:
                return None
            before = dict(self._known)
            for op in self._ops:
                self._step(op)
            if not is_exact and limit is None and _is_same(before, self._known):
                return None
        return None

    def _step(self, op: OpDesc) -> None:
        for array, index in self._writes.get(id(op), ()):
            at = self._known.get(index)
            highest = -1 if at is None else int(np.asarray(at).ravel()[0])
            past = self._largest.get(array, 0)
            self._largest[array] = -1 if min(highest, past) < 0 else max(highest, past)
        outputs = self._outputs(op)
        for slot, names in op.outputs.items() if id(op) in self._counts else ():
            for name, value in itertools.zip_longest(names, outputs.get(slot, ())):
                if name is None:
                    continue
                if is_constant(value):
                    self._known[name] = value
                else:
                    self._known.pop(name, None)

    def _outputs(self, op: OpDesc) -> Slots:
        if id(op) not in self._counts or op.type == "write_to_array":
            return {}
        inputs = {
            slot: [*map(self._known.get, names)] for slot, names in op.inputs.items() if names
        }
        given = [one for values in inputs.values() for one in values]
        if any(one is None for one in given):
            return _by_one_operand(op.type, given)
        try:
            translation = self._call.translation
            return translation.composed(Call(op, inputs, {}, translation, dict(self._known)))
        except PaddleError:
            return {}


def _by_one_operand(type_: str, operands: Sequence[Any]) -> Slots:
    """Returns the result of a logical operator that follows from one known operand."""
    decisive = {"logical_and": False, "logical_or": True}.get(type_)
    for one in operands:
        if decisive is not None and one is not None and one.size == 1 and scalar(one) is decisive:
            return {"Out": [one]}
    return {}


def _is_same(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return before.keys() == after.keys() and all(
        before[name] is after[name] or bool(np.array_equal(before[name], after[name]))
        for name in before
    )


def _writes(program: ProgramDesc, block: int) -> dict[int, list[tuple[str, str]]]:
    """Returns the tensor arrays that each call of a block writes, each with its index."""
    result: dict[int, list[tuple[str, str]]] = {}
    for op in program.blocks[block].ops:
        inner = op.attrs.get("sub_block")
        ops = [op] if inner is None else [*operators_in(program, inner)]
        # An index that a loop inside moves is not known by its name alone.
        moved = {
            name
            for one in ops
            for name in one.output_arg_names
            if inner is not None and one.type != "conditional_block"
        }
        found = [
            (one.output("Out")[0], "" if one.input("I")[0] in moved else one.input("I")[0])
            for one in ops
            if one.type == "write_to_array"
        ]
        if found:
            result[id(op)] = found
    return result


def _needed(ops: Sequence[OpDesc], wanted: set[str]) -> list[OpDesc]:
    """Returns the calls of a block that write wanted variables, in one step or an earlier one."""
    chosen: set[int] = set()
    grows = True
    while grows:
        grows = False
        for i, op in enumerate(ops):
            if i not in chosen and wanted.intersection(op.output_arg_names):
                chosen.add(i)
                grows = True
                # A branch that is not taken leaves a variable as it was.
                wanted = wanted.union(op.input_arg_names, op.output_arg_names)
    return [op for i, op in enumerate(ops) if i in chosen]


# Gradients -------------------------------------------------------------------------------------


def gradient(call: Call, forward: str, scopes: str, outputs: str) -> Slots:
    """Returns the gradients of an operator that runs a sub-block.

    Args:
        call: the call of the gradient operator.
        forward: the operator.
        scopes: the slot of its scopes, by which its call is found.
        outputs: the slot of its outputs.

    Raises:
        PaddleError: the program does not contain the call, or its number of steps has no bound.
    """
    before = call.translation.forward_call(forward, {scopes: call.inputs.get(scopes, [])})
    if before is None:
        raise PaddleError(
            f"{call.op.type}: the program must contain the call of {forward}, got none"
        )
    wanted = _wanted(call, before)
    before = _differentiable(call, before, wanted)
    found = _Differentiated(before, outputs).gradients(_heads(call, before, outputs), wanted)
    result: Slots = {slot: [None] * len(names) for slot, names in call.op.outputs.items()}
    for place, value in found.items():
        result[place.slot + GRAD][place.at] = value
    _restore(call, before, outputs)
    return result


def _wanted(call: Call, before: Call) -> list[Place]:
    return [
        Place(slot.removesuffix(GRAD), i)
        for slot, names in call.op.outputs.items()
        for i, name in enumerate(names)
        if name != EMPTY and slot.removesuffix(GRAD) in before.inputs
    ]


def _heads(call: Call, before: Call, outputs: str) -> dict[int, Any]:
    """Returns the gradients of outputs that are given, by the place of the output."""
    slot = outputs + GRAD
    values = call.inputs.get(slot, ())
    owners = before.op.output(outputs)
    inside = call.op.attrs.get("original_output_grad", call.op.input(slot))
    if "original_output_grad" not in call.op.attrs and len(values) == len(owners):
        inside = [name + GRAD for name in owners]
    places = {name: i for i, name in enumerate(owners)}
    return {
        places[owner]: value
        for name, value in zip(inside, values, strict=False)
        for owner in [name.partition(GRAD)[0]]
        if value is not None and owner in places
    }


def _restore(call: Call, before: Call, outputs: str) -> None:
    """Gives counters the values that they had before the operator.

    The gradient of ``increment`` counts back, so that the gradients of operators before a loop find
    the counter as these operators did.
    """
    block = call.translation.program.blocks[call.op.attrs["sub_block"]]
    names = {name for op in block.ops for name in op.output_arg_names}
    for name in names.intersection(before.op.output(outputs)):
        value = before.environment.get(name)
        if value is not None:
            call.environment[name] = value


def _differentiable(call: Call, before: Call, wanted: Sequence[Place]) -> Call:
    """Returns the forward call, composed again where its gradients need another composition.

    Gradients stop at the variables of the body that have none in the block of gradients, and inputs
    that are constants become values that a gradient can be taken by.
    """
    stopped = _without_gradients(call, before)
    inputs = {slot: list(values) for slot, values in before.inputs.items()}
    lifted = False
    for slot, i in wanted:
        value = inputs[slot][i]
        if is_floating(value) and is_constant(value):
            inputs[slot][i] = rebuilt(value, [symbolic(one) for one in leaves(value)])
            lifted = True
    if not stopped and not lifted:
        return before
    environment = Bodies(before.environment, stopped)
    again = Call(before.op, inputs, {}, call.translation, environment)
    again.outputs = redrawn(call.translation.composed(again), before.outputs)
    return again


def _without_gradients(call: Call, before: Call) -> frozenset[str]:
    """Returns the variables that a body computes and reads and that have no gradient."""
    program = call.translation.program
    backward = operators_in(program, call.op.attrs["sub_block"])
    names = (name for op in backward for name in (*op.input_arg_names, *op.output_arg_names))
    known = {owner for name in names for owner, found, _ in [name.partition(GRAD)] if found}
    block = before.op.attrs["sub_block"]
    forward = [*operators_in(program, block)]
    read = {name for op in forward for name in op.input_arg_names}
    return frozenset(
        name
        for op in forward
        if op.input_arg_names
        for name in op.output_arg_names
        if name in read and name not in known and _is_floating_variable(program, name)
    )


def _is_floating_variable(program: ProgramDesc, name: str) -> bool:
    for block in program.blocks:
        variable = block.vars.get(name)
        if variable is not None and variable.dtype is not None:
            return bool(jnp.issubdtype(variable.dtype, np.inexact))
    return False


class _Differentiated:
    """A call as a function of its entries, which placeholders stand for."""

    def __init__(self, call: Call, outputs: str) -> None:
        """Prepares placeholders for the floating entries of ``call``; ``outputs`` is a slot."""
        self._call = call
        self._outputs = call.outputs.get(outputs, [])
        self._places: dict[Node, Symbol] = {}
        for value in call.entries.values():
            for leaf in leaves(value):
                if isinstance(leaf, Symbol) and is_floating(leaf):
                    self._places.setdefault(leaf.node, _placeholder(call, leaf))

    def gradients(self, heads: Mapping[int, Any], wanted: Sequence[Place]) -> dict[Place, Any]:
        """Returns the gradients by some entries for gradients of some outputs."""
        ys, seeds = [], []
        for i, head in heads.items():
            for y, seed in _pairs(self._outputs[i], head):
                ys.append(y)
                seeds.append(seed)
        entries = {place: leaves(self._call.entries[place]) for place in wanted}
        variables = {
            leaf.node: leaf
            for arrays in entries.values()
            for leaf in arrays
            if isinstance(leaf, Symbol) and is_floating(leaf)
        }
        slopes = self._slopes(ys, seeds, list(variables.values()))
        return {place: self._assembled(place, arrays, slopes) for place, arrays in entries.items()}

    def _slopes(
        self, ys: Sequence[Symbol], seeds: Sequence[Any], variables: Sequence[Symbol]
    ) -> dict[Node, Any]:
        if not ys or not variables:
            return {one.node: _zeros(one) for one in variables}
        images = {node: place.node for node, place in self._places.items()}
        roots = [Symbol([node]) for node in substitute([one.node for one in ys], images)]
        places = [self._places[one.node] for one in variables]
        try:
            found = so.grad(roots, places, list(seeds), unreachable="zero")
        except NotDifferentiableError as error:
            raise PaddleError(
                f"{self._call.op.type}_grad: the number of steps must have a bound; it has one if "
                "the condition depends on constants alone, or if the program has max_steps"
            ) from error
        back = {place.node: node for node, place in self._places.items()}
        slopes = {}
        for one, each in zip(variables, found, strict=True):
            node, *also = substitute([each.node, *each.also], back)
            slopes[one.node] = Symbol([node], tuple(also))
        return slopes

    def _assembled(self, place: Place, arrays: Sequence[Any], slopes: dict[Node, Any]) -> Any:
        """Returns the gradient of one entry; one that occurs twice has it once, and then zeros."""
        results = []
        for leaf in arrays:
            if isinstance(leaf, Symbol) and is_floating(leaf):
                results.append(slopes[leaf.node])
                slopes[leaf.node] = _zeros(leaf)
            else:
                results.append(leaf)
        value = self._call.entries[place]
        if isinstance(value, so.LoDTensor) or all(map(is_floating, arrays)):
            return rebuilt(value, results)
        return None


def _placeholder(call: Call, leaf: Symbol) -> Symbol:
    number = call.translation.next_number()
    variable = so.var(f"{call.op.type}{number}.entry", leaf.shape, leaf.dtype)
    return so.array_unstack(variable) if is_packed(leaf) else variable


def _pairs(output: Any, head: Any) -> Iterator[tuple[Symbol, Any]]:
    """Yields the arrays of an output that depend on something, each with its gradient."""
    if is_tensor_array(output):
        if is_packed(output):
            yield output, to_capacity(head, output.shape[0], _element(output))
            return
        if is_packed(head):
            head = Elements(so.array_read(head, i) for i in range(len(output)))
        for one, each in zip(output, head, strict=False):
            if one is not None and each is not None:
                yield from _pairs(one, each)
    elif isinstance(data_of(output), Symbol) and is_floating(output):
        data = data_of(output)
        yield data, fitted(head, data.shape, data.dtype)


def _element(array: Symbol) -> Symbol:
    return so.sym.zeros(shape=array.shape[1:], dtype=array.dtype)


def merged(values: Sequence[Any]) -> list[Any]:
    """Returns values that branches choose from in one form; None becomes zeros."""
    if any(map(is_tensor_array, values)):
        like = next(one for one in values if one is not None)
        values = same_form(values)
        return [*values] if is_packed(values[0]) else [_filled(one, like) for one in values]
    like = next(one for one in values if one is not None)
    return [_filled(one, like) for one in values]


def _filled(value: Any, like: Any) -> Any:
    if value is None:
        return zeros_like(like)
    if isinstance(value, Elements):
        return Elements(_filled(one, each) for one, each in zip(value, like, strict=True))
    data, wanted = data_of(value), data_of(like)
    if data.shape != wanted.shape and data.size == wanted.size:
        return rebuilt(value, [so.reshape(data, shape=wanted.shape), *leaves(value)[1:]])
    return value
