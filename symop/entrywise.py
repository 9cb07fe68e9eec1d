"""Whether a graph is entrywise: an entry of a value depends on one entry of another alone."""

from collections.abc import Collection, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core

from symop.graph import ARRAY, CONSTANT, KEY, TRAINING, Node, topological
from symop.lowering import Schedule, bare

_ENTRYWISE = frozenset(
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
        "tan",
        "tanh",
        "xor",
        "zeta",
    ]
)
"""JAX's primitives whose results at one entry depend on that entry of their operands alone."""
_IF_OF_ONE_SHAPE = frozenset(["broadcast_in_dim", "reshape"])
"""Those for which that is so where the result has the shape of the operand."""
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


def is_entrywise(y: Node, x: Node) -> bool:
    """Whether ``y`` has the shape of ``x``, and its entries depend on those of ``x`` one by one.

    What else ``y`` depends on is held fixed. The answer is read off the primitives of JAX that
    compute ``y``, in training and in prediction; where one of them is not known to be entrywise,
    it is no.
    """
    if y.type.shape != x.type.shape:
        return False
    order = topological([y], until=[x])
    modes = (False, True) if any(node.op is TRAINING for node in order) else (False,)
    return all(_is_so(order, y, x, training) for training in modes)


def _is_so(order: Sequence[Node], y: Node, x: Node, training: bool) -> bool:
    fed = [n for n in order if not n.operands and n is not x and _is_fed(n)]
    schedule = Schedule([y], [x, *fed], bare, training=training)
    given = [np.empty(n.type.shape, n.type.dtype) for n in (x, *fed)]
    key = (jax.random.key(0), 0) if schedule.needs_key else ()
    traced = jax.make_jaxpr(lambda values: schedule(values, *key)[0])(given)
    return _keeps_entries(traced.jaxpr, [True, *[False] * len(fed)])


def _is_fed(node: Node) -> bool:
    return node.op not in (CONSTANT, ARRAY, KEY, TRAINING)


def _keeps_entries(jaxpr: Any, moving: Sequence[bool]) -> bool:
    """Whether only entrywise primitives read what depends on the inputs that are ``moving``."""
    dependent = {var for var, moves in zip(jaxpr.invars, moving, strict=True) if moves}
    for equation in jaxpr.eqns:
        read = [_is_among(one, dependent) for one in equation.invars]
        if not any(read):
            continue
        if not _is_harmless(equation, read):
            return False
        dependent.update(equation.outvars)
    return True


def _is_among(one: Any, dependent: Collection[Any]) -> bool:
    return not isinstance(one, core.Literal) and one in dependent


def _is_harmless(equation: Any, read: Sequence[bool]) -> bool:
    name = equation.primitive.name
    if name in _CALLS:
        inner = [one for one in equation.params.values() if hasattr(one, "jaxpr")]
        return len(inner) == 1 and _keeps_entries(inner[0].jaxpr, read)
    if name in _IF_OF_ONE_SHAPE:
        return bool(equation.invars[0].aval.shape == equation.outvars[0].aval.shape)
    return name in _ENTRYWISE
