"""Steps of adaptive optimizers: new weights, followed by new states."""

from typing import Any

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import Aux, operator
from symop.interop.mxnet.ops.optimizers import (
    clipped,
    correction,
    decayed,
    of_copy,
    pulled,
    scaled,
    with_decay,
)
from symop.interop.mxnet.ops.precision import single
from symop.interop.mxnet.partial_shapes import Shapes, enter, same


@operator("adam_update", shapes=same)
def adam_update(
    weight: Any,
    grad: Any,
    mean: Aux,
    var: Aux,
    *,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
) -> Any:
    """Adam without bias correction, which is part of ``lr``."""
    del lazy_update  # of sparse storage
    slope = with_decay(weight, grad, rescale_grad, clip_gradient, wd)
    first, second = decayed(mean, slope, beta1), decayed(var, slope * slope, beta2)
    step = first / (so.sqrt(second) + single(epsilon, weight))
    return weight - single(lr, weight) * step, first, second


def adamw_step(
    weight: Any,
    grad: Any,
    mean: Any,
    var: Any,
    *,
    rescale_grad: Any,
    lr: float,
    eta: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    wd: float,
    clip_gradient: float,
) -> list[Any]:
    """Adam with decoupled decay; there is no step if ``rescale_grad`` is 0 or not finite."""
    scale = so.reshape(so.cast(rescale_grad, dtype=weight.dtype), shape=(1,) * len(weight.shape))
    slope = clipped(grad * scale, clip_gradient)
    first, second = decayed(mean, slope, beta1), decayed(var, slope * slope, beta2)
    step = single(lr, weight) * first / (so.sqrt(second) + single(epsilon, weight))
    found = weight - single(eta, weight) * pulled(step, weight, wd)
    usable = so.logical_and(so.isfinite(scale), so.not_equal(scale, 0.0))
    pairs = ((found, weight), (first, mean), (second, var))
    return [so.where(usable, new, old) for new, old in pairs]


@operator("_adamw_update", dtypes="free")
def adamw_update(
    weight: Any,
    grad: Any,
    mean: Aux,
    var: Aux,
    rescale_grad: Any,
    *,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    clip_gradient: float = -1.0,
) -> Any:
    """Adam with decoupled decay; there is no step if ``rescale_grad`` is 0 or not finite."""
    how = {"lr": lr, "eta": eta, "wd": wd, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    how |= {"rescale_grad": rescale_grad, "clip_gradient": clip_gradient}
    return tuple(of_copy(adamw_step, (weight, grad, mean, var), False, **how))


@operator("_mp_adamw_update", dtypes="free")
def mp_adamw_update(
    weight: Any,
    grad: Any,
    mean: Aux,
    var: Aux,
    weight32: Aux,
    rescale_grad: Any,
    *,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    clip_gradient: float = -1.0,
) -> Any:
    """``_adamw_update`` for half-precision weights with a single-precision copy."""
    how = {"lr": lr, "eta": eta, "wd": wd, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    how |= {"rescale_grad": rescale_grad, "clip_gradient": clip_gradient}
    return tuple(of_copy(adamw_step, (weight, grad, mean, var, weight32), True, **how))


@operator("rmsprop_update", shapes=same)
def rmsprop_update(
    weight: Any,
    grad: Any,
    n: Aux,
    *,
    lr: float,
    gamma1: float = 0.95,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
) -> Any:
    """RMSProp: gradients divided by the root of their mean square."""
    slope = with_decay(weight, grad, rescale_grad, clip_gradient, wd)
    square = decayed(n, slope * slope, gamma1)
    step = slope / so.sqrt(square + single(epsilon, weight))
    return clipped(weight - single(lr, weight) * step, clip_weights), square


@operator("rmspropalex_update", shapes=same)
def rmspropalex_update(
    weight: Any,
    grad: Any,
    n: Aux,
    g: Aux,
    delta: Aux,
    *,
    lr: float,
    gamma1: float = 0.95,
    gamma2: float = 0.9,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
) -> Any:
    """RMSProp with the standard deviation of the gradients, and momentum."""
    slope = with_decay(weight, grad, rescale_grad, clip_gradient, wd)
    square, mean = decayed(n, slope * slope, gamma1), decayed(g, slope, gamma1)
    spread = so.sqrt(square - mean * mean + single(epsilon, weight))
    step = single(gamma2, delta) * delta - single(lr, weight) * slope / spread
    return clipped(weight + step, clip_weights), square, mean, step


@operator("ftrl_update", shapes=same)
def ftrl_update(
    weight: Any,
    grad: Any,
    z: Aux,
    n: Aux,
    *,
    lr: float,
    lamda1: float = 0.01,
    beta: float = 1.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Any:
    """Follow the regularized leader; small sums give weight zero."""
    slope, rate = scaled(grad, rescale_grad, clip_gradient), single(lr, weight)
    square = n + slope * slope
    total = z + slope - (so.sqrt(square) - so.sqrt(n)) * weight / rate
    bound = single(lamda1, weight)
    divisor = (so.sqrt(square) + single(beta, weight)) / rate + single(wd, weight)
    moved = (so.sign(total) * bound - total) / divisor
    is_large = so.greater(so.abs(total), bound)
    return so.where(is_large, moved, so.zeros_like(moved)), total, square


@operator("ftml_update", shapes=same)
def ftml_update(
    weight: Any,
    grad: Any,
    d: Aux,
    v: Aux,
    z: Aux,
    *,
    lr: float,
    t: int,
    beta1: float = 0.6,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_grad: float = -1.0,
) -> Any:
    """Follow the moving leader."""
    slope = with_decay(weight, grad, rescale_grad, clip_grad, wd)
    square = decayed(v, slope * slope, beta2)
    root = so.sqrt(square / correction(beta2, t, weight)) + single(epsilon, weight)
    scale = root * (correction(beta1, t, weight) / single(lr, weight))
    total = decayed(z, slope, beta1) - (scale - single(beta1, weight) * d) * weight
    return -total / scale, scale, square, total


@operator("_sparse_adagrad_update", shapes=same)
def adagrad_update(
    weight: Any,
    grad: Any,
    history: Aux,
    *,
    lr: float,
    epsilon: float = 1e-7,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Any:
    """Adagrad: gradients divided by the root of the sum of their squares."""
    if wd:
        raise MXNetError(f"_sparse_adagrad_update: wd must be 0, got {wd}")
    slope = scaled(grad, rescale_grad, clip_gradient)
    total = history + slope * slope
    step = slope / so.sqrt(total + single(epsilon, weight))
    return weight - single(lr, weight) * step, total


def _group_shapes(given: Shapes, found: Shapes) -> None:
    pair = given[:2]
    same(pair, found)
    given[:2] = pair
    if pair[0]:
        enter(given, 2, (pair[0][0], *[1] * (len(pair[0]) - 1)))


@operator("_contrib_group_adagrad_update", shapes=_group_shapes)
def group_adagrad_update(
    weight: Any,
    grad: Any,
    history: Aux,
    *,
    lr: float,
    epsilon: float = 1e-5,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Any:
    """Adagrad with the mean squares of rows."""
    slope = scaled(grad, rescale_grad, clip_gradient)
    others = tuple(range(1, len(weight.shape)))
    total = history + so.mean(slope * slope, axis=others, keepdims=True)
    step = single(lr, weight) * slope / so.sqrt(total + single(epsilon, weight))
    return weight - step, total
