"""Operators on sequences of different lengths."""

from typing import Any

import symop as so
from registry.types import is_integer
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.indexing import whole
from symop.interop.mxnet.partial_dtypes import labeled
from symop.interop.mxnet.partial_shapes import Shapes, enter, like_data


def _inputs(use_sequence_length: bool) -> tuple[str, ...]:
    return ("data", "sequence_length") if use_sequence_length else ("data",)


def _lengths(sequence_length: Any, axis: int) -> Any:
    """Lengths as integers; None if all sequences are complete."""
    if axis not in (0, 1):
        raise MXNetError(f"Sequence operators: axis must be 0 or 1, got {axis}")
    return None if sequence_length is None else whole(sequence_length)


def _same_shapes(given: Shapes, found: Shapes, axis: int) -> None:
    like_data(given, found)
    if given[0] is not None:
        enter(given, 1, (given[0][1 - axis],))


@operator("SequenceMask", present=_inputs, shapes=_same_shapes, dtypes=labeled)
def sequence_mask(
    data: Any,
    sequence_length: Any = None,
    *,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
) -> Any:
    """``data`` with ``value`` after the end of each sequence."""
    lengths = _lengths(sequence_length if use_sequence_length else None, axis)
    if is_integer(data.dtype):
        value = int(value)
    return so.sequence_mask(data, lengths, value=value, axis=axis)


@operator("SequenceReverse", present=_inputs, shapes=_same_shapes, dtypes=labeled)
def sequence_reverse(
    data: Any, sequence_length: Any = None, *, use_sequence_length: bool = False, axis: int = 0
) -> Any:
    """Reverses the steps of each sequence."""
    lengths = _lengths(sequence_length if use_sequence_length else None, axis)
    return so.sequence_reverse(data, lengths, axis=axis)


def _last_shapes(given: Shapes, found: Shapes, axis: int) -> None:
    data = given[0]
    if data is not None:
        enter(given, 1, (data[1 - axis],))
        enter(found, 0, (data[1 - axis], *data[2:]))


@operator("SequenceLast", present=_inputs, shapes=_last_shapes, dtypes=labeled)
def sequence_last(
    data: Any, sequence_length: Any = None, *, use_sequence_length: bool = False, axis: int = 0
) -> Any:
    """The last step of each sequence."""
    lengths = _lengths(sequence_length if use_sequence_length else None, axis)
    return so.sequence_last(data, lengths, axis=axis)
