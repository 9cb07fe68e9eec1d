"""Recurrent layers at their edges: lengths, directions, saturated gates, half precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
NAMES = sorted(GATES)


def drawn(name, *, features=2, units=2, batch=2, steps=4, directions=2, seed=0):
    """Data, the initial states and the weights of one layer."""
    generator = np.random.default_rng(seed)

    def draw(*shape):
        return jnp.asarray(generator.standard_normal(shape), jnp.float32)

    rows = GATES[name] * units
    weights = [
        draw(*shape)
        for _ in range(directions)
        for shape in [(rows, features), (rows, units), (rows,), (rows,)]
    ]
    states = [draw(directions, batch, units) for _ in range(2 if name == "lstm" else 1)]
    return draw(steps, batch, features), states, weights


def run(name, data, states, weights, lengths=None, **attributes):
    return getattr(so, name)(data, *states, lengths, *weights, **attributes)


def total(results):
    """A number that depends on every entry of every result."""
    return sum(jnp.sum(jnp.sin(one + jnp.arange(one.size).reshape(one.shape))) for one in results)


@pytest.mark.parametrize("name", NAMES)
def test_each_sequence_runs_as_if_alone(name):
    data, states, weights = drawn(name)
    together = run(name, data, states, weights, jnp.asarray([4, 2]), bidirectional=True)
    short = [one[:, 1:] for one in states]
    alone = run(name, data[:2, 1:], short, weights, bidirectional=True)
    np.testing.assert_allclose(together[0][:2, 1:], alone[0], rtol=1e-5, atol=1e-6)
    for mine, other in zip(together[1:], alone[1:], strict=True):
        np.testing.assert_allclose(mine[:, 1:], other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_beyond_the_end_counts(name):
    data, states, weights = drawn(name)
    lengths = jnp.asarray([4, 2])

    def loss(data, states, weights):
        return total(run(name, data, states, weights, lengths, bidirectional=True))

    other = data.at[2:, 1].set(1e6)
    derived = jax.jit(jax.value_and_grad(loss, (0, 1, 2)))
    value, (d_data, d_states, d_weights) = derived(data, states, weights)
    again, (_, e_states, e_weights) = derived(other, states, weights)
    assert value == again
    assert not np.any(d_data[2:, 1])
    assert np.all(d_data[:2, 1] != 0)
    for mine, one in zip([*d_states, *d_weights], [*e_states, *e_weights], strict=True):
        np.testing.assert_array_equal(mine, one)


@pytest.mark.parametrize("name", NAMES)
def test_a_sequence_without_steps_keeps_its_state(name):
    data, states, weights = drawn(name)
    lengths = jnp.asarray([4, 0])

    def lasts(data, states):
        return run(name, data, states, weights, lengths, bidirectional=True)[1:]

    for last, state in zip(lasts(data, states), states, strict=True):
        np.testing.assert_array_equal(last[:, 1], state[:, 1])
    derived = jax.jit(jax.grad(lambda *given: sum(map(jnp.sum, lasts(*given))), (0, 1)))
    d_data, d_states = derived(data, states)
    assert not np.any(d_data[:, 1])
    for d_state in d_states:
        np.testing.assert_array_equal(d_state[:, 1], 1.0)


@pytest.mark.parametrize("name", NAMES)
def test_second_direction_reads_backward(name):
    data, states, weights = drawn(name)
    out, last, *_ = run(name, data, states, weights, bidirectional=True)
    second = [one[1:] for one in states]
    backward, _, *_ = run(name, data[::-1], second, weights[4:])
    np.testing.assert_allclose(out[..., 2:], backward[::-1], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(last[1], out[0, :, 2:])
    np.testing.assert_array_equal(last[0], out[-1, :, :2])


@pytest.mark.parametrize("name", NAMES)
def test_layers_are_stacked_as_calls_are(name):
    data, _, first = drawn(name)
    _, _, second = drawn(name, features=4, seed=1)
    none = [None] * (2 if name == "lstm" else 1)
    out, last, *_ = run(name, data, none, [*first, *second], num_layers=2, bidirectional=True)
    below, below_last, *_ = run(name, data, none, first, bidirectional=True)
    above, above_last, *_ = run(name, below, none, second, bidirectional=True)
    np.testing.assert_allclose(out, above, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, np.concatenate([below_last, above_last]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_state_given_as_zero_is_the_state_left_out(name):
    data, states, weights = drawn(name)
    zeros = [jnp.zeros_like(one) for one in states]

    def loss(weights, states):
        return total(run(name, data, states, weights, bidirectional=True))

    derived = jax.jit(jax.grad(loss))
    left_out = derived(weights, [None] * len(zeros))
    for mine, other in zip(derived(weights, zeros), left_out, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_gates_that_are_saturated_have_finite_gradients(name):
    data, states, weights = drawn(name, directions=1)
    loud = [1e4 * one for one in weights]
    grads = jax.jit(jax.grad(lambda w: total(run(name, data, states, w))))(loud)
    assert all(np.all(np.isfinite(one)) for one in grads)


def test_relu_has_derivative_zero_at_zero():
    one, zero = jnp.ones((1, 1, 1)), jnp.zeros((1, 1))
    grad = jax.grad(lambda x: so.rnn(x, None, None, zero + 1, zero, activation="relu")[0].sum())
    assert float(grad(0 * one)[0, 0, 0]) == 0.0
    assert float(grad(one)[0, 0, 0]) == 1.0


def test_a_long_memory_adds_small_numbers_in_half_precision():
    # Gates that are open, i g = 2^-10 at each of 512 steps: in bfloat16 a sum stops at 2^-2.
    steps, big = 512, 50.0
    small = float(np.arctanh(2.0**-10))
    bias = jnp.asarray([big, big, small, big], jnp.bfloat16)
    zeros = jnp.zeros((4, 1), jnp.bfloat16)
    data = jnp.zeros((steps, 1, 1), jnp.bfloat16)
    _, _, last = so.lstm(data, None, None, None, zeros, zeros, bias, jnp.zeros_like(bias))
    assert abs(float(last[0, 0, 0]) - 0.5) < 0.01


@pytest.mark.parametrize("name", NAMES)
def test_one_step_is_enough(name):
    data, states, weights = drawn(name, directions=1, steps=1)
    out, last, *_ = run(name, data, states, weights)
    np.testing.assert_array_equal(out, last)
    d_recurrent = jax.jit(jax.grad(lambda w: total(run(name, data, states, w))))(weights)[1]
    assert np.any(d_recurrent)


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_promote_and_gradients_have_those_of_their_inputs(name):
    data, states, weights = drawn(name, directions=1)
    narrow = [one.astype(jnp.bfloat16) for one in weights]
    assert run(name, data, states, narrow)[0].dtype == np.float32
    grads = jax.jit(jax.grad(lambda w: total(run(name, data, states, w))))(narrow)
    assert {one.dtype for one in grads} == {jnp.dtype(jnp.bfloat16)}


@pytest.mark.parametrize("reverse", [False, True])
def test_adjoint_recurrence_is_the_transposed_matrix(reverse):
    generator = np.random.default_rng(3)
    weight, projection = generator.standard_normal((6, 1)), generator.standard_normal((1, 2))
    slopes, decay, carry = (generator.standard_normal((3, 1, n)) for n in (6, 2, 2))
    how = (weight, slopes, decay, carry, projection)

    def flat(operator):
        def run(vector):
            gates, cell, out = jnp.split(vector, [18, 24])
            sources = (gates.reshape(3, 1, 6), cell.reshape(3, 1, 2), out.reshape(3, 1, 2))
            return jnp.concatenate(
                [one.ravel() for one in operator(*how, *sources, reverse=reverse)]
            )

        return np.stack([run(row) for row in jnp.eye(30)], axis=1)

    forth, back = flat(so.linear_recurrence), flat(so.linear_recurrence_adjoint)
    np.testing.assert_allclose(back, forth.T, rtol=1e-5, atol=1e-6)
