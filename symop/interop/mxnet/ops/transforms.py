"""Fourier transforms in interleaved form, and the count sketch."""

from typing import Any

import symop as so
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.indexing import whole


@operator("_contrib_fft", ignored=("compute_size",))
def fft(data: Any) -> Any:
    """The Fourier transform along the last axis, with real and imaginary parts interleaved."""
    numbers = so.fft(data)
    pairs = so.stack(so.real(numbers), so.imag(numbers), axis=-1)
    made = so.reshape(pairs, shape=(*data.shape[:-1], 2 * data.shape[-1]))
    return so.cast(made, dtype=data.dtype)


@operator("_contrib_ifft", ignored=("compute_size",))
def ifft(data: Any) -> Any:
    """The real part of the inverse of ``_contrib_fft``, multiplied by the length.

    ``sum over k of re[k] cos(a j k) - im[k] sin(a j k)`` is the real part of the transform of
    ``re`` plus the imaginary part of the transform of ``im``.
    """
    pairs = so.reshape(data, shape=(*data.shape[:-1], data.shape[-1] // 2, 2))
    real, imaginary = so.unstack(pairs, axis=-1)
    made = so.real(so.fft(real)) + so.imag(so.fft(imaginary))
    return so.cast(made, dtype=data.dtype)


@operator("_contrib_count_sketch", ignored=("processing_batch_size",))
def count_sketch(data: Any, h: Any, s: Any, *, out_dim: int) -> Any:
    """The count sketch: sums of entries with signs ``s`` at the indices ``h``, last axis."""
    zeros = so.broadcast_to(so.zeros_like(data[..., :1]), shape=(*data.shape[:-1], out_dim))
    signs = so.reshape(s, shape=(-1,))
    return so.index_add(zeros, so.reshape(whole(h), shape=(-1,)), data * signs, axis=-1)
