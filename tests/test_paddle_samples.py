"""Programs that Paddle saved, against the values, gradients and steps that Paddle computed."""

import json
import pathlib
import zlib

import jax
import numpy as np
import pytest

import symop as so
from registry.values import SelectedRows
from symop.interop.paddle import files, framework, ops
from symop.interop.paddle.executor import Executor, scope_guard
from symop.interop.paddle.framework import VarKind
from symop.interop.paddle.programs import Program
from symop.interop.paddle.static import io
from symop.program.scope import Scope

SAMPLES = pathlib.Path(__file__).parents[2] / "shared" / "paddle"
PROGRAMS = sorted(one.stem for one in (SAMPLES / "programs").glob("*.json"))
FOLDERS = sorted(one.parent.name for one in SAMPLES.glob("p*/index.json"))
TRAINED = [one for one in FOLDERS if (SAMPLES / one / "train_program.pb").exists()]

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="the samples are not on this machine")
assert ops


def parsed(name):
    data = (SAMPLES / "programs" / f"{name}.pb").read_bytes()
    return framework.parse(zlib.decompress(data))


def recorded(name):
    path = SAMPLES / "programs" / f"{name}.npz"
    return dict(np.load(path)) if path.exists() else {}


def given(arrays, prefix):
    """The arrays under a prefix; with offsets, ``LoDTensor`` values."""
    found = {
        key.removeprefix(prefix): one
        for key, one in arrays.items()
        if key.startswith(prefix) and not key.endswith("/lod")
    }
    return {
        key: so.LoDTensor(one, [arrays[f"{prefix}{key}/lod"]])
        if f"{prefix}{key}/lod" in arrays
        else one
        for key, one in found.items()
    }


def narrow(value):
    """A value in the integers and floats of JAX."""
    array = np.asarray(value)
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype))


def scope_of(arrays):
    scope = Scope()
    for name, value in arrays.items():
        scope[name] = narrow(value)
    return scope


def close(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def names_of(values):
    """The variables that were recorded; of rows there are three arrays each."""
    parts = ("/rows", "/value", "/height")
    owners = (key.rpartition("/")[0] if key.endswith(parts) else key for key in values)
    return list(dict.fromkeys(owners))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_equal_recorded_values(name):
    desc, arrays = parsed(name), recorded(name)
    feed = given(arrays, "feed/") or drawn(desc)
    scope = scope_of(given(arrays, "init/") or kept(desc))
    values = given(arrays, "out/")
    names = names_of(values) or written(desc)
    executor, program = Executor(), Program(desc)
    steps = len({key.split("/")[0] for key in arrays if key.startswith("step")}) or 1
    for step in range(steps):
        found = executor.run(program, feed, names, scope=scope, return_numpy=False)
        for key, one in given(arrays, f"step{step}/").items():
            close(scope[key], one)
    for key, one in zip(names, found, strict=True):
        compare(desc, key, one, values)


def compare(desc, name, found, values):
    if name.startswith("dropout_") or random(desc, name):
        return  # Paddle's random numbers are its own.
    if name.startswith("get_tensor_from_selected_rows"):
        # Paddle's result has a row for each row that is there; here the whole table is made.
        found = np.asarray(found)
        close(found[np.asarray(values["merge_selected_rows_0.tmp_0/rows"])], values[name])
    elif isinstance(found, SelectedRows):
        rows = [np.asarray(values[f"{name}/{part}"]) for part in ("rows", "value")]
        expected = SelectedRows(rows[0], rows[1], found.height)
        close(so.nd.get_tensor_from_selected_rows(found), dense(expected))
    elif isinstance(found, so.LoDTensor):
        if name in values:
            close(found.data, values[name].data)
            np.testing.assert_array_equal(found.lod[0], values[name].lod[0])
    elif name in values:
        close(found, getattr(values[name], "data", values[name]))


def random(desc, name):
    """Whether a variable depends on a dropout."""
    reached = set()
    for op in desc.blocks[0].ops:
        inputs = {one for names in op.inputs.values() for one in names}
        if op.type == "dropout" or inputs & reached:
            reached |= {one for names in op.outputs.values() for one in names}
    return name in reached


def dense(rows):
    table = np.zeros((rows.height, *rows.values.shape[1:]), np.float32)
    np.add.at(table, np.asarray(rows.rows), np.asarray(rows.values))
    return table


def drawn(desc):
    """Feeds for programs without recorded values, which are translated and run only."""
    rng = np.random.default_rng(0)
    block = desc.blocks[0]
    outputs = {name for op in block.ops for names in op.outputs.values() for name in names}
    return {
        one.name: rng.uniform(0.5, 1.5, one.shape).astype(one.dtype)
        for one in block.vars.values()
        if one.name not in outputs and not one.persistable and one.kind == VarKind.LOD_TENSOR
    }


def kept(desc):
    rng = np.random.default_rng(1)
    return {
        one.name: rng.uniform(0.5, 1.5, one.shape).astype(one.dtype)
        for one in desc.blocks[0].vars.values()
        if one.persistable and one.kind == VarKind.LOD_TENSOR
    }


def written(desc):
    names = [
        name
        for op in desc.blocks[0].ops
        for each in op.outputs.values()
        for name in each
        if not name.endswith("XShape") and ".tmp" in name
    ]
    return list(dict.fromkeys(names))[-1:]


# Models ------------------------------------------------------------------------------------------


class Sample:
    """A folder with a model, and what Paddle computed with it."""

    def __init__(self, name):
        self.folder = SAMPLES / name
        self.index = json.loads((self.folder / "index.json").read_text())
        self.arrays = dict(np.load(self.folder / "io.npz"))

    def feed(self, names):
        return {name: self.fed(name) for name in names}

    def fed(self, name):
        value, lengths = self.arrays[f"feed/{name}"], self.under(f"lod/{name}/")
        levels = [list(map(int, lengths[key])) for key in sorted(lengths)]
        return so.LoDTensor.from_lengths(value, levels) if levels else value

    def under(self, prefix):
        return {
            key.removeprefix(prefix): one
            for key, one in self.arrays.items()
            if key.startswith(prefix)
        }

    def inference(self):
        told, folder = self.index["inference"], self.folder / "infer"
        desc = files.read_program(folder / told["model_file"])
        variables = [one for one in files.persistables(desc).values() if one.name not in FEEDS]
        return desc, files.load_vars(folder, variables, filename=told["params_file"])

    def training(self):
        told, folder = self.index["train"], self.folder / "init"
        desc = files.read_program(self.folder / told["program"])
        if (folder / "model.pdparams").exists():
            return desc, files.load_state(folder / "model")
        return desc, files.load_vars(folder, desc, filename=told.get("init_file"))


FEEDS = ("feed", "fetch")


@pytest.mark.parametrize("name", FOLDERS)
def test_inference_models_equal_recorded_outputs(name):
    sample = Sample(name)
    desc, variables = sample.inference()
    told = sample.index["inference"]
    feed = sample.feed(one["name"] for one in told["feed"])
    names = [one["fetch"] for one in told["fetch"]]
    scope = scope_of(variables)
    found = Executor().run(Program(desc), feed, names, scope=scope, return_numpy=False)
    for i, one in enumerate(found):
        close(getattr(one, "data", one), sample.arrays[f"out/{i}"])
        for level, lengths in sample.under(f"outlod/{i}/").items():
            np.testing.assert_array_equal(np.diff(one.lod[int(level)]), lengths)


@pytest.mark.parametrize("name", TRAINED)
def test_training_equals_recorded_losses_and_gradients(name):
    sample = Sample(name)
    desc, variables = sample.training()
    told = sample.index["train"]
    feed = sample.feed(one["name"] for one in told["feed"])
    also, slopes = sample.under("also/"), sample.under("grad/") | sample.under("stepgrad/")
    names = [told["loss"], *also, *(f"{key}@GRAD" for key in slopes)]
    scope, executor, losses = scope_of(variables), Executor(), []
    for step in range(3):
        found = executor.run(Program(desc), feed, names, scope=scope, return_numpy=False)
        losses.append(np.asarray(found[0]).reshape(()))
        if step == 0:
            for key, one in zip(also, found[1:], strict=False):
                close(one, also[key])
            for key, one in zip(slopes, found[1 + len(also) :], strict=True):
                check_slope(sample, key, one, slopes[key])
    close(losses, sample.arrays["losses"].reshape(-1))
    for key, expected in sample.under("step3/").items():
        steady = ~sample.arrays.get(f"unstable/step3/{key}", np.zeros(expected.shape, bool))
        found = np.asarray(scope[key])
        assert found.shape == expected.shape
        np.testing.assert_allclose(found[steady], expected[steady], rtol=1e-4, atol=1e-4)


LONG = ("p262_mobile_dw", "p262_transformer_enc", "p185_recommender_sparse", "p185_textcnn_lod")


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[pytest.mark.thorough] * (one in LONG)) for one in TRAINED],
)
def test_training_goes_on_from_files_as_without_them(name, tmp_path):
    sample = Sample(name)
    desc, variables = sample.training()
    told = sample.index["train"]
    feed = sample.feed(one["name"] for one in told["feed"])
    program, scope, executor = Program(desc), scope_of(variables), Executor()

    def steps(program, count):
        return [executor.run(program, feed, [told["loss"]])[0].item() for _ in range(count)]

    with scope_guard(scope):
        losses = steps(program, 10)
        assert losses[-1] < losses[0]
        saved(name, program, tmp_path)
        kept = {key: np.asarray(one) for key, one in scope.items()}
        wanted = steps(program, 3)
        scope.clear()
        again = loaded(name, tmp_path)
        assert again.fingerprint() == program.fingerprint()
        for key, one in kept.items():
            np.testing.assert_array_equal(scope[key], one)
        assert steps(again, 3) == wanted


def saved(name, program, folder):
    """Saves as the version of the sample does."""
    if name.startswith("p262"):
        io.save(program, folder / "model")
    else:
        io.save_program(program, folder / "__model__")
        io.save_persistables(None, folder, program)


def loaded(name, folder):
    path = folder / ("model.pdmodel" if name.startswith("p262") else "__model__")
    program = io.load_program(path)
    if name.startswith("p262"):
        io.load(program, folder / "model")
    else:
        io.load_persistables(None, folder, program)
    return program


def check_slope(sample, name, found, expected):
    if isinstance(found, SelectedRows):
        rows = sample.arrays.get(f"gradrows/{name}")
        values = sample.arrays.get(f"gradvalue/{name}")
        if rows is not None:
            table = SelectedRows(rows, values, found.height)
            close(so.nd.get_tensor_from_selected_rows(found), dense(table))
        found = so.nd.get_tensor_from_selected_rows(found)
    close(found, expected)
