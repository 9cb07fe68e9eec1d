"""``mx.util``: devices, the environment, and the semantics of shapes."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from symop.interop.mxnet.context import gpu_memory_info, num_gpus
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.np_shapes import is_np_shape, np_shape, set_np_shape, use_np_shape

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
    """The free and the total number of bytes of a GPU."""
    return gpu_memory_info(gpu_dev_id)


def getenv(name: str) -> str | None:
    """An environment variable, or None."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Sets an environment variable; None removes it."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def makedirs(d: str) -> None:
    """Creates a directory and its parents, unless they exist."""
    os.makedirs(os.path.expanduser(d), exist_ok=True)


def set_module(module: str) -> Callable[[T], T]:
    """A decorator that sets the module of a function."""

    def decorate(made: T) -> T:
        made.__module__ = module
        return made

    return decorate


# NumPy semantics -------------------------------------------------------------------------------


def _refuse(what: str, active: bool) -> None:
    """Rejects arrays of ``mx.np``, which are not supported.

    Raises:
        MXNetError: they are requested.
    """
    if active:
        raise MXNetError(
            f"{what}: arrays are those of mx.nd; for NumPy's use symop.nd, a namespace of the "
            "Python array API"
        )


def is_np_array() -> bool:
    """Whether arrays of ``mx.np`` are active: always False."""
    return False


def set_np(shape: bool = True, array: bool = True) -> None:
    """Switches to NumPy's shapes; see ``set_np_shape``.

    Raises:
        MXNetError: arrays of ``mx.np`` are requested.
    """
    _refuse("set_np", array)
    set_np_shape(shape)


def reset_np() -> None:
    """Returns to legacy shapes."""
    set_np_shape(False)


@contextlib.contextmanager
def np_array(active: bool = True) -> Iterator[None]:
    """Keeps legacy arrays within a context; see ``set_np``."""
    _refuse("np_array", active)
    yield


def use_np(func: Any) -> Any:
    """Rejects code written for ``mx.np``.

    Raises:
        MXNetError: always.
    """
    del func
    _refuse("use_np", True)


use_np_array = use_np
