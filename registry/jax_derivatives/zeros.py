"""Determines from a kernel's jaxpr whether its results are zero where some inputs are.

Zeros are propagated through each equation from operands to results. A product is zero if one factor
is, a sum if every term is, a rearrangement of entries if its operand is, and a loop carries zeros
as long as its body preserves them. The results of any other equation are unknown. A zero divided by
zero or multiplied by infinity counts as zero.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal, Primitive

from registry.primitives import primitives_named, scan_parts
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
