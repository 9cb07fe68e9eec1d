"""Operators of MXNet called on arrays: the catalogue's functions run on the inner ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import symop as so
from symop.interop.mxnet.calls import bound
from symop.interop.mxnet.context import placed
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.ndarray import NDArray
from symop.interop.mxnet.operators import Operator, find
from symop.interop.mxnet.ops.values import sources_are

_PLANS = 4096
"""So many different calls of an operator are remembered."""


class _Array:
    """Stands for the array at a place among those of a call."""

    __slots__ = ("place",)

    def __init__(self, place: int) -> None:
        self.place = place


class _Plan(NamedTuple):
    """What calls that differ in nothing but their arrays have in common.

    Attributes:
        order: for each input of the operator, which of the arrays of the call it is.
        values: of the attributes.
        visible: how many outputs users see; behind them come new values of states.
        states: which of the arrays of the call they are.
    """

    order: tuple[int, ...]
    values: Mapping[str, Any]
    visible: int
    states: tuple[int, ...]


def function_of(called: str) -> Callable[..., Any]:
    """The operator called so, as a function of arrays and attributes.

    The function takes ``out``, an array, or one for each output, that the result is written into,
    and ``ctx``, where an operator without inputs puts its result. Several outputs come as a list.

    Raises:
        MXNetError: there is none.
    """
    return caller(find(called), called)


def caller(operator: Operator, called: str) -> Callable[..., Any]:
    """``operator`` as a function of arrays and attributes; see ``function_of``."""
    plans: dict[Any, _Plan] = {}

    def function(*args: Any, **kwargs: Any) -> Any:
        out = context = None
        if kwargs:
            out, context = kwargs.pop("out", None), kwargs.pop("ctx", None)
            kwargs.pop("name", None)
            if out is not None:
                _as_out(operator, out, kwargs)
        if operator.variadic and len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = tuple(args[0])
        given = (*args, *kwargs.values())
        holders = [one for one in given if isinstance(one, NDArray)]
        arrays = [one.inner for one in holders]
        key = (len(args), *kwargs, *[_mark(one) for one in given])
        try:
            plan = plans.get(key)
        except TypeError:  # a list, say
            key, plan = (), None
        if plan is None:
            plan = _planned(operator, args, kwargs)
            if key:
                if len(plans) > _PLANS:
                    plans.clear()
                plans[key] = plan
        made = _run(operator, [arrays[i] for i in plan.order], plan.values)
        if not arrays:
            made = [so.NDArray(placed(one.value, context)) for one in made]
        if len(made) > plan.visible:
            for place, one in zip(plan.states, made[plan.visible :], strict=True):
                holders[place].become(one)
            made = made[: plan.visible]
        return _returned(operator, made, arrays, out)

    function.__name__ = function.__qualname__ = called
    function.__doc__ = operator.function.__doc__
    return function


def _mark(one: Any) -> Any:
    """What tells an argument from others; all arrays are alike."""
    # 1, 1.0 and True are equal, and written otherwise.
    return _Array if isinstance(one, NDArray) else (one.__class__, one)


def _planned(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Plan:
    """What a call says beside its arrays.

    Raises:
        MXNetError: an input is missing, or an argument is none of the operator's.
    """
    count = 0

    def marked(one: Any) -> Any:
        nonlocal count
        if not isinstance(one, NDArray):
            return one
        count += 1
        return _Array(count - 1)

    positional = [marked(one) for one in args]
    named = {name: marked(one) for name, one in kwargs.items()}
    given = bound(operator, positional, named, lambda one: isinstance(one, _Array))
    missing = [name for name in given.names if name not in given.inputs]
    if missing:
        raise MXNetError(f"{operator.name}: {', '.join(missing)} must be arrays, got none")
    values = operator.read(given.attributes, len(given.names))
    order = tuple(given.inputs[name].place for name in given.names)
    states = tuple(given.inputs[name].place for name in given.names if name in operator.states)
    return _Plan(order, values, operator.visible(values), states)


def _as_out(operator: Operator, out: Any, kwargs: dict[str, Any]) -> None:
    """Where an array is to be made without a shape or a dtype, they are those of ``out``."""
    if operator.inputs or operator.variadic or not isinstance(out, NDArray):
        return
    if "shape" in operator.attributes and kwargs.get("shape") is None:
        kwargs["shape"] = out.shape
    if "dtype" in operator.attributes and kwargs.get("dtype") is None:
        kwargs["dtype"] = out.dtype


def _run(
    operator: Operator, inputs: Sequence[so.NDArray], values: Mapping[str, Any]
) -> list[so.NDArray]:
    """The outputs."""
    if inputs:
        found = operator.call(inputs, values)
    else:
        with sources_are(so.NDArray):
            found = operator.call(inputs, values)
    return [one if isinstance(one, so.NDArray) else so.NDArray(one) for one in found]


def _returned(
    operator: Operator, made: list[so.NDArray], arrays: Sequence[so.NDArray], out: Any
) -> Any:
    """What a call returns: arrays of its own, or ``out``, into which they are written."""
    # What an operator hands on as it is would change together with its input.
    found = [so.nd.identity(one) if any(one is x for x in arrays) else one for one in made]
    if out is None:
        return NDArray(found[0]) if len(found) == 1 else [NDArray(one) for one in found]
    places = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(places) != len(found):
        raise MXNetError(
            f"{operator.name}: out must hold {len(found)} arrays, got {len(places)} of them"
        )
    for place, one in zip(places, found, strict=True):
        place.become(one)
    return out
