"""Paddle's streams of tensors: one in a file of its own, or several in a combined file."""

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from registry.lod import LoDTensor
from registry.types import DType, Shape
from registry.values import SelectedRows
from symop.interop import reading
from symop.interop.paddle.errors import PaddleError, PaddleFormatError
from symop.interop.paddle.framework import DTYPES, MAX_LEVELS, VarKind, dtype_code
from symop.interop.paddle.messages import new, parse_message
from symop.interop.reading import MAX_RANK

Value = np.ndarray | LoDTensor | SelectedRows
"""The contents of a stream: NumPy arrays, with levels of offsets or numbers of rows."""

_MAX_DESCRIPTOR = 4096
"""More bytes than the descriptor of a tensor of the highest rank has."""
_MAX_STEPS = 2**31 - 1
"""The offsets of a ``LoDTensor`` are 32-bit integers."""


class Reader(reading.Reader):
    """A sequential reader of the content of Paddle's files."""

    error_class = PaddleFormatError


# Reading ---------------------------------------------------------------------------------------


def read_stream(reader: Reader, kind: VarKind = VarKind.LOD_TENSOR) -> Value:
    """Reads the stream of a variable of a kind.

    Raises:
        PaddleFormatError: the next bytes are not such a stream.
        PaddleError: variables of this kind have no stream.
    """
    if kind == VarKind.SELECTED_ROWS:
        return read_rows(reader)
    if kind != VarKind.LOD_TENSOR:
        raise PaddleError(f"{reader.part}a variable of kind {kind.name} must not be in a file")
    return read_tensor(reader)


def read_tensor(reader: Reader) -> np.ndarray | LoDTensor:
    """Reads a tensor; one without levels is an array.

    Raises:
        PaddleFormatError: the next bytes are not a tensor.
    """
    reader.one_of((0,), "the version of a LoD tensor", "I")
    levels = _read_levels(reader)
    array = _read_array(reader)
    if not levels:
        return array
    steps = array.shape[0] if array.shape else 0
    counts = [len(offsets) - 1 for _, offsets in levels[1:]] + [steps]
    for (at, offsets), count in zip(levels, counts, strict=True):
        _check_level(reader, at, offsets, count)
    return LoDTensor(array, [offsets.astype(np.int32) for _, offsets in levels])


def _read_levels(reader: Reader) -> list[tuple[int, np.ndarray]]:
    """Reads the offsets of each level, and where they are."""
    at = reader.at
    count = reader.number("Q", "the number of levels")
    if count > MAX_LEVELS:
        raise reader.error(f"the number of levels must be at most {MAX_LEVELS}", count, at)
    levels = []
    for level in range(count):
        at, what = reader.at, f"the offsets of level {level}"
        size = reader.number("Q", f"the size of {what}")
        if not size or size % 8:
            raise reader.error(f"{what} must be a positive multiple of 8 bytes", size, at)
        start = reader.take(size, what)
        levels.append((start, np.frombuffer(reader.data, "<u8", size // 8, start)))
    return levels


def _check_level(reader: Reader, at: int, offsets: np.ndarray, count: int) -> None:
    if offsets[0]:
        raise reader.error("offsets must start with 0", int(offsets[0]), at)
    falls = np.flatnonzero(offsets[1:] < offsets[:-1])
    if falls.size:
        place = int(falls[0]) + 1
        raise reader.error("offsets must not decrease", int(offsets[place]), at + 8 * place)
    if offsets[-1] != count or count > _MAX_STEPS:
        must = f"the last offset must be {min(count, _MAX_STEPS)}, the number of what it counts"
        raise reader.error(must, int(offsets[-1]), at + 8 * (len(offsets) - 1))


def _read_array(reader: Reader) -> np.ndarray:
    """Reads a tensor from its own version on."""
    reader.one_of((0,), "the version of a tensor", "I")
    dtype, shape = _read_descriptor(reader)
    return reader.entries(dtype, shape, "the entries")


def _read_descriptor(reader: Reader) -> tuple[DType, Shape]:
    at = reader.at
    size = reader.number("i", "the size of the descriptor")
    if not 0 <= size <= _MAX_DESCRIPTOR:
        must = f"the size of the descriptor must be from 0 to {_MAX_DESCRIPTOR}"
        raise reader.error(must, size, at)
    start = reader.take(size, "the descriptor")
    place = f"{reader.name}: {reader.part}".rstrip(": ")
    message = parse_message(reader.data[start : reader.at], "Tensor", place, start)
    if message.data_type not in DTYPES:
        raise reader.error("the dtype must be one of Paddle's", message.data_type, start)
    shape = tuple(message.dims)
    if len(shape) > MAX_RANK or min(shape, default=0) < 0:
        must = f"the shape must be at most {MAX_RANK} lengths, none negative"
        raise reader.error(must, shape, start)
    return DTYPES[message.data_type], shape


def read_rows(reader: Reader) -> SelectedRows:
    """Reads rows of a table.

    Raises:
        PaddleFormatError: the next bytes are not rows of a table.
    """
    reader.one_of((0,), "the version of selected rows", "I")
    at = reader.at
    count = reader.number("Q", "the number of rows")
    if count > reader.left // 8:
        must = f"the number of rows must be at most {reader.left // 8}, which could follow"
        raise reader.error(must, count, at)
    start = reader.at
    rows = reader.entries(np.dtype(np.int64), (count,), "the rows")
    at = reader.at
    height = reader.number("q", "the height")
    if height < 0:
        raise reader.error("the height must not be negative", height, at)
    outside = np.flatnonzero((rows < 0) | (rows >= height))
    if outside.size:
        place = int(outside[0])
        raise reader.error(f"rows must be below {height}", int(rows[place]), start + 8 * place)
    at = reader.at
    values = _read_array(reader)
    if values.shape[:1] != (count,):
        raise reader.error(f"the values must be of {count} rows", values.shape, at)
    return SelectedRows(rows, values, height)


# Writing ---------------------------------------------------------------------------------------


def write_stream(name: str, value: Any) -> Iterator[bytes | memoryview]:
    """Yields the bytes of an array, a ``LoDTensor`` or ``SelectedRows``.

    Args:
        name: the variable's name, for errors.
        value: its value.

    Raises:
        PaddleError: it is not an array, or its dtype is not one of Paddle's.
    """
    if isinstance(value, SelectedRows):
        rows = np.asarray(value.rows).astype("<i8")
        yield struct.pack("<IQ", 0, len(rows))
        yield from (_raw(rows), struct.pack("<q", value.height))
        yield from _write_array(name, value.values)
        return
    lod = value.lod if isinstance(value, LoDTensor) else ()
    yield struct.pack("<IQ", 0, len(lod))
    for offsets in lod:
        raw = _raw(np.asarray(offsets).astype("<u8"))
        yield from (struct.pack("<Q", len(raw)), raw)
    yield from _write_array(name, value.data if isinstance(value, LoDTensor) else value)


def _write_array(name: str, value: Any) -> Iterator[bytes | memoryview]:
    array = as_array(name, value)
    message = new("Tensor")
    message.data_type = dtype_code(array.dtype, name)
    message.dims.extend(array.shape)
    descriptor = message.SerializeToString()
    yield struct.pack("<Ii", 0, len(descriptor)) + descriptor
    yield _raw(array)


def as_array(name: str, value: Any) -> np.ndarray:
    """A value as an array of native byte order.

    Raises:
        PaddleError: it is not an array of numbers.
    """
    try:
        array = np.asarray(getattr(value, "value", value), order="C")
    except (TypeError, ValueError) as error:
        raise PaddleError(
            f"{name}: the value must be an array, got {type(value).__name__} ({error})"
        ) from None
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    dtype_code(native.dtype, name)
    return native


def _raw(array: np.ndarray) -> memoryview:
    """The entries in memory order."""
    return np.asarray(array, order="C").reshape(-1).view(np.uint8).data
