"""What the primitives of JAX do with the entries of their operands, read off a program of them."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from jax.extend import core

ENTRYWISE = frozenset(
    [
        "abs",
        "acos",
        "acosh",
        "add",
        "add_any",
        "and",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "bessel_i0e",
        "bessel_i1e",
        "cbrt",
        "ceil",
        "clamp",
        "complex",
        "conj",
        "convert_element_type",
        "copy",
        "copy_p",
        "cos",
        "cosh",
        "digamma",
        "div",
        "eq",
        "erf",
        "erf_inv",
        "erfc",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "ge",
        "gt",
        "igamma",
        "igamma_grad_a",
        "igammac",
        "imag",
        "integer_pow",
        "is_finite",
        "le",
        "lgamma",
        "log",
        "log1p",
        "logistic",
        "lt",
        "max",
        "min",
        "mul",
        "ne",
        "neg",
        "nextafter",
        "not",
        "optimization_barrier",
        "or",
        "polygamma",
        "pow",
        "real",
        "reduce_precision",
        "regularized_incomplete_beta",
        "rem",
        "round",
        "rsqrt",
        "select_n",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "stop_gradient",
        "sub",
        "symop_barrier",
        "tan",
        "tanh",
        "xor",
        "zeta",
    ]
)
"""JAX's primitives whose results at one entry depend on that entry of their operands alone."""
REARRANGING = frozenset(
    [
        "broadcast_in_dim",
        "concatenate",
        "dynamic_slice",
        "expand_dims",
        "iota",
        "pad",
        "reshape",
        "rev",
        "slice",
        "squeeze",
        "transpose",
    ]
)
"""Those whose results at one entry are an entry of an operand."""
_CALLS = frozenset(
    [
        "checkpoint",
        "closed_call",
        "core_call",
        "custom_jvp_call",
        "custom_vjp_call",
        "custom_vjp_call_jaxpr",
        "jit",
        "pjit",
    ]
)
"""Those that run one program on their operands, once."""


def each_is(harmless: Callable[[Any], bool], jaxpr: Any, moving: Sequence[bool]) -> bool:
    """Whether every equation is ``harmless`` that reads what depends on the ``moving`` inputs."""
    dependent = {var for var, moves in zip(jaxpr.invars, moving, strict=True) if moves}
    for equation in jaxpr.eqns:
        read = [_is_among(one, dependent) for one in equation.invars]
        if not any(read):
            continue
        if not _is_so(harmless, equation, read):
            return False
        dependent.update(equation.outvars)
    return True


def _is_among(one: Any, dependent: Collection[Any]) -> bool:
    return not isinstance(one, core.Literal) and one in dependent


def _is_so(harmless: Callable[[Any], bool], equation: Any, read: Sequence[bool]) -> bool:
    if equation.primitive.name not in _CALLS:
        return harmless(equation)
    inner = [one for one in equation.params.values() if hasattr(one, "jaxpr")]
    return len(inner) == 1 and each_is(harmless, inner[0].jaxpr, read)
