"""Checks of an operator on its cases, each against an independent source.

A gradient graph, JAX's derivative of the bare kernel, JAX's derivative through the lowered rules
and finite differences are four ways to compute the same number. ``check_operator`` compares them
all; the other checks are its parts. Each raises ``AssertionError`` with the operator, the case, the
order, the first entry that differs and the program that computed it.
"""

import functools
import time
from collections.abc import Callable, Sequence

from registry.audit import entry_of
from registry.audited import AuditEntry
from registry.cases import Case, Misuse
from registry.operator.operator import Operator
from registry.table import get
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.testing.deriving import derived_cases
from symop.testing.differences import check_differences, highest_by_differences
from symop.testing.dtypes import check_complex, check_half
from symop.testing.gradients import (
    check_adjoint,
    check_kernel,
    check_linearity,
    check_rules,
    highest_by,
)
from symop.testing.inference import check_inference
from symop.testing.trial import Trial, trials
from symop.testing.values import (
    check_doors,
    check_misuse,
    check_reference,
    check_vmap,
)
from symop.testing.verdict import Finding, Verdict, nothing_of

__all__ = [
    "PROOFS",
    "Finding",
    "Verdict",
    "check_adjoint",
    "check_complex",
    "check_differences",
    "check_doors",
    "check_gradient",
    "check_half",
    "check_inference",
    "check_kernel",
    "check_linearity",
    "check_misuse",
    "check_operator",
    "check_reference",
    "check_rules",
    "check_transforms",
    "check_vmap",
    "derived_cases",
    "highest_orders",
]

PROOFS: dict[str, Callable[[Operator, Case], str | None]] = {
    "inference": check_inference,
    "reference": check_reference,
    "kernel": check_kernel,
    "rules": check_rules,
    "differences": check_differences,
    "adjoint": check_adjoint,
    "linearity": check_linearity,
    "doors": check_doors,
    "vmap": check_vmap,
    "half": check_half,
    "complex": check_complex,
}
"""The proofs run on each case, by name; each returns why nothing was compared, or None."""


def check_gradient(operator: Operator, case: Case, order: int | None = None) -> str | None:
    """Checks the gradient graph against JAX on the kernel, JAX on the rules and finite differences.

    The check runs in float64, for orders 1 to ``case.order``, or to ``order`` if that is less.

    Returns:
        The reason why nothing was compared, or None.

    Raises:
        AssertionError: two results differ.
    """
    roads = (check_kernel, check_rules, check_differences)
    return nothing_of([one(operator, case, order) for one in roads])


def check_transforms(operator: Operator, case: Case) -> str | None:
    """Checks that eager call, symbol, ``jit``, a saved graph, and ``vmap`` agree.

    Returns:
        The reason why nothing was batched, or None.

    Raises:
        AssertionError: two results differ.
    """
    check_doors(operator, case)
    return check_vmap(operator, case)


def check_operator(
    operator: Operator | str, cases: Sequence[Case | Misuse] = (), *, quiet: bool = False
) -> Verdict:
    """Runs every proof on every case of an operator, and prints the verdict unless ``quiet``.

    An operator without cases fails, unless the gradient of another operator calls it: those calls
    are then its cases. It also fails if the audit finds that it is not differentiable to every
    order although it should be. A proof with nothing to compare, for example without a reference,
    reports the reason.

    Args:
        operator: a registered operator, or its name.
        cases: further cases and misuses, in addition to the declared ones.
        quiet: whether to print nothing.

    Example:
        >>> check_operator("floor").ok  # doctest: +ELLIPSIS
        floor(x)
          inference     4 cases  holds           ... s
        ...
          derivative: zero by definition (...)
          audit: zero by definition: ...
        True
    """
    chosen = get(operator) if isinstance(operator, str) else operator
    tried = [*chosen.cases, *(one for one in cases if isinstance(one, Case))]
    tried = tried or derived_cases(chosen)
    misuses = [*chosen.misuses, *(one for one in cases if isinstance(one, Misuse))]
    findings = [
        _finding(name, str(case), functools.partial(proof, chosen, case))
        for case in tried
        for name, proof in PROOFS.items()
    ]
    findings += [
        _finding("misuse", str(one), functools.partial(check_misuse, chosen, one))
        for one in misuses
    ]
    if not tried:
        findings.append(Finding("cases", "none", 0.0, _NO_CASE))
    audited = _audited(chosen, tried)
    if tried and isinstance(audited, AuditEntry) and audited.gap is not None:
        findings.append(Finding("audit", "every order", 0.0, str(audited.gap)))
    verdict = Verdict(chosen.signature(), findings, _derivative(chosen), str(audited))
    if not quiet:
        print(verdict, flush=True)
    return verdict


_NO_CASE = (
    "there must be a sample call that the proofs can run, got none; declare the operator with "
    "cases=[case(...)], or pass cases= to check_operator; a gradient operator needs none where the "
    "operator whose gradient calls it has some"
)


_HIGHEST: dict[str, Callable[[Trial], int]] = {
    "kernel": functools.partial(highest_by, "kernel"),
    "rules": functools.partial(highest_by, "rules"),
    "differences": highest_by_differences,
}


def highest_orders(operator: Operator) -> dict[str, int]:
    """Returns the highest derivative that each derivative proof compares on any case; 0 if none.

    Example:
        >>> import registry
        >>> highest_orders(registry.get("random_gamma"))["differences"]
        1
    """
    tried = operator.cases or derived_cases(operator)
    found = [one for case in tried for one in trials(operator, case)]
    return {proof: max(map(highest, found), default=0) for proof, highest in _HIGHEST.items()}


def _derivative(operator: Operator) -> str:
    known = operator.derivative.value
    return known if operator.reason == known else f"{known} ({operator.reason})"


def _audited(operator: Operator, cases: Sequence[Case]) -> AuditEntry | str:
    try:
        return entry_of(operator, cases)
    except Exception as error:  # a case that cannot be drawn: the proofs have reported it
        return f"not possible, {type(error).__name__}: {error}"


def _finding(proof: str, case: str, run: Callable[[], str | None]) -> Finding:
    start = time.perf_counter()
    failure = nothing = None
    try:
        nothing = run()
    except Exception as error:  # a proof that crashes counts as failed
        crash = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        failure = f"{crash}{error}"
    return Finding(proof, case, time.perf_counter() - start, failure, nothing)
