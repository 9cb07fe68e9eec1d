"""JAX's derivative of a kernel as operators, outputs of a varying number, kernels per platform."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import registry
import symop as so
from registry import Array, Key, State, Training, Var, case, differentiate_kernel, get, op
from registry.errors import (
    ArgumentError,
    DeclarationError,
    FormatError,
    NotDifferentiableError,
    NotLinearError,
    UnknownOperatorError,
    UnknownTypeError,
)
from registry.jax_derivatives import calculus as kernel_calculus
from registry.jax_derivatives.calculus import is_linear
from registry.operator.operator import Derivative
from registry.types import VarType
from symop.io.parsing import parse
from symop.io.text import text
from symop.testing import check_operator

pytestmark = pytest.mark.usefixtures("temporary_operators")
FLOATS = VarType((3,), np.dtype(np.float32))
INTEGERS = VarType((3,), np.dtype(np.int32))
CONDITIONS = VarType((3,), np.dtype(np.bool_))


class Kernel:
    """What ``is_linear`` needs of an operator."""

    name = "tried"

    def __init__(self, function):
        self.function = function

    def run(self, inputs, attributes):
        return jax.tree.leaves(self.function(*inputs))


@pytest.fixture
def wave():
    """An operator, with a gradient kernel that JAX differentiates."""

    @op(outputs=("d_x",))
    def wave_gradient(x: Array, d_out: Array) -> Array:
        """The gradient of ``x sin(x)``."""
        return d_out * (jnp.sin(x) + x * jnp.cos(x))

    differentiate_kernel(wave_gradient, linear=["d_out"])

    @op(cases=[case(x=(3,)), case(x=())])
    def wave(x: Array) -> Array:
        """``x sin(x)``."""
        return x * jnp.sin(x)

    wave.gradient(lambda x, d_out: {"x": wave_gradient(x, d_out)})
    return wave


class TestEveryOrder:
    def test_proofs(self, wave):
        assert check_operator(wave).ok
        assert registry.audit()["wave"].by_jax == ("wave_gradient",)

    def test_graphs_of_high_order_in_mixed_modes(self, wave):
        x = so.var("x", shape=())
        f = jax.jit(jax.grad(jax.grad(jax.grad(jax.grad(lambda v: v * jnp.sin(v))))))
        reverse = forward = mixed = wave(x)
        for i in range(4):
            reverse = so.grad(reverse, x)
            forward = so.jvp(forward, x, 1.0)
            mixed = so.grad(mixed, x) if i % 2 else so.jvp(mixed, x, 1.0)
        for graph in (reverse, forward, mixed):
            np.testing.assert_allclose(graph.eval(x=0.7), f(0.7), rtol=1e-5)

    def test_what_is_written_is_read(self, wave):
        x = so.var("x", shape=(3,))
        t = so.var("t", shape=(3,))
        graph = so.grad(so.sum(so.jvp(so.grad(wave(x), x), x, t)), x)
        assert "_transpose_wave_gradient" in str(so.jvp(wave(x), x, t))
        for one in (graph, so.jvp(wave(x), x, t)):
            assert so.load_json(one.tojson()).same_as(one)
            assert str(so.load_json(one.tojson())) == str(one)

    def test_text_is_parsed(self, wave):
        x, t = so.var("x", shape=(3,)), so.var("t", shape=(3,))
        printed = str(so.jvp(so.grad(wave(x), x), x, t))
        assert text(parse(printed)).strip() == printed.strip()

    def test_jax_differentiates_by_the_same_kernels(self, wave):
        function = wave(so.var("x", shape=())).to_jax()
        expected = jax.jit(jax.hessian(lambda v: v * jnp.sin(v)))(0.3)
        assert jax.jit(jax.hessian(lambda v: function(x=v)))(0.3) == pytest.approx(expected)
        assert jax.jit(jax.vmap(jax.grad(wave)))(jnp.ones(2)).shape == (2,)

    def test_only_what_the_gradient_names_is_kept(self, wave):
        x = so.var("x", shape=(3,))
        program = str(so.grad(wave(x), x))
        assert "= wave(" not in program


class TestModes:
    """Kernels for which JAX has one mode alone."""

    def test_reverse_mode_alone_is_transposed(self):
        @jax.custom_vjp
        def square(x):
            return x * x

        square.defvjp(lambda x: (x * x, x), lambda x, d: (2 * x * d,))

        @op(name="own_custom", cases=[case(x=(3,))])
        def kernel(x: Array) -> Array:
            """``x * x``."""
            return square(x)

        differentiate_kernel(kernel)
        assert check_operator(kernel).ok
        assert jax.jvp(kernel, (1.5,), (2.0,))[1] == 6.0
        assert jax.jit(jax.jacfwd(kernel))(1.5) == 3.0
        assert jax.vmap(jax.jacrev(jax.jacfwd(lambda v: kernel(v) * v)))(jnp.ones(2)).tolist() == [
            6.0,
            6.0,
        ]

    def test_forward_mode_alone(self):
        @op(name="own_loop", outputs=("count", "out"))
        def kernel(x: Array, n: Array) -> tuple[Array, Array]:
            """``x ** n``."""
            state = (0, jnp.ones_like(x))
            return jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * x), state)

        differentiate_kernel(kernel)
        x = so.var("x", shape=())
        lowered = so.own_loop(x, 3)[1].to_jax()
        for cube in (lambda v: kernel(v, 3)[1], lambda v: lowered(x=v)):
            assert jax.jvp(cube, (2.0,), (1.0,)) == (8.0, 12.0)
            assert jax.jit(jax.jacfwd(jax.jacfwd(cube)))(2.0) == 12.0
            assert jax.vmap(jax.jacfwd(cube))(jnp.array([1.0, 2.0])).tolist() == [3.0, 12.0]
            for run in (jax.grad(cube), jax.jit(jax.grad(cube))):
                with pytest.raises(NotDifferentiableError, match="own_loop: JAX must be able to"):
                    run(2.0)

    def test_linear_slot_that_is_none(self):
        @op(name="own_linear")
        def kernel(x: Array, weight: Array) -> Array:
            """``x * weight``."""
            return x * weight

        with pytest.raises(DeclarationError, match="'wieght'; did you mean 'weight'"):
            differentiate_kernel(kernel, ["wieght"])


class TestStructure:
    def test_several_inputs_and_outputs(self):
        @op(outputs=("total", "ratio"), cases=[case(a=(3,), b=(3,)), case(a=(), b=())])
        def both(a: Array, b: Array) -> tuple[Array, Array]:
            """``a b`` and ``sin(a) cos(b)``."""
            return a * b, jnp.sin(a) * jnp.cos(b)

        assert check_operator(differentiate_kernel(both)).ok

    def test_optional_inputs_and_integers(self):
        cases = [case(x=(3, 2), ids=lambda g, _: np.array([0, 2])), case(x=(3,), scale=(3,))]

        @op(cases=cases)
        def picked(x: Array, ids: Array | None = None, scale: Array | None = None) -> Array:
            """Rows of ``x^2``, scaled."""
            rows = x * x if ids is None else (x * x)[ids]
            return rows if scale is None else rows * jnp.exp(scale)

        assert check_operator(differentiate_kernel(picked)).ok

    def test_attributes(self):
        @op(cases=[case(x=(3,), power=2), case(x=(2,), power=3, shift=(1.0, 2.0))])
        def powered(x: Array, *, power: int, shift: tuple[float, ...] = (0.0,)) -> Array:
            """``(x + shift)^power``."""
            return sum((x + one) ** power for one in shift)

        assert check_operator(differentiate_kernel(powered)).ok

    def test_variadic_inputs(self):
        @op(cases=[case(x=(3,), others=[(3,), (3,)]), case(x=(2,), others=[(2,)])])
        def mixed(x: Array, *others: Array) -> Array:
            """``sin(x)`` times the sum of the squares."""
            return jnp.sin(x) * sum(one * one for one in others)

        assert check_operator(differentiate_kernel(mixed)).ok

    def test_variadic_outputs(self):
        @op(outputs=("*parts",), count=lambda *, num: num, cases=[case(x=(4,), num=2)])
        def cubed_parts(x: Array, *, num: int) -> tuple[Array, ...]:
            """The parts of ``x^3``."""
            return tuple(jnp.split(x * x * x, num))

        assert check_operator(differentiate_kernel(cubed_parts)).ok
        x = so.var("x", shape=(4,))
        first, _ = so.cubed_parts(x, num=2)
        second = so.grad(so.sum(so.grad(so.sum(first), x)), x)
        assert second.eval(x=[1.0, 2.0, 3.0, 4.0]).tolist() == [6.0, 12.0, 0.0, 0.0]
        assert so.load_json(second.tojson()).same_as(second)

    def test_hidden_outputs(self):
        @op(outputs=("out", "kept"), hidden=("kept",), cases=[case(x=(3,))])
        def shown(x: Array) -> tuple[Array, Array]:
            """``x^2``."""
            return x * x, x + 1

        assert check_operator(differentiate_kernel(shown)).ok

        @op(outputs=("out", "kept"), hidden=("kept",))
        def other(x: Array) -> tuple[Array, Array]:
            """``x``."""
            return x, x

        with pytest.raises(DeclarationError, match="must have no hidden output, got kept"):
            differentiate_kernel(other, linear=["x"])

    def test_states_are_left_out(self):
        @op(outputs=("new", "out"), updates={"mean": "new"})
        def followed(x: Array, mean: State) -> tuple[Array, Array]:
            """``x^2 - mean``."""
            return (mean + x.mean()) / 2, x * x - mean

        followed.complete(lambda: {"mean": ()})
        differentiate_kernel(followed)
        x = so.var("x", shape=(2,))
        assert so.grad(so.sum(followed(x)), x).eval(x=[1.0, 2.0], followed0_mean=0.0).tolist() == [
            2.0,
            4.0,
        ]

    def test_random_keys(self):
        @op
        def noisy(x: Array, key: Key) -> Array:
            """``x`` times a normal draw."""
            return x * jax.random.normal(key, x.shape)

        differentiate_kernel(noisy)
        x = so.var("x", shape=(3,))
        y = noisy(x)
        both = so.Group([y, so.grad(so.sum(y), x)])
        so.random.seed(3)
        value, gradient = both.eval(x=[1.0, 1.0, 1.0])
        assert value.tolist() == gradient.tolist()

    def test_training_is_refused(self):
        @op
        def flagged(x: Array, training: Training) -> Array:
            """``x``, or twice that in training."""
            return 2 * x if training else x

        with pytest.raises(DeclarationError, match="write a gradient maker"):
            differentiate_kernel(flagged)

    def test_an_output_must_not_hide_a_slot(self):
        with pytest.raises(DeclarationError, match="the output 'out' must be called otherwise"):

            @op
            def wrong(d_out: Array) -> Array:
                """``d_out``."""
                return d_out


class TestLinearity:
    @pytest.mark.parametrize(
        ("function", "expected"),
        [
            (lambda x, d: d * jnp.cos(x), True),
            (lambda x, d: jnp.where(x > 1, d, -d), True),
            (lambda x, d: d / jnp.log(x), True),
            (lambda x, d: x, False),
            (lambda x, d: d + x, False),
            (lambda x, d: d * d, False),
            (lambda x, d: jnp.sign(d) * x, False),
            (lambda x, d: jax.nn.relu(d), False),
        ],
    )
    def test_it_is_found_out(self, function, expected):
        @op(name="tried", outputs=("d_x",))
        def tried(x: Array, d: Array) -> Array:
            """Something of both."""
            return function(x, d)

        assert is_linear(tried, (FLOATS, FLOATS), (), (1,)) is expected

    @pytest.mark.parametrize(
        "function",
        [
            lambda x, d: (jnp.outer(x, x) + np.ones((3, 3))) @ d,
            lambda x, d: jax.lax.scan(lambda c, row: (c * 2 + row, c), d, jnp.outer(x, d)),
            lambda x, d: jax.lax.fori_loop(0, 3, lambda i, c: c * x[i], d),
            lambda x, d: jax.lax.cond(x[0] > 1, lambda a: a, lambda a: 2 * a, d),
            lambda x, d: jnp.cumsum(jnp.flip(d)) / x,
            lambda x, d: jax.jit(lambda a: a * 2)(d),
            lambda x, d: jax.checkpoint(lambda a: a * jnp.sin(x))(d),
            lambda x, d: d * jax.lax.while_loop(lambda s: s[0] < 9, lambda s: 2 * s, x),
            lambda x, d: jnp.zeros(5).at[:3].add(d[jnp.argsort(x)]),
            lambda x, d: jnp.pad(jnp.concatenate([d, jnp.zeros(2)]), 1) - jnp.zeros(7),
            lambda x, d: jax.vjp(jax.nn.softmax, x)[1](d),
            lambda x, d: jnp.take(d.astype(jnp.bfloat16), jnp.argsort(x)) + d,
        ],
    )
    def test_it_is_read_off_the_program(self, function, monkeypatch):
        def refuse(*_arguments):
            raise AssertionError("the kernel must not run")

        monkeypatch.setattr(kernel_calculus, "_vanishes_at", refuse)
        assert is_linear(Kernel(function), (FLOATS, FLOATS), (), (1,))

    @pytest.mark.parametrize(
        ("function", "expected"),
        [
            (lambda x, d: jax.lax.scan(lambda c, row: (c * 2 + row, c), d, x[:, None] * x), False),
            (lambda x, d: jax.lax.fori_loop(0, 3, lambda i, c: c + x[i], d), False),
            (lambda x, d: jax.lax.cond(x[0] > 1, lambda a: a, lambda a: a + 1, d), False),
            (lambda x, d: jax.jit(lambda a: a + x)(d), False),
            (lambda x, d: jnp.concatenate([d, x]), False),
            (lambda x, d: jnp.pad(d, 1, constant_values=1.0), False),
            (lambda x, d: d * jnp.exp(x) + jnp.sin(0 * x), True),
            (lambda x, d: jnp.linalg.solve(jnp.diag(x), d), True),
        ],
    )
    def test_it_is_tried_where_the_program_does_not_tell(self, function, expected):
        assert is_linear(Kernel(function), (FLOATS, FLOATS), (), (1,)) is expected

    @pytest.mark.parametrize(
        ("function", "expected"),
        [
            (lambda x, d: jnp.where(x > 1, d / x, -d).T @ jnp.diag(x), True),
            (lambda x, d: jnp.concatenate([jnp.zeros(2), d[::-1]]).sum(keepdims=True), True),
            (lambda x, d: jax.jit(lambda a: a * jnp.exp(x))(d), True),
            (lambda x, d: (jnp.tanh(d), d)[1], True),
            (lambda x, d: jax.jit(lambda a: (jnp.tanh(a), a))(d)[1], True),
            (lambda x, d: jnp.tanh(d) * x, False),
            (lambda x, d: jax.jit(lambda a: a * a)(d), False),
            (lambda x, d: d @ (x * d), False),
            (lambda x, d: jnp.maximum(d, x), False),
        ],
    )
    def test_common_kernels_are_not_transposed(self, function, expected, monkeypatch):
        def refuse(*_arguments):
            raise AssertionError("the transpose must not be traced")

        kernel = Kernel(function)
        monkeypatch.setattr(kernel_calculus, "_transposed", refuse)
        assert is_linear(kernel, (FLOATS, FLOATS), (), (1,)) is expected

    @pytest.mark.parametrize(
        ("function", "types"),
        [
            (lambda n, d: d + n, (INTEGERS, FLOATS)),
            (lambda n, d: jnp.where(n, 1.0, d), (CONDITIONS, FLOATS)),
            (lambda n, d: jnp.where(n, d, 1.0), (CONDITIONS, FLOATS)),
            (lambda n, d: jnp.exp(jnp.where(n, 0.0, -jnp.inf)) + d, (CONDITIONS, FLOATS)),
        ],
    )
    def test_integers_and_conditions_may_have_any_values(self, function, types):
        assert not is_linear(Kernel(function), types, (), (1,))

    def test_a_large_kernel_does_not_run(self):
        large = VarType((100_000, 100_000), np.dtype(np.float32))
        product = Kernel(lambda x, d: jnp.cos(x) @ d)
        assert is_linear(product, (large, large), (), (1,))

    def test_a_gradient_that_ignores_its_cotangent_has_no_forward_mode(self):
        @op(outputs=("d_x",))
        def loss_gradient(out: Array, label: Array, d_out: Array) -> Array:
            """``out - label``, whatever arrives."""
            return out - label + 0 * d_out

        differentiate_kernel(loss_gradient, linear=["d_out"])

        @op
        def loss(x: Array, label: Array) -> Array:
            """``softmax(x)``, with the gradient of the cross entropy."""
            return jax.nn.softmax(x)

        loss.gradient(
            lambda out, label, d_out: {"x": loss_gradient(out, label, d_out), "label": None}
        )
        x, label = so.var("x", shape=(2,)), so.var("label", shape=(2,))
        gradient = so.grad(loss(x, label), x).eval(x=[0.0, 0.0], label=[1.0, 0.0])
        assert gradient.tolist() == [-0.5, 0.5]

        @op(outputs=("d_x",))
        def deaf_gradient(out: Array, d_out: Array) -> Array:
            """``out``, whatever arrives."""
            return out

        differentiate_kernel(deaf_gradient, linear=["d_out"])

        @op
        def deaf(x: Array) -> Array:
            """``x``."""
            return x

        deaf.gradient(lambda out, d_out: {"x": deaf_gradient(out, d_out)})
        with pytest.raises(NotLinearError, match="forward mode needs a gradient maker that is lin"):
            so.jvp(deaf(x), x, so.var("t", shape=(2,)))
        assert jax.grad(lambda v: deaf(v).sum())(jnp.ones(2)).tolist() == [1.0, 1.0]


class TestLookup:
    def test_derived_operators_are_found_by_name_only(self, wave):
        name = "_vjp__transpose_wave_gradient"
        assert get(name).name == name
        assert name not in registry.names()
        assert get("_vjp_wave_gradient") is get("_vjp_wave_gradient")

    @pytest.mark.parametrize("name", ["_vjp_wave", "_vjp_nothing", "_vjp_" * 500 + "wave"])
    def test_there_is_no_other(self, wave, name):
        with pytest.raises(UnknownOperatorError):
            get(name)

    def test_an_operator_that_replaces_has_its_own(self, wave):
        old = get("_vjp_wave_gradient")

        @op(name="wave_gradient", outputs=("d_x",), replace=True)
        def other(x: Array, d_out: Array) -> Array:
            """Another one."""
            return d_out * x

        differentiate_kernel(other, linear=["d_out"])
        assert get("_vjp_wave_gradient") is not old

    def test_what_a_file_says_of_them_is_checked(self, wave):
        x = so.var("x", shape=(3,))
        desc = so.grad(so.sum(so.grad(wave(x), x)), x).to_desc()
        (call,) = [one for one in desc.blocks[0].ops if one.type.startswith("_vjp_")]
        for damage in ({"of": [1]}, {"wrt": [7]}, {"given": [0]}, {"arity": -1}, {"wrt": []}):
            attrs = dict(call.attrs)
            call.attrs = attrs | damage
            with pytest.raises(FormatError):
                so.from_desc(desc)
            call.attrs = attrs
        assert so.from_desc(desc).list_arguments() == ["x"]


class TestVariadicOutputs:
    @pytest.fixture
    def parts(self):
        @op(outputs=("*parts",), count=lambda *, num: num, cases=[case(x=(4,), num=2)])
        def parts(x: Array, *, num: int) -> tuple[Array, ...]:
            """``x`` in ``num`` parts."""
            return tuple(jnp.split(x, num))

        parts.gradient(lambda d_parts: {"x": so.concat(*d_parts)})
        return parts

    def test_one_is_a_list_of_one(self, parts):
        assert [one.shape for one in parts(jnp.ones(4), num=1)] == [(4,)]
        assert len(parts(so.var("x", shape=(4,)), num=1)) == 1

    def test_names(self, parts):
        first, second = parts(so.var("x", shape=(4,)), num=2)
        assert so.Group([first, second]).list_outputs() == ["parts0_parts0", "parts0_parts1"]

    def test_written_and_read(self, parts):
        x = so.var("x", shape=(4,))
        for num in (1, 2, 4):
            group = so.Group(list(parts(x, num=num)))
            assert so.load_json(group.tojson()).same_as(group)

    def test_gradient_of_one_of_them(self, parts):
        x = so.var("x", shape=(4,))
        _, second = parts(x, num=2)
        assert so.grad(so.sum(second * second), x).eval(x=[1, 2, 3, 4]).tolist() == [0, 0, 6, 8]
        assert check_operator(parts).ok

    def test_a_bad_number(self, parts):
        with pytest.raises(ArgumentError, match="the number of values of 'parts' must be positive"):
            parts(jnp.ones(4), num=0)

    def test_declarations(self):
        with pytest.raises(DeclarationError, match="count= must tell the number"):
            op(outputs=("*parts",), name="wrong")(lambda x: (x,))
        with pytest.raises(DeclarationError, match="count= must tell the number"):
            op(outputs=("a", "b"), name="wrong", count=lambda: 2)(lambda x: (x, x))
        with pytest.raises(DeclarationError, match="the variadic one must be the last"):
            op(outputs=("*a", "b"), name="wrong", count=lambda: 2)(lambda x: (x, x))

    def test_recorded(self, parts):
        desc = registry.OpDesc("parts", {"x": ["a"]}, {"parts": ["b", "c"]}, {"num": 2})
        (only,) = parts.grad_op_maker(desc)
        assert only.inputs == {"xs": ["b@GRAD", "c@GRAD"]}


class TestPlatforms:
    @pytest.fixture
    def twice(self):
        @op(cases=[case(x=(3,))])
        def twice(x: Array, bias: Array | None = None, *, by: float = 2.0) -> Array:
            """``by x``."""
            return by * x

        twice.gradient(lambda d_out, *, by: {"x": by * d_out, "bias": None})
        return twice

    def test_the_kernel_of_the_platform_runs(self, twice):
        twice.on("cpu")(lambda x, bias, *, by: by * x + 100)
        assert twice(1.0) == 102.0
        assert jax.jit(twice)(1.0) == 102.0
        assert so.twice(so.var("x", shape=())).eval(x=1.0) == 102.0
        assert jax.grad(twice)(1.0) == 2.0

    def test_that_of_another_does_not(self, twice):
        twice.on("gpu")(lambda x, bias, *, by: by * x + 100)
        twice.on("tpu")(lambda x, bias, *, by: by * x + 200)
        assert twice(1.0, by=3.0) == 3.0
        assert check_operator(twice).ok

    def test_it_is_differentiated(self):
        @op(cases=[case(x=(3,))])
        def thrice(x: Array) -> Array:
            """``3 sin(x)``."""
            return 3 * jnp.sin(x)

        differentiate_kernel(thrice)
        thrice.on("gpu")(lambda x: jnp.sin(x) * 3)
        assert check_operator(thrice).ok

    def test_declarations(self, twice):
        with pytest.raises(DeclarationError, match=r"must be one of cpu, gpu, .* got 'cuba'; did"):
            twice.on("cuba")(lambda x: x)
        twice.on("gpu")(lambda x, bias, *, by: x)
        with pytest.raises(DeclarationError, match="the kernel for 'cuda' is declared twice"):
            twice.on("cuda")(lambda x, bias, *, by: x)


class TestRecorded:
    def test_a_kernel_gradient_needs_types(self, wave):
        desc = registry.OpDesc("wave_gradient", {"x": ["a"], "d_out": ["b"]}, {"d_x": ["c"]})
        with pytest.raises(UnknownTypeError, match="pass block="):
            get("wave_gradient").grad_op_maker(desc)
        block = registry.BlockDesc(
            [registry.VarDesc("a", [3], "float32"), registry.VarDesc("b", [3], "float32")]
        )
        descs = get("wave_gradient").grad_op_maker(desc, block=block)
        assert [one.type for one in descs] == ["_vjp_wave_gradient", "_transpose_wave_gradient"]

    def test_derivatives_tell_themselves_apart(self, wave):
        assert get("wave_gradient").derivative is Derivative.KERNEL
        assert wave.derivative is Derivative.MAKER


def test_a_gradient_that_nobody_wants_is_not_made():
    made = []

    @op(cases=[case(x=(3,), y=(3,))])
    def product(x: Array, y: Array) -> Array:
        """``x y``."""
        return x * y

    def gradient(x: Var, y: Var, d_out: Var):
        return {
            "x": lambda: made.append("x") or y * d_out,
            "y": lambda: made.append("y") or x * d_out,
        }

    product.gradient(gradient)
    x, y = so.var("x", shape=(3,)), so.var("y", shape=(3,))
    so.grad(product(x, y), x)
    assert made == ["x"]
    assert check_operator(product).ok
    assert registry.audit()["product"].every_order
