"""Samples of the fused recurrent layers."""

import itertools

import numpy as np
from scipy.special import expit

from mxnet_samples.sample import Sample

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
STEPS, EXAMPLES, FEATURES, UNITS = 3, 2, 2, 2


def weight_shapes(mode, layers, directions, projection):
    """Shapes of the matrices of each layer and direction."""
    rows, width = GATES[mode] * UNITS, projection or UNITS
    found = []
    for layer in range(layers):
        one = [(rows, width * directions if layer else FEATURES), (rows, width)]
        found += [[*one, *([(projection, UNITS)] if projection else [])]] * directions
    return found


def parts(vector, mode, shapes):
    """Matrices and biases of each layer and direction: all matrices stand before all biases."""
    rows, place = GATES[mode] * UNITS, 0

    def take(shape):
        nonlocal place
        place += int(np.prod(shape))
        return vector[place - int(np.prod(shape)) : place].reshape(shape)

    matrices = [[take(shape) for shape in one] for one in shapes]
    biases = [[take((rows,)), take((rows,))] for _ in shapes]
    assert place == len(vector)
    return zip(matrices, biases, strict=True)


def step(mode, x, h, c, matrices, biases):
    """The next states."""
    inner, outer = matrices[0] @ x + biases[0], matrices[1] @ h + biases[1]
    if mode == "lstm":
        enter, forget, new, show = np.split(inner + outer, 4)
        c = expit(forget) * c + expit(enter) * np.tanh(new)
        h = expit(show) * np.tanh(c)
        return (matrices[2] @ h if len(matrices) > 2 else h), c
    if mode == "gru":
        (reset, update, new), (reset2, update2, new2) = np.split(inner, 3), np.split(outer, 3)
        kept = expit(update + update2)
        return (1 - kept) * np.tanh(new + expit(reset + reset2) * new2) + kept * h, c
    total = inner + outer
    return (np.tanh(total) if mode == "rnn_tanh" else np.maximum(total, 0)), c


def rnn(mode, num_layers=1, bidirectional=False, projection_size=None, **told):
    """Layer after layer, direction after direction, example after example, step after step."""
    directions = 2 if bidirectional else 1
    shapes = weight_shapes(mode, num_layers, directions, projection_size)

    def reference(data, parameters, state, *more):
        lengths = more[-1].astype(int) if told.get("use_sequence_length") else [STEPS] * EXAMPLES
        cells = more[0] if mode == "lstm" else np.zeros_like(state)
        weights = list(parts(parameters, mode, shapes))
        last, last_cells = np.zeros_like(state), np.zeros_like(cells)
        for layer in range(num_layers):
            rows = []
            for way in range(directions):
                at = layer * directions + way
                made = np.zeros((STEPS, EXAMPLES, state.shape[2]))
                for i in range(EXAMPLES):
                    h, c = state[at, i], cells[at, i]
                    for t in range(lengths[i])[:: -1 if way else 1]:
                        h, c = step(mode, data[t, i], h, c, *weights[at])
                        made[t, i] = h
                    last[at, i], last_cells[at, i] = h, c
                rows.append(made)
            data = np.concatenate(rows, -1)
        if not told.get("state_outputs"):
            return data
        return [data, last, *([last_cells] if mode == "lstm" else [])]

    return reference


def run(mode, train=False, **told):
    """A sample."""
    told = {"num_layers": 1, **told}
    directions = 2 if told.get("bidirectional") else 1
    projection = told.get("projection_size")
    shapes = weight_shapes(mode, told["num_layers"], directions, projection)
    size = sum(a * b for one in shapes for a, b in one) + 2 * GATES[mode] * UNITS * len(shapes)
    inputs = {
        "data": (STEPS, EXAMPLES, FEATURES),
        "parameters": np.random.default_rng(6).normal(size=size) * 0.6,
        "state": (len(shapes), EXAMPLES, projection or UNITS),
    }
    if mode == "lstm":
        inputs["state_cell"] = (len(shapes), EXAMPLES, UNITS)
    by = list(inputs)
    if told.get("use_sequence_length"):
        inputs["sequence_length"] = np.asarray([3.0, 2.0])
    told = {"state_size": UNITS, "mode": mode, **told}
    if train:
        return Sample("RNN", inputs, told, by=by, draws=True, train=True)
    known = {key: one for key, one in told.items() if key != "state_size"}
    return Sample("RNN", inputs, told, rnn(**known), by=by)


BOTH = {"bidirectional": True, "state_outputs": True}
LENGTHS = {"use_sequence_length": True}

SAMPLES = [
    *[
        run(mode, **told)
        for mode, told in itertools.product(
            GATES,
            (
                {},
                {"state_outputs": True, "num_layers": 2},
                BOTH,
                {"num_layers": 2, **BOTH, **LENGTHS},
            ),
        )
    ],
    run("gru", num_layers=2, bidirectional=True),
    run("rnn_tanh", **LENGTHS),
    run("lstm", projection_size=1, state_outputs=True),
    run("lstm", projection_size=1, num_layers=2, **BOTH),
    *[run(mode, num_layers=2, p=0.4, state_outputs=True) for mode in ("lstm", "gru")],
    *[run(mode, True, num_layers=2, p=0.4, state_outputs=True) for mode in ("lstm", "gru")],
]
