"""Correlation between patches of two feature maps.

A multiplicative correlation is bilinear in its two maps, ``corr(a, b)``. Its adjoints give the
gradient and are again bilinear: with ``<., .>`` for the sum of products and ``(g_a, g_b) =
correlation_gradient(a, b, g)``, ``<g, corr(a, b)> = <g_a, a> = <g_b, b>``. So the gradient of each
consists of the others. A correlation of differences is linear up to signs, whose derivative is
zero.
"""

from typing import Any

import jax
import numpy as np

from registry.cases import case, distinct, misuse, uniform, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.conv.patches import (
    Kernel,
    Natural,
    Patches,
    Positive,
    correlated,
    correlation_reference,
    gradient_reference,
    shape_of,
    tangent_reference,
    widened,
)
from registry.ops.core.broadcasting import unbroadcast
from registry.shapes import strong_real_inexact
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

# correlation -----------------------------------------------------------------------------------


def _correlation_shape(data1: Shape, data2: Shape, **how: Any) -> Shape:
    return shape_of(data1, data2, Patches(**how))


@op(
    shape=_correlation_shape,
    dtype=strong_real_inexact,
    reference=correlation_reference,
    aliases=["Correlation"],
    cases=[
        case(data1=(2, 2, 3, 4), data2=(2, 2, 3, 4)),
        case(
            data1=(1, 2, 5, 4),
            data2=(1, 2, 5, 4),
            kernel_size=3,
            max_displacement=3,
            stride1=2,
            stride2=2,
            pad_size=3,
            order=2,
        ),
        case(
            data1=distinct(1, 2, 3, 4),
            data2=uniform(1, 2, 3, 4, low=0.01, high=0.04),
            is_multiply=False,
        ),
        case(data1=(1, 1, 2, 2), data2=(1, 1, 2, 2), max_displacement=0, order=1),
        case(data1=(0, 1, 3, 3), data2=(0, 1, 3, 3), order=1),
        workload(data1=(2, 32, 32, 32), data2=(2, 32, 32, 32), max_displacement=4, pad_size=4),
        misuse(
            "data1 and data2 must have one shape (batch, channels > 0, height, width)",
            data1=(1, 2, 3, 3),
            data2=(1, 1, 3, 3),
        ),
        misuse(
            "a patch and its displacements must fit into the padded maps",
            data1=(1, 1, 3, 3),
            data2=(1, 1, 3, 3),
            max_displacement=2,
        ),
        misuse(
            "attribute 'kernel_size' must be odd and positive, got 2",
            data1=(1, 1, 5, 5),
            data2=(1, 1, 5, 5),
            kernel_size=2,
        ),
        misuse(
            "attribute 'stride2' must be positive, got 0",
            data1=(1, 1, 5, 5),
            data2=(1, 1, 5, 5),
            stride2=0,
        ),
        misuse(
            "must be real",
            data1=np.zeros((1, 1, 3, 3), np.complex64),
            data2=np.zeros((1, 1, 3, 3), np.complex64),
        ),
    ],
)
def correlation(
    data1: Array,
    data2: Array,
    *,
    kernel_size: Kernel = 1,
    max_displacement: Natural = 1,
    stride1: Positive = 1,
    stride2: Positive = 1,
    pad_size: Natural = 0,
    is_multiply: bool = True,
) -> Array:
    """Correlation between patches of one feature map and displaced patches of another.

    Both have shape ``(batch, channels, height, width)`` and are padded with ``pad_size`` zeros on
    each side. A patch has ``kernel_size`` pixels along each axis; patches of ``data1`` are
    ``stride1`` apart. Each is compared with the patches of ``data2`` at displacements that are
    multiples of ``stride2`` up to ``max_displacement``, vertically and horizontally. The result has
    shape ``(batch, displacements, h, w)``, with the displacements in row-major order; ``h`` and
    ``w`` count the patches that all displacements keep within the padded maps.

    ``out[n, (p, q), i, j]`` is the mean over channels and pixels of the patch of ``data1 * data2``,
    displaced, or of ``|data1 - data2|`` without ``is_multiply``. The derivative of ``|x|`` at 0 is
    1, as in ``abs``.

    Source: Fischer et al. 2015, "FlowNet: Learning Optical Flow with Convolutional Networks",
    section 3; divided by the number of products as in MXNet's ``Correlation``.

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.arange(9.0).reshape(1, 1, 3, 3)
        >>> correlation(image, image).reshape(3, 3)
        Array([[ 0.,  4.,  8.],
               [12., 16., 20.],
               [24., 28., 32.]], dtype=float32)
    """
    patches = Patches(kernel_size, max_displacement, stride1, stride2, pad_size, is_multiply)
    dtype, (first, second) = widened(data1, data2)
    return correlated(first, second, patches).astype(dtype)


@correlation.gradient
def _correlation_gradient(data1: Var, data2: Var, d_out: Var, **how: Any) -> Grads:
    d_data1, d_data2 = correlation_gradient(data1, data2, d_out, **how)
    return {"data1": unbroadcast(d_data1, data1), "data2": unbroadcast(d_data2, data2)}


# Its adjoint -----------------------------------------------------------------------------------


def _gradient_shape(
    data1: Shape, data2: Shape, cotangent: Shape, **how: Any
) -> tuple[Shape, Shape]:
    expected = shape_of(data1, data2, Patches(**how))
    if cotangent != expected:
        raise ShapeError(f"cotangent must have shape {expected}, got {cotangent}")
    return data1, data2


def _strong_reals(*types: VarType) -> list[DType]:
    return [strong_real_inexact(*types)] * 2


@op(
    outputs=("first", "second"),
    shape=_gradient_shape,
    dtype=_strong_reals,
    reference=gradient_reference,
    cases=[
        case(data1=(2, 2, 3, 4), data2=(2, 2, 3, 4), cotangent=(2, 9, 1, 2)),
        case(
            data1=distinct(1, 2, 3, 3),
            data2=uniform(1, 2, 3, 3, low=0.01, high=0.04),
            cotangent=(1, 9, 2, 2),
            kernel_size=3,
            max_displacement=2,
            stride1=2,
            stride2=2,
            pad_size=3,
            is_multiply=False,
            order=2,
        ),
        misuse(
            "cotangent must have shape (1, 9, 1, 1), got (1, 1, 3, 3)",
            data1=(1, 2, 3, 3),
            data2=(1, 2, 3, 3),
            cotangent=(1, 1, 3, 3),
        ),
    ],
)
def correlation_gradient(
    data1: Array,
    data2: Array,
    cotangent: Array,
    *,
    kernel_size: Kernel = 1,
    max_displacement: Natural = 1,
    stride1: Positive = 1,
    stride2: Positive = 1,
    pad_size: Natural = 0,
    is_multiply: bool = True,
) -> tuple[Array, Array]:
    """Gradient of ``correlation`` with respect to both maps, given the cotangent of its result.

    Example:
        >>> import jax.numpy as jnp
        >>> maps = jnp.asarray([[[[2.0]]]]), jnp.asarray([[[[3.0]]]])
        >>> first, second = correlation_gradient(*maps, jnp.ones((1, 1, 1, 1)), max_displacement=0)
        >>> float(first[0, 0, 0, 0]), float(second[0, 0, 0, 0])
        (3.0, 2.0)
    """
    patches = Patches(kernel_size, max_displacement, stride1, stride2, pad_size, is_multiply)
    dtype, (first, second, d_out) = widened(data1, data2, cotangent)
    _, pull = jax.vjp(lambda a, b: correlated(a, b, patches), first, second)
    by_first, by_second = pull(d_out)
    return by_first.astype(dtype), by_second.astype(dtype)


@correlation_gradient.gradient
def _correlation_gradient_gradient(
    data1: Var, data2: Var, cotangent: Var, d_first: Var, d_second: Var, **how: Any
) -> Grads:
    # <d_first, g_a> + <d_second, g_b> = <cotangent, corr(d_first, b) + corr(a, d_second)>
    return _adjoint_of_both(data1, data2, d_first, d_second, cotangent, **how) | {
        "cotangent": lambda: unbroadcast(
            correlation_tangent(data1, data2, d_first, d_second, **how), cotangent
        )
    }


def _adjoint_of_both(
    data1: Var, data2: Var, tangent1: Var, tangent2: Var, cotangent: Var, **how: Any
) -> Grads:
    """The gradient of ``<cotangent, corr(tangent1, data2) + corr(data1, tangent2)>`` in the data.

    For differences, the tangents are only weighted with signs of the data, which are constant.
    """
    if not how["is_multiply"]:
        return {"data1": None, "data2": None}
    first, second = correlation_gradient(tangent1, tangent2, cotangent, **how)
    return {"data1": unbroadcast(first, data1), "data2": unbroadcast(second, data2)}


# Its derivative --------------------------------------------------------------------------------


def _tangent_shape(
    data1: Shape, data2: Shape, tangent1: Shape, tangent2: Shape, **how: Any
) -> Shape:
    if (tangent1, tangent2) != (data1, data2):
        raise ShapeError(
            f"the tangents must have the shape of the data {data1}, got {tangent1} and {tangent2}"
        )
    return shape_of(data1, data2, Patches(**how))


@op(
    shape=_tangent_shape,
    dtype=strong_real_inexact,
    reference=tangent_reference,
    cases=[
        case(data1=(1, 2, 3, 4), data2=(1, 2, 3, 4), tangent1=(1, 2, 3, 4), tangent2=(1, 2, 3, 4)),
        case(
            data1=distinct(1, 2, 3, 3),
            data2=uniform(1, 2, 3, 3, low=0.01, high=0.04),
            tangent1=(1, 2, 3, 3),
            tangent2=(1, 2, 3, 3),
            kernel_size=3,
            max_displacement=2,
            stride1=2,
            stride2=2,
            pad_size=3,
            is_multiply=False,
            order=2,
        ),
        misuse(
            "the tangents must have the shape of the data (1, 1, 3, 3)",
            data1=(1, 1, 3, 3),
            data2=(1, 1, 3, 3),
            tangent1=(1, 1, 3, 3),
            tangent2=(1, 1, 3, 4),
        ),
    ],
)
def correlation_tangent(
    data1: Array,
    data2: Array,
    tangent1: Array,
    tangent2: Array,
    *,
    kernel_size: Kernel = 1,
    max_displacement: Natural = 1,
    stride1: Positive = 1,
    stride2: Positive = 1,
    pad_size: Natural = 0,
    is_multiply: bool = True,
) -> Array:
    """Tangent of ``correlation`` for tangents of its maps: the adjoint of ``correlation_gradient``.

    Example:
        >>> import jax.numpy as jnp
        >>> one, two, three = (jnp.full((1, 1, 1, 1), x) for x in (1.0, 2.0, 3.0))
        >>> correlation_tangent(two, three, one, one, max_displacement=0)
        Array([[[[5.]]]], dtype=float32)
    """
    patches = Patches(kernel_size, max_displacement, stride1, stride2, pad_size, is_multiply)
    dtype, (first, second, d_first, d_second) = widened(data1, data2, tangent1, tangent2)
    out: Array
    _, out = jax.jvp(lambda a, b: correlated(a, b, patches), (first, second), (d_first, d_second))
    return out.astype(dtype)


@correlation_tangent.gradient
def _correlation_tangent_gradient(
    data1: Var, data2: Var, tangent1: Var, tangent2: Var, d_out: Var, **how: Any
) -> Grads:
    by_first, by_second = correlation_gradient(data1, data2, d_out, **how)
    return _adjoint_of_both(data1, data2, tangent1, tangent2, d_out, **how) | {
        "tangent1": unbroadcast(by_first, tangent1),
        "tangent2": unbroadcast(by_second, tangent2),
    }
