"""Pooling by the p-norm of each window."""

import math
from typing import Annotated, Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, nonzero, workload
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.conv.average_pooling import average_pooling_gradient
from registry.ops.conv.pooling import pooled_shape, pooling_window, reduced_windows, shared
from registry.ops.conv.windows import Layout, Lengths, Padding, windows_of
from registry.ops.core.broadcasting import cast, unbroadcast
from registry.ops.core.comparison import equal
from registry.ops.core.elementwise import where
from registry.ops.core.reductions import statistics_dtype
from registry.ops.elementwise.extrema import abs, sign
from registry.ops.elementwise.powers import power
from registry.shapes import inexact, real
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var


def _lp_pooling_shape(
    data: Shape,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
    ceil_mode: bool,
) -> tuple[Shape, Shape]:
    shape = pooled_shape(data, **shared(kernel, stride, padding, layout, global_pool, ceil_mode))
    return shape, shape


def _lp_pooling_dtype(data: VarType) -> list[DType]:
    real(data)
    dtype = inexact(data)[0]
    return [dtype, statistics_dtype(dtype)]


def _lp_pooling_reference(data: np.ndarray, *, p_value: float, **how: Any) -> np.ndarray:
    seen = windows_of(data, pooling_window(data.shape, **how))
    flat = seen.reshape(*seen.shape[: data.ndim], -1)
    return np.asarray(np.linalg.norm(flat, p_value, -1))


@op(
    shape=_lp_pooling_shape,
    dtype=_lp_pooling_dtype,
    reference=_lp_pooling_reference,
    outputs=("out", "norm"),
    hidden=("norm",),
    cases=[
        case(data=nonzero(2, 2, 4, 4), kernel=2, order=2),
        case(data=nonzero(1, 2, 5), kernel=3, stride=2, padding=1, p_value=3.0, order=2, rtol=256),
        case(data=nonzero(1, 2, 4), kernel=2, p_value=1.0),
        case(
            data=nonzero(1, 6, 5, 1),
            kernel=(3, 2),
            stride=2,
            p_value=1.5,
            ceil_mode=True,
            layout="NHWC",
            order=1,
            rtol=256,
        ),
        case(data=nonzero(2, 1, 2, 2, 2), global_pool=True, order=1),
        case(data=nonzero(1, 2, 6), kernel=4, stride=3, padding="same", p_value=4.0, order=1),
        case(data=nonzero(1, 1, 5), kernel=4, stride=1, padding="same", order=1),
        case(data=nonzero(1, 2, 6), kernel=3, stride=3, padding=1, ceil_mode=True, order=1),
        workload(data=(16, 32, 64, 64), kernel=3, stride=2, padding=1),
        misuse(
            "attribute 'p_value' must be at least 1, got 0.5", data=(1, 2, 4), kernel=2, p_value=0.5
        ),
        misuse("kernel must be given unless global_pool=True", data=(2, 3, 6, 5)),
        misuse("the inputs must be floating", data=integers(1, 2, 6, high=9), kernel=2),
        misuse("must be real, got complex64", data=np.ones((1, 2, 4), np.complex64), kernel=2),
    ],
)
def lp_pooling(
    data: Array,
    *,
    kernel: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
    global_pool: bool = False,
    ceil_mode: bool = False,
    p_value: Annotated[float, Check("be at least 1", lambda value: 1 <= value < math.inf)] = 2.0,
) -> tuple[Array, Array]:
    """Power-average pooling: ``sum(|x|^p)^(1/p)`` of each window, with ``p = p_value``.

    There are one to three spatial axes. The other attributes are those of ``max_pooling``; padding
    adds nothing. Derivatives that do not exist are zero: those for a window of zeros, where the
    norm is not differentiable, and higher ones at a zero if ``p`` is not even. The sum is computed
    in at least float32. The powers are not scaled, which would take a second pass over each window:
    if they leave the range of the dtype, the sum is infinite or zero.

    Example:
        >>> import jax.numpy as jnp
        >>> lp_pooling(jnp.asarray([[[3.0, -4.0, 0.0, 0.0]]]), kernel=2)
        Array([[[5., 0.]]], dtype=float32)
    """
    how = shared(kernel, stride, padding, layout, global_pool, ceil_mode)
    x = data.astype(statistics_dtype(data.dtype))
    powers = jnp.square(x) if p_value == 2 else jnp.power(jnp.abs(x), p_value)
    over = pooling_window(data.shape, **how)
    total = reduced_windows(powers, over, np.array(0, x.dtype), lax.add)
    empty = total == 0  # whose root has no derivative
    root = jnp.power(jnp.where(empty, 1, total), 1 / p_value)
    norm = jnp.where(empty, 0, root)
    return norm.astype(data.dtype), norm


@lp_pooling.gradient
def _lp_pooling_gradient(
    data: Var,
    norm: Var,
    d_out: Var,
    d_norm: Var | None,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
    ceil_mode: bool,
    p_value: float,
) -> Grads:
    # d norm / d x = sign(x) |x|^(p-1) norm^(1-p) for each window that contains x. The sum over
    # those windows is the adjoint of average pooling, times the size of the window. The part of a
    # window beyond the padding is zero too, so it can be treated as padding here.
    over = pooling_window(
        data.shape, **shared(kernel, stride, padding, layout, global_pool, ceil_mode)
    )
    pads = tuple(over.all_pads()[axis] for axis in over.axes)
    how = shared(over.kernel, over.stride, pads, over.layout, False, False)
    d = cast(d_out, dtype=norm.dtype)
    d = d if d_norm is None else d + d_norm
    empty, x = equal(norm, 0), cast(data, dtype=norm.dtype)
    share = where(empty, 0.0, d * power(where(empty, 1.0, norm), 1.0 - p_value))
    spread = average_pooling_gradient(
        share * float(math.prod(over.kernel)), shape=data.shape, **how
    )
    return {"data": unbroadcast(spread * _slope(x, p_value), data)}


def _slope(x: Var, p: float) -> Var:
    """``sign(x) |x|^(p - 1)``, with derivatives of zero at zero where they do not exist."""
    if p == 2:
        return x
    if p % 2 == 0:
        slope: Var = power(x, p - 1.0)
        return slope
    at_zero = equal(x, 0.0)
    at = where(at_zero, 1.0, x)
    slope = where(at_zero, 0.0, sign(at) * power(abs(at), p - 1.0))
    return slope
