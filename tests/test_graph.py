"""Graph nodes: one computation is one node, simplified exactly, however large the graph."""

import gc
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError, ShapeError
from symop.graph.nodes import CONSTANT, topological, user_origin

DEPTH = 30_000


@pytest.fixture
def x():
    return so.var("x", shape=(3, 4))


@pytest.fixture
def y():
    return so.var("y", shape=(3, 4))


def chain(function, value, length):
    for _ in range(length):
        value = function(value)
    return value


def size(*symbols):
    return len(topological([node for symbol in symbols for node in symbol.nodes]))


class TestInterning:
    def test_same_call_is_same_node(self, x, y):
        assert (so.sin(x) + y).same_as(so.sin(x) + y)

    def test_attributes_tell_nodes_apart(self, x):
        assert not so.sum(x, axis=0).same_as(so.sum(x, axis=1))
        assert so.sum(x, axis=0).same_as(x.sum(axis=0))

    def test_commutative_operands_in_either_order(self, x, y):
        assert (x * y).same_as(y * x)
        assert not (x - y).same_as(y - x)

    def test_one_variable_of_a_name_and_type(self):
        assert so.var("v", shape=(2,)).same_as(so.var("v", shape=(2,)))
        assert not so.var("v", shape=(2,)).same_as(so.var("v", shape=(3,)))

    def test_signed_zeros_and_number_types_stay_apart(self, x):
        constants = [so.add(x, value).node for value in (0.5, -0.5, 1, 1.0, True)]
        assert len(set(constants)) == len(constants)
        assert (x / -0.0).node is not (x / 0.0).node

    def test_random_calls_never_merge(self, x):
        first, second = so.dropout(x, rate=0.5), so.dropout(x, rate=0.5)
        assert not first.same_as(second)

    def test_stateful_calls_never_merge(self):
        data = so.var("data", shape=(8, 3))
        states = [so.var(name, shape=(3,), state=True) for name in ("mean", "var")]
        rest = [so.var(name, shape=(3,)) for name in ("gamma", "beta")]
        first, second = (so.batch_norm(data, *rest, *states) for _ in range(2))
        assert not first.same_as(second)

    def test_the_table_keeps_no_graph_alive(self, x):
        grown = chain(so.tanh, x, 50)
        gone = weakref.ref(grown.node)
        del grown
        gc.collect()
        assert gone() is None

    def test_threads_agree(self, x):
        barrier = threading.Barrier(4)
        results = []

        def build():
            barrier.wait()
            results.append(chain(lambda v: so.cos(v) * v, x, 300))

        threads = [threading.Thread(target=build) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({result.node for result in results}) == 1


class TestSimplification:
    @pytest.mark.parametrize(
        "rewrite",
        [
            lambda v: v + 0.0,
            lambda v: 0.0 + v,
            lambda v: v - 0.0,
            lambda v: v * 1.0,
            lambda v: 1.0 * v,
            lambda v: v / 1.0,
            lambda v: v**1.0,
            so.identity,
            lambda v: so.scale(v, scale=1.0),
            lambda v: so.reshape(v, shape=(3, 4)),
            lambda v: so.broadcast_to(v, shape=(3, 4)),
            lambda v: so.cast(v, dtype="float32"),
        ],
    )
    def test_identities_vanish(self, x, rewrite):
        assert rewrite(x).same_as(x)

    def test_zero_times_a_value_stays(self, x):
        product = 0.0 * x
        assert product.constant != 0
        bad = np.full((3, 4), np.nan, np.float32)
        assert np.isnan(product.eval(x=bad)).all()

    def test_a_rewrite_that_would_change_the_type_is_not_made(self):
        whole = so.var("n", shape=(3,), dtype="int32")
        assert (whole * 1.0).dtype == np.float32
        assert (whole * 1).same_as(whole)
        row = so.var("row", shape=(1, 4))
        assert (row * so.ones_like(so.var("m", shape=(3, 4)))).shape == (3, 4)

    def test_constants_fold(self, x):
        assert ((x * 2.0) * (so.add(1.5, 2.5))).eval(x=np.ones((3, 4))).tolist() == [[8.0] * 4] * 3
        two = so.ones_like(x) + so.ones_like(x)
        assert two.node.op is CONSTANT
        assert two.constant == 2.0

    def test_a_named_node_is_never_simplified_away(self, x):
        named = so.add(x, 0.0, name="kept")
        assert not named.same_as(x)
        assert named.list_outputs() == ["kept_output"]


class TestOrigins:
    def test_a_node_remembers_the_users_line(self, x):
        here = user_origin()
        node = so.exp(x).node
        assert (node.origin.file, node.origin.line) == (__file__, here.line + 1)

    def test_a_gradient_remembers_the_forward_operator(self, x):
        y = so.tanh(x)
        nodes = topological(so.grad(y, x).nodes)
        forwards = {node.origin.forward for node in nodes if node.origin.forward}
        assert forwards == {"tanh"}

    def test_a_shape_error_names_operator_shapes_and_line(self, x):
        with pytest.raises(ShapeError) as caught:
            so.minus(x, so.var("z", shape=(4,)))
        text = str(caught.value)
        assert "minus: x and y must have the same shape, got (3, 4) and (4,)" in text
        assert "test_graph.py:" in text


class TestInputs:
    def test_numbers_keep_the_dtype_of_the_array_beside_them(self):
        half = so.var("h", shape=(2,), dtype="bfloat16")
        assert (half * 2.0).dtype == jnp.bfloat16
        assert (half + 1).dtype == jnp.bfloat16

    def test_promotion_is_that_of_jax(self):
        dtypes = ["bool", "int8", "int32", "uint8", "float16", "bfloat16", "float32", "complex64"]
        for left in dtypes:
            for right in dtypes:
                a, b = so.var("a", (2,), left), so.var("b", (2,), right)
                assert (a + b).dtype == jnp.promote_types(left, right)

    def test_weak_types_follow_jax_through_several_calls(self):
        whole = so.var("n", shape=(2,), dtype="int32")
        half = so.var("h", shape=(2,), dtype="bfloat16")
        native = (jnp.ones(2, jnp.int32) + 1.0) * jnp.ones(2, jnp.bfloat16)
        assert ((whole + 1.0) * half).dtype == native.dtype

    def test_arrays_become_constants(self, x):
        table = np.arange(12.0, dtype=np.float32).reshape(3, 4)
        assert (x + table).eval(x=np.zeros((3, 4))).tolist() == table.tolist()

    def test_traced_arrays_are_refused(self, x):
        with pytest.raises(ArgumentError, match="traced array"):
            jax.jit(lambda a: (x + a).nodes)(jnp.ones((3, 4)))

    @pytest.mark.parametrize("bad", ["text", object(), {"a": 1}])
    def test_other_values_are_refused(self, x, bad):
        with pytest.raises(ArgumentError):
            so.add(x, bad)


class TestLargeGraphs:
    def test_a_deep_chain_builds_differentiates_and_goes(self):
        x = so.var("x", shape=(2,))
        y = chain(so.sin, x, DEPTH)
        gradient = so.grad(y, x)
        tangent = so.jvp(chain(so.sin, x, 1000), x, so.ones_like(x))
        assert size(y) == DEPTH + 1
        assert size(gradient) == 3 * DEPTH - 1
        assert size(tangent) == 2999
        del y, gradient, tangent

    def test_a_value_used_many_times(self):
        x = so.var("x", shape=())
        total = x
        for _ in range(5000):
            total = total + x
        assert float(so.grad(total, x).eval(x=1.0)) == 5001.0

    def test_a_ladder_of_shared_values_stays_linear(self):
        x = so.var("x", shape=())
        y = chain(lambda v: v * so.sin(v), x, 2000)
        assert size(y) == 4001
        assert size(so.grad(y, x)) < 40 * 2000


class TestX64:
    """Graphs built without JAX's x64 flag are not mistaken for those built with it."""

    def test_variables(self):
        narrow = so.var("x", (3,), "float64")
        with jax.enable_x64(True):
            wide = so.var("x", (3,), "float64")
        assert (narrow.dtype, wide.dtype) == (np.float32, np.float64)

    def test_applications(self):
        x = so.var("x", (3,), "float32")
        narrow = x.cast(dtype="float64")
        with jax.enable_x64(True):
            wide = x.cast(dtype="float64")
        assert (narrow.dtype, wide.dtype) == (np.float32, np.float64)

    def test_rules_of_operators(self):
        def tangent():
            return jax.jvp(lambda x: so.cast(x, dtype="float64"), (ones,), (ones,))[1]

        ones = np.ones(3, np.float32)
        assert tangent().dtype == np.float32
        with jax.enable_x64(True):
            assert tangent().dtype == np.float64
