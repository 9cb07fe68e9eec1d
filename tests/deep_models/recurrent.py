"""Recurrent networks, unrolled by a loop over steps."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import symop as so
from deep_models.base import RATE, Arrays, Loop, Model, draw_keys, dropout, mean_square
from deep_models.cells import CELLS, Cell, State


class Size(NamedTuple):
    """Lengths of a recurrent network."""

    steps: int
    batch: int = 2
    inputs: int = 3
    units: int = 4


# Reading a step of the sequence ----------------------------------------------------------------


def read(how: str, size: Size) -> list[so.Symbol]:
    """The input of each step, from a sequence that is read in one of four ways."""
    steps, batch, inputs, _ = size
    if how == "apart":
        return [so.var(f"x{t}", (batch, inputs)) for t in range(steps)]
    if how == "time":
        x = so.var("x", (steps, batch, inputs))
        return [x[t] for t in range(steps)]
    x = so.var("x", (batch, steps, inputs))
    if how == "batch":
        return [x[:, t] for t in range(steps)]
    return [so.squeeze(one, axis=1) for one in so.split(x, sections=steps, axis=1)]


def sequence(how: str, params: Arrays) -> Any:
    """The inputs by hand, time first; apart they are stacked, or a list."""
    return params["x"] if how in ("apart", "time") else jnp.swapaxes(params["x"], 0, 1)


def series(how: str, size: Size) -> dict[str, list[str]]:
    """Inputs that come apart are a stack."""
    return {"x": [f"x{t}" for t in range(size.steps)]} if how == "apart" else {}


# Collecting the outputs ------------------------------------------------------------------------


def collect(how: str, outputs: list[so.Symbol], size: Size) -> so.Symbol:
    """The loss of the outputs of all steps."""
    if how == "last":
        return so.mean(so.square(outputs[-1]))
    if how == "loss":
        weight = so.var("readout", (size.units, 2))
        target = so.var("target", (size.steps, size.batch, 2))
        total = 0.0
        for t, output in enumerate(outputs):
            total = total + so.mean(so.square(output @ weight - target[t]))
        return total / len(outputs)
    target = so.var("target", (size.batch, size.steps, size.units))
    if how == "stack":
        return so.mean(so.square(so.stack(*outputs, axis=1) - target))
    joined = so.concat(*outputs, axis=1)
    return so.mean(so.square(so.reshape(joined, shape=target.shape) - target))


def collected(how: str, outputs: Any, params: Arrays) -> Any:
    """The loss by hand, of outputs with the time first."""
    if how == "last":
        return mean_square(outputs[-1])
    if how == "loss":
        return mean_square(outputs @ params["readout"] - params["target"])
    return mean_square(jnp.swapaxes(outputs, 0, 1) - params["target"])


# Starting --------------------------------------------------------------------------------------


def begin(how: str, cell: Cell, size: Size) -> State:
    """The state before the first step: zeros, or variables."""
    shape = (size.batch, size.units)
    if how == "zeros":
        return tuple(so.sym.zeros(shape=shape) for _ in range(cell.parts))
    return tuple(so.var(f"start{i}", shape) for i in range(cell.parts))


def begun(how: str, cell: Cell, size: Size, params: Arrays) -> State:
    """The same by hand."""
    if how == "zeros":
        return tuple(jnp.zeros((size.batch, size.units)) for _ in range(cell.parts))
    return tuple(params[f"start{i}"] for i in range(cell.parts))


def own(params: Arrays, prefix: str) -> Arrays:
    """The parameters of one cell, or of a stack of cells, without their prefix."""
    start = f"{prefix}_"
    return {n.removeprefix(start): one for n, one in params.items() if n.startswith(start)}


def run(
    cell: Cell, p: Arrays, start: State, xs: Any, loop: Loop, *, keep: bool = True
) -> tuple[State, Any]:
    """One layer by hand: the last state, and the outputs with the time first if they are kept."""

    def step(state: State, x: Any) -> tuple[State, Any]:
        state = cell.by_hand(p, x, state)
        return state, state[0] if keep else None

    return loop(step, start, xs)


# Models ----------------------------------------------------------------------------------------


def recurrent(
    kind: str, size: Size, *, reads: str = "time", collects: str = "last", starts: str = "zeros"
) -> Model:
    """One layer."""
    cell = CELLS[kind]

    def loss() -> so.Symbol:
        p = cell.variables("cell", size.inputs, size.units)
        state, outputs = begin(starts, cell, size), []
        for x in read(reads, size):
            state = cell.step(p, x, state)
            outputs.append(state[0])
        return collect(collects, outputs, size)

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        start, keep = begun(starts, cell, size, params), collects != "last"
        xs = sequence(reads, params)
        (last, *_), outputs = run(cell, own(params, "cell"), start, xs, loop, keep=keep)
        return collected(collects, outputs if keep else [last], params), states

    name = f"{kind}, {reads}, {collects}, {starts}"
    return Model(name, loss, by_hand, series(reads, size))


def dropping(kind: str, size: Size) -> Model:
    """One layer, with dropout before and after each step."""
    cell = CELLS[kind]

    def loss() -> so.Symbol:
        p = cell.variables("cell", size.inputs, size.units)
        state, outputs = begin("zeros", cell, size), []
        for x in read("batch", size):
            state = cell.step(p, so.dropout(x, rate=RATE), state)
            outputs.append(so.dropout(state[0], rate=RATE))
        return collect("stack", outputs, size)

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        p = own(params, "cell")

        def step(state: State, given: Any) -> tuple[State, Any]:
            x, (first, second) = given
            state = cell.by_hand(p, dropout(x, first), state)
            return state, dropout(state[0], second)

        keys = draw_keys(key, 2 * size.steps).reshape(-1, 2)
        xs = (sequence("batch", params), keys)
        _, outputs = loop(step, begun("zeros", cell, size, params), xs)
        return collected("stack", outputs, params), states

    return Model(f"{kind}, dropout", loss, by_hand, draws=True)


def layered(kind: str, size: Size, layers: int, *, time_first: bool) -> Model:
    """Several layers, in a loop over steps of a loop over layers, or the other way round."""
    cell = CELLS[kind]

    def loss() -> so.Symbol:
        widths = [size.inputs, *[size.units] * (layers - 1)]
        params = [cell.variables(f"layer{i}", n, size.units) for i, n in enumerate(widths)]
        outputs = (_by_steps if time_first else _by_layers)(cell, params, size)
        return collect("stack", outputs, size)

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        start = begun("zeros", cell, size, params)
        _, outputs = run(cell, own(params, "layer0"), start, sequence("batch", params), loop)

        def layer(xs: Any, p: Arrays) -> tuple[Any, None]:
            return run(cell, p, start, xs, loop)[1], None

        outputs, _ = loop(layer, outputs, own(params, "layers"))
        return collected("stack", outputs, params), states

    stacks = {
        f"layers_{name}": [f"layer{i}_{name}" for i in range(1, layers)]
        for name in cell.shapes(1, 1)
    }
    order = "steps of layers" if time_first else "layers of steps"
    return Model(f"{kind}, {layers} layers, {order}", loss, by_hand, stacks)


def _by_steps(cell: Cell, params: list[dict[str, so.Symbol]], size: Size) -> list[so.Symbol]:
    states = [begin("zeros", cell, size) for _ in params]
    outputs = []
    for x in read("batch", size):
        output = x
        for i, p in enumerate(params):
            states[i] = cell.step(p, output, states[i])
            output = states[i][0]
        outputs.append(output)
    return outputs


def _by_layers(cell: Cell, params: list[dict[str, so.Symbol]], size: Size) -> list[so.Symbol]:
    outputs = read("batch", size)
    for p in params:
        state, inputs, outputs = begin("zeros", cell, size), outputs, []
        for x in inputs:
            state = cell.step(p, x, state)
            outputs.append(state[0])
    return outputs


def bidirectional(kind: str, size: Size) -> Model:
    """One layer forwards and one backwards; both outputs of a step, side by side."""
    cell = CELLS[kind]
    both = size._replace(units=2 * size.units)

    def loss() -> so.Symbol:
        xs = read("time", size)
        sides = []
        for prefix, order in (("ahead", xs), ("back", xs[::-1])):
            p, state = cell.variables(prefix, size.inputs, size.units), begin("zeros", cell, size)
            outputs = []
            for x in order:
                state = cell.step(p, x, state)
                outputs.append(state[0])
            sides.append(outputs)
        pairs = zip(sides[0], sides[1][::-1], strict=True)
        return collect("stack", [so.concat(a, b, axis=1) for a, b in pairs], both)

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        start = begun("zeros", cell, size, params)
        _, ahead = run(cell, own(params, "ahead"), start, params["x"], loop)
        _, back = run(cell, own(params, "back"), start, jnp.flip(params["x"], 0), loop)
        outputs = jnp.concatenate([ahead, jnp.flip(back, 0)], axis=-1)
        return collected("stack", outputs, params), states

    return Model(f"{kind}, bidirectional", loss, by_hand)


def shared(depth: int) -> Model:
    """A layer whose weights all depths share, and which reads the input at each of them."""

    def loss() -> so.Symbol:
        x, b = so.var("x", (2, 4)), so.var("b", (4,))
        w, u = so.var("w", (4, 4)), so.var("u", (4, 4))
        h = so.zeros(shape=(2, 4))
        for _ in range(depth):
            h = so.gelu(x @ w + h @ u + b)
        return so.mean(so.square(h))

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        x, w, u, b = (params[name] for name in "xwub")

        def step(h: Any, _: None) -> tuple[Any, None]:
            return jax.nn.gelu(x @ w + h @ u + b, approximate=False), None

        h, _ = loop(step, jnp.zeros((2, 4)), None, depth)
        return mean_square(h), states

    return Model("shared weights", loss, by_hand)
