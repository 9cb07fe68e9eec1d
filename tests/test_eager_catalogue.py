"""Eager gradients of every operator are those of the graph: the same makers, another road."""

import jax
import numpy as np
import pytest

import registry
from registry.operator.binding import LEFT_OUT
from registry.operator.operator import Derivative
from symop import autograd, random
from symop.autodiff.gradients import typed_grad
from symop.eager.lazy_backward import gradients
from symop.eager.ndarray import NDArray
from symop.eager.recording import flush
from symop.eager.tape import pull
from symop.graph.nodes import placeholder
from symop.lowering.steps import Schedule, bare, type_of
from symop.testing.compare import expect_close
from symop.testing.derived import Graph, Seeds, flat, normal_like
from symop.testing.trial import SEED, compiled, trials

# The two roads draw other random keys; test_autograd and test_ndarray have what draws.
OPERATORS = [
    one
    for one in registry.operators()
    if one.derivative is Derivative.MAKER
    if one.cases and not any(slot.role == "key" for slot in one.slots)
]


def heads_of(trial, orders):
    """Cotangents of the visible outputs, then of the gradients of each order."""
    generator = np.random.default_rng(SEED)
    shown = [i for i in trial.carrying if i in trial.operator.visible]
    levels = [[trial.outputs[i] for i in shown]]
    levels += [[type_of(one) for one in trial.primals]] * (orders - 1)
    return shown, [normal_like(generator, one) for one in levels]


def by_graph(trial, shown, heads):
    """The gradients of each order by graphs over placeholders."""
    graph = Graph(trial, Seeds.drawn(trial), orders=1)
    values = [graph.levels[0][trial.carrying.index(i)] for i in shown]
    seeds = [[placeholder("head", type_of(one).strong()) for one in row] for row in heads]
    levels = []
    for row in seeds:
        values = typed_grad(values, graph.primals, row, "zero")
        levels.append(values)
    inputs = [graph._present(i) for i in graph.fed]
    schedule = Schedule(flat(levels), [*inputs, *flat(seeds)], bare)
    given = [trial.inputs[i] for i in graph.fed]

    def run(given, rows):
        return schedule([*given, *flat(rows)])[0]

    found = iter(compiled(run, given, heads)(given, heads))
    return [[next(found) for _ in row] for row in levels]


def by_eager_calls(trial, shown, heads, at_once):
    """The same by calls that are recorded; ``at_once``: gradients of what did not run yet."""
    operator = trial.operator
    arrays = [NDArray(one) if isinstance(one, jax.Array) else one for one in trial.inputs]
    primals = [arrays[i] for i in trial.active]
    for one in primals:
        one.attach_grad()
    inputs = tuple(
        LEFT_OUT if operator.slot_of(i).implicit else value for i, value in enumerate(arrays)
    )
    random.seed(SEED)
    levels = []
    with autograd.record(train_mode=bool(trial.training)):
        made = NDArray.emitter.emit(operator, inputs, trial.attributes, None)
        results = dict(
            zip(operator.visible, made if isinstance(made, tuple) else (made,), strict=False)
        )
        values = [results[i] for i in shown]
        for row in heads:
            cotangents = [NDArray(head) for head in row]
            found = pending(values, primals, cotangents) if at_once else None
            values = along_the_tape(values, primals, cotangents) if found is None else found
            levels.append(values)
    return [[one.value for one in row] for row in levels]


def pending(values, primals, cotangents):
    """Gradients that become steps of the segment, or None."""
    given = list(zip(values, cotangents, strict=True))
    found = gradients(given, primals, create_graph=True, retain_graph=True)
    return None if found is None else [gradient for _, gradient in found]


def along_the_tape(values, primals, cotangents):
    """Gradients of what ran; zeros where none arrives."""
    flush()
    pairs = zip(values, cotangents, strict=True)
    given = [(one.source, head) for one, head in pairs if one.source is not None]
    walk = pull(given, primals, create_graph=True)
    found = [walk.gradient(one) for one in primals]
    return [
        NDArray(np.zeros(one.shape, one.dtype)) if slope is None else slope
        for one, slope in zip(primals, found, strict=True)
    ]


every_operator = pytest.mark.parametrize("operator", OPERATORS, ids=lambda one: one.name)


@every_operator
@pytest.mark.sampled(24)
def test_first_gradients_are_those_of_the_graph(operator):
    check(operator, 1, at_once=True)


@pytest.mark.slow
@every_operator
@pytest.mark.parametrize("at_once", [True, False])
def test_gradients_of_every_order_are_those_of_the_graph(operator, at_once):
    check(operator, 3, at_once)


def check(operator, top, at_once):
    with jax.enable_x64(True):
        trial = trials(operator, operator.cases[0])[-1]
        assert trial.differentiable
        orders = max(1, min(top, trial.case.order))
        shown, heads = heads_of(trial, orders)
        expected = by_graph(trial, shown, heads)
        found = by_eager_calls(trial, shown, heads, at_once)
        for k, (row, other) in enumerate(zip(found, expected, strict=True), 1):
            for mine, theirs in zip(row, other, strict=True):
                expect_close(mine, theirs, 1e-9, f"{trial}: order {k}, eager against the graph")
