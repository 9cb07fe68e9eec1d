"""Layers where they are delicate: zeros, constants, 16 bits, masks that leave nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so


def gradient(operator, x, head=None, **attributes):
    """The gradient with respect to ``x``, by the graph."""
    leaf = so.var("x", shape=x.shape, dtype=str(x.dtype))
    found = so.grad(operator(leaf, **attributes), leaf, head)
    return np.asarray(found.eval(x=x) if "x" in found.list_arguments() else found.eval())


class TestNormalization:
    def test_a_zero_vector_has_a_finite_gradient(self):
        x = np.zeros((1, 2), np.float32)
        np.testing.assert_allclose(gradient(so.l2_normalize, x, eps=1e-4), [[100.0, 100.0]])
        got = gradient(so.rms_norm, x, use_gamma=False, eps=1e-4)
        np.testing.assert_allclose(got, [[100.0, 100.0]])

    @pytest.mark.parametrize("name", ["layer_norm", "instance_norm"])
    def test_a_constant_row_is_zero_and_its_gradient_finite(self, name):
        operator, x = getattr(so, name), np.full((2, 1, 4), 7.0, np.float32)
        plain = {"use_gamma": False, "use_beta": False, "eps": 1e-4}
        np.testing.assert_array_equal(operator(x, **plain), np.zeros((2, 1, 4)))
        head = np.zeros((2, 1, 4), np.float32)
        head[0, 0, 0] = 1.0
        leaf = so.var("x", shape=x.shape)
        found = so.grad(operator(leaf, **plain), leaf, so.var("d", shape=x.shape)).eval(x=x, d=head)
        expected = np.zeros((2, 1, 4))
        expected[0, 0] = [75.0, -25.0, -25.0, -25.0]  # 100 (d - mean(d))
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    @pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
    def test_squares_of_16_bits_do_not_overflow(self, dtype):
        x = jnp.asarray([[-60000.0, 60000.0, -60000.0, 60000.0]], dtype)
        sign = np.sign(np.asarray(x, np.float32))
        one, zero = jnp.ones(4, dtype), jnp.zeros(4, dtype)
        for out, size in [
            (so.layer_norm(x, one, zero), 1.0),
            (so.rms_norm(x, one), 1.0),
            (so.l2_normalize(x), 0.5),
            (so.group_norm(x, one, zero, num_groups=1), 1.0),
        ]:
            assert out.dtype == dtype
            np.testing.assert_allclose(np.asarray(out, np.float32), sign * size, rtol=1e-2)

    def test_groups_at_their_extremes_are_layer_and_instance_norm(self):
        generator = np.random.default_rng(0)
        x = generator.standard_normal((2, 6, 5)).astype(np.float32)
        plain = {"use_gamma": False, "use_beta": False}
        whole = so.layer_norm(x, axis=(1, 2), **plain)
        np.testing.assert_allclose(so.group_norm(x, num_groups=1, **plain), whole, rtol=1e-5)
        each = so.instance_norm(x, **plain)
        np.testing.assert_allclose(so.group_norm(x, num_groups=6, **plain), each, rtol=1e-5)

    def test_a_layer_makes_its_gain_and_bias(self):
        layer = so.group_norm(so.var("data"), num_groups=2, name="n")
        assert layer.list_arguments() == ["data", "n_gamma", "n_beta"]
        assert layer.infer_shape(data=(2, 4, 3))[0] == [(2, 4, 3), (4,), (4,)]
        bare = so.rms_norm(so.var("data"), use_gamma=False, name="r")
        assert bare.list_arguments() == ["data"]

    def test_the_window_of_a_response_stops_at_the_ends(self):
        x = jnp.asarray([[1.0, 0.0, 0.0, 0.0, 2.0]])
        out = so.local_response_norm(x, nsize=3, alpha=3.0, beta=1.0, knorm=1.0)
        np.testing.assert_allclose(out, [[1 / 2, 0.0, 0.0, 0.0, 2 / 5]])


class TestAttention:
    Q, K, V = (np.random.default_rng(i).standard_normal((2, 4, 3, 8)).astype("f") for i in range(3))

    @staticmethod
    def gradients(q, k, v, mask, **attributes):
        """Value and gradients with respect to query, keys and values, by the graph."""
        leaves = [
            so.var(n, shape=a.shape, dtype=str(a.dtype))
            for n, a in zip("qkv", (q, k, v), strict=True)
        ]
        seen = so.var("m", shape=mask.shape, dtype=str(mask.dtype))
        y = so.scaled_dot_product_attention(*leaves, seen, **attributes)
        arrays = {"q": q, "k": k, "v": v, "m": mask}
        return [one.eval(**arrays) for one in [y, *so.grad(y, leaves, so.square(y))]]

    @pytest.mark.parametrize("kind", ["boolean", "infinite"])
    def test_a_query_that_sees_nothing_is_zero_and_so_is_its_gradient(self, kind):
        mask = np.ones((3, 3), np.bool_)
        mask[1] = False
        given = mask if kind == "boolean" else np.where(mask, 0, -np.inf).astype("f")
        found = self.gradients(self.Q, self.K, self.V, given)
        assert all(np.all(np.isfinite(one)) for one in found)
        for one in found[:2]:
            np.testing.assert_array_equal(one[..., 1, :], 0.0)
            assert np.all(np.any(one[..., 0, :] != 0, -1))

    def test_a_query_that_sees_one_key_copies_its_value(self):
        out, d_q, _, d_v = self.gradients(self.Q, self.K, self.V, np.eye(3, dtype=np.bool_))
        np.testing.assert_allclose(out, self.V, rtol=1e-6)
        np.testing.assert_allclose(d_q, 0.0, atol=1e-5)
        np.testing.assert_allclose(d_v, self.V**2, rtol=1e-5)

    def test_scores_that_overflow_exp_do_no_harm(self):
        out = so.scaled_dot_product_attention(1e4 * self.Q, 1e4 * self.K, self.V)
        best = np.argmax(np.einsum("...td,...sd->...ts", self.Q, self.K), -1)
        np.testing.assert_allclose(out, np.take_along_axis(self.V, best[..., None], -2), rtol=1e-6)

    @pytest.mark.parametrize("attributes", [{}, {"causal": True}, {"scale": 0.3}])
    def test_it_is_that_of_jax_with_heads_shared(self, attributes):
        q, k, v = self.Q, self.K[:, :2], self.V[:, :2]
        theirs = dict(attributes)
        theirs["is_causal"] = theirs.pop("causal", False)
        expected = jax.nn.dot_product_attention(
            *(np.swapaxes(a, 1, 2) for a in (q, k, v)), **theirs
        )
        out = so.scaled_dot_product_attention(q, k, v, **attributes)
        np.testing.assert_allclose(out, np.swapaxes(expected, 1, 2), rtol=1e-5, atol=1e-6)


class TestTransposedConvolution:
    @pytest.mark.parametrize(
        ("length", "attributes"),
        [
            (9, {"stride": 2, "padding": 1}),
            (10, {"stride": 2, "padding": 1, "output_padding": 1}),
            (10, {"stride": 2, "padding": "same"}),
            (17, {"stride": 3, "padding": ((2, 0),), "dilation": 2, "output_padding": 2}),
            (15, {"stride": 3, "padding": "same"}),
        ],
    )
    def test_it_leads_back_to_what_convolution_came_from(self, length, attributes):
        generator = np.random.default_rng(0)
        how = {name: one for name, one in attributes.items() if name != "output_padding"}
        x = generator.standard_normal((1, 2, length))
        weight = generator.standard_normal((4, 2, 3))
        y = so.convolution(x, weight, channels=4, kernel=3, use_bias=False, **how)
        assert y.shape == (1, 4, 5)
        back = so.transposed_convolution(
            y, weight, channels=2, kernel=3, use_bias=False, **attributes
        )
        assert back.shape == x.shape
        np.testing.assert_allclose(np.sum(back * x), np.sum(y * y), rtol=1e-5)

    def test_an_empty_batch_stays_empty(self):
        layer = {"channels": 2, "kernel": 2, "stride": 2, "use_bias": False}
        out = so.transposed_convolution(np.ones((0, 3, 4)), np.ones((3, 2, 2)), **layer)
        assert out.shape == (0, 2, 8)

    def test_a_layer_makes_its_weight_and_bias(self):
        layer = so.transposed_convolution(so.var("x"), channels=4, kernel=2, groups=2, name="t")
        assert layer.infer_shape(x=(1, 6, 5, 5))[0] == [(1, 6, 5, 5), (6, 2, 2, 2), (4,)]


def pooled_like_pytorch(x, kernel, stride, padding, reduce):
    """Pooling of a line in ceil mode, place by place; ``reduce`` gets what a window sees."""
    places = -(-(len(x) + 2 * padding - kernel) // stride) + 1
    if (places - 1) * stride >= len(x) + padding:
        places -= 1
    out = []
    for place in range(places):
        low = place * stride - padding
        inside = min(low + kernel, len(x) + padding) - low
        out.append(reduce(x[max(low, 0) : low + kernel], inside))
    return out


class TestPooling:
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("length", range(3, 9))
    @pytest.mark.parametrize(
        ("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (2, 3, 1), (3, 4, 0), (3, 1, 2)]
    )
    def test_ceil_mode_is_that_of_pytorch(self, length, kernel, stride, padding):
        x = np.random.default_rng(length).standard_normal(length).astype("f")
        how = {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": True}
        row = x[None, None]
        for operator, reduce, more in [
            (so.max_pooling, lambda seen, inside: seen.max(), {}),
            (so.average_pooling, lambda seen, inside: seen.sum() / inside, {}),
            (so.average_pooling, lambda seen, inside: seen.mean(), {"count_include_pad": False}),
            (so.lp_pooling, lambda seen, inside: np.sqrt(np.sum(seen**2)), {}),
        ]:
            expected = pooled_like_pytorch(x, kernel, stride, padding, reduce)
            np.testing.assert_allclose(operator(row, **how, **more)[0, 0], expected, rtol=1e-5)

    @pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
    def test_a_window_of_zeros_has_a_zero_gradient(self, p):
        x = np.array([[[0.0, 0.0, 0.0, 2.0]]], np.float32)
        got = gradient(so.lp_pooling, x, kernel=2, p_value=p)
        np.testing.assert_allclose(got, [[[0.0, 0.0, 0.0, 1.0]]], rtol=1e-6)
        native = jax.jit(jax.grad(lambda v: jnp.sum(so.lp_pooling(v, kernel=2, p_value=p))))(x)
        np.testing.assert_allclose(native, got, rtol=1e-6)

    def test_the_first_of_equal_entries_gets_the_gradient(self):
        x = np.zeros((1, 1, 3, 3), np.float32)
        got = gradient(so.adaptive_max_pooling, x, output_size=2)
        np.testing.assert_array_equal(got[0, 0], [[1, 1, 0], [1, 1, 0], [0, 0, 0]])

    def test_not_a_number_is_the_largest(self):
        x = np.array([[[1.0, np.nan, 2.0, 3.0]]], np.float32)
        np.testing.assert_array_equal(so.adaptive_max_pooling(x, output_size=2), [[[np.nan, 3.0]]])

    def test_the_size_of_data_changes_nothing(self):
        x = np.arange(6.0, dtype=np.float32).reshape(1, 2, 3)
        np.testing.assert_array_equal(so.adaptive_average_pooling(x, output_size=3), x)
        np.testing.assert_array_equal(so.adaptive_max_pooling(x, output_size=3), x)

    def test_one_window_is_global_pooling(self):
        x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("f")
        for adaptive, pooling in [
            (so.adaptive_average_pooling, so.average_pooling),
            (so.adaptive_max_pooling, so.max_pooling),
        ]:
            expected = pooling(x, global_pool=True)
            np.testing.assert_allclose(adaptive(x, output_size=1), expected, rtol=1e-6)


def test_nothing_taken_from_nothing_has_the_shape_of_ids():
    ids = jnp.zeros((0, 2, 2), np.int32)
    assert so.take(jnp.zeros((0, 3)), ids).shape == (0, 2, 2, 3)
    assert so.take(jnp.zeros((3, 0)), ids, axis=1).shape == (3, 0, 2, 2)


class TestMaskedSoftmax:
    X = np.array([[1.0, 2.0, np.inf], [3.0, np.nan, -np.inf]], np.float32)
    MASK = np.array([[True, True, False], [False, False, False]])

    def gradient(self, operator, head, *more, **attributes):
        """The gradient with respect to ``x``, by the graph, and by JAX on the rules."""
        leaf, d = so.var("x", shape=self.X.shape), so.var("d", shape=self.X.shape)
        named = {f"m{i}": one for i, one in enumerate(more)}
        leaves = [so.var(n, shape=a.shape, dtype=str(a.dtype)) for n, a in named.items()]
        found = so.grad(operator(leaf, *leaves, **attributes), leaf, d)
        arrays = {"x": self.X, "d": head, **named}
        graph = found.eval(**{name: arrays[name] for name in found.list_arguments()})
        _, pull = jax.vjp(lambda x: operator(x, *more, **attributes), self.X)
        return np.asarray(graph), np.asarray(pull(head)[0])

    def test_what_is_masked_is_zero_whatever_it_was(self):
        share = 1 / (1 + np.e)
        expected = [[share, 1 - share, 0.0], [0.0, 0.0, 0.0]]
        np.testing.assert_allclose(so.masked_softmax(self.X, self.MASK), expected, rtol=1e-6)
        lengths = np.array([2, 0], np.int32)
        np.testing.assert_allclose(so.softmax_with_length(self.X, lengths), expected, rtol=1e-6)
        with np.errstate(divide="ignore"):
            logs = np.log(expected)
        np.testing.assert_allclose(so.masked_log_softmax(self.X, self.MASK), logs, rtol=1e-6)

    def test_nothing_flows_back_from_what_is_masked(self):
        head = np.array([[1.0, 0.0, 5.0], [7.0, 8.0, 9.0]], np.float32)
        share = 1 / (1 + np.e)
        slope = share * (1 - share)
        lengths = np.array([2, 0], np.int32)
        for operator, more in [
            (so.masked_softmax, self.MASK),
            (so.softmax_with_length, lengths),
        ]:
            for got in self.gradient(operator, head, more):
                expected = [[slope, -slope, 0.0], [0.0, 0.0, 0.0]]
                np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)
        for got in self.gradient(so.masked_log_softmax, head, self.MASK):
            expected = [[1 - share, share - 1, 0.0], [0.0, 0.0, 0.0]]
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)

    def test_a_temperature_divides(self):
        x = np.array([0.5, -1.0, 2.0], np.float32)
        for operator in (so.softmax, so.log_softmax, so.softmin):
            np.testing.assert_allclose(operator(x, temperature=0.25), operator(4 * x), rtol=1e-5)
        np.testing.assert_allclose(so.softmin(x), so.softmax(-x), rtol=1e-6)

    def test_a_length_may_be_beyond_the_row_or_below_zero(self):
        x = np.zeros((2, 4), np.float32)
        out = so.softmax_with_length(x, np.array([9, -1], np.int32))
        np.testing.assert_array_equal(out, [[0.25] * 4, [0.0] * 4])


@pytest.mark.parametrize("size", [1e25, 1.0])
def test_l2_normalize_of_complex_vectors_is_that_of_their_parts(size):
    x = size * np.array([[3 - 4j, 1j], [2 + 1j, -1.5]], np.complex64)
    parts = np.concatenate([x.real, x.imag], axis=1)
    of_parts = so.l2_normalize(parts)
    np.testing.assert_allclose(
        so.l2_normalize(x), of_parts[:, :2] + 1j * of_parts[:, 2:], rtol=1e-6
    )
    # JAX's gradient of a real function by a complex number: that by the imaginary part is negative.
    slope = jax.jit(jax.grad(lambda x: so.l2_normalize(x)[:, 0].real.sum()))(jnp.asarray(x))
    by_parts = jax.jit(jax.grad(lambda x: so.l2_normalize(x)[:, 0].sum()))(jnp.asarray(parts))
    np.testing.assert_allclose(slope * size, (by_parts[:, :2] - 1j * by_parts[:, 2:]) * size, 1e-5)


@pytest.mark.parametrize("size", [1e25, 1e19, 1.0])
def test_l2_normalize_of_vectors_of_any_size(size):
    x = jnp.asarray([[3.0 * size, -4.0 * size], [0.0, 1.0]], jnp.float32)
    np.testing.assert_allclose(so.l2_normalize(x), [[0.6, -0.8], [0.0, 1.0]], rtol=1e-6)
    slope = jax.jit(jax.grad(lambda x: so.l2_normalize(x)[0, 0]))(x)
    np.testing.assert_allclose(
        np.asarray(slope, np.float64) * size, [[16 / 125, 12 / 125], [0.0, 0.0]], rtol=1e-5
    )


MASK = np.asarray([[True, True, False]])
MASKED = {
    so.masked_softmax: lambda x, mask: jax.nn.softmax(x, where=mask),
    so.masked_softmin: lambda x, mask: jax.nn.softmax(-x, where=mask),
    so.masked_log_softmax: lambda x, mask: jnp.where(
        mask, jax.nn.log_softmax(x, where=mask), -jnp.inf
    ),
}


class TestWhatIsSelected:
    """Infinities and NaN stay with the entries that read them, as in JAX's selections."""

    ROWS = ([np.nan, 1.0, 2.0], [np.inf, 1.0, 2.0], [1.0, 2.0, np.nan], [1.0, 2.0, np.inf])

    @pytest.mark.parametrize("row", ROWS, ids=str)
    @pytest.mark.parametrize("operator", MASKED, ids=lambda one: one.name)
    def test_masked_entries_are_constant(self, operator, row):
        x, head = jnp.asarray([row], jnp.float32), jnp.asarray([[1.0, 2.0, np.nan]])
        expected, slope = jax.jit(
            lambda x, d: (
                MASKED[operator](x, MASK),
                jax.vjp(lambda x: MASKED[operator](x, MASK), x)[1](d)[0],
            )
        )(x, head)
        np.testing.assert_allclose(operator(x, MASK), expected, rtol=1e-6)
        leaf, d = so.var("x", shape=(1, 3)), so.var("d", shape=(1, 3))
        found = so.grad(operator(leaf, MASK), leaf, d).eval(x=x, d=head)
        np.testing.assert_allclose(found, slope, rtol=1e-5)

    @pytest.mark.parametrize(
        "operator", [so.softmax_with_length, so.softmin_with_length], ids=lambda one: one.name
    )
    def test_what_lies_beyond_the_end_is_constant(self, operator):
        x, d = so.var("x", shape=(1, 3)), so.var("d", shape=(1, 3))
        slope = so.grad(operator(x, jnp.asarray([2])), x, d)
        found = slope.eval(x=[[np.nan, 1.0, 2.0]], d=[[1.0, 2.0, 3.0]])
        np.testing.assert_array_equal(found, [[np.nan, np.nan, 0.0]])
        found = slope.eval(x=[[0.0, 0.0, 2.0]], d=[[1.0, 1.0, np.nan]])
        np.testing.assert_array_equal(found, np.zeros((1, 3)))

    @pytest.mark.parametrize("slope", [np.inf, np.nan])
    def test_a_slope_below_zero_moves_nothing_above(self, slope):
        def theirs(x, slope):
            return jnp.where(x > 0, x, slope * jnp.where(x > 0, 0.0, x))

        x, given = jnp.asarray([2.0, 3.0]), jnp.asarray([slope])
        tangents = (jnp.asarray([1.0, 5.0]), jnp.asarray([slope]))
        function = so.prelu(so.var("x", shape=(2,)), so.var("s", shape=(1,)), axis=0).to_jax()
        found = jax.jvp(lambda x, slope: function(x=x, s=slope), (x, given), tangents)
        np.testing.assert_array_equal(found, jax.jvp(theirs, (x, given), tangents))
