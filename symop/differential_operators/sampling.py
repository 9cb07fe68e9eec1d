"""Random directions for estimates of differential operators."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from registry.errors import ArgumentError, DTypeError
from registry.tracebacks import api_boundary
from symop.orders import whole_number


@api_boundary
def random_directions(key: Any, count: int, like: Any, distribution: str = "rademacher") -> Any:
    """Returns random vectors ``v`` with ``E[v v^T] = I``, stacked along a first axis.

    They are the ``directions`` of an estimate of ``laplacian`` or ``divergence``, and, if they are
    drawn independently (all but ``"basis"``), of ``biharmonic``.

    Args:
        key: a random key of JAX.
        count: the number of vectors.
        like: an array or ``jax.ShapeDtypeStruct`` with the shape and dtype of ``x``.
        distribution: ``"rademacher"``: entries are -1 or 1, for which the estimate of a trace has
            the smallest variance among vectors of independent entries; ``"normal"``: the standard
            normal distribution; ``"basis"``: vectors of the standard
            basis, drawn without replacement and multiplied by the square root of their number.

    Raises:
        ArgumentError: the distribution has another name, or ``count`` is not a whole number of at
            least one, or exceeds the size of the basis.
        DTypeError: ``like`` is not of a real floating dtype.

    Example:
        >>> import jax, jax.numpy as jnp, symop as so
        >>> x = jnp.ones(100)
        >>> v = so.random_directions(jax.random.key(0), 10, x)
        >>> float(so.laplacian(lambda x: jnp.sum(x**3), x, directions=v))
        600.0
    """
    if distribution not in _DISTRIBUTIONS:
        raise ArgumentError(
            f"random_directions: the distribution must be one of {', '.join(_DISTRIBUTIONS)}, got "
            f"{distribution!r}"
        )
    number = None if count is None else whole_number(count)
    if number is None or number < 1:
        raise ArgumentError(
            f"random_directions: count must be a whole number of at least 1, got {count!r}"
        )
    if not jnp.issubdtype(like.dtype, jnp.floating):
        raise DTypeError(
            f"random_directions: the dtype must be real and floating, got {like.dtype.name}"
        )
    return _DISTRIBUTIONS[distribution](key, (number, *like.shape), like.dtype)


def _sampled_basis(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    count, size = shape[0], math.prod(shape[1:])
    if count > size:
        raise ArgumentError(f"random_directions: count must be at most {size}, got {count}")
    rows = jax.random.permutation(key, size)[:count]
    basis = jax.nn.one_hot(rows, size, dtype=dtype).reshape(shape)
    return jnp.sqrt(jnp.asarray(size, dtype)) * basis


_DISTRIBUTIONS: Mapping[str, Callable[..., Any]] = {
    "rademacher": jax.random.rademacher,
    "normal": jax.random.normal,
    "basis": _sampled_basis,
}
