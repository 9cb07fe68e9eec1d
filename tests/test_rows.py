"""Rows of tall arrays: kinds, arithmetic, lookups and their gradients, and what a step costs."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import registry
import symop as so
from registry import SelectedRows, VarKind
from registry.errors import ArgumentError, KindError
from registry.types import VarType
from symop import autograd, nd

HEIGHT, WIDTH = 6, 2
ROWS, DENSE = VarKind.SELECTED_ROWS, VarKind.LOD_TENSOR


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def some_rows(*rows, seed=0, height=HEIGHT):
    values = drawn(len(rows), WIDTH, seed=seed)
    return SelectedRows(jnp.asarray(rows, jnp.int32), jnp.asarray(values), height)


@pytest.fixture
def table():
    return so.var("table", shape=(HEIGHT, WIDTH))


@pytest.fixture
def ids():
    return so.var("ids", shape=(4,), dtype="int32")


@pytest.fixture
def gradient(table, ids):
    """The gradient of a sum of squares of what is looked up, by rows."""
    return so.grad(so.sum(so.square(so.lookup_table(table, ids, sparse=True))), table)


VALUES = {"table": drawn(HEIGHT, WIDTH), "ids": np.array([4, 1, 4, 0], np.int32)}


def of_dense(values=VALUES["table"], ids=VALUES["ids"]):
    """What ``gradient`` is, computed by JAX."""
    return np.array(jax.jit(jax.grad(lambda t: jnp.sum(t[ids] ** 2)))(values))


class TestValues:
    def test_merging(self):
        rows = some_rows(3, -1, 3, HEIGHT, 0, 3, 99)
        merged = rows.merged()
        assert merged.rows.tolist() == [0, 3, *[HEIGHT] * 5]
        assert not np.any(merged.values[2:])
        np.testing.assert_allclose(merged.to_dense(), rows.to_dense(), rtol=1e-6)

    @pytest.mark.parametrize(
        ("count", "height"),
        [
            (1, 1),
            (3, 2**31 - 2),
            (40_000, 10_000_000),  # row numbers of several digits
            (2**17, 50),
            pytest.param(2**24 + 1, 9, marks=pytest.mark.slow),  # too many for digits
        ],
    )
    def test_merging_is_that_of_numpy(self, count, height):
        draw = np.random.default_rng(0)
        rows = draw.integers(-1, height + 1, count).astype("int32")
        values = draw.integers(-9, 9, (count, 1)).astype("float32")
        merged = SelectedRows(jnp.asarray(rows), jnp.asarray(values), height).merged()
        inside = (rows >= 0) & (rows < height)
        once, places = np.unique(rows[inside], return_inverse=True)
        sums = np.zeros(len(once), "float32")
        np.add.at(sums, places, values[inside, 0])
        np.testing.assert_array_equal(merged.rows[: len(once)], once)
        np.testing.assert_array_equal(merged.values[: len(once), 0], sums)
        assert np.all(np.asarray(merged.rows)[len(once) :] == height)

    def test_merging_of_rows_beyond_32_bits(self):
        with jax.enable_x64(True):
            rows = SelectedRows(jnp.array([2**32 + 1, 1, 2**32 + 1]), jnp.ones((3, 1)), 2**33)
            merged = rows.merged()
            assert merged.rows.tolist() == [1, 2**32 + 1, 2**33]
            assert merged.values.ravel().tolist() == [1.0, 2.0, 0.0]

    def test_merging_in_a_table_without_rows(self):
        merged = SelectedRows(jnp.array([0, 1]), jnp.ones((2, 3)), 0).merged()
        assert merged.rows.tolist() == [0, 0]
        assert not np.any(merged.values)

    def test_what_is_dropped_may_be_anything(self):
        rows = SelectedRows(jnp.array([0, HEIGHT]), jnp.array([[1.0], [np.nan]]), HEIGHT)
        assert rows.merged().values.ravel().tolist() == [1.0, 0.0]
        assert so.sum_to(rows, shape=()) == 1.0
        assert so.global_norm(rows) == 1.0

    @pytest.mark.parametrize("rows", [(), (2,), (HEIGHT,), (1, 1, 1)])
    def test_few_rows(self, rows):
        some = some_rows(*rows)
        np.testing.assert_allclose(some.merged().to_dense(), some.to_dense(), rtol=1e-6)

    def test_each_of_a_batch_is_merged(self):
        rows = jnp.asarray([[1, 1, 0], [5, 2, 5]])
        values = jnp.asarray(drawn(2, 3, WIDTH))
        batch = jax.vmap(lambda r, v: SelectedRows(r, v, HEIGHT).merged().to_dense())(rows, values)
        for i in range(2):
            one = SelectedRows(rows[i], values[i], HEIGHT).to_dense()
            np.testing.assert_allclose(batch[i], one, rtol=1e-6)


class TestKinds:
    def test_of_lookups(self, table, ids, gradient):
        dense = so.grad(so.sum(so.square(so.lookup_table(table, ids))), table)
        assert (gradient.kind, dense.kind) == (ROWS, DENSE)

    def test_of_sums(self, gradient):
        dense = so.get_tensor_from_selected_rows(gradient)
        assert dense.kind is DENSE
        other = so.scale(gradient, scale=2.0)
        assert so.add_n(gradient, other, so.negative(other)).kind is ROWS
        assert so.add_n(gradient, other, dense).kind is DENSE
        assert (gradient + other).kind is (gradient - other).kind is ROWS
        assert (gradient + dense).kind is (dense - gradient).kind is DENSE

    @pytest.mark.parametrize("name", ["scale", "cast", "negative", "tanh", "square", "clip"])
    def test_pass_on(self, gradient, name):
        attributes = {"scale": {"scale": 2.0}, "cast": {"dtype": "bfloat16"}, "clip": {"low": -1.0}}
        assert getattr(so, name)(gradient, **attributes.get(name, {})).kind is ROWS

    def test_pass_on_before_shapes_are_known(self):
        table, ids = so.var("table"), so.var("ids", dtype="int32")
        rows = so.add_rows(so.var("values"), ids, height=HEIGHT, sparse=True)
        (node,) = so.tanh(rows).nodes
        assert node.kinds == (ROWS,)
        with pytest.raises(KindError, match=r"cos: slot 'x' must hold a dense array"):
            so.cos(rows)
        assert so.lookup_table(table, ids, sparse=True).nodes[0].kinds in (None, (DENSE,))

    def test_of_updates(self, table, gradient):
        assert so.sgd(table, gradient, 0.1).kind is DENSE
        assert [one.kind for one in so.momentum(table, gradient, table, 0.1)] == [DENSE] * 2

    def test_of_named_operators(self, gradient):
        parts = so.split_selected_rows(gradient, height_sections=(2, 4))
        assert [part.kind for part in parts] == [ROWS] * 2
        assert so.join_selected_rows(*parts).kind is so.merge_selected_rows(gradient).kind is ROWS
        clipped = so.clip_by_global_norm(gradient, so.var("x", shape=(3,)), max_norm=1.0)
        assert [one.kind for one in clipped] == [ROWS, DENSE]

    def test_an_error_names_operator_and_variable_and_the_cure(self, table, ids):
        rows = so.add_rows(
            so.var("d", shape=(4, WIDTH)), ids, height=HEIGHT, sparse=True, name="table_gradient"
        )
        with pytest.raises(KindError) as caught:
            so.softmax(rows)
        message = str(caught.value)
        for piece in (
            "softmax: slot",
            "must hold a dense array, got selected_rows",
            "get_tensor_from_selected_rows",
            "'table_gradient'",
            "test_rows.py",
        ):
            assert piece in message
        assert so.softmax(so.get_tensor_from_selected_rows(rows)).kind is DENSE

    def test_bounds_must_enclose_zero(self, gradient):
        with pytest.raises(KindError, match="low and high must enclose zero"):
            so.clip(gradient, low=0.5, high=1.0)


class TestEntrywise:
    PASSING = tuple(one for one in registry.operators() if "x" in one.row_slots)
    FIRST = tuple(
        one
        for one in registry.operators()
        if one.slot_names == ("x",) and not any(a.required for a in one.attributes)
    )

    @pytest.mark.parametrize("operator", PASSING, ids=lambda one: one.name)
    def test_zero_stays_zero(self, operator):
        if operator.slot_names != ("x",) or any(a.required for a in operator.attributes):
            return
        zero = np.asarray(operator(jnp.zeros((2, 2))))
        np.testing.assert_array_equal(zero, 0)

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("operator", FIRST, ids=lambda one: one.name)
    def test_rows_go_through_as_the_dense_array_does(self, operator):
        """Whatever takes rows computes of them what it computes of the array."""
        if "x" not in operator.row_slots:
            return
        rows = some_rows(3, 1, 3, HEIGHT)
        rows = rows.mapped(lambda values: values / 4)  # in the domain of arcsine
        found = operator(rows)
        dense = found.to_dense() if isinstance(found, SelectedRows) else found
        np.testing.assert_allclose(dense, operator(rows.to_dense()), rtol=1e-5, atol=1e-6)

    def test_there_are_many(self):
        names = {one.name for one in self.PASSING}
        assert {"sin", "tanh", "relu", "sqrt", "abs", "sign", "floor", "erf", "scale"} <= names
        assert names.isdisjoint({"exp", "cos", "sigmoid", "log", "softplus"})


class TestLookups:
    @pytest.mark.parametrize("padding", [None, 4, -2])
    @pytest.mark.parametrize("sparse", [True, False])
    def test_gradients(self, table, ids, sparse, padding):
        found = so.lookup_table(table, ids, sparse=sparse, padding_idx=padding)
        gradient = so.grad(so.sum(so.square(found)), table)
        expected = of_dense()
        if padding is not None:
            expected[4] = 0
        value = gradient.eval(**VALUES)
        assert isinstance(value, SelectedRows) is sparse
        dense = value.to_dense() if sparse else value
        np.testing.assert_allclose(dense, expected, rtol=1e-6)
        if sparse:
            assert value.values.shape == (4, WIDTH)

    @pytest.mark.parametrize("padding", [None, 1])
    def test_all_roads(self, table, ids, padding):
        """The graph by rows, the dense graph, the tape and JAX agree."""
        eager = nd.array(VALUES["table"])
        eager.attach_grad()
        with autograd.record():
            rows = nd.lookup_table(eager, nd.array(VALUES["ids"]), sparse=True, padding_idx=padding)
            loss = nd.sum(nd.square(rows))
        loss.backward()
        assert isinstance(eager.grad.value, SelectedRows)
        in_jax = jax.jit(
            jax.grad(
                lambda t: jnp.sum(
                    so.lookup_table(t, VALUES["ids"], sparse=True, padding_idx=padding) ** 2
                )
            )
        )(VALUES["table"])
        found = so.lookup_table(table, ids, sparse=True, padding_idx=padding)
        graph = so.grad(so.sum(so.square(found)), table).eval(**VALUES).to_dense()
        np.testing.assert_allclose(eager.grad.value.to_dense(), in_jax, rtol=1e-6)
        np.testing.assert_allclose(graph, in_jax, rtol=1e-6)

    @pytest.mark.parametrize("wrong", [HEIGHT, -1, 2**31 - 1])
    def test_eager_ids_out_of_range_are_refused(self, wrong):
        ids = np.array([0, wrong], np.int32)
        message = (
            rf"lookup_table: ids must be in \[0, {HEIGHT}\), the rows of the table, got {wrong}"
        )
        with pytest.raises(ArgumentError, match=message):
            so.lookup_table(VALUES["table"], ids)
        with pytest.raises(ArgumentError, match=message):
            nd.lookup_table(nd.array(VALUES["table"]), nd.array(ids))
        with pytest.raises(ArgumentError, match=message):
            jax.jit(jax.grad(lambda t: jnp.sum(so.lookup_table(t, ids))))(VALUES["table"])

    def test_computed_eager_ids_are_refused(self):
        ids = nd.array(np.array([0, 3], np.int32)) * 2
        with pytest.raises(ArgumentError, match="got 6"):
            nd.lookup_table(nd.array(VALUES["table"]), ids)

    @pytest.mark.parametrize("sparse", [True, False])
    def test_compiled_ids_out_of_range_are_dropped(self, table, ids, sparse):
        values = {**VALUES, "ids": np.array([-1, HEIGHT, 2**31 - 1, 2], np.int32)}
        rows = so.lookup_table(table, ids, sparse=sparse)
        found = rows.eval(**values)
        np.testing.assert_array_equal(found[:3], 0)
        np.testing.assert_array_equal(found[3], values["table"][2])
        gradient = so.grad(so.sum(rows), table).eval(**values)
        dense = gradient.to_dense() if sparse else gradient
        np.testing.assert_array_equal(dense, np.eye(HEIGHT)[:, 2:3] * np.ones((1, WIDTH)))
        jitted = jax.jit(so.lookup_table)(values["table"], values["ids"])
        np.testing.assert_array_equal(jitted, found)

    def test_nothing_that_is_dropped_spoils_a_gradient(self, table, ids):
        rows = so.lookup_table(table, ids, sparse=True, padding_idx=0)
        gradient = so.grad(so.sum(so.log(rows)), table)
        values = {"table": abs(VALUES["table"]), "ids": np.array([0, 1, 0, 2], np.int32)}
        dense = np.asarray(gradient.eval(**values).to_dense())
        assert np.isfinite(dense).all()
        assert not dense[0].any()

    def test_a_shared_table(self, table, ids):
        others = so.var("others", shape=(3,), dtype="int32")
        rows = [so.lookup_table(table, one, sparse=True) for one in (ids, others, ids)]
        loss = sum(so.sum(so.square(one) * (i + 1)) for i, one in enumerate(rows))
        gradient = so.grad(loss, table)
        assert gradient.kind is ROWS
        more = np.array([5, 4, 5], np.int32)
        found = gradient.eval(**VALUES, others=more)
        assert found.values.shape == (7, WIDTH)  # the same lookup twice is one node
        expected = 4 * of_dense() + 2 * of_dense(ids=more)
        np.testing.assert_allclose(found.to_dense(), expected, rtol=1e-5)

    def test_a_table_that_is_used_as_a_whole_too(self, table, ids):
        rows = so.lookup_table(table, ids, sparse=True)
        gradient = so.grad(so.sum(so.square(rows)) + so.sum(table), table)
        assert gradient.kind is DENSE
        np.testing.assert_allclose(gradient.eval(**VALUES), of_dense() + 1, rtol=1e-6)

    def test_several_tables(self, table, ids):
        second = so.var("second", shape=(3, WIDTH))
        rows = so.lookup_table(table, ids, sparse=True)
        others = so.lookup_table(second, so.remainder(ids, 3), sparse=True)
        gradients = so.grad(so.sum(rows * others), [table, second])
        assert [one.kind for one in gradients] == [ROWS] * 2
        values = drawn(3, WIDTH, seed=1)
        found = so.Group(gradients).eval(**VALUES, second=values)
        expected = jax.jit(
            jax.grad(lambda t, s: jnp.sum(t[VALUES["ids"]] * s[VALUES["ids"] % 3]), argnums=(0, 1))
        )(VALUES["table"], values)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.to_dense(), other, rtol=1e-6)

    def test_second_order(self, table, ids):
        """The gradient of the gradient along a direction: H v, by rows."""
        loss = so.sum(so.lookup_table(table, ids, sparse=True) ** 3)
        first = so.grad(loss, table)
        way = so.var("way", shape=(HEIGHT, WIDTH))
        second = so.grad(first, table, head_grads=way)
        assert second.kind is ROWS
        direction = drawn(HEIGHT, WIDTH, seed=3)
        expected = jax.jvp(
            jax.grad(lambda t: jnp.sum(t[VALUES["ids"]] ** 3)), (VALUES["table"],), (direction,)
        )[1]
        found = second.eval(**VALUES, way=direction)
        np.testing.assert_allclose(found.to_dense(), expected, rtol=1e-5)
        moved = so.jvp(first, table, way)
        assert moved.kind is ROWS
        np.testing.assert_allclose(
            moved.eval(**VALUES, way=direction).to_dense(), expected, rtol=1e-5
        )

    def test_the_norm_of_a_gradient_by_rows(self, table, ids, gradient):
        """A gradient penalty: differentiated through products of rows."""
        penalty = so.grad(so.sum_to(gradient * gradient, shape=()), table)
        norm = so.grad(so.global_norm(gradient), table)

        def slope(t):
            return jax.jit(jax.grad(lambda t: jnp.sum(t[VALUES["ids"]] ** 2)))(t)

        for found, function in (
            (penalty, lambda t: jnp.sum(slope(t) ** 2)),
            (norm, lambda t: jnp.sqrt(jnp.sum(slope(t) ** 2))),
        ):
            assert found.kind is ROWS
            expected = jax.jit(jax.grad(function))(VALUES["table"])
            np.testing.assert_allclose(found.eval(**VALUES).to_dense(), expected, rtol=1e-5)

    def test_under_vmap_and_jit(self, gradient):
        function = gradient.to_jax()
        tables = jnp.asarray(drawn(3, HEIGHT, WIDTH))
        batch = jnp.asarray([[0, 1, 1, 5], [2, 2, 2, 2], [5, 4, 3, 2]], jnp.int32)
        found = jax.jit(jax.vmap(lambda t, i: function(table=t, ids=i).to_dense()))(tables, batch)
        for i in range(3):
            np.testing.assert_allclose(
                found[i], of_dense(tables[i], np.asarray(batch[i])), rtol=1e-6
            )

    def test_a_saved_program_keeps_its_kinds(self, gradient):
        loaded = so.load_json(gradient.tojson())
        assert loaded.kind is ROWS
        np.testing.assert_array_equal(
            loaded.eval(**VALUES).to_dense(), gradient.eval(**VALUES).to_dense()
        )


class TestClipping:
    GRADS = (some_rows(4, 1, 4, HEIGHT), drawn(3, seed=1), some_rows(2, 2, seed=2))

    def test_by_global_norm(self):
        dense = [one.to_dense() if isinstance(one, SelectedRows) else one for one in self.GRADS]
        for most in (0.5, 100.0):
            clip = optax.clip_by_global_norm(most)
            expected, _ = clip.update(dense, clip.init(dense))
            found = so.clip_by_global_norm(*self.GRADS, max_norm=most)
            for mine, given, other in zip(found, self.GRADS, expected, strict=True):
                assert isinstance(mine, SelectedRows) is isinstance(given, SelectedRows)
                full = mine.to_dense() if isinstance(mine, SelectedRows) else mine
                np.testing.assert_allclose(full, other, rtol=1e-5)
        np.testing.assert_allclose(so.global_norm(*self.GRADS), optax.tree.norm(dense), rtol=1e-6)

    def test_by_norm_and_value(self):
        rows = self.GRADS[0]
        dense = np.asarray(rows.to_dense())
        found = so.clip_by_norm(rows, max_norm=0.5).to_dense()
        np.testing.assert_allclose(found, dense * 0.5 / np.linalg.norm(dense), rtol=1e-5)
        found = so.clip_by_value(rows, low=-0.1, high=0.2)
        assert isinstance(found, SelectedRows)
        np.testing.assert_allclose(found.to_dense(), np.clip(dense, -0.1, 0.2), rtol=1e-6)

    def test_what_is_not_asked_for_stays_by_rows(self, table, ids, gradient):
        """The cotangent of an output that nobody uses is a zero of rows, not a tall array."""
        other = so.scale(gradient, scale=2.0)
        first, _ = so.clip_by_global_norm(gradient, other, max_norm=0.5)
        way = drawn(HEIGHT, WIDTH, seed=7)
        found = so.grad(so.sum_to(first * way, shape=()), table)
        assert found.kind is ROWS

        def function(t):
            slope = jax.jit(jax.grad(lambda t: jnp.sum(t[VALUES["ids"]] ** 2)))(t)
            norm = jnp.sqrt(5 * jnp.sum(slope**2))
            return jnp.sum(slope * 0.5 / norm * way)

        expected = jax.jit(jax.grad(function))(VALUES["table"])
        np.testing.assert_allclose(found.eval(**VALUES).to_dense(), expected, rtol=1e-5, atol=1e-6)
        zero = so.grad(so.sum_to(other * 0.0 + gradient, shape=()), table, unreachable="zero")
        assert zero.kind is ROWS

    def test_of_zero(self):
        zero = so.var("x", shape=(2,))
        gradient = so.grad(so.sum(so.clip_by_norm(zero, max_norm=1.0)), zero)
        assert gradient.eval(x=np.zeros(2)).tolist() == [1.0, 1.0]
        norm = so.grad(so.global_norm(zero), zero)
        assert norm.eval(x=np.zeros(2)).tolist() == [0.0, 0.0]

    def test_half_precision_does_not_overflow(self):
        x = jnp.full((4,), 300.0, jnp.float16)
        assert so.global_norm(x) == 600.0
        assert so.clip_by_norm(x, max_norm=6.0).tolist() == [3.0] * 4


class TestParts:
    def test_split_and_join(self):
        rows = some_rows(0, 5, 3, 5, HEIGHT)
        parts = so.split_selected_rows(rows, height_sections=(1, 3, 2))
        assert [part.height for part in parts] == [1, 3, 2]
        dense = np.concatenate([part.to_dense() for part in parts])
        np.testing.assert_array_equal(dense, rows.to_dense())
        again = so.join_selected_rows(*parts)
        np.testing.assert_array_equal(again.to_dense(), rows.to_dense())

    @pytest.mark.parametrize(
        ("change", "in_jax"),
        [
            (so.merge_selected_rows, lambda x: x),
            (so.get_tensor_from_selected_rows, lambda x: x),
            (lambda x: so.split_selected_rows(x, height_sections=(2, 4))[1], lambda x: x[2:]),
            (lambda x: so.join_selected_rows(x, 2.0 * x), lambda x: jnp.concatenate([x, 2 * x])),
            (lambda x: so.join_selected_rows(x, np.ones((1, 2))), lambda x: x),
            (lambda x: so.clip_by_norm(x, max_norm=0.5), lambda x: x * 0.5 / jnp.linalg.norm(x)),
            (lambda x: so.add_decayed_weights(x, VALUES["table"], weight_decay=0.5), lambda x: x),
            (lambda x: x * x - x / 4.0, lambda x: x * x - x / 4),
            (lambda x: so.add_n(x, x, 3.0 * x), lambda x: 5 * x),
            (lambda x: so.take(x, np.array([4, 0, 4, 9])), lambda x: x[jnp.array([4, 0, 4])]),
        ],
    )
    def test_gradients_flow_through(self, ids, change, in_jax):
        """Along rows that repeat, and some that are dropped, to the first and second order."""
        values = so.var("values", shape=(4, WIDTH))
        out = change(so.add_rows(values, ids, height=HEIGHT, sparse=True))
        weights = np.cos(np.arange(out.type.size)).reshape(out.shape).astype(np.float32)
        first = so.grad(so.sum_to(out * weights, shape=()), values)
        some = drawn(4, WIDTH, seed=4)
        rows = np.array([4, 0, 4, HEIGHT], np.int32)
        found = first.eval(values=some, ids=rows)

        def function(values):
            dense = jnp.zeros((HEIGHT, WIDTH)).at[rows].add(values, mode="drop")
            moved = in_jax(dense)
            return jnp.sum(moved * weights[: len(moved)])

        np.testing.assert_allclose(found, jax.jit(jax.grad(function))(some), rtol=1e-5, atol=1e-6)
        way = drawn(4, WIDTH, seed=5)
        if values.name in so.grad(first, values, head_grads=way, unreachable="zero").list_inputs():
            second = so.grad(first, values, head_grads=way).eval(values=some, ids=rows)
            expected = jax.jvp(jax.grad(function), (some,), (way,))[1]
            np.testing.assert_allclose(second, expected, rtol=1e-4, atol=1e-5)

    def test_a_table_in_two_places(self, table, gradient):
        """Each part of a table is updated by its part of the gradient."""
        tops = so.split_selected_rows(gradient, height_sections=(2, 4))
        upper, lower = (so.var(name, shape=(n, WIDTH)) for name, n in (("upper", 2), ("lower", 4)))
        new = so.Group([so.sgd(upper, tops[0], 0.1), so.sgd(lower, tops[1], 0.1)])
        whole = VALUES["table"]
        found = new.eval(**VALUES, upper=whole[:2], lower=whole[2:])
        expected = so.sgd(table, gradient, 0.1).eval(**VALUES)
        np.testing.assert_array_equal(np.concatenate(found), expected)


class TestCost:
    TALL = 54_321
    """A height that is no other length of a program."""
    IN_PLACE = frozenset(
        [
            "parameter",
            "tuple",
            "get-tuple-element",
            "bitcast",
            "call",
            "fusion",
            "while",
            "scatter",
            "dynamic-update-slice",
        ]
    )
    """The donated arrays come in and go out, and rows are written into them: nothing is copied,
    filled or computed of all their rows."""
    STATES = (
        ("sgd", 0, {}),
        ("adagrad", 1, {}),
        ("momentum", 1, {"lazy": True}),
        ("adam", 2, {"lazy": True}),
        ("ftrl", 2, {"lazy": True}),
    )

    def compiled(self, name, states, attributes, change=lambda gradient, table: gradient):
        shape = (self.TALL, 8)
        table, ids = so.var("table", shape=shape), so.var("ids", shape=(16,), dtype="int32")
        rows = so.lookup_table(table, ids, sparse=True, padding_idx=3)
        gradient = change(so.grad(so.sum(so.square(rows)), table), table)
        held = [so.var(f"state{i}", shape=shape) for i in range(states)]
        counted = [so.var("step", shape=(), dtype="int32")] if name == "adam" else []
        new = getattr(so, name)(table, gradient, *held, *counted, 0.1, **attributes)
        function = so.Group([*(new if states else [new]), so.sum(rows)]).to_jax(rules=False)

        names = ["table", *(f"state{i}" for i in range(states))]

        def step(donated, ids):
            first = {"step": jnp.int32(0)} if counted else {}
            result = function(**donated, ids=ids, **first)
            # In the order of what is donated: each result takes the place of its own array.
            return dict(zip(names, result, strict=False)), result[-1]

        struct = jax.ShapeDtypeStruct
        donated = {name: struct(shape, np.float32) for name in names}
        jitted = jax.jit(step, donate_argnums=0)
        return jitted.lower(donated, struct((16,), np.int32)).compile()

    def tall_instructions(self, text):
        """Names of the operations whose result is as tall as the table, with their shapes."""
        found = []
        for line in text.splitlines():
            made = re.match(r"\s*(?:ROOT )?%?[\w.-]+ = (.+?) ([\w-]+)\(", line)
            if made and str(self.TALL) in made[1]:
                found.append((made[2], made[1]))
        return found

    @pytest.mark.parametrize(("name", "states", "attributes"), STATES)
    def test_nothing_is_as_tall_as_the_table_but_itself(self, name, states, attributes):
        compiled = self.compiled(name, states, attributes)
        text = compiled.as_text()
        tall = self.tall_instructions(text)
        assert {one for one, _ in tall} <= self.IN_PLACE
        shapes = {shape for _, out in tall for shape in re.findall(r"\w+\[[\d,]*\]", out)}
        assert {one for one in shapes if str(self.TALL) in one} == {f"f32[{self.TALL},8]"}
        writes = [one for one, _ in tall if one in ("scatter", "dynamic-update-slice")]
        assert len(writes) <= 1 + states
        table_bytes = self.TALL * 8 * 4
        memory = compiled.memory_analysis()
        assert memory.alias_size_in_bytes >= (1 + states) * table_bytes
        assert memory.temp_size_in_bytes < table_bytes / 10

    def test_the_assertion_sees_a_dense_gradient(self):
        """The same step with a gradient that is made dense has tall arrays."""

        def dense(gradient, table):
            return so.get_tensor_from_selected_rows(gradient)

        text = self.compiled("sgd", 0, {}, dense).as_text()
        assert {"broadcast"} <= {one for one, _ in self.tall_instructions(text)}

    def test_clipping_and_lazy_decay_stay_by_rows(self):
        def changed(gradient, table):
            decayed = so.add_decayed_weights(gradient, table, weight_decay=0.1, lazy=True)
            (clipped,) = so.clip_by_global_norm(decayed, max_norm=1.0)
            return so.cast(so.cast(clipped / 4.0, dtype="bfloat16"), dtype="float32")

        text = self.compiled("adam", 2, {"lazy": True}, changed).as_text()
        assert {one for one, _ in self.tall_instructions(text)} <= self.IN_PLACE

    def test_accumulating_over_steps_is_done_in_place(self):
        """Rows are added to a dense sum of gradients, which is donated."""
        shape = (self.TALL, 8)
        table, ids = so.var("table", shape=shape), so.var("ids", shape=(16,), dtype="int32")
        rows = so.lookup_table(table, ids, sparse=True)
        gradient = so.grad(so.sum(so.square(rows)), table)
        function = so.add(so.var("total", shape=shape), gradient).to_jax(rules=False)
        struct = jax.ShapeDtypeStruct
        jitted = jax.jit(
            lambda total, table, ids: function(total=total, table=table, ids=ids), donate_argnums=0
        )
        array, some = struct(shape, np.float32), struct((16,), np.int32)
        text = jitted.lower(array, array, some).compile().as_text()
        assert {one for one, _ in self.tall_instructions(text)} <= self.IN_PLACE

    def test_accumulated_steps_are_one_step(self, table, ids):
        """Gradients of parts of a batch, added up, are that of the batch."""
        others = so.var("others", shape=(4,), dtype="int32")
        parts = [
            so.grad(so.sum(so.square(so.lookup_table(table, one, sparse=True))), table)
            for one in (ids, others)
        ]
        total = so.add_n(*parts) / 2.0
        assert total.kind is ROWS
        found = so.sgd(table, total, 0.1).eval(**VALUES, others=np.array([4, 4, 0, 2], np.int32))
        slope = (of_dense() + of_dense(ids=np.array([4, 4, 0, 2]))) / 2
        np.testing.assert_allclose(found, VALUES["table"] - 0.1 * slope, rtol=1e-5)


def test_rows_are_taken_along_their_first_axis_which_inference_tells():
    rows = VarType((3, 2), np.dtype("float32"), VarKind.SELECTED_ROWS)
    ids = VarType((4,), np.dtype("int32"))
    take = registry.get("take")
    assert take.infer((rows, ids), (0, "fill", None))[0].shape == (4, 2)
    with pytest.raises(KindError, match="take: axis must be 0 where x is selected"):
        take.infer((rows, ids), (-1, "fill", None))
