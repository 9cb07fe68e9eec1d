"""Differential operators: Laplacian, divergence, curl, biharmonic operator, partial derivatives.

Each is a graph. The Laplacian and the operators like it are sums over directions, which are taken
before every operator that is linear in what depends on the direction: one pass through the graph
computes the value, its first derivatives along all directions, and the sum of the second ones.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, DTypeError, ShapeError
from registry.table import get
from symop import autograd, sym
from symop.eager.ndarray import NDArray
from symop.graph.nodes import Node, built_at, placeholder, variable
from symop.graph.rewriting import substitute
from symop.jaxprs.functions import JaxGraph, graph_of
from symop.orders import as_constant, derivative, jacobian
from symop.passes.collapse import sum_over_directions
from symop.program.control_flow import also_on_variables
from symop.symbol import building
from symop.symbol.symbol import Symbol, to_node

Operator = Callable[..., Symbol]
"""Builds a symbol from ``u``, ``x`` and further symbols."""


# Sums over directions ----------------------------------------------------------------------------


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
    return _apply("laplacian", _laplacian, u, x, _as_others(directions))


def biharmonic(u: Any, x: Any = None, *, directions: Any = None) -> Any:
    """Returns the Laplacian of the Laplacian of ``u``; arguments are those of ``laplacian``.

    An estimate needs ``directions`` of the standard normal distribution: it is a third of the mean
    of the fourth derivatives along them. By Isserlis' theorem, ``E[v_i v_j v_k v_l]`` is the sum of
    three products of Kronecker deltas, each of which gives the biharmonic operator.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> float(so.biharmonic(so.sum(x * x) * so.sum(x * x), x).eval(x=[1.0, 2.0]))
        64.0
    """
    return _apply("biharmonic", _biharmonic, u, x, _as_others(directions))


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
    return _apply("divergence", _divergence, u, x, _as_others(directions))


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
    return _apply("curl", _curl, u, x)


def _as_others(directions: Any) -> list[Any]:
    return [] if directions is None else [directions]


def _laplacian(u: Symbol, x: Symbol, directions: Any = None) -> Symbol:
    moved, direction = _along_direction(u, x, 2)
    return _summed(moved, u, x, direction, directions)


def _biharmonic(u: Symbol, x: Symbol, directions: Any = None) -> Symbol:
    if directions is None:
        return _laplacian(_laplacian(u, x), x)
    moved, direction = _along_direction(u, x, 4)
    estimate: Symbol = get("scale")(_summed(moved, u, x, direction, directions), scale=1 / 3)
    return estimate


def _divergence(u: Symbol, x: Symbol, directions: Any = None) -> Symbol:
    if u.shape != x.shape:
        raise ShapeError(
            f"divergence: the field must have the shape of x, {x.shape}, got {u.shape}"
            f"{built_at(u.node.origin)}"
        )
    moved, direction = _along_direction(u, x, 1)
    return _summed(get("sum")(moved * Symbol([direction])), u, x, direction, directions)


def _along_direction(u: Symbol, x: Symbol, order: int) -> tuple[Symbol, Node]:
    """Returns the derivative of ``u`` along a placeholder, and the placeholder."""
    direction = placeholder("direction", x.node.type.strong())
    moved = u
    for _ in range(order):
        moved = building.build_tangents(moved, x, Symbol([direction]), "zero")
    return moved, direction


def _summed(value: Symbol, u: Symbol, x: Symbol, direction: Node, directions: Any) -> Symbol:
    """Returns the sum of ``value`` over the standard basis of ``x`` in place of ``direction``.

    If there are ``directions``, it is the mean over these.
    """
    if directions is None:
        nodes = sum_over_directions(value.nodes, direction, _basis(x), standard=True)
        return Symbol(nodes, building.arguments_of([u, x], [x]))
    chosen = to_node(directions)
    if chosen.type.shape[1:] != x.shape or chosen.ndim != x.ndim + 1 or not chosen.type.shape[0]:
        raise ShapeError(
            f"directions: they must be of shape (n, {', '.join(map(str, x.shape))}), at least one, "
            f"got {chosen.type.shape}"
        )
    nodes = sum_over_directions(value.nodes, direction, chosen)
    total = Symbol(nodes, building.arguments_of([u, x, Symbol([chosen])], [x]))
    mean: Symbol = get("scale")(total, scale=1 / chosen.type.shape[0])
    return mean


def _basis(x: Symbol) -> Node:
    """Returns the standard basis for the type of ``x``, stacked along a first axis."""
    count = math.prod(x.shape)
    rows = sym.eye(n_rows=count, dtype=x.dtype.name)
    basis: Symbol = get("reshape")(rows, shape=(count, *x.shape))
    return basis.node


def random_directions(key: Any, count: int, like: Any, distribution: str = "rademacher") -> Any:
    """Returns random vectors ``v`` with ``E[v v^T] = I``, stacked along a first axis.

    They are the ``directions`` of an estimate of ``laplacian``, ``divergence`` or ``biharmonic``.

    Args:
        key: a random key of JAX.
        count: the number of vectors.
        like: an array or ``jax.ShapeDtypeStruct`` with the shape and dtype of ``x``.
        distribution: ``"rademacher"``: entries are -1 or 1, for which the estimate of a trace has
            the smallest variance among vectors of independent entries; ``"normal"``: the standard
            normal distribution, which ``biharmonic`` needs; ``"basis"``: vectors of the standard
            basis, drawn without replacement and multiplied by the square root of their number.

    Raises:
        ArgumentError: the distribution has another name, or ``count`` exceeds the size of the
            basis.

    Example:
        >>> import jax, jax.numpy as jnp, symop as so
        >>> x = jnp.ones(100)
        >>> v = so.random_directions(jax.random.key(0), 10, x)
        >>> float(so.laplacian(lambda x: jnp.sum(x**3), x, directions=v))
        600.0
    """
    if distribution not in _DISTRIBUTIONS:
        raise ArgumentError(
            f"random_directions: the distribution must be one of {', '.join(_DISTRIBUTIONS)}, got "
            f"{distribution!r}"
        )
    return _DISTRIBUTIONS[distribution](key, (count, *like.shape), like.dtype)


def _sampled_basis(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    count, size = shape[0], math.prod(shape[1:])
    if count > size:
        raise ArgumentError(f"random_directions: count must be at most {size}, got {count}")
    rows = jax.random.permutation(key, size)[:count]
    basis = jax.nn.one_hot(rows, size, dtype=dtype).reshape(shape)
    return jnp.sqrt(jnp.asarray(size, dtype)) * basis


_DISTRIBUTIONS: Mapping[str, Callable[..., Any]] = {
    "rademacher": jax.random.rademacher,
    "normal": jax.random.normal,
    "basis": _sampled_basis,
}


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
        u: a symbol, of any shape; or a function of arrays that returns an array.
        orders: for each symbol the number of differentiations by it. A symbol has one entry, or
            ``u`` depends on it entry by entry; a pair ``(x, i)`` is the entry ``x[i]`` of a vector.
            For a function, the position or the name of an argument stands for a symbol.

    Returns:
        A symbol; for a function, a function of the same arguments: JAX arrays, traced or not, or
        eager arrays.

    Raises:
        ArgumentError: an order is not a non-negative integer, an index is outside of ``x``, or a
            function has no such argument.

    Example:
        >>> import symop as so
        >>> x, t = so.var("x", shape=()), so.var("t", shape=())
        >>> u = x * x * x * so.exp(t)
        >>> float(so.partial(u, {x: 2, t: 1}).eval(x=2.0, t=0.0))
        12.0
        >>> float(so.partial(lambda x, t: x**3 * t, {"x": 2, "t": 1})(2.0, 0.0))
        12.0
    """
    if _is_function(u):
        return linear_operator(u, [(1, orders)])
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
    way = np.zeros(x.shape, x.dtype)
    way[index] = 1
    return x, way


def linear_operator(u: Any, terms: Sequence[tuple[Any, Mapping[Any, int]]]) -> Any:
    """Returns a linear combination of partial derivatives of ``u``.

    Args:
        u: a symbol, of any shape; or a function of arrays that returns an array.
        terms: pairs of a coefficient and the orders of a partial derivative as in ``partial``. A
            coefficient is a number, an array, or a symbol that may depend on the coordinates; for a
            function, also a function of the same arguments.

    Returns:
        A symbol; for a function, a function of the same arguments.

    Raises:
        ArgumentError: there is no term.

    Example:
        >>> import jax.numpy as jnp, symop as so
        >>> x, t = so.var("x", shape=()), so.var("t", shape=())
        >>> u = so.exp(-t) * so.sin(x)
        >>> heat = so.linear_operator(u, [(1.0, {t: 1}), (-1.0, {x: 2})])
        >>> float(heat.eval(x=1.0, t=0.5))
        0.0
        >>> euler = so.linear_operator(lambda x: x**3, [(lambda x: x * x, {0: 2}), (-6.0, {})])
        >>> float(euler(jnp.float32(2.0)))
        0.0
    """
    if not terms:
        raise ArgumentError("linear_operator: there must be at least one term, got none")
    if _is_function(u):
        return _OfFunction(u, terms)
    return _combined([(coefficient, partial(u, orders)) for coefficient, orders in terms])


def _combined(terms: Sequence[tuple[Any, Any]]) -> Any:
    """Returns the sum of products."""
    first, *rest = [
        value if isinstance(coefficient, (int, float)) and coefficient == 1 else coefficient * value
        for coefficient, value in terms
    ]
    for one in rest:
        first = first + one
    return first


class _OfFunction:
    """A linear combination of partial derivatives of a function, as a function."""

    def __init__(
        self, u: Callable[..., Any], terms: Sequence[tuple[Any, Mapping[Any, int]]]
    ) -> None:
        self._u = u
        self._coefficients = [one for one, _ in terms]
        self._orders = [orders for _, orders in terms]

    def __call__(self, *args: Any) -> Any:
        """Returns the value of the operator at arrays."""
        if any(isinstance(one, NDArray) for one in args):
            _require_not_recording("linear_operator")
            return NDArray(self(*[_array(one) for one in args]))
        arrays = [jnp.asarray(one) for one in args]
        graph = graph_of(self._with_coefficients, arrays)
        if len(graph.nodes) != 1 + sum(map(callable, self._coefficients)):
            raise ArgumentError(
                "linear_operator: the function and its coefficients must return one array each, "
                f"got {len(graph.nodes)} arrays"
            )
        (result,) = _at(graph, arrays, (), lambda inputs, _: [self._built(graph, inputs)])
        return result

    def _with_coefficients(self, *args: Any) -> list[Any]:
        """Returns the function, and the coefficients that are functions."""
        return [one(*args) for one in (self._u, *filter(callable, self._coefficients))]

    def _built(self, graph: JaxGraph, inputs: Sequence[Symbol]) -> Symbol:
        u, *factors = [Symbol([one], tuple(graph.inputs)) for one in graph.nodes]
        more = iter(factors)
        coefficients = [next(more) if callable(one) else one for one in self._coefficients]
        values = [partial(u, self._of_symbols(orders, inputs)) for orders in self._orders]
        result: Symbol = _combined(list(zip(coefficients, values, strict=True)))
        return result

    def _of_symbols(self, orders: Mapping[Any, int], inputs: Sequence[Symbol]) -> dict[Any, int]:
        """Returns orders by symbols; a name and a position may be the same argument."""
        result: dict[Any, int] = {}
        for key, order in orders.items():
            symbol = self._named(key, inputs)
            result[symbol] = result.get(symbol, 0) + order
        return result

    def _named(self, key: Any, inputs: Sequence[Symbol]) -> Any:
        """Returns the symbol of an argument, or its pair with an index."""
        if isinstance(key, tuple):
            return self._named(key[0], inputs), key[1]
        names = list(inspect.signature(self._u).parameters) if isinstance(key, str) else []
        place = names.index(key) if key in names else key
        if not isinstance(place, int) or not -len(inputs) <= place < len(inputs):
            raise ArgumentError(
                f"partial: the function must have an argument {key!r}, got {len(inputs)} arguments"
            )
        return inputs[place]


# Taylor series -----------------------------------------------------------------------------------


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
        A list of ``order + 1`` values, each in the form of ``u`` or of its result.

    Raises:
        ArgumentError: ``order`` is less than the length of ``series``, or a tuple has another
            length than ``x``.
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
    if order is None:
        order = len(paths)
    if order < len(paths) or any(len(one) != len(xs) for one in paths):
        raise ArgumentError(
            f"taylor: series must have at most {order} coefficients, each with one part for each x "
            f"({len(xs)}), got {len(paths)} with {[len(one) for one in paths]} parts"
        )
    if _is_function(u):
        return _taylor_at(u, xs, paths, order)
    results = _taylor_of_symbols(building.as_list(u), list(xs), paths, order)
    return results if isinstance(u, (list, tuple)) else [one for (one,) in results]


def _taylor_at(
    u: Callable[..., Any], xs: Sequence[Any], paths: Sequence[Sequence[Any]], order: int
) -> list[Any]:
    """Returns the derivatives of a function at arrays."""
    eager = any(isinstance(one, NDArray) for one in xs)
    if eager:
        _require_not_recording("taylor")
    arrays = [jnp.asarray(_array(one)) for one in xs]
    graph = graph_of(u, arrays)
    n_out, width = len(graph.nodes), len(xs)
    flat = [
        jnp.asarray(_array(one), x.dtype)
        for path in paths
        for one, x in zip(path, arrays, strict=True)
    ]

    def build(inputs: list[Symbol], more: list[Symbol]) -> list[Symbol]:
        split = [more[i : i + width] for i in range(0, len(more), width)]
        outputs = [Symbol([one], tuple(graph.inputs)) for one in graph.nodes]
        return [one for part in _taylor(outputs, inputs, split, order) for one in part]

    values = _at(graph, arrays, flat, build)
    parts = [values[i : i + n_out] for i in range(0, len(values), n_out)]
    kept = [[NDArray(one) for one in part] if eager else part for part in parts]
    return [jax.tree.unflatten(graph.tree, part) for part in kept]


def _array(value: Any) -> Any:
    return value.value if isinstance(value, NDArray) else value


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


# Symbols, variables and functions ----------------------------------------------------------------


def _apply(name: str, operator: Operator, u: Any, x: Any, others: Sequence[Any] = ()) -> Any:
    if x is None and _is_function(u):
        return lambda x: _apply(name, operator, u, x, others)
    if isinstance(x, NDArray):
        return _eagerly(name, operator, u, x, others)
    if not _is_function(u):
        return _on_symbols(name, operator, u, x, others)
    if isinstance(x, Symbol):
        return _on_symbols(name, operator, u(x), x, others)
    graph = graph_of(u, [jnp.asarray(x)])
    if len(graph.nodes) != 1:
        raise ArgumentError(f"{name}: the function must return one array, got {len(graph.nodes)}")
    (result,) = _at(
        graph, [x], others, lambda x, more: [_on_symbols(name, operator, graph.symbol, x[0], more)]
    )
    return result


def _is_function(u: Any) -> bool:
    return callable(u) and not isinstance(u, Symbol)


def _require_not_recording(name: str) -> None:
    if autograd.is_recording():
        raise ArgumentError(
            f"{name}: at an NDArray it cannot be recorded; take a symbol, or a JAX array and "
            "jax.grad"
        )


def _eagerly(name: str, operator: Operator, u: Any, x: NDArray, others: Sequence[Any]) -> Any:
    _require_not_recording(name)
    more = [one.value if isinstance(one, NDArray) else one for one in others]
    return NDArray(_apply(name, operator, u, x.value, more))


def _on_symbols(name: str, operator: Operator, u: Any, x: Any, others: Sequence[Any]) -> Any:
    def build(u: Any, x: Any, others: Any) -> Any:
        (one,) = building.chosen(name, building.as_list(u), x)
        for value in (u, one):
            if not isinstance(value, Symbol):
                raise ArgumentError(f"{name}: u and x must be symbols, got {value!r}")
            if not jnp.issubdtype(value.dtype, jnp.floating):
                raise DTypeError(f"{name}: u and x must be real and floating, got {value.type}")
        return operator(u, one, *others)

    return also_on_variables(build)(u, x, list(others))


def _at(
    graph: JaxGraph,
    arrays: Sequence[Any],
    others: Sequence[Any],
    build: Callable[[list[Symbol], list[Symbol]], list[Symbol]],
) -> list[Any]:
    """Returns what ``build`` makes of the arguments of a graph and of ``others``, at arrays."""
    more = [jnp.asarray(one) for one in others]
    variables = [variable(f"other{i}", one.shape, one.dtype) for i, one in enumerate(more)]
    results = build([Symbol([one]) for one in graph.inputs], [Symbol([one]) for one in variables])
    values = {**graph.captured, **dict(zip(graph.names, map(jnp.asarray, arrays), strict=True))}
    values |= {f"other{i}": one for i, one in enumerate(more)}
    group = building.Group(results)
    computed = group.to_jax()(**{name: values[name] for name in group.list_arguments()})
    return list(computed) if len(results) > 1 else [computed]
