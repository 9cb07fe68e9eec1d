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
from symop import control_flow as _flow
from symop import linalg
from symop.array_calls import array_function as _array_function
from symop.eager_flow import arrays_of as _arrays_of
from symop.fourier import fft
from symop.ndarray import NDArray
from symop.recording import direct
from symop.recording import settle as _settle

__all__ = [
    "NDArray",
    "OpReqType",
    "array",
    "cond",
    "direct",
    "fft",
    "foreach",
    "linalg",
    "scan",
    "waitall",
    "while_loop",
]
_Function = _Callable[..., _Any]


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


def cond(pred: _Any, true_fn: _Function, false_fn: _Function, *operands: _Any) -> _Any:
    """``so.cond`` on eager arrays; numbers and lists become some.

    Example:
        >>> cond(array(1.0) > 0, lambda x: x * 2, lambda x: x, array([1.0, 2.0]))
        NDArray([2., 4.], dtype=float32)
    """
    return _flow.cond(_arrays_of(pred), true_fn, false_fn, *_arrays_of(operands))


def while_loop(
    cond_fn: _Function, body_fn: _Function, init: _Any, max_steps: int | None = None
) -> _Any:
    """``so.while_loop`` on eager arrays; numbers become some.

    Example:
        >>> while_loop(lambda x: x < 100, lambda x: x * x, array(3.0))
        NDArray(6561., dtype=float32)
    """
    return _flow.while_loop(cond_fn, body_fn, _arrays_of(init), max_steps)


def scan(
    f: _Function, init: _Any, xs: _Any = None, length: int | None = None, reverse: bool = False
) -> tuple[_Any, _Any]:
    """``so.scan`` on eager arrays; numbers become some.

    Example:
        >>> scan(lambda c, x: (c + x, c), array(0.0), array([1.0, 2.0, 3.0]))[1]
        NDArray([0., 1., 3.], dtype=float32)
    """
    return _flow.scan(f, _arrays_of(init), _arrays_of(xs), length, reverse)


def foreach(body: _Function, data: _Any, init_states: _Any) -> tuple[_Any, _Any]:
    """``so.foreach`` on eager arrays; numbers become some.

    Example:
        >>> foreach(lambda x, s: (x * s, s + x), array([1.0, 2.0, 3.0]), array(1.0))[0]
        NDArray([ 1.,  4., 12.], dtype=float32)
    """
    return _flow.foreach(body, _arrays_of(data), _arrays_of(init_states))


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
