"""Sparse arrays of MXNet in training: gradients, updates, executors, modules, stores, iterators."""

import warnings

import jax
import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

import symop.interop.mxnet as mx
from symop.interop.mxnet import autograd, nd, storage
from symop.interop.mxnet.errors import MXNetError, MXNetFormatError
from symop.interop.mxnet.storage import StorageFallbackWarning
from symop.interop.mxnet.storage_inference import StorageTypes
from symop.interop.mxnet.stored_executor import StoredExecutor

ROWS = np.array([[0, 0], [1, -2], [0, 0], [3, 4], [0, 0]], np.float32)
MATRIX = np.array([[0, 1, 0, 0, 4], [2, 0, 0, -3, 0], [0, 0, 0, 0, 0]], np.float32)


@pytest.fixture(autouse=True)
def _each_fallback_warns():
    storage.forget_warnings()


def parts(array):
    """The stored rows, as a dict from numbers to values."""
    assert array.stype == "row_sparse"
    return dict(zip(array.indices.asnumpy().tolist(), array.data.asnumpy().tolist(), strict=True))


# Gradients


def test_the_gradient_of_a_product_stores_the_rows_that_columns_name():
    weight = nd.array(np.arange(10.0).reshape(5, 2))
    weight.attach_grad(stype="row_sparse")
    assert parts(weight.grad) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with autograd.record():
            y = nd.sparse.dot(nd.array(MATRIX).tostype("csr"), weight)
            loss = (y * y).sum()
        loss.backward()
    expected = 2 * MATRIX.T @ (MATRIX @ weight.asnumpy())
    assert sorted(parts(weight.grad)) == [0, 1, 3, 4]
    assert_allclose(weight.grad.asnumpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "look_up",
    [
        lambda w, i: nd.Embedding(i, w, input_dim=5, output_dim=2, sparse_grad=True),
        lambda w, i: nd.contrib.SparseEmbedding(i, w, input_dim=5, output_dim=2),
        nd.take,
    ],
)
@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_the_gradient_of_a_lookup_stores_the_rows_that_it_names(look_up, stype):
    weight = nd.array(ROWS).tostype(stype)
    weight.attach_grad(stype="row_sparse")
    with autograd.record():
        y = look_up(weight, nd.array([1, 4, 1]))
    y.backward(nd.array([[1, 2], [3, 4], [5, 6]]))
    assert_allclose(y.asnumpy(), ROWS[[1, 4, 1]])
    assert parts(weight.grad) == {1: [6, 8], 4: [3, 4]}


def test_requests():
    weight = nd.ones((5, 2))
    weight.attach_grad("add", stype="row_sparse")
    for numbers in ([1, 2], [2, 4]):
        with autograd.record():
            y = nd.take(weight, nd.array(numbers))
        y.backward()
    assert parts(weight.grad) == {1: [1, 1], 2: [2, 2], 4: [1, 1]}
    weight.grad[:] = 0
    assert weight.grad.asnumpy().sum() == 0


def test_a_dense_gradient_in_a_csr_array():
    x = nd.array(MATRIX)
    x.attach_grad(stype="csr")
    with autograd.record():
        y = x * nd.array(MATRIX)
    y.backward()
    with pytest.warns(StorageFallbackWarning, match="to csr"):
        assert x.grad.stype == "csr"
    assert_allclose(x.grad.asnumpy(), MATRIX)
    assert x.grad.data.shape == (4,)
    x.attach_grad("add", stype="csr")
    for _ in range(2):
        with autograd.record():
            y = x * nd.array(MATRIX)
        y.backward()
    assert_allclose(x.grad.asnumpy(), 2 * MATRIX)


def looked_up(table):
    return nd.Embedding(nd.array([1, 3]), table, input_dim=5, output_dim=2, sparse_grad=True)


@pytest.mark.parametrize(
    "reads", [looked_up, lambda table: nd.sparse.dot(nd.array(MATRIX).tostype("csr"), table)]
)
def test_a_dense_gradient_in_a_row_sparse_array_warns(reads):
    weight = nd.ones((5, 2))
    weight.attach_grad(stype="row_sparse")
    with autograd.record():
        y = reads(2 * weight)
    y.backward()
    with pytest.warns(StorageFallbackWarning, match="the gradient of an array"):
        assert weight.grad.stype == "row_sparse"
    plain = nd.ones((5, 2))
    plain.attach_grad()
    with autograd.record():
        y = reads(2 * plain)
    y.backward()
    assert_allclose(weight.grad.asnumpy(), plain.grad.asnumpy())


def test_a_dense_gradient_of_row_sparse_weights_warns():
    weight = nd.array(ROWS).tostype("row_sparse")
    update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5))
    with pytest.warns(StorageFallbackWarning, match="SGD"):
        update(0, nd.ones((5, 2)), weight)
    assert_allclose(weight.asnumpy(), ROWS - 0.5)


def test_given_gradients():
    x, held = nd.array(ROWS).tostype("row_sparse"), nd.zeros((5, 2), stype="row_sparse")
    autograd.mark_variables([x], [held])
    with autograd.record():
        y = nd.square(x)
    y.backward(nd.ones((5, 2)))
    assert x.grad is held
    assert parts(held) == {1: [2, -4], 3: [6, 8]}


STYPES = ("default", "csr", "row_sparse")


@pytest.mark.filterwarnings("ignore::symop.interop.mxnet.storage.StorageFallbackWarning")
@pytest.mark.parametrize("given", [*STYPES, None])
@pytest.mark.parametrize("stype", STYPES)
def test_a_gradient_has_a_storage_type_of_its_own(stype, given):
    x = nd.array(MATRIX).tostype(stype)
    x.attach_grad(stype=given)
    expected = stype if given is None else given
    assert (x.grad.stype, x.grad.shape) == (expected, x.shape)
    assert not x.grad.asnumpy().any()
    assert (x.detach().stype, x.detach().grad) == (stype, None)
    with autograd.record():
        y = x * 3
    y.backward()
    assert x.grad.stype == expected
    assert_allclose(x.grad.asnumpy(), np.full(MATRIX.shape, 3))


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (nd.square, lambda x: 2 * x), (nd.sin, np.cos), (nd.relu, lambda x: x > 0),
        (lambda x: x * 3, lambda x: 3 + 0 * x), (lambda x: x - 0, lambda x: 1 + 0 * x),
        (lambda x: 0 - x, lambda x: -1 + 0 * x), (lambda x: -x, lambda x: -1 + 0 * x),
        (lambda x: x + x, lambda x: 2 + 0 * x), (lambda x: x * x, lambda x: 2 * x),
        (lambda x: x.tostype("default") * 2, lambda x: 2 + 0 * x),
        (lambda x: nd.sparse.square_sum(x, axis=1), lambda x: 2 * x),
        (lambda x: x.retain(nd.array([1, 2])), lambda x: [[0], [1], [1], [0], [0]] + 0 * x),
    ],
)  # fmt: skip
def test_gradients_of_rows(function, slope):
    x = nd.array(ROWS).tostype("row_sparse")
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward(nd.ones(y.shape))
    expected = np.broadcast_to(slope(ROWS), ROWS.shape)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert x.grad.stype == "row_sparse"
    stored = x.grad.indices.asnumpy()
    assert [one.category for one in told] == [StorageFallbackWarning] * (len(stored) == len(ROWS))
    assert_allclose(x.grad.asnumpy()[stored], expected[stored], rtol=1e-5)
    assert not np.delete(expected, stored, 0).any() or len(stored) == 2


@pytest.mark.parametrize(
    ("function", "slope"),
    [(lambda x: x + 0, 1), (lambda x: 0 - x, -1), (lambda x: x * 3, 3), (lambda x: -x, -1)],
)
def test_linear_functions_keep_the_rows_of_a_gradient(function, slope):
    x = nd.array(ROWS).tostype("row_sparse")
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward(nd.sparse.row_sparse_array(([[1, 2]], [1]), shape=(5, 2)))
    assert parts(x.grad) == {1: [slope, 2 * slope]}


def test_gradients_of_a_csr_array_are_dense_with_a_warning():
    x = nd.array(MATRIX).tostype("csr")
    x.attach_grad(stype="default")
    with pytest.warns(StorageFallbackWarning, match="the gradient of square"), autograd.record():
        y = nd.square(x)
    assert y.stype == "csr"
    y.backward(nd.ones(MATRIX.shape))
    assert_allclose(x.grad.asnumpy(), 2 * MATRIX)


# Updates


def dense_rule(name):
    """A step by each optimizer on dense arrays, for comparison."""
    return {
        "sgd": {"learning_rate": 0.1, "wd": 0.3},
        "sgd momentum": {"learning_rate": 0.1, "wd": 0.3, "momentum": 0.9},
        "adam": {"learning_rate": 0.1, "wd": 0.3},
        "adagrad": {"learning_rate": 0.1},
        "ftrl": {"learning_rate": 0.1, "wd": 0.3},
        "groupadagrad": {"learning_rate": 0.1},
    }[name]


NAMES = ("sgd", "sgd momentum", "adam", "adagrad", "ftrl", "groupadagrad")


LAZY = [(name, stype) for name in NAMES for stype in ("default", "row_sparse")]


# As in MXNet, Ftrl has no rule for a dense parameter.
@pytest.mark.parametrize(("name", "stype"), [one for one in LAZY if one != ("ftrl", "default")])
def test_rows_of_a_gradient_alone_are_updated(name, stype):
    made = [mx.optimizer.create(name.split()[0], **dense_rule(name)) for _ in "12"]
    start = np.arange(1.0, 11).reshape(5, 2).astype(np.float32)
    dense, stored = nd.array(start), nd.array(start).tostype(stype)
    updates = [mx.optimizer.get_updater(one) for one in made]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            updates[0](0, nd.array(ROWS), dense)
            updates[1](0, nd.array(ROWS).tostype("row_sparse"), stored)
    found = stored.asnumpy()
    assert stored.stype == stype
    assert_allclose(found[[1, 3]], dense.asnumpy()[[1, 3]], rtol=1e-5)
    assert_allclose(found[[0, 2, 4]], start[[0, 2, 4]])


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_adagrad_decays_the_rows_of_a_gradient_alone(stype):
    """MXNet raises an error if the weight decay of a row-sparse gradient is not zero."""
    start = np.arange(1.0, 11).reshape(5, 2)
    weight, history, expected = nd.array(start).tostype(stype), np.zeros((5, 2)), start.copy()
    update = mx.optimizer.get_updater(mx.optimizer.AdaGrad(learning_rate=0.5, wd=0.1))
    for _ in range(2):
        update(0, nd.array(ROWS).tostype("row_sparse"), weight)
        history += ROWS**2
        for row in (1, 3):
            step = ROWS[row] / np.sqrt(history[row] + 1e-7)
            expected[row] -= 0.5 * (step + 0.1 * expected[row])
    assert weight.stype == stype
    assert_allclose(weight.asnumpy(), expected, rtol=1e-5)
    assert_allclose(update.states[0].asnumpy(), history)


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_the_update_of_adagrad_has_no_weight_decay(stype):
    weight, history = nd.ones((5, 2)).tostype(stype), nd.zeros((5, 2)).tostype(stype)
    grad = nd.array(ROWS).tostype("row_sparse")
    with (
        pytest.warns(StorageFallbackWarning, match="adagrad"),
        pytest.raises(MXNetError, match="wd must be 0"),
    ):
        nd.sparse.adagrad_update(weight, grad, history, lr=0.5, wd=0.1, out=weight)
    assert_allclose(weight.asnumpy(), 1)
    assert not history.asnumpy().any()


@pytest.mark.parametrize("name", ["sgd", "sgd momentum", "adam"])
def test_a_standard_update_is_of_all_rows(name):
    made = [
        mx.optimizer.create(name.split()[0], lazy_update=lazy, **dense_rule(name))
        for lazy in (True, False)
    ]
    start = np.arange(1.0, 11).reshape(5, 2).astype(np.float32)
    dense, stored = nd.array(start), nd.array(start).tostype("row_sparse")
    updates = [mx.optimizer.get_updater(one) for one in made]
    for _ in range(2):
        updates[0](0, nd.array(ROWS), dense)
        updates[1](0, nd.array(ROWS).tostype("row_sparse"), stored)
    assert_allclose(stored.asnumpy(), dense.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("name", ["sgd momentum", "adam", "adagrad"])
def test_sparse_and_dense_parameters_are_updated_by_one_program(name):
    """As by one update each; a gradient of another shape changes nothing."""
    numbers = np.arange(1.0, 11, dtype=np.float32).reshape(5, 2)
    together, alone = (
        mx.optimizer.get_updater(mx.optimizer.create(name.split()[0], **dense_rule(name)))
        for _ in "12"
    )
    ours, theirs = (
        [nd.array(numbers).tostype("row_sparse"), nd.array([1.0, 2.0]), nd.array(numbers)]
        for _ in "12"
    )
    grads = [nd.array(ROWS).tostype("row_sparse"), nd.array([0.5, -1.0]), nd.array(ROWS)]
    for _ in range(3):
        together([0, 1, 2], grads, ours)
        for each in zip(range(3), grads, theirs, strict=True):
            alone(*each)
    for one, other in zip(ours, theirs, strict=True):
        assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-6)
    (step,) = together.optimizer._known.values()
    assert step._cache_size() == 1
    before = [one.asnumpy() for one in ours]
    with pytest.raises(MXNetError, match="shape"):
        together([0, 1, 2], [grads[0], nd.array([1.0, 2.0, 3.0]), grads[2]], ours)
    for one, other in zip(ours, before, strict=True):
        assert_allclose(one.asnumpy(), other)
    assert together.optimizer.num_update == 3


def test_a_parameter_that_is_named_twice_is_updated_twice():
    update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5))
    weight, grad = nd.ones((5, 2)).tostype("row_sparse"), nd.array(ROWS).tostype("row_sparse")
    update([0, 1], [grad, grad], [weight, weight])
    assert_allclose(weight.asnumpy(), 1 - ROWS)


def test_states_of_rows_are_restored():
    made = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9)
    update, weight = mx.optimizer.get_updater(made), nd.ones((5, 2)).tostype("row_sparse")
    update(0, nd.array(ROWS).tostype("row_sparse"), weight)
    again = mx.optimizer.get_updater(made)
    again.set_states(update.get_states())
    assert again.states[0].stype == "row_sparse"
    assert_allclose(again.states[0].asnumpy(), -0.1 * ROWS, rtol=1e-6)


def test_an_optimizer_without_a_rule_warns():
    update = mx.optimizer.get_updater(mx.optimizer.NAG(learning_rate=0.1, momentum=0.9))
    weight = nd.ones((5, 2))
    with pytest.warns(StorageFallbackWarning, match="NAG"):
        update(0, nd.array(ROWS).tostype("row_sparse"), weight)
    assert_allclose(weight.asnumpy(), 1 - 0.19 * ROWS, rtol=1e-5)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_mixed_precision_decays_all_rows(momentum):
    """MXNet's operators for half precision have no row-sparse form."""
    start = nd.array(np.arange(1.0, 11).reshape(5, 2), dtype="float16")
    grads = [nd.array(ROWS, dtype="float16"), nd.array(ROWS, dtype="float16").tostype("row_sparse")]
    weights = [start.copy(), start.tostype("row_sparse")]
    for weight, grad in zip(weights, grads, strict=True):
        made = mx.optimizer.SGD(momentum, multi_precision=True, learning_rate=0.1, wd=0.5)
        update = mx.optimizer.get_updater(made)
        if grad.stype == "row_sparse":
            with pytest.warns(StorageFallbackWarning, match="SGD"):
                update(0, grad, weight)
        else:
            update(0, grad, weight)
        update(0, grad, weight)
    assert weights[1].stype == "row_sparse"
    assert_allclose(weights[1].asnumpy(), weights[0].asnumpy())
    others = [0, 2, 4]
    assert np.all(weights[1].asnumpy()[others] < start.asnumpy()[others])


def test_update_operators():
    grad = nd.array(ROWS).tostype("row_sparse")
    for weight in (nd.ones((5, 2)), nd.ones((5, 2)).tostype("row_sparse")):
        found = nd.sgd_update(weight, grad, lr=0.5, wd=0.2)
        assert found.stype == weight.stype
        expected = np.ones((5, 2))
        expected[[1, 3]] = 0.9 - 0.5 * ROWS[[1, 3]]
        assert_allclose(found.asnumpy(), expected, rtol=1e-6)
        assert_allclose(weight.asnumpy(), 1)
        nd.sgd_update(weight, grad, lr=0.5, wd=0.2, lazy_update=False, out=weight)
        assert_allclose(weight.asnumpy(), 0.9 - 0.5 * ROWS, rtol=1e-6)
    weight, mom = nd.ones((5, 2)), nd.ones((5, 2))
    nd.sgd_mom_update(weight, grad, mom, lr=0.5, momentum=0.5, out=weight)
    assert_allclose(mom.asnumpy()[[0, 1]], [[1, 1], [0, 1.5]])
    history = nd.zeros((5, 2))
    nd.sparse.adagrad_update(weight, grad, history, lr=0.1, out=weight)
    assert_allclose(history.asnumpy(), ROWS**2)


# Executors


def test_storage_types_of_a_graph():
    x, w = mx.sym.var("x", stype="csr"), mx.sym.var("w", stype="row_sparse")
    assert x.attr("__storage_type__") == "2"
    assert mx.sym.var("v", stype="default").attr("__storage_type__") == "0"
    y = mx.sym.sparse.dot(x, w)
    assert y.infer_storage_type() == (["csr", "row_sparse"], ["default"], [])
    turned = mx.sym.sparse.dot(x, mx.sym.var("v"), transpose_a=True)
    assert turned.infer_storage_type()[1] == ["row_sparse"]
    assert mx.sym.load_json(y.tojson()).infer_storage_type() == y.infer_storage_type()
    table = mx.sym.var("w", stype="row_sparse")
    found = mx.sym.Embedding(x, table, input_dim=5, output_dim=2, sparse_grad=True)
    assert StorageTypes(found.heads, {"x": "default"}).gradients()["w"] == "row_sparse"
    with pytest.raises(MXNetError, match="stype must be one of"):
        mx.sym.var("x", stype="sparse")
    with pytest.raises(MXNetError, match="stype must be one of"):
        y.infer_storage_type(x="sparse")


def test_an_executor_of_sparse_arrays():
    y = mx.sym.sparse.dot(mx.sym.var("x"), mx.sym.var("w"), name="y")
    requests = {"x": "null", "w": "write"}
    bound = y.simple_bind(stype_dict={"x": "csr"}, grad_req=requests, x=(3, 5), w=(5, 2))
    assert isinstance(bound, StoredExecutor)
    assert [bound.arg_dict["x"].stype, bound.grad_dict["w"].stype] == ["csr", "row_sparse"]
    weight = np.arange(10.0).reshape(5, 2)
    bound.arg_dict["w"][:] = weight
    (found,) = bound.forward(is_train=True, x=nd.array(MATRIX).tostype("csr"))
    assert_allclose(found.asnumpy(), MATRIX @ weight)
    along = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    bound.backward(nd.array(along))
    assert sorted(parts(bound.grad_dict["w"])) == [0, 1, 3, 4]
    assert_allclose(bound.grad_dict["w"].asnumpy(), MATRIX.T @ along)
    again = bound.reshape(x=(2, 5))
    assert again.arg_dict["w"] is bound.arg_dict["w"]
    assert again.forward(x=nd.array(MATRIX[:2]).tostype("csr"))[0].shape == (2, 2)


def embedding(i, w):
    return mx.sym.Embedding(i, w, input_dim=5, output_dim=2, sparse_grad=True)


def sparse_embedding(i, w):
    return mx.sym.contrib.SparseEmbedding(i, w, input_dim=5, output_dim=2, deterministic=True)


def take(i, w):
    return mx.sym.take(w, i)


LOOKUPS = [embedding, sparse_embedding, take]
# The gradient of take is row-sparse where the table is, or the array that is bound for it.
TABLES = [
    (look_up, stype)
    for look_up in LOOKUPS
    for stype in ("default", "row_sparse")
    if (look_up, stype) != (take, "default")
]
ALONG = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


def scattered(*numbers):
    """The gradient of a table along ``ALONG``, for each of several passes, in total."""
    total = np.zeros((5, 2), np.float32)
    for each in numbers:
        np.add.at(total, each, ALONG)
    return total


@pytest.mark.parametrize(("look_up", "stype"), TABLES)
def test_an_executor_stores_the_rows_that_a_lookup_names(look_up, stype):
    net = look_up(mx.sym.var("i"), mx.sym.var("w", stype=stype))
    bound = net.simple_bind(grad_req={"i": "null", "w": "write"}, i=(3,), w=(5, 2))
    assert [bound.arg_dict["w"].stype, bound.grad_dict["w"].stype] == [stype, "row_sparse"]
    bound.arg_dict["w"][:] = nd.array(ROWS).tostype(stype)
    for numbers, named in (([1, 4, 1], [1, 4]), ([2, 3, 0], [0, 2, 3])):
        (found,) = bound.forward(is_train=True, i=nd.array(numbers))
        assert_allclose(found.asnumpy(), ROWS[numbers])
        for _ in range(2):
            bound.backward(nd.array(ALONG))
            assert sorted(parts(bound.grad_dict["w"])) == named
            assert_allclose(bound.grad_dict["w"].asnumpy(), scattered(numbers))


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_a_lookup_has_a_dense_gradient_unless_it_is_told_otherwise(stype):
    w = mx.sym.var("w", stype=stype)
    net = mx.sym.Embedding(mx.sym.var("i"), w, input_dim=5, output_dim=2)
    bound = net.simple_bind(grad_req={"i": "null", "w": "write"}, i=(3,))
    assert bound.grad_dict["w"].stype == "default"
    bound.forward(is_train=True, i=nd.array([1, 4, 1]))
    bound.backward(nd.array(ALONG))
    assert_allclose(bound.grad_dict["w"].asnumpy(), scattered([1, 4, 1]))


@pytest.mark.parametrize("request_", ["write", "add"])
@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("look_up", LOOKUPS)
def test_a_lookup_writes_to_a_row_sparse_array_that_is_bound(look_up, stype, request_):
    place = nd.sparse.zeros("row_sparse", (5, 2))
    net = look_up(mx.sym.var("i"), mx.sym.var("w"))
    arrays = {"i": nd.zeros(3), "w": nd.array(ROWS).tostype(stype)}
    bound = net.bind(args=arrays, args_grad={"w": place}, grad_req={"i": "null", "w": request_})
    passes = [1, 4, 1], [2, 2, 4]
    for numbers in passes:
        bound.forward(is_train=True, i=nd.array(numbers))
        bound.backward(nd.array(ALONG))
    assert bound.grad_dict["w"] is place
    assert sorted(parts(place)) == ([1, 2, 4] if request_ == "add" else [2, 4])
    expected = scattered(*passes) if request_ == "add" else scattered(passes[1])
    assert_allclose(place.asnumpy(), expected)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize(("look_up", "stype"), TABLES)
def test_a_module_updates_the_rows_that_a_lookup_names(look_up, stype, momentum):
    w = mx.sym.var("table_weight", stype=stype, shape=(5, 2))
    module = mx.mod.Module(mx.sym.MakeLoss(look_up(mx.sym.var("data"), w)), label_names=None)
    module.bind([("data", (3,))])
    module.init_params(mx.init.One())
    params = {"learning_rate": 0.5, "wd": 0.25, "momentum": momentum, "rescale_grad": 1.0}
    module.init_optimizer(optimizer_params=params)
    expected, speed = np.ones((5, 2)), np.zeros((5, 2))
    for numbers in ([1, 4, 1], [4, 2, 2]):
        module.forward_backward(mx.io.DataBatch([nd.array(numbers)]))
        module.update()
        for row in set(numbers):
            grad = numbers.count(row) + 0.25 * expected[row]
            speed[row] = momentum * speed[row] - 0.5 * grad
            expected[row] += speed[row]
    weight = module.get_params()[0]["table_weight"]
    assert weight.stype == stype
    assert_allclose(weight.asnumpy(), expected, rtol=1e-6)


def test_gradients_of_both_factors():
    y = mx.sym.dot(mx.sym.var("x", stype="csr"), mx.sym.var("w"))
    bound = y.simple_bind(x=(3, 5), w=(5, 2))
    weight, along = np.arange(10.0).reshape(5, 2), np.arange(6.0).reshape(3, 2)
    with pytest.warns(StorageFallbackWarning, match="dot with respect to a csr array"):
        bound.forward(is_train=True, x=nd.array(MATRIX), w=nd.array(weight))
    bound.backward(nd.array(along))
    assert_allclose(bound.grad_dict["x"].asnumpy(), along @ weight.T)
    assert bound.grad_dict["w"].stype == "row_sparse"


@pytest.mark.parametrize("count", [2, 3])
def test_a_sum_of_tables_passes_rows_on(count):
    tables = [mx.sym.var(f"w{i}", stype="row_sparse") for i in range(count)]
    y = mx.sym.dot(mx.sym.var("x", stype="csr"), mx.sym.add_n(*tables))
    requests = dict.fromkeys([f"w{i}" for i in range(count)], "write")
    bound = y.simple_bind(grad_req=requests, x=(3, 5), w0=(5, 2))
    weights = {f"w{i}": nd.array(ROWS * (i + 1)) for i in range(count)}
    (found,) = bound.forward(is_train=True, x=nd.array(MATRIX), **weights)
    assert_allclose(found.asnumpy(), MATRIX @ ROWS * count * (count + 1) / 2)
    bound.backward(nd.ones((3, 2)))
    for name in weights:
        gradient = bound.grad_dict[name]
        assert sorted(parts(gradient)) == [0, 1, 3, 4]
        assert_allclose(gradient.asnumpy(), MATRIX.T @ np.ones((3, 2)))


def test_layers_between_sparse_arrays():
    x = mx.sym.var("x", stype="row_sparse")
    net = mx.sym.FullyConnected(mx.sym.cast_storage(x * 2, stype="default"), num_hidden=2, name="f")
    bound = net.simple_bind(x=(5, 2))
    for name, value in (("x", ROWS), ("f_weight", [[1, 2], [3, 4]]), ("f_bias", [1, 1])):
        bound.arg_dict[name][:] = np.array(value, np.float32)
    (found,) = bound.forward(is_train=True)
    assert_allclose(found.asnumpy(), 2 * ROWS @ [[1, 3], [2, 4]] + 1)
    bound.backward(nd.ones((5, 2)))
    assert_allclose(bound.grad_dict["x"].asnumpy(), np.broadcast_to([8, 12], (5, 2)))


def bound_net(net, requests="write", **arrays):
    shapes = {name: one.shape for name, one in arrays.items()}
    bound = net.simple_bind(grad_req=requests, **shapes)
    for name, one in arrays.items():
        bound.arg_dict[name][:] = nd.array(one)
    return bound


def test_what_follows_the_sparse_part_is_one_program():
    x, w = mx.sym.var("x", stype="csr"), mx.sym.var("w")
    product = mx.sym.sparse.dot(x, w)
    total = mx.sym.broadcast_add(mx.sym.tanh(product), mx.sym.sum(w * w).reshape((1, 1)))
    net = mx.sym.Group([total, product * 1])
    weight = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    for requests, times in (("write", 1), ("add", 2)):
        told = {"x": "null", "w": requests}
        bound = bound_net(net, told, x=MATRIX, w=weight)
        assert isinstance(bound, StoredExecutor)
        outputs = bound.outputs
        for _ in range(times):
            found = bound.forward(is_train=True)
            assert_allclose(
                found[0].asnumpy(), np.tanh(MATRIX @ weight) + (weight**2).sum(), rtol=1e-5
            )
            assert_allclose(found[1].asnumpy(), MATRIX @ weight, rtol=1e-5)
            assert all(a is b for a, b in zip(found, outputs, strict=True))
            bound.backward([nd.ones((3, 2)), nd.ones((3, 2))])
        slope = 1 - np.tanh(MATRIX @ weight) ** 2 + 1
        expected = MATRIX.T @ slope + 2 * weight * slope.size
        assert_allclose(bound.grad_dict["w"].asnumpy(), times * expected, rtol=1e-5)


def test_a_sparse_place_for_the_gradient_of_a_dense_part():
    net = mx.sym.FullyConnected(mx.sym.var("x"), mx.sym.var("w"), no_bias=True, num_hidden=5)
    x = np.array([[1, 2], [3, 4]], np.float32)
    arrays = {"x": nd.array(x), "w": nd.ones((5, 2))}
    place = nd.sparse.zeros("row_sparse", (5, 2))
    bound = net.bind(args=arrays, args_grad={"w": place}, grad_req={"x": "null", "w": "write"})
    assert isinstance(bound, StoredExecutor)
    bound.forward(is_train=True)
    along = np.zeros((2, 5), np.float32)
    along[:, 3] = [1, 2]
    with pytest.warns(StorageFallbackWarning, match="the gradient of an array"):
        bound.backward(nd.array(along))
    assert bound.grad_dict["w"].stype == "row_sparse"
    assert_allclose(place.asnumpy(), along.T @ x)


def test_a_second_backward_pass_of_a_sparse_executor():
    net = mx.sym.tanh(mx.sym.sparse.dot(mx.sym.var("x", stype="csr"), mx.sym.var("w")))
    bound = bound_net(net, {"x": "null", "w": "write"}, x=MATRIX, w=np.ones((5, 2), np.float32))
    bound.forward(is_train=True)
    found = []
    for factor in (1, 2):
        bound.backward(nd.full((3, 2), factor))
        found.append(bound.grad_dict["w"].asnumpy())
    assert np.abs(found[0]).max() > 0
    assert_allclose(found[1], 2 * found[0], rtol=1e-6)


def test_states_and_monitors_of_a_sparse_executor():
    x, w = mx.sym.var("x", stype="csr"), mx.sym.var("w")
    net = mx.sym.BatchNorm(mx.sym.sparse.dot(x, w), name="b", fix_gamma=False, momentum=0.5)
    draw = np.random.default_rng(0)
    weight = draw.normal(size=(5, 2)).astype(np.float32)
    results = []
    for monitored in (False, True):
        requests = {name: "null" if name == "x" else "write" for name in net.list_arguments()}
        bound = bound_net(net, requests, x=MATRIX, w=weight)
        bound.arg_dict["b_gamma"][:] = 1
        seen = []
        if monitored:
            bound.set_monitor_callback(lambda name, one, seen=seen: seen.append(name))
        (found,) = bound.forward(is_train=True)
        bound.backward(nd.array(np.arange(6).reshape(3, 2)))
        assert bool(seen) == monitored
        kept = [found, bound.aux_dict["b_moving_mean"], bound.grad_dict["w"]]
        results.append([one.asnumpy() for one in kept])
    assert_allclose(results[0][1], 0.5 * (MATRIX @ weight).mean(0), rtol=1e-5)
    for one, other in zip(*results, strict=True):
        assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_sparse_executor_on_several_devices():
    first, second = mx.cpu(0), mx.cpu(1)
    with mx.AttrScope(ctx_group="table"):
        w = mx.sym.var("w")
    net = mx.sym.sparse.dot(mx.sym.var("x", stype="csr"), w) * mx.sym.var("s")
    bound = net.simple_bind(
        first, group2ctx={"table": second}, x=(3, 5), w=(5, 2), s=(3, 2),
        grad_req={"x": "null", "w": "write", "s": "write"},
    )  # fmt: skip
    assert isinstance(bound, StoredExecutor)
    assert [bound.arg_dict[name].context for name in ("x", "w", "s")] == [first, second, first]
    weight, scale = np.arange(10.0).reshape(5, 2), np.arange(6.0).reshape(3, 2)
    for name, one in (("x", MATRIX), ("w", weight), ("s", scale)):
        bound.arg_dict[name][:] = nd.array(one)
    (found,) = bound.forward(is_train=True)
    assert found.context == first
    assert_allclose(found.asnumpy(), (MATRIX @ weight) * scale)
    bound.backward(nd.ones((3, 2)))
    assert bound.grad_dict["w"].context == second
    assert_allclose(bound.grad_dict["w"].asnumpy(), MATRIX.T @ scale)
    assert_allclose(bound.grad_dict["s"].asnumpy(), MATRIX @ weight)
    both = [[arrays[name] for name in ("w", "s")] for arrays in (bound.arg_dict, bound.grad_dict)]
    mx.optimizer.create("sgd", learning_rate=0.5).update([0, 1], *both, [None, None])
    assert [one.context for one in both[0]] == [second, first]
    assert_allclose(both[0][0].asnumpy(), weight - 0.5 * MATRIX.T @ scale)
    assert_allclose(both[0][1].asnumpy(), scale - 0.5 * MATRIX @ weight)


def test_the_symbol_of_sparse_calls():
    x, w = nd.array(MATRIX).tostype("csr"), nd.ones((5, 2))
    w.attach_grad(stype="row_sparse")
    with autograd.record():
        y = nd.relu(nd.sparse.dot(x, w))
    found = autograd.get_symbol(y)
    assert [one.name for one in found.get_internals()][-2:] == ["dot0", "relu0"]
    again = found.bind(args=dict(zip(found.list_arguments(), (x, w), strict=True)))
    assert_allclose(again.forward()[0].asnumpy(), y.asnumpy())


# Cost


def pointer(array):
    return array.stored.value.unsafe_buffer_pointer()


def step_of_array_code(x):
    weight = nd.ones((1000, 2))
    weight.attach_grad(stype="row_sparse")
    update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.1))

    def step():
        with autograd.record():
            loss = nd.square(nd.sparse.dot(x, weight)).sum()
        loss.backward()
        update(0, weight.grad, weight)

    return step, weight


def step_of_a_module(x):
    w = mx.sym.var("w", stype="row_sparse", init=mx.init.One(), shape=(1000, 2))
    product = mx.sym.sparse.dot(mx.sym.var("data", stype="csr"), w)
    module = mx.mod.Module(mx.sym.MakeLoss(mx.sym.square(product)), label_names=None)
    module.bind([("data", x.shape)])
    module.init_params()
    module.init_optimizer(optimizer_params={"learning_rate": 0.1})

    def step():
        module.forward_backward(mx.io.DataBatch([x]))
        module.update()

    return step, module._own_executor("test").arg_dict["w"]


@pytest.mark.parametrize("make", [step_of_array_code, step_of_a_module])
def test_a_step_updates_the_table_in_place(make):
    x = nd.sparse.csr_matrix(([1, 2, 3], [7, 2, 9], [0, 1, 3]), shape=(2, 1000))
    step, weight = make(x)
    step()  # a table that stores all rows now
    place, before = pointer(weight), weight.asnumpy()
    step()
    assert pointer(weight) == place
    assert np.flatnonzero((weight.asnumpy() != before).any(1)).tolist() == [2, 7, 9]


def test_a_gradient_that_is_added_up_stores_its_rows_only():
    weight = nd.ones((20, 2))
    weight.attach_grad("add", stype="row_sparse")
    for _ in range(30):
        with autograd.record():
            y = nd.take(weight, nd.array([3, 5]))
        y.backward()
    assert parts(weight.grad) == {3: [30, 30], 5: [30, 30]}


def test_gradients_that_name_the_same_rows_are_not_joined():
    x = nd.array(MATRIX).tostype("csr")
    weight = nd.sparse.row_sparse_array((np.arange(8.0).reshape(4, 2), [0, 1, 3, 4]), shape=(5, 2))
    weight.attach_grad()
    with autograd.record():
        y = nd.sparse.dot(x, weight).sum() + nd.sparse.square_sum(weight, axis=1).sum()
    y.backward()
    assert len(weight.grad.stored.value.rows) == len(weight.stored.value.rows)
    expected = MATRIX.T @ np.ones((3, 2)) + 2 * weight.asnumpy()
    assert_allclose(weight.grad.asnumpy(), expected)


# Stores, iterators, modules


def test_rows_of_a_store():
    store, out = mx.kv.create(), nd.sparse.zeros("row_sparse", (5, 2))
    store.init("w", nd.ones((5, 2)).tostype("row_sparse"))
    store.row_sparse_pull("w", out=out, row_ids=nd.array([3, 0, 3]))
    assert parts(out) == {0: [1, 1], 3: [1, 1]}
    store.pull("w", out=out)
    assert sorted(parts(out)) == [0, 3]
    store.pull("w", out=out, ignore_sparse=False)
    assert sorted(parts(out)) == [0, 1, 2, 3, 4]
    store.push("w", [nd.array(ROWS).tostype("row_sparse")] * 2)
    store.row_sparse_pull("w", out=[out], row_ids=[nd.array([1, 2])])
    assert parts(out) == {1: [2, -4]}
    outs = [nd.sparse.zeros("row_sparse", (5, 2)) for _ in range(2)]
    store.row_sparse_pull(["w"], out=[outs], row_ids=[[nd.array([1]), nd.array([2])]])
    assert [sorted(parts(one)) for one in outs] == [[1], []]
    store.row_sparse_pull("w", out=out, row_ids=nd.array([[4, 3], [1, 3]]))
    assert parts(out) == {1: [2, -4], 3: [6, 8]}
    with pytest.raises(MXNetError, match="must be row_sparse"):
        store.row_sparse_pull("w", out=nd.zeros((5, 2)), row_ids=nd.array([1]))


def test_rows_of_several_keys():
    store, keys = mx.kv.create(), ["v", "w"]
    store.init(keys, [nd.array(ROWS * (i + 1)).tostype("row_sparse") for i in range(2)])
    outs = [nd.sparse.zeros("row_sparse", (5, 2)) for _ in keys]
    store.row_sparse_pull(keys, out=outs, row_ids=[nd.array([3]), nd.array([3, 1, 3])])
    assert [parts(one) for one in outs] == [{3: [3, 4]}, {1: [2, -4], 3: [6, 8]}]
    nested = [[nd.sparse.zeros("row_sparse", (5, 2)) for _ in "12"] for _ in keys]
    told = [[nd.array([1]), nd.array([3])], [nd.array([3]), nd.array([1])]]
    store.row_sparse_pull(keys, out=nested, row_ids=told)
    assert [[sorted(parts(one)) for one in each] for each in nested] == [[[1], [3]], [[3], [1]]]
    with pytest.raises(MXNetError, match="init must come first"):
        store.row_sparse_pull([1, 2], out=outs, row_ids=[nd.array([1])] * 2)


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_store_adds_up_other_rows_of_each_array(by_rows):
    store, keys = mx.kv.create(), ["v", "w"]
    store.init(keys, [nd.zeros((5, 2)).tostype("row_sparse")] * 2)
    values = [[np.roll(ROWS, i + j, 0) for j in range(3)] for i in range(2)]
    store.push(keys, [[nd.array(one).tostype("row_sparse") for one in each] for each in values])
    outs = [[nd.sparse.zeros("row_sparse", (5, 2)) for _ in range(2)] for _ in keys]
    if by_rows:
        store.row_sparse_pull(keys, out=outs, row_ids=[[nd.arange(5)] * 2] * 2)
    else:
        store.pull(keys, out=outs, ignore_sparse=False)
    for each, expected in zip(outs, values, strict=True):
        for one in each:
            assert one.stype == "row_sparse"
            assert_allclose(one.asnumpy(), sum(expected))


@pytest.mark.parametrize("named", [[0], [0, 1]])
def test_rows_of_zeros_are_pulled(named):
    store, out = mx.kv.create(), nd.sparse.zeros("row_sparse", (2, 2))
    values = np.array([[0, 0], [1, 1]], np.float32)
    store.init("w", nd.sparse.row_sparse_array((values, [0, 1]), shape=(2, 2)))
    store.row_sparse_pull("w", out=out, row_ids=nd.array(named))
    assert out.indices.asnumpy().tolist() == named
    assert_allclose(out.data.asnumpy(), values[named])


def test_rows_of_a_store_by_the_columns_of_a_matrix():
    store, out = mx.kv.create(), nd.sparse.zeros("row_sparse", (5, 2))
    store.init("w", nd.array(np.arange(10).reshape(5, 2)).tostype("row_sparse"))
    store.init("v", nd.ones((9, 2)).tostype("row_sparse"))
    columns = nd.array(MATRIX).tostype("csr").indices
    assert type(columns) is nd.NDArray
    store.row_sparse_pull("w", out=out, row_ids=columns)
    assert parts(out) == {0: [0, 1], 1: [2, 3], 3: [6, 7], 4: [8, 9]}
    tall = nd.sparse.zeros("row_sparse", (9, 2))
    store.row_sparse_pull("v", out=tall, row_ids=columns)
    assert sorted(parts(tall)) == [0, 1, 3, 4]
    columns[:] = 2
    store.row_sparse_pull("w", out=out, row_ids=columns)
    assert parts(out) == {2: [4, 5]}


@pytest.mark.skipif(len(jax.devices()) < 2, reason="of one device there are no others")
def test_a_store_sums_rows_of_several_devices():
    store, devices = mx.kv.create(), [mx.cpu(0), mx.cpu(1)]
    store.init("w", nd.zeros((5, 2)))
    store.push("w", [nd.ones((5, 2), ctx=one).tostype("row_sparse") for one in devices])
    outs = [nd.zeros((5, 2), ctx=one) for one in devices]
    store.pull("w", out=outs)
    for out, device in zip(outs, devices, strict=True):
        assert out.context == device
        assert (out - 2).asnumpy().tolist() == np.zeros((5, 2)).tolist()


def libsvm(path, labels, rows):
    lines = [
        f"{label:g} " + " ".join(f"{i}:{row[i]:.8g}" for i in np.flatnonzero(row))
        for label, row in zip(labels, rows, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def test_libsvm_files(tmp_path):
    path, other = tmp_path / "x.libsvm", tmp_path / "y.libsvm"
    libsvm(path, [1, -2, 3], MATRIX)
    libsvm(other, [0, 0, 0], ROWS[1:4])
    batches = mx.io.LibSVMIter(path, (5,), batch_size=2)
    found = [(b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist(), b.pad) for b in batches]
    assert found == [
        (MATRIX[:2].tolist(), [1, -2], 0),
        (MATRIX[[2, 0]].tolist(), [3, 1], 1),
    ]
    assert batches.provide_data[0].shape == (2, 5)
    labelled = mx.io.LibSVMIter(path, (5,), other, (2,), batch_size=3)
    batch = labelled.next()
    assert [batch.data[0].stype, batch.label[0].stype] == ["csr", "csr"]
    assert_allclose(batch.label[0].asnumpy(), ROWS[1:4])
    part = mx.io.LibSVMIter(path, (5,), batch_size=1, num_parts=2, part_index=1)
    assert [b.label[0].asnumpy().tolist() for b in part] == [[3]]
    whole = mx.io.LibSVMIter(path, (5,), batch_size=2, round_batch=False)
    assert len(list(whole)) == 1
    for text, message in (("1 9:2", "below 5"), ("1 2:x", "could not"), ("1 2 3:4", "pairs")):
        path.write_text(text)
        with pytest.raises(MXNetFormatError, match=message):
            mx.io.LibSVMIter(path, (5,))


def test_batches_of_csr_arrays():
    given, labels = nd.array(MATRIX).tostype("csr"), np.arange(3.0)
    batches = mx.io.NDArrayIter(given, labels, 2, last_batch_handle="discard")
    (batch,) = batches
    assert batch.data[0].stype == "csr"
    assert_allclose(batch.data[0].asnumpy(), MATRIX[:2])
    with pytest.raises(NotImplementedError, match="discard"):
        mx.io.NDArrayIter(given, labels, 2)


def test_batches_of_csr_arrays_by_name_and_in_another_order():
    other = np.where(MATRIX > 1, MATRIX, 0)
    data = {"a": nd.array(MATRIX).tostype("csr"), "b": scipy.sparse.csr_matrix(other)}
    labels = {"y": nd.arange(3).reshape((3, 1)).tostype("csr")}
    batches = mx.io.NDArrayIter(data, labels, 2, shuffle=True, last_batch_handle="discard")
    assert [one.name for one in batches.provide_data] == ["a", "b"]
    orders = set()
    for _ in range(8):
        (batch,) = batches
        numbers = batch.label[0].asnumpy().reshape(-1).astype(int)
        orders.add(tuple(numbers.tolist()))
        for one, whole in zip(batch.data, (MATRIX, other), strict=True):
            assert one.stype == "csr"
            assert_allclose(one.asnumpy(), whole[numbers])
        batches.reset()
    assert len(orders) > 1


@pytest.mark.parametrize("last", ["pad", "roll_over"])
def test_batches_of_csr_arrays_are_neither_padded_nor_rolled_over(last):
    stored, numbers = scipy.sparse.csr_matrix(MATRIX), np.arange(3.0)
    for data, labels in (
        (stored, numbers),
        ([numbers, stored], numbers),
        (numbers, {"y": nd.array(MATRIX).tostype("csr")}),
    ):
        with pytest.raises(NotImplementedError, match=f"'discard' .*, got '{last}'"):
            mx.io.NDArrayIter(data, labels, 2, last_batch_handle=last)


def test_each_batch_of_csr_arrays_has_the_rows_of_the_dense_ones():
    dense = scipy.sparse.random(7, 5, 0.4, random_state=0, dtype=np.float32).toarray()
    stored = scipy.sparse.csr_matrix(dense)
    batches = mx.io.NDArrayIter(
        {"x": stored, "dense": dense}, {"y": stored}, 2, last_batch_handle="discard"
    )
    assert [one.shape for one in batches.provide_data] == [(2, 5)] * 2
    for _ in range(2):
        found = list(batches)
        assert [one.pad for one in found] == [0, 0, 0]
        for at, batch in enumerate(found):
            arrays = [*batch.data, *batch.label]
            assert [one.stype for one in arrays] == ["default", "csr", "csr"]
            for one in arrays:
                assert_allclose(one.asnumpy(), dense[2 * at : 2 * at + 2])
        batches.reset()


@pytest.mark.parametrize("kind", [mx.init.Normal, mx.init.Uniform, mx.init.Xavier])
def test_initial_values_of_row_sparse_parameters(kind):
    module = mx.mod.Module(classifier(6))
    module.bind([("data", (3, 6))], [("softmax_label", (3,))])
    module.init_params(kind())
    weight = module.get_params()[0]["weight"]
    assert weight.stype == "row_sparse"
    assert (weight.asnumpy() != 0).all()
    assert len(np.unique(weight.asnumpy())) == 12


def test_a_row_sparse_parameters_own_initializer_comes_first():
    w = mx.sym.var("w", stype="row_sparse", init=mx.init.Constant(2.0), shape=(5, 2))
    product = mx.sym.sparse.dot(mx.sym.var("data", stype="csr"), w)
    module = mx.mod.Module(mx.sym.make_loss(product), label_names=None)
    module.bind([("data", (3, 5))])
    module.init_params(mx.init.Normal())
    assert parts(module.get_params()[0]["w"]) == {row: [2, 2] for row in range(5)}


def product_and_factor():
    weight = mx.sym.var("w", stype="row_sparse")
    return mx.sym.sparse.dot(mx.sym.var("x", stype="csr"), weight), mx.sym.var("s")


def passed_net(net, requests):
    weight, scale = np.arange(10.0).reshape(5, 2), np.arange(6.0).reshape(3, 2)
    executor = bound_net(net, requests, x=MATRIX, w=weight, s=scale)
    assert isinstance(executor, StoredExecutor)
    executor.forward(is_train=True)
    return executor, weight, scale


def test_one_head_of_several_of_a_sparse_executor_needs_a_cotangent():
    product, s = product_and_factor()
    requests = {"x": "null", "w": "write", "s": "write"}
    net = mx.sym.Group([mx.sym.make_loss(product * s), mx.sym.sin(product, name="sin")])
    executor, weight, scale = passed_net(net, requests)
    for given in (None, [None, None], [nd.ones((3, 2))]):
        with pytest.raises(MXNetError, match="out_grads must be given for 'sin_output'"):
            executor.backward(given)
    executor.backward([None, nd.ones((3, 2))])
    expected = MATRIX.T @ (scale + np.cos(MATRIX @ weight))
    assert_allclose(executor.grad_dict["w"].asnumpy(), expected, rtol=1e-4, atol=1e-5)
    blocked = mx.sym.Group([mx.sym.make_loss(product * s), mx.sym.BlockGrad(product)])
    executor, _, scale = passed_net(blocked, requests)
    executor.backward()
    assert_allclose(executor.grad_dict["w"].asnumpy(), MATRIX.T @ scale)


@pytest.mark.parametrize("request_", ["write", "null"])
def test_what_is_blocked_in_a_sparse_executor_has_gradients_of_zero(request_):
    product, s = product_and_factor()
    net = mx.sym.make_loss(mx.sym.BlockGrad(product) * s)
    executor, weight, _ = passed_net(net, {"x": "null", "w": request_, "s": "write"})
    executor.backward()
    assert_allclose(executor.grad_dict["s"].asnumpy(), MATRIX @ weight)
    assert executor.grad_dict["x"] is None
    if request_ == "null":
        assert executor.grad_dict["w"] is None
    else:
        assert not executor.grad_dict["w"].asnumpy().any()


def test_a_sparse_executor_asks_for_the_cotangent_of_a_head_that_is_no_loss():
    weight = mx.sym.var("w", stype="row_sparse")
    net = mx.sym.sparse.dot(mx.sym.var("x", stype="csr"), weight)
    executor = net.simple_bind(mx.cpu(), x=(3, 5), w=(5, 2), grad_req={"w": "write"})
    assert isinstance(executor, StoredExecutor)
    executor.forward(is_train=True, x=nd.array(MATRIX).tostype("csr"))
    with pytest.raises(MXNetError, match="out_grads must be given"):
        executor.backward()


def classifier(columns):
    data, label = mx.sym.var("data", stype="csr"), mx.sym.var("softmax_label")
    weight = mx.sym.var("weight", stype="row_sparse", shape=(columns, 2))
    scores = mx.sym.broadcast_add(mx.sym.sparse.dot(data, weight), mx.sym.var("bias", shape=(2,)))
    return mx.sym.SoftmaxOutput(scores, label, name="out")


@pytest.mark.parametrize("by_store", [False, True])
def test_a_module_with_sparse_parameters(tmp_path, by_store):
    draw = np.random.default_rng(0)
    given = (draw.random((80, 30)) < 0.2) * draw.normal(size=(80, 30))
    labels = given @ draw.normal(size=30) > 0
    path = tmp_path / "x.libsvm"
    libsvm(path, labels, given)
    batches = mx.io.LibSVMIter(path, (30,), batch_size=20)
    module = mx.mod.Module(classifier(30))
    how = {"optimizer_params": {"learning_rate": 4.0}, "num_epoch": 12}
    if by_store:
        how["kvstore"] = mx.kv.create()
        how["sparse_row_id_fn"] = lambda batch: {"weight": batch.data[0].indices}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.fit(batches, initializer=mx.init.Zero(), **how)
    params, _ = module.get_params()
    assert params["weight"].stype == "row_sparse"
    scores = given @ params["weight"].asnumpy() + params["bias"].asnumpy()
    assert (scores.argmax(1) == labels).mean() > 0.9
    module.save_checkpoint(str(tmp_path / "m"), 0)
    _, loaded, _ = mx.load_checkpoint(str(tmp_path / "m"), 0)
    assert loaded["weight"].stype == "row_sparse"


def test_a_bucket_pulls_the_rows_that_its_batch_needs():
    module = mx.mod.BucketingModule(
        lambda key: (classifier(5), ["data"], ["softmax_label"]), default_bucket_key=3
    )
    shapes = [("data", (3, 5))], [("softmax_label", (3,))]
    module.bind(*shapes)
    module.init_params(mx.init.Normal())
    store, pulled = mx.kv.create(), []
    module.init_optimizer(kvstore=store)
    pull = store.row_sparse_pull

    def watched(key, out, row_ids):
        pulled.extend(one.asnumpy().tolist() for one in row_ids)
        pull(key, out, row_ids=row_ids)

    store.row_sparse_pull = watched
    for key in (3, 4):
        batch = mx.io.DataBatch([nd.array(MATRIX).tostype("csr")], [nd.zeros(3)], bucket_key=key)
        batch.provide_data, batch.provide_label = shapes
        module.prepare(batch, lambda one: {"weight": one.data[0].indices})
        module.forward_backward(batch)
        module.update()
    assert pulled == [[1, 4, 0, 3]] * 2


def test_rows_are_not_pulled_where_no_store_updates():
    module = mx.mod.Module(classifier(5), context=[mx.cpu(0), mx.cpu(1)])
    module.bind([("data", (3, 5))], [("softmax_label", (3,))])
    module.init_params(mx.init.Normal())
    module.init_optimizer(kvstore="local")
    batch = mx.io.DataBatch([nd.array(MATRIX).tostype("csr")], [nd.zeros(3)])
    with pytest.warns(UserWarning, match="no store updates"):
        module.prepare(batch, lambda one: {"weight": one.data[0].indices})


def test_the_gradient_of_a_computed_factor_flows_on():
    weight = nd.array(np.arange(10.0))
    weight.attach_grad()
    with autograd.record():
        y = nd.dot(nd.array(MATRIX).tostype("csr"), nd.reshape(weight, shape=(5, 2)))
    y.backward(nd.ones((3, 2)))
    assert_allclose(weight.grad.asnumpy(), (MATRIX.T @ np.ones((3, 2))).ravel())
