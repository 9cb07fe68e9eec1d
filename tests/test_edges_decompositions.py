"""Matrices that are singular, defective or half read: where the formulas give out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import registry
import symop as so


def gradient(scalar, *values):
    """The gradients of a scalar composition with respect to each value, by the graph."""
    xs = [so.var(f"x{i}", shape=np.shape(value)) for i, value in enumerate(values)]
    found = so.grad(scalar(*xs), xs)
    arrays = {f"x{i}": np.asarray(value, np.float32) for i, value in enumerate(values)}
    return [np.asarray(one.eval(**{n: arrays[n] for n in one.list_arguments()})) for one in found]


def cofactors(a):
    """By the definition, one minor after another."""
    out = np.zeros(a.shape)
    for i, j in np.ndindex(*a.shape):
        out[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
    return out


SINGULAR = {
    "last pivot": [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
    "first column": [[0, 2, 1], [0, 1, 3], [0, 4, -1]],
    "first row": [[0, 0, 0], [1, 2, 1], [3, 1, 2]],
    "middle column": [[2, 0, 1], [1, 0, 3], [4, 0, -1]],
    "nilpotent": [[0, 1, 0], [0, 0, 1], [0, 0, 0]],
    "twice the same row": [[1, 2, 1], [1, 2, 1], [0, 1, 5]],
    "rank n - 2": [[1, 2, 3], [2, 4, 6], [-1, -2, -3]],
    "rank 0": [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    "one row": [[0]],
    "two rows": [[1, 2], [2, 4]],
    "long nilpotent": np.eye(20, k=1),
}


class TestDeterminant:
    @pytest.mark.parametrize("name", SINGULAR)
    def test_gradient_of_a_singular_matrix_is_its_cofactors(self, name):
        a = np.asarray(SINGULAR[name], np.float32)
        (found,) = gradient(so.det, a)
        np.testing.assert_allclose(found, cofactors(a), atol=1e-5 * max(1, np.abs(a).max() ** 2))

    @pytest.mark.parametrize("name", ["first column", "rank n - 2"])
    @pytest.mark.sampled(2)
    def test_eager_gradient_is_the_same(self, name):
        a = jnp.asarray(SINGULAR[name], jnp.float32)
        np.testing.assert_allclose(jax.jit(jax.grad(so.det))(a), gradient(so.det, a)[0], atol=1e-5)

    @pytest.mark.sampled(2)
    def test_regular_and_singular_matrices_share_a_stack(self):
        stack = np.stack([np.asarray(SINGULAR[name], np.float32) for name in list(SINGULAR)[:4]])
        stack[1] = [[2, 0, 1], [1, 1, 0], [0, 3, 1]]
        (found,) = gradient(lambda a: so.sum(so.det(a)), stack)
        for mine, a in zip(found, stack, strict=True):
            np.testing.assert_allclose(mine, cofactors(a), atol=2e-4)
        one_by_one = jax.vmap(jax.grad(so.det))(jnp.asarray(stack))
        np.testing.assert_allclose(one_by_one, found, atol=1e-5)

    def test_partial_products_beyond_the_range_do_not_spoil_it(self):
        pivots = np.asarray([1e30, 1e30, 1e-30, 1e-30], np.float32)
        np.testing.assert_allclose(so.det(np.diag(pivots)), 1.0, rtol=1e-4)
        np.testing.assert_allclose(so.det(np.diag(pivots[::-1])), 1.0, rtol=1e-4)

    def test_sign_of_permutations(self):
        for order in ([1, 0, 2], [1, 2, 0], [2, 1, 0], [0, 1, 2]):
            a = np.eye(3, dtype=np.float32)[order]
            expected = round(np.linalg.det(a))
            assert float(so.det(a)) == expected
            assert [float(one) for one in so.slogdet(a)] == [expected, 0.0]

    def test_of_no_rows_it_is_one(self):
        assert float(so.det(np.zeros((0, 0), np.float32))) == 1.0

    def test_logarithm_of_a_singular_matrix(self):
        sign, logarithm = so.slogdet(np.zeros((2, 2), np.float32))
        assert float(sign) == 0.0
        assert float(logarithm) == -np.inf

    def test_logarithm_does_not_overflow(self):
        a = 1e30 * np.eye(5, dtype=np.float32)
        np.testing.assert_allclose(so.slogdet(a)[1], 5 * 30 * np.log(10), rtol=1e-6)
        np.testing.assert_allclose(gradient(lambda a: so.slogdet(a)[1], a)[0], np.eye(5) * 1e-30)


class TestTriangles:
    A = np.asarray([[2.0, np.nan], [1.0, 4.0]], np.float32)

    @pytest.mark.parametrize("transpose", [False, True])
    def test_the_other_triangle_is_not_read(self, transpose):
        def total(a, b):
            return so.sum(so.triangular_solve(a, b, transpose=transpose))

        d_a, d_b = gradient(total, self.A, np.ones((2, 1), np.float32))
        clean = np.where(np.isnan(self.A), 0, self.A)
        d_clean, _ = gradient(total, clean, np.ones((2, 1), np.float32))
        np.testing.assert_allclose(d_a, d_clean)
        assert d_a[0, 1] == 0
        inverse = np.linalg.inv(clean.T if transpose else clean)
        np.testing.assert_allclose(d_b[:, 0], inverse.sum(0), rtol=1e-6)

    def test_a_unit_diagonal_has_no_gradient(self):
        (d_a, _) = gradient(
            lambda a, b: so.sum(so.triangular_solve(a, b, unit_diagonal=True)),
            [[9.0, 0.0], [2.0, 9.0]],
            [[1.0], [1.0]],
        )
        np.testing.assert_allclose(d_a, [[0, 0], [-1, 0]])

    def test_gradient_of_potri_stays_in_its_triangle(self):
        (d_a,) = gradient(lambda a: so.sum(so.potri(a)), [[2.0, 7.0], [1.0, 4.0]])
        assert d_a[0, 1] == 0
        step = 1e-3
        for i, j in ((0, 0), (1, 0), (1, 1)):
            moved = np.zeros((2, 2))
            moved[i, j] = step
            low = np.asarray([[2.0, 0.0], [1.0, 4.0]])
            above, below = (np.linalg.inv(one @ one.T).sum() for one in (low + moved, low - moved))
            np.testing.assert_allclose(d_a[i, j], (above - below) / (2 * step), rtol=1e-3)


class TestSpectra:
    @pytest.mark.parametrize("operator", [so.eigvalsh, lambda x: so.eigh(x)[0]])
    def test_repeated_eigenvalues(self, operator):
        (found,) = gradient(lambda x: so.sum(operator(x)), 3 * np.eye(3))
        np.testing.assert_allclose(found, np.eye(3), atol=1e-6)

    @pytest.mark.parametrize("operator", [so.svdvals, lambda x: so.svd(x)[1]])
    @pytest.mark.parametrize("x", [np.eye(3), np.ones((3, 2)), 2 * np.eye(4)[:, :2]])
    def test_repeated_and_zero_singular_values(self, operator, x):
        # Half of the squares' sum is half of the squared Frobenius norm.
        (found,) = gradient(lambda x: so.sum(so.square(operator(x))) * 0.5, x)
        np.testing.assert_allclose(found, x, atol=1e-6)

    def test_only_the_symmetric_part_counts(self):
        x = np.asarray([[2.0, 5.0], [-3.0, 1.0]], np.float32)
        even = (x + x.T) / 2
        np.testing.assert_allclose(so.eigvalsh(x), np.linalg.eigvalsh(even), rtol=1e-6)
        weights = np.asarray([[1.0, 2.0], [0.0, 3.0]], np.float32)
        (found,) = gradient(lambda x: so.sum(so.eigh(x)[1] * weights), x)
        np.testing.assert_allclose(found, found.T)
        assert np.abs(found).max() > 0.01

    @pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
    def test_factors_multiply_to_the_matrix(self, shape):
        x = np.random.default_rng(0).standard_normal((2, *shape)).astype(np.float32)
        u, s, vh = (np.asarray(one) for one in so.svd(x))
        np.testing.assert_allclose((u * s[:, None, :]) @ vh, x, atol=1e-5)
        for first, second in (so.qr(x), so.lq(x)[::-1]):
            np.testing.assert_allclose(np.asarray(first) @ np.asarray(second), x, atol=1e-5)

    @pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
    def test_gradient_through_all_factors_is_that_of_the_matrix(self, shape):
        generator = np.random.default_rng(1)
        x, weights = (generator.standard_normal(shape).astype(np.float32) for _ in range(2))

        def of_svd(x):
            u, s, vh = so.svd(x)
            return so.sum(((u * s) @ vh) * weights)

        def of_qr(x):
            q, r = so.qr(x)
            return so.sum((q @ r) * weights)

        for function in (of_svd, of_qr):
            np.testing.assert_allclose(gradient(function, x)[0], weights, atol=1e-4)

    def test_pseudoinverse_of_a_matrix_of_lower_rank(self):
        # Along matrices of rank one, x = column row: the pseudoinverse is row^T column^T / (...).
        column, row = np.asarray([[1.0], [2.0], [-1.0]]), np.asarray([[3.0, 1.0]])
        weights = np.arange(6.0).reshape(2, 3)

        def exact(column, row):
            return so.sum(
                weights
                * (so.permute_dims(row, axes=(1, 0)) @ so.permute_dims(column, axes=(1, 0)))
                / (so.sum(so.square(column)) * so.sum(so.square(row)))
            )

        ours = gradient(lambda c, r: so.sum(weights * so.pinv(c @ r)), column, row)
        for mine, other in zip(ours, gradient(exact, column, row), strict=True):
            np.testing.assert_allclose(mine, other, atol=1e-4)

    def test_pseudoinverse_cuts_at_rcond(self):
        x = np.diag(np.asarray([4.0, 1.0], np.float32))
        np.testing.assert_allclose(so.pinv(x, rcond=0.5), np.diag([0.25, 0.0]))
        np.testing.assert_allclose(so.pinv(np.zeros((2, 3), np.float32)), np.zeros((3, 2)))


class TestCholesky:
    def test_what_is_not_positive_definite_is_not_a_number(self):
        assert np.isnan(so.cholesky(-np.eye(2, dtype=np.float32))).any()

    @pytest.mark.parametrize("upper", [False, True])
    def test_gradient_is_symmetric_and_right(self, upper):
        a = np.asarray([[4.0, 1.0], [1.0, 3.0]])
        weights = np.asarray([[1.0, 5.0], [2.0, -1.0]])
        (found,) = gradient(lambda a: so.sum(so.cholesky(a, upper=upper) * weights), a)
        np.testing.assert_allclose(found, found.T, atol=1e-7)
        turned, step = np.asarray([[0.3, 0.7], [0.7, -0.2]]), 1e-5
        above, below = (
            np.sum((low.T if upper else low) * weights)
            for low in (
                np.linalg.cholesky(a + step * turned),
                np.linalg.cholesky(a - step * turned),
            )
        )
        np.testing.assert_allclose((found * turned).sum(), (above - below) / (2 * step), rtol=1e-5)


class TestComplex:
    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            (so.inv, jnp.linalg.inv),
            (so.det, jnp.linalg.det),
            (lambda a: so.matrix_power(a, n=-3), lambda a: jnp.linalg.matrix_power(a, -3)),
            (lambda a: so.solve(a, a[0]), lambda a: jnp.linalg.solve(a, a[0])),
            (
                lambda a: so.triangular_solve(a, a, transpose=True),
                lambda a: jax.scipy.linalg.solve_triangular(a, a, trans=1, lower=True),
            ),
        ],
        ids=["inv", "det", "matrix_power", "solve", "triangular_solve"],
    )
    @pytest.mark.sampled(5)
    def test_value_and_gradient(self, ours, theirs):
        generator = np.random.default_rng(2)
        real, imaginary, *heads = generator.standard_normal((4, 3, 3))
        a = jnp.asarray(real + 1j * imaginary, jnp.complex64)
        (mine, pull), (other, pull_other) = jax.vjp(ours, a), jax.vjp(theirs, a)
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)
        head = jnp.asarray(heads[0] + 1j * heads[1], other.dtype).ravel()[: other.size]
        head = head.reshape(other.shape)
        expected = np.asarray(pull_other(head)[0])
        np.testing.assert_allclose(pull(head)[0], expected, atol=1e-3 * np.abs(expected).max())


def test_a_singular_system_has_no_finite_solution():
    assert not np.isfinite(so.solve(np.ones((2, 2), np.float32), np.ones(2, np.float32))).any()


def test_solve_takes_vectors_only_by_one_axis():
    a = np.asarray([np.eye(2), 2 * np.eye(2)], np.float32)
    b = np.asarray([[1.0, 2.0], [3.0, 4.0]], np.float32)
    np.testing.assert_allclose(so.solve(a, b), [b, b / 2])
    np.testing.assert_allclose(so.solve(a, b[0]), [b[0], b[0] / 2])


def test_power_zero_is_the_identity_with_no_gradient():
    a = np.asarray([[0.0, 1.0], [0.0, 0.0]], np.float32)
    np.testing.assert_array_equal(so.matrix_power(a, n=0), np.eye(2))
    np.testing.assert_array_equal(
        jax.jit(jax.grad(lambda a: so.matrix_power(a, n=0).sum()))(a), 0 * a
    )


def test_powers_of_a_nilpotent_matrix():
    (found,) = gradient(lambda a: so.sum(so.matrix_power(a, n=3)), np.eye(3, k=1))
    shifts = [np.linalg.matrix_power(np.eye(3, k=-1), k) for k in range(3)]
    expected = sum(shifts[k] @ np.ones((3, 3)) @ shifts[2 - k] for k in range(3))
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    "name", ["solve", "inv", "det", "slogdet", "cholesky", "qr", "eigh", "svd", "pinv", "potri"]
)
@pytest.mark.sampled(5)
def test_half_precision_is_computed_in_single(name):
    operator = registry.get(name)
    generator = np.random.default_rng(3)
    a = generator.standard_normal((3, 3))
    arrays = [jnp.asarray(a @ a.T + np.eye(3), jnp.bfloat16)] * len(operator.slots)
    halves, wholes = (
        jax.tree_util.tree_leaves(operator(*given))
        for given in (arrays, [jnp.astype(one, jnp.float32) for one in arrays])
    )
    for half, whole in zip(halves, wholes, strict=True):
        assert half.dtype == jnp.bfloat16
        np.testing.assert_array_equal(half, jnp.astype(whole, jnp.bfloat16))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["svd", "qr"])
@pytest.mark.parametrize("part", ["first", "others"])
@pytest.mark.usefixtures("x64")
def test_second_derivatives_with_completed_bases(name, part):
    """Of the first columns, and of what does not depend on how the basis is completed."""
    generator = np.random.default_rng(0)
    a, way = generator.normal(size=(2, 4, 2))
    weights = generator.normal(size=(4, 4))
    x = so.var("x", (4, 2), "float64")
    whole = {"svd": {"full_matrices": True}, "qr": {"mode": "complete"}}[name]
    basis = getattr(so, name)(x, **whole)[0]
    own = basis[:, :2] if part == "first" else basis[:, 2:]
    loss = so.sum(so.sin(so.matmul(own, so.permute_dims(own)) * weights))

    def expected(a):
        reduced = {"svd": {"full_matrices": False}, "qr": {}}[name]
        first = getattr(jnp.linalg, name)(a, **reduced)[0]
        projector = first @ first.T
        return jnp.sum(
            jnp.sin(weights * (projector if part == "first" else jnp.eye(4) - projector))
        )

    slope = so.grad(loss, x)
    curved = so.grad(so.sum(slope * way), x).eval(x=a)
    moved, along = (
        jax.jit(lambda a, way, of=of: jax.jvp(jax.grad(of), (a,), (way,))[1])(a, way)
        for of in (lambda a: loss.to_jax()(x=a), expected)
    )
    np.testing.assert_allclose(
        slope.eval(x=a), jax.jit(jax.grad(expected))(a), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(curved, along, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(moved, along, rtol=1e-10, atol=1e-12)
