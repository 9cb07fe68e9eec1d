"""Calls by MXNet's names: arguments are separated into inputs and attributes."""

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any, NamedTuple

from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.errors import MXNetError, require_known
from symop.interop.mxnet.np_shapes import is_np_shape
from symop.interop.mxnet.operators import Operator

IsValue = Callable[[Any], bool]


class Bound(NamedTuple):
    """The bound arguments of a call.

    Attributes:
        inputs: the given inputs by name.
        attributes: strings by name.
        names: the names of all inputs of the call.
    """

    inputs: dict[str, Any]
    attributes: dict[str, str]
    names: tuple[str, ...]


def bound(
    operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any], is_value: IsValue
) -> Bound:
    """Separates inputs from attributes.

    Args:
        operator: the called operator.
        args: inputs in order, then attributes in order.
        kwargs: both by name; None selects the default of an attribute that cannot be None.
        is_value: whether an object is an input.

    Raises:
        MXNetError: an argument is given twice, or is unknown.
    """
    if operator.variadic and len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    given = {key: one for key, one in kwargs.items() if is_value(one)}
    others = {key: one for key, one in kwargs.items() if key not in given}
    inputs, more = ({}, {}) if operator.variadic else _positional(operator, args, is_value)
    count = len(given) + (len(args) if operator.variadic else len(inputs))
    if operator.variadic and "num_args" in operator.attributes:
        others.setdefault("num_args", count)
    first, second = operator.written(more), operator.written(others)
    _require_once(operator, first, second)
    attributes = {**first, **second}
    values = operator.read(attributes, count)
    operator.check(values)
    names = operator.present(values)
    if operator.variadic:
        if len(args) > len(names):
            raise MXNetError(
                f"{operator.name}: at most {len(names)} inputs must be given, got {len(args)}"
            )
        inputs = dict(zip(names, args, strict=False))
    _require_once(operator, inputs, given)
    inputs = {**inputs, **given}
    require_known(f"{operator.name}: inputs", inputs, names)
    return Bound(inputs, attributes, names)


def _require_once(operator: Operator, one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    for name in one.keys() & other.keys():
        raise MXNetError(f"{operator.name}: {name} must be given once, got it twice")


def _positional(
    operator: Operator, args: Sequence[Any], is_value: IsValue
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Positional arguments by name: inputs, followed by attributes."""
    inputs: dict[str, Any] = {}
    slots = iter(operator.inputs)
    for at, one in enumerate(args):
        name = next(slots, None) if one is None or is_value(one) else None
        if name is None:
            return inputs, _positional_attributes(operator, args[at:])
        if one is not None:
            inputs[name] = one
    return inputs, {}


def _positional_attributes(operator: Operator, args: Sequence[Any]) -> dict[str, Any]:
    names = list(operator.attributes)
    if len(args) > len(names):
        raise MXNetError(
            f"{operator.name}: at most {len(operator.inputs)} inputs and {len(names)} attributes "
            f"must be given, got {len(args)} more than inputs"
        )
    return dict(zip(names, args, strict=False))


def by_place(
    what: str, names: Sequence[str], args: Sequence[Any], others: Mapping[str, Any]
) -> dict[str, Any]:
    """Values by name; positional values take ``names`` in order.

    Raises:
        MXNetError: there are more values than names, or one is given twice.
    """
    if len(args) > len(names):
        raise MXNetError(f"{what}: at most {len(names)} must be given, got {len(args)}")
    given = dict(zip(names, args, strict=False))
    for name in given.keys() & others.keys():
        raise MXNetError(f"{what}: {name} must be given once, got it twice")
    return {**given, **others}


def as_shape(name: str, given: Any) -> Shape:
    """``given`` as the shape of ``name``, in which zero means unknown.

    Within ``mx.np_shape()``, -1 is unknown instead.

    Raises:
        MXNetError: it is not a shape.
    """
    try:
        shape = tuple(map(index, given))
    except TypeError:
        raise MXNetError(
            f"{name}: the shape must be a tuple of lengths, got {given!r:.80}"
        ) from None
    if is_np_shape():
        if 0 in shape:
            raise MXNetError(f"{name}: arrays of a graph must have entries, got shape {shape}")
        shape = tuple(max(length, 0) if length == -1 else length for length in shape)
    if any(length < 0 for length in shape):
        raise MXNetError(f"{name}: lengths must be at least 0, got {shape}")
    return shape
