"""Layers with parameters."""

import math
from collections.abc import Sequence
from typing import Any

from symop.interop.paddle import unique_name
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.programs import Variable
from symop.interop.paddle.static.helper import Layer
from symop.interop.paddle.static.initializer import Constant, Normal
from symop.interop.paddle.static.parameters import ParamAttr, declare


def fc(
    input: Variable | Sequence[Variable],
    size: int,
    num_flatten_dims: int = 1,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Applies a matrix, one for each input, and adds a bias.

    Args:
        input: variables; the axes from ``num_flatten_dims`` on are flattened.
        size: the number of outputs.
        num_flatten_dims: the number of axes that stay.
        param_attr: attributes of the weights, a list if they differ.
        bias_attr: attributes of the bias, False for none.
        act: an activation, by its name.
        name: the name of the layer.
    """
    layer = Layer("fc", name)
    inputs = [input] if isinstance(input, Variable) else list(input)
    attrs = (
        list(param_attr) if isinstance(param_attr, (list, tuple)) else [param_attr] * len(inputs)
    )
    columns = {"x_num_col_dims": num_flatten_dims, "y_num_col_dims": 1}
    parts = []
    for one, attr in zip(inputs, attrs, strict=True):
        width = math.prod(one.shape[num_flatten_dims:])
        weight = layer.weight(attr, [width, size], one.dtype)
        parts.append(layer.call("mul", {"X": one, "Y": weight}, attrs=columns))
    total = parts[0] if len(parts) == 1 else layer.call("sum", {"X": parts})
    return layer.activated(layer.biased(total, bias_attr, num_flatten_dims), act)


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """Returns rows of a table; the last axis of the indices has length one.

    Args:
        input: the indices.
        size: the numbers of rows and columns.
        is_sparse: whether the gradient of the table holds the rows that were read alone.
        is_distributed: accepted as in Paddle.
        padding_idx: an index whose row is zero.
        param_attr: attributes of the table.
        dtype: the dtype of the table.
    """
    return _looked_up(
        "lookup_table", input, size, is_sparse, padding_idx, param_attr, dtype, is_distributed
    )


def embedding_v2(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """Returns rows of a table, one for each index, as ``fluid.embedding`` does."""
    return _looked_up(
        "lookup_table_v2", input, size, is_sparse, padding_idx, param_attr, dtype, is_distributed
    )


def _looked_up(
    kind: str,
    ids: Variable,
    size: Sequence[int],
    is_sparse: bool,
    padding_idx: int | None,
    param_attr: Any,
    dtype: Any,
    is_distributed: bool,
) -> Variable:
    layer = Layer("embedding")
    table = layer.weight(param_attr, size, dtype)
    padding = -1 if padding_idx is None else padding_idx % size[0]
    attrs = {"is_sparse": is_sparse, "padding_idx": padding, "is_distributed": is_distributed}
    return layer.call(kind, {"W": table, "Ids": ids}, attrs=attrs)


def _pair(given: int | Sequence[int]) -> list[int]:
    return [given, given] if isinstance(given, int) else list(given)


def _padding(given: Any) -> tuple[list[int], str]:
    """Returns paddings and the rule that they follow: EXPLICIT, SAME or VALID."""
    return ([0, 0], given.upper()) if isinstance(given, str) else (_pair(given), "EXPLICIT")


def conv2d(
    input: Variable,
    num_filters: int,
    filter_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: Any = 0,
    dilation: int | Sequence[int] = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """Convolves images.

    Args:
        input: the images.
        num_filters: the number of channels of the result.
        filter_size: height and width of the window.
        stride: the steps of the window.
        padding: zeros around images, ``"SAME"`` or ``"VALID"``.
        dilation: the distance of entries within the window.
        groups: the number of groups of channels.
        param_attr: attributes of the filter.
        bias_attr: attributes of the bias, False for none.
        use_cudnn: without it, a convolution of each channel by itself is ``depthwise_conv2d``.
        act: an activation, by its name.
        name: the name of the layer.
        data_format: ``NCHW`` or ``NHWC``.
    """
    channel_axis = 1 if data_format == "NCHW" else 3
    channels = input.shape[channel_axis]
    count = groups or 1
    depthwise = count == channels and num_filters % channels == 0 and not use_cudnn
    kind = "depthwise_conv2d" if depthwise else "conv2d"
    layer = Layer(kind, name)
    window = _pair(filter_size)
    fan = math.prod(window) * channels
    weight = layer.weight(
        param_attr,
        [num_filters, channels // count, *window],
        input.dtype,
        Normal(0.0, math.sqrt(2.0 / fan)),
    )
    paddings, rule = _padding(padding)
    attrs = {
        "strides": _pair(stride),
        "paddings": paddings,
        "padding_algorithm": rule,
        "dilations": _pair(dilation),
        "groups": count,
        "data_format": data_format,
    }
    found = layer.call(kind, {"Input": input, "Filter": weight}, "Output", attrs)
    return layer.activated(layer.biased(found, bias_attr, channel_axis, num_filters), act)


def pool2d(
    input: Variable,
    pool_size: int | Sequence[int] = -1,
    pool_type: str = "max",
    pool_stride: int | Sequence[int] = 1,
    pool_padding: Any = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """Reduces windows of images.

    Args:
        input: the images.
        pool_size: height and width of the window.
        pool_type: ``max`` or ``avg``.
        pool_stride: the steps of the window.
        pool_padding: the padding around images, ``"SAME"`` or ``"VALID"``.
        global_pooling: whether the window is the image.
        use_cudnn: has no effect.
        ceil_mode: whether windows that exceed the image count.
        name: the name of the layer.
        exclusive: whether the padding does not count in means.
        data_format: ``NCHW`` or ``NHWC``.
    """
    del use_cudnn
    paddings, rule = _padding(pool_padding)
    attrs = {
        "pooling_type": pool_type,
        "ksize": _pair(pool_size),
        "global_pooling": global_pooling,
        "strides": _pair(pool_stride),
        "paddings": paddings,
        "padding_algorithm": rule,
        "ceil_mode": ceil_mode,
        "exclusive": exclusive,
        "data_format": data_format,
    }
    return Layer("pool2d", name).call("pool2d", {"X": input}, attrs=attrs)


def batch_norm(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    param_attr: Any = None,
    bias_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
) -> Variable:
    """Normalizes each channel over the batch, and keeps running means and variances."""
    del in_place, do_model_average_for_mean_and_var
    layer = Layer("batch_norm", name)
    width = [input.shape[1 if data_layout == "NCHW" else -1]]
    scale = layer.weight(param_attr, width, input.dtype, Constant(1.0))
    bias = layer.bias(bias_attr, width, input.dtype)
    mean = _running(layer, moving_mean_name, width, input.dtype, 0.0)
    variance = _running(layer, moving_variance_name, width, input.dtype, 1.0)
    attrs = {
        "momentum": momentum,
        "epsilon": epsilon,
        "is_test": is_test,
        "data_layout": data_layout,
        "use_global_stats": use_global_stats,
    }
    inputs = {"X": input, "Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance}
    names = [unique_name.generate(f"{layer.name}.tmp") for _ in range(3)]
    outputs = dict(zip(("SavedMean", "SavedVariance", "Y"), names, strict=True))
    layer.block.append_op(
        "batch_norm", inputs, {**outputs, "MeanOut": mean, "VarianceOut": variance}, attrs
    )
    for one in names[:2]:
        layer.block.var(one).stop_gradient = True
    return layer.activated(layer.block.var(names[2]), act)


def _running(
    layer: Layer, name: str | None, shape: Sequence[int], dtype: Any, value: float
) -> Variable:
    """Declares a running mean or variance, which is no trained parameter."""
    attr = ParamAttr(name=name, trainable=False)
    label = unique_name.generate(f"{layer.name}.w")
    found = declare(attr, label, shape, dtype, Constant(value))
    found.stop_gradient = True
    return found


def layer_norm(
    input: Variable,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-5,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Normalizes over the axes from ``begin_norm_axis`` on."""
    layer = Layer("layer_norm", name)
    width = [math.prod(input.shape[begin_norm_axis:])]
    inputs: dict[str, Variable | None] = {"X": input}
    if scale:
        inputs["Scale"] = layer.weight(param_attr, width, input.dtype, Constant(1.0))
    if shift:
        inputs["Bias"] = layer.bias(bias_attr, width, input.dtype)
    attrs = {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis}
    _, _, found = layer.calls("layer_norm", inputs, "Mean Variance Y", attrs)
    return layer.activated(found, act)


def group_norm(
    input: Variable,
    groups: int,
    epsilon: float = 1e-5,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Normalizes each group of channels of each example; ``False`` leaves a parameter out."""
    layer = Layer("group_norm", name)
    inputs = _gains(layer, input, input.shape[1 if data_layout == "NCHW" else -1],
                    param_attr, bias_attr)  # fmt: skip
    attrs = {"epsilon": epsilon, "groups": groups, "data_layout": data_layout}
    _, _, found = layer.calls("group_norm", inputs, "Mean Variance Y", attrs)
    return layer.activated(found, act)


def instance_norm(
    input: Variable,
    epsilon: float = 1e-5,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> Variable:
    """Normalizes each channel of each example; ``False`` leaves a parameter out."""
    layer = Layer("instance_norm", name)
    inputs = _gains(layer, input, input.shape[1], param_attr, bias_attr)
    _, _, found = layer.calls(
        "instance_norm", inputs, "SavedMean SavedVariance Y", {"epsilon": epsilon}
    )
    return found


def _gains(
    layer: Layer, x: Variable, channels: int, param_attr: Any, bias_attr: Any
) -> dict[str, Variable | None]:
    """The inputs of a normalization by channels."""
    inputs: dict[str, Variable | None] = {"X": x}
    if param_attr is not False:
        inputs["Scale"] = layer.weight(param_attr, [channels], x.dtype, Constant(1.0))
    if bias_attr is not False:
        inputs["Bias"] = layer.bias(bias_attr, [channels], x.dtype)
    return inputs


def prelu(x: Variable, mode: str, param_attr: Any = None, name: str | None = None) -> Variable:
    """Returns the rectifier whose slope for negative entries is learned.

    Args:
        x: the values.
        mode: ``all``, ``channel`` or ``element``: what has a slope of its own.
        param_attr: attributes of the slopes.
        name: the name of the layer.

    Raises:
        PaddleError: the mode is another.
    """
    shapes = {"all": [1], "channel": [1, x.shape[1], 1, 1], "element": [1, *x.shape[1:]]}
    if mode not in shapes:
        raise PaddleError(f"prelu: mode must be all, channel or element, got {mode!r}")
    layer = Layer("prelu", name)
    alpha = layer.weight(param_attr, shapes[mode], x.dtype, Constant(0.25))
    return layer.call("prelu", {"X": x, "Alpha": alpha}, attrs={"mode": mode})


def l2_normalize(
    x: Variable, axis: int, epsilon: float = 1e-12, name: str | None = None
) -> Variable:
    """Divides by the norm along an axis."""
    attrs = {"axis": axis, "epsilon": epsilon}
    return Layer("l2_normalize", name).call("norm", {"X": x}, "Out Norm", attrs)
