"""A cast from integers back to floating numbers that passes gradients through the integers."""

from typing import Any

import numpy as np

import symop as so
from registry.operator.operator import Grads, Operator
from registry.operator.signature import Array
from registry.table import find, register
from registry.types import is_inexact
from registry.var import Var
from symop.interop.mxnet.ops.values import Dtype


def _through(x: Array, *, via: np.dtype, dtype: np.dtype, back: np.dtype) -> Array:
    """``x``, of dtype ``back``, cast to ``via`` and then to ``dtype``."""
    del back
    result: Array = so.cast(so.cast(x, dtype=via), dtype=dtype)
    return result


# Opaque: for JAX, values cast to integers have no derivative.
THROUGH = Operator(_through, name="mxnet_cast_through", native=False, opaque=True)


@THROUGH.gradient
def _through_gradient(d_out: Var, *, via: np.dtype, dtype: np.dtype, back: np.dtype) -> Grads:
    # As MXNet casts a head gradient: from the result's dtype to the integers' dtype, and on.
    return {"x": THROUGH(d_out, via=via, dtype=back, back=dtype)}


def _cast_from(data: so.Symbol) -> so.Symbol | None:
    """The floating numbers of which ``data`` is a cast."""
    node = data.node.inputs[0] if data.node.op is so.cast else None
    return so.Symbol([node]) if node is not None and is_inexact(node.type.dtype) else None


def cast_back(data: Any, dtype: Dtype) -> Any:
    """Casts integers to ``dtype``; in a graph, from the floating numbers of which they are a cast.

    MXNet's gradient of a cast is the head gradient in the other dtype, so gradients of floating
    numbers pass through integers. An eager array has no record of its origin.
    """
    plain = so.cast(data, dtype=dtype)
    if not isinstance(data, so.Symbol) or is_inexact(data.dtype) or not is_inexact(plain.dtype):
        return plain
    source = _cast_from(data)
    if source is None:
        return plain
    if find(THROUGH.name) is None:
        register(THROUGH)
    return THROUGH(source, via=data.dtype, dtype=plain.dtype, back=source.dtype)
