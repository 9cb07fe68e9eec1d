"""How often a program runs as a draft, by what its own loops compute.

XLA generates loops for most equations of a program, and a draft runs them without LLVM's
optimizations. Libraries compute products, factorizations and most convolutions, which take as long
in a draft.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from registry.primitives import (
    CALLS,
    CONVOLUTIONS,
    FACTORIZATIONS,
    PRODUCTS,
    REARRANGING,
    inner_jaxprs,
    primitives_named,
)
from registry.tuning import present
from symop.xla.compiling import is_plain

_FEWEST = 4
"""A program that would run fewer times as a draft is fully optimized at once."""
_LIBRARY = PRODUCTS | FACTORIZATIONS | primitives_named("fft", "top_k")
_BRANCHES, _LOOPS = primitives_named("cond"), primitives_named("while")
_SCANS = primitives_named("scan")
_CHEAP = REARRANGING | primitives_named(
    *("abs", "add", "and", "convert_element_type", "copy", "div", "eq", "ge", "gt", "le", "lt"),
    *("max", "min", "mul", "ne", "neg", "not", "or", "reduce_max", "reduce_sum", "select_n"),
    *("square", "stop_gradient", "sub"),
)
_USUAL = 3
_FACTORS: dict[Any, int] = {
    **dict.fromkeys(_CHEAP, 1),
    **dict.fromkeys(
        primitives_named("gather", "scatter", "scatter_add", "dynamic_update_slice"), 8
    ),
    **dict.fromkeys(primitives_named("cumsum", "cummax", "cummin", "cumprod", "cumlogsumexp"), 16),
    **dict.fromkeys(primitives_named("random_bits", "threefry2x32"), 32),
    **dict.fromkeys(primitives_named("select_and_scatter_add", "select_and_gather_add"), 32),
    **dict.fromkeys(primitives_named("sort"), 128),
}
"""Estimates of the nanoseconds that an entry takes longer in a draft; ``_USUAL`` by default.

The losses of 20 operators with their gradients were 0.2 to 1.1 times their estimates, and 3 to 4
times for the gamma function and the inverse error function.
"""


class Work(NamedTuple):
    """What the loops of a program compute.

    Attributes:
        equations: the number of equations, those in loops once.
        entries: the entries that they compute, each times its factor; those in loops in each step.
    """

    equations: int
    entries: float


def draft_runs(jaxpr: Any) -> int:
    """Returns how often the program of a jaxpr runs as a draft.

    By estimate, the runs take as much longer than those of the optimized program as a draft saves
    in compilation (``Tuning.draft_loss``), but there are at most ``Tuning.draft_runs``. There is
    none where the number of steps of a loop is not known, or a dtype to XLA's older emitters.
    """
    work, tuning = _work(getattr(jaxpr, "jaxpr", jaxpr)), present.tuning
    most = tuning.draft_loss * work.equations / max(work.entries, 1)
    runs = int(min(tuning.draft_runs, most))
    return runs if runs >= _FEWEST else 0


def _work(jaxpr: Any) -> Work:
    return _sum(map(_work_of, jaxpr.eqns))


def _sum(parts: Iterable[Work]) -> Work:
    listed = list(parts)
    return Work(sum(one.equations for one in listed), sum(one.entries for one in listed))


def _work_of(equation: Any) -> Work:
    primitive = equation.primitive
    within = _sum(map(_work, inner_jaxprs(equation)))
    if primitive in _LOOPS:
        return Work(within.equations, math.inf)
    if primitive in _SCANS:
        return Work(within.equations, within.entries * equation.params["length"])
    if primitive in CALLS or primitive in _BRANCHES:
        return within
    if not all(has_known_dtype(one.aval) for one in equation.outvars):
        return Work(1, math.inf)
    # The jaxpr of a reduction or a scatter combines two numbers.
    return Work(1, _entries(equation))


def has_known_dtype(type: Any) -> bool:
    """Whether XLA's older emitters know the dtype of a type; keys are integers to them."""
    dtype = getattr(type, "dtype", None)
    return is_plain(dtype) or dtype is None or jnp.issubdtype(dtype, jax.dtypes.extended)


def _entries(equation: Any) -> int:
    primitive, params = equation.primitive, equation.params
    if primitive in CONVOLUTIONS and _is_looped(params):
        kernel, axis = equation.invars[1], params["dimension_numbers"].rhs_spec[0]
        terms = _size(kernel) // max(int(kernel.aval.shape[axis]), 1)
        return _size(equation.outvars[0]) * terms
    if primitive in _LIBRARY:
        return 0
    if "window_dimensions" in params:  # those of the gradient are read at each of its results
        size = min(map(_size, (*equation.invars, *equation.outvars)))
        size *= int(math.prod(params["window_dimensions"]))
        return size * _FACTORS.get(primitive, _USUAL)
    size = max(map(_size, (*equation.invars, *equation.outvars)))
    if primitive in REARRANGING:
        size = sum(map(_size, equation.outvars))
    return size * _FACTORS.get(primitive, _USUAL)


def _is_looped(params: Any) -> bool:
    """Whether XLA has loops of its own for a convolution, as for transposed ones."""
    return params["batch_group_count"] > 1 or any(one > 1 for one in params["lhs_dilation"])


def _size(value: Any) -> int:
    return math.prod(getattr(value.aval, "shape", ()))
