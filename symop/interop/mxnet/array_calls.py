"""MXNet's operators called on arrays, by functions of the catalogue."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax

import symop as so
from registry.caches import memoized
from registry.errors import SymopError
from registry.operator.operator import Operator as Registered
from registry.types import is_floating
from symop.eager.array_calls import array_function
from symop.eager.ndarray import array_of as eager
from symop.interop.mxnet import sparse_calls
from symop.interop.mxnet.arrays import NDArray, raising
from symop.interop.mxnet.call_types import Type
from symop.interop.mxnet.calls import bound
from symop.interop.mxnet.context import placed
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import Operator, find
from symop.interop.mxnet.ops.values import sources_are
from symop.interop.mxnet.origins import remember
from symop.interop.mxnet.storage import starts_dense
from symop.interop.mxnet.whole_gradients import follow
from symop.symbol.building import Group, var
from symop.symbol.symbol import Symbol

_Run = Callable[[Sequence[so.NDArray]], tuple[Any, ...]]
_PLANS = 4096
"""The maximal number of cached plans of an operator."""


class _Array:
    """A placeholder for an array, by its index among the arrays of a call."""

    __slots__ = ("place",)

    def __init__(self, place: int) -> None:
        self.place = place


class _Plan(NamedTuple):
    """The common part of calls that differ only in their arrays.

    Attributes:
        run: computes the outputs.
        order: the index of the call's array for each input of the operator; None if the inputs are
            all arrays in order.
        visible: the number of visible outputs; new values of states follow them.
        states: the indices of the call's arrays that are states.
        attributes: the attributes, as strings by name.
    """

    run: Callable[[Sequence[Any]], tuple[Any, ...]]
    order: tuple[int, ...] | None
    visible: int
    states: tuple[int, ...]
    attributes: Mapping[str, str]


def function_of(called: str) -> Callable[..., Any]:
    """The operator ``called``, as a function of arrays and attributes.

    The function takes ``out``, an array or a list with an array for each output, to write the
    result to, and ``ctx``, the device for results of operators without inputs. Several outputs are
    returned as a list.

    Raises:
        MXNetError: there is no such operator.
    """
    return caller(find(called), called)


def caller(operator: Operator, called: str) -> Callable[..., Any]:
    """``operator`` as a function of arrays and attributes; see ``function_of``."""
    plans: dict[Any, _Plan] = {}
    chooses, looks_up = starts_dense(operator.name), operator.name in sparse_calls.LOOKUPS

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
        # All arrays compare equal as marks; 1, 1.0 and True are equal, but written differently.
        marks = [_Array if isinstance(one, NDArray) else (one.__class__, one) for one in given]
        holders = [one for one in given if isinstance(one, NDArray)]
        if chooses or _is_sparse(holders) or (looks_up and _asks(holders)):
            return sparse_calls.called(operator, args, kwargs, out)
        plan = _plan(plans, operator, args, kwargs, (len(args), *kwargs, *marks))
        arrays = [one.inner for one in holders]
        if not arrays:
            made = _sources(plan, out.context if isinstance(out, NDArray) else context)
        else:
            made = plan.run(arrays if plan.order is None else [arrays[i] for i in plan.order])
        if len(made) > plan.visible:
            for place, one in zip(plan.states, made[plan.visible :], strict=True):
                holders[place].become(one)
            made = made[: plan.visible]
        if out is None and len(made) == 1 and made[0].__class__ is so.NDArray:
            result: Any = NDArray(_own(made[0], arrays))
        else:
            result = _returned(operator, made, arrays, out)
        if holders and so.autograd.is_recording():
            sources = holders if plan.order is None else [holders[i] for i in plan.order]
            remember(result, operator, plan.attributes, sources)
            follow([result] if isinstance(result, NDArray) else result, sources, plan.run)
        return result

    if operator.direct is not None:
        function = _direct(operator, operator.direct, function)
    function.__name__ = function.__qualname__ = called
    function.__doc__ = operator.function.__doc__
    return function


def _is_sparse(arrays: Sequence[NDArray]) -> bool:
    return True in [one.is_sparse for one in arrays]  # faster than any() of a generator


def _asks(arrays: Sequence[NDArray]) -> bool:
    """Whether the gradient of an array is to be sparse."""
    return any(one.grad_stype != "default" for one in arrays)


def _direct(operator: Operator, own: Registered, whole: Callable[..., Any]) -> Callable[..., Any]:
    """``whole`` with a fast path for a single array of floating dtype."""
    compute = array_function(own)

    def of_one(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and args[0].__class__ is NDArray:
            x = args[0].inner
            if is_floating(x.dtype):
                try:
                    result = NDArray(compute(x))
                except SymopError:  # reported by the whole call
                    return whole(*args, **kwargs)
                if so.autograd.is_recording():
                    remember(result, operator, {}, args)
                return result
        return whole(*args, **kwargs)

    def of_two(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and not kwargs and args[0].__class__ is args[1].__class__ is NDArray:
            x, y = args[0].inner, args[1].inner
            if is_floating(x.dtype) and x.dtype == y.dtype and x.shape == y.shape:
                try:
                    result = NDArray(compute(x, y))
                except SymopError:
                    return whole(*args, **kwargs)
                if so.autograd.is_recording():
                    remember(result, operator, {}, args)
                return result
        return whole(*args, **kwargs)

    return of_one if len(operator.inputs) == 1 else of_two


def _plan(
    plans: dict[Any, _Plan],
    operator: Operator,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    key: tuple[Any, ...],
) -> _Plan:
    """The plan of a call, made for the first call of its kind."""
    try:
        plan = plans.get(key)
    except TypeError:  # an unhashable argument such as a list
        return _planned(operator, args, kwargs)
    if plan is None:
        if len(plans) > _PLANS:
            plans.clear()
        plan = plans[key] = _planned(operator, args, kwargs)
    return plan


def _planned(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Plan:
    """Makes the plan of a call.

    Raises:
        MXNetError: an input is missing, or an argument is unknown.
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
    if operator.at_once:
        run = _at_once(operator, given.attributes, run)
    visible = operator.visible(values)
    return _Plan(run, None if whole else order, visible, states, given.attributes)


def _at_once(operator: Operator, attributes: Mapping[str, str], run: _Run) -> _Run:
    """``run``, a call of ``operator``, as one program where it is not recorded.

    To compile many steps one by one takes several times as long.
    """
    told = tuple(sorted(attributes.items()))

    def call(inputs: Sequence[so.NDArray]) -> tuple[Any, ...]:
        if so.autograd.is_recording() and any(one.is_recorded for one in inputs):
            return run(inputs)
        program = _program(operator, told, tuple((one.shape, one.dtype) for one in inputs))
        return tuple(map(eager, jax.tree.leaves(program(*[one.value for one in inputs]))))

    return call


@memoized(256)
def _program(
    operator: Operator, attributes: tuple[tuple[str, str], ...], types: tuple[Type, ...]
) -> Callable[..., Any]:
    """The call on arrays of ``types`` as a compiled function."""
    inputs = [var(f"in{i}", shape, dtype) for i, (shape, dtype) in enumerate(types)]
    found = Group(operator.call(inputs, operator.read(dict(attributes), len(types))))
    graph = Symbol(found.nodes, tuple(one.node for one in inputs))  # with unused inputs, too
    return jax.jit(graph.to_jax())


def _as_out(operator: Operator, out: Any, kwargs: dict[str, Any]) -> None:
    """Sets missing shape and dtype of a newly created array to those of ``out``."""
    if operator.inputs or operator.variadic or not isinstance(out, NDArray):
        return
    if "shape" in operator.attributes and kwargs.get("shape") is None:
        kwargs["shape"] = out.shape
    if "dtype" in operator.attributes and kwargs.get("dtype") is None:
        kwargs["dtype"] = out.dtype


@raising
def _sources(plan: _Plan, context: Any) -> tuple[Any, ...]:
    """The results of an operator without inputs, on the device ``context``."""
    with sources_are(so.NDArray):
        found = plan.run(())
    return tuple(so.NDArray(placed(getattr(one, "value", one), context)) for one in found)


def _own(made: so.NDArray, arrays: Sequence[so.NDArray]) -> so.NDArray:
    """``made``, copied if it is one of ``arrays``, so that it can be changed independently."""
    for one in arrays:
        if made is one:
            return so.nd.identity(made)
    return made


def _returned(
    operator: Operator, made: Sequence[Any], arrays: Sequence[so.NDArray], out: Any
) -> Any:
    """The result of a call: new arrays, or ``out``, to which they are written."""
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
