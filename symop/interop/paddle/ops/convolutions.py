"""Convolutions over one to three spatial axes."""

from collections.abc import Sequence
from typing import Any

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import operator

Pairs = tuple[tuple[int, int], ...]

_FUSED = (
    "is_test fuse_relu fuse_brelu fuse_brelu_threshold fuse_activation fuse_alpha fuse_beta "
    "fuse_residual_connection Scale_in Scale_in_eltwise Scale_weights "
    "use_quantizer workspace_size_MB force_fp32_output"
)


def channels_last(data_format: str) -> bool:
    """Returns whether the last axis holds the channels."""
    return data_format.endswith("C")


def layout_of(data_format: str, ndim: int) -> Any:
    """Returns the catalogue's name of the order of axes."""
    spatial = "DHW"[5 - ndim :]
    return f"N{spatial}C" if channels_last(data_format) else f"NC{spatial}"


def spatial_lengths(x: Any, data_format: str) -> tuple[int, ...]:
    """Returns the lengths of the spatial axes."""
    return tuple(x.shape[1:-1] if channels_last(data_format) else x.shape[2:])


def padding_pairs(
    name: str,
    paddings: Sequence[int],
    algorithm: str,
    lengths: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
) -> Pairs:
    """Returns the padding before and after each spatial axis.

    Args:
        name: the operator, for errors.
        paddings: a number for each axis, or a pair for each axis.
        algorithm: EXPLICIT, SAME (an output of length / stride, rounded up) or VALID (none).
        lengths: the lengths of the input.
        kernel: the lengths of the window.
        strides: the steps of the window.

    Raises:
        PaddleError: the padding fits no algorithm or not the axes.
    """
    if algorithm == "VALID":
        return tuple((0, 0) for _ in lengths)
    if algorithm == "SAME":
        return tuple(map(_same, lengths, kernel, strides))
    if algorithm != "EXPLICIT":
        raise PaddleError(
            f"{name}: padding_algorithm must be EXPLICIT, SAME or VALID, got {algorithm!r}"
        )
    if len(paddings) == len(lengths):
        return tuple((one, one) for one in paddings)
    if len(paddings) == 2 * len(lengths):
        return tuple(zip(paddings[::2], paddings[1::2], strict=True))
    raise PaddleError(
        f"{name}: paddings must be {len(lengths)} or {2 * len(lengths)} numbers, "
        f"got {list(paddings)}"
    )


def _same(length: int, window: int, stride: int) -> tuple[int, int]:
    total = max((-(-length // stride) - 1) * stride + window - length, 0)
    return total // 2, total - total // 2


def _convolution(count: int, *types: str, data_format: str) -> None:
    """Defines convolutions over a number of spatial axes."""
    layout = data_format

    @operator(*types, outputs="Output", ignored=_FUSED, no_gradient="ResidualData")
    def composed(
        Input: Any,
        Filter: Any,
        Bias: Any = None,
        ResidualData: Any = None,
        *,
        strides: Sequence[int] = (1,) * count,
        paddings: Sequence[int] = (0,) * count,
        padding_algorithm: str = "EXPLICIT",
        groups: int = 1,
        dilations: Sequence[int] = (1,) * count,
        data_format: str = layout,
    ) -> Any:
        result = convolved(
            Input, Filter, strides, paddings, padding_algorithm, groups, dilations, data_format
        )
        return result if Bias is None else result + per_channel(Bias, data_format, Input.ndim)


_convolution(2, "conv2d", "depthwise_conv2d", data_format="NCHW")
_convolution(3, "conv3d", data_format="NCDHW")


def convolved(
    Input: Any,
    Filter: Any,
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    groups: int,
    dilations: Sequence[int],
    data_format: str,
) -> Any:
    """Returns a convolution with Paddle's attributes."""
    kernel = Filter.shape[2:]
    lengths = spatial_lengths(Input, data_format)
    pairs = padding_pairs("conv2d", paddings, padding_algorithm, lengths, kernel, strides)
    once = padding_algorithm == "SAME"  # Paddle then ignores dilations.
    return so.convolution(
        Input,
        Filter,
        channels=Filter.shape[0],
        kernel=kernel,
        stride=tuple(strides),
        padding=pairs,
        dilation=1 if once else tuple(dilations),
        groups=groups,
        layout=layout_of(data_format, Input.ndim),
        use_bias=False,
    )


def per_channel(bias: Any, data_format: str, ndim: int) -> Any:
    """Returns a vector so that it lies along the channels."""
    after = 0 if channels_last(data_format) else ndim - 2
    return so.reshape(bias, shape=(-1, *(1 for _ in range(after))))


def _transposed_convolution(count: int, *types: str) -> None:
    """Defines transposed convolutions over a number of spatial axes."""

    @operator(*types, outputs="Output", ignored=_FUSED, no_gradient="output_size")
    def composed(
        Input: Any,
        Filter: Any,
        Bias: Any = None,
        *,
        strides: Sequence[int] = (1,) * count,
        paddings: Sequence[int] = (0,) * count,
        padding_algorithm: str = "EXPLICIT",
        output_padding: Sequence[int] = (),
        output_size: Sequence[int] = (),
        groups: int = 1,
        dilations: Sequence[int] = (1,) * count,
        data_format: str = "NCHW",
    ) -> Any:
        sizes = tuple(output_padding), tuple(output_size)
        result = _transposed(
            Input,
            Filter,
            strides,
            paddings,
            padding_algorithm,
            sizes,
            groups,
            dilations,
            data_format,
        )
        return result if Bias is None else result + per_channel(Bias, data_format, Input.ndim)


_transposed_convolution(2, "conv2d_transpose", "depthwise_conv2d_transpose")
_transposed_convolution(3, "conv3d_transpose")


def _transposed(
    Input: Any,
    Filter: Any,
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    sizes: tuple[tuple[int, ...], tuple[int, ...]],
    groups: int,
    dilations: Sequence[int],
    data_format: str,
) -> Any:
    """Returns a transposed convolution; ``sizes`` are more padding and the size of the output."""
    kernel = Filter.shape[2:]
    lengths = spatial_lengths(Input, data_format)
    pairs = padding_pairs("conv2d_transpose", paddings, padding_algorithm, lengths, kernel, strides)
    dilations = (1,) * len(kernel) if padding_algorithm == "SAME" else tuple(dilations)
    output_padding, output_size = sizes
    extra = output_padding or (0,) * len(kernel)
    if output_size:
        least = [
            (n - 1) * stride - sum(pad) + dilation * (k - 1) + 1
            for n, stride, pad, dilation, k in zip(
                lengths, strides, pairs, dilations, kernel, strict=True
            )
        ]
        extra = tuple(n - m for n, m in zip(output_size, least, strict=True))
    return so.transposed_convolution(
        Input,
        Filter,
        channels=Filter.shape[1] * groups,
        kernel=kernel,
        stride=tuple(strides),
        padding=pairs,
        output_padding=extra,
        dilation=dilations,
        groups=groups,
        layout=layout_of(data_format, Input.ndim),
        use_bias=False,
    )
