"""The training loop: data of all kinds, validation, callbacks, logs, checkpoints and resuming."""

import itertools
import json
import os
import signal
import sys
import types
from typing import ClassVar

import jax
import numpy as np
import optax
import pytest

import symop as so
from registry.errors import ArgumentError, FeedError, MissingExtraError
from symop import train
from symop.training.feeding import Feeding, Shuffled
from symop.training.streams import prefetched


def network():
    x, y = so.var("x", shape=(8, 3)), so.var("y", shape=(8,))
    hidden = so.dropout(so.tanh(so.fully_connected(x, units=8, name="a")), rate=0.2)
    norm = so.batch_norm(hidden, name="norm")
    return so.mean(
        so.square(so.reshape(so.fully_connected(norm, units=1, name="b"), shape=(-1,)) - y)
    )


def data(count=40, seed=0):
    x = np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)
    return {"x": x, "y": x @ np.array([1.0, -2.0, 0.5], np.float32)}


def trainer(optimizer=None, **options):
    return train.Trainer(network(), optimizer or optax.adam(0.02), inputs=["x", "y"], **options)


def fitted(own=None, given=None, **options):
    """The final state, and the history, of a training of four epochs of five steps."""
    own = own or trainer()
    options = {"epochs": 4, "progress": False, **options}
    if given is None:
        options["batch_size"] = 8
    state, history = own.fit(own.init(0), data() if given is None else given, **options)
    return state, history


def same(state, other):
    """Whether all arrays of two states are equal to the bit."""
    pairs = zip(jax.tree.leaves(state), jax.tree.leaves(other), strict=True)
    return all(
        np.array_equal(*(jax.random.key_data(x) if "key" in str(x.dtype) else x for x in pair))
        for pair in pairs
    )


# Data --------------------------------------------------------------------------------------------


def batches(epoch=0):
    """The batches that ``fit`` takes from ``data`` in an epoch."""
    generator = np.random.default_rng(0)
    for _ in range(epoch + 1):
        order = generator.permutation(40)
    for i in range(0, 40, 8):
        yield {name: one[order[i : i + 8]] for name, one in data().items()}


class Loader:
    """A loader as those of PyTorch: an iterable of tuples, which begins a new epoch each time."""

    def __init__(self):
        self.epoch = -1

    def __iter__(self):
        self.epoch += 1
        return ((one["x"], one["y"]) for one in batches(self.epoch))


def test_data_of_all_kinds_train_alike():
    state, history = fitted()
    endless = itertools.chain.from_iterable(map(batches, itertools.count()))
    for given, options in (
        (batches, {}),
        (lambda epoch: list(batches(epoch)), {}),
        (Loader(), {}),
        (Loader().__iter__, {}),
        (endless, {"steps": 5}),
    ):
        other, found = fitted(given=given, **options)
        assert same(state, other)
        assert found == history


def test_batches_of_grain():
    grain = pytest.importorskip("grain")
    examples = [{name: one[i] for name, one in data().items()} for i in range(40)]
    dataset = grain.MapDataset.source(examples).shuffle(seed=1).batch(8)
    state, history = fitted(given=[dict(one) for one in dataset])
    for given in (dataset, dataset.to_iter_dataset()):
        other, found = fitted(given=given)
        assert same(state, other)
        assert found == history
    own = trainer()
    means = own.evaluate(state, dataset)
    assert means == pytest.approx(own.evaluate(state, data()))


def test_what_is_not_data():
    for given, error, message in (
        (3, ArgumentError, "data must be a dict of arrays, an iterable"),
        ([data()["x"]], FeedError, "a batch must be a dict of, or a tuple of 2 arrays: x, y"),
        ([], ArgumentError, "an epoch must have a batch"),
        (iter(list(batches())), ArgumentError, "need steps="),
    ):
        with pytest.raises(error, match=message):
            fitted(given=given)
    with pytest.raises(ArgumentError, match="batch_size must be given"):
        fitted(given=data())


def test_batches_are_copied_in_advance(monkeypatch):
    device = types.SimpleNamespace(platform="gpu")
    monkeypatch.setattr(jax, "devices", lambda: [device])
    taken, buffer = [], np.zeros(2, np.float32)

    def loader():
        for i in range(5):
            taken.append(i)
            buffer[:] = i  # a loader may use its memory again
            yield {"x": buffer}

    seen = [(len(taken), float(one["x"][0])) for one in prefetched(loader(), 2, None)]
    assert seen == [(3, 0.0), (4, 1.0), (5, 2.0), (5, 3.0), (5, 4.0)]


def test_an_epoch_may_be_shorter():
    state, history = fitted(steps=2)
    assert (int(state.step), len(history)) == (8, 4)


# Validation, callbacks ---------------------------------------------------------------------------


def test_validation_is_an_evaluation_after_each_epoch():
    held, own = data(13, seed=1), trainer(ema=0.9)
    expected = []

    def evaluate(epoch, state, metrics):
        expected.append(own.evaluate(state, held, averaged=True)["loss"])
        assert metrics["val_loss"] == pytest.approx(expected[-1], rel=1e-6)
        return {"twice": 2 * metrics["loss"]}

    _, history = fitted(own, validation=held, averaged=True, after_epoch=evaluate)
    np.testing.assert_allclose(history.curve("val_loss"), expected, rtol=1e-6)
    assert history.names == ["loss", "val_loss", "twice"]
    assert expected[-1] < expected[0]


def test_callbacks_see_the_training():
    events = []

    class Own:
        def on_start(self, fit):
            events.append(("start", fit.epoch, fit.step, fit.steps))

        def on_step(self, fit):
            events.append(("step", fit.epoch, fit.position, fit.step))
            assert float(fit.values["loss"]) > 0
            assert int(fit.state.step) == fit.step

        def on_end(self, fit):
            events.append(("end", fit.epoch, fit.step))

    fitted(
        callbacks=[Own(), lambda fit: events.append(("epoch", fit.epoch, len(fit.history)))],
        epochs=2,
    )
    assert [one for one in events if one[0] != "step"] == [
        ("start", 0, 0, 5),
        ("epoch", 1, 1),
        ("epoch", 2, 2),
        ("end", 2, 10),
    ]
    assert [one for one in events if one[0] == "step"] == [
        ("step", i // 5, i % 5 + 1, i + 1) for i in range(10)
    ]


def test_a_callback_may_stop_in_the_middle_of_an_epoch():
    class Stop(train.Callback):
        def on_step(self, fit):
            if fit.step == 7:
                fit.stop("enough")

    state, history = fitted(callbacks=[Stop()])
    assert (int(state.step), len(history)) == (7, 2)
    with pytest.raises(ArgumentError, match="a callback must be a function, or an object with"):
        fitted(callbacks=[3])


def test_early_stopping_goes_back_to_the_best_state():
    scripted, states = iter([3.0, 1.0, 2.0, 1.5, 0.5]), []

    def after(epoch, state, metrics):
        states.append(jax.tree.map(np.asarray, (state.params, state.states)))
        return {"score": next(scripted)}

    stopping = train.EarlyStopping("score", patience=2)
    state, history = fitted(epochs=9, after_epoch=after, callbacks=[stopping])
    assert history.curve("score") == [3.0, 1.0, 2.0, 1.5]
    assert (stopping.best, stopping.epoch, int(state.step)) == (1.0, 2, 10)
    assert same((state.params, state.states), states[1])
    own = trainer()
    own.step(state, {name: one[:8] for name, one in data().items()})


def test_early_stopping_without_improvement_and_the_largest_value():
    values = iter([1.0, 1.05, 1.3, 1.35, 1.0])
    stopping = train.EarlyStopping("score", patience=1, mode="max", least=0.1, restore_best=False)
    state, history = fitted(
        epochs=5, after_epoch=lambda *_: {"score": next(values)}, callbacks=[stopping]
    )
    assert (len(history), stopping.best, int(state.step)) == (2, 1.0, 10)
    with pytest.raises(ArgumentError, match="one of loss, got 'val_loss'"):
        fitted(callbacks=[train.EarlyStopping()])
    with pytest.raises(ArgumentError, match="mode must be"):
        train.EarlyStopping(mode="max_")
    with pytest.raises(ArgumentError, match="patience must be"):
        train.EarlyStopping(patience=0)


def test_the_learning_rate_is_in_the_history():
    schedule = optax.linear_schedule(0.1, 0.0, 20)
    _, history = fitted(trainer(train.optimizer("sgd", schedule, clip=1.0)))
    expected = [float(schedule(5 * epoch - 1)) for epoch in (1, 2, 3, 4)]
    np.testing.assert_allclose(history.curve("learning_rate"), expected, rtol=1e-5)


def test_the_history_is_a_table_and_a_plot(tmp_path):
    history = train.History([{"loss": 1.0}, {"loss": 0.5, "val_loss": 0.25, "accuracy": 1.0}])
    assert str(history).splitlines()[0].split() == ["epoch", "loss", "val_loss", "accuracy"]
    figure = history.plot(tmp_path / "curves.png")
    lines = {line.get_label(): line for axes in figure.axes for line in axes.get_lines()}
    assert lines["val_loss"].get_color() == lines["loss"].get_color()
    assert lines["val_loss"].get_linestyle() == "--"
    with pytest.raises(ArgumentError, match=r"got 'vall'; did you mean 'val_loss'"):
        history.curve("vall")


# Logs --------------------------------------------------------------------------------------------


def test_lines_of_json(tmp_path):
    path = tmp_path / "logs" / "log.jsonl"
    log = train.JsonLines(path, every=4)
    own = trainer(train.optimizer("sgd", 0.1))
    _, history = fitted(
        own, epochs=2, callbacks=[log], after_epoch=lambda *_: {"odd": float("nan")}
    )
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(one["event"], one["epoch"], one["step"]) for one in lines] == [
        ("step", 0, 4),
        ("epoch", 1, 5),
        ("step", 1, 8),
        ("epoch", 2, 10),
    ]
    assert lines[1]["loss"] == history[0]["loss"]
    assert lines[1]["odd"] is None
    assert lines[0]["learning_rate"] == pytest.approx(0.1)
    assert lines[3]["seconds"] >= lines[0]["seconds"] >= 0
    fitted(own, epochs=1, callbacks=[log])
    assert len(path.read_text().splitlines()) == 2


def test_a_later_training_continues_a_log_that_may_be_missing_or_cut_off(tmp_path):
    path, own = tmp_path / "log.jsonl", trainer(train.optimizer("sgd", 0.1))
    state, _ = fitted(own, epochs=1)
    how = {"epochs": 1, "batch_size": 8, "progress": False, "callbacks": [train.JsonLines(path)]}
    state, _ = own.fit(state, data(), **how)
    assert [json.loads(one)["step"] for one in path.read_text().splitlines()] == [10]
    with path.open("a") as file:
        file.write('{"event": "step", "st')  # by a process that was killed
    own.fit(state, data(), **how)
    assert [json.loads(one)["step"] for one in path.read_text().splitlines()] == [10, 15]


def test_the_orders_of_epochs_do_not_depend_on_those_that_were_asked_for():
    plan = Feeding(None, {"x": np.arange(6)}, 6, 2, 3)
    orders = Shuffled(plan, 4)

    def order(epoch):
        return np.concatenate([one["x"] for one in orders.batches(epoch)]).tolist()

    generator = np.random.default_rng(4)
    expected = [generator.permutation(6).tolist() for _ in range(4)]
    assert [order(epoch) for epoch in (0, 1, 3, 3, 2, 0)] == [
        expected[epoch] for epoch in (0, 1, 3, 3, 2, 0)
    ]


class Writer:
    """What TensorBoard's writers have in common."""

    written: ClassVar = []

    def __init__(self, folder):
        self.written.clear()
        self.folder = folder

    def add_scalar(self, name, value, step):
        self.written.append((name, value, step))

    def flush(self):
        pass

    def close(self):
        self.written.append("closed")


@pytest.mark.parametrize("package", ["tensorboardX", "torch.utils.tensorboard"])
def test_tensorboard(monkeypatch, package):
    for name in ("tensorboardX", "torch", "torch.utils", "torch.utils.tensorboard", "tensorflow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match="tensorboardX must be installed"):
        train.TensorBoard("runs")
    for name in itertools.accumulate(package.split("."), lambda a, b: f"{a}.{b}"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules[package].SummaryWriter = Writer
    _, history = fitted(callbacks=[train.TensorBoard("runs", every=5)], epochs=1)
    name, value, step = Writer.written[1]
    assert (name, step, Writer.written[-1]) == ("epoch/loss", 5, "closed")
    assert value == history[0]["loss"]
    assert Writer.written[0][0] == "step/loss"


# Checkpoints -------------------------------------------------------------------------------------


class KilledError(Exception):
    pass


class Kill(train.Callback):
    """Ends training as a crash would, at a step."""

    def __init__(self, step):
        self.step = step

    def on_step(self, fit):
        if fit.step == self.step:
            raise KilledError


def checkpoint(path, **options):
    return train.Checkpoints(so.checkpoint.Folder(path, asynchronous=False), **options)


def everything(path, own, **options):
    """Options of a training that uses all that a checkpoint must hold."""
    scores = {1: 3.0, 2: 1.0, 3: 2.0, 4: 1.5}
    return {
        "validation": data(12, seed=1),
        "after_epoch": lambda epoch, *_: {"score": scores[epoch + 1]},
        "callbacks": [train.EarlyStopping("score"), train.JsonLines(path / "log.jsonl")],
        **options,
    }


@pytest.mark.parametrize(
    ("killed", "how"),
    [
        (13, {"steps": 4}),
        (3, {"steps": 2, "epochs": None}),
        (16, {"steps": 5}),
        pytest.param(17, {}, marks=pytest.mark.thorough),
        pytest.param(20, {"steps": 1}, marks=pytest.mark.thorough),
    ],
)
def test_a_killed_training_goes_on_as_if_nothing_had_happened(tmp_path, killed, how):
    own = trainer(train.optimizer("adamw", 0.02), ema=0.9, accumulate=2)
    expected, history = fitted(own, **everything(tmp_path, own))
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    options = everything(tmp_path, own)
    with pytest.raises(KilledError):
        fitted(
            own,
            **{**options, "callbacks": [*options["callbacks"], Kill(killed)]},
            checkpoints=checkpoint(tmp_path / "kept", **how),
        )
    options = everything(tmp_path, own)
    own = trainer(train.optimizer("adamw", 0.02), ema=0.9, accumulate=2)
    state, again = fitted(
        own,
        **{**options, "callbacks": [*options["callbacks"], Kill(0)]},
        checkpoints=checkpoint(tmp_path / "kept", **how),
    )
    assert same(state, expected)
    assert again == history
    assert options["callbacks"][0].epoch == 2
    then = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [_without_time(one) for one in then] == [_without_time(one) for one in lines]


def _without_time(line):
    record = json.loads(line)
    del record["seconds"]
    return record


def test_a_stream_is_resumed_in_the_middle_of_an_epoch(tmp_path):
    expected, history = fitted()
    for i, make in enumerate(
        (lambda: batches, lambda: itertools.chain.from_iterable(map(batches, range(9))))
    ):
        options = {"checkpoints": checkpoint(tmp_path / str(i), steps=3), "steps": 5}
        with pytest.raises(KilledError):
            fitted(given=make(), callbacks=[Kill(8)], **options)
        state, again = fitted(given=make(), callbacks=[Kill(0)], **options)
        assert same(state, expected)
        assert again == history


def test_a_folder_alone_saves_epochs_and_keeps_the_best(tmp_path):
    values = iter([2.0, 1.0, 3.0, 4.0])
    folder = so.checkpoint.Folder(tmp_path, keep=1, best="score")
    fitted(checkpoints=folder, after_epoch=lambda *_: {"score": next(values)})
    assert (folder.steps(), folder.best) == ([10, 20], 10)
    assert folder.metrics(10)["score"] == 1.0
    for given, message in (
        ("path", "must be a so.checkpoint.Folder"),
        (train.Checkpoints(folder, 0), "epochs"),
    ):
        with pytest.raises(ArgumentError, match=message):
            fitted(checkpoints=given)


def test_a_finished_training_is_not_repeated(tmp_path):
    expected, history = fitted(checkpoints=checkpoint(tmp_path))
    state, again = fitted(checkpoints=checkpoint(tmp_path), callbacks=[])
    assert same(state, expected)
    assert again == history
    longer, more = fitted(checkpoints=checkpoint(tmp_path), epochs=6)
    assert more[:4] == history
    assert same(longer, fitted(epochs=6)[0])


def test_an_interrupt_leaves_the_state_of_the_last_step():
    own = trainer()
    state = own.init(0)

    def interrupt(fit):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        own.fit(state, data(), epochs=4, batch_size=8, progress=False, callbacks=[interrupt])
    assert int(state.step) == 5
    expected, _ = fitted(epochs=1)
    assert same(state, expected)


def test_a_preempted_training_saves_and_goes_on(tmp_path):
    expected, history = fitted()

    def fit(**options):
        folder = so.checkpoint.Folder(tmp_path)
        with folder, so.checkpoint.on_preemption(folder):
            return fitted(checkpoints=folder, **options)

    class Terminate(train.Callback):
        def on_step(self, fit):
            if fit.step == 8:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit) as end:
        fit(callbacks=[Terminate()])
    assert end.value.code == so.checkpoint.EXIT_CODE
    assert so.checkpoint.Folder(tmp_path).steps() == [5, 8]
    state, again = fit(callbacks=[lambda fit: None])
    assert same(state, expected)
    assert again == history
