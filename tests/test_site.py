"""The parts of the site that need no MkDocs: its reference is complete, its links are right."""

import importlib
import inspect
import sys
from pathlib import Path

import pytest

import registry
import symop as so

SITE = Path(__file__).parents[1] / "docs" / "site"


@pytest.fixture
def site(monkeypatch):
    """Imports a module of the site."""
    monkeypatch.syspath_prepend(str(SITE))
    yield importlib.import_module
    for name in [name for name in sys.modules if (SITE / f"{name}.py").exists()]:
        monkeypatch.delitem(sys.modules, name)


def test_the_reference_shows_every_public_name_of_symop(site):
    names = {name for _, name, _, _ in site("api").shown()}
    public = {name for name in so.__all__ if not inspect.ismodule(getattr(so, name))}
    assert {f"so.{name}" for name in public} <= names
    modules = {page.prefix for page in site("api").PAGES.values()}
    assert {f"so.{one}" for one in set(so.__all__) - public} - {"so.registry"} <= modules


def test_the_reference_shows_every_public_name_of_the_modules(site):
    names = {name for _, name, _, _ in site("api").shown()}
    for module, prefix in ((registry, "registry"), (so.optim, "so.optim"), (so.train, "so.train")):
        assert {f"{prefix}.{name}" for name in module.__all__} <= names


def test_a_name_is_described_where_it_is_defined(site):
    pages = site("api").pages()
    assert "::: symop.symbol.building.var\n" in pages["api/graphs.md"]
    assert 'heading: "so.var"' in pages["api/graphs.md"]
    assert "Another name of [`so.Symbol`](graphs.md)" in pages["api/sym.md"]
    assert "[`cholesky`](../operators/cholesky.md)" in pages["api/nd-linalg.md"]


def test_every_operator_has_a_place_in_the_navigation(site):
    operators = site("operators")
    entries = [page for family in operators.navigation() for page in next(iter(family.values()))]
    shown = {Path(page).stem for page in entries if page.startswith("operators/")}
    declared = {one.name for one in registry.operators() if one.__module__.startswith("registry.")}
    assert declared <= shown
    assert {page for page in entries if page.startswith("families/")} == set(operators.pages())


@pytest.mark.parametrize(
    ("source", "page", "before", "after"),
    [
        ("docs/a.md", "a.md", "[x](../README.md#y)", "[x](overview.md#y)"),
        ("docs/guides/a.md", "guides/a.md", "[x](../b.md)", "[x](../b.md)"),
        ("README.md", "overview.md", "[x](docs/guides/a.md)", "[x](guides/a.md)"),
        ("README.md", "overview.md", "[LICENSE](LICENSE) `[a](b)`", "LICENSE `[a](b)`"),
        ("CONTRIBUTING.md", "project/contributing.md", "[`x`](docs/a.md)", "[`x`](../a.md)"),
        ("docs/a.md", "a.md", "[x](../notebooks/q.ipynb)", "[x](tutorials/q.md)"),
        ("notebooks/q.ipynb", "tutorials/q.md", "![x](q/q_1.png)", "![x](q/q_1.png)"),
        ("docs/a.md", "a.md", "```\n[x](../README.md)\n```\n", "```\n[x](../README.md)\n```\n"),
        ("docs/a.md", "a.md", "[x](https://y.z) [x](#y)", "[x](https://y.z) [x](#y)"),
    ],
)
def test_links_are_rewritten(site, source, page, before, after):
    assert site("links").rewritten(before, source, page) == after


def test_pipes_in_the_code_of_tables(site):
    with_pipes = site("links").with_pipes
    assert with_pipes("| `a \\| b` | c \\| d |") == "| `a | b` | c \\| d |"
    assert with_pipes("`a \\| b`") == "`a \\| b`"
