"""Laplacian, divergence, curl and biharmonic operator, or estimates of them.

Each is a graph. The Laplacian and the operators like it are sums over directions, which are taken
before every operator that is linear in what depends on the direction: one pass through the graph
computes the value, its first derivatives along all directions, and the sum of the second ones.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from registry.errors import ArgumentError, DTypeError, ShapeError
from registry.table import get
from registry.tracebacks import api_boundary
from symop.differential_operators.batching import at_once
from symop.differential_operators.functions import apply, array_of
from symop.graph.nodes import Node, built_at, placeholder
from symop.orders import basis_of, jacobian
from symop.passes.collapse import sum_over_directions
from symop.symbol import building
from symop.symbol.symbol import Symbol, to_node


@api_boundary
def laplacian(u: Any, x: Any = None, *, directions: Any = None) -> Any:
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
            built in each call. Without ``x``, the result is a function of it.
        directions: for an estimate, random vectors ``v`` like ``x``, stacked along a first axis.
            The result is then the mean of the second derivatives along them, whose expectation is
            the Laplacian if ``E[v v^T]`` is the identity: see ``so.random_directions``.

    Returns:
        A symbol of the type of ``u``; for a function, an array of the kind of ``x``.

    Raises:
        DTypeError: ``u`` or ``x`` is not of a real floating dtype.
        ShapeError: ``directions`` do not have the shape of ``x`` after their first axis.
        NotDifferentiableError: a derivative is undefined.

    Source: Li, Ye, Li, et al., A computational framework for neural network-based variational Monte
    Carlo with Forward Laplacian, Nature Machine Intelligence, 2024; Dangel, Siebert, Zeinhofer,
    Walther, Collapsing Taylor mode automatic differentiation, NeurIPS 2025. The estimate:
    Hutchinson, A stochastic estimator of the trace of the influence matrix, 1990; Hu, Shi,
    Karniadakis, Kawaguchi, Stochastic Taylor derivative estimator, NeurIPS 2024.

    Example:
        >>> import jax.numpy as jnp, symop as so
        >>> x = so.var("x", shape=(3,))
        >>> float(so.laplacian(so.sum(x * x * x), x).eval(x=[1.0, 2.0, 3.0]))
        36.0
        >>> float(so.laplacian(lambda x: jnp.sum(x**3), jnp.asarray([1.0, 2.0, 3.0])))
        36.0
        >>> float(so.laplacian(lambda x: jnp.sum(x**3))(jnp.asarray([1.0, 2.0, 3.0])))
        36.0
    """
    return apply("laplacian", _laplacian, u, x, _as_others(directions))


@api_boundary
def biharmonic(u: Any, x: Any = None, *, directions: Any = None) -> Any:
    """Returns the Laplacian of the Laplacian of ``u``; arguments are those of ``laplacian``.

    An estimate is the mean of the fourth derivatives twice along one direction and twice along the
    next one, the first one following the last. Its expectation is exact for ``directions`` that are
    drawn independently, of any distribution with ``E[v v^T] = I``: signs or the normal
    distribution, but not vectors of the basis that are drawn without replacement.

    Raises:
        ArgumentError: ``directions`` are vectors of the standard basis, so far as they are known
            before the graph runs.
        ShapeError: there are less than two ``directions``.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> float(so.biharmonic(so.sum(x * x) * so.sum(x * x), x).eval(x=[1.0, 2.0]))
        64.0
    """
    _require_independent(directions)
    return apply("biharmonic", _biharmonic, u, x, _as_others(directions))


@api_boundary
def divergence(u: Any, x: Any = None, *, directions: Any = None) -> Any:
    """Returns the divergence of a vector field: the sum of ``du[i] / dx[i]``.

    Args:
        u: a symbol of the shape of ``x``; or a function of one array that returns such an array.
        x: as for ``laplacian``.
        directions: as for ``laplacian``; the estimate is the mean of ``v @ (du/dx) @ v``.

    Raises:
        ShapeError: ``u`` does not have the shape of ``x``.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> float(so.divergence(x * x, x).eval(x=[1.0, 2.0]))
        6.0
    """
    return apply("divergence", _divergence, u, x, _as_others(directions))


@api_boundary
def curl(u: Any, x: Any = None) -> Any:
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
    return apply("curl", _curl, u, x)


def _as_others(directions: Any) -> list[Any]:
    return [] if directions is None else [directions]


def _require_independent(directions: Any) -> None:
    """Refuses vectors of the standard basis, of which no two are equal, so not independent.

    Raises:
        ArgumentError: all vectors are of the standard basis, times a factor.
    """
    array = array_of(directions)
    if not isinstance(array, (np.ndarray, jax.Array)) or isinstance(array, jax.core.Tracer):
        return
    if array.ndim > 1 and math.prod(array.shape[1:]) > 1:
        rows = np.asarray(array).reshape(len(array), -1)
        if (np.count_nonzero(rows, axis=1) == 1).all():
            raise ArgumentError(
                "biharmonic: directions must be drawn independently, as random vectors of signs or "
                "of the normal distribution, got vectors of the standard basis"
            )


def _laplacian(u: Symbol, x: Symbol, directions: Any = None) -> Symbol:
    moved, along = _derivative(u, x, [2])
    if directions is None:
        return _over_basis(moved, u, x, along[0])
    return _mean(moved, u, x, along, _stacked("laplacian", directions, x))


def _biharmonic(u: Symbol, x: Symbol, directions: Any = None) -> Symbol:
    if directions is None:
        return _laplacian(at_once(_laplacian(u, x)), x)
    moved, along = _derivative(u, x, [2, 2])
    return _mean(moved, u, x, along, _stacked("biharmonic", directions, x, least=2))


def _divergence(u: Symbol, x: Symbol, directions: Any = None) -> Symbol:
    if u.shape != x.shape:
        raise ShapeError(
            f"divergence: the field must have the shape of x, {x.shape}, got {u.shape}"
            f"{built_at(u.node.origin)}"
        )
    moved, along = _derivative(u, x, [1])
    product: Symbol = get("sum")(moved * Symbol(along))
    if directions is None:
        return _over_basis(product, u, x, along[0])
    return _mean(product, u, x, along, _stacked("divergence", directions, x))


def _derivative(u: Symbol, x: Symbol, orders: Sequence[int]) -> tuple[Symbol, list[Node]]:
    """Returns a derivative of ``u``, with an order along each of the placeholders returned."""
    along = [placeholder(f"direction{i}", x.node.type.strong()) for i in range(len(orders))]
    moved = u
    for order, one in zip(orders, along, strict=True):
        for _ in range(order):
            moved = building.build_tangents(moved, x, Symbol([one]), "zero")
    return moved, along


def _over_basis(value: Symbol, u: Symbol, x: Symbol, direction: Node) -> Symbol:
    """Returns the sum of ``value`` over the standard basis of ``x`` in place of ``direction``."""
    series = {direction: basis_of(x).node}
    nodes = sum_over_directions(value.nodes, series, standard=True)
    return Symbol(nodes, building.arguments_of([u, x], [x]))


def _mean(value: Symbol, u: Symbol, x: Symbol, along: Sequence[Node], stacked: Node) -> Symbol:
    """Returns the mean of ``value`` over directions.

    The second of two placeholders stands for the direction before that of the first.
    """
    ways = [stacked, *(get("roll")(stacked, shift=1, axis=0) for _ in along[1:])]
    nodes = sum_over_directions(value.nodes, dict(zip(along, ways, strict=True)))
    total = Symbol(nodes, building.arguments_of([u, x, Symbol([stacked])], [x]))
    mean: Symbol = get("scale")(total, scale=1 / stacked.type.shape[0])
    return mean


def _stacked(owner: str, directions: Any, x: Symbol, least: int = 1) -> Node:
    """Returns directions as a node."""
    node = to_node(directions)
    if node.type.shape[1:] != x.shape or node.ndim != x.ndim + 1 or node.type.shape[0] < least:
        number = "two" if least == 2 else "one"
        raise ShapeError(
            f"{owner}: directions must be of shape (n, {', '.join(map(str, x.shape))}), at least "
            f"{number}, got {node.type.shape}"
        )
    if node.type.dtype != x.dtype:
        raise DTypeError(
            f"{owner}: directions must be of the dtype of x, {x.dtype.name}, got "
            f"{node.type.dtype.name}"
        )
    return node


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
