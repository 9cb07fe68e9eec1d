"""Random draws, differentiable in their parameters where the draw can be reparameterized.

A draw depends on its key and on its parameters. Where it is a smooth function of a draw from a
fixed distribution, its gradient is that function's: the key alone fixes the other draw, so a maker
draws it again with the same key, and XLA merges the two.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, positive, uniform, workload
from registry.errors import DTypeError, ShapeError
from registry.operator import Grads
from registry.ops.broadcasting import unbroadcast
from registry.ops.shape import Several
from registry.shapes import (
    along_axis,
    at_least_single,
    canonical,
    default_float,
    default_int,
    floating,
    listed,
    normalize_axis,
    real,
)
from registry.signature import Array, Key, Optional
from registry.table import op
from registry.types import DType, Shape, VarType, is_inexact
from registry.var import Var

Given = Annotated[jax.Array | None, Optional()]
"""A parameter of a distribution that may be left out."""


# What samplers share ---------------------------------------------------------------------------


def drawn_shape(shape: Shape | None, *given: Shape | None) -> Shape:
    """The shape of a draw: ``shape``, or what the parameters broadcast to.

    Raises:
        ShapeError: the parameters do not broadcast to it.
    """
    present = [one for one in given if one is not None]
    try:
        together = np.broadcast_shapes(*present)
        fits = shape is None or np.broadcast_shapes(together, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        wanted = "together" if shape is None else f"to {shape}"
        raise ShapeError(f"the parameters' shapes must broadcast {wanted}, got {listed(present)}")
    return together if shape is None else shape


def drawn_dtype(dtype: DType | None, *given: VarType | None) -> DType:
    """The dtype of a draw: ``dtype``, or the floating one that the parameters promote to.

    Raises:
        DTypeError: it is not floating, or a parameter is complex.
    """
    present = [one for one in given if one is not None]
    if present:
        real(*present)
    if dtype is None:
        return floating(*present)[0] if present else default_float()
    chosen = canonical(dtype)
    if not is_inexact(chosen) or chosen.kind == "c":
        raise DTypeError(f"dtype must be real and floating, got {chosen.name}")
    return chosen


def result_dtype(dtype: DType | None, given: Sequence[Any]) -> DType:
    """``drawn_dtype`` of values, which a kernel has."""
    if dtype is not None:
        return canonical(dtype)
    present = [one for one in given if one is not None]
    if not present:
        return default_float()
    promoted = np.dtype(jnp.result_type(*present))
    if is_inexact(promoted):
        return promoted
    return np.dtype(np.float64 if promoted.itemsize == 8 else np.float32)


def fitted(shape: Shape | None, *given: Any) -> Shape:
    """``drawn_shape`` of values, which a kernel has."""
    return drawn_shape(shape, *[None if one is None else jnp.shape(one) for one in given])


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
    shape: Several | None = None,
    dtype: np.dtype | None = None,
) -> Array:
    """Uniform draws: ``low + (high - low) u`` with ``u`` uniform in [0, 1).

    ``low`` is 0 and ``high`` is 1 unless given. The result has the given ``shape``, or that of the
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
    shape: Several | None = None,
    dtype: np.dtype | None = None,
) -> Array:
    """Normal draws: ``loc + scale z`` with ``z`` of mean 0 and standard deviation 1.

    ``loc`` is 0 and ``scale`` is 1 unless given. The result has the given ``shape``, or that of
    the parameters. It is differentiable in both parameters.

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
    shape: Several | None = None,
    dtype: np.dtype | None = None,
) -> Array:
    """Normal draws between bounds: ``loc + scale z`` with ``low <= z <= high``.

    The bounds are in standard deviations from ``loc``. Differentiable in ``loc`` and ``scale``.

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
    shape: Several | None = None,
    dtype: np.dtype | None = None,
) -> Array:
    """Exponential draws of mean ``scale``, which is 1 unless given: ``-scale log(1 - u)``.

    Differentiable in ``scale``.

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


# Whole numbers ---------------------------------------------------------------------------------

_JUMPS = "it jumps from one whole number to the next, so no path of it is differentiable"


def _bernoulli_shape(p: Shape | None, *, shape: Shape | None) -> Shape:
    return drawn_shape(shape, p)


def _bernoulli_dtype(p: VarType | None, *, dtype: DType | None) -> DType:
    drawn_dtype(None, p)
    return np.dtype(bool) if dtype is None else canonical(dtype)


def _bernoulli_reference(
    p: Any, key: Any, *, shape: Shape | None, dtype: DType | None
) -> np.ndarray:
    p = 0.5 if p is None else p
    draw = np.asarray(jax.random.uniform(key, np.shape(p) if shape is None else shape, np.float32))
    return np.asarray(draw < p, bool if dtype is None else dtype)


@op(
    shape=_bernoulli_shape,
    dtype=_bernoulli_dtype,
    reference=_bernoulli_reference,
    cases=[
        case(p=uniform(3, 4, low=0.2, high=0.8)),
        case(p=uniform(low=0.2, high=0.8), shape=(2, 3), dtype="float32"),
        case(shape=(0,)),
        misuse("the parameters' shapes must broadcast to (2,), got (3,)", p=(3,), shape=(2,)),
    ],
)
def random_bernoulli(
    p: Given, key: Key, *, shape: Several | None = None, dtype: np.dtype | None = None
) -> Array:
    """True with probability ``p``, which is 1/2 unless given; as ones and zeros in another dtype.

    Example:
        >>> import jax
        >>> random_bernoulli(1.0, key=jax.random.key(0), shape=(2,))
        Array([ True,  True], dtype=bool)
    """
    draw = jax.random.uniform(key, fitted(shape, p), np.float32)
    limit = 0.5 if p is None else jnp.asarray(p).astype(np.float32)
    return (draw < limit).astype(bool if dtype is None else canonical(dtype))


random_bernoulli.no_gradient(_JUMPS)


def _poisson_shape(rate: Shape | None, *, shape: Shape | None) -> Shape:
    return drawn_shape(shape, rate)


def _poisson_dtype(rate: VarType | None, *, dtype: DType | None) -> DType:
    drawn_dtype(None, rate)
    return default_int() if dtype is None else canonical(dtype)


def _poisson_reference(
    rate: Any, key: Any, *, shape: Shape | None, dtype: DType | None
) -> np.ndarray:
    rate = 1.0 if rate is None else rate
    draw = jax.random.poisson(key, np.asarray(rate, np.float32), shape)
    return np.asarray(draw).astype(default_int() if dtype is None else dtype)


@op(
    shape=_poisson_shape,
    dtype=_poisson_dtype,
    reference=_poisson_reference,
    cases=[
        case(rate=uniform(3, 4, low=0.5, high=20.0)),
        case(rate=positive(), shape=(2, 3), dtype="float32"),
        case(shape=(4,)),
        misuse("the parameters' shapes must broadcast to (2,), got (3,)", rate=(3,), shape=(2,)),
    ],
)
def random_poisson(
    rate: Given, key: Key, *, shape: Several | None = None, dtype: np.dtype | None = None
) -> Array:
    """How many events happen when ``rate``, which is 1 unless given, is their mean number.

    Integers, or the given ``dtype``.

    Example:
        >>> import jax
        >>> random_poisson(0.0, key=jax.random.key(0), shape=(2,))
        Array([0, 0], dtype=int32)
    """
    rates = jnp.asarray(1.0 if rate is None else rate).astype(np.float32)
    draw = jax.random.poisson(key, rates, fitted(shape, rate))
    return lax.convert_element_type(draw, default_int() if dtype is None else canonical(dtype))


random_poisson.no_gradient(_JUMPS)


def _integers_dtype(*, dtype: DType | None) -> DType:
    chosen = default_int() if dtype is None else canonical(dtype)
    if chosen.kind not in "iu":
        raise DTypeError(f"dtype must be an integer dtype, got {chosen.name}")
    return chosen


def _attribute_shape(*, shape: Shape) -> Shape:
    return shape


@op(
    shape=_attribute_shape,
    dtype=_integers_dtype,
    reference=lambda key, *, low, high, shape, dtype: np.asarray(
        jax.random.randint(key, shape, low, high, _integers_dtype(dtype=dtype))
    ),
    cases=[
        case(low=-2, high=5, shape=(3, 4)),
        case(low=0, high=3, shape=(2,), dtype="uint8"),
        case(low=0, high=3, shape=()),
        misuse("attribute 'low' must be an int, got 'zero'", low="zero", high=2),
    ],
)
def random_integers(
    key: Key,
    *,
    low: int,
    high: int,
    shape: Several = (),
    dtype: np.dtype | None = None,
) -> Array:
    """Whole numbers from ``low`` up to and without ``high``, all equally probable.

    Example:
        >>> import jax
        >>> random_integers(key=jax.random.key(0), low=3, high=4, shape=(2,))
        Array([3, 3], dtype=int32)
    """
    return jax.random.randint(key, shape, low, high, _integers_dtype(dtype=dtype))


random_integers.no_gradient("its result is an integer")


def _categorical_shape(logits: Shape, *, axis: int, shape: Shape | None) -> Shape:
    at = normalize_axis(axis, len(logits))
    batch = (*logits[:at], *logits[at + 1 :])
    return drawn_shape(shape, batch)


def _categorical_dtype(logits: VarType) -> DType:
    real(logits)
    if not is_inexact(logits.dtype):
        raise DTypeError(f"logits must be floating, got {logits.dtype.name}")
    return default_int()


def _categorical_reference(
    logits: np.ndarray, key: Any, *, axis: int, shape: Shape | None
) -> np.ndarray:
    # The largest of logits with independent Gumbel noise (Gumbel 1954): JAX draws the noise.
    last = np.moveaxis(logits, axis, -1).astype(np.float32)
    drawn = jax.random.categorical(key, last, -1, shape)
    return np.asarray(drawn).astype(default_int())


@op(
    shape=_categorical_shape,
    dtype=_categorical_dtype,
    reference=_categorical_reference,
    cases=[
        case(logits=(3, 4)),
        case(logits=(4, 3), axis=0, dtypes=("float32",)),
        case(logits=(4,), shape=(2, 3)),
        misuse("logits must be floating, got int32", logits=integers(3, high=4)),
        misuse("axis must be in [-2, 2), got 2", logits=(3, 4), axis=2),
    ],
)
def random_categorical(
    logits: Array, key: Key, *, axis: int = -1, shape: Several | None = None
) -> Array:
    """Which class is drawn, with probabilities ``softmax(logits)`` along ``axis``.

    The result has the shape of ``logits`` without ``axis``, or the given ``shape``, to which that
    broadcasts.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> random_categorical(jnp.asarray([0.0, 99.0]), key=jax.random.key(0), shape=(3,))
        Array([1, 1, 1], dtype=int32)
    """
    last = jnp.moveaxis(jnp.asarray(logits).astype(np.float32), axis, -1)
    drawn = jax.random.categorical(key, last, -1, fitted(shape, last[..., 0]))
    return lax.convert_element_type(drawn, default_int())


random_categorical.no_gradient(_JUMPS)


# permutation -----------------------------------------------------------------------------------


def _permutation_dtype(x: VarType) -> DType:
    return x.dtype


def _permutation_reference(x: np.ndarray, key: Any, *, axis: int, inverse: bool) -> np.ndarray:
    order = np.asarray(jax.random.permutation(key, x.shape[axis]))
    return np.take(x, np.argsort(order) if inverse else order, axis)


@op(
    shape=along_axis,
    dtype=_permutation_dtype,
    reference=_permutation_reference,
    cases=[
        case(x=(5, 3)),
        case(x=(3, 4), axis=1, inverse=True),
        case(x=integers(6, high=9)),
        case(x=(0, 2)),
        workload(x=(2048, 512)),
        misuse("axis must be in [-1, 1), got 1", x=(3,), axis=1),
    ],
)
def random_permutation(x: Array, key: Key, *, axis: int = 0, inverse: bool = False) -> Array:
    """``x`` with its slices along ``axis`` in random order; ``inverse`` undoes it for the same key.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> key = jax.random.key(0)
        >>> random_permutation(random_permutation(jnp.arange(3), key=key), key=key, inverse=True)
        Array([0, 1, 2], dtype=int32)
    """
    x = jnp.asarray(x)
    order = jax.random.permutation(key, x.shape[axis])
    if inverse:
        order = jnp.argsort(order)
    found = jnp.take(x, order, axis, unique_indices=True, mode="clip") if x.size else x
    return lax.convert_element_type(found, x.dtype)


@random_permutation.gradient
def _random_permutation_gradient(key: Var, d_out: Var, *, axis: int, inverse: bool) -> Grads:
    return {"x": random_permutation(d_out, key=key, axis=axis, inverse=not inverse)}
