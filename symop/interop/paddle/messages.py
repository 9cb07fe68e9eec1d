"""The protobuf messages of ``framework.proto``, made at run time from a table of their fields.

The table covers Paddle 1.8 and 2.6. Texts are declared as bytes and enumerations as integers, which
look the same in a file: a text that is not UTF-8 and a number that is new reach the code that can
name them. A message that is only kept for writing is declared as bytes, too.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from registry.errors import missing_extra
from symop.interop.paddle.errors import PaddleFormatError

Message = Any
"""A message of the package ``protobuf``, whose classes exist at run time only."""

_SCHEMA = """
Program: blocks=1*Block op_compatible_map=3?bytes version=4?Version op_version_map=5?bytes
Version: version=1?int64
Block: idx=1!int32 parent_idx=2!int32 vars=3*Var ops=4*Op forward_block_idx=5?int32(-1)
Op: inputs=1*Slot outputs=2*Slot type=3!bytes attrs=4*Attr is_target=5?bool
Slot: parameter=1!bytes arguments=2*bytes
Attr: name=1!bytes type=2!int32 i=3?int32 f=4?float s=5?bytes ints=6*int32 floats=7*float
      strings=8*bytes b=10?bool bools=11*bool block_idx=12?int32 l=13?int64 blocks_idx=14*int32
      longs=15*int64 float64s=16*double var_name=17?bytes vars_name=18*bytes float64=19?double
      scalar=20?Scalar scalars=21*Scalar
Scalar: type=1!int32 b=2?bool i=3?int64 r=4?double c=5?Complex
Complex: r=1!double i=2!double
Var: name=1!bytes type=2!Type persistable=3?bool need_check_feed=4?bool is_parameter=5?bool
      stop_gradient=6?bool attrs=7*bytes
Type: type=1!int32 selected_rows=2?Tensor lod_tensor=3?LoDTensor tensor_array=4?LoDTensor
      reader=5?bytes tuple=7?bytes string=8?Tensor strings=9?Tensor vocab=10?Tensor
      sparse_coo=11?Tensor sparse_csr=12?Tensor
Tensor: data_type=1!int32 dims=2*int64
LoDTensor: tensor=1!Tensor lod_level=2?int32
VersionMap: pair=1*VersionPair
VersionPair: op_name=1!bytes op_version=2!OpVersion
OpVersion: version=1!int32
"""
_LABELS = {"?": 1, "!": 2, "*": 3}
_TYPES = {"double": 1, "float": 2, "int64": 3, "int32": 5, "bool": 8, "bytes": 12}
_MESSAGE = 11
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
_WIRE = {"double": _EIGHT, "float": _FOUR, "int64": _VARINT, "int32": _VARINT, "bool": _VARINT}
_PACKAGE = "symop.paddle"


class Field(NamedTuple):
    """A field of a message; ``label`` is ``?`` (optional), ``!`` (required) or ``*`` (repeated)."""

    name: str
    number: int
    label: str
    type: str
    default: str = ""

    @property
    def wire(self) -> int:
        """The wire type of a value."""
        return _WIRE.get(self.type, _LENGTH)


def _fields(text: str) -> list[Field]:
    found = re.findall(r"(\w+)=(\d+)([?!*])(\w+)(?:\((-?\d+)\))?", text)
    return [Field(name, int(number), *others) for name, number, *others in found]


SCHEMA: Mapping[str, Sequence[Field]] = {
    name: _fields(text) for name, text in re.findall(r"^(\w+):((?:.|\n(?= ))*)", _SCHEMA, re.M)
}
"""The fields of each message."""


@functools.cache
def _classes() -> Mapping[str, Any]:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415
    except ImportError:
        raise missing_extra("Paddle's programs", "protobuf", "paddle") from None
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE)
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=name)
        for field in fields:
            made = message.field.add(
                name=field.name,
                number=field.number,
                label=_LABELS[field.label],
                type=_TYPES.get(field.type, _MESSAGE),
            )
            if field.default:
                made.default_value = field.default
            if field.type not in _TYPES:
                made.type_name = f".{_PACKAGE}.{field.type}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in SCHEMA
    }


def new(name: str, data: bytes = b"") -> Message:
    """A new message, with the fields that ``data`` has, some of which may be missing."""
    message = _classes()[name]()
    if data:
        message.MergeFromString(data)
    return message


def has_unknown(message: Message) -> bool:
    """Whether a message has fields that the table does not name."""
    from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: PLC0415

    return len(UnknownFieldSet(message)) > 0


# Damaged files ---------------------------------------------------------------------------------


class Fault(PaddleFormatError):  # noqa: N818  # it becomes the error that names the file
    """A violated requirement somewhere in a message.

    Attributes:
        must: the requirement.
        got: what there is instead.
        path: names of fields and, of repeated ones, places, from the outermost message inwards.
    """

    def __init__(self, must: str, got: object) -> None:
        super().__init__(f"{must}, got {got}")
        self.must, self.got = must, got
        self.path: list[tuple[str, int]] = []


class _Cut(NamedTuple):
    """A place where a message is damaged."""

    at: int
    must: str
    got: object


class _Value(NamedTuple):
    """A value in a message: its field's number, its wire type, its first byte and its end."""

    number: int
    wire: int
    start: int
    end: int
    at: int
    """The offset of the tag."""


def parse_message(data: bytes, message: str, name: str, start: int = 0) -> Message:
    """Parses ``data`` as a message.

    Args:
        data: the content.
        message: the message's name.
        name: the file's name, for errors.
        start: the offset of ``data`` in the file, for errors.

    Raises:
        PaddleFormatError: ``data`` is not such a message, or a required field is missing.
    """
    made = new(message)
    try:
        made.ParseFromString(data)
        whole = bool(made.IsInitialized())
    except Exception as error:  # DecodeError, which depends on the implementation of protobuf
        raise _cut_error(data, message, name, start, str(error)) from None
    if not whole:
        missing = ", ".join(made.FindInitializationErrors()[:3])
        raise _cut_error(data, message, name, start, f"missing fields {missing}")
    return made


def _cut_error(data: bytes, message: str, name: str, start: int, reason: str) -> PaddleFormatError:
    cut = _damage(data, 0, len(data), message) or _Cut(0, f"there must be a {message}", reason)
    return PaddleFormatError(f"{name}: {cut.must} at byte {start + cut.at}, got {cut.got}")


def _damage(data: bytes, start: int, end: int, message: str) -> _Cut | None:
    """The first damage within a message, if there is any that this walk understands."""
    by_number, seen = {field.number: field for field in SCHEMA[message]}, set()
    try:
        for value in _values(data, start, end):
            field = by_number.get(value.number)
            seen.add(value.number)
            if field is not None and field.wire == value.wire and field.type in SCHEMA:
                inner = _damage(data, value.start, value.end, field.type)
                if inner is not None:
                    return inner
    except _CutError as error:
        return error.cut
    for field in SCHEMA[message]:
        if field.label == "!" and field.number not in seen:
            return _Cut(start, f"the {message} must have the field {field.name}", "none")
    return None


class _CutError(Exception):
    def __init__(self, cut: _Cut) -> None:
        super().__init__(cut.must)
        self.cut = cut


def _values(data: bytes, start: int, end: int) -> Iterator[_Value]:
    """The values of a message in the order of the file."""
    at = start
    while at < end:
        tag, first = _varint(data, at, end, "a field's tag")
        wire = tag & 7
        if wire == _VARINT:
            _, stop = _varint(data, first, end, "a number")
        elif wire == _LENGTH:
            length, first = _varint(data, first, end, "a length")
            stop = first + length
        elif wire in (_FOUR, _EIGHT):
            stop = first + (4 if wire == _FOUR else 8)
        else:
            raise _CutError(_Cut(at, "a field's wire type must be 0, 1, 2 or 5", wire))
        if stop > end:
            must = f"a field must be {stop - first} bytes"
            raise _CutError(_Cut(first, must, f"{end - first} until the end of its message"))
        yield _Value(tag >> 3, wire, first, stop, at)
        at = stop


def _varint(data: bytes, at: int, end: int, what: str) -> tuple[int, int]:
    """A number of variable length and the offset after it."""
    result = 0
    for place in range(10):
        if at + place >= end:
            must = f"{what} must end before its message"
            raise _CutError(_Cut(at, must, f"{end - at} bytes"))
        byte = data[at + place]
        result |= (byte & 127) << 7 * place
        if byte < 128:
            return result, at + place + 1
    raise _CutError(_Cut(at, f"{what} must be at most 10 bytes", "more"))


def offset(data: bytes, message: str, path: Sequence[tuple[str, int]]) -> int:
    """The offset of the value at ``path``, or of the innermost message on the way that is there."""
    start, end, at = 0, len(data), 0
    for name, place in path:
        field = next(one for one in SCHEMA[message] if one.name == name)
        same = [one for one in _values(data, start, end) if one.number == field.number]
        if len(same) <= place:
            break
        _, _, start, end, at = same[place]
        message = field.type
        if message not in SCHEMA:
            break
    return at
