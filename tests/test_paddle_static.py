"""Scripts that build programs of Paddle: layers, gradients, optimizers, files."""

import json
import pathlib
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from paddle_scripts import new_script
from sklearn.datasets import load_digits

import symop as so
from registry import get
from registry.errors import UnknownOperatorError
from registry.table import require
from symop.interop.paddle import fluid, framework, static
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.makers import gradient_ops

SAMPLES = pathlib.Path(__file__).parents[2] / "shared" / "paddle"
PROGRAMS = sorted(one.stem for one in (SAMPLES / "programs").glob("*.json"))
recorded = pytest.mark.skipif(not PROGRAMS, reason="the samples are not on this machine")
layers = fluid.layers
THOROUGH = pytest.mark.thorough


@pytest.fixture(autouse=True)
def fresh():
    """Each test has programs, names and a scope of its own."""
    with new_script(seed=1) as programs:
        yield programs


def rows(desc):
    """The calls of a program's first block, without attributes of the engine and empty slots."""
    return [
        (
            one.type,
            {slot: names for slot, names in one.inputs.items() if names},
            {slot: names for slot, names in one.outputs.items() if names},
            one.attrs.get("op_role"),
            one.attrs.get("op_role_var") or [],
        )
        for one in desc.blocks[0].ops
    ]


def types(desc):
    return {
        name: (one.kind, one.shape, one.dtype, one.persistable, one.lod_level)
        for name, one in desc.blocks[0].vars.items()
        # Paddle's cross_entropy2 remembers a shape in another order.
        if not name.startswith("cross_entropy2_0.tmp_1")
    }


def same_as_recorded(folder, programs):
    for program, file in zip(programs, ("train_program", "startup_program"), strict=True):
        wanted = framework.parse((SAMPLES / folder / f"{file}.pb").read_bytes())
        assert rows(program.desc) == rows(wanted)
        assert types(program.desc).items() >= types(wanted).items()


def values(feed, fetch):
    return fluid.Executor().run(feed=feed, fetch_list=fetch)


# Models ------------------------------------------------------------------------------------------


def mlp():
    image = fluid.data("img", [None, 64])
    label = fluid.data("label", [None, 1], "int64")
    hidden = layers.fc(layers.fc(image, 32, act="relu"), 16, act="tanh")
    logits = layers.fc(hidden, 10)
    probability = layers.softmax(logits)
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, label))
    return loss, layers.accuracy(probability, label), probability


def lenet():
    image = fluid.data("image", [None, 1, 16, 16])
    label = fluid.data("label", [None, 1], "int64")
    x = layers.pool2d(layers.conv2d(image, 6, 5, act="relu"), 2, "max", 2)
    x = layers.conv2d(layers.batch_norm(x), 12, 3, padding=1, bias_attr=False)
    x = layers.pool2d(layers.batch_norm(x, act="relu"), 3, "avg", 2, 1)
    probability = layers.fc(x, 10, act="softmax")
    loss = layers.mean(layers.cross_entropy(probability, label))
    return loss, layers.accuracy(probability, label)


def looked_up(name, rows, columns, table=None, levels=0):
    ids = fluid.data(name, [None, 1], "int64", lod_level=levels)
    return layers.embedding(ids, [rows, columns], is_sparse=True, param_attr=table)


def recommender():
    user = [
        layers.fc(looked_up("user_id", 200, 8, "user_table"), 8),
        layers.fc(looked_up("gender_id", 2, 4, "gender_table"), 4),
        layers.fc(looked_up("age_id", 7, 4, "age_table"), 4),
        layers.fc(looked_up("job_id", 21, 4, "job_table"), 4),
    ]
    left = layers.fc(layers.concat(user, axis=1), 16, act="tanh")
    movie = layers.fc(looked_up("movie_id", 300, 8, "movie_table"), 8)
    category = layers.sequence_pool(looked_up("category_id", 18, 8, levels=1), "sum")
    words = layers.sequence_conv(looked_up("movie_title", 100, 8, levels=1), 8, 3, act="tanh")
    parts = [movie, category, layers.sequence_pool(words, "sum")]
    right = layers.fc(layers.concat(parts, axis=1), 16, act="tanh")
    score = layers.scale(layers.cos_sim(left, right), 5.0)
    target = fluid.data("score", [None, 1])
    return layers.mean(layers.square_error_cost(score, target))


@pytest.fixture(scope="module")
def digits():
    images, labels = load_digits(return_X_y=True)
    return (images / 16).astype("float32"), labels[:, None]


def test_mlp_learns_digits_and_is_saved(fresh, digits, tmp_path):
    main, startup = fresh
    loss, accuracy, probability = mlp()
    test = main.clone(for_test=True)
    fluid.optimizer.SGD(0.5).minimize(loss)
    images, labels = digits
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(startup)
    for _ in range(4):
        for i in range(0, 1500, 100):
            feed = {"img": images[i : i + 100], "label": labels[i : i + 100]}
            executor.run(main, feed, [loss])
    feed = {"img": images[1500:], "label": labels[1500:]}
    found, wanted = executor.run(test, feed, [accuracy, probability])
    assert found > 0.8

    fluid.io.save_inference_model(tmp_path / "model", ["img"], [probability], executor, main)
    fluid.save(main, tmp_path / "all" / "point")
    kept = {name: np.asarray(one) for name, one in fluid.global_scope().items()}
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, targets = fluid.io.load_inference_model(tmp_path / "model", executor)
        again = executor.run(program, {feeds[0]: images[1500:]}, targets)[0]
        np.testing.assert_allclose(again, wanted, rtol=1e-6)
        fluid.load(main, tmp_path / "all" / "point")
        for name, one in kept.items():
            np.testing.assert_array_equal(fluid.global_scope()[name], one)


@recorded
def test_mlp_is_paddles(fresh):
    loss, _, _ = mlp()
    fluid.optimizer.SGD(0.1).minimize(loss)
    same_as_recorded("p185_digits_mlp", fresh)


@recorded
def test_lenet_is_paddles(fresh):
    loss, _ = lenet()
    decay = fluid.regularizer.L2Decay(0.01)
    fluid.optimizer.Momentum(0.05, 0.9, regularization=decay).minimize(loss)
    same_as_recorded("p185_lenet_bn", fresh)


@recorded
def test_recommender_is_paddles(fresh):
    fluid.optimizer.SGD(0.05).minimize(recommender())
    same_as_recorded("p185_recommender_sparse", fresh)


def test_lenet_learns_with_momentum(fresh, digits):
    main, startup = fresh
    loss, _ = lenet()
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    executor = fluid.Executor()
    executor.run(startup)
    images = digits[0][:200].reshape(-1, 1, 8, 8).repeat(2, axis=2).repeat(2, axis=3)
    feed = {"image": images, "label": digits[1][:200]}
    mean = np.asarray(fluid.global_scope()["batch_norm_0.w_1"])
    losses = [executor.run(main, feed, [loss])[0].item() for _ in range(15)]
    assert losses[-1] < 0.3 * losses[0]
    assert not np.allclose(mean, fluid.global_scope()["batch_norm_0.w_1"])


def test_recommender_learns_with_rows_of_tables(fresh):
    main, startup = fresh
    loss = recommender()
    fluid.optimizer.SGD(0.05).minimize(loss)
    kind = main.global_block().var("user_table@GRAD").type
    assert kind is framework.VarKind.SELECTED_ROWS
    rng = np.random.default_rng(0)
    counts = {"user_id": 200, "gender_id": 2, "age_id": 7, "job_id": 21, "movie_id": 300}
    feed = {key: rng.integers(0, n, (4, 1)) for key, n in counts.items()}
    feed["category_id"] = (rng.integers(0, 18, (7, 1)), [[2, 1, 3, 1]])
    feed["movie_title"] = (rng.integers(0, 100, (9, 1)), [[1, 4, 2, 2]])
    feed["score"] = rng.uniform(1, 5, (4, 1)).astype("float32")
    executor = fluid.Executor()
    executor.run(startup)
    before = np.asarray(fluid.global_scope()["user_table"])
    losses = [executor.run(main, feed, [loss])[0].item() for _ in range(10)]
    assert losses[-1] < 0.7 * losses[0]
    moved = np.any(before != np.asarray(fluid.global_scope()["user_table"]), axis=1)
    assert set(np.flatnonzero(moved)) == set(feed["user_id"].ravel())


# append_backward ---------------------------------------------------------------------------------

FORWARD = [
    "attention",
    "convnet",
    "emb_mixed_sparse_matmul",
    "emb_shared_sparse",
    "emb_v2_sparse",
    "inplace_relu_overwrite",
    "no_grad_set_activation",
    "opt_adam_sparse",
    "opt_sgd_mixed",
    "parameter_list",
    "reuse_rename",
    "seq_conv",
    "seq_pool_average",
    "seq_pool_max",
    "seq_reverse_concat_slice",
    "split_unused_output",
    "stop_gradient_whole_branch",
    "weight_tied_mlp",
]


def forward_part(name):
    """The forward half of a recorded program, and what Paddle recorded of it."""
    data = (SAMPLES / "programs" / f"{name}.pb").read_bytes()
    desc = framework.parse(zlib.decompress(data))
    about = json.loads((SAMPLES / "programs" / f"{name}.json").read_text())
    declared = about["blocks"][0]["vars"]
    known = declared if isinstance(declared, dict) else {one["name"]: one for one in declared}
    wanted = rows(desc)
    block = desc.blocks[0]
    block.ops = block.ops[: about["n_forward_ops"]]
    used = {one for op in block.ops for one in (*op.input_arg_names, *op.output_arg_names)}
    block.vars = {key: one for key, one in block.vars.items() if key in used or key == "t"}
    # A file has variables in any order, Paddle that in which a script made the parameters.
    made = [key for key, _ in about.get("params_grads", ())]
    block.vars = {key: block.vars[key] for key in made} | block.vars
    for key, one in block.vars.items():
        one.stop_gradient = known[key]["stop_gradient"]
        one.is_parameter = known[key]["is_parameter"]
    return fluid.Program(desc), about, wanted


@recorded
@pytest.mark.parametrize("name", FORWARD)
def test_backward_part_is_paddles(name):
    program, about, wanted = forward_part(name)
    loss = program.global_block().var(about["loss"])
    pairs = fluid.append_backward(loss, **about.get("kw", {}))
    assert rows(program.desc) == [one for one in wanted if one[3] != 2]
    found = [[one.name, gradient.name] for one, gradient in pairs]
    assert found == about.get("params_grads", found)


@recorded
@pytest.mark.parametrize("name", ["double_conv2d", "nth2_mm", "nth2_sub_sq"])
def test_second_gradients_are_paddles(name):
    program, _, wanted = forward_part(name)
    block = program.global_block()
    y = block.var(block.ops[-1].output_arg_names[0])
    for _ in range(2):
        y = fluid.gradients(y, block.var("x"))[0]
    assert rows(program.desc) == wanted


@recorded
def test_gradients_of_two_targets_are_paddles():
    program, _, wanted = forward_part("gradients_two_targets")
    var = program.global_block().var
    targets = [var("tanh_0.tmp_0"), var("square_0.tmp_0")]
    fluid.gradients(targets, [var("x")], [var("t"), None])
    assert rows(program.desc) == wanted


@pytest.mark.parametrize(
    ("function", "reference", "count"),
    [
        (layers.sqrt, jnp.sqrt, 3),
        (lambda x: x * x * x, lambda x: x * x * x, 4),
        pytest.param(layers.tanh, jnp.tanh, 4, marks=THOROUGH),
        pytest.param(lambda x: x / (x + 1.0), lambda x: x / (x + 1.0), 4, marks=THOROUGH),
        pytest.param(
            lambda x: layers.reshape(layers.softmax(x * x) * x, [3, -1]),
            lambda x: jax.nn.softmax(x * x) * x,
            3,
            marks=THOROUGH,
        ),
    ],
)
def test_gradients_of_every_order(fresh, function, reference, count):
    x = fluid.data("x", [None, 3])
    found = [function(x)]
    for _ in range(count):
        found += [fluid.gradients(found[-1], x)[0]]
    given = np.array([[0.5, 1.25, 2.0]], np.float32)
    program = fluid.Program.parse_from_string(fresh[0].serialize_to_string())
    results = fluid.Executor().run(program, {"x": given}, [one.name for one in found[1:]])
    for one in results:
        reference = jax.grad(lambda x, f=reference: f(x).sum())
        with jax.enable_x64(
            True
        ):  # in float32, JAX's own third derivative of the softmax is less exact
            wanted = jax.jit(reference)(given.astype(np.float64))
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [1, 2, 0])
def test_area_under_the_curve_of_all_and_of_the_latest_batches(fresh, steps):
    scores, labels = fluid.data("scores", [None, 2]), fluid.data("labels", [None, 1], "int64")
    found = layers.auc(scores, labels, num_thresholds=100, slide_steps=steps)
    executor = fluid.Executor()
    executor.run(fresh[1])
    rng = np.random.default_rng(0)
    batches = [(rng.integers(0, 100, 20) / 100 + 0.001, rng.integers(0, 2, 20)) for _ in range(3)]

    def area(some):
        values, classes = (np.concatenate(one) for one in zip(*some, strict=True))
        more = values[classes == 1][:, None] - values[classes == 0]
        return ((more > 0) + 0.5 * (more == 0)).mean()

    for i, (values, classes) in enumerate(batches):
        feed = {
            "scores": np.stack([1 - values, values], axis=1).astype("float32"),
            "labels": classes[:, None],
        }
        whole, latest = executor.run(fresh[0], feed, found[:2])
        np.testing.assert_allclose(whole, [area(batches[: i + 1])], rtol=1e-5)
        first = max(0, i + 1 - steps) if steps else 0
        np.testing.assert_allclose(latest, [area(batches[first : i + 1])], rtol=1e-5)
    assert [one.dtype for one in found[2]] == [np.int64] * 4


def test_loss_must_have_one_entry():
    with pytest.raises(PaddleError, match="one entry"):
        fluid.append_backward(layers.square(fluid.data("x", [None, 3])))


# Shapes ------------------------------------------------------------------------------------------


def test_unknown_lengths_are_inferred():
    x = fluid.data("x", [None, 6, 4])
    assert layers.fc(x, 5).shape == (-1, 5)
    assert layers.fc(x, 5, num_flatten_dims=2).shape == (-1, 6, 5)
    assert layers.reshape(x, [0, 3, -1]).shape == (-1, 3, 8)
    assert layers.reshape(x, [-1, 4]).shape == (-1, 4)
    assert layers.transpose(x, [2, 0, 1]).shape == (4, -1, 6)
    assert [one.shape for one in layers.split(x, [1, 3], 2)] == [(-1, 6, 1), (-1, 6, 3)]
    assert x[:, 0].shape == (-1, 4)
    assert x[:, 1:3, -1].shape == (-1, 2)
    assert layers.reduce_mean(x, 1, keep_dim=True).shape == (-1, 1, 4)
    assert layers.mean(x).shape == (1,)


def test_sequences_are_inferred():
    x = fluid.data("x", [None, 3], lod_level=1)
    same = layers.sequence_conv(x, 5)
    pooled = layers.sequence_pool(same, "max")
    assert (same.shape, same.lod_level) == ((-1, 5), 1)
    assert (pooled.shape, pooled.lod_level) == ((-1, 5), 0)


def test_a_call_that_does_not_fit_is_not_appended(fresh):
    x = fluid.data("x", [None, 6])
    count = len(fresh[0].global_block().ops)
    with pytest.raises(PaddleError, match="matmul"):
        layers.matmul(x, fluid.data("y", [5, 2]))
    assert len(fresh[0].global_block().ops) == count


def test_operators_of_python():
    x = fluid.data("x", [3])
    y = fluid.data("y", [3])
    results = [x + y, 1 - x, x * 2.0, x / y, -x, x**y, 2.0 / x, x.astype("int32")]
    results += [x < y, x >= y, x == y]
    a, b = np.array([1.0, 2.0, 4.0], "f"), np.array([2.0, 2.0, 3.0], "f")
    wanted = [a + b, 1 - a, 2 * a, a / b, -a, a**b, 2 / a, a.astype("i"), a < b, a >= b, a == b]
    for found, want in zip(values({"x": a, "y": b}, results), wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-6)
    with pytest.raises(PaddleError, match="cond"):
        bool(x < y)


# Optimizers --------------------------------------------------------------------------------------

OPTIMIZERS = {
    "SGD": {},
    "Momentum": {"momentum": 0.9, "use_nesterov": True},
    "Adam": {},
    "Adamax": {},
    "AdamW": {"weight_decay": 0.01},
    "Adagrad": {},
    "DecayedAdagrad": {},
    "Adadelta": {},
    "RMSProp": {"momentum": 0.5, "centered": True},
    "Ftrl": {"l1": 0.01, "l2": 0.01},
    "Lamb": {},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_lower_a_loss(fresh, name):
    main, startup = fresh
    x = fluid.data("x", [None, 4])
    start = fluid.initializer.Constant(0.5)
    loss = layers.mean(layers.square(layers.fc(x, 2, param_attr=start)))
    getattr(fluid.optimizer, name)(learning_rate=0.1, **OPTIMIZERS[name]).minimize(loss)
    executor = fluid.Executor()
    executor.run(startup)
    feed = {"x": np.eye(4, dtype="float32")}
    losses = [executor.run(main, feed, [loss])[0].item() for _ in range(5)]
    assert losses[-1] < losses[0]
    assert all(np.isfinite(losses))


def test_adadelta_steps_as_paddle_1_8_does(fresh):
    """Paddle 1.8.5 moved two parameters by these steps, for the gradients 0.5 and 2."""
    main, startup = fresh
    zero = fluid.initializer.Constant(0.0)
    w = layers.create_parameter([2], "float32", name="w", default_initializer=zero)
    x = fluid.data("x", [2])
    fluid.optimizer.Adadelta(1.0).minimize(layers.reduce_sum(w * x))
    executor = fluid.Executor()
    executor.run(startup)
    steps = [[0.00632417, 0.00632453], [0.00552416, 0.00552442], [0.00524235, 0.00524259]]
    for i in range(3):
        executor.run(main, {"x": np.float32([0.5, 2.0])}, [])
        wanted = -np.sum(steps[: i + 1], axis=0)
        np.testing.assert_allclose(fluid.global_scope()["w"], wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [
        (lambda: layers.piecewise_decay([2, 4], [1.0, 0.5, 0.1]), [1, 1, 0.5, 0.5, 0.1]),
        (lambda: layers.noam_decay(4, 2), [2**-1.5 / 2, 2**-0.5 / 2, 3**-0.5 / 2]),
        (lambda: layers.exponential_decay(1.0, 2, 0.5, True), [1, 1, 0.5, 0.5]),
        (lambda: layers.natural_exp_decay(1.0, 1, 1.0), [1, np.exp(-1), np.exp(-2)]),
        (lambda: layers.inverse_time_decay(1.0, 1, 1.0), [1, 1 / 2, 1 / 3]),
        (lambda: layers.polynomial_decay(1.0, 4, 0.5), [1, 0.875, 0.75, 0.625, 0.5, 0.5]),
        (lambda: layers.cosine_decay(1.0, 1, 4), [1, (1 + 2**-0.5) / 2, 0.5]),
        (lambda: layers.linear_lr_warmup(1.0, 2, 0.0, 1.0), [0, 0.5, 1, 1]),
    ],
)
def test_learning_rates_follow_the_step(fresh, schedule, wanted):
    main, startup = fresh
    rate = schedule()
    executor = fluid.Executor()
    executor.run(startup)
    found = [executor.run(main, fetch_list=[rate])[0].item() for _ in wanted]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("clip", "wanted"),
    [
        (static.clip.GradientClipByValue(1.0), [1.0, 1.0]),
        (static.clip.GradientClipByNorm(1.0), [0.6, 0.8]),
        (static.clip.GradientClipByGlobalNorm(1.0), [0.6, 0.8]),
    ],
)
def test_gradients_are_clipped(fresh, clip, wanted):
    main, startup = fresh
    zero = fluid.initializer.Constant(0.0)
    w = layers.create_parameter([2], "float32", name="w", default_initializer=zero)
    loss = layers.reduce_sum(w * fluid.data("x", [2]))
    fluid.optimizer.SGD(1.0, grad_clip=clip).minimize(loss)
    executor = fluid.Executor()
    executor.run(startup)
    executor.run(main, {"x": np.array([3.0, 4.0], "f")})
    np.testing.assert_allclose(-np.asarray(fluid.global_scope()["w"]), wanted, rtol=1e-6)


# Parameters and names ----------------------------------------------------------------------------


def test_initializers_fill_parameters(fresh):
    kinds = fluid.initializer
    array = np.arange(6, dtype="float32").reshape(2, 3)
    given = {
        "constant": kinds.Constant(2.0),
        "uniform": kinds.Uniform(0.0, 1.0),
        "normal": kinds.Normal(5.0, 0.1),
        "xavier": kinds.Xavier(),
        "msra": kinds.MSRA(uniform=False),
        "array": kinds.NumpyArrayInitializer(array),
    }
    for name, one in given.items():
        shape = [2, 3] if name == "array" else [50, 40]
        layers.create_parameter(shape, "float32", name=name, default_initializer=one)
    fluid.Executor().run(fresh[1])
    found = {name: np.asarray(fluid.global_scope().find_var(name).get_tensor()) for name in given}
    np.testing.assert_array_equal(found["array"], array)
    assert (found["constant"] == 2).all()
    assert 0 <= found["uniform"].min() < 0.1
    assert 0.9 < found["uniform"].max() <= 1
    assert abs(found["normal"].mean() - 5) < 0.02
    assert 0.9 < np.abs(found["xavier"]).max() / np.sqrt(6 / 90) <= 1
    assert 0.9 < found["msra"].std() / np.sqrt(2 / 50) < 1.1


def test_parameters_are_shared_by_name(fresh):
    x = fluid.data("x", [None, 3])
    layers.fc(layers.fc(x, 3, param_attr="w", bias_attr=False), 3, param_attr="w")
    assert [one.name for one in fresh[0].all_parameters()] == ["w", "fc_1.b_0"]
    with pytest.raises(PaddleError, match="shared"):
        layers.fc(x, 2, param_attr="w")


def test_dropout_is_the_same_in_every_run_of_a_seeded_program(fresh):
    x = fluid.data("x", [100])
    kept = layers.dropout(x, 0.5)
    test = fresh[0].clone(for_test=True)
    feed = {"x": np.ones(100, "f")}
    first, again = (values(feed, [kept])[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert 20 < first.sum() < 80
    found = fluid.Executor().run(test, feed, [kept.name])[0]
    np.testing.assert_allclose(found, np.full(100, 0.5))


def test_gradients_of_layers_of_a_recurrence_see_what_these_drop(fresh):
    """With the identity as weights, the output is what the second layer gets."""
    block = fresh[0].global_block()
    names = ["ih0", "hh0", "ih1", "hh1", "b0", "c0", "b1", "c1"]
    shapes = [[32, 32]] * 4 + [[32]] * 4
    weights = [fluid.data(name, shape) for name, shape in zip(names, shapes, strict=True)]
    inputs = {
        "Input": fluid.data("x", [1, 1, 32]),
        "PreState": fluid.data("state", [2, 1, 32]),
        "WeightList": weights,
    }
    outputs = {"Out": "out", "State": "end", "DropoutState": "drawn", "Reserve": "kept"}
    attrs = {"mode": "RNN_RELU", "num_layers": 2, "hidden_size": 32, "dropout_prob": 0.5}
    block.append_op("rnn", inputs, outputs, attrs)
    (slope,) = fluid.gradients(block.var("out"), weights[2])
    feed = {name: np.zeros(shape, "float32") for name, shape in zip(names, shapes, strict=True)}
    feed |= {"ih0": np.eye(32, dtype="float32"), "ih1": np.eye(32, dtype="float32")}
    feed |= {"x": np.ones((1, 1, 32), "float32"), "state": np.zeros((2, 1, 32), "float32")}
    out, found = values(feed, [block.var("out"), slope])
    assert 0 < (out > 0).sum() < 32
    np.testing.assert_allclose(found, np.outer(out[0, 0] > 0, out[0, 0]))


def test_programs_come_back_from_bytes(fresh):
    loss, _, _ = mlp()
    fluid.optimizer.SGD(0.1).minimize(loss)
    again = fluid.Program.parse_from_string(fresh[0].serialize_to_string())
    assert rows(again.desc) == rows(fresh[0].desc)
    assert "softmax_with_cross_entropy" in str(again)


@pytest.mark.parametrize("module", [fluid, static, layers, fluid.io])
@pytest.mark.parametrize("name", ["dygraph", "DataFeeder", "PyReader", "fleet"])
def test_what_is_not_there_says_what_to_use(module, name):
    with pytest.raises(AttributeError, match="use "):
        getattr(module, name)
    with pytest.raises(AttributeError, match="no attribute"):
        _ = module.something_else
    with pytest.raises(AttributeError, match=r"use .*append_op\('grid_sampler'"):
        _ = module.grid_sampler


# Records of the registry -------------------------------------------------------------------------


def test_grad_op_maker_takes_paddles_records():
    op = framework.OpDesc("elementwise_add", {"X": ["a"], "Y": ["b"]}, {"Out": ["c"]}, {"axis": 1})
    found = get("elementwise_add").grad_op_maker(op, no_grad_set=["b"])
    assert [one.type for one in found] == ["elementwise_add_grad"]
    assert found[0].inputs == {"Out@GRAD": ["c@GRAD"], "X": ["a"], "Y": ["b"]}
    assert found[0].outputs == {"X@GRAD": ["a@GRAD"], "Y@GRAD": []}
    assert found[0].attrs == {"axis": 1}


COMMON = {
    "elementwise_add": ("X Y", "Out"),
    "elementwise_sub": ("X Y", "Out"),
    "elementwise_mul": ("X Y", "Out"),
    "elementwise_div": ("X Y", "Out"),
    "mul": ("X Y", "Out"),
    "matmul": ("X Y", "Out"),
    "matmul_v2": ("X Y", "Out"),
    "relu": ("X", "Out"),
    "tanh": ("X", "Out"),
    "sigmoid": ("X", "Out"),
    "softmax": ("X", "Out"),
    "gelu": ("X", "Out"),
    "mean": ("X", "Out"),
    "sum": ("X", "Out"),
    "scale": ("X", "Out"),
    "dropout": ("X", "Out Mask"),
    "concat": ("X", "Out"),
    "reshape2": ("X", "Out XShape"),
    "transpose2": ("X", "Out XShape"),
    "conv2d": ("Input Filter", "Output"),
    "pool2d": ("X", "Out"),
    "batch_norm": ("X Scale Bias Mean Variance", "Y SavedMean SavedVariance"),
    "layer_norm": ("X Scale Bias", "Y Mean Variance"),
    "lookup_table": ("W Ids", "Out"),
    "softmax_with_cross_entropy": ("Logits Label", "Softmax Loss"),
    "cross_entropy": ("X Label", "Y"),
    "lstm": ("Input Weight Bias", "Hidden Cell"),
}


@pytest.mark.parametrize("name", COMMON)
def test_the_registry_has_makers_of_paddles_names(name):
    inputs, outputs = (
        {slot: [f"{name}.{slot}"] for slot in slots.split()} for slots in COMMON[name]
    )
    found = get(name).grad_op_maker(framework.OpDesc(name, inputs, outputs))
    made = [one for op in found for one in op.output_arg_names]
    first = "Logits" if "Logits" in inputs else next(iter(inputs))
    assert f"{name}.{first}@GRAD" in made


def test_names_of_paddle_keep_their_hints():
    with pytest.raises(UnknownOperatorError, match="Paddle's conv2d is convolution here"):
        require("conv2d")
    with pytest.raises(AttributeError, match="convolution"):
        _ = so.sym.conv2d
    with pytest.raises(PaddleError, match=r"conv2d: .* is convolution here"):
        get("conv2d")(np.ones(3, np.float32))
    with pytest.raises(PaddleError, match="conv2d: the record must be an OpDesc"):
        get("conv2d").grad_op_maker("conv2d")
    with pytest.raises(UnknownOperatorError):
        get("relu_grad")


def test_gradient_operators_of_operators_that_are_others():
    def made(name, inputs, outputs, **attrs):
        op = framework.OpDesc(name, inputs, outputs, attrs)
        return gradient_ops(op, lambda name: f"{name}@GRAD", lambda name: f"{name}@GRAD", ())

    x, y = {"X": ["x"]}, {"Out": ["y"]}
    assert made("fill_constant", {}, y, shape=[1]) == []
    cast = made("cast", x, y, in_dtype=5, out_dtype=6)[0]
    assert (cast.attrs["in_dtype"], cast.attrs["out_dtype"]) == (6, 5)
    sums = made("sum", {"X": ["a", "b"]}, y)
    assert [(one.type, one.outputs["Out"]) for one in sums] == [
        ("scale", ["a@GRAD"]),
        ("scale", ["b@GRAD"]),
    ]
    assert so.interop.paddle is not None


# Runs --------------------------------------------------------------------------------------------


def test_changes_of_a_program_are_seen(fresh):
    x = fluid.data("x", [2])
    y = layers.scale(x, 2.0)
    executor, feed = fluid.Executor(), {"x": np.ones(2, np.float32)}

    def run(**rest):
        return executor.run(feed=feed, fetch_list=[y], **rest)[0][0]

    assert [run(), run()] == [2.0, 2.0]
    call = fresh[0].global_block().ops[0]
    call.attrs["scale"] = 3.0
    assert run() == 3.0
    call.attrs["scale"] = 4.0
    assert run(use_program_cache=True) == 3.0
    assert run(use_program_cache=False) == 4.0
    layers.increment(y, in_place=True)
    assert run() == 5.0
    fresh[0].max_steps = 3
    assert run() == 5.0


def test_a_variable_of_another_shape_is_seen():
    x = fluid.data("x", [2])
    table = layers.create_global_var([1], 1.0, "float32", persistable=True, name="table")
    total = layers.reduce_sum(table) + layers.reduce_sum(x)
    executor, feed = fluid.Executor(), {"x": np.ones(2, np.float32)}
    for size in (1, 1, 3):
        fluid.global_scope()["table"] = np.ones(size, np.float32)
        assert executor.run(feed=feed, fetch_list=[total])[0].item() == 2 + size


@pytest.mark.parametrize("kind", ["group_norm", "instance_norm"])
def test_normalization_by_groups_and_by_channels(kind):
    image = np.random.default_rng(0).normal(size=(2, 4, 3, 3)).astype(np.float32)
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.scope_guard(scope), fluid.unique_name.guard():
        x = fluid.data("x", [None, 4, 3, 3])
        more = {"groups": 2} if kind == "group_norm" else {}
        y = getattr(fluid.layers, kind)(x, bias_attr=False, **more)
        pairs = fluid.backward.append_backward(fluid.layers.mean(y * y))
        executor = fluid.Executor()
        executor.run(startup)
        found, slope = executor.run(main, {"x": image}, [y, pairs[0][1]])
    parts = image.reshape(2, 2 if more else 4, -1)
    expected = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(
        parts.var(-1, keepdims=True) + 1e-5
    )
    expected = expected.reshape(image.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    # The mean of (gain y)^2 has the slope 2 mean(y^2) of a channel, divided among four channels.
    slopes = (expected**2).mean((0, 2, 3)) / 2
    np.testing.assert_allclose(slope, slopes, rtol=1e-4)
    assert [one.name for one in main.all_parameters()] == [f"{kind}_0.w_0"]
