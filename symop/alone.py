"""Calls of eager code that run by themselves: a kernel compiled for the types of its inputs."""

from collections.abc import Sequence
from typing import Any

import jax

from registry.errors import SymopError
from registry.var import Var
from symop.steps import Call

new = object.__new__


class TracedError(Exception):
    """An input is traced by JAX, so the call cannot be recorded."""


class ApartError(Exception):
    """An input cannot be computed together with what was recorded before."""


_concrete: type[Any] | None = None
"""JAX's class of arrays that no transformation traces, when one was met."""


def at_once(call: Call, inputs: Sequence[Any]) -> Any:
    """The result of a call that runs by itself; None where recording has to tell what is wrong."""
    make = call.make
    out = new(make)
    out._type = out._segment = out._link = out._grad = None
    if len(inputs) == 2:  # most calls: little stands between them and what is compiled
        x, y = inputs
        if x.__class__ is make and y.__class__ is make:
            a, b = x._value, y._value
            if a.__class__ is _concrete and b.__class__ is _concrete:
                try:
                    out._value = value = call.alone(a, b)
                except (SymopError, ValueError):  # JAX's, if they lie on different devices
                    return None
                if value.__class__ is _concrete:
                    return out
    if any(_is_odd(x, make) for x in inputs):
        return None
    values = _values_of(inputs, make)
    try:
        out._value = _lasting(call, values, call.alone(*values))
    except (SymopError, ValueError):
        return None
    return out


def _lasting(call: Call, values: tuple[Any, ...], result: Any) -> Any:
    """``result`` as a value that outlives the trace of JAX in which the call stands."""
    if isinstance(result, jax.core.Tracer):
        with jax.ensure_compile_time_eval():
            return call.alone(*values)
    _meet(result)
    return result


def _meet(value: Any) -> None:
    if _concrete is None and isinstance(value, jax.Array):
        globals()["_concrete"] = type(value)


def _values_of(inputs: Sequence[Any], make: type[Any]) -> tuple[Any, ...]:
    """Arrays and numbers that a compiled kernel takes.

    Raises:
        TracedError: JAX traces one of them.
    """
    arrays = [x if x.__class__ is make or type(x) in _NUMBERS else make(x) for x in inputs]
    values = tuple([x.value if x.__class__ is make else x for x in arrays])
    if any(isinstance(x, jax.core.Tracer) for x in values):
        raise TracedError
    return values


_NUMBERS = (float, int, bool, complex)
_LARGE = 2**31


def is_large(x: Any) -> bool:
    """Whether a number may not fit the dtype of integers."""
    return x.__class__ is int and not -_LARGE <= x < _LARGE


def _is_odd(x: Any, make: type[Any]) -> bool:
    """Whether an input is none that JAX takes as it is: recorded, it is refused, or a constant."""
    return is_large(x) or x is None or (isinstance(x, Var) and x.__class__ is not make)
