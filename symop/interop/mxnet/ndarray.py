"""``mx.nd``: arrays, and every operator of MXNet as an eager function.

Names not defined here are operators: ``mx.nd.relu(x)``. 64-bit dtypes require JAX's 64-bit mode
(``jax_enable_x64``); otherwise they become 32-bit dtypes.
"""

from collections.abc import Callable as _Callable
from collections.abc import Mapping as _Mapping
from typing import Any as _Any

import jax as _jax
import numpy as _np

import symop as _so
from registry.values import SelectedRows as _SelectedRows
from symop.interop.mxnet import sparse_arrays as _sparse
from symop.interop.mxnet import sparse_creation as _creation
from symop.interop.mxnet.array_calls import caller as _caller
from symop.interop.mxnet.array_checks import gather_nd, take
from symop.interop.mxnet.array_checks import potrf as linalg_potrf
from symop.interop.mxnet.array_contrib import FUNCTIONS as _CONTRIB
from symop.interop.mxnet.array_memory import from_numpy
from symop.interop.mxnet.array_methods import called as _called
from symop.interop.mxnet.array_methods import moveaxis, split_v2
from symop.interop.mxnet.array_operators import binary as _binary
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.arrays import array_of as _array_of
from symop.interop.mxnet.arrays import filled as _filled
from symop.interop.mxnet.arrays import is_small as _is_small
from symop.interop.mxnet.cached_op import CachedOp
from symop.interop.mxnet.context import placed as _placed
from symop.interop.mxnet.errors import MXNetError as _MXNetError
from symop.interop.mxnet.fluent import BINARY as _BINARY
from symop.interop.mxnet.namespaces import Namespace as _Namespace
from symop.interop.mxnet.np_shapes import require_filled as _require_filled
from symop.interop.mxnet.operators import TABLE as _TABLE
from symop.interop.mxnet.parameters import load_params as _load_params
from symop.interop.mxnet.parameters import save_params as _save_params
from symop.interop.mxnet.samplers import samplers as _samplers
from symop.interop.mxnet.sparse import CSRArray as _CSRArray
from symop.interop.mxnet.sparse_arrays import CSRNDArray, RowSparseNDArray
from symop.io.files import PathLike as _PathLike

__all__ = [
    "CSRNDArray", "CachedOp", "NDArray", "RowSparseNDArray", "arange", "array", "cast_storage",
    "concatenate", "contrib", "empty", "eye", "from_dlpack", "from_numpy", "full", "gather_nd",
    "histogram", "image", "linalg", "linalg_potrf", "linspace", "load", "load_frombuffer",
    "moveaxis", "onehot_encode", "ones", "op", "random", "save", "sparse", "split_v2", "take",
    "to_dlpack_for_read", "to_dlpack_for_write", "true_divide", "waitall", "zeros",
]  # fmt: skip
Shape = int | tuple[int, ...] | list[int]
_FILLED = (None, "float32", "int32", _np.float32, _np.int32)

# Creation --------------------------------------------------------------------------------------


def array(source_array: _Any, ctx: _Any = None, dtype: _Any = None) -> _Any:
    """Creates an array from numbers, nested lists, or another array.

    Args:
        source_array: the entries.
        ctx: the device.
        dtype: the dtype; defaults to that of an ``mx.nd`` array, and float32 for other sources.

    Raises:
        TypeError: the entries are not numbers.

    Example:
        >>> array([1, 2, 3])
        <BLANKLINE>
        [1. 2. 3.]
        <NDArray 3 @cpu(0)>
    """
    if isinstance(source_array, NDArray):
        if source_array.is_sparse:
            return _creation.array(source_array, ctx, dtype)
        made = source_array.astype(dtype or source_array.dtype)
        return made if ctx is None else made.as_in_context(ctx)
    if hasattr(source_array, "tocsr"):
        return _creation.array(source_array, ctx, dtype)
    try:
        given = _np.array(source_array, _np.float32 if dtype is None else dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"array: the entries must be numbers, got {source_array!r}") from error
    return _made(_jax.device_put(given), ctx)


def _made(value: _jax.Array, ctx: _Any) -> NDArray:
    return NDArray(_so.NDArray(_placed(value, ctx)))


def zeros(
    shape: Shape, ctx: _Any = None, dtype: _Any = None, stype: str | None = None, **others: _Any
) -> NDArray:
    """Zeros; float32 by default.

    Raises:
        MXNetError: a length is not positive, outside of ``mx.np_shape()``.
    """
    if stype not in (None, "default"):
        return _creation.zeros(stype, shape, ctx, dtype)
    _require_filled("zeros", shape)
    return _constant("_zeros", 0, shape, ctx, dtype, others)


def empty(shape: Shape, ctx: _Any = None, dtype: _Any = None, stype: str | None = None) -> NDArray:
    """An array with arbitrary entries, here zeros."""
    return zeros(shape, ctx, dtype, stype)


def ones(shape: Shape, ctx: _Any = None, dtype: _Any = None, **others: _Any) -> NDArray:
    """Ones; float32 by default.

    Raises:
        MXNetError: a length is not positive, outside of ``mx.np_shape()``.
    """
    _require_filled("ones", shape)
    return _constant("_ones", 1, shape, ctx, dtype, others)


def _constant(
    operator: str, number: int, shape: Shape, ctx: _Any, dtype: _Any, others: dict[str, _Any]
) -> NDArray:
    """An array of equal numbers; nothing is compiled for a small one of a common dtype."""
    lengths = _np.atleast_1d(shape).tolist()
    if others or dtype not in _FILLED or not _is_small(lengths):
        made: NDArray = _called(operator)(shape=shape, ctx=ctx, dtype=dtype, **others)
        return made
    return _made(_filled(tuple(lengths), number, dtype or "float32"), ctx)


def full(
    shape: Shape, val: _Any, ctx: _Any = None, dtype: _Any = None, out: NDArray | None = None
) -> NDArray:
    """An array filled with a number, or with the broadcast array ``val``."""
    result = zeros(shape, ctx, dtype) if out is None else out
    result[:] = val
    return result


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: _Any = None,
    ctx: _Any = None,
    dtype: _Any = None,
) -> NDArray:
    """Evenly spaced numbers up to ``stop``, exclusive, each repeated ``repeat`` times."""
    del infer_range
    options = {"repeat": repeat, "ctx": ctx, "dtype": dtype}
    result: NDArray = _called("_arange")(start=start, stop=stop, step=step, **options)
    return result


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    ctx: _Any = None,
    dtype: _Any = None,
) -> NDArray:
    """``num`` evenly spaced numbers."""
    options = {"endpoint": endpoint, "ctx": ctx, "dtype": dtype}
    result: NDArray = _called("_linspace")(start=start, stop=stop, num=num, **options)
    return result


def eye(
    N: int,  # MXNet's name
    M: int = 0,
    k: int = 0,
    ctx: _Any = None,
    dtype: _Any = None,
    **others: _Any,
) -> NDArray:
    """Ones on a diagonal, zeros elsewhere."""
    result: NDArray = _called("_eye")(N=N, M=M, k=k, ctx=ctx, dtype=dtype, **others)
    return result


def from_dlpack(dlpack: _Any) -> NDArray:
    """An array from another library's array, without a copy where possible."""
    return _array_of(_jax.dlpack.from_dlpack(dlpack))


def to_dlpack_for_read(data: NDArray) -> _Any:
    """The value as a JAX array, which other libraries' ``from_dlpack`` accept."""
    return data.value


to_dlpack_for_write = to_dlpack_for_read


def waitall() -> None:
    """Waits for all computations."""
    _so.nd.waitall()
    _jax.effects_barrier()  # type: ignore[no-untyped-call]  # of JAX


# Joining and inspection ------------------------------------------------------------------------


def concatenate(arrays: list[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Concatenates arrays of one dtype along an axis."""
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    result: NDArray = _called("Concat")(*arrays, dim=axis)
    return result


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Writes the one-hot rows of ``indices`` to ``out``."""
    out.become(_called("one_hot")(indices, depth=out.shape[1]).inner)
    return out


def histogram(a: NDArray, bins: int | NDArray = 10, range: _Any = None) -> tuple[NDArray, NDArray]:
    """The number of entries in each bin, and the bin bounds."""
    if isinstance(bins, NDArray):
        counts, bounds = _called("_histogram")(a, bins)
        return counts, bounds
    if range is None:
        entries = a.asnumpy()
        range = (float(entries.min()), float(entries.max()))
    counts, bounds = _called("_histogram")(a, bin_cnt=bins, range=range)
    return counts, bounds


def cast_storage(data: NDArray, stype: str) -> NDArray:
    """The array in the storage type ``"default"``, ``"row_sparse"`` or ``"csr"``."""
    result: NDArray = _called("cast_storage")(data, stype=stype)
    return result


true_divide = _binary("divide")
globals().update({_name: _binary(_name) for _name in _BINARY})
__all__ += list(_BINARY)

# Files -----------------------------------------------------------------------------------------


def save(fname: _PathLike, data: NDArray | list[NDArray] | _Mapping[str, NDArray]) -> None:
    """Writes arrays to a file that MXNet reads.

    Raises:
        TypeError: an item is not an array.
    """
    given = [data] if isinstance(data, NDArray) else data
    values = list(given.values()) if isinstance(given, _Mapping) else list(given)
    if not all(isinstance(one, NDArray) for one in values):
        raise TypeError("save: it takes an array, a list of arrays, or a dict of them by name")
    parts = [_part(one) for one in values]
    names = given.keys() if isinstance(given, _Mapping) else None
    _save_params(fname, parts if names is None else dict(zip(names, parts, strict=True)))


def _part(one: NDArray) -> _Any:
    """The stored form of an array."""
    return one.parts() if isinstance(one, (RowSparseNDArray, CSRNDArray)) else one.value


def load(fname: _PathLike) -> list[NDArray] | dict[str, NDArray]:
    """Loads the arrays of a file, by name or as a list; an array never filled is None.

    Raises:
        MXNetFormatError: the file is damaged.
        OSError: the file cannot be read.
    """
    return _loaded(_load_params(fname))


def load_frombuffer(buf: bytes) -> list[NDArray] | dict[str, NDArray]:
    """Loads arrays as ``load`` does, from the bytes of a file."""
    return _loaded(_load_params(buf))


def _loaded(found: _Any) -> list[NDArray] | dict[str, NDArray]:
    if isinstance(found, dict):
        return {name: _unpacked(one) for name, one in found.items()}
    return [_unpacked(one) for one in found]


def _unpacked(one: _Any) -> _Any:
    if one is None:
        return None
    if isinstance(one, _SelectedRows):
        return _creation.row_sparse_of(one)
    if isinstance(one, _CSRArray):
        return _creation.csr_of(one)
    return _made(_jax.device_put(one), None)


# Namespaces ------------------------------------------------------------------------------------


def _namespace(name: str, prefix: str, functions: _Mapping[str, _Any] | None = None) -> _Namespace:
    return _Namespace(f"mx.nd.{name}", prefix, _caller, functions)


random = _namespace("random", "_random_", _samplers(_called, least=1))
linalg = _namespace("linalg", "_linalg_", {"potrf": linalg_potrf})
image = _namespace("image", "_image_")
contrib = _namespace("contrib", "_contrib_", _CONTRIB)
op = _internal = _namespace("op", "")
sparse = _namespace(
    "sparse",
    "",
    {
        "BaseSparseNDArray": _sparse.BaseSparseNDArray,
        "CSRNDArray": CSRNDArray,
        "RowSparseNDArray": RowSparseNDArray,
        "adagrad_update": _called("_sparse_adagrad_update"),
        "array": _creation.array,
        "cast_storage": cast_storage,
        "csr_matrix": _creation.csr_matrix,
        "empty": _creation.empty,
        "retain": _called("_sparse_retain"),
        "row_sparse_array": _creation.row_sparse_array,
        "square_sum": _called("_square_sum"),
        "zeros": _creation.zeros,
        **{name: _binary(name) for name in ("add", "subtract", "multiply", "divide")},
    },
)


def __getattr__(name: str) -> _Callable[..., _Any]:
    if name.startswith("__"):
        raise AttributeError(f"mx.nd has no operator {name!r}")
    try:
        function = _called(name)
    except _MXNetError as error:
        raise AttributeError(f"mx.nd: {error}") from None
    if name in _TABLE:  # not cached for user operators, which may be declared again
        globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted({*__all__, *_TABLE})
