"""Checks in other dtypes: half precision against float32, complex numbers against JAX."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from registry.cases import Case
from registry.errors import DTypeError
from registry.operator.operator import Operator
from registry.types import as_dtype, is_inexact
from symop.lowering.steps import type_of
from symop.testing.compare import eps, expect_close, tiny
from symop.testing.derived import Seeds, derivatives
from symop.testing.gradients import check_levels
from symop.testing.trial import Trial, compiled, trials
from symop.testing.values import check_values
from symop.testing.verdict import nothing_of

_HALVES = ("bfloat16", "float16")
_COMPLEX = "complex128"
_COMPLEX_ORDER = 2


def _accepted(operator: Operator, case: Case, dtype: str) -> list[Trial] | str:
    """Returns the trials of a case in ``dtype``, or the reason why none exists."""
    try:
        found = trials(operator, case, dtype)
    except DTypeError as error:
        return f"{dtype} is refused: {error.args[0].splitlines()[0]}"
    if not any(map(_drawn_in(dtype), found)):
        return f"no input is drawn in {dtype}"
    return found


def _drawn_in(dtype: str) -> Callable[[Trial], bool]:
    wanted = as_dtype(dtype)
    return lambda trial: any(one is not None and one.dtype == wanted for one in trial.types)


# Half precision ---------------------------------------------------------------------------------


def check_half(operator: Operator, case: Case) -> str | None:
    """Checks values and gradients in bfloat16 and float16 against float32 for the same inputs.

    Gradients must keep the dtype of their input.

    Returns:
        The reason why nothing was compared, or None.

    Raises:
        AssertionError: an error exceeds the tolerance, or a dtype differs.
    """
    with jax.enable_x64(False):
        return nothing_of([_check_half(operator, case, dtype) for dtype in _HALVES])


def _check_half(operator: Operator, case: Case, dtype: str) -> str | None:
    found = _accepted(operator, case, dtype)
    if isinstance(found, str):
        return found
    for trial in found:
        widened = _widened(trial)
        run = _values_and_gradients(trial)
        for name, mine, other in zip(_names(trial), run(trial), run(widened), strict=True):
            real = is_inexact(type_of(mine).dtype)
            rtol = case.half_rtol * eps(as_dtype(dtype)) if real else 0.0
            where = f"{trial}: {name} against float32"
            # Values out of range of the smaller dtype become zero or infinite in both.
            expect_close(_held(mine), _held(other.astype(mine.dtype)), rtol, where)
    return None


def _widened(trial: Trial) -> Trial:
    """Returns the trial with the same numbers in float32."""
    wide = Trial(trial.operator, trial.case, "float32", trial.training)
    half = as_dtype(trial.dtype)
    wide.inputs = tuple(
        one.astype(np.float32) if isinstance(one, jax.Array) and one.dtype == half else one
        for one in trial.inputs
    )
    return wide


def _held(value: Any) -> Any:
    """Returns ``value`` with entries below the normal numbers of its dtype set to zero."""
    if not is_inexact(type_of(value).dtype):
        return value
    smallest = tiny(value.dtype)
    return jax.numpy.where(abs(value) < smallest, 0, value)


def _names(trial: Trial) -> list[str]:
    outputs = [f"output {name}" for name in trial.operator.outputs]
    if not trial.differentiable:
        return outputs
    slots = [trial.operator.slot_of(i).name for i in trial.active]
    return [*outputs, *(f"the gradient of {name}" for name in slots)]


def _values_and_gradients(half: Trial) -> Callable[[Trial], Sequence[Any]]:
    """Returns a function from a trial to outputs and gradients, with the cotangents of ``half``."""
    heads = Seeds.drawn(half).heads[0]

    def run(trial: Trial) -> Sequence[Any]:
        outputs = trial.function("rules", trial.active)

        def both(*primals: Any) -> list[Any]:
            if not trial.differentiable:
                return outputs(*primals)
            results, pull = jax.vjp(outputs, *primals)
            zeros = [_zero(one) for one in results]
            for i, head in zip(trial.carrying, heads, strict=True):
                zeros[i] = head.astype(results[i].dtype)
            return [*results, *pull(zeros)]

        found = compiled(both, *trial.primals)(*trial.primals)
        _expect_dtypes(trial, found[len(trial.operator.outputs) :])
        return found  # type: ignore[no-any-return]  # of a compiled function

    return run


def _zero(like: Any) -> Any:
    if jax.numpy.issubdtype(like.dtype, np.inexact):
        return jax.numpy.zeros_like(like)
    return np.zeros(like.shape, jax.dtypes.float0)


def _expect_dtypes(trial: Trial, gradients: Sequence[Any]) -> None:
    for primal, one in zip(trial.primals, gradients, strict=False):
        if one.dtype != primal.dtype:
            raise AssertionError(
                f"{trial}: a gradient must have its input's dtype {primal.dtype}, got {one.dtype}"
            )


# Complex numbers --------------------------------------------------------------------------------


def check_complex(operator: Operator, case: Case) -> str | None:
    """Checks complex values against the reference, and the gradient graph against JAX.

    Cotangents follow JAX's convention: pullbacks are the transpose, not the adjoint.

    Returns:
        The reason why nothing was compared, or None.

    Raises:
        AssertionError: they differ.
    """
    if operator.inference.dtype_rule is None:
        return "no dtype= rule says whether complex numbers are meant"
    with jax.enable_x64(True):
        found = _accepted(operator, case, _COMPLEX)
        if isinstance(found, str):
            return found
        for trial in found:
            check_values(trial)
            if trial.differentiable:
                order = min(_COMPLEX_ORDER, trial.order)
                for source in derivatives(trial).sources:
                    check_levels(derivatives(trial), source, order)
    return None
