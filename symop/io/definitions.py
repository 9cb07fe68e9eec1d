"""Construction of the nodes that the records of a block describe, with every field checked."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import msgspec

from registry.desc import SUB_BLOCK, BlockDesc, OpDesc, VarDesc
from registry.errors import FormatError
from registry.naming import EMPTY, matching
from registry.operator.attributes import dtype_named, from_plain
from registry.operator.binding import LEFT_OUT
from registry.operator.bodies import Body
from registry.operator.operator import Operator
from registry.table import get
from registry.types import KEY_TYPE, TRAINING_TYPE, VarKind
from registry.var import Attributes, Inputs
from symop.graph.emission import apply
from symop.graph.nodes import (
    CONSTANT,
    DEFERRED,
    KEY,
    Node,
    Origin,
    copied_origin,
    fresh_key,
    select,
    topological,
    variable,
)
from symop.graph.origins import UNKNOWN_FILE
from symop.graph.shardings import declared_sharding
from symop.io.leaf_records import (
    LOADERS,
    NAME_LIMIT,
    attrs_of,
    check_keys,
    load_deferred,
    shape_of,
    shown,
    suggestion,
)
from symop.io.records import INPUTS, LEAVES, KeyAttrs

_ROLES = ("argument", "parameter", "state", "intermediate")
_REASON_LIMIT = 1000
"""The maximal length of an error message."""
_COMPARED = 1000
"""The maximal number of slots or outputs for which inexact spellings are matched."""
_ALLOWED, _ALLOWED_EACH = 10_000, 10
"""The allowance of a file beyond its records, and its increase per record."""

Bodies = Callable[[int], Body]
"""Maps a block index of the program to its body."""
Place = Callable[[str, int], str]
"""Describes the location of record ``index`` of ``"vars"``, ``"ops"`` or ``"fetch"``."""


def nearest_value(name: str, values: Mapping[str, Any]) -> str:
    """Returns a hint that suggests a similar value.

    Only the last values are compared: all values of a huge program would take longer than loading.
    """
    return suggestion(name, list(values)[-1000:])


def _node_role(role: str) -> str:
    """Returns the role of a variable in a graph, where a parameter is an argument."""
    return "argument" if role == "parameter" else role


class Allowance:
    """Limits on what a file may create beyond its records: few bytes must not create millions.

    Attributes:
        outputs: the number of further outputs that no record names.
        nodes: the number of further nodes that may be visited to take derivatives.
    """

    def __init__(self, blocks: Sequence[BlockDesc]) -> None:
        """Sets limits according to the size of ``blocks``."""
        self.outputs = _ALLOWED + _ALLOWED_EACH * sum(len(block.ops) for block in blocks)
        self.nodes = _ALLOWED

    def leave_out(self, count: int) -> None:
        """Accounts for ``count`` outputs that no record names.

        Raises:
            FormatError: the limit is exceeded.
        """
        self.outputs -= count
        if self.outputs < 0:
            raise FormatError(f"each output must be named, but {count} are not")

    def look_at(self, inputs: Sequence[Node]) -> bool:
        """Whether a derivative of ``inputs`` may be taken now; otherwise it is deferred."""
        if self.nodes > 0:
            self.nodes -= len(topological(inputs))
        return self.nodes > 0


class Definitions:
    """Builds the nodes of one block, record by record.

    Each record is replaced by one that names slots and outputs as its operator does, regardless of
    the spelling that ``matching`` accepted; a call whose outputs have no names is dropped.

    Attributes:
        block: the records.
        place: describes the location of a record.
        values: all values defined so far, by name.
        given: the names that users gave to variables and calls.
        keys: the random keys, by the indices of their records.
    """

    feedable: ClassVar[tuple[VarKind, ...]] = (VarKind.LOD_TENSOR, VarKind.SELECTED_ROWS)
    """The kinds of variables that can be fed or kept."""

    def __init__(self, block: BlockDesc, place: Place, bodies: Bodies | None = None) -> None:
        """Starts without definitions; ``bodies`` maps block indices in attributes to bodies."""
        self.block = block
        self.bodies = bodies
        self.place = place
        self.values: dict[str, Node] = {}
        self.given: dict[str, None] = {}
        self.keys: dict[int, Node] = {}
        self.allowance: Allowance | None = None

    def load(self, allowance: Allowance | None = None) -> dict[str, Node]:
        """Defines all values of the block, within the limits of ``allowance``.

        Raises:
            FormatError: a record is invalid.
        """
        self.allowance = allowance
        for i, var in enumerate(self.block.vars):
            with self.placed("vars", i):
                self.load_variable(var)
        self.load_keys()
        for i, op in enumerate(self.block.ops):
            with self.placed("ops", i), copied_origin(_origin(op, i)):
                self.load_op(op, i)
        for i, var in enumerate(self.block.vars):
            if var.role == "intermediate" and var.name in self.values:
                with self.placed("vars", i):
                    _check_declared(var, self.values[var.name])
        self.allowance = None
        self._leave_out_unnamed()
        return self.values

    def _leave_out_unnamed(self) -> None:
        """Drops calls whose outputs have no names."""
        ops = self.block.ops
        kept = [i for i, op in enumerate(ops) if any(op.outputs.values())]
        if len(kept) < len(ops):
            self.keys = {new: self.keys[i] for new, i in enumerate(kept) if i in self.keys}
            ops[:] = [ops[i] for i in kept]

    @contextmanager
    def placed(self, part: str, index: int) -> Iterator[None]:
        """Converts exceptions to ``FormatError`` with the location of the record."""
        try:
            yield
        except FormatError as error:
            raise FormatError(_bounded(f"{self.place(part, index)}: {error}")) from error.__cause__
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise FormatError(_bounded(f"{self.place(part, index)}: {reason}")) from error

    def load_variable(self, var: VarDesc) -> None:
        """Defines a variable that is fed or kept; only checks the record of any other."""
        self._require_kind(var)
        if var.role not in _ROLES:
            raise FormatError(
                f"the role must be one of {', '.join(_ROLES)}, got {shown(var.role)}"
                f"{suggestion(var.role, _ROLES)}"
            )
        shape = None if var.shape is None else shape_of(var.shape)
        dtype = None if var.dtype is None else dtype_named(var.dtype)
        # The type of an intermediate value is that of its operator's output.
        if var.role != "intermediate":
            self.give(var.name)
            extra = tuple(var.attrs.items())
            declared_sharding(var.attrs)  # an error if a file holds another text
            role, kind = _node_role(var.role), VarKind(var.kind)
            self.define(var.name, self.variable(var.name, shape, dtype, role, extra, kind))

    def _require_kind(self, var: VarDesc) -> None:
        """Raises if the kind is unknown, or not allowed for a variable of this role."""
        kinds = [kind.value for kind in VarKind]
        if var.kind not in kinds:
            raise FormatError(
                f"the kind {shown(var.kind)} is no variable kind{suggestion(var.kind, kinds)}"
            )
        if var.role == "intermediate":
            return
        if var.kind not in self.feedable:
            legal = " and ".join(kind.value for kind in self.feedable)
            raise FormatError(
                f"the kind {shown(var.kind)} cannot be fed to a graph, {legal} can be"
            )
        if var.kind != VarKind.LOD_TENSOR.value and var.shape is None:
            raise FormatError(f"a variable of the kind {var.kind} must declare its shape, got none")

    def variable(self, *declaration: Any) -> Node:
        """Returns the node of a variable; see ``graph.variable``."""
        return variable(*declaration)

    def give(self, name: str) -> None:
        """Registers a name given by a user, which must be unique."""
        if not name:
            raise FormatError("a name must not be empty")
        if name in self.given:
            raise FormatError(f"the name {shown(name)} must be given once, got it twice")
        self.given[name] = None

    def define(self, name: str, node: Node) -> None:
        """Defines ``name`` as the value ``node``."""
        if name in self.values:
            raise FormatError(f"{shown(name)} must be defined once, and is defined before")
        self.values[name] = node

    def load_keys(self) -> None:
        """Creates the random keys before all other nodes, in their original order."""
        if self.keys:
            return
        ranks: dict[int, int] = {}
        for i, op in enumerate(self.block.ops):
            if op.type == KEY.name:
                with self.placed("ops", i):
                    rank = attrs_of(op, KeyAttrs).rank
                    if rank in ranks:
                        raise FormatError(f"rank {rank} must be given once, got it twice")
                    ranks[rank] = i
        for rank in sorted(ranks):
            self.load_key(ranks[rank])

    def load_key(self, index: int) -> None:
        """Creates the random key of the record at ``index``."""
        with self.placed("ops", index), copied_origin(_origin(self.block.ops[index], index)):
            self.keys[index] = fresh_key()

    def load_op(self, op: OpDesc, index: int) -> None:
        """Defines the outputs of the record at ``index``."""
        if op.name is not None:
            self.give(op.name)
        if op.type not in LEAVES:
            self._load_call(op, index)
            return
        if op.name is not None:
            raise FormatError(f"a name is given to calls of operators only, got {shown(op.name)}")
        inputs = _slots(op, [INPUTS] if op.type == DEFERRED.name else [])
        if op.type == DEFERRED.name:
            operands = [self.value(name) for name in inputs.get(INPUTS, [])]
            waits = self.allowance is not None and not self.allowance.look_at(operands)
            self.define_outputs(op, load_deferred(op, operands, waits=waits))
        elif op.type == KEY.name:
            self.define_outputs(op, {"out": self.keys[index]})
        else:
            self.define_outputs(op, {"out": LOADERS[op.type](op)})

    def _load_call(self, op: OpDesc, index: int) -> None:
        if len(op.type) > NAME_LIMIT:
            raise FormatError(f"no operator is called {shown(op.type)}")
        operator = get(op.type)
        slots = _slots(op, operator.slot_names)
        arguments = self._arguments(operator, slots)
        check_keys("attribute", op.attrs, operator.attribute_index)
        arguments.update((key, self._attribute(value)) for key, value in op.attrs.items())
        inputs, attributes, _ = operator.bind((), arguments)
        for slot, value in zip(operator.slots, inputs, strict=False):
            if value is LEFT_OUT:
                raise FormatError(f"slot {slot.name!r} must be filled, got nothing")
            _check_implicit(operator, slot.name, value)
        member = self.called(operator.resolved(inputs, attributes))
        stem = operator.outputs[-1] if operator.variadic_output else None
        outputs = _outputs(op, member, stem)
        if slots != op.inputs or outputs != op.outputs:
            op = msgspec.structs.replace(op, inputs=slots, outputs=outputs)
            self.block.ops[index] = op
        if self.allowance is not None:
            self.allowance.leave_out(len(member.outputs) - sum(map(bool, outputs.values())))
        self.define_call(op, member, inputs, attributes)

    def define_call(
        self, op: OpDesc, operator: Operator, inputs: Inputs, attributes: Attributes
    ) -> None:
        """Defines the outputs of ``op``, a call of ``operator`` with these nodes and attributes."""
        node = apply(operator, inputs, attributes, op.name)
        names = operator.outputs
        if operator.single:
            self.define_outputs(op, {names[0]: node})
        else:
            named = {key: select(node, i) for i, key in enumerate(names) if key in op.outputs}
            self.define_outputs(op, named)

    def _arguments(self, operator: Operator, slots: Mapping[str, list[str]]) -> dict[str, Any]:
        """Returns the values of each slot; a slot that is not variadic has at most one."""
        arguments: dict[str, Any] = {}
        for name, names in slots.items():
            slot = operator.slots[operator.slot_index[name]]
            if not slot.variadic and len(names) > 1:
                raise FormatError(f"slot {shown(name)} must hold one value, got {len(names)}")
            nodes = [self.value(one) for one in names]
            if nodes:
                arguments[name] = nodes if slot.variadic else nodes[0]
        return arguments

    def called(self, operator: Operator) -> Operator:
        """Returns the operator to apply in a call of ``operator``; subclasses may replace it."""
        return operator

    def _attribute(self, value: Any) -> Any:
        if not isinstance(value, dict) or set(value) != {SUB_BLOCK}:
            return from_plain(value)
        number = value[SUB_BLOCK]
        if self.bodies is None or not isinstance(number, int):
            raise FormatError(f"a block must be named by its number, got {number!r:.200}")
        return self.bodies(number)

    def value(self, name: str) -> Node:
        """Returns the value called ``name``, which must be defined already."""
        result = self.values.get(name)
        if result is not None:
            return result
        for i, op in enumerate(self.block.ops):
            if any(name in names for names in op.outputs.values()):
                raise FormatError(
                    f"{shown(name)} must be defined before it is used, but {self.place('ops', i)} "
                    "defines it"
                )
        raise FormatError(f"{shown(name)} is not defined{nearest_value(name, self.values)}")

    def define_outputs(self, op: OpDesc, nodes: Mapping[str, Node]) -> None:
        """Defines the output names of ``op`` as ``nodes``."""
        check_keys("output", op.outputs, nodes)
        for key, names in op.outputs.items():
            if len(names) > 1:
                raise FormatError(f"output {shown(key)} must have one name, got {len(names)}")
            for name in names:
                self.define(name, nodes[key])


def _slots(op: OpDesc, legal: Iterable[str]) -> dict[str, list[str]]:
    """Returns the names in each slot, keyed by the operator's slot names, without empty entries."""
    slots: dict[str, list[str]] = {}
    legal = dict.fromkeys(legal)
    for key, names in op.inputs.items():
        slot = _matched("slot", key, legal, slots)
        slots[slot] = [one for one in names if one != EMPTY]
    return slots


def _outputs(op: OpDesc, member: Operator, stem: str | None) -> dict[str, list[str]]:
    """Returns the name of each output, keyed by the names in ``member``; empty if it is not kept.

    A variadic output may be given as one list under its ``stem``, as in records of makers.
    """
    if not op.outputs:
        raise FormatError("at least one output must be named, got none")
    own = dict.fromkeys(member.outputs)
    legal = own if stem is None else {**own, stem: None}
    result: dict[str, list[str]] = {}
    for key, names in op.outputs.items():
        output = _matched("output", key, legal, result)
        if output in own:
            result[output] = [one for one in names if one != EMPTY]
            continue
        places = [one for one in member.outputs if one.removeprefix(output).isdigit()]
        if len(names) not in (0, len(places)):
            raise FormatError(
                f"output {shown(key)} must have {len(places)} names, got {len(names)}"
            )
        each = [[one] if one != EMPTY else [] for one in names] or [[] for _ in places]
        result.update(zip(places, each, strict=True))
    return result


def _matched(what: str, key: str, legal: Mapping[str, Any], entries: Mapping[str, Any]) -> str:
    """Returns the slot or output that ``key`` means; it must not be given twice.

    Raises:
        FormatError: ``key`` is unknown, or given already.
    """
    name = key if key in legal else None
    if name is None and len(legal) <= _COMPARED:
        name = matching(key, list(legal))
    if name is None:
        check_keys(what, {key: None}, legal)
    if name is None or name in entries:
        raise FormatError(f"{what} {shown(key)} must be given once, got it twice")
    return name


def _check_declared(var: VarDesc, node: Node) -> None:
    """Raises if the declared type of an intermediate value contradicts its operator.

    The dense kind is the default of a record, so it declares nothing.
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
                f"the {what} must be {real}, as its operator infers, got {shown(said)}"
            )


def _bounded(message: str) -> str:
    return message if len(message) <= _REASON_LIMIT else message[: _REASON_LIMIT - 3] + "..."


def _check_implicit(operator: Operator, slot: str, value: Any) -> None:
    """Raises if a slot for a random key or the training flag holds another value."""
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
