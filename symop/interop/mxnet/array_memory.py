"""Memory that arrays share with NumPy, and with parts of other arrays."""

import math
import weakref
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.errors import MXNetValueError
from symop.interop.mxnet.views import Index, Viewed


class _Buffer(Viewed):
    """The memory of a NumPy array, to which its views are written back.

    NumPy's array is read-only as long as the buffer lives.
    """

    __slots__ = ("_memory",)

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(so.NDArray(jnp.array(array)))
        self._memory = array.view()
        if array.flags["WRITEABLE"]:
            array.flags["WRITEABLE"] = False
            weakref.finalize(self, array.setflags, write=True)

    def receive(self, piece: Viewed, index: Index | None) -> None:
        """Writes the value of a view to NumPy's memory."""
        super().receive(piece, index)
        if self._memory.flags["WRITEABLE"]:
            np.copyto(self._memory, piece.inner.asnumpy())


_buffers: "weakref.WeakValueDictionary[int, _Buffer]" = weakref.WeakValueDictionary()
"""The buffers by the ids of NumPy's arrays, which they keep alive."""


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True) -> NDArray:
    """An array with the entries and the dtype of a NumPy array.

    Args:
        ndarray: the NumPy array.
        zero_copy: whether changes of the result also change ``ndarray``, which is read-only as
            long as the result lives.

    Raises:
        MXNetValueError: ``zero_copy`` is set and the array is not contiguous.
    """
    if not zero_copy:
        return NDArray(so.NDArray(jnp.array(ndarray)))
    if not ndarray.flags["C_CONTIGUOUS"]:
        raise MXNetValueError("from_numpy: the array must be contiguous to be shared")
    buffer = _buffers.get(id(ndarray))
    if buffer is None:
        buffer = _buffers[id(ndarray)] = _Buffer(ndarray)
    result = NDArray(so.NDArray(buffer.inner.value))
    buffer.adopt(result, None)
    return result


def resized(array: NDArray, shape: Sequence[int]) -> NDArray:
    """The first entries of ``array`` in another shape, in the same memory."""
    flat = NDArray(so.nd.reshape(array.inner, (array.size,)))
    array.adopt(flat, None)
    index = (slice(0, math.prod(shape)),)
    part = NDArray(flat.inner[index])
    flat.adopt(part, index)
    result = NDArray(so.nd.reshape(part.inner, tuple(shape)))
    part.adopt(result, None)
    return result
