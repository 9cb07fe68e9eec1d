"""Derivatives of higher order: along a scalar, mixed, Jacobians, Hessians and products with them.

Each is a graph. Equal nodes are one, so that derivatives of lower order are shared: the graph of
order ``n`` grows as a polynomial of ``n``, where nested ``jax.grad`` grows exponentially.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

from registry.errors import ArgumentError, DTypeError, GradientError, NotLinearError
from registry.table import get
from symop import building, sym
from symop.entrywise import is_entrywise
from symop.graph import built_at
from symop.symbol import Symbol
from symop.variable_flow import also_on_variables
from symop.vectorizing import vmap

Mode = Literal["forward", "reverse"]


@also_on_variables
def derivative(
    y: Any,
    x: Any,
    order: int | None = None,
    *,
    direction: Any = None,
    mode: Mode = "forward",
) -> Any:
    """The derivative of ``y`` along ``x``, of any order, or a mixed partial derivative.

    Forward mode, applied ``order`` times to one graph of equal nodes: what the derivatives of lower
    order compute is there once, and the graph grows as a polynomial of the order.

    Args:
        y: a symbol or a list of them, of any shape.
        x: a scalar; or an array, if ``y`` depends on it entry by entry, or along a ``direction``;
            or a tuple of them for a mixed derivative, ``(x, x, t)`` by ``x`` twice and ``t`` once.
        order: how often; once unless told. With a tuple each is taken once.
        direction: an array of the shape of ``x``: ``d^n/ds^n y(x + s * direction)`` at zero; of
            several ``x`` a tuple, one for each, None for ones.
        mode: ``"forward"``; or ``"reverse"``, which takes gradients of gradients. That costs more
            the higher the order, but passes operators that have no forward mode.

    Returns:
        In the form of ``y``, each of its own shape.

    Raises:
        ArgumentError: ``order`` is negative or no whole number, or there is one beside a tuple.
        GradientError: ``x`` is no scalar, ``y`` does not depend on it entry by entry, and no
            direction is given.
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
    xs = _times(x, order)
    if not xs:
        return y
    found = building.listed(y)
    ways = _ways(xs, x, direction)
    for one in dict.fromkeys(one for one, way in zip(xs, ways, strict=True) if way is None):
        _require_entrywise(found, one)
    for i, (one, way) in enumerate(zip(xs, ways, strict=True)):
        along = get("ones_like")(one) if way is None else way
        found = _moved(found, one, along, mode, "zero" if i else "error")
    return found if isinstance(y, (list, tuple)) or len(found) > 1 else found[0]


def _times(x: Any, order: int | None) -> list[Symbol]:
    """By what is differentiated, once and again."""
    if isinstance(x, (tuple, list)):
        if order is not None:
            raise ArgumentError(
                f"derivative: several x are taken once each, without an order, got order={order}"
            )
        return list(x)
    count = 1 if order is None else order
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ArgumentError(f"derivative: the order must be a whole number >= 0, got {order!r}")
    return [x] * count


def _ways(xs: Sequence[Symbol], x: Any, direction: Any) -> list[Any]:
    """A direction for each step, None where none is told."""
    if not (isinstance(x, (tuple, list)) and isinstance(direction, (tuple, list))):
        return [direction] * len(xs)
    if len(direction) != len(xs):
        raise ArgumentError(
            f"derivative: directions must be one for each x ({len(xs)}), got {len(direction)}"
        )
    return list(direction)


def _require_entrywise(ys: Sequence[Symbol], x: Symbol) -> None:
    if math.prod(x.shape) == 1:
        return
    for y in ys:
        if not is_entrywise(y.node, x.node):
            raise GradientError(
                f"derivative: by an array of shape {x.shape}, each entry of the value must depend "
                "on the same entry alone, and does not; pass a direction, or use jacobian"
                f"{built_at(y.node.origin)}"
            )


Unreachable = Literal["error", "zero"]


def _moved(
    ys: Sequence[Symbol], x: Symbol, way: Any, mode: Mode, unreachable: Unreachable
) -> list[Symbol]:
    """How ``ys`` change when ``x`` moves along ``way``."""
    if _checked(mode) == "forward":
        return list(building.jvp(list(ys), [x], [way], unreachable=unreachable))
    return [_pulled(y, x, way, unreachable) for y in ys]


def _pulled(y: Symbol, x: Symbol, way: Any, unreachable: Unreachable) -> Symbol:
    """``_moved`` by reverse mode: of a scalar, or of what depends on ``x`` entry by entry."""
    if y.shape != () and not is_entrywise(y.node, x.node):
        raise GradientError(
            f"derivative: in reverse mode the value must be a scalar, got {y.type}"
            f"{built_at(y.node.origin)}"
        )
    product: Symbol = building.grad(y, x, unreachable=unreachable) * way
    return product if y.shape == x.shape else get("sum")(product)


def _checked(mode: Any) -> Mode:
    if mode not in ("forward", "reverse"):
        raise ArgumentError(f"mode: it must be 'forward' or 'reverse', got {mode!r}")
    chosen: Mode = mode
    return chosen


# Jacobians -------------------------------------------------------------------------------------


@also_on_variables
def jacobian(ys: Any, xs: Any, *, mode: Mode | None = None) -> Any:
    """All derivatives of all entries: ``out[i, j] = dy[i] / dx[j]``.

    One operator, ``vmap``, moves along all axes of ``x`` at once, or pulls back all entries of
    ``y``; so the graph does not grow with their number.

    Args:
        ys: a symbol or a list of them, of any shape, which is known.
        xs: a symbol or a list of them, of a real dtype.
        mode: ``"forward"`` costs about one run for each entry of ``x``, ``"reverse"`` for each
            entry of ``y``. Unless told, the smaller number decides; an operator that has no
            forward mode is passed in reverse.

    Returns:
        One of shape ``y.shape + x.shape``; for a list of ``xs`` a list, for a list of ``ys`` a list
        of these.

    Raises:
        DisconnectedError: one of ``ys`` does not depend on one of ``xs``.
        DTypeError: one of ``xs`` or ``ys`` is not of a real floating dtype.
        NotDifferentiableError: a derivative is undefined.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> so.jacobian(so.exp(x) * so.sum(x), x).eval(x=[0.0, 0.0]).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    y_list, x_list = building.listed(ys), building.listed(xs)
    for one in (*y_list, *x_list):
        if one.dtype.kind != "f":
            raise DTypeError(f"jacobian: the dtypes must be real and floating, got {one.type}")
    rows = [[_block(y, x, mode, "error") for x in x_list] for y in y_list]
    inner = rows if isinstance(xs, (list, tuple)) else [row[0] for row in rows]
    return inner if isinstance(ys, (list, tuple)) or len(y_list) > 1 else inner[0]


def _block(y: Symbol, x: Symbol, mode: Mode | None, unreachable: Unreachable) -> Symbol:
    """One Jacobian, a function of what ``y`` and ``x`` are, also where it is constant."""
    found = _computed(y, x, mode, unreachable)
    return Symbol(found.nodes, building.arguments_of([y, x], [x]))


def _computed(y: Symbol, x: Symbol, mode: Mode | None, unreachable: Unreachable) -> Symbol:
    if mode is not None:
        return _BLOCKS[_checked(mode)](y, x, unreachable)
    if math.prod(x.shape) > math.prod(y.shape):
        return _by_rows(y, x, unreachable)
    try:
        return _by_columns(y, x, unreachable)
    except NotLinearError:
        return _by_rows(y, x, unreachable)


def _by_columns(y: Symbol, x: Symbol, unreachable: Unreachable) -> Symbol:
    """Forward mode along each axis of ``x``."""

    def column(way: Any) -> Symbol:
        found: Symbol = building.jvp(y, x, way, unreachable=unreachable)
        return found

    if x.shape == ():
        return column(get("ones_like")(x))
    columns = vmap(column)(_basis(x))
    return _shaped(get("moveaxis")(columns, source=0, destination=-1), (*y.shape, *x.shape))


def _by_rows(y: Symbol, x: Symbol, unreachable: Unreachable) -> Symbol:
    """Reverse mode from each entry of ``y``."""

    def row(head: Any) -> Symbol:
        found: Symbol = building.grad(y, x, head, unreachable=unreachable)
        return found

    return row(None) if y.shape == () else _shaped(vmap(row)(_basis(y)), (*y.shape, *x.shape))


_BLOCKS = {"forward": _by_columns, "reverse": _by_rows}


def _basis(like: Symbol) -> Symbol:
    """One array of the type of ``like`` for each of its entries, which is one there."""
    count = math.prod(like.shape)
    rows: Symbol = sym.eye(n_rows=count, dtype=like.dtype.name)
    return _shaped(rows, (count, *like.shape))


def _shaped(x: Symbol, shape: tuple[int, ...]) -> Symbol:
    shaped: Symbol = x if x.shape == shape else get("reshape")(x, shape=shape)
    return shaped


@also_on_variables
def hessian(y: Any, xs: Any, *, mode: Mode = "forward") -> Any:
    """The second derivatives of a scalar: ``out[i, j] = d^2 y / dx[i] dx[j]``.

    Args:
        y: a symbol of shape ``()``.
        xs: a symbol or a list of them, of a real dtype.
        mode: that of the outer derivative, of the gradient. ``"reverse"`` passes operators that
            have no forward mode.

    Returns:
        One of shape ``x.shape + x.shape``; for a list a list of lists, the block of each pair.

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
    slopes = _slopes("hessian", y, xs)
    if not isinstance(xs, (list, tuple)):
        return _block(slopes[0], xs, mode, "zero")
    return [[_block(slope, x, mode, "zero") for x in xs] for slope in slopes]


@also_on_variables
def hvp(y: Any, xs: Any, vs: Any) -> Any:
    """The product of the Hessian of a scalar with a vector, without the Hessian.

    Forward mode over the gradient: it costs a few runs of ``y``, whatever the size of ``xs``.

    Args:
        y: a symbol of shape ``()``.
        xs: a symbol or a list of them.
        vs: for each of ``xs`` the vector, of its shape.

    Returns:
        For each of ``xs``, ``sum_j d^2 y / dx[i] dx[j] v[j]``.

    Raises:
        GradientError: ``y`` is not of shape ``()``.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> so.hvp(so.sum(x * x * x), x, [1.0, 0.0]).eval(x=[1.0, 2.0]).tolist()
        [6.0, 0.0]
    """
    slopes = _slopes("hvp", y, xs)
    listed = isinstance(xs, (list, tuple))
    found = building.jvp(slopes, xs if listed else [xs], vs if listed else [vs], unreachable="zero")
    return list(found) if listed else found[0]


def _slopes(what: str, y: Symbol, xs: Any) -> list[Symbol]:
    if y.shape != ():
        raise GradientError(f"{what}: the value must be of shape (), got {y.type}")
    return list(building.grad(y, list(building.listed(xs))))
