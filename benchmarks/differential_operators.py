"""Differential operators against nested derivatives, ``jet`` and folx, in one process."""

import os

# The solves of a determinant run in BLAS, whose threads disturb those of XLA on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import folx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import jet
from jax.flatten_util import ravel_pytree
from jax_functions import perceptron, weights
from measure import Figure, counted, judged

import symop as so

TITLE = "Differential operators"
Function = Callable[..., Any]
NESTED_LIMIT = 120.0
"""Seconds after which no higher order of a nested derivative is tried."""


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of differential operators."""
    figures, repeats = list[Figure](), 3 if quick else 40
    so.laplacian(lambda x: jnp.sum(x * x), jnp.ones(2))  # imports the catalogue
    for dim in (5,) if quick else (5, 50, 500):
        args = network(dim), weights(64, dim, seed=1)
        programs = {name: over_batch(one) for name, one in laplacians().items()}
        title = f"Laplacian of an MLP, D = {dim}"
        targets = dict.fromkeys(FOLX, 1.0)
        if dim == 50:
            targets |= dict.fromkeys(NESTED, 0.5)
        figures += race(title, programs, args, repeats if dim < 500 else repeats // 3, targets)
    figures += fermi_figures(repeats=repeats)
    figures += gradient_by_weights(repeats=repeats)
    for dim in (5,) if quick else (5, 50):
        figures += linear_operators(dim, repeats=repeats)
    figures += third_order(repeats=repeats)
    figures += biharmonic(repeats=repeats // 2)
    figures += fourth_derivative(repeats=repeats * 2)
    for order in (2,) if quick else (2, 4, 8):
        figures += taylor_series(order, repeats=repeats)
    figures += high_order(orders=range(1, 4) if quick else range(1, 9))
    remarks = [
        f"folx {version('folx')}. Other programs ran on the machine at the same time.",
        "XLA's fusions on the CPU allocate memory of their own, which memory_analysis does not "
        "count; temporary bytes compare what XLA itself allocates.",
        "A name in parentheses is the sparsity threshold of folx.",
        "At D = 50, XLA counts 660 Mflops for symop and 1,396 for nested JAX, 0.47 of them. The "
        "products of the first derivatives with the second and the third matrix are 629, which "
        "leaves 31 to save; a forward Laplacian written by hand has the same 660. Transposed "
        "operands, halves and quarters of the batch gained at most 5 %.",
        "Run by one thread, compared by CPU time on a busy machine: symop and the one written by "
        "hand 0.50 of nested JAX, the two products alone 0.47, a loop that takes one direction at "
        "a time 0.48; the loop would run direction by direction on an accelerator, too.",
    ]
    return figures, {"remarks": remarks}


# Laplacians --------------------------------------------------------------------------------------

NESTED = ("jax.hessian", "jvp of grad")
FOLX = ("folx (0)", "folx (0.3)", "folx (0.6)")


def laplacians() -> dict[str, Function]:
    """The Laplacian of a function in several ways, symop's first."""
    return {
        "symop": lambda u: lambda x: so.laplacian(u, x),
        "jax.hessian": by_hessian,
        "jvp of grad": by_products,
        "jet": by_jet,
        **{name: by_folx(s) for name, s in zip(FOLX, (0, 0.3, 0.6), strict=True)},
    }


def network(dim: int) -> Any:
    """The parameters of a perceptron D-256-256-128-1."""
    widths = (dim, 256, 256, 128, 1)
    return [(weights(a, b), jnp.zeros(b)) for a, b in itertools.pairwise(widths)]


def by_hessian(u: Function) -> Function:
    """The trace of ``jax.hessian``."""
    return lambda x: jnp.trace(jax.hessian(u)(x))


def by_products(u: Function) -> Function:
    """The trace by ``jvp`` of ``grad`` along each direction."""

    def laplacian(x: Any) -> Any:
        slope = jax.grad(u)
        rows = jax.vmap(lambda way: jax.jvp(slope, (x,), (way,))[1])(jnp.eye(x.size))
        return jnp.trace(rows)

    return laplacian


def over_batch(laplacian: Function) -> Function:
    """A differential operator of a network, at a batch of points."""

    def batched(params: Any, xs: Any) -> Any:
        return jax.vmap(laplacian(lambda x: perceptron(params, x)[0]))(xs)

    return batched


def by_jet(u: Function) -> Function:
    """The sum of second derivatives along each basis vector by ``jax.experimental.jet``."""

    def laplacian(x: Any) -> Any:
        def along(way: Any) -> Any:
            return jet.jet(u, (x,), ((way, jnp.zeros_like(x)),))[1][1]

        return jax.vmap(along)(jnp.eye(x.size)).sum()

    return laplacian


def by_folx(threshold: float) -> Function:
    """The forward Laplacian of folx."""

    def of(u: Function) -> Function:
        forward = folx.forward_laplacian(u, sparsity_threshold=threshold, disable_jit=True)
        return lambda x: forward(x).laplacian

    return of


class Compiled:
    """A program, with the seconds that its compilation took, tracing included."""

    def __init__(self, function: Function, args: Sequence[Any]) -> None:
        start = time.perf_counter()
        self.program = jax.jit(function).lower(*args).compile()
        self.seconds = time.perf_counter() - start
        self.memory = self.program.memory_analysis().temp_size_in_bytes

    def time(self, args: Sequence[Any]) -> float:
        """The seconds of one run."""
        start = time.perf_counter()
        jax.block_until_ready(self.program(*args))
        return time.perf_counter() - start


def race(
    title: str,
    programs: Mapping[str, Function],
    args: Sequence[Any],
    repeats: int,
    targets: Mapping[str, float],
) -> list[Figure]:
    """Run, compile and temporary memory of the first program against each other one.

    All run in turn, so that each ratio is of runs that follow each other.
    """
    jax.clear_caches()
    compiled = {name: Compiled(function, args) for name, function in programs.items()}
    results = [one.program(*args) for one in compiled.values()]
    for one in results[1:]:
        scale = float(jnp.abs(results[0]).max())
        assert float(jnp.abs(one - results[0]).max()) < 1e-2 * scale, title
    times: dict[str, list[float]] = {name: [] for name in programs}
    for i in range(repeats + 2):
        for name, one in compiled.items():
            taken = one.time(args)
            if i >= 2:
                times[name].append(taken)
    first, *others = compiled
    figures = []
    for name in others:
        where, target = f"{title}: against {name}", targets.get(name)
        pairs = list(zip(times[first], times[name], strict=True))
        figures.append(judged(where, pairs, target=target))
        sizes = [compiled[one].memory for one in (first, name)]
        figures.append(counted(f"{where}, temporary bytes", *sizes, target=target))
        seconds = [(compiled[first].seconds, compiled[name].seconds)]
        figures.append(judged(f"{where}, trace and compile", seconds))
    return figures


def gradient_by_weights(repeats: int) -> list[Figure]:
    """The gradient of a mean square of the Laplacian by the weights of a network."""
    args = network(5), weights(64, 5, seed=1)

    def slope(laplacian: Function) -> Function:
        values = over_batch(laplacian)
        gradient = jax.grad(lambda params, xs: jnp.mean(values(params, xs) ** 2))
        return lambda params, xs: ravel_pytree(gradient(params, xs))[0]

    ways = {name: one for name, one in laplacians().items() if name in ("symop", *NESTED)}
    programs = {name: slope(one) for name, one in ways.items()}
    return race("gradient of a Laplacian by weights, D = 5", programs, args, repeats, {})


# Linear operators --------------------------------------------------------------------------------


def linear_operators(dim: int, repeats: int) -> list[Figure]:
    """A general operator of second order, of numbers and with coefficients of ``x``."""
    args = network(dim), weights(64, dim, seed=1)
    form, drift = weights(dim, dim, seed=2), weights(dim, seed=3)
    numbers = {"symop": by_terms(form, drift), "jax.hessian": by_form(form, drift)}
    figures = race(
        f"linear operator of second order, D = {dim}", of_batch(numbers), args, repeats, {}
    )
    of_x = {
        "symop": by_terms(form, drift, of_x=True),
        "jax.hessian": by_form(form, drift, of_x=True),
    }
    if dim < 10:  # each coefficient is a function of its own
        title = f"linear operator with coefficients of x, D = {dim}"
        figures += race(title, of_batch(of_x), args, repeats, {})
    return figures


def of_batch(operators: Mapping[str, Function]) -> dict[str, Function]:
    """Each operator of a network, at a batch of points."""
    return {name: over_batch(one) for name, one in operators.items()}


def by_terms(form: Any, drift: Any, *, of_x: bool = False) -> Function:
    """``sum_ij a_ij d_i d_j + sum_i b_i d_i``; with ``of_x``, the first are times ``cos x_i``."""
    rows, slopes = np.asarray(form), np.asarray(drift)

    def coefficient(i: int, j: int) -> Any:
        value = float(rows[i, j])
        return (lambda x: value * jnp.cos(x[i])) if of_x else value

    size = range(len(rows))
    terms: list[tuple[Any, Any]] = [(float(slopes[i]), {(0, i): 1}) for i in size]
    terms += [(coefficient(i, i), {(0, i): 2}) for i in size]
    terms += [(coefficient(i, j), {(0, i): 1, (0, j): 1}) for i in size for j in size if i != j]
    return lambda u: so.linear_operator(u, terms)


def by_form(form: Any, drift: Any, *, of_x: bool = False) -> Function:
    """The same from the Hessian and the gradient."""

    def operator(u: Function) -> Function:
        def value(x: Any) -> Any:
            rows = form * jnp.cos(x)[:, None] if of_x else form
            return jnp.sum(rows * jax.hessian(u)(x)) + drift @ jax.grad(u)(x)

        return value

    return operator


# A network of electrons --------------------------------------------------------------------------


def fermi_figures(repeats: int) -> list[Figure]:
    """The Laplacian of the logarithm of a wave function of 16 electrons, for a batch of four."""
    args = fermi_parameters(16), jax.random.normal(jax.random.key(5), (4, 48))

    def batched(laplacian: Function) -> Function:
        return lambda p, xs: jax.vmap(laplacian(lambda x: fermi_net(p, x)))(xs)

    # jet has no rule for the determinant.
    ways = {name: one for name, one in laplacians().items() if name != "jet"}
    programs = {name: batched(one) for name, one in ways.items()}
    title = "Laplacian of a FermiNet-like network, 16 electrons"
    return race(title, programs, args, repeats, dict.fromkeys(FOLX, 1.0))


def fermi_parameters(n: int, one: int = 64, two: int = 16, determinants: int = 2) -> Any:
    """The parameters of ``fermi_net`` with three layers."""
    seeds = itertools.count()
    layers = [
        {
            "one": weights(3 * a + 2 * b, one, seed=next(seeds)),
            "bias": jnp.zeros(one),
            "two": weights(b, two, seed=next(seeds)),
            "shift": jnp.zeros(two),
        }
        for a, b in ((4, 4), (one, two), (one, two))
    ]
    orbitals = weights(determinants, one, n, seed=next(seeds))
    return {"layers": layers, "orbitals": orbitals, "decay": jnp.ones((determinants, n))}


def fermi_net(params: Any, x: Any) -> Any:
    """The logarithm of a wave function, after Pfau et al., Physical Review Research, 2020.

    A stream for each electron reads means over electrons and a stream for each pair.
    """
    n = x.shape[0] // 3
    up = n // 2
    r = x.reshape(n, 3)
    distance = jnp.sqrt(jnp.sum(r * r, axis=-1, keepdims=True))
    gap, itself = r[:, None] - r[None, :], jnp.eye(n)[..., None]
    length = jnp.sqrt(jnp.sum(gap * gap, axis=-1, keepdims=True) + itself) * (1 - itself)
    one = jnp.concatenate([r, distance], axis=-1)
    two = jnp.concatenate([gap, length], axis=-1)
    for p in params["layers"]:
        means = [jnp.broadcast_to(h.mean(0), one.shape) for h in (one[:up], one[up:])]
        pairs = [h.mean(1) for h in (two[:, :up], two[:, up:])]
        features = jnp.concatenate([one, *means, *pairs], axis=-1)
        one = residual(one, jnp.tanh(features @ p["one"] + p["bias"]))
        two = residual(two, jnp.tanh(two @ p["two"] + p["shift"]))
    orbitals = jnp.einsum("if,dfj->dij", one, params["orbitals"])
    orbitals = orbitals * jnp.exp(-distance * params["decay"][:, None])
    signs, logs = jnp.linalg.slogdet(orbitals)
    top = logs.max()
    return jnp.log(jnp.abs(jnp.sum(signs * jnp.exp(logs - top)))) + top


def residual(x: Any, y: Any) -> Any:
    """The normalized sum, if the shapes are equal."""
    return (x + y) / jnp.sqrt(2.0) if x.shape == y.shape else y


# Higher orders -----------------------------------------------------------------------------------


def third_order(repeats: int) -> list[Figure]:
    """A general operator of order three at five dimensions: 35 terms."""
    args, dim = (network(5), weights(64, 5, seed=1)), 5
    numbers, every = np.asarray(weights(dim, dim, dim, seed=2)), range(dim)
    sorted_triples = list(itertools.combinations_with_replacement(every, 3))
    terms = [(float(numbers[one]), {(0, i): one.count(i) for i in one}) for one in sorted_triples]
    upper = np.zeros_like(numbers)
    for one in sorted_triples:
        upper[one] = numbers[one]

    def by_tensor(u: Function) -> Function:
        third = jax.jacfwd(jax.jacfwd(jax.grad(u)))
        return lambda x: jnp.sum(upper * third(x))

    ways = {"symop": lambda u: so.linear_operator(u, terms), "jacfwd of jacfwd of grad": by_tensor}
    title = "linear operator of third order, D = 5"
    return race(title, of_batch(ways), args, repeats, {})


def biharmonic(repeats: int) -> list[Figure]:
    """The biharmonic operator at five dimensions."""
    args = network(5), weights(64, 5, seed=1)
    programs = {
        "symop": over_batch(lambda u: lambda x: so.biharmonic(u, x)),
        "jvp of grad, twice": over_batch(lambda u: by_products(by_products(u))),
        "jax.hessian, twice": over_batch(lambda u: by_hessian(by_hessian(u))),
    }
    targets = dict.fromkeys(programs, 0.3)
    return race("biharmonic operator of an MLP, D = 5", programs, args, repeats, targets)


def fourth_derivative(repeats: int) -> list[Figure]:
    """``u_xxxx`` of a network of position and time, at 64 points."""
    args = network(2), weights(64, 2, seed=1)

    def of(params: Any) -> Function:
        return lambda x, t: perceptron(params, jnp.stack([x, t]))[0]

    def symop(params: Any, points: Any) -> Any:
        structs = (jax.ShapeDtypeStruct((), "float32"),) * 2
        u = so.from_jax(lambda p, x, t: of(p)(x, t), params, *structs)
        run = so.derivative(u, "x", order=4).to_jax()
        leaves = jax.tree_util.tree_leaves(params)
        known = dict(zip(u.list_arguments()[: len(leaves)], leaves, strict=True))
        return jax.vmap(lambda point: run(**known, x=point[0], t=point[1]))(points)

    def nested(params: Any, points: Any) -> Any:
        u = of(params)
        for _ in range(4):
            u = jax.grad(u)
        return jax.vmap(lambda point: u(*point))(points)

    def by_series(params: Any, points: Any) -> Any:
        def one(point: Any) -> Any:
            zero = jnp.zeros(())
            series = (jnp.ones(()), zero, zero, zero)
            return jet.jet(lambda x: of(params)(x, point[1]), (point[0],), (series,))[1][3]

        return jax.vmap(one)(points)

    programs = {"symop": symop, "nested jax.grad": nested, "jet": by_series}
    return race("u_xxxx of an MLP of two inputs", programs, args, repeats, {})


def taylor_series(order: int, repeats: int) -> list[Figure]:
    """All derivatives of a network along a direction, up to an order."""
    args = network(5), weights(64, 5, seed=1)
    way = jnp.ones(5)

    def symop(u: Function) -> Function:
        return lambda x: jnp.stack(so.taylor(u, x, [way], order=order))

    def by_series(u: Function) -> Function:
        def value(x: Any) -> Any:
            series = [way, *[jnp.zeros_like(x)] * (order - 1)]
            first, rest = jet.jet(u, (x,), (series,))
            return jnp.stack([first, *rest])

        return value

    programs = of_batch({"symop": symop, "jet": by_series})
    return race(f"derivatives of orders 0 to {order} of an MLP", programs, args, repeats, {})


# Order 8 through a loop --------------------------------------------------------------------------


def scanned(x: Any) -> Any:
    """A loop of 20 steps over one number."""

    def step(c: Any, w: Any) -> tuple[Any, None]:
        return jnp.sin(w * c) + 0.5 * c, None

    return lax.scan(step, x, jnp.linspace(0.1, 1.0, 20))[0]


def high_order(orders: Sequence[int]) -> list[Figure]:
    """Building and compiling a derivative through ``scanned``, against nested ``jax.jvp``.

    Orders of the nested derivative grow until the next one would exceed ``NESTED_LIMIT``.
    """
    figures, before = list[Figure](), [0.0]
    for order in orders:
        mine = seconds_to_compile(by_symop(order))
        guess = before[-1] * max(before[-1] / before[-2], 1.0) if len(before) > 2 else 0.0
        title = f"order {order} through a scan of 20 steps: build and compile"
        if guess > NESTED_LIMIT:
            figures.append(Figure(title, mine))
            continue
        before.append(seconds_to_compile(by_nesting(order)))
        target = 1 / 20 if order == 8 else None
        figures.append(judged(title, [(mine, before[-1])], target=target))
    return figures


def by_symop(order: int) -> Function:
    """The derivative of ``scanned`` as a graph."""

    def derivative(x: Any) -> Any:
        u = so.from_jax(scanned, jax.ShapeDtypeStruct((), "float32"), names=["x"])
        return so.derivative(u, "x", order=order).to_jax()(x=x)

    return derivative


def by_nesting(order: int) -> Function:
    """The derivative of ``scanned`` by ``jax.jvp`` of ``jax.jvp``."""
    f = scanned
    for _ in range(order):
        f = tangent(f)
    return f


def tangent(f: Function) -> Function:
    """The derivative of a function of one number."""
    return lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]


def seconds_to_compile(function: Function, repeats: int = 1) -> float:
    """The time to trace and compile with empty caches."""
    times = []
    for _ in range(repeats):
        jax.clear_caches()
        times.append(Compiled(function, [jnp.float32(0.3)]).seconds)
    return statistics.median(times)
