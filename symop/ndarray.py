"""NDArray: an eager array whose operators are recorded and run together when a value is needed."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from registry import var
from registry.attributes import identity_key
from registry.binding import LEFT_OUT
from registry.errors import ArgumentError, DTypeError, GradientError, KindError, ShapeError
from registry.operator import Operator
from registry.types import OpReqType, VarType, as_dtype
from registry.values import SelectedRows
from registry.var import Attributes, Inputs
from symop.alone import TracedError
from symop.array_protocols import Convertible, device_of, is_foreign
from symop.assignment import assigned
from symop.entries import NEVER, Gradient, Link
from symop.indexing import entries_of, is_truth, taken
from symop.lowering import type_of
from symop.nested import refuse_recorded
from symop.recording import on_tracers, one_result, results, settle
from symop.requesting import as_request
from symop.segments import Segment, local
from symop.steps import Call

__all__ = ["NDArray", "NDArrayEmitter", "array_of", "call_of", "device_of"]

_GRAD_REQS = (OpReqType.NULL, OpReqType.WRITE, OpReqType.ADD)
"""What a backward pass may do with a gradient."""


class NDArray(Convertible):
    """An array whose operators run when a value is needed, or at once after 128 of them.

    It holds a ``jax.Array`` and behaves as one: ``jax.numpy`` takes it, ``jax.jit`` takes and
    returns it, and ``asjax()`` hands the array out without a copy. Unlike a JAX array it can be
    changed in place, and remembers how it was computed inside ``autograd.record()``.

    Args:
        data: a ``jax.Array``, or anything that ``jax.numpy.asarray`` accepts.

    Example:
        >>> x = NDArray([1.0, 2.0, 3.0])
        >>> x += 1
        >>> x * x
        NDArray([ 4.,  9., 16.], dtype=float32)
    """

    __slots__ = (
        "__weakref__", "_grad", "_index", "_link", "_segment", "_type", "_value",
    )  # fmt: skip
    namespace: ClassVar[Any]
    pass_back: ClassVar[Callable[..., None]]
    _value: Any
    _segment: Segment | None
    _index: int
    _type: VarType | None
    _link: "Link | NDArray | tuple[()] | None"
    _grad: Gradient | None

    def __init__(self, data: Any) -> None:
        """An array of ``data``."""
        if isinstance(data, NDArray):
            data = data.value
        elif not isinstance(data, (jax.Array, SelectedRows)):
            data = jnp.asarray(data)
        self._value, self._segment, self._type = data, None, None
        self._link = self._grad = None

    # Its value

    @property
    def value(self) -> Any:
        """The ``jax.Array``; what was recorded runs first."""
        if self._value is None:
            self._compute()
        return self._value

    def asjax(self) -> Any:
        """The ``jax.Array`` itself, without a copy.

        What was recorded runs first, for whoever has the array may donate it.
        """
        settle()
        return self.value

    def _compute(self) -> None:
        segment = self._segment
        assert segment is not None
        own = segment is local.state.segment or segment is local.state.parked
        if own or not segment.owner.thread.is_alive():
            segment.run()
        else:  # another thread's, which goes on with it
            self._value = segment.peek(self)

    @property
    def type(self) -> VarType:
        """Shape, dtype and kind."""
        if self._type is None:
            found = type_of(self._value)
            if isinstance(self._value, jax.core.Tracer):
                return found  # what knows its type by heart is no tracer
            self._type = found
        return self._type

    @property
    def source(self) -> "Link | NDArray | None":
        """Where a gradient by this array goes: to the tape, to the array itself, or nowhere."""
        if self._grad is not None:
            return self
        link = self._link
        return link if isinstance(link, (Link, NDArray)) else None

    def at_present(self) -> "NDArray":
        """Another array with this value and source, which later changes in place pass by."""
        return array_of(self.value, self.source)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        if api_version not in (None, "2022.12", "2023.12", "2024.12"):
            raise ArgumentError(f"array API: the version must be 2024.12, got {api_version!r}")
        return NDArray.namespace

    def __iter__(self) -> Iterator["NDArray"]:
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        value = self.value
        return NDArray, (value if isinstance(value, SelectedRows) else np.asarray(value),)

    def __deepcopy__(self, memo: Any) -> "NDArray":
        return self.copy()

    # Where it lies

    def to_device(self, device: Any, /, *, stream: Any = None) -> "NDArray":
        """The array on another device: a ``jax.Device``, a sharding, or a name such as ``"cpu:0"``.

        Raises:
            ArgumentError: there is no such device.
        """
        if stream is not None:
            raise ArgumentError(f"to_device: stream must be None, got {stream!r}")
        if local.state.taped and self.is_recorded:
            raise GradientError("to_device: a recorded array must not be moved, it has no gradient")
        return NDArray(jax.device_put(self.value, device_of(device)))

    as_in_context = as_in_ctx = to_device

    def copy(self) -> "NDArray":
        """An array of its own with the same entries; recorded, where this one is.

        It has no gradient of its own, as ``attach_grad`` makes it.
        """
        if local.state.taped and self.is_recorded:
            return var.methods("identity")(self)  # type: ignore[misc, no-any-return]
        return NDArray(self.value)

    def copyto(self, other: Any) -> "NDArray":
        """Write the entries into ``other``, an array of the same shape, or onto a device.

        Raises:
            ShapeError: ``other`` is of another shape; its dtype may differ.
        """
        if not isinstance(other, NDArray):
            return self.to_device(other)
        if other.shape != self.shape:
            raise ShapeError(f"copyto: the shape must be {self.shape}, got {other.shape}")
        other[...] = self
        return other

    def astype(self, dtype: Any, copy: bool = True, device: Any = None) -> "NDArray":
        """The entries in another dtype, recorded, where this array is.

        Args:
            dtype: the dtype.
            copy: whether an array that has it already is copied; without, it is returned itself.
            device: where to put the result, as ``to_device`` does.
        """
        wanted = np.dtype(as_dtype(dtype))
        if wanted != self.dtype:
            made = var.methods("cast")(self, dtype=wanted)  # type: ignore[misc]
        else:
            made = self.copy() if copy else self
        return made if device is None else made.to_device(device)  # type: ignore[no-any-return]

    def to_dense(self) -> "NDArray":
        """The entries in a dense array; itself where it is dense.

        A row-sparse array is what a gradient maker may return. It is not recorded.
        """
        value = self.value
        return NDArray(value.to_dense()) if isinstance(value, SelectedRows) else self

    @property
    def T(self) -> "NDArray":  # noqa: N802  # NumPy's name
        """The axes in reverse order."""
        return self.permute_dims(axes=tuple(range(self.ndim))[::-1])  # type: ignore[no-any-return]

    @property
    def mT(self) -> "NDArray":  # noqa: N802  # the array API's name
        """The last two axes swapped."""
        return self.swapaxes(axis1=-1, axis2=-2)  # type: ignore[no-any-return]

    # Parts

    def __getitem__(self, index: Any) -> "NDArray":
        return taken(self, index)  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._require_changeable("x[...] = value")
        if is_truth(index):
            if not bool(index):
                return
            index = ...
        if local.state.taped and isinstance(value, NDArray) and value.is_recorded:
            raise GradientError(
                "x[...] = value: the value must not be recorded, since assignment has no gradient; "
                "use where, index_update or concat"
            )
        refuse_recorded("x[...] = value", value)
        if isinstance(self.value, SelectedRows):
            raise KindError(f"x[...] = value: x must be dense, got {self.type}; use x.to_dense()")
        entries = entries_of(index, self.shape)
        where = tuple(one.value if isinstance(one, NDArray) else one for one in entries)
        given = value.value if isinstance(value, NDArray) else value
        self._take_value_of(NDArray(assigned(self.value, where, given)))

    def take_over(self, other: "NDArray") -> None:
        """Hold the value of ``other`` from now on, as ``out=`` and ``x += y`` do.

        Raises:
            ShapeError, DTypeError: it is of another shape or dtype.
            GradientError: this array is being recorded.
        """
        self._require_changeable("out=")
        if other.shape != self.shape:
            raise ShapeError(f"out: the shape must be {self.shape}, got {other.shape}")
        if other.dtype != self.dtype:
            raise DTypeError(f"out: the dtype must be {self.dtype}, got {other.dtype}")
        self._take_value_of(other)

    def _take_value_of(self, other: "NDArray") -> None:
        """Take over the value of an array that nobody else holds."""
        self._value, self._type, self._link = other._value, other._type, other._link
        self._segment = other._segment
        if self._value is None:
            assert self._segment is not None
            self._index = other._index
            self._segment.hold(self._index, self)

    def _require_changeable(self, what: str) -> None:
        if local.state.taped and self.is_recorded:
            raise GradientError(
                f"{what}: an array that is being recorded must not be changed in place, since its "
                "gradient would be lost; use x = x + y"
            )

    @property
    def is_recorded(self) -> bool:
        """Whether a gradient may flow through it: it is attached, or computed from such arrays."""
        return self.source is not None or (self._value is None and self.flows)

    @property
    def flows(self) -> bool:
        """Whether it is a value of a segment that did not run yet and a derivative may flow by."""
        segment = self._segment
        if segment is None or not segment.taped:
            return False
        return self._link is None and segment.flows(self._index)

    # Gradients

    def attach_grad(self, grad_req: str | OpReqType = "write") -> None:
        """Make room for a gradient, which ``backward()`` writes, adds to, or leaves (``null``).

        How the array was computed is forgotten: a backward pass ends here. Copies, also those by
        ``copy.deepcopy`` and ``pickle``, and what goes through ``jax.jit``, have no gradient of
        their own: mark them anew.

        Raises:
            ArgumentError: there is no such request.
            GradientError: the dtype has no derivatives.
        """
        req = as_request("attach_grad", grad_req, _GRAD_REQS)
        if not self.type.differentiable:
            raise GradientError(f"attach_grad: the dtype must be floating, got {self.dtype.name}")
        settle()
        self._link = None
        self._grad = None if req is OpReqType.NULL else Gradient(req)

    @property
    def grad(self) -> "NDArray | None":
        """The gradient that the last backward pass left; None without ``attach_grad()``."""
        kept = self._grad
        if kept is None:
            return None
        gradient: NDArray | None = kept.value
        if gradient is None:
            value = self.value
            dense = isinstance(value, jax.Array)  # whose place the zeros share
            gradient = NDArray(
                jnp.zeros_like(value) if dense else jnp.zeros(self.shape, self.dtype)
            )
            if not kept.outlives(gradient.value):
                kept.value = gradient
        return gradient

    @grad.setter
    def grad(self, gradient: "NDArray | None") -> None:
        if self._grad is None:
            if gradient is not None:
                raise GradientError("grad: there must be room for it, made by attach_grad()")
            return
        if gradient is not None and (gradient.shape != self.shape or gradient.dtype != self.dtype):
            raise GradientError(f"grad: it must be of type {self.type}, got {gradient.type}")
        if gradient is not None:
            self._grad.require_lasting(gradient.value)
        self._grad.value = gradient

    @property
    def grad_req(self) -> OpReqType:
        """What a backward pass does with the gradient."""
        return OpReqType.NULL if self._grad is None else self._grad.req

    def zero_grad(self) -> None:
        """Set the gradient to zero."""
        if self._grad is not None:
            self._grad.value = None

    def detach(self) -> "NDArray":
        """The same value, of which no record knows how it was computed."""
        return NDArray(self.value)

    def backward(
        self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True
    ) -> None:
        """``autograd.backward`` of this array."""
        NDArray.pass_back(self, out_grad, retain_graph, train_mode)

    # Comparison

    def __eq__(self, other: object) -> Any:
        return NotImplemented if is_foreign(other) else var.infix["=="](self, other)

    def __ne__(self, other: object) -> Any:
        return NotImplemented if is_foreign(other) else var.infix["!="](self, other)

    __hash__ = object.__hash__


def array_of(value: Any, link: Link | NDArray | None = None) -> NDArray:
    """An array that holds ``value`` as it is, whatever it is, and comes from ``link``."""
    made = object.__new__(NDArray)
    made._value, made._segment, made._type, made._link, made._grad = value, None, None, link, None
    return made


# JAX puts whatever it likes into a tree while it works on it.
jax.tree_util.register_pytree_node(
    NDArray, lambda array: ((array.asjax(),), None), lambda _, children: array_of(children[0])
)


# Calls -----------------------------------------------------------------------------------------

_calls: dict[Any, Call] = {}
_CALLS = 16_384
"""So many different calls are remembered."""


def call_of(operator: Operator, attributes: Attributes) -> Call:
    """The call of ``operator`` with ``attributes``."""
    key = operator, attributes if attributes is operator.defaults else identity_key(attributes)
    found = _calls.get(key)
    if found is None:
        if len(_calls) > _CALLS:
            _calls.clear()
        found = _calls.setdefault(key, Call(operator, attributes, NDArray))
    return found


class NDArrayEmitter:
    """Calling an operator on eager arrays records it."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        """The result: an array, or a tuple of the visible outputs. States are updated in place."""
        if name is not None:
            raise ArgumentError(f"{operator.name}: only symbols can be named, got name={name!r}")
        _require_filled(operator, inputs)
        call = call_of(operator, attributes)
        try:
            if operator.single:
                result = one_result(call, inputs)
                operator.require_values(inputs, attributes)
                return result
            made = results(call, inputs)
        except TracedError:
            made = _traced(operator, inputs, attributes)
        operator.require_values(inputs, attributes)
        for state in made[len(operator.visible) :]:
            state._link = NEVER  # a state is no function of what is differentiated
        count = len(operator.visible)
        for i, state in zip(sorted(operator.update_indices), made[count:], strict=False):
            if isinstance(inputs[i], NDArray):
                inputs[i]._take_value_of(state)
        return made[0] if count == 1 else tuple(made[:count])

    def filled(self, value: bool | int | float | complex, type: VarType) -> NDArray:
        """An array of ``type`` filled with one number."""
        return NDArray(jnp.full(type.shape, value, type.dtype))


NDArray.emitter = NDArrayEmitter()


def _require_filled(operator: Operator, inputs: Inputs) -> None:
    for index, value in enumerate(inputs):
        if value is LEFT_OUT and operator.slot_of(index).role not in ("key", "training"):
            raise ArgumentError(
                f"{operator.name}: slot {operator.slot_of(index).name!r} must be filled when the "
                "inputs are arrays, got nothing"
            )


def _traced(operator: Operator, inputs: Inputs, attributes: Attributes) -> list[NDArray]:
    """The call inside of a JAX transformation."""
    if local.state.taped:
        return on_tracers(call_of(operator, attributes), inputs)
    flag = operator.training_index
    values = tuple(
        local.state.training
        if i == flag and one is LEFT_OUT
        else (one.value if isinstance(one, NDArray) else one)
        for i, one in enumerate(inputs)
    )
    found = var.array_emitter.emit(operator, values, attributes, None)
    return [NDArray(one) for one in (found if isinstance(found, tuple) else (found,))]


def _quick(symbol: str, swapped: bool = False) -> Callable[[NDArray, Any], Any]:
    """Python's operator on arrays and numbers, without looking at the arguments twice."""

    def method(self: NDArray, other: Any) -> Any:
        operator = var.infix.get(symbol)
        if operator.__class__ is Operator and isinstance(other, _OPERANDS):
            pair = (other, self) if swapped else (self, other)
            try:
                return one_result(call_of(operator, operator.defaults), pair)
            except TracedError:
                return _traced(operator, pair, operator.defaults)[0]
        if operator is None or is_foreign(other):
            return NotImplemented
        return operator(other, self) if swapped else operator(self, other)

    return method


_OPERANDS = (NDArray, float, int)


def _in_place(symbol: str) -> Callable[[NDArray, Any], NDArray]:
    """``x += y`` and its kin; the dtype stays."""
    compute = _quick(symbol)

    def method(self: NDArray, other: Any) -> NDArray:
        self._require_changeable(f"x {symbol}= y")
        made = compute(self, other)
        if made is NotImplemented:
            raise ArgumentError(f"x {symbol}= y: y must be an array or a number, got {other!r}")
        if made.type.strong() is not self.type.strong():
            raise ArgumentError(
                f"x {symbol}= y: the result must have the type of x, {self.type}, got {made.type}"
            )
        self._take_value_of(made)
        return self

    return method


def _division(swapped: bool = False) -> Callable[[NDArray, Any], Any]:
    """``divmod``: the quotient rounded down, and the remainder."""
    quotient, remainder = _quick("//", swapped), _quick("%", swapped)

    def method(self: NDArray, other: Any) -> Any:
        found = quotient(self, other)
        return found if found is NotImplemented else (found, remainder(self, other))

    return method


for _name, _symbol in {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}.items():  # fmt: skip
    setattr(NDArray, f"__{_name}__", _quick(_symbol))
    setattr(NDArray, f"__r{_name}__", _quick(_symbol, swapped=True))
    setattr(NDArray, f"__i{_name}__", _in_place(_symbol))
for _name, _swapped in {"__divmod__": False, "__rdivmod__": True}.items():
    setattr(NDArray, _name, _division(_swapped))
