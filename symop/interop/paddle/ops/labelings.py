"""Sequences of labels: conditional random fields, connectionist temporal classification, edits.

Sequences are ragged, or padded along the second axis with their lengths in a slot of their own.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle.operators import operator
from symop.interop.paddle.ops.sequences import Layout, last_offsets, ragged
from symop.interop.paddle.values import data_of, known


class Series(NamedTuple):
    """Sequences side by side.

    Attributes:
        inside: for each step which sequences have it.
        lengths: the lengths of the sequences.
        layout: the layout of ragged sequences, None for padded ones.
    """

    inside: Any
    lengths: Any
    layout: Layout | None

    def of(self, data: Any) -> Any:
        """Returns data as a series of shape (steps, sequences, ...)."""
        return so.swapaxes(data, 0, 1) if self.layout is None else self.layout.series(data)

    def back(self, series: Any) -> Any:
        """Returns a series as the data of sequences."""
        return so.swapaxes(series, 0, 1) if self.layout is None else self.layout.rows(series)


def _series(name: str, call: Any, x: Any, length: Any) -> Series:
    if length is None:
        layout = Layout(call, ragged(name, x))
        return Series(layout.inside, layout.lengths, layout)
    lengths = so.cast(so.reshape(data_of(length), shape=(-1,)), dtype="int32")
    steps = jnp.arange(data_of(x).shape[1], dtype=jnp.int32)[:, None]
    return Series(so.less(steps, lengths), lengths, None)


def _labels(series: Series, label: Any) -> Any:
    """Returns labels as a series of numbers."""
    data = so.cast(data_of(label), dtype="int32")
    return series.of(so.reshape(data, shape=data.shape[: 2 if series.layout is None else 1]))


# Conditional random fields -----------------------------------------------------------------------


@operator(
    outputs="Alpha EmissionExps TransitionExps LogLikelihood",
    ragged=True,
    no_gradient="Label Length",
)
def linear_chain_crf(
    Emission: Any, Transition: Any, Label: Any, Length: Any = None, *, call: Any
) -> Any:
    """Returns minus the logarithm of the likelihood of labels, and what its computation shares.

    The first two rows of the transitions are the weights of the first and of the last label.
    """
    series = _series("linear_chain_crf", call, Emission, Length)
    emission, transition = data_of(Emission), data_of(Transition)
    scores = series.of(emission)
    start, end, moves = transition[0], transition[1], transition[2:]
    first = so.add(scores[0], start)

    def step(before: Any, row: Any) -> tuple[Any, Any]:
        now, inside = row
        paths = so.expand_dims(before, axis=2) + moves
        after = so.where(inside, so.logsumexp(paths, axis=1) + now, before)
        return after, after

    inside = so.expand_dims(series.inside, axis=2)
    rest = (scores[1:], inside[1:])
    last, later = so.sym.scan(step, first, rest)
    sums = so.logsumexp(last + end, axis=1)
    gold = _gold(series, scores, start, end, moves, _labels(series, Label))
    loss = so.where(so.greater(series.lengths, 0), sums - gold, so.zeros_like(sums))
    logs = so.concat(so.expand_dims(first, axis=0), later, axis=0)
    alpha = series.back(so.softmax(logs, axis=2))
    highest = so.max(emission, axis=-1, keepdims=True)
    exps = so.exp(emission - highest)
    if series.layout is not None:
        alpha, exps = (so.LoDTensor(one, Emission.lod) for one in (alpha, exps))
    return alpha, exps, so.exp(transition), so.expand_dims(loss, axis=1)


def _gold(series: Series, scores: Any, start: Any, end: Any, moves: Any, labels: Any) -> Any:
    """Returns the score of the given labels of each sequence."""
    picked = so.squeeze(so.take_along_axis(scores, so.expand_dims(labels, axis=2), axis=2), axis=2)
    none = so.zeros_like(picked)
    total = so.sum(so.where(series.inside, picked, none), axis=0)
    count = moves.shape[0]
    pairs = so.take(so.reshape(moves, shape=(-1,)), labels[:-1] * count + labels[1:])
    total = total + so.sum(so.where(series.inside[1:], pairs, so.zeros_like(pairs)), axis=0)
    at = so.expand_dims(so.maximum(series.lengths - 1, 0), axis=0)
    final = so.squeeze(so.take_along_axis(labels, at, axis=0), axis=0)
    return total + so.take(start, labels[0]) + so.take(end, final)


def _decoded(series: Series, scores: Any, start: Any, end: Any, moves: Any) -> tuple[Any, Any]:
    """Returns the score of the most likely labels of each sequence, and these as a series."""
    same = so.broadcast_to(
        jnp.arange(moves.shape[0], dtype=jnp.int32), shape=(scores.shape[1], moves.shape[0])
    )

    def step(before: Any, row: Any) -> tuple[Any, Any]:
        now, inside = row
        paths = so.expand_dims(before, axis=2) + moves
        after = so.where(inside, so.max(paths, axis=1) + now, before)
        origin = so.cast(so.argmax(paths, axis=1), dtype="int32")
        return after, so.where(inside, origin, same)

    inside = so.expand_dims(series.inside, axis=2)
    last, origins = so.sym.scan(step, so.add(scores[0], start), (scores[1:], inside[1:]))
    final = so.expand_dims(so.cast(so.argmax(last + end, axis=1), dtype="int32"), axis=1)

    def back(label: Any, origin: Any) -> tuple[Any, Any]:
        before = so.take_along_axis(origin, label, axis=1)
        return before, before

    _, earlier = so.sym.scan(back, final, origins, reverse=True)
    labels = so.squeeze(so.concat(earlier, so.expand_dims(final, axis=0), axis=0), axis=2)
    labels = so.where(series.inside, labels, so.zeros_like(labels))
    return so.max(last + end, axis=1), labels


@operator(outputs="ViterbiPath", ragged=True, no_gradient="Emission Transition Label Length")
def crf_decoding(
    Emission: Any, Transition: Any, Label: Any = None, Length: Any = None, *, call: Any
) -> Any:
    """Returns the most likely labels; with given labels, where these are the most likely ones."""
    series = _series("crf_decoding", call, Emission, Length)
    scores, transition = series.of(data_of(Emission)), data_of(Transition)
    start, end, moves = transition[0], transition[1], transition[2:]
    _, labels = _decoded(series, scores, start, end, moves)
    if Label is not None:
        hit = so.equal(labels, _labels(series, Label))
        labels = so.cast(so.logical_and(hit, series.inside), dtype="int32")
    path = series.back(labels)
    if series.layout is None:
        return path
    return so.LoDTensor(so.expand_dims(path, axis=1), Emission.lod)


@operator(outputs="Scores Path", no_gradient="Input Transition Length")
def viterbi_decode(
    Input: Any, Transition: Any, Length: Any, *, include_bos_eos_tag: bool = True
) -> Any:
    """Returns the score of the most likely labels, and these, as long as the longest sequence.

    The last row of the transitions is that of the beginning, and the row before that of the end, if
    these are labels.
    """
    lengths = so.cast(so.reshape(Length, shape=(-1,)), dtype="int32")
    longest = int(known("viterbi_decode: Length", Length).max(initial=0))
    scores = so.swapaxes(so.slice_axis(Input, axis=1, begin=0, end=longest), 0, 1)
    count = Transition.shape[0]
    zeros = so.zeros(shape=(count,), dtype=Input.dtype)
    ends = (Transition[count - 2], Transition[count - 1]) if include_bos_eos_tag else (zeros, zeros)
    steps = jnp.arange(longest, dtype=jnp.int32)[:, None]
    series = Series(so.less(steps, lengths), lengths, None)
    best, labels = _decoded(series, scores, ends[1], ends[0], Transition)
    return best, so.swapaxes(labels, 0, 1)


# Connectionist temporal classification ---------------------------------------------------------


@operator(outputs="WarpCTCGrad Loss", ragged=True, no_gradient="Label LogitsLength LabelLength")
def warpctc(
    Logits: Any,
    Label: Any,
    LogitsLength: Any = None,
    LabelLength: Any = None,
    *,
    blank: int = 0,
    norm_by_times: bool = False,
    call: Any,
) -> Any:
    """Returns the loss of each sequence; ``norm_by_times`` divides gradients by its frames."""
    if LogitsLength is None:
        frames = _series("warpctc", call, Logits, None)
        logits, count = frames.of(data_of(Logits)), frames.lengths
    else:
        logits, count = data_of(Logits), so.reshape(data_of(LogitsLength), shape=(-1,))
    targets = _series("warpctc", call, Label, LabelLength)
    labels = so.swapaxes(_labels(targets, Label), 0, 1)
    count, lengths = (so.cast(one, dtype="int32") for one in (count, targets.lengths))
    loss = so.ctc_loss(logits, labels, count, lengths, blank=blank)
    if norm_by_times:
        scaled = loss / so.cast(count, dtype=loss.dtype)
        loss = scaled + so.stop_gradient(loss - scaled)
    return so.zeros(shape=(0,), dtype=loss.dtype), so.expand_dims(loss, axis=1)


@operator(outputs="Output OutputLength", ragged=True, no_gradient="Input InputLength")
def ctc_align(
    Input: Any,
    InputLength: Any = None,
    *,
    blank: int = 0,
    merge_repeated: bool = True,
    padding_value: int = 0,
) -> Any:
    """Returns labels without repetitions and blanks."""
    if InputLength is None:
        return _aligned_rows(ragged("ctc_align", Input), blank, merge_repeated)
    ids = data_of(Input)
    steps = ids.shape[1]
    lengths = so.cast(so.reshape(data_of(InputLength), shape=(-1, 1)), dtype="int32")
    kept = so.logical_and(so.not_equal(ids, blank), so.less(jnp.arange(steps), lengths))
    if merge_repeated:
        repeats = so.equal(ids[:, 1:], ids[:, :-1])
        first = so.full(shape=(ids.shape[0], 1), fill_value=False, dtype="bool")
        kept = so.logical_and(kept, so.logical_not(so.concat(first, repeats, axis=1)))
    places = so.cumsum(so.cast(kept, dtype="int32"), axis=1) - 1
    goes = so.equal(so.expand_dims(places, axis=2), jnp.arange(steps, dtype=jnp.int32))
    goes = so.logical_and(goes, so.expand_dims(kept, axis=2))
    found = so.sum(so.where(goes, so.expand_dims(ids, axis=2), 0), axis=1)
    count = so.sum(so.cast(kept, dtype="int32"), axis=1, keepdims=True)
    filled = so.less(jnp.arange(steps, dtype=jnp.int32), count)
    aligned = so.cast(so.where(filled, found, padding_value), dtype=ids.dtype)
    return aligned, so.cast(count, dtype=ids.dtype)


def _aligned_rows(x: Any, blank: int, merge: bool) -> Any:
    ids = known("ctc_align: Input", x).ravel()
    offsets = known("ctc_align: the offsets of Input", last_offsets(x))
    kept = ids != blank
    if merge:
        repeats = np.concatenate([[False], ids[1:] == ids[:-1]])
        repeats[offsets[:-1][offsets[:-1] < len(ids)]] = False
        kept &= ~repeats
    bounds = np.concatenate([[0], np.cumsum(kept)])[offsets]
    found = ids[kept] if kept.any() else np.full(1, -1, ids.dtype)
    return so.LoDTensor(jnp.asarray(found[:, None]), [jnp.asarray(bounds, jnp.int32)]), None


# Edits -----------------------------------------------------------------------------------------


@operator(outputs="SequenceNum Out", ragged=True, no_gradient="Hyps Refs HypsLength RefsLength")
def edit_distance(
    Hyps: Any,
    Refs: Any,
    HypsLength: Any = None,
    RefsLength: Any = None,
    *,
    normalized: bool = False,
    call: Any,
) -> Any:
    """Returns the Levenshtein distance of each pair of sequences."""
    found = _series("edit_distance", call, Hyps, HypsLength)
    given = _series("edit_distance", call, Refs, RefsLength)
    words, truth = _labels(found, Hyps), so.swapaxes(_labels(given, Refs), 0, 1)
    count, steps = truth.shape
    ruler = jnp.arange(steps + 1, dtype=jnp.int32)
    first = so.broadcast_to(ruler, shape=(count, steps + 1))

    def step(before: Any, row: Any) -> tuple[Any, Any]:
        word, inside = row
        differs = so.cast(so.not_equal(so.expand_dims(word, axis=1), truth), dtype="int32")
        changed = so.minimum(before[:, 1:] + 1, before[:, :-1] + differs)
        best = so.concat(before[:, :1] + 1, changed, axis=1)
        # An insertion costs one for each step to the right.
        best = so.cummin(best - ruler, axis=1) + ruler
        return so.where(so.expand_dims(inside, axis=1), best, before), best

    table, _ = so.sym.scan(step, first, (words, found.inside))
    at = so.expand_dims(given.lengths, axis=1)
    distance = so.cast(so.take_along_axis(table, at, axis=1), dtype="float32")
    if normalized:
        distance = distance / so.cast(at, dtype="float32")
    return jnp.asarray([count], jnp.int32), distance
