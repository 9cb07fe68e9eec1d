"""Indexed assignment, ``x[index] = value``, compiled once for each form of index."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.caches import Jitted, memoized
from registry.errors import ArgumentError, DTypeError, ShapeError

_INPUT = "input"


def assign(x: Any, index: tuple[Any, ...], value: Any) -> Any:
    """Returns a copy of ``x``, of the same dtype, with ``value`` at ``index``.

    Integers and arrays in the index are inputs of the compiled function; slices are constants.

    Raises:
        ArgumentError: ``value`` does not consist of numbers.
        DTypeError: ``value`` is complex, and ``x`` is not.
        ShapeError: the shape of ``value`` does not fit.
    """
    value = _real_enough(x, _numbers(value))
    index = _movable(index, x.shape)
    form = tuple(_INPUT if _is_input(one) else one for one in index)
    indices = [_as_index(one) for one in index if _is_input(one)]
    try:
        if isinstance(x, jax.core.Tracer):
            return _put(x, index, value)
        return _compiled(_hashed(form))(x, indices, value)
    except (ValueError, IndexError):
        _require_fit(x, index, value)
        raise  # not of the shapes: JAX reports some interrupts as a ValueError


def _require_fit(x: Any, index: tuple[Any, ...], value: jax.Array) -> None:
    """Raises ShapeError unless ``value`` fits the entries of ``x`` at ``index``."""
    try:
        jax.eval_shape(lambda: _put(x, index, value))
    except (ValueError, IndexError) as error:
        raise ShapeError(f"x[...] = value: {error}") from None


def _numbers(value: Any) -> jax.Array:
    try:
        if not _holds_text(value):
            return jnp.asarray(value)
    except ValueError as error:  # a ragged list
        raise ShapeError(f"x[...] = value: {error}") from None
    except TypeError:
        pass
    raise ArgumentError(f"x[...] = value: the value must be an array or numbers, got {value!r}")


def _holds_text(value: Any) -> bool:
    """Whether the entries contain text or None, which JAX would interpret as dtypes."""
    if isinstance(value, (list, tuple)):
        return any(map(_holds_text, value))
    return value is None or isinstance(value, (str, bytes))


def _real_enough(x: jax.Array, value: jax.Array) -> jax.Array:
    """Returns ``value``; rejects complex entries unless ``x`` is complex.

    Raises:
        DTypeError: ``value`` is complex, and ``x`` is not.
    """
    if jnp.iscomplexobj(value) and not jnp.iscomplexobj(x):
        raise DTypeError(
            f"x[...] = value: the value must be real where x is {x.dtype}, got {value.dtype}; "
            "use real(value)"
        )
    return value


def _put(x: jax.Array, index: tuple[Any, ...], value: jax.Array) -> jax.Array:
    """Returns ``x`` with ``value`` at ``index``.

    As in NumPy, extra leading axes of length one in ``value`` are dropped.
    """
    if value.shape[:1] == (1,):
        room = jax.eval_shape(lambda: x[index]).ndim
        extra = max(value.ndim - room, 0)
        if value.shape[:extra] == (1,) * extra:
            value = value.reshape(value.shape[extra:])
    return x.at[index].set(value.astype(x.dtype))


def _movable(index: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Replaces the only partial slice of an index by an array of positions, which is an input.

    A slice next to integers or arrays is kept, as the order of axes would change.
    """
    partial = [
        i
        for i, one in enumerate(index)
        if isinstance(one, slice) and i < len(shape) and one.indices(shape[i]) != (0, shape[i], 1)
    ]
    if len(partial) != 1 or len(index) != len(shape) or any(map(_is_input, index)):
        return index
    (at,) = partial
    places = np.arange(shape[at], dtype=np.int32)[index[at]]
    return (*index[:at], places, *index[at + 1 :])


def _is_input(entry: Any) -> bool:
    return entry is not None and entry is not Ellipsis and not isinstance(entry, slice)


def _as_index(entry: Any) -> Any:
    return np.asarray(entry) if isinstance(entry, (int, list, np.generic)) else entry


def _hashed(form: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((one.start, one.stop, one.step) if isinstance(one, slice) else one for one in form)


@memoized(1024)
def _compiled(form: tuple[Any, ...]) -> Any:
    def run(x: Any, given: list[Any], value: Any) -> Any:
        supply = iter(given)
        index = tuple(
            slice(*one) if isinstance(one, tuple) else next(supply) if one is _INPUT else one
            for one in form
        )
        return _put(x, index, value)

    return Jitted(run)
