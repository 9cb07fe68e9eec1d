"""Draws follow their distributions, and gradients with respect to parameters are those of paths."""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import special, stats

import symop as so
from registry.errors import AttributeValueError

COUNT = 20_000
DISTRIBUTIONS = [
    (so.random.uniform, (-1.0, 3.0), stats.uniform(-1.0, 4.0)),
    (so.random.normal, (2.0, 0.5), stats.norm(2.0, 0.5)),
    (so.random.truncated_normal, (1.0, 2.0), stats.truncnorm(-2.0, 2.0, 1.0, 2.0)),
    (so.random.exponential, (0.5,), stats.expon(0, 0.5)),
    (so.random.gamma, (0.3, 2.0), stats.gamma(0.3, 0, 2.0)),
    (so.random.gamma, (7.0, 0.5), stats.gamma(7.0, 0, 0.5)),
    (so.random.beta, (0.5, 2.0), stats.beta(0.5, 2.0)),
]


@pytest.mark.parametrize(("draw", "parameters", "law"), DISTRIBUTIONS)
def test_draws_follow_the_law(draw, parameters, law):
    drawn = draw(*parameters, key=jax.random.key(1), shape=(COUNT,))
    assert stats.kstest(np.asarray(drawn, np.float64), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("draw", "parameters", "law"),
    [
        (so.random.bernoulli, (0.3,), stats.bernoulli(0.3)),
        (so.random.poisson, (4.0,), stats.poisson(4.0)),
    ],
)
def test_counts_follow_the_law(draw, parameters, law):
    drawn = np.asarray(draw(*parameters, key=jax.random.key(2), shape=(COUNT,)), np.int64)
    values = np.arange(int(law.ppf(0.99)) + 1)
    seen = np.array([np.mean(drawn == one) for one in values])
    np.testing.assert_allclose(seen, law.pmf(values), atol=4 / np.sqrt(COUNT))


def test_categories_have_their_probabilities():
    logits = jnp.log(jnp.asarray([0.2, 0.5, 0.3]))
    drawn = np.asarray(so.random.categorical(logits, key=jax.random.key(3), shape=(COUNT,)))
    seen = np.bincount(drawn, minlength=3) / COUNT
    np.testing.assert_allclose(seen, [0.2, 0.5, 0.3], atol=4 / np.sqrt(COUNT))


def test_integers_are_equally_probable():
    drawn = np.asarray(so.random.integers(low=-1, high=3, shape=(COUNT,), key=jax.random.key(4)))
    seen = np.bincount(drawn + 1, minlength=4) / COUNT
    np.testing.assert_allclose(seen, 0.25, atol=4 / np.sqrt(COUNT))


class TestGamma:
    """The path of a gamma draw, against the inverse of its distribution function by mpmath."""

    A, Z = 2.5, 1.7

    def inverse(self, a):
        """Where the distribution of parameter ``a`` has as much below as that of ``A`` at ``Z``."""
        level = mpmath.gammainc(self.A, 0, self.Z, regularized=True)
        return mpmath.findroot(lambda z: mpmath.gammainc(a, 0, z, regularized=True) - level, self.Z)

    @pytest.mark.usefixtures("x64")
    @pytest.mark.parametrize("order", [1, 2, 3])
    def test_derivatives_of_the_path(self, order):
        # z(a) solves z' = slope(a, z): its derivatives follow from those of the slope.
        def along(f):
            def moved(a, z):
                slope = so.gamma_draw_slope(a, z)
                return jax.jvp(f, (a, z), (1.0, slope))[1]

            return moved

        derivative = so.gamma_draw_slope
        for _ in range(order - 1):
            derivative = along(derivative)
        with mpmath.workdps(30):
            expected = float(mpmath.diff(self.inverse, self.A, order))
        found = float(derivative(jnp.float64(self.A), jnp.float64(self.Z)))
        assert found == pytest.approx(expected, rel=1e-7)

    @pytest.mark.usefixtures("x64")
    @pytest.mark.parametrize(("a", "x"), [(0.2, 0.01), (3.0, 40.0), (80.0, 75.0), (150.0, 220.0)])
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("n", [0, 1, 2])
    def test_incomplete_gamma_far_out(self, a, x, n):
        with mpmath.workdps(50):
            expected = float(
                mpmath.diff(lambda b: mpmath.gammainc(b, 0, x, regularized=True), a, n)
            )
        found = float(so.incomplete_gamma(jnp.float64(a), jnp.float64(x), n=n))
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-13)

    def test_mean_moves_as_it_should(self):
        # E z = a scale, so the average slopes are scale and a.
        def mean(a, scale):
            drawn = so.random.gamma(a, scale, key=jax.random.key(5), shape=(COUNT,))
            return jnp.mean(drawn)

        slopes = jax.jit(jax.grad(mean, (0, 1)))(jnp.float32(3.0), jnp.float32(0.5))
        np.testing.assert_allclose(slopes, [0.5, 3.0], rtol=0.03)


def test_mean_of_beta_moves_as_it_should():
    def mean(a, b):
        return jnp.mean(so.random.beta(a, b, key=jax.random.key(6), shape=(COUNT,)))

    a, b = 2.0, 3.0
    slopes = jax.jit(jax.grad(mean, (0, 1)))(jnp.float32(a), jnp.float32(b))
    np.testing.assert_allclose(slopes, [b / (a + b) ** 2, -a / (a + b) ** 2], rtol=0.05)


def test_small_parameters_of_beta_stay_in_the_interval():
    drawn = so.random.beta(1e-4, 1e-4, key=jax.random.key(7), shape=(1000,))
    assert np.all((np.asarray(drawn) >= 0) & (np.asarray(drawn) <= 1))
    slope = jax.jit(jax.grad(lambda a: jnp.sum(so.random.beta(a, 1.0, key=jax.random.key(7)))))(
        1e-3
    )
    assert np.isfinite(slope)


def log_slope(a, log_z):
    """How fast ``log z`` of a gamma draw moves with ``a``, by mpmath."""
    with mpmath.workdps(30):
        z = mpmath.exp(log_z)
        moved = mpmath.diff(lambda b: mpmath.gammainc(b, 0, z, regularized=True), a)
        return float(-moved * mpmath.gamma(a) * mpmath.exp(z - a * mpmath.mpf(log_z)))


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("parameters", [(1e-3, 2e-3), (1e-2, 0.5), (3.0, 1e-3)])
def test_gradient_of_beta_for_small_parameters(parameters):
    # log(out / (1 - out)) is the difference of the logarithms of two gamma draws.
    key, shape = jax.random.key(8), (6,)
    logs = [
        np.asarray(jax.random.loggamma(one, jnp.full(shape, a)))
        for one, a in zip(jax.random.split(key), parameters, strict=True)
    ]
    out = so.random.beta(*parameters, key=key, shape=shape)
    spread = np.exp(-np.logaddexp(0, logs[0] - logs[1]) - np.logaddexp(0, logs[1] - logs[0]))
    slopes = [[log_slope(a, one) for one in log] for a, log in zip(parameters, logs, strict=True)]
    expected = [spread * slopes[0], -spread * slopes[1]]
    for i in range(2):
        found = jax.jit(
            lambda *ways: jax.jvp(
                lambda *ab: so.random.beta(*ab, key=key, shape=shape), parameters, ways
            )
        )(*np.eye(2)[i])
        np.testing.assert_array_equal(found[0], out)
        np.testing.assert_allclose(found[1], expected[i], rtol=1e-9, atol=1e-300)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("a", [0.5, 30.0, 1e6])
@pytest.mark.parametrize("place", [-4.0, 0.0, 0.5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.usefixtures("x64")
def test_incomplete_gamma_of_large_arguments(a, place, dtype):
    # P moves by some sqrt(a) eps when its argument is rounded.
    a, x = dtype(a), dtype(max(a + place * np.sqrt(a), a / 50))
    with mpmath.workdps(60):
        step = mpmath.mpf(float(a)) * mpmath.mpf(10) ** -15
        below, here, above = (
            mpmath.gammainc(float(a) + i * step, 0, float(x), regularized=True) for i in (-1, 0, 1)
        )
        truth = [here, (above - below) / (2 * step), (above - 2 * here + below) / step**2]
    width = np.sqrt(float(mpmath.psi(1, float(a))))
    for n, expected in enumerate(truth):
        found = float(so.incomplete_gamma(jnp.asarray(a), jnp.asarray(x), n=n))
        assert abs(found - expected) < 100 * np.finfo(dtype).eps * width**n
    by_a, by_x = jax.jit(jax.grad(so.incomplete_gamma, (0, 1)))(jnp.asarray(a), jnp.asarray(x))
    rtol = 400 * np.finfo(dtype).eps
    np.testing.assert_allclose(by_a, float(truth[1]), rtol=rtol)
    density = stats.gamma(float(a)).pdf(float(x))
    np.testing.assert_allclose(by_x, density, rtol=max(rtol, 1e-9))


@pytest.mark.usefixtures("x64")
def test_incomplete_gamma_is_that_of_scipy():
    a, x = np.meshgrid(10.0 ** np.arange(-3, 7), 10.0 ** np.arange(-3, 7))
    np.testing.assert_allclose(so.incomplete_gamma(a, x), special.gammainc(a, x), atol=1e-14)


def test_incomplete_gamma_at_the_ends():
    by_x = jax.grad(so.incomplete_gamma, 1)
    np.testing.assert_array_equal([by_x(a, 0.0) for a in (0.5, 1.0, 2.0)], [np.inf, 1.0, 0.0])
    assert jax.jit(jax.grad(by_x, 1))(1.0, 0.0) == -1.0  # f = exp(-x)
    assert jax.jit(jax.grad(so.incomplete_gamma))(1.0, 0.0) == 0.0
    assert so.incomplete_gamma(2.0, jnp.inf) == 1.0
    assert np.isnan(so.incomplete_gamma(2.0, -1.0))


def test_derivatives_of_gamma_draws_too_small_for_the_dtype():
    def total(a):
        return jnp.sum(so.random.gamma(a, key=jax.random.key(7), shape=(50,)))

    assert np.isfinite(jax.jit(jax.grad(total))(1e-3))
    assert np.isfinite(jax.jit(jax.grad(jax.grad(total)))(1e-3))


class TestNames:
    def test_module_lists_its_distributions(self):
        assert {"normal", "uniform", "permutation", "seed"} <= set(dir(so.random))
        assert so.random.normal is so.random_normal

    def test_unknown_distribution(self):
        with pytest.raises(AttributeError, match="no distribution of this name, got 'normel'"):
            so.random.normel  # noqa: B018  # the attribute is what is tested

    def test_symbols_of_numbers_alone(self):
        drawn = so.sym.random_normal(0.0, 2.0, shape=(3,))
        assert isinstance(drawn, so.Symbol)
        so.random.seed(1)
        first = drawn.eval()
        so.random.seed(1)
        np.testing.assert_array_equal(first, so.random.normal(0.0, 2.0, shape=(3,)))

    def test_same_seed_same_draws(self):
        so.random.seed(3)
        first = so.random.uniform(shape=(4,))
        assert not np.array_equal(first, so.random.uniform(shape=(4,)))
        so.random.seed(3)
        np.testing.assert_array_equal(first, so.random.uniform(shape=(4,)))


def test_densities_outside_of_the_support():
    x = so.var("x", shape=())
    for name in ("exponential", "gamma", "beta", "poisson"):
        operator = getattr(so, f"{name}_log_density")
        parameters = [1.5] * (len(operator.slots) - 1)
        value = operator(x, *parameters)
        assert value.eval(x=-1.0) == -np.inf
        assert so.grad(value, x).eval(x=-1.0) == 0.0


def test_density_of_a_gamma_at_one_parameter_is_exponential():
    values = jnp.asarray([0.1, 1.0, 5.0])
    np.testing.assert_allclose(
        so.gamma_log_density(values, 1.0, 2.0), so.exponential_log_density(values, 2.0), rtol=1e-5
    )


INF = np.inf
ENDS = [
    ("gamma", lambda x, a, scale: stats.gamma.logpdf(x, a, 0, scale), (0.0, 1.0, 2.0)),
    ("gamma", lambda x, a, scale: stats.gamma.logpdf(x, a, 0, scale), (0.0, 2.0, 1.0)),
    ("gamma", lambda x, a, scale: stats.gamma.logpdf(x, a, 0, scale), (0.0, 0.5, 1.0)),
    ("gamma", lambda x, a, scale: stats.gamma.logpdf(x, a, 0, scale), (INF, 1.0, 1.0)),
    ("beta", stats.beta.logpdf, (0.0, 1.0, 3.0)),
    ("beta", stats.beta.logpdf, (1.0, 3.0, 1.0)),
    ("beta", stats.beta.logpdf, (1.0, 1.0, 1.0)),
    ("beta", stats.beta.logpdf, (0.0, 2.0, 0.5)),
    ("beta", stats.beta.logpdf, (1.0, 1.0, 0.5)),
    ("beta", stats.beta.logpdf, (INF, 2.0, 2.0)),
    ("poisson", stats.poisson.logpmf, (0.0, 0.0)),
    ("poisson", stats.poisson.logpmf, (1.0, 0.0)),
    ("bernoulli", lambda x, p: stats.bernoulli.logpmf(int(x), 1 / (1 + np.exp(-p))), (1.0, INF)),
    ("bernoulli", lambda x, p: stats.bernoulli.logpmf(int(x), 1 / (1 + np.exp(-p))), (0.0, -INF)),
    ("bernoulli", lambda x, p: stats.bernoulli.logpmf(int(x), 1 / (1 + np.exp(-p))), (0.0, INF)),
    ("cauchy", stats.cauchy.logpdf, (1e25, 0.0, 1.0)),
    ("cauchy", stats.cauchy.logpdf, (-INF, 0.0, 1.0)),
    ("student_t", stats.t.logpdf, (1e25, 2.0, 0.0, 1.0)),
]


@functools.cache
def with_slopes(name, count):
    """A log density with its gradients, compiled once for all values."""
    operator = getattr(so, f"{name}_log_density")
    return jax.jit(jax.value_and_grad(operator, tuple(range(count))))


@pytest.mark.parametrize(("name", "law", "values"), ENDS)
def test_densities_at_the_ends_of_the_support(name, law, values):
    found, slopes = with_slopes(name, len(values))(*map(jnp.float32, values))
    np.testing.assert_allclose(found, law(*values), rtol=1e-5, atol=1e-5)
    assert not np.any(np.isnan(slopes))


def test_gradients_of_densities_at_the_ends_of_the_support():
    # An exponential of scale 2; Beta(1, 3) is 3 (1 - x)^2; a Poisson of no events is exp(-rate).
    by_x, by_a, by_scale = jax.jit(jax.grad(so.gamma_log_density, (0, 1, 2)))(0.0, 1.0, 2.0)
    assert (by_x, by_a, by_scale) == (-0.5, -np.inf, -0.5)
    np.testing.assert_allclose(jax.jit(jax.grad(so.beta_log_density))(0.0, 1.0, 3.0), -2.0)
    np.testing.assert_allclose(jax.jit(jax.grad(so.beta_log_density))(1.0, 3.0, 1.0), 2.0)
    assert jax.jit(jax.grad(so.poisson_log_density, 1))(0.0, 0.0) == -1.0
    assert jax.jit(jax.grad(so.bernoulli_log_density, 1))(1.0, jnp.inf) == 0.0
    # Far out the density is proportional to scale / x^2, or to (scale / x)^(df + 1) / scale.
    np.testing.assert_allclose(
        jax.jit(jax.grad(so.cauchy_log_density, (0, 2)))(1e25, 0.0, 2.0), [-2e-25, 0.5], rtol=1e-6
    )
    np.testing.assert_allclose(
        jax.jit(jax.grad(so.student_t_log_density, (0, 3)))(1e25, 2.0, 0.0, 2.0),
        [-3e-25, 1.0],
        rtol=1e-6,
    )
    # A second derivative by the parameter beside the one where a zero would be divided by zero.
    mixed = jax.jit(jax.grad(jax.grad(so.gamma_log_density), 1))(2.0, 1.0, 1.0)
    assert mixed == 0.5
    # At the end itself it is one over zero, or a number that stands for it.
    for density, values in [
        (so.gamma_log_density, (0.0, 1.0, 2.0)),
        (so.beta_log_density, (0.0, 1.0, 3.0)),
    ]:
        assert jax.jit(jax.grad(jax.grad(density), 1))(*values) > 1e30
        assert jax.jit(jax.grad(jax.grad(density, 1)))(*values) > 1e30
        assert np.isfinite(jax.jit(jax.grad(jax.grad(density)))(*values))


def test_dirichlet_at_the_edge_of_the_simplex():
    x = jnp.asarray([0.0, 0.25, 0.75])
    a = jnp.asarray([1.0, 2.0, 3.0])
    # The density of the other two with parameters 2 and 3, whose constant changes.
    rest = stats.beta(2.0, 3.0).logpdf(0.25) + special.gammaln(6.0) - special.gammaln(5.0)
    np.testing.assert_allclose(so.dirichlet_log_density(x, a), rest, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(so.dirichlet_log_density))(x, a), [0.0, 4.0, 8 / 3])
    outside = jnp.asarray([-0.1, 0.35, 0.75])
    assert so.dirichlet_log_density(outside, a) == -np.inf
    np.testing.assert_array_equal(jax.jit(jax.grad(so.dirichlet_log_density))(outside, a), 0.0)


# Densities of large parameters -----------------------------------------------------------------


def _log_gamma_density(x, a, scale):
    z = x / scale
    return (a - 1) * mpmath.log(z) - z - mpmath.loggamma(a) - mpmath.log(scale)


def _log_beta_density(x, a, b):
    powers = (a - 1) * mpmath.log(x) + (b - 1) * mpmath.log(1 - x)
    return powers - mpmath.loggamma(a) - mpmath.loggamma(b) + mpmath.loggamma(a + b)


def _log_poisson_density(x, rate):
    return x * mpmath.log(rate) - rate - mpmath.loggamma(x + 1)


def _log_t_density(x, df, loc, scale):
    z, half = (x - loc) / scale, df / 2
    normal = mpmath.loggamma(half + 0.5) - mpmath.loggamma(half) - mpmath.log(df * mpmath.pi) / 2
    return normal - mpmath.log(scale) - (half + 0.5) * mpmath.log1p(z * z / df)


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("name", "exact", "values"),
    [
        *[("student_t", _log_t_density, (1.0, df, 0.0, 1.0)) for df in (40.0, 1e4, 1e6, 1e15)],
        ("student_t", _log_t_density, (50.0, 1e4, 0.0, 1.0)),
        *[("beta", _log_beta_density, (0.5, a, a)) for a in (40.0, 1e4, 1e5, 1e6)],
        ("beta", _log_beta_density, (0.25, 2500.0, 7600.0)),
        ("beta", _log_beta_density, (3e-6, 2.0, 1e6)),
        ("gamma", _log_gamma_density, (40.0, 41.0, 2.0)),
        ("gamma", _log_gamma_density, (10100.0, 1e4, 1.0)),
        ("gamma", _log_gamma_density, (1e15, 1e15, 1.0)),
        *[("poisson", _log_poisson_density, (x, 1.001 * x)) for x in (40.0, 1e4, 1e6)],
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_densities_of_large_parameters_keep_their_digits(name, exact, values, dtype):
    with mpmath.workdps(60):
        given = [mpmath.mpf(float(dtype(value))) for value in values]
        expected = exact(*given)
        # By the shape alone: the other slopes may vanish.
        step = given[1] * mpmath.mpf(10) ** -25
        slope = mpmath.diff(lambda a: exact(given[0], a, *given[2:]), given[1], h=step)
    found, slopes = with_slopes(name, len(values))(*map(dtype, values))
    epsilon = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(found, float(expected), rtol=16 * epsilon)
    rounded = epsilon if name == "poisson" else 0.0  # rate times that, in the quotient
    np.testing.assert_allclose(slopes[1], float(slope), rtol=256 * epsilon, atol=rounded)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "a", [(20.0, 30.0, 50.0), (1e3, 2e3, 0.5), (1e6, 3e6, 4e6), (1e10, 3e10, 2.0), (0.1, 0.2, 20.0)]
)
def test_dirichlet_of_large_parameters_keeps_its_digits(a):
    x = np.array([0.25, 0.5, 0.25])  # they sum to one without rounding
    if min(a) < 1e-2 * max(a):
        x = np.asarray(a, np.float64) / np.sum(a)
        x = np.round(x * 2.0**40) / 2.0**40
        x[0] = 1.0 - x[1] - x[2]
    with mpmath.workdps(60):
        places, given = [[mpmath.mpf(float(one)) for one in each] for each in (x, a)]
        total = mpmath.fsum(given)
        terms = [
            (b - 1) * mpmath.log(y) - mpmath.loggamma(b) for y, b in zip(places, given, strict=True)
        ]
        expected = mpmath.fsum(terms) + mpmath.loggamma(total)
        slopes = [
            mpmath.log(y) - mpmath.digamma(b) + mpmath.digamma(total)
            for y, b in zip(places, given, strict=True)
        ]
    found, by_a = jax.jit(jax.value_and_grad(so.dirichlet_log_density, 1))(x, np.asarray(a))
    np.testing.assert_allclose(found, float(expected), rtol=1e-11)
    np.testing.assert_allclose(by_a, np.asarray(slopes, np.float64), rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("shape", [(-1,), (2, -3), -1])
@pytest.mark.parametrize(
    ("draw", "parameters"),
    [
        *[(draw, parameters) for draw, parameters, _ in DISTRIBUTIONS[:6]],
        (so.random.bernoulli, (0.5,)),
        (so.random.poisson, (2.0,)),
        (so.random.categorical, (jnp.zeros(3),)),
        (so.random.integers, ()),
        (so.random.normal, ()),
        (so.random.normal, (so.var("loc"),)),
    ],
)
def test_negative_lengths_are_refused_in_the_call(draw, parameters, shape):
    bounds = {"low": 0, "high": 3} if draw is so.random.integers else {}
    with pytest.raises(AttributeValueError, match="attribute 'shape' must not be negative, got"):
        draw(*parameters, shape=shape, **bounds)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz"])
def test_stochastic_rounding_has_the_right_mean(dtype):
    """A draw has at most the variance gap^2 / 4."""
    count = 4000
    for number in (0.3, -1.1, 3.05):
        x = jnp.full((count,), number, jnp.float32)
        found = np.asarray(so.stochastic_round(x, key=jax.random.key(1), dtype=dtype), np.float64)
        low, high = np.unique(found)
        assert low < number < high
        assert found.mean() == pytest.approx(number, abs=5 * (high - low) / 2 / count**0.5)
