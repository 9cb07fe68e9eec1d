"""Gathers, scatters, sorts and sequences at ties, NaN, repeated indices and those beyond."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import NotDifferentiableError

NAN, INF = float("nan"), float("inf")


def gradient(call, x, *others):
    """The gradient of ``sum(weights * call(x))``, by the graph, with weights 1, 2, 3, ..."""
    x = np.asarray(x, np.float32)
    symbol = so.var("x", shape=x.shape, dtype="float32")
    out = call(symbol, *others)
    out = out[0] if len(out.list_outputs()) > 1 else out
    shape = out.infer_shape(x=x.shape)[1][0]
    weights = 1.0 + np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    grad = so.grad(out, symbol, weights)
    needed = {"x": x} if "x" in grad.list_arguments() else {}
    return np.asarray(grad.eval(**needed)).tolist()


def equal(found, expected):
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


# Indices beyond the axis, and from its end -----------------------------------------------------

FAR = np.asarray([0, 7, -1, -4, 2], np.int32)
"""For an axis of length 3: the second and the fourth lie beyond."""
TABLE = jnp.asarray([10.0, 20.0, 30.0])


@pytest.mark.parametrize(
    "gathered",
    [
        so.take(TABLE, FAR),
        so.take_along_axis(TABLE, FAR),
        so.gather_nd(TABLE, FAR[:, None]),
        so.gather_nd(TABLE, FAR[None], axis=0),
    ],
)
def test_gathers_give_nan_beyond_the_axis(gathered):
    equal(gathered, [10, NAN, 30, NAN, 30])


def test_gathers_fill_integers_with_the_least_number_or_the_largest():
    for kind, beyond in [("int8", -128), ("uint8", 255)]:
        table = jnp.asarray([1, 2], kind)
        for gathered in (so.take(table, FAR[:2]), so.take_along_axis(table, FAR[:2])):
            equal(gathered, [1, beyond])
        equal(so.gather_nd(table, FAR[:2, None]), [1, beyond])


@pytest.mark.parametrize("value", [0.0, -1.5])
def test_gathers_give_the_fill_value_beyond_the_axis(value):
    expected = [10, value, 30, value, 30]
    equal(so.take(TABLE, FAR, fill_value=value), expected)
    equal(so.take_along_axis(TABLE, FAR, fill_value=value), expected)
    equal(so.gather_nd(TABLE, FAR[:, None], fill_value=value), expected)


@pytest.mark.parametrize(
    "gather",
    [so.take, so.take_along_axis, lambda x, ids: so.gather_nd(x, ids[:, None])],
)
def test_gradients_of_gathers_leave_out_what_lies_beyond(gather):
    equal(gradient(gather, [10, 20, 30], FAR), [1, 0, 3 + 5])


VALUES = np.asarray([1, 2, 4, 8, 16], np.float32)


@pytest.mark.parametrize(
    "scatter",
    [
        lambda v: so.add_rows(v, FAR, height=3),
        lambda v: so.scatter_add(np.zeros(3, np.float32), FAR, v),
        lambda v: so.scatter_nd(v, FAR[:, None], shape=(3,)),
        lambda v: so.index_add(np.zeros(3, np.float32), FAR, v),
    ],
)
def test_scatters_add_up_and_drop_what_lies_beyond(scatter):
    equal(scatter(VALUES), [1, 0, 4 + 16])
    equal(gradient(scatter, VALUES), [1, 0, 3, 0, 3])


def test_of_the_updates_of_one_row_the_last_stays_and_gets_the_gradient():
    x = np.asarray([1, 2, 3], np.float32)
    equal(so.index_update(x, FAR, VALUES), [1, 2, 16])
    equal(gradient(lambda v: so.index_update(x, FAR, v), VALUES), [1, 0, 0, 0, 3])
    equal(gradient(lambda v: so.index_update(v, FAR, VALUES), x), [0, 2, 0])


def test_the_last_update_stays_in_row_major_order():
    rows = np.asarray([[0, 1], [1, 0]], np.int32)
    equal(so.index_update(np.zeros(3, np.float32), rows, VALUES[:4].reshape(2, 2)), [8, 4, 0])


def test_the_last_update_stays_among_many():
    rows = np.random.default_rng(0).integers(0, 50, 5000).astype(np.int32)
    values = np.arange(5000, dtype=np.float32)
    expected = np.zeros(50, np.float32)
    expected[rows] = values  # NumPy assigns in order
    equal(jax.jit(so.index_update)(np.zeros(50, np.float32), rows, values), expected)


def test_unsigned_indices_name_what_signed_ones_do():
    signed = np.asarray([2, 0, 2, 9], np.int32)
    x, updates = np.asarray([1, 2, 3], np.float32), VALUES[:4]
    for kind in ("uint8", "uint16", "uint32"):
        ids = signed.astype(kind)
        equal(so.index_update(x, ids, updates), [2, 2, 4])
        equal(so.index_add(x, ids, updates), [3, 2, 8])
        equal(so.scatter_add(x, ids, updates), [3, 2, 8])
        equal(so.scatter_nd(updates, ids[:, None], shape=(3,)), [2, 0, 5])
        equal(so.take_along_axis(x, ids), [3, 1, 3, NAN])
        equal(so.pick(np.stack([x] * 4), ids), [3, 1, 3, 3])


def test_gathers_from_no_entries_fill():
    none, ids = np.zeros((0, 2), np.float32), np.zeros((1, 2), np.int32)
    equal(so.take(none, ids[0], fill_value=3.0), np.full((2, 2), 3.0))
    equal(so.take_along_axis(none, ids, axis=0, fill_value=3.0), [[3.0, 3.0]])
    equal(so.gather_nd(none, ids[:, :1], fill_value=3.0), [[3.0, 3.0]])
    equal(so.scatter_nd(np.ones((1, 2), np.float32), ids[:, :1], shape=(0, 2)), none)
    equal(so.add_rows(np.ones(2, np.float32), ids[0], height=0), [])
    equal(so.index_update(none, ids[0], np.ones((2, 2), np.float32)), none)


def test_pick_clips_and_wraps():
    x, ids = [[1.0, 2.0, 3.0]] * 4, np.asarray([-1, 1, 3, 5], np.int32)
    equal(so.pick(np.asarray(x), ids), [1, 2, 3, 3])
    equal(so.pick(np.asarray(x), ids, mode="wrap"), [3, 2, 1, 3])
    expected = np.zeros((4, 3))
    expected[np.arange(4), [0, 1, 2, 2]] = [1, 2, 3, 4]
    equal(gradient(so.pick, x, ids), expected)


# Order -----------------------------------------------------------------------------------------


def test_sort_puts_nan_last_and_zeros_of_both_signs_in_their_order():
    x = jnp.asarray([NAN, 0.0, -INF, -NAN, -0.0, INF])
    equal(so.sort(x), [-INF, 0, 0, INF, NAN, NAN])
    equal(so.argsort(x), [2, 1, 4, 5, 0, 3])
    equal(so.sort(x, descending=True), [NAN, NAN, INF, 0, 0, -INF])
    equal(so.argsort(x, descending=True), [0, 3, 5, 1, 4, 2])


@pytest.mark.parametrize("descending", [False, True])
def test_equal_entries_get_their_gradients_in_order(descending):
    x = [1.0, 2.0, 1.0, 2.0]
    expected = [3, 1, 4, 2] if descending else [1, 3, 2, 4]
    equal(gradient(lambda v: so.sort(v, descending=descending), x), expected)


def test_topk_takes_the_first_of_equal_entries():
    x = [-0.0, 3.0, 0.0, 3.0, -0.0, 3.0]
    values, places = so.topk(jnp.asarray(x), k=2)
    equal(values, [3, 3])
    equal(places, [1, 3])
    equal(gradient(lambda v: so.topk(v, k=2), x), [0, 1, 0, 2, 0, 0])
    equal(so.topk(jnp.asarray(x), k=2, largest=False)[1], [0, 2])
    equal(gradient(lambda v: so.topk(v, k=2, largest=False), x), [1, 0, 2, 0, 0, 0])


def test_topk_counts_every_nan_as_largest():
    x = jnp.asarray([1.0, -NAN, INF, NAN, -INF])
    equal(so.topk(x, k=3)[0], [NAN, NAN, INF])
    equal(so.topk(x, k=3)[1], [1, 3, 2])
    equal(so.topk(x, k=2, largest=False)[1], [4, 0])


def test_topk_of_the_least_integers():
    for kind in ("int8", "uint8"):
        limits = np.iinfo(kind)
        x = np.asarray([0, limits.max, limits.min, 5], kind)
        equal(so.topk(x, k=4, largest=False)[0], np.sort(x))
        equal(so.topk(x, k=4)[0], np.sort(x)[::-1])


def test_a_place_has_no_derivative_of_its_own():
    x = so.var("x", shape=(3,))
    with pytest.raises(NotDifferentiableError, match="its result is an integer"):
        so.grad(so.cast(so.argsort(x), dtype="float32"), x)


def test_a_gradient_that_uses_places_is_differentiated_with_the_places_held():
    x = so.var("x", shape=(3,))
    first = so.grad(so.sum(so.sort(x)), x)
    assert so.grad(first, x).constant == 0.0


def test_searchsorted_stands_beside_equal_entries():
    ascending = jnp.asarray([1.0, 2.0, 2.0, INF])
    values = jnp.asarray([-INF, 2.0, 3.0, INF, NAN])
    equal(so.searchsorted(ascending, values), [0, 1, 3, 3, 4])
    equal(so.searchsorted(ascending, values, side="right"), [0, 3, 3, 4, 4])


# Masks and sequences ---------------------------------------------------------------------------


def test_boolean_mask_fills_up_and_leaves_out():
    x, mask = [1.0, 2.0, 3.0], np.asarray([True, False, True])
    equal(so.boolean_mask(np.asarray(x), mask, size=4, fill_value=NAN), [1, 3, NAN, NAN])
    equal(gradient(lambda v: so.boolean_mask(v, mask, size=4), x), [1, 0, 2])
    equal(so.boolean_mask(np.asarray(x), mask, size=1), [1])
    equal(gradient(lambda v: so.boolean_mask(v, mask, size=1), x), [1, 0, 0])
    equal(so.boolean_mask(np.asarray(x), np.zeros(3, bool), size=1, fill_value=7.0), [7])


LENGTHS = np.asarray([0, 2, 9], np.int32)
STEPS = np.asarray([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)


def test_sequences_end_at_the_last_step_at_most():
    equal(so.sequence_mask(STEPS, LENGTHS), [[0, 2, 3], [0, 5, 6], [0, 0, 9]])
    equal(so.sequence_reverse(STEPS, LENGTHS), [[1, 5, 9], [4, 2, 6], [7, 8, 3]])
    equal(so.sequence_last(STEPS, LENGTHS), [NAN, 5, 9])


def test_sequences_along_the_second_axis_are_those_of_the_transposed():
    for call in (so.sequence_mask, so.sequence_reverse):
        equal(call(STEPS.T, LENGTHS, axis=1), call(STEPS, LENGTHS).T)
    equal(so.sequence_last(STEPS.T, LENGTHS, axis=1), so.sequence_last(STEPS, LENGTHS))


def test_masked_steps_get_no_gradient_whatever_they_hold():
    bad = np.where(np.asarray(so.sequence_mask(np.ones((3, 3)), LENGTHS)) > 0, STEPS, NAN)
    equal(gradient(so.sequence_mask, bad, LENGTHS), [[0, 2, 3], [0, 5, 6], [0, 0, 9]])
    equal(gradient(so.sequence_last, bad, LENGTHS), [[0, 0, 0], [0, 2, 0], [0, 0, 3]])


def test_sequences_without_lengths_have_all_the_steps():
    equal(so.sequence_mask(STEPS, value=7.0), STEPS)
    equal(so.sequence_reverse(STEPS), STEPS[::-1])
    equal(so.sequence_last(STEPS, axis=1), STEPS[:, -1])


def test_lengths_of_unsigned_bytes_count_no_further_than_they_are():
    data = np.arange(600, dtype=np.float32).reshape(300, 2)
    equal(so.sequence_last(data, np.asarray([0, 255], np.uint8)), [NAN, data[254, 1]])


# Creation --------------------------------------------------------------------------------------


def test_arrays_are_made_by_position_as_in_numpy():
    equal(so.zeros((2, 3)), np.zeros((2, 3)))
    equal(so.ones(4), np.ones(4))
    for call in [(5,), (2, 9, 3), (5, 0, -2), (0.5, 2.75, 0.25), (3, 3), (0,), (-4,)]:
        equal(so.arange(*call), np.arange(*call))
    equal(so.linspace(0, 1, 4, False), np.linspace(0, 1, 4, False, dtype=np.float32))
    equal(so.eye(2, 3, -1), np.eye(2, 3, -1))


def test_arange_of_a_small_dtype_counts_in_a_wide_one():
    expected = np.arange(0, 1000).astype("float16")
    equal(so.arange(1000, dtype="float16"), expected)
    equal(np.asarray(so.arange(1000, dtype="bfloat16"), np.float32)[-1], 1000.0)
    equal(so.arange(250, 260, dtype="uint8"), np.arange(250, 260).astype("uint8"))


def test_linspace_of_a_small_dtype_counts_in_a_wide_one():
    expected = np.linspace(0, 1, 5000, dtype=np.float32).astype("float16")
    equal(so.linspace(0, 1, 5000, dtype="float16"), expected)


def test_an_array_of_jax_is_an_index_of_a_symbol():
    y = so.var("y", shape=(3,))
    given = jnp.array([1.0, 2.0, 3.0])
    assert y[jnp.array([0, 2])].eval(y=given).tolist() == [1.0, 3.0]
    assert y[jnp.array([[1]])].eval(y=given).tolist() == [[2.0]]
    assert float(y[jnp.array(1)].eval(y=given)) == 2.0
