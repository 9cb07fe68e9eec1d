"""Programs at their edges: shared nodes, failures half way, other flags, transformations."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry import SelectedRows
from registry.errors import (
    ArgumentError,
    DisconnectedError,
    FormatError,
    ProgramError,
    ShapeError,
)
from symop.io.serialize import decode


def scalar(initial=1.0):
    program = so.Program()
    return program, program.parameter("x", (), initial=initial)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x: (so.sin(x), so.sin(x)), 2.0),
        (lambda x: (so.identity(x), x), 2.0),
        (lambda x: (x * 1.0, x), 2.0),
    ],
    ids=["twins", "identity", "times one"],
)
def test_a_gradient_is_by_the_variable_that_is_asked_for(make, expected):
    program, x = scalar()
    first, second = make(x)
    ((_, slope),) = so.append_backward(first * 2.0 + second * 3.0, [first])
    assert float(program.run(fetch=slope)) == expected


def test_a_gradient_that_is_a_number_is_a_variable():
    program, x = scalar()
    ((_, slope),) = so.append_backward(x * 3.0)
    assert not slope.stop_gradient
    assert slope.name in [one.name for one in program.variables]
    assert '"x@GRAD": float32[]' in str(program)
    assert so.Program.parse(str(program)) == program
    assert float(program.run(fetch=slope)) == 3.0


def test_one_optimizer_for_each_parameter():
    program, x = scalar()
    so.optim.SGD(0.1).minimize(x * x)
    other = so.exp(x)
    before = str(program)
    with pytest.raises(ProgramError, match="'x' is updated already"):
        so.optim.SGD(0.01).minimize(other)
    assert str(program) == before


def test_two_optimizers_for_two_parameters():
    program = so.Program()
    x, y = program.parameter("x", (), initial=1.0), program.parameter("y", (), initial=1.0)
    loss = x * x + y * y
    so.optim.SGD(0.1).minimize(loss, ["x"])
    so.optim.SGD(0.2).minimize(loss, ["y"])
    program.run()
    np.testing.assert_allclose([program.scope["x"], program.scope["y"]], [0.8, 0.6], rtol=1e-6)


def test_layers_inside_of_control_flow_are_refused():
    program = so.Program()
    x = program.data("x", (2, 3))
    positive = so.sum(x) > 0.0
    before = str(program)
    with pytest.raises(ProgramError, match="must be made outside of them"):
        so.cond(
            positive,
            lambda: so.fully_connected(x, units=4),
            lambda: so.zeros(shape=(2, 4)),
        )
    program.verify()
    assert str(program) == before


def test_records_are_the_callers_own():
    program, x = scalar()
    so.optim.SGD(0.1).minimize(x * x)
    desc = program.desc()
    first, second = so.Program.from_desc(desc), so.Program.from_desc(desc)
    so.sin(first["x"])
    so.sin(second["x"])
    first.verify()
    second.verify()
    assert desc == program.desc()


def test_a_call_that_fails_gives_its_names_back():
    program = so.Program()
    x, wrong = program.data("x", (2, 3)), program.data("wrong", (7,))
    with pytest.raises(ShapeError):
        so.fully_connected(x, bias=wrong, units=4, name="fc")
    assert so.fully_connected(x, units=4, name="fc").shape == (2, 4)
    program.verify()


@pytest.mark.parametrize(
    "attempt",
    [
        lambda p, x: so.optim.SGD(lambda step: 1 / 0).minimize(x * x),
        lambda p, x: so.optim.SGD(0.1, loss_scale=so.optim.LossScale()).minimize(
            so.stack([x, x], axis=0)
        ),
        lambda p, x: p.append_op("sin", {"x": x}, {"out": "v"}),
        lambda p, x: p.append_op("sin", {"x": x}, {"cos": "x"}),
    ],
    ids=["schedule", "vector", "shape", "output"],
)
def test_what_fails_half_way_leaves_nothing(attempt):
    program, x = scalar()
    program.parameter("v", (2,))
    with pytest.raises((ZeroDivisionError, ShapeError, ProgramError, ArgumentError)):
        attempt(program, x)
    text = str(program)
    assert ":=" not in text
    assert "GRAD" not in text
    assert "state" not in text
    program.verify()
    assert float(program.run(fetch=so.sin(x))) == pytest.approx(np.sin(1.0))


def test_the_same_draws_whatever_is_fed(tmp_path):
    def build():
        program = so.Program()
        x, w = program.data("x", (4,)), program.parameter("w", (4,), initial=1.0)
        loss = so.sum(so.dropout(x * w, rate=0.5))
        so.optim.SGD(0.1).minimize(loss)
        return program, loss

    found = []
    for given in ([1.0, 2.0, 4.0, 8.0], jnp.array([1.0, 2.0, 4.0, 8.0])):
        so.random.seed(7)
        program, loss = build()
        first = float(program.run({"x": given}, loss))
        so.checkpoint.save(tmp_path / "state", program)
        second = float(program.run({"x": given}, loss))
        program, loss = build()
        so.checkpoint.load(tmp_path / "state", program)
        assert float(program.run({"x": given}, loss)) == second
        found.append((first, second))
    assert found[0] == found[1]


def test_an_updating_program_does_not_run_inside_of_jax():
    program = so.Program()
    x, w = program.data("x", (2,)), program.parameter("w", (2,), initial=1.0)
    loss = so.sum(x * w)
    y = program.clone(updates=False)
    so.optim.SGD(0.1).minimize(loss)
    program.initialize(0)
    with pytest.raises(ProgramError, match="inside of a JAX transformation"):
        jax.jit(lambda a: program.run({"x": a}, loss))(jnp.ones(2))
    assert float(program.run({"x": jnp.ones(2)}, loss)) == 2.0
    slope = jax.grad(lambda a: y.run({"x": a}, loss.name))(jnp.ones(2))
    np.testing.assert_allclose(slope, program.scope["w"] + 0.0, rtol=1e-6)


def test_a_variable_that_is_looked_up_again_is_the_same_fetch():
    program, x = scalar()
    so.sin(x, name="wave")
    for _ in range(4):
        program.run(fetch=program["wave"])
    assert len(program._runners) == 1


def test_large_gradients_are_finite():
    program = so.Program()
    w, x = program.parameter("w", (3,), initial=1.0), program.data("x", (3,))
    so.optim.SGD(1e-18, loss_scale=so.optim.LossScale()).minimize(so.sum(w * x))
    program.run({"x": np.full(3, 1e17, np.float32)})
    np.testing.assert_allclose(program.scope["w"], 0.9, rtol=1e-5)
    assert float(program.scope["loss_scale"]) == 2.0**15


def test_small_gradients_of_half_precision_survive():
    program = so.Program()
    w, x = program.parameter("w", (), "float16", initial=1.0), program.data("x", (), "float16")
    ((_, slope),) = so.optim.SGD(1.0, loss_scale=so.optim.LossScale()).minimize(
        so.cast(w * x, dtype="float32") * 1e-4
    )
    assert slope.dtype == np.float16
    program.run({"x": np.float16(1e-3)})
    (unscaled,) = [op.inputs["grad"][0] for op in program.ops if op.type == "sgd"]
    found = program.run({"x": np.float16(1e-3)}, unscaled)
    np.testing.assert_allclose(found, 1e-7, rtol=0.01)


def test_runs_that_are_not_finite_are_no_part_of_the_mean():
    program = so.Program()
    w, x = program.parameter("w", (), initial=1.0), program.data("x", ())
    so.optim.SGD(1.0, accumulate=2, loss_scale=so.optim.LossScale()).minimize(w * x)
    for given in (np.inf, 1.0, np.nan, np.inf):
        program.run({"x": np.float32(given)})
        assert float(program.scope["w"]) == 1.0
    program.run({"x": np.float32(3.0)})
    assert float(program.scope["w"]) == -1.0
    assert int(program.scope["sgd.step"]) == 1


@pytest.mark.filterwarnings("ignore:Some donated buffers")  # where the room grows, as it does here
def test_rows_of_several_numbers_are_put_together():
    program = so.Program()
    table = program.parameter("table", (5, 1), initial=0.0)
    rows = program.data("rows", (5, 1), kind="selected_rows")
    so.optim.SGD(1.0, accumulate=2).apply_gradients([(table, rows)])
    for numbers in ([0], [1, 2], [4, 3, 3], [1]):
        given = SelectedRows(jnp.array(numbers), jnp.ones((len(numbers), 1)), 5)
        program.run({"rows": given})
    np.testing.assert_allclose(program.scope["table"][:, 0], [-0.5, -1.0, -0.5, -1.0, -0.5])


def test_decay_of_rows_is_that_of_dense_gradients_unless_it_is_lazy():
    def trained(sparse, **how):
        program = so.Program()
        table, ids = (
            program.parameter("table", (6, 2), initial=1.0),
            program.data("ids", (2,), "int32"),
        )
        loss = so.sum(so.lookup_table(table, ids, sparse=sparse))
        so.optim.SGD(0.1, weight_decay=0.1, **how).minimize(loss)
        for _ in range(4):
            program.run({"ids": [1, 3]})
        return program.scope["table"]

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-6)
    lazy = trained(True, lazy=True)
    np.testing.assert_array_equal(lazy[0], 1.0)
    np.testing.assert_allclose(lazy[1], trained(False)[1], rtol=1e-6)


def test_programs_keep_their_dtypes_under_another_flag():
    program = so.Program()
    x, w = program.data("x", (2,)), program.parameter("w", (2,), initial=2.0)
    loss = so.sum(x * w)
    text = program.tojson()
    with jax.enable_x64(True):
        again = so.Program.from_desc(program.desc())
        ((_, slope),) = so.append_backward(again[loss.name])
        assert slope.dtype == np.float32
        assert again.tojson().startswith(text[:200])
        np.testing.assert_array_equal(again.run({"x": np.ones(2, np.float32)}, slope), 1)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"shape": (True,)}, "lengths of axes"),
        ({"shape": (2,), "dtype": "float33"}, "must have a dtype"),
        ({"shape": (2,), "dtype": "int32", "initial": 0.5}, "a whole number"),
        ({"shape": (2,), "dtype": "complex64", "initial": "glorot_unifrm"}, "it must be a number"),
    ],
)
def test_declarations_that_make_no_sense(kwargs, message):
    with pytest.raises(ArgumentError, match=message):
        so.Program().parameter("w", **kwargs)


def test_numbers_of_numpy_declare_as_well():
    program = so.Program()
    for i, initial in enumerate((np.float32(0.5), np.float64(0.5), 0.5)):
        program.parameter(f"w{i}", (np.int64(2),), initial=initial)
    program.parameter("n", np.int64(3), "int32", initial=np.int32(1))
    program.initialize(0)
    assert all((program.scope[f"w{i}"] == 0.5).all() for i in range(3))
    assert program.scope["n"].tolist() == [1, 1, 1]


def test_an_initial_value_in_a_file_is_checked():
    program, _ = scalar()
    desc = program.desc()
    desc.blocks[0].vars[0].attrs["initial"] = "bogus"
    with pytest.raises(FormatError, match="it must be a number, an array or one of"):
        so.Program.from_desc(desc)


def test_one_array_under_two_names():
    program = so.Program()
    a, b = program.parameter("a", (2,), initial=1.0), program.parameter("b", (2,))
    program.update(a, a + 1.0)
    program.update(b, b + 2.0)
    program.initialize(0)
    program.scope["b"] = program.scope["a"]
    program.run()
    np.testing.assert_array_equal([program.scope["a"][0], program.scope["b"][0]], [2, 3])


def test_a_run_that_fails_says_that_the_parameters_are_gone(monkeypatch):
    program = so.Program()
    w, x = program.parameter("w", (2,), initial=1.0), program.data("x", (2,))
    program.update(w, w / x)
    given = {"x": jnp.ones(2)}
    program.run(given)
    (runner,) = program._runners.values()

    def failing(written, feed):
        for one in written:
            one.delete()
        raise RuntimeError("out of memory")

    monkeypatch.setattr(runner._compiled, "_donating", failing)
    with pytest.raises(ProgramError, match=r"load a checkpoint.*out of memory"):
        program.run(given)


def test_checkpoints_of_numbers(tmp_path):
    tree = {"step": 2**40, "rate": 0.1, "on": True, "scale": np.float64(0.3)}
    so.checkpoint.save(tmp_path / "tree", tree)
    again = so.checkpoint.load(tmp_path / "tree", tree)
    assert again == tree
    assert {key: type(one) for key, one in again.items()} == {
        key: type(one) for key, one in tree.items()
    }


def test_a_checkpoint_through_a_clone(tmp_path):
    program, x = scalar()
    evaluation = program.clone(updates=False)
    so.optim.Adam(0.1).minimize(x * x)
    program.run()
    so.checkpoint.save(tmp_path / "state", evaluation)
    so.checkpoint.load(tmp_path / "state", evaluation)
    assert int(program.scope["adam.step"]) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held: held.pop("random/root"), "too little: random/root"),
        (lambda held: held.update({"random/drawn": np.ones(3)}), "must be there"),
        (lambda held: held.pop("scope/x"), "too little: scope/x"),
        (lambda held: held.update({"scope/x": np.ones(2, np.float32)}), "must be there"),
    ],
)
def test_checkpoints_that_do_not_fit(tmp_path, change, message):
    program, x = scalar()
    so.optim.SGD(0.1).minimize(x * x)
    program.run()
    before = float(program.scope["x"])
    so.checkpoint.save(tmp_path / "state", program)
    held = so.load_parameters(tmp_path / "state")
    change(held)
    so.save_parameters(tmp_path / "state", held)
    with pytest.raises(FormatError, match=message):
        so.checkpoint.load(tmp_path / "state", program)
    assert float(program.scope["x"]) == before


@pytest.mark.parametrize("name", ["a\x00b", "a\nb", 'q"uote', "b\\n", "é", "x y", "@1", "training"])
def test_any_text_is_a_name(name):
    program = so.Program()
    so.sin(program.data(name, (2,)))
    for again in (
        so.Program.parse(str(program)),
        so.Program.from_desc(decode(program.tojson())),
    ):
        assert again == program
        assert [one.name for one in again.inputs] == [name]


@pytest.mark.parametrize(
    "make",
    [
        lambda name: so.Program().data(name, ()),
        so.var,
        lambda name: so.sin(so.var("x"), name=name),
        lambda name: so.sin(so.Program().data("x", ()), name=name),
    ],
    ids=["data", "var", "symbol", "variable"],
)
def test_half_of_a_character_is_no_name(make):
    with pytest.raises(ArgumentError, match="text that UTF-8 can hold"):
        make("\ud800")


def test_a_variable_that_only_a_closure_holds_is_told_apart():
    program = so.Program()
    w = program.parameter("w", (2,))
    with pytest.raises(ArgumentError, match="one of the values that enter must be a variable"):
        so.scan(lambda carry, x: (carry + x * w, carry), np.zeros(2, "f"), np.ones((3, 2), "f"))


def test_an_operator_without_inputs_is_appended():
    program = so.Program()
    drawn = program.append_op("random_integers", {}, attrs={"low": 0, "high": 1000, "shape": (8,)})
    so.random.seed(1)
    first, second = program.run(fetch=drawn), program.run(fetch=drawn)
    assert first.shape == (8,)
    assert first.tolist() != second.tolist()
    assert so.Program.parse(str(program)) == program


@pytest.mark.thorough
def test_many_parameters_are_set_in_the_time_that_each_takes(tmp_path):
    program = so.Program()
    for i in range(10_000):
        program.parameter(f"w{i}", (1,), initial=0.5)
    start = time.process_time()
    program.initialize(0)
    so.checkpoint.save(tmp_path / "many", program)
    so.checkpoint.load(tmp_path / "many", program)
    for name, value in dict(program.scope).items():
        program.scope[name] = value
    assert time.process_time() - start < 30  # it took minutes
    program.scope["w1"] = program.scope["w0"]
    assert program.scope["w1"] is not program.scope["w0"]
    program.scope["w1"] = one = program.scope["w1"]
    assert program.scope["w1"] is one
    program.scope.update(w2=one, w3=one)
    assert len({id(program.scope[f"w{i}"]) for i in range(4)}) == 4


def test_a_value_that_a_run_left_is_copied_under_another_name():
    program = so.Program()
    a, _ = program.parameter("a", (2,), initial=1.0), program.parameter("b", (2,), initial=0.0)
    program.update(a, a + 1.0)
    program.run()
    program.scope["b"] = program.scope["a"]
    program.run()
    assert program.scope["b"].tolist() == [2, 2]


def derived(program, y, by, order):
    for _ in range(order):
        ((_, y),) = so.append_backward(y, [by])
    return float(program.run({}, y))


@pytest.mark.parametrize("order", range(1, 6))
@pytest.mark.parametrize("restore", [lambda one: one, lambda one: so.Program.parse(str(one))])
def test_every_order_where_a_derivative_is_zero(order, restore):
    program, x = scalar(3.0)
    slope = {1: 6.0, 2: 2.0}.get(order, 0.0)
    assert derived(program, x * x, x, order) == slope
    program = restore(program)
    assert derived(program, so.relu(program["x"]), "x", order) == float(order == 1)


@pytest.mark.parametrize("function", [so.square, so.relu, so.abs, lambda w: 3.0 * w])
def test_every_order_without_a_list_of_parameters(function):
    """A derivative of a constant gradient is by the variables that the gradient was taken by."""
    with so.program_guard(so.Program()) as program:
        w = so.parameter("w", (), initial=2.5)
        so.parameter("other", (), initial=1.0)
        value = function(w)
        for _ in range(4):
            ((by, value),) = so.append_backward(value)
            assert by.name == "w"
    assert program.run(fetch=[value]) == [0.0]


def test_further_derivatives_of_gradients_are_zero_by_what_they_do_not_read():
    program, x = scalar(3.0)
    other = program.parameter("other", (), initial=2.0)
    ((_, slope),) = so.append_backward(x * x + other, ["x"])
    assert derived(program, slope, "other", 1) == 0.0
    second = so.grad(so.grad(so.grad(x * x * other, x), x), x)
    assert program.run({}, so.grad(second, x)) == 0.0


def test_what_becomes_of_a_variable_that_the_loss_does_not_read():
    program, x = scalar(3.0)
    other = program.parameter("other", (2,), initial=2.0)
    loss = so.square(x)
    with pytest.raises(DisconnectedError, match="pass unreachable='zero' for zeros"):
        so.append_backward(loss, [other])
    (left, none), (right, slope) = so.append_backward(loss, [other, x], unreachable="none")
    assert (left.name, none, right.name) == ("other", None, "x")
    assert program.run({}, slope) == 6.0
    (_, zeros), _ = so.append_backward(loss, [other, x], unreachable="zero")
    assert program.run({}, zeros).tolist() == [0.0, 0.0]
    assert [one.name for one, _ in so.append_backward(loss)] == ["x"]
    assert [one.name for one, _ in so.append_backward(loss, unreachable="none")] == ["x"]
    assert [one.name for one, _ in so.append_backward(loss, unreachable="zero")] == ["x", "other"]
    with pytest.raises(ArgumentError, match="unreachable must be one of error, zero, none, got 'z"):
        so.append_backward(loss, unreachable="zeros")


def test_an_optimizer_leaves_a_parameter_without_a_gradient_as_it_is():
    program, x = scalar(3.0)
    other = program.parameter("other", (), initial=2.0)
    pairs = so.append_backward(so.square(x), [x, other], unreachable="none")
    so.optim.SGD(0.5).apply_gradients(pairs)
    program.run({}, [])
    assert program.scope["x"] == 0.0
    assert "other" not in program.desc().blocks[0].updates
