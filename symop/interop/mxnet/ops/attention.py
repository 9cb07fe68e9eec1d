"""Attention on interleaved projections of queries, keys and values, by head."""

import math
from typing import Any

import symop as so
from symop.interop.mxnet.operators import operator


def _heads(projected: Any, heads: int, parts: int) -> list[Any]:
    """The ``parts`` of each head, as batches ``(batch * heads, length, width)``."""
    length, batch, width = projected.shape
    shape = (length, batch * heads, parts, width // (heads * parts))
    return [
        so.permute_dims(part, axes=(1, 0, 2))
        for part in so.unstack(so.reshape(projected, shape=shape), axis=2)
    ]


def _scores(queries: Any, keys: Any) -> Any:
    scaled = queries * (1.0 / math.sqrt(queries.shape[-1]))
    return so.batch_dot(scaled, keys, transpose_b=True)


def _merged(attention: Any, values: Any, heads: int) -> Any:
    """The attended values of each query, with heads concatenated."""
    batch, length = attention.shape[0] // heads, attention.shape[1]
    seen = so.permute_dims(so.batch_dot(attention, values), axes=(1, 0, 2))
    return so.reshape(seen, shape=(length, batch, heads * values.shape[-1]))


@operator("_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(queries_keys_values: Any, *, heads: int) -> Any:
    """Scaled products of queries and keys of the same sequence."""
    queries, keys, _ = _heads(queries_keys_values, heads, 3)
    return _scores(queries, keys)


@operator("_contrib_interleaved_matmul_selfatt_valatt")
def selfatt_valatt(queries_keys_values: Any, attention: Any, *, heads: int) -> Any:
    """Values of the same sequence, weighted by ``attention``."""
    return _merged(attention, _heads(queries_keys_values, heads, 3)[2], heads)


@operator("_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(queries: Any, keys_values: Any, *, heads: int) -> Any:
    """Scaled products of the queries of one sequence and the keys of another."""
    (only,), (keys, _) = _heads(queries, heads, 1), _heads(keys_values, heads, 2)
    return _scores(only, keys)


@operator("_contrib_interleaved_matmul_encdec_valatt")
def encdec_valatt(keys_values: Any, attention: Any, *, heads: int) -> Any:
    """Values of another sequence, weighted by ``attention``."""
    return _merged(attention, _heads(keys_values, heads, 2)[1], heads)
