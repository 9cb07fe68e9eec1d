"""Long chains of entrywise operators are cut for XLA's compiler, and compute what they did."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import registry
import symop as so
from registry.types import VarType
from registry.xla.barrier import barrier
from symop.graph.nodes import Node, placeholder, topological
from symop.lowering import steps as lowering
from symop.xla import chain_barriers as cutting
from symop.xla.chain_barriers import LONG, STRIDE, cuts, is_fused

SHAPE = (4, 3)
X = np.linspace(-1, 1, 12, dtype="f").reshape(SHAPE)
P = np.linspace(0.5, 1.5, 12, dtype="f").reshape(SHAPE)
STEPS = (
    lambda lib, x, p, c: lib.sin(x * c),
    lambda lib, x, p, c: x * p,
    lambda lib, x, p, c: lib.tanh(x) + c * p,
    lambda lib, x, p, c: lib.exp(-lib.square(x)),
    lambda lib, x, p, c: x / (c + x * x),
)


@pytest.fixture(autouse=True)
def unrolled():
    """Chains that repeat themselves would become loops."""
    with so.rolling(False):
        yield


def chain(lib, x, p, length, *, residual=False):
    """A chain of operators of which no two are equal."""
    for i in range(length):
        step = STEPS[i % len(STEPS)](lib, x, p, 1 + i / 1000)
        x = 0.5 * (x + step) if residual else step
    return x


def sines(x, length):
    """A chain of so many operators exactly."""
    for i in range(length):
        x = so.sin(x) if i % 2 else so.cos(x)
    return x


def variables():
    return so.var("x", SHAPE), so.var("p", SHAPE)


def count(function, *args, **kwargs):
    """How often a function meets a barrier when it is traced."""
    return len(re.findall(r"\bsymop_barrier\b", str(jax.make_jaxpr(function)(*args, **kwargs))))


def forgotten(monkeypatch):
    """Let nothing be cut."""
    monkeypatch.setattr(lowering, "cuts", lambda order: set())


@pytest.fixture
def early(monkeypatch):
    """Let chains be cut that compile soon."""
    monkeypatch.setattr(cutting, "LONG", 12)
    monkeypatch.setattr(cutting, "STRIDE", 4)


SOME = 20
"""Steps of a chain that is cut early."""


# Where -----------------------------------------------------------------------------------------


def test_a_short_chain_is_left_alone():
    x, _ = variables()
    assert count(sines(x, LONG).to_jax(), X) == 0
    assert count(sines(x, LONG + 1).to_jax(), X) == LONG // STRIDE


def test_a_long_chain_is_cut_at_each_stride():
    x, _ = variables()
    assert count(sines(x, 10 * STRIDE + 1).to_jax(), X) == 10
    # The last value is read by no operator of the chain, so nothing is gained by a cut.
    assert count(sines(x, 10 * STRIDE).to_jax(), X) == 9


def test_only_the_long_chains_of_a_graph_are_cut():
    x, p = variables()
    short = sines(p, LONG)
    both = so.Group([sines(x, 4 * LONG), short])
    cut = cuts(topological(both.nodes))
    assert len(cut) == 4 * LONG // STRIDE - 1
    assert cut.isdisjoint(topological(short.nodes))


def test_a_product_ends_a_chain():
    x = so.var("x", (3, 3))
    y = x
    for _ in range(8):
        y = so.matmul(sines(y, LONG // 2), x)
    assert count(y.to_jax(), np.eye(3, dtype="f")) == 0


def test_a_network_of_many_layers_is_left_alone():
    x = y = so.var("x", (4, 8))
    for i in range(100):
        y = so.tanh(so.matmul(y, so.var(f"w{i}", (8, 8))) + so.var(f"b{i}", (8,)))
    gradients = so.grad(so.sum(y), [x, *[so.var(f"w{i}", (8, 8)) for i in range(100)]])
    assert cuts(topological([one.nodes[0] for one in gradients])) == set()


def test_a_chain_of_residual_layers_is_cut():
    x, w = so.var("x", (4, 8)), so.var("w", (8, 8))
    y = x
    for _ in range(2 * LONG):
        y = y + so.tanh(so.matmul(y, w))
    # The first sum ends a chain of two, tanh and itself; the products end all others.
    chosen = cuts(topological(y.nodes))
    assert len(chosen) == 2 * LONG // STRIDE
    assert {node.op.name for node in chosen} == {"add"}


def longest_uncut(order, cut):
    """The longest way through fused operators that meets no cut, and how long it is with cuts."""
    lengths = {}
    for node in order:
        reach = max((lengths.get(one, 0) for one in node.operands if one not in cut), default=0)
        lengths[node] = (reach + (node.inputs != ())) if is_fused(node) or not node.inputs else 0
    return max(lengths.values())


@pytest.mark.parametrize("seed", range(4))
def test_no_way_without_a_cut_is_long(seed):
    generator = np.random.default_rng(seed)
    values = list(variables())
    for i in range(6 * LONG):
        # Some edges leap over the levels at which cuts lie.
        back = int(generator.choice([1, 2, STRIDE, STRIDE + 1]))
        other = values[-min(back, len(values))]
        values.append(so.sin(values[-1]) * other if i % 3 else other + values[-min(3, len(values))])
    order = topological(values[-1].nodes)
    assert longest_uncut(order, set()) > LONG
    assert longest_uncut(order, cuts(order)) <= LONG


def test_a_ladder_of_leaps_is_cut():
    # All levels of the side chain have one remainder, so none of them is a multiple of the stride.
    x, side = variables()
    for i in range(20 * STRIDE):
        x = so.sin(x) if i % 2 else so.cos(x)
        if i % STRIDE == 4:
            side = side + x
    order = topological(side.nodes)
    assert longest_uncut(order, cuts(order)) <= 3 * STRIDE


def sum_of_a_chain(length):
    """The sum of all values of a chain, and the values."""
    values = [variables()[0]]
    for i in range(length):
        values.append(so.sin(values[-1]) if i % 2 else so.cos(values[-1]))
    return so.add_n(*values)


def test_a_sum_of_many_is_lowered_as_sums_of_few():
    y = sum_of_a_chain(2 * LONG)
    program = jax.make_jaxpr(y.to_jax())(X)
    assert str(program).count(" add ") == 2 * LONG
    # The first part has a stride of terms, each other one the sum so far and the next terms.
    parts = 1 + math.ceil((2 * LONG + 1 - STRIDE) / (STRIDE - 1))
    assert count(y.to_jax(), X) == 2 * LONG // STRIDE + parts
    few = so.add_n(*[so.var(f"x{i}", SHAPE) for i in range(2 * LONG)])
    assert count(few.to_jax(), **{f"x{i}": X for i in range(2 * LONG)}) == 0


@pytest.mark.usefixtures("early")
def test_a_sum_of_many_is_what_it_was():
    def by_hand(x):
        total = x
        for i in range(SOME):
            x = jnp.sin(x) if i % 2 else jnp.cos(x)
            total = total + x
        return jnp.sum(total)

    ours = so.sum(sum_of_a_chain(SOME)).to_jax()
    assert count(jax.grad(ours), X) > 0
    close(jax.jit(jax.value_and_grad(ours))(X), jax.value_and_grad(by_hand)(X))


def test_cuts_are_the_same_for_equal_graphs():
    def names():
        y = chain(so, *variables(), 3 * LONG)
        x, p = variables()
        order = topological(so.Group([y, *so.grad(so.sum(y), [x, p])]).nodes)
        chosen = cuts(order)
        return [i for i, node in enumerate(order) if node in chosen]

    first = names()
    assert first == names()
    assert first


def test_a_deep_chain_needs_no_recursion():
    x, _ = variables()
    y = sines(x, 20_000)
    assert len(cuts(topological([*so.grad(so.sum(y), [x])[0].nodes, *y.nodes]))) > 1000


# Which operators are fused ---------------------------------------------------------------------


def applied(name, *types, **attributes):
    nodes = [placeholder("x", VarType(shape, np.dtype("f"))) for shape in types]
    made = registry.get(name)(*nodes, **attributes)
    assert isinstance(made, Node)
    return made


@pytest.mark.parametrize(
    ("name", "shapes", "attributes"),
    [
        ("sin", [(3, 3)], {}),
        ("sigmoid", [(3, 3)], {}),
        ("gelu", [(3, 3)], {}),
        ("multiply", [(3, 3), (3,)], {}),
        ("add_n", [(3, 3)] * 5, {}),
        ("scale", [(3, 3)], {"scale": 2.0}),
        ("transpose", [(3, 3)], {}),
        ("where", [(3, 3)] * 3, {}),
        ("broadcast_to", [(3,)], {"shape": (3, 3)}),
    ],
)
def test_fused(name, shapes, attributes):
    assert is_fused(applied(name, *shapes, **attributes))


@pytest.mark.parametrize(
    ("name", "shapes", "attributes"),
    [
        ("matmul", [(3, 3), (3, 3)], {}),
        ("softmax", [(3, 3)], {}),
        ("cumsum", [(3, 3)], {"axis": 0}),
        ("sum", [(3, 3)], {"axis": 0, "keepdims": True}),
        ("sort", [(3, 3)], {}),
    ],
)
def test_not_fused(name, shapes, attributes):
    assert not is_fused(applied(name, *shapes, **attributes))


def test_dropout_is_fused_whatever_draws_its_mask():
    x, _ = variables()
    (node,) = so.dropout(x).nodes
    source = node if node.inputs and len(node.inputs) > 1 else node.operands[0]
    assert is_fused(source)


# Values ----------------------------------------------------------------------------------------


def loss(x, p):
    return jnp.sum(chain(jnp, x, p, SOME))


def cut_loss():
    f = so.sum(chain(so, *variables(), SOME)).to_jax()
    return lambda x, p: f(x=x, p=p)


def close(found, wanted):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-6)


def both(transform, *args, meets=True):
    """The same transformation of the cut function and of plain JAX's."""
    ours, theirs = transform(cut_loss()), transform(loss)
    if meets:
        assert count(ours, *args) > 0
    close(jax.jit(ours)(*args), theirs(*args))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        lambda f: jax.value_and_grad(f, (0, 1)),
        lambda f: lambda x, p: jax.jvp(f, (x, p), (p, x)),
        lambda f: jax.grad(jax.checkpoint(f), (0, 1)),
        lambda f: lambda x, p: jax.jvp(jax.grad(f), (x, p), (p, x)),
        lambda f: lambda x, p: jax.linearize(f, x, p)[1](p, x),
    ],
    ids=["value", "grad", "jvp", "grad of checkpoint", "jvp of grad", "linearize"],
)
@pytest.mark.usefixtures("early")
@pytest.mark.sampled(3)
def test_transformations(transform):
    both(transform, X, P)


@pytest.mark.usefixtures("early")
def test_gradients_are_cut_too():
    ours = cut_loss()
    assert count(jax.grad(ours, (0, 1)), X, P) > 1.5 * count(ours, X, P)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (2, 1)])
@pytest.mark.usefixtures("early")
@pytest.mark.sampled(3)
def test_vmap(axes):
    args = [
        one if axis is None else np.stack([one, one / 2, -one], axis)
        for one, axis in zip((X, P), axes, strict=True)
    ]
    both(lambda f: jax.vmap(jax.grad(f), axes), *args)


@pytest.mark.usefixtures("early")
def test_scan():
    def looped(f):
        def run(x, p):
            return jax.lax.scan(lambda s, one: (s + f(one, p), s), 0.0, x)[0]

        return jax.grad(run)

    both(looped, np.stack([X, -X]), P)


def test_a_barrier_is_linear():
    (transposed,) = jax.linear_transpose(barrier, X)(P)
    np.testing.assert_array_equal(transposed, P)
    assert count(jax.linear_transpose(barrier, X), P) == 1
    ones = jnp.arange(3)  # integers have no tangent
    np.testing.assert_array_equal(jax.jit(barrier)(ones), ones)
    np.testing.assert_array_equal(barrier(X), X)


@pytest.mark.usefixtures("early")
def test_sharded():
    mesh = Mesh(np.array(jax.devices()[:2]), ("rows",))
    x = jax.device_put(X, NamedSharding(mesh, PartitionSpec("rows")))
    p = jax.device_put(P, NamedSharding(mesh, PartitionSpec("rows")))
    gradient = jax.jit(jax.grad(cut_loss()))(x, p)
    close(gradient, jax.grad(loss)(X, P))
    assert len(gradient.sharding.device_set) == 2
    mapped = jax.shard_map(
        lambda x, p: jax.lax.psum(cut_loss_of((2, 3))(x, p), "rows"),
        mesh=mesh,
        in_specs=(PartitionSpec("rows"), PartitionSpec("rows")),
        out_specs=PartitionSpec(),
    )
    close(jax.jit(mapped)(x, p), loss(X, P))
    close(jax.jit(jax.grad(mapped))(x, p), jax.grad(loss)(X, P))


def cut_loss_of(shape):
    y = so.sum(chain(so, so.var("x", shape), so.var("p", shape), SOME))
    return lambda x, p: y.to_jax()(x=x, p=p)


@pytest.mark.usefixtures("early")
def test_other_platforms_get_barriers_of_their_own():
    exported = jax.export.export(jax.jit(cut_loss()), platforms=["cuda"])(X, P)
    barriers = exported.mlir_module().count("stablehlo.optimization_barrier")
    assert barriers == count(cut_loss(), X, P)


# Graphs that contain their gradients -------------------------------------------------------------


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("residual", [False, True])
def test_graph_gradients(residual, monkeypatch):
    def values():
        x, p = variables()
        y = so.sum(chain(so, x, p, SOME, residual=residual))
        group = so.Group([y, *so.grad(y, [x, p])])
        return count(group.to_jax(), X, P), jax.jit(group.to_jax())(X, P)

    barriers, found = values()
    assert barriers > 0
    close(
        found,
        jax.value_and_grad(lambda x, p: jnp.sum(chain(jnp, x, p, SOME, residual=residual)), (0, 1))(
            X, P
        ),
    )
    forgotten(monkeypatch)
    without, again = values()
    assert without == 0
    close(found, again)


@pytest.mark.usefixtures("early")
def test_executor():
    y = so.sum(chain(so, *variables(), SOME))
    executor = y.bind({"x": X, "p": P})
    executor.forward(is_train=True)
    executor.backward()
    value, gradients = jax.value_and_grad(loss, (0, 1))(X, P)
    close(executor.outputs, [value])
    close([executor.grad_dict["x"], executor.grad_dict["p"]], gradients)


@pytest.mark.usefixtures("early")
def test_body_of_a_loop():
    p = so.var("p", SHAPE)

    def step(carry, one):
        return chain(so, carry + one, p, SOME), so.sum(carry)

    carried, _ = so.scan(step, so.var("x", SHAPE), so.var("xs", (3, *SHAPE)))
    y = so.sum(carried)
    xs = np.stack([X, -X, P])

    def by_hand(x, p, xs):
        return jnp.sum(jax.lax.scan(lambda c, one: (chain(jnp, c + one, p, SOME), None), x, xs)[0])

    found = so.grad(y, [so.var("x", SHAPE), p])
    group = so.Group(found)
    assert count(group.to_jax(), x=X, p=P, xs=xs) > 0
    close(group.eval(x=X, p=P, xs=xs), jax.grad(by_hand, (0, 1))(X, P, xs))


# Compiled --------------------------------------------------------------------------------------


def largest_fusion(function, *args):
    """How many instructions the largest computation of the compiled program has, but its entry."""
    text = jax.jit(function).lower(*args).compile().as_text()
    bodies = re.findall(r"^%fused_computation\S* .*?\{\n(.*?)^\}", text, re.S | re.M)
    return max(body.count(" = ") for body in bodies)


def test_compiled_fusions_stay_small(monkeypatch):
    x, _ = variables()

    def f():
        y = sines(x, 6 * LONG)
        return so.Group([y, so.grad(so.sum(y), x)]).to_jax()

    cut = largest_fusion(f(), X)
    forgotten(monkeypatch)
    assert cut < 8 * STRIDE < largest_fusion(f(), X)


def test_a_barrier_copies_nothing():
    x, _ = variables()
    compiled = jax.jit(sines(x, 4 * LONG).to_jax()).lower(X).compile().as_text()
    assert compiled.count(" call(") == 4 * LONG // STRIDE - 1
    assert " copy(" not in compiled
