"""``so.explain``: what the operators of a graph cost, and which of them JAX differentiates."""

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen

import symop as so
from registry.errors import OpaqueWarning


def doubled(x: Any) -> Any:
    kind = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(lambda v: 2 * v, kind, x)  # the callback


def model(w: Any, x: Any) -> Any:
    def step(h: Any, _: Any) -> tuple[Any, None]:
        return jnp.tanh(h @ w), None  # the step

    h, _ = jax.lax.scan(step, x, None, length=6)
    return doubled(jax.lax.igamma(h, h))  # the primitive


def place_of(function: Any, comment: str) -> str:
    lines, first = inspect.getsourcelines(function)
    (line,) = (first + i for i, one in enumerate(lines) if comment in one)
    return f"{__file__}:{line}"


@pytest.fixture(scope="module")
def report() -> Any:
    with pytest.warns(OpaqueWarning, match="pure_callback at"):
        return so.explain(so.from_jax(model, jnp.ones((4, 4)), jnp.ones((3, 4))))


def test_calls_in_a_loop_count_once_for_each_step(report: Any) -> None:
    rows = {one.name: one for one in report.operators}
    assert rows["einsum"][1:5] == (6, 6 * 2 * 3 * 4 * 4, 6 * 48, "gradient maker")
    assert rows["tanh"][1:5] == (6, 6 * 12, 6 * 48, "gradient maker")
    assert rows["scan"].calls == 1
    assert rows["jax_function"].derivative == rows["lax_primitive"].derivative == "JAX"
    assert report.bytes == sum(one.bytes for one in report.operators)


def test_costs_by_line_are_those_by_operator(report: Any) -> None:
    assert sum(one.flops for one in report.lines) == report.flops
    rows = {one.name: one for one in report.lines}
    assert rows[place_of(model, "# the step")].calls == 12
    assert [one.flops for one in report.operators] == sorted(
        (one.flops for one in report.operators), reverse=True
    )


def test_what_jax_differentiates_is_named_with_its_line(report: Any) -> None:
    found = {one.primitive: one for one in report.by_jax}
    assert set(found) == {"igamma", "pure_callback"}
    igamma, callback = found["igamma"], found["pure_callback"]
    assert igamma[1:] == ("lax_primitive", place_of(model, "# the primitive"), 1, True)
    assert callback[1:] == ("jax_function", place_of(doubled, "# the callback"), 1, False)
    assert report.opaque == (callback,)
    assert f"pure_callback (jax_function) at {callback.place}, 1 call; a file" in str(report)


def test_a_graph_of_operators_alone() -> None:
    x = so.var("x", shape=(5,))
    report = so.explain(so.sum(so.sin(x)))
    assert report.by_jax == ()
    assert str(report).endswith("JAX differentiates none of them")
    with pytest.raises(so.SymopError, match="shape"):
        so.explain(so.sin(so.var("y")))
    assert so.explain(so.sin(so.var("y")), y=(2, 3)).operators[0].bytes == 24


def test_lines_of_installed_packages_are_none_of_the_users() -> None:
    dense = linen.Dense(3)
    params = dense.init(jax.random.key(0), jnp.ones(2))
    symbol = so.from_jax(lambda x: dense.apply(params, x), jnp.ones(2))
    assert {one.name.rpartition(":")[0] for one in so.explain(symbol).lines} == {__file__}


@pytest.mark.parametrize("value", [3, doubled, []])
def test_what_is_no_symbol_is_refused(value: Any) -> None:
    with pytest.raises(
        so.SymopError, match="explain: its argument must be a symbol, a program or a trainer, got"
    ):
        so.explain(value)
