"""Derivatives of attention: its gradient and its tangent, block by block.

With ``P = exp(S - logsumexp)`` for the scores ``S``, ``Z`` for the factors of dropout and
``T = scale (a K^T + Q b^T) + e``, all derivatives follow from one function that is linear in the
tangents ``a, b, c, e`` and in the cotangents ``u`` of ``output`` and ``w`` of ``logsumexp``:

    sum(u * ((Z P T) V + (Z P) c - output sum(P T))) + sum(w * sum(P T))

``attention_gradient`` is its derivative with respect to ``a, b, c, e``, ``attention_tangent`` that
with respect to ``u`` and ``w``. So each transposes the other. The derivatives with respect to the
other inputs, which second derivatives need, are compositions over ``attention_weights``.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import booleans, case, misuse
from registry.errors import ArgumentError, DTypeError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import broadcast_to, cast, unbroadcast
from registry.ops.core.reductions import statistics_dtype
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape
from registry.ops.nn.attention_blocks import (
    Call,
    Form,
    Tangents,
    Window,
    call_of,
    grouped,
    heads_of,
    of_rows,
    pulled,
    pushed,
    shared,
)
from registry.ops.nn.attention_cudnn import gradient_by_cudnn
from registry.ops.nn.attention_types import (
    BATCH,
    FEW,
    SEED,
    Dropout,
    Limits,
    attention_shape,
    factors_reference,
    of_one_dtype,
    product_dtype,
    repeated_heads,
    require_floating,
    require_types,
    scores_reference,
)
from registry.ops.nn.attention_weights import Flat, attention_factors, attention_weights
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

# The gradient and the tangent ------------------------------------------------------------------


def _gradient_shape(
    query: Shape,
    keys: Shape,
    values: Shape,
    output: Shape,
    logsumexp: Shape,
    cotangent: Shape,
    logsumexp_cotangent: Shape | None,
    mask: Shape | None,
    bias: Shape | None,
    query_lengths: Shape | None,
    key_lengths: Shape | None,
    dropout_seed: Shape | None,
    *,
    window: Window,
    dropout: float,
    of_bias: bool,
) -> list[Shape]:
    limits = (mask, bias, query_lengths, key_lengths, dropout_seed)
    results = attention_shape(query, keys, values, *limits, window=window, dropout=dropout)
    _require_shapes(results, output=output, logsumexp=logsumexp)
    _require_shapes(results, cotangent=cotangent, logsumexp_cotangent=logsumexp_cotangent)
    if not of_bias:
        return [query, keys, values]
    if bias is None:
        raise ArgumentError("of_bias must be false without a bias, got True")
    return [query, keys, values, bias]


def _require_shapes(results: tuple[Shape, Shape], **given: Shape | None) -> None:
    """Raises unless what is given for ``output`` and ``logsumexp`` has their shapes."""
    for (name, one), expected in zip(given.items(), results, strict=True):
        if one not in (None, expected):
            raise ShapeError(f"{name} must have shape {expected}, got {one}")


def _gradient_dtype(
    query: VarType,
    keys: VarType,
    values: VarType,
    output: VarType,
    logsumexp: VarType,
    cotangent: VarType,
    logsumexp_cotangent: VarType | None,
    mask: VarType | None,
    bias: VarType | None,
    query_lengths: VarType | None,
    key_lengths: VarType | None,
    dropout_seed: VarType | None,
    *,
    of_bias: bool,
) -> list[DType]:
    dtype = product_dtype(query, keys, values)
    require_floating(output=output, logsumexp=logsumexp)
    require_floating(cotangent=cotangent, logsumexp_cotangent=logsumexp_cotangent)
    _require_boolean(mask)
    require_types(mask, bias, query_lengths, key_lengths, dropout_seed)
    return [dtype, dtype, dtype, *([bias.dtype] if of_bias and bias is not None else [])]


def _require_boolean(mask: VarType | None) -> None:
    """Raises if the mask is a bias, with respect to which there would be no derivative."""
    if mask is not None and mask.dtype != np.bool_:
        raise DTypeError(f"mask must be boolean, a floating one is a bias, got {mask.dtype.name}")


def _gradient_reference(
    query: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    output: np.ndarray,
    logsumexp: np.ndarray,
    cotangent: np.ndarray,
    logsumexp_cotangent: np.ndarray | None,
    *limits: np.ndarray | None,
    **how: Any,
) -> list[np.ndarray]:
    of_bias, (dropout, dropout_seed) = how["of_bias"], (how["dropout"], limits[-1])
    form = Form(how["scale"], how["causal"], how["window"], dropout)
    repeated = [repeated_heads(one, query) for one in (keys, values)]
    scores = scores_reference(query, repeated[0], *limits[:-1], form=form)
    weights = np.exp(scores - logsumexp[..., None])
    factors = (
        factors_reference(dropout_seed, shape=weights.shape, dropout=dropout) if dropout else 1.0
    )
    pull = np.einsum("...te,...se->...ts", cotangent, repeated[1])
    delta = (output * cotangent).sum(-1)
    if logsumexp_cotangent is not None:
        delta = delta - logsumexp_cotangent
    slopes = weights * (factors * pull - delta[..., None])
    factor = form.factor(query.shape[-1])
    parts = [
        factor * slopes @ repeated[0],
        _summed_over_groups(factor * np.swapaxes(slopes, -1, -2) @ query, keys),
        _summed_over_groups(np.swapaxes(factors * weights, -1, -2) @ cotangent, values),
    ]
    bias = limits[1]
    if of_bias and bias is not None:
        slopes = slopes.sum(tuple(range(slopes.ndim - bias.ndim)))
        axes = tuple(i for i, n in enumerate(bias.shape) if n == 1)
        parts.append(slopes.sum(axes, keepdims=True))
    return parts


def _summed_over_groups(x: np.ndarray, keys: np.ndarray) -> np.ndarray:
    if keys.ndim < 3:
        return x
    return np.asarray(x.reshape(*keys.shape[:-2], -1, *x.shape[-2:]).sum(-3))


_GRADIENT: dict[str, Any] = {
    **FEW,
    "output": (2, 3, 3),
    "logsumexp": (2, 3),
    "cotangent": (2, 3, 3),
}
_SHARED: dict[str, Any] = {**BATCH, "output": (2, 2, 3, 2), "logsumexp": (2, 2, 3)}


@op(
    shape=_gradient_shape,
    dtype=_gradient_dtype,
    outputs=("*parts",),
    count=lambda *, of_bias: 3 + of_bias,
    reference=_gradient_reference,
    cases=[
        case(**_GRADIENT, order=1),
        case(
            **_GRADIENT,
            logsumexp_cotangent=(2, 3),
            bias=(3, 1),
            mask=booleans(3, 5),
            of_bias=True,
            scale=0.7,
            window=(1, 2),
            order=1,
        ),
        case(
            **_SHARED,
            cotangent=(2, 2, 3, 2),
            logsumexp_cotangent=(2, 2, 3),
            dropout_seed=SEED,
            dropout=0.25,
            causal=True,
            order=1,
        ),
        misuse(
            "logsumexp_cotangent must have shape (2, 3), got (3,)",
            **_GRADIENT,
            logsumexp_cotangent=(3,),
        ),
        misuse("of_bias must be false without a bias, got True", **_GRADIENT, of_bias=True),
        misuse("mask must be boolean, a floating one is a bias, got", **_GRADIENT, mask=(3, 5)),
    ],
    costly=True,
    sealed=True,  # JAX would keep the weights of all blocks
)
def attention_gradient(
    query: Array,
    keys: Array,
    values: Array,
    output: Array,
    logsumexp: Array,
    cotangent: Array,
    logsumexp_cotangent: Array | None = None,
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
    of_bias: bool = False,
) -> tuple[Array, ...]:
    """Gradients of attention with respect to query, keys, values and, if ``of_bias``, the bias.

    ``output`` and ``logsumexp`` are the results of ``scaled_dot_product_attention`` for the other
    inputs and attributes, ``cotangent`` and ``logsumexp_cotangent`` their cotangents. With the
    weights ``P = exp(scores - logsumexp)``, the cotangent of the scores is
    ``P * (cotangent @ values^T - delta)``, where ``delta`` is the sum of ``output * cotangent`` for
    each query, less ``logsumexp_cotangent``. A GPU may compute ``output`` and ``logsumexp`` anew
    instead of reading them.

    Example:
        >>> import jax.numpy as jnp
        >>> one = jnp.ones((1, 1))
        >>> parts = attention_gradient(one, one, one, 0 * one, jnp.ones(1), 2 * one)
        >>> [float(part[0, 0]) for part in parts]
        [2.0, 2.0, 2.0]
    """
    limits = (mask, bias, query_lengths, key_lengths, dropout_seed)
    query, keys, values = of_one_dtype(query, keys, values)
    call = call_of(query, keys, values, *limits, Form(scale, causal, window, dropout))
    parts = _by_blocks(call, output, logsumexp, cotangent, logsumexp_cotangent, of_bias=of_bias)
    return _like(parts, (query, keys, values, *([bias] if of_bias else [])))


def _by_blocks(
    call: Call,
    output: Array,
    logsumexp: Array,
    cotangent: Array,
    logsumexp_cotangent: Array | None,
    *,
    of_bias: bool,
) -> tuple[Array, ...]:
    delta = jnp.sum(output.astype(call.wide) * cotangent.astype(call.wide), -1)
    if logsumexp_cotangent is not None:
        delta = delta - logsumexp_cotangent
    rows = [of_rows(one, call) for one in (logsumexp[..., None], cotangent, delta[..., None])]
    rows[1] = rows[1].astype(call.dtype)
    return tuple(pulled(call, *rows, of_bias=of_bias))


def _like(parts: tuple[Array, ...], inputs: tuple[Any, ...]) -> tuple[Array, ...]:
    """Gradients in the shapes and dtypes of the inputs."""
    return tuple(
        part.reshape(one.shape).astype(one.dtype) for part, one in zip(parts, inputs, strict=True)
    )


@attention_gradient.on("gpu")
def attention_gradient_on_gpu(
    query: Array,
    keys: Array,
    values: Array,
    output: Array,
    logsumexp: Array,
    cotangent: Array,
    logsumexp_cotangent: Array | None = None,
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
    of_bias: bool,
) -> tuple[Array, ...]:
    """The gradients by cuDNN where it takes the call; otherwise by the kernel of all platforms.

    cuDNN has its own logsumexp. XLA drops the computation of this one if nothing else reads it.
    """
    limits = (mask, bias, query_lengths, key_lengths, dropout_seed)
    query, keys, values = of_one_dtype(query, keys, values)
    call = call_of(query, keys, values, *limits, Form(scale, causal, window, dropout))
    parts = gradient_by_cudnn(call, cotangent) if logsumexp_cotangent is None else None
    if parts is None:
        parts = _by_blocks(call, output, logsumexp, cotangent, logsumexp_cotangent, of_bias=of_bias)
    return _like(parts, (query, keys, values, *([bias] if of_bias else [])))


@attention_gradient.gradient
def _gradient_maker(
    query: Var,
    keys: Var,
    values: Var,
    output: Var,
    logsumexp: Var,
    cotangent: Var,
    logsumexp_cotangent: Var | None,
    mask: Var | None,
    bias: Var | None,
    query_lengths: Var | None,
    key_lengths: Var | None,
    dropout_seed: Var | None,
    d_parts: tuple[Var | None, ...],
    wanted: tuple[bool, ...],
    *,
    of_bias: bool,
    **how: Any,
) -> Grads:
    limits = (mask, bias, query_lengths, key_lengths, dropout_seed)
    tangents = (*d_parts, *(() if of_bias else (None,)))
    operands = (query, keys, values, output, logsumexp)
    cotangents = (cotangent, logsumexp_cotangent)
    grads: Grads = dict.fromkeys((*_OPERANDS, "cotangent", "logsumexp_cotangent", *_LIMITS))
    if wanted[3] or wanted[5] or wanted[6]:
        moved, total = attention_tangent(*operands, *tangents, *limits, **how)
        grads |= {
            "output": unbroadcast(-(_column(total) * cotangent), output),
            "cotangent": unbroadcast(moved, cotangent),
        }
        if logsumexp_cotangent is not None:
            grads["logsumexp_cotangent"] = unbroadcast(total, logsumexp_cotangent)
    if any(wanted[:3]) or wanted[4] or wanted[8]:
        grads |= _curved(operands, limits, tangents, cotangents, how)
    return grads


_OPERANDS = ("query", "keys", "values", "output", "logsumexp")
_LIMITS = ("mask", "bias", "query_lengths", "key_lengths", "dropout_seed")


def _tangent_shape(
    query: Shape,
    keys: Shape,
    values: Shape,
    output: Shape,
    logsumexp: Shape,
    query_tangent: Shape | None,
    keys_tangent: Shape | None,
    values_tangent: Shape | None,
    bias_tangent: Shape | None,
    mask: Shape | None,
    bias: Shape | None,
    query_lengths: Shape | None,
    key_lengths: Shape | None,
    dropout_seed: Shape | None,
    *,
    window: Window,
    dropout: float,
) -> tuple[Shape, Shape]:
    limits = (mask, bias, query_lengths, key_lengths, dropout_seed)
    results = attention_shape(query, keys, values, *limits, window=window, dropout=dropout)
    _require_shapes(results, output=output, logsumexp=logsumexp)
    for name, one, expected in (
        ("query_tangent", query_tangent, query),
        ("keys_tangent", keys_tangent, keys),
        ("values_tangent", values_tangent, values),
        ("bias_tangent", bias_tangent, bias),
    ):
        if one is not None and one != expected:
            raise ShapeError(f"{name} must have shape {expected}, got {one}")
    return results


def _tangent_dtype(
    query: VarType,
    keys: VarType,
    values: VarType,
    output: VarType,
    logsumexp: VarType,
    query_tangent: VarType | None,
    keys_tangent: VarType | None,
    values_tangent: VarType | None,
    bias_tangent: VarType | None,
    mask: VarType | None,
    bias: VarType | None,
    query_lengths: VarType | None,
    key_lengths: VarType | None,
    dropout_seed: VarType | None,
) -> list[DType]:
    dtype = product_dtype(query, keys, values)
    require_floating(
        output=output,
        logsumexp=logsumexp,
        query_tangent=query_tangent,
        keys_tangent=keys_tangent,
        values_tangent=values_tangent,
        bias_tangent=bias_tangent,
    )
    _require_boolean(mask)
    require_types(mask, bias, query_lengths, key_lengths, dropout_seed)
    return [dtype, statistics_dtype(dtype)]


def _tangent_reference(
    query: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    output: np.ndarray,
    logsumexp: np.ndarray,
    query_tangent: np.ndarray | None,
    keys_tangent: np.ndarray | None,
    values_tangent: np.ndarray | None,
    bias_tangent: np.ndarray | None,
    *limits: np.ndarray | None,
    scale: float | None,
    causal: bool,
    window: Window,
    dropout: float,
) -> tuple[np.ndarray, np.ndarray]:
    form, dropout_seed = Form(scale, causal, window, dropout), limits[-1]
    repeated = [repeated_heads(one, query) for one in (keys, values)]
    scores = scores_reference(query, repeated[0], *limits[:-1], form=form)
    weights = np.exp(scores - logsumexp[..., None])
    factors = (
        factors_reference(dropout_seed, shape=weights.shape, dropout=dropout) if dropout else 1.0
    )
    by_score = np.zeros(scores.shape)
    factor = form.factor(query.shape[-1])
    if query_tangent is not None:
        by_score += factor * query_tangent @ np.swapaxes(repeated[0], -1, -2)
    if keys_tangent is not None:
        by_score += factor * query @ np.swapaxes(repeated_heads(keys_tangent, query), -1, -2)
    if bias_tangent is not None:
        by_score += bias_tangent
    total = (weights * by_score).sum(-1)
    moved = (factors * weights * by_score) @ repeated[1] - output * total[..., None]
    if values_tangent is not None:
        moved = moved + (factors * weights) @ repeated_heads(values_tangent, query)
    return moved, total


_TANGENT: dict[str, Any] = {**FEW, "output": (2, 3, 3), "logsumexp": (2, 3)}


@op(
    shape=_tangent_shape,
    dtype=_tangent_dtype,
    outputs=("out_tangent", "logsumexp_tangent"),
    reference=_tangent_reference,
    cases=[
        case(
            **_TANGENT,
            query_tangent=(2, 3, 4),
            keys_tangent=(2, 5, 4),
            values_tangent=(2, 5, 3),
            order=1,
        ),
        case(
            **_TANGENT,
            bias=(3, 1),
            mask=booleans(3, 5),
            bias_tangent=(3, 1),
            values_tangent=(2, 5, 3),
            window=(1, 2),
            order=1,
        ),
        case(
            **_SHARED,
            keys_tangent=(2, 1, 4, 2),
            dropout_seed=SEED,
            dropout=0.25,
            causal=True,
            scale=0.7,
            order=1,
        ),
        misuse(
            "keys_tangent must have shape (2, 5, 4), got (5, 4)", **_TANGENT, keys_tangent=(5, 4)
        ),
        misuse("mask must be boolean, a floating one is a bias, got", **_TANGENT, mask=(3, 5)),
    ],
    costly=True,
    sealed=True,  # JAX would keep the weights of all blocks
)
def attention_tangent(
    query: Array,
    keys: Array,
    values: Array,
    output: Array,
    logsumexp: Array,
    query_tangent: Array | None = None,
    keys_tangent: Array | None = None,
    values_tangent: Array | None = None,
    bias_tangent: Array | None = None,
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
    """Tangents of attention and of its ``logsumexp``, linear in those of its inputs.

    ``output`` and ``logsumexp`` are the results of ``scaled_dot_product_attention`` for the other
    inputs and attributes. With the weights ``P = exp(scores - logsumexp)`` and the tangents ``T``
    of the scores, the tangent of ``logsumexp`` is the sum of ``P * T`` for each query, and that of
    ``output`` is ``(P * T) @ values + P @ values_tangent - output * sum(P * T)``.

    Example:
        >>> import jax.numpy as jnp
        >>> one = jnp.ones((1, 1))
        >>> moved, total = attention_tangent(one, one, 3 * one, one, jnp.ones(1), 2 * one)
        >>> float(moved[0, 0]), float(total[0])
        (4.0, 2.0)
    """
    query, keys, values = of_one_dtype(query, keys, values)
    limits = (mask, bias, query_lengths, key_lengths, dropout_seed)
    form = Form(scale, causal, window, dropout)
    call = call_of(query, keys, values, *limits, form)
    moved = [
        None if one is None else one.astype(call.dtype)
        for one in (query_tangent, keys_tangent, values_tangent)
    ]
    heads = heads_of(query.shape, keys.shape)
    tangents = Tangents(
        None if moved[0] is None else grouped(moved[0], heads),
        None if moved[1] is None else shared(moved[1], heads),
        None if moved[2] is None else shared(moved[2], heads),
        None if bias_tangent is None else bias_tangent.reshape(_bias_of(call).shape),
    )
    by, total = pushed(call, of_rows(logsumexp[..., None], call), tangents)
    out_tangent = by - of_rows(output, call).astype(call.wide) * total
    return out_tangent.reshape(output.shape).astype(call.dtype), total.reshape(logsumexp.shape)


def _bias_of(call: Call) -> Array:
    assert call.bias is not None
    return call.bias


@attention_tangent.gradient
def _tangent_maker(
    query: Var,
    keys: Var,
    values: Var,
    output: Var,
    logsumexp: Var,
    query_tangent: Var | None,
    keys_tangent: Var | None,
    values_tangent: Var | None,
    bias_tangent: Var | None,
    mask: Var | None,
    bias: Var | None,
    query_lengths: Var | None,
    key_lengths: Var | None,
    dropout_seed: Var | None,
    logsumexp_tangent: Var,
    d_out_tangent: Var,
    d_logsumexp_tangent: Var | None,
    wanted: tuple[bool, ...],
    **how: Any,
) -> Grads:
    limits = (mask, bias, query_lengths, key_lengths, dropout_seed)
    tangents = (query_tangent, keys_tangent, values_tangent, bias_tangent)
    names = ("query_tangent", "keys_tangent", "values_tangent", "bias_tangent")
    operands = (query, keys, values, output, logsumexp)
    cotangents = (d_out_tangent, d_logsumexp_tangent)
    grads: Grads = dict.fromkeys((*_OPERANDS, *names, *_LIMITS))
    if any(wanted[5:9]):
        of_bias = wanted[8] and bias_tangent is not None
        parts = attention_gradient(*operands, *cotangents, *limits, of_bias=of_bias, **how)
        for name, one, part in zip(names, tangents, parts, strict=False):
            grads[name] = None if one is None else unbroadcast(part, one)
    if wanted[3]:
        grads["output"] = unbroadcast(-(_column(logsumexp_tangent) * d_out_tangent), output)
    if any(wanted[:3]) or wanted[4] or wanted[10]:
        grads |= _curved(operands, limits, tangents, cotangents, how)
    return grads


# Second derivatives, by whole matrices ---------------------------------------------------------


def _curved(
    operands: tuple[Var, Var, Var, Var, Var],
    limits: Limits,
    tangents: tuple[Var | None, ...],
    cotangents: tuple[Var, Var | None],
    how: dict[str, Any],
) -> Grads:
    """The derivatives of the function at the top with respect to the operands and the bias.

    That with respect to ``output`` is left to the caller.
    """
    # With the slope F = Z (u V^T) - delta of T, where delta = sum(output u) - w, the cotangent of P
    # is T F + Z (u c^T), and P is exp(S - logsumexp). T reads Q and K, too.
    query, keys, values, output, logsumexp = operands
    u, w = cotangents
    d_query, d_keys, d_values, _ = tangents
    flat, form = Flat.of(query, keys), Form(**how)
    p = _weights((query, keys, logsumexp), limits, form)
    z = _factors(limits[-1], p, form.dropout)
    t = _score_tangents(flat, operands, tangents, form)
    u = cast(u, dtype=statistics_dtype(product_dtype(*(one.type for one in operands[:3]))))
    delta = sum_over(output * u, axis=-1)
    delta = delta if w is None else delta - w
    slope = _times(z, flat.paired(u, values)) - _column(delta)
    direct = None if d_values is None else _times(z, flat.paired(u, d_values))
    curved = p * _total(None if t is None else t * slope, direct)
    by_query = _total(
        flat.mixed(curved, keys), None if d_keys is None else flat.mixed(p * slope, d_keys)
    )
    by_keys = _total(
        flat.gathered(curved, query),
        None if d_query is None else flat.gathered(p * slope, d_query),
    )
    factor, bias = form.factor(keys.shape[-1]), limits[1]
    by_values = None if t is None else flat.gathered(_times(z, p * t), u)
    return {
        "query": unbroadcast(by_query * factor, query),
        "keys": unbroadcast(by_keys * factor, keys),
        "values": None if by_values is None else unbroadcast(by_values, values),
        "logsumexp": unbroadcast(-sum_over(curved, axis=-1), logsumexp),
        "bias": None if bias is None else unbroadcast(curved, bias),
    }


def _score_tangents(
    flat: Flat, operands: tuple[Var, ...], tangents: tuple[Var | None, ...], form: Form
) -> Any:
    """``T``, or None if no tangent reaches the scores."""
    query, keys = operands[:2]
    d_query, d_keys, _, d_bias = tangents
    by_query = None if d_query is None else flat.paired(d_query, keys)
    by_keys = None if d_keys is None else flat.paired(query, d_keys)
    both = _total(by_query, by_keys)
    scaled = None if both is None else both * form.factor(keys.shape[-1])
    if scaled is None and d_bias is not None:
        return broadcast_to(d_bias, shape=flat.scores)
    return _total(scaled, d_bias)


def _total(x: Any, y: Any) -> Any:
    """The sum of the terms that are present; None without any."""
    if x is None or y is None:
        return y if x is None else x
    return x + y


def _column(x: Any) -> Any:
    """Numbers of queries, as a factor of their rows."""
    return reshape(x, shape=(*x.shape, 1))


def _times(factors: Any, x: Any) -> Any:
    return x if factors is None else factors * x


def _weights(operands: tuple[Var, Var, Var], limits: Limits, form: Form) -> Any:
    how = {"scale": form.scale, "causal": form.causal, "window": form.window}
    return attention_weights(*operands, *limits[:-1], **how)


def _factors(dropout_seed: Var | None, weights: Var, dropout: float) -> Any:
    if dropout_seed is None or not dropout:
        return None
    return attention_factors(
        dropout_seed, shape=weights.shape, dropout=dropout, dtype=weights.dtype
    )
