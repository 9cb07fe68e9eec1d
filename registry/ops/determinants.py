"""Determinants, cofactors, and the logarithms of determinants."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, definite, invertible, misuse, workload
from registry.errors import ShapeError
from registry.operator import Grads
from registry.ops.broadcasting import broadcast_to, cast
from registry.ops.diagonals import diag_embed, diagonal
from registry.ops.factoring import (
    FACTORED,
    bits_dtype,
    factored,
    inverted,
    packed,
    refuse_other_bits,
    refuse_other_factors,
    solved,
    unpacked,
)
from registry.ops.matrices import (
    cast_back,
    imaginary,
    part_of,
    real_back,
    refuse_oblong,
    widened,
)
from registry.ops.reductions import sum as sum_over
from registry.ops.shape import expand_dims, swapped
from registry.ops.solving import factored_solve
from registry.shapes import strong_inexact, strong_real_inexact
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

_Out = TypeVar("_Out")
_REFUSED = [
    misuse("a must have as many rows as columns, got shape (3, 2)", a=(3, 2)),
    misuse("a must be a matrix or a stack of them, got shape (3,)", a=(3,)),
    misuse("the inputs must be floating, got int", a=np.eye(2, dtype=int)),
]


def _overall(numbers: Var) -> Any:
    """One number for each matrix, to multiply the matrix with."""
    return expand_dims(numbers, axis=(-2, -1))


# det -------------------------------------------------------------------------------------------


def _det_shape(a: Shape) -> tuple[Shape, Shape, Shape]:
    refuse_oblong(a=a)
    return a[:-2], a, a[:-1]


def _det_dtype(a: VarType) -> list[DType]:
    dtype = strong_inexact(a)
    return [dtype, bits_dtype(dtype), np.dtype(np.int32)]


@op(
    shape=_det_shape,
    dtype=_det_dtype,
    reference=np.linalg.det,
    outputs=("out", "factors", "permutation"),
    hidden=("factors", "permutation"),
    aliases=["linalg_det"],
    cases=[
        case(a=invertible(3, 3), rtol=256),
        case(a=invertible(2, 2, 2), order=2, rtol=256),
        case(a=(1, 1)),
        case(a=invertible(0, 2, 2)),
        case(a=(0, 0)),
        workload(a=invertible(256, 256)),
        *_REFUSED,
    ],
)
def det(a: Array) -> tuple[Array, Array, Array]:
    """Determinant of a square matrix, or of each matrix of a stack.

    ``d out / d a`` is the matrix of cofactors, for singular matrices too: of rank one where the
    rank of ``a`` is one less than full, and zero below. Second derivatives are right there, too;
    higher ones are not a number where ``a`` is singular. The determinant of no rows is one. Half
    precision is computed in single.

    Example:
        >>> import jax.numpy as jnp
        >>> det(jnp.asarray([[2.0, 1.0], [1.0, 3.0]]))
        Array(5., dtype=float32)
    """
    (matrix,) = widened(a)
    factors = factored(matrix)
    return cast_back(_determinant(matrix, *factors), a), packed(factors[0]), factors[1]


@det.gradient
def _det_gradient(a: Var, factors: Var, permutation: Var, d_out: Var) -> Grads:
    return {"a": _overall(d_out) * cofactor(a, factors, permutation)}


@jax.custom_jvp
def _determinant(a: Array, lu: Array, permutation: Array) -> Array:
    """The determinant of ``a``, whose factors are given."""
    del a
    return _parity(permutation, lu.dtype) * _product(_pivots(lu))


@_determinant.defjvp
def _determinant_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    moved = jnp.sum(_cofactors(*primals) * tangents[0], axis=(-2, -1))
    return _determinant(*primals), moved


def _product(numbers: Array) -> Array:
    """The product of each row, by logarithms where a partial product leaves the dtype's range."""
    product = jnp.prod(numbers, axis=-1)
    sizes = jnp.abs(numbers)
    signs = jnp.prod(numbers / jnp.where(sizes == 0, 1, sizes), axis=-1)
    careful = signs * jnp.exp(jnp.sum(jnp.log(sizes), axis=-1)).astype(signs.dtype)
    return jnp.where(jnp.isfinite(product) & (product != 0), product, careful)


def _pivots(lu: Array) -> Array:
    pivots: Array = jnp.diagonal(lu, axis1=-2, axis2=-1)
    return pivots


def _parity(permutation: Array, dtype: DType) -> Array:
    """The sign of each permutation: -1 for each pair that is out of order."""
    later = jnp.tril(permutation[..., :, None] < permutation[..., None, :], -1)
    odd = jnp.sum(later, axis=(-2, -1)) % 2
    return jnp.where(odd, -1, 1).astype(dtype)


# cofactor --------------------------------------------------------------------------------------


def _cofactor_shape(a: Shape, factors: Shape, permutation: Shape) -> Shape:
    refuse_oblong(a=a)
    refuse_other_factors(a, factors, permutation)
    return a


def _cofactor_dtype(a: VarType, factors: VarType, permutation: VarType) -> DType:
    dtype = strong_inexact(a)
    refuse_other_bits(dtype, factors, permutation)
    return dtype


def _cofactor_reference(a: np.ndarray, factors: np.ndarray, permutation: np.ndarray) -> np.ndarray:
    del factors, permutation
    out = np.empty_like(a)
    for i, j in np.ndindex(*a.shape):
        minor = np.delete(np.delete(a, i, 0), j, 1)
        out[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return out


@op(
    shape=_cofactor_shape,
    dtype=_cofactor_dtype,
    reference=_cofactor_reference,
    cases=[
        # The factors stay as they are while finite differences would move the matrix: order 0.
        case(**FACTORED, order=0, rtol=256),
        misuse("factors must have shape (3, 3)", **{**FACTORED, "factors": (2, 2)}),
        misuse("must be what solve keeps of a", **{**FACTORED, "factors": (3, 3)}),
    ],
)
def cofactor(a: Array, factors: Array, permutation: Array) -> Array:
    """Cofactors: ``out[i, j]`` is ``(-1)^(i + j)`` times the determinant without row i, column j.

    ``factors`` and ``permutation`` are what ``det`` and ``solve`` keep of ``a``; they carry no
    derivative. Where ``a`` is regular it is ``det(a) inv(a)^T``, where it has a pivot of zero it
    is computed from singular values, as its derivative is where a pivot is next to zero.

    Example:
        >>> import registry
        >>> import jax.numpy as jnp
        >>> a = jnp.asarray([[2.0, 1.0], [4.0, 2.0]])
        >>> _, factors, permutation = registry.get("det").revealed(a)
        >>> print(cofactor(a, factors, permutation).round(4))
        [[ 2. -4.]
         [-1.  2.]]
    """
    (matrix,) = widened(a)
    return cast_back(_cofactors(matrix, *unpacked(matrix, factors, permutation)), a)


@cofactor.gradient
def _cofactor_gradient(a: Var, factors: Var, permutation: Var, d_out: Var) -> Grads:
    # How cofactors change is the second derivative of det, which is symmetric: its own adjoint.
    return {"a": cofactor_change(a, factors, permutation, d_out)}


def _change_shape(a: Shape, factors: Shape, permutation: Shape, direction: Shape) -> Shape:
    if direction != a:
        raise ShapeError(f"direction must have shape {a}, got {direction}")
    return _cofactor_shape(a, factors, permutation)


def _change_dtype(a: VarType, factors: VarType, permutation: VarType, direction: VarType) -> DType:
    _cofactor_dtype(a, factors, permutation)
    return strong_inexact(a, direction)


def _change_reference(
    a: np.ndarray, factors: np.ndarray, permutation: np.ndarray, direction: np.ndarray
) -> np.ndarray:
    out = np.zeros_like(a)
    for i, j in np.ndindex(*a.shape):
        moved = np.zeros_like(a)
        moved[i, j] = direction[i, j]
        # Cofactors are linear in each entry, so that a step as large as that is exact.
        out += _cofactor_reference(a + moved, factors, permutation)
        out -= _cofactor_reference(a, factors, permutation)
    return out


@op(
    shape=_change_shape,
    dtype=_change_dtype,
    reference=_change_reference,
    native=False,  # JAX does not differentiate the decomposition of singular matrices
    cases=[
        # As cofactor has it: order 0.
        case(**FACTORED, direction=(3, 3), order=0, rtol=256),
        misuse("direction must have shape (3, 3), got (3,)", **FACTORED, direction=(3,)),
    ],
)
def cofactor_change(a: Array, factors: Array, permutation: Array, direction: Array) -> Array:
    """How the cofactors of ``a`` change when it moves in a direction: the derivative along it.

    With the cofactors ``M`` it is ``(<M, D> M - M D^T M) / det(a)``. Where the least pivot is next
    to nothing beside the largest, singular values give it without a division. ``factors`` and
    ``permutation`` are those of ``cofactor``.

    Example:
        >>> import registry
        >>> import jax.numpy as jnp
        >>> a = jnp.zeros((2, 2))
        >>> _, factors, permutation = registry.get("det").revealed(a)
        >>> direction = jnp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> print(cofactor_change(a, factors, permutation, direction).round(4))
        [[ 4. -3.]
         [-2.  1.]]
    """
    dtype = jnp.result_type(a, direction)
    matrix, along = widened(a.astype(dtype), direction.astype(dtype))
    lu, permutation = unpacked(widened(a)[0], factors, permutation)
    return _change(matrix, lu.astype(matrix.dtype), permutation, along).astype(dtype)


@cofactor_change.gradient
def _cofactor_change_gradient(
    a: Var, factors: Var, permutation: Var, direction: Var, out: Var, d_out: Var
) -> Grads:
    # It is its own adjoint in the direction. With c = <M, D> M - M D^T M, <d, c> has the slope
    # w = <M, d> D + <M, D> d - d M^T D - D M^T d by M, which moves as cofactors do; and 1 / det
    # has the slope -M / det^2 by A.
    def by_a() -> Var | None:
        cofactors, d, along = cofactor(a, factors, permutation), d_out, direction
        middle = swapped(cofactors)
        over = _overall(det(a))
        slope = _inner(cofactors, d) * along + _inner(cofactors, along) * d
        slope = slope - d @ middle @ along - along @ middle @ d
        moved = cofactor_change(a, factors, permutation, slope)
        gradient: Var = cast((moved - _inner(d, out) * cofactors) / over, dtype=a.dtype)
        return gradient

    return {
        "a": by_a,
        "direction": lambda: cast(
            cofactor_change(a, factors, permutation, d_out), dtype=direction.dtype
        ),
    }


def _inner(x: Var, y: Var) -> Any:
    """The sum of the products of the entries of two matrices."""
    return _overall(sum_over(x * y, axis=(-2, -1)))


@jax.custom_jvp
def _cofactors(a: Array, lu: Array, permutation: Array) -> Array:
    """The cofactors of ``a``, whose factors are given."""
    cofactors: Array = _stacked_cofactors(a, lu, permutation)
    return cofactors


@_cofactors.defjvp
def _cofactors_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    out, moved = _cofactors(*primals), tangents[0]
    along = jnp.sum(out * moved, axis=(-2, -1), keepdims=True) * out
    change = along - out @ jnp.swapaxes(moved, -1, -2) @ out
    return out, change / _determinant(*primals)[..., None, None]


def _by_stacks(function: Callable[..., _Out]) -> Callable[..., _Out]:
    """``function`` of stacks, of which a further axis is one more axis of the stacks.

    So a condition on all of a stack stays a condition under ``vmap``, of which one branch runs.
    """
    batching = jax.custom_batching.custom_vmap(function)

    @batching.def_vmap
    def _batched(size: int, batched: list[bool], *stacks: Array) -> tuple[_Out, Any]:
        if not any(batched):
            out = function(*stacks)
            return out, jax.tree.map(lambda _: False, out)
        whole = [
            stack if is_batched else jnp.broadcast_to(stack, (size, *stack.shape))
            for stack, is_batched in zip(stacks, batched, strict=True)
        ]
        out = batching(*whole)
        return out, jax.tree.map(lambda _: True, out)

    result: Callable[..., _Out] = batching
    return result


@_by_stacks
def _stacked_cofactors(a: Array, lu: Array, permutation: Array) -> Array:
    """The cofactors of a stack. Only where a pivot is zero are singular values computed."""
    usual = _regular_cofactors(lu, permutation)
    regular = jnp.all(_pivots(lu) != 0, axis=-1)[..., None, None]
    cofactors: Array = lax.cond(
        jnp.all(regular),
        lambda: usual,
        lambda: jnp.where(regular, usual, _singular_cofactors(a)),
    )
    return cofactors


def _regular_cofactors(lu: Array, permutation: Array) -> Array:
    determinant = _product(_pivots(lu)) * _parity(permutation, lu.dtype)
    inverse = jnp.swapaxes(inverted((lu, permutation)), -1, -2)
    return determinant[..., None, None] * inverse


def _singular_cofactors(a: Array) -> Array:
    """``M = det(U V) U* diag(p) V*``, where ``A = U diag(s) V`` and ``p_i`` omits ``s_i``."""
    u, s, v = jnp.linalg.svd(a, full_matrices=False)
    others = jnp.where(jnp.eye(a.shape[-1], dtype=bool), 1, s[..., None, :])
    scaled = jnp.conj(u) * jnp.prod(others, axis=-1)[..., None, :].astype(a.dtype)
    return _turn(u, v) * (scaled @ jnp.conj(v))


def _turn(u: Array, v: Array) -> Array:
    """``det(U V)`` of unitary matrices, to multiply a matrix with."""
    turn = jnp.linalg.det(u @ v)
    return jnp.asarray((turn / jnp.abs(turn))[..., None, None])


def _whole(numbers: Array) -> Array:
    """One number for each matrix, to go with its entries."""
    return numbers[..., None, None]


class _Spectrum(NamedTuple):
    """What the change of the cofactors of ``U diag(s) V`` is made of.

    Attributes:
        left, right: ``U*`` and ``V*``, or zeros where no matrix is singular.
        others: at ``[i, j]`` the product of ``det(U V)`` and all singular values but two, the i-th
            and the j-th.
    """

    left: Array
    others: Array
    right: Array


@_by_stacks
def _stacked_spectrum(a: Array, singular: Array) -> _Spectrum:
    """That of a stack, which is computed if any of its matrices is singular."""

    def spectrum() -> _Spectrum:
        u, s, v = jnp.linalg.svd(a, full_matrices=False)
        return _Spectrum(jnp.conj(u), _turn(u, v) * _but_two(s).astype(a.dtype), jnp.conj(v))

    nothing = _Spectrum(*[jnp.zeros_like(a)] * 3)
    found: _Spectrum = lax.cond(jnp.any(singular), spectrum, lambda: nothing)
    return found


@jax.custom_jvp
def _spectrum(a: Array, singular: Array) -> _Spectrum:
    """That of a stack; its derivative, which nothing here knows, is not a number."""
    spectrum: _Spectrum = _stacked_spectrum(a, singular)
    return spectrum


@_spectrum.defjvp
def _spectrum_jvp(primals: Any, tangents: Any) -> tuple[_Spectrum, _Spectrum]:
    unknown = _whole(jnp.where(primals[1], jnp.nan, 0.0))
    moved = (unknown * jnp.sum(tangents[0], axis=(-2, -1), keepdims=True)).astype(primals[0].dtype)
    return _spectrum(*primals), _Spectrum(*[jnp.broadcast_to(moved, primals[0].shape)] * 3)


def _change(a: Array, lu: Array, permutation: Array, direction: Array) -> Array:
    """How the cofactors of a stack change. ``det`` is divided by only where it is far from zero."""
    pivots = _pivots(lu)
    sizes = jnp.abs(pivots)
    nothing = jnp.sqrt(jnp.finfo(sizes.dtype).eps) * jnp.max(sizes, axis=-1, initial=0.0)  # type: ignore[no-untyped-call]
    singular = jnp.any(sizes <= nothing[..., None], axis=-1)
    spectrum = _spectrum(a, singular)
    determinant = _determinant(a, lu, permutation)
    # Zeros where the result is not used, for what is transposed is added up.
    cofactors = jnp.where(_whole(singular), 0, _cofactors(a, lu, permutation))
    scaled = cofactors / _whole(jnp.where(singular, 1, determinant))

    def usual(direction: Array) -> Array:
        return (
            _entries(scaled, direction) * cofactors
            - scaled @ jnp.swapaxes(direction, -1, -2) @ cofactors
        )

    def mixed(direction: Array) -> Array:
        careful = _singular_change(spectrum, direction)
        return jnp.where(_whole(singular), careful, usual(direction))

    change: Array = lax.cond(jnp.any(singular), mixed, usual, direction)
    return change


def _entries(x: Array, y: Array) -> Array:
    """The sum of the products of the entries of two matrices, to multiply a matrix with."""
    return jnp.sum(x * y, axis=(-2, -1), keepdims=True)


def _singular_change(spectrum: _Spectrum, direction: Array) -> Array:
    """``U* C V*``, where ``C`` is the change for ``diag(s)`` in the direction ``E = U*^T D V*^T``.

    With the products ``P`` of all singular values but two, ``C_ii = sum_k P_ik E_kk`` on the
    diagonal, and ``C_ij = -P_ij E_ji`` beside it.
    """
    left, others, right = spectrum
    turned = jnp.swapaxes(left, -1, -2) @ direction @ jnp.swapaxes(right, -1, -2)
    within = jnp.sum(others * jnp.diagonal(turned, axis1=-2, axis2=-1)[..., None, :], axis=-1)
    beside = -others * jnp.swapaxes(turned, -1, -2)
    change = jnp.where(jnp.eye(others.shape[-1], dtype=bool), within[..., None], beside)
    return left @ change @ right


def _but_two(s: Array) -> Array:
    """``P_ij``, the product of all ``s`` but the i-th and the j-th; zero for ``i = j``."""
    n = s.shape[-1]
    if n == 0:
        return jnp.zeros((*s.shape, 0), s.dtype)
    place = np.arange(n)

    def times(k: Array, products: Array) -> Array:
        omitted = (place[:, None] == k) | (place[None, :] == k)
        return products * jnp.where(omitted, 1, s[..., k][..., None, None])

    start = jnp.broadcast_to(1.0 - jnp.eye(n, dtype=s.dtype), (*s.shape, n))
    products: Array = lax.fori_loop(0, n, times, start)
    return products


# slogdet ---------------------------------------------------------------------------------------


def _slogdet_shape(a: Shape) -> tuple[Shape, ...]:
    refuse_oblong(a=a)
    return a[:-2], a[:-2], a, a[:-1]


def _slogdet_dtype(a: VarType) -> list[DType]:
    dtype = strong_inexact(a)
    return [dtype, part_of(dtype), bits_dtype(dtype), np.dtype(np.int32)]


@op(
    shape=_slogdet_shape,
    dtype=_slogdet_dtype,
    reference=np.linalg.slogdet,
    outputs=("sign", "logabsdet", "factors", "permutation"),
    hidden=("factors", "permutation"),
    aliases=["linalg_slogdet"],
    cases=[
        case(a=invertible(3, 3), rtol=256),
        case(a=invertible(2, 2, 2), order=2, rtol=256),
        case(a=(1, 1)),
        case(a=invertible(0, 2, 2)),
        workload(a=invertible(256, 256)),
        *_REFUSED,
    ],
)
def slogdet(a: Array) -> tuple[Array, Array, Array, Array]:
    """Sign and logarithm of the determinant: ``det(a) = sign * exp(logabsdet)``.

    It neither overflows nor underflows. The logarithm is real; the sign of a complex determinant
    has absolute value one. Of a singular matrix the sign is zero, the logarithm minus infinity and
    the gradient not finite. Half precision is computed in single.

    Example:
        >>> import jax.numpy as jnp
        >>> slogdet(jnp.asarray([[0.0, 1.0], [1.0, 0.0]]))
        (Array(-1., dtype=float32), Array(0., dtype=float32))
    """
    (matrix,) = widened(a)
    lu, permutation = factored(matrix)
    sign = _phase(matrix, lu, permutation)
    logarithm = _logarithm(matrix, lu, permutation)
    return cast_back(sign, a), real_back(logarithm, a), packed(lu), permutation


@slogdet.gradient
def _slogdet_gradient(
    a: Var, sign: Var, factors: Var, permutation: Var, d_sign: Var | None, d_logabsdet: Var
) -> Grads:
    # With t = <A^-T, dA> it is d log |det A| = Re t and d sign = i Im(t) sign: zero of real
    # matrices. Re(u i Im(t)) = Re(i Im(u) t).
    factor = d_logabsdet
    if d_sign is not None and a.dtype.kind == "c":
        factor = d_logabsdet + imaginary(d_sign * sign)
    entries = broadcast_to(expand_dims(factor, axis=-1), shape=a.shape[:-1])
    scaled = diag_embed(entries)
    return {"a": factored_solve(a, scaled, factors, permutation, transpose=True)}


@jax.custom_jvp
def _phase(a: Array, lu: Array, permutation: Array) -> Array:
    """The determinant divided by its absolute value."""
    del a
    return _parity(permutation, lu.dtype) * jnp.prod(jnp.sign(_pivots(lu)), axis=-1)


@_phase.defjvp
def _phase_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    sign = _phase(*primals)
    if not jnp.iscomplexobj(sign):
        return sign, jnp.zeros_like(sign)
    return sign, 1j * jnp.imag(_relative_change(primals, tangents)) * sign


def _relative_change(primals: Any, tangents: Any) -> Array:
    """The tangent of the determinant divided by the determinant."""
    a, lu, permutation = primals
    whole = solved(a, tangents[0], (lu, permutation), transpose=False)
    return jnp.trace(whole, axis1=-2, axis2=-1)


@jax.custom_jvp
def _logarithm(a: Array, lu: Array, permutation: Array) -> Array:
    """The logarithm of the determinant's absolute value."""
    del a, permutation
    return jnp.sum(jnp.log(jnp.abs(_pivots(lu))), axis=-1)


@_logarithm.defjvp
def _logarithm_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return _logarithm(*primals), jnp.real(_relative_change(primals, tangents))


# sumlogdiag ------------------------------------------------------------------------------------


def _sumlogdiag_shape(a: Shape) -> Shape:
    refuse_oblong(a=a)
    return a[:-2]


@op(
    shape=_sumlogdiag_shape,
    dtype=strong_real_inexact,
    reference=lambda a: np.log(np.diagonal(a, axis1=-2, axis2=-1)).sum(-1),
    aliases=["linalg_sumlogdiag"],
    cases=[
        case(a=definite(3, 3)),
        case(a=definite(2, 2, 2), order=2),
        case(a=(0, 0)),
        workload(a=definite(256, 256)),
        *_REFUSED,
        misuse("the inputs must be real, got complex64", a=np.eye(2, dtype=np.complex64)),
    ],
)
def sumlogdiag(a: Array) -> Array:
    """Sum of the logarithms on the diagonal: half of ``log det`` of what ``a`` is a factor of.

    The entries beside the diagonal are not read. Half precision is computed in single.

    Example:
        >>> import jax.numpy as jnp
        >>> sumlogdiag(jnp.asarray([[1.0, 0.0], [5.0, 1.0]]))
        Array(0., dtype=float32)
    """
    (matrix,) = widened(a)
    return cast_back(jnp.sum(jnp.log(_pivots(matrix)), axis=-1), a)


@sumlogdiag.gradient
def _sumlogdiag_gradient(a: Var, d_out: Var) -> Grads:
    return {"a": diag_embed(expand_dims(d_out, axis=-1) / diagonal(a))}
