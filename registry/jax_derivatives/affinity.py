"""Determines from a kernel's jaxpr whether its results are affine in some inputs.

JAX can transpose a function if and only if each of its primitives is linear in the operands that
depend on the inputs. For the primitives of most kernels that is known without tracing the
transpose, which takes several times as long as tracing the kernel.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax.extend.core import Literal

from registry.primitives import called_by, primitives_named

Flags = list[bool]

_SHAPES = ("broadcast_in_dim", "reshape", "rev", "squeeze", "transpose", "slice", "copy")
_OF_ALL = primitives_named(
    *("add", "add_jaxvals", "sub", "neg", "reduce_sum", "concatenate", "pad"), *_SHAPES
)
"""Linear in all floating operands at once."""
_OF_ONE = primitives_named("mul", "dot_general")
"""Linear in each operand."""
_OF_FIRST = primitives_named("div", "dynamic_slice")
"""Linear in the first operand."""
_CHOICE = primitives_named("select_n")
_JITTED = primitives_named("jit")
_CONVERSION = primitives_named("convert_element_type")
_CURVED = primitives_named(
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh"),
    *("erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "lgamma", "log", "log1p", "logistic"),
    *("max", "min", "pow", "rsqrt", "sign", "sin", "sinh", "sqrt", "tan", "tanh"),
)
"""Primitives that JAX never transposes."""


class _UnknownError(Exception):
    """A primitive that is neither known to be linear nor known not to be."""


def is_affine(program: Any, moving: Sequence[bool]) -> bool | None:
    """Whether the results of ``program``, a ``Jaxpr``, are affine in the ``moving`` inputs.

    None if that cannot be told from the primitives, if an input is not one array, or if a result
    has no entries.
    """
    if len(program.invars) != len(moving) or any(one.aval.size == 0 for one in program.outvars):
        return None
    atoms = [one for one, moves in zip(program.invars, moving, strict=True) if moves]
    if not all(_is_real(one) for one in [*atoms, *program.outvars]):
        return None
    try:
        return _followed(program, moving, [True] * len(program.outvars)) is not None
    except _UnknownError:
        return None


def _is_real(atom: Any) -> bool:
    return bool(jnp.issubdtype(atom.aval.dtype, jnp.floating))


def _followed(jaxpr: Any, moving: Sequence[bool], needed: Sequence[bool]) -> Flags | None:
    """Returns which results depend on the moving inputs; None if some ``needed`` one is curved.

    Raises:
        _UnknownError: An equation between them has a primitive that is not known.
    """
    read = {one for one, flag in zip(jaxpr.outvars, needed, strict=True) if flag and _is_var(one)}
    chosen = []
    for equation in reversed(jaxpr.eqns):
        wanted = [one in read for one in equation.outvars]
        if any(wanted):
            chosen.append((equation, wanted))
            read.update(filter(_is_var, equation.invars))
    dependent = {one for one, moves in zip(jaxpr.invars, moving, strict=True) if moves}
    for equation, wanted in reversed(chosen):
        flags = [_is_var(one) and one in dependent for one in equation.invars]
        results = _step(equation, flags, wanted) if any(flags) else []
        if results is None:
            return None
        dependent.update(
            one for one, moves in zip(equation.outvars, results, strict=False) if moves
        )
    return [_is_var(one) and one in dependent for one in jaxpr.outvars]


def _is_var(atom: Any) -> bool:
    return not isinstance(atom, Literal)


def _step(equation: Any, flags: Flags, wanted: Flags) -> Flags | None:
    """Implements ``_followed`` for one equation with moving operands."""
    primitive = equation.primitive
    if primitive in _JITTED:
        return _followed(called_by(equation), flags, wanted)
    if primitive in _CURVED or (primitive in _OF_ONE and all(flags)):
        return None
    linear = (
        primitive in _OF_ALL
        or primitive in _OF_ONE
        or (primitive in _OF_FIRST and not any(flags[1:]))
        or (primitive in _CHOICE and not flags[0])
        or (primitive in _CONVERSION and _is_real(equation.outvars[0]))
    )
    if not linear:
        raise _UnknownError
    return [True] * len(equation.outvars)
