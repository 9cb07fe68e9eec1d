"""Gradients with rematerialization: built as graphs, or computed by JAX from a blocked graph."""

from collections.abc import Callable, Sequence

from registry.hooks import define
from symop.autodiff import gradients
from symop.autodiff.accumulation import IN_ORDER, Accumulation
from symop.autodiff.differentiate import output_values, pullback
from symop.graph.nodes import Node, topological
from symop.graph.policies import KEEP_ALL, Policy, RematScope, scope_of
from symop.graph.rewriting import substitute
from symop.passes.remat.blocks import Contracted, Plan, apart, contract
from symop.passes.remat.loops import chosen, holds_scopes, is_loop
from symop.passes.remat.naming import require_names
from symop.passes.remat.runs import Run, calls_of, gather_runs, segments


def pull_back(
    ys: Sequence[Node],
    xs: Sequence[Node],
    heads: Sequence[Node],
    policy: Policy | None = None,
    summing: Accumulation = IN_ORDER,
) -> list[Node | None]:
    """Computes ``pullback``, keeping values of ``ys`` as ``policy`` and the graph's scopes say."""
    levels = _levels(ys, xs, policy, for_jax=False)
    for level in levels:
        ys, xs = level.outputs, [level.image.value(one) for one in xs]
    gradients = pullback(ys, xs, heads, summing)
    present = [one for one in gradients if one is not None]
    for level in reversed(levels):
        # The forward graph is unchanged: the gradient reads values of blocks from it.
        present = substitute(present, level.stands_for)
    supply = iter(present)
    return [None if one is None else next(supply) for one in gradients]


define(gradients.Gradients, pull=pull_back)


def seal(roots: Sequence[Node], policy: Policy | None) -> list[Node]:
    """Returns ``roots`` with blocks; JAX's gradients keep their values as policy and scopes say."""
    marked = chosen(roots, policy)
    levels = _levels(marked, (), policy, for_jax=True)
    return levels[-1].outputs if levels else marked


def _levels(
    roots: Sequence[Node], xs: Sequence[Node], policy: Policy | None, *, for_jax: bool
) -> list[Contracted]:
    """Returns the graph with its innermost scopes as blocks, then with those around them, etc."""
    if policy is not None:
        require_names(policy, roots)
    order = topological(roots)
    deepest = max((one.depth for node in order if (one := scope_of(node))), default=0)
    levels: list[Contracted] = []

    def add(plans: Sequence[Plan]) -> None:
        nonlocal roots, xs
        if not any(plan.policy is not None for plan in plans):
            return
        level = contract(roots, plans)
        levels.append(level)
        roots, xs = level.outputs, [level.image.value(one) for one in xs]

    for depth in range(deepest, 0, -1):
        add(_scopes(roots, xs, depth))
    if policy is not None and policy.again:
        add(_policy(roots, xs, policy, for_jax))
    elif for_jax and any(holds_scopes(node) for node in calls_of(order)):
        add(_alone(calls_of(topological(roots)), holds_scopes))
    return levels


# Plans -----------------------------------------------------------------------------------------


def _scopes(roots: Sequence[Node], xs: Sequence[Node], depth: int) -> list[Plan]:
    """Plans blocks for the scopes that are nested ``depth - 1`` deep."""
    order = topological(roots)
    barred = apart(order, xs)
    runs = gather_runs(order, lambda node: None if node in barred else _around(node, depth))
    plans: list[Plan] = []
    for scope, run in runs:
        if isinstance(scope, RematScope) and scope.policy.again:
            parts = [run] if scope.policy.costly else _parts(run, roots, scope.policy)
            plans += [Plan(part, scope.policy) for part in parts]
        else:
            plans.append(Plan(run, None))
    return plans


def _around(node: Node, depth: int) -> RematScope | None:
    scope = scope_of(node)
    while scope is not None and scope.depth > depth:
        scope = scope.outer
    return scope if scope is not None and scope.depth == depth else None


def _policy(roots: Sequence[Node], xs: Sequence[Node], policy: Policy, for_jax: bool) -> list[Plan]:
    """Plans blocks of a whole graph except its last segment, whose gradient comes first."""
    order = topological(roots)
    calls, barred = calls_of(order), apart(order, xs)
    parts = _parts(calls, roots, policy)
    last = parts.pop() if len(parts) > 1 else []
    plans: list[Plan] = []
    for run in parts:
        plans += _between(run, policy, lambda node: node in barred or is_loop(node))
    plans.append(Plan(last, None))
    if for_jax:
        plans = [one for plan in plans for one in _loops_alone(plan, barred)]
    return plans


def _between(run: Run, policy: Policy, stays: Callable[[Node], bool]) -> list[Plan]:
    """Plans blocks of ``run`` that exclude the calls for which ``stays`` is true."""
    plans: list[Plan] = []
    part: Run = []
    for node in run:
        if stays(node):
            plans += [Plan(part, policy), Plan([node], None)]
            part = []
        else:
            part.append(node)
    return [*plans, Plan(part, policy)]


def _loops_alone(plan: Plan, barred: set[Node]) -> list[Plan]:
    """Makes each loop a block that keeps all its results: JAX would see inside and keep more."""
    if plan.policy is not None:
        return [plan]
    return _alone(plan.run, lambda node: is_loop(node) and node not in barred)


def _alone(calls: Sequence[Node], holds: Callable[[Node], bool]) -> list[Plan]:
    return [Plan([node], KEEP_ALL if holds(node) else None) for node in calls]


def _parts(calls: Sequence[Node], roots: Sequence[Node], policy: Policy) -> list[Run]:
    """Cuts ``calls`` as ``policy`` says."""
    if policy.chosen:
        return _after_chosen(calls, policy)
    if policy.cuts == 1 or len(calls) < 2:
        return [list(calls)]
    return segments(calls, roots, policy.cuts, policy.keeps)


def _after_chosen(calls: Sequence[Node], policy: Policy) -> list[Run]:
    """Cuts ``calls`` after each one whose value is kept."""
    parts: list[Run] = [[]]
    for node in calls:
        parts[-1].append(node)
        if any(policy.keeps(one) for one in output_values(node)):
            parts.append([])
    return [part for part in parts if part] or [[]]
