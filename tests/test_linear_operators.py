"""Linear combinations of partial derivatives against nested JAX, in double precision."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError, DTypeError, FeedError, GradientError
from symop.differential_operators import planning
from symop.graph.nodes import topological
from symop.regions.bodies import GraphBody


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


MIX = np.sin(np.arange(20.0)).reshape(4, 5)
POINT = np.array([0.7, 0.2, 1.1, 0.45])


def _network(x):
    return jnp.sum(jnp.tanh(x @ MIX) ** 2) * jnp.exp(-0.1 * jnp.sum(x * x)) + x[0] * x[3]


def _nested(u, monomial):
    """The partial derivative of a function of a vector, by nested ``jax.jvp``."""
    for i in monomial:
        u = _along(u, i)
    return u


def _along(u, i):
    return lambda x: jax.jvp(u, (x,), (jnp.zeros_like(x).at[i].set(1.0),))[1]


def _orders(monomial):
    return {(0, i): monomial.count(i) for i in dict.fromkeys(monomial)}


def _combined(u, terms, x):
    values = jax.jit(lambda x: [_nested(u, one)(x) for _, one in terms])(x)
    return sum(
        (c(x) if callable(c) else c) * value for (c, _), value in zip(terms, values, strict=True)
    )


def _depends(i):
    return lambda x: jnp.cos(x[i]) + x[(i + 1) % 4]


PAIRS = list(itertools.combinations_with_replacement(range(4), 2))
OPERATORS = {
    "Laplacian": [(1.0, (i, i)) for i in range(4)],
    "scaled Laplacian": [(-0.5, (i, i)) for i in range(4)],
    "anisotropic": [(1.0 + i, (i, i)) for i in range(4)],
    "wave": [(1.0, (3, 3)), *((-4.0, (i, i)) for i in range(3))],
    "mixed": [(2.0, (0, 1))],
    "general of order 2": [(np.cos(3.0 * i + j), (i, j)) for i, j in PAIRS],
    "of rank 1": [((1.0 + (i != j)) * (i + 1) * (j + 2), (i, j)) for i, j in PAIRS],
    "convection and diffusion": [
        *((0.3, (i, i)) for i in range(4)), *((1.0 - i, (i,)) for i in range(4)), (2.0, ()),
    ],
    "heat": [(1.0, (3,)), (-0.7, (0, 0))],
    "one order only": [(1.0, (0,)), (-0.7, (2,))],
    "coefficients of x": [(_depends(i), (i, i)) for i in range(4)],
    "one coefficient of x": [*((_depends(0), (i, i)) for i in range(4)), (_depends(1), (2,))],
    "Fokker-Planck": [
        (_depends(0), (0, 0)), (_depends(1), (0, 1)), (_depends(2), (1, 1)), (_depends(3), (1,)),
    ],
    "general of x": [
        *((_depends((i + j) % 4), (i, j)) for i, j in PAIRS),
        *((_depends(i), (i,)) for i in range(4)), (_depends(2), ()),
    ],
    "star of x": [(_depends(i), (0, i)) for i in range(1, 4)],
    "order 3": [(1.0, (0, 0, 1)), (_depends(1), (0, 1, 2)), (-2.0, (3, 3, 3)), (0.5, (0, 0, 2))],
    "plate": [(1.0, (0, 0, 0, 0)), (2.0, (0, 0, 1, 1)), (1.0, (1, 1, 1, 1))],
    "plate of x": [(_depends(0), (0, 0, 0, 0)), (_depends(1), (0, 0, 1, 1)), (1.0, (1, 1, 1, 1))],
    "Kuramoto-Sivashinsky": [(1.0, (0, 0, 0, 0)), (1.0, (0, 0)), (1.0, (1,))],
    "order 4": [
        (1.0, (0, 1, 2, 3)), (2.0, (0, 0, 0, 1)), (_depends(3), (0, 0, 1, 2)), (0.3, (1, 1, 2, 2)),
    ],
    "all orders": [(1.5, (2,) * n) for n in range(5)],
    "repeated": [(1.0, (0, 1)), (_depends(2), (1, 0)), (2.0, (0, 1)), (1.0, (0,)), (2.0, (0,))],
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_linear_operators_are_nested_derivatives(name):
    terms = OPERATORS[name]
    x = jnp.asarray(POINT)
    operator = so.linear_operator(_network, [(c, _orders(one)) for c, one in terms])
    wanted = _combined(_network, terms, x)
    np.testing.assert_allclose(jax.jit(operator)(x), wanted, rtol=1e-9, atol=1e-11)


def test_coefficients_are_held_fixed_and_operators_compose():
    """The coefficient is not differentiated by the operator itself, only by the next one."""
    x = jnp.asarray(POINT)
    inner = so.linear_operator(_network, [(_depends(0), {(0, 1): 1, (0, 2): 1})])
    outer = so.linear_operator(inner, [(_depends(1), {(0, 0): 1}), (2.0, {(0, 1): 2})])
    mixed = _nested(_network, (1, 2))

    def nested(x):
        return _depends(0)(x) * mixed(x)

    wanted = _combined(nested, [(_depends(1), (0,)), (2.0, (1, 1))], x)
    np.testing.assert_allclose(outer(x), wanted, rtol=1e-9)


# Symbols -----------------------------------------------------------------------------------------


def test_several_arguments_at_many_points():
    """Burgers' equation on arrays, entry by entry, with ``u`` as a coefficient."""
    x, t = (so.var(name, shape=(5,), dtype="float64") for name in "xt")
    nu = so.var("nu", shape=(), dtype="float64")
    u = so.tanh(x - 0.3 * t) * so.exp(-x * t)
    residual = so.linear_operator(u, [(1.0, {t: 1}), (u, {x: 1}), (-nu, {x: 2}), (x, {x: 1, t: 1})])
    at = {"x": np.linspace(-1, 1, 5), "t": np.linspace(0.1, 0.9, 5), "nu": np.asarray(0.7)}

    def entry(x, t):
        return jnp.tanh(x - 0.3 * t) * jnp.exp(-x * t)

    def wanted(x, t):
        u_x = jax.grad(entry)
        twice = jax.grad(u_x)(x, t)
        mixed = jax.grad(u_x, 1)(x, t)
        return jax.grad(entry, 1)(x, t) + entry(x, t) * u_x(x, t) - 0.7 * twice + x * mixed

    got = residual.eval(**at)
    np.testing.assert_allclose(got, jax.vmap(wanted)(at["x"], at["t"]), rtol=1e-9)
    assert so.grad(so.sum(residual), nu).eval(**at) == pytest.approx(
        -float(so.sum(so.derivative(u, x, 2)).eval(x=at["x"], t=at["t"])), rel=1e-9
    )


def test_names_entries_and_symbols_are_keys():
    x, t = so.var("x", shape=(3,), dtype="float64"), so.var("t", shape=(), dtype="float64")
    u = so.prod(so.sin(x)) * t * t
    at = {"x": np.array([0.3, 0.7, 1.1]), "t": np.asarray(0.6)}
    sin, cos = np.sin(at["x"]), np.cos(at["x"])
    wanted = 2 * 0.6 * cos[0] * sin[1] * cos[2]
    for keys in (((x, 0), t, (x, -1)), (("x", 0), "t", ("x", np.int64(2)))):
        orders = dict.fromkeys(keys, 1)
        np.testing.assert_allclose(so.partial(u, orders).eval(**at), wanted, rtol=1e-12)
        both = so.linear_operator(u, [(2.0, orders), (1, {})])
        value = float(np.prod(sin)) * 0.36
        np.testing.assert_allclose(both.eval(**at), 2 * wanted + value, rtol=1e-12)


def test_values_with_axes_and_coefficients_with_axes():
    x = so.var("x", shape=(4,), dtype="float64")
    u = so.tanh(so.matmul(x, MIX))
    weights = [np.cos(np.arange(5.0) + k) for k in range(3)]
    got = so.linear_operator(
        u,
        [
            (weights[0], {(x, 0): 2}),
            (weights[1], {(x, 1): 2}),
            (weights[2], {}),
            (2.0, {(x, 3): 1}),
        ],
    )
    point = jnp.asarray(POINT)

    def of_jax(x):
        return jnp.tanh(x @ MIX)

    terms = list(zip([*weights, 2.0], [(0, 0), (1, 1), (), (3,)], strict=True))
    np.testing.assert_allclose(got.eval(x=POINT), _combined(of_jax, terms, point), rtol=1e-9)
    column = np.ones((3, 1))
    wide = so.linear_operator(u, [(column, {(x, 0): 1}), (2 * column, {(x, 1): 1})])
    wanted = _combined(of_jax, [(column, (0,)), (2 * column, (1,))], point)
    np.testing.assert_allclose(wide.eval(x=POINT), wanted, rtol=1e-9)


def test_a_coefficient_of_another_dtype_promotes():
    x = so.var("x", shape=(2,), dtype="float32")
    double = so.var("c", shape=(), dtype="float64")
    got = so.linear_operator(so.sum(x * x * x), [(double, {(x, 0): 2}), (1.0, {(x, 1): 2})])
    assert got.dtype == np.float64
    np.testing.assert_allclose(got.eval(x=np.float32([2, 3]), c=np.float64(0.5)), 6 + 18)


def test_complex_coefficients():
    """The operator of a free Schrodinger equation, of a real and of a complex function."""
    terms = [(-0.5, {"x": 2}), (-1j, {"t": 1}), (np.complex128(2j), {})]
    for wave in (lambda x, t: jnp.sin(x) * jnp.exp(t), lambda x, t: jnp.exp(1j * x + t)):
        got = so.linear_operator(wave, terms)(0.3, 0.2)
        value = wave(0.3, 0.2)
        np.testing.assert_allclose(got, 0.5 * value - 1j * value + 2j * value, rtol=1e-12)


def test_programs():
    program = so.Program()
    x, c = program.data("x", (3,), "float64"), program.data("c", (), "float64")
    terms = [(c, {(x, 0): 2}), (2.0, {(x, 1): 2}), (1.0, {(x, 2): 1})]
    value = so.linear_operator(so.sum(x * x * x), terms)
    (got,) = program.run({"x": np.array([1.0, 2.0, 3.0]), "c": np.float64(0.5)}, [value])
    np.testing.assert_allclose(got, 0.5 * 6 + 2 * 12 + 27)


# Size of the graph -------------------------------------------------------------------------------


def _count(nodes):
    """The number of nodes, those of bodies included."""
    order = topological(nodes)
    inner = [a for node in order for a in node.attributes if isinstance(a, GraphBody)]
    return len(order) + sum(_count(body.results) for body in inner)


def _of_dimension(n):
    w = np.sin(np.arange(7.0 * n)).reshape(n, 7)
    example = jax.ShapeDtypeStruct((n,), "float64")
    return so.from_jax(lambda x: jnp.sum(jnp.tanh(jnp.tanh(x @ w) @ w.T)), example)


def _second_order(n):
    rows = np.random.default_rng(0).normal(size=(n, n))
    pairs = itertools.combinations_with_replacement(range(n), 2)
    return [(float(rows[i, j]), _keys((i, j))) for i, j in pairs]


def _keys(monomial):
    return {("x", i): monomial.count(i) for i in dict.fromkeys(monomial)}


def test_the_laplacian_is_the_laplacian():
    u = _of_dimension(50)
    by_terms = so.linear_operator(u, [(1.0, {("x", i): 2}) for i in range(50)])
    assert by_terms.same_as(so.laplacian(u, "x"))


def test_an_operator_of_order_two_is_one_pass():
    """Neither the dimension nor the number of terms adds nodes; the first order shares the pass."""
    sizes = []
    for n in (4, 50):
        u = _of_dimension(n)
        terms = _second_order(n)
        sizes.append(_count(so.linear_operator(u, terms).nodes))
        convection = [(1.0 + i, {("x", i): 1}) for i in range(n)]
        more = so.linear_operator(u, [*terms, *convection, (2.0, {})])
        assert str(more).count("= vmap") == 1
        assert _count(more.nodes) < _count(so.laplacian(u, "x").nodes) + 20
    assert sizes[0] == sizes[1]


# The choice of directions ------------------------------------------------------------------------


def _polynomial(pushes, at):
    """The polynomial of a push: each derivative along a direction is a factor."""
    total = 0.0
    for push in pushes:
        values = [
            [sum(entry * at[i] for i, entry in way.items()) for way in rows] for rows in push.ways
        ]
        rows = np.prod([np.asarray(v) ** n for v, n in zip(values, push.orders, strict=True)], 0)
        weights = np.asarray(push.coefficients or np.ones(len(rows)))
        total += rows @ (weights if push.mixing is None else push.mixing @ weights)
    return total


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_each_choice_is_exact(order):
    rng = np.random.default_rng(order)
    every = list(itertools.combinations_with_replacement(range(4), order))
    for _ in range(10):
        chosen = rng.permutation(len(every))[: rng.integers(1, len(every) + 1)]
        terms = {every[i]: float(rng.normal()) for i in chosen}
        at = rng.normal(size=4)
        wanted = sum(c * np.prod(at[list(one)]) for one, c in terms.items())
        choices = [
            planning.multilinear(terms),
            [planning.polarized(terms)],
            planning.pushes_of(terms),
        ]
        if order == 2:
            choices += [[planning.by_eigenvectors(terms)], [planning.by_rows(terms)]]
        for one in choices:
            np.testing.assert_allclose(_polynomial(one, at), wanted, rtol=1e-10, atol=1e-12)


def _sizes(terms):
    return [(push.orders, len(push.ways[0])) for push in planning.pushes_of(terms)]


def test_the_fewest_coefficients_are_carried():
    assert _sizes({(0, 1): 1.0}) == [((1, 1), 1)]  # no digits cancel
    assert _sizes({(i, i): 1.0 + i for i in range(5)}) == [((2,), 5)]
    dense = dict.fromkeys(itertools.combinations_with_replacement(range(5), 2), 1.0)
    assert _sizes(dense) == [((2,), 5)]
    assert _sizes({(0, 0): 1.0, (0, 1): 2.0, (1, 1): 1.0}) == [((2,), 1)]  # a square
    symbols = {one: so.var(f"c{one}", shape=()) for one in dense}
    (by_rows,) = planning.pushes_of(symbols)
    assert by_rows.by_rows
    assert by_rows.cost == 5
    assert _sizes({(0, 0, 1, 1): 1.0}) == [((2, 2), 1)]
    assert _sizes({(0, 0, 0, 0): 1.0, (0, 0, 1, 1): 2.0, (1, 1, 1, 1): 1.0}) == [((4,), 4)]
    assert _sizes({(0, 0, 1): 1.0, (0, 0, 2): 1.0, (0, 0, 0): 1.0}) == [((2, 1), 1)]


def test_combinations_of_linear_values_are_cheap_but_not_free():
    cubes = list(itertools.combinations_with_replacement(range(10), 3))
    of_three = {one: 1.0 for one in cubes if max(one) < 3}
    (push,) = planning.pushes_of(of_three)
    assert push.orders == (3,)
    assert push.basis == [0, 1, 2]
    assert push.cost < sum(one.cost for one in planning.multilinear(of_three)) / 1.5
    assert {one.orders for one in planning.pushes_of(of_three, spans=False)} != {(3,)}
    assert {one.orders for one in planning.pushes_of(dict.fromkeys(cubes, 1.0))} != {(3,)}


# Functions of any kind at orders three and four ---------------------------------------------------

KINDS = {
    "layers": _network,
    "softmax": lambda x: jax.nn.softmax(x @ MIX)[0],
    "product": lambda x: jnp.prod(jax.nn.silu(x)),
    "determinant": lambda x: jnp.linalg.slogdet(jnp.outer(x, x) + 2 * jnp.eye(4))[1],
    "norm": lambda x: jnp.exp(-jnp.sqrt(jnp.sum(x * x))),
    "vmap": lambda x: jax.vmap(lambda row: jnp.sin(row @ x))(MIX.T).prod(),
    "scan": lambda x: jax.lax.scan(lambda c, w: (jnp.sin(w * c) + c, None), x, MIX.T)[0].prod(),
    "branch": lambda x: jax.lax.cond(x[0] > 0, lambda x: jnp.sin(x).prod(), jnp.sum, x),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [3, 4])
def test_general_operators_of_higher_order(order, kind):
    """All derivatives of one order among three coordinates, with numbers and with functions."""
    u, x = KINDS[kind], jnp.asarray(POINT)
    every = list(itertools.combinations_with_replacement((0, 1, 3), order))
    numbers = np.cos(np.arange(1.0, len(every) + 1))
    tensor = np.zeros((4,) * order)
    for number, one in zip(numbers, every, strict=True):
        tensor[one] = number
    derivatives = u
    for _ in range(order):
        derivatives = jax.jacfwd(derivatives)
    wanted = jnp.sum(tensor * jax.jit(derivatives)(x))
    pairs = list(zip(map(float, numbers), every, strict=True))
    operator = so.linear_operator(u, [(c, _orders(one)) for c, one in pairs])
    np.testing.assert_allclose(jax.jit(operator)(x), wanted, rtol=1e-9, atol=1e-11)
    of_x = [(lambda x, c=c: c * x[2], _orders(one)) for c, one in pairs]
    operator = so.linear_operator(u, of_x)
    np.testing.assert_allclose(jax.jit(operator)(x), POINT[2] * wanted, rtol=1e-9, atol=1e-11)


def test_gradients_of_operators_of_higher_order():
    x = jnp.asarray(POINT)
    terms = [(1.0 + i, {(0, i): 1, (0, j): 2}) for i in range(3) for j in range(i)]

    def u(scale):
        return lambda x: _network(scale * x)

    def nested(scale):
        third = jax.jacfwd(jax.jacfwd(jax.jacfwd(u(scale))))(x)
        return sum((1.0 + i) * third[i, j, j] for i in range(3) for j in range(i))

    got = jax.jit(jax.grad(lambda s: so.linear_operator(u(s), terms)(x)))(1.2)
    np.testing.assert_allclose(got, jax.jit(jax.grad(nested))(1.2), rtol=1e-9)


# Functions ---------------------------------------------------------------------------------------


def _inverse_problem(c, b):
    return so.linear_operator(
        _network,
        [(c[0], {(0, 0): 2}), (c[1], {(0, 0): 1, (0, 1): 1}), (b, {(0, 3): 1}), (c[1] * b, {})],
    )


def _inverse_by_jax(c, b):
    def value(x):
        h, g = jax.hessian(_network)(x), jax.grad(_network)(x)
        return c[0] * h[0, 0] + c[1] * h[0, 1] + b * g[3] + c[1] * b * _network(x)

    return value


def test_traced_coefficients():
    """Coefficients that are learnt: gradients by them, under jit and vmap, to second order."""
    c, b, x = jnp.array([0.7, -0.4]), jnp.asarray(1.3), jnp.asarray(POINT)
    for transform in (
        lambda f: lambda c, b: f(c, b)(x),
        lambda f: jax.grad(lambda c, b: f(c, b)(x) ** 2, (0, 1)),
        lambda f: jax.hessian(lambda c, b: f(c, b)(x) ** 2),
        lambda f: lambda c, b: jax.vmap(lambda c: f(c, b)(x))(jnp.stack([c, 2 * c])),
        lambda f: lambda c, b: jax.grad(f(c, b))(x),
        lambda f: lambda c, b: jax.jvp(lambda c: f(c, b)(x), (c,), (jnp.ones(2),)),
    ):
        got, wanted = (jax.jit(transform(f))(c, b) for f in (_inverse_problem, _inverse_by_jax))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8), got, wanted)


def test_arrays_and_eager_arrays_are_coefficients():
    def field(x):
        return jnp.tanh(x @ MIX)

    c = np.cos(np.arange(5.0))
    wanted = c * _nested(field, (0, 0))(jnp.asarray(POINT)) + c * _nested(field, (1,))(
        jnp.asarray(POINT)
    )
    for one in (c, jnp.asarray(c), so.nd.array(c)):
        operator = so.linear_operator(field, [(one, {(0, 0): 2}), (one, {(0, 1): 1})])
        np.testing.assert_allclose(operator(POINT), wanted, rtol=1e-9)
    half = so.linear_operator(_network, [(np.asarray(0.5), {(0, 0): 2})])
    np.testing.assert_allclose(half(POINT), 0.5 * _nested(_network, (0, 0))(jnp.asarray(POINT)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: so.linear_operator(_network, [(x, {0: 1})]), ArgumentError,
         "a coefficient of a function must be a number, an array or a function"),
        (lambda x: so.linear_operator(3.0, [(1, {x: 1})]), ArgumentError, "u must be a symbol"),
        (lambda x: so.linear_operator(so.sum(x), [(1, {x: 1})]), GradientError, "the same entry"),
        (lambda x: so.linear_operator(x, [(1, {"y": 1})]), FeedError, "'y'"),
        (lambda x: so.partial(x, {(x, 0.5): 1}), ArgumentError, "an entry of a vector"),
        (lambda x: so.partial(x, {(x, True): 1}), ArgumentError, "an entry of a vector"),
        (lambda x: so.partial(x, {(x, 0, 1): 1}), ArgumentError, "a key must be a symbol"),
        (lambda x: so.partial(x, {x: True}), ArgumentError, "orders must be integers"),
        (lambda x: so.partial(x, {x: 1.5}), ArgumentError, "orders must be integers"),
        (lambda x: so.partial(x, {x: None}), ArgumentError, "orders must be integers"),
        (lambda x: so.linear_operator(x, [(1, {x: -1})]), ArgumentError,
         "linear_operator: orders must be integers"),
        (lambda x: so.partial(_network, {0: 1})(np.arange(4)), DTypeError,
         "partial: what is differentiated must be of a floating or complex dtype, got int64[4]"),
        (lambda x: so.partial(_network, {(0, 9): 1})(POINT), ArgumentError, "an entry of a vector"),
        (lambda x: so.partial(_network, {1.5: 1})(POINT), ArgumentError, "have an argument 1.5"),
    ],
)  # fmt: skip
def test_misuse(call, error, message):
    with pytest.raises(error) as raised:
        call(so.var("x", shape=(4,), dtype="float64"))
    assert message in str(raised.value)
