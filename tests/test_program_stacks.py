"""Programs of like layers keep the parameters of all layers in one array, under their own names."""

import gc
import re

import jax
import numpy as np
import pytest

import symop as so
from registry.errors import FeedError

LAYERS, WIDTH, BATCH = 16, 4, 3
OPTIMIZERS = {"sgd": so.optim.SGD, "momentum": so.optim.Momentum, "adam": so.optim.Adam}


def trained(optimizer="adam", *, layers=LAYERS, penalty=None):
    """A program that trains a residual net, its loss, and what is fed."""
    program = so.Program()
    x, y = program.data("x", (BATCH, WIDTH)), program.data("y", (BATCH, WIDTH))
    h = x
    for i in range(layers):
        w = program.parameter(f"w{i}", (WIDTH, WIDTH), initial="normal(0.3)")
        b = program.parameter(f"b{i}", (WIDTH,), initial="0.1")
        h = h + so.tanh(h @ w + b)
    loss = so.mean(so.square(h - y))
    if penalty is not None:
        loss = loss + so.sum(so.square(program.var(penalty)))
    OPTIMIZERS[optimizer](0.01).minimize(loss)
    program.initialize(0)
    draw = np.random.default_rng(0)
    shape = (BATCH, WIDTH)
    feed = {name: draw.normal(size=shape).astype(np.float32) for name in "xy"}
    return program, loss, feed


def after(steps, *, rolling=True, change=None, **how):
    """All values after some steps, and the losses; ``change`` is called before the third."""
    with so.rolling(rolling):
        program, loss, feed = trained(**how)
        losses = []
        for i in range(steps):
            if i == 2 and change is not None:
                change(program.scope)
            losses.append(float(program.run(feed, loss)))
    return {"losses": losses, **program.values()}


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, other in expected.items():
        np.testing.assert_allclose(found[name], other, rtol=2e-4, atol=2e-6, err_msg=name)


def arrays_in(program):
    """How many arrays a run takes and leaves."""
    (runner,) = program._runners.values()
    return len(runner.kept)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.sampled(3)
def test_steps_are_those_of_the_unrolled_program(optimizer):
    same(after(5, optimizer=optimizer), after(5, optimizer=optimizer, rolling=False))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_what_a_run_takes_does_not_grow_with_depth(optimizer):
    counts = []
    for layers in (LAYERS, 2 * LAYERS):
        program, loss, feed = trained(optimizer, layers=layers)
        program.run(feed, loss)
        counts.append(arrays_in(program))
    assert counts[0] == counts[1] < LAYERS


def test_parameters_keep_their_names():
    program, loss, feed = trained("sgd")
    names = [one.name for one in program.variables if one.persistable]
    program.run(feed, loss)
    assert sorted(program.scope) == sorted(names)
    assert len(program.scope) == len(names)
    assert all(name in program.scope for name in names)
    assert "w0..w15" not in program.scope
    assert program.scope["w5"].shape == (WIDTH, WIDTH)
    assert dict(program.scope).keys() == set(names)


def nudge(scope):
    scope["w5"] = np.full((WIDTH, WIDTH), 0.25, np.float32)


def look(scope):
    assert np.isfinite(scope["w5"]).all()


def forget(scope):
    kept = np.asarray(scope["b7"])
    del scope["b7"]
    assert "b7" not in scope
    scope["b7"] = kept


@pytest.mark.parametrize("change", [nudge, look, forget])
@pytest.mark.sampled(3)
def test_values_may_be_looked_at_and_replaced_between_runs(change):
    same(after(5, change=change), after(5, change=change, rolling=False))


def test_what_was_looked_at_survives_the_next_run():
    program, loss, feed = trained("sgd")
    program.run(feed, loss)
    before = program.scope["w5"]
    kept = np.array(before)
    program.run(feed, loss)
    np.testing.assert_array_equal(before, kept)
    assert np.abs(np.asarray(program.scope["w5"]) - kept).max() > 0


def test_a_parameter_that_is_deleted_gets_its_initial_value():
    program, loss, feed = trained("sgd")
    program.run(feed, loss)
    del program.scope["b7"]
    program.run(feed, [])
    with so.rolling(False):
        other, loss, feed = trained("sgd")
        other.run(feed, loss)
        del other.scope["b7"]
        other.run(feed, [])
    same(program.values(), other.values())


def test_a_clone_that_only_evaluates_shares_the_values():
    program, loss, feed = trained("momentum")
    evaluated = program.clone(updates=False)
    expected, found = [], []
    for _ in range(3):
        expected.append(float(evaluated.run(feed, loss.name)))
        found.append(float(program.run(feed, loss)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert sorted(evaluated.scope) == sorted(program.scope)


@pytest.mark.parametrize("name", ["w0", "w7", "w15"])
@pytest.mark.sampled(3)
def test_a_parameter_that_something_else_reads_stays_right(name):
    same(after(4, penalty=name), after(4, penalty=name, rolling=False))


def test_updated_parameters_can_be_fetched():
    program, loss, feed = trained("sgd")
    with so.rolling(False):
        other, other_loss, _ = trained("sgd")
        for _ in range(2):
            expected = other.run(feed, [other_loss, "w3", "b3"])
    for _ in range(2):
        found = program.run(feed, [loss, "w3", "b3"])
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=2e-4, atol=2e-6)
    np.testing.assert_array_equal(found[1], program.scope["w3"])


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(np.zeros((WIDTH, 2 * WIDTH), np.float32), id="shape"),
        pytest.param(np.zeros((WIDTH, WIDTH), np.float16), id="dtype"),
        pytest.param("w", id="no array"),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_own_name(value):
    program, loss, feed = trained("sgd")
    program.run(feed, loss)
    program.scope["w5"] = value
    with pytest.raises(FeedError, match=r"w5: an array of type float32\[4,4\] must be given"):
        program.run(feed, loss)
    program.scope["w5"] = np.zeros((WIDTH, WIDTH), np.float32)
    assert np.isfinite(float(program.run(feed, loss)))


def test_a_step_puts_no_parameters_together():
    program, loss, feed = trained("sgd", layers=24)
    program.run(feed, loss)
    (runner,) = program._runners.values()
    written, (*rest,) = runner._kept_values(program)
    text = str(jax.make_jaxpr(runner._run)(written, *feed.values(), *rest))
    assert "f32[23,4,4]" in text
    assert not re.search(r"f32\[2[34],4(,4)?\] = concatenate", text)


def test_a_program_is_written_alike_whatever_other_programs_there_are():
    first = str(trained("sgd", layers=6)[0])
    gc.collect()
    others = [trained("sgd", layers=count) for count in (3, 5)]
    assert str(trained("sgd", layers=6)[0]) == first
    del others
