"""The memory of the results of a jaxpr, by hand and as XLA assigns buffers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symop.planning.liveness import Operation, most_held
from symop.planning.propagation import Walk


def held(f, *examples):
    """The estimate for a function on one device."""
    jaxpr = jax.make_jaxpr(f)(*examples).jaxpr
    walk = Walk(jaxpr, [()] * len(jaxpr.invars), {})
    for equation in jaxpr.eqns:
        walk.follow(equation, lambda one: None)
    return walk.most_held(jaxpr)


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

    def test_what_frees_memory_comes_first(self):
        """In the order of the program, both large values are there at once."""
        operations = [
            Operation("dot_general", "x", {"a": 100}),
            Operation("dot_general", "x", {"b": 100}),
            Operation("reduce_sum", "a", {"c": 1}),
            Operation("reduce_sum", "b", {"d": 1}),
        ]
        assert most_held(operations, {"c", "d"}) == 102

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
        assert most_held([*wide, *ends], outputs) == 20_000 + 10


def perceptron(weights, x):
    for one in weights:
        x = jnp.tanh(x @ one)
    return jnp.mean(x)


def looped(weights, x):
    return jnp.mean(jax.lax.scan(lambda x, one: (jnp.tanh(x @ one), None), x, weights)[0])


@pytest.mark.parametrize("f", [perceptron, looped])
def test_gradients_take_what_xla_assigns(f):
    weights, x = jnp.ones((6, 64, 64)), jnp.ones((2048, 64))
    slope = jax.grad(f)
    compiled = jax.jit(slope).lower(weights, x).compile()
    memory = compiled.memory_analysis()
    found = held(slope, weights, x)
    np.testing.assert_allclose(found, memory.temp_size_in_bytes + 6 * 64 * 64 * 4, rtol=0.15)
