"""Training steps of Paddle's programs, loaded from files, against JAX and optax."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from measure import Figure, brief, compare

import symop as so
from symop.interop import paddle
from symop.interop.paddle import fluid

TITLE = "Programs of Paddle"
REMARKS = [
    "Where entries of a sequence are equally large, the gradient of the text CNN goes to the first "
    "of them, as in Paddle, and JAX's is divided among them, which takes one scatter less.",
]
RATE = 0.05
IN_A_ROW = 5
RNG = np.random.default_rng(0)
layers = fluid.layers
Batch = dict[str, Any]


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of programs of Paddle."""
    repeats = 5 if quick else 150
    sgd, adam = fluid.optimizer.SGD(RATE), fluid.optimizer.Adam(1e-3)
    return [
        step("a perceptron", perceptron, perceptron_in_jax, images(256, 64), sgd, repeats),
        step("LeNet with batch norm", lenet, lenet_in_jax, images(64, 1, 16, 16), sgd, repeats),
        step("the recommender", recommender, recommender_in_jax, ratings(512), sgd, repeats),
        step("a text CNN", text, text_in_jax, sentences(64), sgd, repeats),
        step("a transformer encoder", encoder, encoder_in_jax, words(16, 32), adam, repeats),
    ], {"remarks": REMARKS}


def images(*shape: int) -> Batch:
    """Random images and labels."""
    return {
        "image": RNG.normal(size=shape).astype(np.float32),
        "label": RNG.integers(0, 10, (shape[0], 1)),
    }


def cross_entropy(logits: Any, label: Any) -> Any:
    """The mean loss of a classifier."""
    return optax.softmax_cross_entropy_with_integer_labels(logits, label[:, 0]).mean()


def dense(params: Any, x: Any, number: int) -> Any:
    """The layer ``fc`` with a number."""
    return x @ params[f"fc_{number}.w_0"] + params[f"fc_{number}.b_0"]


# Models, each as a script of Paddle and in JAX ---------------------------------------------------


def perceptron() -> Any:
    """The model of Paddle's introduction to digits."""
    image = fluid.data("image", [None, 64])
    label = fluid.data("label", [None, 1], "int64")
    hidden = layers.fc(layers.fc(image, 256, act="relu"), 256, act="tanh")
    return layers.mean(layers.softmax_with_cross_entropy(layers.fc(hidden, 10), label))


def perceptron_in_jax(params: Any, batch: Batch) -> Any:
    """The perceptron."""
    hidden = jnp.tanh(dense(params, jax.nn.relu(dense(params, batch["image"], 0)), 1))
    return cross_entropy(dense(params, hidden, 2), batch["label"]), {}


def lenet() -> Any:
    """Two convolutions with batch normalization and pooling."""
    image = fluid.data("image", [None, 1, 16, 16])
    label = fluid.data("label", [None, 1], "int64")
    x = layers.conv2d(image, 16, 5, bias_attr=False)
    x = layers.pool2d(layers.batch_norm(x, act="relu"), 2, "max", 2)
    x = layers.conv2d(x, 32, 3, padding=1, bias_attr=False)
    x = layers.pool2d(layers.batch_norm(x, act="relu"), 2, "max", 2)
    return layers.mean(layers.softmax_with_cross_entropy(layers.fc(x, 10), label))


def lenet_in_jax(params: Any, batch: Batch) -> Any:
    """The convolutional network, with its new running means."""
    x, running = batch["image"], {}
    for i, padding in enumerate((0, 1)):
        pads = [(padding, padding)] * 2
        x = jax.lax.conv_general_dilated(x, params[f"conv2d_{i}.w_0"], (1, 1), pads)
        name = f"batch_norm_{i}"
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
        for which, one in (("w_1", mean), ("w_2", variance)):
            before = params[f"{name}.{which}"]
            running[f"{name}.{which}"] = jax.lax.stop_gradient(0.9 * before + 0.1 * one)
        scale = params[f"{name}.w_0"] * jax.lax.rsqrt(variance + 1e-5)
        x = (x - mean[:, None, None]) * scale[:, None, None] + params[f"{name}.b_0"][:, None, None]
        window = (1, 1, 2, 2)
        x = jax.lax.reduce_window(jax.nn.relu(x), -jnp.inf, jax.lax.max, window, window, "VALID")
    return cross_entropy(dense(params, x.reshape(len(x), -1), 0), batch["label"]), running


IDS = {"user": 4000, "gender": 2, "age": 7, "job": 21, "movie": 3000}


def ratings(count: int) -> Batch:
    """Random users, films and scores."""
    found: Batch = {key: RNG.integers(0, n, (count, 1)) for key, n in IDS.items()}
    return {**found, "score": RNG.uniform(1, 5, (count, 1)).astype(np.float32)}


def recommender() -> Any:
    """Sparse tables of users and films, and the cosine of what is made of both."""

    def looked_up(name: str) -> Any:
        ids = fluid.data(name, [None, 1], "int64")
        return layers.embedding(ids, [IDS[name], 32], is_sparse=True, param_attr=f"{name}_table")

    parts = [layers.fc(looked_up(one), 32) for one in ("user", "gender", "age", "job")]
    left = layers.fc(layers.concat(parts, axis=1), 64, act="tanh")
    right = layers.fc(looked_up("movie"), 64, act="tanh")
    score = layers.scale(layers.cos_sim(left, right), 5.0)
    return layers.mean(layers.square_error_cost(score, fluid.data("score", [None, 1])))


def recommender_in_jax(params: Any, batch: Batch) -> Any:
    """The recommender, whose gradients of tables are dense."""
    found = {one: params[f"{one}_table"][batch[one][:, 0]] for one in IDS}
    parts = [dense(params, found[one], i) for i, one in enumerate(("user", "gender", "age", "job"))]
    left = jnp.tanh(dense(params, jnp.concatenate(parts, 1), 4))
    right = jnp.tanh(dense(params, found["movie"], 5))
    norms = jnp.linalg.norm(left, axis=1) * jnp.linalg.norm(right, axis=1)
    score = 5.0 * ((left * right).sum(1) / norms)[:, None]
    return ((score - batch["score"]) ** 2).mean(), {}


def sentences(count: int) -> Batch:
    """Random sentences of different lengths; JAX gets the number of the sentence of each row."""
    lengths = RNG.integers(5, 30, count)
    ids = RNG.integers(0, 500, (lengths.sum(), 1))
    return {
        "words": so.LoDTensor.from_lengths(ids, [lengths]),
        "label": RNG.integers(0, 10, (count, 1)),
        "segments": np.repeat(np.arange(count), lengths),
    }


def text() -> Any:
    """Convolutions over ragged sentences, pooled in two ways."""
    ids = fluid.data("words", [None, 1], "int64", lod_level=1)
    label = fluid.data("label", [None, 1], "int64")
    table = layers.embedding(ids, [500, 64], param_attr="table")
    x = layers.sequence_conv(table, 64, 3, act="tanh")
    pooled = [layers.sequence_pool(x, one) for one in ("max", "average")]
    logits = layers.fc(layers.concat(pooled, axis=1), 10)
    return layers.mean(layers.softmax_with_cross_entropy(logits, label))


def text_in_jax(params: Any, batch: Batch) -> Any:
    """The text CNN on rows of all sentences."""
    ids, segments, label = batch["words"], batch["segments"], batch["label"]
    x, count = params["table"][ids[:, 0]], len(label)
    same = (segments[1:] == segments[:-1])[:, None]
    edge = jnp.zeros((1, x.shape[1]))
    before = jnp.concatenate([edge, jnp.where(same, x[:-1], 0.0)])
    after = jnp.concatenate([jnp.where(same, x[1:], 0.0), edge])
    window = jnp.concatenate([before, x, after], 1)
    x = jnp.tanh(window @ params["sequence_conv_0.w_0"] + params["sequence_conv_0.b_0"])
    sizes = jax.ops.segment_sum(jnp.ones(len(x)), segments, count)[:, None]
    largest = jax.ops.segment_max(x, segments, count)
    mean = jax.ops.segment_sum(x, segments, count) / sizes
    return cross_entropy(dense(params, jnp.concatenate([largest, mean], 1), 0), label), {}


WIDTH, HEADS = 128, 4


def words(count: int, length: int) -> Batch:
    """Random sentences of one length."""
    return {
        "words": RNG.integers(0, 1000, (count, length)),
        "label": RNG.integers(0, 10, (count, 1)),
    }


def encoder() -> Any:
    """Two layers of attention and of perceptrons, with normalization before each."""
    ids = fluid.data("words", [None, 32], "int64")
    label = fluid.data("label", [None, 1], "int64")
    x = fluid.embedding(ids, [1000, WIDTH], param_attr="table")
    for _ in range(2):
        y = layers.layer_norm(x, begin_norm_axis=2)
        heads = []
        for _ in range(3):
            one = layers.reshape(layers.fc(y, WIDTH, 2), [0, 0, HEADS, WIDTH // HEADS])
            heads.append(layers.transpose(one, [0, 2, 1, 3]))
        scores = layers.matmul(heads[0], heads[1], transpose_y=True, alpha=(WIDTH // HEADS) ** -0.5)
        found = layers.transpose(layers.matmul(layers.softmax(scores), heads[2]), [0, 2, 1, 3])
        x = x + layers.fc(layers.reshape(found, [0, 0, WIDTH]), WIDTH, 2)
        y = layers.layer_norm(x, begin_norm_axis=2)
        x = x + layers.fc(layers.gelu(layers.fc(y, 4 * WIDTH, 2)), WIDTH, 2)
    logits = layers.fc(layers.reduce_mean(x, 1), 10)
    return layers.mean(layers.softmax_with_cross_entropy(logits, label))


def encoder_in_jax(params: Any, batch: Batch) -> Any:
    """The encoder."""
    x, count = params["table"][batch["words"]], iter(range(99))

    def normalized(x: Any, number: int) -> Any:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        name = f"layer_norm_{number}"
        scaled = (x - mean) * jax.lax.rsqrt(variance + 1e-5) * params[f"{name}.w_0"]
        return scaled + params[f"{name}.b_0"]

    def head(y: Any) -> Any:
        one = dense(params, y, next(count))
        return one.reshape(*one.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)

    for layer in range(2):
        y = normalized(x, 2 * layer)
        q, k, v = (head(y) for _ in range(3))
        scores = q @ k.swapaxes(2, 3) * (WIDTH // HEADS) ** -0.5
        found = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + dense(params, found, next(count))
        hidden = jax.nn.gelu(dense(params, normalized(x, 2 * layer + 1), next(count)), False)
        x = x + dense(params, hidden, next(count))
    return cross_entropy(dense(params, x.mean(1), next(count)), batch["label"]), {}


# Measuring ---------------------------------------------------------------------------------------


def loaded(build: Callable[[], Any], optimizer: Any) -> tuple[paddle.Program, str, Any]:
    """Returns a program of training that was saved and loaded, its loss, and its variables."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss = build()
        optimizer.minimize(loss)
        fluid.Executor().run(startup)
        with tempfile.TemporaryDirectory() as folder:
            fluid.save(main, Path(folder) / "model")
            program = paddle.load_program(Path(folder) / "model.pdmodel")
            fluid.load(program, Path(folder) / "model")
    return program, loss.name, scope


def step(
    name: str,
    build: Callable[[], Any],
    forward: Callable[[Any, Batch], Any],
    batch: Batch,
    optimizer: Any,
    repeats: int,
) -> Figure:
    """``Executor.run`` of a loaded program against a jitted step, several in a row."""
    program, loss, scope = loaded(build, optimizer)
    executor = paddle.Executor()
    names = {one.name for one in program.list_vars()}
    feed = {key: one for key, one in batch.items() if key in names}
    states = ("moment", "pow_acc", "learning_rate")
    kept = {
        key: jnp.array(one)
        for key, one in scope.items()
        if not any(state in key for state in states)
    }
    running = {key for key in kept if key.startswith("batch_norm") and key[-3:] in ("w_1", "w_2")}
    is_adam = any("moment" in key for key in scope)
    update = optax.adam(1e-3, eps_root=0.0) if is_adam else optax.sgd(RATE)
    trained = {key: one for key, one in kept.items() if key not in running}
    held: list[Any] = [({key: kept[key] for key in running}, trained, update.init(trained))]
    # Both are fed arrays of NumPy; the offsets of sentences are for Paddle's program alone.
    given = {k: v.data if isinstance(v, so.LoDTensor) else v for k, v in batch.items()}

    def one(state: Any, batch: Any) -> Any:
        still, params, moments = state

        def loss(params: Any) -> Any:
            return forward({**still, **params}, batch)

        (value, still), slopes = jax.value_and_grad(loss, has_aux=True)(params)
        moves, moments = update.update(slopes, moments, params)
        return (still, optax.apply_updates(params, moves), moments), value

    jitted = jax.jit(one, donate_argnums=0)

    def theirs() -> Any:
        held[0], value = jitted(held[0], given)
        return np.asarray(value)

    def ours() -> Any:
        return executor.run(program, feed, [loss], scope=scope)[0]

    for _ in range(3):
        np.testing.assert_allclose(ours().reshape(()), theirs(), rtol=2e-3, atol=1e-5)
    return compare(
        f"a training step of {name} by Executor.run, against JAX and optax",
        lambda: [ours() for _ in range(IN_A_ROW)],
        lambda: [theirs() for _ in range(IN_A_ROW)],
        repeats=repeats,
        target=1.05,
        clock=brief,
        warm_up=20,  # the steady state, long after compiling
        per=IN_A_ROW,
    )
