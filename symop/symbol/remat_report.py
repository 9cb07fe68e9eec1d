"""The cost of rematerialization policies: estimated and compiled memory, and time."""

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from symop.autodiff.gradients import typed_grad
from symop.graph.policies import KEEP_ALL, KEEP_COSTLY, Policy, require_policy
from symop.passes.remat import chosen
from symop.passes.remat.counting import Estimate, count_reads, shown
from symop.passes.roll_loops.loops import Aim
from symop.runtime.function import rolls, specialize
from symop.symbol.building import value_and_grad
from symop.symbol.symbol import Symbol

_REPEATS = 5


class Row(NamedTuple):
    """The cost of one policy.

    Attributes:
        policy: its name.
        estimate: the memory that gradients keep and recompute, counted on the graph.
        temporary: bytes that XLA allocates in addition to arguments and results.
        seconds: the median time of value and gradients.
    """

    policy: str
    estimate: Estimate
    temporary: int
    seconds: float


class Report(tuple[Row, ...]):
    """A row for each policy; prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        head = ("policy", "kept", "again", "compiled", "time")
        rows = [head, *(_cells(row) for row in self)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )


def _cells(row: Row) -> tuple[str, ...]:
    milliseconds = f"{row.seconds * 1e3:.3g} ms"
    kept, again = shown(row.estimate.kept), shown(row.estimate.again)
    return row.policy, kept, again, shown(row.temporary), milliseconds


def estimate(
    loss: Symbol,
    wrt: Sequence[str] | None = None,
    *,
    remat: Policy | None = None,
    is_train: bool = False,
) -> Estimate:
    """Estimates the memory of the gradients of ``loss``, counted on their graph.

    All shapes must be known. ``report`` shows the memory after compilation by XLA.

    Args:
        loss: a scalar.
        wrt: names of the variables to differentiate by; defaults to all floating arguments.
        remat: the rematerialization policy.
        is_train: whether operators behave as in training.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(1000,))
        >>> y = so.sum(so.tanh(so.tanh(x)))
        >>> print(so.remat.estimate(y))
        8 kB kept, 0 B computed again at a time
    """
    policy = require_policy("estimate", remat)
    aim = Aim(residuals=True)
    settled = specialize(loss.roots, {}, training=is_train, rolling=rolls(policy), aim=aim)
    roots = chosen(settled.outputs, policy)
    names = loss.list_arguments() if wrt is None else wrt
    xs = [settled.variables[name] for name in names]
    moving = [x for x in xs if x.type.differentiable]
    gradients = typed_grad(roots[-1:], moving, [None], "zero", (), policy, last=True)
    return count_reads(roots, [one for one in gradients if one is not None])


def report(
    loss: Symbol,
    arrays: Mapping[str, Any],
    policies: Sequence[Policy] | None = None,
    *,
    wrt: Sequence[str] | None = None,
    is_train: bool = False,
    repeats: int = _REPEATS,
) -> Report:
    """Reports estimated memory, compiled memory and time of value and gradients by policy.

    Args:
        loss: a scalar; all shapes must be known.
        arrays: fed arrays by name.
        policies: policies to compare; defaults to ``keep_all``, ``keep_costly`` and ``segments``.
        wrt: names of the variables to differentiate by; defaults to all floating arguments.
        is_train: whether operators behave as in training.
        repeats: the number of runs of each policy; the policies take turns.
    """
    variants = [KEEP_ALL, KEEP_COSTLY, Policy("segments", cuts=None)]
    tried = list(variants if policies is None else policies)
    fed = {name: jnp.asarray(one) for name, one in arrays.items()}
    compiled = [_compiled(loss, fed, wrt, one, is_train) for one in tried]
    times: list[list[float]] = [[] for _ in tried]
    for _ in range(repeats):
        for seconds, program in zip(times, compiled, strict=True):
            seconds.append(_timed(program, fed))
    return Report(
        Row(
            one.name,
            estimate(loss, wrt, remat=one, is_train=is_train),
            program.memory_analysis().temp_size_in_bytes,
            statistics.median(seconds),
        )
        for one, program, seconds in zip(tried, compiled, times, strict=True)
    )


def _compiled(
    loss: Symbol,
    fed: Mapping[str, Any],
    wrt: Sequence[str] | None,
    policy: Policy,
    is_train: bool,
) -> Any:
    function = value_and_grad(loss, wrt, is_train=is_train, remat=policy)
    program = jax.jit(function).lower(key=jax.random.key(0), **fed).compile()
    _timed(program, fed)
    return program


def _awaited(array: jax.Array) -> jax.Array:
    return array.block_until_ready()


def _timed(program: Any, fed: Mapping[str, Any]) -> float:
    start = time.perf_counter()
    jax.tree.map(_awaited, program(key=jax.random.key(0), **fed))
    return time.perf_counter() - start
