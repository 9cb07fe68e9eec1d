"""Graphs as readable text that can be parsed: ``parse(text(outputs))`` is the same graph.

::

    (x: float32[32,64], w: float32[10,64], state mean: float32[10]) {
      fc1: float32[32,10] = fully_connected(x, w, None, units=10)
      softmax0: float32[32,10] = softmax(fc1)

      # gradient of softmax
      multiply0: float32[32,10] = multiply(softmax0, float32[32,10](1.0))
    } -> softmax0, multiply0

- An undeclared shape is ``float32[?]``, an undeclared dtype ``float[32,64]``.
- An input is a name, a Python scalar, a filled array such as ``float32[3](1.0)``, the flag
  ``training``, or ``None`` for an empty slot. Attributes equal to their default are omitted.
- An unquoted name that consists of the operator's name and a number is automatic. Quoted, such a
  name is the user's, as is any other name. Names that are not words are always quoted.
- A paragraph under ``# gradient of`` belongs to the gradient of that forward operator.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from registry.desc import SUB_BLOCK, BlockDesc, OpDesc, ProgramDesc, VarDesc
from registry.operator.attributes import dtype_named, from_plain, identity_key, to_plain
from registry.operator.operator import Operator
from registry.table import get
from registry.types import VarKind, VarType, is_complex, is_exact
from symop.graph.nodes import ARRAY, CONSTANT, DEFERRED, KEY, TRAINING, Node
from symop.io.records import INPUTS, ArrayAttrs, ConstantAttrs, describe

_WIDTH = 100
_ARRAY_LIMIT = 32
"""Entries of larger arrays are omitted."""
WORD = r"[^\W\d]\w*(?:\.\w+)*"
RESERVED = frozenset(["True", "False", "None", "inf", "nan", "training", "_"])
"""Words that must be quoted to be names; ``_`` stands for an unused output."""
DEFAULT_FLOAT = "float"
"""The dtype shown for a variable without a declared dtype."""
GRADIENT = "# gradient of "
STOP = "stop_gradient"
"""Follows a variable in braces: no gradient flows through it."""
SUB_BLOCK_SIGN = "@"
"""Precedes the number of an additional block, the body of a control flow operator."""
BECOMES = ":="
"""Separates a kept variable from the value that it holds after a run."""


# Printing --------------------------------------------------------------------------------------


def text(outputs: Sequence[Node], also: Sequence[Node] = (), *, types: bool = True) -> str:
    """Returns the graph of ``outputs`` as a readable program.

    Args:
        outputs: the values that the program computes.
        also: variables to show among the arguments, whether or not an output needs them.
        types: whether each computed value is shown with its type, if known.

    Raises:
        NameConflictError: two nodes were given one name.
    """
    desc, known = describe(outputs, also, array_limit=_ARRAY_LIMIT)
    return program_text(desc, known if types else {})


def program_text(desc: ProgramDesc, types: Mapping[str, VarType] | None = None) -> str:
    """Returns the blocks of ``desc`` as text, with the given types of values of the first block."""
    first, *others = desc.blocks
    whole = _block_text(first, desc.fetch, types or {})
    for number, block in enumerate(others, 1):
        whole += f"\n{SUB_BLOCK_SIGN}{number} {_block_text(block, block.fetch, {})}"
    return whole


def _block_text(block: BlockDesc, fetched: Sequence[str], types: Mapping[str, VarType]) -> str:
    printer = Printer(block, types)
    lines = "".join([f"{line}\n" for line in printer.lines()])
    fetch = ", ".join([printer.operand(name) for name in fetched])
    return f"{_header(block)} {{\n{lines}}} -> {fetch}".rstrip() + "\n"


def _header(block: BlockDesc) -> str:
    variables = [variable_text(var) for var in block.vars if var.role != "intermediate"]
    line = f"({', '.join(variables)})"
    if len(line) + 2 <= _WIDTH:
        return line
    return "(\n" + "".join([f"  {one},\n" for one in variables]) + ")"


def variable_text(var: VarDesc) -> str:
    """Returns a variable as the head of a program declares it."""
    role = "" if var.role == "argument" else f"{_name(var.role)} "
    declared = ""
    if var.shape is not None or var.dtype is not None:
        shape = "?" if var.shape is None else ",".join(map(str, var.shape))
        kind = "" if var.kind == VarKind.LOD_TENSOR.value else f"{var.kind} "
        declared = f": {kind}{var.dtype or DEFAULT_FLOAT}[{shape}]"
    extra = [STOP] if var.stop_gradient else []
    extra += [f"{_name(key)}={_quoted(value)}" for key, value in var.attrs.items()]
    return f"{role}{_name(var.name)}{declared}" + (f" {{{', '.join(extra)}}}" if extra else "")


class Printer:
    """Prints the operators of a block, one per line."""

    def __init__(self, block: BlockDesc, types: Mapping[str, VarType]) -> None:
        """Creates a printer of ``block``, whose values have these types, as far as known."""
        self.block = block
        self.types = types
        self.inline: dict[str, str] = {}
        self.stops = {var.name for var in block.vars if var.stop_gradient}

    def lines(self) -> Iterator[str]:
        """Yields the lines of all calls and updates, in order."""
        mark: str | None = None
        first = True
        for op in self.block.ops:
            if op.type in (CONSTANT.name, TRAINING.name):
                self.keep_inline(op)
                continue
            if op.gradient_of != mark:
                mark = op.gradient_of
                if not first:
                    yield ""
                if mark is not None:
                    yield f"  {GRADIENT}{_name(mark)}"
            yield f"  {self.statement(op)}"
            first = False
        if self.block.updates and mark is not None:
            yield ""
        for state, value in self.block.updates.items():
            yield f"  {_name(state)} {BECOMES} {self.operand(value)}"

    def statement(self, op: OpDesc) -> str:
        """Returns the line of a call."""
        return f"{self._targets(op)} = {self._call(op)}"

    def operand(self, name: str) -> str:
        """Returns a value as it is written where a call reads it."""
        return self.inline.get(name) or _name(name)

    def keep_inline(self, op: OpDesc) -> None:
        """Writes a number or a flag where calls read it, in place of a line of its own."""
        (name,) = op.outputs["out"]
        if op.type == TRAINING.name:
            self.inline[name] = "training"
            return
        attrs = msgspec.convert(op.attrs, ConstantAttrs)
        value = value_text(attrs.value)
        if attrs.dtype is not None:
            kind = "" if attrs.kind == VarKind.LOD_TENSOR.value else f"{attrs.kind} "
            value = f"{kind}{attrs.dtype}[{','.join(map(str, attrs.shape))}]({value})"
        self.inline[name] = value

    def _targets(self, op: OpDesc) -> str:
        names = list(op.outputs.values())
        if op.type not in _LEAVES:
            names = [
                op.outputs.get(output, []) for output in get(op.type).sized(len(names)).outputs
            ]
        quote = op.name is not None and looks_automatic(op.name, op.type)
        return ", ".join([self._target(one, quote) for one in names])

    def _target(self, names: Sequence[str], quote: bool) -> str:
        if not names:
            return "_"
        (name,) = names
        known = self.types.get(name)
        shown = _quoted(name) if quote else _name(name)
        is_tensor = known is not None and known.kind in (
            VarKind.LOD_TENSOR,
            VarKind.SELECTED_ROWS,
            VarKind.LOD_TENSOR_ARRAY,
        )
        stops = f" {{{STOP}}}" if name in self.stops else ""
        return (f"{shown}: {known}" if is_tensor else shown) + stops

    def _call(self, op: OpDesc) -> str:
        if op.type == ARRAY.name:
            return _array(msgspec.convert(op.attrs, ArrayAttrs))
        if op.type == DEFERRED.name:
            chosen = f"[{', '.join(op.outputs)}]"
            inputs = [self.operand(name) for name in op.inputs.get(INPUTS, [])]
            return f"deferred{chosen}({', '.join([*inputs, *_attributes(op.attrs)])})"
        if op.type == KEY.name:
            return f"random_key({', '.join(_attributes(op.attrs))})"
        operator = get(op.type)
        inputs = self._inputs(operator, op.inputs)
        return f"{_name(op.type)}({', '.join([*inputs, *_attributes(_changed(operator, op))])})"

    def _inputs(self, operator: Operator, inputs: Mapping[str, Sequence[str]]) -> list[str]:
        shown = []
        for slot in operator.slots:
            names = [self.operand(name) for name in inputs.get(slot.name, [])]
            shown += names if names or slot.variadic else ["None"]
        while shown and shown[-1] == "None":
            shown.pop()
        return shown


_LEAVES = (ARRAY.name, KEY.name, DEFERRED.name)


def _changed(operator: Operator, op: OpDesc) -> dict[str, Any]:
    """Returns the attributes that differ from their default."""
    defaults = {a.name: a.default for a in operator.attributes}
    return {
        key: value
        for key, value in op.attrs.items()
        if _is_sub_block(value)
        or identity_key(from_plain(value)) != identity_key(defaults.get(key))
        or type(from_plain(value)) is not type(defaults.get(key))
    }


def _is_sub_block(plain: Any) -> bool:
    return isinstance(plain, dict) and SUB_BLOCK in plain


def _attributes(attrs: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value_text(value)}" for key, value in attrs.items()]


def _array(attrs: ArrayAttrs) -> str:
    shape = ",".join(map(str, attrs.shape))
    if attrs.data is None:
        return f"array({attrs.dtype}[{shape}], ...)"
    entries = np.frombuffer(attrs.data, dtype_named(attrs.dtype))
    return f"array({', '.join([f'{attrs.dtype}[{shape}]', *map(_entry, entries)])})"


def _entry(entry: Any) -> str:
    """Returns an array entry as the shortest decimal that its dtype reads back exactly."""
    if is_exact(entry.dtype):
        return repr(entry.item())
    if is_complex(entry.dtype):
        return value_text(to_plain(complex(entry)))
    return str(float(str(entry))) if entry.dtype == np.float32 else str(float(entry))


def value_text(plain: Any) -> str:
    """Returns an attribute's value, given in JSON form."""
    match plain:
        case str():
            return _quoted(plain)
        case list():
            return f"({', '.join(map(value_text, plain))}{',' if len(plain) == 1 else ''})"
        case {"block": int(number)}:
            return f"{SUB_BLOCK_SIGN}{number}"
        case {"dtype": str(name)} | {"float": str(name)}:
            return name
        case {"complex": [real, imag]}:
            return f"complex({value_text(real)}, {value_text(imag)})"
    return repr(plain)


def looks_automatic(name: str, stem: str) -> bool:
    """Whether ``name`` is ``stem`` followed by a number, as automatic names are."""
    return name.startswith(stem) and re.fullmatch(r"[0-9]+", name[len(stem) :]) is not None


def _name(name: str) -> str:
    """Returns ``name``, quoted unless it is a word."""
    return name if name not in RESERVED and re.fullmatch(WORD, name) else _quoted(name)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=not value.isprintable())
