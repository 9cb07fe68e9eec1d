"""Output layers: predictions forward, the gradient of a loss that is not computed backward.

Each of them ends a network. Its gradient is that of a loss whatever becomes of the output, so the
makers do not look at the cotangent. They compose the predictions anew: what they return can then be
differentiated as the function of data and label that it is.
"""

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, uniform, workload
from registry.errors import ShapeError
from registry.operator import Grads
from registry.ops.broadcasting import broadcast_to, cast
from registry.ops.comparison import greater, not_equal
from registry.ops.elementwise import relu, sigmoid, where
from registry.ops.extrema import maximum, sign
from registry.ops.losses import ignores
from registry.ops.neural import softmax
from registry.ops.reductions import sum as sum_over
from registry.ops.rounding import trunc
from registry.ops.shape import reshape
from registry.shapes import canonical, inexact, normalize_axis, real, same
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var, filled

Normalization = Literal["null", "batch", "valid"]


def _data_dtype(data: VarType, label: VarType) -> DType:
    real(data, label)
    return inexact(data)[0]


def _strong(data: Array) -> Array:
    return jnp.asarray(data).astype(jnp.result_type(data))


def _count_of(chosen: Var) -> Any:
    """How many are true, at least one, in float32: half precision cannot count far."""
    return maximum(sum_over(cast(chosen, dtype="float32")), 1.0)


# hot_labels ------------------------------------------------------------------------------------


def _hot_labels_shape(label: Shape, *, num_classes: int, axis: int) -> Shape:
    at = normalize_axis(axis, len(label) + 1)
    return (*label[:at], num_classes, *label[at:])


def _hot_labels_dtype(label: VarType, *, dtype: DType) -> DType:
    real(label)
    return canonical(dtype)


def _hot_labels_reference(
    label: np.ndarray, *, num_classes: int, axis: int = -1, dtype: DType
) -> np.ndarray:
    hot = np.equal(np.trunc(label)[..., None], np.arange(num_classes))
    return np.asarray(np.moveaxis(hot, -1, axis), dtype)


@op(
    shape=_hot_labels_shape,
    dtype=_hot_labels_dtype,
    reference=_hot_labels_reference,
    cases=[
        case(label=uniform(4, low=-1.0, high=4.0), num_classes=3, dtype="float32"),
        case(label=integers(2, 4, high=3), num_classes=3, axis=1, dtype="float64"),
        case(label=uniform(low=0.0, high=3.0), num_classes=3, dtype="float32"),
        case(label=(0,), num_classes=3, dtype="float32"),
        misuse("axis must be in [-2, 2), got 2", label=(4,), num_classes=3, axis=2, dtype="int32"),
        misuse("must be real", label=np.ones(3, np.complex64), num_classes=3, dtype="int32"),
    ],
)
def hot_labels(label: Array, *, num_classes: int, axis: int = -1, dtype: np.dtype) -> Array:
    """One where the position along the new ``axis`` is the label, cut to an integer; else zero.

    ``one_hot`` of labels that may be floating, which are the rule in MXNet.

    Example:
        >>> import jax.numpy as jnp
        >>> hot_labels(jnp.asarray([1.0, 0.0]), num_classes=3, dtype="float32")
        Array([[0., 1., 0.],
               [1., 0., 0.]], dtype=float32)
    """
    ids = jnp.trunc(jnp.asarray(label)).astype(np.int32)
    return jax.nn.one_hot(ids, num_classes, dtype=canonical(dtype), axis=axis)


hot_labels.zero_gradient("it is constant between the jumps")


# make_loss -------------------------------------------------------------------------------------


def _make_loss_dtype(data: VarType) -> DType:
    real(data)
    return inexact(data)[0]


@op(
    native=False,
    shape=same,
    dtype=_make_loss_dtype,
    reference=lambda data, **_: data,
    aliases=["MakeLoss"],
    cases=[
        case(data=(3, 4)),
        case(data=(2, 3, 4), grad_scale=0.5, normalization="batch"),
        case(data=(3, 4), valid_thresh=0.2, normalization="valid"),
        case(data=()),
        case(data=(0, 2), normalization="batch"),
        misuse("the inputs must be floating, got int32", data=integers(3, high=4)),
        misuse("the inputs must be real, got complex64", data=np.ones(3, np.complex64)),
        misuse("attribute 'normalization' must be", data=(3,), normalization="mean"),
    ],
)
def make_loss(
    data: Array,
    *,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Literal["null", "batch", "valid"] = "null",
) -> Array:
    """``data``, which is made a loss: its gradient is ``grad_scale``, whatever the cotangent is.

    With ``normalization="batch"`` it is divided by the number of rows, all axes but the last taken
    together; with ``"valid"`` by the number of entries that exceed ``valid_thresh``, at least one.

    Example:
        >>> import jax
        >>> float(jax.grad(lambda x: 100.0 * make_loss(x, grad_scale=2.0))(3.0))
        2.0
    """
    return _strong(data)


@make_loss.gradient
def _make_loss_gradient(
    data: Var, d_out: Var, *, grad_scale: float, valid_thresh: float, normalization: Normalization
) -> Grads:
    del d_out
    if normalization == "valid":
        share = grad_scale / _count_of(greater(data, valid_thresh))
        return {"data": broadcast_to(cast(share, dtype=data.dtype), shape=data.shape)}
    rows = math.prod(data.shape[:-1]) if normalization == "batch" else 1
    return {"data": filled(data, grad_scale / max(rows, 1))}


# softmax_output --------------------------------------------------------------------------------


def _softmax_output_shape(
    data: Shape, label: Shape, *, multi_output: bool, preserve_shape: bool
) -> Shape:
    if len(data) < 2:
        raise ShapeError(f"data must have examples and classes, got shape {data}")
    legal = [data, *_label_shapes(data, multi_output, preserve_shape)]
    if label not in legal:
        raise ShapeError(
            f"label must have one of the shapes {', '.join(map(str, dict.fromkeys(legal)))}, "
            f"got {label}"
        )
    return data


def _label_shapes(data: Shape, multi_output: bool, preserve_shape: bool) -> list[Shape]:
    """The shapes of labels that are classes."""
    if multi_output:
        n, _, *rest = data
        return [(n, *rest), (n, math.prod(rest)), (n, 1, *rest)]
    return [data[:-1]] if preserve_shape or len(data) == 2 else []


def _class_axes(ndim: int, multi_output: bool, preserve_shape: bool) -> tuple[int, ...]:
    """The axes over which the softmax normalizes."""
    if multi_output:
        return (1,)
    return (ndim - 1,) if preserve_shape else tuple(range(1, ndim))


def _softmax_output_reference(
    data: np.ndarray,
    label: np.ndarray,
    *,
    multi_output: bool = False,
    preserve_shape: bool = False,
    **_: Any,
) -> np.ndarray:
    axes = _class_axes(data.ndim, multi_output, preserve_shape)
    powers = np.exp(data - np.max(data, axis=axes, keepdims=True, initial=-np.inf))
    return np.asarray(powers / np.sum(powers, axis=axes, keepdims=True))


@op(
    native=False,
    shape=_softmax_output_shape,
    dtype=_data_dtype,
    reference=_softmax_output_reference,
    aliases=["SoftmaxOutput"],
    cases=[
        case(data=(4, 3), label=integers(4, high=3)),
        case(
            data=(2, 3, 4),
            label=integers(2, 4, low=-1, high=3),
            multi_output=True,
            use_ignore=True,
            normalization="valid",
            grad_scale=0.5,
            order=2,
        ),
        case(
            data=(2, 2, 3),
            label=uniform(2, 2, low=0.0, high=3.0),
            preserve_shape=True,
            use_ignore=True,
            ignore_label=1.0,
            normalization="batch",
            smooth_alpha=0.1,
            order=2,
        ),
        case(data=(2, 3, 2), label=(2, 3, 2), out_grad=True, order=2),
        case(data=(0, 3), label=integers(0, high=3), order=1),
        workload(data=(4096, 256), label=integers(4096, high=256)),
        misuse("data must have examples and classes, got shape (3,)", data=(3,), label=(3,)),
        misuse(
            "label must have one of the shapes (4, 3), (4,), got (3,)",
            data=(4, 3),
            label=integers(3, high=3),
        ),
        misuse(
            "label must have one of the shapes (2, 3, 4), got (2, 3)",
            data=(2, 3, 4),
            label=integers(2, 3, high=3),
        ),
        misuse("the inputs must be floating", data=integers(4, 3, high=3), label=(4, 3)),
        misuse("must be real", data=np.ones((4, 3), np.complex64), label=(4, 3)),
    ],
)
def softmax_output(
    data: Array,
    label: Array,
    *,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Literal["null", "batch", "valid"] = "null",
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
) -> Array:
    """Softmax whose gradient is that of the cross-entropy, ``softmax(data) - p``.

    The classes lie along axis 1 with ``multi_output``, along the last axis with
    ``preserve_shape``, and else along all axes but the first, taken together. ``label`` are the
    probabilities ``p`` in the shape of ``data``, or one class for each example, cut to an integer;
    one out of range has no ``p``. The gradient for ``label`` is zero.

    The gradient is multiplied by ``grad_scale``, and by the cotangent only with ``out_grad``. The
    following hold for classes only: ``use_ignore`` makes the gradient zero where the class is
    ``ignore_label``; ``normalization`` divides it by the number of labels (``"batch"``; with
    ``multi_output`` of examples), or of those that are not ``ignore_label``, at least one
    (``"valid"``); with ``multi_output`` it is, unless ``"valid"``, also divided by the number of
    labels of each example; ``smooth_alpha``, without ``multi_output``, is the share of the
    probability that goes to the other classes alike.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1])
        >>> jax.grad(lambda x: softmax_output(x, label).sum())(jnp.zeros((1, 2)))
        Array([[ 0.5, -0.5]], dtype=float32)
    """
    axes = _class_axes(jnp.ndim(data), multi_output, preserve_shape)
    return jax.nn.softmax(_strong(data), axes)


@softmax_output.gradient
def _softmax_output_gradient(
    data: Var,
    label: Var,
    d_out: Var,
    *,
    grad_scale: float,
    ignore_label: float,
    multi_output: bool,
    use_ignore: bool,
    preserve_shape: bool,
    normalization: Normalization,
    out_grad: bool,
    smooth_alpha: float,
) -> Grads:
    # d sum(-p log softmax(x)) = softmax(x) sum(p) - p, and sum(p) = 1
    axes = _class_axes(data.ndim, multi_output, preserve_shape)
    out, scale = softmax(data, axis=axes if len(axes) > 1 else axes[0]), grad_scale
    if label.shape == data.shape:
        slope = scale * (out - cast(label, dtype=data.dtype))
    else:
        shape = tuple(1 if i in axes else n for i, n in enumerate(data.shape))
        slope = out - _target(label, axes[0], data, 0.0 if multi_output else smooth_alpha)
        ignored = int(ignore_label)
        may_ignore = label.dtype.kind not in "iu" or ignores(label.dtype, ignored)
        kept = not_equal(trunc(reshape(label, shape=shape)), ignored) if may_ignore else None
        if use_ignore and kept is not None:
            slope = where(kept, slope, 0.0)
        if normalization == "valid" and kept is not None:
            slope = slope * cast(scale / _count_of(kept), dtype=data.dtype)
        else:
            slope = (scale / max(_divisor(shape, multi_output, normalization), 1)) * slope
    return {"data": slope * d_out if out_grad else slope, "label": None}


def _divisor(labels: Shape, multi_output: bool, normalization: Normalization) -> int:
    """What the gradient is divided by, where that is the same for all labels."""
    if multi_output and normalization == "null":
        return math.prod(labels[1:])
    return 1 if normalization == "null" else math.prod(labels)


def _target(label: Var, axis: int, data: Var, smooth_alpha: float) -> Any:
    """The probabilities along ``axis`` that classes stand for."""
    n = data.shape[axis]
    flat = reshape(label, shape=(*data.shape[:axis], *data.shape[axis + 1 :]))
    hot = hot_labels(flat, num_classes=n, axis=axis, dtype=data.dtype)
    if smooth_alpha == 0:
        return hot
    other = smooth_alpha / max(n - 1, 1)
    return hot * (1.0 - smooth_alpha - other) + other


# Regressions -----------------------------------------------------------------------------------


def _regression_shape(data: Shape, label: Shape) -> Shape:
    if not data or label[:1] != data[:1] or math.prod(label) != math.prod(data):
        raise ShapeError(
            f"label must have as many examples and as many entries as data, got {label} and {data}"
        )
    return data


_REGRESSION_CASES = [
    case(data=(3, 4), label=(3, 4)),
    case(data=(3, 2, 2), label=(3, 4), grad_scale=0.5, order=2),
    case(data=(3, 1), label=integers(3, high=2), order=2),
    case(data=(0, 2), label=(0, 2), order=1),
    workload(data=(1024, 1024), label=(1024, 1024)),
    misuse(
        "label must have as many examples and as many entries as data, got (4,) and (2, 2)",
        data=(2, 2),
        label=(4,),
    ),
    misuse("the inputs must be floating, got int32", data=integers(3, high=9), label=(3,)),
    misuse("must be real, got complex64", data=np.ones(3, np.complex64), label=(3,)),
]


def _regression_slope(data: Var, label: Var, predictions: Var) -> tuple[Var, float]:
    """``predictions - label`` and the number of outputs of each example."""
    outputs = math.prod(data.shape[1:])
    error = predictions - reshape(cast(label, dtype=data.dtype), shape=data.shape)
    return error, float(max(outputs, 1))


@op(
    native=False,
    shape=_regression_shape,
    dtype=_data_dtype,
    reference=lambda data, label, *, grad_scale=1.0: data,
    aliases=["LinearRegressionOutput"],
    cases=_REGRESSION_CASES,
)
def linear_regression_output(data: Array, label: Array, *, grad_scale: float = 1.0) -> Array:
    """``data``, whose gradient is that of a squared error.

    It is ``(data - label) * grad_scale / m``, where ``m`` is the number of outputs of each
    example. The cotangent does not matter, and the gradient for ``label`` is zero. ``label`` may
    have another shape with the same number of entries.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1.0, 1.0])
        >>> jax.grad(lambda x: linear_regression_output(x, label).sum())(jnp.asarray([3.0, 0.0]))
        Array([ 2., -1.], dtype=float32)
    """
    return _strong(data)


@linear_regression_output.gradient
def _linear_regression_output_gradient(
    data: Var, label: Var, d_out: Var, *, grad_scale: float
) -> Grads:
    del d_out
    error, outputs = _regression_slope(data, label, data)
    return {"data": (grad_scale / outputs) * error, "label": None}


@op(
    native=False,
    shape=_regression_shape,
    dtype=_data_dtype,
    reference=lambda data, label, *, grad_scale=1.0: 1 / (1 + np.exp(-data)),
    aliases=["LogisticRegressionOutput"],
    cases=_REGRESSION_CASES,
)
def logistic_regression_output(data: Array, label: Array, *, grad_scale: float = 1.0) -> Array:
    """Sigmoid whose gradient is that of the cross-entropy, with respect to ``data``.

    It is ``(sigmoid(data) - label) * grad_scale / m``, where ``m`` is the number of outputs of each
    example. The cotangent does not matter, and the gradient for ``label`` is zero. ``label`` may
    have another shape with the same number of entries.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1.0, 0.0])
        >>> jax.grad(lambda x: logistic_regression_output(x, label).sum())(jnp.zeros(2))
        Array([-0.5,  0.5], dtype=float32)
    """
    return jax.lax.logistic(_strong(data))


@logistic_regression_output.gradient
def _logistic_regression_output_gradient(
    data: Var, label: Var, d_out: Var, *, grad_scale: float
) -> Grads:
    del d_out
    error, outputs = _regression_slope(data, label, sigmoid(data))
    return {"data": (grad_scale / outputs) * error, "label": None}


@op(
    native=False,
    shape=_regression_shape,
    dtype=_data_dtype,
    reference=lambda data, label, *, grad_scale=1.0: data,
    aliases=["MAERegressionOutput"],
    cases=_REGRESSION_CASES,
)
def mae_regression_output(data: Array, label: Array, *, grad_scale: float = 1.0) -> Array:
    """``data``, whose gradient is that of an absolute error.

    It is ``sign(data - label) * grad_scale / m``, where ``m`` is the number of outputs of each
    example. The cotangent does not matter, and the gradient for ``label`` is zero. ``label`` may
    have another shape with the same number of entries.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1.0, 1.0])
        >>> jax.grad(lambda x: mae_regression_output(x, label).sum())(jnp.asarray([3.0, 1.0]))
        Array([1., 0.], dtype=float32)
    """
    return _strong(data)


@mae_regression_output.gradient
def _mae_regression_output_gradient(
    data: Var, label: Var, d_out: Var, *, grad_scale: float
) -> Grads:
    del d_out
    error, outputs = _regression_slope(data, label, data)
    return {"data": (grad_scale / outputs) * sign(error), "label": None}


# svm_output ------------------------------------------------------------------------------------


def _svm_output_shape(data: Shape, label: Shape) -> Shape:
    if not data or label != data[:-1]:
        raise ShapeError(f"label must have shape {data[:-1]}, got {label}")
    return data


@op(
    native=False,
    shape=_svm_output_shape,
    dtype=_data_dtype,
    reference=lambda data, label, **_: data,
    aliases=["SVMOutput"],
    cases=[
        case(data=(4, 3), label=integers(4, high=3)),
        case(
            data=(2, 2, 3),
            label=uniform(2, 2, low=0.0, high=3.0),
            margin=0.5,
            regularization_coefficient=2.0,
            use_linear=True,
        ),
        case(data=(3,), label=integers(high=3), order=2),
        case(data=(0, 3), label=integers(0, high=3), order=1),
        workload(data=(4096, 256), label=integers(4096, high=256)),
        misuse("label must have shape (4,), got (3,)", data=(4, 3), label=integers(3, high=3)),
        misuse("the inputs must be floating", data=integers(4, 3, high=3), label=(4,)),
        misuse("must be real", data=np.ones((4, 3), np.complex64), label=(4,)),
    ],
)
def svm_output(
    data: Array,
    label: Array,
    *,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: bool = False,
) -> Array:
    """``data``, whose gradient is that of the hinge loss of one class against each other one.

    ``label`` are the classes along the last axis, cut to integers. With ``s`` one for the class of
    the example and minus one for the others, the loss is ``max(0, margin - s * data)``, squared
    unless ``use_linear``, times ``regularization_coefficient``. The cotangent does not matter, and
    the gradient for ``label`` is zero.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1])
        >>> jax.grad(lambda x: svm_output(x, label).sum())(jnp.asarray([[-2.0, 0.5, 1.0]]))
        Array([[ 0., -1.,  4.]], dtype=float32)
    """
    return _strong(data)


@svm_output.gradient
def _svm_output_gradient(
    data: Var,
    label: Var,
    d_out: Var,
    *,
    margin: float,
    regularization_coefficient: float,
    use_linear: bool,
) -> Grads:
    del d_out
    hot = hot_labels(label, num_classes=data.shape[-1], dtype=data.dtype)
    side = 2.0 * hot - 1.0
    lack = margin - side * data
    slope = sign(relu(lack)) if use_linear else 2.0 * relu(lack)
    return {"data": -regularization_coefficient * (side * slope), "label": None}
