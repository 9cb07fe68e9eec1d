"""Derivatives of higher order: values against sympy and JAX, growth, shapes, modes, refusals."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy

import symop as so
from registry.errors import (
    ArgumentError,
    DisconnectedError,
    DTypeError,
    FeedError,
    GradientError,
    NotLinearError,
)
from symop.graph.nodes import topological

X = sympy.Symbol("x", real=True)
POINTS = (0.3, 0.7, 1.9)


def sig(x):
    return 1 / (1 + sympy.exp(-x))


SCALARS = {
    "x^5": (lambda x: x**5, lambda x: x**5),
    "exp": (so.exp, sympy.exp),
    "log": (so.log, sympy.log),
    "sin": (so.sin, sympy.sin),
    "cos": (so.cos, sympy.cos),
    "tan": (lambda x: so.tan(x / 2), lambda x: sympy.tan(x / 2)),
    "tanh": (so.tanh, sympy.tanh),
    "sinh": (so.sinh, sympy.sinh),
    "cosh": (so.cosh, sympy.cosh),
    "asin": (lambda x: so.asin(x / 3), lambda x: sympy.asin(x / 3)),
    "acos": (lambda x: so.acos(x / 3), lambda x: sympy.acos(x / 3)),
    "atan": (so.atan, sympy.atan),
    "asinh": (so.asinh, sympy.asinh),
    "acosh": (lambda x: so.acosh(x + 2), lambda x: sympy.acosh(x + 2)),
    "atanh": (lambda x: so.atanh(x / 3), lambda x: sympy.atanh(x / 3)),
    "sqrt": (so.sqrt, sympy.sqrt),
    "rsqrt": (so.rsqrt, lambda x: 1 / sympy.sqrt(x)),
    "cbrt": (so.cbrt, lambda x: x ** sympy.Rational(1, 3)),
    "sigmoid": (so.sigmoid, sig),
    "softplus": (so.softplus, lambda x: sympy.log(1 + sympy.exp(x))),
    "silu": (so.silu, lambda x: x * sig(x)),
    "mish": (so.mish, lambda x: x * sympy.tanh(sympy.log(1 + sympy.exp(x)))),
    "gelu": (so.gelu, lambda x: x * (1 + sympy.erf(x / sympy.sqrt(2))) / 2),
    "softsign": (so.softsign, lambda x: x / (1 + x)),
    "erf": (so.erf, sympy.erf),
    "erfc": (so.erfc, sympy.erfc),
    "erfinv": (lambda x: so.erfinv(x / 3), lambda x: sympy.erfinv(x / 3)),
    "lgamma": (so.lgamma, sympy.loggamma),
    "digamma": (so.digamma, lambda x: sympy.polygamma(0, x)),
    "expm1": (so.expm1, lambda x: sympy.exp(x) - 1),
    "log1p": (so.log1p, lambda x: sympy.log(1 + x)),
    "exp2": (so.exp2, lambda x: 2**x),
    "log2": (so.log2, lambda x: sympy.log(x) / sympy.log(2)),
    "reciprocal": (so.reciprocal, lambda x: 1 / x),
    "square": (so.square, lambda x: x * x),
    "power": (lambda x: so.power(x, 2.5), lambda x: x ** sympy.Rational(5, 2)),
    "x^x": (lambda x: so.power(x, x), lambda x: x**x),
    "atan2": (lambda x: so.atan2(x, 1 + x), lambda x: sympy.atan(x / (1 + x))),
    "hypot": (lambda x: so.hypot(x, x * x), lambda x: sympy.sqrt(x**2 + x**4)),
    "sigmoid*sin": (lambda x: so.sigmoid(x) * so.sin(x), lambda x: sig(x) * sympy.sin(x)),
    "exp(sin)": (lambda x: so.exp(so.sin(x)), lambda x: sympy.exp(sympy.sin(x))),
    "exp(x^2)": (lambda x: so.exp(x * x), lambda x: sympy.exp(x * x)),
    "exp(-x^2)": (lambda x: so.exp(-x * x), lambda x: sympy.exp(-x * x)),
    "x/(1+x^2)": (lambda x: x / (1 + x * x), lambda x: x / (1 + x * x)),
    "x/(x+2)": (lambda x: x / (x + 2), lambda x: x / (x + 2)),
    "sqrt(1+x^2)": (lambda x: so.sqrt(1 + x * x), lambda x: sympy.sqrt(1 + x * x)),
    "log(1+x^2)": (lambda x: so.log(1 + x * x), lambda x: sympy.log(1 + x * x)),
    "sin(x)/x": (lambda x: so.sin(x) / x, lambda x: sympy.sin(x) / x),
    "sin(cos)": (lambda x: so.sin(so.cos(x)), lambda x: sympy.sin(sympy.cos(x))),
    "tanh(x^2)": (lambda x: so.tanh(x * x), lambda x: sympy.tanh(x * x)),
    "x log x": (lambda x: x * so.log(x), lambda x: x * sympy.log(x)),
    "log(sin)": (lambda x: so.log(so.sin(x)), lambda x: sympy.log(sympy.sin(x))),
}


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.sampled(6)
def test_against_sympy_to_order_6(name):
    ours, theirs = SCALARS[name]
    expression = theirs(X)
    with jax.enable_x64(True):
        x = so.var("x", (), "float64")
        y = ours(x)
        orders = so.Group([so.derivative(y, x, n) for n in range(1, 7)])
        for at in POINTS:
            found = orders.eval(x=np.float64(at))
            for n, one in enumerate(found, 1):
                wanted = float(
                    sympy.diff(expression, X, n).evalf(30, subs={X: sympy.Float(at, 40)})
                )
                assert float(one) == pytest.approx(wanted, rel=1e-9 * 4.0**n, abs=1e-9), (n, at)


CHAINS = {
    "tanh(sin)": (lambda x: so.tanh(so.sin(x)), lambda x: mpmath.tanh(mpmath.sin(x))),
    "exp(-x^2)": (lambda x: so.exp(-x * x), lambda x: mpmath.exp(-x * x)),
    "sigmoid*sin": (
        lambda x: so.sigmoid(x) * so.sin(x),
        lambda x: mpmath.sin(x) / (1 + mpmath.exp(-x)),
    ),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.sampled(3)
def test_chains_to_order_20_against_mpmath(name):
    ours, theirs = CHAINS[name]
    at = 0.4
    with mpmath.workdps(60):
        series = [one * mpmath.factorial(n) for n, one in enumerate(mpmath.taylor(theirs, at, 20))]
    with jax.enable_x64(True):
        x = so.var("x", (), "float64")
        y = ours(x)
        for n in (10, 15, 20):
            found = float(so.derivative(y, x, n).eval(x=np.float64(at)))
            # Terms that cancel are larger than their sum, the more so the higher the order.
            assert found == pytest.approx(float(series[n]), rel=1e-12 * 2.0**n)


def test_softmax_of_tanh_to_order_8_against_mpmath():
    scales, at = [-1.0, -0.25, 0.5, 1.5], 0.3

    def exact(x):
        parts = [mpmath.exp(mpmath.tanh(one * x)) for one in scales]
        return parts[3] / sum(parts)

    with mpmath.workdps(50):
        series = [one * mpmath.factorial(n) for n, one in enumerate(mpmath.taylor(exact, at, 8))]
    with jax.enable_x64(True):
        x = so.var("x", (), "float64")
        y = so.softmax(so.tanh(x * np.array(scales)))[3]
        for n in range(1, 9):
            found = float(so.derivative(y, x, n).eval(x=np.float64(at)))
            assert found == pytest.approx(float(series[n]), rel=1e-13 * 3.0**n)


def softmax_of_tanh(x):
    return so.softmax(so.tanh(x * so.var("v", (4,))))


def perceptron(x):
    w = [so.var(f"w{i}", shape) for i, shape in enumerate([(8, 1), (8, 8), (1, 8)])]
    hidden = so.tanh(so.matmul(w[0], so.reshape(x, shape=(1,))))
    return so.sum(so.matmul(w[2], so.tanh(so.matmul(w[1], hidden))))


# The nodes of the graph of order 8. Those of the first three were found by a probe with interning
# and simple rewriting alone; half as many more are allowed, and none of the others by far.
AT_ORDER_8 = {
    "tanh": (so.tanh, 94),
    "sigmoid*sin": (SCALARS["sigmoid*sin"][0], 195),
    "softmax(tanh)": (softmax_of_tanh, 415),
    "exp(sin)": (SCALARS["exp(sin)"][0], 140),
    "silu": (so.silu, 200),
    "x/(1+x^2)": (SCALARS["x/(1+x^2)"][0], 95),
    "sqrt(1+x^2)": (SCALARS["sqrt(1+x^2)"][0], 180),
    "perceptron": (perceptron, 340),
}


def sizes(y, x, orders):
    return [len(topological(so.derivative(y, x, n).nodes)) for n in orders]


@pytest.mark.parametrize("name", AT_ORDER_8)
def test_graphs_grow_as_a_polynomial(name):
    function, probe = AT_ORDER_8[name]
    x = so.var("x", ())
    half, at_8, whole = sizes(function(x), x, (6, 8, 12))
    assert at_8 <= 1.5 * probe
    # Twice the order multiplies what grows as its fourth power by 16.
    assert whole <= 16 * half


def equations(jaxpr):
    inner = [one.jaxpr for e in jaxpr.eqns for one in e.params.values() if hasattr(one, "jaxpr")]
    return len(jaxpr.eqns) - len(inner) + sum(map(equations, inner))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (so.tanh, jnp.tanh),
        (lambda x: so.exp(so.sin(x)), lambda x: jnp.exp(jnp.sin(x))),
        (lambda x: so.sigmoid(x) * so.sin(x), lambda x: jax.nn.sigmoid(x) * jnp.sin(x)),
    ],
    ids=["tanh", "exp(sin)", "sigmoid*sin"],
)
@pytest.mark.sampled(3)
def test_reverse_over_reverse_stays_small(ours, theirs):
    x = so.var("x", ())
    y = ours(x)
    for _ in range(8):
        y, theirs = so.grad(y, x), jax.grad(theirs)
    at = jnp.float32(0.3)
    found = equations(jax.make_jaxpr(y.to_jax())(at).jaxpr)
    assert 5 * found <= equations(jax.make_jaxpr(theirs)(at).jaxpr)


class TestDerivative:
    def test_mixed_partials(self):
        x, t = so.var("x", ()), so.var("t", ())
        u = so.sin(x * t) * so.exp(t)

        def f(x, t):
            return jnp.sin(x * t) * jnp.exp(t)

        ours = [so.derivative(u, by) for by in ((x, x, t), (x, t, x), (t, x, x))]
        wanted = jax.jit(jax.grad(jax.grad(jax.grad(f), 0), 1))(0.7, 0.3)
        for one in ours:
            np.testing.assert_allclose(one.eval(x=0.7, t=0.3), wanted, rtol=1e-5)

    def test_entry_by_entry(self):
        x, scale = so.var("x", (3,)), so.var("scale", (3,))
        y = so.where(x > 0, so.exp(x) * scale, so.clip(so.square(x), low=-1.0, high=9.0))
        at = np.array([-0.5, 0.2, 1.0], "f")
        found = so.derivative(y, x, 2).eval(x=at, scale=np.array([1.0, 2.0, 3.0], "f"))
        np.testing.assert_allclose(found, [2.0, 2 * np.exp(0.2), 3 * np.exp(1.0)], rtol=1e-6)

    def test_along_a_direction(self):
        x, v = so.var("x", (3,)), so.var("v", (3,))
        at, way = np.array([0.3, 0.5, 0.7], "f"), np.array([1.0, -2.0, 0.5], "f")
        for mode in ("forward", "reverse"):
            second = so.derivative(so.prod(so.sin(x)), x, 2, direction=v, mode=mode)
            np.testing.assert_allclose(
                second.eval(x=at, v=way),
                way @ jax.jit(jax.hessian(lambda x: jnp.prod(jnp.sin(x))))(at) @ way,
                rtol=1e-5,
            )

    @pytest.mark.parametrize("make", [so.softmax, so.cumsum, lambda x: x - so.sum(x), so.flip])
    def test_what_mixes_entries_wants_a_direction(self, make):
        x = so.var("x", (3,))
        y = make(x, axis=0) if make in (so.softmax, so.cumsum, so.flip) else make(x)
        with pytest.raises(GradientError, match="pass a direction, or use jacobian"):
            so.derivative(y, x)

    def test_of_several_values(self):
        x = so.var("x", ())
        low, high = so.derivative([so.sin(x), so.exp(x)], x, 2)
        assert float(low.eval(x=0.0)) == 0.0
        assert float(high.eval(x=0.0)) == 1.0

    def test_of_a_vector_by_a_scalar(self):
        x = so.var("x", ())
        found = so.derivative(so.sin(x * np.arange(3, dtype="f")), x, 2)
        np.testing.assert_allclose(
            found.eval(x=0.5), -np.sin(0.5 * np.arange(3)) * np.arange(3) ** 2, rtol=1e-6
        )

    @pytest.mark.parametrize("mode", ["forward", "reverse"])
    def test_beyond_the_degree_it_is_zero(self, mode):
        x = so.var("x", (3,))
        assert so.derivative(x * x, x, 3, mode=mode).eval(x=np.ones(3, "f")).tolist() == [0.0] * 3

    def test_order_zero_is_the_value(self):
        x = so.var("x", ())
        y = so.sin(x)
        assert so.derivative(y, x, 0) is y

    def test_a_direction_for_each(self):
        x, t = so.var("x", (3,)), so.var("t", ())
        y = so.prod(so.sin(x)) * so.exp(2 * t)
        found = so.derivative(y, (x, t), direction=([1.0, 0.0, 0.0], None))
        at = np.array([0.3, 0.5, 0.7], "f")
        wanted = 2 * np.cos(at[0]) * np.sin(at[1]) * np.sin(at[2])
        np.testing.assert_allclose(found.eval(x=at, t=0.0), wanted, rtol=1e-6)
        with pytest.raises(ArgumentError, match="one for each x"):
            so.derivative(y, (x, t), direction=(np.ones(3, "f"),))

    def test_modes_agree(self):
        x = so.var("x", ())
        y = so.sigmoid(x) * so.sin(x)
        one, other = (so.derivative(y, x, 4, mode=mode) for mode in ("forward", "reverse"))
        np.testing.assert_allclose(one.eval(x=0.3), other.eval(x=0.3), rtol=1e-5)

    def test_reverse_passes_what_has_no_forward_mode(self):
        x, label = so.var("x", (2, 3)), so.var("label", (2,))
        y = so.softmax_output(x, label)
        with pytest.raises(NotLinearError):
            so.derivative(so.sum(y), x, direction=np.ones((2, 3), "f"))
        found = so.derivative(so.sum(y), x, direction=np.ones((2, 3), "f"), mode="reverse")
        assert found.shape == ()

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda x, y: so.derivative(y, x, -1), ArgumentError, "must be a whole number"),
            (lambda x, y: so.derivative(y, x, 1.5), ArgumentError, "must be a whole number"),
            (lambda x, y: so.derivative(y, (x, x), 2), ArgumentError, "taken once each"),
            (lambda x, y: so.derivative(y, x, mode="up"), ArgumentError, "'forward' or 'reverse'"),
            (lambda x, y: so.derivative(y, so.var("z", ())), DisconnectedError, "must depend on"),
            (lambda x, y: so.hessian(so.Group([y, y]), x), GradientError, "one of shape"),
            (lambda x, y: so.hessian(y * np.ones(2, "f"), x), GradientError, "of shape"),
            (lambda x, y: so.jacobian(so.cast(y, dtype="int32"), x), DTypeError, "real and float"),
        ],
    )
    def test_refusals(self, call, error, message):
        x = so.var("x", ())
        with pytest.raises(error, match=message):
            call(x, so.sin(x))


def model(x, w, b):
    return jnp.tanh(w @ x + b)


AT = {
    "x": np.array([0.1, 0.4, -0.3], "f"),
    "w": np.linspace(-1, 1, 6, dtype="f").reshape(2, 3),
    "b": np.array([0.2, -0.1], "f"),
}


class TestJacobian:
    def symbols(self):
        x, w, b = so.var("x", (3,)), so.var("w", (2, 3)), so.var("b", (2,))
        return (x, w, b), so.tanh(so.matmul(w, x) + b)

    @pytest.mark.parametrize("mode", [None, "forward", "reverse"])
    def test_blocks_are_those_of_jax(self, mode):
        xs, y = self.symbols()
        theirs = jax.jacobian(model, (0, 1, 2))(*AT.values())
        for ours, wanted in zip(so.jacobian(y, list(xs), mode=mode), theirs, strict=True):
            assert ours.shape == wanted.shape
            np.testing.assert_allclose(ours.eval(**AT), wanted, rtol=1e-5)

    def test_the_smaller_side_decides(self):
        (x, _, _), y = self.symbols()
        wide, tall = so.jacobian(y, x), so.jacobian(so.concat(y, y, axis=0), x)
        lengths = [one.tojson().count('"eye"') for one in (wide, tall)]
        assert lengths == [1, 1]
        assert "eye(n_rows=2" in str(wide)
        assert "eye(n_rows=3" in str(tall)

    def test_by_and_of_scalars_there_is_no_loop(self):
        (x, _, _), y = self.symbols()
        t = so.var("t", ())
        assert "vmap" not in str(so.jacobian(so.sum(y), x)) + str(so.jacobian(t * x, t))

    def test_differentiates_again(self):
        (x, w, _), y = self.symbols()
        total = so.sum(so.square(so.jacobian(y, x)))

        def f(w):
            return jnp.sum(jnp.square(jax.jacobian(model)(AT["x"], w, AT["b"])))

        ours = so.grad(total, w)
        np.testing.assert_allclose(ours.eval(**AT), jax.grad(f)(AT["w"]), rtol=1e-4)
        again = so.load_json(ours.tojson())
        np.testing.assert_array_equal(again.eval(**AT), ours.eval(**AT))

    @pytest.mark.parametrize("mode", ["forward", "reverse"])
    def test_hessian(self, mode):
        (x, w, _), y = self.symbols()
        loss = so.sum(so.square(y)) * so.sum(x)

        def f(x, w):
            return jnp.sum(jnp.square(model(x, w, AT["b"]))) * jnp.sum(x)

        ours = so.hessian(loss, [x, w], mode=mode)
        theirs = jax.jit(jax.hessian(f, (0, 1)))(AT["x"], AT["w"])
        for row, others in zip(ours, theirs, strict=True):
            for mine, other in zip(row, others, strict=True):
                np.testing.assert_allclose(mine.eval(**AT), other, rtol=1e-4, atol=1e-6)

    def test_hessian_of_a_linear_function_is_zero(self):
        x = so.var("x", (2,))
        assert so.hessian(so.sum(3 * x), x).eval(x=np.ones(2, "f")).tolist() == [[0, 0], [0, 0]]

    def test_product_with_the_hessian(self):
        (_, w, _), y = self.symbols()
        loss = so.sum(so.exp(y))

        def f(w):
            return jnp.sum(jnp.exp(model(AT["x"], w, AT["b"])))

        v = np.cos(np.arange(6, dtype="f")).reshape(2, 3)
        wanted = jax.jvp(jax.grad(f), (AT["w"],), (v,))[1]
        np.testing.assert_allclose(so.hvp(loss, w, v).eval(**AT), wanted, rtol=1e-4)
        (listed,) = so.hvp(loss, [w], [v])
        np.testing.assert_allclose(listed.eval(**AT), wanted, rtol=1e-4)

    def test_on_variables_of_a_program(self):
        program = so.Program()
        x = program.data("x", (3,))
        y = so.sum(x * x * x)
        found = [so.grad(y, x), so.derivative(y, x, 2, direction=[1.0, 0.0, 0.0])]
        found += [so.jacobian(y, x), so.hessian(y, x), so.hvp(y, x, [0.0, 1.0, 0.0])]
        assert all(isinstance(one, so.Variable) for one in found)
        got = program.run({"x": [1.0, 2.0, 3.0]}, found)
        wanted = [[3, 12, 27], 6, [3, 12, 27], np.diag([6, 12, 18]), [0, 12, 0]]
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, other)
        assert so.Program.parse(str(program)) == program


def test_by_the_name_of_an_argument():
    x = so.var("x", (3, 1))
    u = so.fully_connected(so.tanh(x), units=1, name="out")
    loss = so.mean(so.square(so.derivative(u, x, direction=so.ones_like(x))))
    names = loss.list_arguments()
    assert names == ["x", "out_weight", "out_bias"]
    slopes = so.grad(loss, names[1:])
    given = {"x": np.ones((3, 1), "f"), "out_weight": np.ones((1, 1), "f"), "out_bias": [0.0]}
    assert slopes[1].eval(**given).tolist() == [0.0]
    by_node = so.grad(loss, loss.get_internals()["out_weight"])
    np.testing.assert_array_equal(slopes[0].eval(**given), by_node.eval(**given))
    assert loss.get_internals()["out_bias"].list_outputs() == ["out_bias"]
    with pytest.raises(FeedError, match="names must be among x, out_weight, out_bias"):
        so.grad(loss, "out_weigth")
