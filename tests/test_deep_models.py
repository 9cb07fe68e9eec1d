"""Deep models written as loops: their values, gradients, states and draws are those of plain JAX.

Nothing here asks how a graph runs. ``test_rolling_models.py`` does.
"""

import functools

import jax
import numpy as np
import pytest
from deep_models import in_python, listed, members, models, named, stacked
from deep_models.comparing import (
    SEED,
    Derived,
    bound,
    by_executor,
    by_foreign_executor,
    by_graph,
    by_hand,
    by_program,
    by_rules,
    by_trainer,
    closely,
    is_trained,
    product_by_graph,
    product_by_hand,
    same,
)

DEPTH = 3
MODELS = {model.name: model for model in models(DEPTH)}
BOUND = [
    "lstm, time, last, zeros", "rnn, apart, last, given", "gru, dropout", "residual, dropout",
    "ResNet", "stages of layers",
]  # fmt: skip
"""A model of each kind, where all would take too long."""
TWICE = ["rnn, time, stack, zeros", "residual, norm", "stages of layers", "chain of period 3"]
pytestmark = pytest.mark.usefixtures("x64")


def key():
    return jax.random.key(SEED)


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def some(names):
    return pytest.mark.parametrize("model", [MODELS[name] for name in names], ids=names)


# Hand-written code agrees with itself ----------------------------------------------------------


def test_stacks():
    names = {"w": ["w0", "w1"], "v": [["v0", "v1"], ["v2", "v3"]]}
    given = {f"{k}{i}": np.full(2, 10.0 * i) for k, n in (("w", 2), ("v", 4)) for i in range(n)}
    given["b"] = np.ones(3)
    whole = stacked(names, given)
    assert {name: one.shape for name, one in whole.items()} == {
        "b": (3,), "w": (2, 2), "v": (2, 2, 2),
    }  # fmt: skip
    for join in (stacked, listed):
        back = named(names, join(names, given))
        assert back.keys() == given.keys()
        for name, one in given.items():
            np.testing.assert_array_equal(back[name], one)


def test_loops_of_python_are_scans():
    def step(carry, given):
        x, y = given
        return carry * x + y, (carry, x)

    xs = np.arange(6.0).reshape(3, 2), np.ones(3)
    for mine, other in zip(
        jax.tree.leaves(in_python(step, np.zeros(2), xs)),
        jax.tree.leaves(jax.lax.scan(step, np.zeros(2), xs)),
        strict=True,
    ):
        np.testing.assert_allclose(mine, other)


@functools.cache
def scanned(name):
    return by_hand(MODELS[name], key())


@pytest.mark.sampled(6)
def test_unrolled_equals_scans(model):
    params, states = model.arrays()
    given = listed(model.stacks, params), listed(model.states, states), key()
    loss, new = jax.jit(model.unrolled)(*given)
    expected = scanned(model.name)
    same(Derived(loss, expected.gradients, named(model.states, new)), expected)


@pytest.mark.sampled(3)
def test_every_gradient_is_told_apart(model):
    # A gradient of zeros would be right whatever is done with it.
    zero = [n for n, one in scanned(model.name).gradients.items() if abs(one).max() < 1e-7]
    dead = {f"fc{i}_bias" for i in range(DEPTH)} if model.name == "mx.sym perceptron" else set()
    assert set(zero) == dead


# symop agrees with it --------------------------------------------------------------------------


@pytest.mark.sampled(6)
def test_graphs(model):
    same(by_graph(model, key()), scanned(model.name))


@some(TWICE)
def test_rules(model):
    same(by_rules(model, key()), scanned(model.name))


@some(BOUND)
@pytest.mark.sampled(3)
def test_executors(model):
    same(by_executor(model), scanned(model.name))


@some([name for name, one in MODELS.items() if one.foreign])
@pytest.mark.sampled(3)
def test_foreign_executors(model):
    same(by_foreign_executor(model), scanned(model.name))


@some(BOUND)
@pytest.mark.sampled(3)
def test_trainers(model):
    first = jax.random.fold_in(key(), 0)
    expected = by_hand(model, first) if model.draws else scanned(model.name)
    same(by_trainer(model), expected)


@some(BOUND)
@pytest.mark.sampled(3)
def test_programs(model):
    same(by_program(model), scanned(model.name))


@some(TWICE)
@pytest.mark.sampled(2)
def test_second_order_in_both_modes(model):
    found, expected = product_by_graph(model, key()), product_by_hand(model, key())
    assert found.keys() == expected.keys()
    for name, one in expected.items():
        closely(found[name], one, name, 1e-11)


# Names -----------------------------------------------------------------------------------------


@pytest.mark.sampled(6)
def test_names(model):
    params, states = model.arrays()
    executor = bound(model)
    assert list(executor.arg_dict) == list(executor.grad_dict) == model.loss().list_arguments()
    assert list(executor.aux_dict) == model.loss().list_auxiliary_states() == list(states)
    assert {name: one.shape for name, one in executor.grad_dict.items()} == {
        name: one.shape for name, one in params.items()
    }
    for names, arrays in ((model.stacks, params), (model.states, states)):
        assert {one for each in names.values() for one in members(each)} <= arrays.keys()


def test_what_is_trained():
    assert {name for name, one in MODELS.items() if is_trained(one)} == {
        "gru, dropout", "residual, dropout", "transformer, dropout", "ResNet", "mx.sym perceptron",
    }  # fmt: skip


@some([name for name, one in MODELS.items() if one.draws])
@pytest.mark.sampled(3)
def test_other_keys_draw_otherwise(model):
    other = by_graph(model, jax.random.key(SEED + 1))
    assert abs(other.loss - scanned(model.name).loss) > 1e-6
