"""Gradients where dtypes differ: makers see what the kernel promotes its inputs to."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import registry
import symop as so
from registry import BlockDesc, OpDesc, VarDesc
from registry import types as dtypes
from registry.errors import SymopError
from registry.operator.infer import abstract
from registry.operator.operator import Derivative, Operator
from registry.types import VarKind, VarType, as_dtype, is_inexact
from symop import autograd, nd
from symop.autodiff.differentiate import cotangent_types, input_gradients, output_values
from symop.graph.emission import apply
from symop.graph.nodes import constant, placeholder, topological
from symop.lowering.reverse import Pullback
from symop.lowering.rules import _without_rules
from symop.testing.trial import trials

DOUBLE = np.dtype(np.float64)
MAKERS = [one for one in registry.operators() if one.derivative is Derivative.MAKER]


def floating_places(trial):
    """The inputs in double precision: those of one slot together, those of a variadic one apart."""
    found = {}
    for i, one in enumerate(trial.types):
        if one is not None and one.kind is VarKind.LOD_TENSOR and one.dtype == DOUBLE:
            slot = trial.operator.slot_of(i)
            found.setdefault((slot.name, i if slot.variadic else 0), []).append(i)
    return list(found.values())


def retyped(trial, places, dtype):
    """The types of a call whose inputs at ``places`` are of ``dtype``."""
    return tuple(
        VarType(one.shape, as_dtype(dtype), one.kind) if i in places else one
        for i, one in enumerate(trial.types)
    )


def mixtures(trial, dtype):
    """Types of legal calls in which one slot, or all but one, are of ``dtype``."""
    slots = floating_places(trial)
    alone = slots if len(slots) > 1 else []
    others = [[i for s in slots if s is not one for i in s] for one in alone] if alone[2:] else []
    for places in [*alone, *others]:
        types = retyped(trial, places, dtype)
        try:
            outputs = trial.operator.infer(types, trial.attributes)
        except SymopError:
            continue  # the dtype rule refuses it
        if any(one.differentiable for one in outputs):
            yield types, outputs


def gradient_nodes(trial, types):
    """What the maker computes for a call of these types."""
    operator = trial.operator
    inputs = tuple(
        None
        if one is None
        else constant(bool(trial.training))
        if operator.slot_of(i).role == "training"
        else placeholder(operator.slot_of(i).name, one)
        for i, one in enumerate(types)
    )
    node = apply(operator, inputs, trial.attributes, name=operator.name)
    cotangents = tuple(None if t is None else placeholder("d", t) for t in cotangent_types(node))
    active = {inputs[i] for i in trial.active if types[i].differentiable}
    gradients = [one for _, one in input_gradients(node, cotangents, active)] if active else []
    values = {node, *output_values(node)}
    return [one for one in topological(gradients, until=values) if isinstance(one.op, Operator)]


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("operator", MAKERS, ids=lambda one: one.name)
class TestCatalogue:
    @pytest.mark.sampled(3)
    def test_nothing_is_computed_in_the_coarser_dtype(self, operator):
        for trial in trials(operator, operator.cases[0], "float64"):
            for types, outputs in mixtures(trial, "float32"):
                if any(one.dtype == np.float32 for one in outputs):
                    continue  # the kernel does not promote either
                coarse = [
                    one.op.name
                    for one in gradient_nodes(trial, types)
                    if one.op.name != "cast"
                    and not one.op.rearranges
                    and any(t.dtype == np.float32 for t in one.types)
                    and any(t.dtype == DOUBLE for t in types if t is not None)
                ]
                assert not coarse, f"{trial} of {types}: {coarse}"

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("dtype", ["int32", "bool"])
    def test_integers_and_truth_values_leave_the_gradients_by_the_others(self, operator, dtype):
        for trial in trials(operator, operator.cases[0], "float64"):
            for types, outputs in mixtures(trial, dtype):
                if any(types[i].differentiable for i in trial.active):
                    self.trace_gradient(trial, types, outputs)

    def trace_gradient(self, trial, types, outputs):
        """The gradient of a call of these types, traced by JAX; it keeps the dtypes of inputs."""
        back = Pullback(trial.operator, trial.attributes, types, trial.training, _without_rules)
        given = [
            *[types[i] for i in back.kept],
            *[outputs[i] for i in back.kept_outputs],
            *[outputs[i].strong() for i in back.taken],
        ]
        flags = {k for k, i in enumerate(back.kept) if trial.operator.slot_of(i).role == "training"}
        bounds = np.cumsum([len(back.kept), len(back.kept_outputs)])

        def run(*values):
            filled = [bool(trial.training) if k in flags else v for k, v in enumerate(values)]
            kept, kept_outputs, heads = (
                filled[: bounds[0]],
                filled[bounds[0] : bounds[1]],
                filled[bounds[1] :],
            )
            found = back.run(kept, kept_outputs, dict(zip(back.taken, heads, strict=True)))
            return [one for one in found if one is not None and one.dtype != jax.dtypes.float0]

        found = jax.eval_shape(run, *map(abstract, given))
        assert all(is_inexact(np.dtype(one.dtype)) for one in found)


# Numbers ---------------------------------------------------------------------------------------


def by_graph(function, place, values):
    variables = [so.var(f"x{i}", (), str(v.dtype)) for i, v in enumerate(values)]
    fed = {f"x{i}": v for i, v in enumerate(values)}
    return so.grad(function(*variables), variables[place]).eval(**fed)


def by_tape(function, place, values):
    arrays = [nd.array(v, dtype=str(v.dtype)) for v in values]
    arrays[place].attach_grad()
    with autograd.record():
        y = function(*arrays)
    y.backward()
    return arrays[place].grad.asnumpy()


def by_rules(function, place, values):
    return jax.grad(function, argnums=place)(*[jnp.asarray(v) for v in values])


def student(x, df):
    return so.student_t_log_density(x, df, 0.0, 1.0)


def gamma_of_scale_three(x, a):
    return so.gamma_log_density(x, a, 3)


half = jnp.bfloat16
DF = float(half(1.3))
NUMBERS = [
    (so.power, 1, (np.int32(3), np.float64(2)), 9 * np.log(3), 1e-12),
    (so.power, 1, (np.float32(3), np.float64(2)), 9 * np.log(3), 1e-12),
    (so.power, 1, (half(3), np.float32(2)), 9 * np.log(3), 1e-5),
    (so.power, 0, (np.float32(3), half(0.5)), 0.5 / np.sqrt(3), 1e-6),
    (student, 0, (np.float32(2), half(1.3)), -(DF + 1) * 2 / (DF + 4), 1e-6),
    (student, 0, (np.float64(2), np.int64(3)), -8 / 7, 1e-12),
    (gamma_of_scale_three, 0, (np.float64(2), np.float64(2.5)), 0.75 - 1 / 3, 1e-12),
    (so.poisson_log_density, 0, (np.float64(1), np.int32(1)), np.euler_gamma - 1, 1e-12),
    (so.poisson_log_density, 1, (np.int32(1001), half(1000.0)), 0.001, 4e-3),
    (so.xlog1py, 1, (np.bool_(True), np.float64(1)), 0.5, 1e-12),
    (so.bernoulli_log_density, 0, (np.float64(0.5), np.int32(2)), 2.0, 1e-12),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", [by_graph, by_tape, by_rules])
@pytest.mark.parametrize(("function", "place", "values", "expected", "rtol"), NUMBERS)
def test_gradient_has_the_digits_of_the_promoted_dtype(
    how, function, place, values, expected, rtol
):
    gradient = how(function, place, values)
    assert gradient.dtype == values[place].dtype
    np.testing.assert_allclose(np.float64(gradient), expected, rtol=rtol)


def test_vecdot_of_truth_values():
    mask, x = np.array([True, False, True]), so.var("x", (3,), "float32")
    y = so.vecdot(so.var("mask", (3,), "bool"), x)
    found = so.grad(y, x).eval(mask=mask, x=np.ones(3, np.float32))
    np.testing.assert_array_equal(found, mask.astype(np.float32))


def test_second_derivative_keeps_the_digits():
    x, y = so.var("x", (), "float32"), so.var("y", (), "float64")
    second = so.grad(so.grad(so.power(x, y), y), y)
    found = second.eval(x=np.float32(3), y=np.float64(2))
    np.testing.assert_allclose(found, 9 * np.log(3) ** 2, rtol=1e-14)


def test_forward_mode_keeps_the_digits():
    x, y = so.var("x", (), "float32"), so.var("y", (), "float64")
    moved = so.jvp(so.power(x, y), y, so.var("t", (), "float64"))
    found = moved.eval(x=np.float32(3), y=np.float64(2), t=np.float64(1))
    np.testing.assert_allclose(found, 9 * np.log(3), rtol=1e-14)


def test_new_state_of_an_optimizer_is_not_read_rounded():
    dtypes = {"param": "float64", "grad": "float64", "moment": "float32"}
    names = {name: so.var(name, (), dtype) for name, dtype in dtypes.items()}
    updated, _ = so.adagrad(**names, learning_rate=1.0, eps=0.0)
    g, moment = np.float64(0.3), np.float32(0.7)
    found = so.grad(updated, names["grad"]).eval(param=np.float64(1), grad=g, moment=moment)
    np.testing.assert_allclose(found, -np.float64(moment) / (moment + g * g) ** 1.5, rtol=1e-12)


# What stays as it is ---------------------------------------------------------------------------


def casts(symbol):
    return str(symbol).count("cast(")


@pytest.mark.parametrize(
    "make",
    [
        lambda x, ids, mask: so.power(x, x),
        lambda x, ids, mask: so.power(x, 2.5),
        lambda x, ids, mask: so.power(2, x),
        lambda x, ids, mask: so.where(mask, so.sin(x), so.exp(x)),
        lambda x, ids, mask: so.sin(so.take(x, ids)),
        lambda x, ids, mask: so.add(x, ids) * 2.0,
    ],
)
def test_no_cast_where_none_is_needed(make):
    x = so.var("x", (3,), "float32")
    y = make(x, so.var("ids", (3,), "int32"), so.var("mask", (3,), "bool"))
    assert casts(so.grad(so.sum(y), x)) == 0


def test_variables_without_types():
    x, y = so.var("x"), so.var("y")
    gradient = so.grad(so.sum(so.power(x, y)), y)
    found = gradient.eval(x=np.float32([3]), y=np.float64([2]))
    np.testing.assert_allclose(found, [9 * np.log(3)], rtol=1e-14)


def test_records_are_promoted_where_the_block_tells_dtypes():
    maker = registry.get("lerp").grad_op_maker
    desc = OpDesc("lerp", {"x": ["x"], "y": ["y"], "weight": ["w"]}, {"out": ["out"]})

    def kinds(dtype):
        block = BlockDesc(
            [VarDesc(n, [3], d) for n, d in (("x", dtype), ("y", dtype), ("w", "float32"))]
        )
        return [one.type for one in maker(desc, block=block)]

    assert "cast" in kinds("float64")
    assert "cast" not in kinds("float32")


def test_operator_of_a_user(temporary_operators):
    @registry.op(name="mixed_log_product")
    def log_product(x: registry.Array, y: registry.Array) -> registry.Array:
        """``y log(x)``."""
        return y * jnp.log(x)

    seen = []

    @log_product.gradient
    def log_product_gradient(x, y, d_out):
        seen.append((x.dtype, y.dtype))
        return {"x": d_out * y / x, "y": d_out * so.log(x)}

    found = by_graph(log_product, 1, (np.float32(3), np.float64(2)))
    np.testing.assert_allclose(found, np.log(3), rtol=1e-15)
    assert seen == [(DOUBLE, DOUBLE)]


# Small floats ----------------------------------------------------------------------------------

SMALL = [
    *("float8_e5m2", "float8_e4m3fn", "float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz"),
    *("bfloat16", "float16"),
]


@pytest.mark.parametrize("dtype", SMALL)
def test_small_floats_are_differentiable(dtype):
    x, value = so.var("x", (3,), dtype), jnp.asarray([0.5, 1, 2], dtype)
    y = so.sum(x * x)
    np.testing.assert_array_equal(so.grad(y, x).eval(x=value), 2 * value)
    np.testing.assert_array_equal(jax.grad(y.to_jax())(value), 2 * value)
    array = nd.array([0.5, 1, 2], dtype=dtype)
    array.attach_grad()
    with autograd.record():
        total = (array * array).sum()
    total.backward()
    np.testing.assert_array_equal(array.grad.asnumpy(), 2 * value)


def test_what_a_dtype_is_does_not_depend_on_its_kind():
    floats, whole = ["float8_e5m2", "bfloat16", "float32"], ["int4", "uint4", "int8", "uint64"]
    assert all(dtypes.is_floating(as_dtype(one)) for one in floats)
    assert not any(dtypes.is_exact(as_dtype(one)) for one in [*floats, "complex64"])
    assert all(dtypes.is_integer(as_dtype(one)) for one in whole)
    assert [one for one in whole if dtypes.is_unsigned(as_dtype(one))] == ["uint4", "uint64"]
    assert dtypes.integer_limits(as_dtype("int4")) == (-8, 7)
    assert dtypes.integer_limits(np.dtype(bool)) == (0, 1)


def test_no_module_reads_the_kind_of_a_dtype():
    """It tells neither that float8_e5m2 is none of NumPy's nor that bfloat16 is floating."""
    root = Path(registry.__file__).parent.parent
    kind = re.compile(r"dtype\)?\.kind\b")
    read = [
        path.relative_to(root).as_posix()
        for package in ("registry", "symop")
        for path in (root / package).rglob("*.py")
        if kind.search(path.read_text(encoding="utf-8"))
    ]
    # The proofs draw dtypes of NumPy's own.
    assert all(one.startswith("symop/testing/") for one in read)


# Accumulation ------------------------------------------------------------------------------------

MANY = 4096
"""Sums of so many ones in bfloat16 end at 256, where the next one is rounded away."""
ONES = np.ones(MANY, jnp.bfloat16)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: so.matmul(x[None], x[:, None]), MANY),
        (lambda x: so.fully_connected(x[None], x[None], units=1, use_bias=False), MANY),
        (lambda x: so.einsum(x, x, equation="i,i->"), MANY),
        (so.sum, MANY),
        (lambda x: so.cumsum(x)[-1], MANY),
        (so.mean, 1),
        (so.norm, 64),
        (lambda x: so.softmax(x) * MANY, 1),
        (lambda x: so.average_pooling(x.reshape(1, 1, 64, 64), kernel=(64, 64)), 1),
        (lambda x: so.layer_norm(x, x, x), 1),
        (lambda x: so.logsumexp(x * 0), np.log(MANY)),
        (lambda x: so.softmax_cross_entropy(x * 0, jnp.asarray(0)), np.log(MANY)),
        (lambda x: jax.grad(lambda y: so.sum(y * x))(x[:1]), MANY),
    ],
)
def test_sums_of_half_precision_accumulate_in_float32(call, expected):
    value = jax.jit(call)(ONES)
    assert value.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(value, np.float32), expected, rtol=2.0**-8)
