"""Folders of checkpoints and real processes: killed, asked to leave, and several at once."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time

import jax
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import symop as so
from symop import checkpoint
from symop.train import Trainer

pytestmark = pytest.mark.scale
PATIENCE = 120
"""Seconds within which a process must say or do what it is to; after twice as many it prints the
stacks of its threads and ends itself."""


class Child:
    """A process that runs a function of this file, and is ended with the test."""

    def __init__(self, function, *args, devices=8):
        call = (
            "import sys, faulthandler as f; "
            f"f.dump_traceback_later({2 * PATIENCE}, exit=True); "
            f"from {__name__} import {function}; {function}(*sys.argv[1:])"
        )
        source, sink = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-c", call, *map(str, args)],
            pass_fds=[sink],
            env={
                **os.environ,
                "JAX_PLATFORMS": "cpu",
                "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
                "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path]),
                "SINK": str(sink),
            },
        )
        os.close(sink)
        # Without a buffer, in which lines would be invisible to `select`.
        self.source = open(source, "rb", buffering=0)  # noqa: SIM115  # the fixture closes it
        self.lines = []

    def line(self):
        """The next line that the process says."""
        ready, _, _ = select.select([self.source], [], [], PATIENCE)
        assert ready, "the process is silent"
        self.lines.append(self.source.readline().decode())
        assert self.lines[-1], "the process has ended"
        return self.lines[-1]

    def send(self, number):
        os.kill(self.process.pid, number)

    def end(self):
        """Waits for the end; returns the exit code. The lines are then without their ends."""
        self.process.wait(timeout=PATIENCE)
        self.lines = "".join([*self.lines, self.source.read().decode()]).split("\n")[:-1]
        return self.process.returncode


def say(*words):
    """Says a line to the process that started this one; JAX prints to the standard output."""
    os.write(int(os.environ["SINK"]), " ".join(map(str, words)).encode() + b"\n")


@pytest.fixture
def start():
    """Starts processes, which end with the test."""
    with contextlib.ExitStack() as stack:

        def started(*args, **options):
            child = Child(*args, **options)
            stack.callback(child.process.wait, PATIENCE)
            stack.callback(child.process.kill)
            stack.callback(child.source.close)
            return child

        yield started


# A kill at any moment


def numbers(step):
    """Arrays that say which step they belong to; some are sharded."""
    split = NamedSharding(jax.make_mesh((len(jax.devices()),), ("a",)), P("a"))
    rows = np.full((64, 4096), step, np.float32) + np.arange(64, dtype=np.float32)[:, None]
    return {"rows": jax.device_put(rows, split), "host": np.full(50_000, step), "step": step}


def write_on(path):
    with checkpoint.Folder(path, keep=2, best="loss") as folder:
        first = folder.resume(numbers(0))["step"] + 1
        for step in range(first, first + 100_000):
            folder.save(step, numbers(step), {"loss": abs(step % 17 - 8)})
            say(*folder.steps())


@pytest.mark.thorough
def test_a_kill_at_any_moment_loses_nothing_that_was_reported(tmp_path, start):
    generator, done = np.random.default_rng(0), 0
    folder = checkpoint.Folder(tmp_path, best="loss")
    for _ in range(8):
        child = start("write_on", tmp_path)
        while not child.line().strip():  # no step is complete yet
            pass
        time.sleep(generator.uniform(0, 0.5))
        child.send(signal.SIGKILL)
        assert child.end() == -signal.SIGKILL
        reported = [int(one) for one in child.lines[-1].split()]
        found = folder.steps()
        assert done <= reported[-1] <= found[-1] <= reported[-1] + 2
        for step in found:
            state = folder.restore(numbers(0), step)
            wanted = numbers(step)
            for name in wanted:
                np.testing.assert_array_equal(state[name], wanted[name])
            assert folder.metrics(step) == {"loss": abs(step % 17 - 8)}
        done = found[-1]
        # What is kept: the two latest, the best, and one that was being written or deleted.
        assert len(found) <= 4
    with checkpoint.Folder(tmp_path, keep=2) as folder:
        folder.save(done + 1, numbers(done + 1))
    assert {one.name for one in tmp_path.iterdir()} == set(map(str, folder.steps()))


# A process that is asked to leave


def trainer():
    x, y = so.var("x", shape=(8, 16)), so.var("y", shape=(8, 4))
    h = so.tanh(so.matmul(x, so.var("v", shape=(16, 32))))
    h = so.dropout(so.matmul(h, so.var("w", shape=(32, 4))), rate=0.2)
    return Trainer(so.mean(so.square(h - y)), optax.adam(0.1), inputs=["x", "y"])


def batch(step):
    generator = np.random.default_rng(step)
    shapes = {"x": (8, 16), "y": (8, 4)}
    return {n: generator.normal(size=one).astype(np.float32) for n, one in shapes.items()}


def train_on(path, last, pause=0):
    own = trainer()
    folder = checkpoint.Folder(path, every=1000)
    with folder, checkpoint.on_preemption(folder):
        state = folder.resume(own.init(seed=3))
        for step in range(int(state.step), int(last)):
            state, metrics = own.step(state, batch(step))
            say(step + 1, float(metrics["loss"]).hex())
            time.sleep(float(pause))
            folder.save(step + 1, state, metrics, force=step + 1 == int(last))


@pytest.mark.thorough
def test_a_process_that_is_asked_to_leave_saves_and_goes_on_later(tmp_path, start):
    whole = start("train_on", tmp_path / "whole", 12)
    cut = start("train_on", tmp_path / "cut", 1_000_000, 0.05)
    for _ in range(3):
        cut.line()
    cut.send(signal.SIGTERM)
    assert cut.end() == checkpoint.EXIT_CODE == 75
    folder = checkpoint.Folder(tmp_path / "cut")
    assert folder.steps() == [len(cut.lines)]
    assert 3 <= len(cut.lines) < 10
    rest = start("train_on", tmp_path / "cut", 12)
    assert (rest.end(), whole.end()) == (0, 0)
    assert cut.lines + rest.lines == whole.lines
    init = trainer().init(seed=0)
    mine, theirs = (checkpoint.Folder(tmp_path / n).restore(init, 12) for n in ("cut", "whole"))
    for one, other in zip(
        jax.tree.leaves(mine.params), jax.tree.leaves(theirs.params), strict=True
    ):
        np.testing.assert_array_equal(one, other)


# Several processes


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run_together(path, port, index, last, pause=0):
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, int(index), initialization_timeout=PATIENCE)
    assert jax.process_count() == 2
    add = jax.jit(lambda one: jax.tree.map(lambda leaf: leaf + 1, one), donate_argnums=0)
    mesh = jax.make_mesh((8,), ("a",))
    own = jax.jit(lambda: jax.numpy.arange(64.0).reshape(8, 8), out_shardings=split(mesh))()
    folder = checkpoint.Folder(path, every=1000)
    with folder, checkpoint.on_preemption(folder):
        key = jax.random.key(0)  # in each process
        here = jax.device_put(0, jax.local_devices()[1])
        state = {"w": own, "here": here, "key": key, "host": 0}
        state = folder.resume(state)
        for step in range(state["host"] + 1, int(last) + 1):
            some = {name: add(state[name]) for name in ("w", "here")}
            state = {**some, "key": jax.random.fold_in(state["key"], step), "host": step}
            say(step)
            time.sleep(float(pause))
            folder.save(step, state, force=step in (2, int(last)))
    assert state["here"].device == jax.local_devices()[1]
    assert folder.latest == int(last)


def split(mesh):
    return NamedSharding(mesh, P("a"))


@pytest.mark.thorough
def test_several_processes_leave_at_one_step(tmp_path, start):
    def pair(*args):
        port = free_port()
        return [start("run_together", tmp_path, port, i, *args, devices=4) for i in range(2)]

    children = pair(1_000_000, 0.05)
    for _ in range(4):
        children[0].line()
    children[1].send(signal.SIGTERM)
    assert [one.end() for one in children] == [75, 75]
    assert children[0].lines == children[1].lines
    left = len(children[0].lines)
    folder = checkpoint.Folder(tmp_path)
    assert folder.steps() == [2, left]
    like = {"w": np.zeros((8, 8), np.float32), "here": np.int32(0), "host": 0}
    like["key"] = jax.random.key(1)

    def check(step):
        state, key = folder.restore(like, step), jax.random.key(0)
        for one in range(1, step + 1):
            key = jax.random.fold_in(key, one)
        np.testing.assert_array_equal(state["w"], np.arange(64.0).reshape(8, 8) + step)
        assert (state["host"], state["here"], state["key"] == key) == (step, step, True)

    check(2)
    check(left)
    children = pair(left + 3)
    assert [one.end() for one in children] == [0, 0]
    check(left + 3)
