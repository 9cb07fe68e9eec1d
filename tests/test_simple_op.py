"""SimpleOp: operators from plain functions, from their registration to their second derivative."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import registry
import symop as so
from registry import EnvArguments, OpDesc, case, elementwise, misuse, register_simple_op
from registry.cases import nonzero
from registry.errors import (
    ArgumentError,
    DeclarationError,
    GradientError,
    NotDifferentiableError,
    RegistrationError,
    ShapeError,
    SymopError,
)
from symop.testing import check_operator

pytestmark = pytest.mark.usefixtures("temporary_operators")
NUMBERS = np.array([-2.0, -0.3, 0.1, 3.0], np.float32)


def smooth_l1_forward(src, env):
    width = 1 / env.scalar**2
    return jnp.where(jnp.abs(src) > width, jnp.abs(src) - width / 2, src * src / (2 * width))


def smooth_l1_backward(out_grad, in_data0, env):
    width = 1 / env.scalar**2
    inner = jnp.abs(in_data0) <= width
    return out_grad * jnp.where(inner, in_data0 / width, jnp.sign(in_data0))


def smooth_l1():
    return (
        register_simple_op("my_smooth_l1")
        .set_shape_function(lambda src, env: src)
        .set_function(smooth_l1_forward, inplace="none")
        .set_gradient(smooth_l1_backward, inplace="out_in")
        .set_enable_scalar(True)
        .describe("Calculate Smooth L1 Loss(lhs, scalar)")
        .add_cases(case(src=(3, 4), scalar=1.0), case(src=(5,), scalar=2.0))
    )


def needs_gradient():
    return (
        register_simple_op("needs_gradient")
        .set_function(lambda a, env: env.scalar * a + 1, "in_out")
        .set_gradient(lambda out_grad, env: env.scalar * out_grad, "out_in")
        .set_enable_scalar(order="scalar_array")
        .add_cases(case(a=(2, 3), scalar=3.0), reference=lambda a, *, scalar: scalar * a + 1)
    )


def needs_output():
    return (
        register_simple_op("needs_output")
        .set_function(jnp.exp, "in_out")
        .set_gradient(lambda out_grad, out_value: out_grad * out_value, "out_in")
        .add_cases(case(x=(3,)), case(x=()), case(x=(0, 2)), reference=np.exp)
    )


def needs_input():
    return (
        register_simple_op("needs_input")
        .set_function(jnp.square)
        .set_gradient(lambda x, out_grad: out_grad * x * 2)
        .add_cases(case(x=(3,)), reference=np.square)
    )


def hypotenuse():
    def gradient(out_grad, out_value, lhs, rhs):
        return out_grad * lhs / out_value, out_grad * rhs / out_value

    return (
        register_simple_op("hypotenuse")
        .set_function(lambda p, q: jnp.sqrt(p * p + q * q), "none")
        .set_gradient(gradient, "out_lhs")
        .add_cases(
            case(p=nonzero(3, 2), q=nonzero(3, 2)),
            misuse("p and q must have the same shape, got (3,) and (4,)", p=(3,), q=(4,)),
            reference=np.hypot,
        )
    )


def scaled_difference():
    """A binary operator of whose gradient only the cotangent is needed."""
    return (
        register_simple_op("scaled_difference")
        .set_function(lambda lhs, rhs, env: env.kwargs["by"] * (lhs - rhs), "lhs_out")
        .set_gradient(
            lambda out_grad, env: (env.kwargs["by"] * out_grad, -env.kwargs["by"] * out_grad)
        )
        .set_enable_kwargs(True, by=(float, 2.0), note=(str, ""))
        .add_cases(case(lhs=(3,), rhs=(3,)), case(lhs=(3,), rhs=(3,), by=0.5, note="x"))
    )


def jagged():
    """A map written for one element, with the control flow of JAX inside."""

    def of_element(a, env):
        return jax.lax.cond(a > 0, lambda: a * a * env.scalar, lambda: -a)

    def gradient(out_grad, in_data0, env):
        return out_grad * jnp.where(in_data0 > 0, 2 * in_data0 * env.scalar, -1.0)

    return (
        register_simple_op("jagged")
        .set_function(elementwise(of_element))
        .set_gradient(elementwise(gradient))
        .set_enable_scalar()
        .add_cases(
            case(a=nonzero(2, 3), scalar=2.0), case(a=nonzero(), scalar=1.0), case(a=(0,), scalar=1)
        )
    )


def masked():
    """Entries are dropped at random; the gradient has to draw the same ones."""

    def mask(like, env):
        return env.resource[1].get_random().bernoulli(0.5, like.shape).astype(like.dtype)

    return (
        register_simple_op("masked")
        .set_resource_request(["temp_space", "random"])
        .set_function(lambda a, env: a * mask(a, env) + env.resource[0].get_space((), a.dtype))
        .set_gradient(lambda out_grad, env: out_grad * mask(out_grad, env))
        .add_cases(case(a=(6,)))
    )


def loss_layer():
    """Its gradient ignores the cotangent, as loss layers' do."""
    return (
        register_simple_op("logistic_output")
        .set_function(lambda data, label: jax.nn.sigmoid(data))
        .set_gradient(
            lambda out_grad, out_value, label: (out_value - label, jnp.zeros_like(label)),
            differs=True,
        )
        .add_cases(case(data=(3,), label=(3,)))
    )


EVERY = [
    smooth_l1,
    needs_gradient,
    needs_output,
    needs_input,
    hypotenuse,
    scaled_difference,
    jagged,
    masked,
    loss_layer,
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("declare", EVERY)
def test_the_proofs_hold(declare):
    operator = declare().operator
    assert check_operator(operator).ok
    backward = registry.get(f"_backward_{operator.name}")
    assert backward.derivative is registry.Derivative.KERNEL
    assert not operator.native


# The worked example ------------------------------------------------------------------------------


def test_both_worlds_at_once():
    smooth_l1()
    plain = smooth_l1_forward(NUMBERS, EnvArguments(scalar=2.0))
    np.testing.assert_allclose(so.nd.my_smooth_l1(NUMBERS, 2.0), plain)
    np.testing.assert_allclose(so.my_smooth_l1(NUMBERS, scalar=2.0), plain)
    x = so.var("x")
    np.testing.assert_allclose(so.sym.my_smooth_l1(x, 2.0).eval(x=NUMBERS), plain)
    assert so.nd.my_smooth_l1.__doc__ == "Calculate Smooth L1 Loss(lhs, scalar)"


def test_the_loss_of_the_guide():
    smooth_l1()
    names = ("data", "label", "inside_weight", "outside_weight")
    data, label, inside, outside = (so.var(name, shape=(4,)) for name in names)
    loss = outside * so.sym.my_smooth_l1(inside * (data - label), 2.0)
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=4).astype(np.float32) for name in names}
    a = arrays
    difference = a["inside_weight"] * (a["data"] - a["label"])
    inner = np.abs(difference) <= 0.25
    slope = np.where(inner, 4 * difference, np.sign(difference))
    expected = a["outside_weight"] * a["inside_weight"] * slope
    gradient = so.grad(so.sum(loss), data)
    np.testing.assert_allclose(gradient.eval(**arrays), expected, rtol=1e-5)
    loaded = so.load_json(gradient.tojson())
    np.testing.assert_array_equal(loaded.eval(**arrays), gradient.eval(**arrays))
    curvature = so.grad(so.sum(so.load_json(loss.tojson())), data)
    assert so.grad(so.sum(curvature), data).eval(**arrays).tolist() == pytest.approx(
        (4 * a["outside_weight"] * a["inside_weight"] ** 2 * inner).tolist()
    )


@pytest.mark.parametrize("declare", [needs_gradient, needs_output, needs_input])
def test_derivatives_equal_those_of_a_plain_function(declare, x64):
    operator = declare().operator
    values = [2.0] if operator.attributes else []

    def plain(v):
        return jnp.sum(operator.kernel(v, **dict(zip(["scalar"], values, strict=False))) ** 2)

    def ours(v):
        return jnp.sum(operator(*values, v) ** 2)

    v, t = jnp.array([0.3, -1.2]), jnp.array([1.0, 0.5])
    for transform in (jax.grad, jax.hessian, jax.jacfwd, lambda f: jax.grad(lambda v: f(v) ** 2)):
        np.testing.assert_allclose(transform(ours)(v), transform(plain)(v), rtol=1e-6)
    x = so.var("x", shape=(2,), dtype="float64")
    y = so.sum(so.square(operator(*values, x)))
    graph = y.to_jax()
    np.testing.assert_allclose(jax.jit(jax.hessian(lambda v: graph(x=v)))(v), jax.hessian(plain)(v))
    pushed = so.jvp(y, x, so.var("t", shape=(2,), dtype="float64"))
    _, expected = jax.jvp(plain, (v,), (t,))
    np.testing.assert_allclose(pushed.eval(x=v, t=t), expected)
    second = so.grad(so.sum(so.grad(y, x)), x)
    np.testing.assert_allclose(second.eval(x=v), jnp.sum(jax.jit(jax.hessian(plain))(v), axis=0))


def test_the_gradient_is_an_operator_desc_too():
    smooth_l1()
    forward = OpDesc("my_smooth_l1", {"src": ["a"]}, {"out": ["b"]}, {"scalar": 1.0})
    (made,) = registry.get("my_smooth_l1").grad_op_maker(forward)
    assert made.type == "_backward_my_smooth_l1"
    assert made.inputs == {"d_out": ["b@GRAD"], "src": ["a"]}
    assert made.outputs == {"d_src": ["a@GRAD"]}


def test_an_operator_desc_must_name_the_key_that_its_gradient_needs():
    operator = masked().operator
    with pytest.raises(ArgumentError, match="masked: key must be named, so that the gradient"):
        operator.grad_op_maker(OpDesc("masked", {"a": ["x"]}, {"out": ["y"]}))
    (made,) = operator.grad_op_maker(OpDesc("masked", {"a": ["x"], "key": ["k"]}, {"out": ["y"]}))
    assert made.inputs == {"d_out": ["y@GRAD"], "key": ["k"]}


# Residuals ---------------------------------------------------------------------------------------


def residuals(operator, *values):
    """What JAX keeps for the pullback of ``operator``, and what the executor keeps."""
    names = [f"v{i}" for i in range(len(values))]
    _, pull = jax.vjp(operator, *values)
    executor = operator(
        *[so.var(name, shape=v.shape) for name, v in zip(names, values, strict=True)]
    ).bind(dict(zip(names, values, strict=True)))
    executor.forward(is_train=True)
    kept = executor._kept
    return [a for a in jax.tree.leaves(pull) if a.ndim], [*kept.variables, *kept.residuals]


@pytest.mark.parametrize(
    ("declare", "kept"),
    [
        (scaled_difference, []),
        (needs_output, [np.exp]),
        (needs_input, [np.asarray]),
    ],
)
def test_only_what_the_gradient_names_is_kept(declare, kept):
    operator = declare().operator
    values = [jnp.asarray(NUMBERS)] * len(operator.slots)
    for found in residuals(operator, *values):
        assert len(found) == len(kept)
        for array, expected in zip(found, kept, strict=True):
            np.testing.assert_allclose(array, expected(NUMBERS), rtol=1e-6)


def test_a_loss_layer_keeps_no_input_either():
    operator = loss_layer().operator
    data, label = jnp.asarray(NUMBERS), jnp.ones(4)
    for found in residuals(operator, data, label):
        assert not any(np.array_equal(array, data) for array in found)


# Kinds of operators ------------------------------------------------------------------------------


def test_a_loss_layer_has_no_forward_mode():
    operator = loss_layer().operator
    data, label = jnp.asarray(NUMBERS), jnp.zeros(4)
    gradient = jax.grad(lambda v: 7 * jnp.sum(operator(v, label)))(data)
    np.testing.assert_allclose(gradient, jax.nn.sigmoid(data), rtol=1e-6)
    x, y = so.var("x", shape=(4,)), so.var("y", shape=(4,))
    with pytest.raises(GradientError, match="linear in its cotangent"):
        so.jvp(operator(x, y), x, so.var("t", shape=(4,)))
    # Its gradient is a function of the output, so it has a derivative in turn.
    second = jax.grad(lambda v: jnp.sum(jax.grad(lambda w: jnp.sum(operator(w, label)))(v)))(data)
    assert second.shape == (4,)


def test_operands_may_be_named_in_every_way():
    ways = {
        "lhs_rhs": lambda out_grad, lhs, rhs: (out_grad * rhs, out_grad * lhs),
        "in_data": lambda in_data1, in_data0, out_grad: (out_grad * in_data1, out_grad * in_data0),
        "own": lambda out_grad, p, q: (out_grad * q, out_grad * p),
        "own_crossed": lambda out_grad, rhs, p: (out_grad * rhs, out_grad * p),
    }
    p, q = jnp.array([2.0, 3.0]), jnp.array([5.0, 7.0])
    for name, gradient in ways.items():
        product = register_simple_op(name).set_function(lambda p, q: p * q).set_gradient(gradient)
        found = jax.grad(lambda a, b, f=product.operator: jnp.sum(f(a, b)), (0, 1))(p, q)
        np.testing.assert_array_equal(found, (q, p))


def test_shapes_of_binary_operators():
    operator = hypotenuse().operator
    with pytest.raises(ShapeError, match=r"hypotenuse: p and q must have the same shape"):
        so.nd.hypotenuse(np.ones(3), np.ones(4))
    with pytest.raises(ShapeError, match=r"hypotenuse: .*\(3,\) and \(\)"):
        operator(so.var("x", shape=(3,)), 1.0)
    known, unknown = so.var("a", shape=(2, 3)), so.var("b")
    assert operator(known, unknown).infer_shape() == ([(2, 3), (2, 3)], [(2, 3)], [])


def test_shape_functions_tell_other_shapes():
    outer = (
        register_simple_op("outer_products")
        .set_shape_function(lambda lhs, rhs, env: (lhs[0], rhs[0]))
        .set_function(lambda lhs, rhs, env: lhs[:, None] * rhs[None])
        .set_gradient(lambda out_grad, lhs, rhs: (out_grad @ rhs, lhs @ out_grad))
        .add_cases(case(lhs=(3,), rhs=(4,)), reference=np.outer)
    ).operator
    assert check_operator(outer).ok
    with pytest.raises(ShapeError, match="outer_products: the shape function must take"):
        outer(np.float32(1), np.ones(3))
    wrong = register_simple_op("wrong_shape").set_function(lambda a: a[:1]).operator
    with pytest.raises(ShapeError, match=r"wrong_shape: the kernel's result .*\[\(3,\)\]"):
        wrong(np.ones(3))


def test_sources():
    simple = (
        register_simple_op("ramp")
        .set_enable_kwargs(True, length=int, step=(float, 1.0))
        .set_function(lambda env: env.kwargs["step"] * jnp.arange(float(env.kwargs["length"])))
        .add_cases(case(length=3), case(length=2, step=0.5))
    )
    assert check_operator(simple.operator).ok
    assert so.nd.ramp(length=3).tolist() == [0.0, 1.0, 2.0]
    ramp = so.sym.ramp(length=3, step=2.0)
    assert isinstance(ramp, so.Symbol)
    x = so.var("x", shape=(3,))
    loaded = so.load_json(so.sum(ramp * x).tojson())
    assert float(loaded.eval(x=NUMBERS[:3])) == pytest.approx(-0.2, abs=1e-6)
    assert so.grad(ramp * x, x).eval(x=NUMBERS[:3]).tolist() == [
        0.0,
        2.0,
        4.0,
    ]
    with pytest.raises(DeclarationError, match="ramp: a source has no input"):
        simple.set_gradient(lambda out_grad: out_grad)


def test_no_gradient():
    silent = register_simple_op("silent").set_function(lambda a: a)
    with pytest.raises(NotDifferentiableError, match=r"silent: .* not implemented"):
        jax.grad(silent.operator)(1.0)
    silent.set_no_gradient("it is a rank")
    with pytest.raises(NotDifferentiableError, match="it is a rank"):
        so.grad(so.silent(so.var("x", shape=())), so.var("x", shape=()))
    with pytest.raises(DeclarationError, match="declared twice"):
        silent.set_gradient(lambda out_grad: out_grad)
    register_simple_op("level").set_function(jnp.rint).set_zero_gradient("it is constant")
    assert float(jax.grad(so.level)(1.2)) == 0.0


# Environment -------------------------------------------------------------------------------------


def test_the_scalar_stands_on_either_side():
    after = register_simple_op("minus_scalar").set_enable_scalar(True)
    after.set_function(lambda a, env: a - env.scalar)
    before = register_simple_op("scalar_minus").set_enable_scalar(True, order="scalar_array")
    before.set_function(lambda a, env: env.scalar - a)
    a, x = np.float32([1.0, 2.0]), so.var("x", shape=(2,))
    assert so.nd.minus_scalar(a, 3).tolist() == so.sym.minus_scalar(x, 3).eval(x=a).tolist()
    assert so.nd.scalar_minus(3, a).tolist() == so.sym.scalar_minus(3, x).eval(x=a).tolist()
    assert so.nd.scalar_minus(3, a).tolist() == so.nd.scalar_minus(a, scalar=3.0).tolist()
    assert so.nd.scalar_minus(3, a).dtype == np.float32
    after.set_enable_scalar(False).set_enable_kwargs(True, by=(int, 1))
    after_error = "minus_scalar: set_enable_scalar\\(True\\) must come before env.scalar is used"
    with pytest.raises(DeclarationError, match=after_error):
        so.nd.minus_scalar(a)


def test_keywords_are_typed():
    operator = scaled_difference().operator
    assert operator(np.float32([3.0]), np.float32([1.0]), by=0.5).tolist() == [1.0]
    with pytest.raises(SymopError, match="attribute 'by' must be a float, got 'two'"):
        operator(np.ones(1), np.ones(1), by="two")
    x, y = so.var("x", shape=(1,)), so.var("y", shape=(1,))
    assert "by=0.5" in str(so.grad(operator(x, y, by=0.5), x))


def test_env_by_hand():
    env = EnvArguments(kwargs={"axis": 0})
    assert env.kwargs["axis"] == 0
    with pytest.raises(DeclarationError, match="set_enable_scalar"):
        _ = env.scalar
    with pytest.raises(TypeError):
        env.kwargs["axis"] = 1
    assert repr(env) == "EnvArguments(kwargs={'axis': 0})"


def test_random_numbers_are_reproducible_and_fresh():
    masked()
    ones, x = np.ones(64, np.float32), so.var("x", shape=(64,))
    so.random.seed(0)
    eager = [so.nd.masked(ones) for _ in range(2)]
    so.random.seed(0)
    pair = so.Group([so.sym.masked(x), so.sym.masked(x)])
    symbolic = pair.eval(x=ones)
    np.testing.assert_array_equal(eager, symbolic)
    assert not np.array_equal(eager[0], eager[1])
    assert not np.array_equal(pair.eval(x=ones)[0], symbolic[0])
    given = jax.random.key(3)
    jitted = jax.jit(lambda a: so.nd.masked(a, key=given))
    np.testing.assert_array_equal(jitted(ones), so.nd.masked(ones, key=given))


def test_the_gradient_draws_what_the_function_drew():
    operator = masked().operator
    ones, key = jnp.ones(64), jax.random.key(3)
    gradient = jax.grad(lambda a: jnp.sum(operator(a, key=key)))(ones)
    np.testing.assert_array_equal(gradient, operator(ones, key=key))
    executor = operator(so.var("a", shape=(64,))).bind({"a": ones})
    steps = []
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward()
        np.testing.assert_array_equal(executor.grad_dict["a"], executor.outputs[0])
        steps.append(np.asarray(executor.outputs[0]))
    assert not np.array_equal(*steps)


def test_draws_differ_and_have_their_distributions():
    def sample(env):
        first, second = (env.resource[i].get_random() for i in range(2))
        again = env.resource[0].get_random()
        draws = [one.uniform((500,), low=2.0, high=4.0) for one in (first, first, second, again)]
        normal = first.normal((500,), mean=1.0, std=0.1)
        whole = first.randint((500,), 0, 3).astype(float)
        rest = [first.gumbel((500,)), first.exponential((500,)), first.permutation(500) * 1.0]
        return jnp.stack([*draws, normal, whole, *rest, first.draw(jax.random.cauchy, (500,))])

    register_simple_op("sample").set_resource_request(["random", "random"]).set_function(sample)
    rows = np.asarray(so.nd.sample())
    assert len({tuple(row) for row in rows}) == len(rows)
    assert all(((row >= 2) & (row < 4)).all() for row in rows[:4])
    assert abs(rows[4].mean() - 1) < 0.05
    assert set(rows[5]) == {0.0, 1.0, 2.0}
    assert sorted(rows[8]) == list(range(500))


def test_a_resource_must_be_requested():
    simple = register_simple_op("greedy").set_function(
        lambda a, env: a + env.resource[0].get_random().normal(a.shape)
    )
    with pytest.raises(DeclarationError, match=r"greedy: .* must request resource 0 .*got none"):
        so.nd.greedy(np.ones(3))
    simple.set_resource_request("temp_space")
    with pytest.raises(DeclarationError, match=r"greedy: .* must request 'random'.*'temp_space'"):
        so.nd.greedy(np.ones(3))
    simple.set_resource_request("random")
    assert so.nd.greedy(np.ones(3)).shape == (3,)
    simple.set_shape_function(lambda a, env: (env.resource[0].get_random(), a)[1])
    with pytest.raises(DeclarationError, match=r"greedy: .* in a rule for shapes"):
        so.nd.greedy(np.ones(3))


# Elementwise -------------------------------------------------------------------------------------


def test_elementwise_is_a_function_of_arrays():
    step = elementwise(lambda a, at: jnp.where(a > at, 1.0, 0.0))
    assert step(jnp.array([[0.0, 2.0]]), 1.0).tolist() == [[0.0, 1.0]]
    assert step(np.float32(2), at=1.0).shape == ()
    assert list(inspect.signature(step).parameters) == ["a", "at"]
    both = elementwise(lambda a, b: (a + b, a * b))
    np.testing.assert_array_equal(both(np.ones((2, 1)), np.ones(3))[0], np.full((2, 3), 2.0))
    half = elementwise(lambda a, env: a * env.scalar)
    assert half(jnp.ones(2, jnp.bfloat16), EnvArguments(scalar=0.5)).dtype == jnp.bfloat16


def test_elementwise_refuses_a_python_if():
    def kink(a, env):
        return a if a > 0 else -a

    register_simple_op("kink").set_function(elementwise(kink))
    for call in (lambda: so.nd.kink(np.ones(3)), lambda: so.sym.kink(so.var("x", shape=(3,)))):
        with pytest.raises(DeclarationError, match=r"kink: .* jnp.where\(condition, a, b\)"):
            call()


# Platforms ---------------------------------------------------------------------------------------


def test_a_function_for_one_platform():
    register_simple_op("placed").set_function(lambda a: 5 * a).set_function(
        lambda a: 2 * a, device="cpu"
    ).set_function(lambda a: 3 * a, device="gpu").set_gradient(
        lambda out_grad: 5 * out_grad
    ).set_gradient(lambda out_grad: 2 * out_grad, device="cpu")
    a, x = jnp.ones(2), so.var("x", shape=(2,))
    assert so.nd.placed(a).tolist() == so.sym.placed(x).eval(x=a).tolist() == [2.0, 2.0]
    assert so.grad(so.sum(so.placed(x)), x).eval(x=a).tolist() == [2.0, 2.0]
    assert jax.grad(lambda v: so.placed(v).sum())(a).tolist() == [2.0, 2.0]
    assert jax.jvp(so.placed, (a,), (a,))[1].tolist() == [2.0, 2.0]
    for platform, factor in {"cuda": "3.0", "tpu": "5.0"}.items():
        text = export.export(jax.jit(so.placed), platforms=[platform])(a).mlir_module()
        assert f"dense<{factor}" in text
        assert "dense<2.0" not in text


def test_a_function_for_another_platform_changes_nothing():
    simple = needs_output()
    before = simple.operator(NUMBERS)
    simple.set_function(lambda x: 0 * x, device="gpu")
    simple.set_gradient(lambda out_value, out_grad: 0 * out_grad, device="gpu")
    np.testing.assert_array_equal(simple.operator(NUMBERS), before)
    assert check_operator(simple.operator).ok
    assert simple.operator.inplace == {}  # one of the functions does not permit it any more


def test_the_first_function_runs_where_no_other_does():
    simple = register_simple_op("moved").set_function(lambda a: 3 * a, device="gpu")
    assert so.nd.moved(np.ones(1)).tolist() == [3.0]
    simple.set_gradient(lambda out_grad: 3 * out_grad, device="tpu")
    assert float(jax.grad(so.moved)(1.0)) == 3.0
    simple.set_function(lambda a: 2 * a, device="cpu")
    assert so.nd.moved(np.ones(1)).tolist() == [2.0]
    simple.set_function(lambda a: 4 * a)
    text = export.export(jax.jit(so.moved), platforms=["tpu"])(jnp.ones(1)).mlir_module()
    assert "dense<4.0" in text


def test_a_source_for_one_platform():
    source = register_simple_op("spread").set_resource_request("random")
    source.set_function(lambda env: 0 * env.resource[0].get_random().normal((2,)))
    source.set_function(lambda env: env.resource[0].get_random().normal((2,)), device="cpu")
    so.random.seed(5)
    eager = so.nd.spread()
    so.random.seed(5)
    np.testing.assert_array_equal(so.sym.spread().eval(), eager)
    assert float(jnp.abs(eager).sum()) > 0


# What is refused ---------------------------------------------------------------------------------


def unary(function=lambda a: a, inplace="none"):
    return register_simple_op("one").set_function(function, inplace)


def binary(inplace="none"):
    return register_simple_op("two").set_function(lambda lhs, rhs: lhs + rhs, inplace)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: unary(lambda a, b, c: a), "one: .* two inputs at most"),
        (
            lambda: unary(lambda *arrays: arrays),
            "one: the function must have positional parameters",
        ),
        (lambda: unary(lambda a, *, k: a), "one: the function must have positional parameters"),
        (lambda: unary(lambda out: out), "one: an input must not be called 'out'"),
        (lambda: unary(lambda key: key), "one: an input must not be called 'key'"),
        (lambda: unary(3), "one: the function must be a function"),
        (lambda: unary(inplace="inout"), "one: inplace of the function .* did you mean 'in_out'"),
        (lambda: unary(inplace="out_in"), "one: inplace='out_in' belongs to the gradient"),
        (lambda: unary(inplace="lhs_out"), "one: inplace='lhs_out' .* belongs to a binary"),
        (lambda: binary("in_out"), "two: inplace='in_out' .* belongs to a unary"),
        (lambda: unary().set_gradient(lambda out_grad: 1, "in_out"), "belongs to the function"),
        (lambda: unary().set_gradient(lambda out_grad: 1, "out_lhs"), "belongs to a binary"),
        (lambda: unary().set_gradient(lambda in_data0: 1), "one: the gradient must name out_grad"),
        (
            lambda: unary().set_gradient(lambda out_grad, b: 1),
            "one: the gradient must name some of",
        ),
        (lambda: unary().set_gradient(lambda out_grad, lhs: 1), "got 'lhs'"),
        (lambda: unary().set_gradient(lambda out_grad, a, in_data0: 1), "nothing twice"),
        (
            lambda: unary(inplace="in_out").set_gradient(lambda out_grad, a: a),
            "one: 'out' must not take the place of 'a', which the gradient needs",
        ),
        (
            lambda: binary("lhs_out").set_gradient(lambda out_grad, lhs: (lhs, lhs)),
            "two: 'out' must not take the place of 'lhs'",
        ),
        (lambda: unary().set_function(lambda a: a), "one: the function is declared twice"),
        (lambda: unary().set_function(lambda a: a, device="gpo"), "one: .* did you mean 'gpu'"),
        (
            lambda: (
                unary()
                .set_function(lambda a: a, device="gpu")
                .set_function(lambda a: a, device="cuda")
            ),
            "one: the kernel for 'cuda' is declared twice",
        ),
        (lambda: unary().set_function(lambda a, b: a, device="gpu"), "one: .* take the inputs"),
        (
            lambda: (
                unary()
                .set_gradient(lambda out_grad: out_grad)
                .set_gradient(lambda out_grad, a: a, device="gpu")
            ),
            "one: the gradient for 'gpu' must name what the others name",
        ),
        (lambda: unary().set_shape_function(lambda a, b: a), "one: the shape function must take"),
        (lambda: unary().set_resource_request("randm"), "one: .* did you mean 'random'"),
        (lambda: unary().set_enable_scalar(order="left"), "one: order must be one of"),
        (lambda: unary().set_enable_kwargs(True), "one: set_enable_kwargs must declare"),
        (
            lambda: unary().set_enable_kwargs(True, b=(int, 1, 2)),
            "'b' must be declared by its type",
        ),
        (lambda: unary().set_enable_kwargs(True, b="int"), "one: attribute 'b'"),
        (lambda: unary().set_enable_kwargs(True, a=int), "one: inputs and attributes must differ"),
        (lambda: unary().set_enable_kwargs(True, out=int), "one: a keyword must not be called"),
        (
            lambda: unary().set_enable_scalar().set_enable_kwargs(True, b=int),
            "a scalar or keywords",
        ),
        (
            lambda: unary().set_enable_kwargs(True, b=int).set_enable_scalar(),
            "a scalar or keywords",
        ),
        (lambda: unary().add_cases({"a": 1}), "one: a case must be made by case"),
        (lambda: register_simple_op("nothing").operator, "nothing: set_function must come first"),
        (lambda: register_simple_op("sin"), "sin: an operator must be registered once"),
        (lambda: register_simple_op("_one"), "_one: an operator's name must be"),
    ],
)
def test_misuse(call, message):
    with pytest.raises(SymopError, match=message):
        call()


def test_a_setter_that_fails_changes_nothing():
    simple = unary(lambda a, env: a * 2).set_gradient(lambda out_grad: 2 * out_grad)
    before, backward = simple.operator, registry.get("_backward_one")
    for fail in (
        lambda: simple.set_shape_function(lambda a, b: a),
        lambda: simple.set_enable_kwargs(True, a=int),
        lambda: simple.set_function(lambda a, b: a, device="gpu"),
        lambda: simple.set_gradient(lambda out_grad, a: a, device="gpu"),
        lambda: simple.set_gradient(lambda out_grad: 1),
    ):
        with pytest.raises(SymopError):
            fail()
        assert simple.operator is before is registry.get("one")
        assert registry.get("_backward_one") is backward
    simple.set_enable_kwargs(True, b=(int, 0)).describe("Twice.")
    assert registry.get("one").__doc__ == "Twice."
    assert repr(simple) == "<simple operator one: one(a, *, b=0)>"


def test_the_operator_exists_as_soon_as_it_has_a_function():
    simple = register_simple_op("late").set_enable_scalar().set_gradient(lambda out_grad: out_grad)
    assert "late" not in registry.names()
    simple.set_function(lambda a, env: a)
    assert {"late", "_backward_late"} <= set(registry.names())
    early = so.sym.late(so.var("x", shape=(1,)), 1.0)
    simple.describe("Later.")
    assert early.eval(x=np.ones(1, np.float32)).tolist() == [1.0]


def test_names_are_taken_once():
    first = unary().set_gradient(lambda out_grad: out_grad)
    with pytest.raises(RegistrationError, match="pass replace=True"):
        register_simple_op("one")
    with pytest.raises(RegistrationError, match="belongs to"):
        register_simple_op(registry.get("concat").aliases[0], replace=True)
    held = register_simple_op("early")
    register_simple_op("early").set_function(lambda a: 1 * a)
    with pytest.raises(RegistrationError, match="early: an operator must be registered once"):
        held.set_function(lambda a: 2 * a)
    assert so.nd.early(np.ones(1)).tolist() == [1.0]
    register_simple_op("one", replace=True).set_function(lambda a: 3 * a)
    assert so.nd.one(np.ones(1)).tolist() == [3.0]
    assert "_backward_one" not in registry.names()
    assert first.operator(np.ones(1)).tolist() == [1.0]


# Replacing and taking back -----------------------------------------------------------------------


def test_a_replaced_operator_does_not_come_back():
    first = register_simple_op("st").set_function(lambda a: a * 1)
    register_simple_op("st", replace=True).set_function(lambda a: a * 2)
    with pytest.raises(RegistrationError, match=r"st: .* was replaced since"):
        first.describe("old")
    assert so.nd.st(np.ones(1)).tolist() == [2.0]
    with pytest.raises(RegistrationError, match=r"st: the declaration .* was reverted"):
        first.describe("old")


def failing(name, *, replace=False):
    (
        register_simple_op(name, replace=replace)
        .set_function(lambda a: a * 3)
        .set_gradient(lambda out_grad: 3 * out_grad)
        .set_enable_scalar(order="behind")
    )


def test_a_chain_that_fails_leaves_the_old_operator():
    unary(lambda a: a * 2).set_gradient(lambda out_grad: 2 * out_grad)
    before = [registry.get(name) for name in ("one", "_backward_one")]
    with pytest.raises(SymopError, match="one: order must be one of"):
        failing("one", replace=True)
    assert [registry.get(name) for name in ("one", "_backward_one")] == before
    assert float(jax.grad(so.nd.one)(1.0)) == 2.0
    register_simple_op("one", replace=True).set_function(lambda a: a * 4)
    assert so.nd.one(np.ones(1)).tolist() == [4.0]


def test_a_first_chain_that_fails_leaves_nothing():
    for _ in range(2):  # the corrected cell is as good as the first
        with pytest.raises(SymopError, match="one: order must be one of"):
            failing("one")
        assert not {"one", "_backward_one"} & set(registry.names())
    simple = unary()
    with pytest.raises(TypeError):
        simple.set_gradient()
    assert repr(simple) == "<simple operator one: taken back>"
    for late in (lambda: simple.operator, lambda: simple.describe("")):
        with pytest.raises(RegistrationError, match="one: the declaration failed"):
            late()
    used = unary()
    so.nd.one(np.ones(1))
    with pytest.raises(SymopError):
        used.set_gradient(lambda b: b)
    assert used.set_gradient(lambda out_grad: out_grad).operator is registry.get("one")


def test_an_operator_of_another_author_stays():
    @registry.op(name="_backward_mine")
    def other(x: registry.Array) -> registry.Array:
        """Something else."""
        return x

    mine = register_simple_op("mine").set_function(lambda a: a)
    assert so.nd.mine(np.ones(1)).tolist() == [1.0]
    with pytest.raises(RegistrationError, match=r"_backward_mine: .* registered once"):
        mine.set_gradient(lambda out_grad: out_grad)
    with pytest.raises(RegistrationError, match=r"_backward_mine: .* registered once"):
        register_simple_op("mine", replace=True).set_function(lambda a: a).set_gradient(
            lambda out_grad: out_grad
        )
    mine.describe("Mine.")
    assert registry.get("_backward_mine") is other


# Dtypes ------------------------------------------------------------------------------------------


def test_gradients_take_the_dtype_of_their_input(x64):
    product = (
        register_simple_op("product")
        .set_function(lambda lhs, rhs: lhs * rhs)
        .set_gradient(lambda out_grad, lhs, rhs: (out_grad * rhs, out_grad * lhs))
    ).operator
    total = (
        register_simple_op("total")
        .set_function(lambda lhs, rhs: lhs + rhs)
        .set_gradient(lambda out_grad: (out_grad, out_grad))
    ).operator
    p, q = jnp.ones(2, jnp.float32), jnp.full(2, 3, jnp.bfloat16)
    for operator in (product, total):
        found = jax.grad(lambda a, b, f=operator: f(a, b).sum(), (0, 1))(p, q)
        assert [one.dtype for one in found] == [jnp.float32, jnp.bfloat16]
        x, y = (
            so.var(n, shape=(2,), dtype=v.dtype.name) for n, v in zip("xy", (p, q), strict=True)
        )
        made = so.Group(so.grad(so.sum(operator(x, y)), [x, y])).eval(x=p, y=q)
        np.testing.assert_array_equal(made[0], found[0])
        np.testing.assert_array_equal(made[1], found[1])
        executor = operator(so.var("x"), so.var("y")).bind({"x": p, "y": q})
        executor.forward(is_train=True)
        executor.backward()
        assert executor.grad_dict["y"].dtype == jnp.bfloat16


def test_numpy_results_become_arrays(x64):
    register_simple_op("three_ones").set_function(lambda a: np.ones(3, np.float32)).set_gradient(
        lambda out_grad: np.ones(3)
    )
    x = jnp.ones(3, jnp.float32)
    found = jax.grad(lambda a: so.nd.three_ones(a).sum())(x)
    assert isinstance(found, jax.Array)
    assert found.dtype == jnp.float32


def test_draws_have_the_dtype_of_the_inputs(x64):
    def noise(like, env):
        random = env.resource[0].get_random()
        draws = [
            draw(like.shape)
            for draw in (random.uniform, random.normal, random.gumbel, random.exponential)
        ]
        return sum(draws) + env.resource[1].get_space(like.shape)

    noisy = (
        register_simple_op("noisy")
        .set_resource_request(["random", "temp_space"])
        .set_function(lambda a, env: a * noise(a, env))
        .set_gradient(lambda out_grad, env: out_grad * noise(out_grad, env))
    ).operator
    key = jax.random.key(0)
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float64):
        x = jnp.ones(4, dtype)
        assert noisy(x, key=key).dtype == dtype
        gradient = jax.grad(lambda v: noisy(v, key=key).sum())(x)
        np.testing.assert_array_equal(gradient, noisy(x, key=key))
    register_simple_op("source").set_resource_request("random").set_function(
        lambda env: env.resource[0].get_random().uniform((2,))
    )
    assert so.nd.source().dtype == jnp.float64


def test_each_element_draws_its_own_number():
    def dropped(a, env):
        return jnp.where(env.resource[0].get_random().bernoulli(0.5), a, 0.0)

    operator = (
        register_simple_op("dropped")
        .set_resource_request("random")
        .set_function(elementwise(dropped))
        .set_gradient(elementwise(lambda out_grad, env: 2 * dropped(out_grad, env) / 2))
    ).operator
    x, key = jnp.ones((8, 8)), jax.random.key(1)
    kept = operator(x, key=key)
    assert 16 < float(kept.sum()) < 48
    assert len({tuple(row) for row in np.asarray(kept)}) > 4
    np.testing.assert_array_equal(jax.grad(lambda v: operator(v, key=key).sum())(x), kept)
    executor = operator(so.var("x")).bind({"x": x})
    executor.forward(is_train=True)
    executor.backward()
    np.testing.assert_array_equal(executor.grad_dict["x"], executor.outputs[0])


def test_two_maps_draw_different_numbers():
    uniform = elementwise(lambda a, env: env.resource[0].get_random().uniform() + 0 * a)
    register_simple_op("twice").set_resource_request("random").set_function(
        lambda a, env: jnp.stack([uniform(a, env), uniform(a, env)])
    ).set_shape_function(lambda a, env: (2, *a))
    first, second = so.nd.twice(jnp.ones(4))
    assert not set(first.tolist()) & set(second.tolist())


# Messages ----------------------------------------------------------------------------------------


def called(function, *values, **settings):
    simple = register_simple_op("faulty")
    for name, value in settings.items():
        getattr(simple, name)(*value) if isinstance(value, tuple) else getattr(simple, name)(value)
    return simple.set_function(function).operator(*values)


A = jnp.arange(3.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: called(lambda a, env: a + 1 / env.scalar, A, 0.0, set_enable_scalar=True),
            "faulty: its function failed: ZeroDivisionError: float division by zero",
        ),
        (
            lambda: called(lambda a: a if a[0] > 0 else -a, A),
            r"faulty: its function failed: TracerBoolConversionError: .* jnp.where",
        ),
        (
            lambda: called(lambda a: np.sin(a) + 1, A),
            r"faulty: its function failed: TracerArrayConversionError: .* instead of NumPy's",
        ),
        (
            lambda: called(elementwise(lambda a: np.sin(a) + 1), A),
            r"elementwise: a function of one element .* instead of NumPy's",
        ),
        (
            lambda: called(lambda a: a + jnp.ones(2), A),
            "faulty: its function failed: TypeError: add got incompatible shapes",
        ),
        (lambda: called(lambda a: undefined, A), "faulty: .* NameError"),  # noqa: F821
        (
            lambda: called(
                lambda a, env: env.kwargs["axes"], A, set_enable_kwargs=(True,), describe="x"
            ),
            "faulty: set_enable_kwargs must declare",
        ),
        (
            lambda: called(lambda a: a, A, set_shape_function=lambda a: None),
            "faulty: the shape function must return a tuple of ints, got None",
        ),
        (
            lambda: called(lambda a: a, A, set_shape_function=lambda a: 3),
            "faulty: the shape function must return a tuple of ints, got 3",
        ),
        (
            lambda: unary().set_enable_kwargs(True, ax=(int, "x")),
            "one: default of 'ax' must be an int, got 'x'",
        ),
        (lambda: unary(lambda d_out: d_out), "one: an input must not be called 'd_out'"),
        (
            lambda: register_simple_op("two").set_function(lambda a, d_a: a),
            "two: an input must not be called 'd_a'",
        ),
        (lambda: register_simple_op(3), "3: an operator's name must be"),
    ],
)
def test_messages(call, message):
    with pytest.raises(SymopError, match=message):
        call()


def test_an_unknown_keyword_is_named_with_its_operator():
    simple = register_simple_op("worded").set_enable_kwargs(True, axis=(int, 0))
    simple.set_function(lambda a, env: a * env.kwargs["axes"])
    with pytest.raises(DeclarationError, match=r"worded: .*got 'axes'; did you mean 'axis'"):
        so.nd.worded(A)
    env = EnvArguments(kwargs={"axis": 0})
    assert env.kwargs.get("axes", 7) == 7
    assert "axes" not in env.kwargs
    assert dict(**env.kwargs) == {"axis": 0}


def test_what_a_shape_function_says_comes_first():
    def refuse(shape):
        if len(shape) != 2:
            raise ValueError("a matrix is needed")
        return shape

    register_simple_op("matrix").set_function(lambda a: a).set_shape_function(refuse)
    with pytest.raises(ShapeError, match=r"^matrix: a matrix is needed, got \(3,\)"):
        so.nd.matrix(A)


@pytest.mark.parametrize("wrong", [lambda a: a.astype(jnp.float16), lambda a: a[:2]])
def test_platforms_give_the_same_types(wrong):
    simple = register_simple_op("typed").set_function(lambda a: a).set_function(wrong, device="cpu")
    with pytest.raises(DeclarationError, match=r"typed: the function for 'cpu' must give float32"):
        so.nd.typed(A)
    simple = register_simple_op("typed", replace=True).set_function(lambda a: a)
    simple.set_gradient(lambda out_grad: out_grad).set_gradient(wrong_gradient, device="cpu")
    with pytest.raises(
        DeclarationError, match=r"the gradient for 'cpu' must give float32\[3\], got"
    ):
        jax.grad(lambda a: so.nd.typed(a).sum())(A)


def wrong_gradient(out_grad):
    return out_grad.astype(jnp.float16)


def test_an_input_may_be_called_self():
    register_simple_op("own").set_function(lambda self: 2 * self).set_gradient(
        lambda out_grad, self: 2 * out_grad + 0 * self
    )
    assert float(jax.grad(so.nd.own)(1.0)) == 2.0
    with pytest.raises(SymopError, match="a keyword must not be called 'self'"):
        unary().set_enable_kwargs(True, self=int)


def declare_product():
    register_simple_op("product").set_function(lambda lhs, rhs: lhs * rhs).set_gradient(
        lambda out_grad, lhs, rhs: (out_grad * rhs, out_grad * lhs)
    )


@pytest.mark.parametrize("make", [np.array, so.nd.array], ids=["numpy", "eager"])
def test_each_gradient_has_a_request_of_its_own(make):
    declare_product()
    a, b, head = (make(np.array(one, np.float32)) for one in ([1.0, 2.0], [3.0, 4.0], [1.0, 1.0]))
    left, right = make(np.ones(2, np.float32)), make(np.ones(2, np.float32))
    found = so.nd._backward_product(head, a, b, out=(left, right), req=("add", "null"))
    assert found[0] is left
    assert found[1] is right
    assert (left.tolist(), right.tolist()) == ([4.0, 5.0], [1.0, 1.0])
    so.nd._backward_product(head, a, b, out=(left, right), req=("null", "write"))
    assert (left.tolist(), right.tolist()) == ([4.0, 5.0], [1.0, 2.0])


def test_requests_that_do_not_fit():
    declare_product()
    a = np.ones(2, np.float32)
    for req, message in (
        (("add",), "req must hold one for each of 2 outputs, got 1"),
        (("add", "adds"), "req must be one of null, write, write_inplace, add, got 'adds'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            so.nd._backward_product(a, a, a, out=(a, a), req=req)
    with pytest.raises(ArgumentError, match="req=add, null needs out=, got none"):
        so.nd._backward_product(a, a, a, req=("add", "null"))


def test_in_place_beside_nothing():
    register_simple_op("twice").set_function(lambda src: 2 * src, "in_out").set_gradient(
        lambda out_grad: 2 * out_grad, "out_in"
    )
    held = jnp.ones(2)
    assert so.nd.twice(held, out=(held,), req=("write_inplace",))[0].tolist() == [2.0, 2.0]
    assert held.is_deleted()


def test_resources_as_the_document_has_them():
    def noisy(src, env):
        stream = None
        space = env.resources[1].get_space(src.shape, stream=stream)
        return src + space + env.resource[0].get_random(stream).uniform(src.shape)

    register_simple_op("noisy").set_function(noisy).set_zero_gradient(
        "a draw"
    ).set_resource_request(["random", "temp_space"])
    found = np.asarray(so.nd.noisy(np.zeros(3, np.float32)))
    assert found.dtype == np.float32
    assert len({*found.tolist()}) == 3
