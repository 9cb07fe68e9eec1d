"""Higher-order derivatives: directional and mixed ones, Jacobians, Hessians and their products.

Each is a graph. Nodes are interned, so that derivatives of lower order are shared: the size of the
graph is polynomial in the order, whereas that of nested ``jax.grad`` is exponential.
"""

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import (
    ArgumentError,
    DTypeError,
    GradientError,
    NotDifferentiableError,
    NotLinearError,
)
from registry.table import get
from registry.tracebacks import api_boundary
from registry.var import Value
from symop import sym
from symop.graph.nodes import Node, built_at, placeholder, topological
from symop.graph.rewriting import substitute
from symop.lowering.entrywise import is_entrywise
from symop.program.control_flow import also_on_variables
from symop.symbol import building
from symop.symbol.symbol import Symbol
from symop.vectorizing import vmap

Mode = Literal["forward", "reverse"]
Unreachable = Literal["error", "zero"]


@overload
def derivative(
    y: Value,
    x: Any,
    order: int | None = None,
    *,
    direction: Any = None,
    mode: Mode = "forward",
    unreachable: Unreachable = "error",
) -> Value: ...


@overload
def derivative(
    y: Sequence[Value],
    x: Any,
    order: int | None = None,
    *,
    direction: Any = None,
    mode: Mode = "forward",
    unreachable: Unreachable = "error",
) -> list[Value]: ...


@api_boundary
@also_on_variables
def derivative(
    y: Any,
    x: Any,
    order: int | None = None,
    *,
    direction: Any = None,
    mode: Mode = "forward",
    unreachable: Unreachable = "error",
) -> Any:
    """Returns a derivative of ``y`` with respect to ``x``, of any order, or a mixed derivative.

    Forward mode is applied ``order`` times to one graph of interned nodes: computations of the
    lower orders are shared, and the graph's size is polynomial in the order.

    Args:
        y: a symbol or a list of symbols, of any shape.
        x: a symbol or the name of an argument. It must have one entry, unless ``y`` depends on it
            entry by entry or a ``direction`` is given. A tuple gives a mixed derivative:
            ``(x, x, t)`` differentiates twice by ``x`` and once by ``t``.
        order: the number of differentiations, by default one; not allowed with a tuple.
        direction: an array of the shape of ``x``; the result is
            ``d^n/ds^n y(x + s * direction)`` at zero. For a tuple ``x``, a tuple of directions,
            where None stands for ones. A direction that depends on ``x`` is held fixed: it is not
            differentiated.
        mode: ``"forward"``; or ``"reverse"``, which takes gradients of gradients. The cost of
            reverse mode grows with the order, but it works for operators without forward mode.
        unreachable: what to do when ``y`` does not depend on some ``x``: raise an error, or return
            zeros.

    Returns:
        The derivatives, in the form of ``y``, each with the shape of its value.

    Raises:
        ArgumentError: ``order`` is not a non-negative integer, or is given together with a tuple;
            or a value is not a symbol.
        GradientError: ``x`` has several entries, ``y`` does not depend on it entry by entry, and no
            direction is given; or, in reverse mode, a value is not a scalar and does not depend on
            ``x`` entry by entry.
        DisconnectedError: ``y`` does not depend on ``x``.
        NotDifferentiableError: the derivative is undefined.

    Example:
        >>> import symop as so
        >>> x, t = so.var("x", shape=()), so.var("t", shape=())
        >>> u = so.sin(x) * so.exp(-t)
        >>> print(so.derivative(so.tanh(x), x, order=2))
        (x: float[]) {
          tanh0: float32[] = tanh(x)
        <BLANKLINE>
          # gradient of tanh
          multiply0: float32[] = multiply(tanh0, tanh0)
          subtract0: float32[] = subtract(1.0, multiply0)
        <BLANKLINE>
          # gradient of multiply
          multiply1: float32[] = multiply(subtract0, tanh0)
        <BLANKLINE>
          # gradient of d0
          add0: float32[] = add(multiply1, multiply1)
        <BLANKLINE>
          # gradient of negative
          negative0: float32[] = negative(add0)
        } -> negative0
        >>> float(so.derivative(u, (x, x, t)).eval(x=1.5707964, t=0.0))
        1.0
    """
    _checked(mode)
    symbols = _symbols("derivative", y)
    xs = _symbols("derivative", building.chosen("derivative", symbols, _times(x, order)))
    if not xs:
        return y
    directions = _ways(xs, x, direction)
    ways, held = _held(xs, directions)
    for one in dict.fromkeys(one for one, way in zip(xs, ways, strict=True) if way is None):
        require_entrywise(symbols, one)
    start, alongs = symbols, [_along(one, way) for one, way in zip(xs, ways, strict=True)]
    for i, (one, along) in enumerate(zip(xs, alongs, strict=True)):
        if i and unreachable == "error" and not any(one.node is x.node for x in xs[:i]):
            _moved(start, one, along, mode, "error")  # raises as for the first x
        symbols = _moved(symbols, one, along, mode, "zero" if i else unreachable)
    if held:
        also = building.arguments_of([*start, *directions], xs)
        symbols = [Symbol(substitute(one.nodes, held), also) for one in symbols]
    return symbols if isinstance(y, (list, tuple)) or len(symbols) > 1 else symbols[0]


def _symbols(owner: str, values: Any) -> list[Symbol]:
    """Returns ``values`` as a list of symbols.

    Raises:
        ArgumentError: a value is not a symbol.
    """
    for one in building.as_list(values):
        if not isinstance(one, Symbol):
            raise ArgumentError(
                f"{owner}: symbols or variables of a program must be given, got a "
                f"{type(one).__name__}; so.grad and so.jvp differentiate functions of arrays, and "
                "so.autograd.grad what so.autograd records"
            )
    return building.as_list(values)


def _along(x: Symbol, way: Any) -> Any:
    """Returns the tangent of ``x`` for the direction ``way``; None stands for ones."""
    if way is None:
        return get("ones_like")(x)
    return way if isinstance(way, Symbol) else as_constant(way, x.dtype)


def as_constant(value: Any, dtype: Any) -> Any:
    """Returns an array of ``dtype`` that a graph can hold, even while JAX traces the caller."""
    array = jnp if isinstance(value, jax.Array) else np
    return array.asarray(value, dtype)


def _held(xs: Sequence[Symbol], ways: list[Any]) -> tuple[list[Any], Mapping[Node, Node]]:
    """Returns the directions, with placeholders for those that depend on ``xs``, and the values.

    The values are the nodes that the placeholders stand for, by placeholder.
    """
    stand_ins: dict[Node, Node] = {}
    roots = {x.node for x in xs}
    for way in ways:
        if isinstance(way, Symbol) and not roots.isdisjoint(topological([way.node])):
            stand_ins.setdefault(way.node, placeholder("direction", way.type.strong()))
    held = [
        Symbol([stand_ins[way.node]]) if isinstance(way, Symbol) and way.node in stand_ins else way
        for way in ways
    ]
    return held, {one: way for way, one in stand_ins.items()}


def _times(x: Any, order: int | None) -> list[Any]:
    """Returns the variables of differentiation, in order; a single one ``order`` times."""
    if isinstance(x, (tuple, list)):
        if order is not None:
            raise ArgumentError(
                f"derivative: several x are taken once each, without an order, got order={order}"
            )
        return list(x)
    count = whole_number(order)
    if count is None or count < 0:
        raise ArgumentError(f"derivative: the order must be a whole number >= 0, got {order!r}")
    return [x] * count


def whole_number(order: Any) -> int | None:
    """Returns ``order`` as an int, 1 for None; None if it is not a Python or NumPy integer."""
    if order is None:
        return 1
    try:
        return None if isinstance(order, (bool, np.bool_)) else operator.index(order)
    except TypeError:
        return None


def _ways(xs: Sequence[Symbol], x: Any, direction: Any) -> list[Any]:
    """Returns the direction of each differentiation; None stands for ones."""
    if not (isinstance(x, (tuple, list)) and isinstance(direction, (tuple, list))):
        return [direction] * len(xs)
    if len(direction) != len(xs):
        raise ArgumentError(
            f"derivative: directions must be one for each x ({len(xs)}), got {len(direction)}"
        )
    return list(direction)


def require_entrywise(ys: Sequence[Symbol], x: Symbol) -> None:
    """Refuses a derivative by an array of several entries on which values depend jointly.

    Raises:
        GradientError: an entry of a value depends on another entry of ``x`` than its own.
    """
    if math.prod(x.shape) == 1:
        return
    for y in ys:
        if not is_entrywise(y.node, x.node):
            raise GradientError(
                f"derivative: by an array of shape {x.shape}, each entry of the value must depend "
                "on the same entry alone, and does not; pass a direction, or use jacobian"
                f"{built_at(y.node.origin)}"
            )


def _moved(
    ys: Sequence[Symbol], x: Symbol, way: Any, mode: Mode, unreachable: Unreachable
) -> list[Symbol]:
    """Returns the tangents of ``ys`` for the tangent ``way`` of ``x``."""
    if _checked(mode) == "forward":
        return list(building.build_tangents(list(ys), [x], [way], unreachable))
    return [_pulled(y, x, way, unreachable) for y in ys]


def _pulled(y: Symbol, x: Symbol, way: Any, unreachable: Unreachable) -> Symbol:
    """Implements ``_moved`` in reverse mode, for a scalar or an entrywise function of ``x``."""
    if y.shape != () and not is_entrywise(y.node, x.node):
        raise GradientError(
            f"derivative: in reverse mode the value must be a scalar, got {y.type}"
            f"{built_at(y.node.origin)}"
        )
    product: Symbol = building.build_gradients(y, x, unreachable=unreachable) * way
    return product if y.shape == x.shape else get("sum")(product)


def _checked(mode: Any) -> Mode:
    if mode not in ("forward", "reverse"):
        raise ArgumentError(f"mode: it must be 'forward' or 'reverse', got {mode!r}")
    chosen: Mode = mode
    return chosen


# Jacobians -------------------------------------------------------------------------------------


@api_boundary
@also_on_variables
def jacobian(
    ys: Any, xs: Any, *, mode: Mode | None = None, unreachable: Unreachable = "error"
) -> Any:
    """Returns the Jacobian of ``ys`` with respect to ``xs``: ``out[i, j] = dy[i] / dx[j]``.

    One ``vmap`` operator pushes forward all basis vectors of ``x``, or pulls back those of ``y``,
    so the graph does not grow with their number.

    Args:
        ys: a symbol or a list of symbols, of any known shape.
        xs: a symbol or a list of symbols, of real floating dtypes.
        mode: ``"forward"`` costs about one run for each entry of ``x``, ``"reverse"`` one for each
            entry of ``y``. By default the cheaper one is used, or the other one if an operator on
            the path does not support it.
        unreachable: what to do when one of ``ys`` does not depend on one of ``xs``: raise an error,
            or return zeros.

    Returns:
        A symbol of shape ``y.shape + x.shape``; for a list of ``xs`` a list of them, and for a list
        of ``ys`` a list of the results of each.

    Raises:
        DisconnectedError: one of ``ys`` does not depend on one of ``xs``.
        DTypeError: one of ``xs`` or ``ys`` is not of a real floating dtype.
        NotLinearError: a gradient on the path, such as that of a loss layer, is not linear in its
            cotangent. With ``mode="reverse"``, this is no error: each row is the gradient that the
            layer returns for one entry.
        NotDifferentiableError: a derivative is undefined.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> so.jacobian(so.exp(x) * so.sum(x), x).eval(x=[0.0, 0.0]).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    y_list = _symbols("jacobian", ys)
    x_list = _symbols("jacobian", building.chosen("jacobian", y_list, xs))
    _require_real("jacobian", [*y_list, *x_list])
    rows = [[_block(y, x, mode, unreachable) for x in x_list] for y in y_list]
    several = isinstance(xs, (list, tuple)) or len(x_list) > 1
    inner = rows if several else [row[0] for row in rows]
    return inner if isinstance(ys, (list, tuple)) or len(y_list) > 1 else inner[0]


def _require_real(owner: str, values: Sequence[Symbol]) -> None:
    for one in values:
        if not jnp.issubdtype(one.dtype, jnp.floating):
            raise DTypeError(f"{owner}: the dtypes must be real and floating, got {one.type}")


def _block(y: Symbol, x: Symbol, mode: Mode | None, unreachable: Unreachable) -> Symbol:
    """Returns the Jacobian of one ``y`` by one ``x``, with their arguments even if constant."""
    block = _computed(y, x, mode, unreachable)
    return Symbol(block.nodes, building.arguments_of([y, x], [x]))


def _computed(y: Symbol, x: Symbol, mode: Mode | None, unreachable: Unreachable) -> Symbol:
    if mode is not None:
        return _BLOCKS[_checked(mode)](y, x, unreachable)
    wide = math.prod(x.shape) > math.prod(y.shape)
    first, second = (_by_rows, _by_columns) if wide else (_by_columns, _by_rows)
    if wide and y.shape != ():
        _require_linear(y, x)
    try:
        return first(y, x, unreachable)
    except NotLinearError:
        raise
    except NotDifferentiableError as error:
        try:
            return second(y, x, unreachable)
        except NotDifferentiableError:
            raise error from None


def _require_linear(y: Symbol, x: Symbol) -> None:
    """Rejects a gradient that is not linear in its cotangent, which has no Jacobian.

    Raises:
        NotLinearError: the gradient is not linear.
    """
    try:
        building.build_tangents(y, x, get("ones_like")(x), "zero")
    except NotLinearError:
        raise
    except NotDifferentiableError:
        return  # reverse mode may still work


def _by_columns(y: Symbol, x: Symbol, unreachable: Unreachable) -> Symbol:
    """Computes the Jacobian by forward mode along each basis vector of ``x``."""

    def column(way: Any) -> Symbol:
        result: Symbol = building.build_tangents(y, x, way, unreachable)
        return result

    if x.shape == ():
        return column(get("ones_like")(x))
    columns = vmap(column)(basis_of(x))
    return _shaped(get("moveaxis")(columns, source=0, destination=-1), (*y.shape, *x.shape))


def _by_rows(y: Symbol, x: Symbol, unreachable: Unreachable) -> Symbol:
    """Computes the Jacobian by reverse mode from each basis vector of ``y``."""

    def row(head: Any) -> Symbol:
        result: Symbol = building.build_gradients(y, x, head, unreachable)
        return result

    return row(None) if y.shape == () else _shaped(vmap(row)(basis_of(y)), (*y.shape, *x.shape))


_BLOCKS = {"forward": _by_columns, "reverse": _by_rows}


def basis_of(like: Symbol) -> Symbol:
    """Returns the standard basis for the type of ``like``, stacked along a new first axis."""
    count = math.prod(like.shape)
    rows: Symbol = sym.eye(n_rows=count, dtype=like.dtype.name)
    return _shaped(rows, (count, *like.shape))


def _shaped(x: Symbol, shape: tuple[int, ...]) -> Symbol:
    shaped: Symbol = x if x.shape == shape else get("reshape")(x, shape=shape)
    return shaped


@api_boundary
@also_on_variables
def hessian(y: Any, xs: Any, *, mode: Mode = "forward") -> Any:
    """Returns the Hessian of a scalar: ``out[i, j] = d^2 y / dx[i] dx[j]``.

    Args:
        y: a symbol of shape ``()``.
        xs: a symbol or a list of symbols, of real floating dtypes.
        mode: the mode that differentiates the gradient. ``"reverse"`` works for operators without
            forward mode.

    Returns:
        A symbol of shape ``x.shape + x.shape``; for a list, a list of lists with the block of each
        pair.

    Raises:
        GradientError: ``y`` is not of shape ``()``.
        DisconnectedError: ``y`` does not depend on one of ``xs``.
        NotDifferentiableError: a derivative is undefined.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> so.hessian(x[0] * x[0] * x[1], x).eval(x=[1.0, 2.0]).tolist()
        [[4.0, 2.0], [2.0, 0.0]]
    """
    x_list = _arguments("hessian", y, xs)
    _require_real("hessian", [y, *x_list])
    slopes = building.build_gradients(y, x_list)
    rows = [[_block(slope, x, mode, "zero") for x in x_list] for slope in slopes]
    return rows if isinstance(xs, (list, tuple)) or len(x_list) > 1 else rows[0][0]


@api_boundary
@also_on_variables
def hvp(y: Any, xs: Any, vs: Any) -> Any:
    """Returns the product of the Hessian of a scalar with a vector, without forming the Hessian.

    It is computed by forward mode over the gradient and costs a few runs of ``y``, regardless of
    the size of ``xs``.

    Args:
        y: a symbol of shape ``()``.
        xs: a symbol or a list of symbols.
        vs: the vector for each of ``xs``, of the same shape.

    Returns:
        ``sum_j d^2 y / dx[i] dx[j] v[j]`` for each of ``xs``.

    Raises:
        GradientError: ``y`` is not of shape ``()``.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> so.hvp(so.sum(x * x * x), x, [1.0, 0.0]).eval(x=[1.0, 2.0]).tolist()
        [6.0, 0.0]
    """
    x_list = _arguments("hvp", y, xs)
    several = isinstance(xs, (list, tuple)) or len(x_list) > 1
    ways = building.as_list(vs) if several else [vs]
    if len(ways) != len(x_list):
        raise ArgumentError(f"hvp: vectors must be one for each x ({len(x_list)}), got {len(ways)}")
    along = [_along(x, way) for x, way in zip(x_list, ways, strict=True)]
    tangents = building.build_tangents(building.build_gradients(y, x_list), x_list, along, "zero")
    return list(tangents) if several else tangents[0]


def _arguments(owner: str, y: Any, xs: Any) -> list[Symbol]:
    """Returns ``xs`` as a list of symbols; checks that ``y`` is a scalar."""
    values = _symbols(owner, y)
    if len(values) != 1 or isinstance(y, (list, tuple)) or values[0].shape != ():
        got = "several" if not isinstance(y, Symbol) or len(values) != 1 else y.type
        raise GradientError(f"{owner}: the value must be one of shape (), got {got}")
    return _symbols(owner, building.chosen(owner, values, xs))
