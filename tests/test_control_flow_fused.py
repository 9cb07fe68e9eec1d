"""Fused loops: which loops become one when a graph is lowered, and that its values stay the same.

The values are compared with nested derivatives of the same functions in JAX.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import symop as so

X = np.array([0.3, -0.2, 0.5, 0.9])
Y = np.array([0.7, 0.1, -0.4, 0.2])
M = np.linspace(-1.0, 1.0, 16).reshape(4, 4)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def loops(*symbols, names=("scan", "while")):
    """The number of loops in the lowered graph, those in the bodies of others included."""
    whole = so.Group(list(symbols))
    arrays = [
        jax.ShapeDtypeStruct(whole.get_internals()[n].shape, "float64")
        for n in whole.list_arguments()
    ]
    return counted(jax.make_jaxpr(whole.to_jax())(*arrays).jaxpr, names)


def counted(jaxpr, names):
    found = 0
    for equation in jaxpr.eqns:
        found += equation.primitive.name in names
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=is_program):
            if is_program(inner):
                found += counted(getattr(inner, "jaxpr", inner), names)
    return found


def is_program(value):
    return hasattr(value, "eqns") or hasattr(value, "jaxpr")


def series(name="x"):
    return so.var(name, shape=(4,), dtype="float64")


def number(name="c"):
    return so.var(name, shape=(), dtype="float64")


# Derivatives -------------------------------------------------------------------------------------


def of_carry(sequence, scan, c, x):
    return scan(lambda c, w: (sequence.sin(w * c) + 0.5 * c, None), c, x)[0]


def of_results(sequence, scan, c, x):
    last, ys = scan(lambda c, w: (sequence.sin(c) * w, c * c * w), c, x)
    return last * ys.sum() + (ys * ys).sum()


def backwards(sequence, scan, c, x):
    last, ys = scan(lambda c, w: (sequence.sin(c) * w, c * w), c, x, reverse=True)
    return last + ys.sum()


def of_constants(sequence, scan, c, x):
    return scan(lambda h, w: (sequence.sin(h * c) + w, None), c * c, x)[0]


def one_in_another(sequence, scan, c, x):
    def step(c, w):
        inner, hs = scan(lambda h, v: (sequence.sin(h * v) + w, h), c, x)
        return inner * 0.5, hs.sum()

    last, sums = scan(step, c, x)
    return last + (sums * sums).sum()


def of_products(sequence, scan, c, x):
    def step(h, w):
        return sequence.tanh(M @ h) * w, h @ h

    last, sums = scan(step, c * x, x)
    return last @ x + (sums * sums).sum()


FUNCTIONS = [of_carry, of_results, backwards, of_constants, of_products, one_in_another]


def ours(function):
    c, x = number(), series()
    return function(so, so.scan, c, x), c


@pytest.mark.sampled(5)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_derivative_of_each_order_is_one_loop(function, order):
    y, c = ours(function)
    found = so.derivative(y, c, order)
    assert loops(found) == loops(y)

    def theirs(c):
        return function(jnp, lax.scan, c, X)

    for _ in range(order):
        theirs = tangent(theirs)
    np.testing.assert_allclose(found.eval(c=0.4, x=X), jax.jit(theirs)(0.4), rtol=1e-12)


def tangent(f):
    return lambda x: jax.jvp(f, (x,), (1.0,))[1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("function", FUNCTIONS[:5])
def test_gradients_of_gradients_alternate_directions(function, order):
    y, c = ours(function)
    found = so.derivative(y, c, order, mode="reverse")
    assert loops(found) == 2**order  # each reads in reverse order what the one before writes

    def theirs(c):
        return function(jnp, lax.scan, c, X)

    for _ in range(order):
        theirs = jax.grad(theirs)
    np.testing.assert_allclose(found.eval(c=0.4, x=X), jax.jit(theirs)(0.4), rtol=1e-12)


def test_a_hessian_by_a_vector_is_one_loop_in_each_direction():
    y, _ = ours(of_results)
    x = y.get_internals()["x"]
    found = so.hvp(y, x, Y)
    assert loops(found) == 2
    slope = jax.grad(lambda x: of_results(jnp, lax.scan, 0.4, x))
    np.testing.assert_allclose(found.eval(c=0.4, x=X), jax.jvp(slope, (X,), (Y,))[1], rtol=1e-12)


def test_all_orders_at_once_are_one_loop():
    y, c = ours(of_results)
    assert loops(*(so.derivative(y, c, order) for order in range(5))) == 1


def test_jax_transforms_the_fused_loop():
    y, c = ours(of_results)
    run, wanted = so.derivative(y, c, 2).to_jax(), lambda c: of_results(jnp, lax.scan, c, X)
    of_c = lambda c: run(c=c, x=X)  # noqa: E731
    for _ in range(2):
        wanted = tangent(wanted)
    np.testing.assert_allclose(jax.grad(of_c)(0.4), jax.grad(wanted)(0.4), rtol=1e-12)
    np.testing.assert_allclose(tangent(of_c)(0.4), tangent(wanted)(0.4), rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(of_c)(Y), jax.vmap(wanted)(Y), rtol=1e-12)


def test_the_gradient_of_a_bounded_while_loop_is_one_loop_after_it():
    c = number()
    y = so.while_loop(lambda v: v < 10.0, lambda v: v * v + so.sin(v), c, max_steps=12)
    assert loops(y) == 1
    found = so.derivative(y, c, 3)
    assert loops(found) == 2

    def theirs(c):
        def step(v, _):
            return jnp.where(v < 10.0, v * v + jnp.sin(v), v), None

        return lax.scan(step, c, None, length=12)[0]

    for _ in range(3):
        theirs = tangent(theirs)
    np.testing.assert_allclose(found.eval(c=1.1), theirs(1.1), rtol=1e-12)


# Loops of a user ---------------------------------------------------------------------------------


def sums(x, start=0.0, **options):
    """Partial sums, and the last of them."""
    last, ys = so.scan(lambda c, w: (c + w, c + so.sin(w)), start, x, **options)
    return ys, last


def sums_in_jax(x, start=0.0, **options):
    last, ys = lax.scan(lambda c, w: (c + w, c + jnp.sin(w)), jnp.float64(start), x, **options)
    return ys, last


def check(build, count):
    """Compares the results of ``build`` by symop and by JAX, and the number of lowered loops."""
    values = build(sums, series("x"), series("y"))
    assert loops(*values) == count
    with so.rolling(False):
        once = loops(*values, names=("sin",))
    assert loops(*values, names=("sin",)) == once  # no loop runs twice
    wanted = build(sums_in_jax, X, Y)
    group = so.Group(list(values))
    fed = {name: {"x": X, "y": Y}[name] for name in group.list_arguments()}
    for one, other in zip(group.eval(**fed), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_chain_of_loops_is_one():
    def build(sums, x, y):
        first, last = sums(x)
        second, _ = sums(first)
        third, end = sums(second)
        return first, third, end, last * last

    check(build, 1)


def test_a_loop_that_reads_two_others_joins_them():
    def build(sums, x, y):
        (first, _), (second, _) = sums(x), sums(y)
        if isinstance(x, np.ndarray):
            end, both = lax.scan(lambda c, w: (c + w[0] * w[1], c), 0.0, (first, second))
        else:
            end, both = so.scan(lambda c, w: (c + w[0] * w[1], c), 0.0, (first, second))
        return both, end

    check(build, 1)


def test_what_a_loop_computes_may_be_read_by_more_than_the_fused_one():
    def build(sums, x, y):
        first, last = sums(x)
        second, end = sums(first)
        return second * first, last + end, first.sum()

    check(build, 1)


@pytest.mark.parametrize(
    "options", [({}, {"reverse": True}), ({"reverse": True}, {})], ids=["back", "forth"]
)
def test_directions_stay_apart(options):
    check(lambda sums, x, y: sums(sums(x, **options[0])[0], **options[1]), 2)


def test_reverse_loops_are_fused():
    check(lambda sums, x, y: sums(sums(x, reverse=True)[0], reverse=True), 1)


def test_independent_loops_stay_apart():
    check(lambda sums, x, y: (*sums(x), *sums(y)), 2)


def test_a_loop_that_starts_where_another_ends_stays_apart():
    def build(sums, x, y):
        first, last = sums(x)
        return sums(first, last)

    check(build, 2)


def test_a_loop_that_reads_a_whole_series_in_each_step_stays_apart():
    c, x = number(), series()
    first = so.scan(lambda c, w: (c + w, c), c, x)[1]
    last, ys = so.scan(lambda c, w: (c + w * first.sum(), c), 0.0, first)
    assert loops(last, ys) == 2
    given = 0.4 + np.concatenate([[0.0], np.cumsum(X)[:-1]])
    np.testing.assert_allclose(last.eval(c=0.4, x=X), given.sum() ** 2, rtol=1e-12)


def test_a_loop_that_reads_a_series_changed_in_between_stays_apart():
    def build(sums, x, y):
        first, _ = sums(x)
        second, end = sums(first * first.sum())
        return second * first, end

    check(build, 2)


def test_a_loop_stays_apart_from_one_on_which_it_also_depends_through_a_third():
    def build(sums, x, y):
        first, last = sums(x)
        second, end = sums(y, last)
        if isinstance(x, np.ndarray):
            return lax.scan(lambda c, w: (c + w[0] * w[1], c), end, (first, second))
        return so.scan(lambda c, w: (c + w[0] * w[1], c), end, (first, second))

    check(build, 3)


def test_two_pairs_that_depend_on_each_other_are_not_both_fused():
    def build(sums, x, y):
        (a, a_last), (b, b_last) = sums(x), sums(y)
        c, c_last = sums(a, b_last)
        d, d_last = sums(b, a_last)
        return c, d, c_last + d_last

    check(build, 3)


@pytest.mark.parametrize(("second", "count"), [("w", 1), ("v", 2)])
def test_layers_with_matrices_of_their_own_stay_apart(second, count):
    hs = so.var("x", shape=(3, 4), dtype="float64")
    for name in ("w", second):
        w = so.var(name, shape=(4, 4), dtype="float64")
        last, hs = so.scan(lambda h, x, w=w: ((h @ w + x).tanh(),) * 2, np.zeros(4), hs)
    assert loops(hs, last) == count


def test_loops_of_different_lengths_stay_apart():
    def build(sums, x, y):
        first, _ = sums(x)
        return sums(first[:3])

    check(build, 2)


def test_a_loop_that_draws_random_numbers_stays_apart():
    x, key = series(), jax.random.key(0)
    first = so.scan(lambda c, w: (c + so.dropout(w), c + w), 0.0, x)[1]
    last = so.scan(lambda c, w: (c + w, None), 0.0, first)[0]
    run = so.Group([first, last]).to_jax(is_train=True)
    jaxpr = jax.make_jaxpr(lambda x: run(x=x, key=key))(X)
    assert counted(jaxpr.jaxpr, ("scan",)) == 2
    ys, total = run(x=X, key=key)
    np.testing.assert_allclose(ys.sum(), total, rtol=1e-12)


def test_the_values_of_a_scope_are_recomputed_apart_from_the_rest():
    x = series()
    first = so.scan(lambda c, w: (c + w, c), 0.0, x)[1]
    with so.remat.scope():
        last = so.scan(lambda c, w: (so.sin(c) + w, None), 0.0, first)[0]
    assert loops(last) == 2


def test_graphs_are_lowered_as_they_are_without_rolling():
    y, c = ours(of_carry)
    with so.rolling(False):
        assert loops(so.derivative(y, c, 2)) == 3


def test_loops_in_the_body_of_a_call_are_fused():
    x = so.var("x", shape=(3, 4), dtype="float64")
    found = so.vmap(lambda one: sums(sums(one)[0])[1])(x)
    assert loops(found) == 1
    given = np.stack([X, Y, X * Y])
    wanted = jax.vmap(lambda one: sums_in_jax(sums_in_jax(one)[0])[1])(given)
    np.testing.assert_allclose(found.eval(x=given), wanted, rtol=1e-12)


def test_a_program_runs_fused_loops():
    def step(c, w):
        return c + w, c + so.sin(w)

    program = so.Program()
    first = so.scan(step, 0.0, program.data("x", (4,), "float64"))[1]
    last, ys = so.scan(step, 0.0, first)
    wanted = sums_in_jax(sums_in_jax(X)[0])
    for one, other in zip(program.run({"x": X}, [ys, last]), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
