"""Training: the step, the loop, initial values, and what they refuse."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import symop as so
from registry.errors import ArgumentError, FeedError, MissingExtraError
from symop import train


def regression(batch=16):
    x, y = so.var("x"), so.var("y", shape=(batch, 2))
    hidden = so.tanh(so.batch_norm(so.fully_connected(x, units=8, name="fc1"), name="bn"))
    prediction = so.fully_connected(so.dropout(hidden, rate=0.1), units=2, name="fc2")
    return prediction, so.mean(so.square(prediction - y))


def data(count=64):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 3)).astype(np.float32)
    return {"x": x, "y": np.stack([x[:, 0], -x[:, 1]], axis=1)}


def trainer(**options):
    _, loss = regression()
    return train.Trainer(loss, optax.adam(1e-2), inputs=["x", "y"], **options)


def test_fit_reduces_the_loss_and_reports_each_epoch():
    own = trainer()
    state = own.init(0, x=(16, 3))
    state, history = own.fit(state, data(), epochs=20, batch_size=16, progress=False)
    assert len(history) == 20
    assert history[-1]["loss"] < 0.3 * history[0]["loss"]
    assert int(state.step) == 80


def test_a_step_is_that_of_plain_jax():
    _, loss = regression()
    own = train.Trainer(loss, optax.sgd(0.1), inputs=["x", "y"])
    state = own.init(3, x=(16, 3))
    batch = {name: array[:16] for name, array in data().items()}
    key = jax.random.fold_in(state.key, state.step)
    function = loss.to_jax(is_train=True)

    def plain(params):
        return function(**params, **batch, **state.states, key=key)

    (value, states), gradients = jax.value_and_grad(plain, has_aux=True)(state.params)
    expected = jax.tree.map(lambda p, g: p - 0.1 * g, state.params, gradients)
    state, metrics = own.step(state, batch)
    assert float(metrics["loss"]) == pytest.approx(float(value), rel=1e-6)
    for name, array in expected.items():
        np.testing.assert_allclose(state.params[name], array, rtol=1e-5, atol=1e-6)
    for name, array in states.items():
        np.testing.assert_allclose(state.states[name], array, rtol=1e-6)


def test_the_state_is_donated():
    own = trainer()
    state = own.init(0, x=(16, 3))
    batch = {name: array[:16] for name, array in data().items()}
    own.step(state, batch)
    assert state.params["fc1_weight"].is_deleted()


def test_the_same_seed_trains_the_same():
    runs = []
    for _ in range(2):
        own = trainer()
        state, _ = own.fit(own.init(5, x=(16, 3)), data(), epochs=2, batch_size=16, progress=False)
        runs.append(state.params)
    assert all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, runs), strict=True))


def test_metrics_are_computed_before_the_update():
    prediction, loss = regression()
    own = train.Trainer(
        loss, optax.sgd(0.0), inputs=["x", "y"], metrics={"mean": so.mean(prediction)}
    )
    _, metrics = own.step(own.init(0, x=(16, 3)), {n: a[:16] for n, a in data().items()})
    assert set(metrics) == {"loss", "mean"}


def test_initial_values():
    prediction, _ = regression()
    arrays = train.initialize(prediction, jax.random.key(0), x=(4000, 3))
    assert arrays["fc1_bias"].tolist() == [0.0] * 8
    assert arrays["bn_gamma"].tolist() == [1.0] * 8
    assert arrays["bn_moving_var"].tolist() == [1.0] * 8
    layer = so.fully_connected(so.var("x"), units=500, name="wide")
    wide = train.initialize(layer, jax.random.key(0), x=(1, 200))
    assert float(jnp.std(wide["wide_weight"])) == pytest.approx((2.0 / 200) ** 0.5, rel=0.05)


def fitted(**changes):
    own = trainer()
    options = {"data": data(), "epochs": 1, "batch_size": 16, "progress": False, **changes}
    own.fit(own.init(0, x=(16, 3)), **options)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: train.Trainer(regression()[1], optax.sgd(1.0), inputs=["z"]), FeedError, "'z'"),
        (lambda: fitted(data={"x": np.zeros((4, 3))}), ArgumentError, "x, y"),
        (lambda: fitted(data=data(8)), ArgumentError, "at most 8"),
    ],
)
def test_misuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_loss_must_be_a_scalar():
    x = so.var("x", shape=(3,))
    own = train.Trainer(so.square(x - so.var("w", shape=(3,))), optax.sgd(0.1), inputs=["x"])
    with pytest.raises(ArgumentError, match=r"shape \(\)"):
        own.step(own.init(), {"x": np.zeros(3, np.float32)})


def test_history_is_drawn(tmp_path):
    history = [{"loss": 1.0, "accuracy": 0.5}, {"loss": 0.5, "accuracy": 0.75}]
    figure = train.plot_history(history, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert len(figure.axes) == 2


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("tqdm", lambda: fitted(progress=True)),
        ("matplotlib.figure", lambda: train.plot_history([{"loss": 1.0}])),
    ],
)
def test_a_missing_package_names_the_extra_that_brings_it(monkeypatch, package, call):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"symop\[train\]"):
        call()
