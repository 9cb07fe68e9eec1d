"""JAX's primitives as operators, for computations of JAX that no other operator expresses."""

from registry.ops.lax import (
    params,
    primitive,
)

__all__ = [
    "params",
    "primitive",
]
