"""Bodies read back from the further blocks of a program."""

from collections.abc import Sequence

from registry.bodies import Body
from registry.desc import BlockDesc, ProgramDesc, VarDesc
from registry.errors import FormatError, SymopError
from registry.operator import Operator
from registry.types import DType, VarKind, VarType, as_dtype
from symop.bodies import body_of
from symop.definitions import Definitions, Place, nearest_value
from symop.graph import placeholder
from symop.leaf_records import shape_of, shown

_DEPTH_LIMIT = 50


class BodyReader:
    """Makes the bodies of a program's blocks when they are asked for, each once."""

    def __init__(self, desc: ProgramDesc, places: Sequence[Place] = ()) -> None:
        """Bodies of ``desc``; ``places`` say where records of its blocks stand."""
        self._blocks, self._places = desc.blocks, places
        self._made: dict[int, Body] = {}
        self._open: list[int] = []

    def __call__(self, number: int) -> Body:
        """The body that block ``number`` is.

        Raises:
            FormatError: there is no such block, or something in it is wrong.
        """
        if not 0 < number < len(self._blocks):
            raise FormatError(f"block {number} is not there, of {len(self._blocks)}")
        if number in self._open or len(self._open) > _DEPTH_LIMIT:
            raise FormatError(f"block {number} contains itself, or blocks nest too deeply")
        if number not in self._made:
            self._open.append(number)
            try:
                self._made[number] = self._read(number)
            finally:
                self._open.pop()
        return self._made[number]

    def all(self) -> dict[int, Body]:
        """All bodies by the numbers of their blocks."""
        return {number: self(number) for number in range(1, len(self._blocks))}

    def _read(self, number: int) -> Body:
        block = self._blocks[number]
        if block.updates:
            raise FormatError(f"block {number}: only the first block may update anything")
        found = _Inside(block, self._place(number), self)
        values = found.load()
        for name in block.fetch:
            if name not in values:
                raise FormatError(
                    f"block {number}: {shown(name)} is not defined{nearest_value(name, values)}"
                )
        parameters = [values[var.name] for var in block.vars if var.role == "argument"]
        results, keys = [values[one] for one in block.fetch], list(found.keys.values())
        try:
            return body_of(parameters, results, keys)
        except SymopError as error:
            raise FormatError(f"block {number}: {error}") from error

    def _place(self, number: int) -> Place:
        if number < len(self._places):
            return self._places[number]
        return lambda part, index: f"blocks[{number}].{part}[{index}]"


class _Inside(Definitions):
    """Definitions of a sub-block, whose variables are the inputs of a body."""

    feedable = (
        VarKind.LOD_TENSOR,
        VarKind.LOD_TENSOR_ARRAY,
        VarKind.SELECTED_ROWS,
        VarKind.RANDOM_KEY,
    )

    def __init__(self, block: BlockDesc, place: Place, bodies: BodyReader) -> None:
        super().__init__(block, place, bodies)

    def called(self, operator: Operator) -> Operator:
        """The operator, whose states are inputs: a body that is computed again updates nothing."""
        return operator.steady

    def load_variable(self, var: VarDesc) -> None:
        """An input of the body."""
        if var.role != "argument" or var.shape is None or var.dtype is None:
            raise FormatError(f"{shown(var.name)} must be an argument of known type in a sub-block")
        if var.kind not in self.feedable:
            raise FormatError(f"{shown(var.name)} must not be of the kind {shown(var.kind)}")
        type = VarType(shape_of(var.shape), _dtype(var.dtype), VarKind(var.kind))
        self.give(var.name)
        self.define(var.name, placeholder(var.name, type))


def _dtype(name: str) -> DType:
    try:
        return as_dtype(name)
    except TypeError:
        raise FormatError(f"there is no dtype {shown(name)}") from None
