"""Random draws: from distributions with numeric or array parameters, of classes, of permutations.

Draws have no gradient with respect to the parameters.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import numpy as np

import symop as so
from registry.types import is_floating
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import Draws, are_arrays, fixed, made
from symop.interop.mxnet.partial_shapes import Shapes, enter, merged, same

Shape = tuple[int, ...]
Draw = Callable[..., Any]
_DEVICE = ("ctx",)
_FEW = 1 << 16
"""The number of entries up to which an array is drawn by a program for all shapes."""


def _exponential(lam: Any, **how: Any) -> Any:
    return so.random_exponential(so.reciprocal(lam), **how)


def _negative_binomial(k: Any, p: Any, *, shape: Shape, dtype: Any) -> Any:
    odds = so.divide(so.subtract(1.0, p), p)
    return so.random_poisson(so.random_gamma(k, odds, shape=shape), dtype=dtype)


def _generalized_negative_binomial(mu: Any, alpha: Any, *, shape: Shape, dtype: Any) -> Any:
    pure = so.equal(alpha, 0)
    spread = so.where(pure, 1.0, alpha)
    mixed = so.random_gamma(so.reciprocal(spread), so.multiply(spread, mu), shape=shape)
    return so.random_poisson(so.where(pure, mu, mixed), dtype=dtype)


def _of_numbers(
    draw: Draw, numbers: Sequence[float], shape: Shape, dtype: Any, like: Any = None
) -> Any:
    """Draws with numeric parameters, as a value of the kind of ``like``."""
    parameters = [
        made("full", like=like, shape=(), fill_value=float(number), dtype="float32")
        for number in numbers
    ]
    whole, dtype = tuple(shape) or (1,), dtype or "float32"
    if like is None and are_arrays() and 0 < math.prod(whole) <= _FEW and _is_on_host():
        return _cut(draw(*parameters, shape=(_rounded(math.prod(whole)),), dtype=dtype), whole)
    found = draw(*parameters, shape=whole, dtype=dtype)
    return found if like is None else fixed(found, like)


def _is_on_host() -> bool:
    """Whether arrays are in the memory of the host."""
    return jax.default_backend() == "cpu"


def _rounded(count: int) -> int:
    """The next power of two, so that few programs draw arrays of all shapes."""
    return max(64, 1 << (count - 1).bit_length())


def _cut(flat: so.NDArray, shape: Shape) -> so.NDArray:
    """The first entries of ``flat``, in ``shape``; nothing is compiled."""
    return so.NDArray(np.asarray(flat.value)[: math.prod(shape)].reshape(shape))


def _require(holds: bool, what: str, got: float) -> None:
    if not holds:
        raise MXNetError(f"random: {what}, got {got}")


def _check_bounds(low: float, high: float) -> None:
    _require(low <= high, f"high must be at least low, which is {low}", high)


def _check_scale(scale: float) -> None:
    _require(scale > 0, "scale must be positive", scale)


def _check_gamma(alpha: float, beta: float) -> None:
    _require(alpha > 0, "alpha must be positive", alpha)
    _require(beta > 0, "beta must be positive", beta)


def _check_rate(lam: float) -> None:
    _require(lam > 0, "lam must be positive", lam)


def _check_mean(lam: float) -> None:
    _require(lam >= 0, "lam must not be negative", lam)


def _check_successes(k: int, p: float) -> None:
    _require(k >= 0, "k must not be negative", k)
    _require(p >= 0, "p must not be negative", p)


def _check_spread(mu: float, alpha: float) -> None:
    _require(mu >= 0, "mu must not be negative", mu)
    _require(alpha >= 0, "alpha must not be negative", alpha)


def _like(draw: Draw, numbers: Sequence[float], data: Any) -> Any:
    """Draws in the shape and the dtype of ``data``."""
    return _of_numbers(draw, numbers, data.shape, data.dtype, like=data)


def _of_arrays(draw: Draw, arrays: Sequence[Any], shape: Shape, dtype: Any) -> Any:
    """Draws of ``shape`` for each entry of the parameters, along new trailing axes."""
    full = (*arrays[0].shape, *shape)
    parameters = []
    for array in arrays:
        real = so.cast(array, dtype=array.dtype if is_floating(array.dtype) else "float32")
        parameters.append(so.reshape(real, shape=(*array.shape, *[1] * len(shape))))
    return so.stop_gradient(draw(*parameters, shape=full, dtype=dtype or "float32"))


def _sample_shapes(given: Shapes, found: Shapes, shape: Shape) -> None:
    """All parameters have the same shape, to which draws add axes."""
    out = found[0]
    same(given, [])
    if out is not None and len(out) > len(shape):
        given[:] = [merged(one, out[: len(out) - len(shape)]) for one in given]
    if given[0]:
        enter(found, 0, (*given[0], *shape))


# Uniform ---------------------------------------------------------------------------------------


@operator("_random_uniform", "random_uniform", "uniform", ignored=_DEVICE, check=_check_bounds)
def random_uniform(
    *, low: float = 0.0, high: float = 1.0, shape: Shape = (), dtype: Draws | None = None
) -> Any:
    """Uniform draws from ``[low, high)``."""
    return _of_numbers(so.random_uniform, (low, high), shape, dtype)


@operator("_random_uniform_like", shapes=same, check=_check_bounds)
def random_uniform_like(data: Any, *, low: float = 0.0, high: float = 1.0) -> Any:
    """Uniform draws from ``[low, high)``, in the shape of ``data``."""
    return _like(so.random_uniform, (low, high), data)


@operator("_sample_uniform", "sample_uniform", shapes=_sample_shapes)
def sample_uniform(low: Any, high: Any, *, shape: Shape = (), dtype: Draws | None = None) -> Any:
    """Uniform draws for each pair of bounds."""
    return _of_arrays(so.random_uniform, (low, high), shape, dtype)


# Normal ----------------------------------------------------------------------------------------


@operator("_random_normal", "random_normal", "normal", ignored=_DEVICE, check=_check_scale)
def random_normal(
    *, loc: float = 0.0, scale: float = 1.0, shape: Shape = (), dtype: Draws | None = None
) -> Any:
    """Normal draws of mean ``loc`` and standard deviation ``scale``."""
    return _of_numbers(so.random_normal, (loc, scale), shape, dtype)


@operator("_random_normal_like", shapes=same, check=_check_scale)
def random_normal_like(data: Any, *, loc: float = 0.0, scale: float = 1.0) -> Any:
    """Normal draws in the shape of ``data``."""
    return _like(so.random_normal, (loc, scale), data)


@operator("_sample_normal", "sample_normal", shapes=_sample_shapes)
def sample_normal(mu: Any, sigma: Any, *, shape: Shape = (), dtype: Draws | None = None) -> Any:
    """Normal draws for each mean and standard deviation."""
    return _of_arrays(so.random_normal, (mu, sigma), shape, dtype)


# Gamma -----------------------------------------------------------------------------------------


@operator("_random_gamma", "random_gamma", ignored=_DEVICE, check=_check_gamma)
def random_gamma(
    *, alpha: float = 1.0, beta: float = 1.0, shape: Shape = (), dtype: Draws | None = None
) -> Any:
    """Gamma draws of shape ``alpha`` and scale ``beta``."""
    return _of_numbers(so.random_gamma, (alpha, beta), shape, dtype)


@operator("_random_gamma_like", shapes=same, check=_check_gamma)
def random_gamma_like(data: Any, *, alpha: float = 1.0, beta: float = 1.0) -> Any:
    """Gamma draws in the shape of ``data``."""
    return _like(so.random_gamma, (alpha, beta), data)


@operator("_sample_gamma", "sample_gamma", shapes=_sample_shapes)
def sample_gamma(alpha: Any, beta: Any, *, shape: Shape = (), dtype: Draws | None = None) -> Any:
    """Gamma draws for each shape and scale."""
    return _of_arrays(so.random_gamma, (alpha, beta), shape, dtype)


# Exponential and Poisson -----------------------------------------------------------------------


@operator("_random_exponential", "random_exponential", ignored=_DEVICE, check=_check_rate)
def random_exponential(*, lam: float = 1.0, shape: Shape = (), dtype: Draws | None = None) -> Any:
    """Exponential draws of rate ``lam``."""
    return _of_numbers(_exponential, (lam,), shape, dtype)


@operator("_random_exponential_like", shapes=same, check=_check_rate)
def random_exponential_like(data: Any, *, lam: float = 1.0) -> Any:
    """Exponential draws in the shape of ``data``."""
    return _like(_exponential, (lam,), data)


@operator("_sample_exponential", "sample_exponential", shapes=_sample_shapes)
def sample_exponential(lam: Any, *, shape: Shape = (), dtype: Draws | None = None) -> Any:
    """Exponential draws for each rate."""
    return _of_arrays(_exponential, (lam,), shape, dtype)


@operator("_random_poisson", "random_poisson", ignored=_DEVICE, check=_check_mean)
def random_poisson(*, lam: float = 1.0, shape: Shape = (), dtype: Draws | None = None) -> Any:
    """Poisson draws of mean ``lam``."""
    return _of_numbers(so.random_poisson, (lam,), shape, dtype)


@operator("_random_poisson_like", shapes=same, check=_check_mean)
def random_poisson_like(data: Any, *, lam: float = 1.0) -> Any:
    """Poisson draws in the shape of ``data``."""
    return _like(so.random_poisson, (lam,), data)


@operator("_sample_poisson", "sample_poisson", shapes=_sample_shapes)
def sample_poisson(lam: Any, *, shape: Shape = (), dtype: Draws | None = None) -> Any:
    """Poisson draws for each mean."""
    return _of_arrays(so.random_poisson, (lam,), shape, dtype)


# Negative binomial -----------------------------------------------------------------------------


@operator(
    "_random_negative_binomial", "random_negative_binomial", ignored=_DEVICE, check=_check_successes
)
def random_negative_binomial(
    *, k: int = 1, p: float = 1.0, shape: Shape = (), dtype: Draws | None = None
) -> Any:
    """The numbers of failures before ``k`` successes of probability ``p``."""
    return _of_numbers(_negative_binomial, (k, p), shape, dtype)


@operator("_random_negative_binomial_like", shapes=same, check=_check_successes)
def random_negative_binomial_like(data: Any, *, k: int = 1, p: float = 1.0) -> Any:
    """Draws as in ``_random_negative_binomial``, in the shape of ``data``."""
    return _like(_negative_binomial, (k, p), data)


@operator("_sample_negative_binomial", "sample_negative_binomial", shapes=_sample_shapes)
def sample_negative_binomial(
    k: Any, p: Any, *, shape: Shape = (), dtype: Draws | None = None
) -> Any:
    """Draws as in ``_random_negative_binomial``, for each ``k`` and ``p``."""
    return _of_arrays(_negative_binomial, (k, p), shape, dtype)


@operator(
    "_random_generalized_negative_binomial",
    "random_generalized_negative_binomial",
    ignored=_DEVICE,
    check=_check_spread,
)
def random_generalized_negative_binomial(
    *, mu: float = 1.0, alpha: float = 1.0, shape: Shape = (), dtype: Draws | None = None
) -> Any:
    """Draws of mean ``mu`` and variance ``mu + alpha * mu^2``."""
    return _of_numbers(_generalized_negative_binomial, (mu, alpha), shape, dtype)


@operator("_random_generalized_negative_binomial_like", shapes=same, check=_check_spread)
def random_generalized_negative_binomial_like(
    data: Any, *, mu: float = 1.0, alpha: float = 1.0
) -> Any:
    """Draws of mean ``mu`` and variance ``mu + alpha * mu^2``, in the shape of ``data``."""
    return _like(_generalized_negative_binomial, (mu, alpha), data)


@operator(
    "_sample_generalized_negative_binomial",
    "sample_generalized_negative_binomial",
    shapes=_sample_shapes,
)
def sample_generalized_negative_binomial(
    mu: Any, alpha: Any, *, shape: Shape = (), dtype: Draws | None = None
) -> Any:
    """Draws for each mean ``mu`` and variance ``mu + alpha * mu^2``."""
    return _of_arrays(_generalized_negative_binomial, (mu, alpha), shape, dtype)


# Integers, classes, permutations ---------------------------------------------------------------


@operator("_random_randint", "random_randint", ignored=_DEVICE)
def random_randint(
    *, low: int, high: int, shape: Shape = (), dtype: Literal["int32", "int64"] | None = None
) -> Any:
    """Uniform integers from ``low``, inclusive, to ``high``, exclusive."""
    full = tuple(shape) or (1,)
    return made("random_integers", low=low, high=high, shape=full, dtype=dtype or "int32")


def _multinomial_outputs(get_prob: bool) -> tuple[str, ...]:
    return ("output0", "output1") if get_prob else ("output",)


@operator("_sample_multinomial", "sample_multinomial", outputs=_multinomial_outputs)
def sample_multinomial(
    data: Any,
    *,
    shape: Shape = (),
    get_prob: bool = False,
    dtype: Literal["uint8", "int32", "float16", "float32", "float64"] = "int32",
) -> Any:
    """Classes drawn by the probabilities along the last axis, and their log probabilities.

    The gradient of the log probability is that of the logarithm of the drawn entry.
    """
    *rows, classes = data.shape
    full = (*rows, *shape) or (1,)
    wide = so.reshape(data, shape=(*rows, *[1] * (len(full) - len(rows)), classes))
    drawn = so.random_categorical(so.log(wide), shape=full)
    result = fixed(so.cast(drawn, dtype=dtype), data)
    if not get_prob:
        return result
    return result, so.log(so.pick(so.broadcast_to(wide, shape=(*full, classes)), drawn))


@operator("_shuffle", "shuffle", shapes=same)
def shuffle(data: Any) -> Any:
    """``data`` with its slices along the first axis in random order."""
    return so.random_permutation(data)
