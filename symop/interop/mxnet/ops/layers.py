"""Layers with weights: fully connected layers, convolutions, deconvolutions, embeddings."""

from typing import Any, Literal

import symop as so
from registry.shapes import canonical
from registry.types import as_dtype
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.indexing import whole
from symop.interop.mxnet.partial_dtypes import Dtypes, agreed
from symop.interop.mxnet.partial_shapes import Partial, Shapes, enter, product

Lengths = tuple[int, ...]
Layout = Literal["NCW", "NCHW", "NCDHW", "NHWC", "NDHWC"]
TUNING = ("workspace", "cudnn_tune", "cudnn_off")


def with_bias(no_bias: bool) -> tuple[str, ...]:
    """The inputs of a layer with an optional bias."""
    return ("data", "weight") if no_bias else ("data", "weight", "bias")


def along(lengths: Lengths, count: int, default: int) -> Lengths:
    """One number for each of ``count`` spatial axes.

    Raises:
        MXNetError: the number of ``lengths`` differs.
    """
    if lengths and len(lengths) != count:
        raise MXNetError(f"there must be {count} numbers, one for each axis, got {lengths}")
    return lengths or (default,) * count


# Fully connected -------------------------------------------------------------------------------


def _fully_connected_shapes(given: Shapes, found: Shapes, num_hidden: int, flatten: bool) -> None:
    if num_hidden < 1:
        raise MXNetError(f"num_hidden must be at least 1, got {num_hidden}")
    out = found[0]
    if out is not None and not flatten:
        enter(given, 0, (*out[:-1], 0))
    data = given[0]
    if data is None:
        return
    enter(given, 2, (num_hidden,))
    enter(given, 1, (num_hidden, product(data[1:]) if flatten else data[-1]))
    enter(found, 0, (data[0], num_hidden) if flatten else (*data[:-1], num_hidden))
    if flatten and found[0] is not None:
        enter(given, 0, (found[0][0], *data[1:]))


@operator("FullyConnected", present=with_bias, shapes=_fully_connected_shapes)
def fully_connected(
    data: Any,
    weight: Any,
    bias: Any = None,
    *,
    num_hidden: int,
    no_bias: bool = False,
    flatten: bool = True,
) -> Any:
    """``data @ weight.T + bias``."""
    if bias is not None and len(bias.shape) != 1:
        bias = so.reshape(bias, shape=(-1,))
    if flatten and len(data.shape) == 1:
        data = so.reshape(data, shape=(*data.shape, 1))
    return so.fully_connected(
        data, weight, bias, units=num_hidden, use_bias=not no_bias, flatten=flatten
    )


# Convolution -----------------------------------------------------------------------------------


def _is_last(layout: str | None) -> bool:
    return layout is not None and layout.endswith("C")


def _to_first(shape: Lengths, layout: str | None) -> Lengths:
    """A channels-last shape as a channels-first shape."""
    return (shape[0], shape[-1], *shape[1:-1]) if _is_last(layout) else shape


def _from_first(shape: Lengths, layout: str | None) -> Lengths:
    return (shape[0], *shape[2:], shape[1]) if _is_last(layout) else shape


def _weight_first(weight: Any, layout: str | None) -> Any:
    """A weight of any layout in channels-first layout."""
    return so.moveaxis(weight, source=-1, destination=1) if _is_last(layout) else weight


def convolved_shapes(
    given: Shapes,
    found: Shapes,
    kernel: Lengths,
    num_filter: int,
    stride: Lengths,
    dilate: Lengths,
    pad: Lengths,
    num_group: int,
    layout: str | None = None,
    weight_at: int = 1,
) -> None:
    """Infers shapes of data, weights and result of a convolution from each other."""
    enter(given, weight_at + 1, (num_filter,))
    if given[0] is None:
        return
    count = len(kernel)
    if len(given[0]) != 2 + count:
        raise MXNetError(f"data must have {2 + count} axes, as kernel says, got {given[0]}")
    data = _to_first(given[0], layout)
    enter(given, weight_at, _from_first((num_filter, data[1] // num_group, *kernel), layout))
    steps, pads = along(stride, count, 1), along(pad, count, 0)
    reach = [(k - 1) * d for k, d in zip(kernel, along(dilate, count, 1), strict=True)]
    places = [
        (n + 2 * p - r - 1) // s + 1 if n else 0
        for n, p, r, s in zip(data[2:], pads, reach, steps, strict=True)
    ]
    enter(found, 0, _from_first((data[0], num_filter, *places), layout))
    assert found[0] is not None
    out = _to_first(found[0], layout)
    lengths = [
        n or (m + r - 2 * p if m and s == 1 else 0)
        for n, m, p, r, s in zip(data[2:], out[2:], pads, reach, steps, strict=True)
    ]
    enter(given, 0, _from_first((out[0], data[1], *lengths), layout))


def _convolution_shapes(
    given: Shapes,
    found: Shapes,
    kernel: Lengths,
    num_filter: int,
    stride: Lengths,
    dilate: Lengths,
    pad: Lengths,
    num_group: int,
    layout: str | None,
) -> None:
    convolved_shapes(given, found, kernel, num_filter, stride, dilate, pad, num_group, layout)


@operator(
    "Convolution", "Convolution_v1", present=with_bias, shapes=_convolution_shapes, ignored=TUNING
)
def convolution(
    data: Any,
    weight: Any,
    bias: Any = None,
    *,
    kernel: Lengths,
    num_filter: int,
    stride: Lengths = (),
    dilate: Lengths = (),
    pad: Lengths = (),
    num_group: int = 1,
    no_bias: bool = False,
    layout: Layout | None = None,
) -> Any:
    """Cross-correlation with ``weight``, plus ``bias``."""
    count = len(kernel)
    return so.convolution(
        data,
        _weight_first(weight, layout),
        bias,
        channels=num_filter,
        kernel=kernel,
        stride=along(stride, count, 1),
        dilation=along(dilate, count, 1),
        padding=along(pad, count, 0),
        groups=num_group,
        layout=layout,
        use_bias=not no_bias,
    )


# Deconvolution ---------------------------------------------------------------------------------


def _margins(
    lengths: Lengths,
    kernel: Lengths,
    stride: Lengths,
    dilate: Lengths,
    pad: Lengths,
    adj: Lengths,
    target_shape: Lengths,
) -> tuple[Lengths, Lengths]:
    """The lengths cropped on both sides and added at the end, along each axis."""
    count = len(kernel)
    if not any(target_shape):
        return along(pad, count, 0), along(adj, count, 0)
    cut, added = [], []
    for n, k, s, d, wanted in zip(
        lengths,
        kernel,
        along(stride, count, 1),
        along(dilate, count, 1),
        along(target_shape, count, 0),
        strict=True,
    ):
        surplus = (n - 1) * s + (k - 1) * d + 1 - wanted
        if surplus < 0:
            raise MXNetError(
                f"Deconvolution: target_shape must be at most {surplus + wanted}, got {wanted}"
            )
        cut.append((surplus + 1) // 2)
        added.append(surplus % 2)
    return tuple(cut), tuple(added)


def _deconvolution_shapes(
    given: Shapes,
    found: Shapes,
    kernel: Lengths,
    num_filter: int,
    stride: Lengths,
    dilate: Lengths,
    pad: Lengths,
    adj: Lengths,
    target_shape: Lengths,
    num_group: int,
    layout: str | None,
) -> None:
    enter(given, 2, (num_filter,))
    if given[0] is None:
        return
    data, count = _to_first(given[0], layout), len(kernel)
    enter(given, 1, _from_first((data[1], num_filter // num_group, *kernel), layout))
    lengths: Lengths = (0,) * count
    if all(data[2:]):
        cut, added = _margins(data[2:], kernel, stride, dilate, pad, adj, target_shape)
        steps, taps = along(stride, count, 1), along(dilate, count, 1)
        lengths = tuple(
            (n - 1) * steps[i] + (kernel[i] - 1) * taps[i] + 1 - 2 * cut[i] + added[i]
            for i, n in enumerate(data[2:])
        )
    enter(found, 0, _from_first((data[0], num_filter, *lengths), layout))
    assert found[0] is not None
    enter(given, 0, (found[0][0], *given[0][1:]))


@operator("Deconvolution", present=with_bias, shapes=_deconvolution_shapes, ignored=TUNING)
def deconvolution(
    data: Any,
    weight: Any,
    bias: Any = None,
    *,
    kernel: Lengths,
    num_filter: int,
    stride: Lengths = (),
    dilate: Lengths = (),
    pad: Lengths = (),
    adj: Lengths = (),
    target_shape: Lengths = (),
    num_group: int = 1,
    no_bias: bool = True,
    layout: Layout | None = None,
) -> Any:
    """The adjoint of a convolution, plus ``bias``."""
    count = len(kernel)
    cut, added = _margins(
        _to_first(data.shape, layout)[2:], kernel, stride, dilate, pad, adj, target_shape
    )
    return so.transposed_convolution(
        data,
        _weight_first(weight, layout),
        bias,
        channels=num_filter,
        kernel=kernel,
        stride=along(stride, count, 1),
        padding=cut,
        output_padding=added,
        dilation=along(dilate, count, 1),
        groups=num_group,
        layout=layout,
        use_bias=not no_bias,
    )


# Embedding -------------------------------------------------------------------------------------


def _embedding_shapes(given: Shapes, found: Shapes, input_dim: int, output_dim: int) -> None:
    enter(given, 1, (input_dim, output_dim))
    out: Partial = found[0]
    if out is not None:
        enter(given, 0, out[:-1])
    if given[0] is not None:
        enter(found, 0, (*given[0], output_dim))


def _embedding_dtypes(given: Dtypes, found: Dtypes, dtype: str) -> None:
    own = agreed((given[1], found[0]))
    given[1] = found[0] = canonical(as_dtype(dtype)) if own is None else own


@operator("Embedding", "_sparse_Embedding", shapes=_embedding_shapes, dtypes=_embedding_dtypes)
def embedding(
    data: Any,
    weight: Any,
    *,
    input_dim: int,
    output_dim: int,
    dtype: str = "float32",
    sparse_grad: bool = False,
) -> Any:
    """The rows ``data`` of ``weight``; indices are clipped to the valid range."""
    del input_dim, output_dim, dtype, sparse_grad  # the weight's own; of sparse storage
    return so.take(weight, whole(data), axis=0, mode="clip")


@operator(
    "_contrib_SparseEmbedding",
    shapes=_embedding_shapes,
    dtypes=_embedding_dtypes,
    ignored=("deterministic",),
)
def sparse_embedding(
    data: Any, weight: Any, *, input_dim: int, output_dim: int, dtype: str = "float32"
) -> Any:
    """``Embedding`` whose gradient stores the rows that were looked up."""
    return embedding(data, weight, input_dim=input_dim, output_dim=output_dim, dtype=dtype)
