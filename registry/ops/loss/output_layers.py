"""Output layers: predictions in the forward pass, a loss's gradient in the backward pass.

Each of them ends a network. Its gradient is that of a loss regardless of how the output is used, so
the gradient makers ignore the cotangent. They recompute the predictions: their results can then be
differentiated as functions of data and label.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import broadcast_to, cast
from registry.ops.core.comparison import greater
from registry.ops.core.elementwise import sigmoid
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape
from registry.ops.elementwise.extrema import maximum, sign
from registry.shapes import inexact, real, same
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var, filled

Normalization = Literal["null", "batch", "valid"]
"""The divisor of a gradient: nothing, the number of labels, or the number of valid labels."""


def data_dtype(data: VarType, label: VarType) -> DType:
    """The dtype of ``data``, which must be real and floating; ``label`` must be real."""
    real(data, label)
    return inexact(data)[0]


def strong_data(data: Array) -> Array:
    """``data`` with a strong dtype."""
    return jnp.asarray(data).astype(jnp.result_type(data))


def count_of(chosen: Var) -> Any:
    """The number of true entries, at least one, in float32: half precision cannot count far."""
    return maximum(sum_over(cast(chosen, dtype="float32")), 1.0)


# make_loss -------------------------------------------------------------------------------------


def _make_loss_dtype(data: VarType) -> DType:
    real(data)
    return inexact(data)[0]


def _make_loss_gradient_reference(
    data: np.ndarray, *, grad_scale: float, valid_thresh: float, normalization: Normalization
) -> dict[str, Any]:
    counts = {
        "null": 1,
        "batch": math.prod(data.shape[:-1]),
        "valid": int(np.count_nonzero(data > valid_thresh)),
    }
    return {"data": np.full(data.shape, grad_scale / max(counts[normalization], 1))}


@op(
    native=False,
    shape=same,
    dtype=_make_loss_dtype,
    reference=lambda data, **_: data,
    gradient_reference=_make_loss_gradient_reference,
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
    """Returns ``data`` as a loss: its gradient is ``grad_scale``, whatever the cotangent is.

    With ``normalization="batch"`` the gradient is divided by the number of rows, all axes but the
    last flattened; with ``"valid"`` by the number of entries that exceed ``valid_thresh``, at least
    one.

    Example:
        >>> import jax
        >>> float(jax.grad(lambda x: 100.0 * make_loss(x, grad_scale=2.0))(3.0))
        2.0
    """
    return strong_data(data)


@make_loss.gradient
def _make_loss_gradient(
    data: Var, d_out: Var, *, grad_scale: float, valid_thresh: float, normalization: Normalization
) -> Grads:
    del d_out
    if normalization == "valid":
        share = grad_scale / count_of(greater(data, valid_thresh))
        return {"data": broadcast_to(cast(share, dtype=data.dtype), shape=data.shape)}
    rows = math.prod(data.shape[:-1]) if normalization == "batch" else 1
    return {"data": filled(data, grad_scale / max(rows, 1))}


# Regressions -----------------------------------------------------------------------------------


def _regression_shape(data: Shape, label: Shape) -> Shape:
    if not data or label[:1] != data[:1] or math.prod(label) != math.prod(data):
        raise ShapeError(
            f"label must have as many examples and as many entries as data, got {label} and {data}"
        )
    return data


def _regression_reference(
    predicted: Callable[[Any], Any], slope: Callable[[Any], Any] = lambda error: error
) -> Callable[..., Any]:
    """The gradient of a regression whose predictions are ``predicted(data)``, row by row."""

    def gradients(data: np.ndarray, label: np.ndarray, *, grad_scale: float) -> dict[str, Any]:
        rows = data.reshape(len(data), math.prod(data.shape[1:]))
        wanted = np.asarray(label, data.dtype).reshape(rows.shape)
        slopes = [
            grad_scale * slope(predicted(row) - one) / max(len(row), 1)
            for row, one in zip(rows, wanted, strict=True)
        ]
        return {"data": np.asarray(slopes, data.dtype).reshape(data.shape)}

    return gradients


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
    dtype=data_dtype,
    reference=lambda data, label, *, grad_scale=1.0: data,
    gradient_reference=_regression_reference(lambda x: x),
    aliases=["LinearRegressionOutput"],
    cases=_REGRESSION_CASES,
)
def linear_regression_output(data: Array, label: Array, *, grad_scale: float = 1.0) -> Array:
    """Returns ``data``; its gradient is that of a squared error.

    The gradient is ``(data - label) * grad_scale / m``, where ``m`` is the number of outputs of
    each example. The cotangent is ignored, and the gradient for ``label`` is zero. ``label`` may
    have another shape with the same number of entries.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1.0, 1.0])
        >>> jax.grad(lambda x: linear_regression_output(x, label).sum())(jnp.asarray([3.0, 0.0]))
        Array([ 2., -1.], dtype=float32)
    """
    return strong_data(data)


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
    dtype=data_dtype,
    reference=lambda data, label, *, grad_scale=1.0: 1 / (1 + np.exp(-data)),
    gradient_reference=_regression_reference(lambda x: 1 / (1 + np.exp(-x))),
    aliases=["LogisticRegressionOutput"],
    cases=_REGRESSION_CASES,
)
def logistic_regression_output(data: Array, label: Array, *, grad_scale: float = 1.0) -> Array:
    """Sigmoid of ``data`` with the gradient of the cross-entropy.

    The gradient is ``(sigmoid(data) - label) * grad_scale / m``, where ``m`` is the number of
    outputs of each example. The cotangent is ignored, and the gradient for ``label`` is zero.
    ``label`` may have another shape with the same number of entries.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1.0, 0.0])
        >>> jax.grad(lambda x: logistic_regression_output(x, label).sum())(jnp.zeros(2))
        Array([-0.5,  0.5], dtype=float32)
    """
    return jax.lax.logistic(strong_data(data))


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
    dtype=data_dtype,
    reference=lambda data, label, *, grad_scale=1.0: data,
    gradient_reference=_regression_reference(lambda x: x, np.sign),
    aliases=["MAERegressionOutput"],
    cases=_REGRESSION_CASES,
)
def mae_regression_output(data: Array, label: Array, *, grad_scale: float = 1.0) -> Array:
    """Returns ``data``; its gradient is that of an absolute error.

    The gradient is ``sign(data - label) * grad_scale / m``, where ``m`` is the number of outputs of
    each example. The cotangent is ignored, and the gradient for ``label`` is zero. ``label`` may
    have another shape with the same number of entries.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1.0, 1.0])
        >>> jax.grad(lambda x: mae_regression_output(x, label).sum())(jnp.asarray([3.0, 1.0]))
        Array([1., 0.], dtype=float32)
    """
    return strong_data(data)


@mae_regression_output.gradient
def _mae_regression_output_gradient(
    data: Var, label: Var, d_out: Var, *, grad_scale: float
) -> Grads:
    del d_out
    error, outputs = _regression_slope(data, label, data)
    return {"data": (grad_scale / outputs) * sign(error), "label": None}
