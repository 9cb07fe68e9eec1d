"""Differential operators: Laplacian, divergence, curl, biharmonic operator, partial derivatives.

Each is a graph. The Laplacian and the operators like it are sums over directions, which are taken
before every operator that is linear in what depends on the direction: one pass through the graph
computes the value, its first derivatives along all directions, and the sum of the second ones.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from registry.errors import ArgumentError, DTypeError, ShapeError
from registry.table import get
from symop import autograd, sym
from symop.eager.ndarray import NDArray
from symop.graph.nodes import Node, built_at, placeholder
from symop.jaxprs.functions import graph_of
from symop.orders import derivative, jacobian
from symop.passes.collapse import sum_over_directions
from symop.program.control_flow import also_on_variables
from symop.symbol import building
from symop.symbol.symbol import Symbol

Operator = Callable[[Symbol, Symbol], Symbol]


# Sums over directions ----------------------------------------------------------------------------


def laplacian(u: Any, x: Any) -> Any:
    """Returns the Laplacian of ``u``: the sum of its second derivatives by each entry of ``x``.

    It costs one pass that carries the value, the first derivatives by each entry of ``x``, and the
    sum of the second derivatives (the forward Laplacian). JAX's trace of a Hessian carries the
    second derivatives by each entry.

    Args:
        u: a symbol of any shape, whose entries are differentiated one by one; or a function of one
            array.
        x: a symbol or the name of an argument; for a function, the array at which its Laplacian is
            computed: a JAX array, inside ``jax.jit`` and other transformations, too, or an
            ``NDArray`` outside of ``autograd.record()``. Call it under ``jax.jit``: the graph is
            built in each call.

    Returns:
        A symbol of the type of ``u``; for a function, an array of the kind of ``x``.

    Raises:
        DTypeError: ``u`` or ``x`` is not of a real floating dtype.
        NotDifferentiableError: a derivative is undefined.

    Source: Li, Ye, Li, et al., A computational framework for neural network-based variational Monte
    Carlo with Forward Laplacian, Nature Machine Intelligence, 2024; Dangel, Siebert, Zeinhofer,
    Walther, Collapsing Taylor mode automatic differentiation, NeurIPS 2025.

    Example:
        >>> import jax.numpy as jnp, symop as so
        >>> x = so.var("x", shape=(3,))
        >>> float(so.laplacian(so.sum(x * x * x), x).eval(x=[1.0, 2.0, 3.0]))
        36.0
        >>> float(so.laplacian(lambda x: jnp.sum(x**3), jnp.asarray([1.0, 2.0, 3.0])))
        36.0
    """
    return _apply("laplacian", _laplacian, u, x)


def biharmonic(u: Any, x: Any) -> Any:
    """Returns the Laplacian of the Laplacian of ``u``; arguments are those of ``laplacian``.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> float(so.biharmonic(so.sum(x * x) * so.sum(x * x), x).eval(x=[1.0, 2.0]))
        64.0
    """
    return _apply("biharmonic", lambda u, x: _laplacian(_laplacian(u, x), x), u, x)


def divergence(u: Any, x: Any) -> Any:
    """Returns the divergence of a vector field: the sum of ``du[i] / dx[i]``.

    Args:
        u: a symbol of the shape of ``x``; or a function of one array that returns such an array.
        x: as for ``laplacian``.

    Raises:
        ShapeError: ``u`` does not have the shape of ``x``.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> float(so.divergence(x * x, x).eval(x=[1.0, 2.0]))
        6.0
    """
    return _apply("divergence", _divergence, u, x)


def curl(u: Any, x: Any) -> Any:
    """Returns the curl of a vector field in three dimensions.

    Args:
        u: a symbol of shape ``(3,)``; or a function of one array that returns such an array.
        x: as for ``laplacian``, of shape ``(3,)``.

    Raises:
        ShapeError: ``u`` or ``x`` does not have shape ``(3,)``.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(3,))
        >>> rotation = so.stack(x[2] - x[1], x[0], x[1])
        >>> so.curl(rotation, x).eval(x=[1.0, 2.0, 3.0]).tolist()
        [1.0, 1.0, 2.0]
    """
    return _apply("curl", _curl, u, x)


def _laplacian(u: Symbol, x: Symbol) -> Symbol:
    direction = placeholder("direction", x.node.type.strong())
    moved = u
    for _ in range(2):
        moved = building.build_tangents(moved, x, Symbol([direction]), "zero")
    return _summed(moved, u, x, direction)


def _divergence(u: Symbol, x: Symbol) -> Symbol:
    if u.shape != x.shape:
        raise ShapeError(
            f"divergence: the field must have the shape of x, {x.shape}, got {u.shape}"
            f"{built_at(u.node.origin)}"
        )
    direction = placeholder("direction", x.node.type.strong())
    moved = building.build_tangents(u, x, Symbol([direction]), "zero")
    return _summed(get("sum")(moved * Symbol([direction])), u, x, direction)


def _summed(value: Symbol, u: Symbol, x: Symbol, direction: Node) -> Symbol:
    """Returns the sum of ``value`` over the standard basis of ``x`` in place of ``direction``."""
    count = math.prod(x.shape)
    rows = sym.eye(n_rows=count, dtype=x.dtype.name)
    basis = get("reshape")(rows, shape=(count, *x.shape))
    nodes = sum_over_directions(value.nodes, direction, basis.node)
    return Symbol(nodes, building.arguments_of([u, x], [x]))


def _curl(u: Symbol, x: Symbol) -> Symbol:
    if u.shape != (3,) or x.shape != (3,):
        raise ShapeError(
            f"curl: the field and x must have shape (3,), got {u.shape} and {x.shape}"
            f"{built_at(u.node.origin)}"
        )
    slopes = jacobian(u, x, mode="forward", unreachable="zero")
    parts = [slopes[2, 1] - slopes[1, 2], slopes[0, 2] - slopes[2, 0], slopes[1, 0] - slopes[0, 1]]
    result: Symbol = get("stack")(*parts)
    return result


# Partial derivatives -----------------------------------------------------------------------------


def partial(u: Any, orders: Mapping[Any, int]) -> Any:
    """Returns a mixed partial derivative of ``u``, such as ``u_xxt`` for ``{x: 2, t: 1}``.

    Args:
        u: a symbol, of any shape.
        orders: for each symbol the number of differentiations by it. A symbol has one entry, or
            ``u`` depends on it entry by entry; a pair ``(x, i)`` is the entry ``x[i]`` of a vector.

    Raises:
        ArgumentError: an order is not a non-negative integer, or an index is outside of ``x``.

    Example:
        >>> import symop as so
        >>> x, t = so.var("x", shape=()), so.var("t", shape=())
        >>> u = x * x * x * so.exp(t)
        >>> float(so.partial(u, {x: 2, t: 1}).eval(x=2.0, t=0.0))
        12.0
    """
    return _partial(u, tuple(orders), tuple(orders.values()))


@also_on_variables
def _partial(u: Any, keys: Sequence[Any], orders: Sequence[int]) -> Any:
    xs, ways = list[Symbol](), list[Any]()
    for key, order in zip(keys, orders, strict=True):
        if not isinstance(order, int) or order < 0:
            raise ArgumentError(f"partial: orders must be integers of at least 0, got {order!r}")
        x, way = _direction(key)
        xs += [x] * order
        ways += [way] * order
    if not xs:
        return u
    return derivative(u, tuple(xs), direction=tuple(ways), unreachable="zero")


def _direction(key: Any) -> tuple[Any, Any]:
    """Returns the symbol that a key of ``partial`` names, and the direction, or None for ones."""
    if not isinstance(key, tuple):
        return key, None
    x, index = key
    if len(x.shape) != 1 or not -x.shape[0] <= index < x.shape[0]:
        raise ArgumentError(
            f"partial: ({x.name!r}, {index}) must be an entry of a vector, got shape {x.shape}"
        )
    return x, jnp.zeros(x.shape, x.dtype).at[index].set(1)


def linear_operator(u: Any, terms: Sequence[tuple[Any, Mapping[Any, int]]]) -> Any:
    """Returns a linear combination of partial derivatives of ``u``.

    Args:
        u: a symbol, of any shape.
        terms: pairs of a coefficient, a number or a symbol that may depend on the coordinates, and
            the orders of a partial derivative as in ``partial``.

    Raises:
        ArgumentError: there is no term.

    Example:
        >>> import symop as so
        >>> x, t = so.var("x", shape=()), so.var("t", shape=())
        >>> u = so.exp(-t) * so.sin(x)
        >>> heat = so.linear_operator(u, [(1.0, {t: 1}), (-1.0, {x: 2})])
        >>> float(heat.eval(x=1.0, t=0.5))
        0.0
    """
    if not terms:
        raise ArgumentError("linear_operator: there must be at least one term, got none")
    first, *rest = [coefficient * partial(u, orders) for coefficient, orders in terms]
    for one in rest:
        first = first + one
    return first


# Symbols, variables and functions ----------------------------------------------------------------


def _apply(name: str, operator: Operator, u: Any, x: Any) -> Any:
    if callable(u) and not isinstance(u, Symbol):
        return _at(name, operator, u, x)
    return _on_symbols(name, operator, u, x)


def _on_symbols(name: str, operator: Operator, u: Any, x: Any) -> Any:
    def build(u: Any, x: Any) -> Any:
        (one,) = building.chosen(name, building.as_list(u), x)
        for value in (u, one):
            if not isinstance(value, Symbol):
                raise ArgumentError(f"{name}: u and x must be symbols, got {value!r}")
            if not jnp.issubdtype(value.dtype, jnp.floating):
                raise DTypeError(f"{name}: u and x must be real and floating, got {value.type}")
        return operator(u, one)

    return also_on_variables(build)(u, x)


def _at(name: str, operator: Operator, u: Callable[[Any], Any], x: Any) -> Any:
    """Returns the operator applied to the function ``u`` at the array ``x``."""
    if isinstance(x, NDArray):
        if autograd.is_recording():
            raise ArgumentError(
                f"{name}: at an NDArray it cannot be recorded; take a symbol, or a JAX array and "
                "jax.grad"
            )
        return NDArray(_at(name, operator, u, x.value))
    if isinstance(x, Symbol):
        return _on_symbols(name, operator, u(x), x)
    x = jnp.asarray(x)
    graph = graph_of(u, [x])
    if len(graph.nodes) != 1:
        raise ArgumentError(f"{name}: the function must return one array, got {len(graph.nodes)}")
    result = _on_symbols(name, operator, graph.symbol, Symbol(graph.inputs))
    (variable,) = graph.names
    return result.to_jax()(**graph.captured, **{variable: x})
