"""The Python array API for eager arrays, as far as its calls are not those of operators.

Every other function of the standard is an operator of the same name. Functions whose results have
shapes that only the entries tell (``nonzero``, ``unique_values``, ...) and those of dtypes are
left to ``jax.numpy``.

Source: Python array API standard 2024.12.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError
from registry.shapes import default_int
from registry.table import get
from registry.types import as_dtype
from symop.array_calls import array_function
from symop.ndarray import NDArray, device_of
from symop.nested import refuse_recorded

Shape = int | Sequence[int]
Axis = int | tuple[int, ...] | None

e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None


def _dtype(dtype: Any) -> Any:
    return None if dtype is None else as_dtype(dtype)


def _made(value: Any, device: Any = None) -> NDArray:
    return NDArray(value if device is None else jax.device_put(value, device_of(device)))


def _raw(x: Any) -> Any:
    return x.value if isinstance(x, NDArray) else x


# Creation --------------------------------------------------------------------------------------


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> NDArray:
    """``obj`` as an array; itself where it is one already, of that dtype and on that device.

    A copy of a recorded array, or one of another dtype, is recorded.

    Raises:
        ValueError: ``copy`` is false and a copy is needed.
        GradientError: it is a list with recorded arrays, or a recorded array that would be moved.
    """
    kept = isinstance(obj, NDArray) and _dtype(dtype) in (None, obj.dtype) and device is None
    if kept and not copy:
        return obj  # type: ignore[no-any-return]  # an NDArray
    if copy is False and not isinstance(obj, jax.Array):
        raise ValueError(
            f"asarray: copy must not be False for {type(obj).__name__}, which needs one"
        )
    return made_of("asarray", obj, dtype, device)


def made_of(what: str, data: Any, dtype: Any, device: Any) -> NDArray:
    """An array of its own with the entries of ``data``; recorded, where ``data`` is.

    Raises:
        GradientError: ``data`` is a list with recorded arrays, or would be moved while recorded.
    """
    if isinstance(data, NDArray):
        return data.astype(data.dtype if dtype is None else dtype, device=device)
    refuse_recorded(what, data)
    return _made(jnp.asarray(data, _dtype(dtype)), device)


def zeros(shape: Shape, dtype: Any = None, *, device: Any = None) -> NDArray:
    """Zeros, float32 unless told otherwise."""
    return _made(jnp.zeros(shape, _dtype(dtype)), device)


def ones(shape: Shape, dtype: Any = None, *, device: Any = None) -> NDArray:
    """Ones, float32 unless told otherwise."""
    return _made(jnp.ones(shape, _dtype(dtype)), device)


def empty(shape: Shape, dtype: Any = None, *, device: Any = None) -> NDArray:
    """An array whose entries nobody relies on: zeros."""
    return zeros(shape, dtype, device=device)


def full(shape: Shape, fill_value: Any, dtype: Any = None, *, device: Any = None) -> NDArray:
    """One number in every entry; the dtype is that of the number."""
    return _made(jnp.full(shape, _raw(fill_value), _dtype(dtype)), device)


def zeros_like(x: NDArray, /, *, dtype: Any = None, device: Any = None) -> NDArray:
    """Zeros of the shape and dtype of ``x``."""
    return zeros(x.shape, x.dtype if dtype is None else dtype, device=device)


def ones_like(x: NDArray, /, *, dtype: Any = None, device: Any = None) -> NDArray:
    """Ones of the shape and dtype of ``x``."""
    return ones(x.shape, x.dtype if dtype is None else dtype, device=device)


def empty_like(x: NDArray, /, *, dtype: Any = None, device: Any = None) -> NDArray:
    """As ``empty``, of the shape and dtype of ``x``."""
    return zeros_like(x, dtype=dtype, device=device)


def full_like(x: NDArray, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> NDArray:
    """One number in every entry, of the shape and dtype of ``x``."""
    return full(x.shape, fill_value, x.dtype if dtype is None else dtype, device=device)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> NDArray:
    """``start``, ``start + step``, ... up to and without ``stop``; from 0 if only one is given."""
    start, stop, step = map(_raw, (start, stop, step))
    for one in (start, stop, step):
        if np.ndim(one):
            raise ArgumentError(
                f"arange: start, stop and step must be numbers, got shape {np.shape(one)}"
            )
    return _made(jnp.arange(start, stop, step, dtype=_dtype(dtype)), device)


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
    """``num`` numbers evenly spread from ``start`` to ``stop``, which ``endpoint`` includes."""
    made = jnp.linspace(start, stop, num, endpoint=endpoint, dtype=_dtype(dtype))
    return _made(made, device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> NDArray:
    """Ones on the diagonal that lies ``k`` above the main one, and zeros."""
    return _made(jnp.eye(n_rows, n_cols, k=k, dtype=_dtype(dtype)), device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> NDArray:
    """The array that another library hands over."""
    return _made(jnp.from_dlpack(_raw(x), copy=copy), device)


# Dtypes ----------------------------------------------------------------------------------------


def astype(x: NDArray, dtype: Any, /, *, copy: bool = True, device: Any = None) -> NDArray:
    """``x`` in another dtype."""
    return x.astype(dtype, copy, device)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the dtype ``from_`` is promoted to ``to``."""
    given = from_.dtype if isinstance(from_, NDArray) else from_
    return bool(jnp.can_cast(given, to))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype to which arrays, dtypes and numbers are promoted together."""
    return jnp.result_type(*map(_raw, arrays_and_dtypes))


class FloatLimits(NamedTuple):
    """What ``finfo`` tells, in Python's own numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


class IntegerLimits(NamedTuple):
    """What ``iinfo`` tells, in Python's own numbers."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def finfo(type: Any, /) -> FloatLimits:
    """The limits of a floating dtype; of the parts of a complex one."""
    of: Any = jnp.finfo
    known = of(type.dtype if isinstance(type, NDArray) else type)
    eps, most, least = float(known.eps), float(known.max), float(known.min)
    smallest = float(known.smallest_normal)
    return FloatLimits(int(known.bits), eps, most, least, smallest, np.dtype(known.dtype))


def iinfo(type: Any, /) -> IntegerLimits:
    """The limits of an integer dtype."""
    of: Any = jnp.iinfo
    known = of(type.dtype if isinstance(type, NDArray) else type)
    return IntegerLimits(int(known.bits), int(known.max), int(known.min), np.dtype(known.dtype))


isdtype = jnp.isdtype


def __array_namespace_info__() -> Any:  # noqa: N807  # the standard's name
    """What the namespace can do."""
    return jnp.__array_namespace_info__()


# Arrangement -----------------------------------------------------------------------------------


def concat(*arrays: Any, axis: int | None = 0, **options: Any) -> Any:
    """Arrays one behind the other along ``axis``; flattened where it is None.

    They are given one by one or in a list, and promoted to one dtype.
    """
    given = _promoted(_listed(arrays))
    if axis is None:
        given = [_call("reshape", one, shape=(-1,)) for one in given]
    return _call("concat", *given, axis=axis or 0, **options)


def stack(*arrays: Any, axis: int = 0, **options: Any) -> Any:
    """Arrays side by side along a new ``axis``, one by one or in a list."""
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


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None, **options: Any) -> Any:
    """The entries in another shape; one length may be -1."""
    del copy  # arrays do not share what can be changed
    return _call("reshape", x, shape=shape, **options)


def repeat(x: Any, /, repeats: Any, axis: int | None = None, **options: Any) -> Any:
    """Each entry along ``axis`` as often as ``repeats`` says; of the flat array if it is None."""
    if isinstance(repeats, int):
        return _call("repeat", x, repeats=repeats, axis=axis, **options)
    flat = _call("reshape", x, shape=(-1,)) if axis is None else x
    at = 0 if axis is None else axis
    times = np.broadcast_to(np.asarray(repeats), flat.shape[at])
    places = np.repeat(np.arange(flat.shape[at], dtype=np.int32), times)
    return _call("take", flat, places, axis=at, **options)


def broadcast_arrays(*arrays: NDArray) -> list[NDArray]:
    """All arrays in the shape to which they broadcast."""
    shape = np.broadcast_shapes(*(one.shape for one in arrays))
    return [get("broadcast_to")(one, shape=shape) for one in arrays]


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """For each array its entry at every place of the grid that they span."""
    return list(_call("meshgrid", *arrays, indexing=indexing)) if arrays else []


def unstack(x: Any, /, axis: int = 0) -> tuple[Any, ...]:
    """The entries of ``x`` along ``axis``, each by itself."""
    return () if x.shape[axis] == 0 else tuple(_call("unstack", x, axis=axis))


def matrix_transpose(x: NDArray, /) -> NDArray:
    """The last two axes swapped."""
    return x.mT


def diff(
    x: NDArray,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: NDArray | None = None,
    append: NDArray | None = None,
) -> NDArray:
    """Differences of neighbors along ``axis``, ``n`` times over."""
    parts = [one for one in (prepend, x, append) if one is not None]
    whole = concat(parts, axis=axis) if len(parts) > 1 else x
    before = (slice(None),) * (axis % whole.ndim)
    for _ in range(n):
        later = whole[(*before, slice(1, None))]
        earlier = whole[(*before, slice(-1))]
        whole = later != earlier if whole.dtype == np.bool_ else later - earlier
    return whole


# Numbers ---------------------------------------------------------------------------------------


def pow(x1: Any, x2: Any, /, **options: Any) -> Any:
    """``x1`` to the power of ``x2``."""
    return _call("power", x1, x2, **options)


def divmod(x1: Any, x2: Any, /) -> tuple[Any, Any]:
    """``x1 // x2`` and ``x1 % x2``: NumPy's, which the standard does not have."""
    return _call("floor_divide", x1, x2), _call("remainder", x1, x2)


def sum(
    x: Any, /, axis: Axis = None, dtype: Any = None, keepdims: bool = False, **options: Any
) -> Any:
    """The sum over ``axis``, by default over all axes; of ``dtype`` where that is given."""
    return _reduced("sum", x, dtype, axis=axis, keepdims=keepdims, **options)


def prod(
    x: Any, /, axis: Axis = None, dtype: Any = None, keepdims: bool = False, **options: Any
) -> Any:
    """The product over ``axis``, by default over all axes; of ``dtype`` where that is given."""
    return _reduced("prod", x, dtype, axis=axis, keepdims=keepdims, **options)


def _reduced(name: str, x: Any, dtype: Any, **options: Any) -> Any:
    """Computed from entries of ``dtype``; an operator's result may be wider than them."""
    if dtype is None:  # a call without options is the quickest
        given = {key: one for key, one in options.items() if one is not None and one is not False}
        return _call(name, x, **given)
    return _cast(_call(name, _cast(x, dtype), **options), dtype)


def clip(x: Any, /, min: Any = None, max: Any = None, **options: Any) -> Any:
    """``x`` within bounds, which are numbers, arrays or None."""
    bounds = {"min": min, "max": max, "low": None, "high": None}
    for name, number in (("min", "low"), ("max", "high")):
        if isinstance(bounds[name], (int, float)):
            bounds[number], bounds[name] = float(bounds[name]), None
    given = {name: one for name, one in bounds.items() if one is not None}
    return _call("clip", x, **given, **options)


def _cast(x: Any, dtype: Any) -> Any:
    return x if dtype is None else _call("cast", x, dtype=as_dtype(dtype))


def _call(name: str, *args: Any, **options: Any) -> Any:
    operator = get(name)
    eager = bool(args) and isinstance(args[0], NDArray)
    if eager and options and options.keys().isdisjoint(_PLACES):
        return operator(*args, **options)  # nothing is asked that it does not do itself
    return array_function(operator)(*args, **options)


_PLACES = ("out", "req")


def var(
    x: NDArray, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
) -> NDArray:
    """The variance over ``axis``; ``correction`` is subtracted from the count."""
    found: NDArray = get("variance")(x, axis=axis, correction=float(correction), keepdims=keepdims)
    return found


def _cumulated(
    name: str, start: int, x: NDArray, axis: int | None, dtype: Any, include_initial: bool
) -> NDArray:
    found: NDArray = _reduced(name, x, dtype, axis=axis)
    if not include_initial:
        return found
    at = (0 if axis is None else axis) % found.ndim
    shape = tuple(1 if i == at else length for i, length in enumerate(found.shape))
    joined: NDArray = concat([full(shape, start, found.dtype), found], axis=at)
    return joined


def cumulative_sum(
    x: NDArray, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> NDArray:
    """Running sums along ``axis``; with ``include_initial`` a zero comes first."""
    return _cumulated("cumsum", 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: NDArray, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> NDArray:
    """Running products along ``axis``; with ``include_initial`` a one comes first."""
    return _cumulated("cumprod", 1, x, axis, dtype, include_initial)


def _by_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ``jax.numpy`` on eager arrays; it has no gradient."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*map(_raw, args), **{k: _raw(v) for k, v in kwargs.items()})
        if isinstance(found, tuple):
            made = [NDArray(one) for one in found]
            return type(found)(*made) if hasattr(found, "_fields") else tuple(made)
        return NDArray(found)

    return call


def searchsorted(
    x1: NDArray, x2: Any, /, *, side: str = "left", sorter: NDArray | None = None
) -> NDArray:
    """Where the entries of ``x2`` belong in the sorted vector ``x1``."""
    found = jnp.searchsorted(x1.value, _raw(x2), side=side, sorter=_raw(sorter))
    return NDArray(found.astype(default_int()))


nextafter = _by_jax(jnp.nextafter)
nonzero = _by_jax(jnp.nonzero)
signbit = _by_jax(jnp.signbit)
unique_all = _by_jax(jnp.unique_all)
unique_counts = _by_jax(jnp.unique_counts)
unique_inverse = _by_jax(jnp.unique_inverse)
unique_values = _by_jax(jnp.unique_values)


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
"""The dtypes of the standard, which are attributes of the namespace."""


def __getattr__(name: str) -> Any:
    """A dtype by its name."""
    if name in DTYPES:
        return np.dtype(name)
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
"""What the namespace has beside operators."""
