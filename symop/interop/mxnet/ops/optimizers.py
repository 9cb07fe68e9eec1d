"""Steps of optimizers: new weights, and behind them the new values of the states.

The states are the inputs that are marked so, and their new values come in the order of the inputs.
Where many weights are updated at once, each has ``STRIDES`` inputs, of which the states are those
from the third on.
"""

import math
from typing import Any

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import Aux, operator
from symop.interop.mxnet.ops.precision import single
from symop.interop.mxnet.partial_shapes import same

STRIDES = {
    "multi_sgd_update": 2,
    "multi_sgd_mom_update": 3,
    "multi_mp_sgd_update": 3,
    "multi_mp_sgd_mom_update": 4,
}


def clipped(x: Any, bound: float) -> Any:
    """``x`` between ``-bound`` and ``bound``; a negative bound is none."""
    limit = single(bound, x)
    return x if bound < 0 else so.clip(x, low=-limit, high=limit)


def scaled(grad: Any, rescale_grad: float, bound: float = -1.0) -> Any:
    """The rescaled gradient, clipped."""
    return clipped(grad * single(rescale_grad, grad), bound)


def with_decay(weight: Any, grad: Any, rescale_grad: float, bound: float, wd: float) -> Any:
    """The gradient with that of the weight decay, clipped as a whole."""
    return clipped(grad * single(rescale_grad, grad) + weight * single(wd, grad), bound)


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
    rate, decay = single(lr, weight), single(wd, weight)
    step = single(momentum, mom) * mom - (rate * decay) * weight
    step = step - rate * scaled(grad, rescale_grad, clip_gradient)
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
    rate, decay, keep = single(lr, weight), single(wd, weight), single(momentum, mom)
    before = mom * keep
    after = before - rate * (scaled(grad, rescale_grad, clip_gradient) + decay * weight)
    return weight - before + (keep + 1.0) * after, after


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
        wide = so.cast(grad, dtype=weight32.dtype)
        found = step(
            weight32, wide, lr=lr, wd=wd, rescale_grad=rescale_grad, clip_gradient=clip_gradient
        )
        return so.cast(found, dtype=weight.dtype), found

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
        found, moved = step(
            weight32,
            so.cast(grad, dtype=weight32.dtype),
            mom,
            lr=lr,
            momentum=momentum,
            wd=wd,
            rescale_grad=rescale_grad,
            clip_gradient=clip_gradient,
        )
        return so.cast(found, dtype=weight.dtype), moved, found

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
    slope = scaled(grad, rescale_grad, clip_gradient) + single(wd, weight) * weight
    moved = decayed(mom, -slope, momentum)
    rate = single(lr, weight)
    return weight * (1.0 - rate * single(wd_lh, weight)) + rate * so.sign(moved), moved


# Many weights at once --------------------------------------------------------------------------


def _step_of_one(inputs: Any, has_momentum: bool, is_mixed: bool, **how: float) -> list[Any]:
    """The new weight and the new states of one weight."""
    weight, grad, *states = inputs
    wide = states[-1] if is_mixed else weight
    mom = states[0] if has_momentum else so.zeros_like(wide)
    found, moved = sgd_mom_update(wide, so.cast(grad, dtype=wide.dtype), mom, **how)
    news = [*([moved] if has_momentum else []), *([found] if is_mixed else [])]
    return [so.cast(found, dtype=weight.dtype), *news]


def _declare_multiple(name: str, has_momentum: bool, is_mixed: bool) -> None:
    stride = STRIDES[name]

    def step(
        inputs: Any,
        lrs: tuple[float, ...],
        wds: tuple[float, ...],
        num_weights: int,
        **how: float,
    ) -> Any:
        if len(inputs) != stride * num_weights or not len(lrs) == len(wds) == num_weights:
            raise MXNetError(
                f"{name}: there must be {stride} inputs, a rate and a decay for each of "
                f"{num_weights} weights, got {len(inputs)} inputs"
            )
        each = [
            _step_of_one(
                inputs[stride * i : stride * (i + 1)],
                has_momentum,
                is_mixed,
                lr=lrs[i],
                wd=wds[i],
                **how,
            )
            for i in range(num_weights)
        ]
        return (*[one[0] for one in each], *[new for one in each for new in one[1:]])

    def plain(
        *data: Any,
        lrs: tuple[float, ...],
        wds: tuple[float, ...],
        rescale_grad: float = 1.0,
        clip_gradient: float = -1.0,
        num_weights: int = 1,
    ) -> Any:
        """A step of each weight."""
        how = {"rescale_grad": rescale_grad, "clip_gradient": clip_gradient}
        return step(data, lrs, wds, num_weights, **how)

    def moving(
        *data: Any,
        lrs: tuple[float, ...],
        wds: tuple[float, ...],
        momentum: float = 0.0,
        rescale_grad: float = 1.0,
        clip_gradient: float = -1.0,
        num_weights: int = 1,
    ) -> Any:
        """A step of each weight with momentum."""
        how = {"rescale_grad": rescale_grad, "clip_gradient": clip_gradient}
        return step(data, lrs, wds, num_weights, momentum=momentum, **how)

    operator(name, outputs=_outputs_of_weights, dtypes="free")(moving if has_momentum else plain)


def _outputs_of_weights(num_weights: int) -> tuple[str, ...]:
    return tuple(f"output{i}" for i in range(num_weights)) if num_weights > 1 else ("output",)


_declare_multiple("multi_sgd_update", has_momentum=False, is_mixed=False)
_declare_multiple("multi_sgd_mom_update", has_momentum=True, is_mixed=False)
_declare_multiple("multi_mp_sgd_update", has_momentum=False, is_mixed=True)
_declare_multiple("multi_mp_sgd_mom_update", has_momentum=True, is_mixed=True)
