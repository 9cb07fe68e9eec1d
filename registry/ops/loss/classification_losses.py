"""Losses for class scores, and cosine similarity."""

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, distinct, integers, misuse, positive, workload
from registry.errors import DTypeError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import broadcast_to, cast, unbroadcast
from registry.ops.core.comparison import equal, greater, logical_and, not_equal
from registry.ops.core.elementwise import exp, log, relu, where
from registry.ops.core.indexing import one_hot
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape
from registry.ops.elementwise.rounding import isinf
from registry.ops.loss.losses import (
    beside,
    by_class,
    chosen,
    examples,
    finite_beside,
    ignores,
    require_class_weights,
    require_classes,
    scaled,
    weight_of,
)
from registry.ops.reduce.moments import euclidean, norm
from registry.shapes import broadcast, inexact, normalize_axis, real, real_inexact, reduced, same
from registry.table import op
from registry.types import DType, Shape, VarType, is_floating
from registry.var import Var

# nll -------------------------------------------------------------------------------------------


def _nll_shape(
    log_probabilities: Shape, labels: Shape, class_weights: Shape | None, *, axis: int
) -> Shape:
    out = examples(log_probabilities, axis)
    if labels != out:
        raise ShapeError(f"labels must have shape {out}, got {labels}")
    require_class_weights(class_weights, log_probabilities[axis])
    return out


def _nll_dtype(log_probabilities: VarType, labels: VarType, class_weights: VarType | None) -> DType:
    inexact(log_probabilities)
    require_classes(labels)
    weights = () if class_weights is None else (class_weights,)
    return real(log_probabilities, *weights)[0]


def _nll_reference(
    log_probabilities: np.ndarray,
    labels: np.ndarray,
    class_weights: np.ndarray | None = None,
    *,
    axis: int = -1,
    ignore_label: int | None = None,
) -> np.ndarray:
    logs = np.moveaxis(log_probabilities, axis, -1)
    loss = np.zeros(labels.shape)
    for place in np.ndindex(labels.shape):
        label = labels[place]
        if label == ignore_label:
            continue
        legal = 0 <= label < logs.shape[-1]
        weight = class_weights[label] if legal and class_weights is not None else 1
        loss[place] = -weight * logs[place][label] if legal else np.nan
    return loss


@op(
    shape=_nll_shape,
    dtype=_nll_dtype,
    reference=_nll_reference,
    cases=[
        case(log_probabilities=(4, 3), labels=integers(4, high=3)),
        case(
            log_probabilities=(2, 3, 4),
            labels=integers(2, 4, high=3),
            class_weights=positive(3),
            axis=1,
            ignore_label=1,
        ),
        case(log_probabilities=(5,), labels=integers(high=5)),
        case(log_probabilities=(0, 3), labels=integers(0, high=3)),
        case(log_probabilities=(9, 3), labels=integers(9, low=-2, high=5), ignore_label=-2),
        workload(log_probabilities=(4096, 256), labels=integers(4096, high=256)),
        misuse(
            "labels must have shape (4,), got (3,)",
            log_probabilities=(4, 3),
            labels=integers(3, high=3),
        ),
        misuse("labels of classes must be integers", log_probabilities=(4, 3), labels=(4,)),
        misuse(
            "class_weights must have shape (3,), got (4,)",
            log_probabilities=(4, 3),
            labels=integers(4, high=3),
            class_weights=(4,),
        ),
        misuse(
            "must be real, got complex64",
            log_probabilities=np.ones((4, 3), np.complex64),
            labels=integers(4, high=3),
        ),
    ],
)
def nll(
    log_probabilities: Array,
    labels: Array,
    class_weights: Array | None = None,
    *,
    axis: int = -1,
    ignore_label: int | None = None,
) -> Array:
    """Negative log likelihood ``-w[c] * log_probabilities[c]`` of each example's class ``c``.

    ``labels`` are integers in the shape of ``log_probabilities`` without ``axis``; a class out of
    range gives NaN. ``class_weights`` are the weights ``w``, one for each class, by default one. An
    example whose class is ``ignore_label`` has loss and gradient zero.

    Example:
        >>> import jax.numpy as jnp
        >>> nll(jnp.log(jnp.asarray([[0.5, 0.25, 0.25]])), jnp.asarray([0]))
        Array([0.6931472], dtype=float32)
    """
    labels, weights = jnp.asarray(labels), () if class_weights is None else (class_weights,)
    scores = jnp.asarray(log_probabilities).astype(jnp.result_type(log_probabilities, *weights))
    kept = labels != ignore_label if ignores(labels.dtype, ignore_label) else None
    if kept is not None:
        scores = jnp.where(jnp.expand_dims(kept, axis), scores, 0)
        labels = jnp.where(kept, labels, 0)
    loss = -chosen(scores, labels, axis)
    if class_weights is not None:
        loss = scaled(weight_of(labels, jnp.asarray(class_weights)), loss)
    return loss if kept is None else jnp.where(kept, loss, 0)


@nll.gradient
def _nll_gradient(
    log_probabilities: Var,
    labels: Var,
    class_weights: Var | None,
    d_out: Var,
    *,
    axis: int,
    ignore_label: int | None,
) -> Grads:
    scores = log_probabilities
    at, n = axis % scores.ndim, scores.shape[axis]
    d = reshape(d_out, shape=(*scores.shape[:at], 1, *scores.shape[at + 1 :]))
    if ignores(labels.dtype, ignore_label):
        kept = reshape(not_equal(labels, ignore_label), shape=d.shape)
        scores, d = where(kept, scores, 0.0), where(kept, d, 0.0)
    hot = one_hot(labels, num_classes=n, axis=at, dtype="bool")
    slope = where(hot, -d, 0.0)
    if class_weights is None:
        return {"log_probabilities": slope, "labels": None}
    w = reshape(class_weights, shape=beside(n, at, scores.ndim))
    terms = slope * finite_beside(where(hot, w, 0.0), scores)
    return {
        "log_probabilities": unbroadcast(w * slope, log_probabilities),
        "labels": None,
        "class_weights": unbroadcast(by_class(terms, at), class_weights),
    }


# hinge -----------------------------------------------------------------------------------------


def _hinge_dtype(predictions: VarType, labels: VarType) -> tuple[DType, bool]:
    inexact(predictions)
    return real(predictions, labels)


@op(
    shape=same,
    dtype=_hinge_dtype,
    reference=lambda predictions, labels, *, margin=1.0, p=1: (
        np.maximum(0, margin - labels * predictions) ** p
    ),
    cases=[
        case(predictions=(3, 4), labels=distinct(3, 4)),
        case(predictions=(3, 4), labels=integers(3, 4, low=-1, high=2), margin=0.5, p=2),
        case(predictions=(), labels=integers(low=1, high=2)),
        case(predictions=(0, 2), labels=(0, 2)),
        misuse("the inputs must have the same shape", predictions=(3, 1), labels=(3,)),
        misuse("the inputs must be floating", predictions=integers(3, high=9), labels=(3,)),
        misuse("must be real", predictions=np.ones(3, np.complex64), labels=(3,)),
        misuse("attribute 'p' must be", predictions=(3,), labels=(3,), p=3),
    ],
)
def hinge(predictions: Array, labels: Array, *, margin: float = 1.0, p: Literal[1, 2] = 1) -> Array:
    """Hinge loss for labels -1 and 1, element-wise: ``max(0, margin - labels * predictions)^p``.

    The derivative is zero where the margin is met exactly.

    Source: Cortes and Vapnik, Support-Vector Networks (1995).

    Example:
        >>> import jax.numpy as jnp
        >>> hinge(jnp.asarray([0.5, 3.0, 1.0]), jnp.asarray([1, 1, -1]))
        Array([0.5, 0. , 2. ], dtype=float32)
    """
    lack = jax.nn.relu(margin - jnp.multiply(labels, predictions))
    return lack if p == 1 else jnp.square(lack)


@hinge.gradient
def _hinge_gradient(predictions: Var, labels: Var, d_out: Var, *, margin: float, p: int) -> Grads:
    lack = margin - labels * predictions
    slope = where(greater(lack, 0.0), d_out, 0.0) if p == 1 else 2.0 * relu(lack) * d_out
    return {
        "predictions": unbroadcast(-(slope * labels), predictions),
        "labels": unbroadcast(-(slope * predictions), labels),
    }


# kl_divergence ---------------------------------------------------------------------------------


def _kl_divergence_shape(log_predictions: Shape, targets: Shape, *, axis: int) -> Shape:
    if log_predictions != targets:
        raise ShapeError(
            f"targets must have the shape of log_predictions, got {targets} and {log_predictions}"
        )
    return examples(log_predictions, axis)


def _kl_divergence_dtype(log_predictions: VarType, targets: VarType) -> DType:
    inexact(log_predictions)
    if not is_floating(targets.dtype):
        real(targets)
        raise DTypeError(f"targets must be floating, got {targets.dtype.name}")
    return real(log_predictions, targets)[0]


def _kl_divergence_reference(
    log_predictions: np.ndarray, targets: np.ndarray, *, axis: int = -1, log_target: bool = False
) -> Any:
    p = np.exp(targets) if log_target else targets
    ratio = np.where(p == 0, 1, p) / np.exp(log_predictions)
    return np.sum(p * np.log(ratio), axis=axis)


@op(
    shape=_kl_divergence_shape,
    dtype=_kl_divergence_dtype,
    reference=_kl_divergence_reference,
    cases=[
        case(log_predictions=(4, 3), targets=positive(4, 3)),
        case(log_predictions=(2, 3, 2), targets=(2, 3, 2), axis=1, log_target=True),
        case(log_predictions=(5,), targets=positive(5)),
        case(log_predictions=(0, 3), targets=positive(0, 3)),
        workload(log_predictions=(4096, 256), targets=positive(4096, 256)),
        misuse(
            "targets must have the shape of log_predictions, got (3,) and (4, 3)",
            log_predictions=(4, 3),
            targets=(3,),
        ),
        misuse(
            "targets must be floating, got int32",
            log_predictions=(4,),
            targets=integers(4, high=2),
        ),
        misuse("must be real", log_predictions=np.ones(3, np.complex64), targets=positive(3)),
        misuse("axis must be in [-1, 1), got 1", log_predictions=(3,), targets=(3,), axis=1),
    ],
)
def kl_divergence(
    log_predictions: Array, targets: Array, *, axis: int = -1, log_target: bool = False
) -> Array:
    """Kullback-Leibler divergence for each example: ``sum(p * (log(p) - log_predictions))``.

    The sum is along ``axis``. ``targets`` are the probabilities ``p``, or their logarithms with
    ``log_target``. A term with ``p`` zero is zero. There the derivative of ``p log(p)``, which is
    infinite, is taken as zero, so the derivative with respect to ``p`` is ``-log_predictions``, or
    zero if that is infinite.

    Source: Kullback and Leibler, On Information and Sufficiency (1951).

    Example:
        >>> import jax.numpy as jnp
        >>> kl_divergence(jnp.log(jnp.asarray([0.25, 0.75])), jnp.asarray([1.0, 0.0]))
        Array(1.3862944, dtype=float32)
    """
    if log_target:
        gap = jnp.subtract(targets, log_predictions)
        gap = jnp.where(jnp.isneginf(targets), 0, gap)
        return jnp.sum(jnp.exp(targets) * gap, axis)
    p = jnp.asarray(targets)
    logs = jnp.where((p == 0) & jnp.isinf(log_predictions), 0, log_predictions)
    return jnp.sum(p * (jnp.log(jnp.where(p == 0, 1, p)) - logs), axis)


@kl_divergence.gradient
def _kl_divergence_gradient(
    log_predictions: Var, targets: Var, d_out: Var, *, axis: int, log_target: bool
) -> Grads:
    at, shape = axis % targets.ndim, targets.shape
    d = reshape(d_out, shape=(*shape[:at], 1, *shape[at + 1 :]))
    if log_target:
        # With t = log p the terms are e^t (t - q): d_q = -e^t and d_t = e^t (t - q + 1).
        none = logical_and(isinf(targets), targets < 0.0)
        p = exp(targets)
        d_targets = p * (where(none, 0.0, targets - log_predictions) + 1.0)
    else:
        # The terms are p (log p - q): d_q = -p and d_p = log p - q + 1, the one only if p > 0.
        none, p = equal(targets, 0.0), targets
        gap = log(where(none, 1.0, p)) - finite_beside(p, log_predictions)
        d_targets = gap + where(none, 0.0, 1.0)
    return {
        "log_predictions": unbroadcast(-(d * p), log_predictions),
        "targets": unbroadcast(d * d_targets, targets),
    }


# cosine_similarity -----------------------------------------------------------------------------


def _cosine_similarity_shape(x: Shape, y: Shape, *, axis: int) -> Shape:
    together = broadcast(x, y)
    normalize_axis(axis, len(together))
    return reduced(together, axis=axis, keepdims=False)


def _cosine_similarity_dtype(x: VarType, y: VarType) -> DType:
    return real_inexact(x, y)[0]


def _cosine_similarity_reference(
    x: np.ndarray, y: np.ndarray, *, axis: int = -1, eps: float = 1e-8
) -> np.ndarray:
    a, b = (np.maximum(np.linalg.norm(one, axis=axis), eps) for one in np.broadcast_arrays(x, y))
    return np.asarray(np.sum(x * y, axis=axis) / (a * b))


@op(
    shape=_cosine_similarity_shape,
    dtype=_cosine_similarity_dtype,
    reference=_cosine_similarity_reference,
    commutative=True,
    cases=[
        case(x=(3, 4), y=(3, 4)),
        case(x=(2, 1, 3), y=(4, 3), order=2),
        case(x=(3, 2), y=(3, 2), axis=0, eps=2.0, order=2),
        case(x=(4,), y=(4,), order=2),
        case(x=(0, 3), y=(0, 3), order=1),
        workload(x=(4096, 256), y=(4096, 256)),
        misuse("must broadcast together", x=(3,), y=(4,)),
        misuse("axis must be in [-1, 1), got 1", x=(3,), y=(3,), axis=1),
        misuse("attribute 'eps' must be positive, got 0.0", x=(3,), y=(3,), eps=0.0),
        misuse("the inputs must be real, got complex64", x=np.ones(3, np.complex64), y=(3,)),
    ],
)
def cosine_similarity(
    x: Array,
    y: Array,
    *,
    axis: int = -1,
    eps: Annotated[float, Check("be positive", lambda v: v > 0)] = 1e-8,
) -> Array:
    """Cosine similarity: the cosine of the angle between ``x`` and ``y`` along ``axis``.

    ``sum(x * y) / (max(|x|, eps) * max(|y|, eps))``, where ``x`` and ``y`` broadcast together and
    ``axis`` refers to their common shape. A vector shorter than ``eps`` has a finite gradient,
    which ignores its length. Half precision is computed in float32.

    Example:
        >>> import jax.numpy as jnp
        >>> cosine_similarity(jnp.asarray([3.0, 4.0]), jnp.asarray([[1.0, 0.0], [0.0, 0.0]]))
        Array([0.6, 0. ], dtype=float32)
    """
    dtype = jnp.result_type(x, y)
    x, y = (_unit(one, axis, eps) for one in jnp.broadcast_arrays(x, y))
    return jnp.sum(x * y, axis).astype(dtype)


def _unit(x: Array, axis: int, eps: float) -> Array:
    x = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return x / jnp.maximum(euclidean(x, axis), eps)


@cosine_similarity.gradient
def _cosine_similarity_gradient(x: Var, y: Var, d_out: Var, *, axis: int, eps: float) -> Grads:
    # With u = x / a and v = y / b, out = <u, v>. Where a = |x|, d_x = (v - out u) / a; where
    # a = eps, it is v / a.
    shape = jnp.broadcast_shapes(x.shape, y.shape)
    at = axis % len(shape)
    u, a, x_long = _of_unit(x, shape, at, eps)
    v, b, y_long = _of_unit(y, shape, at, eps)
    d = reshape(d_out, shape=(*shape[:at], 1, *shape[at + 1 :]))
    out = sum_over(u * v, axis=at, keepdims=True)
    return {
        "x": unbroadcast((d / a) * (v - where(x_long, out, 0.0) * u), x),
        "y": unbroadcast((d / b) * (u - where(y_long, out, 0.0) * v), y),
    }


def _of_unit(x: Var, shape: Shape, at: int, eps: float) -> tuple[Var, Var, Var]:
    """``x / a``, the divisor ``a``, and where that is the length of ``x``."""
    x = broadcast_to(cast(x, dtype="float32") if x.dtype.itemsize < 4 else x, shape=shape)
    length = norm(x, axis=at, keepdims=True)
    long = greater(length, eps)
    length = where(long, length, eps)
    return x / length, length, long
