"""Scaled dot-product attention, without storing the matrix of weights."""

from collections.abc import Callable
from typing import Any

import numpy as np

from registry.cases import booleans, case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.comparison import greater_equal, less_equal, logical_and
from registry.ops.core.reshaping import reshape
from registry.ops.nn.attention_blocks import (
    Form,
    Window,
    attend,
    call_of,
)
from registry.ops.nn.attention_cudnn import values_by_cudnn
from registry.ops.nn.attention_derivatives import attention_gradient
from registry.ops.nn.attention_types import (
    BATCH,
    FEW,
    SEED,
    Dropout,
    attention_dtype,
    attention_reference,
    attention_shape,
    of_one_dtype,
)
from registry.ops.nn.heads import position_ids
from registry.table import op
from registry.var import Var


@op(
    shape=attention_shape,
    dtype=attention_dtype,
    reference=attention_reference,
    outputs=("out", "logsumexp"),
    hidden=("logsumexp",),
    cases=[
        case(**FEW, order=2),
        case(**FEW, mask=booleans(2, 3, 5), causal=True, order=1, seed=3),
        case(**FEW, mask=(3, 5), scale=0.7, order=2),
        case(**FEW, mask=booleans(3, 5), bias=(2, 1, 5), order=1, seed=1),
        case(query=(1, 4, 3, 2), keys=(1, 2, 4, 2), values=(1, 2, 4, 2), causal=True, order=1),
        case(**BATCH, window=(1, 2), dropout_seed=SEED, dropout=0.25, order=1),
        case(query=(2, 3), keys=(4, 3), values=(4, 0), order=1),
        case(query=(2, 0), keys=(0, 0), values=(0, 2), order=1),
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
        misuse("mask must broadcast to the scores, (2, 3, 5), got (5, 3)", **FEW, mask=(5, 3)),
        misuse("bias must broadcast to the scores, (2, 3, 5), got (4,)", **FEW, bias=(4,)),
        misuse("mask must be boolean or floating, got int32", **FEW, mask=integers(3, 5, high=2)),
        misuse("bias must be floating, got bool", **FEW, bias=booleans(3, 5)),
        misuse("mask must be boolean beside a bias, got float32", **FEW, mask=(5,), bias=(5,)),
        misuse(
            "key_lengths must have the batch axes (), got (2,)",
            **FEW,
            key_lengths=integers(2, high=3),
        ),
        misuse("query_lengths must hold integers, got float32", **FEW, query_lengths=()),
        misuse("a dropout_seed must be given for dropout=0.5, got none", **FEW, dropout=0.5),
        misuse("attribute 'dropout' must lie in [0, 1), got 1.0", **FEW, dropout=1.0),
        misuse("window must be one or two numbers of positions", **FEW, window=(1, 2, 3)),
        misuse(
            "must be floating",
            query=integers(2, 3, high=4),
            keys=integers(2, 3, high=4),
            values=integers(2, 3, high=4),
        ),
    ],
    costly=True,
    sealed=True,  # JAX would keep the weights of all blocks
)
def scaled_dot_product_attention(
    query: Array,
    keys: Array,
    values: Array,
    mask: Array | None = None,
    bias: Array | None = None,
    query_lengths: Array | None = None,
    key_lengths: Array | None = None,
    dropout_seed: Array | None = None,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: int | tuple[int, ...] | None = None,
    dropout: Dropout = 0.0,
) -> tuple[Array, Array]:
    """Scaled dot-product attention per head: ``softmax(scale * query @ keys^T + bias) @ values``.

    ``query`` has shape ``(..., heads, queries, width)``; ``keys`` and ``values`` have shape
    ``(..., heads, keys, width)``. The axes before the last two may be omitted. ``keys`` and
    ``values`` may have fewer heads: then neighboring heads of the query share one. ``scale``
    defaults to ``1 / sqrt(width)``.

    ``mask`` and ``bias`` broadcast to ``(..., heads, queries, keys)``. A boolean mask is true where
    a query sees a key; a floating mask is a bias. ``causal`` hides from the i-th query all keys
    after the i-th. ``window`` hides those before ``i - window[0]`` or after ``i + window[1]``; one
    number stands for both. ``query_lengths`` and ``key_lengths`` have the axes before that of
    heads: queries and keys from there on are padding. A query that sees no key, or is padding,
    gives zeros, and its gradient is zero. The softmax is computed in at least float32.

    ``dropout`` drops each weight with that probability, and divides the others by
    ``1 - dropout``. Which ones follows from ``dropout_seed``, two integers, and from the position.

    The weights are not stored: the gradient recomputes them from the ``logsumexp`` of each query.
    A call with many scores is computed block by block, so its memory grows with the length and not
    with its square; blocks that ``causal`` or ``window`` hide are skipped. ``registry.tuning`` has
    the size from which on. Second derivatives compute whole matrices of weights.

    Source: Vaswani et al., Attention is all you need, 2017; heads that share keys: Ainslie et al.,
    GQA, 2023; blocks: Dao et al., FlashAttention, 2022.

    Example:
        >>> import jax.numpy as jnp
        >>> query, keys = jnp.asarray([[0.0], [9.0]]), jnp.asarray([[1.0], [-1.0]])
        >>> scaled_dot_product_attention(query, keys, jnp.asarray([[2.0], [4.0]]))
        Array([[3.],
               [2.]], dtype=float32)
    """
    query, keys, values = of_one_dtype(query, keys, values)
    limits = (mask, bias, query_lengths, key_lengths, dropout_seed)
    call = call_of(query, keys, values, *limits, Form(scale, causal, window, dropout))
    out, logsumexp = attend(call)
    shape = query.shape[:-1]
    return out.reshape(*shape, values.shape[-1]), logsumexp.reshape(shape)


@scaled_dot_product_attention.gradient
def _attention_maker(
    query: Var,
    keys: Var,
    values: Var,
    mask: Var | None,
    bias: Var | None,
    query_lengths: Var | None,
    key_lengths: Var | None,
    dropout_seed: Var | None,
    out: Var,
    logsumexp: Var,
    d_out: Var,
    d_logsumexp: Var | None,
    wanted: tuple[bool, ...],
    **how: Any,
) -> Grads:
    added = mask is not None and mask.dtype != np.bool_
    limits = (None, mask) if added else (mask, bias)
    of_bias = wanted[3 if added else 4] and limits[1] is not None
    d_query, d_keys, d_values, *d_bias = attention_gradient(
        *(query, keys, values, out, logsumexp, d_out, d_logsumexp),
        *(*limits, query_lengths, key_lengths, dropout_seed),
        of_bias=of_bias,
        **how,
    )
    return {
        "query": unbroadcast(d_query, query),
        "keys": unbroadcast(d_keys, keys),
        "values": unbroadcast(d_values, values),
        "mask": d_bias[0] if of_bias and added else None,
        "bias": d_bias[0] if of_bias and not added else None,
        "query_lengths": None,
        "key_lengths": None,
        "dropout_seed": None,
    }


# On a GPU --------------------------------------------------------------------------------------


@scaled_dot_product_attention.on("gpu")
def attention_on_gpu(
    query: Array,
    keys: Array,
    values: Array,
    mask: Array | None = None,
    bias: Array | None = None,
    query_lengths: Array | None = None,
    key_lengths: Array | None = None,
    dropout_seed: Array | None = None,
    *,
    scale: float | None,
    causal: bool,
    window: Window,
    dropout: float,
) -> tuple[Array, Array]:
    """Attention by cuDNN where it takes the call; otherwise by the kernel of all platforms.

    The logsumexp is that of all platforms, since cuDNN's is rounded to the dtype of the values. XLA
    drops its computation where no gradient needs it.
    """
    form = Form(scale, causal, window, dropout)
    limits = (mask, bias, query_lengths, key_lengths, dropout_seed)
    query, keys, values = of_one_dtype(query, keys, values)
    call = call_of(query, keys, values, *limits, form)
    out, logsumexp = attend(call)
    shape = query.shape[:-1]
    fast = values_by_cudnn(call)
    out = out if fast is None else fast
    return out.reshape(*shape, values.shape[-1]), logsumexp.reshape(shape)


# By steps --------------------------------------------------------------------------------------


@scaled_dot_product_attention.stepwise
def _attention_by_steps(
    query: Var,
    keys: Var,
    values: Var,
    mask: Var | None,
    bias: Var | None,
    query_lengths: Var | None,
    key_lengths: Var | None,
    dropout_seed: Var | None,
    before: Var,
    cache: Callable[[str, Var], Var],
    *,
    scale: float | None,
    causal: bool,
    window: Window,
    dropout: float,
) -> Any:
    if not causal:
        return None
    limits = (mask, bias, query_lengths, key_lengths, dropout_seed if dropout else None)
    if any(one is not None for one in limits):
        raise ShapeError(
            "a causal call with a mask, a bias, lengths or dropout cannot run by steps; they cover "
            "all keys"
        )
    keys, values = cache("keys", keys), cache("values", values)
    ones = (1,) * (len(query.shape) - 2)
    place = position_ids(query, before, axis=-2)
    place = reshape(place, shape=(place.shape[0], *ones[1:], place.shape[1], 1))
    key_place = position_ids(keys, axis=-2)
    sees = less_equal(key_place, place)
    back, _ = Form(causal=causal, window=window).reach
    if back is not None:
        sees = logical_and(sees, greater_equal(key_place, place - back))
    return scaled_dot_product_attention(query, keys, values, sees, scale=scale)
