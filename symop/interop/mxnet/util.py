"""``mx.util``: devices, the environment, and the semantics of arrays, which are the legacy ones."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from symop.interop.mxnet.context import gpu_memory_info, num_gpus
from symop.interop.mxnet.errors import MXNetError

__all__ = [
    "get_gpu_count",
    "get_gpu_memory",
    "getenv",
    "is_np_array",
    "is_np_shape",
    "makedirs",
    "np_array",
    "np_shape",
    "reset_np",
    "set_module",
    "set_np",
    "set_np_shape",
    "setenv",
    "use_np",
    "use_np_array",
    "use_np_shape",
]
T = TypeVar("T")


def get_gpu_count() -> int:
    """The number of GPUs."""
    return num_gpus()


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """Free bytes and all bytes of a GPU."""
    return gpu_memory_info(gpu_dev_id)


def getenv(name: str) -> str | None:
    """A variable of the environment, or None."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set a variable of the environment; None takes it away."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def makedirs(d: str) -> None:
    """Make a directory, and those it lies in, unless they are there."""
    os.makedirs(os.path.expanduser(d), exist_ok=True)


def set_module(module: str) -> Callable[[T], T]:
    """A decorator that says where a function belongs."""

    def decorate(made: T) -> T:
        made.__module__ = module
        return made

    return decorate


# Semantics of NumPy ----------------------------------------------------------------------------


def _refuse(what: str, active: bool) -> None:
    """Arrays without axes or entries, and those of ``mx.np``, are not there.

    Raises:
        MXNetError: they are asked for.
    """
    if active:
        raise MXNetError(
            f"{what}: shapes are those of mx.nd and mx.sym, in which 0 is unknown; for NumPy's use "
            "symop.nd, a namespace of the Python array API"
        )


def is_np_shape() -> bool:
    """Whether shapes are NumPy's: no."""
    return False


def is_np_array() -> bool:
    """Whether arrays are those of ``mx.np``: no."""
    return False


def set_np_shape(active: bool) -> bool:
    """Leave shapes as they are; whether they were NumPy's before.

    Raises:
        MXNetError: ``active``.
    """
    _refuse("set_np_shape", active)
    return False


def set_np(shape: bool = True, array: bool = True) -> None:
    """Leave shapes and arrays as they are.

    Raises:
        MXNetError: others are asked for.
    """
    _refuse("set_np", shape or array)


def reset_np() -> None:
    """Leave shapes and arrays as they are."""


@contextlib.contextmanager
def np_shape(active: bool = True) -> Iterator[None]:
    """Leave shapes as they are for a while; see ``set_np_shape``."""
    _refuse("np_shape", active)
    yield


@contextlib.contextmanager
def np_array(active: bool = True) -> Iterator[None]:
    """Leave arrays as they are for a while; see ``set_np``."""
    _refuse("np_array", active)
    yield


def use_np(func: Any) -> Any:
    """Refuse what is written for ``mx.np``.

    Raises:
        MXNetError: always.
    """
    del func
    _refuse("use_np", True)


use_np_shape = use_np_array = use_np
