"""Losses, labels and measures."""

from symop.interop.paddle import unique_name
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.programs import Slots, Variable, code_of, dtype_of
from symop.interop.paddle.static.helper import Layer, unary
from symop.interop.paddle.static.parameters import create_global_var

_IGNORED = -100


def cross_entropy(
    input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = _IGNORED
) -> Variable:
    """Returns minus the logarithms of probabilities of labels, one for each row."""
    if not soft_label:
        attrs = {"ignore_index": ignore_index}
        inputs = {"X": input, "Label": label}
        return Layer("cross_entropy2").call("cross_entropy2", inputs, "Y XShape MatchX", attrs)
    known = {"soft_label": True, "ignore_index": ignore_index}
    layer = Layer("cross_entropy")
    return layer.call("cross_entropy", {"X": input, "Label": label}, "Y", known)


def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = _IGNORED,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Variable | tuple[Variable, Variable]:
    """Returns the cross entropy of logits, and their softmax if ``return_softmax``."""
    attrs = {
        "soft_label": soft_label,
        "ignore_index": ignore_index,
        "numeric_stable_mode": numeric_stable_mode,
        "axis": axis,
    }
    softmax, loss = Layer("softmax_with_cross_entropy").calls(
        "softmax_with_cross_entropy", {"Logits": logits, "Label": label}, "Softmax Loss", attrs
    )
    return (loss, softmax) if return_softmax else loss


def sigmoid_cross_entropy_with_logits(
    x: Variable,
    label: Variable,
    ignore_index: int = _IGNORED,
    name: str | None = None,
    normalize: bool = False,
) -> Variable:
    """Returns the cross entropy of each logit."""
    kind = "sigmoid_cross_entropy_with_logits"
    attrs = {"ignore_index": ignore_index, "normalize": normalize}
    return Layer(kind, name).call(kind, {"X": x, "Label": label}, attrs=attrs)


def square_error_cost(input: Variable, label: Variable) -> Variable:
    """Returns squared differences."""
    layer = Layer("square_error_cost")
    difference = layer.call("elementwise_sub", {"X": input, "Y": label}, attrs={"axis": -1})
    return layer.call("square", {"X": difference})


mse_cost = square_error_cost


def mse_loss(input: Variable, label: Variable) -> Variable:
    """Returns the mean of squared differences."""
    return Layer("reduce_mean").call(
        "reduce_mean", {"X": square_error_cost(input, label)}, attrs={"reduce_all": True}
    )


def log_loss(
    input: Variable, label: Variable, epsilon: float = 1e-4, name: str | None = None
) -> Variable:
    """Returns the negative log-likelihood of binary labels."""
    inputs = {"Predicted": input, "Labels": label}
    return Layer("log_loss", name).call("log_loss", inputs, "Loss", {"epsilon": epsilon})


def huber_loss(input: Variable, label: Variable, delta: float) -> Variable:
    """Returns half of squared differences, linear beyond ``delta``."""
    layer = Layer("huber_loss")
    residual, loss = layer.calls(
        "huber_loss", {"X": input, "Y": label}, "Residual Out", {"delta": delta}
    )
    del residual
    return loss


def smooth_l1(
    x: Variable,
    y: Variable,
    inside_weight: Variable | None = None,
    outside_weight: Variable | None = None,
    sigma: float | None = None,
) -> Variable:
    """Returns the smooth absolute error, summed for each row."""
    inputs = {"X": x, "Y": y, "InsideWeight": inside_weight, "OutsideWeight": outside_weight}
    layer = Layer("smooth_l1_loss")
    attrs = {"sigma": 1.0 if sigma is None else sigma}
    return layer.calls("smooth_l1_loss", inputs, "Diff Out", attrs)[1]


def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: str = "float32",
    name: str | None = None,
) -> Variable:
    """Returns one-hot labels, mixed with a distribution that is even by default."""
    del dtype
    inputs = {"X": label, "PriorDist": prior_dist}
    found = Layer("label_smooth", name).call("label_smooth", inputs, attrs={"epsilon": epsilon})
    found.stop_gradient = label.stop_gradient
    return found


def one_hot(input: Variable, depth: int, allow_out_of_range: bool = False) -> Variable:
    """Returns vectors with a one at each label; the last axis of ``input`` has length one."""
    attrs = {"depth": depth, "allow_out_of_range": allow_out_of_range, "dtype": code_of("float32")}
    return Layer("one_hot").call("one_hot", {"X": input}, attrs=attrs, stop_gradient=True)


def one_hot_v2(input: Variable, depth: int, allow_out_of_range: bool = False) -> Variable:
    """Returns vectors with a one at each label, as ``fluid.one_hot`` does."""
    attrs = {"depth": depth, "allow_out_of_range": allow_out_of_range, "dtype": code_of("float32")}
    return Layer("one_hot_v2").call("one_hot_v2", {"X": input}, attrs=attrs, stop_gradient=True)


def topk(input: Variable, k: int, name: str | None = None) -> tuple[Variable, Variable]:
    """Returns the largest entries along the last axis, and their indices."""
    values, indices = Layer("top_k", name).calls("top_k", {"X": input}, "Out Indices", {"k": k})
    return values, _integers(indices)


def _integers(variable: Variable, dtype: str = "int64") -> Variable:
    """Returns a variable of Paddle's integers, whose operator here has those of JAX."""
    variable.desc.dtype = dtype_of(dtype)
    variable.stop_gradient = True
    return variable


def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
) -> Variable:
    """Returns the share of rows whose label is among the ``k`` largest entries.

    Raises:
        PaddleError: ``correct`` or ``total`` is given; a program's own outputs are new variables.
    """
    if correct is not None or total is not None:
        raise PaddleError("accuracy: correct and total must be left out, got variables")
    values, indices = topk(input, k)
    inputs = {"Out": values, "Indices": indices, "Label": label}
    outputs = "Accuracy Correct Total"
    found, right, count = Layer("accuracy").calls("accuracy", inputs, outputs, stop_gradient=True)
    _integers(right, "int32")
    _integers(count, "int32")
    return found


def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 4095,
    topk: int = 1,
    slide_steps: int = 1,
) -> tuple[Variable, Variable, list[Variable]]:
    """Returns the area under the ROC curve of all batches so far, and that of the latest ones.

    Args:
        input: probabilities; the last column is that of the class 1.
        label: 0 or 1 for each row.
        curve: the curve, ``"ROC"``.
        num_thresholds: the number of thresholds.
        topk: accepted as in Paddle.
        slide_steps: the number of the latest batches.

    Returns:
        Both areas, and the variables that count: of the latest batches the rows of class 1 and the
        others by threshold, then those of all.
    """
    del topk
    size = num_thresholds + 1
    shapes = [(1 + slide_steps) * size + 1] if slide_steps else [1, size]
    latest, whole = (
        [create_global_var(shape, 0, "int64", persistable=True) for _ in range(2)]
        for shape in (shapes, [1, size])
    )
    layer, areas = Layer("auc"), []
    for (yes, no), steps in ((latest, slide_steps), (whole, 0)):
        inputs = {"Predict": input, "Label": label, "StatPos": yes, "StatNeg": no}
        attrs = {"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps}
        area = layer.block.create_var(unique_name.generate("auc.tmp"), stop_gradient=True)
        outputs: Slots = {"AUC": area, "StatPosOut": yes, "StatNegOut": no}
        layer.block.append_op("auc", inputs, outputs, attrs)
        areas.append(area)
    return areas[1], areas[0], [*latest, *whole]


def argmax(x: Variable, axis: int = 0) -> Variable:
    """Returns the indices of the largest entries along an axis."""
    return _integers(Layer("arg_max").call("arg_max", {"X": x}, attrs={"axis": axis}))


def argmin(x: Variable, axis: int = 0) -> Variable:
    """Returns the indices of the smallest entries along an axis."""
    return _integers(Layer("arg_min").call("arg_min", {"X": x}, attrs={"axis": axis}))


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """Returns sorted entries along an axis, and their indices."""
    attrs = {"axis": axis, "descending": descending}
    found, indices = Layer("argsort", name).calls("argsort", {"X": input}, "Out Indices", attrs)
    return found, _integers(indices)


def isfinite(x: Variable) -> Variable:
    """Returns whether all entries are finite."""
    found = unary("isfinite", x)
    found.stop_gradient = True
    return found
