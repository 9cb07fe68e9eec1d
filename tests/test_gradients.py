"""so.grad and so.jvp: what they return, what they refuse, and that they can be repeated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import registry
import symop as so
from registry import Array, op
from registry.errors import (
    DisconnectedError,
    DTypeError,
    GradientError,
    NotDifferentiableError,
    NotLinearError,
    ShapeError,
    UnknownTypeError,
)
from symop.graph.nodes import topological
from symop.testing.trial import trials
from symop.testing.values import symbol_of


@pytest.fixture
def x():
    return so.var("x", shape=(3,))


class TestForms:
    def test_one_in_one_out_list_in_list_out(self, x):
        y = so.sin(x)
        assert isinstance(so.grad(y, x), so.Symbol)
        assert isinstance(so.grad(y, [x]), list)
        assert isinstance(so.jvp(y, x, x), so.Symbol)
        assert isinstance(so.jvp([y], [x], [x]), list)

    def test_several_values_and_heads(self, x):
        a, b = so.sin(x), so.square(x)
        u, v = so.var("u", shape=(3,)), so.var("v", shape=(3,))
        gradient = so.grad([a, b], x, [u, v])
        at = {"x": [1.0, 2.0, 3.0], "u": [1.0, 0.0, 2.0], "v": [0.0, 1.0, 1.0]}
        expected = np.cos(at["x"]) * at["u"] + 2 * np.array(at["x"]) * at["v"]
        np.testing.assert_allclose(gradient.eval(**at), expected, rtol=1e-6)

    def test_with_respect_to_an_inner_value(self, x):
        inner = so.sin(x)
        gradient = so.grad(so.exp(inner) * inner, inner)
        value = np.sin([0.1, 0.2, 0.3])
        np.testing.assert_allclose(
            gradient.eval(x=[0.1, 0.2, 0.3]), np.exp(value) * (1 + value), rtol=1e-6
        )

    def test_the_gradient_with_respect_to_a_head_is_right(self, x):
        head = so.var("head", shape=(3,))
        gradient = so.grad(so.sin(x), x, head)
        second = so.grad(gradient, head)
        found = second.eval(x=[0.0, 1.0, 2.0], head=[1.0] * 3)
        np.testing.assert_allclose(found, np.cos([0, 1, 2]), rtol=1e-6)

    def test_unknown_shapes_wait(self):
        v = so.var("v")
        second = so.grad(so.grad(so.sin(v) * v, v), v)
        expected = jax.jit(jax.vmap(jax.grad(jax.grad(lambda t: jnp.sin(t) * t))))
        for size in (2, 5):
            points = jnp.linspace(0.0, 1.0, size)
            found = second.eval(v=points)
            np.testing.assert_allclose(found, expected(points), rtol=1e-5, atol=1e-6)
        assert second.list_arguments() == ["v"]
        tangent = so.jvp(so.sin(v), v, so.var("t"))
        assert float(tangent.eval(v=0.0, t=2.0)) == 2.0

    def test_arguments_stay_those_of_the_function(self):
        a, b = so.var("a", shape=()), so.var("b", shape=())
        gradient = so.grad(a * 2.0 + b, a)
        assert gradient.list_arguments() == ["a", "b"]
        assert float(gradient.eval(a=1.0, b=1.0)) == 2.0
        assert float(jax.jit(gradient.to_jax())(1.0, 1.0)) == 2.0


class TestMissing:
    def test_disconnected(self, x):
        other = so.var("other", shape=(2,))
        with pytest.raises(DisconnectedError, match="must depend on 'other'"):
            so.grad(so.sin(x), other)
        zeros = so.grad(so.sin(x), other, unreachable="zero")
        assert zeros.eval(x=[1.0] * 3, other=[1.0, 1.0]).tolist() == [0.0, 0.0]
        assert so.grad(so.sin(x), other, unreachable="none") is None

    def test_zero_by_definition(self, x):
        gradient = so.grad(so.sign(x), x)
        assert gradient.constant == 0.0

    def test_stop_gradient_stops(self, x):
        gradient = so.grad(so.stop_gradient(x) * x, x)
        assert gradient.eval(x=[1.0, 2.0, 3.0]).tolist() == [1.0, 2.0, 3.0]

    def test_undefined_through_integers(self, x):
        with pytest.raises(NotDifferentiableError, match="'x' is undefined: every path runs"):
            so.grad(so.cast(so.cast(x, dtype="int32"), dtype="float32"), x)

    def test_an_integer_variable(self):
        n = so.var("n", shape=(3,), dtype="int32")
        with pytest.raises(NotDifferentiableError, match="'n' is undefined: it is of type int32"):
            so.grad(so.sin(n), n)

    def test_an_integer_value(self):
        n = so.var("n", shape=(3,), dtype="int32")
        with pytest.raises(NotDifferentiableError, match="floating or complex"):
            so.grad(n * n, n)

    def test_a_missing_maker_names_operator_and_line(self, x, temporary_operators):
        @op(name="without_maker")
        def without_maker(v: Array) -> Array:
            """A kernel and nothing else."""
            return v * 2.0

        with pytest.raises(NotDifferentiableError, match="without_maker") as caught:
            so.grad(without_maker(x), x)
        assert "test_gradients.py" in str(caught.value)

    def test_bad_heads(self, x):
        with pytest.raises(ShapeError, match="head gradient"):
            so.grad(so.sin(x), x, so.var("h", shape=(2,)))
        with pytest.raises(DTypeError, match="head gradient"):
            so.grad(so.sin(x), x, so.var("h", shape=(3,), dtype="int32"))

    def test_a_maker_that_returns_the_wrong_shape(self, x, temporary_operators):
        @op(name="wrong_maker")
        def wrong_maker(v: Array) -> Array:
            """Doubles."""
            return v * 2.0

        @wrong_maker.gradient
        def wrong_maker_gradient(d_out):
            return {"v": so.sum(d_out)}

        with pytest.raises(GradientError, match=r"wrong_maker: the gradient of slot 'v' must be"):
            so.grad(wrong_maker(x), x)

    def test_a_maker_that_forgets_a_slot(self, x, temporary_operators):
        @op(name="forgetful")
        def forgetful(a: Array, b: Array) -> Array:
            """Adds."""
            return a + b

        @forgetful.gradient
        def forgetful_gradient(d_out):
            return {"a": d_out}

        with pytest.raises(GradientError, match="for slot 'b'"):
            so.grad(forgetful(x, x * 2.0), x)


class TestNonLinearMakers:
    @pytest.fixture
    def loss_head(self, temporary_operators):
        @op(name="ignores_its_cotangent", native=False)
        def ignores(v: Array) -> Array:
            """The identity, whose gradient is the square of its input whatever arrives."""
            return v

        @ignores.gradient
        def ignores_gradient(v, d_out):
            return {"v": so.square(v)}

        return ignores

    def test_reverse_mode_takes_the_maker_at_its_word(self, x, loss_head):
        gradient = so.grad(loss_head(x) * 5.0, x)
        assert gradient.eval(x=[1.0, 2.0, 3.0]).tolist() == [1.0, 4.0, 9.0]

    def test_forward_mode_is_refused(self, x, loss_head):
        with pytest.raises(NotLinearError, match="ignores_its_cotangent"):
            so.jvp(loss_head(x), x, x)

    def test_jax_uses_the_maker_in_reverse_mode(self, x, loss_head):
        function = loss_head(x).to_jax()
        gradient = jax.jit(jax.grad(lambda v: function(v).sum() * 5.0))(jnp.array([1.0, 2.0, 3.0]))
        assert gradient.tolist() == [1.0, 4.0, 9.0]

    def test_jax_uses_the_maker_of_a_graph_with_gradient_too(self, x, loss_head):
        function = so.grad(so.square(loss_head(x)), x).to_jax()
        value = jnp.array([1.0, 2.0, 3.0])
        jacobian = jax.jit(jax.jacrev(function))(value)
        np.testing.assert_allclose(np.diag(jacobian), 2 * value)


class TestOrders:
    def test_nested_orders_and_modes_agree_with_jax(self):
        v = so.var("v", shape=())
        y = so.tanh(so.exp(v) * so.sin(v))
        native = lambda t: jnp.tanh(jnp.exp(t) * jnp.sin(t))  # noqa: E731
        one = so.ones_like(v)
        reverse = forward = mixed = y
        with jax.enable_x64(True):
            v = so.var("v", shape=(), dtype="float64")
            y = so.tanh(so.exp(v) * so.sin(v))
            one = so.ones_like(v)
            reverse = forward = mixed = y
            for order in range(1, 6):
                reverse = so.grad(reverse, v)
                forward = so.jvp(forward, v, one)
                mixed = so.jvp(mixed, v, one) if order % 2 else so.grad(mixed, v)
                native = jax.grad(native)
                expected = float(jax.jit(native)(jnp.float64(0.3)))
                for symbol in (reverse, forward, mixed):
                    assert float(symbol.eval(v=0.3)) == pytest.approx(expected, rel=1e-10)

    def test_forward_mode_shares_lower_derivatives(self):
        v = so.var("v", shape=())
        y = so.tanh(v)
        sizes = []
        for _ in range(8):
            y = so.jvp(y, v, so.ones_like(v))
            sizes.append(len(topological(y.nodes)))
        assert sizes[-1] < 150

    def test_hessian_vector_product_is_forward_over_reverse(self, x):
        direction = so.var("direction", shape=(3,))
        y = so.sum(so.log_softmax(x) * so.sin(x))
        product = so.jvp(so.grad(y, x), x, direction)
        native = lambda t: jnp.sum(jax.nn.log_softmax(t) * jnp.sin(t))  # noqa: E731
        point, along = jnp.array([0.1, 0.5, -0.3]), jnp.array([1.0, -2.0, 0.5])
        expected = jax.jit(jax.hessian(native))(point) @ along
        found = product.eval(x=point, direction=along)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


class TestFunctionsOf:
    """A derivative is a function of what its function was one of, needed or not."""

    def test_by_an_inner_value_that_simplification_could_look_through(self):
        x = so.var("x", shape=(2, 3))
        inner = so.reshape(x, shape=(6,))
        y = so.sum(so.reshape(inner, shape=(3, 2))) + so.sum(inner)
        assert so.grad(y, inner).eval(x=np.ones((2, 3))).tolist() == [2.0] * 6
        assert float(so.jvp(y, inner, so.ones_like(inner)).eval(x=np.ones((2, 3)))) == 12.0
        turned = so.permute_dims(x)
        back = so.sum(so.permute_dims(turned) * x)
        expected = np.ones((3, 2)).tolist()
        assert so.grad(back, turned).eval(x=np.ones((2, 3))).tolist() == expected
        opposite = -x
        assert so.grad(so.sum(-opposite), opposite).eval(x=np.ones((2, 3)))[0, 0] == -1.0

    @pytest.mark.parametrize("shape", [(2,), None])
    def test_a_constant_derivative_has_a_derivative(self, shape):
        v = so.var("v", shape=shape)
        assert so.grad(so.grad(2.0 * v, v), v).eval(v=[1.0, 2.0]).tolist() == [0.0, 0.0]
        cube = v * v * v
        for _ in range(5):
            cube = so.grad(cube, v)
        assert cube.eval(v=[1.0, 2.0]).tolist() == [0.0, 0.0]
        assert so.jvp(so.grad(2.0 * v, v), v, v).eval(v=[1.0, 2.0]).tolist() == [0.0, 0.0]

    def test_what_folds_to_a_constant_is_not_disconnected(self, x):
        for y in (so.ones_like(x), x**0.0):
            assert so.grad(y, x).eval(x=[1.0] * 3).tolist() == [0.0] * 3
        inner = so.sin(x)
        assert so.grad(so.grad(2.0 * inner, inner), inner).eval(x=[1.0] * 3).tolist() == [0.0] * 3

    def test_forward_mode_tells_the_three_apart_too(self, x):
        other = so.var("other", shape=(2,))
        with pytest.raises(DisconnectedError, match="must depend on what moves"):
            so.jvp(so.sin(other), x, x)
        zeros = so.jvp(so.sin(other), x, x, unreachable="zero")
        assert zeros.eval(x=[1.0] * 3, other=[1.0] * 2).tolist() == [0.0, 0.0]
        with pytest.raises(NotDifferentiableError, match="every path runs through argmax"):
            so.jvp(so.cast(so.argmax(x), dtype="float32"), x, x)
        assert so.jvp(so.sign(x), x, x).eval(x=[1.0] * 3).tolist() == [0.0] * 3

    def test_undefined_is_zero_or_none_where_that_is_asked_for(self, x, temporary_operators):
        @op(name="without_derivative")
        def without_derivative(v: Array) -> Array:
            """Doubles."""
            return v * 2.0

        without_derivative.no_gradient("it is on trial")
        picked = so.cast(so.argmax(x), dtype="float32")

        def forward(y, v, **how):
            return so.jvp(y, v, v, **how)

        for y in (picked, so.sum(without_derivative(x)), so.exp(picked)):
            for derive in (so.grad, forward):
                with pytest.raises(NotDifferentiableError, match="derivative is undefined"):
                    derive(y, x)
                found = derive(y, x, unreachable="zero")
                assert not np.any(found.eval(x=[1.0, 2.0, 3.0]))
            assert so.grad(y, x, unreachable="none") is None

    def test_undefined_beside_defined(self, x, temporary_operators):
        @op(name="without_derivative")
        def without_derivative(v: Array) -> Array:
            """Doubles."""
            return v * 2.0

        without_derivative.no_gradient("it is on trial")
        w = so.var("w", shape=(3,))
        y = so.sum(so.sin(x) * without_derivative(w))
        first, second = so.grad(y, [x, w], unreachable="none")
        assert second is None
        assert first.eval(x=[0.0] * 3, w=[1.0, 2.0, 3.0]).tolist() == [2.0, 4.0, 6.0]
        # In part undefined is undefined: what arrives along the other paths is no gradient.
        with pytest.raises(NotDifferentiableError, match="it is on trial"):
            so.grad(y + so.sum(w), w, unreachable="zero")

    def test_an_integer_is_left_out_where_that_is_asked_for(self):
        n = so.var("n", shape=(2,), dtype="int32")
        assert so.grad(so.sum(so.sin(n)), n, unreachable="none") is None

    def test_undefined_waits_for_types(self):
        x = so.var("x")
        picked = so.cast(so.argmax(x), dtype="float32")
        zero = so.load_json(so.grad(picked, x, unreachable="zero").tojson())
        assert zero.eval(x=np.ones(3, np.float32)).tolist() == [0.0] * 3
        with pytest.raises(NotDifferentiableError):
            so.grad(picked, x).eval(x=np.ones(3, np.float32))

    def test_an_undefined_derivative_of_higher_order_is_no_zero(self):
        s = so.var("s", shape=())
        picked = so.cast(so.cast(s, dtype="int32"), dtype="float32")
        for given in (s, (s, s)):
            with pytest.raises(NotDifferentiableError):
                so.derivative(picked, given, unreachable="zero")

    def test_replacing_under_a_derivative(self):
        a, b, z = (so.var(name, shape=()) for name in "abz")
        assert float(so.grad(a * b, a).replace(a=z, b=z).eval(z=3.0)) == 3.0
        assert float(so.grad(a * a, a).replace(a=3.0).eval()) == 6.0
        v = so.var("v")
        waiting = so.grad(v * v, v)
        with pytest.raises(GradientError, match="must get them first"):
            waiting.replace(v=3.0)
        assert float(waiting.with_types(v=()).replace(v=3.0).eval()) == 6.0

    def test_each_gradient_keeps_the_keys_of_its_function(self):
        a, b = so.var("a", shape=(64,)), so.var("b", shape=(64,))
        loss = so.sum(so.dropout(a) + so.dropout(b))
        key, ones = jax.random.key(1), jnp.ones(64)
        function = loss.to_jax(is_train=True)
        native = jax.grad(lambda p, q: function(p, q, key=key), argnums=(0, 1))(ones, ones)
        for symbol, expected in zip(so.grad(loss, [a, b]), native, strict=True):
            found = symbol.to_jax(is_train=True)(ones, ones, key=key)
            assert np.array_equal(found, expected)

    def test_a_namesake_is_pointed_out(self):
        layer = so.fully_connected(so.var("x", shape=(2, 3)), units=4, name="fc")
        with pytest.raises(DisconnectedError, match="another variable of this name"):
            so.grad(so.sum(layer), so.var("fc_bias", shape=(4,)))


@pytest.mark.parametrize(
    "passed",
    [lambda p: p, lambda p: p[:1], lambda p: p + 1, lambda p: so.concat(p, p, axis=0)],
    ids=["itself", "a part", "counted on", "twice"],
)
def test_what_is_computed_from_a_place_alone_has_the_slope_zero(passed):
    x, table = so.var("x", (3,)), so.var("table", (4,))
    _, places = so.topk(x, k=2)
    slope = so.grad(so.sum(so.take(table, passed(places), axis=0)), x)
    assert slope.eval(x=np.arange(3, dtype="f"), table=np.ones(4, "f")).tolist() == [0.0] * 3


class TestOutputsApart:
    """A cotangent that is zero adds nothing, whatever the output that has none is made of."""

    # Of all operators with several results, those with a result that does not read some input.
    # ``correlation_gradient`` is one more: it takes the tangents of both maps in one operator.
    NAMES = (
        *("adadelta", "adagrad", "adam", "adamax", "adamw", "ftrl", "lamb", "momentum"),
        *("rmsprop", "rmsprop_centered", "rmsprop_momentum"),
    )

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("name", NAMES)
    def test_not_a_number_stays_where_it_is_read(self, name):
        trial = trials(registry.get(name), registry.get(name).cases[0], "float32")[0]
        operator, places = trial.operator, trial.active
        symbol, arrays = symbol_of(trial)
        compared = 0
        for spoiled in places:
            nan = jnp.full_like(trial.inputs[spoiled], jnp.nan)
            others = [i for i in places if i != spoiled]
            kernel = trial.function("kernel", [*others, spoiled])
            values = [trial.inputs[i] for i in others]
            before = kernel(*values, trial.inputs[spoiled])
            for output, result in enumerate(kernel(*values, nan)):
                if not np.array_equal(result, before[output]):
                    continue  # it reads what is spoiled

                def total(*own, of=output, nan=nan, kernel=kernel):
                    return jnp.sum(kernel(*own, nan)[of])

                expected = jax.grad(total, tuple(range(len(values))))(*values)
                variables = {one.name: one for one in symbol.get_internals() if one.name in arrays}
                names = [f"{operator.slot_of(i).name}{i}" for i in others]
                found = so.grad(
                    so.sum(symbol[output]), [variables[one] for one in names], unreachable="zero"
                )
                fed = {**arrays, f"{operator.slot_of(spoiled).name}{spoiled}": nan}
                for slope, other in zip(found, expected, strict=True):
                    read = {one: fed[one] for one in slope.list_inputs()}
                    # JAX multiplies by zeros here and there.
                    finite = np.isfinite(np.asarray(other))
                    mine = np.asarray(slope.eval(**read))
                    np.testing.assert_allclose(
                        mine[finite], np.asarray(other)[finite], rtol=1e-5, atol=1e-6
                    )
                    compared += np.sum(finite)
        assert compared


def test_open_shapes_of_value_and_grad():
    """Shapes follow from what each call is given, as in ``to_jax``."""
    x, w = so.var("x"), so.var("w")
    function = jax.jit(so.value_and_grad(so.mean(so.square(so.matmul(x, w))), ["w"]))
    for rows in (3, 4):
        array = jnp.arange(2.0 * rows).reshape(rows, 2)
        value, slopes = function(x=array, w=jnp.ones(2))
        expected = jax.value_and_grad(lambda w, x=array: jnp.mean((x @ w) ** 2))(jnp.ones(2))
        np.testing.assert_allclose(value, expected[0], rtol=1e-6)
        np.testing.assert_allclose(slopes["w"], expected[1], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_value_and_grad_leaves_out_inputs_without_gradients(dtype):
    """An input of an undeclared dtype has a gradient in the calls with floating numbers."""
    x, w = so.var("x"), so.var("w", shape=(3,))
    loss = so.sum(so.square(x * w))
    function = so.value_and_grad(loss)
    assert function.wrt == ["x", "w"]
    numbers, weights = np.array([0, 1, 2]), jnp.array([1.0, 2.0, 3.0])
    given = numbers.astype(dtype)
    for one in (function, jax.jit(function)):
        value, slopes = one(given, weights)
        expected, slope = jax.value_and_grad(lambda w: jnp.sum((given * w) ** 2))(weights)
        assert value == expected
        assert list(slopes) == ["w"]
        np.testing.assert_allclose(slopes["w"], slope)
    _, slopes = function(numbers.astype(np.float32), weights)
    np.testing.assert_allclose(slopes["x"], 2 * numbers * weights**2)
    with pytest.raises(NotDifferentiableError, match=f"'x' is undefined: it is of type {dtype}"):
        so.value_and_grad(loss, ["x"])(given, weights)


def test_stacks_need_declared_shapes():
    x = so.var("x")
    for i in range(8):
        x = x + so.tanh(x @ so.var(f"w{i}", shape=(16, 16)))
    message = r"value_and_grad: with stacked=True all shapes must be declared.* those of x do not"
    with pytest.raises(UnknownTypeError, match=message):
        so.value_and_grad(so.mean(x), stacked=True)
    loss = so.mean(x).with_types(x=(8, 16))
    assert so.value_and_grad(loss, stacked=True).arguments == ["x", "w0..w7"]
