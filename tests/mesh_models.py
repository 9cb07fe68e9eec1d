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


WORDS, LENGTH, WIDTH, HEADS = 32, 8, 16, 4


def language_model(layers: int = 4, *, examples: int = 8, by_sequence: bool = False) -> Model:
    """A GPT, whose blocks are rolled into a loop.

    Args:
        layers: the number of blocks.
        examples: the number of examples in a batch.
        by_sequence: whether activations are split by position over the axis ``model``.
    """
    ids, labels = (so.var(name, (examples, LENGTH), "int32") for name in ("ids", "labels"))
    hidden = so.lookup_table(so.var("table", shape=(WORDS, WIDTH)), ids)
    hidden = hidden + so.var("positions", shape=(LENGTH, WIDTH))
    for i in range(layers):
        if by_sequence:
            hidden = so.shard(hidden, sharding=("data", "model"))
        hidden = _block(hidden, f"block{i}", examples)
    logits = so.matmul(hidden, so.var("head", shape=(WIDTH, WORDS)))
    loss = so.mean(so.softmax_cross_entropy(logits, labels))
    generator = np.random.default_rng(2)
    batch = {
        name: generator.integers(0, WORDS, (examples, LENGTH)).astype("int32")
        for name in ("ids", "labels")
    }
    sharded = {"block*": ("data",), "table": ("data",), "head": ("data",)}
    tensor = {
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


def _block(hidden: so.Symbol, name: str, examples: int) -> so.Symbol:
    def weight(part: str, *shape: int) -> so.Symbol:
        return so.var(f"{name}_{part}", shape=shape)

    normal = so.layer_norm(hidden, weight("scale", WIDTH), weight("shift", WIDTH))
    query, keys, values = (
        so.permute_dims(
            so.reshape(
                so.matmul(normal, weight(one, WIDTH, WIDTH)),
                shape=(examples, LENGTH, HEADS, WIDTH // HEADS),
            ),
            axes=(0, 2, 1, 3),
        )
        for one in ("query", "keys", "values")
    )
    attended = so.scaled_dot_product_attention(query, keys, values, causal=True)
    joined = so.reshape(
        so.permute_dims(attended, axes=(0, 2, 1, 3)), shape=(examples, LENGTH, WIDTH)
    )
    hidden = hidden + so.matmul(joined, weight("mix", WIDTH, WIDTH))
    wide = so.gelu(so.matmul(hidden, weight("up", WIDTH, 4 * WIDTH)))
    return hidden + so.matmul(wide, weight("down", 4 * WIDTH, WIDTH))


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
