"""Programs: what they record, that text and JSON give them back, gradients, and running."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry import SelectedRows
from registry.desc import OpDesc, VarDesc
from registry.errors import (
    ArgumentError,
    DisconnectedError,
    FeedError,
    FormatError,
    GradientError,
    NotDifferentiableError,
    ProgramError,
    ShapeError,
)

RNG = np.random.default_rng(0)


def drawn(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def regression():
    """A linear regression, and its loss."""
    program = so.Program()
    x, y = program.data("x", (8, 3)), program.data("y", (8,))
    w, b = program.parameter("w", (3,)), program.parameter("b", (), initial=0)
    return program, so.mean(so.square(so.matmul(x, w) + b - y))


def convolutional():
    """A small network with layers that make their parameters, states, and random numbers."""
    program = so.Program()
    x, labels = program.data("x", (4, 2, 6, 6)), program.data("labels", (4,), "int32")
    h = so.convolution(x, channels=3, kernel=(3, 3), name="conv")
    h = so.relu(so.batch_norm(h, name="bn"))
    h = so.dropout(h, rate=0.25)
    logits = so.fully_connected(so.flatten(h), units=5)
    return program, so.mean(so.softmax_cross_entropy(logits, labels))


def both_files(program):
    """The program, and what its text and its records give back."""
    return [program, so.Program.parse(str(program)), so.Program.from_desc(program.desc())]


def feed_of(program):
    values = {}
    for one in program.inputs:
        whole = one.dtype.kind in "iu"
        values[one.name] = (
            RNG.integers(0, 5, one.shape).astype(one.dtype) if whole else drawn(*one.shape)
        )
    return values


class TestBuilding:
    def test_variables_tell_what_is_known_of_them(self):
        program, loss = regression()
        x, w = program["x"], program["w"]
        assert (x.shape, x.dtype, str(x.kind), x.persistable) == (
            (8, 3), np.float32, "lod_tensor", False,
        )  # fmt: skip
        assert w.persistable
        assert not w.stop_gradient
        assert loss.shape == ()
        assert [one.name for one in program.parameters] == ["w", "b"]
        assert repr(w) == "<Variable w: float32[3]>"

    def test_python_operators_methods_and_numbers_record_calls(self):
        program = so.Program()
        x = program.data("x", (2, 3))
        y = ((x + 1) * x - 2.0) / x.exp()
        z = y[0, 1:]
        assert [op.type for op in program.ops if op.type != "constant"] == [
            "add", "multiply", "subtract", "exp", "divide", "slice", "squeeze",
        ]  # fmt: skip
        given = drawn(2, 3)
        expected = (((given + 1) * given - 2) / np.exp(given))[0, 1:]
        np.testing.assert_allclose(program.run({"x": given}, z), expected, rtol=1e-6)

    def test_layers_make_parameters_and_states(self):
        program, _ = convolutional()
        assert [one.name for one in program.parameters] == [
            "conv_weight", "conv_bias", "bn_gamma", "bn_beta", "fully_connected0_weight",
            "fully_connected0_bias",
        ]  # fmt: skip
        assert [one.name for one in program.states] == ["bn_moving_mean", "bn_moving_var"]
        assert program.desc().blocks[0].updates == {
            "bn_moving_mean": "bn.new_moving_mean",
            "bn_moving_var": "bn.new_moving_var",
        }

    def test_operators_that_share_a_state_update_it_one_after_the_other(self):
        program = so.Program()
        x = program.data("x", (4, 2))
        gamma, beta = program.parameter("g", (2,), initial=1), program.parameter("b", (2,))
        mean, var = program.state("m", (2,)), program.state("v", (2,), initial=1)
        for _ in range(2):
            so.batch_norm(x, gamma, beta, mean, var, momentum=0.5)
        given = drawn(4, 2)
        program.run({"x": given}, training=True)
        np.testing.assert_allclose(program.scope["m"], given.mean(0) * 0.75, rtol=1e-5)

    def test_a_guard_names_the_current_program(self):
        with so.program_guard(so.Program()) as outer:
            so.data("x", (2,))
            with so.program_guard(so.Program()) as inner:
                so.parameter("w", (2,))
            so.data("y", (2,))
        assert [one.name for one in outer.variables] == ["x", "y"]
        assert [one.name for one in inner.variables] == ["w"]
        with pytest.raises(ProgramError, match="there must be a program_guard"):
            so.data("z", (2,))

    def test_a_call_that_fails_leaves_nothing_behind(self):
        program, _ = regression()
        before = str(program)
        with pytest.raises(ShapeError, match="matmul"):
            so.matmul(program["x"], program["b"] + 0.5)
        with pytest.raises(ProgramError, match="the name must be free"):
            so.sin(program["x"], name="w")
        assert str(program).startswith(before.rpartition("}")[0].rstrip())
        program.verify()

    def test_misuse(self):
        program, loss = regression()
        other, _ = regression()
        with pytest.raises(ProgramError, match="must be of one program"):
            program["x"] + other["x"]
        with pytest.raises(ArgumentError, match="must not be mixed"):
            program["x"] + so.var("s", shape=(8, 3))
        with pytest.raises(ProgramError, match="the name must be free"):
            program.data("x", (2,))
        with pytest.raises(ArgumentError, match="all known when a program"):
            program.data("z", (None, 3))
        with pytest.raises(ArgumentError, match="a number, an array or one of"):
            program.parameter("z", (2,), initial="glorot")
        with pytest.raises(ProgramError, match="must be a parameter or a state"):
            program.update("x", program["x"])
        with pytest.raises(ProgramError, match=r"must become a value of type float32\[3\]"):
            program.update("w", loss)
        with pytest.raises(FeedError, match="did you mean 'w'"):
            program["ww"]

    def test_append_op_says_what_is_kept(self):
        program, loss = regression()
        ((w, slope), _) = so.append_backward(loss)
        program.append_op(
            "sgd", {"param": w, "grad": slope, "learning_rate": 0.5}, {"new_param": w}
        )
        program.initialize(0)
        before, given = np.asarray(program.scope["w"]), feed_of(program)
        found = program.run(given, slope)
        np.testing.assert_allclose(program.scope["w"], before - 0.5 * found, rtol=1e-6)
        with pytest.raises(ArgumentError, match="the outputs must be among new_param"):
            program.append_op(
                "sgd", {"param": w, "grad": slope, "learning_rate": 0.5}, {"param_out": w}
            )


class TestRecords:
    @pytest.fixture(params=[regression, convolutional])
    def program(self, request):
        program, loss = request.param()
        so.optim.Adam(1e-2).minimize(loss)
        return program

    def test_text_and_back(self, program):
        again = so.Program.parse(str(program))
        assert again == program
        assert str(again) == str(program)
        assert again.desc().blocks[0].updates == program.desc().blocks[0].updates

    def test_json_and_back(self, program, tmp_path):
        program.save(tmp_path / "program.json")
        again = so.Program.load(tmp_path / "program.json")
        assert again == program
        assert again.tojson() == program.tojson()

    def test_what_was_loaded_computes_the_same(self, program):
        again = so.Program.from_desc(program.desc())
        given = feed_of(program)
        for one in (program, again):
            one.initialize(3)
            so.random.seed(1)
            one.run(given)
        for name, value in program.scope.items():
            np.testing.assert_array_equal(again.scope[name], value)

    def test_what_was_loaded_is_differentiated_again(self):
        program, loss = regression()
        ((_, slope), _) = so.append_backward(loss)
        so.square(slope).sum(name="steepness")
        again = so.Program.parse(str(program))
        ((_, second),) = so.append_backward(again["steepness"], ["w"])
        given = feed_of(program)
        again.initialize(0)

        def steepness(w):
            return jnp.sum(jax.grad(lambda w: jnp.mean((given["x"] @ w - given["y"]) ** 2))(w) ** 2)

        expected = jax.grad(steepness)(again.scope["w"])
        np.testing.assert_allclose(again.run(given, second), expected, rtol=1e-4)

    def test_equal_is_what_does_the_same(self):
        first, second = regression()[0], regression()[0]
        assert first == second
        assert first != "a program"
        second.update("w", second["w"] * 2)
        assert first != second

    def test_its_drawing_has_every_call(self, program):
        assert "<svg" in program._repr_html_()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda b: b.ops.append(OpDesc("sin", {"x": ["nowhere"]}, {"out": ["z"]})), "nowhere"),
            (lambda b: b.ops.append(OpDesc("sin", {"x": ["x"]}, {"out": ["w"]})), "defined once"),
            (lambda b: b.ops.insert(0, b.ops.pop()), "before it is used"),
            (lambda b: b.ops.append(OpDesc("sinn", {"x": ["x"]}, {"out": ["z"]})), "did you mean"),
            (lambda b: b.updates.update(x="x"), "must be a parameter or a state"),
            (lambda b: b.updates.update(w="mean0"), "must become a value of type"),
            (lambda b: b.updates.update(w="never"), "not defined"),
            (lambda b: b.vars.append(VarDesc("ghost", [2], "float32")), "not defined"),
            (lambda b: setattr(b.vars[-1], "shape", [7]), "the shape must be"),
            (lambda b: setattr(b.vars[-1], "dtype", "int8"), "the dtype must be"),
            (lambda b: setattr(b.vars[0], "shape", None), "must be declared"),
            (lambda b: setattr(b.vars[0], "role", "king"), "role must be one of"),
            (lambda b: b.ops[-1].attrs.update(axis=9), "axis"),
        ],
    )
    def test_the_verifier_refuses(self, change, message):
        program, _ = regression()
        desc = program.desc()
        change(desc.blocks[0])
        with pytest.raises(FormatError, match=message):
            so.Program.from_desc(desc)

    def test_the_verifier_shows_the_lines_around(self):
        program, _ = regression()
        desc = program.desc()
        desc.blocks[0].ops[1].inputs["x"] = ["missing"]
        with pytest.raises(FormatError) as caught:
            so.Program.from_desc(desc)
        lines = str(caught.value).splitlines()
        assert any(line.startswith(">    1  add0 = add(missing") for line in lines)
        assert any("matmul0 = matmul(x, w)" in line for line in lines)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("(x: float[2]) {\n x := x\n} ->", "must be a parameter or a state"),
            ("(state s: float[2]) {\n s := s\n s := s\n} ->", "line 3.*updated once"),
            ("(x: float[2]) {\n y {stop} = sin(x)\n} ->", "stop_gradient must stand here"),
            ("(x: float) {\n} ->", "must be declared|must stand here"),
        ],
    )
    def test_texts_that_are_no_programs(self, text, message):
        with pytest.raises(FormatError, match=message):
            so.Program.parse(text)

    def test_a_program_is_no_symbol(self):
        program, loss = regression()
        so.optim.SGD(0.1).minimize(loss)
        with pytest.raises(FormatError, match=r"use so\.Program\.load"):
            so.load_json(program.tojson())


class TestSymbols:
    def test_symbol_to_program_to_symbol(self):
        x = so.var("x", shape=(4, 3, 5, 5))
        y = so.batch_norm(so.convolution(x, channels=2, kernel=3, name="c"), name="n")
        symbol = so.dropout(so.relu(y), rate=0.5)
        symbol = symbol.with_types(x=(4, 3, 5, 5))
        program = symbol.to_program()
        assert program.to_symbol().tojson() == symbol.tojson()
        for again in both_files(program):
            assert str(again.to_symbol()) == str(symbol)

    def test_outputs_are_kept_and_fetched(self):
        x = so.var("x")
        pair = so.Group([so.sin(x, name="low"), so.cos(x, name="high")])
        for program in both_files(pair.to_program(x=2)):
            assert [one.name for one in program.outputs] == ["low", "high"]
            low, high = program.run({"x": [0.0, 1.0]})
            np.testing.assert_allclose(low, np.sin([0.0, 1.0]), rtol=1e-6)
            program.outputs = program["high"]
            np.testing.assert_allclose(program.run({"x": [0.0, 1.0]}), [high], rtol=1e-6)
            assert program.to_symbol().list_outputs() == ["high_output"]
            assert str(program).endswith("} -> high")
        with pytest.raises(FormatError, match="at least one value must be named"):
            so.Program().to_symbol()

    def test_what_of_a_symbol_is_kept_and_trained(self):
        layer = so.fully_connected(so.var("x"), units=2, name="fc")
        loss = so.mean(so.square(so.batch_norm(layer, name="bn")), name="loss")
        program = loss.to_program(["fc_weight", "bn_gamma"], x=(4, 3))
        assert [one.name for one in program.parameters] == ["fc_weight", "bn_gamma"]
        assert [one.name for one in program.inputs] == ["x", "fc_bias", "bn_beta"]
        assert program.to_symbol().tojson() == loss.with_types(x=(4, 3)).tojson()
        assert program.values()["bn_gamma"].tolist() == [1.0, 1.0]
        pairs = so.optim.SGD(0.1).minimize(program["loss"])
        assert [one.name for one, _ in pairs] == ["fc_weight", "bn_gamma"]
        with pytest.raises(FeedError, match="bn_moving_mean"):
            loss.to_program(["bn_moving_mean"], x=(4, 3))

    def test_a_shared_state_comes_back(self):
        x = so.var("x", shape=(4, 2))
        parts = {n: so.var(n, shape=(2,)) for n in ("g", "b")}
        states = {n: so.var(n, shape=(2,), state=True) for n in ("m", "v")}
        for _ in range(2):
            x = so.batch_norm(x, *parts.values(), *states.values())
        program = x.to_program()
        given = {"x": drawn(4, 2), "g": np.ones(2, "f"), "b": np.zeros(2, "f")}
        held = {"m": np.zeros(2, "f"), "v": np.ones(2, "f")}
        out, new = x.eval(is_train=True, **given, **held)
        program.scope.update(held)
        (name,) = program.ops[-1].outputs["out"]
        np.testing.assert_allclose(program.run(given, name, training=True), out, rtol=1e-5)
        np.testing.assert_allclose(program.scope["m"], new["m"], rtol=1e-6)
        assert program.to_symbol(name).tojson() == x.tojson()

    def test_values_of_a_program_as_a_symbol(self):
        program, loss = regression()
        so.optim.SGD(0.1).minimize(loss)
        symbol = program.to_symbol(loss)
        assert symbol.list_arguments() == ["x", "y", "w", "b"]
        given = feed_of(program) | {"w": drawn(3), "b": np.float32(0.5)}
        expected = np.mean((given["x"] @ given["w"] + 0.5 - given["y"]) ** 2)
        np.testing.assert_allclose(symbol.eval(**given), expected, rtol=1e-5)


class TestBackward:
    def test_gradients_are_those_of_jax(self):
        program, loss = regression()
        pairs = so.append_backward(loss)
        assert [(one.name, slope.name) for one, slope in pairs] == [
            ("w", "w@GRAD"),
            ("b", "b@GRAD"),
        ]
        program.initialize(0)
        given = feed_of(program)

        def by_hand(w, b):
            return jnp.mean((given["x"] @ w + b - given["y"]) ** 2)

        expected = jax.grad(by_hand, (0, 1))(program.scope["w"], program.scope["b"])
        found = program.run(given, [slope for _, slope in pairs])
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5)

    def test_a_network_with_states_and_draws(self):
        program, loss = convolutional()
        pairs = so.append_backward(loss)
        program.initialize(0)
        given = feed_of(program)
        symbol = program.to_symbol(loss)
        held = {name: np.asarray(value) for name, value in program.scope.items()}
        so.random.seed(5)
        found = program.run(given, [slope for _, slope in pairs], training=True)
        so.random.seed(5)
        key, _ = so.random.draw(0)

        def by_hand(parameters):
            out, _ = symbol.to_jax(is_train=True)(**given, **{**held, **parameters}, key=key)
            return out

        trained = {one.name: held[one.name] for one, _ in pairs}
        expected = jax.grad(by_hand)(trained)
        for (one, _), mine in zip(pairs, found, strict=True):
            np.testing.assert_allclose(mine, expected[one.name], rtol=1e-4, atol=1e-6)

    def test_only_what_is_needed_is_appended(self):
        program, loss = regression()
        before = len(program.ops)
        so.append_backward(loss, ["b"])
        added = {op.type for op in program.ops[before:]}
        assert "matmul" not in added
        assert added

    def test_repeated_gradients_are_summed_just_before_their_use(self):
        program = so.Program()
        w = program.parameter("w", (3,))
        y = so.exp(w)
        so.append_backward(so.sum(so.sin(y) + y * y))
        types = [op.type for op in program.ops]
        place = types.index("add_n")
        total = program.ops[place].outputs["out"][0]
        following = program.ops[place + 1]
        assert total in [one for names in following.inputs.values() for one in names]

    def test_names_stay_unique(self):
        program = so.Program()
        w = program.parameter("w", (), initial=2)
        value, names = w * w * w, []
        for _ in range(3):
            ((_, value),) = so.append_backward(value)
            names.append(value.name)
        assert names == ["w@GRAD", "w@GRAD0", "w@GRAD1"]
        found = program.run(fetch=names)
        np.testing.assert_allclose(found, [12.0, 12.0, 6.0])
        program.verify()

    def test_stop_gradient_prunes(self):
        program = so.Program()
        w = program.parameter("w", (), initial=3)
        square = w * w
        square.stop_gradient = True
        ((_, slope),) = so.append_backward(square * w)
        assert float(program.run(fetch=slope)) == 9.0
        assert so.Program.parse(str(program)) == program
        assert "{stop_gradient}" in str(program)

    def test_a_stopped_value_is_not_its_equal_twin(self):
        program = so.Program()
        w = program.parameter("w", (), initial=3)
        held, free = w * w, w * w
        held.stop_gradient = True
        ((_, slope),) = so.append_backward(held + free)
        assert float(program.run(fetch=slope)) == 6.0

    def test_no_grad_set_prunes(self):
        program = so.Program()
        w = program.parameter("w", (), initial=3)
        a, b = so.sin(w), so.cos(w)
        for left_out in (a, a.name, "sin0"):
            ((_, slope),) = so.append_backward(a * b, no_grad_set={left_out})
            np.testing.assert_allclose(program.run(fetch=slope), -np.sin(3) * np.sin(3), rtol=1e-6)
        with pytest.raises(GradientError, match="both in parameter_list and in no_grad_set"):
            so.append_backward(a, ["w"], no_grad_set=["w"])

    def test_parameters_that_are_not_trained_are_left_out(self):
        program = so.Program()
        w = program.parameter("w", (), trainable=False)
        u = program.parameter("u", ())
        pairs = so.append_backward(w * u)
        assert [one.name for one, _ in pairs] == ["u"]

    def test_head_grads(self):
        program = so.Program()
        w, d = program.parameter("w", (3,), initial=2), program.data("d", (3,))
        ((_, slope),) = so.append_backward(w * w, head_grads=d)
        np.testing.assert_allclose(program.run({"d": [1, 2, 3]}, slope), [4, 8, 12])

    def test_partly_used_outputs(self):
        program = so.Program()
        w = program.parameter("w", (4, 3))
        first, *_ = so.split(w, sections=2, axis=0)
        ((_, slope),) = so.append_backward(so.sum(first * first))
        program.scope["w"] = jnp.asarray(drawn(4, 3))
        found = program.run(fetch=slope)
        np.testing.assert_allclose(found[:2], 2 * program.scope["w"][:2])
        np.testing.assert_array_equal(found[2:], 0)

    def test_double_precision_stays(self):
        with jax.enable_x64(True):
            program = so.Program()
            w = program.parameter("w", (3,), "float64")
            ((_, slope),) = so.append_backward(so.sum(so.sin(w)))
            assert slope.dtype == np.float64
            program.initialize(0)
            np.testing.assert_allclose(program.run(fetch=slope), np.cos(program.scope["w"]), 1e-15)

    def test_zero_disconnected_and_undefined_are_three_things(self):
        program = so.Program()
        w, u = program.parameter("w", (3,)), program.parameter("u", (3,))
        loss = so.sum(so.floor(w))
        ((_, slope),) = so.append_backward(loss, ["w"])
        np.testing.assert_array_equal(program.run(fetch=slope), 0)
        with pytest.raises(DisconnectedError, match="'u'"):
            so.append_backward(loss, [u])
        undefined = so.sum(so.cast(so.cast(w, dtype="int32"), dtype="float32"))
        with pytest.raises((NotDifferentiableError, DisconnectedError)):
            so.append_backward(undefined, ["w"])

    def test_misuse(self):
        program, loss = regression()
        with pytest.raises(GradientError, match=r"must be of shape \(\) unless"):
            so.append_backward(program["x"])
        with pytest.raises(NotDifferentiableError, match="floating"):
            so.append_backward(so.sum(so.cast(program["x"], dtype="int32")), ["x"])
        with pytest.raises(ArgumentError, match="a variable of a program"):
            so.append_backward(so.var("x"))
        with pytest.raises(ProgramError, match="did you mean"):
            so.append_backward(loss, ["wx"])
        with pytest.raises(ProgramError, match="must be of the loss's program"):
            so.append_backward(loss, [regression()[0]["w"]])


class TestRunning:
    def test_state_goes_on_and_is_kept_on_the_device(self):
        program = so.Program()
        count = program.state("count", (), "int32")
        program.update(count, count + 1)
        for expected in (1, 2, 3):
            assert int(program.run(fetch=count)) == expected
        assert isinstance(program.scope["count"], jax.Array)
        assert list(program.scope) == ["count"]
        assert len(program.scope) == 1

    def test_what_was_fetched_outlives_the_next_run(self):
        program = so.Program()
        w = program.parameter("w", (3,), initial=1)
        program.update(w, w * 2)
        fetched = [program.run(fetch=[w, "multiply0"]) for _ in range(3)]
        np.testing.assert_array_equal([row[0][0] for row in fetched], [2, 4, 8])
        np.testing.assert_array_equal([row[1][0] for row in fetched], [2, 4, 8])

    def test_what_was_handed_out_as_numpy_stays(self):
        program = so.Program()
        w = program.parameter("w", (1000,), initial=1)
        program.update(w, w + 1)
        program.initialize()
        before = np.array(program.scope["w"])
        program.run()
        program.run()
        np.testing.assert_array_equal(before, 1)

    def test_a_scope_may_be_changed_between_runs(self):
        program = so.Program()
        w = program.parameter("w", (2,), initial=1)
        program.update(w, w * 2)
        program.run()
        program.scope["w"] = np.array([5.0, 6.0], np.float32)
        np.testing.assert_array_equal(program.run(fetch=w), [10, 12])

    def test_what_is_only_read_may_be_changed_between_runs(self):
        program = so.Program()
        w, rate = program.parameter("w", (2,), initial=1), program.state("rate", (), initial=2)
        program.update(w, w * rate)
        factor = program.clone(updates=False)
        factor.update(factor["rate"], factor["rate"] + 1)
        expected = 1.0
        for now in (2, 2, 3, 3, 0.5):
            program.scope["rate"] = jnp.float32(now)
            for _ in range(3):
                program.run()
            expected *= now**3
            np.testing.assert_array_equal(program.scope["w"], expected)
        factor.run()
        program.run()
        np.testing.assert_array_equal(program.scope["w"], expected * 1.5)

    def test_evaluation_shares_the_parameters(self):
        program, loss = regression()
        evaluation = program.clone(updates=False)
        so.optim.SGD(0.1).minimize(loss)
        given = feed_of(program)
        losses = [float(program.run(given, loss)) for _ in range(4)]
        assert losses == sorted(losses, reverse=True)
        after = float(evaluation.run(given, loss.name))
        assert after < losses[-1]
        assert after == float(evaluation.run(given, loss.name))

    def test_feeds_of_every_kind(self):
        program = so.Program()
        x = program.data("x", (2,))
        y = x * 2.0
        for given in (
            [1, 2], np.array([1, 2], np.float32), jnp.array([1.0, 2.0]), so.nd.array([1.0, 2.0]),
        ):  # fmt: skip
            np.testing.assert_array_equal(program.run({"x": given}, y), [2, 4])
            np.testing.assert_array_equal(program.run({"x": np.zeros(2, np.float32)}, y), 0)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"x": [1.0]}, r"shape \(2,\)"),
            ({"x": jnp.ones(3)}, r"float32\[2\].*got float32\[3\]"),
            ({"x": jnp.ones(2, jnp.int32)}, r"float32\[2\].*got int32\[2\]"),
            ({}, "got no x"),
            ({"x": [1.0, 2.0], "z": 1}, "got 'z'"),
            ({"x": "text"}, "must be fed"),
            ({"x": SelectedRows(jnp.zeros(1, int), jnp.ones((1,)), 2)}, "x: an array"),
        ],
    )
    def test_feeds_that_do_not_fit(self, given, message):
        program = so.Program()
        y = program.data("x", (2,)) * 2.0
        for _ in range(2):
            with pytest.raises(FeedError, match=message):
                program.run(given, y)
            np.testing.assert_array_equal(program.run({"x": jnp.ones(2)}, y), [2, 2])

    def test_what_is_not_needed_need_not_be_fed(self):
        program, loss = regression()
        so.sin(program["x"], name="wave")
        found = program.run({"x": np.zeros((8, 3), np.float32)}, "wave")
        np.testing.assert_array_equal(found, 0)
        with pytest.raises(FeedError, match="got no y"):
            program.run({"x": np.zeros((8, 3), np.float32)}, loss)

    def test_rows_may_be_fed(self):
        program = so.Program()
        rows = program.data("rows", (5, 2), kind="selected_rows")
        dense = so.get_tensor_from_selected_rows(rows * 2.0)
        given = SelectedRows(jnp.array([1, 1]), jnp.ones((2, 2)), 5)
        np.testing.assert_array_equal(program.run({"rows": given}, dense)[1], [4, 4])
        with pytest.raises(FeedError, match=r"rows of type selected_rows float32\[5,2\]"):
            program.run({"rows": jnp.ones((5, 2))}, dense)
        assert so.Program.parse(str(program)) == program

    def test_it_is_compiled_once(self):
        program, loss = regression()
        so.optim.Adam(0.1).minimize(loss)
        given = feed_of(program)
        for _ in range(3):
            program.run(given, [loss])
        (runner,) = program._runners.values()
        assert runner._compiled._cache_size() == 1

    def test_a_change_is_seen_by_the_next_run(self):
        program = so.Program()
        w = program.parameter("w", (), initial=1)
        fetched = w + 1
        assert float(program.run(fetch=fetched)) == 2
        program.update(w, w + 10)
        assert [float(program.run(fetch=fetched)) for _ in range(2)] == [2, 12]

    def test_the_seed_tells_the_numbers(self):
        program = so.Program()
        x = program.data("x", (100,))
        first, second = so.dropout(x, rate=0.5), so.dropout(x, rate=0.5)
        given = {"x": np.ones(100, np.float32)}
        found = []
        for _ in range(2):
            so.random.seed(3)
            found.append(program.run(given, [first, second], training=True))
        np.testing.assert_array_equal(found[0], found[1])
        assert (found[0][0] != found[0][1]).any()
        assert (program.run(given, first, training=True) != found[0][0]).any()

    def test_training_is_told_or_follows_from_the_updates(self):
        program = so.Program()
        x, w = program.data("x", (50,)), program.parameter("w", (50,), initial=1)
        y = so.dropout(x * w, rate=0.5)
        given = {"x": np.ones(50, np.float32)}
        assert (program.run(given, y) == 1).all()
        program.update(w, w * 1.0)
        assert (program.run(given, y) == 0).any()
        assert (program.run(given, y, training=False) == 1).all()

    def test_threads_run_programs_of_their_own(self):
        def work(number, found):
            with so.program_guard(so.Program()) as program:
                w = so.parameter("w", (), initial=number)
                program.update(w, w + 1)
            for _ in range(50):
                value = program.run(fetch=w)
            found[number] = float(value)

        found = {}
        threads = [threading.Thread(target=work, args=(i, found)) for i in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert found == {i: i + 50.0 for i in range(4)}
