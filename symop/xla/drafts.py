"""Drafts: programs that XLA compiles in a fraction of the time, for the first runs of new shapes.

XLA's programs have fixed shapes, so a graph that is bound to new shapes is compiled again. Little
can be taken from what was compiled for other shapes. For an LSTM of two layers and a new number of
steps, XLA compiles

- the training step as one program in 1.0 s,
- the 23 operators that change, one by one, in 0.6 to 0.9 s,
- what stands outside of its two loops, which do not change, in 0.7 to 0.9 s,
- the training step as a draft, which LLVM does not optimize, in 0.2 s.

The draft's step takes 100 ms instead of 60 ms. After a number of runs, the program is compiled with
all optimizations, so that shapes that are used often cost the draft in addition.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from registry.caches import Memo
from registry.operator.operator import Operator
from registry.tuning import present
from symop.graph.nodes import Node
from symop.xla.compiling import QUICK, is_plain, thread_settings

DRAFT: dict[str, Any] = {**(QUICK or {}), "xla_backend_optimization_level": 0}
"""Compiles a program as a draft, by XLA's older emitters, if there are any."""
if QUICK is not None:
    # Splitting the code into parts that are compiled in parallel takes longer than compiling it.
    DRAFT["xla_cpu_parallel_codegen_split_count"] = 1
Call = Callable[..., Any]
_FEWEST = 4
"""A program that would run fewer times as a draft is fully optimized at once."""
Types = frozenset[Any]
_first: Memo[Any, Types] = Memo(2048)
"""The types to which graphs were bound first, by their operators, for training or prediction."""


def may_draft() -> bool:
    """Whether this thread compiles programs as drafts: for the CPU, where it compiles quickly."""
    return thread_settings.quick and jax.default_backend() == "cpu"


def has_new_types(graph: Sequence[Node], types: Types, *, training: bool) -> bool:
    """Whether a graph of the same operators was bound to other types first.

    If there was none, ``types`` are the first.

    Args:
        graph: The nodes of the graph before it was lowered.
        types: The types that it is bound to, by the names of its variables.
        training: Whether it is bound for training.
    """
    names = frozenset(str(node.op.name) for node in graph if isinstance(node.op, Operator))
    key = training, names
    return (_first.get(key) or _first.put(key, types)) != types


def draft_runs(nodes: Sequence[Node]) -> int:
    """Returns how often a program runs as a draft.

    Its runs take about as much longer than those of the optimized program as the latter takes to
    compile (``Tuning.draft_entries``), but there are at most ``Tuning.draft_runs``.

    Args:
        nodes: The nodes of the graph that is compiled, and its variables.
    """
    values = [one for node in nodes for one in node.types or ()]
    if not all(map(is_plain, values)):
        return 0
    operators = sum(isinstance(node.op, Operator) for node in nodes)
    entries = max(sum(one.size for one in values), 1)
    tuning = present.tuning
    runs = min(tuning.draft_runs, tuning.draft_entries * operators // entries)
    return runs if runs >= _FEWEST else 0


def compiled(function: Call, runs: int, options: dict[str, Any] | None) -> Call:
    """Returns ``jax.jit`` of a function, of which ``runs`` runs are those of a draft."""
    if runs:
        return Drafted(function, runs, options)
    plain: Call = jax.jit(function, compiler_options=options)
    return plain


class Drafted:
    """``jax.jit`` of a function whose first runs are those of a draft."""

    def __init__(self, function: Call, runs: int, options: dict[str, Any] | None) -> None:
        """Wraps ``function``.

        Args:
            function: The function to compile.
            runs: The number of runs of the draft, at least one.
            options: The compiler's options for later runs.
        """
        self._function, self._left, self._options = function, runs, options
        self._call: Call = jax.jit(function, compiler_options=DRAFT)

    def __call__(self, *args: Any) -> Any:
        """Calls the function."""
        if self._left >= 0:
            self._count()
        return self._call(*args)

    def _count(self) -> None:
        """Counts a run of the draft; after the last, the next is that of the optimized program."""
        if self._left == 0:
            self._call = jax.jit(self._function, compiler_options=self._options)
        self._left -= 1
