"""Parts of complex numbers: the real part, the imaginary part and the conjugate.

Cotangents follow JAX: a function is pulled back by its transpose, a linear map over the reals in
which a complex cotangent ``u`` of ``z`` represents the map ``dz -> Re(u dz)``.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast
from registry.ops.core.entrywise import entrywise
from registry.shapes import inexact, numeric
from registry.types import DType, VarType, is_complex
from registry.var import Var


def part_dtype(x: VarType) -> tuple[DType, bool]:
    """The dtype of the real and imaginary parts of ``x``; for real ``x`` its own."""
    dtype, weak = inexact(x)
    if not is_complex(dtype):
        return dtype, weak
    return np.dtype(f"f{dtype.itemsize // 2}"), weak


@entrywise(
    np.real, dtype=part_dtype, rows="linear", d_x=lambda x, d_out: cast(d_out, dtype=x.dtype)
)
def real(x: Array) -> Array:
    """Real part of ``x``; ``x`` itself if it is real.

    Example:
        >>> import jax.numpy as jnp
        >>> real(jnp.asarray([1 + 2j]))
        Array([1.], dtype=float32)
    """
    return jnp.real(x)


@entrywise(np.imag, dtype=part_dtype, rows="linear")
def imag(x: Array) -> Array:
    """Imaginary part of ``x``; zero if ``x`` is real.

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
    if not is_complex(x.dtype):
        return {"x": None}
    return {"x": cast(d_out, dtype=x.dtype) * -1j}


@entrywise(np.conj, dtype=numeric, aliases=["conjugate"], rows="linear")
def conj(x: Array) -> Array:
    """Complex conjugate of ``x``; ``x`` itself if it is real.

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
    return None if is_complex(x.dtype) else x
