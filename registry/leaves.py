"""Operators for records that are values, so that every record of a program has an operator.

They are not part of the catalogue: only programs contain such records, and users do not call them.
"""

import base64
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.desc import OpDesc
from registry.errors import ArgumentError
from registry.operator.attributes import Scalar, dtype_named, to_plain
from registry.operator.leaf_descs import ARRAY, CONSTANT, RANDOM_KEY, TRAINING, type_of_leaf
from registry.operator.operator import Operator
from registry.table import find
from registry.table import get as get_listed
from registry.types import VarKind, VarType
from registry.values import SelectedRows


def _constant(
    *,
    value: Scalar,
    dtype: str | None = None,
    shape: tuple[int, ...] = (),
    kind: str = VarKind.LOD_TENSOR.value,
) -> Any:
    """One number in every entry; a Python scalar if it has no dtype."""
    if dtype is None:
        return jnp.asarray(value)
    if kind == VarKind.SELECTED_ROWS:
        rows = jnp.arange(shape[0], dtype=np.int32)
        return SelectedRows(rows, jnp.full(shape, value, dtype_named(dtype)), shape[0])
    return jnp.full(shape, value, dtype_named(dtype))


def _array(*, dtype: str, shape: tuple[int, ...], data: str | None = None) -> jax.Array:
    """An array whose bytes are given in base64, little-endian in C order."""
    if data is None:
        raise ArgumentError("array: its entries must be recorded, got none")
    entries = np.frombuffer(base64.b64decode(data), dtype_named(dtype))
    return jnp.asarray(entries.reshape(shape))


def _random_key(*, rank: int) -> jax.Array:
    """A random key; drawn by the executor of the program."""
    raise ArgumentError(f"random_key: the program's run must draw key {rank}, got a call by itself")


def _training() -> jax.Array:
    """The training flag; supplied by the executor of the program."""
    raise ArgumentError("training: the program's run must give the flag, got a call by itself")


def _leaf(name: str, kernel: Any) -> Operator:
    operator = Operator(kernel, name=name)

    def types(**attributes: Any) -> tuple[VarType]:
        plain = {key: to_plain(value) for key, value in attributes.items()}
        return (type_of_leaf(OpDesc(name, attrs=plain)),)

    def kind(**attributes: Any) -> VarKind:
        return types(**attributes)[0].kind

    operator.types(types)
    operator.kind(kind)
    operator.zero_gradient("it depends on no input")
    return operator


_OPERATORS = {
    name: _leaf(name, kernel)
    for name, kernel in (
        (CONSTANT, _constant),
        (ARRAY, _array),
        (RANDOM_KEY, _random_key),
        (TRAINING, _training),
    )
}


def get(name: str) -> Operator:
    """Returns the operator called ``name``, or the one that has ``name`` as an alias.

    The records of a program that are values (``constant``, ``array``, ``random_key``, ``training``)
    have operators too, unless another operator has the name; ``names`` does not list them.

    Raises:
        UnknownOperatorError: none has the name; the message says what other systems mean by it,
            or suggests the nearest names.
    """
    return (_OPERATORS.get(name) if find(name) is None else None) or get_listed(name)
