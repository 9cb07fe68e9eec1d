"""What the proofs say of an operator, and how it is shown."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class Finding:
    """One proof of one case.

    Attributes:
        proof: its name.
        case: the case as text.
        seconds: how long it took.
        failure: why it does not hold, or None.
        nothing: why there was nothing to compare, or None.
    """

    proof: str
    case: str
    seconds: float
    failure: str | None = None
    nothing: str | None = None


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
        """Whether no proof fails, and the audit finds no gap."""
        return not self.failures

    @property
    def failures(self) -> list[Finding]:
        """The proofs that do not hold."""
        return [one for one in self.findings if one.failure is not None]

    def __str__(self) -> str:
        lines = [self.operator]
        for proof in dict.fromkeys(one.proof for one in self.findings):
            lines.append(_line(proof, [one for one in self.findings if one.proof == proof]))
        lines += [f"  derivative: {self.derivative}", f"  audit: {self.audit}"]
        # One mistake may break every proof of a case: it is told once.
        alike: dict[tuple[str, str | None], list[str]] = defaultdict(list)
        for one in self.failures:
            alike[one.case, one.failure].append(one.proof)
        for (case, failure), proofs in alike.items():
            lines += ["", f"{', '.join(proofs)}, {case}:", f"  {failure}"]
        return "\n".join(lines)


def _line(proof: str, found: list[Finding]) -> str:
    """One proof of all cases; those with nothing to compare do not count where others have."""
    compared = [one for one in found if one.nothing is None]
    start = f"  {proof:<11} {len(compared or found):>3} cases"
    if not compared:
        reasons = "; ".join(dict.fromkeys(one.nothing or "" for one in found))
        return f"{start}  nothing to compare: {reasons}"
    failed = sum(one.failure is not None for one in compared)
    verdict = f"FAILS on {failed}" if failed else "holds"
    return f"{start}  {verdict:<12} {sum(one.seconds for one in compared):6.1f} s"


def nothing_of(reasons: Iterable[str | None]) -> str | None:
    """Why no trial of a case had anything to compare; None if one had."""
    told = list(reasons)
    return None if None in told else "; ".join(dict.fromkeys(one for one in told if one)) or None
