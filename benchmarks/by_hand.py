"""The networks trained on both sides: as symbols, and by hand in plain JAX."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

import symop as so
from symop import train

sys.path.append(str(Path(__file__).parents[1] / "examples"))
from digits import digits as load_digits
from digits import network

Arrays = dict[str, Any]
ByHand = Callable[[Arrays, Arrays, Arrays, Any], tuple[Any, Arrays]]
"""From parameters, states, batch and random key to the loss and the new states."""
RATE = 1e-3


@dataclass(frozen=True)
class Model:
    """One network, in both forms.

    Attributes:
        name: in tables.
        loss: builds the symbol of the loss, a new one at each call.
        by_hand: the same loss as a JAX function.
        batch: the inputs of a step.
        mixed: the same JAX function with products in bfloat16, or None.
    """

    name: str
    loss: Callable[[], so.Symbol]
    by_hand: ByHand
    batch: Arrays
    mixed: ByHand | None = None

    def trainer(self, **options: Any) -> train.Trainer:
        """symop's training step, with a newly built graph."""
        return train.Trainer(self.loss(), optax.adam(RATE), inputs=list(self.batch), **options)

    def initial(self) -> train.TrainState:
        """The state before the first step; both sides start from it."""
        return self.trainer().init(0, **{name: array.shape for name, array in self.batch.items()})

    def step_by_hand(self, *, accumulate: int = 1, mixed: bool = False) -> Callable[..., Any]:
        """The training step in plain JAX, as a new function at each call.

        Args:
            accumulate: the number of parts of a batch, over which ``lax.scan`` runs.
            mixed: whether the network is that of ``mixed``.
        """
        optimizer = optax.adam(RATE)
        network = self.mixed if mixed else self.by_hand
        assert network is not None

        def loss(params: Arrays, states: Arrays, batch: Arrays, key: Any) -> Any:
            return network(params, states, batch, key)

        value_and_grad = jax.value_and_grad(loss, has_aux=True)

        def in_parts(params: Arrays, states: Arrays, batch: Arrays, key: Any) -> Any:
            parts = jax.tree.map(lambda x: x.reshape(accumulate, -1, *x.shape[1:]), batch)

            def add(carry: Any, given: Any) -> tuple[Any, None]:
                total, slopes, states = carry
                part, index = given
                own = jax.random.fold_in(key, index)
                (value, states), gradients = value_and_grad(params, states, part, own)
                return (total + value, jax.tree.map(jnp.add, slopes, gradients), states), None

            start = (jnp.float32(0), jax.tree.map(jnp.zeros_like, params), states)
            sums, _ = lax.scan(add, start, (parts, jnp.arange(accumulate)))
            total, slopes, states = sums
            mean = jax.tree.map(lambda one: one / accumulate, (total, slopes))
            return (mean[0], states), mean[1]

        def step(state: train.TrainState, batch: Arrays) -> tuple[train.TrainState, Arrays]:
            key = jax.random.fold_in(state.key, state.step)
            evaluate = value_and_grad if accumulate == 1 else in_parts
            (value, states), gradients = evaluate(state.params, state.states, batch, key)
            updates, opt_state = optimizer.update(gradients, state.opt_state, state.params)
            params = optax.apply_updates(state.params, updates)
            new = train.TrainState(params, states, opt_state, state.key, state.step + 1)
            return new, {"loss": value}

        return jax.jit(step, donate_argnums=0)


# MLP -------------------------------------------------------------------------------------------


def mlp() -> Model:
    """784-512-512-10 with ReLU, at batch 128."""
    generator = np.random.default_rng(0)
    batch = {
        "data": generator.normal(size=(128, 784)).astype(np.float32),
        "label": generator.integers(0, 10, 128).astype(np.int32),
    }
    return Model("MLP", _mlp_loss, _mlp_by_hand, batch, _mlp_mixed)


def _mlp_loss() -> so.Symbol:
    hidden = so.var("data", shape=(128, 784))
    for i, units in enumerate((512, 512), start=1):
        hidden = so.relu(so.fully_connected(hidden, units=units, name=f"dense{i}"))
    logits = so.fully_connected(hidden, units=10, name="dense3")
    return so.mean(so.softmax_cross_entropy(logits, so.var("label", shape=(128,), dtype="int32")))


def _mlp_by_hand(params: Arrays, states: Arrays, batch: Arrays, key: Any) -> tuple[Any, Arrays]:
    del key
    hidden = batch["data"]
    for i in (1, 2):
        hidden = jax.nn.relu(_dense(params, f"dense{i}", hidden))
    return _cross_entropy(_dense(params, "dense3", hidden), batch["label"]), states


def _mlp_mixed(params: Arrays, states: Arrays, batch: Arrays, key: Any) -> tuple[Any, Arrays]:
    """The network with casts, as one writes them: the loss is that of float32 logits."""
    del key
    params = {name: one.astype(jnp.bfloat16) for name, one in params.items()}
    hidden = batch["data"].astype(jnp.bfloat16)
    for i in (1, 2):
        hidden = jax.nn.relu(_dense(params, f"dense{i}", hidden))
    logits = _dense(params, "dense3", hidden).astype(jnp.float32)
    return _cross_entropy(logits, batch["label"]), states


def _dense(params: Arrays, name: str, data: Any) -> Any:
    return data @ params[f"{name}_weight"].T + params[f"{name}_bias"]


def _cross_entropy(logits: Any, label: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits, label).mean()


# Digits ----------------------------------------------------------------------------------------


def digits() -> Model:
    """The convolutional network of the example, at batch 64."""
    training, _ = load_digits()
    batch = {name: array[:64] for name, array in training.items()}
    return Model("digits convnet", _digits_loss, _digits_by_hand, batch)


def _digits_loss() -> so.Symbol:
    return so.mean(so.softmax_cross_entropy(network(), so.var("label", dtype="int32")))


def _digits_by_hand(params: Arrays, states: Arrays, batch: Arrays, key: Any) -> tuple[Any, Arrays]:
    hidden, new = batch["image"], {}
    for stage in (1, 2):
        hidden = _convolution(hidden, params[f"conv{stage}_weight"])
        hidden, updated = _batch_norm(params, states, f"norm{stage}", hidden)
        hidden, new = jax.nn.relu(hidden), {**new, **updated}
    window = (1, 1, 2, 2)
    hidden = lax.reduce_window(hidden, -jnp.inf, lax.max, window, window, "VALID")
    hidden = _dropout(hidden.reshape(hidden.shape[0], -1), jax.random.fold_in(key, 0))
    hidden = jax.nn.relu(_dense(params, "dense1", hidden))
    logits = _dense(params, "dense2", _dropout(hidden, jax.random.fold_in(key, 1)))
    return _cross_entropy(logits, batch["label"]), new


def _convolution(data: Any, weight: Any) -> Any:
    return lax.conv_general_dilated(data, weight, (1, 1), ((1, 1), (1, 1)))


def _batch_norm(
    params: Arrays, states: Arrays, name: str, data: Any, *, epsilon: float = 1e-5
) -> tuple[Any, Arrays]:
    mean, variance = data.mean((0, 2, 3)), data.var((0, 2, 3))
    scale = params[f"{name}_gamma"] * lax.rsqrt(variance + epsilon)
    shape = (1, -1, 1, 1)
    normal = (data - mean.reshape(shape)) * scale.reshape(shape)
    result = normal + params[f"{name}_beta"].reshape(shape)
    return result, _running(states, name, mean, variance)


def _running(states: Arrays, name: str, mean: Any, variance: Any) -> Arrays:
    held = {f"{name}_moving_mean": mean, f"{name}_moving_var": variance}
    return {key: 0.9 * states[key] + 0.1 * value for key, value in held.items()}


def _dropout(data: Any, key: Any, rate: float = 0.3) -> Any:
    kept = jax.random.bernoulli(key, 1.0 - rate, data.shape)
    return jnp.where(kept, data / (1.0 - rate), 0.0)
