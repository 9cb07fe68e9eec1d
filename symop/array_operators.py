"""What operators do with eager arrays: the emitter that records their calls, and Python's own."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from registry import var
from registry.binding import LEFT_OUT
from registry.errors import ArgumentError
from registry.operator import Operator
from registry.types import VarType
from registry.var import Attributes, Inputs
from symop.alone import TracedError
from symop.array_protocols import is_foreign
from symop.entries import NEVER
from symop.ndarray import NDArray, call_of
from symop.recording import on_tracers, one_result, results
from symop.requesting import refuse_name
from symop.segments import local


class NDArrayEmitter:
    """Calling an operator on eager arrays records it."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        """The result: an array, or a tuple of the visible outputs. States are updated in place."""
        refuse_name(operator.name, name)
        _require_filled(operator, inputs)
        call = call_of(operator, attributes)
        try:
            if operator.single:
                result = one_result(call, inputs)
                operator.require_values(inputs, attributes)
                return result
            made = results(call, inputs)
        except TracedError:
            made = _traced(operator, inputs, attributes)
        operator.require_values(inputs, attributes)
        for state in made[len(operator.visible) :]:
            state._link = NEVER  # a state is no function of what is differentiated
        count = len(operator.visible)
        for i, state in zip(sorted(operator.update_indices), made[count:], strict=False):
            if isinstance(inputs[i], NDArray):
                inputs[i]._take_value_of(state)
        return made[0] if count == 1 else tuple(made[:count])

    def filled(self, value: bool | int | float | complex, type: VarType) -> NDArray:
        """An array of ``type`` filled with one number."""
        return NDArray(jnp.full(type.shape, value, type.dtype))


NDArray.emitter = NDArrayEmitter()


def _require_filled(operator: Operator, inputs: Inputs) -> None:
    for index, value in enumerate(inputs):
        if value is LEFT_OUT and operator.slot_of(index).role not in ("key", "training"):
            raise ArgumentError(
                f"{operator.name}: slot {operator.slot_of(index).name!r} must be filled when the "
                "inputs are arrays, got nothing"
            )


def _traced(operator: Operator, inputs: Inputs, attributes: Attributes) -> list[NDArray]:
    """The call inside of a JAX transformation."""
    if local.state.taped:
        return on_tracers(call_of(operator, attributes), inputs)
    flag = operator.training_index
    values = tuple(
        local.state.training
        if i == flag and one is LEFT_OUT
        else (one.value if isinstance(one, NDArray) else one)
        for i, one in enumerate(inputs)
    )
    found = var.array_emitter.emit(operator, values, attributes, None)
    return [NDArray(one) for one in (found if isinstance(found, tuple) else (found,))]


def _quick(symbol: str, swapped: bool = False) -> Callable[[NDArray, Any], Any]:
    """Python's operator on arrays and numbers, without looking at the arguments twice."""

    def method(self: NDArray, other: Any) -> Any:
        operator = var.infix.get(symbol)
        if operator.__class__ is Operator and isinstance(other, _OPERANDS):
            pair = (other, self) if swapped else (self, other)
            try:
                return one_result(call_of(operator, operator.defaults), pair)
            except TracedError:
                return _traced(operator, pair, operator.defaults)[0]
        if operator is None or is_foreign(other):
            return NotImplemented
        return operator(other, self) if swapped else operator(self, other)

    return method


_OPERANDS = (NDArray, float, int)


def _in_place(symbol: str) -> Callable[[NDArray, Any], NDArray]:
    """``x += y`` and its kin; the dtype stays."""
    compute = _quick(symbol)

    def method(self: NDArray, other: Any) -> NDArray:
        self._require_changeable(f"x {symbol}= y")
        made = compute(self, other)
        if made is NotImplemented:
            raise ArgumentError(f"x {symbol}= y: y must be an array or a number, got {other!r}")
        if made.type.strong() is not self.type.strong():
            raise ArgumentError(
                f"x {symbol}= y: the result must have the type of x, {self.type}, got {made.type}"
            )
        self._take_value_of(made)
        return self

    return method


def _division(swapped: bool = False) -> Callable[[NDArray, Any], Any]:
    """``divmod``: the quotient rounded down, and the remainder."""
    quotient, remainder = _quick("//", swapped), _quick("%", swapped)

    def method(self: NDArray, other: Any) -> Any:
        found = quotient(self, other)
        return found if found is NotImplemented else (found, remainder(self, other))

    return method


for _name, _symbol in {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}.items():  # fmt: skip
    setattr(NDArray, f"__{_name}__", _quick(_symbol))
    setattr(NDArray, f"__r{_name}__", _quick(_symbol, swapped=True))
    setattr(NDArray, f"__i{_name}__", _in_place(_symbol))
for _name, _swapped in {"__divmod__": False, "__rdivmod__": True}.items():
    setattr(NDArray, _name, _division(_swapped))
