"""Folders of checkpoints: every kind of leaf, other meshes, what is kept, and what is refused."""

import json
import math
import os
import resource
import shutil
import signal
import sys
import threading

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from test_checkpoint import steps as run_steps
from test_checkpoint import training

import symop as so
from registry import SelectedRows
from registry.errors import ArgumentError, DTypeError, FormatError, MissingExtraError
from symop import checkpoint
from symop.train import Trainer

pytestmark = pytest.mark.scale


@pytest.fixture
def folder(tmp_path):
    with checkpoint.Folder(tmp_path / "run") as one:
        yield one


def mesh_of(shape, names, kind=AxisType.Auto):
    devices = jax.devices()[: math.prod(shape)]
    return jax.make_mesh(shape, names, axis_types=(kind,) * len(names), devices=devices)


def put(mesh, array, *spec):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def raw(leaf):
    is_key = jnp.issubdtype(getattr(leaf, "dtype", float), jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def assert_same(mine, theirs):
    """The same types and bits, on the same devices."""
    assert jax.tree.structure(mine) == jax.tree.structure(theirs)
    for one, other in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        assert type(one) is type(other)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
        assert raw(one).shape == raw(other).shape
        assert raw(one).tobytes() == raw(other).tobytes()
        if isinstance(one, jax.Array):
            assert (one.sharding, one.committed) == (other.sharding, other.committed)


def kinds():
    mesh = mesh_of((8,), ("data",))
    return {
        "number": [3, -2.5, True, 1j, 2**60],
        "numpy": [np.arange(6.0).reshape(2, 3).T, np.float32(1.5), np.array(7), np.zeros((0, 3))],
        "halves": [jnp.ones(3, jnp.bfloat16) / 3, np.ones(2, ml_dtypes.float8_e4m3fn)],
        "jax": [jnp.int32(4), jnp.zeros((0, 8)), jnp.array([True, False]), jnp.ones(2) * 1j],
        "four bits": jnp.arange(3, dtype=jnp.int4),
        "keys": [jax.random.key(1), jax.random.split(jax.random.key(2, impl="rbg"), 3)],
        "sharded keys": put(mesh, jax.random.split(jax.random.key(3), 8), "data"),
        "sharded": put(mesh, jnp.arange(32.0).reshape(4, 8), None, "data"),
        "sharded, empty": put(mesh, jnp.zeros((0, 8)), None, "data"),
        "rows": SelectedRows(jnp.array([2, 0]), jnp.ones((2, 3)), 9),
        "names": {"a/b.c": {"": np.ones(1)}, "..": np.ones(2), "ü'\n": {5: np.ones(3)}},
    }


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_of_leaf_comes_back(folder, kind):
    state = kinds()[kind]
    folder.save(1, state)
    assert_same(folder.restore(state), state)


def test_all_kinds_come_back_like_types_alone(folder):
    state = {name: one for name, one in kinds().items() if name != "number"}
    folder.save(1, state)

    def described(leaf):
        sharding = leaf.sharding if leaf.committed else None
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    likes = jax.tree.map(lambda one: described(one) if isinstance(one, jax.Array) else one, state)
    assert_same(folder.restore(likes), state)
    assert_same(folder.restore(state), state)


def test_big_endian_arrays_come_back_in_the_order_of_the_machine(folder):
    folder.save(1, [np.arange(3, dtype=">f4")])
    (found,) = folder.restore([np.zeros(3, np.float32)])
    np.testing.assert_array_equal(found, [0, 1, 2])


@pytest.mark.parametrize("leaf", ["text", object(), np.array(["a"]), np.array([None])])
def test_other_leaves_are_refused(folder, leaf):
    with pytest.raises(DTypeError, match=r"checkpoint: tree\['x'\] must be an array or a number"):
        folder.save(1, {"x": leaf})
    assert folder.steps() == []


# Meshes


def net():
    x, y = so.var("x", shape=(8, 16)), so.var("y", shape=(8, 4))
    h = so.tanh(so.matmul(x, so.var("v", shape=(16, 32))))
    return so.mean(so.square(so.matmul(h, so.var("w", shape=(32, 4))) - y))


def batches(count):
    generator = np.random.default_rng(0)
    one = lambda *shape: generator.normal(size=shape).astype(np.float32)  # noqa: E731
    return [{"x": one(8, 16), "y": one(8, 4)} for _ in range(count)]


def placed(state, mesh, rows, columns):
    """Matrices are split by rows and columns, other arrays are on every device."""
    split = NamedSharding(mesh, P(rows, columns))
    whole = NamedSharding(mesh, P())
    return jax.tree.map(lambda one: jax.device_put(one, split if one.ndim == 2 else whole), state)


PLACES = {
    "1": ((1,), ("a",), None, None),
    "8 by rows": ((8,), ("a",), "a", None),
    "8 by both": ((2, 4), ("a", "b"), "a", "b"),
    "8 crossed": ((2, 4), ("a", "b"), "b", None),
    "2 by columns": ((2,), ("c",), None, "c"),
}


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
@pytest.mark.parametrize(
    ("saved", "asked"),
    [
        ("1", "8 by both"),
        ("8 by both", "2 by columns"),
        ("8 by both", "8 crossed"),
        ("8 by rows", "1"),
        ("2 by columns", "8 by rows"),
    ],
)
def test_a_state_moves_to_another_mesh(folder, saved, asked, kind):
    trainer = Trainer(net(), optax.adam(0.1), inputs=["x", "y"])
    state = trainer.init(seed=1)
    for batch in batches(2):
        state, _ = trainer.step(state, batch)
    places = [PLACES[name] for name in (saved, asked)]
    meshes = [mesh_of(shape, names, kind) for shape, names, *_ in places]
    before = placed(state, meshes[0], *places[0][2:])
    folder.save(2, before)
    like = placed(trainer.init(seed=2), meshes[1], *places[1][2:])
    after = folder.restore(like)
    assert_same(after, placed(state, meshes[1], *places[1][2:]))


@pytest.mark.parametrize("asked", ["1", "2 by columns", "8 crossed"])
def test_training_goes_on_elsewhere_to_the_same_loss(folder, asked):
    trainer = Trainer(net(), optax.adam(0.1), inputs=["x", "y"])

    def trained(state, some):
        losses = []
        for batch in some:
            state, metrics = trainer.step(state, batch)
            losses.append(float(metrics["loss"]))
        return state, losses

    data = batches(6)
    _, whole = trained(trainer.init(seed=1), data)
    (shape, names, *spec) = PLACES["8 by both"]
    state = placed(trainer.init(seed=1), mesh_of(shape, names), *spec)
    state, first = trained(state, data[:3])
    folder.save(3, state)
    (shape, names, *spec) = PLACES[asked]
    like = placed(trainer.init(seed=2), mesh_of(shape, names), *spec)
    state, last = trained(folder.restore(like), data[3:])
    np.testing.assert_allclose(first + last, whole, rtol=1e-5)
    assert int(state.step) == 6


def test_a_file_of_one_machine_is_read_onto_a_mesh(tmp_path):
    mesh = mesh_of((4, 2), ("a", "b"), AxisType.Explicit)
    state = {"w": put(mesh, jnp.arange(64.0).reshape(8, 8), "a", "b"), "k": jax.random.key(4)}
    checkpoint.save(tmp_path / "state", state)
    other = NamedSharding(mesh_of((2,), ("c",)), P(None, "c"))
    like = {"w": jax.ShapeDtypeStruct((8, 8), "float32", sharding=other), "k": jax.random.key(0)}
    found = checkpoint.load(tmp_path / "state", like)
    assert_same(found, {"w": jax.device_put(state["w"], other), "k": state["k"]})
    like["w"] = jax.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(mesh, P(None, "a")))
    assert_same(checkpoint.load(tmp_path / "state", like)["w"], put(mesh, state["w"], None, "a"))


def test_a_sharding_that_does_not_divide_is_refused(folder, tmp_path):
    state = {"w": jnp.ones((6, 2))}
    folder.save(1, state)
    checkpoint.save(tmp_path / "state", state)
    sharding = NamedSharding(mesh_of((4,), ("a",)), P("a"))
    like = {"w": jax.ShapeDtypeStruct((6, 2), "float32", sharding=sharding)}
    message = r"tree\['w'\] must divide its shape, got float32\[6,2\] on NamedSharding"
    with pytest.raises(ArgumentError, match=message):
        folder.restore(like)
    with pytest.raises(ArgumentError, match=message):
        checkpoint.load(tmp_path / "state", like)


# The moment of the copy


@pytest.mark.parametrize("devices", [1, 8])
def test_later_steps_do_not_change_what_is_being_written(folder, devices):
    """On a CPU, what orbax takes for a copy on the host is the memory that the step donates."""
    x, w = so.var("x", shape=(4,)), so.var("w", shape=(2048, 1024))
    trainer = Trainer(so.sum(w) * so.sum(x), optax.sgd(1.0), inputs=["x"])
    state, batch = trainer.init(seed=0), {"x": np.full(4, 0.25, np.float32)}
    mesh = mesh_of((devices,), ("a",))
    state = placed(state, mesh, "a", None)
    host = np.zeros(1 << 20)
    for round in range(3):
        wanted = np.array(state.params["w"])
        host[:] = round
        folder.save(round, {"state": state, "host": host})
        host[:] = -1
        for _ in range(3):
            state, _ = trainer.step(state, batch)
        jax.block_until_ready(state.params)
        found = folder.restore({"state": state, "host": host})
        np.testing.assert_array_equal(found["state"].params["w"], wanted)
        assert (found["host"] == round).all()
        assert not (np.asarray(state.params["w"]) == wanted).any()


def test_copies_share_no_memory():
    mesh = mesh_of((8,), ("a",))
    one, host = put(mesh, jnp.arange(64.0), "a"), np.arange(4)
    keys = put(mesh, jax.random.split(jax.random.key(0), 8), "a")
    for array in (one, jax.random.key_data(keys)):
        copy = checkpoint.arrays.copy_of(array)
        assert copy.sharding == array.sharding
        pairs = zip(copy.addressable_shards, array.addressable_shards, strict=True)
        assert not any(
            a.data.unsafe_buffer_pointer() == b.data.unsafe_buffer_pointer() for a, b in pairs
        )
    assert checkpoint.arrays.copy_of(keys).sharding.spec == P("a", None)
    assert not np.shares_memory(checkpoint.arrays.copy_of(host), host)


# What is kept


def saved(path, losses, **options):
    with checkpoint.Folder(path, **options) as folder:
        for step, loss in losses.items():
            folder.save(step, {"w": np.full(3, step)}, {"loss": loss})
    return folder


def test_the_latest_and_the_best_are_kept(tmp_path):
    losses = {1: 3.0, 2: 1.0, 3: math.nan, 4: 2.0, 5: 1.0, 6: -math.inf, 7: 9.0}
    assert saved(tmp_path / "all", losses, keep=None).steps() == list(losses)
    assert saved(tmp_path / "two", losses, keep=2).steps() == [6, 7]
    folder = saved(tmp_path / "min", losses, keep=2, best="loss")
    assert (folder.steps(), folder.best, folder.latest) == ([2, 6, 7], 2, 7)
    folder = saved(tmp_path / "max", losses, keep=1, best="loss", mode="max")
    assert (folder.steps(), folder.best) == ([7], 7)
    folder = saved(tmp_path / "nan", {1: math.nan, 2: math.nan}, keep=1, best="loss")
    assert (folder.steps(), folder.best) == ([2], None)
    assert math.isnan(folder.metrics(2)["loss"])
    assert sorted(one.name for one in (tmp_path / "two").iterdir()) == ["6", "7"]


def test_a_new_process_knows_the_best(tmp_path):
    saved(tmp_path, {1: 3.0, 2: 1.0, 3: 2.0}, keep=2, best="loss")
    folder = saved(tmp_path, {4: 5.0, 5: 4.0, 6: 3.0}, keep=2, best="loss")
    assert (folder.steps(), folder.best) == ([2, 5, 6], 2)
    assert folder.metrics(2) == {"loss": 1.0}
    np.testing.assert_array_equal(folder.restore({"w": np.zeros(3, int)}, step=2)["w"], 2)


def test_which_steps_are_saved(tmp_path):
    with checkpoint.Folder(tmp_path / "run", every=3, keep=None, asynchronous=False) as folder:
        started = [folder.save(step, {"w": step}) for step in range(1, 8)]
        assert started == [False, False, True, False, False, True, False]
        assert folder.steps() == [3, 6]
        assert folder.save(8, {"w": 8}, force=True)
        assert folder.save(8, {"w": 9}, force=True)
        assert folder.restore({"w": 0}) == {"w": 8}
        with pytest.raises(ArgumentError, match=r"must come after 8, the latest in .*, got 6"):
            folder.save(6, {"w": 6})
        folder.delete(8)
        folder.delete(6)
        assert folder.save(6, {"w": 60})
        assert folder.restore({"w": 0}) == {"w": 60}
        with pytest.raises(ArgumentError, match="one of those saved, 3, 6, got 4"):
            folder.restore({"w": 0}, step=4)
        with pytest.raises(ArgumentError, match="one of those saved, 3, 6, got 4"):
            folder.delete(4)
        with pytest.raises(ArgumentError, match="one of those saved, 3, 6, got 4"):
            folder.metrics(4)


@pytest.mark.parametrize("step", [-1, 1.0, "1", None])
def test_steps_that_are_refused(folder, step):
    with pytest.raises(ArgumentError, match="the step must be an integer from 0 on, got"):
        folder.save(step, {"w": 1})
    assert folder.save(jnp.int32(0), {"w": 2})
    folder.wait()
    assert folder.steps() == [0]


def test_a_save_that_is_interrupted_can_be_repeated(folder, monkeypatch):
    state = {"w": np.arange(3.0)}
    whole = ocp.CheckpointManager.save

    def interrupted(*args, **options):
        whole(*args, **options)
        raise KeyboardInterrupt

    folder.save(1, state)
    with monkeypatch.context() as patch:
        patch.setattr(ocp.CheckpointManager, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            folder.save(2, state)
    assert folder.save(2, {"w": np.zeros(3)})
    assert folder.save(3, state)
    folder.wait()
    assert folder.steps() == [1, 2, 3]
    assert_same(folder.restore(state, 2), state)  # the first one had been started


def test_an_empty_folder(tmp_path):
    folder = checkpoint.Folder(tmp_path / "run", best="loss")
    assert (folder.steps(), folder.latest, folder.best) == ([], None, None)
    state = {"w": 1}
    assert folder.resume(state) is state
    with pytest.raises(ArgumentError, match="one of those saved, none, got none"):
        folder.restore(state)
    with pytest.raises(ArgumentError, match="the metrics must hold 'loss', got accuracy"):
        folder.save(1, state, {"accuracy": 1})
    assert not (tmp_path / "run").exists()
    folder.save(1, {"w": 2}, {"loss": jnp.float32(1)})
    assert folder.resume(state) == {"w": 2}
    folder.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": 0}, "Folder: keep must be an integer from 1 on, got 0"),
        ({"every": None}, "Folder: every must be an integer from 1 on, got None"),
        ({"every": -1}, "Folder: every must be an integer from 1 on, got -1"),
        ({"every": 2.0}, r"Folder: every must be an integer from 1 on, got 2\.0"),
        ({"mode": "least"}, "Folder: mode must be 'min' or 'max', got 'least'"),
    ],
)
def test_options_that_are_refused(tmp_path, options, message):
    with pytest.raises(ArgumentError, match=message):
        checkpoint.Folder(tmp_path, **options)


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "orbax.checkpoint", None)
    with pytest.raises(MissingExtraError, match=r"Folder: orbax-checkpoint .*symop-jax\[scale\]"):
        checkpoint.Folder(tmp_path)


def test_a_program_goes_on_bit_for_bit(folder):
    so.random.seed(4)
    program, loss = training()
    whole = run_steps(program, loss, 0, 9)
    so.random.seed(4)
    program, loss = training()
    assert run_steps(program, loss, 0, 5) == whole[:5]
    folder.save(5, program)
    so.random.seed(99)
    again, loss = training()
    assert folder.restore(again) is None
    assert run_steps(again, loss, 5, 9) == whole[5:]
    assert any(isinstance(v, SelectedRows) for v in program.scope.values())


def test_the_values_of_a_program_stay_where_they_are(folder, tmp_path):
    def build(fill, sharding):
        program = so.Program()
        w = program.parameter("w", (8, 2), initial=fill)
        program.update(w, w * 2)
        program.scope["w"] = jax.device_put(program.values()["w"], sharding)
        return program

    rows = NamedSharding(mesh_of((8,), ("a",)), P("a"))
    columns = NamedSharding(mesh_of((2,), ("b",)), P(None, "b"))
    program = build(3, rows)
    folder.save(1, program)
    checkpoint.save(tmp_path / "state", program)
    wanted = jax.device_put(np.full((8, 2), 3, np.float32), columns)
    other = build(0, columns)
    folder.restore(other)
    assert_same(other.scope["w"], wanted)
    other = build(0, columns)
    checkpoint.load(tmp_path / "state", other)
    assert_same(other.scope["w"], wanted)


def test_orbax_itself_reads_a_folder(tmp_path):
    saved(tmp_path, {1: 1.0})
    with ocp.CheckpointManager(tmp_path) as manager:
        how = {"tree['w']": ocp.RestoreArgs(restore_type=np.ndarray)}
        args = ocp.args.Composite(arrays=ocp.args.PyTreeRestore(restore_args=how))
        found = manager.restore(manager.latest_step(), args=args)
    np.testing.assert_array_equal(found["arrays"]["tree['w']"], 1)


# What is refused


def test_a_checkpoint_of_another_model_is_refused_and_changes_nothing(folder):
    names = {f"b{i}": jnp.ones(i) for i in range(9)}
    folder.save(1, {"w": jnp.ones((2, 3)), "k": jax.random.key(0), "n": 3, **names})
    like = {"w": jnp.ones((3, 2)), "k": jax.random.key(0, impl="rbg"), "n": 3.0, "c": jnp.ones(1)}
    with pytest.raises(FormatError) as error:
        folder.restore(like)
    message = str(error.value)
    for part in (
        "run/1: it must hold what is asked for, got too much: tree['b0'], ",
        "tree['b4'] and 4 more; too little: tree['c']; different: ",
        "tree['w'], where float32[3,2] must be there, got float32[2,3]",
        "tree['k'], where key<rbg>[] must be there, got key<fry>[]",
        "tree['n'], where float64[] must be there, got int64[]",
    ):
        assert part in message


def test_rows_of_another_table_are_refused(folder):
    rows = lambda height: SelectedRows(jnp.zeros(2, int), jnp.ones((2, 3)), height)  # noqa: E731
    folder.save(1, {"t": rows(9)})
    with pytest.raises(FormatError, match=r"int32\[2\] of 8 rows must be there, got int32\[2\] of"):
        folder.restore({"t": rows(8)})


def test_another_program_is_refused_and_unchanged(folder):
    program, loss = training()
    run_steps(program, loss, 0, 2)
    folder.save(2, program)
    other = so.Program()
    w = other.parameter("w", (2,), initial=1)
    other.run(fetch=w + 0)
    with pytest.raises(FormatError, match="too much: scope/adam"):
        folder.restore(other)
    np.testing.assert_array_equal(other.scope["w"], 1)


def test_what_is_not_complete_is_not_listed(tmp_path):
    path = tmp_path / "run"
    saved(path, {3: 1.0, 4: 1.0}, keep=None)
    shutil.copytree(path / "4", path / "5.orbax-checkpoint-tmp")
    (path / "deleted").mkdir()
    (path / "4").rename(path / "deleted" / "4")
    folder = checkpoint.Folder(path)
    assert folder.steps() == [3]
    assert folder.restore({"w": np.zeros(3, int)})["w"].tolist() == [3] * 3
    assert (path / "5.orbax-checkpoint-tmp").exists()  # another job may be writing it
    with folder:
        folder.save(5, {"w": np.full(3, 5)})
    assert sorted(one.name for one in path.iterdir()) == ["3", "5"]


def files_of(path):
    return sorted(one for one in path.rglob("*") if one.is_file())


def damaged(data, generator):
    """The content of a file after a defect; None for a file that is missing."""
    flipped = bytearray(data)
    flipped[generator.integers(len(data))] ^= 1 << generator.integers(8)
    return [None, b"", data[: len(data) // 2], bytes(len(data)), b"{}", data + b"0", bytes(flipped)]


def refusal(folder, state):
    """The message of a FormatError; None if the step comes back whole."""
    try:
        assert_same(folder.restore(state), state)
    except FormatError as error:
        return str(error)
    return None


def test_a_damaged_step_is_a_format_error(tmp_path):
    state = {"w": np.random.default_rng(0).normal(size=(40, 50)), "b": jnp.ones(7)}
    with checkpoint.Folder(tmp_path / "run") as folder:
        folder.save(1, state)
    generator, refused = np.random.default_rng(0), set()
    for file in files_of(tmp_path / "run"):
        whole = file.read_bytes()
        for damage in damaged(whole, generator):
            file.unlink(missing_ok=True)
            if damage is not None:
                file.write_bytes(damage)
            message = refusal(folder, state)
            assert message is None or str(tmp_path) in message
            refused |= {file.name} if message else set()
        file.write_bytes(whole)
    assert_same(folder.restore(state), state)
    assert {one.name for one in files_of(tmp_path)} - refused == {
        "_CHECKPOINT_METADATA",
        "commit_success.txt",
    }


def test_files_that_do_not_fit_together_are_a_format_error(tmp_path):
    state = {"w": np.arange(6.0)}
    saved(tmp_path, {1: 1.0})
    with checkpoint.Folder(tmp_path) as folder:
        folder.save(2, state)
    (tmp_path / "1" / "checksums").unlink()
    like = {"w": np.zeros(3, int)}
    with pytest.raises(FormatError, match="there must be checksums, got none"):
        folder.restore(like, 1)
    index = tmp_path / "1" / "index" / "metadata"
    record = json.loads(index.read_text())
    index.write_text(json.dumps({**record, "checksums": False}))
    np.testing.assert_array_equal(folder.restore(like, 1)["w"], 1)
    types = {"tree['v']": "int64[3]"}
    index.write_text(json.dumps({**record, "checksums": False, "types": types}))
    with pytest.raises(FormatError, match=r"must be whole, got .*v"):
        folder.restore({"v": like["w"]}, 1)
    for text in ("[]", '{"types": 1}', json.dumps({**record, "more": 0}), "{"):
        index.write_text(text)
        with pytest.raises(FormatError, match="1: the checkpoint must be whole"):
            folder.restore(like, 1)


def test_a_step_that_cannot_be_written_leaves_the_others(tmp_path):
    state = {"w": np.random.default_rng(0).normal(size=500_000)}
    with checkpoint.Folder(tmp_path, keep=1) as folder:
        folder.save(1, state)
        folder.wait()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, limits[1]))
        try:
            folder.save(2, state)
            with pytest.raises(OSError, match="step 2 could not be written"):
                folder.wait()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert folder.steps() == [1]
        assert_same(folder.restore(state), state)
        folder.save(2, state)
    assert folder.steps() == [2]
    assert [one.name for one in tmp_path.iterdir()] == ["2"]
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        checkpoint.Folder(tmp_path / "file").save(1, state)


# Preemption


def test_a_preemption_is_listened_to_in_the_main_thread_alone(tmp_path):
    caught = []

    def enter():
        try:
            with checkpoint.on_preemption(checkpoint.Folder(tmp_path)):
                pass
        except ArgumentError as error:
            caught.append(str(error))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert caught == ["on_preemption: it must be entered in the main thread, got another"]


def test_a_preemption_saves_a_step_without_the_metric_of_the_best(tmp_path):
    state, folder = {"x": np.ones(2)}, checkpoint.Folder(tmp_path, every=10, best="loss")
    with folder, checkpoint.on_preemption(folder):
        assert folder.save(10, state, metrics={"loss": 1.0})
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(SystemExit) as end:
            folder.save(13, state)
    assert end.value.code == checkpoint.EXIT_CODE
    assert checkpoint.Folder(tmp_path).steps() == [10, 13]
    assert checkpoint.Folder(tmp_path, best="loss").best == 10
