"""The format of one machine: a state in one safetensors file."""

from typing import Any

from registry.tracebacks import api_boundary
from symop.checkpoint.arrays import (
    array_of,
    array_type_text,
    place,
    require_divisible,
    require_same,
)
from symop.checkpoint.states import state_of
from symop.io.files import PARAMETERS_LIMIT, PathLike, load_parameters, save_parameters


@api_boundary
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
    leaves = state_of(state).leaves()
    save_parameters(path, {name: array_of(leaf) for name, leaf in leaves.items()})


@api_boundary
def load(path: PathLike, state: Any, *, limit: int = PARAMETERS_LIMIT) -> Any:
    """Reads a file that ``save`` wrote.

    Args:
        path: the file.
        state: the program whose values are replaced; or a pytree with the structure, shapes and
            dtypes of the saved one, whose leaves are arrays or ``jax.ShapeDtypeStruct``. Their
            shardings say where the arrays are placed.
        limit: the maximum number of bytes to read.

    Returns:
        The pytree; None for a program.

    Raises:
        FormatError: the file is damaged, or its names, shapes or dtypes differ from those of
            ``state``, which is then unchanged.
        ArgumentError: a sharding of ``state`` does not divide the shape.
        OSError: the file cannot be read.
    """
    held, asked = load_parameters(path, limit=limit), state_of(state)
    likes = asked.likes()
    wanted = {n: None if one is None else array_type_text(n, one) for n, one in likes.items()}
    require_same("checkpoint", wanted, {n: array_type_text(n, one) for n, one in held.items()})
    for name, like in likes.items():
        require_divisible(name, like)
    return asked.replace({name: place(held[name], like) for name, like in likes.items()})
