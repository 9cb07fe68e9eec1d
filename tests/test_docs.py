"""Every example in README.md, in docs/ and in docstrings runs and shows what it says it shows."""

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import shlex
from pathlib import Path

import pytest

import registry
import symop as so
from symop import cli

ROOT = Path(__file__).parents[1]
# The pages of operators show docstrings, whose examples run below.
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LANGUAGES = ("python", "console", "text", "sh", "toml", "")
"""Those of blocks; ``python`` and ``console`` run."""
FENCE = re.compile(r"^```(?P<language>.*?)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def modules():
    for package in (registry, so):
        yield package.__name__
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield found.name


def run(test):
    """Run one docstring; the report of what failed is the message."""
    report = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


def page_id(path):
    return str(path.relative_to(ROOT))


def run_block(block, path, names, monkeypatch):
    """Run one block of a page: commands, examples with prompts, or plain code."""
    text = block.string
    line = text.count("\n", 0, block.start("code"))
    language, code = block["language"], block["code"]
    if language == "console":
        run_commands(code, monkeypatch)
    elif language == "python" and code.startswith(">>>"):
        # A blank line is part of an output, unless a prompt follows.
        code = re.sub(r"\n\n(?!>>>|\Z)", "\n<BLANKLINE>\n", code)
        test = doctest.DocTestParser().get_doctest(code, names, page_id(path), str(path), line)
        run(test)
        names.update(test.globs)
    elif language == "python":
        exec(compile("\n" * line + code, str(path), "exec"), names)


def run_commands(code, monkeypatch):
    """Run the commands after each prompt, and compare what they print."""
    assert code.startswith("$ ")
    for typed in code.removeprefix("$ ").split("\n$ "):
        line, _, expected = typed.partition("\n")
        printed = printed_by(line, monkeypatch)
        assert doctest.OutputChecker().check_output(expected, printed, FLAGS), printed


def printed_by(line, monkeypatch):
    """What a pipeline of commands prints; it runs in this process."""
    data = ""
    for command in line.split(" | "):
        name, *arguments = shlex.split(command)
        assert name == "symop", line
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data.encode())))
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            cli.main(arguments)
        data = out.getvalue()
    return data


@pytest.mark.usefixtures("temporary_operators")
class TestPages:
    @pytest.mark.parametrize("path", PAGES, ids=page_id)
    @pytest.mark.sampled(6)
    def test_examples_run(self, path, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        so.random.seed(0)
        names = {"__name__": "__main__"}
        for block in FENCE.finditer(path.read_text(encoding="utf-8")):
            run_block(block, path, names, monkeypatch)

    @pytest.mark.parametrize("path", PAGES, ids=page_id)
    def test_no_example_is_left_out(self, path):
        text = path.read_text(encoding="utf-8")
        run = [b for b in FENCE.finditer(text) if b["language"] == "python"]
        prompts = sum(b["code"].count("\n>>>") + b["code"].startswith(">>>") for b in run)
        assert prompts == text.count("\n>>>")
        assert not [b for b in FENCE.finditer(text) if b["language"] not in LANGUAGES]


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
        if isinstance(node, ast.If):  # one definition for type checkers, another at run time
            yield from defined_names(ast.Module([*node.body, *node.orelse], []))


def test_the_map_of_the_code_names_what_exists():
    text = " ".join((ROOT / "docs" / "architecture.md").read_text().split())
    places = NAMED_PLACE.findall(text)
    assert len(places) > 50
    for path, name in places:
        tree = ast.parse((ROOT / path).read_text())
        assert not name or name in set(defined_names(tree)), f"{path}: {name}"
