"""Steps of LAMB, whose rates depend on the norms of weights and steps."""

from typing import Any

import symop as so
from symop.interop.mxnet.operators import Aux, operator
from symop.interop.mxnet.ops.optimizers import correction, decayed, pulled, scaled
from symop.interop.mxnet.ops.precision import single
from symop.interop.mxnet.partial_shapes import Shapes, enter, same


def _lamb_direction(
    weight: Any,
    grad: Any,
    mean: Any,
    var: Any,
    t: int,
    wd: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    bias_correction: bool,
    rescale_grad: float,
    clip_gradient: float,
) -> tuple[Any, Any, Any]:
    slope = scaled(grad, rescale_grad, clip_gradient)
    first, second = decayed(mean, slope, beta1), decayed(var, slope * slope, beta2)
    a, b = first, second
    if bias_correction:
        a = first / correction(beta1, t, weight)
        b = second / correction(beta2, t, weight)
    step = pulled(a / (so.sqrt(b) + single(epsilon, weight)), weight, wd)
    return step, first, second


@operator("lamb_update_phase1", shapes=same)
def lamb_update_phase1(
    weight: Any,
    grad: Any,
    mean: Aux,
    var: Aux,
    *,
    t: int,
    wd: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    bias_correction: bool = True,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Any:
    """The direction of a step."""
    return _lamb_direction(
        weight,
        grad,
        mean,
        var,
        t,
        wd,
        beta1,
        beta2,
        epsilon,
        bias_correction,
        rescale_grad,
        clip_gradient,
    )


@operator("mp_lamb_update_phase1", shapes=same, dtypes="free")
def mp_lamb_update_phase1(
    weight: Any,
    grad: Any,
    mean: Aux,
    var: Aux,
    weight32: Any,
    *,
    t: int,
    wd: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    bias_correction: bool = True,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Any:
    """``lamb_update_phase1`` for half-precision weights with a single-precision copy."""
    del weight
    wide = so.cast(grad, dtype=weight32.dtype)
    return _lamb_direction(
        weight32,
        wide,
        mean,
        var,
        t,
        wd,
        beta1,
        beta2,
        epsilon,
        bias_correction,
        rescale_grad,
        clip_gradient,
    )


def _phase2_shapes(given: Shapes, found: Shapes) -> None:
    pair = [given[0], given[1]]
    same(pair, found)
    given[:2] = pair
    enter(given, 2, (1,))
    enter(given, 3, (1,))
    enter(given, 4, given[0])


def _lamb_step(
    weight: Any, g: Any, r1: Any, r2: Any, lr: float, lower_bound: float, upper_bound: float
) -> Any:
    """``weight`` moved along ``g``, scaled by the ratio of their norms if it is defined."""
    if lower_bound >= 0:
        r1 = so.maximum(r1, single(lower_bound, weight))
    if upper_bound >= 0:
        r1 = so.minimum(r1, single(upper_bound, weight))
    is_usable = so.logical_and(so.not_equal(r1, 0.0), so.not_equal(r2, 0.0))
    ones = so.ones_like(r1)
    ratio = so.where(is_usable, r1 / so.where(is_usable, r2, ones), ones)
    return weight - g * (single(lr, weight) * so.reshape(ratio, shape=(1,) * len(g.shape)))


@operator("lamb_update_phase2", shapes=_phase2_shapes)
def lamb_update_phase2(
    weight: Any,
    g: Any,
    r1: Any,
    r2: Any,
    *,
    lr: float,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
) -> Any:
    """Applies the step."""
    return _lamb_step(weight, g, r1, r2, lr, lower_bound, upper_bound)


@operator("mp_lamb_update_phase2", shapes=_phase2_shapes, dtypes="free")
def mp_lamb_update_phase2(
    weight: Any,
    g: Any,
    r1: Any,
    r2: Any,
    weight32: Aux,
    *,
    lr: float,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
) -> Any:
    """``lamb_update_phase2`` for half-precision weights."""
    found = _lamb_step(weight32, g, r1, r2, lr, lower_bound, upper_bound)
    return so.cast(found, dtype=weight.dtype), found


def lamb_update(
    weight: Any,
    grad: Any,
    mean: Any,
    var: Any,
    *,
    lr: Any,
    lower_bound: float,
    upper_bound: float,
    measured: Any = None,
    **how: Any,
) -> tuple[Any, Any, Any]:
    """Both phases, with the norms of ``measured``, by default the weight, and of the step."""
    direction, first, second = lamb_update_phase1(weight, grad, mean, var, **how)
    known = weight if measured is None else so.cast(measured, dtype=weight.dtype)
    lengths = [so.reshape(so.global_norm(one), shape=(1,)) for one in (known, direction)]
    bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
    return lamb_update_phase2(weight, direction, *lengths, lr=lr, **bounds), first, second
