"""Steps of optimizers: new weights, and behind them the new values of the states.

The states are the inputs that are marked so, and their new values come in the order of the inputs.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import symop as so
from symop.interop.mxnet.operators import Aux, operator
from symop.interop.mxnet.ops.precision import single
from symop.interop.mxnet.partial_shapes import same


def clipped(x: Any, bound: float) -> Any:
    """``x`` between ``-bound`` and ``bound``; a negative bound is none."""
    limit = single(bound, x)
    return x if bound < 0 else so.clip(x, low=-limit, high=limit)


def scaled(grad: Any, rescale_grad: float, bound: float = -1.0) -> Any:
    """The rescaled gradient, clipped."""
    return clipped(grad * single(rescale_grad, grad), bound)


def pulled(slope: Any, weight: Any, wd: float) -> Any:
    """``slope`` and the pull of the weight decay.

    Without a decay the weight is not read here: that would cost a step as much as reading the
    gradient.
    """
    return slope if isinstance(wd, (int, float)) and not wd else slope + single(wd, weight) * weight


def with_decay(weight: Any, grad: Any, rescale_grad: float, bound: float, wd: float) -> Any:
    """The gradient with that of the weight decay, clipped as a whole."""
    return clipped(pulled(scaled(grad, rescale_grad), weight, wd), bound)


def correction(rate: float, t: Any, like: Any) -> Any:
    """The share of the gradients in an average that forgets by ``rate``, after ``t`` of them.

    It is ``1 - rate**t``, of which a ``t`` that only the compiled step knows leaves digits.
    """
    kept = single(rate, like)
    exact = isinstance(t, int) or not kept
    return 1.0 - kept**t if exact else -so.expm1(t * math.log(kept))


def decayed(old: Any, new: Any, rate: float) -> Any:
    """An average that forgets."""
    kept = single(rate, old)
    return old * kept + new * (1.0 - kept)


# Gradient descent ------------------------------------------------------------------------------


@operator("sgd_update", shapes=same, ignored=("lazy_update",))
def sgd_update(
    weight: Any,
    grad: Any,
    *,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Any:
    """A step against the gradient, with decay of the weight."""
    rate, decay = single(lr, weight), single(wd, weight)
    return weight * (1.0 - rate * decay) - rate * scaled(grad, rescale_grad, clip_gradient)


@operator("sgd_mom_update", shapes=same, ignored=("lazy_update",))
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
) -> Any:
    """The same with momentum."""
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
    """The same with the momentum of Nesterov."""
    keep = single(momentum, mom)
    before = mom * keep
    slope = pulled(scaled(grad, rescale_grad, clip_gradient), weight, wd)
    after = before - single(lr, weight) * slope
    return weight - before + (keep + 1.0) * after, after


def of_copy(
    update: Callable[..., Any], inputs: Sequence[Any], is_mixed: bool, **how: Any
) -> list[Any]:
    """A new weight and new states; ``is_mixed`` where the last input is a copy that is updated.

    Args:
        update: the step of a weight, of its gradient and of its states.
        inputs: weight, gradient and states.
        is_mixed: whether the weight is of half precision, with a copy in single precision.
        **how: the attributes.
    """
    weight, grad, *states = inputs
    wide = states.pop() if is_mixed else weight
    found = update(wide, so.cast(grad, dtype=wide.dtype), *states, **how)
    new, *moved = found if isinstance(found, (tuple, list)) else (found,)
    return [so.cast(new, dtype=weight.dtype), *moved, *([new] if is_mixed else [])]


def _declare_mixed(name: str, step: Any) -> None:
    """Declare ``step`` for weights of half precision that have a copy in single precision."""

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
        """A step of the copy."""
        how = {"rescale_grad": rescale_grad, "clip_gradient": clip_gradient}
        return tuple(of_copy(step, (weight, grad, weight32), True, lr=lr, wd=wd, **how))

    operator(name, shapes=same, dtypes="free", ignored=("lazy_update",))(update)


def _declare_mixed_momentum(name: str, step: Any) -> None:
    """The same with momentum."""

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
        """A step of the copy."""
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
    """A step of one length, in the direction of the gradient's sign."""
    del rescale_grad, clip_gradient  # they keep the sign
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
    """The same by the sign of the momentum."""
    slope = pulled(scaled(grad, rescale_grad, clip_gradient), weight, wd)
    moved = decayed(mom, -slope, momentum)
    rate = single(lr, weight)
    return weight * (1.0 - rate * single(wd_lh, weight)) + rate * so.sign(moved), moved
