"""Operators of images at their borders: infinities, ties, what lies outside, and what is empty."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so

INF = float("inf")


def row(*values):
    """A batch of one image with one channel and one spatial axis."""
    return jnp.asarray([[values]], jnp.float32)


# resize ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "corners", "expected"),
    [
        (1, False, [2.5]),
        (1, True, [0.0]),
        (2, False, [0.5, 6.5]),
        (3, True, [0.0, 2.5, 9.0]),
        (4, False, [0.0, 1.0, 4.0, 9.0]),
        (7, True, [0.0, 0.5, 1.0, 2.5, 4.0, 6.5, 9.0]),
        (8, False, [0.0, 0.25, 0.75, 1.75, 3.25, 5.25, 7.75, 9.0]),
    ],
)
def test_linear_resize(size, corners, expected):
    out = so.resize(row(0, 1, 4, 9), size=size, align_corners=corners)
    np.testing.assert_allclose(out[0, 0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("size", "corners", "expected"),
    [
        (1, False, [2]),
        (2, False, [1, 3]),
        (3, True, [0, 2, 3]),
        (8, False, [0, 0, 1, 1, 2, 2, 3, 3]),
        (5, False, [0, 1, 2, 2, 3]),
    ],
)
def test_nearest_takes_the_later_of_two_equally_near(size, corners, expected):
    out = so.resize(row(0, 1, 2, 3), size=size, method="nearest", align_corners=corners)
    assert out[0, 0].tolist() == expected


def test_an_infinity_stays_with_its_neighbors():
    out = so.resize(row(0, INF, 0, 1, 2), size=9, align_corners=True)
    assert out[0, 0].tolist() == [0, INF, INF, INF, 0, 0.5, 1, 1.5, 2]
    out = so.resize_gradient(row(0, INF, 0, 1, 2, 0, 0), shape=(1, 1, 4), align_corners=True)
    assert out[0, 0].tolist() == [INF, INF, 2.5, 0]


def test_resize_of_many_entries_from_one():
    data = jnp.asarray([[[3.0]]])
    out, pull = jax.vjp(lambda x: so.resize(x, size=500), data)
    assert np.all(np.asarray(out) == 3)
    assert float(pull(jnp.ones_like(out))[0][0, 0, 0]) == 500


def test_resize_keeps_a_narrow_dtype():
    for dtype in ("bfloat16", "int8", "bool"):
        out = so.resize(row(0, 1).astype(dtype), size=4, method="nearest")
        assert (out.dtype, out[0, 0].tolist()) == (dtype, [0, 0, 1, 1])


# grid_generator, bilinear_sampler and spatial_transformer ----------------------------------------


def test_affine_grid_runs_to_the_right_and_downwards():
    loc = jnp.asarray([[1.0, 0.5, 0.25, 0.0, 2.0, -0.5]])
    x, y = so.grid_generator(loc, target_shape=(3, 3))[0]
    np.testing.assert_allclose(x[0], [-1.25, -0.25, 0.75])
    np.testing.assert_allclose(x[:, 1], [-0.25, 0.25, 0.75])
    np.testing.assert_allclose(y[:, 0], [-2.5, -0.5, 1.5])


def test_a_grid_without_flow_samples_the_image_itself():
    image = jax.random.normal(jax.random.key(0), (2, 3, 4, 5))
    grid = so.grid_generator(jnp.zeros((2, 2, 4, 5)), transform_type="warp")
    np.testing.assert_allclose(so.bilinear_sampler(image, grid), image, atol=1e-5)
    flow = jnp.zeros((2, 2, 4, 5)).at[:, 0].set(1.0)
    moved = so.bilinear_sampler(image, so.grid_generator(flow, transform_type="warp"))
    np.testing.assert_allclose(moved[..., :-1], image[..., 1:], atol=1e-5)
    np.testing.assert_allclose(moved[..., -1], 0.0, atol=1e-5)


@jax.jit
def sampled_with_slopes(image, grid):
    out, pull = jax.vjp(so.bilinear_sampler, image, grid)
    return out, *pull(jnp.ones_like(out))


def sampled_at(x, y):
    """One sample of a row of ones and its gradient in the image and the place."""
    image, grid = jnp.ones((1, 1, 1, 3)), jnp.asarray([x, y]).reshape(1, 2, 1, 1)
    out, d_image, d_grid = sampled_with_slopes(image, grid)
    return float(out[0, 0, 0, 0]), d_image.ravel().tolist(), d_grid.ravel().tolist()


def test_samples_fall_to_zero_outside():
    assert sampled_at(1.5, 0.0) == (0.5, [0, 0, 0.5], [-1, 0])
    assert sampled_at(-1.5, 0.0) == (0.5, [0.5, 0, 0], [1, 0])


@pytest.mark.parametrize("x", [INF, -INF, 3.0, 1e30, -1e30])
def test_far_samples_are_zero_and_so_are_their_gradients(x):
    assert sampled_at(x, 0.0) == (0.0, [0, 0, 0], [0, 0])


def test_a_sample_at_no_place_is_no_number():
    out, _, _ = sampled_at(float("nan"), 0.0)
    assert np.isnan(out)


def test_a_pixel_outside_does_not_meet_infinities_inside():
    image = jnp.asarray([[[[1.0, INF]]]])
    out = so.bilinear_sampler(image, jnp.asarray([-1.5, 0.0]).reshape(1, 2, 1, 1))
    assert float(out[0, 0, 0, 0]) == 0.75


def test_spatial_transformer_turns_an_image():
    image = jnp.arange(9.0).reshape(1, 1, 3, 3)
    quarter = jnp.asarray([[0.0, -1.0, 0.0, 1.0, 0.0, 0.0]])
    out = so.spatial_transformer(image, quarter, target_shape=(3, 3))
    np.testing.assert_allclose(out[0, 0], np.rot90(image[0, 0]), atol=1e-6)


# roi_pooling and roi_align -----------------------------------------------------------------------


def region(*edges, image=0.0):
    """One region of interest: x1, y1, x2, y2."""
    return jnp.asarray([[image, *edges]])


def pooled(image, roi, size, **how):
    """Bins of one region and the gradient of their sum in the image."""
    data = jnp.asarray(image, jnp.float32)[None, None]
    out, pull = jax.vjp(lambda x: so.roi_pooling(x, roi, pooled_size=size, **how), data)
    return out[0, 0].tolist(), pull(jnp.ones_like(out))[0][0, 0].tolist()


def test_bins_of_a_region_overlap():
    # 3 pixels in 2 bins: floor(1.5 n) up to ceil(1.5 (n + 1)), so that the middle one is in both.
    out, gradient = pooled([[1.0, 5.0, 2.0, 9.0]], region(0, 0, 2, 0), (1, 2))
    assert (out, gradient) == ([[5, 5]], [[0, 2, 0, 0]])


def test_regions_are_rounded_halves_away_from_zero():
    image = [[1.0, 2.0, 3.0, 4.0]]
    assert pooled(image, region(0, 0, 1.5, 0), (1, 1))[0] == [[3]]
    assert pooled(image, region(0, 0, 2.5, 0), (1, 1))[0] == [[4]]
    assert pooled(image, region(0, 0, 1.49, 0), (1, 1))[0] == [[2]]
    assert pooled(image, region(0, 0, 3, 0), (1, 1), spatial_scale=0.5)[0] == [[3]]


def test_bins_outside_are_empty():
    out, gradient = pooled([[-1.0, -2.0]], region(1, 0, 4, 0), (1, 4))
    assert (out, gradient) == ([[-2, 0, 0, 0]], [[0, 1]])


def test_the_first_of_equal_entries_wins():
    assert pooled(np.ones((3, 3)), region(1, 1, 2, 2), (1, 1))[1] == [[0, 0, 0], [0, 1, 0], [0] * 3]
    flat = np.full((2, 2), -INF)
    assert pooled(flat, region(1, 1, 1, 1), (1, 1)) == ([[-INF]], [[0, 0], [0, 1]])


def test_no_number_wins_where_it_is_seen():
    image = [[1.0, float("nan"), 3.0]]
    assert np.isnan(pooled(image, region(0, 0, 2, 0), (1, 1))[0])
    assert pooled(image, region(2, 0, 2, 0), (1, 1))[0] == [[3]]


def test_regions_of_no_image_are_zero():
    data = jnp.ones((2, 1, 3, 3))
    rois = jnp.concatenate([region(0, 0, 2, 2, image=n) for n in (-1.0, 2.0, 1.0)])
    for pool in (so.roi_pooling, so.roi_align):
        assert pool(data, rois, pooled_size=(1, 1)).ravel().tolist() == [0, 0, 1]


def aligned_at(x1, x2, **how):
    """The mean of two samples in a row, and its gradient in the region's edges x1 and x2."""
    data = jnp.asarray([[[[0.0, 1.0, 4.0, 9.0]]]])

    def mean(roi):
        return so.roi_align(data, roi, pooled_size=(1, 1), **how)[0, 0, 0, 0]

    out, gradient = jax.jit(jax.value_and_grad(mean))(region(x1, 0, x2, 0))
    return float(out), gradient[0, 1::2].tolist()


def test_roi_align_by_hand():
    # Samples at 1 + 1/4 of 2 and 1 + 3/4 of 2: slopes 3 and 5.
    out, (low, high) = aligned_at(1.0, 3.0)
    assert out == pytest.approx((2.5 + 6.5) / 2)
    assert (low, high) == pytest.approx(((3 * 0.75 + 5 * 0.25) / 2, (3 * 0.25 + 5 * 0.75) / 2))
    assert aligned_at(1.5, 3.5, aligned=True)[0] == pytest.approx((2.5 + 6.5) / 2)


def test_roi_align_of_a_short_region():
    # At least 1 long, so only the first edge moves the samples.
    out, gradient = aligned_at(1.0, 1.25)
    assert (out, gradient) == (pytest.approx((1.75 + 3.25) / 2), [3.0, 0.0])
    assert aligned_at(1.5, 1.5, aligned=True)[0] == 1.0


def test_roi_align_beyond_the_border():
    assert aligned_at(-1.0, -0.5, sample_ratio=1) == (0.0, [0.0, 0.0])
    assert aligned_at(3.25, 4.25, sample_ratio=1) == (9.0, [0.0, 0.0])
    assert aligned_at(3.75, 4.75, sample_ratio=1) == (0.0, [0.0, 0.0])


def test_each_bin_has_its_own_channels():
    data = jnp.broadcast_to(jnp.arange(8.0)[:, None, None], (8, 3, 3))[None]
    out = so.roi_align(data, region(0, 0, 2, 2), pooled_size=(2, 2), position_sensitive=True)
    assert out[0].tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


# deformable_convolution --------------------------------------------------------------------------

HOW = {"channels": 4, "kernel": (3, 2), "stride": (1, 2), "padding": 1, "groups": 2}


def test_without_offsets_it_is_convolution():
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = ((2, 4, 5, 4), (4, 2, 3, 2), (4,))
    data, weight, bias = map(jax.random.normal, keys, shapes)

    def of_zero_offsets(data, *others):
        offset = jnp.zeros((2, 24, *plain.shape[2:]))
        return so.deformable_convolution(data, offset, *others, deformable_groups=2, **HOW)

    @functools.partial(jax.jit, static_argnums=0)
    def with_slopes(function, *arrays):
        value, pull = jax.vjp(function, *arrays)
        return value, *pull(jnp.cos(value))

    plain, *slopes = with_slopes(functools.partial(so.convolution, **HOW), data, weight, bias)
    moved, *moved_slopes = with_slopes(of_zero_offsets, data, weight, bias)
    np.testing.assert_allclose(moved, plain, atol=1e-5)
    for ours, theirs in zip(moved_slopes, slopes, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def moved_by(dy, dx):
    """What a moved tap sees from the middle of an image, and its slope."""
    image = jnp.asarray([[0.0, 1.0, 3.0], [10.0, 11.0, 13.0], [30.0, 31.0, 33.0]])[None, None]
    one = jnp.ones((1, 1, 1, 1))

    def middle(by):
        offset = jnp.broadcast_to(by[None, :, None, None], (1, 2, 3, 3))
        return so.deformable_convolution(image, offset, one, channels=1, kernel=1, use_bias=False)[
            0, 0, 1, 1
        ]

    out, slope = jax.jit(jax.value_and_grad(middle))(jnp.asarray([dy, dx]))
    return float(out), slope.tolist()


def test_offsets_are_downwards_then_to_the_right():
    assert moved_by(1.0, 0.0)[0] == 31
    assert moved_by(0.0, -1.0)[0] == 10
    assert moved_by(0.5, 0.5) == (22, [20, 2])
    assert moved_by(-0.5, -0.5) == (5.5, [10, 1])


@pytest.mark.parametrize("by", [(INF, 0.0), (0.0, -INF), (9.0, 0.0), (1e30, 1e30)])
def test_taps_far_outside_see_nothing(by):
    assert moved_by(*by) == (0, [0, 0])


# correlation -------------------------------------------------------------------------------------


def test_correlation_finds_a_displacement():
    image = jax.random.normal(jax.random.key(0), (1, 8, 6, 6))
    image /= jnp.linalg.norm(image, axis=1, keepdims=True)  # none is more alike than itself
    moved = jnp.roll(image, (2, -1), (2, 3))  # down and to the left
    how = {"max_displacement": 2, "kernel_size": 1}
    alike = so.correlation(image, moved, **how)
    assert alike.shape == (1, 25, 2, 2)
    assert np.all(np.argmax(alike, 1) == 4 * 5 + 1)
    apart = so.correlation(image, moved, is_multiply=False, **how)
    np.testing.assert_array_equal(apart[:, 21], 0.0)


def test_displacements_are_multiples_of_the_second_stride():
    data = jnp.ones((1, 1, 9, 9))
    shapes = {
        by: so.correlation(data, data, max_displacement=3, stride1=3, stride2=by).shape
        for by in (1, 2, 3, 4)
    }
    assert shapes == {1: (1, 49, 1, 1), 2: (1, 9, 1, 1), 3: (1, 9, 1, 1), 4: (1, 1, 1, 1)}


def test_places_beyond_the_last_stride_count():
    # 5 pixels, one off each end: 3 centers, of which every second one is 2.
    data = jnp.arange(25.0).reshape(1, 1, 5, 5)
    out = so.correlation(data, jnp.ones_like(data), stride1=2)
    assert out[0, 0].tolist() == [[6, 8], [16, 18]]


def test_the_slope_of_equal_maps():
    data = jnp.ones((1, 2, 1, 1))

    def apart(a, b):
        return so.correlation(a, b, is_multiply=False, max_displacement=0).sum()

    first, second = jax.jit(jax.grad(apart, (0, 1)))(data, data)
    assert (first.ravel().tolist(), second.ravel().tolist()) == ([0.5, 0.5], [-0.5, -0.5])


@pytest.mark.parametrize("padding", [0, 1])
def test_max_pooling_of_minus_infinities_has_one_gradient(padding):
    data = jnp.full((1, 1, 4, 4), -jnp.inf)

    def pooled(x):
        return so.max_pooling(x, kernel=2, padding=padding)

    backward, forward = jax.jit(jax.jacrev(pooled))(data), jax.jit(jax.jacfwd(pooled))(data)
    np.testing.assert_array_equal(backward, forward)
    # Each window's first entry that is not padding, along both axes.
    places = [max(0, 2 * i - padding) for i in range(2 + padding)]
    first = np.zeros((len(places), len(places), 4, 4))
    for i, row in enumerate(places):
        for j, column in enumerate(places):
            first[i, j, row, column] = 1.0
    np.testing.assert_array_equal(backward.reshape(first.shape), first)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 4.0])
def test_second_derivatives_of_lp_pooling_beside_zeros(p):
    def pooled(x):
        return so.lp_pooling(x.reshape(1, 1, 2), kernel=2, p_value=p)[0, 0, 0]

    np.testing.assert_array_equal(jax.jit(jax.hessian(pooled))(jnp.zeros(2)), 0.0)
    # sqrt(x^2 + y^2) bends by 1 / y across, the others are flat there, or have no bend (p = 1.5).
    expected = [[0.5 if p == 2 else 0.0, 0.0], [0.0, 0.0]]
    np.testing.assert_allclose(
        jax.jit(jax.hessian(pooled))(jnp.asarray([0.0, 2.0])), expected, atol=1e-6
    )
