"""Paddle's files: programs, and the values of variables in one file, in one each, or in a pickle.

A file is read whole and checked before anything is returned.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from registry.errors import FormatError
from registry.lod import LoDTensor
from registry.types import Shape
from registry.values import SelectedRows
from symop.interop.paddle import pickles
from symop.interop.paddle.errors import PaddleError, PaddleFormatError
from symop.interop.paddle.framework import LIMIT, ProgramDesc, VarDesc, VarKind, parse, serialize
from symop.interop.paddle.streams import Reader, Value, read_stream, write_stream
from symop.io.files import PathLike, read_bounded, write_atomically

VARS_LIMIT = 1 << 34
"""The default limit on the size of a file of variables in bytes."""
_IN_PARTS = "UnpackBigParamInfor@@"
"""The key of a table of arrays of more than 2**30 bytes, which old pickles hold in parts."""
_STRUCTURED = "StructuredToParameterName@@"
"""The key of the table of structured names in a state dict of Paddle 2."""
_SAVED = (VarKind.LOD_TENSOR, VarKind.SELECTED_ROWS)


def _read(path: PathLike, limit: int) -> bytes:
    try:
        return read_bounded(path, limit)
    except FormatError as error:
        raise PaddleFormatError(str(error)) from None


# Programs --------------------------------------------------------------------------------------


def read_program(path: PathLike, *, limit: int = LIMIT) -> ProgramDesc:
    """Reads a program from a ``__model__`` or ``.pdmodel`` file.

    Args:
        path: the file.
        limit: the maximal size in bytes.

    Raises:
        PaddleFormatError: the file is damaged, too large, or contradicts itself.
        OSError: the file cannot be read.
    """
    return parse(_read(path, limit), os.fspath(path), limit=limit)


def write_program(path: PathLike, program: ProgramDesc) -> None:
    """Writes a program as a ``__model__`` or ``.pdmodel`` file, atomically.

    Raises:
        PaddleError: the program contradicts itself; nothing is written.
        OSError: the file cannot be written; the old file is unchanged.
    """
    write_atomically(path, serialize(program))


def persistables(program: ProgramDesc) -> dict[str, VarDesc]:
    """The variables of a program that are in its files: those that outlive a run, of all blocks."""
    return {
        name: var
        for block in program.blocks
        for name, var in block.vars.items()
        if var.persistable and var.kind in _SAVED
    }


# Variables -------------------------------------------------------------------------------------


def load_vars(
    dirname: PathLike,
    variables: ProgramDesc | Iterable[VarDesc | str],
    *,
    filename: str | None = None,
    limit: int = VARS_LIMIT,
) -> dict[str, Value]:
    """Loads variables from files, one each in a folder, or all from one file.

    Args:
        dirname: the folder.
        variables: the variables, or a program, whose persistable ones are meant. A variable that
            is given by its name alone is a tensor of any shape.
        filename: the name of the combined file, which holds just these variables; None if each has
            a file of its own.
        limit: the maximal size of a file in bytes.

    Returns:
        NumPy arrays, ``LoDTensor`` and ``SelectedRows`` of NumPy arrays by name.

    Raises:
        PaddleFormatError: a file is damaged, too large, or does not fit the variables; nothing is
            loaded.
        PaddleError: a name leads out of the folder.
        OSError: a file cannot be read.
    """
    wanted = _wanted(variables)
    folder = Path(dirname)
    if filename is not None:
        path = folder / filename
        return read_combined(_read(path, limit), wanted, os.fspath(path))
    found = {}
    for name, var in wanted.items():
        path = _file_of(folder, name)
        found.update(read_combined(_read(path, limit), {name: var}, os.fspath(path)))
    return found


def _wanted(variables: ProgramDesc | Iterable[VarDesc | str]) -> dict[str, VarDesc]:
    if isinstance(variables, ProgramDesc):
        return persistables(variables)
    listed = [VarDesc(one) if isinstance(one, str) else one for one in variables]
    return {one.name: one for one in listed}


def _file_of(folder: Path, name: str) -> Path:
    """The file of a variable, whose name may contain folders but must not leave this one."""
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts or "\0" in name:
        raise PaddleError(f"a variable's name must be that of a file in its folder, got {name!r}")
    return folder / name


def in_order(names: Iterable[str]) -> list[str]:
    """Names in the order of a combined file: sorted by their bytes."""
    return sorted(names, key=str.encode)


def read_combined(
    data: bytes, variables: Mapping[str, VarDesc], name: str = "params"
) -> dict[str, Value]:
    """Reads the content of a combined file, which must end after the last variable.

    Args:
        data: the content.
        variables: all variables in the file.
        name: the file's name, for errors.

    Raises:
        PaddleFormatError: the content is damaged, or does not fit the variables.
    """
    reader, found = Reader(data, name), {}
    for one in in_order(variables):
        reader.part, at = f"{one}: ", reader.at
        value = read_stream(reader, variables[one].kind)
        shape = variables[one].shape
        if not _fits(_shape(value), shape):
            raise reader.error(f"the shape must be {shape}", _shape(value), at)
        found[one] = value
    reader.finish()
    return found


def _shape(value: Any) -> Shape:
    return tuple(value.shape)


def _fits(found: Shape, declared: Shape | None) -> bool:
    """Whether a value has its variable's shape, as far as that is known; 1.8 has no scalars."""
    if not declared:
        return declared is None or found in ((), (1,))
    return len(found) == len(declared) and all(
        one in (other, -1) for one, other in zip(declared, found, strict=True)
    )


def save_vars(dirname: PathLike, values: Mapping[str, Any], *, filename: str | None = None) -> None:
    """Saves variables in files, one each in a folder, or all in one file.

    The folder is made if it is not there. Each file is written atomically, after all values were
    checked.

    Args:
        dirname: the folder.
        values: arrays, ``LoDTensor`` and ``SelectedRows`` by name.
        filename: the name of the combined file; None to give each variable a file of its own.

    Raises:
        PaddleError: a value is not an array, or its dtype is not one of Paddle's; nothing is
            written.
        OSError: a file cannot be written.
    """
    folder = Path(dirname)
    content = {name: b"".join(write_stream(name, values[name])) for name in in_order(values)}
    files = (
        {_file_of(folder, name): data for name, data in content.items()}
        if filename is None
        else {folder / filename: b"".join(content.values())}
    )
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)


# Pickles ---------------------------------------------------------------------------------------


def load_pickled(path: PathLike, *, limit: int = VARS_LIMIT) -> dict[str, Any]:
    """Loads a ``.pdparams`` or ``.pdopt`` file as it is, without running anything in it.

    Raises:
        PaddleFormatError: the file is damaged, too large, or contains more than arrays, numbers,
            texts, and dicts and lists of these.
        OSError: the file cannot be read.
    """
    return pickles.loads(_read(path, limit), os.fspath(path))


def load_state(
    prefix: PathLike, program: ProgramDesc | None = None, *, limit: int = VARS_LIMIT
) -> dict[str, np.ndarray]:
    """Loads the arrays of ``prefix.pdparams``, and of ``prefix.pdopt`` if that file exists.

    Args:
        prefix: the path without its ending; one that ends in ``.pdparams`` names this file alone.
        program: the program that the arrays belong to: its shapes are checked, and uint16 becomes
            bfloat16 where it says so.
        limit: the maximal size of a file in bytes.

    Returns:
        Arrays by the names of variables, also where the file has structured ones besides.

    Raises:
        PaddleFormatError: a file is damaged, or does not fit the program.
        OSError: a file cannot be read.
    """
    found: dict[str, np.ndarray] = {}
    for path in _state_files(os.fspath(prefix)):
        found |= _arrays(_joined(load_pickled(path, limit=limit), path))
    variables = persistables(program) if program is not None else {}
    return {name: _as_declared(name, one, variables.get(name)) for name, one in found.items()}


def _state_files(prefix: str) -> list[str]:
    if prefix.endswith((".pdparams", ".pdopt")):
        return [prefix]
    optional = f"{prefix}.pdopt"
    return [f"{prefix}.pdparams", *([optional] if Path(optional).exists() else [])]


def _joined(state: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Returns the content of a file with the arrays whole that Paddle saved in parts.

    Raises:
        PaddleFormatError: a part is missing, or parts do not make up an array of the shape.
    """
    table = state.get(_IN_PARTS)
    if not isinstance(table, dict):
        return state
    parts = {name: value for name, value in state.items() if name != _IN_PARTS}
    for name, told in table.items():
        try:
            pieces = [np.ravel(parts.pop(one)) for one in told["slices"]]
            parts[name] = np.concatenate(pieces).reshape(told["OriginShape"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise PaddleFormatError(
                f"{path}: the parts of {name!r} must make up an array, got {error}"
            ) from None
    return parts


def _arrays(state: Mapping[str, Any]) -> dict[str, np.ndarray]:
    table = state.get(_STRUCTURED)
    names = table if isinstance(table, dict) else {}
    return {
        str(names.get(name, name)): value
        for name, value in state.items()
        if isinstance(value, np.ndarray)
    }


def _as_declared(name: str, array: np.ndarray, var: VarDesc | None) -> np.ndarray:
    if var is None:
        return array
    if var.dtype == ml_dtypes.bfloat16 and array.dtype == np.uint16:
        array = array.view(ml_dtypes.bfloat16)
    if not _fits(_shape(array), var.shape):
        raise PaddleFormatError(f"{name}: the shape must be {var.shape}, got {array.shape}")
    return array


def save_pickled(path: PathLike, arrays: Mapping[str, Any]) -> None:
    """Saves arrays as a ``.pdparams`` or ``.pdopt`` file, atomically.

    Raises:
        PaddleError: a value is not an array of numbers without levels and rows; nothing is written.
        OSError: the file cannot be written; the old file is unchanged.
    """
    for name, value in arrays.items():
        if isinstance(value, (LoDTensor, SelectedRows)):
            raise PaddleError(f"{name}: a pickle must be of arrays, got {type(value).__name__}")
    write_atomically(path, pickles.dumps(arrays))
