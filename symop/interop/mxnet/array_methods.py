"""Methods of arrays that are operators, and the functions of ``mx.nd`` that they share."""

import functools
from collections.abc import Callable
from typing import Any

import symop as so
from symop.interop.mxnet.array_calls import function_of
from symop.interop.mxnet.fluent import attach, moved_axes, split_parts
from symop.interop.mxnet.ndarray import NDArray

Lengths = tuple[int, ...]


@functools.lru_cache(maxsize=1024)
def called(name: str) -> Callable[..., Any]:
    """The operator ``name`` on arrays."""
    return function_of(name)


def reshape(self: NDArray, *shape: Any, **kwargs: Any) -> NDArray:
    """The entries in another shape, which are shared, unless calls are recorded.

    In the shape 0 copies a length, -1 is what is left, -2 copies all further ones, -3 merges two,
    and -4 splits one into the next two.

    Args:
        self: the array.
        *shape: a tuple, or length by length; ``shape=`` is as good.
        **kwargs: ``reverse``, whether the codes count from the last axis on.

    Raises:
        MXNetError: the shape does not fit.
    """
    given = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    wanted = kwargs.pop("shape", None) if not shape else given
    made: NDArray = called("Reshape")(self, shape=tuple(wanted or self.shape), **kwargs)
    if not so.autograd.is_recording():
        self.adopt(made, None)
    return made


def transposed(self: NDArray) -> NDArray:
    """The axes in reverse order; itself if it is a list."""
    return self if self.ndim < 2 else called("transpose")(self)


def broadcast_to(self: NDArray, shape: Lengths) -> NDArray:
    """The entries repeated along axes of length one, and along new ones in front."""
    extra = len(shape) - self.ndim
    data = self if extra <= 0 else called("Reshape")(self, shape=(1,) * extra + self.shape)
    found: NDArray = called("broadcast_to")(data, shape=tuple(shape))
    return found


def broadcast_like(self: NDArray, other: NDArray, **kwargs: Any) -> NDArray:
    """The entries repeated to the shape of ``other``."""
    if not kwargs:
        return broadcast_to(self, other.shape)
    found: NDArray = called("broadcast_like")(self, other, **kwargs)
    return found


def split_v2(
    ary: NDArray,
    indices_or_sections: int | Lengths,
    axis: int = 0,
    squeeze_axis: bool = False,
) -> list[NDArray]:
    """Parts along an axis: as many equal ones, or those that begin where it is told.

    Raises:
        ValueError: the length is not divisible by their number.
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
    """Write ``rhs`` into a slice."""
    steps = step or (None,) * len(begin)
    self[tuple(slice(*one) for one in zip(begin, end, steps, strict=True))] = rhs
    return self


def moveaxis(tensor: NDArray, source: int | Lengths, destination: int | Lengths) -> NDArray:
    """The array with some axes elsewhere.

    Raises:
        ValueError: one is no axis, or there are more of one than of the other.
    """
    order = moved_axes(tensor.ndim, source, destination)
    found: NDArray = called("transpose")(tensor, axes=order)
    return found


def _attach() -> None:
    attach(NDArray, called)
    own = {one.__name__: one for one in (reshape, broadcast_to, broadcast_like, split_v2)}
    own |= {"slice_assign": slice_assign, "slice_assign_scalar": slice_assign}
    for name, method in {**own, "T": property(transposed)}.items():
        setattr(NDArray, name, method)


_attach()
