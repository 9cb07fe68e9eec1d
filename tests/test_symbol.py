"""Symbols: names, composition, inference in both directions, running, and their derivatives."""

import copy
import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import (
    ArgumentError,
    AttributeTypeError,
    AttributeValueError,
    FeedError,
    NameConflictError,
    ShapeError,
    UnknownTypeError,
)


def mlp(batch=None):
    data = so.var("data", shape=None if batch is None else (batch, 8))
    hidden = so.tanh(so.fully_connected(data, units=16, name="fc1"))
    return so.fully_connected(hidden, units=4, name="fc2")


class TestNames:
    def test_arguments_are_listed_depth_first(self):
        names = ["data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
        assert mlp().list_arguments() == names

    def test_outputs(self):
        x = so.var("x")
        assert mlp().list_outputs() == ["fc2_output"]
        assert so.Group([so.sin(x), so.sin(so.cos(x)), x]).list_outputs() == [
            "sin0_output",
            "sin1_output",
            "x",
        ]

    def test_automatic_names_depend_on_the_graph_alone(self):
        x = so.var("x", shape=(2,))
        first = so.sin(so.sin(x)).list_outputs()
        so.sin(so.exp(x))
        assert so.sin(so.sin(x)).list_outputs() == first

    def test_automatic_names_avoid_given_ones(self):
        x = so.var("sin0", shape=(2,))
        names = so.Group([so.sin(x), x]).list_outputs()
        assert names == ["sin1_output", "sin0"]

    def test_scopes_prefix_and_count_anew(self):
        with so.name_scope("block_"):
            first = so.fully_connected(so.var("x"), units=2)
        with so.name_scope("block_"):
            second = so.fully_connected(so.var("x"), units=2)
        assert first.list_arguments() == second.list_arguments()
        assert first.list_arguments()[1] == "block_fully_connected0_weight"

    def test_two_variables_of_one_name_are_refused(self):
        a, b = so.var("v", shape=(2,)), so.var("v", shape=(2, 2))
        with pytest.raises(NameConflictError, match="v: two nodes"):
            (a + b).list_arguments()

    def test_internals_and_children(self):
        net = mlp()
        internals = net.get_internals()
        assert "fc1_output" in internals.list_outputs()
        assert internals["fc1_output"].list_arguments() == ["data", "fc1_weight", "fc1_bias"]
        assert net.get_children().list_outputs()[1:] == ["fc2_weight", "fc2_bias"]
        assert so.var("x").get_children() is None

    def test_an_unknown_output_suggests(self):
        with pytest.raises(ArgumentError, match="did you mean 'fc1_output'"):
            mlp().get_internals()["fc1_outpt"]

    def test_attached_strings(self):
        x = so.var("x", attr={"lr_mult": "0.1"})
        assert x.attr("lr_mult") == "0.1"
        assert x.list_attr() == {"lr_mult": "0.1"}


class TestCalls:
    def test_methods_operators_and_functions_agree(self):
        x, y = so.var("x", shape=(2, 3)), so.var("y", shape=(2, 3))
        assert x.sin().same_as(so.sin(x))
        assert (x @ y.permute_dims((1, 0))).same_as(so.matmul(x, so.permute_dims(y, axes=(1, 0))))
        assert (2 - x).same_as(so.subtract(2, x))
        assert (-x).same_as(so.negative(x))

    def test_comparison_builds_a_node(self):
        x = so.var("x", shape=(2,))
        assert (x == 1.0).dtype == np.bool_
        with pytest.raises(ArgumentError, match="truth"):
            bool(x == 1.0)
        with pytest.raises(ArgumentError, match="truth"):
            _ = 1 in [x]
        assert x in [so.var("y", shape=(2,)), x]

    def test_indexing(self):
        x = so.var("x", shape=(3, 4, 5))
        array = np.arange(60.0, dtype=np.float32).reshape(3, 4, 5)
        places = [0, -1, (..., 2), (None, 1), slice(1, 3), slice(None, None, -2)]
        for index in [*places, (0, slice(None), -1)]:
            assert np.array_equal(x[index].eval(x=array), array[index]), index
        with pytest.raises(ArgumentError):
            x["a"]

    # fmt: off
    INDICES = (
        np.s_[1:], np.s_[:-1], np.s_[7:], np.s_[-9:9], np.s_[::2], np.s_[:, 1:3], np.s_[:],
        np.s_[...], np.s_[0], np.s_[-1], np.s_[-3], np.s_[2, -1], np.s_[1, 1, 1],
        (), np.s_[np.int64(1)], np.s_[::-1], np.s_[5:1:-1], np.s_[-2::-1], np.s_[:-9:-1],
        np.s_[-9::-1], np.s_[:, ::-2],
        np.s_[..., 1:], np.s_[..., 0], np.s_[..., -2], np.s_[..., ::2], np.s_[..., 4:0:-2],
        np.s_[1:, ..., 1:3], np.s_[0, ..., -2], np.s_[..., 1:, 2], np.s_[..., 1, 1, 1],
        np.s_[None], np.s_[:, None, 1], np.s_[None, ..., None], np.s_[..., 1, None, 1:],
        np.s_[None, 0, None, 1:, None], np.s_[..., None, 2], np.s_[:, 1:3, None, ..., ::3],
        np.s_[[2, 0, 0],], np.s_[:, [1, 1]], np.s_[..., [0, 4]], np.s_[[2, 0], None],
        np.s_[..., None, [1, 2], :], np.s_[..., [1, 2], None, 1:],
    )
    # fmt: on

    @pytest.mark.parametrize("index", INDICES, ids=str)
    def test_indexing_of_an_unknown_shape(self, index):
        """What is well defined without the lengths waits for them; so does its gradient."""
        x = so.var("x")
        array = np.arange(60.0, dtype=np.float32).reshape(3, 4, 5)
        part = (x * 1.0)[index]
        assert np.array_equal(part.eval(x=array), array[index])
        assert np.array_equal(so.from_desc(part.to_desc()).eval(x=array), array[index])
        slope = np.zeros_like(array)
        np.add.at(slope, index, 2 * array[index])
        assert np.array_equal(so.grad(so.sum(so.square(part)), x).eval(x=array), slope)

    @pytest.mark.parametrize("index", [3, -4, np.s_[..., 5], np.s_[0, 0, 0, 0]])
    def test_an_index_that_does_not_fit_is_refused_once_the_shape_is_known(self, index):
        part = so.var("x")[index]
        with pytest.raises((ShapeError, AttributeValueError), match=r"squeeze|slice"):
            part.eval(x=np.ones((3, 4, 5), "f"))

    @pytest.mark.parametrize("x", [so.var("x"), so.var("x", shape=(3, 4, 5))])
    def test_what_is_no_index_of_any_shape(self, x):
        array = np.ones((3, 4, 5))
        for index in (1.5, np.s_[..., ...], [0.5], np.s_[0, 1j]):
            with pytest.raises(IndexError):
                array[index]
            with pytest.raises(IndexError, match=r"getitem: (an index must hold|at most one)"):
                x[index]
        for index in (True, [True, False, True], np.s_[:, np.zeros(4, bool)]):
            with pytest.raises(
                IndexError, match=r"must not hold truth values; use where, or .*got"
            ):
                x[index]
        with pytest.raises(ArgumentError, match="getitem: an array among the indices"):
            x[[0, 1], 0]

    def test_too_many_inputs(self):
        x = so.var("x")
        with pytest.raises(ArgumentError, match=r"sin: the inputs must be \(x\), got 2"):
            so.sin(x, x)

    def test_unknown_attribute_suggests(self):
        with pytest.raises(ArgumentError, match="did you mean 'axis'"):
            so.softmax(so.var("x"), axs=1)

    def test_wrong_attribute_type(self):
        with pytest.raises(AttributeTypeError, match="attribute 'axis' must be an int"):
            so.softmax(so.var("x"), axis="rows")

    def test_unknown_operator_suggests(self):
        with pytest.raises(AttributeError, match="did you mean 'softmax'"):
            so.sofmax(so.var("x"))

    def test_a_slot_filled_twice(self):
        x = so.var("x")
        with pytest.raises(ArgumentError, match="filled once"):
            so.sin(x, x=x)

    def test_a_bias_is_governed_by_its_flag(self):
        x = so.var("x")
        layer = so.fully_connected(x, units=3, use_bias=False, name="fc")
        assert layer.list_arguments() == ["x", "fc_weight"]
        with pytest.raises(ArgumentError, match="must be left out"):
            so.fully_connected(x, so.var("w"), so.var("b"), units=3, use_bias=False)

    @pytest.mark.parametrize("shape", [(-1,), ("a",), (1.5,), "ab"])
    def test_bad_shapes_of_variables(self, shape):
        with pytest.raises(ArgumentError):
            so.var("x", shape=shape)

    def test_copies_are_the_same(self):
        x = so.sin(so.var("x"))
        assert copy.copy(x) is x
        assert copy.deepcopy(x) is x
        assert pickle.loads(pickle.dumps(x)).same_as(x)


class TestInference:
    def test_weights_follow_from_data(self):
        arguments, outputs, states = mlp().infer_shape(data=(32, 8))
        assert arguments == [(32, 8), (16, 8), (16,), (4, 16), (4,)]
        assert outputs == [(32, 4)]
        assert states == []

    def test_data_follows_from_what_it_meets(self):
        x, y = so.var("x"), so.var("y", shape=(2, 3))
        arguments, _, _ = so.minus(so.sin(x), y).infer_shape()
        assert arguments == [(2, 3), (2, 3)]

    def test_declared_data_declares_weights_at_once(self):
        weight = dict(zip(mlp(5).list_arguments(), mlp(5).infer_shape()[0], strict=True))
        assert weight["fc1_weight"] == (16, 8)
        assert mlp(5).shape == (5, 4)

    def test_states_are_listed_apart(self):
        net = so.batch_norm(so.var("data"), name="bn")
        arguments, outputs, states = net.infer_shape(data=(8, 3))
        assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
        assert (arguments, outputs) == ([(8, 3), (3,), (3,)], [(8, 3)])
        assert states == [(3,), (3,)]

    def test_what_does_not_follow_is_named(self):
        with pytest.raises(UnknownTypeError, match="data"):
            mlp().infer_shape(fc2_bias=(4,))
        partial, outputs, _ = mlp().infer_shape_partial(fc2_bias=(4,))
        assert partial[0] is None
        assert outputs == [None]

    def test_contradictions(self):
        with pytest.raises(ShapeError, match="declared"):
            mlp(5).infer_shape(data=(6, 8))
        with pytest.raises(FeedError, match="did you mean 'data'"):
            mlp().infer_shape(dat=(6, 8))

    def test_dtypes(self):
        x = so.var("x", dtype="float16")
        dtypes, outputs, _ = so.fully_connected(x, units=2).with_types(x=(3, 4)).infer_type()
        assert {d.name for d in dtypes} == {"float16"}
        assert outputs[0] == np.float16

    def test_types_filled_in(self):
        net = mlp().with_types(data=(7, 8))
        assert net.shape == (7, 4)
        assert net.list_arguments() == mlp().list_arguments()

    def test_an_unknown_type_tells_where_it_was_built(self):
        with pytest.raises(UnknownTypeError, match=r"test_symbol\.py"):
            _ = so.sin(so.var("x")).shape


class TestComposition:
    def test_replacing_variables(self):
        x, y = so.var("x"), so.var("y")
        composed = (x * y).replace(x=so.exp(y))
        assert composed.list_arguments() == ["y"]
        assert float(composed.eval(y=1.0)) == pytest.approx(np.e)

    def test_by_a_number(self):
        x, y = so.var("x", shape=()), so.var("y", shape=())
        assert (x * y)(x=1.0).same_as(y)


class TestRunning:
    def test_eval_takes_lists_numbers_and_arrays(self):
        x = so.var("x", shape=(2,))
        assert so.square(x).eval(x=[1, 2]).tolist() == [1.0, 4.0]
        assert so.square(x).eval(x=jnp.array([1.0, 2.0])).tolist() == [1.0, 4.0]
        assert float(so.square(so.var("y", shape=())).eval(y=3)) == 9.0

    def test_eval_compiles_once_for_each_type(self):
        y = so.sin(so.var("x"))
        y.eval(x=[1.0])
        ((function, _),) = y.node.memo.values()
        for _ in range(3):
            y.eval(x=[2.0])
            y.eval(x=[1.0, 2.0])
        assert len(function._schedules) == 2

    @pytest.mark.parametrize(
        ("feed", "message"),
        [
            ({}, "got no x"),
            ({"x": np.zeros(3, np.float32)}, r"shape \(2,\) must be fed, got \(3,\)"),
            ({"x": np.zeros(2, np.int32)}, "dtype float32 must be fed, got int32"),
            ({"x": [1.0, 2.0], "z": 1.0}, "among x, got 'z'"),
            ({"x": "text"}, "got str"),
        ],
    )
    def test_bad_feeds(self, feed, message):
        with pytest.raises(FeedError, match=message):
            so.sin(so.var("x", shape=(2,))).eval(**feed)

    def test_inputs_that_do_not_fit_are_named_at_run_time_too(self):
        x, y = so.var("x"), so.var("y")
        with pytest.raises(ShapeError, match="minus: x and y must have the same shape"):
            so.minus(x, y).eval(x=[1.0], y=[1.0, 2.0])

    def test_to_jax_by_position_and_by_name(self):
        function = mlp().to_jax()
        rng = np.random.default_rng(0)
        shapes = [(5, 8), (16, 8), (16,), (4, 16), (4,)]
        arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
        named = dict(zip(mlp().list_arguments(), arrays, strict=True))
        assert np.array_equal(function(*arrays), function(**named))
        with pytest.raises(FeedError, match="given once"):
            function(*arrays, data=arrays[0])
        with pytest.raises(FeedError, match="at most 5"):
            function(*arrays, arrays[0])

    def test_a_random_graph_needs_a_key(self):
        x = so.var("x", shape=(100,))
        function = so.dropout(x, rate=0.5).to_jax(is_train=True)
        ones = jnp.ones(100)
        with pytest.raises(FeedError, match="key= must be given"):
            function(ones)
        key = jax.random.key(3)
        assert np.array_equal(function(ones, key=key), function(ones, key=key))
        assert not np.array_equal(function(ones, key=key), function(ones, key=jax.random.key(4)))
        raw = jax.random.PRNGKey(3)
        assert np.array_equal(function(ones, key=raw), function(ones, key=key))

    def test_states_come_back_when_training(self):
        net = so.batch_norm(so.var("x", shape=(8, 3)), name="bn")
        shapes, _, _ = net.infer_shape()
        arrays = {n: jnp.ones(s) for n, s in zip(net.list_arguments(), shapes, strict=True)}
        states = {"bn_moving_mean": jnp.zeros(3), "bn_moving_var": jnp.ones(3)}
        _, new = net.to_jax(is_train=True)(**arrays, **states)
        assert set(new) == set(states)
        assert net.to_jax()(**arrays, **states).shape == (8, 3)

    def test_a_shared_state_is_updated_by_each_in_turn(self):
        mean, var = (so.var(n, shape=(1,), state=True) for n in ("m", "v"))
        x = so.var("x", shape=(4, 1))
        gamma, beta = so.ones_like(mean), so.zeros_like(mean)
        first = so.batch_norm(x, gamma, beta, mean, var, momentum=0.5)
        second = so.batch_norm(x + 2.0, gamma, beta, mean, var, momentum=0.5)
        _, new = (first + second).eval(x=np.zeros((4, 1)), m=[8.0], v=[1.0], is_train=True)
        assert new["m"].tolist() == [(8.0 * 0.5) * 0.5 + 1.0]


class TestSeed:
    def test_symbolic_eager_and_lowered_draw_the_same(self):
        x = so.var("x", shape=(64,))
        graph = so.Group([so.dropout(x, rate=0.5), so.dropout(x, rate=0.3)])
        ones = jnp.ones(64)
        so.random.seed(7)
        symbolic = graph.eval(x=ones, is_train=True)
        so.random.seed(7)
        eager = [so.dropout(ones, rate=rate, training=True) for rate in (0.5, 0.3)]
        lowered = graph.to_jax(is_train=True)(ones, key=jax.random.key(7))
        for a, b, c in zip(symbolic, eager, lowered, strict=True):
            assert np.array_equal(a, b)
            assert np.array_equal(a, c)

    def test_each_run_draws_anew(self):
        y = so.dropout(so.var("x", shape=(64,)), rate=0.5)
        first, second = (y.eval(x=np.ones(64), is_train=True) for _ in range(2))
        assert not np.array_equal(first, second)

    def test_a_gradient_draws_what_its_function_draws(self):
        x, w = so.var("x", shape=(64,)), so.var("w", shape=(64,))
        y = so.dropout(x, rate=0.5) + so.dropout(w, rate=0.5)
        key, ones = jax.random.key(1), jnp.ones(64)
        mask = so.grad(y, w).to_jax(is_train=True)(ones, ones, key=key)
        function = y.to_jax(is_train=True)
        native = jax.grad(lambda v: function(ones, v, key=key).sum())(ones)
        assert np.array_equal(mask, native)


class TestEquality:
    """``a == b`` is an operator, whose truth is whether both are the same values."""

    def test_in_lists_and_tables(self):
        a, b, c = so.var("a", shape=(2,)), so.var("b", shape=(2,)), so.var("c", shape=(3,))
        assert a in [c, b, a]
        assert a not in [c, b]
        assert [c, b, a].index(a) == 2
        assert [a, b, a].count(a) == 2
        assert {a: 1, b: 2}[so.var("a", shape=(2,))] == 1
        assert so.Group([a, b]) in [a, so.Group([b, a]), so.Group([a, b])]
        assert a not in [None, "a", {}]
        assert bool(a != b)
        assert not bool(a != so.var("a", shape=(2,)))

    def test_as_a_static_argument(self):
        @functools.partial(jax.jit, static_argnums=1)
        def run(x, symbol):
            traced.append(symbol)
            return symbol.to_jax()(x)

        traced = []
        for name in ("x", "x", "y", "x"):
            assert run(2.0, so.square(so.var(name, shape=()))) == 4.0
        assert len(traced) == 2

    def test_it_is_an_operator(self):
        a, b = so.var("a", shape=(2,)), so.var("b", shape=(2,))
        assert (a == b).eval(a=[1.0, 2.0], b=[1.0, 3.0]).tolist() == [True, False]
        assert (a != 2.0).eval(a=[1.0, 2.0]).tolist() == [True, False]
        assert (np.ones(2) == a).eval(a=[1.0, 2.0]).tolist() == [True, False]
        for other in (a > b, a, a + b):
            with pytest.raises(TypeError, match="truth of a value that is not computed yet"):
                bool(other)
        mismatched = a == so.var("c", shape=(3,))
        with pytest.raises(ShapeError, match="equal"):
            mismatched.sum()
        assert "equal" in repr(mismatched)
