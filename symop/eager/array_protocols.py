"""Protocols of arrays: conversion to NumPy, to JAX, to Python numbers, to text and to DLPack."""

import sys
from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import get_opaque_trace_state

from registry.errors import ArgumentError
from registry.jax_operators import reflected_operators
from registry.tracebacks import api_class
from registry.values import SelectedRows
from symop.eager.method_types import ArrayMethods

_NOTHING_TRACED = get_opaque_trace_state()  # type: ignore[no-untyped-call]  # of JAX


def answers_for(array: object, recorded: bool) -> bool:
    """Whether the reflected operator of ``array`` computes ``left + array`` for a JAX array left.

    Only ``__jax_array__`` may call this function, which examines the calling frames. Inside a JAX
    transformation, JAX's operator is used unless ``array`` is ``recorded``, as its gradient would
    be lost.
    """
    reflected = reflected_operators().get(sys._getframe(2).f_code)
    return reflected is not None and hasattr(array, reflected) and (recorded or _is_outermost())


def _is_outermost() -> bool:
    """Whether JAX is not tracing."""
    now: bool = get_opaque_trace_state() == _NOTHING_TRACED  # type: ignore[no-untyped-call]
    return now


@api_class
class Convertible(ArrayMethods):
    """An array whose value can be converted to NumPy, to JAX, to Python numbers and to text."""

    __slots__ = ()

    @property
    @abstractmethod
    def value(self) -> Any:
        """The ``jax.Array``, or ``SelectedRows``."""

    # Entries

    def asnumpy(self) -> np.ndarray:
        """Returns a copy of the entries as a NumPy array."""
        return np.array(self.__array__())

    def asscalar(self) -> Any:
        """Returns the only entry as a NumPy scalar.

        Raises:
            ArgumentError: the array does not have exactly one entry.
        """
        if self.size != 1:
            raise ArgumentError(f"asscalar: the array must have one entry, got shape {self.shape}")
        return self.asnumpy().reshape(())[()]

    def item(self, *index: int) -> Any:
        """Returns the only entry, or the one at ``index``, as a Python scalar."""
        return self.__array__().item(*index)

    def tolist(self) -> Any:
        """Returns the entries as nested lists of Python scalars."""
        return self.__array__().tolist()

    def wait_to_read(self) -> None:
        """Waits until the value is computed."""
        jax.block_until_ready(self.value)  # type: ignore[no-untyped-call]  # of JAX

    block_until_ready = wait_to_read

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self.value
        dense = value.to_dense() if isinstance(value, SelectedRows) else value
        return np.asarray(dense, dtype, copy=copy)

    def __jax_array__(self) -> Any:
        """Returns the ``jax.Array``, or this array if its reflected operator must be called."""
        return self if answers_for(self, self.is_recorded_now) else self.value

    @property
    @abstractmethod
    def is_recorded_now(self) -> bool:
        """Whether a call on this array would be recorded for a backward pass."""

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

    # Numbers and text

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

    def __round__(self, digits: int | None = None) -> Any:
        """Rounds to an array with ``digits`` decimal places; without ``digits``, to an ``int``."""
        if digits is None:
            return round(self.item())
        return self.round(decimals=digits)

    def __trunc__(self) -> int:
        return int(self)

    def __repr__(self) -> str:
        if not isinstance(self.value, jax.Array):  # row-sparse, or a pytree leaf put here by JAX
            return f"NDArray({self.value!r})"
        if isinstance(self.value, jax.core.Tracer):
            return f"NDArray(traced, shape={self.shape}, dtype={self.dtype.name})"
        text = np.array2string(np.asarray(self.value), separator=", ", prefix="NDArray(")
        empty = f", shape={self.shape}" if self.size == 0 and self.shape != (0,) else ""
        return f"NDArray({text}{empty}, dtype={self.dtype.name})"

    def __format__(self, spec: str) -> str:
        return format(self.item() if spec and self.ndim == 0 else str(self), spec)

    # Device

    @property
    def device(self) -> Any:
        """The device that holds the array, or its sharding."""
        return self.value.device

    context = ctx = device

    @property
    def nbytes(self) -> int:
        """The number of bytes of the entries."""
        return self.size * self.dtype.itemsize


def as_jax(owner: str, data: Any, dtype: Any = None) -> jax.Array:
    """Returns ``data`` as an array of JAX.

    Raises:
        ArgumentError: it does not consist of numbers, or its rows differ in length.
    """
    try:
        return jnp.asarray(data, dtype)
    except (TypeError, ValueError):
        if data is not None and not isinstance(data, (str, bytes, list, tuple, dict, set)):
            raise
        raise ArgumentError(
            f"{owner}: an array must be made of numbers, in rows of one length, got {data!r:.100}"
        ) from None


def device_of(device: Any) -> Any:
    """Returns the device or sharding that ``device`` is or names.

    Raises:
        ArgumentError: no device has that name.
    """
    if not isinstance(device, str):
        return device
    kind, _, number = device.partition(":")
    try:
        return jax.devices(kind)[int(number or 0)]
    except (RuntimeError, ValueError, IndexError):
        known = [f"{one.platform}:{one.id}" for one in jax.devices()]
        raise ArgumentError(
            f"device: it must be one of {', '.join(known)}, got {device!r}"
        ) from None


def is_foreign(other: object) -> bool:
    """Whether operators on an array return ``NotImplemented`` for ``other``."""
    return other is None or isinstance(other, (str, bytes, dict, set))
