"""Activations with a learned parameter."""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, nonzero, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array, Initial, Role
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.elementwise import where
from registry.ops.core.reshaping import reshape
from registry.shapes import normalize_axis, real_inexact
from registry.table import op
from registry.types import Shape
from registry.var import Var

Slope = Annotated[jax.Array, Role("parameter"), Initial(0.25)]
"""A learned slope, initialized as its inventors propose."""


def _prelu_shape(x: Shape, slope: Shape, *, axis: int) -> Shape:
    if slope in ((), (1,)):
        return x
    channels = (x[normalize_axis(axis, len(x))],)
    if slope != channels:
        raise ShapeError(
            f"slope must be one number or have shape {channels} for x of {x}, got {slope}"
        )
    return x


def _beside(slope: Shape, x: Shape, axis: int) -> Shape:
    """The shape in which ``slope`` broadcasts to ``x``."""
    if slope in ((), (1,)):
        return ()
    return tuple(slope[0] if i == axis % len(x) else 1 for i in range(len(x)))


def _prelu_reference(x: np.ndarray, slope: np.ndarray, *, axis: int = 1) -> np.ndarray:
    if slope.size == 1:
        return np.where(x > 0, x, slope.reshape(()) * x)
    last = np.moveaxis(x, axis, -1)
    return np.moveaxis(np.where(last > 0, last, slope * last), -1, axis)


@op(
    shape=_prelu_shape,
    dtype=real_inexact,
    reference=_prelu_reference,
    cases=[
        case(x=nonzero(2, 3, 4), slope=(3,)),
        case(x=nonzero(4, 2), slope=(2,), axis=-1),
        case(x=nonzero(3), slope=(1,)),
        case(x=nonzero(), slope=()),
        case(x=(0, 2), slope=(2,)),
        workload(x=(16, 64, 32, 32), slope=(64,)),
        misuse("slope must be one number or have shape (3,)", x=(2, 3, 4), slope=(4,)),
        misuse("axis must be in [-1, 1), got 1", x=(3,), slope=(3,)),
        misuse("the inputs must be floating", x=integers(3, high=4), slope=integers(1, high=4)),
    ],
)
def prelu(x: Array, slope: Slope, *, axis: int = 1) -> Array:
    """Parametric ReLU: ``x`` where positive, else ``slope x``, with one slope or one per channel.

    ``slope`` has one number for each entry along ``axis``, or is a single number. A symbolic call
    that omits it creates one for each channel, initialized to 0.25. At zero the derivative with
    respect to ``x`` is ``slope``, as in ``leaky_relu``.

    Source: He, Zhang, Ren and Sun, "Delving deep into rectifiers" (2015).

    Example:
        >>> import jax.numpy as jnp
        >>> prelu(jnp.asarray([[-1.0, -1.0], [2.0, 2.0]]), jnp.asarray([0.5, 0.25]))
        Array([[-0.5 , -0.25],
               [ 2.  ,  2.  ]], dtype=float32)
    """
    x, slope = jnp.asarray(x), jnp.asarray(slope)
    below = jnp.where(x > 0, 0.0, x)  # zero times the slope: no 0 * inf in its derivative
    return jnp.where(x > 0, x, slope.reshape(_beside(slope.shape, x.shape, axis)) * below)


@prelu.complete
def _prelu_complete(x: Shape | None, slope: Shape | None, *, axis: int) -> dict[str, Shape]:
    if x is None or slope is not None:
        return {}
    return {"slope": (x[normalize_axis(axis, len(x))],)}


@prelu.gradient
def _prelu_gradient(x: Var, slope: Var, d_out: Var, *, axis: int) -> Grads:
    # Selections of cotangents instead of zero factors: they keep an infinite or NaN slope from
    # affecting entries above zero.
    beside = reshape(slope, shape=_beside(slope.shape, x.shape, axis))
    d_below = where(x > 0, 0.0, d_out)

    def by_slope() -> Var:
        d_beside = unbroadcast(d_below * where(x > 0, 0.0, x), beside)
        gradient: Var = reshape(d_beside, shape=slope.shape)
        return gradient

    return {"x": unbroadcast(where(x > 0, d_out, d_below * beside), x), "slope": by_slope}
