"""Names of Paddle's operators in ``registry.get``, for the gradients of Paddle's records.

A name that the registry knows keeps its meaning there; its ``grad_op_maker`` takes Paddle's records
anyway. The others are found here.
"""

import functools
from collections.abc import Iterable
from typing import Any

from registry.foreign_names import known_elsewhere
from registry.hooks import define
from registry.operator.operator import Operator
from registry.operator.signature import Array
from registry.table import Elsewhere
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.gradients import forward_type
from symop.interop.paddle.operators import Definition, find


def named(name: str) -> Operator | None:
    """Returns what stands for an operator of Paddle; None for gradients and unknown names."""
    definition = find(name)
    return None if definition is None or forward_type(name) else _operator(definition)


@functools.cache
def _operator(definition: Definition) -> Operator:
    name = definition.type

    def kernel(*values: Array) -> Array:
        raise PaddleError(
            f"{name}: Paddle's operator must be called by a program of Paddle, got "
            f"{len(values)} values{known_elsewhere(name)}"
        )

    def maker(op_desc: Any, no_grad_set: Iterable[str] = (), block: Any = None) -> list[Any]:
        del no_grad_set, block
        raise PaddleError(
            f"{name}: the record must be an OpDesc of symop.interop.paddle.framework, got "
            f"{type(op_desc).__name__}"
        )

    kernel.__doc__ = f"Stands for Paddle's ``{definition}``."
    operator = Operator(kernel, name=name)
    operator.no_gradient("programs of Paddle differentiate it, by the records of grad_op_maker")
    operator.composed_by(maker)
    return operator


define(Elsewhere, find=named)
