"""Training steps on sparse arrays by MXNet's interface, against the same on dense arrays."""

import dataclasses
import importlib.util
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from measure import Figure, brief, compare

import symop.interop.mxnet as mx

TITLE = "Sparse arrays of MXNet's interface"
EXAMPLES = Path(__file__).parents[1] / "examples" / "mxnet"
ROWS, COLUMNS = 32, 1_000_000
ENTRIES = {"0.1 % of the columns in a batch": 31, "0.1 % in each example": 1000}
"""The entries of each example: together, or each, examples name about 0.1 % of the columns."""
FACTORS = 16
RATE = 0.05
TARGET = 1 / 20
Step = Callable[[], Any]
SUCCESSIVE = 20
"""The number of steps of a run."""


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of sparse arrays."""
    repeats = 3 if quick else 10
    figures = [
        dataclasses.replace(one, name=f"{one.name}; {density}")
        for density, entries in ENTRIES.items()
        for measured in (array_code, linear, factorization_machine)
        for one in [measured(repeats, entries)]
    ]
    few, many = ENTRIES.values()
    remarks = [
        f"The steps take turns with {repeats + 8} batches, csr matrices of {ROWS} rows and "
        f"{COLUMNS:,} columns; the dense ones have one batch. "
        f"With {few} entries in each row, about 0.1 % of the rows of a table are updated; with "
        f"{many:,}, about 3 %.",
        f"A run is {SUCCESSIVE} steps in succession, as in training: a dense step, which goes "
        "through arrays of 256 MB, would leave nothing in the caches for the sparse one.",
    ]
    return figures, {"remarks": remarks}


def matrices(entries: int) -> Iterator[mx.nd.sparse.CSRNDArray]:
    """Different csr matrices without end."""
    draw = np.random.default_rng(0)
    starts = np.arange(0, ROWS * entries + 1, entries)
    while True:
        named = [np.sort(draw.choice(COLUMNS, entries, replace=False)) for _ in range(ROWS)]
        values = draw.normal(size=ROWS * entries).astype(np.float32)
        parts = values, np.concatenate(named), starts
        yield mx.nd.sparse.csr_matrix(parts, shape=(ROWS, COLUMNS))


def compared(name: str, ours: Step, theirs: Step, repeats: int) -> Figure:
    """The figure of a sparse step against a dense one, each of several in succession."""

    def several(step: Step) -> Step:
        return lambda: [step() for _ in range(SUCCESSIVE)]

    return compare(
        name, several(ours), several(theirs), repeats=repeats, target=TARGET, clock=brief,
        per=SUCCESSIVE,
    )  # fmt: skip


def prepared(
    repeats: int, entries: int
) -> tuple[list[mx.nd.sparse.CSRNDArray], mx.nd.NDArray, mx.nd.NDArray]:
    """A csr matrix for each step, the first of them as a dense array, and labels."""
    made = list(itertools.islice(matrices(entries), repeats + 8))
    label = mx.nd.array(np.arange(ROWS) % 2)
    return made, made[0].tostype("default"), label


def array_code(repeats: int, entries: int) -> Figure:
    """Array code: a linear classifier, its gradient, and a step of SGD."""
    batches, dense, label = prepared(repeats, entries)

    def stepping(data: Iterator[Any], stype: str) -> tuple[Step, mx.nd.NDArray]:
        weight = mx.nd.zeros((COLUMNS, 2))
        weight.attach_grad(stype=stype)
        update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=RATE))

        def step() -> Any:
            with mx.autograd.record():
                loss = mx.nd.softmax_cross_entropy(mx.nd.dot(next(data), weight), label)
            loss.backward()
            update(0, weight.grad, weight)
            return weight.wait_to_read()

        return step, weight

    ours, own = stepping(itertools.cycle(batches), "row_sparse")
    theirs, other = stepping(itertools.repeat(dense), "default")
    ours()
    theirs()
    np.testing.assert_allclose(own.asnumpy(), other.asnumpy(), atol=1e-5)
    return compared("array code: a linear classifier, SGD", ours, theirs, repeats)


def linear(repeats: int, entries: int) -> Figure:
    """The script ``sparse_linear.py``."""
    script = script_named("sparse_linear")
    net = script.linear_model(COLUMNS, 1.0)
    return modules("sparse_linear.py, AdaGrad", net, script.rows_of, "adagrad", (repeats, entries))


def factorization_machine(repeats: int, entries: int) -> Figure:
    """The script ``factorization_machine.py``."""
    script = script_named("factorization_machine")
    net = script.factorization_machine(FACTORS, COLUMNS)
    name = f"factorization_machine.py, {FACTORS} factors, Adam"
    return modules(name, net, script.rows_of, "adam", (repeats, entries))


def script_named(name: str) -> ModuleType:
    """A script of the examples as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def modules(
    name: str,
    net: mx.sym.Symbol,
    rows_of: Callable[[Any], Any],
    optimizer: str,
    sizes: tuple[int, int],
) -> Figure:
    """A step of a module with a store, as in the scripts, against one with dense arrays.

    ``sizes`` are the number of repeats, and of entries in each example.
    """
    repeats, entries = sizes
    batches, dense, label = prepared(repeats, entries)
    (label_name,) = (one for one in net.list_arguments() if one.endswith("label"))
    plain = densified(net)

    def stepping(net: mx.sym.Symbol, data: Iterator[Any], store: Any) -> tuple[Step, Any]:
        module = mx.mod.Module(net, data_names=["data"], label_names=[label_name])
        module.bind([("data", (ROWS, COLUMNS))], [(label_name, (ROWS,))])
        mx.random.seed(0)
        module.init_params()
        params = {"learning_rate": RATE, "rescale_grad": 1.0 / ROWS}
        module.init_optimizer(store, optimizer, params)

        def step() -> Any:
            batch = mx.io.DataBatch([next(data)], [label])
            module.prepare(batch, sparse_row_id_fn=None if store is None else rows_of)
            module.forward_backward(batch)
            module.update()
            return module.get_outputs()[-1].asnumpy()

        return step, module

    ours, own = stepping(net, itertools.cycle(batches), mx.kv.create("local"))
    theirs, other = stepping(plain, itertools.repeat(dense), None)
    ours()
    theirs()
    found, wanted = (one.get_params()[0] for one in (own, other))
    for key, one in wanted.items():
        np.testing.assert_allclose(found[key].asnumpy(), one.asnumpy(), atol=1e-4)
    return compared(name, ours, theirs, repeats)


def densified(net: mx.sym.Symbol) -> mx.sym.Symbol:
    """The symbol without storage types."""
    told = json.loads(net.tojson())
    for node in told["nodes"]:
        node.get("attrs", {}).pop("__storage_type__", None)
    return mx.sym.load_json(json.dumps(told))
