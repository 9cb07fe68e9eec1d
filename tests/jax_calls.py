"""Calls of JAX's functions for the tests of ``so.from_jax``: one line for each."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Function = Callable[..., Any]


class JaxCall(NamedTuple):
    """A function and arguments; gradients are compared with respect to the floating ones."""

    name: str
    function: Function
    args: tuple[Any, ...]
    differentiable: bool = True


def _numbers(*shape: int, low: float = 0.15, high: float = 0.85) -> Any:
    count = int(np.prod(shape, dtype=int))
    # Neither sorted nor equal, away from the ends.
    order = np.argsort(np.sin(1.7 * np.arange(count) + 0.3), kind="stable")
    spread = np.linspace(low, high, count, dtype=np.float32) if count else np.zeros(0, np.float32)
    return jnp.asarray(spread[order].reshape(shape))


def _integers(*shape: int, low: int = 1, high: int = 7) -> Any:
    count = int(np.prod(shape, dtype=int))
    return jnp.asarray((low + (5 * np.arange(count) + 2) % (high - low)).reshape(shape), jnp.int32)


X, Y, V = _numbers(3, 4), _numbers(3, 4, low=0.3, high=0.95)[::-1], _numbers(4)
SIGNED = _numbers(3, 4, low=-1.93, high=1.97)
K, J = _integers(3, 4), _integers(3, 4, low=1, high=4)
B = X > 0.5
SQUARE = _numbers(3, 3) + 2 * jnp.eye(3)
POSITIVE = SQUARE @ SQUARE.T
SYMMETRIC = SQUARE + SQUARE.T
C = lax.complex(X, Y)
IMAGE, KERNEL = _numbers(2, 3, 8, 8), _numbers(4, 3, 3, 3)
KEY = jax.random.key(7)


def _each(place: Any, names: str, *args: Any, differentiable: bool = True) -> list[JaxCall]:
    prefix = place.__name__.removeprefix("jax.")
    return [
        JaxCall(f"{prefix}.{name}", getattr(place, name), args, differentiable)
        for name in names.split()
    ]


def _one(name: str, function: Function, *args: Any, differentiable: bool = True) -> JaxCall:
    return JaxCall(name, function, args, differentiable)


def _of_real(transform: Function) -> Function:
    return lambda x: jnp.abs(transform(x))


def _of_parts(transform: Function) -> Function:
    return lambda x, y: transform(lax.complex(x, y))


LAX = [
    *_each(lax, "abs neg sign floor ceil round is_finite", SIGNED, differentiable=False),
    *_each(lax, "exp exp2 expm1 log log1p sqrt rsqrt cbrt sin cos tan tanh sinh cosh asin acos", X),
    *_each(lax, "atan asinh atanh logistic erf erfc erf_inv lgamma digamma square", X),
    *_each(lax, "bessel_i0e bessel_i1e", X),
    *_each(lax, "reciprocal", X),
    _one("lax.acosh", lax.acosh, X + 1.0),
    *_each(lax, "add sub mul div max min pow atan2 rem", X, Y),
    *_each(lax, "nextafter", X, Y, differentiable=False),
    *_each(lax, "eq ne lt le gt ge", K, J, differentiable=False),
    *_each(lax, "add sub mul div rem max min bitwise_and bitwise_or bitwise_xor", K, J,
           differentiable=False),
    *_each(lax, "shift_left shift_right_logical shift_right_arithmetic", K, J,
           differentiable=False),
    *_each(lax, "bitwise_not population_count clz", K, differentiable=False),
    *_each(lax, "bitwise_and bitwise_or bitwise_xor", B, ~B, differentiable=False),
    *_each(lax, "igamma igammac", X, Y),
    _one("lax.betainc", lambda x: lax.betainc(0.7, 0.4, x), X),
    _one("lax.polygamma", lambda x: lax.polygamma(jnp.ones_like(x), x), X),
    _one("lax.zeta", lambda x: lax.zeta(x + 2.0, x), X, differentiable=False),
    _one("lax.random_gamma_grad", lax.random_gamma_grad, X, Y, differentiable=False),
    *_each(lax, "real imag conj", C, differentiable=False),
    _one("lax.complex", lambda x, y: lax.abs(lax.complex(x, y)), X, Y),
    _one("lax.clamp", lambda x: lax.clamp(0.3, x, 0.7), X),
    _one("lax.integer_pow", lambda x: lax.integer_pow(x, 3), X),
    _one("lax.integer_pow negative", lambda x: lax.integer_pow(x, -2), X),
    _one("lax.select", lambda x, y: lax.select(x > y, x, y), X, Y),
    _one("lax.select_n", lax.select_n, K % 3, X, Y, X * Y),
    _one("lax.reshape", lambda x: lax.reshape(x, (4, 3)), X),
    _one("lax.reshape dimensions", lambda x: lax.reshape(x, (12,), (1, 0)), X),
    _one("lax.squeeze", lambda x: lax.squeeze(x[:1], (0,)), X),
    _one("lax.expand_dims", lambda x: lax.expand_dims(x, (1,)), X),
    _one("lax.broadcast", lambda x: lax.broadcast(x, (2,)), X),
    _one("lax.broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (4, 3), (0,)), V),
    _one("lax.transpose", lambda x: lax.transpose(x, (1, 0)), X),
    _one("lax.rev", lambda x: lax.rev(x, (1,)), X),
    _one("lax.concatenate", lambda x, y: lax.concatenate([x, y], 1), X, Y),
    _one("lax.pad", lambda x: lax.pad(x, 0.5, ((1, 2, 0), (-1, 0, 1))), X),
    _one("lax.pad operand", lambda x, y: lax.pad(x, y[0, 0], ((1, 0, 2), (0, 1, 0))), X, Y),
    _one("lax.slice", lambda x: lax.slice(x, (1, 0), (3, 4), (1, 2)), X),
    _one("lax.dynamic_slice",
         lambda x: lax.dynamic_slice(x, (jnp.int32(1), jnp.int32(2)), (2, 2)), X),
    _one("lax.dynamic_update_slice",
         lambda x, y: lax.dynamic_update_slice(x, y[:2, :2], (jnp.int32(1), jnp.int32(2))), X, Y),
    _one("lax.dynamic_index_in_dim", lambda x, i: lax.dynamic_index_in_dim(x, i[0, 0] % 3), X, K),
    _one("lax.split", lambda x: lax.split(x, (1, 3), 1), X),
    _one("lax.iota", lambda: lax.iota("float32", 5), differentiable=False),
    _one("lax.broadcasted_iota", lambda: lax.broadcasted_iota("int32", (2, 3), 1),
         differentiable=False),
    _one("lax.full", lambda: lax.full((2, 3), 4.0), differentiable=False),
    *[_one(f"lax.{name}", functools.partial(getattr(lax, name), axis=1), X)
      for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")],
    _one("lax.cumsum reverse", lambda x: lax.cumsum(x, 0, reverse=True), X),
    _one("lax.sort", lambda x: lax.sort(x, dimension=1), X),
    _one("lax.sort keys", lambda i, x: lax.sort((i, x), num_keys=1), K, X),
    _one("lax.sort_key_val", lax.sort_key_val, X, Y),
    _one("lax.top_k", lambda x: lax.top_k(x, 2), X),
    _one("lax.argmax", lambda x: lax.argmax(x, 1, jnp.int32), X, differentiable=False),
    _one("lax.argmin", lambda x: lax.argmin(x, 0, jnp.int32), X, differentiable=False),
    _one("lax.reduce sum", lambda x: lax.reduce(x, 0.0, lax.add, (1,)), X),
    _one("lax.reduce max", lambda x: lax.reduce(x, -jnp.inf, lax.max, (0,)), X),
    _one("lax.reduce_and", lambda b: lax.reduce_and(b, (0,)), B, differentiable=False),
    _one("lax.reduce_or", lambda b: lax.reduce_or(b, (1,)), B, differentiable=False),
    _one("lax.reduce_xor", lambda b: lax.reduce_xor(b, (1,)), B, differentiable=False),
    _one("lax.reduce_precision", lambda x: lax.reduce_precision(x, 8, 10), X),
    _one("lax.reduce_window sum", lambda x: lax.reduce_window(
        x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"), IMAGE),
    _one("lax.reduce_window max", lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "SAME"), IMAGE),
    _one("lax.reduce_window min", lambda x: lax.reduce_window(
        x, jnp.inf, lax.min, (1, 1, 2, 2), (1, 1, 1, 1), "VALID"), IMAGE),
    _one("lax.dot", lax.dot, X, Y.T),
    _one("lax.dot_general batch", lambda x, y: lax.dot_general(
        x, y, (((2,), (1,)), ((0,), (0,)))), _numbers(2, 3, 4), _numbers(2, 4, 5)),
    _one("lax.dot_general highest", lambda x, y: lax.dot_general(
        x, y, (((1,), (0,)), ((), ())), precision=lax.Precision.HIGHEST), X, Y.T),
    _one("lax.dot_general integers", lambda x, y: x @ y.T, K, J, differentiable=False),
    _one("lax.conv", lambda x, w: lax.conv(x, w, (1, 1), "SAME"), IMAGE, KERNEL),
    _one("lax.conv dilated", lambda x, w: lax.conv_general_dilated(
        x, w, (2, 1), ((1, 1), (2, 2)), (1, 1), (2, 1)), IMAGE, KERNEL),
    _one("lax.conv channels last", lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        jnp.moveaxis(IMAGE, 1, 3), jnp.transpose(KERNEL, (2, 3, 1, 0))),
    _one("lax.conv groups", lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", feature_group_count=3), IMAGE, _numbers(6, 1, 3, 3)),
    _one("lax.conv_transpose", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
         _numbers(1, 4, 4, 3), _numbers(3, 3, 3, 2)),
    _one("lax.convert_element_type", lambda x: lax.convert_element_type(x, jnp.bfloat16), X),
    _one("lax.bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, jnp.uint32), X,
         differentiable=False),
    _one("lax.stop_gradient", lambda x: x * lax.stop_gradient(x), X),
    _one("lax.optimization_barrier", lax.optimization_barrier, X),
    _one("lax.gather", lambda x, i: x[i[:, 0] % 3, i[:, 1] % 4], X, K),
    _one("lax.scatter", lambda x, y: x.at[1, 2:].set(y[0, :2]), X, Y),
    _one("lax.scatter_add", lambda x, y: x.at[jnp.asarray([0, 0, 2])].add(y), X, Y),
    _one("lax.scatter_mul", lambda x, y: x.at[jnp.asarray([0, 2])].mul(
        y[:2], unique_indices=True), X, Y),
    _one("lax.scatter_max", lambda x, y: x.at[jnp.asarray([0, 2])].max(y[:2]), X, Y,
         differentiable=False),
    _one("lax.scatter_min", lambda x, y: x.at[jnp.asarray([0, 2])].min(y[:2]), X, Y,
         differentiable=False),
    _one("lax.scan", lambda x: lax.scan(lambda c, y: (jnp.tanh(c + y), c * y), x[0], x), X),
    _one("lax.scan reverse", lambda x: lax.scan(
        lambda c, y: (c * y, c), x[0], x, reverse=True), X),
    _one("lax.scan length", lambda x: lax.scan(
        lambda c, _: (jnp.sin(c), None), x, None, length=4)[0], X),
    _one("lax.scan unroll", lambda x: lax.scan(
        lambda c, y: (c + y * y, c), x[0], x, unroll=3), X),
    _one("lax.fori_loop", lambda x: lax.fori_loop(0, 4, lambda i, c: jnp.sin(c) + i, x), X),
    _one("lax.while_loop", lambda x: lax.while_loop(
        lambda c: c.sum() < 30, lambda c: 2 * c, x), X, differentiable=False),
    _one("lax.cond", lambda x: lax.cond(x.sum() > 1, jnp.sin, jnp.cos, x), X),
    _one("lax.switch", lambda x, i: lax.switch(i[0, 0], [jnp.sin, jnp.cos, jnp.tan], x), X, K),
    _one("lax.map", lambda x: lax.map(lambda row: row * row.sum(), x), X),
    _one("lax.associative_scan", lambda x: lax.associative_scan(jnp.multiply, x), X),
    _one("lax.custom_root", lambda x: lax.custom_root(
        lambda y: y * y - x, 1.0, lambda f, y: lax.fori_loop(
            0, 20, lambda _, y: 0.5 * (y + (y * y - f(y)) / y), y),
        lambda g, y: y / g(1.0)), jnp.float32(2.0)),
    _one("lax.custom_linear_solve", lambda a, b: lax.custom_linear_solve(
        lambda x: a @ x, b, lambda f, y: jnp.linalg.solve(a, y),
        lambda f, y: jnp.linalg.solve(a.T, y)), SQUARE, V[:3]),
    _one("checkpoint", jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))), X),
    _one("jit", jax.jit(lambda x: x * 2), X),
]  # fmt: skip

JNP = [
    *_each(jnp, "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh exp exp2", X),
    *_each(jnp, "expm1 log log2 log10 log1p sqrt cbrt square reciprocal sinc i0 deg2rad", X),
    *_each(jnp, "abs fabs positive negative", SIGNED),
    *_each(jnp, "sign floor ceil trunc rint round isnan isinf isfinite signbit", SIGNED,
           differentiable=False),
    *_each(jnp, "add subtract multiply divide maximum minimum power arctan2 hypot logaddexp", X, Y),
    *_each(jnp, "logaddexp2 copysign fmax fmin float_power", X, Y),
    *_each(jnp, "floor_divide remainder fmod mod heaviside", X, Y, differentiable=False),
    *_each(jnp, "equal not_equal less less_equal greater greater_equal", X, Y,
           differentiable=False),
    *_each(jnp, "gcd lcm left_shift right_shift floor_divide remainder power", K, J,
           differentiable=False),
    *_each(jnp, "logical_and logical_or logical_xor", B, ~B, differentiable=False),
    *_each(jnp, "sum prod mean std var max min ptp median average nansum nanmean nanmax", X),
    *_each(jnp, "cumsum cumprod ravel transpose squeeze flip fliplr flipud diff", X),
    *_each(jnp, "argmax argmin count_nonzero any all argsort", X, differentiable=False),
    *_each(jnp, "sort trace diagonal tril triu rot90 gradient", SQUARE),
    *_each(jnp, "matmul dot inner tensordot vdot kron cross outer", SQUARE, SQUARE.T),
    *_each(jnp, "diag", V),
    _one("jnp.einsum", lambda x, y: jnp.einsum("ij,kj->ik", x, y), X, Y),
    _one("jnp.einsum trace", lambda x: jnp.einsum("ii->i", x), SQUARE),
    _one("jnp.quantile", lambda x: jnp.quantile(x, 0.3, axis=1), X),
    _one("jnp.percentile", lambda x: jnp.percentile(x, 40.0), X),
    _one("jnp.where", lambda x, y: jnp.where(x > y, x, y), X, Y),
    _one("jnp.clip", lambda x: jnp.clip(x, 0.3, 0.6), X),
    _one("jnp.take", lambda x: jnp.take(x, jnp.asarray([2, 0]), axis=0), X),
    _one("jnp.take_along_axis", lambda x, i: jnp.take_along_axis(x, i % 4, 1), X, K),
    _one("jnp.roll", lambda x: jnp.roll(x, 1, axis=1), X),
    _one("jnp.repeat", lambda x: jnp.repeat(x, 2, axis=0), X),
    _one("jnp.tile", lambda x: jnp.tile(x, (2, 1)), X),
    _one("jnp.pad reflect", lambda x: jnp.pad(x, 1, mode="reflect"), X),
    _one("jnp.pad edge", lambda x: jnp.pad(x, 1, mode="edge"), X),
    _one("jnp.stack", lambda x, y: jnp.stack([x, y], 1), X, Y),
    _one("jnp.concatenate", lambda x, y: jnp.concatenate([x, y]), X, Y),
    _one("jnp.split", lambda x: jnp.split(x, 2, axis=1), X),
    _one("jnp.meshgrid", lambda v: jnp.meshgrid(v, v), V),
    _one("jnp.linspace", lambda v: jnp.linspace(v[0], v[1], 5), V),
    _one("jnp.arange", lambda: jnp.arange(5.0), differentiable=False),
    _one("jnp.eye", lambda: jnp.eye(3), differentiable=False),
    _one("jnp.one_hot", lambda i: jax.nn.one_hot(i, 8), K, differentiable=False),
    _one("jnp.searchsorted", lambda v, x: jnp.searchsorted(jnp.sort(v), x), V, X,
         differentiable=False),
    _one("jnp.digitize", lambda x: jnp.digitize(x, jnp.asarray([0.3, 0.6])), X,
         differentiable=False),
    _one("jnp.histogram", lambda x: jnp.histogram(x, 4)[0], X, differentiable=False),
    _one("jnp.bincount", lambda i: jnp.bincount(i.ravel(), length=8), K, differentiable=False),
    _one("jnp.unique", lambda i: jnp.unique(i, size=5), K, differentiable=False),
    _one("jnp.nonzero", lambda b: jnp.nonzero(b, size=4), B, differentiable=False),
    _one("jnp.convolve", lambda v: jnp.convolve(v, v), V),
    _one("jnp.correlate", lambda v: jnp.correlate(v, v[:2]), V),
    _one("jnp.interp", lambda x, v: jnp.interp(x, jnp.sort(v), v), X, V),
    _one("jnp.polyval", jnp.polyval, V, X),
    _one("jnp.apply_along_axis", lambda x: jnp.apply_along_axis(jnp.sum, 0, x), X),
    _one("jnp.vectorize", jnp.vectorize(lambda v: v * v.sum(), signature="(n)->(n)"), X),
    _one("jnp.select", lambda x: jnp.select([x < 0.3, x < 0.6], [x, 2 * x], 3 * x), X),
    _one("jnp.piecewise", lambda x: jnp.piecewise(x, [x < 0.5], [jnp.sin, jnp.cos]), X),
    _one("jnp.nan_to_num", jnp.nan_to_num, X),
    _one("jnp.moveaxis", lambda x: jnp.moveaxis(x, 0, 1), X),
    _one("jnp.cov", jnp.cov, X),
    _one("jnp.corrcoef", jnp.corrcoef, X),
    _one("jnp.trapezoid", lambda x: jnp.trapezoid(x, dx=0.5), X),
    _one("jnp.angle", lambda x, y: jnp.angle(lax.complex(x, y)), X, Y),
    _one("indexing", lambda x: x[1:, ::2] + x[:2, [1, 3]], X),
    _one("indexing by mask", lambda x: jnp.where(x > 0.4, x, 0.0).sum(), X),
    _one("scatter rows", lambda x, y: x.at[::2].multiply(y[::2]), X, Y),
    _one("vmap", jax.vmap(lambda v: jnp.outer(v, v)), X),
    _one("grad", jax.vmap(jax.grad(lambda v: jnp.sin(v).prod())), X),
    _one("jacfwd", jax.jacfwd(lambda v: jnp.sin(v) * v[0]), V),
    _one("hessian", jax.hessian(lambda v: jnp.sin(v).prod()), V),
]  # fmt: skip

NN = [
    *_each(jax.nn, "relu relu6 sigmoid softplus soft_sign silu swish log_sigmoid", SIGNED),
    *_each(jax.nn, "hard_sigmoid hard_silu hard_swish hard_tanh elu celu selu gelu glu", SIGNED),
    *_each(jax.nn, "leaky_relu squareplus mish softmax log_softmax logsumexp standardize", SIGNED),
    _one("nn.gelu exact", lambda x: jax.nn.gelu(x, approximate=False), SIGNED),
    _one("nn.sparse_plus", jax.nn.sparse_plus, SIGNED),
    _one("nn.logmeanexp", lambda x: jax.nn.logsumexp(x, axis=1, b=0.25), SIGNED),
    _one("nn.dot_product_attention", lambda q: jax.nn.dot_product_attention(
        q, q, q, is_causal=True), _numbers(2, 4, 2, 3)),
]  # fmt: skip

SPECIAL = [
    *_each(jax.scipy.special, "gammaln digamma erf erfc erfinv expit logit i0 i0e i1 i1e ndtr", X),
    *_each(jax.scipy.special, "ndtri log_ndtr entr gamma", X),
    *_each(jax.scipy.special, "betaln beta xlogy xlog1py rel_entr kl_div gammainc gammaincc", X, Y),
    _one("special.betainc", lambda x: jax.scipy.special.betainc(0.7, 0.4, x), X),
    _one("special.polygamma", lambda x: jax.scipy.special.polygamma(2, x), X),
    _one("special.zeta", lambda x: jax.scipy.special.zeta(x + 2.0, 1.0), X, differentiable=False),
    _one("special.logsumexp", jax.scipy.special.logsumexp, X),
    _one("special.multigammaln", lambda x: jax.scipy.special.multigammaln(x + 2.0, 2), X),
    _one("special.expi", jax.scipy.special.expi, X),
    _one("special.exp1", jax.scipy.special.exp1, X),
    _one("special.factorial", jax.scipy.special.factorial, X),
    _one("special.poch", jax.scipy.special.poch, X, Y),
    _one("stats.norm", jax.scipy.stats.norm.logpdf, X),
    _one("stats.t", lambda x: jax.scipy.stats.t.logpdf(x, 3.0), X),
    _one("stats.gamma", lambda x: jax.scipy.stats.gamma.logpdf(x, 2.0), X),
    _one("stats.beta", lambda x: jax.scipy.stats.beta.logpdf(x, 2.0, 3.0), X),
    _one("linalg.expm", jax.scipy.linalg.expm, SQUARE),
    _one("linalg.solve_triangular", jax.scipy.linalg.solve_triangular, SQUARE,
         V[:3]),
    _one("linalg.cho_solve", lambda a, v: jax.scipy.linalg.cho_solve(
        (jnp.linalg.cholesky(a), True), v), POSITIVE, V[:3]),
    _one("linalg.lu", lambda a: jax.scipy.linalg.lu(a)[1:], SQUARE),
    _one("linalg.block_diag", jax.scipy.linalg.block_diag, X, Y),
    _one("ndimage.map_coordinates", lambda x: jax.scipy.ndimage.map_coordinates(
        x, [jnp.asarray([0.5, 1.2]), jnp.asarray([1.5, 0.3])], order=1), X),
    _one("signal.convolve", lambda x: jax.scipy.signal.convolve(x, x[:2, :2]), X),
]  # fmt: skip

LINALG = [
    *_each(jnp.linalg, "inv det slogdet pinv", SQUARE),
    *_each(jnp.linalg, "norm cholesky", POSITIVE),
    *_each(jnp.linalg, "eigvalsh", SYMMETRIC),
    _one("jnp.linalg.eigh", lambda a: jnp.abs(jnp.linalg.eigh(a)[1]), SYMMETRIC),
    _one("jnp.linalg.qr", lambda a: jnp.linalg.qr(a)[1], SQUARE),
    _one("jnp.linalg.svd", lambda a: jnp.linalg.svd(a, compute_uv=False), SQUARE),
    _one("jnp.linalg.solve", jnp.linalg.solve, SQUARE, V[:3]),
    _one("jnp.linalg.lstsq", lambda a, v: jnp.linalg.lstsq(a, v)[0], X.T, V),
    _one("jnp.linalg.matrix_power", lambda a: jnp.linalg.matrix_power(a, 3), SQUARE),
    _one("jnp.linalg.multi_dot", lambda a: jnp.linalg.multi_dot([a, a, a]), SQUARE),
    _one("jnp.linalg.eigvals", lambda a: jnp.sort(jnp.abs(jnp.linalg.eigvals(a))), SYMMETRIC,
         differentiable=False),
    _one("lax.linalg.lu", lambda a: lax.linalg.lu(a)[0], SQUARE),
    _one("lax.linalg.householder", lambda a: lax.linalg.householder_product(a, a[0]), SQUARE,
         differentiable=False),
    _one("lax.linalg.hessenberg", lambda a: lax.linalg.hessenberg(a)[0], SQUARE,
         differentiable=False),
    _one("lax.linalg.schur", lambda a: jnp.abs(lax.linalg.schur(a)[0]), SYMMETRIC,
         differentiable=False),
    _one("lax.linalg.tridiagonal_solve", lambda v: lax.linalg.tridiagonal_solve(
        v.at[0].set(0.0), v + 2.0, v.at[-1].set(0.0), v[:, None]), V),
    _one("lax.linalg.triangular_solve", lambda a, b: lax.linalg.triangular_solve(
        a, b, left_side=True, lower=True), SQUARE, SQUARE),
]  # fmt: skip

FFT = [
    *[_one(f"jnp.fft.{name}", _of_real(getattr(jnp.fft, name)), X) for name in (
        "fft", "ifft", "rfft", "fft2", "ifft2", "rfft2", "fftn", "ifftn", "rfftn", "ihfft",
        "fftshift")],
    *[_one(f"jnp.fft.{name}", _of_parts(getattr(jnp.fft, name)), X, Y)
      for name in ("irfft", "irfft2", "irfftn", "hfft")],
    _one("jnp.fft.fftfreq", lambda: jnp.fft.fftfreq(5), differentiable=False),
    _one("jnp.fft.fft n", lambda x: jnp.abs(jnp.fft.fft(x, 6, axis=0)), X),
]  # fmt: skip

RANDOM = [
    *[_one(f"jax.random.{name}", functools.partial(getattr(jax.random, name), shape=(3, 2)), KEY,
           differentiable=False) for name in (
        "bits", "uniform", "normal", "exponential", "gumbel", "laplace", "logistic", "cauchy",
        "rademacher", "maxwell")],
    _one("jax.random.truncated_normal", lambda k: jax.random.truncated_normal(k, -1.0, 1.0, (3,)),
         KEY, differentiable=False),
    _one("jax.random.randint", lambda k: jax.random.randint(k, (4,), 0, 9), KEY,
         differentiable=False),
    _one("jax.random.bernoulli", jax.random.bernoulli, KEY, X,
         differentiable=False),
    _one("jax.random.categorical", jax.random.categorical, KEY, X,
         differentiable=False),
    _one("jax.random.choice", lambda k, v: jax.random.choice(k, v, (3,)), KEY, V,
         differentiable=False),
    _one("jax.random.permutation", jax.random.permutation, KEY, V,
         differentiable=False),
    _one("jax.random.gamma", lambda k, x: jax.random.gamma(k, x + 1.0), KEY, X,
         differentiable=False),
    _one("jax.random.beta", lambda k, x: jax.random.beta(k, x + 1.0, 2.0), KEY, X,
         differentiable=False),
    _one("jax.random.dirichlet", lambda k, v: jax.random.dirichlet(k, v + 1.0), KEY, V,
         differentiable=False),
    _one("jax.random.poisson", lambda k, x: jax.random.poisson(k, 3.0 * x), KEY, X,
         differentiable=False),
    _one("jax.random.multivariate_normal", jax.random.multivariate_normal,
         KEY, V[:3], POSITIVE, differentiable=False),
    _one("jax.random.split", lambda k: jax.random.split(k, 3), KEY, differentiable=False),
    _one("jax.random.fold_in", lambda k, i: jax.random.fold_in(k, i[0, 0]), KEY, K,
         differentiable=False),
    _one("jax.random.key", lambda i: jax.random.key_data(jax.random.key(i[0, 0])), K,
         differentiable=False),
    _one("jax.random.PRNGKey", lambda: jax.random.PRNGKey(3), differentiable=False),
    _one("jax.random legacy", lambda k: jax.random.normal(k, (2,)), jax.random.PRNGKey(3),
         differentiable=False),
    _one("keys in a scan", lambda k: lax.scan(
        lambda c, one: (c + jax.random.normal(one), c), 0.0, jax.random.split(k, 3)), KEY,
        differentiable=False),
    _one("keys indexed", lambda k: jax.random.uniform(jax.random.split(k, 3)[1]), KEY,
         differentiable=False),
    _one("keys mapped", lambda k: jax.vmap(jax.random.normal)(jax.random.split(k, 3)), KEY,
         differentiable=False),
    _one("reparameterized", lambda k, x: x * jax.random.normal(k, x.shape), KEY, X),
]  # fmt: skip

CALLS = [*LAX, *JNP, *NN, *SPECIAL, *LINALG, *FFT, *RANDOM]
