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
        "weak": jnp.asarray(0.5),
        "none": None,
        "empty": jnp.zeros((0, 2)),
    }


def _same(one: Any, other: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert (a.dtype, a.shape, a.committed) == (b.dtype, b.shape, b.committed)
        assert getattr(a, "weak_type", False) == getattr(b, "weak_type", False)  # not of keys
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
    assert [len(alone), len(joined)] == [8, 4]  # the weight, the half and the weak numbers, others
    assert joined[-1].dtype == np.uint32


def test_traced_tree_comes_back() -> None:
    def through(packed: Any) -> Any:
        tree = unpack(packed)
        assert isinstance(tree["count"], jax.core.Tracer)
        return pack(tree | {"count": tree["count"] + 1}, joins=packed)

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


def _trainer(**options: Any) -> tuple[train.Trainer, dict[str, Any]]:
    x, w, b = so.var("x", shape=(4, 16)), so.var("w", shape=(16,)), so.var("b", shape=())
    loss = so.mean(so.square(x @ w + b - 1.0))
    batch = {"x": np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)}
    return train.Trainer(loss, optax.sgd(0.1), inputs=["x"], **options), batch


def _second_loss(own: train.Trainer, state: Any, batch: Any) -> Any:
    after, _ = own.step(state, batch)
    return own.step(after, batch)[1]["loss"]


def test_a_step_is_differentiated_by_its_smallest_parameters() -> None:
    own, batch = _trainer()
    state, _ = own.step(own.init(0), batch)  # its smallest leaves are joined now
    params = {name: np.asarray(one) for name, one in state.params.items()}

    def by_hand(bias: Any, x: Any) -> Any:
        w, b = jnp.asarray(params["w"]), bias

        def loss(w: Any, b: Any) -> Any:
            return jnp.mean(jnp.square(x @ w + b - 1.0))

        d_w, d_b = jax.grad(loss, (0, 1))(w, b)
        return loss(w - 0.1 * d_w, b - 0.1 * d_b)

    def by_steps(bias: Any, x: Any) -> Any:
        start = own.init(0)._replace(params={**params, "b": bias})
        return _second_loss(own, start, {"x": x})

    given = jnp.asarray(params["b"]), jnp.asarray(batch["x"])
    expected = jax.grad(by_hand, (0, 1))(*given)
    assert abs(float(expected[0])) > 1e-3
    for one, other in zip(jax.grad(by_steps, (0, 1))(*given), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    # The batch alone is traced.
    slope = jax.grad(lambda x: _second_loss(own, own.init(0)._replace(params=params), {"x": x}))
    np.testing.assert_allclose(slope(given[1]), expected[1], rtol=1e-5, atol=1e-7)


def test_a_state_that_is_read_in_a_trace_does_not_hold_tracers() -> None:
    own, batch = _trainer()
    state, _ = own.step(own.init(0), batch)
    total = jax.jit(lambda x: x + state.params["b"] + state.step)(1.0)
    assert float(total) == pytest.approx(2.0 + float(state.params["b"]))
    assert int(state.step) == 1
    jax.random.uniform(state.key)
    state, _ = own.step(state, batch)
    assert int(state.step) == 2


def test_steps_of_several_states_at_once() -> None:
    own, batch = _trainer()
    states = [own.step(own.init(i), batch)[0] for i in range(3)]
    params = jax.tree.map(lambda *each: jnp.stack(each), *(one.params for one in states))

    def stepped(params: Any) -> Any:
        after, metrics = own.step(states[0]._replace(params=params), batch)
        return after.params, metrics["loss"], after.step

    found = jax.vmap(stepped, out_axes=(0, 0, None))(params)
    assert int(found[2]) == 2
    for i, state in enumerate(states):
        after, metrics = own.step(state._replace(step=state.step), batch)
        np.testing.assert_allclose(found[0]["b"][i], after.params["b"], rtol=1e-6)
        np.testing.assert_allclose(found[1][i], metrics["loss"], rtol=1e-6)


def test_a_state_goes_to_a_mesh() -> None:
    alone, batch = _trainer()
    state, _ = alone.step(alone.init(0), batch)
    on_mesh, _ = _trainer(mesh=jax.make_mesh((1,), ("data",)))
    state, first = on_mesh.step(state, batch)
    assert not state.packed().is_joined
    other, _ = alone.step(alone.init(0), batch)
    _, second = alone.step(other, batch)
    np.testing.assert_allclose(first["loss"], second["loss"], rtol=1e-6)


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
