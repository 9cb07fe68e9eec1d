"""Attention and its gradient by cuDNN, on a GPU and for the calls that it takes."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from registry.operator.signature import Array
from registry.ops.nn.attention_blocks import Call


def values_by_cudnn(call: Call) -> Array | None:
    """The values of the queries of a call; None where cuDNN does not compute it."""
    # This runs the forward pass that the gradient runs, so that XLA merges both in one program.
    both = _differentiated(call)
    return None if both is None else _turned(both[0])


def gradient_by_cudnn(call: Call, cotangent: Array) -> tuple[Array, ...] | None:
    """The gradients with respect to query, keys and values; None where cuDNN does not compute them.

    ``cotangent`` is that of the values, in the shape of ``call.query`` but for the width.
    """
    both = _differentiated(call)
    if both is None:
        return None
    out, pull = both
    given = _turned(cotangent.reshape(-1, *_heads(call), *cotangent.shape[-2:]))
    return tuple(_turned(part) for part in pull(given.astype(out.dtype)))


def has_cuda() -> bool:
    """Whether JAX has a GPU, of any vendor; JAX refuses cuDNN on those of others."""
    try:
        return bool(jax.devices("gpu"))
    except RuntimeError:
        return False


def _differentiated(call: Call) -> tuple[Array, Callable[[Array], Any]] | None:
    """The values, in the order of axes of ``_turned``, and the function of their gradient."""
    if not _suits(call) or not has_cuda():
        return None
    assert call.values is not None
    back, _ = call.form.reach

    def attend(*operands: Array) -> Array:
        return jax.nn.dot_product_attention(
            *operands,
            scale=call.form.scale,
            is_causal=call.form.causal,
            local_window_size=None if back is None else (back, 0),
            implementation="cudnn",
        )

    query = call.query.reshape(-1, *_heads(call), *call.query.shape[-2:])
    keys, values = (one.reshape(-1, *one.shape[-3:]) for one in (call.keys, call.values))
    try:
        return jax.vjp(attend, *(_turned(one) for one in (query, keys, values)))
    # JAX raises these where cuDNN does not support the call; the composition takes its place.
    # NotImplementedError is a RuntimeError.
    except (RuntimeError, ValueError):
        return None


def _suits(call: Call) -> bool:
    """Whether JAX's documentation lists a call among those that cuDNN computes."""
    assert call.values is not None
    form, width = call.form, call.query.shape[-1]
    limits = (call.mask, call.bias, call.query_lengths, call.key_lengths)
    back, ahead = form.reach
    plain = all(one is None for one in limits) and not form.dropout
    square = call.query.shape[-2] == call.keys.shape[-2]
    causal = form.causal and ahead == 0 and square
    return (
        plain
        and call.dtype.itemsize == 2
        and width == call.values.shape[-1]
        and 0 < width <= 128
        and width % 8 == 0
        and (causal or (back is None and ahead is None))
        and 0 not in call.scores_shape
        and (form.scale is None or isinstance(form.scale, float))
    )


def _heads(call: Call) -> tuple[int]:
    """The number of heads of the query, as an axis."""
    *_, shared, group, _, _ = call.query.shape
    return (shared * group,)


def _turned(x: Array) -> Array:
    """``x`` with the axes of heads and of positions exchanged."""
    return jnp.swapaxes(x, 1, 2)
