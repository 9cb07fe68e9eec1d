"""Shape, DType, VarKind and VarType: what is known of a value before it exists."""

import enum
import threading
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import ml_dtypes
import numpy as np

Shape = tuple[int, ...]
DType = np.dtype
"""A NumPy dtype, the ``ml_dtypes`` extensions (``bfloat16`` ...) among them."""

_lock = threading.RLock()
"""Held while a type is entered. Reentrant: collecting garbage may make types in the midst."""


class VarKind(enum.StrEnum):
    """What a variable holds at run time; inferred when a program is built, constant afterwards."""

    LOD_TENSOR = "lod_tensor"
    """A dense array, with optional level-of-detail offsets for ragged sequences."""
    SELECTED_ROWS = "selected_rows"
    """Some rows of a tall array: row numbers, their values, and the height."""
    LOD_TENSOR_ARRAY = "lod_tensor_array"
    """A list of dense arrays of one shape, in room for a fixed number of them."""
    RANDOM_KEY = "random_key"
    """One key of JAX's counter-based random number generator."""
    TRAINING = "training"
    """Whether the graph runs for training or for prediction; static when lowered."""

    __hash__ = str.__hash__


class OpReqType(enum.StrEnum):
    """What an operator does with the place that is given for its result."""

    NULL = "null"
    """Nothing is computed."""
    WRITE = "write"
    """The result replaces what is there."""
    WRITE_INPLACE = "write_inplace"
    """The result replaces what is there, in the same memory."""
    ADD = "add"
    """The result is added to what is there."""
    null, write, write_inplace, add = NULL, WRITE, WRITE_INPLACE, ADD


class VarType:
    """Shape, dtype and kind of a value; equal types are one object, so ``is`` compares them.

    ``weak`` marks the type of a Python scalar, which never widens the dtype of the array beside it
    (JAX's weak types).
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
        """The one ``VarType`` of these properties."""
        key = (shape, dtype, kind, weak)
        found = cls._interned.get(key)
        if found is not None:
            return found
        made = super().__new__(cls)
        made.shape, made.dtype, made.kind, made.weak = shape, dtype, kind, weak
        with _lock:  # ``setdefault`` of a weak dictionary is not atomic
            return cls._interned.setdefault(key, made)

    def __reduce__(self) -> tuple[object, ...]:
        return VarType, (self.shape, self.dtype, self.kind, self.weak)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The room that a dense array of this type takes."""
        return self.size * self.dtype.itemsize

    @property
    def differentiable(self) -> bool:
        """Whether a cotangent of this type exists: of an inexact dtype, and no key or flag."""
        return self.kind in _TENSORS and is_inexact(self.dtype)

    def strong(self) -> "VarType":
        """The same type, not weak."""
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


def is_inexact(dtype: DType) -> bool:
    """Whether ``dtype`` is a floating or complex dtype, bfloat16 and its kin included."""
    return np.issubdtype(dtype, np.inexact) or is_extended_float(dtype)


def is_extended_float(dtype: DType) -> bool:
    """Whether ``dtype`` is one of the small floats that NumPy itself does not know."""
    if dtype.kind != "V":
        return False
    return str(dtype.name).startswith(("bfloat", "float"))


def as_dtype(name: object) -> DType:
    """The dtype that ``name`` (a string, a scalar type, a dtype) stands for.

    Raises:
        TypeError: nothing has that name.
    """
    known = isinstance(name, str) and hasattr(ml_dtypes, name)
    scalar: Any = getattr(ml_dtypes, str(name)) if known else name
    dtype: DType = np.dtype(scalar)
    return dtype
