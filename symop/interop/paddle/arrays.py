"""Tensor arrays of Paddle: lists of values, or ``so``'s tensor arrays where positions are computed.

A list holds elements of any shape, ragged ones too, and its positions are known while a program is
translated. Inside of a loop the position is a symbol; elements then have one shape, and the number
of elements is bounded by a capacity.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from registry.types import VarKind
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.values import data_of, is_constant, symbolic
from symop.symbol.symbol import Symbol


class Elements(Sequence[Any]):
    """The values of a tensor array, in order; None where nothing was written. It never changes."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        """Holds ``values``."""
        self._values = tuple(values)

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]


def leaves(value: Any) -> list[Any]:
    """Returns the arrays that a value consists of."""
    if isinstance(value, Elements):
        return [leaf for one in value for leaf in leaves(one)]
    if isinstance(value, so.LoDTensor):
        return [value.data, *value.lod]
    return [] if value is None else [value]


def rebuilt(like: Any, arrays: Iterable[Any]) -> Any:
    """Returns a value of the same form that consists of other arrays."""
    supply = iter(arrays)
    return _rebuilt(like, supply)


def _rebuilt(like: Any, supply: Iterator[Any]) -> Any:
    if isinstance(like, Elements):
        return Elements(_rebuilt(one, supply) for one in like)
    if isinstance(like, so.LoDTensor):
        return so.LoDTensor(next(supply), [next(supply) for _ in like.lod])
    return None if like is None else next(supply)


def is_packed(value: Any) -> bool:
    """Returns whether a value is a tensor array with a capacity."""
    return isinstance(value, Symbol) and value.kind == VarKind.LOD_TENSOR_ARRAY


def is_tensor_array(value: Any) -> bool:
    """Returns whether a value is a tensor array of either form."""
    return isinstance(value, Elements) or is_packed(value)


def position(index: Any) -> Any:
    """Returns an index as an int if it is known, otherwise as a scalar symbol."""
    data = data_of(index)
    if is_constant(data):
        return int(np.asarray(data).ravel()[0])
    return so.reshape(data, shape=())


def written(array: Any, value: Any, index: Any, capacity: int | None) -> Any:
    """Returns an array with one more value.

    Args:
        array: the array before, or None.
        value: what is written.
        index: where, a value with one entry.
        capacity: the capacity that a new array of a computed position gets, if it is known.

    Raises:
        PaddleError: the capacity must be known, or the value has another shape than the elements.
    """
    at = position(index)
    if isinstance(at, int) and not is_packed(array):
        held = [] if array is None else [*array]
        held += [None] * (at + 1 - len(held))
        held[at] = value
        return Elements(held)
    if not is_packed(array):
        if capacity is None:
            raise PaddleError(
                "write_to_array: the largest index must be known when a program is compiled, or "
                "the program must have max_steps, got an index that depends on what is fed"
            )
        array = packed([] if array is None else array, capacity, value)
    return so.array_write(array, fitted(value, array.shape[1:], array.dtype), at)


def fitted(value: Any, shape: Sequence[int], dtype: Any) -> Symbol:
    """Returns a value as a symbol of a shape with as many entries.

    Raises:
        PaddleError: the number of entries or the dtype differs.
    """
    data = symbolic(data_of(value))
    if data.size != np.prod(shape, dtype=int) or data.dtype != dtype:
        raise PaddleError(
            f"a value must keep its type inside of a loop, {np.dtype(dtype)}{list(shape)}, got "
            f"{np.dtype(data.dtype)}{list(data.shape)}"
        )
    return data if data.shape == tuple(shape) else so.reshape(data, shape=tuple(shape))


def packed(elements: Iterable[Any], capacity: int, like: Any) -> Symbol:
    """Returns a tensor array with a capacity that holds some elements.

    Args:
        elements: the elements; None where nothing was written.
        capacity: the largest number of elements.
        like: a value with the shape and dtype of the elements.

    Raises:
        PaddleError: an element has another shape, or is ragged.
    """
    values = list(elements)
    if any(isinstance(one, so.LoDTensor) for one in values):
        raise PaddleError("tensor arrays in loops must hold dense tensors, got a ragged one")
    shape, dtype = data_of(like).shape, data_of(like).dtype
    if values and len(values) == capacity and all(one is not None for one in values):
        rows = [fitted(one, shape, dtype) for one in values]
        return so.sym.array_unstack(so.stack(*rows))
    array = so.sym.array_create(capacity=capacity, shape=tuple(shape), dtype=np.dtype(dtype))
    for i, one in enumerate(values):
        if one is not None:
            array = so.array_write(array, fitted(one, shape, dtype), i)
    return array


def read(array: Any, index: Any) -> Any:
    """Returns an element, or None where nothing was written."""
    at = position(index)
    if isinstance(array, Elements):
        if isinstance(at, int):
            return array[at] if 0 <= at < len(array) else None
        array = joined(array)
    return so.array_read(array, at)


def joined(array: Elements) -> Symbol:
    """Returns a full list as a tensor array whose capacity is its length."""
    return packed(array, len(array), first(array))


def first(array: Iterable[Any]) -> Any:
    """Returns the first element that was written.

    Raises:
        PaddleError: nothing was written.
    """
    for one in array:
        if one is not None:
            return one
    raise PaddleError("read_from_array: the array must have elements, got none")


def length(array: Any) -> Any:
    """Returns the number of elements, with shape (1,)."""
    if isinstance(array, Elements) or array is None:
        return jnp.asarray([0 if array is None else len(array)], np.int32)
    return so.reshape(so.array_length(array), shape=(1,))


def stacked(array: Any) -> list[Any]:
    """Returns the elements of an array in order.

    Raises:
        PaddleError: an element was never written.
    """
    if is_packed(array):
        rows = so.array_stack(array)
        return [so.take(rows, i, axis=0) for i in range(array.shape[0])]
    if any(one is None for one in array):
        raise PaddleError(
            "tensor_array_to_tensor: all elements must have been written, got one without value"
        )
    return [data_of(one) for one in array]


def same_form(arrays: Sequence[Any]) -> list[Any]:
    """Returns arrays in one form with as many elements; None becomes an empty array."""
    known = [one for one in arrays if one is not None]
    if all(isinstance(one, Elements) and _alike(one, known[0]) for one in known):
        return [Elements([None] * len(known[0])) if one is None else one for one in arrays]
    capacity = max(one.shape[0] if is_packed(one) else len(one) for one in known)
    like = next((so.array_read(one, 0) for one in known if is_packed(one)), None)
    if like is None:
        like = first(element for one in known for element in one)
    return [to_capacity(one, capacity, like) for one in arrays]


def _alike(array: Elements, other: Elements) -> bool:
    return len(array) == len(other) and all(
        (one is None) == (each is None) for one, each in zip(array, other, strict=True)
    )


def to_capacity(array: Any, capacity: int, like: Any) -> Symbol:
    """Returns an array of either form, or None, as one with a capacity."""
    if not is_packed(array):
        return packed([] if array is None else array, capacity, like)
    if array.shape[0] == capacity:
        return symbolic(array)
    rows = [so.array_read(array, i) for i in range(array.shape[0])]
    return packed(rows, capacity, like)


def combined(function: Callable[[list[Any]], Any], arrays: Sequence[Any]) -> Any:
    """Returns the array whose elements are a function of the elements of several arrays.

    The function gets those elements that were written.
    """
    forms = same_form(arrays)
    if all(is_packed(one) for one in forms):
        return so.array_unstack(function([so.array_stack(one) for one in forms]))
    elements = zip(*forms, strict=True)
    return Elements(
        None if all(one is None for one in group) else function([e for e in group if e is not None])
        for group in elements
    )
