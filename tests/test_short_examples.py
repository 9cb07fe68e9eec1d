"""The short examples do what they promise, and are as short as their twins in flax."""

import importlib.util
from pathlib import Path

import registry
from symop.testing import check_operator

ROOT = Path(__file__).parents[1]


def loaded(name):
    """A short example as a module."""
    path = ROOT / "examples" / "short" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"short_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits():
    assert loaded("digits").run(epochs=3) > 0.85


def test_a_differential_equation():
    assert loaded("pinn").run(steps=300) < 0.05


def test_an_operator():
    example = loaded("own_operator")
    try:
        assert example.run(steps=150) < 1e-3
        assert check_operator(example.symlog).ok
    finally:
        registry.table.unregister("symlog")


def test_brackets():
    assert loaded("brackets").run(epochs=4) > 0.8


def test_a_text_by_heart():
    (line,) = loaded("gpt").run(steps=200, prompts=("Each token",))
    assert line == "Each token costs as much as th"


def test_as_short_as_in_flax(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    newcomer = importlib.import_module("newcomer")
    for name in newcomer.NAMES:
        own, twin = map(newcomer.lines_of, newcomer.paths_of(name))
        assert own <= twin, name
