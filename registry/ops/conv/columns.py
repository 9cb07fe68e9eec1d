"""Sliding windows as the columns of a matrix, and the adjoint."""

import math
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import booleans, case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.conv.windows import Lengths, Padding, Window, transposed, window, windows_of
from registry.shapes import promote, strong_numeric
from registry.table import op
from registry.types import Shape
from registry.var import Var


def _window(
    data: Shape, kernel: Lengths, stride: Lengths, padding: Padding, dilation: Lengths
) -> Window:
    return window(
        data, layout=None, kernel=kernel, stride=stride, padding=padding, dilation=dilation
    )


def _columns_shape(x: Shape, over: Window) -> Shape:
    return (x[0], x[1] * math.prod(over.kernel), math.prod(over.lengths(x)))


def _columns(x: Array, over: Window) -> Array:
    """The entries of the window at each position, one column per position.

    Spatial axes are split one after the other, the last one first: each becomes the position of the
    window on it, and prepends the offset within the window to those of the later axes.
    """
    shape, lengths = _columns_shape(x.shape, over), over.lengths(x.shape)
    x = lax.pad(x, lax.full_like(x, 0, shape=()), [(low, high, 0) for low, high in over.all_pads()])
    axis = len(over.axes) + 1
    for i in reversed(range(len(over.axes))):
        step, spread = over.stride[i], over.stride[i] * (lengths[i] - 1) + 1
        starts = [over.dilation[i] * k for k in range(over.kernel[i])]
        cuts = [lax.slice_in_dim(x, at, at + spread, step, axis) for at in starts]
        x = jnp.stack(cuts, 2)
    return jnp.reshape(x, shape)


def _im2col_shape(
    x: Shape, *, kernel: Lengths, stride: Lengths, padding: Padding, dilation: Lengths
) -> Shape:
    return _columns_shape(x, _window(x, kernel, stride, padding, dilation))


def _im2col_reference(
    x: np.ndarray,
    *,
    kernel: Lengths,
    stride: Lengths = 1,
    padding: Padding = 0,
    dilation: Lengths = 1,
) -> np.ndarray:
    over = _window(x.shape, kernel, stride, padding, dilation)
    seen = windows_of(x, over)  # batch, channels, places, entries of the window
    count = len(over.axes)
    order = (0, 1, *range(2 + count, 2 + 2 * count), *range(2, 2 + count))
    return seen.transpose(order).reshape(_columns_shape(x.shape, over))


@op(
    shape=_im2col_shape,
    dtype=promote,
    reference=_im2col_reference,
    cases=[
        case(x=(2, 2, 4, 5), kernel=(3, 2), stride=(1, 2), padding=1),
        case(x=(1, 2, 5, 4), kernel=2, dilation=(2, 1), order=2),
        case(x=(1, 2, 5), kernel=3, padding=((0, 2),)),
        case(x=(1, 1, 3, 2, 3), kernel=2, padding="same", order=2),
        case(x=(0, 2, 3, 3), kernel=2, order=1),
        case(x=integers(1, 1, 3, 3, high=9), kernel=2),
        workload(x=(8, 16, 32, 32), kernel=3, padding=1),
        misuse("must fit into the padded data, (3, 3)", x=(1, 1, 3, 3), kernel=4),
        misuse("data must have 3, 4 or 5 axes, got shape (3, 3)", x=(3, 3), kernel=2),
        misuse("stride must be at least 1, got 0", x=(1, 1, 3, 3), kernel=2, stride=0),
    ],
)
def im2col(
    x: Array,
    *,
    kernel: int | tuple[int, ...],
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    dilation: int | tuple[int, ...] = 1,
) -> Array:
    """Unfolds images into columns: the entries of a sliding window at each of its positions.

    ``x`` has the axes batch, channels, and one to three spatial ones. The result has shape
    ``(batch, channels * K, L)``, where K is the number of entries of the window and L the number of
    its positions: ``out[n, c K + k, l]`` is the k-th entry of channel c at the l-th position, both
    in row-major order. Padding adds zeros. A convolution is a matrix product with these columns.

    Example:
        >>> import jax.numpy as jnp
        >>> im2col(jnp.asarray([[[1, 2, 3, 4]]]), kernel=2)
        Array([[[1, 2, 3],
                [2, 3, 4]]], dtype=int32)
    """
    x = jnp.asarray(x)
    return _columns(x, _window(x.shape, kernel, stride, padding, dilation))


@im2col.gradient
def _im2col_gradient(
    x: Var,
    d_out: Var,
    *,
    kernel: Lengths,
    stride: Lengths,
    padding: Padding,
    dilation: Lengths,
) -> Grads:
    back = col2im(
        d_out,
        output_size=x.shape[2:],
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    return {"x": back}


def _image(x: Shape, output_size: tuple[int, ...], kernel: Lengths) -> Shape:
    """The shape of the images whose columns ``x`` holds."""
    if len(x) != 3:  # batch, channels and window, places
        raise ShapeError(f"x must have three axes, got shape {x}")
    entries = kernel ** len(output_size) if isinstance(kernel, int) else math.prod(kernel)
    if entries < 1 or x[1] % entries:
        raise ShapeError(f"the window's {entries} entries must divide axis 1 of x, got shape {x}")
    return (x[0], x[1] // entries, *output_size)


def _col2im_shape(
    x: Shape,
    *,
    output_size: tuple[int, ...],
    kernel: Lengths,
    stride: Lengths,
    padding: Padding,
    dilation: Lengths,
) -> Shape:
    image = _image(x, output_size, kernel)
    expected = _im2col_shape(
        image, kernel=kernel, stride=stride, padding=padding, dilation=dilation
    )
    if x != expected:
        raise ShapeError(f"x must have a column for each of {expected[2]} places, got shape {x}")
    return image


def _col2im_reference(
    x: np.ndarray,
    *,
    output_size: tuple[int, ...],
    kernel: Lengths,
    stride: Lengths = 1,
    padding: Padding = 0,
    dilation: Lengths = 1,
) -> np.ndarray:
    image = _image(x.shape, output_size, kernel)
    over = _window(image, kernel, stride, padding, dilation)
    padded = np.zeros(
        [n + low + high for n, (low, high) in zip(image, over.all_pads(), strict=True)]
    )
    padded = padded.astype(x.dtype)
    lengths = over.lengths(image)
    columns = x.reshape(*image[:2], *over.kernel, *lengths)
    for place in np.ndindex(*over.kernel):
        spans = (
            slice(d * k, d * k + by * (n - 1) + 1, by)
            for k, d, by, n in zip(place, over.dilation, over.stride, lengths, strict=True)
        )
        whole = (slice(None), slice(None))
        padded[*whole, *spans] += columns[*whole, *place]
    kept = [slice(low, low + n) for n, (low, _) in zip(image, over.all_pads(), strict=True)]
    return padded[tuple(kept)]


@op(
    shape=_col2im_shape,
    dtype=strong_numeric,
    reference=_col2im_reference,
    cases=[
        case(x=(2, 12, 12), output_size=(4, 5), kernel=(3, 2), stride=(1, 2), padding=(1, (1, 0))),
        case(x=(1, 8, 9), output_size=(5, 4), kernel=2, dilation=(2, 1), order=2),
        case(x=(1, 6, 5), output_size=(5,), kernel=3, padding=((0, 2),)),
        case(x=(1, 8, 18), output_size=(3, 2, 3), kernel=2, padding="same", order=2),
        case(x=(0, 8, 4), output_size=(3, 3), kernel=2, order=1),
        case(x=integers(1, 4, 4, high=9), output_size=(3, 3), kernel=2),
        workload(x=(8, 144, 1024), output_size=(32, 32), kernel=3, padding=1),
        misuse("x must have three axes", x=(4, 4), output_size=(3, 3), kernel=2),
        misuse("4 entries must divide axis 1 of x", x=(1, 3, 4), output_size=(3, 3), kernel=2),
        misuse("for each of 4 places", x=(1, 4, 5), output_size=(3, 3), kernel=2),
        misuse("must be numbers, got bool", x=booleans(1, 4, 4), output_size=(3, 3), kernel=2),
    ],
)
def col2im(
    x: Array,
    *,
    output_size: tuple[int, ...],
    kernel: int | tuple[int, ...],
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    dilation: int | tuple[int, ...] = 1,
) -> Array:
    """Folds columns into images by summing overlapping windows: the adjoint of ``im2col``.

    ``x`` has the shape that ``im2col`` gives for images with spatial lengths ``output_size``; the
    other attributes are those of ``im2col``. Entries that several windows cover are added; entries
    in the padding are dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> col2im(jnp.asarray([[[1, 2, 3], [10, 20, 30]]]), output_size=(4,), kernel=2)
        Array([[[ 1, 12, 23, 30]]], dtype=int32)
    """
    image = _image(jnp.shape(x), output_size, kernel)
    over = _window(image, kernel, stride, padding, dilation)
    return transposed(lambda one: _columns(one, over), image, jnp.asarray(x))


@col2im.gradient
def _col2im_gradient(
    d_out: Var, *, kernel: Lengths, stride: Lengths, padding: Padding, dilation: Lengths
) -> Grads:
    columns = im2col(d_out, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
    return {"x": columns}
