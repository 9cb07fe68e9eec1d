"""Learns hyperparameters by their gradients: through training, during it, and one per example.

The validation loss after training is a function of the learning rate, of the weight decay, and of
the weight of each example. Reverse mode differentiates it through all steps, a scan, and suits many
hyperparameters: the last part has one for each of 800 examples, and finds those with wrong labels.
Forward mode carries the tangents of the weights by each hyperparameter, so a few of them
can be learned during training (Franceschi et al., "Forward and Reverse Gradient-Based
Hyperparameter Optimization", 2017).
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits
from tqdm import tqdm

import symop as so

RUN = Path("runs/hyperparameters")
BATCH, MOMENTUM = 32, 0.9
TUNED, CLEANED = (64, 32, 10), (64, 10)  # the widths of the two classifiers
# Logarithms of a learning rate that is far too low and of a weight decay that is far too strong.
START = {"rate": float(np.log(0.003)), "decay": float(np.log(0.01))}
Arrays = dict[str, Any]
History = dict[str, list[float]]
Figures = dict[str, float]
State = tuple[list[Any], list[Any]]


def digits(training: int, held: int) -> tuple[Arrays, Arrays]:
    """Training and validation examples, and the remaining ones for a test."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    pixels, digit = jnp.asarray(images[order] / 16.0), labels[order].astype(np.int32)
    end = training + held
    fed = {"images": pixels[:training], "labels": digit[:training]}
    fed |= {"held_images": pixels[training:end], "held_labels": digit[training:end]}
    return fed, {"images": pixels[end:], "labels": digit[end:]}


# The classifier and a step of its training, on symbols and on variables of programs ------------


def drawn(widths: Sequence[int]) -> Arrays:
    """Initial weights of layers of these widths."""
    generator = np.random.default_rng(1)
    found: Arrays = {}
    for i, (inputs, outputs) in enumerate(pairwise(widths)):
        weight = generator.normal(0.0, inputs**-0.5, (outputs, inputs))
        found |= {f"weight{i}": jnp.asarray(weight), f"bias{i}": jnp.zeros(outputs)}
    return found


def variables(like: Arrays) -> list[so.Symbol]:
    """Variables of these names, with the types of these arrays."""
    return [so.var(name, value.shape, value.dtype) for name, value in like.items()]


def scores(weights: Sequence[Any], images: Any) -> Any:
    """The score of each class, for each image."""
    hidden = images
    for i, (weight, bias) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        inputs = so.tanh(hidden) if i else hidden
        hidden = so.fully_connected(inputs, weight, bias, units=weight.shape[0])
    return hidden


def losses(weights: Sequence[Any], images: Any, labels: Any) -> Any:
    """The loss of each example."""
    return so.softmax_cross_entropy(scores(weights, images), labels)


def descended(state: State, objective: Callable[[list[Any]], Any], rate: Any) -> State:
    """Weights and velocities after a step of gradient descent with momentum."""
    weights, velocities = state
    slopes = so.grad(objective(weights), weights)
    velocities = [MOMENTUM * v + slope for v, slope in zip(velocities, slopes, strict=True)]
    return [w - rate * v for w, v in zip(weights, velocities, strict=True)], velocities


def step(state: State, settings: Arrays, images: Any, labels: Any) -> State:
    """The state after one batch, as a function of the settings."""
    rate, decay = so.exp(settings["rate"]), so.exp(settings["decay"])

    def objective(weights: list[Any]) -> Any:
        squares = [so.sum(so.square(weight)) for weight in weights[::2]]
        return so.mean(losses(weights, images, labels)) + decay * sum(squares)

    return descended(state, objective, rate)


def at_rest(weights: list[so.Symbol]) -> State:
    """The state before training, with zero velocities."""
    return weights, [so.zeros_like(weight) for weight in weights]


def batches(fed: Arrays, steps: int) -> np.ndarray:
    """The indices of the examples of each batch."""
    generator = np.random.default_rng(2)
    return generator.integers(0, len(fed["labels"]), (steps, BATCH), dtype=np.int32)


def accuracy(weights: Sequence[Any], test: Arrays) -> float:
    """The fraction of images whose largest score is that of their label."""
    return float((np.argmax(scores(weights, test["images"]), axis=-1) == test["labels"]).mean())


# Learning rate and decay -----------------------------------------------------------------------


def record(history: History, loss: Any, settings: Arrays, slopes: Sequence[Any]) -> None:
    """Append a validation loss, the settings, and its derivatives by their logarithms."""
    now = {"loss": loss} | {name: np.exp(settings[name]) for name in START}
    now |= {f"slope by log {name}": slope for name, slope in zip(START, slopes, strict=True)}
    for name, value in now.items():
        history.setdefault(name, []).append(float(value))


def through_training(fed: Arrays, steps: int) -> so.Symbol:
    """The validation loss after these steps, its gradient by the settings, and the weights."""
    images, labels, *held = variables(fed)
    settings = {name: so.var(name, ()) for name in START}

    def one(state: State, batch: so.Symbol) -> tuple[State, None]:
        chosen = so.take(images, batch, axis=0), so.take(labels, batch, axis=0)
        return step(state, settings, *chosen), None

    order = so.var("batches", (steps, BATCH), "int32")
    (weights, _), _ = so.scan(one, at_rest(variables(drawn(TUNED))), order)
    loss = so.mean(losses(weights, *held))
    return so.Group([loss, *so.grad(loss, list(settings.values())), *weights])


def tune_through(
    fed: Arrays, steps: int, rounds: int, *, progress: bool = False
) -> tuple[History, list[Any]]:
    """Train repeatedly from the same weights, with settings improved by gradients.

    Returns:
        A record of each round, and the weights after the last one.
    """
    function = jax.jit(through_training(fed, steps).to_jax())
    arrays = {**fed, **drawn(TUNED), "batches": batches(fed, steps)}
    settings: Any = {name: jnp.asarray(value) for name, value in START.items()}
    history: History = {}
    optimizer, weights = optax.adam(0.15), []
    moments = optimizer.init(settings)
    for _ in tqdm(range(rounds), "through training", disable=not progress):
        found = function(**arrays, **settings)
        loss, slopes, weights = found[0], found[1:3], found[3:]
        record(history, loss, settings, slopes)
        updates, moments = optimizer.update(dict(zip(START, slopes, strict=True)), moments)
        settings = optax.apply_updates(settings, updates)
    return history, weights


def beside_training(held: int, learning_rate: float) -> tuple[so.Program, list[so.Variable]]:
    """The program of a step, the validation loss after it, and its derivatives by the settings.

    Unless the learning rate is zero, the step also updates the settings by these derivatives.
    """
    with so.program_guard(so.Program()) as program:
        images, labels = so.data("images", (BATCH, 64)), so.data("labels", (BATCH,), "int32")
        validation = so.data("held_images", (held, 64)), so.data("held_labels", (held,), "int32")
        weights = [so.parameter(n, w.shape, initial=0.0) for n, w in drawn(TUNED).items()]
        velocities = [program.state(f"{w.name}_velocity", w.shape, initial=0.0) for w in weights]
        settings = {name: so.parameter(name, (), initial=value) for name, value in START.items()}
        after = step((weights, velocities), settings, images, labels)
        old, new = [*weights, *velocities], [*after[0], *after[1]]
        loss = so.mean(losses(after[0], *validation))
        slopes = [slope_beside(program, old, new, loss, one) for one in settings.values()]
        for before, later in zip(old, new, strict=True):
            program.update(before, later)
    if learning_rate:
        pairs = list(zip(settings.values(), slopes, strict=True))
        so.optim.Adam(learning_rate).apply_gradients(pairs)
    return program, [loss, *slopes]


def slope_beside(
    program: so.Program, old: list[Any], new: list[Any], loss: so.Variable, setting: so.Variable
) -> so.Variable:
    """The derivative of the loss by a setting; the program carries the tangent of the state.

    The tangent of a state ``s' = step(s, h)`` by ``h`` is ``z' = (d s'/d s) z + d s'/d h``: forward
    mode through one step.
    """
    tangents = [program.state(f"{s.name}_by_{setting.name}", s.shape, initial=0.0) for s in old]
    moved = so.jvp(new, [*old, setting], [*tangents, 1.0])
    for before, later in zip(tangents, moved, strict=True):
        program.update(before, later)
    count = len(old) // 2  # the loss does not depend on the velocities
    slope: so.Variable = so.jvp(loss, new[:count], moved[:count])
    return slope


def tune_beside(
    fed: Arrays, steps: int, learning_rate: float, *, progress: bool = False
) -> tuple[History, list[Any]]:
    """Train once, learning the settings meanwhile with their own learning rate.

    Returns:
        A record of each step, and the weights after the last one.
    """
    program, fetched = beside_training(len(fed["held_labels"]), learning_rate)
    program.initialize(0)
    for name, value in drawn(TUNED).items():
        program.scope[name] = value
    history: History = {}
    for places in tqdm(batches(fed, steps), "beside training", disable=not progress):
        batch = {"images": fed["images"][places], "labels": fed["labels"][places]}
        settings = {name: float(program.scope[name]) for name in START}
        loss, *slopes = program.run({**fed, **batch}, fetched)
        record(history, loss, settings, slopes)
    return history, [program.scope[name] for name in drawn(TUNED)]


# Example weights -------------------------------------------------------------------------------


def corrupted(fed: Arrays) -> tuple[Arrays, np.ndarray]:
    """The examples with half of the training labels replaced by wrong ones, and a mask of these."""
    generator, labels = np.random.default_rng(3), fed["labels"]
    wrong = generator.permutation(len(labels)) < len(labels) // 2
    others = (labels + generator.integers(1, 10, len(labels), dtype=np.int32)) % 10
    return {**fed, "labels": np.where(wrong, others, labels)}, wrong


def weighted(images: Any, labels: Any, counts: Any, steps: int) -> list[Any]:
    """The weights after training with these example weights."""

    def objective(weights: list[Any]) -> Any:
        return so.mean(counts * losses(weights, images, labels))

    def one(state: State, _: None) -> tuple[State, None]:
        return descended(state, objective, 0.5), None

    last: State = so.scan(one, at_rest(variables(drawn(CLEANED))), None, length=steps)[0]
    return last[0]


def clean(fed: Arrays, steps: int, rounds: int, *, progress: bool = False) -> np.ndarray:
    """A weight between 0 and 1 for each example, learned from trusted examples."""
    images, labels, *trusted = variables(fed)
    logits = so.var("logits", labels.shape)
    loss = so.mean(losses(weighted(images, labels, so.sigmoid(logits), steps), *trusted))
    function = jax.jit(so.grad(loss, logits).to_jax())
    arrays, found = {**fed, **drawn(CLEANED)}, jnp.zeros(labels.shape)
    optimizer = optax.adam(0.1)
    moments = optimizer.init(found)
    for _ in tqdm(range(rounds), "cleaning", disable=not progress):
        updates, moments = optimizer.update(function(**arrays, logits=found), moments)
        found = optax.apply_updates(found, updates)
    return np.asarray(jax.nn.sigmoid(found))


def f1(found: np.ndarray, wrong: np.ndarray) -> float:
    """The harmonic mean of precision and recall of detecting the wrong labels."""
    return float(2 * (found & wrong).sum() / (found.sum() + wrong.sum()))


def compared(
    fed: Arrays, test: Arrays, learned: np.ndarray, wrong: np.ndarray, steps: int
) -> Figures:
    """The accuracy for each choice of training examples, which always include the trusted ones."""
    pairs = (("images", "held_images"), ("labels", "held_labels"))
    arrays = {name: jnp.concatenate([fed[name], fed[held]]) for name, held in pairs}
    chosen = {"everything": 1.0, "trusted alone": 0.0, "learned": learned, "right ones": ~wrong}
    images, labels = variables(arrays)
    count = so.var("counts", labels.shape)
    function = jax.jit(so.Group(weighted(images, labels, count / so.mean(count), steps)).to_jax())
    reached = {}
    for name, some in chosen.items():
        counts = jnp.ones(labels.shape).at[: len(wrong)].set(some)
        weights = function(**arrays, **drawn(CLEANED), counts=counts)
        reached[f"trained on {name}: test accuracy"] = accuracy(weights, test)
    return reached


# All together ----------------------------------------------------------------------------------


def run(
    steps: int = 200,
    rounds: int = 40,
    real_time: int = 1000,
    cleaning: tuple[int, int] = (100, 100),
    *,
    folder: Path | None = None,
    progress: bool = True,
) -> Figures:
    """Learn the settings in both modes, clean the examples, and return the results.

    Args:
        steps: training steps that a gradient goes through.
        rounds: how often the settings are improved by such a gradient.
        real_time: training steps with settings that are learned meanwhile; at least as many.
        cleaning: training steps, and rounds, of learning the example weights.
        folder: where to write pictures.
        progress: whether to show progress.
    """
    fed, test = digits(training=150, held=500)
    tuned = {
        "fixed settings": tune_beside(fed, real_time, 0.0, progress=progress),
        "through training": tune_through(fed, steps, rounds, progress=progress),
        "beside training": tune_beside(fed, real_time, 0.01, progress=progress),
    }
    figures = slopes_compared(tuned["through training"][0], tuned["fixed settings"][0], steps)
    for way, (history, weights) in tuned.items():
        figures |= {f"{way}: {key}": history[key][-1] for key in ("rate", "decay", "loss")}
        figures[f"{way}: test accuracy"] = accuracy(weights, test)
    examples, test = digits(training=800, held=200)
    examples, wrong = corrupted(examples)
    counts = clean(examples, *cleaning, progress=progress)
    figures["wrong labels found: F1"] = f1(counts < 0.5, wrong)
    figures |= compared(examples, test, counts, wrong, cleaning[0])
    if folder is not None:
        draw(folder, {way: history for way, (history, _) in tuned.items()}, counts, wrong)
        gradient = through_training(fed, steps).to_svg()
        (folder / "gradient.svg").write_text(gradient, encoding="utf-8")
    return figures


def slopes_compared(reverse: History, forward: History, steps: int) -> Figures:
    """The initial derivatives in both modes: of the first round, and after as many steps."""
    places = {"reverse mode": (reverse, 0), "forward mode": (forward, steps - 1)}
    names = [f"slope by log {name}" for name in START]
    return {f"{way}: {n}": history[n][i] for way, (history, i) in places.items() for n in names}


def draw(folder: Path, tuned: dict[str, History], counts: np.ndarray, wrong: np.ndarray) -> None:
    """A picture of how the settings were learned, and of the example weights."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # needed only for pictures

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(15, 3.6), layout="constrained")
    axes = figure.subplots(1, 4)
    axes[0].plot(tuned["through training"]["loss"])
    axes[0].set(xlabel="round of training", ylabel="loss of validation")
    for way in ("fixed settings", "beside training"):
        axes[1].plot(tuned[way]["loss"], label=way)
    axes[1].set(xlabel="step of training", ylabel="loss of validation")
    for way in ("through training", "beside training"):
        axes[2].loglog(tuned[way]["rate"], tuned[way]["decay"], label=way)
    axes[2].set(xlabel="learning rate", ylabel="decay")
    axes[3].hist([counts[wrong], counts[~wrong]], bins=20, label=["wrong label", "right label"])
    axes[3].set(xlabel="how much an example counts", ylabel="examples")
    for one in axes[1:]:
        one.legend()
    figure.savefig(folder / "learned.png", dpi=100)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="train longer, for a minute or two")
    parser.add_argument("--folder", type=Path, default=RUN, help="where to write the pictures")
    arguments = parser.parse_args()
    longer: Any = {"steps": 600, "rounds": 200, "real_time": 5000, "cleaning": (200, 200)}
    figures = run(folder=arguments.folder, **(longer if arguments.full else {}))
    for name, value in figures.items():
        print(f"{name:44}{value: .5f}")
    print(f"wrote {', '.join(sorted(path.name for path in arguments.folder.iterdir()))}")


if __name__ == "__main__":
    main()
