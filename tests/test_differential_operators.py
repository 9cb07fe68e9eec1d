"""Differential operators against nested JAX and against exact solutions."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError, DTypeError, ShapeError


def _trace_of_hessian(u):
    return lambda x: jnp.trace(jax.hessian(u)(x).reshape(x.size, x.size))


def _mlp(x, weights):
    for w, b in weights[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = weights[-1]
    return (x @ w + b)[0]


def _weights(*widths):
    keys = jax.random.split(jax.random.key(0), 2 * len(widths))
    return [
        (jax.random.normal(keys[2 * i], (m, n)) / m**0.5, jax.random.normal(keys[2 * i + 1], (n,)))
        for i, (m, n) in enumerate(itertools.pairwise(widths))
    ]


WEIGHTS = _weights(4, 8, 8, 1)
A = jnp.linspace(-1.0, 1.0, 16).reshape(4, 4)
FUNCTIONS = {
    "tanh layers": lambda x: _mlp(x, WEIGHTS),
    "gelu": lambda x: jax.nn.gelu(A @ x).sum(),
    "silu product": lambda x: jnp.prod(jax.nn.silu(x)),
    "softmax": lambda x: jax.nn.softmax(A @ x)[0],
    "log-sum-exp": lambda x: jax.nn.logsumexp(A @ x),
    "determinant": lambda x: jnp.linalg.slogdet(jnp.outer(x, x) + 2 * jnp.eye(4))[1],
    "norm": lambda x: jnp.exp(-jnp.sqrt(jnp.sum(x * x))),
    "coulomb": lambda x: 1.0 / jnp.linalg.norm(x[:2] - x[2:]),
    "scan": lambda x: jax.lax.scan(lambda c, w: (jnp.sin(w * c) + c, None), x, A)[0].prod(),
    "branch": lambda x: jax.lax.cond(x[0] > 0, lambda x: jnp.sin(x).prod(), jnp.sum, x),
    "gather": lambda x: (x[jnp.asarray([0, 0, 2])] ** 3).sum() * x[3],
    "sort": lambda x: jnp.sort(x)[1] ** 3 * x[0],
    "linear": lambda x: (A @ x).sum(),
    "vmap": lambda x: jax.vmap(lambda row: jnp.sin(row @ x))(A).prod(),
}  # fmt: skip
X = jnp.asarray([0.7, 0.2, 1.1, 0.45])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_laplacian(name):
    u = FUNCTIONS[name]
    with jax.enable_x64(True):
        x = jnp.asarray(X, "float64")
        wanted = jax.jit(_trace_of_hessian(u))(x)
        np.testing.assert_allclose(so.laplacian(u, x), wanted, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(jax.jit(lambda x: so.laplacian(u, x))(x), wanted, rtol=1e-9,
                                   atol=1e-12)  # fmt: skip


def test_laplacian_of_each_entry_and_of_matrices():
    x = so.var("x", shape=(2, 2), dtype="float32")
    u = so.stack(so.sum(x * x * x), so.sum(so.sin(x)))
    value = np.asarray([[0.3, 0.5], [0.7, 1.1]], "float32")
    got = so.laplacian(u, "x").eval(x=value)
    np.testing.assert_allclose(got, [6 * value.sum(), -np.sin(value).sum()], rtol=1e-5)


def test_laplacian_under_transformations():
    """Gradients by weights over which the function closes, through a batch."""

    def mean(laplacian):
        def loss(weights, xs):
            return jnp.mean(jax.vmap(laplacian(lambda x: _mlp(x, weights)))(xs) ** 2)

        return jax.jit(jax.value_and_grad(loss))

    xs = jax.random.normal(jax.random.key(1), (5, 4))
    got = mean(lambda u: lambda x: so.laplacian(u, x))(WEIGHTS, xs)
    wanted = mean(_trace_of_hessian)(WEIGHTS, xs)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4), got, wanted)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_biharmonic(name):
    u = FUNCTIONS[name]
    with jax.enable_x64(True):
        x = jnp.asarray(X, "float64")
        wanted = jax.jit(_trace_of_hessian(_trace_of_hessian(u)))(x)
        np.testing.assert_allclose(so.biharmonic(u, x), wanted, rtol=1e-8, atol=1e-9)


def test_mixed_tangents_are_computed_once():
    """One for each pair of directions; first derivatives, and those of a Laplacian, one for each.

    The first derivatives of a Laplacian come from both of its sides: ``D`` and ``D`` rows.
    """
    n, d = 64, 4
    x, w = jnp.ones(d), jnp.ones((d, n)) / d
    first, second = jnp.ones((n, n)) / n, jnp.ones((n, n)) / n

    def u(x):
        return jnp.tanh(jnp.tanh(jnp.tanh(x @ w) @ first) @ second).sum()

    run = jax.jit(lambda x: so.biharmonic(u, x)).lower(x).compile()
    rows = d * d + 3 * d + 3
    assert run.cost_analysis()["flops"] < 1.25 * 2 * rows * 2 * n * n


def test_divergence_and_curl():
    def field(x):
        return jnp.stack([x[0] * x[1], jnp.sin(x[2]) * x[0], x[1] ** 2 * x[2]])

    x = jnp.asarray([0.3, 0.7, 1.1])
    slopes = jax.jit(jax.jacfwd(field))(x)
    np.testing.assert_allclose(so.divergence(field, x), jnp.trace(slopes), rtol=1e-6)
    wanted = [slopes[2, 1] - slopes[1, 2], slopes[0, 2] - slopes[2, 0], slopes[1, 0] - slopes[0, 1]]
    np.testing.assert_allclose(so.curl(field, x), wanted, rtol=1e-6)
    rotation = jax.jit(lambda x: so.curl(lambda x: so.curl(field, x), x))(x)
    gradient = jax.jit(jax.grad(lambda x: jnp.trace(jax.jacfwd(field)(x))))(x)
    each = jax.jit(lambda x: jnp.trace(jax.hessian(field)(x), axis1=1, axis2=2))(x)
    np.testing.assert_allclose(rotation, gradient - each, rtol=1e-5, atol=1e-6)


def test_partial_derivatives():
    x, t = so.var("x", shape=()), so.var("t", shape=())
    u = so.sin(2 * x) * so.exp(-t)
    got = so.partial(u, {x: 2, t: 1}).eval(x=0.4, t=0.3)
    np.testing.assert_allclose(got, 4 * np.sin(0.8) * np.exp(-0.3), rtol=1e-6)
    vector = so.var("v", shape=(3,))
    entry = so.partial(so.prod(vector) * vector[1], {(vector, 1): 2, (vector, 0): 1})
    np.testing.assert_allclose(entry.eval(v=[2.0, 3.0, 5.0]), 10.0)
    assert so.partial(u, {x: 0}) is u


def test_linear_operator():
    x, t = so.var("x", shape=()), so.var("t", shape=())
    wave = so.sin(x - 2 * t)
    residual = so.linear_operator(wave, [(1.0, {t: 2}), (-4.0, {x: 2}), (x, {x: 1}), (-x, {x: 1})])
    np.testing.assert_allclose(residual.eval(x=0.3, t=0.1), 0.0, atol=1e-6)


def test_eager_arrays():
    x = so.nd.array([0.5, 1.5])
    got = so.laplacian(lambda x: so.sum(so.exp(x)), x)
    assert isinstance(got, so.NDArray)
    np.testing.assert_allclose(got.asnumpy(), np.exp([0.5, 1.5]).sum(), rtol=1e-6)


def test_eager_arrays_are_not_recorded():
    x = so.nd.array([0.5, 1.5])
    with so.autograd.record(), pytest.raises(ArgumentError, match="cannot be recorded"):
        so.laplacian(lambda x: so.sum(so.exp(x)), x)


def test_training_and_random_numbers():
    """A mask of dropout is the same for each direction; batch statistics are those of training."""
    x = so.var("x", shape=(16,), dtype="float32")
    u = so.sum(so.dropout(x * x * x, rate=0.5))
    value, key = np.ones(16, "float32"), jax.random.key(3)
    function = so.Group([u, so.laplacian(u, x)]).to_jax(is_train=True)
    both = function(x=value, key=key)
    np.testing.assert_allclose(both[1], 6 * both[0], rtol=1e-6)
    assert 0 < both[0] < 32


def test_the_sum_is_taken_first():
    """The second derivatives of each layer are one array, not one for each direction."""
    x = so.var("x", shape=(6,), dtype="float32")
    w = so.var("w", shape=(6, 7), dtype="float32")
    u = so.sum(so.tanh(so.matmul(so.tanh(so.matmul(x, w)), so.transpose(w))))
    shapes = [line for line in str(so.laplacian(u, x)).splitlines() if "6,7]" in line]
    assert len([line for line in shapes if "vmap" in line]) == 1
    assert not [line for line in shapes if "= matmul" in line]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: so.laplacian(x * x, 3.0),
            ArgumentError,
            "u must be a symbol or a function, and x",
        ),
        (lambda x: so.laplacian(so.cast(x, dtype="int32"), x), DTypeError, "must be real"),
        (lambda x: so.divergence(so.sum(x), x), ShapeError, "must have the shape of x"),
        (lambda x: so.curl(x, x), ShapeError, "must have shape (3,)"),
        (lambda x: so.partial(x, {x: -1}), ArgumentError, "orders must be integers"),
        (
            lambda x: so.partial(x, {(x, 5): 1}),
            ArgumentError,
            "an entry of a vector",
        ),
        (lambda x: so.linear_operator(x, []), ArgumentError, "at least one term"),
        (lambda x: so.laplacian(lambda x: (x, x), jnp.ones(2)), ArgumentError, "one array"),
    ],
)
def test_misuse(call, error, message):
    with pytest.raises(error) as raised:
        call(so.var("x", shape=(2,), dtype="float32"))
    assert message in str(raised.value)


# Values that are computed row by row --------------------------------------------------------------

MIX = jnp.sin(jnp.arange(12.0)).reshape(3, 4)
DEEP = jnp.cos(jnp.arange(16.0)).reshape(4, 4)


def _pairs(r):
    gap = r[:, None] - r[None, :]
    itself = jnp.eye(len(r))
    return jnp.sqrt(jnp.sum(gap * gap, -1) + itself) * (1 - itself)


def _two_streams(x):
    """Streams of particles and pairs, as in FermiNet, and a determinant."""
    r = x.reshape(-1, 3)
    two = jnp.tanh(_pairs(r)[..., None] * MIX[0] + (r[:, None] - r[None, :]) @ MIX)
    two = two + jnp.tanh(two @ DEEP)
    one = jnp.tanh(r @ MIX)
    one = one + one.mean(0) * one[:2].mean(0) + two[:, :2].mean(1) - two[:, 2:].mean(1)
    return jnp.linalg.slogdet(jnp.tanh(one @ DEEP.T) + 2 * jnp.eye(4))[1]


ROWS = {
    "entry by entry": lambda x: jnp.sum(jnp.sin(x) * jnp.exp(x)),
    "particles": lambda x: jnp.sum(jnp.tanh(x.reshape(4, 3) @ MIX) ** 3),
    "pairs": lambda x: jnp.sum(jnp.exp(-_pairs(x.reshape(4, 3)))),
    "pairs of a slice": lambda x: jnp.sum(_pairs(x.reshape(4, 3)[1:]) ** 3),
    "neighbors": lambda x: jnp.sum(jnp.exp(x[1:] * x[:-1]) * x[1:]),
    "reversed": lambda x: jnp.sum(jnp.sin(x[::-1]) * x**2),
    "every second": lambda x: jnp.sum(jnp.sin(x[::2] * x[1::2])),
    "joined": lambda x: jnp.sum(jnp.concatenate([jnp.sin(x[6:]), x[:6] ** 3]) ** 2),
    "side by side": lambda x: jnp.prod(jnp.sum(jnp.concatenate([jnp.sin(x.reshape(4, 3)),
                                                                x.reshape(4, 3) ** 3], 1), 1)),
    "two shapes": lambda x: jnp.sum(x.reshape(4, 3) ** 3) * jnp.sum(jnp.sin(x.reshape(6, 2)) ** 2),
    "columns": lambda x: jnp.sum(jnp.sin(x.reshape(4, 3).T).prod(0)),
    "padded": lambda x: jnp.sum(jnp.sin(jnp.pad(x.reshape(4, 3), ((1, 2), (0, 1)))) ** 3),
    "weights on the left": lambda x: jnp.sum(jnp.tanh(DEEP @ jnp.tanh(MIX.T @ x.reshape(3, 4)))),
    "vector": lambda x: jnp.sum(jnp.tanh(DEEP @ jnp.tanh(MIX @ MIX.T @ x[:3] @ MIX))),
    "two streams": _two_streams,
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ROWS)
def test_laplacian_of_rows(name):
    u = ROWS[name]
    with jax.enable_x64(True):
        x = jnp.linspace(0.1, 1.3, 12, dtype="float64") + 0.2 * jnp.sin(jnp.arange(12.0) ** 2)
        got, wanted = jax.jit(lambda x: (so.laplacian(u, x), _trace_of_hessian(u)(x)))(x)
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-10)


def test_laplacian_of_a_matrix_of_rows():
    with jax.enable_x64(True):
        x = jnp.linspace(0.1, 1.3, 12, dtype="float64").reshape(4, 3) ** 2
        got = jax.jit(lambda x: so.laplacian(lambda x: _two_streams(x.reshape(-1)), x))(x)
        wanted = jax.jit(_trace_of_hessian(_two_streams))(x.reshape(-1))
        np.testing.assert_allclose(got, wanted, rtol=1e-8)
        slopes = jax.grad(lambda x: jnp.sum(jnp.exp(-_pairs(x))))
        spread = jax.jit(lambda x: jnp.trace(jax.jacfwd(slopes)(x).reshape(12, 12)))(x)
        got = jax.jit(lambda x: so.divergence(slopes, x))(x)
        np.testing.assert_allclose(got, spread, rtol=1e-8)


def test_pairs_have_no_tangent_along_other_rows():
    """Along 5 particles of 3 coordinates, pairs have tangents in 3 directions, not in 15."""
    x = jax.ShapeDtypeStruct((15,), "float32")
    u = so.from_jax(lambda x: jnp.sum(jnp.tanh(_pairs(x.reshape(5, 3)))), x)
    text = str(so.laplacian(u, "x"))
    assert "float32[3,5,5]" in text
    assert "float32[15,5,5]" not in text


def test_products_keep_the_batch_in_front():
    """``W @ x`` along all directions of a batch is a product with the directions as rows."""
    w = jnp.ones((7, 6), "float32")

    def u(x):
        return jnp.sum(jnp.tanh(w @ jnp.tanh(w.T @ jnp.tanh(w @ x))))

    program = jax.make_jaxpr(jax.vmap(lambda x: so.laplacian(u, x)))(jnp.ones((5, 6)))
    text = str(program)
    assert "f32[5,6,7] = dot_general" in text
    assert "f32[7,5,6]" not in text


def test_values_that_no_output_reads():
    """A function closes over weights of a layer that it does not use."""

    def unused(w, x):
        return jnp.sum(x**3) + 0 * jnp.sum(jnp.zeros(())), w @ w

    run = jax.jit(lambda w, x: so.laplacian(lambda x: unused(w, x)[0], x))
    np.testing.assert_allclose(run(jnp.ones((2, 2)), jnp.asarray([1.0, 2.0])), 18.0)


# Sums inside of the bodies of vmap ----------------------------------------------------------------


def _mapped_symbol(x):
    """Values that depend on ``x`` through mapped operands and through those that are the same."""
    rows = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
    scales = so.sin(so.matmul(rows, x))

    def one(row, scale):
        return so.tanh(so.sum(row * x)) * so.exp(scale) + so.sum(x * x * x) * scale, scale * 2.0

    first, second = so.vmap(one)(rows, scales)
    return so.sum(first * second) + so.prod(second)


def _mapped_by_jax(x):
    rows = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)
    scales = jnp.sin(rows @ x)
    first = jax.vmap(lambda r, s: jnp.tanh(jnp.sum(r * x)) * jnp.exp(s) + jnp.sum(x**3) * s)(
        rows, scales
    )
    return jnp.sum(first * 2 * scales) + jnp.prod(2 * scales)


@pytest.mark.parametrize("operator", [so.laplacian, so.biharmonic])
def test_sums_inside_of_vmap(operator):
    with jax.enable_x64(True):
        x = so.var("x", shape=(4,), dtype="float64")
        wanted = _trace_of_hessian(_mapped_by_jax)
        if operator is so.biharmonic:
            wanted = _trace_of_hessian(wanted)
        point = jnp.asarray(X, "float64")
        value = operator(_mapped_symbol(x), x)
        np.testing.assert_allclose(value.eval(x=point), jax.jit(wanted)(point), rtol=1e-9)


def test_weighted_sums_inside_of_vmap():
    with jax.enable_x64(True):
        x = so.var("x", shape=(4,), dtype="float64")
        weights = [so.cos(x[0]), 2.0, -1.0, 0.5]
        terms = [(w, {(x, i): 2}) for i, w in enumerate(weights)]
        value = so.linear_operator(_mapped_symbol(x), [*terms, (3.0, {(x, 1): 1})])
        point = jnp.asarray(X, "float64")
        numbers = jnp.asarray([jnp.cos(point[0]), 2.0, -1.0, 0.5])
        both = jax.jit(lambda x: (jax.hessian(_mapped_by_jax)(x), jax.grad(_mapped_by_jax)(x)))
        bent, slopes = both(point)
        wanted = numbers @ jnp.diag(bent) + 3 * slopes[1]
        np.testing.assert_allclose(value.eval(x=point), wanted, rtol=1e-9)


def test_the_sum_is_taken_inside_of_vmap():
    """Of second derivatives of a layer there is one for each slice, not for each direction too."""
    x = so.var("x", shape=(6,), dtype="float32")
    rows = so.var("rows", shape=(5, 6), dtype="float32")
    w, v = so.var("w", shape=(6, 7), dtype="float32"), so.var("v", shape=(7, 9), dtype="float32")
    u = so.vmap(lambda row: so.tanh(so.matmul(so.tanh(so.matmul(row * x, w)), v)))(rows)
    run = so.laplacian(so.sum(u), x).to_jax()
    examples = {"x": (6,), "rows": (5, 6), "w": (6, 7), "v": (7, 9)}
    program = jax.make_jaxpr(run)(**{name: jnp.ones(shape) for name, shape in examples.items()})
    products = [one for one in str(program).splitlines() if "dot_general" in one]
    assert len([one for one in products if "9] = dot" in one and one.count("6")]) == 1


def _second_layer(w, x):
    (first, bias), _, last = WEIGHTS
    return _mlp(x, [(first, bias), (w, jnp.ones(8)), last])


@pytest.mark.parametrize("operator", [so.laplacian, so.biharmonic])
def test_gradients_by_weights_contract_over_directions(operator):
    """No matrix for each direction is computed."""

    def by_jax(w, x):
        of_hessian = _trace_of_hessian(lambda x: _second_layer(w, x))
        return of_hessian(x) if operator is so.laplacian else _trace_of_hessian(of_hessian)(x)

    with jax.enable_x64(True):
        w, x = jnp.asarray(WEIGHTS[1][0], "float64"), jnp.asarray(X, "float64")
        graph = so.from_jax(_second_layer, w, x, names=["w", "x"])
        slope = so.grad(operator(graph, "x"), "w").to_jax()
        np.testing.assert_allclose(slope(w=w, x=x), jax.jit(jax.grad(by_jax))(w, x), rtol=1e-8)
        program = str(jax.make_jaxpr(lambda w, x: slope(w=w, x=x))(w, x))
    assert "[4,8,8]" not in program


# Derivatives by weights over which a function closes ----------------------------------------------


def _of_weights(w, x):
    return jnp.sum(jnp.tanh(w @ x) ** 2) * jnp.exp(-x @ x)


def _of_operators(operators):
    """Several operators at one point, as functions of the weights."""

    def values(w):
        x = jnp.asarray([0.3, 0.7])
        return jnp.stack([one(lambda x: _of_weights(w, x))(x) for one in operators])

    return values


def _mixed_by_jax(u):
    return lambda x: 3.0 * jax.hessian(u)(x)[0, 1]


def _third_by_jax(u):
    def along(s):
        return lambda x: u(x + s * jnp.asarray([1.0, -0.5]))

    slope = jax.jacfwd(jax.jacfwd(jax.jacfwd(lambda s, x: along(s)(x))))
    return lambda x: slope(0.0, x)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda f, w: jax.jit(jax.jacrev(f))(w),
        lambda f, w: jax.jit(jax.jacfwd(f))(w),
        lambda f, w: jax.jit(jax.jacfwd(jax.jacrev(f)))(w),
        pytest.param(
            lambda f, w: jax.jit(jax.jacrev(jax.jacrev(f)))(w), marks=pytest.mark.thorough
        ),
        lambda f, w: jax.jit(jax.vmap(jax.grad(lambda c: f(c * w)[1])))(jnp.asarray([1.0, 2.0])),
        lambda f, w: jax.jit(jax.grad(lambda w: jax.checkpoint(f)(w)[1]))(w),
    ],
    ids=["reverse", "forward", "forward over reverse", "reverse twice", "vmap", "checkpoint"],
)
def test_derivatives_by_weights(derivative):
    ours = (
        so.laplacian,
        so.biharmonic,
        lambda u: so.linear_operator(u, [(3.0, {(0, 0): 1, (0, 1): 1})]),
        lambda u: lambda x: so.taylor(u, x, [np.asarray([1.0, -0.5])], order=3)[3],
    )
    by_jax = (
        _trace_of_hessian,
        lambda u: _trace_of_hessian(_trace_of_hessian(u)),
        _mixed_by_jax,
        _third_by_jax,
    )
    with jax.enable_x64(True):
        w = jnp.asarray([[0.5, -1.0], [0.3, 0.8]])
        got, wanted = (derivative(_of_operators(each), w) for each in (ours, by_jax))
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-9)


def test_a_small_coefficient_does_not_drown_in_a_large_one():
    def f(x):
        return x[0] ** 2 + x[0] * x[1] + 1e18 * x[2] ** 2

    terms = [(1.0, {(0, 0): 2}), (1.0, {(0, 0): 1, (0, 1): 1}), (1e-15, {(0, 2): 2})]
    with jax.enable_x64(True):
        assert float(so.linear_operator(f, terms)(jnp.ones(3))) == pytest.approx(2003.0, rel=1e-12)
        assert float(so.linear_operator(f, terms[2:])(jnp.ones(3))) == pytest.approx(2000.0)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_coefficient_may_be_infinite(value):
    terms = [(value, {(0, 0): 2}), (2.0, {(0, 1): 2})]
    got = so.linear_operator(lambda x: jnp.sum(x**3), terms)(jnp.ones(3))
    np.testing.assert_array_equal(got, value * 6.0 + 12.0)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([("a", {0: 1})], "a coefficient must be a number"),
        ([(1.0,)], "a term must be a pair"),
        ([(1.0, 3)], "a term must be a pair"),
    ],
)
def test_terms_that_are_none(terms, message):
    with pytest.raises(ArgumentError, match=f"linear_operator: {message}"):
        so.linear_operator(lambda x: x, terms)


# Arguments of functions --------------------------------------------------------------------------


def _wave(params, x, t, *, speed):
    return params["scale"][0] * jnp.sin(x[0] - speed * t) * params["shift"]


def test_arguments_that_are_not_differentiated_by_may_be_nested_and_named():
    params = {"scale": [jnp.float32(2.0)], "shift": jnp.float32(0.5)}
    terms = [(1.0, {"t": 2}), (lambda params, x, t, speed: -(speed**2), {("x", 0): 2})]
    wave = so.linear_operator(_wave, terms)
    x = jnp.asarray([0.3])
    np.testing.assert_allclose(wave(params, x, 0.2, speed=3.0), 0.0, atol=1e-6)
    mixed = so.partial(_wave, {("x", 0): 1, "t": 1})

    def value(params):
        return mixed(params, t=jnp.float32(0.2), x=x, speed=3.0)

    np.testing.assert_allclose(value(params), 3.0 * np.sin(0.3 - 0.6), rtol=1e-6)
    slope = jax.jit(jax.grad(value))(params)
    np.testing.assert_allclose(slope["scale"][0], 1.5 * np.sin(0.3 - 0.6), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("laplacian", lambda x: so.laplacian(lambda x: x["a"], x)),
        ("divergence", lambda x: so.divergence(lambda x: x["a"], x)),
        ("partial", so.partial(lambda x: x["a"], {0: 1})),
        ("taylor", lambda x: so.taylor(lambda x: x["a"], x, [1.0])),
    ],
)
def test_nested_arrays_are_refused_where_they_are_differentiated_by(name, call):
    with pytest.raises(ArgumentError, match=f"{name}: .* must be an array, got a dict; .*ravel"):
        call({"a": jnp.ones(2)})
