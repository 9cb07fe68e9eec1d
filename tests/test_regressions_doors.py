"""Defects that were found at the public doors: names, training, executors, files, the shell."""

import json
import os
import re
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import symop as so
from registry.errors import (
    ArgumentError,
    FeedError,
    FormatError,
    NameConflictError,
    NotDifferentiableError,
)
from symop import cli, train
from symop.graph.naming import layer_name


class TestLayersDoNotShareUnasked:
    def twice(self):
        x = so.var("x", shape=(2, 3))
        first = so.fully_connected(x, units=3, name="fc")
        return so.fully_connected(first, units=3, name="fc")

    @pytest.mark.parametrize(
        "use",
        [
            lambda y: y.list_arguments(),
            lambda y: y.infer_shape(),
            lambda y: y.eval(x=np.zeros((2, 3)), fc_weight=np.zeros((3, 3)), fc_bias=np.zeros(3)),
            lambda y: y.to_jax(),
            lambda y: y.bind({}),
            lambda y: y.simple_bind(),
            lambda y: y.tojson(),
            lambda y: train.Trainer(so.mean(y), optax.sgd(0.1), inputs=["x"]),
        ],
    )
    def test_one_name_twice_is_refused_with_both_lines(self, use):
        with pytest.raises(NameConflictError, match="fc: two nodes") as refused:
            use(self.twice())
        assert str(refused.value).count("test_regressions_doors.py:") == 2

    def test_sharing_on_purpose(self):
        x, w = so.var("x", shape=(2, 3)), so.var("w", shape=(3, 3))
        first = so.fully_connected(x, w, units=3, use_bias=False, name="fc1")
        second = so.fully_connected(first, w, units=3, use_bias=False, name="fc2")
        assert second.list_arguments() == ["x", "w"]

    def test_the_same_call_is_one_layer(self):
        x = so.var("x", shape=(2, 3))
        a, b = (so.fully_connected(x, units=3, name="fc") for _ in range(2))
        assert (a + b).list_arguments() == ["x", "fc_weight", "fc_bias"]

    def test_gradients_of_named_layers(self):
        y = so.mean(so.fully_connected(so.var("x"), units=2, name="fc"))
        gradient = so.grad(y, so.var("x"))
        assert gradient.with_types(x=(2, 3)).list_arguments() == ["x", "fc_weight", "fc_bias"]

    def test_automatic_names_avoid_loaded_ones(self, tmp_path):
        path = tmp_path / "net.json"
        with so.name_scope():
            net = so.fully_connected(so.var("x", shape=(2, 2)), units=2)
            assert net.list_arguments()[1] == "fully_connected0_weight"
        net.save(path)
        program = (
            "import symop as so, sys\n"
            "q = so.load(sys.argv[1])\n"
            "print(so.fully_connected(q, units=2).list_arguments())"
        )
        command = [sys.executable, "-c", program, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.count("fully_connected0_weight") == 1
        assert done.stdout.count("fully_connected1_weight") == 1

    def test_threads_get_different_names(self):
        names = []

        def work():
            names.extend(layer_name("fully_connected") for _ in range(50))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(names)) == 200

    def test_a_scope_counts_from_zero(self):
        for _ in range(2):
            with so.name_scope("part_"):
                assert layer_name("fully_connected") == "part_fully_connected0"


class TestTrainer:
    def loss(self):
        x, y = so.var("x", shape=(4, 3)), so.var("y", shape=(4, 2))
        return so.mean(so.square(so.fully_connected(x, units=2, name="fc") - y))

    def trainer(self, **options):
        return train.Trainer(self.loss(), optax.sgd(0.1), inputs=["x", "y"], **options)

    def test_a_batch_without_an_input(self):
        own = self.trainer()
        with pytest.raises(FeedError, match="must hold x, y, got no y"):
            own.step(own.init(), {"x": np.zeros((4, 3), np.float32)})

    def test_a_batch_with_something_else(self):
        own = self.trainer()
        batch = {"x": np.zeros((4, 3)), "y": np.zeros((4, 2)), "fc_bias": np.zeros(2)}
        with pytest.raises(FeedError, match="'fc_bias'"):
            own.step(own.init(), batch)

    def test_a_typo_in_init(self):
        with pytest.raises(FeedError, match="'xx'; did you mean 'x'"):
            self.trainer().init(xx=(4, 3))

    @pytest.mark.parametrize(
        ("metric", "message"),
        [
            (lambda: so.mean(so.var("own", shape=(2,))), "got own"),
            (lambda: so.mean(so.batch_norm(so.var("x", shape=(4, 3)), name="bn")), "bn_moving"),
            (lambda: so.Group([so.var("x", shape=(4, 3))] * 2), "one value, got 2"),
        ],
    )
    def test_metrics_that_a_step_cannot_compute(self, metric, message):
        with pytest.raises(ArgumentError, match=message):
            self.trainer(metrics={"m": metric()})

    def test_a_metric_called_loss(self):
        with pytest.raises(ArgumentError, match="must not be called 'loss'"):
            self.trainer(metrics={"loss": self.loss()})

    def test_arguments_that_no_value_needs(self):
        x, w = so.var("x", shape=(3,)), so.var("w", shape=(3,))
        loss = so.sum(so.grad(so.sum(x * w), x) * 0.5 + so.grad(so.sum(w + x), w) * x)
        unneeded = so.Symbol(loss.nodes, (so.var("u", shape=(2,)).node, *loss.also))
        assert "u" in train.initialize(unneeded, jax.random.key(0))
        own = train.Trainer(unneeded, optax.sgd(0.1), inputs=["x"])
        state = own.init()
        before = np.array(state.params["u"])
        state, _ = own.step(state, {"x": np.ones(3, np.float32)})
        assert np.array_equal(state.params["u"], before)


class TestExecutor:
    def executor(self):
        x = so.var("x", shape=(2,))
        executor = so.Group([so.sin(x), so.cos(x)]).bind({"x": [0.0, 0.0]})
        executor.forward(is_train=True)
        return executor

    def test_an_array_of_no_variable(self):
        executor = self.executor()
        executor.arg_dict["zz"] = np.zeros(2, np.float32)
        with pytest.raises(FeedError, match="'zz'"):
            executor.forward()

    def test_a_lost_array(self):
        executor = self.executor()
        del executor.arg_dict["x"]
        with pytest.raises(FeedError, match="each of x"):
            executor.forward()

    @pytest.mark.parametrize("wrong", [np.zeros(3, np.float32), np.zeros(2, np.int32), "text"])
    def test_an_array_that_does_not_fit(self, wrong):
        executor = self.executor()
        executor.arg_dict["x"] = wrong
        with pytest.raises(FeedError, match="must be fed"):
            executor.forward()

    def test_an_array_that_fits(self):
        executor = self.executor()
        executor.arg_dict["x"] = np.full(2, np.pi, np.float32)
        np.testing.assert_allclose(executor.forward()[1], [-1.0, -1.0], rtol=1e-6)

    def test_no_cotangent_for_one_output(self):
        with pytest.raises(FeedError, match="cotangent 0 must be an array, got None"):
            self.executor().backward([None, np.ones(2, np.float32)])

    def test_requests(self):
        ids, w = so.var("ids", shape=(2,), dtype="int32"), so.var("w", shape=(2,))
        arrays = {"ids": np.zeros(2, np.int32), "w": np.zeros(2, np.float32)}
        assert list((w * ids).bind(arrays, grad_req="add").grad_dict) == ["w"]

    def test_an_undefined_derivative_is_not_zero(self):
        x = so.var("x", shape=(3,))
        y = so.cast(so.argmax(x, axis=0), dtype="float32")
        executor = y.bind({"x": np.zeros(3, np.float32)})
        with pytest.raises(NotDifferentiableError, match="argmax"):
            executor.forward(is_train=True)


class TestInference:
    def test_shapes_of_an_untyped_gradient(self):
        x = so.var("x")
        y = so.mean(so.square(so.fully_connected(x, units=2, name="fc")))
        gradient = so.grad(y, x)
        arguments, outputs, _ = gradient.infer_shape(x=(4, 3))
        assert (arguments, outputs) == ([(4, 3), (2, 3), (2,)], [(4, 3)])
        assert gradient.with_types(x=(4, 3)).shape == (4, 3)

    def test_shapes_of_what_uses_it(self):
        x = so.var("x")
        twice = so.grad(so.sum(so.grad(so.sum(x * x * x), x)), x)
        assert so.exp(twice).infer_shape(x=(5,)) == ([(5,)], [(5,)], [])

    def test_shapes_of_an_untyped_tangent(self):
        x, v = so.var("x"), so.var("v")
        tangent = so.jvp(so.sum(x, axis=0), x, v)
        assert tangent.infer_shape(x=(5, 2), v=(5, 2))[1] == [(2,)]


# Files -------------------------------------------------------------------------------------------


def program(ops, variables=({"name": "x", "shape": [2], "role": "argument"},), fetch=("y",)):
    blocks = [{"vars": list(variables), "ops": ops}]
    return {"format": "symop", "version": 1, "blocks": blocks, "fetch": list(fetch)}


def refused(desc):
    """What loading ``desc`` says."""
    with pytest.raises(FormatError) as error:
        so.load_json(json.dumps(desc))
    assert len(str(error.value)) < 2000
    return str(error.value)


SIN = {"type": "sin", "inputs": {"x": ["x"]}, "outputs": {"out": ["y"]}}


def constant(value, **attrs):
    return {"type": "constant", "outputs": {"out": ["y"]}, "attrs": {"value": value, **attrs}}


def deferred(name="grad", inputs=("z", "u"), outputs=None, **attrs):
    fields = {"n_ys": 1, "n_xs": 1, "unreachable": "zero", **attrs}
    if name == "grad":
        fields = {"has_heads": [False], **fields}
    op = {
        "type": "deferred",
        "inputs": {"inputs": list(inputs)},
        "outputs": outputs or {"0": ["y"]},
        "attrs": {"name": name, **fields},
    }
    sin = {"type": "sin", "inputs": {"x": ["u"]}, "outputs": {"out": ["z"]}}
    return program([sin, op], [{"name": "u", "role": "argument"}])


class TestHostileFiles:
    def test_a_role_that_is_none(self):
        message = refused(program([SIN], [{"name": "x", "shape": [2], "role": "junk"}]))
        assert "blocks[0].vars[0]" in message
        assert "role must be one of argument, parameter, state, intermediate, got 'junk'" in message

    def test_no_fetch(self):
        assert "fetch: at least one" in refused(program([SIN], fetch=[]))

    def test_a_deferred_value_that_is_well(self):
        symbol = so.load_json(json.dumps(deferred()))
        assert symbol.infer_shape(u=(2,))[1] == [(2,)]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"unreachable": "junk"}, "unreachable"),
            ({"unreachable": "none"}, "unreachable"),
            ({"outputs": {"1": ["y"]}}, "output 1 must be below 1"),
            ({"n_xs": 5}, "must hold 6 values, got 2"),
            ({"n_xs": -1}, "positive"),
            ({"has_heads": [True]}, "must hold 3 values, got 2"),
            ({"has_heads": []}, "must have 1 entries, got 0"),
            ({"name": "jvp"}, "must hold 3 values, got 2"),
        ],
    )
    def test_deferred_values(self, changes, message):
        said = refused(deferred(**changes))
        assert "blocks[0].ops[1]" in said
        assert message in said

    @pytest.mark.parametrize("slot", ["key", "training"])
    def test_an_array_in_an_implicit_slot(self, slot):
        symbol = so.dropout(so.var("x", shape=(2,)), rate=0.5)
        desc = json.loads(symbol.tojson())
        op = next(op for op in desc["blocks"][0]["ops"] if op["type"] == "dropout")
        assert slot in op["inputs"]
        op["inputs"][slot] = ["x"]
        message = refused(desc)
        assert "dropout" in message
        assert f"slot '{slot}' must hold" in message

    @pytest.mark.parametrize(
        ("value", "dtype"),
        [
            (1.5, "int32"),
            ({"complex": [1.0, 2.0]}, "float32"),
            (2**40, "int8"),
            (-1, "uint8"),
            (2, "bool"),
            ({"float": "nan"}, "int32"),
        ],
    )
    def test_constants_that_do_not_fit(self, value, dtype):
        message = refused(program([constant(value, dtype=dtype)]))
        assert "blocks[0].ops[0]" in message
        assert f"must fit the dtype {dtype}" in message

    @pytest.mark.parametrize(
        ("value", "dtype"), [(True, "bool"), (127, "int8"), (2, "float32"), (1, "bfloat16")]
    )
    def test_constants_that_fit(self, value, dtype):
        symbol = so.load_json(json.dumps(program([constant(value, dtype=dtype)])))
        assert symbol.type.dtype == jnp.dtype(dtype)

    @pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
    def test_wide_constants_need_x64(self, dtype):
        assert "jax_enable_x64" in refused(program([constant(1, dtype=dtype)]))
        with jax.enable_x64(True):
            so.load_json(json.dumps(program([constant(1, dtype=dtype)])))

    def test_wide_arrays_need_x64(self):
        with jax.enable_x64(True):
            text = so.Symbol([so.symbol.symbol.as_node(np.arange(3.0))]).tojson()
            assert so.load_json(text).type.dtype == np.float64
        with pytest.raises(FormatError, match="float64 needs JAX's 64-bit mode"):
            so.load_json(text)

    @pytest.mark.parametrize("kind", ["random_key", "training"])
    def test_constants_of_a_kind_that_no_array_has(self, kind):
        message = refused(program([constant(1.0, dtype="float32", kind=kind)]))
        assert f"'{kind}' cannot be filled with a number" in message

    def test_a_tensor_array_without_elements(self):
        message = refused(program([constant(1.0, dtype="float32", kind="lod_tensor_array")]))
        assert "a tensor array must have an axis of elements" in message

    HUGE = "n" * 2_000_000

    @pytest.mark.parametrize(
        "desc",
        [
            program([SIN], fetch=[HUGE]),
            program([{**SIN, "type": HUGE}]),
            program([{**SIN, "inputs": {"x": [HUGE]}}]),
            program([{**SIN, "inputs": {HUGE: ["x"]}}]),
            program([{**SIN, "attrs": {HUGE: 1}}]),
            program([{**SIN, "outputs": {HUGE: ["y"]}}]),
            program([SIN], [{"name": "x", "role": HUGE}]),
            program([SIN], [{"name": "x", "role": "argument", "kind": HUGE}]),
            program([SIN], [{"name": "x", "role": "argument", "dtype": HUGE}]),
            program([SIN], [{"name": HUGE, "role": "argument"}] * 2),
            program([{**SIN, "name": HUGE}, {**SIN, "name": HUGE}]),
            program([{**SIN, "site": HUGE}]),
            deferred(name=HUGE),
            {**program([SIN]), "format": HUGE},
            {**program([SIN]), HUGE: 1},
            program([{**SIN, HUGE: 1}]),
        ],
        ids=range(16),
    )
    def test_messages_stay_short(self, desc):
        refused(desc)


class TestShell:
    def test_show_keeps_arguments_that_no_value_needs(self, tmp_path, capsys):
        x = so.var("x", shape=(2,))
        symbol = so.Symbol(so.sin(x).nodes, (so.var("u", shape=(3,)).node,))
        symbol.save(tmp_path / "g.json")
        assert cli.main(["show", str(tmp_path / "g.json")]) == 0
        assert re.search(r"\bu: float\[3\]", capsys.readouterr().out)

    def test_a_reader_that_leaves(self):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "symop.cli", "ops"]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
        os.close(write)
        assert done.stderr == b""
        assert done.returncode == 1
