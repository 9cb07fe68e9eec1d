"""Padding with a constant, the edge, reflections, or periodically."""

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.arranging import flip
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape
from registry.ops.core.slicing import pad_slice, slice_
from registry.ops.shape.dynamic_slicing import slice_axis
from registry.shapes import require_held
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

Mode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]
"""The values of the padding."""
Pairs = tuple[tuple[int, int], ...]
"""The numbers of entries added before and after each axis."""
Widths = int | Pairs
"""The same, or one number for both ends of all axes."""
CheckedWidths = Annotated[
    int | tuple[tuple[int, int], ...],
    Check("hold no negative number", lambda value: bool(np.all(np.array(value, int) >= 0))),
]


def _pairs(pad_width: Widths, x: Shape) -> Pairs:
    """The numbers of entries added to each axis of an array of shape ``x``."""
    pairs = ((pad_width, pad_width),) * len(x) if isinstance(pad_width, int) else pad_width
    if len(pairs) != len(x):
        raise AttributeValueError(f"pad_width must have one pair for each axis of {x}, got {pairs}")
    return pairs


def _pad_shape(x: Shape, *, pad_width: Widths, mode: Mode) -> Shape:
    pairs = _pairs(pad_width, x)
    for n, pair in zip(x, pairs, strict=True):
        if n == 0 and any(pair) and mode != "constant":
            raise ShapeError(f"an axis without entries must stay so in mode {mode}, got shape {x}")
    return tuple(n + low + high for n, (low, high) in zip(x, pairs, strict=True))


def _pad_dtype(x: VarType, *, constant_value: float) -> tuple[DType, bool]:
    require_held("constant_value", constant_value, x.dtype)
    return x.dtype, x.weak


def _pad_reference(
    x: np.ndarray, *, pad_width: Widths, mode: Mode = "constant", constant_value: float = 0
) -> np.ndarray:
    if mode == "constant":
        return np.pad(x, pad_width, constant_values=constant_value) if x.ndim else x
    return np.pad(x, pad_width, mode) if x.ndim else x


@op(
    shape=_pad_shape,
    dtype=_pad_dtype,
    reference=_pad_reference,
    cases=[
        case(x=(3, 4), pad_width=((1, 2), (3, 0)), mode="reflect"),
        case(x=(2, 3), pad_width=((1, 2), (0, 1))),
        case(x=(2, 3), pad_width=((1, 2), (3, 1)), mode="edge"),
        case(x=(3, 2), pad_width=((1, 2), (2, 0)), mode="symmetric"),
        case(x=(3, 2), pad_width=((1, 2), (2, 0)), mode="wrap"),
        case(x=(3,), pad_width=((5, 4),), mode="reflect", order=2),
        case(x=(2,), pad_width=((5, 3),), mode="wrap", order=2),
        case(x=(2,), pad_width=((5, 3),), mode="symmetric", order=2),
        case(x=(2, 3), pad_width=((0, 1), (20, 17)), mode="reflect", order=1),
        case(x=(3,), pad_width=((20, 17),), mode="symmetric", order=1),
        case(x=(3,), pad_width=((17, 20),), mode="wrap", order=1),
        case(x=(1,), pad_width=((2, 1),), mode="reflect", order=2),
        case(x=(1, 2), pad_width=((2, 1), (0, 0)), mode="edge", order=2),
        case(x=(2,), pad_width=((1, 1),), constant_value=-1.5),
        case(x=integers(2, high=9), pad_width=((1, 1),), constant_value=7),
        case(x=(2, 3), pad_width=1, order=1),
        case(x=(3,), pad_width=2, mode="reflect", order=2),
        case(x=(), pad_width=()),
        case(x=(), pad_width=3, mode="wrap", order=1),
        case(x=(0,), pad_width=((1, 1),)),
        workload(x=(1024, 1024), pad_width=((8, 8), (8, 8)), mode="reflect"),
        misuse("pad_width must have one pair for each axis of (2,)", x=(2,), pad_width=()),
        misuse("must hold no negative number", x=(2,), pad_width=((0, -1),)),
        misuse("must hold no negative number", x=(2,), pad_width=-1),
        misuse("an axis without entries must stay so", x=(0,), pad_width=((1, 0),), mode="edge"),
        misuse(
            "constant_value must be of dtype int32, got 0.5",
            x=integers(2, high=9),
            pad_width=((1, 1),),
            constant_value=0.5,
        ),
    ],
)
def pad(
    x: Array,
    *,
    pad_width: CheckedWidths,
    mode: Literal["constant", "edge", "reflect", "symmetric", "wrap"] = "constant",
    constant_value: int | float = 0,
) -> Array:
    """Pads ``x`` with ``pad_width[i] = (before, after)`` entries at the ends of axis ``i``.

    A single number applies to both ends of all axes.
    ``constant`` adds ``constant_value``; ``edge`` repeats the first and the last entry; ``reflect``
    mirrors the entries without repeating the edge, ``symmetric`` with it; ``wrap`` continues from
    the other end. ``[1, 2, 3]`` padded by two at each end is ``[1, 1, 1, 2, 3, 3, 3]`` with
    ``edge``, ``[3, 2, 1, 2, 3, 2, 1]`` with ``reflect``, ``[2, 1, 1, 2, 3, 3, 2]`` with
    ``symmetric`` and ``[2, 3, 1, 2, 3, 1, 2]`` with ``wrap``. The padding may be longer than the
    axis: the pattern repeats.

    Example:
        >>> import jax.numpy as jnp
        >>> pad(jnp.asarray([1, 2, 3]), pad_width=((1, 2),), mode="reflect")
        Array([2, 1, 2, 3, 2, 1], dtype=int32)
    """
    x = jnp.asarray(x)
    pairs = _pairs(pad_width, x.shape)
    widths = np.reshape(np.array(pairs, int), (x.ndim, 2))
    if mode == "constant":
        return jnp.pad(x, widths, constant_values=jnp.asarray(constant_value, x.dtype))
    for axis, (n, pair) in enumerate(zip(x.shape, pairs, strict=True)):
        if mode != "edge" and n > 1 and max(pair) >= n:
            x, widths[axis] = _repeated(x, axis, pair, mode), 0
    return jnp.pad(x, widths, mode)


def _repeated(x: Array, axis: int, pair: tuple[int, int], mode: Mode) -> Array:
    """Pads an axis by more than its length: a period of the pattern is repeated."""
    n = x.shape[axis]
    period, alone = _period(n, mode)
    back = jnp.flip(lax.slice_in_dim(x, alone, n - alone, axis=axis), axis)
    once = x if mode == "wrap" else jnp.concatenate([x, back], axis)
    start, length = -pair[0] % period, n + sum(pair)
    times = -(-(start + length) // period)
    copies = [times if i == axis else 1 for i in range(x.ndim)]
    return lax.slice_in_dim(jnp.tile(once, copies), start, start + length, axis=axis)


def _period(n: int, mode: Mode) -> tuple[int, int]:
    """The period of the pattern, and how many entries at each edge are not reflected."""
    alone = 1 if mode == "reflect" else 0
    return (n if mode == "wrap" else 2 * (n - alone)), alone


# The gradient ----------------------------------------------------------------------------------


class _Run(NamedTuple):
    """Consecutive entries of the padding that are consecutive in ``x`` too, or copies of one entry.

    Attributes:
        start, stop: bounds of the run in the padded axis.
        first: the lowest entry of ``x`` that the run repeats.
        step: the step between entries of ``x``: 1, -1, or 0 for copies of one entry.
    """

    start: int
    stop: int
    first: int
    step: int


def _origins(n: int, pair: tuple[int, int], mode: Mode) -> np.ndarray:
    """The entry of an axis of length ``n`` that each entry of the padded axis repeats."""
    places = np.arange(-pair[0], n + pair[1])
    if mode == "edge" or n == 1:
        return np.clip(places, 0, n - 1)
    if mode == "wrap":
        return places % n
    # Both reflections are periodic: there and back, with each of the two edges once or twice.
    edges = 1 if mode == "symmetric" else 0
    period = 2 * (n - 1 + edges)
    folded = places % period
    return np.minimum(folded, period - edges - folded)


def _runs(origins: list[int], start: int, stop: int) -> Iterator[_Run]:
    """The maximal runs between two positions of the padded axis."""
    steps = np.diff(origins).tolist()
    while start < stop:
        step = steps[start] if start + 1 < stop else 1
        end = start + 1
        while end < stop and abs(step) <= 1 and steps[end - 1] == step:
            end += 1
        yield _Run(start, end, min(origins[start:end]), step)
        start = end


_MANY = 4
"""The number of runs above which an axis is padded by more than its length."""


def _folded(d: Var, axis: int, n: int, pair: tuple[int, int], mode: Mode) -> Var:
    """The adjoint of padding with many periods: sums the periods, then folds at the edges."""
    period, alone = _period(n, mode)
    before = -pair[0] % period
    after = -(before + d.shape[axis]) % period
    whole = pad(d, pad_width=tuple((before, after) if i == axis else (0, 0) for i in range(d.ndim)))
    apart = reshape(whole, shape=(*d.shape[:axis], -1, period, *d.shape[axis + 1 :]))
    once = sum_over(apart, axis=axis)
    there: Var = slice_axis(once, axis=axis, begin=0, end=n)
    if mode == "wrap" or n == 2 * alone:
        return there
    back = flip(slice_axis(once, axis=axis, begin=n, end=period), axis=axis)
    edges = tuple((alone, alone) if i == axis else (0, 0) for i in range(d.ndim))
    total: Var = there + pad(back, pad_width=edges)
    return total


def _back(d: Var, axis: int, n: int, pair: tuple[int, int], mode: Mode) -> Var:
    """The adjoint of padding one axis of length ``n``.

    An entry receives its own cotangent and those of its copies. The copies form runs; each run is
    brought into the order of ``x``, or summed, and added at its origin.
    """
    low = pair[0]
    total: Var = slice_axis(d, axis=axis, begin=low, end=low + n)
    origins = _origins(n, pair, mode).tolist()
    length = len(origins)
    runs = [*_runs(origins, 0, low), *_runs(origins, low + n, length)]
    if len(runs) > _MANY:
        return _folded(d, axis, n, pair, mode)
    for run in runs:
        part = slice_axis(d, axis=axis, begin=run.start, end=run.stop)
        if run.step == 0:
            part = sum_over(part, axis=axis, keepdims=True)
        elif run.step == -1:
            part = flip(part, axis=axis)
        begin = tuple(run.first if i == axis else 0 for i in range(d.ndim))
        total = total + pad_slice(part, shape=total.shape, begin=begin, step=(1,) * d.ndim)
    return total


@pad.gradient
def _pad_gradient(x: Var, d_out: Var, *, pad_width: Widths, mode: Mode) -> Grads:
    pairs = _pairs(pad_width, x.shape)
    if mode == "constant":
        ends = tuple(low + n for n, (low, _) in zip(x.shape, pairs, strict=True))
        return {"x": slice_(d_out, begin=tuple(low for low, _ in pairs), end=ends)}
    d = d_out
    for axis, (n, pair) in enumerate(zip(x.shape, pairs, strict=True)):
        if any(pair):
            d = _back(d, axis, n, pair, mode)
    return {"x": d}


@pad.simplify
def _pad_simplify(x: Var, *, pad_width: Widths) -> Var | None:
    return None if any(map(any, _pairs(pad_width, x.shape))) else x
