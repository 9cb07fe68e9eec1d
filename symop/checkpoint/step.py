"""The format of one step of a folder, which orbax writes and reads: arrays, and an index of them.

The arrays are an item of orbax of the name ``arrays``; the index is an item of JSON.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import msgspec
import numpy as np

from registry.errors import FormatError, missing_extra
from symop.checkpoint import checksums
from symop.checkpoint.arrays import (
    array_type,
    copy_of,
    global_sharding_of,
    place,
    require_divisible,
    require_same,
)
from symop.checkpoint.states import state_of

_ARRAYS, _INDEX = "arrays", "index"
_INDEX_FILE = "metadata"
"""The file of an item that orbax's handler of JSON writes."""
_Empty = dict[str, tuple[str, list[int]]]


class _Index(msgspec.Struct, forbid_unknown_fields=True):
    """The contents of a step other than its arrays.

    Attributes:
        types: the types of the leaves, by name.
        empty: dtype and shape of the arrays without elements, which orbax refuses.
        metrics: the metrics of the step; None for one that is not finite, which JSON lacks.
        checksums: whether there are checksums of the files.
        notes: a text of the caller.
    """

    types: dict[str, str]
    empty: _Empty
    metrics: dict[str, float | None]
    checksums: bool
    notes: str = ""


def orbax() -> Any:
    """Imports orbax.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import orbax.checkpoint as ocp  # noqa: PLC0415  # optional dependency
    except ImportError:
        raise missing_extra("Folder", "orbax-checkpoint", "scale") from None
    return ocp


# Writing


def contents(state: Any, metrics: Mapping[str, float], notes: str = "") -> Any:
    """Returns what orbax is to write: copies of the arrays of ``state``, and the index.

    Raises:
        DTypeError: a leaf is neither an array nor a number.
    """
    named, args = state_of(state), orbax().args
    leaves, types = named.leaves(), named.types()
    kinds = {name: array_type(name, leaf) for name, leaf in leaves.items()}
    arrays = {name: copy_of(leaf) for name, leaf in leaves.items() if kinds[name].size}
    empty = {name: (one.dtype.name, list(one.shape)) for name, one in kinds.items() if not one.size}
    finite = {name: one if math.isfinite(one) else None for name, one in metrics.items()}
    index = msgspec.to_builtins(_Index(types, empty, finite, _has_checksums(), notes))
    items = {_ARRAYS: args.PyTreeSave(arrays)} if arrays else {}
    return args.Composite(**items, **{_INDEX: args.JsonSave(index)})


def seal(path: Any) -> None:
    """Writes the checksums of a step whose files are written, at ``path``."""
    if _has_checksums():
        checksums.write(path, [_ARRAYS, _INDEX])


def _has_checksums() -> bool:
    # Of several processes, the first would have to read what all of them have written.
    return bool(jax.process_count() == 1)


# Reading


def metrics_of(path: Any) -> dict[str, float]:
    """Returns the metrics of the step at ``path``.

    Raises:
        FormatError: the index is damaged.
    """
    metrics = _index(path).metrics
    return {name: math.nan if one is None else one for name, one in metrics.items()}


def notes_of(path: Any) -> str:
    """Returns the notes of the step at ``path``.

    Raises:
        FormatError: the index is damaged.
    """
    return _index(path).notes


def restore(path: Any, like: Any) -> Any:
    """Reads the step at ``path``; see ``Folder.restore``."""
    whole = checksums.verify(path, _INDEX)
    index, named = _index(path), state_of(like)
    if index.checksums and not whole:
        raise FormatError(f"{path}: there must be checksums, got none")
    require_same(str(path), named.types(), index.types)
    likes = named.likes()
    for name, one in likes.items():
        require_divisible(name, one)
    checksums.verify(path, _ARRAYS)
    arrays = _arrays(path, likes, index.empty)
    return named.replace({name: place(arrays[name], one) for name, one in likes.items()})


def _index(path: Any) -> _Index:
    with _reading(path):
        return msgspec.json.decode((path / _INDEX / _INDEX_FILE).read_bytes(), type=_Index)


def _arrays(path: Any, likes: Mapping[str, Any], empty: _Empty) -> dict[str, Any]:
    """Reads the stored arrays, onto the devices that ``likes`` asks for."""
    arrays: dict[str, Any] = {n: np.zeros(shape, dtype) for n, (dtype, shape) in empty.items()}
    wanted = {name: _how(name, one) for name, one in likes.items() if name not in empty}
    if not wanted:
        return arrays
    ocp = orbax()
    args = ocp.args.PyTreeRestore(item=dict.fromkeys(wanted, 0), restore_args=wanted)
    reader = ocp.Checkpointer(ocp.CompositeCheckpointHandler())
    with _reading(path), contextlib.closing(reader):
        items = reader.restore(path, args=ocp.args.Composite(**{_ARRAYS: args}))
    arrays.update(items[_ARRAYS])
    return arrays


def _how(name: str, like: Any) -> Any:
    """Returns how orbax reads an array: to the host, or to devices."""
    ocp, sharding = orbax(), global_sharding_of(like)
    if sharding is None:
        return ocp.RestoreArgs(restore_type=np.ndarray)
    array = array_type(name, like)
    return ocp.ArrayRestoreArgs(sharding=sharding, global_shape=array.shape, dtype=array.dtype)


@contextlib.contextmanager
def _reading(path: Any) -> Iterator[None]:
    """Reports a damaged file."""
    try:
        yield
    except (MemoryError, PermissionError):
        raise
    except Exception as error:
        raise FormatError(f"{path}: the checkpoint must be whole, got {error!s:.300}") from error
