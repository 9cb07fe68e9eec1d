"""Attention by blocks: against whole matrices in JAX, for all that limits what a query sees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry import tuning
from registry.table import get

GENERATOR = np.random.default_rng(0)
SEEN = GENERATOR.random((3, 1, 13, 11)) > 0.3
SEED = np.array([5, 2**31 + 3], np.uint32)


def drawn(*shape):
    """A normal draw of this shape."""
    return GENERATOR.standard_normal(shape).astype(np.float32)


QUERY, KEYS, VALUES = drawn(3, 4, 13, 6), drawn(3, 2, 11, 6), drawn(3, 2, 11, 5)
LENGTHS = {
    "query_lengths": np.array([13, 1, 6], np.int32),
    "key_lengths": np.array([4, 11, 0], np.int32),
}
CALLS = {
    "plain": {},
    "causal": {"causal": True},
    "boolean mask": {"mask": SEEN},
    "floating mask": {"mask": drawn(13, 11)},
    "mask and bias": {"mask": SEEN, "bias": drawn(4, 1, 11)},
    "bias of queries": {"bias": drawn(3, 1, 13, 1), "causal": True},
    "infinite mask": {"mask": np.where(SEEN[0], 0, -np.inf).astype(np.float32)},
    "lengths": LENGTHS,
    "window": {"window": (2, 5)},
    "causal window": {"window": 3, "causal": True, "scale": 0.3},
    "dropout": {"dropout": 0.4, "dropout_seed": SEED},
}


@pytest.fixture
def blocks():
    """Divides calls into blocks of at most four queries and keys, which cut them unevenly."""
    before = tuning.present.tuning
    tuning.tune(attention_block=4, attention_scores=0)
    yield
    tuning.present.tuning = before


def by_matrices(query, keys, values, mask=None, bias=None, dropout_seed=None, **how):
    """Attention in JAX with the matrix of weights, which JAX differentiates."""
    keys, values = (jnp.repeat(one, 2, -3) for one in (keys, values))
    scores = how.get("scale", query.shape[-1] ** -0.5) * query @ jnp.swapaxes(keys, -1, -2)
    rows, cols = np.indices(scores.shape[-2:])
    seen = jnp.ones(scores.shape, bool)
    if mask is not None and mask.dtype != bool:
        seen, bias = jnp.isfinite(mask), jnp.where(jnp.isfinite(mask), mask, 0)
    elif mask is not None:
        seen = seen & mask
    window = how.get("window", 99)
    back, ahead = window if isinstance(window, tuple) else (window, window)
    seen = seen & (rows - cols <= back) & (cols - rows <= (0 if how.get("causal") else ahead))
    for places, name in ((rows, "query_lengths"), (cols, "key_lengths")):
        if name in how:
            seen = seen & (places < how[name][:, None, None, None])
    scores = jnp.where(seen, scores if bias is None else scores + bias, -1e30)
    weights = jnp.where(seen, jax.nn.softmax(scores, -1), 0)
    if dropout_seed is not None:
        rate = how["dropout"]
        weights *= get("attention_factors")(dropout_seed, shape=weights.shape, dropout=rate)
    return weights @ values


def leaves_of(call):
    """The arrays of a call that are differentiated, and what is fixed."""
    arrays = {"query": QUERY, "keys": KEYS, "values": VALUES}
    floating = {n: one for n, one in call.items() if getattr(one, "dtype", None) == np.float32}
    fixed = {name: one for name, one in call.items() if name not in floating}
    return arrays | floating, fixed


def as_symbol(arrays, fixed):
    """Attention as a symbol, and its floating variables."""
    variables = {n: so.var(n, shape=one.shape, dtype=str(one.dtype)) for n, one in arrays.items()}
    held = {n: jnp.asarray(one) if hasattr(one, "shape") else one for n, one in fixed.items()}
    return so.scaled_dot_product_attention(**variables, **held), list(variables.values())


def close(found, expected, tolerance=2e-5):
    """Compares lists of arrays."""
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("blocks")
class TestBlocks:
    def test_value_and_gradients_are_those_of_matrices(self, name):
        arrays, fixed = leaves_of(CALLS[name])

        def loss(arrays):
            out = by_matrices(**arrays, **fixed)
            return jnp.sum(jnp.sin(out)), out

        (_, out), expected = jax.jit(jax.value_and_grad(loss, has_aux=True))(arrays)
        symbol, variables = as_symbol(arrays, fixed)
        found = so.Group([symbol, *so.grad(so.sum(so.sin(symbol)), variables)]).eval(**arrays)
        close(found[0], out)
        for one, d in zip(variables, found[1:], strict=True):
            # No gradient flows where a mask is minus infinity.
            close(d, expected[one.name])

    def test_tangents_are_those_of_matrices(self, name):
        arrays, fixed = leaves_of(CALLS[name])
        ways = {n: np.sinc(np.nan_to_num(one, neginf=1.0)) for n, one in arrays.items()}
        symbol, _ = as_symbol(arrays, fixed)
        function = symbol.to_jax()

        def tangent(f):
            return jax.jit(lambda a, b: jax.jvp(lambda given: f(**given), (a,), (b,))[1])

        expected = tangent(lambda **given: by_matrices(**given, **fixed))(arrays, ways)
        close(tangent(function)(arrays, ways), expected, 1e-4)


@pytest.mark.usefixtures("blocks")
class TestTransformations:
    ARRAYS = (QUERY, KEYS, VALUES)

    @staticmethod
    def ours(*arrays):
        """A scalar of causal attention by the operator's rules."""
        call = get("scaled_dot_product_attention")
        variables = [
            so.var(f"x{i}", shape=one.shape, dtype=str(one.dtype)) for i, one in enumerate(arrays)
        ]
        return jnp.sum(jnp.sin(call(*variables, causal=True, window=5).to_jax()(*arrays)))

    @staticmethod
    def theirs(*arrays):
        """The same by matrices."""
        how = {"causal": True, "window": (5, 5)}
        return jnp.sum(jnp.sin(by_matrices(*arrays, **how)))

    def test_second_order(self):
        def curvature(f):
            gradient = jax.grad(f, (0, 1, 2))
            return jax.jit(lambda *xs: jax.jvp(gradient, xs, jax.tree.map(jnp.cos, xs))[1])

        close(curvature(self.ours)(*self.ARRAYS), curvature(self.theirs)(*self.ARRAYS), 2e-4)

    def test_reverse_over_reverse(self):
        def twice(f):
            inner = jax.grad(f, (0, 1, 2))
            outer = lambda *xs: sum(jnp.sum(jnp.cos(one)) for one in inner(*xs))  # noqa: E731
            return jax.jit(jax.grad(outer, (0, 1, 2)))

        close(twice(self.ours)(*self.ARRAYS), twice(self.theirs)(*self.ARRAYS), 2e-4)

    def test_vmap_and_scan(self):
        stacked = [jnp.stack([one, 2 * one]) for one in self.ARRAYS]
        expected = [jax.jit(jax.grad(self.theirs))(*(one[i] for one in stacked)) for i in (0, 1)]
        gradient = jax.grad(self.ours)
        close(jax.jit(jax.vmap(gradient))(*stacked), jnp.stack(expected))
        scanned = jax.jit(lambda xs: jax.lax.scan(lambda _, x: (None, gradient(*x)), None, xs)[1])
        close(scanned(tuple(stacked)), jnp.stack(expected))

    def test_bfloat16_is_near_float32(self):
        half = [jnp.asarray(one, jnp.bfloat16) for one in self.ARRAYS]
        single = [one.astype(np.float32) for one in half]
        gradient = jax.jit(jax.grad(self.ours, (0, 1, 2)))
        for one, other in zip(gradient(*half), gradient(*single), strict=True):
            assert one.dtype == jnp.bfloat16
            error = np.linalg.norm(one.astype(np.float32) - other) / np.linalg.norm(other)
            assert error < 2**-6

    def test_the_gradient_of_a_bias_in_double_precision(self):
        with jax.enable_x64(True):
            arrays = [np.asarray(one, np.float64) for one in self.ARRAYS]
            bias = np.cos(np.arange(4 * 11.0)).reshape(4, 1, 11)

            given = dict(zip(("query", "keys", "values"), arrays, strict=True)) | {"bias": bias}
            symbol, _ = as_symbol(given, {})
            function = so.value_and_grad(so.sum(so.sin(symbol)))
            expected = jax.grad(lambda b: jnp.sum(jnp.sin(by_matrices(*arrays, bias=b))))(bias)
            close(function(**given)[1]["bias"], expected, 1e-10)


@pytest.mark.usefixtures("blocks")
class TestSize:
    def test_hidden_blocks_are_not_computed(self):
        def steps(**how):
            variables = [so.var(n, shape=(64, 4)) for n in ("q", "k", "v")]
            function = so.scaled_dot_product_attention(*variables, **how).to_jax()
            jaxpr = str(jax.make_jaxpr(function)(*[np.zeros((64, 4), np.float32)] * 3))
            return int(jaxpr.partition(" length=")[2].split()[0])

        assert steps() == 16 * 16
        assert steps(causal=True) == 16 * 17 // 2
        assert steps(causal=True, window=4) == 16 + 15

    def test_axes_of_length_zero(self):
        for queries, keys, width in ((0, 3, 2), (3, 0, 2), (3, 2, 0)):
            shapes = {"q": (2, queries, width), "k": (2, keys, width), "v": (2, keys, 4)}
            arrays = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
            variables = [so.var(name, shape=shape) for name, shape in shapes.items()]
            out = so.scaled_dot_product_attention(*variables)
            found = so.Group([out, *so.grad(so.sum(out), variables)]).eval(**arrays)
            assert found[0].shape == (2, queries, 4)
            assert [one.shape for one in found[1:]] == list(shapes.values())
            assert np.all(np.isfinite(np.concatenate([np.ravel(one) for one in found])))

    def test_memory_grows_with_the_length(self):
        def taken(length):
            variables = [so.var(n, shape=(length, 8)) for n in ("q", "k", "v")]
            loss = so.sum(so.square(so.scaled_dot_product_attention(*variables)))
            struct = jax.ShapeDtypeStruct((length, 8), np.float32)
            lowered = jax.jit(so.value_and_grad(loss)).lower(struct, struct, struct)
            return lowered.compile().memory_analysis().temp_size_in_bytes

        assert taken(2048) < 2.5 * taken(1024) + 4096


class TestDropout:
    def test_factors_keep_the_expectation(self):
        factors = np.asarray(get("attention_factors")(SEED, shape=(8, 64, 64), dropout=0.25))
        assert set(np.unique(factors)) == {np.float32(0), np.float32(1 / 0.75)}
        assert abs(np.mean(factors) - 1) < 0.02
        for axis in range(3):  # neither a head nor a row nor a column is special
            assert np.ptp(factors.mean(tuple({0, 1, 2} - {axis}))) < 0.2

    def test_a_layer_drops_in_training_alone(self):
        x = so.var("x", shape=(2, 6, 8))
        y = so.multi_head_attention(x, heads=2, dropout=0.5, window=3, name="a")
        arrays = {n: drawn(*s) for n, s in zip(y.list_arguments(), y.infer_shape()[0], strict=True)}
        still, moving = y.to_jax(), y.to_jax(is_train=True)
        keys = [jax.random.key(i) for i in (0, 0, 1)]
        first, same, other = (moving(**arrays, key=key) for key in keys)
        np.testing.assert_array_equal(first, same)
        assert not np.allclose(first, other)
        plain = so.multi_head_attention(x, heads=2, window=3, name="a")
        close(still(**arrays, key=keys[0]), plain.to_jax()(**arrays))
