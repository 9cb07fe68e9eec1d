"""Updater: an optimizer with its states, which can be saved as bytes."""

from typing import Any

import msgspec
import numpy as np

from registry.errors import FormatError
from registry.operator.attributes import dtype_named
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.base_optimizer import Formula, Index, Optimizer
from symop.interop.mxnet.errors import MXNetError, MXNetFormatError
from symop.interop.mxnet.sparse_arrays import RowSparseNDArray
from symop.interop.mxnet.storage import DEFAULT, ROW_SPARSE
from symop.io.files import PathLike, read_bounded

LIMIT = 1 << 32
"""The maximal number of bytes of states read from a file."""
_DEPTH_LIMIT = 32
"""The maximal nesting depth of the state of one parameter."""


class _Array(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data: bytes
    stype: str = "default"


_Tree = _Array | list[Any] | None


class _States(msgspec.Struct, tag="symop.mxnet.states"):
    states: list[tuple[int | str, Any]]
    counts: list[tuple[int | str, int]] | None = None


class Updater:
    """Updates parameters by index.

    Attributes:
        optimizer: the optimizer.
        states: the states of parameters, by index.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5))
        >>> weight = mx.nd.ones((2,))
        >>> updater(0, mx.nd.ones((2,)), weight)
        >>> weight.asnumpy().tolist()
        [0.5, 0.5]
    """

    def __init__(self, optimizer: Optimizer) -> None:
        """Creates an updater without states."""
        self.optimizer = optimizer
        self.states: dict[Index, Any] = {}

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Updates one parameter, or several, given as lists."""
        if not isinstance(index, (list, tuple)):
            index, grad, weight = [index], [grad], [weight]
        self.prepare(index, weight)
        states = [self.states[one] for one in index]
        if is_formula(self.optimizer):
            self.optimizer.update(index, weight, grad, states)
            return
        for one in zip(index, weight, grad, states, strict=True):
            self.optimizer.update_multi_precision(*one)

    def prepare(self, indices: Any, weights: Any) -> None:
        """Creates the states of new parameters."""
        for index, weight in zip(indices, weights, strict=True):
            if index not in self.states:
                made = self.optimizer.create_state_multi_precision(index, weight)
                self.states[index] = made

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """The states as bytes; with ``dump_optimizer`` also the update counts."""
        counts = self.optimizer._index_update_count.items() if dump_optimizer else None
        pairs = [(index, _written(one)) for index, one in self.states.items()]
        return msgspec.msgpack.encode(_States(pairs, None if counts is None else list(counts)))

    def set_states(self, states: bytes) -> None:
        """Restores states from ``get_states``; nothing in them is executed.

        Raises:
            MXNetFormatError: the bytes are damaged, or MXNet's own, which are a pickle.
        """
        try:
            read = msgspec.msgpack.decode(states, type=_States)
            found = {index: _read(one) for index, one in read.states}
        except (msgspec.DecodeError, ValueError, TypeError, RecursionError) as error:
            raise MXNetFormatError(
                "set_states: what get_states gave must be given, not a pickle of MXNet's: "
                f"{error!s:.500}"
            ) from None
        self.states = found
        if read.counts is not None:
            counts = dict(read.counts)
            self.optimizer._index_update_count = dict(counts)
            self.optimizer.num_update = max([self.optimizer.begin_num_update, *counts.values()])

    def load_states(self, path: PathLike) -> None:
        """Restores states from a file by ``set_states``.

        Raises:
            MXNetFormatError: the file is damaged or too large.
            OSError: the file cannot be read.
        """
        try:
            states = read_bounded(path, LIMIT)
        except FormatError as error:
            raise MXNetFormatError(str(error)) from None
        self.set_states(states)


def _written(state: Any) -> Any:
    if state is None:
        return None
    if isinstance(state, (list, tuple)):
        return [_written(one) for one in state]
    if not isinstance(state, NDArray):
        raise MXNetError(f"get_states: arrays must be kept, got {type(state).__name__}")
    array = np.asarray(state.dense().value)
    return _Array(array.dtype.name, array.shape, array.tobytes(), state.stype)


def _read(state: Any, depth: int = 0) -> Any:
    if state is None:
        return None
    if depth > _DEPTH_LIMIT:
        raise ValueError(f"states must nest at most {_DEPTH_LIMIT} deep")
    if isinstance(state, list):
        return tuple(_read(one, depth + 1) for one in state)
    one = msgspec.convert(state, _Array)
    if min(one.shape, default=0) < 0:
        raise ValueError(f"the lengths of a shape must not be negative, got {one.shape}")
    if one.stype not in (DEFAULT, ROW_SPARSE):
        raise ValueError(f"the storage type of a state must be dense or rows, got {one.stype!r}")
    array = array_of(np.frombuffer(one.data, dtype_named(one.dtype)).reshape(one.shape))
    return array if one.stype == DEFAULT else RowSparseNDArray(array.inner)


def is_formula(optimizer: Optimizer) -> bool:
    """Whether the step is compiled: the optimizer is a ``Formula`` that keeps its ``update``."""
    return isinstance(optimizer, Formula) and type(optimizer).update is Formula.update


def get_updater(optimizer: Optimizer) -> Updater:
    """Creates an updater that applies ``optimizer``."""
    return Updater(optimizer)
