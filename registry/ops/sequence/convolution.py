"""Convolution over the steps of ragged sequences, and the context windows that it multiplies."""

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Annotated

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array, Parameter
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.indexing import never_weak
from registry.ops.core.reshaping import reshape, swapped
from registry.ops.sequence.offsets import (
    INT32,
    at,
    bounds_of,
    even,
    require_offsets,
    require_steps,
    sequence_count,
)
from registry.shapes import at_least_single, numeric, strong
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

ContextLength = Annotated[int, Check("be positive", lambda value: value > 0)]
"""The number of steps in a context."""


def _start(context_length: int, context_start: int | None) -> int:
    return -(context_length // 2) if context_start is None else context_start


# sequence_context and its adjoint --------------------------------------------------------------


def _context_shape(x: Shape, offsets: Shape, *, context_length: int) -> Shape:
    require_steps(x)
    sequence_count(offsets)
    return (x[0], context_length, *x[1:])


def _context_dtype(x: VarType, offsets: VarType) -> DType:
    require_offsets(offsets)
    return x.dtype


def _context_reference(
    x: np.ndarray, offsets: np.ndarray, *, context_length: int, context_start: int | None = None
) -> np.ndarray:
    out = np.zeros((len(x), context_length, *x.shape[1:]), x.dtype)
    first = -(context_length // 2) if context_start is None else context_start
    for begin, end in itertools.pairwise(offsets.tolist()):
        for i in range(begin, end):
            for k in range(context_length):
                if begin <= i + first + k < end:
                    out[i, k] = x[i + first + k]
    return out


@op(
    shape=_context_shape,
    dtype=_context_dtype,
    reference=_context_reference,
    cases=[
        case(x=(6, 2), offsets=at(0, 2, 2, 5), context_length=3),
        case(x=(5,), offsets=at(0, 1, 5), context_length=2, context_start=1, order=2),
        case(x=(5,), offsets=at(0, 4, 5, dtype="uint8"), context_length=4, context_start=-3),
        case(x=(2, 2, 2), offsets=at(0, 2), context_length=1, order=2),
        case(x=(0, 2), offsets=at(0, 0), context_length=2, order=1),
        case(x=(2,), offsets=at(0), context_length=2, order=1),
        case(x=integers(5, high=9), offsets=at(0, 2, 5), context_length=2, context_start=0),
        workload(x=(20000, 64), offsets=even(20, 20000), context_length=3),
        misuse("x must have an axis for the steps", x=(), offsets=at(0, 1), context_length=2),
        misuse("'context_length' must be positive", x=(2,), offsets=at(0, 1), context_length=0),
        misuse("offsets must be integers, got float", x=(2,), offsets=(3,), context_length=2),
        misuse("a vector with one number more", x=(2,), offsets=integers(high=3), context_length=2),
    ],
)
def sequence_context(
    x: Array, offsets: Array, *, context_length: ContextLength, context_start: int | None = None
) -> Array:
    """The context window of each step in its sequence, along a new second axis.

    ``out[i, k] = x[i + context_start + k]`` if that step belongs to the sequence of step ``i``,
    otherwise zero; padding after the last offset is zero as well. By default the window is centered
    on the step: ``context_start = -(context_length // 2)``.

    Source: PaddlePaddle, the context projection of operator ``sequence_conv``.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_context(jnp.asarray([1, 2, 3, 4]), jnp.asarray([0, 3, 4]), context_length=3)
        Array([[0, 1, 2],
               [1, 2, 3],
               [2, 3, 0],
               [0, 4, 0]], dtype=int32)
    """
    x, start = never_weak(x), _start(context_length, context_start)
    neighbors = _neighbors(jnp.shape(x)[0], offsets)
    parts = [neighbors(x, start + k)[:, None] for k in range(context_length)]
    # XLA fuses selections, and would copy each part to join them: 0.4 against 0.8 ms for three.
    places = jnp.arange(context_length, dtype=INT32).reshape(-1, *[1] * (x.ndim - 1))
    out = jnp.broadcast_to(parts[0], (x.shape[0], context_length, *x.shape[1:]))
    for k, part in enumerate(parts[1:], 1):
        out = jnp.where(places == k, part, out)
    return out


@sequence_context.gradient
def _sequence_context_gradient(
    offsets: Var, d_out: Var, *, context_length: int, context_start: int | None
) -> Grads:
    start = _start(context_length, context_start)
    return {
        "x": sequence_context_adjoint(d_out, offsets, context_start=start),
        "offsets": None,
    }


def _adjoint_shape(contexts: Shape, offsets: Shape) -> Shape:
    sequence_count(offsets)
    if len(contexts) < 2 or contexts[1] == 0:
        raise ShapeError(f"contexts must have steps and their neighbors, got shape {contexts}")
    return (contexts[0], *contexts[2:])


def _adjoint_dtype(contexts: VarType, offsets: VarType) -> DType:
    require_offsets(offsets)
    return numeric(contexts)[0]


def _adjoint_reference(
    contexts: np.ndarray, offsets: np.ndarray, *, context_start: int
) -> np.ndarray:
    out = np.zeros((len(contexts), *contexts.shape[2:]), contexts.dtype)
    for begin, end in itertools.pairwise(offsets.tolist()):
        for i in range(begin, end):
            for k in range(contexts.shape[1]):
                if begin <= i + context_start + k < end:
                    out[i + context_start + k] += contexts[i, k]
    return out


@op(
    shape=_adjoint_shape,
    dtype=_adjoint_dtype,
    reference=_adjoint_reference,
    cases=[
        case(contexts=(6, 3, 2), offsets=at(0, 2, 2, 5), context_start=-1),
        case(contexts=(5, 2), offsets=at(0, 1, 5), context_start=1, order=2),
        case(contexts=(5, 4), offsets=at(0, 4, 5, dtype="uint8"), context_start=-3, order=2),
        case(contexts=(0, 2), offsets=at(0, 0), context_start=0, order=1),
        case(contexts=(2, 2), offsets=at(0), context_start=0, order=1),
        case(contexts=integers(5, 2, high=9), offsets=at(0, 2, 5), context_start=0),
        workload(contexts=(20000, 3, 64), offsets=even(20, 20000), context_start=-1),
        misuse("contexts must have steps", contexts=(3,), offsets=at(0, 1), context_start=0),
        misuse("contexts must have steps", contexts=(3, 0), offsets=at(0, 1), context_start=0),
        misuse("offsets must be integers", contexts=(3, 2), offsets=(3,), context_start=0),
        misuse(
            "a vector with one number more",
            contexts=(3, 2),
            offsets=integers(0, high=3),
            context_start=0,
        ),
    ],
)
def sequence_context_adjoint(contexts: Array, offsets: Array, *, context_start: int) -> Array:
    """The adjoint of ``sequence_context``: for each step, the sum of its copies in ``contexts``.

    ``out[j] = sum over k of contexts[j - context_start - k, k]``, over those steps that belong to
    the sequence of step ``j``. The sum is computed in float32 at least.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_context_adjoint(jnp.ones((3, 2)), jnp.asarray([0, 3]), context_start=0)
        Array([1., 2., 2.], dtype=float32)
    """
    contexts = never_weak(contexts)
    neighbors, wide = _neighbors(len(contexts), offsets), at_least_single(contexts.dtype)
    parts = [
        neighbors(contexts[:, k], -context_start - k).astype(wide) for k in range(contexts.shape[1])
    ]
    return functools.reduce(operator.add, parts).astype(contexts.dtype)


def _neighbors(height: int, offsets: Array) -> Callable[[Array, int], Array]:
    """Returns a function to the rows that are some steps further in the same sequence, or zeros."""
    # A gather of rows takes twice the time of shifted copies, which XLA fuses with what reads them.
    _, begins, ends = bounds_of(offsets, height)
    places = jnp.arange(height, dtype=INT32)

    def neighbors(rows: Array, further: int) -> Array:
        nothing = rows.dtype.type(0)
        inside = (begins <= places + further) & (places + further < ends)
        by, apart = int(np.clip(further, -height, height)), [(0, 0, 0)] * (rows.ndim - 1)
        shifted = lax.pad(rows, nothing, [(-by, by, 0), *apart])
        return jnp.where(inside.reshape(-1, *[1] * (rows.ndim - 1)), shifted, nothing)

    return neighbors


@sequence_context_adjoint.gradient
def _sequence_context_adjoint_gradient(
    contexts: Var, offsets: Var, d_out: Var, *, context_start: int
) -> Grads:
    length = contexts.shape[1]
    d_contexts = sequence_context(
        d_out, offsets, context_length=length, context_start=context_start
    )
    return {"contexts": d_contexts, "offsets": None}


# sequence_conv ---------------------------------------------------------------------------------


def _conv_shape(
    x: Shape, offsets: Shape, weight: Shape, *, channels: int, context_length: int
) -> Shape:
    sequence_count(offsets)
    if len(x) != 2:
        raise ShapeError(f"x must have an axis for steps and one for features, got shape {x}")
    expected = (context_length * x[1], channels)
    if weight != expected:
        raise ShapeError(f"weight must have shape {expected} for x of {x}, got {weight}")
    return (x[0], channels)


def _conv_dtype(x: VarType, offsets: VarType, weight: VarType) -> DType:
    require_offsets(offsets)
    return strong(x, weight)


def _conv_reference(
    x: np.ndarray,
    offsets: np.ndarray,
    weight: np.ndarray,
    *,
    channels: int,
    context_length: int,
    context_start: int | None,
) -> np.ndarray:
    contexts = _context_reference(
        x, offsets, context_length=context_length, context_start=context_start
    )
    out = np.zeros((len(x), channels), np.result_type(x, weight))
    for k in range(context_length):
        out += contexts[:, k] @ weight[k * x.shape[1] : (k + 1) * x.shape[1]]
    return out


@op(
    shape=_conv_shape,
    dtype=_conv_dtype,
    reference=_conv_reference,
    cases=[
        case(x=(6, 2), offsets=at(0, 2, 2, 5), weight=(6, 3), channels=3),
        case(
            x=(4, 2),
            offsets=at(0, 1, 4),
            weight=(4, 1),
            channels=1,
            context_length=2,
            context_start=-1,
            order=2,
        ),
        case(
            x=(5, 1),
            offsets=at(0, 3, 5, dtype="uint8"),
            weight=(2, 2),
            channels=2,
            context_length=2,
            context_start=1,
            order=2,
        ),
        case(x=(0, 2), offsets=at(0, 0), weight=(6, 3), channels=3, order=1),
        case(x=(2, 1), offsets=at(0), weight=(3, 2), channels=2, order=1),
        case(x=integers(4, 1, high=9), offsets=at(0, 4), weight=integers(3, 1, high=9), channels=1),
        workload(
            x=(20000, 64),
            offsets=even(20, 20000),
            weight=(192, 64),
            channels=64,
        ),
        misuse(
            "weight must have shape (6, 3) for x of (4, 2), got (2, 3)",
            x=(4, 2),
            offsets=at(0, 4),
            weight=(2, 3),
            channels=3,
        ),
        misuse(
            "one for features, got shape (4,)",
            x=(4,),
            offsets=at(0, 4),
            weight=(3, 3),
            channels=3,
        ),
        misuse(
            "offsets must be integers, got float",
            x=(4, 1),
            offsets=(2,),
            weight=(3, 3),
            channels=3,
        ),
    ],
    costly=True,
)
def sequence_conv(
    x: Array,
    offsets: Array,
    weight: Parameter,
    *,
    channels: int,
    context_length: ContextLength = 3,
    context_start: int | None = None,
) -> Array:
    """Convolution over the steps of each sequence: ``out = context @ weight``.

    The context of a step consists of the ``context_length`` steps that start ``context_start``
    steps after it (before it if negative), each with all of its features, and zeros outside the
    sequence. ``x`` has shape ``(steps, features)``, ``weight`` has shape ``(context_length *
    features, channels)``, where the features of the first step of the context come first. By
    default the context is centered on the step: ``context_start = -(context_length // 2)``. Padding
    after the last offset becomes zero.

    Source: PaddlePaddle, operator ``sequence_conv``.

    Example:
        >>> import jax.numpy as jnp
        >>> x, offsets = jnp.asarray([[1.0], [2.0], [3.0], [4.0]]), jnp.asarray([0, 3, 4])
        >>> sequence_conv(x, offsets, jnp.ones((3, 1)), channels=1).ravel()
        Array([3., 6., 5., 4.], dtype=float32)
    """
    del channels
    contexts = sequence_context.kernel(
        x, offsets, context_length=context_length, context_start=context_start
    )
    dtype = jnp.result_type(x, weight)
    rows = jnp.reshape(contexts, (x.shape[0], weight.shape[0]))
    return jnp.matmul(rows.astype(dtype), weight.astype(dtype))


@sequence_conv.gradient
def _sequence_conv_gradient(
    x: Var,
    offsets: Var,
    weight: Var,
    d_out: Var,
    *,
    context_length: int,
    context_start: int | None,
) -> Grads:
    # With the contexts C = P x: out = C W, so dW = C^T d, dC = d W^T and dx = P^T dC.
    start, (height, features) = _start(context_length, context_start), x.shape

    def by_x() -> Var | None:
        contexts = reshape(d_out @ swapped(weight), shape=(height, context_length, features))
        return unbroadcast(sequence_context_adjoint(contexts, offsets, context_start=start), x)

    def by_weight() -> Var | None:
        contexts = sequence_context(x, offsets, context_length=context_length, context_start=start)
        rows = reshape(contexts, shape=(height, weight.shape[0]))
        return unbroadcast(swapped(rows) @ d_out, weight)

    return {"x": by_x, "offsets": None, "weight": by_weight}


@sequence_conv.complete
def _sequence_conv_complete(
    x: Shape | None, out: Shape | None, *, channels: int, context_length: int
) -> dict[str, Shape]:
    if x is None or len(x) != 2:
        return {}
    return {"weight": (context_length * x[1], channels)}
