"""The bins of Fourier transforms: their frequencies, their order, and their multiplicity."""

from collections.abc import Callable
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.arranging import roll
from registry.ops.core.matrices import part_of
from registry.shapes import (
    canonical,
    default_float,
    normalize_axes,
    normalize_axis,
    promote,
    strong_inexact,
)
from registry.table import op
from registry.types import DType, Shape, is_floating
from registry.var import Var

Axes = int | tuple[int, ...] | None

# Frequencies -----------------------------------------------------------------------------------


def _is_real(dtype: DType | None) -> bool:
    return dtype is None or is_floating(dtype)


Count = Annotated[int, Check("be positive", lambda n: n > 0)]
Spacing = Annotated[float, Check("not be zero", lambda d: d != 0)]
Real = Annotated[np.dtype | None, Check("be real and floating", _is_real)]


def _fftfreq_shape(*, n: int) -> Shape:
    return (n,)


def _rfftfreq_shape(*, n: int) -> Shape:
    return (n // 2 + 1,)


def _dtype(*, dtype: DType | None) -> DType:
    return default_float() if dtype is None else canonical(dtype)


_FREQUENCY_CASES = [
    case(n=6),
    case(n=5, d=0.25),
    case(n=1),
    case(n=4, d=-2.0, dtype="float32"),
    case(n=3, dtype="float16"),
    misuse("attribute 'n' must be positive, got 0", n=0),
    misuse("attribute 'd' must not be zero, got 0.0", n=2, d=0.0),
    misuse("attribute 'dtype' must be real and floating", n=2, dtype="int32"),
    misuse("attribute 'dtype' must be real and floating", n=2, dtype="complex64"),
]


def _frequencies(places: Array, n: int, d: float, dtype: DType) -> Array:
    wide = jnp.promote_types(dtype, np.float32)  # a position may not fit in half precision
    return (places.astype(wide) / jnp.asarray(n * d, wide)).astype(dtype)


@op(
    shape=_fftfreq_shape,
    dtype=_dtype,
    reference=lambda *, n, d=1.0, dtype=None: np.fft.fftfreq(n, d).astype(_dtype(dtype=dtype)),
    cases=_FREQUENCY_CASES,
)
def fftfreq(*, n: Count, d: Spacing = 1.0, dtype: Real = None) -> Array:
    """Frequencies of the bins of ``fft`` for ``n`` samples with spacing ``d``.

    ``[0, 1, ..., (n - 1) // 2, -(n // 2), ..., -1] / (n d)``, by default in the default floating
    dtype.

    Source: Python array API standard 2024.12, ``fft.fftfreq``.

    Example:
        >>> fftfreq(4, 0.5)
        Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
    places = lax.iota(np.int32, n)
    below = jnp.where(places < (n + 1) // 2, places, places - n)
    return _frequencies(below, n, d, _dtype(dtype=dtype))


@op(
    shape=_rfftfreq_shape,
    dtype=_dtype,
    reference=lambda *, n, d=1.0, dtype=None: np.fft.rfftfreq(n, d).astype(_dtype(dtype=dtype)),
    cases=_FREQUENCY_CASES,
)
def rfftfreq(*, n: Count, d: Spacing = 1.0, dtype: Real = None) -> Array:
    """Frequencies of the bins of ``rfft`` for ``n`` samples with spacing ``d``.

    ``[0, 1, ..., n // 2] / (n d)``, by default in the default floating dtype. The Nyquist frequency
    of an even ``n`` is positive here, and negative in ``fftfreq``.

    Source: Python array API standard 2024.12, ``fft.rfftfreq``.

    Example:
        >>> rfftfreq(4, 0.5)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return _frequencies(lax.iota(np.int32, n // 2 + 1), n, d, _dtype(dtype=dtype))


fftfreq.zero_gradient("it has no inputs")
rfftfreq.zero_gradient("it has no inputs")

# Order -----------------------------------------------------------------------------------------


def _shift_shape(x: Shape, *, axes: Axes) -> Shape:
    normalize_axes(axes, len(x))
    return x


def _by_numpy(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A NumPy reference; NumPy rejects arrays without axes."""

    def reference(x: np.ndarray, *, axes: Axes = None) -> np.ndarray:
        return np.asarray(function(x, axes) if x.ndim else x)

    return reference


def _shifted(x: Array, axes: Axes, sign: int) -> Array:
    for axis in normalize_axes(axes, jnp.ndim(x)):
        x = roll.kernel(x, shift=sign * (x.shape[axis] // 2), axis=axis)
    return jnp.asarray(x)


_SHIFT_CASES = [
    case(x=(3, 4)),
    case(x=(3, 4), axes=1),
    case(x=(2, 5, 3), axes=(0, -2)),
    case(x=(3,), axes=()),
    case(x=(1,)),
    case(x=()),
    case(x=(0, 3)),
    case(x=integers(5, high=9)),
    workload(x=(1024, 1024), axes=1),
    misuse("axis must be in [-1, 1), got 1", x=(3,), axes=1),
    misuse("axes must be distinct, got (0, -1)", x=(3,), axes=(0, -1)),
]


@op(
    rearranges=True,
    shape=_shift_shape,
    dtype=promote,
    reference=_by_numpy(np.fft.fftshift),
    cases=_SHIFT_CASES,
)
def fftshift(x: Array, *, axes: int | tuple[int, ...] | None = None) -> Array:
    """Shifts the zero-frequency bin of ``x`` to the center, position ``n // 2``.

    The shift is along each of ``axes``, by default along all. Frequencies then ascend.

    Source: Python array API standard 2024.12, ``fft.fftshift``.

    Example:
        >>> import jax.numpy as jnp
        >>> fftshift(jnp.asarray([0, 1, 2, -2, -1]))
        Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return _shifted(x, axes, 1)


@fftshift.gradient
def _fftshift_gradient(d_out: Var, *, axes: Axes) -> Grads:
    return {"x": ifftshift(d_out, axes=axes)}


@op(
    rearranges=True,
    shape=_shift_shape,
    dtype=promote,
    reference=_by_numpy(np.fft.ifftshift),
    cases=_SHIFT_CASES,
)
def ifftshift(x: Array, *, axes: int | tuple[int, ...] | None = None) -> Array:
    """Inverse of ``fftshift``: shifts the center entry to the front.

    Source: Python array API standard 2024.12, ``fft.ifftshift``.

    Example:
        >>> import jax.numpy as jnp
        >>> ifftshift(jnp.asarray([-2, -1, 0, 1, 2]))
        Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shifted(x, axes, -1)


@ifftshift.gradient
def _ifftshift_gradient(d_out: Var, *, axes: Axes) -> Grads:
    return {"x": fftshift(d_out, axes=axes)}


# Paired bins -----------------------------------------------------------------------------------


def _paired_shape(x: Shape, *, n: int, axis: int) -> Shape:
    at = normalize_axis(axis, len(x))
    if x[at] != n // 2 + 1:
        raise ShapeError(f"x must have the {n // 2 + 1} bins of {n} entries, got {x[at]}")
    return x


def _paired_reference(x: np.ndarray, *, n: int, factor: float, axis: int = -1) -> np.ndarray:
    scaled = np.moveaxis(np.copy(x), axis, -1)
    scaled[..., 1 : (n + 1) // 2] *= np.asarray(factor, x.dtype)
    return np.moveaxis(scaled, -1, axis)


@op(
    shape=_paired_shape,
    dtype=strong_inexact,
    reference=_paired_reference,
    cases=[
        case(x=(3, 4), n=6, factor=2.0),
        case(x=(3, 2), n=5, factor=0.5, axis=0),
        case(x=(2,), n=2, factor=-2.0),
        case(x=(1,), n=1, factor=2.0),
        case(x=(0, 2), n=3, factor=2.0),
        workload(x=(64, 513), n=1024, factor=2.0),
        misuse("x must have the 3 bins of 4 entries, got 2", x=(2,), n=4, factor=2.0),
        misuse("axis must be in [-1, 1), got 1", x=(2,), n=3, factor=2.0, axis=1),
        misuse("attribute 'n' must be positive, got 0", x=(1,), n=0, factor=2.0),
        misuse("the inputs must be floating", x=np.zeros(2, np.int32), n=3, factor=2.0),
    ],
)
def scale_paired_bins(
    x: Array,
    *,
    n: Annotated[int, Check("be positive", lambda n: n > 0)],
    factor: float,
    axis: int = -1,
) -> Array:
    """Multiplies by ``factor`` the bins of ``rfft`` that represent two bins of ``fft``.

    Of the ``n // 2 + 1`` bins of ``n`` real numbers, these are all but the first and, if ``n`` is
    even, the last. With ``factor=2`` a sum over the stored bins, of energies for example, equals
    the sum over all bins.

    Example:
        >>> import jax.numpy as jnp
        >>> scale_paired_bins(jnp.ones(3), n=4, factor=2.0)
        Array([1., 2., 1.], dtype=float32)
    """
    x = jnp.asarray(x)
    x = lax.convert_element_type(x, x.dtype)  # not weak
    real = part_of(x.dtype)
    place = lax.broadcasted_iota(np.int32, x.shape, axis % x.ndim)
    paired = (place > 0) & (place < (n + 1) // 2)
    factors = jnp.where(paired, jnp.asarray(factor, real), jnp.asarray(1, real))
    if x.dtype != real:
        return lax.complex(lax.real(x) * factors, lax.imag(x) * factors)
    return x * factors


@scale_paired_bins.gradient
def _scale_paired_bins_gradient(d_out: Var, *, n: int, factor: float, axis: int) -> Grads:
    return {"x": scale_paired_bins(d_out, n=n, factor=factor, axis=axis)}


@scale_paired_bins.simplify
def _scale_paired_bins_simplify(x: Var, *, n: int, factor: float) -> Var | None:
    return x if n <= 2 or factor == 1 else None
