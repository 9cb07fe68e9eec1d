"""Checkpoints: resumed bit for bit, and safe from a kill at any moment."""

import os
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import symop as so
from registry import SelectedRows
from registry.errors import FormatError
from symop import checkpoint
from symop.io.files import write_atomically
from symop.train import Trainer


def training():
    """A program with states, rows that are put together, and random numbers."""
    program = so.Program()
    table, ids = program.parameter("table", (20, 4)), program.data("ids", (6,), "int32")
    h = so.dropout(so.lookup_table(table, ids, sparse=True), rate=0.3)
    h = so.batch_norm(so.fully_connected(h, units=3, name="dense"), name="norm")
    loss = so.mean(so.square(h - 1))
    so.optim.Adam(0.05, lazy=True, accumulate=2).minimize(loss)
    return program, loss


def steps(program, loss, first, last):
    generator = np.random.default_rng(0)
    batches = generator.integers(0, 20, (last, 6)).astype(np.int32)
    return [float(program.run({"ids": one}, loss)) for one in batches[first:]]


def test_a_program_goes_on_bit_for_bit(tmp_path):
    path = tmp_path / "state.safetensors"
    so.random.seed(4)
    program, loss = training()
    whole = steps(program, loss, 0, 9)
    so.random.seed(4)
    program, loss = training()
    assert steps(program, loss, 0, 5) == whole[:5]
    checkpoint.save(path, program)
    so.random.seed(99)
    again, loss = training()
    checkpoint.load(path, again)
    assert steps(again, loss, 5, 9) == whole[5:]
    held = [v for v in program.scope.values() if isinstance(v, SelectedRows)]
    assert held


def plain(leaf):
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf


def test_a_pytree_comes_back(tmp_path):
    x, w = so.var("x", shape=(4, 2)), so.var("w", shape=(2,))
    trainer = Trainer(so.sum(so.square(so.matmul(x, w))), optax.adam(0.1), inputs=["x"])
    state, batch = trainer.init(seed=1), {"x": np.ones((4, 2), np.float32)}
    state, _ = trainer.step(state, batch)
    checkpoint.save(tmp_path / "state", state)
    again = checkpoint.load(tmp_path / "state", trainer.init(seed=2))
    assert jax.tree_util.tree_structure(again) == jax.tree_util.tree_structure(state)
    after, other = trainer.step(state, batch), trainer.step(again, batch)
    for mine, theirs in zip(*map(jax.tree_util.tree_leaves, (after, other)), strict=True):
        np.testing.assert_array_equal(plain(mine), plain(theirs))


def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path):
    program, loss = training()
    steps(program, loss, 0, 2)
    checkpoint.save(tmp_path / "state", program)
    other = so.Program()
    w = other.parameter("w", (2,), initial=1)
    other.run(fetch=w + 0)
    with pytest.raises(FormatError, match="too much: scope/adam"):
        checkpoint.load(tmp_path / "state", other)
    np.testing.assert_array_equal(other.scope["w"], 1)
    so.save_parameters(tmp_path / "state", {"treew": np.ones(3, np.float32)})
    with pytest.raises(FormatError, match="too little: tree"):
        checkpoint.load(tmp_path / "state", {"w": np.ones(3, np.float32)})
    checkpoint.save(tmp_path / "state", {"w": np.ones(3, np.float32)})
    with pytest.raises(FormatError, match=r"float32\[2\] must be there, got float32\[3\]"):
        checkpoint.load(tmp_path / "state", {"w": np.ones(2, np.float32)})
    (tmp_path / "state").write_bytes(b"damaged")
    with pytest.raises(FormatError, match="must be a safetensors file"):
        checkpoint.load(tmp_path / "state", program)


WRITER = """
import sys
import numpy as np
from symop import checkpoint
path, first = sys.argv[1], int(sys.argv[2])
for number in range(first, first + 100_000):
    checkpoint.save(path, {"numbers": np.full(200_000, number, np.int32)})
    print(number, flush=True)
"""


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_loses_nothing(tmp_path, rounds):
    """A real process saves again and again, and is killed at a random moment, many times."""
    path, generator = tmp_path / "state", np.random.default_rng(0)
    like, done = {"numbers": np.zeros(200_000, np.int32)}, 0
    for _ in range(rounds):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(done + 1)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )
        told = writer.stdout.readline()
        time.sleep(generator.uniform(0, 0.02))
        os.kill(writer.pid, signal.SIGKILL)
        rest, _ = writer.communicate()
        finished = [int(line) for line in (told + rest).split("\n")[:-1]]
        numbers = checkpoint.load(path, like)["numbers"]
        assert (numbers == numbers[0]).all()
        assert finished[-1] <= numbers[0] <= finished[-1] + 1
        done = int(numbers[0])
    write_atomically(path, b"whole")
    assert [one.name for one in tmp_path.iterdir()] == ["state"]


TRAINER = """
import sys
sys.path.insert(0, sys.argv[1])
from test_checkpoint import train_on
for _, (at, loss) in zip(sys.stdin, train_on(sys.argv[2])):  # one step for each line
    print(at, loss.hex(), flush=True)
"""


def train_on(path, last=12):
    """Train from the checkpoint at ``path``, if there is one, and save after each step."""
    so.random.seed(4)
    program, loss = training()
    count = program.state("count", (), "int32")
    program.update(count, count + 1)
    if os.path.exists(path):
        checkpoint.load(path, program)
    for at in range(int(program.values()["count"]), last):
        (value,) = steps(program, loss, at, at + 1)
        checkpoint.save(path, program)
        yield at, value


@pytest.mark.thorough
def test_training_that_is_killed_again_and_again_is_the_training_that_was_not(tmp_path):
    whole = dict(train_on(tmp_path / "whole"))
    end = (tmp_path / "whole").read_bytes()
    path, generator = tmp_path / "state", np.random.default_rng(1)
    rounds = 0
    while not path.exists() or path.read_bytes() != end:
        process = subprocess.Popen(
            [sys.executable, "-c", TRAINER, os.path.dirname(__file__), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )
        n_steps = generator.integers(1, 5)
        process.stdin.write("\n" * n_steps)
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(n_steps - 1)]
        time.sleep(generator.uniform(0, 0.02))  # the last step is under way, or just done
        os.kill(process.pid, signal.SIGKILL)
        rest, _ = process.communicate()
        for line in "".join([*lines, rest]).splitlines():
            at, value = line.split()
            assert float.fromhex(value) == whole[int(at)]
        rounds += 1
        assert rounds < 2 * len(whole)
    assert rounds > 2
