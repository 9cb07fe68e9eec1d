"""Pooling over windows, and the adjoints that make it differentiable to every order."""

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, distinct, integers, misuse
from registry.errors import AttributeValueError, ShapeError
from registry.operator import Grads
from registry.ops.windows import (
    Layout,
    Lengths,
    Padding,
    Window,
    full_layout,
    transposed,
    window,
    windows_of,
)
from registry.shapes import inexact, real
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape, VarType, is_inexact
from registry.var import Var


def _window(
    data: Shape,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
) -> Window:
    """The window that pooling attributes describe; by default it moves by its own length."""
    if global_pool:
        layout = full_layout(data, layout)
        kernel = tuple(n for n, letter in zip(data, layout, strict=True) if letter not in "NC")
        return window(data, layout=layout, kernel=kernel, stride=1, padding=0)
    if kernel is None:
        raise AttributeValueError("kernel must be given unless global_pool=True, got None")
    over = window(
        data,
        layout=layout,
        kernel=kernel,
        stride=kernel if stride is None else stride,
        padding=padding,
    )
    if any(side >= k for k, pair in zip(over.kernel, over.pads, strict=True) for side in pair):
        raise AttributeValueError(f"padding must be less than kernel {kernel}, got {padding}")
    return over


def _how(
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
) -> dict[str, Any]:
    """The attributes that the operators here share."""
    return {
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "layout": layout,
        "global_pool": global_pool,
    }


def _pooled_shape(
    data: Shape,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
) -> Shape:
    return _window(data, **_how(kernel, stride, padding, layout, global_pool)).out_shape(data)


def _strong_real(data: VarType) -> DType:
    return real(data)[0]


def _reduce(x: Array, over: Window, start: Any, combine: Any) -> Array:
    x = lax.convert_element_type(x, x.dtype)  # a Python number's dtype becomes the array's own
    kernel, stride = over.over_all_axes(over.kernel), over.over_all_axes(over.stride)
    out: Array = lax.reduce_window(x, start, combine, kernel, stride, over.all_pads())
    return out


# max_pooling -----------------------------------------------------------------------------------


def _max_pool(x: Array, over: Window) -> Array:
    return _reduce(x, over, np.array(_lowest(x.dtype), x.dtype), lax.max)


def _lowest(dtype: DType) -> float | bool | int:
    """The number that no maximum picks."""
    if is_inexact(dtype):
        return -math.inf
    return False if dtype == np.bool_ else int(np.iinfo(dtype).min)


def _max_pooling_reference(data: np.ndarray, **how: Any) -> np.ndarray:
    seen = windows_of(data, _window(data.shape, **how), _lowest(data.dtype))
    return np.asarray(seen.max(axis=tuple(range(data.ndim, seen.ndim))))


@op(
    shape=_pooled_shape,
    dtype=_strong_real,
    reference=_max_pooling_reference,
    cases=[
        case(data=distinct(2, 3, 6, 5), kernel=2),
        case(data=distinct(2, 2, 5, 5), kernel=(3, 2), stride=(2, 1), padding=1),
        case(data=distinct(2, 2, 5, 5), kernel=3, stride=2, padding="same", order=2),
        case(data=distinct(1, 2, 7), kernel=3, stride=1, padding=((0, 2),)),
        case(data=distinct(1, 2, 3, 4, 3), kernel=2, stride=1, order=1),
        case(data=distinct(2, 5, 4, 3), kernel=2, layout="NHWC", order=1),
        case(data=distinct(2, 3, 4, 5), global_pool=True, order=2),
        case(data=integers(1, 2, 6, low=-9, high=9), kernel=2, padding=1),
        case(data=(0, 3, 4, 4), kernel=2, order=1),
        misuse("kernel must be given unless global_pool=True", data=(2, 3, 6, 5)),
        misuse("padding must be less than kernel 2, got 2", data=(2, 3, 6, 5), kernel=2, padding=2),
        misuse("must fit into the padded data, (6, 5)", data=(2, 3, 6, 5), kernel=7),
        misuse("data must have 3, 4 or 5 axes, got shape (2, 3)", data=(2, 3), kernel=1),
        misuse("stride must have 2 entries, got (1,)", data=(2, 3, 6, 5), kernel=2, stride=(1,)),
    ],
)
def max_pooling(
    data: Array,
    *,
    kernel: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
    global_pool: bool = False,
) -> Array:
    """Largest entry of each window over one to three spatial axes.

    ``stride`` is by default ``kernel``. Padding never wins. ``global_pool`` makes the window all of
    the spatial axes. The first of several equal entries gets the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> max_pooling(jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]]), kernel=2)
        Array([[[3., 2.]]], dtype=float32)
    """
    return _max_pool(
        data, _window(data.shape, **_how(kernel, stride, padding, layout, global_pool))
    )


@max_pooling.gradient
def _max_pooling_gradient(
    data: Var,
    d_out: Var,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
) -> Grads:
    how = _how(kernel, stride, padding, layout, global_pool)
    return {"data": max_pooling_gradient(data, d_out, **how)}


def _max_pooling_gradient_shape(
    data: Shape,
    cotangent: Shape,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
) -> Shape:
    expected = _window(data, **_how(kernel, stride, padding, layout, global_pool)).out_shape(data)
    if cotangent != expected:
        raise ShapeError(f"cotangent must have shape {expected}, got {cotangent}")
    return data


def _dtype_of_cotangent(data: VarType, cotangent: VarType) -> DType:
    real(data, cotangent)
    return inexact(cotangent)[0]


@op(
    shape=_max_pooling_gradient_shape,
    dtype=_dtype_of_cotangent,
    cases=[
        case(data=distinct(2, 3, 6, 5), cotangent=(2, 3, 3, 2), kernel=2),
        case(data=distinct(1, 2, 7), cotangent=(1, 2, 4), kernel=3, stride=2, padding=1),
        case(data=distinct(1, 5, 2), cotangent=(1, 2, 2), kernel=2, layout="NWC", order=1),
        case(data=distinct(1, 2, 5), cotangent=(1, 2, 1), global_pool=True, order=1),
        misuse(
            "cotangent must have shape (1, 2, 3), got (1, 2, 4)",
            data=(1, 2, 7),
            cotangent=(1, 2, 4),
            kernel=2,
        ),
    ],
)
def max_pooling_gradient(
    data: Array,
    cotangent: Array,
    *,
    kernel: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
    global_pool: bool = False,
) -> Array:
    """``cotangent`` added where ``max_pooling`` found the largest entry of each window.

    Example:
        >>> import jax.numpy as jnp
        >>> data, cotangent = jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]]), jnp.asarray([[[5.0, 7.0]]])
        >>> max_pooling_gradient(data, cotangent, kernel=2)
        Array([[[0., 5., 7., 0.]]], dtype=float32)
    """
    over = _window(data.shape, **_how(kernel, stride, padding, layout, global_pool))
    _, pull = jax.vjp(lambda x: _max_pool(x, over), data.astype(cotangent.dtype))
    out: Array = pull(cotangent)[0]
    return out


@max_pooling_gradient.gradient
def _max_pooling_gradient_gradient(
    data: Var,
    d_out: Var,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
) -> Grads:
    # Where the largest entry is does not change with the data, almost everywhere.
    how = _how(kernel, stride, padding, layout, global_pool)
    return {"data": None, "cotangent": max_pooling_select(data, d_out, **how)}


def _max_pooling_select_shape(
    data: Shape,
    tangent: Shape,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
) -> Shape:
    if tangent != data:
        raise ShapeError(f"tangent must have the shape of data, got {tangent} and {data}")
    return _window(data, **_how(kernel, stride, padding, layout, global_pool)).out_shape(data)


def _dtype_of_tangent(data: VarType, tangent: VarType) -> DType:
    real(data, tangent)
    return inexact(tangent)[0]


@op(
    shape=_max_pooling_select_shape,
    dtype=_dtype_of_tangent,
    cases=[
        case(data=distinct(2, 3, 6, 5), tangent=(2, 3, 6, 5), kernel=2),
        case(data=distinct(1, 2, 7), tangent=(1, 2, 7), kernel=3, stride=2, padding=1),
        case(data=distinct(1, 5, 2), tangent=(1, 5, 2), kernel=2, layout="NWC", order=1),
        case(data=distinct(1, 2, 5), tangent=(1, 2, 5), global_pool=True, order=1),
        misuse(
            "tangent must have the shape of data, got (1, 2, 4) and (1, 2, 7)",
            data=(1, 2, 7),
            tangent=(1, 2, 4),
            kernel=2,
        ),
    ],
)
def max_pooling_select(
    data: Array,
    tangent: Array,
    *,
    kernel: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
    global_pool: bool = False,
) -> Array:
    """The entry of ``tangent`` at the place where ``max_pooling`` of ``data`` finds the largest.

    The adjoint of ``max_pooling_gradient`` in the cotangent.

    Example:
        >>> import jax.numpy as jnp
        >>> data = jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]])
        >>> tangent = jnp.asarray([[[5.0, 6.0, 7.0, 8.0]]])
        >>> max_pooling_select(data, tangent, kernel=2)
        Array([[[6., 7.]]], dtype=float32)
    """
    over = _window(data.shape, **_how(kernel, stride, padding, layout, global_pool))
    out: Array
    _, out = jax.jvp(lambda x: _max_pool(x, over), (data.astype(tangent.dtype),), (tangent,))
    return out


@max_pooling_select.gradient
def _max_pooling_select_gradient(
    data: Var,
    d_out: Var,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
) -> Grads:
    how = _how(kernel, stride, padding, layout, global_pool)
    return {"data": None, "tangent": max_pooling_gradient(data, d_out, **how)}


# average_pooling -------------------------------------------------------------------------------


def _strong_inexact(*types: VarType) -> DType:
    return inexact(*types)[0]


def _average_pool(x: Array, over: Window, *, count_include_pad: bool) -> Array:
    whole = over.kernel == tuple(x.shape[axis] for axis in over.axes)
    if whole and not any(map(any, over.pads)):
        return jnp.mean(x, axis=over.axes, keepdims=True)
    total = _reduce(x, over, np.array(0, x.dtype), lax.add)
    return total / _counts(x.shape, over, count_include_pad=count_include_pad).astype(x.dtype)


def _counts(data: Shape, over: Window, *, count_include_pad: bool) -> np.ndarray:
    """How many entries each place of the window counts, to broadcast against the result."""
    if count_include_pad:
        return np.array(math.prod(over.kernel), np.float64)
    counted = np.ones([n if i in over.axes else 1 for i, n in enumerate(data)])
    seen = windows_of(counted, over)
    return np.asarray(seen.sum(axis=tuple(range(len(data), seen.ndim))))


def _average_pooling_reference(
    data: np.ndarray,
    *,
    count_include_pad: bool,
    **how: Any,
) -> np.ndarray:
    over = _window(data.shape, **how)
    seen = windows_of(data, over)
    total = seen.sum(axis=tuple(range(data.ndim, seen.ndim)))
    return np.asarray(total / _counts(data.shape, over, count_include_pad=count_include_pad))


@op(
    shape=_pooled_shape,
    dtype=_strong_inexact,
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
) -> Array:
    """Mean of each window over one to three spatial axes.

    ``stride`` is by default ``kernel``. ``global_pool`` makes the window all of the spatial axes.
    Padding counts as zeros, or not at all without ``count_include_pad``.

    Example:
        >>> import jax.numpy as jnp
        >>> average_pooling(jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]]), kernel=2)
        Array([[[2., 1.]]], dtype=float32)
    """
    over = _window(data.shape, **_how(kernel, stride, padding, layout, global_pool))
    return _average_pool(data, over, count_include_pad=count_include_pad)


@average_pooling.gradient
def _average_pooling_gradient(
    data: Var,
    d_out: Var,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
    count_include_pad: bool,
) -> Grads:
    how = _how(kernel, stride, padding, layout, global_pool)
    spread = average_pooling_gradient(
        d_out, shape=data.shape, count_include_pad=count_include_pad, **how
    )
    return {"data": spread}


def _average_pooling_gradient_shape(
    cotangent: Shape,
    *,
    shape: Shape,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
) -> Shape:
    expected = _window(shape, **_how(kernel, stride, padding, layout, global_pool)).out_shape(shape)
    if cotangent != expected:
        raise ShapeError(f"cotangent must have shape {expected}, got {cotangent}")
    return shape


@op(
    shape=_average_pooling_gradient_shape,
    dtype=_strong_inexact,
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
) -> Array:
    """Adjoint of ``average_pooling`` of data of ``shape``: each mean spread over its window.

    Example:
        >>> import jax.numpy as jnp
        >>> average_pooling_gradient(jnp.asarray([[[2.0, 4.0]]]), shape=(1, 1, 4), kernel=2)
        Array([[[1., 1., 2., 2.]]], dtype=float32)
    """
    over = _window(shape, **_how(kernel, stride, padding, layout, global_pool))
    return transposed(
        lambda x: _average_pool(x, over, count_include_pad=count_include_pad), shape, cotangent
    )


@average_pooling_gradient.gradient
def _average_pooling_gradient_gradient(
    d_out: Var,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
    count_include_pad: bool,
) -> Grads:
    how = _how(kernel, stride, padding, layout, global_pool)
    return {"cotangent": average_pooling(d_out, count_include_pad=count_include_pad, **how)}
