"""Matrix products and the fully connected layer."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array, Bias, Parameter
from registry.ops.core.broadcasting import sum_to, unbroadcast
from registry.ops.core.reshaping import permute_dims, reshape, swapped
from registry.ops.linalg.contractions import factor_cotangents, matrix_labels
from registry.shapes import promote
from registry.table import op
from registry.types import DType, Shape, VarType, is_inexact
from registry.var import Var

# matmul ----------------------------------------------------------------------------------------


def _matmul_shape(x: Shape, y: Shape) -> Shape:
    if not x or not y:
        raise ShapeError(f"x and y must have at least one axis, got {x} and {y}")
    inner = y[-2] if len(y) > 1 else y[0]
    if x[-1] != inner:
        raise ShapeError(
            f"the last axis of x must be as long as the {'second last' if len(y) > 1 else 'only'} "
            f"axis of y, got {x} and {y}"
        )
    try:
        batch = np.broadcast_shapes(x[:-2], y[:-2])
    except ValueError:
        raise ShapeError(
            f"the batch axes of x and y must broadcast together, got {x} and {y}"
        ) from None
    return (*batch, *x[-2:-1], *(y[-1:] if len(y) > 1 else ()))


def _matmul_dtype(x: VarType, y: VarType) -> tuple[DType, bool]:
    dtype, weak = promote(x, y)
    return dtype, weak and is_inexact(dtype)


@op(
    shape=_matmul_shape,
    dtype=_matmul_dtype,
    reference=np.matmul,
    infix="@",
    aliases=["mm", "mv", "batch_matmul"],
    cases=[
        case(x=(3, 4), y=(4, 2)),
        case(x=(4,), y=(4,)),
        case(x=(4,), y=(4, 2)),
        case(x=(3, 4), y=(4,)),
        case(x=(5, 3, 4), y=(5, 4, 2)),
        case(x=(2, 1, 3, 4), y=(5, 4, 2), order=2),
        case(x=(2, 3, 4), y=(4,)),
        case(x=(4,), y=(2, 4, 3)),
        case(x=(3, 0), y=(0, 2)),
        case(x=integers(2, 3, high=9), y=integers(3, 2, high=9)),
        case(x=(2, 3), y=integers(3, 2, high=9)),
        workload(x=(32, 128, 256), y=(256, 256)),
        misuse("the last axis of x must be as long as the second last", x=(3, 4), y=(3, 4)),
        misuse("the batch axes of x and y must broadcast together", x=(2, 3, 4), y=(3, 4, 2)),
        misuse("x and y must have at least one axis, got () and (3,)", x=(), y=(3,)),
    ],
    costly=True,
)
def matmul(x: Array, y: Array) -> Array:
    """Matrix product: ``out[..., i, j] = sum over k of x[..., i, k] * y[..., k, j]``.

    Leading axes are batch axes and broadcast. A one-dimensional operand is a row on the left and a
    column on the right, and its axis is not in the result.

    Example:
        >>> import jax.numpy as jnp
        >>> matmul(jnp.asarray([[1.0, 2.0]]), jnp.asarray([[3.0], [4.0]]))
        Array([[11.]], dtype=float32)
    """
    dtype = jnp.result_type(x, y)
    if not is_inexact(dtype):  # JAX rejects a weak integer with one of another width
        x, y = jnp.asarray(x, dtype), jnp.asarray(y, dtype)
    return jnp.matmul(x, y)


@matmul.gradient
def _matmul_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    # out = X Y: dX = D Y^T and dY = X^T D, summed over the batch axes along which X or Y repeats.
    rows = reshape(x, shape=(1, *x.shape)) if x.ndim == 1 else x
    columns = reshape(y, shape=(*y.shape, 1)) if y.ndim == 1 else y
    d = d_out
    if x.ndim == 1 or y.ndim == 1:
        d = reshape(d_out, shape=_matmul_shape(rows.shape, columns.shape))
    d_rows, d_columns = _row_and_column_cotangents(rows, columns, d)
    return {
        "x": None if d_rows is None else reshape(d_rows, shape=x.shape),
        "y": None if d_columns is None else reshape(d_columns, shape=y.shape),
    }


def _row_and_column_cotangents(rows: Var, columns: Var, d: Any) -> tuple[Any, Any]:
    """``d columns^T`` and ``rows^T d``; broadcast axes are summed within the product."""
    if rows.shape[:-2] != columns.shape[:-2]:
        labels = matrix_labels(rows.shape, columns.shape, False, False)
        d_rows, d_columns = factor_cotangents(rows, columns, labels, d)
        return d_rows(), d_columns()
    return unbroadcast(d @ swapped(columns), rows), unbroadcast(_product(rows, d), columns)


def _product(x: Var, d: Var) -> Any:
    """``x^T d``; if ``d`` is a column, as ``(d^T x)^T``.

    XLA's CPU compiler fuses the transpose of a matrix with its product by a column, which takes
    three times as long to compile as the product of a row by the matrix.
    """
    return swapped(swapped(d) @ x) if d.shape[-1] == 1 else swapped(x) @ d


# dot -------------------------------------------------------------------------------------------


def _dot_shape(x: Shape, y: Shape) -> Shape:
    if not x or not y:
        return x or y
    inner = y[-2] if len(y) > 1 else y[0]
    if x[-1] != inner:
        raise ShapeError(
            f"the last axis of x must be as long as the {'second last' if len(y) > 1 else 'only'} "
            f"axis of y, got {x} and {y}"
        )
    return (*x[:-1], *y[:-2], *(y[-1:] if len(y) > 1 else ()))


@op(
    shape=_dot_shape,
    dtype=promote,
    reference=np.dot,
    cases=[
        case(x=(3, 4), y=(4, 2)),
        case(x=(4,), y=(4,)),
        case(x=(4,), y=(4, 2)),
        case(x=(2, 3, 4), y=(4,)),
        case(x=(2, 3, 4), y=(5, 4, 2), order=2),
        case(x=(), y=(3,)),
        case(x=(3, 0), y=(0, 2)),
        misuse("the last axis of x must be as long as the second last", x=(3, 4), y=(3, 4)),
    ],
    costly=True,
)
def dot(x: Array, y: Array) -> Array:
    """Dot product over the last axis of ``x`` and the second-to-last (or only) axis of ``y``.

    The shape consists of the other axes of ``x`` followed by those of ``y``; unlike ``matmul``, it
    pairs every row of ``x`` with every column of ``y``. A number on either side multiplies the
    other operand.

    Example:
        >>> import jax.numpy as jnp
        >>> dot(jnp.asarray([1.0, 2.0]), jnp.asarray([3.0, 4.0]))
        Array(11., dtype=float32)
    """
    return jnp.dot(x, y)


@dot.gradient
def _dot_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    if x.ndim == 0 or y.ndim == 0:
        return {"x": unbroadcast(d_out * y, x), "y": unbroadcast(d_out * x, y)}
    # As matrices: X of shape (rows, inner), Y of (inner, columns), D of (rows, columns).
    inner = x.shape[-1]
    rows, columns = math.prod(x.shape[:-1]), math.prod(y.shape[:-2]) * math.prod(y.shape[-1:])
    order = _inner_first(y.ndim)
    if y.ndim == 1:
        columns = 1
    y_first = permute_dims(y, axes=order)
    d = reshape(d_out, shape=(rows, columns))
    d_x = d @ swapped(reshape(y_first, shape=(inner, columns)))
    d_y = _product(reshape(x, shape=(rows, inner)), d)
    back = tuple(np.argsort(order).tolist())
    d_y = permute_dims(reshape(d_y, shape=y_first.shape), axes=back)
    return {"x": unbroadcast(reshape(d_x, shape=x.shape), x), "y": unbroadcast(d_y, y)}


def _inner_first(ndim: int) -> tuple[int, ...]:
    """The permutation that puts the second-to-last (or only) axis first."""
    if ndim == 1:
        return (0,)
    return (ndim - 2, *range(ndim - 2), ndim - 1)


# fully_connected -------------------------------------------------------------------------------


def _in_features(data: Shape, *, flatten: bool) -> int:
    return math.prod(data[1:]) if flatten else data[-1]


def _fully_connected_shape(
    data: Shape, weight: Shape, bias: Shape | None, *, units: int, flatten: bool
) -> Shape:
    if not data:
        raise ShapeError("data must have at least one axis, got shape ()")
    expected = (units, _in_features(data, flatten=flatten))
    if weight != expected:
        raise ShapeError(f"weight must have shape {expected} for data of {data}, got {weight}")
    if bias is not None and bias != (units,):
        raise ShapeError(f"bias must have shape {(units,)}, got {bias}")
    return (data[0], units) if flatten else (*data[:-1], units)


def _fully_connected_reference(
    data: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    *,
    units: int,
    use_bias: bool,
    flatten: bool,
) -> np.ndarray:
    rows = data.reshape(data.shape[0], -1) if flatten and data.size else data
    product = rows @ weight.T
    return np.asarray(product + bias if use_bias else product)


@op(
    shape=_fully_connected_shape,
    dtype=promote,
    reference=_fully_connected_reference,
    cases=[
        case(data=(3, 4), weight=(2, 4), bias=(2,), units=2),
        case(data=(3, 2, 2), weight=(2, 4), bias=(2,), units=2),
        case(data=(3, 2, 4), weight=(5, 4), bias=(5,), units=5, flatten=False, order=2),
        case(data=(3, 4), weight=(2, 4), units=2, use_bias=False),
        case(data=(4,), weight=(2, 4), bias=(2,), units=2, flatten=False),
        case(data=(0, 4), weight=(2, 4), bias=(2,), units=2),
        workload(data=(256, 512), weight=(512, 512), bias=(512,), units=512),
        misuse(
            "weight must have shape (2, 4) for data of (3, 4), got (4, 2)",
            data=(3, 4),
            weight=(4, 2),
            bias=(2,),
            units=2,
        ),
        misuse("bias must have shape (2,)", data=(3, 4), weight=(2, 4), bias=(3,), units=2),
        misuse(
            "slot 'bias' must be left out when use_bias=False",
            data=(3, 4),
            weight=(2, 4),
            bias=(2,),
            units=2,
            use_bias=False,
        ),
    ],
    costly=True,
)
def fully_connected(
    data: Array,
    weight: Parameter,
    bias: Bias | None = None,
    *,
    units: int,
    use_bias: bool = True,
    flatten: bool = True,
) -> Array:
    """Fully connected (dense) layer: ``out = data @ weight.T + bias``.

    ``weight`` has shape ``(units, in_features)``. With ``flatten`` all axes of ``data`` but the
    first are features; otherwise only the last one is.

    Example:
        >>> import jax.numpy as jnp
        >>> data, weight = jnp.asarray([[1.0, 2.0]]), jnp.asarray([[3.0, 4.0]])
        >>> fully_connected(data, weight, jnp.asarray([0.5]), units=1)
        Array([[11.5]], dtype=float32)
    """
    del use_bias, units
    data = jnp.asarray(data)
    if flatten:
        data = data.reshape(data.shape[0], math.prod(data.shape[1:]))
    dtype = jnp.result_type(data, weight)
    contracted = (((data.ndim - 1,), (1,)), ((), ()))
    product = lax.dot_general(data.astype(dtype), jnp.asarray(weight, dtype), contracted)
    return product if bias is None else product + bias


@fully_connected.gradient
def _fully_connected_gradient(
    data: Var, weight: Var, bias: Var | None, d_out: Var, *, units: int
) -> Grads:
    rows = math.prod(d_out.shape[:-1])
    d = reshape(d_out, shape=(rows, units))
    flat = reshape(data, shape=(rows, weight.shape[1]))
    return {
        "data": unbroadcast(reshape(d @ weight, shape=data.shape), data),
        "weight": unbroadcast(swapped(d) @ flat, weight),
        "bias": None if bias is None else unbroadcast(sum_to(d, shape=(units,)), bias),
    }


@fully_connected.complete
def _fully_connected_complete(
    data: Shape | None,
    weight: Shape | None,
    out: Shape | None,
    *,
    units: int,
    use_bias: bool,
    flatten: bool,
) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {"bias": (units,)} if use_bias else {}
    if data:
        shapes["weight"] = (units, _in_features(data, flatten=flatten))
    elif weight is not None and out is not None and not flatten:
        shapes["data"] = (*out[:-1], weight[1])
    return shapes
