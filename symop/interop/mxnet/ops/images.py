"""Preparation of images: conversion of pixels, and normalization of channels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import constant
from symop.interop.mxnet.partial_shapes import Shapes, enter, like_data


def _tensor_shapes(given: Shapes, found: Shapes) -> None:
    if given[0] is not None and len(given[0]) in (3, 4):
        *rows, height, width, channels = given[0]
        enter(found, 0, (*rows, channels, height, width))


def _require_images(what: str, data: Any) -> None:
    if len(data.shape) not in (3, 4):
        raise MXNetError(f"{what}: data must be images, with 3 or 4 axes, got {data.shape}")


@operator("_image_to_tensor", shapes=_tensor_shapes, dtypes="free")
def to_tensor(data: Any) -> Any:
    """Images of pixels from 0 to 255, channels last, as numbers from 0 to 1, channels first."""
    _require_images("_image_to_tensor", data)
    count = len(data.shape)
    order = (*range(count - 3), count - 1, count - 3, count - 2)
    return so.divide(so.cast(so.transpose(data, axes=order), dtype="float32"), 255.0)


def _per_channel(what: str, data: Any, numbers: Sequence[float]) -> Any:
    """Numbers, one for each channel or one for all, for channels before two axes."""
    count = data.shape[-3]
    if len(numbers) not in (1, count):
        raise MXNetError(f"{what} must be 1 number or {count}, one a channel, got {len(numbers)}")
    return constant(np.array(numbers, data.dtype).reshape(-1, 1, 1), data)


@operator("_image_normalize", shapes=like_data)
def normalize(
    data: Any, *, mean: tuple[float, ...] = (0.0,), std: tuple[float, ...] = (1.0,)
) -> Any:
    """Images with channels first, less a mean and divided by a deviation for each channel."""
    _require_images("_image_normalize", data)
    moved = so.subtract(data, _per_channel("_image_normalize: mean", data, mean))
    return so.divide(moved, _per_channel("_image_normalize: std", data, std))
