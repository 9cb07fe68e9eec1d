"""Random draws of real numbers, differentiable in their parameters.

A draw depends on its key and its parameters. If it is a smooth function of a draw from a fixed
distribution, its gradient is that of the function: the key alone determines the underlying draw, so
a gradient maker repeats it with the same key, and XLA merges the two.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, positive, uniform, workload
from registry.errors import DTypeError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array, Key, Optional
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.reshaping import Several
from registry.shapes import (
    at_least_single,
    canonical,
    default_float,
    floating,
    listed,
    real,
)
from registry.table import op
from registry.types import DType, Shape, VarType, is_floating, is_inexact
from registry.var import Var


def _not_negative(shape: Shape) -> bool:
    return all(length >= 0 for length in shape)


Lengths = Annotated[Several, Check("not be negative", _not_negative)]
"""The attribute ``shape``; a single number is the length of a one-dimensional array."""
Given = Annotated[jax.Array | None, Optional()]
"""An optional parameter of a distribution."""


# Shared by samplers ----------------------------------------------------------------------------


def drawn_shape(shape: Shape | None, *shapes: Shape | None) -> Shape:
    """The shape of a draw: ``shape``, or the broadcast shape of the parameters.

    Raises:
        ShapeError: the parameters do not broadcast to it.
    """
    present = [one for one in shapes if one is not None]
    try:
        together = np.broadcast_shapes(*present)
        fits = shape is None or np.broadcast_shapes(together, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        wanted = "together" if shape is None else f"to {shape}"
        raise ShapeError(f"the parameters' shapes must broadcast {wanted}, got {listed(present)}")
    return together if shape is None else shape


def drawn_dtype(dtype: DType | None, *types: VarType | None) -> DType:
    """The dtype of a draw: ``dtype``, or the floating dtype to which the parameters promote.

    Raises:
        DTypeError: it is not floating, or a parameter is complex.
    """
    present = [one for one in types if one is not None]
    if present:
        real(*present)
    if dtype is None:
        return floating(*present)[0] if present else default_float()
    chosen = canonical(dtype)
    if not is_floating(chosen):
        raise DTypeError(f"dtype must be real and floating, got {chosen.name}")
    return chosen


def result_dtype(dtype: DType | None, values: Sequence[Any]) -> DType:
    """``drawn_dtype`` for values, as a kernel has them."""
    if dtype is not None:
        return canonical(dtype)
    present = [one for one in values if one is not None]
    if not present:
        return default_float()
    promoted = np.dtype(jnp.result_type(*present))
    if is_inexact(promoted):
        return promoted
    return np.dtype(np.float64 if promoted.itemsize == 8 else np.float32)


def fitted(shape: Shape | None, *values: Any) -> Shape:
    """``drawn_shape`` for values, as a kernel has them."""
    return drawn_shape(shape, *[None if one is None else jnp.shape(one) for one in values])


def _affine(draw: Any, loc: Any, scale: Any, dtype: DType) -> Array:
    """``loc + scale * draw`` in ``dtype``, computed at least in single precision."""
    wide = at_least_single(dtype)
    out = draw if scale is None else draw * jnp.asarray(scale).astype(wide)
    out = out if loc is None else out + jnp.asarray(loc).astype(wide)
    return lax.convert_element_type(out, dtype)


def _pair_shape(loc: Shape | None, scale: Shape | None, *, shape: Shape | None) -> Shape:
    return drawn_shape(shape, loc, scale)


def _pair_dtype(loc: VarType | None, scale: VarType | None, *, dtype: DType | None) -> DType:
    return drawn_dtype(dtype, loc, scale)


_LOC_AND_SCALE = [
    case(loc=(3, 1), scale=positive(4)),
    case(loc=(3,), scale=positive(), shape=(2, 3)),
    case(shape=5, dtype="float32"),
    case(loc=(0, 2), scale=positive(2)),
]
_MISUSES = [
    misuse("the parameters' shapes must broadcast to (2,), got (3,)", loc=(3,), shape=(2,)),
    misuse("dtype must be real and floating, got int32", loc=(2,), dtype="int32"),
]

# uniform ---------------------------------------------------------------------------------------


def _uniform_shape(low: Shape | None, high: Shape | None, *, shape: Shape | None) -> Shape:
    return drawn_shape(shape, low, high)


def _uniform_dtype(low: VarType | None, high: VarType | None, *, dtype: DType | None) -> DType:
    return drawn_dtype(dtype, low, high)


def _uniform_reference(
    low: Any, high: Any, key: Any, *, shape: Shape | None, dtype: DType | None
) -> np.ndarray:
    chosen = result_dtype(dtype, [low, high])
    low, high = (0.0 if low is None else low), (1.0 if high is None else high)
    places = np.broadcast_shapes(np.shape(low), np.shape(high)) if shape is None else shape
    draw = np.asarray(jax.random.uniform(key, places, at_least_single(chosen)), np.float64)
    return np.asarray(low * (1 - draw) + high * draw, np.float64)


@op(
    shape=_uniform_shape,
    dtype=_uniform_dtype,
    reference=_uniform_reference,
    aliases=["uniform"],
    cases=[
        case(low=(3, 1), high=uniform(4, low=3.0, high=5.0)),
        case(low=(3,), high=uniform(low=3.0, high=5.0), shape=(2, 3)),
        case(shape=(5,), dtype="float32"),
        case(high=positive(0, 2)),
        workload(low=(1024, 1), high=positive(1024)),
        misuse("the parameters' shapes must broadcast to (2,), got (3,)", low=(3,), shape=(2,)),
        misuse("dtype must be real and floating, got int32", low=(2,), dtype="int32"),
    ],
)
def random_uniform(
    low: Given,
    high: Given,
    key: Key,
    *,
    shape: Lengths | None = None,
    dtype: np.dtype | None = None,
) -> Array:
    """Uniform draws: ``low + (high - low) u`` with ``u`` uniform in [0, 1).

    ``low`` defaults to 0 and ``high`` to 1. The result has the given ``shape``, or that of the
    parameters. It is differentiable in both parameters.

    Example:
        >>> import jax
        >>> random_uniform(0.0, 10.0, key=jax.random.key(0), shape=(2,)).shape
        (2,)
    """
    chosen = result_dtype(dtype, [low, high])
    draw = jax.random.uniform(key, fitted(shape, low, high), at_least_single(chosen))
    if low is None:
        return _affine(draw, None, high, chosen)
    start = jnp.asarray(low).astype(at_least_single(chosen))
    end = (
        jnp.ones_like(start) if high is None else jnp.asarray(high).astype(at_least_single(chosen))
    )
    return _affine(draw, start, end - start, chosen)


@random_uniform.gradient
def _random_uniform_gradient(low: Var | None, high: Var | None, key: Var, d_out: Var) -> Grads:
    # out = low (1 - u) + high u
    u = random_uniform(key=key, shape=d_out.shape, dtype=d_out.dtype)
    return {
        "low": None if low is None else unbroadcast(d_out * (1.0 - u), low),
        "high": None if high is None else unbroadcast(d_out * u, high),
    }


# normal ----------------------------------------------------------------------------------------


def _normal_reference(
    loc: Any, scale: Any, key: Any, *, shape: Shape | None, dtype: DType | None
) -> np.ndarray:
    chosen = result_dtype(dtype, [loc, scale])
    loc, scale = (0.0 if loc is None else loc), (1.0 if scale is None else scale)
    places = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if shape is None else shape
    draw = np.asarray(jax.random.normal(key, places, at_least_single(chosen)), np.float64)
    return np.asarray(loc + scale * draw)


@op(
    shape=_pair_shape,
    dtype=_pair_dtype,
    reference=_normal_reference,
    aliases=["normal"],
    cases=[
        *_LOC_AND_SCALE,
        case(loc=integers(3, high=4)),
        workload(loc=(1024, 1), scale=positive(1024)),
        *_MISUSES,
    ],
)
def random_normal(
    loc: Given,
    scale: Given,
    key: Key,
    *,
    shape: Lengths | None = None,
    dtype: np.dtype | None = None,
) -> Array:
    """Normal draws: ``loc + scale z`` with ``z`` of mean 0 and standard deviation 1.

    ``loc`` defaults to 0 and ``scale`` to 1. The result has the given ``shape``, or that of the
    parameters. It is differentiable in both parameters.

    Example:
        >>> import jax
        >>> random_normal(key=jax.random.key(0), shape=(2, 3)).shape
        (2, 3)
    """
    chosen = result_dtype(dtype, [loc, scale])
    draw = jax.random.normal(key, fitted(shape, loc, scale), at_least_single(chosen))
    return _affine(draw, loc, scale, chosen)


@random_normal.gradient
def _random_normal_gradient(loc: Var | None, scale: Var | None, key: Var, d_out: Var) -> Grads:
    def by_scale() -> Var | None:
        z = random_normal(key=key, shape=d_out.shape, dtype=d_out.dtype)
        assert scale is not None
        return unbroadcast(d_out * z, scale)

    return {
        "loc": None if loc is None else unbroadcast(d_out, loc),
        "scale": None if scale is None else by_scale,
    }


def _truncated_reference(
    loc: Any,
    scale: Any,
    key: Any,
    *,
    low: float,
    high: float,
    shape: Shape | None,
    dtype: DType | None,
) -> np.ndarray:
    chosen = result_dtype(dtype, [loc, scale])
    loc, scale = (0.0 if loc is None else loc), (1.0 if scale is None else scale)
    places = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if shape is None else shape
    draw = jax.random.truncated_normal(key, low, high, places, at_least_single(chosen))
    return np.asarray(loc + scale * np.asarray(draw, np.float64))


@op(
    shape=_pair_shape,
    dtype=_pair_dtype,
    reference=_truncated_reference,
    aliases=["truncated_normal"],
    cases=[
        *_LOC_AND_SCALE,
        case(loc=(3,), low=-1.0, high=0.5),
        workload(loc=(1024, 1), scale=positive(1024)),
        *_MISUSES,
    ],
)
def random_truncated_normal(
    loc: Given,
    scale: Given,
    key: Key,
    *,
    low: float = -2.0,
    high: float = 2.0,
    shape: Lengths | None = None,
    dtype: np.dtype | None = None,
) -> Array:
    """Truncated normal draws: ``loc + scale z`` with ``low <= z <= high``.

    The bounds are in standard deviations from ``loc``. The draw is differentiable in ``loc`` and
    ``scale``.

    Example:
        >>> import jax
        >>> bool((abs(random_truncated_normal(key=jax.random.key(0), shape=(99,))) <= 2).all())
        True
    """
    chosen = result_dtype(dtype, [loc, scale])
    draw = jax.random.truncated_normal(
        key, low, high, fitted(shape, loc, scale), at_least_single(chosen)
    )
    return _affine(draw, loc, scale, chosen)


@random_truncated_normal.gradient
def _random_truncated_normal_gradient(
    loc: Var | None, scale: Var | None, key: Var, d_out: Var, *, low: float, high: float
) -> Grads:
    def by_scale() -> Var | None:
        z = random_truncated_normal(
            key=key, low=low, high=high, shape=d_out.shape, dtype=d_out.dtype
        )
        assert scale is not None
        return unbroadcast(d_out * z, scale)

    return {
        "loc": None if loc is None else unbroadcast(d_out, loc),
        "scale": None if scale is None else by_scale,
    }


# exponential -----------------------------------------------------------------------------------


def _scaled_shape(scale: Shape | None, *, shape: Shape | None) -> Shape:
    return drawn_shape(shape, scale)


def _scaled_dtype(scale: VarType | None, *, dtype: DType | None) -> DType:
    return drawn_dtype(dtype, scale)


def _exponential_reference(
    scale: Any, key: Any, *, shape: Shape | None, dtype: DType | None
) -> np.ndarray:
    chosen = result_dtype(dtype, [scale])
    scale = 1.0 if scale is None else scale
    places = np.shape(scale) if shape is None else shape
    return np.asarray(
        scale * np.asarray(jax.random.exponential(key, places, at_least_single(chosen)))
    )


@op(
    shape=_scaled_shape,
    dtype=_scaled_dtype,
    reference=_exponential_reference,
    cases=[
        case(scale=positive(3, 4)),
        case(scale=positive(), shape=(2, 3)),
        case(shape=(5,), dtype="float32"),
        case(scale=positive(0)),
        misuse("the parameters' shapes must broadcast to (2,), got (3,)", scale=(3,), shape=(2,)),
    ],
)
def random_exponential(
    scale: Given,
    key: Key,
    *,
    shape: Lengths | None = None,
    dtype: np.dtype | None = None,
) -> Array:
    """Exponential draws with mean ``scale``, which defaults to 1: ``-scale log(1 - u)``.

    The draw is differentiable in ``scale``.

    Example:
        >>> import jax
        >>> random_exponential(3.0, key=jax.random.key(0), shape=(4,)).shape
        (4,)
    """
    chosen = result_dtype(dtype, [scale])
    draw = jax.random.exponential(key, fitted(shape, scale), at_least_single(chosen))
    return _affine(draw, None, scale, chosen)


@random_exponential.gradient
def _random_exponential_gradient(scale: Var | None, key: Var, d_out: Var) -> Grads:
    if scale is None:
        return {"scale": None}
    draw = random_exponential(key=key, shape=d_out.shape, dtype=d_out.dtype)
    return {"scale": unbroadcast(d_out * draw, scale)}
