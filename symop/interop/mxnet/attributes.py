"""Attributes of MXNet's operators: strings in files, typed values in calls."""

import ast
import types
import typing
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from registry.operator.attributes import dtype_named
from registry.types import DType

Shape = tuple[int, ...]
_TRUE, _FALSE = ("True", "true", "1"), ("False", "false", "0")
_NAMES = "float32 float64 float16 uint8 int32 int8 int64 bool int16 uint16 uint32 uint64 bfloat16"
DTYPES: tuple[DType, ...] = tuple(map(dtype_named, _NAMES.split()))
"""The dtypes, indexed by their numbers in files and in ``__dtype__``."""
_DTYPE_NAMES = {"bool_": "bool"}


def written(value: Any) -> str:
    """``value`` as MXNet writes it to a file: ``"(3, 3)"``, ``"True"``, ``"float32"``.

    Example:
        >>> written((3, 3)), written(0.5), written(None)
        ('(3, 3)', '0.5', 'None')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(written, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, (bool, np.bool_)) or value is None:
        return str(value)
    if isinstance(value, np.generic):
        return str(value.item())
    if isinstance(value, (type, np.dtype)):
        name = np.dtype(value).name
        return _DTYPE_NAMES.get(name, name)
    return str(value)


def read(kind: Any, text: str) -> Any:
    """Parses ``text`` as a value of type ``kind``.

    Args:
        kind: ``int``, ``float``, ``bool``, ``str``, a ``Literal`` of strings, a tuple of one of
            these, or an optional form of one of these.
        text: the value as written in a file.

    Raises:
        ValueError: ``text`` is not such a value.

    Example:
        >>> read(tuple[int, ...], "(3L, 3L)"), read(bool, "1"), read(int | None, "None")
        ((3, 3), True, None)
    """
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if text in ("None", ""):
            return None
        (kind,) = [one for one in inside if one is not type(None)]
        return read(kind, text)
    if origin is Literal:
        if text not in inside:
            raise ValueError(f"one of {', '.join(map(repr, inside))}")
        return text
    if origin is tuple:
        return tuple(read(inside[0], one) for one in _parts(text))
    return _READERS.get(kind, _literal)(text)


def _parts(text: str) -> list[str]:
    """The members of a tuple, a list or an array; a single number is a tuple of length one."""
    inner = text.strip()
    if inner[:1] in ("(", "[") and inner[-1:] in (")", "]"):
        inner = inner[1:-1]
    separator = "," if "," in inner else None  # NumPy separates by spaces
    return [one.strip() for one in inner.split(separator) if one.strip()]


def _int(text: str) -> int:
    """Parses an integer; Python 2 appended L to long ones, and some layers write ``2.0``."""
    inner = text.strip().rstrip("L")
    try:
        return int(inner)
    except ValueError:
        pass
    if inner in _TRUE or inner in _FALSE:
        return int(inner in _TRUE)
    try:
        number = float(inner)
    except ValueError:
        raise ValueError("a whole number") from None
    if not number.is_integer():
        raise ValueError("a whole number")
    return int(number)


def _float(text: str) -> float:
    if text in ("True", "False"):
        return float(text == "True")
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


def _bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("True or False")


def _literal(text: str) -> Any:
    """Parses a value of any other type as a Python literal; nothing is executed."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


_READERS: dict[Any, Callable[[str], Any]] = {int: _int, float: _float, bool: _bool, str: str}


def is_hidden(name: str) -> bool:
    """Whether an attribute is a user's or the system's annotation, not the operator's."""
    return name.startswith("__") and name.endswith("__")
