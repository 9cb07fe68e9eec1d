"""Initial values: fans from the use in the graph, initializers by name, as values and functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry import op
from registry.errors import ArgumentError, FormatError, ShapeError
from symop import train

KEY = jax.random.key(0)
INIT = jax.nn.initializers


def initial(loss, **shapes):
    """The initial arrays of a graph by name."""
    return train.initialize(so.sum(loss), KEY, **shapes)


def key_of(loss, name):
    """The key that ``initialize`` gives to a variable."""
    names = loss.list_inputs()
    return jax.random.split(KEY, len(names))[names.index(name)]


def v(*shape, name="w", **how):
    """A variable."""
    return so.var(name, shape=shape, **how)


X = v(8, 30, name="x")
IMAGE = v(2, 6, 5, 5, name="image")
IDS = so.var("ids", shape=(4,), dtype="int32")

# The use of a variable ``w``, and JAX's axes of inputs, outputs and batches for it.
USES = {
    "right factor": (X @ v(30, 5), (0,), (1,), ()),
    "left factor": (v(5, 30) @ so.permute_dims(X, axes=(1, 0)), (1,), (0,), ()),
    "transposed": (X @ so.permute_dims(v(5, 30), axes=(1, 0)), (1,), (0,), ()),
    "reshaped": (X @ so.reshape(v(30, 2, 3), shape=(30, 6)), (0,), (1, 2), ()),
    "split": (X @ so.reshape(v(180), shape=(30, 6)), (0,), (), ()),
    "cast": (X @ so.cast(v(30, 5, dtype="float16"), dtype="float32"), (0,), (1,), ()),
    "scaled": (X @ (v(30, 5) * 0.5 + 1.0), (0,), (1,), ()),
    "vector": (X @ v(30), (0,), (), ()),
    "einsum": (so.einsum("bi,hid->bhd", X, v(4, 30, 5)), (1,), (0, 2), ()),
    "tensordot": (so.tensordot(X, v(5, 30), axes=((1,), (1,))), (1,), (0,), ()),
    "batch": (v(3, 2, 6, name="y") @ v(3, 6, 5), (1,), (2,), (0,)),
    "layer": (so.fully_connected(X, v(5, 30), units=5, use_bias=False), (1,), (0,), ()),
    "convolution": (
        so.convolution(IMAGE, v(4, 6, 3, 2), channels=4, kernel=(3, 2), use_bias=False),
        (1,), (0,), (),
    ),
    "places of a convolution first": (
        so.convolution(IMAGE, v(3, 2, 6, 4), channels=4, kernel=(3, 2), use_bias=False,
                       weight_layout="HWIO"),
        (2,), (3,), (),
    ),
    "groups": (
        so.convolution(IMAGE, v(4, 3, 3, 2), channels=4, kernel=(3, 2), groups=2, use_bias=False),
        (1,), (0,), (),
    ),
    "transposed convolution": (
        so.transposed_convolution(IMAGE, v(6, 4, 3, 3), channels=4, kernel=(3, 3), use_bias=False),
        (0,), (1,), (),
    ),
    "lookup": (so.lookup_table(v(9, 4), IDS), (1,), (0,), ()),
    "normalized": (X @ (v(30, 5) / so.sum(so.square(v(30, 5)), axis=0)), (0,), (1,), ()),
    "sum of scaled": (so.sum(X * v(30), axis=1), (0,), (), ()),
    "recurrent": (
        so.rnn(v(3, 2, 6, name="d"), None, None, v(7, 6, name="i"), v(7, 7))[0], (1,), (0,), (),
    ),
    "scan": (
        so.scan(lambda h, w: (so.tanh(h @ w), h), v(2, 6, name="h"), v(5, 6, 6))[0],
        (1,), (2,), (0,),
    ),
    "captured": (
        so.scan(lambda h, x: (so.tanh(h @ v(6, 6) + x), h), v(2, 6, name="h"), v(4, 2, 6, name="x"))
        [0], (0,), (1,), (),
    ),
}  # fmt: skip


class TestFans:
    @pytest.mark.parametrize("use", USES)
    def test_the_default_is_he_normal_by_the_use(self, use):
        loss, ins, outs, batch = USES[use]
        expected = INIT.he_normal(ins, outs, batch)
        w = initial(loss)["w"]
        assert np.array_equal(w, expected(key_of(loss, "w"), w.shape, w.dtype))

    @pytest.mark.parametrize("name", ["glorot_uniform", "lecun_normal", "he_uniform"])
    def test_named_initializers_use_the_fans(self, name):
        loss = X @ so.permute_dims(v(5, 30, initial=name), axes=(1, 0))
        expected = getattr(INIT, name)(1, 0)(key_of(loss, "w"), (5, 30), jnp.float32)
        assert np.array_equal(initial(loss)["w"], expected)

    def test_the_scale_of_a_wide_layer(self):
        w = initial(v(8, 1000, name="x") @ v(1000, 10))["w"]
        assert np.std(w) == pytest.approx((2 / 1000) ** 0.5, rel=0.05)

    def test_what_is_added_to_data_starts_at_zero(self):
        assert not np.any(initial(X + v(30))["w"])
        assert not np.any(initial(so.tanh(X) - v(30))["w"])

    def test_what_scales_data_starts_at_one(self):
        assert np.all(initial(so.tanh(X * v(30)))["w"] == 1)
        assert np.all(initial(X * v())["w"] == 1)

    def test_the_first_product_decides(self):
        w, h = v(9, 4), v(2, 4, name="h")
        tied = so.sum(so.lookup_table(w, IDS)) + so.sum(h @ so.permute_dims(w, axes=(1, 0)))
        w = initial(tied)["w"]
        assert np.array_equal(w, INIT.he_normal(1, 0)(key_of(tied, "w"), (9, 4), jnp.float32))

    def test_gradients_in_the_graph_do_not_decide(self):
        u = so.tanh(X @ v(30, 5))
        loss = so.sum(so.square(so.grad(so.sum(u), X))) + so.sum(u)
        w = initial(loss)["w"]
        assert np.array_equal(w, INIT.he_normal()(key_of(so.sum(loss), "w"), (30, 5), jnp.float32))

    def test_an_unknown_use_has_the_axes_of_jax(self):
        loss = so.exp(v(20, 4))
        expected = INIT.he_normal()(key_of(loss, "w"), (20, 4), jnp.float32)
        assert np.array_equal(initial(loss)["w"], expected)

    def test_users_operators_need_no_declaration(self):
        @op(name="test_initial_dense")
        def dense(x, w):
            """``x w^T``."""
            return jnp.einsum("bi,oi->bo", x, w)

        try:
            w = initial(dense(X, v(5, 30)))["w"]
            assert np.std(w) == pytest.approx((2 / 30) ** 0.5, rel=0.25)
        finally:
            so.registry.table.unregister("test_initial_dense")


class TestInitializers:
    @pytest.mark.parametrize(
        ("text", "function"),
        [
            ("normal", INIT.normal()),
            ("normal(0.3)", INIT.normal(0.3)),
            ("uniform(2.0)", INIT.uniform(2.0)),
            ("truncated_normal(stddev=0.2, lower=-1.0)", INIT.truncated_normal(0.2, lower=-1.0)),
            (
                "variance_scaling(3.0, fan_out, 'uniform')",
                INIT.variance_scaling(3, "fan_out", "uniform"),
            ),
            ("glorot_normal(in_axis=1, out_axis=0)", INIT.glorot_normal(1, 0)),
            ("orthogonal(1.5)", INIT.orthogonal(1.5)),
            ("xavier_uniform", INIT.xavier_uniform()),
            ("ones", INIT.ones),
            ("constant(2)", INIT.constant(2)),
            (INIT.zeros, INIT.zeros),
            (INIT.glorot_uniform, INIT.glorot_uniform()),
            (INIT.normal(0.7), INIT.normal(0.7)),
            (lambda key, shape, dtype: jnp.full(shape, 7, dtype), INIT.constant(7)),
            (np.arange(5), lambda key, shape, dtype: np.tile(np.arange(5.0), (30, 1))),
            (-1.5, INIT.constant(-1.5)),
        ],
    )  # fmt: skip
    def test_text_values_and_functions(self, text, function):
        loss = X @ v(30, 5, initial=text)
        expected = function(key_of(loss, "w"), (30, 5), jnp.float32)
        assert np.array_equal(initial(loss)["w"], expected)

    def test_every_initializer_of_jax_has_a_name(self):
        arguments = {"variance_scaling": "(1.0, fan_in, normal)", "constant": "(1)"}
        for name in (one for one in dir(INIT) if one.islower() and one[0] != "_"):
            square = (3, 3, 4, 4) if name == "delta_orthogonal" else (4, 4)
            loss = so.sum(v(*square, initial=name + arguments.get(name, "")))
            assert np.all(np.isfinite(initial(loss)["w"])), name

    def test_orthogonal_by_the_use(self):
        loss = so.convolution(IMAGE, v(4, 6, 3, 2, initial="orthogonal"), channels=4,
                              kernel=(3, 2), use_bias=False)  # fmt: skip
        rows = np.asarray(initial(loss)["w"]).reshape(4, -1)
        assert rows @ rows.T == pytest.approx(np.eye(4), abs=1e-5)

    def test_delta_orthogonal_by_the_use(self):
        loss = so.convolution(IMAGE, v(6, 6, 3, 3, initial="delta_orthogonal"), channels=6,
                              kernel=(3, 3), use_bias=False)  # fmt: skip
        w = np.asarray(initial(loss)["w"])
        assert w[:, :, 1, 1] @ w[:, :, 1, 1].T == pytest.approx(np.eye(6), abs=1e-5)
        assert np.abs(w).sum() == pytest.approx(np.abs(w[:, :, 1, 1]).sum())

    def test_delta_orthogonal_of_places_first(self):
        loss = so.convolution(IMAGE, v(3, 3, 6, 6, initial="delta_orthogonal"), channels=6,
                              kernel=(3, 3), use_bias=False, weight_layout="HWIO")  # fmt: skip
        w = np.asarray(initial(loss)["w"])
        assert w[1, 1] @ w[1, 1].T == pytest.approx(np.eye(6), abs=1e-5)
        assert np.abs(w).sum() == pytest.approx(np.abs(w[1, 1]).sum())

    def test_orthogonal_along_a_batch(self):
        w = initial(v(3, 2, 6, name="y") @ v(3, 6, 6, initial="orthogonal"))["w"]
        for one in np.asarray(w):
            assert one @ one.T == pytest.approx(np.eye(6), abs=1e-5)

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ({"initial": "glorot_unifrm"}, "'w': initial: .*did you mean 'glorot_uniform'"),
            ({"initial": "normal(1, 2, 3)"}, r"normal takes \(stddev\), got 'normal\(1, 2, 3\)'"),
            ({"initial": "variance_scaling(1)"}, r"takes \(scale, mode, distribution"),
            ({"initial": [1, 2, 3]}, r"the array must broadcast to \(2, 2\), got shape \(3,\)"),
            ({"initial": object()}, "must be a number, an array, the name of an initializer or"),
            ({"initial": "normal", "dtype": "int32"}, "of int32 it must be a whole number"),
        ],
    )
    def test_errors_name_variable_and_initializer(self, how, message):
        with pytest.raises(ArgumentError, match=message):
            v(2, 2, **how)

    @pytest.mark.parametrize(
        ("initial_", "message"),
        [
            ("delta_orthogonal", "delta_orthogonal must fit 'w'"),
            (lambda key, shape, dtype: jnp.zeros(3), r"the function must return shape \(\)"),
        ],
    )
    def test_errors_at_the_start_name_the_variable(self, initial_, message):
        with pytest.raises(ArgumentError, match=message):
            initial(so.exp(v(initial=initial_)))

    def test_files_keep_names_and_small_arrays(self):
        y = X @ v(30, 5, initial="normal(0.5)") + v(5, name="b", initial=[1, 2, 3, 4, 5])
        loaded = so.load_json(y.tojson())
        assert np.array_equal(initial(loaded)["w"], initial(y)["w"])
        assert initial(loaded)["b"].tolist() == [1, 2, 3, 4, 5]
        program = y.to_program(["w", "b"])
        program.initialize(0)
        assert program.values()["b"].tolist() == [1, 2, 3, 4, 5]

    def test_files_refuse_functions(self):
        with pytest.raises(FormatError, match="the initializer of 'w' must be a number"):
            (X @ v(30, 5, initial=INIT.normal(0.5))).tojson()
        large = np.zeros((100, 100))
        with pytest.raises(FormatError, match="the initializer of 'w'"):
            v(100, 100, initial=large).tojson()

    def test_programs_use_the_fans(self):
        program = so.Program()
        x = program.data("x", (8, 1000))
        program.parameter("w", (1000, 10))
        so.mean(x @ program["w"])
        program.initialize(0)
        assert np.std(program.values()["w"]) == pytest.approx((2 / 1000) ** 0.5, rel=0.05)

    def test_simple_bind_with_a_seed(self):
        executor = (X @ v(30, 5)).simple_bind(x=(8, 30), seed=3)
        assert not np.any(executor.arg_dict["x"])
        assert np.std(executor.arg_dict["w"]) == pytest.approx((2 / 30) ** 0.5, rel=0.2)
        assert not np.any((X @ v(30, 5)).simple_bind().arg_dict["w"])


class TestLayers:
    def test_every_layer_takes_initializers(self):
        y = so.fully_connected(X, units=5, weight_initial="ones", bias_initial=0.5, name="d")
        arrays = initial(y)
        assert np.all(arrays["d_weight"] == 1)
        assert np.all(arrays["d_bias"] == 0.5)

    def test_a_given_weight_has_no_initializer(self):
        with pytest.raises(ArgumentError, match="weight_initial must come without 'weight'"):
            so.fully_connected(X, v(5, 30), units=5, weight_initial="ones")
        with pytest.raises(ArgumentError, match="weight_initial is for a call on symbols"):
            so.fully_connected(np.ones((2, 3), np.float32), units=5, weight_initial="ones")
        with pytest.raises(ArgumentError, match="got 'weigh_initial'; did you mean"):
            so.fully_connected(X, units=5, weigh_initial="ones")

    def test_programs_take_initializers(self):
        program = so.Program()
        x = program.data("x", (8, 3))
        so.fully_connected(x, units=2, name="d", weight_initial="constant(3)")
        program.initialize(0)
        assert np.all(program.values()["d_weight"] == 3)

    @pytest.mark.parametrize(("cell", "gates"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
    @pytest.mark.parametrize("declared", [True, False])
    def test_recurrent_layers_make_their_weights(self, cell, gates, declared):
        x = so.var("x", shape=(3, 2, 6) if declared else None)
        how = {"hidden_size": 4, "num_layers": 2, "bidirectional": True, "name": "r"}
        out = getattr(so, cell)(x, **how)[0]
        arrays = initial(out, x=(3, 2, 6))
        shapes = {name: one.shape for name, one in arrays.items() if name != "x"}
        assert shapes == {
            f"r_layer{i}_{side}{name}": shape
            for i in range(2)
            for side in ("", "reverse_")
            for name, shape in {
                "input_weight": (4 * gates, 8 if i else 6),
                "recurrent_weight": (4 * gates, 4),
                "input_bias": (4 * gates,),
                "recurrent_bias": (4 * gates,),
            }.items()
        }
        columns = np.asarray(arrays["r_layer1_recurrent_weight"])
        assert columns.T @ columns == pytest.approx(np.eye(4), abs=1e-5)
        weights = [arrays[name] for name in out.list_arguments() if name != "x"]
        states = [None] * (3 if cell == "lstm" else 2)
        plain = getattr(so, cell)(
            arrays["x"], *states, *weights, num_layers=2, bidirectional=True
        )[0]  # fmt: skip
        assert np.allclose(out.eval(**arrays), plain, rtol=1e-5, atol=1e-6)

    def test_recurrent_layers_need_a_size(self):
        with pytest.raises(ValueError, match="hidden_size must be positive where weights are left"):
            so.lstm(v(3, 2, 6))
        with pytest.raises(ShapeError, match="hidden_size must be that of the weights, 2, got 3"):
            so.rnn(v(3, 2, 6), None, None, v(2, 6, name="i"), v(2, 2, name="r"), hidden_size=3)
        with pytest.raises(ArgumentError, match="'weights' must be filled when the inputs are"):
            so.gru(np.ones((3, 2, 6), np.float32), hidden_size=3)

    def test_a_table_makes_itself(self):
        y = so.lookup_table(so.var("ids", dtype="int32"), rows=9, width=4, name="emb")
        assert y.list_arguments() == ["emb_table", "ids"]
        assert initial(y, ids=(3,))["emb_table"].shape == (9, 4)
        assert so.lookup_table(IDS, rows=9, width=4).shape == (4, 4)
        with pytest.raises(ShapeError, match="width must be that of the table, 4, got 5"):
            so.lookup_table(v(9, 4), IDS, width=5)
