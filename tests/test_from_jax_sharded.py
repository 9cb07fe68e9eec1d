"""``jax.shard_map`` and collectives in functions that become graphs, on one and eight devices."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, PartitionSpec

import symop as so
from registry.errors import OpaqueWarning

WHOLE, SPLIT = PartitionSpec(), PartitionSpec("d")
W = 0.3 * jnp.cos(jnp.arange(48.0)).reshape(3, 16)
X = jnp.sin(jnp.arange(24.0)).reshape(8, 3)

Collective = Callable[[Any], Any]
COLLECTIVES: dict[str, tuple[Collective, PartitionSpec]] = {
    "psum": (lambda y: lax.psum(y, "d"), WHOLE),
    "pmean": (lambda y: lax.pmean(y, "d"), WHOLE),
    "psum of a number": (lambda y: y * lax.psum(1, "d"), SPLIT),
    "all_gather": (lambda y: lax.all_gather(y, "d"), SPLIT),
    "all_gather tiled": (lambda y: lax.all_gather(y, "d", tiled=True), SPLIT),
    "psum_scatter": (lambda y: lax.psum_scatter(y.ravel(), "d", tiled=True), SPLIT),
    "all_to_all": (lambda y: lax.all_to_all(y, "d", 1, 0, tiled=True), SPLIT),
    "ppermute": (
        lambda y: lax.ppermute(y, "d", [(i, (i + 1) % lax.axis_size("d"))
                                        for i in range(lax.axis_size("d"))]),
        SPLIT,
    ),
    "axis_index": (lambda y: y * lax.axis_index("d"), SPLIT),
    "scan": (
        lambda y: lax.scan(lambda c, _: (lax.pmean(jnp.sin(c), "d") + y, None), y, None, 3)[0],
        SPLIT,
    ),
}  # fmt: skip


def mapped(
    body: Callable[..., Any], count: int, outs: PartitionSpec, *, check_vma: bool = True
) -> Callable[..., Any]:
    mesh = jax.make_mesh((count,), ("d",), axis_types=(AxisType.Auto,))
    return jax.shard_map(
        body, mesh=mesh, in_specs=(WHOLE, SPLIT), out_specs=outs, check_vma=check_vma
    )


def value_and_gradients(function: Callable[..., Any]) -> Any:
    def total(w: Any, x: Any) -> tuple[Any, Any]:
        y = function(w, x)
        return jnp.sum(jnp.cos(y + 0.3)), y

    return jax.jit(jax.value_and_grad(total, (0, 1), has_aux=True))(W, X)


def require_same(got: Any, wanted: Any) -> None:
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, 1e-6, 1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_mapped_function_becomes_a_graph(name: str, count: int) -> None:
    collective, outs = COLLECTIVES[name]
    function = mapped(lambda w, x: collective(jnp.sin(x @ w)), count, outs)
    require_same(value_and_gradients(so.transform(function)), value_and_gradients(function))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_graph_runs_in_a_mapped_function(name: str, count: int, check_vma: bool) -> None:
    collective, outs = COLLECTIVES[name]

    def body(w: Any, x: Any) -> Any:
        return collective(jnp.sin(x @ w))

    wanted, got = (
        value_and_gradients(mapped(one, count, outs, check_vma=check_vma))
        for one in (body, so.transform(body))
    )
    require_same(got, wanted)


def test_a_mesh_of_two_axes() -> None:
    mesh = jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Auto,) * 2)

    @functools.partial(
        jax.shard_map, mesh=mesh, out_specs=PartitionSpec("a"),
        in_specs=(PartitionSpec(None, "b"), PartitionSpec("a")),
    )  # fmt: skip
    def function(w: Any, x: Any) -> Any:
        return lax.psum(jax.nn.relu(x @ w) * lax.axis_index("a"), "b")

    require_same(value_and_gradients(so.transform(function)), value_and_gradients(function))


def test_graphs_with_a_mapped_function_have_derivatives_of_every_order() -> None:
    function = mapped(lambda w, x: lax.psum(jnp.sin(x @ w), "d"), 8, WHOLE)
    with pytest.warns(OpaqueWarning, match="shard_map at"):
        symbol = so.from_jax(lambda w, x: jnp.sum(function(w, x) ** 2), W, X)
    slope = so.grad(symbol, "w")
    require_same(slope.eval(w=W, x=X), jax.grad(lambda w: jnp.sum(function(w, X) ** 2))(W))

    def along(order: int, w: Any) -> Any:
        if order == 0:
            return jnp.sum(function(w, X) ** 2)
        return jax.jvp(functools.partial(along, order - 1), (w,), (jnp.ones_like(w),))[1]

    for order in (1, 2, 3):
        got = so.derivative(symbol, "w", order, direction=jnp.ones_like(W)).eval(w=W, x=X)
        np.testing.assert_allclose(got, along(order, W), rtol=1e-4)


def test_strict_names_shard_map_and_the_line() -> None:
    function = mapped(lambda w, x: jnp.sin(x @ w), 1, SPLIT)
    with pytest.raises(so.SymopError, match=r"shard_map at .*test_from_jax_sharded\.py:\d+"):
        so.from_jax(function, W, X, strict=True)
