"""Calls by MXNet's names: arguments are told apart into inputs and attributes, as it does."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from symop.interop.mxnet.attributes import written
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operator import Operator

IsValue = Callable[[Any], bool]


class Bound(NamedTuple):
    """What a call says.

    Attributes:
        inputs: by name, those that were given.
        attributes: strings by name.
        names: of all inputs that the call has.
    """

    inputs: dict[str, Any]
    attributes: dict[str, str]
    names: tuple[str, ...]


def bound(
    operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any], is_value: IsValue
) -> Bound:
    """Tell inputs from attributes.

    Args:
        operator: what is called.
        args: inputs in their order, then attributes in theirs.
        kwargs: both by name; an attribute that is None is left out.
        is_value: whether something is an input.

    Raises:
        MXNetError: an argument is given twice, or is none of the operator's.
    """
    if operator.variadic and len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    given = {key: one for key, one in kwargs.items() if is_value(one)}
    others = {key: one for key, one in kwargs.items() if key not in given and one is not None}
    if operator.variadic:
        count = len(args) + len(given)
        inputs = dict(zip([f"arg{i}" for i in range(len(args))], args, strict=True)) | given
        if "num_args" in operator.attributes:
            others.setdefault("num_args", count)
    else:
        inputs, more = _positional(operator, args, is_value)
        for name in [*inputs.keys() & given.keys(), *more.keys() & others.keys()]:
            raise MXNetError(f"{operator.name}: {name} must be given once, got it twice")
        inputs, others = {**inputs, **given}, {**more, **others}
        count = len(inputs)
    attributes = {key: written(one) for key, one in others.items()}
    names = operator.present(operator.read(attributes, count))
    for name in inputs:
        if name not in names:
            raise MXNetError(
                f"{operator.name}: inputs must be among {', '.join(names) or 'none'}, got {name!r}"
            )
    return Bound(inputs, attributes, names)


def _positional(
    operator: Operator, args: Sequence[Any], is_value: IsValue
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Positional arguments by name: inputs, and attributes behind them."""
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
    return {name: one for name, one in zip(names, args, strict=False) if one is not None}
