"""Attributes: the static values of an operator call, checked and converted to a canonical form.

An annotation is turned into a converter once, when the operator is declared. Canonical values are
hashable; caches distinguish them by ``identity_key``.
"""

import dataclasses
import functools
import inspect
import math
import operator
import types
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import ml_dtypes
import numpy as np

from registry.errors import AttributeTypeError, AttributeValueError, nearest
from registry.shapes import default_float
from registry.types import as_dtype, is_symbolic, near_dtype

Converter = Callable[[Any], Any]
REQUIRED: Any = dataclasses.MISSING
Scalar = bool | int | float | complex
"""Annotation of an attribute that holds one number of any type."""


class _MismatchError(Exception):
    """A converter does not accept a value; the message says what it expects."""


@dataclasses.dataclass(frozen=True)
class Check:
    """A condition on an attribute's value besides its type: ``Annotated[int, Check(...)]``.

    Attributes:
        text: the condition, as it follows "must" in a message.
        holds: tests the condition; it may also raise, and then the error's text is the message.
    """

    text: str
    holds: Callable[[Any], Any]

    def __call__(self, value: Any) -> None:
        """Raises an error if ``value`` does not satisfy the check."""
        try:
            holds = self.holds(value)
        except Exception as error:
            raise AttributeValueError(f"must {self.text} ({error}), got {value!r}") from error
        if holds is not None and not holds:
            raise AttributeValueError(f"must {self.text}, got {value!r}")


@dataclasses.dataclass(frozen=True)
class ConvertedBy:
    """A converter that replaces the one derived from the type."""

    convert: Converter


@dataclasses.dataclass(frozen=True)
class Comment:
    """The description of a slot or an attribute: ``Annotated[float, Comment("the slope")]``."""

    text: str


def _bare(annotation: Any) -> Any:
    """Returns a type without its annotations, or without those of the members of a union."""
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _bare(members[0])
    if origin is typing.Union or origin is types.UnionType:
        return functools.reduce(operator.or_, map(_bare, members))
    return annotation


@dataclasses.dataclass(frozen=True)
class Attribute:
    """One attribute of an operator.

    Attributes:
        name: the keyword that passes it.
        annotation: its declared type.
        convert: converts a value to its canonical form.
        default: canonical default, or ``REQUIRED``.
        comment: its description.
    """

    name: str
    annotation: Any
    convert: Converter
    default: Any = REQUIRED
    comment: str = ""

    @property
    def required(self) -> bool:
        """Whether a call must pass it."""
        return self.default is REQUIRED

    @property
    def is_number(self) -> bool:
        """Whether its type admits a ``float``, that is, a number that a formula may use."""
        bare = self.declared_type
        return bare is float or float in typing.get_args(bare)

    @property
    def declared_type(self) -> Any:
        """Its type without conditions, converters and comments."""
        return _bare(self.annotation)

    @property
    def plain_default(self) -> Any:
        """The default in a form that JSON can represent; None without a default."""
        return None if self.required else to_plain(self.default)

    @property
    def type_text(self) -> str:
        """Its declared type as source text."""
        return inspect.formatannotation(self.declared_type)

    def canonical(self, value: Any, owner: str) -> Any:
        """Returns the canonical form of ``value`` for the operator called ``owner``.

        Raises:
            AttributeTypeError: ``value`` has the wrong type.
            AttributeValueError: ``value`` is not among the allowed strings or numbers.
        """
        try:
            return self.convert(value)
        except _MismatchError as mismatch:
            raise AttributeTypeError(
                f"{owner}: attribute {self.name!r} must be {mismatch}, got {value!r}"
                f"{near_dtype(value) if str(mismatch) == 'a dtype' else ''}"
            ) from None
        except AttributeValueError as error:
            raise AttributeValueError(f"{owner}: attribute {self.name!r} {error}") from None


def make_attribute(name: str, annotation: Any, default: Any) -> Attribute:
    """Returns the attribute that a keyword-only parameter of a kernel declares."""
    convert = converter(annotation)
    marks = getattr(annotation, "__metadata__", ())
    comment = next((mark.text for mark in marks if isinstance(mark, Comment)), "")
    canonical = default if default is REQUIRED else convert(default)
    return Attribute(name, annotation, convert, canonical, comment)


def converter(annotation: Any) -> Converter:
    """Returns the function that checks a value against ``annotation`` and canonicalizes it.

    Raises:
        TypeError: attributes cannot have that annotation.
    """
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return _literal(args)
    if origin in (typing.Union, types.UnionType):
        return _union([converter(arg) for arg in args])
    if origin is tuple:
        return _tuple(args)
    if origin is list:
        return _tuple((*args, Ellipsis))
    if origin is Annotated:
        own = [one.convert for one in args[1:] if isinstance(one, ConvertedBy)]
        convert = own[0] if own else converter(args[0])
        return _checked(convert, [one for one in args[1:] if isinstance(one, Check)])
    raise TypeError(f"no attribute can be annotated {annotation!r}")


def _checked(convert: Converter, checks: Sequence[Check]) -> Converter:
    def converted(value: Any) -> Any:
        result = convert(value)
        for check in checks:
            check(result)
        return result

    return converted


def _boolean(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise _MismatchError("a bool")


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    if is_symbolic(value):  # a symbolic length of ``jax.export``
        length: int = value
        return length
    if not isinstance(value, (bool, np.bool_)):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise _MismatchError("an int")


def _floating(value: Any) -> float:
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    if is_number and not isinstance(value, (bool, np.bool_)):
        return float(value)
    raise _MismatchError("a float")


def _complex(value: Any) -> complex:
    if isinstance(value, (complex, np.complexfloating)):
        return complex(value)
    raise _MismatchError("a complex number")


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise _MismatchError("a str")


def _none(value: Any) -> None:
    if value is not None:
        raise _MismatchError("None")


def _dtype(value: Any) -> np.dtype:
    if value is not None and not isinstance(value, (int, float, tuple, list)):
        try:
            return as_dtype(value)
        except TypeError:
            pass
    raise _MismatchError("a dtype")


def _literal(allowed: tuple[Any, ...]) -> Converter:
    def convert(value: Any) -> Any:
        for one in allowed:
            if type(one) is type(value) and one == value:
                return one
        strings = [one for one in allowed if isinstance(one, str)]
        raise AttributeValueError(
            f"must be one of {', '.join(map(repr, allowed))}, got {value!r}"
            + nearest(str(value), strings)
        )

    return convert


def _union(options: Sequence[Converter]) -> Converter:
    def convert(value: Any) -> Any:
        expected = []
        refusal: AttributeValueError | None = None
        for option in options:
            try:
                return option(value)
            except _MismatchError as mismatch:
                expected.append(str(mismatch))
            except AttributeValueError as error:
                refusal = error
        if refusal is not None:
            raise refusal
        raise _MismatchError(" or ".join(expected))

    return convert


def _tuple(args: tuple[Any, ...]) -> Converter:
    variadic = len(args) == 2 and args[1] is Ellipsis
    items = [converter(args[0])] if variadic else [converter(arg) for arg in args]

    def convert(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (tuple, list, np.ndarray)):
            raise _MismatchError("a tuple")
        if not variadic and len(value) != len(items):
            raise _MismatchError(f"a tuple of {len(items)}")
        each = items * len(value) if variadic else items
        try:
            return tuple(one(entry) for one, entry in zip(each, value, strict=True))
        except _MismatchError as mismatch:
            raise _MismatchError(f"a tuple whose entries are each {mismatch}") from None

    return convert


_SIMPLE: dict[Any, Converter] = {
    bool: _boolean,
    int: _integer,
    float: _floating,
    complex: _complex,
    str: _string,
    type(None): _none,
    np.dtype: _dtype,
}


def identity_key(value: Any) -> Any:
    """Returns a key that is equal for two canonical values only if they are indistinguishable.

    In Python ``0.0 == -0.0`` and ``1 == 1.0 == True``, but ``nan != nan``: caches must distinguish
    the former, and identify NaNs.
    """
    if type(value) is float:
        return ("float", value if value and not math.isnan(value) else repr(value))
    if type(value) is bool:
        return ("bool", value)
    if type(value) is tuple:
        return tuple(identity_key(entry) for entry in value)
    if type(value) is complex:
        return ("complex", repr(value))
    return value


def typed_key(value: Any) -> Any:
    """Returns ``identity_key`` and the default float, which reflects JAX's x64 flag.

    Results that depend on types inside a kernel or a gradient may depend on that flag.
    """
    return identity_key(value), default_float()


_SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_DEPTH_LIMIT = 32
"""Maximum nesting depth of deserialized attribute values, far above that of any declared type."""
_NUMPY_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
    "complex64 complex128"
)
_EXTENDED_DTYPES = [n for n in dir(ml_dtypes) if n.startswith(("bfloat", "float", "int", "uint"))]
_DTYPES = {name: as_dtype(name) for name in [*_NUMPY_DTYPES.split(), *_EXTENDED_DTYPES]}


def dtype_named(name: str) -> np.dtype:
    """Returns the dtype of exactly this name; a file may only name dtypes of numbers.

    Raises:
        ValueError: no dtype has the name.
    """
    if name in _DTYPES:
        return _DTYPES[name]
    raise ValueError(f"no dtype is called {name!r}{nearest(name, _DTYPES)}")


def to_plain(value: Any) -> Any:
    """Returns ``value`` in a form that JSON can represent; ``from_plain`` is the inverse."""
    if isinstance(value, np.dtype):
        return {"dtype": value.name}
    if isinstance(value, tuple):
        return [to_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": [to_plain(value.real), to_plain(value.imag)]}
    return str(value) if isinstance(value, str) else value  # a name may carry more than its text


def from_plain(value: Any, depth: int = 0) -> Any:
    """Decodes a value encoded by ``to_plain``.

    Raises:
        ValueError: ``value`` is not such an encoding.
    """
    if depth > _DEPTH_LIMIT:
        raise ValueError(f"attribute values must nest at most {_DEPTH_LIMIT} deep, got more")
    if isinstance(value, list):
        return tuple([from_plain(entry, depth + 1) for entry in value])
    if not isinstance(value, dict):
        return value
    match list(value.items()):
        case [("dtype", str(name))]:
            return dtype_named(name)
        case [("float", str(name))] if name in _SPECIAL:
            return _SPECIAL[name]
        case [("complex", [real, imag])]:
            return complex(_real(real), _real(imag))
    raise ValueError(f"cannot read the attribute value {value!r:.200}")


def _real(value: Any) -> float:
    number = from_plain(value, _DEPTH_LIMIT)
    if isinstance(number, float):
        return number
    raise ValueError(f"a part of a complex number must be a float, got {value!r:.200}")
