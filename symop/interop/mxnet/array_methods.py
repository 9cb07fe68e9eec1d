"""Operators as methods of arrays, and the functions of ``mx.nd`` with the same code."""

from collections.abc import Callable
from typing import Any

import symop as so
from registry.caches import memoized
from registry.hooks import define
from symop.interop.mxnet.array_calls import function_of
from symop.interop.mxnet.fluent import fluent_methods, moved_axes, split_parts
from symop.interop.mxnet.ndarray import NDArray
from symop.interop.mxnet.sparse_arrays import RowSparseNDArray

Lengths = tuple[int, ...]


@memoized(1024)
def called(name: str) -> Callable[..., Any]:
    """The operator ``name`` on arrays."""
    return function_of(name)


def reshape(self: NDArray, *shape: Any, **kwargs: Any) -> NDArray:
    """Returns the array in another shape; it shares memory unless calls are recorded.

    In the shape, 0 copies a length, -1 infers one, -2 copies all remaining lengths, -3 merges two
    lengths, and -4 splits one into the following two.

    Args:
        self: the array.
        *shape: a tuple, or one length per argument; ``shape=`` is also accepted.
        **kwargs: ``reverse``, whether the codes are matched from the last axis.

    Raises:
        MXNetError: the shape does not fit.
    """
    given = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    wanted = kwargs.pop("shape", None) if not shape else given
    result: NDArray = called("Reshape")(self, shape=tuple(wanted or self.shape), **kwargs)
    if not so.autograd.is_recording():
        self.adopt(result, None)
    return result


def transposed(self: NDArray) -> NDArray:
    """The array with its axes reversed; a vector is returned unchanged."""
    return self if self.ndim < 2 else called("transpose")(self)


def broadcast_to(self: NDArray, shape: Lengths) -> NDArray:
    """The array broadcast along axes of length one, and along new leading axes."""
    extra = len(shape) - self.ndim
    data = self if extra <= 0 else called("Reshape")(self, shape=(1,) * extra + self.shape)
    result: NDArray = called("broadcast_to")(data, shape=tuple(shape))
    return result


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
_OWN = {one.__name__: one for one in (reshape, broadcast_to, broadcast_like, split_v2)}
define(
    NDArray,
    **{**fluent_methods(NDArray, called), **_OWN},
    slice_assign=slice_assign,
    slice_assign_scalar=slice_assign,
    T=property(transposed),
)
