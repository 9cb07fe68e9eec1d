"""Types of a call's outputs, by translating the call alone.

An unknown length, -1, is translated twice, with two sample lengths; a length that differs between
the two is unknown.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import symop as so
from registry.errors import SymopError
from symop.interop.paddle.errors import PaddleError, UnknownValueError
from symop.interop.paddle.facts import OFFSETS
from symop.interop.paddle.framework import OpDesc, ProgramDesc, VarDesc, VarKind
from symop.interop.paddle.gradients import Slots
from symop.interop.paddle.translating import Call, Translation
from symop.interop.paddle.values import data_of, is_array

_BASE = 24
"""A sample length is a multiple of it, so that the usual factors divide it."""
_SEQUENCES = (6, 10)
"""The numbers of sequences of the two samples; each is also part of the first axis of no other."""


class Inferred(NamedTuple):
    """The type of an output.

    Attributes:
        kind: its kind.
        dtype: its dtype.
        shape: its shape, -1 for an unknown length.
        lod_level: its number of levels of sequences.
    """

    kind: VarKind
    dtype: Any
    shape: tuple[int, ...]
    lod_level: int


Lookup = Callable[[str], VarDesc]


def infer(program: ProgramDesc, op: OpDesc, variable: Lookup) -> dict[str, Inferred]:
    """Returns the types of the outputs of a call, by name.

    Args:
        program: the program that the call belongs to.
        op: the call.
        variable: returns the variable that a name denotes in the call's block.

    Raises:
        PaddleError: the inputs do not fit the operator.
    """
    op = _known_lengths_alone(op)
    inputs = {
        slot: [variable(name) for name in names] for slot, names in op.inputs.items() if names
    }
    declared = _declared(op, inputs)
    if declared is not None:
        return declared
    key = _key(program, op, inputs)
    found = _FOUND.get(key)
    if found is None:
        lengths = _sample_lengths(op)
        samples = [_sample(program, op, inputs, i, length) for i, length in enumerate(lengths)]
        found = {place: _merged(*(one[place] for one in samples)) for place in samples[0]}
        _FOUND[key] = found
        if len(_FOUND) > _KEPT:
            _FOUND.popitem(last=False)
    return {op.outputs[slot][i]: one for (slot, i), one in found.items()}


Place = tuple[str, int]
_FOUND: OrderedDict[str, dict[Place, Inferred]] = OrderedDict()
"""The types of the outputs of calls that were seen, by what they depend on."""
_KEPT = 1 << 12


def _key(program: ProgramDesc, op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> str:
    """Returns what the types of outputs depend on."""
    types = [
        (slot, [(one.kind, str(one.dtype), one.shape, one.lod_level) for one in some])
        for slot, some in inputs.items()
    ]
    counts = [(slot, len(names)) for slot, names in op.outputs.items()]
    attributes = sorted((name, one) for name, one in op.attrs.items() if not name.startswith("op_"))
    return repr((program.version, op.type, attributes, types, counts))


def _declared(op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> dict[str, Inferred] | None:
    """Returns the types of outputs that do not follow from translating the call alone.

    None if they do. An operator with a block declares its outputs itself.
    """
    if "sub_block" in op.attrs or op.type == "select_input":
        return {}
    rule = _ARRAYS.get(op.type)
    if rule is None and not _takes_array(inputs):
        return None
    return (rule or _same_arrays)(op, inputs)


def _takes_array(inputs: Mapping[str, Sequence[VarDesc]]) -> bool:
    given = (one for ones in inputs.values() for one in ones)
    return any(one.kind is VarKind.LOD_TENSOR_ARRAY for one in given)


def _as(kind: VarKind, variable: VarDesc) -> Inferred:
    return Inferred(kind, variable.dtype, variable.shape or (), variable.lod_level)


def _same_arrays(op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> dict[str, Inferred]:
    """An operator such as ``assign`` or ``sum`` maps arrays to arrays of the same elements."""
    found = _as(VarKind.LOD_TENSOR_ARRAY, inputs["X"][0])
    return dict.fromkeys(op.output_arg_names, found)


def _element(op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> dict[str, Inferred]:
    return {op.output("Out")[0]: _as(VarKind.LOD_TENSOR, inputs["X"][0])}


def _length(op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> dict[str, Inferred]:
    del inputs
    return {op.output("Out")[0]: Inferred(VarKind.LOD_TENSOR, np.dtype(np.int64), (1,), 0)}


def _joined(op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> dict[str, Inferred]:
    element = _as(VarKind.LOD_TENSOR, inputs["X"][0])._replace(lod_level=0)
    shape, axis = list(element.shape), op.attrs.get("axis", 0)
    if op.attrs.get("use_stack"):
        shape.insert(axis, -1)
    elif shape:
        shape[axis] = -1
    lengths = Inferred(VarKind.LOD_TENSOR, np.dtype(np.int32), (-1,), 0)
    joined = element._replace(shape=tuple(shape))
    return {op.output("Out")[0]: joined, op.output("OutIndex")[0]: lengths}


def _same(op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> dict[str, Inferred]:
    (x,) = inputs["X"]
    return {op.output("Out")[0]: Inferred(x.kind, x.dtype, x.shape or (), x.lod_level)}


def _sequences(op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> dict[str, Inferred]:
    return {op.output("Out")[0]: _as(VarKind.LOD_TENSOR, inputs["X"][0])._replace(lod_level=1)}


def _slices(op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> dict[str, Inferred]:
    """The elements of an array that holds a time step of all sequences each."""
    found = _as(VarKind.LOD_TENSOR_ARRAY, inputs["X"][0])
    return {op.output("Out")[0]: found._replace(lod_level=max(found.lod_level - 1, 0))}


def _rows(op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> dict[str, Inferred] | None:
    """Rows of ``X`` for each sequence of ``Y``, or some rows of each sequence of ``X``.

    The numbers of rows and of sequences of two samples do not fit each other.
    """
    (x,) = inputs["X"]
    if op.type == "sequence_expand" and x.lod_level:
        return None
    shape = (-1, *(x.shape or ())[1:])
    return {op.output("Out")[0]: Inferred(VarKind.LOD_TENSOR, x.dtype, shape, 1)}


def _kept_sentences(op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> dict[str, Inferred]:
    (words,), (best,) = inputs["pre_ids"], inputs["pre_scores"]
    types = {
        "selected_ids": Inferred(VarKind.LOD_TENSOR, words.dtype, (-1, 1), 2),
        "selected_scores": Inferred(VarKind.LOD_TENSOR, best.dtype, (-1, 1), 2),
        "parent_idx": Inferred(VarKind.LOD_TENSOR, np.dtype(np.int32), (-1,), 0),
    }
    return {op.output(slot)[0]: one for slot, one in types.items() if op.output(slot)}


def _sentences(op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]]) -> dict[str, Inferred]:
    slots = {"SentenceIds": "Ids", "SentenceScores": "Scores"}
    return {
        op.output(slot)[0]: Inferred(VarKind.LOD_TENSOR, inputs[source][0].dtype, (-1, 1), 2)
        for slot, source in slots.items()
    }


_ARRAYS: dict[str, Callable[..., dict[str, Inferred] | None]] = {
    "write_to_array": _same_arrays,
    "read_from_array": _element,
    "lod_array_length": _length,
    "tensor_array_to_tensor": _joined,
    "lod_rank_table": lambda op, inputs: {},
    "max_sequence_len": _length,
    "lod_tensor_to_array": _slices,
    "array_to_lod_tensor": _sequences,
    "shrink_rnn_memory": _same,
    "reorder_lod_tensor_by_rank": _same,
    "beam_search": _kept_sentences,
    "beam_search_decode": _sentences,
    "sequence_expand": _rows,
    "sequence_expand_as": _rows,
    "sequence_slice": _rows,
}
"""Types of the outputs of operators of tensor arrays, and of sequences by their lengths.

A rule returns None where the types follow from translating the call.
"""


_TENSORS_OF_LENGTHS = (
    "ShapeTensor",
    "ShapeTensorList",
    "Shape",
    "StartsTensor",
    "EndsTensor",
    "StartsTensorList",
    "EndsTensorList",
    "expand_times_tensor",
    "ExpandTimes",
    "AxisTensor",
    "SectionsTensorList",
    "K",
    "OutSize",
    "SizeTensor",
)


def _known_lengths_alone(op: OpDesc) -> OpDesc:
    """Returns a call without lengths that are values: the attribute has -1 for those."""
    inputs = {slot: names for slot, names in op.inputs.items() if slot not in _TENSORS_OF_LENGTHS}
    return OpDesc(op.type, inputs, op.outputs, op.attrs, op.attr_types)


def _sample_lengths(op: OpDesc) -> tuple[int, int]:
    """Returns two lengths that the lengths in attributes divide."""
    factor = _BASE
    for value in op.attrs.values():
        if isinstance(value, list) and all(isinstance(one, int) for one in value):
            factor = math.lcm(factor, math.prod(one for one in value if one > 0))
    return (factor * 5, factor * 7)


def _sample(
    program: ProgramDesc, op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]], i: int, length: int
) -> dict[Place, Inferred]:
    # The types are Paddle's, whose integers have 64 bits.
    with jax.enable_x64(True):
        outputs = _composed(program, op, inputs, i, length)
        return {
            (slot, i): _type_of(value)
            for slot, names in op.outputs.items()
            for i, (_, value) in enumerate(zip(names, outputs.get(slot, ()), strict=False))
            if is_array(value)
        }


def _composed(
    program: ProgramDesc, op: OpDesc, inputs: Mapping[str, Sequence[VarDesc]], i: int, length: int
) -> Slots:
    """Returns the outputs of a call on samples; those whose values it asks for are constants."""
    known: set[str] = set()
    while True:
        values = {
            slot: [_value(one, i, length, known) for one in some] for slot, some in inputs.items()
        }
        try:
            return Translation(program).composed(Call(op, values, {}, Translation(program), {}))
        except UnknownValueError as error:
            if known.issuperset(error.names):
                raise
            known.update(error.names)
        except PaddleError:
            raise
        except SymopError as error:
            raise PaddleError(f"{op.type}: {error}") from error


def _value(variable: VarDesc, i: int, length: int, known: Container[str]) -> Any:
    if variable.kind not in (VarKind.LOD_TENSOR, VarKind.SELECTED_ROWS) or variable.shape is None:
        return None
    shape = tuple(length if one < 0 else one for one in variable.shape)
    data: Any
    if variable.name in known:
        data = jnp.asarray(_sample_numbers(i, math.prod(shape)).reshape(shape), variable.dtype)
    else:
        data = so.var(variable.name, shape, variable.dtype)
    if not variable.lod_level:
        return data
    counts = [_SEQUENCES[i] * (level + 1) for level in range(variable.lod_level)]
    totals = [*counts[1:], shape[0] if shape else 0]
    return so.LoDTensor(
        data,
        [
            _offsets(f"{variable.name}{OFFSETS}{level}", count, total, known)
            for level, (count, total) in enumerate(zip(counts, totals, strict=True))
        ],
    )


def _sample_numbers(i: int, size: int) -> np.ndarray:
    """Returns numbers whose sum, maximum and number of distinct ones differ in the two samples.

    As conditions, all of the first sample hold, and half of the second.
    """
    return np.full(size, 2) if i == 0 else np.arange(size) % 2 * 5


def _offsets(name: str, count: int, total: int, known: Container[str]) -> Any:
    if name not in known:
        return so.var(name, (count + 1,), "int32")
    return jnp.asarray(np.linspace(0, total, count + 1), "int32")


def _type_of(value: Any) -> Inferred:
    data = data_of(value)
    sparse = getattr(data, "kind", "") == "selected_rows"
    kind = VarKind.SELECTED_ROWS if sparse else VarKind.LOD_TENSOR
    levels = len(value.lod) if isinstance(value, so.LoDTensor) else 0
    return Inferred(kind, np.dtype(data.dtype), tuple(data.shape), levels)


def _merged(one: Inferred, other: Inferred) -> Inferred:
    shape = tuple(a if a == b else -1 for a, b in zip(one.shape, other.shape, strict=True))
    return one._replace(shape=shape)
