"""Synchronous execution of programs that call user code on the host.

Such code also runs computations. If many programs are in flight and each waits for its callback,
JAX on the CPU has no threads left for these computations, and all of them deadlock.
"""

import functools
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

import jax

from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.graph import Entry, topological
from symop.runtime.jax_messages import raised_on_host

P = ParamSpec("P")
R = TypeVar("R")


def calls_back(heads: Iterable[Entry]) -> bool:
    """Whether a graph calls user code."""
    return any(
        node.operator is not None
        and (node.operator.calls_back or any(map(calls_back, node.subgraphs)))
        for node in topological(heads)
    )


def awaited(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, made to return only after its results are computed.

    It raises MXNetError if the user's code fails.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result: R = jax.block_until_ready(  # type: ignore[no-untyped-call]  # of JAX
                function(*args, **kwargs)
            )
        except jax.errors.JaxRuntimeError as error:
            told = raised_on_host(error, MXNetError)
            raise MXNetError(str(error) if told is None else told) from error
        return result

    return call
