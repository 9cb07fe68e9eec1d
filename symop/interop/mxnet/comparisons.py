"""Comparison of arrays in tests, and repetition of unreliable tests."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symop.interop.mxnet.arrays import NDArray

Tolerance = float | Mapping[Any, float] | None
_RTOL = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-5}
_ATOL = {"float16": 1e-1, "float32": 1e-3, "float64": 1e-20}


def plain(value: Any) -> np.ndarray:
    """``value`` as a NumPy array."""
    return value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)


def same(a: Any, b: Any) -> bool:
    """Whether two arrays are equal."""
    return np.array_equal(plain(a), plain(b))


def get_tols(x: Any, y: Any, rtol: Tolerance, atol: Tolerance) -> tuple[float, float]:
    """The tolerances of a comparison; by default the larger default of both dtypes."""
    found = []
    for given, known in ((rtol, _RTOL), (atol, _ATOL)):
        names = [np.asarray(plain(one)).dtype for one in (x, y)]
        told = given if isinstance(given, Mapping) else {}
        usual = [told.get(one, known.get(one.name, 0.0)) for one in names]
        found.append(float(given) if isinstance(given, (int, float)) else max(usual))
    return found[0], found[1]


def default_rtols() -> dict[Any, float]:
    """Relative tolerances by dtype."""
    return {np.dtype(name): one for name, one in _RTOL.items()}


def default_atols() -> dict[Any, float]:
    """Absolute tolerances by dtype."""
    return {np.dtype(name): one for name, one in _ATOL.items()}


def default_numeric_eps() -> dict[Any, float]:
    """Steps of finite differences by dtype, powers of two."""
    return {
        np.dtype("float16"): 2.0**-6,
        np.dtype("float32"): 2.0**-9,
        np.dtype("float64"): 2.0**-14,
    }


def get_rtol(rtol: float | None = None, dtype: Any = np.float64) -> float:
    """``rtol``, or the default of the dtype."""
    return _RTOL[np.dtype(dtype).name] if rtol is None else rtol


def get_atol(atol: float | None = None, dtype: Any = np.float64) -> float:
    """``atol``, or the default of the dtype."""
    return _ATOL[np.dtype(dtype).name] if atol is None else atol


def get_etol(etol: float | None = None) -> float:
    """``etol``, or zero."""
    return 0.0 if etol is None else etol


def almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Whether ``|a - b| <= atol + rtol |b|`` everywhere.

    Raises:
        AssertionError: shapes differ and ``use_broadcast`` is not set.
    """
    one, other = plain(a), plain(b)
    if not use_broadcast and one.shape != other.shape:
        raise AssertionError(f"shapes must be equal, got {one.shape} and {other.shape}")
    rtol, atol = 1e-5 if rtol is None else rtol, 1e-20 if atol is None else atol
    return bool(np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=equal_nan))


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Asserts that ``|a - b| <= atol + rtol |b|`` everywhere.

    Args:
        a: an array.
        b: another array.
        rtol: the relative tolerance, or one for each dtype; defaults depend on the dtypes.
        atol: the absolute tolerance, in the same form.
        names: the names of the arrays in messages.
        equal_nan: whether NaNs compare equal.
        use_broadcast: whether shapes may differ.
        mismatches: has no effect.

    Raises:
        AssertionError: an entry exceeds the tolerance; the message shows the worst one.

    Example:
        >>> assert_almost_equal(np.ones(2), np.array([1.0, 1.1]), rtol=1e-3, atol=0.0)
        Traceback (most recent call last):
        ...
        AssertionError: a and b must be equal within rtol=0.001, atol=0; 1 of 2 differ, most at \
(1,): 1 and 1.1
    """
    del mismatches
    rtol, atol = get_tols(a, b, rtol, atol)
    if almost_equal(a, b, rtol, atol, equal_nan, use_broadcast):
        return
    one, other = np.broadcast_arrays(plain(a), plain(b))
    wrong = ~np.isclose(one, other, rtol, atol, equal_nan)
    difference = np.abs(one.astype(np.float64) - other.astype(np.float64))
    excess = difference / (atol + rtol * np.abs(other) + 1e-20)
    worst = np.unravel_index(
        np.argmax(np.where(wrong, np.nan_to_num(excess, nan=np.inf), -1)), one.shape
    )
    raise AssertionError(
        f"{names[0]} and {names[1]} must be equal within rtol={rtol:g}, atol={atol:g}; "
        f"{wrong.sum()} of {wrong.size} differ, most at {tuple(map(int, worst))}: "
        f"{one[worst]:.9g} and {other[worst]:.9g}"
    )


def assert_allclose(
    a: Any, b: Any, rtol: float = 1e-7, atol: float = 0.0, equal_nan: bool = True
) -> None:
    """As ``assert_almost_equal``, with NumPy's tolerances."""
    assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan)


def assert_almost_equal_ignore_nan(
    a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None, names: Any = ("a", "b")
) -> None:
    """``assert_almost_equal``, ignoring entries where either array is NaN."""
    unknown = np.isnan(plain(a)) | np.isnan(plain(b))
    one, other = [np.where(unknown, 0, plain(each)) for each in (a, b)]
    assert_almost_equal(one, other, rtol, atol, names)


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    etol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """``assert_almost_equal``, allowing a fraction ``etol`` of the entries to differ."""
    one, other = plain(a), plain(b)
    tolerances = get_tols(one, other, rtol, atol)
    wrong = ~np.isclose(one, other, *tolerances, equal_nan=equal_nan)
    if not etol or wrong.mean() > etol:
        assert_almost_equal(one, other, *tolerances, names, equal_nan, mismatches=mismatches)


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Tolerance = None, atol: Tolerance = None) -> None:
    """Asserts that nested tuples of arrays are almost equal; None is equal to anything."""
    if t1 is None or t2 is None:
        return
    if isinstance(t1, (tuple, list)):
        for one, other in zip(t1, t2, strict=True):
            compare_ndarray_tuple(one, other, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol, atol)


def same_array(array1: NDArray, array2: NDArray) -> bool:
    """Whether two arrays share memory: writes to one are visible in the other."""
    before = array1.asnumpy()
    array1[:] = before + 1
    is_shared = same(array1, array2)
    array1[:] = before
    return is_shared and same(array1, array2)


def np_reduce(
    dat: np.ndarray,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    numpy_reduce_func: Callable[..., Any],
) -> Any:
    """Applies a NumPy reduction along one, several or all axes, starting from the last."""
    every = range(dat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = sorted(one % dat.ndim for one in every)
    found = dat
    for one in reversed(axes):
        found = numpy_reduce_func(found, axis=one)
    lengths = [1 if i in axes else length for i, length in enumerate(dat.shape)]
    return np.reshape(found, lengths) if keepdims else found


def collapse_sum_like(a: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Sums ``a`` over the axes that broadcasting ``shape`` to its shape added or stretched."""
    shape = tuple(shape)
    new = a.ndim - len(shape)
    kept = enumerate(zip(a.shape[new:], shape, strict=True), new)
    stretched = [i for i, (long, short) in kept if long != short]
    result: np.ndarray = a.sum(axis=(*range(new), *stretched)).reshape(shape)
    return result


def assert_exception(
    f: Callable[..., Any], exception_type: type[BaseException], *args: Any, **kwargs: Any
) -> None:
    """Asserts that a call raises an exception of a type.

    Raises:
        AssertionError: it does not.
    """
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{exception_type.__name__} must be raised, got none")


def retry(n: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that runs a test up to ``n`` times, until it passes."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            for attempt in range(n):
                try:
                    test(*args, **kwargs)
                except AssertionError:
                    if attempt == n - 1:
                        raise
                else:
                    return

        return run

    return decorate
