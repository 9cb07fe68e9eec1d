"""Sums of gradients of gradients: how few equations they leave, and that no value changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy

import symop as so
from symop.autodiff.accumulation import CANONICAL, LARGEST, LONGEST, Sums, accumulate
from symop.graph.emission import deriving
from symop.graph.nodes import contains_gradient, origin_of, topological
from symop.symbol.symbol import Symbol

X = sympy.Symbol("x", real=True)
FUNCTIONS = {
    "tanh": (so.tanh, jnp.tanh, sympy.tanh(X)),
    "sigmoid * sin": (
        lambda x: so.sigmoid(x) * so.sin(x),
        lambda x: jax.nn.sigmoid(x) * jnp.sin(x),
        sympy.sin(X) / (1 + sympy.exp(-X)),
    ),
    "exp(sin)": (
        lambda x: so.exp(so.sin(x)),
        lambda x: jnp.exp(jnp.sin(x)),
        sympy.exp(sympy.sin(X)),
    ),
    "silu": (so.silu, jax.nn.silu, X / (1 + sympy.exp(-X))),
    "x / (1 + x²)": (lambda x: x / (1 + x * x), lambda x: x / (1 + x * x), X / (1 + X**2)),
    "sqrt(1 + x²)": (
        lambda x: so.sqrt(1 + x * x),
        lambda x: jnp.sqrt(1 + x * x),
        sympy.sqrt(1 + X**2),
    ),
}


def equations(jaxpr):
    count = 0
    for one in jaxpr.eqns:
        inner = [p for p in one.params.values() if hasattr(p, "eqns") or hasattr(p, "jaxpr")]
        count += sum(equations(getattr(p, "jaxpr", p)) for p in inner) if inner else 1
    return count


def nested(y, x, order):
    for _ in range(order):
        y = so.grad(y, x)
    return y


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_eight_nested_gradients_take_a_fifth_of_the_equations(name):
    ours, theirs, _ = FUNCTIONS[name]
    x = so.var("x", ())
    for _ in range(8):
        theirs = jax.grad(theirs)
    at = jnp.float32(0.3)
    found = equations(jax.make_jaxpr(nested(ours(x), x, 8).to_jax())(at).jaxpr)
    assert 5 * found <= equations(jax.make_jaxpr(theirs)(at).jaxpr)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nested_gradients_against_sympy(name):
    ours, _, expression = FUNCTIONS[name]
    with jax.enable_x64(True):
        x = so.var("x", (), "float64")
        orders = so.Group([nested(ours(x), x, n) for n in range(1, 9)])
        for at in (0.3, 1.9):
            for n, one in enumerate(orders.eval(x=np.float64(at)), 1):
                wanted = sympy.diff(expression, X, n).evalf(30, subs={X: sympy.Float(at, 40)})
                assert float(one) == pytest.approx(float(wanted), rel=1e-9 * 4.0**n, abs=1e-8), n


# One sum ----------------------------------------------------------------------------------------

HOSTILE = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -3.25, 7.0, 1e-3], np.float32)


def pair(dtype="float32", shape=(81,)):
    """Two arrays that hold every pair of hostile numbers, and their symbols."""
    x, y = np.meshgrid(HOSTILE, HOSTILE)
    arrays = {"x": x.ravel().astype(dtype), "y": y.ravel().astype(dtype)}
    return arrays, [so.var(name, shape, dtype).node for name in arrays]


def times(x, n):
    return so.scale(x, scale=float(n))


def summed(terms, given):
    """The sum as it is written for gradients of gradients, and as the terms arrive."""
    with deriving(), origin_of(given[0]):  # as in a gradient: else nothing is looked through
        nodes = terms(*given)
        return Sums(topological(given))(nodes), accumulate(nodes)


EXACT = {
    "counted": lambda x, y: [x, y, x],
    "of both signs": lambda x, y: [x, -x],
    "signs": lambda x, y: [-x, y],
    "all negative": lambda x, y: [-x, -y],
    "a common power of two": lambda x, y: [times(x, 4), times(y, -2)],
    "signs of factors": lambda x, y: [(-x) * y, x * (-y), (-x) / y],
    "signs that cancel": lambda x, y: [(-x) * (-y)],
    "powers of factors": lambda x, y: [times(x, 2) * times(y, 4), times(x, 8) / y],
    "a denominator": lambda x, y: [x / times(y, 2), x / (-y)],
    "nested": lambda x, y: [(times(-x, 2) * y) * y],
    "by a constant": lambda x, y: [(2.0 * x) * y, y],
    "constants": lambda x, y: [so.ones_like(x), so.ones_like(x), x],
    "zeros": lambda x, y: [so.zeros_like(x), x],
    "of zeros alone": lambda x, y: [so.zeros_like(x), so.zeros_like(x)],
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", EXACT)
def test_a_sum_is_exact_where_nothing_is_rounded(name, dtype):
    arrays, given = pair(dtype)
    both = so.Group([Symbol([one]) for one in summed(EXACT[name], given)])
    assert both[0].type == both[1].type
    found, expected = jax.jit(both.to_jax())(**{k: arrays[k] for k in both.list_arguments()})
    rounded = dtype != "float32"
    np.testing.assert_allclose(
        *(np.asarray(one, np.float32) for one in (found, expected)), rtol=0.02 if rounded else 3e-7
    )


@pytest.mark.parametrize("name", EXACT)
def test_a_sum_of_small_whole_numbers_keeps_every_bit(name):
    _, given = pair(shape=(121,))
    whole = np.meshgrid(np.arange(-5, 6), np.array([-8, -4, -2, -1, 1, 2, 4, 8, 16, 32, 64]))
    x, y = (one.ravel().astype(np.float32) for one in whole)
    both = so.Group([Symbol([one]) for one in summed(EXACT[name], given)])
    arrays = {"x": x, "y": y}
    found, expected = both.eval(**{k: arrays[k] for k in both.list_arguments()})
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize(
    "terms",
    [
        lambda x, y: [x, y, x * y],
        lambda x, y: [x * y, y, x],
        lambda x, y: [y, x * y, x],
    ],
)
def test_a_sum_hangs_on_no_order(terms):
    _, given = pair()
    rank = topological(given)
    x, y = given
    with deriving(), origin_of(x):
        assert Sums(rank)(terms(x, y)) is Sums([*rank, x * y])([x * y, x, y])


def operators(node):
    return [one.op.name for one in topological([node])]


def test_what_stands_in_front_meets():
    _, (x, y) = pair()
    with deriving(), origin_of(x):
        plus, minus = Sums([x, y])([x, -y]), Sums([x, y])([-x, y])
        double = Sums([x, y])([x, -y, x, -y])
    assert minus.operands == double.operands == [plus]


def test_what_overflows_only_on_the_way_does_not():
    _, (x, y) = pair(shape=())
    with deriving(), origin_of(x):
        product = Sums([x, y])([times(x, 4) * y])
    assert float(Symbol([product]).eval(x=np.float32(2e38), y=np.float32(0.5))) == np.inf
    assert float(Symbol([product]).eval(x=np.float32(2e38), y=np.float32(0.25))) < np.inf


def test_a_factor_stays_where_moving_it_would_cost_or_lose():
    _, (x, y) = pair("float16")
    row = so.var("row", (1,), "float16").node
    with deriving(), origin_of(x):
        small = Sums([x, y])([times(x, 4) * y])
        signed = Sums([x, y])([(-x) * y])
        broadcast = Sums([x, row])([(-row) * x])
        denominator = Sums([x, y])([x / times(y, 2)])
    assert operators(small)[-1] == "multiply"
    assert operators(signed)[-1] == "negative"
    assert operators(broadcast)[-1] == "multiply"
    assert operators(denominator)[-1] == "divide"


@pytest.mark.parametrize("type", ["complex64", "float8_e4m3fn"])
def test_numbers_that_cannot_be_counted_are_added_as_they_arrive(type):
    _, given = pair(type)
    found, expected = summed(lambda x, y: [x, y, x], given)
    assert found is expected


def test_a_long_sum_is_one_node():
    xs = [so.var(f"x{i}", ()).node for i in range(LONGEST + 1)]
    with deriving(), origin_of(xs[0]):
        assert Sums(xs)(xs).op.name == "add_n"
        assert Sums(xs)(xs[1:]).op.name == "add"


def test_more_than_can_be_counted_is_counted_in_parts():
    _, (x, y) = pair()
    with deriving(), origin_of(x):
        total = Sums([x, y])([times(x, LARGEST), x, x, y])
    numbers = [one.attributes[0] for one in topological([total]) if one.op.name == "scale"]
    assert sorted(numbers) == [2.0, LARGEST]
    value = Symbol([total]).eval(x=np.ones(81, np.float32), y=np.ones(81, np.float32))
    np.testing.assert_array_equal(value, np.full(81, LARGEST + 3.0))


# In graphs --------------------------------------------------------------------------------------


def test_a_first_gradient_is_as_its_makers_wrote_it():
    x = so.var("x", ())
    y = so.sin(x) * x
    assert CANONICAL.of(topological(y.nodes)) is accumulate
    assert CANONICAL.of(topological(so.grad(y, x).nodes)) is not accumulate


def test_no_value_that_a_symbol_holds_is_passed_by():
    x = so.var("x", ())
    slope = so.grad(so.cos(x), x)  # a negative
    again = so.grad(slope * slope, x)
    # again = 2 slope cos''(x), and cos'' is no function of the slope
    found = so.grad(again, slope).eval(x=np.float32(0.3))
    assert float(found) == pytest.approx(-2 * np.cos(0.3), rel=1e-5)


def test_no_value_of_a_program_is_passed_by():
    program = so.Program()
    with so.program_guard(program):
        x = program.data("x", ())
        opposite = -so.grad(so.sin(x), x)
        again = so.grad(opposite * opposite, x)
        found = so.grad(again, opposite)  # again = 2 opposite sin(x)
    assert "scale" not in str(program)
    (value,) = program.run(feed={"x": np.float32(0.3)}, fetch=[found])
    assert float(value) == pytest.approx(2 * np.sin(0.3), rel=1e-5)


def test_the_sum_of_many_terms_stays_linear_in_their_number():
    x = so.var("x", ())
    y = so.grad(sum(so.sin(x * float(i)) for i in range(400)), x)
    once = so.grad(y, x)
    wanted = -sum(i * i * np.sin(0.3 * i) for i in range(400))
    assert float(once.eval(x=np.float32(0.3))) == pytest.approx(wanted, rel=1e-2)
    assert len(topological(once.nodes)) < 20 * 400


def test_a_number_that_another_gradient_made_does_not_count():
    x, other = so.var("x", shape=(3,)), so.var("other", shape=(3,))
    elsewhere = so.grad(so.sum(other**7.125), other)
    y = so.sum(so.square(x * 6.125) * so.tanh(x))
    order = topological(y.nodes)
    shared = [node for node in order if node.constant == 6.125]
    assert [node.origin.forward for node in shared] == ["power"]
    assert not contains_gradient(order)
    assert contains_gradient(topological(elsewhere.nodes))
