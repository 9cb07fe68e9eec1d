"""Trains Wasserstein generative adversarial networks with a gradient penalty.

A critic scores samples of a generator against data. Where its slope is one everywhere, the gap
between the mean scores is a distance of the two distributions, which the generator minimizes. So
other slopes are penalized: the loss of the critic contains a gradient, and its update is a gradient
of that (Gulrajani et al., "Improved Training of Wasserstein GANs", 2017). Here ``so.grad`` is part
of the loss; eight Gaussians and a Swiss roll are learned with a multilayer critic, handwritten
digits with a convolutional one.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.neighbors import NearestNeighbors
from tqdm import tqdm

import symop as so

RUN = Path("runs/wgan_gp")
CRITIC_STEPS = 5  # in each round, before the generator's step
SAMPLES = 1000
NEAR = 0.15  # three standard deviations of a Gaussian
Arrays = dict[str, Any]
Figures = dict[str, float]
Network = Callable[[Sequence[Any], Any], Any]


class Trained(NamedTuple):
    """The result of a game: samples by training round, and the critic's distances."""

    samples: dict[int, np.ndarray]
    distances: np.ndarray


class Game(NamedTuple):
    """Data and two networks: a generator of samples, and a critic that scores them."""

    data: Any
    held: np.ndarray
    generator: Network
    critic: Network
    generator_weights: Arrays
    critic_weights: Arrays
    latent: int
    batch: int
    strength: float
    rate: float


# Data --------------------------------------------------------------------------------------------


def centers() -> np.ndarray:
    """The centers of eight Gaussians, on a circle."""
    angles = np.arange(8) * np.pi / 4
    return np.asarray(np.sqrt(2.0) * np.stack([np.cos(angles), np.sin(angles)], axis=1))


def gaussians(count: int) -> np.ndarray:
    """Points drawn from eight Gaussians."""
    generator = np.random.default_rng(0)
    chosen = centers()[generator.integers(0, 8, count)]
    return np.asarray(chosen + generator.normal(0, NEAR / 3, (count, 2)))


def swiss_roll(count: int) -> np.ndarray:
    """Points of a spiral."""
    points = make_swiss_roll(count, noise=0.25, random_state=0)[0]
    return np.asarray(points[:, [0, 2]] / 7.5)


def digits() -> np.ndarray:
    """All images, in random order, with values between 0 and 1."""
    images = load_digits().images / 16.0
    return np.asarray(images[np.random.default_rng(0).permutation(len(images)), None])


# Networks ----------------------------------------------------------------------------------------


def layers(weights: Sequence[Any], hidden: Any, activation: Callable[[Any], Any]) -> Any:
    """Fully connected layers, with activations between them."""
    for i, (weight, bias) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        inputs = activation(hidden) if i else hidden
        hidden = so.fully_connected(inputs, weight, bias, units=weight.shape[0])
    return hidden


def placer(weights: Sequence[Any], noise: Any) -> Any:
    """Points in the plane; kinks of the activation let them change quickly with the noise."""
    return layers(weights, noise, so.relu)


def painter(weights: Sequence[Any], noise: Any) -> Any:
    """Images of 8 times 8 pixels with values between 0 and 1."""
    return so.reshape(so.sigmoid(layers(weights, noise, so.relu)), shape=(noise.shape[0], 1, 8, 8))


def judge(weights: Sequence[Any], points: Any) -> Any:
    """Scores of points, by smooth activations, because training differentiates their slope."""
    return layers(weights, points, so.silu)


def viewer(weights: Sequence[Any], images: Any) -> Any:
    """Scores of images, by two convolutions and a linear layer."""
    hidden = images
    for i in (0, 2):
        weight, bias = weights[i : i + 2]
        channels, _, *kernel = weight.shape
        hidden = so.convolution(hidden, weight, bias, channels=channels, kernel=tuple(kernel))
        hidden = so.silu(hidden)
    return layers(weights[4:], so.flatten(hidden), so.silu)


def drawn(name: str, shapes: Sequence[tuple[int, ...]]) -> Arrays:
    """Initial weights of these shapes, and the matching biases."""
    generator = np.random.default_rng(1)
    found: Arrays = {}
    for i, shape in enumerate(shapes):
        weight = generator.normal(0.0, (2 / np.prod(shape[1:])) ** 0.5, shape)
        found |= {f"{name}_weight{i}": jnp.asarray(weight)}
        found |= {f"{name}_bias{i}": jnp.zeros(shape[0])}
    return found


def dense(*widths: int) -> list[tuple[int, ...]]:
    """The shapes of the weights of fully connected layers."""
    return [(outputs, inputs) for inputs, outputs in pairwise(widths)]


def points_game(points: np.ndarray) -> Game:
    """Points in the plane, and fully connected networks."""
    wide = (128, 128, 128)
    weights = drawn("generator", dense(2, *wide, 2)), drawn("critic", dense(2, *wide, 1))
    data, held = jnp.asarray(points[SAMPLES:]), points[:SAMPLES]
    return Game(data, held, placer, judge, *weights, latent=2, batch=128, strength=0.1, rate=2e-3)


def digits_game(images: np.ndarray) -> Game:
    """Images, and a convolutional critic."""
    convolving = drawn("critic", [(16, 1, 3, 3), (32, 16, 3, 3), (1, 512)])
    weights = drawn("generator", dense(16, 128, 64)), convolving
    data, held = jnp.asarray(images[300:]), images[:300]
    return Game(data, held, painter, viewer, *weights, latent=16, batch=64, strength=1.0, rate=1e-3)


# Losses and training -----------------------------------------------------------------------------


def penalty(score: Callable[[Any], Any], points: Any) -> Any:
    """The mean squared difference of the scores' slope from one.

    The gradient of the sum of the scores holds the slope of each score, because a score depends
    only on its own point. The tiny number keeps the root differentiable where a slope vanishes.
    """
    slope = so.grad(so.sum(score(points)), points)
    squares = so.sum(so.square(slope), axis=tuple(range(1, len(points.shape))))
    return so.mean(so.square(so.sqrt(squares + 1e-12) - 1.0))


def distance(score: Callable[[Any], Any], real: Any, fake: Any) -> Any:
    """The difference of the mean scores of data and of samples."""
    return so.mean(score(real)) - so.mean(score(fake))


def descended(weights: list[Any], squares: list[Any], loss: Any) -> list[Any]:
    """Weights, then mean squares, after a step of Adam without momentum."""
    slopes, rate = so.grad(loss, weights), so.var("rate", (), weights[0].dtype)
    squares = [0.9 * s + 0.1 * so.square(g) for s, g in zip(squares, slopes, strict=True)]
    moves = [g / (so.sqrt(s) + 1e-8) for g, s in zip(slopes, squares, strict=True)]
    return [*(w - rate * move for w, move in zip(weights, moves, strict=True)), *squares]


def variables(like: Arrays) -> list[so.Symbol]:
    """Variables of these names, with the types of these arrays."""
    return [so.var(name, value.shape, value.dtype) for name, value in like.items()]


def at_rest(weights: Arrays) -> Arrays:
    """The initial mean squares of the gradients."""
    return {f"{name}_square": jnp.zeros_like(weight) for name, weight in weights.items()}


def inputs(game: Game) -> list[so.Symbol]:
    """A batch of data, the noise for samples, and the points between them for the slopes."""
    _, *shape = game.data.shape
    real = so.var("real", (game.batch, *shape), game.data.dtype)
    noise = so.var("noise", (game.batch, game.latent), game.data.dtype)
    return [real, noise, so.var("mix", (game.batch, *[1] * len(shape)), game.data.dtype)]


def chance(game: Game, generator: np.random.Generator) -> Arrays:
    """Arrays for ``inputs``."""
    _, noise, mix = inputs(game)
    return {
        "real": game.data[generator.integers(0, len(game.data), game.batch)],
        "noise": generator.normal(size=noise.shape).astype(game.data.dtype),
        "mix": generator.random(mix.shape).astype(game.data.dtype),
    }


def critic_losses(game: Game) -> tuple[so.Symbol, so.Symbol]:
    """The penalty, and the critic's distance of data and samples."""
    real, noise, mix = inputs(game)
    weights = variables(game.critic_weights)
    fake = game.generator(variables(game.generator_weights), noise)

    def score(points: Any) -> Any:
        return game.critic(weights, points)

    return penalty(score, real + mix * (fake - real)), distance(score, real, fake)


def critic_step(game: Game) -> so.Symbol:
    """The state of the critic after a batch, and the distance that it computed.

    A part of the gradient here is the gradient of a gradient.
    """
    weights = game.critic_weights
    slope, seen = critic_losses(game)
    state = variables(weights), variables(at_rest(weights))
    return so.Group([*descended(*state, game.strength * slope - seen), seen])


def generator_step(game: Game) -> so.Symbol:
    """The state of the generator after a batch."""
    weights = variables(game.generator_weights)
    fake = game.generator(weights, inputs(game)[1])
    loss = -so.mean(game.critic(variables(game.critic_weights), fake))
    return so.Group(descended(weights, variables(at_rest(game.generator_weights)), loss))


def play(game: Game, rounds: int, name: str = "", *, progress: bool = False) -> Trained:
    """Train for this many rounds, and keep samples of six of them."""
    generator = np.random.default_rng(2)
    noise = generator.normal(size=(SAMPLES, game.latent)).astype(np.float32)
    critic, painted = at_once(critic_step(game)), at_once(generator_step(game))
    makers, judges = [w | at_rest(w) for w in (game.generator_weights, game.critic_weights)]
    kept = set(np.linspace(0, rounds, 6).astype(int).tolist())
    samples, distances = {0: sampled(game, makers, noise)}, []
    for i in tqdm(range(1, rounds + 1), name, disable=not progress):
        rate = game.rate * (1 - (i - 1) / rounds)
        for _ in range(CRITIC_STEPS):
            *after, seen = critic(**makers, **judges, **chance(game, generator), rate=rate)
            judges = dict(zip(judges, after, strict=True))
        after = painted(**makers, **judges, **chance(game, generator), rate=rate)
        makers = dict(zip(makers, after, strict=True))
        distances.append(seen)
        if i in kept:
            samples[i] = sampled(game, makers, noise)
    return Trained(samples, np.array(distances))


def at_once(symbol: so.Symbol) -> Callable[..., Any]:
    """The symbol as a compiled function, which ignores arguments that the symbol does not take."""
    function, names = jax.jit(symbol.to_jax()), symbol.list_arguments()
    return lambda **arrays: function(**{name: arrays[name] for name in names})


def sampled(game: Game, state: Arrays, noise: np.ndarray) -> np.ndarray:
    """The generator's samples from noise."""
    weights = [state[name] for name in game.generator_weights]
    return np.asarray(game.generator(weights, jnp.asarray(noise)))


# Measures ----------------------------------------------------------------------------------------


def gaps(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The distance of each point to the nearest of the others."""
    flat = others.reshape(len(others), -1)
    found = NearestNeighbors(n_neighbors=1).fit(flat).kneighbors(points.reshape(len(points), -1))
    return np.asarray(found[0][:, 0])


def resembling(samples: np.ndarray, game: Game, near: float) -> Figures:
    """The share of samples near data, and of held-out data near a sample."""
    return {
        "samples near data": float((gaps(samples, np.asarray(game.data)) < near).mean()),
        "data near samples": float((gaps(game.held, samples) < near).mean()),
    }


def modes(samples: np.ndarray) -> Figures:
    """How many Gaussians get at least a third of their share, and the share of samples near one."""
    apart = np.linalg.norm(samples[:, None] - centers(), axis=-1)
    counts = np.bincount(apart.argmin(axis=1)[apart.min(axis=1) < NEAR], minlength=8)
    share = counts / len(samples)
    return {"modes covered": float((share > 1 / 24).sum()), "samples near a mode": share.sum()}


# All together ------------------------------------------------------------------------------------


def run(
    rounds: int = 1000,
    digit_rounds: int = 400,
    *,
    folder: Path | None = None,
    progress: bool = True,
) -> Figures:
    """Play all three games and return how well samples resemble data.

    Args:
        rounds: training rounds on points.
        digit_rounds: training rounds on digits.
        folder: where to write pictures.
        progress: whether to show progress.
    """
    on_digits = digits_game(digits())
    # 99 of a hundred digits have another one this near.
    near = float(np.quantile(gaps(on_digits.held, np.asarray(on_digits.data)), 0.99))
    games = {
        "eight Gaussians": (points_game(gaussians(10_000)), rounds, NEAR),
        "Swiss roll": (points_game(swiss_roll(10_000)), rounds, NEAR),
        "digits": (on_digits, digit_rounds, near),
    }
    figures: Figures = {}
    for name, (game, count, apart) in games.items():
        trained = play(game, count, name, progress=progress)
        last = trained.samples[count]
        found = modes(last) if name == "eight Gaussians" else {}
        found |= resembling(last, game, apart)
        figures |= {f"{name}: {key}": value for key, value in found.items()}
        if folder is not None:
            draw(folder, name, game, trained)
    if folder is not None:
        (folder / "gradient.svg").write_text(penalty_gradient(on_digits).to_svg(), encoding="utf-8")
    return figures


def penalty_gradient(game: Game) -> so.Symbol:
    """The gradient of the penalty by the first weights of the critic."""
    slope: so.Symbol = so.grad(critic_losses(game)[0], variables(game.critic_weights)[0])
    return slope


def draw(folder: Path, name: str, game: Game, trained: Trained) -> None:
    """A picture of the samples over training, and of the critic's distance."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # needed only for pictures

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(17, 2.8), layout="constrained")
    *axes, last = figure.subplots(1, len(trained.samples) + 1)
    for one, (round_, samples) in zip(axes, trained.samples.items(), strict=True):
        show(one, game.held, samples)
        one.set_title(f"after {round_} rounds")
    last.plot(trained.distances)
    last.set(xlabel="round", title="distance seen by the critic")
    figure.savefig(folder / f"{name.replace(' ', '_')}.png", dpi=100)


def show(axes: Any, held: np.ndarray, samples: np.ndarray) -> None:
    """Samples among data: points, or images side by side."""
    if samples.ndim == 2:  # points in the plane
        axes.plot(*held.T, ".", color="lightgray", markersize=3)
        axes.plot(*samples[:500].T, ".", color="crimson", markersize=2)
        axes.set(xlim=(-2.2, 2.2), ylim=(-2.2, 2.2))
    else:
        padded = np.pad(samples[:36, 0], ((0, 0), (1, 1), (1, 1))).reshape(6, 6, 10, 10)
        axes.imshow(padded.transpose(0, 2, 1, 3).reshape(60, 60), cmap="gray_r")
    axes.set(xticks=[], yticks=[])


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="train ten times as long")
    parser.add_argument("--folder", type=Path, default=RUN, help="where to write the pictures")
    arguments = parser.parse_args()
    longer: Any = {"rounds": 10_000, "digit_rounds": 4000}
    figures = run(folder=arguments.folder, **(longer if arguments.full else {}))
    for name, value in figures.items():
        print(f"{name:38}{value:.3f}")
    print(f"wrote {', '.join(sorted(path.name for path in arguments.folder.iterdir()))}")


if __name__ == "__main__":
    main()
