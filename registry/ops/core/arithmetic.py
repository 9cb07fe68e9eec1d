"""Element-wise arithmetic with NumPy's broadcasting: sums, products, powers and extrema."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, nonzero, uniform
from registry.operator import row_kernels
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.entrywise import entrywise
from registry.row_samples import selected_rows
from registry.shapes import (
    broadcast,
    default_float,
    floating,
    numeric,
    promote,
    real,
    same,
    x_equals_y,
)
from registry.table import op
from registry.types import DType, VarKind, VarType
from registry.values import SelectedRows
from registry.var import Var

# Sums ------------------------------------------------------------------------------------------


@op(
    shape=broadcast,
    dtype=promote,
    reference=np.add,
    infix="+",
    aliases=["elemwise_add", "broadcast_add", "elementwise_add", "broadcast_plus", "add_any"],
    commutative=True,
    foldable=True,
    cases=[
        case(x=(3, 4), y=(3, 4)),
        case(x=(3, 1), y=(4,)),
        case(x=(), y=(2,)),
        case(x=(0, 2), y=(2,)),
        case(x=integers(3, high=9), y=(2, 3)),
        case(x=integers(3, high=9), y=integers(3, high=9)),
        case(x=selected_rows(5, 2, height=3), y=selected_rows(2, 2, height=3)),
        case(x=selected_rows(5, 2, height=3), y=(3, 2)),
        case(x=(2,), y=selected_rows(5, 2, height=3)),
        misuse("the inputs' shapes must broadcast together, got (3,) and (4,)", x=(3,), y=(4,)),
    ],
)
def add(x: Array, y: Array) -> Array:
    """Element-wise sum of two arrays: ``out = x + y``.

    Example:
        >>> import jax.numpy as jnp
        >>> add(jnp.asarray([1.0, 2.0]), jnp.asarray(3.0))
        Array([4., 5.], dtype=float32)
    """
    return jnp.add(x, y)


@add.gradient
def _add_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out, x), "y": unbroadcast(d_out, y)}


@add.kind
def _add_kind(x: VarKind, y: VarKind) -> VarKind:
    return row_kernels.kind_of_sum(x, y)


add.on_rows("x", "y")(row_kernels.total)


@add.simplify
def _add_simplify(x: Var, y: Var) -> Var | None:
    if y.constant == 0:
        return x
    return y if x.constant == 0 else None


@op(
    shape=broadcast,
    dtype=numeric,
    reference=np.subtract,
    infix="-",
    aliases=["elemwise_sub", "broadcast_sub", "sub", "elementwise_sub", "broadcast_minus"],
    foldable=True,
    cases=[
        case(x=(3, 4), y=(3, 4)),
        case(x=(3, 1), y=(4,)),
        case(x=(2,), y=()),
        case(x=(0, 2), y=(2,)),
        case(x=(2, 3), y=integers(3, high=9)),
        case(x=selected_rows(5, 2, height=3), y=selected_rows(2, 2, height=3)),
        case(x=(3, 2), y=selected_rows(5, 2, height=3)),
        misuse("the inputs' shapes must broadcast together, got (3,) and (4,)", x=(3,), y=(4,)),
    ],
)
def subtract(x: Array, y: Array) -> Array:
    """Element-wise difference of two arrays: ``out = x - y``.

    Example:
        >>> import jax.numpy as jnp
        >>> subtract(jnp.asarray([1.0, 2.0]), jnp.asarray(3.0))
        Array([-2., -1.], dtype=float32)
    """
    return jnp.subtract(x, y)


@subtract.gradient
def _subtract_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out, x), "y": unbroadcast(-d_out, y)}


@subtract.kind
def _subtract_kind(x: VarKind, y: VarKind) -> VarKind:
    return row_kernels.kind_of_sum(x, y)


@subtract.on_rows("x", "y")
def _subtract_rows(x: Any, y: Any) -> Any:
    less = y.mapped(jnp.negative) if isinstance(y, SelectedRows) else jnp.negative(y)
    return row_kernels.total(x, less)


@subtract.simplify
def _subtract_simplify(x: Var, y: Var) -> Var | None:
    return x if y.constant == 0 else None


@op(
    shape=x_equals_y,
    dtype=numeric,
    reference=np.subtract,
    cases=[
        case(x=(3, 4), y=(3, 4)),
        case(x=(), y=()),
        case(x=(0,), y=(0,)),
        misuse("x and y must have the same shape, got (3,) and (4,)", x=(3,), y=(4,)),
    ],
)
def minus(x: Array, y: Array) -> Array:
    """Element-wise difference of two arrays of the same shape: ``out = x - y``.

    Example:
        >>> import jax.numpy as jnp
        >>> minus(jnp.asarray([1.0, 2.0]), jnp.asarray([3.0, 5.0]))
        Array([-2., -3.], dtype=float32)
    """
    return jnp.subtract(x, y)


@minus.gradient
def _minus_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out, x), "y": unbroadcast(scale(d_out, scale=-1.0), y)}


@entrywise(
    np.negative,
    dtype=numeric,
    rows="linear",
    infix="neg",
    foldable=True,
    aliases=["neg"],
    d_x=lambda d_out: -d_out,
)
def negative(x: Array) -> Array:
    """Negation, element-wise: ``out = -x``.

    Example:
        >>> import jax.numpy as jnp
        >>> negative(jnp.asarray([1.0, -2.0]))
        Array([-1.,  2.], dtype=float32)
    """
    return jnp.negative(x)


@negative.simplify
def _negative_simplify(x: Var) -> Var | None:
    inner = x.applied(negative)
    return inner[0][0] if inner else None


# Products --------------------------------------------------------------------------------------


@op(
    shape=broadcast,
    dtype=promote,
    reference=np.multiply,
    infix="*",
    aliases=["elemwise_mul", "broadcast_mul", "elementwise_mul"],
    commutative=True,
    foldable=True,
    cases=[
        case(x=(3, 4), y=(3, 4)),
        case(x=(3, 1), y=(4,)),
        case(x=(), y=(2,)),
        case(x=(0, 2), y=(2,)),
        case(x=integers(3, high=9), y=(2, 3)),
        case(x=selected_rows(5, 2, height=3), y=(3, 2)),
        case(x=(2,), y=selected_rows(5, 2, height=3)),
        case(x=selected_rows(5, 2, height=3), y=2.5),
        case(x=selected_rows(5, 2, height=3), y=selected_rows(4, 2, height=3)),
        misuse("the inputs' shapes must broadcast together, got (3,) and (4,)", x=(3,), y=(4,)),
    ],
)
def multiply(x: Array, y: Array) -> Array:
    """Element-wise product of two arrays: ``out = x * y``.

    Example:
        >>> import jax.numpy as jnp
        >>> multiply(jnp.asarray([1.0, 2.0]), jnp.asarray(3.0))
        Array([3., 6.], dtype=float32)
    """
    return jnp.multiply(x, y)


@multiply.gradient
def _multiply_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out * y, x), "y": unbroadcast(d_out * x, y)}


@multiply.kind
def _multiply_kind(x: VarKind, y: VarKind) -> VarKind:
    return row_kernels.kind_of_product(x, y)


multiply.on_rows("x", "y")(row_kernels.product)


@multiply.simplify
def _multiply_simplify(x: Var, y: Var) -> Var | None:
    if y.constant == 1:
        return x
    return y if x.constant == 1 else None


@op(
    shape=broadcast,
    dtype=floating,
    reference=np.true_divide,
    infix="/",
    aliases=["elemwise_div", "broadcast_div", "div", "true_divide", "elementwise_div"],
    foldable=True,
    cases=[
        case(x=(3, 4), y=nonzero(3, 4)),
        case(x=(3, 1), y=nonzero(4)),
        case(x=(2,), y=nonzero()),
        case(x=(0, 2), y=nonzero(2)),
        case(x=(2, 3), y=integers(3, low=1, high=9)),
        case(x=integers(3, high=9), y=integers(3, low=1, high=9), dtypes=("float32",)),
        case(x=selected_rows(5, 2, height=3), y=nonzero(3, 2)),
        case(x=selected_rows(5, 2, height=3), y=4.0),
        misuse("the inputs' shapes must broadcast together, got (3,) and (4,)", x=(3,), y=(4,)),
    ],
)
def divide(x: Array, y: Array) -> Array:
    """Element-wise quotient of two arrays: ``out = x / y``. Integers become floating point.

    Example:
        >>> import jax.numpy as jnp
        >>> divide(jnp.asarray([1, 2]), jnp.asarray(4))
        Array([0.25, 0.5 ], dtype=float32)
    """
    return jnp.true_divide(x, y)


@divide.gradient
def _divide_gradient(x: Var, y: Var, out: Var, d_out: Var) -> Grads:
    # d(x/y)/dy = -x / y^2 = -(x/y) / y
    quotient = d_out / y
    return {"x": unbroadcast(quotient, x), "y": unbroadcast(-(quotient * out), y)}


@divide.kind
def _divide_kind(x: VarKind) -> VarKind:
    return x


divide.on_rows("x")(row_kernels.quotient)


@divide.simplify
def _divide_simplify(x: Var, y: Var) -> Var | None:
    return x if y.constant == 1 else None


# Division with a remainder ----------------------------------------------------------------------


def _real_numeric(x: VarType, y: VarType) -> tuple[DType, bool]:
    numeric(x, y)
    return real(x, y)


_DIVISIONS: dict[str, Any] = {
    "shape": broadcast,
    "dtype": _real_numeric,
    "cases": [
        case(x=uniform(3, 4, low=2.1, high=2.9), y=uniform(3, 4, low=0.9, high=1.0)),
        case(x=uniform(3, 1, low=-2.9, high=-2.1), y=uniform(4, low=0.9, high=1.0)),
        case(x=uniform(2, low=2.1, high=2.9), y=uniform(low=-1.0, high=-0.9)),
        case(x=uniform(2, low=-0.8, high=-0.1), y=uniform(2, low=-1.0, high=-0.9)),
        case(x=(0, 2), y=nonzero(2)),
        case(x=integers(9, low=-9, high=10), y=integers(9, low=-4, high=0)),
        case(x=integers(9, low=-9, high=10), y=integers(1, low=3, high=4)),
        case(x=integers(3, low=-9, high=9), y=uniform(3, low=0.31, high=0.32), order=1),
        case(x=uniform(3, low=-2.9, high=-2.1), y=integers(3, low=3, high=7)),
        misuse("the inputs' shapes must broadcast together, got (3,) and (4,)", x=(3,), y=(4,)),
        misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64), y=(2,)),
        misuse("the inputs must be numbers, got bool", x=np.ones(2, bool), y=np.ones(2, bool)),
    ],
}


@op(**_DIVISIONS, reference=np.floor_divide, infix="//", aliases=["broadcast_floor_divide"])
def floor_divide(x: Array, y: Array) -> Array:
    """Element-wise quotient rounded down: ``out = x // y``. Integers stay integers.

    Example:
        >>> import jax.numpy as jnp
        >>> floor_divide(jnp.asarray([7, -7]), jnp.asarray(2))
        Array([ 3, -4], dtype=int32)
    """
    return jnp.floor_divide(x, y)


floor_divide.zero_gradient("it is piecewise constant")


@op(
    **_DIVISIONS,
    reference=np.remainder,
    infix="%",
    aliases=["mod", "broadcast_mod", "elementwise_mod", "floor_mod"],
)
def remainder(x: Array, y: Array) -> Array:
    """Element-wise remainder of floor division: ``out = x % y``, with the sign of ``y``.

    The derivative with respect to ``x`` is one, and that with respect to ``y`` is the negated
    quotient rounded down. This also holds where the result jumps: at a multiple of ``y`` the
    quotient is exact.

    Example:
        >>> import jax.numpy as jnp
        >>> remainder(jnp.asarray([7, -7]), jnp.asarray(4))
        Array([3, 1], dtype=int32)
    """
    return jnp.remainder(x, y)


@remainder.gradient
def _remainder_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    # x % y = x - y (x // y), and x // y is constant but for its steps.
    return {"x": unbroadcast(d_out, x), "y": unbroadcast(-(d_out * floor_divide(x, y)), y)}


# Scaling and identity --------------------------------------------------------------------------


def _scale_dtype(x: VarType) -> tuple[DType, bool]:
    return promote(x, VarType((), default_float(), weak=True))


@op(
    shape=same,
    dtype=_scale_dtype,
    rows="linear",
    reference=lambda x, *, scale: (x * np.float64(scale)).astype(np.result_type(x, np.float32)),
    cases=[
        case(x=(3, 4), scale=2.5),
        case(x=(), scale=-1),
        case(x=(0,), scale=0.0),
        case(x=(2,), scale=1),
        case(x=selected_rows(5, 2, height=3), scale=2.5),
        misuse("attribute 'scale' must be a float, got 'two'", x=(3,), scale="two"),
    ],
)
def scale(x: Array, *, scale: float) -> Array:
    """Product with a constant number: ``out = scale * x``.

    Example:
        >>> import jax.numpy as jnp
        >>> scale(jnp.asarray([1.0, 2.0]), scale=3)
        Array([3., 6.], dtype=float32)
    """
    return jnp.multiply(x, scale)


@scale.gradient
def _scale_gradient(x: Var, d_out: Var, *, scale: float) -> Grads:
    return {"x": unbroadcast(scale_by(d_out, scale=scale), x)}


scale_by = scale
"""Second name of ``scale``, for rules in which the attribute of that name shadows it."""


@scale.simplify
def _scale_simplify(x: Var, *, scale: float) -> Var | None:
    if scale == 1:
        return x
    inner = x.applied(scale_by)
    if scale == -1 and inner and inner[1] == (-1.0,):
        result: Var = inner[0][0]
        return result
    return None


@entrywise(
    np.positive,
    dtype=promote,
    rows="linear",
    aliases=["assign", "positive", "clone"],
    d_x=lambda d_out: d_out,
)
def identity(x: Array) -> Array:
    """Identity: ``out = x``.

    Example:
        >>> import jax.numpy as jnp
        >>> identity(jnp.asarray([1.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """
    return jnp.asarray(x)


@identity.simplify
def _identity_simplify(x: Var) -> Var:
    return x
