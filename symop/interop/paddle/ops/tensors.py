"""Tensors of Paddle 2: assignments to ranges, diagonals, products, decompositions, numbers."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.convolutions import channels_last
from symop.interop.paddle.ops.dtypes import dtype_of
from symop.interop.paddle.values import known, numbers

# Copies ------------------------------------------------------------------------------------------


@operator(
    "share_data",
    "memcpy",
    "memcpy_h2d",
    "memcpy_d2h",
    "fetch_v2",
    ignored="dst_place_type col deepcopy",
)
def share_data(X: Any) -> Any:
    return so.identity(X)


@operator(outputs="")
def delete_var(X: Values) -> Any:
    """Does nothing: values are freed when nothing reads them."""
    return {}


@operator(
    outputs="Output FusedOutput",
    several="Output",
    ignored="check_name persist_output "
    "use_align align_size user_defined_size_of_dtype concated_shapes concated_ranks dtype",
)
def coalesce_tensor(
    Input: Values,
    *,
    copy_data: bool = False,
    set_constant: bool = False,
    constant: float = 0.0,
) -> Any:
    """Returns its inputs, or constants in their shapes, and all of them in one vector."""
    values = [so.full_like(one, constant) for one in Input] if set_constant else Input
    flat = [so.reshape(one, shape=(-1,)) for one in values]
    return [so.identity(one) for one in values], so.concat(*flat, axis=0)


@operator(outputs="Out", several="Out")
def broadcast_tensors(X: Values) -> Any:
    shape = np.broadcast_shapes(*(one.shape for one in X))
    return [so.broadcast_to(one, shape=shape) for one in X]


# Assignments -------------------------------------------------------------------------------------


@operator(no_gradient="StartsTensorList EndsTensorList StepsTensorList")
def set_value(
    Input: Any,
    ValueTensor: Any = None,
    StartsTensorList: Values | None = None,
    EndsTensorList: Values | None = None,
    StepsTensorList: Values | None = None,
    *,
    dtype: int = 5,
    axes: Sequence[int],
    starts: Sequence[int] = (),
    ends: Sequence[int] = (),
    steps: Sequence[int] = (),
    decrease_axes: Sequence[int] = (),
    none_axes: Sequence[int] = (),
    values: Sequence[Any] = (),
    bool_values: Sequence[int] = (),
    fp32_values: Sequence[float] = (),
    int32_values: Sequence[int] = (),
    int64_values: Sequence[int] = (),
    fp64_values: Sequence[float] = (),
    shape: Sequence[int] = (),
) -> Any:
    """Returns a tensor with other entries in a range."""
    bounds = (
        _each(attribute, tensors)
        for attribute, tensors in (
            (starts, StartsTensorList),
            (ends, EndsTensorList),
            (steps or [1] * len(axes), StepsTensorList),
        )
    )
    places = np.arange(math.prod(Input.shape), dtype=np.int32).reshape(Input.shape)
    for axis, start, stop, step in zip(axes, *bounds, strict=True):
        cut: list[Any] = [slice(None)] * places.ndim
        # An end before the first entry, of a range that runs backwards, is its beginning.
        length = places.shape[axis]
        last = None if step < 0 and stop < -length else stop
        cut[axis] = slice(start, last, step)
        places = places[tuple(cut)]
    value = ValueTensor
    if value is None:
        given = next(
            one
            for one in (values, fp32_values, int32_values, int64_values, bool_values, fp64_values)
            if len(one)
        )
        value = jnp.asarray(np.asarray(given).reshape(tuple(shape)), Input.dtype)
    kept = [n for i, n in enumerate(places.shape) if i not in decrease_axes]
    for axis in none_axes:
        kept.insert(axis, 1)
    value = so.broadcast_to(so.cast(value, dtype=Input.dtype), shape=tuple(kept))
    flat = so.reshape(Input, shape=(-1,))
    ids, new = jnp.asarray(places.ravel()), so.reshape(value, shape=(-1,))
    return so.reshape(so.index_update(flat, ids, new, axis=0), shape=Input.shape)


def _each(attribute: Sequence[int], tensors: Values | None) -> Sequence[int]:
    return [numbers("set_value", one)[0] for one in tensors] if tensors else attribute


@operator("put_along_axis", outputs="Result", no_gradient="Index", ignored="Include_self")
def put_along_axis(Input: Any, Index: Any, Value: Any, *, Axis: int, Reduce: str = "assign") -> Any:
    if Reduce not in ("assign", "add"):
        raise PaddleError(f"put_along_axis: Reduce must be assign or add, got {Reduce!r}")
    axis = Axis % Input.ndim
    shape = tuple(n if i == axis else Input.shape[i] for i, n in enumerate(Index.shape))
    strides = [math.prod(Input.shape[i + 1 :]) for i in range(Input.ndim)]
    others = np.zeros(shape, np.int32)
    for i, ticks in enumerate(np.indices(shape, dtype=np.int32)):
        others += ticks * (strides[i] if i != axis else 0)
    index = so.broadcast_to(so.cast(Index, dtype="int32"), shape=shape)
    index = so.where(so.less(index, 0), index + Input.shape[axis], index)
    ids = so.reshape(index * strides[axis] + jnp.asarray(others), shape=(-1,))
    value = so.reshape(so.broadcast_to(Value, shape=shape), shape=(-1,))
    write = so.index_update if Reduce == "assign" else so.index_add
    flat = write(so.reshape(Input, shape=(-1,)), ids, value, axis=0)
    return so.reshape(flat, shape=Input.shape)


@operator(no_gradient="Index")
def index_add(X: Any, Index: Any, AddValue: Any, *, axis: int = 0) -> Any:
    return so.index_add(X, Index, AddValue, axis=axis % X.ndim)


@operator(no_gradient="RepeatsTensor")
def repeat_interleave(X: Any, RepeatsTensor: Any = None, *, Repeats: int = 0, dim: int = 0) -> Any:
    count = X.shape[dim]
    times = (
        numbers("repeat_interleave: RepeatsTensor", RepeatsTensor)
        if (RepeatsTensor is not None)
        else [Repeats] * count
    )
    return so.take(X, jnp.asarray(np.repeat(np.arange(count), times), jnp.int32), axis=dim)


# Constants -------------------------------------------------------------------------------------


@operator()
def seed(*, seed: int = 0, deterministic: bool = False) -> Any:
    """Returns a seed; random operators draw from the program's own generator."""
    return jnp.asarray([seed], jnp.int32)


@operator(no_gradient="ShapeTensor ShapeTensorList")
def empty(
    ShapeTensor: Any = None,
    ShapeTensorList: Values | None = None,
    *,
    shape: Sequence[int] = (),
    dtype: int = 5,
) -> Any:
    """Returns zeros, where Paddle leaves any numbers."""
    lengths: Sequence[int] = shape
    if ShapeTensor is not None:
        lengths = numbers("empty: ShapeTensor", ShapeTensor)
    elif ShapeTensorList:
        lengths = [numbers("empty: ShapeTensorList", one)[0] for one in ShapeTensorList]
    return so.zeros(shape=tuple(lengths), dtype=dtype_of(dtype))


@operator()
def fill(*, value: Sequence[float], shape: Sequence[int], dtype: int = 5) -> Any:
    return jnp.asarray(np.asarray(value).reshape(tuple(shape)), dtype_of(dtype))


@operator()
def fill_any(X: Any, *, value: float = 0.0) -> Any:
    return so.full_like(X, value)


@operator(ignored="wrap")
def fill_diagonal(X: Any, *, value: float = 0.0, offset: int = 0) -> Any:
    inside = np.eye(X.shape[-2], X.shape[-1], offset, bool)
    return so.where(jnp.asarray(inside), so.full_like(X, value), X)


@operator("tril_indices", outputs="out")
def tril_indices(*, rows: int = 0, cols: int = 0, offset: int = 0, dtype: int = 3) -> Any:
    return jnp.asarray(np.stack(np.tril_indices(rows, offset, cols)), dtype_of(dtype))


@operator("triu_indices", outputs="out")
def triu_indices(*, row: int = 0, col: int = 0, offset: int = 0, dtype: int = 3) -> Any:
    return jnp.asarray(np.stack(np.triu_indices(row, offset, col)), dtype_of(dtype))


@operator(no_gradient="Start Stop Num Base")
def logspace(Start: Any, Stop: Any, Num: Any, Base: Any, *, dtype: int) -> Any:
    count, kind = numbers("logspace: Num", Num)[0], dtype_of(dtype)
    start, stop, base = (
        so.cast(so.reshape(one, shape=()), dtype=kind) for one in (Start, Stop, Base)
    )
    steps = jnp.linspace(0.0, 1.0, count, dtype=kind) if count > 1 else jnp.zeros(1, kind)
    return so.power(base, start + (stop - start) * steps)


# Diagonals and products --------------------------------------------------------------------------


@operator()
def diag_embed(Input: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    count, ndim = Input.shape[-1] + abs(offset), Input.ndim + 1
    rows, columns = np.indices((count, count))
    at = rows if offset >= 0 else columns
    inside = columns - rows == offset
    found = so.take(Input, jnp.asarray(np.where(inside, at, 0), jnp.int32), axis=-1)
    matrix = so.where(jnp.asarray(inside), found, so.zeros_like(found))
    first, second = dim1 % ndim, dim2 % ndim
    return so.moveaxis(matrix, (-2, -1), (first, second))


@operator(outputs="Out InnerCache XShape", several="InnerCache XShape")
def einsum(Operands: Values, *, equation: str, call: Any) -> Any:
    """Returns a sum of products; what Paddle keeps for gradients stays empty."""
    empty = [so.zeros(shape=(0,), dtype="float32")]
    kept = (empty * len(call.op.output(slot)) for slot in ("InnerCache", "XShape"))
    return so.einsum(equation, *Operands), *kept


@operator()
def multi_dot(X: Values) -> Any:
    result = X[0]
    for one in X[1:]:
        result = so.matmul(result, one)
    return result


@operator()
def matrix_power(X: Any, *, n: int) -> Any:
    return so.matrix_power(X, n=n)


@operator()
def determinant(Input: Any) -> Any:
    return so.det(Input)


@operator()
def slogdeterminant(Input: Any) -> Any:
    sign, size = so.slogdet(Input)
    return so.concat(so.expand_dims(sign, axis=0), so.expand_dims(size, axis=0), axis=0)


@operator(outputs="U S VH")
def svd(X: Any, *, full_matrices: bool = False) -> Any:
    return tuple(so.svd(X, full_matrices=full_matrices))


@operator(outputs="Q R")
def qr(X: Any, *, mode: Any = "reduced") -> Any:
    return tuple(so.qr(X, mode=mode))


@operator(outputs="Eigenvalues Eigenvectors")
def eigh(X: Any, *, UPLO: str = "L") -> Any:
    lower = so.tril(X) if UPLO == "L" else so.swapaxes(so.triu(X), -1, -2)
    below = so.tril(lower, k=-1)
    return tuple(so.eigh(lower + so.swapaxes(below, -1, -2)))


@operator()
def solve(X: Any, Y: Any) -> Any:
    if Y.ndim == 1 and X.ndim == 2:
        return so.squeeze(so.solve(X, so.expand_dims(Y, axis=1)), axis=1)
    return so.solve(X, Y)


@operator()
def triangular_solve(
    X: Any, Y: Any, *, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    return so.triangular_solve(
        X, Y, transpose=transpose, lower=not upper, unit_diagonal=unitriangular
    )


@operator()
def cholesky_solve(X: Any, Y: Any, *, upper: bool = False) -> Any:
    lower = so.swapaxes(Y, -1, -2) if upper else Y
    half = so.triangular_solve(lower, X, lower=True)
    return so.triangular_solve(lower, half, lower=True, transpose=True)


# Numbers -----------------------------------------------------------------------------------------

_COMPLEX: dict[str, Callable[..., Any]] = {
    "real": so.real,
    "imag": so.imag,
    "conj": so.conj,
}


def _entrywise(name: str, function: Callable[..., Any]) -> None:
    @operator(name)
    def composed(X: Any) -> Any:
        return function(X)


for _name, _function in _COMPLEX.items():
    _entrywise(_name, _function)

_BESSEL: dict[str, Callable[..., Any]] = {
    "i0": so.bessel_i0,
    "i0e": so.bessel_i0e,
    "i1": so.bessel_i1,
    "i1e": so.bessel_i1e,
}


def _bessel(name: str, function: Callable[..., Any]) -> None:
    @operator(name, outputs="out")
    def composed(x: Any) -> Any:
        return function(x)


for _name, _function in _BESSEL.items():
    _bessel(_name, _function)


@operator(outputs="out")
def polygamma(x: Any, *, n: int) -> Any:
    return so.polygamma(x, n=n)


@operator()
def angle(X: Any) -> Any:
    return so.arctan2(so.imag(X), so.real(X))


@operator()
def elementwise_heaviside(X: Any, Y: Any) -> Any:
    ones, zeros = so.ones_like(X), so.zeros_like(X)
    return so.where(so.equal(X, 0.0), Y, so.where(so.greater(X, 0.0), ones, zeros))


@operator(no_gradient="Input Other Rtol Atol")
def isclose(
    Input: Any,
    Other: Any,
    Rtol: Any = None,
    Atol: Any = None,
    *,
    rtol: str = "1e-5",
    atol: str = "1e-8",
    equal_nan: bool = False,
) -> Any:
    relative = float(rtol) if Rtol is None else so.reshape(Rtol, shape=())
    absolute = float(atol) if Atol is None else so.reshape(Atol, shape=())
    near = so.less_equal(so.abs(Input - Other), absolute + relative * so.abs(Other))
    near = so.logical_or(near, so.equal(Input, Other))
    if equal_nan:
        near = so.logical_or(near, so.logical_and(so.isnan(Input), so.isnan(Other)))
    return near


def _cumulative(name: str, function: Callable[..., Any]) -> None:
    @operator(name, outputs="out indices")
    def composed(x: Any, *, axis: int = -1, dtype: int = 3) -> Any:
        at = axis % x.ndim
        found = function(x, axis=at)
        ruler = np.arange(x.shape[at]).reshape([-1 if i == at else 1 for i in range(x.ndim)])
        places = so.where(so.equal(x, found), jnp.asarray(ruler, jnp.int32), 0)
        return found, so.cast(so.cummax(places, axis=at), dtype=dtype_of(dtype))


_cumulative("cummax", so.cummax)
_cumulative("cummin", so.cummin)


@operator(outputs="Out Indices")
def kthvalue(X: Any, *, k: int = 1, axis: int = -1, keepdim: bool = False) -> Any:
    order = so.argsort(X, axis=axis)
    at = so.slice_axis(order, axis=axis, begin=k - 1, end=k)
    value = so.take_along_axis(X, at, axis=axis)
    return tuple(one if keepdim else so.squeeze(one, axis=axis) for one in (value, at))


@operator(no_gradient="SortedSequence Values")
def searchsorted(
    SortedSequence: Any, Values: Any, *, out_int32: bool = False, right: bool = False
) -> Any:
    if SortedSequence.ndim != 1:
        raise PaddleError(
            f"searchsorted: SortedSequence must have one axis, got {SortedSequence.ndim}"
        )
    found = so.searchsorted(SortedSequence, Values, side="right" if right else "left")
    return so.cast(found, dtype="int32" if out_int32 else dtype_of(3))


@operator(no_gradient="X")
def bincount(X: Any, Weights: Any = None, *, minlength: int = 0) -> Any:
    size = max(int(known("bincount: X", X).max(initial=-1)) + 1, minlength)
    ones = so.ones(shape=X.shape, dtype="int32") if Weights is None else Weights
    return so.add_rows(ones, X, height=size)


@operator()
def renorm(X: Any, *, p: float, axis: int, max_norm: float) -> Any:
    axes = tuple(i for i in range(X.ndim) if i != axis % X.ndim)
    size = so.power(so.sum(so.power(so.abs(X), p), axis=axes, keepdims=True), 1 / p)
    factor = so.where(so.greater(size, max_norm), max_norm / (size + 1e-7), so.ones_like(size))
    return X * factor


@operator(no_gradient="X")
def multinomial(X: Any, *, num_samples: int = 1, replacement: bool = False) -> Any:
    """Draws classes by their weights, with or without replacement."""
    logs = so.log(X / so.sum(X, axis=-1, keepdims=True))
    draws = (*X.shape[:-1], num_samples, X.shape[-1]) if replacement else X.shape
    noise = -so.log(-so.log(so.sym.random_uniform(low=1e-20, high=1.0, shape=draws)))
    if replacement:
        return so.cast(so.argmax(so.expand_dims(logs, axis=-2) + noise, axis=-1), dtype=dtype_of(3))
    return so.cast(so.topk(logs + noise, k=num_samples)[1], dtype=dtype_of(3))


@operator()
def identity_loss(X: Any, *, reduction: int = 1) -> Any:
    return so.sum(X) if reduction == 0 else so.mean(X) if reduction == 1 else so.identity(X)


# Images ----------------------------------------------------------------------------------------


@operator()
def pixel_unshuffle(X: Any, *, downscale_factor: int = 1, data_format: str = "NCHW") -> Any:
    last, r = channels_last(data_format), downscale_factor
    x = so.transpose(X, axes=(0, 3, 1, 2)) if last else X
    n, c, h, w = x.shape
    parts = so.reshape(x, shape=(n, c, h // r, r, w // r, r))
    out = so.reshape(
        so.transpose(parts, axes=(0, 1, 3, 5, 2, 4)), shape=(n, c * r * r, h // r, w // r)
    )
    return so.transpose(out, axes=(0, 2, 3, 1)) if last else out


@operator()
def channel_shuffle(X: Any, *, groups: int, data_format: str = "NCHW") -> Any:
    axis = 3 if channels_last(data_format) else 1
    count = X.shape[axis]
    split = (*X.shape[:axis], groups, count // groups, *X.shape[axis + 1 :])
    return so.reshape(so.swapaxes(so.reshape(X, shape=split), axis, axis + 1), shape=X.shape)


@operator(outputs="Y")
def fold(
    X: Any,
    *,
    output_sizes: Sequence[int],
    kernel_sizes: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
) -> Any:
    """Adds windows into an image, the adjoint of ``unfold``."""
    before = tuple(paddings[:2])
    after = tuple(paddings[2:]) or before
    return so.col2im(
        X,
        output_size=tuple(output_sizes),
        kernel=tuple(kernel_sizes),
        stride=tuple(strides),
        padding=tuple(zip(before, after, strict=True)),
        dilation=tuple(dilations),
    )


def _partial(X: Values, start: int, length: int) -> list[Any]:
    width = X[0].shape[1]
    begin = start % width if start < 0 else start
    end = width if length < 0 else begin + length
    return [so.slice_axis(one, axis=1, begin=begin, end=end) for one in X]


@operator()
def partial_concat(X: Values, *, start_index: int = 0, length: int = -1) -> Any:
    return so.concat(*_partial(X, start_index, length), axis=1)


@operator()
def partial_sum(X: Values, *, start_index: int = 0, length: int = -1) -> Any:
    return so.add_n(*_partial(X, start_index, length))
