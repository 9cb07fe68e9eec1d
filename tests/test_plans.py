"""``so.plan`` against what XLA compiles, and ``so.propose_rules`` against data parallelism."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from collectives import collectives
from jax.sharding import AbstractMesh
from mesh_models import digits, language_model, perceptron

import symop as so
from registry.errors import ArgumentError, FeedError, UnknownTypeError
from symop import train
from symop.planning.operations import most_held
from symop.planning.propagation import exchange, followed

pytestmark = pytest.mark.scale
MODELS = {
    "perceptron": perceptron(512),
    "digits": digits(),
    "language model": language_model(examples=64),
    "language model by sequence": language_model(examples=64, by_sequence=True),
}
OFTEN = {
    ("perceptron", "data"),
    ("perceptron", "sharded"),
    ("perceptron", "tensor"),
    ("perceptron", "both"),
    ("perceptron", "joint"),
    ("digits", "sharded"),
}
"""Other models are compared by `make scale`."""
COMPARED = [
    pytest.param(name, layout, id=f"{name}, {layout}",
                 marks=() if (name, layout) in OFTEN else pytest.mark.slow)
    for name, model in MODELS.items()
    for layout in model.layouts
]  # fmt: skip


def mesh_of():
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


@pytest.mark.parametrize(("name", "layout"), COMPARED)
def test_a_plan_is_what_xla_compiles(name, layout):
    model, mesh = MODELS[name], mesh_of()
    given = {"inputs": list(model.batch)}
    optimizer = optax.adam(1e-3)
    plan = so.plan(model.loss, mesh, model.layouts[layout], optimizer=optimizer, **given)
    trainer = train.Trainer(model.loss, optimizer, mesh=mesh, rules=model.layouts[layout], **given)
    with trainer.placement.current():
        compiled = (
            jax.jit(trainer._run, donate_argnums=0)
            .lower(trainer.init(0).packed(), trainer.placement.put_feed("step", model.batch))
            .compile()
        )
    found = collectives(compiled.as_text())
    np.testing.assert_allclose(plan.bytes, found.total(), rtol=0.1)
    memory = compiled.memory_analysis()
    # The number of the step and the random key are the rest.
    assert 0 <= memory.argument_size_in_bytes - (plan.memory - plan.values) <= 24
    whole = memory.argument_size_in_bytes + memory.temp_size_in_bytes
    np.testing.assert_allclose(plan.memory, whole, rtol=0.1)


def test_parameters_split_like_the_batch_are_gathered_and_not_the_values():
    """The result of a lookup in a table that is split over the axis of the batch stays split."""
    model = MODELS["language model"]
    mesh = AbstractMesh((4, 2), ("data", "model"))
    plan = so.plan(model.loss, mesh, model.layouts["sharded"], inputs=list(model.batch))
    weights = sum(one.bytes for one in plan.parameters) * 4
    gathered = sum(one.bytes for one in plan.exchanges if one.kind == "all-gather")
    # Each weight once for the forward pass and once for the gradients, in the loop over blocks.
    assert gathered <= 2 * weights + 64


def test_gradients_that_are_numbers():
    """The gradient of a term that stands alone is a literal of the jaxpr."""
    x, p = so.var("x", (8, 4)), so.var("p", ())
    mesh = AbstractMesh((4,), ("data",))
    for loss in (so.mean(x) + p, so.mean(x) - p * 3.0, so.mean(x) + so.stop_gradient(p)):
        assert so.plan(loss, mesh, inputs=["x"]).bytes == 4


def test_calls_of_one_jitted_function_are_split_apart():
    """Each product is computed as its own readers are split; JAX traces the function once."""
    product = jax.jit(lambda a, b: a @ b)

    def f(a, p, q):
        return jnp.tanh(product(a, a) * p), jnp.tanh(product(a, a) * q)

    def inlined(a, p, q):
        return jnp.tanh((a @ a) * p), jnp.tanh((a @ a) * q)

    shardings, sizes = [(), ("data",), (None, "model")], {"data": 4, "model": 2}
    both = [
        _results(jax.make_jaxpr(one)(*[jnp.ones((8, 8))] * 3).jaxpr, shardings, sizes)
        for one in (f, inlined)
    ]
    assert both == [([("data",), (None, "model")], both[0][1])] * 2


def _results(jaxpr, shardings, sizes):
    """The shardings of results, and the bytes of values held at once."""
    walk = followed(jaxpr, shardings, sizes, lambda *_: None, [True] * 3)
    return list(map(walk.of, jaxpr.outvars)), most_held(walk, jaxpr)


def test_an_axis_over_other_mesh_axes_is_permuted():
    """Devices hold other parts if the order of the mesh axes changes."""
    seen = []
    array, sizes = jax.ShapeDtypeStruct((8, 4), "float32"), {"data": 4, "model": 2}
    exchange(array, (("data", "model"),), (("model",),), sizes, seen.append)
    exchange(array, (("model",),), (("data", "model"),), sizes, seen.append)
    exchange(array, (("data",),), (("data", "model"),), sizes, seen.append)
    found = [(one.kind, one.bytes) for one in seen]
    assert found == [
        ("collective-permute", 16), ("all-gather", 64), ("collective-permute", 16),
    ]  # fmt: skip


@pytest.mark.parametrize("where", [(), ("model",), (("data", "model"),)])
def test_a_plan_of_a_table_split_by_rows(where):
    """Its dense gradient is added where its parts are."""
    ids, table = so.var("ids", (32, 4), "int32"), so.var("table", (4096, 16))
    loss, mesh = so.mean(so.square(so.lookup_table(table, ids))), mesh_of()
    plan = so.plan(loss, mesh, {"table": where}, inputs=["ids"])
    trainer = train.Trainer(loss, optax.sgd(0.1), inputs=["ids"], mesh=mesh, rules={"table": where})
    batch = {"ids": np.zeros((32, 4), "int32")}
    with trainer.placement.current():
        lowered = jax.jit(trainer._run, donate_argnums=0).lower(
            trainer.init(0).packed(), trainer.placement.put_feed("step", batch)
        )
    found = collectives(lowered.compile().as_text())
    np.testing.assert_allclose(plan.bytes, found.total(), rtol=0.1)


def test_a_plan_tells_who_asks_for_what():
    model = MODELS["perceptron"]
    plan = so.plan(model.loss, AbstractMesh((64,), ("data",)), inputs=list(model.batch))
    first = plan.exchanges[0]
    assert (first.kind, first.axes, first.times, first.bytes) == ("all-reduce", ("data",), 1, 8192)
    assert first.moved == 2 * 8192 * 63 // 64
    assert "mesh_models.py" in first.asked_by
    shown = str(plan)
    assert "64 devices (data 64)" in shown
    assert "first_weight" in shown
    assert "all-reduce" in plan._repr_html_()
    assert plan.optimizer == 0
    adam = so.plan(model.loss, AbstractMesh((64,), ("data",)), inputs=["x", "y"],
                   optimizer=optax.adam(0.1))  # fmt: skip
    assert adam.optimizer == 2 * sum(one.bytes for one in plan.parameters) + 4


@pytest.mark.parametrize(
    ("layers", "width", "examples", "microbatches", "sizes"),
    [
        (8, 16, 24, 3, (2, 4)),
        pytest.param(4, 16, 32, 4, (2, 4), marks=pytest.mark.slow),
        pytest.param(8, 16, 24, 3, (1, 4), marks=pytest.mark.slow),
    ],
)
def test_a_plan_of_a_pipeline(layers, width, examples, microbatches, sizes):
    """It tells the collective permutations that move values from stage to stage."""
    x, w = so.var("x", (examples, width)), so.var("w", (layers, width, width), sharding=("stage",))
    last = so.pipeline(
        lambda x, w: so.tanh(so.matmul(x, w)), x, w, stages=4, microbatches=microbatches
    )
    loss, kinds = so.mean(so.square(last)), (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh(sizes, ("data", "stage"), axis_types=kinds)
    trainer = train.Trainer(loss, optax.adam(0.1), inputs=["x"], mesh=mesh)
    batch = {"x": np.ones((examples, width), "float32")}
    with trainer.placement.current():
        lowered = jax.jit(trainer._run, donate_argnums=0).lower(
            trainer.init(0).packed(), trainer.placement.put_feed("step", batch)
        )
    found = collectives(lowered.compile().as_text())
    plan = so.plan(loss, mesh, inputs=["x"], optimizer=optax.adam(0.1))
    told = sum(one.bytes for one in plan.exchanges if one.kind == "collective-permute")
    assert told == found["collective-permute"]
    np.testing.assert_allclose(plan.bytes, found.total(), rtol=0.1)


OPTIMIZERS = {
    "norm of all": (optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3)), "sharded"),
    "norms of each": (optax.lamb(1e-3), "tensor"),
    "rows and columns": (optax.adafactor(1e-3, min_dim_size_to_factor=8), "both"),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_plan_counts_what_an_optimizer_exchanges(name):
    """Apart from the step without its optimizer."""
    optimizer, layout = OPTIMIZERS[name]
    model, mesh = perceptron(16), mesh_of()
    rules = {key: one for key, one in model.layouts[layout].items() if key != "last_*"}
    given = {"inputs": list(model.batch)}

    def compiled(optimizer):
        trainer = train.Trainer(model.loss, optimizer, mesh=mesh, rules=rules, **given)
        batch = trainer.placement.put_feed("step", model.batch)
        with trainer.placement.current():
            lowered = jax.jit(trainer._run, donate_argnums=0).lower(trainer.init(0).packed(), batch)
        return collectives(lowered.compile().as_text()).total()

    def planned(optimizer):
        return so.plan(model.loss, mesh, rules, optimizer=optimizer, **given).bytes

    plain = optax.sgd(0.1)
    assert planned(plain) == so.plan(model.loss, mesh, rules, **given).bytes
    found, told = compiled(optimizer) - compiled(plain), planned(optimizer) - planned(plain)
    assert told > 0
    np.testing.assert_allclose(told, found, rtol=0.1, atol=64)


@pytest.mark.parametrize(
    "optimizer",
    [
        optax.contrib.muon(1e-3),
        optax.chain(optax.sgd(1.0), optax.scale_by_backtracking_linesearch(2)),
        optax.lbfgs(),
    ],
    ids=["matrices", "line search", "curvature"],
)
def test_a_plan_tells_that_an_optimizer_exchanges_more(optimizer):
    """Products of matrices, and evaluations of the loss."""
    model, mesh = perceptron(16), mesh_of()
    rules, inputs = {"*_weight": ("data",)}, list(model.batch)
    plan = so.plan(model.loss, mesh, rules, optimizer=optimizer, inputs=inputs)
    own = [one for one in plan.exchanges if one.asked_by == "optimizer"]
    assert sum(one.bytes for one in own) > 1000


def test_what_a_constraint_exchanges():
    x = so.var("x", (8, 4), sharding=("data",))
    loss = so.sum(so.square(so.shard(x * so.var("w", (4,)), sharding=())))
    plan = so.plan(loss, AbstractMesh((4,), ("data",)), inputs=["x"])
    assert ("all-gather", 8 * 4 * 4) in {(one.kind, one.bytes) for one in plan.exchanges}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("perceptron", marks=pytest.mark.essential),
        pytest.param("language model", marks=pytest.mark.slow),
    ],
)
def test_proposed_rules_are_never_worse_than_data_parallelism(name):
    model, mesh = MODELS[name], AbstractMesh((4, 2), ("data", "model"))
    given = {"inputs": list(model.batch), "optimizer": optax.adam(0.1)}
    plain = so.plan(model.loss, mesh, **given)
    best = so.plan(model.loss, mesh, so.propose_rules(model.loss, mesh, **given), **given)
    assert best.moved <= plain.moved
    limit = int(plain.memory * 0.6)
    rules = so.propose_rules(model.loss, mesh, memory=limit, **given)
    small = so.plan(model.loss, mesh, rules, **given)
    assert small.memory <= limit
    assert rules


def test_errors():
    loss = so.mean(so.square(so.fully_connected(so.var("x", (8, 6)), units=6, name="layer")))
    mesh = AbstractMesh((4,), ("data",))
    with pytest.raises(ArgumentError, match="plan: the loss must be a symbol, got int"):
        so.plan(3, mesh, inputs=["x"])
    with pytest.raises(FeedError, match=r"plan: .*'y'"):
        so.plan(loss, mesh, inputs=["y"])
    with pytest.raises(ArgumentError, match="plan: 'layer_weight': the length of axis 0 must be"):
        so.plan(loss, mesh, {"*_weight": ("data",)}, inputs=["x"])
    with pytest.raises(ArgumentError, match="must name axes of the mesh, data, got 'model'"):
        so.plan(loss, mesh, {"*_weight": ("model",)}, inputs=["x"])
    for given, message in (
        ({"mesh": "8"}, "plan: mesh must be a jax.sharding.Mesh or AbstractMesh, got '8'"),
        ({"mesh": mesh, "rules": [("data",)]}, "plan: rules must map names or patterns"),
        ({"mesh": mesh, "optimizer": "adam"}, "plan: the optimizer must be an optax"),
    ):
        with pytest.raises(ArgumentError, match=message):
            so.plan(loss, inputs=["x"], **given)
    for memory in (0, "1 GB"):
        with pytest.raises(ArgumentError, match="memory must be a positive number of bytes, got"):
            so.propose_rules(loss, mesh, inputs=["x"], memory=memory)
    with pytest.raises(
        ArgumentError, match=r"smallest plan found takes \d+ bytes of each device, got 9"
    ):
        so.propose_rules(loss, mesh, inputs=["x"], memory=9)
    unknown = so.sum(so.fully_connected(so.var("x"), units=6))
    with pytest.raises(UnknownTypeError):
        so.plan(unknown, mesh, inputs=["x"])
    assert so.plan(unknown, mesh, inputs=["x"], x=(8, 2)).parameters[0].type.shape == (6, 2)


def test_patterns_of_proposed_rules_match_what_was_planned():
    hidden = so.var("x", (8, 16))
    for name, shape in {"w1": (16, 16), "w2": (16, 16), "w1_b1": (16, 13),
                        "w1_b2": (13, 16)}.items():  # fmt: skip
        hidden = so.matmul(hidden, so.var(name, shape))
    loss, mesh = so.mean(hidden), AbstractMesh((8,), ("data",))
    rules = so.propose_rules(loss, mesh, inputs=["x"], memory=9500)
    assert rules
    so.plan(loss, mesh, rules, inputs=["x"])
