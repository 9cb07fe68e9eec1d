"""The names that users rely on, and what keeps internal ones out of their way."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import registry
import symop as so
from symop import interop, testing, train
from symop.interop import mxnet

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden" / "public_names.txt"
PUBLIC = (registry, so, so.autograd, so.checkpoint, so.nd, so.optim, so.random, so.remat, so.sym)


def listed(module):
    names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
    own = [n for n in names if n in getattr(module, "__all__", ()) or is_own(module, n)]
    return "\n".join([f"{module.__name__}:", *(f"  {name}" for name in sorted(own))])


def is_own(module, name):
    return getattr(getattr(module, name), "__module__", None) == module.__name__


@pytest.mark.golden
def test_public_names(golden):
    """A name that goes, or comes, is seen in a review."""
    modules = (*PUBLIC, train, testing, interop, mxnet)
    golden(GOLDEN, "\n\n".join(map(listed, modules)) + "\n")


def test_no_module_hides_an_operator():
    modules = [name for name, one in vars(so).items() if inspect.ismodule(one)]
    assert [name for name in modules if registry.table.find(name) is not None] == []


def test_internal_modules_are_not_listed():
    modules = [name for name in dir(so) if inspect.ismodule(getattr(so, name))]
    assert set(modules) <= {*so.__all__, "interop", "testing", "train"}
    assert so.registry is registry
    assert {"sin", "softmax", "grad", "Program"} <= set(dir(so))


@pytest.mark.parametrize("name", ["main.py", "registry.py"])
def test_a_module_that_hides_registry_is_named(tmp_path, name):
    (tmp_path / "registry.py").write_text("")
    (tmp_path / name).write_text("import symop")
    run = subprocess.run(
        [sys.executable, name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert f"got {tmp_path / 'registry.py'}, which comes first on sys.path" in run.stderr
