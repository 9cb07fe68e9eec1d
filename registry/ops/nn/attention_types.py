"""Types, references in NumPy and samples of attention and of its derivatives."""

import math
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, AttributeValueError, DTypeError, ShapeError
from registry.operator.attributes import Check
from registry.operator.signature import Array
from registry.ops.core.reductions import statistics_dtype
from registry.ops.nn.attention_blocks import (
    Form,
    Window,
)
from registry.shapes import inexact, real
from registry.types import DType, Shape, VarType, is_inexact, is_integer
from registry.var import Var

# The types of a call -----------------------------------------------------------------------------


def scores_shape(query: Shape, keys: Shape) -> Shape:
    """The shape of the scores.

    Raises:
        ShapeError: the shapes do not fit.
    """
    if len(query) < 2 or len(keys) != len(query):
        raise ShapeError(
            f"query and keys must have the same axes, two at least, got {query} and {keys}"
        )
    if query[-1] != keys[-1]:
        raise ShapeError(f"query and keys must have the same width, got {query} and {keys}")
    heads, of_keys = query[-3:-2], keys[-3:-2]
    groups = not heads or heads == of_keys or (of_keys[0] > 0 and heads[0] % of_keys[0] == 0)
    if query[:-3] != keys[:-3] or not groups:
        raise ShapeError(
            "query must have the batch axes of keys and a multiple of their heads, got "
            f"{query} and {keys}"
        )
    return (*query[:-1], keys[-2])


def require_fit(
    scores: Shape,
    mask: Shape | None,
    bias: Shape | None,
    query_lengths: Shape | None,
    key_lengths: Shape | None,
    dropout_seed: Shape | None,
    window: Window,
    dropout: float,
) -> None:
    """Raises unless what limits the scores fits them."""
    for name, one in (("mask", mask), ("bias", bias)):
        _require_broadcast(name, one, scores)
    for name, one in (("query_lengths", query_lengths), ("key_lengths", key_lengths)):
        if one not in (None, scores[:-3]):
            raise ShapeError(f"{name} must have the batch axes {scores[:-3]}, got {one}")
    if dropout_seed not in (None, (2,)):
        raise ShapeError(f"dropout_seed must have shape (2,), got {dropout_seed}")
    if dropout and dropout_seed is None:
        raise ArgumentError(f"a dropout_seed must be given for dropout={dropout}, got none")
    ends = (window, window) if isinstance(window, int) else window
    if ends is not None and (len(ends) != 2 or min(ends) < 0):
        raise AttributeValueError(
            f"window must be one or two numbers of positions, none negative, got {window}"
        )


def _require_broadcast(name: str, one: Shape | None, scores: Shape) -> None:
    if one is None:
        return
    try:
        fits = np.broadcast_shapes(one, scores) == scores
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"{name} must broadcast to the scores, {scores}, got {one}")


def require_types(
    mask: VarType | None,
    bias: VarType | None,
    query_lengths: VarType | None,
    key_lengths: VarType | None,
    dropout_seed: VarType | None,
) -> None:
    """Raises unless the dtypes of what limits the scores are legal."""
    if mask is not None and mask.dtype != np.bool_:
        _require_floating("mask", "boolean or floating", mask)
        if bias is not None:
            raise DTypeError("mask must be boolean beside a bias, got " + mask.dtype.name)
    if bias is not None:
        _require_floating("bias", "floating", bias)
    whole = {
        "query_lengths": query_lengths,
        "key_lengths": key_lengths,
        "dropout_seed": dropout_seed,
    }
    for name, one in whole.items():
        if one is not None and not is_integer(one.dtype):
            raise DTypeError(f"{name} must hold integers, got {one.dtype.name}")


def _require_floating(name: str, what: str, one: VarType) -> None:
    real(one)
    if not is_inexact(one.dtype):
        raise DTypeError(f"{name} must be {what}, got {one.dtype.name}")


def require_floating(**types: VarType | None) -> None:
    """Raises unless those present are real and floating."""
    for name, one in types.items():
        if one is not None:
            _require_floating(name, "floating", one)


def product_dtype(*types: VarType) -> DType:
    """The dtype of products, which must be real and floating."""
    real(*types)
    return inexact(*types)[0]


def attention_shape(
    query: Shape,
    keys: Shape,
    values: Shape,
    mask: Shape | None,
    bias: Shape | None,
    query_lengths: Shape | None,
    key_lengths: Shape | None,
    dropout_seed: Shape | None,
    *,
    window: Window,
    dropout: float,
) -> tuple[Shape, Shape]:
    """The shapes of the values and of the logsumexp of the queries."""
    if len(query) < 2 or len(keys) != len(query) or len(values) != len(query):
        raise ShapeError(
            "query, keys and values must have the same axes, two at least, got "
            f"{query}, {keys} and {values}"
        )
    if keys[:-1] != values[:-1]:
        raise ShapeError(f"keys and values must differ in width alone, got {keys} and {values}")
    scores = scores_shape(query, keys)
    limits = (mask, bias, query_lengths, key_lengths, dropout_seed)
    require_fit(scores, *limits, window, dropout)
    return (*query[:-1], values[-1]), query[:-1]


def attention_dtype(
    query: VarType,
    keys: VarType,
    values: VarType,
    mask: VarType | None,
    bias: VarType | None,
    query_lengths: VarType | None,
    key_lengths: VarType | None,
    dropout_seed: VarType | None,
) -> list[DType]:
    """The dtypes of the values and of the logsumexp."""
    dtype = product_dtype(query, keys, values)
    require_types(mask, bias, query_lengths, key_lengths, dropout_seed)
    return [dtype, statistics_dtype(dtype)]


Dropout = Annotated[float, Check("lie in [0, 1)", lambda rate: 0 <= rate < 1)]


Limits = tuple[Var | None, Var | None, Var | None, Var | None, Var | None]
"""The mask, the bias, the lengths of queries and keys, and the dropout_seed."""


def of_one_dtype(*arrays: Array) -> list[Array]:
    """``arrays``, promoted to one dtype."""
    dtype = jnp.result_type(*arrays)
    return [one.astype(dtype) for one in arrays]


# References ------------------------------------------------------------------------------------


def scores_reference(
    query: np.ndarray,
    keys: np.ndarray,
    mask: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    query_lengths: np.ndarray | None = None,
    key_lengths: np.ndarray | None = None,
    *,
    form: Form,
) -> np.ndarray:
    """The scores in NumPy, minus infinity where a query does not see a key."""
    factor = 1 / np.sqrt(max(query.shape[-1], 1)) if form.scale is None else form.scale
    scores = factor * np.einsum("...td,...sd->...ts", query, keys)
    if mask is not None and mask.dtype != np.bool_:
        mask, bias = None, mask
    scores = scores if bias is None else scores + bias
    rows, cols = np.indices(scores.shape[-2:])
    back, ahead = form.reach
    seen = np.ones(scores.shape, np.bool_) if mask is None else np.broadcast_to(mask, scores.shape)
    seen = seen & (cols - rows <= ahead) if ahead is not None else seen
    seen = seen & (rows - cols <= back) if back is not None else seen
    for places, lengths in ((rows, query_lengths), (cols, key_lengths)):
        seen = seen if lengths is None else seen & (places < lengths[..., None, None, None])
    return np.where(seen, scores, -np.inf)


def repeated_heads(x: np.ndarray, query: np.ndarray) -> np.ndarray:
    """The keys or values of each head of ``query``."""
    return np.repeat(x, query.shape[-3] // x.shape[-3], -3) if query.ndim > 2 else x


def attention_reference(
    query: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    mask: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    query_lengths: np.ndarray | None = None,
    key_lengths: np.ndarray | None = None,
    dropout_seed: np.ndarray | None = None,
    *,
    scale: float | None,
    causal: bool,
    window: Window,
    dropout: float,
) -> np.ndarray:
    """Attention in NumPy."""
    form = Form(scale, causal, window, dropout)
    keys, values = repeated_heads(keys, query), repeated_heads(values, query)
    scores = scores_reference(query, keys, mask, bias, query_lengths, key_lengths, form=form)
    largest = np.max(scores, -1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isinf(largest), 0, largest))
    total = np.sum(powers, -1, keepdims=True)
    weights = powers / np.where(total == 0, 1, total)
    if dropout:
        weights = weights * factors_reference(dropout_seed, shape=weights.shape, dropout=dropout)
    return np.asarray(weights @ values)


def factors_reference(dropout_seed: Any, *, shape: Shape, dropout: float) -> np.ndarray:
    """The factors of dropout, by Python's integers."""

    def scrambled(x: int) -> int:
        x ^= x >> 16
        x = x * 0x85EBCA6B & 0xFFFFFFFF
        x ^= x >> 13
        x = x * 0xC2B2AE35 & 0xFFFFFFFF
        return x ^ x >> 16

    first, second = (int(one) & 0xFFFFFFFF for one in dropout_seed)
    factors, bound = np.zeros((math.prod(shape[:-2]), *shape[-2:])), np.float32(dropout) * 2**32
    for head, row, col in np.ndindex(factors.shape):
        of_row = scrambled(scrambled(head ^ first) ^ row)
        bits = scrambled(of_row ^ scrambled(col ^ second))
        factors[head, row, col] = (bits >= bound) / (1 - dropout)
    return factors.reshape(shape)


FEW: dict[str, Any] = {"query": (2, 3, 4), "keys": (2, 5, 4), "values": (2, 5, 3)}
BATCH: dict[str, Any] = {
    "query": (2, 2, 3, 2),
    "keys": (2, 1, 4, 2),
    "values": (2, 1, 4, 2),
    "query_lengths": np.array([3, 1], np.int32),
    "key_lengths": np.array([2, 4], np.int32),
}
SEED = np.array([7, 11], np.uint32)
