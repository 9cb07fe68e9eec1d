"""Definitions: the nodes that the records of one block stand for, every field checked."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from registry.attributes import dtype_named, from_plain
from registry.binding import LEFT_OUT
from registry.bodies import Body
from registry.desc import BlockDesc, OpDesc, VarDesc
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
from symop.records import INPUTS, LEAVES, SUB_BLOCK, UNKNOWN_FILE, KeyAttrs

_ROLES = ("argument", "parameter", "state", "intermediate")
_REASON_LIMIT = 1000
"""How many characters of what is wrong a message repeats."""

Bodies = Callable[[int], Body]
"""Gives the body that a block of the program is."""
Place = Callable[[str, int], str]
"""Says where record ``index`` of ``"vars"``, ``"ops"`` or ``"fetch"`` stands, for a message."""


def nearest_value(name: str, values: Mapping[str, Any]) -> str:
    """A hint which value may be meant.

    Comparing with every value of a huge program would take longer than loading it.
    """
    return suggested(name, list(values)[-1000:])


def _node_role(role: str) -> str:
    """The role of a graph's variable: in a graph, a parameter is an argument as others are."""
    return "argument" if role == "parameter" else role


class Definitions:
    """Builds the nodes of one block, record by record.

    Attributes:
        block: the records.
        place: says where a record stands.
        values: every value that is defined so far, by name.
        given: the names that users gave to variables and calls.
        keys: the random keys, by the place of their records.
    """

    feedable: ClassVar[tuple[VarKind, ...]] = (VarKind.LOD_TENSOR,)
    """The kinds of variables that are fed or kept."""

    def __init__(self, block: BlockDesc, place: Place, bodies: Bodies | None = None) -> None:
        """Nothing is defined yet; ``bodies`` gives the bodies that attributes name."""
        self.block = block
        self.bodies = bodies
        self.place = place
        self.values: dict[str, Node] = {}
        self.given: dict[str, None] = {}
        self.keys: dict[int, Node] = {}

    def load(self) -> dict[str, Node]:
        """Define all that the block records.

        Raises:
            FormatError: something in it is wrong.
        """
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
        return self.values

    @contextmanager
    def placed(self, part: str, index: int) -> Iterator[None]:
        """Whatever a record makes go wrong is the record's fault, and the message says which."""
        try:
            yield
        except FormatError as error:
            raise FormatError(_bounded(f"{self.place(part, index)}: {error}")) from error.__cause__
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise FormatError(_bounded(f"{self.place(part, index)}: {reason}")) from error

    def load_variable(self, var: VarDesc) -> None:
        """Define a variable that is fed or kept; check the record of any other."""
        kinds = [kind.value for kind in VarKind]
        fed = var.role != "intermediate"
        if var.kind not in kinds or (fed and var.kind not in self.feedable):
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
            self.give(var.name)
            extra = tuple(var.attrs.items())
            role, kind = _node_role(var.role), VarKind(var.kind)
            self.define(var.name, self.variable(var.name, shape, dtype, role, extra, kind))

    def variable(self, *declaration: Any) -> Node:
        """The node of a variable; see ``graph.variable``."""
        return variable(*declaration)

    def give(self, name: str) -> None:
        """A user gives a name, once."""
        if not name:
            raise FormatError("a name must not be empty")
        if name in self.given:
            raise FormatError(f"the name {shown(name)} must be given once, got it twice")
        self.given[name] = None

    def define(self, name: str, node: Node) -> None:
        """``name`` is the value ``node``, from here on."""
        if name in self.values:
            raise FormatError(f"{shown(name)} must be defined once, and is defined before")
        self.values[name] = node

    def load_keys(self) -> None:
        """Make the random keys first, in the order in which they were made before."""
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
        """Make the random key of the record at ``index``."""
        with self.placed("ops", index), copied_origin(_origin(self.block.ops[index], index)):
            self.keys[index] = fresh_key()

    def load_op(self, op: OpDesc, index: int) -> None:
        """Define what the record at ``index`` computes."""
        if op.name is not None:
            self.give(op.name)
        if op.type not in LEAVES:
            self.define_outputs(op, self._load_call(op))
            return
        if op.name is not None:
            raise FormatError(f"a name is given to calls of operators only, got {shown(op.name)}")
        inputs = self._slots(op, [INPUTS] if op.type == DEFERRED.name else [])
        if op.type == DEFERRED.name:
            self.define_outputs(op, load_deferred(op, inputs.get(INPUTS, [])))
        elif op.type == KEY.name:
            self.define_outputs(op, {"out": self.keys[index]})
        else:
            self.define_outputs(op, {"out": LOADERS[op.type](op)})

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
        arguments.update((key, self._attribute(value)) for key, value in op.attrs.items())
        inputs, attributes, _ = operator.bind((), arguments)
        for slot, value in zip(operator.slots, inputs, strict=False):
            if value is LEFT_OUT:
                raise FormatError(f"slot {slot.name!r} must be filled, got nothing")
            _check_implicit(operator, slot.name, value)
        operator = self.called(operator.resolved(inputs, attributes))
        node = apply(operator, inputs, attributes, op.name)
        if operator.single:
            return {operator.outputs[0]: node}
        return {key: select(node, i) for i, key in enumerate(operator.outputs)}

    def called(self, operator: Operator) -> Operator:
        """What a call of ``operator`` calls."""
        return operator

    def _attribute(self, value: Any) -> Any:
        if not isinstance(value, dict) or set(value) != {SUB_BLOCK}:
            return from_plain(value)
        number = value[SUB_BLOCK]
        if self.bodies is None or not isinstance(number, int):
            raise FormatError(f"a block must be named by its number, got {number!r:.200}")
        return self.bodies(number)

    def _slots(self, op: OpDesc, legal: Sequence[str]) -> dict[str, list[Node]]:
        check_keys("slot", op.inputs, legal)
        return {slot: [self.value(n) for n in names] for slot, names in op.inputs.items()}

    def value(self, name: str) -> Node:
        """The value of that name, which must be defined by now."""
        found = self.values.get(name)
        if found is not None:
            return found
        for i, op in enumerate(self.block.ops):
            if any(name in names for names in op.outputs.values()):
                raise FormatError(
                    f"{shown(name)} must be defined before it is used, but {self.place('ops', i)} "
                    "defines it"
                )
        raise FormatError(f"{shown(name)} is not defined{nearest_value(name, self.values)}")

    def define_outputs(self, op: OpDesc, nodes: Mapping[str, Node]) -> None:
        """Give the names that ``op`` says to ``nodes``, its outputs."""
        check_keys("output", op.outputs, list(nodes))
        if not op.outputs:
            raise FormatError("at least one output must be named, got none")
        for key, names in op.outputs.items():
            if len(names) != 1:
                raise FormatError(f"output {shown(key)} must have one name, got {len(names)}")
            self.define(names[0], nodes[key])


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
