"""The interface of key-value stores, and the registry of those that users write."""

import warnings
from typing import Any, ClassVar, TypeVar

from symop.interop.mxnet.arrays import NDArray

_Class = TypeVar("_Class", bound=type)


class KVStoreBase:
    """A store that broadcasts parameters and sums gradients; subclasses define the methods.

    A registered class is created by ``mx.kv.create`` under its name in lower case.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> @mx.kv.KVStoreBase.register
        ... class Nowhere(mx.kv.KVStoreBase):
        ...     type = "nowhere"
        >>> mx.kv.create("nowhere").type
        'nowhere'
    """

    OPTIMIZER = "optimizer"
    kv_registry: ClassVar[dict[str, type]] = {}

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Writes ``value`` of the first process to ``out`` of all."""
        raise self._abstract("broadcast")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sums ``value`` over devices and processes, into ``out`` or else into ``value``."""
        raise self._abstract("pushpull")

    def set_optimizer(self, optimizer: Any) -> None:
        """Makes the store update parameters by the gradients that it sums."""
        raise self._abstract("set_optimizer")

    def is_capable(self, capability: str) -> bool:
        """Whether the store can do what ``capability`` names, such as ``"optimizer"``."""
        raise self._abstract("is_capable")

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Writes the optimizer's states to a file."""
        raise self._abstract("save_optimizer_states")

    def load_optimizer_states(self, fname: str) -> None:
        """Reads the optimizer's states from a file."""
        raise self._abstract("load_optimizer_states")

    def _abstract(self, what: str) -> NotImplementedError:
        # Abstract, as in MXNet: a user's store defines the methods that its training calls.
        return NotImplementedError(f"{type(self).__name__}: {what} must be defined")

    @property
    def type(self) -> str:
        """The name of the type."""
        raise self._abstract("type")

    @property
    def rank(self) -> int:
        """The index of this process."""
        raise self._abstract("rank")

    @property
    def num_workers(self) -> int:
        """The number of processes."""
        raise self._abstract("num_workers")

    @staticmethod
    def register(klass: _Class) -> _Class:
        """Registers a class of stores, under its name in lower case."""
        name = klass.__name__.lower()
        if name in KVStoreBase.kv_registry:
            warnings.warn(f"register: the store {name!r} replaces an earlier one", stacklevel=2)
        KVStoreBase.kv_registry[name] = klass
        return klass


@KVStoreBase.register
class TestStore(KVStoreBase):
    """A store for tests: it copies, and sums over the given arrays."""

    __test__ = False  # not a test for pytest
    type = "teststore"
    rank, num_workers = 0, 1

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Writes ``value`` to ``out``, one array or several."""
        for one in out if isinstance(out, (list, tuple)) else [out]:
            one[:] = value

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Writes the sum of ``value`` to ``out``, or else to ``value``."""
        values = [value] if isinstance(value, NDArray) else list(value)
        context = values[0].context
        total = values[0].copy()
        for one in values[1:]:
            total += one.as_in_context(context)
        self.broadcast(key, total, value if out is None else out)

    @staticmethod
    def is_capable(capability: str) -> bool:
        """False for ``"optimizer"``.

        Raises:
            ValueError: another capability is asked for.
        """
        if capability.lower() != KVStoreBase.OPTIMIZER:
            raise ValueError(f"is_capable: it must be 'optimizer', got {capability!r}")
        return False
