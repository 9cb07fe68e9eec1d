"""Operators whose kernels JAX cannot see into: SciPy on the host, Pallas, opaque gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax.experimental import pallas as pl
from jax.test_util import check_grads

import registry
import symop as so
from registry import Array, case, op
from registry.cases import positive, uniform
from registry.errors import NotDifferentiableError, NotLinearError
from symop import testing

pytestmark = pytest.mark.usefixtures("temporary_operators", "x64")


def on_host(function, like, *arrays):
    """``function`` in NumPy, called back from JAX; it takes a batch as it is."""

    def run(*values):
        return np.asarray(function(*values), like.dtype)

    return jax.pure_callback(run, like, *arrays, vmap_method="broadcast_all")


def same_as(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


@pytest.fixture
def bessel():
    """``bessel(x, order=n)``: SciPy's Bessel function of the first kind."""

    @op(
        name="test_bessel",
        opaque=True,
        shape=lambda x: x,
        dtype=lambda x: x.strong(),
        reference=lambda x, *, order=0: scipy.special.jv(order, x),
        cases=[
            case(x=(3, 2)),
            case(x=(), order=1),
            case(x=np.zeros(2), order=1, dtypes=("float64",)),
            case(x=uniform(3, low=-9.0, high=9.0), order=-2, rtol=512.0),
        ],
    )
    def kernel(x: Array, *, order: int = 0) -> Array:
        """The Bessel function ``J_order(x)``."""
        x = jnp.asarray(x)
        return on_host(lambda v: scipy.special.jv(order, v), same_as(x), x)

    @kernel.gradient
    def gradient(x, d_out, *, order):
        # J_n' = (J_{n-1} - J_{n+1}) / 2, which has no singularity at zero.
        return {"x": d_out * (kernel(x, order=order - 1) - kernel(x, order=order + 1)) * 0.5}

    return kernel


@pytest.fixture
def transform():
    """A linear operator whose gradient is itself: what runs on the way of tangents is opaque."""
    matrix = np.arange(9.0).reshape(3, 3) / 4

    @op(name="test_transform", opaque=True, cases=[case(x=(3,)), case(x=(3,), back=True)])
    def kernel(x: Array, *, back: bool = False) -> Array:
        """``A x``, or ``A^T x``."""
        used = matrix.T if back else matrix
        return on_host(lambda v: v @ used.T, same_as(x), x)

    @kernel.gradient
    def gradient(d_out, *, back):
        return {"x": kernel(d_out, back=not back)}

    return kernel


@pytest.fixture
def sine():
    """``sin`` whose gradient ``cos(x) d`` is an opaque operator of its own."""

    def slope(shift):
        return lambda x, d: d * np.sin(x + shift * np.pi / 2)

    @op(name="test_slope", opaque=True, cases=[case(x=(3,), d=(3,)), case(x=(3,), d=(3,), shift=2)])
    def opaque_slope(x: Array, d: Array, *, shift: int = 1) -> Array:
        """``d * sin(x + shift pi / 2)``."""
        return on_host(slope(shift), same_as(x), x, d)

    @opaque_slope.gradient
    def slope_gradient(x, d, d_out, *, shift):
        return {
            "x": opaque_slope(x, d * d_out, shift=shift + 1),
            "d": opaque_slope(x, d_out, shift=shift),
        }

    @op(name="test_sine", opaque=True, reference=np.sin, cases=[case(x=(3,))])
    def kernel(x: Array) -> Array:
        """``sin(x)``."""
        return on_host(np.sin, same_as(x), x)

    @kernel.gradient
    def gradient(x, d_out):
        return {"x": opaque_slope(x, d_out)}

    return kernel


@pytest.fixture
def pallas_square():
    """A Pallas kernel, interpreted."""

    def body(x_ref, out_ref):
        out_ref[...] = x_ref[...] * x_ref[...]

    @op(name="test_pallas_square", opaque=True, reference=np.square, cases=[case(x=(4,))])
    def kernel(x: Array) -> Array:
        """``x * x``."""
        return pl.pallas_call(body, out_shape=same_as(x), interpret=True)(x)

    @kernel.gradient
    def gradient(x, d_out):
        return {"x": 2.0 * x * d_out}

    return kernel


@pytest.mark.parametrize("name", ["sine", "bessel", "transform", "pallas_square"])
class TestProofs:
    def test_every_proof_holds(self, name, request):
        assert testing.check_operator(request.getfixturevalue(name)).ok

    @pytest.mark.sampled(4)
    def test_rules_hold_to_third_order(self, name, request):
        operator = request.getfixturevalue(name)
        x = jnp.array([0.3, -1.2, 0.5])
        check_grads(jax.jit(operator), (x,), order=3, modes=["fwd", "rev"], rtol=1e-3)
        run = jax.jit(jax.vmap(operator))
        check_grads(run, (jnp.stack([x, 2 * x]),), order=3, modes=["fwd", "rev"], rtol=1e-3)

    @pytest.mark.sampled(4)
    def test_audit_finds_no_gap(self, name, request):
        operator = request.getfixturevalue(name)
        assert registry.audit()[operator.name].every_order


class TestBessel:
    """Third order in every mode, against the recurrence by SciPy."""

    x = np.array([0.0, 0.3, -1.2, 4.0])

    def nth(self, order, n):
        return scipy.special.jvp(order, self.x, n) if n else scipy.special.jv(order, self.x)

    @pytest.mark.parametrize("order", [0, 1, 2])
    def test_jax_in_nested_modes(self, bessel, order):
        def f(v):
            return bessel(v, order=order)

        for modes in ([jax.grad] * 3, [jax.jacfwd] * 3, [jax.grad, jax.jacfwd, jax.grad]):
            g = f
            for n, mode in enumerate(modes, 1):
                g = mode(g)
                got = jax.jit(jax.vmap(g))(self.x)
                np.testing.assert_allclose(got, self.nth(order, n), atol=1e-14)

    @pytest.mark.parametrize("order", [0, 1])
    def test_graph_is_right_at_zero_saved_and_loaded(self, bessel, order):
        x = so.var("x", shape=(4,), dtype="float64")
        y = bessel(x, order=order)
        for n in range(1, 4):
            reverse = so.grad(so.sum(y), x)
            forward = so.jvp(y, x, np.ones(4))
            for made in (reverse, forward):
                loaded = so.load_json(made.tojson())
                np.testing.assert_allclose(loaded.eval(x=self.x), self.nth(order, n), atol=1e-14)
                run = jax.jit(loaded.to_jax())
                np.testing.assert_allclose(run(x=self.x), self.nth(order, n), atol=1e-14)
            y = so.load_json(reverse.tojson()) if n == 2 else reverse
            x = y.get_internals()["x"] if n == 2 else x

    def test_graph_that_holds_its_gradient_is_differentiated_by_rules(self, bessel):
        x = so.var("x", shape=(4,), dtype="float64")
        slope = so.grad(so.sum(bessel(x)), x)
        for rules in (None, True, False):
            run = slope.to_jax(rules=rules)
            got = jax.grad(lambda v, run=run: jnp.sum(run(x=v)))(self.x)
            np.testing.assert_allclose(got, self.nth(0, 2), atol=1e-14)


class TestLinearOnTheWay:
    """The gradient of a linear opaque operator is opaque too: JAX must not transpose its kernel."""

    def test_batched_along_another_axis(self, transform):
        matrix = np.arange(9.0).reshape(3, 3) / 4
        rows = jnp.arange(6.0).reshape(3, 2)
        pulled = jax.vmap(lambda v: jax.vjp(transform, v)[1](jnp.ones(3))[0], in_axes=1)(rows)
        np.testing.assert_allclose(pulled, np.tile(matrix.sum(0), (2, 1)))

    def test_linear_transposed_twice(self, transform):
        matrix = np.arange(9.0).reshape(3, 3) / 4
        x = jnp.array([1.0, -2.0, 0.5])
        np.testing.assert_allclose(jax.jit(jax.jacfwd(transform))(x), matrix)
        np.testing.assert_allclose(jax.jit(jax.jacrev(transform))(x), matrix)
        energy = jax.hessian(lambda v: jnp.sum(transform(v) ** 2))
        np.testing.assert_allclose(energy(x), 2 * matrix.T @ matrix)

    def test_residual_of_a_linearized_function_moves(self, sine):
        def along(v):
            return jax.linearize(sine, v)[1](jnp.ones(3))

        x = jnp.array([0.3, -1.2, 0.5])
        np.testing.assert_allclose(jax.jvp(along, (x,), (jnp.ones(3),))[1], -np.sin(x))
        np.testing.assert_allclose(jax.vjp(along, x)[1](jnp.ones(3))[0], -np.sin(x))

    def test_scan_and_checkpoint(self, sine):
        def twice(v):
            return jax.lax.scan(lambda c, _: (jax.checkpoint(sine)(c), None), v, length=2)[0]

        x = jnp.array([0.3, -1.2, 0.5])
        expected = np.cos(np.sin(x)) * np.cos(x)
        np.testing.assert_allclose(jax.grad(lambda v: jnp.sum(twice(v)))(x), expected)

    def test_gradient_that_needs_the_tangent_is_refused(self):
        def declare(name):
            @op(name=name, opaque=True)
            def kernel(x: Array) -> Array:
                """``x``."""
                return on_host(np.positive, same_as(x), x)

            return kernel

        first, second, third = map(declare, ("test_first", "test_second", "test_third"))
        first.gradient(lambda d_out: {"x": second(d_out)})
        second.gradient(lambda d_out: {"x": third(d_out)})
        third.gradient(lambda x, d_out: {"x": d_out * so.square(so.sign(x))})
        x = jnp.ones(3)
        np.testing.assert_allclose(jax.jvp(first, (x,), (x,))[1], x)
        with pytest.raises(NotLinearError, match="test_third: it is used linearly in x"):
            jax.grad(lambda v: jnp.sum(first(v)))(x)


def test_kernel_that_jax_cannot_transpose_is_transposed_by_its_maker():
    """Also where nobody said that it is opaque: in the graphs of its own gradient."""

    @op(name="test_forgotten")
    def kernel(x: Array) -> Array:
        """``2 x``."""
        return on_host(lambda v: 2 * v, same_as(x), x)

    kernel.gradient(lambda d_out: {"x": kernel(d_out)})
    x = jnp.array([0.3, -1.2])
    np.testing.assert_allclose(jax.grad(lambda v: jnp.sum(kernel(v)))(x), [2, 2])
    np.testing.assert_allclose(jax.jit(jax.jacfwd(kernel))(x), 2 * np.eye(2))
    np.testing.assert_allclose(
        jax.jit(jax.hessian(lambda v: jnp.sum(kernel(v) ** 2)))(x), 8 * np.eye(2)
    )


@pytest.fixture
def once():
    """An operator whose gradient is an opaque kernel that nobody can differentiate."""

    @op(name="test_once_grad", cases=[case(x=positive(3), d=(3,))])
    def once_grad(x: Array, d: Array) -> Array:
        """``d / x``."""
        return on_host(np.divide, same_as(x), d, x)

    registry.differentiate_kernel(once_grad)

    @op(name="test_once", opaque=True, cases=[case(x=positive(3))])
    def kernel(x: Array) -> Array:
        """``log(x)``."""
        return on_host(np.log, same_as(x), x)

    kernel.gradient(lambda x, d_out: {"x": once_grad(x, d_out)})
    return kernel


class TestOpaqueGradient:
    """A gradient kernel that is opaque, though it was left to JAX."""

    x = np.array([0.5, 1.0, 2.0])

    def refused(self):
        return pytest.raises(
            NotDifferentiableError, match=r"test_once_grad: JAX must be able to differentiate"
        )

    def test_first_order_reverse_mode(self, once):
        x = so.var("x", shape=(3,), dtype="float64")
        slope = so.grad(so.sum(once(x)), x)
        np.testing.assert_allclose(slope.eval(x=self.x), 1 / self.x)
        total = jax.jit(jax.grad(lambda v: jnp.sum(once(v))))
        np.testing.assert_allclose(total(self.x), 1 / self.x)

    def test_graph_refuses_more(self, once):
        x = so.var("x", shape=(3,), dtype="float64")
        slope = so.grad(so.sum(once(x)), x)
        with self.refused():
            so.grad(so.sum(slope), x)
        with self.refused():
            so.jvp(once(x), x, np.ones(3))

    def test_jax_refuses_more(self, once):
        def total(v):
            return jnp.sum(once(v))

        for mode in (jax.jacrev, jax.jacfwd):
            with self.refused():
                jax.jit(mode(jax.grad(total)))(self.x)
            with self.refused():
                mode(jax.grad(total))(self.x)
        with self.refused():
            jax.jvp(once, (self.x,), (self.x,))
        with self.refused():
            jax.jit(lambda v: jax.jvp(once, (v,), (v,))[1])(self.x)

    def test_audit_reports_the_gap(self, once):
        found = registry.audit()
        for name in ("test_once", "test_once_grad"):
            assert found[name].gap.path[-1] == "test_once_grad"
            assert "JAX must be able to differentiate" in found[name].gap.reason

    def test_kernel_with_an_opaque_rule_of_its_own_has_one_order(self):
        @jax.custom_vjp
        def square(x):
            return x * x

        def back(x, d):
            return (on_host(lambda a, b: 2 * a * b, same_as(x), x, d),)

        square.defvjp(lambda x: (x * x, x), back)

        @op(name="test_shallow", cases=[case(x=(3,))])
        def shallow(x: Array) -> Array:
            """``x * x``."""
            return square(x)

        registry.differentiate_kernel(shallow)
        got = jax.grad(lambda v: jnp.sum(shallow(v)))(self.x)
        np.testing.assert_allclose(got, 2 * self.x)
        x = so.var("x", shape=(3,), dtype="float64")
        slope = so.grad(so.sum(shallow(x)), x)
        np.testing.assert_allclose(slope.eval(x=self.x), 2 * self.x)
        with pytest.raises(NotDifferentiableError, match="test_shallow: JAX must be able"):
            so.grad(so.sum(slope), x)
        gap = registry.audit()["test_shallow"].gap
        assert "test_shallow: JAX must be able" in str(gap)

    def test_declared_opaque_and_left_to_jax(self):
        @op(name="test_torn", opaque=True, native=True, cases=[case(x=(3,))])
        def torn(x: Array) -> Array:
            """``x``; JAX could differentiate it, but shall not."""
            return x * 1.0

        registry.differentiate_kernel(torn)
        assert not torn.native
        with pytest.raises(NotDifferentiableError, match=r"test_torn: .* got an opaque one"):
            jax.grad(lambda v: jnp.sum(torn(v)))(self.x)
        assert "opaque one" in registry.audit()["test_torn"].gap.reason
