"""Gradients of the whole catalogue: each operator's value and gradient program against JAX's own.

The program of the gradient maker is lowered and jitted; the other side is ``jax.vjp`` of the bare
kernel, on the same arrays and cotangents. Where XLA compiles both to the same instructions, the
ratio is one, and nothing is timed.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from measure import Figure, brief, compare
from tqdm import tqdm

import registry
from registry.cases import Workload, reshaped
from registry.operator.operator import Derivative, Operator
from symop.lowering.steps import Schedule, bare
from symop.testing.compare import expect_close
from symop.testing.derived import Graph, Seeds, flat
from symop.testing.trial import Trial

TITLE = "Gradients of the catalogue"
ENTRIES = (1024, 1024)
"""The shape of entrywise operators' inputs."""
TARGET = 1.2
REASONS: dict[str, str] = {
    "convolution_data_gradient": "its second convolution takes image and kernel in the order in "
    "which a convolution's weight gradient does, JAX's transposition in the other one, and XLA's "
    "library for the CPU is faster in that one for this shape",
    "diag_embed": "both programs fill a large array, and their times scatter: timed again by "
    "itself it takes 1.00 of JAX's time, with quartiles of 0.89 and 1.41",
    "expm1": "its gradient is exp(x), a second exponential: JAX's expm1(x) + 1 has no digits left "
    "where x is far below zero",
    "random_permutation": "its gradient draws the order anew, and JAX keeps it",
    "recompute": "its gradient computes the body again, as it is declared to; JAX keeps its values",
    "svdvals": "without a gradient it computes no vectors, so the gradient decomposes anew; "
    "JAX decomposes once, with vectors, as soon as a gradient is asked for",
}
"""Why an operator is slower than the target."""
PARTS = {
    "correlation_gradient": "part of correlation's gradient, which is timed",
    "correlation_tangent": "part of correlation's second derivative",
    "cofactor": "part of det: it takes the factors that det keeps",
    "factored_solve": "part of solve: it takes the factors that solve keeps",
}
"""Why an operator has no workload of its own."""
Program = Callable[..., Any]


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """A figure for each operator that has a gradient maker."""
    figures, missing = [], []
    chosen = [one for one in registry.operators() if measured(one)]
    for operator in tqdm(chosen, unit="operator", disable=None):
        workload = workload_of(operator)
        if workload is None:
            missing.append(operator.name)
            continue
        figures.append(figure_of(operator, workload, 5 if quick else 40))
    return figures, {"remarks": remarks(figures, missing)}


def measured(operator: Operator) -> bool:
    """Whether JAX differentiates the kernel to the same gradient, so that both can be compared."""
    return operator.derivative is Derivative.MAKER and operator.native and operator.compared


def workload_of(operator: Operator) -> Workload | None:
    """The declared workload; for an elementwise operator its first case with many entries."""
    if operator.workloads:
        return operator.workloads[0]
    slots = [one for one in operator.slots if not one.implicit]
    case = operator.cases[0]
    filled = {one.name: case.values[one.name] for one in slots if one.name in case.values}
    grown = {name: reshaped(value, ENTRIES) for name, value in filled.items()}
    if any(value is None for value in grown.values()):
        return None
    try:
        trial = Trial(
            operator, dataclasses.replace(case, values={**case.values, **grown}), "float32"
        )
    except Exception:
        return None
    entrywise = all(one.shape in (ENTRIES, ()) for one in trial.outputs)
    return Workload({**case.values, **grown}) if entrywise else None


def figure_of(operator: Operator, workload: Workload, repeats: int) -> Figure:
    """The times of both sides, and the ratio of the memory that they need."""
    training = None if operator.training_index is None else workload.values.get("training", True)
    trial = Trial(operator, workload, "float32", training)
    heads = Seeds.drawn(trial).heads[0]
    arguments = [jnp.asarray(one) for one in (*trial.primals, *heads)]
    sides = [jax.jit(one).lower(*arguments).compile() for one in (by_graph(trial), by_jax(trial))]
    check(trial, *(side(*arguments) for side in sides))
    texts = [instructions(side.as_text()) for side in sides]
    memory = memory_ratio(*sides)
    if texts[0] == texts[1]:
        return Figure(operator.name, 1.0, 1.0, 1.0, target=TARGET, memory=memory, unit="same")
    ours, theirs = (lambda side=side: jax.block_until_ready(side(*arguments)) for side in sides)
    figure = compare(
        operator.name, ours, theirs, repeats=repeats, target=TARGET, clock=brief, warm_up=3
    )
    return dataclasses.replace(figure, memory=memory)


def by_graph(trial: Trial) -> Program:
    """From primals and heads to outputs and gradients, as the maker composes them."""
    seeds = Seeds.drawn(trial)
    graph = Graph(trial, seeds, orders=1)
    variables = [graph.inputs[i] for i in graph.fed]
    schedule = Schedule(flat(graph.levels), [*variables, *graph.heads[0]], bare)
    count = len(trial.primals)

    def program(*values: Any) -> Sequence[Any]:
        inputs = trial.replaced(trial.active, values[:count])
        return schedule([*[inputs[i] for i in graph.fed], *values[count:]])[0]

    return program


def by_jax(trial: Trial) -> Program:
    """The same by ``jax.vjp`` of the kernel."""
    every, count = trial.function("kernel", trial.active), len(trial.primals)

    def outputs(*primals: Any) -> list[Any]:
        results = every(*primals)
        return [results[i] for i in trial.carrying]

    def program(*values: Any) -> Sequence[Any]:
        results, pull = jax.vjp(outputs, *values[:count])
        return [*results, *pull(list(values[count:]))]

    return program


def check(trial: Trial, ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    """Raise unless both compute the same, because otherwise the comparison is meaningless."""
    for mine, other in zip(ours, theirs, strict=True):
        expect_close(mine, other, 1e-2, f"{trial}: the gradient program against JAX")


_METADATA = re.compile(r", metadata=\{[^}]*\}")
_HEAD = re.compile(r"^HloModule.*$", re.MULTILINE)
_PLACES = re.compile(
    r"^(FileNames|FunctionNames|FileLocations|StackFrames)[\s\S]*?^$", re.MULTILINE
)
_NAMES = re.compile(r"%?[\w.-]+\.\d+|%[\w.-]+")


def instructions(text: str) -> str:
    """Compiled HLO without irrelevant text: source locations and names."""
    for noise in (_METADATA, _HEAD, _PLACES):
        text = noise.sub("", text)
    known: dict[str, str] = {}
    return _NAMES.sub(lambda name: known.setdefault(name[0], f"v{len(known)}"), text)


def memory_ratio(ours: Any, theirs: Any) -> float | None:
    """The ratio of the memory that both sides need in addition to their arguments."""
    mine, other = (side.memory_analysis() for side in (ours, theirs))
    if mine is None or other is None:
        return None
    total = [one.temp_size_in_bytes + one.output_size_in_bytes for one in (mine, other)]
    return round(total[0] / max(total[1], 1), 3)


def remarks(figures: list[Figure], missing: list[str]) -> list[str]:
    """The geometric mean, operators slower than the target with reasons, and those not measured."""
    ratios = [one.ratio for one in figures if one.ratio]
    mean = math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1))
    same = sum(one.unit == "same" for one in figures)
    most = sorted(figures, key=lambda one: one.memory or 0, reverse=True)[:5]
    told = [
        f"geometric mean of the ratios of {len(ratios)} operators: {mean:.3f} (target 1.0)",
        f"{same} of them compile to the very instructions of JAX's own gradient",
        "most memory, against JAX's own: "
        + ", ".join(f"{one.name} {one.memory:.2f}" for one in most),
    ]
    for one in figures:
        if one.ratio and one.ratio > TARGET:
            told.append(f"{one.name}: {REASONS.get(one.name, 'no reason is known')}")
    told += [f"{name}, not timed: {PARTS.get(name, 'no workload')}" for name in missing]
    return told
