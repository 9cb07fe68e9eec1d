"""Type checks of operators that run bodies: matching operands, and carries of constant type."""

from collections.abc import Sequence

from registry.errors import ArgumentError, DTypeError, KindError, ShapeError
from registry.operator.bodies import Body
from registry.types import VarKind, VarType


def require_types(what: str, body: Body, operands: Sequence[VarType | None]) -> None:
    """Checks that the operands match the inputs of ``body``.

    Raises:
        ArgumentError: their number differs.
        KindError, ShapeError, DTypeError: one has another type.
    """
    if len(operands) != len(body.inputs):
        raise ArgumentError(f"{what} must take {len(operands)} operands, got {len(body.inputs)}")
    for i, (one, wanted) in enumerate(zip(operands, body.inputs, strict=True)):
        assert one is not None
        require_type(f"operand {i} of {what}", one, wanted)


def require_type(what: str, got: VarType, wanted: VarType) -> None:
    """Checks that a value has the type ``wanted``.

    Raises:
        KindError, ShapeError, DTypeError: it has another type.
    """
    if got.strong() is wanted:
        return
    error = (
        KindError
        if got.kind is not wanted.kind
        else (ShapeError if got.shape != wanted.shape else DTypeError)
    )
    raise error(f"{what} must be {wanted}, got {got}")


def require_carries(body: Body, n_carry: int, first: int = 0) -> None:
    """Checks that a body preserves the types of its carries.

    Raises:
        ArgumentError: there are fewer inputs or outputs than carries.
        KindError, ShapeError, DTypeError: a step changes the type of a carry.
    """
    if n_carry > min(len(body.inputs), len(body.outputs)):
        raise ArgumentError(
            f"the body must take and return {n_carry} carries, got {len(body.inputs)} inputs and "
            f"{len(body.outputs)} outputs"
        )
    pairs = zip(body.inputs[:n_carry], body.outputs, strict=False)
    for i, (before, after) in enumerate(pairs, first):
        require_type(f"carry {i} must keep its type: after a step it", after, before)


def require_key(draws: bool, use_key: bool) -> None:
    """Checks that a body that draws random numbers has a key.

    Raises:
        ArgumentError: it has none.
    """
    if draws and not use_key:
        raise ArgumentError("a body that draws random numbers needs a key, pass use_key=True")


def stacked(type: VarType, length: int) -> VarType:
    """Returns the type of ``length`` stacked values of ``type``, one for each step.

    Raises:
        KindError: they are not dense arrays.
    """
    if type.kind is not VarKind.LOD_TENSOR:
        raise KindError(f"a result of each step must be a dense array, got {type}")
    return VarType((length, *type.shape), type.dtype)
