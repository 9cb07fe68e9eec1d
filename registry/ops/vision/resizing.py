"""Resizing of images by nearest-neighbor or linear interpolation."""

import functools
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from registry.cases import booleans, case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.conv.windows import Layout, Lengths, each_axis, full_layout
from registry.shapes import at_least_single, inexact, strong, strong_inexact
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var
from registry.xla import device_types

Method = Literal["nearest", "linear", "bilinear"]
"""The interpolation between neighboring entries."""
_UNROLLED = 8
"""The number of entries of a row added in one expression; more are added in a loop."""


class _Parts(NamedTuple):
    """The entries of a sparse matrix: ``out[rows[i]]`` receives ``weights[i] * x[columns[i]]``."""

    rows: np.ndarray
    columns: np.ndarray
    weights: np.ndarray

    def transposed(self) -> "_Parts":
        """The entries of the transpose."""
        return _Parts(self.columns, self.rows, self.weights)


def _parts(length: int, size: int, *, method: Method, align_corners: bool) -> _Parts:
    """The matrix that resizes an axis of ``length`` entries to ``size``.

    Positions in the input are exact fractions, so that rounding moves none across an entry.
    """
    out = np.arange(size)
    if align_corners:
        places, unit = out * (length - 1), max(size - 1, 1)
    else:
        places, unit = (2 * out + 1) * length - size, 2 * size
    places = np.clip(places, 0, (length - 1) * unit)
    if method == "nearest":
        return _Parts(out, (2 * places + unit) // (2 * unit), np.ones(size))
    low, above = np.divmod(places, unit)
    both = _Parts(
        np.concatenate([out, out]),
        np.concatenate([low, low + 1]),
        np.concatenate([unit - above, above]) / unit,
    )
    used = both.weights != 0
    return _Parts(*(part[used] for part in both))


def _applied(x: Array, axis: int, parts: _Parts, rows: int) -> Array:
    """The matrix of ``parts`` with ``rows`` rows, applied along ``axis`` of ``x``.

    Every row gathers the same number of entries, padded with entries of weight zero: no scatter is
    needed, neither for the matrix nor for its transpose.
    """
    beside = (-1, *[1] * (x.ndim - axis - 1))

    def term(column: Any, weight: Any) -> Array:
        factor = jnp.asarray(weight, x.dtype).reshape(beside)
        taken = jnp.take(x, column, axis=axis, mode="clip")
        if isinstance(weight, np.ndarray) and np.all(weight == 1):
            return taken
        return jnp.where(factor == 0, 0, taken * factor)  # unused entries may be infinite

    columns, weights = _table(parts, rows)
    if len(columns) <= _UNROLLED:
        return functools.reduce(jnp.add, map(term, columns, weights))
    zeros = jnp.zeros((*x.shape[:axis], rows, *x.shape[axis + 1 :]), x.dtype)

    def added(total: Array, one: Any) -> tuple[Array, None]:
        return total + term(*one), None

    total: Array = device_types.scan(added, zeros, (columns, weights))[0]
    return total


def _table(parts: _Parts, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The first entry of each row, the second of each, and so on: columns and weights."""
    order = np.argsort(parts.rows, kind="stable")
    row, column, weight = (part[order] for part in parts)
    counts = np.bincount(row, minlength=rows)
    nth = np.arange(row.size) - (np.cumsum(counts) - counts)[row]
    columns = np.zeros((counts.max(), rows), np.int32)
    weights = np.zeros(columns.shape)
    columns[nth, row], weights[nth, row] = column, weight
    return columns, weights


def _spatial(shape: Shape, layout: Layout | None) -> tuple[int, ...]:
    """The spatial axes of data of that shape."""
    return tuple(i for i, one in enumerate(full_layout(shape, layout)) if one not in "NC")


def _resized_shape(data: Shape, *, size: Lengths, layout: Layout | None) -> Shape:
    axes = _spatial(data, layout)
    out = list(data)
    for axis, n in zip(axes, each_axis("size", size, len(axes), at_least=1), strict=True):
        out[axis] = n
    if any(data[axis] == 0 for axis in axes):
        raise ShapeError(f"the spatial axes of data must not be empty, got shape {data}")
    return tuple(out)


def _resized_dtype(data: VarType, *, method: Method) -> DType:
    return strong(data) if method == "nearest" else inexact(data)[0]


def _resize_reference(
    data: np.ndarray, *, size: Lengths, method: Method, align_corners: bool, layout: Layout | None
) -> np.ndarray:
    out_shape = _resized_shape(data.shape, size=size, layout=layout)
    for axis in _spatial(data.shape, layout):
        length, n = data.shape[axis], out_shape[axis]
        at = np.arange(n) * (length - 1) / max(n - 1, 1)
        if not align_corners:
            at = (np.arange(n) + 0.5) * (length / n) - 0.5
        along = np.moveaxis(data, axis, -1)
        if method == "nearest":
            along = along[..., np.clip(np.floor(at + 0.5), 0, length - 1).astype(int)]
        else:
            flat = along.reshape(-1, length)
            rows = [_interpolated(at, row) for row in flat] or np.zeros((0, n))
            along = np.reshape(rows, (*along.shape[:-1], n)).astype(data.dtype)
        data = np.moveaxis(along, -1, axis)
    return data


def _interpolated(at: np.ndarray, row: np.ndarray) -> np.ndarray:
    return np.asarray(np.interp(at, np.arange(row.size), row))


@op(
    shape=_resized_shape,
    dtype=_resized_dtype,
    reference=_resize_reference,
    cases=[
        case(data=(2, 1, 4, 3), size=(7, 5)),
        case(data=(1, 2, 5, 4), size=(3, 7), align_corners=True, order=2),
        case(data=(1, 2, 3, 4), size=(6, 3), method="nearest"),
        case(data=(1, 1, 3, 4), size=(5, 3), method="bilinear", order=1),
        case(data=(1, 5, 4), size=8, method="nearest", align_corners=True, order=1),
        case(data=(2, 5, 1), size=(3,), layout="NWC", order=2),
        case(data=(1, 1, 2, 3, 2), size=(3, 2, 4), order=1),
        case(data=(1, 1, 1, 4), size=(3, 1), align_corners=True, order=1),
        case(data=(0, 2, 3), size=4, order=1),
        case(data=(1, 1, 2), size=19, order=1),
        case(data=integers(1, 1, 2, 3, high=9), size=4, method="nearest"),
        workload(data=(8, 16, 64, 64), size=(128, 128)),
        misuse("data must have 3, 4 or 5 axes, got shape (4, 4)", data=(4, 4), size=8),
        misuse("size must have 2 entries, got (8,)", data=(1, 1, 4, 4), size=(8,)),
        misuse("size must be at least 1, got 0", data=(1, 1, 4), size=0),
        misuse("the spatial axes of data must not be empty", data=(1, 1, 0), size=2),
        misuse("the inputs must be floating, got bool", data=booleans(1, 1, 4), size=2),
        misuse("must be one of 'nearest', 'linear', 'bil", data=(1, 1, 4), size=2, method="cubic"),
    ],
)
def resize(
    data: Array,
    *,
    size: int | tuple[int, ...],
    method: Literal["nearest", "linear", "bilinear"] = "linear",
    align_corners: bool = False,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
) -> Array:
    """Resizes one to three spatial axes of ``data`` by interpolation.

    Entry ``i`` of ``size`` along an axis is the value of ``data`` at
    ``(i + 1/2) * length / size - 1/2``: pixel centers are at half-integers, and both ends of the
    axes coincide. With ``align_corners`` it is the value at ``i * (length - 1) / (size - 1)``, or
    the first entry if ``size`` is 1: the centers of the outermost pixels coincide. Beyond these the
    outermost entries are repeated.

    ``"linear"``, with the alias ``"bilinear"`` after the case of two axes, interpolates between two
    neighbors along each axis, without antialiasing when the size shrinks. ``"nearest"`` takes the
    nearest entry, the later of two that are equally near; it accepts any dtype.

    Source: ONNX, operator ``Resize``, with ``half_pixel`` or ``align_corners``, and
    ``round_prefer_ceil`` for the nearest; the same as PyTorch's ``interpolate`` with ``linear``,
    ``bilinear``, ``trilinear`` and ``nearest-exact``.

    Example:
        >>> import jax.numpy as jnp
        >>> resize(jnp.asarray([[[0.0, 4.0]]]), size=4)
        Array([[[0., 1., 3., 4.]]], dtype=float32)
    """
    data = jnp.asarray(data)
    out = _wide(data) if method != "nearest" else data
    for axis in _spatial(data.shape, layout):
        n = _resized_shape(data.shape, size=size, layout=layout)[axis]
        parts = _parts(data.shape[axis], n, method=method, align_corners=align_corners)
        out = _applied(out, axis, parts, n)
    return out.astype(data.dtype)


def _wide(x: Array) -> Array:
    """``x`` in the dtype in which it is summed: at least single precision."""
    return x.astype(at_least_single(x.dtype))


def _how(method: Method, align_corners: bool, layout: Layout | None) -> dict[str, Any]:
    return {"method": method, "align_corners": align_corners, "layout": layout}


@resize.gradient
def _resize_gradient(
    data: Var, d_out: Var, *, method: Method, align_corners: bool, layout: Layout | None
) -> Grads:
    how = _how(method, align_corners, layout)
    return {"data": resize_gradient(d_out, shape=data.shape, **how)}


def _resize_gradient_shape(cotangent: Shape, *, shape: Shape, layout: Layout | None) -> Shape:
    axes = _spatial(shape, layout)
    fits = len(cotangent) == len(shape)
    if not fits or any(
        n != m for i, (n, m) in enumerate(zip(cotangent, shape, strict=True)) if i not in axes
    ):
        raise ShapeError(
            f"cotangent must have shape {shape} but for the spatial axes, got {cotangent}"
        )
    if 0 in (lengths := [one[axis] for axis in axes for one in (shape, cotangent)]):
        raise ShapeError(f"the spatial axes must not be empty, got lengths {lengths}")
    return shape


def _resize_gradient_reference(
    cotangent: np.ndarray, *, shape: Shape, layout: Layout | None, **how: Any
) -> np.ndarray:
    # The adjoint is the product of the cotangent with each resized unit of data.
    size = tuple(cotangent.shape[axis] for axis in _spatial(shape, layout))
    out = np.zeros(shape, cotangent.dtype)
    for place in np.ndindex(shape):
        unit = np.zeros(shape)
        unit[place] = 1.0
        out[place] = np.sum(_resize_reference(unit, size=size, layout=layout, **how) * cotangent)
    return out


@op(
    shape=_resize_gradient_shape,
    dtype=strong_inexact,
    reference=_resize_gradient_reference,
    cases=[
        case(cotangent=(2, 1, 7, 5), shape=(2, 1, 4, 3)),
        case(cotangent=(1, 3, 6), shape=(1, 5, 6), align_corners=True, layout="NWC", order=2),
        case(cotangent=(1, 1, 6, 3), shape=(1, 1, 3, 4), method="nearest", order=2),
        case(cotangent=(0, 2, 4), shape=(0, 2, 3), order=1),
        workload(cotangent=(8, 16, 128, 128), shape=(8, 16, 64, 64)),
        misuse("cotangent must have shape (1, 2, 4) but for", cotangent=(1, 3, 8), shape=(1, 2, 4)),
        misuse("the spatial axes must not be empty", cotangent=(1, 2, 8), shape=(1, 2, 0)),
    ],
)
def resize_gradient(
    cotangent: Array,
    *,
    shape: tuple[int, ...],
    method: Literal["nearest", "linear", "bilinear"] = "linear",
    align_corners: bool = False,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
) -> Array:
    """Adjoint of ``resize`` for data of ``shape``: spreads each entry to those it depends on.

    Example:
        >>> import jax.numpy as jnp
        >>> resize_gradient(jnp.ones((1, 1, 4)), shape=(1, 1, 2))
        Array([[[2., 2.]]], dtype=float32)
    """
    cotangent = jnp.asarray(cotangent)
    out = _wide(cotangent)
    for axis in reversed(_spatial(shape, layout)):
        n = cotangent.shape[axis]
        parts = _parts(shape[axis], n, method=method, align_corners=align_corners)
        out = _applied(out, axis, parts.transposed(), shape[axis])
    return out.astype(cotangent.dtype)


@resize_gradient.gradient
def _resize_gradient_gradient(
    cotangent: Var, d_out: Var, *, method: Method, align_corners: bool, layout: Layout | None
) -> Grads:
    size = tuple(cotangent.shape[axis] for axis in _spatial(cotangent.shape, layout))
    return {"cotangent": resize(d_out, size=size, **_how(method, align_corners, layout))}
