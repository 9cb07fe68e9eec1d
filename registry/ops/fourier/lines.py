"""Discrete Fourier transforms along one axis."""

from collections.abc import Callable
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, workload
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.complex_parts import conj
from registry.ops.fourier.bins import scale_paired_bins
from registry.ops.fourier.transforms import (
    OPPOSITE,
    Norm,
    complex_dtype,
    complex_of_real,
    fitted,
    real_dtype,
    replaced,
    require_entries,
    transform,
)
from registry.shapes import REFUSES_INTEGERS, normalize_axis
from registry.table import op
from registry.types import Shape
from registry.var import Var

Size = Annotated[int | None, Check("be positive", lambda n: n is None or n > 0)]
"""The number of transformed entries."""

# Rules -----------------------------------------------------------------------------------------


def _whole_shape(x: Shape, *, n: int | None, axis: int) -> Shape:
    at = normalize_axis(axis, len(x))
    return replaced(x, at, require_entries(x[at] if n is None else n, x))


def _half_shape(x: Shape, *, n: int | None, axis: int) -> Shape:
    whole, at = _whole_shape(x, n=n, axis=axis), normalize_axis(axis, len(x))
    return replaced(whole, at, whole[at] // 2 + 1)


def _from_half_shape(x: Shape, *, n: int | None, axis: int) -> Shape:
    at = normalize_axis(axis, len(x))
    return replaced(x, at, require_entries(2 * (x[at] - 1) if n is None else n, x))


def _by_numpy(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A NumPy reference."""

    def reference(
        x: np.ndarray, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> np.ndarray:
        return np.asarray(function(x, n, axis, norm))

    return reference


_MISUSES = [
    misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
    misuse("axis must be in [0, 0), got -1", x=()),
    misuse("attribute 'n' must be positive, got 0", x=(3,), n=0),
    misuse("attribute 'norm' must be one of 'backward', 'ortho', 'forward'", x=(3,), norm="half"),
    REFUSES_INTEGERS,
]
_REFUSES_COMPLEX = misuse("the inputs must be real, got complex64", x=np.ones(3, np.complex64))
_WHOLE_CASES = [
    case(x=(3, 4)),
    case(x=(5,), norm="ortho"),
    case(x=(5, 2), axis=0, n=4, norm="forward"),
    case(x=(2, 3, 2), axis=-2, n=6),
    case(x=(1,)),
    case(x=(3,), n=1, order=1),
    case(x=(2,), norm="forward"),
    case(x=(0, 3), order=1),
    case(x=(2, 0), n=3, order=1),
    workload(x=(64, 1024)),
    misuse("a transform must have at least one entry, got 0", x=(2, 0)),
    *_MISUSES,
]
_HALF_CASES = [
    case(x=(3, 4)),
    case(x=(4,), norm="ortho"),
    case(x=(3,), n=5, norm="ortho"),
    case(x=(5, 2), axis=0, n=4, norm="forward"),
    case(x=(2, 3, 2), axis=-2, n=6),
    case(x=(2,)),
    case(x=(3,), n=1, order=1),
    case(x=(0, 3), order=1),
    workload(x=(64, 513)),
    misuse("a transform must have at least one entry, got 0", x=(2, 1)),
    *_MISUSES,
]

# Complex numbers -------------------------------------------------------------------------------


@op(
    shape=_whole_shape,
    dtype=complex_dtype,
    reference=_by_numpy(np.fft.fft),
    cases=_WHOLE_CASES,
    costly=True,
)
def fft(x: Array, *, n: Size = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Discrete Fourier transform along ``axis``: ``out[k] = sum(x[j] * exp(-2 pi i j k / n))``.

    The first ``n`` entries are transformed, by default all; shorter inputs are padded with zeros.
    With ``norm="forward"`` the result is divided by ``n``, with ``"ortho"`` by its square root.
    Half precision is computed in single precision, and the result is complex.

    Source: Python array API standard 2024.12, ``fft.fft``.

    Example:
        >>> import jax.numpy as jnp
        >>> fft(jnp.asarray([1.0, 2.0, 0.0, 2.0]))
        Array([ 5.+0.j,  1.+0.j, -3.+0.j,  1.+0.j], dtype=complex64)
    """
    return transform(jnp.fft.fft, x, n, axis, norm=norm)


@fft.gradient
def _fft_gradient(x: Var, d_out: Var, *, axis: int, norm: Norm) -> Grads:
    return {"x": fitted(fft(d_out, axis=axis, norm=norm), x)}


@op(
    shape=_whole_shape,
    dtype=complex_dtype,
    reference=_by_numpy(np.fft.ifft),
    cases=_WHOLE_CASES,
    costly=True,
)
def ifft(x: Array, *, n: Size = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Inverse of ``fft`` along ``axis``: ``out[j] = sum(x[k] * exp(2 pi i j k / n)) / n``.

    ``n`` and dtypes are as in ``fft``. The divisor is ``n`` with ``norm="backward"``, its square
    root with ``"ortho"``, and one with ``"forward"``.

    Source: Python array API standard 2024.12, ``fft.ifft``.

    Example:
        >>> import jax.numpy as jnp
        >>> ifft(jnp.asarray([5.0, 1.0, -3.0, 1.0]))
        Array([1.+0.j, 2.+0.j, 0.+0.j, 2.+0.j], dtype=complex64)
    """
    return transform(jnp.fft.ifft, x, n, axis, norm=norm)


@ifft.gradient
def _ifft_gradient(x: Var, d_out: Var, *, axis: int, norm: Norm) -> Grads:
    return {"x": fitted(ifft(d_out, axis=axis, norm=norm), x)}


# Real numbers ----------------------------------------------------------------------------------


def _back_to_real(x: Var, bins: Var, n: int | None, axis: int, norm: Norm) -> Grads:
    """The transpose of ``rfft`` at ``conj(bins)``.

    ``dx_j = Re sum_k u_k w^(jk)`` over the kept bins is ``n irfft(conj(u) / weights)``.
    """
    whole = x.shape[axis] if n is None else n
    halved = scale_paired_bins(bins, n=whole, factor=0.5, axis=axis)
    return {"x": fitted(irfft(halved, n=whole, axis=axis, norm=OPPOSITE[norm]), x)}


def _forth_to_bins(d_out: Var, axis: int, norm: Norm) -> Var:
    """The conjugate of the transpose of ``irfft``.

    ``out_j = Re sum_k weight_k x_k w^(-jk) / n``, so ``dx_k = weight_k sum_j u_j w^(-jk) / n``.
    """
    half = rfft(d_out, axis=axis, norm=OPPOSITE[norm])
    doubled: Var = scale_paired_bins(half, n=d_out.shape[axis], factor=2.0, axis=axis)
    return doubled


@op(
    shape=_half_shape,
    dtype=complex_of_real,
    reference=_by_numpy(np.fft.rfft),
    cases=[*_WHOLE_CASES, _REFUSES_COMPLEX],
    costly=True,
)
def rfft(x: Array, *, n: Size = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Discrete Fourier transform of real numbers, without the redundant conjugate bins.

    The result has the first ``n // 2 + 1`` of ``n`` bins; the others follow from
    ``out[-k] = conj(out[k])``. ``n`` and ``norm`` are as in ``fft``.

    Source: Python array API standard 2024.12, ``fft.rfft``.

    Example:
        >>> import jax.numpy as jnp
        >>> rfft(jnp.asarray([1.0, 2.0, 0.0, 2.0]))
        Array([ 5.+0.j,  1.+0.j, -3.+0.j], dtype=complex64)
    """
    return transform(jnp.fft.rfft, x, n, axis, norm=norm)


@rfft.gradient
def _rfft_gradient(x: Var, d_out: Var, *, n: int | None, axis: int, norm: Norm) -> Grads:
    return _back_to_real(x, conj(d_out), n, axis, norm)


@op(
    shape=_from_half_shape,
    dtype=real_dtype,
    reference=_by_numpy(np.fft.irfft),
    cases=_HALF_CASES,
    costly=True,
)
def irfft(x: Array, *, n: Size = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Inverse of ``rfft``: the ``n`` real numbers whose first bins are ``x``.

    For ``m`` bins ``n`` defaults to ``2 (m - 1)``; an odd number must be given. Bins beyond
    ``n // 2 + 1`` are dropped, missing ones are zero, and the imaginary parts of the first bin and,
    for an even ``n``, of the middle bin are taken as zero. ``norm`` is as in ``ifft``.

    Source: Python array API standard 2024.12, ``fft.irfft``.

    Example:
        >>> import jax.numpy as jnp
        >>> irfft(jnp.asarray([5.0, 1.0, -3.0]))
        Array([1., 2., 0., 2.], dtype=float32)
    """
    return transform(jnp.fft.irfft, x, n, axis, norm=norm)


@irfft.gradient
def _irfft_gradient(x: Var, d_out: Var, *, axis: int, norm: Norm) -> Grads:
    return {"x": fitted(conj(_forth_to_bins(d_out, axis, norm)), x)}


@op(
    shape=_from_half_shape,
    dtype=real_dtype,
    reference=_by_numpy(np.fft.hfft),
    cases=_HALF_CASES,
    costly=True,
)
def hfft(x: Array, *, n: Size = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Discrete Fourier transform of Hermitian-symmetric input, ``x[-j] = conj(x[j])``: it is real.

    Only the first ``n // 2 + 1`` of the ``n`` numbers are given, and ``n`` is as in ``irfft``. The
    result is ``irfft(conj(x))`` with the divisor of ``fft``.

    Source: Python array API standard 2024.12, ``fft.hfft``.

    Example:
        >>> import jax.numpy as jnp
        >>> hfft(jnp.asarray([1.0, 2.0, 0.0]))
        Array([ 5.,  1., -3.,  1.], dtype=float32)
    """
    return transform(jnp.fft.irfft, jnp.conj(x), n, axis, norm=OPPOSITE[norm])


@hfft.gradient
def _hfft_gradient(x: Var, d_out: Var, *, axis: int, norm: Norm) -> Grads:
    # The conjugate before irfft becomes one after its transpose.
    return {"x": fitted(_forth_to_bins(d_out, axis, OPPOSITE[norm]), x)}


@op(
    shape=_half_shape,
    dtype=complex_of_real,
    reference=_by_numpy(np.fft.ihfft),
    cases=[*_WHOLE_CASES, _REFUSES_COMPLEX],
    costly=True,
)
def ihfft(x: Array, *, n: Size = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Inverse of ``hfft``: the first ``n // 2 + 1`` numbers of the inverse transform of ``x``.

    The result is ``conj(rfft(x))`` with the divisor of ``ifft``.

    Source: Python array API standard 2024.12, ``fft.ihfft``.

    Example:
        >>> import jax.numpy as jnp
        >>> ihfft(jnp.asarray([5.0, 1.0, -3.0, 1.0]))
        Array([1.-0.j, 2.-0.j, 0.-0.j], dtype=complex64)
    """
    return jnp.conj(transform(jnp.fft.rfft, x, n, axis, norm=OPPOSITE[norm]))


@ihfft.gradient
def _ihfft_gradient(x: Var, d_out: Var, *, n: int | None, axis: int, norm: Norm) -> Grads:
    # The conjugate after rfft becomes one before its transpose.
    return _back_to_real(x, d_out, n, axis, OPPOSITE[norm])
