"""Checksums of the files of a step: a flipped bit in a number is noticed by nothing else."""

import zlib
from typing import Any

import jax
import msgspec

from registry.errors import FormatError

_NAME = "checksums"
_MARK = "commit_success"
"""The stem of files that orbax adds when a step is complete."""
_PIECE = 1 << 24


def write(step: Any, items: list[str]) -> None:
    """Writes the checksums of all files of some items of a step.

    Args:
        step: the folder of the step.
        items: the folders in it.
    """
    files = {str(one.relative_to(step)): one for item in items for one in _files(step / item)}
    sums = {name: _checksum(one) for name, one in files.items()}
    (step / _NAME).write_bytes(msgspec.json.encode(sums))


def verify(step: Any, item: str) -> bool:
    """Compares the files of an item with their checksums; each of several processes does a part.

    Args:
        step: the folder of the step.
        item: a folder in it.

    Returns:
        Whether there are checksums.

    Raises:
        FormatError: a file is missing, or differs.
    """
    if not (step / _NAME).exists():
        return False
    try:
        sums = msgspec.json.decode((step / _NAME).read_bytes(), type=dict[str, int])
    except msgspec.DecodeError as error:
        raise FormatError(f"{step / _NAME}: the file must hold checksums; {error}") from None
    names = sorted(name for name in sums if name.startswith(f"{item}/"))
    for name in names[jax.process_index() :: jax.process_count()]:
        if not (step / name).exists() or _checksum(step / name) != sums[name]:
            raise FormatError(f"{step / name}: the file must be as it was written, got another")
    return True


def _files(folder: Any) -> list[Any]:
    files = []
    for one in folder.iterdir() if folder.exists() else ():
        if one.is_dir():
            files += _files(one)
        elif not one.name.startswith(_MARK):
            files.append(one)
    return files


def _checksum(path: Any) -> int:
    result = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            result = zlib.crc32(piece, result)
    return result
