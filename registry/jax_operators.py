"""Python's operators of ``jax.Array``, as the callers of a value's protocol."""

import functools
from types import CodeType

import jax
import jax.numpy as jnp

_BINARY = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift"
_COMPARISONS = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


@functools.cache
def reflected_operators() -> dict[CodeType, str]:
    """Maps the code of each binary operator of ``jax.Array`` to the name of the reflected one.

    These operators call ``__jax_array__`` of the right operand and return ``NotImplemented`` if the
    result is not a ``jax.Array``; Python then calls the reflected operator. The mapping is not a
    constant of this module, since creating the first array initializes JAX's backend.
    """
    with jax.ensure_compile_time_eval():
        kind = type(jnp.zeros(()))
    pairs = {one: f"r{one}" for one in _BINARY.split()} | _COMPARISONS
    return {getattr(kind, f"__{one}__").__code__: f"__{pairs[one]}__" for one in pairs}
