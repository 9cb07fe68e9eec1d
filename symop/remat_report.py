"""What policies of rematerialization cost: memory as estimated and as compiled, and time."""

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from symop.building import value_and_grad
from symop.function import rolls, settle
from symop.gradients import typed_grad
from symop.policies import KEEP_ALL, KEEP_COSTLY, Policy, require_policy
from symop.recomputing import chosen
from symop.recomputing.counting import Estimate, counted, shown
from symop.repeats.loops import Aim
from symop.symbol import Symbol

_REPEATS = 5


class Row(NamedTuple):
    """One policy.

    Attributes:
        policy: its name.
        estimate: what the gradients keep and compute again, by our count.
        temporary: bytes that XLA takes beside arguments and results.
        seconds: the median time of value and gradients.
    """

    policy: str
    estimate: Estimate
    temporary: int
    seconds: float


class Report(tuple[Row, ...]):
    """A row for each policy; it prints as a table."""

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
    """How much memory the gradients of ``loss`` take, counted on their graph.

    All shapes are known. What XLA makes of it ``report`` tells.

    Args:
        loss: a scalar.
        wrt: names of the variables whose gradients are wanted; all floating arguments without it.
        remat: what is kept.
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
    settled = settle(loss.roots, {}, training=is_train, rolling=rolls(policy), aim=aim)
    roots = chosen(settled.outputs, policy)
    names = loss.list_arguments() if wrt is None else wrt
    xs = [settled.variables[name] for name in names]
    moving = [x for x in xs if x.type.differentiable]
    found = typed_grad(roots[-1:], moving, [None], "zero", (), policy)
    return counted(roots, [one for one in found if one is not None])


def report(
    loss: Symbol,
    arrays: Mapping[str, Any],
    policies: Sequence[Policy] | None = None,
    *,
    wrt: Sequence[str] | None = None,
    is_train: bool = False,
    repeats: int = _REPEATS,
) -> Report:
    """Estimated memory, compiled memory and time of value and gradients for some policies.

    Args:
        loss: a scalar; all shapes are known.
        arrays: what is fed, by name.
        policies: which; ``keep_all``, ``keep_costly`` and ``segments`` without them.
        wrt: names of the variables whose gradients are wanted; all floating arguments without it.
        is_train: whether operators behave as in training.
        repeats: how often each is run; the policies take turns.
    """
    given = [KEEP_ALL, KEEP_COSTLY, Policy("segments", cuts=None)]
    tried = list(given if policies is None else policies)
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
