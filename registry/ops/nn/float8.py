"""Matrix products of 8-bit floats, with one scale for each operand."""

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import DTypeError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.reductions import statistics_dtype
from registry.ops.core.reshaping import swapped
from registry.shapes import inexact, real
from registry.table import op
from registry.types import DType, Shape, VarType, is_floating
from registry.var import Var

FINE, WIDE = np.dtype(jnp.float8_e4m3fn), np.dtype(jnp.float8_e5m2)
"""The dtypes of operands, up to 448 with 3 bits of fraction, and of cotangents, with 2 bits."""


def _has_8_bits(dtype: DType | None) -> bool:
    return dtype is None or (is_floating(dtype) and dtype.itemsize == 1)


_EightBits = Check("be a floating dtype of 8 bits", _has_8_bits)
Float8 = Annotated[np.dtype, _EightBits]


def _rounded(x: Array, to: DType) -> tuple[Array, Array]:
    """An operand in 8 bits, and its scale."""
    x = x.astype(statistics_dtype(np.dtype(x.dtype)))
    largest = jnp.max(jnp.abs(x), initial=0)
    scale = jnp.maximum(largest / _largest_of(to), np.finfo(x.dtype).tiny)
    return (x / scale).astype(to), scale


def _largest_of(dtype: DType) -> float:
    return float(jnp.finfo(dtype).max)  # type: ignore[no-untyped-call]


def _rounded_reference(x: np.ndarray, to: DType) -> tuple[np.ndarray, np.ndarray]:
    info = np.finfo(statistics_dtype(x.dtype))
    largest = np.max(np.abs(x), initial=0).astype(info.dtype)
    scale = np.maximum(largest / info.dtype.type(_largest_of(to)), info.tiny)
    return (x.astype(info.dtype) / scale).astype(to), scale


# The rounded operand ---------------------------------------------------------------------------


def _restored_shape(x: Shape, rounded: Shape, scale: Shape) -> Shape:
    if rounded != x or scale != ():
        raise ShapeError(
            f"rounded and scale must have the shapes {x} and (), got {rounded} and {scale}"
        )
    return x


def _restored_dtype(x: VarType, rounded: VarType, scale: VarType) -> DType:
    if not _has_8_bits(rounded.dtype):
        raise DTypeError(f"rounded must be of a floating dtype of 8 bits, got {rounded.dtype.name}")
    real(x, scale)
    return inexact(x)[0]


@op(
    shape=_restored_shape,
    dtype=_restored_dtype,
    reference=lambda x, rounded, scale: (rounded.astype(scale.dtype) * scale).astype(x.dtype),
    gradient_reference=lambda x, rounded, scale, *, d_out: {"x": d_out},
    native=False,
    cases=[
        case(x=(2, 3), rounded=np.full((2, 3), -1.5, FINE), scale=np.float32(0.5), order=2),
        case(x=(0,), rounded=np.ones(0, WIDE), scale=np.float32(1)),
        misuse("rounded must be of a floating dtype of 8 bits", x=(3,), rounded=(3,), scale=()),
        misuse("must have the shapes (3,) and ()", x=(3,), rounded=np.ones(2, FINE), scale=()),
    ],
)
def float8_restore(x: Array, rounded: Array, scale: Array) -> Array:
    """Value of ``x`` after its rounding to 8 bits, ``rounded * scale``, with the gradient of ``x``.

    Only the rounded entries and their scale are read. The gradient passes straight through the
    rounding.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.asarray([0.26, 4.0])
        >>> float8_restore(x, jnp.asarray([0.5, 8.0], "float8_e4m3fn"), jnp.asarray(0.5))
        Array([0.25, 4.  ], dtype=float32)
    """
    return (rounded.astype(scale.dtype) * scale).astype(x.dtype)


@float8_restore.gradient
def _float8_restore_gradient(d_out: Var) -> Grads:
    return {"x": d_out, "rounded": None, "scale": None}


# The product -----------------------------------------------------------------------------------


def _product_shape(x: Shape, y: Shape) -> list[Shape]:
    if len(x) != 2 or len(y) != 2 or x[1] != y[0]:
        raise ShapeError(f"x and y must be matrices that can be multiplied, got {x} and {y}")
    return [(x[0], y[1]), x, (), y, ()]


def _product_dtype(x: VarType, y: VarType, *, x_dtype: DType, y_dtype: DType) -> list[DType]:
    real(x, y)
    scales = [statistics_dtype(inexact(one)[0]) for one in (x, y)]
    return [inexact(x, y)[0], x_dtype, scales[0], y_dtype, scales[1]]


def _product_reference(
    x: np.ndarray, y: np.ndarray, *, x_dtype: DType, y_dtype: DType, d_dtype: Any = None
) -> list[np.ndarray]:
    del d_dtype
    parts = [_rounded_reference(*one) for one in ((x, x_dtype), (y, y_dtype))]
    first, second = (one.astype(np.float64) * np.float64(scale) for one, scale in parts)
    return [(first @ second).astype(np.result_type(x, y)), *parts[0], *parts[1]]


def _gradient_reference(
    x: np.ndarray,
    y: np.ndarray,
    *,
    d_out: np.ndarray,
    x_dtype: DType,
    y_dtype: DType,
    d_dtype: DType | None,
    **_: Any,
) -> dict[str, np.ndarray]:
    def value(one: np.ndarray, dtype: DType | None) -> np.ndarray:
        if dtype is None:
            return one
        rounded, scale = _rounded_reference(one, dtype)
        return rounded.astype(np.float64) * np.float64(scale)

    d = value(d_out, d_dtype)
    return {"x": d @ value(y, y_dtype).T, "y": value(x, x_dtype).T @ d}


_ROUNDED = ("rounded_x", "scale_of_x", "rounded_y", "scale_of_y")


@op(
    shape=_product_shape,
    dtype=_product_dtype,
    reference=_product_reference,
    gradient_reference=_gradient_reference,
    outputs=("out", *_ROUNDED),
    hidden=_ROUNDED,
    native=False,
    cases=[
        case(x=(3, 4), y=(4, 5), order=2),
        case(x=(2, 3), y=(3, 2), x_dtype="float8_e5m2", y_dtype="float8_e3m4", order=1),
        case(x=(2, 3), y=(3, 2), d_dtype="float8_e5m2", order=1),
        case(x=(0, 3), y=(3, 2), order=1),
        workload(x=(512, 512), y=(512, 512)),
        misuse("x and y must be matrices that can be multiplied", x=(3, 4), y=(5, 4)),
        misuse(
            "attribute 'x_dtype' must be a floating dtype of 8 bits",
            x=(2, 3),
            y=(3, 2),
            x_dtype="float16",
        ),
        misuse("must be floating", x=integers(2, 3, high=3), y=integers(3, 2, high=3)),
    ],
    costly=True,
    sealed=True,  # JAX would keep both operands in their own dtype
)
def float8_matmul(
    x: Array,
    y: Array,
    *,
    x_dtype: Float8 = FINE,
    y_dtype: Float8 = FINE,
    d_dtype: Annotated[np.dtype | None, _EightBits] = None,
) -> tuple[Array, ...]:
    """Product of two matrices whose entries are rounded to 8-bit floats; sums are in float32.

    An operand is divided by its scale, its largest magnitude over the largest number of its 8-bit
    dtype, and rounded; the product is multiplied by both scales. Operands must be finite: an
    infinity or a NaN gives NaN everywhere.

    The gradient is that of the product of the rounded operands, passed straight through the
    rounding; it keeps these operands, in 8 bits. With ``d_dtype``, such as ``"float8_e5m2"``,
    cotangents are rounded, too, so that the products of the gradient are in 8 bits. Then the
    gradient is not linear in the cotangent, and forward mode is an error.

    Source: Micikevicius et al., FP8 Formats for Deep Learning, 2022.

    Example:
        >>> import jax.numpy as jnp
        >>> float8_matmul(jnp.asarray([[1.0, 4.0]]), jnp.asarray([[2.0], [0.5]])).round(4)
        Array([[4.]], dtype=float32)
    """
    parts = [_rounded(*one) for one in ((x, x_dtype), (y, y_dtype))]
    dtype = jnp.result_type(x, y)
    how = (((1,), (0,)), ((), ()))
    out = lax.dot_general(
        parts[0][0], parts[1][0], how, preferred_element_type=statistics_dtype(dtype)
    )
    out = (out * parts[0][1] * parts[1][1]).astype(dtype)
    return out, *parts[0], *parts[1]


@float8_matmul.gradient
def _float8_matmul_gradient(
    x: Var,
    y: Var,
    rounded_x: Var,
    scale_of_x: Var,
    rounded_y: Var,
    scale_of_y: Var,
    d_out: Var,
    d_rounded_x: Var | None,
    d_scale_of_x: Var | None,
    d_rounded_y: Var | None,
    d_scale_of_y: Var | None,
    *,
    x_dtype: DType,
    y_dtype: DType,
    d_dtype: DType | None,
) -> Grads:
    del d_rounded_x, d_scale_of_x, d_rounded_y, d_scale_of_y  # nothing passes by the hidden outputs
    first = float8_restore(x, rounded_x, scale_of_x)
    second = float8_restore(y, rounded_y, scale_of_y)
    if d_dtype is None:
        d_x, d_y = d_out @ swapped(second), swapped(first) @ d_out
    else:
        # What was rounded is rounded to the same numbers.
        d_x = float8_matmul(
            d_out, swapped(second), x_dtype=d_dtype, y_dtype=y_dtype, d_dtype=x_dtype
        )
        d_y = float8_matmul(
            swapped(first), d_out, x_dtype=x_dtype, y_dtype=d_dtype, d_dtype=y_dtype
        )
    return {"x": unbroadcast(d_x, x), "y": unbroadcast(d_y, y)}
