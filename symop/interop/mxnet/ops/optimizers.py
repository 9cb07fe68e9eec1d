"""Steps of optimizers: new weights, followed by the new values of states.

States are the inputs marked as such; their new values are in the order of the inputs.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import symop as so
from symop.interop.mxnet.operators import Aux, operator
from symop.interop.mxnet.ops.precision import single
from symop.interop.mxnet.partial_shapes import same


def clipped(x: Any, bound: float) -> Any:
    """``x`` clipped to ``[-bound, bound]``; a negative bound means no clipping."""
    limit = single(bound, x)
    return x if bound < 0 else so.clip(x, low=-limit, high=limit)


def scaled(grad: Any, rescale_grad: float, bound: float = -1.0) -> Any:
    """The rescaled gradient, clipped."""
    return clipped(grad * single(rescale_grad, grad), bound)


def pulled(slope: Any, weight: Any, wd: float) -> Any:
    """``slope`` plus the gradient of the weight decay.

    Without decay the weight is not read here, which would cost as much as reading the gradient.
    """
    return slope if isinstance(wd, (int, float)) and not wd else slope + single(wd, weight) * weight


def with_decay(weight: Any, grad: Any, rescale_grad: float, bound: float, wd: float) -> Any:
    """The gradient including that of the weight decay, clipped as a whole."""
    return clipped(pulled(scaled(grad, rescale_grad), weight, wd), bound)


def correction(rate: float, t: Any, like: Any) -> Any:
    """The total weight of an exponential average with factor ``rate`` after ``t`` values.

    This is ``1 - rate**t``, which would lose digits for a ``t`` known only to the compiled step.
    """
    kept = single(rate, like)
    exact = isinstance(t, int) or not kept
    return 1.0 - kept**t if exact else -so.expm1(t * math.log(kept))


def decayed(old: Any, new: Any, rate: float) -> Any:
    """Updates an exponential average."""
    kept = single(rate, old)
    return old * kept + new * (1.0 - kept)


# Gradient descent ------------------------------------------------------------------------------


@operator("sgd_update", shapes=same)
def sgd_update(
    weight: Any,
    grad: Any,
    *,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
) -> Any:
    """A step of gradient descent, with weight decay."""
    del lazy_update  # of sparse storage
    rate, decay = single(lr, weight), single(wd, weight)
    return weight * (1.0 - rate * decay) - rate * scaled(grad, rescale_grad, clip_gradient)


@operator("sgd_mom_update", shapes=same)
def sgd_mom_update(
    weight: Any,
    grad: Any,
    mom: Aux,
    *,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
) -> Any:
    """``sgd_update`` with momentum."""
    del lazy_update  # of sparse storage
    slope = pulled(scaled(grad, rescale_grad, clip_gradient), weight, wd)
    step = single(momentum, mom) * mom - single(lr, weight) * slope
    return weight + step, step


@operator("nag_mom_update", shapes=same)
def nag_mom_update(
    weight: Any,
    grad: Any,
    mom: Aux,
    *,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Any:
    """``sgd_update`` with Nesterov's momentum."""
    keep = single(momentum, mom)
    before = mom * keep
    slope = pulled(scaled(grad, rescale_grad, clip_gradient), weight, wd)
    after = before - single(lr, weight) * slope
    return weight - before + (keep + 1.0) * after, after


def of_copy(
    update: Callable[..., Any], inputs: Sequence[Any], is_mixed: bool, **how: Any
) -> list[Any]:
    """A new weight and new states; if ``is_mixed``, the last input is a copy to update.

    Args:
        update: the step for a weight, its gradient and its states.
        inputs: weight, gradient and states.
        is_mixed: whether the weight is in half precision, with a single-precision copy.
        **how: the attributes.
    """
    weight, grad, *states = inputs
    wide = states.pop() if is_mixed else weight
    found = update(wide, so.cast(grad, dtype=wide.dtype), *states, **how)
    new, *moved = found if isinstance(found, (tuple, list)) else (found,)
    return [so.cast(new, dtype=weight.dtype), *moved, *([new] if is_mixed else [])]


def _declare_mixed(name: str, step: Any) -> None:
    """Declares ``step`` for half-precision weights with a single-precision copy."""

    def update(
        weight: Any,
        grad: Any,
        weight32: Aux,
        *,
        lr: float,
        wd: float = 0.0,
        rescale_grad: float = 1.0,
        clip_gradient: float = -1.0,
    ) -> Any:
        """Applies a step to the single-precision copy."""
        how = {"rescale_grad": rescale_grad, "clip_gradient": clip_gradient}
        return tuple(of_copy(step, (weight, grad, weight32), True, lr=lr, wd=wd, **how))

    operator(name, shapes=same, dtypes="free", ignored=("lazy_update",))(update)


def _declare_mixed_momentum(name: str, step: Any) -> None:
    """Declares ``step`` with momentum, as ``_declare_mixed`` does."""

    def update(
        weight: Any,
        grad: Any,
        mom: Aux,
        weight32: Aux,
        *,
        lr: float,
        momentum: float = 0.0,
        wd: float = 0.0,
        rescale_grad: float = 1.0,
        clip_gradient: float = -1.0,
    ) -> Any:
        """Applies a step to the single-precision copy."""
        how = {"lr": lr, "momentum": momentum, "wd": wd, "rescale_grad": rescale_grad}
        how["clip_gradient"] = clip_gradient
        return tuple(of_copy(step, (weight, grad, mom, weight32), True, **how))

    operator(name, shapes=same, dtypes="free", ignored=("lazy_update",))(update)


_declare_mixed("mp_sgd_update", sgd_update)
_declare_mixed_momentum("mp_sgd_mom_update", sgd_mom_update)
_declare_mixed_momentum("mp_nag_mom_update", nag_mom_update)


@operator("signsgd_update", shapes=same)
def signsgd_update(
    weight: Any,
    grad: Any,
    *,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Any:
    """A step of fixed size, along the sign of the gradient."""
    del rescale_grad, clip_gradient  # they do not change the sign
    rate, decay = single(lr, weight), single(wd, weight)
    return weight * (1.0 - rate * decay) - rate * so.sign(grad)


@operator("signum_update", shapes=same)
def signum_update(
    weight: Any,
    grad: Any,
    mom: Aux,
    *,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    wd_lh: float = 0.0,
) -> Any:
    """A step of fixed size, along the sign of the momentum."""
    slope = pulled(scaled(grad, rescale_grad, clip_gradient), weight, wd)
    moved = decayed(mom, -slope, momentum)
    rate = single(lr, weight)
    return weight * (1.0 - rate * single(wd_lh, weight)) + rate * so.sign(moved), moved
