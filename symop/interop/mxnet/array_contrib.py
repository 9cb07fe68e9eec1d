"""Functions of ``mx.nd.contrib`` that are not operators: control flow in Python, and others."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symop.interop.mxnet.array_methods import called
from symop.interop.mxnet.array_operators import binary
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.contrib_updates import updates, updates_of_several
from symop.interop.mxnet.errors import MXNetValueError
from symop.interop.mxnet.nesting import leaves, like
from symop.interop.mxnet.zipfian import rand_zipfian_by

Function = Callable[..., Any]


def foreach(body: Function, data: Any, init_states: Any) -> tuple[Any, Any]:
    """Calls ``body(slice, states)`` for each slice of ``data`` along the first axis.

    Args:
        body: returns one or several outputs, and the next states.
        data: one or several arrays.
        init_states: the initial states.

    Returns:
        The stacked outputs, and the last states.
    """
    several = isinstance(data, (list, tuple))
    count = len(leaves(data)[0])
    states, outputs = init_states, []
    for i in range(count):
        found, states = body([one[i] for one in data] if several else data[i], states)
        outputs.append(found)
    return _stacked(outputs), states


def _stacked(outputs: Sequence[Any]) -> Any:
    columns = zip(*map(leaves, outputs), strict=True)
    return like(outputs[0], [called("stack")(*one, axis=0) for one in columns])


def while_loop(
    cond: Function, func: Function, loop_vars: Any, max_iterations: int | None = None
) -> tuple[Any, Any]:
    """Calls ``func(*loop_vars)`` while ``cond(*loop_vars)`` holds.

    Args:
        cond: returns an array with one entry.
        func: returns one or several outputs, and the next variables.
        loop_vars: the initial variables.
        max_iterations: the maximal number of iterations.

    Returns:
        The stacked outputs, padded with zeros, and the last variables.

    Raises:
        MXNetError: ``max_iterations`` is missing, or the number of variables changes.
    """
    if max_iterations is None:
        raise MXNetValueError("while_loop: max_iterations must be given, got none")
    limit = int(max_iterations)
    single = isinstance(loop_vars, NDArray)
    state = [loop_vars] if single else list(loop_vars)
    outputs: list[Any] = []
    while len(outputs) < limit and bool(cond(*state)):
        found, following = func(*state)
        follow = [following] if isinstance(following, NDArray) else list(following or ())
        if len(follow) != len(state):
            raise MXNetValueError(
                f"while_loop: there must be {len(state)} variables as before, got {len(follow)}"
            )
        outputs.append([] if found is None else found)
        state = follow
    if not outputs:
        return [], state[0] if single else state
    stacked = _stacked(outputs)
    filled = [_filled(one, limit) for one in leaves(stacked)]
    return like(stacked, filled), state[0] if single else state


def _filled(rows: NDArray, count: int) -> NDArray:
    """``rows`` padded with zeros to ``count`` rows."""
    if len(rows) == count:
        return rows
    rest = called("_zeros")(shape=(count - len(rows), *rows.shape[1:]), dtype=rows.dtype)
    joined: NDArray = called("Concat")(rows, rest, dim=0)
    return joined


def cond(pred: Any, then_func: Function, else_func: Function) -> Any:
    """Returns ``then_func()`` if ``pred`` holds, otherwise ``else_func()``."""
    return then_func() if bool(pred) else else_func()


# Predicates, draws and updates -----------------------------------------------------------------


def isnan(data: NDArray) -> Any:
    """One where an entry is NaN, zero elsewhere."""
    return binary("not_equal")(data, data)


def isinf(data: NDArray) -> Any:
    """One where an entry is infinite, zero elsewhere."""
    return binary("equal")(data.abs(), np.inf)


def isfinite(data: NDArray) -> Any:
    """One where an entry is finite, zero elsewhere."""
    return binary("lesser")(data.abs(), np.inf)


def _scale(given: Any) -> NDArray:
    return given if isinstance(given, NDArray) else array_of(np.full((1,), given, np.float32))


FUNCTIONS: dict[str, Function] = {
    **{one.__name__: one for one in (cond, foreach, isfinite, isinf, isnan, while_loop)},
    "rand_zipfian": rand_zipfian_by(called),
    **updates(called, _scale),
    **updates_of_several(called, _scale),
}
"""The functions by name."""
