"""Files: written whole or not at all, read up to a limit; and arrays by name as safetensors."""

import contextlib
import glob
import os
import platform
import secrets
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from registry.attributes import dtype_named
from registry.errors import ArgumentError, DTypeError, FormatError

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
"""The dtypes of safetensors, by what its header calls them."""
_RESERVED = "__metadata__"
_HOST = f"{zlib.crc32(platform.node().encode()):08x}"
"""Tells this machine from others that write into the same folder."""


def write_atomically(path: PathLike, data: bytes) -> None:
    """Make ``data`` the content of the file at ``path``: all of it, or else nothing changes.

    The bytes reach the disk under another name in the same folder before that name is changed to
    ``path``, so whoever opens ``path`` at any moment finds the old content or the new.

    Raises:
        OSError: the file cannot be written; the old one is as it was.
    """
    target = Path(os.path.realpath(path))
    stem = f".{target.name[:100]}.{_HOST}-"
    _remove_abandoned(target.parent, stem)
    temporary = target.with_name(f"{stem}{os.getpid()}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _remove_abandoned(folder: Path, stem: str) -> None:
    """Remove what processes of this machine left behind that were killed while they wrote."""
    for left in folder.glob(f"{glob.escape(stem)}*.tmp"):
        number = left.name.removeprefix(stem).partition(".")[0]
        if number.isdecimal() and not _is_alive(int(number)):
            left.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power failure, where the system has a way to."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_bounded(path: PathLike, limit: int) -> bytes:
    """The content of the file at ``path``, of which no more than ``limit`` bytes are read.

    Raises:
        FormatError: the file is larger.
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise FormatError(
            f"{os.fspath(path)}: the file must be at most {limit} bytes long, got more; "
            "pass limit= to read it"
        )
    return data


def save_parameters(path: PathLike, parameters: Mapping[str, Any]) -> None:
    """Write arrays by name as a safetensors file, atomically.

    Equal arrays under equal names make equal files, whatever the order of the mapping.

    Args:
        path: the file.
        parameters: NumPy or JAX arrays, or what NumPy takes for one, by name.

    Raises:
        DTypeError: safetensors has no such dtype (complex128, objects, ...).
        ArgumentError: a name is not a string, or one that the format keeps for itself.
    """
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


def load_parameters(path: PathLike) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file by name.

    Raises:
        FormatError: the file is not one, is truncated, or has a dtype that NumPy lacks.
        OSError: the file cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        found = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise FormatError(f"{os.fspath(path)}: must be a safetensors file; {error}") from None
    return {name: _as_array(path, name, tensor) for name, tensor in sorted(found)}


def _as_array(path: PathLike, name: str, tensor: Mapping[str, Any]) -> np.ndarray:
    code = tensor["dtype"]
    if code not in _CODES:
        raise FormatError(f"{os.fspath(path)}: {name!r} has the unknown dtype {code!r}")
    flat = np.frombuffer(tensor["data"], dtype_named(_CODES[code]))
    return flat.reshape(tensor["shape"])
