"""Construction of leaves from their records: constants, arrays, deferred derivatives."""

import math
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from registry.desc import OpDesc
from registry.errors import FormatError, nearest
from registry.operator.attributes import REQUIRED, dtype_named, from_plain, make_attribute
from registry.shapes import canonical
from registry.types import VarKind, VarType, integer_limits, is_complex, is_inexact
from symop.autodiff.gradients import GradExpansion, JvpExpansion
from symop.graph.nodes import (
    ARRAY,
    CONSTANT,
    TRAINING,
    Expansion,
    Node,
    array,
    constant,
    select,
    training_flag,
)
from symop.graph.rewriting import defer, expand
from symop.io.records import INPUTS, ArrayAttrs, ConstantAttrs, NoAttrs

_UNREACHABLE = ("error", "zero")
NAME_LIMIT = 80
"""The maximal length of a name in a message."""


def shown(name: object) -> str:
    """Returns ``name`` quoted for a message, truncated if it is long."""
    if not isinstance(name, str):
        return f"{name!r:.{NAME_LIMIT}}"
    return repr(name if len(name) <= NAME_LIMIT else name[: NAME_LIMIT - 3] + "...")


def suggestion(name: str, legal: Iterable[str]) -> str:
    """Returns the hint of ``nearest``; none for a long name, which is slow to compare."""
    return nearest(name, legal) if len(name) <= NAME_LIMIT else ""


def check_keys(
    what: str, entries: Mapping[str, Any], legal: Mapping[str, Any] | Sequence[str]
) -> None:
    """Rejects unknown keys.

    Raises:
        FormatError: a key is not legal.
    """
    for key in entries:
        if key not in legal:
            among = ", ".join(legal) or "none"
            raise FormatError(f"the {what}s are {among}, got {shown(key)}{suggestion(key, legal)}")


Factory = Callable[[dict[str, Any]], Expansion]
"""Makes an expansion from its attributes, those of ``to_attrs`` without the name."""


def factory_of(kind: type[Any]) -> Factory:
    """Returns a factory of the named tuple ``kind`` that checks each field by its annotation."""
    name = kind._field_defaults["name"]
    hints = {key: hint for key, hint in typing.get_type_hints(kind).items() if key != "name"}
    fields = {key: make_attribute(key, hint, REQUIRED) for key, hint in hints.items()}

    def make(attrs: dict[str, Any]) -> Expansion:
        check_keys("attribute", attrs, fields)
        missing = [key for key in fields if key not in attrs and key not in kind._field_defaults]
        if missing:
            raise FormatError(f"the attribute {missing[0]!r} must be given, got none")
        values = {key: fields[key].canonical(value, name) for key, value in attrs.items()}
        result: Expansion = kind(**values)
        return result

    return make


deferred_factories: dict[str, Factory] = {
    kind._field_defaults["name"]: factory_of(kind) for kind in (GradExpansion, JvpExpansion)
}
"""The factory of each kind of expansion, by its name."""


def shape_of(lengths: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape given by a record.

    Raises:
            FormatError: a length is negative, or too large for an array.
    """
    if not all(0 <= length < 2**63 for length in lengths):
        raise FormatError(f"the lengths of a shape must not be negative or huge, got {lengths}")
    return tuple(lengths)


def attrs_of(op: OpDesc, kind: type[Any]) -> Any:
    """Returns the attributes of a leaf as the record ``kind``.

    Raises:
            FormatError: they do not match that record type.
    """
    try:
        return msgspec.convert(op.attrs, kind)
    except msgspec.ValidationError as error:
        raise FormatError(f"attrs: {error}") from None


def _load_constant(op: OpDesc) -> Node:
    attrs: ConstantAttrs = attrs_of(op, ConstantAttrs)
    value = from_plain(attrs.value)
    if not isinstance(value, (bool, int, float, complex)):
        raise FormatError(f"the value of a constant must be a number, got {attrs.value!r:.200}")
    if attrs.dtype is None:
        if attrs.shape or attrs.kind != VarKind.LOD_TENSOR.value:
            raise FormatError("a constant that has a shape or a kind must have a dtype, got none")
        return constant(value)
    dtype = dtype_named(attrs.dtype)
    _check_width(dtype)
    if not _fits(value, dtype):
        raise FormatError(f"the value must fit the dtype {dtype.name}, got {value!r:.200}")
    kind = VarKind(attrs.kind)
    if kind in (VarKind.RANDOM_KEY, VarKind.TRAINING):
        raise FormatError(f"the kind {kind.value!r} cannot be filled with a number")
    if kind is VarKind.LOD_TENSOR_ARRAY and not attrs.shape:
        raise FormatError("a tensor array must have an axis of elements, got a scalar")
    return constant(value, VarType(shape_of(attrs.shape), dtype, kind))


def _check_width(dtype: np.dtype) -> None:
    """Rejects dtypes that JAX would narrow, since that would change the file's numbers."""
    if canonical(dtype) != dtype:
        raise FormatError(f"the dtype {dtype.name} needs JAX's 64-bit mode: enable jax_enable_x64")


def _fits(value: bool | int | float | complex, dtype: np.dtype) -> bool:
    """Whether an array of ``dtype`` can be filled with ``value``; floats may round."""
    if is_complex(dtype):
        return True
    if isinstance(value, complex):
        return False
    if is_inexact(dtype):
        return True
    if dtype == np.bool_:
        return value in (0, 1)
    if isinstance(value, float) and not value.is_integer():
        return False
    least, most = integer_limits(dtype)
    return least <= value <= most


def _load_array(op: OpDesc) -> Node:
    attrs: ArrayAttrs = attrs_of(op, ArrayAttrs)
    shape, dtype = shape_of(attrs.shape), dtype_named(attrs.dtype)
    if attrs.data is None:
        raise FormatError("the array's entries were left out; save the graph to a file instead")
    _check_width(dtype)
    # Python's integers do not overflow, however large the claimed shape is.
    expected = math.prod(shape) * dtype.itemsize
    if len(attrs.data) != expected:
        raise FormatError(
            f"the data of an array {dtype.name}{list(shape)} must be {expected} bytes long, "
            f"got {len(attrs.data)}"
        )
    if dtype == np.bool_ and attrs.data.strip(b"\0\1"):
        raise FormatError("the data of a bool array must be zeros and ones")
    return array(np.frombuffer(attrs.data, dtype).reshape(shape))


def _load_training(op: OpDesc) -> Node:
    attrs_of(op, NoAttrs)
    return training_flag()


def load_deferred(op: OpDesc, inputs: Sequence[Node], *, waits: bool = False) -> dict[str, Node]:
    """Returns the values of a deferred derivative, expanded if types are known, by output.

    If ``waits`` is set, it stays deferred even if the types are known.

    Raises:
        FormatError: the record is not a valid deferred derivative.
    """
    attrs = {key: from_plain(value) for key, value in op.attrs.items()}
    name = attrs.pop("name", None)
    if name not in deferred_factories:
        raise FormatError(
            f"no deferred value is called {shown(name)}{suggestion(str(name), deferred_factories)}"
        )
    keys = list(op.outputs)
    if not all(re.fullmatch(r"0|[1-9][0-9]{0,5}", key) for key in keys):
        raise FormatError(f"the outputs of a deferred value must be numbers, got {keys}")
    expansion = deferred_factories[name](attrs)
    count = _deferred_outputs(expansion, len(inputs))
    for key in keys:
        if count is not None and int(key) >= count:
            raise FormatError(f"output {key} must be below {count}, the number of outputs")
    image = defer(expansion, inputs) if waits else expand(expansion, inputs)
    if isinstance(image, list):
        return {key: image[int(key)] for key in keys}
    return {key: select(image, int(key)) for key in keys}


def _deferred_outputs(expansion: Expansion, declared: int) -> int | None:
    """Returns the number of outputs of ``expansion``, or None if unknown. Checks its fields."""
    if not isinstance(expansion, (GradExpansion, JvpExpansion)):
        return None
    unreachable = getattr(expansion, "unreachable", "zero")
    if unreachable not in _UNREACHABLE:
        raise FormatError(
            f"unreachable must be one of {', '.join(_UNREACHABLE)}, got {shown(unreachable)}"
        )
    n_ys, n_xs = expansion.n_ys, expansion.n_xs
    if n_ys < 1 or n_xs < 1:
        raise FormatError(f"n_ys and n_xs must be positive, got {n_ys} and {n_xs}")
    if isinstance(expansion, JvpExpansion):
        expected, count = n_ys + 2 * n_xs, n_ys
    else:
        if len(expansion.has_heads) != n_ys:
            raise FormatError(f"has_heads must have {n_ys} entries, got {len(expansion.has_heads)}")
        expected, count = n_ys + n_xs + sum(expansion.has_heads), n_xs
    if declared != expected:
        raise FormatError(f"slot {INPUTS!r} must hold {expected} values, got {declared}")
    return count


LOADERS: dict[str, Callable[[OpDesc], Node]] = {
    CONSTANT.name: _load_constant,
    ARRAY.name: _load_array,
    TRAINING.name: _load_training,
}
