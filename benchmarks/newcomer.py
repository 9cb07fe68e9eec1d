"""The short examples against the same in JAX with flax: lines, the first step, further steps."""

import importlib.util
import io
import time
import tokenize
from pathlib import Path
from typing import Any

from measure import Figure, compare, counted, judged

TITLE = "Short scripts against flax and optax"
ROOT = Path(__file__).parents[1]
NAMES = {
    "digits": ("epochs", 1, 61, 22),
    "pinn": ("steps", 1, 5000, 1),
    "own_operator": ("steps", 1, 60_000, 1),
    "brackets": ("epochs", 1, 31, 32),
    "gpt": ("steps", 1, 500, 1),
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
        figures += timed(name, own, twin, parameter, (few, many), steps, 1 if quick else 9)
    return figures, {}


def timed(
    name: str,
    own: Any,
    twin: Any,
    parameter: str,
    counts: tuple[int, int],
    steps: int,
    repeats: int,
) -> list[Figure]:
    """The shortest run, with building and compiling, and the time of a further step."""
    few, many = counts

    def run_of(module: Any, count: int) -> Any:
        return lambda: module.run(**{parameter: count})

    first = compare(
        f"{name}: shortest run", run_of(own, few), run_of(twin, few), repeats=repeats, warm_up=1,
        target=1.0,
    )  # fmt: skip
    pairs = []
    for i in range(repeats):
        order = (own, twin) if i % 2 else (twin, own)
        slopes = {id(one): slope(run_of(one, few), run_of(one, many)) for one in order}
        pairs.append((slopes[id(own)], slopes[id(twin)]))
    further = judged(f"{name}: a step", pairs, target=1.0, per=steps * (many - few))
    return [first, further]


def slope(short: Any, long: Any) -> float:
    """The seconds that the long run takes more than the short one."""
    start = time.perf_counter()
    short()
    middle = time.perf_counter()
    long()
    return (time.perf_counter() - middle) - (middle - start)


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
