"""Cross-entropy of linear scores by chunks: against scores that are stored, in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry import tuning

N, WIDTH, CLASSES = 10, 6, 23
GENERATOR = np.random.default_rng(0)
HIDDEN, WEIGHT, BIAS = (
    GENERATOR.standard_normal(shape).astype(np.float32)
    for shape in ((N, WIDTH), (CLASSES, WIDTH), (CLASSES,))
)
LABELS = GENERATOR.integers(0, CLASSES, N).astype(np.int32)
LABELS[3] = -7
CALLS = [
    {"ignore_label": -7},
    {"ignore_label": -7, "smoothing": 0.1},
    {"ignore_label": -7, "z_loss": 0.05, "soft_cap": 3.0},
]


@pytest.fixture(params=[(0, 60), (3 * CLASSES, 60)], ids=["one example", "three examples"])
def chunks(request):
    """Chunks that cut the classes, and the examples where both results are computed, unevenly."""
    before = tuning.present.tuning
    logits, chunk = request.param
    tuning.tune(logits=logits, logits_chunk=chunk)
    yield
    tuning.present.tuning = before


def stored(hidden, weight, bias=None, labels=LABELS, **how):
    """The losses from stored scores."""
    scores = hidden @ weight.T + (0 if bias is None else bias)
    cap, smoothing = how.get("soft_cap"), how.get("smoothing", 0.0)
    scores = scores if cap is None else cap * jnp.tanh(scores / cap)
    size = jax.nn.logsumexp(scores, -1)
    masses = (1 - smoothing) * jax.nn.one_hot(labels, CLASSES) + smoothing / CLASSES
    loss = size - jnp.sum(masses * scores, -1) + how.get("z_loss", 0.0) * size**2
    return jnp.where(labels == how.get("ignore_label"), 0, loss)


def variables(bias=True):
    """Variables for the arrays."""
    arrays = {"hidden": HIDDEN, "weight": WEIGHT} | ({"bias": BIAS} if bias else {})
    return {name: so.var(name, shape=one.shape) for name, one in arrays.items()}, arrays


def close(found, expected, tolerance=1e-5):
    """Compares arrays one by one."""
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def squares(losses):
    """A scalar in which each loss has another cotangent, which depends on the loss."""
    return jnp.sum(losses**2)


@pytest.mark.usefixtures("chunks")
class TestChunks:
    @pytest.mark.parametrize("how", CALLS)
    def test_value_and_gradients_are_those_of_stored_scores(self, how):
        by_name, arrays = variables()
        loss = so.linear_cross_entropy(**by_name, labels=jnp.asarray(LABELS), **how)
        weights = np.arange(N, dtype=np.float32)
        for head, scalar in ((so.sum(loss * weights), weights @ stored(**arrays, **how)),):
            found = so.value_and_grad(head)(**arrays)
            close(found[0], scalar)
            expected = jax.jit(jax.grad(lambda given: weights @ stored(**given, **how)))(arrays)
            close([found[1][name] for name in arrays], [expected[name] for name in arrays])

    def test_second_order_and_forward_mode(self):
        by_name, arrays = variables()
        how = CALLS[2]
        call = so.linear_cross_entropy(**by_name, labels=jnp.asarray(LABELS), **how)
        ways = {name: np.cos(one) for name, one in arrays.items()}

        def curvature(f):
            gradient = jax.grad(lambda given: squares(f(**given)))
            return jax.jit(lambda given, way: jax.jvp(gradient, (given,), (way,)))

        found = curvature(call.to_jax())(arrays, ways)
        expected = curvature(lambda **given: stored(**given, **how))(arrays, ways)
        close(found, expected, 5e-4)

    def test_reverse_over_reverse_inside_of_a_loop(self):
        by_name, arrays = variables()
        how = CALLS[2]
        call = so.linear_cross_entropy(**by_name, labels=jnp.asarray(LABELS), **how)
        ways = {name: np.cos(one) for name, one in arrays.items()}

        def slope(f):
            """The gradient of a product with the Hessian, summed over the steps of a loop."""
            gradient = jax.grad(lambda given: squares(f(**given)))

            def step(total, factor):
                scaled = jax.tree.map(lambda one: factor * one, arrays)
                parts = jax.tree.map(jnp.vdot, gradient(jax.tree.map(jnp.add, scaled, ways)), ways)
                return total + factor * sum(jax.tree.leaves(parts)), None

            return lambda start: jax.lax.scan(step, start, jnp.asarray([0.5, 1.0]))[0]

        def both(f):
            def of(given):
                inner = jax.grad(lambda one: squares(f(**one)))(given)
                return sum(jnp.vdot(inner[name], ways[name]) for name in ways)

            return jax.jit(jax.grad(of))(arrays), jax.jit(slope(f))(jnp.float32(0))

        found, expected = both(call.to_jax()), both(lambda **given: stored(**given, **how))
        close(found, expected, 5e-4)

    def test_vmap_and_leading_axes(self):
        hidden = np.stack([HIDDEN, 2 * HIDDEN])
        labels = np.stack([LABELS, LABELS])
        own = so.linear_cross_entropy(
            so.var("hidden", shape=hidden.shape), jnp.asarray(WEIGHT), jnp.asarray(labels)
        )
        one = so.linear_cross_entropy(
            so.var("hidden", shape=HIDDEN.shape), jnp.asarray(WEIGHT), jnp.asarray(LABELS)
        ).to_jax()
        assert own.shape == (2, N)
        close(own.eval(hidden=hidden), jax.jit(jax.vmap(one))(hidden))

    def test_bfloat16_is_near_float32(self):
        by_name, arrays = variables()
        half = {name: jnp.asarray(one, jnp.bfloat16) for name, one in arrays.items()}
        of_half = {n: so.var(n, shape=one.shape, dtype="bfloat16") for n, one in half.items()}
        labels = jnp.asarray(LABELS)
        found, expected = (
            so.value_and_grad(so.sum(so.linear_cross_entropy(**given, labels=labels, **CALLS[0])))
            for given in (of_half, by_name)
        )
        d, wide = found(**half)[1], {n: one.astype(np.float32) for n, one in half.items()}
        for name, other in expected(**wide)[1].items():
            assert d[name].dtype == jnp.bfloat16
            error = np.linalg.norm(d[name].astype(np.float32) - other) / np.linalg.norm(other)
            assert error < 2**-6


@pytest.mark.usefixtures("chunks")
class TestBoth:
    NAME = "linear_cross_entropy_and_gradient"

    def program(self, head, **how):
        """The jaxpr of value and gradients of a scalar of the losses, and their values."""
        by_name, arrays = variables()
        loss = so.linear_cross_entropy(**by_name, labels=jnp.asarray(LABELS), **how)
        function = so.value_and_grad(head(loss))
        return str(jax.make_jaxpr(function)(**arrays)).count("dot_general"), function(**arrays)

    def test_a_mean_computes_each_score_once(self):
        count, (value, gradients) = self.program(so.mean, **CALLS[1])
        with so.streaming(False):
            twice, (other, expected) = self.program(so.mean, **CALLS[1])
        assert (count, twice) == (3, 4)
        close((value, gradients), (other, expected))

    def test_a_gradient_that_depends_on_the_loss_does_not(self):
        count, _ = self.program(lambda loss: so.sum(so.square(loss)), **CALLS[1])
        assert count == 4


def test_a_class_out_of_range_is_nan_alone():
    labels = np.where(LABELS < 0, CLASSES, LABELS)
    loss = np.asarray(so.linear_cross_entropy(HIDDEN, WEIGHT, labels))
    np.testing.assert_array_equal(np.isnan(loss), labels == CLASSES)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "uint32"])
@pytest.mark.parametrize("outside", [2**31, 2**32 + 1])
def test_a_wide_class_out_of_range_does_not_wrap_around(dtype, outside):
    outside = min(outside, np.iinfo(dtype).max)
    with jax.enable_x64(True):
        labels = np.asarray([1, outside, 2], dtype)
        loss = np.asarray(so.linear_cross_entropy(HIDDEN[:3], WEIGHT, labels))
        np.testing.assert_array_equal(np.isnan(loss), [False, True, False])
        ignored = so.linear_cross_entropy(HIDDEN[:3], WEIGHT, labels, ignore_label=int(outside))
        np.testing.assert_array_equal(ignored, [loss[0], 0, loss[2]])


def test_ignored_examples_may_hold_anything():
    hidden = np.where((LABELS < 0)[:, None], np.nan, HIDDEN).astype(np.float32)
    by_name, arrays = variables()
    loss = so.linear_cross_entropy(**by_name, labels=jnp.asarray(LABELS), ignore_label=-7)
    _, gradients = so.value_and_grad(so.sum(loss))(**arrays | {"hidden": hidden})
    assert all(np.all(np.isfinite(one)) for one in gradients.values())
