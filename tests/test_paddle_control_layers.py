"""Scripts of Paddle with branches, loops and tensor arrays: their records, values and gradients."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from paddle_scripts import new_script

import symop as so
from symop.interop.paddle import fluid, framework, static
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import VarKind

layers = fluid.layers
nn = static.nn
RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 2)).astype(np.float32)
W = (RNG.normal(size=(2, 2)) * 0.5).astype(np.float32)
SERIES = RNG.normal(size=(4, 3, 2)).astype(np.float32)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[tuple[Any, Any]]:
    """Each test has programs, names and a scope of its own."""
    with new_script() as programs:
        yield programs


def given() -> tuple[Any, Any]:
    """A variable that is fed and has a gradient, and a parameter."""
    x = fluid.data("x", [None, 2])
    x.stop_gradient = False
    return x, layers.create_parameter([2, 2], "float32", name="w")


def counter(steps: int) -> tuple[Any, Any]:
    return layers.zeros([1], "int64"), layers.fill_constant([1], "int64", steps)


def types(program: Any, block: int = 0) -> list[str]:
    return [op.type for op in program.desc.blocks[block].ops]


# Models, each with the same in plain JAX ---------------------------------------------------------


def branch() -> Any:
    x, w = given()
    positive = layers.greater_than(layers.reduce_sum(x), layers.zeros([1], "float32"))
    y, scale = nn.cond(positive, lambda: (layers.tanh(layers.mul(x, w)), 2.0), lambda: (x * x, 2.0))
    return layers.reduce_sum(y) * scale


def branch_in_jax(x: Any, w: Any) -> Any:
    return 2.0 * jnp.where(x.sum() > 0, jnp.tanh(x @ w), x * x).sum()


def chain() -> Any:
    x, w = given()
    size = layers.reduce_sum(layers.abs(x))
    bounds = [layers.fill_constant([1], "float32", one) for one in (1.0, 1e3)]
    y = nn.case(
        [
            (layers.less_than(size, bounds[0]), lambda: layers.mul(x, w)),
            (layers.less_than(size, bounds[1]), lambda: layers.sin(layers.mul(x, w))),
        ],
        default=lambda: x,
    )
    return layers.reduce_sum(y * y)


def chain_in_jax(x: Any, w: Any) -> Any:
    return (jnp.sin(x @ w) ** 2).sum()


def numbered() -> Any:
    x, w = given()
    k = fluid.data("k", [1], "int64")
    functions = {1: lambda: layers.tanh(layers.mul(x, w)), 4: lambda: layers.mul(x, w) * 3.0}
    y = nn.switch_case(k, functions, default=lambda: x * 1.5)
    return layers.reduce_sum(y * y)


def numbered_in_jax(x: Any, w: Any, k: Any) -> Any:
    y = {1: jnp.tanh(x @ w), 4: 3.0 * (x @ w)}.get(int(k[0]), 1.5 * x)
    return (y * y).sum()


def switched() -> Any:
    """``Switch`` writes a variable around it."""
    x, w = given()
    size = layers.reduce_sum(layers.abs(x))
    out = layers.fill_constant([3, 2], "float32", 0.0)
    out.stop_gradient = False
    with layers.Switch() as switch:
        with switch.case(layers.greater_than(size, layers.fill_constant([1], "float32", 1e3))):
            layers.assign(x, out)
        with switch.default():
            layers.assign(layers.mul(x, w), out)
    return layers.reduce_sum(layers.exp(out))


def switched_in_jax(x: Any, w: Any) -> Any:
    return jnp.exp(x @ w).sum()


def over_array() -> Any:
    x, w = given()
    i, n = counter(3)
    array = layers.array_write(x, i)
    go_on = layers.less_than(i, n)
    with layers.While(go_on).block():
        before = layers.array_read(array, i)
        after = layers.tanh(layers.mul(before, w)) + before
        layers.increment(i)
        layers.array_write(after, i, array)
        layers.less_than(i, n, cond=go_on)
    return layers.reduce_sum(layers.square(layers.array_read(array, i)))


def over_array_in_jax(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = jnp.tanh(x @ w) + x
    return (x**2).sum()


def over_variables() -> Any:
    """What is carried depends on itself through another variable of the step before."""
    x, w = given()
    i, n = counter(3)
    _, (h, g), _ = nn.while_loop(
        lambda i, hg, t: i < n,
        lambda i, hg, t: [i + 1, (hg[1], layers.mul(t, w)), hg[0] + t],
        [i, (layers.assign(x), layers.scale(x, 2.0)), layers.scale(x, 3.0)],
    )
    return layers.reduce_sum(h * g)


def over_variables_in_jax(x: Any, w: Any) -> Any:
    h, g, t = x, 2 * x, 3 * x
    for _ in range(3):
        h, g, t = g, t @ w, h + t
    return (h * g).sum()


def branch_in_loop() -> Any:
    x, w = given()
    i, n = counter(3)

    def body(i: Any, h: Any) -> list[Any]:
        m = layers.mul(h, w)
        taken = nn.cond(
            layers.reduce_sum(m) > 0.0, lambda: layers.tanh(m), lambda: layers.sigmoid(m) * x
        )
        return [layers.increment(i, in_place=False), taken]

    _, h = nn.while_loop(lambda i, h: i < n, body, [i, layers.assign(x)])
    return layers.reduce_sum(h * h)


def branch_in_loop_in_jax(x: Any, w: Any) -> Any:
    h = x
    for _ in range(3):
        m = h @ w
        h = jnp.where(m.sum() > 0, jnp.tanh(m), jax.nn.sigmoid(m) * x)
    return (h * h).sum()


def over_what_a_gradient_reads() -> Any:
    """The gradient of ``tanh`` reads its output, which the loop must not overwrite."""
    x, w = given()
    i, n = counter(2)
    _, h = nn.while_loop(
        lambda i, h: i < n,
        lambda i, h: [i + 1, layers.mul(h, w)],
        [i, layers.tanh(layers.mul(x, w))],
    )
    return layers.reduce_sum(h * h)


def over_what_a_gradient_reads_in_jax(x: Any, w: Any) -> Any:
    return ((jnp.tanh(x @ w) @ w @ w) ** 2).sum()


def recurrence() -> Any:
    x = fluid.data("x", [4, None, 2])
    x.stop_gradient = False
    w = layers.create_parameter([2, 2], "float32", name="w")
    rnn = layers.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        before = rnn.memory(shape=[-1, 2], batch_ref=now)
        h = layers.tanh(layers.mul(before, w) + now)
        rnn.update_memory(before, h)
        rnn.output(h, h * now)
    states, products = rnn()
    assert (states.shape, products.shape) == ((4, -1, 2), (4, -1, 2))
    return layers.reduce_sum(layers.square(states) + products)


def recurrence_in_jax(x: Any, w: Any) -> Any:
    h, total = jnp.zeros(x.shape[1:]), 0.0
    for now in x:
        h = jnp.tanh(h @ w + now)
        total += (h**2 + h * now).sum()
    return total


def in_arrays() -> Any:
    """A counter that is incremented in place counts back before gradients read it."""
    x, w = given()
    i, _ = counter(0)
    array = layers.array_write(x, i)
    layers.increment(i)
    layers.array_write(layers.mul(x, w), i, array)
    joined, _ = layers.tensor_array_to_tensor(array, axis=1)
    last = layers.Print(layers.array_read(array, i))
    return layers.reduce_sum(layers.square(joined)) + layers.reduce_sum(last * last * last)


def in_arrays_in_jax(x: Any, w: Any) -> Any:
    m = x @ w
    return (x**2).sum() + (m**2).sum() + (m**3).sum()


MODELS: list[tuple[Callable[[], Any], Callable[..., Any], dict[str, Any]]] = [
    (branch, branch_in_jax, {"x": np.abs(X)}),
    (branch, branch_in_jax, {"x": -np.abs(X)}),
    (chain, chain_in_jax, {"x": X}),
    (numbered, numbered_in_jax, {"x": X, "k": np.array([1])}),
    (numbered, numbered_in_jax, {"x": X, "k": np.array([4])}),
    (numbered, numbered_in_jax, {"x": X, "k": np.array([2])}),
    (switched, switched_in_jax, {"x": X}),
    (over_array, over_array_in_jax, {"x": X}),
    (over_variables, over_variables_in_jax, {"x": X}),
    (branch_in_loop, branch_in_loop_in_jax, {"x": X}),
    (over_what_a_gradient_reads, over_what_a_gradient_reads_in_jax, {"x": X}),
    (recurrence, recurrence_in_jax, {"x": SERIES}),
    (in_arrays, in_arrays_in_jax, {"x": X}),
]


@pytest.mark.parametrize(("build", "function", "feed"), MODELS)
def test_values_and_gradients_of_a_program_that_was_saved(
    fresh: Any, build: Any, function: Any, feed: dict[str, Any]
) -> None:
    loss = build()
    fluid.append_backward(loss)
    program = fluid.Program.parse_from_string(fresh[0].serialize_to_string())
    fluid.global_scope()["w"] = W
    names = [loss.name, "x@GRAD", "w@GRAD"]
    found = fluid.Executor().run(program, feed, names)
    others = {key: one for key, one in feed.items() if key != "x"}
    value, slopes = jax.value_and_grad(lambda x, w: function(x, w, **others), (0, 1))(feed["x"], W)
    for one, wanted in zip(found, (value, *slopes), strict=True):
        np.testing.assert_allclose(np.reshape(one, wanted.shape), wanted, rtol=2e-5, atol=2e-6)


def test_gradients_of_a_loop_see_what_it_drops(fresh: Any) -> None:
    """The loop is composed again for the gradient of its first state, a constant."""
    one = fluid.initializer.Constant(1.0)
    w = layers.create_parameter([64], "float32", name="w", default_initializer=one)
    i, n = counter(2)
    start = layers.fill_constant([64], "float32", 1.0)
    start.stop_gradient = False
    _, h = nn.while_loop(
        lambda i, h: i < n, lambda i, h: [i + 1, h * layers.dropout(w, 0.3)], [i, start]
    )
    slopes = fluid.gradients(layers.reduce_sum(h), [w, start])
    fluid.global_scope()["w"] = np.ones(64, np.float32)
    kept, *slopes = fluid.Executor().run(fresh[0], {}, [h, *slopes])
    assert 0 < kept.sum() < 64
    np.testing.assert_allclose(slopes[1], kept)
    assert 0 < slopes[0].sum() <= 128
    np.testing.assert_array_equal(slopes[0][kept > 0], 2.0)


# Records -----------------------------------------------------------------------------------------


def test_records_of_branches_are_paddles(fresh: Any) -> None:
    fluid.append_backward(branch())
    program = fresh[0]
    assert "conditional_block logical_not conditional_block cast select_input" in " ".join(
        types(program)
    )
    assert types(program)[-4:] == [
        *("select_output", "conditional_block_grad", "conditional_block_grad", "sum")
    ]
    made = program.desc.blocks[0].ops[-2]
    assert made.inputs["Out@GRAD"] == [f"{one}@GRAD" for one in made.inputs["Out"]]
    assert made.outputs["Cond@GRAD"] == ["@EMPTY@"]
    grads = program.desc.blocks[made.attrs["sub_block"]]
    assert [one.type for one in grads.ops] == ["assign", "tanh_grad", "mul_grad"]
    assert (grads.parent_idx, grads.forward_block_idx) == (0, 1)
    scope = program.global_block().var(made.inputs["Scope"][0])
    assert scope.type is VarKind.STEP_SCOPES


def test_records_of_loops_are_paddles(fresh: Any) -> None:
    fluid.append_backward(over_array())
    program = fresh[0]
    block = program.global_block()
    array = next(one for one in block.vars.values() if one.type is VarKind.LOD_TENSOR_ARRAY)
    slope = f"{array.name}@GRAD"
    assert (array.shape, block.var(slope).type) == ((-1, 2), VarKind.LOD_TENSOR_ARRAY)
    made = next(op for op in block.ops if op.type == "while_grad")
    assert made.attrs["original_output_grad"] == made.inputs["Out@GRAD"] == [slope]
    slopes = dict(zip(made.inputs["X"], made.outputs["X@GRAD"], strict=True))
    assert (slopes[array.name], slopes["w"]) == (slope, "w@GRAD")
    assert set(slopes.values()) == {slope, "w@GRAD", "@EMPTY@"}
    assert types(program, made.attrs["sub_block"]) == [
        *("read_from_array", "increment", "elementwise_add_grad", "tanh_grad", "mul_grad"),
        *("sum", "write_to_array"),
    ]


def test_records_of_recurrences_are_paddles(fresh: Any) -> None:
    fluid.append_backward(recurrence())
    ops = fresh[0].desc.blocks[0].ops
    forward = next(op for op in ops if op.type == "recurrent")
    made = next(op for op in ops if op.type == "recurrent_grad")
    assert forward.attrs["ex_states"] == ["static_rnn_0@mem_0"]
    assert forward.inputs["inputs"] == ["x"]
    assert forward.inputs["parameters"] == ["w"]
    assert made.inputs["step_scopes@GRAD"] == made.inputs["step_scopes"]
    assert made.outputs["parameters@GRAD"] == ["w@GRAD"]
    assert types(fresh[0], made.attrs["sub_block"]).count("rnn_memory_helper_grad") == 3


def test_a_learning_rate_by_intervals_is_paddles(fresh: Any) -> None:
    main, startup = fresh
    w = layers.create_parameter([1], "float32", name="w")
    rate = layers.piecewise_decay([1, 2], [0.5, 0.25, 0.125])
    fluid.optimizer.SGD(rate).minimize(layers.reduce_sum(w))
    assert types(main).count("conditional_block") == 3
    executor = fluid.Executor()
    executor.run(startup)
    rates = [executor.run(main, {}, [rate])[0].item() for _ in range(4)]
    assert rates == [0.5, 0.25, 0.125, 0.125]


# Training ----------------------------------------------------------------------------------------


def test_a_model_with_a_loop_learns_and_is_saved(fresh: Any, tmp_path: Any) -> None:
    main, startup = fresh
    x, y = fluid.data("x", [4, None, 2]), fluid.data("y", [None, 3])
    rnn = layers.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        before = rnn.memory(shape=[-1, 3], batch_ref=now)
        state = layers.fc([now, before], 3, act="tanh")
        rnn.update_memory(before, state)
        rnn.step_output(state)
    last = rnn()[3]
    larger = layers.reduce_mean(last) > 5.0
    out = nn.cond(larger, lambda: last * 0.1, lambda: layers.fc(last, 3))
    loss = layers.mean(layers.square_error_cost(out, y))
    fluid.optimizer.Adam(0.05).minimize(loss)
    executor = fluid.Executor()
    executor.run(startup)
    feed = {"x": SERIES, "y": np.ones((3, 3), np.float32)}
    losses = [executor.run(main, feed, [loss])[0].item() for _ in range(20)]
    assert losses[-1] < 0.2 * losses[0]

    fluid.io.save_inference_model(tmp_path / "model", ["x"], [out], executor, main)
    test = main.clone(for_test=True)
    wanted = executor.run(test, feed, [out.name])[0]
    with fluid.scope_guard(fluid.Scope()):
        program, _, targets = fluid.io.load_inference_model(tmp_path / "model", executor)
        assert program.num_blocks == 4
        found = executor.run(program, {"x": SERIES}, targets)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_gradients_of_a_loop_need_a_bound_that_a_program_may_have(fresh: Any) -> None:
    x, w = given()
    i, n = layers.zeros([1], "int64"), fluid.data("n", [1], "int64")
    _, h = nn.while_loop(
        lambda i, h: i < n, lambda i, h: [i + 1, layers.mul(h, w)], [i, layers.assign(x)]
    )
    loss = layers.reduce_sum(h)
    slopes = fluid.gradients(loss, [x, w])
    fluid.global_scope()["w"] = W
    feed = {"x": X, "n": np.array([2])}
    with pytest.raises(PaddleError, match="max_steps"):
        fluid.Executor().run(fresh[0], feed, slopes)
    fresh[0].max_steps = 4
    found = fluid.Executor().run(fresh[0], feed, slopes)
    wanted = jax.grad(lambda x, w: (x @ w @ w).sum(), (0, 1))(X, W)
    for one, each in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, each, rtol=1e-5)


def test_second_derivatives_of_a_loop_are_those_of_its_graph(fresh: Any) -> None:
    loss = over_array()
    slope = fluid.gradients(loss, fresh[0].global_block().var("w"))[0]
    with pytest.raises(PaddleError, match=r"while_grad: .* so\.grad\(program\.to_symbol"):
        fluid.gradients(slope, fresh[0].global_block().var("w"))
    kinds = {"x": ((3, 2), "float32"), "w": ((2, 2), "float32")}
    graph = fresh[0].to_symbol([slope], kinds)
    second = so.grad(so.sum(so.square(graph)), so.var("w", (2, 2), "float32"))
    inner = jax.grad(over_array_in_jax, 1)
    wanted = jax.jit(jax.grad(lambda w: (inner(X, w) ** 2).sum()))(W)
    np.testing.assert_allclose(second.eval(x=X, w=W), wanted, rtol=2e-4)


# Errors ------------------------------------------------------------------------------------------


def bad_structure() -> Any:
    x, _ = given()
    return nn.cond(layers.reduce_sum(x) > 0.0, lambda: (x, x), lambda: x)


def bad_condition() -> Any:
    x, _ = given()
    return nn.cond(x, lambda: x, lambda: x)


def bad_loop() -> Any:
    i, n = counter(3)
    return nn.while_loop(lambda i: i < n, lambda i: [i, i], [i])


def bad_memory() -> Any:
    rnn = layers.StaticRNN()
    with rnn.step():
        rnn.step_input(fluid.data("x", [4, None, 2]))
        rnn.memory()


def no_output() -> Any:
    rnn = layers.StaticRNN()
    with rnn.step():
        rnn.step_input(fluid.data("x", [4, None, 2]))
    return rnn()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (bad_structure, "cond: both functions must return the same structure"),
        (bad_condition, "cond: the condition must be a boolean with one entry"),
        (bad_loop, "while_loop: body must return variables in the structure of loop_vars"),
        (bad_memory, "StaticRNN.memory: init must be given"),
        (lambda: layers.switch_case(counter(1)[0], {}), "switch_case: functions must have"),
        (lambda: layers.case([]), "case: there must be pairs"),
        (lambda: layers.array_read(counter(1)[0], counter(1)[0]), "must be a tensor array"),
        (no_output, "there must be an output"),
        (lambda: layers.Switch().default(), "a case must come before it"),
    ],
)
def test_mistakes_are_told(fresh: Any, build: Any, message: str) -> None:
    with pytest.raises(PaddleError, match=message):
        build()
    assert fresh[0].current_block().idx == 0


def test_a_gradient_operator_with_a_block_is_not_made_from_a_call_alone() -> None:
    op = framework.OpDesc("while", {"X": ["x"]}, {"Out": ["x"]}, {"sub_block": 1})
    op.attr_types["sub_block"] = framework.AttrType.BLOCK
    with pytest.raises(PaddleError, match="append_backward"):
        op.gradient_ops()
