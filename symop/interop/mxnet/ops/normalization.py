"""Normalization of examples: by norms, by neighboring channels, and by means and variances."""

from typing import Any, Literal

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.precision import single
from symop.interop.mxnet.partial_shapes import Shapes, enter, like_data

_HIDDEN_GRADIENT = "what flows back to mean and std, if they are put out, is not dropped"


def _one_visible() -> int:
    return 1


def _visible(output_mean_var: bool) -> int:
    return 3 if output_mean_var else 1


@operator(
    "L2Normalization",
    shapes=like_data,
    outputs=lambda: ("output", "norm"),
    visible=_one_visible,
)
def l2_normalization(
    data: Any,
    *,
    eps: float = 1e-10,
    mode: Literal["instance", "spatial", "channel"] = "instance",
) -> Any:
    """Normalizes vectors to length one: examples, channels, or spatial positions."""
    rank = len(data.shape)
    axes = {"instance": range(1, rank), "channel": range(1, 2), "spatial": range(2, rank)}[mode]
    if not axes:
        raise MXNetError(f"L2Normalization: data must have more axes for {mode!r}, got {rank}")
    return so.l2_normalize(data, axis=tuple(axes), eps=single(eps, data))


@operator("LRN", shapes=like_data, outputs=lambda: ("output", "tmp_norm"), visible=_one_visible)
def lrn(
    data: Any, *, nsize: int, alpha: float = 1e-4, beta: float = 0.75, knorm: float = 2.0
) -> Any:
    """Normalizes each channel by its neighbors."""
    if nsize % 2 == 0:
        raise MXNetError(f"LRN: nsize must be odd, got {nsize}")
    return so.local_response_norm(
        data,
        nsize=nsize,
        alpha=single(alpha, data),
        beta=single(beta, data),
        knorm=single(knorm, data),
    )


def _instance_shapes(given: Shapes, found: Shapes) -> None:
    like_data(given, found)
    data = given[0]
    if data is not None:
        for i in (1, 2):
            enter(given, i, data[1:2])
            enter(found, i, data[:2])


@operator(
    "InstanceNorm",
    shapes=_instance_shapes,
    outputs=lambda: ("output", "mean", "var"),
    visible=_one_visible,
)
def instance_norm(data: Any, gamma: Any, beta: Any, *, eps: float = 1e-3) -> Any:
    """Normalizes each channel of each example by its mean and variance."""
    return so.instance_norm(data, gamma, beta, eps=single(eps, data))


def _layer_shapes(given: Shapes, found: Shapes, axis: int) -> None:
    like_data(given, found)
    data = given[0]
    if data is not None:
        at = axis % len(data)
        for i in (1, 2):
            enter(given, i, data[at : at + 1])
            enter(found, i, (*data[:at], 1, *data[at + 1 :]))


@operator(
    "LayerNorm",
    shapes=_layer_shapes,
    outputs=lambda: ("output", "mean", "std"),
    visible=_visible,
    note=_HIDDEN_GRADIENT,
)
def layer_norm(
    data: Any,
    gamma: Any,
    beta: Any,
    *,
    axis: int = -1,
    eps: float = 1e-5,
    output_mean_var: bool = False,
) -> Any:
    """Normalizes along ``axis`` by mean and variance."""
    small = single(eps, data)
    out = so.layer_norm(data, gamma, beta, axis=axis, eps=small)
    if not output_mean_var:
        return out
    mean = so.mean(data, axis=axis, keepdims=True)
    return out, mean, so.sqrt(so.variance(data, axis=axis, keepdims=True) + small)


def _group_shapes(given: Shapes, found: Shapes, num_groups: int) -> None:
    like_data(given, found)
    for i in (1, 2):
        enter(given, i, (num_groups,))
        if given[0] is not None:
            enter(found, i, (given[0][0], num_groups))


@operator(
    "GroupNorm",
    shapes=_group_shapes,
    outputs=lambda: ("output", "mean", "std"),
    visible=_visible,
    note=_HIDDEN_GRADIENT,
)
def group_norm(
    data: Any,
    gamma: Any,
    beta: Any,
    *,
    num_groups: int = 1,
    eps: float = 1e-5,
    output_mean_var: bool = False,
) -> Any:
    """Normalizes groups of channels by mean and variance; gamma and beta are per group."""
    small = single(eps, data)
    each = data.shape[1] // num_groups
    gains, shifts = (so.repeat(one, repeats=each, axis=0) for one in (gamma, beta))
    out = so.group_norm(data, gains, shifts, num_groups=num_groups, eps=small)
    if not output_mean_var:
        return out
    grouped = so.reshape(data, shape=(data.shape[0], num_groups, -1))
    return out, so.mean(grouped, axis=2), so.sqrt(so.variance(grouped, axis=2) + small)
