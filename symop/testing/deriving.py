"""Cases of gradient operators, derived from the calls that other operators' gradients make.

``register_op`` and ``register_simple_op`` declare two operators, and the cases of the forward
operator determine the values with which the gradient operator is called.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from registry.audit import entry_of
from registry.cases import Case
from registry.operator.attributes import identity_key
from registry.operator.operator import Derivative, Operator
from registry.table import operators
from symop.graph.nodes import Node, topological
from symop.lowering.steps import Schedule, bare
from symop.testing.derived import Graph, Seeds, flat
from symop.testing.trial import Trial, trials

_MOST = 6
"""The maximal number of calls of an operator that become cases: one for each kind of call."""


def derived_cases(operator: Operator) -> list[Case]:
    """Returns as cases the calls of ``operator`` in other operators' gradients, on their cases."""
    found: dict[Any, Case] = {}
    with jax.enable_x64(True):
        for caller in filter(_may_call, operators()):
            if caller is operator or operator.name not in _reached(caller):
                continue
            for case in caller.cases:
                for key, made in _calls_on(caller, case, operator):
                    found.setdefault(key, made)
    return list(found.values())[:_MOST]


def _may_call(caller: Operator) -> bool:
    made = caller.derivative is Derivative.MAKER
    return made and bool(caller.cases) and not caller.catalogued


def _reached(caller: Operator) -> tuple[str, ...]:
    try:
        return entry_of(caller).reaches
    except Exception:  # a case that cannot be drawn: reported by the caller's own proofs
        return ()


def _calls_on(caller: Operator, case: Case, operator: Operator) -> list[tuple[Any, Case]]:
    try:
        return [one for trial in trials(caller, case) for one in _cases_in(trial, operator)]
    except Exception:  # a maker that fails: reported by the caller's own proofs
        return []


def _cases_in(trial: Trial, operator: Operator) -> Iterator[tuple[Any, Case]]:
    """Yields the calls of ``operator`` in the gradients of ``trial``, with a key for each."""
    if not trial.differentiable:
        return
    seeds = Seeds.drawn(trial)
    graph = Graph(trial, seeds)
    calls = [
        node
        for node in topological(flat(graph.levels))
        if isinstance(node.op, Operator) and (node.op.family or node.op) is operator
    ]
    for node in calls:
        values = _values(graph, trial, seeds, node)
        types = tuple(None if one is None else one.type for one in node.inputs)
        filled = _by_slot(operator, values) | operator.attribute_dict(node.attributes)
        # The forward operator's gradient of order n is this operator's gradient of order n - 1.
        made = dataclasses.replace(trial.case, values=filled, order=trial.case.order - 1)
        yield (types, identity_key(node.attributes)), made


def _values(graph: Graph, trial: Trial, seeds: Seeds, node: Node) -> list[Any]:
    """Returns the values of the inputs of ``node``."""
    present = [one for one in node.inputs if one is not None]
    fed = [one for i in graph.fed if (one := graph.inputs[i]) is not None]
    schedule = Schedule(present, [*fed, *flat(graph.heads)], bare)
    supply = iter(schedule([*[trial.inputs[i] for i in graph.fed], *flat(seeds.heads)])[0])
    return [None if one is None else next(supply) for one in node.inputs]


def _by_slot(operator: Operator, values: list[Any]) -> dict[str, Any]:
    """Returns the values of each slot of a case; implicit and empty slots are omitted."""
    filled: dict[str, Any] = {}
    for slot, given in operator.input_groups(values):
        drawn = [] if slot.implicit else [_Computed.of(one) for one in given if one is not None]
        if drawn:
            filled[slot.name] = drawn if slot.variadic else drawn[0]
    return filled


@dataclasses.dataclass(frozen=True)
class _Computed:
    """An array computed by a gradient, usable as a sample in each dtype."""

    values: np.ndarray

    @classmethod
    def of(cls, value: Any) -> Any:
        """Wraps an array; returns a number unchanged."""
        return cls(np.asarray(value)) if isinstance(value, (jax.Array, np.ndarray)) else value

    def __call__(self, _generator: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        return self.values.astype(dtype) if self.values.dtype.kind == "f" else self.values

    def __repr__(self) -> str:
        return f"computed{self.values.shape}"
