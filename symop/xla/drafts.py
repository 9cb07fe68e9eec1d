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

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from registry.caches import Memo
from registry.operator.operator import Operator
from symop.graph.nodes import Node
from symop.xla.compiling import QUICK, thread_settings
from symop.xla.draft_runs import draft_runs

DRAFT: dict[str, Any] = {**(QUICK or {}), "xla_backend_optimization_level": 0}
"""Compiles a program as a draft, by XLA's older emitters, if there are any."""
if QUICK is not None:
    # Splitting the code into parts that are compiled in parallel takes longer than compiling it.
    DRAFT["xla_cpu_parallel_codegen_split_count"] = 1
_CALL = Callable[..., Any]
Types = frozenset[Any]
_first: Memo[Any, Types] = Memo(2048)
"""The types to which graphs were bound first, by their operators, for training or prediction."""


def may_draft() -> bool:
    """Whether this thread compiles programs as drafts.

    It does for the CPU, where it compiles quickly (``thread_settings.quick``), unless JAX keeps
    optimized programs in a folder.
    """
    return thread_settings.quick and not keeps_programs() and jax.default_backend() == "cpu"


def keeps_programs() -> bool:
    """Whether JAX keeps what it compiles for later processes."""
    return bool(jax.config.jax_compilation_cache_dir)  # type: ignore[attr-defined]  # made by JAX


def has_new_types(graph: Sequence[Node], types: Types, *, training: bool) -> bool:
    """Whether a graph of the same operators was bound to other types first.

    If there was none, ``types`` are the first. Graphs that call the same operators more or less
    often count as one, since a symbol may be unrolled for any number of steps.

    Args:
        graph: The nodes of the graph before it was lowered.
        types: The types that it is bound to, by the names of its variables.
        training: Whether it is bound for training.
    """
    names = frozenset(str(node.op.name) for node in graph if isinstance(node.op, Operator))
    key = training, names
    return (_first.get(key) or _first.put(key, types)) != types


def jitted(function: _CALL, options: dict[str, Any] | None, *, draft: bool) -> _CALL:
    """Returns ``jax.jit`` of a function, whose first runs are those of a draft if ``draft``."""
    if draft:
        return Drafted(function, options)
    plain: _CALL = jax.jit(function, compiler_options=options)
    return plain


class Drafted:
    """``jax.jit`` of a function of fixed shapes, whose first runs are those of a draft."""

    def __init__(self, function: _CALL, options: dict[str, Any] | None) -> None:
        """Wraps ``function``; ``options`` are the compiler's for all later runs."""
        self._function, self._options = function, options
        self._draft: Any = jax.jit(function, compiler_options=DRAFT)
        self._optimized: Any = None
        self._left: Iterator[int] | None = None

    def __call__(self, *args: Any) -> Any:
        """Calls the function."""
        if self._optimized is not None:
            return self._optimized(*args)
        if self._left is None:
            self._left = iter(range(draft_runs(self._draft.trace(*args).jaxpr)))
        if next(self._left, None) is not None:
            return self._draft(*args)
        self._optimized = jax.jit(self._function, compiler_options=self._options)
        self._draft.clear_cache()
        return self._optimized(*args)
