"""What the optimizers share: rules of types, arithmetic of at least single precision, rows."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.attributes import Check
from registry.errors import DTypeError, KindError, ShapeError
from registry.ops.broadcasting import cast, sum_to, unbroadcast
from registry.shapes import completing
from registry.types import DType, Shape, VarKind, VarType, is_inexact
from registry.values import SelectedRows
from registry.var import Var

Kernel = Callable[..., Any]
Decay = Annotated[float, Check("be in [0, 1)", lambda rate: 0 <= rate < 1)]
"""How much of a moving average stays in each step."""
NotNegative = Annotated[float, Check("not be negative", lambda number: number >= 0)]


# Types -----------------------------------------------------------------------------------------


def update_shape(states: int, scalars: int = 1) -> Callable[..., Any]:
    """The shape rule of an update: parameter, gradient and states alike, then single numbers."""
    tables = 2 + states

    def completes(shapes: Sequence[Shape | None], out: Shape | None) -> list[Shape | None]:
        found = next((one for one in (*shapes[:tables], out) if one is not None), None)
        return [*[found] * tables, *[()] * scalars]

    @completing(completes)
    def shape(*shapes: Shape) -> Any:
        param = shapes[0]
        if any(one != param for one in shapes[1:tables]):
            alike = ", ".join(map(str, shapes[:tables]))
            raise ShapeError(f"parameter, gradient and states must have one shape, got {alike}")
        if any(one != () for one in shapes[tables:]):
            alone = ", ".join(map(str, shapes[tables:]))
            raise ShapeError(f"rates and steps must be single numbers, of shape (), got {alone}")
        return [param] * (1 + states) if states else param

    return shape


def update_dtype(states: int, *, steps: bool = False) -> Callable[..., Any]:
    """The dtype rule of an update: the parameter and each state keep theirs."""
    tables = 2 + states

    def dtype(*types: VarType) -> Any:
        for one in types[:tables]:
            if not is_inexact(one.dtype) or one.dtype.kind == "c":
                raise DTypeError(
                    "parameter, gradient and states must be real floating, got "
                    + ", ".join(each.dtype.name for each in types[:tables])
                )
        for one in types[tables + steps :]:
            if one.dtype.kind in "bc":
                raise DTypeError(f"learning_rate must be a real number, got {one.dtype.name}")
        if steps and types[tables].dtype.kind not in "iu":
            raise DTypeError(f"step must be an integer, got {types[tables].dtype.name}")
        kept = [types[0].dtype, *[one.dtype for one in types[2:tables]]]
        return kept if states else kept[0]

    return dtype


# Kernels ---------------------------------------------------------------------------------------


def wide_dtype(dtype: DType) -> DType:
    """The dtype in which a parameter of ``dtype`` is updated: single precision at least."""
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype


def widened(*values: Any) -> list[Any]:
    """Arrays in the dtype in which an update of the first of them is computed."""
    dtype = wide_dtype(jnp.asarray(values[0]).dtype)
    return [jnp.asarray(one).astype(dtype) for one in values]


def kept(like: Sequence[Any], *values: Any) -> tuple[Any, ...]:
    """New values of ``like``, each in its dtype."""
    return tuple(new.astype(jnp.asarray(old).dtype) for old, new in zip(like, values, strict=True))


def by_rows(update: Kernel, states: int) -> Kernel:
    """The kernel for gradients that are rows, from the update of dense arrays.

    ``lazy``, or where an update by zero changes nothing, it is done on the rows of the gradient
    alone, each merged first. Otherwise the gradient is made dense.
    """

    def kernel(
        param: Any, grad: SelectedRows, *rest: Any, lazy: bool = True, **attributes: Any
    ) -> Any:
        if not lazy:
            return update(param, grad.to_dense(), *rest, **attributes)
        tables, numbers = (param, *rest[:states]), rest[states:]
        merged = grad.merged()
        own, *others = [merged.of(table) for table in tables]
        new = update(own, merged.values, *others, *numbers, **attributes)
        parts = zip(tables, new if states else [new], strict=True)
        placed = tuple(SelectedRows(merged.rows, r, merged.height).put_into(t) for t, r in parts)
        return placed if states else placed[0]

    return kernel


# Makers ----------------------------------------------------------------------------------------


def widely(like: Var, *values: Var) -> list[Any]:
    """Values in the dtype in which an update of ``like`` is computed."""
    dtype = wide_dtype(like.dtype)
    return [cast(one, dtype=dtype) for one in values]


def returned(gradient: Any, like: Var) -> Any:
    """A gradient in the dtype of ``like``."""
    return unbroadcast(gradient, like)


def inner(x: Any, y: Any) -> Any:
    """Sum of the products of all entries."""
    return sum_to(x * y, shape=())


def require_defined(grad: Var, *, lazy: bool) -> None:
    """Refuse to differentiate an update that leaves out rows which the gradient does not name.

    Raises:
        KindError: which rows it names decides; that has no derivative.
    """
    if lazy and grad.kind is VarKind.SELECTED_ROWS:
        raise KindError(
            "a lazy update by selected_rows has no gradient; use lazy=False, or "
            "get_tensor_from_selected_rows"
        )
