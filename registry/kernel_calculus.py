"""JAX's derivatives of an operator's kernel, on arrays, and whether the kernel is linear."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import NotDifferentiableError, SymopError
from registry.infer import abstract
from registry.types import KEY_TYPE, TRAINING_TYPE, VarType, is_inexact
from registry.var import Attributes, Inputs

Types = tuple[VarType | None, ...]


class Runs(Protocol):
    """What JAX's derivatives need of an operator."""

    name: str

    def run(self, inputs: Inputs, attributes: Attributes) -> Any:
        """The kernel on arrays."""


def vjp(
    operator: Runs,
    inputs: Sequence[Any],
    attributes: Attributes,
    places: Sequence[int],
    cotangents: Mapping[int, Any],
) -> list[Any]:
    """Gradients of the inputs at ``places``, for ``cotangents`` of some of the outputs.

    Raises:
        NotDifferentiableError: JAX cannot differentiate the kernel.
    """

    def outputs(*arrays: Any) -> list[Any]:
        values = list(inputs)
        for i, array in zip(places, arrays, strict=True):
            values[i] = array
        results = as_list(operator.run(tuple(values), attributes))
        return [results[i] for i in cotangents]

    try:
        results, pull = jax.vjp(outputs, *[inputs[i] for i in places])
        heads = [
            jnp.asarray(head, one.dtype)
            if is_inexact(one.dtype)
            else np.zeros(one.shape, jax.dtypes.float0)
            for head, one in zip(cotangents.values(), results, strict=True)
        ]
        return list(pull(heads))
    except SymopError:
        raise
    except Exception as error:
        lines = str(error).splitlines() or [""]
        raise NotDifferentiableError(
            f"{operator.name}: JAX must be able to differentiate its kernel, got "
            f"{type(error).__name__}: {lines[0]}"
        ) from error


def as_list(result: Any) -> list[Any]:
    """What a kernel returned, as a list of its outputs."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def is_linear(operator: Runs, types: Types, attributes: Attributes, places: Sequence[int]) -> bool:
    """Whether the kernel is linear in the inputs at ``places``, taken together.

    JAX must be able to transpose it, which tells that it is affine; and at zero it must be zero,
    which is tried with random numbers for the other inputs.
    """
    with jax.ensure_compile_time_eval():
        values = [_drawn(i, one) for i, one in enumerate(types)]

        def outputs(*arrays: Any) -> list[Any]:
            inputs = list(values)
            for i, array in zip(places, arrays, strict=True):
                inputs[i] = array
            return as_list(operator.run(tuple(inputs), attributes))

        structs = [abstract(one) for i in places if (one := types[i]) is not None]
        try:
            shapes = jax.eval_shape(outputs, *structs)
            jax.eval_shape(jax.linear_transpose(outputs, *structs), shapes)
        except Exception:  # whatever a kernel does that JAX cannot transpose
            return False
        at_zero = outputs(*[jnp.zeros(one.shape, one.dtype) for one in structs])
        return all(_vanishes(np.asarray(one)) for one in at_zero)


def _drawn(index: int, type: VarType | None) -> Any:
    """A value of ``type``: positive numbers, so that logarithms and roots of them exist."""
    if type is None or type is TRAINING_TYPE:
        return None if type is None else False
    if type is KEY_TYPE:
        return jax.random.key(index)
    generator = np.random.default_rng(index)
    numbers = generator.uniform(0.5, 1.5, type.shape)
    return jnp.asarray(numbers if is_inexact(type.dtype) else np.zeros(type.shape), type.dtype)


def _vanishes(array: np.ndarray) -> bool:
    return not np.any(array[np.isfinite(array)])
