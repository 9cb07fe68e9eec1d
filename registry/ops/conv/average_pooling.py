"""Average pooling, and the adjoint that makes it differentiable to every order."""

import math
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.conv.pooling import pooled_shape, pooling_window, reduced_windows, shared
from registry.ops.conv.windows import Window, transposed, windows_of
from registry.shapes import at_least_single, strong_inexact
from registry.table import op
from registry.types import Shape
from registry.var import Var


def _average_pool(x: Array, over: Window, *, count_include_pad: bool) -> Array:
    whole = over.kernel == tuple(x.shape[axis] for axis in over.axes)
    if whole and not any(map(any, over.pads)):
        return jnp.mean(x, axis=over.axes, keepdims=True)
    wide = x.astype(at_least_single(x.dtype))  # half precision would saturate
    total = reduced_windows(wide, over, np.array(0, wide.dtype), lax.add)
    counts = _counts(x.shape, over, count_include_pad=count_include_pad)
    return (total / counts.astype(wide.dtype)).astype(x.dtype)


def _counts(data: Shape, over: Window, *, count_include_pad: bool) -> np.ndarray:
    """The number of entries that each window counts, shaped to broadcast against the result."""
    if count_include_pad and not any(over.overhang):
        return np.array(math.prod(over.kernel), np.float64)
    counted = np.ones([n if i in over.axes else 1 for i, n in enumerate(data)])
    if count_include_pad:  # but not entries beyond the padding
        inside = over._replace(overhang=(0,) * len(over.axes))
        counted = np.pad(counted, inside.all_pads(), constant_values=1.0)
        over = over._replace(pads=((0, 0),) * len(over.axes))
    seen = windows_of(counted, over)
    return np.asarray(seen.sum(axis=tuple(range(len(data), seen.ndim))))


def _average_pooling_reference(
    data: np.ndarray, *, count_include_pad: bool, **how: Any
) -> np.ndarray:
    over = pooling_window(data.shape, **how)
    seen = windows_of(data, over)
    total = seen.sum(axis=tuple(range(data.ndim, seen.ndim)))
    return np.asarray(total / _counts(data.shape, over, count_include_pad=count_include_pad))


@op(
    shape=pooled_shape,
    dtype=strong_inexact,
    reference=_average_pooling_reference,
    cases=[
        case(data=(2, 3, 6, 5), kernel=2),
        case(data=(2, 2, 5, 5), kernel=(3, 2), stride=(2, 1), padding=1, order=2),
        case(data=(2, 2, 5, 5), kernel=(3, 2), stride=2, padding=1, count_include_pad=False),
        case(data=(2, 2, 5, 5), kernel=3, padding="same", count_include_pad=False, order=2),
        case(data=(1, 2, 7), kernel=3, stride=1, padding=((0, 2),)),
        case(data=(1, 2, 3, 4, 3), kernel=2, stride=1, order=1),
        case(data=(2, 5, 4, 3), kernel=2, layout="NHWC", order=1),
        case(data=(2, 3, 4, 5), global_pool=True),
        case(data=(1, 2, 4), kernel=4, stride=2, padding=2),
        case(data=(0, 3, 4, 4), kernel=2, order=1),
        case(data=(1, 2, 6, 5), kernel=3, stride=2, padding=(0, 1), ceil_mode=True, order=1),
        case(
            data=(1, 2, 6),
            kernel=3,
            stride=2,
            padding=1,
            ceil_mode=True,
            count_include_pad=False,
            order=1,
        ),
        workload(data=(16, 32, 64, 64), kernel=3, stride=2, padding=1),
        misuse("kernel must be given unless global_pool=True", data=(2, 3, 6, 5)),
        misuse("padding must be less than kernel 2, got 2", data=(2, 3, 6, 5), kernel=2, padding=2),
        misuse("the inputs must be floating, got int32", data=integers(1, 2, 6, high=9), kernel=2),
    ],
)
def average_pooling(
    data: Array,
    *,
    kernel: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
    global_pool: bool = False,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
) -> Array:
    """Average pooling: the mean of each window over one to three spatial axes.

    ``stride`` defaults to ``kernel``. ``global_pool`` makes the window cover the whole spatial
    axes. Padding counts as zeros, or not at all without ``count_include_pad``. With ``ceil_mode`` a
    last window may extend beyond the padding, where nothing counts, to cover remaining entries; as
    in PyTorch it is omitted if it would cover only padding. (MXNet's ``full`` keeps it.)

    Example:
        >>> import jax.numpy as jnp
        >>> average_pooling(jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]]), kernel=2)
        Array([[[2., 1.]]], dtype=float32)
    """
    over = pooling_window(
        data.shape, **shared(kernel, stride, padding, layout, global_pool, ceil_mode)
    )
    return _average_pool(data, over, count_include_pad=count_include_pad)


@average_pooling.gradient
def _average_pooling_gradient(data: Var, d_out: Var, **how: Any) -> Grads:
    return {"data": average_pooling_gradient(d_out, shape=data.shape, **how)}


def _average_pooling_gradient_shape(
    cotangent: Shape, *, shape: Shape, count_include_pad: bool, **how: Any
) -> Shape:
    del count_include_pad
    expected = pooling_window(shape, **how).out_shape(shape)
    if cotangent != expected:
        raise ShapeError(f"cotangent must have shape {expected}, got {cotangent}")
    return shape


@op(
    shape=_average_pooling_gradient_shape,
    dtype=strong_inexact,
    cases=[
        case(cotangent=(2, 3, 3, 2), shape=(2, 3, 6, 5), kernel=2),
        case(cotangent=(1, 2, 4), shape=(1, 2, 7), kernel=3, stride=2, padding=1),
        case(
            cotangent=(1, 2, 2),
            shape=(1, 4, 2),
            kernel=3,
            stride=2,
            padding=1,
            layout="NWC",
            count_include_pad=False,
            order=1,
        ),
        case(cotangent=(1, 2, 1), shape=(1, 2, 5), global_pool=True, order=1),
        case(cotangent=(1, 2, 3), shape=(1, 2, 6), kernel=3, stride=2, ceil_mode=True, order=1),
        workload(cotangent=(16, 32, 32, 32), shape=(16, 32, 64, 64), kernel=3, stride=2, padding=1),
        misuse(
            "cotangent must have shape (1, 2, 3), got (1, 2, 4)",
            cotangent=(1, 2, 4),
            shape=(1, 2, 7),
            kernel=2,
        ),
    ],
)
def average_pooling_gradient(
    cotangent: Array,
    *,
    shape: tuple[int, ...],
    kernel: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
    global_pool: bool = False,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
) -> Array:
    """Adjoint of ``average_pooling`` for data of ``shape``: spreads each mean over its window.

    Example:
        >>> import jax.numpy as jnp
        >>> average_pooling_gradient(jnp.asarray([[[2.0, 4.0]]]), shape=(1, 1, 4), kernel=2)
        Array([[[1., 1., 2., 2.]]], dtype=float32)
    """
    over = pooling_window(shape, **shared(kernel, stride, padding, layout, global_pool, ceil_mode))
    return transposed(
        lambda x: _average_pool(x, over, count_include_pad=count_include_pad), shape, cotangent
    )


@average_pooling_gradient.gradient
def _average_pooling_gradient_gradient(d_out: Var, *, shape: Shape, **how: Any) -> Grads:
    del shape
    return {"cotangent": average_pooling(d_out, **how)}
