"""The short examples against the same in JAX with flax: lines, the first step, further steps."""

import importlib.util
import io
import statistics
import time
import tokenize
from pathlib import Path
from typing import Any

from measure import Figure, counted, judged

TITLE = "Short scripts against flax and optax"
ROOT = Path(__file__).parents[1]
Pair = tuple[float, float]
"""The seconds of a script, and of its twin."""
NAMES = {
    "digits": ("epochs", 1, 121, 22),
    "pinn": ("steps", 1, 12_000, 1),
    "own_operator": ("steps", 1, 60_000, 1),
    "brackets": ("epochs", 1, 61, 32),
    "gpt": ("steps", 1, 700, 1),
}
"""The parameter of a script, its values in a short and in a long run, and the steps of a unit.

The further steps of a long run take longer than the short run, whose noise would hide them.
"""


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of the short scripts."""
    figures = list[Figure]()
    for name, (parameter, few, many, steps) in NAMES.items():
        own, twin = map(loaded, paths_of(name))
        figures.append(counted(f"{name}: lines", *map(lines_of, paths_of(name))))
        figures += timed(name, own, twin, parameter, (few, many), steps, 1 if quick else 11)
    return figures, {"remarks": REMARKS}


REMARKS = [
    "The network of pinn sees 256 points. With 64, a step takes 0.15 ms, and most of that is XLA's "
    "handing of work from thread to thread: ratios of single runs are between 0.6 and 1.25 then.",
]


def timed(
    name: str,
    own: Any,
    twin: Any,
    parameter: str,
    counts: tuple[int, int],
    steps: int,
    repeats: int,
) -> list[Figure]:
    """The shortest run, with building and compiling, and the time of a further step.

    Each run compiles anew, and programs of one source differ in speed: both are run many times.
    """
    few, many = counts
    short, long = list[Pair](), list[Pair]()
    for i in range(repeats + 1):
        order = (own, twin) if i % 2 else (twin, own)
        taken = {id(one): [seconds(one, parameter, n) for n in counts] for one in order}
        before, after = zip(taken[id(own)], taken[id(twin)], strict=True)
        short.append(before)
        long.append(after)
    short, long = short[1:], long[1:]  # the first runs import and warm up
    usual = [statistics.median(one) for one in zip(*short, strict=True)]
    further = [(ours - usual[0], theirs - usual[1]) for ours, theirs in long]
    return [
        judged(f"{name}: shortest run", short, target=1.0),
        judged(f"{name}: a step", further, target=1.0, per=steps * (many - few)),
    ]


def seconds(script: Any, parameter: str, count: int) -> float:
    """The time of one run of a script."""
    start = time.perf_counter()
    script.run(**{parameter: count})
    return time.perf_counter() - start


def paths_of(name: str) -> tuple[Path, Path]:
    """The files of a script and of its twin."""
    return (
        ROOT / "examples/short" / f"{name}.py",
        ROOT / "benchmarks/models/flax/short" / f"{name}.py",
    )


def loaded(path: Path) -> Any:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(path: Path) -> int:
    """The number of lines with code: neither blank, nor a comment or a docstring alone."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    lines: set[int] = set()
    start = True
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        alone = start and token.type == tokenize.STRING
        if token.type not in (*skipped, tokenize.ENDMARKER) and not alone:
            lines.update(range(token.start[0], token.end[0] + 1))
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            start = token.type == tokenize.NEWLINE
    return len(lines)
