"""Lowered graphs under JAX's transformations: each equals the same function written in JAX.

Every graph is lowered three times: differentiated by its operators' makers, by their kernels, and
as ``to_jax()`` chooses. One of the graphs contains its own gradient.
"""

import os
import pathlib
import pickle
import subprocess
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import symop as so
from registry import Array, differentiate_kernel, op
from registry.errors import NotLinearError, ShapeError
from symop.testing.trial import compiled

pytestmark = pytest.mark.usefixtures("x64")

ROWS, FEATURES, CLASSES = 4, 3, 2


# The functions -----------------------------------------------------------------------------------


def layer(x, w, b):
    return jnp.tanh(x @ w.T + b)


def layer_graph(x, w, b):
    return so.tanh(so.fully_connected(x, w, b, units=CLASSES))


def loss(x, w, b):
    return jnp.mean(jax.nn.logsumexp(layer(x, w, b) * w.sum(), axis=-1) * jnp.maximum(b[0], 0.1))


def loss_graph(x, w, b):
    logits = layer_graph(x, w, b) * so.sum(w)
    # log(sum(exp)) as -log_softmax + x of the first class, so that the two are written differently.
    normalizer = logits[:, 0] - so.log_softmax(logits)[:, 0]
    return so.mean(normalizer * so.maximum(b[0], 0.1))


def penalty(x, w, b):
    """The size of a gradient, as a graph that contains one has it."""
    slope = jax.grad(loss, argnums=0)(x, w, b)
    return jnp.sum(jnp.square(slope)) + loss(x, w, b)


def penalty_graph(x, w, b):
    value = loss_graph(x, w, b)
    return so.sum(so.square(so.grad(value, x))) + value


def image(x, w, b):
    """Convolution, pooling and a matrix product with itself over a picture made of ``x``."""
    picture = jnp.outer(x.ravel(), x.ravel())[None, None, :6, :6]
    kernel = jnp.outer(w.ravel(), b)[:3, :2].reshape(1, 1, 3, 2)
    found = jax.lax.conv_general_dilated(picture, kernel, (1, 1), "VALID")
    pooled = jax.lax.reduce_window(
        found, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
    )
    matrix = pooled[0, 0]
    return jnp.sum(jnp.sin(matrix @ matrix.T @ matrix))


def image_graph(x, w, b):
    line = so.reshape(x, shape=(-1, 1))
    picture = so.reshape((line @ so.permute_dims(line))[:6, :6], shape=(1, 1, 6, 6))
    column = so.reshape(w, shape=(-1, 1)) * so.reshape(b, shape=(1, 2))
    kernel = so.reshape(column[:3, :2], shape=(1, 1, 3, 2))
    found = so.convolution(picture, kernel, channels=1, kernel=(3, 2), use_bias=False)
    matrix = so.max_pooling(found, kernel=2)[0, 0]
    return so.sum(so.sin(matrix @ so.permute_dims(matrix) @ matrix))


def arguments(seed=0):
    generator = np.random.default_rng(seed)
    shapes = ((ROWS, FEATURES), (CLASSES, FEATURES), (CLASSES,))
    x, w, b = (generator.normal(size=shape) for shape in shapes)
    return jnp.asarray(x), jnp.asarray(w), jnp.abs(jnp.asarray(b)) + 0.5


def tangents():
    return arguments(seed=1)


@pytest.fixture(params=[True, False, None], ids=["makers", "kernels", "chosen"])
def rules(request):
    return request.param


def lowered(graph, rules, *, shapes=True):
    x, w, b = (
        so.var(name, one.shape if shapes else None, "float64")
        for name, one in zip("xwb", arguments(), strict=True)
    )
    symbol = graph(x, w, b)
    order = symbol.list_arguments()
    function = symbol.to_jax(rules=rules)
    return lambda *args: function(**{name: args["xwb".index(name)] for name in order})


SCALARS = [
    *[(loss, loss_graph, rules) for rules in (True, False, None)],
    *[(penalty, penalty_graph, rules) for rules in (True, None)],
    *[(image, image_graph, rules) for rules in (True, None)],
]
NAMES_OF_RULES = {True: "makers", False: "kernels", None: "chosen"}


@pytest.fixture(params=SCALARS, ids=lambda one: f"{one[0].__name__}-{NAMES_OF_RULES[one[2]]}")
def scalars(request):
    plain, graph, rules = request.param
    return plain, lowered(graph, rules)


@pytest.fixture
def layers(rules):
    """Without shapes: they follow from what is fed, under ``shard_map`` the rows of one device."""
    return layer, lowered(layer_graph, rules, shapes=False)


def expect_same(transform, functions, *args, eager=False):
    """Both are compiled together, in the least time, unless each operator is to run by itself."""
    plain, function = map(transform, functions)

    def run(*values):
        return plain(*values), function(*values)

    expected, result = (run if eager else compiled(run, *args))(*args)
    chex.assert_trees_all_equal_structs(result, expected)
    chex.assert_trees_all_equal_shapes_and_dtypes(result, expected)
    chex.assert_trees_all_close(result, expected, rtol=1e-9, atol=1e-11)


# Of a scalar -------------------------------------------------------------------------------------

EVERY = (0, 1, 2)
OF_SCALARS = {
    "call": lambda f: f,
    "jit": jax.jit,
    "grad": lambda f: jax.grad(f, EVERY),
    "jit of grad": lambda f: jax.jit(jax.grad(f, EVERY)),
    "value_and_grad": lambda f: jax.value_and_grad(f, EVERY),
    "grad of jit": lambda f: jax.grad(jax.jit(f), EVERY),
    "jvp": lambda f: lambda *args: jax.jvp(f, args, tangents()),
    "vjp": lambda f: lambda *args: jax.vjp(f, *args)[1](2.5),
    "linearize": lambda f: lambda *args: jax.linearize(f, *args)[1](*tangents()),
    "jacfwd": lambda f: jax.jacfwd(f, EVERY),
    "jacrev": lambda f: jax.jacrev(f, EVERY),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f), EVERY),
    "checkpoint under jit": lambda f: jax.jit(jax.grad(jax.checkpoint(f), EVERY)),
    "jvp of grad": lambda f: lambda *args: jax.jvp(jax.grad(f, EVERY), args, tangents()),
    "grad of jvp": lambda f: jax.grad(lambda *args: jax.jvp(f, args, tangents())[1], EVERY),
    "one argument": lambda f: jax.grad(f, 1),
    "auxiliary output": lambda f: jax.grad(lambda *args: (f(*args), args[2]), has_aux=True),
}


BY_OPERATOR = ("call", "grad", "jvp", "vjp", "linearize")


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", OF_SCALARS)
def test_scalar(name, scalars):
    expect_same(OF_SCALARS[name], scalars, *arguments(), eager=name in BY_OPERATOR)


HESSIANS = {
    "forward over reverse": lambda f: jax.jacfwd(jax.jacrev(f, 1), 1),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f, 1), 1),
    "reverse over reverse": lambda f: jax.jacrev(jax.jacrev(f, 1), 1),
    "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f, 1), 1),
    "hessian of blocks": lambda f: jax.hessian(f, (1, 2)),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("transform", HESSIANS.values(), ids=HESSIANS)
def test_hessian(transform, scalars):
    expect_same(transform, scalars, *arguments())


def test_third_derivatives(rules):
    plain, function = loss, lowered(loss_graph, rules)

    def third(f):
        return jax.jacfwd(jax.jacrev(jax.grad(f, 2), 2), 2)

    expect_same(third, (plain, function), *arguments())


# Batches, loops and devices ----------------------------------------------------------------------


def batches(count=3):
    return [jnp.stack(column) for column in zip(*map(arguments, range(count)), strict=True)]


def over_batch(f):
    return jax.vmap(f, in_axes=(0, None, None))


def test_vmap(scalars):
    expect_same(jax.vmap, scalars, *batches())


def test_vmap_of_one_argument(scalars):
    x, w, b = batches()
    expect_same(over_batch, scalars, x, w[0], b[0])


def test_vmap_of_grad(scalars):
    expect_same(lambda f: jax.jit(jax.vmap(jax.grad(f, EVERY))), scalars, *batches())


def test_grad_of_vmap(scalars):
    expect_same(
        lambda f: jax.grad(lambda *args: jnp.sum(jax.vmap(f)(*args)), EVERY), scalars, *batches()
    )


def test_vmap_of_hessian(layers):
    plain, function = ((lambda *args, f=f: jnp.sum(f(*args) ** 2)) for f in layers)
    expect_same(lambda f: jax.vmap(jax.hessian(f, 2)), (plain, function), *batches())


def test_vmap_of_a_moved_axis(layers):
    x, w, b = batches()
    moved = jnp.moveaxis(x, 0, -1)
    expect_same(lambda f: jax.vmap(f, in_axes=(-1, 0, 0), out_axes=1), layers, moved, w, b)


def looped(f, count=3):
    def run(x, w, b):
        def body(carry, shift):
            after = f(carry, w, b)
            return carry + 0.1 * jnp.sum(after), after + shift

        last, outputs = jax.lax.scan(body, x, jnp.arange(float(count)))
        return jnp.sum(last) + jnp.sum(outputs**2)

    return run


def test_scan(layers):
    expect_same(looped, layers, *arguments())


def test_grad_through_scan(layers):
    expect_same(lambda f: jax.jit(jax.grad(looped(f), EVERY)), layers, *arguments())


def test_grad_through_scan_of_checkpoint(layers):
    expect_same(lambda f: jax.grad(looped(jax.checkpoint(f)), EVERY), layers, *arguments())


def test_hessian_through_scan(layers):
    expect_same(lambda f: jax.jit(jax.hessian(looped(f), 2)), layers, *arguments())


def repeated(f):
    def run(x, w, b):
        def step(state):
            count, value = state
            return count + 1, value + 0.1 * jnp.sum(f(value, w, b))

        return jax.lax.while_loop(lambda state: state[0] < 4, step, (0, x))[1]

    return run


def test_while(layers):
    expect_same(repeated, layers, *arguments())


def test_jvp_through_while(layers):
    expect_same(
        lambda f: lambda *args: jax.jvp(repeated(f), args, tangents()), layers, *arguments()
    )


@pytest.mark.parametrize("taken", [True, False])
def test_grad_through_cond(layers, taken):
    def branching(f):
        def run(x, w, b):
            return jnp.sum(jax.lax.cond(taken, f, lambda x, w, b: x @ w.T - b, x, w, b) ** 2)

        return jax.jit(jax.grad(run, EVERY))

    expect_same(branching, layers, *arguments())


def test_map(layers):
    x, w, b = batches()
    expect_same(lambda f: lambda xs: jax.lax.map(lambda one: f(one, w[0], b[0]), xs), layers, x)


@pytest.fixture
def mesh():
    assert jax.device_count() >= 2, "the devices were made before conftest.py set its flag"
    return jax.make_mesh((2,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))


def sharded(f, mesh):
    rows, whole = PartitionSpec("batch"), PartitionSpec()
    return jax.shard_map(f, mesh=mesh, in_specs=(rows, whole, whole), out_specs=rows)


def test_shard_map(layers, mesh):
    plain, function = layers
    result = jax.jit(sharded(function, mesh))(*arguments())
    chex.assert_trees_all_close(result, plain(*arguments()), rtol=1e-12)


def test_grad_of_shard_map(layers, mesh):
    def total(f):
        return jax.jit(jax.grad(lambda *args: jnp.sum(f(*args) ** 2), EVERY))

    plain, function = layers
    result = total(sharded(function, mesh))(*arguments())
    chex.assert_trees_all_close(result, total(plain)(*arguments()), rtol=1e-10)


def test_jit_over_sharded_arrays(layers, mesh):
    plain, function = layers
    x, w, b = arguments()
    spread = jax.device_put(x, NamedSharding(mesh, PartitionSpec("batch")))
    result = jax.jit(function)(spread, w, b)
    assert len(result.sharding.device_set) == 2
    chex.assert_trees_all_close(result, plain(x, w, b), rtol=1e-12)


# Without values ----------------------------------------------------------------------------------


def test_eval_shape(layers):
    expected, result = (jax.eval_shape(f, *arguments()) for f in layers)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)


def test_export(layers):
    plain, function = layers
    exported = jax.export.export(jax.jit(function))(*arguments())
    chex.assert_trees_all_close(exported.call(*arguments()), plain(*arguments()), rtol=1e-12)


def pooled(x, w):
    found = so.convolution(x, w, channels=5, kernel=(3, 3), use_bias=False)
    return so.max_pooling(so.relu(found), kernel=(2, 2))


def attended(x):
    return so.matmul(so.softmax(so.matmul(x, so.permute_dims(x, axes=(0, 2, 1)))), x)


def normalized(x, *parameters):
    return so.batch_norm(x, *parameters)


IMAGE, WORDS, PLAIN = (None, 3, 8, 8), (None, 6, 4), (None, 4)
OPEN_GRAPHS = {
    "mlp": (lambda x, w, b: so.matmul(so.relu(so.matmul(x, w) + b), w), PLAIN, (4, 4), (4,)),
    "fully_connected": (
        lambda x, w, b: so.fully_connected(x, w, b, units=3), WORDS, (3, 24), (3,),
    ),
    "convolution": (pooled, IMAGE, (5, 3, 3, 3)),
    "average_pooling": (lambda x: so.average_pooling(x, kernel=(2, 2)), IMAGE),
    "batch_norm": (normalized, IMAGE, (3,), (3,), (3,), (3,)),
    "layer_norm": (so.layer_norm, PLAIN, (4,), (4,)),
    "attention": (attended, WORDS),
    "einsum": (lambda x, w: so.einsum(x, w, equation="bi,ij->bj"), PLAIN, (4, 3)),
    "log_softmax": (so.log_softmax, PLAIN),
    "logsumexp": (lambda x: so.logsumexp(x, axis=0), PLAIN),
    "mean": (so.mean, PLAIN),
    "mean_of_rows": (lambda x: so.mean(x * x, axis=0), PLAIN),
    "variance": (lambda x: so.variance(x, axis=0), PLAIN),
    "std": (lambda x: so.std(x, axis=0, correction=1), PLAIN),
    "sum": (lambda x: so.sum(x * x, axis=0), PLAIN),
    "cosine_similarity": (so.cosine_similarity, PLAIN, (4,)),
    "triangular_solve": (lambda x, a: so.triangular_solve(so.matmul(a, a), x), WORDS, (6, 6)),
    "cholesky": (
        lambda x, a: so.cholesky(so.matmul(so.expand_dims(x, axis=-1), a) + so.eye(4)),
        PLAIN, (1, 4),
    ),
    "solve": (lambda x, a: so.solve(so.expand_dims(x, axis=-1) * a + so.eye(4), a), PLAIN, (4, 4)),
    "max": (lambda x: so.max(x, axis=0), PLAIN),
    "broadcast": (lambda x, b: x + so.sum(x, axis=1, keepdims=True) * b, PLAIN, (4,)),
    "where": (lambda x: so.where(x > 0, so.clip(x, -1.0, 1.0), x * 2), PLAIN),
    "reshape": (lambda x: so.reshape(x * x, (-1, 4)), WORDS),
    "flatten": (lambda x: so.flatten(x * x), WORDS),
    "transpose": (lambda x: so.permute_dims(x * x, axes=(1, 0)), PLAIN),
    "concat": (lambda x: so.concat(x, x * x, axis=0), PLAIN),
    "split": (lambda x: so.split(x * x, 2, axis=1)[0], PLAIN),
    "pad": (lambda x: so.pad(x * x, pad_width=((1, 1), (1, 2))), PLAIN),
    "cumsum": (lambda x: so.cumsum(x * x, axis=0), PLAIN),
    "take": (lambda x: so.take(x * x, np.array([0, 2, 2]), axis=0), PLAIN),
    "behind": (lambda x: (x * x)[1:], PLAIN),
    "ahead": (lambda x: (x * x)[:-1, ..., ::2], PLAIN),
    "last": (lambda x: (x * x)[-1], PLAIN),
    "backward": (lambda x: (x * x)[::-1, None], PLAIN),
}  # fmt: skip


def as_value(symbol, loss):
    del loss
    return symbol.to_jax()


def as_gradient(symbol, loss):
    del symbol
    return so.grad(loss, "x").to_jax()


def as_second_gradient(symbol, loss):
    del symbol
    slope = so.grad(loss, "x")
    return so.grad(so.sum(so.square(slope)), "x").to_jax()


def as_value_and_gradient(symbol, loss):
    del symbol
    return so.value_and_grad(loss)


def as_rule(symbol, loss):
    """JAX differentiates, and asks the makers."""
    del symbol
    function = loss.to_jax()
    return lambda **arrays: jax.grad(lambda arrays: function(**arrays))(arrays)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "made", [as_value, as_gradient, as_second_gradient, as_value_and_gradient, as_rule]
)
@pytest.mark.parametrize("name", OPEN_GRAPHS)
def test_export_for_every_size(name, made):
    """What is exported once for an open length computes what is lowered for each size."""
    graph, shape, *others = OPEN_GRAPHS[name]
    random = np.random.default_rng(0)
    names = ["x", *"abcd"[: len(others)]]
    parameters = {
        one: random.uniform(0.5, 1.5, size) for one, size in zip(names[1:], others, strict=True)
    }
    symbol = graph(*map(so.var, names))
    function = made(symbol, so.sum(so.square(symbol)))
    (b,) = jax.export.symbolic_shape("b", constraints=["b >= 2"])
    types = {one: jax.ShapeDtypeStruct(held.shape, "float64") for one, held in parameters.items()}
    types["x"] = jax.ShapeDtypeStruct((b, *shape[1:]), "float64")
    exported = jax.export.export(jax.jit(lambda arrays: function(**arrays)))(types)
    for size in (3, 5):
        arrays = {"x": random.normal(size=(size, *shape[1:])), **parameters}
        found, expected = exported.call(arrays), jax.jit(function)(**arrays)
        chex.assert_trees_all_close(found, expected, rtol=1e-12, atol=1e-12)


def test_export_asks_for_what_must_hold_of_the_size():
    """The second row of an open number of rows: JAX is told that there is one."""
    function = so.grad(so.sum(so.square(so.var("x")[1])), "x").to_jax()
    for bounds in ([], ["b >= 2"]):
        (b,) = jax.export.symbolic_shape("b", constraints=bounds)
        export = jax.export.export(jax.jit(function))
        if bounds:
            found = export(jax.ShapeDtypeStruct((b, 2), "float64")).call(np.ones((3, 2)))
            assert found.tolist() == [[0, 0], [2, 2], [0, 0]]
        else:
            with pytest.raises(ShapeError, match=r"squeeze: .*float64\[.*b"):
                export(jax.ShapeDtypeStruct((b, 2), "float64"))


def test_linear_transpose():
    x = so.var("x", (3,), "float64")
    function = so.scale(x, scale=3.0).to_jax(rules=True)
    (result,) = jax.linear_transpose(function, jnp.zeros(3))(jnp.ones(3))
    chex.assert_trees_all_close(result, 3.0 * jnp.ones(3))


def test_kernels_lower_without_custom_rules():
    assert "custom_jvp" not in str(jax.make_jaxpr(lowered(loss_graph, False))(*arguments()))
    assert "custom_jvp" in str(jax.make_jaxpr(lowered(loss_graph, True))(*arguments()))


def test_graph_that_contains_its_gradient_lowers_without_rules():
    assert "custom_jvp" not in str(jax.make_jaxpr(lowered(penalty_graph, None))(*arguments()))


def test_arguments_by_name_and_as_a_tree():
    x, w, b = arguments()
    names = [so.var(name, one.shape, "float64") for name, one in zip("xwb", (x, w, b), strict=True)]
    function = loss_graph(*names).to_jax()
    tree = {"x": x, "w": w, "b": b}
    result = jax.grad(lambda tree: function(**tree))(tree)
    expected = jax.grad(lambda tree: loss(**tree))(tree)
    chex.assert_trees_all_close(result, expected, rtol=1e-9)


def test_donated_argument():
    x = so.var("x", (3,), "float64")
    given = jnp.arange(3.0)
    function = jax.jit(so.sin(x).to_jax(), donate_argnums=0)
    chex.assert_trees_all_close(function(given), jnp.sin(jnp.arange(3.0)), rtol=1e-12)
    assert given.is_deleted()


def test_several_outputs():
    x = so.var("x", (3,), "float64")
    function = so.Group([so.sin(x), so.cos(x)]).to_jax(rules=True)
    result = jax.jacrev(function)(jnp.arange(3.0))
    expected = jax.jacrev(lambda x: [jnp.sin(x), jnp.cos(x)])(jnp.arange(3.0))
    chex.assert_trees_all_close(result, expected, rtol=1e-12)


# Eager calls inside JAX --------------------------------------------------------------------------

EAGER = {name: OF_SCALARS[name] for name in ("call", "jit", "grad", "jvp", "jvp of grad")}


@pytest.mark.parametrize("transform", EAGER.values(), ids=EAGER)
def test_eager_operators_inside_a_function(transform):
    expect_same(transform, (image, image_graph), *arguments())


# Randomness --------------------------------------------------------------------------------------


@pytest.fixture
def noisy(rules):
    x = so.var("x", (20, 10), "float64")
    return (so.dropout(so.dropout(x, rate=0.25), rate=0.5) * 2.0).to_jax(is_train=True, rules=rules)


def ones():
    return jnp.ones((20, 10))


def test_dropout_follows_its_key(noisy):
    first, again, other = (noisy(ones(), key=jax.random.key(k)) for k in (0, 0, 1))
    chex.assert_trees_all_equal(first, again)
    assert not np.array_equal(first, other)
    assert set(np.unique(first)) == {0.0, 2.0 / 0.375}


def test_dropout_under_jit_draws_the_same(noisy):
    key = jax.random.key(3)
    chex.assert_trees_all_equal(jax.jit(noisy)(ones(), key=key), noisy(ones(), key=key))


def test_gradient_of_dropout_has_its_mask(noisy):
    key = jax.random.key(3)
    slope = jax.grad(lambda x: jnp.sum(noisy(x, key=key)))(ones())
    chex.assert_trees_all_close(slope, noisy(ones(), key=key))


def test_tangent_of_dropout_has_its_mask(noisy):
    key = jax.random.key(3)
    way = jnp.asarray(np.random.default_rng(0).normal(size=(20, 10)))
    moved = jax.jvp(lambda x: noisy(x, key=key), (ones(),), (way,))[1]
    chex.assert_trees_all_close(moved, noisy(way, key=key))


def test_vmap_over_keys_draws_for_each(noisy):
    keys = jax.random.split(jax.random.key(0), 3)
    result = jax.vmap(lambda key: noisy(ones(), key=key))(keys)
    for n, key in enumerate(keys):
        chex.assert_trees_all_equal(result[n], noisy(ones(), key=key))


def test_scan_over_keys(noisy):
    keys = jax.random.split(jax.random.key(0), 3)

    def total(x):
        def body(carry, key):
            return carry + jnp.sum(noisy(x, key=key)), None

        return jax.lax.scan(body, 0.0, keys)[0]

    expected = sum(noisy(ones(), key=key) for key in keys)
    chex.assert_trees_all_close(jax.jit(jax.grad(total))(ones()), expected)


def test_gradient_in_the_graph_has_the_mask_of_its_value(rules):
    x = so.var("x", (20, 10), "float64")
    y = so.dropout(x, rate=0.5)
    both = so.Group([y, so.grad(y, x)]).to_jax(is_train=True, rules=rules)
    value, slope = both(ones(), key=jax.random.key(5))
    chex.assert_trees_all_equal(value, slope)


# State -------------------------------------------------------------------------------------------

STATES = ["data", "gamma", "beta", "mean", "var"]


def normalized(data, gamma, beta, mean, var):
    mean_, var_ = data.mean(0), data.var(0)
    out = (data - mean_) / jnp.sqrt(var_ + 1e-5) * gamma + beta
    new = {"mean": 0.9 * mean + 0.1 * mean_, "var": 0.9 * var + 0.1 * var_}
    return jnp.sum(jnp.sin(out)), jax.lax.stop_gradient(new)


@pytest.fixture
def trained(rules):
    shapes = [(6, 3), (3,), (3,), (3,), (3,)]
    inputs = [
        so.var(name, shape, "float64", state=name in ("mean", "var"))
        for name, shape in zip(STATES, shapes, strict=True)
    ]
    symbol = so.sum(so.sin(so.batch_norm(*inputs)))
    return normalized, symbol.to_jax(is_train=True, rules=rules)


def statistics():
    generator = np.random.default_rng(0)
    data, gamma, beta, mean = (jnp.asarray(generator.normal(size=s)) for s in [(6, 3), 3, 3, 3])
    return data, gamma, beta, mean, jnp.abs(mean) + 1.0


OF_STATES = {
    "call": lambda f: f,
    "jit": jax.jit,
    "value_and_grad": lambda f: jax.value_and_grad(f, EVERY, has_aux=True),
    "jvp": lambda f: lambda *args: jax.jvp(f, args, args),
    "hessian": lambda f: jax.jit(jax.hessian(lambda *args: f(*args)[0], 1)),
    "vmap": lambda f: lambda *args: jax.vmap(f)(*[jnp.stack([one, 2 * one]) for one in args]),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f), EVERY, has_aux=True),
    "jacobian of the states": lambda f: jax.jacrev(lambda *args: f(*args)[1], 0),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("transform", OF_STATES.values(), ids=OF_STATES)
def test_state(transform, trained):
    expect_same(transform, trained, *statistics())


def test_state_carried_by_scan(trained):
    data, gamma, beta, mean, var = statistics()

    def run(f):
        def body(states, shift):
            value, new = f(data * shift, gamma, beta, states["mean"], states["var"])
            return new, value

        return lambda: jax.lax.scan(body, {"mean": mean, "var": var}, jnp.arange(1.0, 5.0))

    expect_same(run, trained)


# Operators of one's own --------------------------------------------------------------------------


def reshaped(*, opaque=False, bent=False):
    """``2 x`` by a kernel that needs an array; ``bent`` makes the maker not linear."""

    @op(name="own_reshaped", opaque=opaque)
    def kernel(x: Array) -> Array:
        """``2 x``."""
        return x.reshape(x.shape).at[...].multiply(2)

    kernel.gradient(lambda d_out: {"x": kernel(d_out) * (so.abs(so.sign(d_out)) if bent else 1)})
    return kernel


OF_NUMBERS = {
    "grad": lambda f: jax.grad(f)(1.5),
    "vjp": lambda f: jax.vjp(f, 1.5)[1](1.0)[0],
    "second order": lambda f: jax.grad(jax.grad(lambda v: f(v) ** 2 / 4))(1.5),
}
IN_FORWARD = {
    "jvp": lambda f: jax.jvp(f, (1.5,), (1.0,))[1],
    "linearize": lambda f: jax.linearize(f, 1.5)[1](1.0),
    "hessian": lambda f: jax.hessian(lambda v: f(v) ** 2 / 4)(1.5),
}


@pytest.mark.usefixtures("temporary_operators")
class TestKernelsGetArrays:
    """JAX's rules hold bare numbers where a function is called with them."""

    @pytest.mark.parametrize("opaque", [True, False])
    @pytest.mark.parametrize("run", [*OF_NUMBERS.values(), *IN_FORWARD.values()])
    def test_in_rules(self, run, opaque):
        assert run(reshaped(opaque=opaque)) == 2.0

    def test_numbers_stay_weak(self):
        assert jax.jvp(reshaped(), (1.5,), (1.0,))[0].weak_type

    @pytest.mark.parametrize("run", OF_NUMBERS.values(), ids=OF_NUMBERS)
    def test_where_the_maker_is_not_linear(self, run):
        assert run(reshaped(bent=True)) == 2.0

    def test_without_a_derivative_and_by_jax(self):
        def shaped(x: Array, y: Array) -> Array:
            """``x``."""
            return x.reshape(y.shape)

        op(name="own_flat")(shaped).zero_gradient("it is flat, they say")
        differentiate_kernel(op(name="own_by_jax")(shaped))
        assert jax.grad(lambda v: so.own_flat(v, 2.0))(1.5) == 0.0
        assert jax.grad(lambda v: so.own_by_jax(v, 2.0))(1.5) == 1.0


@pytest.mark.usefixtures("temporary_operators")
class TestMakerThatIsNotLinear:
    def test_forward_mode_is_refused_by_name(self):
        bent = reshaped(bent=True)
        for run in IN_FORWARD.values():
            with pytest.raises(NotLinearError, match="own_reshaped: forward mode needs a gradient"):
                run(bent)
        with pytest.raises(NotLinearError, match="own_reshaped"):
            jax.jit(jax.jacfwd(bent))(1.5)

    def test_reverse_mode_in_loops_and_batches(self):
        bent = reshaped(bent=True)

        def looped(f):
            def run(x):
                return jax.lax.scan(lambda c, _: (jnp.sin(f(c)), None), x, length=2)[0]

            return jax.vmap(jax.grad(jax.grad(jax.checkpoint(run))))

        x = jnp.array([0.3, -1.2])
        expected = looped(lambda v: 2 * v)(x)
        chex.assert_trees_all_close(jax.jit(looped(bent))(x), expected, rtol=1e-12)


@pytest.mark.usefixtures("temporary_operators")
def test_error_of_a_maker_names_its_operator():
    @op(name="own_broken")
    def kernel(x: Array) -> Array:
        """``x``."""
        return x

    kernel.gradient(lambda d_out: {"x": d_out / (1 // 0)})
    x = so.var("x", shape=())
    for run in (
        lambda: jax.grad(kernel)(1.0),
        lambda: so.grad(kernel(x), x),
    ):
        with pytest.raises(ZeroDivisionError) as caught:
            run()
        assert any("in the gradient maker of own_broken" in one for one in caught.value.__notes__)


def test_functions_are_pickled_for_another_process(tmp_path):
    x, w = (so.var(name, shape=(3,), dtype="float32") for name in ("x", "self"))
    loss = so.sum(so.dropout(so.sin(x) * w, rate=0.5))
    given = {"x": np.arange(3, dtype=np.float32), "self": np.ones(3, np.float32)}
    pair = loss.to_jax(is_train=True), so.value_and_grad(loss, ["self"])
    (tmp_path / "functions").write_bytes(pickle.dumps((pair, given)))
    script = """if True:
        import pickle, sys, jax
        (function, both), given = pickle.loads(open(sys.argv[1], "rb").read())
        value = jax.jit(function)(**given, key=jax.random.key(0))
        print(function.__name__, float(value), float(both(**given)[1]["self"][1]))
    """
    told = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "functions")],
        capture_output=True, text=True, check=True, cwd=pathlib.Path(so.__file__).parents[1],
        env={**os.environ, "JAX_ENABLE_X64": str(jax.config.jax_enable_x64)},
    )  # fmt: skip
    name, value, slope = told.stdout.split()
    assert name == pair[0].__name__
    assert float(value) == pytest.approx(float(pair[0](**given, key=jax.random.key(0))))
    assert float(slope) == pytest.approx(float(np.sin(1.0)), rel=1e-6)
