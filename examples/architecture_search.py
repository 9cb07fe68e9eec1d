"""Finds the operations of a cell by gradients through an unrolled training step.

Each edge of a cell mixes all candidate operations, by a softmax of architecture parameters. Weights
descend on training examples, the architecture on held-out validation examples. Second order
minimizes the validation loss after one more training step, so its gradient contains a gradient.
First order takes the weights as they are (Liu et al., "DARTS: Differentiable Architecture
Search", 2019). The paper approximates the product with second derivatives by a finite difference;
here it is exact. The strongest operations form the cell that is then trained from scratch.
"""

import argparse
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits
from tqdm import tqdm

import symop as so

RUN = Path("runs/architecture_search")
CHANNELS, BATCH = 6, 32
RATE = 0.1  # of the weights, also in the unrolled step
NODES = (1, 2, 3)  # node 0 is the input of the cell
EDGES = [(start, end) for end in NODES for start in range(end)]
KEPT = 2  # edges that lead to a node of the resulting cell, at most
Arrays = dict[str, Any]
Cell = dict[tuple[int, int], str]
Figures = dict[str, float]
ROUND = {"boxstyle": "circle", "facecolor": "white"}
LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 1}
Order = Literal["first", "second"]
Way = Literal["product", "difference"]
APART = "distance from the second-order gradient"

# Candidates: functions of the value on an edge and of the edge's weight.
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "identity": lambda x, _: x,
    "average 3x3": lambda x, _: so.average_pooling(x, kernel=3, stride=1, padding=1),
    "maximum 3x3": lambda x, _: so.max_pooling(x, kernel=3, stride=1, padding=1),
    "convolution 1x1": lambda x, weight: convolved(so.silu(x), weight),
    "convolution 3x3": lambda x, weight: convolved(so.silu(x), weight),
}


def digits(training: int, held: int) -> tuple[Arrays, Arrays]:
    """Training and validation examples, and the remaining ones for a test."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    pixels = jnp.asarray(images[order] / 16.0).reshape(-1, 1, 8, 8)
    digit, end = labels[order].astype(np.int32), training + held
    fed = {"images": pixels[:training], "labels": digit[:training]}
    fed |= {"held_images": pixels[training:end], "held_labels": digit[training:end]}
    return fed, {"images": pixels[end:], "labels": digit[end:]}


# The network, on symbols, variables of programs and arrays ---------------------------------------


def convolved(x: Any, weight: Any) -> Any:
    """A convolution that keeps height and width."""
    channels, _, *kernel = weight.shape
    return so.convolution(
        x, weight, channels=channels, kernel=tuple(kernel), padding="same", use_bias=False
    )


def shapes(cells: Mapping[tuple[int, int], Any]) -> dict[str, tuple[int, ...]]:
    """The shapes of the weights of a network whose edges have these operations."""
    found: dict[str, tuple[int, ...]] = {"stem": (CHANNELS, 1, 3, 3)}
    for edge, names in cells.items():
        for name in names:
            if name.startswith("convolution"):
                width = int(name[-1])
                found[weight_name(edge, name)] = (CHANNELS, CHANNELS, width, width)
    return found | {"weight": (10, 4 * len(NODES) * CHANNELS), "bias": (10,)}


def weight_name(edge: tuple[int, int], operation: str) -> str:
    """The name of the weight of an operation on an edge, even if it has none."""
    return f"edge{edge[0]}{edge[1]}_{operation[-3:]}"


def applied(name: str, edge: tuple[int, int], weights: Arrays, x: Any) -> Any:
    """An operation on an edge, with its own weight."""
    return OPERATIONS[name](x, weights.get(weight_name(edge, name)))


def mixed(architecture: Any, edge: tuple[int, int], weights: Arrays, x: Any) -> Any:
    """All operations on an edge, mixed by the softmax of the architecture's row for the edge."""
    shares = so.softmax(architecture[EDGES.index(edge)])
    return sum(shares[i] * applied(name, edge, weights, x) for i, name in enumerate(OPERATIONS))


def chosen(cell: Cell, edge: tuple[int, int], weights: Arrays, x: Any) -> Any:
    """The single operation on an edge of a discrete cell."""
    return applied(cell[edge], edge, weights, x)


def scores(along: Callable[..., Any], edges: Any, weights: Arrays, images: Any) -> Any:
    """The score of each class, for each image: a stem, the cell, quarter means, a linear layer."""
    nodes = {0: convolved(images, weights["stem"])}
    for end in NODES:
        terms = [along(edge, weights, nodes[edge[0]]) for edge in edges if edge[1] == end]
        nodes[end] = normalized(sum(terms))
    joined = so.silu(so.concatenate([nodes[end] for end in NODES], axis=1))
    quarters = so.flatten(so.average_pooling(joined, kernel=4))
    return so.fully_connected(quarters, weights["weight"], weights["bias"], units=10)


def normalized(x: Any) -> Any:
    """Zero mean and unit variance over each image, so that no operation wins by its scale alone."""
    apart = x - so.mean(x, axis=(1, 2, 3), keepdims=True)
    return apart * so.rsqrt(so.mean(so.square(apart), axis=(1, 2, 3), keepdims=True) + 1e-3)


def mixed_loss(weights: Arrays, architecture: Any, images: Any, labels: Any) -> Any:
    """The mean loss of the network whose edges mix all operations."""
    found = scores(partial(mixed, architecture), EDGES, weights, images)
    return so.mean(so.softmax_cross_entropy(found, labels))


def drawn(sizes: dict[str, tuple[int, ...]], seed: int) -> Arrays:
    """Initial weights."""
    generator = np.random.default_rng(seed)
    scale = {name: np.sqrt(2 / math.prod(size[1:])) for name, size in sizes.items()}
    found = {name: scale[name] * generator.normal(size=size) for name, size in sizes.items()}
    return {name: jnp.asarray(value) for name, value in found.items()} | {"bias": jnp.zeros(10)}


# Gradients of the architecture -------------------------------------------------------------------

MIXED = shapes({edge: tuple(OPERATIONS) for edge in EDGES})


def inputs(batch: int) -> tuple[Arrays, so.Symbol, list[so.Symbol], list[so.Symbol]]:
    """Variables: weights, architecture, images and labels for training and for validation."""
    weights = {name: so.var(name, size) for name, size in MIXED.items()}
    architecture = so.var("architecture", (len(EDGES), len(OPERATIONS)))
    training, held = [
        [so.var(f"{kind}images", (batch, 1, 8, 8)), so.var(f"{kind}labels", (batch,), "int32")]
        for kind in ("", "held_")
    ]
    return weights, architecture, training, held


def unrolled(weights: Arrays, architecture: Any, batch: Any, rate: Any) -> Arrays:
    """The weights after one step down the gradient of the training loss."""
    slopes = so.grad(mixed_loss(weights, architecture, *batch), list(weights.values()))
    return {
        name: weight - rate * slope
        for (name, weight), slope in zip(weights.items(), slopes, strict=True)
    }


def searching(batch: int) -> so.Symbol:
    """The validation loss, its gradients by the architecture in both orders, and by the weights."""
    weights, architecture, training, held = inputs(batch)
    loss = mixed_loss(weights, architecture, *held)
    later = mixed_loss(unrolled(weights, architecture, training, RATE), architecture, *held)
    slopes = so.grad(mixed_loss(weights, architecture, *training), list(weights.values()))
    by_architecture = so.grad(loss, architecture), so.grad(later, architecture)
    return so.Group([loss, *by_architecture, *slopes])


def of_second_order(way: Way, batch: int) -> Any:
    """The second-order gradient by the chain rule: exact, or with the paper's finite difference.

    It is ``d/da L_held(w', a) - rate * (d^2/da dw L(w, a)) d/dw' L_held(w', a)``, where ``w'`` are
    the weights after the step. The product with the matrix of second derivatives is the tangent
    of the training gradient by the architecture, for a tangent of the weights: forward mode over
    reverse.
    """
    weights, architecture, training, held = inputs(batch)
    frozen = {f"{name}_after": so.var(f"{name}_after", size) for name, size in MIXED.items()}
    after = unrolled(weights, architecture, training, RATE)
    there = {f"{name}_after": value for name, value in after.items()}
    loss = mixed_loss({n: frozen[f"{n}_after"] for n in weights}, architecture, *held)
    direct, *ways = [
        slope.replace(**there) for slope in so.grad(loss, [architecture, *frozen.values()])
    ]
    slope = so.grad(mixed_loss(weights, architecture, *training), architecture)
    if way == "product":
        return direct - RATE * so.jvp(slope, list(weights.values()), ways)
    width = 0.01 / so.sqrt(sum(so.sum(so.square(way)) for way in ways))
    up, down = [
        slope.replace(
            **{n: w + sign * width * v for (n, w), v in zip(weights.items(), ways, strict=True)}
        )
        for sign in (1.0, -1.0)
    ]
    return direct - RATE * (up - down) / (2.0 * width)


def fed_to(symbol: so.Symbol, arrays: Arrays) -> Arrays:
    """The arrays that a graph takes."""
    return {name: arrays[name] for name in symbol.list_arguments()}


# The search --------------------------------------------------------------------------------------


def batch_of(fed: Arrays, generator: np.random.Generator) -> Arrays:
    """Examples for one step: equally many of each kind."""
    found: Arrays = {}
    for kind in sorted({name.removesuffix("images").removesuffix("labels") for name in fed}):
        places = generator.integers(0, len(fed[f"{kind}labels"]), BATCH)
        found |= {f"{kind}{part}": fed[f"{kind}{part}"][places] for part in ("images", "labels")}
    return found


def search_step(order: Order) -> tuple[Callable[..., Any], Any]:
    """A step of weights and architecture, and the state before the first step."""
    function = searching(BATCH).to_jax()
    optimizers = optax.sgd(RATE, momentum=0.9), optax.adam(0.03, b1=0.5)

    @jax.jit
    def step(state: Any, batch: Arrays) -> Any:
        (weights, architecture), states = state
        loss, first, second, *slopes = function(**weights, **batch, architecture=architecture)
        slope = {"first": first, "second": second}[order]
        named = dict(zip(MIXED, slopes, strict=True)), slope
        pairs = zip(named, states, (weights, architecture), optimizers, strict=True)
        moved = [one.update(slopes, before) for slopes, before, _, one in pairs]
        after = [
            optax.apply_updates(old, moves)
            for old, (moves, _) in zip((weights, architecture), moved, strict=True)
        ]
        return (after, [one for _, one in moved]), (loss, *compared(first, slope))

    start = drawn(MIXED, 0), jnp.zeros((len(EDGES), len(OPERATIONS)))
    return step, (start, [one.init(old) for one, old in zip(optimizers, start, strict=True)])


def compared(first: Any, second: Any) -> tuple[Any, Any]:
    """The cosine of the angle between two gradients, and the ratio of second to first length."""
    lengths = jnp.sqrt(jnp.sum(first**2)), jnp.sqrt(jnp.sum(second**2))
    return jnp.sum(first * second) / (lengths[0] * lengths[1]), lengths[1] / lengths[0]


def search(
    fed: Arrays, order: Order, steps: int, *, progress: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Descend with the weights and the architecture.

    Returns:
        The share of each operation on each edge; and for each step the validation loss, the
        cosine between the first-order gradient and the one used, and the ratio of their lengths.
    """
    step, state = search_step(order)
    generator, history = np.random.default_rng(2), []
    for _ in tqdm(range(steps), f"{order} order", disable=not progress):
        state, record = step(state, batch_of(fed, generator))
        history.append(record)
    architecture = state[0][1]
    return np.asarray(jax.nn.softmax(architecture, axis=-1)), np.asarray(history)


def discrete(shares: np.ndarray) -> Cell:
    """The strongest operation of each edge, on the strongest edges into each node."""
    found: Cell = {}
    for end in NODES:
        rows = sorted((-shares[i].max(), edge, i) for i, edge in enumerate(EDGES) if edge[1] == end)
        found |= {edge: list(OPERATIONS)[shares[i].argmax()] for _, edge, i in rows[:KEPT]}
    return dict(sorted(found.items()))


def random_cell(seed: int) -> Cell:
    """A random cell of the search space."""
    return discrete(np.random.default_rng(seed).random((len(EDGES), len(OPERATIONS))))


# The resulting cell ------------------------------------------------------------------------------


def training(cell: Cell) -> tuple[so.Program, so.Variable]:
    """The program of a training step of the network with this cell, and its loss."""
    sizes = shapes({edge: (name,) for edge, name in cell.items()})
    with so.program_guard(so.Program()) as program:
        images, labels = so.data("images", (BATCH, 1, 8, 8)), so.data("labels", (BATCH,), "int32")
        weights = {name: so.parameter(name, size, initial=0.0) for name, size in sizes.items()}
        found = scores(partial(chosen, cell), cell, weights, images)
        loss = so.mean(so.softmax_cross_entropy(found, labels))
    so.optim.Adam(1e-2).minimize(loss)
    return program, loss


def train(cell: Cell, fed: Arrays, test: Arrays, steps: int, seed: int = 0) -> float:
    """Train the network with this cell from scratch; returns its accuracy on the test images."""
    program, loss = training(cell)
    program.initialize(0)
    sizes = shapes({edge: (name,) for edge, name in cell.items()})
    for name, value in drawn(sizes, seed).items():
        program.scope[name] = value
    generator = np.random.default_rng(seed)
    for _ in range(steps):
        program.run(batch_of(fed, generator), loss)
    weights = {name: program.scope[name] for name in sizes}
    found = scores(partial(chosen, cell), cell, weights, test["images"])
    return float((np.argmax(found, axis=-1) == test["labels"]).mean())


def differing(fed: Arrays) -> Figures:
    """The distance of the initial gradients from the exact one of second order."""
    arrays = drawn(MIXED, 0) | batch_of(fed, np.random.default_rng(1))
    arrays["architecture"] = jnp.zeros((len(EDGES), len(OPERATIONS)))
    exact = searching(BATCH)
    ways = [of_second_order(way, BATCH) for way in ("product", "difference")]
    group = so.Group([exact[2], exact[1], *ways])
    second, *others = jax.jit(group.to_jax())(**fed_to(group, arrays))
    names, size = ("first order", "the product", "the difference"), jnp.linalg.norm(second)
    pairs = zip(names, others, strict=True)
    return {f"{way}: {APART}": float(jnp.linalg.norm(one - second) / size) for way, one in pairs}


def all_examples(fed: Arrays) -> Arrays:
    """The training and validation examples together."""
    return {part: np.concatenate([fed[part], fed[f"held_{part}"]]) for part in ("images", "labels")}


# All together ------------------------------------------------------------------------------------


def run(
    steps: int = 200,
    from_scratch: int = 300,
    random_cells: int = 3,
    *,
    folder: Path | None = None,
    progress: bool = True,
) -> tuple[Figures, dict[str, Cell]]:
    """Search with gradients of both orders, train the resulting cells, and return their accuracies.

    Args:
        steps: steps of the search.
        from_scratch: training steps of a cell.
        random_cells: how many random cells are also trained.
        folder: where to write pictures.
        progress: whether to show progress.
    """
    fed, test = digits(training=700, held=700)
    orders: tuple[Order, ...] = ("first", "second")
    searches = {order: search(fed, order, steps, progress=progress) for order in orders}
    cells = {f"{order} order": discrete(searches[order][0]) for order in orders}
    cells |= {f"random cell {seed}": random_cell(seed) for seed in range(random_cells)}
    figures = differing(fed)
    for order, (_, history) in searches.items():
        figures[f"{order} order: loss of validation"] = float(history[-20:, 0].mean())
    figures["cosine of both gradients, mean of the search"] = float(
        searches["second"][1][:, 1].mean()
    )
    figures["second-order length to first, mean"] = float(searches["second"][1][:, 2].mean())
    for name, cell in tqdm(cells.items(), "from scratch", disable=not progress):
        figures[f"{name}: test accuracy"] = train(cell, all_examples(fed), test, from_scratch)
    if folder is not None:
        draw(folder, searches, cells)
        gradient = searching(BATCH)[2].to_svg()
        (folder / "gradient.svg").write_text(gradient, encoding="utf-8")
    return figures, cells


def draw(folder: Path, searches: Mapping[Order, Any], cells: dict[str, Cell]) -> None:
    """A picture of each search: the shares, the compared gradients, and the resulting cell."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # needed only for pictures

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(14, 7), layout="constrained")
    for row, (order, (shares, history)) in zip(
        figure.subplots(2, 3), searches.items(), strict=True
    ):
        draw_shares(row[0], shares)
        row[0].set_title(f"{order} order: shares")
        draw_cell(row[1], cells[f"{order} order"])
        row[1].set_title(f"{order} order: cell")
        row[2].plot(history[:, 0], label="loss of validation")
        row[2].plot(history[:, 1], ".", label="cosine with the first-order gradient")
        row[2].set(xlabel="step", title=f"{order} order: search")
        row[2].legend()
    figure.savefig(folder / "found.png", dpi=100)


def draw_shares(axes: Any, shares: np.ndarray) -> None:
    """The share of each operation on each edge, as a map."""
    axes.imshow(shares, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    axes.set_xticks(range(len(OPERATIONS)), [name.replace(" ", "\n") for name in OPERATIONS])
    axes.set_yticks(range(len(EDGES)), [f"{start} to {end}" for start, end in EDGES])
    for (i, j), share in np.ndenumerate(shares):
        axes.text(j, i, f"{share:.2f}", ha="center", color="white" if share > 0.5 else "black")


def draw_cell(axes: Any, cell: Cell) -> None:
    """The nodes of a cell in a row, and an arc with its operation for each edge."""
    for (start, end), name in cell.items():
        side = 1 if (start + end) % 2 else -1  # neighbors above, others below
        height = side * (end - start) * 0.35
        bend = {"arrowstyle": "-|>", "shrinkA": 16, "shrinkB": 16, "color": "tab:blue"}
        bend["connectionstyle"] = f"arc3,rad={-0.7 * side * (1 if end - start > 1 else 0.4)}"
        axes.annotate("", (end, 0), (start, 0), arrowprops=bend)
        axes.text((start + end) / 2, height, name, ha="center", va="center", fontsize=9, bbox=LABEL)
    for node in (0, *NODES):
        axes.text(node, 0, node or "in", ha="center", va="center", bbox=ROUND)
    axes.set(xlim=(-0.4, NODES[-1] + 0.4), ylim=(-1.3, 1.3))
    axes.axis("off")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="search and train longer")
    parser.add_argument("--folder", type=Path, default=RUN, help="where to write the pictures")
    arguments = parser.parse_args()
    longer: Any = {"steps": 1000, "from_scratch": 1500, "random_cells": 5}
    figures, cells = run(folder=arguments.folder, **(longer if arguments.full else {}))
    for name, cell in cells.items():
        print(f"{name}: {', '.join(f'{a} to {b} {one}' for (a, b), one in cell.items())}")
    for name, value in figures.items():
        print(f"{name:58}{value: .4g}")
    print(f"wrote {', '.join(sorted(path.name for path in arguments.folder.iterdir()))}")


if __name__ == "__main__":
    main()
