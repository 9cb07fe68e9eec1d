"""Models on meshes: what they are, what they are fed, and how they can be split."""

from typing import Any, NamedTuple

import numpy as np

import symop as so

Rules = dict[str, tuple[Any, ...]]


class Model(NamedTuple):
    """A loss to train on a mesh.

    Attributes:
        loss: the loss.
        batch: values of its inputs.
        layouts: rules by name of layout, for a mesh of axes ``data`` and ``model``.
    """

    loss: so.Symbol
    batch: dict[str, np.ndarray]
    layouts: dict[str, Rules]


def perceptron(batch_size: int = 16) -> Model:
    x, y = so.var("x", shape=(batch_size, 32)), so.var("y", (batch_size,), "int32")
    hidden = so.relu(so.fully_connected(x, units=64, name="first"))
    loss = so.mean(so.softmax_cross_entropy(so.fully_connected(hidden, units=8, name="last"), y))
    generator = np.random.default_rng(0)
    batch = {
        "x": generator.normal(size=(batch_size, 32)).astype("float32"),
        "y": generator.integers(0, 8, batch_size).astype("int32"),
    }
    sharded = {"*_weight": ("data",), "*_bias": ("data",)}
    columns = {"first_*": ("model",), "last_weight": (None, "model")}
    both = {"first_weight": ("model", "data"), "first_bias": ("model",), "last_*": ("data",)}
    joint = {"first_weight": (("data", "model"),)}
    layouts = {"data": {}, "sharded": sharded, "tensor": columns, "both": both, "joint": joint}
    return Model(loss, batch, layouts)


def digits() -> Model:
    """A convolutional network with statistics over the batch and dropout."""
    image, label = so.var("image", shape=(16, 1, 8, 8)), so.var("label", (16,), "int32")
    hidden = so.convolution(
        image, channels=8, kernel=(3, 3), padding=1, use_bias=False, name="conv"
    )
    hidden = so.relu(so.batch_norm(hidden, name="norm"))
    hidden = so.max_pooling(hidden, kernel=(2, 2), stride=(2, 2))
    hidden = so.dropout(so.flatten(hidden), rate=0.3)
    logits = so.fully_connected(hidden, units=8, name="dense")
    generator = np.random.default_rng(1)
    batch = {
        "image": generator.normal(size=(16, 1, 8, 8)).astype("float32"),
        "label": generator.integers(0, 8, 16).astype("int32"),
    }
    sharded = {"conv_weight": ("data",), "dense_*": ("data",), "norm_*": ("data",)}
    channels = {"conv_weight": ("model",), "norm_*": ("model",), "dense_weight": (None, "model")}
    layouts = {"data": {}, "sharded": sharded, "tensor": channels}
    return Model(so.mean(so.softmax_cross_entropy(logits, label)), batch, layouts)


HEADS = 4


def language_model(
    layers: int = 4, *, examples: int = 8, by_sequence: bool = False, times: int = 1
) -> Model:
    """A GPT, whose blocks are rolled into a loop.

    Args:
        layers: the number of blocks.
        examples: the number of examples in a batch.
        by_sequence: whether activations are split by position over the axis ``model``.
        times: how often the usual 32 words, 8 positions and width 16 are taken.
    """
    words, length, width = 32 * times, 8 * times, 16 * times
    ids, labels = (so.var(name, (examples, length), "int32") for name in ("ids", "labels"))
    hidden = so.lookup_table(so.var("table", shape=(words, width)), ids)
    hidden = hidden + so.var("positions", shape=(length, width))
    for i in range(layers):
        if by_sequence:
            hidden = so.shard(hidden, sharding=("data", "model"))
        hidden = _block(hidden, f"block{i}")
    logits = so.matmul(hidden, so.var("head", shape=(width, words)))
    loss = so.mean(so.softmax_cross_entropy(logits, labels))
    generator = np.random.default_rng(2)
    batch = {
        name: generator.integers(0, words, (examples, length)).astype("int32")
        for name in ("ids", "labels")
    }
    sharded = {"block*": ("data",), "table": ("data",), "head": ("data",)}
    tensor: Rules = {
        "block*_query": (None, "model"),
        "block*_keys": (None, "model"),
        "block*_values": (None, "model"),
        "block*_mix": ("model",),
        "block*_up": (None, "model"),
        "block*_down": ("model",),
        "table": ("model",),
        "head": (None, "model"),
    }
    both = {
        name: ("data", *one[1:]) if one[0] is None else ("model", "data")
        for name, one in tensor.items()
    }
    layouts = {"data": {}, "sharded": sharded, "tensor": tensor, "both": both}
    return Model(loss, batch, layouts)


def _block(hidden: so.Symbol, name: str) -> so.Symbol:
    examples, length, width = hidden.shape

    def weight(part: str, *shape: int) -> so.Symbol:
        return so.var(f"{name}_{part}", shape=shape)

    normal = so.layer_norm(hidden, weight("scale", width), weight("shift", width))
    query, keys, values = (
        so.permute_dims(
            so.reshape(
                so.matmul(normal, weight(one, width, width)),
                shape=(examples, length, HEADS, width // HEADS),
            ),
            axes=(0, 2, 1, 3),
        )
        for one in ("query", "keys", "values")
    )
    attended = so.scaled_dot_product_attention(query, keys, values, causal=True)
    joined = so.reshape(so.permute_dims(attended, axes=(0, 2, 1, 3)), shape=hidden.shape)
    hidden = hidden + so.matmul(joined, weight("mix", width, width))
    wide = so.gelu(so.matmul(hidden, weight("up", width, 4 * width)))
    return hidden + so.matmul(wide, weight("down", 4 * width, width))


ROWS = 4096


def recommender(rows: int = ROWS, **where: Any) -> tuple[so.Program, so.Variable]:
    """A table of many rows, of which a batch reads few; the program of a step, and its loss."""
    with so.program_guard(so.Program()) as program:
        ids, clicks = so.data("ids", (32, 4), "int32"), so.data("clicks", (32,))
        table = so.parameter("table", (rows, 16), initial="normal(0.1)", **where)
        features = so.reshape(so.lookup_table(table, ids, sparse=True), shape=(32, 64))
        scores = so.reshape(so.fully_connected(features, units=1, name="top"), shape=(32,))
        loss = so.mean(so.sigmoid_cross_entropy(scores, clicks))
    so.optim.Adam(0.01, lazy=True).minimize(loss)
    return program, loss


def clicks(rows: int = ROWS, count: int = 4) -> list[dict[str, np.ndarray]]:
    generator = np.random.default_rng(3)
    return [
        {
            "ids": generator.integers(0, rows, (32, 4)).astype("int32"),
            "clicks": generator.integers(0, 2, 32).astype("float32"),
        }
        for _ in range(count)
    ]
