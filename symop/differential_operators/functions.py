"""Differential operators at symbols, variables of programs, and arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from registry.errors import ArgumentError, DTypeError
from symop import autograd
from symop.eager.ndarray import NDArray
from symop.graph.nodes import variable
from symop.jaxprs.tracing import JaxGraph, graph_of, numbers
from symop.program.control_flow import also_on_variables
from symop.symbol import building
from symop.symbol.symbol import Symbol

Build = Callable[..., Symbol]
"""Builds a symbol from ``u``, ``x`` and further symbols."""


def apply(name: str, build: Build, u: Any, x: Any, others: Sequence[Any] = ()) -> Any:
    """Returns a differential operator of a symbol, or of a function at an array.

    Without ``x``, the result for a function is a function.
    """
    if x is None and is_function(u):
        return lambda x: apply(name, build, u, x, others)
    if isinstance(x, NDArray):
        require_not_recording(name)
        return NDArray(apply(name, build, u, x.value, [array_of(one) for one in others]))
    if not is_function(u):
        return _on_symbols(name, build, u, x, others)
    if isinstance(x, Symbol):
        return _on_symbols(name, build, u(x), x, others)
    point = array_at(name, x)
    graph = graph_of(u, [point], caller=name)
    if len(graph.nodes) != 1:
        raise ArgumentError(f"{name}: the function must return one array, got {len(graph.nodes)}")
    (result,) = at(
        graph,
        [point],
        others,
        lambda xs, more: [_on_symbols(name, build, graph.symbol, xs[0], more)],
    )
    return result


def is_function(u: Any) -> bool:
    """Whether ``u`` is a function of arrays, and not a symbol."""
    return callable(u) and not isinstance(u, Symbol)


def array_of(value: Any) -> Any:
    """Returns the array that an eager array holds; other values are unchanged."""
    return value.value if isinstance(value, NDArray) else value


def array_at(name: str, value: Any) -> jax.Array:
    """Returns what a function is differentiated by as an array of JAX.

    Raises:
        ArgumentError: it is not an array.
    """
    try:
        return jnp.asarray(array_of(value))
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{name}: what is differentiated by must be an array, got a {type(value).__name__}; "
            "jax.flatten_util.ravel_pytree makes one array of nested ones"
        ) from error


def require_not_recording(name: str) -> None:
    """Refuses an eager array while calls are recorded.

    Raises:
        ArgumentError: they are.
    """
    if autograd.is_recording():
        raise ArgumentError(
            f"{name}: at an NDArray it cannot be recorded; take a symbol, or a JAX array and "
            "jax.grad"
        )


def require_differentiable(name: str, values: Sequence[Symbol]) -> None:
    """Refuses values that have no derivatives.

    Raises:
        DTypeError: one is neither of a floating nor of a complex dtype.
    """
    for one in values:
        if not one.type.differentiable:
            raise DTypeError(
                f"{name}: what is differentiated must be of a floating or complex dtype, got "
                f"{one.type}"
            )


def _on_symbols(name: str, build: Build, u: Any, x: Any, others: Sequence[Any]) -> Any:
    def build_typed(u: Any, x: Any, others: Any) -> Any:
        (one,) = building.chosen(name, building.as_list(u), x)
        for value in (u, one):
            if not isinstance(value, Symbol):
                raise ArgumentError(
                    f"{name}: u must be a symbol or a function, and x a symbol or an array, got "
                    f"{value!r}"
                )
            if not jnp.issubdtype(value.dtype, jnp.floating):
                raise DTypeError(f"{name}: u and x must be real and floating, got {value.type}")
        return build(u, one, *others)

    return also_on_variables(build_typed)(u, x, list(others))


def at(
    graph: JaxGraph,
    arrays: Sequence[Any],
    others: Sequence[Any],
    build: Callable[[list[Symbol], list[Symbol]], list[Symbol]],
) -> list[jax.Array]:
    """Returns what ``build`` makes of the arguments of a graph and of ``others``, at arrays."""
    more = [jnp.asarray(one) for one in others]
    variables = [variable(f"other{i}", one.shape, one.dtype) for i, one in enumerate(more)]
    results = build([Symbol([one]) for one in graph.inputs], [Symbol([one]) for one in variables])
    values = {**graph.captured, **dict(zip(graph.names, map(numbers, arrays), strict=True))}
    values |= {f"other{i}": one for i, one in enumerate(more)}
    group = building.Group(results)
    computed = group.to_jax()(**{name: values[name] for name in group.list_arguments()})
    return [jnp.asarray(one) for one in (computed if len(results) > 1 else [computed])]
