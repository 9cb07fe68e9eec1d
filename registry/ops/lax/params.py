"""The static parameters of JAX's primitives as text, which an attribute holds and a file stores.

The text is JSON. Numbers, strings, booleans and None stand for themselves, a list for a tuple, and
an object with one key for a value of the type that the key names.
"""

import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import jax
import numpy as np
from jax import lax

from registry.caches import memoized
from registry.errors import AttributeValueError
from registry.operator.attributes import dtype_named

_ENUMS: tuple[type[Enum], ...] = (
    lax.AccuracyMode,
    lax.FftType,
    lax.GatherScatterMode,
    lax.Precision,
    lax.RandomAlgorithm,
    lax.RoundingMethod,
    lax.linalg.EigImplementation,
    lax.linalg.EighImplementation,
    lax.linalg.SvdAlgorithm,
)
_RECORDS: tuple[type[Any], ...] = (
    lax.ConvDimensionNumbers,
    lax.GatherDimensionNumbers,
    lax.RaggedDotDimensionNumbers,
    lax.ScatterDimensionNumbers,
)
_LIMIT = 100
"""The largest nesting depth of a parameter."""


def to_text(params: Mapping[str, Any]) -> str:
    """Returns ``params`` as text, the same for equal parameters.

    Raises:
        AttributeValueError: a parameter is of a type that has no text, such as a function.

    Example:
        >>> to_text({"axes": (0,), "accuracy": None})
        '{"accuracy": null, "axes": [0]}'
    """
    return json.dumps({key: _plain(key, params[key]) for key in sorted(params)})


def from_text(text: str) -> dict[str, Any]:
    """Returns the parameters that ``to_text`` wrote.

    Raises:
        AttributeValueError: the text is not of that form.

    Example:
        >>> from_text('{"axes": [0], "new_dtype": {"dtype": "float32"}}')
        {'axes': (0,), 'new_dtype': dtype('float32')}
    """
    return dict(_read(text))


@memoized(4096)
def _read(text: str) -> Mapping[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        raise AttributeValueError(f"must be JSON, got {text[:80]!r}") from None
    if not isinstance(record, dict):
        raise AttributeValueError(f"must be an object of parameters, got {text[:80]!r}")
    return {key: _value(one, _LIMIT) for key, one in record.items()}


# Writing -----------------------------------------------------------------------------------------


def _plain(name: str, value: Any) -> Any:
    if type(value).__name__ == "PRNGImpl":  # a named tuple of functions
        return {"prng": value.name}
    if isinstance(value, Enum):
        return _plain_enum(name, value)
    if type(value) in _RECORDS:
        fields = {key: _plain(name, getattr(value, key)) for key in _fields(type(value))}
        return {type(value).__name__: fields}
    if isinstance(value, (tuple, list)):
        return [_plain(name, one) for one in value]
    return _plain_leaf(name, value)


def _plain_enum(name: str, value: Enum) -> Any:
    if type(value) not in _ENUMS:
        raise _has_no_text(name, value)
    return {type(value).__name__: value.name}


def _plain_leaf(name: str, value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return {"float": float(value).hex()}
    if isinstance(value, np.integer):
        return int(value)
    try:
        return {"dtype": np.dtype(value).name}
    except TypeError:
        raise _has_no_text(name, value) from None


def _has_no_text(name: str, value: Any) -> AttributeValueError:
    return AttributeValueError(
        f"parameter {name!r} must be of numbers, strings, dtypes or JAX's records of them, got "
        f"{type(value).__name__}"
    )


def _fields(record: type[Any]) -> tuple[str, ...]:
    named = getattr(record, "_fields", None)
    return tuple(named if named is not None else record.__dataclass_fields__)


# Reading -----------------------------------------------------------------------------------------


def _value(record: Any, depth: int) -> Any:
    if depth == 0:
        raise AttributeValueError(f"must nest at most {_LIMIT} deep")
    if isinstance(record, list):
        return tuple(_value(one, depth - 1) for one in record)
    if isinstance(record, dict):
        return _typed(record, depth)
    return record


def _typed(record: Mapping[str, Any], depth: int) -> Any:
    (kind, held), *others = record.items() or [("", None)]
    read = _READERS.get(kind)
    if read is None or others:
        raise AttributeValueError(
            f"must hold objects of one key, of {', '.join(_READERS)}, got {sorted(record)}"
        )
    try:
        return read(_value(held, depth - 1) if not isinstance(held, dict) else _record(held, depth))
    except (KeyError, TypeError, ValueError) as error:
        raise AttributeValueError(f"must hold a valid {kind}, got {held!r} ({error})") from None


def _record(held: Mapping[str, Any], depth: int) -> dict[str, Any]:
    return {key: _value(one, depth - 1) for key, one in held.items()}


def prng_impl(name: str) -> Any:
    """Returns JAX's implementation of random numbers called ``name``, as primitives take it."""
    traced = jax.make_jaxpr(lambda seed: jax.random.key(seed, impl=name))(np.uint32(0))
    return next(one.params["impl"] for one in _equations(traced.jaxpr) if "impl" in one.params)


def _equations(jaxpr: Any) -> list[Any]:
    inner = [one.params["jaxpr"].jaxpr for one in jaxpr.eqns if "jaxpr" in one.params]
    return [*jaxpr.eqns, *(one for each in inner for one in _equations(each))]


def _of_record(kind: type[Any]) -> Callable[[Mapping[str, Any]], Any]:
    return lambda fields: kind(**fields)


def _of_enum(kind: type[Enum]) -> Callable[[str], Any]:
    return lambda name: kind[name]


_READERS: dict[str, Callable[[Any], Any]] = {
    "float": float.fromhex,
    "dtype": dtype_named,
    "prng": prng_impl,
    **{one.__name__: _of_enum(one) for one in _ENUMS},
    **{one.__name__: _of_record(one) for one in _RECORDS},
}
