"""Norms of dense and row-sparse gradients, and clipping by norm."""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse
from registry.errors import DTypeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast
from registry.ops.core.comparison import greater
from registry.ops.core.elementwise import where
from registry.ops.optim.first_order import SOME_ROWS
from registry.ops.optim.updates import inner, returned
from registry.shapes import same
from registry.table import op
from registry.types import DType, Shape, VarKind, VarType, is_floating
from registry.values import SelectedRows
from registry.var import Var

Length = Annotated[float, Check("be positive", lambda length: length > 0)]
"""An upper bound of a norm."""


def _require_floating(*types: VarType) -> None:
    for one in types:
        if not is_floating(one.dtype):
            raise DTypeError(f"the inputs must be real floating, got {one.dtype.name}")


def _norm_dtype(*types: VarType) -> DType:
    """The dtype in which a norm of arrays of ``types`` is computed: single precision at least."""
    _require_floating(*types)
    return _widest([one.dtype for one in types])


def _widest(dtypes: Sequence[DType]) -> DType:
    wide = any(dtype.itemsize > 4 for dtype in dtypes)
    return np.dtype(np.float64 if wide else np.float32)


def _norm(xs: Sequence[Any]) -> Array:
    """The root of the sum of all squares; rows that are named twice count as one row."""
    dtype = _widest([np.dtype(one.dtype) for one in xs])
    values = [one.merged().values if isinstance(one, SelectedRows) else one for one in xs]
    squares = [jnp.sum(jnp.square(one.astype(dtype))) for one in values]
    total = sum(squares[1:], squares[0])
    # The root has no derivative at zero: if all entries are zero, so is the gradient of the norm.
    nothing = total == 0
    return jnp.where(nothing, 0, jnp.sqrt(jnp.where(nothing, 1, total)))


def _clipped(xs: Sequence[Any], max_norm: float) -> list[Any]:
    xs = [one if isinstance(one, SelectedRows) else jnp.asarray(one) for one in xs]
    norm = _norm(xs)
    factor = jnp.where(norm > max_norm, max_norm / jnp.where(norm == 0, 1, norm), 1)

    def scaled(values: Any) -> Any:
        wide = values.astype(_widest([np.dtype(values.dtype)]))
        return (wide * factor.astype(wide.dtype)).astype(values.dtype)

    return [one.mapped(scaled) if isinstance(one, SelectedRows) else scaled(one) for one in xs]


def _norm_reference(*xs: np.ndarray) -> np.ndarray:
    wide = [np.asarray(x, np.float64) for x in xs]
    return np.asarray(math.sqrt(math.fsum(float(np.vdot(x, x)) for x in wide)))


def _clipped_reference(*xs: np.ndarray, max_norm: float) -> Any:
    norm = float(_norm_reference(*xs))
    factor = max_norm / norm if norm > max_norm else 1.0
    clipped = [np.asarray(x * factor).astype(np.asarray(x).dtype) for x in xs]
    return clipped if len(clipped) > 1 else clipped[0]


def _clipping_gradient(xs: Sequence[Var], cotangents: Sequence[Var], max_norm: float) -> list[Any]:
    """Gradients of ``x * s``, where ``s = max_norm / norm`` if that is less than 1.

    Then ``ds = -s / norm^2 * <x, dx>``, summed over all arrays.
    """
    dtype = _widest([x.dtype for x in xs])
    wide = [cast(x, dtype=dtype) for x in xs]
    wide_cotangents = [cast(d, dtype=dtype) for d in cotangents]
    norm = global_norm(*wide)
    over = greater(norm, max_norm)
    safe = where(over, norm, 1.0)
    factor = where(over, max_norm / safe, 1.0)
    products = [inner(x, d) for x, d in zip(wide, wide_cotangents, strict=True)]
    along = where(over, factor / (safe * safe), 0.0) * sum(products[1:], products[0])
    return [
        returned(d * factor - x * along, like)
        for x, d, like in zip(wide, wide_cotangents, xs, strict=True)
    ]


@op(
    shape=lambda *shapes: (),
    dtype=_norm_dtype,
    reference=_norm_reference,
    cases=[
        case(xs=[(3, 4), (2,), ()]),
        case(xs=[(3,)]),
        case(xs=[SOME_ROWS, (2,)]),
        case(xs=[(0, 3), (2,)], order=2),
        misuse("the inputs must be real floating, got int", xs=[np.arange(3)]),
    ],
)
def global_norm(*xs: Array) -> Array:
    """The Euclidean norm of all entries of all arrays: the root of the sum of their squares.

    The result is in single precision at least. Arrays may be ``SelectedRows``: rows that are named
    twice count as their sum. If all entries are zero, the gradient is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> global_norm(jnp.asarray([3.0, 0.0]), jnp.asarray(4.0))
        Array(5., dtype=float32)
    """
    return _norm([jnp.asarray(one) for one in xs])


@global_norm.on_rows("xs")
def _norm_of_rows(*xs: Any) -> Any:
    return _norm([one if isinstance(one, SelectedRows) else jnp.asarray(one) for one in xs])


@global_norm.gradient
def _global_norm_gradient(xs: Sequence[Var], out: Var, d_out: Var) -> Grads:
    some = greater(out, 0.0)
    share = where(some, d_out / where(some, out, 1.0), 0.0)
    return {"xs": [returned(cast(x, dtype=out.dtype) * share, x) for x in xs]}


def _clip_dtype(x: VarType) -> DType:
    _require_floating(x)
    return x.dtype


@op(
    shape=same,
    dtype=_clip_dtype,
    reference=_clipped_reference,
    cases=[
        case(x=(3, 4), max_norm=0.5),
        case(x=(3, 4), max_norm=50.0),
        case(x=(), max_norm=0.1),
        case(x=(0, 2), max_norm=1.0, order=1),
        case(x=SOME_ROWS, max_norm=0.5),
        misuse("must be positive", x=(3,), max_norm=0.0),
        misuse("the inputs must be real floating, got int", x=np.arange(3), max_norm=1.0),
    ],
)
def clip_by_norm(x: Array, *, max_norm: Length) -> Array:
    """Scales ``x`` to norm ``max_norm`` if its norm is larger: ``x * max_norm / |x|``.

    ``x`` may be ``SelectedRows``; rows that are named twice count as their sum.

    Example:
        >>> import jax.numpy as jnp
        >>> clip_by_norm(jnp.asarray([3.0, 4.0]), max_norm=1.0)
        Array([0.6, 0.8], dtype=float32)
    """
    clipped: Array = _clipped([x], max_norm)[0]
    return clipped


@clip_by_norm.kind
def _clip_kind(x: VarKind) -> VarKind:
    return x


@clip_by_norm.on_rows("x")
def _clip_rows(x: SelectedRows, *, max_norm: float) -> Any:
    return _clipped([x], max_norm)[0]


@clip_by_norm.gradient
def _clip_by_norm_gradient(x: Var, d_out: Var, *, max_norm: float) -> Grads:
    return {"x": _clipping_gradient([x], [d_out], max_norm)[0]}


def _how_many(xs: Sequence[Any]) -> int:
    return len(xs)


def _each_shape(*shapes: Shape) -> Any:
    return list(shapes) if len(shapes) > 1 else shapes[0]


def _each_dtype(*types: VarType) -> list[DType]:
    _require_floating(*types)
    return [one.dtype for one in types]


@op(
    outputs=["*outs"],
    count=_how_many,
    shape=_each_shape,
    dtype=_each_dtype,
    reference=_clipped_reference,
    cases=[
        case(xs=[(3, 4), (2,), ()], max_norm=0.5),
        case(xs=[(3, 4), (2,)], max_norm=50.0),
        case(xs=[(3,)], max_norm=0.1),
        case(xs=[SOME_ROWS, (2,), SOME_ROWS], max_norm=0.5),
        misuse("must be positive", xs=[(3,)], max_norm=-1.0),
        misuse("the inputs must be real floating, got int", xs=[np.arange(3)], max_norm=1.0),
    ],
)
def clip_by_global_norm(*xs: Array, max_norm: Length) -> tuple[Array, ...]:
    """Scales all arrays together if their ``global_norm`` exceeds ``max_norm``.

    Each is multiplied by ``max_norm / norm`` (Pascanu et al., "On the difficulty of training
    recurrent neural networks", 2013). Arrays may be ``SelectedRows``, and remain so; rows that are
    named twice count as their sum.

    Example:
        >>> import jax.numpy as jnp
        >>> clip_by_global_norm(jnp.asarray([3.0]), jnp.asarray(4.0), max_norm=1.0)
        (Array([0.6], dtype=float32), Array(0.8, dtype=float32))
    """
    return tuple(_clipped(xs, max_norm))


@clip_by_global_norm.kind
def _clip_kinds(xs: Sequence[VarKind]) -> tuple[VarKind, ...]:
    return tuple(xs)


@clip_by_global_norm.on_rows("xs")
def _clip_all(*xs: Any, max_norm: float) -> tuple[Any, ...]:
    return tuple(_clipped(xs, max_norm))


@clip_by_global_norm.gradient
def _clip_by_global_norm_gradient(
    xs: Sequence[Var], d_outs: Sequence[Var], *, max_norm: float
) -> Grads:
    return {"xs": _clipping_gradient(xs, d_outs, max_norm)}
