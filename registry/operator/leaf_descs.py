"""Records that are values rather than calls: numbers, arrays, random keys, the training flag."""

from typing import Any

from registry.desc import BlockDesc, OpDesc
from registry.operator.attributes import dtype_named, from_plain
from registry.shapes import scalar_dtype
from registry.types import KEY_TYPE, TRAINING_TYPE, VarKind, VarType

CONSTANT, ARRAY, RANDOM_KEY, TRAINING = "constant", "array", "random_key", "training"
LEAVES = (CONSTANT, ARRAY, RANDOM_KEY, TRAINING)
"""The types of such records. A block has no VarDesc for their variables."""


def leaf_named(name: str, block: BlockDesc) -> OpDesc | None:
    """Returns the record of ``block`` that is the value called ``name``, or None."""
    matches = (op for op in block.ops if op.type in LEAVES and [name] in op.outputs.values())
    return next(matches, None)


def leaf_names(op: OpDesc, block: BlockDesc | None) -> set[str]:
    """Returns the variables of ``op`` that ``block`` records as values; they have no gradients."""
    if block is None:
        return set()
    read = {name for names in op.inputs.values() for name in names}
    return {name for name in read if leaf_named(name, block) is not None}


def type_of_leaf(op: OpDesc) -> VarType:
    """Returns the type of a record's value; a number without a dtype is weakly typed."""
    if op.type in (RANDOM_KEY, TRAINING):
        return KEY_TYPE if op.type == RANDOM_KEY else TRAINING_TYPE
    shape = tuple(op.attrs.get("shape", ()))
    kind = VarKind(op.attrs.get("kind", VarKind.LOD_TENSOR))
    dtype: Any = op.attrs.get("dtype")
    if dtype is not None:
        return VarType(shape, dtype_named(dtype), kind)
    number = number_of_leaf(op)
    assert number is not None
    return VarType(shape, scalar_dtype(number), kind, weak=not isinstance(number, bool))


def number_of_leaf(op: OpDesc) -> bool | int | float | complex | None:
    """Returns the number that fills the value, or None if it is not a constant."""
    if op.type != CONSTANT:
        return None
    number: bool | int | float | complex = from_plain(op.attrs["value"])
    return number
