"""Gradient accumulation: a batch in parts, one after the other, with the results of the whole."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.errors import FeedError
from registry.values import SelectedRows

Arrays = dict[str, Any]
Evaluate = Callable[[Arrays, Arrays, Any], tuple[Sequence[Any], Arrays]]
"""Maps a batch, states and a random key to outputs and new states."""


def accumulated(
    evaluate: Evaluate, batch: Mapping[str, Any], states: Arrays, key: Any, count: int
) -> tuple[list[Any], Arrays]:
    """Returns the means of the outputs over ``count`` parts of a batch, and the states after all.

    Only one part is in memory at a time. Each part takes every ``count``-th example, so that a
    batch that is split over devices by examples is split alike in each part. The mean of row-sparse
    outputs holds the rows of all parts.

    Raises:
        FeedError: the length of an input is not a multiple of ``count``.
    """
    whole = {name: one for name, one in batch.items() if jnp.ndim(one) == 0}
    parts = {name: _split(name, one, count) for name, one in batch.items() if name not in whole}

    def one(states: Arrays, index: Any) -> tuple[Sequence[Any], Arrays]:
        part = {n: lax.dynamic_index_in_dim(x, index, 1, keepdims=False) for n, x in parts.items()}
        outputs, updated = evaluate({**part, **whole}, states, jax.random.fold_in(key, index))
        return outputs, {**states, **updated}

    kinds, _ = jax.eval_shape(one, states, jnp.int32(0))
    sums = _Sums(tuple(isinstance(kind, SelectedRows) for kind in kinds))

    def step(carry: Any, index: Any) -> Any:
        totals, states = carry
        outputs, states = one(states, index)
        totals = [total + value for total, value in zip(totals, sums.dense(outputs), strict=True)]
        return (totals, states), sums.rows(outputs)

    start = [jnp.zeros(kind.shape, _dtype_of(kind)) for kind in sums.dense(kinds)]
    (totals, states), rows = lax.scan(step, (start, states), jnp.arange(count, dtype=np.int32))
    return sums.means(totals, rows, kinds, count), states


def _split(name: str, value: Any, count: int) -> Any:
    """Returns ``value`` with a second axis for the parts, so that a part needs no other layout."""
    length = value.shape[0]
    if length % count:
        raise FeedError(
            f"step: {name!r}: the length of axis 0 must be divisible by {count}, the number of "
            f"parts of a batch, got {length}"
        )
    return jnp.reshape(value, (length // count, count, *value.shape[1:]))


def _dtype_of(kind: Any) -> Any:
    """Returns the dtype in which values of a type are added: at least float32."""
    return jnp.promote_types(kind.dtype, jnp.float32)


class _Sums(NamedTuple):
    """Outputs that are added, dense ones, and collected, row-sparse ones.

    Attributes:
        sparse: which outputs are row-sparse.
    """

    sparse: tuple[bool, ...]

    def dense(self, outputs: Sequence[Any]) -> list[Any]:
        """Returns the dense outputs."""
        return [one for one, sparse in zip(outputs, self.sparse, strict=True) if not sparse]

    def rows(self, outputs: Sequence[Any]) -> list[Any]:
        """Returns the row-sparse outputs."""
        return [one for one, sparse in zip(outputs, self.sparse, strict=True) if sparse]

    def means(
        self, totals: Sequence[Any], rows: Sequence[Any], kinds: Sequence[Any], count: int
    ) -> list[Any]:
        """Returns the means of all outputs, in their order."""
        added, collected = iter(totals), iter(rows)
        return [
            _mean_of_rows(next(collected), count) if sparse else _mean(next(added), kind, count)
            for sparse, kind in zip(self.sparse, kinds, strict=True)
        ]


def _mean(total: Any, kind: Any, count: int) -> Any:
    mean = total / count
    return mean.astype(kind.dtype) if jnp.issubdtype(kind.dtype, jnp.inexact) else mean


def _mean_of_rows(parts: SelectedRows, count: int) -> SelectedRows:
    """Returns the mean of row-sparse values, which are stacked along a new first axis."""
    values = parts.values.reshape(-1, *parts.values.shape[2:]) / count
    return SelectedRows(parts.rows.reshape(-1), values, parts.height)
