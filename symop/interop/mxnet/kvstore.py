"""``mx.kvstore``: key-value stores of one process."""

import functools
from collections.abc import Callable, Sequence
from operator import add
from typing import Any

import jax
import numpy as np

import symop as so
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.base_optimizer import Optimizer
from symop.interop.mxnet.errors import MXNetError, MXNetValueError
from symop.interop.mxnet.kvstore_base import KVStoreBase, TestStore
from symop.interop.mxnet.sparse_arrays import RowSparseNDArray, assign, rows_named
from symop.interop.mxnet.storage import ROW_SPARSE
from symop.interop.mxnet.updater import Updater, get_updater
from symop.io.files import write_atomically

__all__ = ["KVStore", "KVStoreBase", "TestStore", "create"]
Key = int | str
_LOCAL = ("local", "device", "nccl")


class KVStore(KVStoreBase):
    """Stores arrays by key; pushed arrays are summed, and replace or update the stored array.

    Attributes:
        type: the requested type.
        rank: the index of this process.
        num_workers: the number of processes.

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
        self._type = type
        self._stored: dict[Key, NDArray] = {}
        self._updater: Callable[[Any, NDArray, NDArray], None] | None = None

    @property
    def type(self) -> str:
        """The requested type."""
        return self._type

    def is_capable(self, capability: str) -> bool:
        """True for ``"optimizer"``.

        Raises:
            MXNetValueError: another capability is asked for.
        """
        if capability.lower() != self.OPTIMIZER:
            raise MXNetValueError(f"is_capable: it must be 'optimizer', got {capability!r}")
        return True

    def init(self, key: Any, value: Any) -> None:
        """Stores copies of arrays, one or a list.

        Raises:
            MXNetError: a key exists already or is named twice, or keys are partly numbers and
                partly text.
        """
        pairs = _pairs(key, value)
        kinds = {isinstance(one, str) for one in [*self._stored, *(one for one, _ in pairs)]}
        if len(kinds) > 1:
            raise MXNetError("init: keys must be all numbers or all text, got both")
        made: dict[Key, NDArray] = {}
        for one, arrays in pairs:
            if one in self._stored or one in made:
                raise MXNetError(f"init: a key must be new, got {one!r}")
            made[one] = _copied(arrays[0])
        self._stored |= made

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Replaces or updates stored arrays, each by the sum of the arrays given for its key.

        All keys are replaced or, by MXNet's optimizers, updated in one step; an updater of the
        user's is called for one key after the other: numbers ascend, names follow their ``init``.

        Raises:
            MXNetError: a key does not exist, or an array is a csr array.
        """
        del priority
        pairs = self._in_order(_by_key(_pairs(key, value)))
        if any(one.stype == "csr" for _, arrays in pairs for one in arrays):
            raise MXNetError("push: arrays must be default or row_sparse, got csr")
        stored = [self._of(one) for one, _ in pairs]
        keys = [one for one, _ in pairs]
        if isinstance(self._updater, Updater):
            # As in MXNet, a single array is passed on itself; only a user's updater gets a copy.
            sums = [arrays[0] if len(arrays) == 1 else _total(arrays) for _, arrays in pairs]
            self._updater(keys, sums, stored)
            return
        totals = [_total(arrays) for _, arrays in pairs]
        if self._updater is None:
            self._stored |= dict(zip(keys, totals, strict=True))
        else:
            for each in zip(keys, totals, stored, strict=True):
                self._updater(*each)

    def _in_order(self, arrays: dict[Key, list[NDArray]]) -> list[tuple[Key, list[NDArray]]]:
        """Keys with their arrays, in MXNet's order: numbers ascend, names follow their ``init``.

        Raises:
            MXNetError: a key does not exist.
        """
        for key in arrays:
            self._of(key)
        if len(arrays) < 2:
            return list(arrays.items())
        ranks = {key: i if isinstance(key, str) else key for i, key in enumerate(self._stored)}
        return sorted(arrays.items(), key=lambda one: ranks[one[0]])

    def pull(
        self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """Writes stored arrays to the given arrays.

        Args:
            key: one key or a list.
            out: an array for each key, or a list of arrays.
            priority: has no effect.
            ignore_sparse: whether sparse arrays stay as they are; ``row_sparse_pull`` fills them.

        Raises:
            MXNetError: a key does not exist.
        """
        del priority
        for one, arrays in _pairs(key, out):
            for array in arrays:
                stored = self._of(one)
                if array.is_sparse or stored.is_sparse:
                    if not (array.is_sparse and ignore_sparse):
                        assign(array, stored)
                    continue
                array.hold(stored.value.astype(array.dtype))

    def row_sparse_pull(
        self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None
    ) -> None:
        """Writes some rows of stored row-sparse arrays to the given row-sparse arrays.

        Args:
            key: one key or a list.
            out: a row-sparse array for each key, or a list of arrays.
            priority: has no effect.
            row_ids: the rows for each array, in any order, in a list or in a list for each key; one
                array of rows is for all.

        Raises:
            MXNetError: a key does not exist, or an array is not row-sparse.

        Example:
            >>> import symop.interop.mxnet as mx
            >>> store, out = mx.kv.create(), mx.nd.sparse.zeros("row_sparse", (3, 2))
            >>> store.init("w", mx.nd.ones((3, 2)).tostype("row_sparse"))
            >>> store.row_sparse_pull("w", out=out, row_ids=mx.nd.array([2, 0, 2]))
            >>> out.indices.asnumpy().tolist()
            [0, 2]
        """
        del priority
        pairs = _pairs(key, out)
        if row_ids is None:
            raise MXNetError("row_sparse_pull: row_ids must be given, got None")
        told = _flat(row_ids)
        each = [(one, array) for one, arrays in pairs for array in arrays]
        rows = told * len(each) if len(told) == 1 else told
        if len(rows) != len(each):
            raise MXNetError(
                f"row_sparse_pull: row_ids must be one for each of {len(each)}, got {len(rows)}"
            )
        known: dict[tuple[int, int], np.ndarray] = {}
        for (one, array), numbers in zip(each, rows, strict=True):
            stored = self._of(one)
            if array.stype != ROW_SPARSE or not isinstance(stored, RowSparseNDArray):
                raise MXNetError(
                    f"row_sparse_pull: arrays must be row_sparse, got {array.stype} for a stored "
                    f"{stored.stype} array"
                )
            key = id(numbers), stored.shape[0]
            if key not in known:
                known[key] = rows_named(numbers, stored.shape[0])
            array.put(stored.restricted(known[key]))

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Calls ``push``, then ``pull`` to ``out``, or to the pushed arrays by default."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Calls ``init``, then ``pull``."""
        self.init(key, value)
        self.pull(key, out, priority)

    def _of(self, key: Key) -> NDArray:
        if key not in self._stored:
            raise MXNetError(f"kvstore: init must come first, got no {key!r}")
        return self._stored[key]

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Treats pushed arrays as gradients, by which ``optimizer`` updates the stored arrays."""
        self._updater = get_updater(optimizer)

    def _set_updater(self, updater: Callable[[Any, NDArray, NDArray], None]) -> None:
        """Makes ``push`` call ``updater(key, pushed, stored)``."""
        self._updater = updater

    def set_gradient_compression(self, compression_params: Any) -> None:
        """Has no effect: no data is transferred."""

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Writes the optimizer's states to a file."""
        write_atomically(fname, self._own("save").get_states(dump_optimizer))

    def load_optimizer_states(self, fname: str) -> None:
        """Reads states written by ``save_optimizer_states``."""
        self._own("load").load_states(fname)

    def _own(self, what: str) -> Updater:
        if not isinstance(self._updater, Updater):
            raise MXNetError(f"{what}_optimizer_states: set_optimizer must come first")
        return self._updater


def _pairs(key: Any, value: Any) -> list[tuple[Key, Sequence[NDArray]]]:
    """Keys with their arrays."""
    if not isinstance(key, (list, tuple)):
        key, value = [key], [value]
    return [
        (one, [given] if isinstance(given, NDArray) else list(given))
        for one, given in zip(key, value, strict=True)
    ]


def _by_key(pairs: Sequence[tuple[Key, Sequence[NDArray]]]) -> dict[Key, list[NDArray]]:
    """All arrays of each key."""
    found: dict[Key, list[NDArray]] = {}
    for key, arrays in pairs:
        found.setdefault(key, []).extend(arrays)
    return found


def _flat(arrays: Any) -> list[NDArray]:
    """The arrays of nested lists."""
    if isinstance(arrays, NDArray):
        return [arrays]
    return [one for part in arrays for one in _flat(part)]


def _copied(array: NDArray) -> NDArray:
    """A copy of an array, which keeps its storage type."""
    if array.is_sparse:
        with so.autograd.pause():
            return array.copy()
    return array_of(array.value)


def _total(arrays: Sequence[NDArray]) -> NDArray:
    """The sum of arrays."""
    if any(one.is_sparse for one in arrays):
        with so.autograd.pause():
            near = [one.as_in_context(arrays[0].context) for one in arrays]
            return _copied(arrays[0]) if len(arrays) == 1 else functools.reduce(add, near)
    total = arrays[0].value
    for more in arrays[1:]:
        total = total + jax.device_put(more.value, *total.devices())
    return array_of(total)


def create(name: str = "local") -> Any:
    """Creates a store of one process, or one of a class that is registered.

    Raises:
        MXNetError: ``name`` is a distributed type, or unknown.
    """
    registered = KVStoreBase.kv_registry.get(name.lower()) if isinstance(name, str) else None
    if registered is not None:
        return registered()
    if not isinstance(name, str) or not name.startswith(_LOCAL):
        raise MXNetError(
            f"kvstore: the type must be one of {', '.join(_LOCAL)}, got {name!r}; for several "
            "machines use jax.distributed and shard what Symbol.to_jax gives"
        )
    return KVStore(name)
