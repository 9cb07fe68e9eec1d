"""``so.nd``: operators on eager arrays, the arrays themselves, and the Python array API."""

import sys as _sys
from collections.abc import Callable as _Callable
from typing import Any as _Any

from registry.foreign_names import foreign as _foreign
from registry.hooks import define as _define
from registry.table import Changes as _Changes
from registry.table import find as _find
from registry.table import names as _names
from registry.table import require as _require
from registry.tracebacks import api_boundary as _api_boundary
from registry.types import OpReqType
from symop import control_flow as _flow
from symop.eager import array_api as _api
from symop.eager import (
    array_methods as _methods,
)  # adds the functions to arrays as methods
from symop.eager import array_operators as _operators  # adds Python's operators to arrays
from symop.eager import linalg
from symop.eager.array_calls import array_function as _array_function
from symop.eager.control_flow import arrays_of as _arrays_of
from symop.eager.fourier import fft
from symop.eager.ndarray import NDArray
from symop.eager.recording import direct
from symop.eager.recording import flush as _flush

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


@_api_boundary
def array(data: _Any, dtype: _Any = None, ctx: _Any = None) -> NDArray:
    """Creates an eager array from numbers, nested lists, a NumPy array or a ``jax.Array``.

    Floats and lists of floats have JAX's default float dtype, float32 unless x64 is enabled. The
    array has its own memory, as in NumPy: a ``jax.Array`` is copied, so that it may be donated;
    ``asarray`` does not copy it. An eager array is copied, too, and the copy is recorded if the
    array is.

    Args:
        data: the entries.
        dtype: the dtype; by default that of the data.
        ctx: the device that holds the array, such as ``"cpu:0"``.

    Raises:
        GradientError: ``data`` is a list with recorded arrays, or a recorded array and ``ctx``
            would move it.

    Example:
        >>> array([[1, 2], [3, 4]], dtype="float32")
        NDArray([[1., 2.],
                 [3., 4.]], dtype=float32)
    """
    return _api.new_array("array", data, dtype, ctx)


def waitall() -> None:
    """Runs the recorded calls of this thread; JAX may still be computing their results."""
    _flush()


@_api_boundary
def cond(pred: _Any, true_fn: _Function, false_fn: _Function, *operands: _Any) -> _Any:
    """Calls ``so.cond`` on eager arrays; converts numbers to arrays.

    Example:
        >>> cond(array(1.0) > 0, lambda x: x * 2, lambda x: x, array([1.0, 2.0]))
        NDArray([2., 4.], dtype=float32)
    """
    return _flow.cond(_arrays_of(pred), true_fn, false_fn, *_arrays_of(operands))


@_api_boundary
def while_loop(
    cond_fn: _Function, body_fn: _Function, init: _Any, max_steps: int | None = None
) -> _Any:
    """Calls ``so.while_loop`` on eager arrays; converts numbers to arrays.

    Example:
        >>> while_loop(lambda x: x < 100, lambda x: x * x, array(3.0))
        NDArray(6561., dtype=float32)
    """
    return _flow.while_loop(cond_fn, body_fn, _arrays_of(init), max_steps)


@_api_boundary
def scan(
    f: _Function, init: _Any, xs: _Any = None, length: int | None = None, reverse: bool = False
) -> tuple[_Any, _Any]:
    """Calls ``so.scan`` on eager arrays; converts numbers to arrays.

    Example:
        >>> scan(lambda c, x: (c + x, c), array(0.0), array([1.0, 2.0, 3.0]))[1]
        NDArray([0., 1., 3.], dtype=float32)
    """
    return _flow.scan(f, _arrays_of(init), _arrays_of(xs), length, reverse)


@_api_boundary
def foreach(body: _Function, data: _Any, init_states: _Any) -> tuple[_Any, _Any]:
    """Calls ``so.foreach`` on eager arrays; converts numbers to arrays.

    Example:
        >>> foreach(lambda x, s: (x * s, s + x), array([1.0, 2.0, 3.0]), array(1.0))[0]
        NDArray([ 1.,  4., 12.], dtype=float32)
    """
    return _flow.foreach(body, _arrays_of(data), _arrays_of(init_states))


def __getattr__(name: str) -> _Any:
    """Returns a function of the array API, or the operator called ``name`` on arrays."""
    result = getattr(_api, name) if name in _api.FUNCTIONS else _operator(name)
    globals()[name] = result  # cached for the next lookup
    return result


def _operator(name: str) -> _Callable[..., _Any]:
    """Returns the operator called ``name``, including private ones that compute gradients."""
    if name.startswith("_") and not _foreign(name):
        operator = None if name.startswith("__") else _find(name)
        if operator is None:
            raise AttributeError(name)
        return _array_function(operator)
    try:
        return _array_function(_require(name))
    except LookupError as error:
        raise AttributeError(f"nd: {error}", name=name) from None


def _forget(name: str) -> None:
    """Drops the cached operator ``name``, which was registered or removed.

    ``fft`` remains, as it also holds the functions of the Fourier extension.
    """
    if name not in __all__ and hasattr(globals().get(name), "operator"):
        del globals()[name]


_define(_Changes, changed=_forget)


def __dir__() -> list[str]:
    """Returns the operators and the other public names of this module."""
    return sorted({*__all__, *_api.FUNCTIONS, *_names(aliases=True)})


del _methods, _operators
_define(NDArray, namespace=_sys.modules[__name__])
