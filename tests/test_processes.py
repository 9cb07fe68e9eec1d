"""Several processes that train together, on the loopback interface; compiled programs in a folder.

A test starts processes that run a function of this file, whose name begins with ``job_``, and ends
all of them by their ids. Each is given what it is to do as JSON, and prints its answer as JSON.
They print to files, so that no process waits for the test to read. One that takes too long prints
where it stands and ends itself, and the failure shows what all of them have printed.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import chex
import jax
import numpy as np
import optax
import pytest
from jax.sharding import AxisType
from xla_flags import with_quick_compilation

import symop as so
from registry.errors import ArgumentError, ProcessError
from symop import checkpoint, train
from symop.training import meeting

pytestmark = pytest.mark.scale
ROOT = Path(__file__).parents[1]
PATIENCE = 150
"""Seconds after which a process prints the stacks of its threads and ends."""
GRACE = 15
"""Seconds after that until it is killed."""


# Processes ---------------------------------------------------------------------------------------


class Process:
    """A process that prints to files."""

    def __init__(self, folder, command, environment):
        self._output, self._errors = folder / "output", folder / "errors"
        folder.mkdir()
        with self._output.open("w") as output, self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=errors, cwd=ROOT, env=environment
            )

    @property
    def lines(self):
        """The lines that the process has printed."""
        return self._output.read_text().splitlines()

    @property
    def errors(self):
        """What it has printed to its standard error."""
        return self._errors.read_text()

    def end(self):
        """Waits for the end; returns the exit code."""
        return self.process.wait(timeout=PATIENCE + GRACE)

    def kill(self):
        """Ends the process, if it has not ended, and reports it: pytest shows that of failures."""
        self.process.kill()
        code = self.process.wait(timeout=GRACE)
        print(f"process {self.process.pid}, exit code {code}:\n{self.errors[-5000:]}")

    def answer(self):
        """The last answer of a process that has ended well."""
        assert self.end() == 0
        return [json.loads(one) for one in self.lines if one[:1] == "{"][-1]


def flags(devices):
    return f"--xla_force_host_platform_device_count={devices} --xla_cpu_multi_thread_eigen=false"


def of_job(folder, task, place, /, devices=1, hashes="random", **facts):
    """A process that runs a function of this file with its place in the job, and facts."""
    call = (
        f"import faulthandler as f; f.dump_traceback_later({PATIENCE}, exit=True); "
        f"import {__name__} as own; own.child({task!r}, {json.dumps([place, facts])!r})"
    )
    environment = {
        **{name: one for name, one in os.environ.items() if not name.startswith("JAX_")},
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": hashes,
        "XLA_FLAGS": with_quick_compilation(flags(devices)),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
    }
    return Process(folder, [sys.executable, "-c", call], environment)


def of_example(folder, devices, *arguments):
    """A process that runs the example."""
    command = [sys.executable, str(ROOT / "examples" / "many_devices.py"), "--epochs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XLA_FLAGS": flags(devices)}
    return Process(folder, [*command, *arguments], environment)


@pytest.fixture
def run(tmp_path_factory):
    """Starts a process, which ends with the test: ``run(of_example, 8)``."""
    folder, running = tmp_path_factory.mktemp("processes"), []

    def run(make, /, *given, **facts):
        running.append(make(folder / str(len(running)), *given, **facts))
        return running[-1]

    yield run
    for one in running:
        one.kill()


@pytest.fixture
def start(run):
    """Starts a job of so many processes, which end with the test."""

    def start(task, count, late=0, **facts):
        job, coordinator = [], f"127.0.0.1:{free_port()}"
        for process in range(count):
            if process == count - 1:
                time.sleep(late)
            place = [coordinator, count, process] if count > 1 else []
            job.append(run(of_job, task, place, **facts))
        return job

    return start


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def child(task, facts):
    """What a process runs."""
    place, facts = json.loads(facts)
    job = train.distributed(*place, timeout=60, heartbeat=20, cache=facts.pop("cache", None))
    print(json.dumps(globals()[f"job_{task}"](job, **facts)), flush=True)


# Models ------------------------------------------------------------------------------------------

LENGTH, BATCH, STEPS = 403, 16, 200
"""403 examples are 25 batches and an uneven rest, 8 epochs of them are 200 steps."""


def network(batch=BATCH):
    """A perceptron with statistics over the whole batch, and random numbers."""
    x, y = so.var("x", batch and (batch, 6)), so.var("y", batch and (batch,))
    # A bias would have no gradient but rounding errors, which Adam makes large.
    hidden = so.fully_connected(x, units=8, use_bias=False, name="first")
    hidden = so.tanh(so.batch_norm(hidden, name="norm"))
    hidden = so.fully_connected(so.dropout(hidden, rate=0.1), units=8, name="second")
    out = so.fully_connected(so.tanh(hidden), units=1, name="out")
    error = so.reshape(out, shape=(-1,)) - y
    return so.mean(so.square(error)), {"largest": so.max(so.abs(error))}


def data(length=LENGTH):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(length, 6)).astype("float32")
    return {"x": x, "y": np.sin(x.sum(axis=1))}


LAYOUTS = {
    "data": (None, ("data",)),
    "parameters": (
        {"first_weight": ("data",), "second_weight": (None, "data"), "norm_*": ("data",)},
        ("data",),
    ),
    "model": (
        {"first_weight": ("model",), "second_weight": (None, "model")},
        ("data", "model"),
    ),
}
"""Rules, and axes of the mesh; a second axis has two devices."""


def trainer(layout="data", kind="Auto", batch=BATCH):
    rules, axes = LAYOUTS[layout]
    shape = (jax.device_count(),) if len(axes) == 1 else (jax.device_count() // 2, 2)
    mesh = jax.make_mesh(shape, axes, axis_types=(AxisType[kind],) * len(axes))
    loss, metrics = network(batch)
    return train.Trainer(
        loss, optax.adam(1e-2), inputs=["x", "y"], metrics=metrics, mesh=mesh, rules=rules
    )


def alone(epochs):
    """What training by one process on one device gives."""
    loss, metrics = network()
    own = train.Trainer(loss, optax.adam(1e-2), inputs=["x", "y"], metrics=metrics)
    state, history = own.fit(own.init(0), data(), epochs=epochs, batch_size=BATCH, progress=False)
    return report(state, history)


def report(state, history):
    """Numbers of a state, which each process can read, and metrics."""
    copied = jax.jit(lambda *parts: parts, out_shardings=whole(state))
    params, states = copied(state.params, state.states)
    arrays = {name: np.asarray(one).tolist() for name, one in {**params, **states}.items()}
    return {"arrays": arrays, "history": list(history), "step": int(state.step)}


def whole(state):
    found = state.step.sharding
    is_on_mesh = isinstance(found, jax.sharding.NamedSharding)
    return (
        jax.sharding.NamedSharding(found.mesh, jax.sharding.PartitionSpec()) if is_on_mesh else None
    )


def expect_same(found, expected, rtol=1e-5):
    assert found["step"] == expected["step"]
    chex.assert_trees_all_close(
        jax.tree.map(np.asarray, [found["arrays"], found["history"]]),
        jax.tree.map(np.asarray, [expected["arrays"], expected["history"]]),
        rtol=rtol,
        atol=1e-5,
    )


# Training ----------------------------------------------------------------------------------------


def job_fit(job, epochs, layout="data", kind="Auto", pause=0):
    own = trainer(layout, kind)
    state = own.init(0)

    def sleep(epoch, state, metrics):
        time.sleep(pause if job.process and epoch == 1 else 0)
        return {"epoch": epoch}

    state, history = own.fit(
        state, train.share(data()), epochs=epochs, batch_size=BATCH, after_epoch=sleep
    )
    spans = {str(one.is_fully_addressable) for one in jax.tree.leaves(state)}
    for one in history:
        del one["epoch"]
    return {**report(state, history), "addressable": sorted(spans), "writes": job.writes}


@pytest.mark.essential
def test_two_processes_train_as_one(start):
    """Also, that one of them shows the progress, and that the whole state is of both."""
    expected = alone(2)
    processes = start("fit", 2, epochs=2, layout="parameters", kind="Explicit")
    found = [one.answer() for one in processes]
    assert [one["writes"] for one in found] == [True, False]
    assert ["step/s" in one.errors for one in processes] == [True, False]
    for one in found:
        expect_same(one, expected)
        assert one["addressable"] == ["False"]
    assert found[0]["arrays"] == found[1]["arrays"]


@pytest.fixture(scope="module")
def one_process():
    """What 200 steps of one process give."""
    return alone(STEPS // (LENGTH // BATCH))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "devices", "layout", "kind"),
    [
        (2, 1, "data", "Explicit"),
        (2, 1, "parameters", "Auto"),
        (2, 4, "model", "Explicit"),
        (4, 1, "data", "Auto"),
        (4, 1, "parameters", "Explicit"),
        (4, 2, "model", "Auto"),
    ],
)
def test_200_steps_equal_those_of_one_process(start, one_process, count, devices, layout, kind):
    processes = start("fit", count, devices=devices, epochs=STEPS // 25, layout=layout, kind=kind)
    found = [one.answer() for one in processes]
    for one in found:
        assert one["step"] == STEPS
        expect_same(one, one_process)


@pytest.mark.slow
def test_a_process_that_is_late(start, one_process):
    """It starts late, and is slow once."""
    processes = start("fit", 2, late=8, epochs=STEPS // 25, pause=15)
    for one in processes:
        expect_same(one.answer(), one_process)


# Parts of batches --------------------------------------------------------------------------------


def job_parts(job):
    """Each process feeds examples of its own: 100 and 103 of them, in batches of 16."""
    own = trainer()
    x = data()["x"]
    mine = slice(0, 100) if job.process == 0 else slice(100, 203)
    rows = {"x": x[mine], "y": data()["y"][mine]}
    state, history = own.fit(own.init(0), rows, epochs=2, batch_size=BATCH, progress=False)
    return report(state, history)


def batches_of_parts():
    """The batches that ``job_parts`` feeds, put together."""
    parts = [{n: one[a:b] for n, one in data().items()} for a, b in ((0, 100), (100, 203))]
    generators = [np.random.default_rng(0) for _ in parts]
    for _ in range(2):
        epoch = [
            list(train.batches(*pair))
            for pair in zip(parts, [BATCH // 2] * 2, generators, strict=True)
        ]
        for pair in zip(*epoch, strict=True):
            yield {name: np.concatenate([one[name] for one in pair]) for name in pair[0]}


@pytest.mark.slow
def test_each_process_feeds_its_own_examples(start):
    found = [one.answer() for one in start("parts", 2)]
    loss, metrics = network()
    own = train.Trainer(loss, optax.adam(1e-2), inputs=["x", "y"], metrics=metrics)
    state, seen = own.init(0), []
    for batch in batches_of_parts():
        state, values = own.step(state, batch)
        seen.append({name: float(one) for name, one in values.items()})
    assert len(seen) == 24
    history = [
        {name: float(np.mean([one[name] for one in half])) for name in half[0]}
        for half in (seen[:12], seen[12:])
    ]
    for one in found:
        expect_same(one, report(state, history))


def job_mistakes(job):
    """What differs between the processes is an error in all of them, which may then go on."""
    examples = data(32)
    first, errors = job.process == 0, {}

    def refused(name, call):
        try:
            call()
        except (so.SymopError, TypeError) as error:
            errors[name] = f"{type(error).__name__}: {error}"

    def cut(length, start=0):
        return {name: one[start : start + length] for name, one in examples.items()}

    own, shapes = trainer("parameters", batch=None), {"x": (16, 6), "y": (16,)}
    fit = {"epochs": 1, "progress": False}
    refused("seed", lambda: own.init(job.process, **shapes))
    state = own.init(0, **shapes)
    share = train.share(examples)
    refused("size", lambda: own.fit(state, share, batch_size=8 + 8 * job.process, **fit))
    refused(
        "length", lambda: own.fit(state, train.share(cut(32 - job.process)), batch_size=8, **fit)
    )
    refused("odd", lambda: own.fit(state, share, batch_size=9, **fit))
    refused("few", lambda: own.fit(state, cut(4 + 8 * job.process), batch_size=16, **fit))
    refused("rows", lambda: own.step(state, cut(8 if first else 6)))
    refused("whole", lambda: own.step(state, train.share(cut(9))))
    half = {**cut(8), "y": cut(8)["y"].astype("float16" if first else "float32")}
    refused("types", lambda: own.step(state, half))
    loss, _ = network()
    rules = {"x": (), "y": ()}
    options = {"inputs": ["x", "y"]}
    other = train.Trainer(loss, optax.sgd(0.1), **options, mesh=own.placement.mesh, rules=rules)
    refused("values", lambda: other.step(other.init(0), cut(16, job.process)))
    local = train.Trainer(loss, optax.sgd(0.1), **options)
    refused("alone", lambda: local.fit(local.init(0), share, batch_size=8, **fit))
    refused("again", lambda: train.distributed(processes=3))
    assert train.distributed() == job
    for size in (16, 4):  # an uneven batch is one more program
        state, values = own.step(state, train.share(cut(size)))
    return {"errors": errors, "loss": float(values["loss"]), "step": int(state.step)}


MISTAKES = {
    "seed": "ArgumentError: init: the seed must be the same in all processes, got 0 in process 0, "
    "1 in process 1",
    "size": "ArgumentError: fit: batch_size must be the same in all processes, got 8 in process 0, "
    "16 in process 1",
    "length": "ArgumentError: fit: the number of examples must be the same in all processes, got "
    "32 in process 0, 31 in process 1",
    "odd": "ArgumentError: fit: 'x': the length of axis 0 must be divisible by 2, the size of mesh "
    "axis 'data', got 9",
    "few": "ArgumentError: fit: each process must have the 8 examples that it feeds of a batch of "
    "16, got 4 in process 0, 12 in process 1",
    "rows": "FeedError: step: the processes must give parts of one batch, got x float32[8, 6], "
    "y float32[8] in process 0, x float32[6, 6], y float32[6] in process 1",
    "whole": "ArgumentError: step: 'x': the length of axis 0 must be divisible by 2, the size of "
    "mesh axis 'data', got 9",
    "types": "FeedError: step: the processes must give parts of one batch, got x float32[8, 6], "
    "y float16[8] in process 0, x float32[8, 6], y float32[8] in process 1",
    "values": "FeedError: step: processes that hold the same part of a batch must give the same "
    "values, got different ones",
    "alone": "ArgumentError: fit: with several processes, the trainer must have a mesh, got 2 "
    "processes and none",
    "again": "ArgumentError: distributed: a process joins one job, got None of 3 in process ",
}


@pytest.mark.slow
def test_what_differs_between_processes_is_an_error_in_all(start):
    found = [one.answer() for one in start("mistakes", 2)]
    for one in found:
        for name, message in MISTAKES.items():
            assert message in one["errors"][name]
        assert list(one["errors"]) == list(MISTAKES)
        assert one["step"] == 2
    assert found[0]["loss"] == found[1]["loss"]


def job_change(job):
    """One process changes the size of its part, the other does not."""
    own = trainer(batch=None)
    state = own.init(0, x=(16, 6), y=(16,))
    rows = train.share(data(16))
    part = {name: one[:8] for name, one in rows.items()}
    for step in range(10):
        mine = {n: one[:6] for n, one in part.items()} if step == 4 and job.process else part
        state, _ = own.step(state, mine)
    return {"end": True}


@pytest.mark.slow
def test_one_process_that_changes_the_size_of_its_part_ends_all(start):
    before = time.monotonic()
    processes = start("change", 2)
    assert [one.end() for one in processes] == [1, 1]
    for one in processes:
        assert "x float32[8, 6], y float32[8] in process 0, x float32[6, 6]" in one.errors
    assert time.monotonic() - before < 60


def job_program(job):
    """A program on a mesh, fed with a share and with parts."""
    program = regression()
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    so.random.seed(job.process)
    with pytest.raises(ArgumentError, match=r"place: the state of so\.random must be the same"):
        program.place(mesh)
    so.random.seed(0)
    program.place(mesh, {"out_weight": (None, "data")})
    rows = {"x": data(16)["x"]}
    half = {"x": rows["x"][:8] if job.process == 0 else rows["x"][8:]}
    losses = [float(program.run(feed)[0]) for feed in [train.share(rows), half] * 3]
    return {"losses": losses}


def regression():
    so.random.seed(0)
    with so.program_guard(so.Program()) as program:
        x = so.data("x", (16, 6))
        loss = so.mean(so.square(so.fully_connected(x, units=2, name="out") - 1.0))
    so.optim.Adam(0.1).minimize(loss)
    program.outputs = [loss.name]
    return program


@pytest.mark.slow
def test_a_program_of_two_processes(start):
    processes = start("program", 2)
    program = regression()
    expected = [float(program.run({"x": data(16)["x"]})[0]) for _ in range(6)]
    for one in processes:
        np.testing.assert_allclose(one.answer()["losses"], expected, rtol=1e-4)


# Ends --------------------------------------------------------------------------------------------


def job_resume(job, folder, end, fatal=None):
    """Training that goes on from the latest step of a folder; one process dies at a step."""
    own = trainer("parameters")
    state = own.init(0)
    examples = data()
    with checkpoint.Folder(folder, every=20) as saved:
        state = saved.resume(state)
        first = int(state.step)
        for step in range(first, end):
            chosen = np.random.default_rng(step).choice(LENGTH, BATCH, replace=False)
            batch = train.share({name: one[chosen] for name, one in examples.items()})
            state, _ = own.step(state, batch)
            saved.save(step + 1, state)
            if step == fatal and job.process == job.processes - 1:
                float(state.step)
                os.kill(os.getpid(), signal.SIGKILL)
    return {"first": first, **report(state, [])}


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_a_job_of_which_a_process_is_killed_goes_on_to_the_same(start, tmp_path, count):
    whole = [one.answer() for one in start("resume", count, folder=str(tmp_path / "a"), end=100)]
    killed = start("resume", count, folder=str(tmp_path / "b"), end=100, fatal=70)
    before = time.monotonic()
    codes = [one.end() for one in killed]
    assert codes[-1] == -signal.SIGKILL
    assert 0 not in codes
    assert time.monotonic() - before < PATIENCE
    again = [one.answer() for one in start("resume", count, folder=str(tmp_path / "b"), end=100)]
    for one, other in zip(whole, again, strict=True):
        assert other["first"] in (40, 60)
        assert one["arrays"] == other["arrays"]


def job_failure(job):
    own = trainer()
    state = own.init(0)
    for step in range(50):
        if step == 20 and job.process == 1:
            raise ValueError("a bug in one process")
        state, _ = own.step(state, train.share(data(BATCH)))
    return {"end": True}


@pytest.mark.slow
def test_an_exception_in_one_process_ends_all(start):
    before = time.monotonic()
    processes = start("failure", 2)
    assert [one.end() for one in processes] == [1, 1]
    assert "a bug in one process" in processes[1].errors
    assert time.monotonic() - before < 60


# Compiled programs in a folder -------------------------------------------------------------------


def counted():
    """How many programs are asked for from now on, and how many are read from the folder."""
    counts = {"requests": 0, "hits": 0}

    def count(event, **_):
        if event == "/jax/compilation_cache/compile_requests_use_cache":
            counts["requests"] += 1
        if event == "/jax/compilation_cache/cache_hits":
            counts["hits"] += 1

    jax.monitoring.register_event_listener(count)
    return counts


def job_compile(job, layout="data"):
    counts = counted()
    own = trainer(layout, "Explicit")
    state, _ = own.fit(own.init(0), train.share(data()), epochs=1, batch_size=BATCH, progress=False)
    return {**counts, "writes": job.writes, **report(state, [])}


def compiled(counts):
    return counts["requests"] - counts["hits"]


@pytest.mark.thorough
def test_a_restarted_process_compiles_nothing(start, tmp_path):
    runs = []
    for _ in range(2):
        [process] = start("compile", 1, devices=2, layout="parameters", cache=str(tmp_path))
        runs.append(process.answer())
    first, second = runs
    assert compiled(first) == first["requests"] > 0
    assert compiled(second) == 0
    assert second["requests"] == first["requests"]
    assert first["arrays"] == second["arrays"]


@pytest.mark.slow
def test_a_restarted_job_compiles_nothing_in_the_process_that_writes(start, tmp_path):
    """JAX 0.10 describes the devices of a CPU differently to each process, and only the first
    process writes, so that the others compile anew; accelerators have one description."""
    runs = []
    for _ in range(2):
        processes = start("compile", 2, layout="parameters", cache=str(tmp_path))
        runs.append([one.answer() for one in processes])
    assert compiled(runs[0][0]) == runs[0][0]["requests"] > 0
    assert compiled(runs[1][0]) == 0
    assert runs[0][0]["arrays"] == runs[1][1]["arrays"]


def deep(depth):
    """Blocks that become a loop."""
    x, y = so.var("x", (8, 6)), so.var("y", (8,))
    h = so.fully_connected(x, units=8, name="in")
    for i in range(depth):
        normal = so.dropout(so.batch_norm(h, name=f"norm{i}"), rate=0.1)
        h = h + so.tanh(so.fully_connected(normal, units=8, name=f"layer{i}"))
    return so.mean(so.square(so.fully_connected(h, units=1, name="out")[:, 0] - y))


def job_kinds(job, others=0):
    """One of each kind of program that symop compiles; other graphs exist, or do not."""
    counts = counted()
    unrelated = [so.sin(so.var(f"other{i}", (3,))) for i in range(others)]
    batch = {name: one[:8] for name, one in data().items()}
    for mesh in (None, jax.make_mesh((jax.device_count(),), ("data",))):
        for remat in (None, so.remat.keep_costly()):
            options = {"inputs": ["x", "y"], "mesh": mesh, "remat": remat}
            own = train.Trainer(deep(6), optax.adamw(1e-3), **options)
            state = own.init(0)
            for _ in range(2):
                state, _ = own.step(state, batch)
    executor = deep(3).simple_bind(x=(8, 6), y=(8,))
    executor.forward(is_train=True, **batch)
    executor.backward()
    program = regression()
    for _ in range(2):
        program.run({"x": data(16)["x"]})
    array = so.nd.array(batch["x"])
    for _ in range(3):  # the first call is not compiled as a whole
        array.attach_grad()
        with so.autograd.record():
            result = so.nd.sum(so.nd.sin(array) * so.nd.exp(array))
        result.backward()
        np.asarray(array.grad)
    u = so.var("u", (3,))
    so.laplacian(so.exp(-so.sum(u * u)), u).eval(u=[0.1, 0.2, 0.3])
    looped = so.transform(
        lambda x: jax.lax.scan(lambda c, _: (jax.numpy.sin(c), None), x, None, length=5)[0].sum()
    )
    jax.jit(jax.grad(looped))(np.ones(3, "float32"))
    return {**counts, "others": len(unrelated)}


@pytest.mark.slow
def test_programs_of_each_kind_are_the_same_in_each_process(start, tmp_path):
    """Whatever Python's hashes are, and whatever other graphs exist."""
    runs = []
    for hashes, others in (("1", 0), ("2", 100)):
        options = {"devices": 8, "hashes": hashes, "others": others, "cache": str(tmp_path)}
        [process] = start("kinds", 1, **options)
        runs.append(process.answer())
    assert compiled(runs[0]) > 30
    assert compiled(runs[1]) == 0
    assert runs[1]["requests"] == runs[0]["requests"]


def test_a_folder_of_compiled_programs(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    names = [f"jax_persistent_cache_min_{one}" for one in ("compile_time_secs", "entry_size_bytes")]
    values = [getattr(jax.config, name) for name in names]
    try:
        so.caches.set_folder(tmp_path / "programs")
        assert float(jax.jit(lambda x: x * 1234.5)(2.0)) == 2469.0
        assert list((tmp_path / "programs").iterdir())
        (tmp_path / "file").write_text("")
        with pytest.raises(OSError, match="file"):
            so.caches.set_folder(tmp_path / "file")
    finally:
        so.caches.set_folder(before)
        for pair in zip(names, values, strict=True):
            jax.config.update(*pair)


# One process -------------------------------------------------------------------------------------


def test_a_process_alone_has_nothing_to_join():
    assert train.distributed() == train.distributed(processes=1) == train.Job(0, 1)
    assert train.distributed().writes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"processes": 0}, "processes must be at least 1, got 0"),
        ({"process": -1}, "process must be at least 0, got -1"),
        ({"coordinator": "127.0.0.1:1", "processes": 2, "process": 0}, "must be called before JAX"),
    ],
)
def test_arguments_that_are_refused(given, message):
    jax.devices()
    with pytest.raises(ArgumentError, match=message):
        train.distributed(**given)


@pytest.mark.parametrize("name", ["JAX_NUM_PROCESSES", "JAX_PROCESS_ID"])
def test_variables_that_are_refused(monkeypatch, name):
    monkeypatch.setenv(name, "two")
    with pytest.raises(ArgumentError, match=f"{name} must be a number, got 'two'"):
        train.distributed()


def test_one_process_shares_with_nobody():
    expected = alone(1)
    own = trainer()
    state, history = own.fit(
        own.init(0), train.share(data()), epochs=1, batch_size=BATCH, progress=False
    )
    expect_same(report(state, history), expected)
    batch = train.share(data(BATCH))
    assert float(own.step(state, batch)[1]["loss"]) > 0


def test_inputs_on_a_mesh_need_no_declared_shape():
    shapes, batch = {"x": (16, 6), "y": (16,)}, data(BATCH)
    own = trainer("parameters", batch=None)
    _, found = own.step(own.init(0, **shapes), batch)
    loss, metrics = network(None)
    other = train.Trainer(loss, optax.adam(1e-2), inputs=["x", "y"], metrics=metrics)
    _, expected = other.step(other.init(0, **shapes), batch)
    for name, value in expected.items():
        assert float(found[name]) == pytest.approx(float(value), rel=1e-5)


# The first contact -------------------------------------------------------------------------------


def contact(*places, timeout=5.0, strangers=0):
    """Lets processes, which are threads here, meet; returns the error of each, or None."""
    errors = {}

    def run(place):
        try:
            meeting.meet(place, timeout)
        except ProcessError as error:
            errors[place.process] = str(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in places]
    for one in threads:
        one.start()
    for _ in range(strangers):
        host, port = meeting.host_and_port(places[0].coordinator)
        with contextlib.suppress(OSError), socket.create_connection((host, port)) as caller:
            caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
    for one in threads:
        one.join(timeout=30)
        assert not one.is_alive()
    return [errors.get(one.process) for one in places]


def places(count, *, host="127.0.0.1", indices=None, counts=None):
    address = f"{host}:{free_port()}"
    return [
        meeting.Place(address, (counts or [count] * count)[i], (indices or range(count))[i])
        for i in range(count)
    ]


@pytest.mark.parametrize("count", [2, 5])
def test_processes_meet(count):
    assert contact(*places(count)) == [None] * count
    assert contact(*reversed(places(count))) == [None] * count


def test_other_programs_do_not_disturb():
    assert contact(*places(3), strangers=3) == [None] * 3


def test_a_process_that_does_not_come():
    first, second, _ = places(3)
    errors = contact(first, second, timeout=0.5)
    for one in errors:
        assert "all 3 processes must reach" in one
        assert "within 0.5 seconds, got no call of process 2" in one


def test_a_coordinator_that_does_not_come():
    _, second = places(2)
    [error] = contact(second, timeout=0.5)
    assert f"process 1 must reach process 0 at {second.coordinator} within 0.5 seconds" in error


def test_processes_that_are_told_different_numbers():
    errors = contact(*places(2, counts=[2, 3]))
    for one in errors:
        assert "told their number, 2 in process 0, got 3 in process 1" in one


def test_two_processes_with_one_index():
    errors = contact(*places(3, indices=[0, 1, 1]))
    assert any("an index of its own, got 1 twice" in one for one in errors if one)


def test_an_address_that_is_taken():
    first, _ = places(2)
    _, port = meeting.host_and_port(first.coordinator)
    with socket.create_server(("127.0.0.1", port)):
        [error] = contact(first, timeout=0.5)
        assert f"process 0 must be able to listen at {first.coordinator}" in error


@pytest.mark.parametrize("address", ["", "localhost", "localhost:", ":1", "a:b", "a:0", "a:70000"])
def test_addresses_that_are_refused(address):
    with pytest.raises(ArgumentError, match="must be host:port"):
        meeting.host_and_port(address)


# The example -------------------------------------------------------------------------------------


def losses(processes):
    """The losses that the first process prints; the others print nothing."""
    assert [one.end() for one in processes] == [0] * len(processes)
    first, *others = [[line for line in one.lines if "epoch" in line] for one in processes]
    assert not any(others)
    return [float(one.rpartition(" ")[2]) for one in first]


@pytest.mark.slow
def test_the_example_is_the_same_with_devices_and_processes(run):
    expected = losses([run(of_example, 1)])
    assert len(expected) == 2
    assert losses([run(of_example, 8)]) == pytest.approx(expected, abs=2e-3)
    address = f"127.0.0.1:{free_port()}"
    place = ["--coordinator", address, "--processes", "2", "--process"]
    together = [run(of_example, 2, *place, str(process)) for process in range(2)]
    assert losses(together) == pytest.approx(expected, abs=2e-3)
