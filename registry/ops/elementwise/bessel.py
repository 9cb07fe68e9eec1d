"""Modified Bessel functions of the first kind, and the normalized sinc function.

The derivatives of each are other members of its family. Formulas with quotients, which are not
defined at zero, are thus avoided, and derivatives of every order are right there.

Source: NIST Digital Library of Mathematical Functions, 10.25.2, 10.29.1 and 10.40.1.
"""

import functools
import importlib
import math
from collections.abc import Callable
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, misuse, uniform
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import single, unbroadcast
from registry.ops.core.entrywise import entrywise
from registry.ops.elementwise.extrema import sign
from registry.ops.elementwise.special import of_scipy
from registry.shapes import at_least_single, strong_real_inexact
from registry.var import Var

_HIGHEST = 48
"""The highest order. A derivative of order ``k`` of a function of order ``n`` is of ``n + k``."""
_Order = Annotated[int, Check(f"lie in [0, {_HIGHEST}]", lambda n: 0 <= n <= _HIGHEST)]
_ORDER_MISUSE = misuse(f"attribute 'n' must lie in [0, {_HIGHEST}], got -1", x=(3,), n=-1)

# Modified Bessel functions ----------------------------------------------------------------------


_BY_SERIES = 8
"""The highest order whose asymptotic series is accurate from 20 on, where the other ends."""


def _bessel(x: Array, n: int, *, scaled: bool) -> Array:
    """``I_n(x)``, or ``exp(-|x|) I_n(x)``: asymptotically for large ``x``."""
    dtype = jnp.asarray(x).dtype
    x = jnp.asarray(x, at_least_single(dtype))
    switch = max(20.0, n * n / 4.0)
    large = jnp.abs(x) > switch
    near, far = jnp.where(large, 0.0, x), jnp.where(large, jnp.abs(x), switch)
    below = (_by_series if n <= _BY_SERIES else _by_ratios)(near, n, scaled=scaled)
    asymptotic = _asymptotic(far, n)
    if not scaled:  # infinity times zero is not defined
        asymptotic = jnp.where(far == jnp.inf, jnp.inf, _unscaled(asymptotic, far))
    if n % 2:
        asymptotic = jnp.where(x < 0, -asymptotic, asymptotic)
    return jnp.where(large, asymptotic, below).astype(dtype)


def _unscaled(out: Array, size: Array) -> Array:
    """``out exp(size)``, which overflows later than ``exp(size)``."""
    half = jnp.exp(0.5 * size)
    return out * half * half


def _by_series(x: Array, n: int, *, scaled: bool) -> Array:
    """``I_n(x)``, or ``exp(-|x|) I_n(x)``, by its power series, for ``|x| <= 20``."""
    square, series = 0.25 * x * x, jnp.ones_like(x)
    for k in range(40, 0, -1):
        series = 1.0 + series * square / (k * (k + n))
    series = series * lax.integer_pow(0.5 * x, n) / float(math.factorial(n))
    return series * jnp.exp(-jnp.abs(x)) if scaled else series


def _by_ratios(x: Array, n: int, *, scaled: bool) -> Array:
    """``I_n(x)``, or ``exp(-|x|) I_n(x)``, from a lower order, for ``|x| <= n^2 / 4``.

    The ratios ``r_k = I_k(x) / I_(k-1)(x) = x / (2 k + x r_(k+1))`` are computed downwards, which
    is stable. From order ``3 n`` to ``n`` an error becomes smaller by ``exp(-8 n^2 / |x|)``, at
    least ``exp(-32)``.
    """
    first = 3.0 * n + 0.5
    ratio = x / (first + jnp.sqrt((first + 1.0) ** 2 + x * x))
    ratios = []
    for k in range(3 * n, _BY_SERIES, -1):
        ratio = x / (2.0 * k + x * ratio)
        ratios.append(ratio)
    out = functools.reduce(
        lambda product, one: product * one,
        reversed(ratios[2 * n :]),
        _bessel(x, _BY_SERIES, scaled=True),
    )
    return out if scaled else _unscaled(out, jnp.abs(x))


def _asymptotic(x: Array, n: int) -> Array:
    """``exp(-x) I_n(x)`` by its asymptotic series, for positive ``x``."""
    series = jnp.ones_like(x)
    for k in range(30, 0, -1):
        series = 1.0 - series * ((4 * n * n - (2 * k - 1) ** 2) / (8 * k)) / x
    return series * lax.rsqrt(2.0 * math.pi * x)


def _scaled(slope: Var, x: Var, out: Var, d_out: Var, again: Callable[[Var], Any]) -> Var | None:
    """The gradient of ``exp(-|x|) f(x)``, given ``slope``, which is ``exp(-|x|) f'(x)``."""
    # It is close to what is subtracted for large x, so 16 bits do not suffice for them.
    at = single(x)
    out = out if at.dtype == x.dtype else again(at)
    return unbroadcast(d_out * (slope - sign(at) * out), x)


@entrywise(
    of_scipy("iv"),
    samples={"n": 2},
    dtype=strong_real_inexact,
    rtol=256,
    cases=[case(x=uniform(4, low=-30, high=30), n=3, rtol=1024, order=1), _ORDER_MISUSE],
)
def bessel_i(x: Array, *, n: _Order) -> Array:
    """Modified Bessel function of the first kind and of integer order ``n``, ``I_n(x)``.

    The order may be up to 48; that of a derivative of order ``k`` is ``n + k``.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_i(jnp.asarray([0.0, 1.0]), n=2)
        Array([0.       , 0.1357...], dtype=float32)
    """
    return _bessel(x, n, scaled=False)


@bessel_i.gradient
def _bessel_i_gradient(x: Var, d_out: Var, *, n: int) -> Grads:
    # I_n' = (I_(n-1) + I_(n+1)) / 2, where I_(-1) = I_1
    return {"x": d_out * ((bessel_i(x, n=abs(n - 1)) + bessel_i(x, n=n + 1)) * 0.5)}


@entrywise(
    of_scipy("ive"),
    samples={"n": 2},
    dtype=strong_real_inexact,
    rtol=256,
    cases=[
        case(x=uniform(4, low=-30, high=30), n=3, rtol=1024, order=1),
        _ORDER_MISUSE,
    ],
)
def bessel_ie(x: Array, *, n: _Order) -> Array:
    """Exponentially scaled modified Bessel function, ``exp(-|x|) I_n(x)``; zero at infinity.

    The order may be up to 48; that of a derivative of order ``k`` is ``n + k``.

    At zero, where ``|x|`` has no derivative, that is taken as zero.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_ie(jnp.asarray([0.0, jnp.inf]), n=2)
        Array([0., 0.], dtype=float32)
    """
    return _bessel(x, n, scaled=True)


@bessel_ie.gradient
def _bessel_ie_gradient(x: Var, out: Var, d_out: Var, *, n: int) -> Grads:
    at = single(x)
    slope = (bessel_ie(at, n=abs(n - 1)) + bessel_ie(at, n=n + 1)) * 0.5
    return {"x": _scaled(slope, x, out, d_out, functools.partial(bessel_ie, n=n))}


@entrywise(of_scipy("i0"), dtype=strong_real_inexact, rtol=256, aliases=["i0"])
def bessel_i0(x: Array) -> Array:
    """Modified Bessel function of the first kind of order 0, which grows like ``exp(|x|)``.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_i0(jnp.asarray([0.0, -jnp.inf]))
        Array([ 1., inf], dtype=float32)
    """
    return _bessel(x, 0, scaled=False)


@bessel_i0.gradient
def _bessel_i0_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": d_out * bessel_i1(x)}


@entrywise(
    of_scipy("i1"),
    dtype=strong_real_inexact,
    rtol=256,
    aliases=["i1"],
    # I_1' = (I_0 + I_2) / 2
    d_x=lambda x, d_out: d_out * ((bessel_i0(x) + bessel_i(x, n=2)) * 0.5),
)
def bessel_i1(x: Array) -> Array:
    """Modified Bessel function of the first kind of order 1: the derivative of ``bessel_i0``.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_i1(jnp.asarray([0.0, -jnp.inf]))
        Array([  0., -inf], dtype=float32)
    """
    return _bessel(x, 1, scaled=False)


@entrywise(of_scipy("i0e"), dtype=strong_real_inexact, rtol=256, aliases=["i0e"])
def bessel_i0e(x: Array) -> Array:
    """Exponentially scaled modified Bessel function of order 0: ``exp(-|x|) bessel_i0(x)``.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_i0e(jnp.asarray([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    return _bessel(x, 0, scaled=True)


@bessel_i0e.gradient
def _bessel_i0e_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    return {"x": _scaled(bessel_i1e(single(x)), x, out, d_out, bessel_i0e)}  # I_0' = I_1


@entrywise(
    of_scipy("i1e"),
    dtype=strong_real_inexact,
    rtol=256,
    aliases=["i1e"],
)
def bessel_i1e(x: Array) -> Array:
    """Exponentially scaled modified Bessel function of order 1: ``exp(-|x|) bessel_i1(x)``.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_i1e(jnp.asarray([0.0, jnp.inf]))
        Array([0., 0.], dtype=float32)
    """
    return _bessel(x, 1, scaled=True)


@bessel_i1e.gradient
def _bessel_i1e_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    at = single(x)
    slope = (bessel_i0e(at) + bessel_ie(at, n=2)) * 0.5  # I_1' = (I_0 + I_2) / 2
    return {"x": _scaled(slope, x, out, d_out, bessel_i1e)}


# sinc -------------------------------------------------------------------------------------------


def _sinc_reference(x: np.ndarray, *, n: int) -> np.ndarray:
    mpmath = importlib.import_module("mpmath")

    def entry(x: float) -> float:
        with mpmath.workdps(40):
            return float(mpmath.diff(mpmath.sincpi, x, n))

    return np.asarray(np.vectorize(entry, otypes=[np.float64])(x) if x.size else x, x.dtype)


def _turned(z: Array, quarters: int) -> Array:
    """``cos(z + quarters pi / 2)``."""
    value = jnp.sin(z) if quarters % 2 else jnp.cos(z)
    return -value if quarters % 4 in (1, 2) else value


@entrywise(
    _sinc_reference,
    dtype=strong_real_inexact,
    rtol=1024,
    cases=[
        case(x=(3, 4), n=1, rtol=1024),
        case(x=uniform(4, low=-9, high=9), n=2, rtol=4096, order=1),
        _ORDER_MISUSE,
    ],
)
def sinc(x: Array, *, n: _Order = 0) -> Array:
    """Normalized sinc function ``sin(pi x) / (pi x)``, one at zero, or its ``n``-th derivative.

    The derivative is ``pi^n`` times the integral of ``t^n cos(pi x t + n pi / 2)`` for ``t`` from 0
    to 1. At infinity the function and all its derivatives are zero.

    Example:
        >>> import jax.numpy as jnp
        >>> sinc(jnp.asarray([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    dtype = jnp.asarray(x).dtype
    x = jnp.asarray(x, at_least_single(dtype))
    endless = jnp.isinf(x)
    at = jnp.where(endless, 0.0, x)
    z = math.pi * at
    value = _sinc_value(z) if n == 0 else math.pi**n * _sinc_derivative(z, n)
    return jnp.where(endless, 0.0, value).astype(dtype)


@sinc.gradient
def _sinc_gradient(x: Var, d_out: Var, *, n: int) -> Grads:
    return {"x": d_out * sinc(x, n=n + 1)}


def _sinc_value(z: Array) -> Array:
    """``sin(z) / z``, near zero by its series ``sum_k (-z^2)^k / (2 k + 1)!``.

    ``jnp.sinc`` fails in ``jax.shard_map`` since JAX 0.12. For ``|z| < 1/2`` the first term that is
    left out is below ``1e-19``.
    """
    near = jnp.abs(z) < 0.5
    square, far = jnp.where(near, z * z, 0.0), jnp.where(near, 1.0, z)
    series = jnp.ones_like(z)
    for k in range(7, 0, -1):
        series = 1.0 - square / (2 * k * (2 * k + 1)) * series
    return jnp.where(near, series, jnp.sin(far) / far)


_FEW_TURNS = 3
"""The highest order of a derivative whose power series cancels few digits up to ``n + 1``."""


def _sinc_derivative(z: Array, n: int) -> Array:
    """The integral of ``t^n cos(z t + n pi / 2)`` for ``t`` from 0 to 1.

    Integration by parts is stable from ``n`` on. Below, low orders are computed by a power series,
    in a fraction of the time and memory of the quadrature that is left for the others.
    """
    large = jnp.abs(z) > (n + 1 if n <= _FEW_TURNS else max(24, n))
    near, far = jnp.where(large, 0.0, z), jnp.where(large, z, 1.0)
    parts = jnp.sin(far) / far
    for m in range(1, n + 1):
        parts = (_turned(far, m - 1) - m * parts) / far
    below = _integral_by_series if n <= _FEW_TURNS else _integral_by_nodes
    return jnp.where(large, parts, below(near, n))


def _integral_by_series(z: Array, n: int) -> Array:
    """The integral by the power series of the wave, ``sum_k (-z^2)^k c_k``."""
    odd, square, series = n % 2, z * z, jnp.ones_like(z)
    for k in range(18, 0, -1):
        power = 2 * k + odd  # c_k is 1 / (power! (power + n + 1))
        ratio = (power + n - 1) / (power * (power - 1) * (power + n + 1))
        series = 1.0 - ratio * square * series
    first = (-1.0 if n % 4 in (1, 2) else 1.0) / (odd + n + 1)
    return first * (z * series if odd else series)


def _integral_by_nodes(z: Array, n: int) -> Array:
    """The integral by Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(max(40, 16 + n))
    at = (0.5 * (nodes + 1.0)).astype(z.dtype)
    waves = _turned(z[..., None] * at, n)
    return jnp.sum((0.5 * weights * at**n).astype(z.dtype) * waves, axis=-1)
