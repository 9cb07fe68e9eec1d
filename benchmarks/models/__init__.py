"""Complete models, compared with flax and optax, and with PyTorch.

All start from the same parameters and take the same batches, and must have the same losses
over 100 steps before anything is timed.
"""

import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from measure import Figure, Program, brief, compare, counted, judged, load
from steps import forget

from models.pairs import HAS_TORCH, PAIRS, STEPS, Pair, Sides, check

if TYPE_CHECKING:
    from models.torch_side import TorchRunning

TITLE = "Models against flax and optax, and against PyTorch"
STEP, COMPILE, DEEP_COMPILE, SCAN_COMPILE = 1.0, 1.1, 0.5, 1.2
MEAN_STEP, MEAN_MEMORY = 0.9, 0.7
SECONDS = 6.0
"""The time that measuring the steps of a pair takes."""
COMPILATIONS = 7
"""The compilations of each side: single ones differ by a tenth."""
KINDS = ("step", "trace and compile", "temporary memory", "lines")
"""The figures in the table of README; it has those of PyTorch, too, if that is installed."""
PYTORCH = ("step, against PyTorch", "memory, against PyTorch", "lines, against PyTorch")
TOKENS = 32
GENERATED = f"{TOKENS} tokens of 8 prompts"
Row = dict[str, Any]


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of the models."""
    # On a busy machine, PyTorch's threads wait for each other.
    with_torch = HAS_TORCH and load() <= (os.cpu_count() or 1)
    found = {one.name: figures_of(one, quick=quick, with_torch=with_torch) for one in PAIRS}
    return assembled(found, with_torch=with_torch)


def assembled(
    found: dict[str, dict[str, Figure]], *, with_torch: bool
) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of all models with their geometric means, and the table of README."""
    kinds = (*KINDS, *(PYTORCH if with_torch else []))
    rows: list[Row] = [
        {"model": name} | {kind: figures[kind].ratio for kind in kinds}
        for name, figures in found.items()
    ]
    means = [mean(kind, rows) for kind in kinds]
    rows.append({"model": "geometric mean"} | {one.name: one.ratio for one in means})
    listed = [one for figures in found.values() for one in figures.values()]
    named = [replace(one, name=f"geometric mean: {one.name}") for one in means]
    return [*listed, *named], {"remarks": remarks(with_torch=with_torch), "rows": rows}


def remarks(*, with_torch: bool) -> list[str]:
    """Conditions of the figures."""
    return [
        f"Over {STEPS} steps, the losses of both sides are equal up to rounding. Both donate their "
        "state. Flax's modules are linen's.",
        "Trace and compile start with every cache empty; symop's part includes building and "
        "differentiating the graph. Its target is 0.5 for a model of more than 8 equal layers.",
        "Temporary memory is what XLA's `memory_analysis` reports apart from arguments and "
        "results, in bytes. Lines are those of the scripts in `examples/models/` and "
        "`benchmarks/models/flax/` that hold code.",
        "The tables of DLRM, which lie in one array, have row-sparse gradients in symop, and "
        "dense ones in flax. Adagrad gives both the same result. Without DLRM, the geometric means "
        "of step and temporary memory are about a seventh and a third higher.",
        "PyTorch has the same losses over 100 steps, and the same tokens; it takes a prompt in one "
        "pass, as symop does, and flax token by token. Its memory is the most "
        "that its allocator holds during a step, besides state and batch. `torch.compile` compiles "
        "the GPTs, ResNet-18, the LSTM and the graph network; the others in "
        "`benchmarks/models/torch/` say why they run operator by operator."
        if with_torch
        else "PyTorch's figures are left out: it is not installed, or the machine was busy.",
    ]


def figures_of(pair: Pair, *, quick: bool, with_torch: bool) -> dict[str, Figure]:
    """The figures of one model, by kind."""
    sides, seconds = Sides(pair), 1.0 if quick else SECONDS
    runs = sides.runs()
    check(*runs, sides.near(runs[1]), 5 if quick else STEPS)
    compiling, memory = compilation(pair, sides, 1 if quick else COMPILATIONS)
    our_lines, *other_lines = pair.lines
    found = {
        "step": alternately(f"{pair.name}: step", *runs, seconds, STEP),
        "trace and compile": compiling,
        "temporary memory": memory,
        "lines": counted(f"{pair.name}: lines", our_lines, other_lines[0], target=None),
    }
    if pair.scan.exists():
        found["against scan"] = against_scan(pair, sides, 1 if quick else COMPILATIONS)
    if pair.generates:
        found["generation"] = generation(pair, sides, 3 if quick else 30)
    if with_torch:
        found |= against_torch(pair, sides, found, quick=quick)
    return found


def against_torch(
    pair: Pair, sides: Sides, found: dict[str, Figure], *, quick: bool
) -> dict[str, Figure]:
    """The figures of one model against PyTorch.

    Args:
        pair: the model.
        sides: its steps.
        found: the figures against flax, which have symop's seconds and bytes.
        quick: whether to run briefly.
    """
    ours, theirs = sides.runs()[0], sides.in_torch()
    check(ours, theirs, sides.in_torch(rounded=True), 5 if quick else STEPS)
    name, (step, memory, lines) = f"{pair.name}: {{}}".format, PYTORCH
    counts = found["temporary memory"].symop, theirs.peak()
    figures = {
        step: alternately(name(step), ours, theirs, 1.0 if quick else SECONDS, None),
        memory: counted(name(memory), *map(int, counts), target=None),
        lines: counted(name(lines), pair.lines[0], pair.lines[2], target=None),
    }
    if pair.torch_compiles:
        figures["compilation in PyTorch"] = compilation_in_torch(pair, found, theirs)
    if pair.generates:
        figures["generation in PyTorch"] = generation_in_torch(pair, sides, 3 if quick else 30)
    return figures


def compilation_in_torch(pair: Pair, found: dict[str, Figure], theirs: "TorchRunning") -> Figure:
    """Symop's median against one compilation by ``torch.compile``, which takes much longer."""
    ours, other = found["trace and compile"].symop, theirs.compilation()
    title = f"{pair.name}: trace and compile, against PyTorch"
    return Figure(title, ours, other, ours / other)


def alternately(
    name: str, ours: Program, theirs: Program, seconds: float, target: float | None
) -> Figure:
    """Times both sides alternately, for about ``seconds``."""
    for one in (ours, theirs, ours, theirs):
        one()
    repeats = min(max(int(seconds / (brief(ours) + brief(theirs))), 10), 400)
    return compare(name, ours, theirs, repeats=repeats, target=target, clock=brief, warm_up=4)


def compilation(pair: Pair, sides: Sides, repeats: int) -> tuple[Figure, Figure]:
    """Tracing and compiling new steps, and the temporary memory of these."""
    _, theirs = sides.states()

    def of_flax() -> Any:
        return sides.make_step().lower(theirs, sides.batches[0])

    pairs, programs = alternately_compiled(sides, of_flax, repeats)
    target = DEEP_COMPILE if pair.is_deep else COMPILE
    return (
        judged(f"{pair.name}: trace and compile", pairs, target=target),
        counted(f"{pair.name}: temporary memory", *map(temporary, programs), target=None),
    )


def against_scan(pair: Pair, sides: Sides, repeats: int) -> Figure:
    """Tracing and compiling, against a model whose layers flax runs in a loop."""
    make_step, state = sides.scanned()
    pairs, _ = alternately_compiled(
        sides, lambda: make_step().lower(state, sides.batches[0]), repeats
    )
    return judged(f"{pair.name}: trace and compile, against nn.scan", pairs, target=SCAN_COMPILE)


def alternately_compiled(
    sides: Sides, other: Callable[[], Any], repeats: int
) -> tuple[list[tuple[float, float]], list[Any]]:
    """Seconds of symop and of ``other``, which lowers a step, and the compiled steps."""
    ours, _ = sides.states()
    lower = (lambda: sides.trainer()._step.lower(ours.packed(), sides.batches[0]), other)
    pairs, programs = [], [None, None]
    for i in range(repeats):
        taken = [0.0, 0.0]
        for side in (0, 1) if i % 2 else (1, 0):
            taken[side], programs[side] = compiled(lower[side])
        pairs.append((taken[0], taken[1]))
    return pairs, programs


def compiled(lower: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of tracing and compiling a step with empty caches, and the compiled step."""
    forget()
    start = time.perf_counter()
    program = lower().compile()
    return time.perf_counter() - start, program


def temporary(program: Any) -> int:
    """The temporary memory of a compiled step, in bytes."""
    taken: int = program.memory_analysis().temp_size_in_bytes
    return taken


def generation(pair: Pair, sides: Sides, repeats: int) -> Figure:
    """32 tokens after eight prompts, by caches on both sides."""
    return same_tokens(f"{pair.name}: {GENERATED}", *sides.generators(TOKENS), repeats, STEP)


def generation_in_torch(pair: Pair, sides: Sides, repeats: int) -> Figure:
    """The same, against PyTorch, which runs the operators of each token one by one."""
    ours, _ = sides.generators(TOKENS)
    title = f"{pair.name}: {GENERATED}, against PyTorch"
    return same_tokens(title, ours, sides.torch_generator(TOKENS), repeats, None)


def same_tokens(
    name: str, ours: Program, theirs: Program, repeats: int, target: float | None
) -> Figure:
    """Times both sides alternately, after a check that they generate the same tokens."""
    np.testing.assert_array_equal(ours(), theirs())
    return compare(name, ours, theirs, repeats=repeats, target=target, clock=brief)


def mean(kind: str, rows: Iterable[Row]) -> Figure:
    """The geometric mean of the ratios of one kind."""
    ratios = [row[kind] for row in rows]
    found = math.exp(sum(map(math.log, ratios)) / len(ratios))
    target = {"step": MEAN_STEP, "temporary memory": MEAN_MEMORY}.get(kind)
    return Figure(kind, found, ratio=found, target=target, unit="ratio")
