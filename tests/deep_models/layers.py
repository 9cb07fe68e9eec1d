"""Stacks of layers: perceptrons, residual ones, transformers, layers in stages, chains."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import symop as so
from deep_models.base import RATE, Arrays, Loop, Model, draw_keys, dropout, layer_norm, mean_square


def per_layer(prefix: str, kinds: tuple[str, ...], layers: range) -> dict[str, list[str]]:
    """For each kind of parameter its names in all layers, which are stacked by hand."""
    return {kind: [f"{prefix}{i}_{kind}" for i in layers] for kind in kinds}


# Perceptrons -----------------------------------------------------------------------------------


def perceptron(depth: int, width: int = 4, batch: int = 3) -> Model:
    """Layers of one width between a first and a last one of others."""

    def loss() -> so.Symbol:
        h = so.tanh(so.fully_connected(so.var("x", (batch, 2)), units=width, name="first"))
        for i in range(depth):
            h = so.tanh(so.fully_connected(h, units=width, name=f"dense{i}"))
        return so.mean(so.square(so.fully_connected(h, units=1, name="last")))

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        def step(h: Any, p: Any) -> tuple[Any, None]:
            weight, bias = p
            return jnp.tanh(h @ weight.T + bias), None

        h, _ = step(params["x"], (params["first_weight"], params["first_bias"]))
        h, _ = loop(step, h, (params["weight"], params["bias"]))
        return mean_square(h @ params["last_weight"].T + params["last_bias"]), states

    stacks = per_layer("dense", ("weight", "bias"), range(depth))
    return Model("perceptron", loss, by_hand, stacks)


RESIDUAL = ("norm_gamma", "norm_beta", "up_weight", "up_bias", "down_weight", "down_bias")


def residual(
    depth: int, width: int = 4, batch: int = 3, *, norm: bool = True, drops: bool = False
) -> Model:
    """Residual layers, each of two matrix products, with layer normalization and dropout or not."""

    def loss() -> so.Symbol:
        h = so.var("x", (batch, width))
        for i in range(depth):
            inner = so.layer_norm(h, name=f"layer{i}_norm") if norm else h
            inner = so.relu(so.fully_connected(inner, units=2 * width, name=f"layer{i}_up"))
            inner = so.dropout(inner, rate=RATE) if drops else inner
            h = h + so.fully_connected(inner, units=width, name=f"layer{i}_down")
        return so.mean(so.square(h))

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        def step(h: Any, xs: Any) -> tuple[Any, None]:
            p, key = xs
            inner = layer_norm(h, p["norm_gamma"], p["norm_beta"]) if norm else h
            inner = jax.nn.relu(inner @ p["up_weight"].T + p["up_bias"])
            inner = dropout(inner, key)
            return h + inner @ p["down_weight"].T + p["down_bias"], None

        params = dict(params)
        h = params.pop("x")
        keys = draw_keys(key, depth) if drops else None
        return mean_square(loop(step, h, (params, keys))[0]), states

    kinds = RESIDUAL if norm else RESIDUAL[2:]
    more = ", norm" * norm + ", dropout" * drops
    stacks = per_layer("layer", kinds, range(depth))
    return Model(f"residual{more}", loss, by_hand, stacks, draws=drops)


# Transformers ----------------------------------------------------------------------------------


class Attending(NamedTuple):
    """Lengths of a transformer encoder."""

    depth: int
    batch: int = 2
    tokens: int = 3
    heads: int = 2
    width: int = 4


ENCODER = (
    "norm0_gamma", "norm0_beta", "query", "key", "value", "out",
    "norm1_gamma", "norm1_beta", "up_weight", "up_bias", "down_weight", "down_bias",
)  # fmt: skip


def transformer(size: Attending, *, drops: bool = False) -> Model:
    """Encoder blocks with the normalization first, attention written out."""

    def loss() -> so.Symbol:
        h = so.var("x", (size.batch, size.tokens, size.width))
        for i in range(size.depth):
            h = _block(h, f"block{i}", size, drops=drops)
        return so.mean(so.square(so.layer_norm(h, name="last")))

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        def step(h: Any, xs: Any) -> tuple[Any, None]:
            return _block_by_hand(h, *xs, size), None

        keys = draw_keys(key, 2 * size.depth).reshape(-1, 2) if drops else None
        blocks = {kind: params[kind] for kind in ENCODER}
        h, _ = loop(step, params["x"], (blocks, keys))
        return mean_square(layer_norm(h, params["last_gamma"], params["last_beta"])), states

    stacks = per_layer("block", ENCODER, range(size.depth))
    return Model(f"transformer{', dropout' * drops}", loss, by_hand, stacks, draws=drops)


def _block(h: so.Symbol, name: str, size: Attending, *, drops: bool) -> so.Symbol:
    batch, tokens, heads, width = size[1:]

    def split(data: so.Symbol, which: str) -> so.Symbol:
        found = data @ so.var(f"{name}_{which}", (width, width))
        found = so.reshape(found, shape=(batch, tokens, heads, width // heads))
        return so.permute_dims(found, axes=(0, 2, 1, 3))

    inner = so.layer_norm(h, name=f"{name}_norm0")
    query, key, value = (split(inner, which) for which in ("query", "key", "value"))
    scores = query @ so.permute_dims(key, axes=(0, 1, 3, 2)) / (width // heads) ** 0.5
    mixed = so.permute_dims(so.softmax(scores, axis=-1) @ value, axes=(0, 2, 1, 3))
    mixed = so.reshape(mixed, shape=(batch, tokens, width)) @ so.var(f"{name}_out", (width, width))
    h = h + (so.dropout(mixed, rate=RATE) if drops else mixed)
    inner = so.layer_norm(h, name=f"{name}_norm1")
    inner = so.fully_connected(inner, units=4 * width, flatten=False, name=f"{name}_up")
    inner = so.fully_connected(so.gelu(inner), units=width, flatten=False, name=f"{name}_down")
    return h + (so.dropout(inner, rate=RATE) if drops else inner)


def _block_by_hand(h: Any, p: Arrays, keys: Any, size: Attending) -> Any:
    batch, tokens, heads, width = size[1:]

    def split(which: str) -> Any:
        return (inner @ p[which]).reshape(batch, tokens, heads, -1).swapaxes(1, 2)

    first, second = (None, None) if keys is None else keys
    inner = layer_norm(h, p["norm0_gamma"], p["norm0_beta"])
    scores = split("query") @ split("key").swapaxes(2, 3) / (width // heads) ** 0.5
    mixed = (jax.nn.softmax(scores) @ split("value")).swapaxes(1, 2)
    h = h + dropout(mixed.reshape(batch, tokens, width) @ p["out"], first)
    inner = layer_norm(h, p["norm1_gamma"], p["norm1_beta"])
    inner = jax.nn.gelu(inner @ p["up_weight"].T + p["up_bias"], approximate=False)
    return h + dropout(inner @ p["down_weight"].T + p["down_bias"], second)


# Repeats in repeats ----------------------------------------------------------------------------


def stages(count: int, depth: int) -> Model:
    """Equal stages of equal layers, each stage with a gain that its layers share."""

    def loss() -> so.Symbol:
        h = so.var("x", (3, 4))
        for i in range(count):
            gain = so.var(f"stage{i}_gain", (4,))
            for j in range(depth):
                h = h + so.tanh(h @ so.var(f"stage{i}_layer{j}", (4, 4))) * gain
            h = so.layer_norm(h, name=f"stage{i}")
        return so.mean(so.square(h - so.var("target", (3, 4))))

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        def stage(h: Any, p: Any) -> tuple[Any, None]:
            def layer(h: Any, weight: Any) -> tuple[Any, None]:
                return h + jnp.tanh(h @ weight) * p["gain"], None

            h, _ = loop(layer, h, p["layers"])
            return layer_norm(h, p["gamma"], p["beta"]), None

        kinds = ("gain", "layers", "gamma", "beta")
        h, _ = loop(stage, params["x"], {kind: params[kind] for kind in kinds})
        return mean_square(h - params["target"]), states

    stacks = per_layer("stage", ("gain", "gamma", "beta"), range(count))
    layers = [[f"stage{i}_layer{j}" for j in range(depth)] for i in range(count)]
    return Model("stages of layers", loss, by_hand, {**stacks, "layers": layers})


# Chains ----------------------------------------------------------------------------------------


def chain(depth: int, shape: tuple[int, ...] = (5,)) -> Model:
    """One operator, again and again."""

    def loss() -> so.Symbol:
        h = so.var("x", shape)
        for _ in range(depth):
            h = so.sin(h)
        return so.sum(h)

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        h, _ = loop(lambda h, _: (jnp.sin(h), None), params["x"], None, depth)
        return h.sum(), states

    return Model("chain of one operator", loss, by_hand)


def periodic(depth: int, shape: tuple[int, ...] = (5,)) -> Model:
    """Three operators in turns; what is over of the last turn does not repeat."""

    def loss() -> so.Symbol:
        h = so.var("x", shape)
        for i in range(depth):
            h = (so.sin, so.exp, so.tanh)[i % 3](h)
        return so.sum(h)

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        h, _ = loop(
            lambda h, _: (jnp.tanh(jnp.exp(jnp.sin(h))), None), params["x"], None, depth // 3
        )
        for function in (jnp.sin, jnp.exp)[: depth % 3]:
            h = function(h)
        return h.sum(), states

    return Model("chain of period 3", loss, by_hand)
