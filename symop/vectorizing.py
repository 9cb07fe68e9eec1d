"""``so.vmap``: vectorizing map over slices of values of any kind."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from registry.errors import ArgumentError
from registry.table import get
from registry.tracebacks import api_boundary
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.eager import control_flow as eager_flow
from symop.eager.ndarray import NDArray
from symop.program.block import Variable
from symop.program.control_flow import on_variables
from symop.symbol import control_flow as symbol_flow
from symop.symbol.control_flow import flat
from symop.symbol.symbol import Symbol

Axes = Sequence[int | None]


@api_boundary
def vmap(
    f: Callable[..., Any], in_axes: int | Sequence[int | None] | None = 0
) -> Callable[..., Any]:
    """Maps ``f`` over slices of its arguments; stacks the results along a new first axis.

    The signature follows ``jax.vmap``. On symbols and variables of a program, ``f`` runs once and
    becomes the body of one operator, which has gradients of every order in both modes; values that
    ``f`` captures are the same for all slices. On eager arrays, ``f`` runs slice by slice.

    Args:
        f: takes slices, nested or not, and returns values, nested or not.
        in_axes: the axis along which to slice the arguments, or one axis for each argument; None
            for an argument that is passed whole.

    Raises:
        ArgumentError: no argument is sliced, or the numbers of slices differ.

    Example:
        >>> import symop as so
        >>> x, w = so.var("x", shape=(3, 2)), so.var("w", shape=(2,))
        >>> y = so.vmap(lambda one: so.sum(so.square(one * w)))(x)
        >>> y.shape, so.grad(so.sum(y), w).shape
        ((3,), (2,))
    """

    def mapped(*args: Any) -> Any:
        axes = _axes(in_axes, len(args))
        if _has(Variable, args):
            return on_variables(lambda *operands: _on_symbols(f, axes, operands), *args)
        if _has(Symbol, args):
            return _on_symbols(f, axes, args)
        if _has(NDArray, args):
            operands, of_slices = _sliced(f, axes, args)
            return eager_flow.scan(lambda _, one: ((), of_slices(*one)), (), operands, None, False)[
                1
            ]
        return jax.vmap(f, tuple(axes))(*args)

    return mapped


def _axes(in_axes: Any, count: int) -> Axes:
    several = isinstance(in_axes, (tuple, list))
    axes = list(in_axes) if several else [in_axes] * count
    if len(axes) != count:
        raise ArgumentError(f"vmap: in_axes must be one for each argument ({count}), got {axes}")
    if all(one is None for one in axes):
        raise ArgumentError(f"vmap: an argument must be sliced, got in_axes={in_axes!r}")
    return axes


def _has(kind: type, values: Any) -> bool:
    return any(isinstance(one, kind) for one in flat(values)[0])


def _on_symbols(f: Callable[..., Any], axes: Axes, args: Sequence[Any]) -> Any:
    operands, of_slices = _sliced(f, axes, args)
    return symbol_flow.vmap(of_slices, operands)


def _sliced(
    f: Callable[..., Any], axes: Axes, args: Sequence[Any]
) -> tuple[tuple[Any, ...], Callable[..., Any]]:
    """Returns the sliced arguments, with slices along the first axis, and ``f`` of these alone.

    The other arguments are bound.
    """
    places = [i for i, axis in enumerate(axes) if axis is not None]

    def of_slices(*slices: Any) -> Any:
        own = dict(zip(places, slices, strict=True))
        return f(*[own.get(i, one) for i, one in enumerate(args)])

    return tuple(_first(args[i], axes[i]) for i in places), of_slices


def _first(values: Any, axis: int | None) -> Any:
    """Moves ``axis`` of nested values to the front."""
    if axis == 0:
        return values
    leaves, tree = flat(values)
    moved = [get("moveaxis")(one, source=axis, destination=0) for one in leaves]
    return jax.tree_util.tree_unflatten(tree, moved)
