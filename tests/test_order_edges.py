"""Derivatives where they are easily wrong: loops, modes, directions, repeated variables, dtypes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import (
    ArgumentError,
    DisconnectedError,
    DTypeError,
    GradientError,
    NotDifferentiableError,
    NotLinearError,
)

X = np.array([1.0, 2.0, 3.0, 4.0], np.float32)


@pytest.fixture
def x():
    return so.var("x", (4,), "float32")


@pytest.fixture
def s():
    return so.var("s", (), "float32")


def looped(m):
    """Doubled until the sum is at least ten: no reverse mode, since the steps are not counted."""
    return so.while_loop(lambda v: so.sum(v) < 10.0, lambda v: v * 2.0, m)


# What is entrywise, and what only looks so ------------------------------------------------------


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_scan_over_entries_is_not_entrywise(x, mode):
    sums = so.scan(lambda c, a: (c + a, c + a), so.zeros_like(x[0]), x)[1]
    with pytest.raises(GradientError, match="pass a direction, or use jacobian"):
        so.derivative(sums * sums, x, 2, mode=mode)


def test_normalization_by_batches_is_entrywise_in_prediction_alone():
    data = so.var("data", (3, 2), "float32")
    with pytest.raises(GradientError, match="pass a direction"):
        so.derivative(so.batch_norm(data), data)


# Directions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_direction_that_depends_on_x_is_held(x, s, mode):
    found = so.derivative(s * s, s, 2, direction=s, mode=mode)
    assert float(found.eval(s=3.0)) == 18.0
    total = so.sum(x * x)
    found = so.derivative(total, x, 2, direction=so.grad(so.sum(x**3), x), mode=mode)
    assert float(found.eval(x=X)) == 2 * np.sum((3 * X**2) ** 2)


def test_what_a_held_direction_is_made_of_can_be_differentiated(s):
    t = so.var("t", ())
    found = so.derivative(s**3, s, 2, direction=s * t)  # 6 s (s t)^2
    slope = so.grad(found, t)
    assert float(slope.eval(s=2.0, t=3.0)) == 12 * 2.0**3 * 3.0


def test_directions_of_numbers(x):
    assert float(so.derivative(so.sum(x * x), x, direction=[1, 1, 1, 1]).eval(x=X)) == 20.0


def test_a_variable_twice_moves_along_the_sum(x):
    found = so.jvp(x * x, [x, x], [np.ones(4, "f"), 2 * np.ones(4, "f")]).eval(x=X)
    np.testing.assert_array_equal(found, 6 * X)
    found = so.hvp(so.sum(x**3), [x, x], [np.ones(4, "f"), np.ones(4, "f")])
    np.testing.assert_array_equal(found[0].eval(x=X), 12 * X)


# Forms ------------------------------------------------------------------------------------------


def test_a_group_is_a_list(x, s):
    y = so.sum(x * x) * s
    both = so.Group([x, s])
    for found in (so.grad(y, both), so.jacobian(y, both)):
        assert [one.shape for one in found] == [(4,), ()]
    assert [[b.shape for b in row] for row in so.hessian(y, both)] == [[(4, 4), (4,)], [(4,), ()]]


def test_arguments_by_name(x, s):
    y = so.sum(x * x) * s
    assert float(so.derivative(y, "s").eval(x=X, s=1.0)) == 30.0
    assert so.jacobian(y, ["x", "s"])[0].shape == (4,)
    assert so.hessian(y, "x").shape == (4, 4)


@pytest.mark.parametrize("order", [np.int64(2), 2])
def test_whole_numbers_of_any_kind_are_orders(s, order):
    assert float(so.derivative(s**3, s, order).eval(s=2.0)) == 12.0


@pytest.mark.parametrize("order", [True, 1.0, "2", -1])
def test_other_orders_are_refused(s, order):
    with pytest.raises(ArgumentError, match="must be a whole number >= 0"):
        so.derivative(s, s, order)


def test_a_mode_is_checked_at_every_order(s):
    with pytest.raises(ArgumentError, match="'forward' or 'reverse', got 'backward'"):
        so.derivative(s, s, 0, mode="backward")


@pytest.mark.parametrize(
    "take",
    [
        lambda s: so.derivative(jnp.ones(()), jnp.ones(())),
        lambda s: so.derivative(None, s),
        lambda s: so.jacobian(3.0, s),
        lambda s: so.jacobian(so.nd.array(3.0), so.nd.array(1.0)),
    ],
)
def test_what_is_no_symbol_is_refused(s, take):
    with pytest.raises(ArgumentError, match=r"symbols or variables .* must be given, got a"):
        take(s)


@pytest.mark.parametrize("take", [so.hessian, lambda y, x: so.hvp(y, x, x)])
def test_hessians_are_those_of_one_scalar(x, s, take):
    for y in ([s * s], x * x, so.Group([s, s * s])):
        with pytest.raises(GradientError, match="the value must be one of shape"):
            take(y, s)


def test_every_variable_of_a_mixed_derivative_must_be_reached(s):
    other = so.var("other", ())
    for xs in ((s, other), (other, s)):
        with pytest.raises(DisconnectedError):
            so.derivative(so.sin(s), xs)
        found = so.derivative(so.sin(s), xs, unreachable="zero")
        assert float(found.eval(s=1.0, other=1.0)) == 0.0


# Dtypes -----------------------------------------------------------------------------------------


def test_jacobians_of_short_floats(x):
    half = so.var("half", (3,), "bfloat16")
    found = so.jacobian(so.sin(half), half).eval(half=jnp.ones(3, "bfloat16"))
    np.testing.assert_array_equal(found, jnp.diag(jnp.cos(jnp.ones(3, "bfloat16"))))
    turning = so.var("turning", (2,), "complex64")
    with pytest.raises(DTypeError, match="jacobian: the dtypes must be real"):
        so.jacobian(turning * 2, turning)
    with pytest.raises(DTypeError, match="hessian: the dtypes must be real"):
        so.hessian(so.sum(turning), turning)


def test_the_mean_of_half_precision_moves_within_its_range():
    h = so.var("h", (200,), "float16")
    given, way = np.full(200, 30.0, np.float16), np.full(200, 10.0, np.float16)
    found = so.derivative(so.mean(h * h), h, direction=way).eval(h=given)
    assert float(found) == 600.0


def test_a_gradient_shows_what_is_not_a_number():
    a, b = so.var("a", ()), so.var("b", ())
    slopes = so.Group(so.grad(so.logaddexp(a, b), [a, b]))
    assert np.isnan(slopes.eval(a=np.nan, b=1.0)).all()
    assert slopes.eval(a=np.inf, b=np.inf) == [0.5, 0.5]
    twice = so.derivative(so.logaddexp(a, b), a, 2)
    assert float(twice.eval(a=1.0, b=1.0)) == 0.25


# Loops without reverse mode ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [
        so.vmap(looped),
        lambda m: so.scan(lambda c, a: (c, looped(a)), so.zeros_like(m[0]), m)[1],
        lambda m: so.cond(so.sum(m) > 0, lambda: so.vmap(looped)(m), lambda: m),
    ],
)
def test_a_loop_without_reverse_mode_runs_inside_of_others(build):
    m = so.var("m", (3, 2), "float32")
    given = np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(build(m).eval(m=given), 8 * given)
    np.testing.assert_array_equal(jax.jit(build(m).to_jax())(m=given), 8 * given)


@pytest.mark.parametrize("mode", ["forward", None])
def test_a_jacobian_takes_the_mode_that_there_is(mode):
    m = so.var("m", (3, 2), "float32")
    given = np.ones((3, 2), np.float32)
    found = so.jacobian(so.sum(looped(m)), m, mode=mode).eval(m=given)
    np.testing.assert_array_equal(found, np.full((3, 2), 2.0))


def test_a_jacobian_in_neither_mode_says_why():
    m = so.var("m", (2,), "float32")
    function = so.argmax(m)
    with pytest.raises((NotDifferentiableError, DTypeError)):
        so.jacobian(function, m)


def test_a_loss_layer_has_no_jacobian(x):
    for y in (so.make_loss(x * x), so.make_loss(so.outer(x, x)[0])):
        with pytest.raises(NotLinearError):
            so.jacobian(y, x)
    wide = so.var("wide", (8,), "float32")
    with pytest.raises(NotLinearError):
        so.jacobian(so.make_loss(wide[:2]), wide)


@pytest.mark.parametrize("function", [so.round, so.stop_gradient])
def test_what_is_zero_on_the_way_is_zero_behind_it(x, function):
    table = so.var("table", (5, 2))
    y = so.sum(so.lookup_table(table, so.cast(function(x), dtype="int32")))
    given = {"x": X, "table": np.ones((5, 2), np.float32)}
    np.testing.assert_array_equal(so.grad(y, x).eval(**given), np.zeros(4))
    np.testing.assert_array_equal(so.jvp(y, x, np.ones(4, "f")).eval(**given), 0.0)
    with pytest.raises(NotDifferentiableError, match="every path runs through cast"):
        so.grad(so.sum(so.lookup_table(table, so.cast(x, dtype="int32"))), x)


# Cost -------------------------------------------------------------------------------------------


def test_gradients_grow_with_the_graph(s):
    def nodes(length, take):
        y = s
        for _ in range(length):
            y = so.tanh(y) * so.sin(y)
        return len(take(y, s).get_internals())

    for take in (so.grad, lambda y, x: so.hvp(y, x, 1.0)):
        short, twice = nodes(100, take), nodes(200, take)
        assert twice <= 2.02 * short
