"""Construction of bodies from the additional blocks of a program."""

from collections.abc import Sequence

from registry.desc import SUB_BLOCK, BlockDesc, ProgramDesc, VarDesc
from registry.errors import FormatError, SymopError
from registry.operator.bodies import Body
from registry.operator.operator import Operator
from registry.types import DType, VarKind, VarType, as_dtype
from symop.graph.nodes import placeholder
from symop.io.definitions import Allowance, Definitions, Place, nearest_value
from symop.io.leaf_records import shape_of, shown
from symop.regions.bodies import body_of

_DEPTH_LIMIT = 256
"""The maximal depth of blocks: above that of built graphs, which may be saved inside loops."""


class BodyReader:
    """Builds the bodies of a program's blocks on demand, each once.

    Attributes:
        allowance: the limits on what all blocks together may create beyond their records.
    """

    def __init__(self, desc: ProgramDesc, places: Sequence[Place] = ()) -> None:
        """Reads the bodies of ``desc``; ``places`` describe the locations of records by block."""
        self._blocks, self._places = desc.blocks, places
        self._made: dict[int, Body] = {}
        self._ordered: set[int] = set()
        self.allowance = Allowance(desc.blocks)

    def __call__(self, number: int) -> Body:
        """Returns the body recorded by block ``number``.

        Raises:
            FormatError: the block does not exist, or is invalid.
        """
        if not 0 < number < len(self._blocks):
            raise FormatError(f"block {number} is not there, of {len(self._blocks)}")
        if number not in self._made:
            for one in self._inner_first(number):
                self._made[one] = self._read(one)
        return self._made[number]

    def _inner_first(self, number: int) -> list[int]:
        """Returns block ``number`` and the unread blocks inside it, each after those it contains.

        Raises:
            FormatError: a block contains itself.
        """
        order: list[int] = []
        open_ = {number: iter(self._inside(number))}
        while open_:
            last = next(reversed(open_))
            for inner in open_[last]:
                if inner in open_:
                    raise FormatError(f"block {inner} contains itself")
                if inner not in self._made and inner not in self._ordered:
                    open_[inner] = iter(self._inside(inner))
                    break
            else:
                del open_[last]
                self._ordered.add(last)
                order.append(last)
        return order

    def _inside(self, number: int) -> list[int]:
        """Returns the existing blocks that block ``number`` refers to."""
        values = [one for op in self._blocks[number].ops for one in op.attrs.values()]
        named = [one.get(SUB_BLOCK) for one in values if isinstance(one, dict)]
        return [one for one in named if type(one) is int and 0 < one < len(self._blocks)]

    def all(self) -> dict[int, Body]:
        """Returns all bodies by block index."""
        return {number: self(number) for number in range(1, len(self._blocks))}

    def _read(self, number: int) -> Body:
        block = self._blocks[number]
        if block.updates:
            raise FormatError(f"block {number}: only the first block may update anything")
        inside = _Inside(block, self._place(number), self)
        values = inside.load(self.allowance)
        for name in block.fetch:
            if name not in values:
                raise FormatError(
                    f"block {number}: {shown(name)} is not defined{nearest_value(name, values)}"
                )
        parameters = [values[var.name] for var in block.vars if var.role == "argument"]
        results, keys = [values[one] for one in block.fetch], list(inside.keys.values())
        try:
            result = body_of(parameters, results, keys)
        except SymopError as error:
            raise FormatError(f"block {number}: {error}") from error
        if result.depth > _DEPTH_LIMIT:
            raise FormatError(f"block {number}: blocks must nest at most {_DEPTH_LIMIT} deep")
        return result

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
        """Returns the operator with states as plain inputs: a recomputed body updates nothing."""
        return operator.steady

    def load_variable(self, var: VarDesc) -> None:
        """Defines an input of the body."""
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
