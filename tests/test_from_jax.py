"""``so.from_jax`` and ``so.transform`` compute what JAX computes, and its derivatives."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.scipy import special

import symop as so
from registry.errors import ArgumentError, DataDependentError, OpaqueWarning
from tests.jax_calls import CALLS, JaxCall

NAMES = [one.name for one in CALLS]


def _numbers(value: Any) -> np.ndarray:
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value, np.float32 if value.dtype == jnp.bfloat16 else None)


def _require_equal(got: Any, wanted: Any, rtol: float, atol: float) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        left, right = map(_numbers, (one, other))
        np.testing.assert_allclose(left, right, rtol, atol)


def test_the_table_is_large() -> None:
    assert len(CALLS) >= 300


ROUNDED = {
    **dict.fromkeys(
        [
            *("lax.bessel_i0e", "lax.bessel_i1e", "numpy.i0", "scipy.special.i0"),
            *("scipy.special.i0e", "scipy.special.i1", "scipy.special.i1e"),
        ],
        "the Bessel functions of the catalogue have expansions of their own",
    ),
    "special.exp1": "XLA contracts products and sums of its loops elsewhere",
}
"""The calls whose results differ in their last bits, with the reason."""


@pytest.mark.usefixtures("optimized")  # to the last bit
@pytest.mark.parametrize("call", CALLS, ids=NAMES)
@pytest.mark.sampled(12)
def test_values(call: JaxCall) -> None:
    wanted = jax.jit(call.function)(*call.args)
    got = jax.jit(so.transform(call.function, strict=True))(*call.args)
    tolerance = 2e-6 if call.name in ROUNDED else 0.0
    _require_equal(got, wanted, tolerance, tolerance)


def _total(function: Any, args: Any, places: list[int]) -> Any:
    """Returns a scalar function of the floating arguments that weighs every output."""

    def total(*moved: Any) -> Any:
        given = list(args)
        for i, one in zip(places, moved, strict=True):
            given[i] = one
        outputs = [
            y for y in jax.tree.leaves(function(*given)) if jnp.issubdtype(y.dtype, jnp.inexact)
        ]
        return sum(jnp.sum(jnp.cos(jnp.abs(y).astype(jnp.float32) + 0.3)) for y in outputs)

    return total


@pytest.mark.parametrize(
    "call", [one for one in CALLS if one.differentiable],
    ids=[one.name for one in CALLS if one.differentiable],
)  # fmt: skip
@pytest.mark.sampled(12)
def test_gradients(call: JaxCall) -> None:
    places = [i for i, one in enumerate(call.args) if one.dtype == jnp.float32]
    moved = [call.args[i] for i in places]
    grads = [
        jax.jit(jax.grad(_total(one, call.args, places), tuple(range(len(places)))))(*moved)
        for one in (call.function, so.transform(call.function))
    ]
    _require_equal(grads[1], grads[0], 2e-4, 2e-5)


POLICIES = {
    "nothing": None,
    "dots": jax.checkpoint_policies.dots_saveable,
    "names": jax.checkpoint_policies.save_only_these_names("kept"),
    "everything": jax.checkpoint_policies.everything_saveable,
}


@pytest.mark.parametrize("name", POLICIES)
def test_checkpoint_keeps_what_its_policy_saves(name: str) -> None:
    def layer(x: Any) -> Any:
        product = jnp.einsum("i,ij->j", x, jnp.full((4, 4), 0.3))
        return jnp.sin(checkpoint_name(jnp.tanh(product), "kept"))

    wrapped = jax.checkpoint(layer, policy=POLICIES[name])
    symbol = so.from_jax(lambda x: wrapped(x).sum(), jnp.ones(4))
    lines = [line for line in str(symbol).splitlines() if "recompute(" in line]
    assert len(lines) == 1
    kept = {"nothing": "", "dots": "saved=(1,)", "names": "saved=(1,)", "everything": "saved="}
    assert kept[name] in lines[0]
    assert ("saved" in lines[0]) == (name != "nothing")
    x = jnp.linspace(0.0, 1.0, 4)
    got = jax.grad(so.transform(lambda x: wrapped(x).sum()))(x)
    np.testing.assert_allclose(got, jax.grad(lambda x: layer(x).sum())(x), rtol=1e-6)


def test_strict_names_primitive_and_line() -> None:
    def doubled(x: Any) -> Any:
        return jax.pure_callback(lambda v: 2 * v, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(so.SymopError, match=r"pure_callback at .*test_from_jax\.py:\d+"):
        so.from_jax(doubled, jnp.ones(2), strict=True)
    with pytest.warns(OpaqueWarning, match=r"pure_callback at .*test_from_jax\.py:\d+"):
        symbol = so.from_jax(doubled, jnp.ones(2))
    np.testing.assert_allclose(symbol.eval(x=[1.0, 2.0]), [2.0, 4.0])
    with pytest.raises(so.SymopError, match="must be the name of a function"):
        so.load_json(symbol.tojson().replace("pure_callback at", "other at"))


def test_names_follow_paths() -> None:
    params = {"dense": {"kernel": jnp.ones((2, 3))}, "bias": [jnp.ones(3)]}
    symbol = so.from_jax(
        lambda params, flag, x: x @ params["dense"]["kernel"] + params["bias"][0] * flag,
        params, True, jnp.ones(2), static_argnums=1,
    )  # fmt: skip
    assert set(symbol.list_arguments()) == {"params/dense/kernel", "params/bias/0", "x"}
    named = so.from_jax(lambda x, y: x + y, jnp.ones(2), jnp.ones(2), names=["left", "right"])
    assert named.list_arguments() == ["left", "right"]
    with pytest.raises(so.SymopError, match="must hold one for each of 2 arguments"):
        so.from_jax(lambda x, y: x + y, 1.0, 2.0, names=["left"])
    with pytest.raises(so.SymopError, match="its own name, got 'x' twice"):
        so.from_jax(lambda x, y: x + y, 1.0, 2.0, names=["x", "x"])


def test_saved_loaded_and_rolled() -> None:
    def model(params: Any, x: Any) -> Any:
        for w in params:
            x = jax.nn.gelu(x @ w)
        return x.sum()

    params = [0.3 * jnp.ones((4, 4))] * 6
    symbol = so.from_jax(model, params, jnp.ones(4))
    assert so.load_json(symbol.tojson()).same_as(symbol)
    assert "loop of" in str(so.loops(symbol))


def test_transform_closes_over_tracers() -> None:
    def loss(w: Any, x: Any) -> Any:
        return so.transform(lambda x: jnp.sin(w * x).sum())(x)

    got = jax.jit(jax.grad(loss))(jnp.float32(2.0), jnp.ones(3))
    np.testing.assert_allclose(got, 3 * np.cos(2.0), rtol=1e-6)


def test_an_error_of_the_user_is_passed_on() -> None:
    def failing(x: Any) -> Any:
        raise ValueError(f"no such {x}")

    with pytest.raises(ValueError, match="no such"):
        so.from_jax(failing, jnp.ones(3))


def test_transform_warns_of_opaque_parts() -> None:
    def doubled(x: Any) -> Any:
        return jax.pure_callback(lambda v: 2 * v, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.warns(
        OpaqueWarning, match="transform: no operator expresses pure_callback"
    ) as seen:
        so.transform(doubled)(jnp.ones(2))
    assert [one.filename for one in seen] == [__file__]


def test_from_jax_refuses_a_closure_over_a_tracer() -> None:
    def slope(w: Any) -> Any:
        return so.from_jax(lambda x: w * x, jnp.ones(3))

    with pytest.raises(ArgumentError, match="must not close over a value that JAX traces"):
        jax.jit(slope)(2.0)


def _branching(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def _slicing(x: Any) -> Any:
    return x[: int(x[0])]


def _leaving_jax(x: Any) -> Any:
    return np.sin(x)


def _masking(x: Any) -> Any:
    return x[x > 0]


def _counting(x: Any) -> Any:
    return sum(x[0] for _ in range(x.astype(int)[0]))


def _shaping(x: Any) -> Any:
    return jnp.zeros(x.astype(int)[0])


def _looking_up(x: Any) -> Any:
    return {1: 2.0}[x[0]] * x


def _writing_text(x: Any) -> Any:
    return x * len(f"{x[0]:.2f}")


def _filling_an_array(x: Any) -> Any:
    np.zeros(3)[0] = x[0]
    return x


READING = [
    *(_branching, _slicing, _leaving_jax, _masking, _counting, _shaping, _looking_up),
    *(_writing_text, _filling_an_array),
]


@pytest.mark.parametrize("function", READING, ids=lambda function: function.__name__)
@pytest.mark.parametrize("convert", [so.from_jax, lambda f, x: so.transform(f)(x)])
def test_a_function_that_reads_values_is_an_error_with_its_line(
    function: Any, convert: Any
) -> None:
    line = function.__code__.co_firstlineno + 1
    with pytest.raises(DataDependentError, match=rf"test_from_jax\.py:{line}: .*jnp\.where"):
        convert(function, jnp.ones(3))


@jax.custom_jvp
def _pushing_itself(x: Any) -> Any:
    return jnp.exp(x)


@_pushing_itself.defjvp
def _(values: Any, tangents: Any) -> Any:
    return _pushing_itself(*values), 2 * _pushing_itself(*values) * tangents[0]


@jax.custom_vjp
def _pulling_itself(x: Any) -> Any:
    return jnp.exp(x)


_pulling_itself.defvjp(
    lambda x: (_pulling_itself(x), x), lambda x, d: (3 * _pulling_itself(x) * d,)
)


def _looped(function: Any) -> dict[str, Any]:
    """Returns calls of a function inside of loops, branches and maps."""
    return {
        "scan": lambda x: lax.scan(lambda c, w: (function(c * w), c), x, jnp.arange(1.0, 4.0))[0],
        "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: function(c) * x, x),
        "cond": lambda x: lax.cond(x > 0, lambda x: function(x) * x, jnp.cos, x),
        "vmap": lambda x: jax.vmap(lambda w: function(w * x))(jnp.arange(1.0, 4.0)).sum(),
        "scan in a scan": lambda x: lax.scan(
            lambda c, w: (
                lax.scan(lambda d, v: (function(d * v), None), c, jnp.arange(1.0, 3.0))[0] * w,
                None,
            ),
            x,
            jnp.arange(1.0, 3.0),
        )[0],
        "checkpoint": jax.checkpoint(lambda x: function(function(x))),
    }


INSIDE = {
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))),
    "jvp": _pushing_itself,
    "vjp": _pulling_itself,
}


def _along(function: Any) -> Any:
    return lambda x: jax.jvp(function, (x,), (1.0,))[1]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("loop", _looped(jnp.sin))
def test_rules_and_checkpoints_in_loops_have_derivatives_of_order_two(
    loop: str, inside: str
) -> None:
    """All modes are compared with one of JAX that keeps rules.

    Where JAX differentiates a gradient of ``lax.scan``, it differentiates the function itself
    instead of the rules that stand inside of a rule.
    """
    with jax.enable_x64(True):
        theirs = _looped(lambda x: INSIDE[inside](0.1 * x))[loop]
        ours = so.transform(theirs)
        modes = [jax.grad] if inside == "vjp" else [jax.grad, _along]
        wanted = jax.jit(modes[-1](modes[-1](theirs)))(0.7)
        for outer, inner in itertools.product(modes, modes):
            np.testing.assert_allclose(jax.jit(outer(inner(ours)))(0.7), wanted, rtol=1e-9)


RECURSIVE = {"jvp": _pushing_itself, "vjp": _pulling_itself, "sinc": jnp.sinc}


@pytest.mark.parametrize("name", RECURSIVE)
def test_a_rule_that_calls_its_own_function_has_every_order(name: str) -> None:
    """The factors of the rules are not the function's own, so that each order shows its rule."""
    with jax.enable_x64(True):
        expected: Any = RECURSIVE[name]
        symbol = so.from_jax(expected, jax.ShapeDtypeStruct((), jnp.float64), names=["x"])
        for order in range(1, 7):
            expected = jax.grad(expected)
            got = so.derivative(symbol, "x", order=order).eval(x=0.3)
            np.testing.assert_allclose(got, jax.jit(expected)(0.3), rtol=1e-7)


@pytest.mark.parametrize("name", ["jvp", "vjp"])
def test_a_saved_rule_that_calls_its_own_function_has_three_orders(name: str) -> None:
    symbol = so.from_jax(RECURSIVE[name], jnp.float32(0.3), names=["x"])
    text = symbol.tojson()
    assert "jax_function" not in text
    loaded = so.load_json(text)
    for order in range(4):
        both = [so.derivative(one, "x", order=order) if order else one for one in (symbol, loaded)]
        np.testing.assert_array_equal(both[0].eval(x=0.3), both[1].eval(x=0.3))
    with pytest.raises(so.SymopError, match="could not be saved"):
        so.derivative(loaded, "x", order=4)


OWN = {
    "relu": (jax.nn.relu, ([-1.0, -0.0, 0.0, 2.0, np.inf, np.nan],)),
    "relu6": (jax.nn.relu6, ([-1.0, 0.0, 2.0, 6.0, 7.0, np.inf, np.nan],)),
    "logaddexp": (
        jnp.logaddexp,
        ([0.0, 1.0, -np.inf, 800.0, 3.0], [1.0, 1.0, 2.0, -800.0, -np.inf]),
    ),
    "logaddexp2": (jnp.logaddexp2, ([0.0, 1.0, 800.0, 3.0], [1.0, 1.0, -800.0, -2.0])),
    "xlogy": (special.xlogy, ([0.0, 1.0, -2.0, 0.5], [2.0, 1.0, 3.0, 0.1])),
    "xlog1py": (special.xlog1py, ([0.0, 1.0, -2.0, 0.5], [2.0, 1.0, 3.0, -0.1])),
}


def _slope(function: Any, i: int) -> Any:
    return jax.grad(lambda *args: function(*args).sum(), i)


@pytest.mark.parametrize("name", OWN)
def test_functions_of_jax_with_a_rule_are_operators(name: str) -> None:
    function, points = OWN[name]
    args = [jnp.asarray(one, jnp.float32) for one in points]
    assert [one.name for one in so.explain(so.from_jax(function, *args)).operators] == [name]
    ours = so.transform(function)
    np.testing.assert_array_equal(ours(*args), function(*args))
    for i in range(len(args)):
        mine, theirs = _slope(ours, i), _slope(function, i)
        np.testing.assert_allclose(mine(*args), theirs(*args), rtol=2e-6)
        curved = _slope(mine, i)(*args), _slope(theirs, i)(*args)
        np.testing.assert_allclose(*curved, rtol=1e-5, atol=1e-7)


def test_a_function_named_as_one_of_jax_keeps_its_own_rule() -> None:
    @jax.custom_jvp
    def relu(x: Any) -> Any:
        return jnp.maximum(x, 0.0)

    relu.defjvp(lambda values, tangents: (relu(*values), 7.0 * tangents[0]))
    assert float(jax.grad(so.transform(relu))(-1.0)) == 7.0


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
@pytest.mark.parametrize("exponent", [-3, 0, 1, 2, 5, 11])
def test_integer_powers_are_equal_to_the_last_bit(dtype: Any, exponent: int) -> None:
    x = jnp.linspace(-2.0, 2.0, 101).astype(dtype)
    ours, theirs = jax.jit(so.transform(lambda x: x**exponent)), jax.jit(lambda x: x**exponent)
    np.testing.assert_array_equal(_numbers(ours(x)), _numbers(theirs(x)))


def test_transform_keeps_weak_types() -> None:
    choose = so.transform(lambda x: jnp.where(x > 0, 1.0, 2.0))
    x = jnp.ones(3, jnp.bfloat16)
    assert (choose(x) * x).dtype == jnp.bfloat16
    assert so.transform(lambda x: x + 1)(2.0).weak_type
    assert not so.transform(lambda x: x + 1)(jnp.float32(2.0)).weak_type


def test_transform_takes_arguments_by_name() -> None:
    @so.transform
    def scaled(x: Any, y: Any = 2.0, *, by: Any) -> Any:
        return (x * y * by["a"]).sum()

    x = jnp.arange(3.0)
    assert float(scaled(x, by={"a": 2.0})) == 12.0
    assert float(scaled(by={"a": jnp.ones(3)}, y=3.0, x=x)) == 9.0
    assert float(jax.grad(lambda a: scaled(x, by={"a": a}))(1.0)) == 6.0
    power = so.transform(lambda x, n: x**n, static_argnums=-1)
    np.testing.assert_array_equal(power(n=3, x=x), x**3)


def _applied(x: Any, by: Any = 1.0, mode: str = "tanh") -> Any:
    return getattr(jnp, mode)(x) * by


@pytest.mark.parametrize("places", [2, -1, (-1,)])
def test_a_static_argument_may_be_passed_by_name(places: Any) -> None:
    x = jnp.arange(3.0)
    ours, theirs = (
        so.transform(_applied, static_argnums=places),
        jax.jit(_applied, static_argnums=2),
    )
    for options in ({"mode": "sin"}, {"mode": "cos", "by": 2.0}, {"by": 2.0}, {}):
        np.testing.assert_allclose(ours(x, **options), theirs(x, **options), rtol=1e-6)
    np.testing.assert_allclose(ours(mode="sin", x=x), jnp.sin(x), rtol=1e-6)


@pytest.mark.parametrize("place", [3, -4])
def test_a_static_argument_must_exist(place: int) -> None:
    with pytest.raises(ArgumentError, match=f"positions of 3 arguments, got {place}"):
        so.transform(_applied, static_argnums=place)
    with pytest.raises(ArgumentError, match=f"positions of 3 arguments, got {place}"):
        so.from_jax(_applied, jnp.ones(3), static_argnums=place)


def test_transform_with_options_is_a_decorator() -> None:
    @so.transform(static_argnums=1, strict=True)
    def power(x: Any, n: int) -> Any:
        return x**n

    assert float(power(jnp.float32(2.0), 3)) == 8.0
    assert power.__name__ == "power"


def test_transform_refuses_a_static_argument_without_a_hash() -> None:
    times = so.transform(lambda x, n: x * n[0], static_argnums=1)
    with pytest.raises(ArgumentError, match=r"must be hashable, got \(\[2\],\)"):
        times(jnp.ones(3), ([2],))


def _with_reference(x: Any) -> Any:
    held = jax.new_ref(x)
    held[...] = held[...] * 2
    return held[...]


def _printing(x: Any) -> Any:
    jax.debug.print("{}", x)
    return 2 * x


def _printing_in_a_loop(x: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda _, x: _printing(x), x)


@pytest.mark.parametrize("function", [_with_reference, _printing, _printing_in_a_loop])
@pytest.mark.parametrize("strict", [False, True])
def test_side_effects_are_errors(function: Any, strict: bool) -> None:
    with pytest.raises(so.SymopError, match=r"no side effects, got \w+ at .*test_from_jax\.py:\d+"):
        so.from_jax(function, 1.0, strict=strict)
    with pytest.raises(so.SymopError, match="no side effects"):
        jax.grad(so.transform(function))(1.0)


def test_static_arguments_are_told_apart_by_type() -> None:
    scaled = so.transform(lambda x, a: x * a if a is not True else x + 1, static_argnums=1)
    x = jnp.int32(3)
    for a in (1, 1.0, True, 1):
        wanted = jax.jit(lambda x, a=a: x * a if a is not True else x + 1)(x)
        got = scaled(x, a)
        assert (got.dtype, float(got)) == (wanted.dtype, float(wanted))


def test_a_static_argument_may_be_left_to_its_default() -> None:
    def scaled(x: Any, a: float = 3.0) -> Any:
        return x * a

    assert float(so.transform(scaled, static_argnums=1)(jnp.float32(2.0))) == 6.0
    assert float(so.transform(scaled, static_argnums=-1)(jnp.float32(2.0), 4.0)) == 8.0
    assert float(so.from_jax(scaled, jnp.float32(2.0), static_argnums=1).eval(x=2.0)) == 6.0
