"""so.nd: what a request does with the place of a result, and what executors do with gradients."""

import inspect
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import registry
import symop as so
from registry import OpReqType, op, register_simple_op
from registry.errors import ArgumentError, DTypeError, ShapeError, SymopError
from symop.eager.array_api import FUNCTIONS

pytestmark = pytest.mark.usefixtures("temporary_operators")
A = np.array([0.0, 1.0, 2.0], np.float32)


def array():
    return jnp.asarray(A)


def ones():
    return jnp.ones(3)


@pytest.fixture
def doubled():
    """An operator whose result may take the place of its input, and so may its gradient's."""
    return (
        register_simple_op("doubled")
        .set_function(lambda a: 2 * a, "in_out")
        .set_gradient(lambda out_grad: 2 * out_grad, "out_in")
    ).operator


@pytest.fixture
def halves():
    """An operator with two outputs."""

    @op(name="halves", outputs=("low", "high"))
    def halves(x: registry.Array) -> tuple[registry.Array, registry.Array]:
        """The lower and the upper half."""
        return x[: x.shape[0] // 2], x[x.shape[0] // 2 :]

    return halves


# Requests ----------------------------------------------------------------------------------------


def test_without_a_place_it_is_the_operator():
    np.testing.assert_array_equal(so.nd.sin(array()), so.sin(array()))
    np.testing.assert_array_equal(so.nd.sin(A, req="write"), so.sin(A))
    assert so.nd.softmax(A, -1).tolist() == so.softmax(A, axis=-1).tolist()
    assert so.nd.sin == so.nd.sin
    assert hash(so.nd.sin) == hash(so.nd.sin)
    assert "sin" in dir(so.nd)
    assert so.nd.sin.operator is registry.get("sin")
    assert pickle.loads(pickle.dumps(so.nd.sin)) is so.nd.sin
    assert so.nd.sin.__name__ == "sin"


@pytest.mark.parametrize("request_", [None, "write", OpReqType.WRITE])
def test_write_replaces(request_):
    out = ones()
    np.testing.assert_array_equal(so.nd.square(array(), out=out, req=request_), A * A)
    assert not out.is_deleted()


def test_add_accumulates():
    out = ones()
    total = so.nd.square(array(), out=out, req="add")
    total = so.nd.square(array(), out=total, req=OpReqType.ADD)
    np.testing.assert_array_equal(total, 1 + 2 * A * A)
    np.testing.assert_array_equal(out, np.ones(3))


def test_null_computes_nothing():
    out = ones()
    assert so.nd.square(array(), out=out, req="null") is out
    assert so.nd.square(array(), req=OpReqType.NULL) is None
    so.random.seed(0)
    so.nd.dropout(out, training=True, out=out, req="null")
    after = so.nd.dropout(out, training=True)
    so.random.seed(0)
    np.testing.assert_array_equal(after, so.nd.dropout(out, training=True))


def test_write_inplace_takes_the_memory():
    out = ones()
    place = out.unsafe_buffer_pointer()
    result = so.nd.square(array(), out=out, req="write_inplace")
    np.testing.assert_array_equal(result, A * A)
    assert out.is_deleted()
    assert result.unsafe_buffer_pointer() == place


def test_an_operator_that_changes_nothing_writes_its_place_too():
    x, out = array(), ones()
    result = so.nd.identity(x, out=out, req="write_inplace")
    np.testing.assert_array_equal(result, A)
    assert out.is_deleted()
    assert not x.is_deleted()


def test_an_input_is_overwritten_only_where_that_is_declared(doubled):
    x = array()
    assert so.nd.doubled(x, out=x, req="write_inplace").tolist() == [0.0, 2.0, 4.0]
    assert x.is_deleted()
    x = array()
    with pytest.raises(ArgumentError, match=r"square: 'out' must not take the place of .* 'x'"):
        so.nd.square(x, out=x, req="write_inplace")
    np.testing.assert_array_equal(so.nd.square(x, out=x), A * A)
    assert so.nd.square(x, out=x, req="add").tolist() == [0.0, 2.0, 6.0]
    assert not x.is_deleted()


def test_the_second_operand_is_not_the_first():
    register_simple_op("total").set_function(lambda lhs, rhs: lhs + rhs, "lhs_out")
    x, y = array(), ones()
    with pytest.raises(ArgumentError, match="'out' must not take the place of the input 'rhs'"):
        so.nd.total(x, y, out=y, req="write_inplace")
    with pytest.raises(ArgumentError, match="'out' must not take the place of the input 'rhs'"):
        so.nd.total(x, x, out=x, req="write_inplace")
    assert so.nd.total(x, y, out=x, req="write_inplace").tolist() == [1.0, 2.0, 3.0]
    assert x.is_deleted()
    assert not y.is_deleted()


def test_a_gradient_takes_the_place_of_the_cotangent(doubled):
    backward = so.nd._backward_doubled
    head = ones()
    assert backward(head, out=head, req="write_inplace").tolist() == [2.0, 2.0, 2.0]
    assert head.is_deleted()


def test_numpy_arrays_are_written():
    for request, expected in {"write": A * A, "write_inplace": A * A, "add": 1 + A * A}.items():
        out = np.ones(3, np.float32)
        assert so.nd.square(A, out=out, req=request) is out
        np.testing.assert_array_equal(out, expected)
    half = np.ones((3, 2), np.float32)
    so.nd.square(A, out=half[:, 0])
    np.testing.assert_array_equal(half[:, 0], A * A)


def test_random_numbers_do_not_depend_on_the_request():
    draws = []
    for given in ({}, {"out": ones()}, {"out": ones(), "req": "write_inplace"}):
        so.random.seed(4)
        draws.append([so.nd.dropout(array(), training=True, **given) for _ in range(1)])
        draws[-1].append(so.nd.dropout(array(), training=True))
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[0], draws[2])


def test_inside_transformations(doubled):
    @jax.jit
    def step(x, out):
        x = so.nd.doubled(x, out=x, req="write_inplace")
        return so.nd.sin(x, out=out, req="add")

    np.testing.assert_allclose(step(A, A), A + np.sin(2 * A), rtol=1e-6)
    gradient = jax.grad(lambda x: so.nd.square(x, out=x, req="add").sum())(array())
    np.testing.assert_array_equal(gradient, 1 + 2 * A)
    mapped = jax.vmap(lambda x: so.nd.square(x, out=x, req="write"))(array())
    np.testing.assert_array_equal(mapped, A * A)
    with pytest.raises(ArgumentError, match="must be a JAX array inside"):
        jax.jit(lambda x: so.nd.square(x, out=np.ones(3, np.float32)))(A)
    held, out = array(), ones()
    jax.jit(lambda: so.nd.square(held, out=out, req="write_inplace"))()
    assert not out.is_deleted()


def test_what_is_drawn_or_computed_from_numbers_is_an_eager_array():
    drawn, sine = so.nd.random_normal(shape=(3,)), so.nd.sin(1.0)
    assert isinstance(drawn, so.NDArray)
    assert isinstance(sine, so.NDArray)
    np.testing.assert_allclose(sine.item(), np.sin(1.0), rtol=1e-6)
    assert isinstance(so.nd.sin(jnp.ones(2)), jax.Array)
    assert isinstance(so.nd.sin(np.ones(2, np.float32)), jax.Array)


def test_several_outputs(halves):
    x, places = jnp.arange(4.0), (jnp.ones(2), jnp.ones(2))
    low, high = so.nd.halves(x, out=places, req="add")
    assert (low.tolist(), high.tolist()) == ([1.0, 2.0], [3.0, 4.0])
    low, high = so.nd.halves(x, out=places, req="write_inplace")
    assert (low.tolist(), high.tolist()) == ([0.0, 1.0], [2.0, 3.0])
    assert all(one.is_deleted() for one in places)
    for wrong in (jnp.ones(2), (jnp.ones(2),)):
        with pytest.raises(ArgumentError, match=r"halves: out must be a tuple of one .* 2 outputs"):
            so.nd.halves(x, out=wrong)
    place = jnp.ones(2)
    with pytest.raises(ArgumentError, match="halves: the arrays in out must differ"):
        so.nd.halves(x, out=(place, place), req="write_inplace")


def test_variadic_inputs_and_layers():
    out = jnp.zeros(6)
    assert so.nd.concat([A, A], axis=0, out=out, req="write_inplace").shape == (6,)
    total = so.nd.add_n(A, A, out=np.ones(3, np.float32), req="add")
    np.testing.assert_array_equal(total, 1 + 2 * A)
    with pytest.raises(ArgumentError, match="slot 'weight' must be filled"):
        so.nd.fully_connected(np.ones((2, 3)), units=4, out=jnp.ones((2, 4)))


def test_sources_have_a_place():
    register_simple_op("threes").set_function(lambda: jnp.full(3, 3.0))
    register_simple_op("noise").set_resource_request("random").set_function(
        lambda env: env.resource[0].get_random().normal((3,))
    )
    out = ones()
    assert so.nd.threes(out=out, req="write_inplace").tolist() == [3.0, 3.0, 3.0]
    assert out.is_deleted()
    so.random.seed(1)
    plain = so.nd.noise()
    so.random.seed(1)
    np.testing.assert_array_equal(so.nd.noise(out=ones(), req="write_inplace"), plain)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: so.nd.sin(so.var("x")), ArgumentError, "so.sym.sin symbols, got a Symbol"),
        (lambda: so.nd.sin(A, out=so.var("x")), ArgumentError, "got a Symbol"),
        (lambda: so.nd.add_n([A, so.var("x")]), ArgumentError, "got a Symbol"),
        (lambda: so.nd.sin(A, out=ones(), req="ad"), ArgumentError, "did you mean 'add'"),
        (lambda: so.nd.sin(A, req="add"), ArgumentError, "req=add needs out=, got none"),
        (lambda: so.nd.sin(A, out=[1.0, 2.0, 3.0]), ArgumentError, "of 3"),
        (lambda: so.nd.sin(A, out=1.0), ArgumentError, "out must be an array, got float"),
        (lambda: so.nd.sin(A, out=jnp.ones(2)), ShapeError, r"shape \(3,\), got \(2,\)"),
        (lambda: so.nd.sin(A, out=jnp.ones(3, int)), DTypeError, "dtype float32, got int32"),
        (lambda: so.nd.sin(A, out=np.ones(3)), DTypeError, "dtype float32, got float64"),
        (lambda: so.nd.sin("a", out=ones()), ArgumentError, "'x' must hold an array or a number"),
        (lambda: so.nd.sin(A, out=ones(), name="n"), ArgumentError, "only symbols can be named"),
        (
            lambda: so.nd.minus(A, A[:2], out=ones()),
            ShapeError,
            "minus: x and y must have the same",
        ),
        (lambda: so.nd.sinn, AttributeError, "did you mean 'sin'"),
    ],
)
def test_misuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_refused_call_leaves_its_place():
    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="must be writeable"):
        so.nd.sin(A, out=frozen)
    out = ones()
    with pytest.raises(SymopError):
        so.nd.minus(A, A[:2], out=out, req="write_inplace")
    assert not out.is_deleted()


def test_another_look_at_an_input_is_the_input(doubled):
    x = array()
    with pytest.raises(ArgumentError, match="square: 'out' must not take the place of the input"):
        so.nd.square(x, out=x.addressable_data(0), req="write_inplace")
    assert so.nd.doubled(x, out=x.addressable_data(0), req="write_inplace").tolist() == [0, 2, 4]
    assert x.is_deleted()


@pytest.mark.parametrize("request_", ["add", "write_inplace"])
def test_a_deleted_place_is_refused(request_):
    out = ones()
    out.delete()
    with pytest.raises(ArgumentError, match="square: out must be an array that exists"):
        so.nd.square(A, out=out, req=request_)
    np.testing.assert_array_equal(so.nd.square(A, out=out), A * A)


def test_null_checks_the_call_all_the_same():
    assert so.nd.square(A, req="null") is None
    for wrong in ({}, {"x": A, "y": A}, {"x": A, "name": "n"}):
        with pytest.raises(ArgumentError, match="square: "):
            so.nd.square(**wrong, req="null")


def test_a_numpy_place_is_refused_before_anything_is_computed():
    ran = []
    register_simple_op("watched").set_function(lambda a: (ran.append(1), a)[1])
    so.nd.watched(A)
    before = len(ran)
    with pytest.raises(ArgumentError, match="watched: out must be a JAX array inside"):
        jax.jit(lambda x: so.nd.watched(x, out=np.ones(3, np.float32)))(A)
    assert len(ran) == before


def test_the_module_shows_operators():
    assert set(dir(so.nd)) == {*registry.names(aliases=True), *so.nd.__all__, *FUNCTIONS}
    for name in ("jnp", "_find_", "functools", "__wrapped__"):
        assert not hasattr(so.nd, name)
    assert so.nd.OpReqType is OpReqType


def test_a_gradient_is_called_by_its_name(doubled):
    head = ones()
    result = so.nd._backward_doubled(head, out=head, req="write_inplace")
    assert result.tolist() == [2.0, 2.0, 2.0]
    assert head.is_deleted()


def test_operators_tell_how_they_are_called():
    def text(operator):
        return str(inspect.signature(operator))

    assert text(so.nd.softmax) == (
        "(x, axis: int | tuple[int, ...] = -1, temperature: float = 1.0, *, out=None, req=None)"
    )
    assert text(so.nd.add_n).startswith("(*")
    assert "key=LEFT_OUT" in text(so.nd.dropout)
    assert text(so.nd.fully_connected).startswith("(data, weight, bias=LEFT_OUT, *, units: int")
    register_simple_op("led").set_enable_scalar(order="scalar_array").set_function(lambda a, env: a)
    assert text(so.nd.led) == "(scalar: float, a, *, out=None, req=None)"
    for name in registry.names():
        inspect.signature(getattr(so.nd, name))
    assert so.nd.led.__doc__ == "The operator ``led(scalar, a)``."
    with pytest.raises(AttributeError):
        _ = so.nd.led.signatur


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float16", "float32"])
def test_a_dtype_that_is_asked_for_is_that_of_the_result(dtype):
    x, a = so.nd.array(np.full((2, 3), 5), dtype=dtype), np.full((2, 3), 5)
    for ours, theirs in (
        (so.nd.sum(x, axis=1, dtype=dtype), a.sum(1, dtype=dtype)),
        (so.nd.prod(x, dtype=dtype), a.astype(dtype).prod(dtype=dtype)),
        (so.nd.cumulative_sum(x, axis=1, dtype=dtype), a.cumsum(1, dtype=dtype)),
        (so.nd.cumulative_prod(x, axis=1, dtype=dtype), a.cumprod(1, dtype=dtype)),
        (so.nd.linalg.trace(x, dtype=dtype), a.trace(dtype=dtype)),
    ):
        assert ours.dtype == theirs.dtype == dtype
        np.testing.assert_array_equal(ours, theirs)


MATRICES = np.random.default_rng(5).normal(size=(2, 4, 3)).astype(np.float32)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_of_matrices_have_gradients(ord, keepdims):
    x = so.nd.array(MATRICES)
    x.attach_grad()
    with so.autograd.record():
        norms = so.nd.linalg.matrix_norm(x, ord=ord, keepdims=keepdims)
    expected = np.linalg.norm(MATRICES, ord, axis=(1, 2), keepdims=keepdims)
    np.testing.assert_allclose(norms, expected, rtol=1e-5)
    norms.backward()
    slope = jax.jit(jax.grad(lambda a: jnp.linalg.matrix_norm(a, ord=ord).sum()))(MATRICES)
    np.testing.assert_allclose(x.grad, slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, 2, np.inf])
def test_norms_of_empty_matrices_are_zero(ord):
    for shape in ((0, 3), (3, 0), (2, 0, 3)):
        norms = so.nd.linalg.matrix_norm(so.nd.zeros(shape), ord=ord)
        np.testing.assert_array_equal(norms, np.zeros(shape[:-2]))


def test_a_grid_of_nothing():
    assert so.nd.meshgrid() == []


def test_a_norm_of_matrices_has_a_known_order():
    with pytest.raises(ArgumentError, match="matrix_norm: ord must be one of 'fro', 'nuc', 2"):
        so.nd.linalg.matrix_norm(so.nd.array(MATRICES), ord=3)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_pseudoinverses_with_a_tolerance_for_each_matrix(dtype):
    a = MATRICES.astype(dtype) * (1j if dtype == "complex64" else 1)
    for rtol in (0.1, np.array([0.9, 0.0], np.float32), so.nd.array([0.0, 0.5])):
        found = so.nd.linalg.pinv(so.nd.array(a), rtol=rtol)
        expected = np.linalg.pinv(a, rcond=np.asarray(rtol))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


# Executors ---------------------------------------------------------------------------------------


def bound(grad_req, **gradients):
    x, y = so.var("x", shape=(3,)), so.var("y", shape=(3,))
    symbol = so.square(x) + y
    return symbol.bind({"x": A, "y": A}, gradients or None, grad_req=grad_req)


def stepped(executor):
    """The gradient arrays before a step; they are replaced by it."""
    before = dict(executor.grad_dict)
    executor.forward(is_train=True)
    executor.backward()
    return before


@pytest.mark.parametrize("request_", ["write_inplace", OpReqType.WRITE_INPLACE])
def test_gradients_are_written_in_place(request_):
    executor = bound(request_)
    for _ in range(3):  # the cotangent is handed through to y, and must not be overwritten
        before = stepped(executor)
        assert all(one.is_deleted() for one in before.values())
        np.testing.assert_array_equal(executor.grad_dict["x"], 2 * A)
        np.testing.assert_array_equal(executor.grad_dict["y"], np.ones(3))


def test_each_gradient_has_its_request():
    executor = bound({"x": OpReqType.WRITE_INPLACE, "y": OpReqType.ADD})
    stepped(executor)
    before = stepped(executor)
    assert before["x"].is_deleted()
    assert not before["y"].is_deleted()
    np.testing.assert_array_equal(executor.grad_dict["x"], 2 * A)
    np.testing.assert_array_equal(executor.grad_dict["y"], np.full(3, 2.0))
    assert set(bound([OpReqType.NULL, "write"]).grad_dict) == {"y"}


def test_what_is_still_read_is_not_overwritten():
    shared = array()
    x = so.var("x", shape=(3,))
    executor = so.square(x).bind({"x": shared}, {"x": shared}, grad_req="write_inplace")
    executor.forward(is_train=True)
    executor.backward(shared)
    np.testing.assert_array_equal(executor.grad_dict["x"], 2 * A * A)
    assert not shared.is_deleted()


def test_an_unknown_request_is_refused():
    with pytest.raises(ArgumentError, match="null, write, write_inplace, add, got 'inplace'"):
        bound("inplace")


def test_old_gradients_that_do_not_serve_are_left_alone():
    executor = bound("write_inplace")
    stepped(executor)
    executor.grad_dict["x"].delete()
    executor.grad_dict["y"] = wrong = jnp.ones(2)
    stepped(executor)
    executor.grad_dict["y"] = half = jnp.ones(3, jnp.bfloat16)
    stepped(executor)
    np.testing.assert_array_equal(executor.grad_dict["x"], 2 * A)
    np.testing.assert_array_equal(executor.grad_dict["y"], np.ones(3))
    assert not wrong.is_deleted()
    assert not half.is_deleted()


@pytest.mark.parametrize("alias", [lambda one: one, lambda one: one.addressable_data(0)])
def test_what_another_entry_holds_is_not_overwritten(alias):
    executor = bound({"x": "write_inplace", "y": "add"})
    shared = array()
    executor.grad_dict.update(x=shared, y=alias(shared))
    stepped(executor)
    np.testing.assert_array_equal(executor.grad_dict["x"], 2 * A)
    np.testing.assert_array_equal(executor.grad_dict["y"], 1 + A)
    executor.grad_dict["x"] = executor.arg_dict["y"]
    stepped(executor)
    np.testing.assert_array_equal(executor.arg_dict["y"], A)


@pytest.mark.parametrize("wrong", [1, None, {"x": 1}, [None, "add"]])
def test_a_request_must_be_a_word(wrong):
    with pytest.raises(ArgumentError, match="grad_req: must be one of null, write"):
        bound(wrong)
