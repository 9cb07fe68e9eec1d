"""Functions of the Python array API on eager arrays that differ from operators.

Every other function of the standard is an operator of the same name. ``jax.numpy`` provides the
functions whose result shapes depend on the entries (``nonzero``, ``unique_values``, ...) and those
on dtypes.

Source: Python array API standard 2024.12.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, AttributeValueError
from registry.shapes import default_int
from registry.table import get
from registry.tracebacks import api_boundary
from registry.types import as_dtype
from symop.eager.array_calls import array_function
from symop.eager.array_protocols import as_jax
from symop.eager.ndarray import NDArray, device_of
from symop.eager.nested import refuse_recorded
from symop.runtime.memory import copy_array

Shape = int | Sequence[int]
Axis = int | tuple[int, ...] | None

e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None


def _dtype(dtype: Any) -> Any:
    return None if dtype is None else as_dtype(dtype)


def _eager(value: Any, device: Any = None) -> NDArray:
    return NDArray(value if device is None else jax.device_put(value, device_of(device)))


def _raw(x: Any) -> Any:
    return x.value if isinstance(x, NDArray) else x


# Creation --------------------------------------------------------------------------------------


@api_boundary
def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> NDArray:
    """Converts ``obj`` to an array.

    A ``jax.Array`` is not copied, unless ``copy`` is true. A copy or cast of a recorded array is
    recorded.

    Raises:
        ValueError: ``copy`` is false and a copy is needed.
        GradientError: ``obj`` is a list with recorded arrays, or a recorded array that would be
            moved.
    """
    kept = isinstance(obj, NDArray) and _dtype(dtype) in (None, obj.dtype) and device is None
    if kept and not copy:
        return obj  # type: ignore[no-any-return]  # an NDArray
    if copy is False and not isinstance(obj, jax.Array):
        raise ValueError(
            f"asarray: copy must not be False for {type(obj).__name__}, which needs one"
        )
    if isinstance(obj, jax.Array) and not copy:
        return _eager(jnp.asarray(obj, _dtype(dtype)), device)
    return new_array("asarray", obj, dtype, device)


def new_array(what: str, data: Any, dtype: Any, device: Any) -> NDArray:
    """Returns a new array with the entries of ``data``; recorded if ``data`` is.

    Raises:
        GradientError: ``data`` is a list with recorded arrays, or a recorded array that would be
            moved.
    """
    if isinstance(data, NDArray):
        return data.astype(data.dtype if dtype is None else dtype, device=device)
    refuse_recorded(what, data)
    array = as_jax(what, data, _dtype(dtype))
    return _eager(copy_array(array) if array is data else array, device)


def _require_lengths(name: str, shape: Any) -> None:
    """Rejects a shape with a negative length."""
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    if any(isinstance(one, (int, np.integer)) and one < 0 for one in lengths):
        raise AttributeValueError(f"{name}: the shape must not be negative, got {shape}")


@api_boundary
def zeros(shape: Shape, dtype: Any = None, *, device: Any = None) -> NDArray:
    """Returns an array of zeros, by default of JAX's default float dtype."""
    _require_lengths("zeros", shape)
    return _eager(jnp.zeros(shape, _dtype(dtype)), device)


@api_boundary
def ones(shape: Shape, dtype: Any = None, *, device: Any = None) -> NDArray:
    """Returns an array of ones, by default of JAX's default float dtype."""
    _require_lengths("ones", shape)
    return _eager(jnp.ones(shape, _dtype(dtype)), device)


def empty(shape: Shape, dtype: Any = None, *, device: Any = None) -> NDArray:
    """Returns an array with unspecified entries, currently zeros."""
    return zeros(shape, dtype, device=device)


@api_boundary
def full(shape: Shape, fill_value: Any, dtype: Any = None, *, device: Any = None) -> NDArray:
    """Returns an array filled with one number, by default of the number's dtype."""
    _require_lengths("full", shape)
    return _eager(jnp.full(shape, _raw(fill_value), _dtype(dtype)), device)


@api_boundary
def zeros_like(x: NDArray, /, *, dtype: Any = None, device: Any = None) -> NDArray:
    """Returns an array of zeros with the shape and dtype of ``x``."""
    return zeros(x.shape, x.dtype if dtype is None else dtype, device=device)


@api_boundary
def ones_like(x: NDArray, /, *, dtype: Any = None, device: Any = None) -> NDArray:
    """Returns an array of ones with the shape and dtype of ``x``."""
    return ones(x.shape, x.dtype if dtype is None else dtype, device=device)


def empty_like(x: NDArray, /, *, dtype: Any = None, device: Any = None) -> NDArray:
    """Returns an array with unspecified entries, of the shape and dtype of ``x``."""
    return zeros_like(x, dtype=dtype, device=device)


@api_boundary
def full_like(x: NDArray, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> NDArray:
    """Returns an array filled with one number, of the shape and dtype of ``x``."""
    return full(x.shape, fill_value, x.dtype if dtype is None else dtype, device=device)


@api_boundary
def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> NDArray:
    """Returns the numbers ``start``, ``start + step``, ... before ``stop``.

    A single argument is ``stop``, and ``start`` is 0.
    """
    start, stop, step = map(_raw, (start, stop, step))
    for one in (start, stop, step):
        if np.ndim(one):
            raise ArgumentError(
                f"arange: start, stop and step must be numbers, got shape {np.shape(one)}"
            )
    return _eager(jnp.arange(start, stop, step, dtype=_dtype(dtype)), device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> NDArray:
    """Returns ``num`` evenly spaced numbers from ``start`` to ``stop``.

    ``endpoint`` says whether ``stop`` is included.
    """
    array = jnp.linspace(start, stop, num, endpoint=endpoint, dtype=_dtype(dtype))
    return _eager(array, device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> NDArray:
    """Returns a matrix with ones on the ``k``-th diagonal and zeros elsewhere."""
    _require_lengths("eye", (n_rows, 0 if n_cols is None else n_cols))
    return _eager(jnp.eye(n_rows, n_cols, k=k, dtype=_dtype(dtype)), device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> NDArray:
    """Creates an array from an object that supports the DLPack protocol."""
    return _eager(jnp.from_dlpack(_raw(x), copy=copy), device)


# Dtypes ----------------------------------------------------------------------------------------


def astype(x: NDArray, dtype: Any, /, *, copy: bool = True, device: Any = None) -> NDArray:
    """Casts ``x`` to a dtype."""
    return x.astype(dtype, copy, device)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the dtype ``from_`` can be cast to ``to`` by type promotion."""
    source = from_.dtype if isinstance(from_, NDArray) else from_
    return bool(jnp.can_cast(source, to))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Returns the dtype that results from promoting arrays, dtypes and numbers."""
    return jnp.result_type(*map(_raw, arrays_and_dtypes))


class FloatLimits(NamedTuple):
    """The result of ``finfo``, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


class IntegerLimits(NamedTuple):
    """The result of ``iinfo``, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def finfo(type: Any, /) -> FloatLimits:
    """Returns the limits of a floating dtype, or of the parts of a complex one."""
    of: Any = jnp.finfo
    known = of(type.dtype if isinstance(type, NDArray) else type)
    eps, most, least = float(known.eps), float(known.max), float(known.min)
    smallest = float(known.smallest_normal)
    return FloatLimits(int(known.bits), eps, most, least, smallest, np.dtype(known.dtype))


def iinfo(type: Any, /) -> IntegerLimits:
    """Returns the limits of an integer dtype."""
    of: Any = jnp.iinfo
    known = of(type.dtype if isinstance(type, NDArray) else type)
    return IntegerLimits(int(known.bits), int(known.max), int(known.min), np.dtype(known.dtype))


isdtype = jnp.isdtype


def __array_namespace_info__() -> Any:  # noqa: N807  # the standard's name
    """Returns the capabilities of the namespace."""
    return jnp.__array_namespace_info__()


# Arrangement -----------------------------------------------------------------------------------


@api_boundary
def concat(*arrays: Any, axis: int | None = 0, **options: Any) -> NDArray:
    """Concatenates arrays along ``axis``; if it is None, flattens them first.

    The arrays are separate arguments or one list, and are promoted to one dtype.
    """
    parts = _promoted(_listed(arrays))
    if axis is None:
        parts = [_call("reshape", one, shape=(-1,)) for one in parts]
    return _call("concat", *parts, axis=axis or 0, **options)


@api_boundary
def stack(*arrays: Any, axis: int = 0, **options: Any) -> NDArray:
    """Stacks arrays, given as separate arguments or one list, along a new ``axis``."""
    return _call("stack", *_promoted(_listed(arrays)), axis=axis, **options)


def _listed(arrays: tuple[Any, ...]) -> list[Any]:
    single = len(arrays) == 1 and isinstance(arrays[0], (list, tuple))
    return list(arrays[0] if single else arrays)


def _promoted(arrays: list[Any]) -> list[Any]:
    dtypes = {one.dtype for one in arrays if hasattr(one, "dtype")}
    if len(dtypes) <= 1:
        return arrays
    dtype = jnp.result_type(*dtypes)
    return [_call("cast", one, dtype=dtype) for one in arrays]


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None, **options: Any) -> NDArray:
    """Reshapes ``x``; one length may be -1."""
    del copy  # arrays never share mutable memory
    return _call("reshape", x, shape=shape, **options)


@api_boundary
def repeat(x: Any, /, repeats: Any, axis: int | None = None, **options: Any) -> NDArray:
    """Repeats each entry along ``axis``; if it is None, each entry of the flattened array.

    ``repeats`` is a number, or an array with a number for each entry.
    """
    if isinstance(repeats, int):
        return _call("repeat", x, repeats=repeats, axis=axis, **options)
    flat = _call("reshape", x, shape=(-1,)) if axis is None else x
    at = 0 if axis is None else axis
    times = np.broadcast_to(np.asarray(repeats), flat.shape[at])
    places = np.repeat(np.arange(flat.shape[at], dtype=np.int32), times)
    return _call("take", flat, places, axis=at, **options)


def broadcast_arrays(*arrays: NDArray) -> list[NDArray]:
    """Broadcasts all arrays to their common shape."""
    shape = np.broadcast_shapes(*(one.shape for one in arrays))
    return [get("broadcast_to")(one, shape=shape) for one in arrays]


@api_boundary
def meshgrid(*arrays: Any, indexing: str = "xy") -> list[NDArray]:
    """Returns the coordinate arrays of the grid that the arrays span."""
    return list(_several("meshgrid", *arrays, indexing=indexing)) if arrays else []


@api_boundary
def unstack(x: Any, /, axis: int = 0) -> tuple[NDArray, ...]:
    """Returns the slices of ``x`` along ``axis``, as separate arrays."""
    return () if x.shape[axis] == 0 else tuple(_several("unstack", x, axis=axis))


@api_boundary
def matrix_transpose(x: NDArray, /) -> NDArray:
    """Swaps the last two axes."""
    return x.mT


@api_boundary
def diff(
    x: NDArray,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: NDArray | None = None,
    append: NDArray | None = None,
) -> NDArray:
    """Returns the ``n``-th differences of adjacent entries along ``axis``."""
    parts = [one for one in (prepend, x, append) if one is not None]
    whole = concat(parts, axis=axis) if len(parts) > 1 else x
    before = (slice(None),) * (axis % whole.ndim)
    for _ in range(n):
        later = whole[(*before, slice(1, None))]
        earlier = whole[(*before, slice(-1))]
        whole = later != earlier if whole.dtype == np.bool_ else later - earlier
    return whole


# Numbers ---------------------------------------------------------------------------------------


@api_boundary
def pow(x1: Any, x2: Any, /, **options: Any) -> NDArray:
    """Returns ``x1`` to the power of ``x2``."""
    return _call("power", x1, x2, **options)


@api_boundary
def divmod(x1: Any, x2: Any, /) -> tuple[NDArray, NDArray]:
    """Returns ``x1 // x2`` and ``x1 % x2``, as in NumPy; the standard has no such function."""
    return _call("floor_divide", x1, x2), _call("remainder", x1, x2)


def sum(
    x: Any, /, axis: Axis = None, dtype: Any = None, keepdims: bool = False, **options: Any
) -> NDArray:
    """Returns the sum over ``axis``, by default all axes; computed in ``dtype`` if given."""
    return _reduced("sum", x, dtype, axis=axis, keepdims=keepdims, **options)


def prod(
    x: Any, /, axis: Axis = None, dtype: Any = None, keepdims: bool = False, **options: Any
) -> NDArray:
    """Returns the product over ``axis``, by default all axes; computed in ``dtype`` if given."""
    return _reduced("prod", x, dtype, axis=axis, keepdims=keepdims, **options)


def _reduced(name: str, x: Any, dtype: Any, **options: Any) -> NDArray:
    """Reduces entries cast to ``dtype``; casts the result, too, as its dtype may be wider."""
    if dtype is None:  # a call without options is the fastest
        keywords = {
            key: one for key, one in options.items() if one is not None and one is not False
        }
        return _call(name, x, **keywords)
    return _cast(_call(name, _cast(x, dtype), **options), dtype)


@api_boundary
def clip(x: Any, /, min: Any = None, max: Any = None, **options: Any) -> NDArray:
    """Clips ``x`` to bounds, which are numbers, arrays or None."""
    bounds = {"min": min, "max": max, "low": None, "high": None}
    for name, number in (("min", "low"), ("max", "high")):
        if isinstance(bounds[name], (int, float)):
            bounds[number], bounds[name] = float(bounds[name]), None
    keywords = {name: one for name, one in bounds.items() if one is not None}
    return _call("clip", x, **keywords, **options)


def _cast(x: Any, dtype: Any) -> NDArray:
    result: NDArray = x if dtype is None else _call("cast", x, dtype=as_dtype(dtype))
    return result


def _call(name: str, *args: Any, **options: Any) -> NDArray:
    result: NDArray = _function(name, args, options)(*args, **options)
    return result


def _several(name: str, *args: Any, **options: Any) -> tuple[NDArray, ...]:
    results: tuple[NDArray, ...] = _function(name, args, options)(*args, **options)
    return results


def _function(name: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Callable[..., Any]:
    operator = get(name)
    eager = bool(args) and isinstance(args[0], NDArray)
    if eager and options and options.keys().isdisjoint(_PLACES):
        return operator  # ``array_function`` is slower and not needed
    return array_function(operator)


_PLACES = ("out", "req")


def var(
    x: NDArray,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    **options: Any,
) -> NDArray:
    """Returns the variance over ``axis``, for the divisor ``n - correction`` of ``n`` entries."""
    options |= {"axis": axis, "correction": float(correction), "keepdims": keepdims}
    return _call("variance", x, **options)


def _cumulated(
    name: str, start: int, x: NDArray, axis: int | None, dtype: Any, include_initial: bool
) -> NDArray:
    result = _reduced(name, x, dtype, axis=axis)
    if not include_initial:
        return result
    at = (0 if axis is None else axis) % result.ndim
    shape = tuple(1 if i == at else length for i, length in enumerate(result.shape))
    return concat([full(shape, start, result.dtype), result], axis=at)


@api_boundary
def cumulative_sum(
    x: NDArray, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> NDArray:
    """Returns cumulative sums along ``axis``, which start with zero if ``include_initial``."""
    return _cumulated("cumsum", 0, x, axis, dtype, include_initial)


@api_boundary
def cumulative_prod(
    x: NDArray, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> NDArray:
    """Returns cumulative products along ``axis``, which start with one if ``include_initial``."""
    return _cumulated("cumprod", 1, x, axis, dtype, include_initial)


def _by_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function of ``jax.numpy`` for eager arrays; it has no gradient."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        results = function(*map(_raw, args), **{k: _raw(v) for k, v in kwargs.items()})
        if isinstance(results, tuple):
            arrays = [NDArray(one) for one in results]
            return type(results)(*arrays) if hasattr(results, "_fields") else tuple(arrays)
        return NDArray(results)

    return call


@api_boundary
def searchsorted(
    x1: NDArray, x2: Any, /, *, side: str = "left", sorter: NDArray | None = None
) -> NDArray:
    """Returns the indices at which to insert entries of ``x2`` into the sorted vector ``x1``."""
    places = jnp.searchsorted(x1.value, _raw(x2), side=side, sorter=_raw(sorter))
    return NDArray(places.astype(default_int()))


nextafter: Callable[[Any, Any], NDArray] = _by_jax(jnp.nextafter)
nonzero: Callable[[Any], tuple[NDArray, ...]] = _by_jax(jnp.nonzero)
signbit: Callable[[Any], NDArray] = _by_jax(jnp.signbit)
unique_all = _by_jax(jnp.unique_all)
unique_counts = _by_jax(jnp.unique_counts)
unique_inverse = _by_jax(jnp.unique_inverse)
unique_values: Callable[[Any], NDArray] = _by_jax(jnp.unique_values)


class Eigen(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: NDArray
    eigenvectors: NDArray


class Factors(NamedTuple):
    """The factors of a QR decomposition."""

    Q: NDArray
    R: NDArray


class SignAndLog(NamedTuple):
    """The sign of a determinant and the logarithm of its magnitude."""

    sign: NDArray
    logabsdet: NDArray


class Singular(NamedTuple):
    """A singular value decomposition."""

    U: NDArray
    S: NDArray
    Vh: NDArray


DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
"""The dtypes of the standard; they are attributes of the namespace."""


def __getattr__(name: str) -> Any:
    """Returns a dtype by its name."""
    if name in DTYPES:
        return np.dtype(name).type  # unlike an ``np.dtype``, never equal to None
    raise AttributeError(name)


__array_api_version__ = "2024.12"

_OWN = (
    "__array_api_version__ __array_namespace_info__ arange asarray astype broadcast_arrays "
    "can_cast clip concat cumulative_prod cumulative_sum diff divmod e empty empty_like eye "
    "finfo from_dlpack full full_like iinfo inf isdtype linspace matrix_transpose meshgrid nan "
    "newaxis nextafter nonzero ones ones_like pi pow prod repeat reshape result_type "
    "searchsorted signbit stack sum unique_all unique_counts unique_inverse unique_values unstack "
    "var zeros zeros_like"
)
FUNCTIONS = frozenset([*DTYPES, *_OWN.split()])
"""The names of the namespace that are not operators."""
