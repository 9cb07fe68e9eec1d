"""Reading records back as graphs: every field is checked, and nothing is executed."""

from collections.abc import Mapping, Sequence

from registry.desc import FORMAT_VERSION, OpDesc, ProgramDesc, VarDesc
from registry.errors import FormatError
from symop.graph.naming import reserve
from symop.graph.nodes import Node
from symop.io.body_records import BodyReader
from symop.io.definitions import Definitions, Place, nearest_value
from symop.io.leaf_records import NAME_LIMIT, shown


def from_desc(desc: ProgramDesc, place: Place | None = None) -> list[Node]:
    """Rebuilds the graph that ``desc`` records; existing nodes are shared.

    Calls are inferred and simplified as on their first construction, so the records made by
    ``to_desc`` give the same graph.

    Args:
        desc: the program.
        place: describes the location of a record; defaults to its JSON path.

    Raises:
        FormatError: the records are invalid; none of them is kept.
    """
    place = _json_place(desc) if place is None else place
    return fetch(desc, rebuild(desc, place), place)


def graph_of(desc: ProgramDesc) -> tuple[list[Node], list[Node]]:
    """Rebuilds the graph that ``desc`` records: its values, and all its variables in order.

    Raises:
        FormatError: the records are invalid; none of them is kept.
    """
    place = _json_place(desc)
    _refuse_updates(desc)
    if not desc.fetch:
        raise FormatError(
            "fetch: at least one value must be named, got none; so.Program.load "
            "reads a program without outputs"
        )
    values = rebuild(desc, place)
    variables = [values[var.name] for var in desc.blocks[0].vars]
    return fetch(desc, values, place), variables


def fetch(desc: ProgramDesc, values: Mapping[str, Node], place: Place) -> list[Node]:
    """Returns the values that ``desc`` fetches."""
    for i, name in enumerate(desc.fetch):
        if name not in values:
            raise FormatError(
                f"{place('fetch', i)}: {shown(name)} is not defined{nearest_value(name, values)}"
            )
    return [values[name] for name in desc.fetch]


def rebuild(desc: ProgramDesc, place: Place, places: Sequence[Place] = ()) -> dict[str, Node]:
    """Returns all values defined by ``desc``, by name; ``places`` locate the records of blocks."""
    check_version(desc.format, desc.version)
    if not desc.blocks:
        raise FormatError("blocks: a graph must have a block, got none")
    _refuse_updates(desc)
    block = desc.blocks[0]
    reader = BodyReader(desc, places)
    values = Definitions(block, place, reader).load(reader.allowance)
    reader.all()
    reserve([*(var.name for var in block.vars), *(op.name for op in block.ops if op.name)])
    return values


def _refuse_updates(desc: ProgramDesc) -> None:
    if any(block.updates for block in desc.blocks):
        raise FormatError("updates: a graph must have none, got a program; use so.Program.load")


def check_version(format: str, version: int) -> None:
    """Raises ``FormatError`` unless this version of symop can read the program."""
    if format != "symop":
        raise FormatError(f"format: must be 'symop', got {shown(format)}")
    if version > FORMAT_VERSION:
        raise FormatError(
            f"version: must be at most {FORMAT_VERSION}, got {version}; the file was written by a "
            "newer symop, update to read it"
        )
    if version < 1:
        raise FormatError(f"version: must be at least 1, got {version}")


def _json_place(desc: ProgramDesc) -> Place:
    def place(part: str, index: int) -> str:
        if part == "fetch":
            return f"fetch[{index}]"
        path = f"blocks[0].{part}[{index}]"
        block = desc.blocks[0]
        return f"{path} ({title(block.ops[index] if part == 'ops' else block.vars[index])})"

    return place


def title(desc: OpDesc | VarDesc) -> str:
    """Returns the description of a record in a message: ``sin 'y'``."""
    if isinstance(desc, VarDesc):
        return f"variable {shown(desc.name)}"
    first = next((names[0] for names in desc.outputs.values() if names), None)
    name = desc.name or first
    kind = desc.type[:NAME_LIMIT]
    return kind if name is None else f"{kind} {shown(name)}"
