"""Control flow on symbols, against ``jax.lax`` and ``jax.grad`` of the same functions in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import registry
import symop as so
from registry.errors import (
    ArgumentError,
    DTypeError,
    NotDifferentiableError,
    NotLinearError,
    ShapeError,
    UnknownTypeError,
)
from symop.graph.nodes import topological

V = np.array([0.3, -0.2, 0.5])
W = 0.7


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def variables():
    return so.var("x", shape=(3,), dtype="float64"), so.var("w", shape=(), dtype="float64")


# A symbol and the same function in JAX ---------------------------------------------------------


def recurrence():
    x, w = variables()

    def step(c, one):
        h = (c["h"] * w + one).tanh()
        return {"h": h, "n": c["n"] + 1}, (h * one, h)

    last, (ys, hs) = so.scan(step, {"h": w * 0.5, "n": 0}, x)
    return (ys.sin() * hs).sum() + last["h"] * last["n"]


def recurrence_in_jax(x, w):
    def step(c, one):
        h = jnp.tanh(c["h"] * w + one)
        return {"h": h, "n": c["n"] + 1}, (h * one, h)

    last, (ys, hs) = lax.scan(step, {"h": w * 0.5, "n": 0}, x)
    return (jnp.sin(ys) * hs).sum() + last["h"] * last["n"]


def backwards():
    x, w = variables()
    last, ys = so.scan(lambda c, one: (c * one + w, c), 1.0, x, reverse=True)
    return (ys * ys).sum() * last


def backwards_in_jax(x, w):
    last, ys = lax.scan(lambda c, one: (c * one + w, c), jnp.float64(1.0), x, reverse=True)
    return (ys * ys).sum() * last


def chosen():
    x, w = variables()
    y = so.cond(x.sum() * w > 0.0, lambda a: (a * w).sin().sum(), lambda a: a.exp().sum() / w, x)
    z = so.cond(w > 1.0, lambda: w * w, lambda: x[0] * x[1] ** 2 * w)
    return y * z


def chosen_in_jax(x, w):
    y = lax.cond(
        x.sum() * w > 0.0, lambda a: jnp.sin(a * w).sum(), lambda a: jnp.exp(a).sum() / w, x
    )
    z = lax.cond(w > 1.0, lambda: w * w, lambda: x[0] * x[1] ** 2 * w)
    return y * z


def looped():
    x, w = variables()

    def step(state):
        c, total, n = state
        return (c * w + x).sin(), total + (c * c).sum(), n + 1

    c, total, n = so.while_loop(lambda s: s[2] < 4, step, (x, w, 0), max_steps=7)
    return total * c.sum() + n


def looped_in_jax(x, w):
    c, total = x, w
    for _ in range(4):
        c, total = jnp.sin(c * w + x), total + (c * c).sum()
    return total * c.sum() + 4


def nested():
    x, w = variables()

    def inner(c, _):
        grown = so.while_loop(lambda d: d[1] < 2, lambda d: (d[0] * w, d[1] + 1), (c, 0), 3)[0]
        return so.cond(grown < 0.2, lambda g: g.sin() + x[1], lambda g: g * g, grown), grown

    def outer(c, one):
        last, grown = so.scan(inner, c + one, None, length=2)
        return last, grown.sum()

    last, sums = so.scan(outer, 0.5, x)
    return last * sums.sum()


def nested_in_jax(x, w):
    def inner(c, _):
        grown = c * w * w
        made = lax.cond(grown < 0.2, lambda g: jnp.sin(g) + x[1], lambda g: g * g, grown)
        return made, grown

    def outer(c, one):
        last, grown = lax.scan(inner, c + one, None, length=2)
        return last, grown.sum()

    last, sums = lax.scan(outer, jnp.float64(0.5), x)
    return last * sums.sum()


PROGRAMS = {
    "scan": (recurrence, recurrence_in_jax),
    "reverse": (backwards, backwards_in_jax),
    "cond": (chosen, chosen_in_jax),
    "while_loop": (looped, looped_in_jax),
    "nested": (nested, nested_in_jax),
}
programs = pytest.mark.parametrize("name", PROGRAMS)


def near(got, wanted):
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-9, atol=1e-11)


@programs
@pytest.mark.sampled(6)
def test_value_and_gradients_of_three_orders_by_the_graph(name):
    make, by_hand = PROGRAMS[name]
    x, w = variables()
    one = make()
    near(one.eval(x=V, w=W), by_hand(V, W))

    def in_jax(x, w):
        first = jax.grad(by_hand, (0, 1))(x, w)
        return (first[0] ** 2).sum() * first[1]

    first = so.grad(one, [x, w])
    for got, wanted in zip(first, jax.jit(jax.grad(by_hand, (0, 1)))(V, W), strict=True):
        near(got.eval(x=V, w=W), wanted)
    second = so.grad((first[0] ** 2).sum() * first[1], [x, w])
    for got, wanted in zip(second, jax.jit(jax.grad(in_jax, (0, 1)))(V, W), strict=True):
        near(got.eval(x=V, w=W), wanted)
    third = so.grad(second[0].sum() + second[1], w)
    total = jax.grad(lambda w: sum(one.sum() for one in jax.grad(in_jax, (0, 1))(V, w)))
    near(third.eval(x=V, w=W), jax.jit(total)(W))


@programs
@pytest.mark.sampled(3)
def test_forward_mode_and_its_mixtures_by_the_graph(name):
    make, by_hand = PROGRAMS[name]
    x, w = variables()
    way = np.array([1.0, -2.0, 0.5])
    along = so.jvp(make(), [x, w], [so.var("t", (3,), "float64"), so.var("s", (), "float64")])
    given = {"x": V, "w": W, "t": way, "s": 0.3}

    def in_jax(x, w):
        return jax.jvp(by_hand, (x, w), (way, 0.3))[1]

    back = so.jvp(so.grad(make(), w), x, so.var("t", (3,), "float64"))
    found = [along.eval(**given), so.grad(along, x).eval(**given)]
    found += [so.jvp(along, w, 1.0).eval(**given), back.eval(x=V, w=W, t=way)]

    @jax.jit
    def wanted(x, w):
        twice = jax.jvp(lambda w: in_jax(x, w), (w,), (1.0,))[1]
        turned = jax.jvp(lambda x: jax.grad(by_hand, 1)(x, w), (x,), (way,))[1]
        return in_jax(x, w), jax.grad(in_jax)(x, w), twice, turned

    for one, other in zip(found, wanted(V, W), strict=True):
        near(one, other)


@programs
@pytest.mark.sampled(6)
def test_jax_transforms_the_lowered_function(name):
    make, by_hand = PROGRAMS[name]
    lowered = make().to_jax()

    def ours(x, w):
        return lowered(x=x, w=w)

    near(jax.jit(ours)(V, W), jax.jit(by_hand)(V, W))
    near(jax.grad(ours)(V, W), jax.jit(jax.grad(by_hand))(V, W))
    near(jax.jit(jax.hessian(ours))(V, W), jax.jit(jax.hessian(by_hand))(V, W))
    near(
        jax.jit(jax.jacfwd(jax.hessian(ours)))(V, W),
        jax.jit(jax.jacfwd(jax.hessian(by_hand)))(V, W),
    )
    batch = np.stack([V, -V, 2 * V])
    mapped = jax.jit(jax.vmap(jax.value_and_grad(ours), (0, None)))(batch, W)
    alone = jax.jit(jax.value_and_grad(by_hand))
    for got, wanted in zip(mapped, zip(*[alone(x, W) for x in batch], strict=True), strict=True):
        near(got, np.stack(wanted))


@programs
@pytest.mark.sampled(3)
def test_jax_transforms_a_graph_that_holds_its_gradient(name):
    make, by_hand = PROGRAMS[name]
    x, _ = variables()
    lowered = so.grad(make(), x).to_jax()
    got = jax.jit(jax.jacrev(lambda x: lowered(x=x, w=W)))(V)
    near(got, jax.jit(jax.hessian(by_hand))(V, W))


@programs
def test_finite_differences(name):
    make, _ = PROGRAMS[name]
    x, _ = variables()
    symbol, way, step = make(), np.array([0.4, 1.0, -0.3]), 1e-5
    slope = (symbol.eval(x=V + step * way, w=W) - symbol.eval(x=V - step * way, w=W)) / (2 * step)
    np.testing.assert_allclose(so.grad(symbol, x).eval(x=V, w=W) @ way, slope, rtol=1e-6)


# Loops without a bound --------------------------------------------------------------------------


def unbounded():
    x, w = variables()
    step = lambda c: ((c[0] * w).sin() + x, c[1] + 1)  # noqa: E731  # used once, as it stands
    return so.while_loop(lambda c: c[1] < 5, step, (x, 0))[0].sum()


def unbounded_in_jax(x, w):
    c = x
    for _ in range(5):
        c = jnp.sin(c * w) + x
    return c.sum()


def test_forward_mode_needs_no_bound():
    x, w = variables()
    first = so.jvp(unbounded(), w, 1.0)
    second = so.jvp(first, w, 1.0)
    third = so.jvp(second, x, np.ones(3))
    by_w = lambda w: unbounded_in_jax(V, w)  # noqa: E731
    near(first.eval(x=V, w=W), jax.jit(jax.grad(by_w))(W))
    near(second.eval(x=V, w=W), jax.jit(jax.grad(jax.grad(by_w)))(W))
    along_x = jax.grad(lambda x: jax.grad(jax.grad(lambda w: unbounded_in_jax(x, w)))(W))
    near(third.eval(x=V, w=W), jax.jit(along_x)(V).sum())
    lowered = unbounded().to_jax()
    near(jax.jit(jax.jacfwd(lambda x: lowered(x=x, w=W)))(V), jax.grad(unbounded_in_jax)(V, W))


def test_reverse_mode_without_a_bound_is_refused_when_it_is_built():
    x, w = variables()
    with pytest.raises(NotDifferentiableError, match=r"while_loop: .*pass max_steps="):
        so.grad(unbounded(), x)
    with pytest.raises(NotDifferentiableError, match="pass max_steps="):
        so.grad(so.jvp(unbounded(), w, 1.0), x)
    lowered = unbounded().to_jax()
    with pytest.raises(NotDifferentiableError, match="pass max_steps="):
        jax.grad(lambda x: lowered(x=x, w=W))(V)


def test_a_bound_ends_a_loop_whose_condition_still_holds():
    x, _ = variables()
    c, n = so.while_loop(lambda c: c[1] < 9, lambda c: (c[0] * 2.0, c[1] + 1), (x, 0), max_steps=3)
    near(c.eval(x=V), 8 * V)
    assert int(n.eval(x=V)) == 3
    near(so.grad(c.sum(), x).eval(x=V), np.full(3, 8.0))
    none = so.while_loop(lambda c: c.sum() < -9.0, lambda c: c * 2.0, x, max_steps=3)
    near(so.grad(none.sum(), x).eval(x=V), np.ones(3))


# What is captured, and what stays inside --------------------------------------------------------


def applied(symbol):
    return [node.op.name for node in topological(symbol.nodes)]


def test_a_branch_that_is_not_taken_is_not_computed():
    x, _ = variables()
    y = so.cond(x.sum() > 0, x.exp, x.log)
    assert not {"exp", "log"} & set(applied(y))
    text = jax.jit(y.to_jax()).lower(x=V).as_text()
    assert "stablehlo.case" in text or "stablehlo.if" in text
    assert np.isfinite(so.grad(y.sum(), x).eval(x=-np.abs(V) * 0 + 1.0)).all()


def test_no_nan_of_the_other_branch_reaches_the_gradient():
    x = so.var("x", shape=(), dtype="float64")
    y = so.cond(x > 0, x.sqrt, lambda: x * 2.0)
    assert float(so.grad(y, x).eval(x=-1.0)) == 2.0
    assert float(so.grad(so.grad(y, x), x).eval(x=-1.0)) == 0.0


def test_what_existed_before_is_captured_and_computed_once():
    x, w = variables()
    outside = (x * w).exp()
    last, _ = so.scan(lambda c, one: (c + outside * one, None), so.zeros_like(x), x)
    assert applied(last).count("exp") == 1
    near(last.eval(x=V, w=W), np.exp(V * W) * V.sum())
    near(so.grad(last.sum(), w).eval(x=V, w=W), (np.exp(V * W) * V).sum() * V.sum())


def test_arrays_and_variables_that_a_function_makes_become_operands():
    x, _ = variables()

    def step(c, one):
        return c * np.array([1.0, 2.0, 3.0]) + so.var("inside", (3,), "float64") * one, None

    last, _ = so.scan(step, x, x)
    assert last.list_arguments() == ["x", "inside"] or set(last.list_arguments()) == {"x", "inside"}
    inside, wanted = np.array([1.0, -1.0, 0.5]), V
    for one in V:
        wanted = wanted * np.array([1.0, 2.0, 3.0]) + inside * one
    near(last.eval(x=V, inside=inside), wanted)


def test_equal_calls_are_one_node():
    x, w = variables()

    def make():
        return so.scan(lambda c, one: ((c * w + one).tanh(), c), 0.0, x)[0]

    assert make().same_as(make())
    assert so.body(lambda a: a.sin() * 2.0, ()) is so.body(lambda b: b.sin() * 2.0, ())
    assert so.body(lambda a: a.sin() * 2.0, ()) is not so.body(lambda b: b.sin() * 3.0, ())


# Types and structure ----------------------------------------------------------------------------


def test_a_carry_that_changes_its_type_is_named_with_both_types():
    x, _ = variables()
    match = r"scan: carry\['h'\] must keep its type, float64\[3\], got float64\[6\] after a step"
    with pytest.raises(ArgumentError, match=match):
        so.scan(lambda c, one: ({"h": c["h"].concat(c["h"])}, None), {"h": x}, x)
    match = r"while_loop: carry\[1\] must keep its type, int64\[\], got float64\[3\] after a step"
    with pytest.raises(ArgumentError, match=match):
        so.while_loop(
            lambda c: c[1] < 3, lambda c: (c[0], c[0]), (x, so.sym.full((), 0, dtype="int64"))
        )
    with pytest.raises(ArgumentError, match="scan: a step must return carries that are nested as"):
        so.scan(lambda c, one: ((c, c), None), x, x)
    with pytest.raises(ArgumentError, match="scan: a step must return a pair"):
        so.scan(lambda c, one: c, x, x)


def test_a_python_number_takes_the_dtype_of_the_carry():
    x = so.var("x", shape=(3,), dtype="float64")
    last, _ = so.scan(lambda c, one: (c + one, None), 0, x)
    assert last.type == registry.types.VarType((), np.dtype("float64"))
    near(last.eval(x=V), V.sum())


def test_branches_must_agree():
    x, w = variables()
    with pytest.raises(ShapeError, match="output 0 of the false body must be float64"):
        so.cond(w > 0, lambda: x, lambda: w)
    with pytest.raises(DTypeError, match="output 0 of the false body must be float64"):
        so.cond(w > 0, lambda: w, lambda: w.astype("float32"))
    with pytest.raises(
        ArgumentError, match="cond: both functions must nest what they return alike"
    ):
        so.cond(w > 0, lambda: (x, w), lambda: x)
    with pytest.raises(ShapeError, match="the predicate must be a scalar"):
        so.cond(x > 0, lambda: x, lambda: -x)


def test_numbers_of_steps_must_agree():
    x, w = variables()
    with pytest.raises(ArgumentError, match="length must be given where there are no xs"):
        so.scan(lambda c, _: (c, c), x)
    with pytest.raises(ArgumentError, match="all must give the same number of steps, got xs: 3"):
        so.scan(lambda c, _: (c, c), x, x, length=4)
    with pytest.raises(ArgumentError, match="must have an axis of steps, got a scalar"):
        so.scan(lambda c, _: (c, c), x, w)
    with pytest.raises(ArgumentError, match="max_steps must be None or a number of steps, got -1"):
        so.while_loop(lambda c: c < 1, lambda c: c, w, -1)


def test_shapes_must_be_known():
    with pytest.raises(UnknownTypeError, match="its shape and dtype must be known"):
        so.scan(lambda c, one: (c + one, None), 0.0, so.var("unknown"))


def test_integer_carries_and_predicates_pass_no_gradient():
    x, w = variables()
    n = so.var("n", shape=(), dtype="int32")
    (h, count), rows = so.scan(lambda c, one: ((c[0] * one, c[1] + 1), c[1]), (w, n), x)
    near(so.grad(h, w).eval(x=V, w=W, n=np.int32(2)), V.prod())
    assert rows.eval(x=V, w=W, n=np.int32(2)).tolist() == [2, 3, 4]
    assert int(count.eval(x=V, w=W, n=np.int32(2))) == 5
    lowered = so.Group([h, count]).to_jax()
    grad = jax.grad(lambda w, n: lowered(x=V, w=w, n=n)[0], allow_int=True)(W, np.int32(2))
    near(grad, V.prod())


def test_of_several_results_some_are_differentiated():
    x, w = variables()
    a, b = so.cond(w > 0, lambda: (x * w, x.sum()), lambda: (x, w))
    near(so.grad(b, x).eval(x=V, w=W), np.ones(3))
    near(so.grad(b, w, unreachable="zero").eval(x=V, w=W), 0.0)
    near(so.grad(a.sum(), w).eval(x=V, w=W), V.sum())
    near(so.grad(a.sum(), w).eval(x=V, w=-W), 0.0)


# Randomness, training, states -------------------------------------------------------------------


def test_each_step_draws_anew_and_the_gradient_draws_the_same():
    x = so.var("x", shape=(1000,), dtype="float64")
    last, rows = so.scan(lambda c, _: (c + so.dropout(x), c), so.zeros_like(x), None, length=3)
    gradient = so.grad(last.sum(), x)
    run = so.Group([last, rows, gradient]).to_jax(is_train=True)
    ones = np.ones(1000)
    value, steps, slope = run(x=ones, key=jax.random.key(3))
    near(value, slope)  # of a function that is linear with the mask that was drawn
    masks = [steps[1] - steps[0], steps[2] - steps[1], value - steps[2]]
    for first, second in ((0, 1), (1, 2), (0, 2)):
        assert 0.3 < np.mean(np.asarray(masks[first] == masks[second])) < 0.7
    assert set(np.unique(masks[0]).tolist()) == {0.0, 2.0}
    lowered = last.to_jax(is_train=True)
    by_jax = jax.grad(lambda x: lowered(x=x, key=jax.random.key(3)).sum())(ones)
    near(by_jax, value)
    other = run(x=ones, key=jax.random.key(4))[0]
    assert not np.array_equal(value, other)


def test_a_loop_and_a_branch_draw_too():
    x = so.var("x", shape=(1000,), dtype="float64")
    ones, key = np.ones(1000), jax.random.key(0)
    looped = so.while_loop(
        lambda c: c[1] < 2, lambda c: (so.dropout(c[0]), c[1] + 1), (x, 0), max_steps=4
    )[0]
    value, slope = so.Group([looped, so.grad(looped.sum(), x)]).to_jax(is_train=True)(
        x=ones, key=key
    )
    near(value, slope)
    assert abs(float((value > 0).mean()) - 0.25) < 0.1
    branch = so.cond(x.sum() > 0, so.dropout, lambda x: x, x)
    value, slope = so.Group([branch, so.grad(branch.sum(), x)]).to_jax(is_train=True)(
        x=ones, key=key
    )
    near(value, slope)
    so.random.seed(5)
    first = branch.eval(x=ones, is_train=True)
    so.random.seed(5)
    near(branch.eval(x=ones, is_train=True), first)


def test_the_training_flag_passes_through():
    x = so.var("x", shape=(100,), dtype="float64")
    y, _ = so.scan(lambda c, _: (so.dropout(c), None), x, None, length=2)
    near(y.eval(x=np.ones(100)), np.ones(100))
    trained = y.eval(x=np.ones(100), is_train=True)
    assert set(np.unique(trained).tolist()) == {0.0, 4.0}
    near(so.grad(y.sum(), x).eval(x=np.ones(100)), np.ones(100))


def test_updating_a_state_inside_is_refused():
    x = so.var("x", shape=(4, 3, 2), dtype="float64")
    with pytest.raises(ArgumentError, match="batch_norm: inside of control flow it cannot update"):
        so.scan(lambda c, one: (c, so.batch_norm(one, name="bn")), 0.0, x)


# Operators that JAX differentiates otherwise -----------------------------------------------------


def test_the_maker_of_an_operator_inside_is_honored():
    x, _ = variables()

    def step(c, one):
        return c * so.round_straight_through(one), None

    last, _ = so.scan(step, 1.0, x * 10.0)
    wanted = jnp.prod(jnp.round(V * 10.0)) / jnp.round(V * 10.0) * 10.0
    near(so.grad(last, x).eval(x=V), wanted)
    lowered = last.to_jax()
    near(jax.jit(jax.grad(lambda x: lowered(x=x)))(V), wanted)


def test_a_loss_layer_inside_has_reverse_mode_alone():
    x = so.var("x", shape=(2, 3), dtype="float64")
    label = so.var("label", shape=(2,), dtype="float64")
    y = so.cond(x.sum() > -9.0, lambda: so.SoftmaxOutput(x, label), lambda: x)
    logits, labels = np.arange(6.0).reshape(2, 3) / 3, np.array([0.0, 2.0])
    wanted = np.array(jax.nn.softmax(logits)) - np.eye(3)[[0, 2]]
    near(so.grad(y.sum(), x).eval(x=logits, label=labels), wanted)
    lowered = y.to_jax()
    near(jax.grad(lambda x: lowered(x=x, label=labels).sum())(logits), wanted)
    with pytest.raises(NotLinearError, match="cond: forward mode needs a gradient maker that is"):
        so.jvp(y, x, x)


def test_a_loss_layer_inside_of_a_scan_has_reverse_mode_alone():
    x = so.var("x", shape=(4, 2, 3), dtype="float64")
    label = so.var("label", shape=(2,), dtype="float64")
    last, _ = so.scan(lambda c, one: (c + so.SoftmaxOutput(one, label).sum(), None), 0.0, x)
    logits, labels = np.linspace(-1, 1, 24).reshape(4, 2, 3), np.array([0.0, 2.0])
    wanted = np.array(jax.nn.softmax(logits)) - np.eye(3)[[0, 2]]
    near(so.grad(last, x).eval(x=logits, label=labels), wanted)
    lowered = last.to_jax()
    near(jax.jit(jax.grad(lambda x: lowered(x=x, label=labels)))(logits), wanted)
    with pytest.raises(NotLinearError, match="scan: forward mode needs a gradient maker that is"):
        so.jvp(last, x, x)


def test_a_body_without_a_derivative_tells_by_which_operator():
    x, _ = variables()
    y = so.cond(x.sum() > 0, lambda: so.argsort(x).astype("float64"), lambda: x)
    near(so.grad(y.sum(), x).eval(x=-V), np.ones(3))


# Depth ------------------------------------------------------------------------------------------


def test_a_gradient_does_not_grow_with_the_number_of_steps():
    def size(steps):
        x = so.var("x", shape=(steps,), dtype="float64")
        w = so.var("w", shape=(), dtype="float64")
        last, _ = so.scan(lambda c, one: ((c * w + one).tanh(), None), 0.0, x)
        gradient = so.grad(so.grad(last, w), x)
        return len(topological(gradient.nodes)), gradient

    few, _ = size(10)
    many, gradient = size(10_000)
    assert few == many
    series = np.linspace(-1, 1, 10_000)

    def in_jax(x, w):
        return lax.scan(lambda c, one: (jnp.tanh(c * w + one), None), jnp.float64(0.0), x)[0]

    near(gradient.eval(x=series, w=W), jax.jit(jax.grad(jax.grad(in_jax, 1)))(series, W))


def test_what_nobody_reads_is_not_stored():
    _, w = variables()
    many = so.var("many", shape=(1000, 64), dtype="float64")
    last, _ = so.scan(lambda c, one: ((c * w + one).tanh(), None), so.zeros_like(many[0]), many)
    given = {"many": np.zeros((1000, 64)), "w": W}

    def room(function):
        return jax.jit(function).lower(**given).compile().memory_analysis().temp_size_in_bytes

    series = 1000 * 64 * 8
    assert room(last.to_jax()) < series / 4
    kept = room(so.grad(last.sum(), w).to_jax())
    assert series <= kept < 2.5 * series  # two values of each step: the carry, and what tanh gave


# Operators --------------------------------------------------------------------------------------


def test_operators_called_with_bodies_of_ones_own():
    x, w = variables()
    body = so.body(lambda c, one, w: (c * w + one, c * one), *[((), "float64")] * 3)
    scan = registry.get("scan")
    last, rows = scan(w, x, w, body=body, n_carry=1, n_xs=1, length=3)

    def in_jax(x, w):
        last, rows = lax.scan(lambda c, one: (c * w + one, c * one), w, x)
        return last * rows.sum()

    symbol = last * rows.sum()
    near(symbol.eval(x=V, w=W), in_jax(V, W))
    near(so.grad(symbol, w).eval(x=V, w=W), jax.grad(in_jax, 1)(V, W))
    near(
        so.grad(so.grad(symbol, w), x).eval(x=V, w=W), jax.jit(jax.grad(jax.grad(in_jax, 1)))(V, W)
    )


def test_a_body_is_closed():
    x, _ = variables()
    with pytest.raises(ArgumentError, match="must be among its inputs, got x float64"):
        so.body(lambda a: a + x, ((3,), "float64"))
    with pytest.raises(registry.errors.AttributeValueError, match="must be a body"):
        registry.get("scan")(x, body=len, n_carry=1, length=3)


def test_foreach_has_the_argument_order_of_mxnet():
    x, w = variables()
    outputs, states = so.foreach(lambda one, s: (one * s[0], [s[0] + one]), x, [w])
    near(outputs.eval(x=V, w=W), V * (W + np.array([0, V[0], V[0] + V[1]])))
    near(states[0].eval(x=V, w=W), W + V.sum())
    with pytest.raises(ArgumentError, match="foreach: the body must return outputs and states"):
        so.foreach(lambda one, s: one, x, [w])


def nested(depth, v):
    """Choices in choices."""
    if not depth:
        return so.tanh(v)
    return so.cond(so.sum(v) > depth, lambda: nested(depth - 1, v * 1.01), lambda: so.sin(v))


def test_what_nests_deeply_is_saved_loaded_and_differentiated():
    x = so.var("x", shape=(2,))
    y = nested(100, x)
    assert so.load_json(y.tojson()).nodes == y.nodes
    slope = so.grad(so.sum(y), x)
    assert so.load_json(slope.tojson()).nodes == slope.nodes
    assert so.Program.from_desc(y.to_program().desc()).tojson() == y.to_program().tojson()
    second = so.grad(so.sum(slope), x)
    assert second.shape == (2,)
    assert jax.make_jaxpr(y.to_jax())(jnp.ones(2)).out_avals[0].shape == (2,)


def test_control_flow_that_nests_too_deeply_is_refused_when_it_is_built():
    def in_branches(inner):
        choice = registry.get("cond")
        return so.body(
            lambda v: choice(so.sum(v) > 0, v * 1.01, true_body=inner, false_body=inner)[0], (2,)
        )

    body = so.body(so.sin, (2,))
    for _ in range(199):
        body = in_branches(body)
    x = so.var("x", shape=(2,))
    y = registry.get("cond")(so.sum(x) > 0, x, true_body=body, false_body=body)[0]
    assert so.load_json(y.tojson()).nodes == y.nodes
    assert so.grad(so.sum(y), x).shape == (2,)
    with pytest.raises(ArgumentError, match="functions must nest at most 200 deep, got 201"):
        in_branches(body)
