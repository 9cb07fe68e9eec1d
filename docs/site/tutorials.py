"""Notebooks as pages: each runs while the site is built, or its stored outputs are shown."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from latex2mathml.converter import convert
from links import outside_of_code
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

_SECONDS = 600
_FORMULA = re.compile(r"\$\$(?P<display>.+?)\$\$|\$(?P<inline>[^$\n]+)\$", re.DOTALL)
_STORED = "SYMOP_DOCS_NOTEBOOKS"
"""The environment variable that is ``stored`` for a quick build."""


def page_of(path: Path, root: Path) -> tuple[str, Mapping[str, bytes]]:
    """Returns a notebook as Markdown, and its pictures by name."""
    notebook = nbformat.read(path, as_version=4)
    if os.environ.get(_STORED) != "stored":
        notebook = _executed(notebook, root)
    exporter = MarkdownExporter()
    body, resources = exporter.from_notebook_node(
        notebook, {"unique_key": path.stem, "output_files_dir": path.stem}
    )
    return outside_of_code(body, _with_formulas), resources.get("outputs", {})


def _with_formulas(prose: str) -> str:
    """Returns text whose formulas are MathML, which browsers show without a library."""

    def mathml(match: re.Match[str]) -> str:
        if match["display"] is None:
            return str(convert(match["inline"]))
        return str(convert(match["display"].strip(), display="block"))

    return _FORMULA.sub(mathml, prose)


def _executed(notebook: Any, root: Path) -> Any:
    """Returns the notebook with the outputs of a run; one that ran with the same code is kept."""
    kept = root / "build" / "notebooks" / f"{_key(notebook, root)}.ipynb"
    if kept.exists():
        return nbformat.read(kept, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JUPYTER_PATH"] = str(_kernel(Path(folder)))
        os.environ["PYTHONPATH"] = str(root)
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            notebook, kernel_name="python3", timeout=_SECONDS, resources=resources
        ).execute(stderr=subprocess.DEVNULL)
    kept.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, kept)
    return notebook


def _kernel(folder: Path) -> Path:
    """Declares this very interpreter as a kernel in ``folder``; nothing is installed."""
    place = folder / "kernels" / "python3"
    place.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (place / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Python 3"}))
    return folder


def _key(notebook: Any, root: Path) -> str:
    """Returns a digest of the code of a notebook and of both packages."""
    digest = hashlib.sha256()
    for cell in notebook.cells:
        digest.update(cell.source.encode())
    for package in ("registry", "symop"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:32]
