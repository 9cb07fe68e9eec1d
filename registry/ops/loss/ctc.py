"""Connectionist temporal classification: the loss of a label sequence without an alignment."""

import itertools
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, DTypeError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast
from registry.ops.core.elementwise import exp, where
from registry.ops.core.indexing import add_rows
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import permute_dims, reshape
from registry.ops.core.slicing import pad_slice, slice_
from registry.ops.elementwise.rounding import isinf
from registry.ops.nn.softmax import softmax
from registry.ops.reduce.chains import chain_sum
from registry.shapes import at_least_single, inexact, real
from registry.table import op
from registry.types import DType, Shape, VarType, is_integer
from registry.var import Var
from registry.xla import device_types

_INF = float("inf")

# ctc_lattice -----------------------------------------------------------------------------------


def _require_lengths(labels: Shape, *lengths: Shape | None) -> None:
    if len(labels) != 2:
        raise ShapeError(f"labels must have shape (examples, labels), got {labels}")
    for one in lengths:
        if one not in (None, labels[:1]):
            raise ShapeError(f"lengths must have shape {labels[:1]}, got {one}")


def _ctc_lattice_shape(
    labels: Shape,
    logit_lengths: Shape | None,
    label_lengths: Shape | None,
    *,
    frames: int,
    classes: int,
    blank: int,
) -> tuple[Shape, ...]:
    _require_lengths(labels, logit_lengths, label_lengths)
    if not 0 <= blank < classes:
        raise AttributeValueError(f"blank must be in [0, {classes}), got {blank}")
    n, states = labels[0], 2 * labels[1] + 1
    return (n, states), (n, states), (frames, n, states), (frames, n, 1)


def _require_integers(*types: VarType | None) -> None:
    for one in types:
        if one is not None and not is_integer(one.dtype):
            raise DTypeError(f"labels and lengths must be integers, got {one.dtype.name}")


def _ctc_lattice_dtype(
    labels: VarType, logit_lengths: VarType | None, label_lengths: VarType | None
) -> list[DType]:
    _require_integers(labels, logit_lengths, label_lengths)
    return [np.dtype(one) for one in (np.int32, np.bool_, np.bool_, np.bool_)]


def _length(row: np.ndarray, lengths: np.ndarray | None, n: int, blank: int) -> int:
    """The number of labels of example ``n`` that count."""
    if lengths is not None:
        return int(np.clip(lengths[n], 0, len(row)))
    ended = [j for j, label in enumerate(row) if label < 0 or label == blank]
    return min([*ended, len(row)])


def _ctc_lattice_reference(
    labels: np.ndarray,
    logit_lengths: np.ndarray | None = None,
    label_lengths: np.ndarray | None = None,
    *,
    frames: int,
    classes: int,
    blank: int = 0,
) -> tuple[np.ndarray, ...]:
    n, states = len(labels), 2 * labels.shape[1] + 1
    places, skips = np.zeros((n, states), np.int32), np.zeros((n, states), bool)
    ends, live = np.zeros((frames, n, states), bool), np.zeros((frames, n, 1), bool)
    for i, row in enumerate(labels):
        length = _length(row, label_lengths, i, blank)
        last = frames if logit_lengths is None else int(np.clip(logit_lengths[i], 0, frames))
        live[:last, i] = True
        places[i] = i * classes + blank
        for j in range(length):
            legal = 0 <= row[j] < classes and row[j] != blank
            places[i, 2 * j + 1] = i * classes + row[j] if legal else n * classes
            skips[i, 2 * j + 1] = j > 0 and row[j] != row[j - 1]
        for state in (2 * length, 2 * length - 1):
            if last and state >= 0:
                ends[last - 1, i, state] = True
    return places, skips, ends, live


@op(
    outputs=("places", "skips", "ends", "live"),
    shape=_ctc_lattice_shape,
    dtype=_ctc_lattice_dtype,
    reference=_ctc_lattice_reference,
    cases=[
        case(labels=integers(3, 2, low=1, high=3), frames=4, classes=3),
        case(
            labels=integers(3, 2, low=-1, high=4),
            logit_lengths=integers(3, high=5),
            label_lengths=integers(3, high=3),
            frames=4,
            classes=3,
            blank=2,
        ),
        case(labels=integers(4, 3, low=-1, high=3), frames=2, classes=3, blank=1),
        case(labels=integers(0, 2, high=3), frames=1, classes=3),
        misuse("labels must have shape", labels=integers(3, high=3), frames=4, classes=3),
        misuse(
            "lengths must have shape (3,), got (2,)",
            labels=integers(3, 2, high=3),
            label_lengths=integers(2, high=3),
            frames=4,
            classes=3,
        ),
        misuse(
            "blank must be in [0, 3), got 3",
            labels=integers(3, 2, high=3),
            frames=4,
            classes=3,
            blank=3,
        ),
        misuse("must be integers, got float32", labels=(3, 2), frames=4, classes=3),
    ],
)
def ctc_lattice(
    labels: Array,
    logit_lengths: Array | None = None,
    label_lengths: Array | None = None,
    *,
    frames: int,
    classes: int,
    blank: int = 0,
) -> tuple[Array, ...]:
    """The lattice of states through which alignments of ``labels`` to frames run in ``ctc_loss``.

    Each example has a state for each label, and one for the blank before, between and after them.
    ``places`` are the columns of their classes in logits of shape ``(frames, examples * classes)``,
    one past the end for a label that is out of range or blank; ``skips`` is true for states before
    which the blank may be omitted; ``ends`` indicates, by frame, example and state, where an
    alignment may end; and ``live`` indicates which frames count.

    Example:
        >>> import jax.numpy as jnp
        >>> places, skips, ends, live = ctc_lattice(jnp.asarray([[1, 2]]), frames=2, classes=3)
        >>> places, skips.astype(int)
        (Array([[0, 1, 0, 2, 0]], dtype=int32), Array([[0, 0, 0, 1, 0]], dtype=int32))
    """
    n, width = labels.shape
    labels = jnp.asarray(labels)
    between = (labels < 0) | (labels == blank)
    counted = jnp.cumsum(between, axis=1) == 0
    if label_lengths is not None:
        counted = jnp.arange(width) < jnp.asarray(label_lengths)[:, None]
    last = frames if logit_lengths is None else jnp.clip(jnp.asarray(logit_lengths), 0, frames)
    last = jnp.broadcast_to(jnp.asarray(last, np.int32), (n,))
    first = jnp.arange(n, dtype=np.int32)[:, None] * classes
    own = jnp.where(between | (labels >= classes), n * classes, first + labels.astype(np.int32))
    changed = jnp.pad(labels[:, 1:] != labels[:, :-1], ((0, 0), (min(width, 1), 0)))
    state, time = jnp.arange(2 * width + 1), jnp.arange(frames)[:, None, None]
    final = 2 * jnp.sum(counted, axis=1)[:, None]
    ending = (state == final) | (state == final - 1)
    return (
        _interleaved(first + blank, jnp.where(counted, own, first + blank)),
        _interleaved(jnp.zeros((n, 1), bool), changed & counted),
        ending & (time == last[:, None] - 1),
        time < last[:, None],
    )


def _interleaved(blank: Array, own: Array) -> Array:
    """``own`` with ``blank`` before, between and after its columns."""
    blanks = jnp.broadcast_to(blank, own.shape)
    pairs = jnp.stack([blanks, own], axis=2).reshape(len(own), 2 * own.shape[1])
    return jnp.concatenate([pairs, blank], axis=1)


ctc_lattice.no_gradient("its inputs are integers")


# ctc_loss --------------------------------------------------------------------------------------


def _ctc_loss_shape(
    logits: Shape,
    labels: Shape,
    logit_lengths: Shape | None,
    label_lengths: Shape | None,
    *,
    blank: int,
) -> tuple[Shape, ...]:
    if len(logits) != 3 or logits[0] == 0 or logits[1:2] != labels[:1]:
        raise ShapeError(
            "logits must have shape (frames, examples, classes) with at least one frame, and as "
            f"many examples as labels, got {logits} and {labels}"
        )
    _require_lengths(labels, logit_lengths, label_lengths)
    if not -logits[2] <= blank < logits[2]:
        raise AttributeValueError(f"blank must be in [{-logits[2]}, {logits[2]}), got {blank}")
    lattice = (*logits[:2], 2 * labels[1] + 1)
    return labels[:1], labels[:1], lattice, lattice


def _ctc_loss_dtype(
    logits: VarType,
    labels: VarType,
    logit_lengths: VarType | None,
    label_lengths: VarType | None,
) -> list[DType]:
    real(logits)
    dtype = inexact(logits)[0]
    _require_integers(labels, logit_lengths, label_lengths)
    wide = at_least_single(dtype)
    return [dtype, wide, wide, wide]


def _collapsed(path: Sequence[int], blank: int) -> list[int]:
    """The labels that an alignment represents."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


def _ctc_loss_reference(
    logits: np.ndarray,
    labels: np.ndarray,
    logit_lengths: np.ndarray | None = None,
    label_lengths: np.ndarray | None = None,
    *,
    blank: int = 0,
) -> np.ndarray:
    powers = np.exp(logits.astype(np.float64))
    probabilities = powers / powers.sum(axis=-1, keepdims=True)
    frames, examples, classes = logits.shape
    blank %= classes
    out = np.zeros(examples)
    for n in range(examples):
        last = frames if logit_lengths is None else int(logit_lengths[n])
        wanted = labels[n, : _length(labels[n], label_lengths, n, blank)].tolist()
        paths: Iterator[tuple[int, ...]] = itertools.product(range(classes), repeat=last)
        mass = sum(
            np.prod([probabilities[t, n, c] for t, c in enumerate(path)])
            for path in paths
            if _collapsed(path, blank) == wanted
        )
        out[n] = -np.log(mass) if mass else np.inf
    return out


@op(
    outputs=("out", "total", "alphas", "emissions"),
    hidden=("total", "alphas", "emissions"),
    shape=_ctc_loss_shape,
    dtype=_ctc_loss_dtype,
    reference=_ctc_loss_reference,
    cases=[
        case(logits=(4, 2, 3), labels=integers(2, 2, low=1, high=3), order=2),
        case(
            logits=(4, 3, 3),
            labels=integers(3, 2, high=2),
            logit_lengths=integers(3, low=3, high=5),
            label_lengths=integers(3, high=3),
            blank=-1,
            order=2,
        ),
        case(logits=(2, 2, 3), labels=integers(2, 0, high=2), order=1),
        case(logits=(2, 0, 3), labels=integers(0, 1, high=2), order=1),
        case(logits=(2, 1, 2), labels=integers(1, 1, low=1, high=2)),
        workload(logits=(64, 32, 128), labels=integers(32, 16, low=1, high=128)),
        misuse(
            "as many examples as labels, got (4, 2, 3) and (3, 2)",
            logits=(4, 2, 3),
            labels=integers(3, 2, high=3),
        ),
        misuse(
            "blank must be in [-3, 3), got 3",
            logits=(4, 2, 3),
            labels=integers(2, 2, high=3),
            blank=3,
        ),
        misuse(
            "lengths must have shape (2,), got (3,)",
            logits=(4, 2, 3),
            labels=integers(2, 2, high=3),
            logit_lengths=integers(3, high=3),
        ),
        misuse("labels and lengths must be integers", logits=(4, 2, 3), labels=(2, 2)),
        misuse(
            "the inputs must be real",
            logits=np.ones((4, 2, 3), np.complex64),
            labels=integers(2, 2, high=3),
        ),
    ],
)
def ctc_loss(
    logits: Array,
    labels: Array,
    logit_lengths: Array | None = None,
    label_lengths: Array | None = None,
    *,
    blank: int = 0,
) -> tuple[Array, Array, Array, Array]:
    """Connectionist temporal classification loss: ``-log`` of the probability of each sequence.

    The probability of a sequence is summed over all of its alignments. ``logits`` have shape
    ``(frames, examples, classes)`` and ``labels`` have shape ``(examples, labels)``; the softmax of
    the logits is taken here. An alignment assigns a class to each frame; repetitions are merged and
    blanks removed. Frames from ``logit_lengths`` on and labels from ``label_lengths`` on are
    ignored, whatever they hold. Without ``label_lengths`` the labels end at the first that is
    negative or ``blank``. A negative ``blank`` counts from the end.

    A sequence without an alignment, because there are too few frames, has loss infinity and
    gradient zero. A label that counts and is blank or out of range gives NaN.

    Source: Graves et al., Connectionist Temporal Classification (2006).

    Example:
        >>> import jax.numpy as jnp
        >>> ctc_loss(jnp.zeros((2, 1, 2)), jnp.asarray([[1]]))
        Array([0.2876821], dtype=float32)
    """
    logits = jnp.asarray(logits)
    how = _lattice_attributes(logits.shape, blank)
    places, skips, ends, live = ctc_lattice.kernel(
        jnp.asarray(labels), logit_lengths, label_lengths, **how
    )
    x = logits.astype(at_least_single(logits.dtype))
    if logit_lengths is not None:
        x = jnp.where(live, x, 0)
    emissions = _emissions(x, places)
    alphas = _alphas(emissions, skips)
    total = -_log_sum(jnp.where(ends, alphas, -jnp.inf), (0, 2))
    if logit_lengths is not None:  # without frames there is one alignment, of no labels
        unlabeled = jnp.all(places == places[:, :1], axis=1)
        total = jnp.where(jnp.any(live, (0, 2)) | ~unlabeled, total, 0)
    return total.astype(logits.dtype), total, alphas, emissions


def _lattice_attributes(logits: Shape, blank: int) -> dict[str, int]:
    """The attributes of the lattice for logits of that shape."""
    return {"frames": logits[0], "classes": logits[2], "blank": blank % logits[2]}


def _emissions(logits: Array, places: Array) -> Array:
    """The log probability of each state's class, by frame, example and state."""
    frames, examples, classes = logits.shape
    logs = jax.nn.log_softmax(logits).reshape(frames, examples * classes)
    emissions = jnp.take(logs, places, axis=1, mode="fill")
    return emissions.reshape(frames, *places.shape)  # an empty take drops an axis


def _alphas(emissions: Array, skips: Array) -> Array:
    """The log probability of all partial alignments that end in each state."""

    def step(before: Array, here: Array) -> tuple[Array, Array]:
        skipped = jnp.where(skips, _entered(before, 2), -jnp.inf)
        after = here + _log_sum(jnp.stack([before, _entered(before, 1), skipped]), 0)
        return after, after

    first = jnp.where(jnp.arange(skips.shape[1]) == 0, 0, -jnp.inf).astype(emissions.dtype)
    alphas: Array = device_types.scan(step, jnp.broadcast_to(first, skips.shape), emissions)[1]
    return alphas


def _entered(before: Array, k: int) -> Array:
    """``before`` shifted by ``k`` states and filled with the logarithm of zero."""
    kept = before[:, : max(before.shape[1] - k, 0)]
    pads = ((0, 0), (min(k, before.shape[1]), 0))
    return jnp.pad(kept, pads, constant_values=-jnp.inf)


def _log_sum(x: Array, axis: int | tuple[int, ...]) -> Array:
    """``log(sum(exp(x)))`` with derivative zero, not NaN, where all of ``x`` is -infinity."""
    largest = lax.stop_gradient(jnp.max(x, axis, keepdims=True, initial=-jnp.inf))
    largest = jnp.where(jnp.isneginf(largest), 0, largest)
    mass = jnp.sum(jnp.exp(x - largest), axis)
    none = mass == 0
    return jnp.where(none, -jnp.inf, jnp.log(jnp.where(none, 1, mass)) + largest.squeeze(axis))


@ctc_loss.gradient
def _ctc_loss_gradient(
    logits: Var,
    labels: Var,
    logit_lengths: Var | None,
    label_lengths: Var | None,
    total: Var,
    alphas: Var,
    emissions: Var,
    d_out: Var,
    d_total: Var | None,
    d_alphas: Var | None,
    d_emissions: Var | None,
    *,
    blank: int,
) -> Grads:
    how = _lattice_attributes(logits.shape, blank)
    places, skips, ends, live = ctc_lattice(labels, logit_lengths, label_lengths, **how)
    d = cast(d_out, dtype=total.dtype)
    d = d if d_total is None else d + d_total
    flow = _ending_flow(d, total, alphas, ends)
    flow = flow if d_alphas is None else flow + d_alphas
    flow = chain_sum(flow, *_arrow_shares(alphas, emissions, skips), reverse=True)
    flow = flow if d_emissions is None else flow + d_emissions
    x = cast(logits, dtype=total.dtype)
    x = x if logit_lengths is None else where(live, x, 0.0)
    d_x = _by_class(flow, places, logits.shape) - softmax(x) * sum_over(flow, axis=2, keepdims=True)
    d_x = d_x if logit_lengths is None else where(live, d_x, 0.0)
    return {"logits": cast(d_x, dtype=logits.dtype)}


def _ending_flow(d: Var, total: Var, alphas: Var, ends: Var) -> Var:
    """The cotangent of the alphas, given the cotangent of each example's total.

    alpha[t, s] = emission[t, s] + log(sum over the states r before s of exp(alpha[t - 1, r])), so
    the cotangent of alpha passes to the emission and, by the shares of the states r in that sum, to
    the previous alphas: it propagates as in chain_sum, against the arrows. It starts at the ends,
    by their shares in the probability exp(-total).
    """
    shape = (1, alphas.shape[1], 1)
    d = reshape(d, shape=shape)
    finite = reshape(where(isinf(total), 0.0, total), shape=shape)
    flow: Var = -(d * exp(where(ends, alphas + finite, -_INF)))
    return flow


def _by_class(flow: Var, places: Var, logits: Shape) -> Var:
    """The cotangents of the states, summed by frame, example and class."""
    frames, examples, classes = logits
    rows = add_rows(permute_dims(flow, axes=(1, 2, 0)), places, height=examples * classes)
    by_class: Var = reshape(permute_dims(rows, axes=(1, 0)), shape=(frames, examples, classes))
    return by_class


def _arrow_shares(alphas: Var, emissions: Var, skips: Var) -> list[Var]:
    """The share of each state among those from which the state ``k`` later is entered.

    It is ``exp(alpha[t - 1, s - k] + emission[t, s] - alpha[t, s])``, which is at most one; where a
    transition is not allowed this expression is meaningless, and the share is zero.
    """
    steps, chains, states = alphas.shape
    gap = emissions - where(isinf(alphas), 0.0, alphas)
    shares = []
    for k in (min(k, states) for k in range(3)):
        tails = slice_(alphas, begin=(0, 0, 0), end=(steps - 1, chains, states - k))
        share = tails + slice_(gap, begin=(1, 0, k), end=alphas.shape)
        if k == 2:
            share = where(slice_(skips, begin=(0, k), end=skips.shape), share, -_INF)
        shares.append(pad_slice(exp(share), shape=alphas.shape, begin=(1, 0, k), step=(1, 1, 1)))
    return shares
