"""Slices along one axis, slices to the shape of another array, and slices at traced positions."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, DTypeError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.indexing import wide_index
from registry.ops.core.slicing import Span, pad_slice, span
from registry.ops.shape.repeating import dtype_of_x
from registry.shapes import normalize_axes, normalize_axis, promote
from registry.table import op
from registry.types import DType, Shape, VarType, is_integer
from registry.var import Var, filled

# slice_axis ------------------------------------------------------------------------------------


def _taken(x: Shape, axis: int, begin: int, end: int | None) -> Span:
    """The positions that the slice selects along the axis, by Python's rules."""
    return span(x[normalize_axis(axis, len(x))], begin, end)


def _slice_axis_shape(x: Shape, *, axis: int, begin: int, end: int | None) -> Shape:
    length, at = _taken(x, axis, begin, end).length, axis % len(x)
    return (*x[:at], length, *x[at + 1 :])


def _slice_axis_reference(x: np.ndarray, *, axis: int, begin: int, end: int | None) -> np.ndarray:
    return np.moveaxis(np.moveaxis(x, axis, 0)[begin:end], 0, axis)


@op(
    rearranges=True,
    shape=_slice_axis_shape,
    dtype=promote,
    reference=_slice_axis_reference,
    cases=[
        case(x=(3, 5), axis=1, begin=1, end=4),
        case(x=(4, 2), axis=0, begin=-2, end=None),
        case(x=(2, 4), axis=-1, begin=0, end=-1),
        case(x=(3,), axis=0, begin=2, end=1),
        case(x=(3,), axis=0, begin=-9, end=9),
        case(x=(0, 3), axis=1, begin=1, end=3),
        case(x=integers(4, high=9), axis=0, begin=1, end=3),
        workload(x=(1024, 2048), axis=1, begin=512, end=1536),
        misuse("axis must be in [-1, 1), got 1", x=(3,), axis=1, begin=0, end=1),
    ],
)
def slice_axis(x: Array, *, axis: int, begin: int, end: int | None) -> Array:
    """Slices ``x`` along one axis, ``x[..., begin:end, ...]``, by Python's rules; None is the end.

    Example:
        >>> import jax.numpy as jnp
        >>> slice_axis(jnp.asarray([[1, 2, 3], [4, 5, 6]]), axis=1, begin=-2, end=None)
        Array([[2, 3],
               [5, 6]], dtype=int32)
    """
    taken = _taken(jnp.shape(x), axis, begin, end)
    return lax.slice_in_dim(x, taken.start, taken.stop, axis=axis)


@slice_axis.gradient
def _slice_axis_gradient(x: Var, d_out: Var, *, axis: int, begin: int, end: int | None) -> Grads:
    starts = [0] * x.ndim
    starts[axis] = _taken(x.shape, axis, begin, end).start
    return {"x": pad_slice(d_out, shape=x.shape, begin=tuple(starts), step=(1,) * x.ndim)}


@slice_axis.simplify
def _slice_axis_simplify(x: Var, *, axis: int, begin: int, end: int | None) -> Var | None:
    return x if _taken(x.shape, axis, begin, end).length == x.shape[axis] else None


# slice_like ------------------------------------------------------------------------------------


def _slice_like_shape(x: Shape, like: Shape, *, axes: tuple[int, ...]) -> Shape:
    cut = normalize_axes(axes or None, len(x))
    if any(i >= len(like) for i in cut) or (not axes and len(x) != len(like)):
        raise ShapeError(f"like must have the axes along which x is cut, got {x} and {like}")
    out = tuple(like[i] if i in cut else n for i, n in enumerate(x))
    if any(m > n for n, m in zip(x, out, strict=True)):
        raise ShapeError(f"x must be as long as like where it is cut, got {x} and {like}")
    return out


def _slice_like_reference(
    x: np.ndarray, like: np.ndarray, *, axes: tuple[int, ...] = ()
) -> np.ndarray:
    for axis in axes or range(x.ndim):
        x = np.take(x, range(like.shape[axis % x.ndim]), axis)
    return x


@op(
    shape=_slice_like_shape,
    dtype=dtype_of_x,
    reference=_slice_like_reference,
    cases=[
        case(x=(3, 5), like=(2, 4)),
        case(x=(3, 5), like=(9, 4), axes=(-1,)),
        case(x=(3, 5, 2), like=(1, 2), axes=(1, 0)),
        case(x=(2,), like=(0,)),
        case(x=(), like=()),
        case(x=integers(3, high=9), like=(2,)),
        case(x=(3,), like=integers(2, high=9)),
        workload(x=(1024, 2048), like=(1024, 1024)),
        misuse("like must have the axes along which x is cut", x=(3, 5), like=(2,)),
        misuse("like must have the axes along which x is cut", x=(3, 5), like=(2,), axes=(1,)),
        misuse("x must be as long as like where it is cut, got (3,) and (4,)", x=(3,), like=(4,)),
        misuse("axis must be in [-1, 1), got 1", x=(3,), like=(2,), axes=(1,)),
    ],
)
def slice_like(x: Array, like: Array, *, axes: tuple[int, ...] = ()) -> Array:
    """Slices ``x`` to the lengths that ``like`` has along ``axes``, by default along all axes.

    Without ``axes`` both must have the same number of axes. Only the shape of ``like`` matters; its
    gradient is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> slice_like(jnp.asarray([[1, 2, 3], [4, 5, 6]]), jnp.zeros((1, 2)))
        Array([[1, 2]], dtype=int32)
    """
    return lax.slice(
        x, (0,) * jnp.ndim(x), _slice_like_shape(jnp.shape(x), jnp.shape(like), axes=axes)
    )


@slice_like.gradient
def _slice_like_gradient(x: Var, d_out: Var) -> Grads:
    begin, step = (0,) * x.ndim, (1,) * x.ndim
    return {"x": pad_slice(d_out, shape=x.shape, begin=begin, step=step), "like": None}


# dynamic_slice and dynamic_update_slice --------------------------------------------------------


def _require_starts(x: Shape, starts: Shape) -> None:
    if starts != (len(x),):
        raise ShapeError(f"starts must hold one number for each axis of {x}, got shape {starts}")


def _require_integers(starts: VarType) -> None:
    if not is_integer(starts.dtype):
        raise DTypeError(f"starts must be integers, got {starts.dtype.name}")


def _legal_starts(x: Shape, starts: np.ndarray, sizes: Shape) -> list[int]:
    """The start of a slice in NumPy: counted from the end if negative, and clamped to the axis."""
    counted = np.where(starts < 0, starts + np.array(x, int), starts)
    return [int(one) for one in np.clip(counted, 0, np.array(x, int) - np.array(sizes, int))]


def _places(starts: Array) -> list[Array]:
    return [*wide_index(starts)] if jnp.size(starts) else []


def _dynamic_slice_shape(x: Shape, starts: Shape, *, sizes: Shape) -> Shape:
    _require_starts(x, starts)
    if len(sizes) != len(x) or any(not 0 <= m <= n for m, n in zip(sizes, x, strict=True)):
        raise AttributeValueError(f"sizes must hold lengths that fit into {x}, got {sizes}")
    return sizes


def _dynamic_slice_dtype(x: VarType, starts: VarType) -> tuple[DType, bool]:
    _require_integers(starts)
    return x.dtype, x.weak


def _dynamic_slice_reference(x: np.ndarray, starts: np.ndarray, *, sizes: Shape) -> np.ndarray:
    begins = _legal_starts(x.shape, starts, sizes)
    return x[tuple(slice(a, a + n) for a, n in zip(begins, sizes, strict=True))]


@op(
    shape=_dynamic_slice_shape,
    dtype=_dynamic_slice_dtype,
    reference=_dynamic_slice_reference,
    cases=[
        case(x=(4, 5), starts=integers(2, high=3), sizes=(2, 3)),
        case(x=(4, 5), starts=np.array([3, -4]), sizes=(3, 2)),
        case(x=(4,), starts=np.array([-9]), sizes=(2,)),
        case(x=(300,), starts=np.array([-1], np.int8), sizes=(2,), order=1),
        case(x=(), starts=integers(0, high=3), sizes=()),
        case(x=(3,), starts=integers(1, high=3), sizes=(0,)),
        case(x=integers(4, high=9), starts=integers(1, high=3), sizes=(2,)),
        workload(x=(1024, 2048), starts=integers(2, high=3), sizes=(1000, 1000)),
        misuse(
            "starts must hold one number for each axis of (3,), got shape (2,)",
            x=(3,),
            starts=integers(2, high=2),
            sizes=(1,),
        ),
        misuse("starts must be integers, got float", x=(3,), starts=(1,), sizes=(1,)),
        misuse(
            "sizes must hold lengths that fit into (3,), got (4,)",
            x=(3,),
            starts=integers(1, high=2),
            sizes=(4,),
        ),
    ],
)
def dynamic_slice(x: Array, starts: Array, *, sizes: tuple[int, ...]) -> Array:
    """Extracts a slice of ``x`` with lengths ``sizes`` that begins at ``starts``.

    ``starts`` holds an integer for each axis. A negative one counts from the end; then the slice is
    shifted as far as needed to lie within ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> dynamic_slice(jnp.asarray([1, 2, 3, 4]), jnp.asarray([3]), sizes=(2,))
        Array([3, 4], dtype=int32)
    """
    return lax.dynamic_slice(x, _places(starts), sizes)


@dynamic_slice.gradient
def _dynamic_slice_gradient(x: Var, starts: Var, d_out: Var) -> Grads:
    return {"x": dynamic_update_slice(filled(x, 0.0), d_out, starts), "starts": None}


def _dynamic_update_slice_shape(x: Shape, update: Shape, starts: Shape) -> Shape:
    _require_starts(x, starts)
    if len(update) != len(x) or any(m > n for m, n in zip(update, x, strict=True)):
        raise ShapeError(f"update must fit into x, got {update} and {x}")
    return x


def _dynamic_update_slice_dtype(x: VarType, update: VarType, starts: VarType) -> DType:
    _require_integers(starts)
    if update.dtype != x.dtype:
        raise DTypeError(
            f"update must have the dtype of x, got {update.dtype.name} and {x.dtype.name}"
        )
    return x.dtype


def _dynamic_update_slice_reference(
    x: np.ndarray, update: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    begins, out = _legal_starts(x.shape, starts, update.shape), x.copy()
    out[tuple(slice(a, a + n) for a, n in zip(begins, update.shape, strict=True))] = update
    return out


@op(
    shape=_dynamic_update_slice_shape,
    dtype=_dynamic_update_slice_dtype,
    reference=_dynamic_update_slice_reference,
    cases=[
        case(x=(4, 5), update=(2, 3), starts=integers(2, high=3)),
        case(x=(4, 5), update=(3, 2), starts=np.array([3, -4])),
        case(x=(4,), update=(4,), starts=np.array([-9]), order=2),
        case(x=(300,), update=(2,), starts=np.array([-1], np.int8), order=1),
        case(x=(), update=(), starts=integers(0, high=3)),
        case(x=(3,), update=(0,), starts=integers(1, high=3)),
        case(x=integers(4, high=9), update=integers(2, high=9), starts=integers(1, high=3)),
        workload(x=(1024, 2048), update=(1000, 1000), starts=integers(2, high=3)),
        misuse(
            "starts must hold one number for each axis of (3,), got shape (2,)",
            x=(3,),
            update=(1,),
            starts=integers(2, high=2),
        ),
        misuse("starts must be integers, got float", x=(3,), update=(1,), starts=(1,)),
        misuse(
            "update must fit into x, got (4,) and (3,)",
            x=(3,),
            update=(4,),
            starts=integers(1, high=2),
        ),
        misuse(
            "update must have the dtype of x, got int32 and float",
            x=(3,),
            update=integers(1, high=2),
            starts=integers(1, high=2),
        ),
    ],
)
def dynamic_update_slice(x: Array, update: Array, starts: Array) -> Array:
    """Replaces the slice of ``x`` that begins at ``starts`` by ``update``.

    ``update`` has the dtype of ``x``. ``starts`` is interpreted as in ``dynamic_slice``.

    Example:
        >>> import jax.numpy as jnp
        >>> dynamic_update_slice(jnp.asarray([1, 2, 3, 4]), jnp.asarray([0, 0]), jnp.asarray([3]))
        Array([1, 2, 0, 0], dtype=int32)
    """
    return lax.dynamic_update_slice(x, update, _places(starts))


@dynamic_update_slice.gradient
def _dynamic_update_slice_gradient(update: Var, starts: Var, d_out: Var) -> Grads:
    return {
        "x": lambda: dynamic_update_slice(d_out, filled(update, 0.0), starts),
        "update": lambda: dynamic_slice(d_out, starts, sizes=update.shape),
        "starts": None,
    }
