"""A few random graphs on every road, and what the campaign does with one that fails."""

import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from fuzz_graphs import (
    LIMIT,
    ROADS,
    Call,
    Drawer,
    Recipe,
    UnfitError,
    Worker,
    along_graph,
    candidates,
    check,
    drawn,
    pruned,
    repeated,
    script,
    shrunk,
)

import registry

SEEDS = range(3)
X = np.linspace(0.25, 1.5, 6).reshape(2, 3)
CHAIN = Recipe(
    inputs={"x": X, "y": X + 1.0},
    calls=(
        Call("sin", {"x": "x"}, {}, ("a",)),
        Call("add_n", {"xs": ["a", "y", "a"]}, {}, ("b",)),
        Call("split", {"x": "b"}, {"sections": 3, "axis": 1}, ("c", "d", "e")),
        Call("softmax", {"x": "d"}, {"axis": 0}, ("f",)),
        Call("tanh", {"x": "b"}, {}, ("g",)),
    ),
    terms=("f", "g"),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_graph_holds_on_every_road(seed):
    assert [one.text for one in check(drawn(seed, calls=5))] == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shared", [True, False])
def test_repeated_blocks_hold(shared):
    block = Recipe({"x": X, "y": X + 1.0}, CHAIN.calls[:2], ("b",))
    assert [one.text for one in check(repeated(block, shared=shared), ["graph", "remat"])] == []


def test_drawing_is_a_function_of_the_seed():
    assert str(drawn(3, calls=2)) == str(drawn(3, calls=2))
    assert str(drawn(3, calls=2)) != str(drawn(4, calls=2))


def test_a_process_that_dies_is_noticed_at_once():
    worker, started = Worker(), time.monotonic()
    assert worker.report("no seed") is None
    assert time.monotonic() - started < LIMIT / 2
    worker.end()


def test_matrices_of_another_shape_are_not_drawn():
    (case,) = [case for operator, case in candidates() if operator.name == "cholesky"][:1]
    drawer = Drawer(0, calls=0)
    drawer.rng = np.random.default_rng(0)
    drawn = [_slot_or_none(drawer, registry.get("cholesky"), case) for _ in range(200)]
    assert None in drawn
    assert any(drawn)


def _slot_or_none(drawer, operator, case):
    try:
        return drawer._slot(operator, case, operator.slots[0].name)
    except UnfitError:
        return None


def test_a_recipe_reads_a_floating_input():
    assert drawn(22).wrt


def test_only_what_a_term_needs_is_kept():
    recipe = pruned(dataclasses.replace(CHAIN, terms=("a",)))
    assert [call.operator for call in recipe.calls] == ["sin"]
    assert list(recipe.inputs) == ["x"]


@pytest.fixture
def faulty(monkeypatch):
    """A road on which what runs through ``softmax`` gets wrong gradients."""

    def road(recipe):
        values, first, second = along_graph(recipe)
        wrong = any(call.operator == "softmax" for call in recipe.calls)
        return values, [one * 1.5 for one in first] if wrong else first, second

    monkeypatch.setitem(ROADS, "faulty", road)


@pytest.mark.usefixtures("faulty")
class TestAFailure:
    @pytest.fixture
    def smallest(self):
        (failure,) = check(CHAIN, ["graph", "faulty"])
        assert failure.road == "faulty"
        assert "gradient 0" in failure.text
        return shrunk(failure)

    def test_is_shrunk(self, smallest):
        assert [call.operator for call in smallest.recipe.calls] == ["softmax"]
        assert smallest.kind == "DifferenceError"

    def test_is_printed_as_a_program(self, smallest, tmp_path):
        path = tmp_path / "failure.py"
        path.write_text(script(dataclasses.replace(smallest, road="graph")))
        root = Path(__file__).parents[1]
        done = subprocess.run(
            [sys.executable, str(path)],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_an_exception_is_a_failure(monkeypatch):
    def raising(recipe):
        raise RuntimeError(f"of {len(recipe.calls)} calls")

    monkeypatch.setitem(ROADS, "raising", raising)
    (failure,) = check(CHAIN, ["raising"])
    assert failure.kind == "RuntimeError"
    assert "of 5 calls" in failure.text
    assert jax.config.jax_enable_x64 is False
