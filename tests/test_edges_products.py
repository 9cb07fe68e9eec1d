"""Products and diagonals at zeros, infinities and ties of names, and in complex and half types."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import AttributeValueError, ShapeError

INF, NAN = float("inf"), float("nan")


def gradients(operator, *arrays, head=None, **attributes):
    """The value and its gradients, weighed with ``head``, by the graph."""
    xs = [so.var(f"x{i}", shape=one.shape, dtype=one.dtype) for i, one in enumerate(arrays)]
    y = operator(*xs, **attributes)
    given = {f"x{i}": one for i, one in enumerate(arrays)}
    heads = None if head is None else [so.var("head", shape=y.shape, dtype=y.dtype)]
    given |= {} if head is None else {"head": head}
    found = [y, *so.grad(y if heads else so.sum(y), xs, heads)]
    return [np.asarray(v.eval(**{n: given[n] for n in v.list_inputs()})) for v in found]


def complex_normal(*shape, seed=0):
    draw = np.random.default_rng([seed, *shape]).standard_normal((2, *shape))
    return (draw[0] + 1j * draw[1]).astype(np.complex64)


# Complex numbers -------------------------------------------------------------------------------

# The same products written out of sums of entries, so that JAX differentiates something else.
WRITTEN_OUT = [
    (so.vecdot, {}, lambda x, y: jnp.sum(jnp.conj(x) * y, -1), [(2, 3), (3,)]),
    (so.cross, {}, jnp.cross, [(2, 3), (3,)]),
    (so.outer, {}, lambda x, y: x[:, None] * y, [(2,), (3,)]),
    (so.kron, {}, jnp.kron, [(2, 2), (2, 3)]),
    (so.khatri_rao, {}, lambda x, y: (x[:, None] * y).reshape(6, 2), [(2, 2), (3, 2)]),
    (so.tensordot, {"axes": 1}, lambda x, y: jnp.sum(x[:, :, None] * y, 1), [(2, 3), (3, 2)]),
    (
        so.einsum,
        {"equation": "iij,jk,k->i"},
        lambda x, y, z: jnp.sum(jnp.sum(x * jnp.eye(2)[:, :, None], 0) * jnp.sum(y * z, 1), 1),
        [(2, 2, 3), (3, 2), (2,)],
    ),
    (so.syrk, {"alpha": 2.0}, lambda x: 2 * jnp.sum(x[:, None] * x, -1), [(2, 3)]),
    (
        so.trmm,
        {"transpose": True},
        lambda x, y: jnp.sum(jnp.where(np.tri(2), x, 0)[:, :, None] * y[:, None], 0),
        [(2, 2), (2, 3)],
    ),
]


@pytest.mark.parametrize(
    ("operator", "attributes", "written_out", "shapes"), WRITTEN_OUT, ids=lambda v: str(v)[:24]
)
def test_complex_gradients_are_those_of_jax(operator, attributes, written_out, shapes):
    arrays = [complex_normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    out, pull = jax.vjp(written_out, *arrays)
    head = complex_normal(*out.shape, seed=9)
    found = gradients(operator, *arrays, head=head, **attributes)
    for mine, theirs in zip(found, [out, *pull(head)], strict=True):
        assert mine.dtype == np.complex64
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_real_vector_beside_a_complex_one_has_a_real_gradient():
    x, y = np.asarray([1.0, 2.0], np.float32), np.asarray([1 + 2j, 3 - 1j], np.complex64)
    _, d_x, d_y = gradients(so.vecdot, x, y, head=np.asarray(1j, np.complex64))
    np.testing.assert_allclose(d_x, [-2.0, 1.0])  # the real part of i y
    np.testing.assert_allclose(d_y, [1j, 2j])


# Half precision --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    "total",
    [
        lambda x: so.vecdot(x, so.ones_like(x)),
        lambda x: so.einsum("i->", x),
        lambda x: so.einsum("i,i", x, so.ones_like(x)),
        lambda x: so.tensordot(x, so.ones_like(x), axes=1),
    ],
    ids=["vecdot", "einsum of one", "einsum of two", "tensordot"],
)
def test_long_sums_do_not_stall(total, dtype):
    # Added one by one in the dtype itself, ones stop counting at 256 and at 2048.
    assert float(total(jnp.ones(4096, dtype))) == 4096


# Infinities and NaNs ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "shape", "attributes", "places"),
    [
        (so.diagonal, (2, 3), {}, [(0, 0), (1, 1)]),
        (so.diagonal, (2, 3), {"offset": -1}, [(1, 0)]),
        (so.trace, (3, 2), {"offset": 1}, [(0, 1)]),
        (so.einsum, (2, 2), {"equation": "ii->i"}, [(0, 0), (1, 1)]),
        (so.einsum, (2, 2), {"equation": "ii"}, [(0, 0), (1, 1)]),
        (so.tril, (2, 2), {}, [(0, 0), (1, 0), (1, 1)]),
        (so.triu, (2, 2), {"k": 1}, [(0, 1)]),
    ],
    ids=lambda v: str(v)[:24],
)
def test_entries_that_do_not_count_have_no_gradient(operator, shape, attributes, places):
    x = np.ones(shape, np.float32)
    head = np.full(operator(x, **attributes).shape, INF, np.float32)
    _, d_x = gradients(operator, x, head=head, **attributes)
    expected = np.zeros(shape)
    expected[tuple(zip(*places, strict=True))] = INF
    if operator in (so.tril, so.triu):
        head = np.where(expected == INF, INF, NAN).astype(np.float32)
        _, d_x = gradients(operator, x, head=head, **attributes)
    np.testing.assert_array_equal(d_x, expected)


@pytest.mark.parametrize("rightside", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_trmm_ignores_the_other_triangle(lower, rightside):
    junk = np.asarray([[2.0, NAN], [3.0, 4.0]] if lower else [[2.0, 3.0], [INF, 4.0]], np.float32)
    b = np.asarray([[1.0, 2.0], [5.0, 7.0]], np.float32)
    out, d_a, d_b = gradients(so.trmm, junk, b, lower=lower, rightside=rightside)
    triangle = np.where(np.isfinite(junk), junk, 0)
    np.testing.assert_allclose(out, b @ triangle if rightside else triangle @ b)
    whole = b.sum(0)[:, None] * np.ones(2) if rightside else np.ones((2, 1)) * b.sum(1)
    np.testing.assert_allclose(d_a, np.where(np.isfinite(junk), whole, 0))
    ones = np.ones((2, 2))
    np.testing.assert_allclose(d_b, ones @ triangle.T if rightside else triangle.T @ ones)


def test_gemm_does_not_read_c_if_beta_is_zero():
    a, c = np.eye(2, dtype=np.float32), np.full((2, 2), NAN, np.float32)
    out, _, _, d_c = gradients(so.gemm, a, a, c, beta=0.0)
    np.testing.assert_array_equal(out, np.eye(2))
    np.testing.assert_array_equal(d_c, np.zeros((2, 2)))


def test_cross_keeps_infinities_apart():
    out = so.cross(jnp.asarray([INF, 1.0, 1.0]), jnp.asarray([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(out, [1.0, -INF, INF])


# Names of axes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ba", [(2, 3)]),
        ("ij,jh", [(2, 3), (3, 4)]),
        ("...ij->...ji", [(2, 2, 3)]),
        ("b...,...b", [(2, 3, 4), (4, 2)]),
        ("...,...", [(), (2, 3)]),
        (",i->i", [(), (3,)]),
        ("->", [()]),
        ("iii->i", [(3, 3, 3)]),
        ("iijj->ij", [(2, 2, 3, 3)]),
        ("i,i,i->i", [(3,), (1,), (3,)]),
        ("ij , jk->", [(2, 1), (3, 4)]),
        ("ij,kl->jl", [(2, 3), (4, 0)]),
        ("aB,Bc,cD,Da", [(2, 3), (3, 2), (2, 4), (4, 2)]),
        ("i,j,k->kij", [(2,), (3,), (4,)]),
        ("ab,ab,ab->b", [(2, 3), (2, 1), (1, 3)]),
    ],
)
def test_einsum_reads_equations_as_numpy_does(equation, shapes):
    arrays = [np.random.default_rng(i).standard_normal(s) for i, s in enumerate(shapes)]
    with jax.enable_x64(True):
        found = gradients(so.einsum, *arrays, equation=equation)
    expected = np.einsum(equation, *arrays)
    np.testing.assert_allclose(found[0], expected, atol=1e-12)
    # It is linear in each operand: the gradient's inner product with the operand is the value.
    for array, gradient in zip(arrays, found[1:], strict=True):
        assert gradient.shape == array.shape
        np.testing.assert_allclose(np.sum(gradient * array), np.sum(expected), atol=1e-12)


def test_ellipsis_that_the_result_leaves_out_is_summed():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    out, d_x = gradients(so.einsum, x, equation="...i->i")
    np.testing.assert_array_equal(out, x.sum(0))
    np.testing.assert_array_equal(d_x, np.ones((2, 3)))


def test_numbers_do_not_overflow_before_they_meet_a_float():
    small, x = np.full(2, 100, np.int8), np.ones(2, np.float32)
    xs = [so.var("a", shape=(2,), dtype="int8"), so.var("x", shape=(2,))]
    y = so.einsum("i,i,j->", xs[0], xs[0], xs[1])
    assert float(y.eval(a=small, x=x)) == 40000
    np.testing.assert_array_equal(so.grad(y, xs[1]).eval(a=small, x=x), [20000, 20000])


def test_booleans_meet_by_and_and_or():
    x = np.asarray([[True, False], [False, False]])
    np.testing.assert_array_equal(so.einsum("ij,j->i", x, x[0]), [True, False])
    assert so.einsum("ij->", x).dtype == bool
    assert bool(so.einsum("ij->", x))


@pytest.mark.parametrize(
    ("equation", "shapes", "error", "message"),
    [
        ("i..j->ij", [(2, 3)], AttributeValueError, "must be letters for axes"),
        ("ij->i->j", [(2, 3)], AttributeValueError, "must be letters for axes"),
        ("......", [(2, 3)], AttributeValueError, "must be letters for axes"),
        ("ij->ii", [(2, 3)], AttributeValueError, "at most once, got 'i'"),
        ("ijk...", [(2, 3)], ShapeError, "must have at least 3 axes, got shape \\(2, 3\\)"),
        ("i,", [(2,), (2,)], ShapeError, "an operand '' must have 0 axes, got shape \\(2,\\)"),
        ("...,...", [(2,), (3,)], ShapeError, "must have one length, got 2 and 3"),
        ("i,j", [(2,)], ShapeError, "must be of 1 operands, got 2"),
    ],
)
def test_einsum_refuses(equation, shapes, error, message):
    with pytest.raises(error, match=message):
        so.einsum(equation, *[jnp.ones(shape) for shape in shapes])


# Work ------------------------------------------------------------------------------------------


def test_gradients_of_a_chain_share_its_products():
    # Forward two products, and back two for each of them: with none of them made twice.
    names = "abc"
    xs = [so.var(name, shape=(8, 8)) for name in names]
    y = so.einsum("ij,jk,kl->il", *xs)
    both = so.Group([y, *so.grad(so.sum(so.square(y)), xs)])
    arrays = {name: jnp.ones((8, 8)) for name in names}
    program = jax.jit(lambda given: both.to_jax(rules=False)(**given)).lower(arrays).compile()
    assert program.as_text().count(" dot(") == 6


@pytest.mark.parametrize("operator", [so.gemm2, so.einsum], ids=lambda one: one.name)
def test_shared_matrix_gathers_its_gradient_in_one_product(operator):
    # No gradient for each entry of the batch stands in memory before it is summed.
    attributes = {"equation": "nij,jk->nik"} if operator is so.einsum else {}
    x, w = so.var("x", shape=(64, 4, 8)), so.var("w", shape=(8, 8))
    gradient = so.grad(operator(x, w, **attributes), w, so.var("d", shape=(64, 4, 8)))
    assert "[64,8,8]" not in str(gradient)


# Diagonals outside -----------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [-4, -2, 2, 3, 4])
def test_diagonals_reach_and_leave_the_corners(offset):
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3) + 1
    out, d_x = gradients(so.diagonal, x, offset=offset)
    np.testing.assert_array_equal(out, np.diagonal(x, offset))
    np.testing.assert_array_equal(d_x, np.eye(2, 3, offset))
    assert float(so.trace(x, offset=offset)) == np.trace(x, offset)


def by_permutations(a):
    """The determinant as the sum over all permutations, which JAX differentiates anywhere."""
    rows = range(len(a))
    terms = []
    for order in itertools.permutations(rows):
        turns = sum(order[j] < order[i] for i, j in itertools.combinations(rows, 2))
        terms.append(
            (-1.0) ** turns * functools.reduce(jnp.multiply, [a[i, order[i]] for i in rows])
        )
    return sum(terms)


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("n", "rank"), [(1, 0), (2, 1), (3, 0), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3)]
)
@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev])
def test_second_derivative_of_det_at_singular_matrices(n, rank, outer):
    rng = np.random.default_rng(n)
    a = jnp.asarray(rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n)))
    ways = [outer(jax.grad(one)) for one in (so.det, by_permutations)]
    found, expected = jax.jit(lambda a: [way(a) for way in ways])(a)
    np.testing.assert_allclose(found, expected, atol=1e-13 * max(1.0, np.abs(expected).max()))


def test_second_derivative_of_det_where_the_last_pivot_is_a_rounding_error():
    a = jnp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    ways = [jax.hessian(one) for one in (so.det, by_permutations)]
    found, expected = jax.jit(lambda a: [way(a) for way in ways])(a)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.usefixtures("x64")
def test_complex_singular_determinants():
    rng = np.random.default_rng(0)
    u, v = (rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2)) for _ in range(2))
    a = jnp.asarray(u @ v.T)

    def first(function):
        return jax.grad(function, holomorphic=True)

    def second(function):
        return jax.jacfwd(first(function), holomorphic=True)

    ways = [[each(one) for one in (so.det, by_permutations)] for each in (first, second)]
    for found, expected in jax.jit(lambda a: [[way(a) for way in each] for each in ways])(a):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_third_derivative_of_det():
    a, *directions = np.random.default_rng(1).normal(size=(4, 3, 3))

    def thrice(derive, function):
        for along in directions:
            function = derive(function, along)
        return jax.jit(function)(jnp.asarray(a))

    def forward(function, along):
        return lambda a: jax.jvp(function, (a,), (along,))[1]

    def backward(function, along):
        return lambda a: jnp.vdot(jax.grad(function)(a), along)

    expected = thrice(forward, by_permutations)
    for derive in (forward, backward):
        np.testing.assert_allclose(thrice(derive, so.det), expected, rtol=1e-10)
