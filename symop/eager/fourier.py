"""``so.nd.fft``: the Fourier extension of the array API, built from operators.

The module is not called ``fft``, since ``so.fft`` is the operator of that name.
"""

from collections.abc import Callable
from typing import Any

from registry.table import get
from symop.eager.array_calls import array_function
from symop.eager.ndarray import NDArray

__all__ = ["fft"]

_TRANSFORMS = (
    "fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft",
    "fftshift", "ifftshift",
)  # fmt: skip


def _frequencies(name: str, of: str) -> Callable[..., NDArray]:
    def frequencies(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> NDArray:
        array = NDArray(get(name)(n=n, d=d, dtype=dtype))
        return array if device is None else array.to_device(device)

    frequencies.__name__ = frequencies.__qualname__ = name
    frequencies.__doc__ = (
        f"Frequency of each bin of ``{of}``, for ``n`` samples at a distance of ``d``."
    )
    return frequencies


fft: Any = array_function(get("fft"))
"""The operator ``fft`` on arrays, with the functions of the extension as attributes.

Example:
    >>> import symop as so
    >>> so.nd.fft.rfftfreq(4, d=0.5)
    NDArray([0. , 0.5, 1. ], dtype=float32)
"""
for _name in _TRANSFORMS:
    setattr(fft, _name, array_function(get(_name)))
fft.fftfreq, fft.rfftfreq = _frequencies("fftfreq", "fft"), _frequencies("rfftfreq", "rfft")
