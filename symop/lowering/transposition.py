"""Linear functions on JAX values with explicit derivatives, because they are opaque to JAX.

``jax.custom_derivatives.linear_call`` is similar, but it cannot be batched, and its residuals
cannot be differentiated.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from registry.xla.device_types import of_type, struct_of, varied_alike
from symop.lowering.explicit_axes import call_on_explicit_axes

Values = Sequence[Any]
Active = tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Linear:
    """A function of residuals and linear values, with its derivatives.

    Attributes:
        run: Maps residuals and linear values to results.
        moved: Maps the positions of moving values, all values and those tangents to the results
            and their tangents, None for results that do not move.
        transposed: Maps residuals and cotangents of the results, None for zeros, to cotangents of
            the linear values, None for zeros.
        refusal: The error raised when the function is evaluated rather than transposed; ``run`` is
            then used only for types.
    """

    run: Callable[[Values, Values], list[Any]]
    moved: Callable[[Active, Values, Values], tuple[list[Any], list[Any]]]
    transposed: Callable[[Values, Values], list[Any]]
    refusal: Exception | None = None

    def __call__(self, residuals: Values, linear: Values) -> list[Any]:
        """Computes ``run(residuals, linear)``, with the given derivative and transpose in JAX."""
        values = varied_alike([jnp.asarray(one) for one in (*residuals, *linear)])
        results: list[Any] = _linear.bind(*values, function=self, split=len(residuals))
        return results

    def batched(self) -> "Linear":
        """Returns the function mapped over a leading axis of each value."""

        def moved(active: Active, values: Values, tangents: Values) -> Any:
            return jax.vmap(functools.partial(self.moved, active))(values, tangents)

        return Linear(jax.vmap(self.run), moved, jax.vmap(self.transposed), self.refusal)


# Any: JAX declares no types for these.
_linear: Any = Primitive("symop_linear")
_ad: Any = ad
_batching: Any = batching
_linear.multiple_results = True


def _run(*values: Any, function: Linear, split: int) -> list[Any]:
    if function.refusal is not None:
        raise function.refusal
    result: list[Any] = call_on_explicit_axes(
        function.run, [list(values[:split]), list(values[split:])]
    )
    return result


def _types(*values: Any, function: Linear, split: int) -> list[Any]:
    stand_ins = [struct_of(one, one.shape, one.sharding) for one in values]
    run = functools.partial(call_on_explicit_axes, function.run)
    types: Any = jax.make_jaxpr(run)([stand_ins[:split], stand_ins[split:]]).out_avals
    return [one.strip_weak_type() for one in types]


def _moved(values: Values, tangents: Values, *, function: Linear, split: int) -> Any:
    del split
    active = tuple(i for i, one in enumerate(tangents) if not isinstance(one, ad.Zero))
    ways = [tangents[i] for i in active]
    results, moved = call_on_explicit_axes(
        functools.partial(function.moved, active), [list(values), ways]
    )
    return results, [
        _ad.Zero(jax.typeof(one).to_tangent_aval()) if way is None else way
        for one, way in zip(results, moved, strict=True)
    ]


def _transposed(cotangents: Values, *values: Any, function: Linear, split: int) -> list[Any]:
    heads = [None if isinstance(one, ad.Zero) else one for one in cotangents]
    gradients = call_on_explicit_axes(function.transposed, [list(values[:split]), heads])
    types = [one.aval for one in values[split:]]
    typed = [
        None if one is None else of_type(one, type)
        for one, type in zip(gradients, types, strict=True)
    ]
    return [*[None] * split, *typed]


def _batched(
    values: Values, axes: Sequence[int | None], *, function: Linear, split: int
) -> tuple[list[Any], list[int]]:
    """Gives every value the batch axis, as the cotangent of each linear value has it."""
    pairs = list(zip(values, axes, strict=True))
    size = next(one.shape[axis] for one, axis in pairs if axis is not None)
    front = [_batching.bdim_at_front(one, axis, size) for one, axis in pairs]
    results = _linear.bind(*front, function=function.batched(), split=split)
    return results, [0] * len(results)


_linear.def_impl(_run)
_linear.def_abstract_eval(_types)
ad.primitive_jvps[_linear] = _moved
ad.primitive_transposes[_linear] = _transposed
batching.primitive_batchers[_linear] = _batched
mlir.register_lowering(_linear, mlir.lower_fun(_run, multiple_results=True))
