"""Numbers that stand for dtypes in attributes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symop.interop.paddle.errors import PaddleError

_DTYPES = {
    **{0: "bool", 1: "int16", 2: "int32", 3: "int64", 4: "float16", 5: "float32", 6: "float64"},
    **{20: "uint8", 21: "int8", 22: "bfloat16", 23: "complex64", 24: "complex128"},
}


def dtype_of(number: int) -> Any:
    """Returns the dtype of a number of ``VarType.Type``, in JAX's current precision.

    Raises:
        PaddleError: the number is not that of a dtype.
    """
    if number not in _DTYPES:
        raise PaddleError(f"dtype: it must be one of {', '.join(map(str, _DTYPES))}, got {number}")
    return np.dtype(jax.dtypes.canonicalize_dtype(jnp.dtype(_DTYPES[number])))
