"""Discrete Fourier transforms over several axes, and code shared by all Fourier transforms.

Transforms are linear, so each gradient is the transposed transform of the cotangent. The matrix of
the complex transform is symmetric: it is its own transpose. A transform of real numbers keeps the
first ``n // 2 + 1`` bins, since the others are conjugates of these. Its transpose counts each
stored bin once, whereas the inverse transform counts twice those that represent two bins: the bins
are weighted accordingly.

Cotangents are pulled back by the transpose, not by the adjoint, as ``complex_parts`` explains.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast
from registry.ops.core.complex_parts import conj
from registry.ops.core.matrices import part_of, widened
from registry.ops.core.slicing import pad_slice, slice_
from registry.ops.fourier.bins import scale_paired_bins
from registry.shapes import (
    REFUSES_INTEGERS,
    at_least_single,
    normalize_axis,
    strong_inexact,
    strong_real_inexact,
)
from registry.table import op
from registry.types import DType, Shape, VarType, is_complex
from registry.var import Var

Norm = Literal["backward", "ortho", "forward"]
"""The divided transform: the inverse by ``n``, both by its square root, or the direct one."""
Several = tuple[int, ...]
Sizes = Annotated[
    tuple[int, ...] | None,
    Check("hold positive numbers", lambda s: s is None or all(n > 0 for n in s)),
]
"""The numbers of transformed entries along each axis."""

OPPOSITE: dict[Norm, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm that gives the inverse transform the factor of the forward one, and vice versa."""

# Rules -----------------------------------------------------------------------------------------


def complex_dtype(x: VarType) -> DType:
    """The complex dtype with the precision of ``x``, at least single."""
    dtype = at_least_single(strong_inexact(x))
    return dtype if is_complex(dtype) else np.dtype(f"c{2 * dtype.itemsize}")


def complex_of_real(x: VarType) -> DType:
    """The complex dtype with the precision of ``x``, which must be real."""
    strong_real_inexact(x)
    return complex_dtype(x)


def real_dtype(x: VarType) -> DType:
    """The real dtype with the precision of ``x``, at least single."""
    return part_of(complex_dtype(x))


def require_entries(n: int, x: Shape) -> int:
    """``n``, the length of a transform, which must be positive.

    Raises:
        ShapeError: it is not positive.
    """
    if n < 1:
        raise ShapeError(f"a transform must have at least one entry, got {n} for shape {x}")
    return n


def replaced(shape: Shape, axis: int, n: int) -> Shape:
    """``shape`` with length ``n`` at ``axis``."""
    return (*shape[:axis], n, *shape[axis + 1 :])


def _axes(axes: Several | None, s: Several | None, ndim: int) -> Several:
    """The transformed axes, in the order given."""
    if axes is None:
        count = ndim if s is None else len(s)
        axes = tuple(range(-count, 0))
    result = tuple(normalize_axis(one, ndim) for one in axes)
    if len(set(result)) < len(result):
        raise AttributeValueError(f"axes must be distinct, got {axes}")
    if not result:
        raise AttributeValueError(f"at least one axis must be transformed, got {axes}")
    if s is not None and len(s) != len(result):
        raise AttributeValueError(f"s must have one number for each axis, got {s} for axes {axes}")
    return result


def _sizes(x: Shape, axes: Several, s: Several | None) -> Several:
    """The number of input entries along each of the transformed axes."""
    return tuple(x[axis] for axis in axes) if s is None else s


def _whole_shape(x: Shape, *, s: Several | None, axes: Several | None) -> Shape:
    places = _axes(axes, s, len(x))
    for axis, n in zip(places, _sizes(x, places, s), strict=True):
        x = replaced(x, axis, require_entries(n, x))
    return x


def _half_shape(x: Shape, *, s: Several | None, axes: Several | None) -> Shape:
    last = _axes(axes, s, len(x))[-1]
    whole = _whole_shape(x, s=s, axes=axes)
    return replaced(whole, last, whole[last] // 2 + 1)


def _from_half_shape(x: Shape, *, s: Several | None, axes: Several | None) -> Shape:
    places = _axes(axes, s, len(x))
    if s is None:
        sizes = _sizes(x, places, None)
        s = (*sizes[:-1], 2 * (sizes[-1] - 1))
    return _whole_shape(x, s=s, axes=places)


# Kernels and gradients -------------------------------------------------------------------------


def transform(function: Callable[..., Array], x: Array, *sizes: Any, norm: Norm) -> Array:
    """``function`` of ``jax.numpy.fft`` applied to ``x``, in at least single precision."""
    return function(widened(x)[0], *sizes, norm=None if norm == "backward" else norm)


def fitted(x: Var, like: Var) -> Var:
    """``x`` truncated or zero-padded at the end of each axis to the type of ``like``.

    This is the transpose of how a transform prepares its input; complex numbers that represent real
    ones lose their imaginary part.
    """
    kept = tuple(min(pair) for pair in zip(x.shape, like.shape, strict=True))
    cut = x if kept == x.shape else slice_(x, begin=(0,) * x.ndim, end=kept)
    if kept != like.shape:
        cut = pad_slice(cut, shape=like.shape, begin=(0,) * x.ndim, step=(1,) * x.ndim)
    result: Var = cast(cut, dtype=like.dtype)
    return result


# Complex numbers -------------------------------------------------------------------------------

_WRONG_AXES = [
    misuse("axis must be in [-1, 1), got 1", x=(3,), axes=(1,)),
    misuse("axes must be distinct, got (0, -2)", x=(3, 2), axes=(0, -2)),
    misuse("at least one axis must be transformed, got ()", x=()),
    misuse("at least one axis must be transformed, got ()", x=(3,), axes=()),
    misuse("s must have one number for each axis, got (2,)", x=(3, 2), s=(2,), axes=(0, 1)),
    misuse("attribute 's' must hold positive numbers, got (0,)", x=(3,), s=(0,)),
    misuse("attribute 'norm' must be one of 'backward', 'ortho', 'forward'", x=(3,), norm="half"),
    REFUSES_INTEGERS,
]
_NO_ENTRIES = misuse("a transform must have at least one entry, got 0", x=(2, 0))


def _by_numpy(
    function: Callable[..., Any],
) -> Callable[..., np.ndarray]:
    """A NumPy reference; NumPy requires the axes of ``s``."""

    def reference(
        x: np.ndarray,
        *,
        s: Several | None = None,
        axes: Several | None = None,
        norm: Norm = "backward",
    ) -> np.ndarray:
        if axes is None and s is not None:
            axes = tuple(range(-len(s), 0))
        return np.asarray(function(x, s, axes, norm))

    return reference


def _whole_cases() -> list[Any]:
    return [
        case(x=(3, 4)),
        case(x=(2, 3, 4), axes=(-1, 0), norm="ortho"),
        case(x=(3, 4), s=(5, 2), axes=(1, 0), norm="forward"),
        case(x=(2, 3), s=(4,)),
        case(x=(1,)),
        case(x=(1, 2, 1, 3, 2), order=1),
        case(x=(0, 3), axes=(1,)),
        case(x=(2, 0), s=(3,), axes=(1,)),
        workload(x=(64, 64, 64), axes=(1, 2)),
        _NO_ENTRIES,
        *_WRONG_AXES,
    ]


@op(
    shape=_whole_shape,
    dtype=complex_dtype,
    reference=_by_numpy(np.fft.fftn),
    cases=_whole_cases(),
    costly=True,
)
def fftn(
    x: Array, *, s: Sizes = None, axes: tuple[int, ...] | None = None, norm: Norm = "backward"
) -> Array:
    """Discrete Fourier transform over ``axes``, by default over all axes.

    Over one axis ``out[k] = sum(x[j] * exp(-2 pi i j k / n))``. Along each axis the first ``s``
    entries are transformed; shorter inputs are padded with zeros. ``s`` without ``axes`` applies to
    the last axes. With ``norm="forward"`` the result is divided by the number of transformed
    entries, with ``"ortho"`` by its square root.

    Half precision is computed in single precision, and the result is complex.

    Source: Python array API standard 2024.12, ``fft.fftn``.

    Example:
        >>> import jax.numpy as jnp
        >>> fftn(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]))
        Array([[10.+0.j, -2.+0.j],
               [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return transform(jnp.fft.fftn, x, s, axes, norm=norm)


@fftn.gradient
def _fftn_gradient(
    x: Var, d_out: Var, *, s: Several | None, axes: Several | None, norm: Norm
) -> Grads:
    return {"x": fitted(fftn(d_out, axes=_axes(axes, s, x.ndim), norm=norm), x)}


@op(
    shape=_whole_shape,
    dtype=complex_dtype,
    reference=_by_numpy(np.fft.ifftn),
    cases=_whole_cases(),
    costly=True,
)
def ifftn(
    x: Array, *, s: Sizes = None, axes: tuple[int, ...] | None = None, norm: Norm = "backward"
) -> Array:
    """Inverse of ``fftn``: over one axis ``out[j] = sum(x[k] * exp(2 pi i j k / n)) / n``.

    ``s``, ``axes`` and dtypes are as in ``fftn``. The divisor is the number of transformed entries
    with ``norm="backward"``, its square root with ``"ortho"``, and one with ``"forward"``.

    Source: Python array API standard 2024.12, ``fft.ifftn``.

    Example:
        >>> import jax.numpy as jnp
        >>> ifftn(jnp.asarray([[10.0, -2.0], [-4.0, 0.0]]))
        Array([[1.+0.j, 2.+0.j],
               [3.+0.j, 4.+0.j]], dtype=complex64)
    """
    return transform(jnp.fft.ifftn, x, s, axes, norm=norm)


@ifftn.gradient
def _ifftn_gradient(
    x: Var, d_out: Var, *, s: Several | None, axes: Several | None, norm: Norm
) -> Grads:
    return {"x": fitted(ifftn(d_out, axes=_axes(axes, s, x.ndim), norm=norm), x)}


# Real numbers ----------------------------------------------------------------------------------


@op(
    shape=_half_shape,
    dtype=complex_of_real,
    reference=_by_numpy(np.fft.rfftn),
    cases=[
        *_whole_cases(),
        case(x=(3, 5), axes=(0, 1)),
        case(x=(4, 3), axes=(1, 0), norm="ortho"),
        misuse("the inputs must be real, got complex64", x=np.ones((3,), np.complex64)),
    ],
    costly=True,
)
def rfftn(
    x: Array, *, s: Sizes = None, axes: tuple[int, ...] | None = None, norm: Norm = "backward"
) -> Array:
    """Discrete Fourier transform of real numbers over ``axes``, without redundant conjugate bins.

    Along the last of ``axes`` the result has the first ``n // 2 + 1`` of ``n`` bins; the others
    follow from ``out[-k] = conj(out[k])``. ``s``, ``axes`` and ``norm`` are as in ``fftn``.

    Source: Python array API standard 2024.12, ``fft.rfftn``.

    Example:
        >>> import jax.numpy as jnp
        >>> rfftn(jnp.asarray([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]])).shape
        (2, 2)
    """
    return transform(jnp.fft.rfftn, x, s, axes, norm=norm)


@rfftn.gradient
def _rfftn_gradient(
    x: Var, d_out: Var, *, s: Several | None, axes: Several | None, norm: Norm
) -> Grads:
    # dx_j = Re sum_k u_k w^(jk) over the kept bins, which is n irfftn(conj(u) / weights).
    places = _axes(axes, s, x.ndim)
    sizes = _sizes(x.shape, places, s)
    bins = scale_paired_bins(conj(d_out), n=sizes[-1], factor=0.5, axis=places[-1])
    return {"x": fitted(irfftn(bins, s=sizes, axes=places, norm=OPPOSITE[norm]), x)}


@op(
    shape=_from_half_shape,
    dtype=real_dtype,
    reference=_by_numpy(np.fft.irfftn),
    cases=[
        case(x=(3, 4)),
        case(x=(2, 3, 4), axes=(-1, 0), norm="ortho"),
        case(x=(3, 4), s=(5, 2), axes=(1, 0), norm="forward"),
        case(x=(2, 4), s=(3, 7), axes=(0, 1)),
        case(x=(2, 3), s=(7,)),
        case(x=(2,)),
        case(x=(3,), s=(1,)),
        case(x=(1, 2, 1, 3, 2), order=1),
        case(x=(0, 3), axes=(1,)),
        workload(x=(64, 64, 33), axes=(1, 2)),
        misuse("a transform must have at least one entry, got 0", x=(2, 1)),
        *_WRONG_AXES,
    ],
    costly=True,
)
def irfftn(
    x: Array, *, s: Sizes = None, axes: tuple[int, ...] | None = None, norm: Norm = "backward"
) -> Array:
    """Inverse of ``rfftn``: the real numbers whose first bins are ``x``.

    The last entry of ``s`` is the length of the result along the last of ``axes``, of which ``x``
    holds the first ``s // 2 + 1`` bins; by default it is ``2 (m - 1)`` for ``m`` bins, an even
    number. The other axes are transformed first; then the imaginary parts of the first and the
    middle bin along the last of ``axes`` are taken as zero. ``s``, ``axes`` and ``norm`` are
    otherwise as in ``ifftn``.

    Source: Python array API standard 2024.12, ``fft.irfftn``.

    Example:
        >>> import jax.numpy as jnp
        >>> irfftn(jnp.asarray([[10.0, -2.0], [-4.0, 0.0]]))
        Array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    return transform(jnp.fft.irfftn, x, s, axes, norm=norm)


@irfftn.gradient
def _irfftn_gradient(
    x: Var, d_out: Var, *, s: Several | None, axes: Several | None, norm: Norm
) -> Grads:
    # out_j = Re sum_k weight_k x_k w^(-jk) / n, so dx_k = weight_k sum_j u_j w^(-jk) / n, which is
    # the conjugate of rfftn.
    places = _axes(axes, s, x.ndim)
    last = places[-1]
    half = rfftn(d_out, axes=places, norm=OPPOSITE[norm])
    return {
        "x": fitted(conj(scale_paired_bins(half, n=d_out.shape[last], factor=2.0, axis=last)), x)
    }
