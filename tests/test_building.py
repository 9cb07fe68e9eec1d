"""Building is a function of the call alone: whatever was built before, whatever lives beside."""

import gc

import jax
import numpy as np
import pytest
from fuzz_graphs import by_call, candidates, is_floating

import symop as so
from registry.errors import SymopError

LEVELS = ("value", "grad", "jvp", "grad of grad", "jvp of grad")
CALLS = list({operator.name: (operator, case) for operator, case in candidates()}.values())


def variable(name, sample):
    value = np.asarray(sample)
    made = so.var(name, value.shape, value.dtype)
    return made, (so.tanh(made) if is_floating(value) else made)


def inputs_of(operator, case):
    """A variable for each value in a slot, named by its place, and the value of the slot."""
    variables, values = [], {}
    for slot in operator.slots:
        if case.values.get(slot.name) is None:
            continue
        given = case.draw(slot.name, np.dtype("float32"))
        rows = [
            variable(f"{slot.name}{j}", one)
            for j, one in enumerate(given if isinstance(given, list) else [given])
        ]
        variables += [one for one, _ in rows]
        inner = [one for _, one in rows]
        values[slot.name] = inner if isinstance(given, list) else inner[0]
    return variables, values


def built(operator, case, level):
    """The graph of one level; None where there is none."""
    variables, values = inputs_of(operator, case)
    attributes = {k: v for k, v in case.values.items() if k not in operator.slot_index}
    try:
        results = [one for one in by_call(operator, values, attributes) if is_floating(one)]
        return derived(results, [one for one in variables if is_floating(one)], level)
    except (SymopError, IndexError):
        return None  # undefined, not linear, or nothing to differentiate


def derived(ys, xs, level):
    along = [so.var(f"along_{x.name}", x.shape, x.dtype) for x in xs]
    if level == "value":
        return so.Group(ys)
    if level == "jvp":
        return so.Group(so.jvp(ys, xs, along))
    first = so.grad(ys, xs, [so.var(f"head{i}", y.shape, y.dtype) for i, y in enumerate(ys)])
    if level == "grad":
        return so.Group(first)
    if level == "grad of grad":
        return so.Group(so.grad(first, xs, along, unreachable="zero"))
    return so.Group(so.jvp(first, xs, along, unreachable="zero"))


def texts(calls, levels, alive):
    """JSON and text of all graphs; they live on in ``alive``."""
    found = {}
    for operator, case in calls:
        for level in levels:
            symbol = built(operator, case, level)
            if symbol is not None:
                alive.append(symbol)
                found[operator.name, level] = symbol.tojson(), str(symbol)
    return found


@pytest.mark.parametrize("part", range(4))
@pytest.mark.sampled(4)
def test_what_was_built_before_does_not_matter(part):
    calls = CALLS[part::4]
    alive = []
    first = texts(calls, LEVELS, alive)
    assert len(first) > len(calls)
    alive.clear()
    gc.collect()
    second = texts(calls[::-1], LEVELS[::-1], alive)
    assert second.keys() == first.keys()
    assert [key for key, one in first.items() if second[key] != one] == []
    # Nor does what lives beside when a file is loaded: here all that the other files hold.
    for json, text in first.values():
        loaded = so.load_json(json)
        assert (loaded.tojson(), str(loaded)) == (json, text)
    alive.clear()
    gc.collect()
    for json, text in first.values():
        loaded = so.load_json(json)
        assert (loaded.tojson(), str(loaded)) == (json, text)


def test_a_value_that_a_user_made_does_not_matter():
    """Neither one that a derivative needs, nor one in another order, nor one that is looked at."""
    x, y, v = (so.var(name, shape=(2, 2)) for name in "xyv")

    def graphs():
        product = so.matmul(so.swapaxes(so.tanh(x), axis1=0, axis2=1), so.sin(x) * y)
        gradient = so.grad(product, x, v)
        return [gradient, so.grad(so.sin(y) * so.negative(gradient), x, v), y + x, y * so.cos(x)]

    alone = [str(one) for one in graphs()]
    gc.collect()
    beside = [so.cos(x), x + y, so.cos(x) * y, so.swapaxes(so.tanh(x), axis1=0, axis2=1)]
    beside += [so.swapaxes(beside[-1], axis1=0, axis2=1), so.negative(so.cos(x)), so.cos(x) * v]
    beside.append(graphs()[0].get_internals())
    assert [str(one) for one in graphs()] == alone
    assert len({str(one) for one in beside}) > 1


def test_a_body_does_not_take_from_outside_what_it_builds_itself():
    x, rows = so.var("x", shape=(2,)), so.var("rows", shape=(5, 2))

    def graph():
        return so.scan(lambda h, one: (so.tanh(h * so.sin(x) + one), h), x, rows)[0]

    alone = str(graph())
    outside = so.sin(x)
    assert str(graph()) == alone
    held = so.scan(lambda h, one: (so.tanh(h * outside + one), h), x, rows)[0]
    assert str(held) != alone
    given = {"x": np.ones(2, np.float32), "rows": np.ones((5, 2), np.float32)}
    assert np.array_equal(held.eval(**given), graph().eval(**given))


def test_a_derivative_by_a_held_derivative_finds_it():
    """Nothing is looked through that a user's call reads, or that is asked by."""
    x = so.var("x", shape=(3,))
    held = so.grad(so.sum(so.cos(so.cos(x))), x)
    again = so.grad(so.sum(held * held * x), x)
    found = so.grad(so.sum(again), held)
    at = {"x": np.asarray([0.3, 0.7, 1.1], np.float32)}

    def by_jax(slope, x):
        """The second gradient as a function of the first one, through what reads it."""
        second = jax.vmap(jax.grad(jax.grad(lambda t: jax.numpy.cos(jax.numpy.cos(t)))))(x)
        return (slope * slope + 2.0 * slope * second * x).sum()

    slope = held.eval(**at)
    expected = jax.grad(by_jax)(jax.numpy.asarray(slope), at["x"])
    assert found.list_arguments() == ["x"]
    np.testing.assert_allclose(found.eval(**at), expected, rtol=1e-4)
