"""Paired timing: two programs run alternately in one process and are compared pair by pair.

The speed of a shared machine varies over time. Both programs of a pair run at the same moment, so
the median of the ratios of the pairs is more stable than the ratio of the medians.
"""

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import optax

RESULTS = Path(__file__).parent / "results"
Program = Callable[[], Any]


@dataclass(frozen=True)
class Figure:
    """One measured line.

    Attributes:
        name: the quantity measured.
        symop: seconds (or a count) of symop, the median.
        other: the same of its counterpart, or None.
        ratio: the median of the ratios of pairs, or None.
        spread: the quartiles of those ratios.
        target: the largest ratio allowed, or None for an informational figure.
        repeats: the number of pairs measured.
        memory: the ratio of the memory that both need, or None.
        unit: ``"s"``, ``"count"``, ``"same"`` for programs that need no timing, or ``"ratio"``.
    """

    name: str
    symop: float
    other: float | None = None
    ratio: float | None = None
    spread: tuple[float, float] | None = None
    target: float | None = None
    repeats: int = 1
    memory: float | None = None
    unit: str = "s"

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None or self.ratio is None:
            return None
        return self.ratio <= self.target


def seconds(program: Program) -> float:
    """The time of one run, after garbage collection; its result is freed untimed."""
    gc.collect()
    start = time.perf_counter()
    result = program()
    taken = time.perf_counter() - start
    del result
    return taken


def brief(program: Program) -> float:
    """Like ``seconds``, for runs so short that collecting garbage first would chill the caches."""
    start = time.perf_counter()
    program()
    return time.perf_counter() - start


def compare(
    name: str,
    symop: Program,
    other: Program,
    *,
    repeats: int,
    target: float | None = None,
    clock: Callable[[Program], float] = seconds,
    warm_up: int = 2,
    per: int = 1,
) -> Figure:
    """Run both alternately, with the first to run changing from pair to pair.

    Args:
        name: of the figure.
        symop: one run of symop.
        other: one run of its counterpart.
        repeats: pairs to measure.
        target: the largest ratio allowed.
        clock: times one run.
        warm_up: pairs that are run first and not measured.
        per: the number of calls in one run; times are given per call.
    """
    pairs = []
    for i in range(warm_up + repeats):
        if i % 2:
            second = clock(other)
            pairs.append((clock(symop), second))
        else:
            first = clock(symop)
            pairs.append((first, clock(other)))
    return judged(name, pairs[warm_up:], target=target, per=per)


def judged(
    name: str,
    pairs: Sequence[tuple[float, float]],
    *,
    target: float | None = None,
    per: int = 1,
) -> Figure:
    """The figure of measured pairs: symop's seconds and its counterpart's."""
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    quarter = len(ratios) // 4
    return Figure(
        name,
        symop=statistics.median(ours for ours, _ in pairs) / per,
        other=statistics.median(theirs for _, theirs in pairs) / per,
        ratio=statistics.median(ratios),
        spread=(ratios[quarter], ratios[-1 - quarter]),
        target=target,
        repeats=len(pairs),
    )


def alone(
    name: str,
    program: Program,
    *,
    repeats: int,
    clock: Callable[[Program], float] = seconds,
    per: int = 1,
) -> Figure:
    """The median time of one program."""
    times = [clock(program) for _ in range(repeats)]
    return Figure(name, statistics.median(times) / per, repeats=repeats)


def counted(name: str, symop: int, other: int, *, target: float | None = 1.0) -> Figure:
    """Two counts and their ratio."""
    return Figure(name, symop, other, symop / other, target=target, unit="count")


# Programs --------------------------------------------------------------------------------------


def equations(jaxpr: Any) -> Iterator[str]:
    """Names of the primitives of a jaxpr, with called functions inlined."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        inner = [p for p in equation.params.values() if hasattr(p, "eqns") or hasattr(p, "jaxpr")]
        if inner:
            for one in inner:
                yield from equations(one)
        else:
            yield equation.primitive.name


def instructions(text: str) -> int:
    """The number of operations in the StableHLO or HLO text of a program."""
    return sum(" = " in line for line in text.splitlines())


# Results ---------------------------------------------------------------------------------------


def environment() -> dict[str, Any]:
    """The versions and the device that the figures depend on; nothing identifies the machine."""
    return {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "optax": optax.__version__,
        "device": jax.devices()[0].device_kind,
        "cores": os.cpu_count(),
    }


def load() -> float:
    """The load average of the last minute: the number of programs that wanted a core."""
    return round(os.getloadavg()[0], 2)


def record(
    name: str, title: str, figures: Sequence[Figure], before: float, more: dict[str, Any]
) -> dict[str, Any]:
    """The result of one benchmark as plain data."""
    return {
        "benchmark": name,
        "title": title,
        "environment": {**environment(), "load_before": before, "load_after": load()},
        "figures": [_plain(figure) for figure in figures],
        **more,
    }


def _plain(figure: Figure) -> dict[str, Any]:
    fields = {key: value for key, value in asdict(figure).items() if value is not None}
    rounded = {k: _significant(v) if isinstance(v, float) else v for k, v in fields.items()}
    if figure.spread:
        rounded["spread"] = [_significant(v) for v in figure.spread]
    return rounded if figure.met is None else {**rounded, "met": figure.met}


def _significant(value: float) -> float:
    return float(f"{value:.4g}")


def write(result: dict[str, Any]) -> Path:
    """Store a result; the order of its keys is the order of the code."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{result['benchmark']}.json"
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return path


def read(name: str) -> dict[str, Any] | None:
    """A stored result, or None."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


# Tables ----------------------------------------------------------------------------------------


def table(result: dict[str, Any]) -> str:
    """A result as a Markdown table with aligned columns."""
    head = ["figure", "symop", "JAX", "ratio", "target", "met", "memory"]
    rows = [head, *[_row(figure) for figure in result["figures"]]]
    if not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def ratios(rows: Sequence[dict[str, Any]]) -> str:
    """Rows of a name and of ratios as a Markdown table."""
    head = list(rows[0])
    shown = [[f"{one:.2f}" if isinstance(one, float) else one for one in r.values()] for r in rows]
    return "\n".join(f"| {' | '.join(r)} |" for r in (head, ["---"] * len(head), *shown))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
    return f"| {' | '.join(cells)} |"


def _row(figure: dict[str, Any]) -> list[str]:
    unit = figure["unit"]
    ratio, target, met = (figure.get(key) for key in ("ratio", "target", "met"))
    return [
        figure["name"],
        amount(figure["symop"], unit),
        amount(figure["other"], unit) if "other" in figure else "",
        "" if ratio is None else f"{ratio:.3f}",
        "" if target is None else f"{target:g}",
        "" if met is None else "yes" if met else "**no**",
        f"{figure['memory']:.2f}" if "memory" in figure else "",
    ]


def amount(value: float, unit: str) -> str:
    """A count, or seconds in the most readable unit."""
    if unit in ("same", "ratio"):
        return "same" if unit == "same" else ""
    if unit == "count":
        return f"{value:,.0f}"
    for name, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value / 1e-6:.3g} µs"
