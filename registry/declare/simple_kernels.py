"""Kernels of a SimpleOp: calls of its functions with arrays and ``env``."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.declare.elementwise import ADVICE, UNTRACEABLE
from registry.declare.environment import EnvArguments
from registry.declare.simple_parts import OUT, SimplePart, SimpleSettings, described
from registry.errors import DeclarationError, SymopError
from registry.naming import COTANGENT
from registry.types import VarType

FAILURES = (
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    NameError,
    ArithmeticError,
    AssertionError,
)
"""Errors caused by mistakes in a function, as opposed to failures of the machine or of JAX."""


def function_kernel(settings: SimpleSettings, part: SimplePart) -> Callable[..., Any]:
    """Returns the kernel that runs ``part`` on a call's inputs."""
    arity = len(settings.slots)

    def kernel(*inputs: Any, **attributes: Any) -> Any:
        arrays = [jnp.asarray(one) for one in inputs[:arity]]
        key = inputs[arity] if settings.keyed else None
        env = settings.environment(attributes, key, _floating(arrays))
        return _ran(settings, "function", part, arrays, env)

    text = settings.text or inspect.getdoc(part.function) or ""
    return described(kernel, settings.name, settings.inputs(settings.slots), settings, text, part)


def gradient_kernel(
    settings: SimpleSettings,
    name: str,
    part: SimplePart,
    slots: Sequence[str],
    sources: Sequence[str],
) -> Callable[..., Any]:
    """Returns the kernel of the gradient's operator, ``part`` applied to its ``slots``."""
    order = [slots.index(source) for source in sources]
    cotangent = slots.index(COTANGENT + OUT)

    def kernel(*inputs: Any, **attributes: Any) -> Any:
        arrays = [jnp.asarray(one) for one in inputs[: len(slots)]]
        key = inputs[len(slots)] if settings.keyed else None
        env = settings.environment(attributes, key, _floating([arrays[cotangent]]))
        return _ran(settings, "gradient", part, [arrays[i] for i in order], env)

    text = f"Gradient of ``{settings.name}``."
    return described(kernel, name, settings.inputs(slots), settings, text, part)


def _floating(arrays: Sequence[jax.Array]) -> Any:
    """Returns the dtype that floating ``arrays`` promote to; JAX's default without any.

    The gradient uses the dtype of its cotangent, so that it draws the same numbers as the function.
    """
    floating = [one for one in arrays if jnp.issubdtype(one.dtype, jnp.floating)]
    return jnp.result_type(*floating) if floating else float


def _ran(
    settings: SimpleSettings,
    what: str,
    part: SimplePart,
    values: Sequence[jax.Array],
    env: EnvArguments,
) -> Any:
    """Runs a function of the operator.

    Raises:
        DeclarationError: the function fails.
    """
    settings.use.began = True
    try:
        return _as_arrays(part(values, env))
    except SymopError:
        raise
    except FAILURES as error:
        reason = (str(error).splitlines() or [""])[0].rstrip(".")
        advice = f"; {ADVICE}" if isinstance(error, UNTRACEABLE) else ""
        raise DeclarationError(
            f"{settings.name}: its {what} failed: {type(error).__name__}: {reason}{advice}"
        ) from error


def _as_arrays(result: Any) -> Any:
    """Returns the result of a function, with numbers and NumPy arrays converted to JAX arrays."""
    if isinstance(result, (tuple, list)):
        return type(result)(map(_as_arrays, result)) if type(result) in (tuple, list) else result
    is_plain = isinstance(result, (bool, int, float, complex, np.ndarray, np.generic))
    return jnp.asarray(result) if is_plain else result


def of_one_type(
    settings: SimpleSettings, what: str, kernel: Callable[..., Any], default: Callable[..., Any]
) -> Callable[..., Any]:
    """Returns ``kernel``, checked to have the same result types as ``default``."""

    def checked(*inputs: Any, **attributes: Any) -> Any:
        result = kernel(*inputs, **attributes)
        expected = jax.eval_shape(lambda *args: default(*args, **attributes), *inputs)
        if _types(result) != _types(expected):
            raise DeclarationError(
                f"{settings.name}: the {what} must give {_types(expected)}, got {_types(result)}"
            )
        return result

    return checked


def _types(result: Any) -> str:
    each = [str(VarType(tuple(one.shape), one.dtype)) for one in jax.tree.leaves(result)]
    return ", ".join(each) or "nothing"
