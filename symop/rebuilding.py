"""Records read back as a graph: every field checked, nothing executed, nothing half loaded."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from registry.attributes import dtype_named, from_plain
from registry.binding import LEFT_OUT
from registry.desc import FORMAT_VERSION, BlockDesc, OpDesc, ProgramDesc, VarDesc
from registry.errors import FormatError
from registry.operator import Operator
from registry.table import get
from registry.types import KEY_TYPE, TRAINING_TYPE, VarKind
from symop.emission import apply
from symop.graph import (
    CONSTANT,
    DEFERRED,
    KEY,
    Node,
    Origin,
    copied_origin,
    fresh_key,
    select,
    variable,
)
from symop.leaf_records import (
    LOADERS,
    NAME_LIMIT,
    attrs_of,
    check_keys,
    load_deferred,
    shape_of,
    shown,
    suggested,
)
from symop.naming import reserve
from symop.records import INPUTS, LEAVES, UNKNOWN_FILE, KeyAttrs

_ROLES = ("argument", "state", "intermediate")
_REASON_LIMIT = 1000
"""How many characters of what is wrong a message repeats."""


# Reading ---------------------------------------------------------------------------------------

Place = Callable[[str, int], str]
"""Says where record ``index`` of ``"vars"``, ``"ops"`` or ``"fetch"`` stands, for a message."""


def from_desc(desc: ProgramDesc, place: Place | None = None) -> list[Node]:
    """The graph that ``desc`` records; nodes that exist already are shared, as they are.

    Calls are inferred and simplified as when they were first made, so what ``to_desc`` made of a
    graph gives that graph again.

    Args:
        desc: a program of one block.
        place: says where a record stands, in place of its JSON path.

    Raises:
        FormatError: something in the records is wrong; nothing is kept of them.
    """
    place = _json_place(desc) if place is None else place
    return fetched(desc, rebuild(desc, place), place)


def graph_of(desc: ProgramDesc) -> tuple[list[Node], list[Node]]:
    """The graph that ``desc`` records: its values, and all its variables in their order.

    Raises:
        FormatError: something in the records is wrong; nothing is kept of them.
    """
    place = _json_place(desc)
    if not desc.fetch:
        raise FormatError("fetch: at least one value must be named, got none")
    values = rebuild(desc, place)
    variables = [values[var.name] for var in desc.blocks[0].vars]
    return fetched(desc, values, place), variables


def fetched(desc: ProgramDesc, values: Mapping[str, Node], place: Place) -> list[Node]:
    """The values that ``desc`` fetches."""
    for i, name in enumerate(desc.fetch):
        if name not in values:
            raise FormatError(
                f"{place('fetch', i)}: {shown(name)} is not defined{_nearest_value(name, values)}"
            )
    return [values[name] for name in desc.fetch]


def rebuild(desc: ProgramDesc, place: Place) -> dict[str, Node]:
    """Every value that ``desc`` defines, by name."""
    check_version(desc.format, desc.version)
    if len(desc.blocks) != 1:
        raise FormatError(f"blocks: a graph must have exactly one block, got {len(desc.blocks)}")
    block = desc.blocks[0]
    values = _Loader(block, place).load()
    reserve([*(var.name for var in block.vars), *(op.name for op in block.ops if op.name)])
    return values


def check_version(format: str, version: int) -> None:
    """Raise FormatError unless this is a program that this version of symop can read."""
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
    """A record in a message: ``sin 'y'``."""
    if isinstance(desc, VarDesc):
        return f"variable {shown(desc.name)}"
    first = next((names[0] for names in desc.outputs.values() if names), None)
    name = desc.name or first
    kind = desc.type[:NAME_LIMIT]
    return kind if name is None else f"{kind} {shown(name)}"


def _nearest_value(name: str, values: Mapping[str, Any]) -> str:
    # Comparing with every value of a huge program would take longer than loading it.
    return suggested(name, list(values)[-1000:])


class _Loader:
    """Builds the nodes of one block."""

    def __init__(self, block: BlockDesc, place: Place) -> None:
        self.block = block
        self.place = place
        self.values: dict[str, Node] = {}
        self.given: set[str] = set()
        self.keys: dict[int, Node] = {}

    def load(self) -> dict[str, Node]:
        for i, var in enumerate(self.block.vars):
            with self._placed("vars", i):
                self._load_variable(var)
        self._load_keys()
        for i, op in enumerate(self.block.ops):
            with self._placed("ops", i), copied_origin(_origin(op, i)):
                self._load_op(op, i)
        for i, var in enumerate(self.block.vars):
            if var.role == "intermediate" and var.name in self.values:
                with self._placed("vars", i):
                    _check_declared(var, self.values[var.name])
        return self.values

    @contextmanager
    def _placed(self, part: str, index: int) -> Iterator[None]:
        """Whatever a record makes go wrong is the record's fault, and the message says which."""
        try:
            yield
        except FormatError as error:
            raise FormatError(_bounded(f"{self.place(part, index)}: {error}")) from error.__cause__
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise FormatError(_bounded(f"{self.place(part, index)}: {reason}")) from error

    def _load_variable(self, var: VarDesc) -> None:
        kinds = [kind.value for kind in VarKind]
        fed = var.role != "intermediate"
        if var.kind not in kinds or (fed and var.kind != VarKind.LOD_TENSOR.value):
            problem = "cannot be fed to a graph" if var.kind in kinds else "is no variable kind"
            raise FormatError(f"the kind {shown(var.kind)} {problem}{suggested(var.kind, kinds)}")
        if var.role not in _ROLES:
            raise FormatError(
                f"the role must be one of {', '.join(_ROLES)}, got {shown(var.role)}"
                f"{suggested(var.role, _ROLES)}"
            )
        shape = None if var.shape is None else shape_of(var.shape)
        dtype = None if var.dtype is None else dtype_named(var.dtype)
        # Of an intermediate value the operator that computes it tells the type.
        if var.role != "intermediate":
            self._give(var.name)
            extra = tuple(var.attrs.items())
            self._define(var.name, variable(var.name, shape, dtype, var.role, extra))

    def _give(self, name: str) -> None:
        if not name:
            raise FormatError("a name must not be empty")
        if name in self.given:
            raise FormatError(f"the name {shown(name)} must be given once, got it twice")
        self.given.add(name)

    def _define(self, name: str, node: Node) -> None:
        if name in self.values:
            raise FormatError(f"{shown(name)} must be defined once, and is defined before")
        self.values[name] = node

    def _load_keys(self) -> None:
        """Make the random keys first, in the order in which they were made before."""
        ranks: dict[int, int] = {}
        for i, op in enumerate(self.block.ops):
            if op.type == KEY.name:
                with self._placed("ops", i):
                    rank = attrs_of(op, KeyAttrs).rank
                    if rank in ranks:
                        raise FormatError(f"rank {rank} must be given once, got it twice")
                    ranks[rank] = i
        for rank in sorted(ranks):
            i = ranks[rank]
            with self._placed("ops", i), copied_origin(_origin(self.block.ops[i], i)):
                self.keys[i] = fresh_key()

    def _load_op(self, op: OpDesc, index: int) -> None:
        if op.name is not None:
            self._give(op.name)
        if op.type not in LEAVES:
            self._define_outputs(op, self._load_call(op))
            return
        if op.name is not None:
            raise FormatError(f"a name is given to calls of operators only, got {shown(op.name)}")
        inputs = self._slots(op, [INPUTS] if op.type == DEFERRED.name else [])
        if op.type == DEFERRED.name:
            self._define_outputs(op, load_deferred(op, inputs.get(INPUTS, [])))
        elif op.type == KEY.name:
            self._define_outputs(op, {"out": self.keys[index]})
        else:
            self._define_outputs(op, {"out": LOADERS[op.type](op)})

    def _load_call(self, op: OpDesc) -> dict[str, Node]:
        if len(op.type) > NAME_LIMIT:
            raise FormatError(f"no operator is called {shown(op.type)}")
        operator = get(op.type)
        filled = self._slots(op, operator.slot_names)
        arguments: dict[str, Any] = {}
        for name, nodes in filled.items():
            slot = operator.slots[operator.slot_index[name]]
            if not slot.variadic and len(nodes) > 1:
                raise FormatError(f"slot {shown(name)} must hold one value, got {len(nodes)}")
            if nodes:
                arguments[name] = nodes if slot.variadic else nodes[0]
        check_keys("attribute", op.attrs, operator.attribute_index)
        arguments.update((key, from_plain(value)) for key, value in op.attrs.items())
        inputs, attributes, _ = operator.bind((), arguments)
        for slot, value in zip(operator.slots, inputs, strict=False):
            if value is LEFT_OUT:
                raise FormatError(f"slot {slot.name!r} must be filled, got nothing")
            _check_implicit(operator, slot.name, value)
        operator = operator.resolved(inputs, attributes)
        node = apply(operator, inputs, attributes, op.name)
        if operator.single:
            return {operator.outputs[0]: node}
        return {key: select(node, i) for i, key in enumerate(operator.outputs)}

    def _slots(self, op: OpDesc, legal: Sequence[str]) -> dict[str, list[Node]]:
        check_keys("slot", op.inputs, legal)
        return {slot: [self._value(n) for n in names] for slot, names in op.inputs.items()}

    def _value(self, name: str) -> Node:
        found = self.values.get(name)
        if found is not None:
            return found
        for i, op in enumerate(self.block.ops):
            if any(name in names for names in op.outputs.values()):
                raise FormatError(
                    f"{shown(name)} must be defined before it is used, but {self.place('ops', i)} "
                    "defines it"
                )
        raise FormatError(f"{shown(name)} is not defined{_nearest_value(name, self.values)}")

    def _define_outputs(self, op: OpDesc, nodes: Mapping[str, Node]) -> None:
        check_keys("output", op.outputs, list(nodes))
        if not op.outputs:
            raise FormatError("at least one output must be named, got none")
        for key, names in op.outputs.items():
            if len(names) != 1:
                raise FormatError(f"output {shown(key)} must have one name, got {len(names)}")
            self._define(names[0], nodes[key])


def _check_declared(var: VarDesc, node: Node) -> None:
    """Refuse a declaration of an intermediate value that its operator contradicts.

    A dense kind is the default of a record, so it declares nothing.
    """
    if node.types is None:
        return
    type = node.types[0]
    declared: dict[str, tuple[Any, Any]] = {
        "shape": (None if var.shape is None else tuple(var.shape), type.shape),
        "dtype": (var.dtype, type.dtype.name),
        "kind": (None if var.kind == VarKind.LOD_TENSOR.value else var.kind, type.kind.value),
    }
    for what, (said, real) in declared.items():
        if said is not None and said != real:
            raise FormatError(
                f"the {what} must be {real}, as its operator tells, got {shown(said)}"
            )


def _bounded(message: str) -> str:
    return message if len(message) <= _REASON_LIMIT else message[: _REASON_LIMIT - 3] + "..."


def _check_implicit(operator: Operator, slot: str, value: Any) -> None:
    """Refuse an array where a random key or the training flag belongs."""
    role = operator.slots[operator.slot_index[slot]].role
    if role not in ("key", "training") or value is None:
        return
    type = value.types[0] if value.types else None
    if role == "key" and type is not KEY_TYPE:
        raise FormatError(f"slot {slot!r} must hold a random key, got {_kind_of(value)}")
    fixed = value.op is CONSTANT and isinstance(value.constant, bool)
    if role == "training" and type is not TRAINING_TYPE and not fixed:
        raise FormatError(f"slot {slot!r} must hold the training flag, got {_kind_of(value)}")


def _kind_of(node: Node) -> str:
    return f"a {node.op.name}" if node.types is None else f"a {node.op.name} {node.types[0]}"


def _origin(op: OpDesc, index: int) -> Origin:
    if op.site is None:
        return Origin(UNKNOWN_FILE, index, op.gradient_of)
    file, _, line = op.site.rpartition(":")
    if not (file and re.fullmatch(r"[0-9]{1,9}", line)):
        raise FormatError(f"the site must be file:line, got {op.site!r:.200}")
    return Origin(file, int(line), op.gradient_of)
