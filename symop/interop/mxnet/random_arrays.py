"""Random arrays and shapes for tests of MXNet's operators: dense, row-sparse and csr."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from symop.interop.mxnet import ndarray as nd
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.context import Context, current_context
from symop.interop.mxnet.errors import MXNetError

T = TypeVar("T")
Shape = Sequence[int]


def default_context() -> Context:
    """The default context of test functions."""
    return current_context()


def set_default_context(ctx: Context) -> None:
    """Sets the default context of test functions."""
    Context.default_ctx = ctx


def default_dtype() -> type[np.floating]:
    """The dtype of random arrays."""
    return np.float32


# Dense -----------------------------------------------------------------------------------------


def random_arrays(*shapes: Shape) -> Any:
    """NumPy arrays of normal numbers: one, or a list."""
    arrays = [np.asarray(np.random.randn(*shape), default_dtype()) for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(
    *shapes: Shape, low: float = 0.0, high: float = 1.0, dtype: Any = None
) -> list[np.ndarray]:
    """NumPy arrays of uniform numbers."""
    made = [np.random.uniform(low, high, size=shape) for shape in shapes]
    return [one.astype(dtype or default_dtype()) for one in made]


def random_sample(population: Sequence[T], k: int) -> list[T]:
    """``k`` items of ``population``, in random order."""
    order = np.random.permutation(len(population))[:k]
    return [population[i] for i in order]


def rand_ndarray(
    shape: Shape,
    stype: str = "default",
    density: float | None = None,
    dtype: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    shuffle_csr_indices: bool = False,
    distribution: str | None = None,
    ctx: Any = None,
) -> NDArray:
    """An array of normal numbers, or a sparse one as in ``rand_sparse_ndarray``.

    Args:
        shape: its shape.
        stype: ``"default"``, ``"row_sparse"`` or ``"csr"``.
        density: the fraction of stored rows or entries of a sparse array.
        dtype: its dtype; defaults to float32.
        modifier_func: see ``rand_sparse_ndarray``.
        shuffle_csr_indices: see ``rand_sparse_ndarray``.
        distribution: see ``rand_sparse_ndarray``.
        ctx: the device.
    """
    if stype == "default":
        result: NDArray = nd.array(random_arrays(shape), ctx=ctx, dtype=dtype)
        return result
    how: Any = {"modifier_func": modifier_func, "shuffle_csr_indices": shuffle_csr_indices}
    found: tuple[NDArray, Any] = rand_sparse_ndarray(
        shape, stype, density, dtype, distribution, ctx=ctx, **how
    )
    return found[0]


# Sparse ----------------------------------------------------------------------------------------


def rand_sparse_ndarray(
    shape: Shape,
    stype: str,
    density: float | None = None,
    dtype: Any = None,
    distribution: str | None = None,
    data_init: float | None = None,
    rsp_indices: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    shuffle_csr_indices: bool = False,
    ctx: Any = None,
) -> tuple[Any, tuple[Any, ...]]:
    """A sparse array of random numbers from 0 to 1, and its components.

    Args:
        shape: its shape.
        stype: ``"row_sparse"`` or ``"csr"``.
        density: the fraction of stored rows or entries; random by default.
        dtype: its dtype; defaults to float32.
        distribution: ``"uniform"``, or for a csr array ``"powerlaw"``: each row has twice as many
            entries as the previous one, until the density is reached.
        data_init: the value of all stored entries.
        rsp_indices: the stored rows.
        modifier_func: a function applied to each entry.
        shuffle_csr_indices: has no effect: the columns of a row are sorted.
        ctx: the device.

    Returns:
        The array, and its components: entries and rows of a row-sparse array, or the three
        components of a csr array.

    Raises:
        MXNetError: the storage type or the distribution is unknown.
    """
    del shuffle_csr_indices
    density = float(np.random.rand()) if density is None else density
    dtype = default_dtype() if dtype is None else dtype
    ways = {"row_sparse": ("uniform",), "csr": ("uniform", "powerlaw")}.get(stype, ())
    if (distribution or "uniform") not in ways:
        raise MXNetError(
            f"rand_sparse_ndarray: stype must be row_sparse or csr, with an even distribution or, "
            f"of csr, 'powerlaw', got {stype!r} and {distribution!r}"
        )
    changed = _changed(data_init, modifier_func)
    if stype == "row_sparse":
        return _row_sparse(shape, density, dtype, rsp_indices, changed, ctx)
    held = _powerlaw if distribution == "powerlaw" else _even
    entries = changed(np.random.rand(*shape)) * held(shape, density)
    made = nd.sparse.csr_matrix(entries.astype(dtype), ctx=ctx, dtype=dtype)
    return made, (made.indptr, made.indices, made.data)


def _changed(
    data_init: float | None, modifier_func: Callable[[Any], Any] | None
) -> Callable[[np.ndarray], np.ndarray]:
    """The function applied to random entries."""

    def changed(entries: np.ndarray) -> np.ndarray:
        plain = entries if data_init is None else np.full_like(entries, data_init)
        return assign_each(plain, modifier_func)

    return changed


def _row_sparse(
    shape: Shape,
    density: float,
    dtype: Any,
    rows: Any,
    changed: Callable[[np.ndarray], np.ndarray],
    ctx: Any,
) -> tuple[Any, tuple[Any, ...]]:
    drawn = np.flatnonzero(np.random.rand(shape[0]) < density)
    rows = drawn if rows is None else np.asarray(rows)
    if not len(rows):
        empty = nd.zeros(tuple(shape), stype="row_sparse", dtype=dtype, ctx=ctx)
        return empty, (np.array([], dtype), np.array([]))
    entries = changed(np.random.rand(len(rows), *shape[1:])).astype(dtype)
    how = {"shape": tuple(shape), "ctx": ctx, "dtype": dtype}
    return nd.sparse.row_sparse_array((entries, rows), **how), (entries, rows)


def _even(shape: Shape, density: float) -> np.ndarray:
    return np.random.rand(*shape) < density


def _powerlaw(shape: Shape, density: float) -> np.ndarray:
    """One entry in the first row, two in the next, and so on, until the density is reached."""
    rows, columns = shape
    left, count = int(rows * columns * density), 1
    result = np.zeros((rows, columns), bool)
    for row in result:
        held = min(count, columns, left)
        row[:held] = True
        left, count = left - held, 2 * count
    return result


def create_sparse_array(
    shape: Shape,
    stype: str,
    data_init: float | None = None,
    rsp_indices: Any = None,
    dtype: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    density: float = 0.5,
    shuffle_csr_indices: bool = False,
) -> Any:
    """A sparse array with random numbers; see ``rand_sparse_ndarray``."""
    rows = None if rsp_indices is None else np.sort(np.asarray(rsp_indices))
    how: Any = {"data_init": data_init, "rsp_indices": rows, "modifier_func": modifier_func}
    found, _ = rand_sparse_ndarray(shape, stype, density, dtype, **how)
    return found


def create_sparse_array_zd(
    shape: Shape, stype: str, density: float, rsp_indices: Any = None, **how: Any
) -> Any:
    """``create_sparse_array``; a row-sparse array has exactly the rows ``rsp_indices``."""
    share = 0.0 if stype == "row_sparse" else density
    return create_sparse_array(shape, stype, rsp_indices=rsp_indices, density=share, **how)


# Entry by entry --------------------------------------------------------------------------------


def assign_each(the_input: Any, function: Callable[[Any], Any] | None) -> np.ndarray:
    """``function`` applied to each entry; a copy if it is None."""
    given = np.array(the_input)
    return given if function is None else np.vectorize(function, otypes=[float])(given)


def assign_each2(
    input1: Any, input2: Any, function: Callable[[Any, Any], Any] | None
) -> np.ndarray:
    """``function`` applied to each pair of entries; a copy of the first array if it is None."""
    one = np.array(input1)
    return one if function is None else np.vectorize(function, otypes=[float])(one, input2)


def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> NDArray:
    """An array whose entries are their row indices."""
    numbers = np.broadcast_to(np.arange(rows)[:, None], (rows, columns))
    result: NDArray = nd.array(numbers, dtype=dtype)
    return result


def create_vector(size: int, dtype: Any = np.int64) -> NDArray:
    """The integers from 0 to ``size - 1``."""
    result: NDArray = nd.array(np.arange(size), dtype=dtype)
    return result


# Shapes ----------------------------------------------------------------------------------------


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


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """Two random integers within bounds; upper bounds are exclusive."""
    return int(np.random.randint(x_low, x_high)), int(np.random.randint(y_low, y_high))
