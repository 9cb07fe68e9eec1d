"""Operators that a cell or a module declares again, and graphs that hold the former ones."""

import importlib
import sys
import warnings

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from test_notebooks import kernel  # noqa: F401  # a fixture

import registry
import symop as so
from registry.errors import RegistrationError, SupersededWarning
from registry.table import unregister

CELL = """
from registry import Array, op
@op
def told(x: Array) -> Array:
    "A factor times ``x``."
    return {factor} * x
@told.gradient
def told_gradient(d_out):
    return {{"x": {factor} * d_out}}
"""
X = np.ones(2, np.float32)


@pytest.fixture(autouse=True)
def fresh():
    yield
    unregister("told")


def run(code, file, names):
    exec(compile(code, file, "exec"), names)


@pytest.mark.parametrize(
    "file", ["/tmp/ipykernel_7/{}.py", "<ipython-input-{}-abc>", "<python-input-{}>", "<stdin>"]
)
class TestCells:
    def test_the_last_run_counts(self, file):
        names = {"__name__": "__main__"}
        for number in (1, 2):
            run(CELL.format(factor=number), file.format(number), names)
        assert registry.get("told") is names["told"]
        np.testing.assert_allclose(so.told(X), 2 * X)
        x = so.var("x", shape=(2,))
        np.testing.assert_allclose(so.grad(so.sum(so.told(x)), x).eval(x=X), 2 * X)

    def test_a_former_graph_keeps_its_operator_and_says_so(self, file):
        names = {"__name__": "__main__"}
        run(CELL.format(factor=1), file.format(1), names)
        x = so.var("x", shape=(2,))
        before, former = so.told(x), registry.get("told")
        run(CELL.format(factor=2), file.format(2), names)
        with pytest.warns(SupersededWarning, match=r"told: it was declared again .*\n  built at"):
            np.testing.assert_allclose(before.eval(x=X), X)
        assert "declared again since" in repr(former)
        assert "declared again since" not in repr(registry.get("told"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_allclose(so.told(x).eval(x=X), 2 * X)


def test_files_that_run_again(tmp_path):
    """A script that runs again has new global names; in one run, a name is declared once."""
    file = str(tmp_path / "script.py")
    for factor in (1, 2):
        run(CELL.format(factor=factor), file, {"__name__": "__main__"})
    np.testing.assert_allclose(so.told(X), 2 * X)
    with pytest.raises(RegistrationError, match="pass replace=True"):
        run(CELL.format(factor=3), str(tmp_path / "other.py"), {"__name__": "__main__"})
    names = {"__name__": "twice"}
    with pytest.raises(RegistrationError, match="pass replace=True"):
        run(CELL.format(factor=1).replace("told", "told2") * 2, file, names)
    unregister("told2")
    np.testing.assert_allclose(so.told(X), 2 * X)


def test_modules_that_are_loaded_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "declares_told.py"
    path.write_text(CELL.format(factor=1))
    module = importlib.import_module("declares_told")
    before = so.told(so.var("x", shape=(2,)))
    path.write_text("# A line more.\n\n" + CELL.format(factor=20))
    importlib.invalidate_caches()
    importlib.reload(module)
    np.testing.assert_allclose(so.told(X), 20 * X)
    with pytest.warns(SupersededWarning, match="told"):
        np.testing.assert_allclose(before.eval(x=X), X)
    with pytest.raises(RegistrationError, match="pass replace=True"):
        exec("from registry import op\nop(name='told')(told.kernel)", vars(module))
    del sys.modules["declares_told"]


def test_simple_operators():
    code = "from registry import register_simple_op\nregister_simple_op('told').set_function({})"
    names = {"__name__": "__main__"}
    for number in (1, 2):
        function = f"lambda a: {number} * a"
        run(code.format(function), f"/tmp/ipykernel_7/{number}.py", names)
    np.testing.assert_allclose(so.told(X), 2 * X)


def test_operators_of_the_catalogue_stay():
    code = CELL.format(factor=2).replace("told", "sin")
    with pytest.raises(RegistrationError, match="the catalogue has an operator of this name"):
        run(code, "/tmp/ipykernel_7/1.py", {"__name__": "__main__"})
    assert float(so.sin(0.0)) == 0.0


@pytest.mark.thorough
def test_a_notebook(kernel, tmp_path):  # noqa: F811  # the fixture
    use = "import symop as so\nprint(so.told(1.0), so.grad(so.told, 1.0).item())"
    cells = [CELL.format(factor=3.0), use, CELL.format(factor=5.0), use]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, kernel_name=kernel, timeout=120, resources=resources).execute()
    texts = ["".join(one.get("text", "") for one in cell.outputs) for cell in notebook.cells]
    assert texts == ["", "3.0 3.0\n", "", "5.0 5.0\n"]
