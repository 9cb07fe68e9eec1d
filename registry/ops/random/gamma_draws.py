"""Draws from the gamma and beta distributions, and their gradients.

A gamma draw ``z`` solves ``P(a, z) = u`` for a fixed ``u``, where ``P`` is its distribution
function, the regularized incomplete gamma function. Its derivative with respect to ``a`` is
therefore ``dz/da = -P_a / f``, where ``f = P_z`` is the density: implicit reparameterization. This
derivative is differentiated in the same way, and so on to every order.

Source: Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, 2018.
"""

import importlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, misuse, positive
from registry.differences import slope, summed_to
from registry.operator.operator import Grads
from registry.operator.signature import Array, Key
from registry.ops.core.broadcasting import cast, unbroadcast
from registry.ops.core.elementwise import sigmoid
from registry.ops.elementwise.gamma_integrals import gamma_draw_slope, incomplete_gamma_ratio
from registry.ops.random.sampling import (
    Given,
    Lengths,
    drawn_dtype,
    drawn_shape,
    fitted,
    result_dtype,
)
from registry.shapes import at_least_single
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var
from registry.xla.device_types import varied_alike

# gamma -----------------------------------------------------------------------------------------


def _gamma_shape(a: Shape, scale: Shape | None, *, shape: Shape | None) -> tuple[Shape, Shape]:
    drawn = drawn_shape(shape, a, scale)
    return drawn, drawn


def _gamma_dtype(a: VarType, scale: VarType | None, *, dtype: DType | None) -> list[DType]:
    chosen = drawn_dtype(dtype, a, scale)
    return [chosen, at_least_single(chosen)]


def _gamma_reference(
    a: Any, scale: Any, key: Any, *, shape: Shape | None, dtype: DType | None
) -> np.ndarray:
    chosen = result_dtype(dtype, [a, scale])
    scale = 1.0 if scale is None else scale
    places = np.broadcast_shapes(np.shape(a), np.shape(scale)) if shape is None else shape
    draw = jax.random.gamma(key, np.broadcast_to(a, places), dtype=at_least_single(chosen))
    return np.asarray(scale * np.asarray(draw))


def _moved(a: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The derivative of the draws ``z`` by ``a``, by differences of the quantile function."""
    scipy = importlib.import_module("scipy.special")
    place = scipy.gammainc(a, z)
    return slope(lambda at: scipy.gammaincinv(at, place), np.broadcast_to(a, np.shape(z)))


def _gamma_gradient_reference(
    a: np.ndarray,
    scale: Any,
    *,
    key: Any,
    d_out: np.ndarray,
    d_standard: np.ndarray,
    shape: Shape | None,
    dtype: DType | None,
) -> dict[str, Any]:
    places = np.broadcast_shapes(np.shape(a), np.shape(scale)) if shape is None else shape
    wide = at_least_single(result_dtype(dtype, [a, scale]))
    z = np.asarray(jax.random.gamma(key, np.broadcast_to(a, places), dtype=wide), np.float64)
    d_z = d_out * (1.0 if scale is None else scale) + d_standard
    gradients = {"a": summed_to(d_z * _moved(a, z), np.shape(a))}
    return (
        gradients
        if scale is None
        else {**gradients, "scale": summed_to(d_out * z, np.shape(scale))}
    )


@op(
    shape=_gamma_shape,
    dtype=_gamma_dtype,
    outputs=("out", "standard"),
    hidden=("standard",),
    reference=_gamma_reference,
    gradient_reference=_gamma_gradient_reference,
    native=False,  # the sampler rejects: its gradient is that of the implicit path, not the code's
    cases=[
        case(a=positive(3, 4), scale=positive(4), order=2),
        case(a=positive(3), shape=(2, 3), order=1),
        case(a=positive(), shape=3, order=1),
        case(a=positive(2), dtype="float32", order=1),
        case(a=positive(0), order=1),
        case(a=positive(2), scale=positive(2)),
        misuse("the parameters' shapes must broadcast to (2,), got (3,)", a=(3,), shape=(2,)),
    ],
)
def random_gamma(
    a: Array,
    scale: Given,
    key: Key,
    *,
    shape: Lengths | None = None,
    dtype: np.dtype | None = None,
) -> tuple[Array, Array]:
    """Gamma draws: ``scale z``, where ``z`` has the density ``z^(a - 1) exp(-z) / Gamma(a)``.

    ``scale`` defaults to 1. The draw is differentiable in both parameters; in ``a`` along the path
    on which it keeps its quantile.

    Source: Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, 2018.

    Example:
        >>> import jax
        >>> random_gamma(2.0, key=jax.random.key(0), shape=(3,)).shape
        (3,)
    """
    chosen = result_dtype(dtype, [a, scale])
    wide = at_least_single(chosen)
    places = fitted(shape, a, scale)
    at = lax.stop_gradient(jnp.broadcast_to(jnp.asarray(a).astype(wide), places))
    key, at = varied_alike([key, at])
    standard = jax.random.gamma(key, at, dtype=wide)
    out = standard if scale is None else standard * jnp.asarray(scale).astype(wide)
    return lax.convert_element_type(out, chosen), standard


@random_gamma.gradient
def _random_gamma_gradient(
    a: Var, scale: Var | None, standard: Var, d_out: Var, d_standard: Var | None
) -> Grads:
    d = cast(d_out, dtype=standard.dtype)
    d_z = d if scale is None else d * scale
    d_z = d_z if d_standard is None else d_z + d_standard
    return {
        "a": unbroadcast(d_z * gamma_draw_slope(cast(a, dtype=standard.dtype), standard), a),
        "scale": None if scale is None else unbroadcast(d * standard, scale),
    }


# beta ------------------------------------------------------------------------------------------


def _beta_shape(a: Shape, b: Shape, *, shape: Shape | None) -> tuple[Shape, Shape, Shape]:
    drawn = drawn_shape(shape, a, b)
    return drawn, drawn, drawn


def _beta_dtype(a: VarType, b: VarType, *, dtype: DType | None) -> list[DType]:
    chosen = drawn_dtype(dtype, a, b)
    return [chosen, at_least_single(chosen), at_least_single(chosen)]


def _beta_gradient_reference(
    a: np.ndarray,
    b: np.ndarray,
    *,
    key: Any,
    d_out: np.ndarray,
    d_log_first: np.ndarray,
    d_log_second: np.ndarray,
    shape: Shape | None,
    dtype: DType | None,
) -> dict[str, Any]:
    places = np.broadcast_shapes(np.shape(a), np.shape(b)) if shape is None else shape
    wide = at_least_single(result_dtype(dtype, [a, b]))
    z, w = (
        np.exp(np.asarray(jax.random.loggamma(one, np.broadcast_to(at, places), dtype=wide)))
        for one, at in zip(jax.random.split(key), (a, b), strict=True)
    )
    share = d_out * z * w / (z + w) ** 2
    return {
        "a": summed_to((share + d_log_first) * _moved(a, z) / z, np.shape(a)),
        "b": summed_to((d_log_second - share) * _moved(b, w) / w, np.shape(b)),
    }


@op(
    shape=_beta_shape,
    dtype=_beta_dtype,
    outputs=("out", "log_first", "log_second"),
    hidden=("log_first", "log_second"),
    gradient_reference=_beta_gradient_reference,
    native=False,  # as that of random_gamma
    # There is no reference: the distribution is tested, since no other library draws these numbers.
    cases=[
        case(a=positive(3, 4), b=positive(4), order=2),
        case(a=positive(3), b=positive(), shape=(2, 3), order=1),
        case(a=positive(), b=positive(), shape=3, order=1),
        case(a=positive(2), b=positive(2), dtype="float32", order=1),
        case(a=positive(0), b=positive(), order=1),
        case(a=positive(2), b=positive(2)),
        misuse("shapes must broadcast to (2,), got (3,) and ()", a=(3,), b=(), shape=(2,)),
    ],
)
def random_beta(
    a: Array,
    b: Array,
    key: Key,
    *,
    shape: Lengths | None = None,
    dtype: np.dtype | None = None,
) -> tuple[Array, Array, Array]:
    """Beta draws: numbers between 0 and 1 with density ``x^(a - 1) (1 - x)^(b - 1) / B(a, b)``.

    They are ``z / (z + w)`` for gamma draws ``z`` and ``w``, and are differentiable in ``a`` and
    ``b`` like these.

    Example:
        >>> import jax
        >>> random_beta(2.0, 3.0, key=jax.random.key(0), shape=(3,)).shape
        (3,)
    """
    chosen = result_dtype(dtype, [a, b])
    wide, places = at_least_single(chosen), fitted(shape, a, b)
    # Logarithms of the draws are used: draws for small parameters may underflow.
    logs = [
        _log_gamma(one, jnp.broadcast_to(jnp.asarray(at).astype(wide), places))
        for one, at in zip(jax.random.split(key), (a, b), strict=True)
    ]
    first, second = (lax.stop_gradient(one) for one in logs)
    return lax.convert_element_type(jax.nn.sigmoid(first - second), chosen), first, second


def _log_gamma(key: Key, at: Array) -> Array:
    key, at = varied_alike([key, at])
    return jax.random.loggamma(key, at, dtype=at.dtype)


@random_beta.gradient
def _random_beta_gradient(
    a: Var,
    b: Var,
    log_first: Var,
    log_second: Var,
    d_out: Var,
    d_log_first: Var | None,
    d_log_second: Var | None,
) -> Grads:
    # out = s = sigmoid(log z - log w): d out = s (1 - s) (dlog z - dlog w)
    gap = log_first - log_second
    d = cast(d_out, dtype=gap.dtype) * (sigmoid(gap) * sigmoid(-gap))

    def along(parameter: Var, log_draw: Var, d_log: Var, further: Var | None) -> Var | None:
        d_log = d_log if further is None else d_log + further
        slope = -incomplete_gamma_ratio(cast(parameter, dtype=log_draw.dtype), log_draw)
        return unbroadcast(d_log * slope, parameter)

    return {
        "a": along(a, log_first, d, d_log_first),
        "b": along(b, log_second, -d, d_log_second),
    }
