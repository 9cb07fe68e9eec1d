"""The binary format of MXNet's arrays: reads every version of the format, writes that of 1.9.1.

All lengths in a file are checked against its remaining size before anything is allocated.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from registry.types import DType, Shape, is_integer
from registry.values import SelectedRows
from symop.interop import reading
from symop.interop.mxnet.attributes import DTYPES
from symop.interop.mxnet.errors import MXNetFormatError
from symop.interop.mxnet.sparse import CSRArray, Fault, csr_fault, rows_fault
from symop.interop.reading import MAX_RANK

Array = np.ndarray | SelectedRows | CSRArray | None
"""The contents of a file; None stands for an array that was declared but never filled."""

_CODES = tuple(range(len(DTYPES)))
_INTEGER_CODES = tuple(code for code in _CODES if is_integer(DTYPES[code]))
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_UNDEFINED, _DENSE, _ROW_SPARSE, _CSR = -1, 0, 1, 2
_CPU = 1
_DEVICES = {_CPU: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}


class Reader(reading.Reader):
    """A sequential reader of the content of MXNet's files."""

    error_class = MXNetFormatError

    def shape(self, what: str, least: int = 0) -> Shape | None:
        """Reads a shape with entries of at least ``least``; None if it is unknown or has a -1."""
        at = self.at
        rank = self.number("i", f"the rank of {what}")
        if not least <= rank <= MAX_RANK:
            raise self.error(f"the rank of {what} must be from {least} to {MAX_RANK}", rank, at)
        lengths = self.numbers("q", rank, what) if rank > 0 else ()
        if min(lengths, default=0) < least:
            raise self.error(f"the lengths of {what} must be at least {least}", lengths, at + 4)
        return None if rank < 0 or -1 in lengths else lengths

    def dtype(self, codes: tuple[int, ...]) -> DType:
        """Reads a dtype, given as one of ``codes``."""
        return DTYPES[self.one_of(codes, "the dtype")]


# Reading ---------------------------------------------------------------------------------------


def read_array(reader: Reader) -> Array:
    """Reads an array.

    Raises:
        MXNetFormatError: the next bytes are not an array.
    """
    at = reader.at
    magic = reader.number("I", "the version")
    if magic in (_V2, _V3):
        return _read_current(reader, with_numpy_shape=magic == _V3)
    if magic == _V1:
        shape = reader.shape("the shape")
    elif magic <= MAX_RANK:  # the first version has no version number: this is the rank
        shape = reader.numbers("I", magic, "the shape")
    else:
        must = f"the version must be {_V1:#x}, {_V2:#x}, {_V3:#x} or a rank up to {MAX_RANK}"
        raise reader.error(must, f"{magic:#x}", at)
    return reader.entries(_read_dtype(reader), shape, "the entries") if shape else None


def _read_dtype(reader: Reader) -> DType:
    """Reads the dtype; skips the array's original device before it."""
    reader.one_of(tuple(_DEVICES), "the device type")
    reader.number("i", "the device id")
    return reader.dtype(_CODES)


def _read_current(reader: Reader, with_numpy_shape: bool) -> Array:
    """Reads an array of the second or third version; the third allows any shape."""
    at = reader.at
    storages = (_UNDEFINED, _DENSE) if with_numpy_shape else (_UNDEFINED, _DENSE, _ROW_SPARSE, _CSR)
    storage = reader.one_of(storages, "the storage type")
    held_at = reader.at
    held = reader.shape("the stored shape") if storage > _DENSE else None
    shape = reader.shape("the shape", least=-1 if with_numpy_shape else 0)
    if shape is None or not (shape or with_numpy_shape):
        return None
    if storage == _UNDEFINED:
        raise reader.error("the storage type of an array with a shape must be known", storage, at)
    dtype = _read_dtype(reader)
    if held is None:
        return reader.entries(dtype, shape, "the entries")
    made = _Sparse(dtype, shape, held, held_at)
    return _read_rows(reader, made) if storage == _ROW_SPARSE else _read_csr(reader, made)


class _Sparse(NamedTuple):
    """The header of a sparse array; ``held`` is the shape of the stored values."""

    dtype: DType
    shape: Shape
    held: Shape
    held_at: int


class _Part(NamedTuple):
    """The header of an array of indices."""

    dtype: DType
    shape: Shape
    at: int


def _read_part(reader: Reader, what: str) -> _Part:
    dtype, at = reader.dtype(_INTEGER_CODES), reader.at
    shape = reader.shape(f"the shape of {what}")
    if shape is None or len(shape) != 1:
        raise reader.error(f"the shape of {what} must have one axis", shape, at)
    return _Part(dtype, shape, at)


def _require_held(reader: Reader, made: _Sparse, expected: Shape) -> None:
    """Checks the shape of the stored values, unless there are none."""
    if made.held != expected and not (0 in made.held and expected[0] == 0):
        raise reader.error(f"the stored shape must be {expected}", made.held, made.held_at)


def _read_rows(reader: Reader, made: _Sparse) -> SelectedRows:
    part = _read_part(reader, "the indices")
    expected = (*part.shape, *made.shape[1:])
    _require_held(reader, made, expected)
    values = reader.entries(made.dtype, expected, "the data")
    start = reader.at
    rows = reader.entries(part.dtype, part.shape, "the indices")
    _refuse(reader, rows_fault(rows, made.shape[0]), {}, {"indices": (start, rows)})
    return SelectedRows(rows, values, made.shape[0])


def _read_csr(reader: Reader, made: _Sparse) -> CSRArray:
    if len(made.shape) != 2:
        must = "the shape of a csr array must have two axes"
        raise reader.error(must, made.shape, made.held_at + 4 + 8 * len(made.held))
    parts = {what: _read_part(reader, f"the {what}") for what in ("indptr", "indices")}
    _require_held(reader, made, parts["indices"].shape)
    data = reader.entries(made.dtype, parts["indices"].shape, "the data")
    found = {}
    for what, part in parts.items():
        start = reader.at
        found[what] = start, reader.entries(part.dtype, part.shape, f"the {what}")
    csr = CSRArray(data, found["indices"][1], found["indptr"][1], made.shape)
    _refuse(reader, csr_fault(csr), {what: part.at for what, part in parts.items()}, found)
    return csr


def _refuse(
    reader: Reader,
    fault: Fault | None,
    shapes: dict[str, int],
    arrays: dict[str, tuple[int, np.ndarray]],
) -> None:
    """Raises the error of ``fault``, if any, located by the offsets of shapes and arrays."""
    if fault is None:
        return
    if fault.place is None:
        at = shapes[fault.part]
    else:
        start, array = arrays[fault.part]
        at = start + fault.place * array.itemsize
    raise reader.error(fault.must, fault.got, at)


# Writing ---------------------------------------------------------------------------------------


def write_array(array: Array, with_numpy_shape: bool) -> Iterator[bytes | memoryview]:
    """Yields the bytes of ``array``, in the third version of the format or else in the second.

    MXNet represents an array that was never filled by an unknown length, and in the second version
    by a shape without axes.
    """
    magic = _V3 if with_numpy_shape else _V2
    if array is None:
        yield struct.pack("<Ii", magic, _DENSE)
        yield _shape((-1,) if with_numpy_shape else ())
    elif isinstance(array, np.ndarray):
        yield struct.pack("<Ii", magic, _DENSE)
        yield from (_shape(array.shape), _device_and_dtype(array.dtype), _raw(array))
    elif isinstance(array, SelectedRows):
        yield from _sparse(_ROW_SPARSE, array.shape, array.values, [array.rows])
    else:
        yield from _sparse(_CSR, array.shape, array.data, [array.indptr, array.indices])


def encoded(array: np.ndarray) -> bytes:
    """The bytes of one array, as ``__getstate__`` of MXNet's arrays gives them."""
    return b"".join(write_array(array, with_numpy_shape=array.ndim == 0 or array.size == 0))


def decoded(content: bytes | bytearray) -> np.ndarray:
    """Reads what ``encoded`` writes.

    Raises:
        MXNetFormatError: it is damaged, or is not a dense array.
    """
    reader = Reader(bytes(content), "__setstate__")
    array = read_array(reader)
    reader.finish()
    if not isinstance(array, np.ndarray):
        raise MXNetFormatError("__setstate__: the array must be dense and filled, got another")
    return array


def _sparse(
    storage: int, shape: Shape, values: np.ndarray, parts: list[Any]
) -> Iterator[bytes | memoryview]:
    """Yields the bytes of a sparse array; its indices become int64, as in MXNet's own arrays."""
    parts = [part.astype(np.int64) for part in parts]
    yield struct.pack("<Ii", _V2, storage)
    yield from (_shape(values.shape), _shape(shape), _device_and_dtype(values.dtype))
    for part in parts:
        yield struct.pack("<i", DTYPES.index(part.dtype)) + _shape(part.shape)
    yield from map(_raw, [values, *parts])


def _shape(shape: Shape) -> bytes:
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def _device_and_dtype(dtype: DType) -> bytes:
    return struct.pack("<iii", _CPU, 0, DTYPES.index(dtype))


def _raw(array: np.ndarray) -> memoryview:
    """The entries in memory order."""
    return np.asarray(array, order="C").reshape(-1).view(np.uint8).data
