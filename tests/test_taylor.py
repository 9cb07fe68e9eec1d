"""Taylor series, derivatives of high order through bodies, and randomized differential operators.

Compared with ``jax.experimental.jet``, nested ``jax.jvp``, and exact formulas.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental.jet import jet

import symop as so
from registry.errors import ArgumentError, DTypeError, ShapeError
from symop.graph.nodes import topological
from symop.regions.bodies import GraphBody
from tests.jax_calls import CALLS

A = np.linspace(-1.0, 1.0, 16).reshape(4, 4)
W = np.linspace(0.2, 1.0, 5)


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


# Taylor series -----------------------------------------------------------------------------------

OF_VECTORS = {
    "layers": lambda x: jnp.tanh(A @ jnp.tanh(A @ x)),
    "products": lambda x: jnp.exp(x) * jnp.sin(x * x) / (1 + x * x),
    "powers": lambda x: jnp.sqrt(1 + x * x) + (2 + x) ** 3,
    "softmax": lambda x: jnp.exp(A @ x) / jnp.sum(jnp.exp(A @ x)),
    "reductions": lambda x: jnp.sum(jnp.log(2 + x)) + jnp.max(x) ** 2,
}
SERIES = [np.array([0.3, -0.2, 0.5, 0.1]) * k for k in (1.0, -2.0, 0.5, 3.0)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OF_VECTORS)
@pytest.mark.parametrize("n_terms", [1, 4])
def test_taylor_is_jet(name, n_terms):
    u, x = OF_VECTORS[name], jnp.array([0.7, 0.2, 1.1, 0.45])
    series = SERIES[:n_terms] + [np.zeros(4)] * (4 - n_terms)
    first, rest = jet(u, (x,), (series,))
    got = so.taylor(u, x, SERIES[:n_terms], order=4)
    assert len(got) == 5
    for one, wanted in zip(got, [first, *rest], strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-9, atol=1e-12)


def test_taylor_of_several_arguments_and_results_under_transformations():
    def u(x, t):
        return {"sum": jnp.sin(x) * t, "inner": [x @ x]}

    x, t = jnp.array([0.3, 0.9]), jnp.array(0.4)
    series = [(jnp.array([1.0, 2.0]), 1.0), (jnp.array([0.0, 1.0]), 2.0)]

    @jax.jit
    def ours(x, t):
        return so.taylor(u, (x, t), series)

    got = ours(x, t)
    path = [[one[0] for one in series], [jnp.asarray(one[1]) for one in series]]
    for key in ("sum", "inner"):
        pick = (lambda x, t: u(x, t)["sum"]) if key == "sum" else (lambda x, t: u(x, t)["inner"][0])
        first, rest = jet(pick, (x, t), path)
        for one, wanted in zip(got, [first, *rest], strict=True):
            value = one["sum"] if key == "sum" else one["inner"][0]
            np.testing.assert_allclose(value, wanted, rtol=1e-9)
    slope = jax.grad(lambda x: so.taylor(u, (x, t), series)[2]["inner"][0])(x)
    np.testing.assert_allclose(slope, 2 * series[1][0], rtol=1e-9)  # of 2 (v1 v1 + x v2)


def test_taylor_of_symbols_holds_directions_fixed():
    x = so.var("x", shape=(), dtype="float64")
    values = so.taylor([x * x, so.sin(x)], "x", [x, x * x])
    at = [[float(one.eval(x=0.7)) for one in part] for part in values]
    v1, v2 = 0.7, 0.49
    wanted = [
        [0.49, math.sin(0.7)],
        [2 * 0.7 * v1, math.cos(0.7) * v1],
        [2 * v1 * v1 + 2 * 0.7 * v2, -math.sin(0.7) * v1**2 + math.cos(0.7) * v2],
    ]
    np.testing.assert_allclose(at, wanted, rtol=1e-12)
    constant = so.taylor(so.var("y", shape=(), dtype="float64") * 1.0, x, [1.0])
    assert float(constant[1].eval(y=2.0, x=1.0)) == 0.0


def test_taylor_of_programs_and_eager_arrays():
    program = so.Program()
    x = program.data("x", (), "float64")
    _, first, second = so.taylor(so.exp(2 * x), x, [1.0], order=2)
    got = program.run({"x": np.float64(0.3)}, [first, second])
    np.testing.assert_allclose(got, [2 * np.exp(0.6), 4 * np.exp(0.6)], rtol=1e-12)
    values = so.taylor(jnp.exp)(so.nd.array(np.float64(0.3)), [so.nd.array(np.float64(2.0))])
    assert isinstance(values[1], so.NDArray)
    np.testing.assert_allclose(values[1].asnumpy(), 2 * np.exp(0.3), rtol=1e-12)


def test_eager_arrays_are_not_recorded():
    x = so.nd.array(np.float64(0.3))
    calls = [lambda: so.taylor(jnp.exp)(x, [1.0]), lambda: so.partial(jnp.exp, {0: 1})(x)]
    for call in calls:
        with so.autograd.record(), pytest.raises(ArgumentError, match="cannot be recorded"):
            call()


def test_orders_that_vanish_are_arrays_of_jax():
    for one in so.taylor(lambda x: 2.0 * x, jnp.asarray(3.0), [1.0], order=3):
        assert isinstance(one, jax.Array)
    assert isinstance(so.partial(lambda x: 2.0 * x, {0: 2})(3.0), jax.Array)


def test_taylor_of_a_symbol_with_several_outputs():
    x = so.var("x", shape=(), dtype="float64")
    values = so.taylor(so.Group([x * x, so.exp(x)]), x, [1.0], order=2)
    at = [[float(one.eval(x=0.5)) for one in part] for part in values]
    e = math.exp(0.5)
    np.testing.assert_allclose(at, [[0.25, e], [1.0, e], [2.0, e]], rtol=1e-12)


def test_taylor_misuse():
    x = so.var("x", shape=(2,), dtype="float64")
    for order in (1.5, "2", -1):
        with pytest.raises(ArgumentError, match="taylor: order must be a whole number"):
            so.taylor(x * x, x, [np.ones(2)], order=order)
    with pytest.raises(DTypeError, match="taylor: what is differentiated must be of a floating"):
        so.taylor(lambda x: x * x, 3, [1.0])
    with pytest.raises(ArgumentError, match="must have one part for each x"):
        so.taylor(lambda x, y: x * y, (3.0, 1.0), [(1.0,)])
    with pytest.raises(ShapeError, match=r"must have the shape of its x, \(2,\), got \(3,\)"):
        so.taylor(x * x, x, [np.ones(3)])
    with pytest.raises(ArgumentError, match="order must be a whole number of at least 2"):
        so.taylor(x * x, x, [np.ones(2)] * 2, order=1)
    with pytest.raises(ArgumentError, match="must be a symbol or a function"):
        so.taylor(3, x, [np.ones(2)])


# Derivatives of high order through bodies --------------------------------------------------------


def _inner(c, w):
    return lax.scan(lambda d, v: (jnp.sin(d * v) + d * c, None), c * w, W[:3])[0], None


BODIES = {
    "scan": lambda x: lax.scan(lambda c, w: (jnp.sin(w * c) + c, None), x, W)[0],
    "two carries": lambda x: lax.scan(
        lambda c, w: ((jnp.sin(w * c[0]) + c[1], c[0] * c[1]), c[0]), (x, x * x), W
    )[0][1],
    "series": lambda x: lax.scan(
        lambda c, w: (jnp.sin(w * c) + c, c * jnp.exp(-c)), x, W, reverse=True
    )[1].sum(),
    "nested scans": lambda x: lax.scan(_inner, x, W)[0],
    "while": lambda x: lax.while_loop(
        lambda s: s[0] < 5, lambda s: (s[0] + 1, jnp.sin(s[1]) * 1.1 + 0.1 * s[1]), (0, x)
    )[1],
    "cond": lambda x: lax.cond(x > 0, lambda x: jnp.sin(x) * jnp.exp(x), lambda x: x, x),
    "vmap": lambda x: jax.vmap(lambda w: jnp.sin(w * x) * jnp.exp(-x * w))(W).sum(),
    "vmap in scan": lambda x: lax.scan(
        lambda c, _: (jax.vmap(lambda v: jnp.sin(v * c) * c)(W).sum(), None), x, None, length=4
    )[0],
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(x) * jnp.exp(x)),
}


def _count(nodes):
    """The number of nodes, those of bodies included."""
    order = topological(nodes)
    inner = [a for node in order for a in node.attributes if isinstance(a, GraphBody)]
    return len(order) + sum(_count(body.results) for body in inner)


def _slope(f):
    return lambda x: jax.jvp(f, (x,), (1.0,))[1]


@pytest.mark.parametrize("name", BODIES)
def test_derivatives_through_bodies_are_right_and_grow_as_polynomials(name):
    x = so.from_jax(BODIES[name], jnp.asarray(0.4))
    nested, counts = BODIES[name], []
    for order in range(1, 9):
        derived = so.derivative(x, "x", order)
        counts.append(_count(derived.nodes))
        if order <= 4:
            nested = _slope(nested)
            np.testing.assert_allclose(derived.eval(x=0.4), jax.jit(nested)(0.4), rtol=1e-8)
    assert counts[7] < 6 * counts[3]  # 16 times, if each order doubled the graph


def test_mixed_derivatives_and_gradients_through_a_loop():
    def u(x, w):
        return lax.scan(lambda c, v: (jnp.sin(v * c) + w * c, None), x, W)[0]

    symbol = so.from_jax(u, jnp.asarray(0.4), jnp.asarray(0.9))
    got = so.grad(so.derivative(symbol, ("x", "x", "w")), "w").eval(x=0.4, w=0.9)
    along = jax.jvp
    wanted = jax.grad(
        lambda w: along(
            lambda x: along(lambda x: jax.grad(u, 1)(x, w), (x,), (1.0,))[1], (0.4,), (1.0,)
        )[1]
    )(0.9)
    np.testing.assert_allclose(got, wanted, rtol=1e-9)


def test_equal_operands_and_results_of_a_loop_are_one():
    a, b = so.var("a", shape=(4,)), so.var("b", shape=())
    last, (first, again) = so.scan(lambda c, x: (c + x[0] * x[1], (c * c, c * c)), b, (a, a))
    assert first.same_as(again)
    node = last.node.source
    assert len([one for one in node.inputs if one is a.node]) == 1
    both = so.Group([last, first, again]).eval(a=[1.0, 2.0, 3.0, 4.0], b=1.0)
    np.testing.assert_allclose(both[0], 31.0)
    np.testing.assert_allclose(both[1], [1.0, 4.0, 36.0, 225.0])


def test_carries_that_differ_later_are_not_merged():
    """Both start at ``b``; the third step differs, since one of them reads a series."""
    a, b = so.var("a", shape=(3,)), so.var("b", shape=())
    (c, d), _ = so.scan(lambda cs, x: ((cs[0] * 2, cs[1] * 2 + x), cs[0]), (b, b), a)
    got = so.Group([c, d]).eval(a=[0.0, 0.0, 1.0], b=1.0)
    np.testing.assert_allclose(got, [8.0, 9.0])


# Randomized operators ----------------------------------------------------------------------------


def _network(x):
    return jnp.sum(jnp.tanh(A @ x) ** 2) * jnp.exp(-0.1 * jnp.sum(x * x))


POINT = np.array([0.7, 0.2, 1.1, 0.45])


@pytest.mark.parametrize("distribution", ["rademacher", "normal", "basis"])
def test_estimates_of_the_laplacian_are_unbiased(distribution):
    exact = float(so.laplacian(_network, POINT))
    count = 2 if distribution == "basis" else 4

    @jax.jit
    @jax.vmap
    def estimates(key):
        v = so.random_directions(key, count, POINT, distribution)
        return so.laplacian(_network, POINT, directions=v)

    values = np.asarray(estimates(jax.random.split(jax.random.key(0), 4000)))
    error = values.std() / math.sqrt(len(values))
    assert error > 0
    assert abs(values.mean() - exact) < 4 * error  # one in 16,000 for a normal distribution


def test_estimates_of_divergence_and_biharmonic_operator_are_unbiased():
    def field(x):
        return jnp.sin(A @ x) * x

    keys = jax.random.split(jax.random.key(1), 4000)
    exact = float(so.divergence(field, POINT)), float(so.biharmonic(_network, POINT))

    @jax.jit
    @jax.vmap
    def estimates(key):
        v = so.random_directions(key, 3, POINT, "normal")
        return (
            so.divergence(field, POINT, directions=v),
            so.biharmonic(_network, POINT, directions=v),
        )

    for values, wanted in zip(estimates(keys), exact, strict=True):
        error = np.std(values) / math.sqrt(len(values))
        assert abs(np.mean(values) - wanted) < 4 * error


def test_estimates_of_the_biharmonic_operator_need_no_normal_distribution():
    """Signs have other fourth moments; the mean over all of them is exact."""

    def u(x):
        return jnp.sin(x[0]) * jnp.exp(x[1]) + x[0] ** 4 * x[1] ** 2

    signs = np.array([[1.0, 1.0], [1.0, -1.0]])
    pairs = [np.stack([a, b]) for a in (signs[0], signs[1]) for b in (signs[0], signs[1])]
    x = jnp.array([0.3, 0.7])
    got = [float(so.biharmonic(u, x, directions=v)) for v in pairs]
    np.testing.assert_allclose(np.mean(got), so.biharmonic(u, x), rtol=1e-12)
    with pytest.raises(ArgumentError, match="must be drawn independently"):
        so.biharmonic(u, x, directions=so.random_directions(jax.random.key(0), 2, x, "basis"))
    with pytest.raises(ShapeError, match="at least two, got"):
        so.biharmonic(u, x, directions=np.ones((1, 2)))


def test_random_directions_misuse():
    key = jax.random.key(0)
    for count in (-1, 0, 2.5, True, None):
        with pytest.raises(ArgumentError, match="count must be a whole number of at least 1"):
            so.random_directions(key, count, POINT)
    with pytest.raises(DTypeError, match="the dtype must be real and floating, got int64"):
        so.random_directions(key, 2, np.arange(4))
    with pytest.raises(DTypeError, match="laplacian: directions must be of the dtype of x"):
        so.laplacian(_network, POINT, directions=np.ones((2, 4), int))


def test_a_whole_basis_is_exact():
    v = so.random_directions(jax.random.key(2), 4, POINT, "basis")
    got = so.laplacian(_network, POINT, directions=v)
    np.testing.assert_allclose(got, so.laplacian(_network, POINT), rtol=1e-12)


def test_directions_of_symbols_and_misuse():
    x, v = so.var("x", shape=(3,), dtype="float64"), so.var("v", shape=(2, 3), dtype="float64")
    estimate = so.laplacian(so.sum(x * x * x), x, directions=v)
    ways = np.array([[1.0, 2.0, 0.5], [0.3, 0.1, 2.0]])
    wanted = np.mean(ways**2 @ (6 * np.array([1.0, 2.0, 3.0])))
    np.testing.assert_allclose(estimate.eval(x=[1.0, 2.0, 3.0], v=ways), wanted)
    with pytest.raises(ShapeError, match=r"laplacian: directions must be of shape \(n, 3\)"):
        so.laplacian(so.sum(x * x), x, directions=np.ones((2, 4)))
    with pytest.raises(ArgumentError, match="must be one of rademacher, normal, basis"):
        so.random_directions(jax.random.key(0), 2, POINT, "cauchy")
    with pytest.raises(ArgumentError, match="count must be at most 4, got 5"):
        so.random_directions(jax.random.key(0), 5, POINT, "basis")


# Functions of functions --------------------------------------------------------------------------


def test_partial_and_linear_operator_of_functions():
    def u(x, t):
        return jnp.sin(2 * x[0]) * jnp.exp(-t) * x[1] ** 2

    x, t = jnp.array([0.4, 1.5]), jnp.asarray(0.3)
    mixed = so.partial(u, {(0, 0): 2, "t": 1})
    wanted = 4 * np.sin(0.8) * np.exp(-0.3) * 2.25
    np.testing.assert_allclose(jax.jit(mixed)(x, t), wanted, rtol=1e-12)
    slope = jax.grad(lambda t: mixed(x, t))(t)
    np.testing.assert_allclose(slope, -wanted, rtol=1e-12)
    mapped = jax.vmap(mixed, (None, 0))(x, jnp.array([0.3, 0.3]))
    np.testing.assert_allclose(mapped, [wanted] * 2, rtol=1e-12)
    sums = so.linear_operator(u, [(lambda x, t: x[1] * t, {("x", 1): 2}), (2.0, {1: 1}), (1, {})])
    value = np.sin(0.8) * np.exp(-0.3)
    np.testing.assert_allclose(
        sums(x, t), 0.45 * 2 * value - 2 * value * 2.25 + value * 2.25, rtol=1e-12
    )
    eager = mixed(so.nd.array(np.asarray(x)), so.nd.array(np.float64(0.3)))
    np.testing.assert_allclose(eager.asnumpy(), wanted, rtol=1e-12)
    twice = so.partial(lambda x, t: x**3 * t, {"x": 1, 0: 1})  # one argument by name and position
    np.testing.assert_allclose(twice(3.0, 1.0), 18.0)
    with pytest.raises(ArgumentError, match="must have an argument 'y', got 2 arguments"):
        so.partial(u, {"y": 1})(x, t)


def test_operators_without_a_point_are_functions():
    for operator in (so.laplacian, so.biharmonic):
        np.testing.assert_allclose(operator(_network)(POINT), operator(_network, POINT))
    twice = so.laplacian(so.laplacian(_network))
    np.testing.assert_allclose(twice(POINT), so.biharmonic(_network, POINT), rtol=1e-9)


def test_tangents_belong_to_the_line_and_the_name_of_their_call():
    """The tangent of an operator is built once, for whatever call comes first."""
    x = so.var("x", shape=(7,), dtype="float64")
    calls = [
        so.arctan(x),
        so.arctan(x, name="angle"),
    ]
    for call, label in zip(calls, ("atan", "angle"), strict=True):
        line = call.node.origin.line
        derived = [one for one in topological(so.derivative(call, x).nodes) if one.derived]
        assert derived
        assert {one.origin.line for one in derived if one.inputs} == {line}
        assert label in {one.origin.forward for one in derived}


DIFFERENTIABLE = [one for one in CALLS if one.differentiable]
GAMMA = "JAX does not differentiate igamma_grad_a"
LOWER = {
    "lax.igamma": (1, GAMMA),
    "lax.igammac": (1, GAMMA),
    "scipy.special.gammainc": (1, GAMMA),
    "scipy.special.gammaincc": (1, GAMMA),
    "special.exp1": (1, "in JAX, the rule of its custom_jvp closes over a value of another trace"),
}
"""The highest order that nested JAX reaches, and why."""


@pytest.mark.parametrize("call", DIFFERENTIABLE, ids=[one.name for one in DIFFERENTIABLE])
@pytest.mark.sampled(24)
def test_taylor_of_functions_of_jax_is_nested_jvp(call):
    """To third order, along a curve, for each differentiable call of the table."""
    places = [i for i, one in enumerate(call.args) if jnp.issubdtype(one.dtype, jnp.floating)]

    def u(*moved):
        args = [jnp.asarray(one) for one in call.args]
        for i, one in zip(places, moved, strict=True):
            args[i] = one
        outputs = jax.tree.leaves(call.function(*args))
        return [jnp.abs(y) for y in outputs if jnp.issubdtype(y.dtype, jnp.inexact)]

    xs = tuple(jnp.asarray(call.args[i], "float64") for i in places)
    ways = [tuple(jnp.cos(k + x) * 0.3 for x in xs) for k in range(3)]

    def curve(s):
        return [
            x + s * v + s**2 / 2 * w + s**3 / 6 * z for x, v, w, z in zip(xs, *ways, strict=True)
        ]

    def of_curve(s):
        return u(*curve(s))

    highest, _ = LOWER.get(call.name, (3, ""))
    nested = [of_curve]
    for _ in range(highest):
        nested.append(_slope(nested[-1]))
    wanted = jax.jit(lambda s: [one(s) for one in nested])(0.0)
    got = jax.jit(lambda xs: so.taylor(u, xs, ways[:highest]))(xs)
    for order, (one, other) in enumerate(zip(got, wanted, strict=True)):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-7, err_msg=f"order {order}")
