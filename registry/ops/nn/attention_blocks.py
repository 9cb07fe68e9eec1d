"""Kernels of attention, on whole matrices of scores and block by block.

A block is the scores of some consecutive queries and keys, of all heads. The weights of a block are
``exp(scores - logsumexp)``, so a derivative recomputes them from the ``logsumexp`` of each query.
Blocks in which no query sees a key, because of ``causal`` or ``window``, are not computed.
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
from registry.types import Shape

Window = int | tuple[int, ...] | None


class Form(NamedTuple):
    """The attributes of a call.

    Attributes:
        scale: the factor of the scores; None for one over the root of the width.
        causal: whether a query sees only keys up to its own position.
        window: the numbers of keys before and after its own position that a query sees.
        dropout: the probability with which a weight is dropped.
    """

    scale: float | None = None
    causal: bool = False
    window: Window = None
    dropout: float = 0.0

    def factor(self, width: int) -> Any:
        """The factor of the scores for queries of ``width``."""
        return 1 / math.sqrt(max(width, 1)) if self.scale is None else self.scale

    @property
    def reach(self) -> tuple[int | None, int | None]:
        """How far back and how far ahead a query sees; None for no limit."""
        window = (self.window, self.window) if isinstance(self.window, int) else self.window
        back, ahead = (None, None) if window is None else window
        return back, 0 if self.causal else ahead


class Call(NamedTuple):
    """The inputs of a call in canonical shapes.

    Queries have shape ``(*batch, shared, group, queries, width)``, keys and values
    ``(*batch, shared, keys, width)``, where ``group`` heads of queries share keys. ``mask`` and
    ``bias`` broadcast to ``(*batch, shared, group, queries, keys)``; lengths have all those axes.
    """

    query: Array
    keys: Array
    values: Array | None
    mask: Array | None
    bias: Array | None
    query_lengths: Array | None
    key_lengths: Array | None
    seed: Array | None
    form: Form
    n_keys: int

    @property
    def dtype(self) -> np.dtype:
        """The dtype of products."""
        return np.dtype(self.query.dtype)

    @property
    def wide(self) -> np.dtype:
        """The dtype of scores, weights and sums: at least float32."""
        return statistics_dtype(self.dtype)

    @property
    def scores_shape(self) -> Shape:
        """The shape of the scores."""
        return (*self.query.shape[:-1], self.keys.shape[-2])

    @property
    def factor(self) -> Any:
        """The factor of the scores."""
        return self.form.factor(self.query.shape[-1])


class Block(NamedTuple):
    """Consecutive queries and keys.

    Attributes:
        row: the first query.
        rows: the number of queries.
        col: the first key.
        cols: the number of keys.
    """

    row: Any
    rows: int
    col: Any
    cols: int

    def of_queries(self, x: Array, axis: int = -2) -> Array:
        """The part of ``x`` for these queries, which lie along ``axis``."""
        return _cut(x, self.row, self.rows, axis)

    def of_keys(self, x: Array, axis: int = -2) -> Array:
        """The part of ``x`` for these keys, which lie along ``axis``."""
        return _cut(x, self.col, self.cols, axis)

    def of_both(self, x: Array) -> Array:
        """The part of ``x``, whose last two axes are queries and keys, or have one entry."""
        return self.of_keys(self.of_queries(x), -1)

    def to_queries(self, x: Array, part: Array) -> Array:
        """``x`` with ``part`` for these queries."""
        return lax.dynamic_update_slice_in_dim(x, part, self.row, x.ndim - 2)

    def to_keys(self, x: Array, part: Array) -> Array:
        """``x`` with ``part`` for these keys."""
        return lax.dynamic_update_slice_in_dim(x, part, self.col, x.ndim - 2)


def _cut(x: Array, start: Any, count: int, axis: int) -> Array:
    if x.shape[axis] in (1, count):
        return x
    return lax.dynamic_slice_in_dim(x, start, count, axis % x.ndim)


# Canonical shapes ------------------------------------------------------------------------------


def heads_of(query: Shape, keys: Shape) -> tuple[Shape, int, int]:
    """The batch axes, the number of heads of keys, and the heads of queries for each of these."""
    if len(query) < 3:
        return (), 1, 1
    shared = keys[-3]
    return keys[:-3], shared, query[-3] // shared if shared else 1


def call_of(
    query: Array,
    keys: Array,
    values: Array | None,
    mask: Array | None,
    bias: Array | None,
    query_lengths: Array | None,
    key_lengths: Array | None,
    seed: Array | None,
    form: Form,
) -> Call:
    """The call in canonical shapes, with a floating mask as the bias."""
    if mask is not None and mask.dtype != np.bool_:
        mask, bias = None, mask
    heads = heads_of(query.shape, keys.shape)
    return Call(
        grouped(query, heads),
        shared(keys, heads),
        None if values is None else shared(values, heads),
        _against_scores(mask, heads, query.ndim),
        _against_scores(bias, heads, query.ndim),
        _beside_scores(query_lengths),
        _beside_scores(key_lengths),
        seed,
        form,
        keys.shape[-2],
    )


def grouped(x: Array, heads: tuple[Shape, int, int]) -> Array:
    """``x`` of shape ``(..., heads, queries, n)``, with the heads in groups that share keys."""
    batch, shared, group = heads
    return x.reshape(*batch, shared, group, *x.shape[-2:])


def shared(x: Array, heads: tuple[Shape, int, int]) -> Array:
    """``x`` of shape ``(..., heads, keys, n)``, with an axis of heads."""
    batch, shared, _ = heads
    return x.reshape(*batch, shared, *x.shape[-2:])


def _against_scores(x: Array | None, heads: tuple[Shape, int, int], ndim: int) -> Array | None:
    if x is None:
        return None
    shape = (1,) * (max(ndim, 3) - x.ndim) + x.shape
    of_heads = (1, 1) if shape[-3] == 1 else heads[1:]
    return x.reshape(*shape[:-3], *of_heads, *shape[-2:])


def _beside_scores(lengths: Array | None) -> Array | None:
    return None if lengths is None else lengths.reshape(*lengths.shape, 1, 1, 1, 1)


# One block -------------------------------------------------------------------------------------


def _paired(x: Array, y: Array, wide: Any) -> Array:
    """``(..., group, rows, n)`` by ``(..., cols, n)``: the products of all rows and columns."""
    flat = x.reshape(*x.shape[:-3], x.shape[-3] * x.shape[-2], x.shape[-1])
    out = _product(flat, y, y.ndim - 1, y.ndim - 1, wide)
    return out.reshape(*x.shape[:-1], y.shape[-2])


def _mixed(p: Array, y: Array, wide: Any) -> Array:
    """``(..., group, rows, cols)`` by ``(..., cols, n)``: for each row, ``y`` weighted by ``p``."""
    flat = p.reshape(*p.shape[:-3], p.shape[-3] * p.shape[-2], p.shape[-1])
    out = _product(flat.astype(y.dtype), y, y.ndim - 1, y.ndim - 2, wide)
    return out.reshape(*p.shape[:-1], y.shape[-1])


def _gathered(p: Array, x: Array, wide: Any) -> Array:
    """``(..., group, rows, cols)`` by ``(..., group, rows, n)``: ``x`` weighted for each column."""
    rows = p.shape[-3] * p.shape[-2]
    flat = p.reshape(*p.shape[:-3], rows, p.shape[-1]).astype(x.dtype)
    x = x.reshape(*x.shape[:-3], rows, x.shape[-1])
    return _product(flat, x, x.ndim - 2, x.ndim - 2, wide)


def _product(x: Array, y: Array, x_axis: int, y_axis: int, wide: Any) -> Array:
    batch = tuple(range(x.ndim - 2))
    how = (((x_axis,), (y_axis,)), (batch, batch))
    return lax.dot_general(x, y, how, preferred_element_type=wide)


def scores_of(call: Call, block: Block) -> Array:
    """The scores of a block, minus infinity where a query does not see a key."""
    query, keys = block.of_queries(call.query), block.of_keys(call.keys)
    scores = _paired(query, keys, call.wide) * call.factor
    if call.bias is not None:
        scores = scores + block.of_both(call.bias).astype(scores.dtype)
    seen = visible(call, block)
    return scores if seen is None else jnp.where(seen, scores, -jnp.inf)


def visible(call: Call, block: Block) -> Array | None:
    """Where the queries of a block see its keys; None if everywhere."""
    seen = None if call.mask is None else block.of_both(call.mask)
    for one in _conditions(call, block):
        seen = one if seen is None else seen & one
    return seen


def _conditions(call: Call, block: Block) -> list[Array]:
    rows = block.row + lax.broadcasted_iota(np.int32, (block.rows, 1), 0)
    cols = block.col + lax.broadcasted_iota(np.int32, (1, block.cols), 1)
    back, ahead = call.form.reach
    limits = [
        None if ahead is None else cols - rows <= ahead,
        None if back is None else rows - cols <= back,
        None if call.query_lengths is None else rows < call.query_lengths,
        None if call.key_lengths is None else cols < call.key_lengths,
        None if call.keys.shape[-2] == call.n_keys else cols < call.n_keys,
    ]
    return [one for one in limits if one is not None]


def factors_of(call: Call, block: Block) -> Array | None:
    """The factors of the weights of a block; None without dropout."""
    rate = call.form.dropout
    if call.seed is None or rate == 0:
        return None
    return factors(call.seed, call.query.shape[:-2], block, rate, call.wide)


def factors(seed: Array, heads: Shape, block: Block, rate: float, dtype: Any) -> Array:
    """The factors of the weights of a block: zero where one is dropped, else ``1 / (1 - rate)``.

    They depend on the seed, the head and the positions, and not on the size of blocks.
    """
    numbers = np.arange(math.prod(heads), dtype=np.uint32).reshape(*heads, 1, 1)
    rows = (block.row + lax.iota(np.int32, block.rows)).astype(np.uint32)
    cols = (block.col + lax.iota(np.int32, block.cols)).astype(np.uint32)
    first, second = (jnp.asarray(seed)[i].astype(np.uint32) for i in range(2))
    of_row = _scrambled(_scrambled(jnp.asarray(numbers) ^ first) ^ rows[:, None])
    bits = _scrambled(of_row ^ _scrambled(cols ^ second))
    # In single precision, so that a rate gives the same factors as a constant and as an operand.
    bound = jnp.asarray(rate * 2.0**32, np.float32).astype(np.uint32)
    return jnp.where(bits >= bound, jnp.asarray(1 / (1 - rate)), 0.0).astype(dtype)


def _scrambled(x: Array) -> Array:
    """A permutation of 32-bit integers: the finalizer of MurmurHash3 by A. Appleby."""
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x85EBCA6B)
    x = x ^ (x >> np.uint32(13))
    x = x * np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))


def _scaled(factors: Array | None, weights: Array) -> Array:
    return weights if factors is None else factors * weights


def weights_of(call: Call, block: Block, logsumexp: Array) -> Array:
    """The weights of a block: ``exp(scores - logsumexp)``."""
    return jnp.exp(scores_of(call, block) - block.of_queries(logsumexp))


def _summed(call: Call, block: Block) -> tuple[Array, Array, Array]:
    """The largest score of each query, its sum of exponentials, and its sum of values."""
    assert call.values is not None
    scores = scores_of(call, block)
    # The results do not depend on it. JAX's derivative of a maximum looks for the equal entry, and
    # finds none where XLA computes the scores anew with another rounding.
    largest = lax.stop_gradient(jnp.max(scores, -1, keepdims=True, initial=-jnp.inf))
    powers = jnp.exp(scores - _finite(largest))
    out = _mixed(_scaled(factors_of(call, block), powers), block.of_keys(call.values), call.wide)
    return largest, jnp.sum(powers, -1, keepdims=True), out


def _finite(largest: Array) -> Array:
    return jnp.where(largest == -jnp.inf, 0, largest)


def _slopes(
    call: Call, block: Block, logsumexp: Array, cotangent: Array, delta: Array
) -> tuple[Array, Array]:
    """The cotangents of the scores of a block, and the weights with their factors."""
    assert call.values is not None
    weights, factors = weights_of(call, block, logsumexp), factors_of(call, block)
    pull = _paired(block.of_queries(cotangent), block.of_keys(call.values), call.wide)
    slopes = weights * (_scaled(factors, pull) - block.of_queries(delta))
    return slopes, _scaled(factors, weights)


class Tangents(NamedTuple):
    """The tangents of queries, keys, values and bias, in the shapes of a ``Call``."""

    query: Array | None
    keys: Array | None
    values: Array | None
    bias: Array | None


def _moved(
    call: Call, block: Block, logsumexp: Array, tangents: Tangents
) -> tuple[Array | None, Array | None]:
    """The tangents of the values and of the logsumexp of the queries, as far as of this block."""
    assert call.values is not None
    weights, factors = weights_of(call, block, logsumexp), factors_of(call, block)
    by_score = _score_tangents(call, block, tangents)
    moved = None if by_score is None else weights * by_score
    out = None
    if moved is not None:
        out = _mixed(_scaled(factors, moved), block.of_keys(call.values), call.wide)
    if tangents.values is not None:
        direct = _mixed(_scaled(factors, weights), block.of_keys(tangents.values), call.wide)
        out = direct if out is None else out + direct
    return out, None if moved is None else jnp.sum(moved, -1, keepdims=True)


def _score_tangents(call: Call, block: Block, tangents: Tangents) -> Array | None:
    total = None
    if tangents.query is not None:
        total = _paired(block.of_queries(tangents.query), block.of_keys(call.keys), call.wide)
    if tangents.keys is not None:
        one = _paired(block.of_queries(call.query), block.of_keys(tangents.keys), call.wide)
        total = one if total is None else total + one
    total = None if total is None else total * call.factor
    if tangents.bias is None:
        return total
    bias = block.of_both(tangents.bias).astype(call.wide)
    return bias if total is None else total + bias


# Loops over blocks -----------------------------------------------------------------------------


class Plan(NamedTuple):
    """How a call is divided.

    Attributes:
        rows: the number of queries in a block.
        cols: the number of keys in a block.
        places: the numbers of the blocks of queries and of keys that are computed.
    """

    rows: int
    cols: int
    places: np.ndarray


def plan_of(call: Call) -> Plan | None:
    """How to divide a call; None if all of its scores are few."""
    size = present.tuning.attention_block
    if not size or not exceeds(math.prod(call.scores_shape), present.tuning.attention_scores):
        return None
    queries, keys = call.scores_shape[-2:]
    rows, cols = _even(queries, size), _even(keys, size)
    places = np.array(list(_places(call, rows, cols)), np.int32).reshape(-1, 2)
    return Plan(rows, cols, places)


def _even(length: int, size: int) -> int:
    """The length of blocks of at most ``size`` that divide ``length`` as evenly as possible."""
    return -(-length // -(-length // size))


def _places(call: Call, rows: int, cols: int) -> Any:
    queries, keys = call.scores_shape[-2:]
    back, ahead = call.form.reach
    for i in range(-(-queries // rows)):
        first, last = i * rows, min((i + 1) * rows, queries) - 1
        start = 0 if back is None else max(first - back, 0) // cols
        stop = keys - 1 if ahead is None else min(last + ahead, keys - 1)
        yield from ((i, j) for j in range(start, stop // cols + 1 if stop >= 0 else 0))


def _padded(call: Call, plan: Plan) -> Call:
    """The call with whole blocks; keys from ``n_keys`` on are not seen."""
    return call._replace(
        query=_filled(call.query, plan.rows, -2),
        keys=_filled(call.keys, plan.cols, -2),
        values=None if call.values is None else _filled(call.values, plan.cols, -2),
        mask=_filled_both(call.mask, plan),
        bias=_filled_both(call.bias, plan),
    )


def _filled(x: Array, size: int, axis: int) -> Array:
    missing = -x.shape[axis] % size
    if not missing:
        return x
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, missing)
    return jnp.pad(x, widths)


def _filled_both(x: Array | None, plan: Plan) -> Array | None:
    """``x``, filled along the axes of queries and keys where these have more than one entry."""
    if x is None:
        return None
    x = x if x.shape[-2] == 1 else _filled(x, plan.rows, -2)
    return x if x.shape[-1] == 1 else _filled(x, plan.cols, -1)


def _loop(plan: Plan, step: Callable[[Block, Any], Any], carry: Any) -> Any:
    def one(carry: Any, place: Array) -> tuple[Any, None]:
        block = Block(place[0] * plan.rows, plan.rows, place[1] * plan.cols, plan.cols)
        return step(block, carry), None

    return lax.scan(one, carry, jnp.asarray(plan.places))[0]


def _whole(call: Call) -> Block:
    rows, cols = call.scores_shape[-2:]
    return Block(0, rows, 0, cols)


def attend(call: Call) -> tuple[Array, Array]:
    """The values of the queries, and their ``logsumexp``, which is zero if they see no key."""
    plan = plan_of(call)
    parts = _summed(call, _whole(call)) if plan is None else _summed_by_blocks(call, plan)
    largest, total, out = parts
    size = jnp.where(total == 0, 1, total)
    logsumexp = jnp.where(total == 0, 0, _finite(largest) + jnp.log(size))
    return (out / size).astype(call.dtype), logsumexp


def _summed_by_blocks(call: Call, plan: Plan) -> tuple[Array, Array, Array]:
    queries = call.query.shape[-2]
    call = _padded(call, plan)
    assert call.values is not None

    def step(block: Block, carry: Any) -> Any:
        before = [block.of_queries(one) for one in carry]
        after = _merged(before, _summed(call, block))
        return [block.to_queries(*pair) for pair in zip(carry, after, strict=True)]

    rows = call.query.shape[:-1]
    largest = jnp.full((*rows, 1), -jnp.inf, call.wide)
    total = jnp.zeros((*rows, 1), call.wide)
    out = jnp.zeros((*rows, call.values.shape[-1]), call.wide)
    largest, total, out = _loop(plan, step, [largest, total, out])
    return largest[..., :queries, :], total[..., :queries, :], out[..., :queries, :]


def _merged(x: Any, y: Any) -> list[Array]:
    """Sums relative to the larger of both largest scores."""
    largest = jnp.maximum(x[0], y[0])
    of_x, of_y = (jnp.exp(one[0] - _finite(largest)) for one in (x, y))
    return [largest, *(of_x * a + of_y * b for a, b in zip(x[1:], y[1:], strict=True))]


def of_rows(x: Array, call: Call) -> Array:
    """Numbers of queries in the shape of a call."""
    return x.reshape(*call.query.shape[:-1], x.shape[-1])


def pulled(
    call: Call, logsumexp: Array, cotangent: Array, delta: Array, *, of_bias: bool
) -> list[Array]:
    """The gradients of queries, keys, values and, if ``of_bias``, the bias."""
    plan = plan_of(call)
    if plan is not None:
        return _pulled_by_blocks(call, logsumexp, cotangent, delta, plan, of_bias=of_bias)
    slopes, weights = _slopes(call, _whole(call), logsumexp, cotangent, delta)
    parts = [
        _mixed(slopes, call.keys, call.wide) * call.factor,
        _gathered(slopes, call.query, call.wide) * call.factor,
        _gathered(weights, cotangent, call.wide),
    ]
    return [*parts, _sum_to(slopes, _bias_shape(call))] if of_bias else parts


def _bias_shape(call: Call) -> Shape:
    assert call.bias is not None
    return call.bias.shape


def _sum_to(x: Array, shape: Shape) -> Array:
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[i] != 1)
    return jnp.sum(x, axes, keepdims=True) if axes else x


def _pulled_by_blocks(
    call: Call,
    logsumexp: Array,
    cotangent: Array,
    delta: Array,
    plan: Plan,
    *,
    of_bias: bool,
) -> list[Array]:
    shape = call.scores_shape
    whole = _padded(call, plan)
    assert whole.values is not None
    logsumexp, cotangent, delta = (_filled(x, plan.rows, -2) for x in (logsumexp, cotangent, delta))

    def step(block: Block, carry: Any) -> Any:
        slopes, weights = _slopes(whole, block, logsumexp, cotangent, delta)
        query, keys, values, *bias = carry
        of_query = _mixed(slopes, block.of_keys(whole.keys), call.wide)
        of_keys = _gathered(slopes, block.of_queries(whole.query), call.wide)
        of_values = _gathered(weights, block.of_queries(cotangent), call.wide)
        return [
            block.to_queries(query, block.of_queries(query) + of_query),
            block.to_keys(keys, block.of_keys(keys) + of_keys),
            block.to_keys(values, block.of_keys(values) + of_values),
            *(_added_to_bias(one, slopes, block) for one in bias),
        ]

    inputs = [whole.query, whole.keys, whole.values, *([whole.bias] if of_bias else [])]
    start = [jnp.zeros(one.shape, call.wide) for one in inputs if one is not None]
    query, keys, values, *bias = _loop(plan, step, start)
    n, m = shape[-2:]
    query, keys = query[..., :n, :] * call.factor, keys[..., :m, :] * call.factor
    return [query, keys, values[..., :m, :], *(one[..., :n, :m] for one in bias)]


def _added_to_bias(bias: Array, slopes: Array, block: Block) -> Array:
    part = block.of_both(bias)
    places = [0 if n == 1 else at for n, at in zip(bias.shape[-2:], block[::2], strict=True)]
    starts = [jnp.asarray(at, np.int32) for at in ([0] * (bias.ndim - 2) + places)]
    return lax.dynamic_update_slice(bias, part + _sum_to(slopes, part.shape), starts)


def pushed(call: Call, logsumexp: Array, tangents: Tangents) -> tuple[Array, Array]:
    """For each query, the tangents of its values at a fixed ``logsumexp``, and of its sum."""
    assert call.values is not None
    plan = plan_of(call)
    if plan is not None:
        return _pushed_by_blocks(call, logsumexp, tangents, plan)
    moved = _moved(call, _whole(call), logsumexp, tangents)
    rows, widths = call.query.shape[:-1], (call.values.shape[-1], 1)
    out, total = (
        jnp.zeros((*rows, n), call.wide) if one is None else one
        for one, n in zip(moved, widths, strict=True)
    )
    return out, total


def _pushed_by_blocks(
    call: Call, logsumexp: Array, tangents: Tangents, plan: Plan
) -> tuple[Array, Array]:
    queries = call.query.shape[-2]
    whole = _padded(call, plan)
    assert whole.values is not None
    logsumexp = _filled(logsumexp, plan.rows, -2)
    query, keys, values = (
        None if one is None else _filled(one, size, -2)
        for one, size in zip(tangents[:3], (plan.rows, plan.cols, plan.cols), strict=True)
    )
    ways = Tangents(query, keys, values, _filled_both(tangents.bias, plan))

    def step(block: Block, carry: Any) -> Any:
        moved = _moved(whole, block, logsumexp, ways)
        return [
            one if by is None else block.to_queries(one, block.of_queries(one) + by)
            for one, by in zip(carry, moved, strict=True)
        ]

    rows = whole.query.shape[:-1]
    start = [jnp.zeros((*rows, n), call.wide) for n in (whole.values.shape[-1], 1)]
    out, total = _loop(plan, step, start)
    return out[..., :queries, :], total[..., :queries, :]
