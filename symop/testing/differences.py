"""Proofs of derivatives against numbers alone: finite differences and reference gradients."""

from typing import Any

import jax
import numpy as np

from registry.cases import Case
from registry.differences import STENCIL
from registry.operator import Operator
from symop.testing.compare import expect_close
from symop.testing.derived import Derivatives, derivatives
from symop.testing.gradients import (
    STEP,
    inner,
    program_of,
    rtol_of,
    shown,
    top_of,
    without_makers,
)
from symop.testing.references import reference_call
from symop.testing.trial import Arrays, Trial, trials
from symop.testing.verdict import nothing_of

_RTOL = 1e-6


def check_differences(operator: Operator, case: Case, order: int | None = None) -> str | None:
    """The gradient graph of each order is the slope of the one below: outputs, gradients, ...

    In float64, for orders 1 to ``case.order``. Where the declared gradient is not the derivative
    of the kernel, the first order is compared with ``gradient_reference`` instead.

    Returns:
        Why there was nothing to compare, or None.

    Raises:
        AssertionError: they differ.
    """
    with jax.enable_x64(True):
        return nothing_of([_check(one, order) for one in trials(operator, case)])


def _check(trial: Trial, order: int | None) -> str | None:
    if not trial.differentiable:
        return without_makers(trial)
    if not (trial.operator.compared or trial.operator.gradient_reference):
        return "native=False without gradient_reference=, so there is nothing but the maker itself"
    if trial.case.order == 0:
        return "order=0: the outputs jump, or cannot be moved, at this point"
    found, top = derivatives(trial), min(top_of(trial, order), trial.case.order)
    drawn = any(slot.role == "key" for slot in trial.operator.slots)
    if drawn and trial.operator.gradient_reference is not None:
        top = 1  # a sampler that runs anew does not keep to the path of its draw
    for k in range(1, top + 1):
        if k == 1 and trial.operator.gradient_reference is not None:
            _check_reference(found)
        else:
            _check_order(found, k)
    return None


def _check_order(found: Derivatives, k: int) -> None:
    """The gradient of order ``k`` along a random direction is the slope of level ``k - 1``."""
    direction = found.seeds.tangents[min(k, 2) - 1]
    exact = inner(found.of("graph").levels[k], direction)
    along = [_value_along(found, k, direction, step * STEP) for step, _ in STENCIL]
    slope = sum(weight * value for (_, weight), value in zip(STENCIL, along, strict=True)) / STEP
    size = abs(exact) + max(map(abs, along))
    # A coarser dtype loses its digits in the difference.
    rtol = max(_RTOL, rtol_of(found.trial) / STEP)
    if np.isfinite(size) and not abs(slope - exact) <= rtol * size:
        raise AssertionError(
            f"{found.trial}: order {k}, the gradient graph against finite differences along a "
            f"random direction: must be {slope!r}, got {exact!r}{shown(found, k)}"
        )


def _value_along(found: Derivatives, k: int, direction: Arrays, step: float) -> float:
    """Level ``k - 1``, weighed with its heads, after a step."""
    primals, heads = found.trial.primals, list(found.seeds.heads)
    moved = [one + step * way for one, way in zip(primals, direction, strict=False)]
    if k > 1:
        ways = direction[len(primals) :]
        heads[0] = [head + step * way for head, way in zip(heads[0], ways, strict=True)]
    return inner(found.at("graph", moved, heads).levels[k - 1], heads[k - 1])


def _check_reference(found: Derivatives) -> None:
    """The first gradient is that of ``gradient_reference``, which leaves out those that are 0."""
    trial, operator = found.trial, found.trial.operator
    assert operator.gradient_reference is not None
    heads = {
        f"d_{operator.outputs[i]}": np.asarray(head)
        for i, head in zip(trial.carrying, found.seeds.heads[0], strict=True)
    }
    wanted: dict[str, Any] = reference_call(trial, operator.gradient_reference, heads)
    for i, mine in zip(trial.active, found.of("graph").levels[1], strict=True):
        slot = operator.slot_of(i).name
        other = wanted.get(slot, np.zeros(mine.shape))
        where = f"{trial}: the gradient with respect to {slot} against gradient_reference"
        expect_close(mine, other, max(_RTOL, rtol_of(trial)), where, program_of(found, 1))
