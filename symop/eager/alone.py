"""Eager calls that run on their own, in a kernel compiled for the types of their inputs."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from registry.caches import store
from registry.errors import SymopError
from registry.var import Var
from symop.eager.trace_cache import InternedCall

new = object.__new__


class TracedInputError(Exception):
    """Raised if JAX traces an input, so that the call cannot be recorded."""


class CannotJoinError(Exception):
    """Raised if a call cannot be recorded in the same segment as the calls before it."""


_concrete: type[Any] | None = None
"""JAX's class of concrete arrays; None before the first result."""


def at_once(call: InternedCall, inputs: Sequence[Any]) -> Any:
    """Runs a call immediately; returns None if recording must handle the call or its error."""
    make, call.used = call.make, store.now
    out = new(make)
    out._type = out._segment = out._link = out._grad = None
    if len(inputs) == 2:  # most calls: a fast path to the compiled kernel
        x, y = inputs
        if x.__class__ is make and y.__class__ is make:
            a, b = x._value, y._value
            if a.__class__ is _concrete and b.__class__ is _concrete:
                try:
                    out._value = value = call.alone(a, b)
                except (SymopError, ValueError):  # ValueError: inputs on different devices
                    return None
                if value.__class__ is _concrete:
                    return out
    if any(_is_odd(x, make) for x in inputs):
        return None
    values = _values_of(inputs, make)
    try:
        out._value = _lasting(call.alone, values, call.alone(*values))
    except (SymopError, ValueError):
        return None
    return out


def once(call: InternedCall, inputs: Sequence[Any]) -> Any:
    """Runs a call whose numbers probably do not come again; it need not become a step.

    Returns None if recording must handle the call or its error.
    """
    make = call.make
    call.once = False
    if any(x is not None and x.__class__ is not make for x in inputs):
        return None
    values = tuple([None if x is None else x.value for x in inputs])
    if any(isinstance(x, jax.core.Tracer) for x in values):
        return None
    out = new(make)
    out._type = out._segment = out._link = out._grad = None
    try:
        out._value = _lasting(call.with_numbers, values, call.with_numbers(*values))
    except (SymopError, ValueError):
        return None
    return out


def _lasting(run: Callable[..., Any], values: tuple[Any, ...], result: Any) -> Any:
    """Returns ``result`` as a concrete value, even if JAX is tracing the calling code."""
    if isinstance(result, jax.core.Tracer):
        with jax.ensure_compile_time_eval():
            return run(*values)
    _meet(result)
    return result


def _meet(value: Any) -> None:
    global _concrete  # noqa: PLW0603  # read in each call, which an attribute would slow down
    if _concrete is None and isinstance(value, jax.Array):
        _concrete = type(value)


def _values_of(inputs: Sequence[Any], make: type[Any]) -> tuple[Any, ...]:
    """Returns the inputs as arrays and numbers for a compiled kernel.

    Raises:
        TracedInputError: JAX traces one of them.
    """
    arrays = [x if x.__class__ is make or type(x) in _NUMBERS else make(x) for x in inputs]
    values = tuple([x.value if x.__class__ is make else x for x in arrays])
    if any(isinstance(x, jax.core.Tracer) for x in values):
        raise TracedInputError
    return values


_NUMBERS = (float, int, bool, complex)
_LARGE = 2**31


def is_large(x: Any) -> bool:
    """Whether a number may exceed the range of the default integer dtype."""
    return x.__class__ is int and not -_LARGE <= x < _LARGE


def _is_odd(x: Any, make: type[Any]) -> bool:
    """Whether JAX cannot accept an input unchanged; recording then converts or rejects it."""
    return is_large(x) or x is None or (isinstance(x, Var) and x.__class__ is not make)
