"""The layers of ``paddle.static.nn``, under Paddle 2's names of arguments."""

from collections.abc import Sequence
from typing import Any

from symop.interop.paddle.programs import Variable
from symop.interop.paddle.static import layers
from symop.interop.paddle.static.layers import (
    batch_norm,
    case,
    cond,
    conv2d,
    layer_norm,
    prelu,
    sequence_concat,
    sequence_conv,
    sequence_expand,
    sequence_expand_as,
    sequence_first_step,
    sequence_last_step,
    sequence_pad,
    sequence_pool,
    sequence_reverse,
    sequence_softmax,
    sequence_unpad,
    switch_case,
    while_loop,
)
from symop.interop.paddle.static.layers.networks import embedding_v2 as embedding
from symop.interop.paddle.static.missing import raise_missing

__all__ = [
    "batch_norm",
    "case",
    "cond",
    "conv2d",
    "embedding",
    "fc",
    "layer_norm",
    "prelu",
    "sequence_concat",
    "sequence_conv",
    "sequence_expand",
    "sequence_expand_as",
    "sequence_first_step",
    "sequence_last_step",
    "sequence_pad",
    "sequence_pool",
    "sequence_reverse",
    "sequence_softmax",
    "sequence_unpad",
    "switch_case",
    "while_loop",
]


def fc(
    x: Variable | Sequence[Variable],
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    activation: str | None = None,
    name: str | None = None,
) -> Variable:
    """Applies a matrix and adds a bias; see ``layers.fc``."""
    return layers.fc(x, size, num_flatten_dims, weight_attr, bias_attr, activation, name)


def __getattr__(name: str) -> Any:
    raise_missing(__name__, name)
