"""Models to be drawn: a residual network, a transformer, an unrolled LSTM, an irregular graph."""

import random

import symop as so
from symop.graph.nodes import VARIABLE, topological

FEEDS = ("data", "label", "ids", "mask")


def with_gradient(loss: so.Symbol) -> so.Symbol:
    """The loss, and its gradient with respect to every parameter."""
    variables = [node for node in topological(loss.nodes) if node.op is VARIABLE]
    wanted = [one for one in variables if one.attributes[2] == "argument" and one.name not in FEEDS]
    return so.Group([loss, *so.grad(loss, [so.Symbol([one]) for one in wanted])])


def resnet18(width: int = 4) -> so.Symbol:
    """Four stages of two residual blocks."""

    def normed(h, channels, kernel, stride, name):
        h = so.convolution(
            h,
            channels=channels,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            padding=kernel // 2,
            name=f"{name}_conv",
        )
        return so.batch_norm(h, name=f"{name}_norm")

    h = so.relu(normed(so.var("data", (2, 3, 16, 16)), width, 7, 2, "stem"))
    for i in range(8):
        channels, stride = width * 2 ** (i // 2), 2 if i in (2, 4, 6) else 1
        unit = f"stage{i // 2 + 1}_unit{i % 2 + 1}"
        inner = so.relu(normed(h, channels, 3, stride, f"{unit}_first"))
        inner = normed(inner, channels, 3, 1, f"{unit}_second")
        h = so.relu(inner + (normed(h, channels, 1, stride, f"{unit}_short") if stride > 1 else h))
    h = so.fully_connected(so.mean(h, axis=(2, 3)), units=10, name="head")
    return so.mean(so.softmax_cross_entropy(h, so.var("label", (2,), "int32")))


def gpt(layers: int = 12, width: int = 8, heads: int = 2, length: int = 4) -> so.Symbol:
    """Transformer blocks with causal attention, written out."""
    shape, split = (2, length, width), (2, length, heads, width // heads)
    ids, mask = so.var("ids", (2, length), "int32"), so.var("mask", (length, length))
    h = so.lookup_table(so.var("token_embedding", (20, width)), ids)
    h = h + so.var("position_embedding", (length, width))
    for i in range(layers):
        with so.name_scope(f"block{i}_"):
            h = h + _attention(so.layer_norm(h, name="norm1"), mask, shape, split)
            inner = _dense(so.layer_norm(h, name="norm2"), 4 * width, "up")
            h = h + _dense(so.gelu(inner), width, "down")
    logits = so.reshape(_dense(so.layer_norm(h, name="final_norm"), 20, "head"), shape=(-1, 20))
    return so.mean(so.softmax_cross_entropy(logits, so.var("label", (2 * length,), "int32")))


def _dense(h, units, name):
    return so.fully_connected(h, units=units, flatten=False, name=name)


def _attention(h, mask, shape, split):
    query, key, value = (
        so.permute_dims(so.reshape(_dense(h, shape[-1], name), shape=split), axes=(0, 2, 1, 3))
        for name in ("query", "key", "value")
    )
    scores = so.matmul(query, so.permute_dims(key, axes=(0, 1, 3, 2))) / split[-1] ** 0.5 + mask
    mixed = so.permute_dims(so.matmul(so.softmax(scores, axis=-1), value), axes=(0, 2, 1, 3))
    return _dense(so.reshape(mixed, shape=shape), shape[-1], "proj")


def lstm(steps: int = 30, size: int = 4) -> so.Symbol:
    """An LSTM, unrolled, without names of layers; with its gradient."""
    wx, wh = so.var("wx", (3, 4 * size)), so.var("wh", (size, 4 * size))
    bias, h, c = so.var("bias", (4 * size,)), so.var("h0", (2, size)), so.var("c0", (2, size))
    for t in range(steps):
        gates = so.matmul(so.var(f"x{t}", (2, 3)), wx) + so.matmul(h, wh) + bias
        i, f, g, o = (gates[:, k * size : (k + 1) * size] for k in range(4))
        c = so.sigmoid(f) * c + so.sigmoid(i) * so.tanh(g)
        h = so.sigmoid(o) * so.tanh(c)
    loss = so.sum(so.square(h))
    return so.Group([loss, *so.grad(loss, [wx, wh, bias])])


def tangle(operators: int = 319, seed: int = 0) -> so.Symbol:
    """A graph without structure."""
    generator = random.Random(seed)
    values = [so.var("a", (4,)), so.var("b", (4,))]
    for _ in range(operators):
        u, v = (values[-1 - min(int(generator.expovariate(0.3)), len(values) - 1)] for _ in "uv")
        one = getattr(so, generator.choice(["sin", "cos", "tanh", "exp", "square"]))
        values.append(generator.choice([one(u), u * v, u + v]))
    return so.sum(so.add_n(*values))


def program() -> so.Program:
    """A training step of two layers with Adam."""
    result = so.Program()
    with so.program_guard(result):
        x, y = so.data("x", (8, 4)), so.data("y", (8, 1))
        h = so.relu(so.fully_connected(x, units=16, name="hidden"))
        loss = so.mean(so.square(so.fully_connected(h, units=1, name="out") - y))
        so.optim.Adam(0.01).minimize(loss)
    return result


def flow() -> so.Symbol:
    """A scan, a branch and a loop."""
    x, start, w = so.var("x", (10, 3)), so.var("start", (3,)), so.var("w", (3, 3))

    def step(h, x):
        new = so.tanh(so.matmul(w, h) + x)
        return new, new

    h, ys = so.scan(step, start, x)
    y = so.cond(so.sum(h) > 0.0, lambda: so.sin(h), lambda: so.cos(h) * 2.0)
    z = so.while_loop(lambda a: so.sum(a) < 10.0, lambda a: a * 2.0, so.square(y))
    return so.Group([so.sum(ys), z])
