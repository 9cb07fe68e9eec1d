"""Key-value stores of one process: ``mx.kvstore``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from symop.files import write_atomically
from symop.interop.mxnet.base_optimizer import Optimizer
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.ndarray import NDArray, array_of
from symop.interop.mxnet.updater import Updater, get_updater

Key = int | str
_LOCAL = ("local", "device", "nccl")


class KVStore:
    """Arrays by key: what is pushed is added up, and replaces or updates what is stored.

    Attributes:
        type: what it was asked for.
        rank: number of this process.
        num_workers: how many there are.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> store, out = mx.kv.create("local"), mx.nd.zeros((2,))
        >>> store.init("w", mx.nd.ones((2,)))
        >>> store.push("w", [mx.nd.ones((2,)), mx.nd.ones((2,))])
        >>> store.pull("w", out=out)
        >>> out.asnumpy().tolist()
        [2.0, 2.0]
    """

    rank, num_workers = 0, 1

    def __init__(self, type: str) -> None:
        """Users call ``create``."""
        self.type = type
        self._stored: dict[Key, NDArray] = {}
        self._updater: Callable[[Any, NDArray, NDArray], None] | None = None

    def init(self, key: Any, value: Any) -> None:
        """Store copies of arrays, one or a list.

        Raises:
            MXNetError: there is one already.
        """
        for one, array in _pairs(key, value):
            if one in self._stored:
                raise MXNetError(f"init: a key must be new, got {one!r}")
            self._stored[one] = array_of(array[0].value)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Replace or update what is stored by the sum of arrays.

        Raises:
            MXNetError: there is no such key.
        """
        del priority
        for one, arrays in _pairs(key, value):
            total = arrays[0].value
            for more in arrays[1:]:
                total = total + more.value
            stored = self._of(one)
            if self._updater is None:
                self._stored[one] = array_of(total)
            else:
                self._updater(one, array_of(total), stored)

    def pull(
        self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """Write what is stored into arrays.

        Raises:
            MXNetError: there is no such key.
        """
        del priority, ignore_sparse
        for one, arrays in _pairs(key, out):
            for array in arrays:
                array.hold(self._of(one).value.astype(array.dtype))

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """``push``, and ``pull`` into ``out`` or else where the values were."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """``init``, and ``pull``."""
        self.init(key, value)
        self.pull(key, out, priority)

    def _of(self, key: Key) -> NDArray:
        if key not in self._stored:
            raise MXNetError(f"kvstore: init must come first, got no {key!r}")
        return self._stored[key]

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Let what is pushed be gradients, by which ``optimizer`` updates what is stored."""
        self._updater = get_updater(optimizer)

    def _set_updater(self, updater: Callable[[Any, NDArray, NDArray], None]) -> None:
        """Let ``updater(key, pushed, stored)`` change what is stored."""
        self._updater = updater

    def set_gradient_compression(self, compression_params: Any) -> None:
        """Has no effect: nothing is sent."""

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write what the optimizer keeps into a file."""
        write_atomically(fname, self._own("save").get_states(dump_optimizer))

    def load_optimizer_states(self, fname: str) -> None:
        """Read it again."""
        self._own("load").set_states(Path(fname).read_bytes())

    def _own(self, what: str) -> Updater:
        if not isinstance(self._updater, Updater):
            raise MXNetError(f"{what}_optimizer_states: set_optimizer must come first")
        return self._updater


def _pairs(key: Any, value: Any) -> list[tuple[Key, Sequence[NDArray]]]:
    """Keys, each with its arrays."""
    if not isinstance(key, (list, tuple)):
        key, value = [key], [value]
    return [
        (one, [given] if isinstance(given, NDArray) else list(given))
        for one, given in zip(key, value, strict=True)
    ]


def create(name: str = "local") -> KVStore:
    """A store of one process.

    Raises:
        MXNetError: ``name`` is that of one for several machines, or of none.
    """
    if not isinstance(name, str) or not name.startswith(_LOCAL):
        raise MXNetError(
            f"kvstore: the type must be one of {', '.join(_LOCAL)}, got {name!r}; for several "
            "machines use jax.distributed and shard what Symbol.to_jax gives"
        )
    return KVStore(name)
