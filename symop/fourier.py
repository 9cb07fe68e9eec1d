"""``so.nd.fft``: the Fourier extension of the array API, made of operators.

The module is not called ``fft``, as ``so.fft`` is the operator of that name.
"""

from typing import Any

from registry.table import get
from symop.array_calls import ArrayOperator
from symop.ndarray import NDArray

__all__ = ["FourierNamespace", "fft"]


def _placed(name: str, n: int, d: float, dtype: Any, device: Any) -> NDArray:
    made = NDArray(get(name)(n=n, d=d, dtype=dtype))
    return made if device is None else made.to_device(device)


class FourierNamespace(ArrayOperator):
    """The operator ``fft`` on arrays, and the functions of the extension as its attributes.

    Example:
        >>> import symop as so
        >>> so.nd.fft.rfftfreq(4, d=0.5)
        NDArray([0. , 0.5, 1. ], dtype=float32)
    """

    fft = ArrayOperator(get("fft"))
    ifft = ArrayOperator(get("ifft"))
    fftn = ArrayOperator(get("fftn"))
    ifftn = ArrayOperator(get("ifftn"))
    rfft = ArrayOperator(get("rfft"))
    irfft = ArrayOperator(get("irfft"))
    rfftn = ArrayOperator(get("rfftn"))
    irfftn = ArrayOperator(get("irfftn"))
    hfft = ArrayOperator(get("hfft"))
    ihfft = ArrayOperator(get("ihfft"))
    fftshift = ArrayOperator(get("fftshift"))
    ifftshift = ArrayOperator(get("ifftshift"))

    @staticmethod
    def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> NDArray:
        """Frequency of each bin of ``fft``, for ``n`` samples at a distance of ``d``."""
        return _placed("fftfreq", n, d, dtype, device)

    @staticmethod
    def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> NDArray:
        """Frequency of each bin of ``rfft``, for ``n`` samples at a distance of ``d``."""
        return _placed("rfftfreq", n, d, dtype, device)


fft = FourierNamespace(get("fft"))
