"""JAX's derivatives of an operator's kernel on arrays, and a test of its linearity."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from registry.caches import memoized
from registry.errors import NotDifferentiableError, SymopError
from registry.jax_derivatives.affinity import is_affine
from registry.jax_derivatives.zeros import some_is_nonzero, zeros_of
from registry.operator.attributes import typed_key
from registry.operator.infer import abstract
from registry.types import KEY_TYPE, TRAINING_TYPE, VarType, is_boolean, is_inexact
from registry.var import Attributes, Inputs

Types = tuple[VarType | None, ...]
Outputs = Callable[..., list[Any]]


class Runs(Protocol):
    """The part of an operator's interface that JAX's derivatives use."""

    name: str

    def run(self, inputs: Inputs, attributes: Attributes) -> Any:
        """Runs the kernel on arrays."""


def vjp(
    operator: Runs,
    inputs: Sequence[Any],
    attributes: Attributes,
    places: Sequence[int],
    cotangents: Mapping[int, Any],
) -> list[Any]:
    """Returns gradients of the inputs at ``places``, for ``cotangents`` of some of the outputs.

    The gradients of integers and booleans are zeros.

    Raises:
        NotDifferentiableError: JAX cannot differentiate the kernel.
    """

    moving = [i for i in places if is_inexact(_dtype_of(inputs[i]))]

    def outputs(*arrays: Any) -> list[Any]:
        values = list(inputs)
        for i, array in zip(moving, arrays, strict=True):
            values[i] = array
        results = as_list(operator.run(tuple(values), attributes))
        return [results[i] for i in cotangents]

    try:
        results, pull = jax.vjp(outputs, *[inputs[i] for i in moving])
        heads = [
            jnp.asarray(head, one.dtype)
            if is_inexact(one.dtype)
            else np.zeros(one.shape, jax.dtypes.float0)
            for head, one in zip(cotangents.values(), results, strict=True)
        ]
        grads = dict(zip(moving, pull(heads), strict=True))
        return [grads[i] if i in grads else jnp.zeros_like(inputs[i]) for i in places]
    except SymopError:
        raise
    except Exception as error:
        lines = str(error).splitlines() or [""]
        raise NotDifferentiableError(
            f"{operator.name}: JAX must be able to differentiate its kernel, got "
            f"{type(error).__name__}: {lines[0]}"
        ) from error


def _dtype_of(value: Any) -> Any:
    return value.dtype if hasattr(value, "dtype") else jnp.result_type(value)


def as_list(result: Any) -> list[Any]:
    """Returns the result of a kernel as a list of its outputs."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def is_linear(operator: Runs, types: Types, attributes: Attributes, places: Sequence[int]) -> bool:
    """Whether the kernel is jointly linear in the inputs at ``places``.

    JAX must be able to transpose it, so that it is affine, and it must vanish at zero. The latter
    is determined from its jaxpr, or else tested with two draws of the other inputs.
    """
    outputs, present, structs = opened(operator, types, attributes)
    chosen = [k for k, (i, _) in enumerate(present) if i in places]
    try:
        program = program_of(operator, types, attributes)
        moving = [k in chosen for k in range(len(structs))]
        affine = is_affine(program.jaxpr, moving)
        if affine is None:
            _transposed(outputs, structs, chosen)
    except Exception:  # for any failure of JAX to trace or to transpose a kernel
        return False
    if affine is False:
        return False
    if all(zeros_of(program.jaxpr, moving, program.consts)):
        return True
    return not some_is_nonzero(program.jaxpr, moving) and all(
        _vanishes_at(outputs, present, chosen, mirrored) for mirrored in (False, True)
    )


@memoized(1024, key=typed_key)
def program_of(operator: Runs, types: Types, attributes: Attributes) -> Any:
    """Returns the closed jaxpr of the kernel, for the inputs of ``opened``."""
    outputs, _, structs = opened(operator, types, attributes)
    return jax.make_jaxpr(outputs)(*structs)


def opened(
    operator: Runs, types: Types, attributes: Attributes
) -> tuple[Outputs, list[tuple[int, VarType]], list[Any]]:
    """Returns the kernel as a function of its arrays, their places and types, and their structs."""
    present = [
        (i, one) for i, one in enumerate(types) if one is not None and one is not TRAINING_TYPE
    ]

    def outputs(*arrays: Any) -> list[Any]:
        inputs: list[Any] = [None if one is None else False for one in types]
        for (i, _), array in zip(present, arrays, strict=True):
            inputs[i] = array
        return as_list(operator.run(tuple(inputs), attributes))

    return outputs, present, [abstract(one) for _, one in present]


def _transposed(outputs: Outputs, structs: Sequence[Any], chosen: Sequence[int]) -> None:
    """Traces the transpose of ``outputs`` with respect to the arguments in ``chosen``."""

    def transpose(*arrays: Any) -> Any:
        def of_chosen(*linear: Any) -> list[Any]:
            values = list(arrays)
            for k, value in zip(chosen, linear, strict=True):
                values[k] = value
            return outputs(*values)

        linear = [arrays[k] for k in chosen]
        return jax.linear_transpose(of_chosen, *linear)(of_chosen(*linear))

    jax.eval_shape(transpose, *structs)


def _vanishes_at(
    outputs: Outputs, present: Sequence[tuple[int, VarType]], chosen: Sequence[int], mirrored: bool
) -> bool:
    """Whether ``outputs`` vanish where those in ``chosen`` do, for one draw of the others."""
    with jax.ensure_compile_time_eval():
        values = [
            jnp.zeros(one.shape, one.dtype) if k in chosen else _drawn(i, one, mirrored)
            for k, (i, one) in enumerate(present)
        ]
        return all(_vanishes(np.asarray(one)) for one in outputs(*values))


def _drawn(index: int, type: VarType, mirrored: bool) -> Any:
    """Returns a value of ``type``: positive numbers, so that their logarithms and roots exist.

    If mirrored, they lie on the other side of 1, where a kernel may take another branch, and
    conditions are true.
    """
    if type is KEY_TYPE:
        return jax.random.key(index)
    if is_boolean(type.dtype):
        return jnp.full(type.shape, mirrored)
    numbers = np.random.default_rng(index).uniform(0.5, 1.5, type.shape)
    numbers = 2 - numbers if mirrored else numbers
    return jnp.asarray(numbers if is_inexact(type.dtype) else np.zeros(type.shape), type.dtype)


def _vanishes(array: np.ndarray) -> bool:
    return not np.any(array[np.isfinite(array)])
