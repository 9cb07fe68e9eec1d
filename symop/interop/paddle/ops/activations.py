"""Entrywise functions of one tensor."""

from collections.abc import Callable
from typing import Any

import symop as so
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


@operator(outputs="Out Mask")
def dropout(
    X: Any,
    Seed: Any = None,
    *,
    dropout_prob: float = 0.5,
    is_test: bool = False,
    dropout_implementation: str = "downgrade_in_infer",
    fix_seed: bool = False,
    seed: int = 0,
) -> Any:
    kept = 1.0 - dropout_prob
    downgrades = dropout_implementation == "downgrade_in_infer"
    if is_test:
        return so.multiply(X, kept) if downgrades else so.identity(X)
    if dropout_prob == 0:
        mask = so.ones_like(X)
    else:
        mask = so.cast(so.less(so.sym.random_uniform(shape=X.shape), kept), dtype=X.dtype)
        mask = mask if downgrades else so.divide(mask, kept)
    return so.multiply(X, mask), mask


@operator("dropout_grad", outputs="X@GRAD")
def dropout_gradient(
    Mask: Any,
    Out_GRAD: Any,
    *,
    dropout_prob: float = 0.5,
    is_test: bool = False,
    dropout_implementation: str = "downgrade_in_infer",
    fix_seed: bool = False,
    seed: int = 0,
) -> Any:
    return so.multiply(Out_GRAD, Mask)
