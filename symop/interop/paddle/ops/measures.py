"""Measures of classifiers, the largest entries, and orders."""

from typing import Any

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.dtypes import dtype_of
from symop.interop.paddle.ops.versions import scalar
from symop.interop.paddle.values import numbers


@operator(outputs="Accuracy Correct Total", no_gradient="Out Indices Label")
def accuracy(Out: Any, Indices: Any, Label: Any, *, call: Any) -> Any:
    hit = so.any(so.equal(Indices, so.reshape(Label, shape=(-1, 1))), axis=1)
    correct, total = so.sum(so.cast(hit, dtype="int32")), Indices.shape[0]
    share = so.cast(correct, dtype="float32") / total
    count = so.full(shape=(), fill_value=total, dtype="int32")
    return tuple(scalar(call, one) for one in (share, correct, count))


@operator(outputs="Out Indices", no_gradient="K")
def top_k(X: Any, K: Any = None, *, k: int = 1) -> Any:
    return tuple(so.topk(X, k=k if K is None else numbers("top_k: K", K)[0]))


@operator(outputs="Out Indices", no_gradient="K", ignored="sorted")
def top_k_v2(X: Any, K: Any = None, *, k: int = 1, axis: int = -1, largest: bool = True) -> Any:
    count = k if K is None else numbers("top_k_v2: K", K)[0]
    return tuple(so.topk(X, k=count, axis=axis, largest=largest))


def _place(name: str, function: Any) -> None:
    @operator(name, no_gradient="X")
    def composed(
        X: Any, *, axis: int = -1, keepdims: bool = False, flatten: bool = False, dtype: int = -1
    ) -> Any:
        x = so.reshape(X, shape=(-1,)) if flatten else X
        found = function(x, axis=0 if flatten else axis, keepdims=keepdims and not flatten)
        if flatten and keepdims:
            found = so.reshape(found, shape=(1,) * X.ndim)
        return so.cast(found, dtype=dtype_of(3 if dtype == -1 else dtype))


_place("arg_max", so.argmax)
_place("arg_min", so.argmin)


@operator(outputs="Out Indices")
def argsort(X: Any, *, axis: int = -1, descending: bool = False, stable: bool = False) -> Any:
    order = so.argsort(X, axis=axis, descending=descending)
    return so.take_along_axis(X, order, axis=axis), order


@operator(
    outputs="OutMeanIou OutWrong OutCorrect",
    no_gradient="Predictions Labels InWrongs InCorrects InMeanIou",
)
def mean_iou(
    Predictions: Any,
    Labels: Any,
    InWrongs: Values | None = None,
    InCorrects: Values | None = None,
    InMeanIou: Values | None = None,
    *,
    num_classes: int,
) -> Any:
    """Returns the mean share of each class, with the counts and shares of earlier batches added."""
    found, given = (
        so.one_hot(so.reshape(one, shape=(-1,)), num_classes=num_classes, dtype="float32")
        for one in (Predictions, Labels)
    )
    correct = so.sum(found * given, axis=0)
    union = so.sum(found, axis=0) + so.sum(given, axis=0) - correct
    wrong = so.add_n(union - correct, *(so.cast(one, dtype="float32") for one in InWrongs or ()))
    right = so.add_n(correct, *(so.cast(one, dtype="float32") for one in InCorrects or ()))
    union = wrong + right
    share = so.where(union > 0, right / so.maximum(union, 1.0), so.zeros_like(union))
    classes = so.maximum(so.sum(so.cast(union > 0, dtype="float32")), 1.0)
    mean = so.add_n(so.reshape(so.sum(share) / classes, shape=(1,)), *(InMeanIou or ()))
    return mean, so.cast(wrong, dtype="int32"), so.cast(right, dtype="int32")


@operator(outputs="AUC StatPosOut StatNegOut", no_gradient="Predict Label StatPos StatNeg")
def auc(
    Predict: Any,
    Label: Any,
    StatPos: Any,
    StatNeg: Any,
    *,
    curve: str = "ROC",
    num_thresholds: int = 4095,
    slide_steps: int = 1,
    call: Any,
) -> Any:
    """Returns the area under the ROC curve, and the counts of scores with those of the batch added.

    With ``slide_steps``, these are the counts of that many batches; otherwise of all batches.
    """
    if curve != "ROC":
        raise PaddleError(f"auc: curve must be 'ROC', got {curve!r}")
    size = num_thresholds + 1
    score = so.slice_axis(Predict, axis=1, begin=Predict.shape[1] - 1, end=Predict.shape[1])
    places = so.cast(so.reshape(score, shape=(-1,)) * num_thresholds, dtype="int32")
    holds = so.cast(so.not_equal(so.reshape(Label, shape=(-1,)), 0), dtype="int32")
    none = so.zeros(shape=(size,), dtype="int32")
    counts = [so.index_add(none, places, one) for one in (holds, 1 - holds)]
    kept = [_counted(*pair, slide_steps) for pair in zip((StatPos, StatNeg), counts, strict=True)]
    first = slide_steps * size
    yes, no = (
        so.reverse(
            so.cast(so.slice_axis(flat, axis=0, begin=first, end=first + size), dtype="float32")
        )
        for flat in kept
    )
    area = so.sum(no * (so.cumsum(yes) - yes / 2))
    share = area / so.maximum(so.sum(yes) * so.sum(no), 1.0)
    whole = (
        so.reshape(one, shape=old.shape) for one, old in zip(kept, (StatPos, StatNeg), strict=True)
    )
    return (scalar(call, share), *whole)


def _counted(state: Any, counts: Any, steps: int) -> Any:
    """Returns counts with those of a batch added.

    With ``steps``, the state has the counts of each of the latest batches, their sum, and the
    number of all batches so far.
    """
    size = counts.shape[0]
    flat = so.reshape(so.cast(state, dtype="int32"), shape=(-1,))
    if not steps:
        return flat + counts
    batches = so.slice_axis(flat, axis=0, begin=flat.shape[0] - 1, end=flat.shape[0])
    at = so.remainder(batches, steps)
    each = so.reshape(so.slice_axis(flat, axis=0, begin=0, end=steps * size), shape=(steps, size))
    total = so.slice_axis(flat, axis=0, begin=steps * size, end=(steps + 1) * size)
    total = total - so.reshape(so.take(each, at, axis=0), shape=(-1,)) + counts
    each = so.index_update(each, at, so.expand_dims(counts, axis=0), axis=0)
    return so.concat(so.reshape(each, shape=(-1,)), total, batches + 1, axis=0)
