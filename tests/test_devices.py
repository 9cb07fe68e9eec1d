"""Devices of JAX: who takes them, and what is spread over several of them.

JAX types arrays across devices: by the axes along which they vary, inside of ``jax.shard_map``, and
by the explicit axes over which they are sharded. Both must be right at each equation, so that
tracing the derivatives of an operator proves them for it; values are compared for a few models.
"""

import subprocess
import sys
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import registry
import symop as so
from registry.cases import Case, Workload
from symop import train
from symop.testing.trial import trials
from symop.testing.values import symbol_of

ROOT = Path(__file__).parents[1]

IMPORTS = """
import importlib, pkgutil
import registry, symop

for package in (registry, symop):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)

import jax
jax.config.update("jax_num_cpu_devices", 3)  # which JAX refuses once there are devices
assert jax.device_count() == 3
"""


def test_imports_take_no_devices():
    """So ``jax.distributed.initialize()`` and JAX's own settings may come after them."""
    environment = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, env=environment, cwd=ROOT)


# Every operator ----------------------------------------------------------------------------------


def first_trials():
    found = [trials(one, one.cases[0], "float32")[-1] for one in registry.operators() if one.cases]
    return [one for one in found if one.differentiable]


every_trial = pytest.mark.parametrize("trial", first_trials(), ids=lambda one: one.operator.name)


def energy(outputs):
    """A number that depends on all of ``outputs``, which may be 8-bit floats."""
    squares = [jnp.sum(jnp.real(one * jnp.conj(one))) for one in outputs]
    return sum(one.astype(np.float32) if one.dtype.itemsize == 1 else one for one in squares)


def varying_choices(count):
    """Which inputs differ between devices: all of them, the first alone, the others alone."""
    first = (True, *[False] * (count - 1))
    return (
        [(True,) * count] if count == 1 else [(True,) * count, first, tuple(not v for v in first)]
    )


def one_alone(count):
    """One input differs between devices, each in turn."""
    return [tuple(i == k for i in range(count)) for k in range(count)]


def of_devices(function, varying):
    """The sum over two devices of ``function``, of inputs that have an axis of devices or not."""
    mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))

    def of_device(*given):
        return function(*[one[0] if v else one for one, v in zip(given, varying, strict=True)])[
            None
        ]

    specs = tuple(PartitionSpec("d") if one else PartitionSpec() for one in varying)
    mapped = jax.shard_map(of_device, mesh=mesh, in_specs=specs, out_specs=PartitionSpec("d"))
    return lambda *arrays: jnp.sum(mapped(*arrays))


def expect_gradients_across_devices(trial, places, varying):
    """The gradient of a trial can be traced if inputs at ``places`` vary as ``varying`` says."""
    function = trial.function("rules", places)
    active = tuple(k for k, i in enumerate(places) if i in trial.active)
    primals = zip([trial.inputs[i] for i in places], varying, strict=True)
    arrays = [jnp.stack([one, one]) if moved else one for one, moved in primals]

    def loss(*given):
        results = function(*given)
        return energy(results[i] for i in trial.carrying)

    found = jax.eval_shape(jax.grad(of_devices(loss, varying), active), *arrays)
    assert [one.shape for one in found] == [arrays[k].shape for k in active]


@every_trial
@pytest.mark.sampled(8)
def test_grad_of_shard_map(trial):
    """With JAX's default ``check_vma=True``."""
    for varying in varying_choices(len(trial.active)):
        expect_gradients_across_devices(trial, trial.active, varying)


def arrays_of(trial):
    """The places of the arrays among the inputs."""
    arrays = [(i, one) for i, one in enumerate(trial.inputs) if isinstance(one, jax.Array)]
    return [i for i, one in arrays if not jnp.issubdtype(one.dtype, jax.dtypes.prng_key)]


def is_empty(value):
    """Whether ``value``, of a case, is or draws an empty array."""
    shape = value if isinstance(value, tuple) else getattr(value, "shape", ())
    return isinstance(shape, tuple) and 0 in shape


def cases_with_empty_arrays():
    """For each operator the first such case."""
    for operator in registry.operators():
        for case in operator.cases:
            if isinstance(case, Case) and any(is_empty(one) for one in case.values.values()):
                yield operator, case
                break


@pytest.mark.parametrize(
    ("operator", "case"),
    [pytest.param(*pair, id=pair[0].name) for pair in cases_with_empty_arrays()],
)
@pytest.mark.sampled(8)
def test_grad_of_shard_map_of_empty_arrays(operator, case):
    trial = trials(operator, case, "float32")[-1]
    places = arrays_of(trial)
    for varying in one_alone(len(places)) if trial.differentiable else ():
        expect_gradients_across_devices(trial, places, varying)


@pytest.mark.parametrize(
    "name", ["linear_scan", "softmax_output", "gru", "lstm", "scan_prefix", "silu", "std", "xlogy"]
)
@pytest.mark.sampled(6)
def test_grad_of_shard_map_where_one_input_varies(name):
    """The kernels of these do not read all that their derivatives read, at least in some case."""
    operator = registry.get(name)
    for case in operator.cases:
        if not isinstance(case, Case) or isinstance(case, Workload):
            continue
        trial = trials(operator, case, "float32")[-1]
        places = arrays_of(trial)
        for varying in one_alone(len(places)) if trial.differentiable else ():
            expect_gradients_across_devices(trial, places, varying)


@pytest.mark.parametrize("name", ["cofactor", "cofactor_change", "solve"])
@pytest.mark.sampled(3)
def test_second_derivatives_of_shard_map_where_one_input_varies(name):
    trial = trials(registry.get(name), registry.get(name).cases[0], "float32")[-1]
    places = arrays_of(trial)
    function = trial.function("rules", places)
    active = tuple(k for k, i in enumerate(places) if i in trial.active)
    primals = [trial.inputs[i] for i in places]

    def slope(*given):
        found = jax.grad(lambda *own: energy(function(*own)[:1]), active)(*given)
        return energy(found)

    for varying in one_alone(len(places)):
        arrays = [
            jnp.stack([one, one]) if moved else one
            for one, moved in zip(primals, varying, strict=True)
        ]
        jax.jit(jax.grad(of_devices(slope, varying), active)).lower(*arrays)


def test_a_gradient_by_the_labels_of_each_device():
    data, labels = jnp.float32([[0.5, -1.0, 2.0]]), jnp.float32([[0.0], [2.0]])
    slopes = jnp.float32([[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]])

    def loss(data, label, slope):
        return jnp.sum(so.softmax_output(data, label, out_grad=True) * slope)

    found = jax.grad(of_devices(loss, (False, True, True)))(data, labels, slopes)
    expected = sum(jax.grad(loss)(data, *one) for one in zip(labels, slopes, strict=True))
    chex.assert_trees_all_close(found, expected, rtol=1e-6)


def test_an_operator_that_sums_over_devices(temporary_operators):
    """Its result is the same on all devices, though its gradient is that of one."""

    @registry.op(shape=lambda x: x, dtype=lambda x: x.dtype)
    def sum_of_devices(x):
        return jax.lax.psum(x, "d")

    @sum_of_devices.gradient
    def _gradient(x, d_out):
        return {"x": d_out}

    mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(
        sum_of_devices, mesh=mesh, in_specs=PartitionSpec("d"), out_specs=PartitionSpec()
    )
    assert mapped(jnp.float32([1.0, 2.0])).tolist() == [3.0]


def spec_of(array):
    """The first axis of even length over the mesh axis ``d``."""
    even = [i for i, n in enumerate(array.shape) if n and n % 2 == 0][:1]
    return PartitionSpec(*["d" if i in even else None for i in range(array.ndim)])


def loss_of(symbol):
    """A number that depends on all outputs of ``symbol`` that have gradients."""
    outputs = [symbol] if len(symbol.nodes) == 1 else list(symbol)
    moving = [one for one in outputs if one.node.type.differentiable]
    if any(one.node.type.kind is not registry.VarKind.LOD_TENSOR for one in moving):
        return None
    return sum(so.sum(so.real(one * so.conj(one))) for one in moving)


@every_trial
@pytest.mark.sampled(8)
def test_gradients_on_explicit_axes(trial):
    """The gradients of a graph are sharded as what they belong to."""
    mesh = jax.make_mesh((2,), ("d",))
    symbol, arrays = symbol_of(trial)
    loss = loss_of(symbol)
    if loss is None:
        return  # arrays of tensors, whose elements a loss does not read
    function = so.value_and_grad(loss, is_train=bool(trial.training))
    given = {name: arrays[name] for name in (*function.arguments, *function.states)}
    for name, one in given.items():
        if one.dtype.kind in "fc":
            given[name] = jax.device_put(one, NamedSharding(mesh, spec_of(one)))
    found = jax.eval_shape(lambda **own: function(key=jax.random.key(0), **own)[1], **given)
    for name, one in found.items():
        spec = jax.typeof(given[name]).sharding.spec
        assert (
            one.sharding.spec == spec
            if any(spec)
            else one.sharding is None or not any(one.sharding.spec)
        )


# Models ------------------------------------------------------------------------------------------

EXAMPLES, LENGTH, WIDTH, WORDS = 8, 4, 8, 10


def perceptron():
    x, y = so.var("x", shape=(16, 8)), so.var("y", shape=(16, 4))
    first = so.fully_connected(x, so.var("w1", shape=(12, 8)), so.var("b1", shape=(12,)), units=12)
    second = so.relu(so.matmul(so.tanh(first), so.var("w2", shape=(12, 12))))
    out = so.fully_connected(second, so.var("w3", shape=(4, 12)), so.var("b3", shape=(4,)), units=4)
    return so.mean(so.square(out - y))


def transformer(layers=1):
    ids, labels = (so.var(name, (EXAMPLES, LENGTH), "int32") for name in ("ids", "labels"))
    x = so.lookup_table(so.var("table", shape=(WORDS, WIDTH)), ids)
    for i in range(layers):
        x = block(x, i)
    logits = so.matmul(x, so.var("head", shape=(WIDTH, WORDS)))
    flat = so.reshape(logits, shape=(EXAMPLES * LENGTH, WORDS))
    return so.mean(so.softmax_cross_entropy(flat, so.reshape(labels, shape=(-1,))))


def block(x, i):
    def weight(name, *shape):
        return so.var(f"{name}{i}", shape=shape)

    normal = so.layer_norm(x, weight("scale", WIDTH), weight("shift", WIDTH))
    shape = (EXAMPLES, LENGTH, 2, WIDTH // 2)
    q, k, v = (
        so.reshape(so.matmul(normal, weight(name, WIDTH, WIDTH)), shape=shape) for name in "qkv"
    )
    scores = so.softmax(so.einsum(q, k, equation="bthd,bshd->bhts") * 0.5, axis=-1)
    mixed = so.reshape(so.einsum(scores, v, equation="bhts,bshd->bthd"), shape=x.shape)
    x = x + so.matmul(mixed, weight("o", WIDTH, WIDTH))
    return x + so.matmul(so.gelu(so.matmul(x, weight("up", WIDTH, 16))), weight("down", 16, WIDTH))


ROWS = PartitionSpec("data")
FIRST, LAST = PartitionSpec("model", None), PartitionSpec(None, "model")
LAYOUTS = {
    "data parallel": (perceptron, {}),
    "weights over the axis of the examples": (
        perceptron,
        {"w1": PartitionSpec("data", None), "w2": PartitionSpec("data", "model")},
    ),
    "tensor parallel": (perceptron, {"w1": FIRST, "b1": PartitionSpec("model"), "w2": FIRST,
                                     "w3": LAST}),
    "data parallel transformer": (transformer, {}),
    "tensor parallel transformer": (
        transformer,
        {"table": LAST, "head": LAST}
        | {f"{name}{i}": LAST for i in range(1) for name in ("q", "k", "v", "up")}
        | {f"{name}{i}": FIRST for i in range(1) for name in ("o", "down")},
    ),
}  # fmt: skip
DATA = ("x", "y", "ids", "labels")


class Model:
    """A loss, its arrays, whole and spread over eight devices, and JAX's own gradients."""

    def __init__(self, layout, kind):
        build, specs = LAYOUTS[layout]
        self.loss = build()
        shapes = dict(zip(self.loss.list_arguments(), self.loss.infer_shape()[0], strict=True))
        generator = np.random.default_rng(0)
        self.whole = {
            name: jnp.asarray(
                generator.integers(0, WORDS, shape).astype("int32")
                if name in ("ids", "labels")
                else generator.normal(size=shape).astype("float32") * 0.3
            )
            for name, shape in shapes.items()
        }
        mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(kind, kind))
        specs = dict.fromkeys(DATA, ROWS) | specs
        self.spread = {
            name: jax.device_put(one, NamedSharding(mesh, specs.get(name, PartitionSpec())))
            for name, one in self.whole.items()
        }
        self.weights = [name for name in self.whole if name not in DATA]
        self.explicit = kind is AxisType.Explicit
        kernels = self.loss.to_jax(rules=False)
        self.expected = jax.jit(jax.grad(lambda own: kernels(**{**self.whole, **own})))(
            {name: self.whole[name] for name in self.weights}
        )

    def expect(self, found):
        for name in self.weights:
            chex.assert_trees_all_close(
                np.asarray(found[name]), np.asarray(self.expected[name]), rtol=1e-4, atol=1e-5
            )
            if self.explicit:
                assert found[name].sharding.is_equivalent_to(
                    self.spread[name].sharding, found[name].ndim
                )


@pytest.fixture(params=[AxisType.Explicit, AxisType.Auto], ids=["explicit", "auto"], scope="module")
def kind(request):
    return request.param


@pytest.fixture(params=LAYOUTS, scope="module")
def model(request, kind):
    assert jax.device_count() >= 8, "the devices were made before conftest.py set its flag"
    return Model(request.param, kind)


@pytest.mark.sampled(4)
def test_grad_of_lowered_model(model):
    function = model.loss.to_jax()

    def loss(own, arrays):
        return function(**{**arrays, **own})

    own = {name: model.spread[name] for name in model.weights}
    model.expect(jax.jit(jax.grad(loss))(own, model.spread))


@pytest.mark.sampled(4)
def test_value_and_grad_of_model(model):
    function = so.value_and_grad(model.loss, model.weights)
    model.expect(jax.jit(lambda arrays: function(**arrays)[1])(model.spread))


@pytest.mark.sampled(4)
def test_graph_of_gradients(model):
    variables = {one.name: one for one in model.loss.get_internals() if one.name in model.weights}
    gradients = so.grad(model.loss, [variables[name] for name in model.weights])
    found = jax.jit(so.Group(gradients).to_jax())(**model.spread)
    for name, one in zip(model.weights, found, strict=True):
        chex.assert_trees_all_close(
            np.asarray(one), np.asarray(model.expected[name]), rtol=1e-4, atol=1e-5
        )


@pytest.mark.sampled(8)
def test_trainer(model):
    data = {name: one for name, one in model.spread.items() if name in DATA}
    trainer = train.Trainer(model.loss, optax.sgd(1.0), inputs=list(data))
    own = {name: model.spread[name] + 0 for name in model.weights}
    state, _ = trainer.step(trainer.init()._replace(params=own), data)
    model.expect({name: model.spread[name] - state.params[name] for name in model.weights})


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name.startswith("data parallel")])
def test_data_parallel_gradients_gather_nothing(layout):
    """Each device keeps its examples; what weights have in common is added up at the end."""
    model = Model(layout, AxisType.Explicit)
    function = so.value_and_grad(model.loss, model.weights)
    program = jax.jit(lambda arrays: function(**arrays)).lower(model.spread).compile().as_text()
    assert "all-reduce" in program
    assert "all-gather" not in program
    assert "all-to-all" not in program


def test_value_and_grad_inside_of_shard_map():
    """As ``jax.grad``: what each device contributes to the gradient of a common weight is added."""
    x, w = so.var("x", shape=(2, 3)), so.var("w", shape=(3,))
    function = so.value_and_grad(so.sum(so.square(so.matmul(x, w))), ["w"])
    mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
    rows = jnp.arange(24.0).reshape(8, 3)
    mapped = jax.shard_map(
        lambda x, w: function(x=x, w=w)[1]["w"],
        mesh=mesh,
        in_specs=(PartitionSpec("d"), PartitionSpec()),
        out_specs=PartitionSpec(),
    )
    expected = jax.grad(lambda w: jnp.sum((rows @ w) ** 2))(jnp.ones(3))
    chex.assert_trees_all_close(jax.jit(mapped)(rows, jnp.ones(3)), expected, rtol=1e-5)


def mapped_gradients(function, names, **arrays):
    """``function``, a graph's value and gradients, on each of four devices."""
    mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(
        lambda x, w: [function(x=x, w=w)[1][name] for name in names],
        mesh=mesh,
        in_specs=(PartitionSpec("d"), PartitionSpec()),
        out_specs=[PartitionSpec("d") if name == "x" else PartitionSpec() for name in names],
    )
    return jax.jit(mapped)(arrays["x"], arrays["w"])


@pytest.mark.parametrize("shape", [(), (3,)])
def test_value_and_grad_inside_of_shard_map_where_a_gradient_does_not_vary(shape):
    """Each device has a loss, to which the common weight contributes."""
    x, w = so.var("x", shape=(2,)), so.var("w", shape=shape)
    function = so.value_and_grad(so.sum(w) + so.sum(x), ["w"])
    (found,) = mapped_gradients(function, ["w"], x=jnp.ones(8), w=jnp.ones(shape))
    np.testing.assert_array_equal(found, np.full(shape, 4.0))


@pytest.mark.parametrize("name", ["std", "l2_normalize", "cosine_similarity"])
def test_value_and_grad_of_empty_arrays_inside_of_shard_map(name):
    """Both branches of the scaling of squares are of one type."""
    x, w = so.var("x", shape=(1, 0, 3)), so.var("w", shape=(0, 3))
    rows = so.reshape(x, shape=(0, 3))
    inputs = [rows, w] if name == "cosine_similarity" else [rows]
    out = registry.get(name)(*inputs, axis=1)
    function = so.value_and_grad(so.sum(out) + so.sum(w), ["x", "w"])
    arrays = {"x": jnp.ones((4, 0, 3)), "w": jnp.ones((0, 3))}
    found = mapped_gradients(function, ["x", "w"], **arrays)
    assert [one.shape for one in found] == [(4, 0, 3), (0, 3)]


@pytest.mark.parametrize("name", ["lstm", "softmax_output", "solve", "convolution", "sort", "det"])
@pytest.mark.sampled(3)
def test_values_of_grad_of_shard_map(name):
    """The same inputs on each device: the sum of two equal gradients."""
    trial = next(one for one in first_trials() if one.operator.name == name)
    function = trial.function("rules", trial.active)
    places = tuple(range(len(trial.active)))

    def total(*arrays):
        results = function(*arrays)
        return energy(results[i] for i in trial.carrying)

    mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))

    def mapped(first, *others):
        def of_device(first, *others):
            return total(first[0], *others)[None]

        own = PartitionSpec("d"), *[PartitionSpec()] * len(others)
        each = jax.shard_map(of_device, mesh=mesh, in_specs=own, out_specs=PartitionSpec("d"))
        return jnp.sum(each(jnp.stack([first, first]), *others))

    found = jax.jit(jax.grad(mapped, places))(*trial.primals)
    expected = jax.jit(jax.grad(total, places))(*trial.primals)
    chex.assert_trees_all_close(found, tuple(2 * one for one in expected), rtol=1e-4, atol=1e-5)
