"""Generation by the trained graph: equal to the whole sequence, of any prompts, checked."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError, FeedError, NameConflictError, UnknownTypeError
from symop import train

VOCABULARY, WIDTH, LENGTH = 11, 8, 24
PROMPTS = [[1, 2, 3], [4], [5, 6, 7, 8, 9]]


def model(tokens, *, rotary=False, kv_heads=None, window=None, dropout=0.0, mix=lambda h: h):
    """A transformer of two blocks; ``mix`` is applied between them."""
    h = so.lookup_table(tokens, rows=VOCABULARY, width=WIDTH, name="tokens_in")
    if not rotary:
        places = so.position_ids(tokens)
        h = h + so.lookup_table(places, rows=LENGTH, width=WIDTH, name="places",
                                table_initial="normal(0.5)")  # fmt: skip
    for i in range(2):
        with so.name_scope(f"block{i}"):
            x = so.layer_norm(h, name="norm")
            how = {"heads": 4, "kv_heads": kv_heads, "width": WIDTH, "rotary": rotary}
            how |= {"window": window, "dropout": dropout}
            h = mix(h + so.multi_head_attention(x, causal=True, name="mix", **how))
            h = h + so.fully_connected(so.gelu(h), units=WIDTH, flatten=False, name="dense")
    return so.fully_connected(h, units=VOCABULARY, flatten=False, name="out")


def weights_of(logits, shape=(1, 4)):
    """Random weights."""
    drawn = train.initialize(logits, jax.random.key(1), tokens=shape)
    return {name: one for name, one in drawn.items() if name != "tokens"}


TOKENS = so.var("tokens", dtype="int32")


@pytest.fixture(scope="module")
def usual():
    """A model, its weights and its generator."""
    logits = model(TOKENS, kv_heads=2)
    return logits, weights_of(logits), so.Generator(logits, length=LENGTH)


def continued(logits, weights, prompt, count):
    """The likeliest tokens, each by the model of the whole sequence."""
    compiled, row = jax.jit(logits.to_jax()), list(prompt)
    for _ in range(count):
        # Tokens beyond the end change nothing before it, and one length compiles once.
        padded = np.zeros((1, LENGTH), np.int32)
        padded[0, : len(row)] = row
        row.append(int(np.argmax(compiled(tokens=padded, **weights)[0, len(row) - 1])))
    return row[len(prompt) :]


class TestGenerator:
    def test_tokens_are_those_of_the_whole_sequence(self, usual):
        logits, weights, generate = usual
        found = generate(weights, PROMPTS, 8)
        for prompt, row in zip(PROMPTS, found, strict=True):
            assert row.tolist() == continued(logits, weights, prompt, 8)

    def test_rotary_positions_a_window_and_a_declared_shape(self):
        tokens = so.var("tokens", shape=(1, LENGTH), dtype="int32")
        logits = model(tokens, rotary=True, window=2)
        weights = weights_of(logits, shape=(1, LENGTH))
        (row,) = so.Generator(logits, length=LENGTH)(weights, [[3, 1]], 6)
        assert row.tolist() == continued(logits, weights, [3, 1], 6)

    def test_logits_of_steps_are_those_of_the_whole_sequence(self, usual):
        logits, weights, generate = usual
        tokens = np.random.default_rng(0).integers(0, VOCABULARY, (2, 9)).astype(np.int32)
        whole = jax.jit(logits.to_jax())(tokens=tokens, **weights)
        generate._graph(2, 4), generate._graph(2, 1)
        caches = [
            jnp.zeros(one.type.shape, one.type.dtype) for one in generate._graph(2, 1)[0].caches
        ]
        first, caches = generate._step(weights, caches, tokens[:, :4], np.zeros(2, np.int32))
        parts = [first]
        for i in range(4, 9):
            one, caches = generate._step(
                weights, caches, tokens[:, i : i + 1], np.full(2, i, np.int32)
            )
            parts.append(one)
        assert np.allclose(np.concatenate(parts, axis=1), whole, rtol=1e-4, atol=1e-5)

    def test_a_batch_is_its_examples(self, usual):
        _, weights, generate = usual
        together = generate(weights, PROMPTS, 5)
        for prompt, row in zip(PROMPTS, together, strict=True):
            assert generate(weights, [prompt], 5)[0].tolist() == row.tolist()

    def test_an_example_ends_at_the_stop(self, usual):
        _, weights, generate = usual
        rows = generate(weights, PROMPTS, 8)
        stop = int(rows[0][3])
        expected = [
            row.tolist()[: row.tolist().index(stop)] if stop in row else row.tolist()
            for row in rows
        ]
        assert [row.tolist() for row in generate(weights, PROMPTS, 8, stop=stop)] == expected

    def test_draws(self, usual):
        logits, weights, generate = usual
        greedy = generate(weights, PROMPTS, 6)
        one = generate(weights, PROMPTS, 6, temperature=2.0, top_k=1)
        assert [row.tolist() for row in one] == [row.tolist() for row in greedy]
        few = generate(weights, [[1]] * 200, 1, temperature=5.0, top_k=3, seed=4)
        scores = jax.jit(logits.to_jax())(tokens=np.ones((1, 8), np.int32), **weights)[0, 0]
        likeliest = set(np.argsort(scores)[-3:].tolist())
        assert {int(row[0]) for row in few} == likeliest
        again = generate(weights, [[1]] * 200, 1, temperature=5.0, top_k=3, seed=4)
        assert [row.tolist() for row in few] == [row.tolist() for row in again]

    def test_one_loop_for_every_number_of_tokens(self, usual):
        _, weights, generate = usual
        generate(weights, [[1, 2]], 3)
        compiled = generate._run._cache_size()
        generate(weights, [[4, 1, 3]], 7, temperature=0.5, stop=3, seed=2)
        assert generate._run._cache_size() == compiled

    def test_a_step_costs_the_same_at_every_position(self, usual):
        _, _, generate = usual
        graph, _ = generate._graph(1, 1)
        assert {one.type.shape for one in graph.caches} == {(1, 2, LENGTH, 2)}
        assert graph.result.type.shape == (1, 1, VOCABULARY)

    def test_a_pickle(self, usual):
        _, weights, generate = usual
        (row,) = pickle.loads(pickle.dumps(generate))(weights, [[1, 2]], 3)
        assert row.tolist() == generate(weights, [[1, 2]], 3)[0].tolist()

    @pytest.mark.parametrize(
        ("mix", "name"),
        [
            (lambda h: h - so.mean(h, axis=1, keepdims=True), "mean"),
            (lambda h: so.cumsum(h, axis=1), "cumsum"),
            (lambda h: so.softmax(h, axis=1), "softmax"),
            (lambda h: h + so.multi_head_attention(h, heads=2, width=WIDTH), "attention"),
            (lambda h: h[:, ::-1], "flip"),
            (lambda h: so.abs(so.fft(h, axis=1)), "fft"),
        ],
    )
    def test_calls_that_combine_positions_are_named(self, mix, name):
        with pytest.raises(ArgumentError, match=f"causal attention alone, got .*{name}"):
            so.Generator(model(TOKENS, mix=mix), length=LENGTH)

    def test_errors(self, usual):
        logits, weights, generate = usual
        with pytest.raises(ArgumentError, match=r"at most length \(24\), got 22"):
            generate(weights, PROMPTS, 22)
        with pytest.raises(ArgumentError, match="prompts must be lists of whole numbers"):
            generate(weights, [[1], []], 2)
        with pytest.raises(
            ArgumentError, match=r"top_k must be among 1, \.\.\., 11, got 0.0 and 12"
        ):
            generate(weights, [[1]], 2, top_k=12)
        with pytest.raises(FeedError, match="weights must hold out_weight, got none"):
            generate({n: w for n, w in weights.items() if n != "out_weight"}, [[1]], 2)
        with pytest.raises(FeedError, match="got 'words'"):
            so.Generator(logits, length=9, tokens="words")
        with pytest.raises(ArgumentError, match=r"alone, got .*slice"):
            so.Generator(logits[:, 0], length=9)


class TestAttention:
    def test_it_is_attention_with_projections(self):
        x = so.var("x", shape=(2, 5, 8))
        y = so.multi_head_attention(x, heads=4, kv_heads=2, causal=True, name="a")
        w = train.initialize(y, jax.random.key(0))
        assert {n: v.shape for n, v in w.items() if n.endswith("weight")} == {
            "a_query_weight": (8, 8), "a_key_weight": (4, 8),
            "a_value_weight": (4, 8), "a_out_weight": (8, 8),
        }  # fmt: skip

        def heads(part, count):
            rows = w["x"] @ w[f"a_{part}_weight"].T
            return rows.reshape(2, 5, count, 2)

        expected = (
            jax.nn.dot_product_attention(
                heads("query", 4), heads("key", 2), heads("value", 2), is_causal=True
            ).reshape(2, 5, 8)
            @ w["a_out_weight"].T
        )
        assert np.allclose(y.eval(**w), expected, atol=1e-5)

    def test_memory_and_a_mask(self):
        x, m = so.var("x", shape=(2, 3, 4)), so.var("m", shape=(2, 5, 6))
        mask = np.arange(5) < 2
        y = so.multi_head_attention(x, m, heads=2, mask=mask, name="a", use_bias=False)
        w = train.initialize(y, jax.random.key(0))
        other = {**w, "m": w["m"].at[:, 2:].add(1.0)}
        assert np.allclose(y.eval(**w), y.eval(**other))
        assert y.shape == (2, 3, 4)

    def test_errors(self):
        x = so.var("x", shape=(2, 5, 8))
        with pytest.raises(ArgumentError, match="heads must divide 8, got 3"):
            so.multi_head_attention(x, heads=3)
        with pytest.raises(ArgumentError, match="kv_heads must divide 4, got 3"):
            so.multi_head_attention(x, heads=4, kv_heads=3)
        with pytest.raises(UnknownTypeError, match="width= must be given"):
            so.multi_head_attention(so.var("x"), heads=3)

    def test_generated_names(self):
        x = so.var("x", shape=(2, 5, 8))
        with so.name_scope("net"):
            y = so.multi_head_attention(so.multi_head_attention(x, heads=2), heads=2)
        names = [one for one in y.list_arguments() if one.endswith("query_weight")]
        assert names == ["net_attention0_query_weight", "net_attention1_query_weight"]


class TestSharing:
    def test_a_scope_shares_parameters(self):
        x, y = so.var("x", shape=(2, 3)), so.var("y", shape=(2, 3))

        def encode(value, **how):
            with so.name_scope("encoder", **how):
                h = so.relu(so.fully_connected(value, units=4))
                return so.fully_connected(h, units=2, name="top")

        both = encode(x) + encode(y, reuse=True)
        assert both.list_arguments() == [
            "x", "encoder_fully_connected0_weight", "encoder_fully_connected0_bias",
            "encoder_top_weight", "encoder_top_bias", "y",
        ]  # fmt: skip
        arrays = train.initialize(both, jax.random.key(0))
        alone = encode(x)
        parts = [
            alone.eval(**{**{n: v for n, v in arrays.items() if n != "y"}, "x": arrays[name]})
            for name in ("x", "y")
        ]
        assert np.allclose(both.eval(**arrays), parts[0] + parts[1], atol=1e-6)
        loaded = so.load_json(both.tojson())
        assert np.array_equal(loaded.eval(**arrays), both.eval(**arrays))

    def test_scopes_inside_share_as_well(self):
        x, y = so.var("x", shape=(2, 3)), so.var("y", shape=(2, 3))
        results = []
        for value in (x, y):
            with so.name_scope("a", reuse=True), so.name_scope("b"):
                results.append(so.fully_connected(value, units=3))
        names = (results[0] + results[1]).list_arguments()
        assert names == ["x", "a_b_fully_connected0_weight", "a_b_fully_connected0_bias", "y"]

    def test_without_sharing_it_is_an_error(self):
        x, y = so.var("x", shape=(2, 3)), so.var("y", shape=(2, 3))
        layers = []
        for value in (x, y):
            with so.name_scope("encoder"):
                layers.append(so.fully_connected(value, units=4))
        with pytest.raises(NameConflictError, match=r"reuse=True\) shares parameters"):
            (layers[0] + layers[1]).list_arguments()

    def test_other_shapes_are_an_error(self):
        x, y = so.var("x", shape=(2, 3)), so.var("y", shape=(2, 5))
        layers = []
        for value in (x, y):
            with so.name_scope("encoder", reuse=True):
                layers.append(so.fully_connected(value, units=4))
        with pytest.raises(NameConflictError, match="encoder_fully_connected0_weight: two nodes"):
            (layers[0] + layers[1]).list_arguments()

    def test_programs_share_as_well(self):
        program = so.Program()
        x, y = program.data("x", (2, 3)), program.data("y", (2, 3))
        for value in (x, y):
            with so.name_scope("encoder", reuse=True):
                so.fully_connected(value, units=4)
        names = [one.name for one in program.parameters]
        assert names == ["encoder_fully_connected0_weight", "encoder_fully_connected0_bias"]


def test_dropout_of_training_is_left_out():
    def dropped(h):
        return so.dropout(so.dropout(h, rate=0.5), rate=0.5, name="drop")

    logits = model(TOKENS, dropout=0.5, mix=dropped)
    plain = model(TOKENS)
    weights = weights_of(plain)
    tokens = so.Generator(logits, length=LENGTH)(weights, PROMPTS, 6)
    expected = so.Generator(plain, length=LENGTH)(weights, PROMPTS, 6)
    np.testing.assert_array_equal(tokens, expected)
