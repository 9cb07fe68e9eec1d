"""``so.from_jax`` and ``so.transform`` compute what JAX computes, and its derivatives."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name

import symop as so
from tests.jax_calls import CALLS, JaxCall

NAMES = [one.name for one in CALLS]


def _numbers(value: Any) -> np.ndarray:
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value, np.float32 if value.dtype == jnp.bfloat16 else None)


def _require_equal(got: Any, wanted: Any, rtol: float, atol: float) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        left, right = map(_numbers, (one, other))
        np.testing.assert_allclose(left, right, rtol, atol)


def test_the_table_is_large() -> None:
    assert len(CALLS) >= 300


@pytest.mark.parametrize("call", CALLS, ids=NAMES)
@pytest.mark.sampled(12)
def test_values(call: JaxCall) -> None:
    wanted = jax.jit(call.function)(*call.args)
    got = jax.jit(so.transform(call.function, strict=True))(*call.args)
    _require_equal(got, wanted, 2e-6, 2e-6)


def _total(function: Any, args: Any, places: list[int]) -> Any:
    """Returns a scalar function of the floating arguments that weighs every output."""

    def total(*moved: Any) -> Any:
        given = list(args)
        for i, one in zip(places, moved, strict=True):
            given[i] = one
        outputs = [
            y for y in jax.tree.leaves(function(*given)) if jnp.issubdtype(y.dtype, jnp.inexact)
        ]
        return sum(jnp.sum(jnp.cos(jnp.abs(y).astype(jnp.float32) + 0.3)) for y in outputs)

    return total


@pytest.mark.parametrize(
    "call", [one for one in CALLS if one.differentiable],
    ids=[one.name for one in CALLS if one.differentiable],
)  # fmt: skip
@pytest.mark.sampled(12)
def test_gradients(call: JaxCall) -> None:
    places = [i for i, one in enumerate(call.args) if one.dtype == jnp.float32]
    moved = [call.args[i] for i in places]
    grads = [
        jax.jit(jax.grad(_total(one, call.args, places), tuple(range(len(places)))))(*moved)
        for one in (call.function, so.transform(call.function))
    ]
    _require_equal(grads[1], grads[0], 2e-4, 2e-5)


POLICIES = {
    "nothing": None,
    "dots": jax.checkpoint_policies.dots_saveable,
    "names": jax.checkpoint_policies.save_only_these_names("kept"),
    "everything": jax.checkpoint_policies.everything_saveable,
}


@pytest.mark.parametrize("name", POLICIES)
def test_checkpoint_keeps_what_its_policy_saves(name: str) -> None:
    def layer(x: Any) -> Any:
        product = jnp.einsum("i,ij->j", x, jnp.full((4, 4), 0.3))
        return jnp.sin(checkpoint_name(jnp.tanh(product), "kept"))

    wrapped = jax.checkpoint(layer, policy=POLICIES[name])
    symbol = so.from_jax(lambda x: wrapped(x).sum(), jnp.ones(4))
    lines = [line for line in str(symbol).splitlines() if "recompute(" in line]
    assert len(lines) == 1
    kept = {"nothing": "", "dots": "saved=(1,)", "names": "saved=(1,)", "everything": "saved="}
    assert kept[name] in lines[0]
    assert ("saved" in lines[0]) == (name != "nothing")
    x = jnp.linspace(0.0, 1.0, 4)
    got = jax.grad(so.transform(lambda x: wrapped(x).sum()))(x)
    np.testing.assert_allclose(got, jax.grad(lambda x: layer(x).sum())(x), rtol=1e-6)


def test_strict_names_primitive_and_line() -> None:
    def doubled(x: Any) -> Any:
        return jax.pure_callback(lambda v: 2 * v, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(so.SymopError, match=r"pure_callback at .*test_from_jax\.py:\d+"):
        so.from_jax(doubled, jnp.ones(2), strict=True)
    symbol = so.from_jax(doubled, jnp.ones(2))
    np.testing.assert_allclose(symbol.eval(x=[1.0, 2.0]), [2.0, 4.0])
    with pytest.raises(so.SymopError, match="must be the name of a function"):
        so.load_json(symbol.tojson().replace("pure_callback at", "other at"))


def test_names_follow_paths() -> None:
    params = {"dense": {"kernel": jnp.ones((2, 3))}, "bias": [jnp.ones(3)]}
    symbol = so.from_jax(
        lambda params, flag, x: x @ params["dense"]["kernel"] + params["bias"][0] * flag,
        params, True, jnp.ones(2), static_argnums=1,
    )  # fmt: skip
    assert set(symbol.list_arguments()) == {"params/dense/kernel", "params/bias/0", "x"}
    named = so.from_jax(lambda x, y: x + y, jnp.ones(2), jnp.ones(2), names=["left", "right"])
    assert named.list_arguments() == ["left", "right"]
    with pytest.raises(so.SymopError, match="must hold one for each of 2 arguments"):
        so.from_jax(lambda x, y: x + y, 1.0, 2.0, names=["left"])
    with pytest.raises(so.SymopError, match="its own name, got 'x' twice"):
        so.from_jax(lambda x, y: x + y, 1.0, 2.0, names=["x", "x"])


def test_saved_loaded_and_rolled() -> None:
    def model(params: Any, x: Any) -> Any:
        for w in params:
            x = jax.nn.gelu(x @ w)
        return x.sum()

    params = [0.3 * jnp.ones((4, 4))] * 6
    symbol = so.from_jax(model, params, jnp.ones(4))
    assert so.load_json(symbol.tojson()).same_as(symbol)
    assert "loop of" in str(so.loops(symbol))


def test_transform_closes_over_tracers() -> None:
    def loss(w: Any, x: Any) -> Any:
        return so.transform(lambda x: jnp.sin(w * x).sum())(x)

    got = jax.jit(jax.grad(loss))(jnp.float32(2.0), jnp.ones(3))
    np.testing.assert_allclose(got, 3 * np.cos(2.0), rtol=1e-6)


def test_data_dependent_python_control_flow_names_the_line() -> None:
    def branching(x: Any) -> Any:
        return x if x > 0 else -x

    with pytest.raises(jax.errors.TracerBoolConversionError, match="test_from_jax"):
        so.from_jax(branching, 1.0)


def test_derivatives_of_a_rule_of_high_order() -> None:
    """A rule that calls its own function is kept for some orders, and never replaced."""
    x = so.from_jax(lambda x: jnp.logaddexp(x, 0.0), jnp.float32(0.3))
    third = jax.grad(jax.grad(jax.grad(jax.nn.softplus)))(0.3)
    np.testing.assert_allclose(so.derivative(x, "x", order=3).eval(x=0.3), third, rtol=1e-4)
    with pytest.raises(so.SymopError, match="kept by no rule"):
        so.derivative(x, "x", order=9)


def _with_reference(x: Any) -> Any:
    held = jax.new_ref(x)
    held[...] = held[...] * 2
    return held[...]


def _printing(x: Any) -> Any:
    jax.debug.print("{}", x)
    return 2 * x


def _printing_in_a_loop(x: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda _, x: _printing(x), x)


@pytest.mark.parametrize("function", [_with_reference, _printing, _printing_in_a_loop])
@pytest.mark.parametrize("strict", [False, True])
def test_side_effects_are_errors(function: Any, strict: bool) -> None:
    with pytest.raises(so.SymopError, match=r"no side effects, got \w+ at .*test_from_jax\.py:\d+"):
        so.from_jax(function, 1.0, strict=strict)
    with pytest.raises(so.SymopError, match="no side effects"):
        jax.grad(so.transform(function))(1.0)


def test_static_arguments_are_told_apart_by_type() -> None:
    scaled = so.transform(lambda x, a: x * a if a is not True else x + 1, static_argnums=1)
    x = jnp.int32(3)
    for a in (1, 1.0, True, 1):
        wanted = jax.jit(lambda x, a=a: x * a if a is not True else x + 1)(x)
        got = scaled(x, a)
        assert (got.dtype, float(got)) == (wanted.dtype, float(wanted))


def test_a_static_argument_may_be_left_to_its_default() -> None:
    def scaled(x: Any, a: float = 3.0) -> Any:
        return x * a

    assert float(so.transform(scaled, static_argnums=1)(jnp.float32(2.0))) == 6.0
    assert float(so.transform(scaled, static_argnums=-1)(jnp.float32(2.0), 4.0)) == 8.0
    assert float(so.from_jax(scaled, jnp.float32(2.0), static_argnums=1).eval(x=2.0)) == 6.0
