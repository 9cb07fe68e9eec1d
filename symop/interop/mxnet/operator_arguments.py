"""``mx.operator.get_operator_arguments``: the arguments of an operator, as texts."""

import inspect
import types
import typing
from typing import Any, Literal, NamedTuple

from symop.interop.mxnet.attributes import written
from symop.interop.mxnet.operators import find

_INPUT = "NDArray-or-Symbol"
_NAMES = {bool: "boolean", int: "int", float: "float", str: "string"}


class OperatorArguments(NamedTuple):
    """The arguments of an operator.

    Attributes:
        narg: their number.
        names: their names, inputs first.
        types: their types, with default or the word ``required``.
    """

    narg: int
    names: list[str]
    types: list[str]


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """The arguments of the operator ``op_name``.

    Raises:
        MXNetError: there is no such operator.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> mx.operator.get_operator_arguments("Activation").names
        ['data', 'act_type']
    """
    operator = find(op_name)
    names = [*operator.inputs, *operator.attributes]
    told = [_INPUT] * len(operator.inputs)
    told += [_described(*one) for one in operator.attributes.values()]
    return OperatorArguments(len(names), names, told)


def _described(kind: Any, default: Any) -> str:
    if default is inspect.Parameter.empty:
        return f"{_kind(kind)}, required"
    return f"{_kind(kind)}, optional, default={written(default)!r}"


def _kind(kind: Any) -> str:
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        (kind,) = [one for one in inside if one is not types.NoneType]
        return f"{_kind(kind)} or None"
    if origin is Literal:
        return f"{{{', '.join(map(repr, sorted(inside)))}}}"
    if origin is tuple:
        return f"tuple of <{_kind(inside[0])}>"
    return _NAMES.get(kind, getattr(kind, "__name__", str(kind)))
