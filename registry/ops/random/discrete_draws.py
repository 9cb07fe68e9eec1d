"""Random draws of integers, and random permutations.

Integer draws are not differentiable; a random permutation is, in the permuted entries.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, positive, uniform, workload
from registry.errors import DTypeError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array, Key
from registry.ops.random.sampling import Given, Lengths, drawn_dtype, drawn_shape, fitted
from registry.shapes import (
    along_axis,
    canonical,
    default_int,
    normalize_axis,
    real,
)
from registry.table import op
from registry.types import DType, Shape, VarType, is_inexact, is_integer
from registry.var import Var
from registry.xla.device_types import varied_alike

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
    aliases=["bernoulli"],
    cases=[
        case(p=uniform(3, 4, low=0.2, high=0.8)),
        case(p=uniform(low=0.2, high=0.8), shape=(2, 3), dtype="float32"),
        case(p=uniform(0, 3, low=0.2, high=0.8)),
        case(shape=(0,)),
        misuse("the parameters' shapes must broadcast to (2,), got (3,)", p=(3,), shape=(2,)),
    ],
)
def random_bernoulli(
    p: Given, key: Key, *, shape: Lengths | None = None, dtype: np.dtype | None = None
) -> Array:
    """Bernoulli draws: true with probability ``p``, which defaults to 1/2.

    With another ``dtype`` the results are ones and zeros.

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
    aliases=["poisson"],
    cases=[
        case(rate=uniform(3, 4, low=0.5, high=20.0)),
        case(rate=positive(), shape=(2, 3), dtype="float32"),
        case(rate=positive(0, 3)),
        case(shape=(4,)),
        misuse("the parameters' shapes must broadcast to (2,), got (3,)", rate=(3,), shape=(2,)),
    ],
)
def random_poisson(
    rate: Given, key: Key, *, shape: Lengths | None = None, dtype: np.dtype | None = None
) -> Array:
    """Poisson draws: numbers of events with mean ``rate``, which defaults to 1.

    The result has an integer dtype, or the given ``dtype``.

    Example:
        >>> import jax
        >>> random_poisson(0.0, key=jax.random.key(0), shape=(2,))
        Array([0, 0], dtype=int32)
    """
    rates = jnp.asarray(1.0 if rate is None else rate).astype(np.float32)
    key, rates = varied_alike([key, rates])
    draw = jax.random.poisson(key, rates, fitted(shape, rate))
    return lax.convert_element_type(draw, default_int() if dtype is None else canonical(dtype))


random_poisson.no_gradient(_JUMPS)


def _integers_dtype(*, dtype: DType | None) -> DType:
    chosen = default_int() if dtype is None else canonical(dtype)
    if not is_integer(chosen):
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
    aliases=["random_randint"],
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
    shape: Lengths = (),
    dtype: np.dtype | None = None,
) -> Array:
    """Uniform integer draws from ``low`` (inclusive) to ``high`` (exclusive).

    Example:
        >>> import jax
        >>> random_integers(key=jax.random.key(0), low=3, high=4, shape=(2,))
        Array([3, 3], dtype=int32)
    """
    return jax.random.randint(key, shape, low, high, _integers_dtype(dtype=dtype))


random_integers.no_gradient("its result is an integer")


def _categorical_shape(logits: Shape, *, axis: int, shape: Shape | None) -> Shape:
    at = normalize_axis(axis, len(logits))
    if not logits[at]:
        raise ShapeError(f"logits must hold a class along axis {axis}, got shape {logits}")
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
    # The argmax of logits with independent Gumbel noise (Gumbel 1954), which JAX draws.
    last = np.moveaxis(logits, axis, -1).astype(np.float32)
    drawn = jax.random.categorical(key, last, -1, shape)
    return np.asarray(drawn).astype(default_int())


@op(
    shape=_categorical_shape,
    dtype=_categorical_dtype,
    reference=_categorical_reference,
    aliases=["categorical"],
    cases=[
        case(logits=(3, 4)),
        case(logits=(4, 3), axis=0, dtypes=("float32",)),
        case(logits=(4,), shape=(2, 3)),
        case(logits=(0, 3)),
        misuse("logits must be floating, got int32", logits=integers(3, high=4)),
        misuse("axis must be in [-2, 2), got 2", logits=(3, 4), axis=2),
        misuse("logits must hold a class along axis 0, got shape (0, 3)", logits=(0, 3), axis=0),
    ],
)
def random_categorical(
    logits: Array, key: Key, *, axis: int = -1, shape: Lengths | None = None
) -> Array:
    """Categorical draws: class indices with probabilities ``softmax(logits)`` along ``axis``.

    The result has the shape of ``logits`` without ``axis``, or the given ``shape``, to which that
    shape broadcasts.

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
    aliases=["permutation", "shuffle"],
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
    """Permutes the slices of ``x`` along ``axis`` randomly; ``inverse`` undoes it for the same key.

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
    result = jnp.take(x, order, axis, unique_indices=True, mode="clip") if x.size else x
    return lax.convert_element_type(result, x.dtype)


@random_permutation.gradient
def _random_permutation_gradient(key: Var, d_out: Var, *, axis: int, inverse: bool) -> Grads:
    return {"x": random_permutation(d_out, key=key, axis=axis, inverse=not inverse)}
