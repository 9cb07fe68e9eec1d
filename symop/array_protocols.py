"""What every library of arrays asks of an array: its value as numbers, text, or memory."""

from abc import abstractmethod
from typing import Any

import jax
import numpy as np

from registry.errors import ArgumentError
from registry.values import SelectedRows
from registry.var import Var


class Convertible(Var):
    """An array with a value that goes to NumPy, to JAX, to Python's numbers, and into text."""

    __slots__ = ()

    @property
    @abstractmethod
    def value(self) -> Any:
        """The ``jax.Array``, or ``SelectedRows``."""

    # Its entries

    def asnumpy(self) -> np.ndarray:
        """The entries as a NumPy array of one's own."""
        return np.array(self.__array__())

    def asscalar(self) -> Any:
        """The only entry as a NumPy scalar.

        Raises:
            ArgumentError: there are none or several.
        """
        if self.size != 1:
            raise ArgumentError(f"asscalar: the array must have one entry, got shape {self.shape}")
        return self.asnumpy().reshape(())[()]

    def item(self, *index: int) -> Any:
        """The only entry, or the one at ``index``, as a Python scalar."""
        return self.__array__().item(*index)

    def tolist(self) -> Any:
        """The entries as nested lists of Python scalars."""
        return self.__array__().tolist()

    def wait_to_read(self) -> None:
        """Return when the value is computed."""
        jax.block_until_ready(self.value)  # type: ignore[no-untyped-call]  # of JAX

    block_until_ready = wait_to_read

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self.value
        dense = value.to_dense() if isinstance(value, SelectedRows) else value
        return np.asarray(dense, dtype, copy=copy)

    def __jax_array__(self) -> Any:
        return self.value

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        how = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        return self.value.__dlpack__(stream=stream, **how)

    def __dlpack_device__(self) -> Any:
        return self.value.__dlpack_device__()

    # As a number, and as text

    def __bool__(self) -> bool:
        return bool(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __index__(self) -> int:
        return self.value.__index__()  # type: ignore[no-any-return]  # of a jax.Array

    def __repr__(self) -> str:
        if isinstance(self.value, SelectedRows):
            return f"NDArray({self.value!r})"
        if isinstance(self.value, jax.core.Tracer):
            return f"NDArray(traced, shape={self.shape}, dtype={self.dtype.name})"
        text = np.array2string(np.asarray(self.value), separator=", ", prefix="NDArray(")
        empty = f", shape={self.shape}" if self.size == 0 and self.shape != (0,) else ""
        return f"NDArray({text}{empty}, dtype={self.dtype.name})"

    def __format__(self, spec: str) -> str:
        return format(self.item() if spec and self.ndim == 0 else str(self), spec)

    # Where it lies

    @property
    def device(self) -> Any:
        """The device that holds it, or its sharding over several."""
        return self.value.device

    context = ctx = device

    @property
    def nbytes(self) -> int:
        """Bytes of the entries."""
        return self.size * self.dtype.itemsize


def device_of(given: Any) -> Any:
    """The device or sharding that ``given`` is or names.

    Raises:
        ArgumentError: there is no such device.
    """
    if not isinstance(given, str):
        return given
    kind, _, number = given.partition(":")
    try:
        return jax.devices(kind)[int(number or 0)]
    except (RuntimeError, ValueError, IndexError):
        known = [f"{one.platform}:{one.id}" for one in jax.devices()]
        raise ArgumentError(
            f"device: it must be one of {', '.join(known)}, got {given!r}"
        ) from None


def is_foreign(other: object) -> bool:
    """Whether Python's operators on an array leave ``other`` to its own class."""
    return other is None or isinstance(other, (str, bytes, dict, set))
