"""Depth: models written as Python loops, against handwritten scans in JAX.

The models are those of ``tests/deep_models``, where tests prove each equal to its counterpart
here.
"""

import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from by_hand import Model as Trained
from by_hand import digits, mlp
from measure import Figure, Program, brief, compare, judged, seconds
from steps import forget, stages

import symop as so
from registry import tuning
from symop.passes.roll_loops.switch import is_rolling
from symop.runtime.array_store import arrays_of
from symop.runtime.function import specialize

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from deep_models import Arrays, Model, images, layers, listed, named, recurrent, stacked

TITLE = "Depth"
TARGET = 1.2
IDLE_TARGET = 1.05
CHOICE_TARGET = 1.1
DATA = {"x", "target", "image"}
"""Variables that are fed; gradients are those of all others."""
OPERATORS_OF_A_STEP = 20
"""Of the naive LSTM."""


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of depth."""
    share = 10 if quick else 1
    figures = []
    for name, model in deep(share).items():
        figures += against_scan(name, model, 2 if quick else 3, 5 if quick else 30)
    for name in (f"{96 // share} residual layers",):
        figures += apart(name, deep(share)[name], 2, 5 if quick else 30)
    for name, model in shallow(share).items():
        figures += against_unrolled(name, model, 1, 5 if quick else 30)
    for name, model in rolled_or_not(share).items():
        figures += chosen(name, model, 5 if quick else 30)
    for trainee, repeats in ((mlp(), 12), (digits(), 6)):
        figures.append(idle(trainee, 2 if quick else repeats))
    figures += passes(10_000 // share, 3) + passes(100_000 // share, 1)
    return figures, {"remarks": REMARKS}


REMARKS = [
    "A step is the loss and its gradients by all parameters. Before it is timed both sides must "
    "give the same.",
    "Parameters of repeated layers are stacked on both sides, by stacked=True on symop's; where a "
    "figure says apart they are single arrays on both. In unrolled JAX they are lists of arrays.",
    "Trace and compile start with every cache empty; symop's part includes building and "
    "differentiating the graph.",
    "The second column is not always JAX: where a figure says so it is symop with rolling switched "
    "off, or with everything rolled that repeats, and beside the pass alone it is one second.",
]


# Models ----------------------------------------------------------------------------------------


def deep(share: int) -> dict[str, Model]:
    """The models at full depth, or at a share of it."""
    few, many, blocks = 50 // share, 200 // share, max(24 // share, 2)
    return {
        f"LSTM of {few} steps": lstm(few),
        f"LSTM of {many} steps": lstm(many),
        f"{96 // share} residual layers": layers.residual(96 // share, 64, 32),
        f"{blocks} transformer blocks": transformer(blocks),
        f"ResNet, 4 stages of {max(6 // share, 2)} blocks": resnet(4, max(6 // share, 2)),
        f"chain of {1000 // share}": layers.chain(1000 // share, (1024,)),
    }


def shallow(share: int) -> dict[str, Model]:
    """The same models at a depth that plain JAX compiles in seconds."""
    part = max(share // 3, 1)
    return {
        f"LSTM of {12 // part} steps": lstm(12 // part),
        f"{16 // part} residual layers": layers.residual(16 // part, 64, 32),
        f"{6 // part} transformer blocks": transformer(6 // part),
        f"ResNet, 2 stages of {max(4 // part, 2)} blocks": resnet(2, max(4 // part, 2)),
        f"chain of {150 // part}": layers.chain(150 // part, (1024,)),
    }


def rolled_or_not(share: int) -> dict[str, Model]:
    """The shallow models, and many layers of which each is wide: some are better not rolled."""
    many = max(100 // share, 4)
    return {**shallow(share), f"{many} wide layers": layers.residual(many, 64, 1024)}


def lstm(steps: int) -> Model:
    """64 units at batch 16; the outputs of all steps are read."""
    return recurrent.recurrent("lstm", recurrent.Size(steps, 16, 64, 64), collects="stack")


def transformer(blocks: int) -> Model:
    """Width 64, four heads, 32 tokens."""
    return layers.transformer(layers.Attending(blocks, 4, 32, 4, 64))


def resnet(count: int, blocks: int) -> Model:
    """Widths from 8 up, images of 16 by 16."""
    return images.resnet(images.Stages(count, blocks, 4, 16, 8))


# Sides -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """One way to compute a model's loss, its gradients, and new states if it has any.

    Attributes:
        make: creates the function.
        given: its arguments.
        names: names of the parameters that it takes stacked, or in lists.
    """

    make: Callable[[], Any]
    given: tuple[Any, ...]
    names: Any

    def compiled(self) -> Any:
        """The compiled function."""
        return jax.jit(self.make()).lower(*self.given).compile()

    def run(self, compiled: Any) -> Any:
        """One step, waited for."""
        return jax.block_until_ready(compiled(*self.given))

    def found(self, compiled: Any) -> Arrays:
        """Gradients by the names of the graph, and the loss."""
        loss, slopes, *_ = self.run(compiled)
        return {"": loss, **named(self.names, slopes)}


def by_graph(model: Model, *, apart: bool = False) -> Side:
    """The naive symbol: built, differentiated, lowered; parameters stacked unless ``apart``."""
    params, states = single(model.arrays())

    def made() -> so.symbol.building.ValueAndGrad:
        loss = model.loss()
        return so.value_and_grad(loss, trained(loss), is_train=bool(states), stacked=not apart)

    def make() -> Any:
        function = made()
        return lambda given: function(**given)

    like = made()
    return Side(make, (like.stack({**params, **states}),), like.stacks)


def by_hand(model: Model, join: Callable[..., Arrays], function: Callable[..., Any]) -> Side:
    """Plain JAX; ``join`` combines the repeated parameters into the form ``function`` takes."""
    params, states = single(model.arrays())
    wanted = trained(model.loss())
    moving = {name: params.pop(name) for name in wanted}

    def make() -> Any:
        def loss(moving: Arrays, fixed: Arrays, states: Arrays) -> Any:
            return function({**moving, **fixed}, states)

        def step(*given: Arrays) -> Any:
            (value, new), slopes = jax.value_and_grad(loss, has_aux=True)(*given)
            return value, slopes, new

        return step

    given = (join(model.stacks, moving), params, join(model.states, states))
    return Side(make, given, model.stacks)


def trained(loss: so.Symbol) -> list[str]:
    """Names of the parameters; for a model without any, its input."""
    return [name for name in loss.list_arguments() if name not in DATA] or ["x"]


def single(arrays: Any) -> Any:
    """Single-precision arrays."""
    return jax.tree.map(lambda one: jnp.asarray(one, jnp.float32), arrays)


# Figures ---------------------------------------------------------------------------------------


def against_scan(name: str, model: Model, compilings: int, steps: int) -> list[Figure]:
    """Compilation, a step of the function, and a step of an executor."""
    ours, theirs = by_graph(model), by_hand(model, stacked, model.scanned)
    first, (mine, other) = compilation(f"{name}: trace and compile", ours, theirs, compilings)
    agree(ours.found(mine), theirs.found(other))
    executed = executor(model)
    executed()
    return [
        first,
        paired(f"{name}: step", lambda: ours.run(mine), lambda: theirs.run(other), steps),
        paired(f"{name}: step of an executor", executed, lambda: theirs.run(other), steps),
    ]


def apart(name: str, model: Model, compilings: int, steps: int) -> list[Figure]:
    """Parameters as single arrays, which a step has to stack."""

    def scanned(params: Arrays, states: Arrays) -> Any:
        joined = (
            {name: jnp.stack(one) if isinstance(one, list) else one for name, one in each.items()}
            for each in (params, states)
        )
        return model.scanned(*joined)

    ours, theirs = by_graph(model, apart=True), by_hand(model, listed, scanned)
    title = f"{name}, parameters apart"
    first, (mine, other) = compilation(f"{title}: trace and compile", ours, theirs, compilings)
    second = paired(f"{title}: step", lambda: ours.run(mine), lambda: theirs.run(other), steps)
    return [first, second]


def against_unrolled(name: str, model: Model, compilings: int, steps: int) -> list[Figure]:
    """Against Python loops in JAX; informational."""
    ours, theirs = by_graph(model), by_hand(model, listed, model.unrolled)
    title = f"{name}, against unrolled JAX"
    first, (mine, other) = compilation(f"{title}: trace and compile", ours, theirs, compilings)
    agree(ours.found(mine), theirs.found(other))
    second = paired(f"{title}: step", lambda: ours.run(mine), lambda: theirs.run(other), steps)
    return [replace(one, target=None) for one in (first, second)]


def chosen(name: str, model: Model, steps: int) -> list[Figure]:
    """A step in which the cost model decides what is rolled, against none and all of it."""
    side = by_graph(model, apart=True)
    mine = side.compiled()
    figures = []
    for what, choice in (
        ("rolling switched off", so.rolling(False)),
        ("rolling whatever repeats", without_costs()),
    ):
        with choice:
            other = side.compiled()
        agree(side.found(mine), side.found(other))
        title = f"{name}, parameters apart: step, against {what}"
        figure = paired(title, lambda: side.run(mine), lambda other=other: side.run(other), steps)
        figures.append(replace(figure, target=CHOICE_TARGET))
    return figures


@contextmanager
def without_costs() -> Iterator[None]:
    """Rolls whatever repeats into loops of one step, as if these cost nothing."""
    before = tuning.present.tuning
    package = "symop.passes.roll_loops"
    with (
        mock.patch(f"{package}.loops.copies_too_much", return_value=False),
        mock.patch(f"{package}.loops.saves_compiling", return_value=True),
        mock.patch(f"{package}.rolling.waits_for_memory", return_value=False),
    ):
        tuning.tune(convolving_steps=0, most_copied=1 << 40)
        try:
            yield
        finally:
            tuning.present.tuning = before


def compilation(title: str, ours: Side, theirs: Side, repeats: int) -> tuple[Figure, list[Any]]:
    """Both compiled alternately with empty caches; the figure, and the last compiled functions."""
    sides, made, pairs = (ours, theirs), [None, None], []
    for i in range(repeats):
        taken = [0.0, 0.0]
        for side in (0, 1) if i % 2 else (1, 0):
            forget()
            start = time.perf_counter()
            made[side] = sides[side].compiled()
            taken[side] = time.perf_counter() - start
        pairs.append((taken[0], taken[1]))
    return judged(title, pairs, target=TARGET), made


def paired(title: str, ours: Program, theirs: Program, repeats: int) -> Figure:
    """Steps, alternately."""
    return compare(title, ours, theirs, repeats=repeats, target=TARGET, clock=brief, warm_up=3)


def agree(ours: Arrays, theirs: Arrays) -> None:
    """Raise unless both sides agree, because otherwise the comparison is meaningless."""
    assert ours.keys() == theirs.keys()
    for name, other in theirs.items():
        atol = 2e-3 * max(float(jnp.abs(other).max()), 1e-3)
        np.testing.assert_allclose(ours[name], other, rtol=0, atol=atol, err_msg=name)


def executor(model: Model) -> Program:
    """A forward and a backward pass."""
    params, states = single(model.arrays())
    loss = model.loss()
    requests = dict.fromkeys(trained(loss), "write")
    bound = loss.bind(params, grad_req=requests, aux_states=states, stacked=True)

    def step() -> None:
        bound.forward(is_train=True)
        bound.backward()
        jax.block_until_ready((bound.outputs, *map(arrays_of, (bound.grad_dict, bound.aux_dict))))

    return step


# What has nothing to roll ----------------------------------------------------------------------


def idle(model: Trained, repeats: int) -> Figure:
    """Tracing and compiling a training step, with the pass and without."""
    state = model.initial()
    pairs = []
    for i in range(repeats + 1):
        taken = [0.0, 0.0]
        for side in (0, 1) if i % 2 else (1, 0):
            with nullcontext() if side == 0 else so.rolling(False):
                taken[side] = sum(stages(lambda: model.trainer()._step, state, model.batch))
        pairs.append((taken[0], taken[1]))
    title = f"{model.name}: trace and compile, against rolling switched off"
    return judged(title, pairs[1:], target=IDLE_TARGET)


# The pass alone --------------------------------------------------------------------------------


def passes(count: int, repeats: int) -> list[Figure]:
    """The pass on graphs of ``count`` operators, against one second."""
    target = 1.0 if count <= 10_000 else None
    graphs = {
        "one chain": lambda: layers.chain(count).loss(),
        "an LSTM": lambda: lstm(count // OPERATORS_OF_A_STEP).loss(),
        "nothing that repeats": lambda: irregular(count),
    }
    return [
        one_second(f"the pass on {count:,} operators, {name}", make, repeats, target)
        for name, make in graphs.items()
    ]


def one_second(
    title: str, make: Callable[[], so.Symbol], repeats: int, target: float | None
) -> Figure:
    """The time that the pass adds to settling a graph; each graph is settled once."""
    taken = []
    for _ in range(repeats):
        with_pass = settling(make())
        with so.rolling(False):
            taken.append(with_pass - settling(make()))
    found = max(statistics.median(taken), 0.0)
    return Figure(title, found, 1.0, found, target=target, repeats=repeats)


def settling(graph: so.Symbol) -> float:
    """Seconds of inferring types, rolling and fixing the training flag."""
    return seconds(lambda: specialize(graph.nodes, {}, training=True, rolling=is_rolling()))


def irregular(count: int) -> so.Symbol:
    """Random operators on the two newest values, or on one of them."""
    draw = random.Random(0)
    single, double = (so.sin, so.cos, so.tanh, so.exp, so.sigmoid), (so.add, so.multiply)
    before, h = so.var("y", (4,)), so.var("x", (4,))
    for _ in range(count):
        pair = draw.random() < 0.3
        made = draw.choice(double)(before, h) if pair else draw.choice(single)(h)
        before, h = h, made
    return so.sum(h)
