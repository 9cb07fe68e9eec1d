"""Calls on arrays: an operator whose result is given a place, and what to do with it."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry import var
from registry.attributes import Attribute, identity_key
from registry.binding import LEFT_OUT
from registry.errors import ArgumentError, DTypeError, ShapeError
from registry.operator import Operator
from registry.signature import Slot
from registry.types import KEY_TYPE, TRAINING_TYPE, OpReqType, VarKind, VarType
from registry.var import Attributes, Inputs, Var
from symop import random
from symop.alone import TracedError, at_once
from symop.lowering import Call, type_of
from symop.memory import is_alive, memory_of
from symop.ndarray import NDArray, call_of
from symop.recording import one_result
from symop.requesting import as_request, refuse_name
from symop.segments import local


@functools.lru_cache(maxsize=4096)
def array_function(operator: Operator) -> Callable[..., Any]:
    """``operator`` as a function of arrays, whose result can be given a place: ``so.nd.<name>``.

    Beside the operator's own arguments the function takes two more:

    - out: the array (or one for each output) that the request is about.
    - req: an ``OpReqType`` or its name. ``write``, the default: the result replaces ``out``.
      ``write_inplace``: and takes its memory, so ``out`` must not be used any more. ``add``: the
      result is added to ``out``. ``null``: nothing is computed.

    A JAX array cannot be changed, so what a call returns is the array after the request. An
    ``NDArray`` or a NumPy array is changed, and returned. Where no input is an array, as in a draw,
    the result is an ``NDArray``.

    Raises (the function):
        ArgumentError: an input is a symbol, or ``out`` cannot take the result as requested.
        ShapeError, DTypeError: ``out`` is not of the result's shape or dtype.

    Example:
        >>> import numpy as np
        >>> import symop as so
        >>> total = np.ones(2, np.float32)
        >>> so.nd.square(np.array([1.0, 2.0], np.float32), out=total, req="add")
        array([2., 5.], dtype=float32)
        >>> total
        array([2., 5.], dtype=float32)
    """
    quick = operator.single and operator.count_rule is None and operator.direct_count
    count = operator.direct_count if quick and operator.value_rule is None else -1
    call = call_of(operator, operator.defaults)
    alone = call.plain

    def function(*args: Any, **kwargs: Any) -> Any:
        if (
            not kwargs
            and len(args) == count
            and (args[0].__class__ is NDArray or NDArray in map(type, args))
        ):
            try:
                state = local.state
                if state.segment is None and state.rest < 0 and alone and not state.taped:
                    found = at_once(call, args)
                    if found is not None:
                        return found
                return one_result(call, args, state)
            except TracedError:
                pass  # inside of a JAX transformation
        return _whole(operator, args, **kwargs)

    function.__name__ = function.__qualname__ = operator.name
    function.__module__ = "symop.nd"
    function.__doc__ = operator.__doc__ or f"The operator ``{operator.signature()}``."
    vars(function).update(operator=operator, __signature__=_signature(operator))
    return function


def _whole(
    operator: Operator, args: tuple[Any, ...], /, out: Any = None, req: Any = None, **kwargs: Any
) -> Any:
    """A call with whatever arguments."""
    _refuse_symbols(operator, (*args, *kwargs.values(), out))
    request = as_request(operator.name, req)
    if out is None and request in (OpReqType.ADD, OpReqType.WRITE_INPLACE):
        raise ArgumentError(f"{operator.name}: req={request} needs out=, got none")
    if out is None and request is OpReqType.WRITE:
        result = operator(*args, **kwargs)
        if isinstance(result, NDArray) or _has_array(args, kwargs):
            return result
        return _as_eager(result)
    inputs, attributes, name = operator.bind(args, kwargs)
    refuse_name(operator.name, name)
    if request is OpReqType.NULL:
        return out
    if isinstance(out, NDArray):
        return _into(out, operator(*args, **kwargs), request)
    call = _Call(operator.resolved(inputs, attributes), inputs, attributes)
    return call.into(out, request)


def _has_array(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether an argument tells what kind of arrays the caller works with."""
    values = [*args, *kwargs.values()]
    values += [one for each in values if isinstance(each, (list, tuple)) for one in each]
    return any(isinstance(one, (NDArray, jax.Array, np.ndarray)) for one in values)


def _as_eager(result: Any) -> Any:
    """What was computed from numbers alone, or drawn, as eager arrays."""
    if isinstance(result, tuple):
        return tuple(map(_as_eager, result))
    return result if isinstance(result, NDArray) else NDArray(result)


def _into(out: NDArray, result: Any, request: OpReqType) -> NDArray:
    """``out`` after the request: an eager array is changed in place."""
    if not isinstance(result, NDArray):
        result = NDArray(result)
    out.take_over(out + result if request is OpReqType.ADD else result)
    return out


def _signature(operator: Operator) -> inspect.Signature:
    """The parameters of a call: inputs and attributes, then the place and the request."""
    kinds = inspect.Parameter
    leading = [operator.attributes[operator.attribute_index[name]] for name in operator.leading]
    by_position = [_of_attribute(one, kinds.POSITIONAL_OR_KEYWORD) for one in leading]
    by_position += [_of_slot(operator, slot) for slot in operator.positional]
    others = [one for one in operator.attributes if one not in leading]
    spread = operator.variadic and operator.spreads
    by_position += [] if spread else [_of_attribute(o, kinds.POSITIONAL_OR_KEYWORD) for o in others]
    named = [_of_attribute(one, kinds.KEYWORD_ONLY) for one in others] if spread else []
    implicit = [slot.name for slot in operator.slots if slot.implicit]
    named += [kinds(one, kinds.KEYWORD_ONLY, default=None) for one in (*implicit, "out", "req")]
    return inspect.Signature([*_without_lone_defaults(by_position), *named])


def _of_attribute(attribute: Attribute, kind: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if attribute.required else attribute.default
    return inspect.Parameter(attribute.name, kind, default=default)


def _of_slot(operator: Operator, slot: Slot) -> inspect.Parameter:
    if slot.variadic and operator.spreads:
        return inspect.Parameter(slot.name, inspect.Parameter.VAR_POSITIONAL)
    default = None if slot.optional else inspect.Parameter.empty
    return inspect.Parameter(slot.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _without_lone_defaults(parameters: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    """Python wants no parameter without a default behind one with."""
    plain = [i for i, one in enumerate(parameters) if _must_be_given(one)]
    last = plain[-1] if plain else 0
    empty = inspect.Parameter.empty
    return [one.replace(default=empty) if i < last else one for i, one in enumerate(parameters)]


def _must_be_given(parameter: inspect.Parameter) -> bool:
    spread = parameter.kind is inspect.Parameter.VAR_POSITIONAL
    return parameter.default is parameter.empty and not spread


def _refuse_symbols(operator: Operator, values: Sequence[Any]) -> None:
    for value in values:
        within = value if isinstance(value, (list, tuple)) else (value,)
        if any(isinstance(one, Var) and not isinstance(one, NDArray) for one in within):
            raise ArgumentError(
                f"{operator.name}: so.nd takes arrays, and so.sym.{operator.name} symbols, got a "
                f"{type(next(one for one in within if isinstance(one, Var))).__name__}"
            )


class _Call:
    """One call of an operator whose results have a place."""

    def __init__(self, operator: Operator, inputs: Inputs, attributes: Attributes) -> None:
        self.operator, self.attributes = operator, attributes
        self.inputs = tuple(np.asarray(v) if isinstance(v, (list, tuple)) else v for v in inputs)

    def into(self, out: Any, request: OpReqType) -> Any:
        """The arrays in ``out`` after ``request``."""
        types = self._result_types()
        single = len(types) == 1 and not isinstance(out, (tuple, list))
        places = (out,) if single else tuple(out) if isinstance(out, (tuple, list)) else None
        if places is None or len(places) != len(types):
            raise ArgumentError(
                f"{self.operator.name}: out must be a tuple of one array for each of "
                f"{len(types)} outputs, got {type(out).__name__}"
                + ("" if places is None else f" of {len(places)}")
            )
        for place, type_ in zip(places, types, strict=True):
            self._require_fit(place, type_)
            self._require_usable(place, request)
        if request is OpReqType.WRITE_INPLACE:
            self._require_permission(places)
        written = self._written(places, request)
        return written[0] if single else written

    def _written(self, places: Sequence[Any], request: OpReqType) -> tuple[Any, ...]:
        donated = [one for one in places if isinstance(one, jax.Array)]
        if request is OpReqType.WRITE_INPLACE and donated and not self._is_traced(places):
            results = self._donating(donated)
        else:
            results = _as_tuple(
                var.array_emitter.emit(self.operator, self.inputs, self.attributes, None)
            )
        return tuple(
            _stored(place, result, request) for place, result in zip(places, results, strict=True)
        )

    # What is legal

    def _result_types(self) -> list[VarType]:
        """The types of what a call returns."""
        types = tuple(self._type(i, value) for i, value in enumerate(self.inputs))
        found = self.operator.infer(types, self.attributes)
        return [found[i] for i in self._shown]

    @property
    def _shown(self) -> list[int]:
        """The outputs that a call returns: visible ones, then updated states."""
        operator = self.operator
        return [*operator.visible, *sorted(operator.update_indices.values())]

    def _type(self, index: int, value: Any) -> VarType | None:
        slot = self.operator.slot_of(index)
        if slot.role == "training":
            return TRAINING_TYPE
        if value is LEFT_OUT:
            if slot.role == "key":
                return KEY_TYPE
            raise ArgumentError(
                f"{self.operator.name}: slot {slot.name!r} must be filled when the inputs are "
                "arrays, got nothing"
            )
        if value is None:
            return None
        try:
            return type_of(value)
        except TypeError:
            raise ArgumentError(
                f"{self.operator.name}: slot {slot.name!r} must hold an array or a number, "
                f"got {value!r}"
            ) from None

    def _require_fit(self, place: Any, type_: VarType) -> None:
        name = self.operator.name
        if not isinstance(place, (jax.Array, np.ndarray)):
            raise ArgumentError(f"{name}: out must be an array, got {type(place).__name__}")
        if type_.kind is not VarKind.LOD_TENSOR:
            raise ArgumentError(f"{name}: only a dense result can be given a place, got {type_}")
        if place.shape != type_.shape:
            raise ShapeError(
                f"{name}: out must be of the result's shape {type_.shape}, got {place.shape}"
            )
        if place.dtype != type_.dtype:
            raise DTypeError(
                f"{name}: out must be of the result's dtype {type_.dtype}, got {place.dtype}"
            )
        if isinstance(place, np.ndarray) and not place.flags.writeable:
            raise ArgumentError(f"{name}: out must be writeable, got a read-only array")

    def _require_usable(self, place: Any, request: OpReqType) -> None:
        name = self.operator.name
        if isinstance(place, np.ndarray):
            if self._is_traced([place]):
                raise ArgumentError(
                    f"{name}: out must be a JAX array inside a JAX transformation, got a NumPy "
                    "array"
                )
        elif isinstance(place, jax.core.Tracer) or request is OpReqType.WRITE:
            return  # the old array is not touched
        elif place.is_deleted():
            raise ArgumentError(
                f"{name}: out must be an array that exists, got a deleted one; it was donated, so "
                "use what that call returned"
            )

    def _require_permission(self, places: Sequence[Any]) -> None:
        """Nothing may take the place of an input unless the operator permits just that."""
        operator = self.operator
        if any(_is_same(places[i], other) for i in range(len(places)) for other in places[:i]):
            raise ArgumentError(f"{operator.name}: the arrays in out must differ, got one twice")
        for place, output in zip(places, self._shown, strict=True):
            for i, value in enumerate(self.inputs):
                slot = operator.slot_of(i).name
                if (
                    _is_same(value, place)
                    and operator.inplace.get(slot) != operator.outputs[output]
                ):
                    raise ArgumentError(
                        f"{operator.name}: {operator.outputs[output]!r} must not take the place of "
                        f"the input {slot!r}: the operator does not declare it (inplace); use "
                        "req='write'"
                    )

    # Donation

    def _is_traced(self, places: Sequence[Any]) -> bool:
        values = (*self.inputs, *places)
        return random.is_staged() or any(isinstance(one, jax.core.Tracer) for one in values)

    def _donating(self, donated: Sequence[jax.Array]) -> tuple[Any, ...]:
        """The results, in the memory of ``donated``."""
        places = tuple(
            i for i, value in enumerate(self.inputs) if any(_is_same(value, one) for one in donated)
        )
        spare = [one for one in donated if not any(_is_same(value, one) for value in self.inputs)]
        flags = tuple(
            (i, value)
            for i, value in enumerate(self.inputs)
            if value is None or self.operator.slot_of(i).role == "training"
        )
        fixed = {i for i, _ in flags}
        call = _compiled(
            self.operator, identity_key(self.attributes), self.attributes, flags, places
        )
        given = [(i, self._supplied(i, v)) for i, v in enumerate(self.inputs) if i not in fixed]
        taken = {i: value for i, value in given if i in places}
        kept = {i: value for i, value in given if i not in places}
        results: tuple[Any, ...] = call(spare, taken, kept)
        return results

    def _supplied(self, index: int, value: Any) -> Any:
        if value is LEFT_OUT and self.operator.slot_of(index).role == "key":
            return random.next_key(self.operator.name)
        return value


@functools.lru_cache(maxsize=1024)
def _compiled(
    operator: Operator,
    _key: Any,
    attributes: Attributes,
    flags: tuple[tuple[int, Any], ...],
    places: tuple[int, ...],
) -> Call:
    """The operator compiled so that its results take the memory of what is donated."""
    del places

    def run(spare: list[Any], taken: dict[int, Any], kept: dict[int, Any]) -> tuple[Any, ...]:
        del spare
        values = {**taken, **kept, **dict(flags)}
        inputs = tuple(values[i] for i in range(len(values)))
        results = _as_tuple(var.array_emitter.emit(operator, inputs, attributes, None))
        # Without a copy JAX would hand an unchanged input through, and leave the place unused.
        return tuple(map(jnp.copy, results))

    run.__name__ = operator.name
    call: Call = jax.jit(run, donate_argnums=(0, 1), keep_unused=True)
    return call


def _is_same(value: Any, place: Any) -> bool:
    """Whether an array is ``place``, or another look at its memory."""
    if value is place:
        return True
    return is_alive(value) and is_alive(place) and memory_of(value) == memory_of(place)


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _stored(place: Any, result: Any, request: OpReqType) -> Any:
    """What ``place`` holds after ``request``."""
    adds = request is OpReqType.ADD
    if not isinstance(place, np.ndarray):
        return place + result if adds else result
    value = np.asarray(result)
    np.copyto(place, place + value if adds else value)
    return place
