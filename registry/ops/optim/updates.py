"""Shared by the optimizers: type rules, arithmetic in single precision at least, and rows."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.cases import Case, Misuse
from registry.errors import DTypeError, KindError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Operator
from registry.ops.core.broadcasting import cast, sum_to, unbroadcast
from registry.shapes import completing
from registry.table import op
from registry.types import (
    DType,
    Shape,
    VarKind,
    VarType,
    is_boolean,
    is_complex,
    is_floating,
    is_integer,
)
from registry.values import SelectedRows
from registry.var import Var

Kernel = Callable[..., Any]
Decay = Annotated[float, Check("be in [0, 1)", lambda rate: 0 <= rate < 1)]
"""The fraction of a moving average that remains in each step."""
NotNegative = Annotated[float, Check("not be negative", lambda number: number >= 0)]


# Types -----------------------------------------------------------------------------------------


def update_shape(states: int, scalars: int = 1) -> Callable[..., Any]:
    """The shape rule of an update: one shape for parameter, gradient and states, then scalars."""
    tables = 2 + states

    def completes(shapes: Sequence[Shape | None], out: Shape | None) -> list[Shape | None]:
        common = next((one for one in (*shapes[:tables], out) if one is not None), None)
        return [*[common] * tables, *[()] * scalars]

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
    """The dtype rule of an update: the parameter and each state keep their dtypes."""
    tables = 2 + states

    def dtype(*types: VarType) -> Any:
        for one in types[:tables]:
            if not is_floating(one.dtype):
                raise DTypeError(
                    "parameter, gradient and states must be real floating, got "
                    + ", ".join(each.dtype.name for each in types[:tables])
                )
        for one in types[tables + steps :]:
            if is_boolean(one.dtype) or is_complex(one.dtype):
                raise DTypeError(f"learning_rate must be a real number, got {one.dtype.name}")
        if steps and not is_integer(types[tables].dtype):
            raise DTypeError(f"step must be an integer, got {types[tables].dtype.name}")
        kept = [types[0].dtype, *[one.dtype for one in types[2:tables]]]
        return kept if states else kept[0]

    return dtype


# Kernels ---------------------------------------------------------------------------------------


def wide_dtype(dtype: DType) -> DType:
    """Returns the dtype in which a parameter of ``dtype`` is updated: single precision at least."""
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype


def widened(*values: Any) -> list[Any]:
    """Casts arrays to the dtype in which an update of the first one is computed."""
    dtype = wide_dtype(jnp.asarray(values[0]).dtype)
    return [jnp.asarray(one).astype(dtype) for one in values]


def kept(like: Sequence[Any], *values: Any) -> tuple[Any, ...]:
    """Casts the new values to the dtypes of the old ones, ``like``."""
    return tuple(new.astype(jnp.asarray(old).dtype) for old, new in zip(like, values, strict=True))


def by_rows(update: Kernel, states: int) -> Kernel:
    """Returns the kernel for row-sparse gradients, from the update of dense arrays.

    If ``lazy``, or if an update by zero changes nothing, only the rows of the gradient are updated,
    after merging. Otherwise the gradient is made dense.
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


# Declaration -----------------------------------------------------------------------------------


def update(
    reference: Kernel, *, cases: Sequence[Case | Misuse], lazy: bool = False
) -> Callable[[Kernel], Operator]:
    """Declares a step of an optimizer by its formula, on arrays of one dtype.

    The formula takes ``param``, ``grad``, the states, perhaps ``step``, and ``learning_rate``, and
    returns the new parameter and the new states. The operator computes it in single precision at
    least; its outputs ``new_<slot>`` have the dtypes of their inputs and may take their place.

    Args:
        reference: the same formula in NumPy; its results may have any dtype.
        cases: sample calls.
        lazy: whether the operator has the attribute ``lazy``, because zero gradients change
            something: it tells whether row-sparse gradients update only the rows that they name.
    """

    def declare(formula: Kernel) -> Operator:
        signature = inspect.signature(formula)
        slots = formula.__code__.co_varnames[: formula.__code__.co_argcount]
        steps = "step" in slots
        states = slots[2 : -1 - steps]

        @functools.wraps(formula)
        def dense(*values: Any, **attributes: Any) -> Any:
            old = (values[0], *values[2 : 2 + len(states)])
            return kept(old, *formula(*widened(*values), **attributes))

        @functools.wraps(formula)
        def kernel(*values: Any, lazy: bool = False, **attributes: Any) -> Any:
            del lazy
            return dense(*values, **attributes)

        if lazy:
            kernel.__signature__ = _with_lazy(signature)  # type: ignore[attr-defined]
        places = {one: f"new_{one}" for one in ("param", *states)}
        operator = op(
            outputs=list(places.values()),
            shape=update_shape(len(states), scalars=1 + steps),
            dtype=update_dtype(len(states), steps=steps),
            reference=_cast_back(reference),
            cases=cases,
        )(kernel)
        operator.on_rows("grad")(by_rows(dense, len(states)))
        operator.declare_inplace(places, update=True)
        return operator

    return declare


def _with_lazy(signature: inspect.Signature) -> inspect.Signature:
    flag = inspect.Parameter("lazy", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool)
    return signature.replace(parameters=[*signature.parameters.values(), flag])


def _cast_back(reference: Kernel) -> Kernel:
    def rounded(*arrays: np.ndarray, **attributes: Any) -> tuple[np.ndarray, ...]:
        results = reference(*arrays, **attributes)
        return tuple(np.asarray(one).astype(arrays[0].dtype) for one in results)

    return rounded


# Makers ----------------------------------------------------------------------------------------


def widely(like: Var, *values: Var) -> list[Any]:
    """Casts values to the dtype in which an update of ``like`` is computed."""
    dtype = wide_dtype(like.dtype)
    return [cast(one, dtype=dtype) for one in values]


def returned(gradient: Any, like: Var) -> Any:
    """Casts a gradient to the dtype of ``like``."""
    return unbroadcast(gradient, like)


def inner(x: Any, y: Any) -> Any:
    """Returns the sum of the products of all entries."""
    return sum_to(x * y, shape=())


def require_defined(grad: Var, *, lazy: bool) -> None:
    """Rejects the gradient of an update that skips the rows that ``grad`` does not name.

    Raises:
        KindError: the update depends on the set of named rows, which has no derivative.
    """
    if lazy and grad.kind is VarKind.SELECTED_ROWS:
        raise KindError(
            "a lazy update by selected_rows has no gradient; use lazy=False, or "
            "get_tensor_from_selected_rows"
        )
