"""JAX's primitives, classified by their effect on the entries of their operands.

They are compared as objects: a primitive of another library may have the name of one of JAX's. A
primitive that an installed version of JAX lacks is left out; ``tests/test_jax_contracts.py`` names
those.
"""

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.experimental import io_callback
from jax.extend.core import Literal, Primitive, primitives

from registry.xla.barrier import barrier_p
from registry.xla.device_types import type_axes

Primitives = frozenset[Primitive]


def primitives_named(*names: str) -> Primitives:
    """Returns JAX's public primitives whose variables are called ``names``, followed by ``_p``."""
    places = (primitives, lax)
    candidates = [getattr(one, f"{name}_p", None) for name in names for one in places]
    return frozenset(one for one in candidates if one is not None)


ENTRYWISE_NAMES = (
    *("abs", "acos", "acosh", "add", "add_jaxvals", "and", "asin", "asinh", "atan", "atan2"),
    *("atanh", "bessel_i0e", "bessel_i1e", "cbrt", "ceil", "clamp", "clz", "complex", "conj"),
    *("convert_element_type", "copy", "cos", "cosh", "digamma", "div", "eq", "erf", "erf_inv"),
    *("erfc", "exp", "exp2", "expm1", "floor", "ge", "gt", "igamma", "igamma_grad_a", "igammac"),
    *("imag", "integer_pow", "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt", "max"),
    *("min", "mul", "ne", "neg", "nextafter", "not", "optimization_barrier", "or", "polygamma"),
    *("population_count", "pow", "real", "reduce_precision", "regularized_incomplete_beta", "rem"),
    *("round", "rsqrt", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical"),
    *("sign", "sin", "sinh", "sqrt", "square", "stop_gradient", "sub", "tan", "tanh"),
    *("xor", "zeta"),
)
ENTRYWISE = primitives_named(*ENTRYWISE_NAMES) | {barrier_p}
"""The primitives whose result at one entry depends only on that entry of the operands."""

REARRANGING_NAMES = (
    *("broadcast_in_dim", "concatenate", "dynamic_slice", "iota", "pad", "reshape", "rev"),
    *("slice", "squeeze", "transpose"),
)
REARRANGING = primitives_named(*REARRANGING_NAMES)
"""The primitives whose result at one entry is some entry of an operand."""

REDUCTION_NAMES = (
    *("argmax", "argmin", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod"),
    *("reduce_sum", "reduce_xor"),
)

CALL_NAMES = ("call", "closed_call", "custom_jvp_call", "custom_vjp_call", "jit", "remat")
CALLS = primitives_named(*CALL_NAMES)
"""The primitives that call one jaxpr on their operands, once."""

CONVOLUTION_NAMES = ("conv_general_dilated",)
CONVOLUTIONS = primitives_named(*CONVOLUTION_NAMES)

PRODUCT_NAMES = ("dot_general", "ragged_dot_general", "scaled_dot", *CONVOLUTION_NAMES)
PRODUCTS = primitives_named(*PRODUCT_NAMES)
"""The primitives that the matrix units of accelerators compute."""

FACTORIZATION_NAMES = (
    *("cholesky", "eig", "eigh", "hessenberg", "householder_product", "lu", "qr", "schur", "svd"),
    *("triangular_solve", "tridiagonal", "tridiagonal_solve"),
)
FACTORIZATIONS = primitives_named(*FACTORIZATION_NAMES)
"""The primitives of linear algebra that no library computes in half precision."""

REVERSE_ONLY_NAMES = ("custom_lin",)
REVERSE_ONLY = primitives_named(*REVERSE_ONLY_NAMES)
"""The primitives whose results are tangents that can only be transposed."""


@functools.cache
def callback_primitives() -> Primitives:
    """Returns the primitives that call functions on the host: those that JAX's functions bind."""
    kind = jax.eval_shape(np.float32)
    calling: list[Callable[[Any], Any]] = [
        lambda x: jax.pure_callback(lambda value: value, kind, x),
        lambda x: io_callback(lambda value: value, kind, x),
        lambda x: jax.debug.callback(lambda value: None, x),
        lambda x: jax.debug.print("{}", x),
    ]
    traced = [jax.make_jaxpr(one)(np.float32(0)) for one in calling]
    return frozenset(one.primitive for program in traced for one in program.jaxpr.eqns)


# Jaxprs ------------------------------------------------------------------------------------------


def scan_parts(params: Mapping[str, Any]) -> tuple[int, int]:
    """Returns the numbers of constants and of carries of a ``scan`` equation."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carries, _ = params["ft_in"].unpack()  # since JAX 0.11: a tree of the operands
    return len(consts.vals), len(carries.vals)


def called_by(equation: Any) -> Any:
    """Returns the jaxpr that an equation calls once on its operands, or None."""
    if equation.primitive not in CALLS:
        return None
    inner = list(inner_jaxprs(equation))
    return inner[0] if len(inner) == 1 else None


def inner_jaxprs(equation: Any) -> Iterator[Any]:
    """Iterates over the jaxprs among the parameters of an equation, which are not closed."""
    for parameter in equation.params.values():
        for one in parameter if isinstance(parameter, (list, tuple)) else (parameter,):
            jaxpr = getattr(one, "jaxpr", one)
            if hasattr(jaxpr, "eqns"):
                yield jaxpr


def binds(jaxpr: Any, any_of: Primitives) -> bool:
    """Whether a jaxpr, or one inside it, has an equation of ``any_of`` these primitives."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return any(
        one.primitive in any_of or any(binds(each, any_of) for each in inner_jaxprs(one))
        for one in inner.eqns
    )


def reduces_over_devices(jaxpr: Any) -> bool:
    """Whether an equation combines what devices hold, as ``jax.lax.psum`` does.

    Its result varies along fewer mesh axes than its operands.
    """
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        inner = list(inner_jaxprs(equation))
        if any(map(reduces_over_devices, inner)):
            return True
        read = frozenset[str]().union(*[type_axes(one.aval) for one in equation.invars])
        if not inner and any(read - type_axes(one.aval) for one in equation.outvars):
            return True
    return False


# Equations that depend on inputs -----------------------------------------------------------------


def each_is(harmless: Callable[[Any], bool], jaxpr: Any, moving: Sequence[bool]) -> bool:
    """Whether all equations that depend on the ``moving`` inputs are ``harmless``."""
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
    return not isinstance(one, Literal) and one in dependent


def _is_so(harmless: Callable[[Any], bool], equation: Any, read: Sequence[bool]) -> bool:
    inner = called_by(equation)
    return harmless(equation) if inner is None else each_is(harmless, inner, read)
