"""``mx.test_utils``: comparisons, random arrays, checks of draws, what is not fetched."""

import os
import sys

import numpy as np
import pytest

import symop.interop.mxnet as mx

tu = mx.test_utils


# Sparse arrays ---------------------------------------------------------------------------------


@pytest.mark.parametrize("stype", ["row_sparse", "csr"])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_random_sparse_arrays_hold_their_share(stype, density):
    np.random.seed(0)
    array, parts = tu.rand_sparse_ndarray((40, 30), stype, density)
    dense = array.tostype("default").asnumpy()
    assert (array.stype, array.shape, array.dtype) == (stype, (40, 30), np.float32)
    assert abs((dense != 0).mean() - density) < 0.15
    assert dense.min() >= 0
    assert dense.max() <= 1
    if stype == "row_sparse":
        entries, rows = parts
        np.testing.assert_array_equal(dense[rows.astype(int)], entries.reshape(-1, 30))
    else:
        indptr, indices, data = (one.asnumpy() for one in parts)
        rows = np.repeat(np.arange(40), np.diff(indptr).astype(int))
        np.testing.assert_array_equal(dense[rows, indices.astype(int)], data)


def test_sparse_arrays_as_told():
    array, (entries, rows) = tu.rand_sparse_ndarray(
        (5, 2), "row_sparse", rsp_indices=np.array([1, 3]), data_init=2.0, modifier_func=abs
    )
    assert (entries.tolist(), rows.tolist()) == ([[2.0, 2.0], [2.0, 2.0]], [1, 3])
    assert array.asnumpy().sum() == 8.0
    made = tu.create_sparse_array((4, 3), "csr", data_init=1.0, density=1.0)
    assert made.asnumpy().tolist() == [[1.0] * 3] * 4
    rows = tu.create_sparse_array_zd((4, 3), "row_sparse", 0.9, rsp_indices=[2, 0], data_init=1.0)
    assert rows.asnumpy().sum(1).tolist() == [3.0, 0.0, 3.0, 0.0]
    assert tu.rand_ndarray((3, 2), "row_sparse", density=1.0).stype == "row_sparse"
    with pytest.raises(mx.MXNetError, match="stype"):
        tu.rand_ndarray((3, 2), "coo")
    with pytest.raises(mx.MXNetError, match="powerlaw"):
        tu.rand_sparse_ndarray((3, 2), "row_sparse", distribution="powerlaw")


def test_rows_of_a_power_law_double():
    array, (indptr, _, _) = tu.rand_sparse_ndarray((5, 16), "csr", 0.5, distribution="powerlaw")
    assert np.diff(indptr.asnumpy()).tolist() == [1, 2, 4, 8, 16]
    array, (indptr, _, _) = tu.rand_sparse_ndarray((5, 4), "csr", 0.5, distribution="powerlaw")
    assert np.diff(indptr.asnumpy()).tolist() == [1, 2, 4, 3, 0]
    assert array.shape == (5, 4)


# Comparisons -----------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 1, -1, (0, 2), [1]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_np_reduce_is_the_function_along_axes(axis, keepdims):
    array = np.random.default_rng(0).normal(size=(2, 3, 4))
    axes = tuple(axis) if isinstance(axis, list) else axis
    for function in (np.sum, np.max):
        found = tu.np_reduce(array, axis, keepdims, function)
        np.testing.assert_allclose(found, function(array, axis=axes, keepdims=keepdims))


@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (3,), (2, 1), ()])
def test_sums_of_what_broadcasting_made(shape):
    array = np.random.default_rng(0).normal(size=(2, 3))
    found = tu.collapse_sum_like(array, shape)
    assert found.shape == shape
    weights = np.random.default_rng(1).normal(size=shape)
    np.testing.assert_allclose(np.sum(found * weights), np.sum(array * weights))


def test_a_share_of_entries_may_differ():
    one, other = np.ones(10), np.ones(10)
    other[0] = 2.0
    tu.assert_almost_equal_with_err(one, other, etol=0.1)
    for etol in (0.05, None):
        with pytest.raises(AssertionError, match="1 of 10"):
            tu.assert_almost_equal_with_err(one, other, etol=etol)
    tu.compare_ndarray_tuple((one, (other, None)), (one, (other, one)))
    with pytest.raises(AssertionError):
        tu.compare_ndarray_tuple((one, one), (one, other))


def test_arrays_that_share_their_entries():
    array = mx.nd.ones((4,))
    assert tu.same_array(array, array[:])
    assert not tu.same_array(array, array.copy())
    assert array.asnumpy().tolist() == [1.0] * 4


def test_tolerances():
    steps = tu.default_numeric_eps()
    assert steps[np.dtype("float64")] < steps[np.dtype("float32")] < steps[np.dtype("float16")]
    assert tu.get_rtol(dtype=np.float16) == tu.default_rtols()[np.dtype("float16")] == 1e-2
    assert (tu.get_atol(0.5), tu.get_atol(dtype=np.float32), tu.get_etol()) == (0.5, 1e-3, 0.0)


def test_functions_of_each_entry():
    array = np.array([[1.0, -2.0]])
    np.testing.assert_array_equal(tu.assign_each(array, abs), [[1.0, 2.0]])
    np.testing.assert_array_equal(tu.assign_each(array, None), array)
    np.testing.assert_array_equal(tu.assign_each2(array, array, max), array)
    assert tu.create_2d_tensor(2, 3).asnumpy().tolist() == [[0] * 3, [1] * 3]
    assert tu.create_vector(3).asnumpy().tolist() == [0, 1, 2]
    assert all(0 <= one < 5 for one in tu.rand_coord_2d(0, 5, 0, 5))


# Draws -----------------------------------------------------------------------------------------


def test_checks_of_draws_tell_right_from_wrong():
    np.random.seed(0)
    count = 20_000

    def right(size):
        return np.random.uniform(0, 1, size)

    def wrong(size):
        return np.random.uniform(0, 1, size) ** 1.1

    buckets, chances = tu.gen_buckets_probs_with_ppf(lambda share: share, 5)
    assert buckets[1] == (0.2, 0.4)
    assert tu.mean_check(right, 0.5, 12**-0.5, count)
    assert not tu.mean_check(wrong, 0.5, 12**-0.5, count)
    assert tu.var_check(lambda size: np.random.normal(0, 2, size), 2, count)
    assert not tu.var_check(lambda size: np.random.normal(0, 2.2, size), 2, count)
    tu.verify_generator(right, buckets, chances, count, nrepeat=3)
    with pytest.raises(AssertionError, match="distributed"):
        tu.verify_generator(wrong, buckets, chances, count, nrepeat=3)


def test_chances_of_a_worse_fit_are_pearsons():
    drawn = np.array([0] * 30 + [1] * 50 + [2] * 20)
    chance, found, expected = tu.chi_square_check(lambda _: drawn, [0, 1, 2], [0.3, 0.4, 0.3], 100)
    assert (found.tolist(), expected.tolist()) == ([30, 50, 20], [30, 40, 30])
    statistic = 100 / 40 + 100 / 30
    np.testing.assert_allclose(chance, np.exp(-statistic / 2), rtol=1e-5)  # of two degrees


# Others ----------------------------------------------------------------------------------------


def test_optimizers_are_compared():
    for name in ("sgd", "adam"):
        pair = [mx.optimizer.create(name, learning_rate=0.1) for _ in "12"]
        tu.compare_optimizer(*pair, (3, 4), "float32")
        tu.compare_optimizer(*pair, [(3, 4), (2,)], "float32", ntensors=2)
    other = mx.optimizer.SGD(learning_rate=0.2)
    with pytest.raises(AssertionError):
        tu.compare_optimizer(mx.optimizer.SGD(learning_rate=0.1), other, (3, 4), "float32")


def test_symbols_of_one_structure():
    x = mx.sym.var("x")
    assert tu.same_symbol_structure(mx.sym.exp(x) + 1, mx.sym.exp(mx.sym.var("y")) + 2)
    assert not tu.same_symbol_structure(mx.sym.exp(x), mx.sym.log(x))


def test_dummy_data_have_no_end():
    data = tu.DummyIter(mx.io.NDArrayIter(np.arange(6.0), np.arange(6.0), 2))
    found = [next(data).data[0].asnumpy().tolist() for _ in range(5)]
    assert found == [[0.0, 1.0]] * 5


def test_variables_and_errors_for_a_while(monkeypatch, capsys):
    monkeypatch.setenv("ONE_OF_THIS_TEST", "1")
    with tu.environment("ONE_OF_THIS_TEST", "2"):
        assert os.environ["ONE_OF_THIS_TEST"] == "2"
        with tu.environment({"ONE_OF_THIS_TEST": None, "TWO_OF_THIS_TEST": "3"}):
            assert "ONE_OF_THIS_TEST" not in os.environ
        assert "TWO_OF_THIS_TEST" not in os.environ
    assert os.environ["ONE_OF_THIS_TEST"] == "1"
    with tu.discard_stderr():
        print("unseen", file=sys.stderr)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["get_mnist", "get_mnist_iterator", "get_cifar10", "download"])
def test_nothing_is_fetched(name):
    with pytest.raises(mx.MXNetError, match="network"):
        getattr(tu, name)("http://example.org")
