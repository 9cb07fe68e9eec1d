"""MXNet's interface: training steps of ``Module`` against JAX and optax, and loading a model."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from measure import Figure, brief, compare

import symop as so
import symop.interop.mxnet as mx

TITLE = "MXNet's interface"
RATE, MOMENTUM = 0.05, 0.9
IN_A_ROW = 5
LAYERS, UNITS, WORDS, SENTENCES = 2, 128, 1000, 32


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of the interface."""
    repeats = 5 if quick else 60
    return [
        *(multilayer(repeats, width) for width in (256, 512, 1024)),
        lenet(repeats),
        bucket(3 if quick else 20),
        eager(repeats),
        loading(3 if quick else 10),
    ], {}


def multilayer(repeats: int, width: int) -> Figure:
    """A perceptron with two hidden layers of ``width`` units."""
    net = mx.sym.var("data")
    for i in range(2):
        net = mx.sym.FullyConnected(net, num_hidden=width, name=f"layer{i}")
        net = mx.sym.Activation(net, act_type="relu")
    net = mx.sym.FullyConnected(net, num_hidden=10, name="out")

    def forward(params: Any, x: Any) -> Any:
        for name in ("layer0", "layer1"):
            x = jax.nn.relu(x @ params[f"{name}_weight"].T + params[f"{name}_bias"])
        return x @ params["out_weight"].T + params["out_bias"]

    return step(f"a perceptron of {width} units", net, forward, (128, 784), repeats)


def lenet(repeats: int) -> Figure:
    """The convolutional network of MXNet's examples."""
    net = mx.sym.var("data")
    for i, count in enumerate((20, 50)):
        net = mx.sym.Convolution(net, kernel=(5, 5), num_filter=count, name=f"conv{i}")
        net = mx.sym.Activation(net, act_type="tanh")
        net = mx.sym.Pooling(net, pool_type="max", kernel=(2, 2), stride=(2, 2))
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=500, name="fc0")
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), num_hidden=10, name="fc1")

    def forward(params: Any, x: Any) -> Any:
        for name in ("conv0", "conv1"):
            x = jax.lax.conv(x, params[f"{name}_weight"], (1, 1), "VALID")
            x = jnp.tanh(x + params[f"{name}_bias"][:, None, None])
            window = (1, 1, 2, 2)
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
        x = x.reshape(len(x), -1)
        x = jnp.tanh(x @ params["fc0_weight"].T + params["fc0_bias"])
        return x @ params["fc1_weight"].T + params["fc1_bias"]

    return step("LeNet", net, forward, (64, 1, 28, 28), repeats)


def bucket(repeats: int) -> Figure:
    """The first step of a new bucket, against a jitted step whose cells are in ``lax.scan``."""
    longest = 16 + 2 * (repeats + 2)
    shape = (SENTENCES, longest)
    module = mx.mod.BucketingModule(language_model, default_bucket_key=longest)
    module.bind([("data", shape)], [("softmax_label", shape)])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(
        optimizer_params={"learning_rate": RATE, "momentum": MOMENTUM, "rescale_grad": 1.0}
    )
    advance = trained_by_optax(module, loss_in_jax)
    generator = np.random.default_rng(0)
    shapes = [(SENTENCES, longest - 2 * i) for i in range(repeats + 3)]
    batches = [generator.integers(0, WORDS, one) for one in shapes]
    left, right = iter(batches), iter(batches)

    def ours() -> Any:
        ids = next(left)
        x = mx.nd.array(ids)
        types = [("data", ids.shape)], [("softmax_label", ids.shape)]
        module.forward_backward(mx.io.DataBatch([x], [x], None, None, ids.shape[1], *types))
        module.update()
        return module.get_outputs()[0].value.block_until_ready()

    def theirs() -> Any:
        return advance(jnp.asarray(next(right), jnp.int32)).block_until_ready()

    np.testing.assert_allclose(ours(), theirs(), rtol=1e-3, atol=1e-5)
    return compare(
        "the first step of a new bucket of an LSTM, with its compilation, against JAX and optax",
        ours,
        theirs,
        repeats=repeats,
        target=1.1,
    )


def trained_by_optax(module: Any, loss: Callable[..., Any]) -> Callable[..., Any]:
    """A jitted step of SGD on the parameters of a module, which returns the probabilities."""
    params = {key: jnp.array(one.asnumpy()) for key, one in module.get_params()[0].items()}
    optimizer = optax.sgd(RATE, MOMENTUM)

    def train(kept: Any, *batch: Any) -> Any:
        params, moments = kept
        (_, found), slopes = jax.value_and_grad(loss, has_aux=True)(params, *batch)
        moves, moments = optimizer.update(slopes, moments, params)
        return (optax.apply_updates(params, moves), moments), found

    jitted = jax.jit(train, donate_argnums=0)
    held = [(params, optimizer.init(params))]

    def advance(*batch: Any) -> Any:
        held[0], found = jitted(held[0], *batch)
        return found

    return advance


def language_model(count: int) -> Any:
    """A symbol of two LSTM layers, unrolled for ``count`` words, and the names of its inputs."""
    stack = mx.rnn.SequentialRNNCell()
    for i in range(LAYERS):
        stack.add(mx.rnn.LSTMCell(UNITS, prefix=f"l{i}_"))
    words = mx.sym.Embedding(mx.sym.var("data"), input_dim=WORDS, output_dim=UNITS, name="embed")
    found, _ = stack.unroll(count, inputs=words, merge_outputs=True)
    flat = mx.sym.reshape(found, shape=(-1, UNITS))
    scores = mx.sym.FullyConnected(flat, num_hidden=WORDS, name="pred")
    labels = mx.sym.reshape(mx.sym.var("softmax_label"), shape=(-1,))
    return mx.sym.SoftmaxOutput(scores, labels, name="softmax"), ("data",), ("softmax_label",)


def loss_in_jax(params: Any, data: Any) -> Any:
    """The loss of the same model in JAX, whose labels are its data, and its probabilities."""

    def cell(i: int, carry: Any, x: Any) -> Any:
        h, c = carry
        gates = x @ params[f"l{i}_i2h_weight"].T + params[f"l{i}_i2h_bias"]
        gates += h @ params[f"l{i}_h2h_weight"].T + params[f"l{i}_h2h_bias"]
        put, keep, new, out = jnp.split(gates, 4, axis=1)
        c = jax.nn.sigmoid(keep) * c + jax.nn.sigmoid(put) * jnp.tanh(new)
        return jax.nn.sigmoid(out) * jnp.tanh(c), c

    def one(carries: Any, x: Any) -> Any:
        new = []
        for i, carry in enumerate(carries):
            new.append(cell(i, carry, x))
            x = new[-1][0]
        return new, x

    zeros = jnp.zeros((len(data), UNITS))
    embedded = jnp.swapaxes(params["embed_weight"][data], 0, 1)
    _, found = jax.lax.scan(one, [(zeros, zeros)] * LAYERS, embedded)
    scores = jnp.swapaxes(found, 0, 1) @ params["pred_weight"].T + params["pred_bias"]
    losses = optax.softmax_cross_entropy_with_integer_labels(scores, data)
    return jnp.sum(losses), jax.nn.softmax(scores).reshape(-1, WORDS)


def step(
    name: str,
    net: mx.sym.Symbol,
    forward: Callable[[Any, Any], Any],
    shape: tuple[int, ...],
    repeats: int,
) -> Figure:
    """``forward_backward`` and ``update`` against a jitted step with optax, several in a row."""
    generator = np.random.default_rng(0)
    x = mx.nd.array(generator.normal(size=shape))
    y = mx.nd.array(generator.integers(0, 10, shape[0]))
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    module.bind([("data", shape)], [("softmax_label", shape[:1])])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer_params={"learning_rate": RATE, "momentum": MOMENTUM})
    batch = mx.io.DataBatch([x], [y])
    data, labels = jnp.array(x.asnumpy()), jnp.asarray(y.asnumpy(), jnp.int32)

    def loss(params: Any, data: Any, labels: Any) -> Any:
        found = forward(params, data)
        losses = optax.softmax_cross_entropy_with_integer_labels(found, labels)
        return jnp.mean(losses), jax.nn.softmax(found)

    advance = trained_by_optax(module, loss)

    def theirs() -> Any:
        return advance(data, labels).block_until_ready()

    def ours() -> Any:
        module.forward_backward(batch)
        module.update()
        return module.get_outputs()[0].value.block_until_ready()

    for _ in range(3):
        np.testing.assert_allclose(ours(), theirs(), rtol=1e-3, atol=1e-5)
    return compare(
        f"a training step of {name} by Module, against JAX and optax",
        lambda: [ours() for _ in range(IN_A_ROW)],
        lambda: [theirs() for _ in range(IN_A_ROW)],
        repeats=repeats,
        target=1.05,
        clock=brief,
        per=IN_A_ROW,
    )


def eager(repeats: int) -> Figure:
    """A call on an array that is not read: the overhead over the catalogue's own call."""
    x = mx.nd.ones((4, 4))
    y = so.NDArray(x.value)
    count = 1000

    def ours() -> None:
        for _ in range(count):
            mx.nd.exp(x)

    def theirs() -> None:
        for _ in range(count):
            so.nd.exp(y)

    return compare(
        "a call of mx.nd.exp on a small array, against so.nd.exp",
        ours,
        theirs,
        repeats=repeats,
        target=1.5,
        clock=brief,
        per=count,
    )


def loading(repeats: int) -> Figure:
    """Reading and binding a symbol of 400 nodes with its parameters, in at most a second."""
    net = mx.sym.var("data")
    for i in range(57):
        net = mx.sym.FullyConnected(net, num_hidden=64, name=f"fc{i}")
        net = mx.sym.BatchNorm(net, name=f"bn{i}")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    assert len(net.get_internals()) >= 400, len(net.get_internals())
    shapes = {"data": (1, 64)}
    arguments, _, states = net.infer_shape(**shapes)
    held = [
        {name: mx.nd.ones(shape) for name, shape in zip(names, found or (), strict=True)}
        for names, found in (
            (net.list_arguments(), arguments),
            (net.list_auxiliary_states(), states),
        )
    ]
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(Path(folder) / "model")
        mx.model.save_checkpoint(prefix, 0, net, *held)

        def load() -> float:
            start = time.perf_counter()
            symbol, arg_params, aux_params = mx.model.load_checkpoint(prefix, 0)
            symbol.bind(args=arg_params, aux_states=aux_params)
            return time.perf_counter() - start

        times = sorted(load() for _ in range(repeats))
    taken = times[len(times) // 2]
    name = "loading a symbol of 400 nodes with its parameters, against one second"
    return Figure(name, taken, 1.0, taken, target=1.0, repeats=repeats)
