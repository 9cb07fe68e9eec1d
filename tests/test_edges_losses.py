"""Losses at ties, zeros and infinities, without a class or an alignment, and as MXNet has them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import NotLinearError

INF, NAN = float("inf"), float("nan")
SMOOTH_X = [0.206736, 0.337081, -0.897229, -1.9565, 1.75155]
SMOOTH_OUT = [0.15118, 0.281526, 0.841673, 1.90094, 1.696]
SMOOTH_SLOPE = [1.0, 1.0, -1.0, -1.0, 1.0]
SOFTMAX_OUT = [
    [0.395683, 0.604317],
    [0.531829, 0.468171],
    [0.450909, 0.549091],
    [0.320516, 0.679484],
]
SOFTMAX_LABEL = [0.0, 0.0, 1.0, 1.0]
SOFTMAX_BIAS = [-0.0752657, 0.0752657]


def slopes(loss, *values, **attributes):
    """The gradient of the sum of the losses with respect to each value, by the graph."""
    arrays = {f"x{i}": jnp.asarray(value) for i, value in enumerate(values)}
    xs = [so.var(name, one.shape, one.dtype) for name, one in arrays.items()]
    wrt = [x for x in xs if x.dtype.kind in "fV"]
    found = so.grad(so.sum(loss(*xs, **attributes)), wrt)
    return [np.asarray(g.eval(**{n: arrays[n] for n in g.list_arguments()})) for g in found]


class TestClasses:
    logits = np.array([[0.2, -1.0, 0.5], [NAN, INF, 0.0], [-INF, 1.0, 2.0]], np.float32)
    labels = np.array([2, 7, 1])

    @pytest.mark.parametrize("loss", [so.softmax_cross_entropy, so.nll])
    def test_an_ignored_example_has_neither_loss_nor_gradient(self, loss):
        out = loss(self.logits, self.labels, ignore_label=7)
        assert out[1] == 0
        assert np.all(np.isfinite(out))
        for gradient in (
            slopes(loss, self.logits, self.labels, ignore_label=7)[0],
            jax.jit(jax.grad(lambda x: loss(x, self.labels, ignore_label=7).sum()))(self.logits),
        ):
            assert np.all(gradient[1] == 0)
            assert np.all(np.isfinite(gradient))
            assert np.any(gradient[0] != 0)

    def test_an_ignored_example_stays_out_of_second_derivatives(self):
        def loss(x):
            return so.softmax_cross_entropy(x, self.labels, ignore_label=7, smoothing=0.0)

        second = jax.jit(jax.hessian(lambda x: loss(x).sum()))(self.logits)
        assert np.all(np.isfinite(second))
        assert np.all(second[1] == 0)

    def test_an_ignored_label_that_the_dtype_cannot_hold(self):
        labels = np.array([2, 0, 1], np.uint8)
        logits = np.zeros((3, 3), np.float32)
        out = so.softmax_cross_entropy(logits, labels, ignore_label=-100)
        np.testing.assert_allclose(out, np.log(3) * np.ones(3), rtol=1e-6)

    def test_smoothing_and_weights(self):
        p = np.exp([0.2, -1.0, 0.5]) / np.sum(np.exp([0.2, -1.0, 0.5]))
        q = np.array([0.1, 0.1, 0.8])  # of class 2, with 0.3 spread over three classes
        w = np.array([2.0, 1.0, 0.5], np.float32)
        out = so.softmax_cross_entropy(self.logits[0], 2, w, smoothing=0.3)
        np.testing.assert_allclose(out, -np.sum(w * q * np.log(p)), rtol=1e-6)

    def test_a_logit_of_minus_infinity_without_probability(self):
        logits = np.array([-INF, 0.0, 0.0], np.float32)
        p = np.array([0.0, 0.5, 0.5], np.float32)
        np.testing.assert_allclose(so.softmax_cross_entropy(logits, p), np.log(2), rtol=1e-6)
        d_logits, d_p = slopes(so.softmax_cross_entropy, logits, p)
        np.testing.assert_allclose(d_logits, [0, 0, 0], atol=1e-7)
        np.testing.assert_allclose(d_p, [0, np.log(2), np.log(2)], rtol=1e-6)

    def test_a_class_of_weight_zero_and_probability_zero(self):
        logs, w = np.array([-INF, 0.0], np.float32), np.array([0.0, 1.0], np.float32)
        assert so.nll(logs, 0, w) == 0
        assert so.softmax_cross_entropy(logs, 0, w) == 0
        for loss in (so.nll, so.softmax_cross_entropy):
            assert all(np.all(np.isfinite(one)) for one in slopes(loss, logs, 0, w))

    def test_a_margin_that_is_just_kept_is_flat(self):
        assert slopes(so.hinge, 1.0, 1)[0] == 0
        assert slopes(so.hinge, 0.5, 1)[0] == -1
        assert slopes(so.hinge, 0.5, 1, p=2)[0] == -1
        assert slopes(so.hinge, 0.25, 1, p=2)[0] == -1.5


class TestDivergence:
    def test_zero_times_the_logarithm_of_zero(self):
        logs = np.array([-INF, np.log(0.5), np.log(0.5)], np.float32)
        p = np.array([0.0, 1.0, 0.0], np.float32)
        np.testing.assert_allclose(so.kl_divergence(logs, p), np.log(2), rtol=1e-6)
        d_logs, d_p = slopes(so.kl_divergence, logs, p)
        np.testing.assert_allclose(d_logs, [0, -1, 0])
        np.testing.assert_allclose(d_p, [0, 1 + np.log(2), np.log(2)], rtol=1e-6)

    def test_targets_as_logarithms(self):
        logs = np.array([-INF, np.log(0.5), np.log(0.5)], np.float32)
        targets = np.array([-INF, 0.0, -INF], np.float32)
        out = so.kl_divergence(logs, targets, log_target=True)
        np.testing.assert_allclose(out, np.log(2), rtol=1e-6)
        d_logs, d_targets = slopes(so.kl_divergence, logs, targets, log_target=True)
        np.testing.assert_allclose(d_logs, [0, -1, 0])
        np.testing.assert_allclose(d_targets, [0, 1 + np.log(2), 0], rtol=1e-6)

    def test_what_cannot_be_is_infinite(self):
        logs, p = np.array([-INF, 0.0], np.float32), np.array([0.5, 0.5], np.float32)
        assert so.kl_divergence(logs, p) == INF
        np.testing.assert_allclose(slopes(so.kl_divergence, logs, p)[0], [-0.5, -0.5])


class TestSimilarity:
    def test_a_vector_of_length_zero(self):
        x, y = np.zeros(2, np.float32), np.array([3.0, 4.0], np.float32)
        assert so.cosine_similarity(x, y) == 0
        for first, second in ((x, y), (x, x)):
            assert all(np.all(np.isfinite(g)) for g in slopes(so.cosine_similarity, first, second))
        d_x, d_y = slopes(so.cosine_similarity, x, y, eps=0.5)
        np.testing.assert_allclose(d_x, y / 5 / 0.5, rtol=1e-6)
        np.testing.assert_array_equal(d_y, 0)

    def test_half_precision_keeps_the_default_eps(self):
        x = jnp.zeros(2, jnp.float16)
        assert so.cosine_similarity(x, x) == 0

    def test_an_axis_that_broadcasting_makes(self):
        x, y = np.array([1.0], np.float32), np.array([3.0, 4.0], np.float32)
        np.testing.assert_allclose(so.cosine_similarity(x, y), 7 / 5 / np.sqrt(2), rtol=1e-6)


class TestRegression:
    @pytest.mark.parametrize(
        ("loss", "error", "slope"),
        [
            (so.l1_loss, 0.0, 0.0),
            (so.l1_loss, -2.0, -1.0),
            (so.l1_loss, INF, 1.0),
            (so.huber, 1.0, 1.0),
            (so.huber, -INF, -1.0),
            (so.huber, 0.0, 0.0),
            (so.mean_squared_error, 3.0, 6.0),
        ],
    )
    def test_slopes(self, loss, error, slope):
        assert [float(g) for g in slopes(loss, error, 0.0)] == [slope, -slope]
        assert jax.jit(jax.grad(loss))(error, 0.0) == slope

    def test_the_corner_of_l1_is_flat_for_the_bare_kernel_too(self):
        bare = so.l1_loss(so.var("x", shape=()), 1.0).to_jax(rules=False)
        assert jax.jit(jax.grad(lambda x: bare(x=x)))(1.0) == 0

    def test_smooth_l1_is_that_of_mxnet(self):
        # a row of a detector's regression, computed by MXNet 1.9.1
        x = np.array(SMOOTH_X, np.float32)
        np.testing.assert_allclose(so.smooth_l1(x, scalar=3.0), SMOOTH_OUT, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(
            slopes(so.smooth_l1, x, scalar=3.0)[0], SMOOTH_SLOPE, rtol=1e-5, atol=1e-6
        )

    def test_smooth_l1_below_the_knee(self):
        assert float(so.smooth_l1(0.25, scalar=1.5)) == 0.0703125
        assert slopes(so.smooth_l1, 0.25, scalar=1.5)[0] == 0.5625
        assert slopes(so.smooth_l1, 0.25, scalar=2.0)[0] == 1  # where the pieces meet

    def test_smooth_l1_at_infinity(self):
        assert slopes(so.smooth_l1, INF, scalar=2.0)[0] == 1
        assert jax.jit(jax.grad(so.smooth_l1))(-INF) == -1


def occupancy(logits, labels, blank=0):
    """Loss and gradient of one example: all alignments, and how often they name each class."""
    frames, classes = logits.shape
    p = np.exp(logits) / np.sum(np.exp(logits), axis=1, keepdims=True)
    mass, named = 0.0, np.zeros((frames, classes))
    for path in itertools.product(range(classes), repeat=frames):
        if [c for c, _ in itertools.groupby(path) if c != blank] == list(labels):
            one = np.prod(p[np.arange(frames), path])
            mass += one
            named[np.arange(frames), path] += one
    return -np.log(mass), p - named / mass


class TestAlignments:
    logits = np.random.default_rng(0).standard_normal((5, 2, 3)).astype(np.float32)

    @pytest.mark.parametrize("labels", [[1, 2], [1, 1], [2], []], ids=str)
    def test_against_all_alignments(self, labels):
        padded = np.full((2, 3), -1)
        padded[:, : len(labels)] = labels
        loss, gradient = occupancy(self.logits[:, 1].astype(np.float64), labels)
        out = so.ctc_loss(self.logits, padded)
        np.testing.assert_allclose(out[1], loss, rtol=1e-5)
        found = slopes(so.ctc_loss, self.logits, padded)[0]
        np.testing.assert_allclose(found[:, 1], gradient, rtol=1e-4, atol=1e-6)

    def test_too_few_frames(self):
        labels = np.array([[1, 1, 1], [1, 2, 1]])

        def loss(x):
            return so.ctc_loss(x, labels, np.array([4, 3]))

        out = loss(self.logits)
        assert out[0] == INF  # three labels alike need a blank between each
        assert np.isfinite(out[1])
        gradient = jax.jit(jax.grad(lambda x: loss(x).sum()))(self.logits)
        assert np.all(gradient[:, 0] == 0)
        assert np.all(np.isfinite(gradient))
        assert np.any(gradient[:3, 1] != 0)

    def test_what_is_padding_does_not_matter(self):
        logits = self.logits.copy()
        logits[3:, 0] = NAN
        lengths, counts = np.array([3, 5]), np.array([1, 2])
        labels, others = np.array([[1, 99], [2, 1]]), np.array([[1, 0], [2, 1]])

        def loss(x, y):
            return so.ctc_loss(x, y, lengths, counts)

        np.testing.assert_array_equal(loss(logits, labels), loss(self.logits, others))
        gradient = jax.jit(jax.grad(lambda x: loss(x, labels).sum()))(logits)
        assert np.all(gradient[3:, 0] == 0)
        second = jax.jit(jax.grad(lambda x: jax.grad(lambda x: loss(x, labels).sum())(x)[0].sum()))
        assert np.all(np.isfinite(second(logits)))

    def test_a_label_that_is_none(self):
        labels = np.array([[1, 3], [0, 1]])
        assert np.all(np.isnan(so.ctc_loss(self.logits, labels, None, np.array([2, 2]))))
        assert np.isfinite(so.ctc_loss(self.logits, labels)[1])  # ends at the blank: no labels

    def test_no_frames(self):
        out = so.ctc_loss(self.logits, np.array([[1], [-1]]), np.array([0, 0]))
        np.testing.assert_array_equal(out, [INF, 0])

    def test_long_sequences_do_not_underflow(self):
        logits = np.zeros((300, 1, 50), np.float32)
        out = so.ctc_loss(logits, np.tile(np.arange(1, 41), (1, 2)))
        assert 500 < out[0] < 300 * np.log(50)
        assert np.all(np.isfinite(slopes(so.ctc_loss, logits, np.arange(1, 41)[None])[0]))

    def test_an_impossible_class(self):
        logits = self.logits.copy()
        logits[:, :, 2] = -INF
        out = so.ctc_loss(logits, np.array([[1], [2]]))
        assert np.isfinite(out[0])
        assert out[1] == INF
        assert np.all(np.isfinite(slopes(so.ctc_loss, logits, np.array([[1], [2]]))[0]))

    def test_the_gradient_in_half_precision(self):
        logits = jnp.asarray(np.tile(self.logits, (20, 1, 1)), jnp.bfloat16)
        labels = np.array([[1, 2], [2, 1]])
        exact = slopes(so.ctc_loss, logits.astype(jnp.float32), labels)[0]
        np.testing.assert_allclose(
            slopes(so.ctc_loss, logits, labels)[0].astype(np.float32), exact, atol=0.01
        )


def test_taking_nothing_from_nothing_keeps_all_axes():
    assert so.take(jnp.zeros((2, 0)), jnp.zeros((0, 3), int), axis=1).shape == (2, 0, 3)


class TestOutputLayers:
    """Numbers are those of MXNet 1.9.1, or of its definitions worked out by hand."""

    x = np.array([[-0.5, 0.25, 1.0], [2.0, -1.0, 0.0]], np.float32)
    p = np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)

    def gradient(self, layer, data, label, head=7.0, **attributes):
        found = jax.jit(jax.grad(lambda x: head * layer(x, label, **attributes).sum()))(
            jnp.asarray(data)
        )
        graph = slopes(lambda x, y: head * layer(x, y, **attributes), data, label)
        np.testing.assert_allclose(graph[0], found, rtol=1e-6)
        assert all(np.all(one == 0) for one in graph[1:])  # that of a floating label
        return found

    def test_linear_regression(self):
        data = [[-0.57, 2.1034, 0.07, -1.07], [0.8595, 1.6447, -0.5909, 2.064]]
        label = [[0.2553, 0.8352, 0.4554, 0.5085], [0.2936, 0.177, 0.2886, 0.5832]]
        expected = [[-0.2063, 0.3171, -0.0964, -0.3946], [0.1415, 0.3669, -0.2199, 0.3702]]
        found = self.gradient(so.LinearRegressionOutput, np.float32(data), np.float32(label))
        np.testing.assert_allclose(found, expected, atol=1e-4)

    def test_the_other_regressions(self):
        label = np.array([[1.0, 0.0, 1.0], [2.0, 0.0, 0.5]], np.float32)
        found = self.gradient(so.MAERegressionOutput, self.x, label, grad_scale=6.0)
        np.testing.assert_allclose(found, [[-2, 2, 0], [0, -2, -2]])
        found = self.gradient(so.LogisticRegressionOutput, self.x, label, grad_scale=3.0)
        np.testing.assert_allclose(found, 1 / (1 + np.exp(-self.x)) - label, rtol=1e-5, atol=1e-7)

    def test_softmax_of_a_model(self):
        out = np.array(SOFTMAX_OUT, np.float32)
        label = np.array(SOFTMAX_LABEL, np.float32)
        found = self.gradient(so.SoftmaxOutput, np.log(out), label, normalization="batch")
        np.testing.assert_allclose(found.sum(0), SOFTMAX_BIAS, atol=1e-6)

    @pytest.mark.parametrize(
        ("attributes", "divisor"),
        [
            ({}, 1),
            ({"normalization": "batch"}, 2),
            ({"normalization": "valid"}, 2),
            ({"normalization": "valid", "ignore_label": 1}, 1),
            ({"grad_scale": 0.5}, 2),
        ],
    )
    def test_softmax_of_classes(self, attributes, divisor):
        for label in (np.array([1, 0]), np.array([1.7, 0.2], np.float32)):
            found = self.gradient(so.softmax_output, self.x, label, **attributes)
            hot = [[0, 1, 0], [1, 0, 0]]
            np.testing.assert_allclose(found, (self.p - hot) / divisor, atol=1e-6)

    def test_softmax_ignores_a_label(self):
        found = self.gradient(
            so.softmax_output, self.x, np.array([-1, 0]), use_ignore=True, normalization="valid"
        )
        np.testing.assert_allclose(found, [[0, 0, 0], self.p[1] - [1, 0, 0]], atol=1e-6)

    def test_softmax_smooths_labels(self):
        found = self.gradient(so.softmax_output, self.x, np.array([1, 0]), smooth_alpha=0.2)
        wanted = np.array([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1]])
        np.testing.assert_allclose(found, self.p - wanted, atol=1e-6)

    @pytest.mark.parametrize(
        ("normalization", "divisor"), [("null", 2), ("batch", 2), ("valid", 1)]
    )
    def test_softmax_of_many_outputs(self, normalization, divisor):
        data = np.stack([self.x, self.x[:, ::-1]], axis=-1)[:1]
        p = np.exp(data) / np.sum(np.exp(data), axis=1, keepdims=True)
        for label in (np.array([[0, -1]]), np.array([[[0, -1]]])):
            found = self.gradient(
                so.softmax_output,
                data,
                label,
                multi_output=True,
                use_ignore=True,
                normalization=normalization,
            )
            expected = np.stack([p[0, :, 0] - [1, 0, 0], np.zeros(3)], axis=-1)[None] / divisor
            np.testing.assert_allclose(found, expected, atol=1e-6)

    def test_softmax_of_probabilities(self):
        found = self.gradient(so.softmax_output, self.x, self.p[::-1].copy(), grad_scale=2.0)
        np.testing.assert_allclose(found, 2 * (self.p - self.p[::-1]), atol=1e-6)
        label = np.array([1, 0])
        found = self.gradient(so.softmax_output, self.x, label, out_grad=True)
        np.testing.assert_allclose(found, 7 * (self.p - [[0, 1, 0], [1, 0, 0]]), atol=1e-5)

    def test_support_vectors(self):
        x, label = np.array([[1.0, 0.5, -1.0]], np.float32), np.array([1.0], np.float32)
        found = self.gradient(so.SVMOutput, x, label, regularization_coefficient=2.0)
        np.testing.assert_allclose(found, [[8, -2, 0]])
        found = self.gradient(so.SVMOutput, x, label, margin=0.5, use_linear=True)
        np.testing.assert_allclose(found, [[1, 0, 0]])

    def test_make_loss(self):
        data = np.arange(12, dtype=np.float32).reshape(2, 3, 2)

        def slope(**how):
            return float(slopes(lambda x: 7.0 * so.MakeLoss(x, **how), data)[0][0, 0, 0])

        assert slope() == 1
        assert slope(grad_scale=3.0, normalization="batch") == 0.5
        assert slope(normalization="valid", valid_thresh=7.0) == 0.25
        assert slope(normalization="valid", valid_thresh=99.0) == 1
        assert np.all(slopes(so.make_loss, data[0, 0], normalization="batch")[0] == 1)

    def test_the_gradient_is_a_function_like_any_other(self):
        label, head = np.array([1, 0]), np.array([[1.0, 2.0, 3.0], [0.5, 0.0, 0.0]], np.float32)
        backward = jax.grad(lambda x: so.softmax_output(x, label).sum())
        found = jax.jit(jax.grad(lambda x: (head * backward(x)).sum()))(self.x)
        expected = self.p * (head - np.sum(head * self.p, axis=1, keepdims=True))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

    def test_the_gradient_has_a_derivative_by_the_label(self):
        x, y = so.var("x", shape=(2, 3)), so.var("y", shape=(2, 3))
        for layer, divisor in ((so.linear_regression_output, 3), (so.softmax_output, 1)):
            backward = so.grad(so.sum(layer(x, y)), x)
            found = so.grad(so.sum(2.0 * backward), y)
            arrays = {"x": self.x, "y": self.p}
            value = found.eval(**{name: arrays[name] for name in found.list_arguments()})
            np.testing.assert_allclose(value, np.full((2, 3), -2 / divisor), rtol=1e-6)

    def test_forward_mode_is_refused(self):
        with pytest.raises(NotLinearError):
            jax.jvp(so.make_loss, (self.x,), (self.x,))


@pytest.mark.parametrize(
    ("logit", "label", "loss", "slope"),
    [
        (np.inf, 1.0, 0.0, 0.0),
        (-np.inf, 0.0, 0.0, 0.0),
        (np.inf, 0.0, np.inf, 1.0),
        (-np.inf, 1.0, np.inf, -1.0),
        (np.inf, 0.25, np.inf, 0.75),
    ],
)
def test_sigmoid_cross_entropy_of_infinite_logits(logit, label, loss, slope):
    assert so.sigmoid_cross_entropy(logit, label) == loss
    assert jax.jit(jax.grad(so.sigmoid_cross_entropy))(logit, label) == slope


@pytest.mark.parametrize("size", [1e25, 1e-25, 1.0])
def test_cosine_similarity_of_vectors_of_any_size(size):
    x, y = (np.asarray(v, np.float64) for v in ([3.0, -4.0], [1.0, 2.0]))
    out = x @ y / np.sqrt(x @ x * (y @ y))
    by_x = y / np.sqrt(x @ x * (y @ y)) - out * x / (x @ x)
    xs, ys = (jnp.asarray(v * size, jnp.float32) for v in (x, y))

    def similarity(x, y):
        return so.cosine_similarity(x, y, eps=1e-36)

    np.testing.assert_allclose(similarity(xs, ys), out, rtol=1e-6)
    found = np.asarray(jax.jit(jax.grad(similarity))(xs, ys), np.float64) * size
    np.testing.assert_allclose(found, by_x, rtol=1e-5)
