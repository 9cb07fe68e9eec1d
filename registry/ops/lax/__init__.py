"""JAX's primitives as operators, for computations of JAX that no other operator expresses."""

from registry.ops.lax import (
    functions,
    params,
    primitive,
    sharding,
)

__all__ = [
    "functions",
    "params",
    "primitive",
    "sharding",
]
