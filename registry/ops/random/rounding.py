"""Random rounding to a narrower dtype, which preserves the expectation."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array, Key
from registry.ops.core.broadcasting import unbroadcast
from registry.shapes import real_inexact
from registry.table import op
from registry.types import DType, VarType, is_floating
from registry.var import Var

_BFLOAT16 = np.dtype(jnp.bfloat16)


def _is_narrow(dtype: DType) -> bool:
    return is_floating(dtype) and dtype.itemsize <= 4


Narrow = Annotated[np.dtype, Check("be a floating dtype of at most 32 bits", _is_narrow)]


def _rounded_dtype(x: VarType, *, dtype: DType) -> DType:
    real_inexact(x)
    return dtype


def _ends(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """The largest and the smallest finite number, since some dtypes of 8 bits have no infinity."""
    info = jnp.finfo(dtype)  # type: ignore[no-untyped-call]
    return np.asarray(info.max, dtype), np.asarray(info.min, dtype)


def _rounded_reference(x: np.ndarray, key: Any, *, dtype: DType) -> np.ndarray:
    share = np.asarray(jax.random.uniform(key, x.shape))
    nearest = x.astype(dtype)
    error = x.astype(np.float64) - nearest.astype(np.float64)
    way = np.where(error > 0, *_ends(dtype))
    other = np.nextafter(nearest, way)
    gap = np.abs(other.astype(np.float64) - nearest.astype(np.float64))
    with np.errstate(invalid="ignore"):
        chance = np.where(np.isfinite(gap), np.abs(error) / gap, 0)
    return np.where(share < chance, other, nearest)


@op(
    shape=lambda x: x,
    dtype=_rounded_dtype,
    reference=_rounded_reference,
    gradient_reference=lambda x, key, *, d_out, dtype: {"x": d_out.astype(x.dtype)},
    native=False,
    cases=[
        case(x=(3, 4), order=2),
        case(x=(40,), dtype="float16"),
        case(x=(3,), dtype="float32"),
        case(x=(0, 2), dtype="float8_e5m2"),
        case(x=(40,), dtype="float8_e4m3fn"),
        workload(x=(1024, 1024)),
        misuse("attribute 'dtype' must be a floating dtype", x=(3,), dtype="int32"),
        misuse("must be floating, got int32", x=integers(3, high=4)),
    ],
)
def stochastic_round(x: Array, key: Key, *, dtype: Narrow = _BFLOAT16) -> Array:
    """Rounds to one of the two neighbors in ``dtype``, at random, so that the expectation is ``x``.

    A neighbor is chosen with a probability proportional to the distance of the other one. Small
    updates of parameters in a narrow dtype are not lost then, as they are by rounding to nearest.
    Numbers beyond the largest of ``dtype`` are rounded to nearest: to an infinity, if far enough,
    or to NaN if ``dtype`` has none. The gradient is that of the identity.

    Source: Gupta et al., Deep Learning with Limited Numerical Precision, 2015.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> x = jnp.full(1000, 1.001)  # between 1 and 1.0078125
        >>> rounded = stochastic_round(x, key=jax.random.key(0))
        >>> sorted(set(rounded.tolist()))
        [1.0, 1.0078125]
        >>> bool(abs(rounded.astype("float32").mean() - 1.001) < 1e-3)
        True
    """
    x = jnp.asarray(x)
    wide = jnp.promote_types(x.dtype, np.float32)
    nearest = x.astype(dtype)
    error = x.astype(wide) - nearest.astype(wide)
    other = _neighbor(nearest, error > 0)
    gap = jnp.abs(other.astype(wide) - nearest.astype(wide))
    # The share of the gap; beyond the largest number it is infinite or none, and NaN has none.
    chance = jnp.where(jnp.isfinite(gap), jnp.abs(error) / gap, 0)
    share = jax.random.uniform(key, x.shape)
    return jnp.where(share < chance, other, nearest)


def _neighbor(x: Array, above: Array) -> Array:
    """The next number of the dtype, above or below; of the largest it may be the same number."""
    dtype = np.dtype(x.dtype)
    if dtype.itemsize > 1:
        return jnp.nextafter(x, jnp.where(above, jnp.inf, -jnp.inf).astype(dtype))
    # JAX's function knows only formats with infinities and a negative zero.
    numbers = _numbers(dtype)
    place = jnp.searchsorted(numbers, x.astype(np.float32)) + jnp.where(above, 1, -1)
    return jnp.take(numbers, place, mode="clip").astype(dtype)


def _numbers(dtype: DType) -> np.ndarray:
    """All finite numbers of a dtype of one byte, in order."""
    every = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    return np.unique(every[np.isfinite(every)]) + np.float32(0)  # no negative zero


@stochastic_round.gradient
def _stochastic_round_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out, x)}
