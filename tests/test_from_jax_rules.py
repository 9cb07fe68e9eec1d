"""Rules of ``jax.custom_jvp`` and ``jax.custom_vjp`` after conversion, at every order as in JAX."""

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import symop as so
from registry.errors import NotDifferentiableError, OpaqueWarning, UnsupportedPrimitiveError

Function = Callable[..., Any]


# Rules whose value is not the function itself ----------------------------------------------------


@jax.custom_jvp
def _rounded(x: Any) -> Any:
    return jnp.round(x)


_rounded.defjvp(lambda x, t: (jnp.round(x[0]), jnp.cos(x[0]) * t[0]))


@jax.custom_vjp
def _rounded_back(x: Any) -> Any:
    return jnp.round(x)


_rounded_back.defvjp(lambda x: (jnp.round(x), x), lambda x, d: (jnp.cos(x) * d,))


@jax.custom_vjp
def _keeping(x: Any) -> Any:
    return jnp.floor(x) + x


_keeping.defvjp(
    lambda x: (jnp.floor(x) + x, (jnp.floor(x) * x, x)), lambda r, d: (r[0] * jnp.sin(r[1]) * d,)
)


@jax.custom_jvp
def _pair(x: Any, y: Any) -> Any:
    return jnp.round(x) * y


_pair.defjvp(lambda x, t: (jnp.round(x[0]) * x[1], t[0] * x[1] + jnp.sin(x[0]) * t[1]))


@jax.custom_jvp
def _itself(x: Any) -> Any:
    return jnp.exp(x)


_itself.defjvp(lambda x, t: (_itself(x[0]), 2.0 * jnp.cos(x[0]) * t[0]))


def _indexed(x: Any) -> Any:
    """Calls a rule with an integer output."""

    @jax.custom_jvp
    def both(x: Any) -> Any:
        return jnp.round(x), jnp.int32(x)

    @both.defjvp
    def _(x: Any, t: Any) -> Any:
        values = jnp.round(x[0]), jnp.int32(x[0])
        return values, (x[0] * t[0], np.zeros((), jax.dtypes.float0))

    value, index = both(x)
    return value * (1.0 + index)


RULES: dict[str, Function] = {
    "jvp": _rounded,
    "vjp": _rounded_back,
    "residuals": _keeping,
    "one argument moves": lambda x: _pair(x, 0.7) * _pair(1.3, x),
    "itself": _itself,
    "integers": _indexed,
}
PLACES: dict[str, Callable[[Function], Function]] = {
    "call": lambda f: lambda x: f(f(1.3 * x) * x) ** 2 * x,
    "scan": lambda f: (
        lambda x: lax.scan(lambda c, w: (f(c * w) * c, f(c) ** 2), x, jnp.arange(1.0, 3.0))[1].sum()
    ),
    "cond": lambda f: lambda x: lax.cond(x > 0, lambda x: f(x) ** 2 * x, jnp.cos, x),
    "vmap": lambda f: lambda x: jax.vmap(lambda w: f(w * x) ** 2)(jnp.arange(1.0, 4.0)).sum(),
    "jit": lambda f: lambda x: jax.jit(lambda y: f(y) ** 2)(x) * f(x),
    "checkpoint": lambda f: jax.checkpoint(lambda x: f(f(1.7 * x) * x) ** 2),
}


def _along(function: Function) -> Function:
    return lambda x: jax.jvp(function, (x,), (1.0,))[1]


def _modes(rule: str, order: int) -> list[tuple[Function, ...]]:
    """Returns the modes of each order, innermost first; JAX has no tangents of a reverse rule."""
    every = itertools.product((jax.grad, _along), repeat=order)
    reverse = rule in ("vjp", "residuals")
    return [one for one in every if one[0] is jax.grad or not reverse]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_read_the_values_of_the_rule(order: int, place: str, rule: str) -> None:
    if (rule, place) == ("itself", "scan"):
        pytest.skip("JAX's modes differ there: tests/test_from_jax.py")
    function = PLACES[place](RULES[rule])
    with jax.enable_x64(True):
        symbol = so.from_jax(function, jax.ShapeDtypeStruct((), jnp.float64), names=["x"])
        for _ in range(order):
            symbol = so.grad(symbol, "x")
        modes = _modes(rule, order)
        for chosen in [modes[0], modes[-1]] if order == 3 else modes:
            theirs, ours = function, so.transform(function)
            for mode in chosen:
                theirs, ours = mode(theirs), mode(ours)
            wanted = jax.jit(theirs)(0.83)
            np.testing.assert_allclose(jax.jit(ours)(0.83), wanted, rtol=1e-8)
            if set(chosen) == {jax.grad}:
                np.testing.assert_allclose(symbol.eval(x=0.83), wanted, rtol=1e-8)


def test_the_second_derivative_of_a_straight_through_estimator_survives_a_file() -> None:
    symbol = so.from_jax(PLACES["scan"](_rounded), jnp.float32(0.83), names=["x"])
    loaded = so.load_json(symbol.tojson())
    assert loaded.same_as(symbol)
    wanted = jax.grad(jax.grad(PLACES["scan"](_rounded)))(0.83)
    for one in (symbol, loaded):
        np.testing.assert_allclose(so.derivative(one, "x", 2).eval(x=0.83), wanted, rtol=1e-4)


def test_hessians_and_batches_of_a_straight_through_estimator() -> None:
    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(_rounded(w * x) ** 2 * w)

    w, xs = jnp.array([0.4, 1.3]), jnp.array([[1.0, 2.0], [0.3, 3.0], [-1.0, 0.2]])
    ours, theirs = (
        jax.jit(jax.vmap(jax.hessian(one), (None, 0)))(w, xs) for one in (so.transform(loss), loss)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


# Reading of rules --------------------------------------------------------------------------------


def _counted() -> tuple[Function, list[int]]:
    """Returns a function with a rule, and a list that grows when the rule is traced."""
    traced: list[int] = []

    @jax.custom_jvp
    def cube(x: Any) -> Any:
        return x**3

    @cube.defjvp
    def _(x: Any, t: Any) -> Any:
        traced.append(1)
        return cube(*x), 3.0 * x[0] ** 2 * t[0]

    return cube, traced


def test_a_rule_is_read_when_a_derivative_needs_it() -> None:
    cube, traced = _counted()
    symbol = so.from_jax(lambda x: cube(cube(x)), jnp.float32(0.5), names=["x"])
    assert not traced
    slope = so.grad(symbol, "x")
    assert len(traced) == 2
    np.testing.assert_allclose(slope.eval(x=0.5), 9 * 0.5**8, rtol=1e-6)
    so.grad(symbol, "x")
    assert len(traced) == 2


def test_calls_of_a_function_under_jit_share_their_rule() -> None:
    cube, traced = _counted()
    once = jax.jit(cube)
    so.grad(so.from_jax(lambda x: once(once(once(x))), jnp.float32(0.5), names=["x"]), "x")
    assert len(traced) == 1


def test_strict_reads_rules_at_once() -> None:
    cube, traced = _counted()
    so.from_jax(cube, jnp.float32(0.5), strict=True)
    assert traced


def test_calls_with_a_rule_are_rolled() -> None:
    cube, _ = _counted()

    def layers(weights: Any, x: Any) -> Any:
        for w in weights:
            x = cube(jnp.sin(x @ w))
        return x

    report = so.loops(so.from_jax(layers, [jnp.ones((3, 3))] * 8, jnp.ones(3)))
    assert [one.run.times for one in report.made] == [8]


def _refusing() -> Function:
    @jax.custom_jvp
    def held(x: Any) -> Any:
        return x * 1.0

    @held.defjvp
    def _(x: Any, t: Any) -> Any:
        raise ValueError("this must not move")

    return held


def test_a_rule_that_refuses_is_an_error_of_the_derivative() -> None:
    function = _refusing()
    symbol = so.from_jax(lambda x: function(x) * x, jnp.float32(2.0), names=["x"])
    np.testing.assert_allclose(symbol.eval(x=2.0), 4.0)
    np.testing.assert_allclose(so.transform(function)(2.0), 2.0)
    for slope in (lambda: so.grad(symbol, "x"), lambda: jax.grad(so.transform(function))(2.0)):
        with pytest.raises(NotDifferentiableError, match=r"refuses.*this must not move"):
            slope()
    loaded = so.load_json(symbol.tojson())
    with pytest.raises(NotDifferentiableError):
        so.grad(loaded, "x")


def test_a_rule_is_not_asked_for_what_another_rule_holds_still() -> None:
    held = _refusing()

    @jax.custom_vjp
    def scaled(x: Any, y: Any) -> Any:
        return x * y

    def pull(r: Any, d: Any) -> Any:
        return r * d, None

    scaled.defvjp(lambda x, y: (x * y, y), pull)
    function = lambda x, y: scaled(x, held(y))  # noqa: E731
    got = jax.grad(so.transform(function))(2.0, 3.0)
    np.testing.assert_allclose(got, 3.0)


def _doubled(x: Any) -> Any:
    return jax.pure_callback(lambda v: np.asarray(2 * v), jax.ShapeDtypeStruct((), jnp.float32), x)


def test_opaque_parts_of_a_rule_are_told_when_it_is_read() -> None:
    @jax.custom_jvp
    def function(x: Any) -> Any:
        return x * x

    function.defjvp(lambda x, t: (function(*x), lax.stop_gradient(_doubled(x[0])) * t[0]))
    symbol = so.from_jax(function, jnp.float32(3.0), names=["x"])
    with pytest.warns(
        OpaqueWarning, match="from_jax: no operator expresses pure_callback"
    ) as caught:
        slope = so.grad(symbol, "x")
    assert [one.filename for one in caught] == [__file__]
    np.testing.assert_allclose(slope.eval(x=3.0), 6.0)
    with pytest.raises(UnsupportedPrimitiveError, match="pure_callback"):
        so.from_jax(function, jnp.float32(3.0), strict=True)


# Max pooling -------------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", [(0, 0), (1, 1)])
def test_gradients_of_windows_of_minus_infinities_are_those_of_jax(padding: Any) -> None:
    def pooled(x: Any) -> Any:
        pads = ((0, 0), (0, 0), padding)
        values = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3), (1, 1, 1), pads)
        return jnp.sum(values * jnp.arange(1.0, values.size + 1.0).reshape(values.shape))

    x = jnp.array([[[-jnp.inf, -jnp.inf, -jnp.inf, 2.0, 2.0, 1.0]]])
    np.testing.assert_array_equal(jax.grad(so.transform(pooled))(x), jax.grad(pooled)(x))


# Executors ---------------------------------------------------------------------------------------


def test_executors_have_the_gradients_of_rules() -> None:
    """Their gradients read what the forward pass kept, since they are not differentiated again."""

    def looped(x: Any, ws: Any) -> Any:
        return jnp.sum(lax.scan(lambda c, w: (jnp.tanh(_rounded(c) * w) + c, None), x, ws)[0])

    x, ws = jnp.array([0.4, 1.7]), jnp.ones((6, 2))
    executor = so.from_jax(looped, x, ws, names=["x", "ws"]).simple_bind(x=(2,), ws=(6, 2))
    executor.forward(is_train=True, x=x, ws=ws)
    executor.backward()
    wanted = jax.grad(looped, (0, 1))(x, ws)
    for name, one in zip(("x", "ws"), wanted, strict=True):
        np.testing.assert_allclose(executor.grad_dict[name], one, rtol=1e-5, atol=1e-6)
