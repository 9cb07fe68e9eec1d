"""``so.nd``: operators on eager arrays, the arrays themselves, and the Python array API."""

import sys as _sys
from collections.abc import Callable as _Callable
from typing import Any as _Any

from registry.foreign_names import foreign as _foreign
from registry.table import find as _find
from registry.table import get as _get
from registry.table import listeners as _listeners
from registry.table import names as _names
from registry.types import OpReqType
from symop import array_api as _api
from symop import array_methods as _methods  # arrays have the functions as methods from here on
from symop import array_operators as _operators  # arrays have Python's operators from here on
from symop import linalg
from symop.array_calls import array_function as _array_function
from symop.fourier import fft
from symop.ndarray import NDArray
from symop.recording import direct
from symop.recording import settle as _settle

__all__ = ["NDArray", "OpReqType", "array", "direct", "fft", "linalg", "waitall"]


def array(data: _Any, dtype: _Any = None, ctx: _Any = None) -> NDArray:
    """An eager array of ``data``: numbers, nested lists, a NumPy array, a ``jax.Array``.

    Numbers and lists of floats are of JAX's default float dtype, float32 unless x64 is on. A
    ``jax.Array`` is taken without a copy; it cannot change, so nothing that is done to the eager
    array is seen in it. Of an eager array it is a copy, recorded where that array is.

    Args:
        data: the entries.
        dtype: the dtype; by default that of the data.
        ctx: the device to put it on, such as ``"cpu:0"``.

    Raises:
        GradientError: the data are a list with recorded arrays, or a recorded array to be moved.

    Example:
        >>> array([[1, 2], [3, 4]], dtype="float32")
        NDArray([[1., 2.],
                 [3., 4.]], dtype=float32)
    """
    return _api.made_of("array", data, dtype, ctx)


def waitall() -> None:
    """Run what this thread has recorded; a value that is asked for then is there, or on its way."""
    _settle()


def __getattr__(name: str) -> _Any:
    """A function of the array API, or the operator called ``name`` on arrays."""
    found = getattr(_api, name) if name in _api.FUNCTIONS else _operator(name)
    globals()[name] = found  # the next look finds it at once
    return found


def _operator(name: str) -> _Callable[..., _Any]:
    """The operator called ``name``, also one that computes a gradient."""
    if name.startswith("_") and not _foreign(name):
        found = None if name.startswith("__") else _find(name)
        if found is None:
            raise AttributeError(name)
        return _array_function(found)
    try:
        return _array_function(_get(name))
    except LookupError as error:
        raise AttributeError(f"nd: {error}", name=name) from None


def _forget(name: str) -> None:
    """An operator of that name came, or went; ``fft`` is more than an operator and stays."""
    if name not in __all__ and hasattr(globals().get(name), "operator"):
        del globals()[name]


_listeners.append(_forget)


def __dir__() -> list[str]:
    """The operators, and what this module exports beside them."""
    return sorted({*__all__, *_api.FUNCTIONS, *_names(aliases=True)})


del _methods, _operators
NDArray.namespace = _sys.modules[__name__]
