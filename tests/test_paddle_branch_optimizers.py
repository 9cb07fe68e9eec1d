"""Scripts of Paddle that call optimizers in branches: their records, updates and mistakes.

``scripts_with_branches.npz`` holds, for the scripts below, the program that Paddle 1.8.5 built, and
the parameters before and after four steps, with what was fed and fetched.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from paddle_scripts import new_script

from symop.interop.paddle import fluid
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import OpDesc, parse

layers = fluid.layers
SGD = fluid.optimizer.SGD
RECORDED = Path(__file__).parent / "data/paddle/scripts_with_branches.npz"
RNG = np.random.default_rng(3)
FEED = {
    "x": RNG.normal(size=(5, 4)).astype(np.float32),
    "y": RNG.normal(size=(5, 1)).astype(np.float32),
    "flag": np.ones(1, np.float32),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[tuple[Any, Any]]:
    """Each test has programs, names and a scope of its own."""
    with new_script() as programs:
        yield programs


# Scripts -----------------------------------------------------------------------------------------


def model() -> tuple[Any, ...]:
    """A hidden layer, its output, the target, a condition, and the number that it depends on."""
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    flag = fluid.data("flag", [1])
    h = layers.fc(x, 3, act="tanh")
    pred = layers.greater_than(flag, layers.fill_constant([1], "float32", 0.0))
    return h, layers.fc(h, 1), y, pred, flag


def squares(out: Any, y: Any) -> Any:
    return layers.mean(layers.square_error_cost(out, y))


def minimizing(optimizer: Any, loss: Any) -> Callable[[], Any]:
    def branch() -> Any:
        optimizer.minimize(loss)
        return loss

    return branch


def loss_before() -> Any:
    _, out, y, pred, _ = model()
    loss = squares(out, y)
    first, second = SGD(0.1), fluid.optimizer.Momentum(0.05, 0.9)
    return layers.case([(pred, minimizing(first, loss))], minimizing(second, loss))


def append_backward() -> Any:
    h, out, _, pred, _ = model()

    def branch() -> Any:
        loss = layers.mean(layers.square(layers.fc(h, 2)))
        fluid.append_backward(loss)
        return loss

    return layers.cond(pred, branch, lambda: layers.mean(out))


def schedule() -> Any:
    _, out, y, pred, _ = model()
    rate = layers.piecewise_decay([1, 2], [0.5, 0.25, 0.125])
    loss = squares(out, y)
    return layers.cond(pred, minimizing(SGD(rate), loss), lambda: loss * 1.0)


def switch() -> Any:
    _, out, y, pred, _ = model()
    loss = squares(out, y)
    with layers.Switch() as chain:
        with chain.case(pred):
            SGD(0.1).minimize(loss)
        with chain.default():
            fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    return loss


def ifelse() -> Any:
    h, _, y, _, _ = model()
    zeros = layers.fill_constant_batch_size_like(y, [-1, 1], "float32", 0.0)
    rows = layers.IfElse(layers.less_than(y, zeros))
    with rows.true_block():
        a = rows.input(h)
        SGD(0.1).minimize(layers.mean(layers.fc(a, 1)))
        rows.output(layers.fc(a, 1))
    with rows.false_block():
        rows.output(layers.fc(rows.input(h), 1))
    return layers.mean(rows()[0])


def decayed() -> Any:
    _, out, y, pred, _ = model()
    loss = squares(out, y)
    optimizer = SGD(0.1, regularization=fluid.regularizer.L2Decay(0.3))
    return layers.cond(pred, minimizing(optimizer, loss), lambda: loss * 1.0)


def shared() -> Any:
    """The loss reads the hidden layer in the branch, and through the output around it."""
    h, out, _, pred, _ = model()

    def branch() -> Any:
        loss = layers.mean(layers.square(out) * h)
        SGD(0.1).minimize(loss)
        return loss

    return layers.cond(pred, branch, lambda: layers.mean(out))


def nested() -> Any:
    """The loss depends on a branch inside of the one that minimizes it."""
    h, out, y, pred, flag = model()

    def branch() -> Any:
        large = layers.greater_than(flag, layers.fill_constant([1], "float32", 2.0))
        inner = layers.cond(large, lambda: layers.tanh(out), lambda: out * 2.0)
        loss = squares(inner, y)
        SGD(0.1).minimize(loss)
        return loss

    return layers.cond(pred, branch, lambda: layers.mean(h))


def trained_outside_too() -> Any:
    h, out, y, pred, _ = model()
    SGD(0.05).minimize(squares(out, y))

    def branch() -> Any:
        loss = layers.mean(layers.square(layers.fc(h, 1)))
        SGD(0.1).minimize(loss)
        return loss

    return layers.cond(pred, branch, lambda: layers.mean(h))


# Records and steps -------------------------------------------------------------------------------


def filled(slots: dict[str, list[str]]) -> dict[str, list[str]]:
    named = {slot: [one for one in names if one != "@EMPTY@"] for slot, names in slots.items()}
    return {slot: names for slot, names in named.items() if names}


def outline(op: OpDesc) -> tuple[Any, ...]:
    """What a record says; what a block reads is a set, whose order in Paddle is that of hashes."""
    inputs, outputs = filled(op.inputs), filled(op.outputs)
    if "sub_block" in op.attrs:
        inputs["Input"] = sorted(inputs.get("Input", ()))
        outputs["Input@GRAD"] = sorted(outputs.get("Input@GRAD", ()))
    kept = (op.attrs.get("op_role", 0), op.attrs.get("op_role_var") or [])
    return (op.type, inputs, outputs, *kept, op.attrs.get("sub_block"))


@pytest.mark.parametrize("build", [loss_before, append_backward, schedule, switch, ifelse])
def test_records_and_steps_are_paddles(fresh: Any, build: Callable[[], Any]) -> None:
    with np.load(RECORDED) as file:
        arrays = {
            key.partition("|")[2]: file[key] for key in file if key.startswith(build.__name__)
        }

    def part(name: str) -> dict[str, Any]:
        return {key.split("|")[1]: one for key, one in arrays.items() if key.startswith(f"{name}|")}

    main, startup = fresh
    loss = build()
    expected = parse(arrays["program"].tobytes())
    for block, other in zip(main.desc.blocks, expected.blocks, strict=True):
        places = (other.parent_idx, other.forward_block_idx)
        assert (block.parent_idx, block.forward_block_idx) == places
        assert [outline(op) for op in block.ops] == [outline(op) for op in other.ops]
        assert block.vars.keys() == other.vars.keys()
    executor = fluid.Executor()
    executor.run(startup)
    fluid.global_scope().update(part("first"))
    saved = fluid.Program.parse_from_string(main.serialize_to_string())
    for i in range(4):
        # What is saved after two steps goes on in the same way.
        (found,) = executor.run(main if i < 2 else saved, part(f"feed{i}"), [loss.name])
        np.testing.assert_allclose(found, *part(f"loss{i}").values(), rtol=2e-5)
    for name, one in part("last").items():
        found = fluid.global_scope()[name]
        np.testing.assert_allclose(found, one, rtol=1e-5, atol=1e-6, err_msg=name)


def step(fresh: Any, loss: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the parameters before and after a step."""
    main, startup = fresh
    executor, scope = fluid.Executor(), fluid.global_scope()
    executor.run(startup)
    names = [one.name for one in main.all_parameters()]
    before = {name: np.array(scope[name]) for name in names}
    executor.run(main, FEED, [loss])
    return before, {name: np.array(scope[name]) for name in names}


def forward(values: dict[str, Any]) -> tuple[Any, Any]:
    h = jnp.tanh(FEED["x"] @ values["fc_0.w_0"] + values["fc_0.b_0"])
    return h, h @ values["fc_1.w_0"] + values["fc_1.b_0"]


def test_contributions_of_both_blocks_are_added(fresh: Any) -> None:
    before, after = step(fresh, shared())

    def loss(values: dict[str, Any]) -> Any:
        h, out = forward(values)
        return (out**2 * h).mean()

    for name, slope in jax.grad(loss)(before).items():
        np.testing.assert_allclose(after[name], before[name] - 0.1 * slope, rtol=1e-5, atol=1e-6)


def test_a_branch_inside_of_the_one_that_minimizes(fresh: Any) -> None:
    before, after = step(fresh, nested())
    slopes = jax.grad(lambda values: ((forward(values)[1] * 2 - FEED["y"]) ** 2).mean())(before)
    for name, slope in slopes.items():
        np.testing.assert_allclose(after[name], before[name] - 0.1 * slope, rtol=1e-5, atol=1e-6)


def test_parameters_that_a_loss_outside_trains_too(fresh: Any) -> None:
    before, after = step(fresh, trained_outside_too())

    def outside(values: dict[str, Any]) -> Any:
        return ((forward(values)[1] - FEED["y"]) ** 2).mean()

    def inside(values: dict[str, Any]) -> Any:
        return ((forward(values)[0] @ values["fc_2.w_0"] + values["fc_2.b_0"]) ** 2).mean()

    first, second = jax.grad(outside)(before), jax.grad(inside)(before)
    for name, value in before.items():
        wanted = value - 0.05 * first[name] - 0.1 * second[name]
        np.testing.assert_allclose(after[name], wanted, rtol=1e-5, atol=1e-6, err_msg=name)


def test_parameters_with_rates_and_terms_of_their_own_in_branches(fresh: Any) -> None:
    main, startup = fresh
    x, y, flag = fluid.data("x", [None, 4]), fluid.data("y", [None, 1]), fluid.data("flag", [1])
    term = fluid.regularizer.L1Decay(0.05)
    weight = fluid.ParamAttr(name="w", learning_rate=2.0, regularizer=term)
    loss = squares(layers.fc(x, 1, param_attr=weight, bias_attr=fluid.ParamAttr(name="b")), y)
    pred = layers.greater_than(flag, layers.fill_constant([1], "float32", 0.0))
    layers.cond(pred, minimizing(SGD(0.1), loss), lambda: loss * 1.0)
    saved = fluid.Program.parse_from_string(main.serialize_to_string())
    executor, scope = fluid.Executor(), fluid.global_scope()
    executor.run(startup)
    before = np.array(scope["w"])
    executor.run(saved, FEED, [])
    slope = jax.grad(lambda w: ((FEED["x"] @ w - FEED["y"]) ** 2).mean())(before)
    wanted = before - 0.2 * (slope + 0.05 * np.sign(before))
    np.testing.assert_allclose(scope["w"], wanted, rtol=1e-5, atol=1e-6)


def test_updates_see_what_the_branch_drops(fresh: Any) -> None:
    main, startup = fresh
    flag = fluid.data("flag", [1])
    pred = layers.greater_than(flag, layers.fill_constant([1], "float32", 0.0))
    one = fluid.initializer.Constant(1.0)
    w = layers.create_parameter([64], "float32", name="w", default_initializer=one)

    def branch() -> Any:
        kept = layers.dropout(w, 0.5)
        SGD(0.1).minimize(layers.reduce_sum(kept))
        return kept

    out = layers.cond(pred, branch, lambda: w * 0.0)
    executor = fluid.Executor()
    executor.run(startup)
    (kept,) = executor.run(main, {"flag": FEED["flag"]}, [out])
    assert 0 < kept.sum() < 64
    np.testing.assert_allclose(fluid.global_scope()["w"], 1 - 0.1 * kept, rtol=1e-6)


def test_a_branch_that_minimizes_is_saved_for_inference(fresh: Any, tmp_path: Any) -> None:
    main, startup = fresh
    out = loss_before()
    executor = fluid.Executor()
    executor.run(startup)
    (wanted,) = executor.run(main.clone(for_test=True), FEED, [out.name])
    fluid.io.save_inference_model(tmp_path, ["x", "y", "flag"], [out], executor, main)
    with fluid.scope_guard(fluid.Scope()):
        program, _, targets = fluid.io.load_inference_model(tmp_path)
        roles = {op.attrs.get("op_role", 0) for block in program.desc.blocks for op in block.ops}
        assert roles.isdisjoint({1, 2})
        before = dict(fluid.global_scope())
        (found,) = fluid.Executor().run(program, FEED, targets)
        assert all(np.array_equal(fluid.global_scope()[name], one) for name, one in before.items())
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_terms_of_regularizers_are_added_in_branches(fresh: Any) -> None:
    before, after = step(fresh, decayed())
    slopes = jax.grad(lambda values: ((forward(values)[1] - FEED["y"]) ** 2).mean())(before)
    for name, slope in slopes.items():
        wanted = before[name] - 0.1 * (slope + 0.3 * before[name])
        np.testing.assert_allclose(after[name], wanted, rtol=1e-5, atol=1e-6)


# Mistakes ----------------------------------------------------------------------------------------


def in_two_branches() -> Any:
    _, out, y, pred, _ = model()
    loss = squares(out, y)
    return layers.cond(
        pred, lambda: layers.cond(pred, minimizing(SGD(0.1), loss), lambda: loss), lambda: loss
    )


def in_loop() -> Any:
    _, out, y, pred, _ = model()
    loss = squares(out, y)
    with layers.While(pred).block():
        SGD(0.1).minimize(loss)


def clipped() -> Any:
    _, out, y, pred, _ = model()
    loss = squares(out, y)
    clip = fluid.clip.GradientClipByGlobalNorm(0.5)
    return layers.cond(pred, minimizing(SGD(0.1, grad_clip=clip), loss), lambda: loss)


def through_another() -> Any:
    _, out, y, pred, _ = model()
    z = layers.cond(pred, lambda: layers.tanh(out), lambda: out * 2.0)
    loss = squares(z, y)
    return layers.cond(pred, minimizing(SGD(0.1), loss), lambda: loss)


def twice() -> Any:
    _, out, y, pred, _ = model()
    loss = squares(out, y)

    def branch() -> Any:
        SGD(0.1).minimize(loss)
        SGD(0.1).minimize(layers.mean(out))
        return loss

    return layers.cond(pred, branch, lambda: loss)


def then_outside() -> Any:
    _, out, y, pred, _ = model()

    def branch() -> Any:
        loss = squares(out, y)
        SGD(0.1).minimize(loss)
        return loss

    SGD(0.2).minimize(layers.mean(layers.cond(pred, branch, lambda: layers.mean(out))))


def gradients_inside() -> Any:
    h, out, _, pred, _ = model()
    return layers.cond(
        pred, lambda: fluid.gradients(layers.mean(out), h)[0], lambda: layers.mean(out)
    )


def updates_outside() -> Any:
    _, out, y, pred, _ = model()
    loss, found = squares(out, y), []

    def branch() -> Any:
        found.extend(fluid.append_backward(loss))
        return loss

    layers.cond(pred, branch, lambda: loss)
    SGD(0.1).apply_gradients(found)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (in_two_branches, "append_backward: it must be called outside of loops, and of branches"),
        (in_loop, "append_backward: it must be called outside of loops, and of branches"),
        (clipped, "minimize: gradients in a branch must not be clipped"),
        (through_another, "in a branch, the loss must depend on no branch or loop around"),
        (twice, "append_backward: it must be called once in a branch"),
        (then_outside, "a loss must not depend on a branch that has gradients of its own"),
        (gradients_inside, "gradients: it must be called outside of branches and loops"),
        (updates_outside, "apply_gradients: it must be called in the branch"),
    ],
)
def test_mistakes_are_told(fresh: Any, build: Callable[[], Any], message: str) -> None:
    with pytest.raises(PaddleError, match=message):
        build()
    assert fresh[0].current_block().idx == 0
