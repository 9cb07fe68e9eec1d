"""Losses."""

import math
from typing import Any

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import operator
from symop.interop.paddle.ops.versions import scalar


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
    if not use_softmax:
        softmax, logs = so.identity(Logits), so.log(Logits)
    else:
        softmax, logs = so.softmax(Logits, axis=axis), so.log_softmax(Logits, axis=axis)
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


@operator(outputs="Y", no_gradient="Label")
def cross_entropy(X: Any, Label: Any, *, soft_label: bool = False, ignore_index: int = -100) -> Any:
    if soft_label:
        return so.negative(so.sum(so.log(X) * Label, axis=-1, keepdims=True))
    return _picked(so.log(X), Label, -1, ignore_index)


@operator(no_gradient="Label pos_weight")
def sigmoid_cross_entropy_with_logits(
    X: Any, Label: Any, pos_weight: Any = None, *, ignore_index: int = -100, normalize: bool = False
) -> Any:
    slope = so.softplus(so.negative(so.abs(X)))
    if pos_weight is None:
        loss = so.relu(X) - X * Label + slope
    else:
        weight = Label * (pos_weight - 1) + 1
        loss = (1 - Label) * X + weight * (slope + so.relu(so.negative(X)))
    counted = so.not_equal(Label, ignore_index)
    loss = so.where(counted, loss, so.zeros_like(loss))
    if not normalize:
        return loss
    return loss / so.maximum(so.sum(so.cast(counted, dtype=X.dtype)), 1e-6)


@operator(no_gradient="Label")
def bce_loss(X: Any, Label: Any) -> Any:
    yes, no = (so.maximum(so.log(one), -100.0) for one in (X, 1 - X))
    return so.negative(Label * yes + (1 - Label) * no)


@operator(outputs="Out Residual")
def huber_loss(X: Any, Y: Any, *, delta: float) -> Any:
    residual = Y - X
    size = so.abs(residual)
    inner = 0.5 * so.square(residual)
    return so.where(size <= delta, inner, delta * (size - 0.5 * delta)), residual


@operator(outputs="Out Diff", no_gradient="InsideWeight OutsideWeight")
def smooth_l1_loss(
    X: Any, Y: Any, InsideWeight: Any = None, OutsideWeight: Any = None, *, sigma: float = 1.0
) -> Any:
    difference = X - Y if InsideWeight is None else (X - Y) * InsideWeight
    size, square = so.abs(difference), sigma * sigma
    loss = so.where(size < 1 / square, 0.5 * square * so.square(difference), size - 0.5 / square)
    loss = loss if OutsideWeight is None else loss * OutsideWeight
    flat = so.reshape(loss, shape=(loss.shape[0], -1))
    return so.sum(flat, axis=1, keepdims=True), difference


@operator(outputs="Loss", no_gradient="Labels")
def log_loss(Predicted: Any, Labels: Any, *, epsilon: float) -> Any:
    yes, no = so.log(Predicted + epsilon), so.log(1 - Predicted + epsilon)
    return so.negative(Labels * yes + (1 - Labels) * no)


def _reduced(name: str, loss: Any, reduction: str, call: Any) -> Any:
    """Returns the sum or mean of a loss, or the loss itself.

    Raises:
        PaddleError: no reduction has this name.
    """
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum", "batchmean"):
        raise PaddleError(
            f"{name}: reduction must be none, mean, sum or batchmean, got {reduction!r}"
        )
    if reduction == "mean":
        return scalar(call, so.mean(loss))
    total = so.sum(loss)
    return scalar(call, total / loss.shape[0] if reduction == "batchmean" else total)


@operator(outputs="Loss", no_gradient="Target")
def kldiv_loss(X: Any, Target: Any, *, reduction: str = "mean", call: Any) -> Any:
    positive = Target > 0
    logs = so.log(so.where(positive, Target, 1.0))
    loss = so.where(positive, Target * (logs - X), so.zeros_like(X))
    return _reduced("kldiv_loss", loss, reduction, call)


@operator(outputs="Out Total_weight", no_gradient="Label Weight")
def nll_loss(
    X: Any,
    Label: Any,
    Weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    call: Any,
) -> Any:
    kept = so.not_equal(Label, ignore_index)
    ids = so.where(kept, Label, 0)
    weights = so.ones_like(so.squeeze(so.slice_axis(X, axis=1, begin=0, end=1), axis=1))
    weights = weights if Weight is None else so.take(Weight, ids)
    weights = so.where(kept, weights, so.zeros_like(weights))
    found = so.squeeze(so.take_along_axis(X, so.expand_dims(ids, axis=1), axis=1), axis=1)
    loss, total = so.negative(found) * weights, so.sum(weights)
    if reduction == "mean":
        return scalar(call, so.sum(loss) / total), scalar(call, total)
    return _reduced("nll_loss", loss, reduction, call), scalar(call, total)


@operator(outputs="Out Activated", no_gradient="Label")
def margin_rank_loss(X1: Any, X2: Any, Label: Any, *, margin: float = 0.0) -> Any:
    out = so.relu(so.negative(Label) * (X1 - X2) + margin)
    return out, so.cast(out > 0, dtype=X1.dtype)


@operator(no_gradient="Label")
def rank_loss(Label: Any, Left: Any, Right: Any) -> Any:
    difference = Left - Right
    return so.softplus(difference) - Label * difference


@operator(outputs="Loss", no_gradient="Labels")
def hinge_loss(Logits: Any, Labels: Any) -> Any:
    return so.relu(1 - Logits * (2 * Labels - 1))


@operator(outputs="IntermediateVal Out", no_gradient="Y")
def modified_huber_loss(X: Any, Y: Any) -> Any:
    margin = X * (2 * Y - 1)
    return margin, so.where(margin < -1, -4 * margin, so.square(so.relu(1 - margin)))


@operator(outputs="Y", no_gradient="Label")
def bpr_loss(X: Any, Label: Any) -> Any:
    count = X.shape[-1]
    own = so.take_along_axis(X, Label, axis=-1)
    losses = so.softplus(X - own)
    total = so.sum(losses, axis=-1, keepdims=True) - math.log(2)  # without the label itself
    return total / (count - 1)


@operator(outputs="sub_result Out")
def squared_l2_distance(X: Any, Y: Any) -> Any:
    difference = X - Y
    flat = so.reshape(difference, shape=(difference.shape[0], -1))
    return difference, so.sum(so.square(flat), axis=1, keepdims=True)


@operator(no_gradient="Label", ignored="soft_max_up_bound soft_max_lower_bound", outputs="Y")
def teacher_student_sigmoid_loss(X: Any, Label: Any) -> Any:
    base = so.relu(X) + so.softplus(so.negative(so.abs(X)))
    clicked = so.logical_or(Label < -1, so.logical_and(Label >= 0, Label < 1))
    without = base - so.where(clicked, so.zeros_like(X), X)
    teacher = base - X * so.where(Label >= 1, Label - 1, Label)
    return so.where(Label < 0, without, without + teacher)


@operator(no_gradient="PriorDist")
def label_smooth(X: Any, PriorDist: Any = None, *, epsilon: float = 0.0) -> Any:
    other = 1 / X.shape[-1] if PriorDist is None else PriorDist
    return (1 - epsilon) * X + epsilon * other


@operator(outputs="Out XNorm YNorm")
def cos_sim(X: Any, Y: Any) -> Any:
    sizes = [so.sqrt(so.sum(so.square(one), axis=-1, keepdims=True)) for one in (X, Y)]
    return so.sum(X * Y, axis=-1, keepdims=True) / (sizes[0] * sizes[1]), *sizes
