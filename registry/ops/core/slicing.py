"""Operators that join arrays, split them and slice them."""

import itertools
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.attributes import Check
from registry.operator.infer import abstract
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.reshaping import axis_moved, reshape
from registry.pieces import Part, Piece
from registry.shapes import listed, normalize_axis, promote, strong
from registry.table import op
from registry.types import Shape, VarType, is_symbolic
from registry.var import Var


def said(values: Sequence[Any]) -> Any:
    """The result of a rule for several outputs: a tuple, or the single value of one output."""
    return values[0] if len(values) == 1 else tuple(values)


# concat and split ------------------------------------------------------------------------------


def _concat_shape(xs: Sequence[Shape], *, axis: int) -> Shape:
    first = xs[0]
    at = normalize_axis(axis, len(first))
    others = {(*shape[:at], *shape[at + 1 :]) for shape in xs}
    if len(others) > 1 or any(len(shape) != len(first) for shape in xs):
        raise ShapeError(f"the inputs must agree in all axes but {axis}, got {listed(xs)}")
    return (*first[:at], sum(shape[at] for shape in xs), *first[at + 1 :])


@op(
    rearranges=True,
    shape=_concat_shape,
    dtype=promote,
    reference=lambda *xs, axis=0: np.concatenate(xs, axis),
    aliases=["concatenate"],
    cases=[
        case(xs=[(2, 3), (4, 3)]),
        case(xs=[(2, 3), (2, 1), (2, 0)], axis=-1),
        case(xs=[(3,)]),
        case(xs=[(2,), integers(3, high=9)]),
        workload(xs=[(512, 1024), (256, 1024), (256, 1024)]),
        misuse("the inputs must agree in all axes but 0, got (2, 3)", xs=[(2, 3), (2, 4)]),
        misuse("axis must be in [-1, 1), got 1", xs=[(2,), (2,)], axis=1),
    ],
)
def concat(*xs: Array, axis: int = 0) -> Array:
    """Concatenates arrays along an existing axis.

    Example:
        >>> import jax.numpy as jnp
        >>> concat(jnp.asarray([1, 2]), jnp.asarray([3]))
        Array([1, 2, 3], dtype=int32)
    """
    return jnp.concatenate(xs, axis)


@concat.gradient
def _concat_gradient(xs: Sequence[Var], d_out: Var, *, axis: int) -> Grads:
    at = axis % d_out.ndim
    ends = np.cumsum([x.shape[at] for x in xs]).tolist()
    if any(map(is_symbolic, ends)):
        parts = [_span(d_out, at, *pair) for pair in itertools.pairwise([0, *ends])]
    else:
        parts = split(d_out, sections=tuple(ends[:-1]), axis=at)
    return {"xs": [unbroadcast(part, x) for part, x in zip(parts, xs, strict=True)]}


def _span(x: Var, axis: int, start: int, end: int) -> Any:
    """Entries ``start`` to ``end`` of one axis."""
    begins, ends = [0] * x.ndim, list(x.shape)
    begins[axis], ends[axis] = start, end
    return slice_(x, begin=tuple(begins), end=tuple(ends))


@concat.simplify
def _concat_simplify(xs: Sequence[Var]) -> Var | None:
    return xs[0] if len(xs) == 1 else None


@concat.joined
def _concat_joined(parts: Sequence[Part], *, axis: int) -> Any:
    return concat(*(_side_by_side(one, axis) for one in parts), axis=axis)


def _side_by_side(part: Part, axis: int) -> Any:
    """Stacked arrays, joined along one of their own axes."""
    if not part.several:
        return part.value
    count, *shape = part.value.shape
    at = axis % len(shape)
    moved = axis_moved(part.value, 0, at)
    return reshape(moved, shape=(*shape[:at], count * shape[at], *shape[at + 1 :]))


def _ascend(sections: int | tuple[int, ...]) -> bool:
    if isinstance(sections, int):
        return sections > 0
    return all(low <= high for low, high in itertools.pairwise((0, *sections)))


Sections = Annotated[
    int | tuple[int, ...], Check("be a positive number or ascending positions", _ascend)
]
"""The number of equal parts of a split, or the positions at which it splits."""


def _split_count(*, sections: int | tuple[int, ...]) -> int:
    return sections if isinstance(sections, int) else len(sections) + 1


def _positions(length: int, sections: int | tuple[int, ...]) -> tuple[int, ...]:
    """The positions at which an axis of that length is split."""
    if isinstance(sections, int):
        if length % sections:
            raise ShapeError(f"sections must divide the axis of length {length}, got {sections}")
        return tuple(i * (length // sections) for i in range(1, sections))
    if sections and sections[-1] > length:
        raise ShapeError(f"the positions must be at most {length}, got {sections}")
    return sections


def _split_shape(x: Shape, *, sections: int | tuple[int, ...], axis: int) -> Any:
    at = normalize_axis(axis, len(x))
    cuts = (0, *_positions(x[at], sections), x[at])
    return said([(*x[:at], high - low, *x[at + 1 :]) for low, high in itertools.pairwise(cuts)])


@op(
    outputs=("*parts",),
    count=_split_count,
    shape=_split_shape,
    dtype=promote,
    reference=lambda x, *, sections, axis=0: said(np.split(x, sections, axis)),
    cases=[
        case(x=(4, 3), sections=2),
        case(x=(2, 5), sections=(1, 1, 4), axis=-1),
        case(x=(3,), sections=(2,)),
        case(x=(3,), sections=1),
        case(x=(0, 2), sections=2),
        case(x=integers(4, high=9), sections=2),
        workload(x=(512, 4, 512), sections=4, axis=1),
        misuse("axis must be in [-1, 1), got 1", x=(2,), sections=2, axis=1),
        misuse("sections must divide the axis of length 3, got 2", x=(3,), sections=2),
        misuse("the positions must be at most 3, got (1, 4)", x=(3,), sections=(1, 4)),
        misuse("must be a positive number or ascending positions", x=(3,), sections=(2, 1)),
    ],
)
def split(x: Array, *, sections: Sections, axis: int = 0) -> tuple[Array, ...]:
    """Splits ``x`` along ``axis`` into ``sections`` equal parts or at the given positions.

    Positions ``(a, b)`` give ``x[:a]``, ``x[a:b]`` and ``x[b:]``.

    Example:
        >>> import jax.numpy as jnp
        >>> split(jnp.asarray([1, 2, 3]), sections=(1,))
        (Array([1], dtype=int32), Array([2, 3], dtype=int32))
    """
    return tuple(jnp.split(x, sections if isinstance(sections, int) else list(sections), axis))


@split.gradient
def _split_gradient(d_parts: tuple[Var, ...], *, axis: int) -> Grads:
    return {"x": concat(*d_parts, axis=axis)}


@split.piece
def _split_piece(x: Shape, *, sections: int | tuple[int, ...], axis: int) -> Callable[[int], Piece]:
    at = normalize_axis(axis, len(x))
    if isinstance(sections, int):
        length = x[at] // sections
        return lambda i: Piece(at, i * length, length, kept=True)
    cuts = (0, *sections, x[at])
    return lambda i: Piece(at, cuts[i], cuts[i + 1] - cuts[i], kept=True)


# slice ----------------------------------------------------------------------------------------


Bounds = tuple[int | None, ...]


class Span(NamedTuple):
    """The positions of an axis that a slice selects: ``length`` of them starting at ``start``.

    If ``jax.export`` leaves the length of the axis symbolic, they are expressions in that length.
    """

    start: int
    step: int
    length: int

    @property
    def stop(self) -> int:
        """The position after the last one."""
        return self.start + (self.length - 1) * self.step + 1 if self.length else self.start


def span(n: int, begin: int | None, end: int | None, step: int | None = 1) -> Span:
    """The positions that a slice selects from an axis of length ``n``, by Python's rules."""
    if any(map(is_symbolic, (n, begin, end))):
        start = n - _length(n, slice(begin, None))
        return Span(start, step or 1, _length(n, slice(begin, end, step)))
    places = range(*slice(begin, end, step).indices(n))
    return Span(places.start, places.step, len(places))


def _length(n: int, taken: slice) -> int:
    """The length of a slice of an axis, as JAX computes it for symbolic lengths."""
    axis = abstract(VarType((n,), np.dtype(np.bool_)))
    length: int = jax.eval_shape(lambda x: x[taken], axis).shape[0]
    return length


def _spans(x: Shape, begin: Bounds, end: Bounds, step: Bounds | None) -> list[Span]:
    """The positions that a slice selects along each axis, by Python's rules."""
    steps = (1,) * len(begin) if step is None else step
    if not len(begin) == len(end) == len(steps) <= len(x):
        raise AttributeValueError(
            f"begin, end and step must have one length of at most {len(x)}, "
            f"got {begin}, {end} and {step}"
        )
    if any(one is not None and one < 1 for one in steps):
        raise AttributeValueError(f"step must be positive, got {step}")
    cut = [span(*axis) for axis in zip(x, begin, end, steps, strict=False)]
    return [*cut, *(Span(0, 1, n) for n in x[len(cut) :])]


def _slice_shape(x: Shape, *, begin: Bounds, end: Bounds, step: Bounds | None) -> Shape:
    return tuple(one.length for one in _spans(x, begin, end, step))


def _slice_reference(
    x: np.ndarray, *, begin: Bounds, end: Bounds, step: Bounds | None = None
) -> np.ndarray:
    steps = (None,) * len(begin) if step is None else step
    return x[tuple(map(slice, begin, end, steps))]


@op(
    rearranges=True,
    name="slice",
    shape=_slice_shape,
    dtype=promote,
    reference=_slice_reference,
    cases=[
        case(x=(5, 4), begin=(1, 0), end=(4, 2)),
        case(x=(5, 4), begin=(-3,), end=(None,)),
        case(x=(7, 4), begin=(1, None), end=(-1, 4), step=(2, 3)),
        case(x=(4,), begin=(3,), end=(1,)),
        case(x=(), begin=(), end=()),
        case(x=(0, 4), begin=(0, 1), end=(None, 3)),
        case(x=integers(5, high=9), begin=(1,), end=(3,)),
        workload(x=(1024, 1024), begin=(2, 0), end=(1000, 1024), step=(2, 1)),
        misuse("must have one length of at most 1", x=(4,), begin=(0, 0), end=(1, 1)),
        misuse("step must be positive, got (-1,)", x=(4,), begin=(0,), end=(1,), step=(-1,)),
    ],
)
def slice_(
    x: Array,
    *,
    begin: tuple[int | None, ...],
    end: tuple[int | None, ...],
    step: tuple[int | None, ...] | None = None,
) -> Array:
    """Slices ``x`` as ``x[begin[0]:end[0]:step[0], ...]`` by Python's rules, for positive steps.

    Axes without a given range are kept whole.

    Example:
        >>> import jax.numpy as jnp
        >>> slice_(jnp.asarray([1, 2, 3, 4]), begin=(1,), end=(None,), step=(2,))
        Array([2, 4], dtype=int32)
    """
    x = jnp.asarray(x)
    spans = _spans(x.shape, begin, end, step)
    starts, steps = [s.start for s in spans], [s.step for s in spans]
    return lax.slice(x, starts, [s.stop for s in spans], steps)


@slice_.gradient
def _slice_gradient(
    x: Var, d_out: Var, *, begin: Bounds, end: Bounds, step: Bounds | None
) -> Grads:
    spans = _spans(x.shape, begin, end, step)
    starts, steps = tuple(s.start for s in spans), tuple(s.step for s in spans)
    return {"x": pad_slice(d_out, shape=x.shape, begin=starts, step=steps)}


@slice_.piece
def _slice_piece(x: Shape, *, begin: Bounds, end: Bounds, step: Bounds | None) -> Piece | None:
    spans = _spans(x, begin, end, step)
    cut = [i for i, one in enumerate(spans) if one.length != x[i]]
    if len(cut) != 1 or spans[cut[0]].step != 1:
        return None
    taken = spans[cut[0]]
    return Piece(cut[0], taken.start, taken.length, kept=True)


@slice_.simplify
def _slice_simplify(x: Var, *, begin: Bounds, end: Bounds, step: Bounds | None) -> Var | None:
    return x if _slice_shape(x.shape, begin=begin, end=end, step=step) == x.shape else None


Strides = Annotated[
    tuple[int, ...], Check("hold positive numbers", lambda step: all(by > 0 for by in step))
]


def _pad_slice_ends(x: Shape, shape: Shape, begin: Shape, step: Shape) -> list[int]:
    """The number of zeros after the entries of ``x`` on each axis."""
    return [
        n - (start + (k - 1) * by + 1 if k else start)
        for n, k, start, by in zip(shape, x, begin, step, strict=True)
    ]


def _pad_slice_shape(x: Shape, *, shape: Shape, begin: Shape, step: Shape) -> Shape:
    if not len(x) == len(shape) == len(begin) == len(step):
        raise ShapeError(
            f"shape, begin and step must have one entry for each axis of x, got {shape}, {begin} "
            f"and {step} for shape {x}"
        )
    if any(n < 0 for n in (*begin, *_pad_slice_ends(x, shape, begin, step))):
        raise ShapeError(f"x must fit into {shape} from {begin} in steps {step}, got shape {x}")
    return shape


def _pad_slice_reference(x: np.ndarray, *, shape: Shape, begin: Shape, step: Shape) -> np.ndarray:
    padded = np.zeros(shape, x.dtype)
    spans = zip(begin, step, x.shape, strict=True)
    padded[tuple(slice(start, start + by * k, by) for start, by, k in spans)] = x
    return padded


@op(
    shape=_pad_slice_shape,
    dtype=strong,
    reference=_pad_slice_reference,
    cases=[
        case(x=(3, 2), shape=(5, 4), begin=(1, 0), step=(1, 1)),
        case(x=(3,), shape=(8,), begin=(1,), step=(3,)),
        case(x=(0,), shape=(4,), begin=(3,), step=(1,)),
        case(x=(), shape=(), begin=(), step=()),
        workload(x=(510, 1000), shape=(1024, 1024), begin=(2, 10), step=(2, 1)),
        misuse("x must fit into (3,) from (1,)", x=(3,), shape=(3,), begin=(1,), step=(1,)),
        misuse("must have one entry for each axis", x=(3,), shape=(3, 3), begin=(1,), step=(1,)),
        misuse("'step' must hold positive numbers", x=(3,), shape=(3,), begin=(0,), step=(0,)),
    ],
)
def pad_slice(x: Array, *, shape: tuple[int, ...], begin: tuple[int, ...], step: Strides) -> Array:
    """Writes ``x`` into zeros of ``shape``, starting at ``begin`` with strides ``step``.

    This is the adjoint of ``slice``.

    Example:
        >>> import jax.numpy as jnp
        >>> pad_slice(jnp.asarray([1, 2]), shape=(5,), begin=(1,), step=(2,))
        Array([0, 1, 0, 2, 0], dtype=int32)
    """
    x = jnp.asarray(x)
    after = _pad_slice_ends(x.shape, shape, begin, step)
    config = [(low, high, by - 1) for low, high, by in zip(begin, after, step, strict=True)]
    return lax.pad(x, jnp.zeros((), x.dtype), config)


@pad_slice.gradient
def _pad_slice_gradient(x: Var, d_out: Var, *, begin: Shape, step: Shape) -> Grads:
    ends = tuple(start + by * k for start, by, k in zip(begin, step, x.shape, strict=True))
    return {"x": slice_(d_out, begin=begin, end=ends, step=step)}
