"""Whole models that MXNet 1.9.1 saved: loaded, run, differentiated, saved again, exported."""

import json
import pathlib

import jax
import numpy as np
import pytest

import symop as so
import symop.interop.mxnet as mx

DATA = pathlib.Path(__file__).parent / "data" / "mxnet"
INDEX = {one["name"]: one for one in json.loads((DATA / "models_index.json").read_text())}


class Model:
    """A model, its parameters, and what MXNet computed of it."""

    def __init__(self, name):
        self.symbol, self.args, self.aux = mx.load_checkpoint(DATA / name, 0)
        with np.load(DATA / f"{name}-io.npz") as file:
            self.recorded = dict(file)
        self.about = INDEX[name]
        self.inputs = self.of("in")

    def of(self, kind):
        start = f"{kind}|"
        return {key[len(start) :]: a for key, a in self.recorded.items() if key.startswith(start)}

    def list_of(self, kind):
        found = self.of(kind)
        return [found[str(i)] for i in range(len(found))] or None

    def bound(self, grad_req="write"):
        shapes = {name: a.shape for name, a in self.inputs.items()}
        executor = self.symbol.simple_bind(mx.cpu(), grad_req, **shapes)
        executor.copy_params_from(self.args, self.aux)
        return executor

    def everything(self):
        given = {**self.inputs, **self.args, **self.aux}
        return {name: getattr(one, "value", one) for name, one in given.items()}


@pytest.fixture(params=sorted(INDEX))
def model(request):
    return Model(request.param)


def close(found, expected):
    found = found.asnumpy() if isinstance(found, mx.nd.NDArray) else np.asarray(found)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_names_are_those_of_mxnet(model):
    assert model.symbol.list_arguments() == model.about["arguments"]
    assert model.symbol.list_auxiliary_states() == model.about["aux"]
    assert model.symbol.list_outputs() == model.about["outputs"]
    shapes = {name: a.shape for name, a in model.inputs.items()}
    arguments, outputs, states = model.symbol.infer_shape(**shapes)
    named = dict(zip(model.symbol.list_arguments(), arguments, strict=True))
    named.update(zip(model.symbol.list_auxiliary_states(), states, strict=True))
    for name, one in {**model.args, **model.aux}.items():
        assert named[name] == one.shape
    assert outputs == [one.shape for one in model.list_of("out")]


@pytest.mark.sampled(2)
def test_values_gradients_and_states_are_those_of_mxnet(model):
    executor = model.bound()
    for found, expected in zip(executor.forward(**model.inputs), model.list_of("out"), strict=True):
        close(found, expected)
    found = executor.forward(is_train=True)
    for one, expected in zip(found, model.list_of("trainout"), strict=True):
        close(one, expected)
    heads = model.list_of("outgrad")
    executor.backward(None if heads is None else [mx.nd.array(one) for one in heads])
    for name, expected in model.of("grad").items():
        close(executor.grad_dict[name], expected)
    for name, expected in model.of("aux_after").items():
        close(executor.aux_dict[name], expected)


def test_files_come_back_byte_for_byte(model, tmp_path):
    name = model.about["name"]
    mx.model.save_checkpoint(tmp_path / name, 0, model.symbol, model.args, model.aux)
    for end in ("symbol.json", "0000.params"):
        written, read = tmp_path / f"{name}-{end}", DATA / f"{name}-{end}"
        assert written.read_bytes() == read.read_bytes()


@pytest.mark.sampled(2)
def test_a_model_is_a_function_of_jax(model):
    given = model.everything()
    function = model.symbol.to_jax()
    found = jax.jit(function)(**given)
    for one, expected in zip(jax.tree.leaves(found), model.list_of("out"), strict=True):
        close(one, expected)
    types = {name: jax.ShapeDtypeStruct(a.shape, a.dtype) for name, a in given.items()}
    exported = jax.export.export(jax.jit(lambda arrays: function(**arrays)))(types)
    assert "stablehlo" in exported.mlir_module()
    for one, expected in zip(
        jax.tree.leaves(exported.call(given)), model.list_of("out"), strict=True
    ):
        close(one, expected)


def test_a_model_is_a_graph_of_the_catalogue(model, tmp_path):
    given = model.everything()
    graph = model.symbol.to_graph(**{name: a.shape for name, a in given.items()})
    graph.save(tmp_path / "graph.json")
    again = so.load(tmp_path / "graph.json")
    found = again.eval(**given)
    listed = found if isinstance(found, list) else [found]
    for one, expected in zip(listed, model.list_of("out"), strict=True):
        close(one, expected)
