"""mypy and pyright on calls of symop: they reveal the types of results, and refuse wrong calls."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import registry

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
    found = re.findall(rf"{CALLS.name}:(\d+): (\w+): (.*)", output_of("mypy", "--strict", CALLS))
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


# Every operator --------------------------------------------------------------------------------

KINDS = {"s": "so.Symbol", "a": "jax.Array", "n": "so.NDArray", "v": "so.Variable"}


def written(value):
    """An attribute as source text."""
    if isinstance(value, np.dtype):
        return f"np.dtype({value.name!r})"
    return f"np.{value.__name__}" if isinstance(value, type) else repr(value)


def arguments(operator, case, value):
    """The arguments of a case in order, each with its name, where inputs are ``value``."""
    for name in [slot.name for slot in operator.positional if slot.name in case.values]:
        filled, slot = case.values[name], operator.slots[operator.slot_index[name]]
        if filled is not None:
            several = f"[{', '.join([value] * len(filled))}]" if slot.variadic else value
            yield name, several
    for slot in operator.slots:
        if slot.implicit and slot.name in case.values:
            yield slot.name, "True" if slot.role == "training" else "key"
    for attribute in operator.attributes:
        if attribute.name in case.values:
            yield attribute.name, written(case.values[attribute.name])


def calls_of(operator):
    """The cases of an operator as calls on values of each kind."""
    for case in operator.cases:
        for value in KINDS:
            shown = [f"{name}={one}" for name, one in arguments(operator, case, value)]
            yield f"so.{operator.name}({', '.join(shown)})"


@pytest.mark.thorough
def test_every_case_is_accepted(tmp_path):
    need("mypy")
    plain = [
        one
        for one in registry.operators()
        if not any("Body" in a.type_text for a in one.attributes)
    ]
    lines = dict.fromkeys(f"    {call}" for one in plain for call in calls_of(one))
    parameters = ", ".join(f"{name}: {kind}" for name, kind in KINDS.items())
    head = "import jax\nimport numpy as np\nimport symop as so\nfrom numpy import inf, nan\n"
    path = tmp_path / "cases.py"
    path.write_text(f"{head}def f({parameters}, key: jax.Array) -> None:\n" + "\n".join(lines))
    assert len(lines) > 4000
    assert [
        one for one in output_of("mypy", "--strict", path).splitlines() if "error:" in one
    ] == []
