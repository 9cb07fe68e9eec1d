"""mypy and pyright on calls of symop: they reveal the types of results, and refuse wrong calls."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parents[1]
CALLS = ROOT / "tests" / "data" / "typed_calls.py"
LINES = dict(enumerate(CALLS.read_text(encoding="utf-8").splitlines(), start=1))
WRONG = {i for i, line in LINES.items() if line.endswith("  # error")}
TYPES = {
    i: line.partition("  # ")[2]
    for i, line in LINES.items()
    if line.startswith("reveal_type(") and i not in WRONG
}


def class_of(value):
    """The type of a value as a checker shows it."""
    if isinstance(value, tuple):
        return f"tuple[{', '.join(map(class_of, value))}]"
    return "Array" if isinstance(value, jax.Array) else type(value).__name__


def matches(value, shown):
    """Whether a value is of a type, of which ``tuple[X, ...]`` leaves the length open."""
    if isinstance(value, tuple) and shown.endswith(", ...]"):
        return {class_of(one) for one in value} == {shown[len("tuple[") : -len(", ...]")]}
    return class_of(value) == shown


@pytest.mark.usefixtures("temporary_operators")
def test_calls_at_run_time():
    """What the comments say is true: the calls return such values, and wrong ones raise."""
    names = {"reveal_type": lambda value: value}
    for statement in ast.parse(CALLS.read_text(encoding="utf-8")).body:
        source, line = ast.unparse(statement), statement.lineno
        if line in WRONG:
            with pytest.raises((AttributeError, TypeError, ValueError)):
                exec(source, names)
        elif line in TYPES:
            value = eval(source, names)
            assert matches(value, TYPES[line]), f"{source} is {class_of(value)}"
        elif not source.startswith("from typing"):
            exec(source, names)


def need(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install 'symop-jax[dev]'")


def output_of(*command):
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def short(shown):
    """A type without the modules of its classes."""
    return re.sub(r"[\w.]+\.(\w+)", r"\1", shown)


def by_mypy():
    """The revealed types and the errors, by line."""
    report = output_of("mypy", "--strict", CALLS)
    found = re.findall(rf"{CALLS.name}:(\d+): (\w+): (.*)", report)
    types = {
        int(i): short(text.split('"')[1]) for i, _, text in found if text.startswith("Revealed")
    }
    return types, {int(i) for i, kind, _ in found if kind == "error"}


def by_pyright(folder):
    """The revealed types and the errors, by line."""
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)], "include": [str(CALLS)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    report = output_of(
        "basedpyright", "--outputjson", "--pythonpath", sys.executable, "--project", folder
    )
    types, errors = {}, set()
    for one in json.loads(report)["generalDiagnostics"]:
        line = one["range"]["start"]["line"] + 1
        revealed = re.fullmatch(r'Type of ".*" is "(.*)"', one["message"], re.DOTALL)
        if revealed:
            types[line] = short(revealed[1])
        elif one["severity"] == "error":
            errors.add(line)
    return types, errors


@pytest.mark.thorough
@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_calls(checker, tmp_path):
    need(checker)
    types, errors = by_mypy() if checker == "mypy" else by_pyright(tmp_path)
    assert {i: types.get(i) for i in TYPES} == TYPES
    assert {i: LINES[i] for i in errors ^ WRONG} == {}
