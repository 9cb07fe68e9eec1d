"""MXNet's arrays: making, indices, views, arithmetic, methods, namespaces, files, contexts."""

import copy
import logging
import pickle

import jax
import numpy as np
import pytest

from symop.interop.mxnet import autograd, context, initializer, nd, optimizer, random, sym
from symop.interop.mxnet.base import MXNetError, string_types
from symop.interop.mxnet.context import Context, cpu, current_context, gpu
from symop.interop.mxnet.errors import NotImplementedForSymbol
from symop.interop.mxnet.operators import TABLE
from symop.interop.mxnet.ops import random_draws
from symop.interop.mxnet.scopes import NameManager

needs_two = pytest.mark.skipif(len(jax.devices()) < 2, reason="of one device there are no others")


def same(array, expected):
    """The array has these entries, and MXNet's form of them."""
    np.testing.assert_allclose(array.asnumpy(), np.atleast_1d(expected), rtol=1e-6)
    return True


@pytest.fixture
def cube():
    return nd.arange(24).reshape((2, 3, 4))


# Making


def test_lists_become_float32_and_arrays_keep_their_dtype():
    assert nd.array([1, 2]).dtype is np.float32
    assert nd.array(np.arange(3)).dtype is np.float32
    assert nd.array(np.arange(3), dtype="int32").dtype is np.int32
    assert nd.array(nd.array([1], dtype="int32")).dtype is np.int32
    assert nd.array(3).shape == ()
    with pytest.raises(TypeError, match="numbers"):
        nd.array(["a"])


def test_an_array_is_no_view_of_numpys():
    given = np.ones(4, np.float32)
    made = nd.array(given)
    given[:] = 2
    assert same(made, np.ones(4))


def test_makers():
    assert same(nd.zeros((2, 3)), np.zeros((2, 3)))
    assert nd.zeros(3, dtype="int32").dtype is np.int32
    assert same(nd.ones((2,)), [1, 1])
    assert same(nd.full((2, 2), 7), np.full((2, 2), 7))
    assert same(nd.full((2, 2), nd.array([1, 2])), [[1, 2], [1, 2]])
    assert same(nd.arange(2, 8, 2, repeat=2), [2, 2, 4, 4, 6, 6])
    assert same(nd.linspace(0, 1, 3), [0, 0.5, 1])
    assert same(nd.eye(2, 3, 1), np.eye(2, 3, 1))
    assert nd.empty((2, 2)).shape == (2, 2)
    assert same(nd.zeros_like(nd.ones(2)), [0, 0])
    assert same(nd.from_numpy(np.arange(3, dtype=np.int32)), [0, 1, 2])
    assert same(nd.onehot_encode(nd.array([1, 0]), nd.zeros((2, 3))), [[0, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [
        ((0, -3, -1), "float32"),
        ((5, 0, -2), "float32"),
        ((-3, 3, 2), "float32"),
        ((5, -3, -2.5), "float16"),
        ((1, -5, -2), "int8"),
        ((0, 10, 3), "uint8"),
        ((10, 0, -3), "uint8"),
        ((-2, 2, 1), "uint8"),
        ((250, 260, 3), "uint8"),
    ],
)
def test_ranges_go_down_and_wrap_around(bounds, dtype):
    expected = np.arange(*bounds).astype(dtype).repeat(2)
    for found in (
        nd.arange(*bounds, repeat=2, dtype=dtype),
        *sym.arange(*bounds, repeat=2, dtype=dtype).bind(cpu(), {}).forward(),
    ):
        assert found.dtype == expected.dtype
        assert found.asnumpy().tolist() == expected.tolist()


@pytest.mark.parametrize("bounds", [(-3,), (5, 0), (0, 5, -1), (0, 1, 0), (2, 2)])
def test_ranges_without_entries_are_refused(bounds):
    with pytest.raises(MXNetError, match="step must lead"):
        nd.arange(*bounds)


@pytest.mark.parametrize("zero_copy", [True, False])
@pytest.mark.parametrize("shape", [(), (0,), (1, 0, 2)])
def test_arrays_of_numpy_may_lack_axes_or_entries(shape, zero_copy):
    given = np.full(shape, 3, np.float32)
    found = nd.from_numpy(given, zero_copy=zero_copy)
    assert (found.shape, found.dtype) == (shape, np.float32)
    np.testing.assert_array_equal(found.asnumpy(), given)


def test_what_it_says_of_itself():
    x = nd.array([[1, 2]])
    assert repr(x) == "\n[[1. 2.]]\n<NDArray 1x2 @cpu(0)>"
    assert (x.shape, x.size, x.ndim, x.stype, len(x)) == ((1, 2), 2, 2, "default", 1)
    assert x.T.shape == (2, 1)
    assert float(nd.array([3])) == int(nd.array([3])) == nd.array([[3]]).asscalar() == 3
    assert [row.shape for row in nd.ones((2, 3))] == [(3,), (3,)]
    assert [one.asscalar() for one in nd.arange(3)] == [0, 1, 2]
    assert bool(nd.array([1]))
    assert not nd.array([0])
    with pytest.raises(ValueError, match="one entry"):
        bool(x)
    with pytest.raises(ValueError, match="one entry"):
        x.asscalar()


def test_copies_are_of_their_own():
    x = nd.array([1, 2])
    copies = [x.copy(), copy.copy(x), copy.deepcopy(x), x.astype("float32"), nd.identity(x)]
    copies += [pickle.loads(pickle.dumps(x)), x.copyto(cpu()), nd.Reshape(x, shape=(-2,))]
    assert x.astype("float32", copy=False) is x
    x[:] = 5
    assert all(same(one, [1, 2]) for one in copies)
    y = nd.zeros(2, dtype="int32")
    assert x.copyto(y) is y
    assert y.asnumpy().tolist() == [5, 5]
    with pytest.raises(MXNetError, match="shape"):
        x.copyto(nd.zeros(3))


# Indices

KEYS = {
    "number": 1,
    "NumPy's number": np.int64(1),
    "NumPy's numbers": (np.int32(1), slice(np.int32(0), np.int64(2)), np.int32(-1)),
    "last": -1,
    "numbers": (1, 2, 3),
    "row": (0, slice(None), 1),
    "dots": (..., 0),
    "new": (None, 1),
    "list": (slice(None), [0, 2]),
    "lists": ([0, 1], [1, 2]),
    "array": (slice(1, None), np.array([0, 1])),
    "apart": ([0, 1], slice(None), [1, 2]),
    "mixed": (0, [1, 2]),
    "back": slice(None, None, -1),
    "steps": (slice(None), slice(None, None, 2)),
    "tail": slice(-1, None),
}


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_ranges_that_descend_begin_with_a_positive_zero(dtype):
    found = nd.arange(0, -3, -1, dtype=dtype).asnumpy()
    expected = np.arange(0, -3, -1, dtype)
    assert found.tobytes() == expected.tobytes()
    assert nd.arange(1, 0, -0.25, repeat=2).asnumpy()[::2].tolist() == [1, 0.75, 0.5, 0.25]


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_indices_are_numpys_but_for_lone_numbers(cube, key):
    whole = cube.asnumpy()
    assert same(cube[key], whole[key])
    for value in (-1.0, nd.array(2 * whole[key]), (3 * whole[key]).tolist()):
        made, expected = cube.copy(), whole.copy()
        made[key] = value
        expected[key] = (
            value.asnumpy().reshape(whole[key].shape) if hasattr(value, "inner") else value
        )
        assert same(made, expected)


def test_indices_may_be_arrays_of_floats(cube):
    assert same(cube[nd.array([1, 0])], cube.asnumpy()[[1, 0]])
    cube[nd.array([1])] = 0
    assert cube.asnumpy()[1].sum() == 0


def test_wrong_indices(cube):
    with pytest.raises(IndexError, match="bounds"):
        cube[2]
    for kind in (MXNetError, IndexError):
        with pytest.raises(kind, match="axes"):
            cube[0, 0, 0, 0]
    with pytest.raises(MXNetError):
        cube[0] = nd.ones((7,))


def test_a_piece_and_the_whole_share_their_entries(cube):
    rows, flat = cube[1], cube.reshape((-1,))
    entry = rows[2][3]
    cube[1][2][3] = 100
    assert rows.asnumpy()[2, 3] == flat.asnumpy()[23] == entry.asscalar() == 100
    entry[:] = 200
    assert cube.asnumpy()[1, 2, 3] == flat.asnumpy()[23] == 200
    flat += 1
    assert entry.asscalar() == cube.asnumpy()[1, 2, 3] == 201
    assert cube[:] is cube


def test_what_does_not_lie_together_is_a_copy(cube):
    for key in ((slice(None), 1), (slice(None, None, -1)), ([0],)):
        piece = cube[key]
        piece[:] = -1
    assert cube.asnumpy().min() == 0


# Arithmetic


def test_arithmetic_with_arrays_and_numbers():
    x, y = nd.array([[1, 2], [3, 4]]), nd.array([2, 4])
    a, b = x.asnumpy(), y.asnumpy()
    assert same(x + y, a + b)
    assert same(x - 1, a - 1)
    assert same(1 - x, 1 - a)
    assert same(x * y, a * b)
    assert same(1 / x, 1 / a)
    assert same(x / y, a / b)
    assert same(x % 2, a % 2)
    assert same(5 % x, 5 % a)
    assert same(x**2, a**2)
    assert same(2**x, 2**a)
    assert same(x**y, a**b)
    assert same(-x, -a)
    assert same(abs(-x), a)
    assert same(np.float32(2) * x, 2 * a)
    assert same(sum([x, x]), 2 * a)


def test_the_dtype_is_that_of_the_array():
    whole = nd.array([1, 2, 5], dtype="int32")
    assert (whole * 2).dtype is np.int32
    assert same(whole / 2, [0, 1, 2])
    assert (whole == 2).dtype is np.int32
    assert (nd.ones(2, dtype="float16") * 2.5).dtype is np.float16


def test_comparisons_are_numbers():
    x, y = nd.array([1, 2, 3]), nd.array([3, 2, 1])
    assert same(x == y, [0, 1, 0])
    assert same(x != 2, [1, 0, 1])
    assert same(x > y, [0, 0, 1])
    assert same(x >= 2, [0, 1, 1])
    assert same(x < y, [1, 0, 0])
    assert same(x >= 2, [0, 1, 1])
    assert (x == None) is False  # noqa: E711
    assert same(nd.logical_and(x, nd.array([0, 1, 1])), [0, 1, 1])


def test_functions_of_two_operands():
    x = nd.array([1, 5])
    assert same(nd.maximum(x, 3), [3, 5])
    assert same(nd.minimum(3, x), [1, 3])
    assert same(nd.power(2, x), [2, 32])
    assert same(nd.subtract(1, x), [0, -4])
    assert same(nd.greater(3, x), [1, 0])
    assert nd.maximum(2, 3) == 3
    assert nd.lesser(2, 3) == 1
    with pytest.raises(TypeError, match="operands"):
        nd.add(x, "a")
    with pytest.raises(TypeError, match="operands"):
        x + np.ones(2)
    with pytest.raises(MXNetError, match="broadcast"):
        x + nd.ones(3)


def test_operators_in_place():
    x = nd.array([4, 8], dtype="int32")
    same_array = x
    x += 1
    x *= nd.array([2, 2], dtype="int32")
    x -= 2
    x /= 2
    assert same_array is x
    assert x.asnumpy().tolist() == [4, 8]
    assert x.dtype is np.int32
    with pytest.raises(MXNetError, match="shape"):
        x += nd.ones((2, 2), dtype="int32")


# Operators


def test_operators_by_name():
    x = nd.array([[1, 2], [3, 4]])
    assert same(nd.dot(x, x), x.asnumpy() @ x.asnumpy())
    assert nd.concat(x, x, dim=1).shape == (2, 4)
    assert nd.concat([x, x], dim=0).shape == (4, 2)
    assert nd.concatenate([x, x], axis=1).shape == (2, 4)
    assert nd.stack(x, x, axis=0).shape == (2, 2, 2)
    assert [one.shape for one in nd.split(x, num_outputs=2, axis=0)] == [(1, 2), (1, 2)]
    assert nd.moveaxis(nd.ones((2, 3, 4)), 0, -1).shape == (3, 4, 2)
    assert [one.shape for one in nd.split_v2(nd.ones((5, 2)), (1, 3))] == [(1, 2), (2, 2), (2, 2)]
    assert same(nd.add_n(x, x, x), 3 * x.asnumpy())
    assert same(nd.linalg.gemm2(x, x), x.asnumpy() @ x.asnumpy())
    assert same(nd.contrib.isnan(nd.array([np.nan, 1])), [1, 0])
    assert same(nd.contrib.isfinite(nd.array([np.inf, 1, np.nan])), [0, 1, 0])
    assert same(nd.op.relu(-x), np.zeros((2, 2)))
    assert "relu" in dir(nd)
    assert "gemm2" in dir(nd.linalg)


def test_out():
    x, out = nd.array([1, 4]), nd.zeros(2)
    assert nd.sqrt(x, out=out) is out
    assert same(out, [1, 2])
    first, second = nd.zeros((1, 2)), nd.zeros((1, 2))
    nd.split(nd.array([[1, 2], [3, 4]]), num_outputs=2, axis=0, out=[first, second])
    assert same(second, [[3, 4]])
    nd.random.uniform(5, 6, out=out)
    assert out.shape == (2,)
    assert (out > 5).asnumpy().all()


def test_states_of_an_operator_are_written():
    weight, slope, mom = nd.ones(2), nd.ones(2), nd.zeros(2)
    for _ in range(2):
        nd.sgd_mom_update(weight, slope, mom, out=weight, lr=0.1, momentum=0.9)
    assert same(mom, [-0.19, -0.19])
    assert same(weight, [0.71, 0.71])
    weights, slopes, moms = ([nd.full((n,), v) for n in (2, 3)] for v in (1, 1, 0))
    inputs = [one for each in zip(weights, slopes, moms, strict=True) for one in each]
    how = {"lrs": [0.1, 0.2], "wds": [0, 0], "momentum": 0.9, "num_weights": 2}
    nd.multi_sgd_mom_update(*inputs, out=weights, **how)
    assert same(weights[1], [0.8] * 3)
    assert same(moms[1], [-0.2] * 3)


def test_wrong_calls():
    with pytest.raises(AttributeError, match="nosuch: no such operator"):
        _ = nd.nosuch
    with pytest.raises(AttributeError, match="no operator"):
        _ = nd.linalg.nosuch
    with pytest.raises(MXNetError, match="num_hidden"):
        nd.FullyConnected(nd.ones((2, 2)))
    with pytest.raises(MXNetError, match="weight"):
        nd.FullyConnected(nd.ones((2, 2)), num_hidden=3)
    with pytest.raises(MXNetError):
        nd.dot(nd.ones((2, 2)), nd.ones((3,)))


def test_attributes_that_are_equal_but_of_another_type():
    x = nd.array([1, 2, 3])
    assert nd.sum(x, axis=0, keepdims=True).shape == (1,)
    assert nd.clip(x, a_min=1, a_max=2).dtype is np.float32
    assert same(nd.clip(x, a_min=1.0, a_max=2.0), [1, 2, 2])
    assert same(nd.clip(x, a_min=True, a_max=2.0), [1, 2, 2])


def test_methods(cube):
    whole = cube.asnumpy()
    assert cube.sum().shape == (1,)
    assert same(cube.sum(axis=1), whole.sum(1))
    assert same(cube.mean(1, keepdims=True), whole.mean(1, keepdims=True))
    assert same(cube.max(axis=(0, 1)), whole.max((0, 1)))
    assert same(cube.argmax(axis=1), whole.argmax(1))
    assert cube.argmax(axis=1).dtype is np.float32
    assert same(cube.norm(), np.sqrt((whole**2).sum()))
    assert same(cube.clip(1, 3), whole.clip(1, 3))
    assert same(cube.take(nd.array([0, 1]), axis=1), whole[:, :2])
    assert same(cube.transpose((2, 0, 1)), whole.transpose(2, 0, 1))
    assert same(cube.transpose(), whole.T)
    assert same(cube.slice_axis(0, 0, 1), whole[:1])
    assert cube.reshape(-1, 4).shape == (6, 4)
    assert cube.reshape((0, -1)).shape == (2, 12)
    assert cube.reshape(shape=(-3, 0)).shape == (6, 4)
    assert cube.reshape((-1, 0), reverse=True).shape == (6, 4)
    assert cube.expand_dims(0).shape == (1, 2, 3, 4)
    assert cube.flatten().shape == (2, 12)
    assert cube.squeeze().shape == cube.shape
    assert cube[:1].squeeze(axis=0, inplace=True).shape == (3, 4)
    assert nd.ones(4).broadcast_to((2, 3, 4)).shape == (2, 3, 4)
    assert nd.ones((1, 4)).broadcast_like(nd.ones((3, 4))).shape == (3, 4)
    assert len(cube.split(2, axis=0)) == len(cube.split_v2(2, axis=0)) == 2
    assert cube.tile((2, 1, 1)).shape == (4, 3, 4)
    with pytest.raises(MXNetError):
        cube.reshape((5, 5))


@pytest.mark.parametrize(
    ("codes", "reverse", "expected"),
    [
        ((-2,), False, (2, 3, 5)),
        ((0, -2), False, (2, 3, 5)),
        ((-2, 1), False, (2, 3, 5, 1)),
        ((-3, 0), False, (6, 5)),
        ((0, -3), False, (2, 15)),
        ((-3, -1), False, (6, 5)),
        ((0, -4, 3, -1, 0), False, (2, 3, 1, 5)),
        ((-4, 1, 2, -2), False, (1, 2, 3, 5)),
        ((-1, -2), False, (2, 3, 5)),
        ((-1, -2), True, (1, 2, 3, 5)),
        ((2, -3), True, (2, 15)),
    ],
)
def test_codes_of_reshape_keep_join_and_split_axes(codes, reverse, expected):
    x = nd.arange(30).reshape((2, 3, 5))
    for made in (x.reshape(codes, reverse=reverse), x.reshape(*codes, reverse=reverse)):
        assert same(made, np.arange(30).reshape(expected))
    made[:] = 7  # a view
    assert same(x, np.full((2, 3, 5), 7))


@pytest.mark.parametrize("codes", [(-1, -1), (-5,), (-4, -1, -1, 0, 0), (-4, 1, 3, 0, 0), (-3, -3)])
def test_wrong_codes_of_reshape(codes):
    with pytest.raises(ValueError, match="Reshape"):
        nd.zeros((2, 3, 5)).reshape(codes)


@pytest.mark.parametrize(
    ("name", "axis", "expected"),
    [
        ("squeeze", None, (2, 3)),
        ("squeeze", 1, (2, 3, 1)),
        ("squeeze", -1, (2, 1, 3)),
        ("squeeze", (-3, 3), (2, 3)),
        ("expand_dims", 1, (2, 1, 1, 3, 1)),
        ("expand_dims", 4, (2, 1, 3, 1, 1)),
        ("expand_dims", -1, (2, 1, 3, 1, 1)),
        ("expand_dims", -5, (1, 2, 1, 3, 1)),
    ],
)
def test_axes_of_length_one_come_and_go_in_place(name, axis, expected):
    x = nd.arange(6).reshape((2, 1, 3, 1))
    shared, copied = (getattr(x, name)(axis=axis, inplace=inplace) for inplace in (True, False))
    x[1, 0, 2, 0] = 9
    assert same(shared, np.array([0, 1, 2, 3, 4, 9]).reshape(expected))
    assert same(copied, np.arange(6).reshape(expected))
    shared[:] = 8
    assert same(x, np.full((2, 1, 3, 1), 8))


def test_all_axes_of_length_one_but_one_go():
    assert nd.ones((1, 1)).squeeze(inplace=True).shape == (1,)
    assert nd.ones((1, 1)).squeeze().shape == (1,)
    for axis in (0, (1, 1), 5):
        with pytest.raises(MXNetError, match="squeeze"):
            nd.ones((2, 1)).squeeze(axis=axis, inplace=True)


def test_loops():
    rows, states = nd.contrib.foreach(
        lambda x, s: (x * s[0], [s[0] + 1]), nd.arange(3), [nd.ones(1)]
    )
    assert same(rows, [[0], [2], [6]])
    assert same(states[0], [4])
    outputs, (i, total) = nd.contrib.while_loop(
        lambda i, s: i < 3, lambda i, s: ([i * 2], [i + 1, s + i]), [nd.zeros(1), nd.ones(1)], 5
    )
    assert same(outputs[0], [[0], [2], [4], [0], [0]])
    assert (i.asscalar(), total.asscalar()) == (3, 4)
    assert nd.contrib.cond(nd.array([1]), lambda: 1, lambda: 2) == 1


def test_functions_that_are_no_operators(cube):
    counts, bounds = nd.histogram(nd.arange(10), bins=5)
    assert same(counts, [2] * 5)
    assert same(bounds, np.linspace(0, 9, 6))
    assert same(nd.histogram(nd.arange(10), bins=nd.array([0, 5, 10]))[0], [5, 5])
    drawn, expected, _ = nd.contrib.rand_zipfian(nd.array([0, 3]), 4, 10)
    chance = np.log([2, 5 / 4]) / np.log(11)
    assert same(expected, 4 * chance)
    assert (drawn < 10).asnumpy().all()
    cube.slice_assign(nd.zeros((1, 3, 4)), (0, 0), (1, 3))
    assert cube.asnumpy()[0].max() == 0
    assert same(nd.from_dlpack(nd.to_dlpack_for_read(nd.ones(2))), [1, 1])
    assert same(nd.from_dlpack(nd.ones(2)), [1, 1])
    assert nd.waitall() is None


# Random draws


def test_a_seed_makes_the_same_draws():
    random.seed(3)
    first = random.uniform(shape=3).asnumpy()
    random.seed(3, ctx=cpu())
    assert same(nd.random.uniform(shape=(3,)), first)
    with pytest.raises(ValueError, match="whole"):
        random.seed("a")


@pytest.mark.parametrize("name", ["uniform", "normal", "poisson"])
def test_a_draw_of_few_entries_is_a_part_of_a_longer_one(name, monkeypatch):
    draw = getattr(nd.random, name)
    random.seed(5)
    cut = draw(2, 3, shape=(3, 2)) if name != "poisson" else draw(2, shape=(3, 2))
    monkeypatch.setattr(random_draws, "_FEW", 0)
    random.seed(5)
    whole = draw(2, 3, shape=(3, 2)) if name != "poisson" else draw(2, shape=(3, 2))
    np.testing.assert_allclose(cut.asnumpy(), whole.asnumpy(), rtol=1e-6)


def test_draws_of_new_shapes_share_a_program():
    for _ in range(2):  # the first run of a segment compiles its parts
        nd.random.uniform(shape=(2, 3)).asnumpy()
    compiled = []
    with jax.log_compiles(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.getLogger("jax._src.dispatch"), "handle", compiled.append)
        assert nd.random.uniform(shape=(7, 5)).asnumpy().shape == (7, 5)
    assert not [one for one in compiled if "uniform" in one.getMessage()]


def test_draws():
    assert nd.random.normal().shape == (1,)
    assert nd.random.randn(2, 3).shape == (2, 3)
    assert nd.random.randint(0, 5, shape=(4,)).dtype is np.int32
    assert nd.random.uniform(nd.array([0, 10]), nd.array([1, 20]), shape=3).shape == (2, 3)
    assert nd.random.exponential(2.0, shape=(1000,)).mean().asscalar() == pytest.approx(2, abs=0.4)
    assert nd.random.multinomial(nd.array([0.0, 1.0]), shape=4).asnumpy().tolist() == [1] * 4
    assert sorted(nd.random.shuffle(nd.arange(5)).asnumpy()) == [0, 1, 2, 3, 4]
    assert nd.random.uniform_like(nd.ones((2, 2))).shape == (2, 2)
    assert {"normal", "uniform_like"} <= set(dir(nd.random))
    with pytest.raises(MXNetError, match="must be given"):
        nd.random.randint(3)
    with pytest.raises(MXNetError, match="all arrays"):
        nd.random.normal(nd.ones(2), 1)


# Contexts


def test_contexts():
    assert (str(cpu()), gpu(1).device_typeid) == ("cpu(0)", 2)
    assert cpu(0) == nd.ones(1).context == nd.ones(1).ctx
    assert cpu(0) != cpu(1)
    assert len({cpu(), cpu(), gpu()}) == 2
    assert nd.ones(2, ctx=cpu(99)).context == cpu(0)  # all of the host's memory is one
    assert context.as_context("gpu(2)") == gpu(2)
    with gpu(3):
        assert current_context() == gpu(3)
        with cpu(1):
            assert current_context() == cpu(1)
    x = nd.ones(2, ctx=cpu())
    assert x.as_in_context(cpu()) is x
    assert x.as_in_context(cpu(1)).context == cpu(1)
    assert (x.copyto(cpu(1)) * 2).context == cpu(1)
    with pytest.raises(MXNetError, match="type"):
        Context("abacus")
    with pytest.raises(MXNetError, match="must be such as"):
        context.as_context(3)


def test_pinned_and_shared_memory_is_the_hosts():
    pinned, shared = context.cpu_pinned(1), Context("cpu_shared")
    assert (str(pinned), pinned.device_typeid) == ("cpu_pinned(1)", 3)
    assert (str(shared), shared.device_typeid) == ("cpu_shared(0)", 5)
    assert Context(pinned) == pinned != cpu(1)
    x = nd.array([1, 2])
    for place in (context.cpu_pinned(), shared):
        for made in (nd.ones(2, ctx=place), x.as_in_context(place), x.copyto(place)):
            assert same(made * 0 + x, [1, 2])
        with place:
            assert current_context() == place
            assert same(nd.ones(2), [1, 1])


@needs_two
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.__setitem__(slice(None), nd.ones((2, 3))),
        lambda x: x.__setitem__(0, np.ones(3)),
        lambda x: x.__iadd__(1),
        lambda x: nd.ones((2, 3)).copyto(x),
        lambda x: nd.random.uniform(0, 1, out=x),
        lambda x: nd.ones((2, 3), out=x),
        lambda x: initializer.Xavier()("w_weight", x),
        lambda x: initializer.One()("w_weight", x),
    ],
)
def test_an_array_stays_on_its_device(change):
    x = nd.zeros((2, 3), ctx=cpu(1))
    change(x)
    assert x.asnumpy().any()
    assert x.context == cpu(1)


@needs_two
@pytest.mark.parametrize("place", ["default", "row_sparse"])
@pytest.mark.parametrize("source", ["default", "row_sparse"])
def test_an_array_of_any_storage_type_stays_on_its_device(place, source):
    x = nd.sparse.zeros(place, (2, 3), ctx=cpu(1))
    for write in (lambda y: y.copyto(x), lambda y: x.__setitem__(slice(None), y)):
        write(nd.ones((2, 3)).tostype(source))
        assert x.stype == place
        assert x.context == cpu(1)
        assert x.asnumpy().all()


@needs_two
def test_a_recorded_copy_to_another_device_has_a_gradient():
    x, y = nd.ones(2), nd.zeros(2, ctx=cpu(1))
    x.attach_grad()
    with autograd.record():
        (x * 2).copyto(y)
        loss = (y * 3).sum()
    loss.backward()
    assert x.grad.asnumpy().tolist() == [6, 6]
    other = nd.zeros(2, ctx=cpu(1))
    assert x.copyto(other).context == cpu(1)  # outside of recording


@needs_two
def test_an_executor_of_other_shapes_stays_on_its_device():
    executor = (sym.var("x") * 2).simple_bind(cpu(1), x=(2, 3))
    larger = executor.reshape(allow_up_sizing=True, x=(4, 3))
    arrays = [larger.arg_dict["x"], larger.grad_dict["x"], *larger.outputs, *larger.forward()]
    assert [one.context for one in arrays] == [cpu(1)] * 4


@needs_two
@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_gradients_and_states_are_on_the_device_of_their_array(stype):
    x = nd.zeros((2, 3), ctx=cpu(1))
    x.attach_grad(stype=stype)
    assert x.grad.context == cpu(1)
    assert [one.context for one in optimizer.create("adam").create_state(0, x)] == [cpu(1)] * 2


def test_a_device_that_is_not_there():
    for make in (
        lambda: nd.zeros((2,), ctx=gpu(99)),
        lambda: nd.array([1], gpu(99)),
        lambda: nd.ones(1).as_in_context(gpu(99)),
        lambda: nd.ones(1).copyto(gpu(99)),
    ):
        with pytest.raises(MXNetError, match=r"one of .*cpu\(0\).*, got gpu\(99\)"):
            make()
    with gpu(99), pytest.raises(MXNetError, match="got gpu"):
        nd.ones(2)


# Sparse arrays and files


def test_row_sparse_arrays():
    some = nd.sparse.row_sparse_array(([[3, 4], [1, 2]], [3, 1]), shape=(5, 2))
    expected = np.array([[0, 0], [1, 2], [0, 0], [3, 4], [0, 0]])
    assert some.stype == "row_sparse"
    assert same(some, expected)
    assert some.indices.asnumpy().tolist() == [1, 3]
    assert same(some.data, [[1, 2], [3, 4]])
    assert same(some.retain(nd.array([3, 4])), expected * [[0], [0], [0], [1], [1]])
    assert same(some + 1, expected + 1)
    assert some.tostype("default").stype == "default"
    assert nd.zeros((2, 2), stype="row_sparse").indices.shape == (0,)
    assert pickle.loads(pickle.dumps(some)).stype == "row_sparse"
    with pytest.raises(MXNetError, match="stype"):
        some.tostype("dense")


def test_csr_matrices():
    parts = ([1.0, 2, 3], [2, 0, 1], [0, 1, 1, 3])
    some = nd.sparse.csr_matrix(parts, shape=(3, 4))
    expected = np.array([[0, 0, 1, 0], [0, 0, 0, 0], [2, 3, 0, 0]])
    assert same(some, expected)
    assert [one.asnumpy().tolist() for one in (some.data, some.indices, some.indptr)] == list(parts)
    assert same(some[1:3], expected[1:3])
    assert some[2].stype == "csr"
    assert same(nd.sparse.csr_matrix(some.asscipy()), expected)
    assert same(nd.sparse.csr_matrix(([5.0], ([1], [2])), shape=(2, 3)), [[0, 0, 0], [0, 0, 5]])
    assert same(nd.sparse.dot(some, nd.ones((4, 1))), expected.sum(1, keepdims=True))
    assert same(nd.array(some), expected)
    with pytest.raises(MXNetError, match="two axes"):
        nd.ones(3).tostype("csr")


def test_files(tmp_path):
    path = tmp_path / "x.params"
    some = nd.sparse.row_sparse_array(([[1.0]], [2]), shape=(4, 1))
    matrix = nd.sparse.csr_matrix(([1.0], [0], [0, 0, 1]), shape=(2, 2))
    nd.save(path, {"arg:w": nd.array([1, 2]), "arg:s": some, "aux:m": matrix})
    found = nd.load(path)
    assert list(found) == ["arg:w", "arg:s", "aux:m"]
    assert [one.stype for one in found.values()] == ["default", "row_sparse", "csr"]
    assert same(found["arg:s"], [[0], [0], [1], [0]])
    nd.save(path, [nd.arange(3, dtype="int32")])
    assert nd.load(path)[0].dtype is np.int32
    assert same(nd.load_frombuffer(path.read_bytes())[0], [0, 1, 2])
    nd.save(path, nd.ones(1))
    assert same(nd.load(path)[0], [1])
    with pytest.raises(TypeError, match="arrays"):
        nd.save(path, [np.ones(2)])


# Symbols


def test_names_of_symbols_that_arithmetic_makes():
    with NameManager():
        x, y = sym.var("x"), sym.var("y")
        made = [x + y, x + 1, 1 - x, x / y, 2 / x, -x, x == 1, x > y, x < 1, x**2, 2**x]
    names = (
        "_plus0 _plusscalar0 _rminusscalar0 _div0 _rdivscalar0 _mulscalar0 _equal_scalar0 "
        "_greater0 _lesser_scalar0 _powerscalar0 _rpower_scalar0"
    )
    assert [one.name for one in made] == names.split()
    assert made[0].tojson().count("elemwise_add") == 1


def value(symbol, **arrays):
    return symbol.eval(**{name: nd.array(one) for name, one in arrays.items()})[0]


def test_symbols_compute_what_arrays_do():
    x = sym.var("x")
    entries = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert same(value(3 - 2 * x / 4, x=entries), 3 - entries / 2)
    assert same(value(x.reshape((4,)).sum(), x=entries), [10])
    assert same(value(x.transpose().expand_dims(0), x=entries), entries.T[None])
    assert same(value(sym.maximum(x, 2) + sym.minimum(2, x), x=entries), entries + 2)
    assert same(value(sym.hypot(x, 1), x=entries), np.hypot(entries, 1))
    assert same(value(x >= 2, x=entries), entries >= 2)
    assert same(value(x + sym.ones((2, 2)), x=entries), entries + 1)
    assert same(value(sym.linalg.gemm2(x, x), x=entries), entries @ entries)
    assert value(x.astype("int32"), x=entries).dtype is np.int32
    assert sym.split_v2(x, 2).list_outputs()[1].endswith("output1")
    assert value(sym.random.uniform(shape=(3,))).shape == (3,)
    assert sym.contrib.quadratic(x).name.startswith("quadratic")
    assert sym.pow(2, 3) == 8


def test_what_symbols_cannot_do():
    x = sym.var("x")
    for ask in (lambda: bool(x), x.asnumpy, x.backward):
        with pytest.raises(NotImplementedForSymbol, match="bind"):
            ask()
    with pytest.raises(TypeError, match="operands"):
        x + "a"
    with pytest.raises(ValueError, match="range"):
        sym.histogram(x, 3)
    assert isinstance("a", string_types)


DIRECT = {one.name: one for one in TABLE.values() if one.direct is not None}


@pytest.mark.parametrize("name", DIRECT)
def test_the_short_way_of_a_call_is_the_whole_one(name):
    arrays = [nd.array([[0.25, 0.5], [0.75, 1.0]]), nd.array([[0.5, 0.25], [1.0, 2.0]])]
    given = arrays[: len(DIRECT[name].inputs)]
    short = getattr(nd, name)(*given)
    named = dict(zip(DIRECT[name].inputs, given, strict=True))
    whole = getattr(nd, name)(**named)
    np.testing.assert_array_equal(short.asnumpy(), whole.asnumpy())
    assert short.dtype == whole.dtype == np.float32
    assert short.inner is not given[0].inner


def test_the_short_way_is_recorded_and_refuses_as_the_whole_one():
    x = nd.array([0.5, 1.0])
    x.attach_grad()
    with autograd.record():
        y = nd.exp(x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.exp([0.5, 1.0]), rtol=1e-6)
    with pytest.raises(MXNetError, match=r"elemwise_add: lhs and rhs must be of one shape"):
        nd.elemwise_add(x, nd.ones(3))


# Broadcasting without compilation


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16"])
def test_a_small_array_is_broadcast_as_by_the_operator(dtype):
    x = nd.array([[1], [2]], dtype=dtype)
    x.wait_to_read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nd, "broadcast_to", None)
        made = x.broadcast_to((3, 2, 4)), x.broadcast_like(nd.zeros((2, 2)))
    assert [one.dtype for one in made] == [x.dtype] * 2
    assert same(made[0], np.broadcast_to([[1], [2]], (3, 2, 4)))
    assert same(made[1], [[1, 1], [2, 2]])
    made[0][:] = 0
    assert same(x, [[1], [2]])


def test_zero_in_the_shape_of_a_broadcast_copies_a_length():
    assert same(nd.array([[1], [2]]).broadcast_to((0, 2)), [[1, 1], [2, 2]])
    with pytest.raises(MXNetError):
        nd.ones((2, 2)).broadcast_to((2, 3))


def test_a_broadcast_is_recorded():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = x.broadcast_to((3, 2))
    y.backward()
    assert same(x.grad, [3, 3])


@pytest.fixture
def programs():
    """A list to which each compilation adds an entry."""
    found = []

    def note(event, _seconds, **_more):
        if event == "/jax/core/compile/backend_compile_duration":
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield found
    jax.monitoring.unregister_event_duration_listener(note)


def test_a_call_of_many_steps_is_one_program(programs):
    draw = np.random.default_rng(0)
    data, other = (nd.array(draw.random((1, 4, 3, 3))) for _ in range(2))
    rois = nd.array([[0, 0, 0, 2, 2]])
    options = {"spatial_scale": 1.0, "output_dim": 1, "pooled_size": 2}
    before = len(programs)
    plain = nd.contrib.PSROIPooling(data, rois, **options)
    plain.wait_to_read()
    assert len(programs) == before + 1
    nd.contrib.PSROIPooling(other, rois, **options).wait_to_read()
    assert len(programs) == before + 1
    data.attach_grad()
    with autograd.record():
        recorded = nd.contrib.PSROIPooling(data, rois, **options)
    recorded.backward()
    np.testing.assert_allclose(recorded.asnumpy(), plain.asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(data.grad.asnumpy().sum(), 4, rtol=1e-6)


def test_equal_lists_of_a_call_of_many_steps_share_a_program(programs):
    values = nd.array([0.5, 1.5, 1.75])
    found, counts = [], []
    for _ in range(2):
        found.append(nd.op._histogram(values, bin_cnt=2, range=[0, 2])[0].asnumpy().tolist())
        counts.append(len(programs))
    assert found == [[1, 2]] * 2
    assert counts[0] == counts[1]


def test_larger_and_smaller_of_nan():
    x, y = nd.array([np.nan, 1, 2]), nd.array([0, np.nan, 1])
    np.testing.assert_array_equal(nd.maximum(x, y).asnumpy(), [np.nan, np.nan, 2])
    np.testing.assert_array_equal(nd.minimum(x, y).asnumpy(), [np.nan, np.nan, 1])


MIXED = np.array(
    [
        [1, np.nan, 3, 4],
        [np.inf, -np.inf, 2, np.inf],
        [-np.inf, np.nan, np.inf, 0],
        [4, 5, np.inf, np.inf],
    ],
    np.float32,
)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "max", "min", "nansum", "nanprod", "argmax", "argmin"]
)
def test_reductions_of_infinities_beside_nan_are_those_of_numpy(name, axis):
    with np.errstate(invalid="ignore"):
        expected = getattr(np, name)(MIXED, axis=axis)
    how = {} if axis is None else {"axis": axis}
    found = getattr(nd, name)(nd.array(MIXED), **how)
    assert found.dtype is np.float32
    np.testing.assert_array_equal(found.asnumpy(), np.atleast_1d(expected))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_first_nan_is_the_extremum(dtype):
    x = nd.array([[9, np.nan, np.inf, np.nan], [3, -np.inf, np.inf, np.inf]], dtype=dtype)
    assert same(x.argmax(axis=1), [1, 2])
    assert same(x.argmin(axis=1), [1, 1])
    assert same(x.argmax(axis=0), [0, 0, 0, 0])
    assert same(nd.argmax_channel(x), [1, 2])


def test_relu_of_nan():
    x = nd.array([-1, 0, 2, np.nan])
    x.attach_grad()
    with autograd.record():
        y = nd.relu(x)
    y.backward()
    np.testing.assert_array_equal(y.asnumpy(), [0, 0, 2, np.nan])
    np.testing.assert_array_equal(x.grad.asnumpy(), [0, 0, 1, np.nan])
    assert same(nd.relu(nd.array([-1, 2], dtype="int32")), [0, 2])
