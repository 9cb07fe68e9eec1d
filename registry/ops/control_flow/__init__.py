"""Control flow.

Branches, loops, scans and tensor arrays, with graphs as bodies.
"""

from registry.ops.control_flow import (
    calls,
    custom_rules,
    linear_solving,
    loop_gradients,
    loop_types,
    recomputing,
    stepping,
    tensor_arrays,
    vectorizing,
)

__all__ = [
    "calls",
    "custom_rules",
    "linear_solving",
    "loop_gradients",
    "loop_types",
    "recomputing",
    "stepping",
    "tensor_arrays",
    "vectorizing",
]
