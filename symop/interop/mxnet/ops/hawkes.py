"""The likelihood of self-exciting point processes."""

from typing import Any

import numpy as np

import symop as so
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.indexing import whole
from symop.interop.mxnet.partial_dtypes import alike, whole_at
from symop.interop.mxnet.partial_shapes import numbered

_Process = tuple[Any, Any, Any]
"""The base rate, the expected number of offspring of an event, and the decay rate."""


def _silence(process: _Process, state: Any, since: Any) -> tuple[Any, Any]:
    """The decay of the state over a time, and the expected number of events in it."""
    lda, alpha, beta = process
    fading = so.exp(so.negative(beta) * since)
    return fading, lda * since + alpha * state * (1.0 - fading)


def _event(process: _Process, valid_length: Any, carry: Any, event: Any) -> Any:
    """State, last event time of each kind, current time and likelihood after an event."""
    lda, alpha, beta = process
    state, last, time, total = carry
    number, lag, mark = event
    time = time + lag
    there = so.logical_and(
        so.one_hot(mark, num_classes=lda.shape[1], dtype="bool"),
        so.expand_dims(number < valid_length, axis=1),
    )
    now = so.expand_dims(time, axis=1)
    fading, expected = _silence(process, state, so.where(there, now - last, so.zeros_like(last)))
    rate = so.where(there, lda + alpha * beta * state * fading, so.ones_like(lda))
    gain = so.where(there, so.log(rate) - expected, so.zeros_like(rate))
    return (
        so.where(there, state * fading + 1.0, state),
        so.where(there, now, last),
        time,
        total + so.sum(gain, axis=1),
    )


@operator(
    "_contrib_hawkesll",
    outputs=lambda: ("output", "out_state"),
    dtypes=whole_at(5, alike(0, 1, 2, 3, 4, 6, 7)),
    note="all inputs have gradients, and out_state gives them, too",
    at_once=True,
)
def hawkesll(
    lda: Any,
    alpha: Any,
    beta: Any,
    state: Any,
    lags: Any,
    marks: Any,
    valid_length: Any,
    max_time: Any,
) -> Any:
    """Log likelihood of a self-exciting process for each sample, and its final state.

    An event of kind k at a time ``d`` after the last one of its kind adds
    ``log(lda + alpha beta state exp(-beta d)) - lda d - alpha state (1 - exp(-beta d))``; then
    ``state`` becomes ``1 + state exp(-beta d)``. The same expected number is subtracted for the
    time after the last event of each kind.
    """
    process = (lda, alpha, beta)
    numbers = numbered(lags.shape[1], dtype=np.dtype(valid_length.dtype))
    start = (state, so.zeros_like(state), so.zeros_like(lda[:, 0]), so.zeros_like(lda[:, 0]))
    events = (numbers, so.permute_dims(lags), so.permute_dims(whole(marks)))
    (state, last, _, total), _ = so.scan(
        lambda carry, event: (_event(process, valid_length, carry, event), ()), start, events
    )
    fading, expected = _silence(process, state, so.expand_dims(max_time, axis=1) - last)
    return total - so.sum(expected, axis=1), fading * state
