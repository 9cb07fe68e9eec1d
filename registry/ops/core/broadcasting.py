"""Conversion between shapes and dtypes: broadcast_to, its adjoint sum_to, and cast."""

import functools
import warnings

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator import row_kernels
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.reshaping import Several
from registry.row_samples import selected_rows
from registry.shapes import canonical, promote, same, strong
from registry.table import op
from registry.types import DType, Shape, VarKind, is_complex, is_inexact
from registry.values import SelectedRows
from registry.var import Var


def unbroadcast(d: Var, like: Var) -> Var | None:
    """The cotangent ``d`` of a broadcast and promoted ``like``, back in its shape and dtype.

    None if ``like`` has no cotangent because its dtype is integer or boolean.
    """
    if not is_inexact(like.dtype):
        return None
    if d.shape != like.shape:
        d = sum_to(d, shape=like.shape)
    return d if d.dtype == like.dtype else cast(d, dtype=like.dtype)


# cast ------------------------------------------------------------------------------------------


def _cast_dtype(*, dtype: DType) -> DType:
    return canonical(dtype)


def _cast_reference(x: np.ndarray, *, dtype: DType) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(x).astype(canonical(dtype))


@op(
    shape=same,
    dtype=_cast_dtype,
    reference=_cast_reference,
    aliases=["astype", "Cast"],
    cases=[
        case(x=(3, 4), dtype="float64"),
        case(x=(3,), dtype="float32"),
        case(x=(3,), dtype="float16", order=0),
        case(x=(2, 3), dtype="int32"),
        case(x=integers(2, 3, high=5), dtype="float32"),
        case(x=(), dtype="bool"),
        case(x=(0, 2), dtype="float32"),
        case(x=selected_rows(5, 2, height=3), dtype="float64"),
        case(x=selected_rows(5, 2, height=3), dtype="int32"),
        misuse("attribute 'dtype' must be a dtype", x=(3,), dtype="float23"),
    ],
)
def cast(x: Array, *, dtype: np.dtype) -> Array:
    """Converts the entries of ``x`` to ``dtype``.

    Floating to integer rounds towards zero; complex to real keeps the real part. Without JAX's x64
    flag, a 64-bit dtype becomes its 32-bit counterpart.

    Example:
        >>> import jax.numpy as jnp
        >>> cast(jnp.asarray([1.7, -1.7]), dtype="int32")
        Array([ 1, -1], dtype=int32)
    """
    return cast_kernel(x, dtype=dtype)


def cast_kernel(x: Array, *, dtype: np.dtype) -> Array:
    """The kernel of ``cast``: the entries of ``x`` converted to ``dtype``."""
    x = jnp.asarray(x)
    real = x.real if is_complex(x.dtype) and not is_complex(np.dtype(dtype)) else x
    return lax.convert_element_type(real, canonical(dtype))


@cast.gradient
def _cast_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": cast(d_out, dtype=x.dtype)}


@cast.kind
def _cast_kind(x: VarKind) -> VarKind:
    return x


@cast.on_rows("x")
def _cast_rows(x: SelectedRows, *, dtype: DType) -> SelectedRows:
    # A cast commutes with a sum only where nothing is rounded.
    exact = jnp.promote_types(x.dtype, canonical(dtype)) == canonical(dtype)
    rows = x if exact and is_inexact(canonical(dtype)) else x.merged()
    return rows.mapped(functools.partial(cast_kernel, dtype=dtype))


@cast.simplify
def _cast_simplify(x: Var, *, dtype: DType) -> Var | None:
    return x if x.dtype == canonical(dtype) else None


def single(x: Var) -> Var:
    """``x``, with half precision converted to float32, in which its squares do not overflow."""
    wide: Var = cast(x, dtype="float32") if x.dtype.itemsize < 4 else x
    return wide


# broadcast_to and sum_to -----------------------------------------------------------------------


def _broadcast_to_shape(x: Shape, *, shape: Shape) -> Shape:
    lead = len(shape) - len(x)
    if lead < 0 or any(n not in (1, m) for n, m in zip(x, shape[max(lead, 0) :], strict=False)):
        raise ShapeError(f"x must broadcast to {shape}, got shape {x}")
    return shape


@op(
    rearranges=True,
    shape=_broadcast_to_shape,
    dtype=promote,
    reference=np.broadcast_to,
    cases=[
        case(x=(4,), shape=(3, 4)),
        case(x=(2, 1, 3), shape=(5, 2, 4, 3)),
        case(x=(), shape=(2, 2)),
        case(x=(3,), shape=(3,)),
        case(x=(1,), shape=(0,)),
        case(x=(0, 1), shape=(2, 0, 3)),
        case(x=(), shape=3),
        case(x=integers(3, high=9), shape=(2, 3)),
        workload(x=(1024, 1), shape=(1024, 1024)),
        misuse("x must broadcast to (3, 5), got shape (4,)", x=(4,), shape=(3, 5)),
    ],
)
def broadcast_to(x: Array, *, shape: Several) -> Array:
    """Broadcasts ``x`` to ``shape`` by NumPy's rules: axes are aligned at the end.

    Example:
        >>> import jax.numpy as jnp
        >>> broadcast_to(jnp.asarray([1, 2]), shape=(2, 2))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    return jnp.broadcast_to(x, shape)


@broadcast_to.gradient
def _broadcast_to_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out, x)}


@broadcast_to.simplify
def _broadcast_to_simplify(x: Var, *, shape: Shape) -> Var | None:
    return x if x.shape == shape else None


def _sum_to_shape(x: Shape, *, shape: Shape) -> Shape:
    lead = len(x) - len(shape)
    if lead < 0 or any(m not in (1, n) for n, m in zip(x[max(lead, 0) :], shape, strict=False)):
        raise ShapeError(f"{shape} must broadcast to the shape of x, got {x}")
    return shape


def summed_axes(x: Shape, shape: Shape) -> tuple[int, ...]:
    """The axes of ``x`` that broadcasting from ``shape`` adds or stretches."""
    lead = len(x) - len(shape)
    stretched = [lead + i for i, m in enumerate(shape) if m == 1 and x[lead + i] != 1]
    return (*range(lead), *stretched)


def _sum_to_reference(x: np.ndarray, *, shape: Shape) -> np.ndarray:
    axes = summed_axes(np.shape(x), shape)
    return np.asarray(np.sum(x, axis=axes, dtype=x.dtype)).reshape(shape)


@op(
    shape=_sum_to_shape,
    dtype=strong,
    reference=_sum_to_reference,
    cases=[
        case(x=(3, 4), shape=(4,)),
        case(x=(2, 3), shape=3, order=1),
        case(x=(5, 2, 4, 3), shape=(2, 1, 3)),
        case(x=(2, 2), shape=()),
        case(x=(3,), shape=(3,)),
        case(x=(0, 2), shape=(1, 2)),
        case(x=integers(3, 2, high=9), shape=(2,)),
        case(x=selected_rows(5, 2, height=3), shape=()),
        case(x=selected_rows(5, 2, height=3), shape=(3, 1)),
        workload(x=(1024, 1024), shape=(1024,)),
        misuse("(3, 5) must broadcast to the shape of x, got (4,)", x=(4,), shape=(3, 5)),
    ],
)
def sum_to(x: Array, *, shape: Several) -> Array:
    """Sums ``x`` over the axes that broadcasting from ``shape`` adds or stretches.

    This is the adjoint of ``broadcast_to``. The dtype is kept.

    Example:
        >>> import jax.numpy as jnp
        >>> sum_to(jnp.ones((3, 2)), shape=(2,))
        Array([3., 3.], dtype=float32)
    """
    x = jnp.asarray(x)
    return jnp.sum(x, axis=summed_axes(x.shape, shape), dtype=x.dtype).reshape(shape)


@sum_to.gradient
def _sum_to_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": broadcast_to(d_out, shape=x.shape)}


@sum_to.on_rows("x")
def _sum_rows_to(x: SelectedRows, *, shape: Shape) -> Array:
    total: Array = row_kernels.summed(x, shape, summed_axes(x.shape, shape))
    return total


@sum_to.simplify
def _sum_to_simplify(x: Var, *, shape: Shape) -> Var | None:
    return x if x.shape == shape else None
