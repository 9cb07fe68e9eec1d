"""Parts of complex numbers: real and imaginary part, and the conjugate.

Cotangents follow JAX: a function is pulled back by its transpose, a linear map over the reals in
which a complex cotangent ``u`` of ``z`` stands for the map ``dz -> Re(u dz)``.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse
from registry.operator import Grads
from registry.ops.broadcasting import cast
from registry.shapes import inexact, numeric, same
from registry.signature import Array
from registry.table import op
from registry.types import DType, VarType
from registry.var import Var


def part_dtype(x: VarType) -> tuple[DType, bool]:
    """The dtype of the parts of ``x``: real numbers have themselves as real part."""
    dtype, weak = inexact(x)
    if dtype.kind != "c":
        return dtype, weak
    return np.dtype(f"f{dtype.itemsize // 2}"), weak


_REFUSED = misuse("the inputs must be floating, got int32", x=integers(3, high=4))


@op(
    shape=same,
    dtype=part_dtype,
    reference=np.real,
    rows="linear",
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), _REFUSED],
)
def real(x: Array) -> Array:
    """Real part, ``x`` itself where it is real.

    Example:
        >>> import jax.numpy as jnp
        >>> real(jnp.asarray([1 + 2j]))
        Array([1.], dtype=float32)
    """
    return jnp.real(x)


@real.gradient
def _real_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": cast(d_out, dtype=x.dtype)}


@op(
    shape=same,
    dtype=part_dtype,
    reference=np.imag,
    rows="linear",
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), _REFUSED],
)
def imag(x: Array) -> Array:
    """Imaginary part, zero where ``x`` is real.

    Example:
        >>> import jax.numpy as jnp
        >>> imag(jnp.asarray([1 + 2j]))
        Array([2.], dtype=float32)
    """
    x = jnp.asarray(x)
    return lax.imag(x) if jnp.iscomplexobj(x) else lax.full_like(x, 0)


@imag.gradient
def _imag_gradient(x: Var, d_out: Var) -> Grads:
    # Im(dz) = Re(-1j dz)
    if x.dtype.kind != "c":
        return {"x": None}
    return {"x": cast(d_out, dtype=x.dtype) * -1j}


@op(
    shape=same,
    dtype=numeric,
    reference=np.conj,
    aliases=["conjugate"],
    rows="linear",
    cases=[
        case(x=(3, 4)),
        case(x=()),
        case(x=(0, 2)),
        case(x=integers(3, high=4)),
        misuse("the inputs must be numbers, got bool", x=np.zeros(3, bool)),
    ],
)
def conj(x: Array) -> Array:
    """Complex conjugate, ``x`` itself where it is real.

    Example:
        >>> import jax.numpy as jnp
        >>> conj(jnp.asarray([1 + 2j]))
        Array([1.-2.j], dtype=complex64)
    """
    x = jnp.asarray(x)
    return lax.conj(x) if jnp.iscomplexobj(x) else x


@conj.gradient
def _conj_gradient(d_out: Var) -> Grads:
    # Re(u conj(dz)) = Re(conj(u) dz)
    return {"x": conj(d_out)}


@conj.simplify
def _conj_simplify(x: Var) -> Var | None:
    return None if x.dtype.kind == "c" else x
