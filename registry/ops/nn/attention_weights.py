"""Weights of attention and factors of their dropout, as whole matrices for second derivatives."""

from typing import Any, NamedTuple, Self

import numpy as np

from registry.cases import booleans, case, integers, misuse, workload
from registry.errors import DTypeError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.reductions import statistics_dtype
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape, swapped
from registry.ops.nn.attention_blocks import (
    Block,
    Form,
    Window,
    call_of,
    factors,
    heads_of,
    of_rows,
    weights_of,
)
from registry.ops.nn.attention_types import (
    SEED,
    Dropout,
    factors_reference,
    of_one_dtype,
    product_dtype,
    repeated_heads,
    require_fit,
    require_floating,
    require_types,
    scores_reference,
    scores_shape,
)
from registry.shapes import canonical
from registry.table import op
from registry.types import DType, Shape, VarType, is_integer
from registry.var import Var


class Flat(NamedTuple):
    """Products of rows of queries and keys, where heads that share keys are one axis of rows."""

    scores: Shape
    rows: Shape

    @classmethod
    def of(cls, query: Var, keys: Var) -> Self:
        """Those of a call."""
        _, _, group = heads_of(query.shape, keys.shape)
        rows = (*keys.shape[:-2], group * query.shape[-2])
        return cls((*query.shape[:-1], keys.shape[-2]), rows)

    def _merged(self, x: Var) -> Any:
        return reshape(x, shape=(*self.rows, x.shape[-1]))

    def paired(self, x: Var, y: Var) -> Any:
        """The product of each row of ``x`` with each key's ``y``."""
        return reshape(self._merged(x) @ swapped(y), shape=self.scores)

    def mixed(self, p: Var, y: Var) -> Any:
        """For each row of ``p``, the sum of ``y`` with these weights."""
        return reshape(self._merged(p) @ y, shape=(*self.scores[:-1], y.shape[-1]))

    def gathered(self, p: Var, x: Var) -> Any:
        """For each column of ``p``, the sum of ``x`` with these weights."""
        return swapped(self._merged(p)) @ self._merged(x)


def _weights_shape(
    query: Shape,
    keys: Shape,
    logsumexp: Shape,
    mask: Shape | None,
    bias: Shape | None,
    query_lengths: Shape | None,
    key_lengths: Shape | None,
    *,
    window: Window,
) -> Shape:
    scores = scores_shape(query, keys)
    require_fit(scores, mask, bias, query_lengths, key_lengths, None, window, 0.0)
    if logsumexp != scores[:-1]:
        raise ShapeError(f"logsumexp must have shape {scores[:-1]}, got {logsumexp}")
    return scores


def _weights_dtype(
    query: VarType,
    keys: VarType,
    logsumexp: VarType,
    mask: VarType | None,
    bias: VarType | None,
    query_lengths: VarType | None,
    key_lengths: VarType | None,
) -> DType:
    dtype = product_dtype(query, keys)
    require_floating(logsumexp=logsumexp)
    require_types(mask, bias, query_lengths, key_lengths, None)
    return statistics_dtype(dtype)


def _exponentials_reference(
    query: np.ndarray,
    keys: np.ndarray,
    logsumexp: np.ndarray,
    *limits: np.ndarray | None,
    scale: float | None,
    causal: bool,
    window: Window,
) -> np.ndarray:
    form = Form(scale, causal, window)
    scores = scores_reference(query, repeated_heads(keys, query), *limits, form=form)
    return np.asarray(np.exp(scores - logsumexp[..., None]))


@op(
    shape=_weights_shape,
    dtype=_weights_dtype,
    reference=_exponentials_reference,
    cases=[
        case(query=(2, 3, 4), keys=(2, 5, 4), logsumexp=(2, 3), order=2),
        case(query=(2, 3, 4), keys=(2, 5, 4), logsumexp=(2, 3), mask=booleans(3, 5), order=1),
        case(
            query=(2, 2, 3, 2),
            keys=(2, 1, 4, 2),
            logsumexp=(2, 2, 3),
            bias=(3, 1),
            key_lengths=np.array([2, 4], np.int32),
            causal=True,
            window=1,
            scale=0.7,
            order=1,
        ),
        workload(query=(4, 8, 512, 64), keys=(4, 8, 512, 64), logsumexp=(4, 8, 512)),
        misuse(
            "logsumexp must have shape (2, 3), got (3,)",
            query=(2, 3, 4),
            keys=(2, 5, 4),
            logsumexp=(3,),
        ),
        misuse(
            "query and keys must have the same axes, two at least",
            query=(2, 3, 4),
            keys=(5, 4),
            logsumexp=(2, 3),
        ),
    ],
    costly=True,
)
def attention_weights(
    query: Array,
    keys: Array,
    logsumexp: Array,
    mask: Array | None = None,
    bias: Array | None = None,
    query_lengths: Array | None = None,
    key_lengths: Array | None = None,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: int | tuple[int, ...] | None = None,
) -> Array:
    """Weights of attention, ``exp(scores - logsumexp)``: one for each query and key.

    They are zero where a query does not see a key, and computed in at least float32. The inputs and
    attributes are those of ``scaled_dot_product_attention``.

    Example:
        >>> import jax.numpy as jnp
        >>> attention_weights(jnp.ones((1, 1)), jnp.ones((2, 1)), jnp.ones(1))
        Array([[1., 1.]], dtype=float32)
    """
    query, keys = of_one_dtype(query, keys)
    limits = (mask, bias, query_lengths, key_lengths)
    call = call_of(query, keys, None, *limits, None, Form(scale, causal, window))
    shape = call.scores_shape
    block = Block(0, shape[-2], 0, shape[-1])
    weights = weights_of(call, block, of_rows(logsumexp[..., None], call))
    return weights.reshape(*query.shape[:-1], keys.shape[-2])


@attention_weights.gradient
def _weights_maker(
    query: Var,
    keys: Var,
    mask: Var | None,
    bias: Var | None,
    logsumexp: Var,
    out: Var,
    d_out: Var,
    *,
    scale: float | None,
) -> Grads:
    flat, factor = Flat.of(query, keys), Form(scale).factor(keys.shape[-1])
    slopes = out * d_out
    return {
        "query": unbroadcast(flat.mixed(slopes, keys) * factor, query),
        "keys": unbroadcast(flat.gathered(slopes, query) * factor, keys),
        "logsumexp": unbroadcast(-sum_over(slopes, axis=-1), logsumexp),
        "mask": None if mask is None else unbroadcast(slopes, mask),
        "bias": None if bias is None else unbroadcast(slopes, bias),
        "query_lengths": None,
        "key_lengths": None,
    }


_SINGLE = np.dtype(np.float32)


def _factors_shape(dropout_seed: Shape, *, shape: Shape) -> Shape:
    if dropout_seed != (2,) or len(shape) < 2:
        raise ShapeError(
            "dropout_seed must have shape (2,), and shape two axes at least, got "
            f"{dropout_seed} and {shape}"
        )
    return shape


def _factors_dtype(dropout_seed: VarType, *, dtype: DType) -> DType:
    if not is_integer(dropout_seed.dtype):
        raise DTypeError(f"dropout_seed must hold integers, got {dropout_seed.dtype.name}")
    return canonical(dtype)


@op(
    shape=_factors_shape,
    dtype=_factors_dtype,
    reference=lambda dropout_seed, *, shape, dropout, dtype: factors_reference(
        dropout_seed, shape=shape, dropout=dropout
    ).astype(dtype),
    cases=[
        case(dropout_seed=SEED, shape=(2, 3, 4), dropout=0.25, dtype="float32"),
        case(dropout_seed=np.array([-1, 5], np.int32), shape=(3, 4), dropout=0.5, dtype="float16"),
        misuse(
            "dropout_seed must hold integers, got float32",
            dropout_seed=(2,),
            shape=(3, 4),
            dropout=0.5,
        ),
        misuse(
            "dropout_seed must have shape (2,)",
            dropout_seed=integers(3, high=4),
            shape=(3, 4),
            dropout=0.5,
        ),
    ],
)
def attention_factors(
    dropout_seed: Array,
    *,
    shape: tuple[int, ...],
    dropout: Dropout,
    dtype: np.dtype = _SINGLE,
) -> Array:
    """Factors of the weights of attention under dropout: zero, or ``1 / (1 - dropout)``.

    ``shape`` is that of the weights. ``scaled_dot_product_attention`` uses the same factors for the
    same ``dropout_seed``.

    Example:
        >>> import jax.numpy as jnp
        >>> attention_factors(jnp.asarray([1, 2]), shape=(2, 3), dropout=0.5).shape
        (2, 3)
    """
    return factors(
        dropout_seed, shape[:-2], Block(0, shape[-2], 0, shape[-1]), dropout, canonical(dtype)
    )


attention_factors.zero_gradient("seeds are integers")
