"""A training step in one compiled function: forward, backward, the optimizer, auxiliary states."""

import operator
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

import symop as so
from symop import random
from symop.barrier import in_turn
from symop.function import GraphFunction
from symop.interop.mxnet.base_optimizer import Formula, told
from symop.interop.mxnet.calling_back import awaited
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.ndarray import NDArray
from symop.interop.mxnet.updater import Updater
from symop.ndarray import array_of as eager
from symop.recording import settle
from symop.symbol import Symbol as Graph

_OURS = 3
"""References to a value that only its array holds, while one looks at a list of values."""


class TrainingStep:
    """Does what ``forward``, ``backward`` and an updater do to the arrays of an executor.

    Parameters, what the optimizer keeps and auxiliary states are donated: the step takes no memory
    for new ones. So what something else holds, too, is copied first.
    """

    def __init__(self, executor: Executor, trained: Mapping[int, str], updater: Updater) -> None:
        """Prepare to train.

        Args:
            executor: whose graph and arrays.
            trained: names of the parameters, by the optimizer's indices.
            updater: the optimizer, one with a formula, and what it keeps.
        """
        self._executor, self._updater = executor, updater
        self._indices, self._trained = list(trained), list(trained.values())
        graph = executor.graph
        ys = [Graph([one], graph.also) for one in graph.nodes if one.type.differentiable]
        known = set(so.Group(ys).list_arguments()) if ys else set()
        self._moving = [name for name in self._trained if name in known]
        slopes = so.grad(ys, self._moving, unreachable="zero") if self._moving else []
        whole = so.Group([graph, *slopes])
        self._count = len(graph.nodes)
        self._function = GraphFunction(whole.nodes, whole.also, training=True)
        held = {**executor.arg_dict, **executor.aux_dict}
        self._schedule = self._function.schedule([held[n].value for n in self._function.names])
        names = self._function.names
        self._updated = [names[i] for i in self._schedule.updates]
        taken = {*self._trained, *self._updated}
        self._rest = [name for name in names if name not in taken]
        self._weights = [executor.arg_dict[name] for name in self._trained]
        self._states = [executor.aux_dict[name] for name in self._updated]
        self._compiled: dict[Hashable, Callable[..., Any]] = {}
        self._last: tuple[Any, Hashable, Callable[..., Any]] | None = None
        self._numbers: tuple[tuple[float, ...], Any] | None = None
        self._flat: tuple[list[Any], list[NDArray], Any] | None = None

    def run(self, feed: Mapping[str, Any]) -> list[NDArray]:
        """Train on a batch; the outputs, computed by the parameters before.

        Args:
            feed: arrays of JAX by name, of the shapes and dtypes of the executor's.
        """
        optimizer, held = self._updater.optimizer, self._executor.arg_dict
        assert isinstance(optimizer, Formula)
        self._updater.prepare(self._indices, self._weights)
        key, numbers = optimizer.plan(self._indices)
        kept, tree = self._kept()
        draws = self._schedule.draws
        root, offset = random.draw(draws) if draws else (None, None)
        moved = self._weights + kept + self._states
        rest = [feed[name] if name in feed else held[name].value for name in self._rest]
        step = self._step_for(optimizer, key, tree)
        new, outputs = step(_taken(moved), rest, self._numbers_of(numbers), root, offset)
        for array, value in zip(moved, new, strict=True):
            inner = array.inner  # its type stays, so there is nothing to check
            inner._value, inner._link = value, None
            array.tell()
        return [NDArray(eager(one)) for one in outputs]

    def _step_for(self, optimizer: Formula, key: Hashable, tree: Any) -> Callable[..., Any]:
        """The compiled step, mostly that of the last call: hashing what tells it is slow."""
        if self._last is None or self._last[0] is not tree or self._last[1] != key:
            step = self._compiled.get((key, tree)) or self._compile(optimizer, key, tree)
            self._last = tree, key, step
        return self._last[2]

    def _kept(self) -> tuple[list[NDArray], Any]:
        """The arrays that the optimizer keeps, and how they belong together."""
        states = [self._updater.states[one] for one in self._indices]
        if self._flat is None or any(map(operator.is_not, states, self._flat[0])):
            self._flat = (states, *jax.tree.flatten(states))
        return self._flat[1:]

    def _numbers_of(self, numbers: tuple[float, ...]) -> Any:
        """``numbers`` on the device, where they stay as long as they are the same."""
        if self._numbers is None or self._numbers[0] != numbers:
            self._numbers = numbers, told(numbers)
        return self._numbers[1]

    def _compile(self, optimizer: Formula, key: Hashable, tree: Any) -> Callable[..., Any]:
        names = self._function.names
        weights, kept = len(self._trained), tree.num_leaves

        def run(moved: Sequence[Any], rest: Any, numbers: Any, root: Any, offset: Any) -> Any:
            old, states = moved[:weights], tree.unflatten(moved[weights : weights + kept])
            given = dict(zip(self._trained, old, strict=True))
            given.update(zip(self._updated, moved[weights + kept :], strict=True))
            given.update(zip(self._rest, rest, strict=True))
            found, new = self._schedule(
                [given[name] for name in names], root, 0 if offset is None else offset
            )
            slopes = dict(zip(self._moving, found[self._count :], strict=True))
            grads = [
                slopes[name] if name in slopes else jnp.zeros_like(one)
                for name, one in zip(self._trained, old, strict=True)
            ]
            numbers = in_turn(numbers)
            new_weights, new_states = optimizer.apply(key, numbers, old, grads, states)
            # JAX gives donated memory to results in their order.
            return [*new_weights, *jax.tree.leaves(new_states), *new], found[: self._count]

        made: Callable[..., Any] = jax.jit(run, donate_argnums=0)
        if self._executor.calls_back:  # it may fail, and nothing must be lost then
            made = awaited(jax.jit(run))
        self._compiled[key, tree] = made
        return made


def _taken(arrays: Sequence[NDArray]) -> list[Any]:
    """The values of ``arrays``, to be donated; copies of those that something else holds."""
    settle()  # what was recorded may read them
    values = [one.inner.value for one in arrays]
    counts = list(map(sys.getrefcount, values))
    if max(counts, default=0) <= _OURS:
        return values
    pairs = zip(values, counts, strict=True)
    return [jnp.copy(one) if count > _OURS else one for one, count in pairs]
