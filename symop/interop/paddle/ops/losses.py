"""Losses and measures of classifiers."""

from typing import Any

import symop as so
from symop.interop.paddle.operators import operator


@operator(outputs="Softmax Loss", no_gradient="Label")
def softmax_with_cross_entropy(
    Logits: Any,
    Label: Any,
    *,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    axis: int = -1,
    use_softmax: bool = True,
) -> Any:
    softmax = so.softmax(Logits, axis=axis)
    logs = so.log_softmax(Logits, axis=axis)
    if soft_label:
        return softmax, so.negative(so.sum(so.multiply(logs, Label), axis=axis, keepdims=True))
    return softmax, _picked(logs, Label, axis, ignore_index)


def _picked(logs: Any, label: Any, axis: int, ignore_index: int) -> Any:
    """Returns minus the entries of ``logs`` at the labels, zero where a label is ignored."""
    ignored = so.equal(label, ignore_index)
    ids = so.where(ignored, 0, label)
    if ids.ndim < logs.ndim:
        ids, ignored = so.expand_dims(ids, axis=axis), so.expand_dims(ignored, axis=axis)
    found = so.negative(so.take_along_axis(logs, ids, axis=axis))
    return so.where(ignored, so.zeros_like(found), found)


@operator(outputs="Y MatchX XShape", no_gradient="Label")
def cross_entropy2(X: Any, Label: Any, *, ignore_index: int = -100) -> Any:
    loss = _picked(so.log(X), Label, -1, ignore_index)
    return loss, so.exp(so.negative(loss)), so.zeros(shape=(0, *X.shape), dtype=X.dtype)
