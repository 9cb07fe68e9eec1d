"""The scope of NumPy's shapes, in which 0 is a length and -1 is unknown.

Outside it 0 is an unknown length, and ``()`` an unknown shape. Graphs have MXNet's older form
within the scope, too: shapes are converted where users give and read them.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from symop.graph.scoping import Scopes
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.partial_shapes import Partial

_F = TypeVar("_F", bound=Callable[..., Any])
_active = Scopes("mxnet_np_shape", False)
_everywhere = [False]
"""Whether the scope is active in all threads."""
_GLOBALLY = 2


def is_np_shape() -> bool:
    """Whether NumPy's shapes are active."""
    return _active.current() or _everywhere[0]


def set_np_shape(active: int | bool) -> bool:
    """Switches NumPy's shapes on or off for this thread; 2 switches them on for all threads.

    Returns:
        Whether they were active.

    Raises:
        MXNetError: it is none of 0, 1 and 2.
    """
    if active not in (0, 1, _GLOBALLY):
        raise MXNetError(f"set_np_shape: it must be 0, 1 or 2, got {active!r}")
    before = is_np_shape()
    _everywhere[0] = active == _GLOBALLY or (_everywhere[0] and bool(active))
    _active.enter(bool(active))
    return before


@contextlib.contextmanager
def np_shape(active: bool = True) -> Iterator[None]:
    """A context in which NumPy's shapes are active, or are not.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> with mx.np_shape():
        ...     mx.nd.ones((0, 3)).shape, mx.sym.var("x").infer_shape_partial()[0]
        ((0, 3), [None])
    """
    before, _everywhere[0] = _everywhere[0], _everywhere[0] and bool(active)
    try:
        with _active.entered(bool(active)):
            yield
    finally:
        _everywhere[0] = before


def use_np_shape(func: _F) -> _F:
    """``func``, a function or the methods of a class, within ``np_shape()``."""
    if isinstance(func, type):
        for name, method in list(vars(func).items()):
            if callable(method) and not isinstance(method, type):
                setattr(func, name, use_np_shape(method))
        return func

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with np_shape():
            return func(*args, **kwargs)

    return call  # type: ignore[return-value]  # of the same parameters


def require_filled(what: str, shape: int | Sequence[int]) -> None:
    """Rejects shapes without entries or axes, which are unknown outside of the scope.

    Raises:
        MXNetError: the shape of a new array is unknown.
    """
    lengths = np.atleast_1d(shape).tolist()
    if not is_np_shape() and not (lengths and all(one > 0 for one in lengths)):
        raise MXNetError(
            f"{what}: the shape must be known, with lengths of at least 1, got {tuple(lengths)}; "
            "mx.np_shape() allows others"
        )


def shown(shape: Partial) -> Any:
    """A partially known shape as users read it."""
    if is_np_shape():
        return None if shape is None else tuple(one or -1 for one in shape)
    return shape or ()


def is_told(shape: Any) -> bool:
    """Whether a shape that users read is fully known."""
    if is_np_shape():
        return shape is not None and -1 not in shape
    return bool(shape) and 0 not in shape
