"""Lowering of a graph to a list of steps that run kernels on JAX values in sequence.

A ``Schedule`` holds kernels, attributes and positions, but no nodes, so it keeps no graph alive.
The caller chooses for each node how its operator is called: as a bare kernel or with derivative
rules.
"""

import contextlib
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import SupersededWarning
from registry.operator.bodies import bodies_of
from registry.operator.infer import type_of
from registry.operator.operator import Operator
from registry.types import DType, Shape, VarKind
from registry.values import SelectedRows, TensorArray
from registry.xla.barrier import barrier
from symop.graph.algebra import is_sum
from symop.graph.nodes import (
    ARRAY,
    CONSTANT,
    KEY,
    KEYS,
    TRAINING,
    Node,
    Origin,
    built_at,
    topological,
    user_origin,
)
from symop.lowering.explicit_axes import call_on_explicit_axes, on_explicit_axes
from symop.lowering.labels import label_of
from symop.xla.chain_barriers import STRIDE, cuts

__all__ = ["Call", "How", "Schedule", "bare", "bare_kernel", "is_native", "random_keys", "type_of"]

Call = Callable[..., Any]
How = Callable[[Node], Call]
"""Returns the function that computes a node from the values of its inputs."""

_UNNAMED = contextlib.nullcontext()
_ABSENT = 0
"""The position that always holds None."""
_KEY = 1
"""The position of the random key from which the graph's keys are folded."""
_OFFSET = 2
"""The position of the number of keys drawn before."""


def bare(node: Node) -> Call:
    """Returns the kernel of ``node`` with its attributes bound, without derivative rules."""
    assert isinstance(node.op, Operator)
    return bare_kernel(node.op, node.attributes)


def bare_kernel(operator: Operator, attributes: tuple[Any, ...]) -> Call:
    """Returns the kernel of ``operator`` with its attributes bound."""
    if not attributes:
        return operator.kernel
    return functools.partial(operator.kernel, **operator.attribute_dict(attributes))


def is_native(node: Node) -> bool:
    """Whether JAX's derivative of the kernel of ``node`` is the declared one.

    An operator that runs bodies is native only if they are.
    """
    assert isinstance(node.op, Operator)
    return node.op.native and all(body.native for body in bodies_of(node.attributes))


class Schedule:
    """The steps that compute ``outputs`` from ``variables``.

    Attributes:
        draws: The number of random keys that the graph's calls drew when they were made.
        needs_key: Whether one of these keys is still used.
        updates: The positions in ``variables`` of those whose state an operator updates.
    """

    def __init__(
        self,
        outputs: Sequence[Node],
        variables: Sequence[Node],
        how: How,
        *,
        training: bool = False,
        order: Sequence[Node] | None = None,
        keys: Sequence[Node] | None = None,
        updates: Mapping[Node, Node] | None = None,
    ) -> None:
        """Plans the steps; ``training`` is the value of the training flag.

        ``keys`` numbers the random keys; by default those that ``outputs`` reach are numbered.
        ``updates`` are the new values of variables whose state the graph updates.
        """
        updates = updates or {}
        if order is None:
            order = topological([*outputs, *updates.values()], until=variables)
        self._places: dict[Node, int] = {}
        self._size = 3
        self._steps: list[tuple[Call, tuple[int, ...], int]] = []
        self._built: dict[int, tuple[str, Origin | None]] = {}
        self._labels: dict[int, str] = {}
        self._variables = [self._place(node) for node in variables]
        ranks = {
            node: rank for rank, node in enumerate(random_keys(order) if keys is None else keys)
        }
        self.draws = len(ranks)
        self.needs_key = any(node.op in (KEY, KEYS) for node in order)
        cut = cuts(order)
        for node in order:
            if node in self._places:
                continue
            if node in cut:
                self._plan_cut(node, how)
            else:
                self._plan(node, how, ranks, training)
        self._outputs = [self._places[node] for node in outputs]
        self._new = [self._places[node] for node in updates.values()]
        index = {node: i for i, node in enumerate(variables)}
        self.updates = [index[node] for node in updates]
        self._places = {}

    def _place(self, node: Node) -> int:
        place = self._places[node] = self._size
        self._size += 1
        return place

    def _plan(self, node: Node, how: How, ranks: Mapping[Node, int], training: bool) -> None:
        operator = node.op
        step: tuple[Call, tuple[int, ...]]
        if node.is_selection:
            step = (functools.partial(_take, node.index), self._inputs(node))
        elif operator is CONSTANT:
            step = (_filler(node), ())
        elif operator is ARRAY:
            step = (functools.partial(_held, node.attributes[0].value), ())
        elif operator is KEY:
            step = (functools.partial(_folded_key, ranks[node]), (_KEY, _OFFSET))
        elif operator is KEYS:
            numbers = _numbers(node.attributes[0], ranks)
            step = (functools.partial(_folded_keys, numbers), (_KEY, _OFFSET))
        elif operator is TRAINING:
            step = (functools.partial(_held, training), ())
        elif isinstance(operator, Operator):
            if operator.site is not None and operator.site.superseded:
                _warn_of_superseded(node)
            step = (how(node), self._inputs(node))
            self._built[self._size] = _called(operator, node), node.origin
            self._labels[self._size] = label_of(node)
        else:
            raise AssertionError(f"{node!r} cannot be lowered: {operator}")
        self._steps.append((*step, self._place(node)))

    def _inputs(self, node: Node) -> tuple[int, ...]:
        return tuple(_ABSENT if n is None else self._places[n] for n in node.inputs)

    def _plan_cut(self, node: Node, how: How) -> None:
        """Plans a value behind a fusion barrier; a sum of many terms is computed in parts."""
        call = functools.partial(_take, node.index) if node.is_selection else how(node)
        inputs = self._inputs(node)
        few = STRIDE if is_sum(node) else len(inputs)
        place, rest = self._barred(node, call, inputs[:few]), inputs[few:]
        while rest:
            place, rest = self._barred(node, call, (place, *rest[: few - 1])), rest[few - 1 :]
        self._places[node] = place

    def _barred(self, node: Node, call: Call, inputs: tuple[int, ...]) -> int:
        """Plans ``call`` on ``inputs`` behind a barrier, and returns the result's position."""
        place, barred = self._size, self._size + 1
        self._built[place] = node.op.name, node.origin
        if isinstance(node.op, Operator):
            self._labels[place] = label_of(node)
        self._size += 2
        self._steps += [(call, inputs, place), (barrier, (place,), barred)]
        return barred

    def __call__(
        self,
        values: Sequence[Any],
        key: Any = None,
        offset: Any = 0,
    ) -> tuple[list[Any], list[Any]]:
        """Returns the outputs and the new values of the variables in ``updates``, in that order.

        The graph's random keys are ``fold_in(key, offset)``, ``fold_in(key, offset + 1)``, ... in
        the order in which the user made them, as if the calls drew them in sequence.
        """
        held: list[Any] = [None] * self._size
        held[_KEY], held[_OFFSET] = key, offset
        for place, value in zip(self._variables, values, strict=True):
            held[place] = value
        try:
            explicit = on_explicit_axes(values)
            for call, inputs, place in self._steps:
                operands = [held[i] for i in inputs]
                label = self._labels.get(place)
                with _UNNAMED if label is None else jax.named_scope(label):
                    held[place] = (
                        call_on_explicit_axes(call, operands) if explicit else call(*operands)
                    )
        except Exception as error:
            name, origin = self._built.get(place, ("a value", None))
            error.add_note(f"  in {name}{self._turn(place)}{built_at(origin)}")
            raise
        return [held[i] for i in self._outputs], [held[i] for i in self._new]

    def _turn(self, place: int) -> str:
        """Returns the position of a step among equal operators that the same line built."""
        name, origin = self._built.get(place, ("", None))
        if origin is None:
            return ""
        alike = [
            at
            for at, (other, theirs) in self._built.items()
            if other == name and theirs is not None and theirs[:3] == origin[:3]
        ]
        return f", number {alike.index(place) + 1} of {len(alike)}" if len(alike) > 1 else ""


def random_keys(order: Sequence[Node]) -> list[Node]:
    """Returns the random keys of a graph in the order in which they were made."""
    return sorted((n for n in order if n.op is KEY), key=lambda node: node.serial)


def _warn_of_superseded(node: Node) -> None:
    """Warns, at the user's line that runs the graph, that it holds an operator's former version."""
    origin = user_origin()
    warnings.warn_explicit(
        f"{node.op.name}: it was declared again after this graph was built, which keeps the former "
        f"operator; build the graph again to use the new one{built_at(node.origin)}",
        SupersededWarning,
        origin.file,
        origin.line,
    )


def _called(operator: Operator, node: Node) -> str:
    """Returns an operator's name in errors; a loop's includes its number of steps."""
    length = operator.attribute_dict(node.attributes).get("length") if node.attributes else None
    steps = length is not None and bool(bodies_of(node.attributes))
    return f"{operator.name} of {length} steps" if steps else operator.name


def _take(index: int, values: Sequence[Any]) -> Any:
    return values[index]


def _held(value: Any) -> Any:
    return value


def _folded_key(rank: int, key: Any, offset: Any) -> Any:
    return jax.random.fold_in(key, offset + rank)


def _numbers(keys: Any, ranks: Mapping[Node, int]) -> Any:
    """Returns the numbers of nested keys."""
    if isinstance(keys, Node):
        return ranks[keys]
    return np.asarray([_numbers(one, ranks) for one in keys], np.uint32)


def _folded_keys(numbers: np.ndarray, key: Any, offset: Any) -> Any:
    """Returns the same keys as ``_folded_key`` gives one by one."""
    fold = functools.partial(jax.random.fold_in, key)
    return jax.vmap(fold)(offset + numbers.reshape(-1)).reshape(numbers.shape)


def _filler(node: Node) -> Call:
    value, dtype, shape = node.attributes
    if node.type.kind is VarKind.SELECTED_ROWS:
        return functools.partial(_filled_rows, value, dtype, shape)
    if dtype is None:
        return functools.partial(_held, value)
    type = node.type
    if type.kind is VarKind.LOD_TENSOR_ARRAY:
        return functools.partial(TensorArray.filled, type, value)
    if shape == ():
        return functools.partial(_held, np.asarray(value, dtype))
    return functools.partial(jnp.full, shape, value, dtype)


def _filled_rows(value: Any, dtype: DType, shape: Shape) -> SelectedRows:
    """Returns rows that all hold one number; no rows if it is zero."""
    count = shape[0] if value else 0
    rows = jnp.arange(count, dtype=np.int32)
    return SelectedRows(rows, jnp.full((count, *shape[1:]), value, dtype), shape[0])
