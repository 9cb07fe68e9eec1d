"""The results of an operator's proofs, and their text form."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class Finding:
    """The result of one proof on one case.

    Attributes:
        proof: the name of the proof.
        case: the case as text.
        seconds: the duration of the proof.
        failure: why the proof failed, or None.
        nothing: why nothing was compared, or None.
    """

    proof: str
    case: str
    seconds: float
    failure: str | None = None
    nothing: str | None = None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The results of all proofs of an operator.

    Attributes:
        operator: its signature.
        findings: one for each proof of each case.
        derivative: the kind of its derivative, with the reason if it has none.
        audit: the audit's result on its derivatives of all orders.
    """

    operator: str
    findings: list[Finding]
    derivative: str
    audit: str

    @property
    def ok(self) -> bool:
        """Whether no proof fails and the audit finds no gap."""
        return not self.failures

    @property
    def failures(self) -> list[Finding]:
        """The failed proofs."""
        return [one for one in self.findings if one.failure is not None]

    def __str__(self) -> str:
        lines = [self.operator]
        for proof in dict.fromkeys(one.proof for one in self.findings):
            lines.append(_line(proof, [one for one in self.findings if one.proof == proof]))
        lines += [f"  derivative: {self.derivative}", f"  audit: {self.audit}"]
        # One mistake may break every proof of a case; it is reported once.
        alike: dict[tuple[str, str | None], list[str]] = defaultdict(list)
        for one in self.failures:
            alike[one.case, one.failure].append(one.proof)
        for (case, failure), proofs in alike.items():
            lines += ["", f"{', '.join(proofs)}, {case}:", f"  {failure}"]
        return "\n".join(lines)


def _line(proof: str, found: list[Finding]) -> str:
    """Returns the line of one proof, which counts only compared cases if any case was."""
    compared = [one for one in found if one.nothing is None]
    start = f"  {proof:<11} {len(compared or found):>3} cases"
    if not compared:
        reasons = "; ".join(dict.fromkeys(one.nothing or "" for one in found))
        return f"{start}  nothing to compare: {reasons}"
    failed = sum(one.failure is not None for one in compared)
    verdict = f"FAILS on {failed}" if failed else "holds"
    return f"{start}  {verdict:<12} {sum(one.seconds for one in compared):6.1f} s"


def nothing_of(reasons: Iterable[str | None]) -> str | None:
    """Returns why no trial of a case was compared; None if one was."""
    told = list(reasons)
    return None if None in told else "; ".join(dict.fromkeys(one for one in told if one)) or None
