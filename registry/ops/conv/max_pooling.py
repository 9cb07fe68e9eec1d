"""Max pooling, and the adjoints that make it differentiable to every order."""

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, distinct, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.conv.pooling import pooled_shape, pooling_window, reduced_windows, shared
from registry.ops.conv.windows import Layout, Lengths, Padding, Window, windows_of
from registry.shapes import inexact, real, strong_real
from registry.table import op
from registry.types import DType, Shape, VarType, integer_limits, is_inexact
from registry.var import Var
from registry.xla.device_types import varied_alike


def _max_pool(x: Array, over: Window) -> Array:
    return reduced_windows(x, over, np.array(_lowest(x.dtype), x.dtype), lax.max)


def _chosen_from(data: Array, dtype: DType, as_it_is: bool) -> Array:
    """Returns the numbers whose maxima receive gradients.

    Minus infinity is the padding value, from which it is told apart as the smallest finite number.
    """
    numbers = data.astype(dtype)
    if as_it_is:
        return numbers
    return jnp.maximum(numbers, jnp.finfo(dtype).min)  # type: ignore[no-untyped-call]


def _lowest(dtype: DType) -> float | bool | int:
    """The number that no maximum selects."""
    if is_inexact(dtype):
        return -math.inf
    return False if dtype == np.bool_ else integer_limits(dtype)[0]


def _max_pooling_reference(data: np.ndarray, drops_infinite: bool, **how: Any) -> np.ndarray:
    seen = windows_of(data, pooling_window(data.shape, **how), _lowest(data.dtype))
    return np.asarray(seen.max(axis=tuple(range(data.ndim, seen.ndim))))


@op(
    shape=pooled_shape,
    dtype=strong_real,
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
        case(data=distinct(1, 2, 6), kernel=2, drops_infinite=True, order=2),
        case(
            data=distinct(1, 2, 6, 5), kernel=3, stride=2, padding=(0, 1), ceil_mode=True, order=1
        ),
        workload(data=(16, 32, 64, 64), kernel=3, stride=2, padding=1),
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
    ceil_mode: bool = False,
    drops_infinite: bool = False,
) -> Array:
    """Max pooling: the largest entry of each window over one to three spatial axes.

    ``stride`` defaults to ``kernel``. Padding is never selected. ``global_pool`` makes the window
    cover the whole spatial axes. With ``ceil_mode`` a last window may extend beyond the padding to
    cover remaining entries; as in PyTorch it is omitted if it would cover only padding. (MXNet's
    ``full`` keeps it.) The first of several equal entries receives the gradient, also in a window
    of minus infinities. In JAX it is lost where such a window meets padding, and here, too, with
    ``drops_infinite``.

    Example:
        >>> import jax.numpy as jnp
        >>> max_pooling(jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]]), kernel=2)
        Array([[[3., 2.]]], dtype=float32)
    """
    return _max_pool(
        data,
        pooling_window(
            data.shape, **shared(kernel, stride, padding, layout, global_pool, ceil_mode)
        ),
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
    ceil_mode: bool,
    drops_infinite: bool,
) -> Grads:
    how = shared(kernel, stride, padding, layout, global_pool, ceil_mode)
    how["drops_infinite"] = drops_infinite
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
    ceil_mode: bool,
) -> Shape:
    expected = pooling_window(
        data, **shared(kernel, stride, padding, layout, global_pool, ceil_mode)
    ).out_shape(data)
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
        case(
            data=distinct(1, 2, 6), cotangent=(1, 2, 3), kernel=3, stride=2, ceil_mode=True, order=1
        ),
        case(data=distinct(1, 2, 6), cotangent=(1, 2, 3), kernel=2, drops_infinite=True, order=1),
        workload(data=(16, 32, 64, 64), cotangent=(16, 32, 32, 32), kernel=3, stride=2, padding=1),
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
    ceil_mode: bool = False,
    drops_infinite: bool = False,
) -> Array:
    """Adds ``cotangent`` at the position of the largest entry of each window of ``max_pooling``.

    Example:
        >>> import jax.numpy as jnp
        >>> data, cotangent = jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]]), jnp.asarray([[[5.0, 7.0]]])
        >>> max_pooling_gradient(data, cotangent, kernel=2)
        Array([[[0., 5., 7., 0.]]], dtype=float32)
    """
    over = pooling_window(
        data.shape, **shared(kernel, stride, padding, layout, global_pool, ceil_mode)
    )
    # Without padding, each window scatters to its first entry if all are minus infinity.
    as_it_is = drops_infinite or not any(map(any, over.all_pads()))
    data, cotangent = varied_alike([_chosen_from(data, cotangent.dtype, as_it_is), cotangent])
    _, pull = jax.vjp(lambda x: _max_pool(x, over), data)
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
    ceil_mode: bool,
    drops_infinite: bool,
) -> Grads:
    # The position of the largest entry is constant in the data, almost everywhere.
    how = shared(kernel, stride, padding, layout, global_pool, ceil_mode)
    how["drops_infinite"] = drops_infinite
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
    ceil_mode: bool,
) -> Shape:
    if tangent != data:
        raise ShapeError(f"tangent must have the shape of data, got {tangent} and {data}")
    return pooling_window(
        data, **shared(kernel, stride, padding, layout, global_pool, ceil_mode)
    ).out_shape(data)


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
        case(
            data=distinct(1, 2, 6), tangent=(1, 2, 6), kernel=3, stride=2, ceil_mode=True, order=1
        ),
        case(data=distinct(1, 2, 6), tangent=(1, 2, 6), kernel=2, drops_infinite=True, order=1),
        workload(data=(4, 32, 64, 64), tangent=(4, 32, 64, 64), kernel=3, stride=2, padding=1),
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
    ceil_mode: bool = False,
    drops_infinite: bool = False,
) -> Array:
    """Selects the entry of ``tangent`` where ``max_pooling`` of ``data`` has its maximum.

    This is the adjoint of ``max_pooling_gradient`` with respect to the cotangent.

    Example:
        >>> import jax.numpy as jnp
        >>> data = jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]])
        >>> tangent = jnp.asarray([[[5.0, 6.0, 7.0, 8.0]]])
        >>> max_pooling_select(data, tangent, kernel=2)
        Array([[[6., 7.]]], dtype=float32)
    """
    over = pooling_window(
        data.shape, **shared(kernel, stride, padding, layout, global_pool, ceil_mode)
    )
    out: Array
    primal = _chosen_from(data, tangent.dtype, drops_infinite)
    _, out = jax.jvp(lambda x: _max_pool(x, over), (primal,), (tangent,))
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
    ceil_mode: bool,
    drops_infinite: bool,
) -> Grads:
    how = shared(kernel, stride, padding, layout, global_pool, ceil_mode)
    how["drops_infinite"] = drops_infinite
    return {"data": None, "tangent": max_pooling_gradient(data, d_out, **how)}
