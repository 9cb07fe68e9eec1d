"""Steps of a trainer with options, against loops that are written by hand in JAX and optax."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import symop as so
from registry.errors import ArgumentError, FeedError, ShapeError, UnknownTypeError
from registry.values import SelectedRows
from symop import train
from symop.graph.nodes import topological
from symop.passes.mixed_precision import narrow
from symop.training.optimizers import learning_rate_of


def network(batch=None):
    """A classifier without randomness or states."""
    x = so.var("x", None if batch is None else (batch, 6))
    y = so.var("y", None if batch is None else (batch,), "int32")
    hidden = so.tanh(so.fully_connected(x, units=8, name="a"))
    logits = so.fully_connected(hidden, units=4, name="b")
    return logits, so.mean(so.softmax_cross_entropy(logits, y))


def by_hand(params, batch):
    hidden = jnp.tanh(batch["x"] @ params["a_weight"].T + params["a_bias"])
    logits = hidden @ params["b_weight"].T + params["b_bias"]
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"])
    return jnp.mean(losses)


def data(count=24, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(count, 6)).astype(np.float32)
    return {"x": x, "y": np.argmax(x[:, :4], axis=1).astype(np.int32)}


def trained(trainer, state, steps=4, batch=None):
    for i in range(steps):
        state, values = trainer.step(state, batch or data(seed=i))
    return state, values


def looped(optimizer, params, steps=4, value_and_grad=None):
    """The same steps in plain JAX."""
    value_and_grad = value_and_grad or jax.value_and_grad(by_hand)
    opt_state = optimizer.init(params)

    @jax.jit
    def step(params, opt_state, batch):
        value, gradients = value_and_grad(params, batch)
        updates, opt_state = optimizer.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    for i in range(steps):
        params, opt_state, value = step(params, opt_state, data(seed=i))
    return params, value


def copies(params):
    return jax.tree.map(jnp.copy, params)


def close(found, expected, **tolerances):
    """Sums round at the scale of their largest terms, so that small entries have larger errors."""
    assert found.keys() == expected.keys()
    for name, one in expected.items():
        rounding = np.finfo(np.float32).eps * np.abs(one).max()
        limits = tolerances or {"rtol": 2e-5, "atol": rounding}
        np.testing.assert_allclose(found[name], one, err_msg=name, **limits)


# Optimizers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "optimizer"),
    [
        ("adam", {}, optax.adam(1e-3)),
        (
            "adamw",
            {"learning_rate": 0.01, "weight_decay": 0.1},
            optax.adamw(0.01, weight_decay=0.1),
        ),
        ("momentum", {"learning_rate": 0.1}, optax.sgd(0.1, momentum=0.9)),
        (
            "sgd",
            {"learning_rate": 0.5, "clip": 0.1},
            optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.5)),
        ),
        (
            "lion",
            {"learning_rate": optax.cosine_decay_schedule(0.01, 4)},
            optax.lion(optax.cosine_decay_schedule(0.01, 4)),
        ),
        ("sgd", {"learning_rate": 0.5, "accumulate": 2}, optax.MultiSteps(optax.sgd(0.5), 2)),
    ],
)
def test_an_optimizer_by_name_is_that_of_optax(name, options, optimizer):
    trainer = train.Trainer(network()[1], train.optimizer(name, **options), inputs=["x", "y"])
    state = trainer.init(0, x=(24, 6), y=(24,))
    expected, value = looped(optimizer, copies(state.params))
    state, values = trained(trainer, state)
    close(state.params, expected, rtol=1e-4, atol=1e-6)
    assert float(values["loss"]) == pytest.approx(float(value), rel=1e-5)


def test_a_trainer_takes_the_name_of_an_optimizer():
    trainer = train.Trainer(network()[1], "adam", inputs=["x", "y"])
    state = trainer.init(0, x=(24, 6), y=(24,))
    assert float(learning_rate_of(state.opt_state)) == pytest.approx(1e-3)
    expected, _ = looped(optax.adam(1e-3), copies(state.params))
    close(trained(trainer, state)[0].params, expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: train.optimizer("adamm"), r"got 'adamm'; did you mean .*'adam'"),
        (lambda: train.Trainer(network()[1], "adan_", inputs=["x"]), "got 'adan_'; did you mean"),
        (lambda: train.optimizer("lars"), "learning_rate must be given for 'lars'"),
        (lambda: train.optimizer("adam", bet1=0.5), "an option of 'adam' .* got 'bet1'"),
        (lambda: train.optimizer("scale_by_learning_rate"), "must be that of an optimizer"),
        (lambda: train.Trainer(network()[1], "sgd", inputs=["x"], accumulate=0), "accumulate"),
        (lambda: train.Trainer(network()[1], "sgd", inputs=["x"], ema=1.0), "ema must be"),
        (lambda: train.Precision("float4"), "compute must be one of float8, bfloat16"),
        (lambda: train.Precision(parameters="float8"), "parameters must be one of bfloat16"),
        (lambda: train.Precision(rounding="up"), "rounding must be one of nearest, stochastic"),
        (lambda: train.Trainer(network()[1], "sgd", inputs=["x"], precision="b16"), "got 'b16'"),
    ],
)
def test_misuse(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_lbfgs_is_the_loop_of_optax():
    trainer = train.Trainer(network()[1], "lbfgs", inputs=["x", "y"])
    state = trainer.init(0, x=(24, 6), y=(24,))
    params, batch, optimizer = copies(state.params), data(), optax.lbfgs()
    opt_state = optimizer.init(params)
    value_of = functools.partial(by_hand, batch=batch)
    value_and_grad = optax.value_and_grad_from_state(value_of)

    @jax.jit
    def step(params, opt_state):
        value, grad = value_and_grad(params, state=opt_state)
        updates, opt_state = optimizer.update(
            grad, opt_state, params, value=value, grad=grad, value_fn=value_of
        )
        return optax.apply_updates(params, updates), opt_state

    for _ in range(5):
        params, opt_state = step(params, opt_state)
    state, _ = trained(trainer, state, 5, batch)
    close(state.params, params, rtol=2e-3, atol=1e-4)
    assert float(by_hand(state.params, batch)) == pytest.approx(
        float(by_hand(params, batch)), rel=1e-3
    )


def contrib():
    """The optimizers of optax.contrib that need only gradients, parameters, and the loss."""
    rate = 1e-2
    return {
        "muon": optax.contrib.muon(rate),
        "prodigy": optax.contrib.prodigy(),
        "schedule_free": optax.contrib.schedule_free_sgd(rate),
        "dadapt": optax.contrib.dadapt_adamw(),
        "momo": optax.contrib.momo(rate),
        "dog": optax.contrib.dog(),
        "cocob": optax.contrib.cocob(),
        "polyak": optax.polyak_sgd(),
    }


@pytest.mark.parametrize("name", contrib())
@pytest.mark.sampled(3)
def test_optimizers_of_contrib(name):
    optimizer = contrib()[name]
    trainer = train.Trainer(network()[1], optimizer, inputs=["x", "y"])
    state = trainer.init(0, x=(24, 6), y=(24,))
    params = copies(state.params)
    opt_state, takes_value = optimizer.init(params), name in ("momo", "polyak")

    @jax.jit
    def step(params, opt_state, batch):
        value, gradients = jax.value_and_grad(by_hand)(params, batch)
        more = {"value": value} if takes_value else {}
        updates, opt_state = optimizer.update(gradients, opt_state, params, **more)
        return optax.apply_updates(params, updates), opt_state

    for i in range(4):
        params, opt_state = step(params, opt_state, data(seed=i))
    close(trained(trainer, state)[0].params, params, rtol=1e-3, atol=1e-5)


# Lengths of batches ------------------------------------------------------------------------------


def test_a_step_takes_batches_of_other_lengths_than_declared():
    trainer = train.Trainer(network(batch=8)[1], optax.sgd(0.5), inputs=["x", "y"])
    state = trainer.init(0)
    params = copies(state.params)
    for count in (8, 5, 24, 8):
        state, values = trainer.step(state, data(count))
        value, gradients = jax.value_and_grad(by_hand)(params, data(count))
        params = jax.tree.map(lambda p, g: p - 0.5 * g, params, gradients)
        assert float(values["loss"]) == pytest.approx(float(value), rel=1e-5)
    close(state.params, params)
    with pytest.raises(FeedError, match=r"x: an array of shape \(8, 6\) must be fed, got \(8, 5\)"):
        trainer.step(state, {**data(8), "x": np.zeros((8, 5), np.float32)})


def test_value_and_grad_takes_batches_of_other_lengths_than_declared():
    _, loss = network(batch=8)
    names = ["a_weight", "a_bias", "b_weight", "b_bias"]
    function = so.value_and_grad(loss, names)
    params = train.initialize(loss, jax.random.key(0))
    params = {name: params[name] for name in names}
    for count in (8, 3, 8):
        value, gradients = jax.jit(function)(**params, **data(count))
        expected, slopes = jax.value_and_grad(by_hand)(params, data(count))
        assert float(value) == pytest.approx(float(expected), rel=1e-5)
        close(gradients, slopes, rtol=1e-4, atol=1e-6)
    wide = {**params, "a_bias": np.zeros(9, np.float32)}
    with pytest.raises(FeedError, match="a_bias: an array of shape"):
        function(**wide, **data(8))


def test_a_graph_with_a_gradient_takes_its_own_lengths_only():
    x, w = so.var("x", (4, 3)), so.var("w", (3,))
    slope = so.grad(so.mean(so.square(so.matmul(x, w))), w)
    trainer = train.Trainer(so.sum(slope * slope), "sgd", inputs=["x"])
    state = trainer.init(0)
    with pytest.raises(FeedError, match=r"x: an array of shape \(4, 3\) must be fed"):
        trainer.step(state, {"x": np.ones((6, 3), np.float32)})
    trainer.step(state, {"x": np.ones((4, 3), np.float32)})


def test_an_attribute_that_holds_the_length_is_named():
    x, w = so.var("x", (8, 6)), so.var("w", (3,))
    loss = so.mean(so.matmul(so.reshape(x, shape=(8, 2, 3)), w))
    trainer = train.Trainer(loss, "sgd", inputs=["x"], accumulate=2)
    with pytest.raises(
        ShapeError, match=r"reshape: (.|\n)*\(x \(4, 6\) for \(8, 6\)\); an attribute"
    ):
        trainer.step(trainer.init(0), {"x": np.ones((8, 6), np.float32)})


# Accumulation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", [optax.adam(0.01), optax.lbfgs()], ids=["adam", "lbfgs"])
def test_accumulation_is_the_big_batch(optimizer):
    logits, loss = network()
    label = so.var("y", dtype="int32")
    metrics = {
        "right": so.mean(so.cast(so.equal(so.argmax(logits, axis=-1), label), dtype="float32"))
    }
    states = []
    for accumulate in (1, 4):
        trainer = train.Trainer(
            loss, optimizer, inputs=["x", "y"], metrics=metrics, accumulate=accumulate
        )
        state, values = trained(trainer, trainer.init(0, x=(24, 6), y=(24,)), 3)
        states.append((state, values))
    (one, single), (many, several) = states
    close(many.params, one.params, rtol=2e-3, atol=1e-4)
    close(several, single, rtol=1e-4)


def test_parts_take_every_nth_example_and_states_see_one_after_the_other():
    x = so.var("x")
    normal = so.batch_norm(x, name="norm")
    trainer = train.Trainer(so.mean(normal * normal), optax.sgd(0.1), inputs=["x"], accumulate=2)
    state = trainer.init(0, x=(8, 3))
    gamma, beta = (np.asarray(state.params[f"norm_{one}"]) for one in ("gamma", "beta"))
    mean = np.asarray(state.states["norm_moving_mean"])
    batch = data(8)["x"][:, :3]
    state, values = trainer.step(state, {"x": batch})
    losses = []
    for part in (batch[::2], batch[1::2]):
        scaled = (part - part.mean(0)) / np.sqrt(part.var(0) + 1e-5)
        losses.append(np.mean((scaled * gamma + beta) ** 2))
        mean = 0.9 * mean + 0.1 * part.mean(0)
    np.testing.assert_allclose(state.states["norm_moving_mean"], mean, rtol=1e-4, atol=1e-7)
    assert float(values["loss"]) == pytest.approx(np.mean(losses), rel=1e-4)


def test_accumulated_rows_are_those_of_all_parts():
    table, ids = so.var("table", (10, 2)), so.var("ids", dtype="int32")
    loss = so.mean(so.square(so.lookup_table(table, ids, sparse=True)))

    def update(gradients, state, params=None):
        assert isinstance(gradients["table"], SelectedRows)
        dense = {"table": -gradients["table"].to_dense()}
        return dense, state

    optimizer = optax.GradientTransformation(lambda params: (), update)
    tables = []
    for accumulate in (1, 3):
        trainer = train.Trainer(loss, optimizer, inputs=["ids"], accumulate=accumulate)
        state = trainer.init(0, ids=(6,))
        state, _ = trainer.step(state, {"ids": np.array([0, 3, 3, 9, 1, 0], np.int32)})
        tables.append(state.params["table"])
    np.testing.assert_allclose(tables[1], tables[0], rtol=1e-5)


def test_a_batch_must_have_equal_parts():
    trainer = train.Trainer(network()[1], "sgd", inputs=["x", "y"], accumulate=5)
    state = trainer.init(0, x=(24, 6), y=(24,))
    with pytest.raises(FeedError, match=r"step: 'x': .* divisible by 5, .* got 24"):
        trainer.step(state, data())


# Averages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("decay", [0.9, lambda step: jnp.minimum(0.9, (1 + step) / (10 + step))])
def test_averages_are_those_of_the_formula(decay):
    trainer = train.Trainer(network()[1], optax.sgd(0.5), inputs=["x", "y"], ema=decay)
    state = trainer.init(0, x=(24, 6), y=(24,))
    expected = {name: np.asarray(one) for name, one in state.params.items()}
    for i in range(4):
        state, _ = trainer.step(state, data(seed=i))
        kept = float(decay(i)) if callable(decay) else decay
        expected = {
            n: kept * one + (1 - kept) * np.asarray(state.params[n]) for n, one in expected.items()
        }
    close(state.average, expected)
    loss = trainer.evaluate(state, data(), averaged=True)["loss"]
    assert loss == pytest.approx(float(by_hand(expected, data())), rel=1e-5)
    assert loss != pytest.approx(trainer.evaluate(state, data())["loss"], rel=1e-4)


def test_averages_start_like_those_of_optax_without_bias():
    """From zero parameters the two formulas are the same."""
    w, t = so.var("w", (3,)), so.var("t", (3,))
    trainer = train.Trainer(so.sum(so.square(w - t)), optax.sgd(0.1), inputs=["t"], ema=0.8)
    zeros = {"w": jnp.zeros(3)}
    average, state = optax.ema(0.8, debias=False), trainer.init(0)
    state = state._replace(params=zeros, average=zeros)
    kept = average.init({"w": jnp.zeros(3)})
    for _ in range(4):
        state, _ = trainer.step(state, {"t": np.ones(3, np.float32)})
        expected, kept = average.update({"w": state.params["w"]}, kept)
    close(state.average, expected)


# Precision ---------------------------------------------------------------------------------------


def test_bfloat16_is_the_network_with_casts_by_hand():
    def mixed(params, batch):
        low = {name: one.astype(jnp.bfloat16) for name, one in params.items()}
        hidden = batch["x"].astype(jnp.bfloat16) @ low["a_weight"].T + low["a_bias"]
        hidden = jnp.tanh(hidden)
        logits = (hidden @ low["b_weight"].T + low["b_bias"]).astype(jnp.float32)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"])
        return jnp.mean(losses)

    trainer = train.Trainer(network()[1], optax.sgd(0.5), inputs=["x", "y"], precision="bfloat16")
    state = trainer.init(0, x=(24, 6), y=(24,))
    start = copies(state.params)
    expected, value = looped(
        optax.sgd(0.5), copies(start), value_and_grad=jax.value_and_grad(mixed)
    )
    state, values = trained(trainer, state)
    close(state.params, expected, rtol=0, atol=4e-3)
    assert float(values["loss"]) == pytest.approx(float(value), rel=5e-3)
    assert values["loss"].dtype == jnp.float32
    assert {one.dtype for one in state.params.values()} == {np.dtype(np.float32)}
    exact, _ = looped(optax.sgd(0.5), start)
    close(state.params, exact, rtol=0, atol=2e-2)
    assert any(not np.array_equal(one, exact[name]) for name, one in state.params.items())


def dtypes(outputs, dtype="bfloat16"):
    """The operators of a graph that compute values of a dtype."""
    order = topological(narrow(outputs, np.dtype(jnp.dtype(dtype))))
    return {n.op.name for n in order if n.types and n.inputs and n.type.dtype == dtype} - {"cast"}


def test_what_is_narrow_follows_from_products():
    x, w, v = so.var("x", (8, 6)), so.var("w", (6, 6)), so.var("v", (6, 4))
    hidden = so.layer_norm(so.matmul(so.sin(x), w), so.var("g", (6,)), so.var("b", (6,)))
    logits = so.matmul(so.relu(hidden), v)
    loss = so.mean(so.logsumexp(so.tanh(logits), axis=-1)) + so.sum(so.square(w))
    found = dtypes([loss.node])
    assert {"matmul", "layer_norm", "relu"} <= found
    assert not found & {"sin", "tanh", "logsumexp", "mean", "square", "sum", "add"}
    assert narrow([loss.node], np.dtype(jnp.bfloat16))[0].type.dtype == np.float32


def test_factorizations_are_not_narrow():
    a, b = so.var("a", (4, 4)), so.var("b", (4, 4))
    spread = so.cholesky(so.matmul(a, so.swapaxes(a, axis1=0, axis2=1)) + so.var("eye", (4, 4)))
    assert dtypes([so.sum(so.matmul(spread, b)).node]) == {"matmul", "add"}


def test_bodies_of_loops_are_narrow_inside():
    xs, h, w = so.var("xs", (5, 2, 3)), so.var("h", (2, 3)), so.var("w", (3, 3))

    def body(h, x):
        h = so.tanh(so.matmul(h, w) + x)
        return h, h

    last, _ = so.scan(body, h, xs)
    trainers = [
        train.Trainer(so.mean(so.square(last)), optax.sgd(0.1), inputs=["xs", "h"], precision=one)
        for one in (None, "bfloat16")
    ]
    batch = {"xs": np.ones((5, 2, 3), np.float32), "h": np.zeros((2, 3), np.float32)}
    exact, mixed = (trained(one, one.init(0), 1, batch)[0].params["w"] for one in trainers)
    assert not np.array_equal(exact, mixed)
    np.testing.assert_allclose(mixed, exact, rtol=0.05, atol=5e-3)


def test_batch_statistics_stay_in_float32():
    x, y = so.var("x"), so.var("y", dtype="int32")
    hidden = so.batch_norm(so.fully_connected(x, units=8, name="a"), name="norm")
    loss = so.mean(so.softmax_cross_entropy(so.fully_connected(so.relu(hidden), units=4), y))
    states = []
    for precision in (None, "bfloat16"):
        trainer = train.Trainer(loss, optax.sgd(0.1), inputs=["x", "y"], precision=precision)
        states.append(trained(trainer, trainer.init(0, x=(24, 6), y=(24,)), 1, data())[0].states)
    for name, one in states[0].items():
        assert states[1][name].dtype == one.dtype == np.float32
        np.testing.assert_allclose(states[1][name], one, rtol=0.02, atol=2e-3)


def test_parameters_may_be_kept_in_half_precision():
    policy = train.Precision("bfloat16", parameters="bfloat16")
    trainer = train.Trainer(network()[1], "adam", inputs=["x", "y"], precision=policy, ema=0.9)
    state = trainer.init(0, x=(24, 6), y=(24,))
    first = trainer.evaluate(state, data())["loss"]
    state, _ = trained(trainer, state, 20)
    assert {one.dtype for one in state.params.values()} == {np.dtype(jnp.bfloat16)}
    assert {one.dtype for one in state.average.values()} == {np.dtype(np.float32)}
    assert trainer.evaluate(state, data())["loss"] < first


def test_products_with_weights_are_in_8_bits():
    trainer = train.Trainer(network()[1], optax.sgd(0.5), inputs=["x", "y"], precision="float8")
    state = trainer.init(0, x=(24, 6), y=(24,))
    start = copies(state.params)
    state, values = trained(trainer, state)
    exact, value = looped(optax.sgd(0.5), start)
    assert {one.dtype for one in state.params.values()} == {np.dtype(np.float32)}
    assert float(values["loss"]) == pytest.approx(float(value), rel=0.05)
    close(state.params, exact, rtol=0, atol=0.1)  # an entry of 8 bits is within 1 / 16
    assert any(not np.array_equal(one, exact[name]) for name, one in state.params.items())


def test_8_bits_are_those_of_float8_matmul():
    x, w, b = so.var("x", (2, 3, 4)), so.var("w", (5, 4)), so.var("b", (5,))
    m = so.var("m", (5, 2))
    hidden = so.fully_connected(x, w, b, units=5, flatten=False)
    outputs = narrow([so.matmul(hidden, m).node], np.dtype(jnp.bfloat16), eight_bits=True)
    names = [one.op.name for one in topological(outputs) if one.inputs]
    assert names.count("float8_matmul") == 2
    assert not {"fully_connected", "matmul"}.intersection(names)
    assert outputs[0].type.shape == (2, 3, 2)
    product = so.matmul(x, so.var("y", (2, 4, 5)))  # of two batches of matrices: no weight
    assert "float8_matmul" not in dtypes([product.node])


def test_stochastic_rounding_keeps_small_updates():
    """An update of 1e-3 is less than half of the distance of 2^-7 between neighbors of 1."""
    w, t = so.var("w", (2000,)), so.var("t", ())
    states = {}
    for rounding in ("nearest", "stochastic"):
        policy = train.Precision("float32", parameters="bfloat16", rounding=rounding)
        trainer = train.Trainer(so.sum(w) * t, "sgd", inputs=["t"], precision=policy)
        state = trainer.init(0)
        state = state._replace(params={"w": jnp.ones(2000, jnp.bfloat16)})
        for _ in range(10):
            state, _ = trainer.step(state, {"t": np.float32(-0.1)})
        states[rounding] = state.params["w"]
        assert states[rounding].dtype == jnp.bfloat16
    assert np.all(states["nearest"] == 1)
    mean = states["stochastic"].astype(np.float32).mean()
    # The mean of 2,000 entries; each of 10 steps has a variance of at most 1e-3 * 2^-7.
    assert mean == pytest.approx(1.01, abs=5 * np.sqrt(10 * 1e-3 * 2.0**-7 / 2000))


def test_moments_beside_stochastic_rounding_are_single():
    policy = train.Precision(parameters="bfloat16", rounding="stochastic")
    for optimizer in ("adam", so.optim.Adam(0.01)):
        trainer = train.Trainer(network()[1], optimizer, inputs=["x", "y"], precision=policy)
        state = trainer.init(0, x=(24, 6), y=(24,))
        first = trainer.evaluate(state, data())["loss"]
        before = jax.tree.map(lambda one: one.dtype, (state.params, state.opt_state))
        state, _ = trained(trainer, state, 20)
        assert before == jax.tree.map(lambda one: one.dtype, (state.params, state.opt_state))
        assert {one.dtype for one in state.params.values()} == {np.dtype(jnp.bfloat16)}
        assert trainer.evaluate(state, data())["loss"] < first


def test_loss_scaling_skips_steps_that_overflow():
    scale = train.LossScale(initial=2.0**24, interval=2, change=2.0**8)
    policy = train.Precision("float16", loss_scale=scale)
    trainer = train.Trainer(network()[1], optax.sgd(0.5), inputs=["x", "y"], precision=policy)
    state = trainer.init(0, x=(24, 6), y=(24,))
    before = copies(state.params)
    state, values = trainer.step(state, data())
    assert np.isfinite(float(values["loss"]))
    close(state.params, before, rtol=0)
    assert (float(state.scale.factor), int(state.step)) == (2.0**16, 1)
    state, _ = trainer.step(state, data(seed=1))
    expected, _ = looped(
        optax.sgd(0.5), before, 1, lambda p, b: jax.value_and_grad(by_hand)(p, data(seed=1))
    )
    close(state.params, expected, rtol=0, atol=5e-3)
    state, _ = trainer.step(state, data(seed=2))
    assert (float(state.scale.factor), int(state.scale.good)) == (2.0**24, 0)


def test_float16_has_loss_scaling_by_default():
    trainer = train.Trainer(network()[1], "sgd", inputs=["x", "y"], precision="float16")
    assert float(trainer.init(0, x=(24, 6), y=(24,)).scale.factor) == 2.0**15
    assert train.Precision("bfloat16").loss_scale is None


# Evaluation --------------------------------------------------------------------------------------


def test_evaluation_counts_all_examples_alike():
    logits, loss = network()
    label = so.var("y", dtype="int32")
    right = so.mean(so.cast(so.equal(so.argmax(logits, axis=-1), label), dtype="float32"))
    trainer = train.Trainer(loss, "sgd", inputs=["x", "y"], metrics={"accuracy": right})
    state = trainer.init(0, x=(24, 6), y=(24,))
    held = data(23, seed=5)
    w = {name: np.asarray(one, np.float64) for name, one in state.params.items()}
    scores = np.tanh(held["x"] @ w["a_weight"].T + w["a_bias"]) @ w["b_weight"].T + w["b_bias"]
    accuracy = np.mean(np.argmax(scores, axis=1) == held["y"])
    shifted = np.log(np.exp(scores).sum(1)) - scores[np.arange(23), held["y"]]
    batches = [{n: one[i : i + 10] for n, one in held.items()} for i in range(0, 23, 10)]
    for given in ({"data": held, "batch_size": 10}, {"data": held}, {"data": batches}):
        found = trainer.evaluate(state, **given)
        assert found["accuracy"] == pytest.approx(accuracy, abs=1e-6)
        assert found["loss"] == pytest.approx(shifted.mean(), rel=1e-5)
    with pytest.raises(ArgumentError, match="there must be an example"):
        trainer.evaluate(state, [])
    with pytest.raises(ArgumentError, match="must keep averages"):
        trainer.evaluate(state, held, averaged=True)


def test_evaluation_is_that_of_prediction():
    x, y = so.var("x"), so.var("y", dtype="int32")
    hidden = so.batch_norm(so.dropout(so.fully_connected(x, units=8), rate=0.5), name="norm")
    loss = so.mean(so.softmax_cross_entropy(so.fully_connected(hidden, units=4), y))
    trainer = train.Trainer(loss, "sgd", inputs=["x", "y"])
    state, _ = trained(trainer, trainer.init(jax.random.key(3), **data()))
    plain = loss.to_jax()(**data(), **state.params, **state.states)
    assert trainer.evaluate(state, data())["loss"] == pytest.approx(float(plain), rel=1e-6)


# Row-sparse gradients ----------------------------------------------------------------------------

IDS = [np.array(one, np.int32) for one in ([0, 3, 3, 9], [1, 1, 0, 2], [9, 9, 9, 5])]


def embedding(build):
    """The loss of a table and a dense layer; ``build`` declares the variables."""
    table, ids, w = build()
    hidden = so.matmul(so.lookup_table(table, ids, sparse=True), w)
    return so.mean(so.square(hidden - 1.0))


def by_program(optimizer):
    """The parameters that a program has after three steps, from ones."""
    with so.program_guard(so.Program()) as program:
        loss = embedding(
            lambda: (
                so.parameter("table", (10, 2), initial=1.0),
                so.data("ids", (4,), "int32"),
                so.parameter("w", (2, 3), initial=0.5),
            )
        )
    optimizer.minimize(loss)
    for ids in IDS:
        program.run({"ids": ids}, loss)
    return {name: np.asarray(program.values()[name]) for name in ("table", "w")}


@pytest.mark.parametrize(
    "make",
    [
        lambda: so.optim.SGD(0.5),
        lambda: so.optim.Adagrad(0.1, weight_decay=0.01),
        lambda: so.optim.Adam(0.1, lazy=True, clip=so.optim.ClipByGlobalNorm(0.5)),
        lambda: so.optim.Adam(
            lambda step: so.exponential_decay(
                step, init_value=0.1, transition_steps=2, decay_rate=0.5
            )
        ),
    ],
    ids=["sgd", "adagrad", "lazy adam", "scheduled adam"],
)
def test_optimizers_of_programs_train_as_in_a_program(make):
    loss = embedding(
        lambda: (so.var("table", (10, 2)), so.var("ids", (4,), "int32"), so.var("w", (2, 3)))
    )
    trainer = train.Trainer(loss, make(), inputs=["ids"])
    state = trainer.init(0)
    state = state._replace(params={"table": jnp.ones((10, 2)), "w": jnp.full((2, 3), 0.5)})
    for ids in IDS:
        state, _ = trainer.step(state, {"ids": ids})
    close(state.params, by_program(make()), rtol=1e-5)


def test_a_lazy_step_touches_only_the_rows_of_the_batch():
    table, ids = so.var("table", (1000, 8)), so.var("ids", (4,), "int32")
    loss = so.mean(so.square(so.lookup_table(table, ids, sparse=True)))
    trainer = train.Trainer(loss, so.optim.Adam(0.1, lazy=True), inputs=["ids"])
    state = trainer.init(0)
    before = np.asarray(state.params["table"])
    state, _ = trainer.step(state, {"ids": IDS[0]})
    changed = np.flatnonzero((np.asarray(state.params["table"]) != before).any(axis=1))
    assert changed.tolist() == [0, 3, 9]


@pytest.mark.parametrize(
    "optimizer", [optax.sgd(0.1), optax.adam(0.1), optax.chain(optax.clip_by_global_norm(1.0))]
)
def test_optimizers_of_optax_refuse_rows(optimizer):
    table, ids = so.var("table", (10, 2)), so.var("ids", (4,), "int32")
    loss = so.mean(so.square(so.lookup_table(table, ids, sparse=True)))
    trainer = train.Trainer(loss, optimizer, inputs=["ids"])
    with pytest.raises(ArgumentError, match=r"so.optim.Adam\(1e-3, lazy=True\).* rows of table"):
        trainer.step(trainer.init(0), {"ids": IDS[0]})


def test_a_trainer_accumulates_itself():
    trainer = train.Trainer(network()[1], so.optim.SGD(0.1, accumulate=2), inputs=["x", "y"])
    with pytest.raises(ArgumentError, match=r"SGD: in a trainer, accumulate and loss_scale must"):
        trainer.init(0, x=(24, 6), y=(24,))


def test_digits_are_learned_as_well_in_half_precision():
    from sklearn.datasets import load_digits  # noqa: PLC0415  # many tests of this file need it not

    images, labels = load_digits(return_X_y=True)
    held = {"image": images[:397] / 16, "label": labels[:397]}
    training = {"image": images[397:] / 16, "label": labels[397:]}
    image, label = so.var("image"), so.var("label", dtype="int32")
    hidden = so.relu(so.layer_norm(so.fully_connected(image, units=32, name="a"), name="norm"))
    logits = so.fully_connected(hidden, units=10, name="b")
    right = so.mean(so.equal(so.argmax(logits, axis=-1), label))
    results = {}
    for precision in (None, "bfloat16", "float16"):
        trainer = train.Trainer(
            so.mean(so.softmax_cross_entropy(logits, label)),
            "adam",
            inputs=["image", "label"],
            metrics={"accuracy": right},
            precision=precision,
        )
        state = trainer.init(0, image=(50, 64), label=(50,))
        state, _ = trainer.fit(state, training, epochs=8, batch_size=50, progress=False)
        results[precision] = trainer.evaluate(state, held)
        assert results[precision]["accuracy"] > 0.88
    for precision in ("bfloat16", "float16"):
        for name, tolerance in (("loss", 0.02), ("accuracy", 0.02)):
            assert results[precision][name] == pytest.approx(results[None][name], abs=tolerance)


# Stacked parameters ------------------------------------------------------------------------------


def deep_network(depth=6, norm=False, batch=8):
    """Layers with one shape, which become a loop."""
    h = so.var("x", (batch, 6))
    for i in range(depth):
        inner = so.batch_norm(h, name=f"norm{i}") if norm else h
        h = h + so.tanh(so.fully_connected(inner, units=6, name=f"layer{i}"))
    return so.mean(so.softmax_cross_entropy(h, so.var("y", (batch,), "int32")))


def of_eight(seed=0):
    return {name: one[:8] for name, one in data(seed=seed).items()}


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"ema": 0.9}, marks=pytest.mark.thorough),
        pytest.param({"accumulate": 2}, marks=pytest.mark.thorough),
        pytest.param({"precision": "bfloat16"}, marks=pytest.mark.thorough),
        pytest.param({"precision": train.Precision(compute="float16")}, marks=pytest.mark.thorough),
        pytest.param({"remat": so.remat.keep_costly()}, marks=pytest.mark.thorough),
    ],
    ids=str,
)
def test_stacked_parameters_train_like_single_ones(options):
    losses, params = [], []
    accumulates = "accumulate" in options
    for stacked in (False, True):
        loss = deep_network(norm=not accumulates, batch=4 if accumulates else 8)
        trainer = train.Trainer(
            loss, optax.adam(0.01), inputs=["x", "y"], stacked=stacked, **options
        )
        state = trainer.init(0)
        for i in range(3):
            state, values = trainer.step(state, of_eight(i))
        losses.append([values["loss"], trainer.evaluate(state, of_eight(9))["loss"]])
        params.append(trainer.unstack({**state.params, **state.states, **(state.average or {})}))
    # Where there are casts, the outer layers are not part of the loop.
    assert any(name.endswith("_weight") and state.params[name].ndim == 3 for name in trainer.stacks)
    # Sums have another order in a loop, and half precision shows it.
    rtol = 2e-2 if "precision" in options else 1e-4
    np.testing.assert_allclose(*losses, rtol=rtol)
    assert params[0].keys() == params[1].keys()
    for name, one in params[0].items():
        np.testing.assert_allclose(params[1][name], one, rtol=rtol, atol=rtol, err_msg=name)


def test_optimizers_that_evaluate_the_loss_do_so_with_stacks():
    trainer = train.Trainer(deep_network(), optax.polyak_sgd(), inputs=["x", "y"], stacked=True)
    state = trainer.init(0)
    state, first = trainer.step(state, of_eight())
    state, second = trainer.step(state, of_eight())
    assert second["loss"] < first["loss"]


def test_stacks_and_single_arrays_are_converted():
    trainer = train.Trainer(deep_network(), "sgd", inputs=["x", "y"], stacked=True)
    params = trainer.init(0).params
    single = trainer.unstack(params)
    assert single["layer3_bias"].shape == (6,)
    for name, one in trainer.stack(single).items():
        np.testing.assert_array_equal(params[name], one)
    with pytest.raises(FeedError, match="got no layer3_bias"):
        trainer.stack({name: one for name, one in single.items() if name != "layer3_bias"})


def test_stacks_need_shapes_and_one_device():
    loss = deep_network()
    with pytest.raises(UnknownTypeError, match="all shapes must be declared"):
        train.Trainer(network()[1], "sgd", inputs=["x", "y"], stacked=True)
    mesh = jax.make_mesh((1,), ("data",))
    with pytest.raises(ArgumentError, match="there must be no mesh"):
        train.Trainer(loss, "sgd", inputs=["x", "y"], stacked=True, mesh=mesh)
    state = train.Trainer(loss, "sgd", inputs=["x", "y"], stacked=True)
    with pytest.raises(FeedError):
        state.step(state.init(0), {name: one[:4] for name, one in of_eight().items()})


def test_inputs_that_a_loop_reads_are_no_stack():
    h = so.var("x0", (4,))
    names = [f"x{i}" for i in range(40)]
    for name in names[1:]:
        h = so.tanh(h * so.var("w", (4,)) + so.var(name, (4,)))
    with pytest.raises(ArgumentError, match="must not be read by a loop"):
        train.Trainer(so.sum(h), "sgd", inputs=names, stacked=True)
