"""Draws of the gamma and the beta distribution, and what their gradients are made of.

A gamma draw ``z`` solves ``P(a, z) = u`` for a fixed ``u``, where ``P`` is its distribution
function, the regularized incomplete gamma function. So it depends on ``a`` with the slope
``dz/da = -P_a / f``, where ``f = P_z`` is the density: the implicit reparameterization. The slope
is differentiated likewise, and so on to every order.

Source: Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, 2018.
"""

import functools
import importlib
import math
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.attributes import Check
from registry.cases import case, misuse, positive, uniform
from registry.operator import Grads
from registry.ops.broadcasting import cast, unbroadcast
from registry.ops.elementwise import exp, log
from registry.ops.sampling import Given, drawn_dtype, drawn_shape, fitted, result_dtype
from registry.ops.special import digamma, lgamma, polygamma
from registry.shapes import at_least_single, broadcast, real_inexact
from registry.signature import Array, Key
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

# The incomplete gamma function -----------------------------------------------------------------


def _strong(*types: VarType) -> DType:
    return real_inexact(*types)[0]


def _incomplete_reference(a: np.ndarray, x: np.ndarray, *, n: int) -> np.ndarray:
    """By mpmath, which differentiates numerically with as many digits as it takes."""
    mpmath = importlib.import_module("mpmath")

    def entry(a: float, x: float) -> float:
        with mpmath.workdps(40):
            return float(mpmath.diff(lambda b: mpmath.gammainc(b, 0, x, regularized=True), a, n))

    return np.asarray(np.vectorize(entry, otypes=[np.float64])(a, x)) if a.size else a + x


_TERMS = 1000
"""The series for arguments up to some hundreds needs no more."""


def _series(a: Array, x: Array, n: int) -> Array:
    """The ``n``-th derivative by ``a`` of ``sum_k x^(a+k) exp(-x) / Gamma(a+k+1)``.

    Each term is ``exp(g(a))``, so its derivative is itself times a complete Bell polynomial of the
    derivatives of ``g(a) = (a + k) log x - x - lgamma(a + k + 1)``.
    """
    log_x = jnp.log(x)

    def term(k: Array) -> Any:
        place = a + k + 1.0
        size = jnp.exp((place - 1.0) * log_x - x - lax.lgamma(place))
        slopes = [log_x - lax.digamma(place)]
        slopes += [-_polygamma(m, place) for m in range(1, n)]
        return size * _bell(slopes)

    def more(state: tuple[Any, Any, Any]) -> Any:
        k, total, last = state
        past = k < jnp.max(x, initial=0.0) + n + 2.0
        left = jnp.any(jnp.abs(last) > jnp.finfo(total.dtype).eps * jnp.abs(total) / 8)  # type: ignore[no-untyped-call]
        return (past | left) & (k < _TERMS)

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        k, total, _ = state
        one = term(k)
        return k + 1.0, total + one, one

    start = (jnp.zeros((), x.dtype), jnp.zeros_like(x), jnp.ones_like(x))
    return jnp.where(x > 0, lax.while_loop(more, step, start)[1], 0.0)


def _polygamma(m: int, x: Array) -> Array:
    return (-1.0) ** (m + 1) * math.factorial(m) * jax.scipy.special.zeta(m + 1.0, x)


def _bell(slopes: list[Any]) -> Any:
    """The complete Bell polynomial: ``B_(m+1) = sum_i C(m, i) B_(m-i) x_(i+1)``."""
    polynomials: list[Any] = [1.0]
    for m in range(len(slopes)):
        parts = [math.comb(m, i) * polynomials[m - i] * slopes[i] for i in range(m + 1)]
        polynomials.append(functools.reduce(lambda u, v: u + v, parts))
    return polynomials[-1]


@op(
    shape=broadcast,
    dtype=_strong,
    reference=_incomplete_reference,
    native=False,  # JAX differentiates the series by no argument, and its igamma by ``a`` but once
    aliases=["igamma", "gammainc"],
    cases=[
        case(a=uniform(4, low=0.5, high=5), x=uniform(4, low=0.5, high=5), rtol=4096),
        case(a=positive(3, 1), x=positive(4), n=1, rtol=4096),
        case(a=positive(3), x=positive(3), n=2, rtol=8192, order=2),
        case(a=positive(0), x=positive(0), n=3, order=1),
        misuse("attribute 'n' must be at least 0, got -1", a=(3,), x=(3,), n=-1),
    ],
)
def incomplete_gamma(
    a: Array, x: Array, *, n: Annotated[int, Check("be at least 0", lambda n: n >= 0)] = 0
) -> Array:
    """``P(a, x)``, the regularized incomplete gamma function, or its ``n``-th derivative by ``a``.

    ``P(a, x)`` is the integral of ``t^(a - 1) exp(-t) / Gamma(a)`` from 0 to ``x``, for positive
    ``a`` and ``x``. A series computes the derivatives, for ``x`` up to some
    hundreds.

    Source: NIST Digital Library of Mathematical Functions, 8.2.4 and 8.7.1.

    Example:
        >>> import jax.numpy as jnp
        >>> incomplete_gamma(jnp.asarray(1.0), jnp.asarray(0.0))
        Array(0., dtype=float32)
    """
    dtype = np.dtype(jnp.result_type(a, x))
    wide = at_least_single(dtype)
    a, x = jnp.broadcast_arrays(jnp.asarray(a).astype(wide), jnp.asarray(x).astype(wide))
    out = lax.igamma(a, x) if n == 0 else _series(a, x, n)
    return lax.convert_element_type(out, dtype)


@incomplete_gamma.gradient
def _incomplete_gamma_gradient(a: Var, x: Var, d_out: Var, *, n: int) -> Grads:
    # P_x = f = exp(g) with g = (a - 1) log x - x - lgamma(a); its a-derivatives are f times a
    # complete Bell polynomial of those of g.
    def by_x() -> Var | None:
        slopes = [log(x) - digamma(a)] + [-polygamma(a, n=m) for m in range(1, n)]
        return unbroadcast(d_out * (_density(a, x) * _bell(slopes[:n])), x)

    return {"a": lambda: unbroadcast(d_out * incomplete_gamma(a, x, n=n + 1), a), "x": by_x}


def _density(a: Var, x: Var) -> Var:
    density: Var = exp((a - 1.0) * log(x) - x - lgamma(a))
    return density


# The slope of a draw ---------------------------------------------------------------------------


@op(
    shape=broadcast,
    dtype=_strong,
    native=False,  # JAX has no derivative of random_gamma_grad
    cases=[
        case(a=uniform(4, low=0.5, high=5), z=uniform(4, low=0.5, high=5)),
        case(a=positive(3, 1), z=positive(4), order=2),
        case(a=positive(), z=positive(), order=2),
        case(a=positive(0), z=positive(0), order=1),
        misuse("the inputs must be real, got complex64", a=np.ones(2, np.complex64), z=(2,)),
    ],
    reference=lambda a, z: (
        -_incomplete_reference(a, z, n=1) / np.exp((a - 1) * np.log(z) - z - _log_gamma(a))
    ),
)
def gamma_draw_slope(a: Array, z: Array) -> Array:
    """How fast a gamma draw ``z`` moves with its parameter: ``dz/da = -P_a(a, z) / f(a, z)``.

    Example:
        >>> import jax.numpy as jnp
        >>> bool(gamma_draw_slope(jnp.asarray(2.0), jnp.asarray(1.5)) > 0)
        True
    """
    dtype = np.dtype(jnp.result_type(a, z))
    wide = at_least_single(dtype)
    a, z = jnp.broadcast_arrays(jnp.asarray(a).astype(wide), jnp.asarray(z).astype(wide))
    return lax.convert_element_type(lax.random_gamma_grad(a, z), dtype)


def _log_gamma(a: np.ndarray) -> np.ndarray:
    values: np.ndarray = importlib.import_module("scipy.special").gammaln(a)
    return values


@gamma_draw_slope.gradient
def _gamma_draw_slope_gradient(a: Var, z: Var, out: Var, d_out: Var) -> Grads:
    # With s = -P_a / f and l = log f: s_z = -l_a - s l_z and s_a = -P_aa / f - s l_a, where
    # l_a = log z - digamma(a) and l_z = (a - 1) / z - 1.
    l_a = log(z) - digamma(a)

    def by_a() -> Var | None:
        bent = incomplete_gamma(a, z, n=2) / _density(a, z)
        return unbroadcast(d_out * -(bent + out * l_a), a)

    return {
        "a": by_a,
        "z": lambda: unbroadcast(d_out * -(l_a + out * ((a - 1.0) / z - 1.0)), z),
    }


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


@op(
    shape=_gamma_shape,
    dtype=_gamma_dtype,
    outputs=("out", "standard"),
    hidden=("standard",),
    reference=_gamma_reference,
    native=False,  # the sampler rejects: its gradient is that of the implicit path, not the code's
    cases=[
        case(a=positive(3, 4), scale=positive(4), order=2),
        case(a=positive(3), shape=(2, 3), order=1),
        case(a=positive(2), dtype="float32", order=1),
        case(a=positive(0), order=1),
        misuse("the parameters' shapes must broadcast to (2,), got (3,)", a=(3,), shape=(2,)),
    ],
)
def random_gamma(
    a: Array,
    scale: Given,
    key: Key,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: np.dtype | None = None,
) -> tuple[Array, Array]:
    """Gamma draws ``scale z``, where ``z`` has the density ``z^(a - 1) exp(-z) / Gamma(a)``.

    ``scale`` is 1 unless given. Differentiable in both parameters, in ``a`` along the path on
    which the draw keeps its place in the distribution.

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


@op(
    shape=_beta_shape,
    dtype=_beta_dtype,
    outputs=("out", "first", "second"),
    hidden=("first", "second"),
    native=False,  # as that of random_gamma
    # No reference: the distribution is tested, since nobody else draws these very numbers.
    cases=[
        case(a=positive(3, 4), b=positive(4), order=2),
        case(a=positive(3), b=positive(), shape=(2, 3), order=1),
        case(a=positive(2), b=positive(2), dtype="float32", order=1),
        case(a=positive(0), b=positive(), order=1),
        misuse("shapes must broadcast to (2,), got (3,) and ()", a=(3,), b=(), shape=(2,)),
    ],
)
def random_beta(
    a: Array,
    b: Array,
    key: Key,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: np.dtype | None = None,
) -> tuple[Array, Array, Array]:
    """Beta draws, between 0 and 1 with the density ``x^(a - 1) (1 - x)^(b - 1) / B(a, b)``.

    They are ``z / (z + w)`` for gamma draws ``z`` and ``w``, and differentiable in ``a`` and ``b``
    as these are.

    Example:
        >>> import jax
        >>> random_beta(2.0, 3.0, key=jax.random.key(0), shape=(3,)).shape
        (3,)
    """
    chosen = result_dtype(dtype, [a, b])
    wide, places = at_least_single(chosen), fitted(shape, a, b)
    # Logarithms of the draws: those for small parameters lie below the smallest number.
    logs = [
        jax.random.loggamma(one, jnp.broadcast_to(jnp.asarray(at).astype(wide), places), dtype=wide)
        for one, at in zip(jax.random.split(key), (a, b), strict=True)
    ]
    smallest = jnp.finfo(wide).tiny  # type: ignore[no-untyped-call]
    first, second = (jnp.maximum(jnp.exp(lax.stop_gradient(one)), smallest) for one in logs)
    out = jax.nn.sigmoid(lax.stop_gradient(logs[0] - logs[1]))
    return lax.convert_element_type(out, chosen), first, second


@random_beta.gradient
def _random_beta_gradient(
    a: Var,
    b: Var,
    first: Var,
    second: Var,
    d_out: Var,
    d_first: Var | None,
    d_second: Var | None,
) -> Grads:
    # out = z / (z + w): d out = (w dz - z dw) / (z + w)^2
    total = first + second
    d = cast(d_out, dtype=first.dtype) / (total * total)

    def along(parameter: Var, draw: Var, d_draw: Var, further: Var | None) -> Var | None:
        d_draw = d_draw if further is None else d_draw + further
        slope = gamma_draw_slope(cast(parameter, dtype=draw.dtype), draw)
        return unbroadcast(d_draw * slope, parameter)

    return {
        "a": along(a, first, d * second, d_first),
        "b": along(b, second, -(d * first), d_second),
    }
