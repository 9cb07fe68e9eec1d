"""Patterns that lowering and ``so.grad`` replace, so that no large matrix is stored."""

import jax
import numpy as np
import optax
import pytest

import symop as so
from registry import tuning
from symop import train

GENERATOR = np.random.default_rng(0)
ATTENTION, LOSS = "scaled_dot_product_attention", "linear_cross_entropy"


@pytest.fixture(autouse=True)
def _small_sizes():
    """Makes all calls large."""
    before = tuning.present.tuning
    tuning.tune(attention_block=4, attention_scores=0, logits=0, logits_chunk=60)
    yield
    tuning.present.tuning = before


def drawn(symbol):
    """Arrays for the arguments of a symbol."""
    names, shapes = symbol.list_arguments(), symbol.infer_shape()[0]
    arrays = {}
    for name, shape in zip(names, shapes, strict=True):
        arrays[name] = GENERATOR.standard_normal(shape).astype(np.float32)
        if name == "labels":
            arrays[name] = GENERATOR.integers(0, 9, shape).astype(np.int32)
    return arrays


def operators(symbol):
    """What lowering makes of a symbol."""
    return {one.name for one in so.explain(symbol).operators}


def close(found, expected):
    """Compares arrays one by one."""
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def query_keys_values():
    """Variables of attention."""
    shapes = {"q": (2, 7, 4), "k": (2, 9, 4), "v": (2, 9, 3)}
    return [so.var(name, shape=shape) for name, shape in shapes.items()]


def turned(x):
    """``x`` with its last two axes exchanged."""
    return so.permute_dims(x, axes=(0, 2, 1))


def scaled(q, k, v):
    return so.softmax(q @ turned(k) * 0.5) @ v


def divided_and_biased(q, k, v):
    return so.softmax(q @ turned(k) / 2.0 + so.var("bias", shape=(7, 9))) @ v


def masked(q, k, v):
    seen = np.tri(7, 9, dtype=bool)
    return so.softmax(so.where(seen, q @ turned(k), -np.inf)) @ v


def masked_softmax(q, k, v):
    return so.masked_softmax(q @ turned(k), np.tri(7, 9, dtype=bool)) @ v


def by_einsum(q, k, v):
    """Positions come before heads, as in most code for JAX."""
    q, k, v = (so.permute_dims(so.stack([x, 2 * x], axis=1), axes=(0, 2, 1, 3)) for x in (q, k, v))
    weights = so.softmax(so.einsum(q, k, equation="bqhd,bkhd->bhqk") / 2.0)
    return so.einsum(weights, v, equation="bhqk,bkhd->bqhd")


def by_einsum_of_keys_first(q, k, v):
    scores = so.einsum(so.permute_dims(k, axes=(2, 0, 1)), q, equation="dbk,bqd->bqk")
    return so.einsum(v, so.softmax(scores, axis=2), equation="...kd,...qk->d...q")


def by_einsum_with_mask_and_bias(q, k, v):
    """The values come first, and the batch last in the result."""
    q, k, v = (so.stack([x, 2 * x], axis=1) for x in (q, k, v))
    scores = so.einsum(k, q, equation="bhkd,bhqd->bhqk") + so.var("bias", shape=(2, 1, 9))
    weights = so.softmax(so.where(np.tri(7, 9, dtype=bool), scores, -np.inf))
    return so.einsum(v, weights, equation="bhkd,bhqk->hqdb")


def loss_by_einsum(hidden, labels):
    return so.softmax_cross_entropy(
        so.einsum(hidden, so.var("w", shape=(9, 4)), equation="bld,vd->blv"), labels
    )


def loss_by_einsum_of_rows(hidden, labels):
    weight = so.var("w", shape=(4, 9))
    return so.softmax_cross_entropy(
        so.einsum(weight, hidden, equation="dv,bld->blv") + so.var("b", shape=(9,)), labels
    )


def by_product(hidden, labels):
    return so.softmax_cross_entropy(hidden @ so.var("w", shape=(4, 9)), labels)


def by_tied_product(hidden, labels):
    weight = so.permute_dims(so.var("w", shape=(9, 4)), axes=(1, 0))
    return so.softmax_cross_entropy(hidden @ weight + so.var("b", shape=(9,)), labels)


def by_layer(hidden, labels):
    logits = so.fully_connected(hidden, units=9, flatten=False, name="out")
    return so.softmax_cross_entropy(logits, labels, smoothing=0.1, ignore_label=3)


def by_flat_layer(hidden, labels):
    logits = so.fully_connected(hidden, units=9, flatten=False, name="out")
    flat = so.reshape(logits, shape=(-1, 9))
    return so.softmax_cross_entropy(flat, so.reshape(labels, shape=(-1,)))


def of_attention(write):
    return so.mean(so.square(write(*query_keys_values())))


def of_loss(write):
    hidden = so.tanh(so.var("hidden", shape=(2, 5, 4)))
    return so.mean(write(hidden, so.var("labels", shape=(2, 5), dtype="int32")))


PATTERNS = [
    *(pytest.param(ATTENTION, of_attention, f, id=f.__name__)
      for f in (scaled, divided_and_biased, masked, masked_softmax, by_einsum,
                by_einsum_of_keys_first, by_einsum_with_mask_and_bias)),
    *(pytest.param(LOSS, of_loss, f, id=f.__name__)
      for f in (by_product, by_tied_product, by_layer, by_flat_layer, loss_by_einsum,
                loss_by_einsum_of_rows)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_a_condition_of_numbers_is_no_mask(dtype):
    q, k, v = query_keys_values()
    seen = so.var("seen", shape=(7, 9), dtype=dtype)
    out = so.softmax(so.where(seen, q @ turned(k), -np.inf)) @ v
    arrays = drawn(out) | {"seen": 3 * np.tri(7, 9, dtype=dtype)}
    assert ATTENTION not in operators(out)
    with so.streaming(False):
        expected = out.eval(**arrays)
    close(out.eval(**arrays), expected)


@pytest.mark.parametrize(
    "transpose",
    [
        lambda x: so.swapaxes(x, -1, -2),
        lambda x: so.moveaxis(x, source=1, destination=2),
        lambda x: x.transpose(0, 2, 1),
    ],
)
def test_each_transpose_of_the_keys_is_found(transpose):
    q, k, v = query_keys_values()
    (streamed,) = so.explain(so.softmax(q @ transpose(k)) @ v).streamed
    assert streamed.operator == ATTENTION


def test_weights_transposed_without_axes_are_found():
    weight = so.permute_dims(so.var("w", shape=(9, 4)))
    hidden, labels = so.var("hidden", shape=(5, 4)), so.var("labels", shape=(5,), dtype="int32")
    (streamed,) = so.explain(so.softmax_cross_entropy(hidden @ weight, labels)).streamed
    assert streamed.operator == LOSS


@pytest.mark.parametrize(
    ("scores", "product"),
    [
        ("bqd,bkd->bqk", "bqk,bqd->bkd"),  # the product sums over queries
        ("bqd,bkd->qbk", "qbk,bkd->bqd"),  # queries come before the batch
        ("bqd,bkd->bqk", "bqk,bkd->bq"),  # an axis of the values is summed, too
        ("bqd,ckd->bqk", "bqk,bkd->bqd"),  # an axis of the keys is summed, too
        ("bqd,bkd->bqk", "bqk,bkk->bqk"),  # the diagonal of the values
    ],
)
def test_other_equations_are_left(scores, product):
    q, k, v = (so.var(name, shape=(7, 7, 7)) for name in "qkv")
    out = so.einsum(so.softmax(so.einsum(q, k, equation=scores)), v, equation=product)
    assert not so.explain(out).streamed


def test_integers_and_vectors_are_left():
    """Products of small integers wrap around; values without an axis are no matrix."""
    q, k, v = query_keys_values()
    whole = [so.cast(100 * one, dtype="int8") for one in (q, k)]
    for scores in (so.einsum(*whole, equation="bqd,bkd->bqk"), whole[0] @ turned(whole[1])):
        assert ATTENTION not in operators(so.softmax(scores * 0.5) @ v)
    query, keys = so.var("query", shape=(7, 4)), so.var("keys", shape=(9, 4))
    weights = so.softmax(query @ so.permute_dims(keys))
    assert ATTENTION not in operators(weights @ so.var("value", shape=(9,)))


def test_axes_that_are_broadcast_are_left():
    q, k, v = (so.var(name, shape=shape) for name, shape in
               (("q", (2, 7, 4)), ("k", (1, 9, 4)), ("v", (2, 9, 3))))  # fmt: skip
    weights = so.softmax(so.einsum(q, k, equation="bqd,bkd->bqk"))
    assert not so.explain(so.einsum(weights, v, equation="bqk,bkd->bqd")).streamed


def test_scores_divided_by_zero_are_left():
    q, k, v = query_keys_values()
    symbol = so.softmax(q @ turned(k) / 0.0) @ v
    assert ATTENTION not in operators(symbol)
    assert np.isnan(symbol.to_jax()(**drawn(symbol))).all()


def test_other_orders_of_axes_are_left():
    q, v, k = so.var("q", shape=(2, 7, 7)), so.var("v", shape=(2, 7, 7)), so.var("k", (7, 2, 7))
    for keys in (v, so.swapaxes(k, 0, 1), so.moveaxis(k, source=0, destination=1)):
        assert not so.explain(so.softmax(q @ keys) @ v).streamed


@pytest.mark.parametrize(("operator", "scalar", "write"), PATTERNS)
class TestPatterns:
    def test_they_are_found_and_compute_the_same(self, operator, scalar, write):
        symbol = scalar(write)
        assert operator in operators(symbol)
        (streamed,) = so.explain(symbol).streamed
        assert streamed.operator == operator
        assert f"became {operator} at" in str(streamed)
        assert str(streamed) in str(so.explain(symbol))
        arrays = drawn(symbol)
        found = so.value_and_grad(symbol)(**arrays)
        with so.streaming(False):
            assert operator not in operators(symbol)
            assert not so.explain(symbol).streamed
            expected = so.value_and_grad(symbol)(**arrays)
        close(found, expected)

    def test_a_gradient_in_the_graph_reads_no_large_matrix(self, operator, scalar, write):
        symbol = scalar(write)
        names = [n for n in symbol.list_arguments() if n != "labels"]
        whole = so.Group([symbol, *so.grad(symbol, names)])
        made = {one.name: one.calls for one in so.explain(whole).operators}
        assert made[operator] == 1
        assert not set(made) & {"softmax", "masked_softmax", "softmax_cross_entropy"}
        arrays = drawn(symbol)
        value, gradients = so.value_and_grad(symbol, names)(**arrays)
        close(whole.to_jax()(**arrays), [value, *(gradients[name] for name in names)])


class TestLimits:
    def test_small_calls_stay(self):
        tuning.tune(attention_scores=1000, logits=1000)
        assert ATTENTION not in operators(of_attention(scaled))
        assert LOSS not in operators(of_loss(by_product))

    def test_a_value_that_is_read_elsewhere_stays(self):
        q, k, v = query_keys_values()
        weights = so.softmax(q @ turned(k))
        assert ATTENTION not in operators(so.Group([weights @ v, weights]))
        assert ATTENTION not in operators(so.mean(weights @ v) + so.mean(weights))
        out = so.mean(so.square(weights @ v))
        assert so.grad(out, weights).shape == weights.shape

    def test_other_patterns_stay(self):
        q, k, v = query_keys_values()
        hidden, labels = so.var("h", shape=(5, 4)), so.var("labels", shape=(5,), dtype="int32")
        scores = hidden @ so.var("w", shape=(4, 9))
        for symbol in (
            so.softmax(q @ turned(k), axis=1) @ v,
            so.softmax(q @ turned(k), temperature=2.0) @ v,
            so.softmax(so.where(np.tri(7, 9, dtype=bool), q @ turned(k), -1e9)) @ v,
            so.softmax((q @ turned(k) + so.var("b", shape=(7, 9))) * 2.0) @ v,
            so.softmax_cross_entropy(scores, labels, so.var("c", shape=(9,))),
            so.softmax_cross_entropy(so.tanh(scores), labels),
            so.softmax_cross_entropy(scores, so.var("p", shape=(5, 9))),
        ):
            assert not so.explain(symbol).streamed

    def test_a_function_keeps_the_choice_of_where_it_was_made(self):
        symbol = of_attention(scaled)
        arrays = drawn(symbol)
        with so.streaming(False):
            function = symbol.to_jax()
        assert "scan" not in str(jax.make_jaxpr(function)(**arrays))
        assert "scan" in str(jax.make_jaxpr(symbol.to_jax())(**arrays))

    def test_a_trainer_and_its_account(self):
        loss = of_loss(by_product)
        trainer = train.Trainer(loss, optax.sgd(0.1), inputs=["hidden", "labels"])
        assert LOSS in {one.name for one in so.explain(trainer).operators}
