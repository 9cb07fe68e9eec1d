"""Every example in README.md, in docs/ and in docstrings runs and shows what it says it shows."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import registry
import symop as so

ROOT = Path(__file__).parents[1]
# The pages of operators show docstrings, whose examples run below.
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^```(?P<language>.*?)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#]+)")


def modules():
    for package in (registry, so):
        yield package.__name__
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield found.name


def run(test):
    """Run one docstring or page; the report of what failed is the message."""
    report = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    runner.run(test, out=report.append)
    assert not report, "".join(report)


def page_id(path):
    return str(path.relative_to(ROOT))


def examples(path):
    """The code of a page, each line where it was.

    A blank line is part of an output, unless a prompt follows.
    """
    text = path.read_text(encoding="utf-8")
    code, end = "", 0
    for block in FENCE.finditer(text):
        if block["language"] in ("", "python"):
            code += "\n" * text.count("\n", end, block.start("code"))
            code += re.sub(r"\n\n(?!>>>|\Z)", "\n<BLANKLINE>\n", block["code"])
            end = block.end("code")
    return code


@pytest.mark.usefixtures("temporary_operators")
class TestPages:
    @pytest.mark.parametrize("path", PAGES, ids=page_id)
    @pytest.mark.sampled(6)
    def test_examples_run(self, path, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        so.random.seed(0)
        code = examples(path)
        run(doctest.DocTestParser().get_doctest(code, {}, page_id(path), str(path), 0))

    @pytest.mark.parametrize("path", PAGES, ids=page_id)
    def test_no_example_is_left_out(self, path):
        code, text = examples(path).splitlines(), path.read_text(encoding="utf-8").splitlines()
        prompts = [i for i, line in enumerate(text) if line.startswith(">>>")]
        assert prompts == [i for i, line in enumerate(code) if line.startswith(">>>")]

    @pytest.mark.parametrize("path", PAGES, ids=page_id)
    def test_links_lead_somewhere(self, path):
        prose = FENCE.sub("", path.read_text(encoding="utf-8"))
        targets = LINK.findall(prose)
        assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.usefixtures("temporary_operators")
class TestDocstrings:
    @pytest.mark.parametrize("name", sorted(set(modules())))
    @pytest.mark.sampled(3)
    def test_examples_of_a_module_run(self, name, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        module = importlib.import_module(name)
        for test in doctest.DocTestFinder(exclude_empty=True).find(module):
            # so.nd keeps the operators that somebody asked for; their examples have a test below.
            found = vars(module).get(test.name.rpartition(".")[2])
            if test.examples and not hasattr(found, "operator"):
                run(test)

    @pytest.mark.parametrize("operator", registry.operators(), ids=lambda operator: operator.name)
    @pytest.mark.sampled(12)
    def test_examples_of_an_operator_run(self, operator):
        finder = doctest.DocTestFinder(recurse=False)
        kernel = inspect.unwrap(operator.kernel)
        for test in finder.find(kernel, operator.name, globs=kernel.__globals__):
            run(test)


# The map of the code ------------------------------------------------------------------------------

NAMED_PLACE = re.compile(r"`((?:symop|registry)/[\w/]+\.py)(?:: ([\w.]+))?`")


def defined_names(tree):
    """The names that a module or class defines, those of a class's members after a dot."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{name}" for name in defined_names(node))
        if isinstance(node, ast.Assign):
            yield from (one.id for one in node.targets if isinstance(one, ast.Name))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def test_the_map_of_the_code_names_what_exists():
    text = " ".join((ROOT / "docs" / "architecture.md").read_text().split())
    places = NAMED_PLACE.findall(text)
    assert len(places) > 50
    for path, name in places:
        tree = ast.parse((ROOT / path).read_text())
        assert not name or name in set(defined_names(tree)), f"{path}: {name}"
