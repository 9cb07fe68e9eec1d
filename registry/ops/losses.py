"""Losses: one number for each example, to be averaged as the user likes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, uniform
from registry.errors import DTypeError, ShapeError
from registry.operator import Grads
from registry.ops.broadcasting import unbroadcast
from registry.ops.elementwise import sigmoid
from registry.ops.indexing import one_hot, wide
from registry.ops.neural import log_softmax, softmax
from registry.ops.reductions import sum as sum_over
from registry.ops.shape import reshape
from registry.shapes import inexact, normalize_axis, real
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

# softmax_cross_entropy -------------------------------------------------------------------------


def _softmax_cross_entropy_shape(logits: Shape, labels: Shape, *, axis: int) -> Shape:
    at = normalize_axis(axis, len(logits))
    out = (*logits[:at], *logits[at + 1 :])
    if labels not in (out, logits):
        raise ShapeError(
            f"labels must have shape {out} (classes) or {logits} (probabilities), got {labels}"
        )
    return out


def _softmax_cross_entropy_dtype(logits: VarType, labels: VarType) -> DType:
    inexact(logits)
    real(logits, labels)
    if labels.ndim < logits.ndim:
        if labels.dtype.kind not in "iu":
            raise DTypeError(f"labels of classes must be integers, got {labels.dtype.name}")
        return logits.dtype
    return inexact(logits, labels)[0]


def _softmax_cross_entropy_reference(
    logits: np.ndarray, labels: np.ndarray, *, axis: int = -1
) -> np.ndarray:
    shifted = logits - np.max(logits, axis=axis, keepdims=True)
    logs = shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
    if labels.ndim == logits.ndim:
        return np.asarray(-np.sum(labels * logs, axis=axis))
    classes = np.expand_dims(labels, axis)
    legal = (classes >= 0) & (classes < logits.shape[axis])
    chosen = np.take_along_axis(logs, np.where(legal, classes, 0), axis)
    return -np.where(legal, chosen, np.nan).squeeze(axis).astype(logits.dtype)


@op(
    shape=_softmax_cross_entropy_shape,
    dtype=_softmax_cross_entropy_dtype,
    reference=_softmax_cross_entropy_reference,
    cases=[
        case(logits=(4, 3), labels=integers(4, high=3)),
        case(logits=(2, 3, 4), labels=integers(2, 4, high=3), axis=1),
        case(logits=(5,), labels=integers(high=5)),
        case(logits=(4, 3), labels=(4, 3), order=2),
        case(logits=(2, 3, 4), labels=(2, 3, 4), axis=1, order=2),
        case(logits=uniform(2, 3, low=-1e4, high=1e4), labels=integers(2, high=3), order=1),
        case(logits=(0, 3), labels=integers(0, high=3)),
        case(logits=(9, 3), labels=integers(9, low=-2, high=5)),
        case(logits=(2, 300), labels=integers(2, high=256, dtype="uint8"), order=1),
        misuse(
            "labels must have shape (4,) (classes) or (4, 3) (probabilities), got (3,)",
            logits=(4, 3),
            labels=integers(3, high=3),
        ),
        misuse("labels of classes must be integers", logits=(4, 3), labels=(4,)),
        misuse("axis must be in [-2, 2), got 2", logits=(4, 3), labels=(4, 3), axis=2),
        misuse("must be real, got complex64", logits=np.ones((4, 3), np.complex64), labels=(4, 3)),
    ],
)
def softmax_cross_entropy(logits: Array, labels: Array, *, axis: int = -1) -> Array:
    """``-sum(p * log_softmax(logits))`` along ``axis``, for each example.

    ``labels`` are either the probabilities ``p``, in the shape of ``logits``, or one integer class
    for each example, whose probability is one. A class out of range gives NaN. The softmax is
    shifted by the largest logit, so nothing overflows.

    Example:
        >>> import jax.numpy as jnp
        >>> softmax_cross_entropy(jnp.asarray([[1000.0, 0.0]]), jnp.asarray([1]))
        Array([1000.], dtype=float32)
    """
    logits, labels = jnp.asarray(logits), jnp.asarray(labels)
    if labels.ndim == logits.ndim:
        logits = logits.astype(jnp.result_type(logits, labels))
        return -jnp.sum(labels * jax.nn.log_softmax(logits, axis), axis)
    shifted = logits - lax.stop_gradient(jnp.max(logits, axis, keepdims=True, initial=-jnp.inf))
    # A negative class is out of range, too: it does not count from the end.
    labels, beyond = wide(labels), logits.shape[axis]
    classes = jnp.expand_dims(jnp.where(labels < 0, beyond, labels), axis)
    chosen = jnp.take_along_axis(shifted, classes, axis, mode="fill").squeeze(axis)
    return jnp.log(jnp.sum(jnp.exp(shifted), axis)) - chosen


@softmax_cross_entropy.gradient
def _softmax_cross_entropy_gradient(logits: Var, labels: Var, d_out: Var, *, axis: int) -> Grads:
    # loss = logsumexp(x) sum(p) - sum(p x), so d_x = softmax(x) sum(p) - p and d_p = -log_softmax.
    at = axis % logits.ndim
    d = reshape(d_out, shape=tuple(1 if i == at else n for i, n in enumerate(logits.shape)))
    if labels.ndim < logits.ndim:
        hot = one_hot(labels, num_classes=logits.shape[at], axis=at, dtype=logits.dtype)
        return {"logits": d * (softmax(logits, axis=at) - hot), "labels": None}
    total = sum_over(labels, axis=at, keepdims=True)
    return {
        "logits": unbroadcast(d * (softmax(logits, axis=at) * total - labels), logits),
        "labels": unbroadcast(-(d * log_softmax(logits, axis=at)), labels),
    }


# sigmoid_cross_entropy -------------------------------------------------------------------------


def _one_shape(logits: Shape, labels: Shape) -> Shape:
    if logits != labels:
        raise ShapeError(f"labels must have the shape of logits, got {labels} and {logits}")
    return logits


def _sigmoid_cross_entropy_dtype(logits: VarType, labels: VarType) -> tuple[DType, bool]:
    inexact(logits)
    return real(logits, labels)


def _sigmoid_cross_entropy_reference(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.asarray(np.logaddexp(0, logits) - logits * labels)


@op(
    shape=_one_shape,
    dtype=_sigmoid_cross_entropy_dtype,
    reference=_sigmoid_cross_entropy_reference,
    cases=[
        case(logits=(4, 3), labels=uniform(4, 3, low=0.0, high=1.0)),
        case(logits=(), labels=uniform(low=0.0, high=1.0)),
        case(logits=(4,), labels=integers(4, high=2)),
        case(logits=uniform(3, low=100.0, high=1e4), labels=integers(3, high=2), order=1),
        case(logits=uniform(3, low=-1e4, high=-100.0), labels=integers(3, high=2), order=1),
        misuse(
            "labels must have the shape of logits, got (3,) and (4, 3)", logits=(4, 3), labels=(3,)
        ),
    ],
)
def sigmoid_cross_entropy(logits: Array, labels: Array) -> Array:
    """``-p log(sigmoid(x)) - (1 - p) log(1 - sigmoid(x))`` for each logit x and probability p.

    Computed as ``max(x, 0) - x p + log1p(exp(-abs(x)))``, which neither overflows nor cancels.

    Example:
        >>> import jax.numpy as jnp
        >>> sigmoid_cross_entropy(jnp.asarray([1000.0, -1000.0]), jnp.asarray([1.0, 1.0]))
        Array([   0., 1000.], dtype=float32)
    """
    # jax.nn.softplus is logaddexp(x, 0), whose derivative is the sigmoid at zero, too.
    return jax.nn.softplus(logits) - logits * labels


@sigmoid_cross_entropy.gradient
def _sigmoid_cross_entropy_gradient(logits: Var, labels: Var, d_out: Var) -> Grads:
    return {
        "logits": unbroadcast(d_out * (sigmoid(logits) - labels), logits),
        "labels": unbroadcast(-(d_out * logits), labels),
    }
