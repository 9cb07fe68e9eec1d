"""Numerical checks of derivatives: finite differences and reference gradients."""

from typing import Any

import jax
import numpy as np

from registry.cases import Case
from registry.differences import STENCIL
from registry.operator.operator import Operator
from symop.testing.compare import expect_close
from symop.testing.derived import Derivatives, Seeds, derivatives
from symop.testing.gradients import (
    NOT_FINITE,
    STEP,
    finite_seeds,
    inner,
    program_of,
    rtol_of,
    shown,
    top_of,
    without_makers,
)
from symop.testing.references import reference_call
from symop.testing.trial import Trial, trials
from symop.testing.verdict import nothing_of

_RTOL = 1e-6


def check_differences(operator: Operator, case: Case, order: int | None = None) -> str | None:
    """Checks the gradient graph of each order against finite differences of the order below.

    The check runs in float64, for orders 1 to ``case.order``. If the declared gradient is not the
    derivative of the kernel, the first order is compared with ``gradient_reference`` instead.

    Returns:
        The reason why nothing was compared, or None.

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
    top = min(top_of(trial, order), highest_by_differences(trial))
    return nothing_of([_check_order(derivatives(trial), k) for k in range(1, top + 1)])


def highest_by_differences(trial: Trial) -> int:
    """Returns the highest order in which a case is compared by differences; 0 if it is not."""
    operator = trial.operator
    declared = operator.gradient_reference is not None
    if not trial.differentiable or not (operator.compared or declared):
        return 0
    drawn = any(slot.role == "key" for slot in operator.slots)
    # A sampler that is run again does not follow the path of its draw.
    return min(trial.case.order, 1) if drawn and declared else trial.case.order


def _check_order(found: Derivatives, k: int) -> str | None:
    if k == 1 and found.trial.operator.gradient_reference is not None:
        _check_reference(found)
        return None
    return _check_slope(found, k)


def _check_slope(found: Derivatives, k: int) -> str | None:
    """Checks the gradient of order ``k`` along a random direction against level ``k - 1``."""
    seeds = finite_seeds(found, "graph", k)
    if seeds is None:
        return NOT_FINITE
    direction = seeds.tangents[min(k, 2) - 1]
    exact = inner(found.with_seeds("graph", seeds).levels[k], direction)
    along = [_value_along(found, k, seeds, step * STEP) for step, _ in STENCIL]
    slope = sum(weight * value for (_, weight), value in zip(STENCIL, along, strict=True)) / STEP
    size = abs(exact) + max(map(abs, along))
    # A coarser dtype loses digits in the difference.
    rtol = max(_RTOL, rtol_of(found.trial) / STEP)
    if not np.isfinite(size):
        return NOT_FINITE
    if not abs(slope - exact) <= rtol * size:
        raise AssertionError(
            f"{found.trial}: order {k}, the gradient graph against finite differences along a "
            f"random direction: must be {slope!r}, got {exact!r}{shown(found, k)}"
        )
    return None


def _value_along(found: Derivatives, k: int, seeds: Seeds, step: float) -> float:
    """Returns the inner product of level ``k - 1`` with its heads, after a step."""
    primals, direction, heads = found.trial.primals, seeds.tangents[min(k, 2) - 1], [*seeds.heads]
    moved = [one + step * way for one, way in zip(primals, direction, strict=False)]
    if k > 1:
        ways = direction[len(primals) :]
        heads[0] = [head + step * way for head, way in zip(heads[0], ways, strict=True)]
    return inner(found.at("graph", moved, heads).levels[k - 1], heads[k - 1])


def _check_reference(found: Derivatives) -> None:
    """Checks the first gradient against ``gradient_reference``, which omits zero gradients."""
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
