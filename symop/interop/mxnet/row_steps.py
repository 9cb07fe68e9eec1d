"""Steps of optimizers on rows: the rows of a gradient are updated in place, at their cost alone."""

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain
from typing import Any

import jax.numpy as jnp

from registry.caches import memoized
from registry.values import SelectedRows
from symop.eager.recording import flush
from symop.interop.mxnet.ndarray import NDArray
from symop.interop.mxnet.sparse_arrays import RowSparseNDArray, set_value
from symop.interop.mxnet.taking import taken
from symop.runtime.donation import DonatingStep, set_together

Step = Callable[..., Sequence[Any]]
"""From tables (or their rows), the gradient, and numbers, to the new tables."""


def gradient_of(grad: NDArray) -> Any:
    """The gradient as the step takes it: ``SelectedRows``, each row once, or a dense array."""
    return grad.rows if isinstance(grad, RowSparseNDArray) else grad.inner.value


def stepped(tables: Sequence[NDArray], grad: NDArray, numbers: Any, step: DonatingStep) -> None:
    """Updates tables, dense or row-sparse, in place by a compiled step.

    Row-sparse tables store all rows afterwards.
    """
    for one in tables:
        one.require_changeable()
        if isinstance(one, RowSparseNDArray):
            _fill(one)
    gradient = gradient_of(grad)
    flush()
    places = [one.stored for one in tables]

    def store(results: Iterator[Any]) -> None:
        set_together(places, "_value", chain.from_iterable(results))

    step.into(store, (taken(tables), gradient, numbers))
    for one, place in zip(tables, places, strict=True):
        place._link = None
        if not one.is_sparse and one.is_shared:
            one.tell()


def _fill(table: RowSparseNDArray) -> None:
    """Makes a table store all rows."""
    value = table.rows
    if isinstance(value, SelectedRows):
        set_value(table.stored, value.to_dense())


@memoized(256)
def compiled(step: Step, key: Hashable, lazy: bool) -> DonatingStep:
    """``step`` with ``key`` as its first argument; ``lazy`` steps get the rows of the gradient."""
    return DonatingStep(functools.partial(run, step, key, lazy))


def run(
    step: Step, key: Any, lazy: bool, tables: Sequence[Any], grad: Any, numbers: Any
) -> list[Any]:
    """The new tables, computed inside a compiled step."""
    if not isinstance(grad, SelectedRows):
        return list(step(key, tables, grad, numbers))
    if not lazy:
        return list(step(key, tables, grad.to_dense(), numbers))
    held = grad.held
    own = [one.at[held].get(mode="fill", fill_value=0) for one in tables]
    new = step(key, own, jnp.asarray(grad.values), numbers)
    return [
        table.at[held].set(rows, mode="drop", unique_indices=False)
        for table, rows in zip(tables, new, strict=True)
    ]
