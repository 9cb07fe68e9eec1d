"""elementwise: a function written for one element, mapped over arrays."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.declare.environment import EnvArguments
from registry.errors import DeclarationError

_NUMBERS = (bool, int, float, complex)


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of single elements as a function of arrays.

    It has the parameters of ``function``. Arrays are mapped entry by entry, shapes broadcast; an
    ``env`` and Python's numbers go to every entry as they are. Anything that JAX traces is allowed
    inside (``jnp.where``, ``jax.lax.cond``, ``jax.lax.fori_loop``), a Python ``if`` on an element
    is not.

    Raises:
        DeclarationError: the mapped function decides something by the value of an element.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import elementwise
        >>> hinge = elementwise(lambda a, width: jnp.where(a > width, a - width, 0.0))
        >>> hinge(jnp.array([0.0, 1.0, 3.0]), 1.0).tolist()
        [0.0, 0.0, 2.0]
    """
    name = getattr(function, "__name__", type(function).__name__)
    signature = inspect.signature(function)

    @functools.wraps(function)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        values = signature.bind(*args, **kwargs).args
        places = [i for i, value in enumerate(values) if _is_mapped(value)]
        call = jnp.vectorize(_of_element(function, values, places))
        try:
            return call(*[jnp.asarray(values[i]) for i in places])
        except jax.errors.ConcretizationTypeError as error:
            raise DeclarationError(
                f"{name}: a function of one element must not decide by its value; write "
                "jnp.where(condition, a, b) or jax.lax.cond instead of if"
            ) from error

    return mapped


def _is_mapped(value: Any) -> bool:
    return not isinstance(value, (EnvArguments, *_NUMBERS)) or isinstance(value, np.generic)


def _of_element(
    function: Callable[..., Any], values: Sequence[Any], places: Sequence[int]
) -> Callable[..., Any]:
    """``function`` of the values at ``places``, the others as they are."""

    def call(*elements: Any) -> Any:
        filled = list(values)
        for i, element in zip(places, elements, strict=True):
            filled[i] = element
        return function(*filled)

    return call
