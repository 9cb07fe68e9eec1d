"""Where the field disagrees: ties, bounds and numbers of decimals, against written-out truth."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from symop.testing.trial import compiled

INF, NAN = math.inf, math.nan


def gradients(operator, *values, head=None, **attributes):
    """The gradients of the output, weighed with ``head``, by the graph, by JAX and by JAX bare."""
    arrays = [np.asarray(value, np.float32) for value in values]
    xs = [so.var(f"x{i}", shape=one.shape) for i, one in enumerate(arrays)]
    out = operator(*xs, **attributes)
    weights = np.float32(1.0) if head is None else np.asarray(head, np.float32)
    feed = {f"x{i}": one for i, one in enumerate(arrays)}
    by_graph = so.grad(so.sum(out * weights), xs)
    values_of = [one.eval(**{n: feed[n] for n in one.list_arguments()}) for one in by_graph]
    places = tuple(range(len(arrays)))

    def by_jax(function):
        def weighed(*given):
            return jnp.sum(function(*given, **attributes) * weights)

        return jax.jit(jax.grad(weighed, places))(*arrays)

    kernel = out.to_jax(rules=False)
    bare = jax.grad(lambda *g: jnp.sum(kernel(**dict(zip(feed, g, strict=True))) * weights), places)
    return [values_of, by_jax(operator), bare(*arrays)]


def check(found, *expected):
    for one_way in found:
        for mine, truth in zip(one_way, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(truth, np.float32))


SHARES = {"split": 0.5, "first": 1.0, "last": 0.0}
"""What ``x`` has of the gradient where it equals ``y``."""


class TestTiesOfTwo:
    X, Y = (1.0, 2.0, 3.0, INF, -INF), (1.0, 5.0, -3.0, INF, -INF)

    @pytest.mark.parametrize("ties", SHARES)
    @pytest.mark.parametrize("operator", [so.maximum, so.minimum])
    @pytest.mark.sampled(3)
    def test_who_has_the_gradient(self, operator, ties):
        share = SHARES[ties]
        won = [0.0, 1.0] if operator is so.maximum else [1.0, 0.0]
        of_x = [share, *won, share, share]
        check(
            gradients(operator, self.X, self.Y, ties=ties),
            of_x,
            [1 - share, *won[::-1], 1 - share, 1 - share],
        )

    @pytest.mark.parametrize("ties", SHARES)
    def test_forward_mode_is_the_same(self, ties):
        x = jnp.asarray([1.0, 2.0])
        _, moved = jax.jvp(
            lambda a, b: so.maximum(a, b, ties=ties), (x, x), (2 * jnp.ones(2), 4 * jnp.ones(2))
        )
        share = SHARES[ties]
        np.testing.assert_array_equal(moved, np.full(2, 2 * share + 4 * (1 - share)))

    @pytest.mark.parametrize("ties", SHARES)
    def test_second_derivatives_are_those_of_what_was_chosen(self, ties):
        def composed(x):
            return so.maximum(x**3, x**2, ties=ties)

        share = SHARES[ties]
        at_the_tie = jax.jit(jax.grad(jax.grad(composed)))(1.0)
        assert float(at_the_tie) == share * 6.0 + (1 - share) * 2.0

    @pytest.mark.parametrize("ties", SHARES)
    def test_values_are_those_of_numpy(self, ties):
        grid = np.float32([*itertools.product([1.0, -2.0, INF, -INF, NAN], repeat=2)]).T
        np.testing.assert_array_equal(so.maximum(*grid, ties=ties), np.maximum(*grid))
        np.testing.assert_array_equal(so.minimum(*grid, ties=ties), np.minimum(*grid))

    @pytest.mark.parametrize("ties", SHARES)
    def test_nothing_flows_beside_what_is_not_a_number(self, ties):
        zeros = [0.0, 0.0]
        check(gradients(so.maximum, [NAN, 1.0], [1.0, NAN], ties=ties), zeros, zeros)

    @pytest.mark.parametrize("ties", ["first", "last"])
    def test_the_order_of_the_inputs_is_kept(self, ties):
        x, y = so.var("x", shape=()), so.var("y", shape=())
        both = so.maximum(x, y, ties=ties), so.maximum(y, x, ties=ties)
        slopes = [float(so.grad(one, x).eval(x=1.0, y=1.0)) for one in both]
        assert slopes == ([1.0, 0.0] if ties == "first" else [0.0, 1.0])


OVER_ALL = {
    "split": np.divide([[1, 0, 1], [0, 1, 0]], np.float32(3)),
    "all": [[1, 0, 1], [0, 1, 0]],
    "first": [[1, 0, 0], [0, 0, 0]],
}
OVER_ROWS = {
    "split": [[0.5, 0, 0.5], [0, 1, 0]],
    "all": [[1, 0, 1], [0, 1, 0]],
    "first": [[1, 0, 0], [0, 1, 0]],
}


class TestTiesOfMany:
    X = ((3.0, 1.0, 3.0), (2.0, 3.0, 0.0))

    @pytest.mark.parametrize("ties", OVER_ALL)
    @pytest.mark.sampled(3)
    def test_who_has_the_gradient(self, ties):
        check(gradients(so.max, self.X, ties=ties), OVER_ALL[ties])
        rows = np.asarray(OVER_ROWS[ties])
        check(gradients(so.max, self.X, axis=1, head=[2, 4], ties=ties), rows * [[2], [4]])
        negated = np.negative(self.X)
        check(gradients(so.min, negated, axis=1, ties=ties), rows)
        check(gradients(so.min, negated, axis=1, keepdims=True, ties=ties), rows)

    def test_the_first_is_that_in_row_major_order_of_the_reduced_axes(self):
        x = np.zeros((2, 2, 2), np.float32)
        found = gradients(so.max, x, axis=(0, 2), ties="first")
        check(found, [[[1, 0], [1, 0]], [[0, 0], [0, 0]]])

    @pytest.mark.parametrize("ties", OVER_ALL)
    def test_forward_mode_is_the_same(self, ties):
        x, moves = np.float32(self.X), np.float32([[1, 2, 4], [8, 16, 32]])
        _, moved = jax.jvp(lambda a: so.max(a, axis=1, ties=ties), (x,), (moves,))
        np.testing.assert_array_equal(moved, np.sum(moves * OVER_ROWS[ties], axis=1))

    @pytest.mark.parametrize("ties", OVER_ALL)
    def test_second_derivatives_are_those_of_what_was_chosen(self, ties):
        def composed(x):
            return so.max(so.stack(x**3, x**2), ties=ties)

        found = float(jax.jit(jax.grad(jax.grad(composed)))(1.0))
        # Shares are constants: those of both, or of the first alone.
        assert found == {"split": 0.5 * 6 + 0.5 * 2, "all": 6.0 + 2.0, "first": 6.0}[ties]

    @pytest.mark.parametrize("ties", ["all", "first"])
    def test_infinities_tie_as_numbers_do(self, ties):
        expected = [0, 1, 1] if ties == "all" else [0, 1, 0]
        check(gradients(so.max, [1.0, INF, INF], ties=ties), expected)

    def test_what_is_not_a_number_is_the_extremum(self):
        x = [1.0, NAN, NAN]
        check(gradients(so.max, x, ties="all"), [0, 1, 1])
        check(gradients(so.min, x, ties="first"), [0, 1, 0])
        assert np.isnan(so.max(np.float32(x), ties="first"))


class TestClip:
    @pytest.mark.parametrize(("ties", "share"), [("first", 1.0), ("split", 0.5), ("last", 0.0)])
    @pytest.mark.sampled(3)
    def test_who_has_the_gradient_at_a_bound(self, ties, share):
        x = [-2.0, -1.0, 0.0, 1.0, 2.0]
        inside = [0.0, share, 1.0, share, 0.0]
        check(gradients(so.clip, x, low=-1.0, high=1.0, ties=ties), inside)
        low, high = np.full(5, -1.0), np.full(5, 1.0)
        of_low, of_high = [1, 1 - share, 0, 0, 0], [0, 0, 0, 1 - share, 1]
        check(gradients(so.clip, x, low, high, ties=ties), inside, of_low, of_high)

    def test_bounds_are_those_of_the_array_api(self):
        x, low, high = np.float32([[-2, 0, 2]]), np.float32([[-1], [1]]), np.float32(1.5)
        np.testing.assert_array_equal(so.clip(x, low, high), np.clip(x, low, high))
        np.testing.assert_array_equal(so.clip(x, low), np.clip(x, low, None))
        np.testing.assert_array_equal(so.clip(x, max=high), np.clip(x, None, high))
        np.testing.assert_array_equal(so.clip(x, 0, 1), np.clip(x, 0, 1))
        np.testing.assert_array_equal(so.clip(x), x)

    def test_the_upper_bound_wins_over_a_lower_one_that_exceeds_it(self):
        x, low, high = [0.0, 2.5, 9.0], [3.0, 3.0, 3.0], [2.0, 2.0, 2.0]
        np.testing.assert_array_equal(so.clip(*np.float32([x, low, high])), high)
        check(gradients(so.clip, x, low, high), [0, 0, 0], [0, 0, 0], [1, 1, 1])

    def test_a_broadcast_bound_sums_what_it_gets(self):
        x = [[-5.0, 5.0], [-6.0, 0.0]]
        check(gradients(so.clip, x, -1.0, 1.0), [[0, 0], [0, 1]], 2.0, 1.0)

    def test_what_is_not_a_number_stays_and_a_bound_that_is_none_makes_it(self):
        x = np.float32([NAN, 1.0])
        np.testing.assert_array_equal(so.clip(x, low=0.0, high=0.5), [NAN, 0.5])
        np.testing.assert_array_equal(so.clip(np.ones(2, np.float32), x), [NAN, 1.0])

    def test_number_bounds_keep_the_dtype_and_array_bounds_promote(self):
        whole = np.arange(4, dtype=np.int32)
        assert so.clip(whole, low=0.5, high=2.5).dtype == np.int32
        np.testing.assert_array_equal(so.clip(whole, low=0.5, high=2.5), [1, 1, 2, 2])
        np.testing.assert_array_equal(so.clip(whole, 0.5, 2.5), [0.5, 1, 2, 2.5])

    def test_a_symbol_without_bounds_asks_for_none(self):
        assert so.clip(so.var("x"), low=0.0).list_arguments() == ["x"]


class TestRound:
    @pytest.mark.parametrize("decimals", [-3, -1, 0, 1, 2])
    def test_decimals_are_those_of_numpy(self, decimals):
        x = np.float32([0.05, 0.15, 0.25, 1.005, -2.675, 15.0, -25.0, 499.99, 500.0, INF, NAN])
        expected = np.round(x, decimals)
        np.testing.assert_allclose(so.round(x, decimals=decimals), expected, rtol=1e-6)
        whole = np.int32([0, 5, 15, 25, -5, -15, -25, 449, 450, 500, 1500, -500])
        np.testing.assert_array_equal(so.round(whole, decimals=decimals), np.round(whole, decimals))

    def test_nothing_overflows(self):
        x = np.float32([3e38, -1.5])
        np.testing.assert_array_equal(so.round(x, decimals=3), x)
        np.testing.assert_array_equal(so.round(np.int8([100, -100]), decimals=-3), [0, 0])
        half = jnp.asarray([60000.0], jnp.float16)
        np.testing.assert_array_equal(so.round(half, decimals=2), half)


def slope_and_gradient(scalar, x, seed=0):
    """A real function's slope along a random direction, by differences and by its gradient.

    ``x`` may be complex: a gradient ``g`` says that the function changes by ``Re(sum(g dx))``.
    """
    with jax.enable_x64(True):
        generator = np.random.default_rng(seed)
        way = generator.standard_normal(x.shape).astype(x.dtype)
        if x.dtype.kind == "c":
            way = way + 1j * generator.standard_normal(x.shape)
        variable = so.var("x", shape=x.shape, dtype=x.dtype)
        symbol = scalar(variable)
        step = 1e-5
        ahead, behind = (float(symbol.eval(x=x + one * step * way)) for one in (1, -1))
        found = np.asarray(so.grad(symbol, variable).eval(x=x))
        eager = np.asarray(compiled(jax.grad(scalar), jnp.asarray(x))(jnp.asarray(x)))
        np.testing.assert_allclose(found, eager, rtol=1e-9, atol=1e-9)
        return (ahead - behind) / (2 * step), float(np.sum(found * way).real)


def complex_matrix(*shape, seed=3):
    generator = np.random.default_rng(seed)
    return generator.standard_normal(shape) + 1j * generator.standard_normal(shape)


def weighed(x, seed=5):
    """A real function of all entries of ``x``."""
    generator = np.random.default_rng(seed)
    total = so.sum(so.real(x) * generator.standard_normal(x.shape))
    return total + so.sum(so.imag(x) * generator.standard_normal(x.shape))


def turned(x):
    """The conjugate transpose."""
    return so.conj(so.swapaxes(x, axis1=-1, axis2=-2))


def projector(basis):
    """What does not depend on the choice of the orthonormal columns ``basis``."""
    return weighed(basis @ turned(basis))


def hermitian_of(x):
    return x @ turned(x) + 2.0 * np.eye(x.shape[-2])


DECOMPOSED = {
    "cholesky": lambda x: weighed(so.cholesky(hermitian_of(x))),
    "upper cholesky": lambda x: weighed(so.cholesky(hermitian_of(x), upper=True)),
    "q": lambda x: weighed(so.qr(x)[0]),
    "r": lambda x: weighed(so.qr(x)[1]),
    "lq": lambda x: weighed(so.lq(x)[0]) + weighed(so.lq(x)[1], seed=6),
    "eigenvalues": lambda x: weighed(so.eigvalsh(hermitian_of(x))),
    "last eigenvector": lambda x: projector(so.eigh(hermitian_of(x))[1][:, x.shape[-2] - 1 :]),
    "singular values": lambda x: weighed(so.svdvals(x)),
    "left singular vectors": lambda x: projector(so.svd(x)[0][:, :1]),
    "right singular vectors": lambda x: projector(turned(so.svd(x)[2])[:, 1:2]),
    "polar factor": lambda x: weighed(so.svd(x)[0] @ so.svd(x)[2]),
    "pinv": lambda x: weighed(so.pinv(x)),
    "complete q": lambda x: projector(so.qr(x, mode="complete")[0][:, 2:]),
    "complete r": lambda x: weighed(so.qr(x, mode="complete")[1]),
    "full u": lambda x: projector(so.svd(x, full_matrices=True)[0][:, 2:]),
    "full v": lambda x: projector(turned(so.svd(x, full_matrices=True)[2])[:, 2:]),
    "potri": lambda x: weighed(so.potri(so.cholesky(hermitian_of(x)))),
}


class TestMatrices:
    @pytest.mark.parametrize("name", DECOMPOSED)
    @pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
    @pytest.mark.parametrize("part", ["complex", "real"])
    @pytest.mark.sampled(12)
    def test_gradient_is_the_slope_of_what_depends_on_no_choice(self, name, shape, part):
        x = complex_matrix(*shape)
        slope, found = slope_and_gradient(DECOMPOSED[name], x if part == "complex" else x.real)
        np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-7)

    @pytest.mark.parametrize("dtype", [np.float32, np.complex64])
    @pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 0), (0, 3), (2, 3, 1)])
    @pytest.mark.sampled(5)
    def test_complete_bases_are_unitary(self, shape, dtype):
        x = complex_matrix(*shape)
        x = (x if dtype is np.complex64 else x.real).astype(dtype)
        m, n = shape[-2:]
        q, r = so.qr(x, mode="complete")
        u, s, vh = so.svd(x, full_matrices=True)
        for basis, size in ((q, m), (u, m), (vh, n)):
            assert basis.shape == (*shape[:-2], size, size)
            unit = basis @ jnp.conj(jnp.swapaxes(basis, -1, -2))
            np.testing.assert_allclose(unit, np.broadcast_to(np.eye(size), unit.shape), atol=1e-5)
        np.testing.assert_allclose(q @ r, x, atol=1e-5)
        k = min(m, n)
        again = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
        np.testing.assert_allclose(again, x, atol=1e-5)

    def test_factors_are_conjugated(self):
        a = hermitian_of(complex_matrix(3, 3))
        a = np.asarray(a, np.complex64)
        lower, upper = so.cholesky(a), so.cholesky(a, upper=True)
        np.testing.assert_allclose(lower @ lower.conj().T, a, rtol=1e-4)
        np.testing.assert_allclose(upper.conj().T @ upper, a, rtol=1e-4)
        np.testing.assert_allclose(so.potri(lower) @ a, np.eye(3), atol=1e-4)
        values, vectors = so.eigh(a)
        assert values.dtype == np.float32
        np.testing.assert_allclose(a @ vectors, vectors * values, rtol=1e-3, atol=1e-4)

    def test_only_the_hermitian_part_counts(self):
        a = complex_matrix(3, 3).astype(np.complex64)
        part = (a + a.conj().T) / 2
        np.testing.assert_allclose(so.eigvalsh(a), np.linalg.eigvalsh(part), rtol=1e-4, atol=1e-5)


class TestComplexSigns:
    def test_the_sign_turns_with_its_number(self):
        x = np.asarray([3 - 4j, -2j, 1 + 0.5j])
        slope, found = slope_and_gradient(lambda z: weighed(so.sign(z)), x)
        np.testing.assert_allclose(found, slope, rtol=1e-7)

    def test_zero_has_no_sign_and_no_gradient(self):
        x = np.asarray([0j, 2j], np.complex64)
        np.testing.assert_array_equal(so.sign(x), [0, 1j])
        np.testing.assert_array_equal(
            jax.jit(jax.grad(lambda z: so.sum(so.real(so.sign(z)))))(x)[0], 0
        )

    def test_real_signs_still_have_the_gradient_zero(self):
        x = np.float32([-2.0, 0.0, 3.0])
        check(gradients(so.sign, x), np.zeros(3))
        moved = jax.jvp(so.sign, (x,), (x,))[1]
        np.testing.assert_array_equal(moved, np.zeros(3))

    def test_both_parts_are_rounded(self):
        x = np.asarray([1.26 - 2.55j, -0.5 + 1.5j], np.complex64)
        np.testing.assert_allclose(so.round(x, decimals=1), np.round(x, 1), rtol=1e-6)
        np.testing.assert_array_equal(so.round(x), np.round(x))


class TestNumbersForTuples:
    def test_one_number_stands_for_a_tuple_of_it(self):
        x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(so.tile(x, repetitions=2), np.tile(x, 2))
        np.testing.assert_array_equal(so.reshape(x, shape=6), np.reshape(x, 6))
        np.testing.assert_array_equal(so.reshape(x, shape=-1), np.reshape(x, -1))
        np.testing.assert_array_equal(so.broadcast_to(x[0, 1], shape=3), np.broadcast_to(1.0, 3))

    def test_it_is_saved_as_the_tuple(self):
        x = so.var("x", shape=(2, 3))
        assert so.reshape(x, shape=6).same_as(so.reshape(x, shape=(6,)))

    def test_true_is_no_number(self):
        with pytest.raises(TypeError, match="attribute 'shape' must be a tuple"):
            so.reshape(np.ones(1), shape=True)

    def test_likes_take_a_dtype(self):
        x = np.ones((2, 3), np.float32)
        for made, of_numpy in ((so.zeros_like, np.zeros_like), (so.ones_like, np.ones_like)):
            found = made(x, dtype="int32")
            assert found.dtype == np.int32
            np.testing.assert_array_equal(found, of_numpy(x, dtype=np.int32))
            symbol = made(so.var("x", shape=(2, 3), dtype="float32"), dtype="int32")
            assert symbol.eval(x=x).dtype == np.int32


class TestComplexMoments:
    @pytest.mark.parametrize("ord", [1.0, 2.0, 3.0, 4.0, 0.5, -1.0, INF, -INF])
    @pytest.mark.sampled(4)
    def test_norm_is_that_of_the_absolute_values(self, ord):
        x = complex_matrix(3, 2)
        slope, found = slope_and_gradient(lambda z: so.sum(so.norm(z, ord=ord, axis=0)), x)
        np.testing.assert_allclose(found, slope, rtol=1e-7)
        single = x.astype(np.complex64)
        value = so.norm(single, ord=ord, axis=0)
        assert value.dtype == np.float32
        np.testing.assert_allclose(value, np.linalg.norm(x, ord=ord, axis=0), rtol=1e-5)

    @pytest.mark.parametrize("correction", [0.0, 1.0])
    @pytest.mark.parametrize("moment", [so.variance, so.std])
    def test_moments_are_of_distances_from_the_mean(self, moment, correction):
        x = complex_matrix(4, 2)
        slope, found = slope_and_gradient(lambda z: so.sum(moment(z, correction=correction)), x)
        np.testing.assert_allclose(found, slope, rtol=1e-7)
        of_numpy = np.var if moment is so.variance else np.std
        value = moment(x.astype(np.complex64), correction=correction)
        assert value.dtype == np.float32
        np.testing.assert_allclose(value, of_numpy(x, ddof=correction), rtol=1e-5)

    def test_nothing_flows_where_the_derivative_does_not_exist(self):
        zeros = np.zeros(3, np.complex64)
        for scalar in (so.norm, so.std, lambda z: so.norm(z, ord=1), lambda z: so.norm(z, ord=INF)):
            np.testing.assert_array_equal(jax.jit(jax.grad(scalar))(zeros), zeros)

    def test_of_entries_that_tie_the_first_has_the_gradient(self):
        x = np.asarray([1j, -1.0, 1.0], np.complex64)
        found = jax.jit(jax.grad(lambda z: so.norm(z, ord=INF)))(x)
        np.testing.assert_allclose(found, [-1j, 0, 0], atol=1e-6)


class TestComplexDeterminants:
    def test_sign_and_logarithm_are_those_of_numpy(self):
        a = complex_matrix(2, 3, 3)
        sign, logarithm = so.slogdet(a.astype(np.complex64))
        expected = np.linalg.slogdet(a)
        assert logarithm.dtype == np.float32
        np.testing.assert_allclose(sign, expected[0], rtol=1e-5)
        np.testing.assert_allclose(logarithm, expected[1], rtol=1e-5)

    @pytest.mark.parametrize("which", [0, 1])
    def test_gradient_is_the_slope(self, which):
        a = complex_matrix(3, 3)
        slope, found = slope_and_gradient(lambda z: weighed_part(so.slogdet(z)[which]), a)
        np.testing.assert_allclose(found, slope, rtol=1e-7)


def weighed_part(x):
    return so.real(x) * 0.7 - so.imag(x) * 1.3
