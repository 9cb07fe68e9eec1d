"""A compiled training step: forward, backward, the optimizer and auxiliary states."""

import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import jax
import jax.numpy as jnp

import symop as so
from symop import random
from symop.graph.nodes import topological
from symop.interop.mxnet.arrays import NDArray, hold_together
from symop.interop.mxnet.base_optimizer import Formula, told
from symop.interop.mxnet.calling_back import awaited
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.taking import taken
from symop.interop.mxnet.updater import Updater
from symop.runtime.donation import DonatingStep
from symop.runtime.function import GraphFunction
from symop.symbol.symbol import Symbol as Graph
from symop.xla.compiling import in_turn
from symop.xla.draft_runs import draft_runs
from symop.xla.drafts import DRAFT


class TrainingStep:
    """Applies ``forward``, ``backward`` and an updater to the arrays of an executor.

    Parameters, optimizer states and auxiliary states are donated, so that the step allocates no
    memory for new ones. Values that are also held elsewhere are copied first.
    """

    def __init__(self, executor: Executor, trained: Mapping[int, str], updater: Updater) -> None:
        """Prepares the step.

        Args:
            executor: the executor with graph and arrays.
            trained: names of the parameters, by the optimizer's indices.
            updater: an updater whose optimizer has a formula.
        """
        self._executor, self._updater = executor, updater
        self._indices, self._trained = list(trained), list(trained.values())
        graph = executor.graph
        ys = [Graph([one], graph.also) for one in graph.nodes if one.type.differentiable]
        known = set(so.Group(ys).list_arguments()) if ys else set()
        self._moving = [name for name in self._trained if name in known]
        slopes = self._slopes(ys) if self._moving else []
        whole = so.Group([graph, *slopes])
        self._count = len(graph.nodes)
        self._function = GraphFunction(whole.nodes, graph.also, training=True)
        held = {**executor.arg_dict, **executor.aux_dict}
        self._schedule = self._function.schedule([held[n].value for n in self._function.names])
        names = self._function.names
        self._updated = [names[i] for i in self._schedule.updates]
        taken = {*self._trained, *self._updated}
        self._rest = [name for name in names if name not in taken]
        self._weights = [executor.arg_dict[name] for name in self._trained]
        self._states = [executor.aux_dict[name] for name in self._updated]
        self._is_draft = executor.is_drafted and not executor.calls_back
        self._left: Iterator[int] | None = None
        self._compiled: dict[Hashable, DonatingStep] = {}
        self._last: tuple[Any, Hashable, Callable[..., Any]] | None = None
        self._numbers: tuple[tuple[float, ...], Any] | None = None
        self._flat: tuple[list[Any], list[NDArray], Any] | None = None

    def _slopes(self, ys: Sequence[Graph]) -> list[Any]:
        """The gradients of the outputs, which must be loss layers: a step has no cotangents."""
        heads = [so.var(f"head{i}", one.shape, one.dtype) for i, one in enumerate(ys)]
        slopes = so.grad(ys, self._moving, heads, unreachable="zero")
        read = set(topological([node for one in slopes for node in one.nodes]))
        if not any(one.nodes[0] in read for one in heads):
            return slopes
        self._executor.require_losses()  # a kernel may ignore the cotangent that it is given
        return so.grad(ys, self._moving, unreachable="zero")

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        """Trains on a batch; returns the outputs, computed from the old parameters, for JAX.

        Args:
            feed: JAX arrays by name, of the shapes and dtypes of the executor's.
        """
        optimizer, held = self._updater.optimizer, self._executor.arg_dict
        assert isinstance(optimizer, Formula)
        self._updater.prepare(self._indices, self._weights)
        kept, tree = self._kept()
        moved = self._weights + kept + self._states
        with optimizer.counted_if_changed(moved):
            key, numbers = optimizer.plan(self._indices)
            draws = self._schedule.draws
            root, offset = random.draw(draws) if draws else (None, None)
            rest = [feed[name] if name in feed else held[name].value for name in self._rest]
            into = self._step_for(optimizer, key, tree)
            outputs: list[Any] = []

            def store(results: Iterator[Any]) -> None:
                # The new values come first; exactly one is consumed for each array.
                values = chain.from_iterable(chain.from_iterable(results))
                hold_together(moved, values)
                outputs.extend(values)

            into(store, (taken(moved), rest, self._numbers_of(numbers), root, offset))
        return outputs

    def _step_for(self, optimizer: Formula, key: Hashable, tree: Any) -> Callable[..., Any]:
        """The compiled step, with a shortcut for repeated calls, since hashing its key is slow."""
        if self._is_draft and self._has_ended():
            # The steps go first: an interrupt in between leaves a draft that has ended.
            self._compiled, self._last = {}, None
            self._is_draft = False
        if self._last is None or self._last[0] is not tree or self._last[1] != key:
            step = self._compiled.get((key, tree)) or self._compile(optimizer, key, tree)
            # User code may fail: such a step runs synchronously, and nothing is donated.
            run = awaited(step.keeping) if self._executor.calls_back else step.into
            self._last = tree, key, run
        return self._last[2]

    def _has_ended(self) -> bool:
        """Counts a run of the draft; whether it was the last before."""
        if self._left is None:
            known = [one.jaxpr for one in self._compiled.values() if one.jaxpr is not None]
            if not known:
                return False
            self._left = iter(range(1, draft_runs(known[0])))
        return next(self._left, None) is None

    def _kept(self) -> tuple[list[NDArray], Any]:
        """The arrays of the optimizer's states, and their tree structure."""
        states = [self._updater.states[one] for one in self._indices]
        if self._flat is None or any(map(operator.is_not, states, self._flat[0])):
            self._flat = (states, *jax.tree.flatten(states))
        return self._flat[1:]

    def _numbers_of(self, numbers: tuple[float, ...]) -> Any:
        """``numbers`` on the device, cached while they are equal."""
        if self._numbers is None or self._numbers[0] != numbers:
            self._numbers = numbers, told(numbers)
        return self._numbers[1]

    def _compile(self, optimizer: Formula, key: Hashable, tree: Any) -> DonatingStep:
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
            # JAX assigns donated memory to results in their order.
            return [*new_weights, *jax.tree.leaves(new_states), *new], found[: self._count]

        options = DRAFT if self._is_draft else None
        step = self._compiled[key, tree] = DonatingStep(run, compiler_options=options)
        return step
