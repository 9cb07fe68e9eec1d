"""Ragged sequences: the operators that read offsets.

The lengths of axes are known when a program is compiled. Where the number of rows of a result
follows from offsets, lengths or tokens, the program is compiled for those that are fed.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.dtypes import dtype_of
from symop.interop.paddle.values import data_of, known, numbers

_FUSED = "use_mkldnn data_format is_test"


def ragged(name: str, value: Any) -> Any:
    """Returns a ragged value.

    Raises:
        PaddleError: it has no offsets.
    """
    if not isinstance(value, so.LoDTensor):
        raise PaddleError(f"{name}: the input must have offsets of sequences, got an array alone")
    return value


def like(x: Any, data: Any) -> Any:
    """Returns data with the offsets of ``x``."""
    return so.LoDTensor(data, x.lod)


def _symbolic(offsets: Any) -> Any:
    return jnp.asarray(offsets) if isinstance(offsets, np.ndarray) else offsets


def last_offsets(x: Any) -> Any:
    """Returns the offsets that count steps."""
    return _symbolic(x.lod[-1])


class Layout:
    """Ragged sequences side by side: series of steps, each with a row of every sequence.

    Attributes:
        longest: the number of steps.
        count: the number of sequences.
        lengths: the lengths of the sequences.
        ids: the sequence of each row.
        own: the step of each row within its sequence.
        inside: for each step which sequences have it.
    """

    def __init__(self, call: Any, x: Any, reverse: bool = False) -> None:
        """Lays out the sequences of ``x``; with ``reverse`` their ends come first."""
        offsets, rows = last_offsets(x), x.data.shape[0]
        self.longest = call.translation.facts.bound(offsets, rows)
        self.count = offsets.shape[0] - 1
        self.lengths = so.sequence_lengths(offsets)
        self.ids = so.sequence_ids(offsets, total_length=rows)
        self.own = jnp.arange(rows, dtype=jnp.int32) - so.take(offsets, self.ids, mode="clip")
        steps = jnp.arange(self.longest, dtype=jnp.int32)[:, None]
        self.inside = so.less(steps, self.lengths)
        begin = so.slice_axis(offsets, axis=0, begin=0, end=self.count)
        places = begin + (self.lengths - 1 - steps if reverse else steps)
        self._places = so.clip(places, low=0, high=max(rows - 1, 0))
        last = so.take(self.lengths, self.ids, mode="clip") - 1
        self._flat = (last - self.own if reverse else self.own) * self.count + self.ids

    def series(self, data: Any) -> Any:
        """Returns rows as a series of shape (steps, sequences, ...)."""
        return so.take(data, self._places, axis=0)

    def rows(self, series: Any) -> Any:
        """Returns the rows of a series."""
        flat = so.reshape(series, shape=(self.longest * self.count, *series.shape[2:]))
        return so.take(flat, self._flat, axis=0)


_POOLS: dict[str, Any] = {
    "AVERAGE": "mean",
    "SUM": "sum",
    "SQRT": "sqrt",
    "MAX": "max",
    "LAST": "last",
    "FIRST": "first",
}


@operator(outputs="Out MaxIndex", ragged=True, ignored=_FUSED)
def sequence_pool(
    X: Any, *, pooltype: str = "AVERAGE", pad_value: float = 0.0, is_test: bool = False
) -> Any:
    x = ragged("sequence_pool", X)
    if pooltype not in _POOLS:
        raise PaddleError(
            f"sequence_pool: pooltype must be one of {', '.join(_POOLS)}, got {pooltype!r}"
        )
    offsets = last_offsets(x)
    out = so.sequence_pool(x.data, offsets, pool=_POOLS[pooltype], pad_value=pad_value)
    places = so.sequence_argmax(x.data, offsets) if pooltype == "MAX" else None
    above = x.lod[:-1]
    return so.LoDTensor(out, above) if above else out, places


@operator(ragged=True, ignored=_FUSED)
def sequence_softmax(X: Any) -> Any:
    x = ragged("sequence_softmax", X)
    return like(x, so.sequence_softmax(x.data, last_offsets(x)))


@operator(outputs="Y", ragged=True)
def sequence_reverse(X: Any) -> Any:
    x = ragged("sequence_reverse", X)
    return like(x, so.sequence_reverse(x.data, offsets=last_offsets(x)))


@operator(ragged=True)
def sequence_concat(X: Values) -> Any:
    parts = [ragged("sequence_concat", one) for one in X]
    if len(parts) == 1:
        return parts[0]
    offsets = so.concat(*(so.expand_dims(last_offsets(one), axis=0) for one in parts), axis=0)
    data, joined = so.sequence_concat([one.data for one in parts], offsets)
    return so.LoDTensor(data, [joined])


@operator(ragged=True, no_gradient="Offset Length")
def sequence_slice(X: Any, Offset: Any, Length: Any) -> Any:
    x = ragged("sequence_slice", X)
    total = sum(numbers("sequence_slice: Length", Length))
    begin, length = (so.reshape(data_of(one), shape=(-1,)) for one in (Offset, Length))
    data, offsets = so.sequence_slice(
        x.data,
        last_offsets(x),
        so.cast(begin, dtype="int32"),
        so.cast(length, dtype="int32"),
        total_length=total,
    )
    return so.LoDTensor(data, [offsets])


@operator(ragged=True, ignored="paddingTrainable")
def sequence_conv(
    X: Any,
    Filter: Any,
    PaddingData: Any = None,
    *,
    contextLength: int,
    contextStart: int = 0,
    contextStride: int = 1,
) -> Any:
    x, offsets = ragged("sequence_conv", X), last_offsets(ragged("sequence_conv", X))
    if contextStride != 1:
        raise PaddleError(f"sequence_conv: contextStride must be 1, got {contextStride}")
    weight = data_of(Filter)
    if PaddingData is None:
        out = so.sequence_conv(
            x.data,
            offsets,
            weight,
            channels=weight.shape[1],
            context_length=contextLength,
            context_start=contextStart,
        )
        return like(x, out)
    context = so.sequence_context(
        x.data, offsets, context_length=contextLength, context_start=contextStart
    )
    outside = _outside(x, offsets, contextLength, contextStart)
    rows = so.where(outside >= 0, outside, 0)
    filling = so.take(data_of(PaddingData), rows, axis=0)
    context = so.where(so.expand_dims(outside >= 0, axis=-1), filling, context)
    return like(x, so.matmul(so.reshape(context, shape=(x.data.shape[0], -1)), weight))


def _outside(x: Any, offsets: Any, length: int, start: int) -> Any:
    """Returns for each step of each context its row of the padding, -1 inside of the sequence."""
    steps = x.data.shape[0]
    ids = so.sequence_ids(offsets, total_length=steps)
    starts = so.take(offsets, ids, mode="clip")
    lengths = so.take(so.sequence_lengths(offsets), ids, mode="clip")
    own = jnp.arange(steps, dtype=jnp.int32) - starts
    places = so.expand_dims(own, axis=1) + jnp.arange(start, start + length, dtype=jnp.int32)
    after = places - so.expand_dims(lengths, axis=1)
    before = max(0, -start)
    return so.where(places < 0, places + before, so.where(after >= 0, after + before, -1))


def _level(name: str, y: Any, ref_level: int) -> tuple[Any, int]:
    """Returns the offsets of a level, and how many items they count."""
    y = ragged(name, y)
    level = ref_level % len(y.lod)
    last = level == len(y.lod) - 1
    count = y.data.shape[0] if last else y.lod[level + 1].shape[0] - 1
    return _symbolic(y.lod[level]), count


@operator(ragged=True, no_gradient="Y")
def sequence_expand(X: Any, Y: Any, *, ref_level: int = -1) -> Any:
    offsets, count = _level("sequence_expand", Y, ref_level)
    if not isinstance(X, so.LoDTensor):
        return so.sequence_expand_as(X, offsets, total_length=count)
    own = known("sequence_expand: the offsets of X", last_offsets(X))
    times = np.diff(known("sequence_expand: the offsets of Y", offsets))
    rows, lengths = _repeated(own, times)
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return so.LoDTensor(so.take(X.data, jnp.asarray(rows)), [bounds])


def _repeated(offsets: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Returns the rows of sequences repeated some times, and the length of each result."""
    pieces = [
        np.arange(start, stop)
        for start, stop, n in zip(offsets[:-1], offsets[1:], times, strict=True)
        for _ in range(n)
    ]
    rows = np.concatenate([np.zeros(0, int), *pieces]).astype(np.int32)
    return rows, [len(one) for one in pieces]


@operator(ragged=True, no_gradient="Y")
def sequence_expand_as(X: Any, Y: Any) -> Any:
    y = ragged("sequence_expand_as", Y)
    offsets, count = _level("sequence_expand_as", y, 0)
    rows = so.sequence_expand_as(data_of(X), offsets, total_length=count)
    return so.LoDTensor(rows, [y.lod[0]])


@operator(outputs="Out Length", ragged=True, no_gradient="PadValue")
def sequence_pad(X: Any, PadValue: Any, *, padded_length: int = -1) -> Any:
    x = ragged("sequence_pad", X)
    offsets = last_offsets(x)
    length = padded_length
    if length == -1:
        own = known("sequence_pad: without padded_length, the offsets of X", offsets)
        length = int(np.diff(own).max(initial=0))
    padded, lengths = so.sequence_pad(x.data, offsets, padded_length=length)
    inside = so.length_mask(lengths, size=length)
    mask = so.reshape(inside, shape=(*inside.shape, *(1 for _ in padded.shape[2:])))
    value = data_of(PadValue)
    value = so.reshape(value, shape=()) if value.size == 1 else value
    return so.where(mask, padded, value), lengths


@operator(ragged=True, no_gradient="X")
def sequence_erase(X: Any, *, tokens: Sequence[int] = ()) -> Any:
    x = ragged("sequence_erase", X)
    ids = known("sequence_erase: X", x)
    offsets = known("sequence_erase: the offsets of X", last_offsets(x))
    kept = ~np.isin(ids.reshape(len(ids), -1)[:, 0], np.asarray(tokens, ids.dtype))
    bounds = np.concatenate([[0], np.cumsum(kept)])[offsets].astype(np.int32)
    return so.LoDTensor(jnp.asarray(ids[kept]), (*x.lod[:-1], bounds))


@operator(ragged=True, no_gradient="Length")
def sequence_unpad(X: Any, Length: Any) -> Any:
    total = sum(numbers("sequence_unpad: Length", data_of(Length)))
    lengths = so.reshape(data_of(Length), shape=(-1,))
    data, offsets = so.sequence_unpad(data_of(X), lengths, total_length=total)
    return so.LoDTensor(data, [offsets])


@operator(ragged=True, no_gradient="Y")
def lod_reset(
    X: Any, Y: Any = None, *, target_lod: Sequence[int] = (), append: bool = False
) -> Any:
    if isinstance(Y, so.LoDTensor):
        lod = Y.lod
    elif Y is not None:
        lod = (so.cast(so.reshape(Y, shape=(-1,)), dtype="int32"),)
    elif target_lod:
        lod = (np.asarray(target_lod, np.int32),)
    else:
        raise PaddleError("lod_reset: Y or target_lod must be given, got neither")
    above = X.lod if append and isinstance(X, so.LoDTensor) else ()
    return so.LoDTensor(data_of(X), (*above, *lod))


@operator(ragged=True)
def sequence_reshape(X: Any, *, new_dim: int) -> Any:
    x = ragged("sequence_reshape", X)
    width = x.data.shape[1]
    offsets = so.floor_divide(last_offsets(x) * width, new_dim)
    return so.LoDTensor(so.reshape(x.data, shape=(-1, new_dim)), [offsets])


@operator(ragged=True)
def sequence_enumerate(X: Any, *, win_size: int, pad_value: int = 0) -> Any:
    x = ragged("sequence_enumerate", X)
    flat = so.reshape(x.data, shape=(-1, 1))
    context = so.sequence_context(flat, last_offsets(x), context_length=win_size, context_start=0)
    inside = _outside(x, last_offsets(x), win_size, 0) < 0
    return like(x, so.where(inside, so.squeeze(context, axis=-1), pad_value))


@operator(ragged=True, no_gradient="Ids")
def sequence_scatter(X: Any, Ids: Any, Updates: Any) -> Any:
    ids = ragged("sequence_scatter", Ids)
    rows = so.sequence_ids(last_offsets(ids), total_length=ids.data.shape[0])
    columns = so.reshape(so.cast(ids.data, dtype="int32"), shape=(-1,))
    places = so.concat(so.expand_dims(rows, axis=1), so.expand_dims(columns, axis=1), axis=1)
    updates = so.reshape(data_of(Updates), shape=(-1,))
    return data_of(X) + so.scatter_nd(updates, places, shape=data_of(X).shape)


@operator(outputs="Y", no_gradient="X MaxLenTensor")
def sequence_mask(X: Any, MaxLenTensor: Any = None, *, maxlen: int = -1, out_dtype: int = 3) -> Any:
    size = (
        maxlen if MaxLenTensor is None else numbers("sequence_mask: MaxLenTensor", MaxLenTensor)[0]
    )
    if size < 0:
        size = int(known("sequence_mask: without maxlen, X", X).max(initial=0))
    return so.cast(so.length_mask(X, size=size), dtype=dtype_of(out_dtype))


@operator(ragged=True)
def row_conv(X: Any, Filter: Any) -> Any:
    future, x = data_of(Filter), data_of(X)
    if not isinstance(X, so.LoDTensor):
        widths = ((0, 0), (0, future.shape[0] - 1), (0, 0))
        padded = so.pad(x, pad_width=widths)
        steps = x.shape[1]
        return so.add_n(
            *(
                so.slice_axis(padded, axis=1, begin=i, end=i + steps) * future[i]
                for i in range(future.shape[0])
            )
        )
    context = so.sequence_context(
        x, last_offsets(X), context_length=future.shape[0], context_start=0
    )
    return like(X, so.sum(context * future, axis=1))


@operator(ragged=True, no_gradient="Y", ignored="out_stride")
def im2sequence(
    X: Any,
    Y: Any = None,
    *,
    kernels: Sequence[int],
    strides: Sequence[int] = (1, 1),
    paddings: Sequence[int] = (0, 0, 0, 0),
) -> Any:
    if Y is not None:
        raise PaddleError("im2sequence: Y must be left out, since sizes are known when compiled")
    x = data_of(X)
    pads = ((paddings[0], paddings[2]), (paddings[1], paddings[3]))
    columns = so.im2col(x, kernel=tuple(kernels), stride=tuple(strides), padding=pads)
    steps = columns.shape[2]
    rows = so.reshape(so.transpose(columns, axes=(0, 2, 1)), shape=(-1, columns.shape[1]))
    return so.LoDTensor(rows, [np.arange(x.shape[0] + 1, dtype=np.int32) * steps])
