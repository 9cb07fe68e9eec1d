"""Hyperparameters have the gradients that they should, in both modes, and are learned by them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so

STEPS = 25
# Neither as the example starts nor near the best: the slopes by both settings are large here.
SETTINGS = {"rate": -2.5, "decay": -5.0}


@pytest.fixture
def elsewhere(example, monkeypatch):
    """The example, with other settings at the start."""
    monkeypatch.setattr(example, "START", SETTINGS)
    return example


def differences(function, point, width=1e-5):
    """Central differences along each entry of ``point``."""
    ways = width * np.eye(len(point))
    return [float(function(point + way) - function(point - way)) / (2 * width) for way in ways]


def loss_by_hand(weights, images, labels):
    """The example's classifier and loss, in JAX alone."""
    weight0, bias0, weight1, bias1 = weights
    scores = jnp.tanh(images @ weight0.T + bias0) @ weight1.T + bias1
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1).mean()


def held_loss_by_hand(settings, fed, weights, batches):
    """The loss after the example's training, in JAX alone."""
    rate, decay = jnp.exp(settings)

    def objective(weights, images, labels):
        squares = jnp.sum(weights[0] ** 2) + jnp.sum(weights[2] ** 2)
        return loss_by_hand(weights, images, labels) + decay * squares

    velocities = [0.0] * len(weights)
    for chosen in batches:
        slopes = jax.jit(jax.grad(objective))(weights, fed["images"][chosen], fed["labels"][chosen])
        velocities = [0.9 * v + slope for v, slope in zip(velocities, slopes, strict=True)]
        weights = [w - rate * v for w, v in zip(weights, velocities, strict=True)]
    return loss_by_hand(weights, fed["held_images"], fed["held_labels"])


@pytest.mark.usefixtures("x64")
class TestSlopesBySettings:
    def test_both_modes_and_differences_agree(self, elsewhere):
        fed, _ = elsewhere.digits(training=150, held=200)
        arrays = {**fed, **elsewhere.drawn(elsewhere.TUNED)}
        arrays["batches"] = elsewhere.batches(fed, STEPS)
        function = jax.jit(elsewhere.through_training(fed, STEPS).to_jax())
        loss, *reverse = function(**arrays, **SETTINGS)[:3]
        history, _ = elsewhere.tune_beside(fed, STEPS, 0.0)
        forward = [history[f"slope by log {name}"][-1] for name in SETTINGS]
        point = np.array(list(SETTINGS.values()))
        by_differences = differences(
            lambda at: function(**arrays, **dict(zip(SETTINGS, at, strict=True)))[0], point
        )
        np.testing.assert_allclose(history["loss"][-1], loss, rtol=1e-13)
        np.testing.assert_allclose(forward, reverse, rtol=1e-11)
        np.testing.assert_allclose(by_differences, reverse, rtol=1e-7)
        assert np.abs(reverse).min() > 0.05

    def test_they_are_those_of_jax(self, elsewhere):
        fed, _ = elsewhere.digits(training=60, held=50)
        weights, batches = elsewhere.drawn(elsewhere.TUNED), elsewhere.batches(fed, 4)
        through = elsewhere.through_training(fed, 4)
        _, *slopes = through.eval(**fed, **weights, **SETTINGS, batches=batches)[:3]
        point = jnp.array(list(SETTINGS.values()))
        by_jax = jax.jit(jax.grad(held_loss_by_hand))
        expected = by_jax(point, fed, list(weights.values()), batches)
        np.testing.assert_allclose(slopes, expected, rtol=1e-11)


@pytest.mark.thorough
def test_settings_are_learned_through_training(example):
    fed, _ = example.digits(training=150, held=200)
    history, _ = example.tune_through(fed, 50, rounds=20)
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert history["rate"][-1] > 5 * history["rate"][0]


@pytest.mark.thorough
def test_settings_are_learned_while_training_goes_on(example):
    fed, _ = example.digits(training=150, held=200)
    fixed, _ = example.tune_beside(fed, 150, 0.0)
    learned, _ = example.tune_beside(fed, 150, 0.02)
    assert len(set(fixed["rate"])) == 1
    assert len(set(learned["rate"])) == 150
    assert learned["loss"][-1] < 0.5 * fixed["loss"][-1]


@pytest.mark.usefixtures("x64")
def test_slopes_by_how_much_examples_count_are_differences(example):
    fed, _ = example.digits(training=40, held=30)
    images, labels, *held = example.variables(fed)
    counts = so.var("counts", labels.shape)
    loss = so.mean(example.losses(example.weighted(images, labels, counts, 15), *held))
    function = jax.jit(loss.to_jax())
    arrays = {**fed, **example.drawn(example.CLEANED)}
    point = np.random.default_rng(0).random(40)
    expected = differences(lambda at: function(**arrays, counts=at), point)
    found = so.grad(loss, counts).eval(**arrays, counts=point)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-10)


def test_wrong_labels_are_found_and_count_for_nothing(example):
    fed, test = example.digits(training=800, held=200)
    fed, wrong = example.corrupted(fed)
    assert wrong.sum() == 400
    counts = example.clean(fed, 60, rounds=40)
    assert example.f1(counts < 0.5, wrong) > 0.9
    reached = example.compared(fed, test, counts, wrong, 60)
    names = ["trusted alone", "everything", "learned", "right ones"]
    alone, everything, learned, right = [reached[f"trained on {n}: test accuracy"] for n in names]
    assert learned > everything + 0.01
    assert right >= learned > alone


def test_f1_is_the_harmonic_mean_of_precision_and_recall(example):
    found = np.array([True, True, True, False, False])
    wrong = np.array([True, True, False, True, True])
    assert example.f1(found, wrong) == pytest.approx(2 / (3 / 2 + 4 / 2))


@pytest.mark.thorough
def test_everything_is_run_and_drawn(example, tmp_path):
    folder = tmp_path / "pictures"
    figures = example.run(10, 2, 12, cleaning=(5, 3), folder=folder, progress=False)
    for name in ("rate", "decay"):
        reverse, forward = [
            figures[f"{way} mode: slope by log {name}"] for way in ("reverse", "forward")
        ]
        assert reverse == pytest.approx(forward, rel=1e-3)
    assert (folder / "learned.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (folder / "gradient.svg").read_text()
