"""Comparison of patches of two feature maps, shared by correlation and its derivatives."""

import functools
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.errors import ShapeError
from registry.operator.attributes import Check
from registry.operator.signature import Array
from registry.shapes import at_least_single
from registry.types import DType, Shape
from registry.xla.device_types import varied_alike

Kernel = Annotated[int, Check("be odd and positive", lambda n: n > 0 and n % 2 == 1)]
Positive = Annotated[int, Check("be positive", lambda n: n > 0)]
Natural = Annotated[int, Check("not be negative", lambda n: n >= 0)]


class Patches(NamedTuple):
    """How patches of two maps are compared: the attributes of the operators here."""

    kernel_size: int
    max_displacement: int
    stride1: int
    stride2: int
    pad_size: int
    is_multiply: bool

    @property
    def reach(self) -> int:
        """The largest displacement, in multiples of the stride."""
        return self.max_displacement // self.stride2

    @property
    def displacements(self) -> np.ndarray:
        """The vertical and horizontal displacements of the patch of the second map."""
        each = np.arange(-self.reach, self.reach + 1, dtype=np.int32) * self.stride2
        return np.stack(np.meshgrid(each, each, indexing="ij"), -1).reshape(-1, 2)

    def places(self, length: int) -> int:
        """The number of patches along an axis of a map: their centers keep away from the border."""
        border = self.max_displacement + self.kernel_size // 2
        return -(-(length + 2 * self.pad_size - 2 * border) // self.stride1)


def correlated(first: Array, second: Array, patches: Patches) -> Array:
    """The correlation, computed for one displacement after the other.

    Only the displacement is kept as a residual of each.
    """
    pads = [(0, 0, 0), (0, 0, 0), *[(patches.pad_size, patches.pad_size, 0)] * 2]
    first, second = (lax.pad(x, jnp.zeros((), x.dtype), pads) for x in (first, second))
    batch, channels, *lengths = first.shape
    reach, window = patches.max_displacement, patches.kernel_size
    seen = [n - 2 * reach for n in lengths]
    middle = first[:, :, reach : reach + seen[0], reach : reach + seen[1]]

    @functools.partial(jax.checkpoint, prevent_cse=False)
    def compared(by: Array) -> Any:
        start = (np.int32(0), np.int32(0), by[0], by[1])
        moved = lax.dynamic_slice(second, start, (batch, channels, *seen))
        each = middle * moved if patches.is_multiply else jnp.abs(middle - moved)
        step = (1, patches.stride1, patches.stride1)
        return lax.reduce_window(
            jnp.sum(each, 1), np.zeros((), each.dtype), lax.add, (1, window, window), step, "VALID"
        )

    every = lax.map(compared, patches.displacements + np.int32(reach))
    out: Array = jnp.moveaxis(every, 0, 1) / (window * window * channels)
    return out


def shape_of(data1: Shape, data2: Shape, patches: Patches) -> Shape:
    """The shape of the correlation of two maps."""
    if len(data1) != 4 or data1[1] == 0 or data2 != data1:
        raise ShapeError(
            "data1 and data2 must have one shape (batch, channels > 0, height, width), got "
            f"{data1} and {data2}"
        )
    height, width = map(patches.places, data1[2:])
    if min(height, width) < 1:
        raise ShapeError(
            f"a patch and its displacements must fit into the padded maps, got maps of {data1}"
        )
    return (data1[0], (2 * patches.reach + 1) ** 2, height, width)


def widened(*xs: Any) -> tuple[DType, list[Array]]:
    """The common dtype, and the arrays in the dtype of their sums."""
    dtype = jnp.result_type(*xs)
    wide = at_least_single(dtype)
    return np.dtype(dtype), varied_alike([jnp.asarray(x, wide) for x in xs])


_Index = tuple[slice | int, ...]


def _pairs(data: Shape, patches: Patches) -> Iterator[tuple[_Index, _Index, _Index]]:
    """Each entry of the result, and the two patches of the padded maps that it compares."""
    half, reach = patches.kernel_size // 2, patches.max_displacement
    steps = range(-patches.reach, patches.reach + 1)
    moves = [(down * patches.stride2, right * patches.stride2) for down in steps for right in steps]
    batch, _, height, width = shape_of(data, data, patches)
    for n, d, i, j in np.ndindex(batch, len(moves), height, width):
        center = [reach + half + at * patches.stride1 for at in (i, j)]
        first, second = (
            tuple(slice(c + m - half, c + m + half + 1) for c, m in zip(center, by, strict=True))
            for by in ((0, 0), moves[d])
        )
        yield (n, d, i, j), (n, slice(None), *first), (n, slice(None), *second)


def _padded(data: np.ndarray, patches: Patches) -> np.ndarray:
    return np.pad(data, [(0, 0), (0, 0), *[(patches.pad_size, patches.pad_size)] * 2])


def _slopes(a: np.ndarray, b: np.ndarray, patches: Patches) -> tuple[np.ndarray, np.ndarray]:
    """The derivative of one comparison with respect to both patches."""
    sign = np.where(a >= b, 1.0, -1.0)
    by_a, by_b = (b, a) if patches.is_multiply else (sign, -sign)
    return by_a / a.size, by_b / a.size


def correlation_reference(data1: np.ndarray, data2: np.ndarray, **how: Any) -> np.ndarray:
    """Reference of the correlation, one comparison after the other."""
    patches = Patches(**how)
    out = np.zeros(shape_of(data1.shape, data2.shape, patches), data1.dtype)
    first, second = _padded(data1, patches), _padded(data2, patches)
    for at, one, other in _pairs(data1.shape, patches):
        a, b = first[one], second[other]
        out[at] = np.mean(a * b if patches.is_multiply else np.abs(a - b))
    return out


def tangent_reference(
    data1: np.ndarray, data2: np.ndarray, tangent1: np.ndarray, tangent2: np.ndarray, **how: Any
) -> np.ndarray:
    """Reference of the derivative along tangents."""
    patches = Patches(**how)
    out = np.zeros(shape_of(data1.shape, data2.shape, patches), data1.dtype)
    first, second, d_first, d_second = (
        _padded(x, patches) for x in (data1, data2, tangent1, tangent2)
    )
    for at, one, other in _pairs(data1.shape, patches):
        by_a, by_b = _slopes(first[one], second[other], patches)
        out[at] = np.sum(by_a * d_first[one]) + np.sum(by_b * d_second[other])
    return out


def gradient_reference(
    data1: np.ndarray, data2: np.ndarray, cotangent: np.ndarray, **how: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Reference of the gradient."""
    patches = Patches(**how)
    first, second = _padded(data1, patches), _padded(data2, patches)
    d_first, d_second = np.zeros_like(first), np.zeros_like(second)
    for at, one, other in _pairs(data1.shape, patches):
        by_a, by_b = _slopes(first[one], second[other], patches)
        d_first[one] += by_a * cotangent[at]
        d_second[other] += by_b * cotangent[at]
    height, width = (slice(patches.pad_size, patches.pad_size + n) for n in data1.shape[2:])
    return d_first[:, :, height, width], d_second[:, :, height, width]
