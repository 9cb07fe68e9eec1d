"""Values of variables while a block is translated, and what is known of them."""

from typing import Any

import jax
import numpy as np

import symop as so
from registry.types import is_inexact
from symop.interop.paddle.errors import UnknownValueError
from symop.symbol.symbol import Symbol, to_node


def data_of(value: Any) -> Any:
    """Returns the array of a value, without the offsets of its sequences."""
    return value.data if isinstance(value, so.LoDTensor) else value


def with_data(value: Any, data: Any) -> Any:
    """Returns ``data`` with the offsets of ``value``."""
    return so.LoDTensor(data, value.lod) if isinstance(value, so.LoDTensor) else data


def symbolic(value: Any) -> Symbol:
    """Returns an array or a symbol as a symbol."""
    return value if isinstance(value, Symbol) else Symbol([to_node(value)])


def is_array(value: Any) -> bool:
    """Returns whether a value is dense or row-sparse, not a list of tensors or nothing."""
    return isinstance(data_of(value), (Symbol, jax.Array, np.ndarray))


def is_floating(value: Any) -> bool:
    """Returns whether a value can have a gradient."""
    return is_array(value) and is_inexact(data_of(value).dtype)


def is_constant(value: Any) -> bool:
    """Returns whether a value depends on no variable; it is then computed at once."""
    return is_array(value) and not isinstance(data_of(value), Symbol)


def known(what: str, value: Any) -> np.ndarray:
    """Returns the numbers of a value that depends on no variable.

    Args:
        what: the operator and the slot, for the error.
        value: the value.

    Raises:
        UnknownValueError: the value depends on variables.
    """
    if not is_constant(value):
        names = data_of(value).list_inputs()
        raise UnknownValueError(
            f"{what}: it must not depend on what is fed, since shapes are known when a program is "
            f"compiled; got a value of {', '.join(names[:3])}",
            names,
        )
    return np.asarray(data_of(value))


def numbers(what: str, value: Any) -> list[int]:
    """Returns the integers of a constant value, as a flat list."""
    return [int(one) for one in known(what, value).ravel()]
