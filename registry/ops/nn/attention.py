"""Scaled dot-product attention."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import booleans, case, integers, misuse, workload
from registry.errors import DTypeError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.comparison import less_equal
from registry.ops.core.reductions import statistics_dtype
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape, swapped
from registry.ops.nn.heads import position_ids
from registry.ops.nn.masked_softmax import exponentials_over_sum
from registry.shapes import inexact, real
from registry.table import op
from registry.types import DType, Shape, VarType, is_inexact
from registry.var import Var


def _attention_shape(
    query: Shape, keys: Shape, values: Shape, mask: Shape | None
) -> tuple[Shape, Shape]:
    if len(query) < 2 or len(keys) != len(query) or len(values) != len(query):
        raise ShapeError(
            "query, keys and values must have the same axes, two at least, got "
            f"{query}, {keys} and {values}"
        )
    if keys[:-1] != values[:-1]:
        raise ShapeError(f"keys and values must differ in width alone, got {keys} and {values}")
    if query[-1] != keys[-1]:
        raise ShapeError(f"query and keys must have the same width, got {query} and {keys}")
    heads, shared = query[-3:-2], keys[-3:-2]
    grouped = not heads or heads == shared or (shared[0] > 0 and heads[0] % shared[0] == 0)
    if query[:-3] != keys[:-3] or not grouped:
        raise ShapeError(
            "query must have the batch axes of keys and a multiple of their heads, got "
            f"{query} and {keys}"
        )
    scores = (*query[:-1], keys[-2])
    _check_mask(mask, scores)
    return (*query[:-1], values[-1]), scores


def _check_mask(mask: Shape | None, scores: Shape) -> None:
    if mask is None:
        return
    try:
        fits = np.broadcast_shapes(mask, scores) == scores
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"mask must broadcast to the scores, {scores}, got {mask}")


def _attention_dtype(
    query: VarType, keys: VarType, values: VarType, mask: VarType | None
) -> list[DType]:
    real(query, keys, values)
    dtype = inexact(query, keys, values)[0]
    if mask is not None and mask.dtype != np.bool_:
        real(mask)
        if not is_inexact(mask.dtype):
            raise DTypeError(f"mask must be boolean or floating, got {mask.dtype.name}")
    return [dtype, dtype]


def _attention_reference(
    query: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    mask: np.ndarray | None,
    *,
    scale: float | None,
    causal: bool,
) -> np.ndarray:
    if query.ndim > 2:
        groups = query.shape[-3] // keys.shape[-3]
        keys, values = np.repeat(keys, groups, -3), np.repeat(values, groups, -3)
    factor = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = factor * np.einsum("...td,...sd->...ts", query, keys)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    largest = np.max(scores, -1, keepdims=True)
    powers = np.exp(scores - np.where(np.isinf(largest), 0, largest))
    total = np.sum(powers, -1, keepdims=True)
    return np.asarray(powers / np.where(total == 0, 1, total) @ values)


def _masked(scores: Array, mask: Array | None, causal: bool) -> Array:
    """The scores with minus infinity where a query must not see a key, plus a floating mask."""
    if mask is not None and mask.dtype != np.bool_:
        scores, mask = scores + mask.astype(scores.dtype), None
    if causal:
        before = jnp.tri(scores.shape[-2], scores.shape[-1], dtype=np.bool_)
        mask = before if mask is None else mask & before
    return scores if mask is None else jnp.where(mask, scores, -jnp.inf)


def _rows(query: Shape, keys: Shape) -> Shape:
    """The leading axes, with the queries of all heads that share keys merged into one axis."""
    groups = 1 if len(keys) < 3 or keys[-3] == 0 else query[-3] // keys[-3]
    return (*keys[:-2], groups * query[-2])


_FEW: dict[str, Any] = {"query": (2, 3, 4), "keys": (2, 5, 4), "values": (2, 5, 3)}


@op(
    shape=_attention_shape,
    dtype=_attention_dtype,
    reference=_attention_reference,
    outputs=("out", "weights"),
    hidden=("weights",),
    cases=[
        case(**_FEW, order=2),
        case(**_FEW, mask=booleans(2, 3, 5), causal=True, order=1, seed=3),
        case(**_FEW, mask=(3, 5), scale=0.7, order=2),
        case(query=(1, 4, 3, 2), keys=(1, 2, 4, 2), values=(1, 2, 4, 2), causal=True, order=1),
        case(query=(2, 3), keys=(4, 3), values=(4, 0), order=1),
        case(query=(2, 2), keys=(2, 2), values=(2, 1)),
        workload(query=(4, 8, 512, 64), keys=(4, 8, 512, 64), values=(4, 8, 512, 64)),
        misuse(
            "must have the same width, got (3, 4) and (3, 5)",
            query=(3, 4),
            keys=(3, 5),
            values=(3, 5),
        ),
        misuse(
            "keys and values must differ in width alone", query=(3, 4), keys=(3, 4), values=(2, 4)
        ),
        misuse(
            "query, keys and values must have the same axes",
            query=(2, 3, 4),
            keys=(3, 4),
            values=(3, 4),
        ),
        misuse(
            "a multiple of their heads, got (1, 3, 3, 2) and (1, 2, 4, 2)",
            query=(1, 3, 3, 2),
            keys=(1, 2, 4, 2),
            values=(1, 2, 4, 2),
        ),
        misuse("mask must broadcast to the scores, (2, 3, 5), got (5, 3)", **_FEW, mask=(5, 3)),
        misuse("mask must be boolean or floating, got int32", **_FEW, mask=integers(3, 5, high=2)),
        misuse(
            "must be floating",
            query=integers(2, 3, high=4),
            keys=integers(2, 3, high=4),
            values=integers(2, 3, high=4),
        ),
    ],
    costly=True,
)
def scaled_dot_product_attention(
    query: Array,
    keys: Array,
    values: Array,
    mask: Array | None = None,
    *,
    scale: float | None = None,
    causal: bool = False,
) -> tuple[Array, Array]:
    """Scaled dot-product attention per head: ``softmax(scale * query @ keys^T + mask) @ values``.

    ``query`` has shape ``(..., heads, queries, width)``; ``keys`` and ``values`` have shape
    ``(..., heads, keys, width)``. The axes before the last two may be omitted. ``keys`` and
    ``values`` may have fewer heads: then neighboring heads of the query share one. ``scale``
    defaults to ``1 / sqrt(width)``.

    ``mask`` broadcasts to ``(..., heads, queries, keys)``. A boolean mask is true where a query
    sees a key; a floating mask is added. ``causal`` hides from the i-th query all keys after the
    i-th. A query that sees no key gives zeros, and its gradient is zero. The softmax is computed in
    at least float32.

    Source: Vaswani et al., Attention is all you need, 2017; heads that share keys: Ainslie et al.,
    GQA, 2023.

    Example:
        >>> import jax.numpy as jnp
        >>> query, keys = jnp.asarray([[0.0], [9.0]]), jnp.asarray([[1.0], [-1.0]])
        >>> scaled_dot_product_attention(query, keys, jnp.asarray([[2.0], [4.0]]))
        Array([[3.],
               [2.]], dtype=float32)
    """
    dtype = jnp.result_type(query, keys, values)
    query, keys, values = (one.astype(dtype) for one in (query, keys, values))
    factor = 1 / math.sqrt(max(keys.shape[-1], 1)) if scale is None else scale
    rows, wide = _rows(query.shape, keys.shape), statistics_dtype(dtype)
    batch = tuple(range(keys.ndim - 2))

    def product(x: Array, y: Array, axis: int) -> Array:
        how = (((x.ndim - 1,), (axis,)), (batch, batch))
        return lax.dot_general(x, y, how, preferred_element_type=wide)

    scores = product(query.reshape(*rows, query.shape[-1]), keys, keys.ndim - 1) * factor
    scores = _masked(scores.reshape(*query.shape[:-1], keys.shape[-2]), mask, causal)
    weights = exponentials_over_sum(scores, -1).astype(dtype)
    out = product(weights.reshape(*rows, keys.shape[-2]), values, keys.ndim - 2)
    return out.reshape(*query.shape[:-1], values.shape[-1]).astype(dtype), weights


@scaled_dot_product_attention.gradient
def _attention_gradient(
    query: Var,
    keys: Var,
    values: Var,
    mask: Var | None,
    weights: Var,
    d_out: Var,
    d_weights: Var | None,
    *,
    scale: float | None,
) -> Grads:
    # out = P V, P = softmax(S), S = scale Q K^T + mask: d_P = d_out V^T, d_V = P^T d_out and
    # d_S = P (d_P - sum(P d_P)) with the sum along the keys, d_Q = scale d_S K and
    # d_K = scale d_S^T Q. Where P is zero no gradient flows back.
    factor = 1 / math.sqrt(max(keys.shape[-1], 1)) if scale is None else scale
    rows = _rows(query.shape, keys.shape)
    d = reshape(d_out, shape=(*rows, values.shape[-1]))
    shares = reshape(weights, shape=(*rows, keys.shape[-2]))
    d_shares = reshape(d @ swapped(values), shape=weights.shape)
    if d_weights is not None:
        d_shares = d_shares + d_weights
    d_scores = weights * (d_shares - sum_over(weights * d_shares, axis=-1, keepdims=True))
    moved = reshape(d_scores, shape=shares.shape)
    flat = reshape(query, shape=(*rows, query.shape[-1]))
    d_query = reshape(moved @ keys, shape=query.shape) * factor
    return {
        "query": unbroadcast(d_query, query),
        "keys": unbroadcast(swapped(moved) @ flat * factor, keys),
        "values": unbroadcast(swapped(shares) @ d, values),
        "mask": None if mask is None else unbroadcast(d_scores, mask),
    }


@scaled_dot_product_attention.stepwise
def _attention_by_steps(
    query: Var,
    keys: Var,
    values: Var,
    mask: Var | None,
    before: Var,
    cache: Callable[[str, Var], Var],
    *,
    scale: float | None,
    causal: bool,
) -> Any:
    if not causal:
        return None
    if mask is not None:
        raise ShapeError("a causal call with a mask cannot run by steps; the mask covers all keys")
    keys, values = cache("keys", keys), cache("values", values)
    ones = (1,) * (len(query.shape) - 2)
    place = position_ids(query, before, axis=-2)
    place = reshape(place, shape=(place.shape[0], *ones[1:], place.shape[1], 1))
    sees = less_equal(position_ids(keys, axis=-2), place)
    return scaled_dot_product_attention(query, keys, values, sees, scale=scale)
