"""Operators on eager arrays: the emitter that records calls, Python's operators, NumPy ufuncs."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from registry import var
from registry.errors import ArgumentError
from registry.hooks import define
from registry.operator.binding import LEFT_OUT
from registry.operator.operator import Operator
from registry.table import find
from registry.tracebacks import hide_frames
from registry.types import VarType
from registry.var import Attributes, Inputs
from symop.eager.alone import TracedInputError, once
from symop.eager.array_protocols import is_foreign
from symop.eager.ndarray import NDArray, call_of
from symop.eager.recording import on_tracers, one_result, results
from symop.eager.segments import local
from symop.eager.tape_nodes import NEVER
from symop.runtime.requesting import refuse_name


class NDArrayEmitter:
    """Records calls of operators on eager arrays."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        """Records a call; returns an array, or a tuple of the visible outputs.

        Auxiliary states are updated in place.
        """
        refuse_name(operator.name, name)
        _require_filled(operator, inputs)
        operator.require_values(inputs, attributes)
        call = call_of(operator, attributes)
        try:
            if call.once and not local.state.taped:
                result = once(call, inputs)
                if result is not None:
                    return result
            if operator.single:
                return one_result(call, inputs)
            arrays = results(call, inputs)
        except TracedInputError:
            arrays = _traced(operator, inputs, attributes)
        for state in arrays[len(operator.visible) :]:
            state._link = NEVER  # an updated state carries no derivative
        count = len(operator.visible)
        for i, state in zip(sorted(operator.update_indices), arrays[count:], strict=False):
            if isinstance(inputs[i], NDArray):
                inputs[i]._take_value_of(state)
        return arrays[0] if count == 1 else tuple(arrays[:count])

    def filled(self, value: bool | int | float | complex, type: VarType) -> NDArray:
        """Returns an array of ``type`` filled with one number."""
        return NDArray(jnp.full(type.shape, value, type.dtype))


define(NDArray, emitter=NDArrayEmitter())


def _require_filled(operator: Operator, inputs: Inputs) -> None:
    for index, value in enumerate(inputs):
        if value is LEFT_OUT and operator.slot_of(index).role not in ("key", "training"):
            raise ArgumentError(
                f"{operator.name}: slot {operator.slot_of(index).name!r} must be filled when the "
                "inputs are arrays, got nothing"
            )


def _traced(operator: Operator, inputs: Inputs, attributes: Attributes) -> list[NDArray]:
    """Returns the results of a call inside a JAX transformation."""
    if local.state.taped:
        return on_tracers(call_of(operator, attributes), inputs)
    flag = operator.training_index
    values = tuple(
        local.state.training
        if i == flag and one is LEFT_OUT
        else (one.value if isinstance(one, NDArray) else one)
        for i, one in enumerate(inputs)
    )
    result = var.Arrays.emitter.emit(operator, values, attributes, None)
    return [NDArray(one) for one in (result if isinstance(result, tuple) else (result,))]


def _quick(symbol: str, swapped: bool = False) -> Callable[[NDArray, Any], Any]:
    """Returns the method of a Python operator, with a fast path for arrays, floats and ints."""

    found: tuple[Any, Any] = (None, None)

    def method(self: NDArray, other: Any) -> Any:
        nonlocal found
        try:
            operator = var.infix.get(symbol)
            if operator.__class__ is Operator and isinstance(other, _OPERANDS):
                pair = (other, self) if swapped else (self, other)
                if operator.value_rule is not None:
                    operator.require_values(pair, operator.defaults)
                known = found  # read once: another thread may replace the pair
                if known[0] is not operator:
                    known = found = operator, call_of(operator, operator.defaults)
                try:
                    return one_result(known[1], pair)
                except TracedInputError:
                    return _traced(operator, pair, operator.defaults)[0]
            if operator is None or is_foreign(other):
                return NotImplemented
            return operator(other, self) if swapped else operator(self, other)
        except Exception as error:
            hide_frames(error)
            raise

    return method


_OPERANDS = (NDArray, float, int)


def _in_place(symbol: str) -> Callable[[NDArray, Any], NDArray]:
    """Returns the method of an operator such as ``x += y``, which keeps the type of ``x``."""
    compute = _quick(symbol)

    def method(self: NDArray, other: Any) -> NDArray:
        try:
            self._require_changeable(f"x {symbol}= y")
            result = compute(self, other)
            _require_same_type(symbol, self, other, result)
            self._take_value_of(result)
            return self
        except Exception as error:
            hide_frames(error)
            raise

    return method


def _require_same_type(symbol: str, x: NDArray, other: Any, result: Any) -> None:
    """Raises unless ``result``, the result of an operator in place, has the type of ``x``."""
    if result is NotImplemented:
        raise ArgumentError(f"x {symbol}= y: y must be an array or a number, got {other!r}")
    if result.type.strong() is not x.type.strong():
        raise ArgumentError(
            f"x {symbol}= y: the result must have the type of x, {x.type}, got {result.type}"
        )


def _division(swapped: bool = False) -> Callable[[NDArray, Any], Any]:
    """Returns the method of ``divmod``: the quotient rounded down, and the remainder."""
    quotient, remainder = _quick("//", swapped), _quick("%", swapped)

    def method(self: NDArray, other: Any) -> Any:
        result = quotient(self, other)
        return result if result is NotImplemented else (result, remainder(self, other))

    return method


# NumPy's functions ---------------------------------------------------------------------------


def _array_ufunc(self: NDArray, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """Applies a NumPy ufunc by the operator of the same name, or else by NumPy.

    A NumPy array given as ``out=``, as in ``a += x``, receives the values.
    """
    del self
    out = options.pop("out", None)
    if method == "__call__" and not options:
        results = _computed(ufunc, inputs)
        if results is not None:
            arrays = results[0] if len(results) == 1 else results
            return arrays if out is None else _stored(out, results)
    if out is not None:  # with where=, NumPy keeps the other entries of out
        options["out"] = tuple(np.array(one) if isinstance(one, NDArray) else one for one in out)
    operands = [np.asarray(one) if isinstance(one, NDArray) else one for one in inputs]
    result = _eager(getattr(ufunc, method)(*operands, **options))
    return (
        result if out is None else _stored(out, result if isinstance(result, tuple) else (result,))
    )


def _computed(ufunc: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Returns the results of the operators that implement a ufunc; None if none does."""
    if ufunc is np.divmod:
        return var.infix["//"](*inputs), var.infix["%"](*inputs)
    operator = find(ufunc.__name__)
    if operator is None or not operator.single or ufunc.nout != 1:
        return None
    return (operator(*inputs),) if operator.direct_count == ufunc.nin else None


def _eager(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_eager, result))
    return NDArray(result) if isinstance(result, (np.ndarray, np.generic)) else result


def _stored(out: tuple[Any, ...], results: tuple[Any, ...]) -> Any:
    """Writes the results into ``out``, cast by NumPy's rule ``same_kind``; returns ``out``."""
    for place, one in zip(out, results, strict=True):
        if isinstance(place, NDArray):
            place.take_over(one)
        elif place is not None:
            np.copyto(place, np.asarray(one), casting="same_kind")
    return out[0] if len(out) == 1 else out


_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
define(
    NDArray,
    __array_ufunc__=_array_ufunc,
    __divmod__=_division(),
    __rdivmod__=_division(swapped=True),
    **{f"__{name}__": _quick(symbol) for name, symbol in _SYMBOLS.items()},
    **{f"__r{name}__": _quick(symbol, swapped=True) for name, symbol in _SYMBOLS.items()},
    **{f"__i{name}__": _in_place(symbol) for name, symbol in _SYMBOLS.items()},
)
