"""Training steps: through symop's trainer, against the same network written by hand in JAX."""

import gc
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from by_hand import Model, digits, mlp
from measure import Figure, alone, brief, compare, counted, equations, instructions, judged

import registry
from symop.lowering import rules
from symop.train import TrainState

TITLE = "Training steps"
CAUSES = {
    "the gradient of softmax_cross_entropy computes the softmax from the logits again": (
        "exp, max, reduce_max, stop_gradient, sub"
    ),
    "it subtracts labels as one-hot rows, where JAX scatters": (
        "convert_element_type, iota, squeeze, sub"
    ),
    "the gradient of dropout draws its mask again, from the same key": (
        "bitcast_convert_type, convert_element_type, lt, max, mul, or, random_bits, "
        "shift_right_logical, sub"
    ),
    "the gradient of max_pooling finds the largest entries again": "reduce_window_max",
    "the gradient of batch_norm centers the data and takes the root of the variance again": (
        "mul, sqrt, sub"
    ),
    "a Python number enters an operator as a constant of its dtype": "convert_element_type",
}
"""Why symop's step has more equations of some primitives. XLA merges each with its first copy."""
Step = Callable[[TrainState, Any], tuple[TrainState, Any]]


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of training steps."""
    figures, differences = [], {}
    for model, repeats in ((mlp(), 400), (digits(), 400)):
        parity(model)
        figures += speed(model, 20 if quick else repeats)
        figures += with_options(model, 20 if quick else repeats // 2)
        figures += compilation(model, 2 if quick else 12)
        counts, differences[model.name] = sizes(model)
        figures += counts
    return figures, {"remarks": remarks(differences), "primitives": differences}


def step_of(model: Model) -> Step:
    """symop's step; its graph is built, differentiated and lowered on the first call."""
    return model.trainer().step


def copied(state: TrainState) -> TrainState:
    """Independent copies of arrays, to be donated."""
    return jax.tree.map(lambda leaf: leaf.copy(), state)


def parity(model: Model, steps: int = 5) -> None:
    """Raise unless both sides train equally, because otherwise the comparison is meaningless."""
    start = model.initial()
    ours, theirs = copied(start), copied(start)
    step, by_hand = step_of(model), model.step_by_hand()
    for _ in range(steps):
        ours, metrics = step(ours, model.batch)
        theirs, expected = by_hand(theirs, model.batch)
        np.testing.assert_allclose(metrics["loss"], expected["loss"], rtol=1e-4)
    assert ours.params.keys() == theirs.params.keys()
    for name, value in {**ours.params, **ours.states}.items():
        other = {**theirs.params, **theirs.states}[name]
        np.testing.assert_allclose(value, other, rtol=1e-3, atol=1e-4, err_msg=name)


class Running:
    """A step that continues from its last state; each call runs it once and waits for the loss.

    The loss is a result of the same program as the state, whose arrays nobody reads in training.
    """

    def __init__(self, step: Step, state: TrainState, batch: Any) -> None:
        """Copy ``state``, because the step donates it."""
        self.step, self.state = step, copied(state)
        self.batch = jax.tree.map(jax.numpy.asarray, batch)

    def __call__(self) -> None:
        """One step."""
        self.state, values = self.step(self.state, self.batch)
        jax.block_until_ready(values)


def speed(model: Model, repeats: int) -> list[Figure]:
    """Median time of a step."""
    start = model.initial()
    return [
        compare(
            f"{model.name}: step",
            Running(step_of(model), start, model.batch),
            Running(model.step_by_hand(), start, model.batch),
            repeats=repeats,
            target=1.03,
            clock=brief,
            warm_up=10,
        )
    ]


def with_options(model: Model, repeats: int) -> list[Figure]:
    """Median time of a step that accumulates, and of one in mixed precision."""
    start = model.initial()
    sides = {
        "step in 4 parts": (
            model.trainer(accumulate=4).step,
            model.step_by_hand(accumulate=4),
        )
    }
    if model.mixed is not None:
        ours, theirs = model.trainer(precision="bfloat16").step, model.step_by_hand(mixed=True)
        sides["step in bfloat16"] = (ours, theirs)
    return [
        compare(
            f"{model.name}: {name}",
            Running(ours, start, model.batch),
            Running(theirs, start, model.batch),
            repeats=repeats,
            target=1.05,
            clock=brief,
            warm_up=10,
        )
        for name, (ours, theirs) in sides.items()
    ]


# Compilation -----------------------------------------------------------------------------------


def forget() -> None:
    """Clear the caches of JAX and symop, so that both start without earlier traces."""
    jax.clear_caches()
    for name in registry.names():
        registry.get(name).inference._memo.clear()
    for cached in vars(rules).values():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()
    gc.collect()


def compilation(model: Model, repeats: int) -> list[Figure]:
    """Tracing and compiling a new step; symop's includes building and differentiating the graph."""
    state = model.initial()
    pairs = []
    for i in range(repeats + 1):
        sides = [lambda: model.trainer()._step, model.step_by_hand]
        taken = [(0.0, 0.0)] * 2
        for side in (0, 1) if i % 2 else (1, 0):
            taken[side] = stages(sides[side], state, model.batch)
        pairs.append(tuple(taken))
    del pairs[0]
    traced = [(ours[0], theirs[0]) for ours, theirs in pairs]
    both = [(sum(ours), sum(theirs)) for ours, theirs in pairs]
    return [
        judged(f"{model.name}: trace and compile", both, target=1.2),
        judged(f"{model.name}: trace alone", traced),
        own_share(model, repeats),
    ]


def stages(make: Callable[[], Any], state: TrainState, batch: Any) -> tuple[float, float]:
    """Seconds of building and tracing a step, and of compiling it."""
    forget()
    start = time.perf_counter()
    lowered = make().lower(state, batch)
    middle = time.perf_counter()
    lowered.compile()
    return middle - start, time.perf_counter() - middle


def own_share(model: Model, repeats: int) -> Figure:
    """symop's own part of tracing: the graph, its gradient and its schedule."""
    state = model.initial()
    values = {**model.batch, **state.params, **state.states}

    def program() -> None:
        function = model.trainer()._function
        function.schedule([values[name] for name in function.names])

    def clock(timed: Callable[[], Any]) -> float:
        forget()
        return brief(timed)

    return alone(f"{model.name}: graph, gradient and plan", program, repeats=repeats, clock=clock)


# Sizes -----------------------------------------------------------------------------------------


def sizes(model: Model) -> tuple[list[Figure], dict[str, Any]]:
    """Equations and instructions of both steps, and the primitives in which they differ."""
    state = model.initial()
    steps = [model.trainer()._step, model.step_by_hand()]
    traced = [step.trace(state, model.batch) for step in steps]
    lowered = [one.lower() for one in traced]
    primitives = [Counter(equations(one.jaxpr)) for one in traced]
    counts = {
        "jaxpr equations": [counts.total() for counts in primitives],
        "StableHLO operations": [instructions(one.as_text()) for one in lowered],
        "compiled HLO instructions": [instructions(one.compile().as_text()) for one in lowered],
    }
    names = sorted(primitives[0] | primitives[1])
    both = {name: [counter[name] for counter in primitives] for name in names}
    return (
        [counted(f"{model.name}: {what}", *pair) for what, pair in counts.items()],
        {name: pair for name, pair in both.items() if pair[0] != pair[1]},
    )


def remarks(differences: dict[str, dict[str, list[int]]]) -> list[str]:
    """The primitives that symop's steps have more of than JAX's, and the reasons."""
    found = []
    for model, counts in differences.items():
        more = {name: pair for name, pair in counts.items() if pair[0] > pair[1]}
        listed = ", ".join(f"{name} {ours}:{theirs}" for name, (ours, theirs) in more.items())
        found.append(f"{model}, equations that symop has more of, before XLA merges them: {listed}")
        known = {name for names in CAUSES.values() for name in names.split(", ")}
        if unknown := sorted(more.keys() - known):
            found.append(f"{model}, of unknown cause: {', '.join(unknown)}")
    return found + [f"{cause}: {names}" for cause, names in CAUSES.items()]
