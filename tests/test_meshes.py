"""Training on a mesh of eight devices: values and gradients are those of one device."""

import contextlib
import copy
import functools
import itertools
import pickle

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from collectives import largest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from mesh_models import Model, clicks, digits, language_model, perceptron, recommender

import symop as so
from registry.errors import ArgumentError, AttributeValueError, FeedError, FormatError
from symop import train
from symop.runtime.array_store import arrays_of

pytestmark = pytest.mark.scale
KINDS = {"auto": AxisType.Auto, "explicit": AxisType.Explicit}
MODELS = {
    "perceptron": perceptron(),
    "digits": digits(),
    "language model": language_model(),
    "language model by sequence": language_model(by_sequence=True),
}
OFTEN = ("language model, both, explicit", "language model by sequence, tensor, auto")
"""The language models that `make test-all` trains; `make scale` trains all."""


def layouts():
    for name, model in MODELS.items():
        for layout, kind in itertools.product(model.layouts, KINDS):
            case = f"{name}, {layout}, {kind}"
            often = case in OFTEN or not name.startswith("language")
            yield pytest.param(name, layout, kind, id=case, marks=() if often else pytest.mark.slow)


def mesh_of(kind="auto", shape=(4, 2)):
    return jax.make_mesh(shape, ("data", "model"), axis_types=(KINDS[kind],) * 2)


def keeping():
    """An optimizer that changes nothing and keeps the gradients as its state."""

    def update(gradients, state, params=None):
        del state, params
        return jax.tree.map(jnp.zeros_like, gradients), gradients

    return optax.GradientTransformation(lambda params: params, update)


def trained(model: Model, **where):
    """The loss, the gradients, and the updated states of one step."""
    trainer = train.Trainer(model.loss, keeping(), inputs=list(model.batch), **where)
    state, metrics = trainer.step(trainer.init(0), model.batch)
    return metrics["loss"], state


def assert_equal_up_to_rounding(found, expected):
    """Sums in another order differ by the rounding of their largest terms, not of their result."""
    scale = max(1, np.max(np.abs(expected)))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6 * scale)


@functools.cache
def alone(name):
    return trained(MODELS[name])


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("name", "layout", "kind"), list(layouts()))
def test_trainer(name, layout, kind):
    model, mesh = MODELS[name], mesh_of(kind)
    loss, state = trained(model, mesh=mesh, rules=model.layouts[layout])
    expected, before = alone(name)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    split = model.loss.with_sharding(model.layouts[layout]).shardings()
    assert split or layout == "data"
    for key, gradient in before.opt_state.items():
        found = state.opt_state[key]
        assert_equal_up_to_rounding(found, gradient)
        where = NamedSharding(mesh, PartitionSpec(*split.get(key, ())))
        assert found.sharding.is_equivalent_to(where, found.ndim)
        assert state.params[key].sharding.is_equivalent_to(where, found.ndim)
    for key, value in before.states.items():
        np.testing.assert_allclose(state.states[key], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_compiles_once_and_donates_the_state(kind):
    model = MODELS["perceptron"]
    trainer = train.Trainer(
        model.loss,
        optax.adam(0.01),
        inputs=list(model.batch),
        mesh=mesh_of(kind),
        rules=model.layouts["both"],
    )
    state = trainer.init(0)
    moments = state.opt_state[0].mu
    assert moments["first_weight"].sharding.spec == PartitionSpec("model", "data")
    trainer.step(state, model.batch)
    before = state.params["first_weight"]
    with count_compilations() as counted:
        trainer.step(state, model.batch)
    assert before.is_deleted()
    assert counted == []


@contextlib.contextmanager
def count_compilations():
    counted, active = [], [True]

    def listen(name, duration, **_):
        if active and name == "/jax/core/compile/backend_compile_duration":
            counted.append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield counted
    finally:
        active.clear()


# Executors, functions of JAX, programs ------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stacked", [False, True])
def test_executor(kind, stacked):
    model, mesh = MODELS["language model"], mesh_of(kind)
    arrays = train.initialize(model.loss, jax.random.key(0)) | model.batch
    rules = {"ids": ("data",), "labels": ("data",), **model.layouts["tensor"]}
    outputs, gradients = {}, {}
    for name, where in {"one": {}, "mesh": {"mesh": mesh, "rules": rules}}.items():
        executor = model.loss.bind(arrays, stacked=stacked, **where)
        outputs[name] = executor.forward(is_train=True)[0]
        executor.backward()
        gradients[name] = dict(executor.grad_dict)
        executor.forward(ids=model.batch["labels"])
    np.testing.assert_allclose(outputs["mesh"], outputs["one"], rtol=1e-5)
    for name, gradient in gradients["one"].items():
        assert_equal_up_to_rounding(gradients["mesh"][name], gradient)
    split = gradients["mesh"]["block1_up"].sharding
    assert split.is_equivalent_to(NamedSharding(mesh, PartitionSpec(None, "model")), 2)


def test_stacks_of_weights_are_split_like_the_weights():
    model, mesh = MODELS["language model"], mesh_of()
    arrays = train.initialize(model.loss, jax.random.key(0)) | model.batch
    executor = model.loss.bind(arrays, stacked=True, mesh=mesh, rules=model.layouts["tensor"])
    executor.forward(is_train=True)
    stacks = [one for one in arrays_of(executor.arg_dict) if one.shape == (4, 16, 64)]
    (found,) = [one.sharding for one in stacks]
    assert found.is_equivalent_to(NamedSharding(mesh, PartitionSpec(None, None, "model")), 3)


@pytest.mark.parametrize("kind", KINDS)
def test_function_under_the_mesh_of_the_caller(kind):
    model, mesh = MODELS["perceptron"], mesh_of(kind)
    loss = model.loss.with_sharding({**model.layouts["tensor"], "x": ("data",), "y": ("data",)})
    arrays = train.initialize(loss, jax.random.key(0))
    params = {name: arrays[name] for name in arrays if name not in model.batch}
    both = jax.jit(jax.value_and_grad(lambda params, batch: loss.to_jax()(**params, **batch)))
    expected, slopes = both(params, model.batch)
    with jax.set_mesh(mesh):
        value, found = both(params, model.batch)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for name, slope in slopes.items():
        np.testing.assert_allclose(found[name], slope, rtol=1e-4, atol=1e-6)
    where = NamedSharding(mesh, PartitionSpec("model"))
    assert found["first_weight"].sharding.is_equivalent_to(where, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_with_a_table_split_by_rows(kind):
    batches, mesh = clicks(), mesh_of(kind)
    alone, loss = recommender()
    alone.initialize(0)
    expected = [float(alone.run(batch, loss)) for batch in batches]
    program, loss = recommender(sharding=(("data", "model"),))
    program = so.Program.parse(str(program))
    program.place(mesh)
    program.initialize(0)
    found = [float(program.run(batch, loss.name)) for batch in batches]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for name, value in alone.values().items():
        np.testing.assert_allclose(program.values()[name], value, rtol=1e-4, atol=1e-6)
    for name in ("table", "table.moment1", "table.moment2"):
        assert program.values()[name].addressable_shards[0].data.shape == (512, 16)
    program.place(None)
    assert len(program.values()["table"].sharding.device_set) == 1
    program.run(batches[0], loss.name)


@pytest.mark.slow
def test_a_table_of_ten_million_rows():
    """The losses, and after four steps the weights and the rows that were read, with moments."""
    rows = 10_000_000
    losses, values, batches = {}, {}, clicks(rows)
    read = np.unique([batch["ids"] for batch in batches])
    for name, where in {"alone": {}, "mesh": {"sharding": (("data", "model"),)}}.items():
        program, loss = recommender(rows, **where)
        if where:
            program.place(mesh_of())
        program.initialize(0)
        losses[name] = [float(program.run(batch, loss)) for batch in batches]
        values[name] = {
            key: np.asarray(one[read] if key.startswith("table") else one)
            for key, one in program.values().items()
        }
    np.testing.assert_allclose(losses["mesh"], losses["alone"], rtol=1e-5)
    for key, value in values["alone"].items():
        np.testing.assert_allclose(values["mesh"][key], value, rtol=1e-4, atol=1e-6, err_msg=key)
    assert program.values()["table.moment1"].addressable_shards[0].data.shape == (rows // 8, 16)


@pytest.mark.essential
def test_a_lookup_exchanges_rows_and_never_the_table():
    """The largest collective of a step holds rows of the batch."""
    program, loss = recommender(sharding=(("data", "model"),))
    program.place(mesh_of())
    table = program.values()["table"]
    (batch,) = clicks(count=1)
    runner = program._runner(loss.name, None)
    written, rest = runner._kept_values(program)
    fed = program._placement.put_feed("run", batch).values()
    with program._placement.current():
        compiled = jax.jit(runner._run).lower(written, *fed, *rest).compile()
    # The rows of the table and of two moments, of 128 ids.
    assert largest(compiled.as_text()) <= 4 * 128 * 16 * 4 < table.nbytes / 4


# Pipelines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("as_symbol", [False, True])
def test_pipeline(kind, as_symbol):
    """A pipeline of four stages computes what a loop over the layers computes."""
    generator = np.random.default_rng(0)
    layers = {
        "w": generator.normal(size=(8, 6, 6)).astype("float32") / 3,
        "b": generator.normal(size=(8, 6)).astype("float32"),
    }
    x = generator.normal(size=(12, 6)).astype("float32")

    def block(x, layer):
        return so.tanh(so.matmul(x, layer["w"]) + layer["b"])

    def total(layers, x):
        def step(carry, layer):
            return jnp.tanh(carry @ layer["w"] + layer["b"]), None

        return jnp.sum(jnp.square(lax.scan(step, x, layers)[0]))

    def in_stages(layers, x):
        found = so.pipeline(block, x, layers, stages=4, microbatches=3)
        return so.sum(so.square(found))

    expected, slopes = jax.value_and_grad(total)(layers, x)
    if as_symbol:
        given = {"w": so.var("w", (8, 6, 6)), "b": so.var("b", (8, 6))}
        function = so.value_and_grad(in_stages(given, so.var("x", (12, 6))), ["w", "b"])

        def run(layers, x):
            return function(**layers, x=x)
    else:
        run = jax.value_and_grad(in_stages)
    mesh = jax.make_mesh((2, 4), ("data", "stage"), axis_types=(KINDS[kind],) * 2)
    with jax.set_mesh(mesh):
        where = jax.tree.map(lambda _: NamedSharding(mesh, PartitionSpec("stage")), layers)
        compiled = jax.jit(run).lower(jax.device_put(layers, where), jnp.asarray(x)).compile()
        value, found = compiled(jax.device_put(layers, where), jnp.asarray(x))
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for name, slope in slopes.items():
        np.testing.assert_allclose(found[name], slope, rtol=1e-4, atol=1e-5)
        assert found[name].addressable_shards[0].data.shape[0] == 2
    if kind == "auto" or not as_symbol:  # JAX cannot shift along an explicit axis
        assert "collective-permute(" in compiled.as_text()


def test_pipeline_refuses_what_does_not_divide():
    x, layers = jnp.ones((4, 2)), jnp.ones((6, 2, 2))
    for counts, message in {
        (4, 2): "stages must divide the number of layers, 6, got 4",
        (3, 3): "microbatches must divide the number of examples, 4, got 3",
        (0, 2): "stages must divide the number of layers, 6, got 0",
    }.items():
        with pytest.raises(ArgumentError, match=message):
            so.pipeline(jnp.matmul, x, layers, stages=counts[0], microbatches=counts[1])
    with pytest.raises(ArgumentError, match="layers must hold parameters"):
        so.pipeline(jnp.matmul, x, {}, stages=1, microbatches=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": jnp.float32(1)}, "layers must hold parameters, .* got a number"),
        (
            {"layers": (jnp.ones((4, 2, 2)), jnp.ones((8, 2)))},
            "all parameters must be stacks of as many layers, got 4, 8",
        ),
        ({"stages": 2.0}, r"stages must divide the number of layers, 8, got 2\.0"),
        (
            {"stages": 2},
            "stages must be divisible by 4, the size of mesh axis 'stage', got 2",
        ),
        (
            {"microbatches": 8},
            "the examples of a microbatch must be divisible by 2, the size of mesh axis 'data', "
            "got 1",
        ),
        ({"x": jnp.float32(1)}, "x must hold examples along its first axis, got a number"),
        (
            {"f": lambda x, w: x[:, :1]},
            r"f must return examples of the type that it takes, float32\[\d, 2\], got "
            r"float32\[\d, 1\]",
        ),
        ({"axis": "a b"}, "must hold a mesh axis"),
    ],
)
def test_pipeline_names_what_is_wrong(change, message):
    usual = {"f": jnp.matmul, "x": jnp.ones((8, 2)), "layers": jnp.ones((8, 2, 2)), "stages": 4}
    given = {**usual, "microbatches": 2, **change}
    mesh = jax.make_mesh((2, 4), ("data", "stage"), axis_types=(KINDS["auto"],) * 2)
    with jax.set_mesh(mesh), pytest.raises((ArgumentError, AttributeValueError), match=message):
        so.pipeline(given.pop("f"), given.pop("x"), given.pop("layers"), **given)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipeline_whose_function_closes_over_traced_values(kind):
    """A mask that is split by examples, and a number that is differentiated."""
    mesh = jax.make_mesh((2, 4), ("data", "stage"), axis_types=(KINDS[kind],) * 2)
    layers = np.random.default_rng(0).normal(size=(4, 6, 6)).astype("float32")
    x, scale = np.ones((12, 6), "float32"), np.linspace(1, 2, 6, dtype="float32")

    def total(scale, layers, x):
        def block(x, layer):
            return jnp.tanh(x @ layer) * (scale * scale)

        return jnp.sum(so.pipeline(block, x, layers, stages=4, microbatches=3))

    def plain(scale, layers, x):
        for layer in layers:
            x = jnp.tanh(x @ layer) * (scale * scale)
        return jnp.sum(x)

    places = {"scale": (), "layers": ("stage",), "x": ("data",)}
    with jax.set_mesh(mesh):
        given = [
            jax.device_put(one, NamedSharding(mesh, PartitionSpec(*places[name])))
            for name, one in (("scale", scale), ("layers", layers), ("x", x))
        ]
        found = jax.jit(jax.grad(total))(*given)
    np.testing.assert_allclose(found, jax.grad(plain)(scale, layers, x), rtol=1e-4, atol=1e-5)


# As data -----------------------------------------------------------------------------------------


def test_a_trainer_keeps_declared_axes_that_its_mesh_lacks():
    w = so.var("w", (8, 4), sharding=("data", "model"))
    loss, mesh = so.sum(so.matmul(so.var("x", (8, 8)), w)), jax.make_mesh((8,), ("data",))
    trainer = train.Trainer(loss, optax.sgd(0.1), inputs=["x"], mesh=mesh)
    assert trainer.loss.shardings() == {"w": ("data", "model"), "x": ("data",)}
    assert trainer.init(0).params["w"].addressable_shards[0].data.shape == (1, 4)


def test_files_keep_shardings():
    x = so.var("x", (8, 4), sharding=("data", None))
    y = so.shard(so.fully_connected(x, units=2, name="layer"), sharding=(("data", "model"),))
    y = y.with_sharding({"*_weight": (None, "model"), "layer_bias": ()})
    expected = {"x": ("data",), "layer_weight": (None, "model"), "layer_bias": ()}
    assert y.shardings() == expected
    assert so.load_json(y.tojson()).shardings() == expected
    program = so.Program()
    program.parameter("w", (4, 2), sharding=("model",))
    program.state("s", (4, 2), sharding=[None, ("model", "data")])
    for again in (so.Program.parse(str(program)), pickle.loads(pickle.dumps(program))):
        attrs = {one.name: one.desc.attrs["sharding"] for one in again.variables}
        assert attrs == {"w": "model", "s": "None, model+data"}


def test_a_file_with_another_text_is_refused():
    text = so.var("x", (8, 4), sharding=("data",)).tojson()
    with pytest.raises(FormatError, match=r"must hold a mesh axis.*got"):
        so.load_json(text.replace('"data"', '"data, data"'))


def test_nothing_is_split_without_a_mesh():
    x = so.var("x", (3,), sharding=("data",))
    y = so.shard(so.square(x), sharding=("model",))
    assert y.eval(x=[1.0, 2.0, 3.0]).tolist() == [1.0, 4.0, 9.0]
    assert so.nd.shard(so.nd.array([1.0, 2.0]), sharding=("data",)).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("kinds", [("auto", "auto"), ("explicit", "explicit"),
                                   ("auto", "explicit")])  # fmt: skip
@pytest.mark.parametrize("jitted", [False, True])
def test_shard(kinds, jitted):
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=tuple(KINDS[one] for one in kinds))
    x = jnp.arange(64.0).reshape(8, 8)

    def run(x):
        return so.shard(x, sharding=("data", "model"))

    with jax.set_mesh(mesh):
        found = (jax.jit(run) if jitted else run)(x)
        pulled = jax.jit(jax.grad(lambda x: jnp.sum(run(x) * x)))(x)
    where = NamedSharding(mesh, PartitionSpec("data", "model"))
    assert found.sharding.is_equivalent_to(where, 2)
    np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(pulled, 2 * x)


def test_shard_by_the_mesh_of_its_operand():
    mesh = mesh_of("auto")
    x = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, PartitionSpec("data")))
    for run in (so.shard, jax.jit(so.shard, static_argnames="sharding")):
        found = run(x, sharding=(None, "model"))
        assert found.sharding.is_equivalent_to(NamedSharding(mesh, PartitionSpec(None, "model")), 2)


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"rules": {}}, "rules must come with a mesh, got none"),
        ({"mesh": "8"}, "mesh must be a jax.sharding.Mesh"),
        (
            {"mesh": AbstractMesh((16,), ("data",))},
            "got AbstractMesh.*, which has no devices; there are 8, and it needs 16",
        ),
        (
            {"rules": {"*_weigth": ("data",)}},
            r"a rule must match a variable, got '\*_weigth'; did you mean",
        ),
        (
            {"rules": {"*_weight": ("date",)}},
            "the rule for '(first|last)_weight' must name axes of the mesh, data, model, "
            "got 'date'; did you mean 'data'",
        ),
        ({"rules": {"first_bias": ("data", "model")}}, "must have at most 1 entries"),
        ({"rules": {"first_weight": ("data", "data")}}, "each mesh axis once"),
    ],
)
def test_a_trainer_refuses_a_wrong_placement(where, message):
    model = MODELS["perceptron"]
    where = where if "mesh" in where or not where["rules"] else {"mesh": mesh_of(), **where}
    with pytest.raises(ArgumentError, match=message):
        train.Trainer(model.loss, optax.sgd(0.1), inputs=list(model.batch), **where)


def test_a_rule_must_not_differ_from_a_declaration():
    w = so.var("w", (4, 2), sharding=("model",))
    loss = so.sum(so.matmul(so.var("x", (8, 4)), w))
    message = r"'w' must have one sharding, got \('model',\) where it is declared and \('data',\)"
    for refused in (
        lambda: train.Trainer(
            loss, optax.sgd(0.1), inputs=["x"], mesh=mesh_of(), rules={"w": ("data",)}
        ),
        lambda: loss.simple_bind(mesh=mesh_of(), rules={"*": ("data",)}),
    ):
        with pytest.raises(ArgumentError, match=message):
            refused()
    assert loss.with_sharding({"w": ("data",)}).shardings() == {"w": ("data",)}


def test_lengths_that_do_not_divide_are_named():
    loss = so.sum(so.matmul(so.var("x", (8, 6)), so.var("w", (6, 2))))
    given = {"inputs": ["x"], "mesh": mesh_of()}
    trainer = train.Trainer(loss, optax.sgd(0.1), rules={"w": ("data",)}, **given)
    message = "Trainer: 'w': the length of axis 0 must be divisible by 4, the size of mesh axis"
    with pytest.raises(ArgumentError, match=message):
        trainer.init(0)
    trainer = train.Trainer(so.sum(so.var("x") * so.var("w", ())), optax.sgd(0.1), **given)
    state = trainer.init(0, x=(8,))
    with pytest.raises(ArgumentError, match="step: 'x': the length of axis 0 must be divisible"):
        trainer.step(state, {"x": np.ones(6, "float32")})
    program = so.Program()
    program.parameter("w", (6, 2), sharding=("data",))
    program.initialize()
    with pytest.raises(ArgumentError, match="place: 'w': the length of axis 0"):
        program.place(mesh_of())
    with (
        jax.set_mesh(mesh_of()),
        pytest.raises(ArgumentError, match="shard: the length of axis 0"),
    ):
        jax.jit(lambda x: so.shard(x, sharding=("data",)))(jnp.ones(6))


def test_inputs_need_a_rule_if_no_axis_is_called_data():
    loss = so.sum(so.var("x", (8,)) + so.var("b", ()))
    mesh = jax.make_mesh((4, 2), ("rows", "columns"))
    with pytest.raises(ArgumentError, match="a rule must say how the input 'x' is split"):
        train.Trainer(loss, optax.sgd(0.1), inputs=["x"], mesh=mesh)
    trainer = train.Trainer(loss, optax.sgd(0.1), inputs=["x"], mesh=jax.make_mesh((8,), ("i",)))
    _, metrics = trainer.step(trainer.init(0), {"x": np.arange(8.0, dtype="float32")})
    expected = 28.0 + 8 * float(trainer.init(0).params["b"])
    np.testing.assert_allclose(metrics["loss"], expected, rtol=1e-6)


@pytest.mark.parametrize(
    "sharding", [3, "data", (0,), ("data", "data"), (("a", "b"), "a"), ("a+b",)]
)
def test_what_is_no_sharding(sharding):
    with pytest.raises(ArgumentError, match="must hold a mesh axis"):
        so.var("x", (8, 4), sharding=sharding)


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_a_declared_sharding_under_transformations(kind):
    """Constants that JAX closes over, and values that it differentiates, keep their values."""
    x, w = so.var("x", (8,)), so.var("w", (8,), sharding=("data",))
    function, ones = so.sum(so.square(x) * w).to_jax(), jnp.ones(8)

    def loss(x):
        return so.sum(so.shard(x * x * x, sharding=("data",))) + function(x=x, w=ones)

    with contextlib.nullcontext() if kind is None else jax.set_mesh(mesh_of(kind)):
        for run in (jax.grad(loss), jax.jit(jax.grad(loss))):
            if kind == "auto" and run is not None and not hasattr(run, "lower"):
                continue  # JAX itself refuses a constraint on arrays without a mesh, outside of jit
            np.testing.assert_allclose(run(ones), 5.0 * ones)
        np.testing.assert_allclose(jax.jit(jax.hessian(loss))(ones), 8.0 * np.eye(8))


def test_idle_stages_do_not_reach_gradients():
    layers = jnp.array([1.0, 2.0])

    def total(layers, x):
        def block(x, layer):
            return so.sqrt(x) * layer

        return so.sum(so.pipeline(block, x, layers, stages=2, microbatches=2))

    def plain(layers, x):
        return jnp.sum(jnp.sqrt(jnp.sqrt(x) * layers[0]) * layers[1])

    for place in (0, 1):
        found = jax.grad(total, place)(layers, jnp.ones(4))
        np.testing.assert_allclose(found, jax.grad(plain, place)(layers, jnp.ones(4)), rtol=1e-6)


@pytest.mark.parametrize("kinds", [("auto", "auto"), ("auto", "explicit")])
def test_a_trainer_on_mixed_axes_and_under_jit(kinds):
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=tuple(KINDS[one] for one in kinds))
    loss = so.mean(so.square(so.fully_connected(so.var("x", (16, 8)), units=8, name="a")))
    given = {"inputs": ["x"], "mesh": mesh, "rules": {"a_weight": ("data", "model")}}
    trainer = train.Trainer(loss, optax.sgd(0.1), **given)
    batch = {"x": np.ones((16, 8), "float32")}
    _, expected = train.Trainer(loss, optax.sgd(0.1), inputs=["x"]).step(
        train.Trainer(loss, optax.sgd(0.1), inputs=["x"]).init(0), batch
    )
    state = trainer.init(0)
    assert state.params["a_weight"].addressable_shards[0].data.shape == (2, 4)
    new, values = jax.jit(trainer.step)(state, batch)
    np.testing.assert_allclose(values["loss"], expected["loss"], rtol=1e-5)
    state, values = trainer.step(state, {"x": batch["x"].tolist()})
    np.testing.assert_allclose(values["loss"], expected["loss"], rtol=1e-5)
    np.testing.assert_allclose(new.params["a_weight"], state.params["a_weight"], rtol=1e-5)
    assert state.params["a_weight"].addressable_shards[0].data.shape == (2, 4)


# Values that are set by hand


def somewhere(value):
    """An array on one device, which is committed to it."""
    return jax.device_put(jnp.asarray(value), jax.devices()[3])


@pytest.mark.parametrize("kind", KINDS)
def test_a_trainer_places_what_is_set_by_hand(kind):
    w = so.var("w", (4, 2))
    loss = so.mean(so.square(so.matmul(so.var("x", (8, 4)), w)))
    mesh, batch = mesh_of(kind), {"x": np.ones((8, 4), "float32")}
    trainer = train.Trainer(loss, optax.adam(0.1), inputs=["x"], mesh=mesh, rules={"w": ("model",)})
    state, _ = trainer.step(trainer.init(0), batch)
    where = NamedSharding(mesh, PartitionSpec("model"))
    for value in (somewhere(np.ones((4, 2), "float32")), np.ones((4, 2), "float32")):
        state.params["w"] = value
        state, metrics = trainer.step(state, batch)
        assert float(metrics["loss"]) == 16.0
        assert state.params["w"].sharding.is_equivalent_to(where, 2)
    state = state._replace(params={"w": somewhere(np.ones((4, 2), "float32"))}, step=7)
    state, metrics = trainer.step(state, batch)
    assert (float(metrics["loss"]), int(state.step)) == (16.0, 8)
    state.params["w"] = np.ones((3, 2), "float32")
    with pytest.raises(ArgumentError, match="'w': the length of axis 0 must be divisible by 2"):
        trainer.step(state, batch)


@pytest.mark.parametrize("kind", KINDS)
def test_an_executor_places_what_is_set_by_hand(kind):
    loss = so.square(so.var("a", (8, 2)) * so.var("b", (8, 2)))
    executor = loss.simple_bind(grad_req="add", mesh=mesh_of(kind), rules={"*": ("data",)})
    executor.arg_dict["a"] = somewhere(np.full((8, 2), 2.0, "float32"))
    executor.arg_dict["b"] = np.full((8, 2), 3.0, "float32")
    executor.grad_dict["a"] = somewhere(np.ones((8, 2), "float32"))
    executor.forward(is_train=True)
    executor.backward(somewhere(np.ones((8, 2), "float32")))
    np.testing.assert_array_equal(executor.grad_dict["a"], np.full((8, 2), 37.0))
    split = NamedSharding(executor._placement.mesh, PartitionSpec("data"))
    assert executor.arg_dict["a"].sharding.is_equivalent_to(split, 2)


def test_an_executor_places_each_array_once(monkeypatch):
    names = [f"v{i}" for i in range(5)]
    total = functools.reduce(lambda a, b: a + b, [so.var(name, (8,)) for name in names])
    executor = total.simple_bind(mesh=mesh_of(), rules={"v*": ("data",)})
    executor.forward()
    placed = []
    put = type(executor._placement).put
    monkeypatch.setattr(
        type(executor._placement), "put", lambda *args: (placed.append(args[2]), put(*args))[1]
    )
    executor.forward()
    assert placed == []
    executor.arg_dict["v3"] = np.ones(8, "float32")
    executor.forward()
    assert placed == ["v3"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_places_what_is_set_by_hand(kind):
    with so.program_guard(so.Program()) as program:
        loss = so.mean(so.square(so.matmul(so.data("x", (16, 8)), so.parameter("w", (8, 8)))))
    so.optim.Adam(0.01).minimize(loss)
    mesh, batch = mesh_of(kind), {"x": np.ones((16, 8), "float32")}
    program.place(mesh, {"w": ("model", "data")})
    program.initialize(0)
    program.run(batch, loss)
    where = NamedSharding(mesh, PartitionSpec("model", "data"))
    for value in (somewhere(np.ones((8, 8), "float32")), np.ones((8, 8), "float32")):
        program.scope["w"] = value
        assert float(program.run(batch, loss)) == 64.0
        assert program.scope["w"].sharding.is_equivalent_to(where, 2)
    program.scope["w"] = np.ones(8, "float32")
    with pytest.raises(FeedError, match=r"w: an array of type float32\[8,8\] must be given"):
        program.run(batch, loss)


@pytest.mark.parametrize("kind", KINDS)
def test_clones_copies_and_pickles_of_a_program_keep_the_mesh(kind):
    program, loss = recommender(sharding=("data",))
    (batch,) = clicks(count=1)
    program.place(mesh_of(kind))
    program.initialize(0)
    program.run(batch, loss)
    table = np.asarray(program.scope["table"])
    clone = program.clone(updates=False)
    for again in (clone, copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        value = float(again.run(batch, loss.name))
        assert again.scope["table"].addressable_shards[0].data.shape == (1024, 16)
        if again is clone:
            expected = value
        np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_array_equal(program.scope["table"], table)


def test_inputs_that_turn_out_to_be_numbers():
    loss = so.sum(so.var("x") * so.var("w", ())) * so.var("rate")
    trainer = train.Trainer(
        loss, optax.sgd(0.1), inputs=["x", "rate"], mesh=jax.make_mesh((8,), ("data",))
    )
    state = trainer.init(0, x=(8,), rate=())
    batch = {"x": np.ones(8, "float32"), "rate": np.float32(2)}
    w = float(state.params["w"])
    _, inside = jax.jit(trainer.step)(trainer.init(0, x=(8,), rate=()), batch)
    _, metrics = trainer.step(state, batch)
    for found in (inside, metrics):
        np.testing.assert_allclose(found["loss"], 16 * w, rtol=1e-6)


def test_a_program_moves_between_meshes():
    program, loss = recommender(sharding=("data",))
    (batch,) = clicks(count=1)
    losses = []
    for kind, shape in (("explicit", (4, 2)), ("explicit", (2, 4)), ("auto", (2, 4))):
        program.place(mesh_of(kind, shape))
        program.initialize(0)
        losses.append(float(program.run(batch, loss)))
    np.testing.assert_allclose(losses, losses[0], rtol=1e-5)


def test_moments_of_a_program_that_was_placed_before_are_split():
    with so.program_guard(so.Program()) as program:
        x = so.data("x", (16, 8))
        loss = so.mean(so.square(so.fully_connected(x, units=8, name="a")))
    program.place(mesh_of(), {"a_weight": ("model", "data")})
    so.optim.Adam(0.01).minimize(loss)
    program.initialize(0)
    program.run({"x": np.ones((16, 8), "float32")}, loss)
    for name in ("a_weight", "a_weight.moment1"):
        assert program.values()[name].addressable_shards[0].data.shape == (4, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_copies_and_pickles_keep_the_mesh(kind):
    model, mesh = MODELS["perceptron"], mesh_of(kind)
    where = {"mesh": mesh, "rules": model.layouts["tensor"]}
    trainer = train.Trainer(model.loss, keeping(), inputs=list(model.batch), **where)
    again = cloudpickle.loads(cloudpickle.dumps(trainer))
    assert again.placement.mesh == mesh
    _, metrics = again.step(again.init(0), model.batch)
    _, expected = trainer.step(trainer.init(0), model.batch)
    np.testing.assert_array_equal(metrics["loss"], expected["loss"])
    arrays = train.initialize(model.loss, jax.random.key(0)) | model.batch
    executor = copy.copy(model.loss.bind(arrays, **where))
    executor.forward(x=model.batch["x"])
    split = executor.arg_dict["first_weight"].sharding
    assert split.is_equivalent_to(NamedSharding(mesh, PartitionSpec("model")), 2)
