"""Paddle's programs as plain records, and the protobuf form of these.

``parse`` and ``serialize`` are inverse to each other. What a record does not represent, such as
fields that are unknown here, or default values that are present in the file, is kept as bytes
beside it, and comes back on writing.
"""

import enum
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

import ml_dtypes
import numpy as np

from registry.types import DType, Shape
from symop.interop.paddle.errors import PaddleError, PaddleFormatError
from symop.interop.paddle.messages import (
    Fault,
    Message,
    has_unknown,
    new,
    offset,
    parse_message,
)


class AttrType(enum.IntEnum):
    """The type of an operator's attribute."""

    INT = 0
    FLOAT = 1
    STRING = 2
    INTS = 3
    FLOATS = 4
    STRINGS = 5
    BOOLEAN = 6
    BOOLEANS = 7
    BLOCK = 8
    LONG = 9
    BLOCKS = 10
    LONGS = 11
    FLOAT64S = 12
    VAR = 13
    VARS = 14
    FLOAT64 = 15
    SCALAR = 16
    SCALARS = 17


class VarKind(enum.IntEnum):
    """The kind of a variable."""

    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    STEP_SCOPES = 11
    LOD_RANK_TABLE = 12
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    READER = 15
    FETCH_VAR_LIST = 16
    RAW = 17
    TUPLE = 18
    STRING = 25
    STRINGS = 26
    VOCAB = 27
    FEED_LIST = 28
    PSTRING = 29
    SPARSE_COO = 30
    SPARSE_CSR = 31


DTYPES: Mapping[int, DType] = {
    0: np.dtype(np.bool_),
    1: np.dtype(np.int16),
    2: np.dtype(np.int32),
    3: np.dtype(np.int64),
    4: np.dtype(np.float16),
    5: np.dtype(np.float32),
    6: np.dtype(np.float64),
    19: np.dtype(np.uint64),  # size_t
    20: np.dtype(np.uint8),
    21: np.dtype(np.int8),
    22: np.dtype(ml_dtypes.bfloat16),
    23: np.dtype(np.complex64),
    24: np.dtype(np.complex128),
    32: np.dtype(ml_dtypes.float8_e4m3fn),
    33: np.dtype(ml_dtypes.float8_e5m2),
}
"""Dtypes by the number that Paddle's files give them."""
CODES: Mapping[DType, int] = {dtype: code for code, dtype in DTYPES.items()}
"""Numbers of dtypes in Paddle's files."""
LIMIT = 1 << 26
"""The default limit on the size of a program in bytes, which is that of protobuf itself."""

_DETAILS = {
    VarKind.LOD_TENSOR: "lod_tensor",
    VarKind.SELECTED_ROWS: "selected_rows",
    VarKind.LOD_TENSOR_ARRAY: "tensor_array",
    VarKind.STRING: "string",
    VarKind.STRINGS: "strings",
    VarKind.VOCAB: "vocab",
    VarKind.SPARSE_COO: "sparse_coo",
    VarKind.SPARSE_CSR: "sparse_csr",
}
_WITH_LEVELS = (VarKind.LOD_TENSOR, VarKind.LOD_TENSOR_ARRAY)
_ORDER = "order"
"""The part of ``OpDesc.rest`` that holds the order of attributes, if one comes twice."""
_KINDS = frozenset(VarKind)
_FLAGS = ("persistable", "need_check_feed", "is_parameter", "stop_gradient")
MAX_LEVELS = 64
"""The maximal number of levels of sequences of a variable."""
_LARGEST_SINGLE = float(np.finfo(np.float32).max)
_T = TypeVar("_T")


# Records ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class OpDesc:
    """An operator's call.

    Attributes:
        type: the operator's name.
        inputs: names of variables by slot.
        outputs: names of variables by slot.
        attrs: attributes as Python values. A ``BLOCK`` is the block's index, a ``SCALAR`` a number.
        attr_types: the types of attributes in a file. An attribute without one is written with the
            type that its value suggests.
        is_target: whether pruning keeps the operator.
        rest: encoded fields that are not represented above, by the part that they belong to.
    """

    HOOKS: ClassVar[frozenset[str]] = frozenset({"gradient_ops"})
    """Members that higher layers define: the gradient operators of the call."""

    type: str
    inputs: dict[str, list[str]] = field(default_factory=dict)
    outputs: dict[str, list[str]] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    attr_types: dict[str, AttrType] = field(default_factory=dict)
    is_target: bool = False
    rest: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    def input(self, slot: str) -> list[str]:
        """Names of the variables in an input slot; empty if the call does not fill the slot."""
        return self.inputs.get(slot, [])

    def output(self, slot: str) -> list[str]:
        """Names of the variables in an output slot; empty if the call does not fill the slot."""
        return self.outputs.get(slot, [])

    def attr(self, name: str) -> Any:
        """An attribute's value.

        Raises:
            PaddleError: the call has no such attribute.
        """
        if name not in self.attrs:
            listed = ", ".join(self.attrs) or "none"
            raise PaddleError(f"{self.type}: an attribute must be among {listed}, got {name!r}")
        return self.attrs[name]

    def has_attr(self, name: str) -> bool:
        """Whether the call has an attribute."""
        return name in self.attrs

    @property
    def input_names(self) -> list[str]:
        """Names of the input slots."""
        return list(self.inputs)

    @property
    def output_names(self) -> list[str]:
        """Names of the output slots."""
        return list(self.outputs)

    @property
    def attr_names(self) -> list[str]:
        """Names of the attributes."""
        return list(self.attrs)

    @property
    def input_arg_names(self) -> list[str]:
        """Names of all variables in input slots."""
        return [name for names in self.inputs.values() for name in names]

    @property
    def output_arg_names(self) -> list[str]:
        """Names of all variables in output slots."""
        return [name for names in self.outputs.values() for name in names]

    def blocks(self) -> list[int]:
        """Indices of the blocks that the attributes name."""
        found = list[int]()
        for name, kind in self.attr_types.items():
            if name in self.attrs and kind == AttrType.BLOCK:
                found.append(self.attrs[name])
            elif name in self.attrs and kind == AttrType.BLOCKS:
                found.extend(self.attrs[name])
        return found


@dataclass(slots=True)
class VarDesc:
    """A variable.

    Attributes:
        name: its name.
        kind: its kind.
        dtype: dtype of its entries; None if the kind has none.
        shape: its shape, -1 for an unknown length; None if the kind has none. Paddle 1.8 writes
            ``()`` for an unknown shape, and -5 for the product of 5 and an unknown length.
        lod_level: its number of levels of sequences.
        persistable: whether it outlives a run.
        need_check_feed: whether Paddle checks shape and dtype of what is fed to it.
        is_parameter: whether it is trained (written by Paddle 2 only).
        stop_gradient: whether no gradient flows to it (written by Paddle 2 only).
        rest: encoded fields that are not represented above.
    """

    name: str
    kind: VarKind = VarKind.LOD_TENSOR
    dtype: DType | None = None
    shape: Shape | None = None
    lod_level: int = 0
    persistable: bool = False
    need_check_feed: bool = False
    is_parameter: bool = False
    stop_gradient: bool = False
    rest: bytes = field(default=b"", repr=False, compare=False)


@dataclass(slots=True)
class BlockDesc:
    """A list of operators, and the variables of their scope.

    Attributes:
        idx: its place in the program.
        parent_idx: the block whose variables it sees; -1 for the first block.
        vars: variables by name.
        ops: operators in the order in which they run.
        forward_block_idx: the block whose gradient it computes, or -1.
        rest: encoded fields that are not represented above.
    """

    idx: int
    parent_idx: int
    vars: dict[str, VarDesc] = field(default_factory=dict)
    ops: list[OpDesc] = field(default_factory=list)
    forward_block_idx: int = -1
    rest: bytes = field(default=b"", repr=False, compare=False)


@dataclass(slots=True)
class ProgramDesc:
    """A program: blocks, the first of which runs.

    Attributes:
        blocks: the blocks; the others are run by operators of control flow.
        version: Paddle's version as ``major * 1_000_000 + minor * 1_000 + patch``.
        op_compatible_map: Paddle 1.8's encoded table of versions of operators.
        op_version_map: Paddle 2's encoded table of versions of operators.
        rest: encoded fields that are not represented above.
    """

    blocks: list[BlockDesc] = field(default_factory=list)
    version: int = 0
    op_compatible_map: bytes | None = field(default=None, repr=False)
    op_version_map: bytes | None = field(default=None, repr=False)
    rest: bytes = field(default=b"", repr=False, compare=False)

    def block(self, idx: int) -> BlockDesc:
        """A block by its index."""
        return self.blocks[idx]

    def global_block(self) -> BlockDesc:
        """The first block."""
        return self.blocks[0]

    def find_var(self, block: BlockDesc, name: str) -> VarDesc | None:
        """The variable that ``name`` denotes in a block, None if it denotes none."""
        owner = self.owner_of(block, name)
        return None if owner is None else owner.vars[name]

    def owner_of(self, block: BlockDesc, name: str) -> BlockDesc | None:
        """The block that declares a name: the given one, or one whose variables it sees.

        A block of gradients sees those of its forward block before those of its parent.
        """
        waiting, seen = [block.idx], set[int]()
        while waiting:
            index = waiting.pop()
            one = self.blocks[index]
            if name in one.vars:
                return one
            seen.add(index)
            around = (one.parent_idx, one.forward_block_idx)
            waiting += [i for i in around if i >= 0 and i not in seen]
        return None


# Reading ---------------------------------------------------------------------------------------


def parse(data: bytes, name: str = "program", *, limit: int = LIMIT) -> ProgramDesc:
    """Reads a program from the content of a ``__model__`` or ``.pdmodel`` file.

    Args:
        data: the content.
        name: the file's name, for errors.
        limit: the maximal size in bytes.

    Raises:
        PaddleFormatError: the content is damaged, too long, or contradicts itself.
    """
    if len(data) > limit:
        raise PaddleFormatError(
            f"{name}: a program must be at most {limit} bytes long, got {len(data)}; "
            "pass limit= to read it"
        )
    try:
        program = _read_program(parse_message(data, "Program", name))
        for fault in _faults(program):
            raise fault
    except Fault as fault:
        at = offset(data, "Program", fault.path)
        where = f"{name}:{place_of(fault.path)}"
        raise PaddleFormatError(f"{where} {fault.must} at byte {at}, got {fault.got}") from None
    return program


def _each(what: str, messages: Iterable[Message], read: Callable[[Message], _T]) -> Iterator[_T]:
    """What ``read`` makes of each message; a fault learns where it is."""
    for place, message in enumerate(messages):
        try:
            yield read(message)
        except Fault as fault:
            fault.path.insert(0, (what, place))
            raise


def _read_program(message: Message) -> ProgramDesc:
    kept = _without(message, ("blocks", "op_compatible_map", "op_version_map"))
    _drop_set(kept.version, ("version",))
    return ProgramDesc(
        blocks=list(_each("blocks", message.blocks, _read_block)),
        version=message.version.version,
        op_compatible_map=_present(message, "op_compatible_map"),
        op_version_map=_present(message, "op_version_map"),
        rest=kept.SerializePartialToString(),
    )


def _present(message: Message, name: str) -> Any:
    """An optional field's value, or None if it is not there."""
    return getattr(message, name) if message.HasField(name) else None


def _without(message: Message, taken: Iterable[str]) -> Message:
    """A copy without some fields."""
    copy = type(message)()
    copy.CopyFrom(message)
    for name in taken:
        copy.ClearField(name)
    return copy


def _drop_set(message: Message, flags: Iterable[str]) -> None:
    """Removes flags that are not at their defaults, which a file may contain or leave out."""
    for name in flags:
        if getattr(message, name) != getattr(type(message)(), name):
            message.ClearField(name)


def _read_block(message: Message) -> BlockDesc:
    block = BlockDesc(message.idx, message.parent_idx)
    for var in _each("vars", message.vars, lambda one: _read_var(one, block.vars)):
        block.vars[var.name] = var
    block.ops = list(_each("ops", message.ops, _read_op))
    block.forward_block_idx = message.forward_block_idx
    if has_unknown(message) or message.HasField("forward_block_idx"):
        kept = _without(message, ("idx", "parent_idx", "vars", "ops"))
        _drop_set(kept, ("forward_block_idx",))
        block.rest = kept.SerializePartialToString()
    return block


def _read_var(message: Message, earlier: Mapping[str, VarDesc]) -> VarDesc:
    name = _name("a variable's name", message.name)
    if name in earlier:
        raise Fault("a variable's name must be new in its block", repr(name))
    kept = _without(message, ("name",))
    _drop_set(kept, _FLAGS)
    kind = _kind(name, message.type.type)
    var = VarDesc(name, kind, **{flag: getattr(message, flag) for flag in _FLAGS})
    detail = _DETAILS.get(kind)
    if detail is not None and message.type.HasField(detail):
        _read_detail(var, getattr(message.type, detail), getattr(kept.type, detail))
    var.rest = kept.SerializePartialToString()
    return var


def _kind(name: str, code: int) -> VarKind:
    try:
        return VarKind(code)
    except ValueError:
        raise Fault(f"the kind of {name!r} must be that of a variable", code) from None


def _read_detail(var: VarDesc, detail: Message, kept: Message) -> None:
    """Reads shape, dtype and levels, and removes them from ``kept``."""
    tensor, kept_tensor = detail, kept
    if var.kind in _WITH_LEVELS:
        tensor, kept_tensor = detail.tensor, kept.tensor
        var.lod_level = detail.lod_level
        _drop_set(kept, ("lod_level",))
    code = tensor.data_type
    if code not in DTYPES and code not in _KINDS:
        raise Fault(f"the dtype of {var.name!r} must be one of Paddle's", code)
    var.shape = tuple(tensor.dims)
    kept_tensor.ClearField("dims")
    if code in DTYPES:
        var.dtype = DTYPES[code]
        kept_tensor.ClearField("data_type")


def _read_op(message: Message) -> OpDesc:
    op = OpDesc(_name("an operator's type", message.type), is_target=message.is_target)
    names = list(_each("attrs", message.attrs, lambda each: _read_attr(op, each)))
    if len(names) > len(op.attrs):
        op.rest[_ORDER] = "\0".join(names).encode()
    for what, into in (("inputs", op.inputs), ("outputs", op.outputs)):
        for slot, names, rest in _each(what, getattr(message, what), _read_slot):
            if slot in into:
                raise Fault(f"{op.type}: {what} must name a slot once", repr(slot))
            into[slot] = names
            if rest:
                op.rest[f"{what} {slot}"] = rest
    default = message.HasField("is_target") and not message.is_target
    if default or has_unknown(message):
        kept = _without(message, ("type", "inputs", "outputs", "attrs"))
        _drop_set(kept, ("is_target",))
        op.rest[""] = kept.SerializePartialToString()
    return op


def _read_slot(message: Message) -> tuple[str, list[str], bytes]:
    names = [_name("an argument", one, empty=True) for one in message.arguments]
    rest = _without(message, ("parameter", "arguments")) if has_unknown(message) else None
    data = rest.SerializePartialToString() if rest is not None else b""
    return _name("a slot", message.parameter), names, data


def _read_attr(op: OpDesc, message: Message) -> str:
    """Reads an attribute; returns its name.

    Paddle 2 lists some attributes twice, once among those of running; the values are the same.
    """
    name = _name("an attribute's name", message.name)
    if message.type not in _ATTRS:
        must = f"{op.type}: the type of attribute {name!r} must be from 0 to {max(AttrType)}"
        raise Fault(must, message.type)
    form = _ATTRS[message.type]
    kind, value = AttrType(message.type), form.read(getattr(message, form.field))
    if name in op.attrs:
        if (op.attr_types[name], repr(op.attrs[name])) != (kind, repr(value)):
            must = f"{op.type}: attribute {name!r} must have one value"
            raise Fault(must, f"{value!r} after {op.attrs[name]!r}")
        return name
    op.attr_types[name], op.attrs[name] = kind, value
    others = {found.name for found, _ in message.ListFields()} - {"name", "type", form.field}
    if others or has_unknown(message):
        kept = _without(message, ("name", "type", form.field))
        op.rest[f"attrs {name}"] = kept.SerializePartialToString()
    return name


def _name(what: str, raw: bytes, *, empty: bool = False) -> str:
    """A name, which must be a text, and not empty unless that is allowed."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise Fault(f"{what} must be UTF-8", error.reason) from None
    if not text and not empty:
        raise Fault(f"{what} must not be empty", "''")
    return text


# Attributes ------------------------------------------------------------------------------------


class _Form(NamedTuple):
    """How a value of an attribute is kept in a message.

    Attributes:
        field: the field.
        one: makes a Python value of a field's value.
        raw: makes a field's value of a Python value.
        many: whether it is a list.
    """

    field: str
    one: Callable[[Any], Any]
    raw: Callable[[Any], Any]
    many: bool = False

    def read(self, value: Any) -> Any:
        """The Python value."""
        return [self.one(each) for each in value] if self.many else self.one(value)

    def write(self, value: Any) -> Any:
        """The field's value."""
        return [self.raw(each) for each in value] if self.many else self.raw(value)


def _text(raw: bytes) -> str:
    """A text; bytes that are not UTF-8 become lone surrogates, and come back on writing."""
    return raw.decode(errors="surrogateescape")


def _raw_text(text: object) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise TypeError("not a text")
    return text.encode(errors="surrogateescape")


def _raw_integer(limits: tuple[int, int]) -> Callable[[Any], int]:
    def checked(value: Any) -> int:
        number = operator.index(value)
        if not limits[0] <= number <= limits[1]:
            raise ValueError(f"not from {limits[0]} to {limits[1]}")
        return number

    return checked


def _raw_float(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError("not a number")
    return float(value)


def _raw_single(value: Any) -> float:
    number = _raw_float(value)
    if math.isfinite(number) and abs(number) > _LARGEST_SINGLE:
        raise ValueError("too large for float32")
    return number


def _raw_boolean(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError("neither true nor false")
    return bool(value)


def _scalar(message: Message) -> complex | int | float | bool:
    """A number of the type that the message names."""
    match message.type:
        case 1:
            return bool(message.b)
        case 2:
            return int(message.i)
        case 3:
            return float(message.r)
        case 4:
            return complex(message.c.r, message.c.i)
    raise Fault("a scalar's type must be from 1 to 4", message.type)


def _raw_scalar(value: Any) -> Message:
    message = new("Scalar")
    if isinstance(value, (bool, np.bool_)):
        message.type, message.b = 1, bool(value)
    elif isinstance(value, (int, np.integer)):
        message.type, message.i = 2, int(value)
    elif isinstance(value, (float, np.floating)):
        message.type, message.r = 3, float(value)
    else:
        number = complex(value)
        message.type, message.c.r, message.c.i = 4, number.real, number.imag
    return message


_RAW_INT, _RAW_LONG = _raw_integer((-(2**31), 2**31 - 1)), _raw_integer((-(2**63), 2**63 - 1))
_ATTRS: Mapping[int, _Form] = {
    AttrType.INT: _Form("i", int, _RAW_INT),
    AttrType.FLOAT: _Form("f", float, _raw_single),
    AttrType.STRING: _Form("s", _text, _raw_text),
    AttrType.INTS: _Form("ints", int, _RAW_INT, many=True),
    AttrType.FLOATS: _Form("floats", float, _raw_single, many=True),
    AttrType.STRINGS: _Form("strings", _text, _raw_text, many=True),
    AttrType.BOOLEAN: _Form("b", bool, _raw_boolean),
    AttrType.BOOLEANS: _Form("bools", bool, _raw_boolean, many=True),
    AttrType.BLOCK: _Form("block_idx", int, _RAW_INT),
    AttrType.LONG: _Form("l", int, _RAW_LONG),
    AttrType.BLOCKS: _Form("blocks_idx", int, _RAW_INT, many=True),
    AttrType.LONGS: _Form("longs", int, _RAW_LONG, many=True),
    AttrType.FLOAT64S: _Form("float64s", float, _raw_float, many=True),
    AttrType.VAR: _Form("var_name", _text, _raw_text),
    AttrType.VARS: _Form("vars_name", _text, _raw_text, many=True),
    AttrType.FLOAT64: _Form("float64", float, _raw_float),
    AttrType.SCALAR: _Form("scalar", _scalar, _raw_scalar),
    AttrType.SCALARS: _Form("scalars", _scalar, _raw_scalar, many=True),
}
_SUGGESTED = (
    ((bool, np.bool_), AttrType.BOOLEAN, AttrType.BOOLEANS),
    ((int, np.integer), AttrType.INT, AttrType.INTS),
    ((float, np.floating), AttrType.FLOAT, AttrType.FLOATS),
    ((str, bytes), AttrType.STRING, AttrType.STRINGS),
    ((complex, np.complexfloating), AttrType.SCALAR, AttrType.SCALARS),
)


def attr_type(value: Any) -> AttrType:
    """The type of an attribute that a value suggests; that of an empty list is INTS.

    Raises:
        PaddleError: an attribute cannot have such a value.

    Example:
        >>> attr_type(1).name, attr_type([2**40]).name, attr_type(["a"]).name
        ('INT', 'LONGS', 'STRINGS')
    """
    many = isinstance(value, (list, tuple))
    each = list(value) if many else [value]
    for types, single, several in _SUGGESTED:
        if all(isinstance(one, types) for one in each) and (each or single == AttrType.INT):
            found = several if many else single
            if single == AttrType.INT and any(not -(2**31) <= one < 2**31 for one in each):
                return AttrType.LONGS if many else AttrType.LONG
            return found
    if many and all(isinstance(one, (int, float, np.number)) for one in each):
        return AttrType.FLOATS
    raise PaddleError(f"an attribute must be a number, a text or a list of these, got {value!r}")


# Writing ---------------------------------------------------------------------------------------


def serialize(program: ProgramDesc) -> bytes:
    """The content of a ``__model__`` or ``.pdmodel`` file; a parsed program's is what was parsed.

    Raises:
        PaddleError: the program contradicts itself, or an attribute's value and type do not fit.
    """
    verify(program)
    message = new("Program", program.rest)
    for block in program.blocks:
        _write_block(message.blocks.add(), block)
    if program.version:
        message.version.version = program.version
    for name in ("op_compatible_map", "op_version_map"):
        if getattr(program, name) is not None:
            setattr(message, name, getattr(program, name))
    data: bytes = message.SerializeToString()
    return data


def _write_block(message: Message, block: BlockDesc) -> None:
    message.MergeFromString(block.rest)
    message.idx, message.parent_idx = block.idx, block.parent_idx
    if block.forward_block_idx != -1:
        message.forward_block_idx = block.forward_block_idx
    for var in block.vars.values():
        _write_var(message.vars.add(), var)
    for op in block.ops:
        _write_op(message.ops.add(), op)


def _write_var(message: Message, var: VarDesc) -> None:
    message.MergeFromString(var.rest)
    if message.type.type != var.kind:
        message.ClearField("type")
    message.name, message.type.type = var.name.encode(), var.kind
    for flag in _FLAGS:
        if getattr(var, flag):
            setattr(message, flag, True)
        elif getattr(message, flag):
            message.ClearField(flag)
    if var.shape is not None or var.dtype is not None:
        _write_detail(message.type, var)


def _write_detail(message: Message, var: VarDesc) -> None:
    if var.kind not in _DETAILS:
        raise PaddleError(f"{var.name}: a {var.kind.name} must have no shape and no dtype")
    detail = getattr(message, _DETAILS[var.kind])
    tensor = detail.tensor if var.kind in _WITH_LEVELS else detail
    if var.dtype is not None:
        tensor.data_type = dtype_code(var.dtype, var.name)
    elif not tensor.HasField("data_type"):
        raise PaddleError(f"{var.name}: a variable with a shape must have a dtype, got None")
    tensor.dims.extend(var.shape or ())
    if var.lod_level and var.kind in _WITH_LEVELS:
        detail.lod_level = var.lod_level


def dtype_code(dtype: DType, what: str = "dtype") -> int:
    """The number of a dtype in Paddle's files.

    Raises:
        PaddleError: Paddle has no such dtype.
    """
    code = CODES.get(np.dtype(dtype))
    if code is None:
        names = ", ".join(one.name for one in CODES)
        raise PaddleError(f"{what}: the dtype must be one of {names}, got {dtype}")
    return code


def _write_op(message: Message, op: OpDesc) -> None:
    message.MergeFromString(op.rest.get("", b""))
    message.type = op.type.encode()
    if op.is_target:
        message.is_target = True
    for what, slots in (("inputs", op.inputs), ("outputs", op.outputs)):
        for slot, names in slots.items():
            made = getattr(message, what).add()
            made.MergeFromString(op.rest.get(f"{what} {slot}", b""))
            made.parameter = slot.encode()
            made.arguments.extend(name.encode() for name in names)
    for name in _order(op):
        made = message.attrs.add()
        made.MergeFromString(op.rest.get(f"attrs {name}", b""))
        _write_attr(made, op, name, op.attrs[name])


def _order(op: OpDesc) -> list[str]:
    """Names of the attributes to write: as in the file, then those that are new."""
    if _ORDER not in op.rest:
        return list(op.attrs)
    names = [name for name in op.rest[_ORDER].decode().split("\0") if name in op.attrs]
    return [*names, *(name for name in op.attrs if name not in names)]


def _write_attr(message: Message, op: OpDesc, name: str, value: Any) -> None:
    kind = op.attr_types[name] if name in op.attr_types else attr_type(value)
    form = _ATTRS[kind]
    message.name, message.type = name.encode(), kind
    try:
        raw = form.write(value)
    except (TypeError, ValueError) as error:
        raise PaddleError(
            f"{op.type}: attribute {name!r} must be of type {kind.name}, got {value!r} ({error})"
        ) from None
    if form.many:
        getattr(message, form.field).extend(raw)
    elif kind == AttrType.SCALAR:
        message.scalar.CopyFrom(raw)
    else:
        setattr(message, form.field, raw)


# Checking --------------------------------------------------------------------------------------


def verify(program: ProgramDesc) -> None:
    """Checks that blocks, variables and attributes fit together.

    Raises:
        PaddleError: an index does not name a block, a block is its own ancestor or runs itself, a
            variable's name, shape or levels are impossible.
    """
    for fault in _faults(program):
        raise PaddleError(f"program:{place_of(fault.path)} {fault.must}, got {fault.got}")


def place_of(path: Iterable[tuple[str, int]]) -> str:
    """A path in words, such as ``" blocks[0].ops[3]:"``; empty for the whole program."""
    text = ".".join(f"{name}[{place}]" for name, place in path)
    return f" {text}:" if text else ""


def _faults(program: ProgramDesc) -> Iterator[Fault]:
    count = len(program.blocks)
    if not count:
        yield Fault("a program must have a block", "none")
    for place, block in enumerate(program.blocks):
        path = ("blocks", place)
        if block.idx != place:
            yield _at(Fault("a block's index must be its place", block.idx), path)
        least, most = (-1, -1) if place == 0 else (0, place - 1)
        if not least <= block.parent_idx <= most:
            must = (
                "a block's parent must be an earlier block" if place else "it must have no parent"
            )
            yield _at(Fault(must, block.parent_idx), path)
        if not -1 <= block.forward_block_idx < count:
            must = f"a forward block must be from -1 to {count - 1}"
            yield _at(Fault(must, block.forward_block_idx), path)
        for i, (name, var) in enumerate(block.vars.items()):
            yield from (_at(one, path, ("vars", i)) for one in _faults_of_var(name, var))
        for i, op in enumerate(block.ops):
            yield from (_at(one, path, ("ops", i)) for one in _faults_of_op(op, count))
    yield from _cycles(program)


def _at(fault: Fault, *path: tuple[str, int]) -> Fault:
    fault.path[:0] = path
    return fault


def _faults_of_var(name: str, var: VarDesc) -> Iterator[Fault]:
    if var.name != name:
        yield Fault(f"a variable must be kept by its name {var.name!r}", repr(name))
    if not 0 <= var.lod_level <= MAX_LEVELS:
        yield Fault(f"the levels of {name!r} must be from 0 to {MAX_LEVELS}", var.lod_level)


def _faults_of_op(op: OpDesc, count: int) -> Iterator[Fault]:
    for block in op.blocks():
        if not 0 <= block < count:
            yield Fault(f"{op.type}: a block must be from 0 to {count - 1}", block)


def _cycles(program: ProgramDesc) -> Iterator[Fault]:
    """A fault if a block runs itself, directly or through others."""
    runs = {block.idx: {one for op in block.ops for one in op.blocks()} for block in program.blocks}
    while runs:
        ready = {idx for idx, others in runs.items() if not others & runs.keys()}
        if not ready:
            yield _at(Fault("a block must not run itself", f"block {min(runs)}"))
            return
        runs = {idx: others for idx, others in runs.items() if idx not in ready}
