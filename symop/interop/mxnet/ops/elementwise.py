"""Entrywise unary functions, and functions that define their own gradient."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.cast_through import cast_back
from symop.interop.mxnet.ops.values import (
    SINGLE_PI,
    Dtype,
    fixed,
    floating,
    is_whole,
    kept,
    number_for,
    registered,
    single,
)
from symop.interop.mxnet.partial_shapes import Shapes, enter, merged, same

Function = Callable[[Any], Any]

# Rounding --------------------------------------------------------------------------------------


def absolute(data: Any) -> Any:
    """``|data|`` with slope zero at zero, unlike the catalogue's ``abs``."""
    return so.multiply(data, so.sign(data))


def rounded(data: Any) -> Any:
    """The nearest integer; ties are rounded away from zero."""
    whole = so.trunc(data)
    away = so.greater_equal(so.abs(so.subtract(data, whole)), 0.5)
    return so.where(away, so.add(whole, so.sign(data)), whole)


def rounded_down(data: Any) -> Any:
    """The nearest integer; ties are rounded down."""
    low, high = so.floor(data), so.ceil(data)
    nearer = so.less_equal(so.subtract(data, low), so.subtract(high, data))
    return so.where(nearer, low, high)


def rectified(data: Any) -> Any:
    """The positive part; NaN has the gradient NaN, as in MXNet."""
    if is_whole(data):
        return so.relu(data)
    return so.where(so.isnan(data), so.square(data), so.relu(data))


# Functions without attributes ------------------------------------------------------------------


def _scaled(factor: float) -> Function:
    return lambda data: so.multiply(data, factor)


# These give integers for integers without rounding.
_EXACT: Mapping[str, Function] = {
    "abs": absolute,
    "sign": so.sign,
    "round": rounded,
    "rint": rounded_down,
    "ceil": so.ceil,
    "floor": so.floor,
    "trunc": so.trunc,
    "fix": so.trunc,
    "square": so.square,
    "negative": so.negative,
    "relu": rectified,
    "logical_not": so.logical_not,
    "_copy": so.identity,
    "BlockGrad": so.stop_gradient,
    "zeros_like": so.zeros_like,
    "ones_like": so.ones_like,
    "_contrib_round_ste": lambda data: so.add(
        data, so.stop_gradient(so.subtract(rounded(data), data))
    ),
}
# These are computed on floating numbers, and rounded toward zero for integers.
_REAL: Mapping[str, Function] = {
    "sqrt": so.sqrt,
    "rsqrt": so.rsqrt,
    "cbrt": so.cbrt,
    "rcbrt": so.rcbrt,
    "exp": so.exp,
    "log": so.log,
    "log10": so.log10,
    "log2": so.log2,
    "log1p": so.log1p,
    "expm1": so.expm1,
    "gamma": so.gamma,
    "gammaln": so.lgamma,
    "digamma": so.digamma,
    "sin": so.sin,
    "cos": so.cos,
    "tan": so.tan,
    "arcsin": so.asin,
    "arccos": so.acos,
    "arctan": so.atan,
    "degrees": _scaled(float(np.float32(180) / SINGLE_PI)),
    "radians": _scaled(float(SINGLE_PI / np.float32(180))),
    "sinh": so.sinh,
    "cosh": so.cosh,
    "tanh": so.tanh,
    "arcsinh": so.asinh,
    "arccosh": so.acosh,
    "arctanh": so.atanh,
    "sigmoid": so.sigmoid,
    "log_sigmoid": so.log_sigmoid,
    "mish": so.mish,
    "softsign": so.softsign,
    "erf": so.erf,
    "erfinv": so.erfinv,
    "reciprocal": so.reciprocal,
    "_contrib_sign_ste": so.sign_straight_through,
    "_contrib_div_sqrt_dim": lambda data: so.divide(data, math.sqrt(data.shape[-1])),
}
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "_copy": ("identity", "_copyto", "_CrossDeviceCopy"),
    "BlockGrad": ("stop_gradient", "_sparse_stop_gradient"),
}
_ONLY_DENSE = {
    "_copy", "BlockGrad", "logical_not", "ones_like", "rcbrt", "digamma", "log_sigmoid", "mish",
    "softsign", "erf", "erfinv", "reciprocal", "_contrib_div_sqrt_dim", "_contrib_round_ste",
    "_contrib_sign_ste",
}  # fmt: skip
_SINGLE = "in float64, too, its constant is that of float32, as in MXNet"
_RIGHT = "the second order, in which MXNet is wrong, is right"
_NOTES = {
    "degrees": _SINGLE,
    "radians": f"{_SINGLE}; {_RIGHT}",
    "arcsinh": _RIGHT,
    "arccosh": _RIGHT,
}


def _declare(name: str, function: Function, real: bool) -> None:
    sparse = (f"_sparse_{name}",) if name not in _ONLY_DENSE else ()
    names = (name, *_ALIASES.get(name, ()), *sparse)

    # The result of logical_not has another dtype, and must be cast.
    direct = None if name == "logical_not" else registered(function)

    @operator(*names, shapes=same, note=_NOTES.get(name, ""), direct=direct)
    def call(data: Any) -> Any:
        return kept(data, function(floating(data) if real else data))


for _name, _function in _EXACT.items():
    _declare(_name, _function, real=False)
for _name, _function in _REAL.items():
    _declare(_name, _function, real=True)

# Functions with attributes ---------------------------------------------------------------------


@operator("hard_sigmoid", shapes=same)
def hard_sigmoid(data: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    """``alpha * data + beta``, clipped to [0, 1]."""
    line = so.add(so.multiply(floating(data), single(alpha)), single(beta))
    return kept(data, so.clip(line, low=0.0, high=1.0, ties="last"))


@operator("smooth_l1", shapes=same, ignored=("is_int",))
def smooth_l1(data: Any, *, scalar: float = 1.0) -> Any:
    """``|data|``, with a parabola where it is less than ``1 / scalar^2``."""
    return kept(data, so.smooth_l1(floating(data), scalar=scalar))


@operator(
    "clip",
    "_sparse_clip",
    shapes=same,
    note="the second order, which is zero, is right; MXNet's is not",
)
def clip(data: Any, *, a_min: float, a_max: float) -> Any:
    """``data`` clipped to [``a_min``, ``a_max``]; the slope at a bound is one."""
    low, high = (number_for(data, single(bound)) for bound in (a_min, a_max))
    return kept(data, so.clip(data, low=float(low), high=float(high), ties="first"))


@operator("_contrib_quadratic", shapes=same)
def quadratic(data: Any, *, a: float = 0.0, b: float = 0.0, c: float = 0.0) -> Any:
    """``a * data^2 + b * data + c``."""
    x = floating(data)
    inner = so.add(so.multiply(x, single(a)), single(b))
    return kept(data, so.add(so.multiply(x, inner), single(c)))


# Custom gradients ------------------------------------------------------------------------------


@operator("make_loss", "_sparse_make_loss", shapes=same, outputs=lambda: ("loss",))
def make_loss(data: Any) -> Any:
    """``data`` as a loss: its gradient is one."""
    return so.make_loss(data)


@operator("_contrib_gradientmultiplier", shapes=same, ignored=("is_int",))
def gradient_multiplier(data: Any, *, scalar: float = 1.0) -> Any:
    """``data``, with its gradient multiplied by ``scalar``."""
    return so.gradient_multiplier(data, factor=scalar)


@operator("_identity_with_attr_like_rhs", shapes=same)
def identity_like(lhs: Any, rhs: Any) -> Any:
    """``lhs``, with the shape and dtype of ``rhs``."""
    return fixed(lhs, rhs)


# Casts -----------------------------------------------------------------------------------------

_NARROW = ("float32", "float16", "bfloat16")


@operator(
    "Cast",
    "cast",
    shapes=same,
    note="in a symbol, the gradient is cast to integers, as in MXNet, if these are an argument, an "
    "output, or cast back at once; it does not pass through other operators of integers",
)
def cast(data: Any, *, dtype: Dtype) -> Any:
    """``data`` cast to another dtype."""
    return cast_back(data, dtype)


@operator("amp_cast", shapes=same, dtypes="free")
def amp_cast(data: Any, *, dtype: Dtype) -> Any:
    """``data`` cast to another dtype, if its own is float32 or narrower."""
    return so.cast(data, dtype=dtype) if data.dtype.name in _NARROW else so.identity(data)


def _pair_shapes(given: Shapes, found: Shapes) -> None:
    for i, shape in enumerate(map(merged, given, found)):
        enter(given, i, shape)
        enter(found, i, shape)


def _numbered(num_outputs: int) -> tuple[str, ...]:
    if num_outputs == 1:
        return ("output",)
    return tuple(f"output{i}" for i in range(num_outputs))


@operator("amp_multicast", shapes=_pair_shapes, outputs=_numbered, dtypes="free")
def amp_multicast(*args: Any, num_outputs: int, cast_narrow: bool = False) -> tuple[Any, ...]:
    """All arrays cast to their widest dtype, or to the narrowest; float64 is kept."""
    if len(args) != num_outputs:
        raise MXNetError(f"amp_multicast: num_outputs must be {len(args)}, got {num_outputs}")
    dtype = _common([one.dtype.name for one in args], cast_narrow)
    return tuple(so.cast(x, dtype=dtype) if x.dtype.name in _NARROW else x for x in args)


def _common(dtypes: list[str], narrow: bool) -> str:
    """The target dtype of ``amp_multicast``."""
    for dtype in ("float16", "bfloat16") if narrow else ("float32",):
        if dtype in dtypes:
            return dtype
    return "float32" if narrow else dtypes[0]
