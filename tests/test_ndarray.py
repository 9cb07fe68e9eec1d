"""Eager arrays: what they hold, how they change, and that recording them shows nowhere."""

import contextlib
import copy
import gc
import math
import pickle
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry import tuning
from registry.errors import ArgumentError, AttributeValueError, DTypeError, ShapeError
from registry.table import find
from registry.values import SelectedRows
from symop import nd
from symop.eager.array_api import FUNCTIONS
from symop.eager.array_methods import REDUCTIONS
from symop.eager.segments import local
from symop.eager.trace_cache import tree

pytestmark = pytest.mark.usefixtures("way")

DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _any_index(rng, shape):
    """Entries for some axes of ``shape``, with new axes, truth values and dots between them."""
    entries, axis = [], 0
    while axis < len(shape) and rng.random() < 0.8:
        width = min(int(rng.integers(1, 3)), len(shape) - axis)
        if rng.random() < 0.15:
            mask = rng.random(shape[axis : axis + width]) < 0.5
            entries.append(_some(rng, [mask, jnp.asarray(mask), nd.array(mask)]))
            axis += width
        else:
            entries.append(_any_entry(rng, shape[axis]))
            axis += 1
    for _ in range(rng.integers(0, 3)):
        entries.insert(rng.integers(0, len(entries) + 1), _some(rng, [None, None, True, False]))
    at = rng.integers(0, len(entries) + 1) if axis == len(shape) else len(entries)
    return (*entries[:at], *[...] * int(rng.random() < 0.5), *entries[at:])


def _any_entry(rng, length):
    bounds = [_some(rng, [None, 0, 1, 2, -1, -2]) for _ in range(2)]
    cut = slice(*bounds, _some(rng, [None, 1, 2, -1]))
    if length == 0:
        return _some(rng, [cut, [], np.zeros(0, np.int32)])
    place = int(rng.integers(-length, length))
    many = rng.integers(-length, length, _some(rng, [(2,), (2,), (1,), (2, 2)])).astype(np.int32)
    kinds = [place, np.array(place), nd.array(place), cut, many.tolist(), many]
    return _some(
        rng, [*kinds, nd.array(many), jnp.asarray(many), np.abs(many).astype(np.uint8) % length]
    )


def _some(rng, values):
    return values[rng.integers(0, len(values))]


class TestValue:
    def test_takes_anything_like_an_array(self):
        for data in ([1, 2], (1.0, 2.0), np.ones(2), jnp.ones(2), 3, nd.array([1.0])):
            made = nd.array(data)
            assert np.array_equal(made, np.asarray(data))
            assert made.dtype == jnp.asarray(np.asarray(data)).dtype
        assert nd.array([1, 2], dtype="bfloat16").dtype == jnp.bfloat16

    def test_hands_its_array_out(self):
        x = jnp.ones(3)
        assert nd.asarray(x).asjax() is x
        assert (nd.array(x) * 2).asjax() is not x

    def test_shape_and_kin(self):
        x = nd.array(DATA)
        assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((2, 3, 4), 3, 24, np.float32, 2)
        assert x.T.shape == (4, 3, 2)
        assert x.mT.shape == (2, 4, 3)
        assert x.nbytes == 96
        y = nd.matmul(x, nd.array(np.ones((4, 5), np.float32)))
        assert y.shape == (2, 3, 5)

    def test_scalars(self):
        x = nd.array(2.5)
        assert (float(x), int(x), bool(x), x.item(), x.asscalar()) == (2.5, 2, True, 2.5, 2.5)
        assert complex(x) == 2.5
        assert list(range(5))[nd.array(3)] == 3
        assert nd.array([[7.0]]).asscalar() == 7
        with pytest.raises(ArgumentError, match=r"one entry, got shape \(2,\)"):
            nd.array([1.0, 2.0]).asscalar()
        with pytest.raises(ValueError, match="ambiguous"):
            bool(nd.array([1.0, 2.0]))
        assert f"{x:.1f}" == "2.5"

    def test_looks(self):
        assert repr(nd.array([1.0, 2.0])) == "NDArray([1., 2.], dtype=float32)"
        assert repr(nd.array(3)) == "NDArray(3, dtype=int32)"
        assert repr(nd.array(np.ones((0, 2)))) == "NDArray([], shape=(0, 2), dtype=float32)"
        assert repr(nd.array([1.0]) + 1) == "NDArray([2.], dtype=float32)"

    def test_looks_while_traced(self):
        seen = []

        def run(x):
            y = x * 2
            seen.extend([repr(x), str(y), f"{y}"])
            return y

        jax.jit(run)(nd.array([1.0, 2.0]))
        so.jvp(run, nd.array([1.0, 2.0]), nd.array([1.0, 0.0]))
        assert seen == ["NDArray(traced, shape=(2,), dtype=float32)"] * 6

    def test_numpy_gets_a_copy_of_its_own(self):
        x = nd.array([1.0, 2.0])
        y = x.asnumpy()
        y[0] = 9
        assert x.tolist() == [1.0, 2.0]
        z = np.array(x)
        z[0] = 9
        assert x.tolist() == [1.0, 2.0]

    def test_numpy_copies_just_where_it_may(self):
        x = nd.array([1.0, 2.0])
        assert np.asarray(x, dtype="float64").dtype == np.float64
        assert np.asarray(x, dtype="float32", copy=False).tolist() == [1.0, 2.0]
        with pytest.raises(ValueError, match="copy"):
            np.asarray(x, dtype="float64", copy=False)

    def test_copies(self):
        x = nd.array([1.0, 2.0]) * 2
        for other in (x.copy(), copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            other[...] = other + 1
            assert x.tolist() == [2.0, 4.0]
            assert other.tolist() == [3.0, 5.0]

    def test_casts(self):
        x = nd.array([1.7, -2.2])
        assert x.astype("int32").tolist() == [1, -2]
        assert x.astype(np.float32, copy=False) is x
        assert x.astype("float32") is not x
        assert x.astype("int32", device="cpu:0").tolist() == [1, -2]
        with pytest.raises(ArgumentError, match="must be one of cpu:0"):
            x.astype("float32", device="cpu:99")
        with pytest.raises(TypeError, match="casting"):
            x.astype("int32", casting="safe")

    def test_places(self):
        x = nd.array([1.0], ctx="cpu:0")
        assert x.device == jax.devices()[0]
        assert x.as_in_context(jax.devices()[0]).tolist() == [1.0]
        with pytest.raises(ArgumentError, match="must be one of cpu:0"):
            x.to_device("cpu:99")
        y = nd.array([0.0])
        assert x.copyto(y) is y
        assert y.tolist() == [1.0]
        assert x.copyto(nd.array([0])).dtype == np.int32
        for shape in ((2,), (1, 1), ()):
            with pytest.raises(ShapeError, match=r"copyto: the shape must be \(1,\), got"):
                x.copyto(nd.zeros(shape))

    def test_dlpack(self):
        assert np.array_equal(np.from_dlpack(nd.array([1.0, 2.0]) * 2), [2.0, 4.0])

    def test_waits(self):
        x = nd.array([1.0]) + 1
        x.wait_to_read()
        assert x._value is not None


class TestOperators:
    def test_arithmetic(self):
        a, b = np.array([1.0, -2.0, 3.5], np.float32), np.array([2.0, 4.0, -1.0], np.float32)
        x, y = nd.array(a), nd.array(b)
        for ours, theirs in (
            (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (x // y, a // b),
            (x % y, a % b), (2 - x, 2 - a), (2 / x, 2 / a), (y**2, b**2), (2**y, 2**b),
            (-x, -a), (+x, a), (abs(x), abs(a)), (x @ y, a @ b), (x < y, a < b), (x <= y, a <= b),
            (x > 0, a > 0), (x >= 1.0, a >= 1), (x == y, a == b), (x != b, a != b),
            (np.float32(2) * x, 2 * a), (x + b, a + b), (7 % x, 7 % a), (7 // x, 7 // a),
        ):  # fmt: skip
            assert isinstance(ours, so.NDArray)
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
            assert ours.dtype == theirs.dtype

    def test_bits(self):
        a, b = np.array([12, 10]), np.array([10, 3])
        x, y = nd.array(a), nd.array(b)
        for ours, theirs in (
            (x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a), (x << 1, a << 1),
            (x >> 1, a >> 1), (7 & x, 7 & a), (1 << y, 1 << b),
        ):  # fmt: skip
            assert np.array_equal(ours, theirs)

    @pytest.mark.parametrize("dtype", [np.float32, np.int32])
    def test_division_with_a_remainder(self, dtype):
        a, b = np.array([7, -7, 8], dtype), np.array([2, 3, -5], dtype)
        x, y = nd.array(a), nd.array(b)
        for ours, theirs in (
            (divmod(x, y), divmod(a, b)), (divmod(x, 3), divmod(a, 3)),
            (divmod(9, y), divmod(9, b)), (divmod(a, y), divmod(a, b)),
            (nd.divmod(x, y), np.divmod(a, b)), (nd.divmod(x, 3), np.divmod(a, 3)),
        ):  # fmt: skip
            for our, their in zip(ours, theirs, strict=True):
                assert isinstance(our, so.NDArray)
                np.testing.assert_array_equal(our, their)
                assert our.dtype == their.dtype
        with pytest.raises(TypeError, match="divmod"):
            divmod(x, "a")

    def test_comparison_with_nothing(self):
        x = nd.array([1.0])
        assert (x == None) is False  # noqa: E711  # what the sign does is on trial
        assert (x != "a") is True
        assert x in [x]
        assert len({x: 1}) == 1

    def test_fluent_methods_are_operators(self):
        x = nd.array(DATA)
        np.testing.assert_allclose(x.sum(axis=1), DATA.sum(1))
        np.testing.assert_allclose(x.reshape((6, 4)).softmax().sum(axis=-1), np.ones(6), rtol=1e-6)
        with pytest.raises(AttributeError, match="no attribute or operator 'sinn'"):
            x.sinn()

    def test_methods_are_the_functions_of_nd(self):
        for name in FUNCTIONS:
            operator = find(name)
            if operator is not None and operator.slots and name != "astype":
                own = getattr(nd, name)
                extended = name in ("reshape", "transpose", *REDUCTIONS)
                assert vars(so.NDArray)[name] is own or extended
        x, data = nd.array(DATA), np.array(DATA)
        assert x.sum(dtype="int32").dtype == x.prod(dtype="int32").dtype == np.int32
        np.testing.assert_allclose(x.sum(1, keepdims=True), data.sum(1, keepdims=True))
        np.testing.assert_allclose(x.var(), data.var(), rtol=1e-6)
        np.testing.assert_allclose(x.var(0, correction=1.0), data.var(0, ddof=1), rtol=1e-6)
        np.testing.assert_array_equal(x.diff(axis=1), np.diff(data, axis=1))
        np.testing.assert_array_equal(x.repeat(nd.array([1, 0, 2]), 1), data.repeat([1, 0, 2], 1))
        np.testing.assert_array_equal(x.repeat(repeats=2), data.repeat(2))
        np.testing.assert_array_equal(x.clip(nd.array(3.0), 5), data.clip(3, 5))
        np.testing.assert_array_equal(x.cumulative_sum(0), data.cumsum(0))
        assert [one.shape for one in x.unstack(1)] == [(2, 4)] * 3
        assert [one.tolist() for one in nd.array([0, 3]).nonzero()] == [[1]]
        total = nd.array(0.0)
        assert x.sum(out=total) is total
        assert total.item() == data.sum()

    def test_shapes_and_axes_one_by_one(self):
        x, data = nd.array(DATA), np.array(DATA)
        for shape in ((6, 4), (-1,), (3, 2, -1)):
            for made in (x.reshape(*shape), x.reshape(shape), x.reshape(shape=shape)):
                np.testing.assert_array_equal(made, data.reshape(shape))
        for made in (x.transpose(1, 0, 2), x.transpose((1, 0, 2)), x.transpose(axes=[1, 0, 2])):
            np.testing.assert_array_equal(made, data.transpose(1, 0, 2))
        for made in (x.transpose(), x.transpose(None)):
            np.testing.assert_array_equal(made, data.transpose())
        assert nd.array([1.0, 2.0]).transpose(0).tolist() == [1.0, 2.0]
        with pytest.raises(ShapeError, match="reshape"):
            x.reshape(5, 5)
        with pytest.raises(TypeError, match="axes"):
            x.transpose(1, 0, 2, axes=(1, 0, 2))

    def test_ranges_to_an_array(self):
        assert nd.arange(nd.array(3)).tolist() == [0, 1, 2]
        assert nd.arange(nd.array(1), nd.array(6), nd.array(2)).tolist() == [1, 3, 5]
        with pytest.raises(ArgumentError, match=r"arange: .* must be numbers, got shape \(2,\)"):
            nd.arange(nd.array([1, 2]))

    def test_every_front_door(self):
        x = nd.array([0.5])
        for made in (nd.sin(x), so.sin(x), x.sin(), nd.sin(x=x)):
            assert isinstance(made, so.NDArray)
            assert made.item() == pytest.approx(np.sin(0.5))
        assert isinstance(so.sin(np.ones(1, np.float32)), jax.Array)

    @pytest.mark.parametrize(
        "make", [nd.zeros, nd.ones, nd.empty, lambda shape: nd.full(shape, 1.0)]
    )
    def test_a_length_is_not_negative(self, make):
        for shape in ((-1,), (2, -3), -1):
            with pytest.raises(ValueError, match="the shape must not be negative, got"):
                make(shape)
        with pytest.raises(ValueError, match="eye: the shape must not be negative"):
            nd.eye(-1)

    def test_jax_takes_them(self):
        x = nd.array([1.0, 4.0])
        assert np.array_equal(jnp.sqrt(x), [1.0, 2.0])
        made = jax.jit(lambda x: {"twice": x + x})({"x": x}["x"])["twice"]
        assert isinstance(made, so.NDArray)
        assert made.tolist() == [2.0, 8.0]

    def test_what_jax_takes_no_array_of_another_kind_for(self):
        """The limits that ``docs/eager.md`` names, and what it says to write instead."""
        x, places = nd.array([1.0, 2.0, 4.0]), nd.array([2, 0])
        message = r"__jax_array__\(\) during abstractification"
        with pytest.raises(ValueError, match=message):
            jax.lax.sin(x)
        with pytest.raises(ValueError, match=message):
            x.asjax()[places]
        with pytest.raises(ValueError, match=message):
            x.asjax().at[places].set(0.0)
        np.testing.assert_array_equal(jax.lax.sin(x.asjax()), jnp.sin(x))
        assert x.asjax()[places.asjax()].tolist() == [4.0, 1.0]
        assert x.asjax().at[places.asjax()].set(0.0).tolist() == [0.0, 2.0, 0.0]

    def test_errors_come_at_the_call(self):
        x = nd.array([1.0, 2.0])
        y = x + 1
        with pytest.raises(ShapeError, match="matmul"):
            nd.matmul(x, nd.array([1.0, 2.0, 3.0]))
        with pytest.raises(AttributeValueError, match="axis must be in"):
            y.sum(axis=3)
        with pytest.raises(ArgumentError, match="sin"):
            nd.sin(None)
        with pytest.raises(ArgumentError, match="only symbols can be named"):
            nd.sin(x, name="a")
        with pytest.raises(ArgumentError, match="symbol"):
            nd.add(x, so.var("a"))
        assert (y * 2).tolist() == [4.0, 6.0]

    def test_several_outputs(self):
        values, indices = nd.topk(nd.array([1.0, 3.0, 2.0]), k=2)
        assert (values.tolist(), indices.tolist()) == ([3.0, 2.0], [1, 2])
        parts = nd.split(nd.array(DATA), sections=2, axis=2)
        assert [one.shape for one in parts] == [(2, 3, 2), (2, 3, 2)]


OWN = {
    "+x": lambda x: +x, "copy": nd.NDArray.copy, "copy.copy": copy.copy, "deepcopy": copy.deepcopy,
    "array": nd.array, "NDArray": nd.NDArray, "asarray": lambda x: nd.asarray(x, copy=True),
    "astype": lambda x: x.astype(x.dtype), "nd.astype": lambda x: nd.astype(x, x.dtype),
    "[:]": lambda x: x[:], "[...]": lambda x: x[...], "[()]": lambda x: x[()],
    "reshape": lambda x: x.reshape(x.shape), "T": lambda x: x.T, "* 1": lambda x: x * 1,
    "cast": lambda x: x.cast(dtype=x.dtype), "squeeze": lambda x: x.squeeze(axis=()),
    "broadcast": lambda x: nd.broadcast_arrays(x)[0], "concat": lambda x: nd.concat([x]),
    "out": lambda x: nd.identity(x, out=nd.zeros(x.shape)),
}  # fmt: skip


class TestSharing:
    """A change of an array, or the end of its memory, shows in no other."""

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize("pending", [False, True])
    @pytest.mark.parametrize("taped", [False, True])
    @pytest.mark.parametrize("how", OWN)
    def test_what_is_made_of_an_array_is_apart(self, how, taped, pending):
        for _ in range(3):  # run by parts, compiled, and known
            x = nd.array(np.arange(500, dtype=np.float32))
            if taped:
                x.attach_grad()
            with so.autograd.record() if taped else contextlib.nullcontext():
                y = OWN[how](x * 2 if pending else x)
                z = OWN[how](y)
            assert len({one.asjax().unsafe_buffer_pointer() for one in (x, y, z)}) == 3
            before = y.asnumpy()
            x += 1
            z += 1
            jax.jit(lambda a: a + 1, donate_argnums=0)(x.asjax())
            np.testing.assert_array_equal(y, before)
            np.testing.assert_array_equal(z, before + 1)

    @pytest.mark.parametrize("pending", [False, True])
    def test_what_is_written_is_apart(self, pending):
        for _ in range(3):
            x, y = nd.array(np.arange(500, dtype=np.float32)), nd.zeros(500)
            value = x * 2 if pending else x
            y[...] = value
            z = value.copyto(nd.zeros(500))
            assert len({one.asjax().unsafe_buffer_pointer() for one in (value, y, z)}) == 3

    def test_rows_are_copied_too(self):
        x = nd.NDArray(SelectedRows(jnp.array([1]), jnp.ones((1, 2)), 3))
        y = x.copy()
        jax.tree.map(lambda one: one.delete(), x.asjax())
        assert y.to_dense().tolist() == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]

    def test_a_whole_part_is_recorded(self):
        x = nd.array([1.0, 2.0])
        x.attach_grad()
        with so.autograd.record():
            y = x[:] * (+x) * x[...]
        y.backward()
        assert x.grad.tolist() == [3.0, 12.0]


class TestParts:
    @pytest.mark.parametrize(
        "index",
        [
            0, -1, (1, 2), (1, 2, 3), slice(1), slice(None, None, -1), (0, slice(1, 3)), ...,
            (..., 1), (None, 0), (slice(None), None, 1, ..., slice(0, 4, 2)), np.array([1, 0, 1]),
            ([0, 1], [2, 0]), (slice(None), [0, 2], [1, 1]), ([0, 1], slice(None), [1, 1]),
            (1, [0, 2]), (slice(None), [[0], [2]], [1, 3]), DATA > 11, DATA[:, :, 0] > 5,
            (0, np.array([True, False, True])), (slice(None), np.array([2, -1])),
        ],
        ids=str,
    )  # fmt: skip
    def test_reads_as_numpy(self, index):
        np.testing.assert_array_equal(nd.array(DATA)[index], DATA[index])

    def test_reads_with_eager_arrays(self):
        x = nd.array(DATA)
        np.testing.assert_array_equal(x[nd.array([1, 0])], DATA[[1, 0]])
        np.testing.assert_array_equal(x[x > 5], DATA[DATA > 5])
        rows, columns = nd.array([0, 1]), nd.array([2, -1])
        np.testing.assert_array_equal(x[rows, columns], DATA[[0, 1], [2, -1]])

    @pytest.mark.parametrize("index", [2, (0, 5), (..., ...), "a", 1.5, [1.5]], ids=str)
    def test_refuses_as_numpy(self, index):
        x = nd.array(DATA)
        with pytest.raises(IndexError):
            DATA[index]
        with pytest.raises(IndexError):
            x[index]
        with pytest.raises(IndexError):
            x[index] = 0

    @pytest.mark.parametrize(
        ("index", "place", "axis", "size"),
        [
            (2, 2, 0, 2), (-3, -3, 0, 2), (np.int64(9), 9, 0, 2), ((0, 5), 5, 1, 3),
            ((slice(None), 7), 7, 1, 3), ((..., 4), 4, 2, 4), ((None, 3), 3, 0, 2),
            ([0, 5], 5, 0, 2), (np.array([[1, -3]]), -3, 0, 2), (([0, 1], [1, 9]), 9, 1, 3),
            (([0, 5], slice(None), 1), 5, 0, 2), (([0, 1], 0, 4), 4, 2, 4),
        ],
        ids=str,
    )  # fmt: skip
    def test_places_outside_are_refused_at_once(self, index, place, axis, size):
        message = f"index {place} is out of bounds for axis {axis} with size {size}"
        x = nd.array(DATA)
        with pytest.raises(IndexError, match=message):
            DATA[index]
        with pytest.raises(IndexError, match=message):
            x[index]
        with pytest.raises(IndexError, match=message):
            x[index] = 0
        np.testing.assert_array_equal(x, DATA)

    @pytest.mark.parametrize("kind", [np.asarray, jnp.asarray, nd.array])
    @pytest.mark.parametrize(
        ("shape", "before"), [((3,), 0), ((1,), 0), ((2, 1), 0), ((4,), 1), ((1,), 2)]
    )
    def test_masks_of_another_shape_are_refused(self, kind, shape, before):
        index, x = (slice(None),) * before, nd.array(DATA)
        with pytest.raises(IndexError, match="boolean index did not match"):
            DATA[(*index, np.ones(shape, bool))]
        mask = kind(np.ones(shape, bool))
        with pytest.raises(IndexError, match=r"mask must have the shape .* from axis"):
            x[(*index, mask)]
        with pytest.raises(IndexError, match=r"mask must have the shape .* from axis"):
            x[(*index, mask)] = 0

    @pytest.mark.parametrize("kind", [np.asarray, jnp.asarray, nd.array])
    @pytest.mark.parametrize("lengths", [(0,), (2, 0), (0, 3), (0, 3, 4), (0, 0, 0)], ids=str)
    def test_masks_with_an_axis_of_length_zero_take_nothing(self, kind, lengths):
        x, mask = nd.array(DATA), kind(np.zeros(lengths, bool))
        assert x[mask].shape == (0, *DATA.shape[len(lengths) :])
        x[mask] = 7.0
        np.testing.assert_array_equal(x, DATA)
        empty = nd.zeros((0, 3))
        assert empty[kind(np.ones((0, 3), bool))].shape == (0,)

    @pytest.mark.parametrize("index", ["a", 1.5, [1.5], np.ones(2), {}], ids=str)
    def test_what_is_no_index_is_refused_both_ways(self, index):
        x = nd.array(DATA)
        with pytest.raises(ArgumentError, match="an index must hold integers, slices"):
            x[index]
        with pytest.raises(ArgumentError, match="an index must hold integers, slices"):
            x[index] = 0

    @pytest.mark.parametrize(
        "index", [(0, 0, 0, 0), (..., [0], 0, 0, 0), (np.ones((2, 3), bool), 0, 0)], ids=str
    )
    def test_too_many_entries_are_an_index_error(self, index):
        x = nd.array(DATA)
        with pytest.raises(IndexError, match="at most 3 axes must be indexed, got"):
            x[index]
        with pytest.raises(IndexError, match="at most 3 axes must be indexed, got"):
            x[index] = 0
        with pytest.raises(IndexError, match="at most 1 axes must be indexed, got 2"):
            so.var("x", shape=(2,))[0, 0]

    def test_arrays_that_do_not_broadcast_are_an_index_error(self):
        x, index = nd.array(DATA), ([0, 1], [0, 1, 2])
        with pytest.raises(IndexError, match=r"must broadcast together, got shapes \(2,\), \(3,\)"):
            x[index]
        with pytest.raises(IndexError, match="must broadcast together"):
            x[index] = 0

    @pytest.mark.parametrize(
        "index",
        [
            (slice(None), 1, ..., [0, 1, 2]), (0, ..., [0, 1], [0, 1]), ([0, 1], ..., 1, 1),
            (..., 0, [0, 1], 2), (0, [1, 2], 3, ...), (slice(None), [0, 1], ..., 1),
            (1, ..., 1, [0]), (DATA[:, :, 0] > 11, ..., [0, 1, 2]), (True, 0), (False, ..., [0]),
            (True, slice(None), 0), True, False, (None, True, ..., 1), (slice(None), False),
        ],
        ids=str,
    )  # fmt: skip
    def test_dots_and_truth_values_keep_arrays_apart(self, index):
        x, expected = nd.array(DATA), DATA[index]
        np.testing.assert_array_equal(x[index], expected)
        written, value = DATA.copy(), np.arange(expected.size).reshape(expected.shape)
        written[index], x[index] = value, value
        np.testing.assert_array_equal(x, written)

    @pytest.mark.parametrize("kind", [jnp.asarray, nd.array], ids=["jax", "nd"])
    def test_places_on_the_device_are_wrapped_once(self, kind):
        row = nd.array([[1.0, 2.0, 3.0]])
        np.testing.assert_array_equal(row[0, kind([-4, -3, 2, 3])], [np.nan, 1, 3, np.nan])
        row[0, kind([-4, -3, 3])] = 0.0
        assert row.tolist() == [[0, 2, 3]]
        long = nd.arange(300)
        assert long[None][0, kind(np.array([-1, 5], np.int8))].tolist() == [299, 5]

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("seed", range(24))
    def test_any_index_is_read_written_and_differentiated_as_numpy(self, seed):
        rng = np.random.default_rng(seed)
        shape = [(2, 3, 4), (2, 2, 2), (0, 3), (2, 0, 3), (3,), (3, 1, 2)][seed % 6]
        data = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
        index = _any_index(rng, shape)
        plain = tuple(
            np.asarray(one) if isinstance(one, (nd.NDArray, jax.Array)) else one for one in index
        )
        x = nd.array(data)
        try:
            expected = data[plain]
        except IndexError:
            with pytest.raises(IndexError):
                x[index]
            with pytest.raises(IndexError):
                x[index] = 0
            return
        x.attach_grad()
        with so.autograd.record():
            part = x[index]
            square = part * part
        square.backward()
        np.testing.assert_array_equal(part, expected)
        slope = np.zeros_like(data)
        np.add.at(slope, plain, 2 * expected)
        np.testing.assert_allclose(x.grad, slope)
        written, other = data.copy(), nd.array(data)
        written[plain], other[index] = -expected, -expected
        np.testing.assert_array_equal(other, written)

    def test_the_sequence_protocol_ends(self):
        class Rows:  # Python asks for 0, 1, ... until there is an IndexError
            def __getitem__(self, i):
                return x[i]

        x = nd.array(DATA[0])
        assert [row.tolist() for row in Rows()] == DATA[0].tolist()
        assert [row.tolist() for row in reversed(x)] == DATA[0][::-1].tolist()

    @pytest.mark.parametrize("write", [False, True])
    def test_places_under_jit(self, write):
        def run(x, place):
            if not write:
                return x[place], x[place, 1], x[jnp.stack([place, -1])]
            x[place] = -1
            x[place, 0] = 5
            return x

        found = jax.jit(run)(nd.array(DATA), jnp.asarray(1))
        expected = DATA.copy()
        if write:
            expected[1], expected[1, 0] = -1, 5
            np.testing.assert_array_equal(found, expected)
            return
        for one, other in zip(found, (DATA[1], DATA[1, 1], DATA[[1, -1]]), strict=True):
            np.testing.assert_array_equal(one, other)

    @pytest.mark.parametrize(
        ("index", "value"),
        [
            (0, 7.0), ((1, slice(None), 2), [1.0, 2.0, 3.0]), (slice(None, None, -1), DATA),
            (..., 5), (DATA > 5, 0.0), (([0, 1], [2, 0]), 9.0), ((None, 0), 1.0),
            (np.array([1, 0]), DATA), ((0, 0), nd.array([1.0, 2.0, 3.0, 4.0])),
            (slice(None), np.ones((1, 1, 2, 3, 4))), ((0, 0), [[[1.0]]]),
            (([0, 1], [2, 0]), np.ones((1, 2, 4))), ((0, 1), np.ones((1, 4))),
        ],
        ids=str,
    )  # fmt: skip
    def test_writes_as_numpy(self, index, value):
        x, expected = nd.array(DATA), DATA.copy()
        x[index] = value
        expected[index] = np.asarray(value)
        np.testing.assert_array_equal(x, expected)

    def test_writes_what_fits(self):
        x = nd.array([1, 2, 3])
        x[0] = 2.9
        assert x.tolist() == [2, 2, 3]
        for value in ([1, 2, 3], [[1], [2]], [[[1, 2, 3]]], [[1], [2, 3]]):
            with pytest.raises(ShapeError, match="value"):
                x[:2] = value

    @pytest.mark.parametrize(
        "value", ["a", ["a", "b"], None, [1.0, None], {}, np.array(["a"]), slice(1)], ids=repr
    )
    def test_writes_numbers_alone(self, value):
        x = nd.zeros(2)
        with pytest.raises(ArgumentError, match=r"x\[...\] = value: the value must be an array or"):
            x[:] = value
        assert x.tolist() == [0.0, 0.0]

    @pytest.mark.parametrize(
        "value", [1j, np.complex64(1), [1.0, 1j], nd.array([1j, 2.0])], ids=str
    )
    def test_writes_no_complex_numbers_among_real_ones(self, value):
        x = nd.zeros(2)
        with pytest.raises(DTypeError, match="the value must be real where x is float32, got"):
            x[:] = value
        assert x.tolist() == [0.0, 0.0]
        z = nd.zeros(2, "complex64")
        z[:] = value
        np.testing.assert_array_equal(z, np.broadcast_to(np.asarray(value), 2))
        z[0] = 2.0
        assert z.tolist()[0] == 2.0

    def test_rows(self):
        assert [row.tolist() for row in nd.array(DATA[0])] == DATA[0].tolist()


class TestAssignmentOfAll:
    """``x[...] = y`` where ``y`` is not computed yet."""

    def test_both_go_their_own_ways(self):
        x, y = nd.array([1.0, 2.0]), nd.array([10.0, 20.0]) * 2
        x[...] = y
        y += 1
        x *= 3
        np.testing.assert_array_equal(x, [60, 120])
        np.testing.assert_array_equal(y, [21, 41])

    def test_what_was_computed_from_the_old_value_keeps_it(self):
        x = nd.array([1.0, 2.0])
        before = x + 0
        for _ in range(3):
            x[...] = x * 2
        np.testing.assert_array_equal(x, [8, 16])
        np.testing.assert_array_equal(before, [1, 2])

    def test_one_value_in_several_arrays(self):
        y = nd.array([1.0]) + 1
        first, second = nd.zeros((1,)), nd.zeros((1,))
        first[...] = y
        second[...] = y
        first += 5
        np.testing.assert_array_equal([first.item(), second.item(), y.item()], [7, 2, 2])

    def test_nothing_runs_until_it_is_asked_for(self, way):
        x = nd.zeros((2,))
        x[...] = nd.array([1.0, 2.0]) * 4
        assert (x._value is None) == (way == "fused")
        np.testing.assert_array_equal(x, [4, 8])

    def test_the_dtype_stays(self):
        x = nd.zeros((2,), dtype="int32")
        x[...] = nd.array([1.5, 2.5]) + 1
        assert x.dtype == np.int32
        np.testing.assert_array_equal(x, [2, 3])

    def test_a_recorded_value_leaves_no_trace(self):
        w, x = nd.array([3.0]), nd.zeros((1,))
        w.attach_grad()
        with so.autograd.record():
            y = w * w
        x[...] = y
        assert not x.is_recorded
        y.backward()
        np.testing.assert_array_equal([x.item(), w.grad.item()], [9, 6])


class TestInPlace:
    def test_updates(self):
        x = nd.array([1.0, 2.0])
        same = x
        x += 1
        x *= nd.array([2.0, 3.0])
        x -= 1.0
        x /= 2
        x **= 2
        assert same is x
        np.testing.assert_allclose(x, [2.25, 16.0])

    def test_what_was_computed_before_keeps_its_value(self):
        x = nd.array([1.0, 2.0])
        y = x * 10
        x += 1
        z = x * 10
        x[0] = 100
        np.testing.assert_allclose(y, [10.0, 20.0])
        np.testing.assert_allclose(z, [20.0, 30.0])
        np.testing.assert_allclose(x, [100.0, 3.0])

    def test_the_type_stays(self):
        x = nd.array([1, 2])
        with pytest.raises(ArgumentError, match="must have the type of x"):
            x /= 2
        with pytest.raises(ArgumentError, match="must have the type of x"):
            x += nd.array([[1, 2]])
        assert x.tolist() == [1, 2]


class TestRecording:
    def test_branches_see_values(self):
        x, count = nd.array(1.0), 0
        while x < 1000:
            x = x * 3 if count % 2 else x + 5
            count += 1
        y, other = 1.0, 0
        while y < 1000:
            y = y * 3 if other % 2 else y + 5
            other += 1
        assert (x.item(), count) == (y, other)

    def test_numbers_that_change(self):
        x = nd.array(np.zeros(3, np.float32))
        for i in range(50):
            x = x + i * 0.5
        np.testing.assert_allclose(x, np.full(3, sum(i * 0.5 for i in range(50))))

    @pytest.mark.parametrize("value", [0.0, -0.0, float("nan"), float("inf")])
    def test_strange_numbers(self, value):
        x = nd.array([1.0, -1.0])
        with np.errstate(all="ignore"):
            expected = np.array([1.0, -1.0], np.float32) * np.float32(value)
        got = (x * value).asnumpy()
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))

    def test_integers_and_floats_are_told_apart(self):
        x = nd.array([4, 6])
        assert (x * 2).dtype == np.int32
        assert (x * 2.0).dtype == np.float32
        assert (x * True).dtype == np.int32

    def test_what_nobody_holds_is_not_computed_in_vain(self, way):
        if way == "direct":
            return
        x = nd.array([1.0])
        (x + 1).sin()
        assert local.state.segment is not None
        segment = local.state.segment
        y = x + 2
        y.wait_to_read()
        (program,) = segment.step.programs.values()
        assert len(program.outputs) == 1

    def test_randomness_is_the_same_both_ways(self):
        def drawn():
            so.random.seed(11)
            a = so.random.normal(shape=(3,))
            with so.autograd.record():
                b = nd.dropout(nd.array(np.ones(8, np.float32)), rate=0.5)
                c = nd.dropout(nd.array(np.ones(8, np.float32)), rate=0.5)
            return [np.asarray(one).tolist() for one in (a, b, c)]

        before = local.state.rest
        first = drawn()
        local.state.rest = 0 if before else -1
        second = drawn()
        local.state.rest = before
        assert first == second
        assert first[1] != first[2]

    @pytest.mark.sampled(2)
    def test_programs_and_arrays_do_not_pile_up(self):
        x = nd.array(np.ones(4, np.float32))
        x.attach_grad()

        def step():
            with so.autograd.record():
                loss = ((x * 2 - 1) ** 2).sum()
            loss.backward()
            y = x - 0.01 * x.grad
            x[:] = y
            return loss

        for _ in range(20):
            step()
        gc.collect()
        steps, objects = tree.count, len(gc.get_objects())
        for _ in range(200):
            step()
        gc.collect()
        assert tree.count == steps
        assert len(gc.get_objects()) - objects < 200

    def test_structures_that_always_change_run_one_by_one(self, way):
        generator = np.random.default_rng(0)
        x = nd.array(np.full(3, 0.5, np.float32))
        for _ in range(60):
            y = x
            for choice in generator.integers(0, 3, 12):
                y = (nd.sin, nd.cos, nd.tanh)[choice](y)
            y.wait_to_read()
        if way == "fused":
            assert local.state.next_rest > tuning.present.tuning.rest

    def test_threads(self):
        def work(found, number):
            x = nd.array(np.full(5, number, np.float32))
            for _ in range(300):
                x = x * 0.5 + number
            found[number] = x.asnumpy()

        found: dict[int, np.ndarray] = {}
        threads = [threading.Thread(target=work, args=(found, i)) for i in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        for number in range(6):
            np.testing.assert_allclose(found[number], np.full(5, 2.0 * number), rtol=1e-6)


UNORDERED = [("max", "complex64"), ("min", "complex64"), ("std", "bool"), ("var", "bool")]
"""Reductions that the operators, or NumPy for differences of truth values, do not define."""


class TestNumPy:
    """NumPy's own functions on eager arrays."""

    @pytest.mark.parametrize(
        "name",
        [
            "exp",
            "negative",
            "absolute",
            "sqrt",
            "isnan",
            "floor",
            "conjugate",
            "cbrt",
            "spacing",
            "modf",
            "frexp",
        ],
    )
    def test_unary_functions(self, name):
        x = nd.array([[1.5, 2.0], [0.25, 4.0]])
        function = getattr(np, name)
        found, expected = function(x), function(x.asnumpy())
        for one, other in zip(
            *[r if isinstance(r, tuple) else (r,) for r in (found, expected)], strict=True
        ):
            assert isinstance(one, nd.NDArray)
            np.testing.assert_allclose(one, other, rtol=1e-6)

    @pytest.mark.parametrize(
        "name", ["add", "power", "maximum", "arctan2", "hypot", "greater", "matmul", "divmod"]
    )
    def test_binary_functions(self, name):
        a, x = np.array([[1.5, 2.0], [3.0, 4.0]], np.float32), nd.array([[2.0, 3.0], [0.5, 1.0]])
        function = getattr(np, name)
        for given in ((a, x), (x, a), (x, x)):
            found, expected = function(*given), function(*map(np.asarray, given))
            np.testing.assert_allclose(found, expected, rtol=1e-6)
            parts = found if isinstance(found, tuple) else (found,)
            assert {type(one) for one in parts} == {nd.NDArray}

    def test_they_are_recorded(self):
        x = nd.array([1.0, 2.0])
        x.attach_grad()
        with so.autograd.record():
            y = np.multiply(np.array([3.0, 4.0], np.float32), np.square(x))
        y.backward()
        assert x.grad.tolist() == [6.0, 16.0]

    def test_places_for_the_result(self):
        x, a = nd.array([1.0, 2.0]), np.ones(2, np.float32)
        before = a
        a += x
        assert a is before
        assert a.tolist() == [2.0, 3.0]
        np.exp(x, out=a)
        np.testing.assert_allclose(a, np.exp([1.0, 2.0]), rtol=1e-6)
        y = nd.zeros(2)
        assert np.negative(x, out=y) is y
        assert y.tolist() == [-1.0, -2.0]
        with pytest.raises(ValueError, match="broadcast"):
            a += nd.ones((3, 2))
        assert np.add.reduce(x) == 3.0
        kept = a[1]
        assert np.add(x, x, out=a, where=np.array([True, False])) is a
        assert a.tolist() == [2.0, kept]
        np.add(x, x, out=y, where=np.array([False, True]))
        assert y.tolist() == [-1.0, 4.0]

    @pytest.mark.parametrize(
        "name", ["mean", "std", "var", "max", "min", "any", "all", "sum", "prod"]
    )
    def test_reductions(self, name):
        x, function = nd.array(DATA), getattr(np, name)
        for options in ({}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}):
            found = function(x, **options)
            assert isinstance(found, nd.NDArray)
            np.testing.assert_allclose(found, function(DATA, **options), rtol=1e-6)
        place = np.zeros(DATA.shape[1:], function(DATA, axis=0).dtype)
        assert function(x, axis=0, out=place) is place
        np.testing.assert_allclose(place, function(DATA, axis=0), rtol=1e-6)
        if name in ("std", "var"):
            np.testing.assert_allclose(function(x, ddof=1), function(DATA, ddof=1), rtol=1e-6)
        if name in ("mean", "std", "var", "sum", "prod"):
            assert function(nd.array([1, 2]), dtype=np.float32).dtype == np.float32
        with pytest.raises(ArgumentError, match="out must be an array of shape"):
            x.mean(out=np.zeros(3))

    @pytest.mark.sampled(6)
    @pytest.mark.parametrize(
        ("name", "dtype"),
        [
            (name, dtype)
            for name in REDUCTIONS
            for dtype in ("float32", "float16", "int32", "bool", "complex64")
            if (name, dtype) not in UNORDERED
        ],
    )
    def test_reductions_of_selected_entries(self, name, dtype):
        given = np.linspace(-2, 2, 12).reshape(3, 4)
        given = (given > 0 if dtype == "bool" else given).astype(dtype)
        if dtype == "complex64":
            given = given * np.complex64(1 + 2j)
        mask = np.array([[True, False, True, True], [False] * 4, [True, True, False, False]])
        x, function = nd.array(given), getattr(np, name)
        cases = [{"where": True}, {"where": mask[0]}, {"where": mask, "axis": 0, "keepdims": True}]
        if name in ("max", "min"):
            cases = [{**one, "initial": 1} for one in cases]
        if name in ("max", "min", "sum", "prod"):
            cases += [{"initial": 2.5}, {"where": mask, "axis": 1, "initial": 3}]
        if name in ("std", "var"):
            cases += [{"where": mask[0], "ddof": 1}, {"mean": 0.5}]
        for options in cases:
            found, expected = function(x, **options), function(given, **options)
            assert isinstance(found, nd.NDArray)
            assert found.shape == np.shape(expected)
            bound = 1e-2 if dtype == "float16" else 1e-5
            np.testing.assert_allclose(found, expected, rtol=bound, atol=1e-6)

    def test_reductions_of_selected_entries_are_recorded(self):
        x = nd.array([1.0, np.inf, 3.0, 4.0])
        x.attach_grad()
        mask = np.array([True, False, True, False])
        with so.autograd.record():
            y = np.var(x, where=mask) + np.sum(x, where=~mask, initial=x[0])
            y = y + np.max(x, where=mask, initial=0.0)
        y.backward()
        assert x.grad.tolist() == [-1.0 + 1.0, 1.0, 1.0 + 1.0, 1.0]

    def test_what_reductions_of_selected_entries_refuse(self):
        x, place = nd.array([1.0, 2.0]), nd.zeros(())
        with pytest.raises(ValueError, match="max: initial must be given with where, got None"):
            np.max(x, where=np.array([True, False]))
        with pytest.raises(ValueError, match="mean: initial must not be given, got 1"):
            x.mean(initial=1)
        with pytest.raises(DTypeError, match="sum: where must be boolean, got int32"):
            np.sum(x, where=np.array([1, 0], np.int32))
        with pytest.raises(ShapeError, match=r"must broadcast to \(2,\)"):
            np.sum(x, where=np.ones((3, 2), bool))
        assert np.max(x[:0], initial=2.0) == 2.0
        assert x.sum(where=np.array([True, False]), out=place) is place
        assert x.var(out=place) is place
        assert place == 0.25

    def test_rounding(self):
        x = nd.array(1.2345)
        assert isinstance(round(x, 2), nd.NDArray)
        np.testing.assert_allclose(round(nd.array([1.234, 5.678]), 2), [1.23, 5.68], rtol=1e-6)
        assert (round(x), math.trunc(nd.array(-1.7)), math.floor(x)) == (1, -1, 1)
        assert type(round(x)) is int
        assert jnp.arange(nd.array(3)).tolist() == [0, 1, 2]


class TestTrees:
    """What a tree of JAX puts in place of a value."""

    @pytest.mark.parametrize("leaf", [None, True, "name", (2, 3), 1.5], ids=str)
    def test_any_leaf(self, leaf):
        tree = {"w": nd.array([1.0, 2.0])}
        made = jax.tree.map(lambda _: leaf, tree)
        assert repr(made) == f"{{'w': NDArray({leaf!r})}}"
        assert jax.tree.leaves(made) == jax.tree.leaves(leaf)
        assert jax.tree.map(lambda a, b: b, tree, made)["w"].value == leaf
