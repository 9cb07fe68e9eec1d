"""Packed trees: their smallest leaves travel as one array, and come back as they were."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import symop as so
from symop import train
from symop.runtime import packing
from symop.runtime.packing import pack, unpack


def _tree() -> dict[str, Any]:
    return {
        "weight": jnp.arange(12.0).reshape(3, 4),
        "bias": jnp.array([1.5, -0.0, np.nan]),
        "count": jnp.int32(-7),
        "key": jax.random.key(3),
        "half": jnp.float16([1, 2]),
        "bytes": jnp.uint32([[1, 2**32 - 1]]),
        "none": None,
        "empty": jnp.zeros((0, 2)),
    }


def _same(one: Any, other: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert (a.dtype, a.shape, a.committed) == (b.dtype, b.shape, b.committed)
        assert _bits(a) == _bits(b)


def _bits(leaf: Any) -> bytes:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf).tobytes()


@pytest.mark.parametrize("joins", [False, True])
def test_tree_comes_back(joins: bool) -> None:
    packed = pack(_tree(), joins=joins)
    assert packed.is_joined is joins
    _same(packed(), _tree())


def test_few_leaves_remain() -> None:
    alone, joined = (pack(_tree(), joins=one).args[0] for one in (False, True))
    assert [len(alone), len(joined)] == [7, 3]  # the weight, the half numbers, all others
    assert joined[-1].dtype == np.uint32


def test_traced_tree_comes_back() -> None:
    def through(packed: Any) -> Any:
        tree = unpack(packed)
        assert isinstance(tree["count"], jax.core.Tracer)
        return pack(tree | {"count": tree["count"] + 1}, joins=packed.is_joined)

    before = pack(_tree(), joins=True)
    after = jax.jit(through)(before)
    assert after.func is before.func
    _same(after(), _tree() | {"count": jnp.int32(-6)})


def test_an_accelerator_separates_by_a_compiled_program() -> None:
    packed = pack(_tree(), joins=True)
    joint, joined = packed.args[0][-1], packed.func.joined
    with jax.transfer_guard("disallow"):
        found = packing._compiled_parts(joint, joined)
    for one, other in zip(found, packing._separate(joint, joined), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)


def test_committed_leaves_stay_committed() -> None:
    placed = jax.device_put(_tree(), jax.devices()[0])
    _same(pack(placed, joins=True)(), placed)


def test_one_small_leaf_is_left_alone() -> None:
    assert not pack({"count": jnp.int32(1), "weight": jnp.ones((3, 4))}, joins=True).is_joined


def test_a_step_compiles_once() -> None:
    x, w, b = so.var("x", shape=(4, 16)), so.var("w", shape=(16,)), so.var("b", shape=())
    loss = so.mean(so.square(x @ w + b))
    trainer = train.Trainer(loss, optax.adam(optax.constant_schedule(0.1)), inputs=["x"])
    state = trainer.init(0)
    batch = {"x": np.ones((4, 16), np.float32)}
    for i in range(4):
        state, _ = trainer.step(state, batch)
        assert int(state.step) == i + 1
        assert state.params["b"].shape == ()
        if i == 2:  # set by hand
            state = state._replace(step=state.step + 0)
    assert trainer._step._cache_size() == 1
