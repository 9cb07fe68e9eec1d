"""Optimizers of MXNet whose rates follow rows or layers, and those that draw."""

import math

import numpy as np
import pytest

import symop as so
from symop.interop.mxnet import lr_scheduler, optimizer
from symop.interop.mxnet.arrays import array_of
from symop.interop.mxnet.errors import MXNetError

RATE, DECAY, SCALE, CLIP = 0.1, 0.05, 0.5, 0.4


@pytest.mark.parametrize("clip", [None, CLIP])
def test_rows_have_rates_of_their_own(clip):
    draw = np.random.default_rng(0)
    weight, grads, total = draw.normal(size=(3, 4)), draw.normal(size=(6, 3, 4)), 0.0
    how = {"learning_rate": RATE, "rescale_grad": SCALE, "clip_gradient": clip}
    updater = optimizer.get_updater(optimizer.contrib.GroupAdaGrad(**how))
    array, expected = array_of(weight, np.float32), weight
    for grad in grads:
        updater(0, array_of(grad, np.float32), array)
        slope = SCALE * grad if clip is None else np.clip(SCALE * grad, -clip, clip)
        total = total + np.mean(slope**2, axis=1, keepdims=True)
        expected = expected - RATE * slope / np.sqrt(total + 1e-5)
    np.testing.assert_allclose(array.asnumpy(), expected, rtol=2e-5, atol=2e-6)
    assert updater.states[0].shape == (3, 1)
    with pytest.raises(MXNetError, match="wd must be 0"):
        optimizer.get_updater(optimizer.create("groupadagrad", wd=0.1))(0, array, array)


def langevin(seed, weight, grad, **how):
    """What becomes of parameters in one step of SGLD."""
    so.random.seed(seed)
    array = array_of(weight, np.float32)
    updater = optimizer.get_updater(optimizer.SGLD(learning_rate=RATE, **how))
    updater(0, array_of(grad, np.float32), array)
    return array.asnumpy()


def test_noise_of_langevin_has_the_rate_for_variance():
    weight, grad = np.full(200_000, 2.0), np.full(200_000, 3.0)
    found = langevin(1, weight, grad, wd=DECAY, rescale_grad=SCALE, clip_gradient=CLIP)
    expected = 2.0 - RATE / 2 * (CLIP + DECAY * 2.0)
    noise = found - expected
    assert abs(noise.mean()) < 4 * math.sqrt(RATE / 200_000)
    assert abs(noise.var() / RATE - 1) < 0.02
    assert abs(np.mean(noise[1:] * noise[:-1])) < 4 * RATE / math.sqrt(200_000)


def test_noise_of_langevin_follows_the_seed():
    first, again, other = (langevin(seed, np.zeros(9), np.zeros(9)) for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()
    array = array_of(np.zeros(9), np.float32)
    updater = optimizer.get_updater(optimizer.SGLD(learning_rate=RATE))
    steps = []
    for _ in range(2):
        before = array.asnumpy()
        updater(0, array_of(np.zeros(9), np.float32), array)
        steps.append((array.asnumpy() - before).tolist())
    assert steps[0] != steps[1]


def test_lars_leaves_biases_and_decays_weights_alone():
    names = dict(enumerate(["fc_weight", "fc_bias", "bn_gamma"]))
    made = optimizer.LARS(learning_rate=1.0, wd=0.5, eta=0.1, param_idx2name=names)
    assert made._get_wds(list(names)) == [0.5, 0.0, 0.0]
    held = [array_of(2 * np.ones(1), np.float32) for _ in names]
    slopes = [array_of(np.ones(1), np.float32) for _ in names]
    optimizer.get_updater(made)(list(names), slopes, held)
    own = 0.1 * 2 / (1 + 0.5 * 2)  # the rate that follows the lengths
    expected = [2 - own * (1 + 0.5 * 2), 1.0, 1.0]
    np.testing.assert_allclose([one.asnumpy()[0] for one in held], expected, rtol=1e-6)


def test_velocity_of_lars_follows_the_schedule():
    for corrected in (True, False):
        schedule = lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0)
        made = optimizer.LARS(
            momentum=0.5,
            lr_scheduler=schedule,
            momentum_correction=corrected,
            param_idx2name={0: "a_bias", 1: "b_bias"},
        )
        updater = optimizer.get_updater(made)
        held = [array_of(np.zeros(1), np.float32) for _ in "ab"]
        for _ in range(2):
            updater([0, 1], [array_of(np.ones(1), np.float32)] * 2, held)
        kept = 0.5 * (0.5 if corrected else 1.0)
        velocity = kept * -1.0 - 0.5
        assert [one.asnumpy().tolist() for one in held] == [[-1.0 + velocity]] * 2
