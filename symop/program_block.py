"""The block of a program: records of calls, and the nodes that they stand for."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from registry.binding import LEFT_OUT
from registry.bodies import Body
from registry.desc import BlockDesc, OpDesc, VarDesc
from registry.errors import (
    ArgumentError,
    FeedError,
    FormatError,
    KindError,
    ProgramError,
    nearest,
)
from registry.operator import Operator
from registry.types import VarKind, VarType
from registry.var import Attributes, Inputs, Var, infix
from symop.declaring import declared
from symop.definitions import Definitions, Place
from symop.emission import apply
from symop.graph import (
    KEY,
    SELECT,
    Node,
    as_node,
    built_at,
    constant,
    select,
    training_flag,
    user_origin,
)
from symop.listing import excerpt
from symop.naming import scoped
from symop.records import LEAVES, SubBlocks, Writer, plain_attributes, site_of


class Variable(Var):
    """A named value of a program; operators that are called on it are appended to the program.

    A variable that outlives a run (a parameter, a state) reads as it was when the run began,
    wherever it stands; ``program.update`` says what it holds afterwards.

    Example:
        >>> import symop as so
        >>> program = so.Program()
        >>> x = program.data("x", (2,))
        >>> y = so.sin(x) * 2.0
        >>> y.name, y.shape
        ('multiply0', (2,))
    """

    __slots__ = ("__weakref__", "block", "name")
    block: "Block"
    name: str

    def __init__(self, block: "Block", name: str) -> None:
        """The variable ``name`` of ``block``; users call ``program.data`` and operators."""
        self.block, self.name = block, name

    @property
    def node(self) -> Node:
        """The value as a node of a graph."""
        return self.block.values[self.name]

    @property
    def desc(self) -> VarDesc:
        """Its record."""
        return self.block.variables[self.name]

    @property
    def type(self) -> VarType:
        """Shape, dtype and kind."""
        return self.node.type

    @property
    def constant(self) -> bool | int | float | complex | None:
        """The number that fills it, when the program knows it."""
        return self.node.constant

    @property
    def persistable(self) -> bool:
        """Whether its value outlives a run."""
        return self.desc.persistable

    @property
    def stop_gradient(self) -> bool:
        """Whether gradients end here; it may be set until ``append_backward`` is called."""
        return self.desc.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, stops: bool) -> None:
        self.desc.stop_gradient = bool(stops)

    def __getitem__(self, index: Any) -> Any:
        return infix["[]"](self, index)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> Any:
        return infix["=="](self, other)

    def __ne__(self, other: object) -> Any:
        return infix["!="](self, other)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<Variable {self.name}: {self.type}>"


def place_of(node: Node) -> tuple[Node, int]:
    """The node that computes a value, and which of its outputs the value is."""
    return (node.operands[0], node.attributes[0]) if node.op is SELECT else (node, 0)


class _Filled(Var):
    """A number in every entry of a type, which belongs to no program yet."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def type(self) -> VarType:
        return self.node.type

    @property
    def constant(self) -> bool | int | float | complex | None:
        return self.node.constant


class _Definitions(Definitions):
    """Definitions in a program, which is fed rows as well."""

    feedable = (VarKind.LOD_TENSOR, VarKind.SELECTED_ROWS)


class Block:
    """Records of variables and calls in the order of the calls, each with its nodes.

    Every variable is assigned once. What a call that updates a state makes of it has a name of its
    own; ``desc.updates`` tells what the state holds after a run.

    Attributes:
        desc: the records.
        variables: records of all variables by name, computed ones too.
        serial: grows with each change.
    """

    def __init__(
        self,
        desc: BlockDesc | None = None,
        place: Place | None = None,
        bodies: Mapping[int, Body] | None = None,
        others: Sequence[BlockDesc] = (),
    ) -> None:
        """An empty block, or the one that ``desc`` records.

        Args:
            desc: the records.
            place: says where a record stands.
            bodies: the bodies of the other blocks, by their numbers.
            others: the other blocks.

        Raises:
            FormatError: something in the records is wrong.
        """
        self.desc = BlockDesc() if desc is None else desc
        self.sub_blocks = SubBlocks()
        self.sub_blocks.blocks += others
        for number, body in (bodies or {}).items():
            self.sub_blocks.indices.setdefault(body, number)
        self._bodies = dict(bodies or {})
        self._definitions = _Definitions(self.desc, place or self.place, self.body)
        self._definitions.load()
        self.variables = {var.name: var for var in self.desc.vars}
        self._counters: dict[str, itertools.count[int]] = defaultdict(itertools.count)
        self._leaves: dict[Node, str] = {}
        self.serial = 0
        leaves = {name for op in self.desc.ops if op.type in LEAVES for name in _outputs(op)}
        for name, node in self.values.items():
            if name in leaves:
                self._leaves[node] = name
            elif name not in self.variables:
                self._declare(name)

    def place(self, part: str, index: int) -> str:
        """Where a record stands, for a message."""
        return f"{part}[{index}]" if part != "ops" else excerpt(self.desc, index)

    def body(self, number: int) -> Body:
        """The body that another block of the program is."""
        if number not in self._bodies:
            self._bodies |= {i: one for one, i in self.sub_blocks.indices.items()}
        if number not in self._bodies:
            raise FormatError(f"block {number} is not there, of {len(self.blocks)}")
        return self._bodies[number]

    @property
    def blocks(self) -> list[BlockDesc]:
        """The blocks of the program, of which this is the first."""
        return [self.desc, *self.sub_blocks.blocks]

    @property
    def values(self) -> dict[str, Node]:
        """The nodes of all variables, by name."""
        return self._definitions.values

    @property
    def key_nodes(self) -> dict[int, Node]:
        """The random keys by the places of their records, in the order of their numbers."""
        return self._definitions.keys

    def variable(self, name: str) -> Variable:
        """The variable called ``name``.

        Raises:
            FeedError: there is none.
        """
        if name not in self.values:
            raise FeedError(
                f"program: a variable must be in it, got {name!r}{nearest(name, self.values)}"
            )
        return Variable(self, name)

    def fresh(self, stem: str) -> str:
        """A name that nothing has: ``stem`` and a number."""
        while True:
            name = f"{stem}{next(self._counters[stem])}"
            if not self._is_taken(name):
                return name

    def _is_taken(self, name: str) -> bool:
        return name in self.values or name in self._definitions.given

    def free(self, name: str) -> str:
        """``name``, or if something has it already, ``name`` and a number."""
        return self.fresh(name) if self._is_taken(name) else name

    # Variables

    def declare(self, role: str, name: str, *described: Any, **more: Any) -> Variable:
        """A variable that is fed, or kept between runs, as ``declared`` describes it."""
        full = scoped(name, role)
        self.require_free(role, full)
        return self.add_variable(declared(role, full, *described, **more))

    def add_variable(self, var: VarDesc) -> Variable:
        """A variable that is fed, or kept between runs.

        Raises:
            FormatError: the record is wrong, or the name is taken.
        """
        self._definitions.load_variable(var)
        self.desc.vars.append(var)
        self.variables[var.name] = var
        self.serial += 1
        return Variable(self, var.name)

    def _declare(self, name: str) -> None:
        """Record what is known of a computed value."""
        type = self.values[name].type
        var = VarDesc(name, list(type.shape), type.dtype.name, type.kind.value)
        self.desc.vars.append(var)
        self.variables[name] = var

    def set_update(self, state: str, value: str) -> None:
        """After a run, ``state`` holds what ``value`` is.

        Raises:
            ProgramError: ``state`` does not outlive a run, or is of another type.
        """
        if state not in self.variables or not self.variables[state].persistable:
            raise ProgramError(f"update: {state!r} must be a parameter or a state, and is neither")
        kept, given = self.values[state].type, self.values[value].type
        if kept.strong() is not given.strong():
            raise ProgramError(f"update: {state!r} must become a value of type {kept}, got {given}")
        self.desc.updates[state] = value
        self.serial += 1

    # Calls

    @contextmanager
    def atomically(self) -> Iterator[None]:
        """All of what is recorded within, or nothing of it."""
        ops, names, count = len(self.desc.ops), len(self.desc.vars), len(self.values)
        given, blocks = len(self._definitions.given), len(self.sub_blocks.blocks)
        updates = dict(self.desc.updates)
        try:
            yield
        except BaseException:
            del self.desc.ops[ops:]
            for var in self.desc.vars[names:]:
                del self.variables[var.name]
            del self.desc.vars[names:]
            for name in list(self.values)[count:]:
                del self.values[name]
            for name in list(self._definitions.given)[given:]:
                del self._definitions.given[name]
            self.sub_blocks.forget(blocks)
            self._bodies = {i: one for i, one in self._bodies.items() if i <= blocks}
            keys = self._definitions.keys
            for index in [one for one in keys if one >= ops]:
                del keys[index]
            self._leaves = {node: one for node, one in self._leaves.items() if one in self.values}
            self.desc.updates = updates
            raise
        self.serial += 1

    def call(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> list[Variable]:
        """Record a call; its visible outputs.

        Raises:
            SymopError: the inputs do not fit the operator.
        """
        with self.atomically():
            if name is not None:
                name = scoped(name, operator.name)
                self.require_free(operator.name, name)
            if operator.creates and any(one is LEFT_OUT for one in inputs):
                name = name or self.fresh(operator.name)
                inputs = self._with_parameters(operator, inputs, attributes, name)
            names = [self._operand(operator, i, one) for i, one in enumerate(inputs)]
            desc = self._recorded(operator, names, attributes, name)
            return [self.variable(desc.outputs[operator.outputs[i]][0]) for i in operator.visible]

    def _recorded(
        self,
        operator: Operator,
        names: Sequence[str | None],
        attributes: Attributes,
        name: str | None,
    ) -> OpDesc:
        nodes = tuple([None if one is None else self.values[one] for one in names])
        try:
            node = apply(operator, nodes, attributes, name)
        except KindError as error:
            kinds = [f"{one} is {self.values[one].type.kind}" for one in names if one is not None]
            raise KindError(f"{error}\n  where {', '.join(kinds)}") from error.__cause__
        outputs = self._output_names(operator, name or self.fresh(operator.name))
        groups = operator.input_groups(names)
        desc = OpDesc(
            operator.name,
            {slot.name: list(given) for slot, given in groups if given},
            {key: [one] for key, one in outputs.items()},
            plain_attributes(operator, attributes, self.sub_blocks),
            name,
            site_of(user_origin()),
        )
        single = operator.single or node.op is not operator
        values = {
            key: node if single else select(node, i) for i, key in enumerate(operator.outputs)
        }
        self.desc.ops.append(desc)
        self._definitions.define_outputs(desc, values)
        if name is not None:
            self._definitions.give(name)
        for one in outputs.values():
            self._declare(one)
        for i, output in operator.update_indices.items():
            self._keep_state(names[i], outputs[operator.outputs[output]])
        return desc

    def _output_names(self, operator: Operator, base: str) -> dict[str, str]:
        if operator.single:
            return {operator.outputs[0]: base}
        return {key: self.free(f"{base}.{key}") for key in operator.outputs}

    def _keep_state(self, state: str | None, new: str) -> None:
        """A call made a new value of a state, or of what an earlier call made of it."""
        origin = {value: kept for kept, value in self.desc.updates.items()}.get(state or "", state)
        if origin is not None and origin in self.variables and self.variables[origin].persistable:
            self.set_update(origin, new)

    def types(self) -> dict[str, VarType]:
        """Types of the computed variables by name."""
        computed = [n for n, var in self.variables.items() if var.role == "intermediate"]
        return {name: self.values[name].type for name in computed}

    def require_free(self, owner: str, name: str) -> None:
        """Refuse a name that something has already."""
        if self._is_taken(name):
            raise ProgramError(
                f"{owner}: the name must be free, but the program has {name!r} already"
                f"{built_at(user_origin())}"
            )

    # Inputs

    def _operand(self, operator: Operator, index: int, value: Any) -> str | None:
        """The name of what fills a slot; numbers and arrays get records of their own."""
        if value is None:
            return None
        slot = operator.slot_of(index)
        if value is LEFT_OUT:
            if slot.role == "key":
                return self._drawn()
            if slot.role == "training":
                return self.leaf(training_flag())
            raise ArgumentError(f"{operator.name}: slot {slot.name!r} must be filled, got nothing")
        if isinstance(value, Variable):
            if value.block is not self:
                raise ProgramError(
                    f"{operator.name}: the inputs must be of one program, got {value.name!r} of "
                    "another"
                )
            changing = slot.name in operator.updates
            return self.desc.updates.get(value.name, value.name) if changing else value.name
        if isinstance(value, _Filled):
            return self.leaf(value.node)
        if isinstance(value, jax.core.Tracer):
            raise ArgumentError(
                f"{operator.name}: a variable of a program must not meet an array that JAX traces; "
                "where functions of control flow use variables, one of the values that enter must "
                "be a variable, too"
            )
        if isinstance(value, Var):
            raise ArgumentError(
                f"{operator.name}: variables of a program and other values must not be mixed, got "
                f"a {type(value).__name__}; feed it, or make it a parameter"
            )
        return self.leaf(as_node(value))

    def leaf(self, node: Node) -> str:
        """The name of a constant, an array, the training flag or a new random key."""
        if node.op is KEY:
            return self._drawn()
        known = self._leaves.get(node)
        if known is None:
            known = self._leaves[node] = self.fresh(node.op.name)
            self.desc.ops.append(Writer({node: {0: known}}, {}, self.sub_blocks).op_desc(node))
            self._definitions.define_outputs(self.desc.ops[-1], {"out": node})
        return known

    def _drawn(self) -> str:
        """The name of a new random key."""
        name, index = self.fresh(KEY.name), len(self.desc.ops)
        keys = self._definitions.keys
        attrs = {"rank": len(keys)}
        self.desc.ops.append(OpDesc(KEY.name, outputs={"out": [name]}, attrs=attrs))
        self._definitions.load_key(index)
        self._definitions.load_op(self.desc.ops[-1], index)
        return name

    def _with_parameters(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str
    ) -> Inputs:
        """``inputs`` with a new parameter or state in each slot of a layer that was left out."""
        types = tuple([_type_of(one) for one in inputs])
        dtype = next((t.dtype for t in types if t is not None and t.differentiable), None)
        unknown = (None,) * len(operator.outputs)
        shapes = operator.inference.complete(types, attributes, unknown)
        made = list(inputs)
        for i, slot in enumerate(operator.slots[: operator.n_fixed]):
            if made[i] is not LEFT_OUT or not slot.created:
                continue
            if i not in shapes or dtype is None:
                raise ArgumentError(
                    f"{operator.name}: the shape of {slot.name!r} must follow from the other "
                    "inputs, and does not; pass it"
                )
            role = "state" if slot.role == "state" else "parameter"
            attrs = {} if slot.initial is None else {"initial": repr(slot.initial)}
            full = f"{name}_{slot.name}"
            var = VarDesc(full, list(shapes[i]), dtype.name, role=role, attrs=attrs)
            made[i] = self.add_variable(var)
        return tuple(made)

    def append(self, desc: OpDesc) -> None:
        """Add the record of a call, with what it defines.

        Raises:
            FormatError: something in it is wrong.
        """
        index = len(self.desc.ops)
        self.desc.ops.append(desc)
        with self._definitions.placed("ops", index):
            self._definitions.load_op(desc, index)
        for names in desc.outputs.values():
            for name in names:
                self._declare(name)


def _outputs(op: OpDesc) -> list[str]:
    return [name for names in op.outputs.values() for name in names]


def _type_of(value: Any) -> VarType | None:
    if value is None or value is LEFT_OUT:
        return None
    return value.type if isinstance(value, Var) else as_node(value).type


# Calls -----------------------------------------------------------------------------------------


class VariableEmitter:
    """Calling an operator on variables of a program appends the call to it."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        """The variable that holds the result, or a tuple when there are several."""
        blocks = [one.block for one in inputs if isinstance(one, Variable)]
        if not blocks:
            raise ArgumentError(f"{operator.name}: an input must be a variable, got none")
        made = blocks[0].call(operator, inputs, attributes, name)
        return made[0] if len(made) == 1 else tuple(made)

    def filled(self, value: bool | int | float | complex, type: VarType) -> _Filled:
        """A number in every entry of ``type``."""
        return _Filled(constant(value, type))


Variable.emitter = _Filled.emitter = VariableEmitter()
