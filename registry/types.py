"""Shape, DType, VarKind and VarType: static properties of a value."""

import enum
import functools
import math
import threading
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.export import is_symbolic_dim

from registry.errors import DTypeError, nearest

Shape = tuple[int, ...]
DType = np.dtype
"""A NumPy dtype, including the ``ml_dtypes`` extensions (``bfloat16`` ...)."""

_lock = threading.RLock()
"""Held while a type is interned. Reentrant: garbage collection may create types meanwhile."""


class VarKind(enum.StrEnum):
    """Run-time representation of a variable, inferred when a program is built, then constant."""

    LOD_TENSOR = "lod_tensor"
    """A dense array, with optional level-of-detail offsets for ragged sequences."""
    SELECTED_ROWS = "selected_rows"
    """Some rows of an array: row numbers, their values, and the height."""
    LOD_TENSOR_ARRAY = "lod_tensor_array"
    """A list of dense arrays of one shape, with a fixed capacity."""
    RANDOM_KEY = "random_key"
    """One key of JAX's counter-based random number generator."""
    TRAINING = "training"
    """Whether the graph runs for training or for prediction; static in lowering."""

    __hash__ = str.__hash__


class OpReqType(enum.StrEnum):
    """The way in which an operator writes its result to a given destination."""

    NULL = "null"
    """Nothing is computed."""
    WRITE = "write"
    """The result replaces the present value."""
    WRITE_INPLACE = "write_inplace"
    """The result replaces the present value, in the same memory."""
    ADD = "add"
    """The result is added to the present value."""
    null, write, write_inplace, add = NULL, WRITE, WRITE_INPLACE, ADD


class VarType:
    """Shape, dtype and kind of a value. Instances are interned: compare them by ``is``.

    ``weak`` marks the type of a Python scalar, which never widens the dtype of the array that it is
    combined with (JAX's weak types).
    """

    __slots__ = ("__weakref__", "dtype", "kind", "shape", "weak")
    shape: Shape
    dtype: DType
    kind: VarKind
    weak: bool
    _interned: ClassVar[WeakValueDictionary[tuple[object, ...], "VarType"]] = WeakValueDictionary()

    def __new__(
        cls,
        shape: Shape,
        dtype: DType,
        kind: VarKind = VarKind.LOD_TENSOR,
        weak: bool = False,
    ) -> "VarType":
        """Returns the interned ``VarType`` of these properties."""
        key = (shape, dtype, kind, weak)
        cached = cls._interned.get(key)
        if cached is not None:
            return cached
        instance = super().__new__(cls)
        instance.shape, instance.dtype, instance.kind, instance.weak = shape, dtype, kind, weak
        with _lock:  # ``setdefault`` of a weak dictionary is not atomic
            return cls._interned.setdefault(key, instance)

    def __reduce__(self) -> tuple[object, ...]:
        return VarType, (self.shape, self.dtype, self.kind, self.weak)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes of a dense array of this type."""
        return self.size * self.dtype.itemsize

    @property
    def differentiable(self) -> bool:
        """Whether cotangents of this type exist: inexact dtype, and not a key or flag."""
        return self.kind in _TENSORS and is_inexact(self.dtype)

    @property
    def is_polymorphic(self) -> bool:
        """Whether the length of an axis is symbolic."""
        return any(map(is_symbolic, self.shape))

    def strong(self) -> "VarType":
        """Returns the same type, not weak."""
        return VarType(self.shape, self.dtype, self.kind) if self.weak else self

    def __repr__(self) -> str:
        return f"VarType({self})"

    def __str__(self) -> str:
        if self.kind is VarKind.RANDOM_KEY or self.kind is VarKind.TRAINING:
            return str(self.kind.value)
        tensor = f"{self.dtype.name}[{','.join(map(str, self.shape))}]"
        return tensor if self.kind is VarKind.LOD_TENSOR else f"{self.kind.value} {tensor}"


_TENSORS = (VarKind.LOD_TENSOR, VarKind.SELECTED_ROWS, VarKind.LOD_TENSOR_ARRAY)

KEY_TYPE = VarType((), np.dtype(np.uint32), VarKind.RANDOM_KEY)
TRAINING_TYPE = VarType((), np.dtype(np.bool_), VarKind.TRAINING)


def is_symbolic(length: Any) -> bool:
    """Whether ``length`` is symbolic (``jax.export.symbolic_shape``)."""
    return is_symbolic_dim(length)


@functools.cache
def is_inexact(dtype: DType) -> bool:
    """Whether ``dtype`` is floating or complex, including bfloat16 and the 8-bit floats."""
    return bool(jnp.issubdtype(dtype, np.inexact))


@functools.cache
def is_floating(dtype: DType) -> bool:
    """Whether ``dtype`` is real floating."""
    return bool(jnp.issubdtype(dtype, np.floating))


@functools.cache
def is_complex(dtype: DType) -> bool:
    """Whether ``dtype`` is complex."""
    return bool(jnp.issubdtype(dtype, np.complexfloating))


@functools.cache
def is_integer(dtype: DType) -> bool:
    """Whether ``dtype`` is an integer type, signed or unsigned, including the 4-bit ones."""
    return bool(jnp.issubdtype(dtype, np.integer))


@functools.cache
def is_unsigned(dtype: DType) -> bool:
    """Whether ``dtype`` is an unsigned integer type."""
    return bool(jnp.issubdtype(dtype, np.unsignedinteger))


@functools.cache
def is_boolean(dtype: DType) -> bool:
    """Whether ``dtype`` is boolean."""
    return bool(jnp.issubdtype(dtype, np.bool_))


def is_exact(dtype: DType) -> bool:
    """Whether ``dtype`` is an integer type or boolean."""
    return is_integer(dtype) or is_boolean(dtype)


@functools.cache
def is_extended_float(dtype: DType) -> bool:
    """Whether ``dtype`` is a small floating type that NumPy itself does not define."""
    return is_floating(dtype) and not np.issubdtype(dtype, np.floating)


@functools.cache
def integer_limits(dtype: DType) -> tuple[int, int]:
    """Returns the smallest and largest number that an integer or boolean ``dtype`` represents."""
    if is_boolean(dtype):
        return 0, 1
    limits = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(limits.min), int(limits.max)


def as_dtype(name: object) -> DType:
    """Returns the dtype that ``name`` (a string, a scalar type, a dtype) denotes.

    Raises:
        DTypeError: the dtype does not exist.
    """
    known = isinstance(name, str) and hasattr(ml_dtypes, name)
    scalar: Any = getattr(ml_dtypes, str(name)) if known else name
    try:
        dtype: DType = np.dtype(scalar)
    except (TypeError, SyntaxError, ValueError, OverflowError):  # NumPy reads "(2, 3)f4" as Python
        raise DTypeError(f"no dtype is called {name!r:.80}{near_dtype(name)}") from None
    return dtype


_USUAL = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
)


def near_dtype(name: object) -> str:
    """Returns a suggestion for a text that names no dtype, or ``""``."""
    return nearest(name, _USUAL) if isinstance(name, str) else ""


def promoted(*types: VarType) -> tuple[DType, bool]:
    """Returns the dtype that JAX promotes values of ``types`` to, and whether it is weak.

    Raises:
        DTypeError: JAX's rules of promotion, strict ones for example, know none.
    """
    stand_ins = [_stand_in(one) for one in types]
    try:
        dtype, weak = jax.dtypes.result_type(*stand_ins, return_weak_type_flag=True)
    except jax.dtypes.TypePromotionError as error:
        raise DTypeError(str(error)) from error
    return np.dtype(dtype), weak


def _stand_in(type: VarType) -> Any:
    """Returns a dtype, or for a weak type a Python scalar, which promotes like it."""
    if not type.weak:
        return type.dtype
    if is_integer(type.dtype):
        return 0
    return 0.0 if is_floating(type.dtype) else 0j if is_complex(type.dtype) else type.dtype
