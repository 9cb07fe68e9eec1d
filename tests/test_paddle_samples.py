"""Programs that Paddle saved, against the values, gradients and steps that Paddle computed."""

import json
import pathlib
import zlib

import jax
import numpy as np
import pytest

import symop as so
from registry.values import SelectedRows
from symop.interop.paddle import framework, ops
from symop.interop.paddle.executor import Executor
from symop.interop.paddle.framework import VarKind
from symop.interop.paddle.programs import Program
from symop.program.scope import Scope

SAMPLES = pathlib.Path(__file__).parents[2] / "shared" / "paddle"
PROGRAMS = sorted(one.stem for one in (SAMPLES / "programs").glob("*.json"))

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
    if isinstance(found, SelectedRows):
        rows = [np.asarray(values[f"{name}/{part}"]) for part in ("rows", "value")]
        expected = SelectedRows(rows[0], rows[1], found.height)
        close(so.nd.get_tensor_from_selected_rows(found), dense(expected))
    elif isinstance(found, so.LoDTensor):
        if name in values:
            close(found.data, values[name].data)
            np.testing.assert_array_equal(found.lod[0], values[name].lod[0])
    elif name in values:
        close(found, getattr(values[name], "data", values[name]))


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
