"""NDArray: an eager array whose calls are recorded and run together when a value is needed."""

from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import numpy as np

from registry import var
from registry.caches import Memo
from registry.errors import ArgumentError, DTypeError, GradientError, KindError, ShapeError
from registry.operator.attributes import identity_key
from registry.operator.operator import Operator
from registry.tracebacks import api_boundary, api_class
from registry.types import VarType, as_dtype
from registry.values import SelectedRows
from registry.var import Attributes
from symop.eager.array_gradients import Differentiable
from symop.eager.array_protocols import as_jax, device_of, is_foreign
from symop.eager.assignment import assign
from symop.eager.indexing import parse, take_index
from symop.eager.nested import refuse_recorded
from symop.eager.recording import flush
from symop.eager.segments import local
from symop.eager.tape_nodes import Link
from symop.eager.trace_cache import InternedCall
from symop.lowering.sharing import number_places, without_numbers
from symop.lowering.steps import type_of
from symop.runtime.memory import copy_array

__all__ = ["NDArray", "array_of", "call_of", "device_of"]


_OPERATORS = (
    *("__array_ufunc__", "__divmod__", "__rdivmod__"),
    *("__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__pow__"),
    *("__matmul__", "__and__", "__or__", "__xor__", "__lshift__", "__rshift__"),
    *("__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rfloordiv__", "__rmod__", "__rpow__"),
    *("__rmatmul__", "__rand__", "__ror__", "__rxor__", "__rlshift__", "__rrshift__"),
    *("__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__"),
    *("__imatmul__", "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__"),
)
"""The methods that ``array_operators`` defines."""
_METHODS = (
    *("all", "any", "clip", "concat", "cumulative_prod", "cumulative_sum", "diff", "divmod"),
    *("full_like", "matrix_transpose", "max", "mean", "meshgrid", "min", "nextafter", "nonzero"),
    *("ones_like", "pow", "prod", "repeat", "reshape", "searchsorted", "signbit", "stack", "std"),
    *("sum", "transpose", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
    *("unstack", "var", "zeros_like"),
)
"""The methods that ``array_methods`` defines; every operator is a method, too."""


@api_class
class NDArray(Differentiable):
    """An array whose operators run when a value is needed, or after 128 recorded values.

    It holds a ``jax.Array`` and behaves like one: ``jax.numpy`` accepts it, ``jax.jit`` accepts and
    returns it, and ``asjax()`` returns the array without a copy. Unlike a JAX array, it can be
    modified in place, and inside ``autograd.record()`` it remembers how it was computed.

    Args:
        data: a ``jax.Array``, or anything that ``jax.numpy.asarray`` accepts. A ``jax.Array`` is
            not copied; an eager array is.

    Example:
        >>> x = NDArray([1.0, 2.0, 3.0])
        >>> x += 1
        >>> x * x
        NDArray([ 4.,  9., 16.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_index", "_segment", "_type", "_value")
    HOOKS: ClassVar[frozenset[str]] = frozenset(_OPERATORS + _METHODS + ("namespace", "pass_back"))
    namespace: ClassVar[Any]
    _type: VarType | None
    _link: "Link | NDArray | tuple[()] | None"

    def __init__(self, data: Any) -> None:
        """Creates an array from ``data``."""
        if isinstance(data, NDArray):
            data = data.copy().value
        elif not isinstance(data, (jax.Array, SelectedRows)):
            data = as_jax("array", data)
        self._value, self._segment, self._type = data, None, None
        self._link = self._grad = None

    # Value

    @property
    def value(self) -> Any:
        """The ``jax.Array``; runs the recorded calls first if it is not computed yet."""
        if self._value is None:
            self._compute()
        return self._value

    def asjax(self) -> Any:
        """Returns the ``jax.Array`` itself, without a copy.

        All recorded calls run first, since the caller may donate the array.
        """
        flush()
        return self.value

    def _compute(self) -> None:
        segment = self._segment
        if segment is None:
            return  # JAX put None here, as a leaf of a pytree
        if segment.is_own or segment.is_left:
            segment.run()
        else:  # another thread is still recording it
            self._value = segment.peek(self)

    @property
    def type(self) -> VarType:
        """The shape, dtype and kind."""
        if self._type is None:
            result = type_of(self._value)
            if isinstance(self._value, jax.core.Tracer):
                return result  # not cached: a cached type means that the value is not a tracer
            self._type = result
        return self._type

    @property
    def source(self) -> "Link | NDArray | None":
        """The destination of this array's gradient: a tape node, the array itself, or None."""
        if self._grad is not None:
            return self
        link = self._link
        return link if isinstance(link, (Link, NDArray)) else None

    def at_present(self) -> "NDArray":
        """Returns an array with the same value and source, unaffected by in-place changes."""
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

    def __copy__(self) -> "NDArray":
        return self.copy()

    def __deepcopy__(self, memo: Any) -> "NDArray":
        return self.copy()

    def __pos__(self) -> "NDArray":
        return self.copy()

    # Device, copies and casts

    def to_device(self, device: Any, /, *, stream: Any = None) -> "NDArray":
        """Returns the array on a device: a ``jax.Device``, a sharding, or a name like ``"cpu:0"``.

        Raises:
            ArgumentError: no device has that name.
        """
        if stream is not None:
            raise ArgumentError(f"to_device: stream must be None, got {stream!r}")
        if local.state.taped and self.is_recorded:
            raise GradientError("to_device: a recorded array must not be moved, it has no gradient")
        return NDArray(jax.device_put(self.value, device_of(device)))

    as_in_context = as_in_ctx = to_device

    def copy(self) -> "NDArray":
        """Returns an array with the same entries in its own memory; recorded if this one is.

        The copy is not marked by ``attach_grad``.
        """
        if isinstance(self._value, SelectedRows):
            return array_of(jax.tree.map(copy_array, self._value))
        return var.Operators.find("identity")(self)  # type: ignore[misc, no-any-return]

    def copyto(self, other: Any) -> "NDArray":
        """Writes the entries into ``other``, an array of equal shape, or copies them to a device.

        The dtype of ``other`` may differ.

        Raises:
            ShapeError: ``other`` has another shape.
        """
        if not isinstance(other, NDArray):
            return self.to_device(other)
        if other.shape != self.shape:
            raise ShapeError(f"copyto: the shape must be {self.shape}, got {other.shape}")
        other[...] = self
        return other

    def astype(  # type: ignore[override]  # NumPy's arguments
        self, dtype: Any, copy: bool = True, device: Any = None
    ) -> "NDArray":
        """Casts the entries to a dtype; the result is recorded if this array is.

        Args:
            dtype: the dtype.
            copy: whether to copy an array that already has the dtype, rather than return it.
            device: the device of the result, as in ``to_device``.
        """
        wanted = np.dtype(as_dtype(dtype))
        if wanted != self.dtype:
            result = var.Operators.find("cast")(self, dtype=wanted)  # type: ignore[misc]
        else:
            result = self.copy() if copy else self
        return result if device is None else result.to_device(device)  # type: ignore[no-any-return]

    def to_dense(self) -> "NDArray":
        """Returns a dense array: this one if it is dense.

        Row-sparse arrays are gradients that some gradient makers return. The conversion is not
        recorded.
        """
        value = self.value
        return NDArray(value.to_dense()) if isinstance(value, SelectedRows) else self

    @property
    def T(self) -> "NDArray":  # noqa: N802  # NumPy's name
        """The array with its axes reversed."""
        return self.permute_dims(axes=tuple(range(self.ndim))[::-1])

    @property
    def mT(self) -> "NDArray":  # noqa: N802  # the array API's name
        """The array with its last two axes swapped."""
        return self.swapaxes(axis1=-1, axis2=-2)

    # Indexing and assignment

    @property
    def at(self) -> Any:
        """Changed copies, as of a JAX array: ``x.at[index].set(value)``, ``.add(value)`` and so on.

        Unlike ``x[index] = value``, they are recorded and have a gradient.

        Example:
            >>> NDArray([1.0, 2.0, 3.0]).at[1].set(5.0)
            NDArray([1., 5., 3.], dtype=float32)
        """
        return var.infix["at"](self)

    @api_boundary
    def __getitem__(self, index: Any) -> "NDArray":
        return take_index(self, index)  # type: ignore[no-any-return]

    @api_boundary
    def __setitem__(self, index: Any, value: Any) -> None:
        self._require_changeable("x[...] = value")
        if local.state.taped and isinstance(value, NDArray) and value.is_recorded:
            raise GradientError(
                "x[...] = value: the value must not be recorded, since assignment has no gradient; "
                "use where, index_update or concat"
            )
        if index is ... and self._takes_pending(value):
            self._take_value_of(var.Operators.find("identity")(value))  # type: ignore[misc]
            return
        refuse_recorded("x[...] = value", value)
        if isinstance(self.value, SelectedRows):
            raise KindError(f"x[...] = value: x must be dense, got {self.type}; use x.to_dense()")
        shape, entries = parse(index, self.shape)
        where = tuple(one.value if isinstance(one, NDArray) else one for one in entries)
        new = value.value if isinstance(value, NDArray) else value
        if shape == self.shape:
            written = assign(self.value, where, new)
        else:
            written = assign(self.value.reshape(shape), where, new).reshape(self.shape)
        self._take_value_of(NDArray(written))

    def _takes_pending(self, value: Any) -> bool:
        """Whether ``value`` belongs to the current segment and can be taken over without a copy."""
        if value.__class__ is not NDArray or value._segment is None:
            return False
        segment = value._segment
        own = segment is local.state.segment and not segment.taped
        return own and value.type.strong() is self.type.strong()

    def take_over(self, other: "NDArray") -> None:
        """Replaces the value by that of ``other``, as ``out=`` and ``x += y`` do.

        Raises:
            ShapeError, DTypeError: ``other`` has another shape or dtype.
            GradientError: this array is being recorded.
        """
        self._require_changeable("out=")
        if other.shape != self.shape:
            raise ShapeError(f"out: the shape must be {self.shape}, got {other.shape}")
        if other.dtype != self.dtype:
            raise DTypeError(f"out: the dtype must be {self.dtype}, got {other.dtype}")
        self._take_value_of(other)

    def _take_value_of(self, other: "NDArray") -> None:
        """Takes over the value of an array that has no other references.

        No call separates the assignments: Python handles signals at calls, so an interrupt comes
        before or after all of them.
        """
        segment = other._segment
        if other._value is None:
            assert segment is not None
            index = other._index
            segment.outputs[index] = self
            self._index = index
        self._type, self._link = other._type, other._link
        self._segment, self._value = segment, other._value

    def _require_changeable(self, what: str) -> None:
        if local.state.taped and self.is_recorded:
            raise GradientError(
                f"{what}: an array that is being recorded must not be changed in place, since its "
                "gradient would be lost; use x = x + y"
            )

    # Comparison

    def __eq__(self, other: object) -> Any:
        return NotImplemented if is_foreign(other) else var.infix["=="](self, other)

    def __ne__(self, other: object) -> Any:
        return NotImplemented if is_foreign(other) else var.infix["!="](self, other)

    __hash__ = object.__hash__


def value_if_known(array: NDArray) -> Any:
    """Returns the ``jax.Array`` if it is computed; None if it is recorded to be computed later."""
    return array._value


def array_of(value: Any, link: Link | NDArray | None = None) -> NDArray:
    """Returns an array that holds ``value``, unchecked, and has the source ``link``."""
    result = object.__new__(NDArray)
    result._value, result._segment, result._type, result._link, result._grad = (
        value,
        None,
        None,
        link,
        None,
    )
    return result


# Unflattened without checks: JAX may put any object into a pytree.
jax.tree_util.register_pytree_node(
    NDArray, lambda array: ((array.asjax(),), None), lambda _, children: array_of(children[0])
)

_MANY = 16
"""The number of calls after which one that differs from them in numbers is expected only once."""
_calls: Memo[Any, InternedCall] = Memo()
_variety: Memo[Any, list[int]] = Memo()
"""The number of calls that differ only in numbers."""


def call_of(operator: Operator, attributes: Attributes) -> InternedCall:
    """Returns the interned call of ``operator`` with ``attributes``."""
    key = operator, attributes if attributes is operator.defaults else identity_key(attributes)
    result = _calls.get(key)
    if result is None:
        call = InternedCall(operator, attributes, NDArray, _is_one_of_many(operator, attributes))
        return _calls.put(key, call)
    return result


def _is_one_of_many(operator: Operator, attributes: Attributes) -> bool:
    """Whether many calls were made that differ from a new one only in numbers."""
    places = number_places(operator, attributes)
    if not places:
        return False
    key = operator, without_numbers(attributes, places)
    count = _variety.get(key) or _variety.put(key, [0])
    count[0] += 1
    return count[0] > _MANY
