"""Control flow for users: ``cond``, ``while_loop``, ``scan`` and ``foreach`` on values of any kind.

On symbols the functions that are passed run once, on placeholders, and become bodies of one
operator; what they use from outside becomes an operand. On eager arrays they run as Python does,
step by step, and are recorded where autograd records. On JAX arrays, and wherever JAX traces, they
run under ``jax.lax``.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from registry.errors import ArgumentError
from registry.shapes import canonical, default_float
from registry.types import VarType, as_dtype
from symop import eager_flow, symbol_flow
from symop.bodies import GraphBody
from symop.ndarray import NDArray
from symop.program_block import Variable
from symop.symbol import Symbol
from symop.symbol_flow import flat
from symop.variable_flow import on_variables

Function = Callable[..., Any]


def body(
    function: Function, *inputs: VarType | tuple[Sequence[int], Any] | Sequence[int]
) -> GraphBody:
    """The body of a function of symbols: what the operators of control flow take as an attribute.

    Args:
        function: from symbols to a symbol, or to a tuple of them. It uses nothing from outside.
        inputs: for each of them its type: a ``VarType``, a pair of shape and dtype, or a shape.

    Raises:
        ArgumentError: the function uses a value from outside.

    Example:
        >>> import symop as so
        >>> so.body(lambda c, x: (c + x, c * x), ((), "float32"), ((), "float32"))
        <body (float32[], float32[]) -> (float32[], float32[])>
    """
    return symbol_flow.body(function, [_type(one) for one in inputs])


def _type(given: Any) -> VarType:
    if isinstance(given, VarType):
        return given
    if len(given) == 2 and not isinstance(given[0], int):
        return VarType(tuple(given[0]), canonical(as_dtype(given[1])))
    return VarType(tuple(given), default_float())


def cond(pred: Any, true_fn: Function, false_fn: Function, *operands: Any) -> Any:
    """``true_fn(*operands)`` if ``pred`` holds, else ``false_fn(*operands)``.

    Only the chosen function is computed, and so are its gradients, of every order and in both
    modes. The functions may use values from outside; gradients flow to those, too.

    Args:
        pred: a scalar: a boolean, or a number that holds if it is not zero.
        true_fn: from the operands to a value, or to nested tuples, lists and dictionaries of them.
        false_fn: the same; what it returns is of the same types and nested alike.
        operands: values, nested or not.

    Raises:
        ArgumentError: the functions nest what they return differently.
        ShapeError, DTypeError, KindError: they return other types, or ``pred`` is no scalar.

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
            lambda pred, given: symbol_flow.cond(pred, true_fn, false_fn, given), pred, operands
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


def while_loop(
    cond_fn: Function, body_fn: Function, init: Any, max_steps: int | None = None
) -> Any:
    """``carry = init``, then ``carry = body_fn(carry)`` while ``cond_fn(carry)``; the last carry.

    Forward mode differentiates any loop. Reverse mode stores what each step needs and so wants
    ``max_steps``, after which the loop ends although the condition still holds.

    Args:
        cond_fn: from the carry to a scalar.
        body_fn: from the carry to the next one, which is nested alike and of the same types.
        init: the first carry: a value, or nested tuples, lists and dictionaries of them.
        max_steps: how many steps are taken at most; None for no bound.

    Raises:
        ArgumentError: a step changes the type of a carry, which is named, or how they are nested.
        NotDifferentiableError: reverse mode is asked of a loop without ``max_steps``.

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


def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """``carry, ys[i] = f(carry, xs[i])`` for each ``i`` in turn; the last carry, and ``ys``.

    The argument order is that of ``jax.lax.scan``.

    Args:
        f: from the carry and a slice of ``xs`` to the next carry, nested alike and of the same
            types, and to results.
        init: the first carry: a value, or nested tuples, lists and dictionaries of them.
        xs: values that are sliced along their first axis, nested or not; None for none.
        length: how many steps there are; needed without ``xs``.
        reverse: whether the last slice comes first. ``ys`` are in the order of ``xs`` anyway.

    Raises:
        ArgumentError: a step changes the type of a carry, which is named, or how they are nested;
            or the numbers of steps differ.

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
        found: tuple[Any, Any] = symbol_flow.scan(f, init, xs, length, reverse)
        return found
    if _has(NDArray, values):
        if eager_flow.is_taped() or not eager_flow.is_traced(values):
            made: tuple[Any, Any] = eager_flow.scan(f, init, xs, length, reverse)
            return made
        f, (init, xs) = eager_flow.to_arrays(f), eager_flow.arrays_of(values)
    pair: tuple[Any, Any] = lax.scan(f, init, xs, length=length, reverse=reverse)
    return pair


def foreach(body: Function, data: Any, init_states: Any) -> tuple[Any, Any]:
    """``outputs[i], states = body(data[i], states)`` for each ``i`` in turn; outputs and states.

    ``scan`` in the argument order of MXNet's ``contrib.foreach``: data before states, outputs
    before states.

    Args:
        body: from a slice of ``data`` and the states to outputs and the next states.
        data: a value, or a list of them, sliced along the first axis.
        init_states: the first states: a value, or a list of them.

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
    """The step of a scan that ``body`` of a ``foreach`` is."""

    def step(states: Any, one: Any) -> tuple[Any, Any]:
        pair = body(one, states)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentError(f"foreach: the body must return outputs and states, got {pair!r}")
        return pair[1], pair[0]

    return step


# What kind of values ---------------------------------------------------------------------------


def _has(kind: type, values: Any) -> bool:
    return any(isinstance(one, kind) for one in flat(values)[0])


def _require_count(name: str, count: int | None) -> None:
    if count is not None and (not isinstance(count, int) or count < 0):
        raise ArgumentError(f"{name} must be None or a number of steps, got {count!r}")


# JAX arrays ------------------------------------------------------------------------------------


def _holds(what: str, pred: Any) -> Any:
    """A scalar as a boolean."""
    value = jnp.asarray(pred.value if isinstance(pred, NDArray) else pred)
    if value.shape != ():
        raise ArgumentError(f"{what}: the predicate must be a scalar, got shape {value.shape}")
    return value if value.dtype == jnp.bool_ else value != 0


def _bounded(cond_fn: Function, body_fn: Function, init: Any, max_steps: int) -> Any:
    """A loop that JAX can transpose: all steps are counted, those behind the end do nothing."""

    def step(state: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
        carry, goes_on = state
        carry = lax.cond(goes_on, body_fn, lambda held: held, carry)
        return (carry, goes_on & _holds("while_loop", cond_fn(carry))), None

    init = jax.tree_util.tree_map(jnp.asarray, init)
    first = (init, _holds("while_loop", cond_fn(init)))
    return lax.scan(step, first, None, length=max_steps)[0][0]
