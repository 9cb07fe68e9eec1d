"""Quantization: real numbers as 8-bit integers, with the range that these stand for."""

from typing import Any, Literal

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import at_least_1d, single
from symop.interop.mxnet.partial_shapes import Shapes, enter

_LARGEST = {"int8": 127.0, "uint8": 255.0, "int32": 2147483647.0}
_Parts = tuple[Any, Any, Any]


def _parts() -> tuple[str, str, str]:
    return "output", "min_output", "max_output"


def _shapes(given: Shapes, found: Shapes) -> None:
    for shapes in (given, found):
        for i in range(1, len(shapes)):
            enter(shapes, i, (1,))
    enter(found, 0, given[0])
    enter(given, 0, found[0])


def _farthest(low: Any, high: Any) -> Any:
    """The largest absolute value in a range."""
    return so.maximum(so.abs(low), so.abs(high))


def _range_of(data: Any, calibrated: tuple[float | None, float | None]) -> tuple[Any, Any]:
    """The range that attributes name, or the one of ``data``, as arrays of one entry."""
    low, high = calibrated
    if low is None or high is None:
        return at_least_1d(so.min(data)), at_least_1d(so.max(data))
    zero = at_least_1d(so.sum(so.zeros_like(so.cast(data, dtype="float32"))))
    return so.add(zero, single(low)), so.add(zero, single(high))


def _centered(data: Any, farthest: Any) -> _Parts:
    """``data`` as int8 around zero, and its range."""
    scaled = so.add(so.multiply(so.abs(data), so.divide(_LARGEST["int8"], farthest)), 0.5)
    size = so.minimum(scaled, _LARGEST["int8"])
    return so.cast(so.multiply(so.sign(data), size), dtype="int8"), so.negative(farthest), farthest


def _quantized(data: Any, low: Any, high: Any, out_type: str) -> _Parts:
    """``data`` as 8-bit integers; what is outside of the range of uint8 is undefined."""
    data, low, high = map(so.stop_gradient, (data, low, high))
    if out_type == "int8":
        return _centered(data, _farthest(low, high))
    scale = so.divide(_LARGEST["uint8"], so.subtract(high, low))
    scaled = so.add(so.multiply(so.subtract(data, low), scale), 0.5)
    return so.cast(scaled, dtype="uint8"), low, high


@operator("_contrib_quantize", outputs=_parts, shapes=_shapes, dtypes="free")
def quantize(
    data: Any, min_range: Any, max_range: Any, *, out_type: Literal["int8", "uint8"] = "uint8"
) -> _Parts:
    """``data`` as 8-bit integers of a given range; int8 has its zero in the middle."""
    return _quantized(data, min_range, max_range, out_type)


@operator("_contrib_quantize_v2", outputs=_parts, shapes=_shapes, dtypes="free")
def quantize_v2(
    data: Any,
    *,
    out_type: Literal["auto", "int8", "uint8"] = "int8",
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> _Parts:
    """``data`` as 8-bit integers of its own range, or of one that was measured before.

    ``"auto"`` is uint8 if a measured range has no negative numbers.
    """
    calibrated = min_calib_range, max_calib_range
    dtype = data.dtype.name
    if dtype in ("int8", "uint8"):
        limits = (0.0 if dtype == "uint8" else -_LARGEST["int8"]), _LARGEST[dtype]
        return data, *_range_of(data, limits if None in calibrated else calibrated)
    if out_type == "auto":
        unsigned = None not in calibrated and (min_calib_range or 0.0) >= 0
        out_type = "uint8" if unsigned else "int8"
    return _quantized(data, *_range_of(data, calibrated), out_type)


@operator("_contrib_dequantize", shapes=_shapes, dtypes="free")
def dequantize(
    data: Any, min_range: Any, max_range: Any, *, out_type: Literal["float32"] = "float32"
) -> Any:
    """The numbers that 8-bit integers of a range stand for."""
    dtype, low, high = data.dtype.name, so.stop_gradient(min_range), so.stop_gradient(max_range)
    if dtype not in ("int8", "uint8"):
        raise MXNetError(f"_contrib_dequantize: data must be int8 or uint8, got {dtype}")
    numbers = so.cast(data, dtype=out_type)
    if dtype == "int8":
        return so.multiply(numbers, so.divide(_farthest(low, high), _LARGEST[dtype]))
    scale = so.divide(so.subtract(high, low), _LARGEST[dtype])
    return so.add(so.multiply(numbers, scale), low)


@operator("_contrib_requantize", outputs=_parts, shapes=_shapes, dtypes="free")
def requantize(
    data: Any,
    min_range: Any,
    max_range: Any,
    *,
    out_type: Literal["auto", "int8"] = "int8",
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> _Parts:
    """32-bit integers of a range as int8 of their own range, or of one that was measured."""
    if data.dtype.name != "int32":
        raise MXNetError(f"_contrib_requantize: data must be int32, got {data.dtype.name}")
    low, high = map(so.stop_gradient, (min_range, max_range))
    unit = so.divide(_farthest(low, high), _LARGEST["int32"])
    numbers = so.multiply(so.cast(data, dtype="float32"), unit)
    return _centered(numbers, _farthest(*_range_of(numbers, (min_calib_range, max_calib_range))))
