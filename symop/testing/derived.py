"""The derivatives of a trial from each source: the makers' graph, JAX's kernel, JAX's rules.

Level 0 holds the outputs, level 1 their gradients for random cotangents ("heads"), level 2 the
gradients of level 1 for further heads, and so on. Level 1 is differentiated by the inputs, every
higher level also by the first heads, which reveals a gradient that is wrong in its cotangent.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import NotLinearError
from registry.operator.attributes import identity_key
from registry.table import get
from registry.types import VarKind, VarType
from symop.autodiff.differentiate import output_values
from symop.autodiff.gradients import typed_grad, typed_jvp
from symop.graph.emission import apply
from symop.graph.nodes import Node, constant, placeholder
from symop.io.text import text
from symop.lowering.guarding import moved_by_jax
from symop.lowering.steps import Schedule, bare, type_of
from symop.testing.compare import dense
from symop.testing.trial import SEED, Arrays, Source, Trial, compiled


@dataclasses.dataclass
class Derived:
    """The results that one source computes for a trial.

    Attributes:
        levels: the outputs, then the gradients of each order.
        tangents: forward-mode tangents of levels 0 and 1; empty without forward mode.
    """

    levels: list[Arrays]
    tangents: list[Arrays]


jax.tree_util.register_dataclass(Derived, ["levels", "tangents"], [])


@dataclasses.dataclass(frozen=True)
class Seeds:
    """Random heads for each level and random tangents for levels 0 and 1, all distinct."""

    heads: list[Arrays]
    tangents: list[Arrays]

    @classmethod
    def drawn(cls, trial: Trial) -> "Seeds":
        """Returns seeds for ``trial``, the same ones each time."""
        generator = np.random.default_rng([SEED, trial.case.seed])
        first = normal_like(generator, [trial.outputs[i] for i in trial.carrying])
        inputs = [type_of(one) for one in trial.primals]
        both = [*inputs, *[type_of(one) for one in first]]
        likes = [inputs, *[both] * trial.order][: trial.order - 1]
        tangents = [normal_like(generator, like) for like in (inputs, both)]
        return cls([first, *[normal_like(generator, like) for like in likes]], tangents)


def normal_like(generator: np.random.Generator, types: Iterable[VarType]) -> Arrays:
    """Returns normal draws of the given types; complex draws have both parts."""
    return [jnp.asarray(_normal(generator, one)).astype(one.dtype) for one in types]


def _normal(generator: np.random.Generator, type_: VarType) -> np.ndarray:
    drawn = generator.standard_normal(type_.shape)
    return drawn + 1j * generator.standard_normal(type_.shape) if type_.dtype.kind == "c" else drawn


class Derivatives:
    """The derivatives of one trial, each source compiled on first use.

    Attributes:
        seeds: heads and tangents.
        graph: the gradient graphs built by the makers.
        sources: the other sources of the declared derivative.
    """

    def __init__(self, trial: Trial) -> None:
        """Builds the gradient graphs of ``trial``."""
        self.trial = trial
        self.seeds = Seeds.drawn(trial)
        self.graph = Graph(trial, self.seeds)
        self.sources = sources_of(trial)
        self._programs: dict[Source, Any] = {}
        self._found: dict[Source, Derived] = {}

    def of(self, source: Source) -> Derived:
        """Returns the results of ``source`` for the drawn arrays."""
        if source not in self._found:
            self._found[source] = self.at(source, self.trial.primals, self.seeds.heads)
        return self._found[source]

    def with_seeds(self, source: Source, seeds: Seeds) -> Derived:
        """Returns the results of ``source`` for the drawn arrays with ``seeds``."""
        if seeds is self.seeds:
            return self.of(source)
        return self.at(source, self.trial.primals, seeds.heads, seeds.tangents)

    def at(
        self,
        source: Source,
        primals: Arrays,
        heads: Sequence[Arrays],
        tangents: Sequence[Arrays] | None = None,
    ) -> Derived:
        """Returns the results of ``source``; ``tangents`` default to the drawn ones."""
        run = self._program(source)
        found: Derived = run(primals, list(heads), list(tangents or self.seeds.tangents))
        return jax.tree_util.tree_map(np.asarray, found)  # type: ignore[no-any-return]

    def _program(self, source: Source) -> Any:
        if source not in self._programs:
            chosen = self.graph.run if source == "graph" else functools.partial(self._jax, source)
            arguments = self.trial.primals, self.seeds.heads, self.seeds.tangents
            try:
                self._programs[source] = compiled(chosen, *arguments)
            except Exception as error:
                if source != "kernel":
                    raise
                raise AssertionError(
                    f"{self.trial}: JAX must be able to differentiate the kernel, or the operator "
                    f"be declared opaque=True, got {type(error).__name__}: {error}"
                ) from error
        return self._programs[source]

    def _jax(
        self,
        source: Source,
        primals: Arrays,
        heads: Sequence[Arrays],
        tangents: Sequence[Arrays],
    ) -> Derived:
        """Returns the same quantities as ``Graph.run``, differentiated by JAX."""
        trial = self.trial
        every = trial.function(source, trial.active)

        def outputs(*values: Any) -> Arrays:
            results = every(*values)
            return [results[i] for i in trial.carrying]

        functions: list[Callable[..., Arrays]] = [outputs]
        for k in range(len(heads)):
            functions.append(_pulled(functions[-1], k, heads, len(primals)))
        both = [*primals, *heads[0]]
        levels = [one(*(primals if k == 0 else both)) for k, one in enumerate(functions)]
        if not (self.graph.linear and (source == "rules" or self._moved_by_jax())):
            return Derived(levels, [[], []])
        moved = [
            jax.jvp(functions[k], tuple(at), tuple(tangents[k]))[1]
            for k, at in enumerate((primals, both))
        ]
        return Derived(levels, moved)

    def _moved_by_jax(self) -> bool:
        """Whether JAX has forward mode for the kernel: not if it contains a ``custom_vjp``."""
        operator, attributes = self.trial.operator, self.trial.attributes
        if operator.training_index is not None or operator.opaque:
            return True
        return moved_by_jax(operator, identity_key(attributes), attributes, self.trial.types)


def sources_of(trial: Trial) -> list[Source]:
    """Returns the sources of the declared derivative other than the makers' graph."""
    transparent = trial.operator.compared and not trial.operator.opaque
    return ["kernel", "rules"] if transparent else ["rules"]


@functools.lru_cache(maxsize=4)
def derivatives(trial: Trial) -> Derivatives:
    """Returns the derivatives of ``trial``; the most recent ones are cached."""
    return Derivatives(trial)


def _pulled(
    function: Callable[..., Arrays], k: int, heads: Sequence[Arrays], count: int
) -> Callable[..., Arrays]:
    """Returns the gradient of level ``k``: a function of the primals and of the first heads."""

    def run(*both: Any) -> Arrays:
        if k == 0:
            return list(jax.vjp(function, *both[:count])[1](list(both[count:])))
        return list(jax.vjp(function, *both)[1](heads[k]))

    return run


class Graph:
    """The gradient graphs of a trial over placeholders, built only by the gradient makers.

    Attributes:
        levels: the outputs, then the gradients of each order.
        linear: whether the maker is linear in its cotangents, so that forward mode exists.
    """

    def __init__(self, trial: Trial, seeds: Seeds, orders: int | None = None) -> None:
        """Builds the gradients of all orders up to the trial's, or of that many ``orders``."""
        self.trial = trial
        self.inputs = [_placed(trial, i) for i in range(len(trial.inputs))]
        self.fed = [i for i, one in enumerate(self.inputs) if one is not None and not one.inputs]
        self.fed = [i for i in self.fed if self._present(i).constant is None]
        self.primals = [self._present(i) for i in trial.active]
        self.heads = [_placeholders(f"head{k}_", one) for k, one in enumerate(seeds.heads)]
        self.heads[0] = [
            placeholder(f"d_{trial.operator.outputs[i]}", head.type)
            for i, head in zip(trial.carrying, self.heads[0], strict=True)
        ]
        self.tangents = [_placeholders(f"tangent{k}_", one) for k, one in enumerate(seeds.tangents)]
        # A named application is not simplified, so that the operator's own maker is tested.
        name = trial.operator.name
        node = apply(trial.operator, tuple(self.inputs), trial.attributes, name=name)
        values = output_values(node)
        self.levels = [[_dense(values[i]) for i in trial.carrying]]
        for k, heads in enumerate(self.heads[:orders]):
            grads = typed_grad(self.levels[-1], self._wrt(k), heads, "zero")
            self.levels.append([one for one in grads if one is not None])
        self.linear, self._moved = self._pushed()

    def _present(self, index: int) -> Node:
        node = self.inputs[index]
        assert node is not None
        return node

    def _wrt(self, k: int) -> list[Node]:
        return self.primals if k == 0 else [*self.primals, *self.heads[0]]

    def _pushed(self) -> tuple[bool, list[list[Node]]]:
        """Returns whether forward mode exists, and its tangents of levels 0 and 1."""
        try:
            moved = [
                typed_jvp(self.levels[k], self._wrt(k), self.tangents[k], "zero") for k in (0, 1)
            ]
        except NotLinearError:
            return False, [[], []]
        return True, moved

    def run(self, primals: Arrays, heads: Sequence[Arrays], tangents: Sequence[Arrays]) -> Derived:
        """Evaluates the graphs with bare kernels."""
        rows = [*self.levels, *self._moved]
        variables = [self._present(i) for i in self.fed]
        variables += [*flat(self.heads), *flat(self.tangents)]
        inputs = self.trial.replaced(self.trial.active, primals)
        values = [*[inputs[i] for i in self.fed], *flat(heads), *flat(tangents)]
        supply = map(dense, Schedule(flat(rows), variables, bare)(values)[0])
        found = [[next(supply) for _ in row] for row in rows]
        return Derived(found[:-2], found[-2:])

    def program(self, order: int) -> str:
        """Returns the gradient program of ``order`` as text."""
        return text(self.levels[order])


def _dense(node: Node) -> Node:
    """Returns the elements of a tensor array; any other value unchanged."""
    made: Node = node
    if node.type.kind is VarKind.LOD_TENSOR_ARRAY:
        made = get("array_stack")(node)
    return made


def _placed(trial: Trial, index: int) -> Node | None:
    value, type = trial.inputs[index], trial.types[index]
    if value is None or type is None:
        return None
    if isinstance(value, (bool, int, float, complex)):
        return constant(value)
    slot = trial.operator.slot_of(index)
    return placeholder(f"{slot.name}{index}" if slot.variadic else slot.name, type)


def _placeholders(stem: str, arrays: Arrays) -> list[Node]:
    return [placeholder(f"{stem}{i}", type_of(one).strong()) for i, one in enumerate(arrays)]


def flat(rows: Iterable[Sequence[Any]]) -> list[Any]:
    """Returns the entries of all ``rows``, concatenated."""
    return list(itertools.chain.from_iterable(rows))
