"""A function of JAX as one operator, which knows it by a name."""

import itertools
from collections.abc import Callable, Sequence
from typing import Annotated, Any
from weakref import WeakValueDictionary

import jax
import numpy as np

from registry.cases import case, misuse
from registry.errors import ArgumentError, AttributeValueError
from registry.jax_derivatives.gradients import differentiate_kernel
from registry.operator.attributes import ConvertedBy
from registry.operator.infer import Types, abstract
from registry.operator.signature import Array, Optional
from registry.table import op
from registry.types import VarType

ArrayFunction = Callable[..., Sequence[Any]]


class NamedFunction(str):
    """A name that carries a function of arrays.

    Attributes:
        function: takes arrays and returns a list of arrays.
        types: the types of the arguments and of the results, where they are known.
    """

    function: ArrayFunction
    types: tuple[Types, Types] | None


_held: WeakValueDictionary[str, NamedFunction] = WeakValueDictionary()
"""The names that graphs of this process hold."""


def named_function(
    name: str, function: ArrayFunction, types: tuple[Types, Types] | None = None
) -> NamedFunction:
    """Returns a name for ``function`` that no other function has, beginning with ``name``.

    A function that depends on the axes of a mesh cannot be traced outside of it, so that its
    ``types`` must be known.
    """
    numbered = (name if i == 0 else f"{name}.{i}" for i in itertools.count())
    result = NamedFunction(next(one for one in numbered if one not in _held))
    result.function = function
    result.types = types
    _held[str(result)] = result
    return result


def holds_function(value: Any) -> bool:
    """Whether a value of an attribute names a function, directly or inside of a tuple."""
    if isinstance(value, tuple):
        return any(map(holds_function, value))
    return isinstance(value, NamedFunction)


def _function(value: Any) -> NamedFunction:
    held = _held.get(value) if isinstance(value, str) else None
    if held is None:
        raise AttributeValueError(
            "must be the name of a function that a graph of this process holds (a file cannot hold "
            f"it), got {value!r}"
        )
    return held


_DOUBLED = named_function("doubled", lambda *arrays: [one + one for one in arrays])


@op(
    outputs=("*parts",),
    count=lambda *, n_out: n_out,
    reference=lambda *operands, **_: tuple(one + one for one in operands),
    cases=[
        case(operands=[(3,), (2,)], function=_DOUBLED, n_out=2),
        misuse("must be the name of a function that a graph of this process holds",
               operands=[(3,)], function="absent"),
    ],
)  # fmt: skip
def jax_function(
    *operands: Annotated[Array, Optional()],
    function: Annotated[str, ConvertedBy(_function)],
    n_out: int = 1,
) -> tuple[Array, ...]:
    """Applies a function of JAX as a whole; JAX differentiates it.

    ``so.from_jax`` makes such calls for callbacks and foreign calls. A saved graph contains only
    the name of the function, so another process cannot load it.

    Args:
        operands: the arguments.
        function: a name of a function that takes arrays and returns ``n_out`` arrays, made by
            ``registry.ops.lax.functions.named_function``.
        n_out: the number of results.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry.ops.lax.functions import named_function
        >>> reverse = named_function("reverse", lambda x: [x[::-1]])
        >>> jax_function(jnp.asarray([1.0, 2.0]), function=reverse)
        (Array([2., 1.], dtype=float32),)
    """
    return tuple(_function(function).function(*operands))


@jax_function.types
def _types(operands: Types, *, function: str, n_out: int) -> Types:
    held = _function(function)
    types = held.types[1] if held.types and held.types[0] == operands else _traced(held, operands)
    if len(types) != n_out:
        raise ArgumentError(f"the function must return {n_out} arrays, got {len(types)}")
    return types


def _traced(function: NamedFunction, operands: Types) -> Types:
    results = jax.eval_shape(function.function, *map(abstract, operands))
    return tuple(
        VarType(tuple(one.shape), np.dtype(one.dtype), weak=one.weak_type) for one in results
    )


differentiate_kernel(jax_function)
