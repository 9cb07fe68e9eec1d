"""The operators of DynamicRNN and IfElse: sequences by length, step by step, and rows by a mask.

The number of rows changes from step to step, so that the offsets must be known; the executor
compiles a program that has these operators for the offsets that are fed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle.arrays import Elements, position, stacked
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import operator
from symop.interop.paddle.ops.sequences import ragged
from symop.interop.paddle.values import data_of, known, with_data


@dataclass(frozen=True)
class RankTable:
    """Sequences, the longest first.

    Attributes:
        order: their numbers; sequences of the same length stay in their order.
        lengths: their lengths, in this order.
        level: the level that was ranked.
    """

    order: tuple[int, ...]
    lengths: tuple[int, ...]
    level: int

    def alive(self, step: int) -> int:
        """Returns how many sequences have a step."""
        return sum(one > step for one in self.lengths)


@operator(ragged=True, no_gradient="X")
def lod_rank_table(X: Any, *, level: int = 0) -> Any:
    x = ragged("lod_rank_table", X)
    lengths = np.diff(known("lod_rank_table: the offsets of X", _offsets(x, level)))
    order = np.argsort(-lengths, kind="stable")
    return RankTable(tuple(order.tolist()), tuple(lengths[order].tolist()), level)


def _offsets(x: Any, level: int) -> Any:
    offsets = x.lod[level]
    return jnp.asarray(offsets) if isinstance(offsets, np.ndarray) else offsets


@operator(no_gradient="RankTable")
def max_sequence_len(RankTable: Any) -> Any:
    return jnp.asarray([max(RankTable.lengths, default=0)], jnp.int32)


@operator(ragged=True, no_gradient="RankTable")
def lod_tensor_to_array(X: Any, RankTable: Any) -> Any:
    """Returns an array with one element per step: the rows of the sequences that have the step."""
    x = ragged("lod_tensor_to_array", X)
    if len(x.lod) != RankTable.level + 1:
        raise PaddleError(
            "lod_tensor_to_array: the rank table must be that of the last level, got a table of "
            f"level {RankTable.level} and {len(x.lod)} levels"
        )
    starts = known("lod_tensor_to_array: the offsets of X", _offsets(x, -1))
    steps = max(RankTable.lengths, default=0)
    rows = (
        [int(starts[one]) + step for one in RankTable.order[: RankTable.alive(step)]]
        for step in range(steps)
    )
    return Elements(so.take(x.data, jnp.asarray(one, jnp.int32), axis=0) for one in rows)


@operator(ragged=True, no_gradient="RankTable")
def array_to_lod_tensor(X: Any, RankTable: Any) -> Any:
    """Returns sequences from an array with one element per step."""
    elements = [data_of(one) for one in stacked(X)]
    begins = np.concatenate([[0], np.cumsum([one.shape[0] for one in elements])])
    ranks = {number: rank for rank, number in enumerate(RankTable.order)}
    count = len(ranks)
    lengths = [RankTable.lengths[ranks[number]] for number in range(count)]
    rows = [
        int(begins[step]) + ranks[number]
        for number in range(count)
        for step in range(lengths[number])
    ]
    joined = so.concat(*elements, axis=0) if len(elements) > 1 else elements[0]
    data = so.take(joined, jnp.asarray(rows, jnp.int32), axis=0)
    return so.LoDTensor(data, [_bounds(lengths)])


def _bounds(lengths: Sequence[int]) -> Any:
    return jnp.asarray(np.concatenate([[0], np.cumsum(lengths)]), jnp.int32)


@operator(ragged=True, no_gradient="RankTable I")
def shrink_rnn_memory(X: Any, RankTable: Any, I: Any) -> Any:  # noqa: E741
    """Returns the rows, or inner sequences, of the sequences that have the step ``I``."""
    if len(set(RankTable.lengths)) == 1:
        return with_data(X, so.identity(data_of(X)))
    step = position(I)
    if not isinstance(step, int):
        known("shrink_rnn_memory: I", I)
    count = RankTable.alive(step)
    if not isinstance(X, so.LoDTensor):
        return so.slice_axis(X, axis=0, begin=0, end=count)
    bounds = known("shrink_rnn_memory: the offsets of X", _offsets(X, 0))[: count + 1]
    rows = so.slice_axis(X.data, axis=0, begin=0, end=int(bounds[-1]))
    return so.LoDTensor(rows, [jnp.asarray(bounds)])


@operator(ragged=True, no_gradient="RankTable")
def reorder_lod_tensor_by_rank(X: Any, RankTable: Any) -> Any:
    return _reordered(X, RankTable.order)


@operator("reorder_lod_tensor_by_rank_grad", outputs="X@GRAD", ragged=True)
def reorder_lod_tensor_by_rank_gradient(RankTable: Any, Out_GRAD: Any) -> Any:
    """Returns the rows in the order of the sequences; no other input is needed."""
    return _reordered(Out_GRAD, np.argsort(RankTable.order).tolist())


def _reordered(x: Any, order: Sequence[int]) -> Any:
    """Returns rows, or sequences, in another order."""
    if not isinstance(x, so.LoDTensor):
        return so.take(x, jnp.asarray(order, jnp.int32), axis=0)
    bounds = known("reorder_lod_tensor_by_rank: the offsets of X", _offsets(x, 0))
    pieces = [np.arange(bounds[one], bounds[one + 1]) for one in order]
    rows = np.concatenate([np.zeros(0, int), *pieces])
    offsets = _bounds([len(one) for one in pieces])
    return so.LoDTensor(so.take(x.data, jnp.asarray(rows, jnp.int32), axis=0), [offsets])


# Rows by a mask --------------------------------------------------------------------------------


def _holds(name: str, mask: Any) -> np.ndarray:
    return known(f"{name}: Mask", mask).astype(bool).ravel()


@operator(outputs="OutTrue OutFalse", no_gradient="Mask")
def split_lod_tensor(X: Any, Mask: Any, *, level: int = 0) -> Any:
    """Returns the rows where a condition holds, and the others."""
    holds = _holds("split_lod_tensor", Mask)
    places = (np.flatnonzero(each) for each in (holds, ~holds))
    return tuple(so.take(X, jnp.asarray(one, jnp.int32), axis=0) for one in places)


@operator("merge_lod_tensor", "merge_lod_tensor_infer", no_gradient="X Mask")
def merge_lod_tensor(X: Any, Mask: Any, InTrue: Any, InFalse: Any, *, level: int = 0) -> Any:
    """Returns the rows of two tensors in the order of a condition; one may have no value."""
    holds = _holds("merge_lod_tensor", Mask)
    if holds.all() or not holds.any():
        return InTrue if holds.any() else InFalse
    first = int(holds.sum())
    rows = np.where(holds, np.cumsum(holds) - 1, first + np.cumsum(~holds) - 1)
    both = so.concat(InTrue, InFalse, axis=0)
    return so.take(both, jnp.asarray(rows, jnp.int32), axis=0)
