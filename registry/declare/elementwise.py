"""elementwise: maps a scalar function over arrays."""

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.declare.environment import EnvArguments
from registry.errors import DeclarationError

_NUMBERS = (bool, int, float, complex)

UNTRACEABLE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
"""Errors that JAX raises if a function reads the numbers in a traced array."""
ADVICE = (
    "write jnp.where(condition, a, b) or jax.lax.cond instead of if, and functions of jnp instead "
    "of NumPy's"
)


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Converts ``function``, a function of single elements, to a function of arrays.

    The result has the parameters of ``function``. Arrays are mapped entry by entry, with
    broadcasting; Python numbers are passed to every entry unchanged, and so is an ``env``, except
    that each entry draws separate random numbers. Anything that JAX traces is allowed inside
    (``jnp.where``, ``jax.lax.cond``, ``jax.lax.fori_loop``); a Python ``if`` on an element is not.

    Raises:
        DeclarationError: the function branches on the value of an element.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import elementwise
        >>> hinge = elementwise(lambda a, width: jnp.where(a > width, a - width, 0.0))
        >>> hinge(jnp.array([0.0, 1.0, 3.0]), 1.0).tolist()
        [0.0, 0.0, 2.0]
    """
    name = getattr(function, "__name__", "<lambda>").replace("<lambda>", "elementwise")
    signature = inspect.signature(function)

    @functools.wraps(function)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        values = signature.bind(*args, **kwargs).args
        places = [i for i, value in enumerate(values) if _is_mapped(value)]
        arrays = [jnp.asarray(values[i]) for i in places]
        call = jnp.vectorize(_of_element(function, values, places))
        try:
            return call(_indices(arrays) if _draws(values) else 0, *arrays)
        except UNTRACEABLE as error:
            raise DeclarationError(
                f"{name}: a function of one element must not decide by its value; {ADVICE}"
            ) from error

    return mapped


def _is_mapped(value: Any) -> bool:
    return not isinstance(value, (EnvArguments, *_NUMBERS)) or isinstance(value, np.generic)


def _draws(values: Sequence[Any]) -> bool:
    return any(
        isinstance(one, EnvArguments) and any(each.draws for each in one.resource) for one in values
    )


def _indices(arrays: Sequence[jax.Array]) -> jax.Array:
    """Returns the index of each element in the broadcast shape of ``arrays``."""
    shape = jnp.broadcast_shapes(*[one.shape for one in arrays])
    return jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)


def _of_element(
    function: Callable[..., Any], values: Sequence[Any], places: Sequence[int]
) -> Callable[..., Any]:
    """Returns ``function`` of the values at ``places``, with the other values fixed."""
    own = {i: one.for_each() for i, one in enumerate(values) if isinstance(one, EnvArguments)}

    def call(index: Any, *elements: Any) -> Any:
        filled = list(values)
        for i, make in own.items():
            filled[i] = make(index)
        for i, element in zip(places, elements, strict=True):
            filled[i] = element
        return function(*filled)

    return call
