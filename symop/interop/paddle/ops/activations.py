"""Entrywise functions of one tensor."""

from collections.abc import Callable, Sequence
from typing import Any

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import operator

_PLAIN: dict[str, Callable[..., Any]] = {
    "abs": so.abs,
    "acos": so.acos,
    "acosh": so.acosh,
    "asin": so.asin,
    "asinh": so.asinh,
    "atan": so.atan,
    "atanh": so.atanh,
    "ceil": so.ceil,
    "cos": so.cos,
    "cosh": so.cosh,
    "digamma": so.digamma,
    "erf": so.erf,
    "erfinv": so.erfinv,
    "exp": so.exp,
    "expm1": so.expm1,
    "floor": so.floor,
    "lgamma": so.lgamma,
    "log": so.log,
    "log10": so.log10,
    "log1p": so.log1p,
    "log2": so.log2,
    "logsigmoid": so.log_sigmoid,
    "reciprocal": so.reciprocal,
    "relu": so.relu,
    "round": so.round,
    "rsqrt": so.rsqrt,
    "sigmoid": so.sigmoid,
    "silu": so.silu,
    "sign": so.sign,
    "sin": so.sin,
    "sinh": so.sinh,
    "softsign": so.softsign,
    "sqrt": so.sqrt,
    "square": so.square,
    "tan": so.tan,
    "tanh": so.tanh,
    "tanh_shrink": lambda x: so.subtract(x, so.tanh(x)),
    "trunc": so.trunc,
}


def _plain(name: str, function: Callable[..., Any]) -> None:
    @operator(name)
    def composed(X: Any) -> Any:
        return function(X)


for _name, _function in _PLAIN.items():
    _plain(_name, _function)


@operator()
def swish(X: Any, *, beta: float = 1.0) -> Any:
    return X * so.sigmoid(X if beta == 1 else beta * X)


@operator()
def mish(X: Any, *, threshold: float = 20.0) -> Any:
    return X * so.tanh(_softplus(X, threshold))


@operator()
def softplus(X: Any, *, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return X * 1.0 if beta == 0 else _softplus(beta * X, threshold) / beta


def _softplus(x: Any, threshold: float) -> Any:
    small = so.less_equal(x, threshold)
    return so.where(small, so.softplus(x), x)


@operator()
def soft_relu(X: Any, *, threshold: float = 40.0) -> Any:
    return so.softplus(so.clip(X, low=-threshold, high=threshold))


@operator()
def selu(X: Any, *, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772) -> Any:
    return scale * so.elu(X, alpha=alpha)


@operator()
def celu(X: Any, *, alpha: float = 1.0) -> Any:
    return so.elu(X / alpha, alpha=1.0) * alpha


@operator()
def thresholded_relu(X: Any, *, threshold: float = 1.0, value: float = 0.0) -> Any:
    return so.where(threshold < X, X, value)


@operator()
def hard_shrink(X: Any, *, threshold: float = 0.5) -> Any:
    return so.where(so.abs(X) > threshold, X, so.zeros_like(X))


@operator("softshrink", "soft_shrink")
def softshrink(X: Any, *, lambda_: float = 0.5) -> Any:
    return so.sign(X) * so.relu(so.abs(X) - lambda_)


@operator()
def brelu(X: Any, *, t_min: float = 0.0, t_max: float = 24.0) -> Any:
    return so.clip(X, low=t_min, high=t_max, ties="last")


@operator()
def stanh(X: Any, *, scale_a: float = 0.67, scale_b: float = 1.7159) -> Any:
    return scale_b * so.tanh(scale_a * X)


@operator("logit")
def logit(X: Any, *, eps: float = 1e-6) -> Any:
    inside = so.clip(X, low=eps, high=1 - eps)
    return so.log(inside / (1 - inside))


@operator(ignored="is_test")
def prelu(X: Any, Alpha: Any, *, mode: str = "all", data_format: str = "NCHW") -> Any:
    if mode == "all":
        slope = so.reshape(Alpha, shape=())
    elif mode == "channel":
        axis = X.ndim - 1 if data_format.endswith("C") else 1
        slope = so.reshape(Alpha, shape=tuple(-1 if i == axis else 1 for i in range(X.ndim)))
    elif mode == "element":
        slope = so.reshape(Alpha, shape=(1, *X.shape[1:]))
    else:
        raise PaddleError(f"prelu: mode must be all, channel or element, got {mode!r}")
    return so.where(X > 0, X, slope * X)


@operator()
def maxout(X: Any, *, groups: int, axis: int = 1) -> Any:
    at = axis % X.ndim
    lengths = (*X.shape[:at], X.shape[at] // groups, groups, *X.shape[at + 1 :])
    return so.max(so.reshape(X, shape=lengths), axis=at + 1)


@operator()
def log_softmax(X: Any, *, axis: int = -1) -> Any:
    return so.log_softmax(X, axis=axis)


@operator()
def pow(X: Any, FactorTensor: Any = None, *, factor: float = 1.0) -> Any:
    return so.power(X, factor if FactorTensor is None else so.reshape(FactorTensor, shape=()))


@operator()
def elu(X: Any, *, alpha: float = 1.0) -> Any:
    return so.elu(X, alpha=alpha)


@operator()
def leaky_relu(X: Any, *, alpha: float = 0.02) -> Any:
    return so.leaky_relu(X, slope=alpha)


@operator()
def relu6(X: Any, *, threshold: float = 6.0) -> Any:
    return so.clip(X, min=0.0, max=threshold)


@operator()
def hard_sigmoid(X: Any, *, slope: float = 0.2, offset: float = 0.5) -> Any:
    return so.clip(so.add(so.multiply(X, slope), offset), min=0.0, max=1.0)


@operator()
def hard_swish(X: Any, *, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0) -> Any:
    return so.multiply(X, so.divide(so.clip(so.add(X, offset), min=0.0, max=threshold), scale))


@operator()
def gelu(X: Any, *, approximate: bool = False) -> Any:
    return so.gelu(X, approximate=approximate)


@operator(ignored="is_test data_format")
def softmax(X: Any, *, axis: int = -1) -> Any:
    return so.softmax(X, axis=axis)


@operator("dropout", "dropout_nd", outputs="Out Mask", no_gradient="Seed", ignored="fix_seed seed")
def dropout(
    X: Any,
    Seed: Any = None,
    *,
    dropout_prob: float = 0.5,
    is_test: bool = False,
    dropout_implementation: str = "downgrade_in_infer",
    axis: Sequence[int] = (),
) -> Any:
    scale = _kept_scale(dropout_prob, dropout_implementation)
    if is_test:
        downgrades = dropout_implementation == "downgrade_in_infer"
        return so.multiply(X, 1.0 - dropout_prob) if downgrades else so.identity(X)
    if dropout_prob == 0:
        return so.identity(X), so.ones(shape=X.shape, dtype="uint8")
    shape = tuple(n if not axis or i in axis else 1 for i, n in enumerate(X.shape))
    kept = so.greater_equal(so.sym.random_uniform(shape=shape), dropout_prob)
    kept = so.broadcast_to(kept, shape=X.shape)
    out = so.where(kept, X if scale == 1 else X * scale, so.zeros_like(X))
    return out, so.cast(kept, dtype="uint8")


def _kept_scale(probability: float, implementation: str) -> float:
    """Returns the factor of entries that training keeps.

    Raises:
        PaddleError: no implementation has this name.
    """
    if implementation == "downgrade_in_infer" or probability == 1:
        return 1.0
    if implementation != "upscale_in_train":
        raise PaddleError(
            "dropout: dropout_implementation must be 'downgrade_in_infer' or 'upscale_in_train'"
            f", got {implementation!r}"
        )
    return 1.0 / (1.0 - probability)


@operator(
    "dropout_grad",
    "dropout_nd_grad",
    outputs="X@GRAD",
    ignored="fix_seed seed axis",
    no_gradient="Mask",
)
def dropout_gradient(
    Mask: Any,
    Out_GRAD: Any,
    *,
    dropout_prob: float = 0.5,
    is_test: bool = False,
    dropout_implementation: str = "downgrade_in_infer",
) -> Any:
    if is_test:
        downgrades = dropout_implementation == "downgrade_in_infer"
        return Out_GRAD * (1.0 - dropout_prob) if downgrades else so.identity(Out_GRAD)
    mask = so.cast(Mask, dtype=Out_GRAD.dtype)
    return Out_GRAD * mask * _kept_scale(dropout_prob, dropout_implementation)
