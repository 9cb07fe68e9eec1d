"""The bytes of MXNet's arrays: read in every version of its format, written as 1.9.1 writes them.

Whatever a file says about lengths is compared with what is left of it before anything is made.
"""

import math
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from registry.types import DType, Shape
from registry.values import SelectedRows
from symop.interop.mxnet.attributes import DTYPES
from symop.interop.mxnet.errors import MXNetFormatError
from symop.interop.mxnet.sparse import CSRArray, Fault, csr_fault, rows_fault

Array = np.ndarray | SelectedRows | CSRArray | None
"""What a file holds; None stands for an array that was declared and never filled."""

_CODES = tuple(range(len(DTYPES)))
_INTEGER_CODES = tuple(code for code in _CODES if DTYPES[code].kind in "iu")
MAX_RANK = 32
"""How many axes an array may have: as many as every NumPy takes."""

_MAX_BYTES = 2**63 - 1
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_UNDEFINED, _DENSE, _ROW_SPARSE, _CSR = -1, 0, 1, 2
_CPU = 1
_DEVICES = {_CPU: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}


class Reader:
    """Reads a file's content from its start to its end.

    Attributes:
        data: the content.
        name: what messages call the file.
        at: the byte that is read next.
        part: what messages say is being read.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name, self.at, self.part = data, name, 0, ""

    @property
    def left(self) -> int:
        """How many bytes were not read yet."""
        return len(self.data) - self.at

    def error(self, must: str, got: object, at: int) -> MXNetFormatError:
        """The error that says what ``must`` hold at byte ``at``."""
        return MXNetFormatError(f"{self.name}: {self.part}{must} at byte {at}, got {got}")

    def take(self, length: int, what: str) -> int:
        """Where the next ``length`` bytes start, which count as read.

        Raises:
            MXNetFormatError: so many do not follow.
        """
        at = self.at
        if length > self.left:
            raise self.error(f"{what} must be {length} bytes", f"{self.left} until the end", at)
        self.at += length
        return at

    def numbers(self, code: str, count: int, what: str) -> tuple[int, ...]:
        """``count`` numbers, each of the type that ``code`` stands for in ``struct``."""
        at = self.take(count * struct.calcsize(f"<{code}"), what)
        return struct.unpack_from(f"<{count}{code}", self.data, at)

    def number(self, code: str, what: str) -> int:
        """One number."""
        return self.numbers(code, 1, what)[0]

    def one_of(self, allowed: tuple[int, ...], what: str) -> int:
        """A number of 4 bytes that is one of those ``allowed``."""
        at = self.at
        found = self.number("i", what)
        if found not in allowed:
            raise self.error(f"{what} must be one of {', '.join(map(str, allowed))}", found, at)
        return found

    def shape(self, what: str, least: int = 0) -> Shape | None:
        """A shape, in which nothing is less than ``least``; None where a length is -1, unknown."""
        at = self.at
        rank = self.number("i", f"the rank of {what}")
        if not least <= rank <= MAX_RANK:
            raise self.error(f"the rank of {what} must be from {least} to {MAX_RANK}", rank, at)
        lengths = self.numbers("q", rank, what) if rank > 0 else ()
        if min(lengths, default=0) < least:
            raise self.error(f"the lengths of {what} must be at least {least}", lengths, at + 4)
        return None if rank < 0 or -1 in lengths else lengths

    def dtype(self, codes: tuple[int, ...]) -> DType:
        """The dtype that is written as one of ``codes``."""
        return DTYPES[self.one_of(codes, "the dtype")]

    def entries(self, dtype: DType, shape: Shape, what: str) -> np.ndarray:
        """An array of its own with the next bytes as its entries."""
        if math.prod([max(length, 1) for length in shape]) * dtype.itemsize > _MAX_BYTES:
            raise self.error(f"{what} must be fewer than 2**63 bytes", f"shape {shape}", self.at)
        length = math.prod(shape) * dtype.itemsize
        start = self.take(length, what)
        array = np.empty(shape, dtype)
        if length:
            raw = np.frombuffer(self.data, np.uint8, length, start)
            if dtype.kind == "b" and raw.max() > 1:
                at = int((raw > 1).argmax())
                raise self.error(f"{what} must be 0 or 1", raw[at], start + at)
            array.reshape(-1).view(np.uint8)[:] = raw
        return array


# Reading ---------------------------------------------------------------------------------------


def read_array(reader: Reader) -> Array:
    """The array that starts at the next byte.

    Raises:
        MXNetFormatError: there is none.
    """
    at = reader.at
    magic = reader.number("I", "the version")
    if magic in (_V2, _V3):
        return _read_current(reader, with_numpy_shape=magic == _V3)
    if magic == _V1:
        shape = reader.shape("the shape")
    elif magic <= MAX_RANK:  # the first version had no number: this is the rank
        shape = reader.numbers("I", magic, "the shape")
    else:
        must = f"the version must be {_V1:#x}, {_V2:#x}, {_V3:#x} or a rank up to {MAX_RANK}"
        raise reader.error(must, f"{magic:#x}", at)
    return reader.entries(_read_dtype(reader), shape, "the entries") if shape else None


def _read_dtype(reader: Reader) -> DType:
    """The dtype; the device before it, on which the array was, is of no use here."""
    reader.one_of(tuple(_DEVICES), "the device type")
    reader.number("i", "the device id")
    return reader.dtype(_CODES)


def _read_current(reader: Reader, with_numpy_shape: bool) -> Array:
    """An array of the second or third version; in the third, any shape is legal."""
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
    """What the head of a sparse array says: ``held`` is the shape of the values that are there."""

    dtype: DType
    shape: Shape
    held: Shape
    held_at: int


class _Part(NamedTuple):
    """The head of an array of indices."""

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
    """The shape of the values must follow from the rest, except that any that is empty is."""
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
    """Raise the error that tells of ``fault``, by where the shapes and the arrays start."""
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
    """The bytes of ``array`` in pieces: of the third version, or else of the second.

    Where an array was never filled, MXNet takes an unknown length for it; in the second version,
    that there is none.
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


def _sparse(
    storage: int, shape: Shape, values: np.ndarray, parts: list[Any]
) -> Iterator[bytes | memoryview]:
    """A sparse array; its indices become int64, the only ones that MXNet itself makes."""
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
    """The entries as they lie in memory."""
    return np.asarray(array, order="C").reshape(-1).view(np.uint8).data
