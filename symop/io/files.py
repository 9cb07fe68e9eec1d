"""Atomic writes, bounded reads, and named arrays as safetensors files."""

import contextlib
import errno
import glob
import os
import platform
import secrets
import stat
import time
import warnings
import zlib
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import safetensors
import safetensors.numpy

from registry.errors import ArgumentError, DTypeError, FormatError
from registry.operator.attributes import dtype_named
from registry.sites import present_site
from registry.tracebacks import api_boundary
from symop.io.contents import HEADER_LIMIT, contents_of

PathLike = str | os.PathLike[str]

_CODES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
"""The dtypes of safetensors, by their codes in the header."""
_RESERVED = "__metadata__"
_HOST = f"{zlib.crc32(platform.node().encode()):08x}"
"""Distinguishes this machine from others that write to the same folder."""
_PATIENCE = 5.0
"""The number of seconds to wait for a reader of a FIFO."""
PARAMETERS_LIMIT = 1 << 36
"""The default limit on the number of bytes of parameters to read."""
_PIECE = 1 << 20


def write_atomically(path: PathLike, data: bytes) -> None:
    """Writes ``data`` to the file at ``path``: all of it, or nothing changes.

    The bytes are synced to disk under another name in the same folder, which is then renamed to
    ``path``, so opening ``path`` at any moment yields either the old content or the new. The file
    keeps its mode, and its owner where the system allows it; a link stays a link. A file that is
    not regular, such as a device or a FIFO, is written to, not replaced: a FIFO that has no reader
    within a few seconds is unchanged, with a warning.

    Raises:
        OSError: the file or its folder cannot be written; the old file is unchanged.
    """
    target = Path(os.path.realpath(path))
    try:
        before = target.stat()
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        _write_through(target, before.st_mode, data)
        return
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file must be writable", os.fspath(path))
    _replace(target, before, data)


def _replace(target: Path, before: os.stat_result | None, data: bytes) -> None:
    """Writes a temporary file and renames it to ``target``."""
    stem = f".{_cut(target.name)}.{_HOST}-"
    _remove_abandoned(target.parent, stem)
    temporary = target.with_name(f"{stem}{os.getpid()}.{secrets.token_hex(8)}.tmp")
    try:
        with os.fdopen(_create(temporary, before), "wb") as file:
            file.write(data)
            file.flush()
            if before is not None:
                _take_over(file.fileno(), before)
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _cut(name: str) -> str:
    """Returns the first 100 bytes of ``name``, as file names are limited to 255 bytes."""
    return name.encode("utf-8", "surrogateescape")[:100].decode("utf-8", "ignore")


def _create(path: Path, before: os.stat_result | None) -> int:
    """Creates a file that only users who may read the old one may read."""
    mode = 0o666 if before is None else stat.S_IMODE(before.st_mode) & 0o600
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, flags, mode)
    except PermissionError as error:
        reason = "the folder must be writable, for the file is replaced whole"
        raise PermissionError(error.errno, reason, os.fspath(path.parent)) from None
    except FileNotFoundError as error:
        reason = "the folder must exist"
        raise FileNotFoundError(error.errno, reason, os.fspath(path.parent)) from None


def _take_over(descriptor: int, before: os.stat_result) -> None:
    """Copies the owner and the mode of another file, as far as this user may."""
    mode = stat.S_IMODE(before.st_mode)
    if hasattr(os, "fchown"):
        status = os.fstat(descriptor)
        if status.st_uid != before.st_uid:
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, before.st_uid, -1)
        if status.st_gid != before.st_gid:
            try:
                os.fchown(descriptor, -1, before.st_gid)
            except PermissionError:  # the new group must not get the permissions of the old one
                mode &= ~stat.S_IRWXG
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)


def _write_through(target: Path, mode: int, data: bytes) -> None:
    """Writes to a device or a FIFO."""
    descriptor = _open_fifo(target) if stat.S_ISFIFO(mode) else os.open(target, os.O_WRONLY)
    if descriptor is None:
        site = present_site()
        text = f"{target}: no process reads this FIFO, so nothing was written"
        warnings.warn_explicit(text, UserWarning, site.file, site.line)
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _open_fifo(path: Path) -> int | None:
    """Opens the FIFO at ``path`` for writing; returns None if no reader opens it in time."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        else:
            os.set_blocking(descriptor, True)
            return descriptor
        if time.monotonic() > until:
            return None
        time.sleep(0.01)


def _remove_abandoned(folder: Path, stem: str) -> None:
    """Removes files left behind by killed processes of this machine."""
    for left in folder.glob(f"{glob.escape(stem)}*.tmp"):
        number = left.name.removeprefix(stem).partition(".")[0]
        if number.isdecimal() and not _is_alive(int(number)):
            left.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Makes the new name survive a power failure, where the system supports it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_bounded(path: PathLike, limit: int) -> bytes:
    """Reads the file at ``path``, at most ``limit`` bytes.

    Raises:
        FormatError: the file is larger.
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        data = _read_up_to(file, limit + 1)
    if len(data) > limit:
        raise FormatError(
            f"{os.fspath(path)}: the file must be at most {limit} bytes long, got more; "
            "pass limit= to read it"
        )
    return data


def _read_up_to(file: BinaryIO, count: int) -> bytes:
    """Returns the next bytes, at most ``count``; allocates no memory for absent bytes."""
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode):
        return file.read(min(count, max(status.st_size - file.tell(), 0) + 1))
    pieces = []
    while count > 0 and (piece := file.read(min(count, _PIECE))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


@api_boundary
def save_parameters(path: PathLike, parameters: Mapping[str, Any]) -> None:
    """Writes named arrays as a safetensors file, atomically.

    Equal arrays under equal names make equal files, regardless of the order of the mapping.

    Args:
        path: the file.
        parameters: NumPy or JAX arrays, or array-likes, by name.

    Raises:
        DTypeError: safetensors does not support a dtype (complex128, objects, ...).
        ArgumentError: a name is not a string, or is reserved by the format.
    """
    if not isinstance(parameters, Mapping):
        raise ArgumentError(
            "save_parameters: parameters must be a dict of arrays by name, after the path, got a "
            f"{type(parameters).__name__}"
        )
    arrays = {}
    for name in sorted(parameters, key=str):
        if type(name) is not str or name == _RESERVED:
            raise ArgumentError(
                f"save_parameters: a name must be a str other than {_RESERVED!r}, got {name!r}"
            )
        arrays[name] = _as_saved(name, parameters[name])
    write_atomically(path, safetensors.numpy.save(arrays))


def _as_saved(name: str, value: Any) -> np.ndarray:
    array = np.asarray(value, order="C")
    if array.dtype.name not in _CODES.values():
        raise DTypeError(
            f"save_parameters: the dtype of {name!r} must be one of "
            f"{', '.join(_CODES.values())}, got {array.dtype.name}"
        )
    return array.astype(array.dtype.newbyteorder("<")) if array.dtype.byteorder == ">" else array


@api_boundary
def load_parameters(path: PathLike, *, limit: int = PARAMETERS_LIMIT) -> dict[str, np.ndarray]:
    """Loads the arrays of a safetensors file by name.

    Args:
        path: the file.
        limit: the maximal number of bytes to read.

    Raises:
        FormatError: the file is not valid, is truncated, exceeds the limit or the memory, or has
            an unsupported dtype.
        OSError: the file cannot be read.
    """
    data = b""
    try:
        data = _read_parameters(path, limit)
        tensors = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
        return {
            name: _as_array(path, name, tensor)
            for name, tensor in sorted(tensors, key=itemgetter(0))
        }
    except safetensors.SafetensorError as error:
        what = contents_of(data)
        reason = error if what is None or data[8:9] == b"{" else f"got {what}"
        raise FormatError(f"{os.fspath(path)}: must be a safetensors file; {reason}") from None
    except MemoryError:
        raise FormatError(f"{os.fspath(path)}: the arrays must fit into the memory") from None


def _read_parameters(path: PathLike, limit: int) -> bytes:
    """Reads a safetensors file: the length given by its header, and one byte if it is longer.

    Raises:
        FormatError: the length exceeds ``limit`` bytes.
    """
    with Path(path).open("rb") as file:
        start = _read_up_to(file, 8)
        head = start + _read_up_to(file, min(int.from_bytes(start, "little"), HEADER_LIMIT))
        length = len(head) + _told_length(head[8:])
        if length > limit:
            raise FormatError(
                f"{os.fspath(path)}: the file must be at most {limit} bytes long, got one that "
                f"declares {length}; pass limit= to read it"
            )
        if file.seekable():
            file.seek(0)
            return _read_up_to(file, length + 1)
        return head + _read_up_to(file, length - len(head) + 1)


class _Extent(msgspec.Struct):
    """The position of a tensor after the header."""

    data_offsets: tuple[int, int] = (0, 0)


def _told_length(header: bytes) -> int:
    """Returns the number of bytes after the header; 0 if it is damaged, reported later."""
    try:
        tensors = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        tensors.pop(_RESERVED, None)
        extents = [msgspec.json.decode(one, type=_Extent) for one in tensors.values()]
    except (msgspec.DecodeError, RecursionError, ValueError):
        return 0
    return max([one.data_offsets[1] for one in extents], default=0)


def _as_array(path: PathLike, name: str, tensor: Mapping[str, Any]) -> np.ndarray:
    code = tensor["dtype"]
    if code not in _CODES:
        raise FormatError(f"{os.fspath(path)}: {name!r} has the unknown dtype {code!r}")
    flat = np.frombuffer(tensor["data"], dtype_named(_CODES[code]))
    return flat.reshape(tensor["shape"])
