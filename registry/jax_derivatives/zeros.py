"""Determines from a kernel's jaxpr whether its results are zero where some inputs are.

Zeros are propagated through each equation from operands to results. A product is zero if one factor
is, a sum if every term is, a rearrangement of entries if its operand is, and a loop carries zeros
as long as its body preserves them. The results of any other equation are unknown. A zero divided by
zero or multiplied by infinity counts as zero.

``some_is_nonzero`` tells the opposite: a result is not zero in general. An input that may have any
entries is not, and neither is a result that rearranges its entries, adds zeros to them, or chooses
them by a condition that may have any entries.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from typing import Literal as TypingLiteral

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal, Primitive

from registry.primitives import called_by, primitives_named, scan_parts
from registry.xla.barrier import barrier_p

Flags = list[bool]
"""For each value, whether it is known to be zero."""

_SUMS = ("add", "add_jaxvals", "sub", "complex")
_CHOICES = ("select_n", "concatenate", "pad", "scatter", "scatter_add", "dynamic_update_slice")
_OF_EACH = primitives_named(*_SUMS, *_CHOICES)
"""Zero if every floating operand is; indices and conditions do not count."""
_OF_SOME = primitives_named("mul", "dot_general", "conv_general_dilated")
_ENTRIES = (
    *("neg", "abs", "sign", "real", "imag", "conj", "copy", "reduce_precision"),
    *("optimization_barrier", "convert_element_type"),
)
_SHAPES = ("broadcast_in_dim", "reshape", "squeeze", "transpose", "rev")
_PARTS = ("slice", "dynamic_slice", "gather", "reduce_sum", "reduce_window_sum", "cumsum", "fft")
_OF_FIRST = primitives_named(*_ENTRIES, *_SHAPES, *_PARTS, "div") | {barrier_p}
_OF_SECOND = primitives_named("triangular_solve")


def zeros_of(program: Any, flags: Sequence[bool], constants: Sequence[Any] = ()) -> Flags:
    """Returns which results of ``program``, a ``Jaxpr``, are known to be zero.

    Args:
        program: the jaxpr.
        flags: which of its inputs are zero.
        constants: the values of its constants; unknown if omitted.
    """
    known: dict[Any, bool] = dict(zip(program.invars, flags, strict=True))
    known |= {
        one: _is_zero(value) for one, value in zip(program.constvars, constants, strict=False)
    }

    def told(one: Any) -> bool:
        return _is_zero(one.val) if isinstance(one, Literal) else known.get(one, False)

    for equation in program.eqns:
        zeros = _of_equation(equation, list(map(told, equation.invars)))
        known |= dict(zip(equation.outvars, zeros, strict=True))
    return list(map(told, program.outvars))


def _is_zero(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic, int, float, complex)) and not np.any(value)


def _of_equation(equation: Any, flags: Flags) -> Flags:
    primitive, count = equation.primitive, len(equation.outvars)
    if primitive in _LOOPS:
        return _LOOPS[primitive](equation.params, flags)
    inner = _called(equation.params, len(flags))
    if inner is not None:
        return _inside(inner, flags)
    floating = [
        flag
        for one, flag in zip(equation.invars, flags, strict=True)
        if jnp.issubdtype(one.aval.dtype, jnp.inexact)
    ]
    zero = (
        (primitive in _OF_EACH and all(floating) and bool(floating))
        or (primitive in _OF_SOME and any(flags))
        or (primitive in _OF_FIRST and flags[0] and _fills_with_zero(equation.params))
        or (primitive in _OF_SECOND and flags[1])
    )
    return [zero] * count


def _fills_with_zero(params: Mapping[str, Any]) -> bool:
    """Whether ``gather`` fills out-of-bounds entries with zero or NaN."""
    value = params.get("fill_value")
    return value is None or value == 0 or value != value  # noqa: PLR0124


def _inside(program: Any, flags: Sequence[bool]) -> Flags:
    """Returns the results of the jaxpr that an equation contains."""
    return zeros_of(getattr(program, "jaxpr", program), flags, getattr(program, "consts", ()))


def _called(params: Mapping[str, Any], count: int) -> Any:
    """Returns the jaxpr that an equation such as ``jit`` calls with its operands, or None."""
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        program = params.get(key)
        if program is not None and len(getattr(program, "jaxpr", program).invars) == count:
            return program
    return None


# Control flow ----------------------------------------------------------------------------------


def _scan(params: Mapping[str, Any], flags: Flags) -> Flags:
    fixed, carries = scan_parts(params)
    carried = fixed + carries
    return _settled(params["jaxpr"], flags[:fixed], flags[fixed:carried], flags[carried:])


def _while(params: Mapping[str, Any], flags: Flags) -> Flags:
    first, fixed = params["cond_nconsts"], params["body_nconsts"]
    constants = flags[first : first + fixed]
    return _settled(params["body_jaxpr"], constants, flags[first + fixed :])


def _settled(body: Any, fixed: Flags, carry: Flags, rows: Sequence[bool] = ()) -> Flags:
    """Follows a loop: a carried value is zero if it starts as zero and each step keeps it."""
    while True:
        results = _inside(body, [*fixed, *carry, *rows])
        kept = [a and b for a, b in zip(carry, results, strict=False)]
        if kept == carry:
            return [*kept, *results[len(carry) :]]
        carry = kept


def _cond(params: Mapping[str, Any], flags: Flags) -> Flags:
    each = [_inside(branch, flags[1:]) for branch in params["branches"]]
    return [all(results) for results in zip(*each, strict=True)]


_LOOPS: dict[Primitive, Callable[[Mapping[str, Any], Flags], Flags]] = {
    lax.scan_p: _scan,
    lax.while_p: _while,
    lax.cond_p: _cond,
}


# Results that are not zero -----------------------------------------------------------------------

State = TypingLiteral["zero", "any"] | None
"""The entries of a value: zeros, any entries, or unknown."""

_REARRANGED = primitives_named(
    *("broadcast_in_dim", "convert_element_type", "copy", "neg", "reshape", "rev", "squeeze"),
    "transpose",
)
_ADDITIONS = primitives_named("add", "sub")
_PRODUCTS = primitives_named("mul", "dot_general")
_CHOICE = primitives_named("select_n")
_JITTED = primitives_named("jit")


def some_is_nonzero(program: Any, zero: Sequence[bool]) -> bool:
    """Whether some result of ``program``, a ``Jaxpr``, is known not to be zero in general.

    Args:
        program: the jaxpr.
        zero: which of its inputs are zero; the others may have any entries.
    """
    states = _states_of(program, ["zero" if flag else "any" for flag in zero])
    return any(
        state == "any" and one.aval.size > 0
        for state, one in zip(states, program.outvars, strict=True)
    )


def _states_of(jaxpr: Any, states: Sequence[State]) -> list[State]:
    known: dict[Any, State] = dict(zip(jaxpr.invars, states, strict=True))

    def state_of(atom: Any) -> State:
        if isinstance(atom, Literal):
            return None if np.any(atom.val) else "zero"
        return known.get(atom)

    for equation in jaxpr.eqns:
        operands = [state_of(one) for one in equation.invars]
        known.update(zip(equation.outvars, _states_after(equation, operands), strict=False))
    return [state_of(one) for one in jaxpr.outvars]


def _states_after(equation: Any, states: list[State]) -> list[State]:
    """Returns the states of the results of an equation, as far as they are known."""
    primitive = equation.primitive
    if primitive in _JITTED:
        return _states_of(called_by(equation), states)
    if primitive in _REARRANGED:
        return states[:1]
    if primitive in _ADDITIONS and "zero" in states:
        return [states[1] if states[0] == "zero" else states[0]]
    if primitive in _CHOICE:
        return _chosen(states[0], states[1:])
    return ["zero"] if primitive in _PRODUCTS and "zero" in states else []


def _chosen(condition: State, cases: list[State]) -> list[State]:
    """Returns the state of the entries that a condition chooses among ``cases``."""
    if all(one == "zero" for one in cases):
        return ["zero"]
    return ["any"] if condition == "any" and "any" in cases else []
