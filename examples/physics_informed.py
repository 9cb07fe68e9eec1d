"""Solves two differential equations by physics-informed networks, and times their derivatives.

A network is a differentiable function of place and time; trained until an equation holds at many
points, it solves the equation (Raissi, Perdikaris and Karniadakis, "Physics-informed neural
networks", 2019). Burgers' equation needs ``u_xx``, the bending of a beam ``u_xxxx``: both are
graphs, and so are the gradients of the residuals. Then the loss of a beam is built, compiled and
timed against JAX's own ways to compute high derivatives.
"""

import argparse
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import jet
from tqdm import tqdm

import symop as so
from symop import train

RUN = Path("runs/physics_informed")
LAYERS, UNITS = 3, 20
VISCOSITY = 0.03 / np.pi
LOAD = 8.0  # deflects the free end of the beam by one
Arrays = dict[str, Any]
Evaluation = Callable[[Arrays, Arrays], tuple[jax.Array, Arrays]]


# Networks and their derivatives ------------------------------------------------------------------


def network(*coordinates: so.Symbol) -> so.Symbol:
    """Tanh layers on columns of coordinates; each row of the result belongs to one point."""
    hidden = so.concat(*coordinates, axis=1)
    for layer in range(LAYERS):
        # tanh passes about the variance on, so that weights of variance 1 / fan-in keep it.
        hidden = so.fully_connected(
            hidden, units=UNITS, weight_initial="lecun_normal", name=f"layer{layer}"
        )
        hidden = so.tanh(hidden)
    out: so.Symbol = so.fully_connected(hidden, units=1, name="out")
    return out


def partial(u: so.Symbol, *along: so.Symbol) -> so.Symbol:
    """The partial derivative of ``u`` at all points, once by each coordinate in ``along``.

    A row depends only on its own point, so when all points move by one at once, each row moves by
    its own derivative. ``so.vmap`` of a function of one point is equivalent and as readable, but
    a step takes a third longer: here the layers process all points as one matrix.
    """
    found: so.Symbol = so.derivative(u, along, direction=so.ones_like(along[0]))
    return found


def evaluation(loss: so.Symbol, inputs: Sequence[str]) -> Evaluation:
    """A function of parameters and points: the loss, and its gradient by the parameters."""
    names = [name for name in loss.list_arguments() if name not in inputs]
    internals = loss.get_internals()
    gradients = so.grad(loss, [internals[name] for name in names])
    graph = so.Group([loss, *gradients]).to_jax()

    def evaluate(parameters: Arrays, points: Arrays) -> tuple[jax.Array, Arrays]:
        value, *slopes = graph(**parameters, **points)
        return value, dict(zip(names, slopes, strict=True))

    return evaluate


def initial(loss: so.Symbol, inputs: Sequence[str], seed: int = 0) -> Arrays:
    """Random initial parameters."""
    drawn = train.initialize(loss, jax.random.key(seed))
    return {name: value for name, value in drawn.items() if name not in inputs}


def minimized(
    loss: so.Symbol, points: Arrays, steps: tuple[int, int], *, seed: int = 0, progress: bool = True
) -> Arrays:
    """The parameters after some steps of Adam and then of L-BFGS."""
    parameters = initial(loss, list(points), seed)
    adam = optax.adam(optax.cosine_decay_schedule(5e-3, max(steps[0], 1)))
    # This line search reads only values, so that a step computes one gradient.
    search = optax.scale_by_backtracking_linesearch(max_backtracking_steps=20)
    lbfgs = optax.lbfgs(memory_size=20, linesearch=search)
    for name, optimizer, count in (("Adam", adam, steps[0]), ("L-BFGS", lbfgs, steps[1])):
        step, state = stepping(loss, list(points), optimizer), optimizer.init(parameters)
        for _ in tqdm(range(count), name, disable=not (progress and count)):
            parameters, state = step(parameters, state, points)
    return parameters


def stepping(loss: so.Symbol, inputs: Sequence[str], optimizer: Any) -> Callable[..., Any]:
    """One compiled step: the loss, its gradient, and the update."""
    evaluate, function = evaluation(loss, inputs), loss.to_jax()
    update = optax.with_extra_args_support(optimizer).update

    @jax.jit
    def step(parameters: Arrays, state: Any, points: Arrays) -> tuple[Arrays, Any]:
        value, slopes = evaluate(parameters, points)
        searched = {"value": value, "grad": slopes, "value_fn": lambda p: function(**p, **points)}
        updates, state = update(slopes, state, parameters, **searched)
        return optax.apply_updates(parameters, updates), state

    return step


class Solution(NamedTuple):
    """The network's solution at some points, and the exact one."""

    found: np.ndarray
    exact: np.ndarray

    @property
    def error(self) -> float:
        """The norm of the difference, relative to the norm of the exact solution."""
        return float(np.linalg.norm(self.found - self.exact) / np.linalg.norm(self.exact))


def predicted(u: so.Symbol, parameters: Arrays, **points: np.ndarray) -> np.ndarray:
    """The values of ``u`` at points of any shape, in this shape."""
    columns = {name: jnp.asarray(values).reshape(-1, 1) for name, values in points.items()}
    shape = next(iter(points.values())).shape
    return np.asarray(jax.jit(u.to_jax())(**parameters, **columns)).reshape(shape)


# Burgers' equation: u_t + u u_x = viscosity u_xx -------------------------------------------------


def flow(x: so.Symbol, t: so.Symbol) -> so.Symbol:
    """A velocity that starts as ``-sin(pi x)`` and is zero at the walls, whatever the weights."""
    u: so.Symbol = t * (1 - x * x) * network(x, 2 * t - 1) - so.sin(np.pi * x)
    return u


def burgers(count: int, viscosity: float = VISCOSITY) -> so.Symbol:
    """The squared residual of Burgers' equation for a flow at ``count`` points."""
    x, t = so.var("x", shape=(count, 1)), so.var("t", shape=(count, 1))
    u = flow(x, t)
    missed = partial(u, t) + u * partial(u, x) - viscosity * partial(u, x, x)
    loss: so.Symbol = so.mean(so.square(missed))
    return loss


def exact_flow(x: np.ndarray, t: np.ndarray, viscosity: float = VISCOSITY) -> np.ndarray:
    """The exact flow by the Cole-Hopf transformation, with Gauss-Hermite quadrature.

    It is the mean of ``-sin(pi y)`` over ``y = x - sqrt(4 viscosity t) z``, weighted by
    ``exp(-cos(pi y) / (2 pi viscosity) - z^2)``.
    """
    z, weights = np.polynomial.hermite.hermgauss(100)
    y = x[..., None] - np.sqrt(4 * viscosity * t)[..., None] * z
    weights = weights * np.exp(-np.cos(np.pi * y) / (2 * np.pi * viscosity))
    mean: np.ndarray = -(np.sin(np.pi * y) * weights).sum(-1) / weights.sum(-1)
    return mean


def solved_burgers(
    steps: tuple[int, int] = (1500, 500),
    count: int = 1500,
    viscosity: float = VISCOSITY,
    **options: Any,
) -> Solution:
    """The flow on a grid of times and places."""
    x, t = np.random.default_rng(0).uniform([[-1.0], [0.0]], 1.0, (2, count))
    points = {"x": x[:, None], "t": t[:, None]}
    parameters = minimized(burgers(count, viscosity), points, steps, **options)
    t, x = np.meshgrid(np.linspace(0, 1, 101), np.linspace(-1, 1, 201), indexing="ij")
    found = predicted(flow(so.var("x"), so.var("t")), parameters, x=x, t=t)
    return Solution(found, exact_flow(x, t, viscosity))


# A beam under a load, clamped at 0 and free at 1: u'''' = load -----------------------------------


def beam(count: int) -> so.Symbol:
    """The squared residuals of the beam equation and of the conditions at both ends.

    Deflection and slope are zero at the first point, which is clamped; bending moment and shear
    force at the last one, which is free. All orders are parts of one graph: the fourth contains
    the lower ones.
    """
    x = so.var("x", shape=(count, 1))
    u = network(x)
    slope, moment, shear, load = (partial(u, *[x] * order) for order in (1, 2, 3, 4))
    ends = so.concat(u[0], slope[0], moment[-1], shear[-1], axis=0)
    loss: so.Symbol = so.mean(so.square(load / LOAD - 1)) + so.sum(so.square(ends))
    return loss


def solved_beam(steps: tuple[int, int] = (200, 2500), count: int = 64, **options: Any) -> Solution:
    """The deflection at equally spaced places, and the exact one by Euler and Bernoulli.

    L-BFGS from random weights diverges in one of 25 runs; some steps of Adam before it prevent it.
    """
    points = {"x": np.linspace(0, 1, count)[:, None]}
    parameters = minimized(beam(count), points, steps, **options)
    x = np.linspace(0, 1, 201)
    exact = LOAD * x**2 * (x**2 - 4 * x + 6) / 24
    return Solution(predicted(network(so.var("x")), parameters, x=x), exact)


# Against JAX's own ways --------------------------------------------------------------------------

Column = Callable[[jax.Array], jax.Array]


def plain_network(parameters: Arrays, x: jax.Array) -> jax.Array:
    """``network`` of one coordinate, in plain JAX."""
    for layer in range(LAYERS):
        x = jnp.tanh(x @ parameters[f"layer{layer}_weight"].T + parameters[f"layer{layer}_bias"])
    out: jax.Array = x @ parameters["out_weight"].T + parameters["out_bias"]
    return out


def nested_grad(u: Column, order: int) -> Column:
    """Repeated ``jax.grad`` of the sum over the points."""
    return u if order == 0 else jax.grad(lambda x: nested_grad(u, order - 1)(x).sum())


def nested_jvp(u: Column, order: int) -> Column:
    """Repeated ``jax.jvp`` along ones."""
    lower = nested_jvp(u, order - 1) if order > 1 else u
    return lambda x: jax.jvp(lower, (x,), (jnp.ones_like(x),))[1]


def taylor(u: Column, order: int) -> Column:
    """``jax.experimental.jet``: all derivatives up to an order at once."""

    def derivative(x: jax.Array) -> jax.Array:
        series = [jnp.ones_like(x), *[jnp.zeros_like(x)] * (order - 1)]
        found: jax.Array = jet.jet(u, (x,), (series,))[1][-1]  # type: ignore[no-untyped-call]
        return found

    return derivative


def in_jax(derivative: Callable[[Column, int], Column], order: int) -> Evaluation:
    """The residual of ``u'''' = u``, the equation of a vibrating beam; or of another order."""

    def loss(parameters: Arrays, points: Arrays) -> jax.Array:
        u = functools.partial(plain_network, parameters)
        return jnp.mean(jnp.square(derivative(u, order)(points["x"]) - u(points["x"])))

    return jax.value_and_grad(loss)


def swinging(order: int, count: int) -> so.Symbol:
    """The same loss as a graph."""
    x = so.var("x", shape=(count, 1))
    u = network(x)
    loss: so.Symbol = so.mean(so.square(partial(u, *[x] * order) - u))
    return loss


WAYS: dict[str, Callable[[int, int], Evaluation]] = {
    "symop": lambda order, count: evaluation(swinging(order, count), ["x"]),
    "jet": lambda order, _: in_jax(taylor, order),
    "nested jvp": lambda order, _: in_jax(nested_jvp, order),
    "nested grad": lambda order, _: in_jax(nested_grad, order),
}
TOO_LONG = {(8, "nested grad")}  # not compiled after five minutes, and took 9 GB


class Row(NamedTuple):
    """Seconds of building and of compiling in one way, and of a step."""

    order: int
    way: str
    seconds: np.ndarray


def costs(order: int, way: str, count: int) -> tuple[float, float, float]:
    """One measurement of the columns of a row."""
    parameters = initial(swinging(1, 1), ["x"])
    points = {"x": jnp.linspace(0, 1, count)[:, None]}
    start = perf_counter()
    lowered = jax.jit(WAYS[way](order, count)).trace(parameters, points).lower()
    built = perf_counter()
    step = lowered.compile()
    compiled, times = perf_counter(), []
    for _ in range(200):
        begun = perf_counter()
        step(parameters, points)[0].block_until_ready()
        times.append(perf_counter() - begun)
    return built - start, compiled - built, float(np.median(times))


def compared(orders: Sequence[int], *, progress: bool = True) -> list[Row]:
    """Medians for each order and way; the ways run alternately, so that other load affects all.

    Each repeat has its own number of points, so that no cached result is reused, and the first
    derivatives run once untimed, for costs that occur only once per process.
    """
    rows = []
    for order in (1, *orders):
        ways = [way for way in WAYS if (order, way) not in TOO_LONG]
        turns = [(way, 100 + i) for i in range(3 if order == 4 else 1) for way in ways]
        bar = tqdm(turns, f"order {order}", disable=not progress)
        found = [(way, costs(order, way, count)) for way, count in bar]
        for way in ways:
            medians = np.median([seconds for name, seconds in found if name == way], axis=0)
            rows.append(Row(order, way, medians))
    return [row for row in rows if row.order in orders]


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    lines = ["order  way           build s  compile s  step ms"]
    for order, way, (build, compiled, step) in rows:
        lines.append(f"{order:5}  {way:12}  {build:7.2f}  {compiled:9.2f}  {step * 1e3:7.3f}")
    return "\n".join(lines)


# Pictures and the command line -------------------------------------------------------------------


def draw(folder: Path, flows: Solution, beams: Solution) -> None:
    """A picture of both solutions next to the exact ones, and the graphs of both losses."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # needed only for pictures

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(12, 3.4), layout="constrained")
    field, slices, beam_axes = figure.subplots(1, 3)
    image = field.imshow(flows.found.T, extent=(0, 1, -1, 1), aspect="auto", origin="lower")
    figure.colorbar(image, label="u")
    field.set(title="Burgers' equation", xlabel="t", ylabel="x")
    x = np.linspace(-1, 1, flows.found.shape[1])
    for time in (0, 25, 50, 100):
        slices.plot(x, flows.found[time], label=f"t = {time / 100}")
        slices.plot(x, flows.exact[time], "k:", label="exact" if time == 100 else None)
    slices.set(title="the same at four times", xlabel="x", ylabel="u")
    x = np.linspace(0, 1, len(beams.found))
    beam_axes.plot(x, -beams.found, label="network")
    beam_axes.plot(x, -beams.exact, "k:", label="exact")
    beam_axes.set(title="a loaded beam", xlabel="x", ylabel="-u")
    for axes in (slices, beam_axes):
        axes.legend()
    figure.savefig(folder / "solutions.png", dpi=100)
    for name, symbol in (("burgers", burgers(64)), ("beam", beam(64))):
        (folder / f"{name}.svg").write_text(symbol.to_svg(), encoding="utf-8")


def run(
    flow_options: Arrays | None = None,
    beam_steps: tuple[int, int] = (200, 2500),
    orders: Sequence[int] = (4,),
    *,
    folder: Path | None = None,
    progress: bool = True,
) -> tuple[dict[str, float], list[Row]]:
    """Solve both equations in double precision; returns relative errors and derivative costs."""
    with jax.enable_x64(True):
        flows = solved_burgers(**(flow_options or {}), progress=progress)
        beams = solved_beam(beam_steps, progress=progress)
        rows = compared(orders, progress=progress)
        if folder is not None:
            draw(folder, flows, beams)
    return {"Burgers' equation": flows.error, "beam": beams.error}, rows


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="a steeper flow, orders 6 and 8")
    parser.add_argument("--folder", type=Path, default=RUN, help="where to write the pictures")
    arguments = parser.parse_args()
    steep = {"steps": (5000, 4000), "count": 6000, "viscosity": 0.01 / np.pi}
    longer = (steep, (200, 10_000), (4, 6, 8)) if arguments.full else ()
    errors, rows = run(*longer, folder=arguments.folder)
    print(table(rows))
    print("relative error:", ", ".join(f"{name} {error:.1e}" for name, error in errors.items()))
    print(f"wrote {', '.join(sorted(path.name for path in arguments.folder.iterdir()))}")


if __name__ == "__main__":
    main()
