"""``mx.model``: checkpoint files, and FeedForward models."""

from symop.interop.mxnet.feed_forward import FeedForward
from symop.interop.mxnet.model_files import (
    BatchEndParam,
    Params,
    load_arrays,
    load_checkpoint,
    load_params,
    save_arrays,
    save_checkpoint,
)

__all__ = [
    "BatchEndParam",
    "FeedForward",
    "Params",
    "load_arrays",
    "load_checkpoint",
    "load_params",
    "save_arrays",
    "save_checkpoint",
]
