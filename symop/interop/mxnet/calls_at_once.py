"""Calls on arrays of operators of many steps: each is one program.

To compile the steps one by one takes several times as long.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

import symop as so
from registry.caches import memoized
from symop.eager.ndarray import array_of as eager
from symop.interop.mxnet.call_types import Type
from symop.interop.mxnet.operators import Operator
from symop.symbol.building import Group, var
from symop.symbol.symbol import Symbol

Run = Callable[[Sequence[so.NDArray]], tuple[Any, ...]]


def at_once(operator: Operator, attributes: Mapping[str, str], run: Run) -> Run:
    """``run``, a call of ``operator``, as one program where it is not recorded."""
    told = tuple(sorted(attributes.items()))

    def call(inputs: Sequence[so.NDArray]) -> tuple[Any, ...]:
        if so.autograd.is_recording() and any(one.is_recorded for one in inputs):
            return run(inputs)
        program = _program(operator, told, tuple((one.shape, one.dtype) for one in inputs))
        return tuple(map(eager, jax.tree.leaves(program(*[one.value for one in inputs]))))

    return call


@memoized(256)
def _program(
    operator: Operator, attributes: tuple[tuple[str, str], ...], types: tuple[Type, ...]
) -> Callable[..., Any]:
    """The call on arrays of ``types`` as a compiled function."""
    inputs = [var(f"in{i}", shape, dtype) for i, (shape, dtype) in enumerate(types)]
    found = Group(operator.call(inputs, operator.read(dict(attributes), len(types))))
    graph = Symbol(found.nodes, tuple(one.node for one in inputs))  # with unused inputs, too
    return jax.jit(graph.to_jax())
