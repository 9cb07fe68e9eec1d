"""Paddle's ``.pdparams`` and ``.pdopt`` files: pickles of arrays by name.

Unpickling a file may run any code. So the reader here interprets the few instructions that arrays,
texts, numbers, dicts, lists and tuples are made of, and refuses every other one: a name in the file
is compared with a table, never imported.
"""

import math
import pickle
import pickletools
import re
import reprlib
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from registry.types import DType
from symop.interop.paddle.errors import PaddleError, PaddleFormatError
from symop.interop.paddle.streams import as_array
from symop.interop.reading import MAX_RANK

_MAX_DEPTH = 16
"""The maximal depth of dicts, lists and tuples in one another."""
_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|c8|c16|\?)")
_MARK = object()


class _Name(NamedTuple):
    """The name of a function or class in a file."""

    module: str
    name: str


_ARRAY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
_NDARRAY, _DTYPE_CLASS = _Name("numpy", "ndarray"), _Name("numpy", "dtype")
_RECONSTRUCT = tuple(_Name(module, "_reconstruct") for module in _ARRAY_MODULES)
_ENCODE = _Name("_codecs", "encode")
_BYTES = (_Name("__builtin__", "bytes"), _Name("builtins", "bytes"))
_ORDERED = _Name("collections", "OrderedDict")
_KNOWN = frozenset((_NDARRAY, _DTYPE_CLASS, *_RECONSTRUCT, _ENCODE, *_BYTES, _ORDERED))


class _Array:
    """An array whose entries follow later."""

    array: np.ndarray | None = None


class _Dtype:
    """A dtype whose byte order follows later."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype


class _RefusedError(Exception):
    """A violated requirement, and what there is instead."""

    def __init__(self, must: str, got: object) -> None:
        super().__init__(must)
        self.must, self.got = must, got


def loads(data: bytes, name: str = "pickle") -> dict[str, Any]:
    """Reads a dict from the content of a pickle that NumPy 1 or 2 wrote.

    Args:
        data: the content, of protocol 2, 3 or 4.
        name: the file's name, for errors.

    Returns:
        By name arrays, numbers, texts, bytes, and lists, tuples and dicts of these.

    Raises:
        PaddleFormatError: the content is damaged, or contains anything else; nothing is run.
    """
    machine, at = _Machine(), 0
    try:
        for code, argument, place in pickletools.genops(data):
            at = place or 0
            machine.run(code.name, argument)
        if at + 1 != len(data):
            raise _RefusedError("the file must end", f"{len(data) - at - 1} more bytes")
        return machine.result()
    except _RefusedError as error:
        must, got = error.must, error.got
    except (ValueError, struct.error, OverflowError) as error:  # of genops
        must, got = "there must be a pickle's instruction", f"{type(error).__name__}: {error}"
    shown = got[:200] if isinstance(got, str) else reprlib.repr(got)
    raise PaddleFormatError(f"{name}: {must} at byte {at}, got {shown}")


def _require(holds: object, must: str, got: object) -> None:
    if not holds:
        raise _RefusedError(must, got)


class _Machine:
    """The stack machine of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, code: str, argument: Any) -> None:
        """Runs one instruction."""
        if code in _PUSHED:
            self.stack.append(argument)
        elif code in _CONSTANTS:
            self.stack.append(_CONSTANTS[code]())
        elif code in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self._top()
        elif code in ("BINGET", "LONG_BINGET"):
            self._get(argument)
        elif code in _TUPLES:
            self.stack.append(tuple(self._pop(_TUPLES[code])))
        else:
            _require(code in _STEPS, "an instruction must be one of arrays and dicts", code)
            _STEPS[code](self, argument)

    def result(self) -> dict[str, Any]:
        """What was read."""
        _require(len(self.stack) == 1, "there must be one value", f"{len(self.stack)}")
        value = _plain(self.stack[0], 0)
        _require(isinstance(value, dict), "the value must be a dict", type(value).__name__)
        names = [key for key in value if not isinstance(key, str)]
        _require(not names, "a name must be a text", names[:1])
        found: dict[str, Any] = value
        return found

    def _top(self) -> Any:
        _require(self.stack and self.stack[-1] is not _MARK, "there must be a value", "none")
        return self.stack[-1]

    def _pop(self, count: int) -> list[Any]:
        _require(len(self.stack) >= count, f"there must be {count} values", len(self.stack))
        found = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        _require(all(one is not _MARK for one in found), f"there must be {count} values", "fewer")
        return found

    def _pop_to_mark(self) -> list[Any]:
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is _MARK:
                found = self.stack[place + 1 :]
                del self.stack[place:]
                return found
        raise _RefusedError("there must be a mark", "none")

    def _get(self, place: int) -> None:
        """Pushes an earlier value: a leaf, for what contains itself has no end."""
        _require(place in self.memo, "an earlier value must be there", f"number {place}")
        value = self.memo[place]
        parts = value if isinstance(value, tuple) and not isinstance(value, _Name) else (value,)
        shared = not any(isinstance(one, (dict, list, tuple)) for one in parts)
        _require(shared or isinstance(value, _Name), "a value used twice must be a leaf", "not")
        self.stack.append(value)

    def memoize(self, _: Any) -> None:
        """Numbers the value."""
        self.memo[len(self.memo)] = self._top()

    def ignore(self, _: Any) -> None:
        """Does nothing."""

    def mark(self, _: Any) -> None:
        """Pushes a mark."""
        self.stack.append(_MARK)

    def stop(self, _: Any) -> None:
        """Ends."""

    def make_tuple(self, _: Any) -> None:
        """Makes a tuple of what follows the mark."""
        self.stack.append(tuple(self._pop_to_mark()))

    def name(self, argument: str) -> None:
        """Pushes a name ``"module name"``."""
        self._push_name(*argument.split(" ", 1))

    def name_of_stack(self, _: Any) -> None:
        """Pushes a name whose two parts are on the stack."""
        self._push_name(*self._pop(2))

    def _push_name(self, module: Any, name: Any = "") -> None:
        one = _Name(module, name)
        both = isinstance(module, str) and isinstance(name, str)
        _require(both and one in _KNOWN, "a name must be one of NumPy's arrays", f"{module}.{name}")
        self.stack.append(one)

    def set_item(self, _: Any) -> None:
        """Puts one entry into a dict."""
        self._put(self._pop(2))

    def set_items(self, _: Any) -> None:
        """Puts entries into a dict."""
        self._put(self._pop_to_mark())

    def _put(self, items: list[Any]) -> None:
        target = self._top()
        _require(isinstance(target, dict) and len(items) % 2 == 0, "there must be a dict", "none")
        for key, value in zip(items[::2], items[1::2], strict=True):
            _require(isinstance(key, (str, int)), "a key must be a text or a number", type(key))
            _require(key not in target, "a key must be new", repr(key))
            target[key] = value

    def append(self, _: Any) -> None:
        """Appends an entry to a list."""
        self._extend(self._pop(1))

    def appends(self, _: Any) -> None:
        """Appends entries to a list."""
        self._extend(self._pop_to_mark())

    def _extend(self, items: list[Any]) -> None:
        target = self._top()
        _require(isinstance(target, list), "there must be a list", type(target).__name__)
        target.extend(items)

    def reduce(self, _: Any) -> None:
        """Calls one of the known functions."""
        name, arguments = self._pop(2)
        _require(isinstance(name, _Name), "a call must name its function", type(name).__name__)
        _require(_is_tuple(arguments), "arguments must be a tuple", type(arguments).__name__)
        self.stack.append(_call(name, arguments))

    def build(self, _: Any) -> None:
        """Gives an array its entries, or a dtype its byte order."""
        target, state = self._pop(2)
        _require(_is_tuple(state), "a state must be a tuple", type(state).__name__)
        if isinstance(target, _Dtype):
            _order(target, state)
        else:
            _require(isinstance(target, _Array), "a state must be that of an array", type(target))
            _fill(target, state)
        self.stack.append(target)


def _is_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and not isinstance(value, _Name)


_PUSHED = frozenset(
    (
        *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
        *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BINSTRING", "SHORT_BINSTRING"),
    )
)
_CONSTANTS: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_STEPS: Mapping[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _Machine.ignore,
    "FRAME": _Machine.ignore,
    "STOP": _Machine.stop,
    "MARK": _Machine.mark,
    "MEMOIZE": _Machine.memoize,
    "TUPLE": _Machine.make_tuple,
    "GLOBAL": _Machine.name,
    "STACK_GLOBAL": _Machine.name_of_stack,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
}


def _call(name: _Name, arguments: tuple[Any, ...]) -> Any:
    """What a known function returns."""
    if name in _RECONSTRUCT:
        _require(arguments[:1] == (_NDARRAY,), "an array must be of NumPy's own class", arguments)
        return _Array()
    if name == _DTYPE_CLASS:
        code = arguments[0] if arguments else None
        known = isinstance(code, str) and _DTYPE.fullmatch(code)
        _require(known, "a dtype must be one of numbers", repr(code)[:80])
        return _Dtype(np.dtype(code))
    if name == _ENCODE:
        text = arguments[0] if len(arguments) == 2 and arguments[1] == "latin1" else None
        _require(isinstance(text, str), "bytes must be encoded as latin1", "another code")
        return _latin(text)
    if name in _BYTES and arguments == ():
        return b""
    _require(name == _ORDERED and arguments == (), "a call must be that of an array", name.name)
    return {}


def _latin(text: Any) -> bytes:
    try:
        return str(text).encode("latin1")
    except UnicodeEncodeError:
        raise _RefusedError("bytes must be below 256", "a larger one") from None


def _order(target: _Dtype, state: tuple[Any, ...]) -> None:
    plain = len(state) >= 5 and state[1] in ("<", ">", "|", "=") and state[2:5] == (None,) * 3
    _require(plain, "the state of a dtype must be that of numbers", state)
    target.dtype = target.dtype.newbyteorder(state[1])


def _fill(target: _Array, state: tuple[Any, ...]) -> None:
    _require(len(state) == 5, "the state of an array must have 5 parts", len(state))
    _, shape, dtype, fortran, data = state
    lengths = _is_tuple(shape) and all(type(one) is int and one >= 0 for one in shape)
    _require(lengths and len(shape) <= MAX_RANK, "a shape must be lengths", shape)
    _require(isinstance(dtype, _Dtype), "an array must have a dtype", type(dtype).__name__)
    raw = _latin(data) if isinstance(data, str) else data
    _require(isinstance(raw, bytes), "entries must be bytes", type(raw).__name__)
    size = math.prod(shape) * dtype.dtype.itemsize
    _require(len(raw) == size, f"the entries must be {size} bytes", len(raw))
    if dtype.dtype == np.bool_ and size:
        most = max(raw)
        _require(most <= 1, "entries must be 0 or 1", most)
    if math.prod(max(one, 1) for one in shape) >= 2**62:
        raise _RefusedError("a shape must be of fewer than 2**62 entries", shape)
    flat = np.frombuffer(raw, dtype.dtype).astype(dtype.dtype.newbyteorder("="))
    target.array = flat.reshape(shape, order="F" if fortran else "C")


def _plain(value: Any, depth: int) -> Any:
    """A value without the records of this module."""
    _require(depth <= _MAX_DEPTH, f"values must be nested at most {_MAX_DEPTH} deep", "deeper")
    if isinstance(value, _Array):
        _require(value.array is not None, "an array must have entries", "none")
        return value.array
    _require(not isinstance(value, (_Name, _Dtype)), "a value must be an array", "its class")
    if isinstance(value, dict):
        return {key: _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(one, depth + 1) for one in value)
    return value


# Writing ---------------------------------------------------------------------------------------


def dumps(arrays: Mapping[str, Any]) -> bytes:
    """The content of a pickle of protocol 4 that Paddle reads, whatever NumPy it has.

    As in Paddle's own files, bfloat16 is written as uint16.

    Raises:
        PaddleError: a name is not a text, or a value is not an array.
    """
    pieces = [pickle.PROTO, b"\x04", pickle.EMPTY_DICT]
    for name, value in arrays.items():
        if not isinstance(name, str):
            raise PaddleError(f"a name must be a text, got {name!r}")
        pieces += [*_text(name), *_array(name, as_array(name, value)), pickle.SETITEM]
    return b"".join([*pieces, pickle.STOP])


def _array(name: str, array: np.ndarray) -> list[bytes]:
    """Instructions that make an array."""
    if array.dtype == ml_dtypes.bfloat16:
        array = array.view(np.uint16)
    if not _DTYPE.fullmatch(array.dtype.str):
        raise PaddleError(f"{name}: a pickle must be of NumPy's own dtypes, got {array.dtype}")
    order = "|" if array.dtype.itemsize == 1 else "<"
    raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    dtype = [b"cnumpy\ndtype\n", *_text(array.dtype.str[1:]), pickle.NEWFALSE, pickle.NEWTRUE]
    state = [*_number(3), *_text(order), pickle.NONE * 3, *_number(-1) * 2, *_number(0)]
    return [
        *(b"cnumpy.core.multiarray\n_reconstruct\n", b"cnumpy\nndarray\n"),
        *(*_number(0), pickle.TUPLE1, *_bytes(b"b"), pickle.TUPLE3, pickle.REDUCE),
        *(pickle.MARK, *_number(1)),
        *(pickle.MARK, *[part for one in array.shape for part in _number(one)], pickle.TUPLE),
        *(*dtype, pickle.TUPLE3, pickle.REDUCE, pickle.MARK, *state, pickle.TUPLE, pickle.BUILD),
        *(pickle.NEWFALSE, *_bytes(raw), pickle.TUPLE, pickle.BUILD),
    ]


def _text(text: str) -> list[bytes]:
    raw = text.encode("utf-8", "surrogatepass")
    return [pickle.BINUNICODE, struct.pack("<I", len(raw)), raw]


def _bytes(raw: bytes) -> list[bytes]:
    return [pickle.BINBYTES8, struct.pack("<Q", len(raw)), raw]


def _number(number: int) -> list[bytes]:
    return [pickle.LONG1, b"\x08", struct.pack("<q", number)]
