"""Updates of parameters; learning rates have shape (1,).

A row-sparse gradient updates the whole table like the dense gradient, except where Paddle updates
only its rows: in ``sgd``, ``adagrad``, ``ftrl``, and ``adam`` in its lazy mode.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.versions import (
    adadelta_reads_new_average,
    corrects_lamb,
    scales_epsilon,
)

_MIXED = "multi_precision use_global_beta_pow min_row_size_to_use_multithread only_tensor_type"


F = TypeVar("F", bound=Callable[..., Any])


def _update(
    outputs: str, like: Callable[..., Any] | None = None, **settings: Any
) -> Callable[[F], F]:
    """Defines an update, which may keep a copy of the parameter in single precision.

    With the slot ``MasterParam``, that copy is updated and the parameter is its rounding. An update
    ``like`` another one also has the slots and attributes of that one.
    """

    def define(function: F) -> F:
        every = _parameters(like or function)
        if like is not None:
            every |= _parameters(function)
        every["MasterParam"] = inspect.Parameter(
            "MasterParam", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Any
        )

        def updated(Param: Any, *, MasterParam: Any = None, **others: Any) -> Any:
            if MasterParam is None:
                return function(Param=Param, **others)
            grad = others.pop("Grad")
            grad = so.cast(_dense(grad), dtype=MasterParam.dtype)
            found = function(Param=MasterParam, Grad=grad, **others)
            new, *states = found if isinstance(found, tuple) else (found,)
            values = (so.cast(new, dtype=Param.dtype), *states)
            return {**dict(zip(outputs.split(), values, strict=False)), "MasterParamOut": new}

        signature = inspect.Signature(sorted(every.values(), key=lambda one: one.kind))
        updated.__signature__ = signature  # type: ignore[attr-defined]
        updated.__name__ = function.__name__
        operator(outputs=f"{outputs} MasterParamOut", **settings)(updated)
        return function

    return define


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    named = inspect.signature(function).parameters
    return {name: one for name, one in named.items() if one.kind is not one.VAR_KEYWORD}


def _rate(learning_rate: Any) -> Any:
    return so.reshape(learning_rate, shape=())


def _holds_rows(grad: Any) -> bool:
    return getattr(grad, "kind", None) == "selected_rows"


def _dense(grad: Any) -> Any:
    return so.get_tensor_from_selected_rows(grad) if _holds_rows(grad) else grad


def _moved(param: Any, step: Any) -> Any:
    """Returns ``param - step`` in the dtype of the parameter."""
    return so.cast(so.subtract(param, step), dtype=param.dtype)


def _unless(skips: Any, old: Sequence[Any], new: Sequence[Any]) -> tuple[Any, ...]:
    """Returns new values, or the old ones if an update is skipped."""
    if skips is None:
        return tuple(new)
    skip = so.reshape(skips, shape=())
    return tuple(so.where(skip, one, other) for one, other in zip(old, new, strict=True))


def _average(old: Any, new: Any, weight: Any) -> Any:
    return weight * old + (1 - weight) * new


def _is_in_place(call: Any) -> bool:
    """Returns whether Adam writes the powers of its averages where it reads them.

    With a gradient that holds rows, Paddle then corrects by the powers of the next step: its kernel
    advances them first.
    """
    slots = (("Beta1Pow", "Beta1PowOut"), ("Beta2Pow", "Beta2PowOut"))
    return all(call.op.inputs.get(one) == call.op.outputs.get(other) for one, other in slots)


def _less_in_rows(table: Any, rows: Any, step: Any) -> Any:
    """Returns ``table - step`` in the rows that ``rows`` names, and ``table`` elsewhere.

    XLA computes an entrywise ``step`` in these rows alone.
    """
    still = so.multiply(rows, 0.0)
    return so.momentum(table, still, step, 2.0, mu=0.5, lazy=True)[0]


def _average_in_rows(old: Any, rows: Any, weight: Any) -> Any:
    """Returns ``_average`` in the rows that ``rows`` names, each once, and ``old`` elsewhere."""
    return so.sgd(_less_in_rows(old, rows, (1 - weight) * old), rows, weight - 1)


@_update("ParamOut", ignored="multi_precision")
def sgd(Param: Any, Grad: Any, LearningRate: Any) -> Any:
    return so.sgd(Param, Grad, _rate(LearningRate))


@_update("ParamOut VelocityOut", ignored="multi_precision")
def momentum(
    Param: Any,
    Grad: Any,
    Velocity: Any,
    LearningRate: Any,
    *,
    mu: float,
    use_nesterov: bool = False,
    regularization_method: str = "",
    regularization_coeff: float = 0.0,
    rescale_grad: float = 1.0,
) -> Any:
    if regularization_method not in ("", "l2_decay"):
        raise PaddleError(
            "momentum: regularization_method must be '' or 'l2_decay', "
            f"got {regularization_method!r}"
        )
    grad = Grad if rescale_grad == 1 else so.multiply(Grad, rescale_grad)
    if regularization_method:
        grad = _dense(grad) + regularization_coeff * Param
    rate = _rate(LearningRate)
    return tuple(so.momentum(Param, grad, Velocity, rate, mu=mu, nesterov=use_nesterov))


@operator(outputs="ParamOut VelocityOut", several="ParamOut VelocityOut", ignored="multi_precision")
def lars_momentum(
    Param: Values,
    Grad: Values,
    Velocity: Values,
    LearningRate: Values,
    *,
    mu: float,
    lars_coeff: float = 0.001,
    lars_weight_decay: Any = (0.0005,),
    epsilon: float = 0.0,
    rescale_grad: float = 1.0,
) -> Any:
    one = isinstance(lars_weight_decay, (int, float))  # in 1.8
    decays = [lars_weight_decay] if one else list(lars_weight_decay)
    steps = [
        _lars(*each, mu, lars_coeff, decays[i if len(decays) > 1 else 0], epsilon, rescale_grad)
        for i, each in enumerate(zip(Param, Grad, Velocity, LearningRate, strict=True))
    ]
    return [one for one, _ in steps], [one for _, one in steps]


def _lars(
    param: Any,
    grad: Any,
    velocity: Any,
    rate: Any,
    mu: float,
    coefficient: float,
    decay: float,
    epsilon: float,
    rescale: float,
) -> tuple[Any, Any]:
    grad, rate = _dense(grad) * rescale, _rate(rate)
    size, slope = so.global_norm(param), so.global_norm(grad)
    both = so.logical_and(so.greater(size, 0.0), so.greater(slope, 0.0))
    length = so.where(both, slope + decay * size + epsilon, 1.0)
    local = so.where(both, rate * coefficient * size / length, rate) if decay > 0 else rate
    velocity = mu * velocity + local * (grad + decay * param)
    return _moved(param, velocity), velocity


_ADAM = "ParamOut Moment1Out Moment2Out Beta1PowOut Beta2PowOut"


@_update(_ADAM, ignored=_MIXED)
def adam(
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    Moment1: Any,
    Moment2: Any,
    Beta1Pow: Any,
    Beta2Pow: Any,
    Beta1Tensor: Any = None,
    Beta2Tensor: Any = None,
    EpsilonTensor: Any = None,
    SkipUpdate: Any = None,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    lazy_mode: bool = False,
    call: Any,
) -> Any:
    b1 = beta1 if Beta1Tensor is None else _rate(Beta1Tensor)
    b2 = beta2 if Beta2Tensor is None else _rate(Beta2Tensor)
    eps = epsilon if EpsilonTensor is None else _rate(EpsilonTensor)
    is_lazy = lazy_mode and _holds_rows(Grad)
    grad = so.merge_selected_rows(Grad) if is_lazy else _dense(Grad)
    average = _average_in_rows if is_lazy else _average
    moment1, moment2 = average(Moment1, grad, b1), average(Moment2, so.multiply(grad, grad), b2)
    powers = Beta1Pow * b1, Beta2Pow * b2
    used = powers if _holds_rows(Grad) and _is_in_place(call) else (Beta1Pow, Beta2Pow)
    left, root = 1 - _rate(used[0]), so.sqrt(1 - _rate(used[1]))
    eps = eps * root if scales_epsilon(call) else eps
    step = _rate(LearningRate) * root / left * moment1 / (so.sqrt(moment2) + eps)
    new = _less_in_rows(Param, grad, step) if is_lazy else _moved(Param, step)
    results = (new, moment1, moment2, *powers)
    return _unless(SkipUpdate, (Param, Moment1, Moment2, Beta1Pow, Beta2Pow), results)


@_update(_ADAM, like=adam, ignored=_MIXED)
def adamw(
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    SkipUpdate: Any = None,
    *,
    lazy_mode: bool = False,
    lr_ratio: float = 1.0,
    coeff: float = 0.01,
    with_decay: bool = False,
    **others: Any,
) -> Any:
    rate, param = LearningRate * lr_ratio, Param
    if with_decay:
        decay = Param * (_rate(rate) * coeff)
        is_lazy = lazy_mode and _holds_rows(Grad)
        param = _less_in_rows(Param, Grad, decay) if is_lazy else _moved(Param, decay)
    given = {"SkipUpdate": SkipUpdate, "lazy_mode": lazy_mode, **others}
    new = adam(param, Grad, rate, **given)
    if SkipUpdate is None:
        return new
    return (so.where(so.reshape(SkipUpdate, shape=()), Param, new[0]), *new[1:])


@_update("ParamOut MomentOut InfNormOut", ignored="multi_precision")
def adamax(
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    Moment: Any,
    InfNorm: Any,
    Beta1Pow: Any,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> Any:
    grad = _dense(Grad)
    moment = _average(Moment, grad, beta1)
    norm = so.maximum(so.abs(grad), beta2 * InfNorm + epsilon)
    rate = _rate(LearningRate) / (1 - _rate(Beta1Pow))
    return _moved(Param, rate * moment / norm), moment, norm


@_update("ParamOut MomentOut", ignored="multi_precision")
def adagrad(Param: Any, Grad: Any, Moment: Any, LearningRate: Any, *, epsilon: float = 1e-6) -> Any:
    grad = so.merge_selected_rows(Grad)
    moment = so.sgd(Moment, so.multiply(grad, grad), -1.0)
    return so.sgd(Param, so.divide(grad, so.sqrt(moment) + epsilon), _rate(LearningRate)), moment


@operator(outputs="ParamOut MomentOut")
def decayed_adagrad(
    Param: Any,
    Grad: Any,
    Moment: Any,
    LearningRate: Any,
    *,
    decay: float = 0.95,
    epsilon: float = 1e-6,
) -> Any:
    grad = _dense(Grad)
    moment = _average(Moment, so.square(grad), decay)
    return _moved(Param, _rate(LearningRate) * grad / (so.sqrt(moment) + epsilon)), moment


@_update("ParamOut AvgSquaredGradOut AvgSquaredUpdateOut", ignored="multi_precision")
def adadelta(
    Param: Any,
    Grad: Any,
    AvgSquaredGrad: Any,
    AvgSquaredUpdate: Any,
    LearningRate: Any = None,
    *,
    rho: float = 0.95,
    epsilon: float = 1e-6,
    call: Any,
) -> Any:
    grad = _dense(Grad)
    squares = _average(AvgSquaredGrad, so.square(grad), rho)
    step = so.sqrt((AvgSquaredUpdate + epsilon) / (squares + epsilon)) * grad
    updates = _average(AvgSquaredUpdate, so.square(step), rho)
    if adadelta_reads_new_average(call):
        step = so.sqrt((updates + epsilon) / (squares + epsilon)) * grad
    scaled = step if LearningRate is None else _rate(LearningRate) * step
    return _moved(Param, scaled), squares, updates


@_update("ParamOut MomentOut MeanSquareOut MeanGradOut", ignored="multi_precision")
def rmsprop(
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    MeanSquare: Any,
    Moment: Any,
    MeanGrad: Any = None,
    *,
    epsilon: float = 1e-10,
    decay: float = 0.9,
    momentum: float = 0.0,
    centered: bool = False,
) -> Any:
    grad = _dense(Grad)
    square = _average(MeanSquare, so.square(grad), decay)
    mean = _average(MeanGrad, grad, decay) if centered else MeanGrad
    spread = square - so.square(mean) if centered else square
    moment = momentum * Moment + _rate(LearningRate) * grad / so.sqrt(spread + epsilon)
    return _moved(Param, moment), moment, square, mean


@operator(outputs="ParamOut SquaredAccumOut LinearAccumOut", ignored="multi_precision")
def ftrl(
    Param: Any,
    SquaredAccumulator: Any,
    LinearAccumulator: Any,
    Grad: Any,
    LearningRate: Any,
    *,
    l1: float = 0.0,
    l2: float = 0.0,
    lr_power: float = -0.5,
) -> Any:
    rate = _rate(LearningRate)
    l1, l2 = l1 + 1e-10, l2 + 1e-10  # as Paddle does
    if lr_power == -0.5:
        states = SquaredAccumulator, LinearAccumulator
        return tuple(so.ftrl(Param, Grad, *states, rate, l1=l1, l2=2 * l2, lazy=True))
    grad = so.merge_selected_rows(Grad)
    squared = so.sgd(SquaredAccumulator, so.multiply(grad, grad), -1.0)
    now, before = so.power(squared, -lr_power), so.power(SquaredAccumulator, -lr_power)
    moved = _less_in_rows(LinearAccumulator, grad, (now - before) / rate * Param)
    linear = so.sgd(moved, grad, -1.0)
    param = (so.clip(linear, min=-l1, max=l1) - linear) / (now / rate + 2 * l2)
    return _less_in_rows(Param, grad, Param - param), squared, linear


@_update(_ADAM, ignored="multi_precision")
def lamb(
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    Moment1: Any,
    Moment2: Any,
    Beta1Pow: Any,
    Beta2Pow: Any,
    SkipUpdate: Any = None,
    *,
    weight_decay: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    always_adapt: bool = False,
    call: Any,
) -> Any:
    grad = _dense(Grad)
    moment1 = _average(Moment1, grad, beta1)
    moment2 = _average(Moment2, so.square(grad), beta2)
    ahead, square = moment1, moment2
    if corrects_lamb(call):
        ahead = moment1 / (1 - _rate(Beta1Pow))
        square = moment2 / (1 - _rate(Beta2Pow))
    root = so.sqrt(square)
    trust = ahead / (root + epsilon) + weight_decay * Param
    size, length = so.global_norm(Param), so.global_norm(trust)
    adapts = always_adapt or weight_decay > 0
    both = so.logical_and(so.greater(size, 0.0), so.greater(length, 0.0))
    ratio = so.where(both, size / so.where(both, length, 1.0), 1.0) if adapts else 1.0
    new = _moved(Param, _rate(LearningRate) * ratio * trust)
    results = (new, moment1, moment2, Beta1Pow * beta1, Beta2Pow * beta2)
    return _unless(SkipUpdate, (Param, Moment1, Moment2, Beta1Pow, Beta2Pow), results)


@operator(outputs="ParamOut", ignored="multi_precision")
def proximal_gd(
    Param: Any, Grad: Any, LearningRate: Any, *, l1: float = 0.0, l2: float = 0.0
) -> Any:
    rate = _rate(LearningRate)
    return _proximal(Param - rate * _dense(Grad), rate, l1, l2)


@operator(outputs="ParamOut MomentOut")
def proximal_adagrad(
    Param: Any, Moment: Any, Grad: Any, LearningRate: Any, *, l1: float = 0.0, l2: float = 0.0
) -> Any:
    grad, rate = _dense(Grad), _rate(LearningRate)
    moment = Moment + so.square(grad)
    return _proximal(Param - rate * grad / so.sqrt(moment), rate, l1, l2), moment


def _proximal(ahead: Any, rate: Any, l1: float, l2: float) -> Any:
    shrunk = so.sign(ahead) * so.maximum(so.abs(ahead) - rate * l1, 0.0) if l1 > 0 else ahead
    return shrunk / (1 + rate * l2)


@operator(outputs="ParamOut")
def dpsgd(
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    *,
    clip: float = 10.0,
    batch_size: float = 16.0,
    sigma: float = 1.0,
    seed: int = 0,
) -> Any:
    grad = _dense(Grad)
    norm = so.global_norm(grad)
    clipped = grad / so.maximum(norm / clip, 1.0)
    noise = sigma * so.sym.random_normal(shape=(1,)) / batch_size
    return _moved(Param, _rate(LearningRate) * (clipped + noise))
