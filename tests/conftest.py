"""Fixtures that all tests share; JAX runs on the CPU, which plays two devices.

XLA's older emitters compile fusions in half the time of those it has by default, and most of what
tests wait for is its compiler. Proofs and benchmarks run with the default.
"""

import importlib.util
import itertools
import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_force_host_platform_device_count=2",
        "--xla_cpu_use_fusion_emitters=false",
    ]
)

import jax  # the flags above are read when JAX is imported
import pytest

from registry import table, var
from symop.recording import settle
from symop.segments import local


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the texts in tests/golden, docs/names.md and docs/mxnet.md",
    )


TESTS_BETWEEN_CLEARINGS = 250
_finished = itertools.count(1)


def pytest_runtest_teardown():
    """Forget what JAX compiled, every now and then: it would fill the memory."""
    if next(_finished) % TESTS_BETWEEN_CLEARINGS == 0:
        jax.clear_caches()


EXAMPLES = Path(__file__).parents[1] / "examples"


def loaded(name):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def example(request):
    """The example that a file of tests is called after, as a module."""
    return loaded(request.module.__name__.removeprefix("test_example_"))


@pytest.fixture
def golden(request):
    """``golden(path, text)`` compares a text with the stored one, or stores it."""
    update = request.config.getoption("--update-golden")

    def compare(path, text):
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path.name} is missing: run  make golden"
        assert text == path.read_text(), f"{path.name} differs: look at it, then run  make golden"

    return compare


@pytest.fixture
def x64():
    """JAX with 64-bit dtypes."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def hurried():
    """XLA optimizes little: for large programs that run once, compiling is most of the time."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(params=["fused", "direct"])
def way(request):
    """How eager calls run: several together, or each by itself."""
    settle()
    local.state.rest, local.state.surprise = -1 if request.param == "direct" else 0, 0
    yield request.param
    settle()
    local.state.rest = 0


@pytest.fixture
def temporary_operators():
    """Operators that a test registers are forgotten after it."""
    tables = (table._table, table._aliases, var.infix)
    before = [dict(one) for one in tables]
    yield
    for one, content in zip(tables, before, strict=True):
        one.clear()
        one.update(content)
