"""Whether repeated blocks become loops, and of how many blocks a step consists, by their costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from symop.graph.nodes import topological
from symop.passes.roll_loops.costs import Cost, cost_of, steps_together


def dense(depth, width, batch):
    """Layers whose weights are separate arrays."""
    h = so.var("x", (batch, width))
    for i in range(depth):
        h = so.tanh(so.fully_connected(h, units=width, name=f"layer{i}"))
    return so.sum(h)


def chain(depth, size):
    """Cheap operators on one array."""
    h, p = so.var("x", (size,)), so.var("p", (size,))
    for _ in range(depth):
        h = so.maximum(0.9 * h + p, -1.0)
    return so.sum(h)


def test_weights_that_would_be_copied_longer_than_they_are_used_are_not():
    found = so.loops(dense(24, 256, batch=64))
    assert not found.made
    assert "takes longer than a tenth of the steps" in str(found)


def test_few_layers_are_compiled_as_fast_without_a_loop():
    found = so.loops(dense(24, 64, batch=4096))
    assert not found.made
    assert "takes longer to compile than the loop saves" in str(found)


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((24, 256, 64), {"stacked": True}),  # nothing is copied
        ((24, 8, 4), {}),  # it takes no time
        ((1000, 64, 4096), {}),  # it takes less time than 1,000 layers to compile
    ],
    ids=["stacked", "small", "deep"],
)
def test_other_layers_are_a_loop(sizes, options):
    (loop,) = so.loops(dense(*sizes), **options).made
    assert loop.run.period == 2


@pytest.mark.parametrize(
    ("depth", "size", "shape"),
    [
        (100, 100_000, (15, 20)),
        (103, 100_000, (15, 20)),  # three steps are left over
        (40, 100_000, (15, 8)),
        (100, 1000, (3, 100)),  # the array stays in the fastest cache
    ],
)
def test_steps_that_wait_for_memory_are_taken_together(depth, size, shape):
    (loop,) = so.loops(chain(depth, size)).made
    assert (loop.run.period, loop.run.times) == shape


def test_steps_that_compute_longer_than_they_wait_are_taken_one_by_one():
    h = so.var("x", (100_000,))
    for _ in range(40):
        h = so.sin(h)
    (loop,) = so.loops(so.sum(h)).made
    assert loop.run.period == 1


def test_steps_whose_values_are_read_are_taken_one_by_one():
    h, values = so.var("x", (100_000,)), []
    for _ in range(40):
        h = so.maximum(0.9 * h + 1.0, -1.0)
        values.append(h)
    (loop,) = so.loops(so.sum(so.stack(*values))).made
    assert loop.run.times == 40


@pytest.mark.parametrize("depth", [40, pytest.param(43, marks=pytest.mark.thorough)])
def test_values_and_gradients_of_steps_together(depth):
    size = 20_000
    x, p = (np.linspace(low, 1, size, dtype=np.float32) for low in (-2, -0.2))

    def by_hand(x, p):
        for _ in range(depth):
            x = jnp.maximum(0.9 * x + p, -1.0)
        return jnp.sum(x)

    loss = chain(depth, size)
    expected, slopes = jax.jit(jax.value_and_grad(by_hand, (0, 1)))(x, p)
    value, found = jax.jit(so.value_and_grad(loss))(x=x, p=p)
    by_jax = jax.jit(jax.grad(loss.to_jax()))(x, p)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    np.testing.assert_allclose(found["x"], slopes[0], rtol=1e-4)
    np.testing.assert_allclose(found["p"], slopes[1], rtol=1e-4)
    np.testing.assert_allclose(by_jax, slopes[0], rtol=1e-4)


@pytest.mark.parametrize(
    ("period", "times", "expected"),
    [(3, 100, 5), (3, 101, 5), (1, 64, 16), (1, 60, 15), (9, 100, 1), (3, 11, 2), (2, 28, 7)],
)
def test_how_many_steps_are_taken_together(period, times, expected):
    assert steps_together(period, times, 4) == expected


def test_the_cost_of_calls():
    x, w = so.var("x", (8, 16)), so.var("w", (16, 32))
    product = cost_of([(x @ w).node])
    assert product is not None
    assert product.flops == 2 * 8 * 16 * 32
    assert product.nbytes == 4 * (8 * 16 + 16 * 32 + 8 * 32)
    image, kernel = so.var("image", (2, 3, 8, 8)), so.var("kernel", (5, 3, 3, 3))
    convolved = so.convolution(image, kernel, channels=5, kernel=(3, 3), use_bias=False)
    found = cost_of([convolved.node])
    assert found is not None
    assert found.flops == 2 * (2 * 5 * 6 * 6) * (3 * 3 * 3)
    assert cost_of([(x + x).node]) == Cost(1, 8 * 16, 0)
    assert cost_of([so.exp(x).node]).flops > cost_of([so.abs(x).node]).flops
    loop = so.scan(lambda c, _: (c * 2, c), x, length=3)[0]
    assert cost_of(topological([loop.node])) is None  # of bodies it is not known
