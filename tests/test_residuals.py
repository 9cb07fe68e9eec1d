"""The bytes that gradients keep between forward and backward: no more than one array of the input.

An executor keeps what the gradient makers read. JAX keeps what it splits off their transposes,
which may be a factor for each entry instead of the input.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from symop import autograd, nd

SHAPE = (4, 8, 16)
BYTES = 4 * 4 * 8 * 16
STATISTICS = 0.2
"""More than statistics, and the parameters that a norm multiplies by, take of this shape."""
MASK = 0.25
"""A mask of booleans. JAX keeps a zero for each entry as well."""

ONE_ARRAY = {
    **{
        name: getattr(so, name)
        for name in (
            "abs", "celu", "elu", "erf", "exp", "gelu", "hard_swish", "leaky_relu", "log_sigmoid",
            "log_softmax", "mish", "selu", "sigmoid", "silu", "softmax", "softplus",
            "softsign", "square", "tanh",
        )
    },
    "approximate gelu": lambda x: so.gelu(x, approximate=True),
}  # fmt: skip
SELECTIONS = {name: getattr(so, name) for name in ("hard_sigmoid", "hard_tanh", "relu", "relu6")}
NORMS = {
    "layer_norm": lambda x: so.layer_norm(x, name="n"),
    "rms_norm": lambda x: so.rms_norm(x, name="n"),
    "batch_norm": lambda x: so.batch_norm(x, name="n"),
    "group_norm": lambda x: so.group_norm(x, num_groups=2, name="n"),
    "instance_norm": lambda x: so.instance_norm(x, name="n"),
    "l2_normalize": so.l2_normalize,
    "logsumexp": lambda x: so.logsumexp(x, axis=-1),
}
NOTHING = {
    "dropout": lambda x: so.dropout(x, rate=0.25),
    "scale": lambda x: so.scale(x, scale=3.0),
    "mean": lambda x: so.mean(x, axis=1),
    "sum": lambda x: so.sum(x, axis=1),
}
BOUNDS = {
    **{name: (build, 1.0, 1.0) for name, build in ONE_ARRAY.items()},
    **{name: (build, MASK, 1.0 + MASK) for name, build in SELECTIONS.items()},
    **{name: (build, 1.0 + STATISTICS, 1.0 + STATISTICS) for name, build in NORMS.items()},
    **{name: (build, 0.0, 0.0) for name, build in NOTHING.items()},
}


def arrays_of(symbol):
    """Positive arrays for the variables of a symbol."""
    arguments, _, states = symbol.infer_shape()
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    draw = np.random.default_rng(0).uniform
    pairs = zip(names, [*arguments, *states], strict=True)
    return {name: jnp.asarray(draw(0.5, 1.5, shape), jnp.float32) for name, shape in pairs}


def size(values):
    """The bytes of distinct arrays in units of the input, but for numbers and keys."""
    distinct = {id(one): one for one in values if hasattr(one, "nbytes") and one.size > 1}
    return sum(one.nbytes for one in distinct.values()) / BYTES


@pytest.mark.parametrize(("build", "most", "_"), BOUNDS.values(), ids=BOUNDS)
def test_executors_keep_little(build, most, _):
    y = build(so.scale(so.var("x", shape=SHAPE), scale=2.0))
    executor = y.simple_bind(x=SHAPE)
    kept = sum(one.nbytes for one in executor.residual_types() if one.size > 1) / BYTES
    assert kept <= most
    assert kept >= most - STATISTICS  # otherwise the bound says little
    loss = so.sum(so.matmul(y, so.var("c", shape=y.shape[-1:])))
    estimate = so.remat.estimate(loss, ["x"], is_train=True)
    assert estimate.kept / BYTES <= max(most, 1.0 if most else 0.0)


@pytest.mark.parametrize(("build", "_", "most"), BOUNDS.values(), ids=BOUNDS)
def test_gradients_by_jax_keep_little(build, _, most):
    y = build(so.var("x", shape=SHAPE))
    arrays, function = arrays_of(y), y.to_jax(is_train=True)

    def output(given):
        result = function(**given, key=jax.random.key(0))
        return result[0] if isinstance(result, tuple) else result

    _, pull = jax.vjp(output, arrays)
    assert size(jax.tree.leaves(pull)) <= most


@pytest.mark.parametrize("name", ["gelu", "layer_norm", "dropout", "relu", "softmax"])
def test_eager_tapes_keep_little(name):
    most = BOUNDS[name][1]
    x = nd.array(np.ones(SHAPE, np.float32))
    x.attach_grad()
    gains = [nd.array(np.ones(16, np.float32)) for _ in range(2)] if name == "layer_norm" else []
    with autograd.record():
        inner = x * 2.0
        y = getattr(so, name)(inner, *gains)
    y.asjax()
    assert size(y._link.entry.saved) <= (STATISTICS if most == 0.0 else 1.0 + STATISTICS)


@pytest.mark.parametrize("policy", [so.remat.keep_none, so.remat.keep_costly])
def test_policies_keep_less(policy):
    x = so.var("x", shape=SHAPE)
    with so.remat.scope(policy()):
        y = so.dropout(so.gelu(so.layer_norm(so.scale(x, scale=2.0), name="n")), rate=0.5)
    loss = so.sum(y)
    assert so.remat.estimate(loss, ["x"], is_train=True).kept == 0
    arrays = arrays_of(loss)
    kept, again = (
        so.value_and_grad(one, ["x", "n_gamma"], is_train=True)
        for one in (
            so.sum(so.dropout(so.gelu(so.layer_norm(so.scale(x, scale=2.0), name="n")), rate=0.5)),
            loss,
        )
    )
    key = jax.random.key(1)
    for one, other in zip(
        jax.tree.leaves(kept(**arrays, key=key)), jax.tree.leaves(again(**arrays, key=key)),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_dropout_in_gradients_by_jax_repeats_its_draws():
    y = so.dropout(so.var("x", shape=SHAPE), rate=0.5)
    x, key = jnp.ones(SHAPE), jax.random.key(3)
    function = y.to_jax(is_train=True)
    out, pull = jax.vjp(lambda x: function(x, key=key), x)
    np.testing.assert_array_equal(pull(jnp.ones(SHAPE))[0], out)
    _, moved = jax.jvp(lambda x: function(x, key=key), [x], [x])
    np.testing.assert_array_equal(moved, out)
    batch = jax.vmap(jax.grad(lambda x: jnp.sum(function(x, key=key))))(x[None])
    np.testing.assert_array_equal(batch[0], out)
