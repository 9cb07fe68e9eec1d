"""Several layers in one operator, as Paddle's exporters write them for inference."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.convolutions import convolved, per_channel
from symop.interop.paddle.ops.elementwise import aligned
from symop.interop.paddle.ops.matrices import mul
from symop.interop.paddle.ops.normalizations import layer_norm
from symop.interop.paddle.ops.recurrent import gru, lstm
from symop.interop.paddle.ops.sequences import sequence_pool
from symop.interop.paddle.values import data_of, with_data

_ENGINE = (
    "Scale_in Scale_weights Scale_data Shift_data padding_weights use_seq "
    "ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE"
)


def _activated(name: str, x: Any, alpha: float = 0.0) -> Any:
    functions: dict[str, Callable[[Any], Any]] = {
        "": so.identity,
        "identity": so.identity,
        "relu": so.relu,
        "relu6": lambda value: so.clip(value, low=0.0, high=6.0),
        "sigmoid": so.sigmoid,
        "tanh": so.tanh,
        "gelu": so.gelu,
        "swish": so.silu,
        "leaky_relu": lambda value: so.leaky_relu(value, slope=alpha),
    }
    if name not in functions:
        raise PaddleError(f"activation: it must be one of {', '.join(functions)}, got {name!r}")
    return functions[name](x)


@operator(ignored=_ENGINE)
def fc(
    Input: Any,
    W: Any,
    Bias: Any = None,
    *,
    in_num_col_dims: int = 1,
    activation_type: str = "",
    padding_weights: bool = False,
) -> Any:
    """Returns a product with a bias; weights may be padded by four rows and columns."""
    if padding_weights:
        weight = so.slice(W, begin=(0, 0), end=(W.shape[0] - 4, W.shape[1] - 4))
    else:
        weight = W
    out = mul(Input, weight, x_num_col_dims=in_num_col_dims)
    out = out if Bias is None else out + so.reshape(Bias, shape=(-1,))
    return _activated(activation_type, out)


_UNARY = ("relu", "scale", "tanh", "sigmoid", "gelu")


def _applied(name: str, x: Any, y: Any, axis: int, scale: float) -> Any:
    """Returns a function of one tensor, or of two."""
    if name == "scale":
        return x * scale
    if name in _UNARY:
        return _activated(name, x)
    if name == "elementwise_add":
        return so.add(x, aligned(x, y, axis))
    if name == "elementwise_mul":
        return so.multiply(x, aligned(x, y, axis))
    raise PaddleError(
        f"functor_list: functions must be elementwise_add, elementwise_mul, "
        f"{', '.join(_UNARY)}, got {name!r}"
    )


@operator(
    "fused_elemwise_activation",
    "fused_elemwise_add_activation",
    outputs="Out IntermediateOut",
    ignored="save_intermediate_out",
)
def fused_elemwise_activation(
    X: Any, Y: Any, *, axis: int = -1, scale: float = 0.0, functor_list: Sequence[str]
) -> Any:
    """Returns ``outer(inner)``; a binary function comes first if it takes ``X`` itself."""
    # The gradient operator names the gradients of the functions.
    outer, inner = (one.removesuffix("_grad") for one in functor_list)
    if outer in _UNARY:
        between = _applied(inner, X, Y, axis, scale)
        return _applied(outer, between, None, axis, scale), between
    between = _applied(inner, Y, None, axis, scale)
    return _applied(outer, X, between, axis, scale), between


@operator(ignored="transpose_Q transpose_K transpose_V")
def multihead_matmul(
    Input: Any,
    W: Any,
    Bias: Any,
    BiasQK: Any = None,
    *,
    alpha: float = 1.0,
    head_number: int = 1,
) -> Any:
    """Returns self-attention; ``W`` holds the weights of queries, keys and values."""
    batch, steps, width = Input.shape
    heads = head_number
    size = W.size // width // 3 // heads
    joined = so.matmul(Input, so.reshape(W, shape=(width, 3 * heads * size)))
    joined = joined + so.reshape(Bias, shape=(3 * heads * size,))
    parts = so.transpose(
        so.reshape(joined, shape=(batch, steps, 3, heads, size)), axes=(2, 0, 3, 1, 4)
    )
    query, key, value = parts[0], parts[1], parts[2]
    weights = so.matmul(query, so.swapaxes(key, -1, -2)) * alpha
    weights = so.softmax(weights if BiasQK is None else weights + BiasQK, axis=-1)
    found = so.transpose(so.matmul(weights, value), axes=(0, 2, 1, 3))
    return so.reshape(found, shape=(batch, steps, heads * size))


@operator()
def skip_layernorm(
    X: Any, Y: Any, Scale: Any, Bias: Any, *, epsilon: float = 1e-5, begin_norm_axis: int = 2
) -> Any:
    axis = begin_norm_axis
    return layer_norm(X + Y, Scale, Bias, epsilon=epsilon, begin_norm_axis=axis)[0]


@operator(no_gradient="Ids")
def fused_embedding_eltwise_layernorm(
    Ids: Values, Embs: Values, Bias: Any, Scale: Any, *, epsilon: float = 1e-5
) -> Any:
    rows = []
    for ids, table in zip(Ids, Embs, strict=True):
        flat = so.squeeze(ids, axis=-1) if ids.ndim == 3 and ids.shape[-1] == 1 else ids
        rows.append(so.lookup_table(table, flat))
    return layer_norm(so.add_n(*rows), Scale, Bias, epsilon=epsilon, begin_norm_axis=2)[0]


@operator(outputs="Out Mean Variance")
def fused_fc_elementwise_layernorm(
    X: Any,
    W: Any,
    Y: Any,
    Bias0: Any = None,
    Scale: Any = None,
    Bias1: Any = None,
    *,
    x_num_col_dims: int = 1,
    activation_type: str = "",
    epsilon: float = 1e-5,
    begin_norm_axis: int = 1,
) -> Any:
    product = fc(X, W, Bias0, in_num_col_dims=x_num_col_dims, activation_type=activation_type)
    axis = begin_norm_axis
    return layer_norm(product + Y, Scale, Bias1, epsilon=epsilon, begin_norm_axis=axis)


@operator(
    "conv2d_fusion",
    "fused_conv2d_add_act",
    outputs="Output Outputs",
    several="Outputs",
    ignored="exhaustive_search workspace_size_MB is_test",
)
def conv2d_fusion(
    Input: Any,
    Filter: Any,
    Bias: Any = None,
    ResidualData: Any = None,
    *,
    strides: Sequence[int] = (1, 1),
    paddings: Sequence[int] = (0, 0),
    padding_algorithm: str = "EXPLICIT",
    dilations: Sequence[int] = (1, 1),
    groups: int = 1,
    data_format: str = "NCHW",
    activation: str = "relu",
    split_channels: Sequence[int] = (),
    fuse_alpha: float = 0.0,
) -> Any:
    out = convolved(
        Input, Filter, strides, paddings, padding_algorithm, groups, dilations, data_format
    )
    out = out if Bias is None else out + per_channel(Bias, data_format, Input.ndim)
    out = out if ResidualData is None else out + ResidualData
    out = _activated(activation, out, fuse_alpha)
    parts, begin = [], 0
    for count in split_channels:
        parts.append(so.slice_axis(out, axis=1, begin=begin, end=begin + count))
        begin += count
    return out, parts


@operator(
    outputs="Hidden XX ReorderedH0 BatchedInput BatchedOut",
    ragged=True,
    ignored=_ENGINE,
)
def fusion_gru(
    X: Any,
    WeightX: Any,
    WeightH: Any,
    H0: Any = None,
    Bias: Any = None,
    *,
    activation: str = "tanh",
    gate_activation: str = "sigmoid",
    is_reverse: bool = False,
    origin_mode: bool = False,
    call: Any,
) -> Any:
    sums = with_data(X, so.matmul(data_of(X), data_of(WeightX)))
    hidden = gru(
        sums,
        WeightH,
        H0,
        Bias,
        is_reverse=is_reverse,
        activation=activation,
        gate_activation=gate_activation,
        origin_mode=origin_mode,
        call=call,
    )[0]
    return hidden, sums


@operator(
    outputs="Hidden Cell XX BatchedInput BatchedHidden BatchedCell ReorderedH0 ReorderedC0 "
    "CheckedCell",
    ragged=True,
    ignored=_ENGINE,
)
def fusion_lstm(
    X: Any,
    WeightX: Any,
    WeightH: Any,
    Bias: Any,
    H0: Any = None,
    C0: Any = None,
    *,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    call: Any,
) -> Any:
    sums = with_data(X, so.matmul(data_of(X), data_of(WeightX)))
    hidden, cell, *_ = lstm(
        sums,
        WeightH,
        Bias,
        H0,
        C0,
        use_peepholes=use_peepholes,
        is_reverse=is_reverse,
        gate_activation=gate_activation,
        cell_activation=cell_activation,
        candidate_activation=candidate_activation,
        call=call,
    )
    return hidden, cell, sums


@operator(outputs="ReluOut Out", several="ReluOut")
def fusion_repeated_fc_relu(X: Any, W: Values, Bias: Values) -> Any:
    layers, out = [], X
    for weight, bias in zip(W, Bias, strict=True):
        out = fc(out, weight, bias, activation_type="relu")
        layers.append(out)
    return layers[:-1], out


@operator(ragged=True)
def fusion_seqpool_concat(X: Values, *, pooltype: str = "SUM", axis: int = 1) -> Any:
    pooled = [data_of(sequence_pool(one, pooltype=pooltype)[0]) for one in X]
    out = so.concat(*pooled, axis=axis)
    return so.LoDTensor(out, [jnp.arange(out.shape[0] + 1, dtype=jnp.int32)])


@operator(outputs="Out SquaredX SquaredY SquaredXY")
def fusion_squared_mat_sub(X: Any, Y: Any, *, scalar: float = 1.0) -> Any:
    left, right = so.square(X), so.square(Y)
    both = so.square(so.matmul(X, Y))
    return (both - so.matmul(left, right)) * scalar, left, right, both


@operator(ragged=True, no_gradient="Ids", ignored="grad_inplace")
def fused_embedding_seq_pool(
    W: Any,
    Ids: Any,
    *,
    combiner: str = "sum",
    padding_idx: int = -1,
    is_sparse: bool = False,
) -> Any:
    """Returns for each sequence the sum of the rows of its ids, one after the other."""
    table, ids = data_of(W), data_of(Ids)
    padding = None if padding_idx == -1 else padding_idx % table.shape[0]
    rows = so.lookup_table(table, ids, padding_idx=padding, sparse=is_sparse)
    flat = with_data(Ids, so.reshape(rows, shape=(ids.shape[0], -1)))
    return sequence_pool(flat, pooltype="SUM")[0]
