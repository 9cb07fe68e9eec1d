"""Functions of ``mx.nd.contrib`` that are no operators: control flow, by Python, and more."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symop.interop.mxnet.array_methods import called
from symop.interop.mxnet.array_operators import binary
from symop.interop.mxnet.contrib_updates import updates, updates_of_several
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.ndarray import NDArray, array_of
from symop.interop.mxnet.nesting import leaves, like
from symop.interop.mxnet.zipfian import rand_zipfian_by

Function = Callable[..., Any]


def foreach(body: Function, data: Any, init_states: Any) -> tuple[Any, Any]:
    """Call ``body(slice, states)`` for each slice of ``data`` along the first axis.

    Args:
        body: returns an output, or several, and the states that follow.
        data: an array, or several.
        init_states: the first states.

    Returns:
        The outputs, stacked, and the last states.
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
    """Call ``func(*loop_vars)`` as long as ``cond(*loop_vars)`` holds.

    Args:
        cond: gives an array of one entry.
        func: returns an output, or several, and the variables that follow.
        loop_vars: the first variables.
        max_iterations: how often at most.

    Returns:
        The outputs, stacked and filled up with zeros, and the last variables.

    Raises:
        MXNetError: there is no limit, or the number of variables changes.
    """
    if max_iterations is None:
        raise MXNetError("while_loop: max_iterations must be given, got none")
    limit = int(max_iterations)
    single = isinstance(loop_vars, NDArray)
    state = [loop_vars] if single else list(loop_vars)
    outputs: list[Any] = []
    while len(outputs) < limit and bool(cond(*state)):
        found, following = func(*state)
        follow = [following] if isinstance(following, NDArray) else list(following or ())
        if len(follow) != len(state):
            raise MXNetError(
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
    """``rows`` and zeros behind them, ``count`` together."""
    if len(rows) == count:
        return rows
    rest = called("_zeros")(shape=(count - len(rows), *rows.shape[1:]), dtype=rows.dtype)
    joined: NDArray = called("Concat")(rows, rest, dim=0)
    return joined


def cond(pred: Any, then_func: Function, else_func: Function) -> Any:
    """What ``then_func()`` gives where ``pred`` holds, else what ``else_func()`` gives."""
    return then_func() if bool(pred) else else_func()


# Questions, draws and updates ------------------------------------------------------------------


def isnan(data: NDArray) -> Any:
    """Ones where entries are no numbers, zeros elsewhere."""
    return binary("not_equal")(data, data)


def isinf(data: NDArray) -> Any:
    """Ones where entries are infinite, zeros elsewhere."""
    return binary("equal")(data.abs(), np.inf)


def isfinite(data: NDArray) -> Any:
    """Ones where entries are finite numbers, zeros elsewhere."""
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
