"""Residual networks of images: stages of equal blocks, each stage wider than the one before."""

from typing import Any, NamedTuple

import jax
from jax import lax

import symop as so
from deep_models.base import Arrays, Loop, Model, mean_square


class Stages(NamedTuple):
    """Lengths of a residual network; the width doubles with each stage."""

    stages: int
    blocks: int
    batch: int = 2
    side: int = 4
    width: int = 2


PARAMS = (
    "conv0_weight", "norm0_gamma", "norm0_beta", "conv1_weight", "norm1_gamma", "norm1_beta",
)  # fmt: skip
STATES = (
    "norm0_moving_mean", "norm0_moving_var", "norm1_moving_mean", "norm1_moving_var",
)  # fmt: skip


def resnet(size: Stages) -> Model:
    """A first convolution, stages of blocks, and a layer of the mean over the image."""

    def loss() -> so.Symbol:
        h = so.var("image", (size.batch, 3, size.side, size.side))
        h = _convolved(h, "first", size.width, 1)
        for i in range(size.stages):
            for j in range(size.blocks):
                h = _block(h, f"stage{i}_block{j}", size.width * 2**i, changes=i > 0 and j == 0)
        logits = so.fully_connected(so.mean(h, axis=(2, 3)), units=3, name="last")
        return so.mean(so.square(logits - so.var("target", (size.batch, 3))))

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        h, new = _correlated(params["image"], params["first_weight"], 1), {}
        for i in range(size.stages):
            if i > 0:
                h, more = _block_by_hand(params, states, f"stage{i}_block0_", h, changes=True)
                new = {**new, **more}
            h, more = _stage_by_hand(params, states, f"stage{i}_", h, loop)
            new = {**new, **more}
        logits = h.mean((2, 3)) @ params["last_weight"].T + params["last_bias"]
        return mean_square(logits - params["target"]), new

    return Model("ResNet", loss, by_hand, _stacks(size, PARAMS), _stacks(size, STATES))


def _stacks(size: Stages, kinds: tuple[str, ...]) -> dict[str, list[str]]:
    """The blocks of a stage that are equal: all of the first stage, all but the first of others."""
    return {
        f"stage{i}_{kind}": [f"stage{i}_block{j}_{kind}" for j in range(1 if i else 0, size.blocks)]
        for i in range(size.stages)
        for kind in kinds
    }


# Symbols ---------------------------------------------------------------------------------------


def _convolved(h: so.Symbol, name: str, width: int, stride: int) -> so.Symbol:
    return so.convolution(
        h, channels=width, kernel=3, stride=stride, padding=1, use_bias=False, name=name
    )


def _block(h: so.Symbol, name: str, width: int, *, changes: bool) -> so.Symbol:
    inner = _convolved(h, f"{name}_conv0", width, 2 if changes else 1)
    inner = so.relu(so.batch_norm(inner, name=f"{name}_norm0"))
    inner = so.batch_norm(_convolved(inner, f"{name}_conv1", width, 1), name=f"{name}_norm1")
    short = _convolved(h, f"{name}_short", width, 2) if changes else h
    return so.relu(inner + short)


# By hand ---------------------------------------------------------------------------------------


def _stage_by_hand(
    params: Arrays, states: Arrays, prefix: str, h: Any, loop: Loop
) -> tuple[Any, Arrays]:
    own = {kind: params[prefix + kind] for kind in PARAMS}
    held = {kind: states[prefix + kind] for kind in STATES}

    def step(h: Any, xs: Any) -> tuple[Any, Arrays]:
        return _block_by_hand(*xs, "", h, changes=False)

    h, new = loop(step, h, (own, held))
    return h, {prefix + kind: value for kind, value in new.items()}


def _block_by_hand(
    params: Arrays, states: Arrays, prefix: str, h: Any, *, changes: bool
) -> tuple[Any, Arrays]:
    stride = 2 if changes else 1
    inner = _correlated(h, params[f"{prefix}conv0_weight"], stride)
    inner, new = _normal(params, states, f"{prefix}norm0", inner)
    inner = _correlated(jax.nn.relu(inner), params[f"{prefix}conv1_weight"], 1)
    inner, more = _normal(params, states, f"{prefix}norm1", inner)
    short = _correlated(h, params[f"{prefix}short_weight"], stride) if changes else h
    return jax.nn.relu(inner + short), {**new, **more}


def _correlated(h: Any, weight: Any, stride: int) -> Any:
    return lax.conv_general_dilated(h, weight, (stride, stride), ((1, 1), (1, 1)))


def _normal(params: Arrays, states: Arrays, name: str, h: Any) -> tuple[Any, Arrays]:
    mean, variance = h.mean((0, 2, 3)), h.var((0, 2, 3))
    scale = params[f"{name}_gamma"] * lax.rsqrt(variance + 1e-5)
    shape = (1, -1, 1, 1)
    normal = (h - mean.reshape(shape)) * scale.reshape(shape)
    held = {f"{name}_moving_mean": mean, f"{name}_moving_var": variance}
    new = {key: 0.9 * states[key] + 0.1 * value for key, value in held.items()}
    return normal + params[f"{name}_beta"].reshape(shape), new
