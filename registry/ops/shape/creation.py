"""Operators that create arrays from attributes alone."""

import math
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse
from registry.errors import AttributeValueError
from registry.operator.attributes import Check, ConvertedBy, Scalar, converter
from registry.operator.signature import Array
from registry.shapes import canonical, default_float, default_int, require_held, same
from registry.table import op
from registry.types import DType, Shape, VarType, is_inexact
from registry.var import Var, filled

_Number = int | float
_NEGATIVE = misuse("attribute 'shape' must not be negative, got (2, -1)", shape=(2, -1))

_tuple = converter(tuple[int, ...])


def _lengths(value: Any) -> Shape:
    """A shape; a single number is the length of a one-dimensional array."""
    alone = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    shape: Shape = _tuple((value,) if alone else value)
    return shape


def _not_negative(shape: Shape) -> bool:
    return all(n >= 0 for n in shape)


Lengths = Annotated[tuple[int, ...], ConvertedBy(_lengths), Check("not be negative", _not_negative)]

# full, zeros and ones --------------------------------------------------------------------------


def _full_shape(*, shape: Shape) -> Shape:
    return shape


def _number_shape(*, shape: Shape, fill_value: Scalar, dtype: DType | None) -> Shape:
    if dtype is not None:
        require_held("fill_value", fill_value, canonical(dtype))
    return shape


def _full_reference(
    *, shape: Shape, fill_value: bool | int | float | complex, dtype: DType | None
) -> np.ndarray:
    usual = {bool: np.dtype(np.bool_), int: default_int(), float: default_float()}
    return np.full(shape, fill_value, dtype or usual.get(type(fill_value)))


@op(
    shape=_number_shape,
    reference=_full_reference,
    cases=[
        case(shape=(2, 3), fill_value=1.5),
        case(shape=(), fill_value=2),
        case(shape=(0,), fill_value=True),
        case(shape=(2,), fill_value=-1, dtype="float32"),
        misuse("attribute 'fill_value' must be", shape=(2,), fill_value="one"),
        misuse("attribute 'shape' must not be negative, got (-2,)", shape=-2, fill_value=1),
    ],
)
def full(*, shape: Lengths = (), fill_value: Scalar, dtype: np.dtype | None = None) -> Array:
    """An array filled with one number: ``out[...] = fill_value``.

    Without ``dtype`` it has the dtype that JAX assigns to such a number, and is as weakly typed as
    the number: it never widens the dtype of an array it is combined with.

    Example:
        >>> full(shape=(2,), fill_value=1, dtype="float32")
        Array([1., 1.], dtype=float32)
    """
    if dtype is None and shape == ():
        return jnp.asarray(fill_value)
    return jnp.full(shape, fill_value, dtype)


full.zero_gradient("it has no inputs")


def _default_float_dtype(*, dtype: DType | None) -> DType:
    return default_float() if dtype is None else canonical(dtype)


@op(
    shape=_full_shape,
    dtype=_default_float_dtype,
    reference=lambda *, shape, dtype: np.zeros(shape, dtype or default_float()),
    cases=[
        case(shape=(2, 3)),
        case(shape=4),
        case(shape=()),
        case(shape=(0, 2), dtype="int32"),
        _NEGATIVE,
        misuse("attribute 'dtype' must be a dtype", shape=(2,), dtype="float23"),
    ],
)
def zeros(
    *,
    shape: Lengths,
    dtype: np.dtype | None = None,
) -> Array:
    """An array of zeros, by default in the default floating dtype.

    Source: Python array API standard 2024.12, ``zeros``.

    Example:
        >>> zeros((2, 3))
        Array([[0., 0., 0.],
               [0., 0., 0.]], dtype=float32)
    """
    return jnp.zeros(shape, _default_float_dtype(dtype=dtype))


@op(
    shape=_full_shape,
    dtype=_default_float_dtype,
    reference=lambda *, shape, dtype: np.ones(shape, dtype or default_float()),
    cases=[
        case(shape=(2, 3)),
        case(shape=4),
        case(shape=()),
        case(shape=(0, 2), dtype="int32"),
        _NEGATIVE,
        misuse("attribute 'dtype' must be a dtype", shape=(2,), dtype="float23"),
    ],
)
def ones(
    *,
    shape: Lengths,
    dtype: np.dtype | None = None,
) -> Array:
    """An array of ones, by default in the default floating dtype.

    Source: Python array API standard 2024.12, ``ones``.

    Example:
        >>> ones((2,), "int32")
        Array([1, 1], dtype=int32)
    """
    return jnp.ones(shape, _default_float_dtype(dtype=dtype))


zeros.zero_gradient("it has no inputs")
ones.zero_gradient("it has no inputs")


def _full_like_dtype(x: VarType, *, fill_value: Scalar, dtype: DType | None) -> DType:
    of = x.dtype if dtype is None else canonical(dtype)
    require_held("fill_value", fill_value, of)
    return of


@op(
    shape=same,
    dtype=_full_like_dtype,
    reference=lambda x, *, fill_value, dtype: np.full_like(x, fill_value, dtype),
    cases=[
        case(x=(3, 4), fill_value=1.5),
        case(x=(), fill_value=2, dtype="int32"),
        case(x=(0,), fill_value=True),
        case(x=integers(3, high=4), fill_value=7),
        misuse("attribute 'fill_value' must be", x=(2,), fill_value="one"),
        misuse("fill_value must be real in float32, got 1j", x=(2,), fill_value=1j),
        misuse("must be of dtype int32, got nan", x=integers(2, high=4), fill_value=math.nan),
    ],
)
def full_like(x: Array, *, fill_value: Scalar, dtype: np.dtype | None = None) -> Array:
    """An array filled with one number, with the shape of ``x`` and, without ``dtype``, its dtype.

    Source: Python array API standard 2024.12, ``full_like``.

    Example:
        >>> full_like(jnp.asarray([1.0, 2.0]), fill_value=7)
        Array([7., 7.], dtype=float32)
    """
    x = jnp.asarray(x)
    return jnp.full(x.shape, fill_value, x.dtype if dtype is None else canonical(dtype))


full_like.zero_gradient("it is constant")


@full_like.simplify
def _full_like_simplify(x: Var, *, fill_value: Scalar, dtype: DType | None) -> Var | None:
    whole = dtype is not None and canonical(dtype) != x.dtype
    return None if whole or not is_inexact(x.dtype) else filled(x, fill_value)


# Evenly spaced numbers -------------------------------------------------------------------------


def _span(start: _Number, stop: _Number | None) -> tuple[_Number, _Number]:
    return (0, start) if stop is None else (start, stop)


def _arange_shape(*, start: _Number, stop: _Number | None, step: _Number) -> Shape:
    first, end = _span(start, stop)
    if all(isinstance(one, int) for one in (first, end, step)):
        count = -((first - end) // step)
    else:
        ratio = (end - first) / step
        count = math.ceil(ratio) if math.isfinite(ratio) else _MOST
    if count >= _MOST:
        raise AttributeValueError(
            f"start, stop and step must give less than 2^63 numbers, got {start}, {stop} and {step}"
        )
    return (max(int(count), 0),)


_MOST = 2**63
"""A count of entries that exceeds the length of any axis."""


def _finite(one: _Number | None) -> bool:
    return one is None or isinstance(one, int) or math.isfinite(one)


def _arange_dtype(
    *, start: _Number, stop: _Number | None, step: _Number, dtype: DType | None
) -> DType:
    first, end = _span(start, stop)
    if all(isinstance(one, int) for one in (first, step)):
        (count,) = _arange_shape(start=start, stop=stop, step=step)
        for one in (first, first + step * max(count - 1, 0)):
            require_held("each number", one, default_int())
    if dtype is not None:
        return canonical(dtype)
    whole = all(isinstance(one, int) for one in (first, end, step))
    return default_int() if whole else default_float()


def _arange_reference(
    *, start: _Number, stop: _Number | None, step: _Number, dtype: DType | None
) -> np.ndarray:
    kind = _arange_dtype(start=start, stop=stop, step=step, dtype=dtype)
    return np.arange(*_span(start, stop), step).astype(kind)


@op(
    shape=_arange_shape,
    dtype=_arange_dtype,
    reference=_arange_reference,
    cases=[
        case(start=5),
        case(start=1, stop=8, step=3),
        case(start=2, stop=-1, step=-0.5),
        case(start=0.25, stop=3, dtype="float32"),
        case(start=3, stop=1),
        misuse("attribute 'step' must not be zero, got 0", start=1, stop=2, step=0),
        misuse("attribute 'start' must be", start="one"),
        misuse("attribute 'start' must be finite, got inf", start=math.inf),
    ],
)
def arange(
    *,
    start: Annotated[int | float, Check("be finite", _finite)],
    stop: Annotated[int | float | None, Check("be finite", _finite)] = None,
    step: Annotated[
        int | float, Check("be finite", _finite), Check("not be zero", lambda one: one != 0)
    ] = 1,
    dtype: np.dtype | None = None,
) -> Array:
    """Evenly spaced numbers ``start + step * i`` for ``i = 0, 1, ...``, excluding ``stop``.

    With one number, ``arange(stop)``, it begins at zero. Without ``dtype`` the result has the
    default integer dtype if all numbers are integers, otherwise the default floating dtype.

    Source: Python array API standard 2024.12, ``arange``.

    Example:
        >>> arange(5), arange(1, 8, 3)
        (Array([0, 1, 2, 3, 4], dtype=int32), Array([1, 4, 7], dtype=int32))
    """
    (count,) = _arange_shape(start=start, stop=stop, step=step)
    first, _ = _span(start, stop)
    kind = _arange_dtype(start=start, stop=stop, step=step, dtype=dtype)
    exact = all(isinstance(one, int) for one in (first, step))
    # The entries are computed in a dtype that can represent every index.
    wide = default_int() if exact else default_float()
    step = step if count > 1 else 0  # it need not fit into the dtype
    origin, moved = jnp.asarray(first, wide), jnp.asarray(abs(step), wide) * lax.iota(wide, count)
    # A product with a negative step would begin with a negative zero.
    return (origin - moved if step < 0 else origin + moved).astype(kind)


def _linspace_shape(*, num: int) -> Shape:
    return (num,)


def _is_floating(dtype: DType | None) -> bool:
    return dtype is None or is_inexact(dtype)


@op(
    shape=_linspace_shape,
    dtype=_default_float_dtype,
    reference=lambda *, start, stop, num, endpoint, dtype: np.linspace(
        start, stop, num, endpoint
    ).astype(dtype or default_float()),
    cases=[
        case(start=0.0, stop=1.0, num=5),
        case(start=2, stop=-1, num=4, endpoint=False, dtype="float32"),
        case(start=1.5, stop=2.0, num=1),
        case(start=0.0, stop=1.0, num=0),
        misuse("attribute 'num' must not be negative, got -1", start=0.0, stop=1.0, num=-1),
        misuse("attribute 'dtype' must be floating", start=0, stop=1, num=2, dtype="int32"),
    ],
)
def linspace(
    *,
    start: float,
    stop: float,
    num: Annotated[int, Check("not be negative", lambda n: n >= 0)],
    endpoint: bool = True,
    dtype: Annotated[np.dtype | None, Check("be floating", _is_floating)] = None,
) -> Array:
    """``num`` evenly spaced numbers from ``start`` to ``stop``.

    ``out[i] = start + i * (stop - start) / (num - 1)``; without ``endpoint`` the divisor is ``num``
    and ``stop`` is excluded. The result has the default floating dtype by default.

    Source: Python array API standard 2024.12, ``linspace``.

    Example:
        >>> linspace(0.0, 1.0, 5)
        Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    kind = _default_float_dtype(dtype=dtype)
    wide = jnp.promote_types(kind, np.float32)  # the number of an entry may not fit into a half
    return jnp.linspace(start, stop, num, endpoint, dtype=wide).astype(kind)


# eye -------------------------------------------------------------------------------------------


def _eye_shape(*, n_rows: int, n_cols: int | None) -> Shape:
    return (n_rows, n_rows if n_cols is None else n_cols)


@op(
    shape=_eye_shape,
    dtype=_default_float_dtype,
    reference=lambda *, n_rows, n_cols, k, dtype: np.eye(
        n_rows, n_cols, k, dtype or default_float()
    ),
    cases=[
        case(n_rows=3),
        case(n_rows=2, n_cols=4, k=1, dtype="int32"),
        case(n_rows=3, n_cols=2, k=-1),
        case(n_rows=0, n_cols=2),
        case(n_rows=2, k=2**40),
        misuse("attribute 'n_rows' must not be negative, got -1", n_rows=-1),
        misuse("attribute 'n_cols' must not be negative, got -2", n_rows=1, n_cols=-2),
    ],
)
def eye(
    *,
    n_rows: Annotated[int, Check("not be negative", lambda n: n >= 0)],
    n_cols: Annotated[int | None, Check("not be negative", lambda n: n is None or n >= 0)] = None,
    k: int = 0,
    dtype: np.dtype | None = None,
) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere: ``out[i, j] = 1`` where ``j = i + k``.

    ``n_cols`` defaults to ``n_rows``. The result has the default floating dtype by default.

    Source: Python array API standard 2024.12, ``eye``.

    Example:
        >>> eye(2, 3, k=1)
        Array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    columns = n_rows if n_cols is None else n_cols
    within = max(min(k, columns), -n_rows)  # an offset need not fit into an array's integers
    return jnp.eye(n_rows, columns, within, _default_float_dtype(dtype=dtype))


arange.zero_gradient("it has no inputs")
linspace.zero_gradient("it has no inputs")
eye.zero_gradient("it has no inputs")
