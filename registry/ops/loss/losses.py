"""Cross-entropy losses, one number for each example, without a reduction over examples."""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, positive, uniform, workload
from registry.errors import AttributeValueError, DTypeError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.comparison import equal, logical_and, not_equal
from registry.ops.core.elementwise import sigmoid, where
from registry.ops.core.indexing import one_hot, wide_index
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape
from registry.ops.elementwise.rounding import isinf
from registry.ops.nn.softmax import log_softmax, softmax
from registry.shapes import inexact, normalize_axis, real
from registry.table import op
from registry.types import DType, Shape, VarType, integer_limits, is_integer
from registry.var import Var

# Shared by losses of classes -------------------------------------------------------------------


def examples(scores: Shape, axis: int) -> Shape:
    """The shape of one number per example, where the classes are along ``axis``."""
    at = normalize_axis(axis, len(scores))
    return (*scores[:at], *scores[at + 1 :])


def beside(length: int, axis: int, ndim: int) -> Shape:
    """The shape in which ``length`` numbers along ``axis`` broadcast against ``ndim`` axes."""
    return tuple(length if i == axis else 1 for i in range(ndim))


def require_class_weights(class_weights: Shape | None, classes: int) -> None:
    """Raises unless the weights are one number for each class."""
    if class_weights not in (None, (classes,)):
        raise ShapeError(f"class_weights must have shape {(classes,)}, got {class_weights}")


def require_classes(labels: VarType) -> None:
    """Raises unless labels are integers."""
    if not is_integer(labels.dtype):
        raise DTypeError(f"labels of classes must be integers, got {labels.dtype.name}")


def ignores(labels: DType, ignore_label: int | None) -> bool:
    """Whether labels of this dtype can equal the ignored label."""
    if ignore_label is None:
        return False
    least, most = integer_limits(np.dtype(labels))
    return least <= ignore_label <= most


def chosen(scores: Array, labels: Array, axis: int) -> Array:
    """The score of each example's class; a class out of range gives NaN."""
    classes = jnp.expand_dims(_counted(labels, scores.shape[axis]), axis)
    return jnp.take_along_axis(scores, classes, axis, mode="fill").squeeze(axis)


def weight_of(labels: Array, class_weights: Array) -> Array:
    """The weight of each example's class; a class out of range gives NaN."""
    return jnp.take(class_weights, _counted(labels, class_weights.size), mode="fill")


def _counted(labels: Array, classes: int) -> Array:
    # A negative class is out of range, too: it does not count from the end.
    return jnp.where(wide_index(labels) < 0, classes, wide_index(labels))


def scaled(weights: Array, values: Array) -> Array:
    """``weights * values``, where a weight of zero gives zero even for an infinity."""
    return weights * jnp.where((weights == 0) & jnp.isinf(values), 0, values)


def finite_beside(weights: Var, values: Var) -> Var:
    """``values``, with infinities of zero weight replaced by zero."""
    finite: Var = where(logical_and(equal(weights, 0.0), isinf(values)), 0.0, values)
    return finite


def by_class(x: Var, axis: int) -> Var:
    """``x`` summed over all axes but that of the classes."""
    total: Var = sum_over(x, axis=tuple(i for i in range(x.ndim) if i != axis))
    return total


# softmax_cross_entropy -------------------------------------------------------------------------


def _softmax_cross_entropy_shape(
    logits: Shape,
    labels: Shape,
    class_weights: Shape | None,
    *,
    axis: int,
    ignore_label: int | None,
) -> Shape:
    out = examples(logits, axis)
    if labels not in (out, logits):
        raise ShapeError(
            f"labels must have shape {out} (classes) or {logits} (probabilities), got {labels}"
        )
    require_class_weights(class_weights, logits[axis])
    if ignore_label is not None and labels == logits:
        raise AttributeValueError(
            f"ignore_label must be None where labels are probabilities, got {ignore_label}"
        )
    return out


def _softmax_cross_entropy_dtype(
    logits: VarType, labels: VarType, class_weights: VarType | None
) -> DType:
    inexact(logits)
    weights = () if class_weights is None else (class_weights,)
    real(logits, labels, *weights)
    if labels.ndim < logits.ndim:
        require_classes(labels)
        return inexact(logits, *weights)[0]
    return inexact(logits, labels, *weights)[0]


def _softmax_cross_entropy_reference(
    logits: np.ndarray,
    labels: np.ndarray,
    class_weights: np.ndarray | None = None,
    *,
    axis: int = -1,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
) -> np.ndarray:
    logits = np.moveaxis(logits, axis, -1).astype(np.float64)
    n = logits.shape[-1]
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    logs = shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))
    if labels.ndim == logits.ndim:
        wanted = np.moveaxis(labels, axis, -1)
    else:
        legal = (labels >= 0) & (labels < n)
        hot = np.equal(labels[..., None], np.arange(n))
        wanted = np.where(legal[..., None], hot, np.nan)
    masses = (1 - smoothing) * wanted + smoothing / max(n, 1)
    masses = masses if class_weights is None else masses * class_weights
    loss = -np.sum(masses * logs, axis=-1)
    if ignore_label is not None:
        loss = np.where(labels == ignore_label, 0, loss)
    return np.asarray(loss)


@op(
    shape=_softmax_cross_entropy_shape,
    dtype=_softmax_cross_entropy_dtype,
    reference=_softmax_cross_entropy_reference,
    aliases=["softmax_cross_entropy_with_integer_labels"],
    cases=[
        case(logits=(4, 3), labels=integers(4, high=3)),
        case(logits=(2, 3, 4), labels=integers(2, 4, high=3), axis=1),
        case(logits=(5,), labels=integers(high=5)),
        case(logits=(4, 3), labels=(4, 3), order=2),
        case(logits=(2, 3, 4), labels=(2, 3, 4), axis=1, order=2),
        case(logits=(4, 3), labels=integers(4, high=3), smoothing=0.1, order=2),
        case(
            logits=(2, 3, 4),
            labels=integers(2, 4, high=3),
            class_weights=positive(3),
            axis=1,
            smoothing=0.1,
            ignore_label=1,
            order=2,
        ),
        case(logits=(4, 3), labels=integers(4, high=3), class_weights=positive(3), order=2),
        case(logits=(4, 3), labels=(4, 3), class_weights=positive(3), smoothing=0.2, order=2),
        case(logits=(5, 3), labels=integers(5, low=-1, high=3), ignore_label=-1, order=2),
        case(logits=uniform(2, 3, low=-1e4, high=1e4), labels=integers(2, high=3), order=1),
        case(logits=(0, 3), labels=integers(0, high=3)),
        case(logits=(9, 3), labels=integers(9, low=-2, high=5)),
        case(
            logits=(2, 300),
            labels=integers(2, high=256, dtype="uint8"),
            ignore_label=-1,
            order=1,
        ),
        workload(logits=(4096, 256), labels=integers(4096, high=256)),
        misuse(
            "labels must have shape (4,) (classes) or (4, 3) (probabilities), got (3,)",
            logits=(4, 3),
            labels=integers(3, high=3),
        ),
        misuse("labels of classes must be integers", logits=(4, 3), labels=(4,)),
        misuse("axis must be in [-2, 2), got 2", logits=(4, 3), labels=(4, 3), axis=2),
        misuse("must be real, got complex64", logits=np.ones((4, 3), np.complex64), labels=(4, 3)),
        misuse(
            "class_weights must have shape (3,), got (4,)",
            logits=(4, 3),
            labels=integers(4, high=3),
            class_weights=(4,),
        ),
        misuse(
            "attribute 'smoothing' must lie in [0, 1], got 1.5",
            logits=(4, 3),
            labels=(4, 3),
            smoothing=1.5,
        ),
        misuse(
            "ignore_label must be None where labels are probabilities, got 0",
            logits=(4, 3),
            labels=(4, 3),
            ignore_label=0,
        ),
    ],
)
def softmax_cross_entropy(
    logits: Array,
    labels: Array,
    class_weights: Array | None = None,
    *,
    axis: int = -1,
    smoothing: Annotated[float, Check("lie in [0, 1]", lambda v: 0 <= v <= 1)] = 0.0,
    ignore_label: int | None = None,
) -> Array:
    """Softmax cross-entropy for each example: ``-sum(w * p * log_softmax(logits))`` along ``axis``.

    ``labels`` are either the probabilities ``p``, in the shape of ``logits``, or one integer class
    for each example, whose probability is one. A class out of range gives NaN. The softmax is
    shifted by the largest logit, so nothing overflows; a term with zero weight or probability is
    zero, even where its logit is minus infinity.

    ``class_weights`` are the weights ``w``, one for each class, by default one. ``smoothing``
    distributes that share of the probability evenly among all ``n`` classes:
    ``(1 - smoothing) * p + smoothing / n``. An example whose class is ``ignore_label`` has loss and
    gradient zero, whatever its logits are.

    Source: Szegedy et al., Rethinking the Inception Architecture for Computer Vision (2016), for
    the smoothing.

    Example:
        >>> import jax.numpy as jnp
        >>> softmax_cross_entropy(jnp.asarray([[1000.0, 0.0]]), jnp.asarray([1]))
        Array([1000.], dtype=float32)
    """
    logits, labels = jnp.asarray(logits), jnp.asarray(labels)
    weights = None if class_weights is None else jnp.asarray(class_weights)
    if labels.ndim == logits.ndim:
        return _of_probabilities(logits, labels, weights, axis, smoothing)
    if not ignores(labels.dtype, ignore_label):
        return _of_classes(logits, labels, weights, axis, smoothing)
    kept = labels != ignore_label
    logits = jnp.where(jnp.expand_dims(kept, axis), logits, 0)
    loss = _of_classes(logits, jnp.where(kept, labels, 0), weights, axis, smoothing)
    return jnp.where(kept, loss, 0)


def _of_probabilities(
    logits: Array, labels: Array, weights: Array | None, axis: int, smoothing: float
) -> Array:
    masses = labels.astype(jnp.result_type(logits, labels))
    if smoothing:
        masses = (1 - smoothing) * masses + smoothing / logits.shape[axis]
    if weights is not None:
        masses = masses * _spread(weights, axis, logits.ndim)
    logs = jax.nn.log_softmax(logits.astype(masses.dtype), axis)
    return -jnp.sum(scaled(masses, logs), axis)


def _of_classes(
    logits: Array, labels: Array, weights: Array | None, axis: int, smoothing: float
) -> Array:
    if weights is not None:
        logits = logits.astype(jnp.result_type(logits, weights))
    shifted = logits - lax.stop_gradient(jnp.max(logits, axis, keepdims=True, initial=-jnp.inf))
    size = jnp.log(jnp.sum(jnp.exp(shifted), axis))
    loss = size - chosen(shifted, labels, axis)
    if weights is not None:
        loss = scaled(weight_of(labels, weights), loss)
    if not smoothing:
        return loss
    others = jnp.expand_dims(size, axis) - shifted
    if weights is not None:
        others = scaled(_spread(weights, axis, logits.ndim), others)
    # The mean is accumulated in float32: a sum over many classes exceeds half precision.
    return (1 - smoothing) * loss + smoothing * jnp.mean(others, axis)


def _spread(weights: Array, axis: int, ndim: int) -> Array:
    return weights.reshape(beside(weights.size, axis % ndim, ndim))


@softmax_cross_entropy.gradient
def _softmax_cross_entropy_gradient(
    logits: Var,
    labels: Var,
    class_weights: Var | None,
    d_out: Var,
    *,
    axis: int,
    smoothing: float,
    ignore_label: int | None,
) -> Grads:
    # With the smoothed probabilities q and the masses v = w q, the loss is
    # logsumexp(x) sum(v) - sum(v x), so d_x = softmax(x) sum(v) - v and d_v = -log_softmax(x).
    at, of_classes = axis % logits.ndim, labels.ndim < logits.ndim
    n = logits.shape[at]
    d = reshape(d_out, shape=(*logits.shape[:at], 1, *logits.shape[at + 1 :]))
    x = logits
    if of_classes and ignores(labels.dtype, ignore_label):
        kept = reshape(not_equal(labels, ignore_label), shape=d.shape)
        x, d = where(kept, x, 0.0), where(kept, d, 0.0)
    q = one_hot(labels, num_classes=n, axis=at, dtype=x.dtype) if of_classes else labels
    q = q if smoothing == 0 else (1 - smoothing) * q + smoothing / n
    w = class_weights
    w = None if w is None else reshape(w, shape=beside(n, at, logits.ndim))
    v = q if w is None else w * q
    p = softmax(x, axis=at)
    p = p if of_classes and w is None else p * sum_over(v, axis=at, keepdims=True)
    grads: Grads = {"logits": unbroadcast(d * (p - v), logits), "labels": None}
    if of_classes and class_weights is None:
        return grads
    d_v = -(d * finite_beside(v, log_softmax(x, axis=at)))
    if not of_classes:
        d_q = d_v if w is None else w * d_v
        grads["labels"] = unbroadcast(d_q if smoothing == 0 else (1 - smoothing) * d_q, labels)
    if class_weights is not None:
        grads["class_weights"] = unbroadcast(by_class(q * d_v, at), class_weights)
    return grads


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
    aliases=["sigmoid_binary_cross_entropy", "sigmoid_cross_entropy_with_logits"],
    cases=[
        case(logits=(4, 3), labels=uniform(4, 3, low=0.0, high=1.0)),
        case(logits=(), labels=uniform(low=0.0, high=1.0)),
        case(logits=(0, 3), labels=uniform(0, 3, low=0.0, high=1.0)),
        case(logits=(4,), labels=integers(4, high=2)),
        case(logits=uniform(3, low=100.0, high=1e4), labels=integers(3, high=2), order=1),
        case(logits=uniform(3, low=-1e4, high=-100.0), labels=integers(3, high=2), order=1),
        misuse(
            "labels must have the shape of logits, got (3,) and (4, 3)", logits=(4, 3), labels=(3,)
        ),
    ],
)
def sigmoid_cross_entropy(logits: Array, labels: Array) -> Array:
    """Sigmoid cross-entropy ``-p log(sigmoid(x)) - (1 - p) log(1 - sigmoid(x))``, element-wise.

    ``x`` are logits and ``p`` probabilities. It is computed as
    ``max(x, 0) - x p + log1p(exp(-abs(x)))``, which neither overflows nor cancels. An infinite
    logit has loss zero if ``p`` is the matching certain answer, and infinity otherwise.

    Example:
        >>> import jax.numpy as jnp
        >>> sigmoid_cross_entropy(jnp.asarray([1000.0, -1000.0]), jnp.asarray([1.0, 1.0]))
        Array([   0., 1000.], dtype=float32)
    """
    # jax.nn.softplus is logaddexp(x, 0), whose derivative is the sigmoid at zero, too.
    endless = jnp.isinf(logits)
    at = jnp.where(endless, 0.0, logits)
    ends = jnp.where(labels == (logits > 0), 0.0, jnp.inf)
    return jnp.where(endless, ends, jax.nn.softplus(at) - at * labels)


@sigmoid_cross_entropy.gradient
def _sigmoid_cross_entropy_gradient(logits: Var, labels: Var, d_out: Var) -> Grads:
    return {
        "logits": unbroadcast(d_out * (sigmoid(logits) - labels), logits),
        "labels": unbroadcast(-(d_out * logits), labels),
    }
