"""Whether a kernel is zero where some of its inputs are: read off its program, without running it.

Each equation tells of its results whether they are zero from which of its operands are. A product
is zero if one factor is, a sum if every term is, what moves entries about if its operand is, and a
loop carries zeros as long as its body keeps them. Of any other equation nothing is said. A zero
that is divided by zero or multiplied by infinity counts as zero.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

Flags = list[bool]
"""For each value whether it is known to be zero."""

_SUMS = ("add", "add_any", "sub", "complex")
_CHOICES = ("select_n", "concatenate", "pad", "scatter", "scatter-add", "dynamic_update_slice")
_OF_EACH = frozenset([*_SUMS, *_CHOICES])
"""Zero if every floating operand is: indices and conditions do not count."""
_OF_SOME = frozenset(["mul", "dot_general", "conv_general_dilated"])
_ENTRIES = (
    *("neg", "abs", "sign", "real", "imag", "conj", "copy", "copy_p", "reduce_precision"),
    *("optimization_barrier", "symop_barrier"),
)
_SHAPES = ("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "rev")
_PARTS = ("slice", "dynamic_slice", "gather", "reduce_sum", "reduce_window_sum", "cumsum", "fft")
_OF_FIRST = frozenset([*_ENTRIES, *_SHAPES, *_PARTS, "div", "convert_element_type"])
_OF_SECOND = frozenset(["triangular_solve"])


def zeros_of(program: Any, flags: Sequence[bool], constants: Sequence[Any] = ()) -> Flags:
    """Which results of ``program``, a ``Jaxpr``, are known to be zero.

    Args:
        program: it.
        flags: which of its inputs are zero.
        constants: the values of its constants; unknown if left out.
    """
    known: dict[Any, bool] = dict(zip(program.invars, flags, strict=True))
    known |= {
        one: _is_zero(value) for one, value in zip(program.constvars, constants, strict=False)
    }

    def told(one: Any) -> bool:
        return _is_zero(one.val) if isinstance(one, Literal) else known.get(one, False)

    for equation in program.eqns:
        found = _of_equation(equation, list(map(told, equation.invars)))
        known |= dict(zip(equation.outvars, found, strict=True))
    return list(map(told, program.outvars))


def _is_zero(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic, int, float, complex)) and not np.any(value)


def _of_equation(equation: Any, flags: Flags) -> Flags:
    name, count = equation.primitive.name, len(equation.outvars)
    if name in _CALLS:
        return _CALLS[name](equation.params, flags)
    inner = _called(equation.params, len(flags))
    if inner is not None:
        return _inside(inner, flags)
    floating = [
        flag
        for one, flag in zip(equation.invars, flags, strict=True)
        if jnp.issubdtype(one.aval.dtype, jnp.inexact)
    ]
    zero = (
        (name in _OF_EACH and all(floating) and bool(floating))
        or (name in _OF_SOME and any(flags))
        or (name in _OF_FIRST and flags[0] and _fills_with_zero(equation.params))
        or (name in _OF_SECOND and flags[1])
    )
    return [zero] * count


def _fills_with_zero(params: Mapping[str, Any]) -> bool:
    """Whether what ``gather`` finds outside is zero, or no number at all."""
    value = params.get("fill_value")
    return value is None or value == 0 or value != value  # noqa: PLR0124


def _inside(program: Any, flags: Sequence[bool]) -> Flags:
    """Results of a program that an equation holds."""
    return zeros_of(getattr(program, "jaxpr", program), flags, getattr(program, "consts", ()))


def _called(params: Mapping[str, Any], count: int) -> Any:
    """The program that an equation calls with its operands, such as that of ``jit``, or None."""
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        program = params.get(key)
        if program is not None and len(getattr(program, "jaxpr", program).invars) == count:
            return program
    return None


# Control flow ----------------------------------------------------------------------------------


def _scan(params: Mapping[str, Any], flags: Flags) -> Flags:
    fixed = params["num_consts"]
    carried = fixed + params["num_carry"]
    return _settled(params["jaxpr"], flags[:fixed], flags[fixed:carried], flags[carried:])


def _while(params: Mapping[str, Any], flags: Flags) -> Flags:
    first, fixed = params["cond_nconsts"], params["body_nconsts"]
    given = flags[first : first + fixed]
    return _settled(params["body_jaxpr"], given, flags[first + fixed :])


def _settled(body: Any, fixed: Flags, carry: Flags, rows: Sequence[bool] = ()) -> Flags:
    """What a loop returns: a carried value is zero if it is at first and each round keeps it."""
    while True:
        results = _inside(body, [*fixed, *carry, *rows])
        kept = [a and b for a, b in zip(carry, results, strict=False)]
        if kept == carry:
            return [*kept, *results[len(carry) :]]
        carry = kept


def _cond(params: Mapping[str, Any], flags: Flags) -> Flags:
    each = [_inside(branch, flags[1:]) for branch in params["branches"]]
    return [all(results) for results in zip(*each, strict=True)]


_CALLS: dict[str, Callable[[Mapping[str, Any], Flags], Flags]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
}
