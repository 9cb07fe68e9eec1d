"""How recorded arrays were computed, by MXNet's operators, for ``mx.autograd.get_symbol``.

An origin holds no arrays: only operators, attributes, and the origins of inputs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from symop.interop.mxnet.graph import Entry, Node
from symop.interop.mxnet.operators import Operator
from symop.interop.mxnet.scopes import NameManager


class Variable:
    """The origin of an array that no recorded call computed."""

    __slots__ = ()


class Call:
    """A recorded call.

    Attributes:
        operator: the operator.
        attributes: strings by name.
        inputs: the origins of its inputs.
    """

    __slots__ = ("attributes", "inputs", "operator")

    def __init__(
        self, operator: Operator, attributes: Mapping[str, str], inputs: Sequence["Origin"]
    ) -> None:
        self.operator, self.attributes, self.inputs = operator, attributes, inputs


class Result(NamedTuple):
    """One output of a recorded call."""

    call: Call
    place: int


Origin = Variable | Result


class Computed(Protocol):
    """An array that has an origin."""

    _origin: Origin | None

    @property
    def origin(self) -> Origin:
        """The origin."""


def remember(
    result: Any, operator: Operator, attributes: Mapping[str, str], inputs: Sequence[Computed]
) -> None:
    """Notes how the arrays ``result``, one or a list, were computed."""
    call = Call(operator, attributes, [one.origin for one in inputs])
    for i, one in enumerate(result if isinstance(result, (list, tuple)) else [result]):
        one._origin = Result(call, i)


def entry_of(origin: Origin) -> Entry:
    """The graph of an origin; variables are called ``var0``, ``var1``, ..."""
    names, made = NameManager(), dict[int, Node]()
    stack: list[Origin] = [origin]
    while stack:
        one = stack[-1]
        key = one.call if isinstance(one, Result) else one
        missing = (
            [i for i in one.call.inputs if _key(i) not in made] if isinstance(one, Result) else []
        )
        if id(key) in made or not missing:
            stack.pop()
            if id(key) not in made:
                made[id(key)] = _node(one, names, made)
        else:
            stack.extend(reversed(missing))
    return made[_key(origin)], origin.place if isinstance(origin, Result) else 0


def _key(origin: Origin) -> int:
    return id(origin.call if isinstance(origin, Result) else origin)


def _node(origin: Origin, names: NameManager, made: Mapping[int, Node]) -> Node:
    if isinstance(origin, Variable):
        return Node(None, names.get(None, "var"))
    call = origin.call
    inputs = [(made[_key(i)], i.place if isinstance(i, Result) else 0) for i in call.inputs]
    return Node(call.operator, names.get(None, call.operator.name.lower()), call.attributes, inputs)
