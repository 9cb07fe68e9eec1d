"""Markdown pages of operators: signature, gradient, and outcomes of the proofs."""

import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from registry.audit import audit
from registry.audited import AuditEntry
from registry.operator.operator import Derivative, Operator
from registry.operator.signature import Slot
from symop.testing.derived import derivatives
from symop.testing.record import Record, Records
from symop.testing.trial import Trial, trials

RECORDS = "proofs.json"
TABLE = "operators.md"
FOLDER = "operators"

_PROOFS: dict[str, tuple[str, ...]] = {
    "inference": ("the inferred shapes and dtypes are the computed ones, mixed dtypes among them",),
    "reference": ("the kernel computes what the reference computes",),
    "kernel": ("the gradient program is JAX's derivative of the kernel",),
    "rules": ("it is JAX's derivative through the rules",),
    "differences": (
        "it is the slope that finite differences show, or the declared gradient where there is one",
    ),
    "adjoint": (
        "forward mode is the adjoint of reverse mode: `<J v, u> = <v, Jᵀ u>`",
        "the tangents are those of JAX's forward mode",
    ),
    "linearity": ("the gradient is linear in the cotangent, and zero for a zero one",),
    "doors": (
        "eager call, symbol and `jit` agree",
        "so does the graph that was saved and loaded",
    ),
    "vmap": ("`vmap` of value and gradient is that of each entry",),
    "half": ("bfloat16 and float16 are near float32, gradients included",),
    "complex": ("complex values and gradients are the reference's and JAX's",),
    "misuse": ("what does not fit is refused, in words",),
}
_INDEPENDENT = ("kernel", "differences")
"""The proofs that compare the gradient with a source independent of its maker."""
_SECTION = re.compile(r"^(Example|Source|Args|Returns|Raises):", re.MULTILINE)


class Known(NamedTuple):
    """The contents of pages other than declarations: the recorded proofs, and the audit."""

    records: Records
    entries: Mapping[str, AuditEntry]


def write(folder: Path, operators: Sequence[Operator], records: Records) -> None:
    """Writes the table and a page for each operator; deletes pages of removed operators."""
    wanted = rendered(operators, records)
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    for page in (folder / FOLDER).glob("*.md"):
        if f"{FOLDER}/{page.name}" not in wanted:
            page.unlink()
    for name, content in wanted.items():
        (folder / name).write_text(content, encoding="utf-8")


def rendered(operators: Sequence[Operator], records: Records) -> dict[str, str]:
    """Returns the table and the pages, by their paths within the documentation folder."""
    known = Known(records, audit().entries)
    pages = {f"{FOLDER}/{one.name}.md": page(one, known) for one in operators}
    return {TABLE: table(operators, known), **pages}


_LINK = re.compile(r"\]\(([^)#]+)\)")


def linked(text: str) -> list[str]:
    """Returns the targets of the links of a page, excluding code blocks."""
    return _LINK.findall(re.sub(r"```[\s\S]*?```", "", text))


# The table -------------------------------------------------------------------------------------


def table(operators: Sequence[Operator], known: Known) -> str:
    """Returns a table of all operators by family, with one row per operator."""
    maker = [one for one in operators if one.derivative in (Derivative.MAKER, Derivative.KERNEL)]
    every = [one for one in maker if known.entries[one.name].every_order]
    lines = [
        "# Operators",
        "",
        f"{len(operators)} operators. {len(maker)} have a gradient maker, and {len(every)} of these"
        " are differentiable to every order, in both modes. The others are constant between jumps,"
        " or their results are no real numbers; each says so.",
        "",
        "Written by `make proofs`: a tick stands where the proof was run on the operator as it is,"
        " and held on each case that it could be compared on; a dot where there is nothing to"
        " compare, and the operator's page says why. Orders are those of the derivatives that were"
        " compared with what knows nothing of the maker: JAX's derivative of the kernel, finite"
        " differences or the declared gradient, on the CPU. They end early where a result is"
        " infinite, and at the first where only a declared gradient is there to compare with.",
    ]
    family = {one.name: one.__module__ for one in operators}
    ordered = sorted(operators, key=lambda one: (family[one.name], one.name))
    for module, members in groupby(ordered, key=lambda one: family[one.name]):
        lines += ["", f"## {_family(module)}", "", _cells(_TITLES), "|---" * len(_TITLES) + "|"]
        lines += [_row(one, known) for one in members]
    return "\n".join([*lines, ""])


_COLUMNS = {
    "reference": "values",
    "kernel": "JAX's derivative",
    "differences": "finite differences",
    "adjoint": "both modes",
    "linearity": "linear",
    "doors": "jit, saved",
    "vmap": "vmap",
    "half": "half",
    "complex": "complex",
}
"""The proofs that have their own column, and its title."""
_TITLES = ("operator", "what it is", "derivative", "orders", *_COLUMNS.values())


def _family(module: str) -> str:
    said = inspect.getdoc(importlib.import_module(module)) or module
    return said.partition("\n")[0].rstrip(".")


def _row(operator: Operator, known: Known) -> str:
    record = known.records.get(operator.name)
    proofs = {} if record is None else record.proofs
    ticks = ["✓" if isinstance(proofs.get(one), int) else "·" for one in _COLUMNS]
    said = _escaped(_sentences(operator)[0])
    cells = [
        f"[`{operator.name}`]({FOLDER}/{operator.name}.md)",
        said,
        _derivative(operator, known),
        _up_to(_independent(record)) or "·",
        *ticks,
    ]
    return _cells(cells)


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _derivative(operator: Operator, known: Known) -> str:
    if operator.derivative in (Derivative.MAKER, Derivative.KERNEL):
        return "every order" if known.entries[operator.name].every_order else "has a gap"
    return {"ZERO": "zero", "UNDEFINED": "none"}.get(operator.derivative.name, "missing")


def _independent(record: Record | None) -> int:
    """Returns the highest derivative that was compared with an independent source."""
    return max((record.orders.get(proof, 0) for proof in _INDEPENDENT), default=0) if record else 0


def _up_to(top: int) -> str:
    """Returns the orders up to ``top``; empty if it is 0."""
    return f"1–{top}" if top > 1 else "1" * top


def _escaped(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


def _sentences(operator: Operator) -> tuple[str, str]:
    """Returns the first paragraph of an operator's docstring, and the rest."""
    first, _, rest = operator.comment.partition("\n\n")
    return first.replace("\n", " "), rest


# A page ----------------------------------------------------------------------------------------


def page(operator: Operator, known: Known) -> str:
    """Returns the page of an operator."""
    parts = [
        [f"# {operator.name}", "", f"    {operator.signature()}", "", *_said(operator)],
        _slots(operator),
        _gradient(operator, known),
        _proved(operator, known),
        ["## Cases", "", *_called(operator)],
        [f"[All operators](../{TABLE})"],
    ]
    return "\n".join(line for part in parts if part for line in [*part, ""])


def _said(operator: Operator) -> Iterator[str]:
    """Yields the docstring as Markdown, with examples as code."""
    yield _tidy(_sentences(operator)[0])
    rest = _sentences(operator)[1]
    for block in filter(None, re.split(r"\n\n(?=\S)", rest)):
        yield ""
        if block.startswith("Example:"):
            code = inspect.cleandoc(block.partition("\n")[2])
            yield from ("```pycon", code, "```")
        elif _SECTION.match(block):
            title, _, text = block.partition(":")
            yield f"*{title}:* {_tidy(text.strip())}"
        else:
            yield _tidy(block)


def _tidy(text: str) -> str:
    return text.replace("``", "`")


def _slots(operator: Operator) -> list[str]:
    rows = [f"| `{_slot_name(one)}` | input | {_slot_kind(one)} |" for one in operator.slots]
    for attribute in operator.attributes:
        default = "required" if attribute.required else f"default `{attribute.default!r}`"
        kind = attribute.type_text.replace("|", "\\|")
        rows.append(f"| `{attribute.name}` | attribute | `{kind}`, {default} |")
    updated = {output: state for state, output in operator.updates.items()}
    for i, output in enumerate(operator.outputs):
        last = operator.variadic_output and i + 1 == len(operator.outputs)
        kind = f"new value of `{updated[output]}`" if output in updated else ""
        kind = kind or ("kept for the gradient" if output in operator.hidden else "")
        rows.append(f"| `{output}{'...' * last}` | output | {kind} |")
    lines = ["| name | | |", "|---|---|---|", *rows]
    if operator.aliases:
        lines += ["", "Also called " + ", ".join(f"`{one}`" for one in operator.aliases) + "."]
    return lines


def _slot_name(slot: Slot) -> str:
    return slot.name + "..." * slot.variadic


def _start(slot: Slot) -> str:
    return slot.initial if isinstance(slot.initial, str) else f"{slot.initial:g}"


def _slot_kind(slot: Slot) -> str:
    roles = {
        "input": "array",
        "parameter": "parameter; a symbolic call makes the variable",
        "state": "state; a training step updates it",
        "key": "random key; supplied",
        "training": "whether for training; supplied",
    }
    starts = "" if slot.initial is None else f", starts at {_start(slot)}"
    return roles[slot.role] + starts + (", may be absent" if slot.optional else "")


def _gradient(operator: Operator, known: Known) -> list[str]:
    if operator.derivative not in (Derivative.MAKER, Derivative.KERNEL):
        return [
            "## Derivative",
            "",
            f"{operator.derivative.value.capitalize()}: {operator.reason}.",
        ]
    trial = _shown(operator)
    if trial is None:
        return []
    reaches = known.entries[operator.name].reaches
    made = ", ".join(f"[`{one}`]({one}.md)" for one in reaches) or "no other operator"
    program = derivatives(trial).graph.program(1).rstrip()
    return [
        "## Gradient",
        "",
        f"For `{trial.case}`:",
        "",
        "```text",
        program,
        "```",
        "",
        f"Derivatives of all orders are made of {made}.",
    ]


def _shown(operator: Operator) -> Trial | None:
    """Returns the first trial that has a gradient."""
    tried = (trials(operator, case, "float32") for case in operator.cases)
    return next((each[-1] for each in tried if each[-1].differentiable), None)


def _proved(operator: Operator, known: Known) -> list[str]:
    record = known.records.get(operator.name)
    if record is None:
        return ["## Proofs", "", "None is on record."]
    lines = ["## Proofs", ""]
    for proof, outcome in record.proofs.items():
        if isinstance(outcome, int):
            lines += [f"- [x] {one}{_extent(record, proof, outcome)}" for one in _shown_by(proof)]
        else:
            lines.append(f"- {proof}: nothing to compare, {_tidy(outcome)}")
    return lines


def _shown_by(proof: str) -> tuple[str, ...]:
    return _PROOFS.get(proof, (proof,))


def _extent(record: Record, proof: str, count: int) -> str:
    orders = _up_to(record.orders.get(proof, 0))
    plural = "s" * (orders not in ("", "1"))
    said = f", order{plural} {orders}" if orders else ""
    return f" ({count} case{'s' * (count > 1)}{said})"


def _called(operator: Operator) -> Iterator[str]:
    yield "```text"
    for case in operator.cases:
        yield f"{operator.name}({case})"
    for misuse in operator.misuses:
        yield f"{operator.name}({misuse})  # refused: {misuse.message}"
    yield "```"
