"""The examples do what they promise: train, write their files, and predict the same from them."""

import importlib.util
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import symop as so

ROOT = Path(__file__).parents[1]
DIGITS = ROOT / "examples" / "digits.py"
WRITTEN = ["curve.png", "graph.svg", "parameters.safetensors", "predictions.npy", "symbol.json"]


def loaded(path):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def digits():
    """The example as a module."""
    return loaded(DIGITS)


@pytest.fixture(scope="module")
def classifier():
    """The example as a module."""
    return loaded(ROOT / "examples" / "text_classifier.py")


@pytest.fixture(scope="module")
def trained(digits, tmp_path_factory):
    """A folder with the results of a short training, and the accuracy that it reached."""
    folder = tmp_path_factory.mktemp("run") / "digits"
    return folder, digits.run(epochs=2, folder=folder, progress=False)


def verify(folder):
    """``--verify`` in a fresh process."""
    command = [sys.executable, str(DIGITS), "--verify", "--folder", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment
    )


@pytest.mark.thorough
def test_clicks_are_foretold(tmp_path):
    example = loaded(ROOT / "examples" / "recommender.py")
    (reached,) = example.run(1, examples=60_000, folder=tmp_path, progress=False)
    assert reached > 0.66
    program = so.Program.load(tmp_path / "program.json")
    so.checkpoint.load(tmp_path / "state.safetensors", program)
    assert str(program["user_taste@GRAD"].kind) == "selected_rows"
    batch = next(example.batches(example.clicks(1024, seed=3), example.BATCH, seed=0))
    assert np.isfinite(program.run(batch, "mean1"))


@pytest.mark.essential
def test_digits_are_learned(trained):
    _, reached = trained
    assert reached > 0.9


def test_results_are_written(trained):
    folder, _ = trained
    assert sorted(path.name for path in folder.iterdir()) == WRITTEN
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (folder / "graph.svg").read_text()


def test_the_written_symbol_is_the_network(trained, digits):
    folder, _ = trained
    loaded, network = so.load(folder / "symbol.json"), digits.network()
    assert loaded.list_inputs() == network.list_inputs()
    assert str(loaded) == str(network)


def test_a_fresh_process_predicts_the_same(trained):
    folder, _ = trained
    done = verify(folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "reloaded in a fresh process: 360 predictions identical\n"


def test_other_parameters_are_noticed(trained):
    folder, _ = trained
    path = folder / "parameters.safetensors"
    intact, weights = path.read_bytes(), so.load_parameters(path)
    weights["dense2_bias"] = np.asarray(weights["dense2_bias"]) + np.float32(1e-3)
    so.save_parameters(path, weights)
    try:
        done = verify(folder)
    finally:
        path.write_bytes(intact)
    assert done.returncode == 1
    assert done.stderr == "the reloaded model predicts differently\n"


class TestClassifier:
    def test_texts_of_any_length_are_learned(self, classifier):
        assert classifier.run(epochs=2, progress=False) > 0.95

    @pytest.mark.thorough
    def test_a_bag_of_words_cannot_learn_them(self, classifier):
        assert classifier.run(epochs=1, context_length=1, progress=False) < 0.65

    def test_labels_are_what_the_texts_say(self, classifier):
        words, labels = classifier.texts(200, seed=3)
        for text, label in zip(words, labels, strict=True):
            named = ["", *[classifier.VOCABULARY[i] for i in text]]
            verdict = sum(
                (1 if word in classifier.PRAISE else -1)
                * (-1 if before in classifier.NEGATION else 1)
                for before, word in pairwise(named)
                if word in (*classifier.PRAISE, *classifier.BLAME)
            )
            assert label == (verdict > 0)
            assert len(text) <= classifier.LONGEST
