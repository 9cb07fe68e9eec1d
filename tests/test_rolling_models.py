"""Deep models written as loops roll: the program does not grow with depth, and nothing changes.

What they compute at a small depth is compared with plain JAX in ``test_deep_models.py``.
"""

import collections
import functools

import jax
import numpy as np
import pytest
from deep_models import models
from deep_models.comparing import (
    SEED,
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
from jax.extend.core import jaxprs_in_params

import symop as so

DEPTH = 12
MODELS = {model.name: model for model in models(DEPTH)}
DEEPER = {model.name: model for model in models(2 * DEPTH)}
UNROLLED = ["gru, dropout", "residual, dropout", "chain of period 3", "mx.rnn lstm, 1 layers"]
"""Models that are also compiled unrolled: those that draw, and little ones."""
WAYS = ["rnn, apart, last, given", "gru, dropout", "residual, dropout", "ResNet"]
TWICE = ["rnn, time, stack, zeros", "residual, norm", "stages of layers", "chain of period 3"]
COSTLY = {
    "conv_general_dilated", "cos", "dot_general", "erf", "erfc", "exp", "logistic", "random_bits",
    "sin", "tanh", "threefry2x32",
}  # fmt: skip
"""Primitives that compute. Others move data, for each parameter that is stacked some."""
pytestmark = pytest.mark.usefixtures("x64", "few_convolutions_roll")


def key():
    return jax.random.key(SEED)


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def some(names):
    return pytest.mark.parametrize("model", [MODELS[name] for name in names], ids=names)


def primitives(jaxpr):
    """How often each primitive stands in a jaxpr; bodies of loops count once."""
    found = collections.Counter()
    for equation in jaxpr.eqns:
        found[equation.primitive.name] += 1
        for inner in jaxprs_in_params(equation.params):
            found += primitives(inner)
    return found


def traced(model):
    """The jaxpr of a model's value and gradients."""
    params, states = model.arrays()
    function = so.value_and_grad(model.loss(), is_train=is_trained(model))
    return jax.make_jaxpr(function)(key=key(), **params, **states)


@functools.cache
def scanned(name):
    return by_hand(MODELS[name], key())


# What rolls ------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
def test_the_program_does_not_grow_with_depth(model):
    found, deeper = (primitives(traced(one).jaxpr) for one in (model, DEEPER[model.name]))
    assert found["scan"] > 0
    assert {n: found[n] for n in COSTLY} == {n: deeper[n] for n in COSTLY}


@some(["residual, norm", "ResNet", "rnn, time, last, zeros"])
def test_rolling_is_deterministic(model):
    assert str(traced(model)) == str(traced(model))


@some(["residual, norm", "rnn, time, last, zeros"])
def test_rolling_can_be_switched_off(model):
    with so.rolling(False):
        assert primitives(traced(model).jaxpr)["scan"] == 0
        with so.rolling(True):
            assert primitives(traced(model).jaxpr)["scan"] > 0
        assert primitives(traced(model).jaxpr)["scan"] == 0
    assert primitives(traced(model).jaxpr)["scan"] > 0


def test_what_does_not_repeat_is_left_alone():
    x = so.var("x", (3, 4))
    hidden = so.tanh(so.fully_connected(x, units=5, name="a"))
    loss = so.mean(so.softmax(so.fully_connected(hidden, units=2, name="b")) ** 2)
    shapes, _, _ = loss.infer_shape()
    arrays = [np.ones(shape) for shape in shapes]
    rolled = str(jax.make_jaxpr(so.value_and_grad(loss))(*arrays))
    with so.rolling(False):
        assert str(jax.make_jaxpr(so.value_and_grad(loss))(*arrays)) == rolled


# What does not change --------------------------------------------------------------------------


@pytest.mark.sampled(5)
def test_values_gradients_and_states(model):
    same(by_graph(model, key()), scanned(model.name))


@pytest.mark.sampled(2)
@some(UNROLLED)
def test_unrolled_values_gradients_and_draws(model):
    rolled = by_graph(model, key())
    with so.rolling(False):
        same(by_graph(model, key()), rolled)


@some(TWICE)
def test_rules(model):
    same(by_rules(model, key()), scanned(model.name))


@pytest.mark.sampled(2)
@some(WAYS)
def test_executors(model):
    found = by_executor(model)
    same(found, scanned(model.name))
    assert list(found.gradients) == model.loss().list_arguments()
    assert list(found.states) == model.loss().list_auxiliary_states()


@some(["mx.rnn gru, 2 layers", "mx.sym perceptron"])
def test_foreign_executors(model):
    same(by_foreign_executor(model), scanned(model.name))


@pytest.mark.sampled(2)
@some(WAYS)
def test_trainers(model):
    same(by_trainer(model), by_hand(model, jax.random.fold_in(key(), 0)))


@pytest.mark.sampled(2)
@some(WAYS)
def test_programs(model):
    same(by_program(model), scanned(model.name))


@pytest.mark.sampled(2)
@some(TWICE)
def test_second_order_in_both_modes(model):
    found, expected = product_by_graph(model, key()), product_by_hand(model, key())
    for name, one in expected.items():
        closely(found[name], one, name, 1e-10)
