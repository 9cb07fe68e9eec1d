"""What a deep model is: a naive symbol, and the same by hand in JAX, unrolled or as scans."""

import functools
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import symop as so

Arrays = dict[str, Any]
Names = str | Sequence["Names"]
"""A name, or names in the order in which what they name is stacked; nested for stacks of stacks."""
RATE = 0.25
"""Of all dropout."""
Loop = Callable[..., tuple[Any, Any]]
"""``loop(step, carry, xs, length=None)`` gives the last carry and stacked results."""
ByHand = Callable[[Arrays, Arrays, Loop, Any], tuple[Any, Arrays]]
"""From parameters, states, the loop and a random key to the loss and new states."""


def in_python(step: Callable, carry: Any, xs: Any, length: int | None = None) -> tuple[Any, Any]:
    """What ``lax.scan`` computes, one step after another; a list stands for a stacked array."""
    leaves = jax.tree.leaves(xs, is_leaf=_is_list)
    found = []
    for i in range(len(leaves[0]) if leaves else length):
        carry, result = step(carry, _slice(xs, i))
        found.append(result)
    return carry, jax.tree.map(lambda *each: jnp.stack(each), *found)


def _slice(xs: Any, i: int) -> Any:
    return jax.tree.map(lambda one: one[i], xs, is_leaf=_is_list)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


@dataclass(frozen=True)
class Model:
    """One model, three times.

    Attributes:
        name: in tests and tables.
        loss: builds the naive symbol, anew at each call; of shape ``()``, all types known.
        by_hand: the same in JAX, written for stacked parameters; a loop is given.
        stacks: what the parameters that are stacked by hand are called there, and their names.
        states: the same for auxiliary states.
        draws: whether it draws random numbers in training.
        foreign: builds the symbol in MXNet's spelling, where the model is spelled so.
    """

    name: str
    loss: Callable[[], so.Symbol]
    by_hand: ByHand
    stacks: Mapping[str, Names] = field(default_factory=dict)
    states: Mapping[str, Names] = field(default_factory=dict)
    draws: bool = False
    foreign: Callable[[], Any] | None = None

    def arrays(self) -> tuple[Arrays, Arrays]:
        """Numbers for all arguments and for all states, of the graph's types, by name."""
        symbol = self.loss()
        shapes, _, held = symbol.infer_shape()
        generator = np.random.default_rng(zlib.crc32(self.name.encode()))
        draw = functools.partial(_drawn, generator)
        arguments = {n: draw(n, s) for n, s in zip(symbol.list_arguments(), shapes, strict=True)}
        states = symbol.list_auxiliary_states()
        return arguments, {n: draw(n, s) for n, s in zip(states, held, strict=True)}

    def scanned(self, params: Arrays, states: Arrays, key: Any = None) -> tuple[Any, Arrays]:
        """Loss and new states by scans; parameters and states are stacked, and so are new ones."""
        return self.by_hand(params, states, lax.scan, key)

    def unrolled(self, params: Arrays, states: Arrays, key: Any = None) -> tuple[Any, Arrays]:
        """Loss and new states by loops of Python over lists of parameters and of states."""
        return self.by_hand(params, states, in_python, key)


# Names and stacks ------------------------------------------------------------------------------


def stacked(names: Mapping[str, Names], arrays: Arrays) -> Arrays:
    """Arrays by hand-written names: those that ``names`` lists are stacked."""
    return _joined(names, arrays, jnp.stack)


def listed(names: Mapping[str, Names], arrays: Arrays) -> Arrays:
    """As ``stacked``, but in lists, which cost nothing."""
    return _joined(names, arrays, list)


def named(names: Mapping[str, Names], values: Arrays) -> Arrays:
    """Stacks, or lists, as single arrays under their own names."""
    found = {}
    for name, value in values.items():
        found.update(_spread(names.get(name, name), value))
    return found


def members(names: Names) -> list[str]:
    """All names in a stack."""
    return [names] if isinstance(names, str) else [one for each in names for one in members(each)]


def _joined(names: Mapping[str, Names], arrays: Arrays, join: Callable) -> Arrays:
    inside = {one for each in names.values() for one in members(each)}
    alone = {name: array for name, array in arrays.items() if name not in inside}
    return {**alone, **{name: _gathered(each, arrays, join) for name, each in names.items()}}


def _gathered(names: Names, arrays: Arrays, join: Callable) -> Any:
    if isinstance(names, str):
        return arrays[names]
    return join([_gathered(one, arrays, join) for one in names])


def _spread(names: Names, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(names, str):
        yield names, value
        return
    for i, one in enumerate(names):
        yield from _spread(one, value[i])


def _drawn(generator: np.random.Generator, name: str, shape: tuple[int, ...]) -> Any:
    """Numbers of a size that keeps deep models from growing; scales and variances near one."""
    small = generator.normal(size=shape) * 0.7 / max(1, np.prod(shape[1:])) ** 0.5
    if name.endswith("moving_var"):
        return jnp.asarray(1.0 + np.abs(small))
    return jnp.asarray(small + 1.0 if name.endswith("gamma") else small)


# What JAX lacks --------------------------------------------------------------------------------


def mean_square(value: Any) -> Any:
    """The loss of most models."""
    return jnp.mean(jnp.square(value))


def layer_norm(data: Any, gamma: Any, beta: Any) -> Any:
    """Statistics over the last axis."""
    centered = data - data.mean(-1, keepdims=True)
    variance = jnp.square(centered).mean(-1, keepdims=True)
    return gamma * centered * lax.rsqrt(variance + 1e-5) + beta


def draw_keys(key: Any, count: int) -> Any:
    """The keys of a graph's draws, in their order."""
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(count))


def dropout(data: Any, key: Any) -> Any:
    """Inverted dropout; without a key the identity."""
    if key is None:
        return data
    kept = jax.random.bernoulli(key, 1.0 - RATE, data.shape)
    return jnp.where(kept, data / (1.0 - RATE), 0.0)
