"""Taylor series: derivatives of all orders along a curve."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from registry.errors import ArgumentError, ShapeError
from registry.tracebacks import api_boundary
from symop.differential_operators.functions import (
    array_at,
    array_of,
    at,
    is_function,
    require_differentiable,
    require_not_recording,
)
from symop.eager.ndarray import NDArray
from symop.graph.nodes import Node, placeholder
from symop.graph.rewriting import substitute
from symop.jaxprs.tracing import graph_of
from symop.orders import as_constant, whole_number
from symop.program.control_flow import also_on_variables
from symop.symbol import building
from symop.symbol.symbol import Symbol, to_node


@api_boundary
def taylor(
    u: Any, x: Any = None, series: Sequence[Any] | None = None, order: int | None = None
) -> Any:
    """Returns the derivatives of ``u`` along a path through ``x``, of orders 0 to ``order``.

    With the path ``x(s) = x + s v1 + s^2/2 v2 + ...``, the result holds ``d^n/ds^n u(x(s))`` at
    ``s = 0``. For one direction, ``so.taylor(u, x, [v], order=n)``, these are the derivatives along
    ``v``. Each order differentiates the graph of the order before, whose nodes it shares, so the
    graph grows as a polynomial of the order, through loops, too.

    Args:
        u: a symbol, or a list of symbols; or a function of arrays that returns an array or nested
            arrays.
        x: a symbol, the name of an argument, or a tuple of these; for a function, its argument, or
            a tuple of them. JAX arrays may be traced.
        series: the derivatives of the path, ``[v1, v2, ...]``, each like ``x``: a tuple if ``x`` is
            one. Those that are missing are zero.
        order: the highest order, by default the length of ``series``.

    Without ``x`` and ``series``, the result for a function is a function of these two.

    Returns:
        A list of ``order + 1`` values, each in the form of ``u`` or of its result: a list for
        several symbols.

    Raises:
        ArgumentError: ``order`` is not a whole number or is less than the length of ``series``, or
            a tuple has another length than ``x``.
        DTypeError: ``x`` or a value is neither of a floating nor of a complex dtype.
        ShapeError: a coefficient does not have the shape of its ``x``.

    Source: Griewank, Walther, Evaluating derivatives, 2008, chapter 13; ``jax.experimental.jet``
    computes the same.

    Example:
        >>> import jax.numpy as jnp, symop as so
        >>> x = so.var("x", shape=())
        >>> [float(one.eval(x=2.0)) for one in so.taylor(x * x * x, x, [1.0], order=3)]
        [8.0, 12.0, 12.0, 6.0]
        >>> [float(one) for one in so.taylor(lambda x: x**2, jnp.float32(3.0), [1.0, 2.0])]
        [9.0, 6.0, 14.0]
    """
    if series is None:
        return lambda x, series, order=order: taylor(u, x, series, order)
    several = isinstance(x, (tuple, list))
    paths = [tuple(one) if several else (one,) for one in series]
    xs = tuple(x) if several else (x,)
    highest = len(paths) if order is None else whole_number(order)
    if highest is None or highest < len(paths):
        raise ArgumentError(
            f"taylor: order must be a whole number of at least {len(paths)}, the length of series, "
            f"got {order!r}"
        )
    if any(len(one) != len(xs) for one in paths):
        raise ArgumentError(
            f"taylor: coefficients must have one part for each x ({len(xs)}), got "
            f"{[len(one) for one in paths]} parts"
        )
    if is_function(u):
        return _taylor_at(u, xs, paths, highest)
    results = _taylor_of_symbols(building.as_list(u), list(xs), paths, highest)
    several = isinstance(u, (list, tuple)) or len(results[0]) > 1
    return results if several else [one for (one,) in results]


def _taylor_at(
    u: Callable[..., Any], xs: Sequence[Any], paths: Sequence[Sequence[Any]], order: int
) -> list[Any]:
    """Returns the derivatives of a function at arrays."""
    eager = any(isinstance(one, NDArray) for one in xs)
    if eager:
        require_not_recording("taylor")
    arrays = [array_at("taylor", one) for one in xs]
    graph = graph_of(u, arrays, caller="taylor")
    n_out, width = len(graph.nodes), len(xs)
    flat = [
        jnp.asarray(array_of(one), x.dtype)
        for path in paths
        for one, x in zip(path, arrays, strict=True)
    ]

    def build(inputs: list[Symbol], more: list[Symbol]) -> list[Symbol]:
        split = [more[i : i + width] for i in range(0, len(more), width)]
        outputs = [Symbol([one], tuple(graph.inputs)) for one in graph.nodes]
        return [one for part in _taylor(outputs, inputs, split, order) for one in part]

    values = at(graph, arrays, flat, build)
    parts = [values[i : i + n_out] for i in range(0, len(values), n_out)]
    kept = [[NDArray(one) for one in part] if eager else part for part in parts]
    return [jax.tree.unflatten(graph.tree, part) for part in kept]


@also_on_variables
def _taylor_of_symbols(us: list[Any], xs: list[Any], paths: Any, order: int) -> Any:
    for one in us:
        if not isinstance(one, Symbol):
            raise ArgumentError(f"taylor: u must be a symbol or a function, got {one!r}")
    return _taylor(us, building.chosen("taylor", us, xs), paths, order)


def _taylor(
    us: Sequence[Symbol], xs: Sequence[Symbol], paths: Sequence[Sequence[Any]], order: int
) -> list[list[Symbol]]:
    """Returns the derivatives of each order, by differentiating along ``x, v1, v2, ...``."""
    require_differentiable("taylor", [*xs, *us])
    stand_ins = [
        [placeholder(f"v{k + 1}", x.node.type.strong()) for x in xs] for k in range(len(paths))
    ]
    moving = [list(xs), *([Symbol([one]) for one in part] for part in stand_ins)]
    before = [one for part in moving[:-1] for one in part]
    after = [one for part in moving[1:] for one in part]
    orders = [list(us)]
    for _ in range(order):
        orders.append(building.build_tangents(orders[-1], before, after, "zero"))
    values = [[_coefficient(one, x) for one, x in zip(path, xs, strict=True)] for path in paths]
    also = building.arguments_of(
        [*us, *xs, *(Symbol([one]) for part in values for one in part)], list(xs)
    )
    images = {
        one: value
        for part, held in zip(stand_ins, values, strict=True)
        for one, value in zip(part, held, strict=True)
    }
    return [[Symbol(substitute(one.nodes, images), also) for one in part] for part in orders]


def _coefficient(value: Any, x: Symbol) -> Node:
    """Returns a coefficient of a path as a node of the type of ``x``."""
    node = to_node(value if isinstance(value, Symbol) else as_constant(value, x.dtype))
    if node.type.shape != x.shape:
        raise ShapeError(
            f"taylor: a coefficient must have the shape of its x, {x.shape}, got {node.type.shape}"
        )
    return node
