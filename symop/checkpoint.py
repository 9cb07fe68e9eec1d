"""Checkpoints: training state in one file, written atomically and restored bit for bit.

Example:
    >>> import tempfile, symop as so
    >>> with so.program_guard(so.Program()) as program:
    ...     w = so.parameter("w", (2,), initial=1.0)
    ...     loss = so.sum(w * w)
    >>> pairs = so.optim.Adam(0.1).minimize(loss)
    >>> first = program.run(fetch=loss)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/state.safetensors"
    ...     so.checkpoint.save(path, program)
    ...     then = program.run(fetch=loss)
    ...     so.checkpoint.load(path, program)
    >>> bool(program.run(fetch=loss) == then)
    True
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import FormatError, SymopError
from registry.types import VarKind
from registry.values import SelectedRows
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop import random
from symop.io.files import PARAMETERS_LIMIT, PathLike, load_parameters, save_parameters
from symop.program.block import Variable
from symop.program.program import Program

_SCOPE, _RANDOM, _TREE = "scope/", "random/", "tree"
_PARTS = ("rows", "values")


def save(path: PathLike, state: Any) -> None:
    """Writes ``state`` to a file atomically: after a failure, ``path`` is the previous file.

    Args:
        path: a safetensors file.
        state: a ``Program``, whose parameters and states are saved with the state of the process's
            random numbers; or a pytree of arrays, such as a ``train.TrainState``.

    Raises:
        DTypeError: safetensors does not support a dtype.
        OSError: the file cannot be written; the previous one is unchanged.
    """
    if isinstance(state, Program):
        save_parameters(path, _of_program(state))
        return
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    save_parameters(path, {_TREE + jax.tree_util.keystr(key): _plain(one) for key, one in leaves})


def load(path: PathLike, state: Any, *, limit: int = PARAMETERS_LIMIT) -> Any:
    """Reads a file that ``save`` wrote.

    Args:
        path: the file.
        state: the program whose values are replaced; or a pytree with the structure, shapes and
            dtypes of the saved one.
        limit: the maximum number of bytes to read.

    Returns:
        The pytree; None for a program.

    Raises:
        FormatError: the file is damaged, or its names, shapes or dtypes differ from those of
            ``state``, which is then unchanged.
        OSError: the file cannot be read.
    """
    held = load_parameters(path, limit=limit)
    if isinstance(state, Program):
        _into_program(held, state)
        return None
    leaves, tree = jax.tree_util.tree_flatten_with_path(state)
    names = [_TREE + jax.tree_util.keystr(key) for key, _ in leaves]
    _require_names(held, names)
    found = [_like(name, held[name], one) for name, (_, one) in zip(names, leaves, strict=True)]
    return jax.tree_util.tree_unflatten(tree, found)


def _plain(value: Any) -> Any:
    """Returns a leaf as an array that a file can store: a random key becomes its raw data."""
    return jax.random.key_data(value) if _is_key(value) else value


def _is_key(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _like(name: str, array: np.ndarray, leaf: Any) -> Any:
    """Converts ``array`` to the kind of ``leaf``: a key, a number, a JAX array or a NumPy array.

    Raises:
        FormatError: the shapes or dtypes differ.
    """
    plain = np.asarray(_plain(leaf))
    if array.shape != plain.shape or array.dtype != plain.dtype:
        raise FormatError(
            f"{name}: an array of type {plain.dtype.name}{list(plain.shape)} must be there, got "
            f"{array.dtype.name}{list(array.shape)}"
        )
    if isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic):
        return type(leaf)(array.item())
    if isinstance(leaf, np.generic):
        return array[()]
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
    return array if isinstance(leaf, np.ndarray) else jnp.asarray(array)


def _require_names(held: Mapping[str, Any], names: list[str]) -> None:
    strange, missing = sorted(set(held) - set(names)), sorted(set(names) - set(held))
    if strange or missing:
        raise FormatError(
            "checkpoint: the file must hold what is asked for, got too much: "
            f"{', '.join(strange) or 'nothing'}; too little: {', '.join(missing) or 'nothing'}"
        )


def _of_program(program: Program) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for name, value in program.values().items():
        if isinstance(value, SelectedRows):
            arrays |= {f"{_SCOPE}{name}/{part}": getattr(value, part) for part in _PARTS}
        else:
            arrays[_SCOPE + name] = value
    return arrays | {_RANDOM + name: one for name, one in random.get_state().items()}


def _into_program(held: Mapping[str, np.ndarray], program: Program) -> None:
    kept = [one for one in program.variables if one.persistable]
    names = [_RANDOM + part for part in random.get_state()]
    for variable in kept:
        names += _names(variable)
    _require_names(held, names)
    found = {one.name: _value(one, held) for one in kept}
    state = random.get_state()
    state = {part: _like(part, held[_RANDOM + part], like) for part, like in state.items()}
    program.scope.update(found)
    random.set_state(state)


def _names(variable: Variable) -> list[str]:
    """Returns the names of a variable's arrays in the file."""
    name = _SCOPE + variable.name
    rows = variable.kind is VarKind.SELECTED_ROWS
    return [f"{name}/{part}" for part in _PARTS] if rows else [name]


def _value(variable: Variable, held: Mapping[str, np.ndarray]) -> Any:
    type, arrays = variable.type, [held[name] for name in _names(variable)]
    if type.kind is not VarKind.SELECTED_ROWS:
        like = np.empty(type.shape, type.dtype)
        return jnp.asarray(_like(variable.name, arrays[0], like))
    rows, values = map(jnp.asarray, arrays)
    result = SelectedRows(rows, values, type.shape[0])
    try:
        fits = result.type is type
    except SymopError:
        fits = False
    if not fits:
        raise FormatError(f"{variable.name}: rows of type {type} must be there, got other arrays")
    return result
