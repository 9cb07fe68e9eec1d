"""What tests of MXNet's operators use: ``mx.test_utils``."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from symop.interop.mxnet.comparisons import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_exception,
    get_tols,
    retry,
    same,
)
from symop.interop.mxnet.context import Context, current_context, num_gpus
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.ndarray import NDArray, array_of
from symop.interop.mxnet.symbol_checks import (
    check_consistency,
    check_numeric_gradient,
    check_speed,
    check_symbolic_backward,
    check_symbolic_forward,
    numeric_grad,
    simple_forward,
)

__all__ = [
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_almost_equal_ignore_nan",
    "assert_exception",
    "check_consistency",
    "check_numeric_gradient",
    "check_speed",
    "check_symbolic_backward",
    "check_symbolic_forward",
    "default_context",
    "default_dtype",
    "get_tols",
    "list_gpus",
    "numeric_grad",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "random_arrays",
    "random_sample",
    "random_uniform_arrays",
    "retry",
    "same",
    "set_default_context",
    "simple_forward",
]

T = TypeVar("T")
_default: list[Context] = []


def default_context() -> Context:
    """The context that functions here take."""
    return _default[0] if _default else current_context()


def set_default_context(ctx: Context) -> None:
    """Let ``ctx`` be the context that functions here take."""
    _default[:] = [ctx]


def list_gpus() -> range:
    """Numbers of the GPUs."""
    return range(num_gpus())


def default_dtype() -> type[np.floating]:
    """The dtype of random arrays."""
    return np.float32


# Random arrays ---------------------------------------------------------------------------------


def random_arrays(*shapes: Sequence[int]) -> Any:
    """Arrays of NumPy with normal numbers: one, or a list."""
    arrays = [np.asarray(np.random.randn(*shape), default_dtype()) for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(
    *shapes: Sequence[int], low: float = 0.0, high: float = 1.0, dtype: Any = None
) -> list[np.ndarray]:
    """Arrays of NumPy with evenly distributed numbers."""
    made = [np.random.uniform(low, high, size=shape) for shape in shapes]
    return [one.astype(dtype or default_dtype()) for one in made]


def random_sample(population: Sequence[T], k: int) -> list[T]:
    """``k`` of some things, in a random order."""
    order = np.random.permutation(len(population))[:k]
    return [population[i] for i in order]


def rand_ndarray(
    shape: Sequence[int], stype: str = "default", dtype: Any = None, **others: Any
) -> NDArray:
    """An array with normal numbers.

    Args:
        shape: its shape.
        stype: ``"default"``; there are no others here.
        dtype: its dtype; float32 unless given.
        **others: what MXNet takes for sparse arrays and places.

    Raises:
        MXNetError: ``stype`` is another one.
    """
    if stype != "default":
        raise MXNetError(f"rand_ndarray: stype must be 'default', got {stype!r}")
    return array_of(random_arrays(shape), dtype)


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> Any:
    """Two lengths, up to ``dim0`` and ``dim1``."""
    return _lengths((dim0, dim1), allow_zero_size)


def rand_shape_3d(
    dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False
) -> Any:
    """Three lengths, up to ``dim0``, ``dim1`` and ``dim2``."""
    return _lengths((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> Any:
    """``num_dim`` lengths, up to ``dim``."""
    return _lengths((dim,) * num_dim, allow_zero_size)


def _lengths(bounds: Sequence[int], zero: bool) -> tuple[int, ...]:
    return tuple(int(np.random.randint(0 if zero else 1, bound + 1)) for bound in bounds)
