"""Building graphs and their gradients, against JAX tracing the same programs."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from by_hand import Model, digits, mlp
from jax import lax
from measure import Figure, alone, compare

import symop as so

TITLE = "Building graphs"
LONG = 100_000


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of building."""
    figures = []
    for length, repeats in ((1_000, 40), (10_000, 10)):
        figures += chains(length, 3 if quick else repeats)
    for model in (mlp(), digits()):
        figures += networks(model, 3 if quick else 20)
    figures += long_chain(LONG // 10 if quick else LONG)
    return figures, {}


# Chains ----------------------------------------------------------------------------------------


def chain(length: int) -> tuple[so.Symbol, so.Symbol]:
    """A variable, and the repeated sine of it."""
    x = y = so.var("x", shape=())
    for _ in range(length):
        y = so.sin(y)
    return x, y


def chain_gradient(length: int) -> so.Symbol:
    """The derivative of a chain, built from scratch."""
    x, y = chain(length)
    return so.grad(y, x)


def jax_chain(sin: Callable[[Any], Any], length: int) -> Callable[[Any], Any]:
    """The same chain as a function; a new one each time, so that JAX traces it again."""

    def function(x: Any) -> Any:
        for _ in range(length):
            x = sin(x)
        return x

    return function


def chains(length: int, repeats: int) -> list[Figure]:
    """A chain and its gradient, against ``jnp.sin``; and against the bare primitive ``lax.sin``."""
    figures = []
    for name, sin, targets in (
        ("jnp.sin", jnp.sin, (0.5, 1.0)),
        ("lax.sin", lax.sin, (None, 1.0)),
    ):
        figures.append(
            compare(
                f"chain of {length:,}: against {name}",
                lambda: chain(length),
                lambda sin=sin: jax.make_jaxpr(jax_chain(sin, length))(1.0),
                repeats=repeats,
                target=targets[0],
            )
        )
        figures.append(
            compare(
                f"chain of {length:,}: its gradient against {name}",
                lambda: chain_gradient(length),
                lambda sin=sin: jax.make_jaxpr(jax.grad(jax_chain(sin, length)))(1.0),
                repeats=repeats,
                target=targets[1],
            )
        )
    return figures


def long_chain(length: int) -> list[Figure]:
    """Operations on a graph at a depth where recursion would fail, without a JAX counterpart.

    Equal nodes are interned, so building is timed while no equal graph exists.
    """
    figures = [long_figure(length, "build", partial(chain, length))]
    x, y = chain(length)
    figures.append(long_figure(length, "differentiate", partial(so.grad, y, x)))
    gradient = so.grad(y, x)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.json"
        figures.append(long_figure(length, "print the gradient", partial(str, gradient)))
        figures.append(long_figure(length, "save the gradient", partial(gradient.save, path)))
        del x, y, gradient
        figures.append(long_figure(length, "load the gradient", partial(so.load, path)))
    return figures


def long_figure(length: int, what: str, program: Callable[[], Any]) -> Figure:
    """The time of one operation on a long chain."""
    return alone(f"chain of {length:,}: {what}", program, repeats=3)


# Networks --------------------------------------------------------------------------------------


def networks(model: Model, repeats: int) -> list[Figure]:
    """A network's loss and its gradient, each built from scratch, against tracing it."""
    shapes = {name: jax.ShapeDtypeStruct(a.shape, a.dtype) for name, a in model.batch.items()}
    state = model.initial()
    given = (state.params, state.states, shapes, state.key)

    def loss() -> so.Symbol:
        return model.loss().with_types(**shapes)

    def gradient() -> list[so.Symbol]:
        built = loss()
        internals = built.get_internals()
        values = dict(zip(internals.list_outputs(), internals, strict=True))
        return so.grad(built, [values[name] for name in state.params])

    def traced(transform: Callable[..., Any]) -> Any:
        # A new function each time, because JAX caches the trace of an old one.
        by_hand = transform(lambda *args: model.by_hand(*args))  # noqa: PLW0108
        return jax.make_jaxpr(by_hand)(*given)

    return [
        compare(
            f"{model.name}: the loss",
            loss,
            lambda: traced(lambda function: function),
            repeats=repeats,
            target=0.5,
        ),
        compare(
            f"{model.name}: its gradient",
            gradient,
            lambda: traced(lambda function: jax.grad(function, has_aux=True)),
            repeats=repeats,
            target=1.0,
        ),
    ]
