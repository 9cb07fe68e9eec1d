"""``so.nd``: operators on eager arrays, the arrays themselves, and the Python array API."""

from typing import Any

import jax.numpy as jnp

from registry.table import find as _find
from registry.table import get as _get
from registry.table import names as _names
from registry.types import OpReqType, as_dtype
from symop import linalg
from symop.array_api import (
    DTYPES,
    __array_namespace_info__,
    arange,
    argsort,
    asarray,
    astype,
    broadcast_arrays,
    can_cast,
    clip,
    concat,
    cumulative_prod,
    cumulative_sum,
    diff,
    e,
    empty,
    empty_like,
    eye,
    finfo,
    from_dlpack,
    full,
    full_like,
    iinfo,
    inf,
    isdtype,
    linspace,
    matrix_transpose,
    nan,
    newaxis,
    nextafter,
    nonzero,
    ones,
    ones_like,
    pi,
    pow,
    prod,
    repeat,
    reshape,
    result_type,
    searchsorted,
    signbit,
    stack,
    std,
    sum,
    take,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    var,
    zeros,
    zeros_like,
)
from symop.array_calls import ArrayOperator
from symop.ndarray import NDArray


def array(data: Any, dtype: Any = None, ctx: Any = None) -> NDArray:
    """An eager array of ``data``: numbers, nested lists, a NumPy array, a ``jax.Array``.

    Numbers and lists of floats are of JAX's default float dtype, float32 unless x64 is on. A
    ``jax.Array`` is taken without a copy; it cannot change, so nothing that is done to the eager
    array is seen in it.

    Args:
        data: the entries.
        dtype: the dtype; by default that of the data.
        ctx: the device to put it on, such as ``"cpu:0"``.

    Example:
        >>> array([[1, 2], [3, 4]], dtype="float32")
        NDArray([[1., 2.],
                 [3., 4.]], dtype=float32)
    """
    value = data.value if isinstance(data, NDArray) else data
    made = NDArray(jnp.asarray(value, None if dtype is None else as_dtype(dtype)))
    return made if ctx is None else made.to_device(ctx)


def __getattr__(name: str) -> ArrayOperator:
    """The operator called ``name``, on arrays; also one that computes a gradient."""
    if name.startswith("_"):
        found = None if name.startswith("__") else _find(name)
        if found is None:
            raise AttributeError(name)
        return ArrayOperator(found)
    try:
        return ArrayOperator(_get(name))
    except LookupError as error:
        raise AttributeError(f"nd: {error}", name=name) from None


def __dir__() -> list[str]:
    """The operators, and what this module exports beside them."""
    return sorted([*__all__, *_names(aliases=True)])
