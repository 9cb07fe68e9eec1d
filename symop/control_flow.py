"""Control flow: ``cond``, ``while_loop``, ``scan`` and ``foreach`` on values of any kind.

On symbols, the given functions run once, on placeholders, and become bodies of one operator; values
that they capture become operands. On eager arrays, the functions run step by step in Python, and
are recorded if autograd is recording. On JAX arrays, and inside JAX transformations, they run
under ``jax.lax``.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from registry.errors import ArgumentError
from registry.shapes import canonical, default_float
from registry.tracebacks import api_boundary
from registry.types import VarType, as_dtype
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.eager import control_flow as eager_flow
from symop.eager.ndarray import NDArray
from symop.program.block import Variable
from symop.program.control_flow import on_variables
from symop.regions.bodies import GraphBody
from symop.symbol import control_flow as symbol_flow
from symop.symbol.control_flow import flat
from symop.symbol.symbol import Symbol

Function = Callable[..., Any]


@api_boundary
def body(
    function: Function, *inputs: VarType | tuple[Sequence[int], Any] | Sequence[int]
) -> GraphBody:
    """Converts a function of symbols to a body, an attribute of the control-flow operators.

    Args:
        function: takes symbols and returns a symbol or a tuple of symbols. It must not capture
            values.
        inputs: the type of each input: a ``VarType``, a pair of shape and dtype, or a shape, whose
            dtype is the default float dtype.

    Raises:
        ArgumentError: the function captures a value.

    Example:
        >>> import symop as so
        >>> so.body(lambda c, x: (c + x, c * x), ((), "float32"), ((), "float32"))
        <body (float32[], float32[]) -> (float32[], float32[])>
    """
    return symbol_flow.body(function, [_type(one) for one in inputs])


def _type(like: Any) -> VarType:
    if isinstance(like, VarType):
        return like
    if len(like) == 2 and not isinstance(like[0], int):
        return VarType(tuple(like[0]), canonical(as_dtype(like[1])))
    return VarType(tuple(like), default_float())


@api_boundary
def cond(pred: Any, true_fn: Function, false_fn: Function, *operands: Any) -> Any:
    """Returns ``true_fn(*operands)`` if ``pred`` is true, else ``false_fn(*operands)``.

    Only the chosen function and its gradients are computed, for gradients of every order and in
    both modes. The functions may capture values; gradients flow to these, too.

    Args:
        pred: a scalar: a boolean, or a number that counts as true if it is not zero.
        true_fn: takes the operands and returns a value, or nested tuples, lists and dictionaries
            of values.
        false_fn: likewise; its results have the same types and nesting as those of ``true_fn``.
        operands: values, nested or not.

    Raises:
        ArgumentError: the results of the functions are nested differently; or ``pred`` is an
            array that is not a scalar.
        ShapeError, DTypeError, KindError: the types of the results differ, or ``pred`` is a symbol
            that is not a scalar.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> y = so.cond(x > 0, lambda: so.log(x), lambda: so.zeros_like(x))
        >>> [float(so.grad(y, x).eval(x=one)) for one in (4.0, -1.0)]
        [0.25, 0.0]
    """
    values = (pred, operands)
    if _has(Variable, values):
        return on_variables(
            lambda pred, leaves: symbol_flow.cond(pred, true_fn, false_fn, leaves), pred, operands
        )
    if _has(Symbol, values):
        return symbol_flow.cond(pred, true_fn, false_fn, operands)
    if _has(NDArray, values):
        if not eager_flow.is_traced(pred):
            return eager_flow.cond(pred, true_fn, false_fn, operands)
        eager_flow.require_unrecorded("cond")
        true_fn, false_fn = map(eager_flow.to_arrays, (true_fn, false_fn))
        operands = eager_flow.arrays_of(operands)
    return lax.cond(_holds("cond", pred), true_fn, false_fn, *operands)


@api_boundary
def while_loop(
    cond_fn: Function, body_fn: Function, init: Any, max_steps: int | None = None
) -> Any:
    """Repeats ``carry = body_fn(carry)`` while ``cond_fn(carry)``; returns the last carry.

    Forward mode differentiates any loop. Reverse mode stores the residuals of each step and
    therefore needs ``max_steps``, after which the loop ends even if the condition still holds.

    Args:
        cond_fn: takes the carry and returns a scalar.
        body_fn: takes the carry and returns the next one, with the same nesting and types.
        init: the first carry: a value, or nested tuples, lists and dictionaries of values.
        max_steps: the maximum number of steps; None for no limit.

    Raises:
        ArgumentError: a step changes the nesting of the carry, or the type of one of its values,
            which the message names.
        NotDifferentiableError: reverse mode is applied to a loop without ``max_steps``.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> def square(carry):
        ...     return carry[0] * carry[0], carry[1] + 1
        >>> y, n = so.while_loop(lambda carry: carry[0] < 100, square, (x, 0), max_steps=10)
        >>> float(y.eval(x=3.0)), int(n.eval(x=3.0)), float(so.grad(y, x).eval(x=3.0))
        (6561.0, 3, 17496.0)
    """
    _require_count("max_steps", max_steps)
    if _has(Variable, init):
        return on_variables(
            lambda first: symbol_flow.while_loop(cond_fn, body_fn, first, max_steps), init
        )
    if _has(Symbol, init):
        return symbol_flow.while_loop(cond_fn, body_fn, init, max_steps)
    if _has(NDArray, init):
        if not eager_flow.is_traced(init):
            with contextlib.suppress(jax.errors.TracerBoolConversionError):
                return eager_flow.while_loop(cond_fn, body_fn, init, max_steps)
        eager_flow.require_unrecorded("while_loop")
        body_fn, init = eager_flow.to_arrays(body_fn), eager_flow.arrays_of(init)
    if max_steps is None:
        return lax.while_loop(lambda c: _holds("while_loop", cond_fn(c)), body_fn, init)
    return _bounded(cond_fn, body_fn, init, max_steps)


@api_boundary
def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """Computes ``carry, ys[i] = f(carry, xs[i])`` for each ``i`` in turn.

    The argument order is that of ``jax.lax.scan``.

    Args:
        f: takes the carry and a slice of ``xs``, and returns the next carry, with the same nesting
            and types, and the results of the step.
        init: the first carry: a value, or nested tuples, lists and dictionaries of values.
        xs: values to slice along their first axis, nested or not; or None.
        length: the number of steps; required without ``xs``.
        reverse: whether to start with the last slice. ``ys`` keep the order of ``xs``.

    Returns:
        The last carry, and the results of all steps stacked along a new first axis.

    Raises:
        ArgumentError: a step changes the nesting of the carry, or the type of one of its values,
            which the message names; or the numbers of steps differ.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(3,))
        >>> last, ys = so.scan(lambda c, x: (c * x, c + x), 1.0, x)
        >>> ys.eval(x=[2.0, 3.0, 4.0]).tolist(), so.grad(last, x).eval(x=[2.0, 3.0, 4.0]).tolist()
        ([3.0, 5.0, 10.0], [12.0, 8.0, 6.0])
    """
    _require_count("length", length)
    values = (init, xs)
    if _has(Variable, values):
        last: tuple[Any, Any] = on_variables(
            lambda first, series: symbol_flow.scan(f, first, series, length, reverse), init, xs
        )
        return last
    if _has(Symbol, values):
        results: tuple[Any, Any] = symbol_flow.scan(f, init, xs, length, reverse)
        return results
    if _has(NDArray, values):
        if eager_flow.is_taped() or not eager_flow.is_traced(values):
            result: tuple[Any, Any] = eager_flow.scan(f, init, xs, length, reverse)
            return result
        f, (init, xs) = eager_flow.to_arrays(f), eager_flow.arrays_of(values)
    pair: tuple[Any, Any] = lax.scan(f, init, xs, length=length, reverse=reverse)
    return pair


@api_boundary
def foreach(body: Function, data: Any, init_states: Any) -> tuple[Any, Any]:
    """Computes ``outputs[i], states = body(data[i], states)`` for each ``i`` in turn.

    This is ``scan`` in the argument order of MXNet's ``contrib.foreach``: data before states,
    outputs before states.

    Args:
        body: takes a slice of ``data`` and the states, and returns outputs and the next states.
        data: a value or a list of values, sliced along the first axis.
        init_states: the first states: a value or a list of values.

    Returns:
        The outputs of all steps, stacked along a new first axis, and the last states.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(3,))
        >>> outputs, states = so.foreach(lambda x, s: (x + s[0], [x * s[0]]), x, [so.var("s", ())])
        >>> outputs.eval(x=[2.0, 3.0, 4.0], s=1.0).tolist()
        [3.0, 5.0, 10.0]
    """
    states, outputs = scan(in_order_of_mxnet(body), init_states, data)
    return outputs, states


def in_order_of_mxnet(body: Function) -> Function:
    """Converts the ``body`` of a ``foreach`` to the step function of a ``scan``."""

    def step(states: Any, one: Any) -> tuple[Any, Any]:
        pair = body(one, states)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentError(f"foreach: the body must return outputs and states, got {pair!r}")
        return pair[1], pair[0]

    return step


# Arguments -------------------------------------------------------------------------------------


def _has(kind: type, values: Any) -> bool:
    return any(isinstance(one, kind) for one in flat(values)[0])


def _require_count(name: str, count: int | None) -> None:
    if count is not None and (not isinstance(count, int) or count < 0):
        raise ArgumentError(f"{name} must be None or a number of steps, got {count!r}")


# JAX arrays ------------------------------------------------------------------------------------


def _holds(what: str, pred: Any) -> Any:
    """Converts a scalar to a boolean."""
    value = jnp.asarray(pred.value if isinstance(pred, NDArray) else pred)
    if value.shape != ():
        raise ArgumentError(f"{what}: the predicate must be a scalar, got shape {value.shape}")
    return value if value.dtype == jnp.bool_ else value != 0


def _bounded(cond_fn: Function, body_fn: Function, init: Any, max_steps: int) -> Any:
    """Runs a loop that JAX can transpose: a scan of ``max_steps`` steps, idle after the last."""

    def step(state: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
        carry, goes_on = state
        carry = lax.cond(goes_on, body_fn, lambda held: held, carry)
        return (carry, goes_on & _holds("while_loop", cond_fn(carry))), None

    init = jax.tree_util.tree_map(jnp.asarray, init)
    first = (init, _holds("while_loop", cond_fn(init)))
    return lax.scan(step, first, None, length=max_steps)[0][0]
