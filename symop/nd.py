"""``so.nd``: the operators on arrays, with a place for the result and what to do with it."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry import var
from registry.attributes import identity_key
from registry.binding import LEFT_OUT
from registry.errors import ArgumentError, DTypeError, ShapeError, nearest
from registry.operator import Operator
from registry.table import get, names
from registry.types import KEY_TYPE, TRAINING_TYPE, OpReqType, VarKind, VarType
from registry.var import Attributes, Inputs, Var
from symop import random
from symop.lowering import Call, type_of

__all__ = ["ArrayOperator", "OpReqType"]


class ArrayOperator:
    """An operator for arrays, whose result can be given a place.

    Args of a call, beside those of the operator:
        out: the array (or one for each output) that the request is about.
        req: an ``OpReqType`` or its name. ``write``, the default: the result replaces ``out``.
            ``write_inplace``: and takes its memory, so ``out`` must not be used any more. ``add``:
            the result is added to ``out``. ``null``: nothing is computed.

    A JAX array cannot be changed, so what a call returns is the array after the request. A NumPy
    array is changed, and returned.

    Example:
        >>> import numpy as np
        >>> import symop as so
        >>> total = np.ones(2, np.float32)
        >>> so.nd.square(np.array([1.0, 2.0], np.float32), out=total, req="add")
        array([2., 5.], dtype=float32)
        >>> total
        array([2., 5.], dtype=float32)
    """

    def __init__(self, operator: Operator) -> None:
        """``operator`` for arrays; ``so.nd.<name>`` makes it."""
        self.operator = operator
        self.__name__, self.__doc__ = operator.name, operator.__doc__

    def __call__(self, *args: Any, out: Any = None, req: Any = None, **kwargs: Any) -> Any:
        """Compute the operator on arrays.

        Raises:
            ArgumentError: an input is a symbol, or ``out`` cannot take the result as requested.
            ShapeError, DTypeError: ``out`` is not of the result's shape or dtype.
        """
        _refuse_symbols(self.operator, (*args, *kwargs.values(), out))
        request = as_request(self.operator.name, req)
        if request is OpReqType.NULL:
            return out
        if out is None:
            if request in (OpReqType.ADD, OpReqType.WRITE_INPLACE):
                raise ArgumentError(f"{self.operator.name}: req={request} needs out=, got none")
            return self.operator(*args, **kwargs)
        inputs, attributes, name = self.operator.bind(args, kwargs)
        if name is not None:
            raise ArgumentError(
                f"{self.operator.name}: only symbols can be named, got name={name!r}"
            )
        call = _Call(self.operator.resolved(inputs, attributes), inputs, attributes)
        return call.into(out, request)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayOperator) and other.operator is self.operator

    def __hash__(self) -> int:
        return hash(self.operator)

    def __repr__(self) -> str:
        return f"<array operator {self.operator.signature()}>"


def as_request(owner: str, given: Any) -> OpReqType:
    """The request that ``given`` is or names; None stands for ``write``.

    Raises:
        ArgumentError: there is no such request.
    """
    try:
        return OpReqType.WRITE if given is None else OpReqType(given)
    except ValueError:
        legal = [one.value for one in OpReqType]
        raise ArgumentError(
            f"{owner}: req must be one of {', '.join(legal)}, got {given!r}{nearest(given, legal)}"
        ) from None


def _refuse_symbols(operator: Operator, values: Sequence[Any]) -> None:
    for value in values:
        within = value if isinstance(value, (list, tuple)) else (value,)
        if any(isinstance(one, Var) for one in within):
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

    def _require_permission(self, places: Sequence[Any]) -> None:
        """Nothing may take the place of an input unless the operator permits just that."""
        operator = self.operator
        if any(places[i] is other for i in range(len(places)) for other in places[:i]):
            raise ArgumentError(f"{operator.name}: the arrays in out must differ, got one twice")
        for place, output in zip(places, self._shown, strict=True):
            for i, value in enumerate(self.inputs):
                slot = operator.slot_of(i).name
                if value is place and operator.inplace.get(slot) != operator.outputs[output]:
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
            i for i, value in enumerate(self.inputs) if any(value is one for one in donated)
        )
        spare = [one for one in donated if not any(one is value for value in self.inputs)]
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


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _stored(place: Any, result: Any, request: OpReqType) -> Any:
    """What ``place`` holds after ``request``."""
    adds = request is OpReqType.ADD
    if not isinstance(place, np.ndarray):
        return place + result if adds else result
    if isinstance(result, jax.core.Tracer):
        raise ArgumentError(
            "nd: out must be a JAX array inside a JAX transformation, got a NumPy array"
        )
    value = np.asarray(result)
    np.copyto(place, place + value if adds else value)
    return place


def __getattr__(name: str) -> ArrayOperator:
    """The operator called ``name``, on arrays."""
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return ArrayOperator(get(name))
    except LookupError as error:
        raise AttributeError(f"nd: {error}", name=name) from None


def __dir__() -> list[str]:
    """Names of this module, operators included."""
    return sorted([*globals(), *names(aliases=True)])
