"""The gradient of a gradient penalty is what it should be, and with it generators are trained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so


def games(example):
    """Both kinds of games, with small batches."""
    points = example.points_game(example.gaussians(1100))
    return {
        "points": points._replace(batch=8),
        "digits": example.digits_game(example.digits())._replace(batch=4),
    }


def fed(game, example):
    """Arrays for all that the losses of the critic take."""
    chance = example.chance(game, np.random.default_rng(3))
    return {**game.generator_weights, **game.critic_weights, **chance}


def dense_by_hand(weights, hidden, activation):
    for i, (weight, bias) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        hidden = (activation(hidden) if i else hidden) @ weight.T + bias
    return hidden


def critic_by_hand(weights, points):
    """Either critic, in JAX alone."""
    while weights[0].ndim == 4:
        weight, bias, *weights = weights
        points = jax.lax.conv(points, weight, (1, 1), "VALID") + bias[:, None, None]
        points = jax.nn.silu(points)
    return dense_by_hand(weights, points.reshape(len(points), -1), jax.nn.silu)


def penalty_by_hand(critic, generator, arrays):
    """The penalty, in JAX alone."""
    real, noise, mix = arrays["real"], arrays["noise"], arrays["mix"]
    fake = dense_by_hand(generator, noise, jax.nn.relu)
    if real.ndim == 4:
        fake = jax.nn.sigmoid(fake).reshape(real.shape)
    between = real + mix * (fake - real)
    slopes = jax.vmap(jax.grad(lambda point: critic_by_hand(critic, point[None])[0, 0]))(between)
    sizes = jnp.sqrt(jnp.sum(slopes.reshape(len(slopes), -1) ** 2, axis=1) + 1e-12)
    return jnp.mean((sizes - 1) ** 2)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["points", "digits"])
class TestGradientOfThePenalty:
    def test_it_is_what_finite_differences_show(self, example, name):
        game = games(example)[name]
        arrays = fed(game, example)
        penalty, _ = example.critic_losses(game)
        value = example.at_once(penalty)
        for weight, slope in zip(game.critic_weights, slopes(game, example, arrays), strict=True):
            way = np.random.default_rng(4).normal(size=slope.shape)
            ends = [value(**arrays | {weight: arrays[weight] + h * way}) for h in (1e-5, -1e-5)]
            expected = (ends[0] - ends[1]) / 2e-5
            assert np.sum(slope * way) == pytest.approx(float(expected), rel=1e-7, abs=1e-9)

    def test_it_is_that_of_jax(self, example, name):
        game = games(example)[name]
        arrays = fed(game, example)
        weights = [list(w.values()) for w in (game.critic_weights, game.generator_weights)]
        expected = jax.jit(jax.grad(penalty_by_hand))(*weights, arrays)
        found = slopes(game, example, arrays)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
        assert np.abs(found[0]).max() > 1e-3
        assert not found[-1].any()  # what is added to all scores has no slope


def slopes(game, example, arrays):
    """The gradient of the penalty by the weights of the critic."""
    penalty, _ = example.critic_losses(game)
    graph = so.Group(so.grad(penalty, example.variables(game.critic_weights)))
    return example.at_once(graph)(**arrays)


@pytest.mark.usefixtures("x64")
def test_a_step_descends_the_loss(example):
    game = games(example)["points"]
    arrays = fed(game, example)
    squares = example.at_rest(game.critic_weights)
    step = example.at_once(example.critic_step(game))
    *after, seen = step(**arrays, **squares, rate=1e-4)
    moved = dict(zip(game.critic_weights, after, strict=False))
    losses = so.Group([*example.critic_losses(game)])
    (before, first), (slope, later) = [
        example.at_once(losses)(**arrays | new) for new in ({}, moved)
    ]
    assert first == pytest.approx(float(seen))
    assert game.strength * slope - later < game.strength * before - first


def test_measures_count_what_they_tell(example):
    samples = np.concatenate([example.centers()[:4].repeat(10, axis=0), np.zeros((10, 2))])
    assert example.modes(samples) == {"modes covered": 4, "samples near a mode": 0.8}
    game = example.points_game(example.gaussians(1100))
    game = game._replace(data=example.centers(), held=example.centers())
    near = example.resembling(samples, game, near=0.1)
    assert near == {"samples near data": 0.8, "data near samples": 0.5}


@pytest.mark.thorough
def test_points_are_learned(example):
    game = example.points_game(example.gaussians(5000))
    trained = example.play(game, 250)
    before, after = [example.resembling(trained.samples[i], game, 0.3) for i in (0, 250)]
    assert len(trained.samples) == 6
    assert np.isfinite(trained.distances).all()
    assert before["data near samples"] < 0.5
    assert after["data near samples"] > 0.8
    assert after["samples near data"] > 0.55


@pytest.mark.thorough
def test_everything_is_run_and_drawn(example, tmp_path):
    folder = tmp_path / "pictures"
    figures = example.run(5, 5, folder=folder, progress=False)
    assert np.isfinite(list(figures.values())).all()
    for name in ("eight Gaussians", "Swiss roll", "digits"):
        assert f"{name}: samples near data" in figures
        assert (folder / f"{name}.png".replace(" ", "_")).read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (folder / "gradient.svg").read_text()
