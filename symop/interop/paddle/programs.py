"""Programs of Paddle: their records, views of blocks and variables, and conversions to graphs."""

import copy
import hashlib
import inspect
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle import unique_name
from symop.interop.paddle.compiling import Type, translate
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import (
    CODES,
    DTYPES,
    AttrType,
    BlockDesc,
    OpDesc,
    ProgramDesc,
    VarDesc,
    VarKind,
    parse,
    serialize,
)
from symop.interop.paddle.indexing import slicing
from symop.interop.paddle.inference import infer
from symop.interop.paddle.operators import find
from symop.interop.paddle.roles import FORWARD, Role

VERSION = 1_008_005
"""The version of Paddle whose operators new programs have."""

_RANDOM = frozenset(
    {"dropout", "sampling_id", "randint", "randperm", "bernoulli", "multinomial", "dpsgd"}
)
"""Operators that draw random numbers, besides those with ``random`` in their names."""

Slots: TypeAlias = Mapping[str, "Variable | str | Sequence[Variable | str] | None"]
"""Variables, or their names, by slot."""


def dtype_of(dtype: Any) -> np.dtype[Any]:
    """Returns a dtype that is given by name, as NumPy's, or as the number of Paddle's files.

    Raises:
        PaddleError: there is no such dtype in Paddle.
    """
    found = DTYPES.get(dtype) if isinstance(dtype, int) else np.dtype(jnp.dtype(dtype))
    if found is None or found not in CODES:
        raise PaddleError(f"dtype: it must be one of {', '.join(map(str, CODES))}, got {dtype!r}")
    return found


def code_of(dtype: Any) -> int:
    """Returns the number of a dtype in Paddle's files."""
    return CODES[dtype_of(dtype)]


@dataclass
class Training:
    """What is known of a parameter beside its record.

    Attributes:
        trainable: whether optimizers update it.
        optimize_attr: ``learning_rate``, a factor of the optimizer's.
        regularizer: adds to its gradient, in place of the optimizer's.
        need_clip: whether clipping changes its gradient.
    """

    trainable: bool = True
    optimize_attr: dict[str, float] = field(default_factory=lambda: {"learning_rate": 1.0})
    regularizer: Any = None
    need_clip: bool = True


class Program:
    """A program of Paddle, loaded or built.

    Attributes:
        records: its records, for those that do not change them.
        accesses: how often the records were handed out to be read or changed.
        max_steps: the largest number of steps of loops whose number of steps is not known when the
            program is compiled; loops with gradients need one.
        random_seed: the seed of its random operators; 0 takes another one in each run.
        gradient_times: how often gradients were appended.
        training: what is known of parameters beside their records.
        role: the role of operators that are appended.
        branches: the blocks that operators run if a condition holds, as far as layers made them.
    """

    def __init__(self, desc: ProgramDesc | None = None, *, max_steps: int | None = None) -> None:
        """Wraps the records of a program, or starts an empty one."""
        self.records = ProgramDesc([BlockDesc(0, -1)], VERSION) if desc is None else desc
        self.accesses = 0
        self.max_steps = max_steps
        self.random_seed = 0
        self.gradient_times = 0
        self.training: dict[str, Training] = {}
        self.role = Role(FORWARD, ())
        self.branches: set[int] = set()
        self._current = 0
        self._variables: dict[tuple[int, str], Variable] = {}

    @property
    def desc(self) -> ProgramDesc:
        """The records. Executors look for changes in them once they were asked for."""
        self.accesses += 1
        return self.records

    # Blocks ------------------------------------------------------------------------------------

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""
        return len(self.desc.blocks)

    @property
    def blocks(self) -> list["Block"]:
        """All blocks."""
        return [Block(self, i) for i in range(self.num_blocks)]

    def block(self, index: int) -> "Block":
        """Returns a block by its index."""
        return self.blocks[index]

    def global_block(self) -> "Block":
        """Returns the first block."""
        return Block(self, 0)

    def current_block(self) -> "Block":
        """Returns the block that layers append to."""
        return Block(self, self._current)

    def create_block(self, parent_idx: int | None = None) -> "Block":
        """Adds a block and makes it the current one."""
        parent = self._current if parent_idx is None else parent_idx
        self._current = self.num_blocks
        self.desc.blocks.append(BlockDesc(self._current, parent))
        return self.current_block()

    def gradient_block(self, forward_idx: int, parent_idx: int) -> "Block":
        """Adds the block of the gradient of another one; layers do not append to it."""
        index = self.num_blocks
        self.desc.blocks.append(BlockDesc(index, parent_idx, forward_block_idx=forward_idx))
        return self.block(index)

    def rollback(self) -> None:
        """Makes the parent of the current block the current one."""
        self._current = self.current_block().parent_idx

    # Variables ---------------------------------------------------------------------------------

    def variable(self, index: int, name: str) -> "Variable":
        """Returns the variable of a block, always the same object."""
        desc = self.desc.blocks[index].vars[name]
        found = self._variables.get((index, name))
        if found is None or not found.has_record(desc):
            found = self._variables[index, name] = Variable(Block(self, index), desc)
        return found

    def list_vars(self) -> Iterator["Variable"]:
        """Yields the variables of all blocks."""
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self) -> list["Variable"]:
        """Returns the parameters of the program."""
        return self.global_block().all_parameters()

    # Copies ------------------------------------------------------------------------------------

    def clone(self, for_test: bool = False) -> "Program":
        """Returns a copy.

        Args:
            for_test: whether ``batch_norm``, ``dropout`` and others become those of inference, and
                operators of gradients and updates are left out.
        """
        copied = Program(copy.deepcopy(self.desc), max_steps=self.max_steps)
        copied.random_seed, copied.gradient_times = self.random_seed, self.gradient_times
        copied.training = copy.deepcopy(self.training)
        if for_test:
            copied._infer()
        return copied

    def _infer(self) -> None:
        for block in self.desc.blocks:
            block.ops = [op for op in block.ops if Role.of(op).is_forward]
            for op in block.ops:
                if "is_test" in op.attrs:
                    op.attrs["is_test"] = True

    @staticmethod
    def parse_from_string(binary: bytes) -> "Program":
        """Reads a program from the content of a file."""
        return Program(parse(binary))

    def serialize_to_string(self) -> bytes:
        """Returns the content of a file of the program."""
        return serialize(self.desc)

    def fingerprint(self) -> bytes:
        """Returns a digest of the records, by which compiled programs are found again.

        It is taken in each run, so it is not that of the file, which takes a hundred times as long.
        """
        parts = [
            (
                block.parent_idx,
                [(one.type, one.inputs, one.outputs, one.attrs) for one in block.ops],
                [_key(one) for one in block.vars.values()],
            )
            for block in self.records.blocks
        ]
        return hashlib.sha256(pickle.dumps(parts)).digest()

    @property
    def draws(self) -> bool:
        """Whether operators draw random numbers."""
        return any(
            "random" in op.type or op.type in _RANDOM
            for one in self.records.blocks
            for op in one.ops
        )

    # Text --------------------------------------------------------------------------------------

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """Returns a text of the program, one operator a line.

        Args:
            throw_on_error: accepted as in Paddle.
            with_details: whether variables are listed too.
        """
        return "\n".join(block.to_string(throw_on_error, with_details) for block in self.blocks)

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        operators = len(self.desc.blocks[0].ops)
        return f"<Program: {self.num_blocks} blocks, {operators} operators in the first>"

    # Graphs ------------------------------------------------------------------------------------

    def to_symbol(
        self, fetch: Sequence[Any], types: Mapping[str, tuple[Sequence[int], Any]]
    ) -> so.Symbol:
        """Returns variables of the program as a graph of its feeds and persistable variables.

        Args:
            fetch: variables, or their names.
            types: shape and dtype of each feed and of each persistable variable that is read.
        """
        known = {name: Type(tuple(shape), dtype) for name, (shape, dtype) in types.items()}
        names = [name_of(one) for one in fetch]
        return so.Group(translate(self.desc, {}, known, names, self.max_steps).fetched)


class Block:
    """A block of a program: a view of its record.

    Attributes:
        program: the program.
        idx: the block's index.
    """

    __slots__ = ("idx", "program")

    def __init__(self, program: Program, idx: int) -> None:
        """Makes a view of block ``idx``."""
        self.program = program
        self.idx = idx

    @property
    def desc(self) -> BlockDesc:
        """The record."""
        return self.program.desc.blocks[self.idx]

    @property
    def parent_idx(self) -> int:
        """The block whose variables it sees, or -1."""
        return self.desc.parent_idx

    @property
    def ops(self) -> list[OpDesc]:
        """The operators, in the order in which they run."""
        return self.desc.ops

    @property
    def vars(self) -> dict[str, "Variable"]:
        """The variables, by name."""
        return {name: self.program.variable(self.idx, name) for name in self.desc.vars}

    def has_var(self, name: str) -> bool:
        """Returns whether the block itself has a variable."""
        return name in self.desc.vars

    def var(self, name: str) -> "Variable":
        """Returns a variable of the block.

        Raises:
            PaddleError: the block has no such variable.
        """
        if name not in self.desc.vars:
            raise PaddleError(f"var: block {self.idx} must have the variable, got {name!r}")
        return self.program.variable(self.idx, name)

    def find_var(self, name: str) -> "Variable":
        """Returns the variable that a name denotes: the block's, or that of a block around.

        Raises:
            PaddleError: none has one.
        """
        owner = self.program.desc.owner_of(self.desc, name)
        if owner is None:
            raise PaddleError(f"block {self.idx}: a variable must be declared, got {name!r}")
        return self.program.variable(owner.idx, name)

    def all_parameters(self) -> list["Variable"]:
        """Returns the parameters."""
        return [one for one in self.vars.values() if one.desc.is_parameter]

    def create_var(
        self,
        name: str | None = None,
        shape: Sequence[int] | None = None,
        dtype: Any = "float32",
        *,
        type: VarKind = VarKind.LOD_TENSOR,
        lod_level: int = 0,
        persistable: bool = False,
        stop_gradient: bool = False,
        need_check_feed: bool = False,
        is_data: bool = False,
    ) -> "Variable":
        """Declares a variable and returns it; without a dtype it is no tensor and has no shape."""
        label = unique_name.generate("_generated_var") if name is None else name
        self.desc.vars[label] = VarDesc(
            label,
            type,
            None if dtype is None else dtype_of(dtype),
            None if dtype is None else tuple(int(one) for one in shape or ()),
            lod_level,
            persistable,
            need_check_feed or is_data,
            stop_gradient=stop_gradient,
        )
        return self.var(label)

    def create_parameter(
        self,
        name: str,
        shape: Sequence[int],
        dtype: Any = "float32",
        *,
        training: Training | None = None,
    ) -> "Variable":
        """Declares a parameter and returns it."""
        known = training or Training()
        found = self.create_var(
            name, shape, dtype, persistable=True, stop_gradient=not known.trainable
        )
        found.desc.is_parameter = True
        self.program.training[name] = known
        return found

    # Operators ---------------------------------------------------------------------------------

    def append_op(
        self,
        type: str,
        inputs: Slots | None = None,
        outputs: Slots | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> OpDesc:
        """Appends a call; the types of outputs are inferred.

        Args:
            type: the operator.
            inputs: variables, or their names, by slot.
            outputs: variables by slot. Names that the block does not declare are declared.
            attrs: attributes; those that are missing have Paddle's defaults.

        Raises:
            PaddleError: the operator is not defined, or the inputs do not fit it.
        """
        op = self._record(type, inputs or {}, outputs or {}, attrs or {})
        self.ops.append(op)
        try:
            self._declare_outputs(op)
        except PaddleError:
            self.ops.pop()
            raise
        return op

    def prepend_op(
        self, type: str, inputs: Slots, outputs: Slots, attrs: Mapping[str, Any]
    ) -> OpDesc:
        """Puts a call before all others."""
        op = self._record(type, inputs, outputs, attrs)
        self.ops.insert(0, op)
        return op

    def call(
        self,
        type: str,
        inputs: Slots,
        attrs: Mapping[str, Any] | None = None,
        *,
        output: str = "Out",
        name: str = "tmp",
    ) -> "Variable":
        """Appends a call with one output and returns this.

        Args:
            type: the operator.
            inputs: variables, or their names, by slot.
            attrs: attributes.
            output: the slot of the output.
            name: the beginning of its name.
        """
        label = unique_name.generate(name)
        self.append_op(type, inputs, {output: [label]}, attrs)
        return self.var(label)

    def _record(self, name: str, inputs: Slots, outputs: Slots, attrs: Mapping[str, Any]) -> OpDesc:
        values, kinds = _attributes(name, attrs)
        op = OpDesc(name, _names(inputs), _names(outputs), values, kinds)
        self.program.role.mark(op)
        return op

    def _declare_outputs(self, op: OpDesc) -> None:
        types = infer(self.program.desc, op, lambda name: self.find_var(name).desc)
        for name in op.output_arg_names:
            found = types.get(name)
            variable = self._declared(name)
            if found is None or variable.persistable:
                continue
            variable.kind, variable.dtype = found.kind, found.dtype
            variable.shape, variable.lod_level = found.shape, found.lod_level

    def _declared(self, name: str) -> VarDesc:
        try:
            return self.find_var(name).desc
        except PaddleError:
            return self.create_var(name).desc

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """Returns a text of the block; see ``Program.to_string``."""
        del throw_on_error
        lines = [f"block {self.idx} (parent {self.parent_idx})"]
        if with_details:
            lines += [f"  {one}" for one in self.vars.values()]
        return "\n".join([*lines, *(f"  {_line(op)}" for op in self.ops)])


def _key(variable: VarDesc) -> tuple[Any, ...]:
    kind = (int(variable.kind), hash(variable.dtype), variable.lod_level)
    return variable.name, variable.shape, variable.persistable, kind


def _line(op: OpDesc) -> str:
    inputs = ", ".join(f"{slot}={names}" for slot, names in op.inputs.items())
    outputs = ", ".join(f"{slot}={names}" for slot, names in op.outputs.items())
    attrs = ", ".join(f"{k}={v!r}" for k, v in op.attrs.items() if not k.startswith("op_"))
    return f"{{{outputs}}} = {op.type}({inputs}; {attrs})"


def name_of(variable: Any) -> str:
    """Returns the name of a variable, or the name that is given itself."""
    return str(getattr(variable, "name", variable))


def _names(slots: Slots) -> dict[str, list[str]]:
    return {
        slot: [name_of(one) for one in (given if isinstance(given, (list, tuple)) else [given])]
        for slot, given in sorted(slots.items())
        if given is not None
    }


def _attributes(name: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, AttrType]]:
    """Returns attributes with Paddle's defaults, and their types.

    Raises:
        PaddleError: the operator is not defined, or a value has the wrong type.
    """
    definition = find(name)
    declared = {} if definition is None else definition.attributes
    defaults = {key: one for key, one in declared.items() if one is not inspect.Parameter.empty}
    filled = {key: value for key, value in defaults.items() if value is not None}
    values = {
        key: _coerced(f"{name}: {key}", value, defaults.get(key))
        for key, value in {**filled, **given}.items()
        if value is not None and (key in given or not isinstance(value, (list, tuple)) or value)
    }
    kinds = {key: kind for key, value in values.items() if (kind := _kind(name, key, value))}
    return values, kinds


_LONG = {
    "fill_constant": ("shape",),
    "uniform_random": ("shape",),
    "gaussian_random": ("shape",),
    "lookup_table": ("padding_idx",),
    "lookup_table_v2": ("padding_idx",),
}
"""Attributes of 64 bits."""


def _kind(name: str, key: str, value: Any) -> AttrType | None:
    if key in _LONG.get(name, ()):
        return AttrType.LONGS if isinstance(value, list) else AttrType.LONG
    return AttrType.BLOCK if key == "sub_block" else None


def _coerced(what: str, value: Any, default: Any) -> Any:
    """Returns a value in the type of the default: Paddle tells 1 from 1.0."""
    if isinstance(value, (list, tuple)):
        return [one.item() if isinstance(one, np.generic) else one for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(default, bool) and isinstance(value, (bool, int)):
        return bool(value)
    if isinstance(default, float) and isinstance(value, (int, float)):
        return float(value)
    if (
        default is not None
        and not isinstance(value, type(default))
        and not isinstance(default, (tuple, list))
    ):
        raise PaddleError(f"{what} must be of type {type(default).__name__}, got {value!r}")
    return value


class Variable:
    """A variable of a block; operators of Python append calls.

    Attributes:
        block: the block.
    """

    def __init__(self, block: Block, desc: VarDesc) -> None:
        """Makes a view of a record."""
        self.block = block
        self._desc = desc

    @property
    def desc(self) -> VarDesc:
        """The record."""
        self.program.accesses += 1
        return self._desc

    def has_record(self, desc: VarDesc) -> bool:
        """Returns whether a record is that of the variable."""
        return self._desc is desc

    @property
    def name(self) -> str:
        """The name."""
        return self._desc.name

    @property
    def program(self) -> Program:
        """The program."""
        return self.block.program

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, -1 for an unknown length."""
        return self._desc.shape or ()

    @property
    def dtype(self) -> Any:
        """The dtype of the entries."""
        return self._desc.dtype

    @property
    def type(self) -> VarKind:
        """The kind."""
        return self._desc.kind

    @property
    def lod_level(self) -> int:
        """The number of levels of sequences."""
        return self._desc.lod_level

    @property
    def persistable(self) -> bool:
        """Whether the value outlives a run."""
        return self._desc.persistable

    @persistable.setter
    def persistable(self, value: bool) -> None:
        self.desc.persistable = value

    @property
    def stop_gradient(self) -> bool:
        """Whether no gradient flows to it."""
        return self._desc.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self.desc.stop_gradient = value

    @property
    def training(self) -> Training:
        """What is known of it as a parameter."""
        return self.program.training.setdefault(self.name, Training())

    @property
    def trainable(self) -> bool:
        """Whether optimizers update it, if it is a parameter."""
        return self.training.trainable and not self.stop_gradient

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.training.trainable = value
        self.stop_gradient = not value

    def astype(self, dtype: Any) -> "Variable":
        """Returns the values in another dtype."""
        attrs = {"in_dtype": code_of(self.dtype), "out_dtype": code_of(dtype)}
        return self._home().call("cast", {"X": self}, attrs)

    def __repr__(self) -> str:
        kind = "parameter" if self.desc.is_parameter else self.type.name.lower()
        return f"{self.name}: {kind}({', '.join(map(str, self.shape))}) of {self.dtype}"

    # Operators of Python -------------------------------------------------------------------------

    def _home(self) -> Block:
        """Returns the block that calls are appended to."""
        return self.program.current_block()

    def _scaled(self, scale: float, bias: float) -> "Variable":
        attrs = {"scale": float(scale), "bias": float(bias), "bias_after_scale": True}
        return self._home().call("scale", {"X": self}, attrs)

    def _constant(self, value: float) -> "Variable":
        """Returns a variable with one entry."""
        attrs = {"shape": [1], "dtype": code_of(self.dtype), "value": float(value)}
        found = self._home().call("fill_constant", {}, attrs)
        found.stop_gradient = True
        return found

    def _binary(self, name: str, other: Any, *, swapped: bool = False) -> "Variable":
        right = other if isinstance(other, Variable) else self._constant(other)
        x, y = (right, self) if swapped else (self, right)
        return self._home().call(name, {"X": x, "Y": y}, {"axis": -1})

    def _is_scaled_by(self, other: Any) -> bool:
        return isinstance(other, (int, float)) and jnp.issubdtype(self.dtype, np.floating)

    def __add__(self, other: Any) -> "Variable":
        if self._is_scaled_by(other):
            return self._scaled(1.0, other)
        return self._binary("elementwise_add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Variable":
        if self._is_scaled_by(other):
            return self._scaled(1.0, -other)
        return self._binary("elementwise_sub", other)

    def __rsub__(self, other: Any) -> "Variable":
        if self._is_scaled_by(other):
            return self._scaled(-1.0, other)
        return self._binary("elementwise_sub", other, swapped=True)

    def __mul__(self, other: Any) -> "Variable":
        if self._is_scaled_by(other):
            return self._scaled(other, 0.0)
        return self._binary("elementwise_mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Variable":
        if self._is_scaled_by(other):
            return self._scaled(1.0 / other, 0.0)
        return self._binary("elementwise_div", other)

    def __rtruediv__(self, other: Any) -> "Variable":
        return self._binary("elementwise_div", other, swapped=True)

    def __pow__(self, other: Any) -> "Variable":
        return self._binary("elementwise_pow", other)

    def __rpow__(self, other: Any) -> "Variable":
        return self._binary("elementwise_pow", other, swapped=True)

    def __floordiv__(self, other: Any) -> "Variable":
        return self._binary("elementwise_floordiv", other)

    def __mod__(self, other: Any) -> "Variable":
        return self._binary("elementwise_mod", other)

    def __neg__(self) -> "Variable":
        return self._scaled(-1.0, 0.0)

    def __lt__(self, other: Any) -> "Variable":
        return self._binary("less_than", other)

    def __le__(self, other: Any) -> "Variable":
        return self._binary("less_equal", other)

    def __gt__(self, other: Any) -> "Variable":
        return self._binary("greater_than", other)

    def __ge__(self, other: Any) -> "Variable":
        return self._binary("greater_equal", other)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, (Variable, int, float)):
            return NotImplemented
        return self._binary("equal", other)

    def __ne__(self, other: object) -> Any:
        if not isinstance(other, (Variable, int, float)):
            return NotImplemented
        return self._binary("not_equal", other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        """A variable has no value while a program is built.

        Raises:
            PaddleError: always.
        """
        raise PaddleError(
            "if: the condition must be known while a program is built; a variable has a value when "
            f"the program runs, got {self.name!r}"
        )

    def __getitem__(self, index: Any) -> "Variable":
        name, attrs = slicing(self.name, self.shape, index)
        return self._home().call(name, {"Input": self}, attrs)
