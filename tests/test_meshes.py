"""Training on a mesh of eight devices: values and gradients are those of one device."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from mesh_models import Model, clicks, digits, language_model, perceptron, recommender

import symop as so
from symop import train

KINDS = {"auto": AxisType.Auto, "explicit": AxisType.Explicit}
MODELS = {
    "perceptron": perceptron(),
    "digits": digits(),
    "language model": language_model(),
    "language model by sequence": language_model(by_sequence=True),
}
LAYOUTS = [
    pytest.param(name, layout, kind, id=f"{name}, {layout}, {kind}")
    for name, model in MODELS.items()
    for layout, kind in itertools.product(model.layouts, KINDS)
]


def mesh_of(kind="auto", shape=(4, 2)):
    return jax.make_mesh(shape, ("data", "model"), axis_types=(KINDS[kind],) * 2)


def keeping():
    """An optimizer that changes nothing and keeps the gradients as its state."""

    def update(gradients, state, params=None):
        del state, params
        return jax.tree.map(jnp.zeros_like, gradients), gradients

    return optax.GradientTransformation(lambda params: params, update)


def trained(model: Model, **where):
    """The loss, the gradients, and the updated states of one step."""
    trainer = train.Trainer(model.loss, keeping(), inputs=list(model.batch), **where)
    state, metrics = trainer.step(trainer.init(0), model.batch)
    return metrics["loss"], state


@pytest.fixture(scope="module")
def alone():
    return {name: trained(model) for name, model in MODELS.items()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "layout", "kind"), LAYOUTS)
def test_trainer(name, layout, kind, alone):
    model, mesh = MODELS[name], mesh_of(kind)
    loss, state = trained(model, mesh=mesh, rules=model.layouts[layout])
    expected, before = alone[name]
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    split = model.loss.with_sharding(model.layouts[layout]).shardings()
    assert split or layout == "data"
    for key, gradient in before.opt_state.items():
        found = state.opt_state[key]
        np.testing.assert_allclose(found, gradient, rtol=2e-4, atol=2e-6)
        where = NamedSharding(mesh, PartitionSpec(*split.get(key, ())))
        assert found.sharding.is_equivalent_to(where, found.ndim)
        assert state.params[key].sharding.is_equivalent_to(where, found.ndim)
    for key, value in before.states.items():
        np.testing.assert_allclose(state.states[key], value, rtol=1e-4, atol=1e-6)
