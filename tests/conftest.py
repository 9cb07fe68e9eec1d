"""Fixtures that all tests share; JAX runs on the CPU, which plays eight devices.

Tests and proofs use the flags of ``xla_flags``; benchmarks run with XLA's defaults. Tests run
programs a few times on a few numbers, so LLVM optimizes little, and what they compile is kept on
disk, in pytest's cache.
"""

import collections
import ctypes
import gc
import importlib.util
import os
import resource
import time
from pathlib import Path

from xla_flags import with_quick_compilation

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
os.environ["XLA_FLAGS"] = with_quick_compilation(
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)

import jax  # the flags above are read when JAX is imported
import pytest

from registry import caches, table, tuning, var
from symop.eager.recording import flush
from symop.eager.segments import local


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the stubs, the texts in tests/golden, and the generated pages of docs",
    )
    parser.addoption(
        "--update-lengthy",
        action="store_true",
        help="run the tests in tests/lengthy.txt, too, and rewrite it by what each test takes",
    )


DAYS_ON_DISK = 7


def pytest_configure(config):
    """Lets JAX keep what it compiles on disk, where both workers and the next run read it.

    The key of an entry is its program and the versions and flags of XLA, so nothing is stale.
    """
    if not hasattr(config, "cache"):  # pytest runs without its cache
        return
    kept = config.cache.mkdir("xla")
    if not hasattr(config, "workerinput"):
        drop_older(kept, time.time() - DAYS_ON_DISK * 24 * 3600)
    options = {
        "jax_compilation_cache_dir": str(kept),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }
    for name, value in options.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)  # of processes that tests start


def drop_older(folder, moment):
    """Deletes the files of ``folder`` that were written before ``moment``."""
    for file in folder.iterdir():
        if file.stat().st_mtime < moment:
            file.unlink()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collects tests; they are a million objects that stay, which Python need not look through."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marker
def pytest_collection_modifyitems(config, items):
    """Marks as thorough what `make test` leaves out: lengthy tests, and most cases of sampled ones.

    Whoever selects tests by a keyword, such as an operator's name, gets all cases of these.
    """
    if config.option.keyword:
        return
    if not config.option.update_lengthy:
        lengthy = set(LENGTHY.read_text().splitlines())
        for item in items:
            if item.nodeid in lengthy:
                item.add_marker("thorough")
    places = collections.defaultdict(dict)
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None:
            (every,), by = marker.args, marker.kwargs.get("by")
            cases = places[item.nodeid.partition("[")[0]]
            case = item.nodeid if by is None else item.callspec.params[by]
            if cases.setdefault(case, len(cases)) % every:
                item.add_marker("thorough")


LENGTHY = Path(__file__).parent / "lengthy.txt"
"""The tests that take too long for `make test`, one in a line."""
MOST = 1.0
"""The seconds of a processor that a test of `make test` may take."""
started = pytest.StashKey[float]()
costs = {}


def spent():
    """The seconds of a processor that this process, and its children that ended, have taken."""
    usage = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in usage)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[started] = spent()


def pytest_runtest_logreport(report):
    """Collects in the main process what each test took."""
    for name, value in report.user_properties:
        if name == "processor":
            costs[report.nodeid] = value


def pytest_sessionfinish(session):
    if session.config.option.update_lengthy and not hasattr(session.config, "workerinput"):
        LENGTHY.write_text("".join(f"{one}\n" for one in sorted(lengthy_of(costs))))


def lengthy_of(seconds):
    """The tests that take more than ``MOST``; the shortest case of a function is none of them."""
    functions = collections.defaultdict(dict)
    for nodeid, value in seconds.items():
        functions[nodeid.partition("[")[0]][nodeid] = value
    for cases in functions.values():
        kept = min(cases, key=cases.get) if len(cases) > 1 else None
        yield from (one for one, value in cases.items() if value > MOST and one != kept)


MEMORY = 1_400_000_000
"""Bytes that a worker may hold before it drops compiled programs: workers have 2 GB each."""
COMPILATIONS_BETWEEN_CLEARINGS = 100
_cleared = 0


def resident():
    """The bytes of memory that this process holds; more than allowed where Linux is not asked."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return MEMORY + 1


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    """Notes what the test took, unless it is essential, and drops programs that take memory."""
    if item.get_closest_marker("essential") is None:
        item.user_properties.append(("processor", spent() - item.stash[started]))
    drop_programs()


def drop_programs():
    """Drops compiled programs that take much memory; tests share the others, as far as they can."""
    global _cleared  # noqa: PLW0603  # of the process
    if caches.store.now - _cleared < COMPILATIONS_BETWEEN_CLEARINGS or resident() < MEMORY:
        return
    _cleared = caches.store.now
    jax.clear_caches()
    return_memory()


def return_memory():
    """Gives the memory that is free back to the system; glibc keeps it, so that it would count."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


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
def optimized():
    """LLVM optimizes all programs as it does for users; there are no drafts."""
    jax.config.update("jax_disable_most_optimizations", False)
    before = tuning.present.tuning
    tuning.tune(draft_runs=1)
    yield
    tuning.present.tuning = before
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture
def few_convolutions_roll():
    """Few steps with convolutions become loops, too."""
    before = tuning.present.tuning
    tuning.tune(convolving_steps=0)
    yield
    tuning.present.tuning = before


@pytest.fixture(params=["fused", "direct"])
def way(request):
    """How eager calls run: several together, or each by itself."""
    flush()
    local.state.rest, local.state.surprise = -1 if request.param == "direct" else 0, 0
    yield request.param
    flush()
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
