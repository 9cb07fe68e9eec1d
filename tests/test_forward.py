"""so.jvp of functions of eager arrays: values, Hessian-vector products, and what it refuses."""

import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError, DTypeError, GradientError, ShapeError
from symop import autograd, nd

pytestmark = pytest.mark.usefixtures("x64", "way")

POINT, ALONG = np.array([0.3, -1.2, 0.8]), np.array([0.5, 1.0, -0.25])


def loss(x):
    """A scalar whose Hessian has no zeros."""
    return (nd.log_softmax(x) * nd.sin(x)).sum() + x.prod()


def slope(x):
    """The gradient of ``loss``, by a backward pass of its own."""
    x.attach_grad()
    with autograd.record():
        y = loss(x)
    return autograd.grad(y, x)[0]


def difference(function, x, v, step=1e-3):
    """Central differences of fourth order of ``function`` along ``v``."""
    ends = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
    return sum(w * np.asarray(function(nd.array(x + k * step * v))) for k, w in ends) / step


class TestFunctions:
    def test_value_and_tangent(self):
        value, moved = so.jvp(lambda x: nd.sin(x) * x, nd.array(POINT), nd.array(ALONG))
        np.testing.assert_allclose(value, np.sin(POINT) * POINT, rtol=1e-12)
        expected = (np.cos(POINT) * POINT + np.sin(POINT)) * ALONG
        np.testing.assert_allclose(moved, expected, rtol=1e-12)

    @pytest.mark.parametrize("kind", [np.asarray, jnp.asarray, nd.array])
    def test_every_kind_of_array(self, kind):
        value, moved = so.jvp(so.exp, kind(POINT), kind(ALONG))
        assert isinstance(value, so.NDArray)
        assert isinstance(moved, so.NDArray)
        np.testing.assert_allclose(moved, np.exp(POINT) * ALONG, rtol=1e-12)

    def test_several_arguments_and_results(self):
        value, moved = so.jvp(
            lambda x, y: {"product": x * y, "pair": (x, y * y)}, [nd.array(POINT), 2.0], [ALONG, 1]
        )
        np.testing.assert_allclose(value["product"], POINT * 2)
        np.testing.assert_allclose(moved["product"], ALONG * 2 + POINT)
        np.testing.assert_allclose(moved["pair"][0], ALONG)
        assert moved["pair"][1].item() == 4.0

    def test_what_does_not_depend_moves_by_zero(self):
        _, moved = so.jvp(lambda x: nd.array([1.0, 2.0]), nd.array(1.0), nd.array(1.0))
        assert moved.tolist() == [0.0, 0.0]

    def test_no_tape_is_kept(self):
        x = nd.array(POINT)
        seen = []

        def function(x):
            seen.append(autograd.is_recording())
            return nd.sin(x)

        with autograd.record():
            value, moved = so.jvp(function, x, nd.array(ALONG))
        assert seen == [False]
        assert not value.is_recorded
        assert not moved.is_recorded

    def test_a_recorded_array_is_refused(self):
        x = nd.array(POINT)
        x.attach_grad()
        with autograd.record(), pytest.raises(GradientError, match="must not be recorded"):
            so.jvp(nd.sin, x, nd.array(ALONG))
        _, moved = so.jvp(nd.sin, x, nd.array(ALONG))
        assert not moved.is_recorded

    def test_in_itself(self):
        def tangent(x):
            return so.jvp(lambda x: x * x * x, x, nd.array([1.0, 1.0, 1.0]))[1]

        _, moved = so.jvp(tangent, nd.array(POINT), nd.array(ALONG))
        np.testing.assert_allclose(moved, 6 * POINT * ALONG, rtol=1e-12)


class TestHessianVectorProducts:
    def test_against_differences(self):
        gradient, product = so.jvp(slope, nd.array(POINT), nd.array(ALONG))
        np.testing.assert_allclose(gradient, [difference(loss, POINT, e) for e in np.eye(3)])
        np.testing.assert_allclose(product, difference(slope, POINT, ALONG), rtol=1e-8)

    def test_forward_over_reverse_is_reverse_over_reverse(self):
        x = nd.array(POINT)
        x.attach_grad()
        with autograd.record():
            (gradient,) = autograd.grad(loss(x), x, create_graph=True)
        gradient.backward(nd.array(ALONG))
        _, product = so.jvp(slope, nd.array(POINT), nd.array(ALONG))
        np.testing.assert_allclose(product, x.grad, rtol=1e-10)

    def test_of_a_graph(self):
        x, v = so.var("x", (3,), "float64"), so.var("v", (3,), "float64")
        y = so.sum(so.log_softmax(x) * so.sin(x)) + so.prod(x)
        symbol = so.jvp(so.grad(y, x), x, v)
        _, product = so.jvp(slope, nd.array(POINT), nd.array(ALONG))
        np.testing.assert_allclose(product, symbol.eval(x=POINT, v=ALONG), rtol=1e-10)

    def test_third_order(self):
        def curvature(x):
            return so.jvp(slope, x, nd.array(ALONG))[1]

        _, third = so.jvp(curvature, nd.array(POINT), nd.array(ALONG))
        np.testing.assert_allclose(third, difference(curvature, POINT, ALONG), rtol=1e-7)


@pytest.mark.parametrize(
    ("xs", "tangents", "error", "message"),
    [
        ([1.0, 2.0], [1.0], ArgumentError, r"one for each x \(2\), got 1"),
        (POINT, ALONG[:2], ShapeError, r"the shape of x 0, \(3,\), got \(2,\)"),
        (POINT, ALONG.astype("float32"), DTypeError, "of x 0, float64, got float32"),
        (np.arange(3), np.arange(3), DTypeError, "x 0 must be floating to move, got int"),
        (so.var("x"), 1.0, ArgumentError, "x 0 of a function must be an array, got a Symbol"),
        ("word", 1.0, ArgumentError, "x 0 of a function must be an array, got str"),
        (1.0, None, ArgumentError, "tangent 0 of a function must be an array, got NoneType"),
    ],
)
def test_refuses(xs, tangents, error, message):
    with pytest.raises(error, match=message):
        so.jvp(lambda *given: given[0], xs, tangents)


def test_refuses_what_is_computed():
    x = nd.array(POINT)
    with pytest.raises(ArgumentError, match="got an eager array, which is computed already"):
        so.jvp(x * x, x, x)
