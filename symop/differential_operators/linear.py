"""Partial derivatives, and linear combinations of them with coefficients."""

import functools
import inspect
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError
from registry.operator.bodies import bodies_of
from registry.operator.operator import Operator
from registry.table import get
from registry.tracebacks import api_boundary
from symop.differential_operators.functions import (
    array_at,
    array_of,
    at,
    is_function,
    require_differentiable,
    require_not_recording,
)
from symop.differential_operators.planning import Terms, along_each, is_number, pushes_of
from symop.differential_operators.pushing import Space, along, each_of, times, total_of
from symop.eager.ndarray import NDArray
from symop.graph.nodes import Node, constant, topological
from symop.jaxprs.tracing import JaxGraph, graph_of
from symop.orders import derivative, require_entrywise, whole_number
from symop.program.control_flow import also_on_variables
from symop.symbol import building
from symop.symbol.symbol import Symbol, to_node

# Partial derivatives -----------------------------------------------------------------------------


@api_boundary
def partial(u: Any, orders: Mapping[Any, int]) -> Any:
    """Returns a mixed partial derivative of ``u``, such as ``u_xxt`` for ``{x: 2, t: 1}``.

    Args:
        u: a symbol, of any shape; or a function of arrays that returns an array.
        orders: for each symbol the number of differentiations by it. A symbol has one entry, or
            ``u`` depends on it entry by entry; a pair ``(x, i)`` is the entry ``x[i]`` of a vector.
            For a function, the position or the name of an argument stands for a symbol.

    Returns:
        A symbol; for a function, a function of the same arguments: JAX arrays, traced or not, or
        eager arrays. Those that no key names may be nested arrays, such as parameters.

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
    if is_function(u):
        return _OfFunction("partial", u, [(1, orders)])
    return _partial(u, list(orders), list(orders.values()))


@also_on_variables
def _partial(u: Any, keys: Sequence[Any], orders: Sequence[Any]) -> Any:
    space, xs, ways = Space(), list[Symbol](), list[Any]()
    for number in _monomial("partial", u, space, keys, orders):
        x, entry = space.coordinates[number]
        xs.append(x)
        ways.append(None if entry is None else _unit(x, entry))
    if not xs:
        return u
    return derivative(u, tuple(xs), direction=tuple(ways), unreachable="zero")


def _unit(x: Symbol, entry: int) -> np.ndarray:
    unit = np.zeros(x.shape, x.dtype)
    unit[entry] = 1
    return unit


def _monomial(
    owner: str, u: Symbol, space: Space, keys: Sequence[Any], orders: Sequence[Any]
) -> tuple[int, ...]:
    """Returns the numbers of the coordinates by which a term differentiates, sorted."""
    numbers: list[int] = []
    for key, order in zip(keys, orders, strict=True):
        times = None if order is None else whole_number(order)
        if times is None or times < 0:
            raise ArgumentError(f"{owner}: orders must be integers of at least 0, got {order!r}")
        numbers += [space.number(*_coordinate(owner, u, key))] * times
    return tuple(sorted(numbers))


def _coordinate(owner: str, u: Symbol, key: Any) -> tuple[Symbol, int | None]:
    """Returns the symbol that a key names, and the index of an entry, or None for all of them."""
    pair = key if isinstance(key, tuple) else (key, None)
    xs = building.chosen(owner, [u], pair[0]) if len(pair) == 2 else []
    if len(xs) != 1 or not isinstance(xs[0], Symbol):
        raise ArgumentError(
            f"{owner}: a key must be a symbol, the name of an argument, or a pair of these and an "
            f"index, got {key!r}"
        )
    (x,), index = xs, pair[1]
    require_differentiable(owner, [x])
    if index is None:
        require_entrywise([u], x)
        return x, None
    entry = whole_number(index)
    if entry is None or len(x.shape) != 1 or not -x.shape[0] <= entry < x.shape[0]:
        raise ArgumentError(
            f"{owner}: the index in a key must be that of an entry of a vector, got {index!r} and "
            f"shape {x.shape}"
        )
    return x, entry % x.shape[0]


# Linear combinations -----------------------------------------------------------------------------


@api_boundary
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
    for one in terms:
        if not (isinstance(one, (tuple, list)) and len(one) == 2 and isinstance(one[1], Mapping)):
            raise ArgumentError(
                "linear_operator: a term must be a pair of a coefficient and a dictionary of "
                f"orders, got {one!r}"
            )
        if isinstance(one[0], str):
            raise ArgumentError(
                "linear_operator: a coefficient must be a number, an array, a symbol or a "
                f"function, got {one[0]!r}"
            )
    if is_function(u):
        return _OfFunction("linear_operator", u, terms)
    coefficients = [one for one, _ in terms]
    orders = [(list(one), list(one.values())) for _, one in terms]
    return also_on_variables(_combination)("linear_operator", u, coefficients, orders)


def _combination(
    owner: str,
    u: Symbol,
    coefficients: Sequence[Any],
    orders: Sequence[tuple[Sequence[Any], Sequence[Any]]],
) -> Symbol:
    if not isinstance(u, Symbol):
        raise ArgumentError(f"{owner}: u must be a symbol or a function, got {u!r}")
    require_differentiable(owner, [u])
    space = Space()
    sums = _Sums(u, space)
    known = [_coefficient(one, u) for one in coefficients]
    for one, (keys, numbers) in zip(known, orders, strict=True):
        sums.add(one, _monomial(owner, u, space, keys, numbers))
    also = [one for one in known if isinstance(one, Symbol)]
    xs = [one for one, _ in space.coordinates]
    return Symbol([sums.total()], building.arguments_of([u, *also, *xs], xs))


def _coefficient(value: Any, u: Symbol) -> Any:
    """Returns a finite number, or a symbol."""
    if isinstance(value, Symbol) or (is_number(value) and math.isfinite(value)):
        return value
    array = array_of(value)
    known = not isinstance(array, jax.core.Tracer) and jnp.ndim(array) == 0
    if known and not jnp.iscomplexobj(array) and jnp.result_type(array, u.dtype) == u.dtype:
        return float(array) if math.isfinite(array) else Symbol([constant(float(array), u.type)])
    return Symbol([to_node(array)])


class _Sums:
    """The terms of an operator by monomial.

    Attributes:
        folded: by order, those whose coefficients are numbers or symbols of one entry, which are
            summed before the last step.
        apart: those whose coefficients have axes, or another dtype than ``u``.
    """

    def __init__(self, u: Symbol, space: Space) -> None:
        self._u, self._space = u, space
        self.folded: dict[int, dict[tuple[int, ...], Any]] = defaultdict(dict)
        self.apart: dict[tuple[int, ...], Any] = {}

    def add(self, coefficient: Any, monomial: tuple[int, ...]) -> None:
        """Adds a term."""
        folds = is_number(coefficient) or self._folds(coefficient, monomial)
        terms = self.folded[len(monomial)] if folds else self.apart
        terms[monomial] = terms[monomial] + coefficient if monomial in terms else coefficient

    def _folds(self, coefficient: Symbol, monomial: tuple[int, ...]) -> bool:
        xs = [self._space.coordinates[i][0] for i in monomial]
        # Inside of the sum, an infinity would meet zeros, the entries of directions.
        return (
            coefficient.node.constant is None
            and coefficient.shape == ()
            and jnp.result_type(coefficient.dtype, self._u.dtype) == self._u.dtype
            and all(x.dtype == self._u.dtype for x in xs)
        )

    def total(self) -> Node:
        """Returns the sum of all terms."""
        extra = {i: one for (i,), one in self.folded[1].items()}
        parts = [times(self._u.node, one) for one in self.folded[0].values()]
        spans = not any(map(_has_body, topological(self._u.nodes)))
        for order in sorted(self.folded):
            for push in pushes_of(self.folded[order], spans=spans) if order > 1 else ():
                total, added = total_of(self._u, self._space, push, extra)
                parts.append(total)
                extra = {} if added else extra
        if extra:
            parts.append(along(self._u, self._space, extra))
        return functools.reduce(get("add"), [*parts, *self._apart()])

    def _apart(self) -> list[Node]:
        values = [times(self._u.node, one) for key, one in self.apart.items() if not key]
        rest: Terms = {key: one for key, one in self.apart.items() if key}
        for push in along_each(rest):
            if len(push.coefficients) == 1:
                values.append(total_of(self._u, self._space, push, {})[0])
            else:
                values.append(_weighted(each_of(self._u, self._space, push), push.coefficients))
        return values


def _has_body(node: Node) -> bool:
    """Whether ``node`` is a loop or the like, but not a plain call, which is its body."""
    if not isinstance(node.op, Operator) or node.op.family is get("call"):
        return False
    return bool(bodies_of(node.attributes))


def _weighted(stacked: Node, coefficients: Sequence[Symbol]) -> Node:
    """Returns the sum of the slices of ``stacked``, each times a coefficient with axes."""
    count, *shape = stacked.type.shape
    full = np.broadcast_shapes(tuple(shape), *(one.shape for one in coefficients))
    weights = get("stack")(*[get("broadcast_to")(one.node, shape=full) for one in coefficients])
    aligned = (count, *(1,) * (len(full) - len(shape)), *shape)
    products = get("multiply")(get("reshape")(stacked, shape=aligned), weights)
    total: Node = get("sum")(products, axis=0)
    return total


# Of functions ------------------------------------------------------------------------------------


class _OfFunction:
    """A linear combination of partial derivatives of a function, as a function."""

    def __init__(
        self, owner: str, u: Callable[..., Any], terms: Sequence[tuple[Any, Mapping[Any, int]]]
    ) -> None:
        self._owner, self._u = owner, u
        self._coefficients = [one for one, _ in terms]
        self._orders = [orders for _, orders in terms]
        for one in self._coefficients:
            if isinstance(one, Symbol):
                raise ArgumentError(
                    f"{owner}: a coefficient of a function must be a number, an array or a "
                    f"function of the same arguments, got the symbol {one!r}; make a symbol of the "
                    "function by from_jax"
                )

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Returns the value of the operator for arguments of the function, by name, too.

        Those that no key names may be nested arrays.
        """
        args, options = self._bound(args, options)
        if any(isinstance(one, NDArray) for one in args):
            require_not_recording(self._owner)
            return NDArray(self(*map(array_of, args), **options))
        places = {self._place(key, len(args)) for orders in self._orders for key in orders}
        examples = [
            array_at(self._owner, one) if i in places else jax.tree.map(jnp.asarray, one)
            for i, one in enumerate(args)
        ]
        function = functools.partial(self._with_coefficients, options)
        graph = graph_of(function, examples, caller=self._owner)
        if len(graph.nodes) != 1 + sum(map(callable, self._coefficients)):
            raise ArgumentError(
                f"{self._owner}: the function and its coefficients must return one array each, "
                f"got {len(graph.nodes)} arrays"
            )
        starts = [0, *itertools.accumulate(len(jax.tree.leaves(one)) for one in examples)]
        leaves = jax.tree.leaves(examples)
        others = [array_of(one) for one in self._coefficients if self._is_array(one)]

        def build(inputs: list[Symbol], more: list[Symbol]) -> list[Symbol]:
            named = {i: inputs[starts[i]] for i in places}
            return [self._built(graph, len(args), named, more)]

        (result,) = at(graph, leaves, others, build)
        return result

    def _bound(
        self, args: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns arguments by position where the function takes them so, and the others."""
        if not options:
            return args, options
        bound = inspect.signature(self._u).bind(*args, **options)
        return bound.args, bound.kwargs

    def _is_array(self, coefficient: Any) -> bool:
        """Whether a coefficient is an array, which may be traced and is an argument of the graph.

        A number is part of the graph.
        """
        if is_number(coefficient) or callable(coefficient):
            return False
        return isinstance(coefficient, jax.core.Tracer) or np.ndim(array_of(coefficient)) > 0

    def _with_coefficients(self, options: Mapping[str, Any], *args: Any) -> list[Any]:
        """Returns the function, and the coefficients that are functions."""
        functions = (self._u, *filter(callable, self._coefficients))
        return [one(*args, **options) for one in functions]

    def _built(
        self, graph: JaxGraph, count: int, named: Mapping[int, Symbol], others: Sequence[Symbol]
    ) -> Symbol:
        u, *factors = [Symbol([one], tuple(graph.inputs)) for one in graph.nodes]
        computed, arrays = iter(factors), iter(others)
        coefficients = [
            next(computed) if callable(one) else next(arrays) if self._is_array(one) else one
            for one in self._coefficients
        ]
        orders = [
            ([self._named(key, count, named) for key in one], list(one.values()))
            for one in self._orders
        ]
        return _combination(self._owner, u, coefficients, orders)

    def _named(self, key: Any, count: int, named: Mapping[int, Symbol]) -> Any:
        """Returns the symbol of an argument, or its pair with an index."""
        symbol = named[self._place(key, count)]
        return (symbol, key[1]) if _is_pair(key) else symbol

    def _place(self, key: Any, count: int) -> int:
        """Returns the position of the argument that a key names, among ``count``."""
        one = key[0] if _is_pair(key) else key
        names = list(inspect.signature(self._u).parameters) if isinstance(one, str) else []
        place = names.index(one) if one in names else whole_number(one)
        if place is None or not -count <= place < count:
            raise ArgumentError(
                f"{self._owner}: the function must have an argument {one!r}, got {count} arguments"
            )
        return place % count


def _is_pair(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 2
