"""Creation of arrays: filled arrays, ranges, identity matrices, indices.

A length of zero is unknown: these operators keep it until the inferred shape is inserted.
"""

import math
from typing import Any

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import Dtype, axis_of, fixed, made, require_fits

Shape = tuple[int, ...]
_WHOLE = ("uint8", "int8", "int32", "int64")
_DEVICE = ("ctx",)


def _lengths(shape: Shape) -> Shape:
    """``shape`` with zero for unknown lengths, which may also be -1."""
    return tuple(0 if length == -1 else length for length in shape)


def _in(dtype: str, number: float) -> float | int:
    """``number`` as a number of ``dtype``."""
    return int(number) if dtype in _WHOLE else number


@operator("_zeros", ignored=_DEVICE)
def zeros(*, shape: Shape = (), dtype: Dtype = "float32") -> Any:
    """Zeros."""
    shape = _lengths(shape)
    require_fits("_zeros", shape)
    return made("zeros", shape=shape, dtype=dtype)


@operator("_zeros_without_dtype", dtypes="free", ignored=(*_DEVICE, "dtype"))
def zeros_without_dtype(*, shape: Shape = ()) -> Any:
    """Zeros of the default dtype."""
    return made("zeros", shape=shape, dtype="float32")


@operator("_ones", ignored=_DEVICE)
def ones(*, shape: Shape = (), dtype: Dtype = "float32") -> Any:
    """Ones."""
    shape = _lengths(shape)
    require_fits("_ones", shape)
    return made("ones", shape=shape, dtype=dtype)


@operator("_full", ignored=_DEVICE)
def full(*, value: float, shape: Shape = (), dtype: Dtype = "float32") -> Any:
    """An array filled with a number."""
    require_fits("_full", shape)
    number = bool(value) if dtype == "bool" else _in(dtype, value)
    return made("full", shape=shape, fill_value=number, dtype=dtype)


@operator("_eye", ignored=_DEVICE)
def eye(*, N: int, M: int = 0, k: int = 0, dtype: Dtype = "float32") -> Any:
    """Ones on a diagonal, zeros elsewhere."""
    require_fits("_eye", (N, M or N))
    return made("eye", n_rows=N, n_cols=M or N, k=k, dtype=dtype)


def _steps(count: int, start: float, step: float, repeat: int, dtype: str, like: Any = None) -> Any:
    """``count`` numbers from ``start``, each repeated ``repeat`` times, the last maybe fewer."""
    if repeat < 1:
        raise MXNetError(f"arange: repeat must be at least 1, got {repeat}")
    result = made("arange", like=like, start=0, stop=math.ceil(count / repeat), dtype=dtype)
    moved = so.multiply(result, _in(dtype, abs(step)))
    # A product with a negative step would begin with a negative zero.
    result = (so.subtract if step < 0 else so.add)(_in(dtype, start), moved)
    if repeat == 1:
        return result
    return so.slice_axis(so.repeat(result, repeat, axis=0), axis=0, begin=0, end=count)


@operator("_arange", ignored=_DEVICE, note="infer_range is not supported: give stop")
def arange(
    *,
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    dtype: Dtype = "float32",
) -> Any:
    """Evenly spaced numbers up to ``stop``, exclusive."""
    if stop is None:
        if infer_range:
            raise MXNetError("_arange: stop must be given, for the range is not inferred, got none")
        start, stop = 0.0, start
    if step == 0 or (stop - start) / step <= 0:
        raise MXNetError(f"_arange: step must lead from {start} to {stop}, got {step}")
    count = math.ceil((stop - start) / step)
    require_fits("_arange", (count, repeat))
    return _steps(count * repeat, start, step, repeat, dtype)


@operator("_linspace", ignored=_DEVICE)
def linspace(
    *, start: float, stop: float, num: int, endpoint: bool = True, dtype: Dtype = "float32"
) -> Any:
    """``num`` evenly spaced numbers."""
    require_fits("_linspace", (num,))
    found = made("linspace", start=start, stop=stop, num=num, endpoint=endpoint)
    return so.cast(found, dtype=dtype)


@operator("_contrib_arange_like", ignored=_DEVICE)
def arange_like(
    data: Any, *, start: float = 0.0, step: float = 1.0, repeat: int = 1, axis: int | None = None
) -> Any:
    """Evenly spaced numbers in the shape of ``data``, or of its length along ``axis``."""
    shape = tuple(data.shape)
    if axis is not None:
        shape = (shape[axis_of("_contrib_arange_like", axis, len(shape))],)
    found = _steps(math.prod(shape), start, step, repeat, data.dtype.name, like=data)
    return fixed(so.reshape(found, shape=shape), data)


@operator("_contrib_index_array", dtypes="free")
def index_array(data: Any, *, axes: tuple[int, ...] | None = None) -> Any:
    """The index of each entry, along ``axes`` or all axes, on a new last axis."""
    shape = tuple(data.shape)
    count = len(shape)
    along = range(count) if axes is None else [axis % count for axis in axes]
    parts = []
    for axis in along:
        line = made("arange", like=data, start=0, stop=shape[axis], dtype="int64")
        line = so.reshape(line, shape=tuple(shape[i] if i == axis else 1 for i in range(count)))
        parts.append(so.broadcast_to(line, shape=shape))
    return fixed(so.stack(*parts, axis=-1), data)
