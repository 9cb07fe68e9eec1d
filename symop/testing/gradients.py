"""Proofs of derivatives in float64: the makers' graph against JAX, forward against reverse mode."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import Case
from registry.errors import NotDifferentiableError, NotLinearError
from registry.operator import Derivative, Operator
from symop.lowering import type_of
from symop.testing.compare import eps, expect_close
from symop.testing.derived import Derivatives, Seeds, derivatives, normal_like, sources_of
from symop.testing.trial import SEED, Arrays, Source, Trial, trials
from symop.testing.verdict import nothing_of

_RTOL = 1e-9
"""What two exact derivatives in float64 may differ by, relative to the largest entry."""
STEP = 1e-3
"""How far inputs are moved to see whether outputs move with them."""
_FORWARD_ORDERS = 2


# Reverse mode ----------------------------------------------------------------------------------


def check_kernel(operator: Operator, case: Case, order: int | None = None) -> str | None:
    """The gradient graph is JAX's derivative of the bare kernel.

    In float64, for orders 1 to ``case.order``. From order 2 on the derivatives with respect to
    the first cotangent are among them. A derivative that is declared zero must be zero, one that
    is undefined must be refused.

    Returns:
        Why there was nothing to compare, or None.

    Raises:
        AssertionError: they differ.
    """
    with jax.enable_x64(True):
        return nothing_of([_check_source(one, "kernel", order) for one in trials(operator, case)])


def check_rules(operator: Operator, case: Case, order: int | None = None) -> str | None:
    """The gradient graph is JAX's derivative through the lowered rules, as in ``check_kernel``.

    Returns:
        Why there was nothing to compare, or None.

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
    """The highest order in which a case is compared with ``source``; 0 if it is not."""
    return trial.order if trial.differentiable and source in sources_of(trial) else 0


_BY_ITSELF = "native=False, so JAX's derivative of the kernel is another one"
NOT_FINITE = "nothing finite to compare"
_OPAQUE = "opaque=True, so JAX cannot see into the kernel"


def top_of(trial: Trial, order: int | None) -> int:
    """The highest derivative to compare, where ``order`` may ask for fewer."""
    return trial.order if order is None else min(order, trial.order)


def _not_derived(trial: Trial) -> str | None:
    """Why no source tells the derivative, or None."""
    if not (trial.active and trial.carrying):
        return "no derivative flows from a floating input to a floating output"
    missing = trial.operator.derivative is Derivative.MISSING
    return trial.operator.reason if missing else None


def without_makers(trial: Trial) -> str | None:
    """Why there is no maker to look at, or None."""
    value = trial.operator.derivative.value
    return _not_derived(trial) or (None if trial.differentiable else f"its derivative is {value}")


def check_levels(found: Derivatives, source: Source, top: int) -> None:
    """The gradient graph of each order up to ``top`` is what ``source`` computes.

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
    """Exact derivatives in float64, unless the operator itself computes in a smaller dtype."""
    coarsest = max(eps(trial.outputs[i].dtype) for i in trial.carrying)
    return max(_RTOL, 64 * coarsest)


def _wrt_name(trial: Trial, index: int) -> str:
    if index < len(trial.active):
        return f"input {trial.operator.slot_of(trial.active[index]).name}"
    return f"the cotangent of {trial.operator.outputs[trial.carrying[index - len(trial.active)]]}"


def program_of(found: Derivatives, order: int) -> functools.partial[str]:
    """Tells the gradient program when it is asked for."""
    return functools.partial(shown, found, order)


def shown(found: Derivatives, order: int) -> str:
    """The gradient program of ``order``, as the end of a message."""
    return f"\nthe gradient program of order {order}:\n{found.graph.program(order)}"


def finite_seeds(found: Derivatives, source: Source, k: int) -> Seeds | None:
    """Seeds that weigh level ``k - 1`` and move what it hangs on where all of it is finite.

    They are the drawn ones; but a head is zero where its entry of level ``k - 1`` or the tangent
    of that entry is not finite, and a tangent where the gradient by it is not. None if nothing is
    left of either.
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
    """How many weights are not zero."""
    return sum(int(np.count_nonzero(one)) for one in weights)


def inner(a: Arrays, b: Arrays) -> float:
    """Real inner product of two lists of arrays; not a number where infinities cancel.

    Of complex arrays it is the real part of the sum of the products, neither one conjugated: JAX
    defines a cotangent by it, so that forward and reverse mode agree in the real part alone. Where
    ``b`` is zero, ``a`` does not count, be it finite or not.
    """
    with np.errstate(invalid="ignore"):
        products = [
            np.sum(np.where(np.asarray(y) == 0, 0, np.asarray(x) * np.asarray(y)))
            for x, y in zip(a, b, strict=True)
        ]
        return float(np.real(sum(products)))


def _check_declared(trial: Trial) -> None:
    """A derivative that is declared zero is zero; one that is undefined is refused."""
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
    """An opaque kernel that is declared flat gives the same a small step to either side."""
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
    """Forward mode is the adjoint of reverse mode: ``<J v, u> = <v, J^T u>``, orders 1 and 2.

    Tangents of the graph's pushforward, of the rules and of the kernel agree too.

    Returns:
        Why there was nothing to compare, or None.

    Raises:
        AssertionError: they do not.
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
    """The gradient is linear in the cotangent, and zero for a zero cotangent.

    An operator whose maker is not linear must say ``native=False`` and refuse forward mode.

    Returns:
        Why there was nothing to compare, or None.

    Raises:
        AssertionError: the maker is not linear, or forward mode goes ahead nevertheless.
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
