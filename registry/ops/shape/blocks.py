"""Rearrangement between blocks of pixels and channels of images."""

from typing import Annotated, Literal

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.shapes import promote
from registry.table import op
from registry.types import Shape
from registry.var import Var

# depth_to_space and space_to_depth -------------------------------------------------------------

ImageLayout = Literal["NCHW", "NHWC"]
"""The meaning of each axis of images."""
Depth = Literal["DCR", "CRD"]
"""The order of channels and block entries: block before channel, or channel before block."""
BlockSize = Annotated[int, Check("be positive", lambda value: value > 0)]


def _split_axes(layout: ImageLayout, mode: Depth) -> tuple[str, str]:
    """The axes of images with split channels, and of images with split rows and columns.

    ``r`` and ``s`` are the rows and columns of a block.
    """
    channels = "rsC" if mode == "DCR" else "Crs"
    if layout == "NCHW":
        return f"N{channels}HW", "NCHrWs"
    return f"NHW{channels}", "NHrWsC"


def _lengths(x: Shape, layout: ImageLayout) -> dict[str, int]:
    if len(x) != len(layout):
        raise ShapeError(f"x must have the axes {layout}, got shape {x}")
    return dict(zip(layout, x, strict=True))


def _depth_to_space_shape(x: Shape, *, block_size: int, layout: ImageLayout) -> Shape:
    lengths = _lengths(x, layout)
    if lengths["C"] % block_size**2:
        raise ShapeError(
            f"block_size must be such that {block_size}^2 divides the {lengths['C']} channels, "
            f"got shape {x}"
        )
    lengths["C"] //= block_size**2
    lengths["H"] *= block_size
    lengths["W"] *= block_size
    return tuple(lengths[axis] for axis in layout)


def _space_to_depth_shape(x: Shape, *, block_size: int, layout: ImageLayout) -> Shape:
    lengths = _lengths(x, layout)
    if lengths["H"] % block_size or lengths["W"] % block_size:
        raise ShapeError(f"block_size must divide height and width, got {block_size} for {x}")
    lengths["C"] *= block_size**2
    lengths["H"] //= block_size
    lengths["W"] //= block_size
    return tuple(lengths[axis] for axis in layout)


def _rearranged(x: Array, lengths: dict[str, int], before: str, after: str, shape: Shape) -> Array:
    """``x`` with its axes split as ``before``, permuted to ``after``, and joined to ``shape``."""
    apart = jnp.reshape(x, tuple(lengths[axis] for axis in before))
    return jnp.reshape(jnp.transpose(apart, tuple(map(before.index, after))), shape)


def _moved(
    x: np.ndarray, *, block_size: int, layout: ImageLayout, mode: Depth, back: bool
) -> np.ndarray:
    """Computes ``depth_to_space`` or its inverse entry by entry."""
    shape = (_space_to_depth_shape if back else _depth_to_space_shape)(
        x.shape, block_size=block_size, layout=layout
    )
    out = np.empty(shape, x.dtype)
    deep = x.transpose([layout.index(axis) for axis in "NHWC"])
    wide = out.transpose([layout.index(axis) for axis in "NHWC"])
    if back:
        deep, wide = wide, deep
    channels = wide.shape[-1]
    for row, column, channel in np.ndindex(block_size, block_size, channels):
        block = row * block_size + column
        at = block * channels + channel if mode == "DCR" else channel * block_size**2 + block
        spread = (slice(None), slice(row, None, block_size), slice(column, None, block_size))
        if back:
            deep[..., at] = wide[(*spread, channel)]
        else:
            wide[(*spread, channel)] = deep[..., at]
    return out


def _depth_to_space_reference(
    x: np.ndarray, *, block_size: int, layout: ImageLayout = "NCHW", mode: Depth = "DCR"
) -> np.ndarray:
    return _moved(x, block_size=block_size, layout=layout, mode=mode, back=False)


def _space_to_depth_reference(
    x: np.ndarray, *, block_size: int, layout: ImageLayout = "NCHW", mode: Depth = "DCR"
) -> np.ndarray:
    return _moved(x, block_size=block_size, layout=layout, mode=mode, back=True)


@op(
    rearranges=True,
    shape=_depth_to_space_shape,
    dtype=promote,
    reference=_depth_to_space_reference,
    cases=[
        case(x=(2, 8, 2, 3), block_size=2),
        case(x=(1, 8, 2, 1), block_size=2, mode="CRD"),
        case(x=(1, 2, 1, 8), block_size=2, layout="NHWC"),
        case(x=(1, 2, 1, 8), block_size=2, layout="NHWC", mode="CRD"),
        case(x=(0, 4, 2, 2), block_size=2),
        case(x=integers(1, 4, 1, 1, high=9), block_size=2),
        workload(x=(8, 64, 64, 64), block_size=2),
        misuse("2^2 divides the 6 channels", x=(1, 6, 2, 2), block_size=2),
        misuse("x must have the axes NCHW, got shape (4, 2, 2)", x=(4, 2, 2), block_size=2),
        misuse("must be positive, got 0", x=(1, 4, 2, 2), block_size=0),
    ],
)
def depth_to_space(
    x: Array,
    *,
    block_size: BlockSize,
    layout: Literal["NCHW", "NHWC"] = "NCHW",
    mode: Literal["DCR", "CRD"] = "DCR",
) -> Array:
    """Rearranges channels of images into blocks of ``block_size * block_size`` pixels.

    ``b^2 C`` channels of height H and width W become C channels of height ``b H`` and width
    ``b W``: ``out[n, c, b h + r, b w + s] = x[n, (b r + s) C + c, h, w]`` with ``DCR``, where the
    channels of a block are strided, and ``x[n, c b^2 + b r + s, h, w]`` with ``CRD``, where they
    are contiguous (a pixel shuffle). This is the inverse of ``space_to_depth``.

    Source: ONNX, operator DepthToSpace.

    Example:
        >>> import jax.numpy as jnp
        >>> depth_to_space(jnp.arange(4).reshape(1, 4, 1, 1), block_size=2)
        Array([[[[0, 1],
                 [2, 3]]]], dtype=int32)
    """
    shape = _depth_to_space_shape(jnp.shape(x), block_size=block_size, layout=layout)
    lengths = {**_lengths(shape, layout), "r": block_size, "s": block_size}
    lengths["H"] //= block_size
    lengths["W"] //= block_size
    deep, wide = _split_axes(layout, mode)
    return _rearranged(x, lengths, deep, wide, shape)


@op(
    rearranges=True,
    shape=_space_to_depth_shape,
    dtype=promote,
    reference=_space_to_depth_reference,
    cases=[
        case(x=(2, 2, 4, 6), block_size=2),
        case(x=(1, 2, 4, 2), block_size=2, mode="CRD"),
        case(x=(1, 4, 2, 2), block_size=2, layout="NHWC"),
        case(x=(1, 4, 2, 2), block_size=2, layout="NHWC", mode="CRD"),
        case(x=(0, 1, 2, 2), block_size=2),
        case(x=integers(1, 1, 2, 2, high=9), block_size=2),
        workload(x=(8, 16, 128, 128), block_size=2),
        misuse(
            "block_size must divide height and width, got 2 for (1, 1, 3, 2)",
            x=(1, 1, 3, 2),
            block_size=2,
        ),
        misuse("x must have the axes NCHW, got shape (4, 2, 2)", x=(4, 2, 2), block_size=2),
        misuse("must be positive, got -1", x=(1, 4, 2, 2), block_size=-1),
    ],
)
def space_to_depth(
    x: Array,
    *,
    block_size: BlockSize,
    layout: Literal["NCHW", "NHWC"] = "NCHW",
    mode: Literal["DCR", "CRD"] = "DCR",
) -> Array:
    """Rearranges blocks of ``block_size * block_size`` pixels of images into channels.

    This is the inverse of ``depth_to_space`` with the same attributes.

    Source: ONNX, operator SpaceToDepth.

    Example:
        >>> import jax.numpy as jnp
        >>> space_to_depth(jnp.arange(4).reshape(1, 1, 2, 2), block_size=2).ravel()
        Array([0, 1, 2, 3], dtype=int32)
    """
    shape = _space_to_depth_shape(jnp.shape(x), block_size=block_size, layout=layout)
    lengths = {**_lengths(shape, layout), "r": block_size, "s": block_size}
    lengths["C"] //= block_size**2
    deep, wide = _split_axes(layout, mode)
    return _rearranged(x, lengths, wide, deep, shape)


@depth_to_space.gradient
def _depth_to_space_gradient(
    d_out: Var, *, block_size: int, layout: ImageLayout, mode: Depth
) -> Grads:
    return {"x": space_to_depth(d_out, block_size=block_size, layout=layout, mode=mode)}


@space_to_depth.gradient
def _space_to_depth_gradient(
    d_out: Var, *, block_size: int, layout: ImageLayout, mode: Depth
) -> Grads:
    return {"x": depth_to_space(d_out, block_size=block_size, layout=layout, mode=mode)}
