"""The models of the benchmarks: each is shorter than the same in flax, and has the same losses."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = ("GPT, 4 layers", "ResNet-18", "LSTM language model", "DLRM", "diffusion, U-Net",
         "graph network", "PINN")  # fmt: skip


@pytest.fixture(name="models")
def _models(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("models")


def pair_of(models, name):
    """One of the models."""
    (pair,) = [one for one in models.PAIRS if one.name == name]
    return pair


def test_each_is_shorter_than_in_flax(models):
    for pair in models.PAIRS:
        ours, *others = pair.lines
        assert ours < min(others), pair.name


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_losses_equal_those_of_flax(models, name):
    sides = models.Sides(pair_of(models, name), 4)
    runs = sides.runs()
    models.check(*runs, sides.near(runs[1]), 4)


@pytest.mark.thorough
def test_generated_tokens_equal_those_of_flax(models):
    ours, theirs = models.Sides(pair_of(models, NAMES[0]), 1).generators(6)
    assert ours().tolist() == theirs().tolist()
