"""Checks of derivatives in float64: the makers' graph against JAX, forward against reverse mode."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import Case
from registry.errors import NotDifferentiableError, NotLinearError
from registry.operator.operator import Derivative, Operator
from symop.lowering.steps import type_of
from symop.testing.compare import eps, expect_close
from symop.testing.derived import Derivatives, Seeds, derivatives, normal_like, sources_of
from symop.testing.trial import SEED, Arrays, Source, Trial, trials
from symop.testing.verdict import nothing_of

_RTOL = 1e-9
"""The tolerance between two exact derivatives in float64, relative to the largest entry."""
STEP = 1e-3
"""The step by which inputs are moved to detect whether outputs move."""
_FORWARD_ORDERS = 2


# Reverse mode ----------------------------------------------------------------------------------


def check_kernel(operator: Operator, case: Case, order: int | None = None) -> str | None:
    """Checks the gradient graph against JAX's derivative of the bare kernel.

    The check runs in float64, for orders 1 to ``case.order``. From order 2 on, derivatives with
    respect to the first cotangent are included. A derivative declared zero must be zero, and an
    undefined one must be rejected.

    Returns:
        The reason why nothing was compared, or None.

    Raises:
        AssertionError: they differ.
    """
    with jax.enable_x64(True):
        return nothing_of([_check_source(one, "kernel", order) for one in trials(operator, case)])


def check_rules(operator: Operator, case: Case, order: int | None = None) -> str | None:
    """Checks the gradient graph against JAX on the lowered rules, as in ``check_kernel``.

    Returns:
        The reason why nothing was compared, or None.

    Raises:
        AssertionError: they differ.
    """
    with jax.enable_x64(True):
        return nothing_of([_check_source(one, "rules", order) for one in trials(operator, case)])


def _check_source(trial: Trial, source: Source, order: int | None) -> str | None:
    if not trial.differentiable:
        if source == "kernel" and trial.active and trial.carrying:
            _check_declared(trial)
            return _not_derived(trial)
        return without_makers(trial)
    found = derivatives(trial)
    if source not in found.sources:
        return _OPAQUE if trial.operator.opaque else _BY_ITSELF
    check_levels(found, source, top_of(trial, order))
    return None


def highest_by(source: Source, trial: Trial) -> int:
    """Returns the highest order in which a case is compared with ``source``; 0 if it is not."""
    return trial.order if trial.differentiable and source in sources_of(trial) else 0


_BY_ITSELF = "native=False, so JAX's derivative of the kernel is another one"
NOT_FINITE = "nothing finite to compare"
_OPAQUE = "opaque=True, so JAX cannot see into the kernel"


def top_of(trial: Trial, order: int | None) -> int:
    """Returns the highest derivative to compare; ``order`` may lower it."""
    return trial.order if order is None else min(order, trial.order)


def _not_derived(trial: Trial) -> str | None:
    """Returns why no source computes the derivative, or None."""
    if not (trial.active and trial.carrying):
        return "no derivative flows from a floating input to a floating output"
    missing = trial.operator.derivative is Derivative.MISSING
    return trial.operator.reason if missing else None


def without_makers(trial: Trial) -> str | None:
    """Returns why no maker can be checked, or None."""
    value = trial.operator.derivative.value
    return _not_derived(trial) or (None if trial.differentiable else f"its derivative is {value}")


def check_levels(found: Derivatives, source: Source, top: int) -> None:
    """Checks the gradient graph of each order up to ``top`` against ``source``.

    Raises:
        AssertionError: they differ.
    """
    for k in range(1, top + 1):
        _check_level(found, source, k)


def _check_level(found: Derivatives, source: Source, k: int) -> None:
    ours, theirs = found.of("graph").levels[k], found.of(source).levels[k]
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        where = (
            f"{found.trial}: order {k}, with respect to {_wrt_name(found.trial, i)}, "
            f"the gradient graph against JAX on the {source}"
        )
        expect_close(mine, other, rtol_of(found.trial), where, program_of(found, k))


def rtol_of(trial: Trial) -> float:
    """Returns the tolerance of exact derivatives in float64, or in the operator's smaller dtype."""
    coarsest = max(eps(trial.outputs[i].dtype) for i in trial.carrying)
    return max(_RTOL, 64 * coarsest)


def _wrt_name(trial: Trial, index: int) -> str:
    if index < len(trial.active):
        return f"input {trial.operator.slot_of(trial.active[index]).name}"
    return f"the cotangent of {trial.operator.outputs[trial.carrying[index - len(trial.active)]]}"


def program_of(found: Derivatives, order: int) -> functools.partial[str]:
    """Returns a function that returns the gradient program as text."""
    return functools.partial(shown, found, order)


def shown(found: Derivatives, order: int) -> str:
    """Returns the gradient program of ``order``, as the end of a message."""
    return f"\nthe gradient program of order {order}:\n{found.graph.program(order)}"


def finite_seeds(found: Derivatives, source: Source, k: int) -> Seeds | None:
    """Returns seeds that weight level ``k - 1`` and move its inputs where all values are finite.

    They are the drawn seeds, but a head is zero where its entry of level ``k - 1`` or the tangent
    of that entry is not finite, and a tangent is zero where its gradient is not finite. Returns
    None if no head or no tangent remains.
    """
    seeds, way = found.seeds, min(k, 2) - 1
    while True:
        derived = found.with_seeds(source, seeds)
        moved = derived.tangents[k - 1] if k <= _FORWARD_ORDERS else []
        heads = _where_finite(seeds.heads[k - 1], derived.levels[k - 1])
        heads = _where_finite(heads, moved) if moved else heads
        tangents = _where_finite(seeds.tangents[way], derived.levels[k])
        if _count([*heads, *tangents]) == _count([*seeds.heads[k - 1], *seeds.tangents[way]]):
            return seeds
        if not (_count(heads) and _count(tangents)):
            return None
        seeds = Seeds(
            [*seeds.heads[: k - 1], heads, *seeds.heads[k:]],
            [*seeds.tangents[:way], tangents, *seeds.tangents[way + 1 :]],
        )


def _where_finite(weights: Arrays, values: Arrays) -> Arrays:
    return [
        jnp.where(np.isfinite(value), weight, 0)
        for weight, value in zip(weights, values, strict=True)
    ]


def _count(weights: Arrays) -> int:
    """Returns the number of nonzero weights."""
    return sum(int(np.count_nonzero(one)) for one in weights)


def inner(a: Arrays, b: Arrays) -> float:
    """Returns the real inner product of two lists of arrays; NaN where infinities cancel.

    For complex arrays it is the real part of the sum of the products without conjugation: JAX
    defines cotangents by it, so forward and reverse mode agree only in the real part. Entries of
    ``a`` are ignored where ``b`` is zero, even if they are not finite.
    """
    with np.errstate(invalid="ignore"):
        products = [
            np.sum(np.where(np.asarray(y) == 0, 0, np.asarray(x) * np.asarray(y)))
            for x, y in zip(a, b, strict=True)
        ]
        return float(np.real(sum(products)))


def _check_declared(trial: Trial) -> None:
    """Checks that a derivative declared zero is zero, and that an undefined one is rejected."""
    operator = trial.operator
    if operator.derivative is Derivative.ZERO:
        if operator.compared:
            (_check_flat if operator.opaque else _check_zero)(trial)
        return
    try:
        derivatives(trial)
    except NotDifferentiableError as error:
        if operator.reason in str(error):
            return
        raise AssertionError(f"{trial}: the reason must be in the message, got {error}") from error
    raise AssertionError(
        f"{trial}: its derivative is {operator.derivative.value}, so a gradient must be refused"
    )


def _check_zero(trial: Trial) -> None:
    results, pull = jax.vjp(trial.function("kernel", trial.active), *trial.primals)
    types = [type_of(one) for one in results]
    heads = [
        normal_like(np.random.default_rng(SEED), [one])[0]
        if one.differentiable
        else np.zeros(one.shape, jax.dtypes.float0)
        for one in types
    ]
    for i, one in enumerate(pull(heads)):
        where = f"{trial}: declared zero ({trial.operator.reason}), {_wrt_name(trial, i)}"
        expect_close(np.zeros(one.shape), one, 0.0, where)


def _check_flat(trial: Trial) -> None:
    """Checks that an opaque kernel declared flat has equal results after steps to either side."""
    run = trial.function("kernel", trial.active)
    drawn = normal_like(np.random.default_rng(SEED), [type_of(one) for one in trial.primals])
    after, before = (
        run(*[one + sign * STEP * way for one, way in zip(trial.primals, drawn, strict=True)])
        for sign in (1, -1)
    )
    for i in trial.carrying:
        where = (
            f"{trial}: declared zero ({trial.operator.reason}), but "
            f"{trial.operator.outputs[i]} changes along a random direction"
        )
        expect_close(after[i], before[i], 0.0, where)


# Forward mode ----------------------------------------------------------------------------------


def check_adjoint(operator: Operator, case: Case) -> str | None:
    """Checks that forward mode is the adjoint of reverse mode: ``<J v, u> = <v, J^T u>``.

    The check covers orders 1 and 2. Tangents of the graph's pushforward, of the rules and of the
    kernel must agree, too.

    Returns:
        The reason why nothing was compared, or None.

    Raises:
        AssertionError: they differ.
    """
    with jax.enable_x64(True):
        return nothing_of(map(_check_modes, trials(operator, case)))


def _check_modes(trial: Trial) -> str | None:
    if not trial.differentiable:
        return without_makers(trial)
    if not derivatives(trial).graph.linear:
        return "its maker is not linear in the cotangent, so there is no forward mode"
    orders = range(1, min(_FORWARD_ORDERS, trial.order) + 1)
    return nothing_of([_check_forward(derivatives(trial), k) for k in orders])


def _check_forward(found: Derivatives, k: int) -> str | None:
    moving: list[Source] = [one for one in found.sources if found.of(one).tangents[k - 1]]
    nothing = nothing_of([_check_transposed(found, one, k) for one in ("graph", *moving)])
    ours = found.of("graph").tangents[k - 1]
    for source in moving:
        for mine, other in zip(ours, found.of(source).tangents[k - 1], strict=True):
            where = f"{found.trial}: order {k}, the graph's tangents against JAX on the {source}"
            expect_close(mine, other, rtol_of(found.trial), where, program_of(found, k))
    return nothing


def _check_transposed(found: Derivatives, source: Source, k: int) -> str | None:
    seeds = finite_seeds(found, source, k)
    if seeds is None:
        return NOT_FINITE
    of_source = found.with_seeds(source, seeds)
    forward = inner(of_source.tangents[k - 1], seeds.heads[k - 1])
    reverse = inner(of_source.levels[k], seeds.tangents[k - 1])
    largest = [
        float(np.max(np.abs(one), initial=0.0, where=np.isfinite(one)))
        for one in of_source.levels[k]
    ]
    size = abs(forward) + abs(reverse) + sum(largest)
    if not np.isfinite(size):
        return NOT_FINITE
    if abs(forward - reverse) > rtol_of(found.trial) * size:
        raise AssertionError(
            f"{found.trial}: order {k}, {source}: forward mode must be the adjoint of reverse "
            f"mode, got <J v, u> = {forward!r} and <v, J^T u> = {reverse!r}{shown(found, k)}"
        )
    return None


# Linearity -------------------------------------------------------------------------------------


def check_linearity(operator: Operator, case: Case) -> str | None:
    """Checks that the gradient is linear in the cotangent, and zero for a zero cotangent.

    An operator with a nonlinear maker must declare ``native=False`` and reject forward mode.

    Returns:
        The reason why nothing was compared, or None.

    Raises:
        AssertionError: the maker is not linear, or forward mode is not rejected.
    """
    with jax.enable_x64(True):
        return nothing_of(map(_check_cotangents, trials(operator, case)))


def _check_cotangents(trial: Trial) -> str | None:
    if not trial.differentiable:
        return without_makers(trial)
    found = derivatives(trial)
    (_check_combination if found.graph.linear else _check_refusal)(found)
    return None


def _check_combination(found: Derivatives) -> None:
    trial, heads = found.trial, found.seeds.heads
    first = heads[0]
    other = normal_like(np.random.default_rng(SEED + 1), [type_of(one) for one in first])
    both = [2.0 * u - 0.5 * w for u, w in zip(first, other, strict=True)]
    zeros = [jnp.zeros_like(one) for one in first]
    of_u, of_w, of_both, of_zero = (
        found.at("graph", trial.primals, [one, *heads[1:]]).levels[1]
        for one in (first, other, both, zeros)
    )
    for i, (u, w, mixed, zero) in enumerate(zip(of_u, of_w, of_both, of_zero, strict=True)):
        where = f"{trial}: the gradient with respect to {_wrt_name(trial, i)}"
        program, scale = program_of(found, 1), [abs(2.0 * u) + abs(0.5 * w)]
        expect_close(mixed, 2.0 * u - 0.5 * w, rtol_of(trial), f"{where} is linear", program, scale)
        if np.all(np.isfinite(u)):
            expect_close(zero, np.zeros(zero.shape), 0.0, f"{where} of a zero cotangent", program)


def _check_refusal(found: Derivatives) -> None:
    trial = found.trial
    if trial.operator.compared:
        raise AssertionError(
            f"{trial}: its gradient maker is not linear in the cotangent, so it must be declared "
            f"native=False{shown(found, 1)}"
        )
    primals = tuple(trial.primals)
    try:
        jax.jvp(trial.function("rules", trial.active), primals, primals)
    except NotLinearError:
        return
    raise AssertionError(f"{trial}: its rules have no forward mode, so jax.jvp must be refused")
