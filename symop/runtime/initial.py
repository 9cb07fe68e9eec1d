"""Initial values of variables: a number, or random numbers from a distribution."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, nearest
from registry.types import (
    DType,
    Shape,
    VarKind,
    VarType,
    is_complex,
    is_exact,
    is_inexact,
)
from registry.values import SelectedRows

Drawn = Callable[[Any, Shape, DType], Any]


def initial_value(spec: str | None, type: VarType, key: Any) -> Any:
    """Returns the initial value that ``spec`` describes.

    Args:
        spec: A number; a distribution listed in ``require_initial``; or None, which means zero for
            integers and ``he_normal`` otherwise.
        type: The type of the value; a row-sparse value starts without rows.
        key: A random key.

    Raises:
        ArgumentError: The distribution does not exist.
    """
    if type.kind is VarKind.SELECTED_ROWS:
        values = jnp.zeros((0, *type.shape[1:]), type.dtype)
        return SelectedRows(jnp.zeros(0, np.int32), values, type.shape[0])
    if spec is None:
        spec = "he_normal" if is_inexact(type.dtype) else "0"
    return require_initial(spec, type.dtype)(key, type.shape, type.dtype)


def require_initial(spec: str, dtype: DType) -> Drawn:
    """Returns the distribution that ``spec`` names, as a function of key, shape and dtype.

    The distributions are ``normal(deviation)`` and ``uniform(low, high)``, and those whose scale
    follows from the shape: ``glorot_normal``, ``glorot_uniform`` (Glorot and Bengio, "Understanding
    the difficulty of training deep feedforward neural networks", 2010), ``he_normal``,
    ``he_uniform`` (He et al., "Delving Deep into Rectifiers", 2015), ``lecun_normal`` and
    ``lecun_uniform`` (LeCun et al., "Efficient BackProp", 1998). The first axis is the output axis;
    the others are input axes.

    Raises:
        ArgumentError: The distribution does not exist.
    """
    number = _number(spec)
    if is_exact(dtype) and (number is None or not number.is_integer()):
        raise ArgumentError(f"initial: of {dtype.name} it must be a whole number, got {spec!r}")
    if number is not None:
        return lambda key, shape, dtype: jnp.full(shape, number, dtype)
    name, _, inner = spec.partition("(")
    given = _numbers(inner)
    if is_complex(dtype):
        raise ArgumentError(f"initial: of {dtype.name} it must be a number, got {spec!r}")
    if name in _SPREAD and given == ():
        return _scaled(*_SPREAD[name])
    if name == "normal" and given is not None and len(given) == 1:
        return lambda key, shape, dtype: (
            jax.random.normal(key, shape, dtype) * np.asarray(given[0], dtype)
        )
    if name == "uniform" and given is not None and len(given) == 2:
        return lambda key, shape, dtype: jax.random.uniform(key, shape, dtype, *given)
    legal = ["normal(deviation)", "uniform(low, high)", *_SPREAD]
    raise ArgumentError(
        f"initial: it must be a number or one of {', '.join(legal)}, got {spec!r}"
        f"{nearest(name, legal)}"
    )


_SPREAD = {
    f"{name}_{distribution}": (scale, mode, distribution)
    for name, scale, mode in (
        ("glorot", 1.0, "fan_avg"),
        ("he", 2.0, "fan_in"),
        ("lecun", 1.0, "fan_in"),
    )
    for distribution in ("normal", "uniform")
}


def _scaled(scale: float, mode: str, distribution: str) -> Drawn:
    def drawn(key: Any, shape: Shape, dtype: DType) -> Any:
        fan_out = shape[0] if shape else 1
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else int(np.prod(shape))
        fan = fan_in if mode == "fan_in" else (fan_in + fan_out) / 2
        deviation = (scale / max(fan, 1)) ** 0.5
        if distribution == "normal":
            return jax.random.normal(key, shape, dtype) * np.asarray(deviation, dtype)
        bound = 3**0.5 * deviation
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return drawn


def _number(spec: str) -> float | None:
    try:
        return float(spec)
    except ValueError:
        return None


def _numbers(inner: str) -> tuple[float, ...] | None:
    """Returns the numbers before a closing parenthesis; None if the text is malformed."""
    if not inner:
        return ()
    if not re.fullmatch(r"[^()]*\)", inner):
        return None
    found = [_number(one) for one in inner[:-1].split(",")]
    return None if None in found else tuple([one for one in found if one is not None])
