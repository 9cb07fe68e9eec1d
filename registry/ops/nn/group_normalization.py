"""Normalization to mean zero and variance one by groups of channels, or by channel."""

from typing import Any

import numpy as np

from registry.cases import case, misuse, workload
from registry.errors import AttributeValueError
from registry.operator.operator import Grads
from registry.operator.signature import Array, Bias, Gain
from registry.ops.core.reductions import kept
from registry.ops.nn.normalization import (
    Statistics,
    Three,
    completed,
    ones_but,
    standardized,
    standardized_gradient,
    standardized_reference,
    with_features,
    with_statistics,
)
from registry.shapes import normalize_axis
from registry.table import op
from registry.types import Shape
from registry.var import Var

# Shared arguments -------------------------------------------------------------------------------


def _over_groups(
    data: Shape, *, axis: int, num_groups: int | None = None, **others: Any
) -> Statistics:
    """Statistics for each example and group of channels; None makes each channel a group."""
    del others
    at = normalize_axis(axis, len(data))
    if at == 0:
        raise AttributeValueError(f"axis must be behind the batch axis, got {axis}")
    channels = data[at]
    groups = channels if num_groups is None else num_groups
    if (groups < 1 and num_groups is not None) or (groups and channels % groups):
        raise AttributeValueError(
            f"num_groups must divide the {channels} channels of data, got {num_groups}"
        )
    each = (groups, channels // groups) if groups else (0, 1)
    common = tuple(i for i in range(len(data)) if i not in (0, at))
    summed = kept(data, common)
    parts = (*summed[:at], *each, *summed[at + 1 :])
    return Statistics(common, parts, (at + 1,), ones_but(data, (at,)), (channels,))


def _grouped_shape(data: Shape, gamma: Shape | None, beta: Shape | None, **how: Any) -> Three:
    return with_features(data, gamma, beta, _over_groups(data, **how))


def _grouped_gradient(
    data: Var,
    gamma: Var | None,
    beta: Var | None,
    mean: Var,
    rstd: Var,
    d_out: Var,
    d_mean: Var | None,
    d_rstd: Var | None,
    **how: Any,
) -> Grads:
    over = _over_groups(data.shape, **how)
    return standardized_gradient((data, gamma, beta), (mean, rstd), d_out, (d_mean, d_rstd), over)


def _grouped_complete(
    data: Shape | None, *, axis: int, use_gamma: bool, use_beta: bool
) -> dict[str, Shape]:
    if data is None:
        return {}
    features = (data[normalize_axis(axis, len(data))],)
    return completed(features, gamma=use_gamma, beta=use_beta)


# group_norm ------------------------------------------------------------------------------------


def _group_norm_reference(
    data: np.ndarray,
    gamma: np.ndarray | None,
    beta: np.ndarray | None,
    *,
    num_groups: int,
    axis: int,
    eps: float,
    **_: Any,
) -> np.ndarray:
    x = np.moveaxis(data, axis, 1)
    parts = x.reshape(x.shape[0], num_groups, -1) if x.size else x
    out = standardized_reference(parts, None, None, -1, eps).reshape(x.shape)
    out = np.moveaxis(out, 1, -1)
    out = out * (1 if gamma is None else gamma) + (0 if beta is None else beta)
    return np.moveaxis(out, -1, axis)


@op(
    shape=_grouped_shape,
    dtype=with_statistics,
    reference=_group_norm_reference,
    outputs=("out", "mean", "rstd"),
    hidden=("mean", "rstd"),
    cases=[
        case(data=(2, 4, 3), gamma=(4,), beta=(4,), num_groups=2, order=2, rtol=512),
        case(
            data=(2, 2, 2, 6),
            gamma=(6,),
            beta=(6,),
            num_groups=3,
            axis=-1,
            eps=0.1,
            order=1,
            rtol=512,
        ),
        case(data=(2, 4), gamma=(4,), num_groups=1, use_beta=False, order=1, rtol=512),
        case(data=(2, 4), use_gamma=False, use_beta=False, num_groups=2, order=1, rtol=512),
        case(data=(0, 4, 3), gamma=(4,), beta=(4,), num_groups=2, order=1),
        case(data=(1, 2, 2), gamma=(2,), beta=(2,), num_groups=1, rtol=512),
        workload(data=(16, 64, 32, 32), gamma=(64,), beta=(64,), num_groups=8),
        misuse(
            "num_groups must divide the 4 channels of data, got 3",
            data=(2, 4, 3),
            gamma=(4,),
            beta=(4,),
            num_groups=3,
        ),
        misuse(
            "axis must be behind the batch axis, got 0",
            data=(2, 4),
            gamma=(4,),
            beta=(4,),
            num_groups=2,
            axis=0,
        ),
        misuse(
            "beta must have shape (4,) for data of (2, 4, 3), got (2,)",
            data=(2, 4, 3),
            gamma=(4,),
            beta=(2,),
            num_groups=2,
        ),
    ],
)
def group_norm(
    data: Array,
    gamma: Gain | None = None,
    beta: Bias | None = None,
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-5,
    use_gamma: bool = True,
    use_beta: bool = True,
) -> tuple[Array, Array, Array]:
    """Group normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per group.

    The channels along ``axis`` are divided into ``num_groups`` contiguous groups. For each example
    and group, the mean and the biased variance are taken over its channels and all axes but the
    first. ``gamma`` and ``beta`` hold one number per channel. (MXNet's hold one per group: repeat
    them.) Statistics are computed in at least float32; the result has the dtype of ``data``.

    Source: Wu and He, Group normalization, 2018.

    Example:
        >>> import jax.numpy as jnp
        >>> data = jnp.asarray([[1.0, 3.0, 5.0, 9.0]])
        >>> group_norm(data, jnp.ones(4), jnp.zeros(4), num_groups=2, eps=0.0)
        Array([[-1.,  1., -1.,  1.]], dtype=float32)
    """
    del use_gamma, use_beta
    return standardized(
        data, gamma, beta, _over_groups(data.shape, axis=axis, num_groups=num_groups), eps
    )


group_norm.gradient(_grouped_gradient)
group_norm.complete(_grouped_complete)


# instance_norm ---------------------------------------------------------------------------------


def _instance_norm_reference(
    data: np.ndarray,
    gamma: np.ndarray | None,
    beta: np.ndarray | None,
    *,
    axis: int,
    eps: float,
    **_: Any,
) -> np.ndarray:
    each = data.shape[axis]
    return _group_norm_reference(data, gamma, beta, num_groups=each, axis=axis, eps=eps)


@op(
    shape=_grouped_shape,
    dtype=with_statistics,
    reference=_instance_norm_reference,
    outputs=("out", "mean", "rstd"),
    hidden=("mean", "rstd"),
    cases=[
        case(data=(2, 3, 4), gamma=(3,), beta=(3,), order=2, rtol=512),
        case(data=(2, 2, 3, 2), gamma=(2,), beta=(2,), axis=-1, eps=0.1, order=1, rtol=512),
        case(data=(2, 3, 4), beta=(3,), use_gamma=False, order=1, rtol=512),
        case(data=(2, 3, 4), gamma=(3,), use_beta=False, order=1, rtol=512),
        case(data=(2, 0, 4), gamma=(0,), beta=(0,), order=1),
        case(data=(1, 2, 3), gamma=(2,), beta=(2,), rtol=512),
        workload(data=(16, 64, 32, 32), gamma=(64,), beta=(64,)),
        misuse(
            "gamma must have shape (3,) for data of (2, 3, 4), got (4,)",
            data=(2, 3, 4),
            gamma=(4,),
            beta=(3,),
        ),
        misuse(
            "axis must be behind the batch axis, got -2",
            data=(2, 4),
            gamma=(4,),
            beta=(4,),
            axis=-2,
        ),
    ],
)
def instance_norm(
    data: Array,
    gamma: Gain | None = None,
    beta: Bias | None = None,
    *,
    axis: int = 1,
    eps: float = 1e-5,
    use_gamma: bool = True,
    use_beta: bool = True,
) -> tuple[Array, Array, Array]:
    """Instance normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per channel.

    For each example and channel, the mean and the biased variance are taken over all axes but the
    first and ``axis``, the axis of the channels; ``gamma`` and ``beta`` hold one number per
    channel. Statistics are computed in at least float32; the result has the dtype of ``data``.

    Source: Ulyanov, Vedaldi and Lempitsky, Instance normalization: the missing ingredient for fast
    stylization, 2016.

    Example:
        >>> import jax.numpy as jnp
        >>> data = jnp.asarray([[[1.0, 3.0], [5.0, 9.0]]])
        >>> instance_norm(data, jnp.ones(2), jnp.zeros(2), eps=0.0)
        Array([[[-1.,  1.],
                [-1.,  1.]]], dtype=float32)
    """
    del use_gamma, use_beta
    return standardized(data, gamma, beta, _over_groups(data.shape, axis=axis), eps)


instance_norm.gradient(_grouped_gradient)
instance_norm.complete(_grouped_complete)
