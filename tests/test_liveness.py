"""The memory of the results of a jaxpr, by hand and as XLA assigns buffers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symop.planning.liveness import Operation, most_held
from symop.planning.operations import most_held as most_held_of
from symop.planning.propagation import Walk


def held(f, *examples, sharding=(), sizes=None):
    """The estimate for a function, on one device or with arguments that are split alike."""
    jaxpr = jax.make_jaxpr(f)(*examples).jaxpr
    walk = Walk(jaxpr, [sharding] * len(jaxpr.invars), sizes or {})
    for equation in jaxpr.eqns:
        walk.follow(equation, lambda one: None)
    return most_held_of(walk, jaxpr)


class TestByHand:
    def test_a_chain_of_entries_has_one_buffer(self):
        operations = [Operation("exp", ("x",), {"a": 8}), Operation("sin", ("a",), {"b": 8})]
        assert most_held(operations, {"b"}) == 8

    def test_a_product_reads_a_buffer(self):
        operations = [Operation("exp", ("x",), {"a": 8}), Operation("dot_general", "ay", {"b": 4})]
        assert most_held(operations, {"b"}) == 12

    def test_what_two_read_has_a_buffer_that_the_last_writes_into(self):
        operations = [
            Operation("exp", ("x",), {"a": 8}),
            Operation("reduce_sum", ("a",), {"b": 1}),
            Operation("mul", ("a", "b"), {"c": 8}),
        ]
        assert most_held(operations, {"c"}) == 9

    def test_what_is_expensive_and_read_twice_has_a_buffer(self):
        ends = [Operation("dot_general", "a", {"b": 1}), Operation("dot_general", "a", {"c": 1})]
        sums = [Operation("reduce_sum", "a", {"b": 1}), Operation("reduce_sum", "a", {"c": 1})]
        cheap, expensive = (Operation(name, "x", {"a": 8}) for name in ("mul", "exp"))
        assert most_held([cheap, *sums], {"b", "c"}) == 2
        assert most_held([expensive, *sums], {"b", "c"}) == 10
        assert most_held([cheap, *ends], {"b", "c"}) == 10

    def test_a_chain_that_reads_much_has_buffers(self):
        """A fusion reads few buffers, so that the estimate takes linear time."""
        many = 20_000
        products = [Operation("dot_general", "x", {f"a{i}": 1}) for i in range(many)]
        sums = [Operation("add", (f"b{i - 1}", f"a{i}"), {f"b{i}": 1}) for i in range(1, many)]
        assert most_held([*products, *sums], {f"b{many - 1}"}) <= 1.1 * many

    def test_operations_run_when_they_are_ready(self):
        """Both large values are there at once, as in ``test_the_order_of_xla``."""
        operations = [
            Operation("dot_general", "x", {"a": 100}),
            Operation("reduce_sum", "a", {"c": 1}),
            Operation("dot_general", "x", {"b": 100}),
            Operation("reduce_sum", "b", {"d": 1}),
        ]
        assert most_held(operations, {"c", "d"}) == 201

    def test_what_frees_the_most_comes_first(self):
        """Of the readers of ``h``, the product with ``a`` runs before another value is there."""
        operations = [
            Operation("dot_general", "x", {"a": 100}),
            Operation("dot_general", "a", {"h": 1}),
            Operation("dot_general", "h", {"b": 100}),
            Operation("dot_general", "ha", {"c": 1}),
        ]
        assert most_held(operations, {"b", "c"}) == 102

    def test_what_stays_is_not_freed(self):
        """``b`` frees nothing, since ``a`` is an output, and runs after ``c``, which does."""
        operations = [
            Operation("dot_general", "x", {"a": 50, "d": 40}),
            Operation("dot_general", "a", {"b": 20}),
            Operation("dot_general", "d", {"c": 1}),
        ]
        assert most_held(operations, {"a", "b", "c"}) == 91

    def test_what_acts_is_computed(self):
        operations = [
            Operation("dot_general", "x", {"a": 9}),
            Operation("dot_general", "x", {"b": 9}),
            Operation("call", "ab", {}, acts=True),
        ]
        assert most_held(operations, set()) == 18

    def test_what_nobody_needs_is_not_computed(self):
        operations = [Operation("dot_general", "x", {"a": 9}), Operation("exp", "a", {"b": 9})]
        assert most_held([*operations, Operation("dot_general", "x", {"c": 1})], {"c"}) == 1

    def test_what_an_operation_takes_besides_is_there_while_it_runs(self):
        operations = [
            Operation("scan", (), {"a": 8}, besides=50),
            Operation("reduce_sum", ("a",), {"b": 1}),
        ]
        assert most_held(operations, {"b"}) == 58

    def test_a_result_that_nobody_reads_is_there_for_a_moment(self):
        operations = [Operation("scan", ("x",), {"a": 8, "b": 8})]
        assert most_held(operations, {"a"}) == 16

    def test_the_order_is_found_for_many_operations(self):
        """Pairs, of which each second operation frees what the first makes."""
        wide = [Operation("dot_general", "x", {f"a{i}": 10}) for i in range(20_000)]
        ends = [Operation("reduce_sum", (f"a{i}",), {f"b{i}": 1}) for i in range(20_000)]
        outputs = {f"b{i}" for i in range(20_000)}
        assert most_held([*wide, *ends], outputs) == 200_000 + 1


def perceptron(weights, x):
    for one in weights:
        x = jnp.tanh(x @ one)
    return jnp.mean(x)


def looped(weights, x):
    return jnp.mean(jax.lax.scan(lambda x, one: (jnp.tanh(x @ one), None), x, weights)[0])


def _convolved(x, weight):
    return jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME")


def _standardized(x):
    centered = x - jnp.mean(x, (0, 2, 3), keepdims=True)
    return centered * jax.lax.rsqrt(jnp.mean(centered**2, (0, 2, 3), keepdims=True) + 1e-5)


def residual(weights, x):
    for first, second in weights:
        inner = jax.nn.relu(_standardized(_convolved(x, first)))
        x = jax.nn.relu(x + _standardized(_convolved(inner, second)))
    return jnp.mean(x)


def channels_last(weights, x):
    """Convolutions read these arrays as they are."""
    for one in weights:
        x = jax.lax.conv_general_dilated(
            x, one, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x)
    return jnp.mean(x)


def pooled(weights, x):
    """Windows of which the largest entries are taken."""
    for one in weights:
        x = jax.nn.relu(_convolved(x, one))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return jnp.mean(jax.scipy.special.erfc(x.reshape(len(x), -1)))


IMAGES = jnp.ones((8, 16, 32, 32))


@pytest.mark.parametrize(
    ("f", "weights", "x"),
    [
        (perceptron, jnp.ones((6, 64, 64)), jnp.ones((2048, 64))),
        (looped, jnp.ones((6, 64, 64)), jnp.ones((2048, 64))),
        (residual, [(jnp.ones((16, 16, 3, 3)), jnp.ones((16, 16, 3, 3)))] * 3, IMAGES),
        (pooled, [jnp.ones((16, 16, 3, 3))] * 3, IMAGES),
        (channels_last, [jnp.ones((3, 3, 16, 16))] * 3, jnp.ones((8, 32, 32, 16))),
    ],
)
def test_gradients_take_what_xla_assigns(f, weights, x):
    slope = jax.grad(f)
    memory = jax.jit(slope).lower(weights, x).compile().memory_analysis()
    whole = memory.temp_size_in_bytes + memory.output_size_in_bytes
    np.testing.assert_allclose(held(slope, weights, x), whole, rtol=0.1)


def test_the_order_of_xla():
    """Independent products are all there before the first is read."""
    weights, x = [jnp.ones((256, 256))] * 8, jnp.ones((256, 256))
    compiled = jax.jit(lambda weights, x: [jnp.sum(jnp.sin(x @ one @ one)) for one in weights])
    memory = compiled.lower(weights, x).compile().memory_analysis()
    assert memory.temp_size_in_bytes >= 8 * x.nbytes


def test_empty_and_constant_operands():
    x, y = jnp.ones((0, 4)), jnp.ones((4, 1000))
    assert held(jnp.sum, x) == 4
    assert held(lambda y: jax.lax.reduce_sum_p.bind(2.0, axes=()) + y[0, 0], y) < 100
    assert held(lambda y: jnp.sum(y, axis=()), y) == y.nbytes


def test_calls_with_other_constants_compute_other_values():
    """JAX shares the jaxpr of a jitted function among its calls."""
    x = jnp.ones((64, 64))
    product = jax.jit(lambda x, scale: (x * scale) @ x)

    def f(first, second):
        return lambda x: product(x, first) @ product(x, second)

    assert held(f(2.0, 2.0), x) < held(f(2.0, 3.0), x)


def test_a_sum_over_devices_is_held_besides_the_own_part():
    x = jnp.ones((64, 32))
    split = [held(lambda x: x.T @ x, x, sharding=("data",), sizes={"data": n}) for n in (1, 4)]
    assert split == [32 * 32 * 4, 2 * 32 * 32 * 4]
