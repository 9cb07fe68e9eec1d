"""Options of a trainer on a mesh: the same results as on one device."""

import jax
import numpy as np
import optax
import pytest
from mesh_models import perceptron

import symop as so
from symop import train

pytestmark = pytest.mark.scale
MODEL = perceptron()
LAYOUTS = ["data", "both"]
KINDS = {
    "auto": jax.sharding.AxisType.Auto,
    "explicit": jax.sharding.AxisType.Explicit,
}


def mesh_of(kind):
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(KINDS[kind],) * 2)


def trainer(optimizer=None, **options):
    return train.Trainer(
        MODEL.loss, optimizer or optax.adam(0.01), inputs=list(MODEL.batch), **options
    )


def data(count, seed=3):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(count, 32)).astype("float32")
    return {"x": x, "y": np.argmax(x[:, :8], axis=1).astype("int32")}


def close(found, expected, **tolerances):
    for name, one in expected.items():
        np.testing.assert_allclose(found[name], one, err_msg=name, **tolerances)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "options",
    [
        {"accumulate": 2, "ema": 0.9},
        {"precision": "bfloat16"},
        {"precision": "float16", "accumulate": 4},
    ],
    ids=["accumulated", "bfloat16", "float16"],
)
@pytest.mark.sampled(5)
def test_steps(options, layout, kind):
    alone = trainer(**options)
    split = trainer(**options, mesh=mesh_of(kind), rules=MODEL.layouts[layout])
    states = [alone.init(0), split.init(0)]
    for count in (32, 16):
        states[0], values = alone.step(states[0], data(count))
        states[1], found = split.step(states[1], data(count))
        np.testing.assert_allclose(found["loss"], values["loss"], rtol=1e-3)
    # Adam moves each entry by its rate, also where a gradient is rounding noise.
    tolerance = {"rtol": 0, "atol": 0.01 if "precision" in options else 1e-3}
    close(states[1].params, states[0].params, **tolerance)
    if states[0].average is not None:
        close(states[1].average, states[0].average, **tolerance)
        for name, one in states[1].params.items():
            assert states[1].average[name].sharding == one.sharding


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [16, 23, 3])
def test_evaluation_of_any_number_of_examples(kind, count):
    alone, split = trainer(), trainer(mesh=mesh_of(kind), rules=MODEL.layouts["both"])
    state = alone.init(0)
    expected = alone.evaluate(state, data(count))["loss"]
    for size in (None, 8):
        found = split.evaluate(split.init(0), data(count), batch_size=size)["loss"]
        assert found == pytest.approx(expected, rel=1e-5)
    batches = [{n: one[i : i + 5] for n, one in data(count).items()} for i in range(0, count, 5)]
    assert split.evaluate(split.init(0), batches)["loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", [pytest.param("auto", marks=pytest.mark.thorough), "explicit"])
def test_a_training_on_a_mesh_is_resumed_on_it(tmp_path, kind):
    class KilledError(Exception):
        pass

    class Kill(train.Callback):
        def on_step(self, fit):
            if fit.step == 5:
                raise KilledError

    def fitted(**options):
        own = trainer(
            "adam", mesh=mesh_of(kind), rules=MODEL.layouts["both"], ema=0.9, precision="float16"
        )
        callbacks = [train.EarlyStopping(), *options.pop("callbacks", [])]
        return own.fit(
            own.init(0),
            data(64),
            epochs=3,
            batch_size=16,
            validation=data(20),
            progress=False,
            callbacks=callbacks,
            **options,
        )

    expected, history = fitted()

    def folder():
        return train.Checkpoints(so.checkpoint.Folder(tmp_path, asynchronous=False), steps=3)

    with pytest.raises(KilledError):
        fitted(checkpoints=folder(), callbacks=[Kill()])
    state, again = fitted(checkpoints=folder())
    assert again == history
    for name, one in expected.params.items():
        assert np.array_equal(state.params[name], one)
        assert state.params[name].sharding.is_equivalent_to(one.sharding, one.ndim)


PLACES = {
    "one device": {},
    "eight, both": ((4, 2), ("data", "model"), "both"),
    "eight, tensor": ((2, 4), ("data", "model"), "tensor"),
    "two, sharded": ((2,), ("data",), "sharded"),
}


def placed(place, kind):
    """A trainer on some of the devices."""
    if not PLACES[place]:
        return trainer()
    shape, axes, layout = PLACES[place]
    devices, kinds = jax.devices()[: np.prod(shape)], (KINDS[kind],) * len(axes)
    mesh = jax.make_mesh(shape, axes, axis_types=kinds, devices=devices)
    return trainer(mesh=mesh, rules=MODEL.layouts[layout])


@pytest.mark.parametrize(
    ("saved", "asked", "kind"),
    [
        ("one device", "eight, both", "explicit"),
        ("eight, both", "two, sharded", "auto"),
        ("eight, both", "eight, tensor", "explicit"),
        ("two, sharded", "one device", "explicit"),
    ],
)
def test_a_training_is_resumed_on_another_mesh(tmp_path, saved, asked, kind):
    def trained(own, state, batches):
        losses = []
        for batch in batches:
            state, metrics = own.step(state, batch)
            losses.append(float(metrics["loss"]))
        return state, losses

    batches = [data(16, seed) for seed in range(4)]
    alone = trainer()
    whole, expected = trained(alone, alone.init(0), batches)
    own = placed(saved, kind)
    state, first = trained(own, own.init(0), batches[:2])
    with so.checkpoint.Folder(tmp_path) as folder:
        folder.save(2, state)
    other = placed(asked, kind)
    like = other.init(1)
    state, last = trained(other, so.checkpoint.Folder(tmp_path).resume(like), batches[2:])
    np.testing.assert_allclose(first + last, expected, rtol=1e-5)
    close(state.params, whole.params, rtol=1e-3, atol=1e-5)
    for name, one in other.init(1).params.items():
        assert state.params[name].sharding.is_equivalent_to(one.sharding, one.ndim)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_under_another_mesh(kind):
    alone, split = trainer(), trainer(mesh=mesh_of(kind))
    states = [alone.init(0), split.init(0)]
    other = jax.make_mesh((4,), ("x",), devices=jax.devices()[:4])
    for count in range(3):
        states[0], values = alone.step(states[0], data(16, count))
        with jax.set_mesh(other if count else split.placement.mesh):
            states[1], found = split.step(states[1], data(16, count))
        close(found, values, rtol=1e-5)
