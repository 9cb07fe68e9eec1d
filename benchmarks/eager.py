"""Eager code: calls, chains, gradients and training loops, against JAX and PyTorch."""

import gc
import itertools
import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from measure import Figure, brief, compare, counted

from registry import caches
from registry.tuning import present
from symop import autograd, nd
from symop.eager.segments import local

try:
    import torch
except ImportError:  # its figures are omitted
    torch = None

TITLE = "Eager code"
SIZE = 10
LENGTH = 1000
A_THIRTIETH = round(1 / 30, 4)


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of eager code."""
    repeats = 5 if quick else 60
    if torch is not None:
        torch.set_num_threads(1)  # a second thread only slows down arrays this small
    figures = [
        *calls(repeats),
        *chains(repeats),
        *second_derivatives(repeats),
        training(repeats),
        *changing(repeats),
        changing_numbers(repeats),
        shapes(),
        objects(),
        *growth(40 if quick else 150),
    ]
    remarks = [] if torch is not None else ["PyTorch is not installed, so its figures are missing."]
    return figures, {"remarks": remarks}


def vector(seed: int = 0) -> np.ndarray:
    """A small array, so that a call is all overhead."""
    return np.random.default_rng(seed).normal(0, 0.5, SIZE).astype(np.float32)


def calls(repeats: int) -> list[Figure]:
    """One operator of two arrays, run individually."""
    x, y = nd.array(vector()), nd.array(vector(1))
    jitted = jax.jit(lambda x, y: x * y)

    def repeated(function: Callable[[Any, Any], Any], *given: Any) -> Callable[[], None]:
        def program() -> None:
            for _ in range(500):
                result = function(*given)
            jax.block_until_ready(result)

        return program

    def ours() -> None:
        with nd.direct():
            for _ in range(500):
                result = nd.multiply(x, y)
            result.wait_to_read()

    return [
        compare(name, ours, theirs, repeats=repeats, target=target, clock=brief, per=500)
        for name, theirs, target in (
            ("one operator, against jax.jit", repeated(jitted, x.value, y.value), 1.3),
            ("one operator, against jnp.multiply", repeated(jnp.multiply, x.value, y.value), 1.0),
        )
    ]


def sines(x: Any, sin: Callable[[Any], Any], count: int = LENGTH) -> Any:
    """The repeated sine of ``x``."""
    for _ in range(count):
        x = sin(x)
    return x


def chains(repeats: int) -> list[Figure]:
    """A thousand operators in a row, forward, and with the gradient."""
    x = nd.array(vector())
    attached = nd.array(vector())
    attached.attach_grad()

    def forward() -> None:
        sines(x, nd.sin).wait_to_read()

    def both() -> None:
        with autograd.record():
            y = sines(attached, nd.sin)
        y.backward()
        attached.grad.wait_to_read()

    value = x.value
    unjitted = jax.grad(lambda x: jnp.sum(sines(x, jnp.sin)))
    against_jax = "chain of 1,000, recorded, with backward, against jax.grad"
    figures = [
        compare(
            against_jax,
            both,
            lambda: jax.block_until_ready(unjitted(value)),
            repeats=max(3, repeats // 10),
            target=A_THIRTIETH,
            clock=brief,
        )
    ]
    if torch is None:
        return figures
    leaf, variable = torch.tensor(vector()), torch.tensor(vector(), requires_grad=True)

    def torch_both() -> None:
        variable.grad = None
        sines(variable, torch.sin).sum().backward()

    return [
        compare(
            "chain of 1,000, forward, against PyTorch",
            forward,
            lambda: sines(leaf, torch.sin),
            repeats=repeats,
            target=1.0,
            clock=brief,
        ),
        compare(
            "chain of 1,000, recorded, with backward, against PyTorch",
            both,
            torch_both,
            repeats=repeats,
            target=1.0,
            clock=brief,
        ),
        *figures,
    ]


# Networks --------------------------------------------------------------------------------------


def drawn(sizes: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and biases."""
    generator = np.random.default_rng(0)
    return [
        (
            generator.normal(0, m**-0.5, (m, n)).astype(np.float32),
            np.zeros(n, np.float32),
        )
        for m, n in itertools.pairwise(sizes)
    ]


def network(x: Any, layers: Sequence[Any], act: Any, matmul: Any) -> Any:
    """A multilayer perceptron."""
    for w, b in layers[:-1]:
        x = act(matmul(x, w) + b)
    w, b = layers[-1]
    return matmul(x, w) + b


def second_derivatives(repeats: int) -> list[Figure]:
    """The second derivative of a small network by its input."""
    layers, points = drawn([1, 20, 20, 1]), np.linspace(-1, 1, 10, dtype=np.float32)[:, None]
    ours = [(nd.array(w), nd.array(b)) for w, b in layers]
    x = nd.array(points)
    x.attach_grad()

    def twice() -> Any:
        with autograd.record():
            y = network(x, ours, nd.tanh, nd.matmul)
            (slope,) = autograd.grad(y, x, create_graph=True)
        return autograd.grad(slope, x)[0]

    theirs = [(jnp.asarray(w), jnp.asarray(b)) for w, b in layers]

    def first(x: Any) -> Any:
        return jax.grad(lambda x: jnp.sum(network(x, theirs, jnp.tanh, jnp.matmul)))(x)

    second = jax.grad(lambda x: jnp.sum(first(x)))
    at = x.value
    np.testing.assert_allclose(twice(), second(at), rtol=1e-4, atol=1e-5)
    figures = [
        compare(
            "second derivative of an MLP, against jax.grad of jax.grad",
            lambda: twice().wait_to_read(),
            lambda: jax.block_until_ready(second(at)),
            repeats=max(3, repeats // 4),
            target=A_THIRTIETH,
            clock=brief,
        )
    ]
    if torch is None:
        return figures
    tensors = [(torch.tensor(w), torch.tensor(b)) for w, b in layers]
    variable = torch.tensor(points, requires_grad=True)

    def torch_twice() -> Any:
        y = network(variable, tensors, torch.tanh, torch.matmul)
        (slope,) = torch.autograd.grad(y.sum(), variable, create_graph=True)
        return torch.autograd.grad(slope.sum(), variable)[0]

    against_torch = compare(
        "second derivative of an MLP, against PyTorch",
        lambda: twice().wait_to_read(),
        torch_twice,
        repeats=repeats,
        target=1.0,
        clock=brief,
    )
    return [*figures, against_torch]


def training(repeats: int) -> Figure:
    """Steps of gradient descent on an MLP, against a jitted step."""
    layers = drawn([784, 512, 512, 10])
    generator = np.random.default_rng(1)
    x = generator.normal(size=(128, 784)).astype(np.float32)
    labels = generator.integers(0, 10, 128).astype(np.int32)
    ours = [(nd.array(w), nd.array(b)) for w, b in layers]
    for pair in ours:
        for one in pair:
            one.attach_grad()
    batch, wanted = nd.array(x), nd.array(labels)

    def step() -> Any:
        with autograd.record():
            out = network(batch, ours, nd.relu, nd.matmul)
            loss = nd.mean(nd.softmax_cross_entropy(out, wanted))
        loss.backward()
        for pair in ours:
            for one in pair:
                one[...] = one - 0.01 * one.grad
        return loss

    def by_hand(layers: Any, x: Any, labels: Any) -> Any:
        def loss(layers: Any) -> Any:
            out = network(x, layers, jax.nn.relu, jnp.matmul)
            picked = jnp.take_along_axis(jax.nn.log_softmax(out), labels[:, None], 1)
            return -jnp.mean(picked)

        value, slopes = jax.value_and_grad(loss)(layers)
        moved = jax.tree_util.tree_map(lambda w, d: w - 0.01 * d, layers, slopes)
        return moved, value

    jitted = jax.jit(by_hand, donate_argnums=0)
    held = [[(jnp.asarray(w), jnp.asarray(b)) for w, b in layers]]
    given = jnp.asarray(x), jnp.asarray(labels)

    def theirs() -> Any:
        held[0], value = jitted(held[0], *given)
        return value

    np.testing.assert_allclose(step().item(), theirs(), rtol=1e-4)
    return compare(
        "training step of an MLP, against a jitted step",
        lambda: (step().wait_to_read(), ours[0][0].wait_to_read()),
        lambda: (jax.block_until_ready(theirs()), jax.block_until_ready(held[0])),
        repeats=repeats,
        target=1.15,
    )


# Changing structure, and growth -----------------------------------------------------------------


def changing(repeats: int) -> list[Figure]:
    """A loop whose operators are random in each iteration, recorded or run one by one."""
    generator = np.random.default_rng(0)
    operators = (nd.sin, nd.cos, nd.tanh, nd.exp)
    x, attached = nd.array(vector()), nd.array(vector())
    attached.attach_grad()

    def drawn_calls(y: Any) -> Any:
        for choice in generator.integers(0, 4, 30):
            y = operators[choice](y)
        return y

    def forward() -> None:
        for _ in range(10):
            drawn_calls(x).wait_to_read()

    def both() -> None:
        for _ in range(10):
            with autograd.record():
                y = drawn_calls(attached)
            y.backward()
            attached.grad.wait_to_read()

    return [
        _against_direct(
            "a loop that always changes, against running each call by itself", forward, repeats
        ),
        _against_direct("the same with backward", both, repeats),
    ]


def _against_direct(name: str, loop: Callable[[], None], repeats: int) -> Figure:
    def directly() -> None:
        with nd.direct():
            loop()

    for _ in range(20):
        loop()
    figure = compare(name, loop, directly, repeats=repeats, target=1.5, clock=brief)
    local.state.rest, local.state.next_rest = 0, present.tuning.rest
    return figure


def objects() -> Figure:
    """Number of Python objects after ten thousand iterations of a loop, against after a hundred."""
    x = nd.array(vector())
    x.attach_grad()

    def iterate(count: int) -> int:
        for _ in range(count):
            with autograd.record():
                loss = nd.sum((x * 2 - 1) ** 2)
            loss.backward()
            x[...] = x - 0.01 * x.grad
        gc.collect()
        return len(gc.get_objects())

    before = iterate(100)
    after = iterate(10_000)
    return counted("objects after 10,000 iterations, against after 100", after, before, target=1.01)


def changing_numbers(repeats: int) -> Figure:
    """A loop whose bounds are different numbers in each iteration, which become operands."""
    x, theirs = nd.array(vector()), jnp.asarray(vector())
    supply = itertools.count(1)

    def ours() -> None:
        for _ in range(100):
            nd.clip(x, -1 / next(supply), 1 / next(supply)).wait_to_read()

    def other() -> None:
        for _ in range(100):
            jnp.clip(theirs, -1 / next(supply), 1 / next(supply)).block_until_ready()

    return compare(
        "clip with other bounds each time, against jnp",
        ours, other, repeats=repeats, target=4, clock=brief, per=100,
    )  # fmt: skip


def shapes(count: int = 40) -> Figure:
    """Programs compiled for new shapes with backward, against ``jit`` of ``grad``."""
    w, theirs = nd.array(np.ones((8, 8), np.float32)), jnp.ones((8, 8))
    w.attach_grad()
    gradient = jax.jit(jax.grad(lambda w, x: jnp.mean((jnp.tanh(x @ w) * 2 - 1) ** 2)))
    compiled = [0, 0]

    for n in range(1, 1 + count):
        data = jax.device_put(np.ones((n, 8), np.float32))  # compiles nothing
        before = caches.store.now
        _backward(w, data)
        between = caches.store.now
        gradient(theirs, data).block_until_ready()
        compiled[0] += between - before
        compiled[1] += caches.store.now - between
    name = f"programs compiled for {count} shapes with backward, against jit(grad)"
    return counted(name, *compiled, target=1.5)


def _backward(w: Any, data: Any) -> None:
    x = nd.array(data)
    with autograd.record():
        loss = nd.mean((nd.tanh(x @ w) * 2 - 1) ** 2)
    loss.backward()
    w.grad.wait_to_read()


def growth(count: int) -> list[Figure]:
    """Resident memory with full caches, against after twice as many programs."""
    limits = caches.limits()
    caches.clear()
    caches.set_limits(programs=count << 19, steps=5_000)
    w = nd.array(np.ones((8, 8), np.float32))
    w.attach_grad()
    generator = np.random.default_rng(0)
    operators = (nd.sin, nd.cos, nd.tanh, nd.exp, nd.sqrt, nd.square, nd.sign, nd.abs)

    def shaped(start: int) -> None:
        for n in range(start, start + count):
            _backward(w, jax.device_put(np.ones((n, 8), np.float32)))  # compiles nothing

    def structured(_start: int) -> None:
        for _ in range(20 * count):
            y = x
            for choice in generator.integers(0, len(operators), 12):
                y = operators[choice](y)
            y.wait_to_read()

    x = nd.array(vector())
    found = [
        _resident(f"memory after {2 * count} shapes with backward, against {count}", shaped, count),
        _resident(f"memory after {40 * count} structures, against {20 * count}", structured, count),
    ]
    caches.set_limits(*limits)
    return found


def _resident(name: str, program: Callable[[int], None], count: int) -> Figure:
    """Resident memory in megabytes after a second run, against after the first."""
    measured = []
    for start in (1, 1 + count):
        program(start)
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        measured.append(pages * resource.getpagesize() >> 20)
    return counted(name, measured[1], measured[0], target=1.15)
