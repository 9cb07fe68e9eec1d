"""Entrywise functions of one tensor."""

from collections.abc import Callable, Sequence
from typing import Any

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import operator

_PLAIN: dict[str, Callable[..., Any]] = {
    "abs": so.abs,
    "acos": so.acos,
    "asin": so.asin,
    "atan": so.atan,
    "ceil": so.ceil,
    "cos": so.cos,
    "cosh": so.cosh,
    "erf": so.erf,
    "exp": so.exp,
    "floor": so.floor,
    "log": so.log,
    "log1p": so.log1p,
    "logsigmoid": so.log_sigmoid,
    "reciprocal": so.reciprocal,
    "relu": so.relu,
    "round": so.round,
    "rsqrt": so.rsqrt,
    "sigmoid": so.sigmoid,
    "sign": so.sign,
    "sin": so.sin,
    "sinh": so.sinh,
    "softsign": so.softsign,
    "sqrt": so.sqrt,
    "square": so.square,
    "tan": so.tan,
    "tanh": so.tanh,
}


def _plain(name: str, function: Callable[..., Any]) -> None:
    @operator(name)
    def composed(X: Any) -> Any:
        return function(X)


for _name, _function in _PLAIN.items():
    _plain(_name, _function)


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
