"""Eager calls: operators on JAX arrays and tracers, with their gradient makers as JAX's rules."""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from registry import var
from registry.attributes import identity_key
from registry.binding import LEFT_OUT
from registry.errors import ArgumentError
from registry.operator import Operator
from registry.types import TRAINING_TYPE, VarType
from registry.values import SelectedRows, TensorArray
from registry.var import Attributes, Inputs
from symop import random
from symop.lowering import Call, type_of
from symop.requesting import refuse_name
from symop.rules import with_rule


class ArrayEmitter:
    """Calling an operator on arrays computes; inside ``jax.jit`` it is traced in line."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        """The result: an array, or a tuple of the visible outputs and the updated states."""
        refuse_name(operator.name, name)
        traced = any(isinstance(value, jax.core.Tracer) for value in inputs)
        training = _training(operator, inputs)
        supplied = {"training": training or False, "key": _Draw(traced, training is False)}
        values = [_value(operator, i, value, supplied) for i, value in enumerate(inputs)]
        if traced:
            result = _checked(operator, attributes, values)
        else:
            result = _compiled(operator, identity_key(attributes), attributes, training)(
                *[v for i, v in enumerate(values) if i != operator.training_index]
            )
        operator.require_values(tuple(values), attributes)
        return _shown(operator, result)

    def filled(self, value: bool | int | float | complex, type: VarType) -> Any:
        """An array of ``type`` filled with one number."""
        return jax.numpy.full(type.shape, value, type.dtype)


class _Draw(NamedTuple):
    """How a random key that a call left out is supplied.

    Inside a trace a drawn key would be a constant: every run would draw the same numbers. Only an
    operator that predicts, and so does not use its key, may leave it out there.
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
                "got nothing"
            )
        supply = supplied[slot.role]
        return supply(operator) if slot.role == "key" else supply
    if isinstance(value, (list, tuple)):
        return np.asarray(value)
    if value is not None and not isinstance(value, _NUMBERS):
        _require_array(operator, index, value)
    return value


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
    """What the training flag says; None for an operator without one."""
    if operator.training_index is None:
        return None
    value = inputs[operator.training_index]
    if value is LEFT_OUT:
        return False
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{operator.name}: training must be True or False, got {value!r}")
    return bool(value)


def _checked(operator: Operator, attributes: Attributes, values: list[Any]) -> Any:
    """Run with rules; inputs that do not fit are refused with the operator's own message."""
    types = [None if value is None else type_of(value) for value in values]
    if operator.training_index is not None:
        types[operator.training_index] = TRAINING_TYPE
    operator.infer(tuple(types), attributes)
    return with_rule(operator, attributes)(*values)


@functools.lru_cache(maxsize=8192)
def _compiled(
    operator: Operator,
    _key: Any,
    attributes: Attributes,
    training: bool | None,
) -> Call:
    """The operator compiled once for each type of its inputs."""

    def run(*rest: Any) -> Any:
        values = list(rest)
        if training is not None:
            values.insert(operator.training_index or 0, training)
        return _checked(operator, attributes, values)

    run.__name__ = operator.name
    call: Call = jax.jit(run)
    return call


def _shown(operator: Operator, result: Any) -> Any:
    if operator.single:
        return result
    updated = sorted(operator.update_indices.values())
    shown = [result[i] for i in operator.visible] + [result[i] for i in updated]
    return shown[0] if len(shown) == 1 else tuple(shown)


var.set_array_emitter(ArrayEmitter())
