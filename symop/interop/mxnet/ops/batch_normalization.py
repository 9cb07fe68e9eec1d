"""Operators that differ in training and prediction: batch normalization and dropout."""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import ONE, ZERO, Aux, operator
from symop.interop.mxnet.ops.precision import single
from symop.interop.mxnet.partial_dtypes import Dtypes, agreed
from symop.interop.mxnet.partial_shapes import Shapes, enter, like_data


def _visible(output_mean_var: bool) -> int:
    return 3 if output_mean_var else 1


def _shapes_along(given: Shapes, found: Shapes, axis: int) -> None:
    like_data(given, found)
    data = given[0]
    if data is not None:
        at = axis % len(data)
        for i in range(1, 5):
            enter(given, i, data[at : at + 1])
        for i in (1, 2):
            enter(found, i, data[at : at + 1])


def _shapes_of_channels(given: Shapes, found: Shapes) -> None:
    _shapes_along(given, found, 1)


def _dtypes(given: Dtypes, found: Dtypes) -> None:
    data = given[0] = found[0] = agreed((given[0], found[0]))
    if data is not None:
        wide = np.promote_types(data, np.float32)
        given[1:] = [wide if one is None else one for one in given[1:]]
    found[1:] = [given[3] if one is None else one for one in found[1:]]


def _statistics(
    data: Any, moving: tuple[Any, Any], axis: int, use_global_stats: bool
) -> tuple[Any, Any]:
    """Mean and variance used to normalize ``data``, in the dtype of the moving ones."""
    if use_global_stats:
        return moving
    others = tuple(i for i in range(len(data.shape)) if i != axis % len(data.shape))
    wide = so.cast(data, dtype=moving[0].dtype)
    found = so.mean(wide, axis=others), so.variance(wide, axis=others)
    return so.choose(found[0], moving[0]), so.choose(found[1], moving[1])


def _normalized(
    inputs: tuple[Any, Any, Any, Any, Any],
    axis: int,
    eps: float,
    momentum: float,
    fix_gamma: bool,
    use_global_stats: bool,
) -> Any:
    data, gamma, beta, moving_mean, moving_var = inputs
    if fix_gamma:
        gamma = so.ones_like(gamma)
    # The training flag is that of the run, unless the statistics are fixed.
    fixed = {"training": False} if use_global_stats else {}
    out = so.batch_norm(
        data,
        gamma,
        beta,
        moving_mean,
        moving_var,
        axis=axis,
        eps=eps,
        momentum=single(momentum, data),
        **fixed,
    )
    return out[0] if isinstance(out, tuple) else out


def _batch_norm(
    inputs: tuple[Any, Any, Any, Any, Any],
    *,
    axis: int,
    eps: float,
    momentum: float,
    fix_gamma: bool,
    use_global_stats: bool,
    output_mean_var: bool,
    spread: Callable[[Any], Any],
) -> Any:
    """The normalized data; ``spread`` converts variances to the third output."""
    out = _normalized(inputs, axis, eps, momentum, fix_gamma, use_global_stats)
    if not output_mean_var:
        return out
    mean, variance = _statistics(inputs[0], (inputs[3], inputs[4]), axis, use_global_stats)
    return out, mean, spread(variance)


_RULES = {
    "visible": _visible,
    "dtypes": _dtypes,
    "initial": {"moving_mean": ZERO, "moving_var": ONE},
    "note": "what flows back to mean and var, if they are put out, is not dropped",
}


def _declare(*names: str, then: Callable[[Any], Any] | None, outputs: tuple[str, ...]) -> None:
    """Declares the current version, whose third output is the inverse standard deviation."""

    def batch_norm(
        data: Any,
        gamma: Any,
        beta: Any,
        moving_mean: Aux,
        moving_var: Aux,
        *,
        eps: float = 1e-3,
        momentum: float = 0.9,
        fix_gamma: bool = True,
        use_global_stats: bool = False,
        output_mean_var: bool = False,
        axis: int = 1,
    ) -> Any:
        """Normalizes channels by batch statistics, in prediction by moving statistics."""
        result = _batch_norm(
            (data, gamma, beta, moving_mean, moving_var),
            axis=axis,
            eps=eps,
            momentum=momentum,
            fix_gamma=fix_gamma,
            use_global_stats=use_global_stats,
            output_mean_var=output_mean_var,
            spread=lambda variance: so.rsqrt(variance + eps),
        )
        if then is None:
            return result
        return (then(result[0]), *result[1:]) if output_mean_var else then(result)

    ignored = ("cudnn_off", "min_calib_range", "max_calib_range")
    rules = {"outputs": lambda: outputs, "shapes": _shapes_along, "ignored": ignored}
    operator(*names, **rules, **_RULES)(batch_norm)


_declare("BatchNorm", "CuDNNBatchNorm", then=None, outputs=("output", "mean", "var"))
_declare("_contrib_BatchNormWithReLU", then=so.relu, outputs=("output", "mean", "var", "workspace"))


@operator(
    "BatchNorm_v1",
    "_contrib_SyncBatchNorm",
    outputs=lambda: ("output", "mean", "var"),
    shapes=_shapes_of_channels,
    ignored=("ndev", "key"),
    **_RULES,
)
def batch_norm_v1(
    data: Any,
    gamma: Any,
    beta: Any,
    moving_mean: Aux,
    moving_var: Aux,
    *,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
) -> Any:
    """Batch normalization of channels on axis 1; its third output is the variance."""
    return _batch_norm(
        (data, gamma, beta, moving_mean, moving_var),
        axis=1,
        eps=single(eps, data),
        momentum=momentum,
        fix_gamma=fix_gamma,
        use_global_stats=use_global_stats,
        output_mean_var=output_mean_var,
        spread=lambda variance: variance,
    )


# Dropout ---------------------------------------------------------------------------------------


@operator(
    "Dropout",
    shapes=like_data,
    outputs=lambda: ("output", "mask"),
    visible=lambda: 1,
    ignored=("cudnn_off",),
)
def dropout(
    data: Any,
    *,
    p: float = 0.5,
    mode: Literal["training", "always"] = "training",
    axes: tuple[int, ...] = (),
) -> Any:
    """Dropout with probability ``p``, with the same mask along ``axes``.

    In training, a probability of 1 gives NaN: what is kept is divided by zero.
    """
    if not 0 <= p <= 1:
        raise MXNetError(f"Dropout: p must be in [0, 1], got {p}")
    if p == 0:
        return so.identity(data)
    flag: dict[str, Any] = {"training": True} if mode == "always" else {}
    ones = so.ones_like(data)
    if p == 1:
        untouched = so.equal(so.dropout(ones, rate=0.5, **flag), 1.0)
        return data * so.where(untouched, 1.0, math.nan)
    if not axes:
        return so.dropout(data, rate=p, **flag)
    for axis in axes:
        ones = so.slice_axis(ones, axis=axis, begin=0, end=1)
    return data * so.dropout(ones, rate=p, **flag)


# Sparse activations ----------------------------------------------------------------------------


def _sparse_shapes(given: Shapes, found: Shapes) -> None:
    like_data(given, found)
    if given[0] is not None:
        enter(given, 1, given[0][1:2])


@operator("IdentityAttachKLSparseReg", shapes=_sparse_shapes, initial={"moving_avg": ZERO})
def identity_attach_kl_sparse_reg(
    data: Any,
    moving_avg: Aux,
    *,
    sparseness_target: float = 0.1,
    penalty: float = 0.001,
    momentum: float = 0.9,
) -> Any:
    """``data``, with the gradient of a divergence between unit means and a target added.

    With ``a = momentum * moving_avg + (1 - momentum) * mean`` the added gradient is ``penalty *
    (-target / a + (1 - target) / (1 - a))``: that of ``-target log |a| - (1 - target) log |1 - a|``
    times ``penalty * examples / (1 - momentum)``.
    """
    if len(data.shape) != 2:
        raise MXNetError(
            f"IdentityAttachKLSparseReg: data must be a matrix, got shape {data.shape}"
        )
    if not 0 <= momentum < 1:
        raise MXNetError(f"IdentityAttachKLSparseReg: momentum must be in [0, 1), got {momentum}")
    target, rest = single(sparseness_target, data), single(momentum, data)
    fixed = so.stop_gradient(moving_avg)
    level = rest * fixed + (1.0 - rest) * so.mean(data, axis=0)
    loss = target * so.log(so.abs(level)) + (1.0 - target) * so.log(so.abs(1.0 - level))
    loss = loss * (-single(penalty, data) * data.shape[0] / (1.0 - rest))
    # The added value is zero: only the gradient of make_loss remains, whatever the cotangent.
    nothing = so.make_loss(loss) - so.stop_gradient(loss)
    ones = so.ones_like(fixed)
    update = so.batch_norm(data, ones, ones, moving_avg, ones, momentum=rest)
    update = update[0] if isinstance(update, tuple) else update
    return data + nothing + 0.0 * so.stop_gradient(update)
