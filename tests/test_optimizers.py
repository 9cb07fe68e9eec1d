"""Optimizers as operators: against optax, PyTorch and loops over rows, dense and sparse."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import registry
import symop as so
from registry import SelectedRows, get
from registry.errors import AttributeTypeError, KindError

STEPS = 6
HEIGHT, WIDTH = 7, 3

# For each optimizer: its operator with attributes, initial states by slot, and optax's own.
DENSE = [
    ("sgd", {}, {}, optax.sgd),
    ("momentum", {"mu": 0.9}, {"velocity": 0.0}, lambda rate: optax.sgd(rate, 0.9)),
    (
        "momentum",
        {"mu": 0.8, "nesterov": True},
        {"velocity": 0.0},
        lambda rate: optax.sgd(rate, 0.8, nesterov=True),
    ),
    ("adagrad", {}, {"moment": 0.1}, optax.adagrad),
    ("adagrad", {"eps": 1e-3}, {"moment": 0.0}, lambda rate: optax.adagrad(rate, 0.0, 1e-3)),
    ("rmsprop", {}, {"mean_square": 0.0}, optax.rmsprop),
    (
        "rmsprop",
        {"decay": 0.7, "eps": 1e-3, "eps_in_sqrt": False},
        {"mean_square": 0.0},
        lambda rate: optax.rmsprop(rate, 0.7, 1e-3, eps_in_sqrt=False),
    ),
    (
        "rmsprop_momentum",
        {"mu": 0.9},
        {"mean_square": 0.0, "velocity": 0.0},
        lambda rate: optax.rmsprop(rate, momentum=0.9),
    ),
    (
        "rmsprop_momentum",
        {"mu": 0.9, "nesterov": True},
        {"mean_square": 0.0, "velocity": 0.0},
        lambda rate: optax.rmsprop(rate, momentum=0.9, nesterov=True),
    ),
    (
        "rmsprop_centered",
        {"mu": 0.5, "eps": 1e-3},
        {"mean_square": 0.0, "mean_grad": 0.0, "velocity": 0.0},
        lambda rate: optax.rmsprop(rate, eps=1e-3, centered=True, momentum=0.5),
    ),
    ("adam", {}, {"moment1": 0.0, "moment2": 0.0}, optax.adam),
    (
        "adam",
        {"b1": 0.8, "b2": 0.9, "eps": 1e-4, "eps_root": 1e-5},
        {"moment1": 0.0, "moment2": 0.0},
        lambda rate: optax.adam(rate, 0.8, 0.9, 1e-4, 1e-5),
    ),
    (
        "adam",
        {"nesterov": True},
        {"moment1": 0.0, "moment2": 0.0},
        optax.nadam,
    ),
    ("adamw", {}, {"moment1": 0.0, "moment2": 0.0}, optax.adamw),
    (
        "adamw",
        {"weight_decay": 0.1},
        {"moment1": 0.0, "moment2": 0.0},
        lambda rate: optax.adamw(rate, weight_decay=0.1),
    ),
    ("adamax", {}, {"moment": 0.0, "norm": 0.0}, optax.adamax),
    (
        "adadelta",
        {},
        {"mean_square": 0.0, "mean_square_step": 0.0},
        optax.adadelta,
    ),
    ("lamb", {}, {"moment1": 0.0, "moment2": 0.0}, optax.lamb),
    (
        "lamb",
        {"weight_decay": 0.1},
        {"moment1": 0.0, "moment2": 0.0},
        lambda rate: optax.lamb(rate, weight_decay=0.1),
    ),
]
COUNTED = ("adam", "adamw", "adamax", "lamb")
LAZY = [
    ("momentum", {"nesterov": True}, 1),
    ("rmsprop", {}, 1),
    ("rmsprop_momentum", {}, 2),
    ("rmsprop_centered", {"mu": 0.9}, 3),
    ("adam", {}, 2),
    ("adamw", {"weight_decay": 0.1}, 2),
    ("adamax", {}, 2),
    ("adadelta", {}, 2),
    ("ftrl", {"l1": 0.1, "beta": 1.0}, 2),
]
"""Optimizers that treat each entry by itself, with the number of their states."""


def drawn(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def updated(name, attributes, param, grad, states, step, rate):
    """The new parameter and states."""
    counted = [np.int32(step)] if name in COUNTED else []
    result = getattr(so, name)(param, grad, *states, *counted, rate, **attributes)
    new, *others = result if isinstance(result, tuple) else (result,)
    return new, others


def some_rows(seed=0):
    """Rows of which one is named three times, and some lie outside."""
    rows = np.array([4, 1, 4, HEIGHT, 0, -1, 4], np.int32)
    return SelectedRows(jnp.asarray(rows), jnp.asarray(drawn((7, WIDTH), seed)), HEIGHT)


class TestDense:
    @pytest.mark.parametrize(("name", "attributes", "initial", "other"), DENSE)
    @pytest.mark.sampled(4)
    def test_steps_are_those_of_optax(self, name, attributes, initial, other):
        param = theirs = jnp.asarray(drawn((4, 3)))
        states = [jnp.full((4, 3), value) for value in initial.values()]
        optimizer = other(0.05)
        state = optimizer.init(theirs)
        for step in range(STEPS):
            grad = jnp.asarray(drawn((4, 3), seed=step + 1))
            param, states = updated(name, attributes, param, grad, states, step, 0.05)
            updates, state = optimizer.update(grad, state, theirs)
            theirs = optax.apply_updates(theirs, updates)
            np.testing.assert_allclose(param, theirs, rtol=2e-6, atol=2e-7)

    def test_every_optimizer_is_compared(self):
        declared = {one.name for one in registry.operators() if "new_param" in one.outputs}
        assert declared == {name for name, *_ in DENSE} | {"ftrl"}

    @pytest.mark.parametrize(
        ("name", "attributes", "initial", "make"),
        [
            (
                "adadelta",
                {"rho": 0.8, "eps": 1e-4},
                (0.0, 0.0),
                lambda torch, ps: torch.optim.Adadelta(ps, lr=0.5, rho=0.8, eps=1e-4),
            ),
            ("adamax", {}, (0.0, 0.0), lambda torch, ps: torch.optim.Adamax(ps, lr=0.5)),
            (
                "adamw",
                {"weight_decay": 0.1},
                (0.0, 0.0),
                lambda torch, ps: torch.optim.AdamW(ps, lr=0.5, weight_decay=0.1),
            ),
            (
                "momentum",
                {"mu": 0.9, "nesterov": True},
                (0.0,),
                lambda torch, ps: torch.optim.SGD(ps, lr=0.5, momentum=0.9, nesterov=True),
            ),
        ],
    )
    def test_steps_are_those_of_pytorch(self, name, attributes, initial, make):
        torch = pytest.importorskip("torch")
        param = drawn((5,))
        states = [np.full(5, value, np.float32) for value in initial]
        theirs = torch.tensor(param.copy(), requires_grad=True)
        optimizer = make(torch, [theirs])
        for step in range(STEPS):
            grad = drawn((5,), seed=step + 1)
            param, states = updated(name, attributes, param, grad, states, step, 0.5)
            theirs.grad = torch.tensor(grad)
            optimizer.step()
        # PyTorch takes 1 - b2**t in double precision, which single precision knows to 1e-5.
        np.testing.assert_allclose(param, theirs.detach().numpy(), rtol=5e-5, atol=1e-6)

    def test_ftrl_minimizes_what_it_says(self):
        """The parameter is the minimum of the linearized losses, their proximal terms and L1."""
        param, squared, linear = (np.zeros(1, np.float32) for _ in range(3))
        l1, l2, beta, rate = 0.3, 0.2, 1.0, 0.5
        slope, history, before = 0.0, [], beta / rate
        for step in range(STEPS):
            grad = drawn((1,), seed=step)
            slope += float(grad[0])
            root = (beta + np.sqrt(float(squared[0]) + float(grad[0]) ** 2)) / rate
            history.append((root - before, float(param[0])))
            before = root
            param, squared, linear = so.ftrl(
                param, grad, squared, linear, rate, l1=l1, l2=l2, beta=beta
            )
            at = np.linspace(-2, 2, 400_001)
            proximal = sum(0.5 * weight * (at - past) ** 2 for weight, past in history)
            start = 0.5 * beta / rate * at**2
            objective = slope * at + proximal + start + l1 * abs(at) + 0.5 * l2 * at**2
            assert abs(float(param[0]) - at[np.argmin(objective)]) < 2e-4

    def test_half_precision_is_rounded_once(self):
        param, grad = jnp.asarray([1.0], jnp.bfloat16), jnp.asarray([1.0], jnp.bfloat16)
        exact = np.float32(1.0) - np.float32(0.1)
        assert so.sgd(param, grad, 0.1)[0] == jnp.asarray(exact, jnp.bfloat16)
        wide = so.sgd(jnp.asarray([1.0]), grad, 0.1)
        assert wide.dtype == np.float32
        assert wide[0] == exact

    @pytest.mark.parametrize("name", [name for name, *_ in LAZY])
    def test_new_values_may_take_the_place_of_the_old(self, name):
        operator = get(name)
        assert set(operator.inplace.values()) == set(operator.outputs)
        assert operator.inplace["param"] == "new_param"
        assert all(output == f"new_{slot}" for slot, output in operator.inplace.items())

    def test_an_update_may_be_differentiated(self):
        """The gradient of a loss after two steps of Adam with respect to the learning rate."""
        target = jnp.asarray(drawn((3,), 5))

        def after(rate, adam):
            p, m, v = jnp.ones(3), jnp.zeros(3), jnp.zeros(3)
            for step in range(2):
                p, m, v = adam(p, 2 * (p - target) + 0.1, m, v, jnp.int32(step), rate)
            return jnp.sum((p - target) ** 2)

        rate = so.var("rate", shape=())
        p, m, v = (so.var(one, shape=(3,)) for one in "pmv")
        for step in range(2):
            p, m, v = so.adam(p, 2.0 * (p - target) + 0.1, m, v, step, rate)
        loss = so.sum(so.square(p - target))
        found = so.grad(loss, rate).eval(
            rate=np.float32(0.1), p=np.ones(3), m=np.zeros(3), v=np.zeros(3)
        )
        expected = jax.grad(functools.partial(after, adam=so.adam))(0.1)
        step = 1e-3
        slope = (after(0.1 + step, so.adam) - after(0.1 - step, so.adam)) / (2 * step)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(found, slope, rtol=2e-2)


class TestRows:
    @pytest.mark.parametrize(("name", "attributes", "initial", "other"), DENSE)
    @pytest.mark.sampled(4)
    def test_exact_steps_are_those_of_the_dense_gradient(self, name, attributes, initial, other):
        del other
        param = dense = jnp.asarray(drawn((HEIGHT, WIDTH)))
        states = others = [jnp.full((HEIGHT, WIDTH), value) for value in initial.values()]
        for step in range(STEPS):
            rows = some_rows(step)
            param, states = updated(name, attributes, param, rows, states, step, 0.05)
            dense, others = updated(name, attributes, dense, rows.to_dense(), others, step, 0.05)
            for mine, theirs in zip([param, *states], [dense, *others], strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("name", ["sgd", "adagrad"])
    def test_where_it_is_exact_there_is_no_lazy(self, name):
        assert "lazy" not in get(name).attribute_index

    @pytest.mark.parametrize(("name", "attributes", "count"), LAZY)
    @pytest.mark.sampled(3)
    def test_lazy_steps_are_those_of_each_row_alone(self, name, attributes, count):
        param, states = drawn((HEIGHT, WIDTH)), [abs(drawn((HEIGHT, WIDTH), 9))] * count
        rows = some_rows()
        new, others = updated(name, {**attributes, "lazy": True}, param, rows, states, 3, 0.05)
        expected = [param.copy(), *[one.copy() for one in states]]
        summed = {}
        for row, value in zip(rows.rows.tolist(), np.asarray(rows.values), strict=True):
            if 0 <= row < HEIGHT:
                summed[row] = summed.get(row, 0) + value
        for row, value in summed.items():
            own = [one[row] for one in states]
            of_row, states_of_row = updated(name, attributes, param[row], value, own, 3, 0.05)
            for place, one in zip(expected, [of_row, *states_of_row], strict=True):
                place[row] = one
        for mine, theirs in zip([new, *others], expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
        untouched = [row for row in range(HEIGHT) if row not in summed]
        assert untouched
        np.testing.assert_array_equal(np.asarray(new)[untouched], param[untouched])

    def test_lazy_adam_by_hand(self):
        b1, b2, eps, rate = 0.9, 0.999, 1e-8, 0.1
        table = drawn((HEIGHT, WIDTH)).astype(np.float64)
        m, v = np.zeros_like(table), np.zeros_like(table)
        mine = [jnp.asarray(one, jnp.float32) for one in (table, m, v)]
        for step in range(3):
            rows = some_rows(step)
            mine = so.adam(mine[0], rows, *mine[1:], step, rate, lazy=True)
            dense = np.asarray(rows.to_dense(), np.float64)
            for row in (0, 1, 4):
                m[row] = b1 * m[row] + (1 - b1) * dense[row]
                v[row] = b2 * v[row] + (1 - b2) * dense[row] ** 2
                ahead = m[row] / (1 - b1 ** (step + 1))
                table[row] -= rate * ahead / (np.sqrt(v[row] / (1 - b2 ** (step + 1))) + eps)
        for one, expected in zip(mine, (table, m, v), strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-5, atol=5e-6)

    def test_lazy_lamb_takes_the_rows_for_the_layer(self):
        param, rows = drawn((HEIGHT, WIDTH)), some_rows()
        zeros = np.zeros_like(param)
        attributes = {"weight_decay": 0.1, "lazy": True}
        new = so.lamb(param, rows, zeros, zeros, 0, 0.05, **attributes)[0]
        touched = [0, 1, 4]
        alone = so.lamb(
            param[touched],
            np.asarray(rows.to_dense())[touched],
            zeros[touched],
            zeros[touched],
            0,
            0.05,
            weight_decay=0.1,
        )[0]
        np.testing.assert_allclose(np.asarray(new)[touched], alone, rtol=1e-5)
        np.testing.assert_array_equal(np.asarray(new)[[2, 3, 5, 6]], param[[2, 3, 5, 6]])

    def test_no_rows_at_all(self):
        none = SelectedRows(jnp.zeros(0, jnp.int32), jnp.zeros((0, WIDTH)), HEIGHT)
        param = drawn((HEIGHT, WIDTH))
        zeros = np.zeros_like(param)
        np.testing.assert_array_equal(so.sgd(param, none, 0.1), param)
        for one in so.adam(param, none, zeros, zeros, 0, 0.1, lazy=True):
            assert one.shape == param.shape

    @pytest.mark.parametrize("name", ["sgd", "adam"])
    def test_half_precision(self, name):
        param = jnp.asarray(drawn((HEIGHT, WIDTH)), jnp.bfloat16)
        rows = some_rows()
        low = SelectedRows(rows.rows, rows.values.astype(jnp.bfloat16), HEIGHT)
        zeros = [jnp.zeros_like(param)] * (2 * (name == "adam"))
        lazy = {"lazy": True} if name == "adam" else {}
        mine, _ = updated(name, lazy, param, low, zeros, 0, 0.1)
        theirs, _ = updated(name, {}, param, low.to_dense(), zeros, 0, 0.1)
        assert mine.dtype == jnp.bfloat16
        mine, theirs = (np.asarray(one, np.float32) for one in (mine, theirs))
        np.testing.assert_allclose(mine[[0, 1, 4]], theirs[[0, 1, 4]], rtol=0.01)

    def test_mixed_precision_accumulates_in_the_master_weights(self):
        param, rows = jnp.zeros((HEIGHT, WIDTH)), some_rows()
        low = SelectedRows(rows.rows, rows.values.astype(jnp.bfloat16), HEIGHT)
        wide = SelectedRows(low.rows, low.values.astype(jnp.float32), HEIGHT)
        np.testing.assert_array_equal(so.sgd(param, low, 0.1), so.sgd(param, wide, 0.1))

    def test_an_exact_update_by_rows_may_be_differentiated(self):
        table, ids = so.var("table", shape=(HEIGHT, WIDTH)), so.var("ids", (4,), "int32")
        rate = so.var("rate", shape=())
        gradient = so.grad(so.sum(so.lookup_table(table, ids, sparse=True) ** 3), table)
        after = so.momentum(table, gradient, 0.0 * table, rate)[0]
        slope = so.grad(so.sum(after * after), rate)
        values = drawn((HEIGHT, WIDTH))
        picked = np.array([1, 4, 1, 0], np.int32)

        def plain(rate, table):
            slope = jax.grad(lambda t: jnp.sum(t[picked] ** 3))(table)
            return jnp.sum((table - rate * slope) ** 2)

        found = slope.eval(table=values, ids=picked, rate=np.float32(0.1))
        np.testing.assert_allclose(found, jax.grad(plain)(0.1, values), rtol=1e-5)

    def test_a_lazy_update_by_rows_has_no_gradient(self):
        table, ids = so.var("table", shape=(HEIGHT, WIDTH)), so.var("ids", (4,), "int32")
        gradient = so.grad(so.sum(so.lookup_table(table, ids, sparse=True) ** 3), table)
        after = so.momentum(table, gradient, table, 0.1, lazy=True)[0]
        with pytest.raises(KindError, match="a lazy update by selected_rows has no gradient"):
            so.grad(so.sum(after), table)

    def test_parameter_and_states_must_be_dense(self):
        with pytest.raises(KindError, match=r"sgd: slot 'param' must hold a dense array.*get_tens"):
            so.sgd(some_rows(), jnp.zeros((HEIGHT, WIDTH)), 0.1)
        with pytest.raises(KindError, match="momentum: slot 'velocity' must hold a dense array"):
            so.momentum(jnp.zeros((HEIGHT, WIDTH)), some_rows(), some_rows(), 0.1)


class TestDecay:
    def test_is_optax_own(self):
        param, grad = drawn((4, 3)), drawn((4, 3), 1)
        decay = optax.add_decayed_weights(0.1)
        expected, _ = decay.update(grad, decay.init(param), param)
        found = so.add_decayed_weights(grad, param, weight_decay=0.1)
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    def test_of_rows(self):
        param, rows = drawn((HEIGHT, WIDTH)), some_rows()
        dense = np.asarray(rows.to_dense())
        exact = so.add_decayed_weights(rows, param, weight_decay=0.1)
        np.testing.assert_allclose(exact, dense + 0.1 * param, rtol=1e-5, atol=1e-6)
        lazy = so.add_decayed_weights(rows, param, weight_decay=0.1, lazy=True)
        expected = dense.copy()
        expected[[0, 1, 4]] += 0.1 * param[[0, 1, 4]]  # once each, though a row is named thrice
        assert isinstance(lazy, SelectedRows)
        np.testing.assert_allclose(lazy.to_dense(), expected, rtol=1e-5, atol=1e-6)


RATES = [
    ("constant_schedule", {"value": 0.5}, lambda: optax.constant_schedule(0.5)),
    (
        "exponential_decay",
        {"init_value": 0.5, "transition_steps": 7, "decay_rate": 0.3},
        lambda: optax.exponential_decay(0.5, 7, 0.3),
    ),
    (
        "exponential_decay",
        {
            "init_value": 0.5,
            "transition_steps": 7,
            "decay_rate": 0.3,
            "transition_begin": 3,
            "staircase": True,
            "end_value": 0.01,
        },
        lambda: optax.exponential_decay(0.5, 7, 0.3, 3, staircase=True, end_value=0.01),
    ),
    (
        "polynomial_schedule",
        {
            "init_value": 0.5,
            "end_value": 0.1,
            "transition_steps": 9,
            "power": 2.0,
            "transition_begin": 4,
        },
        lambda: optax.polynomial_schedule(0.5, 0.1, 2.0, 9, 4),
    ),
    (
        "linear_schedule",
        {"init_value": 0.5, "end_value": 0.1, "transition_steps": 9},
        lambda: optax.linear_schedule(0.5, 0.1, 9),
    ),
    (
        "piecewise_decay",
        {"boundaries": (5, 9), "values": (0.5, 0.25, 0.125)},
        lambda: optax.piecewise_constant_schedule(0.5, {5: 0.5, 9: 0.5}),
    ),
    (
        "cosine_decay_schedule",
        {"init_value": 0.5, "decay_steps": 20, "alpha": 0.1, "exponent": 1.5},
        lambda: optax.cosine_decay_schedule(0.5, 20, 0.1, 1.5),
    ),
    (
        "warmup_cosine_decay_schedule",
        {
            "init_value": 0.1,
            "peak_value": 0.5,
            "warmup_steps": 5,
            "decay_steps": 25,
            "end_value": 0.05,
        },
        lambda: optax.warmup_cosine_decay_schedule(0.1, 0.5, 5, 25, 0.05),
    ),
]


class TestLearningRates:
    @pytest.mark.parametrize(("name", "attributes", "other"), RATES)
    def test_rates_are_those_of_optax(self, name, attributes, other):
        steps = np.arange(40, dtype=np.int32)
        expected = [float(other()(step)) for step in steps]
        found = getattr(so, name)(steps, **attributes)
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)

    def test_warming_up_in_front_of_a_schedule(self):
        step = so.var("step", shape=(), dtype="int32")
        rate = so.exponential_decay(step, init_value=1.0, transition_steps=10, decay_rate=0.5)
        warm = so.linear_warmup(rate, step, warmup_steps=4, start_value=0.0, end_value=1.0)
        found = [float(warm.eval(step=np.int32(one))) for one in (0, 1, 4, 20)]
        np.testing.assert_allclose(found, [0, 0.25, 0.5**0.4, 0.25], rtol=1e-6)

    def test_attributes_are_checked(self):
        with pytest.raises(AttributeTypeError, match="'decay_rate' must be a float"):
            so.natural_exp_decay(0, init_value=1.0, transition_steps=1, decay_rate="fast")
