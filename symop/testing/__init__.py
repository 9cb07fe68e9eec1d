"""Proofs of an operator on its cases, each against a source that does not know of the others.

A gradient graph, JAX's derivative of the bare kernel, JAX's derivative through the lowered rules
and finite differences are four roads to one number. ``check_operator`` walks them all; the other
checks are its pieces, and each raises ``AssertionError`` with the operator, the case, the order,
the first entry that differs and the program that computed it.
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence

from registry.audit import entry_of
from registry.cases import Case, Misuse
from registry.operator import Operator
from registry.table import get
from symop.testing.gradients import check_adjoint, check_gradient, check_linearity
from symop.testing.inference import check_inference
from symop.testing.values import check_misuse, check_reference, check_transforms

__all__ = [
    "PROOFS",
    "Finding",
    "Verdict",
    "check_adjoint",
    "check_gradient",
    "check_inference",
    "check_linearity",
    "check_misuse",
    "check_operator",
    "check_reference",
    "check_transforms",
]

PROOFS: dict[str, Callable[[Operator, Case], None]] = {
    "inference": check_inference,
    "reference": check_reference,
    "gradient": check_gradient,
    "adjoint": check_adjoint,
    "linearity": check_linearity,
    "transforms": check_transforms,
}
"""The proofs that each case of an operator undergoes, by name."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One proof of one case: how long it took, and why it failed if it did."""

    proof: str
    case: str
    seconds: float
    failure: str | None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the proofs say of an operator.

    Attributes:
        operator: its signature.
        findings: one for each proof of each case.
        derivative: what derivative it has, with the reason where there is none.
        audit: what the audit says of its derivatives of all orders.
    """

    operator: str
    findings: list[Finding]
    derivative: str
    audit: str

    @property
    def ok(self) -> bool:
        """Whether every proof holds."""
        return not self.failures

    @property
    def failures(self) -> list[Finding]:
        """The proofs that do not hold."""
        return [one for one in self.findings if one.failure is not None]

    def __str__(self) -> str:
        lines = [self.operator]
        for proof in dict.fromkeys(one.proof for one in self.findings):
            found = [one for one in self.findings if one.proof == proof]
            failed = sum(one.failure is not None for one in found)
            verdict = f"FAILS on {failed}" if failed else "holds"
            seconds = sum(one.seconds for one in found)
            lines.append(f"  {proof:<11} {len(found):>3} cases  {verdict:<12} {seconds:6.1f} s")
        lines += [f"  derivative: {self.derivative}", f"  audit: {self.audit}"]
        for one in self.failures:
            lines += ["", f"{one.proof}, {one.case}:", f"  {one.failure}"]
        return "\n".join(lines)


def check_operator(operator: Operator | str, cases: Sequence[Case | Misuse] = ()) -> Verdict:
    """Run every proof on every case of an operator, and print the verdict.

    An operator without a case has nothing to show, and fails.

    Args:
        operator: the operator or its name; it is registered, or it could not be loaded.
        cases: further cases and misuses, besides those that are declared.

    Example:
        >>> check_operator("sign").ok  # doctest: +ELLIPSIS
        sign(x)
          inference     4 cases  holds           ... s
        ...
          derivative: zero by definition (...)
          audit: zero by definition: ...
        True
    """
    chosen = get(operator) if isinstance(operator, str) else operator
    tried = [*chosen.cases, *(one for one in cases if isinstance(one, Case))]
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
    verdict = Verdict(chosen.signature(), findings, _derivative(chosen), _audited(chosen, tried))
    print(verdict, flush=True)
    return verdict


_NO_CASE = (
    "there must be a sample call that the proofs can run, got none; declare the operator with "
    "cases=[case(...)], or pass cases= to check_operator"
)


def _derivative(operator: Operator) -> str:
    known = operator.derivative.value
    return known if operator.reason == known else f"{known} ({operator.reason})"


def _audited(operator: Operator, cases: Sequence[Case]) -> str:
    try:
        return str(entry_of(operator, cases))
    except Exception as error:  # a case that cannot be drawn: the proofs have told so
        return f"not possible, {type(error).__name__}: {error}"


def _finding(proof: str, case: str, run: Callable[[], None]) -> Finding:
    start = time.perf_counter()
    failure = None
    try:
        run()
    except Exception as error:  # a proof that crashes has failed, too
        crash = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        failure = f"{crash}{error}"
    return Finding(proof, case, time.perf_counter() - start, failure)
