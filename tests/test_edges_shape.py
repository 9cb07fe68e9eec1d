"""Operators that move, repeat, join, pad and cut entries: edges and special values."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import AttributeValueError, DTypeError, ShapeError, UnknownTypeError

INF, NAN = float("inf"), float("nan")


def adjoint(operator, shape, cotangent, **attributes):
    """The gradient with respect to one input of ``shape``, by the graph."""
    x = so.var("x", shape=shape)
    head = so.var("head", shape=np.shape(cotangent))
    found = so.grad(operator(x, **attributes), x, head)
    values = {"head": np.asarray(cotangent, np.float32), "x": np.zeros(shape, np.float32)}
    return np.asarray(found.eval(**{name: values[name] for name in found.list_arguments()}))


def matrix(function, shape):
    """A linear function of arrays of ``shape`` as a matrix, column by column."""
    size = int(np.prod(shape))
    return np.stack([np.ravel(function(one.reshape(shape))) for one in np.eye(size)], axis=1)


# Special values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: so.roll(x, shift=1, axis=1),
        lambda x: so.roll(x, shift=3, axis=-1),
        lambda x: so.roll(x, shift=1),
        so.flip,
        lambda x: so.tile(x, repetitions=(2,)),
        lambda x: so.repeat(x, repeats=(1, 2, 1, 0), axis=1),
        lambda x: so.pad(x, pad_width=((1, 1), (2, 3)), mode="reflect"),
        lambda x: so.dynamic_slice(x, np.array([0, 1]), sizes=(2, 3)),
    ],
)
def test_entries_stay_the_bits_that_they_are(call):
    x = np.array([[-0.0, 0.0, INF, NAN], [1e-45, -INF, -1.0, 3e38]], np.float32)
    known = set(x.ravel().view(np.uint32).tolist())
    assert set(np.asarray(call(x)).ravel().view(np.uint32).tolist()) <= known
    moved = np.asarray(so.roll(x, shift=1, axis=1))
    assert np.array_equal(moved.view(np.uint32), np.roll(x, 1, 1).view(np.uint32))


def test_im2col_does_not_mix_entries():
    x = np.array([[[[INF, 1.0], [NAN, 2.0]]]], np.float32)
    columns = np.asarray(so.im2col(x, kernel=(1, 2), padding=((0, 0), (0, 1))))
    np.testing.assert_array_equal(columns, [[[INF, 1, NAN, 2], [1, 0, 2, 0]]])
    spread = np.asarray(so.col2im(np.array([[[INF, 1.0], [2.0, 3.0]]]), output_size=(3,), kernel=2))
    np.testing.assert_array_equal(spread, [[[INF, 3, 3]]])


def test_many_copies_in_half_precision_are_summed_in_single_precision():
    ones = jnp.ones(600, jnp.bfloat16)
    for call in (
        lambda x: so.tile(x, repetitions=(600,)),
        lambda x: so.repeat(x, repeats=600),
        lambda x: so.pad(x, pad_width=((0, 599),), mode="edge"),
        lambda x: so.meshgrid(x, jnp.zeros(600))[0][:, 0],
    ):
        _, pull = jax.vjp(call, ones[:1])
        (found,) = pull(ones)
        assert found.dtype == jnp.bfloat16
        assert float(found[0]) == 600.0


# Padding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("pair", [(0, 0), (1, 0), (0, 2), (7, 6)])
def test_gradient_of_pad_is_the_transpose_of_numpy(mode, length, pair):
    transpose = matrix(lambda x: np.pad(x, pair, mode), (length,)).T
    count = sum(pair) + length
    found = matrix(lambda d: adjoint(so.pad, (length,), d, pad_width=(pair,), mode=mode), (count,))
    np.testing.assert_array_equal(found, transpose)


def test_pad_takes_infinities_as_constants():
    padded = so.pad(jnp.zeros(1), pad_width=((1, 1),), constant_value=-INF)
    assert padded.tolist() == [-INF, 0.0, -INF]
    assert so.pad(jnp.asarray([True]), pad_width=((1, 0),)).tolist() == [False, True]


@pytest.mark.parametrize(("dtype", "value"), [("uint8", -1), ("uint8", 256), ("int32", INF)])
def test_pad_refuses_a_constant_that_the_dtype_does_not_hold(dtype, value):
    with pytest.raises(TypeError, match="constant_value must be of dtype"):
        so.pad(jnp.zeros(1, dtype), pad_width=((1, 1),), constant_value=value)


# Places known at run time ----------------------------------------------------------------------


@pytest.mark.parametrize(("start", "begin"), [(0, 0), (2, 2), (3, 2), (99, 2), (-1, 2), (-99, 0)])
def test_starts_are_moved_inside(start, begin):
    x, piece = np.arange(4.0, dtype=np.float32), np.array([7.0, 8.0], np.float32)
    starts = np.array([start])
    assert so.dynamic_slice(x, starts, sizes=(2,)).tolist() == x[begin : begin + 2].tolist()
    replaced = x.copy()
    replaced[begin : begin + 2] = piece
    assert so.dynamic_update_slice(x, piece, starts).tolist() == replaced.tolist()


def test_what_is_replaced_gets_no_gradient():
    def run(x, piece):
        return jnp.sum(so.dynamic_update_slice(x, piece, jnp.asarray([9])) * jnp.arange(1.0, 5.0))

    of_x, of_piece = jax.jit(jax.grad(run, (0, 1)))(jnp.zeros(4), jnp.zeros(2))
    assert of_x.tolist() == [1.0, 2.0, 0.0, 0.0]
    assert of_piece.tolist() == [3.0, 4.0]


def test_starts_may_be_a_traced_value_under_vmap():
    x = jnp.arange(12.0).reshape(3, 4)
    starts = jnp.asarray([[0], [2], [9]])
    pieces = jax.vmap(lambda row, at: so.dynamic_slice(row, at, sizes=(2,)))(x, starts)
    assert pieces.tolist() == [[0.0, 1.0], [6.0, 7.0], [10.0, 11.0]]


# Repeats and joins -----------------------------------------------------------------------------


def test_entries_that_are_not_repeated_get_no_gradient():
    head = [1.0, 2.0, 4.0]
    assert adjoint(so.repeat, (3,), head, repeats=(2, 0, 1)).tolist() == [3.0, 0.0, 4.0]
    assert adjoint(so.repeat, (2,), [], repeats=0).tolist() == [0.0, 0.0]
    assert adjoint(so.tile, (2,), [], repetitions=(0,)).tolist() == [0.0, 0.0]
    assert adjoint(so.tile, (), [1.0, 2.0], repetitions=(2,)).tolist() == 3.0


def test_gradients_of_stack_have_the_dtypes_of_its_inputs():
    with jax.enable_x64(True):
        x, y = so.var("x", shape=(2,), dtype="float32"), so.var("y", shape=(2,), dtype="float64")
        of_x, of_y = so.grad(so.stack(x, y), [x, y])
        assert (of_x.dtype, of_y.dtype) == (np.float32, np.float64)


def test_parts_that_are_not_used_get_zeros():
    x = so.var("x", shape=(4,))
    cut = so.split(x, sections=(1, 3))
    assert so.grad(2.0 * cut[1], x).eval(x=np.zeros(4)).tolist() == [0.0, 2.0, 2.0, 0.0]
    rows = so.unstack(x)
    assert so.grad(3.0 * rows[2], x).eval(x=np.zeros(4)).tolist() == [0.0, 0.0, 3.0, 0.0]


def test_a_grid_that_is_not_used_gives_zero():
    x, y = so.var("x", shape=(2,)), so.var("y", shape=(3,))
    grid = so.meshgrid(x, y, indexing="ij")[0]
    of_x, of_y = so.grad(grid, [x, y])
    values = {"x": np.zeros(2), "y": np.zeros(3)}
    assert of_x.eval(**values).tolist() == [3.0, 3.0]
    assert of_y.eval(**values).tolist() == [0.0, 0.0, 0.0]


def test_split_positions_may_coincide_and_lie_at_the_ends():
    parts = so.split(jnp.arange(3), sections=(0, 2, 2, 3))
    assert [one.tolist() for one in parts] == [[], [0, 1], [], [2], []]


def test_one_part_is_a_tuple_too():
    assert [one.tolist() for one in so.split(jnp.arange(2), sections=1)] == [[0, 1]]
    assert [one.tolist() for one in so.unstack(jnp.ones((1, 2)))] == [[1.0, 1.0]]
    assert [one.tolist() for one in so.meshgrid(jnp.arange(2))] == [[0, 1]]


def test_unstack_wants_to_know_how_many():
    with pytest.raises(UnknownTypeError, match="x: its shape"):
        so.unstack(so.var("x"))
    assert len(so.split(so.var("x"), sections=3).list_outputs()) == 3


# Blocks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_go_back_to_where_they_came_from(layout, mode):
    how = {"block_size": 3, "layout": layout, "mode": mode}
    shape = (2, 18, 1, 2) if layout == "NCHW" else (2, 1, 2, 18)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wide = so.depth_to_space(x, **how)
    assert wide.shape == ((2, 2, 3, 6) if layout == "NCHW" else (2, 3, 6, 2))
    np.testing.assert_array_equal(so.space_to_depth(wide, **how), x)


def test_blocks_by_the_example_of_onnx():
    x = np.arange(0, 72, 9).reshape(1, 8, 1, 1) + np.arange(6).reshape(1, 1, 2, 3)
    wide = np.asarray(so.depth_to_space(x, block_size=2))
    assert wide[0, 0].tolist() == [
        [0, 18, 1, 19, 2, 20],
        [36, 54, 37, 55, 38, 56],
        [3, 21, 4, 22, 5, 23],
        [39, 57, 40, 58, 41, 59],
    ]
    together = np.asarray(so.depth_to_space(x, block_size=2, mode="CRD"))
    assert together[0, 0, :2].tolist() == [[0, 9, 1, 10, 2, 11], [18, 27, 19, 28, 20, 29]]


def test_convolution_is_a_product_with_columns():
    generator = np.random.default_rng(0)
    data = generator.standard_normal((2, 3, 5, 6)).astype(np.float32)
    weight = generator.standard_normal((4, 3, 3, 2)).astype(np.float32)
    how = {"stride": (2, 1), "padding": 1, "dilation": (1, 2)}
    columns = so.im2col(data, kernel=(3, 2), **how)
    product = np.asarray(weight.reshape(4, -1) @ np.asarray(columns))
    expected = np.asarray(
        so.convolution(data, weight, channels=4, kernel=(3, 2), use_bias=False, **how)
    )
    np.testing.assert_allclose(product.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


# Simplifications -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: so.swapaxes(x, axis1=0, axis2=-2),
        lambda x: so.moveaxis(x, source=1, destination=-1),
        lambda x: so.flip(x, axis=()),
        lambda x: so.roll(x, shift=0),
        lambda x: so.tile(x, repetitions=(1,)),
        lambda x: so.repeat(x, repeats=1, axis=0),
        lambda x: so.pad(x, pad_width=((0, 0), (0, 0))),
        lambda x: so.slice_axis(x, axis=1, begin=0, end=None),
    ],
)
def test_what_changes_nothing_is_left_out(call):
    x = so.var("x", shape=(2, 3))
    assert call(x).same_as(x)


def test_repeat_without_an_axis_flattens():
    x = so.var("x", shape=(2, 3))
    assert so.repeat(x, repeats=1).shape == (6,)
    assert so.tile(x, repetitions=(1, 1, 1)).shape == (1, 2, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: so.flip(x, axis=0),
        lambda x: so.swapaxes(x, axis1=0, axis2=1),
        lambda x: so.moveaxis(x, source=0, destination=1),
        lambda x: so.roll(x, shift=1),
    ],
)
def test_constants_stay_constants(call):
    x = so.var("x", shape=(2, 3))
    assert so.grad(call(x), x).constant == 1.0


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_one_width_pads_all_ends_as_in_numpy(mode):
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(so.pad(x, pad_width=2, mode=mode), np.pad(x, 2, mode))
    by_one, by_pairs = (
        adjoint(so.pad, (2, 3), np.arange(42.0).reshape(6, 7), pad_width=one, mode=mode)
        for one in (2, ((2, 2), (2, 2)))
    )
    np.testing.assert_array_equal(by_one, by_pairs)
    assert so.pad(so.var("x", shape=(2, 3)), pad_width=0, mode=mode).name == "x"


@pytest.mark.parametrize("operator", [so.random_gamma, so.random_beta])
def test_one_number_is_the_shape_of_a_draw_with_one_axis(operator):
    parameters = (2.0,) if operator is so.random_gamma else (2.0, 3.0)
    key = jax.random.key(0)
    alone, row = (operator(*parameters, key=key, shape=one) for one in (3, (3,)))
    np.testing.assert_array_equal(alone, row)


@pytest.mark.parametrize("mode", ["wrap", "reflect", "symmetric"])
def test_padding_with_many_periods_is_short_and_right(mode):
    x, widths = jnp.asarray([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]]), ((0, 1), (500, 301))

    def padded(x):
        return so.pad(x, pad_width=widths, mode=mode)

    np.testing.assert_array_equal(padded(x), np.pad(np.asarray(x), widths, mode))
    weights = jnp.asarray(np.random.default_rng(0).normal(size=padded(x).shape), jnp.float32)
    found = jax.jit(jax.grad(lambda x: jnp.sum(padded(x) * weights)))(x)
    # Each entry receives the weights at its copies.
    places = np.pad(np.arange(6).reshape(2, 3), widths, mode)
    expected = np.bincount(places.ravel(), np.asarray(weights, np.float64).ravel())
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-4, atol=1e-4)
    assert len(str(jax.make_jaxpr(jax.grad(lambda x: jnp.sum(padded(x))))(x)).splitlines()) < 120


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: so.full((2,), 300, dtype="uint8"), "must be of dtype uint8, got 300"),
        (lambda: so.full((2,), -1, dtype="uint8"), "must be of dtype uint8, got -1"),
        (lambda: so.full_like(jnp.arange(2), 0.5), "must be of dtype int32, got 0.5"),
        (lambda: so.full_like(jnp.arange(2), 2**40), "must be of dtype int32, got 1099511627776"),
        (
            lambda: so.take(jnp.arange(2), jnp.asarray([5]), fill_value=math.nan),
            "must be of dtype int32, got nan",
        ),
        (
            lambda: so.take_along_axis(jnp.arange(2), jnp.asarray([5]), fill_value=math.inf),
            "must be of dtype int32, got inf",
        ),
        (
            lambda: so.gather_nd(jnp.arange(2), jnp.asarray([[5]]), fill_value=0.5),
            "must be of dtype int32, got 0.5",
        ),
        (
            lambda: so.fill_diagonal(jnp.ones((2, 2), jnp.int8), value=128),
            "must be of dtype int8, got 128",
        ),
        (
            lambda: so.pad(jnp.arange(2), pad_width=((1, 1),), constant_value=0.5),
            "must be of dtype int32, got 0.5",
        ),
        (lambda: so.arange(2**40, 2**40 + 2), "each number must be of dtype int32"),
    ],
)
def test_numbers_that_a_dtype_does_not_hold_are_refused(call, message):
    with pytest.raises(DTypeError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: so.arange(math.inf), "'start' must be finite, got inf"),
        (lambda: so.arange(0, math.nan), "'stop' must be finite, got nan"),
        (lambda: so.arange(0, 1, math.inf), "'step' must be finite, got inf"),
        (lambda: so.arange(10**30), "must give less than 2\\^63 numbers"),
        (lambda: so.arange(0.0, 1.0, 1e-320), "must give less than 2\\^63 numbers"),
        (lambda: so.diag(jnp.ones(2), k=2**40), "a matrix of less than 2\\^63 entries"),
        (lambda: so.diag_embed(jnp.ones(2), offset=-(2**70)), "a matrix of less than 2\\^63"),
    ],
)
def test_endless_arrays_are_refused(call, message):
    with pytest.raises((AttributeValueError, ShapeError), match=message):
        call()


@pytest.mark.parametrize("k", [2**40, -(2**40), 2**70])
def test_diagonals_far_outside(k):
    x = jnp.ones((2, 3))
    near = 9 if k > 0 else -9
    np.testing.assert_array_equal(so.tril(x, k=k), np.tril(x, near))
    np.testing.assert_array_equal(so.triu(x, k=k), np.triu(x, near))
    np.testing.assert_array_equal(so.band_part(x, upper=k), np.tril(x, near))
    np.testing.assert_array_equal(so.band_part(x, lower=k), np.triu(x, -near))
    np.testing.assert_array_equal(so.eye(2, k=k), np.zeros((2, 2)))
    assert so.diag(x, k=k).shape == (0,)
    np.testing.assert_array_equal(so.arange(0, 3, 2**70), [0])
