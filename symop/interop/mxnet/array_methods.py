"""Operators as methods of arrays, and the functions of ``mx.nd`` with the same code."""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import symop as so
from registry.caches import memoized
from registry.hooks import define
from symop.eager.ndarray import value_if_known
from symop.interop.mxnet.array_calls import function_of
from symop.interop.mxnet.array_checks import take
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.errors import MXNetError, MXNetValueError
from symop.interop.mxnet.fluent import fluent_methods, moved_axes, split_parts
from symop.interop.mxnet.sparse_arrays import RowSparseNDArray

Lengths = tuple[int, ...]
_FEW = 1 << 16
"""The number of entries up to which an array is broadcast on the host."""


@memoized(1024)
def called(name: str) -> Callable[..., Any]:
    """The operator ``name`` on arrays."""
    return function_of(name)


def _shared(self: NDArray, result: NDArray) -> NDArray:
    """``result``, the same entries in another shape, as a view unless calls are recorded."""
    if not so.autograd.is_recording():
        self.adopt(result, None)
    return result


def reshape(self: NDArray, *shape: Any, **kwargs: Any) -> NDArray:
    """Returns the array in another shape; it shares memory unless calls are recorded.

    In the shape, 0 copies a length, -1 infers one, -2 copies all remaining lengths, -3 merges two
    lengths, and -4 splits one into the following two.

    Args:
        self: the array.
        *shape: a tuple, or one length per argument; ``shape=`` is also accepted.
        **kwargs: ``reverse``, whether the codes are matched from the last axis.

    Raises:
        MXNetError, ValueError: the shape does not fit.
        TypeError: there is no such keyword.
    """
    unknown = kwargs.keys() - {"shape", "reverse"}
    if unknown:
        raise TypeError(f"reshape: keywords must be shape and reverse, got {min(unknown)!r}")
    given = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    told = kwargs.pop("shape", None)
    wanted = given if shape else told
    try:
        result: NDArray = called("Reshape")(self, shape=tuple(wanted or self.shape), **kwargs)
    except MXNetError as error:
        raise MXNetValueError(str(error)) from error
    return _shared(self, result)


def flatten(self: NDArray, inplace: bool = False, **kwargs: Any) -> NDArray:
    """The array with all axes but the first merged; a view if ``inplace``."""
    result: NDArray = called("Flatten")(self, **kwargs)
    return _shared(self, result) if inplace else result


def expand_dims(self: NDArray, axis: int, inplace: bool = False, **kwargs: Any) -> NDArray:
    """The array with a new axis of length one; a view if ``inplace``."""
    result: NDArray = called("expand_dims")(self, axis=axis, **kwargs)
    return _shared(self, result) if inplace else result


def squeeze(self: NDArray, axis: Any = None, inplace: bool = False, **kwargs: Any) -> NDArray:
    """The array without axes of length one; a view if ``inplace``."""
    result: NDArray = called("squeeze")(self, axis=axis, **kwargs)
    return _shared(self, result) if inplace else result


def transposed(self: NDArray) -> NDArray:
    """The array with its axes reversed; a vector is returned unchanged."""
    return self if self.ndim < 2 else called("transpose")(self)


def broadcast_to(self: NDArray, shape: Lengths) -> NDArray:
    """The array broadcast along axes of length one, and along new leading axes."""
    host = _on_host(self, shape)
    if host is not None:
        return host
    extra = len(shape) - self.ndim
    data = self if extra <= 0 else called("Reshape")(self, shape=(1,) * extra + self.shape)
    result: NDArray = called("broadcast_to")(data, shape=tuple(shape))
    return result


def _on_host(array: NDArray, shape: Lengths) -> NDArray | None:
    """The array broadcast by NumPy, if it is small and in the host's memory.

    Each new shape would be compiled for longer than NumPy copies thousands of arrays.
    """
    if array.is_sparse or so.autograd.is_recording() or not 0 < math.prod(shape) <= _FEW:
        return None  # MXNet copies lengths where the shape has 0
    value = value_if_known(array.inner)
    if not isinstance(value, jax.Array) or isinstance(value, jax.core.Tracer):
        return None
    if [one.platform for one in value.devices()] != ["cpu"]:
        return None
    try:
        made = np.ascontiguousarray(np.broadcast_to(np.asarray(value), shape))
    except ValueError:
        return None  # the operator reports it
    return NDArray(so.NDArray(jax.device_put(made, *value.devices())))


def broadcast_like(self: NDArray, other: NDArray, **kwargs: Any) -> NDArray:
    """The array broadcast to the shape of ``other``."""
    if not kwargs:
        return broadcast_to(self, other.shape)
    result: NDArray = called("broadcast_like")(self, other, **kwargs)
    return result


def split_v2(
    ary: NDArray,
    indices_or_sections: int | Lengths,
    axis: int = 0,
    squeeze_axis: bool = False,
) -> list[NDArray]:
    """Splits an array along an axis, into equal sections or at the given indices.

    Raises:
        ValueError: the length is not divisible by the number of sections.
    """
    indices, sections = split_parts(indices_or_sections)
    if sections and ary.shape[axis] % sections:
        raise ValueError(
            f"split_v2: the length must be divisible by {sections}, got {ary.shape[axis]}"
        )
    options = {"axis": axis, "squeeze_axis": squeeze_axis, "sections": sections}
    found = called("_split_v2")(ary, indices=indices, **options)
    return found if isinstance(found, list) else [found]


def slice_assign(self: NDArray, rhs: NDArray, begin: Any, end: Any, step: Any = ()) -> NDArray:
    """Writes ``rhs`` into a slice."""
    steps = step or (None,) * len(begin)
    self[tuple(slice(*one) for one in zip(begin, end, steps, strict=True))] = rhs
    return self


def moveaxis(tensor: NDArray, source: int | Lengths, destination: int | Lengths) -> NDArray:
    """The array with some axes moved.

    Raises:
        ValueError: an axis is invalid, or the numbers of sources and destinations differ.
    """
    order = moved_axes(tensor.ndim, source, destination)
    result: NDArray = called("transpose")(tensor, axes=order)
    return result


def retain(self: NDArray, *args: Any, **kwargs: Any) -> NDArray:
    """The array restricted to some rows; see ``mx.nd.sparse.retain``."""
    result: NDArray = called("_sparse_retain")(self, *args, **kwargs)
    return result


define(RowSparseNDArray, retain=retain)
_IN_PLACE = (reshape, flatten, expand_dims, squeeze)
_OWN = {one.__name__: one for one in (*_IN_PLACE, broadcast_to, broadcast_like, split_v2, take)}
define(
    NDArray,
    **{**fluent_methods(NDArray, called), **_OWN},
    slice_assign=slice_assign,
    slice_assign_scalar=slice_assign,
    T=property(transposed),
)
