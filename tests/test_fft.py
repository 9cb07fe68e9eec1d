"""Fourier transforms: so.nd.fft against NumPy, gradients against JAX, and laws that they obey."""

import functools
import inspect
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import AttributeValueError, DTypeError, ShapeError

LINES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
OF_REAL = ("rfft", "ihfft", "rfftn")
NORMS = ("backward", "ortho", "forward")


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def drawn(shape, dtype="complex128", seed=0):
    generator = np.random.default_rng(seed)
    real = generator.standard_normal(shape)
    imaginary = generator.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0.0
    return np.asarray(real + 1j * imaginary if np.dtype(dtype).kind == "c" else real).astype(dtype)


def input_of(name, shape, seed=0):
    return drawn(shape, "float64" if name in OF_REAL else "complex128", seed)


def close(mine, other, rtol=1e-12):
    mine, other = np.asarray(mine), np.asarray(other)
    assert mine.shape == other.shape
    np.testing.assert_allclose(mine, other, rtol=0, atol=rtol * max(np.abs(other).max(), 1.0))


# Values ------------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("norm", NORMS)
def test_along_one_axis_it_is_numpy(name, norm):
    for length, n in itertools.product((5, 6), (None, 1, 2, 11)):
        x = input_of(name, (length, 3))
        expected = getattr(np.fft, name)(x, n, -2, norm)
        found = getattr(so.nd.fft, name)(so.nd.array(x), n=n, axis=-2, norm=norm)
        close(found, expected)
        assert found.dtype == expected.dtype


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("norm", NORMS)
def test_over_several_axes_it_is_numpy(name, norm):
    x = input_of(name, (2, 3, 4, 5))
    for s, axes in [
        (None, None),
        (None, (-1, 0)),
        ((7, 1, 3), (3, 0, 1)),
    ]:
        expected = getattr(np.fft, name)(x, s, axes, norm)
        found = getattr(so.nd.fft, name)(so.nd.array(x), s=s, axes=axes, norm=norm)
        close(found, expected)
        assert found.dtype == expected.dtype


def test_sizes_alone_are_those_of_the_last_axes():
    x = drawn((2, 3, 4))
    close(so.fftn(x, s=(5, 2)), np.fft.fftn(x, (5, 2), (1, 2)))


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("fft", "float16", "complex64"),
        ("fft", "float32", "complex64"),
        ("ifftn", "float64", "complex128"),
        ("fftn", "complex64", "complex64"),
        ("rfft", "bfloat16", "complex64"),
        ("ihfft", "float64", "complex128"),
        ("irfft", "complex64", "float32"),
        ("hfft", "complex128", "float64"),
        ("irfftn", "float16", "float32"),
    ],
)
def test_results_have_the_precision_of_the_input_but_at_least_single(name, given, wanted):
    x = jnp.ones((4,), given)
    assert getattr(so, name)(x).dtype == wanted
    assert getattr(so, name)(so.var("x", shape=(4,), dtype=given)).dtype == wanted


def test_missing_bins_are_zero_even_if_all_are_missing():
    for name in ("irfft", "hfft"):  # NumPy leaves these uninitialized
        np.testing.assert_array_equal(getattr(so, name)(jnp.ones((2, 0)), n=3), np.zeros((2, 3)))


@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_inverse_transforms_lead_back(length):
    z, x = drawn((3, length)), drawn((3, length), "float64")
    close(so.ifft(so.fft(z)), z)
    close(so.ifftn(so.fftn(z, norm="ortho"), norm="ortho"), z)
    close(so.irfft(so.rfft(x), n=length), x)
    close(so.irfftn(so.rfftn(x), s=x.shape), x)
    close(so.hfft(so.ihfft(x), n=length), x)
    close(so.ifftshift(so.fftshift(x)), x)


@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_parseval(length):
    x = drawn((3, length), "float64")
    energy = np.sum(x**2)
    close(jnp.sum(jnp.abs(so.fft(x, norm="ortho")) ** 2), energy)
    close(jnp.sum(jnp.abs(so.fftn(x, norm="ortho")) ** 2), energy)
    half = jnp.abs(so.rfft(x, norm="ortho")) ** 2
    close(jnp.sum(so.scale_paired_bins(half, n=length, factor=2.0)), energy)


# The namespace -----------------------------------------------------------------------------------


def test_the_namespace_is_the_operator_too():
    x = drawn((4,))
    close(so.nd.fft(x), np.fft.fft(x))
    assert so.nd.fft == so.nd.fft.fft
    assert so.fft is so.nd.fft.operator
    assert "fft" in dir(so.nd)
    assert list(inspect.signature(so.nd.fft.fft).parameters)[:4] == ["x", "n", "axis", "norm"]


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_are_numpy_s(name):
    for n, d in itertools.product((1, 2, 5, 8), (1.0, 0.1, -3.0)):
        close(getattr(so.nd.fft, name)(n, d=d), getattr(np.fft, name)(n, d))
        close(getattr(so, name)(n, d), getattr(np.fft, name)(n, d))
    made = getattr(so.nd.fft, name)(5, dtype=so.nd.float32, device="cpu:0")
    assert isinstance(made, so.NDArray)
    assert made.dtype == np.float32
    assert getattr(so.nd.fft, name)(5).dtype == so.nd.zeros(1).dtype


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts_are_numpy_s(name):
    x = np.arange(60).reshape(3, 4, 5)
    for axes in (None, 0, (1,), (-1, 0), [0, 1]):
        found = getattr(so.nd.fft, name)(so.nd.array(x), axes=axes)
        np.testing.assert_array_equal(np.asarray(found), getattr(np.fft, name)(x, axes))


def test_misuse():
    with pytest.raises(ShapeError, match=r"fft: a transform must have at least one entry, got 0"):
        so.nd.fft.fft(so.nd.zeros((2, 0)))
    with pytest.raises(AttributeValueError, match=r"fft: axis must be in \[0, 0\), got -1"):
        so.nd.fft.fft(so.nd.array(1.0))
    with pytest.raises(DTypeError, match=r"rfft: the inputs must be real, got complex128"):
        so.nd.fft.rfft(so.nd.zeros(3, dtype="complex128"))
    with pytest.raises(ShapeError, match=r"irfft: a transform must have at least one entry, got 0"):
        so.irfft(so.var("x", shape=(1,), dtype="complex64"))


# Gradients ---------------------------------------------------------------------------------------


def calls():
    """Calls of every transform: norms, and sizes that keep, cut or fill the axes."""
    for name, (norm, n) in itertools.product(LINES, zip(NORMS, (9, None, 4), strict=True)):
        yield name, (3, 6), {"axis": -1, "norm": norm, **({} if n is None else {"n": n})}
    for name, (norm, s) in itertools.product(
        SEVERAL, zip(NORMS, (None, (2, 5), (5, 4)), strict=True)
    ):
        yield name, (3, 4, 2), {"axes": (2, 0), "norm": norm, **({} if s is None else {"s": s})}


def pulled_back(function, x, head):
    """The gradient of ``function`` at ``x`` by JAX, for the cotangent ``head``."""
    return jax.jit(lambda x, head: jax.vjp(function, x)[1](head)[0])(x, head)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "shape", "options"), list(calls()))
def test_gradients_are_those_of_jax(name, shape, options):
    x = jnp.asarray(input_of(name, shape))
    operator, by_jax = (functools.partial(getattr(one, name), **options) for one in (so, jnp.fft))
    wanted = jax.eval_shape(by_jax, x)
    head = jnp.asarray(drawn(wanted.shape, wanted.dtype, seed=1))
    expected = pulled_back(by_jax, x, head)

    v, u = so.var("x", shape=shape, dtype=x.dtype), so.var("u", shape=head.shape, dtype=head.dtype)
    close(so.grad(operator(v), v, u).eval(x=x, u=head), expected)
    close(pulled_back(operator, x, head), expected)

    eager = so.nd.array(x)
    eager.attach_grad()
    with so.autograd.record():
        y = getattr(so.nd.fft, name)(eager, **options)
    y.backward(so.nd.array(head))
    close(eager.grad, expected)


@pytest.mark.parametrize("name", ["rfft", "ihfft", "rfftn"])
@pytest.mark.parametrize("length", [1, 2, 5, 6])
def test_slopes_of_an_energy(name, length):
    """Gradient and curvature of ``sum(weights * |transform|^2)``, by finite differences."""
    x, direction = drawn((2, length), "float64"), drawn((2, length), "float64", seed=1)
    weights = drawn((2, length // 2 + 1), "float64", seed=2)

    def energy(v):
        bins = getattr(so, name)(v)
        return so.sum(weights * (so.square(so.real(bins)) + so.square(so.imag(bins))))

    v = so.var("x", shape=x.shape, dtype="float64")
    along = np.sum(np.asarray(so.grad(energy(v), v).eval(x=x)) * direction)
    step = 1e-4
    slope = (energy(x + step * direction) - energy(x - step * direction)) / (2 * step)
    close(along, slope, 1e-8)
    second = so.jvp(so.grad(energy(v), v), v, so.var("t", shape=x.shape, dtype="float64"))
    curvature = np.sum(np.asarray(second.eval(x=x, t=direction)) * direction)
    close(curvature, 2 * energy(direction), 1e-10)


@pytest.mark.parametrize("length", [2, 5, 6])
def test_slopes_of_bins(length):
    """A real function of complex bins: its slope along a step is ``Re(gradient * step)``."""
    z, direction = drawn((length,)), drawn((length,), seed=1)
    for name in ("irfft", "hfft"):

        def value(v, name=name):
            return so.sum(so.exp(getattr(so, name)(v, norm="ortho")))

        v = so.var("z", shape=z.shape, dtype="complex128")
        gradient = np.asarray(so.grad(value(v), v).eval(z=z))
        step = 1e-5
        slope = (value(z + step * direction) - value(z - step * direction)) / (2 * step)
        close(np.sum(gradient * direction).real, slope, 1e-7)


def test_a_spectral_derivative_and_its_gradient_under_jit():
    """The derivative of a band-limited periodic function, as users compute it."""
    t = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    x = np.sin(3 * t) + np.cos(t)

    def derivative(v):
        frequencies = so.rfftfreq(16, float(2 * np.pi / 16)) * (2 * np.pi)
        return so.irfft(so.rfft(v) * (1j * frequencies), n=16)

    close(jax.jit(derivative)(x), 3 * np.cos(3 * t) - np.sin(t), 1e-11)
    matrix = jax.jit(jax.jacrev(derivative))(jnp.asarray(x))
    close(matrix, jax.jit(jax.jacfwd(derivative))(jnp.asarray(x)))
    close(matrix, -matrix.T)  # a derivative is antisymmetric
