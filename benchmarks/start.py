"""Starting: what imports, the first names and the command line cost in a fresh process."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from measure import Figure

TITLE = "Starting"
ROOT = Path(__file__).parents[1]
REMARKS = [
    "Each time is the median of fresh processes that find the compiled modules (.pyc) of earlier "
    "ones. Times of imports and of first calls are those of the processor, user and system "
    "together, less those of `import jax` alone, which runs alternately.",
    "The second column is not JAX but the limit: 0.15 s above `import jax`, 0.3 s for an answer of "
    "the command line. The first names load the whole catalogue and have none.",
]
JAX = "import jax"
FIRST = {
    "import symop": "",
    "so.var": "symop.var",
    "softmax of a symbol": "symop.softmax(symop.var('x'))",
    "softmax of an array": "symop.softmax(jax.numpy.ones(3))",
}
COMMANDS = (["--help"], ["ops", "--help"], ["draw"])


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of starting."""
    repeats = 3 if quick else 10
    with tempfile.TemporaryDirectory() as folder:
        start = Processes(Path(folder))
        figures = [start.above_jax(name, code, repeats) for name, code in FIRST.items()]
        figures += [start.answer(arguments, repeats) for arguments in COMMANDS]
    return figures, {"remarks": REMARKS}


class Processes:
    """Fresh processes that import this tree, with compiled modules in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONPYCACHEPREFIX": str(folder),
        }
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def above_jax(self, name: str, code: str, repeats: int) -> Figure:
        """``import jax, symop`` and ``code``, above ``import jax``."""
        ours, theirs = ["-c", f"{JAX}, symop\n{code}"], ["-c", JAX]
        pairs = [(self.cost(ours), self.cost(theirs)) for _ in range(repeats + 1)][1:]
        above = statistics.median(our for our, _ in pairs) - statistics.median(
            their for _, their in pairs
        )
        if code:
            return Figure(f"{name}, first: above `import jax`", above, repeats=repeats)
        return limited(f"{name}: above `import jax`", above, 0.15, repeats)

    def answer(self, arguments: Sequence[str], repeats: int) -> Figure:
        """The command ``symop`` with arguments that it answers without a graph."""
        line = ["-m", "symop.cli", *arguments]
        times = [self.cost(line, time.perf_counter) for _ in range(repeats + 1)][1:]
        return limited(f"symop {' '.join(arguments)}", statistics.median(times), 0.3, repeats)

    def cost(self, arguments: Sequence[str], clock: Callable[[], float] | None = None) -> float:
        """Seconds of one process: of the processor, or by ``clock``."""
        clock = clock or spent
        before = clock()
        subprocess.run(
            [sys.executable, *arguments], env=self.environment, capture_output=True, check=False
        )
        return clock() - before


def spent() -> float:
    """Seconds of the processor that child processes have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def limited(name: str, seconds: float, limit: float, repeats: int) -> Figure:
    """A figure with an absolute limit."""
    return Figure(name, seconds, limit, seconds / limit, target=1.0, repeats=repeats)
