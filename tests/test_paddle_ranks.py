"""DynamicRNN and IfElse: records as those of Paddle, values and gradients as those of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from paddle_scripts import new_script

from symop.interop.paddle import fluid
from symop.interop.paddle.errors import PaddleError

layers = fluid.layers
RNG = np.random.default_rng(7)
LENGTHS = ([2, 1, 3], [2, 2, 2], [1, 5, 0])


def drawn(*shape):
    return RNG.normal(size=shape).astype(np.float32) * 0.5


X, BOOT, STATIC, ROWS = drawn(6, 3), drawn(3, 4), drawn(5, 2), drawn(6, 3)


@pytest.fixture(autouse=True)
def fresh():
    """Each test has programs, names and a scope of its own."""
    with new_script() as programs:
        yield programs


def given(name, width, lod_level=0):
    one = fluid.data(name, [None, width], lod_level=lod_level)
    one.stop_gradient = False
    return one


def slopes(main, startup, loss, feed, others=()):
    """The loss, its gradients by what is fed and by parameters, and the parameters."""
    parameters = [one.name for one in main.global_block().all_parameters()]
    fluid.append_backward(loss)
    executor = fluid.Executor()
    executor.run(startup)
    for name in parameters:
        fluid.global_scope()[name] = drawn(*fluid.global_scope()[name].shape)
    names = [f"{one}@GRAD" for one in (*feed, *parameters)]
    program = fluid.Program.parse_from_string(main.serialize_to_string())
    value, *found = executor.run(program, feed, [loss, *names, *others])
    gradients = dict(zip((*feed, *parameters), found, strict=False))
    held = {name: np.asarray(fluid.global_scope()[name]) for name in parameters}
    return value, gradients, held, found[len(gradients) :]


def require_equal(found, reference, arrays):
    value, gradients = found
    np.testing.assert_allclose(value.reshape(()), reference(arrays), rtol=1e-5)
    for name, wanted in jax.jit(jax.grad(reference))(arrays).items():
        np.testing.assert_allclose(gradients[name], wanted, rtol=1e-4, atol=1e-5, err_msg=name)


# DynamicRNN --------------------------------------------------------------------------------------


def recurrent():
    x, boot, static = given("x", 3, 1), given("boot", 4), given("static", 2, 1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        step, around = rnn.step_input(x), layers.sequence_pool(rnn.static_input(static), "sum")
        state, factor = rnn.memory(init=boot, need_reorder=True), rnn.memory(shape=[4], value=0.5)
        after = layers.fc([step, state, around, factor], 4, act="tanh")
        rnn.update_memory(state, after)
        rnn.update_memory(factor, layers.scale(factor, 2.0))
        rnn.output(after, factor)
    states, factors = rnn()
    assert states.lod_level == 1
    assert states.shape == (-1, 4)
    cubes = layers.sequence_pool(states * states * states + factors, "sum")
    return layers.reduce_sum(cubes), states


def recurrent_in_jax(lengths, counts):
    def loss(arrays):
        starts, begins = np.cumsum([0, *lengths]), np.cumsum([0, *counts])
        weights = [arrays[f"fc_0.w_{i}"] for i in range(4)]
        total = 0.0
        for i, length in enumerate(lengths):
            state, factor = arrays["boot"][i], jnp.full(4, 0.5)
            around = arrays["static"][begins[i] : begins[i + 1]].sum(0)
            for row in arrays["x"][starts[i] : starts[i] + length]:
                parts = zip((row, state, around, factor), weights, strict=True)
                state = jnp.tanh(sum(a @ w for a, w in parts) + arrays["fc_0.b_0"])
                total += (state**3 + factor).sum()
                factor = factor * 2.0
        return total

    return loss


@pytest.mark.parametrize("lengths", LENGTHS)
def test_dynamic_rnn_equals_jax(fresh, lengths):
    loss, states = recurrent()
    feed = {"x": (X, [lengths]), "boot": BOOT, "static": (STATIC, [[1, 3, 1]])}
    value, gradients, held, (found,) = slopes(*fresh, loss, feed, [states])
    arrays = {"x": X, "boot": BOOT, "static": STATIC, **held}
    require_equal((value, gradients), recurrent_in_jax(lengths, [1, 3, 1]), arrays)
    assert found.shape == (6, 4)


PADDLE_APPENDS = [
    """
    fill_constant lod_rank_table max_sequence_len less_than lod_tensor_to_array
    reorder_lod_tensor_by_rank fill_constant reorder_lod_tensor_by_rank write_to_array
    read_from_array fill_constant_batch_size_like write_to_array while array_to_lod_tensor
    array_to_lod_tensor elementwise_mul elementwise_mul elementwise_add sequence_pool
    reduce_sum fill_constant reduce_sum_grad sequence_pool_grad elementwise_add_grad
    elementwise_mul_grad elementwise_mul_grad lod_tensor_to_array sum lod_tensor_to_array
    while_grad read_from_array read_from_array reorder_lod_tensor_by_rank_grad
    reorder_lod_tensor_by_rank_grad array_to_lod_tensor
    """,
    """
    read_from_array shrink_rnn_memory sequence_pool read_from_array shrink_rnn_memory
    read_from_array shrink_rnn_memory mul mul mul mul sum elementwise_add tanh scale
    write_to_array write_to_array increment write_to_array write_to_array less_than
    """,
    """
    read_from_array read_from_array increment read_from_array read_from_array scale sum
    tanh_grad elementwise_add_grad scale scale scale scale mul_grad mul_grad mul_grad
    mul_grad sum shrink_rnn_memory_grad write_to_array shrink_rnn_memory_grad write_to_array
    sequence_pool_grad shrink_rnn_memory_grad write_to_array
    """,
]
"""The operators of the blocks of this model and its gradients in Paddle 1.8.5."""


def test_dynamic_rnn_appends_what_paddle_appends(fresh):
    loss, _ = recurrent()
    fluid.append_backward(loss)
    found = [[op.type for op in block.ops] for block in fresh[0].desc.blocks]
    assert found == [one.split() for one in PADDLE_APPENDS]


# IfElse ------------------------------------------------------------------------------------------


def branches(bound):
    x = given("x", 3)
    y = layers.fc(x, 3)
    sums = layers.reduce_sum(x, dim=1, keep_dim=True)
    chosen = layers.IfElse(layers.less_than(sums, layers.fill_constant([1], "float32", bound)))
    with chosen.true_block():
        chosen.output(layers.square(chosen.input(y)), chosen.input(x))
    with chosen.false_block():
        chosen.output(layers.fc(chosen.input(y), 3, act="tanh"), chosen.input(x) * 2.0)
    first, second = chosen()
    return layers.reduce_sum(first * second), first


def branches_in_jax(bound):
    def loss(arrays):
        x = arrays["x"]
        y = x @ arrays["fc_0.w_0"] + arrays["fc_0.b_0"]
        other = jnp.tanh(y @ arrays["fc_1.w_0"] + arrays["fc_1.b_0"])
        holds = np.asarray(ROWS).sum(1, keepdims=True) < bound
        return (jnp.where(holds, y * y, other) * jnp.where(holds, x, 2.0 * x)).sum()

    return loss


@pytest.mark.parametrize("bound", [0.1, 100.0, -100.0], ids=["some", "all", "none"])
def test_branches_of_rows_equal_jax(fresh, bound):
    loss, rows = branches(bound)
    value, gradients, held, (found,) = slopes(*fresh, loss, {"x": ROWS}, [rows])
    arrays = {"x": ROWS, **held}
    kept = {
        name: np.zeros_like(arrays[name]) if one is None else one for name, one in gradients.items()
    }
    require_equal((value, kept), branches_in_jax(bound), arrays)
    assert found.shape == (6, 3)


def test_one_branch_gives_its_rows_alone(fresh):
    x = given("x", 3)
    sums = layers.reduce_sum(x, dim=1, keep_dim=True)
    chosen = layers.IfElse(layers.less_than(sums, layers.fill_constant([1], "float32", 0.0)))
    with chosen.true_block():
        chosen.output(chosen.input(x))
    (found,) = chosen()
    (rows,) = fluid.Executor().run(fresh[0], {"x": ROWS}, [found])
    np.testing.assert_array_equal(rows, ROWS[ROWS.sum(1) < 0])


# Mistakes ----------------------------------------------------------------------------------------


def rnn_without_sequence():
    with layers.DynamicRNN().block():
        pass


def rnn_memory_first():
    rnn = layers.DynamicRNN()
    with rnn.block():
        rnn.memory(shape=[4])


def rnn_other_memory():
    rnn = layers.DynamicRNN()
    with rnn.block():
        x = rnn.step_input(given("x", 3, 1))
        rnn.update_memory(x, x)


def rnn_twice():
    rnn = layers.DynamicRNN()
    for _ in range(2):
        with rnn.block():
            rnn.output(rnn.step_input(given("x", 3, 1)))


def rnn_without_output():
    rnn = layers.DynamicRNN()
    with rnn.block():
        rnn.step_input(given("x", 3, 1))
    rnn()


def choice():
    return layers.IfElse(layers.less_than(given("a", 1), given("b", 1)))


def nested():
    one = choice()
    with one.true_block(), one.false_block():
        pass


def empty():
    with choice().true_block():
        pass


def unused():
    choice()()


def uneven():
    one, x = choice(), given("x", 3)
    with one.true_block():
        one.output(one.input(x))
    with one.false_block():
        one.output(one.input(x), one.input(x))
    one()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (rnn_without_sequence, r"DynamicRNN.block: step_input must be called before"),
        (rnn_memory_first, r"DynamicRNN.memory: step_input must be called before"),
        (rnn_other_memory, r"update_memory: ex_mem must be a memory"),
        (rnn_twice, r"DynamicRNN.block: it must be called once"),
        (rnn_without_output, r"DynamicRNN: there must be an output after block\(\)"),
        (lambda: layers.DynamicRNN().output(), r"output: it must be called inside of block\(\)"),
        (nested, "IfElse: a block must be outside of the other one"),
        (empty, "IfElse: a block must have outputs, got none"),
        (uneven, "IfElse: both blocks must have as many outputs, got 1 and 2"),
        (
            lambda: choice().input(given("x", 3)),
            "IfElse.input: it must be called inside of a block",
        ),
        (unused, "IfElse: results must be asked for after a block"),
    ],
)
def test_mistakes_are_told(fresh, build, message):
    with pytest.raises(PaddleError, match=message):
        build()
    assert fresh[0].current_block().idx == 0


# Beam search -------------------------------------------------------------------------------------


def test_a_beam_of_one_in_a_loop_takes_the_best_word_of_each_step(fresh):
    """The words and scores of each step are in tensor arrays, whose values the search needs."""
    table = fluid.data("table", [5, 5])
    first, zero = (
        fluid.data("first", [None, 1], "int64", 2),
        fluid.data("zero", [None, 1], lod_level=2),
    )
    step, last = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 3)
    words, scores = layers.array_write(first, step), layers.array_write(zero, step)
    go_on = layers.less_than(step, last)
    with layers.While(go_on).block():
        word, score = layers.array_read(words, step), layers.array_read(scores, step)
        row = layers.lod_reset(layers.gather(table, word), score)
        best, which = layers.topk(layers.softmax(row), 2)
        total = layers.elementwise_add(layers.log(best), layers.reshape(score, [-1]), axis=0)
        word, score = layers.beam_search(word, score, which, total, beam_size=1, end_id=4)
        layers.increment(step)
        layers.array_write(word, step, words)
        layers.array_write(score, step, scores)
        layers.less_than(step, last, cond=go_on)
    found = layers.beam_search_decode(words, scores, beam_size=1, end_id=4)
    assert [one.lod_level for one in found] == [2, 2]

    values = drawn(5, 5)
    values[:, 4] = -9  # nothing ends early
    lengths = [[1, 1], [1, 1]]
    feed = {
        "table": values,
        "first": (np.array([[0], [1]]), lengths),
        "zero": (np.zeros((2, 1), np.float32), lengths),
    }
    sentences, _ = fluid.Executor().run(fresh[0], feed, list(found), return_numpy=False)
    wanted = []
    for start in (0, 1):
        wanted.append(start)
        for _ in range(3):
            wanted.append(int(values[wanted[-1]].argmax()))
    assert np.asarray(sentences.data).ravel().tolist() == wanted
    np.testing.assert_array_equal(sentences.lod[1], [0, 4, 8])
