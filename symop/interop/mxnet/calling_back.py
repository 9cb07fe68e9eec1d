"""Programs that call code of the user's on the host: they are waited for.

Such code computes, too. With many programs under way, of which each waits for it, JAX on the CPU
has no room left for what it computes: all would wait for ever.
"""

import functools
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

import jax

from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.graph import Entry, topological

P = ParamSpec("P")
R = TypeVar("R")
_MARK = "MXNetError: "


def calls_back(heads: Iterable[Entry]) -> bool:
    """Whether a graph calls code of the user's."""
    return any(
        node.operator is not None
        and (node.operator.calls_back or any(map(calls_back, node.subgraphs)))
        for node in topological(heads)
    )


def awaited(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which returns when the arrays that it returns are computed.

    It raises MXNetError where the user's code fails.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            found: R = jax.block_until_ready(  # type: ignore[no-untyped-call]  # of JAX
                function(*args, **kwargs)
            )
        except jax.errors.JaxRuntimeError as error:
            raise MXNetError(str(error).rpartition(_MARK)[2]) from error
        return found

    return call
