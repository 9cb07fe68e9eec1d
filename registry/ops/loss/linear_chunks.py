"""Kernels of the cross-entropy of linear class scores, by chunks of the classes.

The scores of ``n`` examples and ``classes`` are ``cap(hidden @ weight^T + bias)``. No kernel holds
all of them, unless they are few. The last chunk overlaps the one before it where the number of
classes is not a multiple of its size, so that no matrix is copied; what overlaps does not count.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.operator.signature import Array
from registry.ops.core.reductions import statistics_dtype
from registry.tuning import exceeds, present


class Scores(NamedTuple):
    """Linear scores of classes.

    Attributes:
        hidden: the examples, of shape ``(n, width)``.
        weight: the classes, of shape ``(classes, width)``.
        bias: one number for each class, or None.
        labels: the class of each example.
        soft_cap: the bound of the scores, ``soft_cap * tanh(x / soft_cap)``, or None.
    """

    hidden: Array
    weight: Array
    bias: Array | None
    labels: Array
    soft_cap: float | None

    @property
    def wide(self) -> np.dtype:
        """The dtype of scores and sums: at least float32."""
        return statistics_dtype(np.dtype(self.hidden.dtype))

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of examples and of classes."""
        return self.hidden.shape[0], self.weight.shape[0]


class Chunk(NamedTuple):
    """Consecutive classes.

    Attributes:
        start: the first class.
        size: the number of classes.
        fresh: the first class that no chunk before has.
    """

    start: Any
    size: int
    fresh: Any

    def of(self, x: Array, axis: int = 0) -> Array:
        """The part of ``x`` for these classes."""
        if x.shape[axis] == self.size:
            return x
        return lax.dynamic_slice_in_dim(x, self.start, self.size, axis)

    def to(self, x: Array, part: Array) -> Array:
        """``x`` with ``part`` for these classes."""
        return lax.dynamic_update_slice_in_dim(x, part, self.start, 0)

    @property
    def classes(self) -> Array:
        """The classes."""
        first: Array = jnp.asarray(self.start, np.int32)
        return first + lax.iota(np.int32, self.size)


def _product(x: Array, y: Array, x_axis: int, y_axis: int, wide: Any) -> Array:
    how = (((x_axis,), (y_axis,)), ((), ()))
    return lax.dot_general(x, y, how, preferred_element_type=wide)


def _capped(x: Array, cap: float | None) -> Array:
    return x if cap is None else cap * jnp.tanh(x / cap)


def _slope_of_cap(scores: Array, cap: float) -> Array:
    return 1 - jnp.square(scores / cap)


def scores_of(by: Scores, chunk: Chunk) -> Array:
    """The scores of the classes of a chunk."""
    x = _product(by.hidden, chunk.of(by.weight), 1, 1, by.wide)
    x = x if by.bias is None else x + chunk.of(by.bias).astype(x.dtype)
    return _capped(x, by.soft_cap)


def _label_scores(by: Scores) -> Array:
    """The score of each example's class; NaN for a class out of range."""
    legal = (by.labels >= 0) & (by.labels < by.shape[1])
    labels = jnp.where(legal, by.labels, 0)
    rows = jnp.take(by.weight, labels, axis=0, mode="clip").astype(by.wide)
    x = jnp.sum(by.hidden.astype(by.wide) * rows, 1)
    if by.bias is not None:
        x = x + jnp.take(by.bias, labels, mode="clip").astype(by.wide)
    return jnp.where(legal, _capped(x, by.soft_cap), jnp.nan)


# Loops over chunks -----------------------------------------------------------------------------


def _is_small(by: Scores) -> bool:
    return not exceeds(math.prod(by.shape), present.tuning.logits)


def _chunk_size(by: Scores, examples: int) -> int:
    """The number of classes of a chunk for some examples, as even as possible."""
    classes = by.shape[1]
    most = max(present.tuning.logits_chunk // max(examples, 1), 1)
    return -(-classes // -(-classes // most))


def _loop(by: Scores, size: int, step: Callable[[Chunk, Any], Any], carry: Any) -> Any:
    classes = by.shape[1]

    def one(carry: Any, i: Array) -> tuple[Any, None]:
        chunk = Chunk(jnp.minimum(i * size, classes - size), size, i * size)
        return step(chunk, carry), None

    return lax.scan(one, carry, jnp.arange(-(-classes // size), dtype=np.int32))[0]


def _whole(by: Scores) -> Chunk:
    return Chunk(0, by.shape[1], 0)


def _counted(by: Scores, chunk: Chunk, x: Array, otherwise: float) -> Array:
    """``x`` where the classes of the chunk are fresh."""
    if chunk.size == by.shape[1] or by.shape[1] % chunk.size == 0:
        return x
    return jnp.where(chunk.classes >= chunk.fresh, x, otherwise)


def summed(by: Scores, *, of_all: bool) -> tuple[Array, Array, Array]:
    """For each example, the logsumexp of the scores, that of its class, and the sum of all.

    The sum is zero unless ``of_all``.
    """
    labels = _label_scores(by)
    if _is_small(by):
        largest, total, every = _sums(by, _whole(by), of_all=of_all)
    else:
        largest, total, every = _sums_by_chunks(by, of_all=of_all)
    return _finite(largest) + jnp.log(total), labels, every


def _largest(scores: Array) -> Array:
    """The largest score of each example, as a constant.

    The results do not depend on it. JAX's derivative of a maximum looks for the equal entry, and
    finds none where XLA computes the scores anew with another rounding.
    """
    return lax.stop_gradient(jnp.max(scores, 1, initial=-jnp.inf))


def _finite(largest: Array) -> Array:
    return jnp.where(jnp.isinf(largest), 0, largest)


def _sums(by: Scores, chunk: Chunk, *, of_all: bool) -> tuple[Array, Array, Array]:
    scores = scores_of(by, chunk)
    counted = _counted(by, chunk, scores, -jnp.inf)
    largest = _largest(counted)
    total = jnp.sum(jnp.exp(counted - _finite(largest)[:, None]), 1)
    every = jnp.sum(_counted(by, chunk, scores, 0.0), 1) if of_all else jnp.zeros_like(total)
    return largest, total, every


def _sums_by_chunks(by: Scores, *, of_all: bool) -> tuple[Array, Array, Array]:
    def step(chunk: Chunk, carry: Any) -> Any:
        before, total, every = carry
        largest, more, others = _sums(by, chunk, of_all=of_all)
        after = jnp.maximum(before, largest)
        old, new = (jnp.exp(one - _finite(after)) for one in (before, largest))
        return after, old * total + new * more, every + others

    zeros = jnp.zeros(by.shape[0], by.wide)
    start = (jnp.full_like(zeros, -jnp.inf), zeros, zeros)
    result: tuple[Array, Array, Array] = _loop(by, _chunk_size(by, by.shape[0]), step, start)
    return result


class Shares(NamedTuple):
    """The cotangent of the scores ``y`` of each example: ``a exp(y - logsumexp) - b hot - c``.

    ``hot`` is one for the example's class, and zero for the others.
    """

    of_softmax: Array
    of_label: Array
    of_all: Array


def _slopes(by: Scores, chunk: Chunk, scores: Array, logsumexp: Array, shares: Shares) -> Array:
    """The cotangents of ``hidden @ weight^T + bias`` for the classes of a chunk."""
    a, b, c = (one[:, None] for one in shares)
    hot = by.labels[:, None] == chunk.classes
    slopes = a * jnp.exp(scores - logsumexp[:, None]) - jnp.where(hot, b, 0) - c
    if by.soft_cap is not None:
        slopes = slopes * _slope_of_cap(scores, by.soft_cap)
    return _counted(by, chunk, slopes, 0.0)


def pulled(by: Scores, logsumexp: Array, shares: Shares) -> tuple[Array, Array, Array]:
    """The gradients of ``hidden``, ``weight`` and ``bias``, in the dtype of sums."""
    if _is_small(by):
        slopes = _slopes(by, _whole(by), scores_of(by, _whole(by)), logsumexp, shares)
        return _pulled_by(by, _whole(by), slopes)

    def step(chunk: Chunk, carry: Any) -> Any:
        slopes = _slopes(by, chunk, scores_of(by, chunk), logsumexp, shares)
        return _added(carry, chunk, _pulled_by(by, chunk, slopes))

    result: tuple[Array, Array, Array] = _loop(by, _chunk_size(by, by.shape[0]), step, _zeros(by))
    return result


def _pulled_by(by: Scores, chunk: Chunk, slopes: Array) -> tuple[Array, Array, Array]:
    narrow = slopes.astype(by.hidden.dtype)
    return (
        _product(narrow, chunk.of(by.weight), 1, 0, by.wide),
        _product(narrow, by.hidden, 0, 0, by.wide),
        jnp.sum(slopes, 0),
    )


def _zeros(by: Scores) -> tuple[Array, Array, Array]:
    return (
        jnp.zeros(by.hidden.shape, by.wide),
        jnp.zeros(by.weight.shape, by.wide),
        jnp.zeros(by.shape[1], by.wide),
    )


def _added(carry: Any, chunk: Chunk, parts: tuple[Array, Array, Array]) -> Any:
    hidden, weight, bias = carry
    return (
        hidden + parts[0],
        chunk.to(weight, chunk.of(weight) + parts[1]),
        chunk.to(bias, chunk.of(bias) + parts[2]),
    )


class Tangents(NamedTuple):
    """The tangents of ``hidden``, ``weight`` and ``bias``; None for none."""

    hidden: Array | None
    weight: Array | None
    bias: Array | None


def pushed(by: Scores, logsumexp: Array, tangents: Tangents) -> tuple[Array, Array, Array]:
    """The sums of the scores' tangents: weighted by the softmax, of the example's class, of all."""
    if _is_small(by):
        return _pushed_by(by, _whole(by), logsumexp, tangents)

    def step(chunk: Chunk, carry: Any) -> Any:
        parts = _pushed_by(by, chunk, logsumexp, tangents)
        return tuple(x + y for x, y in zip(carry, parts, strict=True))

    start = (jnp.zeros(by.shape[0], by.wide),) * 3
    result: tuple[Array, Array, Array] = _loop(by, _chunk_size(by, by.shape[0]), step, start)
    return result


def _pushed_by(
    by: Scores, chunk: Chunk, logsumexp: Array, tangents: Tangents
) -> tuple[Array, Array, Array]:
    scores = scores_of(by, chunk)
    moved = jnp.zeros_like(scores)
    if tangents.hidden is not None:
        moved = moved + _product(tangents.hidden, chunk.of(by.weight), 1, 1, by.wide)
    if tangents.weight is not None:
        moved = moved + _product(by.hidden, chunk.of(tangents.weight), 1, 1, by.wide)
    if tangents.bias is not None:
        moved = moved + chunk.of(tangents.bias).astype(moved.dtype)
    if by.soft_cap is not None:
        moved = moved * _slope_of_cap(scores, by.soft_cap)
    moved = _counted(by, chunk, moved, 0.0)
    hot = by.labels[:, None] == chunk.classes
    return (
        jnp.sum(jnp.exp(scores - logsumexp[:, None]) * moved, 1),
        jnp.sum(jnp.where(hot, moved, 0), 1),
        jnp.sum(moved, 1),
    )


# Value and gradient at once ----------------------------------------------------------------------


def summed_and_pulled(
    by: Scores, shares: Shares, *, of_all: bool
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    """The results of ``summed`` and of ``pulled``, with each score computed once.

    It takes some examples at a time, with all of their scores.
    """
    if _is_small(by):
        sums = summed(by, of_all=of_all)
        return sums, pulled(by, sums[0], shares)
    n, classes = by.shape
    size = max(present.tuning.logits // classes, 1)
    size = -(-n // -(-n // size))
    rows = [_in_parts(one, size) for one in (by.hidden, by.labels, *shares)]

    def step(carry: Any, part: Any) -> tuple[Any, Any]:
        some = by._replace(hidden=part[0], labels=part[1])
        sums, (hidden, *grads) = _some(some, Shares(*part[2:]), carry, of_all=of_all)
        return tuple(grads), (*sums, hidden)

    grads, parts = lax.scan(step, _zeros(by)[1:], tuple(rows))
    whole = [one.reshape(-1, *one.shape[2:])[:n] for one in parts]
    return (whole[0], whole[1], whole[2]), (whole[3], *grads)


def _in_parts(x: Array, size: int) -> Array:
    missing = -x.shape[0] % size
    x = jnp.pad(x, [(0, missing), *[(0, 0)] * (x.ndim - 1)]) if missing else x
    return x.reshape(-1, size, *x.shape[1:])


def _some(
    by: Scores, shares: Shares, carry: Any, *, of_all: bool
) -> tuple[tuple[Array, Array, Array], Any]:
    """The sums of some examples, and the gradients with those of the examples before."""
    scores = scores_of(by, _whole(by))
    largest = _finite(_largest(scores))
    logsumexp = largest + jnp.log(jnp.sum(jnp.exp(scores - largest[:, None]), 1))
    every = jnp.sum(scores, 1) if of_all else jnp.zeros_like(largest)

    def step(chunk: Chunk, carry: Any) -> Any:
        slopes = _slopes(by, chunk, chunk.of(scores, 1), logsumexp, shares)
        return _added(carry, chunk, _pulled_by(by, chunk, slopes))

    start = (jnp.zeros(by.hidden.shape, by.wide), *carry)
    size = _chunk_size(by, by.shape[0])
    return (logsumexp, _label_scores(by), every), _loop(by, size, step, start)
