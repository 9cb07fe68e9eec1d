"""The verifier of programs: records are checked against operators, types and each other."""

from collections.abc import Sequence

from registry.attributes import dtype_named
from registry.desc import BlockDesc, ProgramDesc
from registry.errors import FormatError, SymopError
from registry.shapes import default_float
from symop.body_records import BodyReader
from symop.definitions import Place, nearest_value
from symop.initial import require_initial
from symop.leaf_records import shown
from symop.program_block import Block
from symop.rebuilding import check_version


def checked_block(desc: ProgramDesc, places: Sequence[Place] = ()) -> Block:
    """The block of the program that ``desc`` records.

    Args:
        desc: the records; the block keeps them.
        places: say where records stand, for each block; without them, messages show the calls
            around.

    Raises:
        FormatError: a name is defined twice or not before it is used, a call does not fit its
            operator, a type is not what is declared, or an update is of another type.
    """
    check_version(desc.format, desc.version)
    if not desc.blocks:
        raise FormatError("blocks: a program must have a block, got none")
    record = desc.blocks[0]
    _check_declared(record)
    updates, record.updates = record.updates, {}
    bodies = BodyReader(desc, places).all()
    block = Block(record, places[0] if places else None, bodies, desc.blocks[1:])
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
