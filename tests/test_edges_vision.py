"""Operators of images at their borders: infinities, ties, what lies outside, and what is empty."""

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
