"""Output layers for class labels, whose gradient is that of a loss.

As in ``output_layers``, the gradient makers recompute the predictions.
"""

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, uniform, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast
from registry.ops.core.comparison import not_equal
from registry.ops.core.elementwise import relu, where
from registry.ops.core.reshaping import reshape
from registry.ops.elementwise.extrema import sign
from registry.ops.elementwise.rounding import trunc
from registry.ops.loss.losses import ignores
from registry.ops.loss.output_layers import Normalization, count_of, data_dtype, strong_data
from registry.ops.nn.softmax import softmax
from registry.shapes import canonical, normalize_axis, real
from registry.table import op
from registry.types import DType, Shape, VarType, is_integer
from registry.var import Var

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
    """One-hot encoding of labels along the new ``axis``, with labels truncated to integers.

    ``one_hot`` for labels that may be floating, as is usual in MXNet.

    Example:
        >>> import jax.numpy as jnp
        >>> hot_labels(jnp.asarray([1.0, 0.0]), num_classes=3, dtype="float32")
        Array([[0., 1., 0.],
               [1., 0., 0.]], dtype=float32)
    """
    ids = jnp.trunc(jnp.asarray(label)).astype(np.int32)
    return jax.nn.one_hot(ids, num_classes, dtype=canonical(dtype), axis=axis)


hot_labels.zero_gradient("it is constant between the jumps")


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
    """The shapes that labels of classes may have."""
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


def _softmax_output_gradient_reference(
    data: np.ndarray, label: np.ndarray, *, d_out: np.ndarray, **how: Any
) -> dict[str, Any]:
    out = _softmax_output_reference(data, label, **how)
    if label.shape == data.shape:
        slope = how["grad_scale"] * (out - label)
    elif how["multi_output"]:
        rows = _row_slopes(np.moveaxis(out, 1, -1), label, **how)
        slope = np.moveaxis(rows, -1, 1)
    else:
        whole = out if how["preserve_shape"] else out.reshape(len(out), math.prod(out.shape[1:]))
        slope = _row_slopes(whole, label, **how).reshape(data.shape)
    return {"data": slope * d_out if how["out_grad"] else slope}


def _row_slopes(out: np.ndarray, label: np.ndarray, **how: Any) -> np.ndarray:
    """``out - p`` for classes along the last axis, one label after another."""
    labels = np.trunc(label).reshape(-1)
    rows = out.reshape(len(labels), out.shape[-1]).copy()
    smooth = 0.0 if how["multi_output"] else how["smooth_alpha"]
    ignored = labels == np.trunc(how["ignore_label"])
    classes = rows.shape[1]
    for i, one in enumerate(labels):
        target = np.full(classes, smooth / max(classes - 1, 1))
        if 0 <= one < classes:
            target[int(one)] = 1.0 - smooth
        rows[i] -= target
    rows[ignored if how["use_ignore"] else np.zeros_like(ignored)] = 0.0
    each = len(labels) // max(len(out), 1) if how["multi_output"] else 1
    counts = {
        "null": each,
        "batch": len(labels),
        "valid": int(np.count_nonzero(~ignored)),
    }
    scale = how["grad_scale"] / max(counts[how["normalization"]], 1)
    return np.asarray(scale * rows.reshape(out.shape))


@op(
    native=False,
    shape=_softmax_output_shape,
    dtype=data_dtype,
    reference=_softmax_output_reference,
    gradient_reference=_softmax_output_gradient_reference,
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
    """Softmax along the classes, with the gradient of the cross-entropy: ``softmax(data) - p``.

    The classes are along axis 1 with ``multi_output``, along the last axis with ``preserve_shape``,
    and otherwise along all axes but the first, flattened. ``label`` holds either the probabilities
    ``p`` in the shape of ``data``, or one class for each example, truncated to an integer; for a
    class out of range ``p`` is zero. The gradient for ``label`` is zero.

    The gradient is multiplied by ``grad_scale``, and by the cotangent only with ``out_grad``. The
    following apply to class labels only. ``use_ignore`` sets the gradient to zero where the class
    is ``ignore_label``. ``normalization`` divides it by the number of labels (``"batch"``; with
    ``multi_output`` of examples), or by the number of those that are not ``ignore_label``, at least
    one (``"valid"``). With ``multi_output`` it is, unless ``"valid"``, also divided by the number
    of labels of each example. ``smooth_alpha``, without ``multi_output``, is the share of the
    probability that is distributed evenly among the other classes.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1])
        >>> jax.grad(lambda x: softmax_output(x, label).sum())(jnp.zeros((1, 2)))
        Array([[ 0.5, -0.5]], dtype=float32)
    """
    axes = _class_axes(jnp.ndim(data), multi_output, preserve_shape)
    return jax.nn.softmax(strong_data(data), axes)


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
        may_ignore = not is_integer(label.dtype) or ignores(label.dtype, ignored)
        kept = not_equal(trunc(reshape(label, shape=shape)), ignored) if may_ignore else None
        if use_ignore and kept is not None:
            slope = where(kept, slope, 0.0)
        if normalization == "valid" and kept is not None:
            slope = slope * cast(scale / count_of(kept), dtype=data.dtype)
        else:
            slope = (scale / max(_divisor(shape, multi_output, normalization), 1)) * slope
    return {"data": slope * d_out if out_grad else slope, "label": None}


def _divisor(labels: Shape, multi_output: bool, normalization: Normalization) -> int:
    """The divisor of the gradient, where it is the same for all labels."""
    if multi_output and normalization == "null":
        return math.prod(labels[1:])
    return 1 if normalization == "null" else math.prod(labels)


def _target(label: Var, axis: int, data: Var, smooth_alpha: float) -> Any:
    """The target probabilities along ``axis`` that the classes represent."""
    n = data.shape[axis]
    flat = reshape(label, shape=(*data.shape[:axis], *data.shape[axis + 1 :]))
    hot = hot_labels(flat, num_classes=n, axis=axis, dtype=data.dtype)
    if smooth_alpha == 0:
        return hot
    other = smooth_alpha / max(n - 1, 1)
    return hot * (1.0 - smooth_alpha - other) + other


# svm_output ------------------------------------------------------------------------------------


def _svm_output_shape(data: Shape, label: Shape) -> Shape:
    if not data or label != data[:-1]:
        raise ShapeError(f"label must have shape {data[:-1]}, got {label}")
    return data


def _svm_output_gradient_reference(
    data: np.ndarray,
    label: np.ndarray,
    *,
    margin: float,
    regularization_coefficient: float,
    use_linear: bool,
) -> dict[str, Any]:
    slope = np.zeros_like(data)
    for place in np.ndindex(data.shape):
        side = 1.0 if int(label[place[:-1]]) == place[-1] else -1.0
        lack = margin - side * data[place]
        if lack > 0:
            slope[place] = -side * regularization_coefficient * (1.0 if use_linear else 2 * lack)
    return {"data": slope}


@op(
    native=False,
    shape=_svm_output_shape,
    dtype=data_dtype,
    reference=lambda data, label, **_: data,
    gradient_reference=_svm_output_gradient_reference,
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
    """Returns ``data``; its gradient is that of a multi-class hinge loss.

    ``label`` holds the classes along the last axis, truncated to integers. With ``s`` one for the
    class of the example and minus one for the others, the loss is ``max(0, margin - s * data)``,
    squared unless ``use_linear``, times ``regularization_coefficient``. The cotangent is ignored,
    and the gradient for ``label`` is zero.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1])
        >>> jax.grad(lambda x: svm_output(x, label).sum())(jnp.asarray([[-2.0, 0.5, 1.0]]))
        Array([[ 0., -1.,  4.]], dtype=float32)
    """
    return strong_data(data)


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
