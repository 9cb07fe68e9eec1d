"""The tables of MXNet's operators in docs/mxnet.md: what each was compared with, and what lacks."""

import collections
import json
import pathlib

from mxnet_samples import SAMPLES
from mxnet_samples.sample import Sample
from symop.interop.mxnet.operators import TABLE
from symop.interop.mxnet.storage import EVERY, RULES, Rule
from symop.interop.mxnet.unmapped import UNMAPPED

DATA = pathlib.Path(__file__).parents[1] / "data" / "mxnet"
NAMES = (DATA / "operators.txt").read_text().split()
RECORDED = {TABLE[one["op"]].name for one in json.loads((DATA / "operator_cases.json").read_text())}
HEAD = """\
| operator | values | first derivative | second derivative | note |
|---|---|---|---|---|"""


def by_operator() -> dict[str, list[Sample]]:
    """Samples by MXNet's own name of the operator."""
    found = collections.defaultdict(list)
    for one in SAMPLES:
        found[TABLE[one.op].name].append(one)
    return found


def values(name: str, samples: list[Sample]) -> str:
    """What the values of an operator were compared with."""
    sources = ["MXNet"] * (name in RECORDED)
    sources += ["NumPy"] * any(one.reference is not None for one in samples)
    return " and ".join(sources) or "shapes alone"


def first(samples: list[Sample]) -> str:
    """What its gradient was compared with."""
    kinds = {one.gradient for one in samples}
    if "differences" in kinds:
        return "differences"
    return "MXNet's own" if "declared" in kinds else "none"


def second(samples: list[Sample]) -> str:
    """What its second derivative was compared with."""
    if any(one.gradient == "differences" and one.second for one in samples):
        return "differences"
    return "none"


def row(name: str, samples: list[Sample]) -> str:
    """The line of one operator."""
    own, order = TABLE[name], first(samples)
    reasons = [one.why for one in samples if order == "none" or one.gradient != "zero"]
    notes = "; ".join(one for one in dict.fromkeys([own.note, *reasons]) if one)
    cells = [f"`{name}`", values(own.name, samples), order, second(samples), notes]
    return f"| {' | '.join(one.replace('|', chr(92) + '|') for one in cells)} |"


def table() -> str:
    """All operators of MXNet 1.9.1's list, and how many of them have which derivatives."""
    samples = by_operator()
    found = {name: samples[TABLE[name].name] for name in NAMES}
    once = sum(first(one) != "none" for one in found.values())
    twice = sum(second(one) != "none" for one in found.values())
    said = (
        f"All {len(NAMES)} operators are mapped. The values of each were compared with what MXNet "
        f"1.9.1 recorded, or with its definition in NumPy. Of {once} the gradient was compared: "
        "with differences of the values in float64, or with the one that MXNet declares for loss "
        f"layers and rounding. Of {twice} the second derivative was compared with differences of "
        "the first. The others compare, draw, sort or update."
    )
    rows = [row(name, one) for name, one in found.items()]
    parts = [*further(samples), "", *missing(), "", *storage()]
    return "\n".join([said, "", HEAD, *rows, "", *parts])


STORAGE = """\
## Storage types

How operators compute from sparse arrays, the first fitting line counts: `row_sparse` stores some
rows, `csr` some entries. Other calls on sparse arrays run on dense ones and warn once, as MXNet's
storage fallback does. A gradient is dense unless the last column tells its storage type by the
number of the input; gradients with respect to `csr` arrays are computed densely. The gradient
of a table that is itself computed, as in `dot(data, 2 * weight)`, is dense; if it reaches a
row-sparse array, that array stores all rows, and a warning says so once.

| operators | inputs | where | output | gradients |
|---|---|---|---|---|"""


def storage() -> list[str]:
    """The rules of storage types, of operators that share them together."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, rules in RULES.items():
        for one in rules:
            groups.setdefault(cells(one), []).append(f"`{name}`")
    return [STORAGE, *[line(", ".join(names), *key) for key, names in groups.items()]]


def cells(one: Rule) -> tuple[str, ...]:
    """Inputs, condition, output and gradients of a rule."""
    inputs = ", ".join(told.replace("|", " or ").replace("*", " ...") for told in one.inputs)
    output = one.output if isinstance(one.output, str) else "as asked"
    if one.in_place is not None:
        output = f"{output}, in place"
    told = {"same": "as the output's"}
    gradients = [
        f"{'each' if i == EVERY else i}: {told.get(stype, stype)}"
        for i, stype in sorted(one.gradients.items())
    ]
    return inputs, one.when.text, output, ", ".join(gradients)


def line(*texts: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(texts)} |"


def further(samples: dict[str, list[Sample]]) -> list[str]:
    """Operators that are no part of that list."""
    listed = {TABLE[name].name for name in NAMES}
    rest = sorted(set(samples) - listed, key=str.lower)
    said = f"{len(rest)} further operators, which draw, update, detect or are older:"
    return [said, "", HEAD, *[row(name, samples[name]) for name in rest]]


def missing() -> list[str]:
    """What is not mapped, and why."""
    said = "What is not mapped, by the beginnings of the names; loading a model says so, too:"
    rows = [f"| `{start}` | {why} |" for start, why in UNMAPPED.items()]
    return [said, "", "| name | reason |", "|---|---|", *rows]
