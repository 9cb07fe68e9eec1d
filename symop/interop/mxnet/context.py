"""Contexts: MXNet's device names, and the default device of new arrays."""

from typing import Any, ClassVar

import jax

from registry.errors import ArgumentError
from symop.eager.array_protocols import device_of
from symop.eager.settings import default_device
from symop.graph.scoping import Scopes
from symop.interop.mxnet.errors import MXNetError

_HOST = ("cpu", "cpu_pinned", "cpu_shared")
_NUMBERS = {"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5, "tpu": 6}
_PLATFORMS = {"cuda": "gpu", "rocm": "gpu"}


class _ContextType(type):
    """The class of ``Context``, which has MXNet's old name of the current context."""

    @property
    def default_ctx(cls) -> "Context":
        """The current context of this thread."""
        return current_context()

    @default_ctx.setter
    def default_ctx(cls, context: "Context") -> None:
        _entered.enter(context)


class Context(metaclass=_ContextType):
    """A device by MXNet's name; as a context manager, the device of new arrays.

    The device need not exist until an array is placed on it. All host memory is one device, so
    ``cpu(3)`` exists on every machine. ``Context("tpu")`` is an extension to MXNet.

    Attributes:
        device_type: ``"cpu"``, ``"gpu"``, ``"cpu_pinned"``, ``"cpu_shared"`` or ``"tpu"``.
        device_id: its index.

    Example:
        >>> with Context("cpu", 1):
        ...     current_context()
        cpu(1)
    """

    __slots__ = ("device_id", "device_type")
    devstr2type: ClassVar[dict[str, int]] = dict(_NUMBERS)
    devtype2str: ClassVar[dict[int, str]] = {number: kind for kind, number in _NUMBERS.items()}

    def __init__(self, device_type: "Context | str", device_id: int = 0) -> None:
        """Creates the device of type ``device_type`` with the index ``device_id``.

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
        _entered.enter(self)
        return self

    def __exit__(self, *error: object) -> None:
        _entered.leave_last(self)

    def empty_cache(self) -> None:
        """Has no effect: XLA manages its memory."""

    @property
    def device(self) -> jax.Device:
        """The JAX device.

        Raises:
            MXNetError: it does not exist; the message lists the existing ones.
        """
        host = self.device_type in _HOST
        try:
            if host:
                devices = jax.devices("cpu")
                return devices[self.device_id if self.device_id < len(devices) else 0]
            result: jax.Device = device_of(f"{self.device_type}:{self.device_id}")
            return result
        except ArgumentError:
            known = ", ".join(str(context_of(one)) for one in _all_devices())
            raise MXNetError(f"Context: it must be one of {known}, got {self}") from None


_entered: Scopes[Context | None] = Scopes("mxnet_context", None)


def _all_devices() -> list[jax.Device]:
    devices = jax.devices()
    return devices if devices[0].platform == "cpu" else [*devices, *jax.devices("cpu")]


def cpu(device_id: int = 0) -> Context:
    """The host device."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """The host device; XLA chooses the kind of memory."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """A GPU, which need not exist until an array is placed on it."""
    return Context("gpu", device_id)


def num_gpus() -> int:
    """The number of GPUs visible to JAX."""
    return sum(context_of(one).device_type == "gpu" for one in jax.devices())


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """The free and the total number of bytes available to JAX on a GPU.

    Raises:
        MXNetError: there is no such GPU.
    """
    found: dict[str, int] = gpu(device_id).device.memory_stats() or {}
    total = found.get("bytes_limit", 0)
    return total - found.get("bytes_in_use", 0), total


def current_context() -> Context:
    """The innermost active context, or the context of JAX's default device."""
    return _entered.current() or context_of(default_device())


def context_of(device: Any) -> Context:
    """The context of a JAX device; for an array on several devices, that of the first."""
    if not isinstance(device, jax.Device):
        device = min(device.device_set, key=lambda one: one.id)
    kind = _PLATFORMS.get(device.platform, device.platform)
    return Context(kind if kind in _NUMBERS else "cpu", device.id)


def placed(value: Any, context: Any = None) -> Any:
    """Moves ``value``, a JAX array, to the given device, or to that of the active context.

    Raises:
        MXNetError: there is no such device.
    """
    chosen = _entered.current() if context is None else as_context(context)
    if chosen is None:
        return value
    device = chosen.device
    return value if value.devices() == {device} else jax.device_put(value, device)


def existing(context: Any) -> Context | None:
    """``context`` if its device exists, and is not JAX's default device; otherwise None."""
    chosen = named(context)
    return None if chosen is None or chosen.device == default_device() else chosen


def named(context: Any) -> Context | None:
    """``context`` if its device exists, otherwise None."""
    if context is None:
        return None
    chosen = as_context(context)
    try:
        chosen.device  # noqa: B018  # it raises an error if there is none
    except MXNetError:
        return None
    return chosen


def as_context(context: Any) -> Context:
    """Converts ``context``, which may be a string such as ``"gpu(1)"``.

    Raises:
        MXNetError: it is not a context.
    """
    if isinstance(context, Context):
        return context
    kind, _, number = str(context).rstrip(")").partition("(")
    if not isinstance(context, str) or not (number or "0").isdigit():
        raise MXNetError(f"Context: it must be such as mx.cpu(0), got {context!r}")
    return Context(kind, int(number or 0))
