"""Calls of operators on arrays with output arguments: ``out`` and ``req``."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry import var
from registry.caches import Jitted, memoized
from registry.errors import ArgumentError, DTypeError, ShapeError
from registry.operator.attributes import identity_key
from registry.operator.binding import LEFT_OUT
from registry.operator.call_signature import call_signature
from registry.operator.operator import Operator
from registry.tracebacks import hide_frames
from registry.types import KEY_TYPE, TRAINING_TYPE, OpReqType, VarKind, VarType
from registry.var import Attributes, Inputs, Var
from symop import random
from symop.eager.alone import TracedInputError, at_once
from symop.eager.ndarray import NDArray, call_of
from symop.eager.recording import one_result
from symop.eager.segments import active, belonging
from symop.lowering.steps import type_of
from symop.runtime.memory import is_alive, memory_of
from symop.runtime.requesting import as_request, refuse_name


@memoized(4096)
def array_function(operator: Operator) -> Callable[..., Any]:
    """Returns the function ``so.nd.<name>``: ``operator`` on arrays, with output arguments.

    The function takes the operator's arguments and two more:

    - out: the output array, or one for each output.
    - req: an ``OpReqType`` or its name. ``write``, the default, replaces ``out`` by the result.
      ``write_inplace`` also reuses the memory of ``out``, which must not be used afterwards.
      ``add`` adds the result to ``out``. ``null`` computes nothing. Several outputs may have
      separate requests: ``req=("add", "null")``.

    A JAX array is immutable, so the call returns a new array in its place. An ``NDArray`` or a
    NumPy array is modified and returned. If no input is an array, as for random samples, the result
    is an ``NDArray``.

    Raises (the function):
        ArgumentError: an input is a symbol, or ``out`` does not support the request.
        ShapeError, DTypeError: ``out`` does not have the result's shape or dtype.

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
    count = operator.direct_count if quick else -1
    checked = operator.value_rule is not None
    call = call_of(operator, operator.defaults)
    alone = call.plain

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            if (
                not kwargs
                and len(args) == count
                and (args[0].__class__ is NDArray or NDArray in map(type, args))
            ):
                if checked:
                    operator.require_values(args, operator.defaults)
                state = active()
                if state.ident != get_ident():
                    state = belonging(state)
                try:
                    if state.segment is None and state.rest < 0 and alone and not state.taped:
                        result = at_once(call, args)
                        if result is not None:
                            return result
                    return one_result(call, args, state)
                except TracedInputError:
                    pass  # inside a JAX transformation
            return _whole(operator, args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    function.__name__ = function.__qualname__ = operator.name
    function.__module__ = "symop.nd"
    function.__doc__ = operator.__doc__ or f"The operator ``{operator.signature()}``."
    vars(function).update(operator=operator, __signature__=_signature(operator))
    return function


def _whole(
    operator: Operator, args: tuple[Any, ...], /, out: Any = None, req: Any = None, **kwargs: Any
) -> Any:
    """Calls ``operator`` with arbitrary arguments: the general path."""
    _refuse_symbols(operator, (*args, *kwargs.values(), out))
    several = isinstance(req, (tuple, list))
    requests = tuple([as_request(operator.name, one) for one in (req if several else [req])])
    if out is None and (several or requests[0] in (OpReqType.ADD, OpReqType.WRITE_INPLACE)):
        raise ArgumentError(f"{operator.name}: req={_shown(requests)} needs out=, got none")
    if out is None and requests[0] is OpReqType.WRITE:
        result = operator(*args, **kwargs)
        if isinstance(result, NDArray) or _has_array(args, kwargs):
            return result
        return _as_eager(result)
    inputs, attributes, name = operator.bind(args, kwargs)
    refuse_name(operator.name, name)
    if not several and requests[0] is OpReqType.NULL:
        return out
    call = _Call(operator.resolved(inputs, attributes), inputs, attributes)
    places = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    if several and len(requests) != len(call.shown):
        raise ArgumentError(
            f"{operator.name}: req must hold one for each of {len(call.shown)} outputs, got "
            f"{len(requests)}"
        )
    requests = requests if several else requests * len(places)
    if any(isinstance(one, NDArray) for one in places):
        written = _all_into(operator.name, places, operator(*args, **kwargs), requests)
        return written if isinstance(out, (tuple, list)) else written[0]
    return call.into(out, requests)


def _shown(requests: Sequence[OpReqType]) -> str:
    return ", ".join(one.value for one in requests)


def _all_into(
    owner: str, places: Sequence[Any], result: Any, requests: Sequence[OpReqType]
) -> tuple[Any, ...]:
    """Applies requests to eager arrays in place; returns the arrays."""
    results = _as_tuple(result)
    if len(results) != len(places):
        raise ArgumentError(
            f"{owner}: out must be a tuple of one array for each of {len(results)} outputs, got "
            f"{len(places)}"
        )
    written = []
    for place, one, request in zip(places, results, requests, strict=True):
        if request is OpReqType.NULL:
            written.append(place)
        elif isinstance(place, NDArray):
            written.append(_into(place, one, request))
        else:
            raise ArgumentError(
                f"{owner}: out must hold only eager arrays if it holds one, "
                f"got {type(place).__name__}"
            )
    return tuple(written)


def _has_array(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether an argument is an array, which determines the kind of the result."""
    values = [*args, *kwargs.values()]
    values += [one for each in values if isinstance(each, (list, tuple)) for one in each]
    return any(isinstance(one, (NDArray, jax.Array, np.ndarray)) for one in values)


def _as_eager(result: Any) -> Any:
    """Converts the results of calls without arrays, such as random samples, to eager arrays."""
    if isinstance(result, tuple):
        return tuple(map(_as_eager, result))
    return result if isinstance(result, NDArray) else NDArray(result)


def _into(out: NDArray, result: Any, request: OpReqType) -> NDArray:
    """Applies a request to the eager array ``out`` in place; returns ``out``."""
    if not isinstance(result, NDArray):
        result = NDArray(result)
    out.take_over(out + result if request is OpReqType.ADD else result)
    return out


def _signature(operator: Operator) -> inspect.Signature:
    """Returns the signature of a call: inputs and attributes, then ``out`` and ``req``."""
    call = call_signature(operator, eager=True)
    places = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None) for n in _PLACES]
    return call.replace(parameters=[*call.parameters.values(), *places])


_PLACES = ("out", "req")


def _refuse_symbols(operator: Operator, values: Sequence[Any]) -> None:
    for value in values:
        within = value if isinstance(value, (list, tuple)) else (value,)
        if any(isinstance(one, Var) and not isinstance(one, NDArray) for one in within):
            raise ArgumentError(
                f"{operator.name}: so.nd takes arrays, and so.sym.{operator.name} symbols, got a "
                f"{type(next(one for one in within if isinstance(one, Var))).__name__}"
            )


class _Call:
    """A call of an operator with an ``out`` argument."""

    def __init__(self, operator: Operator, inputs: Inputs, attributes: Attributes) -> None:
        self.operator, self.attributes = operator, attributes
        self.inputs = tuple(np.asarray(v) if isinstance(v, (list, tuple)) else v for v in inputs)

    def into(self, out: Any, requests: Sequence[OpReqType]) -> Any:
        """Applies one request to each array in ``out``; returns the resulting arrays."""
        types = self._result_types()
        single = len(types) == 1 and not isinstance(out, (tuple, list))
        places = (out,) if single else tuple(out) if isinstance(out, (tuple, list)) else None
        if places is None or len(places) != len(types):
            raise ArgumentError(
                f"{self.operator.name}: out must be a tuple of one array for each of "
                f"{len(types)} outputs, got {type(out).__name__}"
                + ("" if places is None else f" of {len(places)}")
            )
        asked = list(zip(places, types, requests, self.shown, strict=True))
        for place, type_, request, _ in asked:
            if request is not OpReqType.NULL:
                self._require_fit(place, type_)
                self._require_usable(place, request)
        self._require_permission(
            [(p, shown) for p, _, request, shown in asked if request is OpReqType.WRITE_INPLACE]
        )
        written = self._written(places, requests)
        return written[0] if single else written

    def _written(self, places: Sequence[Any], requests: Sequence[OpReqType]) -> tuple[Any, ...]:
        inplace = [p for p, r in zip(places, requests, strict=True) if r is OpReqType.WRITE_INPLACE]
        donated = [one for one in inplace if isinstance(one, jax.Array)]
        if donated and not self._is_traced(places):
            results = self._donating(donated)
        else:
            results = _as_tuple(
                var.Arrays.emitter.emit(self.operator, self.inputs, self.attributes, None)
            )
        return tuple(
            place if request is OpReqType.NULL else _stored(place, result, request)
            for place, result, request in zip(places, results, requests, strict=True)
        )

    # Validation

    def _result_types(self) -> list[VarType]:
        """Returns the types of the returned outputs."""
        types = tuple(self._type(i, value) for i, value in enumerate(self.inputs))
        types_found = self.operator.infer(types, self.attributes)
        return [types_found[i] for i in self.shown]

    @property
    def shown(self) -> list[int]:
        """The indices of the returned outputs: visible ones, then updated states."""
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
            return  # the old array is not read
        elif place.is_deleted():
            raise ArgumentError(
                f"{name}: out must be an array that exists, got a deleted one; it was donated, so "
                "use what that call returned"
            )

    def _require_permission(self, pairs: Sequence[tuple[Any, int]]) -> None:
        """Checks that the operator declares each output that overwrites an input.

        ``pairs`` contains arrays in ``out``, each with the index of its output.
        """
        operator, places = self.operator, [place for place, _ in pairs]
        if any(_is_same(places[i], other) for i in range(len(places)) for other in places[:i]):
            raise ArgumentError(f"{operator.name}: the arrays in out must differ, got one twice")
        for place, output in pairs:
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
        """Computes the results in the memory of ``donated``."""
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
        call = _compiled(self.operator, self.attributes, flags, places)
        supplied = [(i, self._supplied(i, v)) for i, v in enumerate(self.inputs) if i not in fixed]
        taken = {i: value for i, value in supplied if i in places}
        kept = {i: value for i, value in supplied if i not in places}
        results: tuple[Any, ...] = call(spare, taken, kept)
        return results

    def _supplied(self, index: int, value: Any) -> Any:
        if value is LEFT_OUT and self.operator.slot_of(index).role == "key":
            return random.next_key(self.operator.name)
        return value


@memoized(1024, key=identity_key)
def _compiled(
    operator: Operator,
    attributes: Attributes,
    flags: tuple[tuple[int, Any], ...],
    places: tuple[int, ...],
) -> Jitted:
    """Compiles the operator with donation, so that its results reuse the donated memory."""
    del places

    def run(spare: list[Any], taken: dict[int, Any], kept: dict[int, Any]) -> tuple[Any, ...]:
        del spare
        values = {**taken, **kept, **dict(flags)}
        inputs = tuple(values[i] for i in range(len(values)))
        results = _as_tuple(var.Arrays.emitter.emit(operator, inputs, attributes, None))
        # Without a copy, JAX would return an unchanged input itself and not reuse the memory.
        return tuple(map(jnp.copy, results))

    run.__name__ = operator.name
    return Jitted(run, donate_argnums=(0, 1), keep_unused=True)


def _is_same(value: Any, place: Any) -> bool:
    """Whether an array is ``place`` or shares its memory."""
    if value is place:
        return True
    return is_alive(value) and is_alive(place) and memory_of(value) == memory_of(place)


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _stored(place: Any, result: Any, request: OpReqType) -> Any:
    """Applies ``request`` to ``place``; returns the resulting array."""
    adds = request is OpReqType.ADD
    if not isinstance(place, np.ndarray):
        return place + result if adds else result
    value = np.asarray(result)
    np.copyto(place, place + value if adds else value)
    return place
