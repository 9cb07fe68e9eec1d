"""Convolutions in loops in the layout for which XLA's CPU backend has a fast kernel.

XLA converts convolutions to that layout itself, but only outside loops; within a loop it falls back
to a kernel that is up to a hundred times slower.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
from jax import lax
from jax.extend import core

Function = Callable[..., jax.Array]


_jax: Any = jax  # JAX declares no types for its contexts
_looping: Any = _jax.make_user_context(default_value=False)
"""Whether code is traced as a step of a loop: part of the key of JAX's trace caches."""


def looping() -> AbstractContextManager[None]:
    """Returns a context in which code is traced as a step of a loop."""
    context: AbstractContextManager[None] = _looping(True)
    return context


def convolved(function: Function, *arrays: jax.Array) -> jax.Array:
    """Returns ``function(*arrays)``, with convolutions that are fast in loops too."""
    if not _looping.value:
        return function(*arrays)
    result: jax.Array = lax.platform_dependent(
        *arrays, cpu=lambda *args: _in_layout(function, *args), default=function
    )
    return result


def _in_layout(function: Function, *arrays: jax.Array) -> jax.Array:
    closed = jax.make_jaxpr(function)(*arrays)
    results: list[jax.Array] = _evaluated(closed.jaxpr, closed.consts, arrays)
    return results[0]


def _evaluated(jaxpr: Any, consts: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """Returns the outputs of ``jaxpr``, with its convolutions converted to the layout."""
    held = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *arrays], strict=True))

    def value(one: Any) -> Any:
        return one.val if isinstance(one, core.Literal) else held[one]

    for eqn in jaxpr.eqns:
        operands = [value(one) for one in eqn.invars]
        if eqn.primitive is lax.conv_general_dilated_p and eqn.params["batch_group_count"] == 1:
            results = [_channels_last(operands[0], operands[1], eqn.params)]
        else:
            out = eqn.primitive.bind(*operands, **eqn.params)
            results = list(out) if eqn.primitive.multiple_results else [out]
        held.update(zip(eqn.outvars, results, strict=True))
    return [value(one) for one in jaxpr.outvars]


def _channels_last(x: jax.Array, weight: jax.Array, params: Any) -> jax.Array:
    """Convolves in channels-last layout: transposes the operands to it, and the result back."""
    numbers = params["dimension_numbers"]
    batch, feature, *places = numbers.lhs_spec
    out_features, in_features, *window = numbers.rhs_spec
    ndim = x.ndim
    last = (0, ndim - 1, *range(1, ndim - 1))
    result = lax.conv_general_dilated_p.bind(
        lax.transpose(x, (batch, *places, feature)),
        lax.transpose(weight, (*window, in_features, out_features)),
        **{
            **params,
            "dimension_numbers": lax.ConvDimensionNumbers(
                last, (ndim - 1, ndim - 2, *range(ndim - 2)), last
            ),
        },
    )
    out_batch, out_feature, *out_places = numbers.out_spec
    back = [0] * ndim
    for axis, source in zip((out_batch, *out_places, out_feature), range(ndim), strict=True):
        back[axis] = source
    moved: jax.Array = lax.transpose(result, back)
    return moved
