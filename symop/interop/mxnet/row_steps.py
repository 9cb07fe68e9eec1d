"""Steps of optimizers on rows: the rows of a gradient are updated in place, at their cost alone."""

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import jax.numpy as jnp

from registry.caches import memoized
from registry.values import SelectedRows
from symop.eager.recording import flush
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.sparse_arrays import RowSparseNDArray, set_value
from symop.interop.mxnet.taking import taken
from symop.runtime.donation import DonatingStep, set_together

Step = Callable[..., Sequence[Sequence[Any]]]
"""From the tables of each parameter (or their rows), gradients, and numbers, to new tables."""
Tables = Sequence[NDArray]
"""A parameter and its states."""


def gradient_of(grad: NDArray) -> Any:
    """The gradient as the step takes it: ``SelectedRows``, each row once, or a dense array."""
    return grad.rows if isinstance(grad, RowSparseNDArray) else grad.inner.value


def stepped(
    groups: Sequence[Tables], grads: Sequence[NDArray], numbers: Any, step: DonatingStep
) -> None:
    """Updates the tables of parameters, dense or row-sparse, in place by one compiled step.

    Row-sparse tables store all rows afterwards.
    """
    tables = list(chain.from_iterable(groups))
    for one in tables:
        one.require_changeable()
        if isinstance(one, RowSparseNDArray):
            _fill(one)
    gradients = list(map(gradient_of, grads))
    flush()
    places = [one.stored for one in tables]

    def store(results: Iterator[Any]) -> None:
        set_together(places, "_value", chain.from_iterable(results))

    step.into(store, (taken(tables), gradients, numbers))
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
def compiled(step: Step, key: Hashable, sizes: tuple[int, ...], lazy: tuple[bool, ...]) -> Any:
    """``step`` for parameters with ``sizes`` tables; see ``run``."""
    return DonatingStep(functools.partial(run, step, key, sizes, lazy))


def run(
    step: Step,
    key: Any,
    sizes: Sequence[int],
    lazy: Sequence[bool],
    tables: Sequence[Any],
    grads: Sequence[Any],
    numbers: Any,
) -> list[Any]:
    """The new tables, computed inside a compiled step.

    Args:
        step: computes them.
        key: its first argument.
        sizes: the number of tables of each parameter.
        lazy: for each parameter, whether the step gets only the rows that its gradient stores.
        tables: the tables of all parameters.
        grads: their gradients.
        numbers: the last argument of the step.
    """
    rest = iter(tables)
    groups = [list(islice(rest, size)) for size in sizes]
    held = [
        grad.held if row_wise and isinstance(grad, SelectedRows) else None
        for grad, row_wise in zip(grads, lazy, strict=True)
    ]
    own = [_taken_rows(group, rows) for group, rows in zip(groups, held, strict=True)]
    gradients = [_gradient_of_rows(grad, rows) for grad, rows in zip(grads, held, strict=True)]
    new = step(key, own, gradients, numbers)
    written = map(_written, groups, new, held)
    return list(chain.from_iterable(written))


def _taken_rows(tables: Sequence[Any], rows: Any) -> Sequence[Any]:
    """The given rows of tables; the whole tables if ``rows`` is None."""
    if rows is None:
        return tables
    return [one.at[rows].get(mode="fill", fill_value=0) for one in tables]


def _gradient_of_rows(grad: Any, rows: Any) -> Any:
    """The gradient of the given rows; of the whole parameter if ``rows`` is None."""
    if not isinstance(grad, SelectedRows):
        return grad
    return grad.to_dense() if rows is None else jnp.asarray(grad.values)


def _written(tables: Sequence[Any], new: Sequence[Any], rows: Any) -> Sequence[Any]:
    """The tables with new rows; ``new`` itself if ``rows`` is None."""
    if rows is None:
        return new
    return [
        table.at[rows].set(one, mode="drop", unique_indices=False)
        for table, one in zip(tables, new, strict=True)
    ]
