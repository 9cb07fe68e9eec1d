"""Contexts: MXNet's names of devices, and the scope in which new arrays are put onto one."""

import threading
from typing import Any

import jax

from registry.errors import ArgumentError
from symop.array_protocols import device_of
from symop.interop.mxnet.errors import MXNetError

_HOST = ("cpu", "cpu_pinned", "cpu_shared")
_NUMBERS = {"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5, "tpu": 6}
_PLATFORMS = {"cuda": "gpu", "rocm": "gpu"}


class Context:
    """A device by MXNet's name; in a ``with`` block, where new arrays are put.

    There need not be such a device until an array is put there. All of the host's memory is one,
    so ``cpu(3)`` is a device that every machine has; ``Context("tpu")`` is one that MXNet lacked.

    Attributes:
        device_type: ``"cpu"``, ``"gpu"``, ``"cpu_pinned"``, ``"cpu_shared"`` or ``"tpu"``.
        device_id: its number.

    Example:
        >>> with Context("cpu", 1):
        ...     current_context()
        cpu(1)
    """

    __slots__ = ("_outer", "device_id", "device_type")

    def __init__(self, device_type: "Context | str", device_id: int = 0) -> None:
        """The device of type ``device_type`` with the number ``device_id``.

        Raises:
            MXNetError: there is no such type.
        """
        kind = device_type.device_type if isinstance(device_type, Context) else device_type
        if kind not in _NUMBERS:
            raise MXNetError(
                f"Context: the type must be one of {', '.join(_NUMBERS)}, got {device_type!r}"
            )
        self.device_type: str = kind
        self.device_id = int(getattr(device_type, "device_id", device_id))
        self._outer: list[Context | None] = []

    @property
    def device_typeid(self) -> int:
        """MXNet's number of the type."""
        return _NUMBERS[self.device_type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Context):
            return NotImplemented
        return (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __enter__(self) -> "Context":
        self._outer.append(_current.context)
        _current.context = self
        return self

    def __exit__(self, *error: object) -> None:
        _current.context = self._outer.pop()

    def empty_cache(self) -> None:
        """Has no effect: XLA looks after its memory."""

    @property
    def device(self) -> jax.Device:
        """The device of JAX.

        Raises:
            MXNetError: there is none; the message names those that there are.
        """
        host = self.device_type in _HOST
        try:
            if host:
                devices = jax.devices("cpu")
                return devices[self.device_id if self.device_id < len(devices) else 0]
            found: jax.Device = device_of(f"{self.device_type}:{self.device_id}")
            return found
        except ArgumentError:
            known = ", ".join(str(context_of(one)) for one in _all_devices())
            raise MXNetError(f"Context: it must be one of {known}, got {self}") from None


class _Current(threading.local):
    """The innermost context of a thread, None outside of all."""

    context: Context | None = None


_current = _Current()


def _all_devices() -> list[jax.Device]:
    devices = jax.devices()
    return devices if devices[0].platform == "cpu" else [*devices, *jax.devices("cpu")]


def cpu(device_id: int = 0) -> Context:
    """The host."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """The host: XLA chooses the memory."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """A GPU, which need not be there unless an array is put there."""
    return Context("gpu", device_id)


def num_gpus() -> int:
    """How many GPUs JAX sees."""
    return sum(context_of(one).device_type == "gpu" for one in jax.devices())


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Bytes that are free and bytes that there are for JAX on a GPU.

    Raises:
        MXNetError: there is no such GPU.
    """
    found: dict[str, int] = gpu(device_id).device.memory_stats() or {}
    total = found.get("bytes_limit", 0)
    return total - found.get("bytes_in_use", 0), total


def current_context() -> Context:
    """The innermost context of a ``with`` block, or else that of JAX's default device."""
    return _current.context or context_of(_default_device())


def _default_device() -> jax.Device:
    chosen: Any = jax.config.jax_default_device  # type: ignore[attr-defined]  # of JAX
    if isinstance(chosen, str):
        return jax.devices(chosen)[0]
    return chosen or jax.devices()[0]


def context_of(device: Any) -> Context:
    """The context that a device of JAX is; of several that an array lies on, that of the first."""
    if not isinstance(device, jax.Device):
        device = min(device.device_set, key=lambda one: one.id)
    kind = _PLATFORMS.get(device.platform, device.platform)
    return Context(kind if kind in _NUMBERS else "cpu", device.id)


def placed(value: Any, context: Any = None) -> Any:
    """``value``, an array of JAX, on the device that is told, or that of a ``with`` block.

    Raises:
        MXNetError: there is no such device.
    """
    chosen = _current.context if context is None else as_context(context)
    if chosen is None:
        return value
    device = chosen.device
    return value if value.devices() == {device} else jax.device_put(value, device)


def as_context(context: Any) -> Context:
    """``context``, which may be written as ``"gpu(1)"``.

    Raises:
        MXNetError: it is none.
    """
    if isinstance(context, Context):
        return context
    kind, _, number = str(context).rstrip(")").partition("(")
    if not isinstance(context, str) or not (number or "0").isdigit():
        raise MXNetError(f"Context: it must be such as mx.cpu(0), got {context!r}")
    return Context(kind, int(number or 0))
