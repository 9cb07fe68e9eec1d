"""The notebooks run from top to bottom, and their stored outputs are fit to be read anywhere."""

import json
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"), key=lambda path: path.stem != "quickstart")
LIMIT = 500_000
# A home, a temporary folder, an installed package, or a drive of Windows.
ABSOLUTE = re.compile(r"(?<![\w.:/])/(?:home|root|Users|tmp|var|usr|opt|work|mnt)/\w|[A-Z]:\\\w")
CHECKED = re.compile(r"^(checked: .*\d|test accuracy (0\.9|1\.0)\d*$)", re.MULTILINE)
"""What a notebook prints when it has checked that it did what it promises."""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """The name of a kernel that is this very interpreter with this symop; nothing is installed."""
    folder = tmp_path / "kernels" / "python3"
    folder.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return "python3"


def streams(notebook, name):
    return [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream" and output.name == name
    ]


@pytest.mark.sampled(len(NOTEBOOKS))
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, kernel, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, kernel_name=kernel, timeout=120, resources=resources).execute()
    assert not streams(notebook, "stderr")
    assert CHECKED.search("".join(streams(notebook, "stdout")))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestStored:
    def test_is_valid_and_small(self, path):
        nbformat.validate(nbformat.read(path, as_version=4))
        assert path.stat().st_size < LIMIT

    def test_was_executed_from_top_to_bottom(self, path):
        cells = nbformat.read(path, as_version=4).cells
        counts = [cell.execution_count for cell in cells if cell.cell_type == "code"]
        assert counts == list(range(1, len(counts) + 1))

    def test_names_no_place_of_the_machine_that_executed_it(self, path):
        cells = nbformat.read(path, as_version=4).cells
        found = [ABSOLUTE.search(json.dumps(cell.get("outputs", []))) for cell in cells]
        assert not [one[0] for one in found if one]

    def test_holds_no_errors_and_no_noise(self, path):
        notebook = nbformat.read(path, as_version=4)
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        assert not streams(notebook, "stderr")
        assert not [one for one in outputs if one.output_type == "error"]
        assert not [one for one in outputs if "application/vnd.jupyter.widget-view+json" in one]


def test_there_is_a_notebook():
    assert "quickstart" in [path.stem for path in NOTEBOOKS]
