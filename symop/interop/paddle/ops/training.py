"""Scaled losses and updates of several parameters at once."""

from collections.abc import Sequence
from typing import Any

import symop as so
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.optimizers import adam, momentum


@operator(outputs="Out FoundInfinite", several="Out", no_gradient="X Scale")
def check_finite_and_unscale(X: Values, Scale: Any) -> Any:
    """Divides gradients by the scale of the loss, and tells whether one is not finite."""
    scale = so.reshape(Scale, shape=())
    found = so.logical_not(so.all(so.isfinite(X[0])))
    for one in X[1:]:
        found = so.logical_or(found, so.logical_not(so.all(so.isfinite(one))))
    return [one / scale for one in X], so.reshape(found, shape=(1,))


@operator(
    outputs="Out LossScaling OutGoodSteps OutBadSteps",
    several="Out",
    no_gradient="X FoundInfinite PrevLossScaling InGoodSteps InBadSteps StopUpdate",
)
def update_loss_scaling(
    X: Values,
    FoundInfinite: Any,
    PrevLossScaling: Any,
    InGoodSteps: Any,
    InBadSteps: Any,
    StopUpdate: Any = None,
    *,
    incr_every_n_steps: int,
    decr_every_n_nan_or_inf: int,
    incr_ratio: float,
    decr_ratio: float,
    stop_update: bool = False,
) -> Any:
    """Sets gradients to zero if one is not finite, and adapts the scale of the loss."""
    failed = so.reshape(FoundInfinite, shape=())
    out = [so.where(failed, so.zeros_like(one), one) for one in X]
    if stop_update:
        return out, PrevLossScaling, InGoodSteps, InBadSteps
    none = so.zeros_like(InGoodSteps)
    good = so.where(failed, none, InGoodSteps + 1)
    bad = so.where(failed, InBadSteps + 1, none)
    shrinks = so.equal(bad, decr_every_n_nan_or_inf)
    grows = so.equal(good, incr_every_n_steps)
    smaller = so.maximum(PrevLossScaling * decr_ratio, 1.0)
    larger = PrevLossScaling * incr_ratio
    larger = so.where(so.isfinite(larger), larger, PrevLossScaling)
    scale = so.where(shrinks, smaller, so.where(grows, larger, PrevLossScaling))
    results = (scale, so.where(grows, none, good), so.where(shrinks, none, bad))
    if StopUpdate is not None:
        stops = so.reshape(StopUpdate, shape=())
        old = (PrevLossScaling, InGoodSteps, InBadSteps)
        results = tuple(so.where(stops, a, b) for a, b in zip(old, results, strict=True))
    return out, *results


def _rate_of(rates: Values, i: int) -> Any:
    return rates[i] if len(rates) > 1 else rates[0]


@operator(
    outputs="ParamOut VelocityOut",
    several="ParamOut VelocityOut",
    ignored="multi_precision",
)
def merged_momentum(
    Param: Values,
    Grad: Values,
    Velocity: Values,
    LearningRate: Values,
    *,
    mu: float,
    use_nesterov: bool = False,
    regularization_method: Sequence[str] = (),
    regularization_coeff: Sequence[float] = (),
    rescale_grad: float = 1.0,
) -> Any:
    steps = [
        momentum(
            *each,
            _rate_of(LearningRate, i),
            mu=mu,
            use_nesterov=use_nesterov,
            regularization_method=regularization_method[i] if regularization_method else "",
            regularization_coeff=regularization_coeff[i] if regularization_coeff else 0.0,
            rescale_grad=rescale_grad,
        )
        for i, each in enumerate(zip(Param, Grad, Velocity, strict=True))
    ]
    return [one[0] for one in steps], [one[1] for one in steps]


_ADAM = "ParamOut Moment1Out Moment2Out Beta1PowOut Beta2PowOut"


@operator(outputs=_ADAM, several=_ADAM, ignored="multi_precision use_global_beta_pow")
def merged_adam(
    Param: Values,
    Grad: Values,
    LearningRate: Values,
    Moment1: Values,
    Moment2: Values,
    Beta1Pow: Values,
    Beta2Pow: Values,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    call: Any,
) -> Any:
    parts = zip(Param, Grad, Moment1, Moment2, Beta1Pow, Beta2Pow, strict=True)
    steps = [
        adam(
            param,
            grad,
            _rate_of(LearningRate, i),
            *states,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            call=call,
        )
        for i, (param, grad, *states) in enumerate(parts)
    ]
    return tuple([one[i] for one in steps] for i in range(5))
