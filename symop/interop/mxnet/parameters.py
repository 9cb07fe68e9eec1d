"""MXNet's ``.params`` files: arrays by name, or a list of them."""

import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from registry.errors import FormatError
from registry.values import SelectedRows
from symop.eager.ndarray import NDArray
from symop.interop.mxnet.attributes import DTYPES
from symop.interop.mxnet.binary import Array, Reader, read_array, write_array
from symop.interop.mxnet.errors import MXNetError, MXNetFormatError
from symop.interop.mxnet.sparse import CSRArray, merged_rows, sorted_csr
from symop.interop.reading import MAX_RANK
from symop.io.files import PathLike, read_bounded, write_atomically

LIMIT = 1 << 32
"""The default limit on the size of a file in bytes."""
_MAGIC = 0x112
_SMALLEST_ARRAY, _SMALLEST_NAME = 4, 8


# Reading ---------------------------------------------------------------------------------------


def load_params(
    path_or_bytes: PathLike | bytes | bytearray | memoryview, *, limit: int = LIMIT
) -> dict[str, Array] | list[Array]:
    """Loads the arrays of an MXNet file; nothing in it is executed.

    Supports files of all MXNet versions since 0.7. Dense arrays become NumPy arrays, row-sparse
    arrays ``SelectedRows`` and csr arrays ``CSRArray`` of NumPy arrays; an array that was never
    filled becomes None.

    Args:
        path_or_bytes: the file, or its content.
        limit: the maximal size in bytes.

    Returns:
        Arrays by name, in the order of the file, with the prefixes ``arg:`` and ``aux:``. A list
        if the file contains no names.

    Raises:
        MXNetFormatError: the file is damaged, truncated or too large; nothing is loaded.
        OSError: the file cannot be read.

    Example:
        >>> load_params(bytes.fromhex("1201000000000000" + "00" * 24))
        []
    """
    reader = _reader(path_or_bytes, limit)
    for what, expected in (("the file's first number", _MAGIC), ("its second number", 0)):
        at = reader.at
        found = reader.number("Q", what)
        if found != expected:
            raise reader.error(f"{what} must be {expected:#x}", f"{found:#x}", at)
    arrays: list[Array] = []
    for place in range(_read_count(reader, "arrays", _SMALLEST_ARRAY)):
        reader.part = f"array {place}: "
        arrays.append(read_array(reader))
    names = _read_names(reader, len(arrays))
    reader.finish()
    return dict(zip(names, arrays, strict=True)) if names else arrays


def _reader(source: PathLike | bytes | bytearray | memoryview, limit: int) -> Reader:
    if not isinstance(source, (bytes, bytearray, memoryview)):
        try:
            return Reader(read_bounded(source, limit), os.fspath(source))
        except FormatError as error:
            raise MXNetFormatError(str(error)) from None
    length = memoryview(source).nbytes
    if length > limit:
        raise MXNetFormatError(
            f"params: the file must be at most {limit} bytes long, got {length}; "
            "pass limit= to read it"
        )
    return Reader(bytes(source), "params")


def _read_count(reader: Reader, what: str, smallest: int) -> int:
    """Reads the number of following ``what``, each of at least ``smallest`` bytes."""
    at = reader.at
    count = reader.number("Q", f"the number of {what}")
    if count > reader.left // smallest:
        must = f"the number of {what} must be at most {reader.left // smallest}, which could follow"
        raise reader.error(must, count, at)
    return count


def _read_names(reader: Reader, arrays: int) -> list[str]:
    reader.part, at = "", reader.at
    count = _read_count(reader, "names", _SMALLEST_NAME)
    if count not in (0, arrays):
        raise reader.error(f"the number of names must be 0 or {arrays}", count, at)
    names: dict[str, None] = {}
    for place in range(count):
        reader.part = f"name {place}: "
        start = reader.take(reader.number("Q", "the length"), "the text")
        try:
            name = reader.data[start : reader.at].decode()
        except UnicodeDecodeError as error:
            raise reader.error(
                "the text must be UTF-8", error.reason, start + error.start
            ) from None
        if name in names:
            raise reader.error("the text must be no earlier name", repr(name), start)
        names[name] = None
    reader.part = ""
    return list(names)


# Writing ---------------------------------------------------------------------------------------


def save_params(path: PathLike, params: Mapping[str, Any] | Sequence[Any]) -> None:
    """Writes arrays to a file in MXNet's format, byte for byte as MXNet 1.9.1 does.

    If an array has no axes or no entries, MXNet reads the file under ``mx.util.np_shape`` only.
    int16, uint16, uint32 and uint64 are supported by MXNet 2, but not by MXNet 1.

    Args:
        path: the file, which is written atomically.
        params: arrays by name, or in a list: NumPy, JAX and symop arrays, ``SelectedRows``,
            ``CSRArray``, or None for an array without values.

    Raises:
        MXNetError: a value is not an array or has an unsupported dtype, a name is not a text, or
            sparse arrays are mixed with arrays without axes or entries, which MXNet's format
            does not allow in one file.
        OSError: the file cannot be written; the old file is unchanged.
    """
    if isinstance(params, Mapping):
        names = [_written_name(name) for name in params]
        values = [(repr(name), value) for name, value in params.items()]
    elif isinstance(params, (list, tuple)):
        names = []
        values = [(f"array {place}", value) for place, value in enumerate(params)]
    else:
        raise MXNetError(f"save_params: params must be a dict or a list, got {type(params)}")
    arrays = [(what, _written(what, value)) for what, value in values]
    with_numpy_shape = _needs_numpy_shape(arrays)
    pieces: list[bytes | memoryview] = [struct.pack("<QQQ", _MAGIC, 0, len(arrays))]
    for _, array in arrays:
        pieces += write_array(array, with_numpy_shape)
    pieces.append(struct.pack("<Q", len(names)))
    for name in names:
        pieces += struct.pack("<Q", len(name)), name
    write_atomically(path, b"".join(pieces))


def _written_name(name: object) -> bytes:
    try:
        if isinstance(name, str) and "\0" not in name:
            return name.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        pass
    raise MXNetError(f"save_params: a name must be a text without a null character, got {name!r}")


def _written(what: str, value: Any) -> Array:
    """``value`` as NumPy arrays of dtypes supported by the format."""
    value = value.value if isinstance(value, NDArray) else value
    if value is None:
        return None
    try:
        if isinstance(value, SelectedRows):
            some = merged_rows(value)
            return SelectedRows(some.rows, _dense(some.values), some.height)
        if isinstance(value, CSRArray):
            csr = sorted_csr(value)
            return CSRArray(_dense(csr.data), csr.indices, csr.indptr, csr.shape)
        return _dense(value)
    except MXNetError as error:
        raise MXNetError(f"save_params: {what}: {error}") from None


def _dense(value: Any) -> np.ndarray:
    try:
        array = np.asarray(value, order="C")
    except (TypeError, ValueError) as error:
        raise MXNetError(f"it must be an array, got {type(value).__name__} ({error})") from None
    dtype = array.dtype.newbyteorder("=") if array.dtype.byteorder == ">" else array.dtype
    if dtype not in DTYPES:
        names = ", ".join(one.name for one in DTYPES)
        raise MXNetError(f"the dtype must be one of {names}, got {array.dtype}")
    if array.ndim > MAX_RANK:
        raise MXNetError(f"it must have at most {MAX_RANK} axes, got {array.ndim}")
    return array.astype(dtype, copy=False)


def _needs_numpy_shape(arrays: Sequence[tuple[str, Array]]) -> bool:
    """Whether an array has no axes or no entries, which the second version cannot represent."""
    dense = [(what, one) for what, one in arrays if isinstance(one, np.ndarray)]
    small = [what for what, one in dense if one.ndim == 0 or one.size == 0]
    sparse = [what for what, one in arrays if isinstance(one, (SelectedRows, CSRArray))]
    if small and sparse:
        raise MXNetError(
            f"save_params: beside {small[0]}, which has no axes or no entries, all must be dense, "
            f"got sparse {sparse[0]}"
        )
    return bool(small)


# Arguments and auxiliary states ----------------------------------------------------------------


def split_params(
    params: Mapping[str, Any] | Sequence[Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits the result of ``load_params`` into arguments and auxiliary states by prefix.

    As in ``mx.model.load_checkpoint``, names with other prefixes are dropped.

    Raises:
        MXNetError: there are no names, or one has no prefix.

    Example:
        >>> split_params({"arg:w": 1, "aux:mean": 2})
        ({'w': 1}, {'mean': 2})
    """
    if not isinstance(params, Mapping):
        if len(params):
            raise MXNetError(
                f"split_params: the arrays must have names, got a list of {len(params)}"
            )
        params = {}
    parts: dict[str, dict[str, Any]] = {"arg": {}, "aux": {}}
    for key, value in params.items():
        prefix, colon, name = key.partition(":")
        if not colon:
            raise MXNetError(f"split_params: a name must start with 'arg:' or 'aux:', got {key!r}")
        if prefix in parts:
            parts[prefix][name] = value
    return parts["arg"], parts["aux"]
