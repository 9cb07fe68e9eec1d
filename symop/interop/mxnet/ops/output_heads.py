"""Output layers and losses: predictions that have the gradients of losses."""

import math
from typing import Any, Literal

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.indexing import whole
from symop.interop.mxnet.ops.precision import single
from symop.interop.mxnet.partial_dtypes import labeled
from symop.interop.mxnet.partial_shapes import Shapes, enter, is_known, like_data

Normalization = Literal["null", "batch", "valid"]


@operator("MakeLoss", shapes=like_data)
def make_loss(
    data: Any,
    *,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Normalization = "null",
) -> Any:
    """``data``, with gradient ``grad_scale`` whatever the cotangent."""
    return so.make_loss(
        data,
        grad_scale=single(grad_scale, data),
        valid_thresh=single(valid_thresh, data),
        normalization=normalization,
    )


# SoftmaxOutput ---------------------------------------------------------------------------------


def _softmax_output_shapes(given: Shapes, found: Shapes, multi_output: bool) -> None:
    like_data(given, found)
    data = given[0]
    if data is None or not multi_output:
        if data is not None and given[1] is not None and len(given[1]) == len(data):
            enter(given, 1, data)  # labels are probabilities
        elif data is not None:
            enter(given, 1, data[:-1])
    elif given[1] is None and is_known(data):
        enter(given, 1, (data[0], math.prod(data[2:])))


@operator("SoftmaxOutput", "Softmax", shapes=_softmax_output_shapes, dtypes=labeled)
def softmax_output(
    data: Any,
    label: Any,
    *,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Normalization = "null",
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
) -> Any:
    """Softmax with the gradient of the cross-entropy with ``label``."""
    shape = data.shape
    if not multi_output and not preserve_shape and len(shape) > 2:
        data = so.reshape(data, shape=(shape[0], -1))  # all axes but the first are classes
        label = so.reshape(label, shape=data.shape if label.shape == shape else (-1,))
        if label.shape != data.shape:
            label = so.slice_axis(label, axis=0, begin=0, end=shape[0])
    out = so.softmax_output(
        data,
        label,
        grad_scale=single(grad_scale, data),
        ignore_label=ignore_label,
        multi_output=multi_output,
        use_ignore=use_ignore,
        preserve_shape=preserve_shape,
        normalization=normalization,
        out_grad=out_grad,
        smooth_alpha=single(smooth_alpha, data),
    )
    return so.reshape(out, shape=shape) if out.shape != shape else out


# Regression ------------------------------------------------------------------------------------


def _regression_shapes(given: Shapes, found: Shapes) -> None:
    like_data(given, found)
    data = given[0]
    if data is None or not is_known(data):
        return
    if given[1] is None:  # a column may have labels without its axis
        given[1] = data[:1] if data[1:] == (1,) else data
    elif 0 in given[1]:
        enter(given, 1, data if len(given[1]) == len(data) else data[:1])


def _declare_regression(name: str, function: Any) -> None:
    def regression_output(data: Any, label: Any, *, grad_scale: float = 1.0) -> Any:
        """Predictions with the gradient of the error, divided by the outputs per example."""
        return function(data, label, grad_scale=single(grad_scale, data))

    operator(name, shapes=_regression_shapes, dtypes=labeled)(regression_output)


_declare_regression("LinearRegressionOutput", so.linear_regression_output)
_declare_regression("LogisticRegressionOutput", so.logistic_regression_output)
_declare_regression("MAERegressionOutput", so.mae_regression_output)


# Other losses ----------------------------------------------------------------------------------


def _svm_shapes(given: Shapes, found: Shapes) -> None:
    like_data(given, found)
    if given[0] is not None:
        enter(given, 1, given[0][:-1])


@operator("SVMOutput", shapes=_svm_shapes, dtypes=labeled)
def svm_output(
    data: Any,
    label: Any,
    *,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: bool = False,
) -> Any:
    """``data`` with the gradient of a hinge loss."""
    return so.svm_output(
        data,
        label,
        margin=single(margin, data),
        regularization_coefficient=single(regularization_coefficient, data),
        use_linear=use_linear,
    )


def _ctc_inputs(use_data_lengths: bool, use_label_lengths: bool) -> tuple[str, ...]:
    more = {"data_lengths": use_data_lengths, "label_lengths": use_label_lengths}
    return ("data", "label", *[name for name, used in more.items() if used])


def _ctc_shapes(given: Shapes, found: Shapes) -> None:
    data = given[0]
    if data is not None:
        if len(data) != 3:
            raise MXNetError(f"CTCLoss: data must have three axes, got shape {data}")
        enter(found, 0, data[1:2])
        enter(found, 1, data)
        enter(given, 1, (data[1], 0))
        for i in range(2, len(given)):
            enter(given, i, data[1:2])


@operator(
    "CTCLoss",
    "ctc_loss",
    "_contrib_CTCLoss",
    "_contrib_ctc_loss",
    present=_ctc_inputs,
    outputs=lambda: ("output0", "output1"),
    visible=lambda: 1,
    shapes=_ctc_shapes,
    dtypes=labeled,
)
def ctc_loss(
    data: Any,
    label: Any,
    data_lengths: Any = None,
    label_lengths: Any = None,
    *,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: Literal["first", "last"] = "first",
) -> Any:
    """Negative log likelihood of each label sequence; 0 for one too long for its frames."""
    del use_data_lengths, use_label_lengths  # lengths are used if they are given
    frames, length = (None if one is None else whole(one) for one in (data_lengths, label_lengths))
    blank = 0 if blank_label == "first" else data.shape[2] - 1
    loss = so.ctc_loss(data, whole(label), frames, length, blank=blank)
    return so.where(so.isinf(loss), so.zeros_like(loss), loss)
