"""Derivatives of high order: graphs that grow polynomially, against nested derivatives of JAX."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import torch
from jax.experimental import jet
from matplotlib.figure import Figure as Sheet
from measure import Figure, alone, amount, brief, counted, equations, judged

import symop as so
from symop.graph.nodes import topological

TITLE = "Derivatives of high order"
PICTURE = Path(__file__).parents[1] / "docs" / "growth.svg"
ORDERS = range(1, 13)
AT = 0.3
V = np.linspace(-1.0, 1.0, 4, dtype=np.float32)
Function = Callable[[Any], Any]


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of derivatives of high order."""
    figures = reverse_sizes(4 if quick else 8)
    counts = growth()
    figures += hessians(5 if quick else 100)
    order = 4 if quick else 8
    figures.append(first_run(order, target=None if quick else 1 / 50))
    times = side_by_side(order)
    if not quick:
        draw(counts)
    return figures, {"growth": counts, "orders": times, "text": [*shown(counts), *told(times)]}


# Growth ----------------------------------------------------------------------------------------


def perceptron(x: Any) -> Any:
    """Three layers of one input."""
    w = [so.var(f"w{i}", shape) for i, shape in enumerate([(8, 1), (8, 8), (1, 8)])]
    hidden = so.tanh(so.matmul(w[0], so.reshape(x, shape=(1,))))
    return so.sum(so.matmul(w[2], so.tanh(so.matmul(w[1], hidden))))


OURS: dict[str, Function] = {
    "tanh": so.tanh,
    "sigmoid * sin": lambda x: so.sigmoid(x) * so.sin(x),
    "exp(sin)": lambda x: so.exp(so.sin(x)),
    "softmax(tanh)": lambda x: so.softmax(so.tanh(x * V)),
    "silu": so.silu,
    "tanh MLP": perceptron,
    "x / (1 + x²)": lambda x: x / (1 + x * x),
    "sqrt(1 + x²)": lambda x: so.sqrt(1 + x * x),
}
THEIRS: dict[str, Function] = {
    "tanh": jnp.tanh,
    "sigmoid * sin": lambda x: jax.nn.sigmoid(x) * jnp.sin(x),
    "exp(sin)": lambda x: jnp.exp(jnp.sin(x)),
    "silu": jax.nn.silu,
    "x / (1 + x²)": lambda x: x / (1 + x * x),
    "sqrt(1 + x²)": lambda x: jnp.sqrt(1 + x * x),
}


def growth() -> dict[str, list[int]]:
    """Nodes of the graph of each order, forward mode along one scalar."""
    x = so.var("x", ())
    found = {}
    for name, function in OURS.items():
        y = function(x)
        found[name] = [len(topological(so.derivative(y, x, n).nodes)) for n in ORDERS]
    return found


def reverse_sizes(order: int) -> list[Figure]:
    """Equations of gradients of gradients."""
    figures = []
    for name, theirs in THEIRS.items():
        x = so.var("x", ())
        y, function = OURS[name](x), theirs
        for _ in range(order):
            y, function = so.grad(y, x), jax.grad(function)
        at = jnp.float32(AT)  # a Python number would be converted in each call
        ours = sum(1 for _ in equations(jax.make_jaxpr(y.to_jax())(at)))
        other = sum(1 for _ in equations(jax.make_jaxpr(function)(at)))
        title = f"{name}: equations of {order} nested gradients"
        figures.append(counted(title, ours, other, target=0.2))
    return figures


def hessians(repeats: int) -> list[Figure]:
    """The Hessian of a loss by all weights of a layer, compiled."""
    arrays = {
        "x": np.linspace(-1, 1, 64 * 16, dtype=np.float32).reshape(64, 16),
        "w": np.linspace(-1, 1, 16 * 8, dtype=np.float32).reshape(16, 8),
    }
    x, w = (so.var(name, one.shape) for name, one in arrays.items())
    loss = so.mean(so.square(so.tanh(so.matmul(x, w))))
    ours = jax.jit(so.hessian(loss, w).to_jax())
    theirs = jax.jit(jax.hessian(lambda w, x: jnp.mean(jnp.square(jnp.tanh(x @ w)))))
    np.testing.assert_allclose(ours(**arrays), theirs(arrays["w"], arrays["x"]), atol=1e-6)
    pairs = []
    for _ in range(repeats):
        first = brief(lambda: ours(**arrays).block_until_ready())
        pairs.append((first, brief(lambda: theirs(*reversed(arrays.values())).block_until_ready())))
    return [judged("Hessian by 128 weights, a step", pairs[2:], target=1.1)]


# Time ------------------------------------------------------------------------------------------


def softmax_ours(x: Any) -> Any:
    """A scalar function with a softmax of a tanh."""
    return so.sum(so.softmax(so.tanh(x * V)) * V)


def softmax_theirs(x: Any) -> Any:
    """The same in JAX."""
    return jnp.sum(jax.nn.softmax(jnp.tanh(x * V)) * V)


def first_run(order: int, target: float | None) -> Figure:
    """Build, lower, compile and run once, against nested ``jax.grad`` of the same."""

    def ours() -> Any:
        return forward(order)(AT).block_until_ready()

    def theirs() -> Any:
        return nested(order)(AT).block_until_ready()

    jax.clear_caches()
    pair = (brief(ours), brief(theirs))
    return judged(f"softmax(tanh), order {order}: from function to value", [pair], target=target)


def forward(order: int) -> Function:
    """The derivative by symop, compiled on the first call."""
    x = so.var("x", ())
    return jax.jit(so.derivative(softmax_ours(x), x, order).to_jax())


def nested(order: int) -> Function:
    """The derivative by nested ``jax.grad``."""
    function: Function = softmax_theirs
    for _ in range(order):
        function = jax.grad(function)
    return jax.jit(function)


def taylor(order: int) -> Function:
    """The derivative by JAX's experimental Taylor mode."""

    def function(x: Any) -> Any:
        series = [1.0, *[0.0] * (order - 1)]
        return jet.jet(softmax_theirs, (x,), (series,))[1][-1]

    return jax.jit(function)


def torch_nested(order: int) -> Function:
    """The derivative by PyTorch, eager."""
    v = torch.tensor(V)

    def function(x: float) -> Any:
        at = torch.tensor(x, requires_grad=True)
        y = torch.sum(torch.softmax(torch.tanh(at * v), 0) * v)
        for _ in range(order):
            (y,) = torch.autograd.grad(y, at, create_graph=True)
        return y.detach()

    return function


WAYS: dict[str, Callable[[int], Function]] = {
    "symop": forward,
    "nested jax.grad": nested,
    "jax jet": taylor,
    "PyTorch": torch_nested,
}


def side_by_side(highest: int) -> list[dict[str, Any]]:
    """For each order and way, the seconds from function to first value and of a later run."""
    rows = []
    for order in range(1, highest + 1):
        # Nested gradients of the highest order have their own figure: they take minutes.
        ways = {k: v for k, v in WAYS.items() if k != "nested jax.grad" or order < 7}
        for way, make in ways.items():
            rows.append({"order": order, "way": way, **timed(make, order)})
    return rows


def timed(make: Callable[[int], Function], order: int) -> dict[str, float]:
    """The seconds from function to first value, of a later run, and the value."""
    jax.clear_caches()
    start = time.perf_counter()
    function = make(order)
    value = float(function(AT))
    taken = time.perf_counter() - start
    later = alone("", lambda: float(function(AT)), repeats=30, clock=brief).symop
    return {"first": taken, "later": later, "value": value}


# Pages -----------------------------------------------------------------------------------------


def shown(counts: dict[str, list[int]]) -> list[str]:
    """The growth as a table."""
    lines = ["", "Nodes of the graph of order n:", "", f"| n | {' | '.join(counts)} |"]
    lines.append("|---" * (len(counts) + 1) + "|")
    for i, n in enumerate(ORDERS):
        lines.append(f"| {n} | {' | '.join(str(one[i]) for one in counts.values())} |")
    return [*lines, "", f"![Growth of graphs with the order]({PICTURE.name})"]


def told(times: list[dict[str, Any]]) -> list[str]:
    """The times as a table: from function to first value / a later run."""
    head = "From function to first value, and a later run, of a softmax of a tanh:"
    lines = ["", head, "", f"| order | {' | '.join(WAYS)} |", "|---" * (len(WAYS) + 1) + "|"]
    for order in sorted({row["order"] for row in times}):
        cells = {row["way"]: row for row in times if row["order"] == order}
        told = [
            f"{amount(cells[way]['first'], 's')}, {amount(cells[way]['later'], 's')}"
            if way in cells
            else "not measured"
            for way in WAYS
        ]
        lines.append(f"| {order} | {' | '.join(told)} |")
    return lines


def draw(counts: dict[str, list[int]]) -> None:
    """A picture of the growth, on axes in which a polynomial is a straight line."""
    mpl.rcParams["svg.hashsalt"] = "symop"
    sheet = Sheet(figsize=(7, 4.5), layout="constrained")
    axes = sheet.subplots()
    for name, one in counts.items():
        axes.loglog(ORDERS, one, marker="o", markersize=3, label=name)
    axes.loglog(ORDERS, [5 * 2.7**n for n in ORDERS], "k:", label="$5 \\cdot 2.7^n$, exponential")
    axes.set_xticks([1, 2, 4, 8, 12], [1, 2, 4, 8, 12])
    axes.set(xlabel="order n", ylabel="nodes of the graph", ylim=(3, 1e5))
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    sheet.savefig(PICTURE, metadata={"Date": None})
