"""The verifier of programs: checks records against operators, types and each other."""

from collections.abc import Sequence

from registry.desc import BlockDesc, ProgramDesc
from registry.errors import FormatError, SymopError
from registry.operator.attributes import dtype_named
from registry.shapes import default_float
from symop.io.body_records import BodyReader
from symop.io.definitions import Place, nearest_value
from symop.io.leaf_records import shown
from symop.io.rebuilding import check_version
from symop.program.block import Block
from symop.runtime.initial import require_initial


def checked_block(desc: ProgramDesc, places: Sequence[Place] = ()) -> Block:
    """Verifies ``desc`` and builds the block of its program.

    Args:
        desc: the records; the block keeps them.
        places: describe the locations of records, for each block; without them, messages show
            the surrounding calls.

    Raises:
        FormatError: a name is defined twice or used before its definition, a call does not fit
            its operator, a type differs from the declared one, or an update has another type.
    """
    check_version(desc.format, desc.version)
    if not desc.blocks:
        raise FormatError("blocks: a program must have a block, got none")
    record = desc.blocks[0]
    _check_declared(record)
    updates, record.updates = record.updates, {}
    reader = BodyReader(desc, places)
    bodies = reader.all()
    place = places[0] if places else None
    block = Block(record, place, bodies, desc.blocks[1:], reader.allowance)
    for name in [*updates.values(), *desc.fetch, *(var.name for var in record.vars)]:
        if name not in block.values:
            raise FormatError(f"{shown(name)} is not defined{nearest_value(name, block.values)}")
    for state, value in updates.items():
        try:
            block.set_update(state, value)
        except SymopError as error:
            raise FormatError(f"updates: {error}") from None
    return block


def _check_declared(record: BlockDesc) -> None:
    for i, var in enumerate(record.vars):
        if var.role != "intermediate" and var.shape is None:
            raise FormatError(f"vars[{i}]: the shape of {shown(var.name)} must be declared")
        if var.persistable and "initial" in var.attrs:
            try:
                dtype = default_float() if var.dtype is None else dtype_named(var.dtype)
                require_initial(var.attrs["initial"], dtype)
            except (SymopError, TypeError, ValueError) as error:
                raise FormatError(f"vars[{i}]: {error}") from None
