"""Operators of MXNet called on arrays: the catalogue's functions run on the inner ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import symop as so
from registry.errors import SymopError
from registry.operator import Operator as Registered
from symop.array_calls import array_function
from symop.interop.mxnet.calls import bound
from symop.interop.mxnet.context import placed
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.ndarray import NDArray, raising
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
        run: computes the outputs.
        order: for each input of the operator, which of the arrays of the call it is; None where
            they are all of them, in their order.
        visible: how many outputs users see; behind them come new values of states.
        states: which of the arrays of the call they are.
    """

    run: Callable[[Sequence[Any]], tuple[Any, ...]]
    order: tuple[int, ...] | None
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
        given = (*args, *kwargs.values()) if kwargs else args
        # All arrays are alike; 1, 1.0 and True are equal, and written otherwise.
        marks = [_Array if isinstance(one, NDArray) else (one.__class__, one) for one in given]
        holders = [one for one in given if isinstance(one, NDArray)]
        plan = _plan(plans, operator, args, kwargs, (len(args), *kwargs, *marks))
        arrays = [one.inner for one in holders]
        if not arrays:
            made = _sources(plan, context)
        else:
            made = plan.run(arrays if plan.order is None else [arrays[i] for i in plan.order])
        if len(made) > plan.visible:
            for place, one in zip(plan.states, made[plan.visible :], strict=True):
                holders[place].become(one)
            made = made[: plan.visible]
        if out is None and len(made) == 1 and made[0].__class__ is so.NDArray:
            return NDArray(_own(made[0], arrays))
        return _returned(operator, made, arrays, out)

    if operator.direct is not None:
        function = _direct(operator, operator.direct, function)
    function.__name__ = function.__qualname__ = called
    function.__doc__ = operator.function.__doc__
    return function


def _direct(operator: Operator, own: Registered, whole: Callable[..., Any]) -> Callable[..., Any]:
    """``whole``, short for arrays of one shape and one floating dtype."""
    compute = array_function(own)

    def of_one(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and args[0].__class__ is NDArray:
            x = args[0].inner
            if x.dtype.kind == "f":
                try:
                    return NDArray(compute(x))
                except SymopError:  # as the whole call tells it
                    pass
        return whole(*args, **kwargs)

    def of_two(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and not kwargs and args[0].__class__ is args[1].__class__ is NDArray:
            x, y = args[0].inner, args[1].inner
            if x.dtype.kind == "f" and x.dtype == y.dtype and x.shape == y.shape:
                try:
                    return NDArray(compute(x, y))
                except SymopError:
                    pass
        return whole(*args, **kwargs)

    return of_one if len(operator.inputs) == 1 else of_two


def _plan(
    plans: dict[Any, _Plan],
    operator: Operator,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    key: tuple[Any, ...],
) -> _Plan:
    """The plan of a call, which is made the first time that there is one like it."""
    try:
        plan = plans.get(key)
    except TypeError:  # a list, say
        return _planned(operator, args, kwargs)
    if plan is None:
        if len(plans) > _PLANS:
            plans.clear()
        plan = plans[key] = _planned(operator, args, kwargs)
    return plan


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
    whole = order == tuple(range(count))
    run = operator.prepared(values)
    return _Plan(run, None if whole else order, operator.visible(values), states)


def _as_out(operator: Operator, out: Any, kwargs: dict[str, Any]) -> None:
    """Where an array is to be made without a shape or a dtype, they are those of ``out``."""
    if operator.inputs or operator.variadic or not isinstance(out, NDArray):
        return
    if "shape" in operator.attributes and kwargs.get("shape") is None:
        kwargs["shape"] = out.shape
    if "dtype" in operator.attributes and kwargs.get("dtype") is None:
        kwargs["dtype"] = out.dtype


@raising
def _sources(plan: _Plan, context: Any) -> tuple[Any, ...]:
    """What an operator without inputs makes, where ``context`` says."""
    with sources_are(so.NDArray):
        found = plan.run(())
    return tuple(so.NDArray(placed(getattr(one, "value", one), context)) for one in found)


def _own(made: so.NDArray, arrays: Sequence[so.NDArray]) -> so.NDArray:
    """``made``; a copy of what an operator hands on as it is, to be changed on its own."""
    for one in arrays:
        if made is one:
            return so.nd.identity(made)  # type: ignore[no-any-return]
    return made


def _returned(
    operator: Operator, made: Sequence[Any], arrays: Sequence[so.NDArray], out: Any
) -> Any:
    """What a call returns: arrays of its own, or ``out``, into which they are written."""
    eager = [one if isinstance(one, so.NDArray) else so.NDArray(one) for one in made]
    found = [_own(one, arrays) for one in eager]
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
