"""Determinants and cofactors of factored matrices, and their derivatives."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from registry.operator.signature import Array
from registry.ops.linalg.factoring import inverted
from registry.types import DType
from registry.xla import device_types
from registry.xla.device_types import varied_alike

_Out = TypeVar("_Out")


@jax.custom_jvp
def determinant_of(a: Array, lu: Array, permutation: Array) -> Array:
    """The determinant of ``a``, whose factors are given."""
    # Results vary across devices along the axes of all operands here, as their tangents do.
    _, lu, permutation = varied_alike((a, lu, permutation))
    return parity(permutation, lu.dtype) * _product(pivots_of(lu))


@determinant_of.defjvp
def _determinant_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    moved = jnp.sum(cofactors_of(*primals) * tangents[0], axis=(-2, -1))
    return determinant_of(*primals), moved


def _product(numbers: Array) -> Array:
    """The product of each row, by logarithms where a partial product leaves the dtype's range."""
    product = jnp.prod(numbers, axis=-1)
    sizes = jnp.abs(numbers)
    signs = jnp.prod(numbers / jnp.where(sizes == 0, 1, sizes), axis=-1)
    careful = signs * jnp.exp(jnp.sum(jnp.log(sizes), axis=-1)).astype(signs.dtype)
    return jnp.where(jnp.isfinite(product) & (product != 0), product, careful)


def pivots_of(lu: Array) -> Array:
    """The diagonal of each matrix."""
    pivots: Array = jnp.diagonal(lu, axis1=-2, axis2=-1)
    return pivots


def parity(permutation: Array, dtype: DType) -> Array:
    """The sign of each permutation: -1 for each pair that is out of order."""
    later = jnp.tril(permutation[..., :, None] < permutation[..., None, :], -1)
    odd = jnp.sum(later, axis=(-2, -1)) % 2
    return jnp.where(odd, -1, 1).astype(dtype)


@jax.custom_jvp
def cofactors_of(a: Array, lu: Array, permutation: Array) -> Array:
    """The cofactors of ``a``, whose factors are given."""
    cofactors: Array = _stacked_cofactors(*varied_alike((a, lu, permutation)))
    return cofactors


@cofactors_of.defjvp
def _cofactors_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    out, moved = cofactors_of(*primals), tangents[0]
    along = jnp.sum(out * moved, axis=(-2, -1), keepdims=True) * out
    change = along - out @ jnp.swapaxes(moved, -1, -2) @ out
    return out, change / determinant_of(*primals)[..., None, None]


def _by_stacks(function: Callable[..., _Out]) -> Callable[..., _Out]:
    """``function`` of stacks, with a further axis under ``vmap`` as one more stack axis.

    A condition on the whole stack therefore stays a single condition under ``vmap``, of which one
    branch runs.
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
    """The cofactors of a stack. Singular values are computed only if a pivot is zero."""
    usual = _regular_cofactors(lu, permutation)
    regular = jnp.all(pivots_of(lu) != 0, axis=-1)[..., None, None]
    cofactors: Array = device_types.cond(
        jnp.all(regular),
        lambda: usual,
        lambda: jnp.where(regular, usual, _singular_cofactors(a)),
    )
    return cofactors


def _regular_cofactors(lu: Array, permutation: Array) -> Array:
    determinant = _product(pivots_of(lu)) * parity(permutation, lu.dtype)
    inverse = jnp.swapaxes(inverted((lu, permutation)), -1, -2)
    return determinant[..., None, None] * inverse


def _singular_cofactors(a: Array) -> Array:
    """``M = det(U V) U* diag(p) V*``, where ``A = U diag(s) V`` and ``p_i`` omits ``s_i``."""
    u, s, v = jnp.linalg.svd(a, full_matrices=False)
    others = jnp.where(jnp.eye(a.shape[-1], dtype=bool), 1, s[..., None, :])
    scaled = jnp.conj(u) * jnp.prod(others, axis=-1)[..., None, :].astype(a.dtype)
    return _turn(u, v) * (scaled @ jnp.conj(v))


def _turn(u: Array, v: Array) -> Array:
    """``det(U V)`` of unitary matrices, shaped to multiply a matrix."""
    turn = jnp.linalg.det(u @ v)
    return jnp.asarray((turn / jnp.abs(turn))[..., None, None])


def _whole(numbers: Array) -> Array:
    """One number for each matrix, shaped to combine with its entries."""
    return numbers[..., None, None]


class _Spectrum(NamedTuple):
    """The factors of the derivative of the cofactors of ``U diag(s) V``.

    Attributes:
        left, right: ``U*`` and ``V*``, or zeros where no matrix is singular.
        others: at ``[i, j]`` the product of ``det(U V)`` and all singular values except the i-th
            and the j-th.
    """

    left: Array
    others: Array
    right: Array


@_by_stacks
def _stacked_spectrum(a: Array, singular: Array) -> _Spectrum:
    """The spectrum of a stack, computed if any of its matrices is singular."""

    def spectrum() -> _Spectrum:
        u, s, v = jnp.linalg.svd(a, full_matrices=False)
        return _Spectrum(jnp.conj(u), _turn(u, v) * _but_two(s).astype(a.dtype), jnp.conj(v))

    nothing = _Spectrum(*[jnp.zeros_like(a)] * 3)
    result: _Spectrum = device_types.cond(jnp.any(singular), spectrum, lambda: nothing)
    return result


@jax.custom_jvp
def _spectrum(a: Array, singular: Array) -> _Spectrum:
    """The spectrum of a stack; its derivative, which is not implemented, is NaN."""
    spectrum: _Spectrum = _stacked_spectrum(*varied_alike((a, singular)))
    return spectrum


@_spectrum.defjvp
def _spectrum_jvp(primals: Any, tangents: Any) -> tuple[_Spectrum, _Spectrum]:
    unknown = _whole(jnp.where(primals[1], jnp.nan, 0.0))
    moved = (unknown * jnp.sum(tangents[0], axis=(-2, -1), keepdims=True)).astype(primals[0].dtype)
    return _spectrum(*primals), _Spectrum(*[jnp.broadcast_to(moved, primals[0].shape)] * 3)


def change_of_cofactors(a: Array, lu: Array, permutation: Array, direction: Array) -> Array:
    """The change of the cofactors of a stack. Division by ``det`` occurs only far from zero."""
    pivots = pivots_of(lu)
    sizes = jnp.abs(pivots)
    nothing = jnp.sqrt(jnp.finfo(sizes.dtype).eps) * jnp.max(sizes, axis=-1, initial=0.0)  # type: ignore[no-untyped-call]
    singular = jnp.any(sizes <= nothing[..., None], axis=-1)
    spectrum = _spectrum(a, singular)
    determinant = determinant_of(a, lu, permutation)
    # Zeros where the result is not used, because transposition accumulates.
    cofactors = jnp.where(_whole(singular), 0, cofactors_of(a, lu, permutation))
    scaled = cofactors / _whole(jnp.where(singular, 1, determinant))

    def usual(direction: Array) -> Array:
        return (
            _entries(scaled, direction) * cofactors
            - scaled @ jnp.swapaxes(direction, -1, -2) @ cofactors
        )

    def mixed(direction: Array) -> Array:
        careful = _singular_change(spectrum, direction)
        return jnp.where(_whole(singular), careful, usual(direction))

    change: Array = device_types.cond(jnp.any(singular), mixed, usual, direction)
    return change


def _entries(x: Array, y: Array) -> Array:
    """The sum of the products of the entries of two matrices, shaped to multiply a matrix."""
    return jnp.sum(x * y, axis=(-2, -1), keepdims=True)


def _singular_change(spectrum: _Spectrum, direction: Array) -> Array:
    """``U* C V*``, where ``C`` is the change for ``diag(s)`` in the direction ``E = U*^T D V*^T``.

    With the products ``P`` of all singular values but two, ``C_ii = sum_k P_ik E_kk`` on the
    diagonal, and ``C_ij = -P_ij E_ji`` off the diagonal.
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
    products: Array = device_types.fori_loop(0, n, times, start)
    return products
