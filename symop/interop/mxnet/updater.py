"""Updater: an optimizer with what it keeps for each parameter, as bytes where it is saved."""

from typing import Any

import jax.numpy as jnp
import msgspec
import numpy as np

from symop.interop.mxnet.base_optimizer import Formula, Index, Optimizer
from symop.interop.mxnet.errors import MXNetError, MXNetFormatError
from symop.interop.mxnet.ndarray import NDArray, array_of


class _Array(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


_Tree = _Array | list[Any] | None


class _States(msgspec.Struct, tag="symop.mxnet.states"):
    states: list[tuple[int | str, Any]]
    counts: list[tuple[int | str, int]] | None = None


class Updater:
    """Updates parameters by index.

    Attributes:
        optimizer: how.
        states: what is kept, by index.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5))
        >>> weight = mx.nd.ones((2,))
        >>> updater(0, mx.nd.ones((2,)), weight)
        >>> weight.asnumpy().tolist()
        [0.5, 0.5]
    """

    def __init__(self, optimizer: Optimizer) -> None:
        """Nothing is kept yet."""
        self.optimizer = optimizer
        self.states: dict[Index, Any] = {}

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Update one parameter, or several, given as lists."""
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
        """Make what is kept for parameters that are new."""
        for index, weight in zip(indices, weights, strict=True):
            if index not in self.states:
                made = self.optimizer.create_state_multi_precision(index, weight)
                self.states[index] = made

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """What is kept as bytes; with ``dump_optimizer`` also how often each was updated."""
        counts = self.optimizer._index_update_count.items() if dump_optimizer else None
        pairs = [(index, _written(one)) for index, one in self.states.items()]
        return msgspec.msgpack.encode(_States(pairs, None if counts is None else list(counts)))

    def set_states(self, states: bytes) -> None:
        """Go on from what ``get_states`` gave; nothing in it is executed.

        Raises:
            MXNetFormatError: it is damaged, or MXNet's own, which is a pickle.
        """
        try:
            read = msgspec.msgpack.decode(states, type=_States)
            found = {index: _read(one) for index, one in read.states}
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise MXNetFormatError(
                f"set_states: what get_states gave must be given, not a pickle of MXNet's: {error}"
            ) from None
        self.states = found
        if read.counts is not None:
            counts = dict(read.counts)
            self.optimizer._index_update_count = dict(counts)
            self.optimizer.num_update = max([self.optimizer.begin_num_update, *counts.values()])


def _written(state: Any) -> Any:
    if state is None:
        return None
    if isinstance(state, (list, tuple)):
        return [_written(one) for one in state]
    if not isinstance(state, NDArray):
        raise MXNetError(f"get_states: arrays must be kept, got {type(state).__name__}")
    array = np.asarray(state.value)
    return _Array(array.dtype.name, array.shape, array.tobytes())


def _read(state: Any) -> Any:
    if state is None:
        return None
    if isinstance(state, list):
        return tuple(_read(one) for one in state)
    one = msgspec.convert(state, _Array)
    array = np.frombuffer(one.data, jnp.dtype(one.dtype)).reshape(one.shape)
    return array_of(array)


def is_formula(optimizer: Optimizer) -> bool:
    """Whether the optimizer's step is compiled: it is one of ours, and no subclass says another."""
    return isinstance(optimizer, Formula) and type(optimizer).update is Formula.update


def get_updater(optimizer: Optimizer) -> Updater:
    """An updater that does what ``optimizer`` says."""
    return Updater(optimizer)
