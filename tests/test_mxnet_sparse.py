"""Sparse arrays of MXNet: storage, creation, conversion, and operators by storage type."""

import operator
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.special import softmax as softmax_of

import symop.interop.mxnet as mx
from registry.values import SelectedRows
from symop.interop.mxnet import nd, storage
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import TABLE
from symop.interop.mxnet.sparse_parts import capacity, distinct, merged
from symop.interop.mxnet.storage import StorageFallbackWarning

ROWS = np.array([[0, 0], [1, -2], [0, 0], [3, 4], [0, 0]], np.float32)
MATRIX = np.array([[0, 1, 0, 0], [2, 0, 0, -3], [0, 0, 0, 0]], np.float32)


def rows():
    return nd.array(ROWS).tostype("row_sparse")


def matrix():
    return nd.array(MATRIX).tostype("csr")


def same(array, expected):
    np.testing.assert_allclose(array.asnumpy(), expected, rtol=1e-5, atol=1e-6)
    return True


@pytest.fixture(autouse=True)
def _each_fallback_warns():
    storage.forget_warnings()


# Arrays


def test_parts():
    assert rows().indices.asnumpy().tolist() == [1, 3]
    assert same(rows().data, ROWS[[1, 3]])
    some = matrix()
    assert [one.asnumpy().tolist() for one in (some.indptr, some.indices, some.data)] == [
        [0, 1, 3, 3],
        [1, 0, 3],
        [1, 2, -3],
    ]
    assert (some.shape, some.dtype, some.stype, some.ndim) == ((3, 4), np.float32, "csr", 2)
    assert repr(some) == "\n<CSRNDArray 3x4 @cpu(0)>"


def test_a_capacity_is_shared_by_similar_counts():
    assert len({capacity(count) for count in range(100_000, 101_000)}) == 1
    assert all(count <= capacity(count) <= count * 9 / 8 for count in range(8, 5000))


@pytest.mark.parametrize("given", [[1, 0], [1, 1]])
def test_rows_that_do_not_ascend(given):
    some = nd.sparse.row_sparse_array(([[1, 2], [3, 4]], given), shape=(3, 2))
    expected = np.zeros((3, 2))
    np.add.at(expected, given, [[1, 2], [3, 4]])
    assert same(some, expected)
    with pytest.raises(MXNetError, match="indices must be ascending"):
        some.check_format()
    rows().check_format()


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [([0, 2, 1], [0, 5, 2, 3]), ([2, 1, 1], [0, 2, 2, 3]), ([1, 2, 1], [0, 2, 2, 4]),
     ([0, 2, 9], [0, 1, 2, 3])],
)  # fmt: skip
def test_a_format_that_is_wrong(indices, indptr):
    some = nd.sparse.csr_matrix(([7, 8, 9], indices, indptr), shape=(3, 4))
    with pytest.raises(MXNetError, match="must"):
        some.check_format()


@pytest.mark.parametrize(
    ("indices", "indptr", "fault"),
    [
        ([-1, 2, 1], [0, 2, 2, 3], "indices must be within the shape: columns below 4"),
        ([0, 2, 4], [0, 2, 2, 3], "indices must be within the shape: columns below 4"),
        ([0, 2, 1], [0, -2, 2, 3], "indptr must ascend from 0 to 3"),
        ([0, 2, 1], [1, 2, 2, 3], "indptr must ascend from 0 to 3"),
        ([0, 2, 1], [0, 2, 1, 3], "indptr must ascend from 0 to 3"),
        ([2, 0, 1], [0, 2, 2, 3], "indices must be ascending within each row"),
    ],
)
def test_the_fault_of_a_matrix_is_told(indices, indptr, fault):
    some = nd.sparse.csr_matrix(([7, 8, 9], indices, indptr), shape=(3, 4))
    with pytest.raises(MXNetError, match=fault):
        some.check_format()


@pytest.mark.parametrize("last", [-2, 3, 4])
def test_rows_that_are_not_there_are_told(last):
    some = nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [1, last]), shape=(3, 2))
    with pytest.raises(MXNetError, match="at least 0 and less than 3"):
        some.check_format()


def test_sound_arrays_have_no_fault():
    first_and_last = nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 2]), shape=(3, 2))
    corners = nd.sparse.csr_matrix(([7, 8, 9], [3, 0, 3], [0, 1, 1, 3]), shape=(3, 4))
    empty = [nd.sparse.zeros(stype, (3, 4)) for stype in ("row_sparse", "csr")]
    for some in (first_and_last, corners, *empty):
        some.check_format()
    assert same(first_and_last, [[1, 2], [0, 0], [3, 4]])
    assert same(corners, [[0, 0, 0, 7], [0, 0, 0, 0], [8, 0, 0, 9]])


@pytest.mark.parametrize("shape", [(3,), (1, 1, 3)])
def test_a_csr_array_has_two_axes(shape):
    x = nd.ones(shape)
    for make in (
        lambda: x.tostype("csr"),
        lambda: nd.sparse.csr_matrix(x),
        lambda: nd.zeros(shape, stype="csr"),
    ):
        with pytest.raises(ValueError, match="two axes"):
            make()
    assert same(x.tostype("row_sparse"), np.ones(shape))


def test_creation():
    scipys = scipy.sparse.csr_matrix(MATRIX)
    for given in (MATRIX, MATRIX.tolist(), nd.array(MATRIX), scipys, matrix()):
        assert same(nd.sparse.csr_matrix(given), MATRIX)
    assert nd.sparse.array(scipys).stype == nd.array(scipys).stype == "csr"
    assert same(nd.sparse.csr_matrix(([1, 2, 3], ([0, 0, 2], [1, 1, 0]))), [[0, 3], [0, 0], [3, 0]])
    assert nd.sparse.zeros("csr", (2, 3)).data.shape == (0,)
    assert nd.sparse.row_sparse_array((4, 2)).indices.shape == (0,)
    assert nd.sparse.row_sparse_array(ROWS, dtype="float16").dtype == np.float16
    assert nd.empty((2, 2), stype="row_sparse").stype == "row_sparse"
    with pytest.raises(ValueError, match="shape"):
        nd.sparse.csr_matrix(nd.ones((2, 2)), shape=(3, 2))
    with pytest.raises(ValueError, match="shape"):
        nd.sparse.row_sparse_array((2, 2), shape=(3, 2))
    with pytest.raises(ValueError, match="stype must be one of"):
        nd.sparse.zeros("sparse", (2, 2))
    with pytest.raises(ValueError, match="sparse array must be given"):
        nd.sparse.array(nd.ones(2))


def test_conversion():
    assert type(rows().tostype("default")) is type(nd.ones(1))
    assert same(nd.cast_storage(nd.array(MATRIX), stype="csr"), MATRIX)
    with pytest.raises(ValueError, match="does not become csr"):
        rows().tostype("csr")
    full = nd.ones((3, 2)).tostype("row_sparse")
    assert full.indices.asnumpy().tolist() == [0, 1, 2]
    assert same(full.astype("int32"), np.ones((3, 2)))
    assert matrix().astype("int32").dtype == np.int32
    np.testing.assert_array_equal(matrix().asscipy().toarray(), MATRIX)


def test_assignment_and_copies():
    target = nd.sparse.zeros("row_sparse", (5, 2))
    target[:] = rows()
    assert target.indices.asnumpy().tolist() == [1, 3]
    target[:] = nd.array(ROWS[::-1].copy())
    assert target.indices.asnumpy().tolist() == [1, 3]
    assert same(target, ROWS[::-1])
    target[:] = 2
    assert same(target, np.full((5, 2), 2))
    dense = nd.zeros((3, 4))
    matrix().copyto(dense)
    assert same(dense, MATRIX)
    held = matrix()
    held += held
    assert held.stype == "csr"
    assert same(held, 2 * MATRIX)
    with pytest.raises(TypeError, match="not copied"):
        matrix().copyto(target)
    with pytest.raises(ValueError, match="got a number"):
        held[:] = 1
    with pytest.raises(MXNetError, match="x\\[:\\]"):
        held[0] = 1
    with pytest.raises(MXNetError, match="must be dense"):
        rows().reshape((10,))


def test_files_and_pickles(tmp_path):
    path = str(tmp_path / "x.params")
    nd.save(path, {"r": rows(), "c": matrix(), "e": nd.zeros((3, 2), stype="row_sparse")})
    found = nd.load(path)
    assert [found[name].stype for name in "rce"] == ["row_sparse", "csr", "row_sparse"]
    assert same(found["r"], ROWS)
    assert same(found["c"], MATRIX)
    for one in (rows(), matrix()):
        again = pickle.loads(pickle.dumps(one))
        assert again.stype == one.stype
        assert same(again, one.asnumpy())


def test_slices():
    some = matrix()
    assert same(some[1], MATRIX[1:2])
    assert same(some[-3], MATRIX[:1])
    assert same(some[0:2], MATRIX[:2])
    block = nd.slice(some, begin=(0, 1), end=(2, 4))
    assert block.stype == "csr"
    assert same(block, MATRIX[:2, 1:4])
    assert some[:] is some
    with pytest.raises(MXNetError, match="below 3"):
        some[3]


# Operators by storage type

UNARY = ("abs", "sign", "round", "rint", "ceil", "floor", "trunc", "fix", "square", "sin", "tan",
         "arctan", "degrees", "radians", "sinh", "tanh", "arcsinh", "expm1", "relu", "cbrt",
         "negative")  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions_that_map_zero_to_zero_keep_the_storage(name):
    function = getattr(nd, name)
    for array, dense in ((rows(), ROWS), (matrix(), MATRIX)):
        found = function(array)
        assert found.stype == array.stype
        assert same(found, function(nd.array(dense)).asnumpy())


@pytest.mark.parametrize(
    ("function", "stype"),
    [
        (lambda x: x * 2, "sparse"), (lambda x: x / 2, "sparse"), (lambda x: x + 0, "sparse"),
        (lambda x: x + 1, "default"), (lambda x: 1 - x, "default"), (lambda x: x > 0, "sparse"),
        (lambda x: x != 0, "sparse"), (lambda x: x == 1, "sparse"), (lambda x: x < 0, "sparse"),
        (lambda x: nd.clip(x, -1, 1), "sparse"),
        (nd.zeros_like, "sparse"),
    ],
)  # fmt: skip
def test_storage_of_functions_with_numbers(function, stype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for array in (rows(), matrix()):
            found = function(array)
            assert found.stype == (array.stype if stype == "sparse" else stype)
            expected = function(array.tostype("default"))
            assert same(found, expected.asnumpy())


def test_a_quadratic_function_keeps_csr_if_zero_stays():
    found = nd.contrib.quadratic(matrix(), a=1, b=2, c=0)
    assert found.stype == "csr"
    assert same(found, MATRIX**2 + 2 * MATRIX)
    with pytest.warns(StorageFallbackWarning, match="quadratic"):
        assert same(nd.contrib.quadratic(matrix(), c=1), np.ones((3, 4)))


COMPARISONS = [getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")]


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("make", [rows, matrix])
@pytest.mark.parametrize("number", [0, 1, -2])
def test_a_comparison_with_a_number_is_dense_if_it_holds_for_zero(compare, make, number):
    x, dense = make(), make().asnumpy()
    for turned in (False, True):
        storage.forget_warnings()
        pair, expected = (
            ((number, x), (number, dense)) if turned else ((x, number), (dense, number))
        )
        of_zero = compare(number, 0) if turned else compare(0, number)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = compare(*pair)
        assert found.stype == ("default" if of_zero else x.stype)
        assert [one.category for one in told] == [StorageFallbackWarning] * of_zero
        assert same(found, compare(*expected))


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("make", [rows, matrix])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_comparison_with_an_array_is_dense(compare, make, is_sparse):
    x, dense = make(), make().asnumpy()
    turned = dense[::-1].copy()
    other = nd.array(turned).tostype(x.stype if is_sparse else "default")
    with pytest.warns(StorageFallbackWarning, match="broadcast_"):
        found = compare(x, other), compare(other, x)
    assert [one.stype for one in found] == ["default", "default"]
    assert same(found[0], compare(dense, turned))
    assert same(found[1], compare(turned, dense))


@pytest.mark.parametrize("name", ["elemwise_add", "elemwise_sub", "elemwise_mul"])
@pytest.mark.parametrize("stype", ["row_sparse", "csr"])
def test_pairs(name, stype):
    draw = np.random.default_rng(0)
    both = [draw.normal(size=(6, 4)) * (draw.random((6, 1)) < 0.5) for _ in "xy"]
    x, y = [nd.array(one).tostype(stype) for one in both]
    compute = getattr(nd, name)
    expected = compute(*map(nd.array, both)).asnumpy()
    found = compute(x, y)
    assert found.stype == stype
    assert same(found, expected)
    mixed = compute(x, nd.array(both[1]))
    assert mixed.stype == (stype if name == "elemwise_mul" else "default")
    assert same(mixed, expected)


@pytest.mark.parametrize("name", ["maximum", "minimum", "hypot"])
def test_extrema_of_one_storage_type(name):
    compute = getattr(nd.op, f"_{name}")
    expected = getattr(np, name)(ROWS, ROWS[::-1])
    found = compute(rows(), nd.array(ROWS[::-1].copy()).tostype("row_sparse"))
    assert found.stype == "row_sparse"
    assert same(found, expected)
    found = compute(matrix(), matrix())
    assert found.stype == "csr"
    assert same(found, getattr(np, name)(MATRIX, MATRIX))


def test_broadcasting():
    row, column = nd.array([[1, 2, 3, 4]]), nd.array([[2], [3], [4]])
    for other in (row, column, row.reshape((4,)), nd.array([5])):
        plain = other.asnumpy()
        product, quotient = nd.sparse.multiply(matrix(), other), nd.sparse.divide(matrix(), other)
        assert product.stype == quotient.stype == "csr"
        assert same(product, MATRIX * plain)
        assert same(quotient, MATRIX / plain)
        assert same(nd.sparse.add(matrix(), other), MATRIX + plain)
        assert same(nd.sparse.subtract(other, matrix()), plain - MATRIX)


def test_sums():
    found = nd.add_n(rows(), rows(), rows())
    assert found.stype == "row_sparse"
    assert same(found, 3 * ROWS)
    assert same(nd.add_n(nd.array(MATRIX), matrix()), 2 * MATRIX)
    for axis in (0, 1):
        assert same(nd.sum(matrix(), axis=axis), MATRIX.sum(axis))
        assert same(nd.mean(matrix(), axis=axis), MATRIX.mean(axis))
        assert same(nd.norm(matrix(), axis=axis), np.linalg.norm(MATRIX, axis=axis))
        assert same(nd.sparse.square_sum(rows(), axis=axis), (ROWS**2).sum(axis))
    sums = nd.sparse.square_sum(rows(), axis=1, keepdims=True)
    assert sums.stype == "row_sparse"
    assert same(sums, (ROWS**2).sum(1, keepdims=True))
    assert same(nd.norm(rows()), [np.linalg.norm(ROWS)])
    assert nd.contrib.getnnz(matrix()).asnumpy().tolist() == [3]
    assert nd.contrib.getnnz(matrix(), axis=1).asnumpy().tolist() == [1, 2, 0]


def test_products():
    draw = np.random.default_rng(1)
    right, below = draw.normal(size=(4, 3)), draw.normal(size=(3, 2))
    assert same(nd.dot(matrix(), nd.array(right)), MATRIX @ right)
    found = nd.dot(matrix(), nd.array(below), transpose_a=True)
    assert found.stype == "row_sparse"
    assert found.indices.asnumpy().tolist() == [0, 1, 3]
    assert same(found, MATRIX.T @ below)
    stored = nd.array(right * [[0], [1], [0], [1]]).tostype("row_sparse")
    assert same(nd.dot(matrix(), stored), MATRIX @ stored.asnumpy())
    left = nd.array(draw.normal(size=(2, 3)))
    into = nd.dot(left, matrix())
    assert into.stype == "csr"
    assert same(into, left.asnumpy() @ MATRIX)
    dense = nd.dot(left, matrix(), forward_stype="default")
    assert dense.stype == "default"
    turned = nd.dot(nd.ones((2, 4)), matrix(), transpose_b=True, forward_stype="default")
    assert same(turned, np.ones((2, 4)) @ MATRIX.T)
    assert same(nd.dot(matrix(), nd.array([1, 2, 3, 4])), MATRIX @ [1, 2, 3, 4])
    with pytest.raises(MXNetError, match="inner lengths"):
        nd.dot(matrix(), nd.ones((3, 2)))


def test_retaining_and_taking():
    kept = nd.sparse.retain(rows(), nd.array([0, 3]))
    assert kept.indices.asnumpy().tolist() == [3]
    assert same(kept, ROWS * [[0], [0], [0], [1], [0]])
    assert same(rows().retain(nd.array([1])), ROWS * [[0], [1], [0], [0], [0]])
    taken = nd.take(matrix(), nd.array([1, 1, 7]))
    assert taken.stype == "csr"
    assert same(taken, MATRIX[[1, 1, 2]])
    joined = nd.concat(matrix(), matrix(), dim=0)
    assert joined.stype == "csr"
    assert same(joined, np.concatenate([MATRIX, MATRIX]))
    chosen = nd.where(matrix(), nd.ones((3, 4)), nd.zeros((3, 4)))
    assert same(chosen, MATRIX != 0)


def test_scattered_operators_change_stored_entries_alone():
    stored = np.array([[0], [1], [0], [1], [0]])
    assert same(nd.op._scatter_plus_scalar(rows(), scalar=1), ROWS + stored)
    assert same(nd.op._scatter_minus_scalar(matrix(), scalar=1), MATRIX - (MATRIX != 0))
    found = nd.op._scatter_elemwise_div(rows(), nd.full((5, 2), 2))
    assert found.stype == "row_sparse"
    assert same(found, ROWS / 2)


def test_a_quotient_by_a_csr_array_is_that_of_the_stored_rows():
    divisor = np.array([[0, 1], [2, 4], [1, 0], [3, 0], [0, 0]], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = nd.op._scatter_elemwise_div(rows(), nd.array(divisor).tostype("csr"))
    assert found.indices.asnumpy().tolist() == [1, 3]
    assert same(found.data, [[1 / 2, -2 / 4], [1, np.inf]])


@pytest.mark.parametrize("make", [rows, matrix])
def test_functions_that_do_not_map_zero_to_zero_are_dense(make):
    x = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {name: getattr(nd, name)(x) for name in ("exp", "cos", "cosh", "sigmoid", "gamma")}
    assert {one.stype for one in found.values()} == {"default"}
    assert same(found["exp"], np.exp(x.asnumpy()))
    assert same(found["cos"], np.cos(x.asnumpy()))


@pytest.mark.parametrize("make", [rows, matrix])
def test_a_shift_of_stored_entries_leaves_others_alone(make):
    shifted = nd.op._scatter_plus_scalar(make(), scalar=2)
    dense = np.where(make().asnumpy() != 0, make().asnumpy() + 2, 0)
    dense = dense if make is matrix else ROWS + 2 * (ROWS != 0).any(1, keepdims=True)
    assert same(shifted, dense)
    assert same(nd.norm(shifted), [np.linalg.norm(dense)])
    if make is matrix:
        assert same(nd.sum(shifted, axis=0), dense.sum(0))
        assert same(nd.dot(shifted, nd.ones((3, 2)), transpose_a=True), dense.T @ np.ones((3, 2)))
        infinite = make() / 0
        ones = np.where(MATRIX.any(0), np.nan, 0)
        assert np.isfinite(nd.sum(infinite, axis=0).asnumpy()).tolist() == (ones == 0).tolist()
    else:
        assert same(nd.sparse.square_sum(shifted, axis=0), (dense**2).sum(0))


@pytest.mark.parametrize("make", [rows, matrix])
def test_a_copy_with_the_shape_of_another_array(make):
    found = nd.op._identity_with_attr_like_rhs(make(), make())
    assert found.stype == make().stype
    assert same(found, make().asnumpy())


def test_the_transpose_of_a_csr_matrix_on_the_right():
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = nd.dot(nd.array(x), matrix(), transpose_b=True)
    assert found.stype == "default"
    assert same(found, x @ MATRIX.T)


@pytest.mark.parametrize("name", ["Linear", "Logistic", "MAE"])
def test_regression_on_csr_labels(name):
    x, operator = nd.array(MATRIX + 1), getattr(nd, f"{name}RegressionOutput")
    gradients = []
    for label in (matrix(), nd.array(MATRIX)):
        x.attach_grad()
        with warnings.catch_warnings(), mx.autograd.record():
            warnings.simplefilter("error")
            y = operator(x, label)
        y.backward()
        gradients.append(x.grad.asnumpy())
    assert np.abs(gradients[0]).max() > 0
    np.testing.assert_array_equal(*gradients)


def test_distinct_numbers():
    draw = np.random.default_rng(0)
    for count, bound in ((0, 5), (1, 1), (300, 7), (300, 10**6), (20, 2**31 - 1)):
        numbers = draw.integers(0, bound, count)
        once, places = distinct(numbers, bound)
        expected = np.unique(numbers, return_inverse=True)
        np.testing.assert_array_equal(once, expected[0])
        np.testing.assert_array_equal(places, expected[1])


def test_rows_that_are_named_again_and_again_are_added():
    rows_of = np.array([1, 4, 6, 9, 9], np.int32)
    values = np.arange(20.0).reshape(10, 2)
    some = SelectedRows(np.tile(rows_of, 2), values, 9)
    found = merged(some)
    assert found.rows.tolist() == rows_of.tolist()
    np.testing.assert_array_equal(found.values, values[:5] + values[5:])
    other = merged(SelectedRows(np.array([1, 4, 1, 5]), values[:4], 9))
    assert other.rows[:3].tolist() == [1, 4, 5]
    np.testing.assert_array_equal(other.values[:3], [values[0] + values[2], values[1], values[3]])


DRAWS = [("uniform", 2, 3), ("normal", 5, 1), ("gamma", 9, 0.5), ("exponential", 2), ("poisson", 9),
         ("negative_binomial", 9, 0.3), ("generalized_negative_binomial", 9, 0.3),
         ("randint", 1, 100)]  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), [(one[0], one[1:]) for one in DRAWS])
@pytest.mark.parametrize("module", [nd.random, mx.random])
def test_random_numbers_fill_all_rows_of_an_array(module, name, settings):
    draw = getattr(module, name)
    mx.random.seed(3)
    expected = draw(*settings, shape=(5, 2)).asnumpy()
    assert len(np.unique(expected)) > 3
    out = rows().astype(expected.dtype)
    mx.random.seed(3)
    assert draw(*settings, out=out) is out
    assert out.stype == "row_sparse"
    assert out.indices.asnumpy().tolist() == [0, 1, 2, 3, 4]
    assert same(out, expected)
    draw(*settings, out=out)
    assert (out.asnumpy() != expected).any()


# Gradients along csr arrays


@pytest.mark.filterwarnings("ignore::symop.interop.mxnet.storage.StorageFallbackWarning")
@pytest.mark.parametrize("through_module", [False, True])
def test_a_csr_gradient_of_the_output_reaches_a_csr_array(through_module):
    x = nd.zeros((2, 3)).tostype("csr")
    x.attach_grad()
    along = nd.array([[1, 0, 2], [0, 3, 0]]).tostype("csr")
    with mx.autograd.record():
        y = x * 2
    if through_module:
        mx.autograd.backward([y], [along])
    else:
        y.backward(along)
    assert x.grad.stype == "csr"
    assert same(x.grad, [[2, 0, 4], [0, 6, 0]])


def test_a_csr_gradient_of_a_dense_output():
    x = nd.ones((2, 3))
    x.attach_grad()
    with mx.autograd.record():
        y = x * 3
    y.backward(nd.array([[1, 0, 2], [0, 0, 0]]).tostype("csr"))
    assert same(x.grad, [[3, 0, 6], [0, 0, 0]])


# Fallback


def test_a_fallback_warns_once(monkeypatch):
    with pytest.warns(StorageFallbackWarning, match=r"softmax: no rule .* \[row_sparse\]"):
        assert same(nd.softmax(rows()), softmax_of(ROWS, axis=-1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nd.softmax(rows())
        monkeypatch.setenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")
        nd.softmax(matrix())
    monkeypatch.delenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE")
    with pytest.warns(StorageFallbackWarning, match="broadcast_add"):
        found = nd.broadcast_add(rows(), nd.ones((1, 2)))
    assert same(found, ROWS + 1)


def test_an_operator_writes_to_a_sparse_array():
    out = nd.zeros((3, 4), stype="csr")
    nd.broadcast_mul(nd.array(MATRIX), nd.full((1, 4), 2), out=out)
    assert out.stype == "csr"
    assert same(out, 2 * MATRIX)


def test_rules_are_of_operators():
    assert not [name for name in storage.RULES if TABLE[name].name != name]
    assert mx.nd.sparse.adagrad_update is not None
