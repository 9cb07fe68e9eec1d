"""Updates by gradients that hold rows of a table alone."""

import re

import numpy as np
import pytest

from symop.interop.paddle import fluid

layers, optimizer = fluid.layers, fluid.optimizer
BATCHES = ([3, 1, 3], [1, 0, 0], [3, 3, 0])


def trained(update, height, batches=BATCHES):
    """The executor, its scope and its table after steps on the cubes of a table's entries."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        ids = fluid.data("ids", [None, 1], "int64")
        x = layers.embedding(ids, [height, 2], is_sparse=True, param_attr="table")
        update.minimize(layers.reduce_sum(layers.square(x) * x))
        executor = fluid.Executor()
        executor.run(startup)
        scope["table"] = np.arange(1, 2 * height + 1, dtype="float32").reshape(height, 2) / 8
        for one in batches:
            executor.run(main, {"ids": np.array(one)[:, None]})
    return executor, scope, np.asarray(scope["table"])


@pytest.mark.parametrize(
    ("update", "rows"),
    [
        (
            optimizer.Adagrad(0.25),
            {0: [-0.236796, 1e-6], 1: [0.097393, 0.189366], 3: [0.511382, 0.627435]},
        ),
        (
            optimizer.Adam(0.125, lazy_mode=True),
            {0: [-0.024852, 0.09003], 1: [0.180084, 0.302934], 3: [0.685537, 0.810318]},
        ),
        (
            optimizer.Adam(0.125),
            {0: [-0.024852, 0.09003], 1: [0.096614, 0.217703], 3: [0.620926, 0.745207]},
        ),
    ],
    ids=["adagrad", "lazy adam", "adam"],
)
def test_tables_equal_those_of_paddle(update, rows):
    expected = np.arange(1, 11, dtype="float32").reshape(5, 2) / 8
    for row, values in rows.items():
        expected[row] = values
    _, _, table = trained(update, 5)
    np.testing.assert_allclose(table, expected, rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize("power", [-0.5, -0.4])
def test_ftrl_leaves_other_rows(power):
    _, scope, table = trained(optimizer.Ftrl(0.25, l1=0.5, l2=0.1, lr_power=power), 5)
    param = np.arange(1, 11).reshape(5, 2) / 8
    squared, linear = np.zeros((5, 2)), np.zeros((5, 2))
    for ids in BATCHES:
        slope = np.zeros((5, 2))
        np.add.at(slope, ids, 3 * param[ids] ** 2)
        for row in set(ids):
            p, g, old = param[row], slope[row], squared[row]
            now = old + g * g
            linear[row] += g - (now**-power - old**-power) / 0.25 * p
            squared[row] = now
            shrunk = np.clip(linear[row], -0.5, 0.5) - linear[row]
            param[row] = shrunk / (now**-power / 0.25 + 2 * 0.1)
    np.testing.assert_allclose(table, param, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(scope["table_squared_0"], squared, rtol=1e-4)
    np.testing.assert_allclose(scope["table_linear_0"], linear, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("update", "is_by_rows"),
    [
        (optimizer.SGD(0.1), True),
        (optimizer.Adagrad(0.1), True),
        (optimizer.Ftrl(0.1), True),
        (optimizer.Adam(0.1, lazy_mode=True), True),
        (optimizer.Adam(0.1), False),
    ],
    ids=["sgd", "adagrad", "ftrl", "lazy adam", "adam"],
)
def test_the_cost_is_that_of_the_rows(update, is_by_rows):
    executor, _, _ = trained(update, 100_000)
    (specialized,) = [one for one in executor._compiled.values() if one._kept]
    (compiled,) = specialized._compiled.values()
    text = compiled.program._last[2].lower().compile().as_text()
    whole = re.findall(r"%(\S+) = f32\[100000,2\]", text[text.index("\nENTRY") :])
    # Tables are read, and rows are put into them in place: by a scatter, or in a loop.
    by_rows = ("given", "wrapped_scatter", "get-tuple-element")
    assert all(one.startswith(by_rows) for one in whole) == is_by_rows
