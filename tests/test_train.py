"""Training: the step, the loop, initial values, and what they refuse."""

import pickle
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import symop as so
from registry.errors import ArgumentError, FeedError, MissingExtraError, ShapeError
from symop import train
from symop.training import progress


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
    weight = state.params["fc1_weight"]
    new, _ = own.step(state, batch)
    assert weight.is_deleted()
    assert new is state
    assert not new.params["fc1_weight"].is_deleted()


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
    x, w = so.var("x", shape=(3,)), so.var("w", shape=(3,))
    with pytest.raises(ArgumentError, match=r"Trainer: the loss must be of shape \(\), got \(3,\)"):
        train.Trainer(so.square(x - w), optax.sgd(0.1), inputs=["x"])
    own = train.Trainer(so.square(so.var("x") - w), optax.sgd(0.1), inputs=["x"])
    with pytest.raises(ArgumentError, match=r"shape \(\)"):
        own.step(own.init(x=(3,)), {"x": np.zeros(3, np.float32)})


def test_a_seed_or_its_key():
    own = trainer()
    seeds = 7, jax.random.key(7), jax.random.PRNGKey(7)
    by_seed, by_key, raw = [own.init(seed, x=(16, 3)) for seed in seeds]
    for name, value in by_seed.params.items():
        np.testing.assert_array_equal(value, by_key.params[name])
        np.testing.assert_array_equal(value, raw.params[name])
    with pytest.raises(ArgumentError, match=r"init: seed must be an integer or a random key"):
        own.init(0.5, x=(16, 3))


def test_history_is_drawn(tmp_path):
    history = [{"loss": 1.0, "accuracy": 0.5}, {"loss": 0.5, "accuracy": 0.75}]
    figure = train.plot_history(history, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert len(figure.axes) == 2


def test_a_missing_package_names_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"symop-jax\[train\]"):
        train.plot_history([{"loss": 1.0}])


def test_without_tqdm_fit_shows_no_bar_and_says_so_once(monkeypatch, caplog, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    progress.say_that_no_bar_is_shown.cache_clear()
    fitted(progress=True)
    fitted(progress=True)
    assert caplog.messages == [
        "progress bar of fit: tqdm must be installed; run  pip install 'symop-jax[train]'; "
        "fit goes on without it"
    ]
    assert capsys.readouterr().err == ""


def quadratic():
    """A loss whose least value is 1, at w = t."""
    t, w = so.var("t", shape=(3,)), so.var("w", shape=(3,))
    return so.sum(so.square(w - t)) + 1.0, {"t": np.arange(3, dtype=np.float32)}


class Scaled(NamedTuple):
    """An optimizer that pickle takes: its functions are no closures."""

    rate: float

    def init(self, params):
        return optax.EmptyState()

    def update(self, updates, state, params=None):
        return jax.tree.map(lambda one: -self.rate * one, updates), state


@pytest.mark.parametrize(
    "optimizer",
    [
        optax.lbfgs(),
        optax.lbfgs(linesearch=optax.scale_by_backtracking_linesearch(20)),
        optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau(patience=5)),
    ],
)
def test_an_optimizer_that_evaluates_the_loss(optimizer):
    loss, batch = quadratic()
    own = train.Trainer(loss, optimizer, inputs=["t"])
    state = own.init(0)
    for _ in range(40):
        state, values = own.step(state, batch)
    assert float(values["loss"]) == pytest.approx(1.0, abs=1e-3)
    assert own._step._cache_size() <= 2


def ascent():
    """The adversarial optimizer of sharpness-aware minimization."""
    return optax.chain(optax.contrib.normalize(), optax.sgd(0.1))


class Own:
    """An optimizer without the classes of optax, whose first parameter has the name of another."""

    def init(self, params):
        return ()

    def update(self, value, state, params, grad_fn):
        return jax.tree.map(lambda one: -0.1 * one, grad_fn(params)), state


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("optimizer", "extra"),
    [
        (optax.MultiSteps(optax.lbfgs(), 2), ["value", "grad", "value_fn"]),
        (
            optax.MultiSteps(
                optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau(patience=1)), 2
            ).gradient_transformation(),
            ["value"],
        ),
        (optax.contrib.sam(optax.sgd(0.05), ascent()), []),
        (optax.contrib.sam(optax.adam(0.1), ascent(), opaque_mode=True), ["grad_fn"]),
        (optax.contrib.sophia(0.1), ["obj_fn"]),
        (Own(), ["grad_fn"]),
    ],
    ids=["lbfgs", "plateau", "sam", "opaque sam", "sophia", "own"],
)
def test_an_optimizer_receives_the_extra_arguments_that_it_takes(optimizer, extra):
    loss, batch = quadratic()
    own = train.Trainer(loss, optimizer, inputs=["t"])
    state = own.init(0)
    params = jax.tree.map(jnp.copy, state.params)
    opt_state = optimizer.init(params)

    def plain(params):
        return jnp.sum(jnp.square(params["w"] - batch["t"])) + 1.0

    for _ in range(5):
        state, values = own.step(state, batch)
        value, grad = jax.value_and_grad(plain)(params)
        known = {"value": value, "grad": grad, "value_fn": plain, "obj_fn": plain}
        known["grad_fn"] = lambda params, *_: jax.grad(plain)(params)
        more = {name: known[name] for name in extra}
        updates, opt_state = optimizer.update(grad, opt_state, params, **more)
        params = optax.apply_updates(params, updates)
        assert float(values["loss"]) == pytest.approx(float(value), rel=1e-5)
        np.testing.assert_allclose(state.params["w"], params["w"], rtol=1e-5, atol=1e-5)


def test_a_line_search_after_an_optimizer_that_evaluates_gradients():
    loss, batch = quadratic()
    search = optax.scale_by_backtracking_linesearch(20)
    own = train.Trainer(loss, optax.chain(optax.contrib.sophia(1.0), search), inputs=["t"])
    state = own.init(0)
    losses = []
    for _ in range(10):
        state, values = own.step(state, batch)
        losses.append(float(values["loss"]))
    assert losses[-1] - 1 < (losses[0] - 1) / 2


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (optax.lookahead(optax.sgd(0.1), 5, 0.5), "'fast'"),
        (optax.chain(optax.contrib.sam(optax.sgd(0.1), ascent())), "'value'"),
        (optax.masked(optax.lbfgs(), {"w": True, "unused": False}), "MaskedNode"),
    ],
)
def test_an_optimizer_that_needs_something_else(optimizer, message):
    loss, batch = quadratic()
    loss = loss + 0.0 * so.var("unused", shape=())
    own = train.Trainer(loss, optimizer, inputs=["t"])
    state = own.init(0)
    with pytest.raises(ArgumentError, match=rf"step: the optimizer must(.|\n)*{message}"):
        own.step(state, batch)
    assert int(state.step) == 0
    assert not state.params["w"].is_deleted()


def test_an_optimizer_that_takes_no_such_parameters():
    own = train.Trainer(quadratic()[0], optax.masked(optax.adam(0.1), ["w"]), inputs=["t"])
    with pytest.raises(ArgumentError, match=r"init: the optimizer must accept a dict of"):
        own.init(0)


def test_an_optimizer_has_two_functions():
    with pytest.raises(ArgumentError, match="Trainer: the optimizer must have the functions init"):
        train.Trainer(quadratic()[0], optax.adam, inputs=["t"])


def test_a_line_search_draws_the_same_and_leaves_states_alone():
    _, loss = regression()
    own = train.Trainer(loss, optax.lbfgs(), inputs=["x", "y"])
    state = own.init(3, x=(16, 3))
    batch = {name: array[:16] for name, array in data().items()}
    first = None
    for _ in range(20):
        state, values = own.step(state, batch)
        first = float(values["loss"]) if first is None else first
    assert float(values["loss"]) < first / 2


def test_a_trainer_is_pickled_with_its_optimizer():
    loss, batch = quadratic()
    options = {"metrics": {"one": loss}, "accumulate": 1, "precision": "float16", "ema": 0.5}
    own = train.Trainer(loss, Scaled(0.25), inputs=["t"], **options)
    state, _ = own.step(own.init(0), batch)
    again, kept = pickle.loads(pickle.dumps((own, state)))
    for _ in range(3):
        state, values = own.step(state, batch)
        kept, others = again.step(kept, batch)
    assert float(values["one"]) == float(others["one"])
    assert np.array_equal(state.params["w"], kept.params["w"])
    assert np.array_equal(state.average["w"], kept.average["w"])
    assert float(kept.scale.factor) == 2.0**15
    assert np.array_equal(jax.random.key_data(state.key), jax.random.key_data(kept.key))


def test_init_takes_a_batch_of_another_length_than_declared():
    loss = so.mean(so.square(so.var("x", shape=(8, 3)) @ so.var("w", shape=(3,))))
    own = train.Trainer(loss, optax.sgd(0.1), inputs=["x"])
    state, batch = own.init(0, x=np.ones((5, 3), np.float32)), {"x": np.ones((5, 3), np.float32)}
    np.testing.assert_array_equal(state.params["w"], own.init(0).params["w"])
    assert own.struct(x=(5, 3)).params["w"].shape == (3,)
    own.step(state, batch)
    for shapes in ({"x": (5, 4)}, {"w": (4,)}, {"x": (5, 3), "w": (2,)}):
        with pytest.raises(ShapeError, match=f"{[*shapes][-1]}: the shape must be the declared"):
            own.init(0, **shapes)


def test_init_draws_no_inputs():
    def loss_of(**how):
        return so.mean(so.square(so.var("x", **how) @ so.var("w", shape=(3, 2))))

    loss = loss_of(initial=[1.0, 2.0])  # of another length than the batch
    state = train.Trainer(loss, optax.sgd(0.1), inputs=["x"]).init(0, x=(3,))
    own, _ = jax.random.split(jax.random.key(0))
    np.testing.assert_array_equal(
        state.params["w"], train.initialize(loss_of(shape=(3,)), own)["w"]
    )
    with pytest.raises(ArgumentError, match=r"must fit 'x'"):
        train.initialize(loss, own, x=(3,))
