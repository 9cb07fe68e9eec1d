"""Eager calls of operators on JAX arrays and tracers, with gradient makers as JAX's rules."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from registry import var
from registry.caches import Jitted, Memo, memoized
from registry.errors import ArgumentError
from registry.hooks import define
from registry.operator.attributes import identity_key
from registry.operator.binding import LEFT_OUT
from registry.operator.operator import Operator
from registry.operator.signature import Slot
from registry.types import TRAINING_TYPE, VarType
from registry.values import SelectedRows, TensorArray
from registry.var import Attributes, Inputs
from symop import random
from symop.lowering.guarding import on_arrays
from symop.lowering.rules import with_rule
from symop.lowering.sharing import (
    Choice,
    Family,
    Numbers,
    choosing,
    number_places,
    without_numbers,
)
from symop.lowering.steps import type_of
from symop.runtime.requesting import refuse_name


class ArrayEmitter:
    """Emits results: calling an operator on arrays computes, and is inlined under ``jax.jit``."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        """Returns an array, or a tuple of the visible outputs and the updated states."""
        refuse_name(operator.name, name)
        traced = any(isinstance(value, jax.core.Tracer) for value in inputs)
        training = _training(operator, inputs)
        supplied = {"training": training or False, "key": _Draw(traced, training is False)}
        values = [_value(operator, i, value, supplied) for i, value in enumerate(inputs)]
        operator.require_values(tuple(values), attributes)
        if traced:
            result = _checked(operator, attributes, values)
        else:
            rest = [v for i, v in enumerate(values) if i != operator.training_index]
            if not operator.number_indices or attributes == operator.defaults:
                run = _compiled(operator, attributes, training)
            else:
                fixed = _fixed.get((operator, identity_key(attributes), training))
                if fixed is None:
                    run, numbers = _sharing(operator, attributes, values, training)
                    rest += numbers
                else:
                    run = fixed
            result = run(*rest)
        return _shown(operator, result)

    def filled(self, value: bool | int | float | complex, type: VarType) -> Any:
        """Returns an array of ``type`` filled with one number."""
        return jax.numpy.full(type.shape, value, type.dtype)


class _Draw(NamedTuple):
    """Supplies a random key that a call omitted.

    Inside a trace, a drawn key would be a constant, so every run would draw the same numbers. There
    the key may be omitted only for an operator in prediction mode, which does not use it.
    """

    traced: bool
    unused: bool

    def __call__(self, operator: Operator) -> Any:
        if self.unused and (self.traced or random.is_staged()):
            return jax.random.key(0)
        if not self.traced:
            return random.next_key(operator.name)
        raise ArgumentError(
            f"{operator.name}: key= must be given inside a JAX transformation, got nothing"
        )


def _value(operator: Operator, index: int, value: Any, supplied: Mapping[str, Any]) -> Any:
    if value is LEFT_OUT:
        slot = operator.slot_of(index)
        if slot.role not in supplied:
            raise ArgumentError(
                f"{operator.name}: slot {slot.name!r} must be filled when the inputs are arrays, "
                f"got nothing{_layers(slot)}"
            )
        supply = supplied[slot.role]
        return supply(operator) if slot.role == "key" else supply
    if isinstance(value, (list, tuple)):
        return np.asarray(value)
    if value is not None and not isinstance(value, _NUMBERS):
        _require_array(operator, index, value)
    return value


def _layers(slot: Slot) -> str:
    """Returns a hint at symbols, if calls on them create a variable for the slot."""
    return "; only a call on symbols (so.var) creates parameters" if slot.created else ""


_NUMBERS = (
    bool, int, float, complex, np.ndarray, np.generic, jax.Array, SelectedRows, TensorArray,
)  # fmt: skip


def _require_array(operator: Operator, index: int, value: Any) -> None:
    if not hasattr(value, "__jax_array__") and not isinstance(value, jax.core.Tracer):
        slot = operator.slot_of(index).name
        raise ArgumentError(
            f"{operator.name}: slot {slot!r} must hold an array, a number or a symbol, "
            f"got {type(value).__name__} {value!r}"
        )


def _training(operator: Operator, inputs: Inputs) -> bool | None:
    """Returns the value of the training flag; None for an operator without one."""
    if operator.training_index is None:
        return None
    value = inputs[operator.training_index]
    if value is LEFT_OUT:
        return False
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{operator.name}: training must be True or False, got {value!r}")
    return bool(value)


def _checked(operator: Operator, attributes: Attributes, values: list[Any]) -> Any:
    """Runs the operator with its rules; inputs that do not fit raise the operator's own error."""
    operator.infer(_types(operator, values), attributes)
    return with_rule(operator, attributes)(*values)


def _types(operator: Operator, values: Sequence[Any]) -> tuple[VarType | None, ...]:
    types = [None if value is None else type_of(value) for value in values]
    if operator.training_index is not None:
        types[operator.training_index] = TRAINING_TYPE
    return tuple(types)


@memoized(key=identity_key)
def _compiled(operator: Operator, attributes: Attributes, training: bool | None) -> Jitted:
    """Returns the operator, compiled once for each combination of input types."""

    def run(*rest: Any) -> Any:
        return _checked(operator, attributes, _flagged(operator, rest, training))

    run.__name__ = operator.name
    return Jitted(run)


def _flagged(operator: Operator, rest: Sequence[Any], training: bool | None) -> list[Any]:
    """Returns ``rest`` with the training flag inserted."""
    values = list(rest)
    if training is not None:
        values.insert(operator.training_index or 0, training)
    return values


_fixed: Memo[Any, Jitted] = Memo()
"""Operators compiled with their numbers as constants, for fast lookup."""
_families: Memo[Any, Family] = Memo()


def _sharing(
    operator: Operator,
    attributes: Attributes,
    values: Sequence[Any],
    training: bool | None,
) -> tuple[Jitted, Numbers]:
    """Returns the compiled operator and the attributes that it takes after the inputs."""
    places = number_places(operator, attributes)
    if not places:
        return _compiled(operator, attributes, training), ()
    like = operator, without_numbers(attributes, places), training
    family = _families.get(like) or _families.put(like, Family())

    def make(choice: Choice) -> Jitted:
        if not choice.readings:
            key = operator, identity_key(attributes), training
            return _fixed.put(key, _compiled(operator, attributes, training))
        kernel, (reading,) = on_arrays(operator, attributes), choice.readings

        def run(*rest: Any) -> Any:
            count = len(rest) - len(reading)
            shared = reading.arguments(attributes, rest[count:])
            return kernel(*_flagged(operator, rest[:count], training), **shared)

        run.__name__ = operator.name
        return Jitted(run)

    numbers = tuple([attributes[i] for i in places])
    choose = choosing(operator, attributes, places, lambda: _types(operator, values))
    program, taken = family.chosen(numbers, make, choose)
    if taken:
        operator.infer(_types(operator, values), attributes)  # raises for inputs that do not fit
    return program, taken


def _shown(operator: Operator, result: Any) -> Any:
    if operator.single:
        return result
    updated = sorted(operator.update_indices.values())
    shown = [result[i] for i in operator.visible] + [result[i] for i in updated]
    return shown[0] if len(shown) == 1 else tuple(shown)


define(var.Arrays, emitter=ArrayEmitter())
