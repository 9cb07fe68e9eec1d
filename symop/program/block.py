"""Blocks of programs: records of calls, and the graph nodes they describe."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax

from registry.desc import BlockDesc, OpDesc, VarDesc
from registry.errors import (
    ArgumentError,
    DTypeError,
    FeedError,
    FormatError,
    KindError,
    ProgramError,
    ShapeError,
    nearest,
)
from registry.hooks import define
from registry.naming import differentiated
from registry.operator.binding import LEFT_OUT, is_new
from registry.operator.bodies import Body
from registry.operator.operator import Operator
from registry.symbolic import Symbolic
from registry.tracebacks import api_boundary
from registry.types import VarType
from registry.var import Attributes, Inputs, Var, infix
from symop.graph.naming import current_prefix, layer_name, scoped_name, shares_parameters
from symop.graph.nodes import (
    KEY,
    Node,
    as_node,
    built_at,
    constant,
    training_flag,
    user_origin,
)
from symop.graph.origins import site_of
from symop.io.definitions import Allowance, Definitions, Place
from symop.io.listing import excerpt
from symop.io.records import LEAVES, SubBlocks, Writer, plain_attributes
from symop.program.declaring import variable_record
from symop.runtime.creation import New, new_variables, require_shape
from symop.symbol.symbol import Incomparable


class Variable(Symbolic):
    """A named value of a program; operators called on it are appended to the program.

    A variable that persists between runs (a parameter, a state) reads as its value at the start of
    the run, wherever it is used; ``program.update`` sets the value it holds afterwards.

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
        """Creates a handle to ``name`` in ``block``; users call ``program.data`` and operators."""
        self.block, self.name = block, name

    def _remedy(self) -> str:
        return f"compute it by program.run(..., fetch=[{self.name!r}])"

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
        """The number that fills the value, if the program knows it."""
        return self.node.constant

    @property
    def persistable(self) -> bool:
        """Whether the value persists between runs."""
        return self.desc.persistable

    @property
    def stop_gradient(self) -> bool:
        """Whether gradients stop here; may be set until ``append_backward`` is called."""
        return self.desc.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, stops: bool) -> None:
        self.desc.stop_gradient = bool(stops)

    @api_boundary
    def __getitem__(self, index: Any) -> Any:
        self._refuse_masks(index)
        return infix["[]"](self, index)

    @api_boundary
    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    # As for symbols, Python evaluates ``a == b`` as a truth value to find a variable in a list.

    def __eq__(self, other: object) -> Any:
        return self._compared("==", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("!=", other)

    def _compared(self, sign: str, other: object) -> Any:
        try:
            return infix[sign](self, other)
        except (DTypeError, ProgramError, ShapeError) as error:
            if isinstance(other, Variable):
                return Incomparable(error, truth=sign == "!=")
            raise

    @api_boundary
    def __bool__(self) -> bool:
        for sign, expected in (("==", True), ("!=", False)):
            sides = self.block.take_back_comparison(self.name, infix[sign])
            if sides is not None:
                return (sides[0] == sides[1]) is expected
        return super().__bool__()

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<Variable {self.name}: {self.type}>"


class _Filled(Symbolic):
    """A number in every entry of a type, not yet part of any program."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def type(self) -> VarType:
        return self.node.type

    @property
    def constant(self) -> bool | int | float | complex | None:
        return self.node.constant


class _Extent(NamedTuple):
    """The numbers of records of a block at some time, and its updates."""

    ops: int
    vars: int
    values: int
    given: int
    blocks: int
    updates: dict[str, str]


class Block:
    """Records of variables and calls in call order, each with its nodes.

    Every variable is assigned once. When a call updates a state, the new value has its own name;
    ``desc.updates`` maps each state to the value it holds after a run.

    Attributes:
        desc: the records.
        variables: records of all variables by name, including computed ones.
        serial: a counter that increases with each change.
    """

    def __init__(
        self,
        desc: BlockDesc | None = None,
        place: Place | None = None,
        bodies: Mapping[int, Body] | None = None,
        others: Sequence[BlockDesc] = (),
        allowance: Allowance | None = None,
    ) -> None:
        """Creates an empty block, or the block that ``desc`` records.

        Args:
            desc: the records.
            place: describes the location of a record.
            bodies: the bodies of the other blocks, by block index.
            others: the other blocks.
            allowance: limits what untrusted records may create beyond themselves.

        Raises:
            FormatError: the records are invalid.
        """
        self.desc = BlockDesc() if desc is None else desc
        self.sub_blocks = SubBlocks()
        self.sub_blocks.blocks += others
        for number, body in (bodies or {}).items():
            self.sub_blocks.indices.setdefault(body, number)
        self._bodies = dict(bodies or {})
        self._definitions = Definitions(self.desc, place or self.place, self.body)
        self._definitions.load(allowance)
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
        """Returns the location of a record, for messages."""
        return f"{part}[{index}]" if part != "ops" else excerpt(self.desc, index)

    def body(self, number: int) -> Body:
        """Returns the body formed by the block of this index."""
        if number not in self._bodies:
            self._bodies |= {i: one for one, i in self.sub_blocks.indices.items()}
        if number not in self._bodies:
            raise FormatError(f"block {number} is not there, of {len(self.blocks)}")
        return self._bodies[number]

    @property
    def blocks(self) -> list[BlockDesc]:
        """The blocks of the program; this block is the first."""
        return [self.desc, *self.sub_blocks.blocks]

    @property
    def values(self) -> dict[str, Node]:
        """The nodes of all variables, by name."""
        return self._definitions.values

    @property
    def key_nodes(self) -> dict[int, Node]:
        """The random keys by the indices of their records, in the order of their ranks."""
        return self._definitions.keys

    def variable(self, name: str) -> Variable:
        """Returns the variable called ``name``.

        Raises:
            FeedError: no variable has this name.
        """
        if name not in self.values:
            raise FeedError(
                f"program: a variable must be in it, got {name!r}{nearest(name, self.values)}"
            )
        return Variable(self, name)

    def fresh(self, stem: str) -> str:
        """Returns an unused name: ``stem`` and a number."""
        while True:
            name = f"{stem}{next(self._counters[stem])}"
            if not self._is_taken(name):
                return name

    def _layer_name(self, stem: str) -> str:
        """Returns a name for a call that creates parameters, in the current name scope."""
        return layer_name(stem) if current_prefix() else self.fresh(stem)

    def _is_taken(self, name: str) -> bool:
        return name in self.values or name in self._definitions.given

    def free(self, name: str) -> str:
        """Returns ``name`` if it is unused, otherwise ``name`` and a number."""
        return self.fresh(name) if self._is_taken(name) else name

    # Variables

    def declare(self, role: str, name: str, *described: Any, **more: Any) -> Variable:
        """Adds a variable that is fed or persists between runs; see ``declared`` for arguments."""
        full = scoped_name(name, role)
        self.require_free(role, full)
        return self.add_variable(variable_record(role, full, *described, **more))

    def add_variable(self, var: VarDesc) -> Variable:
        """Adds a variable that is fed or persists between runs.

        Raises:
            FormatError: the record is wrong, or the name is taken.
        """
        self._definitions.load_variable(var)
        self.desc.vars.append(var)
        self.variables[var.name] = var
        self.serial += 1
        return Variable(self, var.name)

    def _declare(self, name: str) -> None:
        """Records the type of a computed value."""
        type = self.values[name].type
        var = VarDesc(name, list(type.shape), type.dtype.name, type.kind.value)
        self.desc.vars.append(var)
        self.variables[name] = var

    def set_update(self, state: str, value: str) -> None:
        """Sets ``state`` to ``value`` at the end of each run.

        Raises:
            ProgramError: ``state`` does not persist between runs, or its type differs.
        """
        if state not in self.variables or not self.variables[state].persistable:
            raise ProgramError(f"update: {state!r} must be a parameter or a state, and is neither")
        kept, new = self.values[state].type, self.values[value].type
        if kept.strong() is not new.strong():
            raise ProgramError(f"update: {state!r} must become a value of type {kept}, got {new}")
        self.desc.updates[state] = value
        self.serial += 1

    # Calls

    @contextmanager
    def atomically(self) -> Iterator[None]:
        """Reverts everything recorded within the context if it raises."""
        before = self._extent()
        try:
            yield
        except BaseException:
            self._revert(before)
            raise
        self.serial += 1

    def _extent(self) -> "_Extent":
        return _Extent(
            len(self.desc.ops),
            len(self.desc.vars),
            len(self.values),
            len(self._definitions.given),
            len(self.sub_blocks.blocks),
            dict(self.desc.updates),
        )

    def _revert(self, before: "_Extent") -> None:
        """Removes what was recorded after ``before``."""
        del self.desc.ops[before.ops :]
        for var in self.desc.vars[before.vars :]:
            del self.variables[var.name]
        del self.desc.vars[before.vars :]
        for name in list(self.values)[before.values :]:
            del self.values[name]
        for name in list(self._definitions.given)[before.given :]:
            del self._definitions.given[name]
        self.sub_blocks.forget(before.blocks)
        self._bodies = {i: one for i, one in self._bodies.items() if i <= before.blocks}
        keys = self._definitions.keys
        for index in [one for one in keys if one >= before.ops]:
            del keys[index]
        self._leaves = {node: one for node, one in self._leaves.items() if one in self.values}
        self.desc.updates = before.updates

    def take_back_comparison(self, name: str, operator: Any) -> tuple[str, str] | None:
        """Returns the variables that the call ``name`` compares, or None if it is another call.

        A call that was recorded last is removed: it was made for its truth value.
        """
        desc = next((one for one in reversed(self.desc.ops) if name in _outputs(one)), None)
        if desc is None or desc.type != operator.name:
            return None
        left, right = (one for names in desc.inputs.values() for one in names)
        if not {left, right}.isdisjoint(self._leaves.values()):
            return None  # it compares with a number
        if desc is self.desc.ops[-1]:
            now = self._extent()
            self._revert(now._replace(ops=now.ops - 1, vars=now.vars - 1, values=now.values - 1))
            self.serial += 1
        return left, right

    def call(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> list[Variable]:
        """Records a call and returns its visible outputs.

        Raises:
            SymopError: the inputs do not fit the operator.
        """
        with self.atomically():
            if name is not None:
                name = scoped_name(name, operator.name)
                if not shares_parameters():
                    self.require_free(operator.name, name)
            if operator.creates and any(map(is_new, inputs)):
                name = name or self._layer_name(operator.name)
                inputs = self._with_parameters(operator, inputs, attributes, name)
            if shares_parameters():
                name = None
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
        outputs = self._output_names(operator, name or self.fresh(operator.name))
        groups = operator.input_groups(names)
        desc = OpDesc(
            operator.name,
            {slot.name: list(members) for slot, members in groups if members},
            {key: [one] for key, one in outputs.items()},
            plain_attributes(operator, attributes, self.sub_blocks),
            name,
            site_of(user_origin()),
        )
        self.desc.ops.append(desc)
        nodes = tuple([None if one is None else self.values[one] for one in names])
        try:
            self._definitions.define_call(desc, operator, nodes, attributes)
        except KindError as error:
            kinds = [f"{one} is {self.values[one].type.kind}" for one in names if one is not None]
            raise KindError(f"{error}\n  where {', '.join(kinds)}") from error.__cause__
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
        """Records the new value that a call computed from a state or from its earlier update."""
        origin = {value: kept for kept, value in self.desc.updates.items()}.get(state or "", state)
        if origin is not None and origin in self.variables and self.variables[origin].persistable:
            self.set_update(origin, new)

    def derived_by(self, names: Iterable[str]) -> set[str] | None:
        """Returns the variables with respect to which the gradients behind ``names`` were taken.

        The result is None if ``names`` depend on no gradient and no known number. A gradient may be
        constant in its arguments, and no longer read them. Its derivative with respect to an
        argument that it does not read is zero, not missing.
        """
        needed = set(names)
        derives = any(self.values[name].constant is not None for name in needed)
        for op in reversed(self.desc.ops):
            if not needed.isdisjoint(_outputs(op)):
                derives = derives or op.gradient_of is not None
                needed.update(name for inputs in op.inputs.values() for name in inputs)
        return {differentiated(name) for name in needed} if derives else None

    def types(self) -> dict[str, VarType]:
        """Returns the types of the computed variables by name."""
        computed = [n for n, var in self.variables.items() if var.role == "intermediate"]
        return {name: self.values[name].type for name in computed}

    def require_free(self, owner: str, name: str) -> None:
        """Raises ``ProgramError`` if a name is taken."""
        if self._is_taken(name):
            raise ProgramError(
                f"{owner}: the name must be free, but the program has {name!r} already"
                f"{built_at(user_origin())}"
            )

    # Inputs

    def _operand(self, operator: Operator, index: int, value: Any) -> str | None:
        """Returns the name of the value in a slot; numbers and arrays get their own records."""
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
        """Returns the name of a constant, an array, the training flag or a new random key."""
        if node.op is KEY:
            return self._drawn()
        known = self._leaves.get(node)
        if known is None:
            known = self._leaves[node] = self.fresh(node.op.name)
            self.desc.ops.append(Writer({node: {0: known}}, {}, self.sub_blocks).op_desc(node))
            self._definitions.define_outputs(self.desc.ops[-1], {"out": node})
        return known

    def _drawn(self) -> str:
        """Returns the name of a new random key."""
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
        """Returns ``inputs`` with a new parameter or state in each omitted slot of a layer."""
        types = tuple([_type_of(one) for one in inputs])
        declared = new_variables(operator, inputs, types, attributes)
        result: list[Any] = []
        for i, value in enumerate(inputs):
            new = [self._new_parameter(operator, name, one) for one in declared.get(i, ())]
            result += new or [value]
        return tuple(result)

    def _new_parameter(self, operator: Operator, name: str, new: New) -> Variable:
        shape, dtype = require_shape(operator, new), new.dtype
        assert dtype is not None
        role = "state" if new.role == "state" else "parameter"
        full, attrs = f"{name}_{new.name}", dict(new.extra)
        shared = self.variables.get(full) if shares_parameters() else None
        if shared is not None and shared.shape == list(shape) and shared.dtype == dtype.name:
            return Variable(self, full)
        return self.add_variable(VarDesc(full, list(shape), dtype.name, role=role, attrs=attrs))

    def append(self, desc: OpDesc) -> None:
        """Appends the record of a call and defines its outputs.

        Raises:
            FormatError: the record is invalid.
        """
        index = len(self.desc.ops)
        self.desc.ops.append(desc)
        with self._definitions.placed("ops", index):
            self._definitions.load_op(desc, index)
        for names in self.desc.ops[index].outputs.values():
            for name in names:
                self._declare(name)


def _outputs(op: OpDesc) -> list[str]:
    return [name for names in op.outputs.values() for name in names]


def _type_of(value: Any) -> VarType | None:
    if value is None or is_new(value):
        return None
    return value.type if isinstance(value, Var) else as_node(value).type


# Calls -----------------------------------------------------------------------------------------


class VariableEmitter:
    """Appends operator calls on variables to their program."""

    creates = True

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        """Returns the variable that holds the result, or a tuple for several results."""
        blocks = [one.block for one in inputs if isinstance(one, Variable)]
        if not blocks:
            raise ArgumentError(f"{operator.name}: an input must be a variable, got none")
        results = blocks[0].call(operator, inputs, attributes, name)
        return results[0] if len(results) == 1 else tuple(results)

    def filled(self, value: bool | int | float | complex, type: VarType) -> _Filled:
        """Returns a number in every entry of ``type``."""
        return _Filled(constant(value, type))


for _class in (Variable, _Filled):
    define(_class, emitter=VariableEmitter())
