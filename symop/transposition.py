"""Linear functions on JAX values whose derivatives are given, because JAX cannot see into them.

``jax.custom_derivatives.linear_call`` is the same idea, but it cannot be batched, and its residuals
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

Values = Sequence[Any]
Active = tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Linear:
    """A function of residuals and of values in which it is linear, with its derivatives.

    Attributes:
        run: from residuals and linear values to results.
        moved: from the positions of moving values, all values and those tangents to results and
            their tangents.
        transposed: from residuals and cotangents of the results to those of the linear values.
        refusal: the error when it is computed instead of transposed; ``run`` then only tells types.
    """

    run: Callable[[Values, Values], list[Any]]
    moved: Callable[[Active, Values, Values], tuple[list[Any], list[Any]]]
    transposed: Callable[[Values, Values], list[Any]]
    refusal: Exception | None = None

    def __call__(self, residuals: Values, linear: Values) -> list[Any]:
        """``run(residuals, linear)``, which JAX differentiates and transposes as it is told."""
        values = map(jnp.asarray, (*residuals, *linear))
        results: list[Any] = _linear.bind(*values, function=self, split=len(residuals))
        return results

    def batched(self) -> "Linear":
        """The function over a first axis of each value."""

        def moved(active: Active, values: Values, tangents: Values) -> Any:
            return jax.vmap(functools.partial(self.moved, active))(values, tangents)

        return Linear(jax.vmap(self.run), moved, jax.vmap(self.transposed), self.refusal)


# Any: JAX declares no types for what follows.
_linear: Any = Primitive("symop_linear")
_ad: Any = ad
_batching: Any = batching
_linear.multiple_results = True


def _run(*values: Any, function: Linear, split: int) -> list[Any]:
    if function.refusal is not None:
        raise function.refusal
    return function.run(list(values[:split]), list(values[split:]))


def _types(*values: Any, function: Linear, split: int) -> list[Any]:
    struct: Any = jax.ShapeDtypeStruct
    stand_ins = [struct(one.shape, one.dtype) for one in values]
    found = jax.eval_shape(function.run, stand_ins[:split], stand_ins[split:])
    return [jax.core.ShapedArray(one.shape, one.dtype) for one in found]


def _moved(values: Values, tangents: Values, *, function: Linear, split: int) -> Any:
    del split
    active = tuple(i for i, one in enumerate(tangents) if not isinstance(one, ad.Zero))
    return function.moved(active, list(values), [tangents[i] for i in active])


def _transposed(cotangents: Values, *values: Any, function: Linear, split: int) -> list[Any]:
    heads = [_ad.instantiate_zeros(one) for one in cotangents]
    return [*[None] * split, *function.transposed(list(values[:split]), heads)]


def _batched(
    values: Values, axes: Sequence[int | None], *, function: Linear, split: int
) -> tuple[list[Any], list[int]]:
    """Every value gets the batch axis: so does the cotangent of each that is linear."""
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
