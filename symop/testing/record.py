"""The outcomes of the proofs of each operator, kept in a file until the operator changes."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import jax

from registry.operator.operator import Operator
from registry.table import get
from symop.testing import PROOFS, check_operator, highest_orders
from symop.testing.fingerprint import fingerprint
from symop.testing.verdict import Finding, Verdict, nothing_of

Prepare = Callable[[], object]
Outcome = int | str
"""The number of cases on which a proof held, or why it had nothing to compare."""


@dataclasses.dataclass(frozen=True)
class Record:
    """The proofs of one operator, all of which passed.

    Attributes:
        fingerprint: the fingerprint of the proved declaration.
        proofs: the outcome of each proof.
        orders: the highest derivative that was compared, by proof of derivatives that held.
    """

    fingerprint: str
    proofs: Mapping[str, Outcome]
    orders: Mapping[str, int] = dataclasses.field(default_factory=dict)


Records = dict[str, Record]


def load(path: Path) -> Records:
    """Returns the records in a file; empty if the file does not exist."""
    if not path.exists():
        return {}
    entries = json.loads(path.read_text(encoding="utf-8"))
    return {name: Record(**entry) for name, entry in entries.items()}


def save(path: Path, records: Records) -> None:
    """Writes ``records``, one operator per line."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(dataclasses.asdict(records[name]), ensure_ascii=False)}"
        for name in sorted(records)
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def stale(operators: Iterable[Operator], records: Records) -> list[Operator]:
    """Returns the operators that changed since they were proved, or lack the outcome of a proof."""
    return [one for one in operators if not _current(one, records.get(one.name))]


def _current(operator: Operator, record: Record | None) -> bool:
    if record is None or PROOFS.keys() - record.proofs.keys():
        return False
    return record.fingerprint == fingerprint(operator)


def prove(
    operators: Iterable[Operator], workers: int = 1, prepare: Prepare | None = None
) -> Iterator[tuple[str, Record | str]]:
    """Runs every proof of each operator; yields its record, or its verdict if a proof fails.

    With several ``workers``, processes share the operators. Each process first calls ``prepare``,
    which registers operators outside the catalogue.
    """
    names = [one.name for one in operators]
    if workers == 1:
        yield from map(_proved, names)
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=prepare) as processes:
        yield from processes.map(_proved, names)


def _proved(name: str) -> tuple[str, Record | str]:
    operator = get(name)
    proved = fingerprint(operator)  # first, because the file may change while proofs run
    verdict = check_operator(operator, quiet=True)
    jax.clear_caches()  # type: ignore[no-untyped-call]  # compiled programs use much memory
    if not verdict.ok:
        return name, str(verdict)
    outcomes = _outcomes(verdict)
    return name, Record(proved, outcomes, _orders(operator, outcomes))


def _orders(operator: Operator, outcomes: Mapping[str, Outcome]) -> dict[str, int]:
    highest = highest_orders(operator)
    return {proof: highest[proof] for proof in highest if isinstance(outcomes.get(proof), int)}


def _outcomes(verdict: Verdict) -> dict[str, Outcome]:
    proofs = dict.fromkeys(one.proof for one in verdict.findings)
    return {
        proof: _outcome([one for one in verdict.findings if one.proof == proof]) for proof in proofs
    }


def _outcome(found: list[Finding]) -> Outcome:
    compared = sum(one.nothing is None for one in found)
    return compared or nothing_of(one.nothing for one in found) or 0


Report = Callable[[str], None]


def update(
    path: Path,
    operators: list[Operator],
    workers: int = 1,
    prepare: Prepare | None = None,
    report: Report = print,
) -> list[str]:
    """Proves stale operators and writes their records; returns the names of those that fail.

    The file is written after each operator, so that an interrupted run resumes where it stopped.
    Records of operators that no longer exist are dropped.
    """
    known = {one.name for one in operators}
    records = {name: one for name, one in load(path).items() if name in known}
    waiting, failed = stale(operators, records), []
    for i, (name, outcome) in enumerate(prove(waiting, workers, prepare), 1):
        if isinstance(outcome, str):
            failed.append(name)
            records.pop(name, None)
            report(outcome)
        else:
            records[name] = outcome
        verdict = "FAILS" if isinstance(outcome, str) else "holds"
        report(f"[{i}/{len(waiting)}] {name} {verdict}")
        save(path, records)
    save(path, records)
    return failed
